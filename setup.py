"""The compiled kernels: which extensions there are, and how they are built.

Compiled modules are kept in build/modules, each named by a digest of all that it was made from. A
later build from this tree compiles only what is not there; after `pip install .`, that is nothing.

Environment: PRIVFIT_DEBUG=1 builds with bounds checks and assertions, without optimisation;
PRIVFIT_OPENMP=0 builds without OpenMP; PRIVFIT_WERROR=1 makes warnings of the compiler errors.
"""

import hashlib
import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

KERNELS = Path("privfit") / "_kernels"
BUILDS = runpy.run_path(str(KERNELS / "builds.py"))
DEBUG = os.environ.get("PRIVFIT_DEBUG", "0") == "1"
X86 = platform.machine().lower() in {"x86_64", "amd64"}

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": not DEBUG,
    "overflowcheck": False,
    "freethreading_compatible": True,  # kernels work on memory that their callers own
    "annotation_typing": False,  # annotations are for readers; C types are spelled cdef
}

# Losses must be the same bits everywhere: no fast-math, and no fused multiply-add made behind our
# back. Integers wrap (-fwrapv): only a final sum has to fit.
FLAGS = {
    "unix": ["-O1", "-g", "-fno-omit-frame-pointer"] if DEBUG else ["-O3", "-g0"],
    "msvc": ["/Od", "/Zi"] if DEBUG else ["/O2"],
}
FLAGS["unix"] += ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv"]
FLAGS["msvc"] += ["/fp:precise"]
# What Cython writes and compilers may warn of: a thread's number where there is no OpenMP, and the
# line of an error where bounds are checked.
CYTHONS_OWN = ["-Wno-unused-but-set-variable"] + ["-Wno-maybe-uninitialized"] * DEBUG
if os.environ.get("PRIVFIT_WERROR", "0") == "1":
    FLAGS["unix"] += ["-Wall", "-Werror", *CYTHONS_OWN]
# Modules without symbols of their own; debuggers need them. Apple's linker keeps those it must.
STRIPPED = [] if DEBUG else ["-Wl,-x" if sys.platform == "darwin" else "-Wl,-s"]
LINKED = {"unix": STRIPPED, "msvc": []}
AVX2 = {"unix": ["-mavx2", "-mfma"], "msvc": ["/arch:AVX2"]}
OPENMP = {
    "msvc": [(["/openmp"], [])],
    "unix": [(["-fopenmp"], ["-fopenmp"]), (["-Xpreprocessor", "-fopenmp"], ["-lomp"])],
}

# Modules whose loops are worth an instruction set are compiled for each of them, from one source,
# and lie in a folder of their own: `_kernels/__init__.py` puts one of these folders in front.
VARIANTS = {"baseline": {"unix": [], "msvc": []}} | ({"avx2": AVX2} if X86 else {})
ONCE = (
    "cpu", "threads", "objects", "records", "candidates", "halvings", "random", "counts", "cells",
    "columns", "panels", "pool", "texts",
)  # fmt: skip
EACH = (
    "linear", "codes", "smooth", "centers", "facility", "select", "chain", "scored", "means",
)  # fmt: skip

# No loop of theirs is hot, so that they are compiled faster than they could run.
COLD = ("cpu", "threads", "records", "_cyutility")
QUICKLY = {"unix": ["-O1"], "msvc": ["/O1"]}

# What Cython adds to every module with typed memoryviews, compiled once: half of a build's time.
SHARED = "privfit._kernels._cyutility"
CYTHON = {"compiler_directives": DIRECTIVES, "shared_utility_qualified_name": SHARED}
TRANSLATED = Path("build") / "cython"

KEPT = Path("build") / "modules"
VERSIONS = 4  # of each module are kept, those used last

# Variables that compilers read by themselves; CC, CFLAGS and the like become a compiler's settings.
VARIABLES = (
    "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "MACOSX_DEPLOYMENT_TARGET", "SDKROOT",
    "CL", "_CL_", "LINK", "_LINK_",
)  # fmt: skip
# Settings of a compiler that do not change what it makes. Folders of headers are judged apart.
INERT = {"verbose", "dry_run", "force", "include_dirs", "_paths"}


