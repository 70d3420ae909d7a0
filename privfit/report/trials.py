"""How one trial of a sweep is made: a fit and its measure, or a search and its measure.

A bench says what stays the same in every trial, and has the value of a trial by its epsilon, or the
name of a reference, and its seed. A seed determines the split into training and test records, which
all epsilons share, and the draws.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.base.cautions import public_records
from privfit.base.errors import DeclarationError, DeclarationTypeError, InputError
from privfit.base.typing import Integers
from privfit.base.validation import is_finite, is_sparse
from privfit.domains import Domain
from privfit.objectives import RecordObjective
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Adjacency
from privfit.runs.settings import fields_of

__all__ = ["Bench", "SearchProblem", "bench_of"]

Measure: TypeAlias = "str | Callable[..., object] | None"

NOT_PRIVATE, NO_NOISE, LARGER_CLASS = "not private", "almost no noise", "larger class"
ALMOST_NO_NOISE = 1e6  # epsilon: the most that a ledger grants
# Of the estimator's parameters, those that change no number of a sweep, or that the sweep sets.
NO_SETTINGS = ("epsilon", "delta", "random_state", "n_threads", "ledger", "callback", "verbose")


@dataclass(frozen=True, eq=False, repr=False)
class SearchProblem:
    """A search to be tried by `sweep`: an objective over public records, a space, and a measure.

    Parameters
    ----------
    objective : Objective
        The scores.
    space : Space
        What a candidate may be.
    measure : callable (Found) -> float
        What is measured of each result.
    solver : str or settings, default='dpsga'
        As for `search`.
    delta : float, default=0.0
        The delta of each search.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation.
    n_public : int or None, default=None
        A public number of records, for rules of the solver.

    See Also
    --------
    sweep : Tries it at several epsilons.
    privfit.search : Runs it once.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Reals, RecordObjective, SearchProblem, sweep
    >>> def near(x, P):
    ...     return -np.abs(x[:, None] - P[:, 0])
    >>> objective = RecordObjective(np.full(500, 3.0), near, low=-10.0, high=0.0)
    >>> problem = SearchProblem(objective, Reals(0, 10, 1), lambda found: abs(found.answer[0] - 3))
    >>> found = sweep(problem, epsilons=[0.1, 10.0], public=True, seeds=3)
    >>> bool(found.rows[0].mean > found.rows[1].mean)
    True
    """

    objective: Any
    space: Any
    measure: Callable[[Any], object]
    solver: Any = "dpsga"
    delta: float = 0.0
    adjacency: Adjacency = "replace"
    n_public: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.measure):
            raise DeclarationTypeError(
                f"measure ({type(self.measure).__name__}) must be a function of what is found; "
                "pass measure(found), which returns a number"
            )


class Bench:
    """What is tried: a name, its settings as text, and what is the same in every trial."""

    name: str
    settings: str
    measure: str
    delta: float
    test_size: float = 0.0
    n_records: int
    references: tuple[str, ...] = ()

    def value(self, setting: float | str, seed: int) -> float:
        """What was measured in one trial."""
        raise NotImplementedError


def bench_of(
    what: Any, X: Any, y: Any, measure: Measure, test_size: float, delta: float | None,
    references: bool, one_thread: bool,
) -> Bench:  # fmt: skip
    """The bench of an estimator, a pipeline or a search."""
    if isinstance(what, SearchProblem):
        return _Searches(what, delta)
    return _Fits(what, X, y, measure, test_size, delta, references, one_thread)


# ----------------------------------------------------------------------------------------- searches


class _Searches(Bench):
    """A search; each seed draws anew on the same records."""

    def __init__(self, problem: SearchProblem, delta: float | None) -> None:
        self._problem = problem
        self.name, self.measure = "search", _name_of(problem.measure)
        names = ("objective", "space", "solver", "adjacency", "n_public")
        known = {name: getattr(problem, name) for name in names}
        self.settings = _described(
            {
                **known,
                **_facts_of(problem.objective),
                **_bounds_of(problem.space),
                "measure": _qualified(problem.measure),
            }
        )
        self.delta = Budget(1.0, problem.delta if delta is None else delta).delta
        self.n_records = int(problem.objective.n_records)

    def value(self, setting: float | str, seed: int) -> float:
        from privfit.searches.solvers import search

        p = self._problem
        with public_records():
            found = search(
                p.objective, p.space, float(setting), self.delta, p.solver, adjacency=p.adjacency,
                n_public=p.n_public, random_state=seed,
            )  # fmt: skip
            return _number(p.measure(found), self.measure)


# --------------------------------------------------------------------------------------------- fits


class _Fits(Bench):
    """An estimator or a pipeline on public records, which each seed splits anew."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, measure: Measure, test_size: float,
        delta: float | None, references: bool, one_thread: bool,
    ) -> None:  # fmt: skip
        from sklearn.base import ClassifierMixin, clone

        steps = _private_steps(estimator)
        last = _last(estimator)
        self.name, self.n_records = type(estimator).__name__, _length(X)
        self.test_size, self._X = float(test_size), X
        self._judge, self.measure = _judge_of(measure, last)
        declares = any("classes" in step.get_params(deep=False) for step in steps.values())
        self._labelled = isinstance(last, ClassifierMixin) or (declares and y is not None)
        self._y: NDArray[Any] | None = None
        if self._labelled or (y is not None and measure is not None):
            self._y = _read_labels(y, self.n_records, self.name)
        if not 1 <= round(test_size * self.n_records) < self.n_records:
            raise DeclarationError(
                f"test_size ({test_size!r}) must leave records on both sides; pass more records"
            )
        self._shares = _shares(steps)
        self.delta = Budget(1.0, _total(steps, "delta") if delta is None else delta).delta
        self.settings = _settings_of(estimator, steps, self._shares)
        if callable(measure):
            self.settings += f"; measure={_qualified(measure)}"
        self._template = clone(estimator).set_params(**self._fixed(steps, delta, one_thread))
        if references:
            self.references = self._known_references(measure)

    def _fixed(
        self, steps: Mapping[str, Any], delta: float | None, one_thread: bool
    ) -> dict[str, Any]:
        """The parameters that every fit shares: classes, delta, one thread if fits run at once."""
        found: dict[str, Any] = {}
        for prefix, step in steps.items():
            own = step.get_params(deep=False)
            if own.get("classes", 0) is None and self._y is not None:
                found[f"{prefix}classes"] = np.unique(self._y).tolist()
            if delta is not None:
                found[f"{prefix}delta"] = delta * self._shares[prefix]
            if one_thread and "n_threads" in own:
                found[f"{prefix}n_threads"] = 1
        return found

    def _known_references(self, measure: Measure) -> tuple[str, ...]:
        """Which references there are: of a pipeline at most the larger class."""
        larger = (LARGER_CLASS,) if self._labelled and self.measure == "accuracy" else ()
        if "" not in self._shares:
            return larger
        if _twin(self._template, 0) is not None:
            return (NOT_PRIVATE, *larger)
        return (NO_NOISE, *larger) if measure is None else larger

    def value(self, setting: float | str, seed: int) -> float:
        from sklearn.base import clone
        from threadpoolctl import threadpool_limits

        train, test = self._split(seed)
        if setting == LARGER_CLASS:
            assert self._y is not None
            labels, counts = np.unique(self._y[train], return_counts=True)
            return float(np.mean(self._y[test] == labels[counts.argmax()]))
        if setting == NOT_PRIVATE:
            with threadpool_limits(1):  # on a busy machine k-means is 40 times faster with one
                return self._score(_twin(self._template, seed), self._coded(), train, test)
        epsilon = ALMOST_NO_NOISE if isinstance(setting, str) else setting
        model = clone(self._template).set_params(**_budgets(self._shares, epsilon, seed))
        return self._score(model, self._X, train, test)

    def _split(self, seed: int) -> tuple[Integers, Integers]:
        """Positions of training and test records."""
        order = np.random.default_rng(seed).permutation(self.n_records)
        held_out = round(self.test_size * self.n_records)
        return order[held_out:], order[:held_out]

    def _score(self, model: Any, X: Any, train: Integers, test: Integers) -> float:
        """Fit and measure."""
        y = self._y
        with public_records():
            if self._labelled and y is not None:
                model.fit(_rows(X, train), y[train])
            else:
                model.fit(_rows(X, train))
            measured = self._judge(model, _rows(X, test), None if y is None else y[test])
        return _number(measured, self.measure)

    def _coded(self) -> Any:
        """The records as the private model sees them."""
        from privfit.estimators import BernoulliNB, KMeans
        from privfit.estimators.common import as_domain, read_table

        if isinstance(self._template, BernoulliNB):
            return read_table(self._template, self._X, None)
        domain = as_domain(self._template.domain, self.name)
        table = read_table(self._template, self._X, domain)
        coded = domain.rounded(table, uniform=isinstance(self._template, KMeans))
        return _short_indices(coded) if is_sparse(coded) else coded


