"""privfit schema --epsilon: a schema that may be published, and refusals before the charge."""

from __future__ import annotations

import json

import numpy as np
import pytest

import privfit
from privfit import Schema
from privfit.commands.files import CsvForm
from privfit.commands.main import main
from privfit.commands.spending import split
from privfit.commands.tables import Target, read_table
from privfit.domains.toml import read_toml

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

BUY = ["schema", "people.csv", "--epsilon", "1", "--delta", "1e-6", "--number", "age, hours",
       "--category", "job", "--seed", "1"]  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, capfdbinary):
    """Run a command beside a table: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 3000
    jobs = rng.choice(["clerk", "nurse", "?"], n)
    cells = (rng.integers(18, 90, n), rng.integers(0, 60, n), jobs, rng.integers(0, 2, n))
    lines = [";".join(map(str, row)) for row in zip(*cells, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["age;hours;job;late", *lines, "x;;only me;0"]))

    def call(*arguments):
        code = main([*arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


def test_a_bought_schema_is_a_schema_and_says_what_it_cost(run, tmp_path):
    code, text, _ = run(*BUY, "--missing", "?")
    assert code == 0
    assert "only me" not in text
    path = tmp_path / "schema.toml"
    path.write_text(text)
    schema = Schema.from_toml(path)
    assert schema.columns["job"].values == ("clerk", "nurse")
    assert schema.missing == ("", "?")
    assert not schema.has_blanks
    cost = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace"}
    assert read_toml(path)["bought"].items() >= cost.items()
    assert schema.bought["columns"] == ["age", "hours", "job"]
    fit = ["fit", "people.csv", "--schema", "schema.toml", "--target", "late", "--classes", "0",
           "1", "--epsilon", "1", "--out", "model.json"]  # fmt: skip
    assert run(*fit)[0] == 0
    assert run("predict", "model.json", "people.csv")[0] == 0


def test_it_is_the_schema_that_python_buys(run, tmp_path):
    import pandas as pd

    code, text, _ = run(*BUY)
    table = pd.read_csv("people.csv", sep=";", dtype=str)
    columns = {"age": "number", "hours": "number", "job": "category"}
    schema = privfit.learn_schema(table, 1.0, 1e-6, columns=columns, random_state=1)
    assert code == 0
    assert schema.to_toml() in text


def test_categories_without_names_need_no_delta_and_serve_a_fit(run, tmp_path):
    code, out, _ = run("schema", "people.csv", "--epsilon", "1", "--category", "job", "--no-names",
                       "--number", "age", "--adjacency", "add_remove", "--n-public", "3000",
                       "--out", "schema.toml", "--json")  # fmt: skip
    assert code == 0
    assert json.loads(out)["ledger"]["charged"] == {"epsilon": 1.0, "delta": 0.0}
    assert Schema.from_toml(tmp_path / "schema.toml").columns["job"].buckets
    fit = ["fit", "people.csv", "--schema", "schema.toml", "--target", "late", "--classes", "0",
           "1", "--epsilon", "1", "--out", "model.json", "--adjacency", "add_remove",
           "--n-public", "3000", "--holdout", "0.2"]  # fmt: skip
    assert run(*fit)[0] == 0
    assert run("predict", "model.json", "people.csv")[0] == 0


def test_records_with_names_to_be_bought_are_held_out_by_themselves(run, tmp_path):
    (tmp_path / "schema.toml").write_text(
        "[columns]\nage = {low = 0, high = 100, fill = 0}\n"
        'job = {kind = "category", names = "bought"}\n'
    )
    fit = ["fit", "people.csv", "--schema", "schema.toml", "--target", "late", "--classes", "0",
           "1", "--epsilon", "1", "--delta", "1e-6", "--out", "model.json", "--adjacency",
           "add_remove", "--n-public", "3000", "--holdout", "0.2"]  # fmt: skip
    code, _, err = run(*fit)
    assert (code, err) == (0, "")
    schema = Schema.from_toml(tmp_path / "schema.toml")
    table = read_table("people.csv", schema, Target("late", (0, 1)), CsvForm(delimiter=";"))
    held = split(table, 0.2, "add_remove")
    others = np.arange(len(table)) != 17
    assert (split(table[others], 0.2, "add_remove") == held[others]).all()
    assert 0.1 < held.mean() < 0.3


def test_a_shared_budget_is_charged_once(run, tmp_path):
    privfit.open_ledger(tmp_path / "budget.json", epsilon=1.5, delta=1e-6)
    assert run(*BUY, "--ledger", "budget.json")[0] == 0
    code, _, err = run(*BUY, "--ledger", "budget.json")
    assert code == 3
    assert "epsilon" in err
    assert privfit.open_ledger(tmp_path / "budget.json").spent.epsilon == 1.0


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["--number", "age"], "--number needs a budget; pass --epsilon, or leave it out for a draft"),
    (["--no-names"], "--no-names needs a budget; pass --epsilon"),
    (["--epsilon", "1"], "--number and --category (none) must name each column once; pass"),
    (["--epsilon", "1", "--number", "age", "--category", "age", "--delta", "1e-6"],
     "--number and --category (age) must name each column once; pass --number age,hours"),
    (["--epsilon", "1", "--category", "job"],
     "--category needs --delta for names to be bought; pass --delta 1e-6, or --no-names"),
    (["--epsilon", "1", "--number", "age", "--target", "late"],
     "--target is for drafts, since classes are declared and not bought; pass --target and"),
    (["--epsilon", "1", "--number", "size"], "'people.csv' has no column 'size'"),
])  # fmt: skip
def test_bad_options_are_refused_before_the_charge(run, arguments, sentence):
    code, out, err = run("schema", "people.csv", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "was charged" not in err


def test_the_draft_is_still_a_draft(run):
    code, text, err = run("schema", "people.csv", "--target", "late")
    assert code == 0
    assert "read_from_data = true" in text
    assert "reveals individual records" in err


# ------------------------------------------------------------------- blanks that a fit buys itself

BLANK = """
missing = ["", "?"]

