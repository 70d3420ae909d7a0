"""Objectives of streams have the units of those in memory; nothing is read in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privfit import (
    DPSGA,
    EEM,
    Box,
    CentersObjective,
    FacilityObjective,
    Ledger,
    LinearObjective,
    Local,
    PrivGene,
    Reals,
    RecordObjective,
    Stream,
    Subsample,
    Subsets,
    search,
)
from privfit.records import memory, stream
from privfit.records.sums import Held
from privfit.runs.payment import Terms

UNIT = Box(-1, 1)
PLACES = np.array([[-0.5, 0.0], [0.5, 0.5], [0.0, 1.0]])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 12)
    monkeypatch.setattr(memory, "PACKED_BLOCK", 1)


@pytest.fixture
def table(rng) -> Any:
    return rng.uniform(-1, 1, (900, 2)), rng.integers(0, 3, 900)


def streamed(X: Any) -> Stream:
    return Stream(X)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_streams_have_the_unit_of_memory(rng, adjacency):
    """Where a coarser one is needed, every block takes it, and so does the objective."""
    X, y = rng.uniform(-1, 1, (60, 70)), rng.integers(0, 2, 60)
    settings = {"domain": UNIT, "C": 1e5, "adjacency": adjacency}
    P = UNIT.bind(70).candidates(3, rng, 0.1)
    here, there = (LinearObjective(one, y, "hinge", **settings) for one in (X, streamed(X)))
    assert here.unit == there.unit == (2.0**-12 if adjacency == "replace" else 2.0**-3)
    assert np.array_equal(here.scores(P), there.scores(P))
    here, there = (CentersObjective(one, 2, UNIT, adjacency=adjacency)
                   for one in (X, streamed(X)))  # fmt: skip
    assert here.domain == there.domain
    assert here.domain.grid.a == (12 if adjacency == "replace" else 10)
    C = here.snap(rng.uniform(-1, 1, (4, 2, 70)))
    assert np.array_equal(here.scores(C), there.scores(C))
    assert np.array_equal(here.at(C[0]).scores([1], C[1, :1]), there.at(C[0]).scores([1], C[1, :1]))
    for one in (here, there):
        far = np.full((1, 70), 2.0**14)
        with pytest.raises(ValueError, match="centres are too far out for exact"):
            one.at(far.repeat(2, axis=0)).scores([0], far)


# ------------------------------------------------------------------------- checks that read nothing


class Deaf:
    """Answers no question about records."""

    def __init__(self, monkeypatch: Any) -> None:
        for kind in (stream._Streamed, Held):
            monkeypatch.setattr(kind, "sum", self.refuse)

    @staticmethod
    def refuse(*arguments: Any) -> None:
        raise AssertionError("a check before the charge must not read all records")


@pytest.mark.few(4)
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(
    "settings", [EEM(), PrivGene(), DPSGA(), Local(), Local(scoring="loss"), Subsample()], ids=repr
)
def test_a_plan_is_checked_without_a_look_at_records(settings, adjacency, table, monkeypatch):
    X, y = table
    cases: list[tuple[Any, Any]] = []
    for records in (X, streamed(X)):
        cases += [
            (LinearObjective(records, y > 0, domain=UNIT), Reals(-1, 1, 3)),
            (CentersObjective(records, 2, UNIT), Reals(-1, 1, (2, 2))),
            (FacilityObjective(records, PLACES, (0, 1), UNIT), Subsets(3, 2)),
        ]
    Deaf(monkeypatch)
    for objective, space in cases:
        Terms("fit", 1.0, 1e-6, adjacency, n_public=900).check("own", settings, objective, space)


def test_a_corner_of_a_lopsided_space_is_checked_before_the_charge(rng):
    """Far from the records is low in one column and high in the other."""
    domain, ledger = Box([-1, 0], [0, 1]), Ledger(1.0)
    objective = CentersObjective(rng.uniform(-1, 1, (200_000, 2)), 1, domain)
    far = 1024.0
    lopsided = Reals([[-1.0, -far]], [[far, 1.0]], (1, 2))
    for corner in ([[[far, 1.0]]], [[[-1.0, -far]]]):
        assert objective.range(corner, "replace") == 0
    with pytest.raises(ValueError, match="centres are too far out for exact sums of distances"):
        search(objective, lopsided, 1.0, solver=DPSGA(generations=1), ledger=ledger)
    assert not ledger.entries


def test_ones_own_score_is_tried_on_one_block(monkeypatch):
    seen: list[int] = []

    def score(records: Any, P: Any) -> Any:
        seen.append(len(records))
        return np.zeros((len(records), len(P)))

    objective = RecordObjective(streamed(np.zeros((5000, 2))), score, 0, 1)
    assert len(objective._sums._blocks) > 4
    objective.check(np.zeros((4, 1)))
    assert max(seen) <= 64
    assert sum(seen) <= 3 * 64


def test_a_score_that_fails_is_refused_before_a_streamed_search_is_charged():
    ledger = Ledger(1.0)
    own = RecordObjective(streamed(np.zeros((500, 1))), lambda rows, P: {}["secret"], 0, 1)
    with pytest.raises(ValueError, match="score raised KeyError for each of the first records"):
        search(own, Reals(-1, 1, 1), 1.0, solver=DPSGA(generations=1), ledger=ledger)
    assert not ledger.entries


def test_bad_records_of_a_stream_count_as_low(rng):
    X = rng.uniform(-1, 1, (3000, 1))

    def fragile(rows: Any, P: Any) -> Any:
        if (rows > 0.99).any():
            raise ZeroDivisionError
        return np.where(rows < -0.5, np.nan, rows) * P[:, 0]

    P = np.array([[-1.0], [0.5]])
    here, there = (RecordObjective(one, fragile, -1, 1) for one in (X, streamed(X)))
    assert np.array_equal(here.scores(P), there.scores(P))
    kept = X[(X[:, 0] >= -0.5) & (X[:, 0] <= 0.99)]
    plain = RecordObjective(kept, lambda rows, P: rows * P[:, 0], -1, 1)
    assert np.array_equal(here.scores(P), plain.scores(P))
