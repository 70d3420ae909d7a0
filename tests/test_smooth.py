"""Sums of slopes and curvatures: the naive twin's bit for bit, in any order, part and layout."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import reference

from privfit import Box, Categorical, Grid, L1Ball, L2Ball, LinearObjective, Numeric, Schema
from privfit._kernels import smooth as kernels
from privfit.objectives.smooth import MARGIN_BITS, PULL_BITS, MarginGrid, SmoothSums

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


def twin(objective, width, numbers, radius, weights, along):
    """What `slopes` and `bends` must be, by records one after the other."""
    rows, labels = packed_rows(objective)
    a, w, v = objective.grid.a, weights.whole.tolist(), along.whole.tolist()
    clip = numbers.tolist(), radius, a
    slopes, bends = [0] * (len(w) + 1), [0] * len(w)
    for x, label in zip(rows, labels, strict=True):
        sign = 1.0 if label else -1.0
        m = sign * reference.smooth_margin(x, w, weights.bits, *clip)
        slope, bend, loss = reference.smooth_loss(m, width)
        pull = reference.pulled(x, sign * slope, *clip, PULL_BITS)
        pull.append(round(math.ldexp(loss, weights.loss_bits)))
        slopes = [total + part for total, part in zip(slopes, pull, strict=True)]
        bent = bend * reference.smooth_margin(x, v, MARGIN_BITS, *clip)
        bends = [
            total + part
            for total, part in zip(bends, reference.pulled(x, bent, *clip, PULL_BITS), strict=True)
        ]
    return slopes, bends


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
    most = np.append(np.maximum(np.abs(domain.low), np.abs(domain.high)), 1.0)
    w, v = rng.standard_normal((2, len(most))) / np.where(most, most, 1.0) * [[3.0], [1e-9]]
    weights, along = map(MarginGrid(domain).weights, (w, v))
    for numbers, radius in clips:
        slopes, bends = twin(objective, width, numbers, radius, weights, along)
        sums, at = SmoothSums(objective, width, numbers, radius), (weights.whole, weights.bits)
        assert whole_of(sums.bends(*at, along.whole)) == bends
        assert whole_of(sums.slopes(*at)) == slopes
        assert whole_of(sums.bends(*at, along.whole)) == bends  # from what was kept


@every_layout
def test_order_threads_and_parts_do_not_matter(layout, rng, monkeypatch):
    X, y = table(SCHEMA, 3000, rng)
    numbers = np.array([0, 4, 5])
    weights = MarginGrid(SCHEMA).weights(rng.standard_normal(7))
    at, v = (weights.whole, weights.bits), MarginGrid(SCHEMA).weights(rng.standard_normal(7)).whole
    monkeypatch.setattr(LinearObjective, "_thread_work", 0.0)

    def totals(rows, **settings):
        part = {name: column[rows] for name, column in X.items()}
        objective = LinearObjective(part, y[rows], domain=SCHEMA, layout=layout, **settings)
        sums = objective.smooth(0.0, numbers, 0.9)
        counts = objective.size_counts(numbers, np.array([0.5, 1.0]))
        found = whole_of(sums.slopes(*at)), whole_of(sums.bends(*at, v)), counts.tolist()
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
    weights = MarginGrid(objective.domain).weights(np.array([-4.0, 0.0]))
    pull, intercept, losses = whole_of(sums.slopes(weights.whole, weights.bits))
    assert pull == intercept == n << PULL_BITS
    assert losses == n * 5 << weights.loss_bits


@every_domain
def test_weights_keep_every_margin_within_its_bits(name, rng):
    domain = DOMAINS[name]
    most = np.append(np.maximum(np.abs(domain.low), np.abs(domain.high)), 1.0)
    packed = np.append(most[:-1] / domain.record_units(), 1.0)
    for scale in (1e-300, 1e-3, 1.0, 1e9):
        w = scale * rng.standard_normal(len(most))
        w[-1] -= w[:-1] @ domain.low  # what the low ends add is taken away again
        weights = MarginGrid(domain).weights(w)
        sizes = [abs(int(v)) for v in weights.whole]
        assert max(sizes) < 2**62
        assert sum(int(x) * v for x, v in zip(packed, sizes, strict=True)) < 2**71
        assert math.ldexp(domain.norm(w)[0], weights.bits) <= 2.0**MARGIN_BITS
        again = np.ldexp(weights.whole / np.append(domain.record_units(), 1.0), -weights.bits)
        assert np.allclose(again, w, rtol=0, atol=2.0**-36 * np.abs(w).max() * most.max())
    assert not MarginGrid(domain).weights(np.zeros(len(most))).whole.any()


def true_loss(m, width):
    """Minus the slope, the curvature and the loss, in 120 bits."""
    m, h = mpmath.mpf(float(m)), mpmath.mpf(width)
    if not width:
        s = 1 / (1 + mpmath.exp(m))
        return s, s * (1 - s) * 4, mpmath.log1p(mpmath.exp(-m))
    s = min(max((1 + h - m) / (2 * h), 0), 1)
    return s, None, 1 - m if m < 1 - h else h * s * s


@every_width
def test_slopes_and_losses_are_as_near_as_the_proof_has_it(width):
    from privfit.convex import LOSS_ERROR, SLOPE_ERROR

    rng = np.random.default_rng(1)
    m = np.concatenate([rng.uniform(-70, 70, 300), rng.uniform(-2, 2, 300), [0.0, 1.0, 64.0, 1e6]])
    largest = 1 / (2 * width) if width else 0.25
    for one in m.tolist():  # the twin agrees with the kernel bit for bit
        slope, bend, loss = reference.smooth_loss(one, width)
        s, curvature, value = true_loss(one, width)
        assert abs(slope - s) <= SLOPE_ERROR * (1 + largest)
        assert abs(loss - value) <= LOSS_ERROR + 2.0**-53 * abs(one)
        if curvature is not None:
            assert abs(bend - curvature) <= 2.0**-48


BITS = """
import numpy as np
from privfit import Box, LinearObjective
from privfit._kernels import simd
from privfit.objectives.smooth import MarginGrid
rng, domain = np.random.default_rng(3), Box(-1, 1, 9)
X, y = rng.uniform(-1, 1, (900, 9)), rng.integers(0, 2, 900)
weights, v = map(MarginGrid(domain).weights, rng.standard_normal((2, 10)))
for layout in ("dense", "sparse"):
    for width in (0.0, 0.3):
        sums = LinearObjective(X, y, domain=domain, layout=layout).smooth(width, np.arange(0), 1.0)
        print(sums.slopes(weights.whole, weights.bits).tolist())
        print(sums.bends(weights.whole, weights.bits, v.whole).tolist())
print(simd.active())
"""


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
    weights = MarginGrid(objective.domain).weights(w)
    sums = SmoothSums(objective, 0.0, NOTHING, math.inf)
    w, z = np.zeros(sums._records.columns, np.int64), np.zeros(objective._layout.rows, np.int64)
    w[sums._places[:-1]] = weights.whole
    kernels.margins(sums._records, next(objective._slices(1.0)), w, z, 1)
    exact = (sum(map(int, weights.whole[:-1])) << objective.grid.a) + int(weights.whole[-1])
    assert z[[run.first for run in objective._runs]].tolist() == [exact] * 2
