"""Loaders: tables are as they are documented, schemas read them, refusals say what to do."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.raises import assert_reached

import privfit
from privfit import HashWords, LinearObjective, Schema, datasets
from privfit.datasets import declared, files

# name: (rows, columns of the file, per cent of the last class, numeric features, categorical ones,
#        encoded width)
FACTS: dict[str, tuple[int, int, float | None, int, int, int]] = {
    "adult": (48_842, 16, 23.93, 6, 8, 135),
    "bank_full": (45_211, 17, 11.70, 7, 9, 61),
    "california_housing": (20_640, 10, None, 8, 1, 13),
    "credit_default": (30_000, 24, 22.12, 20, 3, 49),
    "diamonds": (53_940, 10, None, 6, 3, 26),
    "flights": (336_776, 11, None, 5, 3, 112),
    "gowalla_pois": (32_510, 2, None, 2, 0, 2),
    "health_panel": (19_609, 13, None, 3, 7, 22),
    "image_house_rgb": (33_925, 3, None, 3, 0, 3),
    "lifesci": (26_733, 11, 100 * 804 / 26_733, 10, 0, 10),
    "mushroom": (8_124, 23, 48.20, 0, 22, 126),
    "s1": (5_000, 3, 100 / 15, 2, 0, 2),
    "sms_spam": (5_574, 2, 13.40, 0, 0, 0),
    "spambase": (4_601, 58, 39.40, 57, 0, 57),
}
TABLES = {"s1_su2016_init_centroids": (450, 4), "s1_su2016_eugkm_results": (30, 7)}

# Values that no documentation declares, and how many records have them: the other level takes them.
OTHERS: dict[str, dict[str, dict[Any, int]]] = {
    "adult": {"workclass": {"?": 2799}, "occupation": {"?": 2809}, "native-country": {"?": 857}},
    "credit_default": {"EDUCATION": {0: 14, 5: 280, 6: 51}, "MARRIAGE": {0: 54}},
    "mushroom": {"stalk-root": {"?": 2480}},
}
MISSING = {("california_housing", "total_bedrooms"): 207}  # numbers, filled in by the schema

every_set = pytest.mark.parametrize("name", FACTS)
few_sets = pytest.mark.parametrize("name", ["adult", "health_panel", "s1", "spambase"])
load = cache(datasets.load)


def loader(name: str) -> Any:
    return getattr(datasets, f"load_{name}")


# ------------------------------------------------------------------------------------- declarations


def test_every_data_set_is_tested_and_has_a_loader():
    assert set(datasets.names()) == {*FACTS, *TABLES}
    named = {name for name in datasets.__all__ if name.startswith("load_")}
    others = {"load_schema", "load_su2016_centroids", "load_su2016_results"}
    assert named == {f"load_{name}" for name in FACTS} | others


@every_set
def test_schemas_declare_all_features(name):
    _, columns, _, numeric, categorical, width = FACTS[name]
    known = declared.declared(name)
    assert len(known.kinds) == columns
    if known.schema is None:
        assert (numeric, categorical) == (0, 0)
        return
    kinds = [column.holds_numbers for column in known.schema.columns.values()]
    assert (kinds.count(True), kinds.count(False)) == (numeric, categorical)
    assert known.schema.width == len(known.schema.feature_names) == width
    with_other = {key for key, column in known.schema.columns.items()
                  if getattr(column, "other", False)}  # fmt: skip
    assert with_other == OTHERS.get(name, {}).keys() | ({"dest"} if name == "flights" else set())


@every_set
def test_a_file_has_a_column_a_line_and_says_where_ranges_come_from(name):
    text = datasets.schema_path(name).read_text(encoding="utf-8")
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert len(comments) >= 3
    assert all(len(line) <= 100 for line in comments)
    assert text.startswith("\n".join(comments))
    known = declared.declared(name)
    assert known.description == "\n".join(line[2:] for line in comments)
    assert known.data["rows"] == FACTS[name][0]
    assert known.data["title"]
    assert known.data["source"]
    if known.schema is not None:
        lines = text.partition("[columns]\n")[2].partition("\n\n")[0].splitlines()
        assert len(lines) == len(known.schema.columns)
        assert known.schema.to_toml() == Schema.from_toml(datasets.schema_path(name)).to_toml()


def test_ranges_of_the_documentation_are_not_those_of_the_records():
    differ = set()
    for name in FACTS:
        known = declared.declared(name)
        if known.observed:
            differ.add(name)
            assert known.observed.keys() <= known.schema.columns.keys()
            assert list(known.under("observed").columns) == list(known.schema.columns)
            assert known.under("observed").width == known.schema.width
            for key, column in known.observed.items():
                assert (column.low, column.high) != (known.schema.columns[key].low,
                                                     known.schema.columns[key].high)  # fmt: skip
        else:
            assert known.under("observed") is None or known.under("observed").columns == (
                known.schema.columns
            )
    assert differ == {"adult", "bank_full", "credit_default", "s1", "lifesci", "image_house_rgb",
                      "gowalla_pois"}  # fmt: skip


# ------------------------------------------------------------------------------------------- facts


@pytest.mark.few(4)
@every_set
def test_records_are_those_of_the_documentation(name, data_folder):
    rows, columns, share, *_ = FACTS[name]
    data = loader(name)(data_folder)
    assert len(data) == data.n_public == rows
    parts = [*data.table.values(), *data.others.values()]
    parts += [part for part in (data.target, data.units) if part is not None]
    assert len(parts) == columns
    assert {len(part) for part in parts} == {rows}
    assert repr(data).startswith(f"Dataset({name!r}, {rows} records")
    assert not data.made_up
    if data.schema is not None:
        assert list(data.table) == list(data.schema.columns)
    if share is not None:
        assert data.labels.dtype == np.int64
        assert set(data.labels.tolist()) == set(range(len(data.classes)))
        if name != "s1":
            assert 100 * (data.labels == 1).mean() == pytest.approx(share, abs=0.005)
    else:
        assert data.classes is None


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [*FACTS, *TABLES])
def test_files_have_the_known_contents(name, data_folder):
    packed = gzip.decompress((data_folder / f"{name}.csv.gz").read_bytes())
    known = declared.declared(name)
    assert hashlib.sha256(packed).hexdigest() == known.data["sha256"]
    assert packed.count(b"\n") == known.data["rows"] + 1
    files.verify(data_folder / f"{name}.csv.gz", known.data["sha256"])


def test_adult_is_split_as_published(data_folder):
    data = load("adult", data_folder)
    train, test = data.published_split()
    assert (len(train), len(test)) == (32_561, 16_281)
    assert set(train.others["split"]) == {"train"}
    assert train.table["age"][0] == 39
    missing = {key: Counter(values)["?"] for key, values in data.table.items()
               if values.dtype == object and "?" in set(values)}  # fmt: skip
    assert missing == {"workclass": 2799, "occupation": 2809, "native-country": 857}


def test_regressions_have_the_documented_targets(data_folder):
    diamonds, houses = (load(name, data_folder) for name in ("diamonds", "california_housing"))
    assert (diamonds.target.min(), diamonds.target.max()) == diamonds.target_range == (326, 18_823)
    assert (houses.target.min(), houses.target.max()) == (14_999, 500_001)
    assert 100 * (houses.target == 500_001).mean() == pytest.approx(4.7, abs=0.05)
    assert np.isnan(houses.table["total_bedrooms"]).sum() == 207
    assert min((diamonds.table[key] == 0).sum() for key in "xyz") > 0


@pytest.mark.slow
def test_flights_have_the_documented_planes(data_folder):
    data = load("flights", data_folder)
    assert np.isnan(data.target).sum() == 9_430
    assert 100 * (data.target > 15).mean() == pytest.approx(23.1, abs=0.05)
    planes = Counter(data.units.tolist())
    assert planes.pop("") == 2_512
    assert (len(planes), max(planes.values())) == (4_043, 575)
    assert "dep_delay" not in data.schema.columns
    assert data.others["dep_delay"].dtype == np.float64


def test_the_panel_has_the_documented_people(data_folder):
    data = load("health_panel", data_folder)
    rows = Counter(data.units.tolist())
    assert (len(rows), min(rows.values()), max(rows.values())) == (6_127, 1, 5)
    assert (data.target.min(), data.target.max()) == data.target_range == (0, 121)
    assert (data.others["hospvis"].min(), data.others["hospvis"].max()) == (0, 51)


def test_messages_and_points_are_those_of_the_documentation(data_folder):
    messages = load("sms_spam", data_folder)
    assert len(messages) - len(set(messages.table["text"])) == 403
    assert HashWords(256).transform(messages.table["text"]).shape == (5_574, 256)
    mushrooms = load("mushroom", data_folder)
    assert len(set(mushrooms.table["veil-type"])) == 1
    points = load("s1", data_folder)
    assert points.target.min() == 1
    assert points.to_array().shape == (5_000, 2)


def test_material_of_su_2016_is_as_documented(data_folder):
    starts = datasets.load_su2016_centroids(data_folder, verify=True)
    assert starts.shape == (30, 15, 2)
    assert np.abs(starts).max() <= 1
    results = datasets.load_su2016_results(data_folder, verify=True)
    assert len(results) == 7
    assert results["nicv_true_data"].mean() == pytest.approx(0.014894, abs=5e-7)
    assert results["nicv_true_data"].min() == pytest.approx(0.008293, abs=5e-7)
    assert set(results["epsilon"]) == {1.0}


# ----------------------------------------------------------------------------------------- schemas

# Columns of which records lie beyond the declared range, and are clipped to it. Spambase declares
# round numbers for heavy tails: all of its columns.
BEYOND = {
    "adult": {"fnlwgt"},
    "bank_full": {"balance", "duration", "campaign", "previous"},
    "california_housing": {"total_rooms", "total_bedrooms", "population", "households",
                           "median_income"},
    "credit_default": {*(f"PAY_{i}" for i in (0, 2, 3, 4, 5, 6)), "BILL_AMT1", "BILL_AMT3",
                       "BILL_AMT4", "BILL_AMT6", "PAY_AMT2"},
    "health_panel": {"hhninc"},
    "lifesci": {"pc1"},
}  # fmt: skip


@pytest.mark.few(4)
@every_set
def test_schemas_read_their_tables_and_clip_only_what_is_known(name, data_folder):
    data = load(name, data_folder)
    if data.schema is None:
        return
    encoded = data.schema.encode(data.table)
    assert encoded.shape == (FACTS[name][0], FACTS[name][-1])
    beyond = set()
    for key, column in data.schema.columns.items():
        if column.holds_numbers:
            values = data.table[key]
            assert values.dtype == np.float64
            assert np.isnan(values).sum() == MISSING.get((name, key), 0)
            outside = (values < column.low) | (values > column.high)
            beyond |= {key} if outside.any() else set()
            assert outside.mean() < (0.2 if key.startswith("PAY_") else 0.1) or name == "spambase"
    wanted = set(data.schema.columns) if name == "spambase" else BEYOND.get(name, set())
    assert beyond == wanted


@pytest.mark.slow
@every_set
def test_only_undocumented_values_go_to_other(name, data_folder):
    data = load(name, data_folder)
    others = {}
    for key, column in (data.schema.columns if data.schema else {}).items():
        if not column.holds_numbers and key != "dest":
            values = Counter(data.table[key].tolist())
            unknown = {value: count for value, count in values.items()
                       if value not in column.values}  # fmt: skip
            others |= {key: unknown} if unknown else {}
    assert others == OTHERS.get(name, {})
    if others:
        encoded = dict(zip(data.schema.feature_names, data.schema.encode(data.table).sum(axis=0),
                           strict=True))  # fmt: skip
        one = 1 << data.schema.grid.a
        assert {key: total // one for key, total in encoded.items() if "=<other>" in key} == {
            f"{key}=<other>": sum(counts.values()) for key, counts in others.items()
        }


@few_sets
def test_observed_ranges_are_the_least_and_largest_values(name, data_folder):
    data = datasets.load(name, data_folder, ranges="observed")
    for key in declared.declared(name).observed:
        column = data.schema.columns[key]
        assert (data.table[key].min(), data.table[key].max()) == (column.low, column.high)


@few_sets
def test_a_frame_has_the_same_records(name, data_folder):
    plain, framed = (datasets.load(name, data_folder, as_frame=is_frame)
                     for is_frame in (False, True))  # fmt: skip
    assert list(framed.table.columns) == list(plain.table)
    assert len(framed) == len(plain)
    for key, values in plain.table.items():
        assert framed.table[key].dtype == values.dtype
        is_number = values.dtype != object
        assert np.array_equal(framed.table[key].to_numpy(), values, equal_nan=is_number)
    codes = [data.schema.encode(data.table) for data in (plain, framed)]
    assert (codes[0] != codes[1]).nnz == 0
    some = np.arange(0, len(plain), 7)
    mask = np.isin(np.arange(len(plain)), some)
    for index in (some, mask):
        first = next(iter(plain.table))
        assert np.array_equal(framed.take(index).table[first].to_numpy(),
                              plain.take(index).table[first])  # fmt: skip


# ------------------------------------------------------------------------------------------ splits


@few_sets
def test_a_split_shares_out_whole_records(name, data_folder):
    data = load(name, data_folder)
    whole = data.take(np.arange(len(data)))
    whole.table["row"] = np.arange(len(data))
    train, test = whole.split()
    assert len(train) == 4 * len(data) // 5
    rows = [part.table["row"] for part in (train, test)]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(len(data)))
    for part, row in zip((train, test), rows, strict=True):
        assert np.array_equal(part.target, data.target[row])
        assert all(np.array_equal(part.table[key], data.table[key][row]) for key in data.table)
        if data.units is not None:
            assert np.array_equal(part.units, data.units[row])


def test_a_split_depends_on_the_seed_alone(data_folder):
    data = load("spambase", data_folder)
    default, again, other = (data.split(seed)[0] for seed in (None, data.seed, data.seed + 1))
    assert np.array_equal(default.labels, again.labels)
    assert not np.array_equal(default.labels, other.labels)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["spambase", "adult", "bank_full", "credit_default", "mushroom"])
def test_an_objective_takes_a_loaded_set(name, data_folder):
    data = load(name, data_folder)
    train, test = data.split()
    P = train.schema.candidates(3, np.random.default_rng(3))
    parts = [LinearObjective(part.table, part.labels, "logistic", part.schema).scores(P)
             for part in (train, test, data)]  # fmt: skip
    assert np.array_equal(parts[0] + parts[1], parts[2])


# ----------------------------------------------------------------------------------------- reading

S1 = "x,y,cluster\n1,2,1\n3,4.5,15\n"


def write(folder: Path, text: str, name: str = "s1", ending: str = ".csv") -> Path:
    path = folder / (name + ending)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if ending == ".csv.gz" else data)
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_files_may_be_packed_or_not(ending, tmp_path, monkeypatch):
    write(tmp_path, S1, ending=ending)
    monkeypatch.setenv("PRIVFIT_DATA", str(tmp_path))
    for data in (datasets.load_s1(), datasets.load_s1(tmp_path), datasets.load_s1(str(tmp_path))):
        assert data.table["y"].tolist() == [2, 4.5]
        assert data.target.tolist() == [1, 15]
        assert data.labels.tolist() == [0, 14]


def test_a_passed_folder_is_used_rather_than_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVFIT_DATA", str(tmp_path / "elsewhere"))
    write(tmp_path, S1)
    assert len(datasets.load_s1(tmp_path)) == 2


def test_a_record_does_not_change_how_others_are_read(tmp_path):
    """Whatever one cell holds, the others stay the same objects of the same type."""
    found = []
    for cell in ("4.5", "none", "", '"a, b"', "1e999", "x" * 5000):
        write(tmp_path, f"x,y,cluster\n1,2,1\n3,{cell},15\n")
        data = datasets.load_s1(tmp_path)
        found.append((data.table["y"].dtype, data.table["y"][0], data.table["x"].tolist()))
    assert set(map(repr, found)) == {repr(found[0])}
    write(tmp_path, 'label,text\nham,hello\nspam,"free, ""now"""\n', "sms_spam")
    texts = datasets.load_sms_spam(tmp_path).table["text"]
    assert texts.dtype == object
    assert texts.tolist() == ["hello", 'free, "now"']


