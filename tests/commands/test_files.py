"""One table in files of many kinds reads alike, and what is wrong is said once, without values."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import os
import re
import sqlite3
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from privfit import Categorical, Numeric, Schema
from privfit.__main__ import command
from privfit.base import extras
from privfit.base.errors import InputError
from privfit.base.signals import Stopped
from privfit.commands import files
from privfit.commands.files import CsvForm
from privfit.commands.main import main
from privfit.commands.tables import Target, read_table

SCHEMA = Schema({"pay": Numeric(0, 100), "sex": Categorical(["f", "müde"])})
TARGET = Target("rich", (False, True))
PAY = 20 + np.arange(100) % 50 + 0.5
SEX = ["f", "müde"] * 50
RICH = np.arange(100) % 3 == 0


def text(decimal: str = ".", delimiter: str = ",", header: str = "pay,sex,rich\n") -> str:
    lines = (f"{pay}".replace(".", decimal) + f",{sex},{rich}".replace(",", delimiter)
             for pay, sex, rich in zip(PAY, SEX, RICH, strict=True))  # fmt: skip
    return header.replace(",", delimiter) + "\n".join(lines) + "\n"


def check_people(table, names=("pay", "sex")):
    np.testing.assert_array_equal(table.columns[names[0]], PAY)
    assert np.asarray(table.columns[names[1]]).tolist() == SEX
    np.testing.assert_array_equal(table.y, RICH)


def arrow_table():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({"pay": PAY, "sex": SEX, "rich": RICH})


def in_arrow() -> bytes:
    from pyarrow import feather

    content = io.BytesIO()
    feather.write_feather(arrow_table(), content, chunksize=30)
    return content.getvalue()


def in_zstd() -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.compress(text().encode(), codec="zstd", asbytes=True)


def in_sheet() -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["pay", "sex", "rich"])
    for row in zip(PAY.tolist(), SEX, RICH.tolist(), strict=True):
        book.active.append(row)
    book.save(content)
    return content.getvalue()


KINDS = {
    "bzip2": (lambda: bz2.compress(text().encode()), CsvForm()),
    "xz": (lambda: lzma.compress(text().encode()), CsvForm()),
    "zstd": (in_zstd, CsvForm()),
    "arrow": (in_arrow, CsvForm()),
    "spreadsheet": (in_sheet, CsvForm()),
    "latin-1": (lambda: text().encode("latin-1"), CsvForm(encoding="iso8859-1")),
    "utf-16": (lambda: text().encode("utf-16"), CsvForm(encoding="utf-16")),
    "utf-16 in bzip2": (
        lambda: bz2.compress(text().encode("utf-16")),
        CsvForm(encoding="utf-16"),
    ),
    "comma": (lambda: text(",", ";").encode(), CsvForm(decimal=",")),
    "comma and bar": (lambda: text(",", "|").encode(), CsvForm("|", decimal=",")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_table_reads_alike_from_files_of_many_kinds(tmp_path, kind):
    make, form = KINDS[kind]
    path = tmp_path / "people"
    path.write_bytes(make())
    check_people(read_table(str(path), SCHEMA, TARGET, form))


def test_a_row_of_a_spreadsheet_may_lack_its_last_cells(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in (["pay", "sex"], [1, "f"], [2], [3, "f"]):
        sheet.append(row)
    book.save(tmp_path / "people.xlsx")
    schema = Schema({"pay": Numeric(0, 9), "sex": Categorical(["f"], other=True)})
    table = read_table(str(tmp_path / "people.xlsx"), schema)
    assert np.asarray(table.columns["sex"]).tolist() == ["f", None, "f"]
    assert table.columns["pay"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["bzip2", "arrow", "comma"])
def test_standard_input_is_a_file(monkeypatch, kind):
    make, form = KINDS[kind]
    monkeypatch.setattr(sys, "stdin", Piped(make()))
    check_people(read_table("-", SCHEMA, TARGET, form))


class Piped:
    """A standard input that cannot be read again."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BufferedReader(OneWay(content))


class OneWay(io.RawIOBase):
    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, room) -> int:
        return self._content.readinto(room)


