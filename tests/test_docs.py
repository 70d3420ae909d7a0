"""The examples of the README and the docs run as they stand."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import warnings
from pathlib import Path

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


PAGES_AND_CODE = [*PAGES, *sorted(Path(privfit.__file__).parent.rglob("*.py"))]


@pytest.mark.few(121)
@pytest.mark.parametrize("page", PAGES_AND_CODE, ids=lambda page: page.stem)
def test_no_example_scores_the_records_that_it_fits(page):
    """An exact score is a leak; examples score made-up records, which they call fresh."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        shown = re.findall(r"```python\n(.*?)```", text, re.S)
    else:
        shown = re.findall(r"^ *(?:>>>|\.\.\.) (.*)", text, re.M)
    scored = re.findall(r"\.score\((\w+)", "\n".join(shown))
    assert set(scored) <= {"fresh"}


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
