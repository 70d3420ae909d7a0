"""Forks and removed locks: a budget is spent once, by whichever process, and no charge is lost.

Each script runs in a process of its own, so that nobody else's threads are forked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import privfit
from privfit import Budget, open_ledger
from privfit.privacy import budget_locks

if not hasattr(os, "fork"):
    pytest.skip("this system has no fork", allow_module_level=True)
pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')

FORKING = """
import json, os, sys, threading, time, warnings
import numpy as np
import privfit
from privfit import BudgetError, Checkpoint, DiscreteLaplace, Ledger, open_ledger

def in_child(work):
    "What the work gives in a forked child, or the message of its refusal."
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BudgetError as error:
            said = "refused: " + str(error)
        os.write(tell, json.dumps(said).encode())
        os._exit(0)
    os.close(tell)
    os.waitpid(child, 0)
    with os.fdopen(hear, "rb") as heard:
        return json.loads(heard.read())

def spend(ledger, epsilon=1.0):
    grant = ledger.reserve(epsilon)
    grant.release(DiscreteLaplace(epsilon, 1), [5])
    return grant.close().epsilon

path = sys.argv[1]
"""


def told(script: str, *arguments: object) -> list[object]:
    """The lines of JSON that a script prints."""
    folder = Path(privfit.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FORKING + script, *map(str, arguments)], env=environment,
        capture_output=True, text=True, timeout=300, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


CLOSED = (
    "is closed: this process is a fork of the one that made it; spend there, or share a budget "
    "file (open_ledger)"
)


@pytest.mark.slow
def test_a_ledger_in_memory_made_before_four_forks_is_spent_once(tmp_path):
    *children, here = told(
        """
ledger = Ledger(1.0)
for _ in range(4):
    print(json.dumps(in_child(lambda: spend(ledger))))
print(json.dumps(spend(ledger)))
""",
        tmp_path / "none",
    )
    assert children == [f"refused: this ledger {CLOSED}"] * 4
    assert here == 1.0


@pytest.mark.slow
def test_the_copy_of_a_child_shows_what_was_spent_and_a_new_ledger_is_its_own(tmp_path):
    shown, own, grandchild = told(
        """
ledger = Ledger(1.0, adjacency="replace")
spend(ledger, 0.25)
print(json.dumps(in_child(lambda: [repr(ledger), len(ledger.releases), len(ledger.events)])))
print(json.dumps(in_child(lambda: spend(Ledger(0.5), 0.5))))
print(json.dumps(in_child(lambda: in_child(lambda: spend(ledger, 0.25)))))
""",
        tmp_path / "none",
    )
    copy = "Ledger(epsilon 1, delta 0; spent epsilon 0.25, delta 0; replace (closed))"
    assert shown == [copy, 1, 1]
    assert own == 0.5
    assert grandchild == f"refused: this ledger {CLOSED}"


@pytest.mark.slow
def test_nested_ledgers_and_journals_are_closed_in_a_child_too(tmp_path):
    nested, journal, coins = told(
        """
inner = open_ledger(path, 1.0).nested(0.5)
print(json.dumps(in_child(lambda: spend(inner, 0.5))))
with Checkpoint(path + ".journal", 1.0) as kept:
    before = open(path + ".journal", "rb").read()
    print(json.dumps(in_child(lambda: spend(kept.ledger))))
    def toss():
        try:
            return kept.coins.bits(8)
        except ValueError as error:
            return str(error)
    print(json.dumps(in_child(toss)))
    assert open(path + ".journal", "rb").read() == before
""",
        tmp_path / "budget.json",
    )
    assert nested == journal == f"refused: this ledger {CLOSED}"
    assert "is the journal of another process, of which this one is a fork; fit there, or" in coins


@pytest.mark.slow
@pytest.mark.parametrize("made", ["Ledger(1.0)", "open_ledger(path, 1.0)"])
def test_a_grant_reserved_before_a_fork_is_closed_in_the_child(tmp_path, made):
    *refused, here = told(
        f"ledger = {made}"
        """
