"""The journal of a run: what is on record is not drawn again, and nothing private is on record."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.raises import assert_reached

import privfit
from privfit import (
    BernoulliNB,
    Budget,
    Checkpoint,
    DiscreteLaplace,
    Exponential,
    KMeans,
    Local,
    LogisticRegression,
    PermutedSGD,
    roc_curve,
)

X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)


class Crash(Exception):  # noqa: N818, it is one
    """The power goes."""


def crash_at(step: int) -> Any:
    def listen(generation: Any) -> None:
        if generation.index == step:
            raise Crash

    return listen


def fit(path: Path, callback: Any = None, **changes: Any) -> tuple[LogisticRegression, Checkpoint]:
    settings = {"domain": (-1, 1), "classes": [0, 1], "solver": Local(generations=9), **changes}
    with Checkpoint(path, 2.0, 1e-6) as journal:
        model = LogisticRegression(1.0, 1e-6, ledger=journal.ledger, random_state=journal.coins,
                                   calibrate=False, callback=callback, **settings)  # fmt: skip
        return model.fit(X, Y), journal


def steps_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("step", [1, 5, 9])
def test_a_run_that_crashed_goes_on_from_what_it_released(step, tmp_path):
    path, first, second = tmp_path / "journal", [], []

    def told(found: list[Any], crash: Any = None) -> Any:
        def listen(generation: Any) -> None:
            found.append(generation.parameters.tolist())
            if crash is not None:
                crash(generation)

        return listen

    with pytest.raises(Crash):
        fit(path, told(first, crash_at(step)))
    model, journal = fit(path, told(second))
    assert second[:step] == first
    assert len(second) == 9
    assert journal.ledger.spent == Budget(1.0, 1e-6)
    assert sum(event.count for event in model.release_.events) == 9
    assert model.release_.verify()
    assert not model.release_.seeded
    assert [s["kind"] for s in steps_of(path)].count("draw") == 9

    again, journal = fit(path)  # to its end: all of it is on record
    assert np.array_equal(again.coef_, model.coef_)
    assert "0 steps to replay" in repr(journal)
    assert len(steps_of(path)) == 1 + 1 + 1 + 1 + 9  # run, grant, declarations, coins, draws


def test_several_fits_of_every_kind_of_outcome_are_replayed(tmp_path):
    def run() -> list[Any]:
        with Checkpoint(tmp_path / "journal", 10.0, 1e-5) as journal:
            shared = {"ledger": journal.ledger, "random_state": journal.coins}
            with journal.ledger.scope("clusters"):
                tree = KMeans(2, 1.0, domain=(-1, 1), solver="tree", **shared).fit(X)
            lloyd = KMeans(2, 1.0, 1e-6, domain=(-1, 1), solver="lloyd", **shared).fit(X)
            bayes = BernoulliNB(1.0, classes=[0, 1], max_ones=1, **shared).fit(X, Y)
            curve = roc_curve(Y, (X[:, 0] + 1) / 2, 1.0, **shared)
            sgd = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1],
                                     solver=PermutedSGD(passes=1), **shared).fit(X, Y)  # fmt: skip
            assert journal.ledger.spent.epsilon == 5.0
            return [tree.cluster_centers_, lloyd.cluster_centers_, bayes.feature_count_, curve.tpr,
                    sgd.coef_]  # fmt: skip

    first, again = run(), run()
    assert all(map(np.array_equal, first, again))


@pytest.mark.parametrize(
    "drawn",
    [np.array([np.inf, np.nan, 0.5]), np.array(3), np.array(["a", "bc"]), np.zeros((2, 0)),
     np.array([2**63], dtype=np.uint64)],
    ids=["not finite", "no axis", "texts", "empty", "large"],
)  # fmt: skip
def test_whatever_array_a_mechanism_draws_comes_back_as_it_was(drawn, tmp_path):
    class Own(DiscreteLaplace):
        def __call__(self, value, rng=None):
            return drawn

    for _ in range(2):
        with Checkpoint(tmp_path / "journal", 1.0) as journal:
            grant = journal.ledger.reserve(1.0, name="own")
            found = grant.release(Own(1.0, 1), 0)
            assert found.dtype == drawn.dtype
            assert found.shape == drawn.shape
            assert np.array_equal(found, drawn, equal_nan=drawn.dtype.kind == "f")


def test_a_line_that_was_cut_short_is_drawn_again(tmp_path):
    path = tmp_path / "journal"
    with pytest.raises(Crash):
        fit(path, crash_at(4))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    fit(path)
    assert path.read_bytes().startswith(whole[: whole[:-1].rfind(b"\n") + 1])
    assert [s["kind"] for s in steps_of(path)].count("draw") == 9


@pytest.mark.parametrize("content", ["dear diary", "dear\ndiary", '{"kind": "letter"', "1\n2"])
def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(content, tmp_path):
    path = tmp_path / "diary"
    path.write_text(content)
    with pytest.raises(ValueError, match="must be a journal of privfit, or new"):
        Checkpoint(path, 1.0)
    assert path.read_text() == content


def test_a_journal_whose_first_line_was_cut_short_begins_anew(tmp_path):
    path = tmp_path / "journal"
    Checkpoint(path, 1.0)
    whole = path.read_bytes()
    for end in (0, 5, len(whole) - 1):
        path.write_bytes(whole[:end])
        Checkpoint(path, 1.0)
        assert len(path.read_bytes()) == len(whole)
        assert path.read_bytes() != whole  # it is another run


def test_noise_is_not_on_record_and_the_file_is_its_owners(tmp_path):
    """A mechanism that takes its bits the way that coins are taken leaves no seed behind."""
    path = tmp_path / "journal"
    fit(path, solver=PermutedSGD(passes=1))
    assert [s["kind"] for s in steps_of(path)] == ["run", "grant", "declared", "coins", "draw"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0


def test_a_value_that_cannot_be_put_on_record_is_not_released(tmp_path, monkeypatch):
    journal = Checkpoint(tmp_path / "journal", 2.0)
    grant = journal.ledger.reserve(2.0)
    told = []
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):  # noqa: PT012
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "disk is full")))
        told.append(grant.release(DiscreteLaplace(1.0, 1), [5], journal.coins))
    assert told == []
    assert grant.spent == 1.0
    with pytest.raises(ValueError, match="was closed"):
        grant.release(DiscreteLaplace(1.0, 1), [5], journal.coins)
    journal = Checkpoint(tmp_path / "journal", 2.0)
    noisy = journal.ledger.reserve(2.0).release(DiscreteLaplace(1.0, 1), [5], journal.coins)
    assert noisy.shape == (1,)


def test_a_copy_of_the_ledger_is_closed(tmp_path):
    _, journal = fit(tmp_path / "journal")
    with pytest.raises(privfit.BudgetError, match="this ledger is closed"):
        pickle.loads(pickle.dumps(journal.ledger)).reserve(0.1)


def other_settings(path: Path) -> None:
    fit(path)
    fit(path, solver=Local(generations=8))


def other_draw(path: Path) -> None:
    for mechanism in (Exponential(0.5, 1), Exponential(0.5, 2)):
        with Checkpoint(path, 1.0) as journal:
            journal.ledger.reserve(1.0).release(mechanism, [1, 2], journal.coins)


def busy(path: Path) -> None:
    first = Checkpoint(path, 1.0)
    Checkpoint(path, 1.0)
    del first


def closed(path: Path) -> None:
    with Checkpoint(path, 1.0) as journal:
        pass
    journal.ledger.reserve(1.0)


def not_a_journal(path: Path) -> None:
    path.write_text("dear diary\n")
    Checkpoint(path, 1.0)


def other_budget(path: Path) -> None:
    Checkpoint(path, 1.0)
    Checkpoint(path, 2.0)


def changed(path: Path) -> None:
    Checkpoint(path, 1.0)
    path.write_text(path.read_text().replace("1.0", "2.0"))
    Checkpoint(path, 2.0)


def earlier(path: Path) -> None:
    what = {"privfit": 1, "epsilon": 1.0, "delta": 0.0}
    path.write_text(json.dumps({"kind": "run", "what": what, "value": True}) + "\n")
    Checkpoint(path, 1.0)


def no_source(path: Path) -> None:
    Checkpoint(path, 1.0, random_state="dice")


def forked(path: Path) -> None:
    journal = Checkpoint(path, 1.0)
    journal._journal._process += 1  # as if this were a child; test_forks.py makes real ones
    journal.coins.bits(8)


REFUSALS = [
    (other_settings, r"must be the journal of this run, but step 5 differs; pass the same"),
    (other_draw, r"must be the journal of this run, but step 3 differs"),
    (other_budget, r"must be the journal of this run, but step 1 differs"),
    (closed, r"was closed; fit within `with Checkpoint\(\.\.\.\) as journal:`"),
    (forked, r"is the journal of another process, of which this one is a fork; fit there, or pass"),
    (changed, r"must be a journal as it was written, but line 1 was changed; put the newest copy"),
    (earlier, r"is a journal of an earlier version, which had no checksums; finish the run with"),
    (not_a_journal, r"must be a journal of privfit, or new; pass another path"),
    pytest.param(busy, r"must not be in use by another run; wait until it ends, or pass another "
                       r"path",
                 marks=pytest.mark.skipif(os.name != "posix", reason="no locks")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_what_is_refused_names_the_remedy(call, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        call(tmp_path / "journal")


@pytest.mark.parametrize("call", [not_a_journal, changed, earlier, other_budget, no_source])
def test_a_refused_journal_is_free_while_its_error_is_kept(call, tmp_path):
    """As at a prompt: the traceback of the last error holds everything that it went through."""
    path = tmp_path / "journal"
    Checkpoint(path, 1.0)
    good = path.read_bytes()
    with pytest.raises((ValueError, TypeError)) as kept:
        call(path)
    path.write_bytes(good)
    with Checkpoint(path, 1.0) as journal:
        assert journal.run in good.decode()
    assert kept.value.__traceback__ is not None


def test_every_raise_is_reached_by_a_case_above(tmp_path):
    seen = []
    for call in (other_settings, closed, changed, earlier, forked, not_a_journal, busy):
        with pytest.raises(ValueError, match="path") as caught:
            call(tmp_path / call.__name__)
        seen.append(str(caught.value))
    assert_reached([Path(privfit.__file__).parent / "privacy/journal.py"], "\n".join(seen))
