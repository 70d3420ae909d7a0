"""What a private k-means fit reveals about the data beyond its last centres, at no cost.

Lee and Kifer: T iterations of noisy Lloyd release T x k noisy counts and sums, and all of them
describe one data set. `consistent` finds counts and sums near the released ones that some data set
could have (a linear program). `mcmc` walks over synthetic data sets by their likelihood given
everything that was released, keeps the most likely one it visits, and clusters it by ordinary
k-means.

Other solvers release other things: sums of clipped residuals, cells of a tree, histograms. A
`KMeansTrace` has them all, and `mcmc` takes it as well: that chain is in `pooled.py`.

Everything here takes released values and never records, so by the post-processing property of
differential privacy it costs nothing. A trace comes from a `Release`, or from any arrays of noisy
values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import centers as center_kernels
from privfit._kernels import chain
from privfit._kernels.random import BitSource
from privfit._kernels.records import BLOCK_ROWS, PANEL_ROWS, QUAD_SIZE
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.clustering.consistency import consistent
from privfit.clustering.parts import KMeansTrace
from privfit.clustering.pooled import Pool, Records, estimated_size
from privfit.clustering.trace import DOMAINS, LloydTrace, check_trace
from privfit.runs.means import seeds, weighted_means

__all__ = ["KMeansTrace", "LloydTrace", "Progress", "Synthetic", "consistent", "mcmc"]


@dataclass(frozen=True)
class Progress:
    """The progress of a chain: steps done and planned, and the best log-likelihood so far."""

    step: int
    steps: int
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class Synthetic:
    """The most likely synthetic data set that a chain visited, and its clusters.

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


# --------------------------------------------------------------------------------------- the chain

BITS = 13  # of a coordinate on the grid of the kernels: -2 c fits in int16
MOST = 1 << 14  # components of the mixture; their names and slots fit in 16 bits
CHUNK = 1 << 14  # steps between looks at the chain
POOL_STEPS = 30  # for each record from a pool


