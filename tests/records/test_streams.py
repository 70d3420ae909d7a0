"""Streams and the command line read a record by itself, and as it is read from memory."""

from __future__ import annotations

import gzip
import io
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import reference
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from privfit import (
    Box,
    Categorical,
    KMeans,
    LogisticRegression,
    Numeric,
    RecordObjective,
    Schema,
    Stream,
    roc_curve,
)
from privfit.commands.tables import read_table
from privfit.records.packing import check_records

SCHEMA = Schema(
    {
        "code": Categorical([1, 2, 0.1], other=True),
        "word": Categorical(["a", "NA", "01", "\u00e9", "2020-01-01"], other=True),
        "size": Numeric(0, 8, fill=2),
        "cut": Numeric(-1, 1, bins=[0, 0.7], fill=0.75),
    },
    missing=("", "NA", "7", "+3"),
)
NAMES = list(SCHEMA.columns)
SMALL = 1 << 10  # bytes of a block: several for a table


def coded(columns: Any) -> np.ndarray:
    return SCHEMA.encode(columns).toarray()


def streamed(source: Any, **settings: Any) -> np.ndarray:
    """Coded records of a stream, read in small blocks."""
    blocks = Stream(source, **settings)._source.blocks(None, SMALL)
    return np.concatenate([coded(columns) for columns, _ in blocks])


def by_command(path: Path) -> np.ndarray:
    return coded(read_table(str(path), SCHEMA).columns)


# --------------------------------------------------------------------------------------------- CSV

TEXTS: dict[str, tuple[str, Callable[[bytes], bytes], Callable[[Path], np.ndarray]]] = {
    "csv": ("x.csv", bytes, streamed),
    "csv.gz": ("x.csv.gz", gzip.compress, streamed),
    "command csv": ("x.csv", bytes, by_command),
    "command csv.gz": ("x.csv", gzip.compress, by_command),
}


def through(name: str, lines: list[bytes]) -> np.ndarray:
    """Coded records of a CSV file with these lines below its header."""
    file, packed, read = TEXTS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_bytes(packed(b"\n".join([",".join(NAMES).encode(), *lines, b""])))
        return read(path)


def from_memory(lines: list[bytes]) -> np.ndarray:
    """The same records as the naive twin splits them, as lists of texts in memory."""
    records = [(fields + [None] * 4)[:4] for line in lines
               for fields in reference.csv_records(line + b"\n")]  # fmt: skip
    columns = zip(*records, strict=True)
    return coded({name: list(column) for name, column in zip(NAMES, columns, strict=True)})


CLEAN = st.sampled_from([b"1,a,3,0.25", b"2.0,NA,8,-0.5", b"0.1,01,7,0.7", b'1e0,"\xc3\xa9",,1e-3',
                         b"3,z,0,1e400", b'"1","a",+3,3'])  # fmt: skip
ODD_LINES = [
    b'"', b'1,"a,3,4', b'1,a"b,3', b"1,\xff,3,4", b"1,a,3,4,5,6", b"1", b"", b"\0,\0",
    b"1,a,1e+16,01", b"01,1e+16,NaN,nan", b"x" * 5000, b"9" * 5000 + b",a,inf,-inf", b",,,",
    b"1;a;3;4", b"\r", b'""""', b"EU,EU,EU,EU", b"true,false,True,FALSE",
    b"9007199254740993,9007199254740993,1,1",
]  # fmt: skip
LINES = st.sampled_from(ODD_LINES) | st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))

quick = settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip


def check_line(name: str, lines: list[bytes], at: int, odd: bytes) -> None:
    before, after = through(name, lines), through(name, [*lines[:at], odd, *lines[at + 1 :]])
    assert np.delete(before, at, axis=0).tobytes() == np.delete(after, at, axis=0).tobytes()
    assert after.tobytes() == from_memory([*lines[:at], odd, *lines[at + 1 :]]).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_a_line_changes_no_other_record_and_reads_as_from_memory(name):
    @quick
    @given(st.lists(CLEAN, min_size=2, max_size=60), st.integers(0, 59), LINES)
    def contract(lines, at, odd):
        check_line(name, lines, at % len(lines), odd)

    contract()


@pytest.mark.few(12)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("odd", ODD_LINES, ids=lambda odd: repr(odd)[:20])
def test_each_odd_line_changes_no_other_record(name, odd):
    check_line(name, [b"1,a,3,0.25", b"2,z,7,0.7"] * 20, 13, odd)


