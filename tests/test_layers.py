"""Who imports whom: kernels never see epsilon, mechanisms never see records."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

import privfit

PACKAGE = Path(privfit.__file__).parent

RECORDS = {"_kernels", "reading", "frames", "domains", "packing", "binary", "scores", "objectives"}
RELEASES = {"_kernels", "accounting", "mechanisms", "ledger", "noise"}
SEARCHES = {"spaces", "paths", "privgene", "dpsga", "subsample", "solvers"}
ALGORITHMS = {"privgene", "dpsga", "subsample", "descent", "perturbation", "hybrid", "kmeans",
              "kmedian", "aggregate", "features", "functional", "bayes", "roc", "auto"}  # fmt: skip

# What a part of the package may import from the others; itself it may always import.
ALLOWED: dict[str, set[str]] = {
    "checks": set(),
    "cautions": set(),
    "_kernels": set(),
    "reading": {"_kernels"},
    "csv_files": {"_kernels"},
    "frames": {"reading"},
    "domains": {"_kernels", "reading", "frames"},
    "packing": {"_kernels", "domains", "reading", "frames"},
    "binary": {"_kernels", "packing"},
    "scores": {"binary", "packing"},
    "objectives": {"_kernels", "domains", "dyadic", "packing"},
    "curves": set(),
    "accounting": {"curves"},
    "dyadic": set(),
    "lazy": {"_kernels", "dyadic"},
    "shapes": {"_kernels", "dyadic", "lazy"},
    "mechanisms": {"_kernels", "accounting", "dyadic", "shapes"},
    "released": {"ledger"},
    "neighbours": set(),
    "budgets": set(),
    "charges": {"budgets", "neighbours"},
    "filters": {"accounting", "curves"},
    "grants": {"accounting", "mechanisms", "budgets", "filters", "neighbours"},
    "ledger": {"accounting", "budgets", "charges", "grants", "neighbours"},
    "files": set(),
    "budget_file": {"budgets", "charges", "files", "grants", "ledger", "neighbours"},
    "noise": {"accounting", "mechanisms", "ledger"},
    "partition": {"_kernels", "accounting", "mechanisms"},
    "checkpoint": {"_kernels", "charges", "ledger", "mechanisms", "partition"},
    "means": set(),
    "cumulative": set(),
    "binormal": set(),
    "priroc": {"cumulative"},
    "medians": {"_kernels", "accounting", "mechanisms"},
    "smooth_medians": {"_kernels", "medians"},
    "starts": {"domains", "means", "objectives"},
    "postprocess": {"_kernels", "ledger", "means"},
    "plain": set(),
    "declared": {"domains", "solvers"} | ALGORITHMS,
    "model": {"files", "plain", "declared", "ledger", "domains", "binary", "objectives", "bayes"}
    | {"roc", "text", "estimators"},
    "text": {"reading"},
    "plotting": {"accounting", "domains", "files", "ledger"},
    "sweeps": {"estimators", "ledger", "plain"},
    "backends": RECORDS | {"csv_files"},
    "audit": RELEASES
    | {"cautions", "partition", "perturbation", "roc", "shapes", "smooth_medians"},
    "spaces": set(),
    "paths": RECORDS | RELEASES | {"spaces"},
    "solvers": RELEASES | SEARCHES,
    "losses": RECORDS,
    "convex": RECORDS | {"dyadic", "losses", "shapes"},
    **{
        name: RECORDS
        | RELEASES
        | {"convex", "dyadic", "lazy", "losses", "shapes", "means", "partition", "postprocess"}
        | {"spaces"}
        | {"paths", "cumulative", "binormal", "priroc", "starts", "plotting", "backends"}
        | {"medians", "smooth_medians"}
        | {"released"}
        | ALGORITHMS
        for name in ALGORITHMS
    },
    "estimators": RECORDS
    | RELEASES
    | SEARCHES
    | ALGORITHMS
    | {"postprocess", "text", "backends", "released"},
}
EVERYTHING = {"__init__", "__main__", "cli", "commands"}  # the public names, and the command
ANYONE = {"checks", "cautions"}  # small tests of arguments, and warnings

OUTSIDE = {"numpy", "scipy"}  # what the core may import besides the standard library
LAZY = {"domains": {"tomllib", "tomli"},  # the former is the standard library's from 3.11 on
        "reading": {"pyarrow"}, "estimators": {"sklearn"}, "solvers": {"tqdm"},
        "commands": {"matplotlib", "pyarrow", "sklearn"}, "aggregate": {"sklearn"},
        "plotting": {"contourpy", "matplotlib"}, "sweeps": {"sklearn", "threadpoolctl"},
        "budget_file": {"filelock"}, "backends": {"dask", "distributed", "pyarrow"}}  # fmt: skip


def part_of(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


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


def parts_imported(source: Path) -> set[str]:
    """Parts of privfit that a file imports."""
    inside = {name for name in imported(source) if name.split(".")[0] == "privfit"}
    known = {part_of(path) for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir()
    }
    return {part for name in inside for part in name.split(".")[1:2] if part in known} - {
        "__init__"
    }


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dependencies_point_one_way(source):
    part = part_of(source)
    if part in EVERYTHING:
        assert part in {"__init__", "__main__"} or "cli" not in parts_imported(source)
        return
    assert part in ALLOWED, f"{part} is new: say in ALLOWED what it may import"
    assert parts_imported(source) <= ALLOWED[part] | {part} | ANYONE


def test_nothing_imports_the_command_or_goes_around_the_table():
    """The table itself has no cycles between records, releases and what is built on them."""
    for part, allowed in ALLOWED.items():
        for other in allowed - {part}:
            both_algorithms = part in ALGORITHMS and other in ALGORITHMS
            assert both_algorithms or part not in ALLOWED[other], (part, other)
    assert not RECORDS & {"mechanisms", "ledger", "accounting"}
    assert not any(RELEASES & ALLOWED[part] - {"_kernels"} for part in RECORDS)
    assert not any(RECORDS & ALLOWED[part] - {"_kernels"} for part in RELEASES)


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
            assert module.startswith("privfit._kernels"), f"{source.name} imports {module}"
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
        if part_of(source) in RECORDS:
            names = {node.id for node in ast.walk(ast.parse(source.read_text()))
                     if isinstance(node, ast.Name)}  # fmt: skip
            names |= {node.arg for node in ast.walk(ast.parse(source.read_text()))
                      if isinstance(node, ast.arg)}  # fmt: skip
            assert not names & {"epsilon", "delta", "ledger", "grant", "budget"}, source.name


def test_importing_privfit_imports_nothing_that_is_optional(fresh_python):
    done = fresh_python("import json, sys, privfit; print(json.dumps(sorted(sys.modules)))")
    roots = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert "numpy" in roots
    assert not roots & {"sklearn", "pandas", "matplotlib", "dask", "pyarrow", "tqdm", "filelock",
                        "tomllib", "tomli", "hypothesis", "pytest"}  # fmt: skip


def test_public_names_exist_and_are_the_only_ones():
    assert set(privfit.__all__) <= set(dir(privfit))
    modules = {part_of(source) for source in SOURCES}
    shown = {name for name in dir(privfit) if not name.startswith("_")} - modules
    assert shown == set(privfit.__all__)
