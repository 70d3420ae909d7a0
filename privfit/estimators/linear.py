"""Private linear classifiers: logistic regression and the linear support vector machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats
from privfit.domains import Domain
from privfit.domains.codes import level_type
from privfit.estimators.common import (
    ExactAccuracy,
    PrivateEstimator,
    as_domain,
    read_labels,
    read_table,
    refuse,
    remember_columns,
    reread_table,
)
from privfit.linear import auto
from privfit.linear.calibration import CALIBRATION, Parts, Scale, prior_of
from privfit.linear.class_weights import ClassWeights, Weighing
from privfit.linear.descent import Gradient
from privfit.linear.methods import METHODS, RENAMED
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.objectives import LinearObjective
from privfit.privacy.ledger import Ledger
from privfit.privacy.neighbours import Neighbours
from privfit.records import is_partitioned
from privfit.records.codes import JOINT, MANY_JOINT
from privfit.runs.door import before, is_users, realised, settings_of
from privfit.runs.fields import Taken
from privfit.runs.guests import without_records
from privfit.runs.paths import Generation, Path, Paths
from privfit.runs.payment import Account, Paid, Terms
from privfit.runs.purchases import Purchase
from privfit.runs.settings import Settings
from privfit.runs.spaces import Reals
from privfit.searches.privgene import Local


@dataclass(frozen=True, eq=False, repr=False)
class _Records:
    """Records and labels, wherever they are: packed once, with an objective for each model."""

    table: Any
    labels: Any  # (n,) positions among the classes; of parts, what they are asked for
    classes: Array
    loss: str
    domain: Domain
    n_threads: int | None
    in_parts: bool
    neighbours: Neighbours
    fit_intercept: bool
    weights: dict[str, Any]  # of the loss

    @property
    def heads(self) -> range:
        """The positions of the classes that get a model; with two classes, the second."""
        return range(1, 2) if len(self.classes) == 2 else range(len(self.classes))

    def coded_for(self, settings: Settings) -> _Records:
        """These records on the grid of a solver; centring needs an intercept."""
        centres = settings.centres_columns and self.fit_intercept
        centred = self.domain.centred() if centres else self.domain
        return self if centred is self.domain else replace(self, domain=centred)

    def packed(self, settings: Settings) -> LinearObjective:
        """The objective of all records, by class if several classes get a model."""
        return self._objective(
            self.labels,
            joint=MANY_JOINT if settings.scores_many else JOINT,
            labels=partial(_codes, classes=self.classes) if self.in_parts else None,
            n_classes=len(self.classes) if len(self.heads) > 1 else None,
        )

    def against_rest(
        self, packed: LinearObjective, head: int, settings: Settings
    ) -> LinearObjective:
        """The objective of one class versus the rest."""
        if len(self.heads) == 1:
            return packed
        if settings.needs_order:  # in which class 1 comes first
            return self._objective(self.labels == head)
        return packed.against(head)

    def _objective(self, y: Any, **settings: Any) -> LinearObjective:
        return LinearObjective(
            self.table, y, self.loss, self.domain, n_threads=self.n_threads,
            adjacency=self.neighbours, fit_intercept=self.fit_intercept, **self.weights, **settings,
        )  # fmt: skip


class _LinearClassifier(ExactAccuracy, PrivateEstimator):
    """Fit, predict and check; a subclass names its loss."""

    _loss: str

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        domain: Any = None,
        classes: Any = None,
        solver: Any = "auto",
        fit_intercept: bool = True,
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
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.classes = classes
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

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
            Private labels; for a stream of tables the name of their column.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        object
            The fitted estimator.
        """
        refuse(refused)
        whole = Terms.of(self)
        is_auto = isinstance(self.solver, str) and self.solver == "auto"
        given = None if is_auto else settings_of(self.solver, METHODS, RENAMED)
        declared = self._records(X, y, whole, *(given or ("auto", Settings())))
        if declared.domain.has_blanks:
            return self._fit_blanks(X, declared, whole, given or ("gradient", Gradient()))
        weights = ClassWeights(self.class_weight, declared.classes)
        records = declared.coded_for(given[1]) if given else declared
        objective = records.packed(given[1] if given else Settings())
        name, settings = given or self._chosen(objective, len(declared.heads), whole)
        if declared.coded_for(settings) is not declared and records is declared:
            records = declared.coded_for(settings)
            objective = records.packed(settings)
        self._check_weights(name, settings)
        weights.check(name, settings, whole.delta)
        parts = self._parts(whole, settings, weights, len(declared.heads))
        space = _space(settings, objective)
        parts.terms.check(name, settings, objective, space)
        taken = before(settings)
        account = whole.open(objective)
        heads, n_classes = declared.heads, len(declared.classes)
        weighings = weights.weighings(heads, _bought(parts, account, objective, n_classes))
        paths = _run(account, parts, records, objective, name, settings, space, weighings)
        said = self._said(name, taken, paths, records)
        if weights.declared is not None:
            said["class_weight"] = {"share": parts.counts_share,
                                    "weights": [list(one.pair) for one in weighings]}  # fmt: skip
        models = np.array([path.answer for path in paths.values()])
        if parts.share and isinstance(account, Paid):
            scales = _calibrated(parts, account, objective, settings, heads, models, weighings)
            said["calibration"] = parts.described(scales)
            models = self._scaled(models, scales, objective.fit_intercept)
        return self._keep(X, paths, models, declared, objective, account, said)

    def _fit_blanks(self, X: Any, declared: _Records, terms: Terms, given: tuple[str, Any]) -> Any:
        """Buy the blanks of the schema from the budget of the fit, and fit with the rest."""
        name, settings = given
        if not terms.delta and isinstance(self.solver, str) and self.solver == "auto":
            name, settings = settings_of(ObjectivePerturbation(), METHODS)
        if self.calibrate is not False or self.class_weight is not None:
            raise DeclarationError(
                "calibrate and class_weight must be left out with blanks, which a fit cannot buy "
                "beside them; pass domain=learn_schema(X, epsilon, delta, columns=schema)"
            )
        purchase = Purchase.of(declared.domain, X, terms, self.n_threads)
        purchase.check(name, settings)
        self._check_weights(name, settings)
        stand_in = replace(declared, domain=purchase.stand_in)
        objective = stand_in.coded_for(settings).packed(settings)
        purchase.terms(terms).check(name, settings, objective, _space(settings, objective))
        taken = before(settings)
        paid = terms.charge(objective)
        bought = replace(declared, domain=purchase.buy(paid))
        records = bought.coded_for(settings)
        objective = records.packed(settings)
        space, heads = _space(settings, objective), declared.heads
        account, parts = purchase.account(paid), Parts(terms, 0.0, 0.0, len(heads))
        weighings = ClassWeights(None, declared.classes).weighings(heads, None)
        paths = _run(account, parts, records, objective, name, settings, space, weighings)
        models = np.array([path.answer for path in paths.values()])
        said = self._said(name, taken, paths, records) | {"blanks": purchase.plan.settings}
        return self._keep(X, paths, models, bought, objective, paid, said)

    def _parts(self, terms: Terms, settings: Settings, weights: ClassWeights, models: int) -> Parts:
        """The solver's part of the budget, and others' parts."""
        wanted = self.calibrate
        if not (isinstance(wanted, bool) or (isinstance(wanted, str) and wanted == "auto")):
            raise DeclarationError(
                f"calibrate ({wanted!r}) must be True, False or 'auto'; pass one of them"
            )
        is_publication = bool(getattr(settings, "paper", False))
        if wanted is True and (is_publication or terms.is_infinite):
            raise DeclarationError(
                "calibrate (True) must be False for a solver with paper=True and for an infinite "
                "epsilon; pass calibrate=False or calibrate='auto'"
            )
        left_out = wanted is False or is_publication or terms.is_infinite
        if wanted == "auto" and self._loss == "logistic":
            left_out |= getattr(settings, "has_honest_scores", False)
        counts = 0.0 if terms.is_infinite else weights.share(settings, terms.delta)
        return Parts(terms, 0.0 if left_out else CALIBRATION, counts, models)

    def _scaled(self, models: Floats, scales: list[Scale], intercept: bool) -> Floats:
        """The models (heads, n_weights) whose scores are log odds."""
        pairs = zip(models, scales, strict=True)
        return np.array([scale.of(model, intercept) for model, scale in pairs])

    def _said(
        self, name: str, taken: Taken, paths: dict[Any, Path], records: _Records
    ) -> dict[str, Any]:
        """The settings as they were used, for the release; those passed are for a model file."""
        self._remember_solver(name, taken)
        return {**_realised(name, taken, paths), **records.weights}

    def _keep(
        self,
        X: Any,
        paths: dict[Any, Path],
        models: Floats,
        records: _Records,
        objective: LinearObjective,
        account: Account,
        said: dict[str, Any],
    ) -> Any:
        """Close the account, and store what was released: paths and models (heads, n_weights)."""
        self.path_: Any = Paths(paths) if len(paths) > 1 else next(iter(paths.values()))
        domain, classes = records.domain.bind(objective.domain.width), records.classes
        coef, intercept = models[:, : domain.width], np.zeros(len(models))
        if objective.fit_intercept:
            intercept = models[:, -1]
        remember_columns(self, X, domain)
        self.domain_, self.classes_ = domain, classes
        self.coef_, self.intercept_ = coef.copy(), intercept.copy()
        said["fit_intercept"] = objective.fit_intercept
        said["budget_split"] = {str(classes[i]): 1 / len(models) for i in records.heads}
        released = {"classes": classes.copy(), "coef": coef, "intercept": intercept}
        if "blanks" in said:
            released["columns"] = domain.to_dict()["columns"]
        self.release_: Any = account.close(domain, said, released)
        return self

    def _records(self, X: Any, y: Any, terms: Terms, name: str, settings: Settings) -> _Records:
        """The records and labels, checked as far as possible without packing them."""
        what, in_parts = type(self).__name__, is_partitioned(X)
        domain = as_domain(self.domain, what)
        table = X if in_parts else read_table(self, X, domain)
        codes, classes = read_labels(y, self.classes, what, in_parts)
        if in_parts and settings.needs_order:
            raise DeclarationError(
                f"solver ({name!r}) needs all records at once, but X is a stream or a Dask "
                f"collection; pass "
                "solver='local' or another that takes sums alone, or an array in memory"
            )
        loss = "zero_one" if settings.counts_errors else self._loss
        labels = y if in_parts else codes.astype(level_type(len(classes)))
        return _Records(
            table, labels, classes, loss, domain, self.n_threads, in_parts, terms.neighbours,
            self.fit_intercept, self._weights(),
        )  # fmt: skip

    def _weights(self) -> dict[str, Any]:
        """Weights of the loss, as the objective takes them."""
        return {}

    def _check_weights(self, name: str, settings: Settings) -> None:
        """Refuse a weight of the loss that the solver would ignore."""

    def _chosen(self, objective: LinearObjective, models: int, terms: Terms) -> tuple[str, Any]:
        """The name and settings of 'auto', which depend on public facts only."""
        terms.refuse_infinity()
        size = terms.size(objective)
        chosen = auto.choose(
            size, objective.domain, terms.budget, terms.neighbours, models, objective.fit_intercept,
            weighs_classes=self.class_weight is not None,
        )  # fmt: skip
        return settings_of(chosen, METHODS)

    def decision_function(self, X: Any) -> Floats:
        """The margins <x, coef> + intercept.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            The margins; one column per class if there are more than two.
        """
        check_is_fitted(self)
        table = reread_table(self, X, self.domain_)
        z = np.asarray(self._grid_domain.rounded(table) @ self.coef_.T) + self.intercept_
        return z[:, 0] if len(self.classes_) == 2 else z

    @property
    def _grid_domain(self) -> Domain:
        """The domain on the grid that the model was fitted on."""
        centred = self.release_ is not None and "origin" in self.release_.settings
        return self.domain_.centred() if centred else self.domain_

    def predict(self, X: Any, threshold: float | None = None) -> NDArray[Any]:
        """The predicted class of each record.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.
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
        if len(self.classes_) != 2:
            raise DeclarationError(
                f"threshold ({threshold!r}) is for two classes, and the model has "
                f"{len(self.classes_)}; leave it out"
            )
        if not isinstance(threshold, Real) or math.isnan(threshold):
            raise DeclarationError(
                f"threshold ({threshold!r}) must be a number; pass one such as 0.5"
            )
        proba = getattr(self, "predict_proba", None)
        scores = self.decision_function(X) if proba is None else proba(X)[:, 1]
        return np.asarray(scores >= threshold)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_names_(self) -> list[str]:
        """The names of the columns of `coef_`, if records have names."""
        check_is_fitted(self)
        return self.domain_.coded_names(getattr(self, "feature_names_in_", None))


def _run(
    account: Account,
    parts: Parts,
    records: _Records,
    objective: LinearObjective,
    name: str,
    settings: Any,
    space: Reals,
    weighings: list[Weighing],
) -> dict[Any, Path]:
    """The path of each class that has a model."""
    labels, paths = records.classes.tolist(), {}
    for head, weighing in zip(records.heads, weighings, strict=True):
        one, label = records.against_rest(objective, head, settings), labels[head]
        one = one.weighed(*weighing.pair, weighing.mean)
        paths[label] = account.solved(name, settings, parts.run(account, one, space, label))
    return paths


def _codes(y: Any, *, classes: Array) -> NDArray[np.int64]:
    """(n,): the positions of a block's labels among the classes."""
    return read_labels(y, classes, "fit")[0]


