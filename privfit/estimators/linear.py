"""Private linear classifiers: logistic regression and the linear support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats
from privfit.domains import Domain
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
from privfit.linear.methods import METHODS
from privfit.objectives import LinearObjective
from privfit.privacy.ledger import Ledger
from privfit.privacy.neighbours import Neighbours
from privfit.records import is_partitioned
from privfit.runs.paths import Generation
from privfit.runs.payment import Account, Terms
from privfit.runs.settings import Settings, realised, settings_of
from privfit.runs.spaces import Reals
from privfit.searches.privgene import Local


@dataclass(frozen=True, eq=False, repr=False)
class _Records:
    """Records and labels, wherever they lie: packed once, and an objective for each model."""

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
        """The positions of the classes that get a model: of two the second."""
        return range(1, 2) if len(self.classes) == 2 else range(len(self.classes))

    def coded_for(self, settings: Settings) -> _Records:
        """These records on the grid of a solver; only an intercept makes up for a middle."""
        centres = settings.centres_columns and self.fit_intercept
        centred = self.domain.centred() if centres else self.domain
        return self if centred is self.domain else replace(self, domain=centred)

    def packed(self) -> LinearObjective:
        """The objective of all records, by class if several classes get a model."""
        return self._objective(
            self.labels,
            labels=partial(_codes, classes=self.classes) if self.in_parts else None,
            n_classes=len(self.classes) if len(self.heads) > 1 else None,
        )

    def against_rest(
        self, packed: LinearObjective, head: int, settings: Settings
    ) -> LinearObjective:
        """The objective of one class against the rest."""
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
        self.adjacency = adjacency
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **refused: Any) -> Any:
        """Fit to private records X (n, d) and their labels y.

        Both may lie in parts: X a `Stream` and y a column's name, or both Dask collections.
        The whole budget is charged to the ledger before anything is drawn; wrong input is refused
        before it is charged. With more than two classes one model for each is fitted, against the
        rest: equal shares of one budget, accounted together.
        """
        refuse(refused)
        terms = Terms.of(self)
        is_auto = isinstance(self.solver, str) and self.solver == "auto"
        given = None if is_auto else settings_of(self.solver, METHODS)
        declared = self._records(X, y, terms, *(given or ("auto", Settings())))
        records = declared.coded_for(given[1]) if given else declared
        objective = records.packed()
        name, settings = given or self._chosen(objective, len(declared.heads), terms)
        if declared.coded_for(settings) is not declared and records is declared:
            records = declared.coded_for(settings)
            objective = records.packed()
        self._check_weights(name, settings)
        space = _space(settings, objective)
        terms.check(settings, objective, space)
        account = terms.open(objective)
        heads, models = declared.heads, []
        for head in heads:
            one = records.against_rest(objective, head, settings)
            label = f"{terms.name} {declared.classes[head]}"
            path = settings(account.run(one, space, label, len(heads)))
            models.append(path.answer)
        said = {**realised(name, settings, path), **records.weights}
        return self._keep(X, np.array(models), declared, objective, account, said)

    def _keep(
        self,
        X: Any,
        models: Floats,
        records: _Records,
        objective: LinearObjective,
        account: Account,
        said: dict[str, Any],
    ) -> Any:
        """Close the account, and keep what was released: models (heads, n_weights)."""
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
        self.release_: Any = account.close(domain, said, released)
        return self

    def _records(self, X: Any, y: Any, terms: Terms, name: str, settings: Settings) -> _Records:
        """The records and labels, checked as far as can be without packing them."""
        what, in_parts = type(self).__name__, is_partitioned(X)
        domain = as_domain(self.domain, what)
        table = X if in_parts else read_table(self, X, domain)
        codes, classes = read_labels(y, self.classes, what, in_parts)
        if in_parts and settings.needs_order:
            raise DeclarationError(
                f"solver ({name!r}) needs all records at once, but X lies in parts; pass "
                "solver='local' or another that takes sums alone, or an array in memory"
            )
        loss = "zero_one" if settings.counts_errors else self._loss
        labels = y if in_parts else codes
        return _Records(
            table, labels, classes, loss, domain, self.n_threads, in_parts, terms.neighbours,
            self.fit_intercept, self._weights(),
        )  # fmt: skip

    def _weights(self) -> dict[str, Any]:
        """Weights of the loss, as the objective takes them."""
        return {}

    def _check_weights(self, name: str, settings: Settings) -> None:
        """Refuse a weight of the loss that a solver would not heed."""

    def _chosen(self, objective: LinearObjective, models: int, terms: Terms) -> tuple[str, Any]:
        """The name and settings of 'auto', which follow from public facts alone."""
        terms.refuse_infinity()
        size = terms.size(objective)
        chosen = auto.choose(
            size, objective.domain, terms.budget, terms.neighbours, models, objective.fit_intercept
        )
        return settings_of(chosen, METHODS)

    def decision_function(self, X: Any) -> Floats:
        """z = <x, coef> + intercept: (n,) for two classes, else (n, classes)."""
        check_is_fitted(self)
        table = reread_table(self, X, self.domain_)
        z = np.asarray(self._grid_domain.rounded(table) @ self.coef_.T) + self.intercept_
        return z[:, 0] if len(self.classes_) == 2 else z

    @property
    def _grid_domain(self) -> Domain:
        """The domain on the grid that records were fitted on."""
        centred = self.release_ is not None and "origin" in self.release_.settings
        return self.domain_.centred() if centred else self.domain_

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,): the class of each record."""
        z = self.decision_function(X)
        index = (z > 0).astype(np.int64) if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_names_(self) -> list[str]:
        """The names of the columns of `coef_`, where records have names."""
        check_is_fitted(self)
        return self.domain_.coded_names(getattr(self, "feature_names_in_", None))


