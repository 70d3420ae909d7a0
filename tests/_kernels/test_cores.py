"""Cores that a process may use, that are idle, and that several callers share."""

from __future__ import annotations

import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import pytest

from privfit._kernels import cores, threads
from privfit.records.rows import KernelCalls

HAS_OPENMP = threads.has_openmp()
needs_openmp = pytest.mark.skipif(not HAS_OPENMP, reason="this build has no OpenMP")
needs_masks = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="there are no affinity masks here"
)
needs_tasks = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="threads cannot be counted here"
)


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Write the control groups of this process: what it says of itself, and files of limits."""
    monkeypatch.setattr(cores, "GROUPS", str(tmp_path / "groups"))
    monkeypatch.setattr(cores, "LIMITS", str(tmp_path / "limits"))
    monkeypatch.setattr(cores, "_read_at", -math.inf)

    def write(mine, **files):
        (tmp_path / "groups").write_text(mine)
        for name, text in files.items():
            file = tmp_path / "limits" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write


# ---------------------------------------------------------------------- quotas of control groups


V1 = "9:name=systemd:/\n2:cpu,cpuacct:/a/b\n1:memory:/\n"
V2 = "0::/a/b\n"
QUOTAS = [
    ("", {}, math.inf),
    (V2, {}, math.inf),
    (V2, {"cpu.max": "max 100000\n"}, math.inf),
    (V2, {"cpu.max": "150000 100000\n"}, 1.5),
    (V2, {"a/b/cpu.max": "50000 100000\n", "cpu.max": "max 100000\n"}, 0.5),
    (V2, {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "100000 50000\n"}, 2.0),
    (V2, {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "700000 100000\n"}, 7.0),
    (V2, {"b/cpu.max": "100000 100000\n"}, math.inf),  # another group
    ("0::/../up\n", {"up/cpu.max": "100000 100000\n"}, 1.0),
    ("1:cpu:/\n0::/a\n", {"unified/a/cpu.max": "250000 100000\n"}, 2.5),
    (V2, {"cpu.max": "much 100000\n"}, math.inf),
    (V2, {"cpu.max": "100000 0\n"}, math.inf),
    (V2, {"cpu.max": "100000\n"}, math.inf),
    (V2, {"cpu.max": ""}, math.inf),
    ("nonsense\n::\n", {"cpu.max": "100000 100000\n"}, math.inf),
    (V1, {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1\n",
          "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n"}, math.inf),
    (V1, {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "300000\n",
          "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n"}, 3.0),
    (V1, {"cpu/a/cpu.cfs_quota_us": "40000\n", "cpu/a/cpu.cfs_period_us": "20000\n"}, 2.0),
    (V1, {"cpu/cpu.cfs_quota_us": "250000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.5),
    (V1, {"cpu/cpu.cfs_quota_us": "250000\n"}, math.inf),  # no period
    ("1:cpuset:/\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"},
     math.inf),
]  # fmt: skip


@pytest.mark.parametrize(("mine", "files", "quota"), QUOTAS)
def test_the_least_quota_of_the_groups_that_a_process_is_in(groups, mine, files, quota):
    groups(mine, **files)
    assert cores.quota() == quota


@pytest.mark.parametrize(
    ("granted", "mask", "number"),
    [("100000 100000", 8, 1), ("110000 100000", 8, 2), ("1000 100000", 8, 1), ("max 100000", 8, 8),
     ("900000 100000", 8, 8), ("700000 100000", 3, 3)],
)  # fmt: skip
@needs_masks
def test_no_more_cores_than_the_mask_has_and_the_quota_pays_for(
    groups, monkeypatch, granted, mask, number
):
    groups(V2, **{"cpu.max": granted})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(mask)))
    assert cores.allowed() == number
    assert threads.resolve() == (number if HAS_OPENMP else 1)
    assert threads.resolve(5) == (5 if HAS_OPENMP else 1)  # as asked


def test_a_quota_is_read_again_after_a_while(groups, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    groups(V2, **{"cpu.max": "100000 100000"})
    monkeypatch.setattr(cores, "REMEMBERED", 3600.0)
    assert cores.allowed() == 1
    groups(V2, **{"cpu.max": "300000 100000"})
    assert cores.allowed() == 1
    monkeypatch.setattr(cores, "REMEMBERED", 0.0)
    assert cores.allowed() == 3


def test_where_there_are_no_masks_all_cores_of_the_machine_are_allowed(groups, monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert cores.allowed() == 6
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert cores.allowed() == 1


@needs_openmp
@needs_masks
@needs_tasks
def test_on_one_core_no_thread_is_started(fresh_python):
    """As `taskset -c 0 python` would have it."""
    done = fresh_python(
        "import os\n"
        "os.environ.pop('OMP_NUM_THREADS', None)\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import numpy as np, privfit\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "X, y = np.zeros((5000, 4)), np.zeros(5000)\n"
        "o = privfit.LinearObjective(X, y, 'logistic', privfit.Box(-1, 1))\n"
        "o.scores(np.zeros((12_000, 5)))\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n",
        OPENBLAS_NUM_THREADS="1",
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


# ------------------------------------------------------------------------------------ idle cores


@pytest.mark.parametrize(
    ("told", "idle"),
    [("0.1 0.2 0.3 1/99 7", 8), ("9.1 0.2 0.3 3/99 7", 6), ("0 0 0 9/99 7", 1),
     ("0 0 0 40/99 7", 1), ("", 8), ("0 0 0 none", 8)],
)  # fmt: skip
def test_cores_are_idle_that_have_nothing_else_to_run(groups, tmp_path, monkeypatch, told, idle):
    (tmp_path / "loadavg").write_text(told)
    monkeypatch.setattr(cores, "RUNNING", str(tmp_path / "loadavg"))
    monkeypatch.setattr(cores, "FRESH", 3600.0)
    monkeypatch.setattr(cores, "_asked", -math.inf)
    monkeypatch.setattr(cores, "_counted_at", -math.inf)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert cores.idle() == idle
    (tmp_path / "loadavg").write_text("0 0 0 5/99 7")
    assert cores.idle() == idle  # as long as the answer is fresh
    monkeypatch.setattr(cores, "RUNNING", str(tmp_path / "nothing"))
    monkeypatch.setattr(cores, "_asked", -math.inf)
    assert cores.idle() == 8


def test_no_more_cores_are_idle_than_the_process_may_use(groups, tmp_path, monkeypatch):
    """In a container on a large machine: one that pays for two cores, and has a mask of four."""
    (tmp_path / "loadavg").write_text("0.1 0.2 0.3 3/99 7")
    monkeypatch.setattr(cores, "RUNNING", str(tmp_path / "loadavg"))
    monkeypatch.setattr(cores, "FRESH", 0.0)
    monkeypatch.setattr(cores, "REMEMBERED", 0.0)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 5, 7, 9}, raising=False)
    assert cores.idle() == 4
    groups(V2, **{"cpu.max": "200000 100000"})
    assert cores.idle() == 2
    (tmp_path / "loadavg").write_text("0.1 0.2 0.3 64/99 7")
    assert cores.idle() == 1


# -------------------------------------------------------------------------- several callers at once


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand, and no caller yet."""
    now = [1000.0]
    monkeypatch.setattr(cores, "monotonic", lambda: now[0])
    monkeypatch.setattr(cores, "_busy", {})
    return now


