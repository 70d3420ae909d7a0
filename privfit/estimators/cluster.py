"""Private k-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privfit._kernels.random import BitSource
from privfit.checks import is_sparse
from privfit.estimators.common import as_domain, decode_records, read_table, refuse
from privfit.kmeans import (
    METHODS,
    Clustering,
    best_of,
    centre_space,
    check_method,
)
from privfit.ledger import Budget, Ledger
from privfit.mechanisms import DiscreteLaplace
from privfit.objectives import CentersObjective
from privfit.paths import Generation, public_size
from privfit.solvers import SOLVERS, check_plan, open_grant, progress

Floats: TypeAlias = NDArray[np.float64]

SEARCHES = ("privgene", "eem", "local", "dpsga")


class KMeans(TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """k-means clustering under differential privacy.

    Parameters
    ----------
    n_clusters : int
        k.
    epsilon, delta : float
        The budget of a fit. With delta = 0 the guarantee is pure.
    domain : pair of bounds, Domain or Schema
        What a record may be, declared from documentation. Records are clipped to it. Distances are
        those of the columns as they are coded: declare columns of like width.
    solver : str or settings
        'auto' is 'tree' for one or two columns and 'hybrid' for more. Else 'lloyd', 'grid', 'tree',
        'hybrid', 'privgene', 'eem', 'local', 'dpsga', or settings such as ``Lloyd(steps=3)``.
    postprocess : None
        What is done to the released values afterwards.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee. Under the latter the number of records is private.
    n_public : int, optional
        A public, possibly rough number of records, which sets numbers of steps and cells.
    ledger : Ledger, optional
        Where the budget is charged; by default a ledger of the fit's own.
    n_threads : int, optional
        By default all cores of this process. It changes speed and nothing else.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object
        Told of each step; released values only.
    verbose : int
        1 shows a progress bar, if tqdm is installed.

    Attributes
    ----------
    cluster_centers_ : (k, d)
        The released centres, of records as the domain codes them.
    n_features_in_, feature_names_in_
    release_ : Release
        What was drawn, what it cost and under which declarations.

    There is no ``labels_`` and no ``inertia_``: both are computed from each record and are not
    released. `predict` gives labels to whoever holds the records; `private_inertia` releases the
    cost for a budget of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[-0.5, -0.5], [0.5, 0.0]], 2000, axis=0) + rng.normal(0, 0.1, (4000, 2))
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), random_state=0).fit(X)
    >>> sorted(np.round(model.cluster_centers_ + 1, 1).tolist())
    [[0.5, 0.5], [1.5, 1.0]]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        domain: Any = None,
        solver: Any = "auto",
        postprocess: Any = None,
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
        self.domain = domain
        self.solver = solver
        self.postprocess = postprocess
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **refused: Any) -> KMeans:
        """Fit to private records X (n, d); y is not looked at.

        The whole budget is charged to the ledger before anything is drawn; wrong input is refused
        before it is charged.
        """
        refuse(refused)
        if self.postprocess is not None:
            raise ValueError(f"postprocess ({self.postprocess!r}) must be None; leave it out")
        objective = self._objective(X, fitting=True)
        name, settings = _method_of(self.solver, objective)
        size = public_size(objective, self.adjacency, self.n_public)
        if name in METHODS:
            budget = Budget(self.epsilon, self.delta)
            check_method(settings, objective, budget, self.adjacency, size)
        else:
            check_plan(settings, objective, self.adjacency, self.n_public)
        source = BitSource.of(self.random_state)
        space = centre_space(objective, source)
        grant = open_grant("KMeans", name, self.epsilon, self.delta, self.ledger)
        run = (METHODS if name in METHODS else SOLVERS)[name][1]
        found: Any = run(
            objective,
            space,
            settings,
            grant,
            source,
            progress(self.callback, self.verbose, "KMeans"),
            adjacency=self.adjacency,
            n_public=self.n_public,
        )
        trace = found.trace if isinstance(found, Clustering) else None
        path = found.path if isinstance(found, Clustering) else found
        self.cluster_centers_ = objective.project(path.answer)
        self.release_: Any = (
            None
            if grant is None
            else grant.close(
                self.adjacency,
                objective.domain,
                {"solver": name, "n_clusters": self.n_clusters, **asdict(settings)},
                {"centers": self.cluster_centers_}
                | ({} if trace is None else {"trace": asdict(trace)}),
            )
        )
        return self

    def _objective(self, X: Any, fitting: bool) -> CentersObjective:
        domain = as_domain(self.domain, "KMeans")
        table = read_table(self, X, domain, fitting=fitting)
        return CentersObjective(table, self.n_clusters, domain, n_threads=self.n_threads)

    def private_inertia(self, X: Any, epsilon: float) -> float:
        """The sum of squared distances of records X to their nearest centres, released.

        Cost: one pure release of epsilon, charged to the ledger. One record changes the sum by at
        most the largest squared distance of the domain to its nearest centre.
        """
        check_is_fitted(self)
        objective = self._objective(X, fitting=False)
        centers = self.cluster_centers_[None]
        mechanism = DiscreteLaplace(epsilon, max(1, objective.spread(centers, "add_remove")))
        source = BitSource.of(self.random_state)
        ledger = self.ledger if self.ledger is not None else Ledger(epsilon)
        grant = ledger.reserve(epsilon, 0.0, "KMeans inertia")
        cost = -grant.release(mechanism, objective.scores(centers), source)[0]
        grant.close(self.adjacency, objective.domain)
        return max(0.0, float(cost * objective.unit))

    def _squares(self, X: Any) -> Floats:
        """(n, k) squared distances of records to centres, as the domain codes and clips them."""
        check_is_fitted(self)
        domain = as_domain(self.domain, "KMeans")
        x = decode_records(read_table(self, X, domain, fitting=False), domain)
        own = x.multiply(x).sum(axis=1) if is_sparse(x) else np.square(x).sum(axis=1)
        centers = self.cluster_centers_
        cross = np.asarray(x @ centers.T)
        return np.maximum(
            np.asarray(own).reshape(-1, 1) - 2 * cross + np.square(centers).sum(axis=1), 0.0
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,): the nearest centre of each record; not released."""
        return np.asarray(self._squares(X).argmin(axis=1).astype(np.int32))

    def fit_predict(self, X: Any, y: Any = None, **refused: Any) -> NDArray[Any]:
        """`fit`, then `predict` on the same records; the labels are not private."""
        return self.fit(X, y, **refused).predict(X)

    def transform(self, X: Any) -> Floats:
        """(n, k): the distance of each record to each centre."""
        return np.sqrt(self._squares(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centres. Not released."""
        return -float(self._squares(X).min(axis=1).sum())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """(k,): the names of `transform`'s columns: kmeans0, kmeans1, ..."""
        check_is_fitted(self)
        return np.array([f"kmeans{j}" for j in range(len(self.cluster_centers_))], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _method_of(solver: Any, objective: CentersObjective) -> tuple[str, Any]:
    """The name and the settings of a solver that is given by either."""
    if isinstance(solver, str) and solver == "auto":
        solver = best_of(objective)
    known = {**METHODS, **{name: SOLVERS[name] for name in SEARCHES}}
    for name, (kind, _) in known.items():
        if isinstance(solver, kind):
            return name, solver
        if isinstance(solver, str) and solver == name:
            return name, kind()
    raise ValueError(
        f"solver ({solver!r}) must be 'auto' or one of {', '.join(known)}, or settings such as "
        "Lloyd(steps=3); pass one of them"
    )
