"""Signs of life: a fit is heard of from its beginning to its end, and never afterwards."""

from __future__ import annotations

import inspect
import threading
import time

import numpy as np
import pandas as pd
import pytest
from makers.short_methods import ANYWHERE, KMEANS, KMEDIAN, LINEAR, SEARCHES

import privfit
from privfit import (
    Box,
    BudgetError,
    KMeans,
    KMedian,
    Ledger,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Reals,
    Schema,
    Stream,
    search,
)
from privfit.privacy.grants import Grant
from privfit.runs import heartbeats
from privfit.runs.payment import Terms

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = X[:, 0] > 0


class Watch:
    """Waits for beats."""

    def __init__(self):
        self.beaten, self.threads = threading.Event(), set()

    def __call__(self, generation):
        return None

    def alive(self, *arguments):
        assert arguments == ()
        self.threads.add(threading.current_thread())
        self.beaten.set()

    def wait(self, *_):
        """Until there is another beat."""
        self.beaten.clear()
        assert self.beaten.wait(30)


@pytest.fixture
def watch(monkeypatch):
    monkeypatch.setattr(heartbeats, "SECONDS", 0.005)
    return Watch()


@pytest.fixture
def slow(watch, monkeypatch):
    """Draws that wait for a sign of life: a solver that takes long."""
    draw = Grant.release

    def drawing(self, mechanism, value, rng=None):
        watch.wait()
        return draw(self, mechanism, value, rng)

    monkeypatch.setattr(Grant, "release", drawing)
    return watch


@pytest.fixture
def slow_fit(slow, monkeypatch):
    """Charges that wait as well."""
    charge = Terms.charge

    def charging(self, records=None):
        slow.wait()
        return charge(self, records)

    monkeypatch.setattr(Terms, "charge", charging)
    return slow


def linear(name, solver):
    schema = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1)})
    kind = LinearSVC if name == "privatesvm" else LogisticRegression
    domain = schema if name in ("additive", "evidence") else (-1, 1)
    return kind(1.0, 1e-6, domain=domain, classes=[False, True], solver=solver)


def places(name, solver):
    return KMedian(2, 1.0, 1e-6, domain=(-1, 1), facilities=X[:9], clip=(0, 2), solver=solver)


def means(name, solver):
    return KMeans(2, 1.0, 1e-6, domain=(-1, 1), solver=solver)


def medians(name, solver):
    return KMedian(2, 1.0, 1e-6, domain=(-1, 1), metric="l2", solver=solver)


KINDS = {linear: LINEAR, means: KMEANS, places: KMEDIAN, medians: ANYWHERE}


@pytest.mark.parametrize(
    ("made", "name"),
    [pytest.param(made, name, id=f"{made.__name__} {name}")
     for made, methods in KINDS.items() for name in ["auto", *methods]],
)  # fmt: skip
def test_every_method_is_heard_of_all_the_time(made, name, slow_fit):
    """Before the charge, and before each draw; by one thread, which ends with the fit."""
    model = made(name, KINDS[made].get(name, name)).set_params(callback=slow_fit, random_state=1)
    model.fit(X, Y)
    [thread] = slow_fit.threads
    assert thread.name == "privfit-alive"
    assert not thread.is_alive()


FITS = {
    "learnt": lambda: LogisticRegression(1.0, 1e-6, domain="learn", classes=[False, True]),
    "pure": lambda: LogisticRegression(1.0, domain="learn", classes=[False, True]),
    "balanced": lambda: LinearSVC(
        1.0, 1e-6, domain=(-1, 1), classes=[False, True], class_weight="balanced"),
    "calibrated": lambda: LogisticRegression(
        1.0, 1e-6, domain=(-1, 1), classes=[False, True], calibrate=True),
    "clusters": lambda: KMeans(2, 1.0, 1e-6, domain="learn"),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_heard_of_while_it_buys_and_calibrates(name, slow_fit):
    model = FITS[name]().set_params(callback=slow_fit, random_state=1)
    model.fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert len(slow_fit.threads) == 1


def test_every_estimator_that_is_told_of_generations_is_tried():
    public = [getattr(privfit, name) for name in privfit.__all__]
    told = {one for one in public if hasattr(one, "fit")
            and "callback" in inspect.signature(one).parameters}  # fmt: skip
    assert told == {LogisticRegression, LinearSVC, KMeans, KMedian}


@pytest.mark.parametrize("made", KINDS)
def test_a_fit_is_heard_of_while_it_reads(made, watch):
    """Nothing was charged then; a refusal ends the beats, too."""
    model = made("auto", "auto").set_params(callback=watch, random_state=1)
    model.fit(Stream(X, progress=watch.wait), Y)
    ledger = Ledger(0.5)
    with pytest.raises(BudgetError):
        model.set_params(ledger=ledger).fit(Stream(X, progress=watch.wait), Y)
    assert ledger.spent.epsilon == 0
    assert len(watch.threads) == 2
    assert not any(thread.is_alive() for thread in watch.threads)


def test_searches_are_heard_of(slow):
    objective = LinearObjective(X, np.where(Y, 1, -1), "hinge", Box(-1, 1))
    for solver in SEARCHES.values():
        search(objective, Reals(-1, 1, 3), 1.0, 1e-6, solver, callback=slow, random_state=1)
    assert len(slow.threads) == len(SEARCHES)


def test_beats_end_with_the_run_also_by_an_error():
    watch = Watch()
    with pytest.raises(KeyError), heartbeats.beating(watch):
        raise KeyError
    assert not [one for one in threading.enumerate() if one.name == "privfit-alive"]


def test_a_plain_callback_starts_no_thread():
    before = threading.active_count()
    for callback in (None, lambda generation: None):
        with heartbeats.beating(callback):
            assert threading.active_count() == before


def test_one_callback_has_one_thread_also_for_solvers_within_a_fit(watch):
    with heartbeats.beating(watch):
        before = threading.active_count()
        with heartbeats.beating(watch):
            assert threading.active_count() == before
            with heartbeats.beating(Watch()):  # another callback is heard by itself
                assert threading.active_count() == before + 1
        watch.wait()  # the end of what is within ends nothing
    assert len(watch.threads) == 1


def test_an_error_in_a_beat_ends_the_beats_alone(monkeypatch):
    monkeypatch.setattr(heartbeats, "SECONDS", 0.001)
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))

    class Broken:
        def alive(self):
            raise OSError

    with heartbeats.beating(Broken()):
        deadline = time.monotonic() + 30
        while not seen and time.monotonic() < deadline:
            time.sleep(0.001)
    assert seen == [OSError]
