"""Every objective over every place: what memory, a stream and a cluster answer is the same bits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from makers import compiled
from makers.cases import same

from privfit import (
    Box,
    Categorical,
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    Numeric,
    Reals,
    RecordObjective,
    Schema,
    Stream,
)
from privfit.base.rulers import Ruler
from privfit.evaluation.roc import _Table
from privfit.objectives.clipping import ClippedGradient
from privfit.objectives.coding import Coding
from privfit.records import facilities, memory, sums
from privfit.records.binary import BinaryRecords, BinaryRows
from privfit.records.centers import CentersRows
from privfit.records.facilities import FacilityRows
from privfit.records.graded import GradedRows
from privfit.records.linear import LinearRows
from privfit.records.rows import Rows
from privfit.records.scored import ScoredRows
from privfit.records.sums import Held, Sums

Answers = dict[str, Any]
Make = Callable[[Any, Any], Any]  # an objective of records and labels, wherever they are

FIRST = 250  # records of the first of two collections that are joined


class Table(NamedTuple):
    """Records as memory takes them, labels of three classes, and the declared domain."""

    X: Any
    y: Any
    domain: Any

    def rows(self, part: slice) -> tuple[Any, Any]:
        if isinstance(self.X, dict):
            return {name: column[part] for name, column in self.X.items()}, self.y[part]
        return self.X[part], self.y[part]


def numbers(columns: int = 4) -> Table:
    rng = np.random.default_rng(columns)
    X = rng.uniform(-1.1, 1.1, (700, columns))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.2] = 1.0
    return Table(X, rng.integers(0, 3, 700), Box(-1, 1))


def people() -> Table:
    """Columns of a schema, none of whose coded numbers is negative."""
    rng = np.random.default_rng(3)
    columns = {
        "size": rng.uniform(0, 9, 600).round(3),
        "word": rng.choice(["a", "b", "c", "d"], 600),
        "age": rng.integers(16, 90, 600),
    }
    schema = Schema({"size": Numeric(0, 8), "word": Categorical(["a", "b", "c"], other=True),
                     "age": Numeric(16, 80)})  # fmt: skip
    return Table(columns, rng.integers(0, 3, 600), schema)


# ------------------------------------------------------------------------------------------- places


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Blocks of a hundred records, none of which stays in memory, and strips of 48."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 12)
    monkeypatch.setattr(memory, "PACKED_BLOCK", 1)
    monkeypatch.setattr(memory, "STAYING", 0.0)
    monkeypatch.setattr(facilities, "STRIP", 12 * 48)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    distributed = pytest.importorskip("distributed", reason='needs pip install "privfit[dask]"')
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=False,
                                 dashboard_address=":0", silence_logs=50) as made,
        distributed.Client(made) as client,
    ):  # fmt: skip
        client.wait_for_workers(2, timeout=60)
        yield


def streamed(X: Any) -> Stream:
    return Stream(X)


def on_stream(table: Table, make: Make, folder: Path) -> Any:
    return make(streamed(table.X), table.y)


def on_staying_stream(table: Table, make: Make, folder: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "STAYING", 0.5)
        patch.setattr(memory, "PACKED_BLOCK", 3 << 10)
        return make(streamed(table.X), table.y)


def on_csv(table: Table, make: Make, folder: Path) -> Any:
    path, columns = folder / "people.csv", {**table.X, "label": table.y}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return make(Stream(path, columns=list(table.X)), "label")


def on_parquet(table: Table, make: Make, folder: Path) -> Any:
    pyarrow = pytest.importorskip("pyarrow", reason='needs pip install "privfit[parquet]"')
    parquet = pytest.importorskip("pyarrow.parquet")
    path, columns = folder / "people.parquet", {**table.X, "label": table.y}
    parquet.write_table(pyarrow.table(columns), path, row_group_size=130)
    return make(Stream(path, columns=list(table.X)), "label")


def on_dask(table: Table, make: Make, folder: Path) -> Any:
    import dask.array

    lazy = [dask.array.from_array(values, chunks=(150, -1)[: values.ndim])
            for values in (table.X, table.y)]  # fmt: skip
    return make(*lazy)


def on_dask_apart(table: Table, make: Make, folder: Path) -> Any:
    """Many small tables on each worker, which are not joined."""
    objective = on_dask(table, make, folder)
    objective._sums._round = partial(_apart, objective._sums._round)
    return objective


def _apart(ask: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "SMALL", 0)
        return ask(*arguments, **more)


def on_dask_frame(table: Table, make: Make, folder: Path) -> Any:
    import dask.dataframe
    import pandas as pd

    frame = dask.dataframe.from_pandas(pd.DataFrame({**table.X, "label": table.y}), npartitions=4)
    return make(frame[list(table.X)], frame["label"])


def joined(place: Callable[..., Any], table: Table, make: Make, folder: Path) -> Any:
    """Records of memory, and others at a place."""
    rest = Table(*table.rows(slice(FIRST, None)), table.domain)
    return make(*table.rows(slice(FIRST))).joined([place(rest, make, folder)])


def in_memory(table: Table, make: Make, folder: Path) -> Any:
    return make(table.X, table.y)


ARRAYS = {
    "stream": on_stream,
    "stream that stays": on_staying_stream,
    "Dask array": on_dask,
    "Dask array, small tables": on_dask_apart,
    "memory and memory": partial(joined, in_memory),
    "memory and stream": partial(joined, on_stream),
    "memory and Dask array": partial(joined, on_dask),
}
TABLES = {
    "CSV": on_csv,
    "Parquet": on_parquet,
    "Dask frame": on_dask_frame,
    "memory and CSV": partial(joined, on_csv),
}


@pytest.fixture(params=ARRAYS)
def array_place(request) -> Any:
    return placed(request, ARRAYS)


@pytest.fixture(params=TABLES)
def table_place(request) -> Any:
    return placed(request, TABLES)


def placed(request: Any, places: dict[str, Any]) -> Any:
    if "Dask" in request.param:
        request.getfixturevalue("cluster")
    return places[request.param]


def agree(place: Any, table: Table, make: Make, answers: Callable[..., Answers], tmp_path: Path):
    """All answers are those of memory; once more, after all that was kept meanwhile."""
    here, there = make(table.X, table.y), place(table, make, tmp_path)
    assert there.n_records == here.n_records
    expected = answers(here)
    same(answers(here), expected)
    for _ in range(2):
        same(answers(there), expected)


# ------------------------------------------------------------------------------------ linear models


def linear_answers(objective: LinearObjective, clipped: Any = ()) -> Answers:
    """All that records say of linear models; `clipped` numbers are not negative."""
    rng, width = np.random.default_rng(0), objective.domain.width
    P = objective.domain.candidates(6, rng)[:, : objective.n_weights]
    Q = np.vstack([P, 1000 * P[:2]])
    found: Answers = {
        "scores": objective.scores(P),
        "scores far out": objective.scores(Q),
        "range": objective.range(P, "replace"),
        "unit": objective.unit,
        "moments": objective.second_moments(),
        "labels": objective.label_counts(),
    }
    found |= moves(objective, P)
    if objective.loss == "zero_one":
        return found
    coding = Coding(objective.domain, objective.fit_intercept)
    transform = rng.normal(size=(3, coding.width))
    clips = [ClippedGradient(objective, coding, transform, clip) for clip in (0.5, 0.2)]
    slopes = objective.slopes(np.zeros(objective.n_weights), 0.5)
    for i, w in enumerate(P[:3]):  # one after the other, and back to an earlier cap
        found[f"gradient {i}"] = objective.gradient(w, [0.1, 0.5, 1.0][i])
        found[f"clipped gradients {i}"] = [clip.sums(w) for clip in clips]
        coords = np.arange(objective.n_weights)
        found[f"slopes {i}"] = slopes.scores(coords, np.ones(len(coords)))
        slopes.step(i, 0.25)
    found["gradient far out"] = objective.gradient(Q[-1], 0.5)
    found["followed far out"] = objective.followed_gradient(Q[-1], 99)
    numbers = np.array(clipped, dtype=np.int64)
    at, v = np.arange(width + 1)[None] << 40, np.arange(width + 1)[None] << 20
    for name, smooth in {
        "logistic": objective.smooth(0.0, numbers, np.inf),
        "hinge": objective.smooth(0.5, numbers, 0.7 if len(numbers) else np.inf),
        "table": objective.smooth(0.0, numbers, np.inf, np.linspace(1, 0, 65), 2.0),
    }.items():
        bits = np.array([50])
        found[f"{name} bends"] = whole(smooth.bends(at, bits, v))
        found[f"{name} slopes"] = whole(smooth.slopes(at, bits))
        found[f"{name} fine slopes"] = whole(smooth.slopes(at, bits, True))
        found[f"{name} bends again"] = whole(smooth.bends(at, bits, v))
    if len(numbers):
        found["sizes"] = objective.size_counts(numbers, np.array([0.2, 0.9]))
    found["margins"] = objective.margin_counts(np.linspace(-1, 2, objective.n_weights), 6, 384)
    return found


def moves(objective: LinearObjective, P: Any) -> Answers:
    """Around one candidate, as it walks, around one far away, and around none."""
    last = objective.n_weights - 1
    coords, steps = np.array([0, 1, last, last]), np.array([0.5, -0.25, 1.0, -2.0])
    found, view = {}, objective.at(P[0])
    for i, (coord, step) in enumerate(((1, 0.5), (last, -1.0), (1, 0.25))):
        found[f"moves {i}"] = view.scores(coords, steps)
        view.step(coord, step)
    found["moves far"] = view.scores([0], [2.0**10])
    view.step(0, 2.0**10)
    found["moves from far"] = view.scores(coords, steps)
    found["moves elsewhere"] = objective.at(P[1]).scores(coords, steps)
    found["no moves"] = objective.at(P[1]).scores(np.arange(0), [])
    return found


def whole(halves: Any) -> Any:
    """Sums from their two halves, which depend on how records are cut."""
    return (halves[0].astype(object) << 32) + halves[1].astype(object)


LINEAR = {
    "dense": {"layout": "dense"},
    "sparse": {"layout": "sparse"},
    "hinge": {"loss": "hinge", "C": 3.0, "layout": "sparse"},
    "errors": {"loss": "zero_one"},
    "no intercept": {"fit_intercept": False, "adjacency": "add_remove"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("settings", LINEAR)
def test_linear_models(settings, array_place, tmp_path):
    def make(X: Any, y: Any) -> LinearObjective:
        return LinearObjective(X, y, domain=Box(-1, 1), labels=is_first, **LINEAR[settings])

    agree(array_place, numbers(), make, linear_answers, tmp_path)


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_linear_models_of_a_table(layout, table_place, tmp_path):
    table = people()

    def make(X: Any, y: Any) -> LinearObjective:
        return LinearObjective(X, y, domain=table.domain, layout=layout, labels=is_first)

    agree(table_place, table, make, partial(linear_answers, clipped=[0, 5]), tmp_path)


def is_first(y: Any) -> Any:
    return np.asarray(y).astype(int) == 0


@pytest.mark.few(3)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_several_classes_in_any_order(layout, array_place, tmp_path):
    def make(X: Any, y: Any) -> LinearObjective:
        return LinearObjective(X, y, domain=Box(-1, 1), layout=layout, n_classes=3)

    def every_class(objective: LinearObjective) -> Answers:
        return {f"{name} of {head} ({i})": answer for i, head in enumerate((2, 0, 1, 0))
                for name, answer in class_answers(objective.against(head)).items()}  # fmt: skip

    agree(array_place, numbers(), make, every_class, tmp_path)


LEVELS = Schema({"size": Numeric(scale="log"), "word": Categorical(["a", "b", "c"], other=True),
                 "age": Numeric(16, 80, bins=5)})  # fmt: skip


def level_answers(objective: LinearObjective) -> Answers:
    """What records say that are nothing but levels."""
    matrix = np.random.default_rng(0).integers(-9, 10, (7, LEVELS.width + 1))
    return {"levels": objective.level_counts(), "features": objective.feature_moments(matrix)}


def of_levels(X: Any, y: Any) -> LinearObjective:
    return LinearObjective(X, y, domain=LEVELS, labels=is_first)


def test_linear_models_of_levels(table_place, tmp_path):
    agree(table_place, Table(people().X, people().y, LEVELS), of_levels, level_answers, tmp_path)


def class_answers(objective: LinearObjective) -> Answers:
    """What labels change, and caps, which they do not."""
    P = objective.domain.candidates(3, np.random.default_rng(0))
    clip = ClippedGradient(objective, Coding(objective.domain), np.eye(3, P.shape[1]), 0.3)
    view = objective.at(P[0])
    view.step(1, 0.5)
    smooth = objective.smooth(0.0, np.arange(0), np.inf)
    return {
        "scores": objective.scores(P),
        "labels": objective.label_counts(),
        "gradient": clip.sums(P[0]),
        "followed": objective.followed_gradient(P[1], 99),
        "moves": view.scores([0, 4], [0.5, 0.5]),
        "slopes": whole(smooth.slopes(np.arange(5)[None] << 40, np.array([50]))),
    }


def test_a_class_against_the_rest_is_the_first_of_two():
    X, y, domain = numbers()
    several = LinearObjective(X, y, domain=domain, n_classes=3)
    for head in (1, 2, 0):
        alone = LinearObjective(X, y == head, domain=domain)
        same(class_answers(several.against(head)), class_answers(alone))
        same(class_answers(several.against(2).against(head)), class_answers(alone))


# --------------------------------------------------------------------------- centres and facilities


def centers_answers(objective: CentersObjective) -> Answers:
    """All that records say of sets of centres."""
    rng, d = np.random.default_rng(1), objective.n_features
    P = objective.snap(rng.uniform(-1, 1, (5, 3, d)))
    counts, totals = objective.lloyd(P[0])
    found: Answers = {
        "scores": objective.scores(P),
        "scores far out": objective.scores(objective.snap(4 * P)),
        "counts": counts,
        "sums": totals,
        "grid": objective.grid_counts([3] + [1] * (d - 2) + [2]),
        "domain": objective.domain.grid.a,
    }
    for norm in (1, 2):
        found[f"norms {norm}"] = objective.norm_counts(P[0], [300, 900, 2000], norm)
        found[f"residuals {norm}"] = np.column_stack(objective.residuals(P[0], 900, norm))
        found[f"deviations {norm}"] = objective.deviations(P[0, 0], 900, norm)
        found[f"products {norm}"] = objective.products(P[0, 0], 2, 200, norm)
    found["costs"] = objective.cost_steps([P[0], P[1, :2], P[2, :1]], 1 << 20, 3)
    frame = np.linalg.qr(rng.normal(size=(d, d)))[0][:2]
    framed = objective.framed_cells(
        np.arange(d), np.rint(frame * 2**12).astype(np.int64), np.array([900, 600]), [0, 1, 0]
    )
    found["cells in a frame"] = framed.count(np.arange(8, dtype=np.uint64), np.zeros(8, np.uint64))
    ruler = Ruler.about(np.arange(d), np.full(d, 300), *objective.bounds)
    ruled = objective.cells([0, 1, 0], ruler)
    found["cells on scales"] = ruled.count(np.arange(8, dtype=np.uint64), np.zeros(8, np.uint64))
    view = objective.at(P[0])
    for i in range(2):
        found[f"moves {i}"] = view.scores([2, 0, 0], P[1])
        view.step(1, P[2, 0])
    found["moves far"] = view.scores([0], objective.snap(16 * P[1, :1]))
    found["no moves"] = view.scores(np.arange(0), np.zeros((0, d)))
    found["steps"] = objective.walk(P[3]).scores(np.arange(3), np.full(3, 0.25))
    for axes in ([0, 1, 0], [1]):
        found[f"cells {axes}"] = cells(objective, axes)
    return found


def cells(objective: Any, axes: list[int]) -> Any:
    """Counts of all cells, and of the halves of the first column."""
    halved, count = objective.cells(axes), 1 << len(axes)
    every = halved.count(np.arange(count, dtype=np.uint64), np.uint64(0))
    halves = halved.count(np.arange(2, dtype=np.uint64), np.uint64(len(axes) - 1))
    assert every.sum() == halves.sum() == objective.n_records
    return np.concatenate([every, halves])


@pytest.mark.few(5)
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("power", [1, 2])
def test_centres(power, adjacency, array_place, tmp_path):
    def make(X: Any, y: Any) -> CentersObjective:
        return CentersObjective(X, 3, Box(-1, 1), power, adjacency=adjacency)

    agree(array_place, numbers(), make, centers_answers, tmp_path)


def test_centres_of_a_table(table_place, tmp_path):
    table = people()
    agree(table_place, table, lambda X, y: CentersObjective(X, 3, table.domain), centers_answers,
          tmp_path)  # fmt: skip


def facility_answers(objective: FacilityObjective) -> Answers:
    """All that records say of facilities, of distances that were clipped twice over, too."""
    narrow = objective.narrowed(90, 6000).narrowed(500, 5000)
    found = {f"{name}, {i}": answer for i, one in enumerate((objective, narrow))
             for name, answer in distance_answers(one).items()}  # fmt: skip
    return found | ({"cells": cells(objective, [0, 0])} if objective.has_cells else {})


def distance_answers(objective: FacilityObjective) -> Answers:
    f, swaps = objective.n_facilities, objective.at([3, 5, 8])
    swaps.step(1, 9)
    growth, found = objective.growth([7, 2]), {}
    for i in range(2):
        found |= {f"additions {i}": growth.scores(), f"covered {i}": growth.covered(500),
                  f"counts {i}": growth.counts()}  # fmt: skip
        growth.add(5)
    return found | {
        "scores": objective.scores([[1, 2, 3], [4, 5, 5]]),
        "first addition": objective.growth().scores(),
        "few swaps": swaps.scores([2, 0, 1], [0, 4, 9]),
        "no swaps": swaps.scores(np.arange(0), np.arange(0)),
        "many swaps": swaps.scores(np.arange(30) % 3, np.arange(30) % f),
        "all swaps": swaps.all_scores(),
        "nearer": objective.nearer(np.arange(0, f, 2), 2, np.arange(0, 7000, 500)),
        "nearest": objective.nearer(np.arange(f), 0, np.arange(0, 7000, 500)),
        "unit": objective.unit,
    }


def farthest(rows: Any, places: Any) -> Any:
    return np.abs(np.asarray(rows)[:, None] - places).max(axis=2)


@pytest.mark.few(2)
@pytest.mark.parametrize(("columns", "metric"), [(3, "l1"), (2, "l2"), (6, "l1"), (6, "l2"),
                                                 (1, farthest)])  # fmt: skip
def test_facilities(columns, metric, array_place, tmp_path):
    places = np.random.default_rng(2).uniform(-1, 1, (12, columns))

    def make(X: Any, y: Any) -> FacilityObjective:
        return FacilityObjective(X, places, (0.1, 2.0), metric=metric)

    agree(array_place, numbers(columns), make, facility_answers, tmp_path)


@pytest.mark.few(1)
def test_facilities_of_a_table(table_place, tmp_path):
    table = people()
    places = table.domain.points(12, np.random.default_rng(2))
    agree(table_place, table, lambda X, y: FacilityObjective(X, places, (0, 4), table.domain),
          facility_answers, tmp_path)  # fmt: skip


# ---------------------------------------------------------- one's own scores, and counts of records


def near(rows: Any, P: Any) -> Any:
    return -np.abs(np.asarray(rows)[:, :1] - P[None, :, 0])


def near_moves(rows: Any, w: Any, where: Any, what: Any) -> Any:
    return -np.abs(np.asarray(rows)[:, :1] - (w[0] + what))


def near_one(record: Any, P: Any, out: Any) -> None:
    out[:] = -np.abs(record[0] - P[:, 0])


def near_one_moves(record: Any, w: Any, where: Any, what: Any, out: Any) -> None:
    out[:] = -np.abs(record[0] - (w[0] + what))


OWN = {
    "Python": (near, near_moves),
    "compiled": (compiled.score(near_one), compiled.moves(near_one_moves)),
}


def own_answers(objective: RecordObjective) -> Answers:
    P, space = np.array([[-0.5], [0.0], [0.25]]), Reals(-1, 1, 1)
    objective.check(P, space)
    view = objective.at(P[2], space)
    return {"scores": objective.scores(P), "range": objective.range(P, "replace"),
            "moves": view.scores(np.zeros(2, dtype=int), np.array([-0.75, -0.25]))}  # fmt: skip


@pytest.mark.parametrize("kind", OWN)
def test_ones_own_scores(kind, array_place, tmp_path):
    score, moves = OWN[kind]

    def make(X: Any, y: Any) -> RecordObjective:
        return RecordObjective(X, score, -1.0, 0.0, block=60, moves=moves)

    agree(array_place, numbers(), make, own_answers, tmp_path)


def test_ones_own_compiled_scores_of_a_table(table_place, tmp_path):
    """Cells that are no numbers are NaN; the first column has numbers alone."""
    score, moves = OWN["compiled"]
    agree(table_place, people(), lambda X, y: RecordObjective(X, score, -9, 0, moves=moves),
          own_answers, tmp_path)  # fmt: skip


class Joined(NamedTuple):
    """What counts records and has no `joined` of its own."""

    counting: Any

    def joined(self, others: list[Joined]) -> Joined:
        several = [self._sums, *(one._sums for one in others)]
        first = self.counting
        if isinstance(first, BinaryRecords):
            return Joined(BinaryRecords(sums.joined(several), first.n_classes))
        return Joined(_Table(sums.joined(several), first.bounds))

    @property
    def _sums(self) -> Sums[Any]:
        return self.counting.sums

    @property
    def n_records(self) -> int:
        return self.counting.n_records


def binary_answers(objective: Joined) -> Answers:
    records = objective.counting
    tables = [records.counts(), *(records.at_most(2, key).counts() for key in (5, 6, 5))]
    return {f"{i} {name}": answer for i, table in enumerate(tables)
            for name, answer in (("ones", table.ones), ("sizes", table.sizes))}  # fmt: skip


def test_binary_features(array_place, tmp_path):
    agree(array_place, numbers(), lambda X, y: Joined(BinaryRecords.of(X, y, 3)), binary_answers,
          tmp_path)  # fmt: skip


def graded_answers(objective: Joined) -> Answers:
    table = objective.counting
    return {"histogram": table.histogram(), "between": table.between([0.2, 0.7])}


def test_graded_records(array_place, tmp_path):
    X, y, domain = numbers()
    make = partial(_Table.of, pos_label=2, bounds=(-1, 1))
    agree(array_place, Table(X[:, 0], y, domain), lambda X, y: Joined(make(y, X)), graded_answers,
          tmp_path)  # fmt: skip


# ------------------------------------------------------------------------------------ what is asked


def questions_of(kind: type[Rows]) -> set[str]:
    """What packed records can be asked: methods that return integers."""
    return {name for name, method in inspect.getmembers(kind, inspect.isfunction)
            if method.__annotations__.get("return") == "Integers"
            and not name.startswith("_")}  # fmt: skip


def test_every_question_is_asked_above(monkeypatch):
    """So that a new one is asked at every place, too."""
    asked: dict[type[Rows], set[str]] = {}
    real = Held.sum

    def spy(self: Any, question: Any, *arguments: Any, **named: Any) -> Any:
        asked.setdefault(type(self.records), set()).add(question.__name__)
        return real(self, question, *arguments, **named)

    monkeypatch.setattr(Held, "sum", spy)
    monkeypatch.setattr(Held, "try_one", spy)
    X, y, domain = numbers(3)
    linear_answers(LinearObjective(np.abs(X), y == 0, domain=Box(0, 1)), [0, 2])
    level_answers(of_levels(people().X, people().y))
    centers_answers(CentersObjective(X, 3, domain))
    facility_answers(FacilityObjective(X, X[:12], (0.1, 2.0), domain))
    own_answers(RecordObjective(X, near, -1.0, 0.0, moves=near_moves))
    binary_answers(Joined(BinaryRecords.of(X, y, 3)))
    graded_answers(Joined(_Table.of(y, X[:, 0], 2)))
    for kind in (LinearRows, CentersRows, FacilityRows, ScoredRows, BinaryRows, GradedRows):
        assert asked[kind] == questions_of(kind), kind


def test_a_question_to_memory_is_an_ordinary_call(rng):
    """The answer is the very array that packed records give, and views are made at once."""
    X, y, domain = numbers()
    objective = LinearObjective(X, y, domain=domain, n_classes=3)
    found = np.arange(3)
    assert objective._sums.sum(lambda rows, value: value, found) is found
    head = objective.against(2)
    assert isinstance(head._sums, Held)
    assert head._sums.records.head == 2


def test_two_threads_may_walk_over_the_same_records():
    """A view that is in use is nobody else's."""
    from concurrent.futures import ThreadPoolExecutor

    X, y, domain = numbers(20)
    objective = LinearObjective(np.tile(X, (20, 1)), np.tile(y == 0, 20), domain=domain,
                                layout="sparse", n_threads=1)  # fmt: skip
    P = objective.domain.candidates(1, np.random.default_rng(0)).repeat(2, axis=0)
    P[1, 5] += 0.5  # so near that one could take over the other's margins

    def walk(w: Any) -> list[Any]:
        view, found = objective.at(w), []
        for i in range(30):
            found.append(view.scores(np.arange(21), np.full(21, 0.5)).tolist())
            view.step(i % 21, 0.25)
        return found

    expected = [walk(w) for w in P]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            assert list(pool.map(walk, P)) == expected
