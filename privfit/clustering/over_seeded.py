"""A tree, twice as many seeds as clusters, radii that are bought, then Lloyd steps.

Everything is planned before a record is looked at; which radii are used follows from what was
released. In turn:

=============  ==============================================================  ===================
part           released                                                        proof
=============  ==============================================================  ===================
the mean       two sums of clipped residuals of all records, if s < 400        `averages.py`
deviations     mean absolute deviations of the columns, if they are asked for  `rulers.py`
a frame        second moments about the mean, if they are asked for            `frames.py`
a tree         its cells and their noisy counts; columns that were never       `privtree.py`
               halved are filled in by the mean
seeds          one step of 2 k seeds on clipped residuals, then k centres      `lloyd.py`
centres        T steps of k centres on clipped residuals                       `lloyd.py`
radii          before each of these sums but the first, a histogram of norms   `radii.py`
=============  ==============================================================  ===================

Epsilons add up, or the squares of mu: tree and radii stay pure, and Gaussian sums have the mu that
is left beside them.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.clustering.averages import check_room, clipped_mean, norm_of
from privfit.clustering.clustering import Clustering
from privfit.clustering.frames import principal_frame
from privfit.clustering.grids import Tree, TreePlan
from privfit.clustering.lloyd import NOISE, Lloyd, Steps, radius_by_rule, rate, take_steps
from privfit.clustering.radii import l2_in_l1, radius_by_histogram
from privfit.clustering.rulers import bought_ruler
from privfit.clustering.seeding import fill_in, over_seed, reduce
from privfit.clustering.signals import Signal
from privfit.objectives import CentersObjective
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import Cells
from privfit.privacy.remainder import gaussian_left, gaussian_part
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Blank, Settings, blank, check_counts, check_split
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded

__all__ = ["OverSeeded", "Plan", "bought_mean"]

SHARES = {
    "mean": 0.05,
    "frame": 0.14,
    "deviations": 0.03,
    "tree": 0.30,
    "radii": 0.05,
    "lloyd": 0.45,
}  # of epsilon, as far as used
SEEDING = 0.35  # of the budget of Lloyd steps, for the first one
MOST_STEPS = 12
AVERAGE = 0.5  # of the path is averaged: its last steps differ only by noise
WIDER = 1.4  # than the rule's radius is the one in whose neighbourhood radii are tried
UNEQUAL = 2.0  # times the noise of clusters of one size has a small one, in few columns
STRONG = 400.0  # signal from which cells are fine enough without the mean
COARSE = 150.0  # signal up to which columns are halved on bought scales,
FEW_COLUMNS = 10  # if there are not more columns, each with a noisy deviation
LEAST_COLUMNS = 6  # for a frame
CLEAR_TRACE = {1: 0.06, 2: 0.10}  # noise of a trace, by norm, up to which a frame helps
CLIPPED = 0.05  # of the reach: the noise of second moments against which a radius is weighed
NOISY_MEAN = 0.5  # of a column's half width: noise from which a mean is of no use


@dataclass(frozen=True, repr=False)
class OverSeeded(Settings):
    """Settings of a tree, more seeds than clusters, bought radii and Lloyd steps.

    Parameters
    ----------
    seeds : int, optional
        Seeds for each cluster.
    tree : Tree, optional
        What finds the seeds.
    steps : int, optional
        Number of Lloyd steps after the seeds' own; by default a public rule in (n, d, k, epsilon,
        delta).
    mean : bool, optional
        Whether to buy the mean of the records first; by default a public rule in the same.
    pure : bool, optional
        Whether to use Laplace noise, whatever delta is; by default a public rule decides.
    frame : bool, optional
        Whether to buy second moments, too, and to grow the tree along the principal axes; by
        default not. A frame needs the mean, which is then bought. ``solver='auto'`` decides by a
        public rule in the same.
    tree_share : float, optional
        Fraction of epsilon for the tree; by default 30 parts beside those of the other releases.
    deviations : bool, optional
        Whether to buy the mean absolute deviations of the columns, too, and to halve each column on
        a scale that follows them; by default not. They need the mean, which is then bought, and
        exclude a frame. ``solver='auto'`` decides by a public rule in the same.

    See Also
    --------
    privfit.Hybrid : A tree and Lloyd steps alone.
    privfit.KMeans : The estimator that takes these settings.

    Notes
    -----
    Released: sums of clipped residuals, a tree, histograms of norms, and noisy counts and sums of
    clusters in each step. Cost: the budget of the fit. The number of records must be public.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> from privfit.clustering import OverSeeded
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 9000)).reshape(-1, 3)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=OverSeeded(steps=2)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 3)
    """

    takes: ClassVar[type[CentersObjective]] = CentersObjective
    unlisted: ClassVar[tuple[str, ...]] = ("frame", "tree_share", "deviations")

    seeds: int = 2
    tree: Blank[Tree] = blank(Tree())
    steps: int | None = None
    mean: bool | None = None
    pure: bool | None = None
    frame: bool | None = None
    tree_share: float | None = None
    deviations: bool | None = None

    def __post_init__(self) -> None:
        check_counts(self, "seeds", "steps")
        if self.frame and self.deviations:
            raise DeclarationError(
                "frame (True) and deviations (True) are two ways to grow one tree; pass one of them"
            )
        if self.tree_share is not None:
            check_split(self, "tree_share")

    @property
    def needs_size(self) -> bool:
        return True

    def check(self, task: Task[CentersObjective, Space]) -> None:
        """Refuse what a run would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        super().check(task)
        plan = Plan.of(self, task.objective, task.budget, task.neighbours, self.size(task))
        for cost in (plan.mean or plan.seeding, plan.seeding, plan.steps):
            check_room(task.objective, cost, task.neighbours)

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """The parts in turn, as planned.

        Released: what the parts release. Cost: the grant's budget.
        """
        size = self.size(run)
        plan = Plan.of(self, run.objective, run.whole, run.neighbours, size)
        run.set_aside(*plan.events, generations=1 + plan.steps.count)
        points, cells, used = self._cells(run, plan, size)
        run.note(tree=used, seeds=self.seeds, steps=plan.steps.count, average=AVERAGE, **plan.noted)
        many, restarts = self.seeds * run.objective.n_clusters, self.tree.restarts
        seeds = over_seed(run.objective, *points, many, run.coins, restarts)
        moved, counts = _seed_step(run, plan, seeds, size)
        centers = reduce(run.objective, points, seeds, moved, counts, run.coins)
        steps = plan.lloyd(run, centers, plan.steps)
        with suppress(RunEnded):
            run.report(centers[None])
            return Clustering.of(*take_steps(run, steps, centers, size, AVERAGE), cells)
        return Clustering.of(run.path(), cells=cells)

    def _cells(
        self, run: Run[CentersObjective, Reals], plan: Plan, size: int
    ) -> tuple[tuple[Floats, Floats], Cells | None, dict[str, Any]]:
        """Points that stand for cells with their weights; the cells, if they are of the box."""
        mean, radius = bought_mean(run, plan, size)
        if plan.frame is None or mean is None:
            tree = plan.tree
            if plan.deviations is not None and mean is not None:
                ruler = bought_ruler(run, mean, radius, plan.deviations, size)
                epsilon = plan.tree_epsilon
                tree = self.tree.plan(run.objective, epsilon, run.neighbours, ruler)
                mean = None  # from which the scale starts
            cells, used = tree.draw(run)
            return fill_in(run.objective, cells, mean), cells, used
        norm = norm_of(plan.frame)
        reach = run.objective.reach(norm) * run.objective.candidate_units
        length = CLIPPED / l2_in_l1(run.objective.n_features) if norm == 1 else CLIPPED
        radius = radius_by_histogram(run, mean[None], reach, norm, plan.radii.parameter, length)
        frame = principal_frame(run, mean, radius, plan.frame, size)
        points, weights, used = frame.cells(run, self.tree, plan.tree_epsilon)
        return (run.objective.project(points), weights), None, used


