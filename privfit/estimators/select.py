"""Private selection of binary features."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from privfit._kernels import threads
from privfit.base.errors import DeclarationError
from privfit.estimators.bayes import BINARY, binary_records
from privfit.estimators.common import PrivateEstimator, refuse, remember_columns
from privfit.features import selection
from privfit.features.selection import FeatureScores
from privfit.privacy.ledger import Ledger
from privfit.records.binary import bound_ones
from privfit.runs.payment import Terms


class SelectFeatures(SelectorMixin, PrivateEstimator):  # type: ignore[misc]
    """Select binary features under differential privacy.

    A feature is present where X > 0.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit. With delta = 0 the guarantee is pure.
    k : int
        At most so many features. The noise of a selection grows with it: by default 8, which a few
        thousand records bear at epsilon 1 (`docs/features.md`).
    criterion : str
        'purity_index', 'total_count' (needs no labels), 'difference_count' or 'information_gain'.
        The first is the cheapest that knows labels: adding a record moves two scores apart by one.
    method : str or settings
        'auto' has the least noise, by a public rule: noise on all scores if a record has fewer ones
        than features are wanted, else peeling. Or 'noisy', 'peeling', 'clusters', or settings:
        ``NoisyScores(threshold=50)``, ``ClusteredCounts(k=20)``,
        ``SparseVector(k=5, threshold=100)``. Private *threshold testing*, as published in 2014, is
        refused: it compares true scores with one noisy threshold, so that features with equal
        scores always fare alike, and no epsilon holds (`privfit.features.selection` has the
        counterexample).
    max_ones : int, optional
        A record counts with at most so many of its features; of more it keeps a random sample. By
        default all. 'noisy' and 'clusters' pay for it.
    classes : sequence
        The two labels, declared. Without them they are read off the data, with a warning.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee. Under the latter the number of records is private.
    n_public : int, optional
        A public, possibly rough number of records: under 'add_remove' it lessens the noise of
        information gain. Nothing else uses it.
    ledger : Ledger, optional
        Where the budget is charged; by default a ledger of the fit's own.
    n_threads : int, optional
        By default all cores of this process. It changes speed and nothing else.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.

    Attributes
    ----------
    ranking_ : (selected,)
        The selected features, best first where the method knows; of a sparse vector in order.
    n_features_in_, feature_names_in_
    release_ : Release
        What was drawn, what it cost and under which declarations; noisy scores where released.

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
        k: int = 8,
        criterion: str = "purity_index",
        method: Any = "auto",
        max_ones: int | None = None,
        classes: Any = None,
        adjacency: str = "replace",
        n_public: int | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.k = k
        self.criterion = criterion
        self.method = method
        self.max_ones = max_ones
        self.classes = classes
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **refused: Any) -> SelectFeatures:
        """Select by private records X (n, d) and their labels y; the total count ignores labels.

        Both may lie in parts: X a `Stream` and y a column's name, or both Dask collections.
        The whole budget is charged to the ledger before anything is drawn; wrong input is refused
        before it is charged.
        """
        refuse(refused)
        name, settings = selection.method_of(self.method, self.k)
        terms = Terms.of(self)
        problem = self._problem(X, y, terms)
        threads.resolve(self.n_threads)  # is it a number of threads?
        if terms.budget.epsilon > 0:  # the ledger refuses 0
            if name == "auto":
                name, settings = selection.best_of(problem, self.k, terms.budget)
            settings.check(problem, terms.budget)
        paid = terms.charge(problem.records)
        selected = settings(problem, paid)
        remember_columns(self, X, BINARY.bind(problem.d))
        self.ranking_ = selected.features
        parameters: dict[str, NDArray[Any]] = {"features": selected.features.copy()}
        if selected.scores is not None:
            parameters["noisy_scores"] = selected.scores
        self.release_ = paid.close(
            f"binary features, at most {problem.max_ones} ones a record",
            {
                "method": name,
                "criterion": self.criterion,
                "max_ones": problem.max_ones,
                **asdict(settings),
                **selected.notes,
            },
            parameters,
        )
        return self

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
