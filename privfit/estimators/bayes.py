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
from privfit.base import blas
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_sparse
from privfit.domains import Box
from privfit.domains.products import products_of_rows
from privfit.estimators.common import (
    ExactAccuracy,
    PrivateEstimator,
    block_by_block,
    read_labels,
    read_table,
    refuse,
    remember_columns,
    reread_table,
    with_labels,
)
from privfit.estimators.serving import bayes_model
from privfit.features.bayes import NaiveBayes
from privfit.privacy.ledger import Ledger
from privfit.records import is_partitioned
from privfit.records.answers import Form
from privfit.records.binary import BinaryRecords, bound_ones
from privfit.runs.payment import Terms

BINARY = Box(0, 1)  # columns of zeros and ones, for whoever counts and names them


def binary_records(
    estimator: Any, X: Any, y: Any, declared: Any
) -> tuple[BinaryRecords, NDArray[Any]]:
    """The records, wherever they are stored, and their classes: a single class if y is None."""
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
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure.
    classes : sequence or None, default=None
        The declared labels. If None, they are read from the data, with a warning.
    max_ones : int or None, default=None
        Maximum number of features that a record counts with; a record with more keeps a random
        sample of them. The noise grows with it, so declare what a record really needs. By default
        all features.
    alpha : float, default=1.0
        Number of pseudo-records with each feature, and as many without it, in each class.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Attributes
    ----------
    class_count_ : array of shape (n_classes,)
        Noisy sizes of the classes, at least 1.
    feature_count_ : array of shape (n_classes, n_features)
        Noisy numbers of records of each class with each feature, between 0 and the class's size.
    class_log_prior_ : array of shape (n_classes,)
        Logarithms of the classes' probabilities.
    feature_log_prob_ : array of shape (n_classes, n_features)
        Logarithms of the features' probabilities in each class.
    classes_ : array of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of columns of the records.
    feature_names_in_ : array of str
        Names of the columns, if they have names.
    release_ : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    SelectFeatures : Private selection of features.
    HashWords : Binary features of texts.

    Notes
    -----
    Released: the noisy counts. Cost: one release of the whole budget, with discrete Laplace noise,
    or discrete Gaussian noise if delta > 0. Predictions are post-processing and cost nothing.

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
        classes: Any = None,
        max_ones: int | None = None,
        alpha: float = 1.0,
        adjacency: str = "replace",
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.max_ones = max_ones
        self.alpha = alpha
        self.adjacency = adjacency
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state

    @blas.calm
    def fit(self, X: Any, y: Any, **refused: Any) -> BernoulliNB:
        """Fit to private records and their labels.

        The whole budget is charged to the ledger before anything is drawn; invalid input is refused
        before anything is charged.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            Private records.
        y : array-like of shape (n,), str or Dask collection
            Private labels, or the name of their column in a table.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        BernoulliNB
            The fitted estimator.
        """
        refuse(refused)
        X, y = with_labels(X, y)
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
        remember_columns(self, X, BINARY.bind(records.n_features), y, records.column_names)
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

    @block_by_block
    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Logarithms of P(class) P(record given class), with all features of a record.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n, n_classes)
            The logarithms.
        """
        check_is_fitted(self)
        records = reread_table(self, X, BINARY) > 0
        found = (
            np.asarray(records @ self._weights.T)
            if is_sparse(records)
            else products_of_rows(records, self._weights.T)
        )
        return found + self._offsets

    @block_by_block
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n, n_classes)
            The logarithms.
        """
        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    @block_by_block
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n, n_classes)
            The probabilities.
        """
        return np.exp(self.predict_log_proba(X))

    @block_by_block
    def decision_function(self, X: Any) -> Floats:
        """The log-odds of the second class; with several classes the joint log-probabilities.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            The values.
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    @block_by_block
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each record.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n,)
            The labels.
        """
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def _form(self, name: str) -> Form:
        """What a method returns, for `block_by_block`."""
        k = len(self.classes_)
        if name == "predict":
            return Form(self.classes_.dtype)
        return Form(np.float64, None if name == "decision_function" and k == 2 else k)

    def to_sklearn(self) -> Any:
        """The fitted model as a pipeline of scikit-learn alone, which predicts the same.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The ``BernoulliNB`` of scikit-learn with the released counts.

        Notes
        -----
        It is post-processing and costs nothing (docs/serving.md).
        """
        check_is_fitted(self)
        return bayes_model(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # of numbers whose sign alone it reads
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """The same for scikit-learn before 1.6."""
        return {"poor_score": True}
