"""Threads that do not get in the way of others: idle ones sleep, short calls use free cores alone.

Idle threads of OpenMP sleep, unless the user has decided how they wait. By default they spin for a
while, so that the next parallel loop starts sooner. On a machine whose cores are shared this
starves those who have work: beside two busy processes a call of 1.5 ms took 36 ms on two threads,
and 1.5 to 4 ms if idle threads sleep.

GNU's runtime reads ``OMP_WAIT_POLICY`` when it is loaded, LLVM's when it is first asked something.
So the variable is set while the first kernel is imported, and then put back. This has no effect on
a runtime that somebody loaded before: `found_spinning` tells, and small work then stays on one
thread.

A team of threads ends when its last one does, and a thread that has to wait for a core waits longer
than a short call takes. So a short call asks for no more threads than there are `idle_cores`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from time import monotonic

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


RUNNING = "/proc/loadavg"  # its fourth field begins with the number of runnable tasks
FRESH = 0.004  # seconds for which an answer is good: asking takes a tenth of the shortest call

_asked, _idle = -FRESH, 1


def idle_cores() -> int:
    """How many cores of the machine have nothing else to run: this thread's own, and free ones.

    All of them where the system does not tell. Containers that share a machine see all that runs
    on it, beside all of its cores.
    """
    global _asked, _idle
    now = monotonic()
    if now >= _asked + FRESH:
        cores = os.cpu_count() or 1
        fewest = min(running(), running())  # threads of the last call may be on their way to sleep
        _asked, _idle = now, max(1, cores - fewest + 1)
    return _idle


def running() -> int:
    """How many tasks are running or ready to run, this one included."""
    try:
        with open(RUNNING, "rb", buffering=0) as told:
            return int(told.read().split()[3].split(b"/")[0])
    except (OSError, ValueError, IndexError):
        return 1