def ask(monkeypatch, thread, total=12, seconds=0.0):
    monkeypatch.setattr(cores, "get_ident", lambda: thread)
    return cores.share(total, seconds)


def test_callers_share_the_cores_as_long_as_they_work(clock, monkeypatch):
    asked = partial(ask, monkeypatch)
    assert [asked(1), asked(1)] == [12, 12]  # one after the other is one caller
    assert [asked(2), asked(1), asked(3), asked(4), asked(1)] == [6, 6, 4, 3, 3]
    assert asked(5, total=2) == 1  # nobody goes without
    clock[0] += 2 * cores.LINGER
    assert asked(1) == 12  # the others have gone


def test_a_long_call_counts_until_it_should_be_done(clock, monkeypatch):
    asked = partial(ask, monkeypatch)
    asked(1, seconds=2.0)
    clock[0] += 1.5
    assert asked(2) == 6
    clock[0] += 1.0
    assert asked(2) == 12


@needs_openmp
def test_who_asks_for_a_number_gets_it_and_is_not_counted(clock, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "12")
    for thread in (1, 2):
        monkeypatch.setattr(cores, "get_ident", lambda thread=thread: thread)
        assert threads.team(7) == 7
    assert threads.team() == 12


@needs_openmp
def test_work_that_is_long_keeps_its_share_longer(clock, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "12")
    monkeypatch.setattr(cores, "get_ident", lambda: 1)
    calls = KernelCalls()
    assert calls.threads(4e10) == 12
    clock[0] += 5.0
    monkeypatch.setattr(cores, "get_ident", lambda: 2)
    assert calls.threads(4e10) == 6
    assert calls.threads(calls.thread_work) == 1


