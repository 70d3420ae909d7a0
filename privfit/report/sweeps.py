"""Privacy-accuracy curves on public records: one estimator, many epsilons, many splits.

The numbers of a sweep are exact functions of the records, so they are *not private*: a sweep is for
public or synthetic records, and requires a declaration that they are. Each seed determines a split
into training and test records, which all epsilons share, and the fit's own draws. Two references
are fitted on the same splits: scikit-learn's model without privacy, and the larger class.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit.base.cautions import public_records
from privfit.base.errors import DeclarationError, DeclarationTypeError, FileError, InputError
from privfit.base.json import parse, write
from privfit.base.typing import Integers
from privfit.base.validation import is_finite, is_sparse, is_whole
from privfit.privacy.ledger import Budget

__all__ = ["Row", "Sweep", "SweepInterrupted", "Trial", "interval", "sweep"]

Progress: TypeAlias = "Callable[[Sweep], object]"

VERSION = 1
EPSILONS = (0.1, 0.3, 1.0, 3.0)
NOT_PRIVATE, NO_NOISE, LARGER_CLASS = "not private", "almost no noise", "larger class"
ALMOST_NO_NOISE = 1e6  # epsilon: the most that a ledger grants
# Of the estimator's parameters, those that change no number of a sweep, or that the sweep sets.
NO_SETTINGS = ("epsilon", "delta", "random_state", "n_threads", "ledger", "callback", "verbose")


# ------------------------------------------------------------------------------------------ results


@dataclass(frozen=True)
class Trial:
    """One fit and its score on its test records. `setting` is epsilon, or names a reference."""

    setting: float | str
    seed: int
    value: float


@dataclass(frozen=True)
class Row:
    """The mean of a setting's trials, and half the width of its 95 % interval (NaN for one)."""

    setting: float | str
    mean: float
    half_width: float
    count: int


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep. It contains exact functions of the records, and is not private.

    Parameters
    ----------
    name, settings : str
        The estimator, and those of its parameters that were the same in every fit.
    measure : str
        What was measured on the test records of each split.
    delta : float
        The delta of all fits.
    test_size : float
        Fraction of test records.
    n_records : int
        Number of records.
    seeds : int
        Number of splits.
    epsilons : tuple of float
        The budgets, in increasing order.
    references : tuple of str
        The names of the references.
    trials : tuple of Trial
        The trials done so far, split by split.

    See Also
    --------
    sweep : Makes one.
    privfit.report.plotting.draw_sweep : Plots one.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, Sweep, sweep
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = sweep(KMeans(2, domain=(-1, 1)), X, None, [1.0], public=True, seeds=2)
    >>> Sweep.from_json(found.to_json()) == found
    True
    """

    name: str
    settings: str
    measure: str
    delta: float
    test_size: float
    n_records: int
    seeds: int
    epsilons: tuple[float, ...]
    references: tuple[str, ...]
    trials: tuple[Trial, ...] = ()

    @property
    def planned(self) -> Iterator[tuple[float | str, int]]:
        """(setting, seed) of every trial, in order: all settings of a split together."""
        settings: tuple[float | str, ...] = (*self.references, *self.epsilons)
        return ((setting, seed) for seed in range(self.seeds) for setting in settings)

    @property
    def total(self) -> int:
        """The number of trials of the complete sweep."""
        return (len(self.references) + len(self.epsilons)) * self.seeds

    @property
    def complete(self) -> bool:
        """Whether every trial is done."""
        return len(self.trials) == self.total

    @property
    def rows(self) -> tuple[Row, ...]:
        """The private fits: a row for each epsilon that was tried, in increasing order."""
        return self._rows(self.epsilons)

    @property
    def reference_rows(self) -> tuple[Row, ...]:
        """A row for each reference that was tried."""
        return self._rows(self.references)

    def _rows(self, settings: Sequence[float | str]) -> tuple[Row, ...]:
        values: dict[float | str, list[float]] = {setting: [] for setting in settings}
        for trial in self.trials:
            if trial.setting in values:
                values[trial.setting].append(trial.value)
        return tuple(Row(key, *interval(made), len(made)) for key, made in values.items() if made)

    def __str__(self) -> str:
        """A table in plain text."""
        missing = "" if self.complete else f"; {len(self.trials)} of {self.total} trials"
        lines = [
            f"{self.name}: {self.measure} on held-out records, mean and 95 % interval of "
            f"{self.seeds} split(s), delta {self.delta:g}{missing}",
            f"{'epsilon':>16}  {self.measure}",
        ]
        for row in (*self.rows, *self.reference_rows):
            name = row.setting if isinstance(row.setting, str) else f"{row.setting:g}"
            spread = "" if math.isnan(row.half_width) else f" +- {row.half_width:.4f}"
            lines.append(f"{name:>16}  {row.mean:.4f}{spread}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Write this sweep as JSON; `from_json` reads it back.

        Returns
        -------
        str
            The text.
        """
        return write({"privfit_sweep": VERSION, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Sweep:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The text.

        Returns
        -------
        Sweep
            The sweep.
        """
        try:
            fields = parse(text)
            version = fields.pop("privfit_sweep")
        except (ValueError, KeyError):
            raise FileError("text must be JSON written by Sweep.to_json; pass it as is") from None
        if version != VERSION:
            raise FileError(
                f"version ({version!r}) must be {VERSION}; use the privfit that wrote this sweep"
            )
        try:
            for name in ("epsilons", "references"):
                fields[name] = tuple(fields[name])
            fields["trials"] = tuple(Trial(**trial) for trial in fields["trials"])
            return cls(**fields)
        except (KeyError, TypeError):
            raise FileError("text must have all fields of a Sweep; pass it as is") from None


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C was pressed; `sweep` is what was done so far, and can be resumed."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(f"{len(sweep.trials)} of {sweep.total} trials are done; pass resume=")
        self.sweep = sweep


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval by Student's t (NaN for one value)."""
    v = np.asarray(values, dtype=np.float64)
    if len(v) < 2:
        return float(v.mean()), math.nan
    quantile = scipy.special.stdtrit(len(v) - 1, 0.975)
    return float(v.mean()), float(quantile * v.std(ddof=1) / math.sqrt(len(v)))


# --------------------------------------------------------------------------------- public function


def sweep(
    estimator: Any,
    X: Any,
    y: Any = None,
    epsilons: Sequence[float] = EPSILONS,
    *,
    public: bool = False,
    seeds: int = 10,
    test_size: float = 0.2,
    delta: float | None = None,
    resume: Sweep | None = None,
    progress: Progress | None = None,
    n_jobs: int = 1,
) -> Sweep:
    """Fit an estimator at several epsilons, on several splits of public records.

    Parameters
    ----------
    estimator : a classifier, KMeans or KMedian of privfit
        It is cloned for every fit; its epsilon and random_state are replaced. Classes that are not
        declared are read from the labels, which are public here.
    X : array-like of shape (n, n_columns)
        The records, as the estimator takes them.
    y : array-like of shape (n,) or None, default=None
        The labels; None for clustering.
    epsilons : sequence of float
        The budgets to try.
    public : bool, default=False
        Must be True: it declares that the records are public or synthetic. What is measured on test
        records is not private.
    seeds : int, default=10
        Number of splits. Seeds 0, 1, ... determine the split and the draws of the fits.
    test_size : float, default=0.2
        Fraction of the records to hold out.
    delta : float or None, default=None
        The delta of all fits; by default the estimator's.
    resume : Sweep or None, default=None
        An earlier sweep of the same estimator and the same records, of which only the number is
        compared. Its trials are not repeated; it may have been interrupted, or have had other
        epsilons or fewer seeds.
    progress : callable (Sweep) -> object or None, default=None
        Called after every trial with what is done so far.
    n_jobs : int, default=1
        Number of fits that run at once, each on one thread. It affects speed and nothing else.

    Returns
    -------
    Sweep
        For classifiers the accuracy, for clustering the mean cost of a test record: the squared
        distance to the nearest centre (`KMeans`), or the distance (`KMedian`).

    Raises
    ------
    SweepInterrupted
        After Ctrl-C; it contains what was done so far.

    See Also
    --------
    Sweep : The result.
    privfit.report.plotting.draw_sweep : Plots it.

    Notes
    -----
    Nothing is private here: all numbers are exact functions of the records.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, sweep
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = LogisticRegression(delta=1e-6, domain=(-1, 1))
    >>> found = sweep(model, X, y, [0.1, 10.0], public=True, seeds=3)
    >>> [row.setting for row in found.rows]
    [0.1, 10.0]
    >>> bool(found.rows[0].mean < found.rows[1].mean)
    True
    """
    if public is not True:
        raise DeclarationError(
            "public must be True: the accuracies of a sweep are exact functions of the records, so "
            "they are not private; pass public=True for public or synthetic records, and no others"
        )
    _check_numbers(seeds, test_size, n_jobs)
    bench = _Bench.of(estimator, X, y, test_size, delta, n_jobs)
    return _made(bench, bench.start(_rising(epsilons), seeds, resume), n_jobs, progress)


def _made(bench: _Bench, found: Sweep, n_jobs: int, progress: Progress | None) -> Sweep:
    """A sweep with the trials that it lacks."""
    done = {(trial.setting, trial.seed): trial for trial in found.trials}
    todo = [pair for pair in found.planned if pair not in done]
    with _no_convergence_warnings(), closing(bench.run(todo, n_jobs)) as results:
        try:
            for (setting, seed), value in zip(todo, results, strict=True):
                done[setting, seed] = Trial(setting, seed, value)
                made = tuple(done[pair] for pair in found.planned if pair in done)
                found = replace(found, trials=made)
                if progress is not None:
                    progress(found)
        except KeyboardInterrupt:
            raise SweepInterrupted(found) from None
    return found


@contextmanager
def _no_convergence_warnings() -> Iterator[None]:
    """Silence scikit-learn's solvers, whose accuracies settle long before their weights do.

    This is set once around all trials: threads must not change filters of warnings.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _check_numbers(seeds: Any, test_size: Any, n_jobs: Any) -> None:
    for name, value in (("seeds", seeds), ("n_jobs", n_jobs)):
        if not is_whole(value) or value < 1:
            raise DeclarationError(
                f"{name} ({value!r}) must be a positive whole number; pass {name}=2"
            )
    if not is_finite(test_size) or not 0 < test_size < 1:
        raise DeclarationError(f"test_size ({test_size!r}) must lie between 0 and 1; pass 0.2")


def _rising(epsilons: Any) -> tuple[float, ...]:
    """The epsilons, sorted, each only once."""
    if isinstance(epsilons, str) or not np.iterable(epsilons):
        raise DeclarationTypeError(
            f"epsilons ({epsilons!r}) must be several numbers; pass [0.1, 1.0]"
        )
    listed = list(epsilons)
    if not listed or not all(is_finite(value) and value > 0 for value in listed):
        raise DeclarationError(f"epsilons ({listed!r}) must be positive numbers; pass [0.1, 1.0]")
    return tuple(sorted({float(value) for value in listed}))


# ------------------------------------------------------------------------------------------- trials


@dataclass(frozen=True, eq=False, repr=False)
class _Bench:
    """Public records, and the estimator that is tried on them."""

    template: Any
    X: Any
    y: Any
    n_records: int
    test_size: float
    name: str
    settings: str

    @classmethod
    def of(
        cls, estimator: Any, X: Any, y: Any, test_size: float, delta: float | None, n_jobs: int
    ) -> _Bench:
        from sklearn.base import ClassifierMixin, clone

        _check_estimator(estimator)
        labels, size, kind = None, _length(X), type(estimator).__name__
        template = clone(estimator)
        if isinstance(estimator, ClassifierMixin):
            labels = _read_labels(y, size, kind)
            if estimator.classes is None:
                template.set_params(classes=np.unique(labels).tolist())
        if delta is not None:
            template.set_params(delta=delta)
        if n_jobs > 1:
            template.set_params(n_threads=1)
        if not 1 <= round(test_size * size) < size:
            raise DeclarationError(
                f"test_size ({test_size!r}) must leave records on both sides; pass more records"
            )
        settings = _described(estimator.get_params(deep=False))
        return cls(template, X, labels, size, float(test_size), kind, settings)

    def start(self, epsilons: tuple[float, ...], seeds: int, resume: Sweep | None) -> Sweep:
        """An empty sweep, or one with those trials of an earlier one that it also plans."""
        plain = NOT_PRIVATE if _twin(self.template, 0) is not None else NO_NOISE
        references = (plain,) if self.y is None else (plain, LARGER_CLASS)
        empty = Sweep(
            self.name, self.settings, self._measure(),
            Budget(epsilons[0], self.template.delta).delta, self.test_size, self.n_records,
            int(seeds), epsilons, references,
        )  # fmt: skip
        if resume is None:
            return empty
        if not isinstance(resume, Sweep):
            raise DeclarationTypeError(
                f"resume ({type(resume).__name__}) must be a Sweep; pass an earlier one"
            )
        grown = replace(resume, seeds=empty.seeds, epsilons=epsilons, trials=())
        if grown != empty:
            raise DeclarationError(
                "resume must be a sweep of the same estimator, delta, test_size and records; pass "
                "that one, or leave it out"
            )
        planned = set(empty.planned)
        kept = tuple(trial for trial in resume.trials if (trial.setting, trial.seed) in planned)
        return replace(empty, trials=kept)

    def _measure(self) -> str:
        if self.y is not None:
            return "accuracy"
        return "mean distance" if hasattr(self.template, "facilities") else "mean squared distance"

    def run(
        self, todo: Sequence[tuple[float | str, int]], n_jobs: int
    ) -> Generator[float, None, None]:
        """The value of each trial, in order."""
        if n_jobs == 1:
            yield from (self.value(*pair) for pair in todo)
            return
        with ThreadPoolExecutor(n_jobs) as pool:  # the kernels let other threads run
            try:
                yield from pool.map(lambda pair: self.value(*pair), todo)
            finally:
                pool.shutdown(cancel_futures=True)

    def value(self, setting: float | str, seed: int) -> float:
        """The score of one trial on its test records."""
        from sklearn.base import clone
        from threadpoolctl import threadpool_limits

        train, test = self._split(seed)
        if setting == LARGER_CLASS:
            labels, counts = np.unique(self.y[train], return_counts=True)
            return float(np.mean(self.y[test] == labels[counts.argmax()]))
        if setting == NOT_PRIVATE:
            with threadpool_limits(1):  # on a busy machine k-means is 40 times faster with one
                return self._score(_twin(self.template, seed), self._coded(), train, test)
        epsilon = ALMOST_NO_NOISE if setting == NO_NOISE else setting
        model = clone(self.template).set_params(epsilon=epsilon, random_state=seed)
        return self._score(model, self.X, train, test)

    def _split(self, seed: int) -> tuple[Integers, Integers]:
        """Positions of training and test records."""
        order = np.random.default_rng(seed).permutation(self.n_records)
        held_out = round(self.test_size * self.n_records)
        return order[held_out:], order[:held_out]

    def _score(self, model: Any, X: Any, train: Integers, test: Integers) -> float:
        """Fit and evaluate: the accuracy, or the mean cost of a record."""
        with public_records():
            if self.y is not None:
                model.fit(_rows(X, train), self.y[train])
                return float(model.score(_rows(X, test), self.y[test]))
            return -float(model.fit(_rows(X, train)).score(_rows(X, test))) / len(test)

    def _coded(self) -> Any:
        """The records as the private model sees them."""
        from privfit.estimators import BernoulliNB, KMeans
        from privfit.estimators.common import as_domain, read_table

        if isinstance(self.template, BernoulliNB):
            return read_table(self.template, self.X, None)
        domain = as_domain(self.template.domain, self.name)
        table = read_table(self.template, self.X, domain)
        coded = domain.rounded(table, uniform=isinstance(self.template, KMeans))
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


def _short_indices(table: Any) -> Any:
    """A sparse table with indices that liblinear can read."""
    from scipy.sparse import csr_matrix

    index, start = (part.astype(np.int32) for part in (table.indices, table.indptr))
    return csr_matrix((table.data, index, start), shape=table.shape)


def _check_estimator(estimator: Any) -> None:
    from privfit.estimators import BernoulliNB, KMeans, KMedian, LinearSVC, LogisticRegression

    if not isinstance(estimator, (BernoulliNB, KMeans, KMedian, LinearSVC, LogisticRegression)):
        raise DeclarationTypeError(
            f"estimator ({type(estimator).__name__}) must be a classifier, KMeans or KMedian of "
            "privfit; pass one such as LogisticRegression(domain=(-1, 1))"
        )
    if estimator.ledger is not None:
        raise DeclarationError(
            "ledger must be left out: records that are declared public cost no budget; pass the "
            "estimator without it"
        )


def _described(parameters: Mapping[str, Any]) -> str:
    """The parameters that every fit shares, as one line."""
    shown = {
        name: getattr(value, "__qualname__", None) or " ".join(repr(value).split())
        for name, value in sorted(parameters.items())
        if name not in NO_SETTINGS
    }
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def _read_labels(y: Any, size: int, what: str) -> NDArray[Any]:
    if y is None:
        raise InputError(f"y must be given for {what}; pass the label of each record")
    labels = np.asarray(y)
    if labels.shape != (size,):
        raise InputError("y must have one label for each record; pass a vector of that length")
    return labels


def _length(X: Any) -> int:
    """The number of records of a table: an array, a sparse matrix, a DataFrame or a dict."""
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