class CleanBuild(build):
    """Starts with an empty folder: what an older tree left in it would become part of a wheel."""

    def run(self) -> None:
        require_compiler()  # before the lines of other commands
        if Path(self.build_lib).is_relative_to(self.build_base):
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class ReusingBuild(build_ext):
    """Compiles the extensions that no earlier build has made from the same inputs.

    The inputs of an extension are its attributes, the files that it depends on, and the toolchain.
    """

    def build_extensions(self) -> None:
        toolchain = self.toolchain()
        self.kept = {}
        for extension in self.extensions:
            extension.texts = texts(extension)
            module = KEPT / self.get_ext_filename(extension.name)
            self.kept[extension.name] = module / digest(vars(extension), toolchain)
            if self.force:
                self.kept[extension.name].unlink(missing_ok=True)
        self.translate([e for e in self.extensions if not self.kept[e.name].exists()])
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        module, kept = Path(self.get_ext_fullpath(extension.name)), self.kept[extension.name]
        module.parent.mkdir(parents=True, exist_ok=True)
        module.unlink(missing_ok=True)  # it may be newer than its sources, and of other flags
        if kept.exists():
            shutil.copy(kept, module)
            kept.touch()
            return
        super().build_extension(extension)
        if texts(extension) == extension.texts:  # no source was edited meanwhile
            keep(module, kept)

    def translate(self, extensions: list[Extension]) -> None:
        """Let Cython write the C files of these extensions: one a source, a copy a variant."""
        if extensions:
            shutil.rmtree(TRANSLATED, ignore_errors=True)  # Cython copies headers to it
        sources = {extension.once: None for extension in extensions}
        once = [Extension(name, list(files)) for name, files in sources]
        folder = str(TRANSLATED / "once")
        for found in cythonize(once, force=True, build_dir=folder, **CYTHON):
            for extension in extensions:
                if extension.once[0] == found.name:
                    extension.sources = [copy_to(extension.variant, path) for path in found.sources]

    def toolchain(self) -> list[object]:
        """What all extensions are made with: compiler, Cython, Python, and their settings."""
        if not getattr(self.compiler, "initialized", True):  # Microsoft's finds its path late
            self.compiler.initialize()
        settings = {name: value for name, value in vars(self.compiler).items() if name not in INERT}
        headers = [
            folder
            for folder in self.compiler.include_dirs
            if not Path(folder).is_relative_to(sys.prefix)  # of a virtual environment
        ]
        variables = {name: os.environ.get(name) for name in VARIABLES}
        built_for = (sys.version, self.plat_name, self.debug)
        return [settings, self.version(), headers, variables, built_for, Cython.__version__, CYTHON]

    def version(self) -> bytes | None:
        """What the compiler says of itself; Microsoft's has its version in its path."""
        command = getattr(self.compiler, "compiler_so", None)
        if command is None or shutil.which(command[0]) is None:
            return None
        return subprocess.run([*command, "--version"], capture_output=True, check=False).stdout


def copy_to(variant: str, path: str) -> str:
    """A C file for an instruction set: objects are named after their sources."""
    if not variant:
        return path
    folder = TRANSLATED / variant
    folder.mkdir(parents=True, exist_ok=True)
    return shutil.copy(path, folder)


def require_compiler() -> None:
    """Stop with one sentence where there is no C compiler."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC")
    if os.name == "nt" or not command:  # Microsoft's is found in other ways, and missed in words
        return
    if shutil.which(program := shlex.split(command)[0]) is None:
        raise SystemExit(
            f"privfit needs a C compiler to build, and {program} was not found: install it "
            "(on Debian: apt-get install build-essential), set CC to another one, or use a wheel"
        )


def digest(*parts: object) -> str:
    """The SHA-256 of plain values."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def texts(extension: Extension) -> str:
    """The SHA-256 of the files that an extension is made from."""
    return BUILDS["digest"](map(Path, extension.depends))


