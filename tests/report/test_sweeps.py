"""Sweeps: what they measure, what is shared, what an interruption keeps, what they refuse."""

from __future__ import annotations

import json
import math
import threading
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from makers.raises import assert_reached, messages_of
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, f1_score, make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import privfit
from privfit import (
    DPSGA,
    BernoulliNB,
    Categorical,
    KMeans,
    KMedian,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Reals,
    RecordObjective,
    Schema,
    SearchProblem,
    SelectFeatures,
    Sweeps,
    search,
    sweep,
)
from privfit.report.plotting import draw_sweep
from privfit.report.sweeps import Sweep, SweepInterrupted, Trial, interval
from privfit.runs import Path as Trace
from privfit.runs import Run
from privfit.runs.settings import Search

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


def assert_ends(threads: set[threading.Thread]) -> None:
    """Threads that a sweep started end by themselves."""
    for thread in set(threading.enumerate()) - threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_trials_do_not_depend_on_the_jobs(whole):
    threads = set(threading.enumerate())
    assert run(n_jobs=2) == whole
    assert_ends(threads)


@pytest.mark.slow
def test_jobs_may_be_processes(whole):
    with joblib.parallel_backend("loky", n_jobs=2):
        assert run(n_jobs=2) == whole


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


# --------------------------------------------------------- measures, pipelines, searches, several


