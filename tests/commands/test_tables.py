"""Tables: what is read is what the file says, and what is refused names no value."""

from __future__ import annotations

import csv
import gzip
import io
import tracemalloc
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from privfit import Categorical, Numeric, Schema
from privfit.base.errors import InputError
from privfit.commands import files
from privfit.commands.files import CsvForm
from privfit.commands.tables import Target, read_table

SCHEMA = Schema({"age": Numeric(0, 120), "sex": Categorical(["f", "m"])})
TARGET = Target("rich", (False, True))
ROWS = [("age", "sex", "note", "rich")] + [
    (str(20 + i % 50), "fm"[i % 2], f"note {i}", ["false", "True"][i % 3 == 0]) for i in range(100)
]


def text_of(rows, delimiter=",", **options) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n", **options).writerows(rows)
    return text.getvalue()


@pytest.fixture
def write(tmp_path):
    def make(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return make


def check_people(table):
    assert len(table) == 100
    np.testing.assert_array_equal(table.columns["age"], 20 + np.arange(100) % 50)
    assert np.asarray(table.columns["sex"]).tolist() == ["f", "m"] * 50
    np.testing.assert_array_equal(table.y, np.arange(100) % 3 == 0)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_seen_from_the_first_line(write, delimiter):
    check_people(read_table(write(text_of(ROWS, delimiter)), SCHEMA, TARGET))


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text.encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("age,sex", " age , sex").replace("\n4", "\n \t4").encode(),
        lambda text: text.replace("note", "m\u00fcde").encode(),
        lambda text: text.replace("note ", "m\u00fcde ").encode("latin-1"),
        lambda text: text.replace("note 5,", '"note, ""5""",').encode(),
        lambda text: text.replace("note 5,", 'no"te 5,').encode(),
        lambda text: text.replace("note 5", "a\0b").encode(),
        lambda text: text.replace("note 5,", f"{'x' * 10**6},").encode(),
        lambda text: text.replace("\n", ",1,2,3\n").encode(),
        lambda text: text.rstrip("\n").encode(),
    ],
    ids=["plain", "gzip", "mark", "dos", "spaces", "umlaut", "latin-1", "quotes", "stray quote",
         "zero byte", "long field", "extra fields", "no last line end"],
)  # fmt: skip
def test_spellings_of_one_table_read_alike(write, form):
    check_people(read_table(write(form(text_of(ROWS))), SCHEMA, TARGET))


def test_a_delimiter_may_be_given(write):
    check_people(read_table(write(text_of(ROWS, "!")), SCHEMA, TARGET, CsvForm("!")))


def test_line_breaks_in_cells_are_declared(write):
    path = write(text_of(ROWS).replace("note 5,", '"note, ""5""\nand more",'))
    check_people(read_table(path, SCHEMA, TARGET, CsvForm(line_breaks=True)))
    with pytest.raises(InputError, match="column 'age' has missing values, or values that are not"):
        read_table(path, SCHEMA, TARGET)


def test_an_empty_line_is_a_record_of_missing_cells(write):
    """To skip it would shift the records behind it: a split by position would change for all."""
    schema = Schema({"age": Numeric(0, 120, fill=0), "sex": Categorical(["f", "m"], other=True)})
    found = read_table(write("sex,age\nf,1\n\nm\n"), schema).columns
    np.testing.assert_array_equal(found["age"], [1, np.nan, np.nan])
    assert np.asarray(found["sex"]).tolist() == ["f", None, "m"]


