"""The compiled kernels are found if they were built from these sources, and not compiled twice."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

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
    [{"random.pyx": "cdef int one = 2\n"}, {"fixed.h": None}, {"new.pyx": ""}, {"new.pxd": ""}],
    ids=["edited", "removed", "added", "declared"],
)
def test_the_fingerprint_knows_every_source(tmp_path, fresh, change):
    texts = {name: text for name, text in (SOURCES | change).items() if text is not None}
    assert builds.fingerprint(kernels(tmp_path / "changed", texts)) != fresh


def test_the_fingerprint_does_not_know_line_endings_and_other_files(tmp_path, fresh):
    folder = kernels(tmp_path / "windows", SOURCES | {"random.pyi": "", "__init__.py": ""})
    (folder / "fixed.h").write_bytes(b"#define ONE 1\r\n")
    assert builds.fingerprint(folder) == fresh


# ------------------------------------------------------------------------ nothing is compiled twice
#
# setup.py as it stands, on tiny sources, with tools that write down what they are asked to make.

TINY = {
    "linear.pyx": "from privfit._kernels.random cimport ONE\n",
    "random.pyx": "",
    "random.pxd": 'cdef extern from "fixed.h":\n    int ONE\n',
    "fixed.h": "#define ONE 1\n",
    "centers.pyx": "from privfit._kernels.margins cimport margin\n",
    "margins.pxd": 'cdef extern from "lanes.h":\n    int margin\n',
    "lanes.h": "",
}


class Compiler:
    """Makes nothing, and says that it is some version."""

    compiler_type = "unix"

    def __init__(self, flags: str, version: str, headers: str) -> None:
        Path("compiler.py").write_text(f"print({version!r})\n")
        self.compiler_so = [sys.executable, "compiler.py", flags]
        self.include_dirs = [headers]

    def compile(self, sources: list[str], **options: object) -> list[str]:
        return sources

    def link_executable(self, *arguments: object, **options: object) -> None:
        pass


class MicrosoftCompiler(Compiler):
    """Finds itself when it is first used; its version is a part of its path."""

    compiler_type = "msvc"
    path: str

    def __init__(self) -> None:
        self.initialized, self.include_dirs = False, []

    def initialize(self) -> None:
        self.cc, self.initialized = self.path, True


class Extension:
    """As setuptools has it: a name, sources, and attributes."""

    def __init__(self, name: str, sources: list[str], **attributes: object) -> None:
        vars(self).update(name=name, sources=sources, depends=[])
        vars(self).update(attributes)


class BuildExt:
    """As setuptools has it, but a module is a text: the inputs that it was made from."""

    parallel = force = debug = plat_name = None
    build_temp = "build/temp"
    compiled: list[str]

    def run(self) -> None:
        self.build_extensions()

    def get_ext_filename(self, name: str) -> str:
        return name.replace(".", "/") + EXTENSION_SUFFIXES[0]

    def get_ext_fullpath(self, name: str) -> str:
        return f"build/lib/{self.get_ext_filename(name)}"

    def build_extensions(self) -> None:
        for extension in self.extensions:
            self.build_extension(extension)

    def build_extension(self, extension: Extension) -> None:
        assert all(source.endswith(".c") for source in extension.sources)
        module = Path(self.get_ext_fullpath(extension.name))
        if not module.exists():  # as if all that exist were newer than their sources
            module.write_text("".join(Path(path).read_text() for path in extension.depends))
            self.compiled.append(extension.name.removeprefix("privfit._kernels."))


class Build:
    """As setuptools has it: the command that runs the others."""

    build_base, build_lib = "build", "build/lib"

    def run(self) -> None:
        pass


def cythonize(extensions: list[Extension], build_dir: str, **options: object) -> list[Extension]:
    for extension in extensions:
        source = Path(build_dir, f"{extension.name}.c")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch(exist_ok=False)  # each is translated once
    return [Extension(one.name, [str(Path(build_dir, f"{one.name}.c"))]) for one in extensions]


class Tree:
    """A tree of tiny sources, where `build` runs setup.py and gives the names it compiled."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernels = folder / "privfit" / "_kernels"
        self.kernels.mkdir(parents=True)
        shutil.copy(ROOT / "setup.py", folder)
        shutil.copy(ROOT / "privfit" / "_kernels" / "builds.py", self.kernels)
        names = [path.name for path in (ROOT / "privfit" / "_kernels").glob("*.pyx")]
        for name, text in (dict.fromkeys(names, "") | TINY).items():
            (self.kernels / name).write_text(text)
        self.sources = {name.removesuffix(".pyx") for name in names}
        self.modules = folder / "build" / "lib" / "privfit" / "_kernels"
        self.setup = folder / "setup.py"
        self.monkeypatch = monkeypatch
        monkeypatch.chdir(folder)
        for switch in ("PRIVFIT_DEBUG", "PRIVFIT_OPENMP", "CPATH"):
            monkeypatch.delenv(switch, raising=False)
        monkeypatch.setenv("CC", sys.executable)  # some program; the compilers above do the work

    def module(self, name: str) -> str:
        return (self.modules / f"{name.replace('.', '/')}{EXTENSION_SUFFIXES[0]}").read_text()

    def build(
        self, cython: str = "3.2.1", flags: str = "-O3", version: str = "12.2",
        headers: str = "python", microsoft: bool = False, force: bool = False,
        whole: bool = False, command: type[BuildExt] = BuildExt,
    ) -> set[str]:  # fmt: skip
        compiled: list[str] = []

        def setup(ext_modules: list[Extension], cmdclass: dict[str, Any]) -> None:
            if whole:
                cmdclass["build"]().run()
            build = cmdclass["build_ext"]()
            build.extensions, build.compiled, build.force = ext_modules, compiled, force
            unix = Compiler(flags, version, headers)
            build.compiler = MicrosoftCompiler() if microsoft else unix
            build.run()

        for name, contents in {
            "Cython": {"__version__": cython},
            "Cython.Build": {"cythonize": cythonize},
            "setuptools": {"Extension": Extension, "setup": setup},
            "setuptools.command": {},
            "setuptools.command.build": {"build": Build},
            "setuptools.command.build_ext": {"build_ext": command},
        }.items():
            module = ModuleType(name)
            vars(module).update(contents)
            self.monkeypatch.setitem(sys.modules, name, module)
        runpy.run_path(str(self.setup), run_name="__main__")
        assert len(compiled) == len(set(compiled))
        return set(compiled)

    def compiled(self, **changes: Any) -> set[str]:
        """The names of the sources that a build compiled, each for every instruction set."""
        made = self.build(**changes)
        stems = {name.rpartition(".")[2] for name in made}
        assert made == {name for name in self.all if name.rpartition(".")[2] in stems}
        return stems

    def kept(self, name: str) -> list[Path]:
        folder = self.setup.parent / "build" / "modules" / "privfit" / "_kernels"
        return list((folder / f"{name}{EXTENSION_SUFFIXES[0]}").iterdir())

    def edit(self, name: str, text: str = "\n") -> None:
        path = self.kernels / name
        path.write_text(path.read_text() + text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree whose kernels were built."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("no sources beside these tests")
    tree = Tree(tmp_path, monkeypatch)
    tree.all = tree.build()
    assert {name.rpartition(".")[2] for name in tree.all} == tree.sources | {"_cyutility"}
    return tree


def test_modules_with_loops_are_built_for_each_instruction_set(tmp_path, monkeypatch):
    for machine, sets in (("x86_64", {"_baseline", "_avx2"}), ("aarch64", {"_baseline"})):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        (tmp_path / machine).mkdir()
        names = Tree(tmp_path / machine, monkeypatch).build()
        assert {name.rpartition(".")[0] for name in names} == sets | {""}
        assert {"random", "records", *(f"{folder}.linear" for folder in sets)} <= names


@pytest.mark.parametrize(
    ("debug", "microsoft", "system", "stripped"),
    [("0", False, "linux", ["-Wl,-s"]), ("0", False, "darwin", ["-Wl,-x"]),
     ("1", False, "linux", []), ("0", True, "win32", [])],
)  # fmt: skip
def test_modules_are_stripped_unless_they_are_for_a_debugger(
    tmp_path, monkeypatch, debug, microsoft, system, stripped
):
    linked = []

    class Linking(BuildExt):
        def build_extension(self, extension):
            super().build_extension(extension)
            linked.append(extension.extra_link_args)

    tree = Tree(tmp_path, monkeypatch)
    monkeypatch.setenv("PRIVFIT_DEBUG", debug)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(MicrosoftCompiler, "path", "14.44/cl.exe", raising=False)
    assert len(tree.build(microsoft=microsoft, command=Linking)) == len(linked) > 0
    assert all([each for each in one if each.startswith("-Wl")] == stripped for one in linked)


@pytest.mark.parametrize("whole", [True, False], ids=["build", "build_ext"])
def test_without_a_compiler_one_sentence_says_so_before_anything_else(tree, whole, monkeypatch):
    monkeypatch.setenv("CC", "no-such-cc -pthread")
    with pytest.raises(SystemExit, match=r"needs a C compiler to build, and no-such-cc was not "):
        tree.build(whole=whole)
    assert builds.stamp_in(tree.modules).exists()  # of the build before


def test_a_second_build_compiles_nothing(tree):
    before = tree.module("_baseline.linear")
    shutil.rmtree(tree.modules)
    assert tree.build() == set()
    assert tree.module("_baseline.linear") == before
    assert builds.stamp_in(tree.modules).read_text().strip() == builds.fingerprint(tree.kernels)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        ("linear.pyx", {"linear"}),
        ("random.pyx", {"random"}),
        ("random.pxd", {"random", "linear"}),
        ("fixed.h", {"random", "linear"}),
        ("margins.pxd", {"centers"}),
        ("lanes.h", {"centers"}),
    ],
)
def test_a_changed_source_compiles_the_modules_that_are_made_from_it(tree, name, compiled):
    tree.edit(name)
    assert tree.compiled() == compiled
    assert tree.build() == set()


