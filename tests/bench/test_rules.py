"""The default beside every solver: who is met, on which splits, and what counts as behind."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.places import ROOT

if not (ROOT / "bench" / "speed").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench import accuracy, results, rules
from bench.accuracy import columns
from bench.accuracy import rules as fits
from bench.accuracy.columns import DECLARED, KINDS
from bench.accuracy.tasks import Cell
from privfit import Categorical, Numeric, Schema
from privfit.datasets import Dataset

MINE = Cell("area", "adult, 500 rows", f"auto / {DECLARED}", 0.1, 1e-6, "add_remove")
GOOD, BAD = (replace(MINE, solver=f"{name} / {DECLARED}") for name in ("Local", "Gupt"))


@pytest.fixture(autouse=True)
def one_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stamp that takes no look at the sources."""
    known = {"date": "2026-01-02", "commit": "abc", "digest": "12345678", "machine": "a machine"}
    monkeypatch.setattr(results, "stamp", lambda: known)


def kept(folder: Path, values: dict[Cell, list[float]]) -> accuracy.Found:
    found = accuracy.open_results(folder, "rules")
    for cell, numbers in values.items():
        found.add(accuracy.row_of(cell, numbers, 0.1))
    return accuracy.Found(found)


def ten(value: float) -> list[float]:
    return [value + 0.001 * (seed % 2) for seed in range(10)]


# -------------------------------------------------------------------------------------------- cells


def test_every_cell_is_named_once_and_the_default_meets_what_its_budget_allows() -> None:
    found = list(rules.all_cells())
    assert len({cell.key for cell in found}) == len(found)
    assert "SelectRefine" in fits.rivals(DECLARED, 1e-6, every=True)
    assert "SelectRefine" not in fits.rivals(DECLARED, 0.0, every=True)
    assert fits.BAYES not in fits.rivals(KINDS, 0.0, every=False)


def test_with_a_delta_the_default_meets_itself_without_one() -> None:
    contests = [one for one in rules.contests() if one.mine == MINE]
    assert len(contests) == 1
    assert replace(MINE, delta=0.0) in contests[0].others
    pure = [one for one in rules.contests() if one.mine == replace(MINE, delta=0.0)]
    assert pure[0].mine not in pure[0].others


def test_small_tables_are_the_first_rows_of_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"x": np.arange(1000.0)}
    whole = Dataset("made", table, Schema({"x": Numeric(0, 1000)}), np.arange(1000) % 2, (0, 1))
    monkeypatch.setattr(columns, "load", lambda name: whole)
    (few, test), (every, same) = (
        columns.split.__wrapped__(name, 3) for name in ("a, 50 rows", "a")
    )
    assert np.array_equal(few.table["x"], every.table["x"][:50])
    assert np.array_equal(test.table["x"], same.table["x"])


# ----------------------------------------------------------------------------------------- verdicts


def test_four_splits_choose_the_rival_and_others_decide(tmp_path: Path) -> None:
    contest = rules.Contest("area", MINE, (GOOD, BAD))
    found = kept(tmp_path, {MINE: [0.7] * 4 + ten(0.7), GOOD: [0.8] * 4 + [0.6] * 10,
                            BAD: [0.6] * 4 + [0.9] * 10})  # fmt: skip
    assert contest.best(found) == GOOD
    assert contest.contested(found) == GOOD
    gaps = contest.gaps(found, GOOD, fresh=True)
    assert len(gaps) == 10
    assert min(gaps) > 0  # it was ahead by chance


def test_lower_log_loss_is_better(tmp_path: Path) -> None:
    mine, good, bad = (replace(cell, task="log loss") for cell in (MINE, GOOD, BAD))
    contest = rules.Contest("log loss", mine, (good, bad))
    found = kept(tmp_path, {mine: [0.5, 0.5], good: [0.4, 0.41], bad: [0.6, 0.6]})
    assert contest.contested(found) == good
    worse = kept(tmp_path / "other", {mine: [0.3, 0.3], good: [0.4, 0.41]})
    assert contest.contested(worse) is None


def test_pages_list_what_is_lost_on_fresh_splits_alone(tmp_path: Path) -> None:
    lost = [0.7] * 4 + ten(0.7)
    found = kept(tmp_path, {MINE: lost, GOOD: [0.8] * 4 + [0.8] * 10})
    lines = list(rules.sections(found.results))
    assert "| tuned on | 1e-06 | 1 | 1 | 1 |" in lines
    assert any(line.startswith("| adult, 500 rows | 0.1 |") and "Local" in line for line in lines)


def test_results_keep_the_best_rival_of_each_comparison(tmp_path: Path) -> None:
    names = ("Local", "Gupt", "EEM", "DPSGA")
    rivals = [replace(MINE, solver=f"{name} / {DECLARED}") for name in names]
    found = kept(tmp_path, {cell: ten(0.6 + 0.1 * i) for i, cell in enumerate([MINE, *rivals])})
    rules.keep_best(found.results)
    assert [row["solver"].split(" / ")[0] for row in found.results] == ["auto", "DPSGA"]
    again = accuracy.open_results(tmp_path, "rules")
    assert len(again.rows) == 2


# --------------------------------------------------------------------------------------------- fits


def made(n: int) -> Dataset:
    rng = np.random.default_rng(n)
    table = {"x": rng.uniform(0, 1, n), "job": rng.choice(["a", "b"], n)}
    y = (table["x"] + 0.2 * rng.normal(size=n) > 0.5).astype(np.int64)
    declared = Schema({"x": Numeric(0, 1), "job": Categorical(["a", "b"])})
    return Dataset("made", table, declared, y, (0, 1))


@pytest.mark.parametrize("solver", [fits.AUTO, fits.BAYES, fits.SELECTED, "Majority", "Gradient"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_fit_of_any_rival_has_three_measures(
    solver: str, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "split", lambda data, seed: (made(3000), made(500)))
    cell = Cell("accuracy", "made", f"{solver} / {DECLARED}", 4.0, delta, "add_remove")
    found: Any = fits.fit(cell, 0)[0]
    assert set(found) == {"accuracy", "area", "log loss"}
    assert found["area"] > (0.4 if solver == "Majority" else 0.75)
