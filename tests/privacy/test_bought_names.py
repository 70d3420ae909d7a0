"""Names of values that nobody declared: exact laws, and thresholds that are needed."""

from __future__ import annotations

import math
from functools import partial

import mpmath
import pytest
from reference import excess, name_chances

from privfit.audit import strain
from privfit.privacy.names import BITS, NameSet, NoisyNames, Unlikely
from privfit.privacy.neighbours import ADD_REMOVE, ADJACENCIES, REPLACE, Neighbours

BUDGETS = [(0.1, 1e-6), (0.01, 1e-6), (1.0, 1e-9), (5.0, 1e-3), (30.0, 1e-12)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_chances_are_the_optimal_ones_but_for_rounding_down(epsilon, delta):
    found = NameSet(epsilon, delta, ADD_REMOVE).chances
    exact = name_chances(epsilon, delta, len(found) - 1)
    for chance, best in zip(found, exact, strict=True):
        assert 0 <= best - mpmath.mpf(chance) / 2**BITS <= 1e-6 * best  # units of 2^-62
    assert found[0] == 0
    assert found[-1] == 2**BITS


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_one_more_record_changes_a_name_by_no_more_than_its_budget(epsilon, delta, adjacency):
    """Exactly: with the probabilities that are drawn. Two names change if a record is replaced."""
    neighbours = Neighbours(adjacency)
    mechanism = NameSet(epsilon, delta, neighbours)
    chances = [mpmath.mpf(chance) / 2**BITS for chance in mechanism.chances]
    worst = max(excess(p, q, epsilon / neighbours.changes)
                for p, q in zip(chances, [*chances[1:], chances[-1]], strict=True))  # fmt: skip
    assert worst * neighbours.changes <= mpmath.mpf(delta)
    assert worst * neighbours.changes > 0.999 * mpmath.mpf(delta)


def test_a_count_that_is_kept_half_of_the_time_is_that_of_the_paper():
    for epsilon, count in ((0.1, 109), (0.01, 853)):
        chances = NameSet(epsilon, 1e-6, ADD_REMOVE).chances
        assert chances[count - 1] < 2 ** (BITS - 1) <= chances[count]


def test_a_rule_for_one_change_is_found_under_replace():
    """A record that leaves one name for another: the rule of add_remove overspends."""
    first, second = {"a": 1}, {"b": 1}
    assert strain(NameSet(1.0, 1e-6, REPLACE), first, second) <= 1
    assert strain(NameSet(1.0, 1e-6, ADD_REMOVE), first, second) == pytest.approx(2)
    assert strain(NameSet(1.0, 1e-6, ADD_REMOVE), first, {}) == pytest.approx(1)


@pytest.mark.statistical
def test_names_are_drawn_as_often_as_they_should():
    """A name with 14 records: 4000 draws, 5.2 standard deviations, once in 5e6 runs."""
    mechanism = NameSet(1.0, 1e-6, ADD_REMOVE)
    p = mechanism.chances[14] / 2**BITS
    counts = {f"{i:04}": 14 for i in range(4000)}
    kept = mechanism(counts, 3)
    assert kept == sorted(kept)
    assert abs(len(kept) - 4000 * p) < 5.2 * math.sqrt(4000 * p * (1 - p))
    assert mechanism({"rare": 1, "often": 10**6}, 1) == ["often"]


# ------------------------------------------------------------------------------------ noisy counts


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("mu", "columns"), [(0.02, 4), (0.2, 5), (1.0, 8), (6.0, 4)])
def test_a_threshold_costs_delta_and_one_less_would_cost_more(mu, columns, adjacency):
    """The exact tail of the discrete Gaussian, summed term by term."""
    neighbours = Neighbours(adjacency)
    mechanism = NoisyNames(mu, 1e-6, columns, neighbours)
    v = mpmath.mpf(float(mechanism.noise.variance))
    far = int(14 * math.sqrt(v)) + 2
    terms = [mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * v)) for j in range(far)]
    whole = 2 * sum(terms) - 1

    def cost(bar):
        p = sum(terms[bar - mechanism.factor :]) / whole
        return columns * neighbours.changes * p / (1 - p)

    assert cost(mechanism.threshold) <= 1e-6
    assert cost(mechanism.threshold - max(1, int(0.02 * math.sqrt(v)))) > 0.9e-6


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_covers_all_counts_that_a_record_changes(adjacency):
    neighbours = Neighbours(adjacency)
    mechanism = NoisyNames(0.5, 1e-6, 4, neighbours)
    many = {"a": 50, "b": 50}
    other = {"a": 49, "b": 50} if adjacency == "add_remove" else {"a": 49, "b": 51}
    assert strain(mechanism, [many] * 4, [other] * 4) == pytest.approx(1)
    alone = {**many, "me": 1}
    assert 0.5 / neighbours.changes < strain(Unlikely(mechanism), [alone] * 4, [many] * 4) <= 1
    if adjacency == "replace":
        assert strain(Unlikely(mechanism), [alone] * 4, [{**many, "you": 1}] * 4) <= 1
        smaller = NoisyNames(0.5, 1e-6, 4, ADD_REMOVE)
        assert strain(smaller, [many] * 4, [other] * 4) > 1.4


class Low(NoisyNames):
    """A threshold that is too low by one record."""

    @property
    def threshold(self):
        return super().threshold - self.factor


def test_a_threshold_that_is_too_low_is_found():
    counts = [{"me": 1}] * 4, [{}] * 4
    assert strain(Unlikely(NoisyNames(0.5, 1e-6, 4, ADD_REMOVE)), *counts) <= 1
    assert strain(Unlikely(Low(0.5, 1e-6, 4, ADD_REMOVE)), *counts) > 1.2


def test_names_of_several_columns_are_kept_in_order_and_rare_ones_are_not():
    mechanism = NoisyNames(0.5, 1e-6, 4, REPLACE)
    found = mechanism([{"b": 500, "a": 500, "me": 1}, {}, {"z": 1}, {"c": 10**6}], 1)
    assert found == [["a", "b"], [], [], ["c"]]


def test_the_chance_of_failure_is_charged_and_says_nothing():
    unlikely = Unlikely(NoisyNames(0.5, 1e-7, 4, REPLACE))
    assert unlikely([{"me": 1}] * 4) is None
    assert (unlikely.event.kind, unlikely.event.parameter) == ("approximate", 0)
    assert unlikely.event.delta == 1e-7


@pytest.mark.parametrize(("call", "message"), [
    (partial(NameSet, 0.0, 1e-6, REPLACE), r"epsilon \(0.0\) must be a positive number; pass"),
    (partial(NameSet, 1.0, 0.0, REPLACE), r"delta \(0.0\) must lie between 0 and 1, since a name"),
    (partial(NoisyNames, 1.0, 0.0, 4, REPLACE), r"delta \(0.0\) must lie between 0 and 1"),
    (partial(NoisyNames, 1.0, 1e-6, 0, REPLACE), r"columns \(0\) must be a positive whole number"),
    (partial(NoisyNames(1.0, 1e-6, 4, REPLACE), [{}]),
     r"value \(1 columns\) must have the declared number of columns; pass 4"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