def test_an_older_source_compiles_too(tree):
    tree.edit("fixed.h")
    os.utime(tree.kernels / "fixed.h", (0, 0))
    assert tree.compiled() == {"random", "linear"}


def test_a_touched_source_compiles_nothing(tree):
    for path in tree.kernels.iterdir():
        path.touch()
    assert tree.build() == set()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "switch", [("PRIVFIT_DEBUG", "1"), ("PRIVFIT_OPENMP", "0"), ("CPATH", "headers")]
)
def test_a_switch_of_the_environment_compiles_anew_and_back_nothing(tree, switch):
    with tree.monkeypatch.context() as there:
        there.setenv(*switch)
        assert tree.build() == tree.all
        assert tree.build() == set()
    assert tree.build() == set()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "tools",
    [{"cython": "3.3.0"}, {"flags": "-O3 -g"}, {"version": "13.1"}, {"headers": "other"}],
    ids=["Cython", "flags of the environment", "compiler", "headers"],
)
def test_other_tools_compile_anew(tree, tools):
    assert tree.build(**tools) == tree.all


def test_another_version_of_microsofts_compiler_compiles_anew(tree, monkeypatch):
    for path in ("14.38/cl.exe", "14.44/cl.exe"):
        monkeypatch.setattr(MicrosoftCompiler, "path", path, raising=False)
        assert tree.build(microsoft=True) == tree.all
        assert tree.build(microsoft=True) == set()


