"""Work on several items at a time: results in order, few items ahead, errors where they belong."""

from __future__ import annotations

import threading
import time

import pytest

from privfit.records.ahead import in_order


@pytest.mark.parametrize("at_once", [1, 2, 4, 50])
def test_results_are_in_order_whoever_is_first(at_once):
    def slow_at_first(i):
        time.sleep(0.002 if i < 3 else 0)
        return i * i

    assert list(in_order(slow_at_first, iter(range(20)), at_once)) == [i * i for i in range(20)]
    assert list(in_order(slow_at_first, iter([]), at_once)) == []


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_no_more_items_are_fetched_than_are_worked_on(at_once):
    fetched, most = [], 0

    def items():
        for i in range(30):
            fetched.append(i)
            yield i

    for done, _ in enumerate(in_order(lambda i: i, items(), at_once)):
        most = max(most, len(fetched) - done)
    assert most <= at_once


def test_one_at_a_time_is_worked_on_by_the_caller():
    here = threading.get_ident()
    assert set(in_order(lambda _: threading.get_ident(), iter(range(3)), 1)) == {here}
    assert here not in set(in_order(lambda _: threading.get_ident(), iter(range(3)), 2))


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_error_comes_in_its_turn(at_once):
    def work(i):
        if i == 2:
            raise ValueError("the third")
        return i

    found = in_order(work, iter(range(5)), at_once)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ValueError, match="the third"):
        next(found)
