"""What rooms may know: kernels never see epsilon, and the core needs numpy and scipy alone.

Which room may import which is written in pyproject.toml, and checked by import-linter.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import privfit
from privfit import domains

PACKAGE = Path(privfit.__file__).parent

HOLDS_RECORDS = {"_kernels", "domains", "records", "objectives"}  # rooms that never see a budget

OUTSIDE = {"numpy", "scipy"}  # what the core may import besides the standard library
LAZY = {"base": {"pandas", "threadpoolctl"}, "datasets": {"pandas"},
        "domains": {"tomllib", "tomli", "pyarrow"},  # the first is the standard library's from 3.11
        "estimators": {"sklearn"}, "runs": {"tqdm"}, "searches": {"sklearn"},
        "privacy": {"dp_accounting", "filelock"},
        "commands": {"compression", "duckdb", "matplotlib", "openpyxl", "pyarrow", "sklearn"},
        "report": {"contourpy", "joblib", "matplotlib", "sklearn", "threadpoolctl"},
        "records": {"dask", "distributed", "fsspec", "pyarrow"}}  # fmt: skip


def part_of(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(source: Path) -> str:
    """The dotted name of a file."""
    parts = source.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imported(source: Path) -> set[str]:
    """Dotted names of all modules that a file imports, wherever it does so."""
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.name} imports by a relative name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_core_needs_numpy_and_scipy_alone(source):
    roots = {name.split(".")[0] for name in imported(source)} - {"privfit"}
    assert roots <= sys.stdlib_module_names | OUTSIDE | LAZY.get(part_of(source), set())


def kernel_sources() -> list[Path]:
    """The kernels' own sources, where the tests run in a tree that has them."""
    return sorted(path for path in (PACKAGE / "_kernels").iterdir()
                  if path.suffix in {".pyx", ".pxd", ".c", ".h"})  # fmt: skip


def code_of(source: Path) -> str:
    """A kernel's source without comments and texts."""
    text = source.read_text()
    if source.suffix in {".pyx", ".pxd"}:
        text = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
        text = re.sub(r"#.*", "", text)
    else:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    return re.sub(r'"[^"\n]*"', "", text)


def test_kernels_import_no_python_layer():
    for source in kernel_sources():
        modules = re.findall(
            r"^\s*(?:from|cimport|import)\s+(privfit[\w.]*)", source.read_text(), re.M
        )
        for module in modules:
            ours = module.startswith("privfit._kernels") or module == "privfit.base.errors"
            assert ours, f"{source.name} imports {module}"
        headers = re.findall(r'#include "([\w./]+)"', source.read_text())
        for header in headers:
            assert (PACKAGE / "_kernels" / header).exists(), f"{source.name} includes {header}"


def test_kernels_never_see_epsilon_nor_draw():
    for source in kernel_sources():
        code = code_of(source)
        assert not re.search(r"\b(epsilon|delta|eps|budget|ledger)\b", code), source.name
        if source.stem not in {"select", "chain", "random"}:
            assert not re.search(r"\b(s?rand(om)?(_r)?|drand48|getrandom|urandom)\b", code), (
                source.name
            )


def test_objectives_and_domains_never_see_epsilon():
    for source in SOURCES:
        if part_of(source) in HOLDS_RECORDS:
            names = {node.id for node in ast.walk(ast.parse(source.read_text()))
                     if isinstance(node, ast.Name)}  # fmt: skip
            names |= {node.arg for node in ast.walk(ast.parse(source.read_text()))
                      if isinstance(node, ast.arg)}  # fmt: skip
            assert not names & {"epsilon", "delta", "ledger", "grant", "budget"}, source.name


KINDS = set(domains.__all__) - {"Domain", "Grid"}  # of domains, and of their columns


def kinds_in(node: ast.AST | None) -> bool:
    """Whether a type, a text or a collection of them names a kind of domains."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(kinds_in, node.elts))
    if isinstance(node, ast.BinOp):
        return kinds_in(node.left) or kinds_in(node.right)
    return getattr(node, "id", getattr(node, "attr", getattr(node, "value", None))) in KINDS


def asks_for_a_kind(node: ast.AST) -> bool:
    """Whether a piece of code asks which kind of domain, or of column, something is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in {"isinstance", "issubclass"}:
            return kinds_in(node.args[1])
        if node.func.id in {"hasattr", "getattr"}:
            asked = ast.unparse(node.args[0]).rpartition(".")[2]
            return asked.rstrip("_") in {"domain", "schema"}
    if isinstance(node, ast.Compare):
        return any(map(kinds_in, (node.left, *node.comparators)))
    if isinstance(node, ast.Dict):
        return any(map(kinds_in, node.keys))
    return isinstance(node, ast.MatchClass) and kinds_in(node.cls)