def halves(seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(N)
    return order[N // 5 :], order[: N // 5]


def weight(model, X_test, y_test):
    return float(np.abs(model.coef_).sum())


def test_a_measure_is_a_function_or_a_scorer():
    found = sweep(MODEL, X, Y, [1.0], public=True, seeds=1, measure="roc_auc")
    train, test = halves(0)
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=["no", "yes"], random_state=0)
    model.fit(X[train], Y[train])
    assert values(found, 1.0) == [roc_auc_score(Y[test], model.predict_proba(X[test])[:, 1])]
    assert (found.measure, found.references) == ("roc_auc", ("not private",))
    own = sweep(MODEL, X, Y, [1.0], public=True, seeds=1, measure=weight, references=False)
    assert values(own, 1.0) == [np.abs(model.coef_).sum()]
    assert (own.measure, own.references) == ("weight", ())
    scorer = make_scorer(f1_score, pos_label="yes")
    scored = sweep(MODEL, X, Y, [1.0], public=True, seeds=1, measure=scorer)
    assert values(scored, 1.0) == [f1_score(Y[test], model.predict(X[test]), pos_label="yes")]
    assert scored.measure.startswith("make_scorer(f1_score")
    same = sweep(MODEL, X, Y, [1.0], public=True, seeds=1, measure="accuracy")
    assert same == sweep(MODEL, X, Y, [1.0], public=True, seeds=1)


def test_clusters_can_be_measured_by_labels():
    groups = (X[:, 0] > 0).astype(int)
    clusters = KMeans(2, domain=(-1, 1))
    found = sweep(clusters, X, groups, [5.0], public=True, seeds=1, measure="adjusted_rand_score")
    train, test = halves(0)
    model = KMeans(2, 5.0, domain=(-1, 1), random_state=0).fit(X[train])
    assert values(found, 5.0) == [adjusted_rand_score(groups[test], model.predict(X[test]))]


def test_a_pipeline_gets_epsilon_in_its_private_step(whole):
    steps = Pipeline([("same", FunctionTransformer()), ("model", MODEL)])
    found = sweep(steps, X, Y, [0.1, 10.0], public=True, seeds=3)
    assert found.references == ("larger class",)
    assert [(t.setting, t.value) for t in found.trials if t.setting != "larger class"] == [
        (t.setting, t.value) for t in whole.trials if not isinstance(t.setting, str)
    ]
    assert found.settings.startswith("same: FunctionTransformer(); model: LogisticRegression(adj")
    assert not hasattr(MODEL, "coef_")


def test_private_steps_share_epsilon_as_their_epsilons_are(monkeypatch):
    steps = Pipeline([("select", SelectFeatures(0.75, k=2)), ("bayes", BernoulliNB(0.25))])
    fitted = []
    for kind in (SelectFeatures, BernoulliNB):

        def fit(self, *arguments, kind=kind, fit=kind.fit):
            fitted.append((kind.__name__, self.epsilon, self.delta, self.random_state,
                           self.classes, self.n_threads))  # fmt: skip
            return fit(self, *arguments)

        monkeypatch.setattr(kind, "fit", fit)
    found = sweep(steps, X > 0, Y, [2.0], public=True, seeds=1, delta=1e-6, n_jobs=2)
    (_, *first), (_, *second) = sorted(fitted, reverse=True)
    assert first[:3] == [1.5, 0.75e-6, 0]
    assert second[:2] == [0.5, 0.25e-6]
    assert second[2] != 0  # noise of its own
    assert first[3:] == second[3:] == [["no", "yes"], 1]
    assert "share=0.75" in found.settings
    assert found.delta == 1e-6
    nested = Pipeline([("inner", steps)])
    again = sweep(nested, X > 0, Y, [2.0], public=True, seeds=1, delta=1e-6)
    assert again.trials == found.trials
    assert again.settings.startswith("inner: [select: SelectFeatures(")


def nearness(x, P):
    return -np.abs(x[:, None] - P[:, 0])


def distance(found):
    return abs(float(found.answer[0]) - 3.0)


OBJECTIVE = RecordObjective(np.full(300, 3.0), nearness, low=-10.0, high=0.0)
PROBLEM = SearchProblem(OBJECTIVE, Reals(0, 10, 1), distance, DPSGA(3, 20, 4))


def test_a_search_is_tried_like_a_model():
    found = sweep(PROBLEM, epsilons=[0.5, 5.0], public=True, seeds=3)
    once = search(OBJECTIVE, Reals(0, 10, 1), 0.5, solver=DPSGA(3, 20, 4), random_state=2)
    assert values(found, 0.5)[2] == distance(once)
    assert (found.name, found.measure, found.n_records) == ("search", "distance", 300)
    assert str(found).startswith("search: distance, mean and 95 % interval of 3 run(s), delta 0")
    assert sweep(PROBLEM, epsilons=[0.5, 5.0], public=True, seeds=3, n_jobs=2) == found
    wider = sweep(PROBLEM, epsilons=[0.5], public=True, seeds=1, delta=1e-6)
    assert wider.delta == 1e-6


class Random(Search):
    """Of one's own, without a repr of its own."""

    name = "random"
    __repr__ = object.__repr__

    def __init__(self, tries: int = 8) -> None:
        self.tries = tries

    def get_params(self, deep: bool = True) -> dict:
        return {"tries": self.tries}

    def __call__(self, run: Run) -> Trace:
        eps_s = run.plan("selection")
        P = run.space.sample(8, run.coins)
        run.report(P[run.select(P, size=eps_s)])
        return run.path()


class Bare:
    """Without anything that describes it."""

    name, needs_order, counts_errors, centres_columns = "bare", False, False, False
    runs_unpaid, weighs_loss, largest_weight = False, False, 10.0

    def bounds_codes(self, objective):
        return False

    def check(self, task):
        pass

    __call__ = Random.__call__


@pytest.mark.parametrize(("kind", "shown"), [(Random, "solver=Random(tries=8)"), (Bare, "Bare")])
def test_a_solver_of_ones_own_is_described_and_resumed(kind, shown):
    def swept(seeds, **more):
        problem = SearchProblem(OBJECTIVE, Reals(0, 10, 1), distance, kind())
        return sweep(problem, epsilons=[1.0], public=True, seeds=seeds, **more)

    found = swept(2)
    assert shown in found.settings
    assert " at 0x" not in found.settings
    assert swept(3, resume=Sweep.from_json(found.to_json())).trials[:2] == found.trials
    model = LogisticRegression(delta=1e-6, domain=(-1, 1), solver=kind())
    fitted = sweep(model, X, Y, [1.0], public=True, seeds=1, references=False)
    assert " at 0x" not in fitted.settings


def score_near(x, P):
    return -np.abs(x[:, None] - P[:, 0])


def score_far(x, P):
    return -10 - score_near(x, P)


def other_distance(found):
    return -distance(found)


LINE = Reals(0, 10, 1)


def problem_of(score=score_near, measure=distance, space=LINE, **more):
    objective = RecordObjective(np.full(50, 3.0), score, low=-10.0, high=0.0, **more)
    return SearchProblem(objective, space, measure, DPSGA(1, 5, 1))


def judged(model, X, y):
    return model.score(X, y)


def judged_otherwise(model, X, y):
    return 1 - model.score(X, y)


def test_searches_that_differ_in_a_function_do_not_resume_each_other():
    terms = {"epsilons": [1.0], "public": True, "seeds": 1}
    kept = sweep(problem_of(), **terms)
    assert sweep(problem_of(), **terms, resume=Sweep.from_json(kept.to_json())) == kept
    others = [
        problem_of(score_far), problem_of(measure=other_distance), problem_of(bits=8),
        problem_of(space=Reals(0, 9, 1)),
        problem_of(moves=lambda x, w, where, what: score_near(x, what[:, None])),
    ]  # fmt: skip
    for other in others:
        with pytest.raises(ValueError, match="resume must"):
            sweep(other, **terms, resume=kept)
    kept = sweep(MODEL, X, Y, [1.0], public=True, seeds=1, measure=judged)
    with pytest.raises(ValueError, match="resume must be a sweep of the same"):
        sweep(MODEL, X, Y, [1.0], public=True, seeds=1, measure=judged_otherwise, resume=kept)


def local_score():
    def score(x, P):
        return score_near(x, P)

    return score


def resumed_without_name(**given):
    problem = problem_of(**given)
    kept = sweep(problem, epsilons=[1.0], public=True, seeds=1)
    return sweep(problem, epsilons=[1.0], public=True, seeds=2, resume=kept)


@pytest.mark.parametrize(
    "given",
    [{"measure": lambda found: 1.0}, {"score": lambda x, P: score_near(x, P)},
     {"score": local_score()}, {"score": partial(local_score())}],
)  # fmt: skip
def test_functions_without_a_name_are_not_resumed(given):
    message = r"resume must not be passed with a function .* has no name .*define it at the top lev"
    with pytest.raises(ValueError, match=message):
        resumed_without_name(**given)


MODELS = {
    "logistic": MODEL,
    "pipeline": make_pipeline(FunctionTransformer(), LinearSVC(domain=(-1, 1))),
    "search": PROBLEM,
}


@pytest.fixture(scope="module")
def several() -> Sweeps:
    return sweep(MODELS, X, Y, [0.5, 5.0], public=True, seeds=2)


def test_a_dict_of_models_gives_a_sweep_of_each(several):
    assert list(several) == list(MODELS)
    assert several.complete
    assert several.total == len(several.trials) == 8 + 6 + 4
    assert several["logistic"] == sweep(MODEL, X, Y, [0.5, 5.0], public=True, seeds=2)
    assert several["search"] == sweep(PROBLEM, epsilons=[0.5, 5.0], public=True, seeds=2)
    assert sweep(MODELS, X, Y, [0.5, 5.0], public=True, seeds=2, n_jobs=-1) == several
    assert str(several).count("95 % interval") == 3
    assert repr(several) == "Sweeps(logistic, pipeline, search; 18 of 18 trials)"


def test_several_sweeps_survive_json_and_an_interruption(several):
    assert Sweeps.from_json(several.to_json()) == several
    assert several.to_dict() == json.loads(several.to_json())
    again = partial(sweep, MODELS, X, Y, [0.5, 5.0], public=True, seeds=2)
    with pytest.raises(SweepInterrupted, match="10 of 18 trials are done") as caught:
        again(progress=stop_after(10))
    kept = Sweeps.from_json(caught.value.sweep.to_json())
    assert [len(one.trials) for one in kept.values()] == [8, 2, 0]
    told: list[Sweeps] = []
    assert again(resume=kept, progress=told.append) == several
    assert [len(found.trials) for found in told] == [*range(11, 19)]
    fewer = Sweeps({"search": several["search"]})  # a model may join later
    assert again(resume=fewer) == several


def test_sweeps_are_tables(whole, several):
    pytest.importorskip("pandas")
    frame = whole.to_frame()
    assert frame.columns.tolist() == [
        "model", "measure", "delta", "epsilon", "reference", "seed", "value"
    ]  # fmt: skip
    assert len(frame) == len(whole.trials)
    private = frame[frame["reference"].isna()]
    assert private.groupby("epsilon")["value"].mean().tolist() == pytest.approx(
        [row.mean for row in whole.rows]
    )
    assert frame[frame["epsilon"].isna()]["reference"].unique().tolist() == [
        "not private", "larger class"
    ]  # fmt: skip
    assert whole.to_dict() == json.loads(whole.to_json())
    assert several.to_frame()["model"].unique().tolist() == list(MODELS)
    assert len(several.to_frame()) == 18


def test_several_sweeps_of_one_measure_are_drawn(several):
    pytest.importorskip("matplotlib")
    alike = Sweeps({name: several[name] for name in ("logistic", "pipeline")})
    assert draw_sweep(alike).get_ylabel() == "accuracy (share of held-out records)"
    assert draw_sweep(several["search"]).get_ylabel() == "distance"


# -------------------------------------------------------------------------- interruptions and files


def stop_after(trials: int):
    def progress(found: Sweep) -> None:
        if len(found.trials) == trials:
            raise KeyboardInterrupt

    return progress


@pytest.mark.few(1)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_sweep_is_kept_and_resumed(whole, n_jobs):
    threads = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt, match="5 of 12 trials are done; pass resume=") as caught:
        run(progress=stop_after(5), n_jobs=n_jobs)
    assert isinstance(caught.value, SweepInterrupted)
    assert_ends(threads)  # nothing runs on
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
OWNED = LogisticRegression(domain=(-1, 1), ledger=Ledger(1.0))
EMPTY = Sweep("A", "", "accuracy", 0.0, 0.2, 9, 2, (1.0,), ())
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
    *((partial(sweep, m, X, Y, **PUBLIC), r"estimator \(.*\) must be an estimator of privfit, a Pi")
      for m in (PCA(), make_pipeline(PCA()), make_pipeline(GridSearchCV(MODEL, {})),
                LogisticRegression, None)),
    *((partial(sweep, m, X, Y, **PUBLIC), r"estimator must be an estimator, or a dict of several b")
      for m in ({}, {1: MODEL})),
    *((partial(sweep, m, X, Y, **PUBLIC),
       r"ledger must be left out: records that are declared public cost no budget; pass")
      for m in (OWNED, make_pipeline(PCA(2), OWNED), {"a": MODEL, "b": OWNED})),
    (partial(sweep, SelectFeatures(), X > 0, Y, **PUBLIC), r"measure must be given for SelectFeat"),
    (partial(sweep, MODEL, X, Y, **PUBLIC, measure="no such"),
     r"measure \('no such'\) must be a scorer of scikit-learn; pass one of sklearn.metrics.get"),
    (partial(sweep, MODEL, X, Y, **PUBLIC, measure=3), r"measure \(int\) must be a function or"),
    *((partial(sweep, MODEL, X, Y, **PUBLIC, measure=lambda m, X, y, v=value: v),
       r"measure \(<lambda>\) must return a finite number") for value in (None, math.nan, "a")),
    (partial(SearchProblem, 0, 0, "accuracy"), r"measure \(str\) must be a function of what is"),
    (partial(sweep, MODEL, None, Y, **PUBLIC), r"X must be given for an estimator; pass the recor"),
    (partial(sweep, {"a": MODEL}, X, Y, **PUBLIC, resume=EMPTY), r"resume \(Sweep\) must be a Sw"),
    *((partial(Sweeps.from_json, text), r"text must be JSON written by Sweeps.to_json; pass it as")
      for text in ("", "{}", '{"privfit_sweeps": 2}', '{"privfit_sweeps": 1, "sweeps": 3}')),
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
    partial(run, measure="roc_auc"),
    partial(run, references=False),
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
    calls += [partial(resumed_without_name, measure=lambda found: 1.0)]
    seen = "\n".join(messages_of(call) for call in calls)
    room = Path(privfit.__file__).parent / "report"
    assert_reached([room / f"{name}.py" for name in ("sweeps", "trials", "results")], seen)
