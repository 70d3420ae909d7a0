"""Private linear classifiers: logistic regression and the linear support vector machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn import config_context
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privfit.base import blas
from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Array, Floats
from privfit.base.validation import is_sparse
from privfit.domains import Domain
from privfit.domains.codes import level_type
from privfit.estimators.common import (
    ExactAccuracy,
    PrivateEstimator,
    as_linear_domain,
    block_by_block,
    read_labels,
    read_table,
    refuse,
    remember_columns,
    reread_table,
    with_labels,
)
from privfit.estimators.serving import (
    Coder,
    logistic_model,
    support_model,
    with_threshold,
)
from privfit.linear.fitting import Fitted, Wanted, fit
from privfit.linear.labelled import Labelled
from privfit.linear.level_shares import read_shares
from privfit.linear.methods import METHODS, RENAMED
from privfit.linear.shapes import Shape, Shares, importances_of, part_of, shape_of
from privfit.linear.summary import Group, Intervals, Line, Released, Summary, half_width
from privfit.privacy.ledger import Ledger
from privfit.records import is_partitioned
from privfit.records.answers import Form
from privfit.records.places import of_a_fit
from privfit.runs.door import settings_of
from privfit.runs.heartbeats import heard
from privfit.runs.noise import Spread
from privfit.runs.paths import Generation, Paths
from privfit.runs.payment import Terms
from privfit.runs.settings import Settings

BLOCK = 1 << 13  # records whose probabilities stay in cache


class _LinearClassifier(ExactAccuracy, PrivateEstimator):
    """Fit, predict and check; a subclass names its loss."""

    _loss: str
    _measure: str  # what scores are

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        domain: Any = None,
        classes: Any = None,
        solver: Any = "auto",
        fit_intercept: bool = True,
        coding: Any = "auto",
        class_weight: Any = None,
        calibrate: bool | str = "auto",
        adjacency: str = "replace",
        n_public: int | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        callback: Callable[[Generation], object] | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.classes = classes
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.coding = coding
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @heard
    @blas.calm
    def fit(self, X: Any, y: Any, **refused: Any) -> Any:
        """Fit to private records and their labels.

        The whole budget is charged to the ledger before anything is drawn; invalid input is refused
        before anything is charged. With more than two classes, one model per class versus the rest
        is fitted; they share the budget equally and are accounted for together.

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
        object
            The fitted estimator.
        """
        refuse(refused)
        X, y = with_labels(X, y)
        terms = Terms.of(self)
        is_auto = isinstance(self.solver, str) and self.solver == "auto"
        solver = None if is_auto else settings_of(self.solver, METHODS, RENAMED)
        labelled = self._labelled(X, y, terms, *(solver or ("auto", Settings())))
        learned = isinstance(self.domain, str)
        wanted = Wanted(self._loss, solver, self.class_weight, self.calibrate, self.coding, learned)
        with self._bounded():
            found = fit(labelled, terms, wanted)
        return self._keep(X, y, found)

    def _labelled(self, X: Any, y: Any, terms: Terms, name: str, settings: Settings) -> Labelled:
        """The records and labels, checked as far as possible without packing them."""
        what, in_parts = type(self).__name__, is_partitioned(X)
        domain = as_linear_domain(self.domain, what, X, y)
        table = of_a_fit(X) if in_parts else read_table(self, X, domain)
        codes, classes = read_labels(y, self.classes, what, in_parts)
        if in_parts and settings.needs_order:
            raise DeclarationError(
                f"solver ({name!r}) needs all records at once, but X is a stream or a Dask "
                f"collection; pass "
                "solver='local' or another that takes sums alone, or an array in memory"
            )
        loss = "zero_one" if settings.counts_errors else self._loss
        labels = y if in_parts else codes.astype(level_type(len(classes)))
        read = partial(_codes, classes=classes) if in_parts else None
        return Labelled(
            table, labels, read, classes, loss, domain, self.n_threads, terms.neighbours,
            self.fit_intercept, self._weights(),
        )  # fmt: skip

    def _keep(self, X: Any, y: Any, found: Fitted) -> Any:
        """Store what was released."""
        self._remember_solver(*found.solver)
        remember_columns(self, X, found.domain, y, found.column_names)
        paths = found.paths
        self.path_: Any = Paths(paths) if len(paths) > 1 else next(iter(paths.values()))
        self.domain_, self.classes_ = found.domain, found.classes
        self.coef_, self.intercept_ = found.coef, found.intercept
        self.release_: Any = found.release
        return self

    def _weights(self) -> dict[str, Any]:
        """Weights of the loss, as the objective takes them."""
        return {}

    @block_by_block
    def decision_function(self, X: Any) -> Floats:
        """The margins <x, coef> + intercept.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            The margins; one column per class if there are more than two.
        """
        check_is_fitted(self)
        with config_context(assume_finite=True):  # `products` looks at each number anyway
            table = reread_table(self, X, self.domain_)
        try:
            with self._bounded():
                z = self._grid_domain.products(table, self.coef_)
        except InputError:
            reread_table(self, X, self.domain_)  # scikit-learn says what X contains
            raise
        z += self.intercept_
        return z[:, 0] if len(self.classes_) == 2 else z

    def _form(self, name: str) -> Form:
        """What a method returns, for `block_by_block`."""
        k = len(self.classes_)
        if name == "predict":
            return Form(self.classes_.dtype)
        return Form(np.float64, None if name == "decision_function" and k == 2 else k)

    def to_sklearn(self, threshold: float | None = None) -> Any:
        """The fitted model as a pipeline of scikit-learn alone, which predicts the same.

        Parameters
        ----------
        threshold : float or None, default=None
            As for `predict`: the pipeline is then within a ``FixedThresholdClassifier`` of
            scikit-learn 1.5 or later.

        Returns
        -------
        sklearn.pipeline.Pipeline or sklearn.model_selection.FixedThresholdClassifier
            Stock transformers and a stock model with the released weights. It has the same labels,
            margins and probabilities; labels of margins that are 0 but for rounding may differ.

        Notes
        -----
        It is post-processing and costs nothing. What it takes and refuses is in docs/serving.md.
        """
        check_is_fitted(self)
        if threshold is not None:
            self._check_threshold(threshold)
        coder = Coder.of(self._grid_domain, getattr(self, "feature_names_in_", None))
        return self._stock_model(coder, coder.weights(self.coef_), threshold)

    def _stock_model(self, coder: Coder, coef: Floats, threshold: float | None) -> Any:
        """The pipeline of a coder and scikit-learn's model with these weights."""
        raise NotImplementedError

    @property
    def _grid_domain(self) -> Domain:
        """The domain on the grid that the model was fitted on."""
        centred = self.release_ is not None and "origin" in self.release_.settings
        return self.domain_.centred() if centred else self.domain_

    @block_by_block
    def predict(self, X: Any, threshold: float | None = None) -> NDArray[Any]:
        """The predicted class of each record.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.
        threshold : float or None, default=None
            Of two classes, predict the second where its score is at least this. The score is the
            probability if the model has any, otherwise the margin, as in scikit-learn's
            ``FixedThresholdClassifier``. By default the class with the larger score.

        Returns
        -------
        array of shape (n,)
            The labels.

        See Also
        --------
        privfit.best_threshold : Chooses a threshold by a private ROC curve.
        """
        if threshold is not None:
            return np.asarray(self.classes_[self._reaches(X, threshold).astype(np.int64)])
        z = self.decision_function(X)
        index = (z > 0).astype(np.int64) if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def _reaches(self, X: Any, threshold: float) -> NDArray[np.bool_]:
        """(n,): whether the scores of the second class are at least a threshold."""
        check_is_fitted(self)
        self._check_threshold(threshold)
        proba = getattr(self, "predict_proba", None)
        scores = self.decision_function(X) if proba is None else proba(X)[:, 1]
        return np.asarray(scores >= threshold)

    def _check_threshold(self, threshold: float) -> None:
        if len(self.classes_) != 2:
            raise DeclarationError(
                f"threshold ({threshold!r}) is for two classes, and the model has "
                f"{len(self.classes_)}; leave it out"
            )
        if not isinstance(threshold, Real) or math.isnan(threshold):
            raise DeclarationError(
                f"threshold ({threshold!r}) must be a number; pass one such as 0.5"
            )

    def shape(self, column: str, label: Any = None, *, level: float = 0.9) -> Shape:
        """What each value of a column adds to the score of a class.

        It is computed from the released weights, so it costs nothing (docs/shapes.md).

        Parameters
        ----------
        column : str
            The name of a column of the schema.
        label : object, optional
            The class whose score it is. It must be given if there are more than two; of two
            classes it is the second.
        level : float, default=0.9
            The probability of the band around the values, where errors are known.

        Returns
        -------
        Shape
            The values with their steps or levels. They are centred over records, as far as releases
            tell where these are, and by assumed weights otherwise.

        See Also
        --------
        privfit.report.plotting.draw_shapes : Draws the shapes of all columns.
        """
        check_is_fitted(self)
        part, head = part_of(self.domain_, column), self._head(label)
        return shape_of(
            part, self._models[head], partial(self._errors, head), self._shares,
            label=self._heads[head], measure=self._measure, level=level,
        )  # fmt: skip

    def importances(self, label: Any = None) -> dict[str, float]:
        """How much each column changes the score: the standard deviation of its shape's values.

        Parameters
        ----------
        label : object, optional
            The class whose score it is; by default the mean over all classes that have a model.

        Returns
        -------
        dict of str to float
            The importance of each column by its name, the largest first. It is in the unit of the
            score, and over records as far as releases tell where they are, as for `shape`: no
            record is counted for it.
        """
        check_is_fitted(self)
        some = self._models if label is None else self._models[[self._head(label)]]
        return importances_of(self.domain_, some, self._shares)

    @property
    def _models(self) -> Floats:
        """(n_models, d + 1): the weights with the intercept behind them."""
        return np.column_stack([self.coef_, self.intercept_])

    @property
    def _heads(self) -> list[Any]:
        """The class of each row of `coef_`; with two classes, the second."""
        labels: list[Any] = self.classes_[-len(self.coef_) :].tolist()
        return labels

    def _head(self, label: Any) -> int:
        """The row of `coef_` of a class; if there is only one, by default that."""
        labels = self._heads
        if label is None and len(labels) == 1:
            return 0
        if label not in labels:
            raise DeclarationError(
                f"label ({label!r}) must be a class that has a model; pass one of "
                f"{', '.join(map(repr, labels))}"
            )
        return labels.index(label)

    def _errors(self, head: int, directions: Floats) -> Floats | None:
        """(m,): the standard deviations of linear functions of one model's weights."""
        found = self.weight_errors(directions)
        return found if found is None or found.ndim == 1 else found[:, head]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_names_(self) -> list[str]:
        """The names of the columns of `coef_`, if records have names."""
        check_is_fitted(self)
        return self.domain_.coded_names(getattr(self, "feature_names_in_", None))

    @property
    def _spreads(self) -> list[Spread] | None:
        """The noise of each model, in the space of its weights; None if it is not known."""
        check_is_fitted(self)
        known = None if self.release_ is None else self.release_.parameters.get("noise")
        if known is None:
            return None
        width = self.coef_.shape[1] + self.fit_intercept
        return [Spread.from_dict(one, width) for one in known]

    @property
    def standard_errors_(self) -> Floats | None:
        """The standard deviations of `coef_` and `intercept_` from noise alone, not from sampling.

        An array of shape (1, d + 1) or (n_classes, d + 1), the intercept last; None if the solver
        does not know the noise of its weights (docs/uncertainty.md).
        """
        spreads = self._spreads
        if spreads is None:
            return None
        errors = np.array([spread.errors for spread in spreads])
        return errors if self.fit_intercept else np.pad(errors, ((0, 0), (0, 1)))

    def weight_errors(self, directions: Any) -> Floats | None:
        """The standard deviations, from noise alone, of linear functions of the weights.

        Parameters
        ----------
        directions : array-like of shape (m, d + 1)
            The coefficients of each function: of `coef_`, and last of `intercept_`.

        Returns
        -------
        array of shape (m,) or (m, n_classes), or None
            The standard deviations; one column per class if there are more than two. None if the
            solver does not know the noise of its weights (docs/uncertainty.md).

        Notes
        -----
        They are of noise alone, not of sampling, and cost nothing.
        """
        spreads, width = self._spreads, self.coef_.shape[1]
        wanted: Any = (
            directions.tocsr() if is_sparse(directions) else np.asarray(directions, np.float64)
        )
        if wanted.ndim != 2 or wanted.shape[1] != width + 1:
            raise DeclarationError(
                f"directions {wanted.shape} must have the shape (m, {width + 1}); pass a row for "
                "each function, with the coefficient of the intercept last"
            )
        if spreads is None:
            return None
        asked = wanted if self.fit_intercept else wanted[:, :width]
        with self._bounded():
            errors = np.stack([spread.along(asked) for spread in spreads], axis=1)
        return errors[:, 0] if len(self.classes_) == 2 else errors

    def predict_interval(self, X: Any, level: float = 0.9) -> Intervals | None:
        """Intervals of margins and probabilities from the known noise of the weights.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.
        level : float, default=0.9
            The level of the intervals.

        Returns
        -------
        Intervals or None
            The intervals; None if the solver does not know the noise of its weights
            (docs/uncertainty.md).

        Notes
        -----
        They are of noise alone, not of sampling: an interval covers what the model would have said
        that the same solver reaches on the same records without noise. They cost nothing.
        """
        half_width(level)
        z = self.decision_function(X)
        rows = self._grid_domain.rounded(reread_table(self, X, self.domain_))
        ones = np.ones((rows.shape[0], 1))
        stack = sparse.hstack if is_sparse(rows) else np.hstack
        errors = self.weight_errors(stack([rows, ones]))
        return None if errors is None else Intervals.of(level, z, errors, self._odds)

    @property
    def _odds(self) -> Line | None:
        """What makes log odds of margins; None if there are no probabilities."""
        return Line(np.array(1.0), np.array(0.0))

    @property
    def _shares(self) -> Shares:
        """The parts of all records in all levels, as they were released; None if they were not."""
        return None if self.release_ is None else self.release_.parameters.get("shares")

    @property
    def _groups(self) -> list[Group]:
        """The columns of levels, with the parts of all records in each level."""
        levels = (part for part in self.domain_.parts.values() if part.kind != "line")
        return [Group(part, part.place, read_shares(part, self._shares)) for part in levels]

    def summary(self, level: float = 0.9) -> Summary:
        """The weights by name, with errors and intervals from the known noise.

        Parameters
        ----------
        level : float, default=0.9
            The level of the intervals.

        Returns
        -------
        Summary
            The weights: ``print`` it, or call ``to_frame()``. Weights of a column's levels have
            mean 0 over records, as for `shape`, if there is an intercept, which takes up the means:
            the same model.

        Notes
        -----
        Errors are of noise alone, not of sampling: an interval covers the weight that the same
        solver would have reached on the same records without noise. They cost nothing.
        """
        check_is_fitted(self)
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        settings = {} if self.release_ is None else self.release_.settings
        return Released(
            self.coef_names_, labels.tolist(), self.coef_,
            self.intercept_ if self.fit_intercept else None,
            self._groups, self.domain_.shares, self._spreads, str(settings.get("solver")),
        ).summary(level)  # fmt: skip


