"""Privacy-accuracy curves on public records: models, many epsilons, many splits.

The numbers of a sweep are exact functions of the records, so they are *not private*: a sweep is for
public or synthetic records, and requires a declaration that they are. Each seed determines a split
into training and test records, which all epsilons share, and the fit's own draws. References are
fitted on the same splits: scikit-learn's model without privacy, and the larger class. `trials.py`
has what happens in a trial, `results.py` what is returned.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.validation import is_finite, is_whole
from privfit.report.results import Row, Sweep, SweepInterrupted, Sweeps, Trial, interval
from privfit.report.trials import Bench, SearchProblem, bench_of

__all__ = [
    "Row",
    "SearchProblem",
    "Sweep",
    "SweepInterrupted",
    "Sweeps",
    "Trial",
    "interval",
    "sweep",
]

Progress: TypeAlias = "Callable[[Any], object]"

EPSILONS = (0.1, 0.3, 1.0, 3.0)
BATCH = 4  # trials of each job between two reports of what is done


def sweep(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    epsilons: Sequence[float] = EPSILONS,
    *,
    public: bool = False,
    measure: Any = None,
    seeds: int = 10,
    test_size: float = 0.2,
    delta: float | None = None,
    references: bool = True,
    resume: Any = None,
    progress: Progress | None = None,
    n_jobs: int = 1,
) -> Any:
    """Fit models at several epsilons, on several splits of public records.

    Parameters
    ----------
    estimator : estimator of privfit, Pipeline, SearchProblem, or dict of str to these
        What to try. It is cloned for every fit; epsilon and random_state are replaced. Classes that
        are not declared are read from the labels, which are public here. Private steps of a
        pipeline share epsilon, and `delta`, in proportion to their own epsilons.
    X : array-like of shape (n, n_columns), optional
        The records, as the estimator takes them; None for a `SearchProblem`, which has its own.
    y : array-like of shape (n,) or None, default=None
        The labels; None for clustering.
    epsilons : sequence of float
        The budgets to try.
    public : bool, default=False
        Must be True: it declares that the records are public or synthetic. What is measured on test
        records is not private.
    measure : str, callable (model, X_test, y_test) -> float, or None, default=None
        What is measured: a function, or the name of one of scikit-learn's scorers, such as
        'roc_auc'. By default the accuracy of classifiers, and for clustering the mean cost of a
        test record: the squared distance to the nearest centre (`KMeans`), or the distance
        (`KMedian`). A `SearchProblem` has its own.
    seeds : int, default=10
        Number of splits. Seeds 0, 1, ... determine the split and the draws of the fits.
    test_size : float, default=0.2
        Fraction of the records to hold out.
    delta : float or None, default=None
        The delta of all fits; by default the estimator's.
    references : bool, default=True
        Whether to fit scikit-learn's model without privacy as well, and the larger class. A measure
        is then called with scikit-learn's model, and records as they are coded.
    resume : Sweep, Sweeps or None, default=None
        An earlier sweep of the same estimator and the same records, of which only the number is
        compared. Its trials are not repeated; it may have been interrupted, or have had other
        epsilons or fewer seeds, or fewer models. Functions of your own are compared by name, so
        they must be defined at the top level of a module.
    progress : callable (Sweep or Sweeps) -> object or None, default=None
        Called after every trial with what is done so far.
    n_jobs : int, default=1
        Number of trials that run at once, each fit on one thread; -1 is one for each core. It
        affects speed and nothing else. Jobs are threads of joblib, or what its `parallel_config`
        says.

    Returns
    -------
    Sweep or Sweeps
        What was measured, trial by trial; `Sweeps`, by name, for a dict.

    Raises
    ------
    SweepInterrupted
        After Ctrl-C; it contains what was done so far.

    See Also
    --------
    Sweep, Sweeps : The results.
    SearchProblem : A search to try.
    privfit.report.plotting.draw_sweep : Plots them.

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
    single = not isinstance(estimator, Mapping)
    models = _named(estimator)
    terms = X, y, measure, test_size, delta, references, n_jobs != 1
    benches = {name: bench_of(one, *terms) for name, one in models.items()}
    earlier = _earlier(resume, single)
    rising = _rising(epsilons)
    found = Sweeps(
        {name: _start(bench, rising, seeds, earlier.get(name)) for name, bench in benches.items()}
    )
    return _made(benches, found, n_jobs, progress, single)