def _twin(estimator: Any, seed: int) -> Any:
    """scikit-learn's own model of this kind; None if it has none."""
    from sklearn import cluster, linear_model, naive_bayes, svm

    from privfit import estimators

    if isinstance(estimator, estimators.LogisticRegression):
        return linear_model.LogisticRegression(max_iter=1000, fit_intercept=estimator.fit_intercept)
    if isinstance(estimator, estimators.LinearSVC):
        return svm.LinearSVC(
            C=estimator.C, fit_intercept=estimator.fit_intercept, dual="auto", random_state=seed
        )
    if isinstance(estimator, estimators.KMeans):
        return cluster.KMeans(estimator.n_clusters, n_init=10, random_state=seed)
    if isinstance(estimator, estimators.BernoulliNB):
        return naive_bayes.BernoulliNB(alpha=estimator.alpha, binarize=0.0)
    return None


# ------------------------------------------------------------------------------------ private steps


def _private_steps(estimator: Any) -> dict[str, Any]:
    """The private estimators that one fit fits, by the prefix of their parameters."""
    from sklearn.pipeline import Pipeline

    from privfit.estimators.common import PrivateEstimator

    found: dict[str, Any] = {}
    if isinstance(estimator, PrivateEstimator):
        found[""] = estimator
    elif isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            if isinstance(step, PrivateEstimator | Pipeline):
                inner = _private_steps(step)
                found |= {f"{name}__{prefix}": one for prefix, one in inner.items()}
    if not found:
        raise DeclarationTypeError(
            f"estimator ({type(estimator).__name__}) must be an estimator of privfit, a Pipeline "
            "with one as a step, or a SearchProblem; pass one such as "
            "LogisticRegression(domain=(-1, 1))"
        )
    if any(step.ledger is not None for step in found.values()):
        raise DeclarationError(
            "ledger must be left out: records that are declared public cost no budget; pass the "
            "estimator without it"
        )
    return found


