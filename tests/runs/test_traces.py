"""Traces: what paths and generations tell, what they cost, and runs that a callback ends."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from privfit import (
    DPSGA,
    EEM,
    Bits,
    Checkpoint,
    Event,
    FrankWolfe,
    Gradient,
    Greedy,
    Hybrid,
    KMeans,
    KMedian,
    Ledger,
    LinearSVC,
    Lloyd,
    LloydTrace,
    Local,
    LogisticRegression,
    MissingExtraError,
    PrivacyLeakWarning,
    PrivGene,
    Reals,
    RecordObjective,
    Release,
    SelectRefine,
    Swaps,
    compose,
    load,
    open_ledger,
    save,
    search,
)
from privfit.audit import paired
from privfit.privacy.mechanisms import DiscreteGaussian, Exponential
from privfit.runs import Generation, Path, Run
from privfit.runs.paths import Draws, Paths, together
from privfit.runs.settings import Settings
from privfit.runs.stops import RunEnded, path_of

COINS = np.random.default_rng(3)
X = COINS.uniform(-1, 1, (400, 3))
Y = (X[:, 0] + COINS.normal(0, 0.2, 400) > X[:, 1]).astype(int)
THREE = np.digitize(X[:, 0], [-0.3, 0.3])
PLACES = COINS.uniform(-1, 1, (12, 3))

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "random_state": 1}
linear = partial(LogisticRegression, domain=(-1, 1), classes=[0, 1], calibrate=False, **BUDGET)
means = partial(KMeans, 3, domain=(-1, 1), **BUDGET)
medians = partial(KMedian, 3, facilities=PLACES, **BUDGET)

FITS: dict[str, Any] = {
    "local": partial(linear, solver=Local(generations=8)),
    "eem": partial(linear, solver=EEM(generations=8, population=20)),
    "eem as published": partial(linear, solver=EEM(generations=8, population=20, paper=True)),
    "privgene": partial(linear, solver=PrivGene(generations=5, population=20, survivors=3)),
    "dpsga": partial(linear, solver=DPSGA(generations=5, population=20, survivors=3)),
    "dpsga by peeling": partial(
        linear, solver=DPSGA(generations=5, population=20, survivors=3, selection="noisy_max")
    ),
    "gradient": partial(linear, solver=Gradient(steps=8)),
    "pure gradient": partial(linear, delta=0.0, solver=Gradient(steps=8)),
    "frank_wolfe": partial(linear, solver=FrankWolfe(steps=8)),
    "select_refine": partial(
        linear, solver=SelectRefine(0.5, Local(generations=4), Gradient(steps=6, whiten=True))
    ),
    "svc": partial(LinearSVC, 1.0, domain=(-1, 1), classes=[0, 1], random_state=1),
    "lloyd": partial(means, solver=Lloyd(steps=6)),
    "lloyd of residuals": partial(means, solver=Lloyd(steps=6, residual=True)),
    "hybrid": partial(means, solver=Hybrid()),
    "k-means by eem": partial(means, solver=EEM(generations=8, population=20)),
    "greedy": partial(medians, solver=Greedy(swaps=5)),
    "swaps": partial(medians, solver=Swaps(steps=6)),
    "k-median by local": partial(medians, solver=Local(generations=8)),
}
ONCE: dict[str, Any] = {
    "majority": partial(linear, solver="majority"),
    "objective": partial(linear, solver="objective"),
    "output": partial(linear, solver="output"),
    "sgd": partial(linear, solver="sgd"),
    "functional": partial(linear, solver="functional"),
    "gupt": partial(linear, solver="gupt"),
    "subsample": partial(linear, solver="subsample"),
    "tree": partial(means, solver="tree"),
    "grid": partial(means, solver="grid"),
    "synopsis": partial(medians, solver="synopsis"),
    "coreset": partial(medians, solver="coreset"),
}


def answer(model: Any) -> np.ndarray:
    if isinstance(model, LogisticRegression | LinearSVC):
        return np.append(model.coef_, model.intercept_)
    return model.facilities_ if isinstance(model, KMedian) else model.cluster_centers_


def same(one: Path, other: Path) -> bool:
    pairs = zip(one.generations, other.generations, strict=True)
    return one.steps == other.steps and all(np.array_equal(a, b) for a, b in pairs)


# ------------------------------------------------------------------------------------------- traces


@pytest.mark.parametrize("name", [*FITS, *ONCE])
def test_a_fit_keeps_its_path_and_what_every_generation_drew(name):
    heard: list[Generation] = []
    model = (FITS | ONCE)[name](callback=heard.append).fit(X, Y)
    path = model.path_
    assert len(heard) == len(path.generations) == len(path.steps)
    assert path.notes.items() <= model.release_.settings.items() or "average" in path.notes
    for now, survivors, step in zip(heard, path.generations, path.steps, strict=True):
        assert np.array_equal(now.survivors, survivors)
        assert np.array_equal(now.parameters, survivors[0])
        assert now.step == step
    events = together(event for step in path.steps for event in step.events)
    assert set(events) == set(together(model.release_.events)) == set(heard[-1].drawn)
    assert (path.budget.epsilon, path.budget.delta) == (
        model.release_.epsilon, model.release_.delta
    )  # fmt: skip
    assert not path.stopped
    assert "stopped" not in model.release_.settings


def test_a_generation_tells_the_draws_of_its_step_and_no_time():
    heard: list[Generation] = []
    linear(solver=PrivGene(generations=2, population=20, survivors=3), callback=heard.append).fit(
        X, Y
    )
    size = heard[0].epsilon
    counts = [[(e.kind, e.parameter, e.count) for e in now.step.events] for now in heard]
    assert counts == [[("selection", size, 3)], [("selection", size, 3)], [("selection", size, 1)]]
    assert [sum(e.count for e in now.drawn) for now in heard] == [3, 6, 7]
    assert all(isinstance(now.range, int) and now.range > 0 and now.mu is None for now in heard)
    assert heard[1].spent_so_far.epsilon == compose([Event("selection", size, 6)], 1e-6)
    assert heard[1].spent_so_far.delta == 1e-6
    assert {field.name for field in fields(Generation)} == {
        "index", "total", "parameters", "spent", "survivors", "step", "drawn"
    }  # fmt: skip
    assert {field.name for field in fields(Path)} == {
        "generations", "average", "notes", "steps", "before", "budget", "noise", "kept", "shares"
    }  # fmt: skip


def test_noise_has_a_mu_and_a_sensitivity():
    heard: list[Generation] = []
    linear(solver=Gradient(steps=3), callback=heard.append).fit(X, Y)
    assert all(now.epsilon is None and now.mu > 0 and now.range > 0 for now in heard)
    assert [sum(e.count for e in now.step.events) for now in heard] == [2, 1, 1]  # moments first


@pytest.mark.parametrize("name", FITS)
def test_what_is_spent_so_far_rises_to_at_most_the_budget(name):
    model = FITS[name]().fit(X, Y)
    spent = model.path_.spent_so_far
    assert list(spent) == sorted(spent)
    assert spent[-1] <= model.release_.epsilon
    assert spent[-1] == min(model.release_.cost(), model.release_.epsilon)


def test_long_paths_are_never_said_to_cost_less_than_they_do():
    event = Event("pure", 0.001)
    path = Path((np.zeros((1, 1)),) * 120, steps=(Draws((event,), 1),) * 120,
                budget=Ledger(1.0).reserve(1.0).budget)  # fmt: skip
    exact = [compose([replace(event, count=i)], 0.0) for i in range(1, 121)]
    told = path.spent_so_far
    assert len(set(told)) == 50
    assert all(0 <= a - b < 0.004 for a, b in zip(told, exact, strict=True))
    assert told[-1] == exact[-1]


def test_several_classes_have_a_path_each_on_one_budget():
    model = linear(classes=[0, 1, 2], solver=Local(generations=4)).fit(X, THREE)
    paths = model.path_
    assert isinstance(paths, tuple)
    assert isinstance(paths, Paths)
    assert paths.classes == (0, 1, 2)
    for i, path in enumerate(paths):
        assert np.array_equal(path.answer, np.append(model.coef_[i], model.intercept_[i]))
        assert sum(event.count for event in path.before) == 4 * i
    assert paths[0].spent_so_far[-1] < paths[1].spent_so_far[0]
    assert paths[2].spent_so_far[-1] == min(model.release_.cost(), 1.0)
    again = pickle.loads(pickle.dumps(model)).path_
    assert again.classes == paths.classes
    assert all(same(a, b) for a, b in zip(again, paths, strict=True))


def test_a_run_without_privacy_has_no_draws_and_no_cost():
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        model = linear(epsilon=math.inf, solver=DPSGA(3, 20, 3)).fit(X, Y)
    assert set(model.path_.steps) == {Draws()}
    assert set(model.path_.spent_so_far) == {None}
    assert model.path_.to_frame()["spent_so_far"].isna().all()


# ------------------------------------------------------------------------------- tables and texts


def test_a_path_is_a_table_of_its_generations():
    pandas = pytest.importorskip("pandas")
    path = FITS["local"]().fit(X, Y).path_
    frame = path.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.name == "index"
    assert frame.index.tolist() == list(range(1, 9))
    assert frame.columns.tolist() == [
        "kind", "draws", "epsilon", "mu", "range", "spent_so_far", "norm", "p0", "p1", "p2", "p3",
    ]  # fmt: skip
    assert frame["epsilon"].tolist() == [path.notes["eps_s"]] * 8
    assert frame["mu"].isna().all()
    assert frame["spent_so_far"].tolist() == list(path.spent_so_far)
    leaders = np.concatenate(path.generations)
    assert np.array_equal(frame[["p0", "p1", "p2", "p3"]], leaders)
    np.testing.assert_allclose(frame["norm"], np.linalg.norm(leaders, axis=1))


def test_wide_or_growing_candidates_have_a_norm_only():
    wide = Path((np.ones((1, 65)),) * 2)
    assert wide.to_frame().columns.tolist()[-1] == "norm"
    growing = FITS["greedy"]().fit(X).path_.to_frame()
    assert growing.columns.tolist()[-1] == "norm"
    assert len(growing) == 8


def test_the_table_of_several_classes_has_a_column_of_classes():
    frame = linear(classes=["a", "b", "c"], solver=Local(generations=4)).fit(
        X, np.array(["a", "b", "c"])[THREE]
    ).path_.to_frame()  # fmt: skip
    assert frame["class"].tolist() == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert frame.index.tolist() == [1, 2, 3, 4] * 3


@pytest.mark.parametrize("name", [*FITS, *ONCE])
def test_dicts_are_plain_and_survive_json(name):
    model = (FITS | ONCE)[name]().fit(X, Y)
    told = model.path_.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["answer"] == model.path_.answer.tolist()
    assert [row["survivors"] for row in told["generations"]] == [
        survivors.tolist() for survivors in model.path_.generations
    ]
    assert "time" not in json.dumps(told)
    assert "second" not in json.dumps(told)
    release = model.release_
    assert json.loads(json.dumps(release.to_dict())) == release.to_dict()
    assert Release.from_json(json.dumps(release.to_dict())).events == release.events


def test_paths_of_several_classes_are_a_dict_by_class():
    model = linear(classes=[0, 1, 2], solver=Local(generations=2)).fit(X, THREE)
    told = model.path_.to_dict()
    assert list(told) == ["0", "1", "2"]
    assert told["1"] == model.path_[1].to_dict()


def test_releases_and_ledgers_are_tables():
    pytest.importorskip("pandas")
    ledger = Ledger(4.0, 1e-5, adjacency="replace")
    model = linear(solver=Gradient(steps=3), ledger=ledger).fit(X, Y)
    with ledger.group("test"):
        means(epsilon=0.5, delta=0.0, solver="tree", adjacency="add_remove", ledger=ledger,
              n_public=400).fit(X)  # fmt: skip
    drawn = model.release_.to_frame()
    assert drawn.columns.tolist() == ["kind", "parameter", "count", "delta"]
    assert drawn["count"].tolist() == [event.count for event in model.release_.events]
    charged = ledger.to_frame()
    assert charged["name"].tolist() == ["LogisticRegression", "KMeans"]
    assert charged["group"].tolist() == ["", "test"]
    assert charged["adjacency"].tolist() == ["replace", "add_remove"]
    assert charged["epsilon"].tolist() == [1.0, 0.5]
    assert charged["charged_epsilon"].tolist() == [1.0, 1.0]
    assert Ledger.from_json(json.dumps(ledger.to_dict())).spent == ledger.spent
    assert ledger.to_dict() == json.loads(ledger.to_json())


def test_a_ledger_in_a_file_is_a_table_too(tmp_path):
    pytest.importorskip("pandas")
    ledger = open_ledger(tmp_path / "budget.json", 2.0, 1e-5)
    linear(solver=Local(generations=2), ledger=ledger).fit(X, Y)
    assert ledger.to_frame()["epsilon"].tolist() == [1.0]
    assert ledger.to_dict() == json.loads(ledger.to_json())


def test_without_pandas_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_frame needs pandas; run pip install pandas, "):
        Path((np.zeros((1, 1)),)).to_frame()


# ---------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("end", [1, 3, 7])
def test_a_callback_that_returns_true_ends_the_fit_with_what_was_released(name, end):
    heard: list[int] = []

    def listen(now: Generation) -> bool:
        heard.append(now.index)
        return now.index >= end

    whole = FITS[name]().fit(X, Y)
    ledger = Ledger(1.0, 1e-6)
    ended = FITS[name](callback=listen, ledger=ledger).fit(X, Y)
    count = len(ended.path_.generations)
    least = 3 if name == "greedy" else 1  # facilities: an answer has all of them
    assert heard == list(range(1, count + 1))
    assert count == min(max(end, least), len(whole.path_.generations))
    cut = count < len(whole.path_.generations)
    assert ended.path_.stopped == cut
    assert ended.release_.settings.get("stopped") == (count if cut else None)
    # What was released is the beginning of the whole run, and the budget is charged in full.
    begun = replace(whole.path_, generations=whole.path_.generations[:count],
                    steps=whole.path_.steps[:count])  # fmt: skip
    assert same(ended.path_, begun)
    assert ledger.spent.epsilon == ended.release_.epsilon == 1.0
    assert ended.release_.verify()
    drawn = together(event for step in begun.steps for event in step.events)
    assert set(together(ended.release_.events)) == set(drawn)
    assert answer(ended).shape == answer(whole).shape


@pytest.mark.parametrize("name", ONCE)
def test_there_is_nothing_to_end_after_the_only_release(name):
    whole, ended = (
        ONCE[name](callback=callback).fit(X, Y) for callback in (None, lambda now: True)
    )
    assert np.array_equal(answer(whole), answer(ended))
    assert whole.release_.to_json() == ended.release_.to_json()


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_answer_of_an_ended_run_averages_what_there_is(share):
    model = linear(solver=Local(generations=20, average=share), callback=lambda now: now.index == 6)
    path = model.fit(X, Y).path_
    last = path.generations[-3:] if share else path.generations[-1:]
    assert np.array_equal(answer(model), np.mean([one[0] for one in last], axis=0))


def test_a_walk_and_a_refinement_are_averaged_apart():
    walk, descent = Local(generations=4, average=0.5), Gradient(steps=6, whiten=True, average=0.5)
    settings = SelectRefine(0.5, walk, descent)
    for end, count in ((2, 1), (3, 2), (6, 1), (8, 2)):
        model = linear(solver=settings, callback=lambda now, end=end: now.index == end).fit(X, Y)
        last = [one[0] for one in model.path_.generations[-count:]]
        np.testing.assert_array_equal(answer(model), np.mean(last, axis=0))
        assert model.release_.settings["average"] == model.path_.average


def test_an_ended_lloyd_leaves_the_trace_of_its_steps():
    model = means(solver=Lloyd(steps=6), callback=lambda now: now.index == 2).fit(X)
    assert len(LloydTrace.from_release(model.release_).counts) == 2
    chained = means(solver=Lloyd(steps=6), postprocess="mcmc", callback=lambda now: now.index == 2)
    assert chained.fit(X).cluster_centers_.shape == (3, 3)
    tree = means(solver=Hybrid(), callback=lambda now: True).fit(X)
    assert tree.path_.cells is not None


def test_each_class_is_ended_by_itself():
    heard: list[int] = []

    def listen(now: Generation) -> bool:
        heard.append(now.index)
        return len(heard) == 2  # within the first class alone

    model = linear(classes=[0, 1, 2], solver=Local(generations=5), callback=listen).fit(X, THREE)
    assert heard == [1, 2, *range(1, 6), *range(1, 6)]
    assert [path.stopped for path in model.path_] == [True, False, False]
    assert model.release_.settings["stopped"] == {"0": 2, "1": None, "2": None}
    assert model.release_.verify()


@pytest.mark.parametrize("answered", [None, 1, "yes", [0], 0, False, np.False_, np.array([True])])
def test_only_true_ends_a_fit(answered):
    model = linear(solver=Local(generations=4), callback=lambda now: answered).fit(X, Y)
    assert len(model.path_.generations) == 4


@pytest.mark.parametrize("answered", [True, np.True_])
def test_a_boolean_of_numpy_is_true_as_well(answered):
    model = linear(solver=Local(generations=4), callback=lambda now: answered).fit(X, Y)
    assert len(model.path_.generations) == 1


def near(x: np.ndarray, P: np.ndarray) -> np.ndarray:
    return -np.abs(x[:, None] - P[:, 0])


def test_a_search_is_ended_with_its_path():
    objective = RecordObjective(np.full(300, 0.5), near, -2.0, 0.0)
    found = search(objective, Reals(-1, 1, 1), 1.0, 0.0, DPSGA(6, 20, 4), random_state=1,
                   callback=lambda now: now.index == 3)  # fmt: skip
    assert len(found.path.generations) == 3
    assert np.array_equal(found.answer, found.path.mean(0.25))
    assert found.release.settings["stopped"] == 3
    assert found.release.verify()


def test_a_search_without_privacy_is_ended_too():
    objective = RecordObjective(np.full(300, 0.5), near, -2.0, 0.0)
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        found = search(objective, Reals(-1, 1, 1), math.inf, 0.0, DPSGA(6, 20, 4), random_state=1,
                       callback=lambda now: now.index == 3)  # fmt: skip
    assert len(found.path.generations) == 3


@dataclass(frozen=True, repr=False)
class Own(Settings):
    """Knows nothing of callbacks, and says nothing of how many generations there will be."""

    name: ClassVar[str] = "own"
    catches: bool = False

    def __call__(self, run: Run[Any, Any]) -> Path:
        run.set_aside(Event("selection", 0.1, 10))
        for _ in range(10):
            P = run.space.sample(8, run.coins)
            try:
                run.report(P[run.select(P, size=0.1)])
            except Exception:  # the end of a run is no error
                continue
        return run.path()


def test_a_solver_of_ones_own_is_ended_without_its_help():
    objective = RecordObjective(np.full(300, 0.5), near, -2.0, 0.0)
    for end in (1, 2, 5):
        found = search(objective, Reals(-1, 1, 1), 1.0, 0.0, Own(), random_state=1,
                       callback=lambda now, end=end: now.index >= end)  # fmt: skip
        assert len(found.path.generations) == end
        assert found.release.settings["stopped"] == end


def test_an_ended_run_draws_no_more():
    objective = RecordObjective(np.full(300, 0.5), near, -2.0, 0.0)
    grant = Ledger(1.0).reserve(1.0)
    run = Run(objective, Bits(3), grant, 1, lambda now: True)
    run.set_aside(Event("selection", 0.1, 10), generations=5)
    with pytest.raises(RunEnded):
        run.report(np.zeros((1, 3)))
    with pytest.raises(RunEnded):
        run.select(np.zeros((2, 3)), size=0.1)
    with pytest.raises(RunEnded):
        run.release(Exponential(0.1, 1), np.zeros(2, dtype=np.int64))
    assert grant.events == ()
    assert path_of(lambda run: run.select(np.zeros((2, 3)), size=0.1), run).stopped


def test_a_journal_replays_an_ended_run(tmp_path):
    def fit(end: int, fails: int = 0) -> Any:
        def listen(now: Generation) -> bool:
            if now.index == fails:
                raise KeyboardInterrupt
            return now.index == end

        with Checkpoint(tmp_path / "journal", 2.0, 1e-5, random_state=1) as journal:
            model = linear(
                classes=[0, 1, 2], solver=Local(generations=6), callback=listen,
                ledger=journal.ledger, random_state=journal.coins,
            ).fit(X, THREE)  # fmt: skip
            second = linear(
                solver=Local(generations=2), ledger=journal.ledger, random_state=journal.coins
            ).fit(X, Y)
            return model, second, journal.ledger.spent.epsilon

    with pytest.raises(KeyboardInterrupt):
        fit(4, fails=3)
    model, second, spent = fit(4)
    again, other, spent_again = fit(4)
    assert spent == spent_again == 2.0
    assert np.array_equal(model.coef_, again.coef_)
    assert np.array_equal(second.coef_, other.coef_)
    assert [len(path.generations) for path in again.path_] == [4, 4, 4]


def test_an_ended_model_is_saved_and_the_path_is_not(tmp_path):
    for name in ("local", "lloyd", "greedy"):
        model = FITS[name](callback=lambda now: now.index == 3).fit(X, Y)
        save(model, tmp_path / name)
        loaded = load(tmp_path / name)
        assert np.array_equal(answer(loaded), answer(model))
        assert not hasattr(loaded, "path_")
        assert loaded.release_.settings["stopped"] == 3


@pytest.mark.parametrize("tqdm", [True, False])
def test_a_progress_bar_ends_with_the_run(tqdm, monkeypatch, capsys):
    if not tqdm:
        monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    linear(solver=Local(generations=9), verbose=1, callback=lambda now: now.index == 2).fit(X, Y)
    if not tqdm:
        assert capsys.readouterr().err.endswith("generation 2 of 2\n")


def test_ends_that_depend_on_releases_are_post_processing():
    """A run that is ended released a function of what the whole run releases.

    So no end, however chosen from releases, can tell neighbours apart better than the whole.
    """

    def first_move_right(now: Generation) -> bool:
        return bool(now.parameters[0] > 0)

    for seed in range(20):
        settings = {"solver": Local(generations=6), "random_state": seed}
        whole = linear(**settings).fit(X, Y).path_
        ended = linear(**settings, callback=first_move_right).fit(X, Y).path_
        rights = [i for i, one in enumerate(whole.generations, 1) if one[0][0] > 0]
        count = rights[0] if rights else 6
        assert len(ended.generations) == count
        pairs = zip(ended.generations, whole.generations, strict=False)
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_the_range_of_noise_is_its_sensitivity():
    objective = RecordObjective(np.full(300, 0.5), near, -2.0, 0.0)
    run = Run(objective, Bits(3), Ledger(1.0, 1e-6).reserve(1.0, 1e-6), 1)
    mu = run.plan("gaussian")
    run.release(DiscreteGaussian(mu, 7.5), [3])
    run.report(np.zeros((1, 3)))
    [step] = run.path().steps
    assert (step.mu, step.epsilon, step.range) == (mu, None, 7.5)


# ------------------------------------------------------------------------------------------ audits

OTHER = X.copy()
OTHER[7] = [1.0, -1.0, 1.0]
LABELS = np.where(np.arange(400) == 7, 1 - Y, Y)
PAIR = (X, Y), (OTHER, LABELS)


def moved_far(now: Generation) -> bool:
    """An end that depends on what was released: any of it."""
    return now.index >= 2 and bool(np.abs(now.survivors).max() > 0.1)


def fitted(make: Any, table: Any, ledger: Any, random_state: Any) -> Any:
    return make(ledger=ledger, random_state=random_state).fit(*table)


@pytest.mark.parametrize("name", FITS)
def test_no_end_and_no_path_tells_neighbours_apart(name):
    """The same history, and so the same end, path, ranges and costs, bit for bit."""
    for callback in (None, moved_far):
        found = paired(partial(fitted, partial(FITS[name], callback=callback)), *PAIR)
        assert found.passes(), found.differences


def test_an_end_that_looks_at_records_is_found():
    def fit(table: Any, ledger: Any, random_state: Any) -> Any:
        X, _ = table
        model = FITS["local"](callback=lambda now: now.index == 2 and X[7, 0] == 1.0)
        return fitted(lambda **account: model.set_params(**account), table, ledger, random_state)

    assert "the second run releases less than the first" in paired(fit, *PAIR).differences


def test_a_path_that_keeps_a_private_number_is_found(monkeypatch):
    def leak(self: Run[Any, Any], P: Any, *rest: Any, **named: Any) -> Any:
        self._notes["best"] = int(self.objective.scores(P).max())
        return select(self, P, *rest, **named)

    select = Run.select
    monkeypatch.setattr(Run, "select", leak)
    found = paired(partial(fitted, FITS["privgene"]), *PAIR)
    assert found.differences == ("answers of the two runs differ",)
