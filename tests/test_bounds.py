"""No sum wraps: scores at the extremes of every bound are exact, and beyond it they are refused.

Bounds hold for as many records as there are (replace) or for 2^32 of them (add_remove). Tables of
so many records do not fit into a test; what one record adds is compared with Python's integers, at
the extremes of the domain, times the number of records that the bound allows.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from makers.cases import ADJACENCIES
from makers.raises import messages_of

from privfit import (
    Box,
    Categorical,
    CentersObjective,
    FacilityObjective,
    KMeans,
    KMedian,
    L1Ball,
    L2Ball,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    Numeric,
    RecordObjective,
    Schema,
)
from privfit.domains import Grid
from privfit.features.scores import SCORES
from privfit.objectives.clipping import ClippedGradient, SecondMoments
from privfit.objectives.coding import Broad, Coding, Compact
from privfit.privacy.neighbours import Neighbours
from privfit.records.packing import MAX_RECORDS, TABLE_RECORDS
from privfit.records.sums import Sums

MOST = 2**62
TWO = Schema({"x": Numeric(0, 1), "c": Categorical("ab")})


def room(objective: Any, adjacency: str) -> int:
    return objective.n_records if adjacency == "replace" else MAX_RECORDS


# ------------------------------------------------------------------------ what was wrong, as it was


def test_a_far_centre_does_not_flip_the_order_of_two_candidates():
    """21,990 records, a centre at 5,000: costs pass 2^63, and one record replaced wrapped them."""
    X = np.full((21_990, 1), -1.0)
    for last in (-1.0, 1.0):
        X[-1] = last
        objective = CentersObjective(X, 1, Box(-1, 1))
        asked = (objective.scores, objective.prior, partial(objective.range, adjacency="replace"))
        for ask in asked:
            with pytest.raises(ValueError, match="too far out for exact sums of distances"):
                ask([[[5000.0]], [[4999.0]]])
        with pytest.raises(ValueError, match="too far out for exact sums of distances"):
            objective.at([[0.0]]).scores([0], [[5000.0]])


def test_scores_and_prior_of_a_heavy_hinge_do_not_wrap_together():
    """Hinge, C = 1000, weights of 3.4e7, 65,536 records: each fitted in 64 bits, not the sum."""
    X, y = np.full((65_536, 1), -1.0), np.ones(65_536)
    objective = LinearObjective(X, y, "hinge", Box(-1, 1), C=1000.0)
    P = objective.domain.snap([[3.4e7, 0.0]])
    with pytest.raises(ValueError, match="too large for exact sums of losses"):
        objective.scores(P)
    with pytest.raises(ValueError, match="too large for exact sums of losses"):
        objective.prior(P)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_records_of_four_million_columns_end_inside_the_ball(wrap):
    """Squares of so many leading parts wrapped: a norm of 2,048 passed for a radius of 1."""
    row = wrap(np.ones((1, 2**22 + 1)))
    for domain, power in ((L2Ball(1.0), 2), (L1Ball(1.0), 1)):
        whole = domain.quantise(row)
        values = (whole.data if sp.issparse(whole) else whole[0]).astype(np.int64)
        assert (values**power).sum() <= domain._radius_units**power


def test_a_ball_of_few_columns_keeps_22_bits():
    """No record of fewer than 2^17 columns is rounded otherwise than before."""
    wide, narrow = np.zeros((1, 2**17)), np.array([[3.0, 4.0 + 2.0**-20]])
    wide[0, :2] = narrow
    found = [L2Ball(1.0, row.shape[1]).quantise(row)[0, :2].tolist() for row in (wide, narrow)]
    assert found == [[2457, 3276]] * 2


# -------------------------------------------------------------- the contract of scores, at extremes


def linear(adjacency: str, n: int, loss: str, C: float = 1.0) -> LinearObjective:
    X, y = np.full((n, 1), 1.0), np.zeros(n)
    return LinearObjective(X, y, loss, Box(-1, 1), C, l2=0.0, adjacency=adjacency)


def largest_weight(objective: LinearObjective, adjacency: str) -> float:
    """The largest power of two that is taken as a weight, by trying."""
    return max(2.0**e for e in range(-5, 40) if taken(objective, [[2.0**e, 0.0]], adjacency))


def taken(objective: Any, P: Any, adjacency: str) -> bool:
    text = messages_of(lambda: objective.range(P, adjacency))
    assert not text or "too large for exact" in text or "too far out for exact" in text
    return not text


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("loss", "C"), [("hinge", 1.0), ("hinge", 1000.0), ("logistic", 1.0)])
def test_linear_scores_are_exact_up_to_the_bound_and_refused_beyond(loss, C, adjacency):
    """At the largest weight that is taken, the loss of a record times the room is below 2^62."""
    objective = linear(adjacency, 3, loss, C)
    w = largest_weight(objective, adjacency)
    [score] = objective.scores([[w, 0.0]]).tolist()
    each = -score // 3
    truth = reference.true_loss(
        reference.margin([4096], [round(w * 1024), 0], 12), 0, loss, Grid(c=objective.score_bits), C
    )
    assert 3 * each == -score
    assert abs(each - truth) <= 0.6
    assert each * room(objective, adjacency) < MOST
    far = [[2 * w, 0.0]]
    for ask in (lambda P: objective.range(P, adjacency), lambda P: objective.spread(P, adjacency)):
        with pytest.raises(ValueError, match="candidates are too large for exact"):
            ask(far)
    moves = objective.at([w, 0.0])
    assert moves.scores([0], [0.0]).tolist() == [score]
    with pytest.raises(ValueError, match="candidates are too large for exact"):
        moves.scores([0], [w])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("loss", "C"), [("hinge", 1000.0), ("logistic", 1.0), ("zero_one", 1.0)])
def test_linear_scores_of_shards_add_up_at_the_bound(loss, C, adjacency, rng):
    X, y = rng.choice([-1.0, 1.0], (30, 1)), rng.integers(0, 2, 30)
    whole, first, second = (
        LinearObjective(X[rows], y[rows], loss, Box(-1, 1), C, l2=0.0, adjacency=adjacency)
        for rows in (slice(30), slice(11), slice(11, 30))
    )
    P = [[largest_weight(whole, adjacency), 0.0], [-1.0, 0.5]]
    parts = [one.scores(P).tolist() for one in (first, second)]
    assert whole.scores(P).tolist() == [a + b for a, b in zip(*parts, strict=True)]


def test_a_refusal_does_not_depend_on_the_number_of_private_records():
    """Under add_remove candidates are taken or refused alike, whatever n is."""
    for loss in ("hinge", "logistic"):
        found = {largest_weight(linear("add_remove", n, loss), "add_remove") for n in (1, 100_000)}
        assert len(found) == 1
    domain = Box(-1, 1, 3)
    sets = [CentersObjective(np.zeros((n, 3)), 2, domain, adjacency="add_remove")
            for n in (1, 100_000)]  # fmt: skip
    for scale in 2.0 ** np.arange(14):
        answers = {taken(one, np.full((1, 2, 3), scale), "add_remove") for one in sets}
        assert len(answers) == 1


@pytest.mark.parametrize(("C", "d", "bits"), [(1.0, 3, 12), (1000.0, 100, 10), (1e6, 3, 4)])
def test_the_unit_of_a_loss_is_coarser_where_weights_of_ten_would_not_fit(C, d, bits):
    """By a rule of C and the width alone, so that every part of the records has the same unit."""
    made = [LinearObjective(np.zeros((n, d)), np.arange(n) % 2, "hinge", Box(-1, 1), C,
                            adjacency="add_remove") for n in (2, 50)]  # fmt: skip
    for objective in made:
        assert (objective.score_bits, objective.unit) == (bits, 2.0**-bits)
        assert taken(objective, np.full((2, d + 1), 10.0), "add_remove")
    replaced = LinearObjective(np.zeros((2, d)), [0, 1], "hinge", Box(-1, 1), C)
    assert replaced.score_bits == 12
    assert taken(replaced, np.full((2, d + 1), 10.0), "add_remove") == (bits == 12)


def test_a_loss_too_fine_for_float64_is_refused():
    """C = 2^36: an integer within 0.6 of a loss of 2^52 and more cannot be had by one product."""
    objective = linear("replace", 1, "hinge", 2.0**36)
    assert largest_weight(objective, "replace") == 2.0
    with pytest.raises(ValueError, match="candidates are too large for exact sums of losses"):
        objective.scores([[3.0, 0.0]])


def test_the_prior_of_moves_is_refused_like_that_of_candidates():
    objective = LinearObjective(np.eye(2), [0, 1], "hinge", Box(-1, 1), l2=2.0**20)
    w = 2.0**15
    for step in (0.0, -w):
        moved = objective.at([w, 0.0, 0.0]).prior([0], [step])
        assert moved.tolist() == objective.prior([[w + step, 0.0, 0.0]]).tolist()
    with pytest.raises(ValueError, match="prior is too large for 64 bits"):
        objective.at([w, 0.0, 0.0]).prior([0], [w])


DOMAINS = [Box(-1, 1, 3), Box(0, 1, 40), Box(-1, 1, 100), L2Ball(1.0, 200), L1Ball(1.0, 200), TWO]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_costs_of_centres_inside_the_domain_fit_for_2_32_records(domain, power):
    """On the grid that the rule chose, which is the declared one where that has room."""
    one = np.zeros((1, domain.width)) if domain is not TWO else {"x": [0.0], "c": ["a"]}
    objective = CentersObjective(one, 1, domain, power, adjacency="add_remove")
    grid = objective.domain.grid
    low, high = objective.domain.low, objective.domain.high
    if not isinstance(domain, L1Ball | L2Ball):
        corner = objective.snap(np.stack([low, high])[:, None])
        assert objective.largest_cost(corner) * MAX_RECORDS < MOST
        assert objective.scores(corner).shape == (2,)
    coarser = CentersObjective(one, 1, domain, power)  # as declared
    assert coarser.domain.grid == domain.grid
    assert grid.a <= domain.grid.a
    if grid.a < domain.grid.a:
        assert coarser.largest_cost(coarser.snap(high[None, None])) * MAX_RECORDS >= MOST // 4


def test_the_coarser_grid_of_a_wide_box():
    found = {}
    for d in (15, 16, 63, 64, 1000):
        one = CentersObjective(np.ones((2, d)), 1, Box(-1, 1), adjacency="add_remove")
        found[d] = one.domain.grid.a
        assert one.unit == 4.0**-one.domain.grid.a
    assert found == {15: 12, 16: 11, 63: 11, 64: 10, 1000: 9}


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("power", [1, 2])
def test_centre_scores_are_exact_up_to_the_bound_and_refused_beyond(power, adjacency):
    n = 21_990 if adjacency == "replace" else 50
    X = np.tile([[-1.0], [1.0]], (n // 2, 1))
    objective = CentersObjective(X, 1, Box(-1, 1), power, adjacency=adjacency)
    far = max(c for c in 2.0 ** np.arange(20) if taken(objective, [[[c]], [[0.0]]], adjacency))
    whole = [[[round(far * 4096)]], [[0]]]
    packed = [[round(x * 4096)] for x in X[:, 0].tolist()]
    costs = [reference.centers_cost(packed, C, power) for C in whole]
    P = np.array(whole) / 4096
    assert objective.scores(P).tolist() == [-cost for cost in costs]
    assert costs[0] < MOST
    assert (round(far * 4096) + 4096) ** power * room(objective, adjacency) < MOST
    first, second = (
        CentersObjective(rows, 1, Box(-1, 1), power, adjacency=adjacency).scores(P).tolist()
        for rows in (X[:7], X[7:])
    )
    assert [a + b for a, b in zip(first, second, strict=True)] == objective.scores(P).tolist()
    assert objective.at(P[0]).scores([0], P[1]).tolist() == [-costs[1]]
    with pytest.raises(ValueError, match="too far out"):
        objective.range([[[2 * far]], [[0.0]]], adjacency)


def test_a_far_centre_beside_a_near_one_is_taken_and_exact():
    """Costs are those of the nearest centre: it alone bounds them, in sets and in moves alike."""
    X = np.full((30_000, 1), 0.5)
    objective = CentersObjective(X, 2, Box(-1, 1))
    P = np.array([[[5000.0], [0.0]]])
    cost = 30_000 * 2048**2
    assert objective.scores(P).tolist() == [-cost]
    assert objective.at([[0.25], [0.0]]).scores([0], [[5000.0]]).tolist() == [-cost]


@pytest.mark.parametrize("bits", [8, 16])
def test_facility_scores_have_room_for_2_32_records(bits):
    objective = FacilityObjective(np.ones((5, 1)), [[0.0], [1.0]], (0, 1), Box(0, 1), bits=bits)
    assert objective.largest < 2**16
    assert objective.largest * MAX_RECORDS < MOST
    assert objective.scores([[0]]).tolist() == [-5 * objective.largest]


def test_record_scores_have_room_for_2_32_records():
    objective = RecordObjective(np.ones(5), lambda r, P: np.ones((len(r), len(P))), 0, 1, bits=30)
    assert objective.scores([0, 1]).tolist() == [5 * objective._own.top] * 2
    assert objective._own.top * MAX_RECORDS <= MOST


# --------------------------------------------------------------------------- gradients and moments


@pytest.mark.parametrize("a", [1, 12, 13, 14])
@pytest.mark.parametrize("coding", [Coding, Compact, Broad])
def test_sums_of_coded_records_have_room(coding, a):
    """The largest coded column, times the largest residual, times 2^32 records."""
    domain = Box(-1, 1, 2, Grid(a=a, b=10, c=2))
    coded = coding(domain)
    assert int(coded.reach.max()) <= 2 ** (a + 2)
    assert MAX_RECORDS * int(coded.reach.max()) * 4096 < MOST
    objective = LinearObjective(np.ones((4, 2)), [0, 1, 1, 1], domain=domain)
    moments = SecondMoments(objective, coded)
    largest = int(coded.moments(objective.second_moments()).max())
    assert largest == sum(int(v) ** 2 for v in [coded.reach.max()] * 4)
    fits = MAX_RECORDS * (largest // 4) < 2**63
    assert fits == (a < 14 or coding is not Broad)
    for adjacency in ADJACENCIES:
        if adjacency == "replace" or fits:
            assert moments.sensitivity(Neighbours(adjacency)) > 0
        else:
            with pytest.raises(ValueError, match=r"grid bits a \(14\) are too many for exact mom"):
                moments.sensitivity(Neighbours(adjacency))


def test_clipped_gradients_of_the_largest_sums_are_exact(rng):
    """R applied to halves equals Python's integers for sums as large as 2^32 records make them."""
    domain = Box(-1, 1, 3, Grid(a=14))
    objective = LinearObjective(np.ones((4, 3)), [0, 1, 1, 1], domain=domain)
    coded = Coding(domain)
    clipped = ClippedGradient(objective, coded, rng.normal(size=(4, 4)), 1.0)
    for signs in itertools.product((-1, 1), repeat=4):
        total = np.array(signs) * (2**32 * 4096 * 2**14)
        clipped._packed_sums = lambda w, total=total: total // np.array([1, 1, 1, 1])
        s = coded.gradient(total)
        exact = [
            sum(int(r) * int(v) for r, v in zip(row, s, strict=True)) >> clipped._drop
            for row in clipped._matrix
        ]
        assert clipped.sums(np.zeros(4)).tolist() == exact


