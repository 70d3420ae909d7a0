"""The picture of the rooms and the walk of a fit in docs/architecture.md are as the code is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from makers.places import ROOT


@pytest.mark.slow
def test_the_picture_and_the_walk_are_up_to_date():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "architecture.py"), "--check"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
