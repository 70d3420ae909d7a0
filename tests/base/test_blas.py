"""Small matrices are decomposed on one thread of BLAS, whatever others do meanwhile."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

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
