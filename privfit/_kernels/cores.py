"""How many cores this process may use, how many of them are idle, and each call's share of them.

A process may use the cores of its affinity mask (``taskset``, cpusets), and no more of them than
the quotas of its control groups pay for (containers, systemd, Slurm). A quota of one and a half
cores is two cores for three quarters of the time.

Calls of several Python threads share the cores: a fit in each of eight threads takes an eighth of
them, not eight times all. Threads count from when they ask until their work should be done, and a
little longer, since a fit makes one call after the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from threading import get_ident
from time import monotonic

# --------------------------------------------------------------------- what this process may use

GROUPS = "/proc/self/cgroup"  # the control groups of this process
LIMITS = "/sys/fs/cgroup"  # and where they are
REMEMBERED = 1.0  # seconds for which a quota is believed: reading it takes longer than a short call

_read_at, _quota = -math.inf, math.inf


def allowed() -> int:
    """How many cores this process may use: those of its mask, as far as quotas pay for them."""
    masked = hasattr(os, "sched_getaffinity")
    mine = len(os.sched_getaffinity(0)) if masked else os.cpu_count() or 1
    return max(1, min(mine, math.ceil(min(_remembered_quota(), mine))))


def _remembered_quota() -> float:
    global _read_at, _quota
    now = monotonic()
    if now >= _read_at + REMEMBERED:
        _read_at, _quota = now, quota()
    return _quota


def quota() -> float:
    """How many cores' time the control groups of this process grant; infinite if there is no limit.

    A group shares the limits of the groups that it is in. Within a container the folder of the
    outermost one may be the container's own, whatever its path is outside.
    """
    limits = [math.inf]
    for line in _read(GROUPS).splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            limits += _up_from(path, (LIMITS, f"{LIMITS}/unified"), _second_version)
        elif "cpu" in controllers.split(","):
            limits += _up_from(path, (f"{LIMITS}/{controllers}", f"{LIMITS}/cpu"), _first_version)
    return min(limits)


def _up_from(path: str, roots: tuple[str, ...], limit: Callable[[str], float]) -> Iterator[float]:
    """The limits of a group and of all that it is in."""
    names = [name for name in path.split("/") if name not in ("", "..")]
    for root in roots:
        for depth in range(len(names) + 1):
            yield limit("/".join([root, *names[:depth]]))


def _first_version(folder: str) -> float:
    return _cores(_read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us"))


def _second_version(folder: str) -> float:
    return _cores(*[*_read(f"{folder}/cpu.max").split(), "", ""][:2])


def _cores(time: str, period: str) -> float:
    """Microseconds of time in a period, as cores; infinite for 'max', -1 or nothing."""
    try:
        granted = int(time) / int(period)
    except (ValueError, ZeroDivisionError):
        return math.inf
    return granted if granted > 0 else math.inf


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


# ----------------------------------------------------------------------------- what is idle of it

RUNNING = "/proc/loadavg"  # its fourth field begins with the number of runnable tasks
FRESH = 0.004  # seconds for which an answer is good: asking takes a tenth of the shortest call

_asked, _idle = -FRESH, 1
_counted_at, _count = -math.inf, 1


def idle() -> int:
    """How many cores have nothing else to run: this thread's own, and free ones.

    All that this process may use, where the system does not tell. Containers that share a machine
    see all that runs on it; so the cores that are idle are counted of the whole machine.
    """
    global _asked, _idle
    now = monotonic()
    if now >= _asked + FRESH:
        fewest = min(running(), running())  # threads of the last call may be on their way to sleep
        _asked, _idle = now, max(1, min(allowed(), _on_the_machine(now) - fewest + 1))
    return _idle


def _on_the_machine(now: float) -> int:
    global _counted_at, _count
    if now >= _counted_at + REMEMBERED:
        _counted_at, _count = now, os.cpu_count() or 1
    return _count


def running() -> int:
    """How many tasks are running or ready to run, this one included."""
    try:
        with open(RUNNING, "rb", buffering=0) as told:
            return int(told.read().split()[3].split(b"/")[0])
    except (OSError, ValueError, IndexError):
        return 1


# ---------------------------------------------------------------------------------- who shares it

LINGER = 0.05  # seconds for which a thread that has asked is expected to ask again

_busy: dict[int, float] = {}  # until when, by threads


def share(total: int, seconds: float) -> int:
    """What one of all threads that are at work gets of so many cores, for about so many seconds."""
    now = monotonic()
    for thread, until in list(_busy.items()):
        if until < now:
            _busy.pop(thread, None)
    _busy[get_ident()] = now + max(LINGER, seconds)
    return max(1, total // len(_busy))