def test_the_contract_finds_a_reader_that_guesses_types(monkeypatch):
    """pyarrow's reader of CSV, as it was used before: one cell makes texts of a whole column."""
    from pyarrow import csv

    def guessed(path):
        table = csv.read_csv(path)
        raw = {name: np.asarray(table[name]).tolist() for name in NAMES}
        known = {1: 0, 2: 1, 0.1: 2}  # the old rule: by value and type, not by text
        return np.array([[known.get(value, 3)] for value in raw["code"]])

    monkeypatch.setitem(TEXTS, "guessed", ("x.csv", bytes, guessed))
    with pytest.raises(AssertionError):
        check_line("guessed", [b"1,a,3,0.25", b"2,z,7,0.7"] * 20, 13, b"EU,a,3,4")


def test_one_text_among_a_thousand_that_look_missing_changes_no_other(tmp_path):
    """1,000 cells NA, and 999 with one EU: they were `other` once, and `NA` the other time."""
    schema = Schema({"region": Categorical(["NA", "EU"], other=True)})
    path = tmp_path / "x.csv"
    for last, level in (("NA", 0), ("EU", 1)):
        path.write_text("\n".join(["region", *["NA"] * 999, last]) + "\n")
        [(columns, _)] = Stream(path)._source.blocks(None, 1 << 20)
        codes = schema.encode(columns).toarray().argmax(axis=1)
        assert codes.tolist() == [0] * 999 + [level]


@pytest.mark.slow
def test_one_odd_cell_in_the_first_megabyte_changes_no_other(tmp_path):
    lines = [f"{1 + i % 2},a,{i % 9},0.5" for i in range(150_000)]
    path, found = tmp_path / "x.csv", []
    for first in ("1,a,0,0.5", "x,a,0,0.5"):
        path.write_text("\n".join([",".join(NAMES), first, *lines]) + "\n")
        blocks = Stream(path)._source.blocks(None, 1 << 22)
        found.append([SCHEMA.encode(columns).indices for columns, _ in blocks])
    assert path.stat().st_size > 1 << 20
    one, other = (np.concatenate(indices) for indices in found)
    assert len(found[0]) > 1
    assert one[4:].tobytes() == other[4:].tobytes()


def test_line_breaks_are_declared(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",".join(NAMES) + '\n1,"a\nb",3,0.25\n2,z,8,0.7\n')
    memory = coded({name: [first, second] for name, first, second in
                    zip(NAMES, (1, "a\nb", 3, 0.25), (2, "z", 8, 0.7), strict=True)})  # fmt: skip
    assert streamed(path, line_breaks=True).tobytes() == memory.tobytes()
    assert len(streamed(path)) == 3


# ----------------------------------------------------------------------------------- typed formats

CELLS = st.sampled_from(
    [None, math.nan, math.inf, 1e308, 2**53 + 1, True, 1, 1.0, "x", "", "01", "1e+16", "NA", "1",
     b"x", b"\xff", "x" * 9000, [1], {"a": 1}, 'a"b', "a,b", "\0", 0.1, np.float32(0.1)]
) | st.text(max_size=5) | st.floats() | st.integers(-(2**62), 2**62)  # fmt: skip
ROW = st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from(["a", "NA", "01", "\u00e9", "z"]),
                st.sampled_from([0, 1, 7, 8]), st.sampled_from([0.25, 0.7, -0.5]))  # fmt: skip


def as_column(cells: list[Any]) -> Any:
    """What Arrow makes of the cells; of mixed ones texts, as readers of files do."""
    try:
        return pyarrow.array(cells)
    except (pyarrow.ArrowException, OverflowError, UnicodeDecodeError):
        texts = [None if cell is None or cell != cell else str(cell) for cell in cells]
        return pyarrow.array(texts)


def as_table(rows: list[tuple[Any, ...]]) -> Any:
    return pyarrow.table(
        {name: as_column([row[i] for row in rows]) for i, name in enumerate(NAMES)}
    )


def with_dictionaries(table: Any) -> Any:
    columns = {name: column.dictionary_encode() for name, column in
               zip(table.column_names, table.columns, strict=True)}  # fmt: skip
    return pyarrow.concat_tables(
        [pyarrow.table(columns).slice(0, 1), pyarrow.table(columns).slice(1)]
    )


