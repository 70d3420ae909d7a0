"""Records in parts: the same releases bit for bit, bounded memory, faults that change nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import resource
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from makers.cases import packed
from makers.own_solvers import ES
from makers.raises import assert_reached

import privfit
from privfit import (
    DPSGA,
    EEM,
    Additive,
    BernoulliNB,
    Budget,
    ClusterError,
    Gradient,
    KMeans,
    KMedian,
    Ledger,
    LinearObjective,
    LinearSVC,
    Lloyd,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    RecordObjective,
    Schema,
    SelectFeatures,
    SelectRefine,
    SmoothLoss,
    Stream,
    Subsample,
    accuracy_score,
    confusion_matrix,
    roc_curve,
)
from privfit.datasets import load_adult
from privfit.records import dask as workers
from privfit.records import lines, memory, stream, sums
from privfit.records.centers import CentersRows
from privfit.records.linear import Image, LinearRows
from privfit.records.packing import Run
from privfit.records.rows import Rows
from privfit.records.sums import Sums

pyarrow = pytest.importorskip("pyarrow", reason='needs pip install "privfit[parquet]"')
csv, feather, parquet = (
    pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "feather", "parquet")
)
dask = pytest.importorskip("dask", reason='needs pip install "privfit[dask]"')
distributed = pytest.importorskip("distributed", reason='needs pip install "privfit[dask]"')

from makers.partitions import (  # noqa: E402, what needs dask
    UNIT,
    array_rows,
    centers,
    forget_half,
    held,
    kill,
    linear,
    served_lines,
    table_rows,
)

SECRET = 123456.789  # stands for a private value; no message may repeat it
FEW = slice(None, 6000)  # records for what does not hang on their number
ON_ALL = ("local", "gradient")  # solvers that are run on all records

LINEAR = {
    "local": Local(generations=12),
    "moves": Local(generations=4, scoring="loss"),
    "gradient": Gradient(steps=4),
    "select_refine": SelectRefine(),
    "auto": "auto",
    "dpsga": DPSGA(generations=3, population=40),
    "eem": EEM(generations=4, population=30),
    "frank_wolfe": privfit.FrankWolfe(steps=5),
    "functional": "functional",
    "majority": "majority",
    "objective": "objective",
    "subsample": Subsample(candidates=100),
    "privgene": privfit.PrivGene(population=30),
}
CENTERS = {
    "over_seeded": privfit.clustering.OverSeeded(steps=2, mean=True),
    "over_seeded, in a frame": privfit.clustering.OverSeeded(steps=2, frame=True),
    "over_seeded, on scales": privfit.clustering.OverSeeded(steps=2, deviations=True),
    "mean": privfit.clustering.Mean(),
    "auto": "auto",
    "tree": "tree",
    "lloyd": "lloyd",
    "grid": privfit.UniformGrid(cells=200),
    "eem": EEM(generations=3, population=20),
    "local": Local(generations=3),
    "dpsga": DPSGA(generations=2, population=20),
}


MEDIANS = {
    "auto": "auto",
    "greedy": privfit.Greedy(swaps=2),
    "swaps": privfit.Swaps(steps=3),
    "local": Local(generations=3),
    "coreset": "coreset",
    "dpsga": DPSGA(generations=2, population=20),
    "eem": EEM(generations=3, population=20),
    "privgene": privfit.PrivGene(population=20),
    "subsample": Subsample(candidates=50),
}
METRICS = ["l1", "l2", lambda people, places: np.abs(people[:, None] - places).max(axis=2)]


@pytest.fixture(scope="module")
def adult(data_folder):
    return load_adult(data_folder, ranges="observed")


@pytest.fixture(scope="module")
def numbers(adult):
    """Five columns of Adult as numbers in [-1, 1], by the declared ranges, and the labels."""
    names = ["age", "education-num", "capital-gain", "hours-per-week", "capital-loss"]
    X = np.column_stack([
        2 * (adult.table[name] - declared.low) / (declared.high - declared.low) - 1
        for name in names for declared in [adult.schema.columns[name]]
    ])  # fmt: skip
    return X, adult.labels


@pytest.fixture(scope="module")
def files(adult, numbers, tmp_path_factory):
    """The same records as Parquet, Arrow, CSV and .npy files."""
    folder = tmp_path_factory.mktemp("records")
    columns = {name: pyarrow.array(values.tolist()) for name, values in adult.table.items()}
    table = pyarrow.table({**columns, "label": adult.labels})
    parquet.write_table(table, folder / "adult.parquet", row_group_size=7000)
    parquet.write_table(table[FEW], folder / "few.parquet", row_group_size=900)
    feather.write_feather(table, str(folder / "adult.arrow"), "uncompressed", chunksize=9000)
    csv.write_csv(table, folder / "adult.csv")
    np.save(folder / "X.npy", numbers[0])
    np.save(folder / "y.npy", numbers[1])
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few thousand records, of which nearly none stay in memory."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 20)
    monkeypatch.setattr(memory, "PACKED_BLOCK", 1)
    monkeypatch.setattr(memory, "STAYING", 0.0)


def logistic(adult: Any, solver: Any, **changes: Any) -> LogisticRegression:
    settings = {"domain": adult.schema, "classes": [0, 1], "random_state": 7, "solver": solver}
    return LogisticRegression(1.0, 1e-6, **{**settings, **changes})


def rows_of(solver: str) -> slice:
    return slice(None) if solver in ON_ALL else FEW


@pytest.fixture(scope="module")
def expected(adult):
    """The releases of fits in memory, each made once."""
    found: dict[str, str] = {}

    def of(name: str) -> str:
        if name not in found:
            rows = rows_of(name)
            columns = {column: values[rows] for column, values in adult.table.items()}
            model = logistic(adult, LINEAR[name]).fit(columns, adult.labels[rows])
            found[name] = model.release_.to_json()
        return found[name]

    return of


# ---------------------------------------------------------------------------------------- streaming


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", LINEAR)
def test_a_parquet_stream_releases_what_memory_does(solver, adult, files, expected, small_blocks):
    path = files / ("adult.parquet" if solver in ON_ALL else "few.parquet")
    model = logistic(adult, LINEAR[solver]).fit(Stream(path), "label")
    assert model.release_.to_json() == expected(solver)
    assert model.feature_names_in_.tolist() == list(adult.schema.columns)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult.arrow", "adult.csv", "folder", "table"])
def test_other_tables_release_the_same(name, adult, files, expected, small_blocks, tmp_path):
    if name == "folder":
        table = parquet.read_table(files / "adult.parquet")
        parquet.write_table(table.slice(0, 20_000), tmp_path / "1.parquet")
        parquet.write_table(table.slice(20_000), tmp_path / "2.parquet")
        source: Any = tmp_path
    elif name == "table":
        table = parquet.read_table(files / "adult.parquet")
        text = table["sex"].dictionary_encode()
        source = table.set_column(table.column_names.index("sex"), "sex", text)
    else:
        source = files / name
    model = logistic(adult, LINEAR["local"]).fit(Stream(source), "label")
    assert model.release_.to_json() == expected("local")


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_memory_mapped_array_releases_the_same(adjacency, numbers, files, small_blocks):
    X, y = numbers
    model = LinearSVC(1.0, 1e-6, domain=UNIT, classes=[0, 1], solver=Gradient(steps=3),
                      random_state=3, adjacency=adjacency, n_public=50_000)  # fmt: skip
    once = model.fit(X, y).release_.to_json()
    mapped = np.load(files / "X.npy", mmap_mode="r")
    for source, labels in ((mapped, y), (files / "X.npy", files / "y.npy"), (X, y)):
        assert model.fit(Stream(source), labels).release_.to_json() == once


CONVEX = {  # estimator, solver, delta, adjacency; numbers alone, or with a look at sixteen of them
    "tilted": (LogisticRegression, "objective", 0.0, "replace", False),
    "looked at": (LogisticRegression, "objective", 0.0, "add_remove", True),
    "chosen": (LogisticRegression, "auto", 0.0, "replace", True),
    "rounded": (LinearSVC, "objective", 1e-6, "add_remove", True),
    "noisy": (LogisticRegression, "output", 0.0, "replace", True),
    "gaussian": (LinearSVC, "output", 1e-6, "replace", False),
    "laplace": (LinearSVC, "privatesvm", 0.0, "add_remove", False),
}


def convex_case(name: str, numbers: Any) -> tuple[Any, Any, Any]:
    """An estimator, records and labels."""
    kind, solver, delta, adjacency, many = CONVEX[name]
    X, y, domain = numbers[0][FEW], numbers[1][FEW], UNIT
    if many:  # most numbers of a record are near their low ends
        X = np.hstack([(X + 1) / 16, np.tile((X[:, [2, 4]] + 1) / 2, 6)])
        domain = privfit.Schema({f"x{j}": privfit.Numeric(0, 1) for j in range(X.shape[1])})
    model = kind(1.0, delta, domain=domain, classes=[0, 1], solver=solver, random_state=11,
                 adjacency=adjacency, n_public=6000, n_threads=2, coding="declared")  # fmt: skip
    return model, X, y


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CONVEX)
def test_streamed_convex_fits_are_the_same(name, numbers, small_blocks, monkeypatch):
    model, X, y = convex_case(name, numbers)
    once = model.fit(X, y).release_.to_json()
    if CONVEX[name][1] == "auto":
        assert model.release_.settings["solver"] == "objective"
    if CONVEX[name][4] and model.solver != "output" and not model.delta:
        assert model.release_.settings["radius"]  # the clip is put to the test
    for block in (1 << 16, 1 << 18):
        monkeypatch.setattr(memory, "LARGEST_BLOCK", block)
        assert model.fit(Stream(X), y).release_.to_json() == once
    monkeypatch.setattr(memory, "STAYING", 0.5)  # all blocks stay, and keep curvatures
    assert model.fit(Stream(X), y).release_.to_json() == once


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["local", "moves", "gradient", "select_refine", "objective"])
def test_several_classes_release_the_same(solver, numbers, small_blocks, monkeypatch):
    """Each block is packed once, whatever the number of classes."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 16)
    X, y = numbers[0][:4000], np.digitize(numbers[0][:4000, 0], [-0.5, 0.0])
    model = LogisticRegression(1.0, 1e-6, domain=UNIT, classes=[0, 1, 2], random_state=3,
                               solver=LINEAR.get(solver, solver))  # fmt: skip
    once = model.fit(X, y).release_.to_json()
    told: list[int] = []
    records = Stream(X, progress=told.append)
    assert model.fit(records, y).release_.to_json() == once
    assert told == [1, 2, 3]


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", CENTERS)
def test_streamed_centres_are_the_same(solver, numbers, small_blocks, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 16)
    X = numbers[0][FEW, :2]
    model = KMeans(3, 1.0, domain=UNIT, solver=CENTERS[solver], random_state=5)
    once, cost = model.fit(X).release_.to_json(), model.private_inertia(X, 1.0)
    records = Stream(X)
    assert model.fit(records).release_.to_json() == once
    assert model.private_inertia(records, 1.0) == cost


