"""The tables "As published" of docs/, and checks of what `paper=True` is.

A check computes what stands in the column of ours, word for word, so a page cannot drift from the
code. A row without a check, or a check without a row, is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from makers.places import ROOT
from privfit.privacy.ledger import Grant

DOCS = ROOT / "docs"
HEADER = ["what", "published", "`paper=True`", "repaired", "where"]

Check = Callable[[], str]


def rows_of(page: str) -> dict[str, list[str]]:
    """The table under "As published", a row by what it is about."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition("\n## As published\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == HEADER, page
    assert all(len(row) == len(HEADER) and all(row) for row in cells), page
    return {row[0]: row for row in cells[2:]}


class Checks(dict[tuple[str, str], Check]):
    """Checks by page and row."""

    def row(self, page: str, what: str) -> Callable[[Check], Check]:
        """Keep the check of a row."""

        def keep(check: Check) -> Check:
            assert (page, what) not in self
            self[page, what] = check
            return check

        return keep

    def compare(self, page: str, what: str) -> None:
        """Ours is what the page says."""
        published = rows_of(page)[what]
        assert self[page, what]() == published[2]
        assert re.fullmatch(r"no|yes|yes, privacy", published[3])

    def cover(self, *pages: str) -> None:
        """Every row has a check, and every check a row."""
        assert {(page, what) for page in pages for what in rows_of(page)} == set(self)


def calls(owner: Any, name: str, run: Callable[[], Any]) -> list[tuple[Any, ...]]:
    """(result, *arguments) of every call of a method while something runs."""
    seen: list[tuple[Any, ...]] = []
    right = getattr(owner, name)

    def watched(*args: Any, **more: Any) -> Any:
        result = right(*args, **more)
        seen.append((result, *args))
        return result

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(owner, name, watched)
        run()
    return seen


def drawn(run: Callable[[], Any]) -> list[Any]:
    """The mechanisms that are drawn while something runs."""
    return [seen[2] for seen in calls(Grant, "release", run)]


def sizes(release: Any) -> str:
    """Events as "count of size"."""
    return ", ".join(f"{event.count} of {event.parameter:.4g}" for event in release.events)


def listed(*values: Any) -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values)
