"""What a stream leaves to an additive model is as much as that takes, whatever is bought."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import (
    DPSGA,
    EEM,
    Box,
    Categorical,
    Coding,
    Evidence,
    FrankWolfe,
    Functional,
    Gradient,
    Local,
    LogisticRegression,
    Numeric,
    OutputPerturbation,
    PrivateSVM,
    PrivGene,
    Schema,
    SelectRefine,
    Stream,
    Subsample,
    open_ledger,
)
from privfit.linear import additive, fitting, room
from privfit.linear.recipe import Recipe
from privfit.privacy.neighbours import ADD_REMOVE
from privfit.runs.payment import Terms

KINDS = {
    "numbers": {f"x{i}": Numeric(bins="auto") for i in range(8)},
    "many numbers": {f"x{i}": Numeric(bins="auto") for i in range(30)},
    "ranges": {f"x{i}": Numeric(-1, 40) for i in range(6)},
    "narrow ranges": {f"x{i}": Numeric(0, 0.5) for i in range(3)},
    "a range to be bought": {"x0": Numeric(bins=300), "x1": Numeric(bins=200, scale="log")},
    "declared bins": {f"x{i}": Numeric(-1, 40, bins=5 + i) for i in range(4)},
    "mixed": {
        "x0": Numeric(bins="auto"), "x1": Numeric(-9, 9, fill=0), "x2": Numeric(scale="log"),
        "x3": Categorical(), "x4": Categorical(["1", "2"], other=True),
    },
}  # fmt: skip


@pytest.fixture
def shapes(monkeypatch):
    """The coordinates and levels of models, and the most that there might have been."""
    found: dict[str, tuple[int, int]] = {}
    bought, most = additive.bought_frame, room.most_shape

    def frame(run, s, noise, features):
        found["made"] = features.dimensions, features.groups[-1].stop
        return bought(run, s, noise, features)

    def shape(*public):
        found["most"] = most(*public)
        return found["most"]

    monkeypatch.setattr(additive, "bought_frame", frame)
    monkeypatch.setattr(room, "most_shape", shape)
    return found


@pytest.mark.parametrize("coding", [Coding(), Coding(cuts=6), Coding(family="quantile", cuts=2)])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 100.0, 1000.0])
@pytest.mark.parametrize("kinds", KINDS)
def test_no_more_coordinates_and_levels_are_made_than_were_left_room_for(
    kinds, epsilon, coding, shapes
):
    rng, n = np.random.default_rng(1), 2000
    X = rng.standard_t(1, (n, len(KINDS[kinds])))
    X[:, 3:4] = rng.integers(0, 500, (n, 1)) if kinds == "mixed" else X[:, 3:4]
    model = LogisticRegression(
        epsilon, 1e-6, domain=Schema(KINDS[kinds]), classes=[0, 1], coding=coding,
        solver=additive.Additive(steps=2), random_state=0,
    )  # fmt: skip
    known = {}

    def room_of(*arguments):
        known["room"] = room.room_of(*arguments)
        return known["room"]

    def most_room(*arguments):
        known["left"] = room.most_room(*arguments)
        return known["left"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "room_of", room_of)
        patch.setattr(fitting, "most_room", most_room)
        model.fit(Stream(X, memory_limit="99GB"), X[:, 0] > 0)
    assert shapes["made"][0] <= shapes["most"][0]
    assert shapes["made"][1] <= shapes["most"][1]
    least, most = known["room"]
    assert least <= known["left"] <= most


@pytest.mark.parametrize(("n", "is_coded"), [(50, False), (5000, True)])
def test_room_is_left_to_the_solver_that_is_chosen_when_records_are_counted(
    n, is_coded, monkeypatch
):
    asked, leaving = [], Stream.leaving

    def noted(stream, room, most=0):
        asked.append((room, most))
        return leaving(stream, room, most)

    monkeypatch.setattr(Stream, "leaving", noted)
    X = np.random.default_rng(1).integers(0, 3, (n, 2)).astype(float)
    schema = Schema({f"x{i}": Categorical([0, 1, 2]) for i in range(2)})
    model = LogisticRegression(0.05, 1e-6, domain=schema, classes=[0, 1], adjacency="replace")
    model.fit(Stream(X, memory_limit="9GB"), X[:, 0] > 0)
    (least, most), (left, later) = asked
    assert later == 0
    assert 0 < least < most
    assert least < left <= most if is_coded else 0 < left < most


def matrices(domain, settings, delta, n_threads):
    """What a solver takes beside what is kept of its models."""
    return room.solver_room(domain, settings, Terms("fit", 1.0, delta), 0, n_threads)


def bytes_kept(model):
    """What a fitted model holds: arrays of its paths and noise, and numbers that are listed."""
    arrays = [a for path in model.path_ for a in path.generations]
    spreads = [path.noise for path in model.path_ if path.noise is not None]
    arrays += [a for noise in spreads for a in (noise.factor, noise.rest)]
    said = model.release_.to_dict()["parameters"]
    rows = [*said["coef"], *(row for one in said.get("noise", []) for row in one["factor"]),
            *(one["rest"] for one in said.get("noise", []))]  # fmt: skip
    return sum(a.nbytes for a in arrays) + 32 * sum(map(len, rows))


@pytest.mark.parametrize(("solver", "delta"), [
    ("additive", 1e-6), (additive.Additive(steps=150), 1e-6), ("evidence", 0.0),
    ("gradient", 1e-6), (Gradient(steps=100, whiten=False), 1e-6), ("output", 0.0),
    ("functional", 1e-6), (FrankWolfe(steps=90), 1e-6), ("local", 1e-6),
    (Local(generations=800), 1e-6), (EEM(generations=800), 0.0),
    (PrivGene(generations=80), 0.0), (DPSGA(generations=80), 0.0),
    (SelectRefine(select=Local(generations=80), refine=Gradient(steps=90, whiten=True)), 1e-6),
], ids=str)  # fmt: skip
def test_room_is_left_to_what_is_kept_of_each_class(solver, delta, monkeypatch, tmp_path):
    asked, leaving = [], Stream.leaving

    def noted(stream, room, most=0):
        asked.append(room)
        return leaving(stream, room, most)

    monkeypatch.setattr(Stream, "leaving", noted)
    rng, count = np.random.default_rng(1), 12
    X, y = rng.uniform(-1, 1, (400, 5)), np.arange(400) % count
    schema = Schema({f"x{i}": Numeric(-1, 1, bins=40) for i in range(5)})
    settings = {"domain": schema, "solver": solver, "n_public": 400, "random_state": 0}
    rooms = {}
    for classes in (2, count):
        model = LogisticRegression(3.0, delta, classes=range(classes), **settings)
        model.fit(Stream(X, memory_limit="99GB"), y % classes)
        rooms[classes] = asked[-1]
    models = count - 1  # beyond the one of two classes
    assert rooms[count] - rooms[2] >= models / count * bytes_kept(model) > 0
    ledger = open_ledger(tmp_path / "budget.json", 3.0, 1e-6)
    model.set_params(ledger=ledger).fit(Stream(X, memory_limit="99GB"), y)
    assert asked[-1] >= rooms[count] + 3 * (tmp_path / "budget.json").stat().st_size


def test_room_is_left_to_the_matrices_of_each_solver():
    schema = Schema({f"x{i}": Categorical(range(50)) for i in range(30)})
    square = 8 * 1501**2
    assert matrices(schema, Gradient(), 1e-6, 1) == 5 * square
    assert matrices(schema, Gradient(whiten=True), 1e-6, 1) == 14 * square
    assert matrices(schema, Gradient(whiten=True), 1e-6, 3) == 26 * square
    assert matrices(Box(-1, 1, 1500), Gradient(whiten=False), 0.0, 3) == 5 * square
    assert matrices(Box(-1, 1, 100), Gradient(), 1e-6, 1) == 14 * 8 * 101**2
    assert matrices(Box(-1, 1), Gradient(), 1e-6, 1) < 1000
    assert matrices(schema, Local(), 1e-6, 1) == 0
    assert matrices(schema, Functional(), 1e-6, 1) == 8 * square
    assert matrices(schema, Functional(), 1e-6, 2) == 14 * square
    assert matrices(schema, SelectRefine(), 1e-6, 2) == 11 * square + 6 * 8 * 1024**2
    assert matrices(schema, OutputPerturbation(), 0.0, 2) == 7 * square
    assert matrices(Box(-1, 1, 5000), PrivateSVM(), 0.0, 2) == 0
    assert matrices(schema, FrankWolfe(), 0.0, 2) == 7 * square
    assert matrices(schema, Subsample(candidates=100), 0.0, 1) == 8 * 210 * 1501
    assert matrices(schema, Evidence(), 0.0, 2) == 0
    blanks = Schema({"a": Categorical(), "b": Categorical(range(2000))})
    whitened, plain = 14 * 8 * 1025**2, 5 * 8 * 3026**2
    assert matrices(blanks, Gradient(), 1e-6, 1) == max(whitened, plain)


@pytest.mark.parametrize("kinds", ["many numbers", "mixed"])
@pytest.mark.parametrize("coding", ["auto", Coding(family="log")], ids=str)
def test_counts_need_no_room_for_matrices(kinds, coding):
    """They have a few numbers of each level, and no products of columns."""
    domain = Schema(KINDS[kinds])
    recipe = Recipe.pure(2000, 1.0, ADD_REMOVE, len(domain.columns), len(domain.columns))
    assert room.most_room(domain, Evidence(), recipe, Terms("fit", 1.0, 0.0), 0) == 0
    X = np.random.default_rng(1).integers(0, 9, (500, len(KINDS[kinds]))).astype(float)
    made = {
        "domain": domain, "classes": [0, 1], "coding": coding, "solver": "evidence",
        "random_state": 0,
    }  # fmt: skip
    whole = LogisticRegression(1.0, **made).fit(X, X[:, 0] > 4)
    parts = LogisticRegression(1.0, **made).fit(Stream(X), X[:, 0] > 4)
    assert np.array_equal(whole.coef_, parts.coef_)
