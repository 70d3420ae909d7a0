"""What noisy Lloyd iterations say about the data, beyond their last centres: at no cost.

Lee and Kifer: T iterations of noisy Lloyd release T x k noisy counts and sums, and all of them
describe one data set. `consistent` finds counts and sums near the released ones that some data set
could have (a linear program). `mcmc` walks over synthetic data sets by their likelihood given all
that was released, keeps the most likely one it meets, and clusters it by ordinary k-means.

Everything here takes released values and never records, so by the post-processing property of
differential privacy it spends nothing. A `LloydTrace` comes from a `Release`, or from anybody's own
arrays of noisy counts and sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import centers as center_kernels
from privfit._kernels import chain
from privfit._kernels.linear import BLOCK_ROWS, PANEL_ROWS, QUAD_SIZE
from privfit._kernels.random import BitSource
from privfit.base.means import seeds
from privfit.base.validation import is_finite, is_whole
from privfit.privacy.ledger import Release

__all__ = ["LloydTrace", "Progress", "Synthetic", "consistent", "mcmc"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KINDS = ("laplace", "gaussian")
DOMAINS = ("box", "l1", "l2")


@dataclass(frozen=True, eq=False)
class LloydTrace:
    """What T iterations of noisy Lloyd released, about a public point `origin`.

    centroids     (T, k, d): the centroids that assigned the records in each iteration
    counts        (T, k): noisy numbers of records in each cluster
    sums          (T, k, d): noisy sums of the records in each cluster
    scale_counts  scale of the noise of a count: b of Laplace noise, or a standard deviation
    scale_sums    scale of the noise of each coordinate of a sum, in the units of the records
    low, high     (d,): least and largest value of each coordinate of a record
    kind          "laplace" or "gaussian"
    domain        "box", or "l1" or "l2" for records in a ball about the origin
    radius        of the ball; 0 for a box
    origin        (d,): the point, in the records' own coordinates; 0 by default
    """

    centroids: Floats
    counts: Floats
    sums: Floats
    scale_counts: float
    scale_sums: float
    low: Floats
    high: Floats
    kind: str = "laplace"
    domain: str = "box"
    radius: float = 0.0
    origin: Any = None

    def __post_init__(self) -> None:
        if self.origin is None:
            object.__setattr__(self, "origin", np.zeros(np.shape(self.low)))
        arrays = ("centroids", "counts", "sums", "low", "high", "origin")
        for name in arrays:
            try:
                array = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name} must be an array of numbers; pass released values"
                ) from None
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.centroids.ndim != 3 or 0 in self.centroids.shape:
            raise ValueError(
                f"centroids (shape {self.centroids.shape}) must be (T, k, d), none of them 0; pass "
                "the centroids of every iteration"
            )
        T, k, d = self.centroids.shape
        for name, shape in (
            ("counts", (T, k)),
            ("sums", (T, k, d)),
            ("low", (d,)),
            ("high", (d,)),
            ("origin", (d,)),
        ):
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"{name} (shape {getattr(self, name).shape}) must be {shape}, to match the "
                    f"centroids; pass one value for each"
                )
        for name in arrays:
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} must be finite; pass released values")
        for name in ("scale_counts", "scale_sums"):
            if not is_finite(getattr(self, name)) or getattr(self, name) <= 0:
                raise ValueError(
                    f"{name} ({getattr(self, name)!r}) must be a positive number; pass the scale "
                    "of the noise"
                )
        if self.kind not in KINDS:
            raise ValueError(f"kind ({self.kind!r}) must be one of {KINDS}; pass that of the noise")
        if self.domain not in DOMAINS:
            raise ValueError(
                f"domain ({self.domain!r}) must be one of {DOMAINS}; pass that of the records"
            )
        if not (self.low <= self.high).all():
            raise ValueError("low must not exceed high; pass the bounds of each column")
        if not is_finite(self.radius) or (self.radius > 0) != (self.domain != "box"):
            raise ValueError(
                f"radius ({self.radius!r}) must be 0 for a box and positive for a ball; pass that "
                "of the records' domain"
            )
        if self.domain != "box" and not (np.maximum(-self.low, self.high) <= self.radius).all():
            raise ValueError("low and high must lie within the radius; pass those of the ball")

    @classmethod
    def from_release(cls, release: Release) -> LloydTrace:
        """The trace that a noisy Lloyd fit left in its release, under `parameters["trace"]`."""
        trace = release.parameters.get("trace")
        if isinstance(trace, cls):
            return trace
        if not isinstance(trace, Mapping):
            raise ValueError(
                f"release {release.name!r} must hold a trace of Lloyd iterations; pass the release "
                "of a fit by noisy Lloyd, or make a LloydTrace of your own arrays"
            )
        try:
            return cls(**trace)
        except TypeError:
            raise ValueError(
                f"the trace of release {release.name!r} must have the fields of LloydTrace and no "
                "others; pass the release unchanged"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as a release keeps them."""
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """Where a chain stands: steps done and planned, and the best log likelihood so far."""

    step: int
    steps: int
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class Synthetic:
    """The most likely synthetic data set that a chain met, and its clusters.

    points          (n, d): synthetic records
    log_likelihood  of the released counts and sums given these points, up to a constant
    accepted        steps that changed the state
    centers         (n_clusters, d): ordinary k-means on the points
    steps           steps that the chain made
    """

    points: Floats = field(repr=False)
    log_likelihood: float
    accepted: int
    centers: Floats
    steps: int


