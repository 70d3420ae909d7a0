"""Small matrices are decomposed on one thread of BLAS, and `n_threads` bounds it everywhere."""

from __future__ import annotations

import builtins
import os
import threading
from contextlib import ExitStack

import numpy as np
import pytest
from makers.own_solvers import best_of_some

from privfit import BernoulliNB, KMeans, KMedian, L2Ball, LogisticRegression
from privfit.base import blas
from privfit.linear.descent import whitened


class Library:
    """A BLAS that remembers how often its number of threads was set."""

    def __init__(self, threads):
        self.threads, self.calls = threads, 0

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, threads):
        self.threads, self.calls = threads, self.calls + 1


class Controlled(Library):
    """One of threadpoolctl 3.8: whoever sets its number first is the only one who can."""

    thread = None

    def set_num_threads(self, threads):
        self.thread = self.thread or threading.get_ident()
        if self.thread == threading.get_ident():
            super().set_num_threads(threads)

    def clear_controlling_thread(self, force=False):
        if force or self.thread == threading.get_ident():
            self.thread = None


@pytest.fixture
def libraries(monkeypatch):
    found = Library(4), Library(1), Library(None)
    monkeypatch.setattr(blas, "_libraries", lambda: found)
    return found


def test_within_a_block_blas_has_one_thread(libraries):
    several, one, unknown = libraries
    with blas.one_thread():
        assert (several.threads, one.threads) == (1, 1)
    assert (several.threads, one.threads, unknown.threads) == (4, 1, None)
    assert (one.calls, unknown.calls) == (0, 0)  # what has one thread is left alone


def test_any_thread_may_open_a_block(monkeypatch):
    library, seen = Controlled(4), []
    monkeypatch.setattr(blas, "_libraries", lambda: (library,))
    library.set_num_threads(4)  # by this thread

    def look():
        with blas.one_thread():
            seen.append(library.threads)
        seen.append(library.threads)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [1, 4]
    assert library.thread is None


def test_the_blas_of_this_process_has_one_thread_within_blocks_of_any_thread():
    found, seen = blas._libraries(), []
    assert found, "numpy has a BLAS, and it should be found"

    def look():
        with blas.one_thread():
            seen.append([one.get_num_threads() for one in found])

    with ExitStack() as before:
        for one in found:
            before.callback(one.set_num_threads, one.get_num_threads())
            one.set_num_threads(2)  # which makes this thread the one that may set it
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [[1] * len(found)]
        assert [one.get_num_threads() for one in found] == [2] * len(found)


def test_a_library_that_is_loaded_within_a_block_is_bounded_by_the_next(monkeypatch):
    found = [Library(4)]
    monkeypatch.setattr(blas, "_libraries", lambda: tuple(found))
    with blas.one_thread():
        found.append(Library(8))
        with blas.at_most(2):
            assert [one.threads for one in found] == [1, 1]
    assert [one.threads for one in found] == [4, 8]


def test_an_error_ends_a_block(libraries):
    with pytest.raises(ZeroDivisionError), blas.one_thread():
        raise ZeroDivisionError
    assert libraries[0].threads == 4


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_blocks_of_several_threads_may_overlap(libraries, first_ends_first):
    """The number from before is restored by the last block, whichever that is."""
    blocks = ExitStack(), ExitStack()
    for block in blocks:
        block.enter_context(blas.one_thread())
    last = blocks[first_ends_first]
    blocks[not first_ends_first].close()
    assert libraries[0].threads == 1
    last.close()
    assert libraries[0].threads == 4


def test_whitening_does_not_depend_on_the_threads_of_blas(rng):
    found = blas._libraries()
    assert found, "numpy has a BLAS, and it should be found"
    X, answers = rng.normal(size=(500, 100)), []
    moments = X.T @ X  # whose own bits depend on the threads of some CPUs
    for threads in (1, 2, 4):
        with ExitStack() as before:
            for one in found:
                before.callback(one.set_num_threads, one.get_num_threads())
                one.set_num_threads(threads)
            answers.append(whitened(moments, 1.0, 500.0)[0])
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_the_smallest_number_of_all_open_blocks_counts(libraries):
    several = libraries[0]
    with blas.at_most(3):
        assert several.threads == 3
        with blas.at_most(8), blas.at_most(2):
            assert several.threads == 2
        with blas.at_most(None), blas.one_thread():
            assert several.threads == 1
        assert several.threads == 3
    assert several.threads == 4
    with blas.at_most(None):
        assert several.threads == 4