def test_another_python_compiles_anew(tree, monkeypatch):
    monkeypatch.setattr(sys, "version", sys.version.replace("3.", "3.9"))
    assert tree.build() == tree.all


def test_another_virtual_environment_compiles_nothing(tree, tmp_path, monkeypatch):
    for name in ("one", "two"):
        monkeypatch.setattr(sys, "prefix", str(tmp_path / name))
        compiled = tree.build(headers=str(tmp_path / name / "include"))
    assert compiled == set()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [('"-O3"', '"-O2"'), ('"overflowcheck": False', '"overflowcheck": True')],
    ids=["flag", "directive"],
)
def test_a_changed_recipe_compiles_anew(tree, old, new):
    text = tree.setup.read_text()
    assert old in text
    tree.setup.write_text(text.replace(old, new))
    assert tree.build() == tree.all


@pytest.mark.few(1)
@pytest.mark.parametrize("new", ['"-mavx"', '"-mavx512f"'])
def test_a_changed_flag_of_an_instruction_set_compiles_its_modules(tree, new, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    tree.all |= tree.build()
    text = tree.setup.read_text()
    assert '"-mavx2"' in text
    tree.setup.write_text(text.replace('"-mavx2"', new))
    assert tree.build() == {name for name in tree.all if name.startswith("_avx2.")}


def test_a_forced_build_compiles_everything(tree):
    assert tree.build(force=True) == tree.all
    assert tree.build() == set()


def test_a_reverted_source_brings_back_its_module(tree):
    module = tree.module("_baseline.linear")
    tree.edit("linear.pyx", "# edited\n")
    assert tree.compiled() == {"linear"}
    assert "# edited\n" in tree.module("_baseline.linear")
    (tree.kernels / "linear.pyx").write_text(TINY["linear.pyx"])
    assert tree.build() == set()
    assert tree.module("_baseline.linear") == module


def test_a_module_whose_compilation_failed_is_compiled_again(tree):
    class Failing(BuildExt):
        def build_extension(self, extension):
            super().build_extension(extension)
            if extension.name.endswith(".random"):
                raise OSError("no space left on device")

    tree.edit("random.pxd")
    with pytest.raises(OSError, match="no space left"):
        tree.build(command=Failing)
    assert not builds.stamp_in(tree.modules).exists()
    assert "random" in tree.build()
    assert tree.build() == set()


def test_a_module_whose_source_was_edited_meanwhile_is_not_kept(tree):
    class Slow(BuildExt):
        def build_extension(self, extension):
            tree.edit("linear.pyx", "# later\n")
            super().build_extension(extension)

    sooner = TINY["linear.pyx"] + "# sooner\n"
    for command in (Slow, BuildExt):
        (tree.kernels / "linear.pyx").write_text(sooner)
        before = builds.fingerprint(tree.kernels)
        assert tree.compiled(command=command) == {"linear"}
        assert builds.stamp_in(tree.modules).read_text().strip() == before
    assert "# later" not in tree.module("_baseline.linear")


@pytest.mark.slow
def test_the_versions_of_a_module_that_were_used_last_are_kept(tree):
    for edit in range(5):
        tree.edit("linear.pyx", f"# {edit}\n")
        assert tree.compiled() == {"linear"}
        (tree.kernels / "linear.pyx").write_text(TINY["linear.pyx"])
        assert tree.build() == set()  # used again and again
    assert len(tree.kept("_baseline/linear")) == 4
    tree.edit("linear.pyx", "# 0\n")
    assert tree.compiled() == {"linear"}


def test_what_an_older_tree_left_is_not_installed(tree):
    (tree.modules / "renamed.py").write_text("")
    assert tree.build(whole=True) == set()
    assert not (tree.modules / "renamed.py").exists()
    assert tree.module("_baseline.linear")


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
    assert Path(kernel).parents[1] == clone / "site" / "privfit" / "_kernels"
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