def _last(estimator: Any) -> Any:
    """The last step of a pipeline, which predicts; or the estimator itself."""
    return _last(estimator.steps[-1][1]) if hasattr(estimator, "steps") else estimator


def _total(steps: Mapping[str, Any], name: str) -> float:
    """The sum of a parameter over all private steps."""
    return float(sum(getattr(step, name) for step in steps.values()))


def _shares(steps: Mapping[str, Any]) -> dict[str, float]:
    """The part of epsilon of each private step: as their epsilons are to each other."""
    if len(steps) == 1:
        return dict.fromkeys(steps, 1.0)
    total = _total(steps, "epsilon")
    return {prefix: step.epsilon / total for prefix, step in steps.items()}


def _budgets(shares: Mapping[str, float], epsilon: float, seed: int) -> dict[str, Any]:
    """Epsilon and a seed of its own for each private step."""
    found: dict[str, Any] = {}
    for i, (prefix, share) in enumerate(shares.items()):
        own = int(np.random.SeedSequence([seed, i]).generate_state(1)[0]) if i else seed
        found |= {f"{prefix}epsilon": epsilon * share, f"{prefix}random_state": own}
    return found


# ----------------------------------------------------------------------------------------- measures


def _judge_of(measure: Measure, last: Any) -> tuple[Callable[[Any, Any, Any], object], str]:
    """A function of (model, X_test, y_test), and its name."""
    from sklearn.base import ClassifierMixin
    from sklearn.metrics import get_scorer

    if isinstance(measure, str):
        try:
            return get_scorer(measure), measure
        except ValueError:
            raise DeclarationError(
                f"measure ({measure!r}) must be a scorer of scikit-learn; pass one of "
                "sklearn.metrics.get_scorer_names(), or measure(model, X_test, y_test)"
            ) from None
    if callable(measure):
        return measure, _name_of(measure)
    if measure is not None:
        raise DeclarationTypeError(
            f"measure ({type(measure).__name__}) must be a function or the name of a scorer; pass "
            "measure(model, X_test, y_test), or 'roc_auc'"
        )
    if isinstance(last, ClassifierMixin):
        return _accuracy, "accuracy"
    if hasattr(last, "n_clusters"):
        return _mean_cost, "mean distance" if hasattr(last, "facilities") else _SQUARED
    raise DeclarationError(
        f"measure must be given for {type(last).__name__}; pass measure(model, X_test, y_test), "
        "which returns a number"
    )


_SQUARED = "mean squared distance"