@pytest.mark.parametrize("block", [1, 7, 99, 1000])
def test_chunks_do_not_matter(write, monkeypatch, block):
    monkeypatch.setattr(files, "BLOCK", block)
    check_people(read_table(write(text_of(ROWS)), SCHEMA, TARGET))


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_threads_do_not_matter(write, monkeypatch, n_threads):
    monkeypatch.setattr(files, "BLOCK", 999)
    schema = Schema({"age": Numeric(0, 120, fill=1), "note": Categorical(["note 7"], other=True)})
    rows = [*ROWS[:1], *ROWS[1:] * 30, ("x", "", "", "true")]
    table = read_table(write(text_of(rows)), schema, TARGET, n_threads=n_threads)
    ages = np.append(np.tile(20 + np.arange(100) % 50, 30), np.nan)
    np.testing.assert_array_equal(table.columns["age"], ages)
    notes = [None if i % 100 != 7 else "note 7" for i in range(3001)]
    assert np.asarray(table.columns["note"]).tolist() == notes
    assert (table.columns["age"].dtype, table.columns["note"].codes.dtype) == (np.float32, np.int8)
    with pytest.raises(InputError, match="column 'age' has missing values, or values"):
        read_table(write(text_of(rows)), SCHEMA, TARGET, n_threads=n_threads)


@pytest.mark.parametrize("packed", [False, True])
def test_progress_is_told_in_hundredths_of_the_file(write, monkeypatch, packed):
    text, told = text_of([*ROWS[:1], *ROWS[1:] * 500]), []
    monkeypatch.setattr(files, "BLOCK", 1 << 13)
    path = write(gzip.compress(text.encode()) if packed else text)
    table = read_table(path, SCHEMA, TARGET, told=lambda *now: told.append(now))
    assert len(table) == 50_000
    done = [now for now, total in told if total == 100]
    assert done == sorted(set(done))
    assert done[-1] == 100
    assert len(done) == len(told) > (0 if packed else 50)


def test_parquet_reads_like_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = dict(zip(ROWS[0], zip(*ROWS[1:], strict=True), strict=True))
    columns["age"] = [int(age) for age in columns["age"]]
    columns["rich"] = [label == "True" for label in columns["rich"]]
    path = tmp_path / "people.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=30)
    check_people(read_table(str(path), SCHEMA, TARGET))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="is a damaged Parquet file; create it again"):
        read_table(str(damaged), SCHEMA, TARGET)


def test_parquet_has_missing_values_and_numbers_as_categories(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "codes.parquet"
    parquet.write_table(pyarrow.table({"a": [1, None, 2], "b": [2.0, 1.0, None]}), path)
    schema = Schema({"a": Numeric(0, 9, fill=0.0), "b": Categorical([1, 2], other=True)})
    table = read_table(str(path), schema)
    np.testing.assert_array_equal(table.columns["a"], [1, np.nan, 2])
    assert np.asarray(table.columns["b"]).tolist() == [2, 1, None]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([Decimal("0.5"), None], [0.5, np.nan]),
        ([True, None], [1.0, np.nan]),
        (["0.5", None], [0.5, np.nan]),
        ([date(2020, 1, 1), None], [np.nan, np.nan]),
        ([[0.5], None], [np.nan, np.nan]),
    ],
)
def test_parquet_has_numbers_of_many_kinds(tmp_path, values, found):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "kinds.parquet"
    parquet.write_table(pyarrow.table({"a": values}), path)
    table = read_table(str(path), Schema({"a": Numeric(0, 9, fill=0.0)}))
    np.testing.assert_array_equal(table.columns["a"], found)
    with pytest.raises(InputError, match="column 'a' has missing values, or values that are not"):
        read_table(str(path), Schema({"a": Numeric(0, 9)}))


