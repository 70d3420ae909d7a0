"""Build with ``python setup.py build_ext --inplace``."""

import platform

from Cython.Build import cythonize
from setuptools import Extension, setup

x86 = platform.machine().lower() in {"x86_64", "amd64"}
fitness = Extension(
    "own_fitness",
    ["own_fitness.pyx"],
    # Four doubles at a time, which every x86 CPU since 2015 has. Never link with -ffast-math: it
    # changes the arithmetic of the whole process.
    extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"] + ["-mavx2", "-mfma"] * x86,
)
setup(name="own_fitness", ext_modules=cythonize([fitness]))
