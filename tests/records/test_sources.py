"""Where streamed records come from: what cannot be a source is refused, with a remedy."""

from __future__ import annotations

import numpy as np
import pytest

from privfit.records.sources import source_of

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