def _accuracy(model: Any, X: Any, y: Any) -> float:
    return float(model.score(X, y))


def _mean_cost(model: Any, X: Any, y: Any) -> float:
    """Of a test record: the squared distance to its nearest centre, or the distance."""
    return -float(model.score(X)) / _length(X)


def _number(measured: Any, name: str) -> float:
    if not is_finite(measured):
        raise DeclarationTypeError(
            f"measure ({name}) must return a finite number, not a {type(measured).__name__} "
            "without one; pass a function that does"
        )
    return float(measured)


# ------------------------------------------------------------------------------------- descriptions


def _name_of(function: Any) -> str:
    """The name of a function; of a scorer or another object what it prints."""
    return str(getattr(function, "__name__", None) or _shown(function))


def _facts_of(objective: Any) -> dict[str, Any]:
    """What distinguishes objectives that print the same: their functions, and what they count."""
    names = ("loss", "fit_intercept", "clip", "domain", "unit")
    found = {name: getattr(objective, name) for name in names if hasattr(objective, name)}
    if isinstance(objective, RecordObjective):
        own = dict(zip(("score", "moves"), objective.functions, strict=True))
        found |= {name: _qualified(own[name]) for name in own if own[name] is not None}
    return found


def _bounds_of(space: Any) -> dict[str, str]:
    """The bounds of a space, which it prints without their values, as a digest."""
    if not hasattr(space, "low") or not hasattr(space, "high"):
        return {}
    digest = hashlib.sha256(f"{np.asarray([space.low, space.high]).tolist()}".encode())
    return {"bounds": digest.hexdigest()[:16]}


def _qualified(function: Any) -> str:
    """The name of a function with its module; of another object what it prints."""
    shown, module = _shown(function), getattr(function, "__module__", None)
    return f"{module}.{shown}" if hasattr(function, "__qualname__") and module else shown


def _settings_of(estimator: Any, steps: Mapping[str, Any], shares: Mapping[str, float]) -> str:
    """What every fit shares, as one line; steps of a pipeline by name."""
    if "" in steps:
        return _described(estimator.get_params(deep=False))
    parts = []
    for name, step in estimator.steps:
        own = [prefix for prefix in steps if prefix.startswith(f"{name}__")]
        if f"{name}__" in own:
            said = _described({**step.get_params(deep=False), "share": shares[own[0]]})
            parts.append(f"{name}: {type(step).__name__}({said})")
        elif own:
            inner = {prefix.removeprefix(f"{name}__"): steps[prefix] for prefix in own}
            parts.append(f"{name}: [{_settings_of(step, inner, _shares(inner))}]")
        else:
            parts.append(f"{name}: {_shown(step)}")
    return "; ".join(parts)


def _described(parameters: Mapping[str, Any]) -> str:
    """Parameters that every trial shares, as one line."""
    shown = {name: _shown(value) for name, value in sorted(parameters.items())
             if name not in NO_SETTINGS}  # fmt: skip
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def _shown(value: Any) -> str:
    """A value as text that is the same in another process: without addresses."""
    name = getattr(value, "__qualname__", None)
    if name:
        return str(name)
    text = str(value) if isinstance(value, Domain) else " ".join(repr(value).split())
    if " at 0x" not in text:
        return text
    if fields := fields_of(value):
        return f"{type(value).__name__}({_described(fields)})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


# ----------------------------------------------------------------------------------------- tables


def _short_indices(table: Any) -> Any:
    """A sparse table with indices that liblinear can read."""
    from scipy.sparse import csr_matrix

    index, start = (part.astype(np.int32) for part in (table.indices, table.indptr))
    return csr_matrix((table.data, index, start), shape=table.shape)


def _read_labels(y: Any, size: int, what: str) -> NDArray[Any]:
    if y is None:
        raise InputError(f"y must be given for {what}; pass the label of each record")
    labels = np.asarray(y)
    if labels.shape != (size,):
        raise InputError("y must have one label for each record; pass a vector of that length")
    return labels


def _length(X: Any) -> int:
    """The number of records of a table: an array, a sparse matrix, a DataFrame or a dict."""
    if X is None:
        raise InputError("X must be given for an estimator; pass the records")
    if isinstance(X, Mapping):
        return len(next(iter(X.values()), ()))
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rows(X: Any, index: Integers) -> Any:
    """Some records of a table."""
    if isinstance(X, Mapping):
        return {name: np.asarray(column)[index] for name, column in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[index]
    return X.tocsr()[index] if is_sparse(X) else np.asarray(X)[index]
