"""What is left of a budget fits beside what was spent, by every rule."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from privfit.base.rounding import rounded_down, rounded_up
from privfit.privacy.accounting import Event, compose, gaussian_calibrate
from privfit.privacy.budgets import Budget
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.remainder import (
    beside_selections,
    epsilon_left,
    gaussian_left,
    gaussian_part,
)

BUDGETS = [Budget(0.1, 1e-8), Budget(1.0, 1e-6), Budget(8.0, 1e-5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_every_rule_fits_and_a_better_one_leaves_more(budget):
    spent = Event("pure", 0.2 * budget.epsilon), Event("pure", 0.05 * budget.epsilon, 2)
    left = [gaussian_left(budget, *spent, rule=rule) for rule in ("simple", "near", "largest")]
    assert 0 < left[0] <= left[1] <= left[2] <= 1.001 * left[1]
    for mu in left:
        assert compose([*spent, Event("gaussian", mu)], budget.delta) <= budget.epsilon


def test_beside_nothing_all_rules_give_the_whole_budget():
    whole = gaussian_calibrate(1.0, 1e-6)
    for rule in ("simple", "near", "largest"):
        assert gaussian_left(Budget(1.0, 1e-6), rule=rule) == whole


def test_nothing_is_left_where_the_accountant_sees_nothing_that_fits():
    budget, spent = Budget(500.0, 1e-6), Event("pure", 150.0)
    assert gaussian_left(budget, spent, rule="simple") == 0.0
    assert gaussian_left(Budget(1.0, 1e-6), Event("pure", 2.0)) == 0.0


@pytest.mark.parametrize("parts", [1, 2, 3, 100])
def test_equal_parts_cost_no_more_than_the_whole(parts):
    part = gaussian_part(gaussian_left(Budget(1.0, 1e-6)), parts)
    assert parts * Fraction(part) ** 2 <= Fraction(gaussian_left(Budget(1.0, 1e-6))) ** 2
    assert compose([Event("gaussian", part, parts)], 1e-6) <= 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_selections_and_other_releases_fit_together(delta):
    events = beside_selections(Budget(1.0, delta), 0.7, 20, "pure", 3)
    assert [(event.kind, event.count) for event in events] == [("selection", 20), ("pure", 3)]
    assert 0.9 < compose(events, delta) <= 1.0  # parts that add up cost less together than apart


def test_floats_are_rounded_to_the_safe_side_by_one_step():
    third = Fraction(1, 3)
    down, up = rounded_down(third), rounded_up(third)
    assert Fraction(down) < third < Fraction(up)
    assert math.nextafter(down, 1.0) == up
    assert rounded_down(Fraction(0.5)) == rounded_up(Fraction(0.5)) == 0.5
    assert Fraction(epsilon_left(1.0, Event("pure", 0.1, 3))) <= 1 - 3 * Fraction(0.1)


def test_the_scale_of_laplace_noise_is_sensitivity_over_epsilon():
    assert DiscreteLaplace(0.5, 2).scale == 4.0
