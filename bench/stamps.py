"""Which code a result depends on: all that its entrances reach by imports, hashed without them.

A stamp changes with what the code does, and stays when the code is moved. So the files are found by
following imports, never by a list of their names, and a name that a package only passes on leads to
the file that defines it. Of these files the set of top-level statements is hashed: without imports,
`__all__`, comments and docstrings, and without the files' names and order. An imported name stands
for what it names, not for how the import spells it: `np.sum` is `numpy.sum`, and `kmeans.METHODS`
is `METHODS`, where `kmeans` is a module of the same package.

Kernels count as one: whoever imports a `.pyx` depends on all sources in its folder. They are hashed
as text, a file at a time, without imports, includes, comments and blank lines.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import privfit

OF_CYTHON, OF_C = r"(^|\s)#( .*)?$", r"/\*(?s:.*?)\*/|//.*$"
COMMENTS = {".pyx": OF_CYTHON, ".pxd": OF_CYTHON, ".c": OF_C, ".h": OF_C}  # in sources of kernels
IMPORTS = r"^\s*(from\s+[\w.]+\s+)?c?import\s(\([^)]*\)|.*)$|^\s*#?\s*include\b.*$"
MODULE = ""  # what a name stands for that is bound to a module of the package


@functools.cache
def stamp(*entrances: Any) -> str:
    """Eight digits of the code that these classes and functions of privfit reach."""
    return ours().stamp(map(file_of, entrances))


def file_of(entrance: Any) -> Path:
    """The file that defines a class or a function."""
    return Path(inspect.getfile(entrance)).resolve()


def ours() -> Package:
    """The privfit that is imported; if it was installed, its kernels' sources lie beside bench."""
    imported, here = (Path(file).resolve() for file in (privfit.__file__, __file__))
    return Package("privfit", (imported.parents[1], here.parents[1]))


@dataclass(frozen=True)
class Bound:
    """What an import binds a local name to: a module, or a name in it."""

    local: str
    module: str
    name: str = ""


@dataclass(frozen=True)
class Package:
    """A package by its name, and the folders that may hold it; the first with a file counts."""

    name: str
    folders: tuple[Path, ...]

    def stamp(self, starts: Iterable[Path]) -> str:
        """Eight digits of the code that these files reach."""
        digests = set().union(*map(self.digests, self.reached(starts)))
        return _digest("\n".join(sorted(digests)))[:8]

    def reached(self, starts: Iterable[Path]) -> set[Path]:
        """These files, those of the package that they import, and so on."""
        found: set[Path] = set()
        rest = list(starts)
        while rest:
            path = rest.pop()
            if path not in found:
                found.add(path)
                rest += self.imported(path)
        return found

    def imported(self, path: Path) -> set[Path]:
        """The files of the package that one file imports, wherever in it the imports stand."""
        if path.suffix in COMMENTS:
            return {each for each in path.parent.iterdir() if each.suffix in COMMENTS}
        found = (self._origin(bound) for bound in self.bound(path))
        return {each for each in found if each is not None}

    @functools.cache  # noqa: B019  sources do not change while they are measured
    def digests(self, path: Path) -> set[str]:
        """Of what a file says: of its statements, or of the text of a kernel."""
        if path.suffix in COMMENTS:
            return {_digest(_bare_text(path))}
        names = {bound.local: self._own_name(bound) for bound in self.bound(path)}
        tree = _Bare(names).visit(ast.parse(path.read_bytes()))
        return {_digest(_dumped(statement)) for statement in tree.body}

    @functools.cache  # noqa: B019
    def bound(self, path: Path) -> list[Bound]:
        """What the imports of a file bind."""
        found = []
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                for each in node.names:
                    found.append(Bound(each.asname or each.name.partition(".")[0], each.name))
            elif isinstance(node, ast.ImportFrom):
                module = self._absolute(path, "." * node.level + (node.module or ""))
                for each in node.names:
                    found.append(Bound(each.asname or each.name, module, each.name))
        return found

    def _absolute(self, path: Path, module: str) -> str:
        """The full name of a module that a file imports, perhaps by a relative one."""
        if not module.startswith("."):
            return module
        folder = next(each for each in self.folders if path.is_relative_to(each))
        return importlib.util.resolve_name(module, ".".join(path.relative_to(folder).parent.parts))

    def _file(self, module: str) -> Path | None:
        """The file of a module, if it is one of this package."""
        first, *rest = module.split(".")
        for folder in self.folders if first == self.name else ():
            stem = folder.joinpath(first, *rest)
            for path in (stem.with_suffix(".py"), stem / "__init__.py", stem.with_suffix(".pyx")):
                if path.is_file():
                    return path
        return None

    def _module(self, bound: Bound) -> Path | None:
        """The file of the module that a local name is, if it is one of this package."""
        return self._file(f"{bound.module}.{bound.name}" if bound.name else bound.module)

    def _origin(self, bound: Bound) -> Path | None:
        """The file of a module, or that which defines a name, though a package passes it on."""
        path = self._module(bound) or self._file(bound.module)
        if path is None or path.name != "__init__.py" or path == self._module(bound):
            return path
        passed = (self._origin(each) for each in self.bound(path) if each.local == bound.name)
        return next((each for each in passed if each is not None), path)

    def _own_name(self, bound: Bound) -> str:
        """What a local name stands for, however the import spells it."""
        if self._module(bound) is not None:
            return MODULE
        if self._file(bound.module) is not None:
            return bound.name
        if bound.name:
            return f"{bound.module}.{bound.name}"
        return bound.local if bound.module.startswith(f"{bound.local}.") else bound.module


class _Bare(ast.NodeTransformer):
    """Removes imports and what does nothing from a tree; imported names become their own."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Import(self, node: ast.AST) -> None:
        return None

    def visit_ImportFrom(self, node: ast.AST) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.If | None:
        """An `if TYPE_CHECKING` of imports alone goes with them."""
        self.generic_visit(node)
        return node if node.body or node.orelse else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A string by itself is a docstring."""
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        exports = [getattr(target, "id", None) for target in node.targets] == ["__all__"]
        return None if exports else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        of_module = isinstance(node.value, ast.Name) and node.value.id == MODULE
        return ast.Name(node.attr) if of_module else node


def _dumped(node: Any) -> str:
    """A tree as text, the same for every version of Python: `ast.dump` is not."""
    if isinstance(node, list):
        return f"[{','.join(map(_dumped, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if name not in ("ctx", "kind")}
    known = (f"{name}={_dumped(v)}" for name, v in fields.items() if v is not None and v != [])
    return f"{type(node).__name__}({','.join(known)})"


def _bare_text(path: Path) -> str:
    """The source of a kernel without imports and what does nothing."""
    text = path.read_text(encoding="utf-8")
    for what in (COMMENTS[path.suffix], IMPORTS):
        text = re.sub(what, "", text, flags=re.M)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
