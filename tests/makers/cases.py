"""Declared domains and made-up records that several test files share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import reference
from sklearn.utils.estimator_checks import parametrize_with_checks

from privfit import Box, Categorical, L1Ball, L2Ball, Numeric, Schema
from privfit.domains import Grid

LOSSES = ("logistic", "hinge", "zero_one")
ADJACENCIES = ("replace", "add_remove")

# The default, the extremes, few bits everywhere, and the largest margins that a grid allows.
GRIDS = (
    Grid(),
    Grid(a=14, b=16, c=14),
    Grid(a=1, b=7, c=0),
    Grid(a=14, b=0, c=6),
    Grid(a=9, b=8, c=9),
)


def packed(objective: Any) -> Any:
    """The packed records of an objective in memory."""
    return objective._sums.whole("this test")


@dataclass(frozen=True)
class Case:
    """A domain and a way to make records for it, some of them outside the declared bounds."""

    domain: Any
    draw: Callable[[np.random.Generator, int], Any]

    def rows(self, rng: np.random.Generator, n: int) -> Any:
        return self.draw(rng, n)


def case(name: str, grid: Grid | None = None) -> Case:
    grid = grid or Grid()
    if name == "box":
        return Case(Box(-1, 1, 5, grid=grid), lambda rng, n: rng.uniform(-1.2, 1.2, (n, 5)))
    if name == "box per column":
        low, high = [-1e-6, 0, -3, 100, -(2**20)], [2e-6, 1e6, -1, 177, 0.5]
        middle, half = np.add(low, high) / 2, np.subtract(high, low) / 2
        return Case(
            Box(low, high, grid=grid),
            lambda rng, n: middle + half * rng.uniform(-1.2, 1.2, (n, 5)),
        )
    if name == "l1":
        return Case(L1Ball(1.5, 4, grid=grid), lambda rng, n: rng.uniform(-1, 1, (n, 4)))
    if name == "l2":
        return Case(L2Ball(0.7, 3, grid=grid), lambda rng, n: rng.uniform(-0.9, 0.9, (n, 3)))
    if name == "schema":
        columns = {
            "colour": Categorical(["red", "green", "blue"], other=True),
            "age": Numeric(16, 80, fill=48),
            "flag": Categorical([0, 1]),
            "income": Numeric(0, 1024, bins=3),
        }
        return Case(Schema(columns, grid=grid), _people)
    raise KeyError(name)


DOMAINS = ("box", "box per column", "l1", "l2", "schema")


def _people(rng: np.random.Generator, n: int) -> Any:
    """An object table by position; unknown and missing values among them."""
    table = np.empty((n, 4), dtype=object)
    table[:, 0] = rng.choice(np.array(["red", "green", "blue", "mauve", None], dtype=object), n)
    table[:, 1] = rng.integers(0, 4 * 90, n) / 4.0
    table[rng.random(n) < 0.1, 1] = np.nan
    table[:, 2] = rng.integers(0, 2, n)
    table[:, 3] = rng.uniform(-100, 1200, n)
    return table


def encoded(domain: Any, X: Any) -> np.ndarray:
    """The twin's integers of these records (n, d)."""
    return np.array(reference.records(X, domain), dtype=np.int64)


def extreme_rows(name: str) -> Any:
    """Raw records at the corners of a domain, each just once."""
    domain = case(name).domain
    if name == "schema":
        choices = (["red", "green", "blue", "mauve"], [16.0, 80.0], [0, 1], [0.0, 500.0, 1000.0])
        return np.array(list(itertools.product(*choices)), dtype=object)
    units = [float(u) for u in reference.record_units(domain)]
    return np.array(reference.corners(domain), dtype=np.float64) * units


# For distances, which have one unit for all columns: those of a like width.
DISTANCE_DOMAINS: dict[str, Any] = {
    "box": Box(-1, 1, 3),
    "one column": Box(0, 10, 1),
    "shifted box": Box([2, -7, 0, 5], [3, -1, 8, 5.5]),
    "l1": L1Ball(1.5, 4),
    "l2": L2Ball(0.7, 3),
    "schema": case("schema").domain,
}


def distance_rows(name: str, rng: np.random.Generator, n: int) -> Any:
    """Raw records of such a domain, some of them outside it."""
    if name == "schema":
        return case("schema").rows(rng, n)
    domain = DISTANCE_DOMAINS[name]
    middle, half = (domain.high + domain.low) / 2, (domain.high - domain.low) / 2
    return middle + half * rng.uniform(-1.2, 1.2, (n, domain.width))


def labels(rng: np.random.Generator, n: int, pattern: str = "mixed") -> np.ndarray:
    return {"mixed": rng.integers(0, 2, n), "ones": np.ones(n), "zeros": np.zeros(n)}[pattern]


def population(domain: Any, rng: np.random.Generator) -> np.ndarray:
    """Linear candidates whose margins lie below, around and far beyond the 32-bit limit."""
    limit = 2.0 ** (31 - domain.grid.a - domain.grid.b)
    radii = (min(1.0, limit / 100), limit / 4, limit, 40 * limit)
    return np.vstack([domain.candidates(3, rng, radius=radius) for radius in radii])


def same(got: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Bit for bit."""
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        assert np.array_equal(got[key], value), f"{key} differ"


def scikit_learn_checks(estimators: list[Any], allowed: Callable[[Any], bool] | None = None) -> Any:
    """A mark that runs scikit-learn's checks of (estimator, check), or those allowed.

    It is given a list: what an old scikit-learn passes on is a generator, which pytest refuses. One
    check weighs three classes by a dict, which is refused: tests/linear/test_class_weights.py.
    """
    made = parametrize_with_checks(estimators)
    pairs = [pair for pair in made.args[1] if "check_class_weight_classifiers" not in str(pair[1])]
    chosen = [pair for pair in pairs if allowed is None or allowed(pair[1])]
    return pytest.mark.parametrize(made.args[0], chosen, **made.kwargs)
