"""Threads, processes, signals and instruction sets: none of them may change or block an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from makers.cases import labels, packed, same
from makers.places import TESTS
from makers.portrait import portrait

import privfit
from privfit import Box, CentersObjective, FacilityObjective, LinearObjective
from privfit._kernels import cores, cpu, threads, waiting
from privfit.records.rows import KernelCalls

KEPT = TESTS / "portrait.json"

HAS_OPENMP = threads.has_openmp()


# ---------------------------------------------------------------------------- how many threads


def test_as_many_threads_as_asked_for():
    assert threads.resolve(1) == 1
    assert threads.resolve(3) == (3 if HAS_OPENMP else 1)


def test_else_the_environment_else_the_cores_of_the_process(monkeypatch):
    mine = cores.allowed()
    expected = {"5": 5, "3,2": 3, " 2 ": 2, "0": mine, "-1": mine, "many": mine, "": mine}
    for wanted, number in expected.items():
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert threads.resolve() == (number if HAS_OPENMP else 1)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert threads.resolve() == (mine if HAS_OPENMP else 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads.resolve(2) == (2 if HAS_OPENMP else 1)


def test_a_small_call_uses_one_thread(monkeypatch, rng):
    monkeypatch.setattr(cores, "_busy", {})  # no other test's threads
    objective = LinearObjective(rng.uniform(-1, 1, (50, 2)), labels(rng, 50), domain=Box(-1, 1))
    rows = packed(objective)
    assert rows.threads(50.0) == 1
    assert rows.threads(1e9) == threads.resolve()


def test_threads_really_run(fresh_python):
    """The process has as many threads as were asked for once a large call has run."""
    done = fresh_python(
        "import os, numpy as np, privfit\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "X, y = np.zeros((5000, 4)), np.zeros(5000)\n"
        "o = privfit.LinearObjective(X, y, 'logistic', privfit.Box(-1, 1), n_threads=4)\n"
        "o.scores(np.zeros((12_000, 5)))\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n",
        OPENBLAS_NUM_THREADS="1",
    )
    assert (done.stdout, done.stderr) == ("3\n" if HAS_OPENMP else "0\n", "")


# ------------------------------------------------------------------- threads that wait for others

LOADED = "import privfit, os; from privfit._kernels import SPINNING; print(SPINNING, end=' '); "
CHOICE = "print(os.environ.get('OMP_WAIT_POLICY'))"


@pytest.mark.skipif(not HAS_OPENMP, reason="this build has no OpenMP")
def test_idle_threads_sleep_and_the_environment_is_as_before(fresh_python):
    done = fresh_python(LOADED + CHOICE, OMP_DISPLAY_ENV="true")
    assert done.stdout == "False None\n"
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr


@pytest.mark.skipif(not HAS_OPENMP, reason="this build has no OpenMP")
@pytest.mark.parametrize("policy", ["active", "passive"])
def test_users_decide_how_threads_wait(fresh_python, policy):
    done = fresh_python(LOADED + CHOICE, OMP_DISPLAY_ENV="true", OMP_WAIT_POLICY=policy)
    assert done.stdout == f"False {policy}\n"
    assert f"OMP_WAIT_POLICY = '{policy.upper()}'" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not HAS_OPENMP, reason="this build has no OpenMP")
def test_where_somebody_loaded_openmp_before_small_work_stays_on_one_thread(fresh_python):
    runtimes = waiting.runtimes()
    if not runtimes:
        pytest.skip("which runtimes are loaded cannot be seen here")
    rows = "from privfit.records.rows import KernelCalls; print(KernelCalls(2).threads(2e7))"
    for path in runtimes:
        first = f"import ctypes; ctypes.CDLL({path!r}); "
        found = fresh_python(first + LOADED + rows).stdout
        if found == "True 1\n":
            return  # the one that the kernels are linked with
    raise AssertionError(f"none of {sorted(runtimes)} is found to be loaded before")


def test_a_short_call_keeps_to_idle_cores_and_a_long_one_to_what_was_asked(monkeypatch):
    monkeypatch.setattr(cores, "idle", lambda: 1)
    monkeypatch.setattr(KernelCalls, "patient_work", 1e8)
    calls = KernelCalls(3)
    assert calls.threads(calls.patient_work) == 1
    assert calls.threads(2 * calls.patient_work) == (3 if HAS_OPENMP else 1)
    monkeypatch.setattr(cores, "idle", lambda: 2)
    assert calls.threads(calls.patient_work) == (2 if HAS_OPENMP else 1)
    monkeypatch.setattr(cores, "idle", lambda: 64)
    assert calls.threads(calls.patient_work) == (3 if HAS_OPENMP else 1)


# ---------------------------------------------------------------- the same bits from every build


def test_answers_are_those_that_were_kept(knobs):
    """Whatever the build (release, debug), the machine and the number of threads."""
    knobs(thread_work=0.0)
    found, kept = portrait(), json.loads(KEPT.read_text())
    assert found.keys() == kept.keys()
    for name, answers in kept.items():
        assert found[name] == answers, name


def test_instruction_set_does_not_matter(fresh_python):
    done = fresh_python(
        "import json\n"
        "from makers import portrait\n"
        "from privfit._kernels import cpu\n"
        "print(cpu.active())\n"
        "print(json.dumps(portrait.portrait()))\n",
        PRIVFIT_SIMD="baseline",
    )
    assert done.stderr == ""
    active, answers = done.stdout.splitlines()
    assert active == "baseline"
    assert json.loads(answers) == portrait()
    assert cpu.active() in ("baseline", "avx2")


# ------------------------------------------------------------------------- forks and concurrency

FORK = """
import os, signal, warnings
import numpy as np
import privfit
from privfit._kernels import threads
from privfit.records.rows import KernelCalls

