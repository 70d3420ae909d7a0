"""A function fits on a screen and a file has one subject, unless a docstring says why.

Docstrings are not counted: numpydoc's sections describe every parameter of a public name. A
docstring says why by a sentence that begins with "Long because".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import privfit

PACKAGE = Path(privfit.__file__).parent
LONGEST_FUNCTION, LONGEST_FILE = 60, 600
REASON = re.compile(r"(?:^|[.\n])\s*Long because \w")


class Piece(NamedTuple):
    """A function or a file: where it is, its lines without docstrings, and its own docstring."""

    name: str
    lines: int
    docstring: str


def docstring_lines(tree: ast.AST) -> int:
    """The lines of all docstrings below a node, its own included."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [node.body[0] for node in ast.walk(tree)
             if isinstance(node, documented) and ast.get_docstring(node) is not None]  # fmt: skip
    return sum((one.end_lineno or one.lineno) - one.lineno + 1 for one in found)


def python_functions(text: str) -> Iterator[Piece]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            lines = (node.end_lineno or first) - first + 1 - docstring_lines(node)
            yield Piece(node.name, lines, ast.get_docstring(node) or "")


HEADER = re.compile(
    r"(\s*)(?:def|cdef|cpdef)\s(?!\s*(?:class|extern|struct|enum|union)\b)[^=]*?(\w+)\("
)
DOCSTRING = re.compile(r'\s*[rR]?"""(.*?)"""', re.DOTALL)


def cython_functions(text: str) -> Iterator[Piece]:
    """Blocks that begin with `def`, `cdef` or `cpdef` and a signature that ends with a colon."""
    lines = text.splitlines()
    for first, line in enumerate(lines):
        found = HEADER.match(line)
        if found is None:
            continue
        end, depth = first, 0  # of the signature
        while end < len(lines):
            code = lines[end].split("#")[0].rstrip()
            depth += sum(code.count(c) for c in "([") - sum(code.count(c) for c in ")]")
            if depth <= 0:
                break
            end += 1
        if end == len(lines) or not code.endswith(":"):  # a variable
            continue
        last, indent = end, len(found[1])
        for at in range(end + 1, len(lines)):
            bare = lines[at].strip()
            if bare and len(lines[at]) - len(lines[at].lstrip()) <= indent:
                break
            last = at if bare else last
        body = DOCSTRING.match("\n".join(lines[end + 1 : last + 1]))
        while first and lines[first - 1].startswith(f"{found[1]}@"):
            first -= 1
        own = body[1] if body else ""
        yield Piece(found[2], last - first + 1 - own.count("\n") - bool(body), own)


def file_docstring(source: Path, text: str) -> str:
    if source.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    found = DOCSTRING.search(text)
    return found[1] if found else ""


def too_long(source: Path) -> list[str]:
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".py":
        functions, described = python_functions, docstring_lines(ast.parse(text))
    else:
        functions, described = cython_functions, 0
    whole = Piece("the file", len(text.splitlines()) - described, file_docstring(source, text))
    long = [whole] if whole.lines > LONGEST_FILE else []
    long += [piece for piece in functions(text) if piece.lines > LONGEST_FUNCTION]
    return [f"{piece.name}: {piece.lines} lines" for piece in long
            if not REASON.search(piece.docstring)]  # fmt: skip


SOURCES = sorted(source for kind in ("*.py", "*.pyx", "*.pxd") for source in PACKAGE.rglob(kind))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_and_files_are_short_or_say_why(source):
    assert too_long(source) == []


LONG_BODY = "\n".join(f"    x{i} = {i}" for i in range(LONGEST_FUNCTION))
INNER = LONG_BODY.replace("    ", " " * 8)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.py", f"def f():\n{LONG_BODY}\n", ["f: 61 lines"]),
        ("a.py", f'def f():\n    """Do it.\n\n    Long because of x.\n    """\n{LONG_BODY}\n', []),
        ("a.py", f'def f():\n    """As long as Long because x."""\n{LONG_BODY}\n', ["f: 61 lines"]),
        ("a.py", "x = 1\n" * 601, ["the file: 601 lines"]),
        ("a.py", '"""Long because x."""\n' + "x = 1\n" * 601, []),
        ("a.pyx", f"cdef int f(int a,\n           int b) noexcept nogil:\n{LONG_BODY}\n\n\nx = 1\n",
         ["f: 62 lines"]),
        ("a.pyx", f"cdef class A:\n    @staticmethod\n    def f(\n        a\n    ):\n{INNER}\n",
         ["f: 64 lines"]),
        ("a.pyx", f'cpdef f(double[:, ::1] a):\n    """Long because x."""\n{LONG_BODY}\n', []),
        ("a.pyx", f"def g(a):\n    cdef int x = g(1)\n{LONG_BODY}\n\ndef f(): pass\n",
         ["g: 62 lines"]),
    ],
)  # fmt: skip
def test_what_is_too_long_is_found(name, text, found, tmp_path):
    (tmp_path / name).write_text(text)
    assert too_long(tmp_path / name) == found
