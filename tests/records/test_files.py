"""The files of a source, as pipelines leave them: folders, partitions, wildcards, other systems."""

from __future__ import annotations

import gzip
import sys
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privfit import (
    Categorical,
    KMeans,
    Ledger,
    LogisticRegression,
    Numeric,
    RecordObjective,
    Schema,
    Stream,
)
from privfit.records.files import File, find_files

pyarrow = pytest.importorskip("pyarrow", reason='needs pip install "privfit[parquet]"')
from pyarrow import feather, parquet  # noqa: E402

SCHEMA = Schema({"a": Numeric(-1, 1), "year": Categorical([2020, 2021], other=True)})


def written(path: Path, a: Any = (0.5, 0.25), **more: Any) -> Path:
    """A Parquet file with a column of numbers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table({"a": list(a), **more}), path)
    return path


def cells(source: Any, name: str = "a", **settings: Any) -> list[Any]:
    """All cells of a column of a stream."""
    blocks = Stream(source, **settings)._source.blocks(None, 1 << 20)
    return [cell for columns, _ in blocks for cell in np.asarray(columns[name]).tolist()]


def coded(source: Any) -> Any:
    blocks = Stream(source)._source.blocks(None, 1 << 20)
    return np.concatenate([SCHEMA.encode(columns).toarray() for columns, _ in blocks])


# ------------------------------------------------------------------------------------------ folders


def test_what_is_no_part_of_a_table_is_ignored(tmp_path):
    written(tmp_path / "part-0.parquet", [0.1])
    written(tmp_path / "part-1.parquet", [0.2])
    for name in ("_SUCCESS", "_metadata", "_common_metadata", ".part-0.parquet.crc", "part-0.crc",
                 ".hidden.csv", ".DS_Store"):  # fmt: skip
        (tmp_path / name).write_text("not a table")
    written(tmp_path / "_temporary" / "0" / "part-9.parquet", [9.0])
    written(tmp_path / ".ipynb_checkpoints" / "part-9.parquet", [9.0])
    assert cells(tmp_path) == [0.1, 0.2]
    assert cells(f"{tmp_path}/*") == [0.1, 0.2]


def test_a_file_that_is_named_is_read_whatever_its_name(tmp_path):
    assert cells(written(tmp_path / "_part.parquet", [0.3])) == [0.3]


def test_a_folder_that_names_no_partition_is_not_passed_over(tmp_path):
    written(tmp_path / "part.parquet")
    written(tmp_path / "2020" / "part.parquet")
    message = r"source \('.*'\) has a folder '2020', which names no partition \(column=value\)"
    with pytest.raises(ValueError, match=message):
        Stream(tmp_path)
    assert len(cells(f"{tmp_path}/**/*.parquet")) == 4


def test_links_are_followed_but_not_in_circles(tmp_path):
    written(tmp_path / "elsewhere" / "part.parquet", [0.1])
    (tmp_path / "table").mkdir()
    for year in (2020, 2021):
        (tmp_path / "table" / f"year={year}").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "table" / "year=0").symlink_to(tmp_path / "table")
    assert cells(tmp_path / "table", "year") == ["2020", "2021"]


# --------------------------------------------------------------------------------------- partitions


@pytest.fixture
def partitioned(tmp_path):
    written(tmp_path / "year=2020" / "month=1" / "part.parquet", [0.1, 0.2])
    written(tmp_path / "year=2020" / "month=2" / "part.parquet", [0.3])
    written(tmp_path / "year=2021" / "month=1" / "part.parquet", [0.4])
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


def test_folders_name_columns_whose_cells_are_texts(partitioned):
    assert Stream(partitioned)._source._names == ["a", "year", "month"]
    assert cells(partitioned, "year") == ["2020", "2020", "2020", "2021"]
    assert cells(partitioned, "month") == ["1", "1", "2", "1"]
    assert cells(f"{partitioned}/year=*/month=1", "year") == ["2020", "2020", "2021"]
    assert cells(partitioned, "year", columns=["year"]) == ["2020", "2020", "2020", "2021"]


def test_names_of_folders_are_unquoted_and_a_missing_value_is_missing(tmp_path):
    written(tmp_path / "town=New%20York" / "x.parquet", [0.1])
    written(tmp_path / "town=__HIVE_DEFAULT_PARTITION__" / "x.parquet", [0.2])
    assert cells(tmp_path, "town") == ["New York", None]


def test_a_partition_is_part_of_its_records_alone(partitioned):
    """Moving the last record to another partition changes no other."""
    before = coded(partitioned)
    memory = SCHEMA.encode({"a": [0.1, 0.2, 0.3, 0.4], "year": [2020, 2020, 2020, 2021]})
    assert before.tobytes() == memory.toarray().tobytes()
    (partitioned / "year=2021").rename(partitioned / "year=x")
    after = coded(partitioned)
    assert after[:3].tobytes() == before[:3].tobytes()
    assert after[3].tolist() != before[3].tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "csv.gz"])
def test_a_fit_to_partitions_releases_what_memory_does(kind, tmp_path):
    rng = np.random.default_rng(5)
    a, year = rng.uniform(-1, 1, 300).round(3), np.repeat([2020, 2021, 2022], 100)
    late = np.where(a > 0, "yes", "no")
    for one in (2020, 2021, 2022):
        rows, path = year == one, tmp_path / f"year={one}" / f"part.{kind}"
        path.parent.mkdir()
        table = pyarrow.table({"a": a[rows], "late": late[rows]})
        text = "a,late\n" + "".join(f"{x},{y}\n" for x, y in zip(a[rows], late[rows], strict=True))
        if kind == "parquet":
            parquet.write_table(table, path)
        elif kind == "arrow":
            feather.write_feather(table, str(path), "uncompressed")
        else:
            path.write_bytes(gzip.compress(text.encode()) if kind == "csv.gz" else text.encode())
    model = LogisticRegression(1.0, 1e-6, domain=SCHEMA, classes=["no", "yes"], random_state=0)
    once = model.fit({"a": a, "year": year}, late).release_.to_json()
    assert model.fit(Stream(tmp_path), "late").release_.to_json() == once
    by_year = LogisticRegression(1.0, 1e-6, domain=Schema({"a": Numeric(-1, 1)}),
                                 classes=[2020, 2021, 2022], random_state=0)  # fmt: skip
    once = by_year.fit({"a": a}, year).release_.to_json()
    assert by_year.fit(Stream(tmp_path, columns=["a"]), "year").release_.to_json() == once


def test_partitions_are_categories_of_a_learned_schema_and_arrays_of_ones_own_score(partitioned):
    assert Stream(partitioned).kinds() == {"a": "number", "year": "category", "month": "category"}

    def score(block, P):
        return -np.abs((block["year"] == "2021").astype(float)[:, None] - P)

    here = RecordObjective({"year": np.array(["2020"] * 3 + ["2021"])}, score, low=-1.0, high=0.0)
    there = RecordObjective(Stream(partitioned), score, low=-1.0, high=0.0)
    P = np.array([0.0, 1.0])
    assert there.scores(P).tolist() == here.scores(P).tolist()


def test_numbers_may_be_partitions_of_a_box(partitioned):
    columns = ["a", "month"]
    model = KMeans(1, 1.0, domain=([-1, 0], [1, 12]), random_state=0)
    once = model.fit(np.array([[0.1, 1], [0.2, 1], [0.3, 2], [0.4, 1]])).release_.to_json()
    assert model.fit(Stream(partitioned, columns=columns)).release_.to_json() == once


def test_a_column_of_the_file_and_of_its_folder_is_refused_if_it_is_wanted(tmp_path):
    written(tmp_path / "year=2020" / "part.parquet", year=["2019", "2019"])
    with pytest.raises(ValueError, match=r"columns \(\['year'\]\) must each occur once"):
        Stream(tmp_path)
    assert cells(tmp_path, columns=["a"]) == [0.5, 0.25]


def test_a_column_that_a_later_file_lacks_is_named_with_it_before_anything_is_read(tmp_path):
    """The first file would be refused for its label, if it were read."""
    written(tmp_path / "1.parquet", late=["no", "s3cret"])
    written(tmp_path / "2.parquet", late=["no", "yes"])
    written(tmp_path / "3.parquet", late_=["no", "yes"])
    ledger, told = Ledger(1.0), []
    model = LogisticRegression(
        1.0, domain=Schema({"a": Numeric(-1, 1)}), classes=["no", "yes"], ledger=ledger
    )
    with pytest.raises(ValueError, match=r"source \('.*3\.parquet'\) must have the column 'late' "
                       r"exactly once, like its first file; rename its columns"):  # fmt: skip
        model.fit(Stream(tmp_path, columns=["a"], progress=told.append), "late")
    assert ledger.spent.epsilon == 0
    assert told == []


# ------------------------------------------------------------------------------ wildcards and lists


def test_wildcards_find_files_in_order(tmp_path):
    for i in (3, 1, 2):
        written(tmp_path / f"part-{i}.parquet", [i / 10])
    written(tmp_path / "other.parquet", [0.9])
    assert cells(f"{tmp_path}/part-*.parquet") == [0.1, 0.2, 0.3]
    assert cells(f"{tmp_path}/part-[12].parquet") == [0.1, 0.2]
    assert cells([f"{tmp_path}/part-?.parquet", tmp_path / "other.parquet"]) == [0.1, 0.2, 0.3, 0.9]
    message = (
        r"source \('.*/none-\*\.parquet'\) must hold at least one file; pass a folder that is "
    )
    with pytest.raises(ValueError, match=rf"{message}not empty, or a wildcard that finds one"):
        Stream(f"{tmp_path}/none-*.parquet")
    with pytest.raises(ValueError, match=r"none-\*\.parquet' and others\) must hold at least one"):
        Stream([f"{tmp_path}/none-*.parquet", f"{tmp_path}/no-*.csv"])


def test_a_name_with_brackets_is_the_file_that_has_it(tmp_path):
    assert cells(str(written(tmp_path / "part[1].parquet", [0.1]))) == [0.1]


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz"])
def test_files_with_tabs_are_read_with_the_declared_delimiter(ending, tmp_path):
    text = b"a\tb\n1,0\tx\n"
    path = tmp_path / f"x{ending}"
    path.write_bytes(gzip.compress(text) if ending == ".tsv.gz" else text)
    assert cells(path, delimiter="\t") == ["1,0"]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_delimiters_hold_for_all_files_of_a_folder(ending, tmp_path):
    for i in (1, 2):
        text = f"a;b\n{i},0;x\n".encode()
        packed = gzip.compress(text) if ending == ".csv.gz" else text
        (tmp_path / f"{i}{ending}").write_bytes(packed)
    assert cells(tmp_path, delimiter=";") == ["1,0", "2,0"]


# ------------------------------------------------------------------------------- other file systems


@pytest.fixture
def remote(partitioned):
    """The same folder in fsspec's memory."""
    fsspec = pytest.importorskip("fsspec", reason='needs pip install "privfit[remote]"')
    system, folder = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
    for path in partitioned.rglob("*"):
        if path.is_file():
            system.pipe(f"{folder}/{path.relative_to(partitioned).as_posix()}", path.read_bytes())
    yield f"memory:/{folder}"
    system.rm(folder, recursive=True)


