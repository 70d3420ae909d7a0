"""Every command that a page shows is run by continuous integration, or named with the reason."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from makers.places import ROOT

SCRIPT = ROOT / ".ci" / "documented.py"
if not SCRIPT.exists():
    pytest.skip("continuous integration is not shipped with these tests", allow_module_level=True)
CI: dict[str, Any] = runpy.run_path(str(SCRIPT))
STARTS = ("python ", "pip ", "privfit ", "pytest", "git ", "ruff ", "mypy", ".ci/", "./", "bash ")


def test_commands_are_found_in_blocks_and_in_sentences():
    page = (
        "Run `python bench/a.py --b` or `python\nbench/c.py`.\n"
        "```sh\npip install . && privfit x  # why\n# no command\nls\n```\n"
        "```python\npython = `python d.py`\n```\n```python numba\nimport numba\n```\n"
        "```\nprivfit: ok\n```"
    )
    assert list(CI["commands"](page)) == [
        "python bench/a.py --b", "python bench/c.py", "pip install .", "privfit x", "ls"
    ]  # fmt: skip


@pytest.mark.parametrize("page", CI["pages"](), ids=lambda page: page.name)
def test_commands_stand_in_blocks_that_are_marked_as_such(page: Path):
    """Else they would not be seen, and not be run."""
    text = re.sub(r"```sh\n.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.S)
    blocks += re.findall(r"^(?: {4}|\t)(.*)", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    lines = [line.lstrip(" $") for block in blocks for line in block.splitlines()]
    assert not [line for line in lines if line.startswith(STARTS)]


def test_every_bench_that_is_shown_has_options_that_make_it_short():
    shown = [each for each in CI["documented"]() if each.startswith("python -m bench")]
    assert len(shown) > 20
    at_once = {"python -m bench --help"}
    for command in set(shown) - set(CI["NOT_RUN"]) - at_once:
        assert CI["shortened"](command) != command, f"say in SHORT how {command!r} runs shortly"


def test_exceptions_are_still_shown_and_have_a_reason():
    shown = set(CI["documented"]())
    assert set(CI["NOT_RUN"]) - shown == set()
    assert all(len(reason) > 10 for reason in CI["NOT_RUN"].values())
    subjects = {" ".join(re.sub(r"^python -m ", "", each).split()[:2]) for each in shown}
    for name in CI["SHORT"]:
        assert name in shown | subjects, f"{name} is shown nowhere: take it out of SHORT"


def test_continuous_integration_runs_them():
    assert re.search(r"^ +\S*python.* \.ci/documented\.py$", (ROOT / ".ci/run").read_text(), re.M)