# ------------------------------------------------------------------------------------- consistency


def consistent(trace: LloydTrace) -> LloydTrace:
    """The trace with counts and sums that one data set could have, as near as possible.

    Minimises sum abs(s^ - s~) / scale_sums + sum abs(n^ - n~) / scale_counts by a linear program.
    Totals are equal over iterations; n^ >= 0; low n^ <= s^ <= high n^, and l1(s^) <= radius n^ on
    the L1 ball. The L2 ball takes l1(s^) <= sqrt(d) radius n^, which is what of it is linear.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    _check_trace(trace)
    T, k, d = trace.sums.shape
    m = T * k
    top = max(trace.radius, np.abs(trace.low).max(), np.abs(trace.high).max())
    unit = 2.0 ** math.frexp(top)[1] if top > 0 else 1.0  # sums in units in which records are small
    # Variables: n^ (m), s^ (m d), abs(n^ - n~), abs(s^ - s~) alike, and on a ball abs(s^) (m d).
    ball = trace.domain != "box"
    eye_n, eye_s = sparse.identity(m), sparse.identity(m * d)
    spread = sparse.kron(eye_n, np.ones((d, 1)))  # a cluster's value at each of its coordinates
    low = sparse.kron(eye_n, trace.low[:, None] / unit)
    high = sparse.kron(eye_n, trace.high[:, None] / unit)

    def rows(**blocks: Any) -> list[Any]:
        """A row of blocks by variable; what is not named is zero."""
        names = ("n", "s", "gap_n", "gap_s", "size")[: 5 if ball else 4]
        return [blocks.get(name) for name in names]

    at_most = [
        rows(n=eye_n, gap_n=-eye_n), rows(n=-eye_n, gap_n=-eye_n),
        rows(s=eye_s, gap_s=-eye_s), rows(s=-eye_s, gap_s=-eye_s),
        rows(n=low, s=-eye_s), rows(n=-high, s=eye_s),
    ]  # fmt: skip
    n, s = trace.counts.ravel(), trace.sums.ravel() / unit
    bounds = [n, -n, s, -s, np.zeros(m * d), np.zeros(m * d)]
    if ball:
        reach = trace.radius / unit * (math.sqrt(d) if trace.domain == "l2" else 1.0)
        at_most += [
            rows(s=eye_s, size=-eye_s), rows(s=-eye_s, size=-eye_s),
            rows(n=-reach * eye_n, size=spread.T),
        ]  # fmt: skip
        bounds += [np.zeros(m * d), np.zeros(m * d), np.zeros(m)]
    # Totals: iteration t less iteration t + 1.
    steps = sparse.diags([np.ones(T - 1), -np.ones(T - 1)], [0, 1], shape=(T - 1, T))
    over = sparse.kron(steps, np.ones((1, k)))
    equal = [rows(n=over), rows(s=sparse.kron(over, sparse.identity(d)))] if T > 1 else []
    widths = [m, m * d, m, m * d, m * d][: 5 if ball else 4]
    each = [0.0, 0.0, 1 / trace.scale_counts, unit / trace.scale_sums, 0.0][: len(widths)]
    cost = np.repeat(each, widths)
    sign = [(0, None)] * m + [(None, None)] * (m * d) + [(0, None)] * sum(widths[2:])
    solution = linprog(
        cost, A_ub=_blocks(at_most, widths), b_ub=np.concatenate(bounds),
        A_eq=_blocks(equal, widths) if equal else None,
        b_eq=np.zeros((T - 1) * (1 + d)) if equal else None,
        bounds=sign, method="highs",
    )  # fmt: skip
    if solution.x is None:  # all zeros are feasible, so this is a solver's own trouble
        raise RuntimeError(
            f"the linear program must have a solution, but HiGHS says {solution.message!r}; pass a "
            "trace whose numbers differ less in size"
        )
    counts, sums = solution.x[:m], solution.x[m : m + m * d] * unit
    return replace(trace, counts=np.maximum(counts, 0.0).reshape(T, k), sums=sums.reshape(T, k, d))


def _check_trace(trace: Any) -> None:
    if not isinstance(trace, LloydTrace):
        raise TypeError(
            f"trace ({type(trace).__name__}) must be a LloydTrace; pass "
            "LloydTrace.from_release(release), or make one of your own arrays"
        )


def _blocks(rows: list[list[Any]], widths: list[int]) -> Any:
    """A sparse matrix of block rows; None is a block of zeros."""
    from scipy import sparse

    full = []
    for row in rows:
        height = next(block.shape[0] for block in row if block is not None)
        full.append(
            [
                sparse.csr_matrix((height, width)) if block is None else block
                for block, width in zip(row, widths, strict=True)
            ]
        )
    return sparse.bmat(full, format="csr")


# --------------------------------------------------------------------------------------- the chain

BITS = 13  # of a coordinate on the grid of the kernels: -2 c fits in int16
MOST = 1 << 14  # components of the mixture; their names and slots fit in 16 bits
CHUNK = 1 << 14  # steps between looks at the chain


def mcmc(
    trace: LloydTrace,
    n_clusters: int,
    *,
    steps: int | None = None,
    n_records: int | None = None,
    rng: Any = None,
    anneal: bool = False,
    delta: float = 0.001,
    n_init: int = 20,
    tolerance: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    paper: bool = False,
) -> Synthetic:
    """A likely synthetic data set, given all that a noisy Lloyd run released, and its clusters.

    Parameters
    ----------
    trace : LloydTrace
        Released values. Nothing else about the records is used, so nothing is spent.
    n_clusters : int
        Number of centres to return; it may differ from that of the trace.
    steps : int, optional
        Length of the chain. By default the paper's 30,000; to anneal 300,000, or 10 a record if
        that is more: a cooled chain gains by every step, a sampling one hardly after the first.
    n_records : int, optional
        Number of synthetic records; the consistent total of the noisy counts by default.
    rng : None, int, Generator or BitSource
        Source of randomness. This is post-processing: a seed does no harm here.
    anneal : bool
        Cool the chain to the most likely data set, rather than sample from the posterior.
    delta : float
        Variance of proposals about their centre, where the domain has half-width 1.
    n_init : int
        Restarts of the final k-means.
    tolerance : float, optional
        Stop when a sweep (one step a record, at least 16,384) raises the best log likelihood by
        less than this.
    callback : callable (Progress) -> object
        Called after every 16,384 steps.
    paper : bool
        Propose from the T sets of means that the iterations released, each with its own counts.
        Ours also proposes from the centroids of the first iteration, which no record has moved:
        one proposal in T + 1, which reaches what noise has emptied.
    """
    _check_trace(trace)
    for name, value in (("n_clusters", n_clusters), ("n_init", n_init)):
        if not is_whole(value) or value < 1:
            raise ValueError(f"{name} ({value!r}) must be a positive whole number; pass one")
    if steps is not None and (not is_whole(steps) or steps < 0):
        raise ValueError(f"steps ({steps!r}) must be a whole number from 0 on; pass e.g. 30_000")
    if n_records is not None and (not is_whole(n_records) or not 0 < n_records < 2**31):
        raise ValueError(
            f"n_records ({n_records!r}) must be a positive whole number below 2^31; pass None to "
            "take the noisy total"
        )
    if not is_finite(delta) or delta <= 0:
        raise ValueError(f"delta ({delta!r}) must be a positive number; pass e.g. 0.001")
    if tolerance is not None and (not is_finite(tolerance) or tolerance < 0):
        raise ValueError(f"tolerance ({tolerance!r}) must be None or a number from 0 on; pass one")
    T, k, _ = trace.centroids.shape
    if (T + 1) * k > MOST:
        raise ValueError(
            f"centroids (shape {trace.centroids.shape}) must be at most {MOST // k - 1} sets of "
            "this size; pass fewer iterations"
        )
    source = BitSource.of(rng)
    state = _Chain(trace, consistent(trace), n_records, delta, source, paper)
    if steps is None:
        steps = max(300_000, 10 * len(state.points)) if anneal else 30_000
    sweep = max(CHUNK, len(state.points))
    best, done, looked = -math.inf, 0, 0
    while done < steps:
        count = min(CHUNK, steps - done)
        blocks = np.arange(done, done + count, chain.CROWD_SIZE) / steps
        betas = _betas(blocks) if anneal else np.ones_like(blocks)
        state.walk(betas, count, tilt=0.0 if anneal else 1.0)
        done += count
        if callback is not None:
            callback(Progress(done, steps, state.best_value))
        if tolerance is not None and done - looked >= sweep:
            if state.best_value - best < tolerance:
                break
            best, looked = state.best_value, done
    points = state.best[:, : trace.low.size]
    found = kmeans(points, n_clusters, n_init, np.random.default_rng(source.bits(128)))
    return Synthetic(
        points * state.unit + trace.origin,
        state.likelihood(state.best),
        state.accepted,
        found * state.unit + trace.origin,
        done,
    )


def _betas(progress: Floats) -> Floats:
    """Inverse temperatures of a cooling chain: from 1 to 1000, then only steps that do no harm."""
    return np.where(progress < 0.8, 1000.0 ** (progress / 0.8), 1e12)


class _Chain:
    """The kernel's buffers, and what they mean.

    Points and centres are whole numbers of `unit`, a power of two. Rows hold the released sums and
    counts of a cluster less those of the points; released values are rounded to 2^-10 units, so
    that all sums of doubles are exact.
    """

    def __init__(
        self,
        trace: LloydTrace,
        near: LloydTrace,
        n_records: int | None,
        delta: float,
        source: BitSource,
        paper: bool,
    ) -> None:
        T, k, d = trace.centroids.shape
        self._trace = trace
        self.unit = _unit(trace)
        bounds = np.stack([np.ceil(trace.low / self.unit), np.floor(trace.high / self.unit)])
        middle = np.rint((trace.low + trace.high) / 2 / self.unit)
        bounds = np.where(bounds[0] > bounds[1], middle, bounds)  # columns thinner than a unit
        limit = math.floor(trace.radius / self.unit)
        # The centres that noisy Lloyd ends with. Consistent sums would give others, and worse ones:
        # the linear program moves sums of small clusters far.
        means = self._inside(trace.sums[-1] / np.maximum(trace.counts[-1], 1.0)[:, None], bounds)
        sets = np.rint(np.concatenate([trace.centroids, means[None] * self.unit]) / self.unit)
        if (
            paper
        ):  # set t of T + 1 has the counts of iteration t, and the first one proposes nothing
            slots = _slots(near.counts) + np.uint16(k)
        else:
            slots = _slots(np.concatenate([near.counts, near.counts[-1:]]))
        width = np.where(trace.high > trace.low, (trace.high - trace.low) / 2, 0.0)
        half = trace.radius or math.exp(np.log(width[width > 0]).mean()) if width.any() else 1.0
        sigma = math.sqrt(delta) * half / self.unit
        self._mixture = chain.Mixture(
            sets.astype(np.int16), T, slots, np.where(width > 0, sigma, 0.0),
            1 / (2 * sigma**2), bounds, DOMAINS.index(trace.domain),
            float(limit**2 if trace.domain == "l2" else limit),
        )  # fmt: skip
        total = round(near.counts[-1].sum()) if n_records is None else n_records
        copies = _apportion(near.counts[-1], max(total, 1))
        self.points = np.zeros((max(total, 1), (d + 4) // 4 * 4), dtype=np.int16)
        self.points[:, :d] = np.repeat(sets[-1], copies, axis=0)
        self.points[:, d] = 1
        self._ids = np.empty((len(self.points), T), dtype=np.uint16)
        self._log_q = np.empty(len(self.points))
        scales = np.zeros(self.points.shape[1])
        scales[: d + 1] = [self.unit / trace.scale_sums] * d + [1 / trace.scale_counts]
        self._quadratic = trace.kind == "gaussian"
        self._weight = scales**2 / 2 if self._quadratic else scales
        self._rows = self._residuals(self.points)
        self.best = self.points.copy()
        self._stale = np.zeros(len(self.points), dtype=np.int64)
        self._is_stale = np.zeros(len(self.points), dtype=np.uint8)
        self._counters = np.array([0, 1, 0])
        self._values = np.full(2, self.likelihood(self.points))
        self._streams = chain.streams(source)

    @property
    def best_value(self) -> float:
        """The log likelihood of the best state."""
        return float(self._values[1])

    @property
    def accepted(self) -> int:
        """Steps that changed the state."""
        return int(self._counters[2])

    def walk(self, betas: Floats, steps: int, tilt: float) -> None:
        """Make this many steps; one inverse temperature for each block of the kernel."""
        chain.walk(
            self._mixture, self._streams, self.points, self._ids, self._log_q, self._rows,
            self._weight, self._quadratic, betas, steps, tilt, self.best, self._stale,
            self._is_stale, self._counters, self._values,
        )  # fmt: skip

    def likelihood(self, points: NDArray[np.int16]) -> float:
        """The log likelihood of points, from scratch."""
        rows = self._residuals(points)
        return -float(((rows**2 if self._quadratic else np.abs(rows)) * self._weight).sum())

    def _residuals(self, points: NDArray[np.int16]) -> Floats:
        """(T k, width): released sums and counts less those of the points."""
        T, k, d = self._trace.sums.shape
        ids = np.empty((len(points), T), dtype=np.uint16)
        log_q = np.empty(len(points))
        chain.assign(self._mixture, points, ids, log_q)
        if points is self.points:
            self._ids[:], self._log_q[:] = ids, log_q
        rows = np.zeros((T * k, points.shape[1]))
        rows[:, :d] = np.rint(self._trace.sums.reshape(-1, d) / self.unit * 2**10) / 2**10
        rows[:, d] = np.rint(self._trace.counts.ravel() * 2**10) / 2**10
        for j in range(d + 1):
            for t in range(T):
                rows[:, j] -= np.bincount(ids[:, t], weights=points[:, j], minlength=T * k)
        return rows

    def _inside(self, points: Floats, bounds: Floats) -> Floats:
        """Points of the trace's units as whole numbers of `unit` within the domain."""
        points = np.clip(np.trunc(points / self.unit), *bounds)
        if self._trace.domain == "box":
            return points
        order = 1 if self._trace.domain == "l1" else 2
        length = np.linalg.norm(points, order, axis=1, keepdims=True)
        limit = math.floor(self._trace.radius / self.unit)
        return np.trunc(points * np.minimum(1.0, limit / np.maximum(length, limit)))


