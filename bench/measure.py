"""How benches measure: rivals in turns, what others took of the machine, its limits, and a stamp.

    taken = race({"numpy": theirs, "ours": ours}, repeat=7)
    taken["ours"].best, taken["ours"].median, taken["ours"].cpu

A stamp says which code gave a number: a digest of the whole package without its comments and
docstrings, the commit, the date and the machine.
"""

from __future__ import annotations

import ast
import datetime
import functools
import hashlib
import importlib.util
import os
import platform
import re
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import privfit

ROOT = Path(__file__).resolve().parents[1]
PAUSE = 0.1  # seconds before a call: threads of the call before may still spin
SHORT = 0.02  # seconds; a shorter call is preceded by an untimed one
HOPELESS = 1.5  # times slower than the fastest rival in the first round: not run again
BUSY = 0.05  # of the cores taken by others: a ratio is in doubt

Call = Callable[[], Any]


def has(package: str) -> bool:
    """Whether a rival's package is installed."""
    return importlib.util.find_spec(package) is not None


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: of seeds and budgets, which are a bench's, and of rivals' convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --------------------------------------------------------------------------------------- in turns


@dataclass
class Taken:
    """Seconds of one call over the rounds: wall time, and CPU time of all its threads."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.walls)

    @property
    def median(self) -> float:
        return statistics.median(self.walls)

    @property
    def cpu(self) -> float:
        return min(self.cpus)


def race(calls: Mapping[str, Call], repeat: int, ours: str = "ours") -> dict[str, Taken]:
    """Time named calls in interleaved rounds.

    A rival that is `HOPELESS` times slower than the fastest rival in the first round is not run
    again; `ours` always is.
    """
    taken = {name: Taken() for name in calls}
    running = dict(calls)
    for number in range(repeat):
        for name, call in running.items():
            time.sleep(PAUSE)
            if min(taken[name].walls, default=SHORT) < SHORT:
                call()
            cpu, wall = time.process_time(), time.perf_counter()
            call()
            taken[name].walls.append(time.perf_counter() - wall)
            taken[name].cpus.append(time.process_time() - cpu)
        if number == 0 and len(calls) > 2:
            fastest = min(taken[name].best for name in calls if name != ours)
            running = {name: call for name, call in calls.items()
                       if name == ours or taken[name].best <= HOPELESS * fastest}  # fmt: skip
    return taken


class Others:
    """The share of this machine's cores that other processes, and the host, took meanwhile.

    ``with Others() as others: ...`` then ``others.share``; None where /proc/stat is missing.
    """

    share: float | None = None

    def __enter__(self) -> Others:
        self._start = _busy()
        return self

    def __exit__(self, *_: object) -> None:
        if self._start is None:
            return
        now = _busy()
        assert now is not None
        busy, total, mine = (b - a for a, b in zip(self._start, now, strict=True))
        self.share = max(0.0, busy - mine) / total if total else 0.0


def _busy() -> tuple[float, float, float] | None:
    """Seconds that all cores were busy or stolen, that they existed, and that this process ran."""
    try:
        ticks = [int(part) for part in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return None
    own = os.times()
    total, idle = sum(ticks), ticks[3] + ticks[4]
    hertz = os.sysconf("SC_CLK_TCK")
    return (total - idle) / hertz, total / hertz, own.user + own.system


# ------------------------------------------------------------------------------------------ limits


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
    def vectors(self) -> float:
        """256-bit multiplications a second: a fused float64 one is 8 of the operations above.

        The same rate holds for int16 pair products (pmaddwd) and for 256-bit loads from L1, two of
        each a cycle, on every x86 core since Haswell and Zen 2.
        """
        return self.flops / 8

    def best(self, other: Limits) -> Limits:
        """The higher of two measurements of each: noise only ever slows."""
        flops, bandwidth = max(self.flops, other.flops), max(self.bandwidth, other.bandwidth)
        return Limits(self.threads, flops, bandwidth)


def sample(threads: int, repeat: int = 3) -> Limits:
    """Measure the limits of this many threads, in about a tenth of a second."""
    A, x = _operands()
    with threadpool_limits(threads):
        flops = 2 * len(A) ** 3 / _best_of(lambda: A @ A, repeat)
    parts = np.array_split(x, threads)
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1):
        bandwidth = x.nbytes / min(
            _best_of(lambda read=read: list(pool.map(read, parts)), repeat)
            for read in (np.sum, lambda part: part @ part)
        )
    return Limits(threads, flops, bandwidth)


def _best_of(run: Call, repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


@functools.lru_cache(maxsize=1)
def _operands() -> tuple[Any, Any]:
    """A matrix to multiply and 128 MB to read, four times the largest cache of its time."""
    return np.random.default_rng(0).normal(size=(1024, 1024)), np.ones(1 << 24)


# ------------------------------------------------------------------------------------------ stamps


@functools.cache
def stamp() -> dict[str, str]:
    """What a line of results says of its origin."""
    return {
        "date": datetime.date.today().isoformat(), "commit": commit(),
        "digest": digest(Path(privfit.__file__).parent, ROOT / "privfit"), "machine": machine(),
    }  # fmt: skip


def commit() -> str:
    """The short name of the commit, with "+" if the package differs from it; "" outside of git."""
    try:
        name, changed = (
            subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
            for words in (("rev-parse", "--short=10", "HEAD"),
                          ("status", "--porcelain", "--", "privfit"))
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name.stdout.strip() + ("+" if changed.stdout.strip() else "")


def digest(*folders: Path) -> str:
    """Eight digits of all sources of a package, without comments and docstrings.

    A file counts from the first folder that has it: wheels have no sources of kernels, the clone
    beside bench has.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxd", ".h", ".toml"):
                found.setdefault(path.relative_to(folder).as_posix(), path)
    whole = hashlib.sha256()
    for name, path in sorted(found.items()):
        whole.update(f"{name}\n{_bare(path)}\n".encode())
    return whole.hexdigest()[:8]


def _bare(path: Path) -> str:
    """What a source says, without what does nothing."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        comments = r"/\*.*?\*/|//[^\n]*" if path.suffix == ".h" else r"(?:^|(?<=\s))#( [^\n]*)?$"
        text = re.sub(comments, "", text, flags=re.S | re.M)
        return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                node.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


# ----------------------------------------------------------------------------------------- machine


@functools.cache
def machine() -> str:
    """The machine in a few words, without names of hosts or paths."""
    cpu = _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    family, model = (_field("/proc/cpuinfo", name) for name in ("cpu family", "model"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cpu}, family {family} model {model}, {cores} cores"


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    found = (line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == name)
    return next(found, None)