@pytest.mark.parametrize("solver", ["medians", "cell_medians"])
def test_streamed_medians_anywhere_are_the_same(solver, numbers, small_blocks, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 16)
    X = numbers[0][FEW, :2]
    model = KMedian(3, 1.0, domain=UNIT, metric="l2", solver=solver, random_state=5)
    once, cost = model.fit(X).release_.to_json(), model.private_cost(X, 1.0)
    records = Stream(X)
    assert model.fit(records).release_.to_json() == once
    assert model.private_cost(records, 1.0) == cost


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", METRICS, ids=["l1", "l2", "own"])
@pytest.mark.parametrize("columns", [2, 5])
def test_streamed_facilities_are_the_same(columns, metric, numbers, small_blocks, monkeypatch):
    """Records of two columns are kept, and measured for each question; others are measured once."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 16)
    monkeypatch.setattr("privfit.records.facilities.STRIP", 20 * 160)
    X = numbers[0][:2000, :columns]
    records = Stream(X)
    for name, solver in MEDIANS.items():
        model = KMedian(3, 1.0, facilities=X[::100], clip=(0.1, 1.5), metric=metric, solver=solver,
                        domain=UNIT, random_state=5)  # fmt: skip
        once, cost = model.fit(X).release_.to_json(), model.private_cost(X, 1.0)
        assert model.fit(records).release_.to_json() == once, name
        assert model.private_cost(records, 1.0) == cost


@pytest.mark.slow
def test_a_streamed_table_of_facilities_is_the_same(adult, files, small_blocks):
    """Columns of a schema; and of numbers, whose order is that of the fit."""
    places = adult.schema.points(8, np.random.default_rng(1))
    model = KMedian(2, 1.0, facilities=places, domain=adult.schema, solver=privfit.Greedy(),
                    random_state=5)  # fmt: skip
    once = model.fit(adult.table).release_.to_json()
    for name in ("adult.parquet", "adult.csv"):
        assert model.fit(Stream(files / name)).release_.to_json() == once
    ages = pyarrow.table({"age": adult.table["age"], "hours": adult.table["hours-per-week"]})
    model = KMedian(2, 1.0, facilities=[[20, 40], [40, 40], [60, 20]], random_state=5)
    model.fit(Stream(ages))
    assert model.feature_names_in_.tolist() == ["age", "hours"]
    with pytest.raises(ValueError, match=r"feature names should match those that were passed"):
        model.private_cost(Stream(ages.select(["hours", "age"])), 1.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("max_ones", [None, 2])
def test_streamed_counts_are_the_same(max_ones, numbers, small_blocks, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 17)
    X, y = (numbers[0] > -0.5).astype(np.int8), numbers[1]
    public = {"classes": [0, 1], "random_state": 5, "max_ones": max_ones}
    for model in (
        BernoulliNB(1.0, **public),
        SelectFeatures(1.0, k=2, **public),
        SelectFeatures(1.0, k=2, criterion="total_count", **public),
    ):
        once = model.fit(X, y).release_.to_json()
        assert model.fit(Stream(X), y).release_.to_json() == once


@pytest.mark.few(2)
@pytest.mark.parametrize("thresholds", ["medians", "grid", [0.3, 0.6]])
def test_streamed_curves_are_the_same(thresholds, numbers, tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 17)
    score, y = (numbers[0][:, 1] + 1) / 2, numbers[1]
    table = pyarrow.table({"score": score, "label": y})
    parquet.write_table(table, tmp_path / "test.parquet")
    once = roc_curve(y, score, 1.0, thresholds=thresholds, random_state=1).release.to_json()
    for labels, source in ((y, score), ("label", tmp_path / "test.parquet")):
        records = Stream(source)
        curve = roc_curve(labels, records, 1.0, thresholds=thresholds, random_state=1)
        assert curve.release.to_json() == once
    records = Stream(score)
    assert accuracy_score(y, records, 1.0, random_state=1) == accuracy_score(
        y, score, 1.0, random_state=1
    )
    assert np.array_equal(confusion_matrix(y, records, 1.0, random_state=1).counts,
                          confusion_matrix(y, score, 1.0, random_state=1).counts)  # fmt: skip


def test_streamed_predictions_are_graded_the_same(numbers, tmp_path, small_blocks):
    found, y = np.digitize(numbers[0][:, 1], [-0.3, 0.3]), np.digitize(numbers[0][:, 0], [0, 0.5])
    names = np.array(["low", "middle", "high"])
    table = pyarrow.table({"found": names[found], "label": names[y]})
    parquet.write_table(table, tmp_path / "test.parquet")
    csv.write_csv(table, tmp_path / "test.csv")
    dictionaries = pyarrow.table(
        {name: table[name].dictionary_encode() for name in table.schema.names}
    )
    told = {"classes": names.tolist(), "random_state": 1}
    for measure in (accuracy_score, confusion_matrix):
        once = measure(names[y], names[found], 1.0, **told).release.to_json()
        for source in (tmp_path / "test.parquet", tmp_path / "test.csv", table, dictionaries):
            records = Stream(source)
            assert measure("label", records, 1.0, **told).release.to_json() == once
        codes = measure(y, Stream(found), 1.0, classes=range(3), random_state=1)
        for name, value in codes.release.parameters.items():
            assert json.loads(once)["parameters"][name] == np.asarray(value).tolist()


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_small_tables_are_joined_and_answer_as_before(layout, rng, monkeypatch):
    monkeypatch.setattr(sums, "SMALL", 90)
    monkeypatch.setattr(sums, "JOINED", 200)
    sizes = [1, 16, 17, 33, 89, 90, 40, 64]
    X, y = rng.uniform(-1, 1, (sum(sizes), 4)), rng.integers(0, 2, sum(sizes))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.2] = 1.0
    cuts = np.cumsum([0, *sizes])
    pieces = {
        (i,): packed(LinearObjective(X[a:b], y[a:b], domain=UNIT, layout=layout))
        for i, (a, b) in enumerate(pairwise(cuts))
    }
    whole, found = packed(LinearObjective(X, y, domain=UNIT)), sums.join_small(pieces)
    assert sorted(i for numbers in found for i in numbers) == [*range(8)]
    assert 2 < len(found) < 8
    assert sum(table.n_records for table in found.values()) == len(X)
    w = UNIT.bind(4).candidates(9, rng) / whole.domain.weight_units()
    image = Image(np.arange(15).reshape(5, 3), 2, True, 500)
    questions: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (LinearRows.losses, (w,)), (LinearRows.gradient, (w[0], 2048)),
        (LinearRows.second_moments, ()), (LinearRows.label_counts, ()),
        (LinearRows.moved_losses, (w[0], np.arange(5), np.full(5, 512.0), 0.5)),
        (LinearRows.followed_gradient, (w[0], 9)), (LinearRows.gradient, (w[0], 4096, image)),
        (LinearRows.size_counts, (np.array([0, 2]), np.array([0.5]))),
    ]  # fmt: skip
    for question, arguments in questions:
        answers = [question(table, *arguments) for table in found.values()]
        assert np.array_equal(sum(answers), question(whole, *arguments))
    first, *others = [packed(centers(X[a:b])) for a, b in pairwise(cuts)]
    C = whole.domain.points(3, rng) * 4096
    assert np.array_equal(CentersRows.clusters(first.joined(others), np.rint(C)),
                          CentersRows.clusters(packed(centers(X)), np.rint(C)))  # fmt: skip


def near(records: Any, P: Any) -> Any:
    return -np.abs(records[:, :1] - P[None, :, 0])


def test_ones_own_scores_of_a_table_take_columns_by_name(numbers, small_blocks, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 14)
    table = {"a": numbers[0][:3000, 0], "b": numbers[0][:3000, 1]}
    score = lambda rows, P: -np.abs(rows["b"][:, None] - P)  # noqa: E731
    records = Stream(pyarrow.table(table))
    P = np.array([-0.5, 0.0, 0.5])
    here, there = (RecordObjective(one, score, -2.0, 0.0) for one in (table, records))
    assert len(there._sums._blocks) > 2
    assert np.array_equal(here.scores(P), there.scores(P))


@pytest.mark.parametrize("staying", [0.0, 0.5])
def test_blocks_that_do_not_stay_are_let_go(staying, rng, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 14)
    calls: list[Any] = []
    real = stream._Region.let_go
    monkeypatch.setattr(stream._Region, "let_go", lambda self: (calls.append(self), real(self)))
    monkeypatch.setattr(memory, "STAYING", staying)
    X, y = rng.uniform(-1, 1, (9000, 4)), rng.integers(0, 2, 9000)
    objective = linear(Stream(X), y, 2)
    before = threading.active_count()
    for _ in range(2):  # threads stay from one question to the next
        objective.scores(np.zeros((1, 5)))
        assert threading.active_count() <= before + 2
    n = len(objective._sums._blocks)
    assert n > 4
    assert len(calls) == (0 if staying else 2 * n)


def test_after_an_error_nobody_is_left_answering(monkeypatch):
    """One block fails at once while the other thread has a hundred to go."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 8 * 10)
    asked: list[int] = []
    gone = threading.Event()

    class Slow(Rows):
        def __init__(self, X: Any, y: Any) -> None:
            super().__init__((Run(0, len(X), 0),), 1)
            self.first = int(X[0, 0])

        def question(self) -> Any:
            if self.first == 0:
                gone.set()
                raise OSError("the disk is gone")
            gone.wait(60)
            asked.append(self.first)
            time.sleep(0.05)
            return np.zeros(1, dtype=np.int64)

    slow = Stream(np.arange(1000.0)[:, None]).place(None, Slow, 2)
    with pytest.raises(OSError, match="the disk is gone"):
        slow.sum(Slow.question)
    count = len(asked)
    time.sleep(0.1)
    assert len(asked) == count < 99