def _unit(trace: LloydTrace) -> float:
    """The grid's step, a power of two: coordinates have BITS bits, and distances fit in int32."""
    farthest = np.maximum(np.abs(trace.low), np.abs(trace.high))
    top = max(farthest.max(), np.abs(trace.centroids).max())
    if top == 0:
        return 1.0
    mantissa, exponent = math.frexp(top)
    unit = 2.0 ** (exponent - (mantissa == 0.5) - BITS)  # top <= 2^BITS units
    size = trace.radius or math.sqrt(np.square(farthest).sum())
    center = math.sqrt(np.square(trace.centroids).sum(axis=2).max())
    center = max(center, size)
    while (center**2 + 2 * center * size) / unit**2 > 2.0**31 - 2.0**20:
        unit *= 2
    return unit


def _slots(shares: Floats) -> NDArray[np.uint16]:
    """Components in proportion to their share of a set, the sets alike; each has one at least."""
    m = shares.size
    count = 1 << max(12, (4 * m - 1).bit_length())
    even = shares + 1e-9 * (1.0 + shares.sum())
    share = (even / even.sum(axis=1, keepdims=True)).ravel()
    return np.repeat(np.arange(m), 1 + _apportion(share, count - m)).astype(np.uint16)


def _apportion(shares: Floats, total: int) -> Integers:
    """Whole numbers in proportion to shares, which add up to the total."""
    whole = shares.sum()
    ends = np.cumsum(shares / whole if whole > 0 else np.full(shares.shape, 1 / shares.size))
    ends = np.rint(ends / ends[-1] * total).astype(np.int64)
    return np.diff(ends, prepend=0)


