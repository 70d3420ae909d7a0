"""Quantiles of segments: exact laws on small domains, and ranges that are needed."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import neighbours, quantile_score

from privfit import Exponential
from privfit._kernels.random import BitSource
from privfit.audit import output_distribution, strain
from privfit.privacy.neighbours import ADD_REMOVE, ADJACENCIES, REPLACE, Neighbours
from privfit.privacy.quantiles import Segment, SegmentQuantiles

EPSILON = 0.5


def segments_of(D, ends):
    """The counts of records 0, 1, ... between ends, which are segments."""
    counts = np.bincount(D, minlength=ends[-1])
    return [Segment(counts[a:b], np.arange(a, b) % 2 == 0) for a, b in itertools.pairwise(ends)]


def law_of(mechanism, segments):
    """{chosen: log probability}, by the definition of the exponential mechanism."""
    laws = [output_distribution(Exponential(mechanism.epsilon, mechanism.range),
                                mechanism.scores(one)) for one in segments]  # fmt: skip
    return {tuple(i for i, _ in chosen): float(sum(log for _, log in chosen))
            for chosen in itertools.product(*(law.items() for law in laws))}  # fmt: skip


def worst(mechanism, adjacency, ends, n=3):
    """The largest log ratio and range of log ratios over all neighbours."""
    laws, loss, width = {}, 0.0, 0.0
    for pair in neighbours(range(ends[-1]), n, adjacency):
        for D in pair:
            if D not in laws:
                laws[D] = law_of(mechanism, segments_of(np.array(D, dtype=np.int64), ends))
        ratios = [laws[pair[0]][one] - laws[pair[1]][one] for one in laws[pair[0]]]
        loss, width = max(loss, *ratios), max(width, max(ratios) - min(ratios))
    return loss, width


PLANS = {
    "median": {},
    "median that skips": {"skips": True},
    "outer": {"above": 1, "of": 5, "several": False},
    "outer, several": {"above": 4, "of": 5},
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("ends", [(0, 5), (0, 2, 5), (0, 1, 3, 5)])
def test_all_segments_cost_one_selection_on_every_pair_of_neighbours(plan, adjacency, ends):
    mechanism = SegmentQuantiles(EPSILON, Neighbours(adjacency), **PLANS[plan])
    if len(ends) > 2 and not mechanism.several:
        ends = (0, 5)
    loss, width = worst(mechanism, adjacency, ends)
    assert loss <= EPSILON * (1 + 1e-9)
    assert width <= EPSILON * (1 + 1e-9)


class Planted(SegmentQuantiles):
    """A range that is too small."""

    divisor = 2

    @property
    def range(self):
        return super().range // self.divisor


def test_smaller_ranges_are_found():
    """Half of the range; under replace, that of add_remove for the segments of one level."""
    for adjacency in ADJACENCIES:
        assert worst(Planted(EPSILON, Neighbours(adjacency)), adjacency, (0, 5))[1] > 1.4 * EPSILON
    assert worst(SegmentQuantiles(EPSILON, ADD_REMOVE), "replace", (0, 2, 5))[1] > 1.4 * EPSILON
    # outer quantiles of several segments need more than 2 b
    alone = SegmentQuantiles(EPSILON, REPLACE, 4, 5, several=False)
    both = [segments_of(np.array(D), (0, 2, 5)) for D in ([1, 1, 0], [1, 1, 2])]
    assert strain(alone, *both) <= 1.6
    assert strain(SegmentQuantiles(EPSILON, REPLACE, 4, 5), *both) <= 1


def test_the_range_is_used_up():
    assert worst(SegmentQuantiles(EPSILON, ADD_REMOVE), "add_remove", (0, 5))[1] == pytest.approx(
        EPSILON, rel=0.3
    )


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 4))
def test_scores_are_those_of_the_definition(counts, above):
    mechanism = SegmentQuantiles(1.0, REPLACE, above, 5)
    values = [i for i, count in enumerate(counts) for _ in range(count)]
    expected = [quantile_score(values, c, above, 5) for c in range(len(counts))]
    assert mechanism.scores(Segment(np.array(counts))).tolist() == expected


def test_bonuses_are_the_same_for_all_data():
    """Differences of scores between data sets do not depend on them; empty segments are left."""
    favoured = np.array([True, False, True, False])
    plain, skips = (SegmentQuantiles(0.3, REPLACE, skips=skip) for skip in (False, True))
    first, second = np.array([3, 1, 0, 2]), np.array([0, 5, 1, 2])
    changes = [m.scores(Segment(second, f)) - m.scores(Segment(first, f))
               for m in (plain, skips) for f in (None, favoured)]  # fmt: skip
    assert all(np.array_equal(change[:4], changes[0]) for change in changes)
    empty = law_of(skips, [Segment(np.zeros(100, dtype=np.int64))])
    assert math.exp(empty[100,]) == pytest.approx(math.exp(3) / (1 + math.exp(3)), rel=1e-2)
    weighed = law_of(plain, [Segment(np.zeros(4, dtype=np.int64), favoured)])
    assert weighed[0,] - weighed[1,] == pytest.approx(2, rel=0.05)


@pytest.mark.statistical
def test_draws_follow_their_law():
    """Chi-square at 1e-6 against the exact distribution."""
    from scipy.stats import chi2

    mechanism = SegmentQuantiles(1.0, REPLACE, skips=True)
    segments = segments_of(np.array([0, 0, 1, 2, 2, 2, 4]), (0, 2, 5))
    law, source, runs = law_of(mechanism, segments), BitSource(5), 6000
    seen = dict.fromkeys(law, 0)
    for _ in range(runs):
        seen[tuple(mechanism(segments, source))] += 1
    expected = np.exp(list(law.values())) * runs
    statistic = float(np.sum((np.array(list(seen.values())) - expected) ** 2 / expected))
    assert statistic < chi2.isf(1e-6, len(law) - 1)


@pytest.mark.parametrize(("call", "message"), [
    (partial(SegmentQuantiles, 0.0, REPLACE), r"epsilon \(0.0\) must be a positive number; pass"),
    (partial(SegmentQuantiles, 1.0, REPLACE, 2, 2), r"above / of \(2 / 2\) must be a fraction"),
    (partial(SegmentQuantiles(1.0, REPLACE, several=False), [Segment(np.ones(2))] * 2),
     r"segments \(2\) must be a single one; pass several=True for more"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_repr_shows_no_counts():
    assert repr(Segment(np.array([7, 8]))) == "Segment(<2 candidates>)"
    assert "adjacency='replace'" in repr(SegmentQuantiles(1.0, REPLACE))
