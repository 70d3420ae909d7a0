"""Private k-median over public facilities: searches, and synopses that are clustered for free.

Each search takes a `FacilityObjective` and the space ``Subsets(f, k)``:

=============  =================================================================================
`Greedy`       adds one facility at a time: k selections among all additions; or twice as many, of
               which k are kept by their noisy counts
`Swaps`        swaps one facility at a time: T selections among all swaps, and one among the sets
               visited (Gupta, Ligett, McSherry, Roth, Talwar, 2010)
`Coreset`      selects places that cover many records at several radii, counts the records nearest
               to each, and clusters the weighted places (Jones, Nguyen, Nguyen, 2021)
`Synopsis`     partitions the space where there are many records (`partition`), counts, and
               clusters the weighted parts; for records with few columns
=============  =================================================================================

The last two use the records only before the clustering, which is free: it sees released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.base import blas
from privfit.base.cautions import old_names
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.objectives import FacilityObjective
from privfit.objectives.common import MOST_SUM
from privfit.objectives.facility import FacilityGrowth
from privfit.privacy.accounting import Event, calibrate, compose
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteLaplace, Exponential
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import Partition, check_depth
from privfit.privacy.remainder import beside_selections
from privfit.runs.paths import Path
from privfit.runs.payment import Paid
from privfit.runs.run import Run, Task
from privfit.runs.settings import (
    Blank,
    Search,
    Settings,
    check_counts,
    check_shares,
    check_split,
)
from privfit.runs.sizes import known_size
from privfit.runs.spaces import Subsets
from privfit.searches.dpsga import DPSGA
from privfit.searches.privgene import EEM, Local, PrivGene
from privfit.searches.subsample import Subsample

__all__ = [
    "METHODS",
    "Coreset",
    "Greedy",
    "Swaps",
    "Synopsis",
    "Weighted",
    "private_cost",
    "weighted_kmedian",
]

SOME = 256  # facilities among which a record's distances are ranked
LEVELS = 64  # of distances that a bound may take
RADII = 3  # of a coreset
COUNTED = 0.2  # of the budget, for the counts of more facilities than are kept


# ------------------------------------------------------------------------------------------ greedy


@dataclass(frozen=True, repr=False)
class Greedy(Search):
    """Settings of adding one facility at a time, for the parameter `solver`.

    Parameters
    ----------
    focus : float, optional
        Fraction of the budget that finds which distances matter; 0 for none.
    swaps : int, optional
        Number of selections among all swaps after the k additions.
    seeds : int, optional
        Number of facilities added for each one that is kept. With more than one, the records
        nearest to each are counted, and k facilities are kept that serve these counts best.

    See Also
    --------
    Swaps : Swaps only.
    KMedian : The estimator that takes these settings.

    Notes
    -----
    Released: two bounds, then the facilities in the order they were added. Cost: two selections for
    the bounds, k for the facilities and one for each swap, which together cost the budget of the
    fit. With seeds, that many times k selections, and one noisy vector of counts.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Greedy, KMedian
    >>> people = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    >>> places = np.random.default_rng(1).uniform(0, 1, (30, 2))  # public
    >>> model = KMedian(3, epsilon=1.0, facilities=places, clip=(0, 2), solver=Greedy(swaps=2))
    >>> model.fit(people).cluster_centers_.shape
    (3, 2)
    """

    takes: ClassVar[type[FacilityObjective]] = FacilityObjective
    unlisted: ClassVar[tuple[str, ...]] = ("seeds",)

    focus: float = 0.1
    swaps: int = 0
    seeds: int | None = None

    def __post_init__(self) -> None:
        check_shares(self, "focus")
        if self.focus == 1:
            raise DeclarationError("focus (1.0) must leave a budget for selections; pass focus=0.1")
        if self.swaps != 0:
            check_counts(self, "swaps")
        check_counts(self, "seeds")

    def __call__(self, run: Run[FacilityObjective, Subsets]) -> Path:
        """Select the facility whose addition lowers the cost most, k times.

        Released: two bounds, then the facilities in the order they were added. Cost: two selections
        for the bounds, k for the facilities and one for each swap; together the grant's budget. The
        range of additions to a set C is the largest distance of a candidate from C, or hi - lo if
        that is less: see `FacilityGrowth.range`. It shrinks as C grows, and `focus` narrows hi - lo
        before.
        """
        objective, space = run.objective, run.space
        if self.seeds is not None:
            return self._over_seeded(run)
        total = space.k + self.swaps
        if self.focus and objective.largest:
            eps_s, eps_f = _split(run, 1 - self.focus, total, 2, "selection")
            objective = _focus(run, eps_f)
        else:
            eps_s = run.plan("selection", total)
            run.note(selections=total, eps_s=eps_s, focus=0.0)
        growth = objective.growth()
        for size in range(1, space.k + 1):
            _add(run, growth, eps_s)
            run.report(growth.members[None], whole=size == space.k)
        if self.swaps:
            _swap(run, objective, growth.members, self.swaps, eps_s)
        return run.path()

    def _over_seeded(self, run: Run[FacilityObjective, Subsets]) -> Path:
        """Add more facilities than are kept, count the records nearest to each, keep k, swap.

        The bounds and the additions are those above. Every record counts for its nearest added
        facility, exactly one, which depends on the record and on released facilities alone: the l1
        sensitivity of the counts is 1, and 2 if a record is replaced. Which k facilities serve the
        counts best follows from released numbers, at no cost. Swaps of the kept facilities are
        selections as before.
        """
        objective, space, k = run.objective, run.space, run.space.k
        many = min((self.seeds or 1) * k, space.n)
        total, has_focus = many + self.swaps, bool(self.focus and objective.largest)
        parts = _three_parts(run.budget, self.focus if has_focus else 0.0, total)
        run.set_aside(*parts, generations=1 + self.swaps)
        run.note(selections=total, eps_s=parts[0].parameter)
        if has_focus:
            objective = _focus(run, parts[2].parameter)
        growth = objective.growth()
        for _ in range(many):
            _add(run, growth, parts[0].parameter)
        noise = DiscreteLaplace(parts[1].parameter, run.neighbours.changes)
        weights = np.maximum(run.release(noise, growth.counts()), 0).astype(np.float64)
        kept = weighted_kmedian(Weighted(run.objective.between(growth.members), weights), k)
        run.report(kept[None])
        if self.swaps:
            _swap(run, objective, kept, self.swaps, parts[0].parameter)
        return run.path()


def _three_parts(budget: Budget, focus: float, selections: int) -> tuple[Event, ...]:
    """Equal selections, one pure release of counts, and two selections of bounds if focus > 0.

    Counts and bounds have their shares of epsilon. Selections are as large as fits beside them, to
    one part in 100: with a delta, that is more than their share.
    """
    others = [Event("pure", (1 - focus) * COUNTED * budget.epsilon)]
    if focus > 0:
        others.append(Event("selection", focus * budget.epsilon / 2, 2))

    def planned(size: float) -> tuple[Event, ...]:
        return Event("selection", size, selections), *others

    share = (1 - focus) * (1 - COUNTED) * budget.epsilon
    low = calibrate(selections, epsilon=share, delta=budget.delta)
    high = calibrate(selections, epsilon=budget.epsilon, delta=budget.delta)
    while compose(planned(low), budget.delta) > budget.epsilon:  # the accountant rounds up
        low, high = low * (1 - 1e-4), low
    while budget.delta > 0 and high > 1.01 * low:
        size = math.sqrt(low * high)
        fits = compose(planned(size), budget.delta) <= budget.epsilon
        low, high = (size, high) if fits else (low, size)
    return planned(low)


def _add(run: Run[FacilityObjective, Subsets], growth: FacilityGrowth, eps_s: float) -> None:
    """Select one of all additions."""
    left = np.setdiff1d(np.arange(run.space.n), growth.members)
    reach = growth.range(run.neighbours) if len(left) > 1 else 0
    growth.add(left[run.release(Exponential(eps_s, reach), growth.scores()[left])])


def _focus(run: Run[FacilityObjective, Subsets], eps_f: float) -> FacilityObjective:
    """The objective with distances clipped to where the choice between facilities is decided.

    Bounds are two private medians over the records: of the distance to the nearest facility, below
    which no record gains, and of that to the one in 4 k, beyond which a facility would hardly ever
    serve a record. Each is a step of a public grid of distances, selected by -max(b, a), where b
    records are nearer than the step and a are farther: lowest at the median. Adding a record raises
    b or a by 1 or neither, so that the difference of two scores changes by at most 1; by 2 if one
    is replaced.
    """
    objective, k, f = run.objective, run.space.k, run.objective.n_facilities
    some = run.coins.choice(f, min(f, SOME), replace=False)
    grid = np.unique(np.arange(LEVELS + 1) * objective.largest // LEVELS)
    sides = run.neighbours.changes
    mechanism = Exponential(eps_f, sides if len(grid) > 2 else 0)
    steps = []
    for members, rank in ((np.arange(f), 0), (some, len(some) // (4 * k))):
        below = objective.nearer(members, rank, grid)
        nearer, farther = below[:-1], objective.n_records - below[1:]
        farther[-1] = 0  # the last step holds hi itself
        steps.append(run.release(mechanism, -np.maximum(nearer, farther)))
    return objective.narrowed(int(grid[min(steps)]), int(grid[max(steps) + 1]))


# ------------------------------------------------------------------------------------------- swaps


@dataclass(frozen=True, repr=False)
class Swaps(Search):
    """Settings of swapping one facility at a time, for the parameter `solver`.

    Parameters
    ----------
    steps : int, optional
        Number of swaps T; by default k. The paper's is 6 k ln f.
    paper : bool, default=False
        Whether to use the publication's number of steps, and its sensitivity: the diameter, here hi
        - lo of a record, whatever the sets. Repaired: the cost is that of T + 1 selections by the
        accountant, including the last one among the sets visited.

    See Also
    --------
    Greedy : Adds facilities.
    KMedian : The estimator that takes these settings.

    Notes
    -----
    Released: all sets visited. Cost: T + 1 selections, which together cost the budget of the fit.

    References
    ----------
    A. Gupta, K. Ligett, F. McSherry, A. Roth, K. Talwar, "Differentially private combinatorial
    optimization", SODA 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMedian, Swaps
    >>> people = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    >>> places = np.random.default_rng(1).uniform(0, 1, (30, 2))  # public
    >>> model = KMedian(3, epsilon=1.0, facilities=places, clip=(0, 2), solver=Swaps(steps=4))
    >>> model.fit(people).cluster_centers_.shape
    (3, 2)
    """

    takes: ClassVar[type[FacilityObjective]] = FacilityObjective

    steps: int | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "steps")

    def __call__(self, run: Run[FacilityObjective, Subsets]) -> Path:
        """From a random set, select one of all swaps T times; then select one of the sets visited.

        Released: all sets visited. Cost: T + 1 selections, the grant's budget. Given the sets
        before, the swaps are the same for neighbours, so each selection is bounded-range by itself,
        and so is the last one: its candidates are released.
        """
        objective, space = run.objective, run.space
        rule = math.ceil(6 * space.k * math.log(max(space.n, 2))) if self.paper else space.k
        steps = self.steps or rule
        eps_s = run.plan("selection", steps + 1, generations=steps + 2)
        run.note(selections=steps + 1, eps_s=eps_s, steps=steps)
        start = space.sample(1, run.coins)[0]
        run.report(start[None])
        P = np.array([start, *_swap(run, objective, start, steps, eps_s, self.paper)])
        reach = objective.spread if self.paper and objective.range(P, run.neighbours) else None
        run.report(P[run.select(P, range=reach)])
        return run.path()


def _swap(
    run: Run[FacilityObjective, Subsets],
    objective: FacilityObjective,
    start: Integers,
    steps: int,
    eps_s: float,
    paper: bool = False,
) -> list[Integers]:
    """Repeatedly select one of all swaps, or none, and apply it; return the sets visited."""
    visited, view = [], objective.at(start)
    for _ in range(steps):
        which, what = run.space.all_moves(view.members, 0.0)
        # To stay is the first member for itself; it is all there is where k = f.
        which, what = np.append(which, 0), np.append(what, view.members[0])
        reach = view.range(which, what, run.neighbours)
        if paper and reach:
            reach = objective.spread(view.members[None], run.neighbours)
        scores = view.scores(which, what)
        chosen = run.release(Exponential(eps_s, reach), scores)
        view.step(int(which[chosen]), int(what[chosen]))
        visited.append(view.members)
        run.report(view.members[None])
    return visited


# ------------------------------------------------------------------------- weighted places for free


@dataclass(frozen=True, eq=False)
class Weighted:
    """Released representatives of the records: distances (m, f) to facilities, weights (m,).

    Distances are in the caller's units; subtracting a constant from all of them changes nothing.
    """

    distances: Floats
    weights: Floats


@blas.one_thread()
def weighted_kmedian(stand_ins: Weighted, k: int, rounds: int = 100) -> Integers:
    """k facilities of low weighted cost: greedy additions, then the best swap while one helps.

    Post-processing: it sees only released numbers, and costs nothing.
    """
    D, w = stand_ins.distances, stand_ins.weights
    members: list[int] = []
    nearest = np.full(len(w), np.inf)
    for _ in range(k):
        gain = w @ np.minimum(D, nearest[:, None])
        gain[members] = np.inf
        members.append(int(np.argmin(gain)))
        nearest = np.minimum(nearest, D[:, members[-1]])
    for _ in range(rounds):
        own = D[:, members]
        which = own.argmin(axis=1)
        first = own[np.arange(len(w)), which]
        own[np.arange(len(w)), which] = np.inf
        second = own.min(axis=1)
        kept = np.minimum(D, first[:, None])
        lost = np.minimum(D, second[:, None]) - kept
        by_member = np.zeros((k, len(w)))
        by_member[which, np.arange(len(w))] = w
        cost = by_member @ lost + w @ kept
        cost[:, members] = np.inf
        i, j = np.unravel_index(np.argmin(cost), cost.shape)
        if not cost[i, j] < w @ first * (1 - 1e-9):
            break
        members[i] = int(j)
    return np.array(members, dtype=np.int64)


# ----------------------------------------------------------------------------------------- coreset


def _usual_alpha(settings: Coreset) -> float | None:
    """0.2 in the paper, unless radii or places are given."""
    given = vars(settings)["radii"], settings.places
    return 0.2 if settings.paper and given == (None, None) else None


def _usual_radii(settings: Coreset) -> int | None:
    """3, unless alpha determines the number."""
    return RADII if settings.alpha is None else None


@dataclass(frozen=True, repr=False)
class Coreset(Settings):
    """Settings of clustering weighted places, for the parameter `solver`.

    Parameters
    ----------
    radii : int, optional
        Number of radii, each half of the one before, starting at half of hi - lo.
    places : int, optional
        Number of places selected at each radius; by default k.
    share : float, optional
        Fraction of the budget for the selections; counts take the rest.
    alpha : float, optional
        The parameter of Jones et al., in (0, 1), instead of radii and places: ceil(log_(1+alpha) n)
        radii, each 1 + alpha times the one below, and ceil(k ln(1 / alpha)) places at each. Smaller
        is finer and slower. Needs a public number of records.
    paper : bool, default=False
        Whether to use alpha = 0.2, the finest of the three values that the thesis of 2021 tries
        (0.2, 0.6, 0.99); the publication names neither a value nor a share. Repaired: every
        selection is charged.

    See Also
    --------
    Synopsis : Weighted cells instead of places.
    KMedian : The estimator that takes these settings.

    Notes
    -----
    Released: the places and the noisy number of records nearest to each. Cost: the selections and
    the counts, together the budget of the fit. The clustering is post-processing and costs nothing.

    References
    ----------
    M. Jones, H. Nguyen, T. Nguyen, "Differentially private clustering via maximum coverage", AAAI
    2021.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Coreset, KMedian
    >>> people = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    >>> places = np.random.default_rng(1).uniform(0, 1, (30, 2))  # public
    >>> model = KMedian(3, epsilon=1.0, facilities=places, clip=(0, 2), solver=Coreset(radii=2))
    >>> model.fit(people).cluster_centers_.shape
    (3, 2)
    """

    takes: ClassVar[type[FacilityObjective]] = FacilityObjective

    without_size: ClassVar[str] = "Coreset(radii=...)"

    radii: Blank[int | None] = Blank(_usual_radii)
    places: int | None = None
    share: float = 0.5
    alpha: Blank[float | None] = Blank(_usual_alpha)
    paper: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("radii", "places") if vars(self)[name] is not None]
        if self.alpha is not None and given:
            raise DeclarationError(
                f"alpha ({self.alpha!r}) must not be given with {given[0]}, which follows from it; "
                "pass one of them"
            )
        if self.alpha is not None:
            check_split(self, "alpha")
        check_counts(self, "radii", "places")
        check_split(self, "share")

    def plan(self, largest: int, k: int, size: int | None) -> tuple[list[int], int]:
        """The radii, and the number of places selected at each.

        Parameters
        ----------
        largest : int
            The largest distance.
        k : int
            Number of facilities to choose.
        size : int or None
            Public number of records; needed with `alpha`.

        Returns
        -------
        tuple of list of int and int
            The radii, from the smallest, and the number of places at each.
        """
        if self.alpha is None:
            count = self.radii or RADII
            return [largest >> count - i for i in range(count)], self.places or k
        n = known_size(size, remedy=f"a public estimate, or {self.without_size}")
        step = 1 + self.alpha
        count = max(1, math.ceil(math.log(max(n, 2)) / math.log(step)))
        places = max(1, math.ceil(k * math.log(1 / self.alpha)))
        return [math.floor(largest / step ** (count - i)) for i in range(count)], places

    def check(self, task: Task[FacilityObjective, Subsets]) -> None:
        """Refuse noise that is too wide to draw, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        self.plan(1, 1, task.n_public)
        DiscreteLaplace((1 - self.share) * task.budget.epsilon / 2, 2)

    def __call__(self, run: Run[FacilityObjective, Subsets]) -> Path:
        """Select places that cover many records, count the records nearest to each, cluster them.

        At each radius, from the smallest on, places are selected one by one by the number of
        records within their radius and not within that of an earlier place (maximum coverage). Such
        a count changes by at most 1 with a record, for all places in one direction: its range is 1
        under add_remove and 2 under replace. Then every record counts for its nearest place,
        exactly one: the counts' l1 sensitivity is 1 and 2. Released: the places and their noisy
        counts. The clustering is free.
        """
        objective, space = run.objective, run.space
        sides = run.neighbours.changes
        radii, places = self.plan(objective.largest, space.k, run.n_public)
        each = min(places, space.n)
        n = min(len(radii) * each, space.n)
        eps_s, eps_c = _split(run, self.share, n, 1, "pure", generations=1)
        run.note(places=each if self.alpha is None else None)
        growth = objective.growth()
        for i in range(n):
            left = np.setdiff1d(np.arange(space.n), growth.members)
            mechanism = Exponential(eps_s, sides if len(left) > 1 else 0)
            growth.add(left[run.release(mechanism, growth.covered(radii[i // each])[left])])
        counts = run.release(DiscreteLaplace(eps_c, sides), growth.counts())
        weights = np.maximum(counts, 0).astype(np.float64)
        stand_ins = Weighted(objective.between(growth.members), weights)
        run.report(weighted_kmedian(stand_ins, space.k)[None])
        return run.path()


def _split(
    run: Run[FacilityObjective, Subsets],
    share: float,
    selections: int,
    others: int,
    kind: str,
    generations: int | None = None,
) -> tuple[float, float]:
    """The budgets of each of n equal selections, at a share, and of each of the other releases."""
    chosen, other = beside_selections(run.budget, share, selections, kind, others)
    run.set_aside(chosen, other, generations=generations or selections)
    run.note(selections=selections, eps_s=chosen.parameter)
    return chosen.parameter, other.parameter


# ---------------------------------------------------------------------------------------- synopsis


@dataclass(frozen=True, repr=False)
class Synopsis(Settings):
    """Settings of clustering the weighted cells of a partition, for the parameter `solver`.

    Parameters
    ----------
    shape_share : float, optional
        Fraction of the budget that finds the partition; the rest counts its cells.
    roots : int, optional
        Number of initial halvings that are made without a test; by default round(log2(3 k)).
    depth : int, optional
        Maximum depth: how often a cell may be halved.

    See Also
    --------
    Coreset : Weighted places instead of cells.
    KMedian : The estimator that takes these settings.

    Notes
    -----
    Released: the partition and a noisy count for each of its cells. Cost: two pure releases,
    together the whole epsilon; delta is not used. The clustering is post-processing and costs
    nothing.

    References
    ----------
    J. Zhang, X. Xiao, X. Xie, "PrivTree: a differentially private algorithm for hierarchical
    decompositions", SIGMOD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMedian, Synopsis
    >>> people = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    >>> places = np.random.default_rng(1).uniform(0, 1, (30, 2))  # public
    >>> model = KMedian(3, epsilon=1.0, facilities=places, clip=(0, 2), solver=Synopsis(depth=10))
    >>> model.fit(people).cluster_centers_.shape
    (3, 2)
    """

    takes: ClassVar[type[FacilityObjective]] = FacilityObjective

    shape_share: float = 0.3
    roots: int | None = None
    depth: int = 18

    def __post_init__(self) -> None:
        check_counts(self, "roots", "depth")
        check_split(self, "shape_share")
        check_depth(self.depth)

    def check(self, task: Task[FacilityObjective, Subsets]) -> None:
        """Refuse what a run would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        task.objective.check_cells()
        Partition.plan(self, task.objective.bounds, 1, task.budget.epsilon, task.neighbours)

    def __call__(self, run: Run[FacilityObjective, Subsets]) -> Path:
        """Partition the space where there are many records, count, and cluster the weighted cells.

        Released: the partition, and a noisy count of each cell. Cost: two pure releases, together
        the grant's epsilon (proof: `privtree.py`). The clustering is free.
        """
        objective, k = run.objective, run.space.k
        plan = Partition.plan(self, objective.bounds, k, run.whole.epsilon, run.neighbours)
        run.set_aside(*plan.events)
        run.note(**plan.noted)
        cells = plan.grow(objective.cells(plan.halvings.axes), run.release)
        points, weights = cells.spread(np.maximum(cells.counts, 0.0), 2)
        stand_ins = Weighted(objective.clipped(points * objective.record_unit), weights)
        run.report(weighted_kmedian(stand_ins, k)[None])
        return run.path()


# --------------------------------------------------------------------------------- what they share

METHODS: dict[str, type[Settings]] = {
    "synopsis": Synopsis,
    "greedy": Greedy,
    "swaps": Swaps,
    "coreset": Coreset,
    "local": Local,
    "dpsga": DPSGA,
    "privgene": PrivGene,
    "eem": EEM,
    "subsample": Subsample,
}


def automatic(objective: FacilityObjective) -> str:
    """The solver of 'auto': chosen by the number of columns and the metric, both public."""
    return "synopsis" if objective.has_cells else "greedy"


def private_cost(
    objective: FacilityObjective, members: Integers, noise: DiscreteLaplace, paid: Paid
) -> float:
    """The sum of clipped distances to the nearest of these facilities, with discrete Laplace noise.

    One release of the whole budget. A record's cost is between lo and hi: replacing one changes the
    sum by at most hi - lo, adding one by at most hi.
    """
    lowest = round(objective.clip[0] / objective.unit)
    total = objective.n_records * lowest - int(objective.scores(members[None])[0])
    return float(paid.release(noise, np.array([total]))[0]) * objective.unit


def cost_noise(
    objective: FacilityObjective, epsilon: float, neighbours: Neighbours
) -> DiscreteLaplace:
    """The noise of `private_cost`: enough for one record.

    A cost is at most hi for each of n records (replace) or of 2^32 (add_remove), below 2^62 in
    total.
    """
    lowest = round(objective.clip[0] / objective.unit)
    if (lowest + objective.largest) * objective.room(neighbours) >= MOST_SUM:
        raise DeclarationError(
            f"clip {objective.clip} is too far from 0 for an exact sum of costs; pass bounds with "
            f"a smaller lo, such as distances minus a public constant"
        )
    reach = neighbours.span(lowest, lowest + objective.largest)
    return DiscreteLaplace(epsilon, max(1, reach))


__getattr__ = old_names(__name__, {"Gupta": "Swaps"})
