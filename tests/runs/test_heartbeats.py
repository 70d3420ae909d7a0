"""Signs of life: every solver is heard of while it works, and nobody is heard of afterwards."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from privfit import KMeans, KMedian, LinearSVC, LogisticRegression
from privfit.runs import heartbeats

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = X[:, 0] > 0


class Watch:
    """Waits for a beat in the middle of a draw."""

    def __init__(self):
        self.beaten, self.threads = threading.Event(), set()

    def __call__(self, generation):
        return None

    def alive(self, *arguments):
        assert arguments == ()
        self.threads.add(threading.current_thread().name)
        self.beaten.set()


@pytest.fixture
def slow(monkeypatch):
    """Draws that wait until they were told to be alive: a solver that takes long."""
    from privfit.privacy.grants import Grant

    monkeypatch.setattr(heartbeats, "SECONDS", 0.01)
    draw, watch = Grant.release, Watch()

    def waiting(self, mechanism, value, rng=None):
        assert watch.beaten.wait(30)
        return draw(self, mechanism, value, rng)

    monkeypatch.setattr(Grant, "release", waiting)
    return watch


def linear(kind, solver):
    return lambda watch: kind(
        1.0, 1e-6, domain=(-1, 1), classes=[False, True], solver=solver, callback=watch,
        random_state=1,
    ).fit(X, Y)  # fmt: skip


MODELS = {
    **{f"logistic {s}": linear(LogisticRegression, s)
       for s in ("objective", "output", "gradient", "local", "functional")},
    "svc objective": linear(LinearSVC, "objective"),
    **{f"means {s}": lambda watch, s=s: KMeans(
        2, 1.0, 1e-6, domain=(-1, 1), solver=s, callback=watch, random_state=1).fit(X)
       for s in ("tree", "lloyd")},
    "medians": lambda watch: KMedian(
        2, 1.0, 1e-6, domain=(-1, 1), metric="l2", callback=watch, random_state=1).fit(X),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_every_solver_is_heard_of(name, slow):
    MODELS[name](slow)
    assert slow.threads == {"privfit-alive"}
    assert not [one for one in threading.enumerate() if one.name == "privfit-alive"]


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
