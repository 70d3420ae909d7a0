"""Objectives over parts answer what those in memory do, or say why not; nothing is read in vain."""

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
    Stream,
    Subsample,
    Subsets,
    search,
)
from privfit.objectives.partitioned import (
    centers_objective,
    facility_objective,
    linear_objective,
    record_objective,
)
from privfit.records import stream
from privfit.runs.payment import Terms

UNIT = Box(-1, 1)
PLACES = np.array([[-0.5, 0.0], [0.5, 0.5], [0.0, 1.0]])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "LARGEST_BLOCK", 1 << 12)
    monkeypatch.setattr(stream, "PACKED_BLOCK", 1)


@pytest.fixture
def table(rng) -> Any:
    return rng.uniform(-1, 1, (900, 2)), rng.integers(0, 3, 900)


def streamed(X: Any) -> Stream:
    return Stream(X, memory_limit="64MB")


# ---------------------------------------------------------------------------- caps, layout, joining


def image(d: int) -> tuple[Any, ...]:
    """A map of records, the low bits to drop, squares, and the bound of a length."""
    return np.arange(1, 2 * (d + 1) + 1).reshape(d + 1, 2) << 10, 4, True, 1 << 24


@pytest.mark.parametrize("cap", [0.1, 0.5, 1.0])
def test_gradients_over_parts_take_caps_of_single_records(table, cap):
    X, y = table
    here = LinearObjective(X, y > 0, domain=UNIT)
    there = linear_objective(streamed(X), y > 0, domain=UNIT)
    w, caps = np.array([0.5, -1.0, 0.25]), image(2)
    capped = here.gradient(w, cap, here.caps(*caps))
    assert not np.array_equal(capped, here.gradient(w, cap))  # the caps do something
    assert np.array_equal(there.gradient(w, cap, there.caps(*caps)), capped)
    assert np.array_equal(there.gradient(w, cap), here.gradient(w, cap))
    assert np.array_equal(there.capped(*caps)(w), here.capped(*caps)(w))
    with pytest.raises(TypeError, match=r"caps \(ndarray\) must be with the records, which lie in"):
        there.gradient(w, cap, here.caps(*caps))


def test_caps_of_several_classes_over_parts(table):
    X, y = table
    here, there = (linear_objective(one, y, domain=UNIT, n_classes=3) for one in (X, streamed(X)))
    w, caps = np.array([0.5, -1.0, 0.25]), image(2)
    for head in (2, 0, 1):
        one, other = here.against(head), there.against(head)
        assert np.array_equal(other.gradient(w, 0.5, other.caps(*caps)),
                              one.gradient(w, 0.5, one.caps(*caps)))  # fmt: skip


def test_layouts_of_parts_are_their_own(table):
    X, y = table
    assert linear_objective(streamed(X), y > 0, domain=UNIT).layout == "parts"
    assert centers_objective(streamed(X), 2, UNIT).layout == "dense"
    assert facility_objective(streamed(X), PLACES, (0, 1), UNIT).layout == "distances"


def test_objectives_over_parts_can_be_joined(table):
    X, y = table
    P = UNIT.bind(2).candidates(5, np.random.default_rng(0))
    for labels, more in ((y > 0, {}), (y, {"n_classes": 3})):
        whole = LinearObjective(X, labels, domain=UNIT, **more)
        first, second = (
            linear_objective(streamed(X[rows]), labels[rows], domain=UNIT, **more)
            for rows in (slice(300), slice(300, 900))
        )
        both = first.joined([second])
        assert both.n_records == 900
        assert np.array_equal(both.scores(P), whole.scores(P))
        if more:
            assert np.array_equal(both.against(2).scores(P), whole.against(2).scores(P))
    centers = CentersObjective(X, 2, UNIT)
    C = centers.snap(np.random.default_rng(1).uniform(-1, 1, (4, 2, 2)))
    first, second = (centers_objective(streamed(X[rows]), 2, UNIT)
                     for rows in (slice(300), slice(300, 900)))  # fmt: skip
    assert np.array_equal(first.joined([second]).scores(C), centers.scores(C))
    shops = FacilityObjective(X, PLACES, (0, 1), UNIT)
    first, second = (facility_objective(streamed(X[rows]), PLACES, (0, 1), UNIT)
                     for rows in (slice(300), slice(300, 900)))  # fmt: skip
    assert np.array_equal(first.joined([second]).scores([[0, 1]]), shops.scores([[0, 1]]))
    with pytest.raises(TypeError, match=r"others must lie in parts, like the PartitionedFacility"):
        first.joined([shops])


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_parts_have_the_unit_of_the_whole(rng, adjacency):
    """Where a coarser one is needed, every part takes it, and so does the driver."""
    X, y = rng.uniform(-1, 1, (60, 70)), rng.integers(0, 2, 60)
    settings = {"domain": UNIT, "C": 1e5, "adjacency": adjacency}
    P = UNIT.bind(70).candidates(3, rng, 0.1)
    here, there = (linear_objective(one, y, "hinge", **settings) for one in (X, streamed(X)))
    assert here.unit == there.unit == (2.0**-12 if adjacency == "replace" else 2.0**-3)
    assert np.array_equal(here.scores(P), there.scores(P))
    here, there = (centers_objective(one, 2, UNIT, adjacency=adjacency)
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
        monkeypatch.setattr(stream._Streamed, "sum", self.refuse)
        for kind in (LinearObjective, CentersObjective, FacilityObjective):
            monkeypatch.setattr(kind, "scores", self.refuse)

    @staticmethod
    def refuse(*arguments: Any) -> None:
        raise AssertionError("a check before the charge must not read all records")


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(
    "settings", [EEM(), PrivGene(), DPSGA(), Local(), Local(scoring="loss"), Subsample()], ids=repr
)
def test_a_plan_is_checked_without_a_look_at_records(settings, adjacency, table, monkeypatch):
    X, y = table
    cases: list[tuple[Any, Any]] = []
    for records in (X, streamed(X)):
        cases += [
            (linear_objective(records, y > 0, domain=UNIT), Reals(-1, 1, 3)),
            (centers_objective(records, 2, UNIT), Reals(-1, 1, (2, 2))),
            (facility_objective(records, PLACES, (0, 1), UNIT), Subsets(3, 2)),
        ]
    Deaf(monkeypatch)
    for objective, space in cases:
        Terms("fit", 1.0, 1e-6, adjacency, n_public=900).check(settings, objective, space)


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


def test_ones_own_score_is_tried_on_one_part(monkeypatch):
    seen: list[int] = []

    def score(records: Any, P: Any) -> Any:
        seen.append(len(records))
        return np.zeros((len(records), len(P)))

    objective = record_objective(streamed(np.zeros((5000, 2))), score, 0, 1)
    assert len(objective._parts._blocks) > 4
    objective.check(np.zeros((4, 1)))
    assert max(seen) <= 64
    assert sum(seen) <= 3 * 64


def test_a_score_that_fails_is_refused_before_a_streamed_search_is_charged():
    ledger = Ledger(1.0)
    own = record_objective(streamed(np.zeros((500, 1))), lambda rows, P: {}["secret"], 0, 1)
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
    here, there = (record_objective(one, fragile, -1, 1) for one in (X, streamed(X)))
    assert np.array_equal(here.scores(P), there.scores(P))
    kept = X[(X[:, 0] >= -0.5) & (X[:, 0] <= 0.99)]
    plain = record_objective(kept, lambda rows, P: rows * P[:, 0], -1, 1)
    assert np.array_equal(here.scores(P), plain.scores(P))
