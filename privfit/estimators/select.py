"""Private selection of binary features."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from privfit._kernels import threads
from privfit.base import blas
from privfit.base.cautions import OldNameWarning, call_depth
from privfit.base.errors import DeclarationError
from privfit.estimators.bayes import BINARY, binary_records
from privfit.estimators.common import PrivateEstimator, refuse, remember_columns, with_labels
from privfit.features import selection
from privfit.features.selection import (
    FeatureScores,
    Selected,
    SelectionMethod,
    check_selected,
)
from privfit.features.sets import BySets
from privfit.privacy.ledger import Ledger
from privfit.records.binary import bound_ones
from privfit.runs.door import before, is_users, realised
from privfit.runs.payment import Paid, Terms
from privfit.runs.settings import DEPRECATED


class SelectFeatures(SelectorMixin, PrivateEstimator):  # type: ignore[misc]
    """Select binary features under differential privacy.

    A feature is present where X > 0.

    Parameters
    ----------
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure.
    classes : sequence or None, default=None
        The two declared labels. If None, they are read from the data, with a warning.
    solver : str or settings, default='auto'
        'auto' has the least noise, by a public rule: noise on all scores if a record has fewer ones
        than features are wanted, otherwise peeling. Or 'noisy', 'peeling', 'clusters', or settings:
        ``NoisyScores(threshold=50)``, ``ClusteredCounts(k=20)``, ``SparseVector(k=5,
        threshold=100)``. A search ('local', 'eem', ...) or a solver of yours looks for a set of k
        features with a high sum of scores; a method of your own that draws from the score of each
        feature inherits from `privfit.features.selection.SelectionMethod`. Private *threshold
        testing*, as published in 2014, is refused: it compares exact scores with one noisy
        threshold, so that features with equal scores are always treated alike, and no epsilon holds
        (`privfit.features.selection` has the counterexample).
    k : int, default=8
        Maximum number of features. The noise of a selection grows with it; the default suits a few
        thousand records at epsilon 1 (`docs/features.md`).
    criterion : str, default='purity_index'
        'purity_index', 'total_count' (needs no labels), 'difference_count' or 'information_gain'.
        The first is the cheapest that uses labels: adding a record changes the difference of two
        scores by at most one.
    max_ones : int or None, default=None
        Maximum number of features that a record counts with; a record with more keeps a random
        sample of them. By default all. The noise of 'noisy' and 'clusters' grows with it.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    n_public : int or None, default=None
        A public, possibly approximate number of records: under 'add_remove' it reduces the noise of
        information gain. Nothing else uses it.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    method : str or settings
        The old name of `solver`, which works with a warning for one version.

    Attributes
    ----------
    ranking_ : array of int of shape (n_selected,)
        The selected features, best first if the solver ranks them; with a sparse vector in order.
    n_features_in_ : int
        Number of columns of the records.
    feature_names_in_ : array of str
        Names of the columns, if they have names.
    release_ : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    Peeling, NoisyScores, SparseVector, ClusteredCounts : Settings of the methods.
    BernoulliNB : A classifier of binary features.

    Notes
    -----
    Released: the selected features, and with 'noisy' their noisy scores. Cost: the whole budget.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import SelectFeatures
    >>> coins = np.random.default_rng(0)
    >>> y = coins.integers(0, 2, 4000)
    >>> X = coins.random((4000, 50)) < 0.1
    >>> X[:, 7] |= y == 1
    >>> SelectFeatures(1.0, k=1, classes=[0, 1]).fit(X, y).get_support(indices=True).tolist()
    [7]
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        classes: Any = None,
        solver: Any = "auto",
        k: int = 8,
        criterion: str = "purity_index",
        max_ones: int | None = None,
        adjacency: str = "replace",
        n_public: int | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        method: Any = DEPRECATED,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.solver = solver
        self.k = k
        self.criterion = criterion
        self.max_ones = max_ones
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.method = method

    @blas.calm
    def fit(self, X: Any, y: Any = None, **refused: Any) -> SelectFeatures:
        """Select features by private records and their labels.

        The whole budget is charged to the ledger before anything is drawn; invalid input is refused
        before anything is charged.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            Private records.
        y : array-like of shape (n,), str or Dask collection, default=None
            Private labels, or the name of their column in a table. 'total_count' ignores them.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        SelectFeatures
            The fitted estimator.
        """
        refuse(refused)
        X, y = with_labels(X, y)
        name, settings = selection.method_of(self._declared_solver(), self.k)
        terms = Terms.of(self)
        problem = self._problem(X, y, terms)
        threads.resolve(self.n_threads)  # is it a number of threads?
        if name == "auto" and terms.budget.epsilon > 0:  # the ledger refuses 0
            name, settings = selection.best_of(problem, self.k, terms.budget)
        method = self._method(name, settings, terms)
        if terms.budget.epsilon > 0:
            method.check(problem.unread() if is_users(method) else problem, terms.budget)
        given = before(settings)
        paid = terms.charge(problem.records)
        selected = self._selected(name, method, problem, paid)
        remember_columns(self, X, BINARY.bind(problem.d), y, problem.records.column_names)
        self._remember_solver(name, given)
        self.ranking_ = selected.features
        parameters: dict[str, NDArray[Any]] = {"features": selected.features.copy()}
        if selected.scores is not None:
            parameters["noisy_scores"] = selected.scores
        domain = f"binary features, at most {problem.max_ones} ones a record"
        declared = {"solver": name, "criterion": self.criterion, "max_ones": problem.max_ones}
        if isinstance(method, BySets):  # whose solver does not have it
            declared["k"] = self.k
        used = {**declared, **realised(name, given, selected)}
        self.release_ = paid.close(domain, used, parameters)
        return self

    def _method(self, name: str, settings: Any, terms: Terms) -> SelectionMethod:
        """A method as it is, and a solver of a `Run` as one that searches sets of features."""
        if isinstance(settings, SelectionMethod):
            return settings
        return BySets(name, settings, self.k, terms)

    @staticmethod
    def _selected(
        name: str, method: SelectionMethod, problem: FeatureScores, paid: Paid
    ) -> Selected:
        """What a method selected, checked; notes of a user's are dropped, as it has looked."""
        if isinstance(method, BySets):  # which closes the account itself if its solver fails
            return method(problem, paid)

        def call() -> Selected:
            selected = method(problem, paid)
            check_selected(selected, problem.d)
            return replace(selected, notes={}) if is_users(method) else selected

        return paid.attempt(name, call)

    def _declared_solver(self) -> Any:
        """The solver, which may be passed under its old name."""
        if isinstance(self.method, str) and self.method == DEPRECATED:
            return self.solver
        if not isinstance(self.solver, str) or self.solver != "auto":
            raise DeclarationError(
                f"method ({self.method!r}) must be left out, since it is the old name of solver; "
                "pass solver alone"
            )
        warnings.warn(
            "method of SelectFeatures is solver now; pass solver=...",
            OldNameWarning,
            stacklevel=call_depth(),
        )
        return self.method

    def _problem(self, X: Any, y: Any, terms: Terms) -> FeatureScores:
        """The records and what is public about them."""
        if self.criterion == "total_count":
            y = None
        elif y is None:
            raise DeclarationError(
                f"criterion ({self.criterion!r}) requires y to be passed, but the target y is "
                "None; pass labels, or criterion='total_count'"
            )
        records, _ = binary_records(self, X, y, self.classes)
        declared, neighbours = terms.size(records), terms.neighbours
        return FeatureScores(
            records,
            self.criterion,
            bound_ones(self.max_ones, records.n_features),
            neighbours,
            records.n_records if neighbours.size_is_public else declared,
        )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.ranking_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags  # as new as tags themselves

        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.criterion != "total_count"
        tags.classifier_tags = ClassifierTags(multi_class=False)  # two classes
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """The same for scikit-learn before 1.6."""
        return {"requires_y": self.criterion != "total_count", "binary_only": True}
