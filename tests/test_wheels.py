"""What builds and publishes wheels is pinned, and nobody publishes by accident."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from makers.places import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "wheels.yml"
if not WORKFLOW.exists():
    pytest.skip("the workflow is not shipped with these tests", allow_module_level=True)


@pytest.fixture(scope="module")
def jobs() -> dict[str, str]:
    """The text of each job."""
    _, *parts = re.split(r"^  (\w+):\n", WORKFLOW.read_text().partition("\njobs:\n")[2], flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_action_is_pinned_by_its_commit_with_its_version():
    used = re.findall(r"uses: (.*)", WORKFLOW.read_text())
    assert len(used) > 5
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)
    assert len(set(used)) == len({one.partition("@")[0] for one in used})  # one version of each


def test_packages_that_build_or_check_are_pinned():
    installed = re.findall(r"pip install (cibuildwheel|twine)(\S*)", WORKFLOW.read_text())
    assert len(installed) == 2
    assert all(re.fullmatch(r"==\d+\.\d+\.\d+", version) for _, version in installed)


def test_a_person_publishes_from_a_tag_and_only_that_job_may_ask_for_a_token(jobs):
    assert set(jobs) == {"wheels", "sdist", "check", "publish"}
    condition = re.search(r"^    if: (.*)", jobs["publish"], re.M)[1]
    parts = {"github.event_name == 'workflow_dispatch'", "inputs.publish",
             "startsWith(github.ref, 'refs/tags/v')"}  # fmt: skip
    assert set(condition.split(" && ")) == parts
    assert "needs: check" in jobs["publish"]
    assert [name for name, text in jobs.items() if "id-token" in text] == ["publish"]
    assert "secrets." not in WORKFLOW.read_text()


def test_no_runner_is_gone_and_both_kinds_of_cpu_are_there(jobs):
    runners = re.search(r"os: \[(.*)\]", jobs["wheels"])[1].split(", ")
    assert not {"macos-12", "macos-13", "windows-2019", "ubuntu-20.04"} & {*runners}
    assert {"ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "macos-15-intel"} <= {*runners}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", ["release", "libomp", "nightly", "aarch64"])
def test_scripts_are_bash_that_can_be_read(name):
    done = subprocess.run(["bash", "-n", str(ROOT / "tools" / name)], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (ROOT / "tools" / name).read_text().startswith("#!/usr/bin/env bash\n")
