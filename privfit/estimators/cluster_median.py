"""Private k-median over public facilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privfit._kernels.random import BitSource
from privfit.checks import is_sparse, is_whole
from privfit.domains import Domain, Schema
from privfit.estimators.common import (
    as_domain,
    read_table,
    refuse,
    remember_columns,
    reread_table,
)
from privfit.kmedian import SOLVERS, automatic, private_cost
from privfit.ledger import Ledger
from privfit.objectives import FacilityObjective
from privfit.paths import Generation
from privfit.solvers import check_plan, open_grant, progress, settings_of
from privfit.spaces import Subsets

Floats: TypeAlias = NDArray[np.float64]

NO_CLIP = (0.0, 1e30)  # beyond every distance of a domain


class KMedian(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """k-median under differential privacy: k of the public facilities, near to the records.

    Parameters
    ----------
    n_clusters : int
        k.
    epsilon, delta : float
        The budget of a fit.
    facilities : (f, d) array
        The public places to choose from, as the domain codes records; for a metric of your own any
        sequence that it understands.
    clip : (lo, hi), optional
        Public bounds of a distance. By default none; the narrower, the less noise. A metric of
        your own needs them.
    metric : 'l1', 'l2' or callable (records, facilities) -> (rows, f)
        The distance. A function of your own must treat each record by itself.
    domain : pair of bounds, Domain or Schema, optional
        What a record may be; by default the box around the facilities. Records are clipped to it.
    solver : str or settings
        'auto' is 'synopsis' for records of at most 3 columns, else 'greedy'. Else 'local',
        'coreset', 'dpsga', 'privgene', 'eem', 'subsample', or settings such as ``Greedy(swaps=4)``.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee. Under the latter the number of records is private.
    n_public : int, optional
        A public, possibly rough number of records, which some solvers need under 'add_remove'.
    ledger : Ledger, optional
        Where the budget is charged; by default a ledger of the fit's own.
    n_threads : int, optional
        By default all cores of this process. It changes speed and nothing else.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object
        Told of each generation; released values only.
    verbose : int
        1 shows a progress bar, if tqdm is installed.

    Attributes
    ----------
    facilities_ : (k,)
        Indices of the chosen facilities.
    cluster_centers_ : (k, d)
        The chosen facilities; a list for a metric of your own.
    domain_, n_features_in_, feature_names_in_
    release_ : Release
        What was drawn, what it cost and under which declarations.

    Labels and costs of the fitted records are private and not kept: `predict` gives the labels of
    any records to who has them, `private_cost` publishes a cost from the ledger.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMedian
    >>> homes = np.random.default_rng(0).normal([[2, 2], [7, 6]], 0.5, (2000, 2, 2)).reshape(-1, 2)
    >>> places = np.array([[x, y] for x in range(10) for y in range(10)])
    >>> model = KMedian(2, epsilon=1.0, facilities=places, domain=(0, 9)).fit(homes)
    >>> sorted(model.cluster_centers_.tolist())
    [[2.0, 2.0], [7.0, 6.0]]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        facilities: Any = None,
        clip: tuple[float, float] | None = None,
        metric: Any = "l1",
        domain: Any = None,
        solver: Any = "auto",
        adjacency: str = "replace",
        n_public: int | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        callback: Callable[[Generation], object] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.facilities = facilities
        self.clip = clip
        self.metric = metric
        self.domain = domain
        self.solver = solver
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **refused: Any) -> Any:
        """Choose facilities for private records X (n, d).

        The whole budget is charged to the ledger before anything is drawn; wrong input is refused
        before it is charged.
        """
        refuse(refused)
        what = type(self).__name__
        self._check_sizes(what)
        objective = self._objective(X)
        solver = automatic(objective) if self.solver == "auto" else self.solver
        name, settings = settings_of(solver, SOLVERS)
        if name == "synopsis":
            objective.coordinates()  # are they there? nothing is kept
        check_plan(settings, objective, self.adjacency, self.n_public, self.callback)
        source = BitSource.of(self.random_state)
        grant = open_grant(what, name, self.epsilon, self.delta, self.ledger)
        path = SOLVERS[name][1](
            objective,
            Subsets(objective.n_facilities, int(self.n_clusters)),
            settings,
            grant,
            source,
            progress(self.callback, self.verbose, what),
            adjacency=self.adjacency,
            n_public=self.n_public,
        )
        self.facilities_ = np.sort(path.answer)
        if objective.domain is None:
            self.cluster_centers_: Any = [self.facilities[i] for i in self.facilities_]
        else:
            remember_columns(self, X, objective.domain)
            self.cluster_centers_ = objective.places()[self.facilities_]
        self.domain_, self.metric_, self.clip_ = objective.domain, self.metric, objective.clip
        self.release_: Any = (
            None
            if grant is None
            else grant.close(
                self.adjacency,
                objective.domain or "distances of a metric of their own",
                {"solver": name, **asdict(settings), "clip": objective.clip},
                {"facilities": self.facilities_, "centers": self.cluster_centers_},
            )
        )
        return self

    def _check_sizes(self, what: str) -> None:
        if self.facilities is None:
            raise ValueError(
                f"{what} needs the public facilities to choose from; pass facilities=places, "
                "an array (f, d), and never the records"
            )
        if not is_whole(self.n_clusters) or self.n_clusters < 1:
            raise ValueError(
                f"n_clusters ({self.n_clusters!r}) must be a positive whole number; pass "
                "n_clusters=8"
            )
        if self.n_clusters > len(self.facilities):
            raise ValueError(
                f"n_clusters ({self.n_clusters}) must be at most the number of facilities "
                f"({len(self.facilities)}); pass fewer clusters or more facilities"
            )
        if self.clip is None and callable(self.metric):
            raise ValueError("clip must bound the distances of your own metric; pass clip=(lo, hi)")

    def _objective(self, X: Any) -> FacilityObjective:
        """The objective of these records, checked as scikit-learn checks them."""
        clip = NO_CLIP if self.clip is None else self.clip
        if callable(self.metric):
            return FacilityObjective(
                X, self.facilities, clip, n_threads=self.n_threads, metric=self.metric
            )
        domain = None if self.domain is None else as_domain(self.domain, type(self).__name__)
        table = read_table(self, X, domain)
        return FacilityObjective(
            table, self.facilities, clip, domain, self.n_threads, metric=self.metric
        )

    def transform(self, X: Any) -> Floats:
        """(n, k): the distance of each record, as the domain clips it, to each chosen facility."""
        check_is_fitted(self)
        if self.domain_ is None:
            return np.asarray(self.metric_(X, self.cluster_centers_), dtype=np.float64)
        records = _rounded(reread_table(self, X, self.domain_), self.domain_)
        name = "cityblock" if self.metric_ == "l1" else "euclidean"
        return np.asarray(cdist(records, self.cluster_centers_, name))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(n,): the position in `facilities_` of the one nearest to each record."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the summed clipped distance to the nearest chosen facility; not private."""
        return -float(np.clip(self.transform(X).min(axis=1), *self.clip_).sum())

    def private_cost(self, X: Any, epsilon: float) -> float:
        """The summed clipped distance of records to the nearest chosen facility, with noise.

        Charged to the ledger: epsilon, pure. The noise is discrete Laplace of scale (hi - lo) /
        epsilon under 'replace' and hi / epsilon under 'add_remove'.
        """
        check_is_fitted(self)
        table = X if self.domain_ is None else reread_table(self, X, self.domain_)
        objective = FacilityObjective(
            table, self.cluster_centers_, self.clip_, self.domain_, self.n_threads,
            metric=self.metric_,
        )  # fmt: skip
        source = BitSource.of(self.random_state)
        grant = open_grant(f"{type(self).__name__} cost", "", epsilon, 0.0, self.ledger)
        assert grant is not None
        members = np.arange(len(self.facilities_))
        cost = private_cost(objective, members, grant, source, self.adjacency)
        grant.close(self.adjacency, self.domain_ or "", {}, {"cost": cost})
        return cost

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _rounded(table: Any, domain: Domain) -> Floats:
    """Records (n, d) as they are measured: coded, clipped and rounded."""
    if isinstance(domain, Schema):
        return np.asarray(domain.encode(table).toarray() * float(domain.record_units()[0]))
    table = table.astype(np.float64)
    if is_sparse(table):
        table.sum_duplicates()
    whole: Any = domain.bind(table.shape[1]).quantise(table, uniform=True)
    whole = whole.toarray() if is_sparse(whole) else whole
    return np.asarray(whole * domain.record_units(uniform=True))