def mcmc(
    trace: LloydTrace | KMeansTrace,
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
    """Find a likely synthetic data set, given what a k-means fit released, and cluster it.

    Parameters
    ----------
    trace : LloydTrace or KMeansTrace
        Released values. Nothing else about the records is used, so it costs nothing.
    n_clusters : int
        Number of centres to return; it may differ from that of the trace.
    steps : int or None, default=None
        Length of the chain. By default the paper's 30,000; with `anneal` 300,000, or 10 per record
        if that is more: a cooled chain gains from every step, a sampling one hardly after the
        first. For a `KMeansTrace` 30 per record.
    n_records : int or None, default=None
        Number of synthetic records; by default the consistent total of the noisy counts, and for a
        `KMeansTrace` the mean of their totals, weighed by their precision.
    rng : None, int, numpy.random.Generator or BitSource, default=None
        Source of randomness. This is post-processing: a seed does no harm here.
    anneal : bool, default=False
        Whether to cool the chain to the most likely data set, instead of sampling from the
        posterior.
    delta : float, default=0.001
        Variance of proposals about their centre, for a domain of half-width 1. A `KMeansTrace`
        has a radius for each step instead.
    n_init : int, default=20
        Number of restarts of the final k-means.
    tolerance : float or None, default=None
        Stop when a sweep (one step per record, at least 16,384) raises the best log-likelihood by
        less than this.
    callback : callable (Progress) -> object or None, default=None
        Called after every 16,384 steps.
    paper : bool, default=False
        Whether to propose only from the T sets of means that the iterations released, each with its
        own counts. By default also from the centroids of the first iteration, which no record has
        moved: one proposal in T + 1, which reaches regions that noise has emptied. Only for a
        `LloydTrace`.

    Returns
    -------
    Synthetic
        The most likely synthetic data set that the chain visited, and its clusters.

    See Also
    --------
    LloydTrace : What noisy Lloyd released.
    privfit.clustering.KMeansTrace : What any solver released.
    KMeans : Has a parameter `postprocess`.

    Notes
    -----
    This is post-processing of released values: it costs no budget.

    References
    ----------
    J. Lee, D. Kifer, "Post-processing for iterative differentially private algorithms".

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, LloydTrace, mcmc
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = KMeans(3, 1.0, domain=(-1, 1), solver="lloyd").fit(X)
    >>> mcmc(LloydTrace.from_release(model.release_), n_clusters=3, steps=1000).centers.shape
    (3, 2)
    """
    _check_walk(trace, n_clusters, steps, n_records, delta, n_init, tolerance)
    if isinstance(trace, KMeansTrace):
        _check_parts(trace, n_records, paper)
        return _from_pool(trace, n_clusters, steps, n_records, rng, anneal, n_init, tolerance,
                          callback)  # fmt: skip
    source = BitSource.of(rng)
    state = _Chain(trace, consistent(trace), n_records, delta, source, paper)
    if steps is None:
        steps = max(300_000, 10 * len(state.points)) if anneal else 30_000
    has_settled = _settling(tolerance, max(CHUNK, len(state.points)))
    done = _walk(state, steps, anneal, has_settled, callback)
    points = state.best[:, : trace.low.size]
    centers = kmeans(points, n_clusters, n_init, np.random.default_rng(source.bits(128)))
    return Synthetic(
        points * state.unit + trace.origin,
        state.likelihood(state.best),
        state.accepted,
        centers * state.unit + trace.origin,
        done,
    )


def _from_pool(
    trace: KMeansTrace,
    n_clusters: int,
    steps: int | None,
    n_records: int | None,
    rng: Any,
    anneal: bool,
    n_init: int,
    tolerance: float | None,
    callback: Callable[[Progress], object] | None,
) -> Synthetic:
    """The same for parts of any kind: records come from a pool of public points."""
    coins = np.random.default_rng(BitSource.of(rng).bits(128))
    size = n_records or estimated_size(trace) or 1
    state = Records(Pool(trace, coins), size, coins)
    has_settled = _settling(tolerance, max(CHUNK, len(state.points)))
    steps = POOL_STEPS * len(state.points) if steps is None else steps
    done, points = _walk(state, steps, anneal, has_settled, callback), state.points
    centers = weighted_means(points, np.ones(len(points)), n_clusters, coins, n_init)
    return Synthetic(points, state.likelihood(), state.accepted, centers, done)


def _walk(
    state: _Chain | Records,
    steps: int,
    anneal: bool,
    has_settled: Callable[[int, float], bool],
    callback: Callable[[Progress], object] | None,
) -> int:
    """Metropolis-Hastings steps until the chain has settled; how many were made."""
    done = 0
    while done < steps:
        count = min(CHUNK, steps - done)
        blocks = np.arange(done, done + count, chain.CROWD_SIZE) / steps
        betas = _betas(blocks) if anneal else np.ones_like(blocks)
        state.walk(betas, count, anneal)
        done += count
        if callback is not None:
            callback(Progress(done, steps, state.best_value))
        if has_settled(done, state.best_value):
            break
    return done


def _check_parts(trace: KMeansTrace, n_records: int | None, paper: bool) -> None:
    """Refuse what a chain on a pool cannot use."""
    if paper:
        raise DeclarationError(
            "paper (True) must be False for a KMeansTrace; pass a LloydTrace, of noisy Lloyd steps"
        )
    if n_records is None and estimated_size(trace) is None:
        raise DeclarationError(
            "n_records (None) must be a number if no part has counts; pass the public number of "
            "records"
        )


def _check_walk(
    trace: LloydTrace | KMeansTrace,
    n_clusters: int,
    steps: int | None,
    n_records: int | None,
    delta: float,
    n_init: int,
    tolerance: float | None,
) -> None:
    """Refuse what `mcmc` cannot use."""
    if not isinstance(trace, KMeansTrace):
        check_trace(trace)
    for name, value in (("n_clusters", n_clusters), ("n_init", n_init)):
        if not is_whole(value) or value < 1:
            raise DeclarationError(f"{name} ({value!r}) must be a positive whole number; pass one")
    if steps is not None and (not is_whole(steps) or steps < 0):
        raise DeclarationError(
            f"steps ({steps!r}) must be a whole number of at least 0; pass e.g. 30_000"
        )
    if n_records is not None and (not is_whole(n_records) or not 0 < n_records < 2**31):
        raise DeclarationError(
            f"n_records ({n_records!r}) must be a positive whole number below 2^31; pass None to "
            "take the noisy total"
        )
    if not is_finite(delta) or delta <= 0:
        raise DeclarationError(f"delta ({delta!r}) must be a positive number; pass e.g. 0.001")
    if tolerance is not None and (not is_finite(tolerance) or tolerance < 0):
        raise DeclarationError(
            f"tolerance ({tolerance!r}) must be None or a number of at least 0; pass one"
        )
    if isinstance(trace, KMeansTrace):
        return
    T, k, _ = trace.centroids.shape
    if (T + 1) * k > MOST:
        raise DeclarationError(
            f"centroids (shape {trace.centroids.shape}) must be at most {MOST // k - 1} sets of "
            "this size; pass fewer iterations"
        )


def _settling(tolerance: float | None, sweep: int) -> Callable[[int, float], bool]:
    """Whether the last sweep raised the best value by less than the tolerance, if there is one."""
    best, looked = -math.inf, 0

    def has_settled(done: int, value: float) -> bool:
        nonlocal best, looked
        if tolerance is None or done - looked < sweep:
            return False
        gain, best, looked = value - best, value, done
        return gain < tolerance

    return has_settled


def _betas(progress: Floats) -> Floats:
    """Inverse temperatures of a cooling chain: from 1 to 1000, then only steps that do no harm."""
    return np.where(progress < 0.8, 1000.0 ** (progress / 0.8), 1e12)


class _Chain:
    """The kernel's buffers, and what they mean.

    Points and centres are whole numbers of `unit`, a power of two. Rows hold the released sums and
    counts of a cluster minus those of the points; released values are rounded to 2^-10 units, so
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
        if paper:  # set t of T + 1 has the counts of iteration t; the first one proposes nothing
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

    def walk(self, betas: Floats, steps: int, cooled: bool) -> None:
        """Make this many steps; one inverse temperature for each block of the kernel."""
        tilt = 0.0 if cooled else 1.0  # a uniform prior for sampling, as published
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
        """(T k, width): released sums and counts minus those of the points."""
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
        """Points in the trace's units as whole numbers of `unit` within the domain."""
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
    """Components in proportion to their share of a set, equally for all sets; at least one each."""
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

    Runs stop once they settle; the best one continues until no centre moves. It is not
    `runs.means.weighted_means`, whose starts it shares, since that one sums floats and rounds in
    another order, so that released centres would change.
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
        """The sum of squared distances, minus that of the points' own squares."""
        out = np.zeros((1, 1), dtype=np.int64)
        w, start = chain.quads(np.rint(centers).astype(np.int16))
        center_kernels.costs(
            self._panels.view(np.int32)[..., 0], self._tiles, w[None], start[None], 2,
            self._work[:, 0], out,
        )  # fmt: skip
        return int(out[0, 0])
