"""The compiled kernels are found, in place or installed, if they were built from these sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from makers.places import ROOT

from privfit._kernels import builds, random

SOURCES = {"random.pyx": "cdef int one = 1\n", "fixed.h": "#define ONE 1\n"}


def kernels(root: Path, sources: dict[str, str] | None = None, stamp: str | None = None) -> Path:
    """A folder of kernels: with these sources, and the stamp of a build from these or others."""
    folder = root / "privfit" / "_kernels"
    folder.mkdir(parents=True)
    for name, text in (sources or {}).items():
        (folder / name).write_text(text)
    if stamp is not None:
        builds.stamp_in(folder).write_text(stamp + "\n")
    return folder


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """The fingerprint of the sources."""
    return builds.fingerprint(kernels(tmp_path / "fresh", SOURCES))


def test_kernels_that_are_built_in_place_come_first(tmp_path, fresh):
    here = kernels(tmp_path / "clone", SOURCES, fresh)
    kernels(tmp_path / "site", stamp=fresh)
    assert builds.find_build(here, [str(tmp_path / "site")]) == here


def test_kernels_of_an_installed_privfit_serve_a_clone_without(tmp_path, fresh):
    here = kernels(tmp_path / "clone", SOURCES)
    kernels(tmp_path / "older", stamp="of other sources")
    site = kernels(tmp_path / "site", stamp=fresh)
    path = [str(tmp_path / name) for name in ("nothing", "older", "site")]
    assert builds.find_build(here, path) == site


def test_a_stale_build_in_place_gives_way_to_a_fresh_installed_one(tmp_path, fresh):
    here = kernels(tmp_path / "clone", SOURCES, "of other sources")
    site = kernels(tmp_path / "site", stamp=fresh)
    assert builds.find_build(here, [str(tmp_path / "site")]) == site


def test_an_installed_privfit_has_no_sources_to_compare_with(tmp_path):
    site = kernels(tmp_path / "site", {"random.pxd": "shipped"}, "of its own sources")
    assert builds.find_build(site, []) == site


def test_a_build_of_other_sources_is_refused_in_place_and_installed(tmp_path, fresh):
    changed = SOURCES | {"fixed.h": "#define ONE 2\n"}
    for where in ("clone", "site"):
        root = tmp_path / where / "of"
        here = kernels(root / "clone", changed, fresh if where == "clone" else None)
        kernels(root / "site", stamp=fresh)
        with pytest.raises(ImportError, match=r"built from other sources than .* `pip install .`"):
            builds.find_build(here, [str(root / "site")])


def test_no_build_at_all_is_one_sentence_with_two_remedies(tmp_path):
    here = kernels(tmp_path / "clone", SOURCES)
    with pytest.raises(ImportError, match=r"no compiled kernels .* `pip install .` or `python set"):
        builds.find_build(here, [str(tmp_path)])


def test_a_build_for_another_interpreter_is_none(tmp_path, fresh):
    here = kernels(tmp_path / "clone", SOURCES)
    builds.stamp_in(here, ".cpython-27-pdp11.so").write_text(fresh)
    with pytest.raises(ImportError, match="no compiled kernels for this Python"):
        builds.find_build(here, [])


@pytest.mark.parametrize(
    "change",
    [{"random.pyx": "cdef int one = 2\n"}, {"fixed.h": None}, {"tiles.c": ""}, {"new.pxd": ""}],
    ids=["edited", "removed", "added", "declared"],
)
def test_the_fingerprint_knows_every_source(tmp_path, fresh, change):
    texts = {name: text for name, text in (SOURCES | change).items() if text is not None}
    assert builds.fingerprint(kernels(tmp_path / "changed", texts)) != fresh


def test_the_fingerprint_does_not_know_line_endings_and_other_files(tmp_path, fresh):
    folder = kernels(tmp_path / "windows", SOURCES | {"random.pyi": "", "__init__.py": ""})
    (folder / "fixed.h").write_bytes(b"#define ONE 1\r\n")
    assert builds.fingerprint(folder) == fresh


# ------------------------------------------------------------------------------ a clone, as it is


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of this tree without compiled kernels; beside it a privfit installed elsewhere.

    The latter has kernels alone: whatever else runs is the clone's.
    """
    if not (ROOT / "setup.py").exists():
        pytest.skip("no sources beside these tests")
    folder = tmp_path_factory.mktemp("clone")
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "built.*", "__pycache__")
    shutil.copytree(ROOT / "privfit", folder / "privfit", ignore=compiled)
    shutil.copytree(Path(random.__file__).parent, folder / "site" / "privfit" / "_kernels")
    return folder


def run_in(clone: Path, *arguments: str, site: bool = True) -> subprocess.CompletedProcess[str]:
    """`python ...` at the root of the clone."""
    path = {"PYTHONPATH": str(clone / "site") if site else ""}
    return subprocess.run(
        [sys.executable, *arguments], cwd=clone, env=os.environ | path, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_python_at_the_root_of_a_clone_takes_the_installed_kernels(clone):
    script = (
        "import privfit, privfit._kernels.linear as k; print(privfit.__file__, k.__file__, sep='|')"
    )
    done = run_in(clone, "-c", script)
    ours, kernel = done.stdout.strip().split("|")
    assert Path(ours) == clone / "privfit" / "__init__.py", done.stderr
    assert Path(kernel).parent == clone / "site" / "privfit" / "_kernels"
    assert "tight" in run_in(clone, "-m", "privfit", "budget").stdout


def test_a_clone_whose_sources_changed_since_says_so_in_one_sentence(clone, tmp_path):
    changed = tmp_path / "changed"
    shutil.copytree(clone, changed)
    with (changed / "privfit" / "_kernels" / "random.pyx").open("a") as source:
        source.write("# changed\n")
    done = run_in(changed, "-m", "privfit", "budget")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the compiled kernels in ")
    assert last.endswith("run `pip install .` or `python setup.py build_ext --inplace`")


def test_a_clone_on_a_machine_without_privfit_says_what_to_run(clone):
    script = "import sys; sys.path[:0] = ['privfit/_kernels']; import builds; builds.locate()"
    done = run_in(clone, "-S", "-c", script, site=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: privfit has no compiled kernels for this Python; run `pip install .` or "
        "`python setup.py build_ext --inplace`"
    )
