"""Blocks of code of a page of the docs."""

from __future__ import annotations

import re
from typing import Any

from makers.places import ROOT


def run_page(name: str, kind: str) -> dict[str, Any]:
    """Run the Python blocks of a page in order, and those that need `kind`; their names."""
    page = ROOT / "docs" / name
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python( \w+)?\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert f" {kind}" in {needs for needs, _ in blocks}
    for needs, block in blocks:
        if needs in ("", f" {kind}"):
            exec(compile(block, name, "exec"), names)
    return names
