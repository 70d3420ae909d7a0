"""The logger: off by default, public facts alone, one time for all events of a grant."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest

from privfit import (
    BernoulliNB,
    Checkpoint,
    DiscreteLaplace,
    KMeans,
    Ledger,
    LogisticRegression,
    choose,
    open_ledger,
)
from privfit.base import watching
from privfit.base.watching import LOGGER, tell

X = np.random.default_rng(0).uniform(-1, 1, (777, 3))
Y = X[:, 0] > 0.3
FACTS = {"event", "name", "epsilon", "delta"}
OF_DRAWS = FACTS | {"mechanism", "kind", "size", "count"}


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


@pytest.fixture
def kept():
    handler, level = Kept(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    yield handler.records
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(level)


def logistic(**changes):
    declared = {"domain": (-1, 1), "classes": [False, True], "random_state": 1, **changes}
    return LogisticRegression(1.0, 1e-6, **declared)


def test_nothing_is_logged_unless_the_logger_is_asked(caplog):
    caplog.set_level(logging.DEBUG)
    logistic().fit(X, Y)
    assert not caplog.records
    assert any(isinstance(one, logging.NullHandler) for one in LOGGER.handlers)


def test_events_come_in_order_with_public_facts_alone(kept):
    logistic().fit(X, Y)
    events = [record.privfit["event"] for record in kept]
    assert events[0] == "reserve"
    assert events[-1] == "close"
    assert events.count("charge") == events.count("release") > 0
    for record in kept:
        wanted = FACTS if record.privfit["event"] in ("reserve", "close") else OF_DRAWS
        assert record.privfit.keys() == wanted
        assert record.privfit["name"] == "LogisticRegression"


def test_draws_are_those_of_the_release(kept):
    model = BernoulliNB(1.0, classes=[False, True], random_state=1).fit(X > 0, Y)
    [draw] = [record.privfit for record in kept if record.privfit["event"] == "release"]
    [event] = model.release_.events
    assert (draw["kind"], draw["size"], draw["count"]) == (event.kind, event.parameter, event.count)
    assert draw["mechanism"] == "DiscreteLaplace"


def test_the_log_is_the_same_for_other_records(kept):
    def told(records, labels):
        kept.clear()
        logistic(adjacency="add_remove", n_public=800).fit(records, labels)
        return [(record.getMessage(), record.levelno) for record in kept]

    assert told(X, Y) == told(-X[:400], ~Y[:400])
    assert not any("777" in text for text, _ in told(X, Y))


def test_all_events_of_a_grant_carry_the_time_of_its_reservation(kept):
    grant = Ledger(2.0).reserve(1.0, name="count")
    time.sleep(0.01)
    grant.release(DiscreteLaplace(1.0, sensitivity=1), [5], 1)
    grant.close()
    assert {record.privfit["event"] for record in kept} == {"reserve", "charge", "release", "close"}
    assert len({(one.created, one.msecs) for one in kept}) == 1
    assert np.ptp([one.relativeCreated for one in kept]) < 1e-3
    assert not any("5" in record.getMessage() for record in kept)


def test_a_checkpoint_and_k_means_are_told_of(kept, tmp_path):
    with Checkpoint(tmp_path / "run.journal", 1.0) as run:
        model = KMeans(2, 1.0, domain=(-1, 1), ledger=run.ledger, random_state=run.coins)
        model.fit(X)
    events = [record.privfit["event"] for record in kept]
    assert events[0] == "reserve"
    assert events.count("charge") == events.count("release") > 0


def test_no_handler_can_stop_a_fit(kept):
    def refuse(record):
        raise OSError("the disk is full")

    LOGGER.addFilter(refuse)
    try:
        model = logistic().fit(X, Y)
    finally:
        LOGGER.removeFilter(refuse)
    assert model.release_.verify()
    tell("close", time.time(), lambda: {"name": "still here"})
    assert [record.getMessage() for record in kept] == ["close name=still here"]


class Slow:
    """A public model that takes its time over private records."""

    classes_ = np.array([0, 1])

    def __init__(self, clock: list[float]) -> None:
        self.clock = clock

    def predict(self, X):
        self.clock[0] += 5.0
        return np.zeros(len(X), dtype=int)


def test_no_time_that_is_kept_depends_on_how_long_records_are_read(kept, monkeypatch, tmp_path):
    clock = [1.8e9]
    monkeypatch.setattr(watching.time, "time", lambda: clock[0])
    ledger = open_ledger(tmp_path / "budget.json", epsilon=1.0)
    choose({"a": Slow(clock), "b": Slow(clock)}, np.zeros((10, 2)), np.arange(10) % 2, 1.0,
           ledger=ledger)  # fmt: skip
    assert clock[0] == 1.8e9 + 100
    assert {record.created for record in kept} == {1.8e9}
    [charge] = ledger.charges
    assert charge.reservation.time == "2027-01-15T08:00Z"