@pytest.mark.parametrize("cell", ["1.234,5", "1.234", "1,5 EUR"])
def test_a_point_is_no_decimal_mark_where_a_comma_is(tmp_path, cell):
    path = tmp_path / "people.csv"
    path.write_text(f"pay;sex\n1,5;f\n{cell};f\n")
    schema = Schema({"pay": Numeric(0, 100, fill=50), "sex": Categorical(["f", "m"])})
    pay = read_table(str(path), schema, None, CsvForm(decimal=",")).columns["pay"]
    assert pay[0] == 1.5
    assert np.isnan(pay[1])


def test_a_bad_byte_changes_its_own_cell_alone(tmp_path):
    path = tmp_path / "people.csv"
    lines = [b"pay,sex", b"1,f", b"2,\x81\x8d", b"3,f"]
    path.write_bytes(b"\n".join(lines))
    schema = Schema({"pay": Numeric(0, 100), "sex": Categorical(["f"], other=True)})
    table = read_table(str(path), schema, None, CsvForm(encoding="cp1252"))
    assert np.asarray(table.columns["sex"]).tolist() == ["f", None, "f"]
    assert table.columns["pay"].tolist() == [1, 2, 3]


def test_text_that_is_not_valid_in_a_wide_encoding_is_refused(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(text().encode("utf-16") + b"\x00")
    with pytest.raises(InputError, match="is not valid utf-16 text; pass its --encoding"):
        read_table(str(path), SCHEMA, TARGET, CsvForm(encoding="utf-16"))


@pytest.mark.parametrize("name", ["shift_jis", "iso2022_jp", "utf-7", "rot13", "cp037", "zyxw"])
def test_encodings_in_which_one_record_may_change_others_are_refused(name):
    with pytest.raises(InputError, match=rf"--encoding \('{name}'\) must be utf-8, .*; pass one"):
        files._encoding(name)


@pytest.mark.parametrize("name", ["latin-1", "cp1252", "koi8-r", "UTF8", "utf_16", "utf-8-sig"])
def test_encodings_that_read_each_record_by_itself_are_taken(name):
    assert files._encoding(name)


# ------------------------------------------------------------------------------------------ headers


def test_columns_without_a_header_are_numbered(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(text(header=""))
    schema = Schema({"column_1": SCHEMA.columns["pay"], "column_2": SCHEMA.columns["sex"]})
    table = read_table(str(path), schema, Target("column_3", (False, True)), CsvForm(header=False))
    check_people(table, ("column_1", "column_2"))


def test_the_first_record_does_not_say_how_many_columns_there_are(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("1\n2,f\n")
    schema = Schema({"column_1": Numeric(0, 9), "column_2": Categorical(["f"], other=True)})
    table = read_table(str(path), schema, None, CsvForm(header=False))
    assert np.asarray(table.columns["column_2"]).tolist() == [None, "f"]


def test_names_of_the_schema_must_be_numbers_without_a_header(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(text(header=""))
    with pytest.raises(InputError, match=r"column 'pay' must be called column_1, .*; rename it"):
        read_table(str(path), SCHEMA, None, CsvForm(header=False))


def test_a_header_of_numbers_is_a_header_if_a_flag_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("2019,2020,sex\n" + "1,2,f\n3,4,m\n" * 20)
    assert main(["schema", "people.csv"]) == 2
    assert "or pass --header or --no-header" in capsys.readouterr().err
    assert main(["schema", "people.csv", "--header"]) == 0
    assert "\n2019 = {low = 1" in capsys.readouterr().out
    assert main(["schema", "people.csv", "--no-header"]) == 0
    assert "column_3 = {" in capsys.readouterr().out


@pytest.mark.parametrize(
    "first", ["PAR1", "ARROW1", "PK\x03\x04", "SQLite format 3", "BZh9", "\xff\xfe"]
)
def test_a_first_record_does_not_decide_what_a_file_without_a_header_is(tmp_path, first):
    path, schema = tmp_path / "people.csv", Schema({"column_1": Categorical(["f"], other=True)})
    path.write_bytes(f"{first},1\nf,2\n".encode("latin-1"))
    form = CsvForm(header=False, encoding="latin-1")
    assert np.asarray(read_table(str(path), schema, None, form).columns["column_1"])[1] == "f"
    path.write_bytes("f\nf\n".encode("utf-16"))
    with pytest.raises(InputError, match="is UTF-16 text; pass --encoding utf-16"):
        read_table(str(path), schema, None, CsvForm(header=False))


# ---------------------------------------------------------------------------------------- databases


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as made:
        made.execute("create table people (pay real, sex text, rich integer)")
        made.executemany(
            "insert into people values (?, ?, ?)",
            zip(PAY.tolist(), SEX, RICH.tolist(), strict=True),
        )
    made.close()
    return str(path)


def test_a_query_of_sqlite_is_a_table(database):
    check_people(read_table(database, SCHEMA, TARGET, CsvForm(sql="select * from people")))


def test_a_text_of_sqlite_that_is_none_leaves_others_as_they_are(database):
    with sqlite3.connect(database) as made:
        made.execute("insert into people values (1, cast(x'ff41' as text), 0)")
    made.close()
    schema = Schema({"pay": Numeric(0, 100), "sex": Categorical(["f", "müde"], other=True)})
    table = read_table(database, schema, TARGET, CsvForm(sql="select * from people"))
    assert len(table) == 101
    check_people(table[:100])


def test_a_query_of_duckdb_is_a_table(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    people = arrow_table()
    with duckdb.connect(str(tmp_path / "people.duckdb")) as made:
        made.register("given", people)
        made.execute("create table people as select * from given")
    form = CsvForm(sql="select * from people")
    check_people(read_table(str(tmp_path / "people.duckdb"), SCHEMA, TARGET, form))


@pytest.mark.parametrize("query", ["delete from people", "select * from nobody", "drop", ""])
def test_a_query_that_asks_for_no_records_is_refused_and_changes_nothing(database, query):
    before = Path(database).read_bytes()
    with pytest.raises(InputError, match=r"--sql must be a query|has none of the columns"):
        read_table(database, SCHEMA, TARGET, CsvForm(sql=query))
    assert Path(database).read_bytes() == before


def test_a_query_needs_a_database(tmp_path):
    (tmp_path / "people.csv").write_text(text())
    with pytest.raises(
        InputError, match=r"--sql needs a SQLite or DuckDB file, which .*; leave it"
    ):
        read_table(str(tmp_path / "people.csv"), SCHEMA, TARGET, CsvForm(sql="select 1"))


def test_a_database_without_a_query_is_refused(database):
    with pytest.raises(InputError, match="is a database; pass a query: --sql 'select"):
        read_table(database, SCHEMA, TARGET)


# -------------------------------------------------------------------------------- what is not there


@pytest.mark.parametrize(
    ("module", "make", "form", "remedy"),
    [
        (
            "openpyxl",
            in_sheet,
            CsvForm(),
            r"need openpyxl; run pip install .*\[xlsx\]",
        ),
        ("pyarrow", in_arrow, CsvForm(), r"Arrow files need pyarrow; run pip .*\[parquet\]"),
        ("pyarrow", in_zstd, CsvForm(), r"zstd need pyarrow; run pip .*, or decompress"),
        ("duckdb", lambda: b"12345678DUCK1234", CsvForm(sql="x"), r"run pip install .*\[duckdb\]"),
    ],
    ids=["xlsx", "arrow", "zstd", "duckdb"],
)
def test_a_missing_package_is_named_with_its_remedy(
    tmp_path, monkeypatch, module, make, form, remedy
):
    path = tmp_path / "people"
    path.write_bytes(make())
    if make is in_zstd and sys.version_info >= (3, 14):
        remedy = None  # Python itself reads it
    monkeypatch.setitem(sys.modules, module, None)
    if remedy is None:
        check_people(read_table(str(path), SCHEMA, TARGET, form))
        return
    with pytest.raises(InputError, match=remedy):
        read_table(str(path), SCHEMA, TARGET, form)


@pytest.mark.parametrize(
    ("note", "command"),
    [
        ({}, 'pip install "privfit[plot]"'),
        ({"url": "file:///me/my%20clone", "dir_info": {}}, 'pip install "/me/my clone[plot]"'),
        ({"url": "https://a.b/c", "vcs_info": {"vcs": "git"}}, "privfit[plot] @ git+https://a.b/c"),
        ({"url": "file:///x/privfit.whl", "archive_info": {}}, "[plot] @ file:///x/privfit.whl"),
    ],
    ids=["index", "folder", "repository", "wheel"],
)  # fmt: skip
def test_hints_name_the_place_that_privfit_came_from(monkeypatch, note, command):
    monkeypatch.setattr(extras, "_origin", lambda: note)
    assert command in extras.install("plot")


def test_a_note_that_cannot_be_read_is_no_note(monkeypatch):
    class Broken:
        def read_text(self, name):
            return "{"

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Broken())
    assert extras.install("cli") == 'pip install "privfit[cli]"'


@pytest.mark.parametrize("damage", [bz2.compress, lzma.compress], ids=["bzip2", "xz"])
def test_half_a_compressed_file_is_refused(tmp_path, damage):
    path = tmp_path / "people"
    path.write_bytes(damage(text().encode())[:-40])
    with pytest.raises(InputError, match=r"is a truncated or damaged (gzip|compressed) file; copy"):
        read_table(str(path), SCHEMA, TARGET)


def test_a_cell_of_a_spreadsheet_that_cannot_be_read_is_not_quoted(tmp_path):
    path, name = tmp_path / "people.xlsx", "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(in_sheet())) as book, zipfile.ZipFile(path, "w") as made:
        for one in book.namelist():
            made.writestr(one, book.read(one).replace(b"<v>20.5</v>", b"<v>secret</v>"))
        assert b"<v>20.5</v>" in book.read(name)
    with pytest.raises(InputError, match=r"is a truncated or damaged \.xlsx file; copy") as refused:
        read_table(str(path), SCHEMA, TARGET)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_broken_arrow_file_is_refused(tmp_path):
    path = tmp_path / "people"
    path.write_bytes(in_arrow()[:-100])
    with pytest.raises(InputError, match="is a damaged Arrow file; create it again"):
        read_table(str(path), SCHEMA, TARGET)


# ------------------------------------------------------------------------------ all that is wrong


def test_all_wrong_columns_are_in_one_message(tmp_path):
    path = tmp_path / "people.csv"
    names = ["a", "b", "c", "d"]
    path.write_text("a,b,c,d\n" + "1,2,x,y\n" * 5 + "secret,2,x,y\n1,2,secret,y\n1,,x,secret\n")
    schema = Schema({"a": Numeric(0, 9), "b": Numeric(0, 9), "c": Categorical(["x"]),
                     "d": Categorical(["y"])})  # fmt: skip
    with pytest.raises(InputError) as refused:
        read_table(str(path), schema)
    message = str(refused.value)
    assert message.startswith(
        "columns 'a', 'b' have missing values, or values that are not numbers"
    )
    assert (
        "; columns 'c', 'd' have values that are not declared; add them to their lines" in message
    )
    assert "secret" not in message
    assert all(f"'{name}'" in message for name in names)


def test_columns_that_a_file_lacks_are_named_together_with_near_ones(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,hours,sex\n1,2,f\n")
    schema = Schema({"age": Numeric(0, 9), "huors": Numeric(0, 9), "gender": Categorical(["f"])})
    with pytest.raises(InputError) as refused:
        read_table(str(path), schema)
    assert "has no column 'huors' (did you mean 'hours'?) and no column 'gender'; its" in str(
        refused.value
    )


def test_a_first_line_that_may_be_a_record_is_never_quoted(tmp_path):
    path = tmp_path / "people.csv"
    many = Schema({f"age{i}": Numeric(0, 9) for i in range(20)})
    for line, sentence in (("agee,32", "has none of the columns"), ("agee,age1", "and 11 others")):
        path.write_text(f"{line}\n1,2\n")
        with pytest.raises(InputError, match=sentence) as refused:
            read_table(str(path), many)
        assert ("agee" in str(refused.value)) == ("age1" in line)


# --------------------------------------------------------------------------------------- commands

DECLARED = """\
[data]
label = "rich"
classes = ["no", "yes"]

[columns]
age = {low = 0, high = 100}
sex = {values = ["f", "m"]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    coins = np.random.default_rng(5)
    ages, sexes = coins.integers(20, 80, 3000), coins.choice(["f", "m"], 3000)
    lines = [f"p{i},{age},{sex},{'yes' if age > 50 else 'no'}"
             for i, (age, sex) in enumerate(zip(ages, sexes, strict=True))]  # fmt: skip
    Path("people.csv").write_text("\n".join(["who,age,sex,rich", *lines]) + "\n")
    Path("schema.toml").write_text(DECLARED)
    return tmp_path


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


FIT = ["fit", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "model.json"]


def test_predictions_keep_columns_that_are_asked_for(folder, run):
    assert run(*FIT)[0] == 0
    code, out, _ = run("predict", "model.json", "people.csv", "--id", "who", "--keep", "sex", "age")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "who,sex,age,prediction")
    given = Path("people.csv").read_text().splitlines()
    for line, record in zip(lines[1:], given[1:], strict=True):
        who, sex, age, label = line.split(",")
        assert [who, age, sex] == record.split(",")[:3]
        assert label in ("no", "yes")
    told = json.loads(run("predict", "model.json", "people.csv", "--id", "who", "--json")[1])
    assert told["kept"]["who"][:2] == ["p0", "p1"]
    assert told["predictions"] == [line.rpartition(",")[2] for line in lines[1:]]


def test_kept_columns_must_be_there(folder, run):
    assert run(*FIT)[0] == 0
    code, _, err = run("predict", "model.json", "people.csv", "--id", "whom")
    assert code == 2
    assert "has no column 'whom' (did you mean 'who'?)" in err


def test_a_typo_of_the_target_is_named(folder, run):
    code, _, err = run(*FIT, "--target", "rch")
    assert code == 2
    assert "--target ('rch') (did you mean 'rich'?) must have two or more" in err
    assert "did you mean 'rich'?" in run("schema", "people.csv", "--target", "ritch")[2]


def test_held_out_records_have_a_curve_for_a_share_that_is_said_before(folder, run):
    code, out, err = run(*FIT, "--holdout", "0.5", "--roc", "roc.png", "--delta", "1e-6")
    assert (code, err) == (0, "")
    said = "held-out records: epsilon 0.25 for their accuracy, 0.75 for their ROC curve"
    assert out.index(said) < out.index("model.json:")
    assert re.search(r"privately estimated: [01]\.\d+ \(95 % interval 0\.\d+ to [01]\.\d+\)", out)
    assert re.search(r"area under the private curve of 'yes' on held-out records: [01]\.\d+", out)
    assert re.search(r"^accuracy_score +test +0\.25 +0$", out, re.M)
    assert re.search(r"^roc_curve +test +0\.75 +1e-06$", out, re.M)
    assert re.search(r"^charged +all +1 +1e-06$", out, re.M)
    assert Path("roc.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--roc"], "--roc needs held-out records; pass --holdout 0.2"),
        (["--roc", "--holdout", "0.2", "--trusted-eval"], "is private, and --trusted-eval is not"),
        (["--roc", "--holdout", "0.2", "--classes", "no", "yes", "so"], "--roc is for two classes"),
        (["--roc", "people.csv", "--holdout", "0.2"], "must not be another input or output"),
        (["--decimal", ",", "--delimiter", ","], "cannot also be the delimiter; pass another one"),
        (["--encoding", "shift_jis"], "--encoding ('shift_jis') must be utf-8"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused_before_the_charge(folder, run, more, sentence):
    code, _, err = run(*FIT, *more)
    assert code == 2
    assert sentence in err
    assert not Path("model.json").exists()


def test_records_in_folders_are_not_split_by_position(folder, run):
    lines = Path("people.csv").read_text().splitlines()
    for i, year in enumerate(("year=2020", "year=2021")):
        Path("parts", year).mkdir(parents=True)
        Path("parts", year, "part.csv").write_text("\n".join([lines[0], *lines[1 + i :: 2]]) + "\n")
    fit = [FIT[0], "parts", *FIT[2:], "--holdout", "0.2"]
    code, _, err = run(*fit)
    assert code == 2
    assert "is part of it here, so that one that is replaced could shift others; pass" in err
    assert run(*fit, "--adjacency", "add_remove", "--n-public", "3000")[0] == 0


def test_rows_of_a_query_are_not_split_by_position(folder, run):
    lines = [line.split(",") for line in Path("people.csv").read_text().splitlines()]
    with sqlite3.connect("people.db") as made:
        made.execute(f"create table people ({','.join(lines[0])})")
        made.executemany("insert into people values (?, ?, ?, ?)", lines[1:])
    made.close()
    query = ["--sql", "select * from people order by age", "--holdout", "0.2"]
    fit = [FIT[0], "people.db", *FIT[2:], *query]
    code, _, err = run(*fit)
    assert code == 2
    assert "what a record contains may decide its row, so that one that is replaced could" in err
    assert run(*fit, "--adjacency", "add_remove", "--n-public", "3000")[0] == 0


ROC = ["roc", "model.json", "people.csv", "--target", "rich", "--epsilon", "1"]


def test_each_group_has_its_curve_for_the_price_of_one(folder, run):
    assert run(*FIT)[0] == 0
    code, out, err = run(*ROC, "--group", "sex", "--adjacency", "add_remove", "--plot", "r.png")
    assert (code, err) == (0, "")
    for group in ("f", "m"):
        assert f"area under the private curve of 'yes' where sex is {group!r}" in out
        assert re.search(rf"^roc_curve +sex={group} +1 +0$", out, re.M)
    assert re.search(r"^charged +all +1 +0$", out, re.M)
    assert Path("r.png").stat().st_size > 1000


@pytest.mark.parametrize("odd", ["", "other values"])
def test_groups_of_other_values_and_odd_names_have_curves(folder, run, odd):
    values = f'sex = {{values = ["f", "{odd}"], other = true}}'
    Path("schema.toml").write_text(DECLARED.replace('sex = {values = ["f", "m"]}', values))
    people = Path("people.csv").read_text()
    Path("people.csv").write_text(people.replace(",m,", f",{odd},", 300))
    assert run(*FIT)[0] == 0
    told = run(*ROC, "--group", "sex", "--adjacency", "add_remove", "--json", "--n-public", "3000")
    rest = "all other values" if odd else "other values"
    assert list(json.loads(told[1])["groups"]) == ["f", odd, rest]


def test_a_group_without_records_has_a_curve_too(folder, run):
    assert run(*FIT)[0] == 0
    women = [line for line in Path("people.csv").read_text().splitlines() if ",m," not in line]
    Path("people.csv").write_text("\n".join(women) + "\n")
    told = run(*ROC, "--group", "sex", "--adjacency", "add_remove", "--json", "--n-public", "3000")
    assert set(json.loads(told[1])["groups"]) == {"f", "m"}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--group", "sex"], "--group needs --adjacency add_remove: a record that is replaced"),
        (["--group", "sx"], "--group ('sx') (did you mean 'sex'?) must be a column of the model"),
        (["--group", "age"], "--group ('age') must be a column of the model with declared"),
        (["--group", "sex", "--adjacency", "add_remove", "--out", "x.json"], "takes one curve"),
    ],
)
def test_groups_must_be_disjoint_for_every_neighbour(folder, run, more, sentence):
    assert run(*FIT)[0] == 0
    code, _, err = run(*ROC, *more)
    assert code == 2
    assert sentence in err


def test_an_interrupt_while_modules_are_imported_is_quiet(monkeypatch, capsys):
    class Interrupted:
        def find_spec(self, name, path=None, target=None):
            if name == "privfit.commands.main":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "privfit.commands.main")
    monkeypatch.setattr("privfit.__main__.end_by_signals", lambda: None)  # of this very process
    assert command() == 130
    assert capsys.readouterr().err == "privfit: error: interrupted; nothing was spent\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_while_modules_are_imported_is_answered(fresh_python, name, code):
    done = fresh_python(
        "import os, signal, sys\n"
        f"signal.signal(signal.{name}, signal.SIG_DFL)  # despite nohup\n"
        "class Told:\n"
        "    def find_spec(self, module, path=None, target=None):\n"
        "        if module == 'privfit.commands.main':\n"
        f"            os.kill(os.getpid(), signal.{name})\n"
        "            sys.exit('a signal was not heard')\n"
        "sys.meta_path.insert(0, Told())\n"
        "from privfit.__main__ import command\n"
        "command()\n"
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"privfit: error: stopped by {name}; nothing was spent\n"


def test_a_signal_while_options_are_read_is_answered(monkeypatch, capsys):
    def told():
        raise Stopped(15)

    monkeypatch.setattr("privfit.commands.main._parser", told)
    assert main(["demo"]) == 143
    assert capsys.readouterr().err == "privfit: error: stopped by SIGTERM; nothing was spent\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_command_takes_over_from_the_handler_of_imports(fresh_python):
    done = fresh_python(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "from privfit.base.signals import Stopped, end_by_signals, stopped_by_signals\n"
        "end_by_signals()\n"
        "try:\n"
        "    with stopped_by_signals():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "except Stopped as error:\n"
        "    print(error.exit_code, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "143 True\n", "")