def _codes(y: Any, *, classes: Array) -> NDArray[np.int64]:
    """(n,): the positions of a part's labels among the classes."""
    return read_labels(y, classes, "fit")[0]


def _space(settings: Settings, objective: LinearObjective) -> Reals:
    """The box of weights: of coded columns, or in units of each column's scale."""
    high = np.full(objective.n_weights, settings.largest_weight)
    if not settings.bounds_codes(objective):
        high[: objective.domain.width] *= np.ldexp(1.0, -objective.domain.exponents)
    return Reals(-high, high, objective.n_weights)


class LogisticRegression(_LinearClassifier):
    """Logistic regression under differential privacy.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit. With delta = 0 the guarantee is pure, and weaker models result.
    domain : pair of bounds, Domain or Schema
        What a record may be, declared from documentation. Records are clipped to it.
    classes : sequence
        The labels, declared. Without them they are read off the data, with a warning.
    solver : str or settings
        'auto' follows a public rule in the number of records and classes, the domain, the budget
        and the adjacency (`privfit.linear.auto`): 'gradient', 'hybrid', 'objective' or 'local'.
        Else one of these; another search: 'eem', 'privgene', 'dpsga', 'subsample'; a descent:
        'frank_wolfe', 'sgd'; 'output', 'functional', 'gupt', 'majority'; or settings such as
        ``Local(generations=100)``. The genetic ones count errors, so their probabilities are rough.
    fit_intercept : bool
        Whether to fit an intercept. Otherwise records are x, not (x, 1), columns are not centred,
        and `intercept_` is 0.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee. Under the latter the number of records is private.
    n_public : int, optional
        A public, possibly rough number of records, which sets the number of steps.
    ledger : Ledger, optional
        Where the budget is charged; by default a ledger of the fit's own.
    n_threads : int, optional
        By default all cores of this process. It changes speed and nothing else.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object
        Told of each generation; released values only.
    verbose : int
        1 shows a progress bar, if tqdm is installed.

    Attributes
    ----------
    coef_, intercept_ : (1, d), (1,) or one row for each class
        The released model, for records as the domain codes them (`coef_names_`).
    classes_, domain_, n_features_in_, feature_names_in_
    release_ : Release
        What was drawn, what it cost and under which declarations.

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
        """(n, classes): probabilities; several classes are each taken against the rest."""
        z = self.decision_function(X)
        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        return np.asarray(softmax(log_expit(z), axis=1))

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, classes): logarithms of `predict_proba`."""
        z = self.decision_function(X)
        if z.ndim == 1:
            return np.column_stack([log_expit(-z), log_expit(z)])
        return np.asarray(log_softmax(log_expit(z), axis=1))


class LinearSVC(_LinearClassifier):
    """A linear support vector machine under differential privacy: the hinge loss.

    Parameters, attributes and solvers are those of `LogisticRegression`, with one more solver,
    'privatesvm', and one more parameter. 'local' scores moves by the slope of Huber's hinge, and
    the perturbed convex fits minimise it.

    Parameters
    ----------
    C : float
        Weight of the hinge loss beside the regulariser norm2(coef)^2 / 2, as in scikit-learn. One
        record changes a score C times as much, so the noise grows alike. Searches that score by
        the loss heed it: 'eem', 'privgene' and ``Local(scoring="loss")``, which is 'auto' if C is
        not 1. Other solvers refuse it: descents follow slopes, the genetic ones count errors, and
        perturbed fits have a ``regularisation`` of their own. PrivGene's paper has C = 10.

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
            fit_intercept=fit_intercept, adjacency=adjacency, n_public=n_public, ledger=ledger,
            n_threads=n_threads, random_state=random_state, callback=callback, verbose=verbose,
        )  # fmt: skip
        self.C = C

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
