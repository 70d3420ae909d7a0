"""The budget file: charged on disk before a grant, whole after a kill, never overspent together."""

from __future__ import annotations

import copy
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from makers.raises import assert_reached
from sklearn.base import clone

import privfit
from privfit import Budget, BudgetError, Ledger, LogisticRegression, open_ledger
from privfit.base import files
from privfit.base.files import write_atomically
from privfit.privacy import budget_locks
from privfit.privacy.budget_text import Progress
from privfit.privacy.charges import Charge
from privfit.privacy.mechanisms import DiscreteLaplace

pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')
posix = pytest.mark.skipif(os.name == "nt", reason="signals, limits and users of POSIX")
PACKAGE = Path(privfit.__file__).parent
MESSAGES: list[str] = []  # of every refusal that a test below saw


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.json"


def refused(kind, message, call):
    with pytest.raises(kind, match=message) as caught:
        call()
    MESSAGES.append(str(caught.value))
    return caught.value


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).parent,  # Python looks there first: not for a privfit without kernels
    )  # fmt: skip


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out


def names_in(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


# ------------------------------------------------------------------------------------ one process


def test_a_file_keeps_the_budget_the_grants_and_the_releases(path):
    ledger = open_ledger(path, epsilon=1.0, delta=1e-6)
    with ledger.scope("morning"), ledger.group("train"):
        grant = ledger.reserve(0.25, 1e-7, "mean")
    noisy = grant.release(DiscreteLaplace(0.25, 1), np.array([7]), 1)
    release = grant.close(parameters={"mean": noisy})
    again = open_ledger(path)
    assert isinstance(again, Ledger)
    assert again.budget == Budget(1.0, 1e-6)
    assert again.entries == (("train", "morning/mean", Budget(0.25, 1e-7)),)
    assert again.spent == again.cost("morning") == Budget(0.25, 1e-7)
    assert again.remaining_for("test") == again.budget
    assert again.releases == ledger.releases
    assert again.releases[0].parameters == {"mean": noisy.tolist()}
    assert again.releases[0].events == release.events == ledger.events
    assert Ledger.from_json(path.read_text()).entries == again.entries
    assert names_in(path.parent) == {"budget.json", "budget.json.lock"}


def test_two_openers_see_each_others_spending_at_once(path):
    one, other = open_ledger(path, 1.0), open_ledger(path, 1.0, 0.0)
    one.reserve(0.75, name="first")
    assert other.spent == Budget(0.75)
    assert (
        repr(other) == f"LedgerFile({str(path)!r}, epsilon 1, delta 0; spent epsilon 0.75, delta 0)"
    )
    refused(
        BudgetError, r"has epsilon 0\.25.*'fit' asks for epsilon 0\.5", lambda: other.reserve(0.5)
    )
    other.reserve(0.25)
    assert one.remaining == Budget(0.0)


def test_the_charge_is_on_disk_when_the_grant_is_handed_out_and_the_draw_is_not_made(path):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5)
    assert json.loads(path.read_text())["entries"][0]["epsilon"] == 0.5
    with pytest.raises(ValueError, match=r"epsilon \(0\) must be positive"):
        ledger.reserve(0.0)
    assert len(ledger.entries) == 1


def test_the_exact_sum_rules_and_not_its_rounding(path):
    ledger = open_ledger(path, 0.3)
    ledger.reserve(0.1)
    ledger.reserve(0.1)
    refused(BudgetError, "asks for", lambda: ledger.reserve(0.10000000000000002))
    ledger.reserve(ledger.remaining.epsilon)
    assert ledger.spent == Budget(0.3)


def test_the_budget_of_the_file_rules(path):
    open_ledger(path, 1.0, 1e-6)
    assert open_ledger(path, epsilon=np.float32(1.0)).budget == Budget(1.0, 1e-6)
    message = r"epsilon \(2\.0\) must be that of the budget file, 1\.0; leave it out"
    refused(ValueError, message, lambda: open_ledger(path, 2.0))
    refused(ValueError, r"delta \(0\.0\) must be that of", lambda: open_ledger(path, 1.0, 0.0))
    with pytest.raises(ValueError, match=r"epsilon \(-1\.0\) must be a number of at least 0"):
        open_ledger(path.with_name("other.json"), -1.0)
    assert not path.with_name("other.json").exists()


