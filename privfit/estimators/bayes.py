"""Private naive Bayes for binary features."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from privfit._kernels import threads
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.domains import Box
from privfit.estimators.common import (
    ExactAccuracy,
    PrivateEstimator,
    read_labels,
    read_table,
    refuse,
    remember_columns,
    reread_table,
)
from privfit.features.bayes import NaiveBayes
from privfit.privacy.ledger import Ledger
from privfit.records import is_partitioned
from privfit.records.binary import BinaryRecords, bound_ones
from privfit.runs.payment import Terms

BINARY = Box(0, 1)  # columns of zeros and ones, for whoever counts and names them


def binary_records(
    estimator: Any, X: Any, y: Any, declared: Any
) -> tuple[BinaryRecords, NDArray[Any]]:
    """The records, wherever they lie, and their classes: one for all of them if y is None."""
    what, n_threads = type(estimator).__name__, estimator.n_threads
    if is_partitioned(X):
        classes = np.zeros(1) if y is None else read_labels(y, declared, what, True)[1]
        read = partial(_read, classes=classes)
        return BinaryRecords.of(X, y, len(classes), n_threads, read), classes
    table = read_table(estimator, X, None)
    if y is None:
        codes, classes = np.zeros(table.shape[0], dtype=np.int32), np.zeros(1)
    else:
        codes, classes = read_labels(y, declared, what)
    return BinaryRecords.of(table, codes, len(classes), n_threads), classes


def _read(X: Any, y: Any, *, classes: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """A block of records and their positions among the classes."""
    table = read_table(None, X, None)
    return table, np.zeros(table.shape[0]) if y is None else read_labels(y, classes, "fit")[0]


class BernoulliNB(ExactAccuracy, PrivateEstimator):
    """Naive Bayes for binary features under differential privacy.

    A feature is present where X > 0.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit. With delta = 0 the guarantee is pure.
    max_ones : int, optional
        A record counts with at most so many of its features; of more it keeps a random sample. The
        noise grows with it, so declare what a record really needs. By default all features.
    alpha : float
        Pseudo-records with, and as many without, each feature, in each class.
    classes : sequence
        The labels, declared. Without them they are read off the data, with a warning.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee. Under the latter the number of records is private.
    ledger : Ledger, optional
        Where the budget is charged; by default a ledger of the fit's own.
    n_threads : int, optional
        By default all cores of this process. It changes speed and nothing else.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.

    Attributes
    ----------
    class_count_ : (classes,)
        Noisy sizes of the classes, at least 1.
    feature_count_ : (classes, d)
        Noisy numbers of records of a class that have a feature, between 0 and the class's size.
    class_log_prior_, feature_log_prob_ : (classes,), (classes, d)
        What follows from them, as scikit-learn names it.
    classes_, n_features_in_, feature_names_in_
    release_ : Release
        What was drawn, what it cost and under which declarations.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import BernoulliNB
    >>> coins = np.random.default_rng(0)
    >>> y, labels = coins.integers(0, 2, (2, 4000))
    >>> X, fresh = (coins.random((4000, 6)) < np.where(k, 0.6, 0.2)[:, None] for k in (y, labels))
    >>> model = BernoulliNB(1.0, classes=[0, 1]).fit(X, y)
    >>> bool(model.score(fresh, labels) > 0.8)  # of public records
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        max_ones: int | None = None,
        alpha: float = 1.0,
        classes: Any = None,
        adjacency: str = "replace",
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_ones = max_ones
        self.alpha = alpha
        self.classes = classes
        self.adjacency = adjacency
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **refused: Any) -> BernoulliNB:
        """Fit to private records X (n, d) and their labels y; both may lie in parts (`Stream`).

        The whole budget is charged to the ledger before anything is drawn; wrong input is refused
        before it is charged.
        """
        refuse(refused)
        settings = NaiveBayes(self.alpha)
        if y is None:
            raise DeclarationError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; pass "
                "the labels"
            )
        records, classes = binary_records(self, X, y, self.classes)
        ones = bound_ones(self.max_ones, records.n_features)
        terms = Terms.of(self)
        threads.resolve(self.n_threads)  # is it a number of threads?
        if terms.budget.epsilon > 0:  # the ledger refuses 0
            settings.noise(ones, terms.budget, terms.neighbours)
        paid = terms.charge(records)
        counts = settings(records, ones, paid)
        remember_columns(self, X, BINARY.bind(records.n_features))
        self.classes_ = classes
        for name, value in counts.fitted(self.alpha).items():
            setattr(self, name, value)
        self.release_ = paid.close(
            f"binary features, at most {ones} ones a record",
            {**asdict(settings), "max_ones": ones},
            {"classes": classes.copy(), "class_count": counts.sizes.copy(),
             "feature_count": counts.ones.copy()},
        )  # fmt: skip
        return self

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """(n, classes): ln P(class) P(record given class), with all features of a record."""
        check_is_fitted(self)
        records = reread_table(self, X, BINARY) > 0
        return np.asarray(records @ self._weights.T) + self._offsets

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, classes): logarithms of `predict_proba`."""
        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes): probabilities of the classes."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """The log odds of the second class, (n,), or for several classes (n, classes) as above."""
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,): the most probable class of each record."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # of numbers whose sign alone it reads
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """The same for scikit-learn before 1.6."""
        return {"poor_score": True}