def _bought(
    parts: Parts, account: Account, objective: LinearObjective, n_classes: int
) -> Floats | None:
    """(n_classes,): noisy counts of the classes, if a part of the budget is for them."""
    if not parts.counts_share or not isinstance(account, Paid):
        return None
    if n_classes == 2:
        counts = objective.label_counts()
    else:
        counts = np.array([objective.against(one).label_counts()[1] for one in range(n_classes)])
    return parts.buy_counts(account, counts)


def _calibrated(
    parts: Parts,
    account: Paid,
    objective: LinearObjective,
    settings: Settings,
    heads: range,
    models: Floats,
    weighings: list[Weighing],
) -> list[Scale]:
    """The slope and the intercept of each model's scores."""
    signal = auto.signal(objective, parts.terms, len(heads))
    weighted = any(one.pair != (1.0, 1.0) for one in weighings)
    prior = prior_of(settings, objective.loss, signal, weighted)
    ones = [objective.against(head) if len(heads) > 1 else objective for head in heads]
    return [
        parts.calibrate(account, one, model, prior, weighing.pair)
        for one, model, weighing in zip(ones, models, weighings, strict=True)
    ]


def _space(settings: Settings, objective: LinearObjective) -> Reals:
    """The box of weights: for coded columns, or in units of each column's scale."""
    high = np.full(objective.n_weights, settings.largest_weight)
    asked = without_records(objective, objective.neighbours) if is_users(settings) else objective
    if not settings.bounds_codes(asked):
        high[: objective.domain.width] *= np.ldexp(1.0, -objective.domain.exponents)
    return Reals(-high, high, objective.n_weights)