grant = ledger.reserve(1.0, name="before")
for work in (lambda: grant.release(DiscreteLaplace(1.0, 1), [5]).tolist(),
             lambda: grant.plan(privfit.Event("pure", 0.5)), lambda: grant.filter("basic"),
             lambda: grant.close().epsilon):
    print(json.dumps(in_child(work)))
grant.release(DiscreteLaplace(1.0, 1), [5])
print(json.dumps(grant.close().epsilon))
""",
        tmp_path / "budget.json",
    )
    assert refused == [f"refused: grant 'before' {CLOSED}"] * 4
    assert here == 1.0


@pytest.mark.slow
def test_a_process_number_alone_tells_a_child_from_its_parent(tmp_path):
    """Where a fork was made without Python's knowledge, no hook runs."""
    ledger, grant = told(
        """
import privfit.privacy.ledger
ledger = Ledger(1.0)
grant = ledger.reserve(0.5)
privfit.privacy.ledger._LEDGERS.clear()
print(json.dumps(in_child(lambda: spend(ledger, 0.5))))
print(json.dumps(in_child(lambda: grant.close().epsilon)))
""",
        tmp_path / "none",
    )
    assert ledger == f"refused: this ledger {CLOSED}"
    assert grant == f"refused: grant 'fit' {CLOSED}"


def test_a_child_goes_on_with_a_budget_file(tmp_path):
    path = tmp_path / "budget.json"
    *children, here = told(
        """
ledger = open_ledger(path, 1.0)
for _ in range(4):
    print(json.dumps(in_child(lambda: spend(ledger, 0.3))))
print(json.dumps(ledger.spent.epsilon))
""",
        path,
    )
    assert children[:3] == [0.3] * 3
    assert "has epsilon 0.1, delta 0 left of epsilon 1, delta 0, but 'fit' asks" in children[3]
    assert here == 0.9
    ledger = open_ledger(path)
    assert (ledger.spent, len(ledger.releases)) == (Budget(0.9), 3)


@pytest.mark.slow
def test_a_release_that_the_parent_could_not_write_is_not_written_by_the_child(tmp_path):
    path = tmp_path / "budget.json"
    told(
        """
ledger = open_ledger(path, 1.0)
grant = ledger.reserve(0.25, name="first")
os.rename(path, path + ".away")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    grant.close()
os.rename(path + ".away", path)
in_child(lambda: spend(ledger, 0.25))
spend(ledger, 0.25)
""",
        path,
    )
    assert sorted(release.name for release in open_ledger(path).releases) == ["first", "fit", "fit"]


@pytest.mark.slow
@pytest.mark.parametrize("made", ["Ledger(1.0)", "open_ledger(path, 1.0)"])
def test_a_lock_that_another_thread_holds_at_the_fork_does_not_hang_the_child(tmp_path, made):
    """Also not the file's: the child keeps no lock alive, and the parent's stays its own."""
    reserved, shown = told(
        f"ledger = {made}"
        """
grant = ledger.reserve(0.25)
held, done = threading.Event(), threading.Event()
def hold():
    with ledger._lock:
        held.set()
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
print(json.dumps(in_child(lambda: spend(ledger, 0.5))))
print(json.dumps(in_child(lambda: [grant.spent, ledger.spent.epsilon])))
done.set()
thread.join()
""",
        tmp_path / "budget.json",
    )
    assert reserved == (0.5 if "open" in made else f"refused: this ledger {CLOSED}")
    assert shown == [0.0, 0.75 if "open" in made else 0.25]


@pytest.mark.slow
def test_a_child_of_a_process_that_holds_the_locks_of_a_file_waits_for_it(tmp_path):
    """The child may not go ahead, and when the parent is done it has what the parent left."""
    waited, free = told(
        """
from privfit.privacy import budget_file, budget_locks
ledger = open_ledger(path, 1.0)
place = budget_file._place(path)
held, done = threading.Event(), threading.Event()
def hold():
    with budget_locks.locked(place):
        held.set()
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
def try_briefly():
    budget_locks.WAIT = 0.05
    try:
        return spend(ledger, 0.5)
    except TimeoutError as error:
        return str(error)
print(json.dumps(in_child(try_briefly)))
done.set()
thread.join()
print(json.dumps(in_child(lambda: spend(ledger, 0.5))))
""",
        tmp_path / "budget.json",
    )
    assert re.search(r"was locked by process \d+ of .+ on .+ for 0\.05 seconds", waited)
    assert free == 0.5