warnings.simplefilter("ignore")  # newer Pythons warn that this process has threads
KernelCalls.thread_work = KernelCalls.patient_work = 0.0
rng = np.random.default_rng(0)
X, y = rng.uniform(-1, 1, (5000, 6)), rng.integers(0, 2, 5000)
domain = privfit.Box(-1, 1, 6)
P = domain.candidates(50, rng)
linear = privfit.LinearObjective(X, y, "logistic", domain, n_threads=4)
sparse = privfit.LinearObjective(X, y, "logistic", domain, n_threads=4, layout="sparse")
centers = privfit.CentersObjective(X, 3, domain, n_threads=4)
C = centers.snap(rng.uniform(-1, 1, (20, 3, 6)))


def answers():
    found = [linear.scores(P), sparse.scores(P), linear.gradient(P[0], 0.5), centers.scores(C),
             linear.at(P[0]).scores([0, 6], [0.5, 0.5]), sparse.at(P[0]).scores([0, 6], [0.5, 0.5])]
    return np.concatenate(found)


def forked(work):
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a child that hangs must not outlive the test
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


expected = answers()


def in_child():
    fresh = privfit.LinearObjective(X, y, "logistic", domain, n_threads=4)
    return (threads.resolve(4) == 1 and np.array_equal(answers(), expected)
            and np.array_equal(fresh.scores(P), expected[:50]))


print(threads.resolve(4), forked(in_child), forked(lambda: forked(in_child)),
      np.array_equal(answers(), expected), threads.resolve(4))