def test_an_estimator_spends_from_the_file_and_its_clone_too(path):
    ledger = open_ledger(path, 1.0)
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = LogisticRegression(0.5, domain=privfit.Box(-1, 1), classes=[0, 1], ledger=ledger)
    model.fit(X, X[:, 0] > 0)
    assert clone(model).ledger is ledger
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    clone(model).fit(X, X[:, 1] > 0)
    assert ledger.spent == Budget(1.0)
    assert [release.epsilon for release in open_ledger(path).releases] == [0.5, 0.5]
    refused(BudgetError, r"has epsilon 0, delta 0 left", lambda: clone(model).fit(X, X[:, 1] > 0))


def test_a_pickle_is_a_closed_copy_that_needs_no_file(path):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5, name="fit").close()
    text = pickle.dumps(ledger)
    path.unlink()
    closed = pickle.loads(text)
    assert type(closed) is Ledger
    assert closed.spent == Budget(0.5)
    assert len(closed.releases) == 1
    refused(BudgetError, "this ledger is closed: it is a copy", lambda: closed.reserve(0.1))


def test_threads_together_cannot_overspend(path):
    ledger, granted = open_ledger(path, 1.0), []

    def spend():
        try:
            for _ in range(20):
                granted.append(ledger.reserve(1 / 16))
        except BudgetError:
            pass

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == len(ledger.entries) == 16


# --------------------------------------------------------------------------------- many processes

HAMMER = """
import sys, privfit
path, group, part = sys.argv[1], sys.argv[2], float(sys.argv[3])
ledger = privfit.open_ledger(path, 1.0, 1e-6)
with ledger.group(group) if group else ledger.scope("all"):
    try:
        while True:
            ledger.reserve(part, name=f"grant").close(parameters={"by": group})
            print("granted", flush=True)
    except privfit.BudgetError as error:
        assert "asks for" in str(error), error
"""


@pytest.mark.slow
def test_processes_together_spend_the_budget_once_and_lose_nothing(path):
    """They also race to make the file."""
    processes = [start(HAMMER, path, "", 1 / 32) for _ in range(4)]
    granted = [output(process).count("granted") for process in processes]
    ledger = open_ledger(path)
    assert sum(granted) == len(ledger.entries) == len(ledger.releases) == 32
    assert ledger.spent.epsilon == 1.0


@pytest.mark.slow
def test_groups_are_common_to_processes(path):
    open_ledger(path, 1.0, 1e-6).reserve(0.5, name="common")
    processes = [start(HAMMER, path, group, 1 / 16) for group in ("train", "test", "train")]
    granted = [output(process).count("granted") for process in processes]
    ledger = open_ledger(path)
    assert granted[0] + granted[2] == granted[1] == 8
    assert ledger.spent.epsilon == 1.0
    assert {group for group, _, _ in ledger.entries} == {"", "train", "test"}


# Forks, so that many runs cost one import. A child reports each grant once it has it.
KILLED = """
import os, random, signal, sys, time, privfit
path, rounds = sys.argv[1], int(sys.argv[2])
inherited = privfit.open_ledger(path, 1.0)
inherited.reserve(2**-20).close()  # all is imported
coins, reported = random.Random(5), 1
for _ in range(rounds):
    hear, tell = os.pipe()
    pids = []
    for opened in (False, True):
        pids.append(os.fork())
        if not pids[-1]:
            ledger = privfit.open_ledger(path) if opened else inherited
            while True:
                grant = ledger.reserve(2**-20)
                os.write(tell, b"x")
                grant.close()
    os.close(tell)
    reported += len(os.read(hear, 1))
    time.sleep(coins.uniform(0, 0.03))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with os.fdopen(hear, "rb") as heard:
        reported += len(heard.read())
    ledger = privfit.open_ledger(path)  # it reads, whatever was interrupted
    assert reported <= len(ledger.entries), (reported, len(ledger.entries))
    assert len(ledger.releases) <= len(ledger.entries)
print(reported, len(ledger.entries))
"""


@pytest.mark.slow
@posix
def test_a_kill_at_any_moment_leaves_a_file_that_counts_all_that_was_granted(path):
    rounds = 60
    reported, charged = map(int, output(start(KILLED, path, rounds)).split())
    assert rounds < reported <= charged <= reported + 2 * rounds  # each child had one in the air
    ledger = open_ledger(path)
    assert ledger.spent.epsilon == charged * 2**-20
    ledger.reserve(0.5)
    assert names_in(path.parent) == {"budget.json", "budget.json.lock"}