# ------------------------------------------------------------------------------------ removed locks

REMOVED = """
count, workers = int(sys.argv[2]), 4
ledger = open_ledger(path, 1.0, adjacency="replace")
hear, tell = os.pipe()
children = []
for worker in range(workers):
    child = os.fork()
    if child == 0:
        for i in range(count):
            try:
                ledger.reserve(2**-20, name=f"{worker} {i}")
            except (OSError, BudgetError):  # not if all is well
                continue
            os.write(tell, b"x")
        os._exit(0)
    children.append(child)
os.close(tell)
removed = 0
while True:
    try:
        os.unlink(path + ".lock")
        removed += 1
    except FileNotFoundError:
        time.sleep(0.001)
    if all(os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) for child in children):
        break
with os.fdopen(hear, "rb") as heard:
    granted = len(heard.read())
entries = open_ledger(path).entries
print(json.dumps([removed, granted, len(entries), len({name for _, name, _ in entries})]))
"""


@pytest.mark.slow
def test_removing_the_lock_file_again_and_again_loses_no_charge(tmp_path):
    count = 50
    ((removed, granted, charged, different),) = told(REMOVED, tmp_path / "budget.json", count)
    assert removed > 10
    assert granted == charged == different == 4 * count


REPLACED = """
from privfit.privacy import budget_file, budget_locks
ledger, other = open_ledger(path, 1.0), open_ledger(path)
order, write = [], budget_file.write_atomically
started = threading.Event()
def slow(*arguments):
    if not started.is_set():
        os.unlink(path + ".lock")
        started.set()
        while not os.path.exists(path + ".lock"):  # until the other has made and locked its own
            time.sleep(0.001)
        thread.join(float(sys.argv[2]))
        order.append("first")
    write(*arguments)
budget_file.write_atomically = slow
def second():
    started.wait()
    other.reserve(0.5, name="second")
    order.append("second")
thread = threading.Thread(target=second)
thread.start()
ledger.reserve(0.5, name="first")
thread.join()
print(json.dumps(order))
"""


@pytest.mark.slow
def test_a_lock_file_that_is_replaced_in_the_middle_of_a_change_loses_nothing(tmp_path):
    """Step by step: one holds the lock, it is removed, another tries; the second must wait."""
    path = tmp_path / "budget.json"
    (order,) = told(REPLACED, path, 0.05)
    assert order == ["first", "second"]
    assert [name for _, name, _ in open_ledger(path).entries] == ["first", "second"]


@pytest.mark.slow
def test_without_the_lock_of_the_folder_a_charge_is_lost_and_the_test_above_sees_it(tmp_path):
    """The planted fault: only the file that is removed is locked, so the second need not wait."""
    path = tmp_path / "budget.json"
    fault = """
import contextlib
from privfit.privacy import budget_locks
budget_locks._locked_folder = lambda path: contextlib.nullcontext()
"""
    (order,) = told(fault + REPLACED, path, 60)
    assert order == ["second", "first"]
    assert [name for _, name, _ in open_ledger(path).entries] == ["first"]


def test_a_folder_whose_lock_another_program_holds_is_waited_for_and_then_refused(
    tmp_path, monkeypatch
):
    import fcntl

    ledger = open_ledger(tmp_path / "budget.json", 1.0)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    monkeypatch.setattr(budget_locks, "WAIT", 0.05)
    with pytest.raises(TimeoutError, match=r"was locked by another process for 0\.05 seconds"):
        ledger.reserve(0.5)
    os.close(folder)
    ledger.reserve(0.5)
    monkeypatch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(38, "no locks")))
    with (
        pytest.raises(ValueError, match="must lie on a file system that has locks; move it to"),
        budget_locks._locked_folder(tmp_path / "budget.json"),
    ):
        pass
    assert ledger.spent == Budget(0.5)
    assert budget_locks._HELD == set()