def test_kinds_of_streams_lie_in_parts_too(numbers):
    class Logged(Stream):
        """Somebody's own."""

    X, y = numbers[0][:500], numbers[1][:500]
    model = LogisticRegression(1.0, 1e-6, domain=UNIT, classes=[0, 1], random_state=1)
    once = model.fit(X, y).release_.to_json()
    assert model.fit(Logged(X), y).release_.to_json() == once


def test_a_system_without_advice_on_pages_streams_as_well(rng, monkeypatch):
    for name in ("MADV_HUGEPAGE", "MADV_DONTNEED"):
        monkeypatch.delattr(stream.mmap, name, raising=False)
    monkeypatch.setattr(memory, "STAYING", 0.0)
    X, y = rng.uniform(-1, 1, (300, 4)), rng.integers(0, 2, 300)
    P = UNIT.bind(4).candidates(3, rng)
    assert np.array_equal(linear(Stream(X), y).scores(P),
                          linear(X, y).scores(P))  # fmt: skip


def test_blocks_are_joined_up_to_a_size_if_they_are_of_one_kind(rng, monkeypatch):
    """The fourth block is sparse, so that it stands alone."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1000 * 4 * 8)
    X, y = rng.uniform(-1, 1, (7000, 4)), rng.integers(0, 2, 7000)
    made = iter(["dense"] * 3 + ["sparse"] + ["dense"] * 3)

    def make(X: Any, y: Any) -> LinearRows:
        rows: LinearRows = packed(LinearObjective(X, y, "logistic", UNIT, layout=next(made)))
        return rows

    streamed = Stream(X).place(y, make, 1)
    assert [block.table.n_records for block in streamed._blocks] == [3000, 1000, 3000]
    assert streamed.sum(LinearRows.label_counts).tolist() == [*np.bincount(y)]


def test_a_block_is_serialised_once(rng, monkeypatch):
    """Also where it is joined with others before, and where it stays in memory."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1000 * 4 * 8)
    real, calls = stream._taken_apart, []
    monkeypatch.setattr(stream, "_taken_apart", lambda table: (calls.append(table), real(table))[1])
    X = rng.uniform(-1, 1, (7000, 4))
    for largest, blocks in ((1, 7), (3 * 8100, 3)):
        monkeypatch.setattr(memory, "PACKED_BLOCK", largest)
        calls.clear()
        assert len(centers(Stream(X))._sums._blocks) == len(calls) == blocks


