"""Sweeps: what they measure, what is shared, what an interruption keeps, what they refuse."""

from __future__ import annotations

import json
import math
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from makers.raises import assert_reached, messages_of
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import privfit
from privfit import (
    BernoulliNB,
    Categorical,
    KMeans,
    KMedian,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Schema,
    sweep,
)
from privfit.report.sweeps import Sweep, SweepInterrupted, Trial, interval

N = 600
COINS = np.random.default_rng(7)
X = COINS.uniform(-1, 1, (N, 3))
Y = np.where(X[:, 0] + COINS.normal(0, 0.3, N) > X[:, 1] + 0.3, "yes", "no")
TABLE = {"u": X[:, 0], "v": X[:, 1], "w": np.where(X[:, 2] > 0, "up", "down")}
SCHEMA = Schema(
    {"u": Numeric(-1, 1), "v": Numeric(-1, 1, bins=4), "w": Categorical(["up", "down"])}
)
PLACES = COINS.uniform(-1, 1, (20, 3))
MODEL = LogisticRegression(delta=1e-6, domain=(-1, 1), n_threads=1)
run = partial(sweep, MODEL, X, Y, [0.1, 10.0], public=True, seeds=3)


@pytest.fixture(scope="module")
def whole() -> Sweep:
    return run()


def values(found: Sweep, setting: float | str) -> list[float]:
    return [trial.value for trial in found.trials if trial.setting == setting]


# ------------------------------------------------------------------------------------- measurements


def test_intervals_are_those_of_scipy():
    measured = COINS.normal(0.8, 0.1, 10)
    mean, half = interval(measured)
    low, high = scipy.stats.ttest_1samp(measured, 0).confidence_interval(0.95)
    np.testing.assert_allclose((mean - half, mean + half), (low, high), rtol=1e-12)
    assert interval([0.5])[0] == 0.5
    assert math.isnan(interval([0.5])[1])


