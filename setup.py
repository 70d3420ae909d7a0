"""The compiled kernels: which extensions there are, and how they are built.

Environment: PRIVFIT_DEBUG=1 builds with bounds checks and assertions, without optimisation;
PRIVFIT_OPENMP=0 builds without OpenMP.
"""

import os
import platform
import runpy
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
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
    "annotation_typing": False,  # annotations are for readers; C types are spelled cdef
}

# Losses must be the same bits everywhere: no fast-math, and no fused multiply-add made behind our
# back. Integers wrap (-fwrapv): only a final sum has to fit.
FLAGS = {
    "unix": ["-O1", "-g", "-fno-omit-frame-pointer"] if DEBUG else ["-O3"],
    "msvc": ["/Od", "/Zi"] if DEBUG else ["/O2"],
}
FLAGS["unix"] += ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv"]
FLAGS["msvc"] += ["/fp:precise"]
AVX2 = {"unix": ["-mavx2", "-mfma"], "msvc": ["/arch:AVX2"]}
OPENMP = {
    "msvc": [(["/openmp"], [])],
    "unix": [(["-fopenmp"], ["-fopenmp"]), (["-Xpreprocessor", "-fopenmp"], ["-lomp"])],
}


class BuildKernels(build_ext):
    """Adds what depends on the compiler: flags, OpenMP if it has it, the tiles for each CPU."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Build; a stamp is left beside the modules once all of them are made."""
        modules = Path(self.get_ext_fullpath("privfit._kernels.simd")).parent
        suffix = self.get_ext_filename("simd").removeprefix("simd")
        stamp = BUILDS["stamp_in"](modules, suffix)
        stamp.unlink(missing_ok=True)
        super().run()
        stamp.write_text(BUILDS["fingerprint"](KERNELS) + "\n")

    def build_extensions(self) -> None:
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        compile_openmp, link_openmp = self.openmp(kind)
        for extension in self.extensions:
            extension.extra_compile_args = FLAGS[kind] + compile_openmp
            extension.extra_link_args = link_openmp
            if extension.name.endswith(".simd"):
                extension.extra_objects = self.tiles(kind)
        super().build_extensions()

    def tiles(self, kind: str) -> list[str]:
        """Compile tiles.c once for each instruction set."""
        variants = {"baseline": [], "avx2": AVX2[kind]} if X86 else {"baseline": []}
        objects = []
        for name, flags in variants.items():
            macros = [("PRIVFIT_TABLE", f"privfit_tiles_{name}")]
            objects += self.compiler.compile(
                [str(KERNELS / "tiles.c")],
                output_dir=str(Path(self.build_temp) / name),
                macros=macros + [("PRIVFIT_DEBUG", "1")] * DEBUG,
                extra_postargs=FLAGS[kind] + flags,
            )
        return objects

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


def kernel(name: str) -> Extension:
    return Extension(
        f"privfit._kernels.{name}",
        [str(KERNELS / f"{name}.pyx")],
        include_dirs=[str(KERNELS)],
        depends=[str(path) for path in KERNELS.glob("*.[hc]")],
        define_macros=[("PRIVFIT_HAVE_AVX2", "1")] * X86,
    )


NAMES = (
    "objects",
    "simd", "threads", "linear", "smooth", "centers", "facility", "counts", "random", "select",
    "chain", "cells",
)  # fmt: skip

# What Cython adds to every module with typed memoryviews, compiled once: half of a build's time.
SHARED = "privfit._kernels._cyutility"

setup(
    ext_modules=cythonize(
        [*map(kernel, NAMES), Extension(SHARED, [str(KERNELS / "_cyutility.c")])],
        shared_utility_qualified_name=SHARED,
        compiler_directives=DIRECTIVES,
        build_dir="build/cython-debug" if DEBUG else "build/cython",
    ),
    cmdclass={"build_ext": BuildKernels},
)
