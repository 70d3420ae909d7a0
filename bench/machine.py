"""What this machine can do, measured, and what it is, without names of hosts or paths."""

import importlib.metadata
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits


def best_of(run, repeat):
    """The shortest time of `repeat` calls, in seconds."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


@dataclass(frozen=True)
class Limits:
    """Measured limits of some threads together: the best of samples taken between the rows.

    flops      float64 operations a second of a BLAS matrix product (a fused one counts as two)
    bandwidth  bytes a second read from memory
    """

    threads: int
    flops: float
    bandwidth: float

    @property
    def vectors(self):
        """256-bit multiplications a second: a fused float64 one is 8 of the operations above.

        The same rate holds for int16 pair products (pmaddwd) and for 256-bit loads from L1, two of
        each a cycle, on every x86 core since Haswell and Zen 2.
        """
        return self.flops / 8

    @property
    def pair_products(self):
        """int16 multiply-adds a second: 16 in a 256-bit pair product."""
        return 16 * self.vectors

    def best(self, other):
        """The higher of two measurements of each: noise only ever slows."""
        flops, bandwidth = max(self.flops, other.flops), max(self.bandwidth, other.bandwidth)
        return Limits(self.threads, flops, bandwidth)


def sample(threads, repeat=3):
    """Measure the limits of this many threads, in about a tenth of a second."""
    A, x = _operands()
    with threadpool_limits(threads):
        flops = 2 * len(A) ** 3 / best_of(lambda: A @ A, repeat)
    parts = np.array_split(x, threads)
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1):
        bandwidth = x.nbytes / min(
            best_of(lambda read=read: list(pool.map(read, parts)), repeat)
            for read in (np.sum, lambda part: part @ part)
        )
    return Limits(threads, flops, bandwidth)


@lru_cache(maxsize=1)
def _operands():
    """A matrix to multiply and 128 MB to read, four times the largest cache of its time."""
    return np.random.default_rng(0).normal(size=(1024, 1024)), np.ones(1 << 24)


class Others:
    """The share of this machine's cores that other processes, and the host, took meanwhile.

    ``with Others() as others: ...`` then ``others.share``; None where /proc/stat is missing.
    """

    share = None

    def __enter__(self):
        self._start = _busy()
        return self

    def __exit__(self, *_):
        if self._start is None:
            return
        busy, total, mine = (b - a for a, b in zip(self._start, _busy(), strict=True))
        self.share = max(0.0, busy - mine) / total if total else 0.0


def _busy():
    """Seconds that all cores were busy or stolen, that they existed, and that this process ran."""
    try:
        ticks = [int(part) for part in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return None
    own = os.times()
    total, idle = sum(ticks), ticks[3] + ticks[4]
    hertz = os.sysconf("SC_CLK_TCK")
    return (total - idle) / hertz, total / hertz, own.user + own.system


def describe():
    """The machine and the versions, as a dict of short texts."""
    cpu = _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    memory = _field("/proc/meminfo", "MemTotal")
    facts = {
        "cpu": f"{cpu}, family {_field('/proc/cpuinfo', 'cpu family')} "
        f"model {_field('/proc/cpuinfo', 'model')}",
        "cores": f"{_cores()} available",
        "caches": ", ".join(_caches()) or "unknown",
        "memory": f"{int(memory.split()[0]) / 2**20:.0f} GB" if memory else "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    names = ("numpy", "scipy", "scikit-learn", "faiss-cpu")
    facts |= {name: _version(name) for name in names}
    facts["blas"] = ", ".join(
        sorted({f"{x['internal_api']} {x['version']}" for x in threadpool_info() if x["version"]})
    )
    return facts


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _field(path, name):
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    found = (line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == name)
    return next(found, None)


def _caches():
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / part).read_text().strip() for part in ("level", "type", "size")
        )
        yield f"L{level} {kind.lower()} {size}"
