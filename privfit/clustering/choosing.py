"""The number of clusters: chosen privately, by one call at a stated price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.tables import Frame, as_frame
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_whole
from privfit.clustering import kmeans
from privfit.clustering.averages import Mean
from privfit.clustering.curves import SHARE, Curve, CurvePlan, nested_sets
from privfit.clustering.mixed import clustered
from privfit.clustering.starts import centre_space
from privfit.domains import Box, Domain
from privfit.objectives import CentersObjective
from privfit.privacy.ledger import Ledger, Release
from privfit.privacy.neighbours import Adjacency
from privfit.runs.door import before, realised, settings_of
from privfit.runs.payment import Terms

__all__ = ["ChosenK", "choose_k"]

MOST_CLUSTERS = 1000


@dataclass(frozen=True, eq=False)
class ChosenK:
    """A number of clusters, and the released curve of costs that it was read from.

    Parameters
    ----------
    k : int
        The chosen number of clusters.
    ks : array of int of shape (m,)
        Numbers of clusters on the curve: those to choose from, and one more on either side.
    costs : array of shape (m,)
        Noisy sums of squared distances to the nearest centre, each record's cut at `bound`.
    errors : array of shape (m,)
        The standard deviations of their noise.
    bends : array of shape (m - 2,)
        How much the logarithm of the cost bends at each number to choose from.
    bound : float
        The most that a record adds to a cost, in squared units of the coded columns.
    centers : array of shape (k, d)
        Released centres of the chosen number of clusters, in the coding of the domain.
    release : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    choose_k : Chooses.
    KMeans : Fits the clusters.

    Notes
    -----
    Everything in it was released and paid for.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import choose_k
    >>> rng = np.random.default_rng(0)
    >>> corners = rng.choice([[-0.5, -0.5], [0.0, 0.5], [0.5, -0.5]], 9000)
    >>> X = corners + rng.normal(0, 0.05, (9000, 2))
    >>> choose_k(X, range(2, 9), epsilon=1.0, domain=(-1, 1), random_state=0)
    ChosenK(k=3)
    """

    k: int
    ks: Integers = field(repr=False)
    costs: Floats = field(repr=False)
    errors: Floats = field(repr=False)
    bends: Floats = field(repr=False)
    bound: float = field(repr=False)
    centers: Floats = field(repr=False)
    release: Release = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values.

        Returns
        -------
        dict
            Lists `k`, `cost` and `error`, of the same length.
        """
        columns = {"k": self.ks, "cost": self.costs, "error": self.errors}
        return {name: values.tolist() for name, values in columns.items()}

    def to_frame(self) -> Frame:
        """The curve as a table.

        Returns
        -------
        pandas.DataFrame
            Columns `cost` and `error`, by `k`.
        """
        return as_frame(self.to_dict(), "k")


