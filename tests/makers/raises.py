"""The messages that calls end with, and whether they reach every `raise` of a file."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any


def messages_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def raises_in(source: Path) -> list[tuple[int, list[str]]]:
    """(line, fixed parts of the message) of every `raise` in a file."""
    found = []
    for node in ast.walk(ast.parse(source.read_text())):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        message = node.exc.args[0]
        parts = message.values if isinstance(message, ast.JoinedStr) else [message]
        found.append((node.lineno, [p.value for p in parts if isinstance(p, ast.Constant)]))
    return found


def assert_reached(sources: list[Path], seen: str) -> None:
    """Every raise of these files has its message among those seen."""
    missed = [
        f"{source.name}:{line}: {' ... '.join(parts)}"
        for source in sources
        for line, parts in raises_in(source)
        if not all(part in seen for part in parts)
    ]
    assert not missed, "no case reaches\n" + "\n".join(missed)
