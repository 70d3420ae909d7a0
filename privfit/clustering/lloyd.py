"""Noisy Lloyd: each step releases noisy counts and sums of the clusters.

Sums are those of the records (Blum, Dwork, McSherry, Nissim 2005), or of *residuals* clipped to a
public radius about the centres. Starting centres never look at records.

**Sensitivity of a Lloyd step.** A step releases the integers (W n_j, F s_j) of all clusters j: n_j
counts its records, s_j sums vectors v of norm at most r, one a record, W and F are public whole
numbers. Each record counts in exactly one cluster, and which one depends on that record and the
released centres alone. v is the record less a public middle of the domain (`objective.reach`), or
its residual clipped to the radius. With V = F r, one record

=============================  ==============================  ===================================
changes the integers by        l1 (discrete Laplace)           l2 (discrete Gaussian)
=============================  ==============================  ===================================
added or removed               W + V                           sqrt(W^2 + V^2)
replaced, another cluster      2 W + 2 V                       sqrt(2 W^2 + 2 V^2)
replaced, the same cluster     2 V (n_j does not change)       2 V
=============================  ==============================  ===================================

since norm(v - v') <= 2 r. So the joint l1 sensitivity is W + V, twice that if replaced: 2 and 4 on
the unit L1 ball with W = 1, and 1 + d and 2 (1 + d) on [-1, 1]^d. In l2 a replaced record makes
counts free of charge up to W = V.

**Clipped residuals.** v = x - c_j for the nearest centre c_j, shrunk to norm r if longer and
rounded towards zero (`objective.residuals`): an integer vector of norm at most r that depends on x
and the released centres alone, so the table holds with that r, however large the domain. The noise
shrinks as r does. Most records are near their centre, so little is lost; where the pulls of a
cluster's records balance, the sum is zero.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.typing import Array, Floats, Integers
from privfit.clustering.clustering import Clustering
from privfit.clustering.parts import ClusterSums
from privfit.clustering.sizes import Sizes
from privfit.clustering.starts import packed
from privfit.clustering.trace import LloydTrace
from privfit.objectives import CentersObjective
from privfit.objectives.common import MOST_SUM
from privfit.privacy.accounting import Event, calibrate
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import epsilon_left, gaussian_left, gaussian_part
from privfit.runs.paths import Path
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import (
    Blank,
    Settings,
    blank,
    check_counts,
    check_positive,
    check_shares,
    check_split,
)
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded

__all__ = ["Lloyd", "Steps"]

FINE = 1024  # units of a sum's bound below which it is released on a finer grid
MOST_STEPS = 16
NOISE = 0.05  # of the radius: how far noise may move a mean, which sets the number of steps


def _usual_average(settings: Lloyd) -> float:
    """Half of the path for residuals, whose last steps differ only by noise."""
    return 0.5 if settings.residual and not settings.paper else 0.0


@dataclass(frozen=True, repr=False)
class Lloyd(Settings):
    """Settings of noisy Lloyd steps, for the parameter `solver`.

    Parameters
    ----------
    steps : int, optional
        Number of steps T; by default a public rule in (n, d, k, epsilon, delta), and 5 if the
        number of records is not public.
    residual : bool, optional
        Whether to sum residuals clipped to a public radius about the current centres, instead of
        records.
    radius : float, optional
        Radius of residuals, in units of the records; by default a rule in the domain, d and k.
    count_share : float, optional
        Fraction of a step's sensitivity for counts, W / (W + V); by default 0.15 for residuals, and
        for sums the value that minimises the error of the centres.
    average : float, optional
        Fraction of the released path whose mean is the answer, 0 for the last step; by default 0.5
        for residuals, whose last steps differ only by noise, and 0 for sums.
    paper : bool, default=False
        Whether to use Lee and Kifer's parameters: 5 steps of Laplace noise, whatever delta is, sums
        of records, W = 1 whatever the domain, and starts that are packed as far apart as possible
        (`packed`). Repaired: every cluster gets noise, counts are at least 1, centres stay in the
        domain.

    See Also
    --------
    Hybrid : Starts from a tree.
    mcmc : Improves on what the steps released, at no cost.
    KMeans : The estimator that takes these settings.

    Notes
    -----
    Released: noisy counts and sums of all clusters in each step. Cost: T pure releases of epsilon /
    T, or T Gaussian ones of mu / sqrt(T), which together cost the budget of the fit.

    References
    ----------
    A. Blum, C. Dwork, F. McSherry, K. Nissim, "Practical privacy: the SuLQ framework", PODS 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, Lloyd
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=Lloyd(steps=5)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    takes: ClassVar[type[CentersObjective]] = CentersObjective

    steps: Blank[int | None] = blank(None, paper=5)
    residual: bool = False
    radius: float | None = None
    count_share: float | None = None
    average: Blank[float] = Blank(_usual_average)
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        check_shares(self, "average")
        if self.count_share is not None:
            check_split(self, "count_share")
        check_positive(self, "radius")

    def check(self, task: Task[CentersObjective, Space]) -> None:
        """Refuse what a run would refuse, before anything is charged: plan, and draw nothing.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        self.plan(task.objective, task.budget, task.neighbours, task.n_public)

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """From far-apart centres, release noisy counts and sums T times; move to their quotients.

        Released: (k d + k) numbers per step. Cost: T pure releases of epsilon / T, or T Gaussian
        ones of mu / sqrt(T): the grant's budget.
        """
        steps = self.plan(run.objective, run.whole, run.neighbours, run.n_public)
        run.set_aside(steps.event, generations=steps.count)
        run.note(**steps.noted(run.objective))
        start = packed(run.objective, run.coins) if self.paper else run.space.middle
        return Clustering.of(*take_steps(run, steps, start, run.n_public, self.average))

    def plan(
        self,
        objective: CentersObjective,
        budget: Budget,
        neighbours: Neighbours,
        size: float | None,
        *spent: Event,
    ) -> Steps:
        """T steps that cost what is left of a budget after other events.

        Parameters
        ----------
        objective : CentersObjective
            The objective.
        budget : Budget
            The budget.
        neighbours : Neighbours
            The neighbour relation.
        size : float or None
            Public number of records, possibly noisy.
        *spent : Event
            The other events.

        Returns
        -------
        Steps
            The plan.
        """
        budget = self.spends(budget)
        count = self.steps or _steps_by_rule(self, objective, budget, neighbours, size, *spent)
        return Steps.of(self, objective, rate(budget, count, *spent), neighbours)

    def spends(self, budget: Budget) -> Budget:
        """The part of a budget that the steps use; as published epsilon only.

        Parameters
        ----------
        budget : Budget
            The budget of the fit.

        Returns
        -------
        Budget
            What is spent.
        """
        return Budget(budget.epsilon) if self.paper else budget


def take_steps(
    run: Run[CentersObjective, Reals],
    steps: Steps,
    centers: Floats,
    size: float | None,
    average: float,
) -> tuple[Path, LloydTrace | None, Sizes | None]:
    """Take Lloyd steps from these centres, each released and reported: path, trace and sizes.

    Every cluster gets noise, empty ones too; what happens next depends on released values only.
    """
    objective, k = run.objective, run.objective.n_clusters
    least = 1.0 if size is None else max(1.0, size / (20 * k))
    used, counts, sums = [], [], []
    with suppress(RunEnded):  # the trace of what was released until then
        for _ in range(steps.count):
            found = steps.released(run, objective, centers)
            used.append(centers)
            counts.append(found[0])
            sums.append(found[1])
            moved = steps.moved(objective, centers, *found, least)
            centers = objective.project(moved)
            run.report(centers[None])
    trace = None if steps.radius is not None else _trace(objective, steps, used, counts, sums)
    return run.path(average), trace, steps.sizes(counts, average)


def rate(budget: Budget, steps: int, *spent: Event) -> Event:
    """Equal steps, pure or Gaussian, that cost what is left after other events."""
    mu = gaussian_left(budget, *spent, rule="near") if budget.delta > 0 else 0.0
    if mu > 0:
        return Event("gaussian", gaussian_part(mu, steps), steps)
    left = epsilon_left(budget.epsilon, *spent)
    return Event("pure", calibrate(steps, epsilon=left, delta=0.0), steps)


@dataclass(frozen=True)
class Steps:
    """The public plan of equal Lloyd steps: what is summed, in which units, with which noise."""

    count: int
    mechanism: DiscreteLaplace | DiscreteGaussian
    W: int
    F: int
    V: int
    radius: int | None  # of residuals, in record units
    norm: int

    @classmethod
    def of(
        cls, settings: Lloyd, objective: CentersObjective, cost: Event, neighbours: Neighbours
    ) -> Steps:
        """Steps of this cost.

        No sum wraps: with N records (replace) or 2^32 (add_remove), W n_j <= N W and F s_j <= N V
        are below 2^62, or else the step is refused.
        """
        norm = 1 if cost.kind == "pure" else 2
        radius = _radius(settings, objective, norm)
        reach = objective.reach(norm) if radius is None else radius
        F = math.ceil(FINE / max(reach, 1))
        V = F * reach
        W = _count_weight(objective, settings, V, F, norm, neighbours)
        W = max(W, math.ceil(8 * cost.parameter))
        if max(W, V) * objective.room(neighbours) >= MOST_SUM:
            raise DeclarationError(
                f"counts ({W}) or sums ({V} units per record) are too fine for exact totals; pass "
                f"a "
                "smaller count_share or epsilon, or a domain of fewer columns"
            )
        span = joint_sensitivity(W, V, norm, neighbours)
        noise: DiscreteLaplace | DiscreteGaussian = (
            DiscreteLaplace(cost.parameter, int(span))
            if norm == 1
            else DiscreteGaussian(cost.parameter, span)
        )
        return cls(cost.count, noise, W, F, V, radius, norm)

    @property
    def event(self) -> Event:
        """The cost of all steps."""
        return replace(self.mechanism.event, count=self.count)

    @property
    def scale(self) -> float:
        """b of Laplace noise, or the standard deviation, in units of the released integers."""
        return noise_of(self.mechanism)[1]

    @property
    def noise_kind(self) -> str:
        """The noise, by its name in traces."""
        return noise_of(self.mechanism)[0]

    def sizes(self, counts: list[Floats], average: float) -> Sizes | None:
        """The sizes of the clusters, from the counts that steps released; None without a step."""
        if not counts:
            return None
        last = max(1, round(average * len(counts)))
        return Sizes.of_steps(counts, last, self.noise_kind, self.scale / self.W)

    def noted(self, objective: CentersObjective) -> dict[str, Any]:
        """The settings as they are used; the radius in units of the records."""
        radius = None if self.radius is None else self.radius * objective.candidate_units
        share = self.W / (self.W + self.V)
        return {"steps": self.count, "radius": radius, "count_share": share}

    def integers(self, objective: CentersObjective, centers: Floats) -> Integers:
        """(k + k d,): W n_j and F s_j of all clusters, exactly."""
        if self.radius is None:
            n, s = objective.lloyd(centers)
            s = s - n[:, None] * objective.middle
        else:
            n, s = objective.residuals(centers, self.radius, self.norm)
        return np.concatenate([self.W * n, self.F * s.ravel()])

    def released(
        self, run: Run[CentersObjective, Reals], objective: CentersObjective, centers: Floats
    ) -> tuple[Floats, Floats]:
        """(k,), (k, d): the noisy counts and sums of one step, in units of the records."""
        k = objective.n_clusters
        noisy: Array = run.release(self.mechanism, self.integers(objective, centers))
        unit = objective.candidate_units
        counts, sums = noisy[:k] / self.W, noisy[k:].reshape(k, -1) * (unit / self.F)
        if self.radius is not None:
            run.keep(
                ClusterSums(
                    centers, counts, sums, self.scale / self.W, self.scale / self.F * unit,
                    self.noise_kind, self.radius * unit, self.norm,
                )
            )  # fmt: skip
        return counts, sums

    def moved(
        self,
        objective: CentersObjective,
        centers: Floats,
        counts: Floats,
        sums: Floats,
        least: float,
    ) -> Floats:
        """(k, d): where noisy counts and sums move the centres; quotients of at least 1 record."""
        unit = objective.candidate_units
        if self.radius is None:
            return objective.middle * unit + sums / np.maximum(counts, 1.0)[:, None]
        shift = sums / np.maximum(counts, least)[:, None]
        return centers + _shortened(shift, self.radius * unit, self.norm)


def noise_of(mechanism: DiscreteLaplace | DiscreteGaussian) -> tuple[str, float]:
    """The kind of noise by its name in traces, and its scale: b, or the standard deviation."""
    if isinstance(mechanism, DiscreteLaplace):
        return "laplace", mechanism.scale
    return "gaussian", math.sqrt(mechanism.variance)


def _trace(
    objective: CentersObjective,
    steps: Steps,
    used: list[Floats],
    counts: list[Floats],
    sums: list[Floats],
) -> LloydTrace:
    """What plain Lloyd steps released, in the form that post-processing takes."""
    unit, domain = objective.candidate_units, objective.domain
    origin = objective.middle * unit
    low, high = (bound * unit - origin for bound in objective.bounds)
    return LloydTrace(
        np.array(used) - origin,
        np.array(counts),
        np.array(sums),
        scale_counts=steps.scale / steps.W,
        scale_sums=steps.scale / steps.F * unit,
        low=low,
        high=high,
        kind=steps.noise_kind,
        domain={1: "l1", 2: "l2", math.inf: "box"}[domain.order],
        radius=float(high[0]) if domain.order < math.inf else 0.0,
        origin=origin,
    )


def _shortened(steps: Floats, radius: float, norm: int) -> Floats:
    """Steps of at most the radius: a mean of clipped residuals is no longer."""
    length = np.linalg.norm(steps, ord=norm, axis=1, keepdims=True)
    return steps * np.minimum(1.0, radius / np.maximum(length, 1e-300))


def joint_sensitivity(W: int, V: int, norm: int, neighbours: Neighbours) -> float:
    """How much one record changes the integers of a step; the table at the top of this module."""
    if norm == 1:
        return (W + V) * neighbours.changes
    if not neighbours.replaces:
        return math.sqrt(W * W + V * V) * ABOVE
    return max(math.sqrt(2 * W * W + 2 * V * V) * ABOVE, 2.0 * V)


def _count_weight(
    objective: CentersObjective, settings: Lloyd, V: int, F: int, norm: int, neighbours: Neighbours
) -> int:
    """W: what a count is worth beside sums of vectors of norm at most V.

    Noise of scale b on all integers moves n times a centre s/n by b in each coordinate, through s,
    and by b M / W along the centre, through n, where M is a typical length of a centre, here in the
    units of F s. The squares add up to b^2 (d + (M / W)^2). With b proportional to W + V that is
    least at W = (V M^2 / d)^(1/3); with b proportional to sqrt(W^2 + V^2), at sqrt(V M / sqrt(d));
    and where a replaced record makes counts free, at V.
    """
    unit, d = objective.candidate_units, objective.n_features
    if norm == 2 and neighbours.replaces:
        best = float(V)
    elif settings.count_share is not None:
        best = V * settings.count_share / (1 - settings.count_share)
    elif settings.paper:
        best = F / unit
    elif settings.residual:
        best = V * 0.15 / 0.85
    else:
        M = F * objective.domain.typical_length / unit
        best = (V * M * M / d) ** (1 / 3) if norm == 1 else math.sqrt(V * M / math.sqrt(d))
    return max(1, round(best))


# ------------------------------------------------------------------------------------ public rules


def _radius(settings: Lloyd, objective: CentersObjective, norm: int) -> int | None:
    """The radius of residuals, in record units; None for whole records."""
    if not settings.residual:
        return None
    length = settings.radius or radius_by_rule(objective, norm)
    widest = 2 * objective.reach(norm) or 1
    return max(1, min(math.floor(length / objective.candidate_units), widest))


def radius_by_rule(objective: CentersObjective, norm: int) -> float:
    """0.866 typical lengths k^(-1/d), that is 0.5 sqrt(d) k^(-1/d) on [-1, 1]^d.

    A k-th of the domain has a diameter of that order. In l1 it is sqrt(2 d / pi) times as long,
    which is the l1 norm of a vector of that l2 norm in a random direction.
    """
    d = objective.n_features
    radius = math.sqrt(0.75) * objective.domain.typical_length * objective.n_clusters ** (-1 / d)
    return max(radius, objective.candidate_units) * (
        max(1.0, math.sqrt(2 * d / math.pi)) if norm == 1 else 1
    )


def _steps_by_rule(
    settings: Lloyd,
    objective: CentersObjective,
    budget: Budget,
    neighbours: Neighbours,
    size: float | None,
    *spent: Event,
) -> int:
    """T: as many steps as keep the noise of a mean at 5 % of the radius; from 1 to 16.

    For residuals a pure step's noise is about sqrt(d (d + 1)) r T k / (0.85 epsilon n) long, a
    Gaussian one's sqrt(d) r sqrt(T) k / (mu n); replaced records double it. Sums of whole records
    take 5 steps, as in the papers.
    """
    if size is None or not settings.residual:
        return 5
    d, k = objective.n_features, objective.n_clusters
    whole = rate(budget, 1, *spent)
    share = whole.parameter * size / k / neighbours.changes
    if whole.kind == "pure":
        steps = NOISE * 0.85 * share / math.sqrt(d * (d + 1))
    else:
        steps = (NOISE * share) ** 2 / d
    return min(max(round(min(steps, MOST_STEPS)), 1), MOST_STEPS)