def _codes(y: Any, *, classes: Array) -> NDArray[np.int64]:
    """(n,): the positions of a block's labels among the classes."""
    return read_labels(y, classes, "fit")[0]


def _probabilities(z: Floats) -> Floats:
    """(n, n_classes): those of log odds (n,), or (n, n_classes) of each class versus the rest."""
    if z.ndim == 1:
        found = np.empty((len(z), 2))
        for first in range(0, len(z), BLOCK):
            some, part = z[first : first + BLOCK], found[first : first + BLOCK]
            expit(-some, out=part[:, 0])
            expit(some, out=part[:, 1])
        return found
    return np.asarray(softmax(log_expit(z), axis=1))


class LogisticRegression(_LinearClassifier):
    """Logistic regression under differential privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure, and models
        are less accurate.
    domain : pair of bounds, Domain or Schema
        What a record may be, declared from documentation. Records are clipped to it.
        The blanks of a schema are bought from the budget of the fit (docs/blanks.md).
    classes : sequence or None, default=None
        The declared labels. If None, they are read from the data, with a warning.
    solver : str or settings, default='auto'
        'auto' follows a public rule in the number of records and classes, the domain, the budget
        and the adjacency (`privfit.linear.auto`): 'additive' under a schema if delta > 0, otherwise
        'gradient', 'select_refine', 'evidence', 'objective' or 'local'. Or one of these; another
        search: 'eem', 'privgene', 'dpsga', 'subsample'; a descent: 'frank_wolfe', 'sgd'; 'output',
        'functional', 'gupt', 'majority'; or settings such as ``Local(generations=100)``. The
        genetic searches count errors, so their probabilities are approximate. Or a `Solver` of your
        own, or the name of one that a package offers.
    fit_intercept : bool, default=True
        Whether to fit an intercept. If False, records are x, not (x, 1), columns are not centred,
        and `intercept_` is 0.
    coding : {'auto', 'declared'} or Coding, default='auto'
        How the numbers of a `Schema` enter the model. With 'auto', the solver 'additive' fits each
        number that has no declared bins as a smooth curve (docs/coding.md), 'evidence' cuts it into
        few cells, and other solvers take it as it is declared. 'declared' leaves every column as it
        is.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes by label, divided by the largest; a label that is left out has weight
        1. With several classes, each is weighed by its own against a rest of weight 1.
        'balanced' weighs classes by the inverse of their counts, which cost 1 percent of the
        budget, 5 if delta is 0; a dict costs the same for 'gradient', whose steps need counts. For
        solvers that follow slopes: 'gradient', 'select_refine', 'frank_wolfe' and 'local'
        (docs/class_weights.md). Probabilities are then those of the weighted classes.
    calibrate : bool or 'auto', default='auto'
        Whether to spend 4 percent of the budget, or 15 with the solver 'evidence', on a slope and
        an intercept of the released scores, so that probabilities are honest (docs/calibration.md).
        They are applied to `coef_` and `intercept_`; `path_` has the weights before. 'auto' does so
        unless the solver is 'objective' or 'majority', whose probabilities are honest, or has
        ``paper=True``, or epsilon is infinite; in the last two cases True is refused.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    n_public : int or None, default=None
        A public, possibly approximate number of records, by which settings are chosen. Under
        'add_remove' most solvers need it.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation, with released values only. If it returns True, the fit of this
        class ends there, with what was released so far; the budget stays charged in full.
        Its method `alive`, if it has one, is called about every second while the fit lasts.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : array of shape (1, d) or (n_classes, d)
        The released weights, in the coding of the domain (`coef_names_`).
    intercept_ : array of shape (1,) or (n_classes,)
        The released intercepts.
    classes_ : array of shape (n_classes,)
        The labels.
    domain_ : Domain
        The domain, with its number of columns.
    n_features_in_ : int
        Number of columns of the records.
    feature_names_in_ : array of str
        Names of the columns, if they have names.
    path_ : Path, or Paths for more than two classes
        What each generation released, with its cost; not in model files.
    release_ : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    LinearSVC : The hinge loss.
    accuracy_score, roc_curve : Private evaluation.

    Notes
    -----
    Released: the model, and what the solver drew on the way to it. Cost: the whole budget.
    Predictions are post-processing and cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> X, fresh = np.random.default_rng(0).uniform(-1, 1, (2, 5000, 3))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[False, True]).fit(X, y)
    >>> bool(model.score(fresh, fresh[:, 0] > fresh[:, 1]) > 0.9)  # of public records
    True
    """

    _loss = "logistic"
    _measure = "log odds"

    def _stock_model(self, coder: Coder, coef: Floats, threshold: float | None) -> Any:
        found = coder.ending_in(logistic_model(coef, self.intercept_, self.classes_))
        return found if threshold is None else with_threshold(found, threshold, "predict_proba")

    @block_by_block
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes; with more than two, from one model per class.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n, n_classes)
            The probabilities.
        """
        return _probabilities(self.decision_function(X))

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
        z = self.decision_function(X)
        if z.ndim == 1:
            return np.column_stack([log_expit(-z), log_expit(z)])
        return np.asarray(log_softmax(log_expit(z), axis=1))


LINE = ("slope", "intercept")
UNCALIBRATED = "predict_proba needs calibrated scores; pass calibrate=True, and fit again"


def _has_probabilities(machine: LinearSVC) -> bool:
    """Whether scores are to be calibrated; scikit-learn makes this error the cause of its own."""
    if machine.calibrate is False:
        raise AttributeError(UNCALIBRATED)
    return True


class LinearSVC(_LinearClassifier):
    """Linear support vector machine under differential privacy: the hinge loss.

    The solver 'local' scores moves by the slope of Huber's hinge, and the perturbed convex fits
    minimise it.

    Parameters
    ----------
    epsilon : float, default=1.0
        The budget of a fit.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. With 0 the guarantee is pure, and models
        are less accurate.
    domain : pair of bounds, Domain or Schema
        What a record may be, declared from documentation. Records are clipped to it.
        The blanks of a schema are bought from the budget of the fit (docs/blanks.md).
    classes : sequence or None, default=None
        The declared labels. If None, they are read from the data, with a warning.
    solver : str or settings, default='auto'
        'auto' follows a public rule in the number of records and classes, the domain, the budget
        and the adjacency (`privfit.linear.auto`): 'gradient', 'select_refine', 'objective' or
        'local'. Otherwise one of these; another search: 'eem', 'privgene', 'dpsga', 'subsample'; a
        descent: 'frank_wolfe', 'sgd'; 'output', 'gupt', 'majority', 'privatesvm'; or settings such
        as ``Local(generations=100)``; a `Solver` of your own, or the name of one that a package
        offers.
    C : float, default=1.0
        Weight of the hinge loss relative to the regulariser norm2(coef)^2 / 2, as in scikit-learn.
        One record changes a score C times as much, so the noise grows with it. Searches that score
        by the loss use it: 'eem', 'privgene' and ``Local(scoring="loss")``, which is 'auto' if C is
        not 1. Other solvers refuse it: descents follow slopes, the genetic ones count errors, and
        perturbed fits have their own ``regularisation``. PrivGene's paper has C = 10.
    fit_intercept : bool, default=True
        Whether to fit an intercept. If False, records are x, not (x, 1), columns are not centred,
        and `intercept_` is 0.
    coding : {'auto', 'declared'} or Coding, default='auto'
        How the numbers of a `Schema` enter the model. With 'auto', the solver 'additive' fits each
        number that has no declared bins as a smooth curve (docs/coding.md), and other solvers take
        it as it is declared. 'declared' leaves every column as it is.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes by label, divided by the largest; a label that is left out has weight
        1. With several classes, each is weighed by its own against a rest of weight 1.
        'balanced' weighs classes by the inverse of their counts, which cost 1 percent of the
        budget, 5 if delta is 0; a dict costs the same for 'gradient', whose steps need counts. For
        solvers that follow slopes: 'gradient', 'select_refine', 'frank_wolfe' and 'local'
        (docs/class_weights.md). Probabilities are then those of the weighted classes.
    calibrate : bool or 'auto', default=False
        Whether to spend 4 percent of the budget on a slope and an intercept of the released scores,
        so that there are probabilities (docs/calibration.md); `coef_` and `intercept_` stay as they
        are. 'auto' does so unless the solver has ``paper=True`` or epsilon is infinite, where True
        is refused.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    n_public : int or None, default=None
        A public, possibly approximate number of records, by which settings are chosen. Under
        'add_remove' most solvers need it.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation, with released values only. If it returns True, the fit of this
        class ends there, with what was released so far; the budget stays charged in full.
        Its method `alive`, if it has one, is called about every second while the fit lasts.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : array of shape (1, d) or (n_classes, d)
        The released weights, in the coding of the domain (`coef_names_`).
    intercept_ : array of shape (1,) or (n_classes,)
        The released intercepts.
    classes_ : array of shape (n_classes,)
        The labels.
    domain_ : Domain
        The domain, with its number of columns.
    n_features_in_ : int
        Number of columns of the records.
    feature_names_in_ : array of str
        Names of the columns, if they have names.
    path_ : Path, or Paths for more than two classes
        What each generation released, with its cost; not in model files.
    release_ : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    LogisticRegression : The logistic loss, with probabilities.
    accuracy_score, roc_curve : Private evaluation.

    Notes
    -----
    Released: the model, and what the solver drew on the way to it. Cost: the whole budget.
    Predictions are post-processing and cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LinearSVC
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 3))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = LinearSVC(1.0, 1e-6, domain=(-1, 1), classes=[False, True])
    >>> model.fit(X, y).coef_.shape
    (1, 3)
    """

    _loss = "hinge"
    _measure = "margin"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        domain: Any = None,
        classes: Any = None,
        solver: Any = "auto",
        C: float = 1.0,
        fit_intercept: bool = True,
        coding: Any = "auto",
        class_weight: Any = None,
        calibrate: bool | str = False,
        adjacency: str = "replace",
        n_public: int | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        callback: Callable[[Generation], object] | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon, delta, domain=domain, classes=classes, solver=solver,
            fit_intercept=fit_intercept, coding=coding, class_weight=class_weight,
            calibrate=calibrate, adjacency=adjacency, n_public=n_public, ledger=ledger,
            n_threads=n_threads, random_state=random_state, callback=callback, verbose=verbose,
        )  # fmt: skip
        self.C = C

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @block_by_block
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, by the slope and intercept that `calibrate` buys.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n, n_classes)
            The probabilities.
        """
        z, line = self.decision_function(X), self._odds
        if line is None:
            raise DeclarationError(UNCALIBRATED)
        return _probabilities(z * line.slope + line.intercept)

    @property
    def _odds(self) -> Line | None:
        bought = None if self.release_ is None else self.release_.settings.get("calibration")
        return None if bought is None else Line(*(np.array(bought[n]) for n in LINE))

    def _stock_model(self, coder: Coder, coef: Floats, threshold: float | None) -> Any:
        """With probabilities of two classes, if there are any; then margins are their log odds."""
        line = self._odds
        if line is None or len(self.classes_) > 2:
            found = coder.ending_in(support_model(coef, self.intercept_, self.classes_))
            if threshold is None:
                return found
            return with_threshold(found, threshold, "decision_function")
        odds = self.intercept_ * line.slope + line.intercept
        found = coder.ending_in(logistic_model(coef * line.slope, odds, self.classes_))
        if threshold is None:  # margins above 0, whose probability is that of the line there
            threshold = float(np.nextafter(expit(line.intercept), 1.0).max())
        return with_threshold(found, threshold, "predict_proba")

    def _weights(self) -> dict[str, Any]:
        return {"C": self.C}