def _named(estimator: Any) -> dict[str, Any]:
    """What to try, by name; a single one has none."""
    if not isinstance(estimator, Mapping):
        return {"": estimator}
    if not estimator or not all(isinstance(name, str) for name in estimator):
        raise DeclarationError(
            "estimator must be an estimator, or a dict of several by name; pass such as "
            '{"logistic": LogisticRegression(domain=(-1, 1))}'
        )
    return dict(estimator)


def _earlier(resume: Any, single: bool) -> Mapping[str, Sweep]:
    """Earlier sweeps by name."""
    if resume is None:
        return {}
    wanted = Sweep if single else Sweeps
    if not isinstance(resume, wanted):
        raise DeclarationTypeError(
            f"resume ({type(resume).__name__}) must be a {wanted.__name__}; pass an earlier one"
        )
    return {"": resume} if isinstance(resume, Sweep) else resume


def _start(bench: Bench, epsilons: tuple[float, ...], seeds: int, resume: Sweep | None) -> Sweep:
    """An empty sweep, or one with those trials of an earlier one that it also plans."""
    empty = Sweep(
        bench.name, bench.settings, bench.measure, bench.delta, bench.test_size, bench.n_records,
        int(seeds), epsilons, bench.references,
    )  # fmt: skip
    if resume is None:
        return empty
    _refuse_nameless(bench)
    grown = replace(resume, seeds=empty.seeds, epsilons=epsilons, trials=())
    if grown != empty:
        raise DeclarationError(
            "resume must be a sweep of the same estimator, delta, test_size, measure and records; "
            "pass that one, or leave it out"
        )
    planned = set(empty.planned)
    kept = tuple(trial for trial in resume.trials if (trial.setting, trial.seed) in planned)
    return replace(empty, trials=kept)


def _refuse_nameless(bench: Bench) -> None:
    """Refuse functions that a name does not distinguish from others: trials would be mixed up."""
    known = f"{bench.settings} {bench.measure}"
    for mark in ("<lambda>", "<locals>", "<compiled>"):
        if mark in known:
            raise DeclarationError(
                f"resume must not be passed with a function or class that has no name of its own "
                f"({mark}), since another one could have made its trials; define it at the top "
                "level of a module, or leave resume out"
            )


def _made(
    benches: Mapping[str, Bench], found: Sweeps, n_jobs: int, progress: Progress | None,
    single: bool,
) -> Sweep | Sweeps:  # fmt: skip
    """Sweeps with the trials that they lack."""
    whole = dict(found)
    todo = [(name, *pair) for name, one in found.items() for pair in _lacking(one)]
    with _no_convergence_warnings(), closing(_values(benches, todo, n_jobs)) as results:
        try:
            for (name, setting, seed), value in zip(todo, results, strict=True):
                whole[name] = _with(whole[name], Trial(setting, seed, value))
                if progress is not None:
                    progress(_result(whole, single))
        except KeyboardInterrupt:
            raise SweepInterrupted(_result(whole, single)) from None
    return _result(whole, single)


def _result(whole: Mapping[str, Sweep], single: bool) -> Sweep | Sweeps:
    return whole[""] if single else Sweeps(whole)


def _lacking(sweep: Sweep) -> list[tuple[float | str, int]]:
    """(setting, seed) of the trials to be done."""
    done = {(trial.setting, trial.seed) for trial in sweep.trials}
    return [pair for pair in sweep.planned if pair not in done]


def _with(sweep: Sweep, trial: Trial) -> Sweep:
    """A sweep with one more trial, in the order that is planned."""
    done = {(one.setting, one.seed): one for one in (*sweep.trials, trial)}
    return replace(sweep, trials=tuple(done[pair] for pair in sweep.planned if pair in done))


def _values(
    benches: Mapping[str, Bench], todo: Sequence[tuple[str, float | str, int]], n_jobs: int
) -> Generator[float, None, None]:
    """The value of each trial, in order."""
    if n_jobs == 1:
        yield from (benches[name].value(setting, seed) for name, setting, seed in todo)
        return
    from joblib import Parallel, delayed, effective_n_jobs  # scikit-learn brings it

    size = BATCH * effective_n_jobs(n_jobs)
    with Parallel(n_jobs, prefer="threads") as pool:  # the kernels let other threads run
        for start in range(0, len(todo), size):
            batch = todo[start : start + size]
            yield from pool(delayed(benches[name].value)(*pair) for name, *pair in batch)


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
        if (name, value) == ("n_jobs", -1):  # a job for each core
            continue
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
