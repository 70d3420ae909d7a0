"""The check that kernels call nothing of Python without its lock finds what it looks for."""

from __future__ import annotations

import runpy

import pytest
from makers.places import ROOT

TOOL = ROOT / "tools" / "nogil.py"

KERNEL = """
from cython.parallel cimport prange
from libc.stdlib cimport malloc


cdef double half(double x) noexcept nogil:
    {inside}
    return x / 2


def halves(double[::1] x):
    cdef Py_ssize_t i
    for i in prange(x.shape[0], nogil=True):
        {loop}
        x[i] = half(x[i])
"""


@pytest.mark.few(2)
@pytest.mark.skipif(not TOOL.exists(), reason="no tools beside these tests")
@pytest.mark.parametrize(
    ("inside", "loop", "called"),
    [
        ("pass", "pass", None),
        ("malloc(8)", "pass", "calls malloc"),
        ("with gil: print(x)", "pass", "PyGILState_Ensure"),
        ("pass", "with gil: print(x[i])", "without the lock, calls"),
    ],
    ids=["clean", "allocates", "prints in a function", "prints in a loop"],
)
def test_a_call_without_the_lock_is_found(tmp_path, inside, loop, called):
    tool = runpy.run_path(str(TOOL))
    (tmp_path / "halves.pyx").write_text(KERNEL.format(inside=inside, loop=loop))
    texts = tool["translated"]([tmp_path / "halves.pyx"], tmp_path / "c")
    found = tool["faults"]("halves", texts["halves"], tool["without_lock"](tmp_path))
    assert found == [] if called is None else called in "\n".join(found)
