"""Whole tables: splits and kinds as they are asked for, measures, peers, and who is ahead."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.places import ROOT
from scipy.special import expit

if not (ROOT / "bench" / "speed").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench import __main__ as command
from bench import accuracy, columns, results, showcase
from bench.accuracy import columns as tables
from bench.peers import columns as peers
from privfit import Categorical, Numeric, Schema
from privfit.datasets import Dataset

MINE = columns.cell_of("adult", columns.OURS[columns.DECLARED], 1.0)


@pytest.fixture(autouse=True)
def one_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stamp that takes no look at the sources."""
    known = {"date": "2026-01-02", "commit": "abc", "digest": "12345678", "machine": "a machine"}
    monkeypatch.setattr(results, "stamp", lambda: known)


def options(*arguments: str) -> Any:
    return command.parse(["columns", "--jobs", "1", *arguments])


def made(n: int, schema: Schema | None = None) -> Dataset:
    rng = np.random.default_rng(n)
    table = {"x": rng.uniform(0, 1, n), "job": rng.choice(["a", "b"], n)}
    y = (table["x"] + 0.2 * rng.normal(size=n) > 0.5).astype(np.int64)
    declared = Schema({"x": Numeric(0, 1), "job": Categorical(["a", "b"])})
    return Dataset("made", table, schema or declared, y, (0, 1))


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tables, peers):
        monkeypatch.setattr(module, "split", lambda data, seed: (made(3000), made(500)))


# -------------------------------------------------------------------------------------------- cells


def test_every_cell_is_named_once_and_targets_are_among_them() -> None:
    found = list(columns.all_cells())
    assert len({cell.key for cell in found}) == len(found)
    asked = {columns.cell_of(*key[:1], columns.OURS[columns.KINDS], key[1])
             for key in columns.TARGETS}  # fmt: skip
    assert asked <= set(found)
    for rivals in columns.RIVALS.values():
        assert all(any(name.startswith(peer) for name in columns.PEERS) for peer in rivals)


def test_a_fit_gives_a_line_for_each_measure_and_more_seeds_are_added(tmp_path: Path) -> None:
    fitted: list[int] = []

    def fit(cell: Any, seed: int) -> tuple[dict[str, float], float]:
        fitted.append(seed)
        if seed == 1:
            raise ValueError("refused")
        return {"accuracy": seed / 8, "area": seed / 4}, 0.5

    kept = accuracy.open_results(tmp_path, "columns")
    for seeds in (2, 4):
        assert accuracy.measure_cells(kept, [MINE], seeds, options(), fit) == 1
    assert fitted == [0, 1, 2, 3]
    found = accuracy.Found(accuracy.open_results(tmp_path, "columns"))
    assert found.values(MINE) == {0: 0.0, 2: 0.25, 3: 0.375}
    assert found.values(replace(MINE, task="area")) == {0: 0.0, 2: 0.5, 3: 0.75}


def test_seeds_stay_in_their_places_if_the_first_ones_were_refused(tmp_path: Path) -> None:
    def fit(cell: Any, seed: int) -> tuple[dict[str, float], float]:
        if seed == 0:
            raise ValueError("refused")
        return {"accuracy": 0.5, "area": 0.75}, 0.5

    kept = accuracy.open_results(tmp_path, "columns")
    for seeds in (1, 2):
        accuracy.measure_cells(kept, [MINE], seeds, options(), fit)
    assert accuracy.Found(kept).values(replace(MINE, task="area")) == {1: 0.75}


# ------------------------------------------------------------------------------------------- tables


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("name", "rows", "positive", "numbers", "categories"),
    [("adult", 48842, 11687, 6, 8), ("credit_default", 30000, 6636, 20, 3),
     ("mushroom", 8124, 3916, 0, 22), ("bank_full", 45211, 5289, 7, 9),
     ("spambase", 4601, 1813, 57, 0), ("flights", 327346, 77630, 3, 5),
     ("health_panel", 19609, 12037, 4, 6)],
)  # fmt: skip
def test_tables_have_the_rows_labels_and_kinds_that_are_asked_for(
    name: str, rows: int, positive: int, numbers: int, categories: int
) -> None:
    whole = tables.load(name)
    assert (len(whole), int(whole.labels.sum())) == (rows, positive)
    found = list(tables.kinds(whole).values())
    assert (found.count("number"), found.count("category")) == (numbers, categories)
    train, test = tables.split(name, 3)
    order = np.random.default_rng(103).permutation(rows)
    first = next(iter(whole.table))
    np.testing.assert_array_equal(train.table[first], whole.table[first][order[: int(0.8 * rows)]])
    assert len(test) == rows - int(0.8 * rows)
    small, same = tables.split(f"{name}, 1000 rows", 3)
    np.testing.assert_array_equal(small.table[first], train.table[first][:1000])
    assert len(same) == len(test)


