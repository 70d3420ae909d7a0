"""Sums of slopes and curvatures: the naive twin's bit for bit, in any order, part and layout."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import reference
from makers.cases import packed

from privfit import Box, Categorical, L1Ball, L2Ball, LinearObjective, Numeric, Schema
from privfit._kernels import smooth as kernels
from privfit.base.dyadic import Dyadic
from privfit.domains import Grid
from privfit.linear.newton import PAIRS, HuberHinge, InverseGuess, Logistic, coding_of
from privfit.objectives.smooth import (
    MARGIN_BITS,
    PULL_BITS,
    MarginGrid,
    exact_slopes,
)
from privfit.records.rows import KernelCalls
from privfit.records.smooth import Smoothing, SmoothPass

NOTHING = np.arange(0)
SCHEMA = Schema(
    {"a": Numeric(0, 1), "c": Categorical(list("xyz")), "b": Numeric(-5, 5), "d": Numeric(0, 9)}
)
DOMAINS = {
    "box": Box([-3.0, 0.0, 1e-3, -7e5, -1.0], [1.0, 1.0, 2e-3, 1e6, -1.0]),
    "narrow box": Box([1000.0] * 2, [1000.5] * 2),
    "coarse box": Box(-1, 1, n_features=3, grid=Grid(a=1, b=14, c=7)),
    "l1": L1Ball(2.5, 7),
    "l2": L2Ball(0.3, 4),
    "schema": SCHEMA,
}
every_domain = pytest.mark.parametrize("name", DOMAINS)
every_layout = pytest.mark.parametrize("layout", ["dense", "sparse"])
every_width = pytest.mark.parametrize("width", [0.0, 0.5, 0.01])


def table(domain, n, rng):
    """Private records of a domain, many of them at its ends."""
    if isinstance(domain, Schema):
        X = {name: rng.choice(column.values, n) if isinstance(column, Categorical)
             else np.clip(rng.uniform(column.low, 1.3 * column.high, n), column.low, column.high)
             for name, column in domain.columns.items()}  # fmt: skip
    else:
        X = rng.uniform(domain.low, domain.high, (n, domain.width))
        X[rng.random(X.shape) < 0.3] = 0.0
        X = np.where(rng.random(X.shape) < 0.2, domain.high, X)
    return X, rng.integers(0, 2, n)


def packed_rows(objective):
    """Records as lists of integers, and labels."""
    rows, labels = objective.decoded()
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.rint(rows / objective.domain.record_units()).astype(int).tolist(), labels.tolist()


def whole_of(halves):
    return [int(high) * 2**32 + int(low) for high, low in halves.T]


def middles(domain):
    """Twice the middle of each column, in record units; of a schema's groups 0."""
    return coding_of(domain).middle


def meant(domain, rng, size=3.0):
    """Exact weights of centred columns, none of which dwarfs the others."""
    widest = MarginGrid(domain, middles(domain)).widest
    w = rng.standard_normal(domain.width + 1) * size
    w[:-1] /= np.where(widest, widest, 1.0)
    return Dyadic.of(w)


def twin(objective, width, numbers, limit, weights, along):
    """What `slopes`, coarse and fine, and `bends` must be, by records one after the other."""
    rows, labels = packed_rows(objective)
    a, limbs, bits = objective.grid.a, weights.whole.tolist(), weights.bits.tolist()
    slopes, bends = [0] * len(limbs[0]), [0] * len(limbs[0])
    fine = [[0] * len(limbs[0]) for _ in range(2)]
    for row, label in zip(rows, labels, strict=True):
        x, sign = reference.clipped_numbers(row, numbers.tolist(), limit), 1.0 if label else -1.0
        slope, bend = reference.smooth_loss(sign * reference.smooth_margin(x, limbs, bits), width)
        slopes = added(slopes, reference.pulled(x, sign * slope, a, PULL_BITS))
        parts = reference.pulled_finely(x, sign * slope, a, PULL_BITS)
        fine = [added(total, part) for total, part in zip(fine, parts, strict=True)]
        bent = bend * reference.smooth_margin(x, along.whole.tolist(), [MARGIN_BITS])
        bends = added(bends, reference.pulled(x, bent, a, PULL_BITS))
    return slopes, fine, bends


def added(one, other):
    return [x + y for x, y in zip(one, other, strict=True)]


