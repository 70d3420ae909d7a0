"""Show files outside of docs/ as pages, and point links to them, and to examples, at pages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
OUTSIDE = {
    "benchmarks": ROOT / "bench" / "README.md",
    "changes": ROOT / "CHANGELOG.md",
    "contributing": ROOT / "CONTRIBUTING.md",
    "security": ROOT / "SECURITY.md",
}
PAGE_OF = {
    **{path: DOCS / f"{page}.md" for page, path in OUTSIDE.items()},
    **{path: DOCS / "auto_examples" / f"{path.stem}.rst" for path in DOCS.glob("gallery/*.py")},
    DOCS / "gallery": DOCS / "auto_examples" / "index.rst",
}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def read(app: Any, page: str, source: list[str]) -> None:
    """Take the text of a file outside, if the page is one; point links where pages will be."""
    file = OUTSIDE.get(page, DOCS / f"{page}.md")
    if page in OUTSIDE:
        source[0] = file.read_text(encoding="utf-8")
        app.env.note_dependency(str(file))
    here = (DOCS / page).parent

    def moved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(file.parent / link[1]))
        target = PAGE_OF.get(target, target)
        return f"]({os.path.relpath(target, here)}{link[2] or ''})"

    source[0] = LINK.sub(moved, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
