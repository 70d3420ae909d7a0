"""The benchmarks' data sets: each schema declares what its file holds, and nothing is lost."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from makers.places import ROOT

from privfit import Categorical, LinearObjective, Numeric, Schema

if not (ROOT / "bench" / "schemas").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench import datasets

# name: (rows, per cent positive, numeric columns, categorical ones, encoded width)
FACTS = {
    "adult": (48_842, 23.93, 6, 8, 135),
    "bank_full": (45_211, 11.70, 7, 9, 61),
    "credit_default": (30_000, 22.12, 20, 3, 49),
    "mushroom": (8_124, 48.20, 0, 22, 126),
    "spambase": (4_601, 39.40, 57, 0, 57),
}

# Values that no documentation declares, and how many records have them: the other level takes them.
OTHERS: dict[str, dict[str, dict[Any, int]]] = {
    "adult": {"workclass": {"?": 2799}, "occupation": {"?": 2809}, "native-country": {"?": 857}},
    "credit_default": {"EDUCATION": {0: 14, 5: 280, 6: 51}, "MARRIAGE": {0: 54}},
    "mushroom": {"stalk-root": {"?": 2480}},
}

every_set = pytest.mark.parametrize("name", FACTS)
load = lru_cache(maxsize=1)(datasets.load)


def test_every_shipped_schema_is_tested():
    assert set(datasets.NAMES) == set(FACTS)


@every_set
def test_schemas_declare_all_features(name):
    schema = Schema.from_toml(datasets.SCHEMAS / f"{name}.toml")
    kinds = [type(column) for column in schema.columns.values()]
    _, _, numeric, categorical, width = FACTS[name]
    assert (kinds.count(Numeric), kinds.count(Categorical)) == (numeric, categorical)
    assert schema.width == len(schema.feature_names) == width
    with_other = {key for key, column in schema.columns.items() if getattr(column, "other", False)}
    assert with_other == OTHERS.get(name, {}).keys()


@every_set
def test_files_declare_a_column_a_line(name):
    lines = (datasets.SCHEMAS / f"{name}.toml").read_text().partition("[columns]\n")[2].splitlines()
    assert len(lines) == len(Schema.from_toml(datasets.SCHEMAS / f"{name}.toml").columns)


@pytest.mark.few(1)
@every_set
def test_records_are_those_of_the_readme(name, data_folder):
    data = load(name)
    rows, share, *_ = FACTS[name]
    assert len(data) == rows
    assert {len(values) for values in data.columns.values()} == {rows}
    assert list(data.columns) == list(data.schema.columns)
    assert set(data.y.tolist()) == {0, 1}
    assert 100 * data.y.mean() == pytest.approx(share, abs=0.005)
    assert repr(rows) in repr(data)


@pytest.mark.slow
@every_set
def test_only_undocumented_values_go_to_other(name, data_folder):
    data = load(name)
    others = {}
    for key, column in data.schema.columns.items():
        if isinstance(column, Categorical):
            values, counts = np.unique(data.columns[key], return_counts=True)
            unknown = {value: count for value, count in zip(values.tolist(), counts, strict=True)
                       if value not in column.values}  # fmt: skip
            others |= {key: unknown} if unknown else {}
    assert others == OTHERS.get(name, {})

    encoded = dict(zip(data.schema.feature_names, data.schema.encode(data.columns).sum(axis=0),
                       strict=True))  # fmt: skip
    one = 1 << data.schema.grid.a
    assert {key: total // one for key, total in encoded.items() if key.endswith("=<other>")} == {
        f"{key}=<other>": sum(counts.values()) for key, counts in others.items()
    }


@pytest.mark.slow
@every_set
def test_only_heavy_tails_are_clipped_and_no_number_is_missing(name, data_folder):
    data = load(name)
    for key, column in data.schema.columns.items():
        if isinstance(column, Numeric):
            values = data.columns[key]
            assert values.dtype == np.float64
            assert column.low <= values.min() < values.max(), key
            assert (values.max() <= column.high) == (name != "spambase"), key


@pytest.mark.slow
@every_set
def test_a_split_shares_out_whole_records(name, data_folder):
    data = load(name)
    whole = data.rows(np.arange(len(data)))
    whole.columns["row"] = np.arange(len(data))
    train, test = whole.split()
    assert len(train) == 4 * len(data) // 5
    assert len(train) + len(test) == len(data)
    rows = [part.columns["row"] for part in (train, test)]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(len(data)))
    for part, row in zip((train, test), rows, strict=True):
        assert np.array_equal(part.y, data.y[row])
        assert all(np.array_equal(part.columns[key], data.columns[key][row])
                   for key in data.columns)  # fmt: skip


def test_a_split_depends_on_the_seed_alone(data_folder):
    data = load("spambase")
    declared, again, other = (data.split(seed)[0] for seed in (None, data.seed, data.seed + 1))
    assert np.array_equal(declared.y, again.y)
    assert not np.array_equal(declared.y, other.y)


@pytest.mark.slow
@every_set
def test_an_objective_takes_a_loaded_set(name, data_folder):
    train, test = load(name).split()
    P = train.schema.candidates(3, np.random.default_rng(3))
    parts = [LinearObjective(part.columns, part.y, "logistic", part.schema).scores(P)
             for part in (train, test, load(name))]  # fmt: skip
    assert np.array_equal(parts[0] + parts[1], parts[2])


def test_wrong_names_and_folders_have_one_clear_message(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"name \('iris'\) must be a declared data set; pass one"):
        datasets.load("iris")
    monkeypatch.setenv("PRIVFIT_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"PRIVFIT_DATA \(.*\) must hold adult.csv.gz; set"):
        datasets.load("adult")


def test_a_column_of_the_file_is_declared_or_dropped(monkeypatch):
    monkeypatch.setattr(datasets, "read", lambda name: {"income": (">50K",), "shoe-size": ("9",)})
    with pytest.raises(
        ValueError, match=r"columns \(\['shoe-size'\]\) must be declared; pass them"
    ):
        datasets.load("adult")