def test_a_file_without_records_is_an_empty_table(tmp_path):
    write(tmp_path, "x,y,cluster\n")
    data = datasets.load_s1(tmp_path)
    assert len(data) == 0
    assert data.to_array().shape == (0, 2)


def test_blocks_of_a_file_are_joined(tmp_path):
    rows = 2 * files.ROWS + 3
    write(tmp_path, "r,g,b\n" + "".join(f"{i % 256},0,{i}\n" for i in range(rows)),
          "image_house_rgb")  # fmt: skip
    assert np.array_equal(datasets.load_image_house_rgb(tmp_path).table["b"], np.arange(rows))


def test_nothing_is_loaded_by_import_alone(fresh_python):
    done = fresh_python(
        "import sys, privfit\n"
        "assert 'privfit.datasets' not in sys.modules\n"
        "assert 'datasets' in dir(privfit)\n"
        "print(len(privfit.datasets.make_census(10)))\n"
        "assert not {'pandas', 'sklearn', 'socket', 'urllib.request'} & set(sys.modules)"
    )
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


# ------------------------------------------------------------------------------------------ errors


def texts_alone():
    return datasets.make_texts(5)


def strange_classes():
    census = datasets.make_census(5)
    census.target[0] = 7
    return census


ERRORS = [
    (lambda f: datasets.load("iris", f), r"name \('iris'\) must be a known data set; pass one of"),
    (lambda f: datasets.load_adult(),
     r"folder \(None\) must be the folder that has adult\.csv\.gz; get the data \(UCI Machine "
     r"Learning Repository: Adult.*\), write them as CSV with a header and the 16 columns age, "
     r"workclass, fnlwgt, \.\.\., income, and pass folder=\.\.\., or set PRIVFIT_DATA; privfit "
     r"downloads nothing"),
    (lambda f: datasets.load_s1(f),
     r"folder \('.*'\) must have s1\.csv\.gz or s1\.csv; .* the 3 columns x, y, cluster"),
    (lambda f: datasets.load_s1("https://example.org/data"), r"folder \('https:.* must have s1"),
    (lambda f: datasets.load_s1(write(f, S1).parent, verify=True),
     r"path \('.*s1\.csv'\) must have the known contents, of SHA-256 [0-9a-f]{64} unpacked; get"),
    (lambda f: datasets.load_s1(cut(f).parent, verify=True),
     r"path \('.*s1\.csv\.gz'\) must be a complete file; get it again"),
    (lambda f: datasets.load_s1(cut(f).parent),
     r"source \('.*s1\.csv\.gz'\) is a truncated or damaged file"),
    (lambda f: datasets.load_s1(write(f, "x,size,cluster\n1,2,1\n").parent),
     r"must have the declared columns, each once; rename or remove \['size'\], and add \['y'\]"),
    (lambda f: datasets.load_s1(write(f, "x,y,cluster,x\n1,2,1,3\n").parent),
     r"must have the declared columns, each once"),
    (lambda f: datasets.load_s1(write(f, "x,y,cluster\n1,2,one\n").parent),
     r"column 'cluster' of s1 must hold whole numbers; get the file again"),
    (lambda f: datasets.load_su2016_centroids(
        write(f, "init_set,centroid,x,y\n0,1,0,0\n", "s1_su2016_init_centroids").parent),
     r"s1_su2016_init_centroids must list 30 sets of 15 centroids in order; get the file"),
    (lambda f: datasets.load_s1(f, ranges="guessed"),
     r"ranges \('guessed'\) must be one of \('documented', 'observed'\); pass one"),
    (lambda f: datasets.load_schema("sms_spam"),
     r"name \('sms_spam'\) must be a data set with a schema; call load\('sms_spam'\)"),
    (lambda f: texts_alone().box(), r"'texts' must have a schema, but its records are texts; use"),
    (lambda f: datasets.make_census(5).published_split(),
     r"'census' must be published in two parts to be split so; call split\(seed\)"),
    (lambda f: datasets.make_panel(5).labels, r"labels need classes, and 'panel' has none; use"),
    (lambda f: strange_classes().labels,
     r"target of 'census' must hold declared classes alone; drop the other records"),
    (lambda f: datasets.make_census(5).to_array(["sex"]),
     r"columns \(\['sex'\]\) must be columns of numbers; pass some of \['age', 'years', 'hours'"),
    (lambda f: datasets.make_census(5).box("age"), r"columns \('age'\) must be columns of numbers"),
    (lambda f: datasets.make_census(0), r"n \(0\) must be a whole number of at least 1; pass one"),
    (lambda f: datasets.make_census(5, seed=-1), r"seed \(-1\) must be a whole number of at least"),
    (lambda f: datasets.make_panel(2.5), r"n_people \(2\.5\) must be a whole number of at least 1"),
    (lambda f: datasets.make_panel(5, True), r"max_rows \(True\) must be a whole number of at lea"),
    (lambda f: datasets.make_clusters(5, k="3"), r"k \('3'\) must be a whole number of at least 1"),
    (lambda f: datasets.make_clusters(5, sizes="few"),
     r"sizes \('few'\) must be one of \('equal', '1/j'\); pass one of them"),
    (lambda f: datasets.make_clusters(5, spread=float("nan")),
     r"spread \(nan\) must be a number of at least 0; pass spread=0\.15"),
    (lambda f: datasets.make_clusters(5, spread=-1), r"spread \(-1\) must be a number of at leas"),
    (lambda f: without_pandas(f), r"as_frame=True needs pandas; run pip install pandas"),
]  # fmt: skip


def cut(folder: Path) -> Path:
    path = write(folder, S1 * 100, ending=".csv.gz")
    path.write_bytes(path.read_bytes()[:-12])
    return path


def without_pandas(folder: Path) -> Any:
    write(folder, S1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        return datasets.load_s1(folder, as_frame=True)


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[text[:40] for _, text in ERRORS])
def test_refusals_say_what_to_do(call, message, tmp_path, monkeypatch):
    monkeypatch.delenv("PRIVFIT_DATA", raising=False)
    with pytest.raises(privfit.PrivfitError, match=message):
        call(tmp_path)


def test_a_missing_file_is_a_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        datasets.load_adult(tmp_path)


def test_every_refusal_is_tested(tmp_path, monkeypatch):
    monkeypatch.delenv("PRIVFIT_DATA", raising=False)
    seen = []
    for i, (call, _) in enumerate(ERRORS):
        folder = tmp_path / str(i)
        folder.mkdir()
        with pytest.raises(privfit.PrivfitError) as caught:
            call(folder)
        seen.append(str(caught.value))
    sources = sorted(Path(datasets.__file__).parent.glob("*.py"))
    assert_reached(sources, "\n".join(seen))
