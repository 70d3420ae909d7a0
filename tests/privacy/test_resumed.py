"""Checkpoints that a budget file pays for: charged once, and never drawn twice from any copy."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.raises import assert_reached

import privfit
from privfit import Budget, BudgetError, Checkpoint, DiscreteLaplace, Local, LogisticRegression
from privfit.privacy import budget_file, budget_text, journal
from privfit.privacy.budget_file import open_ledger
from privfit.privacy.grants import Part

pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')
PACKAGE = Path(privfit.__file__).parent
X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
NOISE = DiscreteLaplace(0.25, 1)
MESSAGES: list[str] = []  # of every refusal that a test below saw


class Crash(Exception):  # noqa: N818, it is one
    """The power goes."""


@pytest.fixture
def path(tmp_path):
    open_ledger(tmp_path / "budget.json", 4.0, 1e-5)
    return tmp_path / "journal"


def budget_of(path):
    return open_ledger(path.with_name("budget.json"))


def refused(kind, message, call):
    with pytest.raises(kind, match=message) as caught:
        call()
    MESSAGES.append(str(caught.value))


def fit(path: Path, stop: int = 0, **changes: Any) -> LogisticRegression:
    def listen(generation: Any) -> None:
        if generation.index == stop:
            raise Crash

    settings = {"domain": (-1, 1), "classes": [0, 1], "solver": Local(generations=9), **changes}
    with Checkpoint(path, ledger=budget_of(path)) as checkpoint:
        model = LogisticRegression(
            1.0, 1e-6, ledger=checkpoint.ledger, random_state=checkpoint.coins, calibrate=False,
            callback=listen, **settings,
        )  # fmt: skip
        return model.fit(X, Y)


def draws(path: Path, count: int = 4) -> list[int]:
    """The outcomes of so many draws of one grant, of which all or some are on record."""
    with Checkpoint(path, 1.0, ledger=budget_of(path)) as checkpoint:
        grant = checkpoint.ledger.reserve(1.0, name="counts")
        return [int(grant.release(NOISE, [1000])[0]) for _ in range(count)]


# --------------------------------------------------------------------------------- charged once


def test_a_run_that_crashed_twice_is_charged_once(path):
    for stop in (3, 6):
        with pytest.raises(Crash):
            fit(path, stop)
        assert budget_of(path).spent == Budget(1.0, 1e-6)
        [charge] = budget_of(path).charges
        assert charge.reservation.state == "interrupted"
    model = fit(path)
    ledger = budget_of(path)
    assert ledger.spent == Budget(1.0, 1e-6)
    [charge], [release] = ledger.charges, ledger.releases
    assert charge.reservation.state == "finished"
    assert release.events == model.release_.events
    assert json.loads(path.read_text().splitlines()[0])["value"] == charge.reservation.run
    assert np.array_equal(fit(path).coef_, model.coef_)  # once more, from its end
    assert len(budget_of(path).releases) == len(budget_of(path).charges) == 1


def test_each_grant_of_a_run_is_charged_once_as_a_part_of_it(path):
    def run(crash: bool) -> list[int]:
        with Checkpoint(path, 1.0, ledger=budget_of(path)) as checkpoint:
            found = []
            for name in ("first", "second"):
                grant = checkpoint.ledger.reserve(0.5, name=name)
                found.append(int(grant.release(NOISE, [1000])[0]))
                if crash and name == "second":
                    raise Crash
                grant.close()
            return found

    for _ in range(2):
        with pytest.raises(Crash):
            run(crash=True)
    run(crash=False)
    ledger = budget_of(path)
    parts = [(one.name, one.reservation.part, one.reservation.state) for one in ledger.charges]
    assert parts == [("first", 0, "finished"), ("second", 1, "finished")]
    assert len({one.reservation.run for one in ledger.charges}) == 1
    assert [one.name for one in ledger.releases] == ["first", "second"]


def test_a_crash_between_the_charge_and_the_journal_charges_once(path, monkeypatch):
    write = journal.Journal.write

    def crash(self, text):
        if '"grant"' in text:
            raise Crash
        write(self, text)

    with monkeypatch.context() as patched:
        patched.setattr(journal.Journal, "write", crash)
        with pytest.raises(Crash):
            draws(path)
    assert budget_of(path).spent.epsilon == 1.0
    draws(path)
    assert budget_of(path).spent.epsilon == 1.0


def test_the_budget_of_the_run_and_that_of_the_file_both_bind(path):
    with Checkpoint(path, 0.5, ledger=budget_of(path)) as checkpoint:
        with pytest.raises(BudgetError, match=r"has epsilon 0\.5, .* asks for epsilon 1"):
            checkpoint.ledger.reserve(1.0)
        assert budget_of(path).charges == ()
    budget_of(path).reserve(3.75)
    with Checkpoint(path.with_name("other"), ledger=budget_of(path)) as checkpoint:
        with pytest.raises(BudgetError, match=r"has epsilon 0\.25, .* asks for epsilon 1"):
            checkpoint.ledger.reserve(1.0)
        checkpoint.ledger.reserve(0.25)
    assert budget_of(path).remaining.epsilon == 0.0


def test_a_run_is_converted_to_the_relation_of_its_file(path):
    budget_of(path).reserve(0.5, adjacency="replace")
    with Checkpoint(path, ledger=budget_of(path)) as checkpoint:
        checkpoint.ledger.reserve(0.5, adjacency="add_remove")
        assert checkpoint.ledger.spent.epsilon == 1.0
    assert budget_of(path).spent.epsilon == 1.5


def test_the_time_of_a_run_is_that_of_its_beginning(path, monkeypatch):
    """A fit may pack its records before it reserves; the entry must not show how long that took."""
    clock = ["2026-01-01T10:00Z"]
    monkeypatch.setattr(budget_file, "now", lambda: clock[0])
    ledger = budget_of(path)
    with ledger.run("model.json"), Checkpoint(path, ledger=ledger) as checkpoint:
        clock[0] = "2026-01-01T11:00Z"
        checkpoint.ledger.reserve(0.5)
    with Checkpoint(path.with_name("other"), ledger=ledger) as checkpoint:
        clock[0] = "2026-01-01T12:00Z"
        checkpoint.ledger.reserve(0.5)
    with Checkpoint(path, ledger=ledger) as checkpoint:  # resumed: it keeps its time
        checkpoint.ledger.reserve(0.5)
    said = [(one.reservation.time, one.reservation.model) for one in ledger.charges]
    assert said == [("2026-01-01T10:00Z", "model.json"), ("2026-01-01T11:00Z", "")]


# ------------------------------------------------------------------------------ never drawn twice


def test_an_older_copy_of_a_journal_is_refused_however_often_it_is_restored(path):
    """Without a budget file each of these would be another release, and "spent 1.0"."""
    draws(path, 2)
    old = path.read_bytes()
    newest = draws(path, 4)
    new = path.read_bytes()
    for _ in range(3):
        path.write_bytes(old)
        refused(BudgetError, "the journal is an older copy, or was changed: its budget file knows "
                             "that the run has got further", lambda: draws(path))  # fmt: skip
        assert path.read_bytes() == old
    path.write_bytes(new)
    assert draws(path) == newest
    assert budget_of(path).spent.epsilon == 1.0


def test_a_crash_between_the_budget_file_and_the_journal_draws_nothing_twice(path, monkeypatch):
    """The draw is in the budget file, and nobody has seen it: it is the one that is released."""
    write, lost = journal.Journal.write, []

    def crash(self, text):
        if '"draw"' in text and len(self.sums) == 4:  # the second one
            lost.append(json.loads(text)["value"]["array"][0])
            raise Crash
        write(self, text)

    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(journal.Journal, "write", crash)
            with pytest.raises(Crash):
                draws(path)
    assert lost[0] == lost[1] == draws(path)[1]
    assert budget_of(path).spent.epsilon == 1.0


def test_a_copy_that_lacks_the_last_draw_of_a_killed_run_gets_it_from_the_budget_file(path):
    with pytest.raises(Crash):
        fit(path, stop=5)
    seen = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    fit(path)
    again = [json.loads(line) for line in path.read_text().splitlines()]
    assert again[: len(seen)] == seen


def test_a_copy_that_is_used_beside_the_journal_draws_nothing(path):
    draws(path, 1)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    ledger = budget_of(path)
    with Checkpoint(path, 1.0, ledger=ledger) as one, Checkpoint(copy, 1.0, ledger=ledger) as two:
        grants = [each.ledger.reserve(1.0, name="counts") for each in (one, two)]
        assert len({int(grant.release(NOISE, [1000])[0]) for grant in grants}) == 1
        grants[0].release(NOISE, [1000])
        before = copy.read_bytes()
        refused(BudgetError, "another copy of the journal has gone on: this one is older now",
                lambda: grants[1].release(NOISE, [1000]))  # fmt: skip
        assert copy.read_bytes() == before  # not even on disk


def test_an_older_copy_of_the_budget_file_is_refused(path):
    place = path.with_name("budget.json")
    empty = place.read_bytes()
    with Checkpoint(path, 1.0, ledger=budget_of(path)) as checkpoint:
        grant = checkpoint.ledger.reserve(1.0, name="counts")
        charged = place.read_bytes()
        grant.release(NOISE, [1000])
    for old in (empty, charged):
        place.write_bytes(old)
        refused(BudgetError, "the journal has draws that its budget file does not know: the budget "
                             "file is an older copy", lambda: draws(path))  # fmt: skip


def test_a_charge_that_the_budget_file_lacks_is_not_made_again(path):
    place = path.with_name("budget.json")
    empty = place.read_bytes()
    draws(path, 0)
    place.write_bytes(empty)
    refused(BudgetError, "lacks 'counts', which the journal of the run has: it is an older copy",
            lambda: draws(path))  # fmt: skip
    assert place.read_bytes() == empty


def test_another_grant_in_the_place_of_one_that_was_charged_is_refused(path, monkeypatch):
    draws(path, 0)
    first = path.read_text().splitlines(keepends=True)[0]
    path.write_text(first)  # a copy from before the grant
    with Checkpoint(path, 1.0, ledger=budget_of(path)) as checkpoint:
        refused(BudgetError, "'other' must ask for what this part of the run was charged for",
                lambda: checkpoint.ledger.reserve(0.5, name="other"))  # fmt: skip
        checkpoint.ledger.reserve(1.0, name="counts")
    assert budget_of(path).spent.epsilon == 1.0


def test_the_budget_file_keeps_the_last_line_only_while_a_run_may_need_it(path):
    def last():
        [kept] = json.loads(path.with_name("budget.json").read_text())["journals"]
        return kept["last"]

    with Checkpoint(path, 1.0, ledger=budget_of(path)) as checkpoint:
        checkpoint.ledger.reserve(1.0, name="counts").release(NOISE, [1000])
        assert last() == path.read_text().splitlines()[-1]
    assert last() == ""
    assert len(draws(path, 2)) == 2


# -------------------------------------------------------------------------------- damaged journals


def test_no_digit_of_a_journal_can_change_in_silence(tmp_path):
    """Without a budget file, too. Of 200 changes, 54 once resumed to another model."""
    path = tmp_path / "journal"
    with Checkpoint(path, 1.0) as checkpoint:
        LogisticRegression(
            1.0, domain=(-1, 1), classes=[0, 1], solver=Local(generations=5),
            ledger=checkpoint.ledger, random_state=checkpoint.coins,
        ).fit(X, Y)  # fmt: skip
    whole = path.read_text()
    digits = [i for i, letter in enumerate(whole) if letter.isdigit()]
    coins = random.Random(1)
    for i in coins.sample(digits, 200):
        other = coins.choice([digit for digit in "0123456789" if digit != whole[i]])
        path.write_text(whole[:i] + other + whole[i + 1 :])
        with pytest.raises(ValueError, match=r"must be a journal (as it was written|of privfit)"):
            Checkpoint(path, 1.0)
    path.write_text(whole)
    Checkpoint(path, 1.0)


@pytest.mark.parametrize(
    "change",
    [lambda lines: lines[:1] + lines[2:], lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
     lambda lines: [*lines, lines[-1]], lambda lines: [*lines[:-1], lines[-1].replace(" ", "")]],
    ids=["left out", "moved", "twice", "spaces"],
)  # fmt: skip
def test_lines_that_were_moved_are_noticed(path, change):
    draws(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(change(lines)))
    refused(ValueError, "must be a journal as it was written, but line", lambda: draws(path))


def test_a_journal_that_was_changed_with_its_sums_differs_from_the_budget_file(path):
    """Anybody can compute sums; the file knows that of the last draw."""
    draws(path, 4)
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    made = journal.Journal(path)
    for step in kept:
        value = step["value"]
        if step["kind"] == "draw":
            value = {**value, "array": [value["array"][0] + 1]}
        made.append(step["kind"], step["what"], value)
    made.close()
    refused(BudgetError, "the journal is an older copy, or was changed", lambda: draws(path))


@pytest.mark.parametrize(
    "changes", [{"domain": (-2, 2)}, {"adjacency": "add_remove", "n_public": 600}],
    ids=["domain", "relation"],
)  # fmt: skip
def test_a_journal_is_not_resumed_under_other_declarations(path, changes):
    with pytest.raises(Crash):
        fit(path, stop=3)
    refused(ValueError, r"must be the journal of this run, but step \d differs",
            lambda: fit(path, **changes))  # fmt: skip
    assert budget_of(path).spent == Budget(1.0, 1e-6)


def test_a_part_of_a_grant_ties_the_journal_too(path):
    def declare(what: str) -> None:
        with Checkpoint(path, 1.0, ledger=budget_of(path)) as checkpoint:
            Part(checkpoint.ledger.reserve(1.0), Budget(0.5)).declare(what, [1], None)

    declare("a domain")
    declare("a domain")
    refused(ValueError, "must be the journal of this run, but step 3 differs",
            lambda: declare("another"))  # fmt: skip


def test_a_journal_is_tied_to_its_budget_file(path):
    draws(path)
    other = open_ledger(path.with_name("other.json"), 4.0)
    for ledger in (other, None):
        refused(ValueError, "must be the journal of this run, but step 1 differs",
                lambda ledger=ledger: Checkpoint(path, 1.0, ledger=ledger))  # fmt: skip
    assert other.spent.epsilon == 0.0


def test_a_journal_of_the_first_version_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "journal"
    old = {"kind": "run", "what": {"privfit": 1, "epsilon": 1.0, "delta": 0.0}, "value": True}
    path.write_text(json.dumps(old) + "\n")
    message = "is a journal of an earlier version, which had no checksums; finish the run with the"
    refused(ValueError, message, lambda: Checkpoint(path, 1.0))
    assert json.loads(path.read_text()) == old


def test_a_refused_journal_is_free_for_the_next(path):
    draws(path, 2)
    old = path.read_bytes()
    draws(path, 4)
    new = path.read_bytes()
    path.write_bytes(old)
    refused(BudgetError, "older copy", lambda: draws(path))
    path.write_bytes(new)
    draws(path)


def test_a_budget_is_declared_or_that_of_a_file(path):
    message = r"epsilon \(None\) must be a number; pass the budget of the run, or a ledger"
    refused(ValueError, message, lambda: Checkpoint(path))
    message = r"ledger \(Ledger\) must be that of a budget file, .*; pass open_ledger\(path\)"
    refused(TypeError, message, lambda: Checkpoint(path, 1.0, ledger=privfit.Ledger(1.0)))
    assert not path.exists()


def test_a_ledger_within_that_of_a_checkpoint_is_refused(tmp_path):
    """Its grants would draw anew in each resumed run, for one charge."""
    with Checkpoint(tmp_path / "journal", 1.0) as kept:
        message = r"reserve parts from journal\.ledger itself"
        refused(ValueError, message, lambda: kept.ledger.nested(0.5))


def test_coins_of_a_checkpoint_go_with_its_ledger_alone(tmp_path):
    """Else the bits of noise would be in the journal; nothing is charged."""
    message = "coins of a checkpoint must go with its ledger, or noise would be on record"
    with Checkpoint(tmp_path / "journal", 1.0) as kept:
        for ledger in (privfit.Ledger(1.0), None):
            model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver="output",
                                       ledger=ledger, random_state=kept.coins)  # fmt: skip
            refused(ValueError, message, lambda model=model: model.fit(X, Y))
            assert ledger is None or ledger.spent.epsilon == 0
        grant = privfit.Ledger(1.0).reserve(1.0)
        refused(ValueError, message, lambda: grant.release(NOISE, [3], kept.coins))
    assert '"coins"' not in (tmp_path / "journal").read_text()


def test_a_budget_file_without_an_identity_is_refused(tmp_path):
    path = tmp_path / "budget.json"
    path.write_text(privfit.Ledger(3.0).to_json())
    message = "ledger must be a budget file with an identity"
    there = open_ledger(path)
    refused(ValueError, message, lambda: Checkpoint(tmp_path / "journal", 1.0, ledger=there))


def test_every_refusal_of_checkpoints_was_reached_above():
    if len(MESSAGES) < 18:
        pytest.skip("the tests above did not all run")
    assert_reached([PACKAGE / "privacy/checkpoint.py"], "\n".join(MESSAGES))


# ------------------------------------------------------------------------------------- real kills

KILLS = PACKAGE.parent / "tools" / "kills.py"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not KILLS.exists(), reason="needs the clone")
@pytest.mark.parametrize("options", [[], ["--cleaner"], ["--checkpoints"],
                                     ["--checkpoints", "--cleaner"]], ids=" ".join)  # fmt: skip
def test_a_hundred_kills_lose_and_repeat_nothing(options, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, KILLS, "--kills", "100", "--folder", tmp_path, "--json", *options]
    done = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=600,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= 100
    assert 10 < found["released"] <= found["charged"]
    if "--checkpoints" in options:
        assert found["released"] == found["charged"] == found["finished"]
    assert found["corrupt"] == found["charged_twice"] == found["drawn_twice"] == 0
    assert budget_text.BudgetText().read((tmp_path / "budget.json").read_bytes()).charges


@pytest.mark.slow
@pytest.mark.skipif(not KILLS.exists(), reason="tools are not installed")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_a_short_soak_loses_nothing():
    command = [sys.executable, KILLS.with_name("soak.py"), "--minutes", "0.05", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    found = json.loads(done.stdout)
    assert [found[name] for name in ("lost", "charged_twice", "drawn_twice", "corrupt", "failed",
                                     "overspent")] == [0] * 6  # fmt: skip
    assert found["kills"] > 20
    assert found["released"] > 0
