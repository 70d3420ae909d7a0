"""``privfit report``: a file from files, or one sentence, and nothing spent either way."""

from __future__ import annotations

import json

import numpy as np
import pytest
from makers.markup import assert_harmless

import privfit
from privfit import KMeans, LogisticRegression, Numeric, Schema, confusion_matrix, roc_curve
from privfit.commands.main import main

X = np.random.default_rng(0).uniform(0, 10, (800, 2))
TABLE = {"x": X[:, 0], "y": X[:, 1]}
LABEL = X[:, 0] > 5
SCHEMA = Schema({"x": Numeric(0, 10), "y": Numeric(0, 10)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    ledger = privfit.open_ledger(folder / "budget.json", 3.0, 1e-6)
    model = LogisticRegression(1.0, domain=SCHEMA, classes=[False, True], ledger=ledger)
    scores = model.fit(TABLE, LABEL).predict_proba(TABLE)[:, 1]
    curve = roc_curve(LABEL, scores, 1.0, pos_label=True, ledger=ledger)
    matrix = confusion_matrix(LABEL, scores, 1.0, pos_label=True, ledger=ledger)
    clusters = KMeans(2, 1.0, domain=SCHEMA).fit(TABLE)
    made = {"model": model, "curve": curve, "matrix": matrix, "clusters": clusters}
    for name, one in made.items():
        privfit.save(one, folder / f"{name}.json")
    return folder


def test_a_report_has_what_its_files_hold(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(files)
    out, before = tmp_path / "report.html", (files / "budget.json").read_bytes()
    more = ["--curve", "curve.json", "--accuracy", "matrix.json", "--ledger", "budget.json",
            "--title", "Who & why", "--date", "2026-11-18"]  # fmt: skip
    assert main(["report", "model.json", "-o", str(out), *more]) == 0
    assert "report on model.json" in capsys.readouterr().out
    page = assert_harmless(out.read_text(encoding="utf-8"))
    for text in ("Who & why", "2026-11-18", "predicted correctly", "Ledger, replace", "SHA-256"):
        assert text in page.text
    assert (files / "budget.json").read_bytes() == before
    assert main(["report", "clusters.json", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == str(out)


@pytest.mark.parametrize(("arguments", "message"), [
    (["missing.json", "-o", "out.html"], "'missing.json' does not exist; pass the path"),
    (["budget.json", "-o", "out.html"], "text must be a model file"),
    (["model.json", "-o", "model.json"], "--out ('model.json') must not be another input"),
    (["model.json", "-o", "curve.json", "--curve", "curve.json"], "must not be another input"),
    (["model.json", "-o", "out.pdf"], "--out ('out.pdf') must end in .html; pass such a path"),
    (["model.json", "-o", "nowhere/out.html"], "is in a folder that does not exist"),
    (["model.json", "-o", "out.html", "--curve", "matrix.json"],
     "--curve ('matrix.json') must be a RocCurve; pass what privfit roc --out writes"),
    (["model.json", "-o", "out.html", "--accuracy", "curve.json"],
     "--accuracy ('curve.json') must be a ConfusionMatrix or a ReleasedFloat; pass what"),
    (["model.json", "-o", "out.html", "--ledger", "none.json"],
     "--ledger ('none.json') must be an existing budget file"),
    (["model.json", "-o", "out.html", "--title", " "], "title (' ') must be a text"),
    (["model.json"], "the following arguments are required: -o/--out"),
])  # fmt: skip
def test_what_is_wrong_is_one_sentence(files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not any(path.name.startswith("out") for path in files.iterdir())


# ---------------------------------------------------------------------------- clusters of a table

WIDE = "[columns]\n" + "".join(f'"col {i}" = {{low = 0, high = 100}}\n' for i in range(8))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Two clusters of eight columns, in original units."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(3)
    rows = np.where(rng.random((600, 1)) < 0.3, 20, 80) + rng.normal(0, 2, (600, 8))
    lines = [",".join(f"{cell:.3f}" for cell in row) for row in rows]
    head = ",".join(f"col {i}" for i in range(8))
    (folder / "wide.csv").write_text("\n".join([head, *lines]) + "\n")
    (folder / "wide.toml").write_text(WIDE)
    return folder


def test_centres_of_many_columns_are_rows_in_their_units_with_sizes(wide, monkeypatch, capsys):
    monkeypatch.chdir(wide)
    asked = ["cluster", "wide.csv", "--schema", "wide.toml", "--clusters", "2", "--epsilon", "50",
             "--out", "two.json", "--plot", "two.png"]  # fmt: skip
    assert main(asked) == 0
    drawn = (wide / "two.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["show", "two.json", "--plot", "again.png"]) == 0
    assert (wide / "again.png").read_bytes() == drawn  # the heat map, and no plane of two columns
    shown = capsys.readouterr().out
    table = shown[shown.index("column ") :].splitlines()
    assert table[0].split() == ["column", "centre", "0", "centre", "1"]
    assert sum(map(int, table[1].split()[1:])) == pytest.approx(600, abs=60)
    assert table[2].startswith("90 % interval")
    for i, line in enumerate(table[3:11]):
        assert line.startswith(f"col {i} ")
        assert sorted(map(float, line.split()[2:])) == pytest.approx([20, 80], abs=6)


def test_clusters_of_few_columns_keep_a_row_for_each_centre(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main(["show", "clusters.json"]) == 0
    shown = capsys.readouterr().out
    assert "centre" in shown
    head = shown[shown.index("centre") :].splitlines()[0].split()
    assert head[:3] == ["centre", "x", "y"]


def test_predictions_are_the_numbers_of_the_centres(wide, monkeypatch, capsys):
    monkeypatch.chdir(wide)
    asked = ["cluster", "wide.csv", "--schema", "wide.toml", "--clusters", "2", "--epsilon", "50",
             "--out", "two.json", "--json"]  # fmt: skip
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["columns"] == [f"col {i}" for i in range(8)]
    assert len(told["sizes"]) == 2
    assert main(["predict", "two.json", "wide.csv"]) == 0
    labels = [int(line) for line in capsys.readouterr().out.split()[1:]]
    cells = [line.split(",")[0] for line in (wide / "wide.csv").read_text().splitlines()[1:]]
    near = np.abs(np.array(told["centres"])[:, 0] - np.array(cells, dtype=float)[:, None])
    assert labels == near.argmin(axis=1).tolist()