def test_progress_tells_of_blocks_and_the_cache_has_no_name(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 14)
    told: list[int] = []
    X, y = rng.uniform(-1, 1, (3000, 4)), rng.integers(0, 2, 3000)
    records = Stream(X, folder=tmp_path, progress=told.append)
    streamed = linear(records, y)._sums
    assert told == list(range(1, len(streamed._blocks) + 1))
    assert list(tmp_path.iterdir()) == []
    assert "private" in repr(records)
    assert "private" in repr(streamed)
    assert "private" in repr(streamed._blocks[0].table)


# ------------------------------------------------------------------------------------------- faults


def test_a_truncated_file_is_a_clear_error_and_costs_nothing(adult, files, tmp_path):
    whole = (files / "adult.parquet").read_bytes()
    for name, bytes_ in (("short", whole[:-1000]), ("torn", whole[:200_000] + whole[300_000:])):
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(bytes_)
        ledger = Ledger(1.0, 1e-6)
        with pytest.raises(ValueError, match=r"is a truncated or damaged file; copy or create"):
            logistic(adult, "local", ledger=ledger).fit(Stream(path), "label")
        assert ledger.spent == Budget(0.0)


@contextlib.contextmanager
def files_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_clear_error_and_costs_nothing(numbers, monkeypatch):
    monkeypatch.setattr(memory, "STAYING", 0.0)
    ledger = Ledger(1.0)
    model = KMeans(2, 1.0, domain=UNIT, ledger=ledger)
    with (
        files_at_most(100_000),
        pytest.raises(OSError, match=r"cannot be written \(File too large\); free some disk space"),
    ):
        model.fit(Stream(numbers[0]))
    assert ledger.spent == Budget(0.0)


def test_a_disk_that_fills_up_later_leaves_what_was_drawn_charged(numbers, monkeypatch):
    """Sorted cells are kept on disk when a tree first asks for them: after the charge."""
    ledger, records = Ledger(1.0), Stream(numbers[0])
    real = stream._keep

    def keep(*arguments: Any) -> Any:
        with files_at_most(100_000):
            return real(*arguments)

    monkeypatch.setattr(stream, "_keep", keep)
    with pytest.raises(OSError, match="cannot be written"):
        KMeans(2, 1.0, domain=UNIT, ledger=ledger, solver="tree").fit(records)
    assert ledger.spent == Budget(1.0)
    [release] = ledger.releases
    assert release.settings == {"solver": "tree", "failed": "FileAccessError"}
    assert release.parameters == {}


# --------------------------------------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    settings = {
        "distributed.comm.timeouts.connect": "60s",
        "distributed.deploy.lost-worker-timeout": "120s",  # a busy machine takes long to restart it
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.worker.profile.enabled": False,
        "distributed.logging": {"distributed": "critical"},
    }
    # One process imports what all workers need; it begins where no sources of privfit are.
    imported = ["distributed", "dask.dataframe", "pyarrow.feather", "privfit.estimators"]
    with dask.config.set(settings), pytest.MonkeyPatch.context() as patch:
        distributed.utils.get_mp_context().set_forkserver_preload(imported)
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        forkserver.ensure_running()
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0",
                     silence_logs=50) as made,
        distributed.Client(made) as client,
    ):  # fmt: skip
        yield SimpleNamespace(cluster=made, client=client)


@pytest.fixture
def some_workers(cluster):
    """At least three; a nanny starts again those that were killed."""
    if len(cluster.client.nthreads()) < 3:
        cluster.cluster.scale(4)
    cluster.client.wait_for_workers(3, timeout=120)
    return cluster.client


def parts_of(load: Callable[..., Any], path: Path, n: int, count: int) -> list[Any]:
    cuts = np.linspace(0, n, count + 1).astype(int).tolist()
    return [load(str(path), a, b) for a, b in pairwise(cuts)]


def delayed_people(files: Path, count: int, solver: str) -> tuple[list[Any], list[Any]]:
    n = len(range(48_842)[rows_of(solver)])
    tables = parts_of(table_rows, files / "adult.arrow", n, count)
    return tables, parts_of(array_rows, files / "y.npy", n, count)


def test_one_two_and_four_workers_release_what_memory_does(
    cluster, adult, numbers, files, expected
):
    for n in (1, 2, 4):
        cluster.cluster.scale(n)
        cluster.client.wait_for_workers(n, timeout=120)
        solvers = ("local", "gradient", "dpsga", "eem") if n == 2 else ("local",)
        for solver in solvers:
            model = logistic(adult, LINEAR[solver]).fit(*delayed_people(files, 9, solver))
            assert model.release_.to_json() == expected(solver)
        model, X, y = convex_case("tilted", numbers)
        once = model.fit(X, y).release_.to_json()
        parts = [parts_of(array_rows, files / f"{name}.npy", 6000, 3 * n) for name in "Xy"]
        assert model.fit(*parts).release_.to_json() == once
    own = SmoothLoss(lambda m: np.logaddexp(0, -m), lambda m: -1 / (1 + np.exp(m)), 1.0, 0.25)
    for solver in ("objective", ObjectivePerturbation(loss=own), Gradient(steps=3, whiten=False)):
        model.set_params(fit_intercept=False, solver=solver)
        assert model.fit(*parts).release_.to_json() == model.fit(X, y).release_.to_json()


def test_ones_own_score_is_tried_on_a_cluster_before_the_charge(some_workers):
    """One worker is asked, and forgets nothing by it."""
    import dask.array

    X = np.random.default_rng(2).uniform(-1, 1, (4000, 1))
    there = RecordObjective(dask.array.from_array(X, chunks=(500, 1)), near, -2.0, 0.0)
    P, packed = np.array([[-0.5], [0.25]]), there._sums._pack
    there.check(P)
    there._sums._pack = None  # nothing is packed again
    assert np.array_equal(there.scores(P), RecordObjective(X, near, -2.0, 0.0).scores(P))
    there._sums._pack = packed
    wrong = RecordObjective(dask.array.from_array(X, chunks=(500, 1)), failing, -2.0, 0.0)
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match="score raised KeyError for each of the first records"):
        privfit.search(wrong, privfit.Reals(-1, 1, 1), 1.0, solver=DPSGA(2), ledger=ledger)
    assert not ledger.entries


def failing(records: Any, P: Any) -> Any:
    raise KeyError(float(records[0, 0]))


OWN_LOSSES = """
import ctypes

D, N = ctypes.POINTER(ctypes.c_double), ctypes.c_ssize_t

@ctypes.CFUNCTYPE(None, D, N, D, N, N, D)
def near(record, n_columns, candidates, n_coordinates, m, out):
    for c in range(m):
        out[c] = -abs(record[0] - candidates[c])
"""


def test_a_compiled_score_is_found_on_workers_by_its_name_alone(
    some_workers, tmp_path, monkeypatch
):
    """An address of this process is refused there, before anything is charged."""
    import dask.array

    (tmp_path / "own_losses.py").write_text(OWN_LOSSES)
    some_workers.upload_file(str(tmp_path / "own_losses.py"))
    monkeypatch.syspath_prepend(tmp_path)
    import own_losses

    X = np.random.default_rng(2).uniform(-1, 1, (400, 1))
    lazy, P = dask.array.from_array(X, chunks=(50, 1)), np.array([[-0.5], [0.25]])
    there = RecordObjective(lazy, "own_losses:near", -2.0, 0.0)
    assert np.array_equal(there.scores(P), RecordObjective(X, near, -2.0, 0.0).scores(P))
    with pytest.raises(ValueError, match="score is a compiled function of another process"):
        RecordObjective(lazy, own_losses.near, -2.0, 0.0)