@pytest.mark.parametrize("code", [
    "isinstance(x, Schema)", "isinstance(x, int | domains.L1Ball)", "issubclass(x, (int, Box))",
    "type(x) is L2Ball", "type(x) in (Box, L1Ball)", "type(x).__name__ == 'Numeric'",
    "{L1Ball: 1, L2Ball: 2}[type(x)]", "{'Box': 1}", "hasattr(self.domain_, 'columns')",
    "getattr(schema, 'radius', None)", "match x:\n    case Categorical():\n        pass",
])  # fmt: skip
def test_a_test_of_a_kind_of_domains_is_found(code):
    assert any(map(asks_for_a_kind, ast.walk(ast.parse(code))))


def test_only_domains_know_their_kinds():
    """Others ask a domain for what they need to know, so that a new kind needs no change there."""
    found = [
        f"{source.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for source in SOURCES
        if part_of(source) != "domains"
        for node in ast.walk(ast.parse(source.read_text()))
        if asks_for_a_kind(node)
    ]
    assert not found, "\n".join(found)


RELATIONS = {"replace", "add_remove"}
ENTRANCES = {"commands"}  # where the word of a user is shown and read; all else has a value


def asks_for_a_relation(node: ast.AST) -> bool:
    """Whether a piece of code tells neighbour relations apart by their words."""
    told: list[ast.AST | None] = []
    if isinstance(node, ast.Compare):
        told = [node.left, *node.comparators]
    elif isinstance(node, ast.Dict):
        told = list(node.keys)
    elif isinstance(node, ast.MatchValue):
        told = [node.value]
    told += [part for one in told if isinstance(one, ast.Tuple | ast.List | ast.Set)
             for part in one.elts]  # fmt: skip
    return any(isinstance(one, ast.Constant) and one.value in RELATIONS for one in told)


@pytest.mark.parametrize("code", [
    "adjacency == 'replace'", "'add_remove' != adjacency", "adjacency in ('replace', 'other')",
    "'replace' in relations", "{'replace': 2, 'add_remove': 1}[adjacency]",
    "match adjacency:\n    case 'replace':\n        pass",
])  # fmt: skip
def test_a_test_of_a_relation_is_found(code):
    assert any(map(asks_for_a_relation, ast.walk(ast.parse(code))))


def test_only_neighbours_know_their_relation():
    """Others ask `Neighbours` for what they need to know, so that persons with rows fit in."""
    found = [
        f"{source.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for source in SOURCES
        if part_of(source) not in ENTRANCES and source.name != "neighbours.py"
        for node in ast.walk(ast.parse(source.read_text()))
        if asks_for_a_relation(node)
    ]
    assert not found, "\n".join(found)


TYPED = {"privacy", "searches", "objectives"}  # rooms whose signatures say what they take


def declared_types(tree: ast.Module) -> list[ast.expr]:
    """The types of parameters, results, and fields and aliases; not those of local variables."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.returns, *(one.annotation for one in ast.walk(node.args)
                                      if isinstance(one, ast.arg))]  # fmt: skip
        elif isinstance(node, ast.Module | ast.ClassDef):
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            found += [part for one in fields for part in (one.annotation, one.value)]
    return [one for one in found if one is not None]


def is_any(node: ast.AST) -> bool:
    """Whether a part of a type is `Any`; a text may be one, too."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and re.search(r"\bAny\b", node.value) is not None
    return getattr(node, "id", getattr(node, "attr", "")) == "Any"


def says_any(code: str) -> list[str]:
    return [ast.unparse(one) for one in declared_types(ast.parse(code))
            if any(map(is_any, ast.walk(one)))]  # fmt: skip


@pytest.mark.parametrize("code", [
    "def f(x: Any): ...", "def f(*x: int, y: list[Any] = []): ...", "def f(**x: typing.Any): ...",
    "async def f() -> dict[str, Any]: ...", "def f(x: 'int | Any'): ...",
    "class A:\n    x: Any", "class A:\n    def f(self) -> Any: ...", "T: TypeAlias = list[Any]",
    "def f():\n    def g(x: Any): ...",
])  # fmt: skip
def test_any_in_a_signature_is_found(code):
    assert says_any(code)


