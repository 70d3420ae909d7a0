"""The examples of the README and the docs run as they stand."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from makers.places import ROOT

import privfit

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.few(4)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_run_in_order(page, capsys):
    if not page.exists():
        pytest.skip(f"{page.name} is not shipped with this copy of the tests")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        exec(compile(block, page.name, "exec"), names)
    if page.name == "README.md":
        accuracy, ledger = re.match(r"accuracy ([\d.]+) (.*)", capsys.readouterr().out).groups()
        # All of 20 runs came to 1.0 on these separable records.
        assert float(accuracy) > 0.9
        assert ledger.startswith("Ledger(epsilon 1, delta 1e-06; spent epsilon 1, delta 1e-06")


EXAMPLES = sorted((ROOT / "docs" / "gallery").glob("*.py"))


@pytest.mark.slow
def test_commands_of_the_tutorial_run_as_pasted(tmp_path):
    """All but the installation, in an empty folder beside the docs of the clone."""
    page = ROOT / "docs" / "tutorial.md"
    if not page.exists() or not importlib.util.find_spec("filelock"):
        pytest.skip("the tutorial is not shipped with these tests, or budget files need filelock")
    lines = "".join(re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S))
    commands = [line for line in lines.splitlines() if not line.startswith("pip install")]
    assert len(commands) >= 8
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, text=True,
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (tmp_path / "census-predictions.csv").read_text().count("\n") == 20_001


def test_every_extra_is_on_the_page_of_the_installation():
    page, project = ROOT / "docs" / "install.md", ROOT / "pyproject.toml"
    if not page.exists() or not project.exists():
        pytest.skip("the page is not shipped with this copy of the tests")
    declared = project.read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2]
    extras = re.findall(r"^(\w+) = \[", declared.partition("\n[")[0], re.M)
    rows = re.findall(r"^\| (`.*?`) \|", page.read_text(encoding="utf-8"), re.M)
    assert len(extras) > 10
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(extras)


PAGES_AND_CODE = [*PAGES, *EXAMPLES, *sorted(Path(privfit.__file__).parent.rglob("*.py"))]


@pytest.mark.few(121)
@pytest.mark.parametrize("page", PAGES_AND_CODE, ids=lambda page: page.stem)
def test_no_example_scores_the_records_that_it_fits(page):
    """An exact score is a leak; examples score made-up records, which they call fresh."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        shown = re.findall(r"```python\n(.*?)```", text, re.S)
    elif page in EXAMPLES:
        shown = [text]
    else:
        shown = re.findall(r"^ *(?:>>>|\.\.\.) (.*)", text, re.M)
    scored = re.findall(r"\.score\((\w+)", "\n".join(shown))
    assert set(scored) <= {"fresh"}


# ----------------------------------------------------------------------------------------- the site

DOCS = ROOT / "docs"
OTHERS = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md")
WRITTEN = [page for page in [*PAGES, *(ROOT / name for name in OTHERS)] if page.exists()]
ROOMS = sorted(
    {path.parent.name for path in Path(privfit.__file__).parent.glob("*/__init__.py")}
    - {"_kernels", "commands"}  # which export nothing to users
)
ON_THE_SITE = pytest.mark.skipif(not DOCS.exists(), reason="pages are not shipped with these tests")


def without_code(text: str) -> str:
    """A page without its blocks and pieces of code."""
    return re.sub(r"`[^`]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    titles = re.findall(r"^#+ (.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@ON_THE_SITE
@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page):
    links = re.findall(
        r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", without_code(page.read_text("utf-8"))
    )
    for file, anchor in links:
        target = (page.parent / file) if file else page
        assert target.exists(), f"{page.name} links to {file}, which does not exist"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to #{anchor} of {target.name}"


@ON_THE_SITE
@pytest.mark.parametrize("folder", ["privfit", "bench", "tools", "tests"])
def test_pages_that_the_code_names_exist(folder):
    for path in (ROOT / folder).rglob("*.p*"):
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi"):
            for name in re.findall(r"\bdocs/[\w/]+\.md\b", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def listed(kind: str, text: str) -> list[str]:
    """The entries of all directives of a kind, such as the pages of toctrees."""
    blocks = re.findall(rf"^```{{{kind}}}\n(.*?)^```", text, re.S | re.M)
    blocks += re.findall(rf"^\.\. {kind}::\n((?:\n|[ ].*\n)*)", text, re.M)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and line[0] != ":"]


@ON_THE_SITE
def test_every_page_is_in_one_toctree():
    """Add a page by one line in the toctree of its section."""
    pages = [path for path in DOCS.rglob("*.md") if "_build" not in path.parts]
    entries = [
        str(page.relative_to(DOCS).parent / entry)
        for page in pages
        for entry in listed("toctree", page.read_text(encoding="utf-8"))
    ]
    found = [str(page.relative_to(DOCS).with_suffix("")) for page in pages]
    not_pages = {"auto_examples/index", "api/index"}
    assert sorted(entries) == sorted({*found, *not_pages} - {"index"})


@ON_THE_SITE
def test_the_reference_lists_every_public_name_once():
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    assert sorted(listed("autosummary", text)) == privfit.__all__


@ON_THE_SITE
@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_lists_what_only_a_room_exports(room):
    text = (DOCS / "api" / "rooms.rst").read_text(encoding="utf-8")
    section = text.partition(f"currentmodule:: privfit.{room}\n")[2].partition("currentmodule::")[0]
    module = importlib.import_module(f"privfit.{room}")
    own = [name for name in getattr(module, "__all__", ()) if not is_on_top(module, name)]
    assert listed("autosummary", section) == own


@ON_THE_SITE
def test_the_picture_of_solvers_names_those_of_the_tables():
    picture = (DOCS / "figures" / "solvers.svg").read_text(encoding="utf-8")
    tables = (DOCS / "methods.md").read_text(encoding="utf-8")
    names = set(re.findall(r"fill: #ffffff[^>]*>(\w+)</text>", picture))  # white on blue
    assert len(names) > 10
    assert {name for name in names if f'`"{name}"`' not in tables} == set()


def is_on_top(module: Any, name: str) -> bool:
    """Whether privfit itself exports the same object under the same name."""
    return name in privfit.__all__ and getattr(privfit, name) is getattr(module, name)


OLD_NAMES = ("privfit.plotting", "privfit.postprocess")  # they warn: see test_names.py


def modules() -> list[str]:
    """Every module of the library but the compiled ones, which `reference.py` explains."""
    found = pkgutil.walk_packages(privfit.__path__, "privfit.")
    return [
        module.name
        for module in found
        if "._kernels" not in module.name
        and "__main__" not in module.name
        and module.name not in OLD_NAMES
    ]


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_hold(name):
    with warnings.catch_warnings():  # an example may set filters of its own
        for test in examples(name):
            result = doctest.DocTestRunner().run(test)
            assert result.failed == 0, test.name


@pytest.mark.parametrize("name", privfit.__all__)
def test_every_public_name_has_an_example(name):
    assert ">>> " in getattr(privfit, name).__doc__


@ON_THE_SITE
def test_every_name_of_a_room_on_the_site_has_an_example():
    lines, module, lacking = (DOCS / "api" / "rooms.rst").read_text().splitlines(), "", []
    for line in lines:
        if line.startswith(".. currentmodule:: "):
            module = line.rpartition(" ")[2]
        elif re.fullmatch(r"   [A-Za-z]\w+", line):
            found = getattr(importlib.import_module(module), line.strip())
            lacking += [] if ">>> " in (found.__doc__ or "") else [f"{module}.{line.strip()}"]
    assert module
    assert lacking == []