def inputs(source: Path) -> list[str]:
    """The source, its own declarations, and all files beside it that one of these names."""
    names = {
        path: rf"\b{path.stem}\b" if path.suffix == ".pxd" else rf"[\"'</]{path.name}\b"
        for path in KERNELS.iterdir()
        if path.suffix in BUILDS["SUFFIXES"]
    }
    found = {source, *(names.keys() & {source.with_suffix(".pxd")})}
    unread = list(found)
    while unread:
        text = unread.pop().read_text(encoding="utf-8")
        named = {path for path, name in names.items() if re.search(name, text)} - found
        found |= named
        unread += named
    return sorted(map(str, found))


def keep(module: Path, kept: Path) -> None:
    """Copy a compiled module to where later builds look for it; drop the version used least."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(shutil.copy(module, kept.with_suffix(".part")))
    draft.replace(kept)  # an interrupted build keeps no half of a module
    versions = sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime)
    for version in versions[:-VERSIONS]:
        version.unlink()


class BuildKernels(ReusingBuild):
    """Adds what depends on the compiler: flags, OpenMP if it has it, each instruction set."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Build; a stamp is left beside the modules once all of them are made."""
        require_compiler()
        modules = Path(self.get_ext_fullpath("privfit._kernels.cpu")).parent
        suffix = self.get_ext_filename("cpu").removeprefix("cpu")
        stamp = BUILDS["stamp_in"](modules, suffix)
        stamp.unlink(missing_ok=True)
        sources = BUILDS["fingerprint"](KERNELS)  # before one of them is edited
        super().run()
        stamp.write_text(sources + "\n")

    def build_extensions(self) -> None:
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        compile_openmp, link_openmp = self.openmp(kind)
        for extension in self.extensions:
            own = VARIANTS[extension.variant][kind] if extension.variant else []
            if extension.name.rpartition(".")[2] in COLD:
                own = QUICKLY[kind]
            extension.extra_compile_args = FLAGS[kind] + compile_openmp + own
            extension.extra_link_args = link_openmp + LINKED[kind]
        super().build_extensions()

    def openmp(self, kind: str) -> tuple[list[str], list[str]]:
        """The flags that make a parallel program compile and link, or none."""
        if os.environ.get("PRIVFIT_OPENMP", "1") == "0":
            return [], []
        for compile_args, link_args in OPENMP[kind]:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / "probe.c"
                source.write_text(
                    "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
                )
                try:
                    objects = self.compiler.compile(
                        [str(source)], output_dir=folder, extra_postargs=compile_args
                    )
                    self.compiler.link_executable(
                        objects, str(Path(folder) / "probe"), extra_postargs=link_args
                    )
                except Exception:  # each compiler class has errors of its own
                    continue
            return compile_args, link_args
        print("privfit: this compiler has no OpenMP; building for one thread", file=sys.stderr)
        return [], []


def kernel(name: str, variant: str = "") -> Extension:
    """The extension of a `.pyx` file: one for all CPUs, or that for an instruction set."""
    source = KERNELS / f"{name}.pyx"
    folder = f"_{variant}." if variant else ""
    extension = Extension(
        f"privfit._kernels.{folder}{name}",
        [str(source)],
        include_dirs=[str(KERNELS)],
        depends=inputs(source),
        define_macros=[] if DEBUG else [("NDEBUG", "1")],
        undef_macros=["NDEBUG"] if DEBUG else [],
    )
    extension.variant, extension.once = variant, (f"privfit._kernels.{name}", (str(source),))
    return extension


shared = Extension(SHARED, [])
shared.variant, shared.once = "", (SHARED, ())

setup(
    ext_modules=[
        *(kernel(name) for name in ONCE),
        *(kernel(name, variant) for variant in VARIANTS for name in EACH),
        shared,
    ],
    cmdclass={"build": CleanBuild, "build_ext": BuildKernels},
)