def in_two_files(table: Any, folder: Path) -> Path:
    """The first record by itself, with the types that it has alone."""
    rows = [tuple(row[name] for name in NAMES) for row in table.to_pylist()]
    parquet.write_table(as_table(rows[:1]), folder / "1.parquet")
    parquet.write_table(as_table(rows[1:]), folder / "2.parquet")
    return folder


FORMATS: dict[str, Callable[[Any, Path], np.ndarray]] = {
    "an Arrow table": lambda table, folder: streamed(table),
    "dictionaries": lambda table, folder: streamed(with_dictionaries(table)),
    "parquet": lambda table, folder: streamed(written(table, folder / "x.parquet")),
    "two files": lambda table, folder: streamed(in_two_files(table, folder)),
    "arrow": lambda table, folder: streamed(written(table, folder / "x.arrow")),
    "feather": lambda table, folder: streamed(written(table, folder / "x.feather")),
    "command": lambda table, folder: by_command(written(table, folder / "x.parquet")),
}


def written(table: Any, path: Path) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=3)
    else:
        feather.write_feather(table, str(path), "uncompressed", chunksize=3)
    return path


def through_format(name: str, rows: list[tuple[Any, ...]]) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        try:
            table = as_table(rows)
            if name not in ("an Arrow table", "dictionaries"):
                parquet.write_table(table, io.BytesIO())
        except (pyarrow.ArrowException, TypeError):  # Arrow has no such column
            return assume(False)
        try:
            return FORMATS[name](table, Path(folder))
        except pyarrow.ArrowNotImplementedError:  # a dictionary of lists, say
            return assume(False)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", FORMATS)
def test_a_cell_changes_no_other_record_and_the_rest_reads_as_from_memory(name):
    @quick
    @given(st.lists(ROW, min_size=2, max_size=9), st.integers(0, 8), st.integers(0, 3), CELLS)
    def contract(rows, at, place, odd):
        at %= len(rows)
        record = tuple(odd if j == place else cell for j, cell in enumerate(rows[at]))
        changed = [*rows[:at], record, *rows[at + 1 :]]
        before, after = through_format(name, rows), through_format(name, changed)
        memory = coded({column: [row[i] for row in rows] for i, column in enumerate(NAMES)})
        assert before.tobytes() == memory.tobytes()
        assert np.delete(after, at, axis=0).tobytes() == np.delete(memory, at, axis=0).tobytes()

    contract()


def test_an_array_file_is_read_as_from_memory(tmp_path):
    schema = Schema({"a": Numeric(-1, 1, fill=0.5), "b": Categorical([1, 2], other=True)})
    rows = np.array([[0.25, 1], [-0.5, 2], [1.0, 3]] * 9)
    np.save(tmp_path / "x.npy", rows)
    before = [
        schema.encode(X).toarray() for X, _ in Stream(tmp_path / "x.npy")._source.blocks(None, 64)
    ]
    assert len(before) > 1
    for odd in (math.nan, math.inf, 1e308, 2.0**53, 0.1):
        rows[4] = odd
        np.save(tmp_path / "x.npy", rows)
        blocks = Stream(tmp_path / "x.npy")._source.blocks(None, 64)
        after = np.concatenate([schema.encode(X).toarray() for X, _ in blocks])
        assert after.tobytes() == schema.encode(rows.tolist()).toarray().tobytes()
        assert (
            np.delete(after, 4, axis=0).tobytes()
            == np.delete(np.concatenate(before), 4, axis=0).tobytes()
        )


def test_files_whose_types_differ_are_coded_alike(tmp_path):
    numbers = pyarrow.table({"a": [1, 2, None], "b": ["1", "0.5", "x"]})
    texts = pyarrow.table({"a": ["1", "2.0", "x"], "b": [1.0, 0.5, None]})
    parquet.write_table(numbers, tmp_path / "1.parquet")
    parquet.write_table(texts, tmp_path / "2.parquet")
    (tmp_path / "3.csv").write_text("b,a\n1,1\n.5,2e0\n?,?\n")
    schema = Schema({"a": Categorical([1, 2], other=True), "b": Numeric(0, 1, fill=0.25)})
    blocks = Stream(tmp_path)._source.blocks(None, 1 << 20)
    found = [schema.encode(columns).toarray().tolist() for columns, _ in blocks]
    assert found == [[[4096, 0, 0, 4096], [0, 4096, 0, 2048], [0, 0, 4096, 1024]]] * 3