def test_arrays_and_frames_release_the_same(some_workers, numbers, files):
    import dask.array
    import dask.dataframe

    X, y = numbers[0][FEW], numbers[1][FEW]
    blocks = [dask.array.from_delayed(one, (1500, 5), X.dtype)
              for one in parts_of(array_rows, files / "X.npy", 6000, 4)]  # fmt: skip
    lazy = dask.array.concatenate(blocks)
    labels = dask.array.from_array(y, chunks=1500)
    model = KMeans(3, 1.0, domain=UNIT, solver=privfit.clustering.Tree(depth=6), random_state=5)
    once = model.fit(X).release_.to_json()
    futures = some_workers.scatter([X[:2500], X[2500:]])
    for records in (lazy, lazy.persist(), lazy.rechunk((1500, 2)), futures):
        assert model.fit(records).release_.to_json() == once
    frame = dask.dataframe.from_dask_array(lazy, columns=list("abcde"))
    model = LogisticRegression(1.0, 1e-6, domain=UNIT, classes=[0, 1], random_state=3,
                               solver=Local(generations=5))  # fmt: skip
    plain = model.fit(X, y).coef_
    for records in (frame, frame.persist()):
        assert np.array_equal(model.fit(records, labels).coef_, plain)
        assert model.feature_names_in_.tolist() == list("abcde")
    nb = BernoulliNB(1.0, classes=[0, 1], random_state=3)
    assert np.array_equal(nb.fit(lazy, labels).feature_count_, nb.fit(X, y).feature_count_)
    score = (lazy[:, 1] + 1) / 2
    curve = roc_curve(labels, score, 1.0, random_state=1)
    assert np.array_equal(curve.tpr, roc_curve(y, (X[:, 1] + 1) / 2, 1.0, random_state=1).tpr)


@pytest.mark.parametrize("metric", ["block", "full"])
def test_additive_models_on_workers_release_the_same(metric, some_workers, numbers):
    import dask.array

    X, y = numbers
    columns = {name: Numeric(-1, 1, bins=4, scale="log") for name in "abcde"}
    settings = Additive(metric=metric, steps=3)
    model = LogisticRegression(1.0, 1e-6, domain=Schema(columns), classes=[0, 1], solver=settings,
                               random_state=7)  # fmt: skip
    once = model.fit(X, y).release_.to_json()
    lazy = dask.array.from_array(X, chunks=(1100, 2)), dask.array.from_array(y, chunks=1100)
    assert model.fit(*lazy).release_.to_json() == once


def test_a_solver_of_ones_own_takes_records_on_workers(some_workers, numbers):
    """It stays here: only sums are asked of the parts."""
    import dask.array

    X, y = numbers[0][:2000], (numbers[0][:2000, 0] > 0).astype(int)
    model = LogisticRegression(1.0, 1e-6, domain=UNIT, classes=[0, 1], solver=ES(), random_state=5)
    once = model.fit(X, y).release_.to_json()
    lazy, labels = dask.array.from_array(X, chunks=(600, -1)), dask.array.from_array(y, chunks=600)
    assert model.fit(lazy, labels).release_.to_json() == once


def test_facilities_and_several_classes_on_workers_release_the_same(some_workers, numbers):
    """A metric without a name travels; a class is asked after another, of the same parts."""
    import dask.array

    X, y = numbers[0][:2000], np.digitize(numbers[0][:2000, 0], [-0.5, 0.0])
    lazy, labels = (dask.array.from_array(values, chunks=(600, -1)[: values.ndim])
                    for values in (X, y))  # fmt: skip
    synopsis = privfit.Synopsis(depth=5)
    for columns, metric, solver in ((2, "l2", synopsis), (2, "l1", privfit.Greedy()),
                                    (5, METRICS[2], privfit.Greedy(swaps=1))):  # fmt: skip
        model = KMedian(2, 1.0, facilities=X[:9, :columns], metric=metric, clip=(0, 2),
                        solver=solver, domain=UNIT, random_state=5)  # fmt: skip
        here, there = X[:, :columns], lazy[:, :columns]
        once, cost = model.fit(here).release_.to_json(), model.private_cost(here, 1.0)
        assert model.fit(there).release_.to_json() == once
        assert model.private_cost(there, 1.0) == cost
    model = LogisticRegression(1.0, 1e-6, domain=UNIT, classes=[0, 1, 2], random_state=3,
                               solver=Local(generations=3))  # fmt: skip
    once = model.fit(X, y).release_.to_json()
    assert model.fit(lazy, labels).release_.to_json() == once


@pytest.mark.parametrize(("solver", "columns"), [("medians", 5), ("cell_medians", 2)])
def test_medians_anywhere_on_workers_release_the_same(solver, columns, some_workers, numbers):
    import dask.array

    X = numbers[0][:2000, :columns]
    model = KMedian(3, 1.0, domain=UNIT, metric="l2", solver=solver, random_state=5)
    once, cost = model.fit(X).release_.to_json(), model.private_cost(X, 1.0)
    lazy = dask.array.from_array(X, chunks=(600, -1))
    assert model.fit(lazy).release_.to_json() == once
    assert model.private_cost(lazy, 1.0) == cost


def test_a_worker_killed_between_two_newton_steps_changes_nothing(
    some_workers, numbers, files, monkeypatch
):
    pids, real, asked = [*some_workers.run(os.getpid).values()], workers._Workers._sum, []

    def ask(self: Any, question: Any) -> Any:
        asked.append(question.of)
        if asked.count(LinearRows.slopes) == 3 and question.of is LinearRows.bends:
            kill(pids.pop()) if len(pids) > 2 else None
        return real(self, question)

    model, X, y = convex_case("tilted", numbers)
    once = model.fit(X, y).release_.to_json()
    monkeypatch.setattr(workers._Workers, "_sum", ask)
    parts = [parts_of(array_rows, files / f"{name}.npy", 6000, 7) for name in "Xy"]
    assert model.fit(*parts).release_.to_json() == once
    assert len(pids) == 2
    assert {*asked} == {LinearRows.slopes, LinearRows.bends}


@pytest.mark.parametrize("solver", ["local", "gradient"])
def test_a_worker_killed_between_generations_changes_nothing(
    solver, some_workers, adult, files, expected
):
    pids = list(some_workers.run(os.getpid).values())

    def listen(generation: Any) -> None:
        if generation.index == 2:
            kill(pids[0])

    ledger = Ledger(1.0, 1e-6)
    model = logistic(adult, LINEAR[solver], callback=listen, ledger=ledger)
    model.fit(*delayed_people(files, 5, solver))
    assert model.release_.to_json() == expected(solver)
    assert ledger.spent == Budget(1.0, 1e-6)


