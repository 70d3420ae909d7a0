"""Tests lie in folders named for rooms; what they share is made in makers/, not in a test."""

from __future__ import annotations

import ast
from pathlib import Path

from makers.places import TESTS

import privfit

ROOMS = {path.parent.name for path in Path(privfit.__file__).parent.glob("*/__init__.py")}
FILES = sorted(TESTS.rglob("*.py"))


def test_a_folder_of_tests_is_a_room_or_known():
    folders = {path.relative_to(TESTS).parts[0] for path in FILES if path.parent != TESTS}
    assert folders <= ROOMS | {"bench", "makers", "papers"}


def imported(path: Path) -> set[str]:
    """The parts of all names that a file imports."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in imports for alias in node.names]
    names += [getattr(node, "module", None) or "" for node in imports]
    return {part for name in names for part in name.split(".")}


def test_no_test_imports_a_test():
    for path in FILES:
        tests = {name for name in imported(path) if name.startswith(("test_", "conftest"))}
        assert not tests, (
            f"{path.relative_to(TESTS)} imports {tests}: move what both need to makers/"
        )
