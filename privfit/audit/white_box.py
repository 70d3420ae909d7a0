"""White box: the exact distribution of a selection on all neighbours of a small public domain."""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Integers
from privfit.base.validation import is_whole
from privfit.privacy.mechanisms import Exponential, NoisyMax, PermuteAndFlip, TopK
from privfit.privacy.neighbours import Neighbours as Relation

__all__ = [
    "Canary",
    "Neighbours",
    "SelectionAudit",
    "audit_scores",
    "audit_selection",
    "canary",
    "neighbours",
    "output_distribution",
]

Selection: TypeAlias = Exponential | TopK | PermuteAndFlip | NoisyMax
Distribution: TypeAlias = dict[Any, Decimal]  # log-probability of each outcome

TOLERANCE = 1e-12  # relative, on epsilon: far above the errors here, far below any mistake
TERMS = 200_000  # of the sums behind report-noisy-max

# Scores differ by less than 2^64 and probabilities are sums of less than 2^64 terms: of 80 digits,
# 40 are lost at worst. The exponents are the widest that every platform has.
_CONTEXT = decimal.Context(
    prec=80, Emin=-425_000_000, Emax=425_000_000, rounding=decimal.ROUND_HALF_EVEN, traps=[]
)


# ----------------------------------------------------------------------------- exact distributions


