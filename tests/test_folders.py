"""Tests lie in folders named for rooms; what they share is made in makers/, not in a test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from makers.places import TESTS

import privfit

ROOMS = {path.parent.name for path in Path(privfit.__file__).parent.glob("*/__init__.py")}
FILES = sorted(TESTS.rglob("*.py"))


def test_a_folder_of_tests_is_a_room_or_known():
    folders = {path.relative_to(TESTS).parts[0] for path in FILES if path.parent != TESTS}
    assert folders <= ROOMS | {"bench", "makers", "papers"}


@pytest.mark.few(9)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_no_test_is_imported(path):
    parts = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            parts |= {part for name in names for part in name.split(".")}
    assert not {part for part in parts if part == "conftest" or part.startswith("test_")}
