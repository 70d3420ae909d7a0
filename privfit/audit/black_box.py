"""Black box: runs on two neighbouring inputs, and an event that distinguishes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole

__all__ = ["RunsAudit", "audit_outcomes", "audit_runs"]


RARE = 20  # labels seen less often than this are no events of their own
THRESHOLDS = 512


@dataclass(frozen=True, repr=False)
class RunsAudit:
    """A certified lower bound on epsilon from runs on two neighbouring inputs.

    Parameters
    ----------
    lower_bound : float
        With the stated confidence no (epsilon, delta) guarantee with a smaller epsilon is true; at
        least 0.
    event : str
        What distinguishes the inputs.
    favoured : {'first', 'second'}
        The input under which the event is more likely.
    likely, unlikely : float
        A lower bound on its probability there, and an upper bound under the other input.
    confidence : float
        The confidence of the bound.
    delta : float
        The delta of the guarantee.
    runs : int
        Number of runs of each input; half chose the event, half certified it.

    See Also
    --------
    audit_runs, audit_outcomes : Return it.

    Examples
    --------
    >>> from privfit.audit import audit_outcomes
    >>> found = audit_outcomes([0] * 1000, [1] * 1000)  # outcomes that reveal the input
    >>> found.passes(1.0)
    False
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
        """Whether no evidence against (epsilon, delta) was found.

        Parameters
        ----------
        epsilon : float
            The claimed epsilon.

        Returns
        -------
        bool
            False if the claim is refuted with the stated confidence.
        """
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
        A mechanism, a whole fit, or a user-defined function. Outcomes are labels (anything that can
        be a key of a dict), numbers, or vectors of numbers.
    first : object
        An input of `run`. It must be made up or public.
    second : object
        A neighbour of it.
    runs : int, default=100000
        Number of runs of each input.
    confidence : float, default=0.999
        Confidence of the bound: 0.999 for a report; 1 - 1e-6 for a test that must not raise a false
        alarm.
    delta : float, default=0.0
        The delta of the guarantee.
    statistic : callable (outcome) -> label or number, optional
        What to look at. By default the outcome itself; for vectors their projection on the
        difference of means, computed from the first half of the runs.
    rng : None, int, numpy.random.Generator or RandomState, default=None
        Passed to each run: a `Generator` or `RandomState` unchanged; otherwise a `BitSource`, from
        the operating system (None) or from an int seed, which every privfit mechanism takes.

    Returns
    -------
    RunsAudit
        The certified lower bound, and the event behind it.

    See Also
    --------
    audit_outcomes : The same for outcomes already drawn.
    one_run : Many canaries in one run.

    References
    ----------
    C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika, 1934.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.audit import audit_runs
    >>> def noisy_count(count, rng):  # claimed to be 1-DP
    ...     return count + rng.laplace(scale=0.5)
    >>> found = audit_runs(noisy_count, 10, 11, runs=20_000, rng=np.random.default_rng(0))
    >>> found.passes(1.0)
    False
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
    """Bound epsilon from below by outcomes already drawn.

    The event and the input it favours are chosen on the first half of the outcomes alone, so one
    event is certified; its two binomial bounds share the probability of an error.

    Parameters
    ----------
    first, second : sequence of labels, numbers or vectors
        Independent outcomes of two neighbouring inputs, equally many of each.
    confidence : float, default=0.999
        Confidence of the bound.
    delta : float, default=0.0
        The delta of the guarantee.

    Returns
    -------
    RunsAudit
        The certified lower bound, and the event behind it.

    See Also
    --------
    audit_runs : Draws the outcomes, too.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.audit import audit_outcomes
    >>> coins = np.random.default_rng(0)
    >>> first, second = coins.laplace([[0], [1]], 2.0, (2, 10_000))  # 0.5-DP
    >>> audit_outcomes(first, second).passes(0.5)
    True
    """
    runs = len(first)
    if len(second) != runs:
        raise DeclarationError(
            f"outcomes ({runs} and {len(second)}) must be equally many; pass the same number of "
            f"each"
        )
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
            raise DeclarationTypeError(
                "outcomes must be labels, numbers or vectors of one length; pass statistic=... "
                "that returns one of these"
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
    """An event, the input under which it is more likely, and its bound on the first half."""

    score: float
    favoured: str
    text: str
    values: str  # 'codes' or 'numbers'
    holds: Callable[[NDArray[Any]], NDArray[np.bool_]]


def _events(samples: _Samples, alpha: float, delta: float) -> Iterator[_Event]:
    """The best event of each kind and direction; as a last resort no event.

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
    """ln((low - delta) / high) if n runs show the events as often; -inf if low <= delta."""
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
        raise DeclarationError(
            f"runs ({runs!r}) must be a whole number of at least 4; pass runs=100_000"
        )
    if not is_finite(confidence) or not 0 < confidence < 1:
        raise DeclarationError(
            f"confidence ({confidence!r}) must lie between 0 and 1; pass confidence=0.999"
        )
    if not is_finite(delta) or not 0 <= delta < 1:
        raise DeclarationError(f"delta ({delta!r}) must be at least 0 and below 1; pass delta=0.0")