@dataclass(frozen=True)
class Plan:
    """The releases of a fit, each with its cost: all of them public before the first."""

    tree: TreePlan
    tree_epsilon: float
    mean: Event | None
    frame: Event | None
    deviations: Event | None
    radii: Event
    seeding: Event
    steps: Event
    unequal: float  # times the noise of clusters of one size

    @property
    def events(self) -> tuple[Event, ...]:
        named = (self.mean, self.frame, self.deviations)
        bought = tuple(event for event in named if event is not None)
        return (*self.tree.events, *bought, self.radii, self.seeding, self.steps)

    @property
    def noted(self) -> dict[str, bool]:
        """The settings as they are used."""
        used = {"frame": self.frame, "deviations": self.deviations}
        named = {name: True for name, event in used.items() if event is not None}
        return {"mean": self.mean is not None, "pure": self.steps.kind == "pure", **named}

    @classmethod
    def of(
        cls,
        settings: OverSeeded,
        objective: CentersObjective,
        budget: Budget,
        neighbours: Neighbours,
        size: int,
    ) -> Plan:
        """The parts of a budget. If no Gaussian release fits beside the tree, all are pure."""
        signal = Signal.of(objective, budget, neighbours, size)
        has_frame, has_scale = bool(settings.frame), bool(settings.deviations)
        has_mean = buys_mean(signal) if settings.mean is None else settings.mean
        has_mean = has_mean or has_frame or has_scale
        share = shares(has_mean, has_frame, settings.tree_share, has_scale)
        epsilon = share["tree"] * budget.epsilon
        tree = settings.tree.plan(objective, epsilon, neighbours)
        count = 2 + has_mean + has_frame
        radii = Event("pure", share["radii"] * budget.epsilon / count, count)
        spent, is_pure = (*tree.events, radii), settings.pure
        is_pure = signal.is_pure if is_pure is None else is_pure or budget.delta == 0
        mu = 0.0 if is_pure else gaussian_left(budget, *spent, rule="near")
        rest = share["mean"] + share["frame"] + share["deviations"] + share["lloyd"]
        whole, one = Event("gaussian", mu), rest
        if mu == 0:
            whole, one = Event("pure", budget.epsilon), 1.0
        mean = _part(whole, share["mean"] / one, 2) if has_mean else None
        frame = _part(whole, share["frame"] / one) if has_frame else None
        deviations = _part(whole, share["deviations"] / one) if has_scale else None
        lloyd = _part(whole, share["lloyd"] / one)
        seeding, last = _part(lloyd, SEEDING), _part(lloyd, 1 - SEEDING)
        steps = _part(last, 1.0, settings.steps or _steps_by_rule(signal, last))
        if mu == 0:  # what is left to the last bit
            bought = (event for event in (mean, frame, deviations) if event is not None)
            steps = rate(Budget(budget.epsilon), steps.count, *spent, seeding, *bought)
        many = signal.n_features > FEW_COLUMNS or too_noisy(signal)
        unequal = 1.0 if many else UNEQUAL
        return cls(tree, epsilon, mean, frame, deviations, radii, seeding, steps, unequal)

    def lloyd(self, run: Run[CentersObjective, Reals], centers: Floats, cost: Event) -> Steps:
        """Steps of this cost about these centres, on residuals of a radius that is bought."""
        norm, k = norm_of(cost), len(centers)
        objective = run.objective.with_clusters(k)
        usual = WIDER * radius_by_rule(run.objective, norm)
        size = (run.n_public or 1) / run.neighbours.changes
        length = self.unequal * _length(size, objective.n_features, k, cost)
        radius = radius_by_histogram(run, centers, usual, norm, self.radii.parameter, length)
        share = 3 / 13 if norm == 2 else None
        settings = Lloyd(residual=True, radius=radius, count_share=share)
        return Steps.of(settings, objective, cost, run.neighbours)