def test_paths_of_fsspec_are_read_as_local_ones(remote, partitioned):
    assert coded(remote).tobytes() == coded(partitioned).tobytes()
    assert cells(f"{remote}/year=2020/*/*.parquet") == [0.1, 0.2, 0.3]
    assert cells(f"{remote}/year=2021/month=1/part.parquet") == [0.4]
    assert cells(f"file://{partitioned}/year=2021/month=1/part.parquet") == [0.4]
    with pytest.raises(OSError, match=r"source \('memory://.*none'\) must exist; pass the path"):
        Stream(f"{remote}/none")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "arrow", "feather"])
def test_every_kind_of_table_may_be_elsewhere(kind, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason='needs pip install "privfit[remote]"')
    path = tmp_path / f"x.{kind}"
    if kind.startswith("csv"):
        raw = b"a,b\n0.5,x\n"
        path.write_bytes(gzip.compress(raw) if kind == "csv.gz" else raw)
    else:
        table = pyarrow.table({"a": [0.5], "b": ["x"]})
        feather.write_feather(table, str(path), "uncompressed" if kind == "arrow" else "lz4")
    url = f"memory://{uuid.uuid4().hex}/x.{kind}"
    fsspec.filesystem("memory").pipe(url, path.read_bytes())
    for name in ("a", "b"):
        assert cells(url, name) == cells(path, name)
        assert cells(url, name, columns=[name]) == cells(path, name)


