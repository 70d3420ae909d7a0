"""A child forked while other threads of its parent fit can fit, too: no hang, the same answers.

Also where BLAS has threads of its own, for which it waits before a fork (`privfit/base/blas.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import privfit

if not hasattr(os, "fork"):
    pytest.skip("this system has no fork", allow_module_level=True)
pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')

SCRIPT = """
import json, os, signal, sys, threading, time, warnings
import numpy as np
import privfit
from privfit import Box, KMeans, L2Ball, LinearObjective, LogisticRegression, Stream, open_ledger
from privfit.base import blas
from privfit.records.rows import KernelCalls

warnings.simplefilter("ignore")  # seeds; newer Pythons warn that this process has threads
KernelCalls.thread_work = KernelCalls.patient_work = 0.0
folder, forks = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (2000, 4))
y = (X[:, 0] > 0).astype(int)
np.save(f"{folder}/X.npy", X)
np.save(f"{folder}/y.npy", y)
domain = Box(-1, 1, 4)
ledger = open_ledger(f"{folder}/budget.json", 1e6, 0.5, adjacency="replace")
stream = LinearObjective(Stream(f"{folder}/X.npy"), y, "logistic", domain)
shared = LinearObjective(X, y, "logistic", domain)
P = domain.candidates(9, rng)

def linear(records, **more):
    model = LogisticRegression(1.0, 1e-6, domain=domain, classes=[0, 1], random_state=3, **more)
    return model.fit(records, y if records is X else f"{folder}/y.npy").coef_.tolist()

def centers(**more):
    return KMeans(3, 1.0, domain=domain, random_state=3, **more).fit(X).cluster_centers_.tolist()

many = rng.uniform(-1, 1, (20_000, 8))  # enough for several threads of BLAS
ball = LogisticRegression(1.0, domain=L2Ball(2), classes=[0, 1], random_state=3)
ball.fit(many, many[:, 0] > 0)

WORK = [
    lambda: ball.decision_function(many).round(6).tolist(),
    lambda: linear(X, ledger=ledger),
    lambda: linear(X, solver="gradient"),
    lambda: linear(Stream(f"{folder}/X.npy")),
    lambda: centers(ledger=ledger),
    lambda: stream.scores(P).tolist(),
    lambda: stream.at(P[0]).scores([0, 4], [0.5, 0.5]).tolist(),
    lambda: shared.scores(P).tolist(),
]
expected = [work() for work in WORK]
done, failed = threading.Event(), []

def fit(i):
    while not done.is_set():
        which = i % len(WORK)
        i += 1
        if WORK[which]() != expected[which]:
            failed.append(which)

threads = [threading.Thread(target=fit, args=(i,), daemon=True) for i in range(4)]
for thread in threads:
    thread.start()
coins, children = np.random.default_rng(1), []
for i in range(forks):
    time.sleep(coins.uniform(0, 0.1))
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a child that hangs must not outlive the test
        code = 1
        try:
            # What the child has not asked for is not there: no block of BLAS of another thread.
            code = 0 if not blas._blocks and [work() for work in WORK] == expected else 2
        finally:
            os._exit(code)
    failed.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
for thread in threads:
    thread.join()
charged = len(open_ledger(f"{folder}/budget.json").charges)
print(json.dumps([failed, charged >= 2 * (forks + 1)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "4"])
def test_a_child_forked_while_other_threads_fit_can_fit_too(threads, tmp_path):
    folder = Path(privfit.__file__).parent.parent
    one = {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), "8"], timeout=900, check=False, text=True,
        env=os.environ | one, capture_output=True, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"[{[0] * 8}, true]\n", "")