def output_distribution(mechanism: Selection, scores: ArrayLike) -> Distribution:
    """The log-probability of every outcome of a selection, with an absolute error below 1e-30.

    Outcomes are candidates, or tuples of k candidates for `TopK`. The rate is epsilon / range as
    declared; the sampler's own is smaller by less than one part in 2^31. The work grows as m log m,
    m^k, m^3 and m^2 range / epsilon for the exponential mechanism, `TopK`, permute-and-flip (m at
    most 64) and report-noisy-max.

    Parameters
    ----------
    mechanism : Exponential, TopK, PermuteAndFlip or NoisyMax
        The selection.
    scores : array-like of int of shape (m,)
        The scores.

    Returns
    -------
    dict
        The log-probability of each outcome.

    See Also
    --------
    audit_scores : Compares distributions of neighbours.

    Examples
    --------
    >>> from privfit import Exponential
    >>> from privfit.audit import output_distribution
    >>> law = output_distribution(Exponential(epsilon=1.0, range=1), [0, 1])
    >>> float(law[1] - law[0])
    1.0
    """
    values = [int(score) for score in np.asarray(scores).tolist()]
    if not values:
        raise DeclarationError("scores must hold at least one candidate; pass integers (m,)")
    with decimal.localcontext(_CONTEXT):
        if isinstance(mechanism, TopK):
            rate = _rate(mechanism.epsilon_each, mechanism.range)
            return dict(_peeling(values, rate, mechanism.k))
        if not isinstance(mechanism, Exponential | PermuteAndFlip | NoisyMax):
            raise DeclarationTypeError(
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
    """epsilon / range; a range of 0 means a uniform choice."""
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
        raise DeclarationError(
            f"k ({k}) must be at most the number of scores ({len(scores)}); pass less"
        )
    if k == 0:
        yield (), Decimal(0)
        return
    for first, log in enumerate(_exponential(scores, rate)):
        left = [i for i in range(len(scores)) if i != first]
        for rest, more in _peeling([scores[i] for i in left], rate, k - 1):
            yield (first, *(left[i] for i in rest)), log + more


def _permute_and_flip(scores: list[int], rate: Decimal) -> list[Decimal]:
    """Let candidates arrive at uniform times, and stop at the first that wins its flip.

    At time t each other candidate has arrived and lost, or has not arrived, with probability 1 - t
    f, f its probability of winning. So P(i) = f_i times the integral of prod(1 - t f_j) over t.
    """
    if len(scores) > 64:
        raise DeclarationError(
            f"scores ({len(scores)}) must be at most 64 here; pass fewer candidates"
        )
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
        raise DeclarationError(
            f"epsilon / range ({float(rate):.3g}) is too small for these scores; pass a larger "
            f"epsilon or scores that differ less"
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
    """What an objective needs: integer scores of candidates, and their range between neighbours.

    A data-free part `prior(P)` is added if the objective has one.
    """

    def scores(self, P: Any, /) -> Integers:
        """int64 (m,)."""

    def range(self, P: Any, neighbours: Relation, /) -> int:
        """The range of these candidates between neighbours, from public things alone."""


@dataclass(frozen=True)
class Neighbours:
    """Data sets over a public domain, as tuples of record numbers, and the neighbouring pairs.

    Parameters
    ----------
    data_sets : tuple of tuple of int
        The data sets.
    pairs : tuple of tuple of int
        Positions of neighbouring data sets.

    See Also
    --------
    neighbours : Enumerates them.

    Examples
    --------
    >>> from privfit.audit import neighbours
    >>> neighbours(2, 1).pairs
    ((0, 1),)
    """

    data_sets: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SelectionAudit:
    """What the neighbours of a small public domain reveal about a selection.

    Parameters
    ----------
    epsilon : float
        The epsilon that the mechanism declares for a call.
    log_ratio : float
        The largest abs(ln P/P') of an outcome: the smallest epsilon that is true here.
    log_range : float
        The largest max - min of ln P/P' over outcomes: the smallest bounded range that is true
        here.
    bounded_range : bool
        Whether the mechanism declares bounded range, as a single exponential mechanism does.
        The k rounds of `TopK` each do, and together have a ratio of at most their sum; but where in
        its interval a later ratio is depends on the choices before it.
    pairs : int
        Number of pairs of neighbours that were compared.
    worst : tuple
        The two data sets with the largest log range, as record numbers (or numbers of tables).

    See Also
    --------
    audit_selection, audit_scores : Return it.

    Examples
    --------
    >>> from privfit import Exponential
    >>> from privfit.audit import audit_scores
    >>> audit_scores([[0, 0], [0, 2]], [(0, 1)], Exponential(epsilon=1.0, range=1)).passes()
    False
    """

    epsilon: float
    log_ratio: float
    log_range: float
    bounded_range: bool
    pairs: int
    worst: tuple[Any, Any]

    def passes(self, epsilon: float | None = None) -> bool:
        """Whether a guarantee holds on all pairs.

        Parameters
        ----------
        epsilon : float or None, default=None
            The guarantee; by default the declared one.

        Returns
        -------
        bool
            True if it holds on all pairs.
        """
        promised = (self.epsilon if epsilon is None else epsilon) * (1 + TOLERANCE)
        return self.log_ratio <= promised and (not self.bounded_range or self.log_range <= promised)


def neighbours(n_records: int, n: int, adjacency: Relation | str = "replace") -> Neighbours:
    """Enumerate all neighbouring data sets of a small domain.

    Parameters
    ----------
    n_records : int
        Number of possible records.
    n : int
        Number of records in a data set.
    adjacency : {'replace', 'add_remove'}, default='replace'
        With 'replace' all multisets of n records, paired if one record differs; with 'add_remove'
        those of n and n + 1 records, paired if one is added.

    Returns
    -------
    Neighbours
        The data sets and pairs.

    See Also
    --------
    audit_selection : Audits an objective on them.

    Examples
    --------
    >>> from privfit.audit import neighbours
    >>> len(neighbours(3, 2).data_sets)
    6
    """
    for name, value in (("n_records", n_records), ("n", n)):
        if not is_whole(value) or value < 1:
            raise DeclarationError(
                f"{name} ({value!r}) must be a positive whole number; pass {name}=2"
            )
    replaces = Relation.of(adjacency).replaces

    def multisets(size: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations_with_replacement(range(n_records), size)

    sizes = (n,) if replaces else (n, n + 1)
    data_sets = tuple(itertools.chain.from_iterable(map(multisets, sizes)))
    number = {data_set: i for i, data_set in enumerate(data_sets)}

    def with_record(data_set: tuple[int, ...], t: int) -> int:
        return number[tuple(sorted((*data_set, t)))]

    if replaces:
        pairs = tuple(
            (with_record(rest, t), with_record(rest, other))
            for rest in multisets(n - 1)
            for t, other in itertools.combinations(range(n_records), 2)
        )
    else:
        pairs = tuple(
            (number[D], with_record(D, t)) for D in multisets(n) for t in range(n_records)
        )
    return Neighbours(data_sets, pairs)


def audit_scores(
    tables: Sequence[ArrayLike], pairs: Iterable[tuple[int, int]], mechanism: Selection
) -> SelectionAudit:
    """Compare the exact output distributions of a selection on pairs of score vectors.

    Parameters
    ----------
    tables : sequence of array-like of int of shape (m,)
        The scores on each data set.
    pairs : iterable of (int, int)
        Which data sets are neighbours.
    mechanism : Exponential, TopK, PermuteAndFlip or NoisyMax
        The selection, with the epsilon and range that it will be run with.

    Returns
    -------
    SelectionAudit
        The largest ratios.

    See Also
    --------
    audit_selection : Computes the scores, too.

    Examples
    --------
    >>> from privfit import Exponential
    >>> from privfit.audit import audit_scores
    >>> audit_scores([[0, 0], [0, 1]], [(0, 1)], Exponential(epsilon=1.0, range=1)).passes()
    True
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
                raise DeclarationError(
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
    adjacency: Relation | str = "replace",
    *,
    mechanism: Callable[[int], Selection] | None = None,
) -> SelectionAudit:
    """Audit an objective and its own `range` on all neighbours over a small public domain.

    Parameters
    ----------
    make_objective : callable (list of records) -> objective
        Returns an object with `scores(P)` and `range(P, neighbours)`, such as privfit's objectives.
    records : sequence
        Every possible record, or those at the corners of the domain. Data sets are multisets.
    n : int
        Number of records in a data set; there are C(len(records) + n - 1, n) data sets.
    P : array
        Candidates, as the objective takes them.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation; `range` is passed its value, a `privfit.Neighbours`.
    mechanism : callable (range) -> selection, optional
        Makes the selection; by default the exponential mechanism with epsilon = 1.

    Returns
    -------
    SelectionAudit
        A report that passes proves that `range` is large enough for these records, n and
        candidates.

    See Also
    --------
    audit_scores : The same for given scores.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Box, LinearObjective
    >>> from privfit.audit import audit_selection
    >>> domain = Box(-1, 1, 1)
    >>> def make(rows):
    ...     return LinearObjective([[x] for x, y in rows], [y for x, y in rows], "zero_one", domain)
    >>> records = [(x, y) for x in (-1.0, 0.0, 1.0) for y in (0, 1)]
    >>> audit_selection(make, records, 2, np.array([[1.0, 0.0], [-1.0, 0.5]])).passes()
    True
    """
    relation = Relation.of(adjacency)
    found = neighbours(len(records), n, relation)
    objectives = [make_objective([records[i] for i in D]) for D in found.data_sets]
    spans = {int(objective.range(P, relation)) for objective in objectives}
    if len(spans) > 1:
        raise DeclarationError(
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


# ----------------------------------------------------------------------------------------- canary


@dataclass(frozen=True)
class Canary:
    """Two neighbouring score vectors that are as hard on a selection as any with this range.

    Parameters
    ----------
    first, second : array of int
        The scores on two neighbouring data sets.
    range : int
        The range of the scores.

    See Also
    --------
    canary : Makes one.

    Examples
    --------
    >>> from privfit.audit import canary
    >>> canary("replace").range
    2
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    range: int


def canary(adjacency: Relation | str = "replace", candidates: int = 20) -> Canary:
    """A worst pair for selections: one record helps candidate 0, the other all the rest.

    With 20 candidates the log ratio of choosing candidate 0 is within 6 % of epsilon at epsilon =
    1: 0.95, and 0.095 at 0.1.

    Parameters
    ----------
    adjacency : {'replace', 'add_remove'}, default='replace'
        With 'replace' one record takes the other's place (range 2); with 'add_remove' the first is
        there or not (range 1).
    candidates : int, default=20
        Number of candidates.

    Returns
    -------
    Canary
        The two score vectors, and their range.

    See Also
    --------
    audit_runs : Runs a selection on both.

    Examples
    --------
    >>> from privfit.audit import canary
    >>> canary("add_remove", candidates=3)
    Canary(first=(1, 0, 0), second=(0, 0, 0), range=1)
    """
    if not is_whole(candidates) or candidates < 2:
        raise DeclarationError(
            f"candidates ({candidates!r}) must be at least 2; pass candidates=20"
        )
    relation, helped = Relation.of(adjacency), (1, *[0] * (candidates - 1))
    other = (0, *[1] * (candidates - 1)) if relation.replaces else (0,) * candidates
    return Canary(helped, other, relation.changes)
