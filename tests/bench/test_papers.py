"""The experiments of papers: what is measured, kept, told and drawn."""

from __future__ import annotations

import sys
import types

import pytest

from bench import pages, papers
from bench.__main__ import main
from bench.papers import Claim, Curve, Figure, Found, Panel

CALLS: list[tuple[float, int]] = []


def low(point: float, seed: int) -> float:
    CALLS.append((point, seed))
    return 1 / point + 0.01 * seed


def high(points: tuple[float, ...], seed: int) -> list[float]:
    CALLS.append((points[0], seed))
    return [2 / point + 0.01 * seed + (seed % 2) * 1e-3 for point in points]


def crossing(points: tuple[float, ...], seed: int) -> list[float]:
    """Above `low` at the first point, level with it at the second, below it at the third."""
    gaps = (0.1, 0.1 * (-1) ** seed, -0.1)
    return [low(x, seed) + gap * (1 + 0.1 * seed) for x, gap in zip(points, gaps, strict=True)]


def figure() -> Figure:
    panel = Panel(
        "a table",
        "test error",
        "epsilon",
        (0.1, 1.0, 10.0),
        {
            "ours": Curve(low, "`Ours()`", published={1.0: 0.99}),
            "theirs": Curve(high, "`Theirs()`", whole=True),
            "another": Curve(crossing, "`Another()`", whole=True),
        },
        (
            Claim("ours errs less", "ours", "theirs"),
            Claim("theirs errs less", "theirs", "ours"),
            Claim("ours errs less than another", "ours", "another"),
            Claim("the two are level", "ours", "another", (1.0,)),
        ),
    )
    return Figure("Errors of two methods", (panel,), seeds=4)


@pytest.fixture
def paper(monkeypatch, tmp_path):
    """A paper with one figure, and a page of its own."""
    script = types.ModuleType("bench.papers.some_paper")
    script.FIGURES = {"1": figure}
    monkeypatch.setitem(sys.modules, "bench.papers.some_paper", script)
    monkeypatch.setattr(papers, "PAPERS", ("some_paper",))
    for name in ("FOLDER", "PAGES", "PICTURES"):
        monkeypatch.setattr(papers, name, tmp_path)
    monkeypatch.setattr("bench.__main__.FOLDER", tmp_path)
    papers.figure_of.cache_clear()
    CALLS.clear()
    return tmp_path


def run(*arguments: str) -> int:
    return main(["papers", "--jobs", "1", *arguments])


@pytest.mark.slow
def test_every_point_of_every_seed_is_measured_anew_unless_kept(paper):
    assert run("--out", str(paper)) == 0
    assert len([call for call in CALLS if call == (1.0, 3)]) == 2  # `low`, and `crossing` by it
    first = len(CALLS)
    run("--out", str(paper))
    assert len(CALLS) == 2 * first
    run("--out", str(paper), "--keep")
    assert len(CALLS) == 2 * first
    run("--out", str(paper), "--keep", "--seeds", "5")
    assert {seed for _, seed in CALLS[2 * first :]} == {4}


def test_numbers_outlive_the_run_and_go_with_other_settings(paper):
    run("--out", str(paper))
    panel = figure().panels[0]
    found = Found(paper / "papers" / "some_paper.csv")
    assert found.at("1", panel, "ours", 0.1) == {seed: 10 + 0.01 * seed for seed in range(4)}
    other = Panel(panel.title, panel.measure, panel.axis, panel.points,
                  dict(panel.curves) | {"ours": Curve(low, "`Ours(2)`")})  # fmt: skip
    found.begin("1", Figure("", (other,)), anew=False)
    assert found.at("1", panel, "ours", 0.1) == {}
    assert len(found.at("1", panel, "theirs", 0.1)) == 4
    found.begin("1", figure(), anew=True)
    assert found.at("1", panel, "theirs", 0.1) == {}


def test_what_is_undecided_is_told_from_what_is_contradicted(paper, capsys):
    run("--out", str(paper))
    printed = capsys.readouterr().out
    assert "- Same: ours errs less (epsilon: holds at 0.1, 1, 10; 4 seeds)." in printed
    assert "- Contradicted: theirs errs less (epsilon: contradicted at 0.1, 1, 10;" in printed
    assert (
        "- Same in part: ours errs less than another (epsilon: holds at 0.1; undecided at 1; "
        "contradicted at 10; 4 seeds)." in printed
    )
    assert "- Undecided: the two are level (epsilon: undecided at 1; 4 seeds)." in printed
    assert "- *ours*: `Ours()`" in printed
    assert "ours, published" in printed


def test_equal_numbers_have_no_spread():
    assert pages.interval([44.4442] * 10) == (pytest.approx(44.4442), 0.0)
    assert pages.verdict([44.4442 - 44.4442] * 3) == "undecided"


def test_one_seed_decides_nothing(paper, capsys):
    run("--out", str(paper), "--seeds", "1")
    assert "- Undecided: ours errs less " in capsys.readouterr().out


def test_a_page_is_refreshed_between_its_markers(paper):
    page = paper / "some_paper.md"
    page.write_text(
        "# A paper\n<!-- figure 1: begin -->\nstale\n<!-- figure 1: end -->\nOur words.\n"
    )
    run("--write")
    text = page.read_text(encoding="utf-8")
    assert "stale" not in text
    assert "Our words." in text
    assert "![Errors of two methods](some_paper_1.png)" in text
    assert (paper / "papers" / "some_paper.csv").read_text().count("\n") == 1 + 9  # a line a point
    assert (paper / "some_paper_1.png").stat().st_size > 5000


def test_without_minutes_a_page_is_made_of_what_is_there(paper):
    page = paper / "some_paper.md"
    markers = "<!-- figure 1: begin -->\n<!-- figure 1: end -->\n"
    page.write_text(markers)
    run("--minutes", "0", "--write")
    assert (page.read_text(), CALLS) == (markers, [])  # nothing is there yet
    run("--write")
    text, measured = page.read_text(), len(CALLS)
    page.write_text(markers)
    run("--minutes", "0", "--write")
    assert (page.read_text(), len(CALLS)) == (text, measured)


def test_a_list_says_how_long_it_took(paper, capsys):
    run("--list")
    assert "4 x 5 fits, not yet measured" in capsys.readouterr().out
    run("--out", str(paper))
    run("--list")
    assert "4 x 5 fits, 0 s" in capsys.readouterr().out
