"""Fixtures that the test files share."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit
from privfit._kernels import cores
from privfit.records.rows import KernelCalls

TESTS = Path(__file__).resolve().parent

pytest.register_assert_rewrite("makers")

if importlib.util.find_spec("hypothesis"):  # the smoke test runs without it
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "privfit",
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=40,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    settings.load_profile("privfit")


MARKERS = {"data_folder": "data", "cluster": "cluster"}  # by fixture


def spread(count: int, cases: int) -> set[int]:
    """At most so many of the cases, spread by the golden ratio, in step with no parameter."""
    return {int(cases * ((i + 1) * 0.6180339887 % 1)) for i in range(count)}


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for the real data or for a cluster, and all but a few of many cases."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        for fixture in MARKERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKERS[fixture])
        if item.get_closest_marker("few"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        kept = spread(cases[0].get_closest_marker("few").args[0], len(cases))
        for i in set(range(len(cases))) - kept:
            cases[i].add_marker("slow")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture
def cluster() -> Iterator[None]:
    """Two workers in this process, whom Dask finds by itself."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                 dashboard_address=":0") as there,
        distributed.Client(there),
    ):  # fmt: skip
        yield


@pytest.fixture
def knobs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set what may not change an answer: rows of a tile, work of a slice, work worth a thread."""

    def turn(**values: float) -> None:
        if "thread_work" in values:  # threads are used whether or not cores are idle
            values = {"patient_work": 0.0, **values}
        for name, value in values.items():
            assert hasattr(KernelCalls, name), f"calls of kernels have no knob {name}"
            monkeypatch.setattr(KernelCalls, name, value)

    return turn


@pytest.fixture
def threads_used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that objectives asked for, with threads worth any work."""
    used: list[int] = []
    ask = KernelCalls.threads

    def spy(self: Any, work: float) -> int:
        used.append(ask(self, work))
        return used[-1]

    monkeypatch.setattr(cores, "_busy", {})  # no other test's threads
    monkeypatch.setattr(KernelCalls, "thread_work", 0.0)
    monkeypatch.setattr(KernelCalls, "patient_work", 0.0)
    monkeypatch.setattr(KernelCalls, "threads", spy)
    return used


def run_python(
    script: str, *, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter that finds this privfit and the files of this folder."""
    path = os.pathsep.join([str(Path(privfit.__file__).parents[1]), str(TESTS)])
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=TESTS,  # not the root, whose sources would hide an installed privfit
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def fresh_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    return run_python


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Where the real data lie; a machine without them may skip, continuous integration may not."""
    folder = Path(os.environ.get("PRIVFIT_DATA", TESTS.parents[1] / "shared" / "data"))
    if not (folder / "SHA256SUMS").exists():
        reason = f"no real data in {folder}; set PRIVFIT_DATA to the folder that holds them"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
