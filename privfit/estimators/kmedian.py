"""Private k-median: over public facilities, or of centres anywhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privfit.base import blas
from privfit.base.cautions import OldNameWarning, call_depth, caution_score
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats
from privfit.clustering import kmedian, medians
from privfit.clustering.starts import centre_space
from privfit.estimators.clusterer import Clusterer
from privfit.estimators.common import as_domain, read_table, refuse, remember_columns
from privfit.objectives import CentersObjective, FacilityObjective
from privfit.objectives.facility import check_clip
from privfit.privacy.ledger import Ledger
from privfit.privacy.released import ReleasedFloat
from privfit.records import is_partitioned
from privfit.runs.door import settings_of
from privfit.runs.heartbeats import heard
from privfit.runs.paths import Generation
from privfit.runs.payment import Terms
from privfit.runs.spaces import Subsets

# For one version: it was the search of Gupta et al. until now.
LOCAL = (
    "solver 'local' of KMedian is Local now, as everywhere, and no longer the swaps of Gupta et "
    "al.; pass solver='swaps' for these, or solver=Local() for this search without a warning"
)
NO_CLIP = (0.0, 1e30)  # beyond every distance of a domain


def _named(metric: Any) -> str:
    """The name of a metric, for a `Release`."""
    return metric if isinstance(metric, str) else "a metric of their own"


class KMedian(Clusterer):
    """Choose k public facilities, or any k centres, near the records: private k-median.

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
        Needed if there are no facilities.
    facilities : array of shape (f, d) or None, default=None
        The public places to choose from, in the coding of the domain; with a user-defined metric
        any sequence that it understands. With None, centres may be anywhere in the domain; this
        needs ``metric="l2"``.
    clip : pair (lo, hi) or None, default=None
        Public bounds of a distance; the narrower, the less noise. By default none. A user-defined
        metric needs them.
    metric : {'l1', 'l2'} or callable (records, facilities) -> (rows, f), default='l1'
        The distance. A user-defined function must treat each record by itself.
    solver : str or settings, default='auto'
        'auto' is 'synopsis' for records with at most 3 columns, and 'greedy' otherwise. Or 'swaps',
        'coreset', 'local', 'dpsga', 'privgene', 'eem', 'subsample', or settings such as
        ``Greedy(swaps=4)``. Or a `Solver` of your own, or the name of one that a package offers.
        Without facilities, 'auto' is 'cell_medians' for one or two columns; for more, a public
        rule chooses 'medians', 'hybrid' or 'mean', as that of `KMeans` does.
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
        Its method `alive`, if it has one, is called about every second while the fit lasts.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    facilities_ : array of int of shape (n_clusters,)
        Indices of the chosen facilities; only if there are facilities.
    cluster_centers_ : array of shape (n_clusters, d)
        The chosen facilities, a list for a user-defined metric; or the centres.
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
    Greedy, Synopsis, Coreset, Swaps : Settings of solvers.

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

    @heard
    @blas.calm
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
        if self.facilities is None:
            return self._fit_anywhere(X)
        with self._bounded():  # a metric of ones own
            objective = self._objective(X)
        solver = kmedian.automatic(objective) if self._is_auto else self.solver
        if isinstance(solver, str) and solver == "local":
            warnings.warn(LOCAL, OldNameWarning, stacklevel=call_depth())
        name, settings = settings_of(solver, kmedian.METHODS)
        space = Subsets(objective.n_facilities, int(self.n_clusters))
        path, account, used = self._run(name, settings, objective, lambda _: space)
        self.facilities_, self.path_ = np.sort(path.answer), path
        if objective.domain is None:
            self.cluster_centers_: Any = [self.facilities[i] for i in self.facilities_]
        else:
            remember_columns(self, X, objective.domain, packed=objective.column_names)
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

    def _fit_anywhere(self, X: Any) -> KMedian:
        """Fit centres that are not facilities: anywhere in the domain."""
        domain = as_domain(self.domain, type(self).__name__)
        clip = check_clip(NO_CLIP if self.clip is None else self.clip)
        table = X if is_partitioned(X) else read_table(self, X, domain)
        objective = CentersObjective(
            table, self.n_clusters, domain, n_threads=self.n_threads, adjacency=self.adjacency
        )
        solver = self.solver
        if self._is_auto:
            terms = Terms.of(self)
            terms.refuse_infinity()
            size = terms.size(objective)
            solver = medians.best_of(objective, terms.budget, terms.neighbours, size)
        name, settings = settings_of(solver, medians.METHODS)
        path, account, used = self._run(
            name, settings, objective, lambda source: centre_space(objective, source)
        )
        centers = objective.project(path.answer)
        remember_columns(self, X, objective.domain, packed=objective.column_names)
        self.domain_, self.cluster_centers_, self.path_ = objective.domain, centers, path
        self.metric_, self.clip_ = "l2", clip
        shown = {**used, "n_clusters": self.n_clusters, "clip": self.clip_, "metric": "l2"}
        self.release_ = account.close(self.domain_, shown, {"centers": centers})
        return self

    def _check_sizes(self) -> None:
        self._check_clusters()
        if self.facilities is None:
            if not isinstance(self.metric, str) or self.metric != "l2":
                raise DeclarationError(
                    f"metric ({_named(self.metric)}) must be 'l2' if there are no facilities; pass "
                    "metric='l2', or the public places to choose from as facilities=places, and "
                    "never the records"
                )
            return
        if not hasattr(self.facilities, "__len__"):
            raise DeclarationTypeError(
                f"facilities ({type(self.facilities).__name__}) must be a sequence of places; pass "
                "an array (f, d)"
            )
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

    def to_sklearn(self) -> Any:
        """The fitted model as a pipeline of scikit-learn alone, which predicts the same.

        Returns
        -------
        sklearn.pipeline.Pipeline
            Stock transformers and a stock model with the released centres: ``KMeans``, whose
            prediction is the nearest centre in l2, or ``KNeighborsClassifier`` for l1.

        Notes
        -----
        It is post-processing and costs nothing. What it takes and refuses is in docs/serving.md.
        """
        check_is_fitted(self)
        if self.domain_ is None:
            raise DeclarationError(
                f"metric ({_named(self.metric_)}) must be 'l1' or 'l2' for a model of scikit-learn "
                "alone; pickle the model together with your metric"
            )
        return self._stock_pipeline(self.metric_)

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
        members = np.arange(len(self.cluster_centers_))
        cost = kmedian.private_cost(objective, members, noise, paid)
        shown = {"clip": self.clip_, "metric": _named(self.metric_)}
        return ReleasedFloat(cost, paid.close(self.domain_ or "", shown, {"cost": cost}))
