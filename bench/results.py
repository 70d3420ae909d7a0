"""Where benches keep what they measured: on disk after every row, and never half a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, whenever the process ends."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def keep(path: Path | None, report: Any) -> None:
    """Write the report as it stands, if it is wanted."""
    if path is not None:
        replace_text(path, json.dumps(report, indent=1) + "\n")


def refresh(path: Path, text: str, name: str = "measured") -> None:
    """Put text between the markers of this name in a file, or make the file."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = path.read_text(encoding="utf-8") if path.exists() else f"{begin}\n{end}\n"
    if begin not in old or end not in old:
        raise SystemExit(f"{path.name} lacks the markers {begin} and {end}; add them")
    head, tail = old.split(begin)[0], old.split(end)[1]
    replace_text(path, f"{head}{begin}\n{text}{end}{tail}")