[columns]
age = {kind = "number"}
hours = {low = 0, high = 60, fill = 0}
job = {kind = "category"%s}

[data]
label = "late"
classes = [0, 1]
"""
FIT = ["fit", "people.csv", "--schema", "blank.toml", "--epsilon", "1", "--delta", "1e-6", "--seed",
       "1", "--out", "model.json"]  # fmt: skip


@pytest.mark.parametrize("names", ["", ', names = "bought"'], ids=["hashed", "named"])
@pytest.mark.parametrize("options", [
    [], ["--holdout", "0.2"], ["--no-calibrate", "--adjacency", "add_remove", "--n-public", "3000"],
    ["--class-weight", "balanced", "--calibrate"], ["--model", "svm", "--solver", "local"],
], ids=" ".join)  # fmt: skip
def test_a_fit_buys_the_blanks_of_its_schema(run, tmp_path, options, names):
    (tmp_path / "blank.toml").write_text(BLANK % names)
    code, _, error = run(*FIT, *options)
    assert code == 0, error
    model = privfit.load(tmp_path / "model.json")
    assert model.release_.verify()
    assert not model.domain_.has_blanks
    assert model.release_.epsilon == 1.0
    calibrated = "--no-calibrate" not in options and "svm" not in options
    assert ("calibration" in model.release_.settings) == calibrated
    code, text, _ = run("predict", "model.json", "people.csv")
    assert code == 0
    assert "only me" not in (tmp_path / "model.json").read_text()
    assert len(text.splitlines()) == 3002


@pytest.mark.parametrize("names", ["", ', names = "bought"'], ids=["hashed", "named"])
def test_a_fit_with_blanks_is_that_of_python(run, tmp_path, names):
    import pandas as pd

    (tmp_path / "blank.toml").write_text(BLANK % names)
    assert run(*FIT)[0] == 0
    schema = Schema.from_toml(tmp_path / "blank.toml")
    table = pd.read_csv("people.csv", sep=";", dtype=str, keep_default_na=False)
    model = privfit.LogisticRegression(
        1.0, 1e-6, domain=schema, classes=[0, 1], random_state=1
    ).fit(table[["age", "hours", "job"]], table["late"].astype(int))
    again = privfit.load(tmp_path / "model.json")
    assert again.domain_ == model.domain_
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_decimal_commas_are_bought_as_numbers_and_kept_in_the_schema(run, tmp_path):
    rng = np.random.default_rng(1)
    cells = [f"{value:.2f}".replace(".", ",") for value in rng.uniform(10, 20, 2000)]
    labels = rng.choice(["ja", "nein"], 2000)
    lines = [f"{cell};{label};W\u00fcrzburg" for cell, label in zip(cells, labels, strict=True)]
    text = "\n".join(["CRP mg/l;late;town", *lines])
    (tmp_path / "export.csv").write_text(text, encoding="latin-1")
    form = ["--decimal", ",", "--encoding", "latin-1"]
    buy = ["schema", "export.csv", "--epsilon", "1", "--number", "CRP mg/l", "--out", "s.toml"]
    assert run(*buy, *form)[0] == 0
    cuts = Schema.from_toml(tmp_path / "s.toml").columns["CRP mg/l"].bins
    assert all(9 < cut < 21 for cut in cuts)
    assert read_toml(tmp_path / "s.toml")["data"]["decimal"] == ","
    fit = ["fit", "export.csv", "--schema", "s.toml", "--target", "late", "--classes", "nein,ja",
           "--epsilon", "1", "--out", "m.json"]  # fmt: skip
    assert run(*fit)[0] == 0
    for wrong, message in (
        ('decimal = ";"', "decimal (';') must be . or , in the table [data]"),
        ("encoding = 1", "encoding (1) must be a text in the table [data]"),
    ):
        (tmp_path / "wrong.toml").write_text(
            f"[columns]\nx = {{low = 0, high = 1}}\n[data]\n{wrong}"
        )
        code, _, err = run(*fit[:3], "wrong.toml", *fit[4:])
        assert code == 2
        assert message in err


def test_a_draft_names_the_remedy_for_dates_commas_and_encodings(run, tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{i % 28 + 1:02}.03.2024;{rng.integers(99)},{rng.integers(10)};M\u00fcnchen;{i % 2}"
             for i in range(300)]  # fmt: skip
    text = "\n".join(["admitted;crp;town;late", *lines, "01.04.2024;NA;Bonn;1"])
    (tmp_path / "export.csv").write_text(text, encoding="latin-1")
    code, out, err = run("schema", "export.csv", "--target", "late")
    assert code == 0
    assert "left out 'admitted': it has dates; write the days since a public date" in err
    assert "left out 'crp': it has numbers with decimal commas; pass --decimal ," in err
    assert "column 'town' has characters that are not utf-8; pass --encoding latin-1" in err
    code, out, err = run("schema", "export.csv", "--target", "late", "--decimal", ",",
                         "--encoding", "latin-1")  # fmt: skip
    assert "crp = {low = " in out
    assert 'decimal = ","' in out
    assert "the second is the positive class" in out
    assert "utf-8" not in err