def test_a_worker_killed_while_it_packs_or_answers_changes_nothing(some_workers, rng, tmp_path):
    X, y = rng.uniform(-1, 1, (4000, 4)), rng.integers(0, 2, 4000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    P = UNIT.bind(4).candidates(5, rng)

    def die_once(name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / name).unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    def labels(y: Any) -> Any:  # by value, so that workers know it
        die_once("pack")
        return y

    def losses(rows: LinearRows, whole: Any) -> Any:
        die_once("answer")
        return rows.losses(whole)

    records = parts_of(array_rows, tmp_path / "X.npy", 4000, 6)
    known = parts_of(array_rows, tmp_path / "y.npy", 4000, 6)
    (tmp_path / "pack").touch()
    there = LinearObjective(records, known, "logistic", UNIT, labels=labels)
    (tmp_path / "answer").touch()
    found = there._sums.sum(losses, P / there.domain.weight_units())
    assert not (tmp_path / "pack").exists()
    assert not (tmp_path / "answer").exists()
    assert np.array_equal(-found, linear(X, y).scores(P))


def test_tables_are_held_by_workers_alone_and_are_let_go(some_workers, rng, tmp_path):
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (4000, 4)))
    X = np.load(tmp_path / "X.npy")
    records = parts_of(array_rows, tmp_path / "X.npy", 4000, 20)
    objective, whole = centers(records), centers(X)
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 4)))
    assert np.array_equal(objective.scores(P), whole.scores(P))
    fit = objective._sums._fit
    assert sorted(i for some in some_workers.run(held, fit).values() for i in some) == [*range(20)]

    # Dask's own memory, which it may send around, has no part of the records.
    stored = some_workers.run(lambda dask_worker: [str(type(v)) for v in dask_worker.data.values()])
    assert not any(
        "ndarray" in kind or "Rows" in kind for kinds in stored.values() for kind in kinds
    )

    # A worker that lost some tables gives a sum over too few records: it is not used.
    some_workers.run(forget_half, fit)
    assert np.array_equal(objective.scores(P), whole.scores(P))
    counts, sums = objective.lloyd(P[0])
    assert np.array_equal(counts, whole.lloyd(P[0])[0])
    assert np.array_equal(sums, whole.lloyd(P[0])[1])

    del objective
    gc.collect()
    deadline = time.monotonic() + 120
    while any(some_workers.run(held, fit).values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(some_workers.run(held, fit).values())


@pytest.mark.parametrize("asked", ["over lines", "directly", "by the scheduler"])
def test_sums_of_many_workers_are_added_in_a_tree(asked, some_workers, rng, tmp_path, monkeypatch):
    """Of fan-in 1, so that each worker has another one below it."""

    async def tried(*_: Any) -> bool:
        return asked != "by the scheduler"

    some_workers.run(setattr, workers, "FAN_IN", 1)
    monkeypatch.setattr(workers, "FAN_IN", 1)
    monkeypatch.setattr(workers, "_reaches", tried)
    if asked == "directly":
        monkeypatch.setattr(workers, "PLAIN", "nowhere://")
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (900, 3)))
    X = np.load(tmp_path / "X.npy")
    records = parts_of(array_rows, tmp_path / "X.npy", 900, 5)
    empty = parts_of(array_rows, tmp_path / "X.npy", 0, 1)
    whole = centers(X)
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 3)))
    there = centers([*empty, *records])
    assert np.array_equal(there.scores(P), whole.scores(P))
    assert len(there._sums._lines) == (asked == "over lines")


def detour(*_: Any) -> None:
    pytest.fail("a question took a detour")


def test_questions_go_over_lines(some_workers, rng, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (900, 3)))
    whole = centers(np.load(tmp_path / "X.npy"))
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 3)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 900, 6))
    monkeypatch.setattr(workers._Workers, "_over_dask", detour)
    for _ in range(3):
        assert np.array_equal(there.scores(P), whole.scores(P))
    assert len(there._sums._lines) == len(set(there._sums._home.values())) > 1


@pytest.mark.parametrize("end", ["here", "there"])
def test_lines_that_break_change_nothing(end, some_workers, rng, tmp_path):
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (900, 3)))
    whole = centers(np.load(tmp_path / "X.npy"))
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 3)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 900, 6))
    sums = there._sums
    assert np.array_equal(there.scores(P), whole.scores(P))
    [*_, last] = sums._lines._lines.values()
    if end == "here":
        last.close()
    else:  # what is not a question ends a line
        last.sendall(lines.LENGTH.pack(2) + b"no")
    sums._see_who_holds_what = detour  # no sum fell short: Dask passed the question on
    assert np.array_equal(there.scores(P), whole.scores(P))
    assert len(sums._lines) == 0
    assert np.array_equal(there.scores(P), whole.scores(P))


@pytest.mark.parametrize("cause", ["an encrypted cluster", "a worker without a line"])
def test_without_lines_questions_go_over_connections_of_dask(
    cause, some_workers, rng, tmp_path, monkeypatch
):
    def nowhere(fit: str, dask_worker: Any = None) -> None:
        """By value, so that workers know it."""

    if cause == "an encrypted cluster":
        monkeypatch.setattr(workers, "PLAIN", "nowhere://")
        monkeypatch.setattr(workers, "_listen", detour)
    else:
        monkeypatch.setattr(workers, "_listen", nowhere)
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (900, 3)))
    whole = centers(np.load(tmp_path / "X.npy"))
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 3)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 900, 6))
    assert np.array_equal(there.scores(P), whole.scores(P))
    assert len(there._sums._lines) == 0


def test_lines_are_closed_by_who_may_ask(some_workers, tmp_path, monkeypatch):
    """One thread may look for partitions that are lost while another waits for an answer."""
    closed, close = [], lines.Lines.close

    def noted(self: Any) -> None:
        closed.append(self._lock.locked())
        close(self)

    np.save(tmp_path / "X.npy", np.zeros((10, 2)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 10, 4))
    there.scores(np.zeros((1, 3, 2)))
    monkeypatch.setattr(lines.Lines, "close", noted)
    there._sums._see_who_holds_what()
    there.scores(np.ones((1, 3, 2)))
    assert closed
    assert all(closed)


def test_a_client_that_was_closed_shows_no_life(some_workers, rng, tmp_path, monkeypatch):
    """Lines go on; whatever needs the client says that the cluster does not answer."""
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (90, 3)))
    whole = centers(np.load(tmp_path / "X.npy"))
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 3)))
    with distributed.Client(some_workers.scheduler.address) as own, own.as_current():
        there = centers(parts_of(array_rows, tmp_path / "X.npy", 90, 4))
        assert np.array_equal(there.scores(P), whole.scores(P))
    monkeypatch.setattr(workers, "AWAKE", 0.0)
    assert np.array_equal(there.scores(P), whole.scores(P))
    there._sums._lines.close()
    with pytest.raises(ClusterError, match="the scheduler of the cluster does not answer"):
        there.scores(P)


def test_lines_end_with_a_fit(some_workers, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((10, 2)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 10, 4))
    there.scores(np.zeros((1, 3, 2)))
    fit, count = there._sums._fit, len(there._sums._lines)
    assert sum(some_workers.run(served_lines, fit).values()) == count > 1
    del there
    gc.collect()
    deadline = time.monotonic() + 120
    while any(some_workers.run(served_lines, fit).values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(some_workers.run(served_lines, fit).values())


def test_a_worker_that_cannot_be_reached_is_asked_through_the_scheduler(monkeypatch):
    class Pool:
        async def connect(self, address: str) -> None:
            if address == "tcp://refused":
                raise OSError("refused")
            await asyncio.sleep(60)

    monkeypatch.setattr(workers, "REACH", 0.01)
    for address in ("tcp://refused", "tcp://silent"):
        assert not asyncio.run(workers._reaches(Pool(), address))


def test_partitions_are_shared_out_evenly(some_workers, rng, tmp_path):
    """As many partitions as workers: one for each, also after some were packed again."""
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (90, 3)))
    alive = len(some_workers.nthreads())
    for each in (1, 2):
        sums = centers(parts_of(array_rows, tmp_path / "X.npy", 90, each * alive))._sums
        assert max(Counter(sums._home.values()).values()) == each
        del sums._home[0], sums._home[1]  # as if their workers were gone
        sums._settle()
        assert max(Counter(sums._home.values()).values()) == each


def test_a_worker_with_more_threads_gets_more_partitions():
    some = object.__new__(workers._Workers)
    some._home, some._partitions = {9: "b"}, [(workers._Recipe("x", {}), None)] * 10
    jobs = some._shared_out([*range(9)], {"a": 4, "b": 1})
    assert {place: len(mine) for place, mine in jobs.items()} == {"a": 8, "b": 1}


def test_a_partition_that_changes_is_refused(some_workers, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((10, 2)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 10, 2))._sums
    np.save(tmp_path / "X.npy", np.zeros((9, 2)))
    there._home.clear()
    with pytest.raises(RuntimeError, match=r"a partition has changed since it was first read; fit"):
        there._settle()


