"""Lower bounds on epsilon: what a mechanism really gives away, white box and black box.

**White box.** `audit_selection` takes a small public domain, enumerates every pair of neighbouring
data sets, and computes the output distribution of a selection for each from its integer scores. It
reports the largest log ratio and the largest *range* of log ratios between neighbours. This is a
proof for that domain, size and candidate set, up to an error below 1e-30; it finds a range that is
too small, and nothing that depends on the sampler.

**Black box.** `audit_runs` runs anything on two neighbouring inputs and finds an event that tells
them apart. The event is chosen on half of the runs and certified on the other half, with exact
binomial bounds (Clopper and Pearson 1934): with the stated confidence no (epsilon, delta) guarantee
below `lower_bound` holds. This is a statement about the code that ran; a small bound proves nothing
else. `canary` is a worst pair for selections.

>>> import numpy as np
>>> from privfit.audit import audit_runs
>>> def noisy_count(count, rng):  # somebody's own mechanism, said to be 1-DP
...     return count + rng.laplace(scale=0.5)
>>> found = audit_runs(noisy_count, 10, 11, runs=20_000, rng=np.random.default_rng(0))
>>> found.passes(1.0)
False
>>> found.lower_bound > 1.5
True

Inputs are made up and public; an audit releases nothing and charges nothing. Never run it on
private records: its report shows what a mechanism drew.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit._kernels.random import BitSource
from privfit.checks import is_finite, is_whole
from privfit.mechanisms import Exponential, NoisyMax, PermuteAndFlip, TopK

__all__ = [
    "Canary",
    "Neighbours",
    "RunsAudit",
    "SelectionAudit",
    "audit_outcomes",
    "audit_runs",
    "audit_scores",
    "audit_selection",
    "canary",
    "neighbours",
    "output_distribution",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Selection: TypeAlias = Exponential | TopK | PermuteAndFlip | NoisyMax
Distribution: TypeAlias = dict[Any, Decimal]  # log-probability of each outcome

TOLERANCE = 1e-12  # relative, on epsilon: far above the errors here, far below any mistake
TERMS = 200_000  # of the sums behind report-noisy-max
RARE = 20  # labels seen less often than this are no events of their own
THRESHOLDS = 512

# Scores differ by less than 2^64 and probabilities are sums of less than 2^64 terms: of 80 digits,
# 40 are lost at worst. The exponents are the widest that every platform has.
_CONTEXT = decimal.Context(
    prec=80, Emin=-425_000_000, Emax=425_000_000, rounding=decimal.ROUND_HALF_EVEN, traps=[]
)


# ----------------------------------------------------------------------------- exact distributions


def output_distribution(mechanism: Selection, scores: ArrayLike) -> Distribution:
    """The log-probability of every outcome of a selection, with an absolute error below 1e-30.

    Outcomes are candidates, or tuples of k candidates for `TopK`. The rate is epsilon / range as
    declared; the sampler's own is smaller by less than one part in 2^31. The work grows as
    m log m, m^k, m^3 and m^2 range / epsilon for the exponential mechanism, `TopK`,
    permute-and-flip (m at most 64) and report-noisy-max.
    """
    values = [int(score) for score in np.asarray(scores).tolist()]
    if not values:
        raise ValueError("scores must hold at least one candidate; pass integers (m,)")
    with decimal.localcontext(_CONTEXT):
        if isinstance(mechanism, TopK):
            rate = _rate(mechanism.epsilon_each, mechanism.range)
            return dict(_peeling(values, rate, mechanism.k))
        if not isinstance(mechanism, Exponential | PermuteAndFlip | NoisyMax):
            raise TypeError(
                f"mechanism ({type(mechanism).__name__}) must be a selection; pass Exponential, "
                "TopK, PermuteAndFlip or NoisyMax, or use audit_runs"
            )
        rate = _rate(mechanism.epsilon, mechanism.range)
        if rate == 0 or isinstance(mechanism, Exponential):
            logs = _exponential(values, rate)
        elif isinstance(mechanism, PermuteAndFlip):
            logs = _permute_and_flip(values, rate)
        else:
            logs = _noisy_max(values, rate)
        return dict(enumerate(logs))


def _rate(epsilon: float, span: int) -> Decimal:
    """epsilon / range; range 0 means a uniform choice."""
    if span == 0:
        return Decimal(0)
    ratio = Fraction(epsilon) / int(span)
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def _exponential(scores: list[int], rate: Decimal) -> list[Decimal]:
    best = max(scores)
    gaps = [(best - score) * rate for score in scores]
    total = sum(((-gap).exp() for gap in gaps), Decimal(0)).ln()
    return [-gap - total for gap in gaps]


def _peeling(scores: list[int], rate: Decimal, k: int) -> Iterator[tuple[Any, Decimal]]:
    """Each ordered choice of k candidates, with its log-probability."""
    if k > len(scores):
        raise ValueError(f"k ({k}) must be at most the number of scores ({len(scores)}); pass less")
    if k == 0:
        yield (), Decimal(0)
        return
    for first, log in enumerate(_exponential(scores, rate)):
        left = [i for i in range(len(scores)) if i != first]
        for rest, more in _peeling([scores[i] for i in left], rate, k - 1):
            yield (first, *(left[i] for i in rest)), log + more


def _permute_and_flip(scores: list[int], rate: Decimal) -> list[Decimal]:
    """Let candidates arrive at uniform times, and stop at the first that wins its flip.

    At time t each other candidate has arrived and lost, or has not arrived, with probability
    1 - t f, f its chance to win. So P(i) = f_i times the integral of prod(1 - t f_j) over t.
    """
    if len(scores) > 64:
        raise ValueError(f"scores ({len(scores)}) must be at most 64 here; pass fewer candidates")
    best = max(scores)
    gaps = [(best - score) * rate for score in scores]
    wins = [(-gap).exp() for gap in gaps]
    logs = []
    for i, gap in enumerate(gaps):
        product = [Decimal(1)]  # coefficients of a polynomial in t
        for win in wins[:i] + wins[i + 1 :]:
            shifted = [Decimal(0), *(-win * c for c in product)]
            product = [a + b for a, b in zip([*product, Decimal(0)], shifted, strict=True)]
        integral = sum((c / (power + 1) for power, c in enumerate(product)), Decimal(0))
        logs.append(integral.ln() - gap)
    return logs


def _noisy_max(scores: list[int], rate: Decimal) -> list[Decimal]:
    """Sum over the noise of the winner: those before it must stay below, those after may tie."""
    spread = max(scores) - min(scores)
    reach = int(100 / rate) + 2  # the tails left out are below e^-100 of what is summed
    if spread + 2 * reach > TERMS:
        raise ValueError(
            f"epsilon / range ({float(rate):.3g}) must not be so small beside the scores here; "
            "pass a larger epsilon or scores that differ less"
        )
    q = (-rate).exp()
    powers = [Decimal(1)]
    for _ in range(2 * (spread + reach) + 2):
        powers.append(powers[-1] * q)

    def at_most(t: int) -> Decimal:
        return 1 - powers[t + 1] / (1 + q) if t >= 0 else powers[-t] / (1 + q)

    logs = []
    for i, score in enumerate(scores):
        total = Decimal(0)
        for noise in range(-reach, spread + reach + 1):
            term = powers[abs(noise)] * (1 - q) / (1 + q)
            for j, other in enumerate(scores):
                if j != i:
                    term *= at_most(score + noise - other - (j < i))
            total += term
        logs.append(total.ln())
    return logs


# --------------------------------------------------------------------------------------- white box


class Scored(Protocol):
    """What is asked of an objective: integer scores of candidates, and how far one record counts.

    A data-free part `prior(P)` is added if the objective has one.
    """

    def scores(self, P: Any, /) -> Integers:
        """int64 (m,)."""

    def range(self, P: Any, adjacency: str, /) -> int:
        """The range of these candidates between neighbours, from public things alone."""


@dataclass(frozen=True)
class Neighbours:
    """Data sets over a public domain, as tuples of record numbers, and which are neighbours."""

    data_sets: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SelectionAudit:
    """What the neighbours of a small public domain can learn from a selection.

    Attributes
    ----------
    epsilon : float
        What the mechanism declares for a call.
    log_ratio : float
        The largest abs(ln P/P') of an outcome: the smallest epsilon that is true here.
    log_range : float
        The largest max - min of ln P/P' over outcomes: the smallest bounded range that is true
        here.
    bounded_range : bool
        Whether the mechanism declares bounded range, as a single exponential mechanism does. (The
        k rounds of `TopK` each do, and together have a ratio of at most their sum; but where in its
        interval a later ratio lies depends on the choices before it.)
    pairs : int
        How many pairs of neighbours were compared.
    worst : (tuple, tuple)
        The two data sets with the largest log range, as record numbers (or numbers of tables).
    """

    epsilon: float
    log_ratio: float
    log_range: float
    bounded_range: bool
    pairs: int
    worst: tuple[Any, Any]

    def passes(self, epsilon: float | None = None) -> bool:
        """Whether a guarantee holds on all pairs: the declared one, or another epsilon."""
        promised = (self.epsilon if epsilon is None else epsilon) * (1 + TOLERANCE)
        return self.log_ratio <= promised and (not self.bounded_range or self.log_range <= promised)


def neighbours(n_records: int, n: int, adjacency: str = "replace") -> Neighbours:
    """All neighbouring data sets of a domain of `n_records` possible records.

    'replace': all multisets of n records, paired where one record differs. 'add_remove': those of n
    and n + 1 records, paired where one is added.
    """
    for name, value in (("n_records", n_records), ("n", n)):
        if not is_whole(value) or value < 1:
            raise ValueError(f"{name} ({value!r}) must be a positive whole number; pass {name}=2")
    if adjacency not in ("replace", "add_remove"):
        raise ValueError(
            f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )

    def multisets(size: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations_with_replacement(range(n_records), size)

    sizes = (n,) if adjacency == "replace" else (n, n + 1)
    data_sets = tuple(itertools.chain.from_iterable(map(multisets, sizes)))
    number = {data_set: i for i, data_set in enumerate(data_sets)}

    def with_record(data_set: tuple[int, ...], t: int) -> int:
        return number[tuple(sorted((*data_set, t)))]

    if adjacency == "add_remove":
        pairs = tuple(
            (number[D], with_record(D, t)) for D in multisets(n) for t in range(n_records)
        )
    else:
        pairs = tuple(
            (with_record(rest, t), with_record(rest, other))
            for rest in multisets(n - 1)
            for t, other in itertools.combinations(range(n_records), 2)
        )
    return Neighbours(data_sets, pairs)


def audit_scores(
    tables: Sequence[ArrayLike], pairs: Iterable[tuple[int, int]], mechanism: Selection
) -> SelectionAudit:
    """Compare the exact output distributions of a selection on pairs of score vectors.

    tables : integer scores (m,) of each data set
    pairs : which of them are neighbours
    mechanism : the selection, with the epsilon and range that it will be run with
    """
    # A distribution depends on scores less the best one: many data sets share it.
    rows = [tuple(int(v) for v in np.asarray(table).tolist()) for table in tables]
    shifted = [tuple(v - max(row) for v in row) for row in rows]
    known: dict[tuple[int, ...], list[Decimal]] = {}
    for row in shifted:
        if row not in known:
            known[row] = list(output_distribution(mechanism, row).values())
    ratio, widest = Decimal(0), Decimal(0)
    worst: tuple[Any, Any] = (0, 0)
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    count = 0
    with decimal.localcontext(_CONTEXT):
        for a, b in pairs:
            count += 1
            if len(rows[a]) != len(rows[b]):
                raise ValueError(
                    f"tables {a} and {b} must hold the same candidates; pass scores of equal length"
                )
            if shifted[a] == shifted[b] or (shifted[a], shifted[b]) in seen:
                continue
            seen.add((shifted[a], shifted[b]))
            logs = [p - q for p, q in zip(known[shifted[a]], known[shifted[b]], strict=True)]
            ratio = max(ratio, *map(abs, logs))
            if max(logs) - min(logs) > widest:
                widest, worst = max(logs) - min(logs), (a, b)
    event = mechanism.event
    return SelectionAudit(
        epsilon=event.parameter * event.count,
        log_ratio=float(ratio),
        log_range=float(widest),
        bounded_range=event.kind == "selection" and event.count == 1,
        pairs=count,
        worst=worst,
    )


def audit_selection(
    make_objective: Callable[[list[Any]], Scored],
    records: Sequence[Any],
    n: int,
    P: Any,
    adjacency: str = "replace",
    *,
    mechanism: Callable[[int], Selection] | None = None,
) -> SelectionAudit:
    """Audit an objective and its own `range` on all neighbours over a small public domain.

    Parameters
    ----------
    make_objective : callable (list of records) -> objective
        Something with `scores(P)` and `range(P, adjacency)`; any of privfit's objectives will do.
    records : sequence
        Every possible record, or those at the corners of the domain. Data sets are multisets.
    n : int
        Records of a data set; there are C(len(records) + n - 1, n) data sets.
    P : candidates
        As the objective takes them.
    adjacency : str
        'replace' or 'add_remove'.
    mechanism : callable (range) -> selection, optional
        What selects; by default the exponential mechanism with epsilon = 1.

    A report that passes proves that `range` is large enough for these records, n and candidates.

    >>> import numpy as np
    >>> from privfit import Box, LinearObjective
    >>> domain = Box(-1, 1, 1)
    >>> def make(rows):
    ...     return LinearObjective([[x] for x, y in rows], [y for x, y in rows], "zero_one", domain)
    >>> records = [(x, y) for x in (-1.0, 0.0, 1.0) for y in (0, 1)]
    >>> audit_selection(make, records, 2, np.array([[1.0, 0.0], [-1.0, 0.5]])).passes()
    True
    """
    found = neighbours(len(records), n, adjacency)
    objectives = [make_objective([records[i] for i in D]) for D in found.data_sets]
    spans = {int(objective.range(P, adjacency)) for objective in objectives}
    if len(spans) > 1:
        raise ValueError(
            "range must be the same for all data sets, since a mechanism publishes it; compute it "
            "from the candidates and the public domain alone"
        )
    tables = [_with_prior(objective, P) for objective in objectives]
    selection = (mechanism or (lambda span: Exponential(1.0, span)))(spans.pop())
    report = audit_scores(tables, found.pairs, selection)
    first, second = (found.data_sets[i] for i in report.worst)
    return SelectionAudit(**{**vars(report), "worst": (first, second)})


def _with_prior(objective: Scored, P: Any) -> Integers:
    prior = getattr(objective, "prior", None)
    scores = np.asarray(objective.scores(P))
    return scores if prior is None else scores + np.asarray(prior(P))


# --------------------------------------------------------------------------------------- black box


@dataclass(frozen=True, repr=False)
class RunsAudit:
    """A certified lower bound on epsilon from runs on two neighbouring inputs.

    Attributes
    ----------
    lower_bound : float
        With the stated confidence no (epsilon, delta) guarantee with a smaller epsilon is true; at
        least 0.
    event : str
        What tells the inputs apart.
    favoured : 'first' or 'second'
        The input under which the event is more likely.
    likely, unlikely : float
        A lower bound on its probability there, and an upper bound under the other input.
    confidence, delta : float
    runs : int
        Runs of each input; half chose the event, half certified it.
    """

    lower_bound: float
    event: str
    favoured: str
    likely: float
    unlikely: float
    confidence: float
    delta: float
    runs: int

    def passes(self, epsilon: float) -> bool:
        """Whether nothing was found against (epsilon, delta)."""
        return self.lower_bound <= epsilon

    def __repr__(self) -> str:
        return (
            f"RunsAudit(epsilon >= {self.lower_bound:.4g} at delta {self.delta:g}, confidence "
            f"1 - {1 - self.confidence:.2g}: {self.event} has probability >= {self.likely:.4g} "
            f"for the {self.favoured} input, <= {self.unlikely:.4g} for the other; "
            f"{self.runs} runs each)"
        )


def audit_runs(
    run: Callable[[Any, Any], Any],
    first: Any,
    second: Any,
    *,
    runs: int = 100_000,
    confidence: float = 0.999,
    delta: float = 0.0,
    statistic: Callable[[Any], Any] | None = None,
    rng: Any = None,
) -> RunsAudit:
    """Run anything on two neighbouring inputs and bound its epsilon from below.

    Parameters
    ----------
    run : callable (input, rng) -> outcome
        A mechanism, a whole fit, or a function of your own. Outcomes are labels (anything that can
        be a key of a dict), numbers, or vectors of numbers.
    first : any
        What `run` is given.
    second : any
        A neighbour of it.
    runs : int
        Runs of each input.
    confidence : float
        0.999 for a report; 1 - 1e-6 for a test that must not raise a false alarm.
    delta : float
        The delta of the guarantee.
    statistic : callable (outcome) -> label or number, optional
        What to look at. By default the outcome itself; for vectors their projection on the
        difference of means, found on the first half of the runs.
    rng : optional
        Handed to each run: a `Generator` or `RandomState` as it is; otherwise a `BitSource`, from
        the operating system (None) or from an int seed, which every privfit mechanism takes.
    """
    _check_plan(runs, confidence, delta)
    if rng is None or (isinstance(rng, Integral) and not isinstance(rng, bool)):
        rng = BitSource(rng)
    look = statistic or (lambda outcome: outcome)
    outcomes = [[look(run(data, rng)) for _ in range(runs)] for data in (first, second)]
    return audit_outcomes(*outcomes, confidence=confidence, delta=delta)


def audit_outcomes(
    first: Sequence[Any] | NDArray[Any],
    second: Sequence[Any] | NDArray[Any],
    *,
    confidence: float = 0.999,
    delta: float = 0.0,
) -> RunsAudit:
    """As `audit_runs`, from outcomes already drawn: independent ones, equally many of each input.

    The event and the input it favours are chosen on the first half of the outcomes alone, so one
    event is certified; its two binomial bounds share the probability of an error.
    """
    runs = len(first)
    if len(second) != runs:
        raise ValueError(f"outcomes ({runs} and {len(second)}) must be equally many; pass as many")
    _check_plan(runs, confidence, delta)
    half, alpha = runs // 2, (1 - confidence) / 2
    samples = _Samples.of(first, second, half)
    best = max(_events(samples, alpha, delta), key=lambda event: event.score)
    seen = [int(best.holds(part).sum()) for part in samples.part(best.values, "certify")]
    if best.favoured == "second":
        seen.reverse()
    certifying = runs - half
    low = float(_low(np.array(seen[0]), certifying, alpha))
    high = float(_high(np.array(seen[1]), certifying, alpha))
    return RunsAudit(
        lower_bound=max(0.0, math.log((low - delta) / high)) if low > delta else 0.0,
        event=best.text,
        favoured=best.favoured,
        likely=low,
        unlikely=high,
        confidence=confidence,
        delta=delta,
        runs=runs,
    )


@dataclass(frozen=True)
class _Samples:
    """Outcomes as codes of labels and, if they are numbers, as numbers; each (2, runs)."""

    labels: list[Any]
    codes: Integers
    numbers: Floats | None
    half: int
    runs: int

    @classmethod
    def of(cls, first: Any, second: Any, half: int) -> _Samples:
        table = _vectors(first, second)
        if table is not None:  # project on the difference of means of the first half
            direction = table[0, :half].mean(axis=0) - table[1, :half].mean(axis=0)
            # One order of sums for every row, so that equal outcomes stay equal.
            projected = np.zeros(table.shape[:2])
            for column, weight in enumerate(direction):
                projected += table[..., column] * weight
            return cls([], np.zeros((2, 0), dtype=np.int64), projected, half, len(first))
        known: dict[Any, int] = {}
        try:
            codes = [[known.setdefault(x, len(known)) for x in _items(s)] for s in (first, second)]
        except TypeError:
            raise TypeError(
                "outcomes must be labels, numbers or vectors of one length; pass statistic=... "
                "that makes such of them"
            ) from None
        labels = list(known)
        values = np.array(labels) if all(_is_number(x) for x in labels) else None
        coded = np.array(codes, dtype=np.int64)
        numbers = None if values is None else values.astype(np.float64)[coded]
        return cls(labels, coded, numbers, half, len(first))

    def part(self, values: str, which: str) -> NDArray[Any]:
        """(2, r): a quarter of the runs to 'rank', a quarter to 'choose', the rest to 'certify'."""
        ends = (0, self.half // 2, self.half, None)
        first = ("rank", "choose", "certify").index(which)
        return getattr(self, values)[:, slice(ends[first], ends[first + 1])]


@dataclass(frozen=True)
class _Event:
    """An event, the input under which it is likelier, and the bound it gave on the first half."""

    score: float
    favoured: str
    text: str
    values: str  # 'codes' or 'numbers'
    holds: Callable[[NDArray[Any]], NDArray[np.bool_]]


def _events(samples: _Samples, alpha: float, delta: float) -> Iterator[_Event]:
    """The best event of each kind and direction; the last resort is no event.

    Labels are ranked and cuts are placed on the first quarter of the runs, and scored on the second
    by the bound that they promise: a long list of labels that were seen by chance scores low.
    """
    n = samples.runs - samples.half
    for favoured, order in (("first", [0, 1]), ("second", [1, 0])):
        if samples.codes.size:
            rank, choose = (samples.part("codes", part)[order] for part in ("rank", "choose"))
            yield from _label_events(rank, choose, samples.labels, favoured, n, alpha, delta)
        if samples.numbers is not None:
            rank, choose = (samples.part("numbers", part)[order] for part in ("rank", "choose"))
            yield from _threshold_events(rank, choose, favoured, n, alpha, delta)
    values = "codes" if samples.numbers is None else "numbers"
    yield _Event(-math.inf, "first", "any outcome", values, lambda part: np.full(part.shape, True))


def _label_events(
    rank: Integers, choose: Integers, labels: list[Any], favoured: str,
    n: int, alpha: float, delta: float,
) -> Iterator[_Event]:  # fmt: skip
    """The labels with the largest ratios of probabilities, as many as give the best bound."""
    likely, other = (np.bincount(codes, minlength=len(labels)) for codes in rank)
    ranked = np.argsort(-(likely + 0.5) / (other + 0.5), kind="stable")
    ranked = ranked[(likely + other)[ranked] >= RARE]
    if ranked.size:
        hits, misses = (
            np.cumsum(np.bincount(codes, minlength=len(labels))[ranked]) for codes in choose
        )
        scores = _promised(hits, misses, choose.shape[1], n, alpha, delta)
        chosen = ranked[: int(scores.argmax()) + 1]
        text = _label_text(labels, chosen)
        yield _Event(
            float(scores.max()), favoured, text, "codes", lambda part: np.isin(part, chosen)
        )


def _threshold_events(
    rank: Floats, choose: Floats, favoured: str, n: int, alpha: float, delta: float
) -> Iterator[_Event]:
    """The best upper and the best lower tail, among cuts at quantiles."""
    pooled = np.sort(rank, axis=None)
    cuts = np.unique(pooled[np.linspace(0, pooled.size - 1, THRESHOLDS).astype(np.int64)])
    likely, other = np.sort(choose, axis=1)
    size = likely.size
    hits, misses = (size - np.searchsorted(row, cuts, side="left") for row in (likely, other))
    scores = _promised(hits, misses, size, n, alpha, delta)
    least = float(cuts[scores.argmax()])
    text = f"outcome >= {least:.6g}"
    yield _Event(float(scores.max()), favoured, text, "numbers", lambda part: part >= least)
    hits, misses = (np.searchsorted(row, cuts, side="right") for row in (likely, other))
    scores = _promised(hits, misses, size, n, alpha, delta)
    most = float(cuts[scores.argmax()])
    text = f"outcome <= {most:.6g}"
    yield _Event(float(scores.max()), favoured, text, "numbers", lambda part: part <= most)


def _label_text(labels: list[Any], chosen: Integers) -> str:
    shown = ", ".join(repr(labels[i]) for i in sorted(chosen.tolist())[:6])
    return f"outcome in {{{shown}{', ...' if len(chosen) > 6 else ''}}}"


def _promised(
    hits: NDArray[Any], misses: NDArray[Any], size: int, n: int, alpha: float, delta: float
) -> Floats:
    """ln((low - delta) / high) if n runs show the events as often; -inf where low <= delta."""
    low = _low(hits * (n / size), n, alpha) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > 0, np.log(low / _high(misses * (n / size), n, alpha)), -np.inf)


def _low(count: NDArray[Any], n: int, alpha: float) -> Floats:
    """Clopper-Pearson: p is at least this with confidence 1 - alpha."""
    inverse = scipy.special.betaincinv(np.where(count > 0, count, 1), n - count + 1.0, alpha)
    return np.where(count > 0, inverse, 0.0)


def _high(count: NDArray[Any], n: int, alpha: float) -> Floats:
    """Clopper-Pearson: p is at most this with confidence 1 - alpha."""
    return 1 - _low(n - count, n, alpha)


def _vectors(first: Any, second: Any) -> Floats | None:
    """Outcomes as (2, runs, d) if they are arrays or lists of numbers of one length."""
    for sample in (first, second):
        if np.ndim(sample[0]) == 0 or isinstance(sample[0], tuple):
            return None
    try:
        table = np.array([np.asarray(first), np.asarray(second)], dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return table.reshape(*table.shape[:2], -1)


def _items(sample: Any) -> Iterable[Any]:
    return sample.tolist() if isinstance(sample, np.ndarray) else sample


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or is_finite(value)


def _check_plan(runs: Any, confidence: Any, delta: Any) -> None:
    if not is_whole(runs) or runs < 4:
        raise ValueError(f"runs ({runs!r}) must be a whole number from 4 on; pass runs=100_000")
    if not is_finite(confidence) or not 0 < confidence < 1:
        raise ValueError(
            f"confidence ({confidence!r}) must lie between 0 and 1; pass confidence=0.999"
        )
    if not is_finite(delta) or not 0 <= delta < 1:
        raise ValueError(f"delta ({delta!r}) must be at least 0 and below 1; pass delta=0.0")


# ----------------------------------------------------------------------------------------- canary


@dataclass(frozen=True)
class Canary:
    """Two neighbouring score vectors that are as hard on a selection as any with this range."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    range: int


def canary(adjacency: str = "replace", candidates: int = 20) -> Canary:
    """A worst pair for selections: one record helps candidate 0, the other all the rest.

    Under 'replace' the one takes the other's place (range 2); under 'add_remove' the first is
    there or not (range 1). With 20 candidates the log ratio of choosing candidate 0 comes within
    6 % of epsilon at epsilon = 1: 0.95, and 0.095 at 0.1.
    """
    if not is_whole(candidates) or candidates < 2:
        raise ValueError(f"candidates ({candidates!r}) must be at least 2; pass candidates=20")
    if adjacency not in ("replace", "add_remove"):
        raise ValueError(
            f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )
    helped = (1, *[0] * (candidates - 1))
    if adjacency == "add_remove":
        return Canary(helped, (0,) * candidates, 1)
    return Canary(helped, (0, *[1] * (candidates - 1)), 2)
