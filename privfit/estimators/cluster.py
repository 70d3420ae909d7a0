"""Private clustering: k-means, and k-median over public facilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privfit._kernels.random import BitSource
from privfit.base.cautions import OldNameWarning, caution_score
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats
from privfit.base.validation import is_sparse, is_whole
from privfit.clustering import kmeans, kmedian
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.postprocess import mcmc
from privfit.clustering.starts import centre_space
from privfit.domains import Domain
from privfit.estimators.common import (
    PrivateEstimator,
    as_domain,
    check_names,
    read_table,
    refuse,
    remember_columns,
    reread_table,
)
from privfit.objectives import CentersObjective, FacilityObjective
from privfit.privacy.ledger import Ledger
from privfit.privacy.released import ReleasedFloat
from privfit.records import is_partitioned
from privfit.runs.door import before, realised, settings_of
from privfit.runs.listeners import bar
from privfit.runs.paths import Generation, Path
from privfit.runs.payment import Account, Terms
from privfit.runs.protocols import Space
from privfit.runs.settings import Settings
from privfit.runs.spaces import Subsets

# For one version: it was the search of Gupta et al. until now.
LOCAL = (
    "solver 'local' of KMedian is Local now, as everywhere, and no longer the swaps of Gupta et "
    "al.; pass solver='swaps' for these, or solver=Local() for this search without a warning"
)
BLOCK = 4096  # sparse records that are dense at a time
NO_CLIP = (0.0, 1e30)  # beyond every distance of a domain
CHAINS = {"mcmc": False, "anneal": True}  # by name: whether the chain is cooled


class _Clusterer(TransformerMixin, ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """Distances, labels and one paid run; a subclass makes the objective."""

    n_clusters: int
    epsilon: float
    delta: float
    adjacency: str
    n_public: int | None
    ledger: Ledger | None
    random_state: Any
    callback: Callable[[Generation], object] | None
    verbose: int
    solver: Any

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.solver, str) and self.solver == "auto"

    def _run(
        self, name: str, settings: Settings, objective: Any, space: Callable[[BitSource], Space]
    ) -> tuple[Path, Account, dict[str, Any]]:
        """Check, charge and run; return what was found, what paid for it, and the settings used."""
        terms = Terms.of(self)
        terms.check(name, settings, objective, space(BitSource(0)))
        given = before(settings)
        account = terms.open(objective)
        # Nothing is drawn from the caller's bits before the charge.
        run = account.run(objective, space(account.source), terms.name)
        path = account.solved(name, settings, run)
        self._remember_solver(name, given)
        return path, account, realised(name, given, path)

    def _check_clusters(self) -> None:
        if not is_whole(self.n_clusters) or self.n_clusters < 1:
            raise DeclarationError(
                f"n_clusters ({self.n_clusters!r}) must be a positive whole number; pass "
                "n_clusters=8"
            )

    def _apart(self, X: Any) -> Floats:
        """(n, k): the distance of each record to each centre."""
        raise NotImplementedError

    def transform(self, X: Any) -> Floats:
        """The distance of each record, clipped to the domain, to each centre: **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.

        Returns
        -------
        array of shape (n, n_clusters)
            The distances. They depend on each record: do not publish them for private records.
        """
        check_is_fitted(self)
        return self._apart(X)

    def _distances(self, X: Any, metric: str) -> Floats:
        """(n, k) distances of records, as the domain codes and clips them."""
        records = self.domain_.rounded(reread_table(self, X, self.domain_), uniform=True)
        if not is_sparse(records):
            return np.asarray(cdist(records, self.cluster_centers_, metric))
        blocks = (records[i : i + BLOCK].toarray() for i in range(0, records.shape[0], BLOCK))
        return np.concatenate([cdist(block, self.cluster_centers_, metric) for block in blocks])

    def _reread(self, X: Any) -> Any:
        """Records for an objective, checked if they are in memory and have columns."""
        whole = self.domain_ is not None and not is_partitioned(X)
        return reread_table(self, X, self.domain_) if whole else X

    def _check_parts(self, X: Any) -> None:
        """Check the names of columns of a stream or collection, which are known after reading."""
        if self.domain_ is not None and is_partitioned(X):
            check_names(self, X, self.domain_)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centre of each record: **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.

        Returns
        -------
        array of int of shape (n,)
            Indices of centres. They depend on each record: do not publish them for private records.
        """
        check_is_fitted(self)
        return np.asarray(self._apart(X).argmin(axis=1), dtype=np.int32)

    def fit_predict(self, X: Any, y: Any = None, **refused: Any) -> NDArray[np.int32]:
        """Call `fit`, then `predict` on the same records; the labels are **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            Private records, in memory.
        y : object, default=None
            Ignored.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        array of int of shape (n,)
            Indices of centres. They depend on each record: do not publish them.
        """
        return np.asarray(self.fit(X, y, **refused).predict(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: kmeans0, kmeans1, ...

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        array of str of shape (n_clusters,)
            The names.
        """
        check_is_fitted(self)
        stem = type(self).__name__.lower()
        names = [f"{stem}{j}" for j in range(len(self.cluster_centers_))]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KMeans(_Clusterer):
    """Cluster by k-means under differential privacy.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k.
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure.
    domain : pair of bounds, Domain or Schema
        What a record may be, declared from documentation. Records are clipped to it. Distances are
        those of the coded columns: declare columns of similar width.
    solver : str or settings, default='auto'
        'auto' is 'tree' for one or two columns and 'hybrid' for more. Otherwise 'lloyd', 'grid',
        'tree', 'hybrid', 'privgene', 'eem', 'local', 'dpsga', or settings such as
        ``Lloyd(steps=3)``. Or a `Solver` of your own, or the name of one that a package offers.
    postprocess : {'mcmc', 'anneal'} or None, default=None
        Cluster a likely synthetic data set, given everything that noisy Lloyd released, at no cost;
        'auto' is then 'lloyd'. After ``Lloyd(paper=True)`` the chain also proposes as published.
        `privfit.clustering.postprocess.mcmc` has the settings.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    n_public : int or None, default=None
        A public, possibly approximate number of records, which determines numbers of steps and
        cells.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each step, with released values only. If it returns True, the fit ends
        there, with what was released so far; the budget stays charged in full.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, d)
        The released centres, in the coding of the domain.
    domain_ : Domain
        The domain, with its number of columns.
    n_features_in_ : int
        Number of columns of the records.
    feature_names_in_ : array of str
        Names of the columns, if they have names.
    path_ : Path
        What each step released, with its cost; not in model files.
    release_ : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    KMedian : Chooses among public facilities.
    Lloyd, Hybrid, UniformGrid : Settings of solvers.

    Notes
    -----
    Released: the centres, and what the solver drew on the way to them. Cost: the whole budget.

    There is no ``labels_`` and no ``inertia_``: both depend on each record and are not released.
    Call `predict` on records you hold; `private_inertia` releases the cost for a budget of its own.

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
        """Fit to private records.

        The whole budget is charged to the ledger before anything is drawn; invalid input is refused
        before anything is charged.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            Private records.
        y : object, default=None
            Ignored.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        KMeans
            The fitted estimator.
        """
        refuse(refused)
        self._check_clusters()
        domain = as_domain(self.domain, type(self).__name__)
        given = None if self._is_auto else settings_of(self.solver, kmeans.METHODS)
        objective = self._objective(X, domain, *(given or ("auto", Settings())))
        name, settings = self._chosen(objective, given)
        path, account, used = self._run(
            name, settings, objective, lambda source: centre_space(objective, source)
        )
        trace, centers = getattr(path, "trace", None), objective.project(path.answer)
        parameters = {"centers": centers}
        if trace is not None:
            parameters["trace"] = trace.to_dict()
        if self.postprocess is not None:
            centers = objective.project(self._postprocessed(trace, settings.paper))
            parameters["postprocessed"] = centers
        remember_columns(self, X, objective.domain)
        self.domain_, self.cluster_centers_, self.path_ = objective.domain, centers, path
        shown = {**used, "n_clusters": self.n_clusters, "postprocess": self.postprocess}
        self.release_: Any = account.close(self.domain_, shown, parameters)
        return self

    def _objective(self, X: Any, domain: Domain, name: str, settings: Settings) -> CentersObjective:
        table = X
        if not is_partitioned(X):
            table = read_table(self, X, domain)
        elif settings.needs_order:
            raise DeclarationError(
                f"solver ({name!r}) needs all records at once, but X is a stream or a Dask "
                f"collection; pass another "
                "solver, or an array in memory"
            )
        return CentersObjective(
            table, self.n_clusters, domain, n_threads=self.n_threads, adjacency=self.adjacency
        )

    def _chosen(
        self, objective: CentersObjective, given: tuple[str, Any] | None
    ) -> tuple[str, Any]:
        """The solver that was passed, or the choice of 'auto'; post-processing needs Lloyd."""
        if self.postprocess is None:
            return given or settings_of(kmeans.best_of(objective), kmeans.METHODS)
        if not isinstance(self.postprocess, str) or self.postprocess not in CHAINS:
            raise DeclarationError(
                f"postprocess ({self.postprocess!r}) must be None, 'mcmc' or 'anneal'; pass one of "
                "them"
            )
        name, settings = given or ("lloyd", Lloyd())
        if not isinstance(settings, Lloyd) or settings.residual:
            raise DeclarationError(
                f"postprocess ({self.postprocess!r}) needs the counts and sums of plain noisy "
                "Lloyd steps; pass solver='lloyd'"
            )
        return name, settings

    def _postprocessed(self, trace: Any, paper: bool) -> Floats:
        """The centres of a likely data set; only released values are used."""
        told = None
        if self.verbose:
            show = bar(f"{type(self).__name__} {self.postprocess}", "step")
            told = lambda now: show(now.step, now.steps)  # noqa: E731
        synthetic = mcmc(
            trace, self.n_clusters, rng=self.random_state, anneal=CHAINS[self.postprocess],
            callback=told, paper=paper,
        )  # fmt: skip
        return synthetic.centers

    def private_inertia(self, X: Any, epsilon: float) -> ReleasedFloat:
        """Release the noisy sum of squared distances of records to their nearest centres.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            Private records.
        epsilon : float
            The budget, charged to the ledger.

        Returns
        -------
        ReleasedFloat
            The noisy sum, a float with an attribute `release`.

        Notes
        -----
        Cost: one pure release of epsilon. One record changes the sum by at most the largest squared
        distance between a point of the domain and its nearest centre.
        """
        check_is_fitted(self)
        objective = CentersObjective(
            self._reread(X), len(self.cluster_centers_), self.domain_, n_threads=self.n_threads,
            adjacency=self.adjacency,
        )  # fmt: skip
        self._check_parts(X)
        noise = kmeans.inertia_noise(objective, self.cluster_centers_, epsilon)
        paid = Terms.of(self, "KMeans inertia", epsilon=epsilon, delta=0.0).charge(objective)
        inertia = kmeans.private_inertia(objective, self.cluster_centers_, noise, paid)
        shown = {"n_clusters": len(self.cluster_centers_)}
        return ReleasedFloat(inertia, paid.close(self.domain_, shown, {"inertia": inertia}))

    def _apart(self, X: Any) -> Floats:
        return self._distances(X, "euclidean")

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centres: **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            Public records, or records that you may see.
        y : object, default=None
            Ignored.

        Returns
        -------
        float
            The exact score.
        """
        check_is_fitted(self)
        caution_score("private_inertia")
        return -float(np.square(self._apart(X).min(axis=1)).sum())


def _named(metric: Any) -> str:
    """The name of a metric, for a `Release`."""
    return metric if isinstance(metric, str) else "a metric of their own"


class KMedian(_Clusterer):
    """Choose k public facilities near the records (k-median) under differential privacy.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of facilities to choose, k.
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure.
    domain : pair of bounds, Domain, Schema or None, default=None
        What a record may be; by default the box around the facilities. Records are clipped to it.
    facilities : array of shape (f, d)
        The public places to choose from, in the coding of the domain; with a user-defined metric
        any sequence that it understands.
    clip : pair (lo, hi) or None, default=None
        Public bounds of a distance; the narrower, the less noise. By default none. A user-defined
        metric needs them.
    metric : {'l1', 'l2'} or callable (records, facilities) -> (rows, f), default='l1'
        The distance. A user-defined function must treat each record by itself.
    solver : str or settings, default='auto'
        'auto' is 'synopsis' for records with at most 3 columns, and 'greedy' otherwise. Or 'swaps',
        'coreset', 'local', 'dpsga', 'privgene', 'eem', 'subsample', or settings such as
        ``Greedy(swaps=4)``. Or a `Solver` of your own, or the name of one that a package offers.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    n_public : int or None, default=None
        A public, possibly approximate number of records, which some solvers need under
        'add_remove'.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation, with released values only. If it returns True, the fit ends
        there, with what was released so far; the budget stays charged in full.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    facilities_ : array of int of shape (n_clusters,)
        Indices of the chosen facilities.
    cluster_centers_ : array of shape (n_clusters, d)
        The chosen facilities; a list for a user-defined metric.
    domain_ : Domain
        The domain, with its number of columns.
    n_features_in_ : int
        Number of columns of the records.
    feature_names_in_ : array of str
        Names of the columns, if they have names.
    path_ : Path
        What each step released, with its cost; not in model files.
    release_ : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    KMeans : Centres anywhere in the domain.
    Greedy, Synopsis, Coreset, Gupta : Settings of solvers.

    Notes
    -----
    Released: the chosen facilities, and what the solver drew on the way to them. Cost: the whole
    budget.

    Labels and costs of the fitted records are private and not stored. Call `predict` on records you
    hold; `private_cost` releases a cost for a budget of its own.

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
        domain: Any = None,
        facilities: Any = None,
        clip: tuple[float, float] | None = None,
        metric: Any = "l1",
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
        self.domain = domain
        self.facilities = facilities
        self.clip = clip
        self.metric = metric
        self.solver = solver
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **refused: Any) -> KMedian:
        """Choose facilities for private records.

        The whole budget is charged to the ledger before anything is drawn; invalid input is refused
        before anything is charged. A user-defined metric is called where the records are stored.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            Private records.
        y : object, default=None
            Ignored.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        KMedian
            The fitted estimator.
        """
        refuse(refused)
        self._check_sizes()
        objective = self._objective(X)
        solver = kmedian.automatic(objective) if self._is_auto else self.solver
        if isinstance(solver, str) and solver == "local":
            warnings.warn(LOCAL, OldNameWarning, stacklevel=2)
        name, settings = settings_of(solver, kmedian.METHODS)
        space = Subsets(objective.n_facilities, int(self.n_clusters))
        path, account, used = self._run(name, settings, objective, lambda _: space)
        self.facilities_, self.path_ = np.sort(path.answer), path
        if objective.domain is None:
            self.cluster_centers_: Any = [self.facilities[i] for i in self.facilities_]
        else:
            remember_columns(self, X, objective.domain)
            self.cluster_centers_ = objective.places()[self.facilities_]
        self.domain_, self.metric_, self.clip_ = objective.domain, self.metric, objective.clip
        self.release_: Any = account.close(
            objective.domain or "distances of a metric of their own",
            {
                **used,
                "n_clusters": self.n_clusters,
                "clip": objective.clip,
                "metric": _named(self.metric),
            },
            {"facilities": self.facilities_, "centers": self.cluster_centers_},
        )
        return self

    def _check_sizes(self) -> None:
        if self.facilities is None:
            raise DeclarationError(
                "KMedian needs the public facilities to choose from; pass facilities=places, "
                "an array (f, d), and never the records"
            )
        if not hasattr(self.facilities, "__len__"):
            raise DeclarationTypeError(
                f"facilities ({type(self.facilities).__name__}) must be a sequence of places; pass "
                "an array (f, d)"
            )
        self._check_clusters()
        if self.n_clusters > len(self.facilities):
            raise DeclarationError(
                f"n_clusters ({self.n_clusters}) must be at most the number of facilities "
                f"({len(self.facilities)}); pass fewer clusters or more facilities"
            )
        if self.clip is None and callable(self.metric):
            raise DeclarationError(
                "clip must bound the distances of a user-defined metric; pass clip=(lo, hi)"
            )

    def _objective(self, X: Any) -> FacilityObjective:
        """The objective of these records, checked as scikit-learn checks them."""
        clip = NO_CLIP if self.clip is None else self.clip
        domain, table = None, X
        if not callable(self.metric):
            domain = None if self.domain is None else as_domain(self.domain, type(self).__name__)
            table = X if is_partitioned(X) else read_table(self, X, domain)
        return FacilityObjective(
            table, self.facilities, clip, domain, self.n_threads, metric=self.metric
        )

    def _apart(self, X: Any) -> Floats:
        if self.domain_ is None:
            return np.asarray(self.metric_(X, self.cluster_centers_), dtype=np.float64)
        return self._distances(X, "cityblock" if self.metric_ == "l1" else "euclidean")

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of clipped distances to the nearest chosen facility: **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            Public records, or records that you may see.
        y : object, default=None
            Ignored.

        Returns
        -------
        float
            The exact score.
        """
        check_is_fitted(self)
        caution_score("private_cost")
        return -float(np.clip(self._apart(X).min(axis=1), *self.clip_).sum())

    def private_cost(self, X: Any, epsilon: float) -> ReleasedFloat:
        """Release the noisy sum of clipped distances to the nearest chosen facility.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            Private records.
        epsilon : float
            The budget, charged to the ledger.

        Returns
        -------
        ReleasedFloat
            The noisy sum, a float with an attribute `release`.

        Notes
        -----
        Cost: one pure release of epsilon. The noise is discrete Laplace of scale (hi - lo) /
        epsilon under 'replace' and hi / epsilon under 'add_remove'.
        """
        check_is_fitted(self)
        objective = FacilityObjective(
            self._reread(X), self.cluster_centers_, self.clip_, self.domain_, self.n_threads,
            metric=self.metric_,
        )  # fmt: skip
        self._check_parts(X)
        terms = Terms.of(self, f"{type(self).__name__} cost", epsilon=epsilon, delta=0.0)
        noise = kmedian.cost_noise(objective, epsilon, terms.neighbours)
        paid = terms.charge(objective)
        members = np.arange(len(self.facilities_))
        cost = kmedian.private_cost(objective, members, noise, paid)
        shown = {"clip": self.clip_, "metric": _named(self.metric_)}
        return ReleasedFloat(cost, paid.close(self.domain_ or "", shown, {"cost": cost}))