"""


@pytest.mark.slow
def test_a_forked_child_scores_correctly_and_does_not_hang(fresh_python):
    """Children and grandchildren use one thread; the parent keeps its own."""
    done = fresh_python(FORK)
    n = 4 if HAS_OPENMP else 1
    assert (done.stdout, done.stderr) == (f"{n} True True True {n}\n", "")


@pytest.mark.parametrize("shared", [True, False], ids=["one objective", "two objectives"])
def test_python_threads_score_at_once_and_agree(shared, knobs, rng):
    knobs(thread_work=0.0)
    X, y = rng.uniform(-1, 1, (4000, 5)) * (rng.random((4000, 5)) < 0.4), labels(rng, 4000)
    domain = Box(-1, 1, 5)
    P = domain.candidates(40, rng)
    for layout in ("dense", "sparse"):
        first = LinearObjective(X, y, "logistic", domain, n_threads=2, layout=layout)
        other = LinearObjective(X[::-1], y[::-1], "logistic", domain, n_threads=2, layout=layout)
        other = first if shared else other

        def work(objective, start=None):
            start.wait()  # all begin together, so that lazy state is made at once too
            return {
                "scores": objective.scores(P),
                "gradient": objective.gradient(P[0], 0.5),
                "moves": objective.at(P[0]).scores([0, 1, 5], [0.5, 0.25, -1.0]),
            }

        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            found = [pool.submit(work, o, start) for o in (first, other, first, other)]
            found = [future.result() for future in found]
        expected = work(
            LinearObjective(X, y, "logistic", domain, n_threads=1), threading.Barrier(1)
        )
        for answer in found:
            same(answer, expected)


def test_centres_and_facilities_score_at_once(knobs, rng):
    knobs(thread_work=0.0)
    X = rng.uniform(0, 1, (3000, 4))
    centers = CentersObjective(X, 3, Box(0, 1), n_threads=2)
    places = FacilityObjective(X, X[:50], (0, 4), Box(0, 1), n_threads=2)
    C, P = centers.snap(rng.uniform(0, 1, (30, 3, 4))), rng.integers(0, 50, (30, 3))
    expected = centers.scores(C), places.scores(P)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(o.scores, q) for _ in range(5) for o, q in ((centers, C), (places, P))]
    for i, run in enumerate(runs):
        assert np.array_equal(run.result(), expected[i % 2])


# ---------------------------------------------------------------------------------------- Ctrl-C

# Each call takes long. A timer of the process's own work sends signals, most of which a kernel that
# looks for them hears while it runs; one that does not hears a single one, when it is done.
SIGNALS = 8  # of which the steps before a kernel hear some, and numpy alone two at most
LONG = """
import signal
import sys
import numpy as np
import privfit

heard = []


def hear(*_):
    heard.append(1)
    if len(heard) == int(sys.argv[2]):
        raise KeyboardInterrupt


signal.signal(signal.SIGPROF, hear)  # found like that of Ctrl-C, and sent by work, not by a clock
n, d = 60_000, 20
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (n, d))
X[rng.random((n, d)) < 0.8] = 0
y = rng.integers(0, 2, n)
domain = privfit.Box(-1, 1, d)
P = np.zeros((150_000, d + 1))
coords = np.arange(500_000) % (d + 1)


def linear(layout):
    return privfit.LinearObjective(X, y, "logistic", domain, layout=layout)


def centers():
    return privfit.CentersObjective(X, 64, domain)


def facility():
    return privfit.FacilityObjective(X[:20_000], X[:500], (0, 20), domain)


calls = {
    "dense scores": (lambda: linear("dense"), lambda o: o.scores(P)),
    "sparse scores": (lambda: linear("sparse"), lambda o: o.scores(P)),
    "wide scores": (lambda: linear("dense"), lambda o: o.scores(P[:50_000] + 2.0**12)),
    "dense moves": (lambda: linear("dense").at(P[0]),
                    lambda at: at.scores(coords, np.full(coords.size, 0.5))),
    "sparse moves": (lambda: linear("sparse").at(P[0]),
                     lambda at: at.scores(coords, np.full(coords.size, 0.5))),
    "centre scores": (centers, lambda o: o.scores(np.zeros((5_000, 64, d)))),
    "centre range": (centers, lambda o: o.range(rng.integers(-1, 2, (1_000, 64, d)), "replace")),
    "facility scores": (facility, lambda o: o.scores(rng.integers(0, 500, (150_000, 60)))),
    "deaf": (lambda: rng.random(20_000_000), np.sort),
}
make, run = calls[sys.argv[1]]
made = make()
signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
try:
    run(made)
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    print("finished")
except KeyboardInterrupt:
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    print("interrupted")
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "call",
    ["dense scores", "sparse scores", "wide scores", "dense moves", "sparse moves",
     "centre scores", "centre range", "facility scores"],
)  # fmt: skip
def test_ctrl_c_stops_a_long_call(call):
    assert last_words(call) == "interrupted\n"


@pytest.mark.slow
def test_a_call_that_looks_for_no_signals_would_be_found():
    assert last_words("deaf") == "finished\n"


def last_words(call: str) -> str:
    """What a process says at last that hears signals while it makes a long call."""
    environment = {**os.environ, "PYTHONPATH": str(Path(privfit.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", LONG, call, str(SIGNALS)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parent,
        timeout=600,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout
