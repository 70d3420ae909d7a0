"""Entries of budget files: who reserved what, when and for what; renewal; files of all versions."""

from __future__ import annotations

import json
import re
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from makers.raises import assert_reached

import privfit
from privfit import Budget, BudgetError, Ledger, LogisticRegression, open_ledger
from privfit.privacy import budget_file, budget_locks, budget_text, reservations
from privfit.privacy.charges import Running
from privfit.privacy.reservations import RENEWALS, period_of

pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')
X = np.random.default_rng(0).uniform(-1, 1, (200, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.json"


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set: its only item is the time."""
    times = ["2026-01-31T23:59Z"]
    monkeypatch.setattr(budget_file, "now", lambda: times[0])
    return times


def fields_in(path):
    return json.loads(path.read_text())


def logged(path):
    return [one.reservation for one in open_ledger(path).charges]


# ---------------------------------------------------------------------------------------- entries


def test_an_entry_says_who_reserved_it_when_and_for_what(path, clock, monkeypatch):
    monkeypatch.setattr(reservations, "who", lambda: ("ada", "engine"))
    ledger = open_ledger(path, 1.0)
    with ledger.run("models/a.json"):
        clock[0] = "2026-02-01T09:00Z"  # records are read meanwhile
        ledger.reserve(0.25, name="inside")
    ledger.reserve(0.25, name="outside")
    inside, outside = logged(path)
    assert inside.time == "2026-01-31T23:59Z"
    assert outside.time == "2026-02-01T09:00Z"
    assert (inside.model, outside.model) == ("models/a.json", "")
    assert (inside.user, inside.host, inside.version) == ("ada", "engine", privfit.__version__)
    assert (inside.state, inside.part) == ("reserved", 0)
    assert inside.run != outside.run
    assert set(fields_in(path)["entries"][0]) == {
        "group", "name", "epsilon", "delta", "adjacency",
        "time", "run", "part", "user", "host", "version", "model", "state",
    }  # fmt: skip


def test_the_state_says_whether_there_is_a_release_and_no_time_says_when(path, clock):
    ledger = open_ledger(path, 4.0)
    model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], ledger=ledger)
    model.fit(X, X[:, 0] > 0)
    ledger.reserve(1.0)

    def stop(generation):
        clock[0] = "2026-05-05T05:05Z"
        raise KeyboardInterrupt

    model.set_params(callback=stop, solver="local")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X[:, 0] > 0)
    assert [one.state for one in logged(path)] == ["finished", "reserved", "interrupted"]
    assert "2026-05" not in path.read_text()
    assert [one["run"] for one in fields_in(path)["releases"]] == [
        logged(path)[0].run, logged(path)[2].run,
    ]  # fmt: skip


def test_a_release_that_says_failed_among_other_settings_is_finished(path):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5).close(settings={"solver": "own", "failed": 3, "rate": 0.1})
    assert logged(path)[0].state == "finished"


def test_the_time_is_in_utc_and_to_the_minute():
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\dZ", reservations.now())


def test_a_user_without_a_name_is_a_number(monkeypatch):
    def nobody():
        raise KeyError("uid not found")

    monkeypatch.setattr(reservations.getpass, "getuser", nobody)
    assert re.fullmatch(r"uid \d+|unknown", reservations.who()[0])


# ------------------------------------------------------------------------------------ wrong files


def written(path):
    ledger = open_ledger(path, 2.0)
    for name in ("a", "b"):
        ledger.reserve(0.5, name=name).close()
    return fields_in(path)


def with_entry(fields, **changes):
    first, *others = fields["entries"]
    return {**fields, "entries": [{**first, **changes}, *others]}


def without(fields, name):
    first, *others = fields["entries"]
    return {**fields, "entries": [{k: first[k] for k in first if k != name}, *others]}


def no_entry(fields):
    return {**fields, "entries": fields["entries"][1:]}


def another_run(fields):
    return with_release(fields, run="0" * 16)


def unnamed_run(fields):
    one, *others = fields["releases"]
    return {**fields, "releases": [{k: one[k] for k in one if k != "run"}, *others]}


def with_release(fields, **changes):
    one, *others = fields["releases"]
    return {**fields, "releases": [{**one, **changes}, *others]}


def two_releases(fields, *lines):
    one, other = fields["releases"]
    releases = [one, {**other, "run": one["run"], "part": one["part"]}]
    return {**with_journals(fields, *lines), "releases": releases}


def with_journals(fields, *lines, run=None):
    run = run or fields["entries"][0]["run"]
    journals = [{"run": run, "lines": count, "sum": "0" * 64, "last": ""} for count in lines]
    return {**fields, "journals": journals}


UNPAID = "the release of 'a' has an entry that costs less"
OTHER = "the release of 'a' has an entry of another relation"
NOT_OURS = "text must be JSON written by to_json"
WRONG = {
    "release without entry": (no_entry, "the release of 'a' has no entry"),
    "release of another run": (another_run, "the release of 'a' has no entry"),
    "release of no run": (unnamed_run, "the release of 'a' has no entry"),
    "release of more": (lambda f: with_entry(f, epsilon=0.25), UNPAID),
    "release of a delta": (lambda f: with_release(f, delta=1e-9), UNPAID),
    "release of another relation": (lambda f: with_release(f, adjacency="add_remove"), OTHER),
    "release of another relation than its entry": (
        lambda f: with_entry(f, adjacency="add_remove"), OTHER),
    "release of part False": (lambda f: with_release(f, part=False), NOT_OURS),
    "release of part 0.0": (lambda f: with_release(f, part=0.0), NOT_OURS),
    "release of a run that is no text": (lambda f: with_release(f, run=7), NOT_OURS),
    "two releases of a journal": (lambda f: two_releases(f, 3),
                                  "two of its releases are of the same part of the same run"),
    "journal without entry": (lambda f: with_journals(f, 3, run="0" * 16),
                              "the journal of a run has no entry"),
    "two journals": (lambda f: with_journals(f, 3, 1), "two of its journals are of the same run"),
    "entry twice": (lambda f: {**f, "entries": [*f["entries"], f["entries"][0]]},
                    "two of its entries are of the same part of the same run"),
    "renewal without times": (lambda f: {**f, "renewal": "month", "releases": [],
                              "entries": [{"group": "", "name": "x", "epsilon": 1, "delta": 0}]},
                              "it renews, but one of its entries has no time"),
    "renewal unknown": (lambda f: {**f, "renewal": "hour"}, r"renewal \('hour'\) must be one of"),
    "no time": (lambda f: without(f, "time"), NOT_OURS),
    "no state": (lambda f: without(f, "state"), NOT_OURS),
    "state unknown": (lambda f: with_entry(f, state="done"), NOT_OURS),
    "time of no day": (lambda f: with_entry(f, time="2026-02-30T00:00Z"), NOT_OURS),
    "time of another form": (lambda f: with_entry(f, time="yesterday"), NOT_OURS),
    "user a number": (lambda f: with_entry(f, user=7), NOT_OURS),
    "part a text": (lambda f: with_entry(f, part="0"), NOT_OURS),
    "run empty": (lambda f: with_entry(f, run=""), NOT_OURS),
    "journal of texts": (lambda f: {**f, "journals": [{"run": f["entries"][0]["run"],
                                                       "lines": "3", "sum": "", "last": ""}]},
                         NOT_OURS),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_what_no_file_of_ours_says_is_refused(path, change, message):
    path.write_text(json.dumps(change(written(path))))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"as privfit wrote it: {message}"):
        open_ledger(path)
    assert path.read_bytes() == before


def test_an_entry_may_pay_for_several_releases_of_a_run_without_a_journal(path):
    path.write_text(json.dumps(two_releases(written(path))))
    assert [one.name for one in open_ledger(path).releases] == ["a", "b"]


@pytest.mark.parametrize("indent", [None, 2], ids=["line", "indented"])
def test_a_release_may_be_there_twice(path, indent):
    fields = written(path)
    journal = with_journals(fields, 3)["journals"]
    twice = {**fields, "releases": [*fields["releases"], fields["releases"][0]]}
    path.write_text(json.dumps({**twice, "journals": journal}, indent=indent))
    ledger = open_ledger(path)
    assert [one.name for one in ledger.releases] == ["a", "b", "a"]
    ledger.reserve(0.5)  # and what it writes is read again
    assert len(open_ledger(path).releases) == 3


def test_every_refusal_of_a_text_is_a_case_above():
    seen = [message.replace("'a'", "").replace("\\", "") for _, message in WRONG.values()]
    assert_reached([Path(budget_text.__file__)], "\n".join([*seen, "the field 'x' is given twice"]))


@pytest.mark.parametrize("indent", [None, 2], ids=["line", "indented"])
def test_a_file_in_another_layout_says_the_same(path, indent):
    written(path)
    before, shown = open_ledger(path).charges, open_ledger(path).releases
    path.write_text(json.dumps(fields_in(path), indent=indent))
    again = open_ledger(path)
    assert (again.charges, again.releases) == (before, shown)
    again.reserve(0.5)
    assert open_ledger(path).charges[:2] == before


TWICE = {
    "budget": ("epsilon", '  "epsilon": 2.0,', '  "epsilon": 2.0,\n  "epsilon": 9.0,'),
    "entry": ("epsilon", '"epsilon": 0.5', '"epsilon": 0.5, "epsilon": 0.25'),
    "release": ("seeded", '"seeded": false', '"seeded": true, "seeded": false'),
    "entries": ("entries", '  "entries": [\n', '  "entries": [],\n  "entries": [\n'),
    "indented entries": ("entries", '  "entries": [\n', '   "entries": [],\n  "entries": [\n'),
}


@pytest.mark.parametrize("kept", [True, False], ids=["opened before", "opened anew"])
@pytest.mark.parametrize(("field", "old", "new"), TWICE.values(), ids=TWICE)
def test_a_field_given_twice_is_refused(path, field, old, new, kept):
    """Of two readers one may take the first, the other the last."""
    written(path)
    ledger = open_ledger(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(
        ValueError, match=rf"as privfit wrote it: the field '{field}' is given twice"
    ):
        (ledger if kept else open_ledger(path)).reserve(0.25)


def test_an_entry_that_changed_its_time_or_run_is_not_the_same_file(path):
    ledger = open_ledger(path, 1.0)
    ledger.reserve(0.5)
    text = path.read_text()
    for old in (logged(path)[0].time, logged(path)[0].run):
        path.write_text(text.replace(old, "2020-01-01T00:00Z" if "T" in old else "0" * 16))
        with pytest.raises(BudgetError, match="is another one or an older copy"):
            ledger.reserve(0.25)
    path.write_text(text)
    ledger.reserve(0.25)


def test_a_file_of_the_second_version_is_read_and_becomes_one_of_the_third(path):
    old = Ledger(2.0, adjacency="replace")
    old.reserve(0.5, name="old").close()
    path.write_text(old.to_json())
    assert fields_in(path)["privfit"] == 2
    ledger = open_ledger(path)
    assert (ledger.spent.epsilon, len(ledger.releases)) == (0.5, 1)
    ledger.reserve(0.5, name="new").close()
    again = open_ledger(path)
    assert fields_in(path)["privfit"] == 3
    assert [one.name for one in again.releases] == ["old", "new"]
    assert logged(path)[0] is None
    assert logged(path)[1].state == "finished"


# ---------------------------------------------------------------------------------------- renewal


def test_a_budget_that_renews_is_whole_again_in_the_next_period(path, clock):
    ledger = open_ledger(path, 1.0, renewal="month")
    ledger.reserve(0.75, name="january")
    with pytest.raises(BudgetError, match=r"has epsilon 0\.25, .* asks for epsilon 0\.5"):
        ledger.reserve(0.5)
    clock[0] = "2026-02-01T00:00Z"
    assert (ledger.period, ledger.spent, ledger.remaining) == ("2026-02", Budget(0.0), Budget(1.0))
    ledger.reserve(0.5, name="february")
    with pytest.raises(BudgetError, match=r"has epsilon 0\.5, .* asks for epsilon 0\.75"):
        open_ledger(path).reserve(0.75)
    assert [name for _, name, _ in open_ledger(path).entries] == ["january", "february"]
    assert ledger.remaining_for("some") == Budget(0.5)


def test_a_clock_that_is_set_back_opens_no_earlier_period(path, clock):
    clock[0] = "2026-02-01T00:00Z"
    ledger = open_ledger(path, 1.0, renewal="month")
    ledger.reserve(1.0)
    clock[0] = "2026-01-01T00:00Z"
    assert ledger.period == "2026-02"
    with pytest.raises(BudgetError, match="has epsilon 0, delta 0 left"):
        ledger.reserve(0.5)


def test_a_run_that_began_in_an_earlier_period_is_charged_where_times_have_got_to(path, clock):
    ledger = open_ledger(path, 1.0, renewal="month")
    with ledger.run():
        clock[0] = "2026-02-01T00:00Z"
        open_ledger(path).reserve(1.0, name="another's")
        with pytest.raises(BudgetError, match="has epsilon 0, delta 0 left"):
            ledger.reserve(0.5)


def test_a_budget_that_was_overspent_within_a_period_is_refused(path, clock):
    ledger = open_ledger(path, 1.0, renewal="month")
    ledger.reserve(0.75)
    clock[0] = "2026-02-01T00:00Z"
    ledger.reserve(0.75)
    path.write_text(path.read_text().replace("2026-02-01T", "2026-01-31T"))
    with pytest.raises(ValueError, match="has reserved more than its budget"):
        open_ledger(path)


@pytest.mark.parametrize(
    ("renewal", "period"),
    [("day", "2027-01-01"), ("week", "2026-W53"), ("month", "2027-01"), ("year", "2027")],
)
def test_periods_are_those_of_the_calendar(renewal, period):
    assert renewal in RENEWALS
    assert period_of("2027-01-01T00:00Z", renewal) == period
    assert period_of("2027-01-01T00:00Z", None) == ""


def test_renewal_is_declared_once_and_for_files(path):
    open_ledger(path, 1.0)
    message = r"renewal \('week'\) must be that of the budget file, None; leave it out"
    with pytest.raises(ValueError, match=message):
        open_ledger(path, renewal="week")
    other = path.with_name("other.json")
    message = r"renewal \('hour'\) must be one of day, week, month, year, or None .*; pass one"
    with pytest.raises(ValueError, match=message) as caught:
        open_ledger(other, 1.0, renewal="hour")
    ledger = open_ledger(other, 1.0, renewal="week")
    assert open_ledger(other).renewal == "week"
    for text in (ledger.to_json(), other.read_text()):
        with pytest.raises(ValueError, match=r"renewal \('week'\) is for budget files, .*; open"):
            Ledger.from_json(text)
    assert_reached([Path(reservations.__file__)], str(caught.value))


# ---------------------------------------------------------------------------- what a change costs


def test_a_change_reads_and_counts_only_what_is_new(path, monkeypatch):
    """The cost of a change to a file of many entries; tests measure no time."""
    ledger, other = open_ledger(path, 1.0), open_ledger(path)
    for _ in range(30):
        ledger.reserve(2**-10).close()
    assert len(other.charges) == 30
    parsed, counted = [], []
    parse, add = budget_text.parse, Running.add
    monkeypatch.setattr(budget_text, "parse", lambda *a, **k: parsed.append(1) or parse(*a, **k))
    monkeypatch.setattr(Running, "add", lambda self, one: counted.append(1) or add(self, one))
    ledger.reserve(2**-10).close()
    assert (len(parsed), len(counted)) == (0, 1)  # what it added before
    other.reserve(2**-10).close()  # to which an entry and a release are new
    assert (len(parsed), len(counted)) == (2, 2)
    assert len(ledger.charges) == len(open_ledger(path).releases) == 32


# ------------------------------------------------------------------------------------------ locks


def test_a_lock_says_who_holds_it_and_is_silent_when_free(path, monkeypatch):
    ledger = open_ledger(path, 1.0)
    monkeypatch.setattr(budget_locks, "who", lambda: ("ada", "engine"))
    lock = path.with_name("budget.json.lock")
    held, done = threading.Event(), threading.Event()

    def hold():
        with budget_locks.locked(path):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    monkeypatch.setattr(budget_locks, "WAIT", 0.05)
    try:
        message = r"was locked by process \d+ of ada on engine for 0\.05 seconds; wait for that"
        with pytest.raises(TimeoutError, match=message):
            ledger.reserve(0.5)
        lock.unlink()  # a cleaner; who holds the folder is not known then, but it is held
        with pytest.raises(TimeoutError, match="was locked by another process for 0"):
            ledger.reserve(0.5)
    finally:
        done.set()
        thread.join()
    ledger.reserve(0.5)
    assert lock.read_text() == ""
    with pytest.raises(BudgetError, match="asks for"):
        ledger.reserve(0.75)
    assert lock.read_text() == ""


def test_what_is_no_signature_is_not_shown(path):
    open_ledger(path, 1.0)
    path.with_name("budget.json.lock").write_text("age 44\n")
    assert budget_locks._holder(path) == "another process"


def test_a_lock_file_that_cannot_be_signed_is_a_lock_all_the_same(path, monkeypatch):
    ledger = open_ledger(path, 1.0)

    def refuse(*arguments):
        raise OSError(13, "no")

    monkeypatch.setattr(budget_locks.Path, "write_text", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger.reserve(0.5)
    assert ledger.spent == Budget(0.5)
