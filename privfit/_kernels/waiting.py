"""Threads that do not get in the way of others: idle ones sleep.

Idle threads of OpenMP sleep, unless the user has decided how they wait. By default they spin for a
while, so that the next parallel loop starts sooner. On a machine whose cores are shared this
starves those who have work: beside two busy processes a call of 1.5 ms took 36 ms on two threads,
and 1.5 to 4 ms if idle threads sleep.

GNU's runtime reads ``OMP_WAIT_POLICY`` when it is loaded, LLVM's when it is first asked something.
So the variable is set while the first kernel is imported, and then put back. This has no effect on
a runtime that somebody loaded before: `found_spinning` tells, and small work then stays on one
thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # by which users decide
LOADED = "/proc/self/maps"
RUNTIME = re.compile(r"\S*/lib(?:gomp|omp|iomp5)\b\S*")


def runtimes() -> frozenset[str] | None:
    """The OpenMP runtimes that this process has loaded; None where that cannot be seen."""
    try:
        with open(LOADED, encoding="utf-8", errors="replace") as maps:
            return frozenset(RUNTIME.findall(maps.read()))
    except OSError:
        return None


def found_spinning(load: Callable[[], object]) -> bool:
    """Load the runtime so that its idle threads sleep; whether it was there before, and spins."""
    if any(name in os.environ for name in CHOICES):
        load()
        return False
    before = runtimes()
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        load()
    finally:
        del os.environ["OMP_WAIT_POLICY"]
    return before is not None and bool(before) and runtimes() == before
