"""Build with ``python setup.py build_ext --inplace``."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

import privfit

kernel = Extension(
    "own_kernel",
    ["own_kernel.pyx"],
    include_dirs=[str(Path(privfit.__file__).parent / "_kernels")],  # lanes.h
    extra_compile_args=["-O3", "-fopenmp"],
    extra_link_args=["-fopenmp"],
)
setup(name="own_kernel", ext_modules=cythonize([kernel]))