def _part(whole: Event, share: float, count: int = 1) -> Event:
    """Equal releases that cost a share of one release: of its epsilon, or of its squared mu."""
    if whole.kind == "pure":
        return Event("pure", share * whole.parameter / count, count)
    return Event("gaussian", gaussian_part(whole.parameter * math.sqrt(share), count), count)


def bought_mean(
    run: Run[CentersObjective, Reals], plan: Plan, size: int
) -> tuple[Floats | None, float]:
    """(d,): the mean by two clipped means, None if not bought; and the radius of the second.

    That radius is bought. A shift is shrunk by the part of it that is noise.
    """
    if plan.mean is None:
        return None, 0.0
    objective, cost, norm = run.objective, plan.mean, norm_of(plan.mean)
    mean = objective.project(objective.middle * objective.candidate_units)
    radius = objective.reach(norm) * objective.candidate_units
    d, length = objective.n_features, math.sqrt(2) if norm == 1 else 1.0
    for step in range(cost.count):
        if step:
            per = length * run.neighbours.changes * math.sqrt(d) / (cost.parameter * size)
            radius = radius_by_histogram(
                run, mean[None], 0.7 * radius, norm, plan.radii.parameter, per
            )
        shift, deviation = clipped_mean(run, mean, radius, cost, size)
        square = max(float(shift @ shift), 1e-300)
        mean = objective.project(mean + max(0.0, 1 - d * deviation**2 / square) * shift)
    return mean, radius