def test_lists_in_a_cell_are_no_category(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "lists.parquet"
    parquet.write_table(pyarrow.table({"a": [["x"], ["y"]]}), path)
    with pytest.raises(InputError, match="column 'a' has values that are not declared"):
        read_table(str(path), Schema({"a": Categorical(["x", "y"])}))


def test_without_pyarrow_the_remedy_is_named(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r'run pip install ".*\[parquet\]", or pass a CSV'):
        read_table(write(b"PAR1 and more"), SCHEMA)


def test_missing_and_unknown_values_are_taken_as_declared(write):
    path = write("a,b\n,x\n?, y \nNaN,\n1e400,?\n-2.5,z\n99,y\n99.0,y\n01,y\n")
    levels = Categorical(["x", "y", "?"], other=True)
    schema = Schema({"a": Numeric(0, 1, fill=0.5), "b": levels}, missing=("?", "99", "01"))
    table, gone = read_table(path, schema), np.nan
    np.testing.assert_array_equal(
        table.columns["a"], [gone, gone, gone, np.inf, -2.5, gone, gone, gone]
    )
    assert np.asarray(table.columns["b"]).tolist() == ["x", None, None, "?", None, "y", "y", "y"]
    encoded = schema.encode(table.columns).toarray() / 2.0**schema.grid.a
    np.testing.assert_array_equal(encoded[:, 0], [0.5, 0.5, 0.5, 1, 0, 0.5, 0.5, 0.5])
    np.testing.assert_array_equal(encoded[:, 1:].argmax(axis=1), [0, 3, 3, 2, 3, 1, 1, 1])


def test_numbers_and_flags_are_categories_by_value(write):
    path = write("a,b\n1,TRUE\n1.0,false\n01,true\n2,False\n")
    schema = Schema({"a": Categorical([1, 2.0], other=True), "b": Categorical([True, False])})
    table = read_table(path, schema)
    assert np.asarray(table.columns["a"]).tolist() == [1, 1, None, 2.0]  # 01 is a text
    assert np.asarray(table.columns["b"]).tolist() == [True, False, True, False]


@pytest.mark.slow
def test_many_categories_have_room(write):
    names = [f"level {i}" for i in range(40_000)]
    path = write(text_of([("a",), *((name,) for name in names)]))
    column = read_table(path, Schema({"a": Categorical(names)})).columns["a"]
    assert np.asarray(column).tolist() == names


SECRET = "Zyxw"
NO_COLUMN = "has none of the columns of the schema; its first line must name them, or pass --no"
NO_NUMBERS = "column 'age' has missing values, or values that are not numbers; .*fill = "
REFUSED = {
    "a number": (f"age,sex\n1,f\n{SECRET},m\n", NO_NUMBERS),
    "thousands": ('age,sex\n"1,234",m\n', "without thousands separators or units"),
    "no number": ("age,sex\n1,f\n,m\n", NO_NUMBERS),
    "a category": (f"age,sex\n1,{SECRET}\n", "column 'sex' has values that are not declared; add"),
    "no category": ("age,sex\n1,\n", "column 'sex' has values that are not declared; add them"),
    "no header": (f"1,{SECRET}\n2,m\n", NO_COLUMN),
    "another delimiter": (f"age!sex\n1!{SECRET}\n", f"{NO_COLUMN}.*--delimiter"),
    "an empty file": ("", "is empty; pass a CSV file that begins with column names"),
    "an empty line": (f"\n{SECRET}\n", "must have a header line"),
    "a header alone": ("age,sex\n", "has no records below its header; pass a table with records"),
    "a short row": (f"age,sex\n1,f\n{SECRET}\n", NO_NUMBERS),
    "columns twice": (f"age,sex,age\n1,f,{SECRET}\n", "has column 'age' more than once; rename"),
    "an open quote": (f'age,sex\n1,"{SECRET}\n2,m\n', "column 'sex' has values that are not"),
    "zero bytes": (
        f"age,sex\0\n1,{SECRET}\n",
        "contains zero bytes, so it is not a text file; save it as CSV",
    ),
    "latin-1": ("age,sex\xe9\n1,f\n".encode("latin-1"), "is not UTF-8 text; save the table"),
    "utf-16": (
        "age,sex\n1,f\n".encode("utf-16"),
        "is UTF-16 text; pass --encoding utf-16, or",
    ),
    "a spreadsheet": (b"PK\x03\x04junk", "is a zip archive, but no spreadsheet; save it as .xlsx"),
    "junk": (bytes(range(128, 256)) * 40, "is not UTF-8 text"),
    "half a gzip": (gzip.compress(text_of(ROWS).encode())[:-20], "truncated or damaged gzip file"),
    "a wrong gzip": (b"\x1f\x8b" + bytes(40), "truncated or damaged gzip file; copy"),
    "a broken gzip": (
        gzip.compress(text_of(ROWS).encode())[:60] + bytes(80),
        "truncated or damaged gzip file; copy or compress it again",
    ),
    "a long field": (
        f"age,sex\n1,{'x' * 10**6}\n",
        "column 'sex' has values that are not declared",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_table_is_refused_without_its_values(write, what):
    content, sentence = REFUSED[what]
    with pytest.raises(InputError, match=sentence) as refused:
        read_table(write(content), SCHEMA)
    assert SECRET not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_label_outside_the_classes_is_refused(write):
    path = write(f"age,sex,rich\n1,f,{SECRET}\n")
    with pytest.raises(InputError, match=r"column 'rich' .* not declared; declare all classes"):
        read_table(path, SCHEMA, TARGET)


def test_labels_are_asked_for_by_a_target(write):
    with pytest.raises(InputError, match="the table has no labels; pass --target"):
        read_table(write(text_of(ROWS)), SCHEMA).y  # noqa: B018


def test_memory_stays_near_the_compact_table(write):
    n = 60_000
    rows = [ROWS[0], *ROWS[1:] * (n // 100)]
    path = write(gzip.compress(text_of(rows).encode(), 1))
    tracemalloc.start()
    table = read_table(path, SCHEMA, TARGET)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 12 bytes a record, 8 more while a column is joined, and the rest for texts and small arrays;
    # as texts the whole table would take 18 MB.
    assert peak < 20 * n + 1e6
    assert len(table) == n


# ------------------------------------------------------------------------------------------ folders


@pytest.fixture
def parts(tmp_path):
    """The same people in a folder for each sex, with files beside them that are no parts."""
    for sex in "fm":
        rows = [row for row in ROWS[1:] if row[1] == sex]
        for i in (0, 1):
            path = tmp_path / "people" / f"sex={sex}" / f"part-{i}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            some = [(age, note, rich) for age, _, note, rich in rows[25 * i : 25 * i + 25]]
            path.write_text(text_of([("age", "note", "rich"), *some]))
    empty = tmp_path / "people" / "sex=m" / "part-2.csv"
    empty.write_text("age,note,rich\n")
    (tmp_path / "people" / "_SUCCESS").touch()
    return tmp_path / "people"


def test_a_folder_is_read_as_its_files_together(parts, write):
    once = read_table(write(text_of([ROWS[0], *sorted(ROWS[1:], key=lambda row: row[1])])),
                      SCHEMA, TARGET)  # fmt: skip
    told: list[int] = []
    for path in (str(parts), f"{parts}/sex=*", f"{parts}/*/part-*.csv", f"file://{parts}"):
        table = read_table(path, SCHEMA, TARGET, told=lambda done, total: told.append(done))
        for name, column in table.columns.items():
            assert np.asarray(column).tolist() == np.asarray(once.columns[name]).tolist()
        assert table.y.tolist() == once.y.tolist()
    assert told == sorted(told[:5]) * 4
    assert told[4] == 100
    sexes = read_table(str(parts), Schema({"sex": Categorical(["f", "m"])}))
    assert np.asarray(sexes.columns["sex"]).tolist() == ["f"] * 50 + ["m"] * 50


def test_a_file_of_a_folder_that_lacks_a_column_is_named(parts):
    (parts / "sex=m" / "part-1.csv").write_text("note,rich\nx,true\n")
    with pytest.raises(InputError, match=r"sex=m/part-1\.csv' has no column 'age'"):
        read_table(str(parts), SCHEMA, TARGET)


def test_a_folder_without_records_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("age,sex\n")
    (tmp_path / "y.csv").write_text("age,sex\n")
    with pytest.raises(InputError, match="has no records below its header; pass a table with rec"):
        read_table(str(tmp_path), SCHEMA)


def test_a_page_of_parquet_that_was_damaged_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, ages = tmp_path / "x.parquet", np.linspace(0, 100, 3000)
    parquet.write_table(pyarrow.table({"age": ages}), path, compression="none",
                        use_dictionary=False, write_page_checksum=True)  # fmt: skip
    schema = Schema({"age": Numeric(0, 120)})
    assert len(read_table(str(path), schema)) == 3000
    raw = bytearray(path.read_bytes())
    raw[raw.index(ages[1000].tobytes())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(InputError, match="is a damaged Parquet file; create it again"):
        read_table(str(path), schema)
