"""Packing: records are read in chunks, copied once, and lie where the kernels look for them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from makers.cases import DOMAINS, case, encoded, labels

from privfit import Box, Categorical, LinearObjective, Numeric, Schema, roc_curve
from privfit._kernels.records import PANEL_ROWS
from privfit.records import packing
from privfit.records.packing import pack, tiles

SIZES = [1, PANEL_ROWS - 1, PANEL_ROWS, PANEL_ROWS + 1, 5 * PANEL_ROWS + 3]


def table_of(domain, X):
    return domain.read(X) if isinstance(domain, Schema) else X


def dense_table(records, run) -> np.ndarray:
    """A run of packed dense records, unpacked row by row."""
    where = run.first + np.arange(run.count)
    rows = records.panels[where // PANEL_ROWS, :, where % PANEL_ROWS, :]
    return rows.reshape(run.count, -1)[:, : records.n_features]


def sparse_table(records) -> np.ndarray:
    """Packed sparse records, unpacked entry by entry."""
    n = len(records.one_start) - 1
    table = np.zeros((n, records.n_features), dtype=np.int64)
    for r in range(n):
        table[r, records.one_column[records.one_start[r] : records.one_start[r + 1]]] = records.one
        some = slice(records.value_start[r], records.value_start[r + 1])
        table[r, records.value_column[some]] = records.value[some]
    return table


@pytest.mark.few(2)
@pytest.mark.parametrize("chunk", [1, 100, 1000, 1 << 22])
@pytest.mark.parametrize("pattern", ["mixed", "ones", "zeros"])
@pytest.mark.parametrize("name", DOMAINS)
def test_packed_records_are_those_of_the_twin(name, pattern, chunk, rng, monkeypatch):
    """Class 1 first, each class in its order, whatever the chunks; padding is zero."""
    monkeypatch.setattr(packing, "CHUNK_BYTES", chunk)
    domain = case(name).domain
    for n in SIZES:
        X, positive = case(name).rows(rng, n), labels(rng, n, pattern).astype(bool)
        rows = encoded(domain, X)
        parts = [rows[positive == side] for side in (True, False) if (positive == side).any()]
        flips = [flip for side, flip in ((True, 0), (False, -1)) if (positive == side).any()]
        dense = pack(table_of(domain, X), domain, 1 - positive, layout="dense")
        assert [run.flip for run in dense.runs] == flips
        for run, part in zip(dense.runs, parts, strict=True):
            assert run.first % PANEL_ROWS == 0
            assert np.array_equal(dense_table(dense, run), part)
        assert np.abs(dense.panels.astype(np.int64)).sum() == np.abs(rows).sum()
        sparse = pack(table_of(domain, X), domain, 1 - positive, layout="sparse")
        assert [(run.count, run.flip) for run in sparse.runs] == [
            (len(part), flip) for part, flip in zip(parts, flips, strict=True)
        ]
        assert np.array_equal(sparse_table(sparse), np.concatenate(parts))


KINDS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "columns first": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "rows backwards": lambda X: X[::-1].copy()[::-1],
    "read only": lambda X: np.broadcast_to(X, X.shape),
    "of the other end": lambda X: X.astype(X.dtype.newbyteorder()),
    "between other fields": lambda X: _among_others(X),
    "integers": lambda X: np.rint(X).astype(np.int8),
    "truths": lambda X: X > 0,
}


def _among_others(X):
    """The same numbers, in rows that are no whole number of them apart."""
    rows = np.zeros(len(X), dtype=[("odd", "i1"), ("numbers", "f8", X.shape[1])])
    rows["numbers"] = X
    return rows["numbers"]


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_any_kind_are_packed_as_the_domain_rounds_them(kind, n_threads, rng):
    """What is clipped, rounded and packed in one pass is what `quantise` has, block by block."""
    for domain in (Box(-1, 1, 5), Box([0, -3, 10, 0, -1], [1, 8, 11, 0, 1e-3]).centred()):
        for n in SIZES:
            X = KINDS[kind](rng.normal(0, 2, (n, 5)) * 10.0 ** rng.integers(-3, 3, (n, 5)))
            groups = rng.integers(0, 3, n)
            found = pack(X, domain, groups, layout="dense", n_threads=n_threads)
            expected = packing._pack_dense(X, domain, groups, False)
            assert np.array_equal(found.panels, expected.panels)
            assert found.runs == expected.runs
            alone = pack(X, domain, layout="dense", uniform=True, n_threads=n_threads)
            assert np.array_equal(
                alone.panels, packing._pack_dense(X, domain, 0 * groups, True).panels
            )


def plain_schema(d: int) -> Schema:
    """Columns of numbers, some of which have something to put for missing ones."""
    return Schema({f"x{i}": Numeric(-1 - i, 2, fill=i % 2 or None) for i in range(d)})


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_columns_on_the_grid_are_packed_as_rows_of_them_are(d, n_threads, rng):
    for n in SIZES:
        X = plain_schema(d).read(rng.normal(0, 2, (n, d)))
        groups = rng.choice([0, 2], n)
        for some in (groups, 0 * groups):
            found = packing._pack_columns(X, some, n_threads)
            expected = packing._pack_dense(X, plain_schema(d), some, False)
            assert np.array_equal(found.panels, expected.panels)
            assert found.runs == expected.runs


@pytest.mark.parametrize("d", [1, 5])
def test_tables_that_are_joined_are_the_table_of_all_records(d, rng):
    sizes = [*SIZES, 1, 2 * PANEL_ROWS]
    tables = [rng.normal(0, 2, (n, d)) for n in sizes]
    groups = [rng.choice([0, 2], n) for n in sizes]
    domain = Box(-1, 1, d)
    found = packing.joined([pack(X, domain, some) for X, some in zip(tables, groups, strict=True)])
    whole = pack(np.concatenate(tables), domain, np.concatenate(groups))
    assert np.array_equal(found.panels, whole.panels)
    assert found.runs == whole.runs


def test_the_largest_numbers_are_clipped_and_none_beyond_is_taken(rng):
    largest = np.finfo(np.float64).max
    X = np.array([[largest, -largest, 5e-324], [0.5, 0.25, -0.0]])
    panels = pack(X, Box(-1e-90, 1, 3), layout="dense").panels
    assert np.array_equal(
        panels, packing._pack_dense(X, Box(-1e-90, 1, 3), np.zeros(2, int), False).panels
    )
    for odd in (np.nan, np.inf, -np.inf):
        for place in np.ndindex(40, 3):
            X = rng.uniform(-1, 1, (40, 3))
            X[place] = odd
            with pytest.raises(ValueError, match="X must be finite; replace NaN and infinity"):
                pack(X, Box(-1, 1, 3), layout="dense", n_threads=2)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_records_of_several_groups_lie_together(layout, rng):
    X, groups = rng.uniform(-1, 1, (100, 3)), rng.choice([0, 2, 5], 100)
    records = pack(X, Box(-1, 1, 3), groups, layout=layout)
    assert [(run.group, run.count) for run in records.runs] == [
        (group, (groups == group).sum()) for group in (0, 2, 5)
    ]
    rows = encoded(Box(-1, 1, 3), X)
    table = sparse_table(records) if layout == "sparse" else None
    for run in records.against(2).runs:
        found = dense_table(records, run) if table is None else table[run.first :][: run.count]
        assert np.array_equal(found, rows[groups == run.group])
        assert run.flip == (0 if run.group == 2 else -1)


def test_columns_hold_the_same_entries_as_rows(rng):
    domain = Box(-1, 1, 6)
    X = rng.uniform(-1, 1, (200, 6)) * (rng.random((200, 6)) < 0.4)
    X[rng.random((200, 6)) < 0.2] = 1
    records = pack(X, domain, labels(rng, 200), layout="sparse")
    columns, table = records.by_column, sparse_table(records)
    full = np.column_stack([table, np.full(200, 4096)])  # the intercept last
    for j in range(7):
        some = slice(columns.start[j], columns.start[j + 1])
        assert np.array_equal(columns.row[some], np.flatnonzero(full[:, j]))
        assert np.array_equal(columns.value[some], full[full[:, j] != 0, j])


@pytest.mark.parametrize("rows", [1, 16, 100, 1000])
def test_tiles_cover_every_record_once(rows):
    runs = (packing.Run(0, 250, 0), packing.Run(256, 33, -1))
    table = tiles(runs, rows)
    covered = [(r, flip) for first, count, flip in table for r in range(first, first + count)]
    expected = [(r, run.flip) for run in runs for r in range(run.first, run.first + run.count)]
    assert covered == expected
    assert table[:, 1].max() <= rows


def test_a_table_of_few_non_zeros_is_packed_sparse(rng):
    X = rng.uniform(0.1, 1, (100, 30))
    assert isinstance(pack(X, Box(0, 1, 30)), packing.DenseRecords)
    assert isinstance(pack(sp.csr_array(X), Box(0, 1, 30)), packing.DenseRecords)
    X[:, 9:] = 0
    assert isinstance(pack(X, Box(0, 1, 30)), packing.SparseRecords)
    assert isinstance(pack(sp.csr_array(X), Box(0, 1, 30)), packing.SparseRecords)


def test_the_callers_arrays_are_left_alone(rng):
    """Also a CSR matrix with unsorted, double and tiny entries, which packing must tidy."""
    data = np.array([0.1, 0.2, 0.3, 1e-9, 0.5])
    messy = sp.csr_array((data, np.array([3, 3, 1, 5, 0]), np.array([0, 3, 5])), shape=(2, 6))
    dense = rng.uniform(-2, 2, (40, 6))
    for X in (messy, dense, np.asfortranarray(dense), sp.csc_array(dense)):
        parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        before = [part.copy() for part in parts]
        y = np.arange(X.shape[0]) % 2
        for layout in ("dense", "sparse"):
            LinearObjective(X, y, "logistic", Box(-1, 1), layout=layout).scores(np.zeros((1, 7)))
        for part, kept in zip(parts, before, strict=True):
            assert np.array_equal(part, kept)
        assert y.tolist() == (np.arange(X.shape[0]) % 2).tolist()


def test_write_protected_sparse_arrays_are_accepted():
    messy = sp.csr_array(
        (np.array([0.25, 0.5, 0.125]), np.array([3, 3, 1]), np.array([0, 3])), shape=(1, 6)
    )
    for part in (messy.data, messy.indices, messy.indptr):
        part.setflags(write=False)
    objective = LinearObjective(messy, [1], "zero_one", Box(-1, 1), layout="sparse")
    P = np.zeros((2, 7))
    P[:, 3], P[:, -1] = 1.0, [-0.75, -0.74609375]
    assert objective.scores(P).tolist() == [-1, 0]


def test_records_do_not_follow_the_callers_array(rng):
    X, y = rng.uniform(-1, 1, (30, 3)), labels(rng, 30)
    P = Box(-1, 1, 3).candidates(4, rng)
    for layout in ("dense", "sparse"):
        objective = LinearObjective(X, y, "logistic", Box(-1, 1), layout=layout)
        before = objective.scores(P)
        kept = X.copy()
        X[:] = 0
        assert np.array_equal(objective.scores(P), before)
        X[:] = kept


@pytest.mark.parametrize("fill", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 30])
def test_packed_records_are_no_larger_than_the_float64_input(d, fill, rng):
    X = rng.uniform(-1, 1, (2000, d)) * (rng.random((2000, d)) < fill)
    records = pack(X, Box(-1, 1, d))
    arrays = [value for value in vars(records).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) <= X.nbytes


def test_a_memory_mapped_file_larger_than_a_chunk_is_streamed(tmp_path, rng):
    """Packing holds a chunk or two beside the packed records, never the whole table."""
    n, d = 50_000, 40  # 16 MB, four chunks
    X = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(n, d))
    for first in range(0, n, 5000):
        X[first : first + 5000] = rng.uniform(-1.1, 1.1, (5000, d))
    X.flush()
    X = np.memmap(tmp_path / "x", dtype=np.float64, mode="r", shape=(n, d))
    assert X.nbytes > 3 * packing.CHUNK_BYTES
    y = labels(rng, n)
    domain = Box(-1, 1, d)
    tracemalloc.start()
    objective = LinearObjective(X, y, "zero_one", domain)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4 + 2 * y.nbytes + 5 * packing.CHUNK_BYTES
    P = domain.candidates(3, rng)
    expected = LinearObjective(np.array(X), y, "zero_one", domain).scores(P)
    assert np.array_equal(objective.scores(P), expected)
    some = slice(24_000, 24_040)  # across a chunk's edge
    whole = reference.candidates(P, domain)
    margins = [
        [reference.margin(x, w, 12) for w in whole]
        for x in reference.records(np.array(X[some]), domain)
    ]
    errors = [sum((z[i] > 0) != t for z, t in zip(margins, y[some], strict=True)) for i in range(3)]
    part = LinearObjective(X[some], y[some], "zero_one", domain).scores(P)
    assert part.tolist() == [-e for e in errors]


def test_a_huge_number_of_a_wider_kind_is_refused_without_a_warning():
    """Warnings are errors here: one would tell of a record before the refusal does."""
    X = np.array([[np.longdouble("1e4000"), 0], [0, 1]])
    for table in (X, np.asfortranarray(X)):
        with pytest.raises(ValueError, match="X must be finite; replace NaN and infinity first"):
            LinearObjective(table, [0, 1], domain=Box(-1, 1))
    assert roc_curve([0, 1], X[:, 0], 1.0).auc >= 0


def test_codes_are_the_same_rows_dense_and_sparse(rng):
    columns = {"a": Numeric(-1, 1), "b": Categorical(["x", "y", "z"]), "c": Numeric(0, 9)}
    table = {"a": rng.uniform(-1, 1, 50), "b": rng.choice(["x", "y", "z"], 50),
             "c": rng.integers(0, 9, 50)}  # fmt: skip
    for names in (["a", "b", "c"], ["b"], ["c", "a"]):
        codes = Schema({name: columns[name] for name in names}).read(
            {name: table[name] for name in names}
        )
        assert (codes.dense(7) == codes.csr(7).toarray()).all()
        assert codes.dense(7).dtype == np.int16