def test_a_trial_is_the_fit_and_the_split_that_it_says(whole):
    order = np.random.default_rng(2).permutation(N)
    test, train = order[: N // 5], order[N // 5 :]
    model = LogisticRegression(
        0.1, 1e-6, domain=(-1, 1), classes=["no", "yes"], n_threads=1, random_state=2
    )
    assert values(whole, 0.1)[2] == model.fit(X[train], Y[train]).score(X[test], Y[test])
    larger = "no" if np.mean(Y[train] == "no") > 0.5 else "yes"
    assert values(whole, "larger class")[2] == np.mean(Y[test] == larger)


def test_the_open_model_is_that_of_scikit_learn_on_coded_records(whole):
    from sklearn.linear_model import LogisticRegression as Plain

    order = np.random.default_rng(0).permutation(N)
    test, train = order[: N // 5], order[N // 5 :]
    exposed = Plain(max_iter=1000).fit(X[train], Y[train]).score(X[test], Y[test])
    assert abs(values(whole, "not private")[0] - exposed) <= 1.01 / len(test)


def test_rows_have_means_and_intervals_of_their_trials(whole):
    assert [row.setting for row in whole.rows] == [0.1, 10.0]
    assert [row.setting for row in whole.reference_rows] == ["not private", "larger class"]
    for row in (*whole.rows, *whole.reference_rows):
        assert (row.mean, row.half_width) == interval(values(whole, row.setting))
        assert row.count == 3
    assert whole.rows[1].mean > whole.reference_rows[1].mean


def test_trials_do_not_depend_on_the_jobs(whole):
    threads = threading.active_count()
    assert run(n_jobs=2) == whole
    assert threading.active_count() == threads


SOME = {"public": True, "seeds": 2, "epsilons": [0.5, 50.0]}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("model", "table", "labels", "references"),
    [
        (LinearSVC(domain=SCHEMA), TABLE, Y, ("not private", "larger class")),
        (LogisticRegression(domain=SCHEMA), TABLE, Y, ("not private", "larger class")),
        (BernoulliNB(), X > 0, Y, ("not private", "larger class")),
        (KMeans(3, domain=(-1, 1)), X, None, ("not private",)),
        (KMeans(3, domain=SCHEMA), TABLE, Y, ("not private",)),
        (KMedian(3, facilities=PLACES), X, None, ("almost no noise",)),
    ],
    ids=["svc", "logistic", "bayes", "kmeans", "kmeans schema", "kmedian"],
)
def test_every_estimator_comes_near_its_reference(model, table, labels, references):
    found = sweep(model, table, labels, **SOME)
    assert found.references == references
    assert found.complete
    private, exposed = found.rows[-1].mean, found.reference_rows[0].mean
    assert abs(private - exposed) < 0.15 * exposed  # seeded: the same on every run


@pytest.mark.parametrize(("model", "power"), [
    (KMeans(3, domain=(-1, 1)), 2), (KMedian(3, facilities=PLACES), 1),
])  # fmt: skip
def test_clusters_are_judged_by_the_mean_cost_of_a_test_record(model, power):
    found = sweep(model, X, **{**SOME, "seeds": 1})
    order = np.random.default_rng(0).permutation(N)
    test, train = order[: N // 5], order[N // 5 :]
    fitted = model.set_params(epsilon=0.5, random_state=0).fit(X[train])
    cost = np.mean(fitted.transform(X[test]).min(axis=1) ** power)
    np.testing.assert_allclose(values(found, 0.5), [cost], rtol=1e-12)
    assert found.measure == ("mean squared distance" if power == 2 else "mean distance")


def test_tables_of_every_kind_give_the_same_trials(whole):
    pandas = pytest.importorskip("pandas")
    for table in (X.tolist(), pandas.DataFrame(X), scipy.sparse.coo_array(X)):
        again = sweep(MODEL, table, Y, [0.1], public=True, seeds=1)
        assert values(again, 0.1) == values(whole, 0.1)[:1]


def test_the_estimator_and_the_filters_of_warnings_stay_as_they_were():
    model = LogisticRegression(0.7, domain=(-1, 1))
    before = model.get_params()
    sweep(model, X, Y, [0.1], public=True, seeds=1, delta=1e-6)
    assert model.get_params() == before
    assert not hasattr(model, "coef_")
    with pytest.raises(ConvergenceWarning):
        __import__("warnings").warn("as ever", ConvergenceWarning, stacklevel=1)


# -------------------------------------------------------------------------- interruptions and files


def stop_after(trials: int):
    def progress(found: Sweep) -> None:
        if len(found.trials) == trials:
            raise KeyboardInterrupt

    return progress


@pytest.mark.few(1)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_sweep_is_kept_and_resumed(whole, n_jobs):
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt, match="5 of 12 trials are done; pass resume=") as caught:
        run(progress=stop_after(5), n_jobs=n_jobs)
    assert isinstance(caught.value, SweepInterrupted)
    assert threading.active_count() == threads  # nothing runs on
    partial_sweep = Sweep.from_json(caught.value.sweep.to_json())
    assert partial_sweep.trials == whole.trials[:5]
    assert not partial_sweep.complete
    told: list[Sweep] = []
    assert run(resume=partial_sweep, progress=told.append, n_jobs=n_jobs) == whole
    assert [len(found.trials) for found in told] == [*range(6, 13)]


def test_a_sweep_grows_by_seeds_and_epsilons(whole):
    told: list[Sweep] = []
    grown = sweep(MODEL, X, Y, [1.0, 0.1], public=True, seeds=4, resume=whole, progress=told.append)
    assert grown == sweep(MODEL, X, Y, [0.1, 1.0], public=True, seeds=4)
    assert len(told) == 3 + 4  # the new epsilon on three splits, and the new split


def test_a_sweep_survives_its_json(whole):
    assert Sweep.from_json(whole.to_json()) == whole
    assert json.loads(whole.to_json())["privfit_sweep"] == 1


def test_the_table_shows_every_row(whole):
    lines = str(whole).splitlines()
    assert lines[0] == (
        "LogisticRegression: accuracy on held-out records, mean and 95 % interval of 3 split(s), "
        "delta 1e-06"
    )
    row = whole.rows[0]
    assert lines[2] == f"             0.1  {row.mean:.4f} +- {row.half_width:.4f}"
    assert [line[:16].strip() for line in lines[1:]] == [
        "epsilon", "0.1", "10", "not private", "larger class",
    ]  # fmt: skip
    one = Sweep("A", "", "accuracy", 0.0, 0.2, 9, 2, (1.0,), (), (Trial(1.0, 0, 0.75),))
    assert str(one).endswith("delta 0; 1 of 2 trials\n         epsilon  accuracy\n" + 15 * " "
                             + "1  0.7500")  # fmt: skip


# ----------------------------------------------------------------------------------------- refusals

PUBLIC = {"public": True, "seeds": 1}
REFUSED = [
    *((partial(sweep, MODEL, X, Y, public=p), r"public must be True: the accuracies .* are not pri")
      for p in (False, 1, "yes")),
    *((partial(sweep, MODEL, X, Y, public=True, seeds=s), r"seeds \(.*\) must be a positive whole")
      for s in (0, 1.0, True)),
    (partial(sweep, MODEL, X, Y, **PUBLIC, n_jobs=0), r"n_jobs \(0\) must be a positive whole"),
    *((partial(sweep, MODEL, X, Y, **PUBLIC, test_size=t), r"test_size \(.*\) must lie between 0 a")
      for t in (0, 1, math.nan, "a")),
    (partial(sweep, MODEL, X[:2], Y[:2], **PUBLIC), r"test_size \(0.2\) must leave records on bo"),
    *((partial(sweep, MODEL, X, Y, e, **PUBLIC), r"epsilons \(.*\) must be several numbers; pass ")
      for e in (1.0, "0.1")),
    *((partial(sweep, MODEL, X, Y, e, **PUBLIC), r"epsilons \(\[.*\]\) must be positive numbers; p")
      for e in ([], [0.0, 1.0], [math.inf], ["1"])),
    *((partial(sweep, m, X, Y, **PUBLIC), r"estimator \(.*\) must be a classifier, KMeans or KMed")
      for m in (PCA(), make_pipeline(MODEL), LogisticRegression, None)),
    (partial(sweep, LogisticRegression(domain=(-1, 1), ledger=Ledger(1.0)), X, Y, **PUBLIC),
     r"ledger must be left out: records that are declared public cost no budget; pass"),
    (partial(sweep, MODEL, X, **PUBLIC), r"y must be given for LogisticRegression; pass the label"),
    (partial(sweep, MODEL, X, Y[1:], **PUBLIC), r"y must have one label for each record; pass"),
    (partial(sweep, MODEL, X, Y, **PUBLIC, delta=2.0), r"delta \(2.0\) must lie in \[0, 1\)"),
    (partial(sweep, MODEL, X, Y, **PUBLIC, resume="x"), r"resume \(str\) must be a Sweep; pass an"),
    (partial(sweep, LogisticRegression(), X, Y, **PUBLIC), r"LogisticRegression needs the decl"),
    *((partial(Sweep.from_json, text), r"text must be JSON written by Sweep.to_json; pass it as i")
      for text in ("", "{", "[]", "{}", "3")),
    (partial(Sweep.from_json, '{"privfit_sweep": 9}'), r"version \(9\) must be 1; use the privfit"),
    *((partial(Sweep.from_json, text), r"text must have all fields of a Sweep; pass it as is")
      for text in ('{"privfit_sweep": 1}',
                   '{"privfit_sweep": 1, "epsilons": [], "references": [], "trials": [{}]}')),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_wrong_input_has_one_clear_message(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


OTHERS = [
    partial(run, delta=1e-5),
    partial(run, test_size=0.3),
    partial(sweep, MODEL, X[1:], Y[1:], public=True),
    partial(sweep, LogisticRegression(delta=1e-6, domain=(-2, 2)), X, Y, public=True),
    partial(sweep, LinearSVC(delta=1e-6, domain=(-1, 1)), X, Y, public=True),
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_sweep_of_something_else_is_not_resumed(other, whole):
    with pytest.raises(ValueError, match="resume must be a sweep of the same estimator, delta, te"):
        other(resume=whole)


def test_every_raise_is_reached_by_a_case_above(whole):
    calls = [*(call for call, _ in REFUSED), partial(OTHERS[0], resume=whole)]
    seen = "\n".join(messages_of(call) for call in calls)
    assert_reached([Path(privfit.__file__).parent / "report/sweeps.py"], seen)