def test_a_question_is_given_up_at_some_time(some_workers, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", np.zeros((10, 2)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 10, 2))
    monkeypatch.setattr(workers, "_add", lambda _: workers._Sum())
    with pytest.raises(RuntimeError, match=r"workers were lost in 20 attempts at one question; "):
        there.scores(np.zeros((1, 3, 2)))


def test_a_lost_scheduler_is_one_sentence_with_what_was_charged(
    some_workers, tmp_path, monkeypatch, rng
):
    async def gone(*_: Any) -> None:
        raise OSError("Timed out trying to connect")

    def callback(_: Any) -> None:
        monkeypatch.setattr(workers._Workers, "_over_lines", lambda *_: None)
        monkeypatch.setattr(workers._Workers, "_watched", gone)

    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (40, 2)))
    ledger = Ledger(1.0, 1e-6)
    model = KMeans(2, 1.0, 1e-6, domain=(-1, 1), solver=Lloyd(steps=3), ledger=ledger,
                   callback=callback)  # fmt: skip
    sentence = (
        r"^the scheduler of the cluster does not answer \(OSError\); start a cluster, and fit "
        r"again; epsilon 1, delta 1e-06, replace was charged and stays spent$"
    )
    with pytest.raises(ClusterError, match=sentence):
        model.fit(parts_of(array_rows, tmp_path / "X.npy", 40, 4))
    assert ledger.spent.epsilon == 1.0
    assert ledger.releases[0].settings["failed"] == "ClusterError"


def test_a_failure_to_answer_is_raised_and_not_asked_again(some_workers, tmp_path, capfd):
    np.save(tmp_path / "X.npy", np.zeros((10, 2)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 10, 4))
    with pytest.raises(AttributeError, match="no attribute 'temperature'"):
        there._sums.sum(lambda rows, value: rows.temperature * value, SECRET)
    assert str(int(SECRET)) not in "".join(capfd.readouterr())

    class OddError(Exception):  # pickles, but cannot be read back
        def __init__(self, what: str, value: float) -> None:
            super().__init__(what)

    assert str(workers._portable(OddError("odd", SECRET))) == "a part could not answer (OddError)"


def test_a_scheduler_sees_a_task_now_and_then(some_workers, tmp_path, monkeypatch):
    """Or it might close for want of use, if it was told to."""
    np.save(tmp_path / "X.npy", np.zeros((10, 2)))
    there = centers(parts_of(array_rows, tmp_path / "X.npy", 10, 2))
    seen = []
    monkeypatch.setattr(some_workers, "submit", lambda *_, **__: seen.append(1))
    for awake, tasks in ((60.0, 0), (0.0, 1)):
        monkeypatch.setattr(workers, "AWAKE", awake)
        there.scores(np.zeros((1, 3, 2)))
        assert len(seen) == tasks


def test_workers_of_one_process_do_not_mix_their_tables(rng, tmp_path):
    np.save(tmp_path / "X.npy", rng.uniform(-1, 1, (900, 3)))
    whole = centers(np.load(tmp_path / "X.npy"))
    P = whole.snap(rng.uniform(-1, 1, (4, 3, 3)))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=False,
                                 dashboard_address=":0", silence_logs=50) as made,
        distributed.Client(made) as client,
    ):  # fmt: skip
        client.wait_for_workers(2, timeout=60)
        there = centers(parts_of(array_rows, tmp_path / "X.npy", 900, 6))
        there._sums._see_who_holds_what = lambda: pytest.fail("a sum fell short")
        assert np.array_equal(there.scores(P), whole.scores(P))
        assert len(set(there._sums._home.values())) == 2
        del there


def test_a_bad_partition_is_refused_without_a_word_on_its_values(some_workers, tmp_path, capfd):
    X = np.zeros((10, 2))
    X[7] = SECRET, np.nan
    np.save(tmp_path / "X.npy", X)
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match=r"X must be finite; replace NaN") as caught:
        KMeans(2, 1.0, domain=UNIT, ledger=ledger).fit(
            parts_of(array_rows, tmp_path / "X.npy", 10, 2)
        )
    assert str(int(SECRET)) not in str(caught.value) + "".join(capfd.readouterr())
    assert ledger.spent == Budget(0.0)


# ----------------------------------------------------------------------------------------- refusals


class Fixed(Sums[Any]):
    """Tables of declared sizes that have no answers."""

    def __init__(self, sizes: list[int], widths: list[int]) -> None:
        self._count(sizes, widths)

    def _sum(self, question: Any) -> Any:
        raise NotImplementedError

    def _try_one(self, question: Any) -> None:
        raise NotImplementedError


def no_module(name: str, call: Callable[[], object]) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, None)
        return call()


def lost_scheduler() -> None:
    with workers._scheduler_reached():
        raise OSError("Timed out trying to connect")


def lonely_workers() -> None:
    client = SimpleNamespace(
        nthreads=dict, wait_for_workers=lambda n, timeout: (_ for _ in ()).throw(TimeoutError())
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "WAIT", 0.0)
        workers._Workers._workers(SimpleNamespace(_client=client))  # type: ignore[arg-type]


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


CSV = "a,b,label\n0.5,0.25,0\n0.1,0.2,1\n"
BAD_CSV = f"a,b\n{'1,2' + chr(10)}" + "1,2\n" * 400_000 + f"x{SECRET},1\n"
IN_PARTS = Stream(np.zeros((4, 2)))


def different_kinds(folder):
    """Two files with the same column, of numbers and of texts."""
    for name, cells in (("a", [1.5]), ("b", ["u"])):
        pd.DataFrame({"x": cells}).to_parquet(folder / f"{name}.parquet")
    return folder


