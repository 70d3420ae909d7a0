"""Every command as a user would try it, on real data, and on files that are broken."""

from __future__ import annotations

import errno
import gzip
import json
import lzma
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import privfit
from privfit import Categorical, Numeric, Schema
from privfit.base.errors import InputError
from privfit.commands import spending, tables
from privfit.commands.console import Console
from privfit.commands.main import main
from privfit.commands.outputs import claim
from privfit.commands.spending import RunLedger, split
from privfit.commands.tables import Coded, Table
from privfit.datasets import schema_path

INSTALLED = Path(privfit.__file__).parents[1]

SCHEMA = """\
[data]
label = "rich"
classes = ["no", "yes"]

[columns]
age = {low = 0, high = 100}
sex = {values = ["f", "m"]}
"""
FIT = ["fit", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "model.json"]
SHARED = [*FIT, "--ledger", "budget.json"]
ROC = ["roc", "model.json", "people.csv", "--target", "rich", "--epsilon", "1"]


def people(n: int = 600) -> str:
    """A table whose label follows from the age."""
    rng = np.random.default_rng(5)
    ages, sexes = rng.integers(20, 80, n), rng.choice(["f", "m"], n)
    lines = [f"{age},{sex},{'yes' if age > 50 else 'no'}"
             for age, sex in zip(ages, sexes, strict=True)]  # fmt: skip
    return "\n".join(["age,sex,rich", *lines]) + "\n"