def test_a_solver_that_buys_moments_refuses_a_grid_too_fine_before_the_charge():
    from privfit import Ledger

    X, y = np.zeros((20, 2)), np.arange(20) % 2
    for solver in ("gradient", "select_refine"):
        ledger = Ledger(1.0, 1e-6)
        model = LogisticRegression(
            1.0, 1e-6, domain=Box(-1, 1, grid=Grid(a=14)), classes=[0, 1], solver=solver,
            adjacency="add_remove", n_public=20, ledger=ledger,
        )  # fmt: skip
        with pytest.raises(ValueError, match=r"grid bits a \(14\) are too many for exact moments"):
            model.fit(X, y)
        assert ledger.spent.epsilon == 0


def test_information_gains_of_2_32_records_are_within_their_slack():
    """phi of the largest counts differs from the truth by less than 0.55 of a unit."""
    from decimal import Decimal, getcontext

    from privfit.features.scores import GAIN_UNITS, _phi

    getcontext().prec = 50
    for m in (2**32, 2**32 - 1, 2**31 + 12345, 3 * 2**30):
        truth = GAIN_UNITS * m * Decimal(m).ln()
        assert abs(int(_phi(np.array([m]))[0]) - truth) < Decimal("0.55")
        assert truth * 9 < MOST
    assert set(SCORES) == {"total_count", "difference_count", "purity_index", "information_gain"}