INTERRUPTED = """
import signal, sys, numpy as np, privfit
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
ledger = privfit.open_ledger(sys.argv[1], 1.0)
def tell(generation):
    print("fitting", flush=True)
X = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
solver = privfit.EEM(generations=10**5)
model = privfit.LogisticRegression(
    0.5, domain=privfit.Box(-1, 1), classes=[0, 1], ledger=ledger, solver=solver, callback=tell
)
model.fit(X, X[:, 0] > 0)
"""


@pytest.mark.slow
@posix
def test_an_interrupt_in_the_middle_of_a_fit_leaves_its_charge(path):
    process = start(INTERRUPTED, path)
    assert process.stdout.readline() == "fitting\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert "KeyboardInterrupt" in err
    ledger = open_ledger(path)
    assert ledger.spent == Budget(0.5)
    [release] = ledger.releases
    assert release.settings == {"solver": "eem", "failed": "KeyboardInterrupt"}
    assert release.parameters == {}
    assert names_in(path.parent) == {"budget.json", "budget.json.lock"}


# ------------------------------------------------------------------------------- failing to write

LIMITED = """
import resource, sys, privfit
path = sys.argv[1]
ledger = privfit.open_ledger(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))
try:
    ledger.reserve(0.25)
except OSError as error:
    print(error)
"""


@pytest.mark.slow
@posix
def test_a_full_disk_hands_out_nothing_and_leaves_the_file(path):
    open_ledger(path, 1.0).reserve(0.5)
    before = path.read_bytes()
    said = output(start(LIMITED, path))
    assert os.strerror(errno.EFBIG) in said
    assert "needs room for a copy; change that, then try again" in said
    assert path.read_bytes() == before
    assert names_in(path.parent) == {"budget.json", "budget.json.lock"}


def failing(error):
    def fail(*arguments, **named):
        raise error

    return fail


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
STEPS = ["open", "chmod", "fsync", "replace"]  # of writing; "open" is the builtin


def break_step(monkeypatch, step, error):
    if step == "open":
        monkeypatch.setattr(files, "open", failing(error), raising=False)
    else:
        monkeypatch.setattr(files.os, step, failing(error))


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupt"])
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_at_any_step_of_writing_charges_nothing(path, monkeypatch, step, error):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5)
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        break_step(patched, step, error)
        refused(type(error), "No space left on device|^$", lambda: ledger.reserve(0.25))
    assert path.read_bytes() == before
    assert names_in(path.parent) == {"budget.json", "budget.json.lock"}
    assert ledger.spent == Budget(0.5)
    ledger.reserve(0.5)


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupt"])
def test_a_failure_after_the_charge_is_written_stays_charged(path, monkeypatch, error):
    """The last step makes the new name last: the charge may be on disk, so it counts."""
    ledger = open_ledger(path, 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(files, "_sync_folder", failing(error))
        refused(type(error), "No space left on device|^$", lambda: ledger.reserve(0.75))
    assert ledger.spent == open_ledger(path).spent == Budget(0.75)
    refused(BudgetError, "asks for", lambda: ledger.reserve(0.75))


def test_a_release_that_cannot_be_written_is_kept_and_written_later(path, monkeypatch):
    ledger = open_ledger(path, 1.0)
    first, second = ledger.reserve(0.25, name="first"), ledger.reserve(0.25, name="second")
    with monkeypatch.context() as patched:
        break_step(patched, "fsync", FULL)
        message = "release of 'first' is charged and made, but not yet .* No space left on device"
        with pytest.warns(RuntimeWarning, match=message):
            release = first.close(parameters={"w": 1.5})
    assert release.parameters == {"w": 1.5}
    assert [kept.parameters for kept in ledger.releases] == [{"w": 1.5}]
    assert open_ledger(path).releases == ()
    assert open_ledger(path).spent == Budget(0.5)
    second.close()
    assert [kept.name for kept in open_ledger(path).releases] == ["first", "second"]


@pytest.mark.parametrize("step", STEPS)
def test_a_release_whose_writing_was_interrupted_is_written_with_the_next_grant(
    path, monkeypatch, step
):
    ledger = open_ledger(path, 1.0)
    grant = ledger.reserve(0.25, name="first")
    with monkeypatch.context() as patched:
        break_step(patched, step, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            grant.close()
    ledger.reserve(0.25, name="second")
    assert [kept.name for kept in open_ledger(path).releases] == ["first"]


def test_a_release_warns_but_is_made_when_the_file_is_gone(path):
    ledger = open_ledger(path, 1.0)
    grant = ledger.reserve(0.25)
    path.unlink()
    with pytest.warns(RuntimeWarning, match="the budget file .* is missing"):
        assert grant.close().epsilon == 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "its file cannot be read" in repr(ledger)


# ----------------------------------------------------------------------------- files that changed


def test_a_deleted_file_does_not_reset_the_budget(path):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5)
    path.unlink()
    for call in (lambda: ledger.reserve(0.5), lambda: ledger.spent, lambda: ledger.remaining):
        refused(BudgetError, r"the budget file \(.*\) is missing.*put it back to continue", call)
    assert not path.exists()


def test_another_file_in_its_place_is_refused(path):
    ledger = open_ledger(path, 1.0)  # has seen no entry, so only the identity differs
    path.unlink()
    open_ledger(path, 1.0)
    refused(BudgetError, "is another one or an older copy", lambda: ledger.reserve(0.5))


def test_an_older_copy_is_refused_by_a_process_that_saw_the_newer(path):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5)
    old = path.read_bytes()
    ledger.reserve(0.5)
    new = path.read_bytes()
    path.write_bytes(old)
    refused(BudgetError, "older copy: it lacks what was spent since", lambda: ledger.reserve(0.5))
    assert path.read_bytes() == old
    path.write_bytes(new)
    assert ledger.spent == Budget(1.0)


