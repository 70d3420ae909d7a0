"""Fits in several threads at the same time, and how many threads the process then has."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import privfit
from privfit._kernels import cores
from privfit.records.rows import KernelCalls

CALLERS = 8

together = threading.Barrier(CALLERS)


def tasks() -> int:
    """How many threads this process has, whoever started them."""
    return len(os.listdir("/proc/self/task"))


def prepare() -> None:
    """All work is worth all threads, who asks counts from then on, and libraries are loaded."""
    warnings.simplefilter("ignore", privfit.SeedWarning)
    KernelCalls.thread_work = KernelCalls.patient_work = 0.0
    cores.LINGER = 3600.0
    coefficients(0, n_threads=1)


def coefficients(seed: int, **options: Any) -> list[list[float]]:
    """What a seeded fit finds."""
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    model = privfit.LogisticRegression(
        1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver="gradient", random_state=seed, **options
    )
    return model.fit(X, (X[:, 0] > 0).astype(int)).coef_.tolist()


def fit(seed: int) -> tuple[list[list[float]], int]:
    """Fit when all others do; what was found, and the threads while all others are still there."""
    KernelCalls().threads(1.0)
    together.wait(60)
    found = coefficients(seed)
    together.wait(60)
    return found, tasks()


def meet(_: int) -> None:
    """Wait until all callers are there."""
    together.wait(60)


def show(map_of: Callable[..., Iterable[Any]], before: int) -> None:
    """Print how many threads there were at most beyond those before, and all that was found."""
    found = list(map_of(fit, range(CALLERS)))
    print(max(tasks for _, tasks in found) - before, [one for one, _ in found])
