"""Kinds of columns, from the types that containers declare: no cell changes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from privfit import (
    Categorical,
    Ledger,
    LogisticRegression,
    Numeric,
    Schema,
    Stream,
    learn_schema,
)
from privfit.domains.kinds import kinds_of

NUMBER = {"x": "number"}
CATEGORY = {"x": "category"}
BOOLEAN = {"x": "boolean"}


@pytest.mark.parametrize("dtype", [
    "float64", "float32", "int8", "uint64", "Int64", "Float32", "double[pyarrow]",
    "int8[pyarrow]", "Sparse[float]",
])  # fmt: skip
def test_numbers_of_pandas(dtype):
    assert kinds_of(pd.DataFrame({"x": pd.Series([1, 0], dtype=dtype)})) == NUMBER


@pytest.mark.parametrize("dtype", [
    "object", "category", "string", "string[python]", "string[pyarrow]",
])  # fmt: skip
def test_categories_of_pandas(dtype):
    assert kinds_of(pd.DataFrame({"x": pd.Series(["1", "0"], dtype=dtype)})) == CATEGORY
    empty = pd.DataFrame({"x": pd.Series([], dtype=dtype)})
    assert kinds_of(empty) == CATEGORY


def test_kinds_of_other_containers():
    import polars
    import pyarrow

    both = {"a": "number", "b": "category"}
    table = {"a": np.array([1.5, 2]), "b": np.array(["u", "v"])}
    assert kinds_of(table) == both
    assert kinds_of(np.array([(1, "u")], dtype=[("a", "i4"), ("b", "U3")])) == both
    arrow = pyarrow.table({"a": [1, 2], "b": ["u", "v"]})
    assert kinds_of(arrow) == kinds_of(arrow.to_batches()[0]) == both
    coded = arrow.set_column(1, "b", arrow["b"].dictionary_encode())
    assert kinds_of(coded) == both
    assert kinds_of(polars.DataFrame({"a": [1, 2], "b": ["u", "v"]})) == both
    listed = polars.DataFrame({"a": [1], "b": ["u"]}, schema_overrides={"b": polars.Categorical})
    assert kinds_of(listed) == both
    assert kinds_of(np.zeros((4, 2), dtype=np.float32)) == {"x0": "number", "x1": "number"}


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]", "Sparse[bool]"])
def test_booleans_of_pandas(dtype):
    assert kinds_of(pd.DataFrame({"x": pd.Series([True, False], dtype=dtype)})) == BOOLEAN


def test_booleans_of_other_containers(tmp_path):
    import polars
    import pyarrow

    cells = np.array([True, False])
    assert kinds_of({"x": cells}) == BOOLEAN
    assert kinds_of(np.array([(True,)], dtype=[("x", "?")])) == BOOLEAN
    assert kinds_of(np.zeros((4, 1), dtype=np.bool_)) == {"x0": "boolean"}
    for listed in ([True, False], [True, None]):
        assert kinds_of(pyarrow.table({"x": listed})) == BOOLEAN
        assert kinds_of(polars.DataFrame({"x": listed})) == BOOLEAN
    pd.DataFrame({"x": cells}).to_parquet(tmp_path / "one.parquet")
    assert Stream(tmp_path / "one.parquet").kinds() == BOOLEAN


def test_booleans_have_two_names_and_nothing_is_bought_of_them():
    schema = Schema.blank({"x": "boolean", "y": "number"})
    assert schema.columns["x"] == Categorical([False, True], other=True)
    assert schema.blanks == ["y"]
    codes = Schema({"x": schema.columns["x"]}).encode({"x": [True, None, False, "true", 2]})
    assert codes.toarray().argmax(axis=1).tolist() == [1, 2, 0, 1, 2]


def test_kinds_of_dask_collections_are_those_of_their_declared_types():
    array = pytest.importorskip("dask.array")
    frame = pytest.importorskip("dask.dataframe")
    assert kinds_of(array.zeros((6, 2), chunks=(3, 1))) == {"x0": "number", "x1": "number"}
    table = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["u", "v"])})
    there = frame.from_pandas(table, npartitions=2)
    assert kinds_of(there) == {"a": "number", "b": "category"}


def test_kinds_of_streams(tmp_path):
    table = pd.DataFrame({"a": [1.5, 2], "b": ["u", "v"], "late": [0, 1]})
    for name in ("one", "two"):
        table.to_parquet(tmp_path / f"{name}.parquet")
    both = {"a": "number", "b": "category"}
    assert Stream(tmp_path).kinds("late") == both
    assert Stream(tmp_path / "one.parquet", columns=["b"]).kinds("late") == {"b": "category"}
    assert Stream(np.zeros((3, 2))).kinds() == {"x0": "number", "x1": "number"}
    assert Stream(np.zeros((3, 2))).kinds(np.zeros(3)) == {"x0": "number", "x1": "number"}


CELL = st.none() | st.floats() | st.text(max_size=5) | st.booleans() | st.integers()


@given(st.lists(CELL, min_size=1, max_size=5), CELL)
def test_no_cell_changes_a_kind_but_through_the_type_that_its_container_declares(cells, odd):
    """Objects stay categories, whatever they are; where a reader makes another type, it counts."""
    for column in (cells, [*cells, odd]):
        frame = pd.DataFrame({"x": pd.Series(column, dtype=object)})
        assert kinds_of(frame) == CATEGORY
        inferred = pd.DataFrame({"x": column})
        kind = inferred["x"].dtype.kind
        assert kinds_of(inferred) == (
            BOOLEAN if kind == "b" else NUMBER if kind in "iuf" else CATEGORY
        )


@pytest.mark.parametrize("X", [
    {"x": [1.0, 2.0]}, [[1.0], [2.0]], {"x": [0.5], "y": np.zeros(1)}, np.array([["a"]]),
    np.array([[1.0]], dtype=object), np.zeros(3), scipy.sparse.csr_array(np.eye(2)),
    np.zeros((2, 2), dtype=complex),
], ids=["lists", "rows", "mixed", "texts", "objects", "vector", "sparse", "complex"])  # fmt: skip
def test_containers_without_types_are_refused(X):
    with pytest.raises(TypeError, match=r"domain='learn'; (pass a DataFrame|pass numbers)"):
        kinds_of(X)


@pytest.mark.parametrize(("table", "message"), [
    (pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), r"column 'x' \(of the type datetime64"),
    (pd.DataFrame({"x": [1 + 2j]}), r"column 'x' \(of the type complex128\) must be of numbers"),
    (pd.DataFrame({0: [1.0]}), "columns with different names that are texts"),
    (pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), "columns with different names that are texts"),
])  # fmt: skip
def test_columns_of_other_types_are_refused(table, message):
    with pytest.raises(TypeError, match=message):
        kinds_of(table)


DAYS = pd.date_range("2020-01-01", periods=4)


def moments():
    """Columns that declare dates, times or durations, by the library that does."""
    import polars
    import pyarrow

    series = pd.Series(DAYS)
    return {
        "numpy": DAYS.to_numpy(), "numpy durations": (DAYS - DAYS[0]).to_numpy(), "pandas": series,
        "zone": series.dt.tz_localize("UTC"), "durations": series - series[0],
        "periods": series.dt.to_period("D"), "arrow in pandas": series.astype(
            "timestamp[ns][pyarrow]"
        ),
        "arrow": pyarrow.array(DAYS), "arrow dates": pyarrow.array(DAYS.date),
        "arrow times": pyarrow.array(DAYS.time), "polars": polars.Series(DAYS),
        "polars dates": polars.Series(DAYS.date.tolist()),
        "polars durations": polars.Series(DAYS - DAYS[0]),
    }  # fmt: skip


@pytest.mark.parametrize("name", moments())
@pytest.mark.parametrize("column", [
    Numeric(0, 9, fill=0), Numeric(0, 9, bins=3, fill=0), Numeric(bins="auto"), Numeric(),
], ids=["range", "bins", "cuts", "blank"])  # fmt: skip
def test_dates_are_refused_where_numbers_are_declared_before_the_charge(name, column):
    ledger = Ledger(1.0, 1e-6)
    table = {"x": moments()[name]}
    message = r"column 'x' \(of the type .*\) must be of numbers, .* has no unit; pass a number"
    with pytest.raises(TypeError, match=message):
        LogisticRegression(
            1.0, 1e-6, domain=Schema({"x": column}), classes=[0, 1], ledger=ledger
        ).fit(table, [0, 1, 0, 1])
    schema = Schema({"x": column})
    with pytest.raises(TypeError, match=message):
        learn_schema(table, 1.0, columns=schema, ledger=ledger) if column.is_blank else (
            schema.encode(table)
        )
    assert ledger.spent.epsilon == 0


def test_dates_of_files_are_refused_before_the_charge(tmp_path):
    pd.DataFrame({"x": DAYS, "late": [0, 1, 0, 1]}).to_parquet(tmp_path / "one.parquet")
    ledger = Ledger(1.0, 1e-6)
    for column in (Numeric(0, 9, fill=0), Numeric(bins="auto")):
        model = LogisticRegression(
            1.0, 1e-6, domain=Schema({"x": column}), classes=[0, 1], ledger=ledger
        )
        with pytest.raises(TypeError, match="must be of numbers, and a date or a duration has no"):
            model.fit(Stream(tmp_path / "one.parquet"), "late")
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("odd", [DAYS[0], DAYS[0].to_pydatetime(), np.datetime64("2020-01-01"),
                                 DAYS[1] - DAYS[0], "2020-01-01"])  # fmt: skip
def test_one_date_among_cells_without_a_type_refuses_nothing(odd):
    """It is read by itself, as a missing value, and no other row changes."""
    schema = Schema({"x": Numeric(0, 9, bins=3, missing=True)})
    plain = [1.0, 5.0, 8.0]
    for table in ({"x": [*plain, odd]}, pd.DataFrame({"x": pd.Series([*plain, odd], dtype=object)}),
                  {"x": [odd] * 4}):  # fmt: skip
        codes = schema.encode(table).toarray().argmax(axis=1).tolist()
        assert codes[3] == 3
        assert codes[:3] == ([0, 1, 2] if isinstance(table["x"][0], float) else [3, 3, 3])


def test_a_category_takes_dates():
    schema = Schema({"x": Categorical(["2020-01-01"], other=True)})
    assert schema.encode({"x": DAYS.to_numpy()}).toarray().argmax(axis=1).tolist() == [0, 1, 1, 1]


def test_files_without_types_or_of_different_kinds_are_refused(tmp_path):
    table = pd.DataFrame({"x": [1, 2]})
    table.to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(TypeError, match=r"column 'x' \(of no declared type\) must be of numbers"):
        Stream(tmp_path / "one.csv").kinds()
    folder = tmp_path / "files"
    folder.mkdir()
    table.to_parquet(folder / "a.parquet")
    table.astype(str).to_parquet(folder / "b.parquet")
    with pytest.raises(ValueError, match="source must have files whose columns are of the same"):
        Stream(folder).kinds()
