"""Private k-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privfit._kernels.random import BitSource
from privfit.base import blas
from privfit.base.cautions import caution_score
from privfit.base.errors import DeclarationError, PrivfitError
from privfit.base.tables import as_frame as frame_of
from privfit.base.typing import Floats
from privfit.clustering import kmeans
from privfit.clustering.chains import chain_of, check_chain, is_cut, postprocessed
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.mixed import Mixed, clustered, level_of
from privfit.clustering.parts import KMeansTrace
from privfit.clustering.sizes import Sizes
from privfit.clustering.starts import centre_space
from privfit.clustering.trace import LloydTrace
from privfit.clustering.units import in_units
from privfit.domains import Domain
from privfit.domains.once import read_once
from privfit.estimators.clusterer import Clusterer
from privfit.estimators.common import (
    LEARN,
    as_domain,
    as_linear_domain,
    read_table,
    refuse,
    remember_columns,
)
from privfit.objectives import CentersObjective
from privfit.privacy.ledger import Ledger
from privfit.privacy.released import ReleasedFloat
from privfit.records import is_partitioned
from privfit.records.places import of_a_fit
from privfit.runs.door import before, realised, settings_of
from privfit.runs.heartbeats import heard
from privfit.runs.listeners import bar
from privfit.runs.paths import Generation, Path
from privfit.runs.payment import Account, Terms
from privfit.runs.settings import Settings


@dataclass(frozen=True, eq=False, repr=False)
class _Found:
    """What a fit released, under which objective, and the account that is still open.

    `chain` names the post-processing, if there is any.
    """

    objective: CentersObjective
    settings: Any
    chain: str | None
    path: Path
    account: Account
    used: dict[str, Any]
    more: dict[str, Any]  # columns that were bought


def _best_of(objective: CentersObjective, terms: Terms) -> Settings:
    """The choice of 'auto'."""
    terms.refuse_infinity()
    size = terms.size(objective)
    return kmeans.best_of(objective, terms.budget, terms.neighbours, size)


def _columns(schema: Domain) -> dict[str, Any]:
    """The columns of a schema that had blanks, as a release shows them."""
    return {"columns": schema.to_dict()["columns"]}


class KMeans(Clusterer):
    """Cluster by k-means under differential privacy.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k.
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure.
    domain : pair of bounds, Domain, Schema or 'learn'
        What a record may be, declared from documentation. Records are clipped to it. Distances are
        those of the coded columns: declare columns of similar width. Missing numbers of a schema
        are filled in at the middle of their range, or at a declared `fill`. Blanks of a schema are
        bought from the budget; 'learn' is a schema of blanks, of the kinds that the table declares.
    solver : str or settings, default='auto'
        'auto' is 'tree' for one or two columns; for more, a public rule in the numbers of records,
        columns and clusters and the budget chooses 'over_seeded', 'hybrid' or 'mean'. Otherwise
        'lloyd', 'grid', 'tree', 'hybrid', 'over_seeded', 'mean', 'privgene', 'eem', 'local',
        'dpsga', or settings such as ``Lloyd(steps=3)``. Or a `Solver` of your own, or the name
        of one that a package offers.
    postprocess : {'auto', 'mcmc', 'anneal'} or None, default='auto'
        Improve the centres by a likely synthetic data set, given everything that was released, at
        no cost. 'auto' anneals if `solver` is 'auto' as well and chose a tree or a hybrid, in up to
        ten columns, and does nothing otherwise. With 'mcmc' or 'anneal' the solver 'auto' is
        'lloyd'; after ``Lloyd(paper=True)`` the chain also proposes as published. None leaves it
        out. `privfit.clustering.postprocess.mcmc` has the settings.
    scale : 'equal' or float, default=1.0
        What a level of a schema's category, or of a cut number, is coded as, from 0.1 to 1, where a
        number is coded from 0 to 1. 'equal' is sqrt(1/2): two different categories are then as far
        apart as the two ends of a range, so that a category weighs as much as a number.
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
        Its method `alive`, if it has one, is called about every second while the fit lasts.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, d)
        The released centres, in the coding of the domain; `centers_in_units` has them in the units
        of the table.
    cluster_sizes_ : array of shape (n_clusters,) or None
        Noisy numbers of records of the clusters, from counts that the solver released on its way.
        None if it released none: 'mean', 'grid', searches, and after a chain that replaced the
        centres of plain Lloyd steps.
    cluster_size_errors_ : array of shape (n_clusters,) or None
        The standard deviations of their noise; `cluster_size_intervals` has intervals.
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
        postprocess: Any = "auto",
        scale: Any = 1.0,
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
        self.scale = scale
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @heard
    @blas.calm
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
        check_chain(self.postprocess)
        domain = self._declared(X)
        given = None if self._is_auto else settings_of(self.solver, kmeans.METHODS)
        with self._bounded():
            found = (
                self._bought(X, domain, given)
                if domain.has_blanks
                else self._found(X, clustered(domain, self.scale), given)
            )
        objective = found.objective
        remember_columns(self, X, objective.domain, packed=objective.column_names)
        self._keep(found)
        return self

    def _declared(self, X: Any) -> Domain:
        """The declared domain; 'learn' is a schema of blanks, of the kinds that X declares."""
        name = type(self).__name__
        if isinstance(self.domain, str) and self.domain == LEARN:
            return as_linear_domain(self.domain, name, X, None)
        return as_domain(self.domain, name)

    def _found(self, X: Any, domain: Domain, given: tuple[str, Any] | None) -> _Found:
        """Fit under a domain without blanks."""
        objective = self._objective(X, domain, *(given or ("auto", Settings())))
        name, settings = self._chosen(objective, given, Terms.of(self))
        chain = self._chain(objective, name, settings)
        path, account, used = self._run(
            name, settings, objective, lambda source: centre_space(objective, source)
        )
        return _Found(objective, settings, chain, path, account, used, {})

    def _bought(self, X: Any, schema: Any, given: tuple[str, Any] | None) -> _Found:
        """Buy the blanks of a schema from the fit's budget, then fit with the rest.

        Everything is checked before the charge, under a schema that depends on no record. Which
        solver 'auto' is depends on how many columns were bought, a released number.
        """
        terms, mixed = Terms.of(self), Mixed(schema, self.scale)
        first = given or ("auto", Settings())
        table = of_a_fit(X) if is_partitioned(X) else read_once(mixed.wanted, X)
        purchase = mixed.purchase(table, terms, self.n_threads, *first)
        if purchase is None:
            found = self._found(table, mixed.coded(mixed.wanted), given)
            return replace(found, more=_columns(mixed.filled(mixed.wanted)))
        seen = self._objective(table, mixed.coded(purchase.stand_in), *first)
        left = purchase.terms(terms)
        name, settings = self._chosen(seen, given, left)
        chain = self._chain(seen, name, settings)
        left.check(name, settings, seen, centre_space(seen, BitSource(0)))
        taken = before(settings)
        paid = terms.charge(seen)
        bought = purchase.buy(paid)
        objective = self._objective(table, mixed.coded(bought), *first)
        if given is None:
            name, settings = self._rechosen(objective, left, (name, settings))
            chain, taken = self._chain(objective, name, settings), before(settings)
        account = purchase.account(paid)
        run = account.run(objective, centre_space(objective, account.source), terms.name)
        path = account.solved(name, settings, run)
        self._remember_solver(name, taken)
        used = {**realised(name, taken, path), "blanks": purchase.described(paid)}
        columns = _columns(mixed.filled(bought))
        return _Found(objective, settings, chain, path, account, used, columns)

    def _keep(self, found: _Found) -> None:
        """Post-process, close the account, and keep what was released."""
        objective, path = found.objective, found.path
        trace, centers = getattr(path, "trace", None), objective.project(path.answer)
        parameters: dict[str, Any] = {"centers": centers, **found.more}
        if trace is not None:
            parameters["trace"] = trace.to_dict()
        elif path.kept:
            trace = KMeansTrace.of(objective, path.kept)
            parameters["parts"] = trace.to_dict()
        shown = {**found.used, "n_clusters": self.n_clusters, "postprocess": found.chain}
        if level_of(self.scale) != 1.0:
            shown["scale"] = self.scale
        if found.chain is not None:
            try:
                centers = objective.project(self._postprocessed(trace, centers, found))
            except BaseException:  # such as Ctrl-C: what was paid for is released
                found.account.close(objective.domain, shown, parameters)
                raise
            parameters["postprocessed"] = centers
        replaced = found.chain is not None and isinstance(trace, LloydTrace)
        sizes: Sizes | None = None if replaced else getattr(path, "sizes", None)
        if sizes is not None:
            parameters |= {"sizes": sizes.counts, "size_noise": sizes.noise()}
        self.domain_, self.cluster_centers_, self.path_ = objective.domain, centers, path
        self.cluster_sizes_ = None if sizes is None else sizes.counts
        self.cluster_size_errors_ = None if sizes is None else sizes.errors
        self.release_: Any = found.account.close(self.domain_, shown, parameters)

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
        self, objective: CentersObjective, given: tuple[str, Any] | None, terms: Terms
    ) -> tuple[str, Any]:
        """The solver that was passed, or the choice of 'auto': Lloyd, if a chain was named."""
        if given is not None or self.postprocess in ("mcmc", "anneal"):
            return given or ("lloyd", Lloyd())
        return settings_of(_best_of(objective, terms), kmeans.METHODS)

    def _rechosen(
        self, objective: CentersObjective, terms: Terms, first: tuple[str, Any]
    ) -> tuple[str, Any]:
        """The choice of 'auto' under the columns that were bought; the first, if it is refused.

        The fit is paid for by now, so no choice may end it.
        """
        name, settings = self._chosen(objective, None, terms)
        try:
            terms.check(name, settings, objective, centre_space(objective, BitSource(0)))
        except PrivfitError:
            return first
        return name, settings

    def _chain(self, objective: CentersObjective, name: str, settings: Any) -> str | None:
        """The post-processing of what this solver releases."""
        columns = objective.n_features
        return chain_of(self.postprocess, name, settings, self._is_auto, columns)

    def _postprocessed(self, trace: Any, centers: Floats, found: _Found) -> Floats:
        """Better centres; only released values are used. An empty grid leaves no trace."""
        if trace is None or found.chain is None:
            return centers
        if self.postprocess == "auto" and is_cut(trace):
            return centers
        told, paper = None, getattr(found.settings, "paper", False)
        if self.verbose:
            show = bar(f"{type(self).__name__} {found.chain}", "step")
            told = lambda now: show(now.step, now.steps)  # noqa: E731
        return postprocessed(trace, centers, found.chain, self.random_state, paper, told)

    def cluster_size_intervals(self, level: float = 0.9) -> Floats:
        """Intervals of the sizes of the clusters, from the known noise of what was released.

        Parameters
        ----------
        level : float, default=0.9
            The probability with which each interval contains the size without noise.

        Returns
        -------
        array of shape (n_clusters, 2)
            Lower and upper ends. They may be below 0, as noisy sizes may.

        Notes
        -----
        It is post-processing and costs nothing. A size is that of the records nearest to a centre
        when these were counted: before the last step, or in the cells of a tree.
        """
        check_is_fitted(self)
        if self.cluster_sizes_ is None:
            raise DeclarationError(
                f"solver ({self.solver!r}) released no counts of clusters; fit with solver='tree', "
                "'lloyd', 'hybrid' or 'over_seeded', and postprocess='auto'"
            )
        noise = self.release_.parameters["size_noise"]
        return Sizes.from_noise(self.cluster_sizes_, noise).intervals(level)

    def centers_in_units(self, *, as_frame: bool = True) -> Any:
        """The centres by the names of columns, in the units of the table.

        Parameters
        ----------
        as_frame : bool, default=True
            Whether to return a pandas DataFrame; otherwise a dict of arrays.

        Returns
        -------
        pandas.DataFrame or dict of str to array
            One row for each centre: numbers in their declared range, and the shares of a category's
            levels, which add up to 1.

        Notes
        -----
        It is post-processing of `cluster_centers_` and costs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from privfit import Categorical, KMeans, Numeric, Schema
        >>> rng = np.random.default_rng(0)
        >>> old = np.arange(4000) % 2
        >>> people = {"age": 30 + 40 * old + rng.normal(0, 3, 4000),
        ...           "job": np.where(old, "none", "clerk")}
        >>> schema = Schema({"age": Numeric(17, 90), "job": Categorical(["clerk", "none"])})
        >>> model = KMeans(2, epsilon=1.0, domain=schema, random_state=0).fit(people)
        >>> sorted(model.centers_in_units()["age"].round(-1).tolist())
        [30.0, 70.0]
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        columns = in_units(self.domain_, self.cluster_centers_, names)
        if not as_frame:
            return columns
        return frame_of(columns, what="a frame of centres", instead="pass as_frame=False")

    def to_sklearn(self) -> Any:
        """The fitted model as a pipeline of scikit-learn alone, which predicts the same.

        Returns
        -------
        sklearn.pipeline.Pipeline
            Stock transformers and scikit-learn's ``KMeans`` with the released centres. Labels of
            records that are equally far from two centres, but for rounding, may differ.

        Notes
        -----
        It is post-processing and costs nothing. What it takes and refuses is in docs/serving.md.
        """
        return self._stock_pipeline("l2")

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