def fill(folder: Path) -> Path:
    """Make a folder with a table, its schema and a budget file."""
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text(people())
    (folder / "schema.toml").write_text(SCHEMA)
    privfit.open_ledger(folder / "budget.json", epsilon=1.5, delta=1e-6)
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Such a folder, in which commands run."""
    monkeypatch.chdir(tmp_path)
    return fill(tmp_path)


@pytest.fixture
def run(capsys):
    """Run a command in this process: its exit code, stdout and stderr."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def shell(*arguments, folder, **options) -> subprocess.CompletedProcess[str]:
    """Run a command as a program."""
    return subprocess.run(
        [sys.executable, "-m", "privfit", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
        cwd=folder,
        text=True,
        timeout=600,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def contents(folder: Path) -> dict[str, bytes]:
    """What stands in a folder, but for locks, which a refused run may leave."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


# -------------------------------------------------------------------------------- from CSV to model


@pytest.mark.slow
def test_a_data_owner_comes_from_a_table_to_a_model(data_folder, tmp_path, run, monkeypatch):
    adult = data_folder / "adult.csv.gz"
    monkeypatch.chdir(tmp_path)
    drafted = shell("schema", adult, "--target", "income", folder=tmp_path)
    assert drafted.returncode == 0
    assert "the draft reveals individual records" in drafted.stderr
    Path("schema.toml").write_text(drafted.stdout)
    fit = ["fit", adult, "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6",
           "--holdout", "0.2", "--ledger", "budget.json", "--out", "model.json"]  # fmt: skip
    code, _, err = run(*fit)
    assert code == 2
    assert "is a draft that was read from the data" in err
    confirmed = drafted.stdout.replace("[draft]\nread_from_data = true\n", "")
    Path("schema.toml").write_text(confirmed.replace("split = ", "# split = "))
    create = ["budget", "--ledger", "budget.json", "--create", "--epsilon", 1.5, "--delta", 1e-5]
    assert run(*create)[0] == 0

    fitted = shell(*fit, "--json", folder=tmp_path)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    result = json.loads(fitted.stdout)
    # Ten runs: mean 0.849, deviation 0.0014. The bounds are 20 deviations away.
    assert 0.82 < result["accuracy"] < 0.88
    assert result["ledger"]["charged"] == {"epsilon": 1.0, "delta": 1e-6}
    assert result["ledger"]["remaining"]["epsilon"] == 0.5

    shown = run("show", "model.json")[1]
    assert "guarantee: epsilon 1, delta 1e-06, for the contents of one row" in shown
    assert re.search(r"^largest of \d+ rows +size ", shown, re.M)
    assert re.search(r"^age +\d\.\d{4} +-\S+ at .*, \+\S+ at .* +\d+\.\d{4}", shown, re.M)
    assert re.search(r"^\S+=\S+ .*[+-]\d+\.\d{4} +\d+\.\d{4} +[+-]\S+ to [+-]\S+", shown, re.M)
    assert re.search(r"^\d+ rows are below their noise$", shown, re.M)
    predicted = shell("predict", "model.json", adult, folder=tmp_path)
    assert predicted.stdout.startswith("prediction\n<=50K\n")
    assert predicted.stdout.count("\n") == 48_843

    code, out, _ = run("roc", "model.json", adult, "--target", "income", "--epsilon", "0.5",
                       "--ledger", "budget.json", "--plot", "roc.png", "--json")  # fmt: skip
    assert code == 0
    # Ten runs: mean 0.906, deviation 0.0015.
    assert 0.87 < json.loads(out)["auc"] < 0.93
    assert Path("roc.png").read_bytes().startswith(b"\x89PNG")
    assert run(*fit)[0] == 3
    ledger = privfit.open_ledger("budget.json")
    assert (ledger.remaining.epsilon, len(ledger.releases)) == (0.0, 3)


def test_schemas_that_ship_fit(data_folder, tmp_path, run):
    # Twelve runs: means 0.986 and 0.784, deviations 0.002 and 0.008; ten deviations to the bounds.
    for name, least in (("mushroom", 0.95), ("spambase", 0.70)):
        path = data_folder / f"{name}.csv.gz"
        code, out, err = run("fit", path, "--schema", schema_path(name), "--epsilon", "1",
                             "--delta", "1e-6", "--out", tmp_path / "m.json", "--holdout", "0.2",
                             "--adjacency", "add_remove", "--n-public", 5000, "--json")  # fmt: skip
        assert (code, err) == (0, "")
        assert json.loads(out)["accuracy"] > least


def test_a_model_predicts_what_python_predicts(folder, run):
    assert run(*FIT, "--delta", "1e-6", "--seed", "1")[0] == 0
    model = privfit.load(folder / "model.json")
    rows = [line.split(",") for line in people().splitlines()[1:]]
    columns = {"age": [float(row[0]) for row in rows], "sex": [row[1] for row in rows]}
    code, out, _ = run("predict", "model.json", "people.csv", "--proba", "--out", "p.csv")
    assert (code, out) == (0, "p.csv: predictions\n")
    head, *lines = (folder / "p.csv").read_text().splitlines()
    assert head == "prediction,probability of no,probability of yes"
    assert [line.split(",")[0] for line in lines] == model.predict(columns).tolist()
    probabilities = [[float(value) for value in line.split(",")[1:]] for line in lines]
    np.testing.assert_allclose(probabilities, model.predict_proba(columns), atol=1e-6)
    found = json.loads(run("predict", "model.json", "people.csv", "--proba", "--json")[1])
    assert found["predictions"] == model.predict(columns).tolist()
    assert found["classes"] == ["no", "yes"]
    assert found["probabilities"] == probabilities
    code, out, _ = run("predict", "model.json", "people.csv", "--json")
    assert json.loads(out)["predictions"] == model.predict(columns).tolist()


def test_shown_weights_of_categories_have_mean_zero_and_are_the_same_model(folder, run):
    assert run(*FIT, "--delta", "1e-6", "--solver", "gradient")[0] == 0
    found = run("show", "model.json")[1]
    table = found.partition("largest of")[2]
    shown = {name: float(one) for name, one in re.findall(r"^(\S+) +([+-]\S+) ", table, re.M)}
    assert shown.keys() == {"age", "sex=f", "sex=m", "intercept"}
    assert abs(shown["sex=f"] + shown["sex=m"]) < 2e-4
    records = {"age": [0.0, 50.0, 100.0], "sex": ["f", "m", "m"]}
    z = privfit.load("model.json").decision_function(records)
    ages, sexes = np.array([0, 0.5, 1]), np.array([shown["sex=f"], shown["sex=m"], shown["sex=m"]])
    np.testing.assert_allclose(shown["intercept"] + shown["age"] * ages + sexes, z, atol=5e-4)


def test_the_same_seed_gives_the_same_model_and_warns(folder, run):
    for name in ("a.json", "b.json"):
        code, _, err = run(*FIT[:-1], name, "--seed", "7")
        assert code == 0
        assert err.startswith("warning: --seed voids privacy: anyone who knows it can subtract")
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()
    assert "drawn with a seed" in run("show", "a.json")[2]


def test_svm_and_other_solvers_fit(folder, run):
    assert run(*FIT, "--model", "svm", "--solver", "gradient", "--delta", "1e-6")[0] == 0
    assert "LinearSVC" in run("show", "model.json")[1]
    code, _, err = run("predict", "model.json", "people.csv", "--proba")
    assert code == 2
    assert "--proba needs probabilities, which LinearSVC does not have; leave it out" in err


def test_class_weights_calibration_and_thresholds(folder, run):
    assert run(*FIT, "--class-weight", "no=1,yes=4", "--solver", "local", "--calibrate")[0] == 0
    model = privfit.load(folder / "model.json")
    assert model.class_weight == {"no": 1.0, "yes": 4.0}
    assert model.calibrate is True
    assert model.release_.settings["calibration"]["share"] == 0.04
    for number, label in (("0", "yes"), ("inf", "no")):
        code, out, _ = run("predict", "model.json", "people.csv", "--threshold", number)
        assert code == 0
        assert set(out.splitlines()[1:]) == {label}
    for wrong in ("3", "-0.5", "nan"):
        code, out, err = run("predict", "model.json", "people.csv", f"--threshold={wrong}")
        assert (code, out) == (2, "")
        assert f"--threshold ({float(wrong)}) must be a probability from 0 to 1, or inf for" in err
    assert run(*FIT, "--class-weight", "balanced", "--delta", "1e-6")[0] == 0
    assert privfit.load(folder / "model.json").class_weight == "balanced"
    for wrong in ("even", "no=1,maybe=2", "no=one"):
        code, _, err = run(*FIT, "--class-weight", wrong)
        assert code == 2
        assert f"--class-weight ({wrong}) must be 'balanced' or weights by class; pass" in err


def test_a_threshold_is_for_two_classes(folder, run):
    points = ["cluster", "people.csv", "--schema", "schema.toml", "--clusters", "2",
              "--epsilon", "1", "--out", "clusters.json"]  # fmt: skip
    assert run(*points)[0] == 0
    code, _, err = run("predict", "clusters.json", "people.csv", "--threshold", "0.5")
    assert code == 2
    assert "--threshold applies to classifiers of two classes alone; leave it out" in err


def test_an_intercept_and_the_weight_of_a_loss_may_be_chosen(folder, run):
    assert run(*FIT, "--no-intercept", "--model", "svm", "--C", "10", "--solver", "eem")[0] == 0
    model = privfit.load(folder / "model.json")
    assert (model.C, model.fit_intercept, model.intercept_.tolist()) == (10.0, False, [0.0])
    shown = run("show", "model.json")[1]
    assert "intercept" not in shown.partition("weights")[2]
    assert f"{model.coef_[0, 0]:+.4f}" in shown  # as it is: nothing would take up what is shared
    assert shown.endswith("no errors are known for solver 'eem'\n")
    assert run(*FIT)[0] == 0
    assert privfit.load(folder / "model.json").fit_intercept is True
    assert re.search(r"^intercept +[+-]", run("show", "model.json")[1], re.M)
    code, _, err = run(*FIT, "--C", "10")
    assert code == 2
    assert "--C applies only to --model svm; leave it out" in err


def test_a_label_may_be_a_column_of_the_schema(folder, run):
    (folder / "schema.toml").write_text(
        "[columns]\nage = {low = 0, high = 100}\nrich = {values = ['no', 'yes']}\n"
    )
    assert run(*FIT, "--target", "rich")[0] == 0
    assert list(privfit.load(folder / "model.json").domain_.columns) == ["age"]
    assert run(*FIT, "--target", "rich", "--classes", "yes", "no", "--columns", "age")[0] == 0


def test_classes_given_by_option_are_the_numbers_of_a_table(folder, run):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"age": [20, 60] * 40, "sex": ["f", "m"] * 40, "rich": [0, 1] * 40})
    parquet.write_table(table, folder / "people.parquet")
    command = [FIT[0], "people.parquet", *FIT[2:], "--target", "rich", "--classes", "0", "1"]
    assert run(*command)[0] == 0
    assert privfit.load(folder / "model.json").classes_.tolist() == [0, 1]


def test_classes_that_are_not_all_numbers_are_texts(folder, run):
    for labels, classes in ((["1", "x"], '["1", "x"]'), (["01", "1"], '["01", "1"]'),
                            (["1", "2"], "[1, 2]")):  # fmt: skip
        rows = "".join(f"{20 + i % 9},{labels[i % 2]}\n" for i in range(40))
        (folder / "t.csv").write_text(f"age,y\n{rows}")
        assert f"classes = {classes}\n" in run("schema", "t.csv", "--target", "y")[1]


def test_a_constant_label_is_no_reason_to_refuse(folder, run):
    """A refusal would tell of the labels, and the classes are declared."""
    (folder / "people.csv").write_text(people().replace(",yes", ",no"))
    assert run(*FIT)[0] == 0


def test_quiet_says_nothing_and_json_one_object(folder, run):
    assert run(*FIT, "--quiet") == (0, "", "")
    assert run("show", "model.json", "--quiet") == (0, "", "")
    for arguments in (
        [*FIT, "--holdout", "0.2"],
        ["show", "model.json"],
        ["budget", "--ledger", "budget.json"],
        ["schema", "people.csv", "--quiet"],
        [*ROC, "--positive", "no"],
    ):
        code, out, _ = run(*arguments, "--json")
        assert code == 0
        assert isinstance(json.loads(out), dict)


# --------------------------------------------------------------------------------------- evaluation


def test_accuracy_is_estimated_on_other_records_within_the_same_budget(folder, run):
    code, out, err = run(*SHARED, "--holdout", "0.25", "--json")
    assert (code, err) == (0, "")
    ledger = json.loads(out)["ledger"]
    assert [(entry["name"], entry["records"]) for entry in ledger["entries"]] == [
        ("LogisticRegression", "train"), ("accuracy_score", "test")
    ]  # fmt: skip
    assert ledger["charged"] == {"epsilon": 1.0, "delta": 0.0}
    shared = privfit.open_ledger("budget.json")
    assert [(group, budget.epsilon) for group, _, budget in shared.entries] == [("", 1.0)]
    assert [release.name for release in shared.releases] == ["LogisticRegression", "accuracy_score"]


def test_a_release_that_is_not_yet_in_the_budget_file_is_told(folder, run, monkeypatch):
    from privfit.privacy.budget_file import LedgerFile

    write, calls = LedgerFile._write, []

    def fail_once(self, entries):
        calls.append(1)
        if len(calls) == 2:  # the charge is the first
            raise OSError(28, "no space")
        write(self, entries)

    monkeypatch.setattr(LedgerFile, "_write", fail_once)
    code, _, err = run(*SHARED)
    assert code == 0
    assert err.startswith("warning: the release of 'LogisticRegression' is charged and made, but")


def test_warnings_of_others_are_not_told_since_they_may_quote_records(folder, run, monkeypatch):
    def fit(self, X, y):
        warnings.warn(f"{SECRET} in a budget file", RuntimeWarning, stacklevel=1)
        raise InputError("stopped; go on")

    monkeypatch.setattr(privfit.LogisticRegression, "fit", fit)
    assert run(*FIT) == (2, "", "privfit: error: stopped; go on\n")


def test_the_old_name_of_a_solver_works_and_is_told(folder, run):
    fit = [*FIT, "--delta", "1e-6", "--solver"]
    code, _, err = run(*fit, "hybrid")
    assert (code, err) == (0, "warning: solver 'hybrid' is 'select_refine' now; pass that\n")
    assert privfit.load("model.json").solver == "select_refine"
    assert run(*fit, "select_refine")[2] == ""


def test_trusted_evaluation_is_loud_and_stays_on_stderr(folder, run):
    code, out, err = run(*FIT, "--holdout", "0.5", "--trusted-eval", "--json")
    assert code == 0
    assert "NOT PRIVATE" in err
    accuracy = err.partition("accuracy ")[2].split()[0]
    assert 0 <= float(accuracy) <= 1
    assert json.loads(out)["accuracy"] is None
    assert "accuracy" not in (folder / "model.json").read_text()


def test_evaluations_of_held_out_records_are_kept_for_the_report(folder, run):
    code, out, _ = run(*FIT, "--holdout", "0.4", "--roc", "--json")
    assert code == 0
    told = json.loads(out)
    kept = privfit.load("model.json").evaluations_
    assert kept["accuracy"] == told["accuracy"]
    assert kept["curve"].auc == told["roc"]["auc"]
    epsilons = [one.release.epsilon for one in kept.values()]
    assert epsilons == [0.25, 0.75]
    assert run("report", "model.json", "-o", "report.html")[0] == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    for text in ("are predicted correctly", "Released ROC curves", "Calibration:"):
        assert text in page
    code, out, _ = run("show", "model.json")
    assert f"released accuracy: {told['accuracy']:.4f} (95 % interval" in out
    assert "released area under the ROC curve" in out
    code, out, _ = run("show", "model.json", "--json")
    assert json.loads(out)["evaluations"]["accuracy"] == told["accuracy"]


def test_the_last_declared_class_is_the_positive_one(folder, run):
    for classes in ("no,yes", "yes,no"):
        code, out, _ = run(*FIT, "--classes", classes, "--holdout", "0.4", "--roc")
        positive = classes.partition(",")[2]
        assert code == 0
        assert f"curve of '{positive}' on held-out records" in out
        curve = privfit.load("model.json").evaluations_["curve"]
        assert curve.release.settings["positive"] == positive
        assert curve.auc > 0.7


def table_of(n: int) -> Table:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, n).astype(np.int16)
    columns = {"a": rng.integers(0, 1000, n).astype(np.float64), "b": Coded(["x", "y"], codes)}
    return Table(columns, Coded(["no", "yes"], codes[::-1]))


def test_a_replaced_record_leaves_the_others_in_their_group():
    table = table_of(1000)
    held = split(table, 0.2, "replace")
    assert held.sum() == 200
    other = table_of(1000)
    other.columns["a"][17] = 12345.0
    np.testing.assert_array_equal(split(other, 0.2, "replace"), held)


def test_a_removed_record_leaves_the_others_in_their_group():
    table = table_of(5000)
    held = split(table, 0.2, "add_remove")
    # A fixed table: 0.2 +- 0.0057 is what fair coins would give.
    assert abs(held.mean() - 0.2) < 0.03
    keep = np.arange(5000) != 17
    np.testing.assert_array_equal(split(table[keep], 0.2, "add_remove"), held[keep])
    for column in ("a", "b"):  # every column counts
        changed = Table({**table.columns, column: table.columns[column][::-1]}, table.labels)
        assert (split(changed, 0.2, "add_remove") != held).any()


def test_hashes_of_records_are_even():
    hashes = spending._hashes(table_of(20_000))
    distinct = np.unique(hashes)
    # About 3,700 different records; a bit of them is 1 for half, within six deviations.
    for bit in range(64):
        ones = ((distinct >> np.uint64(bit)) & np.uint64(1)).mean()
        assert abs(ones - 0.5) < 3 / np.sqrt(len(distinct))


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("share", [1e-9, 1 - 1e-9])
def test_a_split_has_two_sides(share, adjacency):
    with pytest.raises(InputError, match=r"--holdout .* must leave records on both sides; pass"):
        split(table_of(100), share, adjacency)


def test_a_run_is_charged_once_and_whole(tmp_path):
    shared = privfit.open_ledger(tmp_path / "budget.json", epsilon=1.5, delta=1e-6)
    run = RunLedger(1.0, 1e-6, shared)
    assert not run.charged
    with run.group("train"):
        run.reserve(1.0, 1e-6, "fit")
    with run.group("test"):
        run.reserve(1.0, 0.0, "accuracy")
    assert run.charged
    assert shared.entries == (("", "fit", privfit.Budget(1.0, 1e-6)),)
    with pytest.raises(privfit.BudgetError, match="'this run' asks for epsilon 1, delta 0"):
        RunLedger(1.0, 0.0, shared)


def test_a_run_that_the_shared_ledger_refuses_is_not_charged(tmp_path):
    shared = privfit.open_ledger(tmp_path / "budget.json", epsilon=1.0)
    first, second = RunLedger(1.0, 0.0, shared), RunLedger(1.0, 0.0, shared)
    first.reserve(1.0)
    with pytest.raises(privfit.BudgetError, match="epsilon 0, delta 0 left"):
        second.reserve(1.0)
    assert not second.charged


# ------------------------------------------------------------------------------------------- broken


def as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


SECRET = "Zyxw"
TABLES = {
    "no header": (people().partition("\n")[2], "has none of the columns of the schema"),
    "wrong target": (people().replace("rich", "poor"), "has no column 'rich'"),
    "unknown category": (people() + f"30,{SECRET},no\n", "column 'sex' has values that are not de"),
    "unknown label": (people() + f"30,f,{SECRET}\n", "column 'rich' has values that are not decl"),
    "missing label": (people() + "30,f,\n", "column 'rich' has values that are not declared"),
    "missing number": (people() + ",f,no\n", "column 'age' has missing values, or values that"),
    "text for a number": (people() + f"{SECRET},f,no\n", "column 'age' has missing values, or val"),
    "thousands": (people() + '"1,234",f,no\n', "without thousands separators"),
    "empty": ("", "is empty; pass a CSV file"),
    "header only": ("age,sex,rich\n", "has no records below its header"),
    "binary junk": (bytes(range(256)) * 100, "'people.csv' "),
    "long field": (people() + f"30,{'x' * 10**6},no\n", "column 'sex' has values"),
    "duplicate columns": (people().replace("sex", "age", 1), "has column 'age' more than once"),
    "shifted row": (people() + f"30,{SECRET},f,no\n", "column 'sex' has values that are not decl"),
    "short rows": (people() + "30,f\n", "column 'rich' has values that are not declared"),
    "empty line": (people() + "\n", "column 'age' has missing values, or values that are not"),
    "zero bytes": (people().replace("rich", "rich\0"), "contains zero bytes"),
    "latin-1": (people().replace("sex", "s\xfcx").encode("latin-1"), "is not UTF-8 text"),
    "truncated gzip": (gzip.compress(people().encode())[:-9], "truncated or damaged gzip file"),
    "wrong gzip": (b"\x1f\x8b\x08" + b"x" * 99, "truncated or damaged gzip file"),
    "open quote": (people() + '30,"f,no\n', "column 'sex' has values that are not declared"),
    "utf-16": (people().encode("utf-16"), "is UTF-16 text; pass --encoding utf-16, or save it"),
    "decimal commas": (
        people().replace(",", ";") + "3,5;f;no\n",
        "column 'age' has missing values",
    ),
    "dates": (people() + "2024-02-29,f,no\n", "column 'age' has missing values, or values that"),
    "a unit": (people() + "30 years,f,no\n", "column 'age' has missing values, or values that"),
    "spaces": (people() + "30, f,no\n", "column 'sex' has values that are not declared"),
    "another case": (people() + "30,F,no\n", "column 'sex' has values that are not declared"),
    "a database": (b"SQLite format 3\0" + b"x" * 99, "is a database; pass a query: --sql"),
    "a zip archive": (b"PK\x03\x04" + b"x" * 99, "is a zip archive, but no spreadsheet"),
    "truncated xz": (lzma.compress(people().encode())[:-40], "truncated or damaged"),
    "two mistakes": (
        people() + ",x,no\n",
        "column 'age' has missing values, or values that are not numbers; declare a replacement, "
        "fill = ... in its line of the schema, or write numbers as 1234.5, without thousands "
        "separators or units; pass --decimal ',' if they are written as 1234,5; column 'sex' has "
        "values that are not declared",
    ),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("what", TABLES)
@pytest.mark.parametrize("holdout", [[], ["--holdout", "0.2"]], ids=["", "holdout"])
def test_a_broken_table_costs_nothing(folder, run, what, holdout):
    content, sentence = TABLES[what]
    (folder / "people.csv").write_bytes(as_bytes(content))
    check_refused(folder, run, [*SHARED, *holdout], sentence)


def check_refused(folder, run, arguments, sentence, code=2):
    """One sentence on stderr, nothing written, nothing spent, nothing private said."""
    before = contents(folder)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith("privfit: error: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert len(err) < 600
    assert SECRET not in err
    assert contents(folder) == before


DRAFT = "[draft]\nread_from_data = true\n"
SCHEMAS = {
    "not TOML": ("age = = 3", "must be a TOML file; pass one that parses"),
    "latin-1": ("# \xfc".encode("latin-1"), "must be a TOML file"),
    "no columns": ("[data]\nlabel = 'rich'\n", "must be a table of declared columns"),
    "a wrong column": (SCHEMA.replace("high = 100", "hihg = 100"), "column 'age' "),
    "a wrong range": (SCHEMA.replace("high = 100", "high = -1"), "must be finite and increasing"),
    "a draft": (DRAFT + SCHEMA, "is a draft that was read from the data"),
    "data no table": ("data = 3\n" + SCHEMA.partition("\n\n")[2], "must be a table in"),
    "no label": (SCHEMA.replace("label", "labels"), "pass --target, or label ="),
    "no classes": (SCHEMA.replace("classes", "class"), "two or more different declared classes"),
    "lists of classes": (SCHEMA.replace('"no"', '["no"]'), "two or more different declared"),
    "classes twice": (SCHEMA.replace('"no"', '"yes"'), "two or more different declared classes"),
    "one class": (SCHEMA.replace('"no", ', ""), "two or more different declared classes"),
    "label alone": (SCHEMA.partition("age")[0] + "rich = {values = ['no', 'yes']}", "must declare"),
}  # fmt: skip


@pytest.mark.parametrize("what", SCHEMAS)
def test_a_wrong_schema_costs_nothing(folder, run, what):
    content, sentence = SCHEMAS[what]
    (folder / "schema.toml").write_bytes(as_bytes(content))
    check_refused(folder, run, SHARED, sentence)


def test_a_draft_is_taken_only_with_a_word_on_the_leak(folder, run):
    (folder / "schema.toml").write_text(DRAFT + SCHEMA)
    code, _, err = run(*FIT, "--accept-leak")
    assert code == 0
    assert err.startswith(
        "warning: --accept-leak: ranges and values read from the data are not covered"
    )


OPTIONS = {
    "epsilon 0": (
        ["--epsilon", "0"],
        "--epsilon ('0') must be a number from 1e-09 to 1e+06; pass",
        2,
    ),
    "epsilon below 0": (["--epsilon", "-1"], "--epsilon ('-1') must be a number", 2),
    "epsilon NaN": (["--epsilon", "nan"], "--epsilon ('nan') must be a number", 2),
    "epsilon infinite": (["--epsilon", "inf"], "--epsilon ('inf') must be a number", 2),
    "epsilon tiny": (["--epsilon", "1e-12"], "--epsilon ('1e-12') must be a number", 2),
    "epsilon a word": (["--epsilon", "one"], "--epsilon ('one') must be a number", 2),
    "epsilon without": (["--epsilon"], "privfit fit --help lists the options", 2),
    "no such option": (["--epsylon", "1"], "--epsylon 1; privfit --help lists the options", 2),
    "delta 1": (["--delta", "1"], "--delta ('1') must be a number from 0 to 0.5; pass", 2),
    "too much": (["--epsilon", "1.6"], "left of epsilon 1.5", 3),
    "too much delta": (["--delta", "1e-3"], "left of epsilon 1.5, delta 1e-06", 3),
    "solver": (["--solver", "magic"], "solver ('magic') must be one of local", 2),
    "holdout": (["--holdout", "2"], "--holdout (2.0) must lie between 0 and 1; pass a share", 2),
    "holdout NaN": (["--holdout", "nan", "--n-public", "9"], "--holdout (nan) must lie", 2),
    "trusted": (["--trusted-eval"], "needs held-out records; pass --holdout 0.2", 2),
    "seed": (["--seed", "-1"], "--seed (-1) must be 0 or more; pass a whole number", 2),
    "columns": (
        ["--columns", "shoe"],
        "--columns ('shoe') must be a declared column of 'schema.toml'",
        2,
    ),
    "n_public": (
        ["--adjacency", "add_remove", "--delta", "1e-6"],
        "--n-public must be given under --adjacency add_remove",
        2,
    ),
    "target": (["--target", "shoe"], "--target ('shoe') must have two or more different", 2),
    "delimiter": (["--delimiter", ",,"], "--delimiter (',,') must be one ASCII character", 2),
    "out a folder": (["--out", "."], "must be a file, not a folder or device", 2),
    "out a device": (["--out", "/dev/full"], "must be a file, not a folder or device", 2),
    "out nowhere": (
        ["--out", "no/model.json"],
        "'no/model.json' is in a folder that does not exist; create",
        2,
    ),
    "out below a file": (
        ["--out", "people.csv/m.json"],
        "'people.csv/m.json' is in a folder that does not exist",
        2,
    ),
    "out too long": (["--out", "m" * 300], "has a name that is too long; pass a shorter one", 2),
    "ledger missing": (["--ledger", "other.json"], "other.json", 2),
    "ledger damaged": (["--ledger", "people.csv"], "must be a budget file as privfit wrote it", 2),
    "ledger a folder": (["--ledger", "."], "must be a file, not a folder", 2),
    "schema missing": (["--schema", "no.toml"], "'no.toml' does not exist; pass the path", 2),
    "schema a folder": (["--schema", "."], "'.' is a directory; pass the path of a file", 2),
    "threads": (["--threads", "-3"], "--threads ('-3') must be a whole number from 1", 2),
    "target misspelt": (["--target", "rch"], "(did you mean 'rich'?) must have two or more", 2),
    "encoding": (["--encoding", "utf-7"], "--encoding ('utf-7') must be utf-8, utf-16", 2),
    "decimal": (["--decimal", ";"], "--decimal: invalid choice", 2),
    "sql of a table": (["--sql", "select 1"], "--sql needs a SQLite or DuckDB file", 2),
    "no header": (["--no-header"], "column 'age' must be called column_1, column_2, ...", 2),
    "roc": (["--roc"], "--roc needs held-out records; pass --holdout 0.2", 2),
}


def test_the_mistakes_of_a_first_day_are_many():
    assert len(TABLES) + len(SCHEMAS) + len(OPTIONS) >= 80


@pytest.mark.few(10)
@pytest.mark.parametrize("what", OPTIONS)
def test_a_wrong_option_costs_nothing(folder, run, what):
    options, sentence, code = OPTIONS[what]
    check_refused(folder, run, [*SHARED, *options], sentence, code)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [("no.csv", "'no.csv' does not exist"), (".", "'./budget.json' has none of the columns")],
)
def test_a_table_that_is_no_file_costs_nothing(folder, run, data, sentence):
    check_refused(folder, run, [SHARED[0], data, *SHARED[2:]], sentence)


def test_a_single_record_fits_and_cannot_be_split(folder, run):
    (folder / "people.csv").write_text("age,sex,rich\n30,f,no\n")
    check_refused(folder, run, [*SHARED, "--holdout", "0.2"], "must leave records on both sides")
    assert run(*SHARED)[0] == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "model.json"),
        ("junk", "model.json"),
        (bytes(range(256)), "model.json"),
        (None, "'model.json' does not exist"),
    ],
)
def test_a_broken_model_is_refused(folder, run, content, sentence):
    if content is not None:
        (folder / "model.json").write_bytes(as_bytes(content))
    for arguments in (
        ["show", "model.json"],
        ["predict", "model.json", "people.csv"],
        ROC,
    ):
        check_refused(folder, run, arguments, sentence)


def test_a_model_that_cost_more_than_it_says_is_refused(folder, run):
    assert run(*FIT)[0] == 0
    fields = json.loads((folder / "model.json").read_text())
    fields["release"]["events"][0]["count"] += 1
    (folder / "model.json").write_text(json.dumps(fields))
    check_refused(folder, run, ["show", "model.json"], "but its events cost")


def test_models_of_another_kind_are_refused(folder, run):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    privfit.save(privfit.KMeans(2, 1.0, domain=(-1, 1)).fit(X), "model.json")
    check_refused(folder, run, ["predict", "model.json", "people.csv"], "model of named columns")
    (folder / "s.toml").write_text("[columns]\nage = {low = 0, high = 100}\n")
    cluster = ["cluster", "people.csv", "--schema", "s.toml", "--clusters", "2", "--epsilon", "1"]
    assert run(*cluster, "--out", "model.json")[0] == 0
    check_refused(folder, run, ROC, "must be a linear classifier with two classes")
    privfit.save(privfit.HashWords(64), "model.json")
    check_refused(folder, run, ["show", "model.json"], "contains no release; pass a fitted model")


def test_the_positive_class_is_one_of_the_model(folder, run):
    assert run(*FIT)[0] == 0
    check_refused(
        folder, run, [*ROC, "--positive", "maybe"], "--positive ('maybe') must be a class"
    )


# ------------------------------------------------------------------- permissions, disks and signals


AS_NOBODY = """
import contextlib, io, json, os, sys
from privfit.commands.main import main

ready, *folders = sys.argv[1:]
os.chdir(ready)
assert main([*ARGUMENTS, "--quiet"]) == 0  # loads all of Python, which root may own
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for folder in folders:
    os.chdir(folder)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(ARGUMENTS)
    print(json.dumps([code, said.getvalue()]))
"""


@pytest.mark.slow
def test_without_permission_nothing_is_spent():
    """As a user who owns nothing: an unreadable file, a folder or model that may not be written."""
    modes = {"people.csv": 0, "schema.toml": 0, "budget.json": 0, ".": 0o555, "model.json": 0o444}
    with tempfile.TemporaryDirectory() as name:
        folders = [fill(Path(name) / "ready"), *(fill(Path(name) / f"{i}") for i in range(5))]
        Path(name).chmod(0o755)
        for folder, (forbidden, mode) in zip(folders[1:], modes.items(), strict=True):
            folder.chmod(0o777)
            if forbidden == "model.json":
                (folder / forbidden).write_text("mine")
            (folder / forbidden).chmod(mode)
        before = [contents(folder) for folder in folders[1:]] if os.geteuid() == 0 else None
        done = subprocess.run(
            [sys.executable, "-c", f"ARGUMENTS = {SHARED}\n{AS_NOBODY}", *map(str, folders)],
            env={**os.environ, "PYTHONPATH": str(INSTALLED)}, capture_output=True, text=True,
            timeout=600, check=False, cwd=Path(__file__).parent,
        )  # fmt: skip
        after = [contents(folder) for folder in folders[1:]] if os.geteuid() == 0 else None
    assert (done.returncode, done.stderr) == (0, "")
    for code, said in map(json.loads, done.stdout.splitlines()):
        assert code == 2
        assert re.fullmatch("privfit: error: .*(cannot be accessed|Permission denied).*\n", said)
    assert done.stdout.count("\n") == len(modes)
    assert after == before


@pytest.mark.slow
def test_a_full_disk_is_found_before_anything_is_spent(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    before = contents(folder)
    done = shell(*SHARED, folder=folder, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'model.json' would exceed the file size limit" in done.stderr
    assert contents(folder) == before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_stdout_is_told(folder):
    with open("/dev/full", "w") as full:
        done = shell("schema", "people.csv", folder=folder, stdout=full)
    assert done.returncode == 2
    assert "the output is on a full disk; free some space" in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(folder, run):
    assert run(*FIT)[0] == 0
    (folder / "people.csv").write_text(people(60_000))
    process = subprocess.Popen(
        [sys.executable, "-m", "privfit", "predict", "model.json", "people.csv"],
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "prediction\n"
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


INTERRUPTED = """
import os, signal, sys
from privfit.commands.main import main
from privfit.privacy.ledger import Grant

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
release, calls = Grant.release, []

def interrupted(*arguments):
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return release(*arguments)

Grant.release = interrupted
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_an_interrupt_leaves_the_charge_in_the_file(folder):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *SHARED, "--solver", "local"],
        env={**os.environ, "PYTHONPATH": str(INSTALLED)}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    said = "privfit: error: interrupted; epsilon 1, delta 0 was charged and stays spent\n"
    assert done.stderr == said
    assert privfit.open_ledger("budget.json").spent.epsilon == 1.0
    assert sorted(contents(folder)) == ["budget.json", "people.csv", "schema.toml"]


@pytest.mark.slow
def test_two_runs_at_once_share_one_budget(folder):
    """The file has 1.5, and each run asks for 1."""
    command = [sys.executable, "-m", "privfit", *SHARED, "--out"]
    runs = [
        subprocess.Popen([*command, f"{i}.json"], env={**os.environ, "PYTHONPATH": str(INSTALLED)},
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for i in range(2)
    ]  # fmt: skip
    assert sorted(run.wait(120) for run in runs) == [0, 3]
    assert privfit.open_ledger("budget.json").spent.epsilon == 1.0
    assert len(list(folder.glob("?.json"))) == 1


def test_an_interrupt_before_the_charge_spends_nothing(folder, run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(privfit.LogisticRegression, "fit", interrupt)
    check_refused(folder, run, SHARED, "interrupted; nothing was spent", 130)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_before_the_charge_spends_nothing(folder, run, monkeypatch, name, code):
    number = getattr(signal, name)

    def told(*_):
        os.kill(os.getpid(), number)
        raise AssertionError("a signal was not heard")

    monkeypatch.setattr(privfit.LogisticRegression, "fit", told)
    before = signal.signal(number, signal.SIG_DFL)  # tests may run under nohup
    try:
        check_refused(folder, run, SHARED, f"stopped by {name}; nothing was spent", code)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_after_the_charge_says_what_was_charged(folder, monkeypatch, name, code):
    """A program that would search for minutes is stopped once its budget file has the charge."""
    slowly = (
        "import signal, sys, time; from privfit.runs.run import Run; from privfit.commands.main "
        "import main; Run.report = lambda *_, **__: time.sleep(600); "
        f"signal.signal(signal.{name}, signal.SIG_DFL); sys.exit(main())"  # despite nohup
    )
    command = [sys.executable, "-c", slowly, *SHARED, "--solver", "eem"]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(INSTALLED)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:  # fmt: skip
        while program.poll() is None and not privfit.open_ledger("budget.json").spent.epsilon:
            time.sleep(0.05)
        program.send_signal(getattr(signal, name))
        try:
            out, err = program.communicate(timeout=120)
        finally:
            program.kill()
    assert (program.returncode, out) == (code, "")
    assert err.splitlines()[-1] == (
        f"privfit: error: stopped by {name}; epsilon 1, delta 0 was charged and stays spent"
    )
    assert {*contents(folder)} == {"people.csv", "schema.toml", "budget.json"}
    assert privfit.open_ledger("budget.json").spent.epsilon == 1.0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_signal_that_is_ignored_stays_ignored(folder, run, monkeypatch):
    """As nohup asks for."""
    fit = privfit.LogisticRegression.fit

    def told(*arguments):
        os.kill(os.getpid(), signal.SIGHUP)
        return fit(*arguments)

    monkeypatch.setattr(privfit.LogisticRegression, "fit", told)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(*SHARED)[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_fault_after_the_charge_says_what_was_charged(folder, run, monkeypatch):
    from privfit.models import model

    def fail(_):
        raise ValueError(SECRET)

    monkeypatch.setattr(model, "dumps", fail)
    code, out, err = run(*SHARED)
    assert (code, out) == (4, "")
    assert err.startswith("privfit: error: ValueError inside privfit; its text is withheld")
    assert err.endswith("; epsilon 1, delta 0 was charged and stays spent\n")
    assert SECRET not in err
    assert not (folder / "model.json").exists()
    assert privfit.open_ledger("budget.json").spent.epsilon == 1.0


def test_debug_shows_tracebacks_with_a_word_of_warning(folder, run, monkeypatch):
    def fail(*_):
        raise ValueError(SECRET)

    monkeypatch.setattr(privfit.LogisticRegression, "fit", fail)
    code, _, err = run(*FIT, "--debug")
    assert code == 1
    assert err.startswith("debug: the traceback below may show private values\nTraceback")
    assert SECRET in err
    code, _, err = run(*FIT)
    assert (code, err.count("\n")) == (1, 1)
    assert SECRET not in err


# ------------------------------------------------------------------------------------------ outputs


@pytest.mark.parametrize("path", ["people.csv", "./people.csv", "schema.toml", "budget.json"])
def test_an_output_replaces_no_input(folder, run, path):
    check_refused(folder, run, [*SHARED, "--out", path], "must not be another input or output")


def test_an_output_replaces_no_other_output_nor_what_a_link_leads_to(folder, run):
    (folder / "link.png").symlink_to("people.csv")
    sweep = [*SWEEP, "--public", "--plot"]
    for plot in ("sweep.json", "link.png"):
        check_refused(
            folder, run, [*sweep, plot], f"--plot ('{plot}') must not be another input or output"
        )


def test_a_claim_replaces_a_file_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    path.chmod(0o640)
    with claim(str(path)) as out:
        assert path.read_text() == "old"
        out.write("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["model.json"]


def test_a_claim_that_is_not_used_leaves_nothing(tmp_path):
    with claim(str(tmp_path / "model.json")):
        assert len(os.listdir(tmp_path)) == 1
    assert os.listdir(tmp_path) == []


def test_a_claim_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "read-only", "another name")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)  # as a read-only disk does
    with pytest.raises(OSError, match=r"'model\.json'"), claim("model.json"):
        pass  # pragma: no cover


def test_a_claim_has_room_for_its_numbers(tmp_path):
    with claim(str(tmp_path / "model.json"), numbers=50_000) as out:
        (temporary,) = tmp_path.iterdir()
        assert temporary.stat().st_size > 50_000 * len(f"{-1 / 3!r}, ") + 500_000
        out.write("small")
    assert (tmp_path / "model.json").read_text() == "small"


def test_a_claim_follows_links(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with claim(str(tmp_path / "link")) as out:
        out.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


# ------------------------------------------------------------------------------- the other commands


def test_clusters_of_real_points(data_folder, tmp_path, run):
    (tmp_path / "s1.toml").write_text(
        "[columns]\nx = {low = 0, high = 1000000}\ny = {low = 0, high = 1000000}\n"
    )
    path = data_folder / "s1.csv.gz"
    code, out, err = run(
        "cluster", path, "--schema", tmp_path / "s1.toml", "--clusters", 15, "--epsilon", 1,
        "--out", tmp_path / "c.json", "--plot", tmp_path / "c.png", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["columns"] == ["x", "y"]
    points = np.loadtxt(path, delimiter=",", skiprows=1)
    centres = np.array([points[points[:, 2] == k, :2].mean(axis=0) for k in range(1, 16)])
    apart = np.linalg.norm(centres[:, None] - np.array(found["centres"]), axis=2)
    # In each of twelve runs all 15 true centres had a found one within 4 % of the range.
    assert (apart.min(axis=1) < 40_000).sum() >= 10
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "centre" in run("show", tmp_path / "c.json")[1]
    code, out, _ = run("predict", tmp_path / "c.json", path)
    assert len(out.splitlines()) == 5001


def test_clusters_are_postprocessed(folder, run):
    cluster = ["cluster", "people.csv", "--schema", "schema.toml", "--columns", "age",
               "--clusters", "2", "--epsilon", "1", "--out", "c.json"]  # fmt: skip
    code, out, _ = run(*cluster, "--postprocess", "mcmc")
    assert code == 0
    assert out.startswith("c.json: 2 centres, epsilon 1, delta 0, replace\n\ncentre")
    drawn = [*cluster, "--columns", "age", "sex", "--plot", "c.gif"]
    check_refused(folder, run, drawn, "must end in .png, .svg or .pdf")


def test_a_picture_needs_matplotlib(folder, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = ["budget", "--ledger", "budget.json", "--plot", "b.png"]
    check_refused(folder, run, arguments, 'a plot needs matplotlib; run pip install "')


def test_a_fit_and_its_file_draw_the_same_shapes(folder, run):
    pytest.importorskip("matplotlib")
    code, _, err = run(*FIT, "--delta", "1e-6", "--plot", "fit.png")
    assert (code, err) == (0, "")
    drawn = (folder / "fit.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    code, out, err = run("show", "model.json", "--plot", "show.png")
    assert (code, err) == (0, "")
    assert out == run("show", "model.json")[1]
    assert (folder / "show.png").read_bytes() == drawn


def test_show_draws_centres_and_curves(folder, run):
    pytest.importorskip("matplotlib")
    assert run(*FIT)[0] == 0
    assert run(*ROC, "--out", "roc.json")[0] == 0
    assert run("cluster", "people.csv", "--schema", "schema.toml", "--clusters", "2", "--epsilon",
               "1", "--out", "c.json", "--plot", "c.png")[0] == 0  # fmt: skip
    for name in ("roc", "c"):
        assert run("show", f"{name}.json", "--plot", f"{name}.svg")[0] == 0
        assert b"<svg" in (folder / f"{name}.svg").read_bytes()


def test_show_says_what_it_cannot_draw_and_writes_nothing(folder, run):
    pytest.importorskip("matplotlib")
    table = privfit.confusion_matrix([0, 1, 1, 0], [0, 1, 0, 0], 1.0)
    privfit.save(table, folder / "table.json")
    arguments = ["show", "table.json", "--plot", "table.png"]
    check_refused(
        folder, run, arguments,
        "--plot draws classifiers, clusters and curves, and no ConfusionMatrix; leave it out",
    )  # fmt: skip
    assert run(*FIT)[0] == 0
    check_refused(
        folder, run, ["show", "model.json", "--plot", "model.json"], "must not be another input"
    )
    check_refused(folder, run, [*FIT, "--plot", "p.gif"], "must end in .png, .svg or .pdf")


def test_a_budget_file_is_made_and_shown(folder, run):
    create = ["budget", "--ledger", "new.json", "--create", "--epsilon", "2", "--delta", "1e-5"]
    assert run(*create)[0] == 0
    assert run(*SHARED[:-1], "new.json")[0] == 0
    code, out, _ = run("budget", "--ledger", "new.json", "--plot", "b.png")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines == [
        ["new.json", "records", "epsilon", "delta"],
        ["LogisticRegression", "all", "1", "0"],
        ["spent", "all", "1", "0"],
        ["left", "all", "1", "1e-05"],
        ["budget", "all", "2", "1e-05"],
        ["neighbours:", "replace,", "at", "most", "1", "row(s)", "per", "person"],
    ]
    drawn = (folder / "b.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert b"Matplotlib" not in drawn


def test_the_log_says_who_reserved_what_and_when(folder, run, monkeypatch):
    monkeypatch.setattr("privfit.privacy.reservations.who", lambda: ("ada", "engine"))
    assert run(*SHARED)[0] == 0
    privfit.open_ledger("budget.json").reserve(0.25, name="by hand")
    code, out, _ = run("budget", "--ledger", "budget.json", "--log", "--json")
    fit, other = json.loads(out)["entries"]
    assert code == 0
    assert (fit["user"], fit["host"], fit["version"]) == ("ada", "engine", privfit.__version__)
    assert (fit["model"], fit["state"], fit["part"]) == ("model.json", "finished", 0)
    assert (other["model"], other["state"]) == ("", "reserved")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", fit["time"])
    code, out, _ = run("budget", "--ledger", "budget.json", "--log")
    head, *rows = [line.split() for line in out.splitlines()[-3:]]
    assert head == ["name", "time", "run", "part", "user", "host", "version", "model", "state"]
    assert rows[0][:2] == ["LogisticRegression", fit["time"]]
    assert rows[0][-2:] == ["model.json", "finished"]
    assert rows[1][-2:] == ["-", "reserved"]


def test_the_time_of_a_run_is_taken_before_its_records_are_read(folder, run, monkeypatch):
    """Reading takes an hour here, which the entry must not show."""
    from privfit.commands import fit as command

    clock, read = ["2026-01-01T10:00Z"], command.read_records

    def slowly(*arguments):
        clock[0] = "2026-01-01T11:00Z"
        return read(*arguments)

    monkeypatch.setattr("privfit.privacy.budget_file.now", lambda: clock[0])
    monkeypatch.setattr(command, "read_records", slowly)
    assert run(*SHARED)[0] == 0
    assert clock[0] == "2026-01-01T11:00Z"
    [charge] = privfit.open_ledger("budget.json").charges
    assert charge.reservation.time == "2026-01-01T10:00Z"


def test_entries_of_an_earlier_version_are_logged_without_what_they_lack(folder, run):
    fields = {"privfit": 2, "id": "x", "epsilon": 1.0, "delta": 0.0, "adjacency": "replace",
              "max_rows": 1, "releases": [],
              "entries": [{"group": "", "name": "old", "epsilon": 0.5, "delta": 0.0,
                           "adjacency": "replace"}]}  # fmt: skip
    (folder / "old.json").write_text(json.dumps(fields))
    code, out, _ = run("budget", "--ledger", "old.json", "--log")
    assert code == 0
    assert out.splitlines()[-1].split() == ["old", *["-"] * 8]
    assert json.loads((folder / "old.json").read_text()) == fields  # to look changes nothing


def test_a_picture_by_name_has_one_bar_for_each(folder, run, monkeypatch):
    from privfit.commands import budget as command

    drawn, draw = [], command.plotting.draw_budget
    monkeypatch.setattr(
        command.plotting,
        "draw_budget",
        lambda ledger, ax: (drawn.append(ledger), draw(ledger, ax))[1],
    )
    ledger = privfit.open_ledger("budget.json")
    for name, epsilon in [("a", 0.1), ("b", 0.5), ("a", 0.2)]:
        ledger.reserve(epsilon, name=name)
    arguments = ["budget", "--ledger", "budget.json", "--plot", "b.png"]
    assert run(*arguments)[0] == run(*arguments, "--by-name")[0] == 0
    assert [[(name, cost.epsilon) for _, name, cost in one.entries] for one in drawn] == [
        [("a", 0.1), ("b", 0.5), ("a", 0.2)], [("a", 0.3), ("b", 0.5)],
    ]  # fmt: skip
    assert (folder / "b.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_renews_shows_the_present_period(folder, run, monkeypatch):
    clock = ["2026-01-31T23:59Z"]
    monkeypatch.setattr("privfit.privacy.budget_file.now", lambda: clock[0])
    create = ["budget", "--ledger", "new.json", "--create", "--epsilon", "1", "--delta", "0"]
    assert run(*create, "--renewal", "month")[0] == 0
    privfit.open_ledger("new.json").reserve(0.75, name="january")
    code, out, _ = run("budget", "--ledger", "new.json")
    assert ["left", "all", "0.25", "0"] in [line.split() for line in out.splitlines()]
    clock[0] = "2026-02-01T00:00Z"
    code, out, _ = run("budget", "--ledger", "new.json", "--json")
    shown = json.loads(out)
    assert (code, shown["renewal"], shown["period"]) == (0, "month", "2026-02")
    assert (shown["spent"]["epsilon"], shown["left"]["epsilon"]) == (0.0, 1.0)
    assert len(shown["entries"]) == 1
    code, out, _ = run("budget", "--ledger", "new.json")
    assert "renewal: each month; spent and left are those of 2026-02, and periods add up" in out


def test_a_budget_file_names_its_relation_and_what_was_converted(folder, run):
    create = ["budget", "--ledger", "new.json", "--create", "--epsilon", "2"]
    code, out, _ = run(*create, "--delta", "0", "--adjacency", "replace", "--json")
    assert (code, json.loads(out)["adjacency"], json.loads(out)["max_rows"]) == (0, "replace", 1)
    spend = [*SHARED[:-1], "new.json", "--adjacency", "add_remove", "--n-public", "500", "--json"]
    code, out, _ = run(*spend)
    ledger = json.loads(out)["ledger"]
    assert (code, ledger["adjacency"], ledger["charged"]["epsilon"]) == (0, "add_remove", 1.0)
    assert ledger["remaining"] == {"epsilon": 0.0, "delta": 0.0}
    code, out, _ = run("budget", "--ledger", "new.json")
    assert out.splitlines()[-2:] == [
        "neighbours: replace, at most 1 row(s) per person",
        "LogisticRegression: epsilon 1, delta 0 under add_remove, converted",
    ]
    code, _, err = run("budget", "--ledger", "new.json", "--adjacency", "add_remove")
    assert (code, "must be that of the budget file, 'replace'" in err) == (2, True)


def test_a_run_that_the_relation_of_the_file_refuses_is_not_charged(folder, run):
    privfit.open_ledger("counts.json", 2.0, 1e-6, "add_remove")
    check_refused(folder, run, [*SHARED[:-1], "counts.json"], "is under 'replace', which has no", 3)
    assert privfit.open_ledger("counts.json").entries == ()


SWEEP = ["sweep", "people.csv", "--schema", "schema.toml", "--epsilons", "0.1", "10", "--splits",
         "2", "--out", "sweep.json"]  # fmt: skip


def test_a_sweep_asks_for_public_records(folder, run):
    check_refused(
        folder, run, SWEEP, "prints exact accuracies, which are not private; pass --public"
    )
    code, out, err = run(*SWEEP, "--public", "--plot", "sweep.png")
    assert (code, err) == (0, "")
    assert "not private" in out
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads((folder / "sweep.json").read_text())
    assert found["epsilons"] == [0.1, 10.0]
    code, out, _ = run(*SWEEP, "--public", "--resume", "--splits", "3", "--json")
    assert code == 0
    again = json.loads((folder / "sweep.json").read_text())
    assert [trial for trial in again["trials"] if trial["seed"] < 2] == found["trials"]
    assert [row["epsilon"] for row in json.loads(out)["rows"]] == [0.1, 10.0]


@pytest.mark.parametrize("content", [b"\xff\xfe junk", b"[" * 100_000, b"{}", b"3"])
def test_a_sweep_goes_on_with_nothing_but_a_sweep(folder, run, content):
    (folder / "sweep.json").write_bytes(content)
    resumed = [*SWEEP, "--public", "--resume"]
    check_refused(folder, run, resumed, "text must be JSON written by Sweep.to_json")


def test_an_interrupted_sweep_keeps_its_trials(folder, run, monkeypatch):
    from privfit import LogisticRegression

    fit, calls = LogisticRegression.fit, []

    def interrupted(self, X, y):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(self, X, y)

    monkeypatch.setattr(LogisticRegression, "fit", interrupted)
    assert run(*SWEEP, "--public")[0] == 130
    assert len(json.loads((folder / "sweep.json").read_text())["trials"]) > 2


# ------------------------------------------------------------------------------------------- drafts


def drafted(run, *arguments):
    code, out, err = run("schema", "people.csv", *arguments)
    assert code == 0
    Path("draft.toml").write_text(out)
    return out, err, Schema.from_toml("draft.toml")


def test_a_draft_tells_types_ranges_and_categories(folder, run):
    rows = [f"{i},{i % 7 / 2},{'xyz'[i % 3]},{'?' if i % 9 else 5},name {i},same,{i % 2}"
            for i in range(200)]  # fmt: skip
    head = "id,size,kind,holes,text,constant,label"
    (folder / "people.csv").write_text("\n".join([head, *rows, "200,9,,5,name 200,same,1"]) + "\n")
    out, err, schema = drafted(run, "--target", "label")
    assert schema.columns == {
        "size": Numeric(0, 9),
        "kind": Categorical(["x", "y", "z"], other=True),
    }
    assert 'label = "label"\nclasses = [0, 1]\n' in out
    assert '# "id" is left out: it looks like an identifier\n' in out
    assert '# "text" is left out: it looks like an identifier' in out
    assert "left out 'holes': it has the same value in all records" in err
    assert "read_from_data = true" in out
    assert out.endswith('"constant" is left out: it has the same value in all records\n')


def test_a_draft_declares_what_stands_for_missing_values(folder, run):
    (folder / "people.csv").write_text("a,b\n1, x\n?,y\n4.5, NA\n,x\n")
    out, _, schema = drafted(run)
    assert '\nmissing = ["", " NA", "?"]\n' in out
    assert schema.missing == ("", " NA", "?")
    assert schema.columns["b"] == Categorical([" x", "x", "y"], other=True)  # spaces are kept
    (folder / "people.csv").write_text("a,b\n1,x\n2,y\n")
    assert '\nmissing = [""]\n' in drafted(run)[0]


def test_a_draft_has_one_spelling_of_each_value_and_ranges_that_can_be_read(folder, run):
    rows = [
        f"{['1', '1.0', 'x', 9**17][i % 4]},{1_700_000_000 + i % 50},{i % 5}" for i in range(90)
    ]
    (folder / "people.csv").write_text("\n".join(["a,when,b", *rows]) + "\n")
    _, err, schema = drafted(run)
    assert schema.columns == {"a": Categorical(["1", "x"], other=True), "b": Numeric(0, 4)}
    assert (
        "left out 'when': its numbers differ too little relative to their size; subtract an" in err
    )


def test_a_draft_fills_missing_numbers(folder, run):
    (folder / "people.csv").write_text("a,b\n1,x\n,y\n4.5,x\n")
    assert drafted(run)[2].columns["a"] == Numeric(1, 4.5, fill=2.75)


def test_free_text_is_left_out_of_a_draft(data_folder, folder, run):
    path = data_folder / "sms_spam.csv.gz"
    code, out, err = run("schema", path, "--target", "label")
    assert (code, out) == (2, "")
    assert "has no column of numbers or categories to draft" in err
    code, out, err = run("schema", path, "--out", "draft.toml")
    assert code == 0
    assert "left out 'text': it looks like free text, with many (over 100) or long values" in err
    assert Schema.from_toml("draft.toml").columns == {"label": Categorical(["ham", "spam"])}


def test_awkward_names_and_values_are_drafted(folder, run):
    (folder / "people.csv").write_text('"a ""b"".c",d\n"x ""1""",1\n"\u00fc\\",2\n')
    columns = drafted(run)[2].columns
    assert columns == {'a "b".c': Categorical(['x "1"', "\u00fc\\"]), "d": Numeric(1, 2)}


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        (f"1,{SECRET}\n2,m\n", [], "must have a header line"),
        (f"a,\n{SECRET},m\n", [], "has no column of numbers or categories"),
        (f"{SECRET},{SECRET}\n1,2\n", [], "has a column more than once"),
        ("a,b\n1,2\n", ["--target", "c"], "--target ('c') must be a column of 'people.csv'"),
        ("a,b\n1,2\n3,2\n", ["--target", "b"], "must have between 2 and 100 classes in the data"),
        ("a\n,\n", [], "has no column of numbers or categories"),
        ("a,b\n", [], "has no records below its header"),
        ("", [], "is empty"),
    ],
)
def test_what_cannot_be_drafted_is_refused(folder, run, content, options, sentence):
    (folder / "people.csv").write_text(content)
    check_refused(folder, run, ["schema", "people.csv", *options], sentence)


@pytest.mark.slow
def test_a_header_of_very_many_columns_is_read_at_once(folder):
    names = [f"c{j}" for j in range(100_000)]  # looking for each among all takes half an hour
    (folder / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    done = shell("schema", "wide.csv", folder=folder)  # with a limit against hanging
    assert done.returncode == 2
    assert "has no column of numbers or categories" in done.stderr


def test_columns_without_a_name_are_left_out_of_a_draft(folder, run):
    lines = people().splitlines()
    numbered = "\n".join([f",{lines[0]},", *(f"{i},{line}," for i, line in enumerate(lines[1:]))])
    (folder / "numbered.csv").write_text(numbered)  # as data frames are written; and a last comma
    assert run("schema", "numbered.csv") == run("schema", "people.csv")
    (folder / "unnamed.csv").write_text(";;;\n" + people().replace(",", ";"))
    check_refused(folder, run, ["schema", "unnamed.csv"], "must have a header line")


def test_long_texts_and_separated_thousands_are_left_out_of_a_draft(folder, run):
    rows = [f'{i % 7},"{i % 5 + 1},000",{"x" * 10**6 if i == 9 else "y"}' for i in range(50)]
    (folder / "odd.csv").write_text("\n".join(["a,income,note", *rows]))
    code, out, err = run("schema", "odd.csv")
    assert code == 0
    assert len(out) < 2_000
    assert "left out 'income': it has numbers with thousands separators; write them as" in err
    assert "left out 'note': it looks like free text" in err


def test_a_draft_asks_whether_few_whole_numbers_are_codes(folder, run):
    rows = [f"{i % 4 + 1},{i % 30},{i % 2}" for i in range(90)]
    (folder / "codes.csv").write_text("\n".join(["education,age,flag", *rows]))
    lines = run("schema", "codes.csv")[1].splitlines()
    assert "education = {low = 1, high = 4}" in lines
    assert lines[-1] == "# education = {values = [1, 2, 3, 4]}"
    assert "codes" in lines[-2]


def test_more_clusters_than_records_are_refused(folder, run):
    command = ["cluster", "people.csv", "--schema", "schema.toml", "--epsilon", "1"]
    command += ["--ledger", "budget.json", "--out", "centres.json", "--clusters"]
    check_refused(folder, run, [*command, "601"], "--clusters (601) must be at most the number")
    check_refused(folder, run, [*command, "0"], "--clusters ('0') must be a whole number from 1")


AUTO = ["cluster", "people.csv", "--schema", "schema.toml", "--columns", "age", "--epsilon", "1",
        "--delta", "1e-6", "--ledger", "budget.json", "--out", "c.json", "--clusters"]  # fmt: skip


def test_the_number_of_clusters_is_chosen_with_a_part_of_the_budget(folder, run):
    pytest.importorskip("matplotlib")
    command = [*AUTO, "auto", "--plot-costs", "costs.png", "--seed", "1", "--json"]
    code, out, _ = run(*command)
    assert code == 0
    model = privfit.load(folder / "c.json")
    assert 2 <= model.n_clusters <= 20
    assert len(json.loads(out)["centres"]) == model.n_clusters
    assert model.epsilon == pytest.approx(0.7)
    assert (folder / "costs.png").read_bytes().startswith(b"\x89PNG")
    shown = json.loads(run("budget", "--ledger", "budget.json", "--json")[1])
    assert [entry["epsilon"] for entry in shown["entries"]] == [1.0]


def test_blank_columns_of_clusters_are_bought(folder, run):
    (folder / "blank.toml").write_text(
        '[columns]\nage = {kind = "number"}\nsex = {kind = "category"}\n'
    )
    code, _, err = run("cluster", "people.csv", "--schema", "blank.toml", "--clusters", "2",
                       "--epsilon", "2", "--out", "b.json")  # fmt: skip
    assert (code, err) == (0, "")
    model = privfit.load(folder / "b.json")
    assert model.domain_.columns["age"].has_range
    assert "blanks" in model.release_.settings
    assert run("show", "b.json")[0] == 0


def test_what_cannot_be_chosen_or_drawn_is_refused_before_the_charge(folder, run):
    check_refused(folder, run, [*AUTO, "3", "--plot-costs", "p.png"],
                  "--plot-costs is for --clusters auto; pass that, or leave it out")  # fmt: skip
    (folder / "places.csv").write_text("age\n10\n20\n")
    places = [*AUTO, "auto", "--places", "places.csv"]
    check_refused(folder, run, places, "--clusters auto is for k-means; pass a number, or leave")
    check_refused(folder, run, [*AUTO, "many"], "--clusters ('many') must be a whole number from 1")


PLACES = ["cluster", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--clusters", "2",
          "--places", "places.csv", "--ledger", "budget.json", "--out", "c.json"]  # fmt: skip


def test_centres_are_chosen_among_public_places(folder, run):
    places = [f"{age},{sex}" for age in range(0, 101, 10) for sex in "fm"]
    (folder / "places.csv").write_text("\n".join(["age,sex", *places]) + "\n")
    code, out, _ = run(*PLACES, "--plot", "c.png", "--json", "--seed", "1")
    assert code == 0
    found = json.loads(out)
    assert found["columns"] == ["age", "sex=f", "sex=m"]
    centres = np.array(found["centres"])
    assert (np.abs(centres[:, 0] - np.round(centres[:, 0], -1)) < 0.1).all()  # on the grid
    assert sorted(centres[:, 1].tolist()) == [0, 1]  # of 600 people, one place for each sex
    assert np.abs(centres[:, 0] - 50).max() < 25
    assert run("show", "c.json")[1].startswith("c.json: KMedian\n")
    assert len(run("predict", "c.json", "people.csv")[1].splitlines()) == 601


def test_wrong_places_cost_nothing(folder, run):
    (folder / "places.csv").write_text("age,sex\n10,f\n")
    check_refused(folder, run, PLACES, "must be at most the number of places (1); pass fewer")
    check_refused(folder, run, [*PLACES, "--postprocess", "mcmc"], "--postprocess is for k-means")
    check_refused(
        folder, run, [*PLACES, "--out", "places.csv"], "must not be another input or output"
    )
    (folder / "places.csv").write_text("age\n10\n")
    check_refused(folder, run, PLACES, "'places.csv' has no column 'sex'")


def test_a_picture_of_one_column_is_refused_before_the_charge(folder, run):
    command = ["cluster", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--clusters"]
    command += ["2", "--ledger", "budget.json", "--out", "c.json", "--plot", "c.png", "--columns"]
    check_refused(folder, run, [*command, "age"], "--plot needs two columns; pass more --columns")


@pytest.mark.parametrize("watched", [True, False])
def test_who_waits_for_a_large_table_sees_how_far_it_is_read(folder, run, monkeypatch, watched):
    monkeypatch.setattr(tables, "LARGE", 1000)
    monkeypatch.setattr(Console, "watched", watched)
    code, _, err = run(*FIT)
    assert code == 0
    assert ("reading" in err) is watched


def test_a_missing_budget_file_tells_how_to_start_one(folder, run):
    for command in (["budget"], FIT):
        check_refused(folder, run, [*command, "--ledger", "no.json"], "budget --create --ledger")


def test_a_budget_of_nothing_is_not_started(folder, run):
    start = ["budget", "--create", "--ledger", "new.json", "--epsilon"]
    for epsilon in ("0", "nan", "1e9"):
        check_refused(folder, run, [*start, epsilon], f"--epsilon ('{epsilon}') must be a number")


@pytest.mark.slow
def test_help_loads_no_numerical_library_that_it_can_do_without(fresh_python):
    names = "'scipy.special', 'sklearn', 'matplotlib', 'pandas', 'pyarrow'"
    code = f"import sys, privfit.commands.main; print([m for m in ({names}) if m in sys.modules])"
    done = fresh_python(code)
    assert done.stdout.strip() == "[]"