def test_without_threadpoolctl_nothing_is_set(monkeypatch):
    known = builtins.__import__

    def without(name, *arguments, **named):
        if name == "threadpoolctl":
            raise ImportError(name)
        return known(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert blas._loaded.__wrapped__(False) == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_within_a_block_begins_without_it(libraries):
    with blas.one_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if not blas._blocks and blas._changed.acquire(blocking=False) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(blas._blocks) == 1
    assert libraries[0].threads == 4


def test_the_code_of_a_user_has_what_was_declared(libraries):
    several = libraries[0]
    with blas.at_most(3), blas.one_thread():
        with blas.as_declared():
            assert several.threads == 3
            with blas.one_thread():
                assert several.threads == 1
        assert several.threads == 1
    with blas.one_thread(), blas.as_declared():
        assert several.threads == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("patience", [60.0, 0.2])
def test_a_fork_waits_until_no_other_thread_shares_work_in_blas(libraries, monkeypatch, patience):
    """But not for ever, nor for blocks of one thread, nor for the blocks of its own thread."""
    monkeypatch.setattr(blas, "FORK", patience)
    begun, ended, seen = threading.Event(), threading.Event(), []

    def share():
        with blas.at_most(None):
            begun.set()
            ended.wait(60)
            seen.append("ended")

    def fork():
        with blas.at_most(2):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        seen.append("forked")

    with blas.one_thread():
        sharing, forking = threading.Thread(target=share), threading.Thread(target=fork)
        sharing.start()
        begun.wait(60)
        forking.start()
        forking.join(1.0 if patience > 1 else 60.0)
        ended.set()
        forking.join()
        sharing.join()
    assert seen == (["ended", "forked"] if patience > 1 else ["forked", "ended"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_no_thread_begins_to_share_work_while_a_fork_waits(libraries, monkeypatch):
    monkeypatch.setattr(blas, "_forks", 1)
    begun = threading.Event()

    def share():
        with blas.at_most(None):
            begun.set()

    thread = threading.Thread(target=share)
    thread.start()
    with blas.one_thread():  # which no fork waits for
        assert not begun.wait(0.2)
    monkeypatch.setattr(blas, "_forks", 0)
    with blas._changed:
        blas._changed.notify_all()
    thread.join()
    assert begun.is_set()


@pytest.mark.parametrize("n_threads", [None, 2, 1])
def test_predictions_have_one_thread_of_blas_whatever_was_declared(
    libraries, rng, monkeypatch, n_threads
):
    """Threads share the rows of a product: then their places would decide how they are rounded."""
    X, seen, multiply = rng.uniform(-1, 1, (300, 3)), [], np.matmul
    linear = LogisticRegression(1.0, domain=L2Ball(2), classes=[0, 1], n_threads=n_threads)
    bayes = BernoulliNB(1.0, classes=[0, 1], max_ones=3, n_threads=n_threads)

    def watched(*args, **named):
        seen.append(libraries[0].threads)
        return multiply(*args, **named)

    for model in (linear, bayes):
        model.fit(X, X[:, 0] > 0)
        with monkeypatch.context() as patched:
            patched.setattr(np, "matmul", watched)
            model.predict_proba(X)
    assert seen == [1, 1]
    assert libraries[0].threads == 4


@pytest.mark.parametrize(("n_threads", "seen"), [(None, 4), (2, 2)])
def test_a_solver_of_ones_own_has_what_was_declared(libraries, rng, n_threads, seen):
    counts = []

    def solver(run):
        counts.append(libraries[0].threads)
        return best_of_some(run)

    X = rng.uniform(-1, 1, (300, 3))
    model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], n_threads=n_threads)
    model.set_params(solver=solver, calibrate=False).fit(X, (X[:, 0] > 0).astype(int))
    KMeans(2, 1.0, domain=(-1, 1), solver=solver, n_threads=n_threads).fit(X)
    assert counts == [seen, seen]


@pytest.mark.parametrize(("n_threads", "seen"), [(None, 4), (2, 2)])
def test_a_metric_of_ones_own_has_what_was_declared(libraries, rng, n_threads, seen):
    counts = []

    def metric(records, places):
        counts.append(libraries[0].threads)
        return np.abs(records[:, None] - places).max(axis=2)

    X = rng.uniform(-1, 1, (200, 2))
    KMedian(2, 1.0, domain=(-1, 1), facilities=X[:5], metric=metric, clip=(0, 2),
            n_threads=n_threads, solver="greedy").fit(X)  # fmt: skip
    assert {*counts} == {seen}
    assert libraries[0].threads == 4