def _seed_step(
    run: Run[CentersObjective, Reals], plan: Plan, seeds: Floats, size: int
) -> tuple[Floats, Floats]:
    """(m, d), (m,): where one step moves the seeds, and their counts, none of them tiny."""
    objective, many = run.objective.with_clusters(len(seeds)), len(seeds)
    steps = plan.lloyd(run, seeds, plan.seeding)
    counts, sums = steps.released(run, objective, seeds)
    least = max(1.0, size / (20 * many))
    moved = objective.project(steps.moved(objective, seeds, counts, sums, least))
    return moved, np.maximum(counts, size / (100 * many))


# ------------------------------------------------------------------------------------ public rules


def shares(
    has_mean: bool,
    has_frame: bool = False,
    tree_share: float | None = None,
    has_scale: bool = False,
) -> dict[str, float]:
    """The shares of epsilon, of the parts that are used; that of the tree may be given."""
    bought = {"mean": has_mean, "frame": has_frame, "deviations": has_scale}
    used = {name: share * bought.get(name, True) for name, share in SHARES.items()}
    if tree_share is not None:
        others = math.fsum(used.values()) - used["tree"]
        used["tree"] = others * tree_share / (1 - tree_share)
    return {name: share / math.fsum(used.values()) for name, share in used.items()}


def buys_frame(signal: Signal) -> bool:
    """Whether second moments are worth their part: many columns, and little noise of a trace."""
    d, k = signal.n_features, signal.n_clusters
    if d < LEAST_COLUMNS or 2 * k > d:
        return False
    share = shares(True, True)["frame"]
    if signal.is_pure:
        noise = 0.56 * d**1.5 / (share * signal.budget.epsilon * signal.size)
        return noise < (CLEAR_TRACE[1] if 3 * k <= d else CLEAR_TRACE[1] / 2)
    mu = math.sqrt(d) * k / (signal.gaussian * signal.size)
    part = math.sqrt(share / (1 - shares(True, True)["tree"] - shares(True, True)["radii"]))
    return 2.1 * math.sqrt(d) / (mu * part * signal.size) < CLEAR_TRACE[2]


def buys_mean(signal: Signal) -> bool:
    """Whether the mean is worth its part: cells are coarse, and its own noise is small."""
    d, share = signal.n_features, SHARES["mean"]
    if signal.is_pure:
        noise = 2 * d / (share * signal.budget.epsilon * signal.size)
    else:
        mu = math.sqrt(d) * signal.n_clusters / (signal.gaussian * signal.size)
        part = math.sqrt(share / (share + SHARES["lloyd"]))
        noise = 1.4 * math.sqrt(d) / (mu * part * signal.size)
    return signal.strength < STRONG and noise < NOISY_MEAN


def buys_deviations(signal: Signal) -> bool:
    """Whether deviations are worth their part: few columns, and cells so coarse that scales count.

    Strong signals make fine cells anyway, and clusters of their own of what is far out.
    """
    return signal.n_features <= FEW_COLUMNS and signal.strength < COARSE and buys_mean(signal)


def too_noisy(signal: Signal) -> bool:
    """Whether the step of twice as many seeds is mostly noise."""
    if signal.is_pure:
        return 2 * signal.noise / (SEEDING * shares(buys_mean(signal))["lloyd"]) > 0.8
    return 2 * signal.noise / math.sqrt(SEEDING) > 0.8


def _length(size: float, d: int, k: int, cost: Event) -> float:
    """How long the noise of a mean is for residuals of radius 1, with all of these steps as one."""
    if cost.kind == "pure":
        one = math.sqrt(2) / (0.85 * cost.parameter * cost.count)
    else:
        one = 1.05 / (cost.parameter * math.sqrt(cost.count))
    return one * math.sqrt(d) * k / size


def _steps_by_rule(signal: Signal, cost: Event) -> int:
    """T: as many steps as keep the noise of a mean at 5 % of the radius; from 1 to 12."""
    d = signal.n_features
    length = _length(signal.size, d, signal.n_clusters, cost)
    steps = NOISE / (l2_in_l1(d) * length) if cost.kind == "pure" else (NOISE / length) ** 2
    return min(max(round(min(steps, MOST_STEPS)), 1), MOST_STEPS)