# ------------------------------------------------------------------------------- through estimators


@pytest.fixture
def people(tmp_path):
    """Records as a CSV file, and in memory."""
    rng = np.random.default_rng(4)
    table = {"a": rng.uniform(-1, 1, 400).round(4).tolist(), "b": rng.integers(0, 3, 400).tolist()}
    late = [["no", "yes"][x > 0] for x in table["a"]]
    rows = zip(table["a"], table["b"], late, strict=True)
    path = tmp_path / "people.csv"
    path.write_text("a;b;late\n" + "".join(f"{a};{b};{label}\n" for a, b, label in rows))
    return path, table, late


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "domain", [Schema({"a": Numeric(-1, 1), "b": Categorical([0, 1, 2])}), Box([-1, 0], [1, 2])]
)
def test_a_fit_releases_the_same_from_csv_as_from_memory(people, domain, monkeypatch):
    path, table, late = people
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)  # CSV needs none
    model = LogisticRegression(1.0, 1e-6, domain=domain, classes=["no", "yes"], random_state=0)
    X = table if isinstance(domain, Schema) else np.column_stack(list(table.values()))
    once = model.fit(X, late).release_.to_json()
    assert model.fit(Stream(path, delimiter=";"), "late").release_.to_json() == once
    model = KMeans(2, 1.0, domain=domain, random_state=0)
    once = model.fit(X).release_.to_json()
    assert model.fit(Stream(path, delimiter=";", columns=["a", "b"])).release_.to_json() == once


def test_labels_of_a_stream_are_matched_by_their_text(tmp_path):
    values = np.linspace(-1, 1, 200).round(3).tolist()
    found = set()
    for spell in (lambda y: y, float, str, lambda y: ["false", "true"][y], lambda y: f"{y}.0"):
        path = tmp_path / "x.csv"
        path.write_text("a,y\n" + "".join(f"{x},{spell(int(x > 0))}\n" for x in values))
        model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], random_state=0)
        found.add(model.fit(Stream(path), "y").release_.to_json())
    assert len(found) == 1


def test_scores_of_a_curve_may_be_csv(tmp_path):
    score = np.linspace(0, 1, 300).round(4)
    late = np.where(score > 0.4, "yes", "no")
    path = tmp_path / "x.csv"
    path.write_text(
        "s,y,z\n"
        + "".join(f"{s},{int(y == 'yes')},{y}\n" for s, y in zip(score, late, strict=True))
    )
    for name, label, labels in (("y", 1, (late == "yes").astype(int)), ("z", "yes", late)):
        once = roc_curve(labels, score, 1.0, pos_label=label, random_state=1)
        stream = Stream(path, columns=["s"])
        curve = roc_curve(name, stream, 1.0, pos_label=label, random_state=1)
        assert curve.release.to_json() == once.release.to_json()


def test_a_function_of_ones_own_gets_arrays(tmp_path):
    def score(block, P):
        numbers = np.array([float(text or 0) for text in block["a"]])
        return -np.abs(numbers[:, None] - P)

    path = tmp_path / "x.csv"
    path.write_text("a,b\n0.5,x\n,y\n1\n")
    objective = RecordObjective(Stream(path), score, low=-1.0, high=0.0)
    memory = RecordObjective({"a": ["0.5", "", "1"]}, score, low=-1.0, high=0.0)
    P = np.array([0.0, 1.0])
    assert objective.scores(P).tolist() == memory.scores(P).tolist()
    table = pyarrow.table({"a": pyarrow.array(["0.5", None, "1"]).dictionary_encode()})
    assert RecordObjective(Stream(table), score, low=-1.0, high=0.0).scores(P).tolist() == (
        memory.scores(P).tolist()
    )


def test_a_cell_that_is_no_number_refuses_a_box_before_the_charge(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n1,s3cret\n")
    [(columns, _)] = Stream(path)._source.blocks(None, 1 << 20)
    with pytest.raises(
        ValueError, match="X must hold numbers; pass numbers, or declare"
    ) as refused:
        check_records(columns, Box(0, 1), "fit")
    with pytest.raises(ValueError, match="X must "):
        KMeans(2, 1.0, domain=(0, 1)).fit(Stream(path))
    assert "s3cret" not in str(refused.value)