# ----------------------------------------------------------------------------------------- measures


def test_measures_of_four_records() -> None:
    found = tables.measures(np.array([0, 1, 0, 1]), np.array([0.25, 0.75, 0.6, 0.9]))
    assert found["accuracy"] == 0.75
    assert found["area"] == 1.0
    told = -np.log([0.75, 0.75, 0.4, 0.9]).mean()
    assert found["log loss"] == pytest.approx(told)


def test_the_slope_says_by_how_much_scores_are_too_large() -> None:
    """Twice the scores, half the slope; honest ones have 1 within five standard errors, 0.05."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 100_000)
    y = (rng.random(100_000) < expit(z)).astype(int)
    assert tables.slope(y, z) == pytest.approx(1, abs=0.05)
    assert tables.slope(y, 2 * z) == pytest.approx(tables.slope(y, z) / 2, rel=1e-6)


@pytest.mark.usefixtures("made_up")
def test_ours_and_the_reference_learn_a_line() -> None:
    for solver, fit in ((columns.OURS[columns.KINDS], tables.ours),
                        (columns.OURS[columns.DECLARED], tables.ours),
                        (next(iter(tables.REFERENCES)), tables.not_private)):  # fmt: skip
        found, seconds = fit(columns.cell_of("made", solver, 10.0), 0)
        assert list(found) == list(columns.MEASURES)
        assert found["area"] > 0.9
        assert seconds > 0


def test_the_reference_has_no_level_for_a_value_that_it_never_saw() -> None:
    first, second = tables._levels(np.array(["a", "c"]), np.array(["b", "c"]), "category", 4)
    assert second[:, [0, 1]].toarray().tolist() == [[0, 0], [0, 1]]
    assert first[:, [0, 1]].toarray().tolist() == [[1, 0], [0, 1]]


# -------------------------------------------------------------------------------------------- peers


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounting that takes a tenth of the time, and gives a little more noise."""
    monkeypatch.setattr(peers, "INTERVAL", 1e-3)