# ---------------------------------------------------------------------------- how many records


class Sizes(Sums[Any]):
    def __init__(self, sizes: list[int]) -> None:
        self._count(sizes, [1] * len(sizes))

    def _sum(self, question: Any) -> Any:
        raise NotImplementedError

    def _try_one(self, question: Any) -> None:
        raise NotImplementedError


def test_as_many_as_2_32_records_in_all_places_and_no_more():
    assert MAX_RECORDS == 2**32
    assert Sizes([2**31, 2**31]).n_records == 2**32
    with pytest.raises(ValueError, match=r"X must have at most 4294967296 records, so that no sum"):
        Sizes([2**31, 2**31, 1])
    with pytest.raises(ValueError, match=rf"X must have at most {TABLE_RECORDS} records and col"):
        LinearObjective(np.broadcast_to(0.0, (2**31, 1)), np.zeros(1), domain=Box(-1, 1))


# -------------------------------------------------------------------------------- whole estimators


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_a_fit_of_many_columns_under_add_remove_is_not_refused(kind, rng):
    X = sp.random_array((60, 20_000), density=0.001, rng=rng) if hasattr(sp, "random_array") else (
        sp.random(60, 20_000, 0.001, random_state=0)
    )  # fmt: skip
    model = kind(
        1.0, 1e-6, domain=(-1, 1), classes=[0, 1], adjacency="add_remove", n_public=60,
        solver="eem", random_state=0,
    )  # fmt: skip
    from privfit import EEM

    model.set_params(solver=EEM(generations=3, population=20))
    assert np.isfinite(model.fit(sp.csr_array(X), np.arange(60) % 2).coef_).all()