REFUSALS: list[tuple[Callable[[Path], object], str]] = [
    (lambda _: Fixed([0], [2]), r"X must have at least one record; pass a non-empty table"),
    (lambda _: Fixed([2**32 + 1], [2]), r"X must have at most 4294967296 records"),
    (lambda _: Fixed([1, 1], [2, 3]), r"X must have the same columns in all its parts; pass equal"),
    (lambda _: linear(IN_PARTS, [0] * 4).labelled_blocks(1),
     r"this solver needs all records at once, but X is a stream or a Dask collection; pass an "
     r"array in memory"),
    (lambda _: centers(IN_PARTS).decoded(), r"needs all records"),
    (lambda folder: Stream(written(folder, "x.txt", "1")), r"unknown kinds \(\.txt\); pass one"),
    (lambda folder: Stream(written(folder, "x.csv.bz2", "1")),
     r"unknown kinds \(\.bz2\); pass one .*, \.tsv\.gz; decompress them first$"),
    (lambda folder: Stream(written(folder, "x.tsv", "a\tb\n")),
     r"source has \.tsv files, which have tabs between their fields; pass delimiter='\\t'$"),
    (lambda _: Stream([1, 2]), r"source \(list\) must be an array, a path, a list of paths"),
    (lambda folder: Stream(folder / "none.csv"), r"source \('.*none\.csv'\) must exist; pass the"),
    (lambda folder: Stream(folder), r"source \('.*'\) must hold at least one file; pass a folder"),
    (lambda folder: Stream(written(folder, "x.npy", "no")), r"must be a complete \.npy file"),
    (lambda _: Stream(np.zeros((2, 2)), columns=["a"]), r"columns must be left out for an array"),
    (lambda folder: Stream(written(folder, "x.csv", CSV), columns=["z"]),
     r"columns \(\['z'\]\) must each occur once in the source; pass names that do"),
    (lambda folder: Stream(different_kinds(folder)).kinds(),
     r"source must have files whose columns are of the same kinds for domain='learn'; write them"),
    (lambda _: linear(IN_PARTS, np.zeros(3)), r"y must have one label for each record"),
    (lambda folder: linear(Stream(written(folder, "x.csv", CSV)), "z"),
     r"y \(z\) must name a column of the source, which contains the labels; pass its name"),
    (lambda folder: linear(Stream(written(folder, "x.csv", CSV)), np.zeros(2)),
     r"y \(ndarray\) must name a column"),
    (lambda folder: centers(Stream(written(folder, "x.csv", BAD_CSV))),
     r"X must (be finite|hold numbers)"),
    (lambda folder: centers(Stream(written(folder, "x.csv.gz", "no gzip"))),
     r"source \('.*x\.csv\.gz'\) is a truncated or damaged file; copy or create it again"),
    (lambda folder: linear(Stream([written(folder, f"{name}.csv", text)
                                   for name, text in (("x", CSV), ("z", "a,c\n"))]), "label"),
     r"source \('.*z\.csv'\) must have the column 'b' exactly once, like its first file; rename"),
    (lambda folder: Stream(written(folder, "x.csv", CSV), delimiter=";;"),
     r"delimiter \(';;'\) must be one ASCII character, and neither a quote nor the end of a line"),
    (lambda folder: Stream(written(folder, "x.csv", "")), r"source must name .* in the first line"),
    (lambda folder: Stream(written(folder, "x.parquet", "PAR1")), r"is a truncated or damaged"),
    (lambda folder: no_module("pyarrow", lambda: Stream(written(folder, "x.parquet", CSV))),
     r'needs pyarrow; run pip install ".*\[parquet\]"'),
    *((lambda _, limit=limit: Stream(np.zeros((2, 2)), memory_limit=limit),
       r"memory_limit \(.*\) must be at least 64MB; pass a text such as '1GB' or a number")
      for limit in ("1MB", 10)),
    *((lambda _, limit=limit: Stream(np.zeros((2, 2)), memory_limit=limit),
       r"memory_limit \(.*\) must be a size; pass a text such as '1GB' or a number of bytes")
      for limit in ("many", "5 parsecs", 1.5, "-1GB")),
    (lambda _: centers(Stream(np.zeros((4, 2)), folder="/nowhere")),
     r"folder \('/nowhere'\) must be writable for a cache .*; pass another folder"),
    (lambda _: no_module("distributed", lambda: centers([dask.delayed(0)])),
     r'need dask\.distributed; run pip install ".*\[dask\]"'),
    (lambda _: workers.partitions_of(np.zeros(3)),
     r"y \(ndarray\) must be partitioned like X; pass a"),
    (lambda _: lost_scheduler(), r"the scheduler of the cluster does not answer \(OSError\); st"),
    (lambda _: lonely_workers(), r"the cluster has had no worker for 0 seconds; start some"),
    (lambda _: KMedian(2, facilities=np.eye(2)).fit(np.eye(2)).score(IN_PARTS),
     r"X \(Stream\) must be in memory"),
    (lambda _: KMedian(2, facilities=np.eye(3), domain=UNIT).fit(IN_PARTS),
     r"X has 2 columns but facilities 3; pass equal columns"),
    (lambda _: KMedian(2, facilities=np.eye(2), metric=METRICS[2], clip=(0, 1), solver="synopsis")
     .fit(IN_PARTS), r"cells are found for l1 and l2 distances of at most 3 columns; use a solver"),
    (lambda _: LogisticRegression(domain=UNIT).fit(IN_PARTS, np.zeros(4)),
     r"LogisticRegression needs declared classes for a stream or a Dask collection; pass "
     r"classes=\[\.\.\.\]"),
    (lambda _: LogisticRegression(domain=UNIT, classes=[0, 1], solver="sgd").fit(IN_PARTS, [0] * 4),
     r"solver \('sgd'\) needs all records at once, but X is a stream or a Dask collection; pass "
     r"solver='local'"),
    (lambda _: KMeans(2, domain=UNIT, solver="gupt").fit(IN_PARTS),
     r"solver \('gupt'\) needs all records at once, but X is a stream or a Dask collection; pass "
     r"another solver"),
]  # fmt: skip


def refusal(call: Callable[[Path], object], folder: Path) -> str:
    try:
        call(folder)
    except Exception as error:
        return str(error)
    raise AssertionError("nothing was refused")


@pytest.mark.few(25)
@pytest.mark.parametrize(("call", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_what_is_refused_names_the_remedy(call, message, tmp_path):
    with pytest.raises(
        (ValueError, TypeError, ImportError, OSError, RuntimeError), match=message
    ) as e:
        call(tmp_path)
    assert str(int(SECRET)) not in str(e.value)


def test_dask_needs_a_client(monkeypatch):
    def none() -> None:
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match=r"Dask collections need a client; start one with "):
        centers([dask.delayed(np.zeros)((4, 2))])
    monkeypatch.setattr(distributed, "get_client", lambda: SimpleNamespace(asynchronous=True))
    with pytest.raises(ValueError, match=r"fit waits for answers, but this client is asynchron"):
        centers([dask.delayed(np.zeros)((4, 2))])


def test_labels_are_cut_like_records(some_workers):
    with pytest.raises(
        ValueError,
        match=r"y \(1 partitions\) must be partitioned like X \(2 "
        r"partitions\)",
    ):
        linear([dask.delayed(np.zeros)((4, 2))] * 2, [dask.delayed(np.zeros)(4)])


def test_every_raise_is_reached_by_a_case_above(tmp_path):
    seen = []
    for i, (call, _) in enumerate(REFUSALS):
        (tmp_path / str(i)).mkdir()
        seen.append(refusal(call, tmp_path / str(i)))
    seen += [
        "Dask collections need a client; start one with dask.distributed.Client(address), or "
        "Client() for this machine alone",
        "fit waits for answers, but this client is asynchronous; call fit outside the event loop, "
        "with a client that was started without asynchronous=True",
        "y (1 partitions) must be partitioned like X (2 partitions); rechunk or repartition one "
        "of them, or pass the name of a column of X",
        # Those are in test_files.py and test_memory.py.
        "source ('x') could not be read to its end; check that the file is complete",
        "source ('x') has a folder '2020', which names no partition (column=value); pass the "
        "folder that holds the files, or a path with wildcards",
        'paths with :// need fsspec; run pip install "privfit[remote]", or pass a path on this '
        "machine",
        "source (s3://) needs a package that fsspec knows for this protocol, such as s3fs for "
        's3://; install it beside "privfit[remote]"',
        "source (x://) must be of a protocol that fsspec knows; pass one such as s3:// or a path "
        "on this machine",
        "source ('memory://x.npy') must be on this machine, since .npy files are mapped; copy it, "
        "or pass Parquet files",
        "source ('x') must have batches that fit into memory_limit; write it with fewer records "
        "in a batch, or pass a larger memory_limit",
        "memory_limit (64000000 bytes) must leave room to read and pack a block, beside what the "
        "process holds; pass memory_limit='300MB' or more",
        # Those three are in test_dask_tables.py.
        "partitions must have the same columns; select those of a record in each of them",
        "y ('late') must name one column of X, which contains the labels; pass its name",
        "y ('late') must name a column of X, which contains the labels, or be a Dask collection; "
        "pass one of these",
        "a partition has changed since it was first read; fit to a collection that returns the "
        "same records whenever it is read, or persist it",
        "workers were lost in 20 attempts at one question; give them enough memory for their "
        "partitions, and fit again",
        "the cache of packed records cannot be written (File too large); free some disk space, or "
        "pass "
        "Stream(..., folder=...) with more",
    ]
    names = ("__init__", "places", "rows", "sums", "stream", "sources", "files", "memory", "dask",
             "lines")  # fmt: skip
    package = Path(privfit.__file__).parent
    sources = [package / "records" / f"{name}.py" for name in names]
    assert_reached(sources, "\n".join(seen))
