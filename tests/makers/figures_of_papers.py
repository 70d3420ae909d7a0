"""What holds of every script of a paper: its figures, their claims and its page."""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

import pytest

from makers.places import ROOT

if not (ROOT / "bench" / "papers").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench.papers import Panel

PAGES = ROOT / "docs" / "papers"


def panels(script: ModuleType) -> list[Panel]:
    """All panels of all figures."""
    return [panel for make in script.FIGURES.values() for panel in make().panels]


def check_claims(script: ModuleType) -> None:
    """Claims name curves and points of their panel, and say which panel they are of."""
    claims = [(panel, claim) for panel in panels(script) for claim in panel.claims]
    for panel, claim in claims:
        assert {claim.lower, claim.higher} <= panel.curves.keys(), claim.text
        assert claim.lower != claim.higher
        assert set(claim.points or panel.points) <= set(panel.points), claim.text
    for make in script.FIGURES.values():
        texts = [claim.text for panel in make().panels for claim in panel.claims]
        assert len(set(texts)) == len(texts) > 0


def check_page(script: ModuleType) -> None:
    """The page has a place for every figure, and no other."""
    text = (PAGES / f"{script.__name__.rpartition('.')[2]}.md").read_text(encoding="utf-8")
    for name in script.FIGURES:
        begin, end = (f"<!-- figure {name}: {word} -->" for word in ("begin", "end"))
        assert text.count(begin) == text.count(end) == 1
        assert text.index(begin) < text.index(end)
    assert text.count(": begin -->") == len(script.FIGURES)


def check_fits(panel: Panel, point: float) -> None:
    """Every curve gives a finite number at a point, or one at every point."""
    for label, curve in panel.curves.items():
        found: Any = curve.fit(panel.points, 0) if curve.whole else [curve.fit(point, 0)]
        assert len(found) == (len(panel.points) if curve.whole else 1), label
        assert all(math.isfinite(value) and value >= 0 for value in found), label