@pytest.mark.few(8)
@every_width
@every_layout
@every_domain
def test_sums_are_those_of_the_twin(name, layout, width, rng):
    domain = DOMAINS[name]
    X, y = table(domain, 70, rng)
    objective = LinearObjective(X, y, "logistic", domain, layout=layout)
    clips = [(NOTHING, math.inf)]
    if name == "schema":
        clips += [(np.array([0, 4, 5]), 0.7), (np.array([0, 4, 5]), math.inf)]
    grid = MarginGrid(domain, middles(domain))
    along = grid.near(meant(domain, rng, 1e-9).floats())
    for (numbers, radius), enough in itertools.product(clips, (math.inf, 2.0**-100)):
        weights = grid.weights(meant(domain, rng) + meant(domain, rng, 1e-25), enough)
        limit = math.ldexp(radius, objective.grid.a)
        slopes, fine, bends = twin(objective, width, numbers, limit, weights, along)
        sums, at = objective.smooth(width, numbers, radius), (weights.whole, weights.bits)
        assert whole_of(sums.bends(*at, along.whole)) == bends
        assert whole_of(sums.slopes(*at)[:, 0]) == slopes
        assert whole_of(sums.bends(*at, along.whole)) == bends  # from what was kept
        found = sums.slopes(*at, True)
        assert [whole_of(found[:, part]) for part in (0, 1)] == fine
        assert (len(weights.bits) > 1) == (enough < math.inf)


@pytest.mark.few(1)
@every_layout
def test_order_threads_and_parts_do_not_matter(layout, rng, monkeypatch):
    X, y = table(SCHEMA, 3000, rng)
    numbers = np.array([0, 4, 5])
    grid = MarginGrid(SCHEMA, middles(SCHEMA))
    weights = grid.weights(meant(SCHEMA, rng))
    at, v = (weights.whole, weights.bits), grid.near(meant(SCHEMA, rng).floats()).whole
    monkeypatch.setattr(KernelCalls, "thread_work", 0.0)
    monkeypatch.setattr(KernelCalls, "patient_work", 0.0)

    def totals(rows, **settings):
        part = {name: column[rows] for name, column in X.items()}
        objective = LinearObjective(part, y[rows], domain=SCHEMA, layout=layout, **settings)
        sums = objective.smooth(0.0, numbers, 0.9)
        counts = objective.size_counts(numbers, np.array([0.5, 1.0]))
        slopes = [whole_of(sums.slopes(*at, fine)[:, -1]) for fine in (False, True)]
        found = *slopes, whole_of(sums.bends(*at, v)), counts.tolist()
        return np.array([*itertools.chain(*found)], dtype=object)

    once = totals(slice(None), n_threads=1)
    assert (totals(slice(None), n_threads=3) == once).all()
    assert (totals(rng.permutation(3000)) == once).all()
    assert (sum(totals(slice(i, i + 700)) for i in range(0, 3000, 700)) == once).all()
    assert sum(once[-3:]) == 3000
    assert min(once[-3:]) > 20


@every_layout
def test_sums_of_many_records_do_not_overflow(layout):
    """Three times as many records of class 1 as 64 bits hold at margins where slopes are 1."""
    n = 3 * kernels.MOST_SUMMED + 5
    objective = LinearObjective(np.ones((n, 1)), np.ones(n), domain=Box(-1, 1), layout=layout)
    sums = objective.smooth(0.5, NOTHING, math.inf)
    grid = MarginGrid(objective.domain, np.zeros(1, np.int64))
    weights = grid.weights(Dyadic.of([-4.0 / 2 ** (objective.grid.a + 1), 0.0]))
    pull, intercept = whole_of(sums.slopes(weights.whole, weights.bits)[:, 0])
    assert pull == intercept == n << PULL_BITS
    fine = exact_slopes(sums.slopes(weights.whole, weights.bits, True), objective.grid.a)
    assert fine.floats().tolist() == [n * 2.0**objective.grid.a] * 2