# ------------------------------------------------------------------------------- ordinary k-means

ROUNDS = 300  # Lloyd iterations at most
SEEDS = 4096  # points that starts are drawn from: enough for the centres, and ten times quicker
TOLERANCE = 1e-4  # of a column's variance: a run whose centres move less has settled


def kmeans(
    points: NDArray[np.int16], n_clusters: int, n_init: int, rng: np.random.Generator
) -> Floats:
    """Ordinary k-means on whole numbers (n, d): the best of `n_init` runs from k-means++ starts.

    Runs stop once they settle; the best one goes on until no centre moves.
    """
    exact = points.astype(np.float64)
    step = _LloydStep(points, n_clusters)
    settled = TOLERANCE * float(exact.var(axis=0).mean())
    runs = []
    for _ in range(n_init):
        some = exact if len(exact) <= SEEDS else exact[rng.integers(len(exact), size=SEEDS)]
        runs.append(step.run(seeds(some, np.ones(len(some)), n_clusters, rng), settled))
    best = min(range(n_init), key=[step.cost(centers) for centers in runs].__getitem__)
    return step.run(runs[best], 0.0)


class _LloydStep:
    """Lloyd iterations by the kernels for centres; distances are to centres rounded to the grid."""

    def __init__(self, points: NDArray[np.int16], n_clusters: int) -> None:
        n, self._d = points.shape
        self._k, pairs, n_panels = n_clusters, (self._d + 1) // 2, -(-n // PANEL_ROWS)
        padded = np.zeros((n_panels * PANEL_ROWS, 2 * pairs), dtype=np.int16)
        padded[:n, : self._d] = points
        by_panel = padded.reshape(n_panels, PANEL_ROWS, pairs, 2).transpose(0, 2, 1, 3)
        self._panels = np.ascontiguousarray(by_panel)
        first = np.arange(0, n, BLOCK_ROWS)
        count = np.minimum(BLOCK_ROWS, n - first)
        self._tiles = np.stack([first, count, np.zeros_like(first)], axis=1)
        self._work = np.empty((1, QUAD_SIZE + 2, BLOCK_ROWS), dtype=np.int32)
        self._unused = np.zeros((n_clusters, 2 * pairs), dtype=np.int32)  # for residuals alone

    def run(self, centers: Floats, settled: float) -> Floats:
        """Iterate until the squared moves of all centres add up to no more than `settled`."""
        for _ in range(ROUNDS):
            w, start = chain.quads(np.rint(centers).astype(np.int16))
            counts = np.zeros((1, self._k), dtype=np.int64)
            sums = np.zeros((1, self._k, 2 * self._panels.shape[1]), dtype=np.int64)
            center_kernels.lloyd(
                self._panels, self._tiles, w, start, 2, self._unused, 0, 0, self._work, counts, sums
            )
            means = sums[0, :, : self._d] / np.maximum(counts[0], 1)[:, None]
            moved = np.where(counts[0][:, None] > 0, means, centers)
            gap, centers = np.square(moved - centers).sum(), moved
            if gap <= settled:
                break
        return centers

    def cost(self, centers: Floats) -> int:
        """The sum of squared distances, less that of the points' own squares."""
        out = np.zeros((1, 1), dtype=np.int64)
        w, start = chain.quads(np.rint(centers).astype(np.int16))
        center_kernels.costs(
            self._panels.view(np.int32)[..., 0], self._tiles, w[None], start[None], 2,
            self._work[:, 0], out,
        )  # fmt: skip
        return int(out[0, 0])