def test_a_link_leads_to_one_file_and_one_lock(tmp_path, path):
    open_ledger(path, 1.0)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.json"
    link.symlink_to(path)
    open_ledger(link).reserve(0.75)
    assert link.is_symlink()
    assert open_ledger(path).spent == Budget(0.75)
    assert names_in(link.parent) == {"link.json"}
    path.unlink()
    message = r"must not be a link to nothing; put the budget file back at .*budget\.json"
    refused(ValueError, message, lambda: open_ledger(link, 1.0))


def test_a_second_name_of_the_file_is_refused(path):
    ledger = open_ledger(path, 1.0)
    os.link(path, path.with_name("copy.json"))
    for call in (lambda: open_ledger(path), lambda: ledger.reserve(0.5)):
        refused(ValueError, "must be the only name of its file; remove the other hard links", call)


# ------------------------------------------------------------------------------------ wrong files


def written(**changes):
    fields = json.loads(privfit.privacy.ledger.ledger_json(Budget(1.0), [], [], id="x"))
    return json.dumps(fields | changes)


def entry(**changes):
    return written(entries=[{"group": "", "name": "x", "epsilon": 0.5, "delta": 0.0} | changes])


OURS = r"path \(.*\) must be a budget file as privfit wrote it: "
WRONG = {
    "empty": ("", OURS + r"text must be JSON written by to_json"),
    "table": ("age,sex\n123456,1\n", OURS + r"text must be JSON written by to_json"),
    "bytes": (b"\xff\xfe\x00\x81", OURS + r"text must be JSON written by to_json"),
    "list": ("[]", OURS + r"text must be JSON written by to_json"),
    "deep": ("[" * 100_000, OURS + r"text must be JSON written by to_json"),
    "other": ('{"epsilon": 1}', OURS + r"text must be JSON written by to_json"),
    "release": (Ledger(1.0).reserve(1.0).close().to_json(), OURS + r"text must be JSON written by"),
    "newer": (written(privfit=99), OURS + r"version \(99\) must be 1 or 2 or 3; use the"),
    "overspent": (entry(epsilon=2.0), OURS + r"this ledger has reserved more than its budget"),
    "negative": (entry(epsilon=-1.0), OURS + r"epsilon \(-1\.0\) must be a number of at least 0"),
    "nan": (entry(epsilon=float("nan")), OURS + r"epsilon \(nan\) must be a number"),
    "numbers": (written(entries=[1]), OURS + r"text must be JSON written by to_json"),
    "groups": (entry(group=[]), OURS + r"text must be JSON written by to_json"),
    "releases": (written(releases=[{"name": "x"}]), OURS + r"text must be JSON written by to_json"),
    "others twice": ('{"123456": 1, "123456": 2}', OURS + r"a field is given twice; pass the text"),
    "twice": ('{"epsilon": 1, "epsilon": 2}',
              OURS + r"the field 'epsilon' is given twice; pass the text as to_json wrote it"),
    "cut": (written()[:-5], OURS + r"text must be JSON written by to_json"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_no_budget_file_is_refused_and_left_alone(path, content, message):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(content)
    error = refused(ValueError, message, lambda: open_ledger(path, 1.0))
    assert "Put its newest copy back, or start another file" in str(error)
    assert "123456" not in str(error)
    assert path.read_bytes() == content
    assert names_in(path.parent) == {"budget.json"}


def test_a_declaration_under_which_the_charges_exceed_the_budget_is_refused(path):
    path.write_text(entry(epsilon=0.75, adjacency="add_remove"))
    message = r"the charges in the budget file \(.*\) exceed its budget under 'replace', where one"
    refused(BudgetError, message, lambda: open_ledger(path, adjacency="replace"))


def test_a_file_that_turns_wrong_later_is_refused_too(path):
    ledger = open_ledger(path, 1.0)
    path.write_text("nonsense")
    refused(ValueError, OURS, lambda: ledger.reserve(0.5))
    assert path.read_text() == "nonsense"


def test_places_where_no_budget_file_can_be_are_refused(tmp_path):
    message = r"must be a budget file, but there is none; pass epsilon to start one"
    refused(FileNotFoundError, message, lambda: open_ledger(tmp_path / "absent.json"))
    refused(
        ValueError, "must be a file, not a folder or device", lambda: open_ledger(tmp_path, 1.0)
    )
    absent = tmp_path / "no" / "budget.json"
    refused(ValueError, r"must be in a folder that exists; make", lambda: open_ledger(absent, 1.0))
    assert names_in(tmp_path) == set()
    if os.name != "nt":
        refused(ValueError, "not a folder or device", lambda: open_ledger(os.devnull, 1.0))
        os.mkfifo(tmp_path / "pipe")
        refused(ValueError, "not a folder or device", lambda: open_ledger(tmp_path / "pipe", 1.0))


UNPRIVILEGED = """
import os, sys, filelock, privfit  # all now: the other user may not read where Python lives
privfit.open_ledger
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for path in sys.argv[1:]:
    try:
        ledger = privfit.open_ledger(path, 1.0)
        print("may read", ledger.spent.epsilon)
        ledger.reserve(0.25)
    except PermissionError as error:
        print(error)
"""


@pytest.fixture
def open_folder():
    """A folder that others may enter; pytest closes its own whenever another session starts."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.slow
@posix
@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can become another")
def test_what_another_user_may_not_do_is_refused_in_a_sentence(open_folder):
    folders = {"closed": 0o700, "readable": 0o755, "open": 0o777}
    for name, mode in folders.items():
        (open_folder / name).mkdir()
        open_ledger(open_folder / name / "budget.json", 1.0)
        (open_folder / name).chmod(mode)
    (open_folder / "open" / "budget.json.lock").chmod(0o666)  # so only the file refuses
    unread = open_folder / "readable" / "unread.json"
    unread.write_bytes((open_folder / "open" / "budget.json").read_bytes())
    unread.chmod(0o600)
    absent = open_folder / "readable" / "absent.json"
    hidden = open_folder / "closed" / "inner" / "budget.json"
    paths = [*(open_folder / name / "budget.json" for name in folders), unread, absent, hidden]
    said = output(start(UNPRIVILEGED, *paths)).splitlines()
    sentence = f"[Errno 13] {os.strerror(errno.EACCES)}: budget file {{}}. "
    assert [line.partition("You must be allowed")[0] for line in said] == [
        sentence.format(paths[0]),
        "may read 0.0", sentence.format(paths[1]),
        "may read 0.0", sentence.format(paths[2]),
        sentence.format(unread),
        sentence.format(absent),
        sentence.format(hidden),
    ]  # fmt: skip
    assert not absent.exists()
    assert all(open_ledger(path).entries == () for path in paths[:3])


# ------------------------------------------------------------------------------------------ locks


def test_a_lock_that_another_process_holds_is_waited_for_and_then_refused(path, monkeypatch):
    from filelock import FileLock

    ledger = open_ledger(path, 1.0)
    monkeypatch.setattr(budget_locks, "WAIT", 0.05)
    with FileLock(f"{path}.lock"):
        message = r"was locked by another process for 0\.05 seconds; wait for that process or end"
        refused(TimeoutError, message, lambda: ledger.reserve(0.5))
        assert ledger.spent == Budget(0.0)  # to look needs no lock
        monkeypatch.setattr(budget_locks, "WAIT", 30.0)
        waiting = threading.Thread(target=lambda: ledger.reserve(0.5))
        waiting.start()
        time.sleep(0.1)
        assert len(json.loads(path.read_text())["entries"]) == 0
    waiting.join()
    assert ledger.spent == Budget(0.5)


def test_without_locks_nothing_is_spent(path, monkeypatch):
    import filelock

    ledger = open_ledger(path, 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(filelock.FileLock, "acquire", failing(NotImplementedError("no flock")))
        message = "must lie on a file system that has locks; move it to a local disk"
        refused(ValueError, message, lambda: ledger.reserve(0.5))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "filelock", None)
        message = r'a budget file needs filelock; run pip install ".*\[cli\]"'
        refused(ImportError, message, lambda: ledger.reserve(0.5))
    assert ledger.spent == Budget(0.0)


# ------------------------------------------------------------------------------- runs and releases


def test_a_release_needs_its_entry(path):
    ledger = open_ledger(path, 1.0)
    stray = Ledger(1.0).reserve(0.5, name="stray").close()
    message = r"release \('stray'\) must belong to an entry of the budget file; close the grant"
    refused(BudgetError, message, lambda: ledger.publish(stray))
    refused(BudgetError, message, lambda: ledger.publish(stray, "0" * 16))
    assert ledger.releases == open_ledger(path).releases == ()


def test_a_model_file_is_a_path(path):
    ledger = open_ledger(path, 1.0)
    message = r"model \(int\) must be the path of a model file; pass a text"
    refused(TypeError, message, lambda: ledger.begun(7))
    with ledger.run(path.with_name("model.json")):
        ledger.reserve(0.5)
    assert ledger.charges[0].reservation.model == str(path.with_name("model.json"))


def test_the_parts_of_a_run_are_charged_once_and_its_journal_goes_one_way(path):
    ledger, other = open_ledger(path, 1.0), open_ledger(path)
    charge = Charge("", "fit", Budget(0.5), "replace")
    message = "lacks 'fit', which the journal of the run has: it is an older copy; put the newest"
    refused(BudgetError, message, lambda: ledger.charge_once(charge, "a", 0, paid=True))
    for each in (ledger, other, ledger):
        each.charge_once(charge, "a", 0, paid=False)
    less = Charge("", "fit", Budget(0.25), "replace")
    message = "'fit' must ask for what this part of the run was charged for in the budget file"
    refused(BudgetError, message, lambda: other.charge_once(less, "a", 0, paid=False))
    assert open_ledger(path).spent.epsilon == 0.5
    first, second = Progress("a", 3, "x", "line"), Progress("a", 4, "y", "other line")
    ledger.advance(None, first)
    assert open_ledger(path).progress("a") == first
    message = "another copy of the journal has gone on: this one is older now; resume from the new"
    refused(BudgetError, message, lambda: other.advance(None, second))
    other.advance(first, second)
    assert ledger.progress("a") == second
    assert ledger.progress("b") is None


# ------------------------------------------------------------------------------------------ files


@posix
def test_a_written_file_has_the_mode_of_a_new_one_or_of_the_one_it_replaces(tmp_path):
    place, usual = tmp_path / "text", tmp_path / "usual"
    usual.touch()
    write_atomically(place, "one\n")
    assert place.stat().st_mode == usual.stat().st_mode
    place.chmod(0o640)
    write_atomically(place, "two é\n")
    assert place.stat().st_mode & 0o777 == 0o640
    assert place.read_bytes() == "two é\n".encode()
    assert names_in(tmp_path) == {"text", "usual"}


def test_leftovers_of_this_file_alone_are_removed(tmp_path):
    left, kept = f".a[b].{'0' * 16}.tmp", [f".ab.{'0' * 16}.tmp", ".a[b].mine.tmp", "a[b]"]
    for name in (left, *kept):
        (tmp_path / name).touch()
    (tmp_path / f".a[b].{'1' * 16}.tmp").mkdir()  # cannot be unlinked, and does no harm
    files.remove_leftovers(tmp_path / "a[b]")
    assert names_in(tmp_path) == {*kept, f".a[b].{'1' * 16}.tmp"}


def test_every_refusal_was_reached_by_a_test_above():
    sources = [PACKAGE / "privacy" / name for name in ("budget_file.py", "budget_locks.py")]
    sources.append(PACKAGE / "base/files.py")
    if len(MESSAGES) < 30:
        pytest.skip("the tests above did not all run")
    assert_reached(sources, "\n".join(MESSAGES))
