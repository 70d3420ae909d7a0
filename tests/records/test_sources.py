"""Where streamed records come from: what cannot be a source is refused, with a remedy."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest

from privfit import Categorical, Schema
from privfit.domains.chunks import objects
from privfit.records import sources
from privfit.records.sources import ArraySource, listed_once, source_of

pyarrow = pytest.importorskip("pyarrow")
TABLE = {"a": np.arange(6) / 6, "b": np.ones(6)}


def rows_of(source):
    return [np.asarray(columns["a"]).tolist() for columns, _ in source.blocks(None, 1 << 20)]


def test_a_record_batch_is_read_like_its_table():
    table = pyarrow.table(TABLE)
    assert rows_of(source_of(table.to_batches()[0], ["a"])) == rows_of(source_of(table, ["a"]))


@pytest.mark.parametrize("part", [lambda table: table["a"], lambda table: table.schema])
def test_what_arrow_has_besides_tables_is_refused(part):
    with pytest.raises(TypeError, match=r"source \(\w+\) must be an array, a path, a list of path"):
        source_of(part(pyarrow.table(TABLE)), None)


def test_a_column_that_is_there_twice_is_refused_if_it_is_wanted(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("a,b,b\n" + "0.5,1,2\n" * 9)
    twice = pyarrow.Table.from_arrays([pyarrow.array([1.0])] * 3, names=["a", "b", "b"])
    for source in (path, twice):
        with pytest.raises(ValueError, match=r"\(\['b'\]\) must each occur once in the source"):
            rows_of(source_of(source, None))
        assert len(rows_of(source_of(source, ["a"]))) == 1
        with pytest.raises(ValueError, match=r"y \(b\) must name a column of the source"):
            next(source_of(source, ["a"]).blocks("b", 1 << 20))


@pytest.fixture
def texts(tmp_path):
    """A Parquet file of texts that are listed once, and of others that look like them."""
    from pyarrow import parquet

    n = 200_000
    table = pyarrow.table(
        {
            "few": [("a", "bb", None)[i % 3] for i in range(n)],
            "many": [f"a text of its own: {i}" for i in range(n)],
            "few.in.parts": ["x"] * (n // 2) + [f"a text of its own: {i}" for i in range(n // 2)],
            "nested": [["x"]] * n,
            "bytes": [b"x"] * n,
            "number": [i % 7 for i in range(n)],
        }
    )
    path = tmp_path / "texts.parquet"
    parquet.write_table(table, path, row_group_size=n // 2)
    parquet.write_table(table.slice(0, 9), tmp_path / "plain.parquet", use_dictionary=False)
    return table, path


def test_texts_that_parquet_lists_once_are_read_by_their_list(texts):
    from pyarrow import parquet

    assert listed_once(parquet.read_metadata(texts[1])) == ["few"]
    assert listed_once(parquet.read_metadata(texts[1].with_name("plain.parquet"))) == []


def test_parquet_is_read_alike_however_it_is_written(texts):
    table, path = texts
    schema = Schema(
        {
            "few": Categorical(["bb", "a"], other=True),
            "many": Categorical(["a text of its own: 77"], other=True),
            "few.in.parts": Categorical(["x"], other=True),
            "bytes": Categorical(["x"], other=True),
            "number": Categorical([3, 4], other=True),
        }
    )
    blocks = list(source_of(path, None).blocks(None, 1 << 26))
    assert len(blocks) > 1
    whole = schema.encode(table).toarray()
    assert np.array_equal(np.vstack([schema.encode(X).toarray() for X, _ in blocks]), whole)
    [(X, _)] = source_of(path.with_name("plain.parquet"), None).blocks(None, 1 << 26)
    assert np.array_equal(schema.encode(X).toarray(), whole[:9])
    assert list(objects(X["nested"])) == [["x"]] * 9


class Recorder(bytearray):
    """A map that notes what the system is asked for."""

    def madvise(self, advice, *part):
        self.__dict__.setdefault("asked", []).append((advice, *part))


class Mapped(np.ndarray):
    mode = "r"


@pytest.mark.skipif(not hasattr(mmap, "MADV_WILLNEED"), reason="the system takes no advice")
def test_the_next_block_of_a_mapped_array_is_asked_for_while_one_is_packed():
    recorder = Recorder(100 + 8 * 3 * 2000)
    X = np.frombuffer(recorder, np.float64, 3 * 2000, 96).reshape(2000, 3).view(Mapped)
    X._mmap = recorder
    source = ArraySource(X, None)
    parts = []
    for some, _ in source.blocks(None, 8 * 3 * 900):
        parts.append(len(some))
    asked = [part for advice, *part in recorder.asked if advice == mmap.MADV_WILLNEED]
    assert parts == [900, 900, 200]
    first, last = 96 + 24 * 900, 96 + 24 * 1800
    starts = [first - first % mmap.PAGESIZE, last - last % mmap.PAGESIZE]
    assert asked == [[starts[0], last - starts[0]], [starts[1], 96 + 24 * 2000 - starts[1]]]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.skipif(not hasattr(mmap, "MADV_WILLNEED"), reason="the system takes no advice")
def test_asking_for_a_file_that_shrank_or_is_gone_changes_nothing(order, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.ones((9000, 3), order=order))
    X = np.load(path, mmap_mode="r")
    for length in (5000, 0, None):
        if length is None:
            path.unlink()
        else:
            os.truncate(path, length)
        for first in (0, 7000, 8999, 9000):
            for rows in (X, X[::2], X[:, 1:], X[100:]):
                sources._read_ahead(rows, first, 1000)