def sizes_of_teams(map_of, callers, monkeypatch):
    """What callers get who have all asked once before."""
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    monkeypatch.setattr(cores, "_busy", {})
    monkeypatch.setattr(cores, "LINGER", 3600.0)
    together = threading.Barrier(callers)

    def asks(_):
        KernelCalls().threads(1e9)
        together.wait()
        return KernelCalls().threads(1e9)

    return list(map_of(asks, range(callers)))


@needs_openmp
def test_threads_of_python_share_the_cores(monkeypatch):
    with ThreadPoolExecutor(8) as pool:
        assert sizes_of_teams(pool.map, 8, monkeypatch) == [2] * 8


@needs_openmp
def test_threads_of_joblib_share_the_cores(monkeypatch):
    def map_of(asks, numbers):
        return joblib.Parallel(n_jobs=8, backend="threading")(map(joblib.delayed(asks), numbers))

    assert sizes_of_teams(map_of, 8, monkeypatch) == [2] * 8


BY_THREADS = """
from concurrent.futures import ThreadPoolExecutor
from makers import at_once
at_once.prepare()
with ThreadPoolExecutor(at_once.CALLERS) as pool:
    at_once.show(pool.map, at_once.tasks())
"""
ONE_BY_ONE = """
import threading
from makers import at_once
at_once.prepare()
at_once.together = threading.Barrier(1)
at_once.show(map, at_once.tasks())
"""
BY_DASK = """
from distributed import Client
from makers import at_once
at_once.prepare()
with Client(processes=False, threads_per_worker=at_once.CALLERS, n_workers=1,
            dashboard_address=":0") as client:
    def map_of(call, numbers):
        return client.gather(client.map(call, numbers))
    map_of(at_once.meet, range(at_once.CALLERS))  # Dask's own threads are there
    at_once.show(map_of, at_once.tasks())
"""
FOUR = {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"}


@needs_openmp
@needs_tasks
def test_a_fit_in_each_of_eight_threads_starts_no_other_threads(fresh_python):
    """Of four cores each has a half, and so its own thread alone; the fits are as ever."""
    done, alone = fresh_python(BY_THREADS, **FOUR), fresh_python(ONE_BY_ONE, **FOUR)
    assert (done.stderr, alone.stderr) == ("", "")
    tasks, fits = done.stdout.split(" ", 1)
    assert tasks == "8"
    assert alone.stdout.split(" ", 1) == ["3", fits]  # a team of four


@pytest.mark.slow
@needs_openmp
@needs_tasks
def test_a_fit_in_each_thread_of_a_dask_worker_starts_no_other_threads(fresh_python):
    pytest.importorskip("distributed")
    done = fresh_python(BY_DASK, **FOUR)
    assert done.stdout.split(" ", 1)[0] == "0", done.stderr


@needs_openmp
def test_workers_of_joblib_divide_the_cores(monkeypatch):
    """Processes do not see each other, but joblib tells each how many threads it may have."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = joblib.Parallel(n_jobs=2, backend="loky")(
        joblib.delayed(threads.team)() for _ in range(4)
    )
    assert set(found) == {max(1, joblib.cpu_count() // 2)}