@pytest.mark.usefixtures("made_up", "coarse")
@pytest.mark.parametrize("bought", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_noisy_adam_learns_a_line(share: float, bought: bool) -> None:
    one = peers.Adam(share, 60, 0.2, 1.0, bought)
    assert one(None, columns.cell_of("made", "", 3.0), 0)[0]["area"] > 0.9


@pytest.mark.usefixtures("coarse")
def test_noise_of_adam_meets_the_budget_and_grows_with_what_is_seen() -> None:
    exact, sampled = (peers.Adam(share, 20, 0.1, 1.0).noise(1.0, 1e-6) for share in (1.0, 0.1))
    whole = peers._sampled_noise(1.0, 1e-6, 1.0, 20)
    assert whole == pytest.approx(exact, rel=0.01)
    assert sampled < exact / 3
    assert peers.Adam(1.0, 20, 0.1, 1.0).noise(0.5, 1e-6) > exact


@pytest.mark.usefixtures("made_up")
def test_boosting_gets_declared_ranges_and_kinds_and_clipped_numbers() -> None:
    given: dict[str, Any] = {}

    class Recorder:
        def ask(self, key: Any, arrays: Any, **job: Any) -> dict[str, Any]:
            given.update(job, **arrays())
            return {"probabilities": np.linspace(0.1, 0.9, 500).tolist(), "seconds": 2.0}

    name = next(name for name in columns.PEERS if name.startswith("DP-EBM"))
    columns.PEERS[name](Recorder(), columns.cell_of("made", name, 0.5), 0)
    assert (given["epsilon"], given["delta"]) == (0.5, 1e-6)
    assert given["kinds"] == ["continuous", "nominal"]
    assert given["ranges"] == [(0, (0, 1))]
    assert given["X"].min() >= 0
    assert set(given["X"][:, 1]) == {0.0, 1.0}
    name = next(name for name in columns.PEERS if name.startswith("diffprivlib"))
    columns.PEERS[name](Recorder(), columns.cell_of("made", name, 0.5), 0)
    assert given["norm"] == math.sqrt(2)


# ----------------------------------------------------------------------------------------- sections


def found_with(tmp_path: Path, peer_by_settings: list[float]) -> accuracy.Found:
    """Ours has an accuracy of 0.8, and peers these: a little differently in every split."""
    kept = accuracy.open_results(tmp_path, "columns")
    names = [name for name in columns.PEERS if name.startswith("DP-EBM")]
    theirs = dict(zip(names, peer_by_settings, strict=False))
    cells = {MINE: 0.8} | {columns.cell_of("adult", name, 1.0): x for name, x in theirs.items()}

    def fit(cell: Any, seed: int) -> tuple[dict[str, float], float]:
        value = cells[cell] + seed / 100 + (cell is MINE) * seed / 1000
        return dict.fromkeys(columns.SIGN, value), 1.0

    accuracy.measure_cells(kept, cells, 4, options(), fit)
    return accuracy.Found(kept)


def test_a_peer_is_met_with_its_best_settings_of_each_measure(tmp_path: Path) -> None:
    found = found_with(tmp_path, [0.7, 0.9])
    best = {m: columns.best_of(found, "adult", "DP-EBM", m, 1.0) for m in columns.SIGN}
    names = [name for name in columns.PEERS if name.startswith("DP-EBM")]
    assert [cell.solver for cell in best.values() if cell] == [names[1], names[1], names[0]]
    row, marks = columns.contested(found, MINE, "DP-EBM")
    assert marks == ["behind", "behind", "behind"]
    assert all(text.startswith("**") for text in row)


@pytest.mark.parametrize(
    ("peer", "marks"), [(0.7, ["ahead", "ahead", "behind"]), (0.802, ["even", "even", "ahead"])]
)
def test_two_standard_errors_decide_who_is_behind(
    tmp_path: Path, peer: float, marks: list[str]
) -> None:
    assert columns.contested(found_with(tmp_path, [peer]), MINE, "DP-EBM")[1] == marks


def test_a_verdict_names_what_falls_short() -> None:
    cell = columns.cell_of("adult", columns.OURS[columns.KINDS], 0.1)

    class Ten:
        def values(self, cell: Any) -> dict[int, float]:
            return dict.fromkeys(range(10), 0.0)

        def mean(self, cell: Any) -> float:
            return {"accuracy": 0.853, "area": 0.8966, "log loss": 0.336}[cell.task]

    found: Any = Ten()
    assert columns.verdict(found, cell) == "goal, target, **log loss short**"
    assert columns.verdict(found, replace(cell, epsilon=0.3162)) == ""


# ---------------------------------------------------------------------------------- the README


def test_the_readme_shows_what_the_results_say() -> None:
    """After a new measurement: python -m bench columns --minutes 0 --write."""
    known = accuracy.open_results(results.FOLDER, "columns")
    text = showcase.README.read_text(encoding="utf-8")
    shown = text.partition("<!-- peers: begin -->\n")[2].partition("\n<!-- peers: end -->")[0]
    assert shown == "\n".join(showcase.lines(known))
    assert "adult, 1 |" in shown


def test_the_best_private_number_is_bold_and_only_shared_splits_count(tmp_path: Path) -> None:
    known = accuracy.open_results(tmp_path, "columns")
    numbers: dict[str, list[float]] = {
        "privfit, kinds alone": [0.8, 0.9],
        "privfit, declared": [0.7, 0.7, 0.1],
        "diffprivlib, C = 1": [0.6, 0.6],
        "not private, 32 quantiles, C = 1": [1.0, 1.0],
    }
    for measure in showcase.MEASURES:
        for name, values in numbers.items():
            epsilon = math.inf if name.startswith("not private") else 1.0
            cell = replace(columns.cell_of("adult", name, epsilon), task=measure)
            known.add(accuracy.row_of(cell, values, 0.0))
    table = list(showcase.lines(known))
    assert table[2] == ("| adult, 1 | **0.850**, 0.850 | 0.700, 0.700 | - | - | 0.600, **0.600** | "
                        "1.000, 1.000 |")  # fmt: skip
    assert "over the 2 splits" in table[-1]


def test_readme_and_picture_are_written(tmp_path: Path) -> None:
    readme, figure = tmp_path / "README.md", tmp_path / "columns.svg"
    showcase.refresh(accuracy.open_results(results.FOLDER, "columns"), readme, figure)
    assert "| data, epsilon |" in readme.read_text(encoding="utf-8")
    assert "<svg" in figure.read_text(encoding="utf-8")