def test_kmeans_of_many_columns_under_add_remove_says_its_grid(rng):
    X = rng.uniform(-1, 1, (200, 100))
    model = KMeans(2, 1.0, domain=(-1, 1), adjacency="add_remove", n_public=200, random_state=0)
    model.fit(X)
    assert model.domain_.grid.a == 10
    assert np.array_equal(model.cluster_centers_ * 1024, np.rint(model.cluster_centers_ * 1024))
    assert math.isfinite(model.private_inertia(X, 1.0))
    replaced = KMeans(2, 1.0, domain=(-1, 1), random_state=0).fit(X)
    assert replaced.domain_.grid.a == 12


def test_a_cost_far_from_zero_is_refused_before_the_charge():
    """lo counts for every record where their number is private: 1e6 of them in units of 2^-15."""
    from privfit import Ledger

    def metric(records, places):
        return 1e6 + np.abs(records[:, :1] - np.asarray(places)[:, 0])

    X, ledger = np.zeros((20, 1)), Ledger(3.0)
    model = KMedian(
        1, 1.0, facilities=[[0.0], [1.0]], clip=(1e6, 1e6 + 1), metric=metric, ledger=ledger,
        adjacency="add_remove", solver="greedy", random_state=0,
    ).fit(X)  # fmt: skip
    with pytest.raises(ValueError, match=r"clip \(1000000.0, 1000001.0\) is too far from 0 for"):
        model.private_cost(X, 1.0)
    assert ledger.spent.epsilon == 1.0
    model.set_params(adjacency="replace", ledger=None)  # a ledger has one relation
    assert model.private_cost(X, 1.0) > 0