@every_domain
def test_weights_keep_every_margin_within_its_bits(name, rng):
    """And their limbs add up to the weights that were meant, but for the error that is told."""
    domain = DOMAINS[name]
    grid, middle = MarginGrid(domain, middles(domain)), middles(domain).tolist()
    most = np.maximum(np.abs(domain.low), np.abs(domain.high))
    packed = [int(v) for v in np.rint(most / domain.record_units())]
    for size, enough in itertools.product((1e-300, 1e-3, 1.0, 1e9, 1e30), (math.inf, 2.0**-60)):
        exact = meant(domain, rng, size)
        weights = grid.weights(exact, enough)
        left = [Fraction(v, 2**exact.bits) for v in exact.whole]
        for row, bits in zip(weights.whole.tolist(), weights.bits.tolist(), strict=True):
            sizes = [abs(v) for v in row[:-1]]
            assert max(sizes) < 2**62
            assert sum(x * v for x, v in zip(packed, sizes, strict=True)) < 2**71
            halves = [v // 2 for v in row[:-1]]
            assert grid.largest(np.abs([*halves, 0]).astype(float)) <= 2.0**MARGIN_BITS
            start = row[-1] + sum(h * m for h, m in zip(halves, middle, strict=True))
            start = (start + 2**63) % 2**64 - 2**63  # sums wrap
            of_limb = [Fraction(v) / Fraction(2) ** bits for v in (*halves, start)]
            left = [x - y for x, y in zip(left, of_limb, strict=True)]
        rest = grid.largest(np.abs([float(v) for v in left]))
        assert rest <= weights.error <= enough
    zero = Dyadic.of(np.zeros(domain.width + 1))
    assert not grid.weights(zero).whole.any()


def true_loss(m, width):
    """Minus the slope and the curvature, in 53 bits and more."""
    m, h = mpmath.mpf(m), mpmath.mpf(width)
    if not width:
        s = 1 / (1 + mpmath.exp(m))
        return s, s * (1 - s) * 4
    s = min(max((1 + h - m) / (2 * h), 0), 1)
    return s, None


@pytest.mark.few(1)
@every_width
def test_slopes_are_as_near_as_the_proof_has_it(width):
    """Given their margin; and a margin that is off by 2^-51 of itself moves them by the swing."""
    from privfit.linear.newton import MARGIN_ERROR, SLOPE_ERROR

    rng = np.random.default_rng(1)
    m = np.concatenate([rng.uniform(-70, 70, 300), rng.uniform(-2, 2, 300), [0.0, 1.0, 64.0, 1e6]])
    largest = 1 / (2 * width) if width else 0.25
    swing = (HuberHinge(width) if width else Logistic()).swing
    for one in m.tolist():  # the twin agrees with the kernel bit for bit
        slope, bend = reference.smooth_loss(one, width)
        s, curvature = true_loss(one, width)
        assert abs(slope - s) <= SLOPE_ERROR * (1 + largest)
        with mpmath.workprec(200):
            near = [true_loss(mpmath.mpf(one) * (1 + sign * mpmath.mpf(2) ** -51), width)[0]
                    for sign in (-1, 1)]  # fmt: skip
            assert max(abs(v - true_loss(one, width)[0]) for v in near) <= MARGIN_ERROR * swing
        if curvature is not None:
            assert abs(bend - curvature) <= 2.0**-48


BITS = """
import numpy as np
from privfit import Box, LinearObjective
from privfit._kernels import cpu
from privfit.linear.newton import coding_of
from privfit.objectives.smooth import MarginGrid
rng, domain = np.random.default_rng(3), Box(-1, 1, 9)
X, y = rng.uniform(-1, 1, (900, 9)), rng.integers(0, 2, 900)
grid = MarginGrid(domain, coding_of(domain).middle)
weights, v = map(grid.near, rng.standard_normal((2, 10)))
for layout in ("dense", "sparse"):
    for width in (0.0, 0.3):
        objective = LinearObjective(X, y, domain=domain, layout=layout)
        sums = objective.smooth(width, np.arange(0), np.inf)
        print(sums.slopes(weights.whole, weights.bits, True).tolist())
        print(sums.bends(weights.whole, weights.bits, v.whole).tolist())
print(cpu.active())
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_the_instruction_set(fresh_python):
    found = [fresh_python(BITS, PRIVFIT_SIMD=kind).stdout.split("\n")
             for kind in ("baseline", "auto")]  # fmt: skip
    assert found[0][:8] == found[1][:8]
    assert len(found[0][0]) > 100
    assert found[0][8] == "baseline"


@every_layout
def test_wide_tables_are_summed_exactly(layout, rng):
    """More columns than some sums in double could take at once, if weights were larger."""
    d = 1 << 15
    X = np.ones((3, d))
    objective = LinearObjective(X, [0, 1, 1], domain=Box(-1, 1), layout=layout)
    w = np.where(np.arange(d + 1) % 2, 1.0, -1.0) * rng.random(d + 1)
    whole = MarginGrid(objective.domain, np.zeros(d, np.int64)).near(w).whole[0]
    rows = packed(objective)
    sums = SmoothPass(rows.layout, Smoothing(0.0, NOTHING, math.inf))
    w, z = rows.layout.spread(whole[None])[0], np.zeros(rows.layout.rows, np.int64)
    kernels.margins(sums.records, next(rows.slices(1.0)), w, z, 1)
    exact = (sum(map(int, whole[:-1])) << objective.grid.a) + int(whole[-1])
    assert z[[run.first for run in rows.runs]].tolist() == [exact] * 2


def test_a_guess_of_the_inverse_is_that_of_the_pairs_one_by_one(rng):
    """The formula with matrices is the update that the textbooks print, a pair at a time."""
    size = 40
    root = rng.normal(size=(size, size))
    hessian = root @ root.T + np.eye(size)
    directions = list(rng.normal(size=(PAIRS + 7, size)))
    bent = [hessian @ direction for direction in directions]
    guess = InverseGuess(size)
    vector = rng.normal(size=size)
    np.testing.assert_array_equal(guess(vector), vector)  # nothing is known yet
    guess.learn(directions[:20], bent[:20])
    guess.learn(directions[20:], bent[20:])
    s, y = directions[-1], bent[-1]
    inverse = (s @ y) / (y @ y) * np.eye(size)
    for s, y in zip(directions[-PAIRS:], bent[-PAIRS:], strict=True):
        left = np.eye(size) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(guess(vector), inverse @ vector, rtol=1e-6)
    np.testing.assert_allclose(guess(bent[-1]), directions[-1], rtol=1e-6)
    guess.forget()
    np.testing.assert_array_equal(guess(vector), vector)