REFUSED = {
    "no fsspec": ("s3://x/y.csv", {"fsspec": None, "fsspec.core": None}, ImportError,
                  r'paths with :// need fsspec; run pip install ".*\[remote\]"'),
    "no package": ("s3://x/y.csv", {"s3fs": None}, ImportError,
                   r"source \(s3://\) needs a package that fsspec knows for this protocol, such as "
                   r's3fs for s3://; install it beside "privfit\[remote\]"'),
    "no protocol": ("nosuch://x/y.csv", {}, ValueError,
                    r"source \(nosuch://\) must be of a protocol that fsspec knows; pass one such"),
    "arrays": ("memory://x.npy", {}, ValueError,
               r"source \('memory://.*x\.npy'\) must be on this machine, since \.npy files are "
               r"mapped; copy it, or pass Parquet files"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_elsewhere_is_refused_with_its_remedy(case, monkeypatch):
    fsspec = pytest.importorskip("fsspec", reason='needs pip install "privfit[remote]"')
    fsspec.filesystem("memory").pipe("memory://x.npy", b"x")
    url, modules, error, message = REFUSED[case]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(error, match=message):
        Stream(url)


def test_a_file_is_shown_by_its_name_alone():
    assert str(File("x/y.csv")) == "x/y.csv"
    assert [file.kind for file in find_files([__file__])] == [".py"]


# ---------------------------------------------------------------------------------------- checksums


def test_pages_of_parquet_are_compared_with_their_checksums(tmp_path):
    """One bit of a number is changed, which no reader would notice otherwise."""
    path = tmp_path / "x.parquet"
    numbers = np.linspace(-1, 1, 5000)
    parquet.write_table(pyarrow.table({"a": numbers}), path, compression="none",
                        use_dictionary=False, write_page_checksum=True)  # fmt: skip
    assert cells(path) == numbers.tolist()
    raw = bytearray(path.read_bytes())
    raw[raw.index(numbers[2000].tobytes())] ^= 1
    path.write_bytes(raw)
    ledger = Ledger(1.0)
    message = r"source \('.*x\.parquet'\) is a truncated or damaged file; copy or create it again"
    with pytest.raises(ValueError, match=message):
        KMeans(2, 1.0, domain=(-1, 1), ledger=ledger).fit(Stream(path))
    assert ledger.spent.epsilon == 0


def test_a_file_that_is_gone_is_not_called_damaged(tmp_path):
    path = written(tmp_path / "x.parquet", [0.1, 0.2])
    stream, ledger = Stream(path), Ledger(1.0)
    path.unlink()
    message = r"source \('.*x\.parquet'\) could not be read to its end; check that the file is comp"
    with pytest.raises(ValueError, match=message):
        KMeans(2, 1.0, domain=(-1, 1), ledger=ledger).fit(stream)
    assert ledger.spent.epsilon == 0


def test_a_batch_that_must_be_read_whole_and_is_too_large_is_refused(tmp_path):
    path = tmp_path / "x.feather"
    table = pyarrow.table({"a": np.zeros(100_000)})
    feather.write_feather(table, str(path), "lz4", chunksize=10**6)
    blocks = Stream(path)._source.blocks(None, 10_000)
    with pytest.raises(ValueError, match=r"source \('.*x\.feather'\) must have batches that fit "
                       r"into memory_limit; write it with fewer records in a batch"):  # fmt: skip
        list(blocks)
    feather.write_feather(table, str(path), "uncompressed", chunksize=10**6)
    assert sum(len(X["a"]) for X, _ in Stream(path)._source.blocks(None, 10_000)) == 100_000