def choose_k(
    X: Any,
    ks: Iterable[int],
    epsilon: float,
    delta: float = 0.0,
    *,
    domain: Any = None,
    scale: Any = 1.0,
    adjacency: Adjacency = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> ChosenK:
    """Choose the number of clusters of k-means under differential privacy.

    One fit with a few more centres than the largest number finds where records are; k-means of what
    it released makes centres for every number; one more release buys their costs. The number is
    where the logarithm of the cost bends most.

    Parameters
    ----------
    X : array-like of shape (n, n_columns), Stream or Dask collection
        Private records.
    ks : range or sequence of int
        The numbers to choose from: consecutive, the least at least 2, such as ``range(2, 21)``.
    epsilon : float
        The budget of everything: four fifths for the fit, a fifth for the curve.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy, for the fit. With 0 the guarantee is
        pure.
    domain : pair of bounds, Domain or Schema
        What a record may be, declared from documentation, without blanks. Records are clipped to
        it.
    scale : 'equal' or float, default=1.0
        What a level of a schema's category is coded as: see `KMeans`.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    n_public : int or None, default=None
        A public, possibly approximate number of records, by which the fit is chosen under
        'add_remove'.
    ledger : Ledger or None, default=None
        The ledger to charge, before anything is drawn; by default a new one.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    ChosenK
        The number and the curve. `privfit.report.plotting.draw_choice` draws it.

    See Also
    --------
    KMeans : Fits clusters, for a budget of its own.

    Notes
    -----
    Released: what the fit releases, and one number for each number of clusters. Cost: the whole
    budget. docs/kmeans.md has the proof, and how often the rule is right.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, Ledger, choose_k
    >>> rng = np.random.default_rng(0)
    >>> corners = rng.choice([[-0.5, -0.5], [0.0, 0.5], [0.5, -0.5]], 9000)
    >>> X = corners + rng.normal(0, 0.05, (9000, 2))
    >>> ledger = Ledger(epsilon=2.0)
    >>> chosen = choose_k(X, range(2, 9), 1.0, domain=(-1, 1), ledger=ledger, random_state=0)
    >>> model = KMeans(chosen.k, 1.0, domain=(-1, 1), ledger=ledger).fit(X)
    >>> model.cluster_centers_.shape
    (3, 2)
    """
    wider = _with_neighbours(ks)
    terms = Terms("choose_k", epsilon, delta, adjacency, n_public, ledger, random_state)
    terms.refuse_infinity("pass a finite epsilon")
    declared = clustered(_declared(domain), scale)
    objective = CentersObjective(
        X, wider[-1], declared, n_threads=n_threads, adjacency=terms.neighbours
    )
    plan = CurvePlan.of(objective, wider, terms.budget.epsilon, terms.neighbours)
    rest = plan.rest(terms.budget)
    best = kmeans.best_of(objective, rest, terms.neighbours, terms.size(objective))
    if isinstance(best, Mean):
        raise DeclarationError(
            f"epsilon ({epsilon!r}) must be larger to tell {wider[-1]} clusters of "
            f"{objective.n_features} columns apart; pass a larger one, or smaller numbers of "
            "clusters"
        )
    name, settings = settings_of(best, kmeans.METHODS)
    left = replace(terms, epsilon=rest.epsilon, delta=rest.delta)
    left.check(name, settings, objective, centre_space(objective, BitSource(0)))
    given = before(settings)
    paid = terms.charge(objective)
    paid.plan(plan.mechanism.event)
    run = paid.run(objective, centre_space(objective, paid.source), terms.name, budget=rest)
    path = paid.solved(name, settings, run)

    def bought() -> tuple[list[Floats], Curve]:
        sets = nested_sets(objective, settings, path, wider, run.coins)
        steps = objective.cost_steps(sets, plan.most, plan.shift)
        return sets, plan.read(paid.release(plan.mechanism, steps))

    sets, curve = paid.attempt(name, bought)
    shown = {**realised(name, given, path), "ks": list(wider), "share": SHARE}
    return _chosen(curve, sets, paid, objective, shown)


def _chosen(
    curve: Curve, sets: list[Floats], paid: Any, objective: CentersObjective, shown: dict[str, Any]
) -> ChosenK:
    """The choice, with the release that closes the account."""
    centers = sets[curve.ks.tolist().index(curve.k)]
    released = {"k": curve.k, "ks": curve.ks, "costs": curve.costs, "centers": centers}
    release = paid.close(objective.domain, {**shown, "bound": curve.bound}, released)
    return ChosenK(
        curve.k, curve.ks, curve.costs, curve.errors, curve.bends, curve.bound, centers, release
    )


def _declared(domain: Any) -> Domain:
    """A declared domain; a pair of bounds is a box."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Sequence) and not isinstance(domain, str) and len(domain) == 2:
        return Box(*domain)
    raise DeclarationTypeError(
        f"domain ({type(domain).__name__}) must be the declared domain of a record; pass "
        "domain=(low, high), a Box or a Schema, from documentation and never from the data"
    )


def _with_neighbours(ks: Any) -> tuple[int, ...]:
    """The numbers to choose from, checked, and one more on either side."""
    try:
        given = list(ks)
    except TypeError:
        raise DeclarationTypeError(
            f"ks ({type(ks).__name__}) must be numbers of clusters; pass range(2, 21)"
        ) from None
    whole = given and all(is_whole(k) for k in given)
    if (
        not whole
        or given != list(range(given[0], given[0] + len(given)))
        or not 2 <= given[0] <= given[-1] <= MOST_CLUSTERS
        or len(given) < 2
    ):
        raise DeclarationError(
            f"ks must be two or more consecutive whole numbers from 2 to {MOST_CLUSTERS}; pass "
            "range(2, 21)"
        )
    return tuple(range(int(given[0]) - 1, int(given[-1]) + 2))
