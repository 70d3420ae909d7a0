"""Small domains whose records can be enumerated, whole fits by settings, and refused ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import reference

from privfit import (
    Box,
    Categorical,
    L1Ball,
    L2Ball,
    Ledger,
    LinearObjective,
    LogisticRegression,
    Numeric,
    Reals,
    Schema,
)
from privfit.domains import Grid
from privfit.linear.descent import BOUND
from privfit.privacy.neighbours import Neighbours
from privfit.runs.run import Run

SMALL = {
    "box": Box([-1, 0], [1, 3], grid=Grid(a=2, b=8, c=0)),
    "far box": Box([6], [7], grid=Grid(a=4, b=8, c=0)),
    "l1": L1Ball(1.0, 2, grid=Grid(a=2, b=8, c=0)),
    "l2": L2Ball(1.0, 2, grid=Grid(a=2, b=8, c=0)),
    "schema": Schema(
        {"sex": Categorical(["f", "m"]), "age": Numeric(0, 1), "job": Categorical("abc")},
        grid=Grid(a=2, b=8, c=0),
    ),
}


def every_record(domain: Any) -> np.ndarray:
    """All records of a small domain, as they are declared."""
    if isinstance(domain, Schema):
        ages = np.arange(5) / 4
        rows = list(itertools.product("fm", ages, "abc"))
        return np.array(rows, dtype=object)
    whole = np.array(reference.every_record(domain), dtype=float)
    return whole * domain.record_units()


def largest_changes(sums: list[np.ndarray], nothing: np.ndarray, order: int) -> dict[str, float]:
    """How far the sums move when a record is replaced, or added, over all records of a domain."""
    table = np.array([(s - nothing).astype(object) for s in sums]).astype(float)
    replaced = table[:, None] - table[None]
    return {
        "replace": float(np.linalg.norm(replaced, order, axis=2).max()),
        "add_remove": float(np.linalg.norm(table, order, axis=1).max()),
    }


def fit(
    objective: Any,
    settings: Any,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    rng: Any = 1,
    callback: Any = None,
    adjacency: str = "replace",
    **public: Any,
) -> Any:
    """A whole fit by these settings: the path and the grant."""
    grant = Ledger(epsilon, delta).reserve(epsilon, delta)
    space = Reals(-BOUND, BOUND, objective.domain.width + 1)
    run = Run(objective, space, grant, rng, callback, neighbours=Neighbours(adjacency), **public)
    return settings(run), grant


X3, Y3 = np.zeros((4, 3)), np.array([0, 1, 0, 1])
COUNTING = LinearObjective(X3, Y3, "zero_one", Box(-1, 1, 3))
WIDE = LinearObjective(np.zeros((2, 5000)), [0, 1], "logistic", Box(-1, 1))


def fitted(solver: Any, **changes: Any) -> Any:
    options = {"domain": (-1, 1), "classes": [0, 1], "solver": solver, **changes}
    budget = options.pop("epsilon", 1.0), options.pop("delta", 1e-6)
    return LogisticRegression(*budget, **options).fit(X3, Y3)


def assert_nothing_is_charged(refused: Any) -> None:
    """Those of the calls that are whole fits leave their ledger alone."""
    ledger = Ledger(10.0, 1e-3)
    for call, message in refused:
        if call.func is fitted:
            with pytest.raises((ValueError, TypeError), match=message):
                fitted(*call.args, **call.keywords, ledger=ledger)
    assert not ledger.entries
