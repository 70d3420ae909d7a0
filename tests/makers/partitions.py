"""What the workers of a test's cluster run. They import this module, so it imports little."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import dask
import numpy as np

from privfit import Box, CentersObjective, LinearObjective
from privfit.records import dask as workers

UNIT = Box(-1, 1)


@dask.delayed
def table_rows(path: str, first: int, last: int) -> Any:
    from pyarrow import feather

    return feather.read_table(path, memory_map=True).slice(first, last - first).to_pandas()


@dask.delayed
def array_rows(path: str, first: int, last: int) -> Any:
    return np.load(path, mmap_mode="r")[first:last]


def linear(X: Any, y: Any, n_threads: int | None = None) -> LinearObjective:
    return LinearObjective(X, y, "logistic", UNIT, n_threads=n_threads)


def centers(X: Any) -> CentersObjective:
    return CentersObjective(X, 3, UNIT)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def held(fit: str) -> list[int]:
    """The numbers of the partitions that this process holds."""
    found = [held.numbers() for (of, _), held in workers._HELD.items() if of == fit]
    return [i for numbers in found for i in numbers]


def served_lines(fit: str) -> int:
    """The number of a fit's lines that this process serves."""
    return sum(thread.name == fit for thread in threading.enumerate())


def forget_half(fit: str, dask_worker: Any = None) -> None:
    tables = workers._HELD[fit, dask_worker.address].tables
    for index in list(tables)[: len(tables) // 2 + 1]:
        del tables[index]