def _realised(name: str, given: Taken, paths: dict[Any, Path]) -> dict[str, Any]:
    """The settings as they were used, and where a callback ended the model of each class."""
    said = realised(name, given, [*paths.values()][-1])
    if len(paths) > 1 and any(path.stopped for path in paths.values()):
        said["stopped"] = {str(one): path.notes.get("stopped") for one, path in paths.items()}
    return said


def _probabilities(z: Floats) -> Floats:
    """(n, n_classes): those of log odds (n,), or (n, n_classes) of each class versus the rest."""
    if z.ndim == 1:
        return np.column_stack([expit(-z), expit(z)])
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
        and the adjacency (`privfit.linear.auto`): 'gradient', 'select_refine', 'objective' or
        'local'. Otherwise one of these; another search: 'eem', 'privgene', 'dpsga', 'subsample'; a
        descent: 'frank_wolfe', 'sgd'; 'output', 'functional', 'gupt', 'majority'; or settings such
        as ``Local(generations=100)``. The genetic searches count errors, so their probabilities are
        approximate. Or a `Solver` of your own, or the name of one that a package offers.
    fit_intercept : bool, default=True
        Whether to fit an intercept. If False, records are x, not (x, 1), columns are not centred,
        and `intercept_` is 0.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes by label, divided by the largest; a label that is left out has weight
        1. 'balanced' weighs classes by the inverse of their counts, which cost 1 percent of the
        budget, 5 if delta is 0; a dict costs the same for 'gradient', whose steps need counts. For
        solvers that follow slopes: 'gradient', 'select_refine', 'frank_wolfe' and 'local'
        (docs/class_weights.md). Probabilities are then those of the weighted classes.
    calibrate : bool or 'auto', default=False
        Whether to spend 4 percent of the budget on a slope and an intercept of the released scores,
        so that probabilities are honest (docs/calibration.md). They are applied to `coef_` and
        `intercept_`; `path_` has the weights before. 'auto' does so unless the solver is
        'objective', whose probabilities are honest, or has ``paper=True``, or epsilon is infinite;
        in the last two cases True is refused.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee. Under 'add_remove' the number of records is
        private.
    n_public : int or None, default=None
        A public, possibly approximate number of records, which determines the number of steps.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation, with released values only. If it returns True, the fit of this
        class ends there, with what was released so far; the budget stays charged in full.
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

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes; with more than two, from one model per class.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.

        Returns
        -------
        array of shape (n, n_classes)
            The probabilities.
        """
        return _probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.

        Returns
        -------
        array of shape (n, n_classes)
            The logarithms.
        """
        z = self.decision_function(X)
        if z.ndim == 1:
            return np.column_stack([log_expit(-z), log_expit(z)])
        return np.asarray(log_softmax(log_expit(z), axis=1))


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
        and the adjacency (`privfit.linear.auto`): 'gradient', 'hybrid', 'objective' or 'local'.
        Otherwise one of these; another search: 'eem', 'privgene', 'dpsga', 'subsample'; a descent:
        'frank_wolfe', 'sgd'; 'output', 'functional', 'gupt', 'majority', 'privatesvm'; or settings
        such as ``Local(generations=100)``; a `Solver` of your own, or the name of one that a
        package offers.
    C : float, default=1.0
        Weight of the hinge loss relative to the regulariser norm2(coef)^2 / 2, as in scikit-learn.
        One record changes a score C times as much, so the noise grows with it. Searches that score
        by the loss use it: 'eem', 'privgene' and ``Local(scoring="loss")``, which is 'auto' if C is
        not 1. Other solvers refuse it: descents follow slopes, the genetic ones count errors, and
        perturbed fits have their own ``regularisation``. PrivGene's paper has C = 10.
    fit_intercept : bool, default=True
        Whether to fit an intercept. If False, records are x, not (x, 1), columns are not centred,
        and `intercept_` is 0.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes by label, divided by the largest; a label that is left out has weight
        1. 'balanced' weighs classes by the inverse of their counts, which cost 1 percent of the
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
        A public, possibly approximate number of records, which determines the number of steps.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one for each fit.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation, with released values only. If it returns True, the fit of this
        class ends there, with what was released so far; the budget stays charged in full.
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
            fit_intercept=fit_intercept, class_weight=class_weight, calibrate=calibrate,
            adjacency=adjacency, n_public=n_public, ledger=ledger, n_threads=n_threads,
            random_state=random_state, callback=callback, verbose=verbose,
        )  # fmt: skip
        self.C = C

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, by the slope and intercept that `calibrate` buys.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records, in memory.

        Returns
        -------
        array of shape (n, n_classes)
            The probabilities.
        """
        z = self.decision_function(X)
        bought = None if self.release_ is None else self.release_.settings.get("calibration")
        if bought is None:
            raise DeclarationError(UNCALIBRATED)
        slope, intercept = (np.array(bought[name]) for name in ("slope", "intercept"))
        return _probabilities(z * slope + intercept)

    def _scaled(self, models: Floats, scales: list[Scale], intercept: bool) -> Floats:
        return models  # margins in units of the hinge stay; see `predict_proba`

    def _weights(self) -> dict[str, Any]:
        return {"C": self.C}

    def _check_weights(self, name: str, settings: Settings) -> None:
        if self.C != 1.0 and not settings.weighs_loss:
            raise DeclarationError(
                f"C ({self.C!r}) must be 1.0 for solver {name!r}, which does not weigh its loss; "
                "pass solver='eem', 'privgene' or Local(scoring='loss'), or leave C out"
            )

    def _chosen(self, objective: LinearObjective, models: int, terms: Terms) -> tuple[str, Any]:
        if self.C == 1.0:
            return super()._chosen(objective, models, terms)
        terms.refuse_infinity()
        return settings_of(Local(scoring="loss"), METHODS)