def test_any_of_a_local_variable_is_left_alone():
    assert not says_any("def f(x: int) -> int:\n    y: Any = x\n    return y")


@pytest.mark.parametrize("room", sorted(TYPED))
def test_signatures_of_a_room_say_what_they_take(room):
    found = [f"{source.relative_to(PACKAGE)}: {told}" for source in SOURCES
             if part_of(source) == room for told in says_any(source.read_text())]  # fmt: skip
    assert not found, "\n".join(found)


OPTIONAL = {"pandas", "matplotlib", "dask", "pyarrow", "tqdm", "filelock", "tomllib", "tomli",
            "hypothesis", "pytest"}  # fmt: skip
SLOW = {"scipy.stats", "scipy.optimize", "scipy.special", "scipy.sparse", "scipy.spatial",
        "scipy.linalg", "scipy.integrate"}  # fmt: skip
LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded(fresh_python: Any, code: str) -> set[str]:
    """The modules that are loaded after some code, with the packages that they are in."""
    names = json.loads(fresh_python(f"{code}; {LOADED}").stdout)
    return {*names, *(name.split(".")[0] for name in names)}


def test_importing_privfit_imports_its_kernels_and_nothing_that_takes_long(fresh_python):
    found = loaded(fresh_python, "import privfit")
    assert {"privfit._kernels.cpu", "privfit._kernels.threads"} <= found
    assert not found & {"numpy", "scipy", "sklearn", *OPTIONAL}
    rooms = {name.split(".")[1] for name in found if name.startswith("privfit.")}
    assert rooms == {"_kernels", "base"}


def test_all_but_estimators_need_numpy_and_the_core_of_scipy_alone(fresh_python):
    names = sorted(set(privfit.__all__) - set(privfit.estimators.__all__))
    found = loaded(fresh_python, f"from privfit import {', '.join(names)}")
    assert {"numpy", "scipy"} <= found
    assert not found & {"sklearn", *SLOW, *OPTIONAL}


@pytest.mark.parametrize("name", ["Schema", "Ledger", "PrivfitError"])
def test_a_name_is_imported_without_what_it_does_not_need(fresh_python, name):
    found = loaded(fresh_python, f"from privfit import {name}")
    rooms = {one.split(".")[1] for one in found if one.startswith("privfit.")}
    assert not rooms & {"objectives", "runs", "searches", "linear", "clustering", "estimators"}


ALL_MODULES = [module_of(source) for source in SOURCES if "__main__" not in source.name]
USED_FIRST = [f"privfit.{name}" for name in sorted({*privfit._ROOMS, *privfit._NAMES})]


@pytest.mark.parametrize(
    "modules", [USED_FIRST, pytest.param(ALL_MODULES, marks=pytest.mark.slow)], ids=["used", "all"]
)
def test_every_module_can_be_imported_first(fresh_python, modules):
    """Since nothing is imported in advance, no module may rely on the order of others."""
    code = f"""
import importlib, sys, warnings
import privfit
warnings.simplefilter("ignore", FutureWarning)  # of modules under their old names
for name in {modules!r}:
    for known in [one for one in sys.modules if one.startswith("privfit.")]:
        if not known.startswith("privfit._kernels"):
            del sys.modules[known]
    importlib.import_module(name)
"""
    assert fresh_python(code).returncode == 0


def test_public_names_exist_and_are_the_only_ones():
    assert set(privfit.__all__) <= set(dir(privfit))
    modules = {part_of(source) for source in SOURCES}
    shown = {name for name in dir(privfit) if not name.startswith("_")} - modules
    assert shown == set(privfit.__all__)
    assert all(inspect.ismodule(getattr(privfit, room)) for room in privfit._ROOMS)
    assert {f"privfit.{room}" for room in privfit._ROOMS} == {
        f"privfit.{path.parent.name}" for path in PACKAGE.glob("[!_]*/__init__.py")
    }


def test_type_checkers_see_the_same_names_of_the_same_modules():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)]
    [assigned] = [node for node in ast.walk(stub) if isinstance(node, ast.Assign)]
    assert sorted(ast.literal_eval(assigned.value)) == privfit.__all__
    declared = {name.name: node.module for node in imports for name in node.names}
    assert declared.keys() == {*privfit.__all__, "__version__", "datasets"}
    for name, module in declared.items():
        assert getattr(importlib.import_module(module), name) is getattr(privfit, name)