@pytest.mark.parametrize("share", [1 - 1e-7, 1 - 1e-9])
def test_a_lloyd_step_too_fine_is_refused_before_the_charge(share):
    """W n_j: a weight of counts that leaves nothing for sums."""
    from privfit import Ledger, Lloyd

    ledger = Ledger(1.0)
    settings = {"domain": (-1, 1), "solver": Lloyd(steps=1, count_share=share), "ledger": ledger}
    model = KMeans(2, 1.0, adjacency="add_remove", n_public=20, **settings)
    with pytest.raises(
        ValueError, match=r"counts \(\d+\) or sums \(8192 units per record\) are too fi"
    ):
        model.fit(np.zeros((20, 2)))
    assert not ledger.entries
    assert KMeans(2, 1.0, **settings).fit(np.zeros((20, 2))).cluster_centers_.shape == (2, 2)


@pytest.mark.parametrize("epsilon", [1.0, 1e6, 1e9])
def test_units_of_counts_leave_room_for_2_32_records(epsilon):
    from privfit import Budget
    from privfit.privacy.budget_noise import CountNoise

    noise = CountNoise.of(Budget(epsilon, 1e-6), 1, 1)
    assert noise.units * MAX_RECORDS < MOST
    with pytest.raises(ValueError, match=r"mu \(.*\) must be at most sensitivity / sqrt\(12\)"):
        CountNoise.of(Budget(1e18, 1e-6), 1, 1)
