"""Random bits and exact draws: who shares bits with whom, and each law against its closed form.

Statistical tests run on fixed seeds. Each compares p-values with 2e-9, and there are fewer than 300
such comparisons, so on fresh seeds this file would raise a false alarm less than once in 1e6 runs.
"""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import threading
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

from privfit._kernels import select
from privfit._kernels.random import (
    BitSource,
    DiscreteGaussianSampler,
    DiscreteLaplaceSampler,
    bernoulli,
    bernoulli_exp,
    binary_rate,
    exp_interval,
    first_bits,
    is_below,
)
from privfit.privacy.mechanisms import Exponential, NoisyMax, TopK

FALSE_ALARM = 2e-9
ALL_ONES = 2**64 - 1


class Scripted(np.random.Generator):
    """A generator that hands out chosen 64-bit words first, and random ones after them."""

    def __new__(cls, words):
        return super().__new__(cls)

    def __init__(self, words):
        super().__init__(np.random.PCG64(1))
        self.words = [int(word) for word in words]

    def bytes(self, length):
        count = length // 8
        chosen, self.words = self.words[:count], self.words[count:]
        scripted = np.array(chosen, dtype=np.uint64).tobytes()
        return scripted + super().bytes(length - len(scripted))


def scripted(*words):
    return BitSource(Scripted(words))


def agrees(observed, probabilities, false_alarm=FALSE_ALARM):
    """Chi-square of counts against probabilities, rare cells pooled; True if it does not alarm."""
    observed, probabilities = np.asarray(observed), np.asarray(probabilities, dtype=float)
    assert np.isclose(probabilities.sum(), 1, atol=1e-9)
    expected = probabilities * observed.sum()
    assert (observed[probabilities == 0] == 0).all()
    rare = expected < 30
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 30:  # too few even together: a Poisson tail, and not in the sum
            if scipy.stats.poisson.sf(observed[-1] - 1, expected[-1]) < false_alarm:
                return False
            observed, expected = observed[:-1], expected[:-1]
            expected = expected * observed.sum() / expected.sum()
    if len(observed) < 2:
        return True
    statistic = ((observed - expected) ** 2 / expected).sum()
    return scipy.stats.chi2.sf(statistic, len(observed) - 1) > false_alarm


def true_exp(g, bits=0):
    """2^bits exp(-g) to 400 digits."""
    with mpmath.workdps(400):
        return mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator) * mpmath.mpf(2) ** bits


def words_of(p_times, bits=128):
    """The first words of a probability: `p_times(bits)` is 2^bits p."""
    with mpmath.workdps(400):
        whole = int(mpmath.floor(p_times(bits)))
    return [(whole >> (bits - 64 * (i + 1))) & ALL_ONES for i in range(bits // 64)]


def softmax(scores, rate):
    g = [(max(scores) - int(s)) * rate for s in scores]
    return scipy.special.softmax([-float(v) for v in g])


# ------------------------------------------------------------------------------------ random bits


def test_bits_come_from_the_operating_system_unless_seeded():
    assert not BitSource().seeded
    assert not BitSource(None).seeded
    assert repr(BitSource()) == "BitSource(operating system)"
    assert repr(BitSource(3)) == "BitSource(seeded)"
    assert BitSource().bits(256) != BitSource().bits(256)


@pytest.mark.parametrize(
    "make",
    [
        lambda: 7,
        lambda: np.int32(7),
        lambda: np.random.default_rng(7),
        lambda: np.random.Generator(np.random.Philox(7)),
        lambda: np.random.RandomState(7),
    ],
    ids=["int", "numpy int", "Generator", "Philox", "RandomState"],
)
def test_a_seed_is_reproducible(make):
    source, again = BitSource(make()), BitSource(make())
    assert source.seeded
    # More than a buffer of 1024 words.
    assert [source.bits(64) for _ in range(2100)] == [again.bits(64) for _ in range(2100)]


def test_seeds_differ_and_a_generator_moves_on():
    assert BitSource(1).bits(64) != BitSource(2).bits(64)
    generator = np.random.default_rng(0)
    assert BitSource(generator).bits(64) != BitSource(generator).bits(64)


def test_a_source_is_passed_on_as_it_is():
    source = BitSource(0)
    assert BitSource.of(source) is source
    assert BitSource.of(5).bits(64) == BitSource(5).bits(64)
    assert not BitSource.of(None).seeded


@pytest.mark.parametrize("seed", [-1, np.int64(-5)])
def test_negative_seeds_are_refused(seed):
    with pytest.raises(ValueError, match=r"random_state \(-\d\) must not be negative; pass a seed"):
        BitSource(seed)


@pytest.mark.parametrize("seed", [1.0, "0", True, [1], np.random, b"x"])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(TypeError, match=r"random_state \(\w+\) must be None, an int, a Generator"):
        BitSource(seed)


@pytest.mark.parametrize("twice", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("seed", [None, 1])
def test_bits_cannot_be_copied(twice, seed):
    with pytest.raises(
        TypeError, match="cannot be copied or pickled: its bits would be used twice"
    ):
        twice(BitSource(seed))


FORK = """
import os, json, sys
import numpy as np
from privfit._kernels.random import BitSource, DiscreteLaplaceSampler

source, wide = BitSource(), DiscreteLaplaceSampler(2**31, 76)  # rate 2^-45: some 46 bits a draw

def draw():
    noise = np.empty(40, dtype=np.int64)
    wide.fill(source, noise)
    return noise.tolist() + [source.bits(64) for _ in range(1500)]

if FILLED:
    source.bits(64)
    wide.fill(source, np.empty(3, dtype=np.int64))

def child(depth):
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            mine = [draw()]
            if depth:
                mine += child(depth - 1)
            json.dump(mine, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as result:
        text = result.read()
    os.wait()
    return json.loads(text)

everything = child(1) + child(0) + [draw()]
print(json.dumps([len(everything), len({x for part in everything for x in part}),
                  sum(map(len, everything))]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("filled", [True, False])
def test_a_forked_child_never_repeats_its_parents_bits(fresh_python, filled):
    """Children, a grandchild and the parent; words and single bytes; a half-used buffer."""
    done = fresh_python(FORK.replace("FILLED", str(filled)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[4, 6160, 6160]"


def test_threads_never_share_words():
    source, drawn = BitSource(), [[] for _ in range(4)]
    start = threading.Barrier(4)

    def draw(mine):
        start.wait()
        mine.extend(source.bits(64) for _ in range(15_000))

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set().union(*drawn)) == 60_000  # two equal words by chance: 1e-10


def test_threads_never_share_words_of_a_slow_source():
    """A refill that lets other threads in: the worst moment to be interrupted."""
    gate = threading.Barrier(2, timeout=60)

    class Slow(np.random.Generator):
        def bytes(self, length):
            gate.wait()
            return super().bytes(length)

    source, drawn = BitSource(Slow(np.random.PCG64(5))), [[], []]

    def draw(mine):
        mine.extend(source.bits(64) for _ in range(500))

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn[0] + drawn[1])) == 1000


def test_bits_have_the_length_asked_for():
    source = BitSource(0)
    assert source.bits(0) == 0
    for count in (1, 63, 64, 65, 200):
        values = [source.bits(count) for _ in range(200)]
        assert 0 <= min(values)
        assert max(values).bit_length() == count
    words = [3, 5, 2**63]
    assert scripted(*words).bits(192) == (3 << 128) | (5 << 64) | 2**63
    assert scripted(2**63 | 1, 0).bits(1) == 1


@pytest.mark.statistical
@pytest.mark.parametrize("n", [2, 3, 10, 1000, 2**63 - 1, 2**63, 2**63 + 1, 3 * 2**62, 2**64 - 1])
def test_draw_below_is_uniform(n):
    source = BitSource(n % 1000)
    draws = [source.draw_below(n) for _ in range(20_000)]
    assert 0 <= min(draws)
    assert max(draws) < n
    cells = min(n, 50)
    counts = np.bincount([x * cells // n for x in draws], minlength=cells)
    sizes = [-(-(i + 1) * n // cells) + (-i * n // cells) for i in range(cells)]
    assert agrees(counts, [size / n for size in sizes])
    low = Counter(x % 4 for x in draws)
    if n > 1000:
        assert agrees([low[i] for i in range(4)], [0.25] * 4)


def test_draw_below_rejects_exactly_the_uneven_part():
    """For n = 3 * 2^62 words fall on 3 * 2^62 values; a quarter of them must be drawn again."""
    n = 3 * 2**62
    kept = sum(scripted(word, 0).draw_below(n) == word * n >> 64 for word in range(1, 5))
    assert kept == 3
    assert BitSource(0).draw_below(1) == 0


def test_draw_below_refuses_what_is_no_number_of_choices():
    with pytest.raises(ValueError, match=r"n \(0\) must be positive; pass a number of choices"):
        BitSource(0).draw_below(0)
    for n in (-1, 2**64):
        with pytest.raises(OverflowError):
            BitSource(0).draw_below(n)


# -------------------------------------------------------------------------------- exact arithmetic

RATIONALS = [
    Fraction(0), Fraction(1), Fraction(1, 3), Fraction(22, 7), Fraction(2**31 + 1, 2**32),
    Fraction(2**40 - 1, 3**20), Fraction(1, 10**30), Fraction(10**6 + 1, 7), Fraction(3550, 113),
    Fraction(0.1), Fraction(math.pi), Fraction(2**32 - 1, 2**90), Fraction(99999999999, 10**9),
    Fraction(10**40 + 1, 10**40), Fraction(123456789, 1000),
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("bits", [1, 8, 64, 124, 128, 192, 700])
def test_exp_interval_brackets_the_exponential_and_is_narrow(bits):
    rng = np.random.default_rng(bits)
    drawn = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 2**62, (150, 2))]
    for g in RATIONALS + drawn + [40 * g for g in drawn]:
        low, high = exp_interval(g, bits)
        assert low <= true_exp(g, bits) <= high, g
        assert high - low <= 3


def test_exp_interval_does_not_depend_on_the_callers_decimal_context():
    import decimal

    expected = exp_interval(Fraction(22, 7), 256)
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP)):
        assert exp_interval(Fraction(22, 7), 256) == expected


def test_first_bits_are_exact():
    for g in RATIONALS[1:]:
        expected = words_of(lambda bits, g=g: true_exp(g, bits), 64)
        assert [first_bits(lambda bits, g=g: exp_interval(g, bits))] == expected


def test_first_bits_look_on_where_words_of_zeros_or_ones_hide_the_answer():
    """p = 2^-1 + 2^-200 and 2^-1 - 2^-200, with bounds one unit off on each side."""
    for sign, expected in ((1, 2**63), (-1, 2**63 - 1)):
        p = Fraction(1, 2) + sign * Fraction(1, 2**200)

        def interval(bits, p=p):
            return math.floor(p * 2**bits) - 1, math.ceil(p * 2**bits) + 1

        assert first_bits(interval) == expected


def test_is_below_decides_ties_exactly():
    """A prefix that equals that of p: only the words drawn next decide."""
    for g in RATIONALS[1:]:
        prefix, second, third = words_of(lambda bits, g=g: true_exp(g, bits), 192)

        def interval(bits, g=g):
            return exp_interval(g, bits)

        if prefix:
            assert is_below(scripted(0), prefix - 1, 64, interval)
        assert not is_below(scripted(0), prefix + 1, 64, interval)
        if second:
            assert is_below(scripted(second - 1, ALL_ONES), prefix, 64, interval)
        if second < ALL_ONES:
            assert not is_below(scripted(second + 1, 0), prefix, 64, interval)
        if third:
            assert is_below(scripted(second, third - 1), prefix, 64, interval)
        if third < ALL_ONES:
            assert not is_below(scripted(second, third + 1), prefix, 64, interval)


@pytest.mark.statistical
def test_bernoulli_takes_a_rational_probability():
    p = Fraction(1, 3)

    def interval(bits):
        return math.floor(p * 2**bits), math.ceil(p * 2**bits)

    source = BitSource(1)
    hits = sum(bernoulli(source, interval) for _ in range(20_000))
    assert agrees([hits, 20_000 - hits], [1 / 3, 2 / 3])
    word = 2**64 // 3
    assert bernoulli(scripted(word, word - 1), interval)
    assert not bernoulli(scripted(word, word + 1), interval)


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("g", [Fraction(0), Fraction(1, 10**12), Fraction(2, 3), Fraction(5, 2)])
def test_bernoulli_exp_has_its_probability(g):
    source = BitSource(3)
    hits = sum(bernoulli_exp(source, g) for _ in range(8000))
    p = math.exp(-g)
    assert agrees([hits, 8000 - hits], [p, 1 - p])


def test_bernoulli_exp_at_the_ends():
    source = BitSource(4)
    assert not any(bernoulli_exp(source, Fraction(10**12)) for _ in range(100))
    with pytest.raises(ValueError, match=r"g \(-1/2\) must not be negative; pass a rational g"):
        bernoulli_exp(source, Fraction(-1, 2))


def test_binary_rate_rounds_down_to_32_bits():
    rng = np.random.default_rng(0)
    rates = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 2**62, (300, 2))]
    rates += [Fraction(2) ** e for e in (-1100, -33, 0, 31, 32, 1000)]
    rates += [Fraction(2**32 - 1), Fraction(2**33 - 1), Fraction(1e-300), Fraction(5e-324) / 2**70]
    for rate in rates:
        k, scale = binary_rate(rate)
        assert 2**31 <= k < 2**32
        assert 0 <= rate - k / Fraction(2) ** scale < rate / 2**31


# ------------------------------------------------------------------------------------------- noise


def laplace(rate, size, seed):
    out = np.empty(size, dtype=np.int64)
    DiscreteLaplaceSampler(*binary_rate(Fraction(rate))).fill(BitSource(seed), out)
    return out


def laplace_upper(rate, t):
    """P(x >= t) for t >= 1."""
    return np.exp(-rate * t) / (1 + math.exp(-rate))


@pytest.mark.few(2)
@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9999, 1.0, 1.5, 4.0, 12.0])
def test_discrete_laplace_has_its_law(rate):
    draws = laplace(rate, 300_000, 11)
    top = max(2, int(8 / rate))
    q = math.exp(-rate)
    inside = np.arange(-top, top + 1)
    p = (1 - q) / (1 + q) * np.exp(-rate * np.abs(inside))
    p = np.concatenate([[laplace_upper(rate, top + 1)], p, [laplace_upper(rate, top + 1)]])
    counts = np.bincount(np.clip(draws, -top - 1, top + 1) + top + 1, minlength=2 * top + 3)
    assert agrees(counts, p)


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("rate", [1e-3, 1e-6, 1e-9, 1e-12, 2.0**-50])
def test_wide_discrete_laplace_has_its_law(rate):
    """Bins of equal probability on each side, and low digits that are all but uniform."""
    draws = laplace(rate, 200_000, 13)
    cuts = np.ceil(-np.log(np.arange(20, 0, -1) / 20) / rate)
    cuts[0] = 1
    tail = np.append(laplace_upper(rate, cuts), 0.0)
    each = tail[:-1] - tail[1:]
    cell = np.searchsorted(cuts, np.abs(draws), side="right")  # 0 for a draw of 0
    counts = np.bincount(cell * np.sign(draws) + 20, minlength=41)
    zero = math.tanh(rate / 2)
    assert agrees(counts, np.concatenate([each[::-1], [zero], each]))
    assert agrees(np.bincount(np.abs(draws) % 8, minlength=8), [1 / 8] * 8) or rate == 1e-3


@pytest.mark.statistical
def test_discrete_laplace_is_symmetric():
    for rate in (0.01, 0.5, 2.0):
        draws = laplace(rate, 200_000, 17)
        up, down = (draws > 0).sum(), (draws < 0).sum()
        assert agrees([up, down], [0.5, 0.5])


def test_discrete_laplace_at_extreme_rates():
    assert not laplace(1e12, 10_000, 1).any()
    assert not laplace(1e300, 1000, 1).any()
    assert np.abs(laplace(1e-12, 10_000, 1)).max() > 10**12
    for rate in (2.0**-51, 1e-300):
        with pytest.raises(ValueError, match="noise this wide does not fit in 64 bits; pass a"):
            laplace(rate, 1, 1)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(3, 2), Fraction(2**32 - 1, 2**31)])
def test_discrete_laplace_decides_ties_exactly(rate):
    """Eight bytes that all equal those of exp(-rate): the next word decides."""
    k, scale = binary_rate(rate)
    rate = k / Fraction(2) ** scale
    prefix, second = words_of(lambda bits: true_exp(rate, bits))
    tie = int.from_bytes(prefix.to_bytes(8, "big"), "little")
    # After the tie: a byte 0xFE is an even sign byte (a draw of 0), or ends the geometric part and
    # the sign byte 0 follows (a draw of 1).
    for word, expected in ((second - 1, 1), (second + 1, 0)):
        out = np.empty(1, dtype=np.int64)
        DiscreteLaplaceSampler(k, scale).fill(scripted(tie, word, 0xFE), out)
        assert out[0] == expected


def test_digits_of_discrete_laplace_decide_ties_exactly():
    """Rate 1/2 has one digit, which is 1 with probability 1 / (1 + sqrt(e))."""
    k, scale = binary_rate(Fraction(1, 2))

    def times(bits):
        return mpmath.mpf(2) ** bits / (1 + mpmath.sqrt(mpmath.e))

    prefix, second = words_of(times)
    tie = int.from_bytes(prefix.to_bytes(8, "big"), "little")
    for word, expected in ((second - 1, 1), (second + 1, 0)):
        out = np.empty(1, dtype=np.int64)
        DiscreteLaplaceSampler(k, scale).fill(scripted(tie, word, 0x00FE), out)
        assert out[0] == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("variance", [Fraction(1, 3), 16, Fraction(10**12 + 7, 3), 2**80])
def test_quick_verdicts_on_gaussian_proposals_are_the_exact_ones(variance):
    """The twin draws the same proposals and words, and decides each with 200 bits."""
    out, variance = np.empty(2000, dtype=np.int64), Fraction(variance)
    DiscreteGaussianSampler(variance).fill(BitSource(5), out)
    k, scale = binary_rate(Fraction(1, math.isqrt(math.floor(variance)) + 1))
    proposal, source = DiscreteLaplaceSampler(k, scale), BitSource(5)
    offset, one, kept = variance * k / Fraction(2) ** scale, np.empty(1, dtype=np.int64), []
    with mpmath.workprec(200):
        while len(kept) < len(out):
            proposal.fill(source, one)
            g = (abs(int(one[0])) - offset) ** 2 / (2 * variance)
            top = mpmath.mpf(2) ** 64 * mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator)
            if source.bits(64) < top:
                kept.append(int(one[0]))
    assert out.tolist() == kept


def gaussian(variance, size, seed):
    out = np.empty(size, dtype=np.int64)
    DiscreteGaussianSampler(Fraction(variance)).fill(BitSource(seed), out)
    return out


@pytest.mark.statistical
@pytest.mark.parametrize(
    "variance", [Fraction(1, 9), Fraction(1), Fraction(17, 4), Fraction(301, 3)]
)
def test_discrete_gaussian_has_its_law(variance):
    draws = gaussian(variance, 30_000, 19)
    sigma = math.sqrt(variance)
    top = int(7 * sigma) + 3
    x = np.arange(-top, top + 1)
    p = np.exp(-(x**2) / (2 * float(variance)))
    assert np.abs(draws).max() <= top
    assert agrees(np.bincount(draws + top, minlength=2 * top + 1), p / p.sum())
    assert agrees([(draws > 0).sum(), (draws < 0).sum()], [0.5, 0.5])


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [Fraction(10**6), Fraction(10**20, 3), Fraction(2**97)])
def test_wide_discrete_gaussian_has_its_law(variance):
    draws = gaussian(variance, 20_000, 23)
    sigma = math.sqrt(variance)
    # P(x <= t) is that of the normal law at t + 1/2, to within exp(-2 pi^2 variance).
    cuts = np.floor(scipy.stats.norm.ppf(np.arange(1, 20) / 20) * sigma)
    p = np.diff(np.concatenate([[0], scipy.stats.norm.cdf((cuts + 0.5) / sigma), [1]]))
    assert agrees(np.bincount(np.searchsorted(cuts, draws, side="left"), minlength=20), p)
    assert agrees(np.bincount(np.abs(draws) % 8, minlength=8), [1 / 8] * 8)


def test_discrete_gaussian_decides_around_its_threshold_exactly():
    """The first proposal is 0, accepted or not by a scripted word; a second one would be 1."""
    variance = Fraction(17, 4)
    k, scale = binary_rate(Fraction(1, 3))
    offset = variance * k / Fraction(2) ** scale
    g = offset**2 / (2 * variance)
    threshold, second = words_of(lambda bits: true_exp(g, bits))
    # Bytes: two digits 0, no more, a sign; then the digits 1 and 0, no more, a sign.
    proposals = int.from_bytes(bytes([255, 255, 255, 0, 0, 255, 255, 0]), "little")

    def first(*words):
        out = np.empty(1, dtype=np.int64)
        DiscreteGaussianSampler(variance).fill(scripted(proposals, *words, 0, 0), out)
        return out[0]

    for shift in [*range(-260, 0, 13), -2, -1]:
        assert first(threshold + shift, 0) == 0
        assert first(threshold - shift, 0) == 1
    assert first(threshold, second - 1) == 0
    assert first(threshold, second + 1) == 1


def test_discrete_gaussian_refuses_what_it_cannot_draw():
    for variance in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match=r"variance \((0|-1)\) must be positive; pass a"):
            DiscreteGaussianSampler(variance)
    for variance in (Fraction(2**101), Fraction(10**400)):
        with pytest.raises(ValueError, match="noise this wide does not fit in 64 bits; pass a"):
            DiscreteGaussianSampler(variance)


# --------------------------------------------------------------------------------- proposal weights
# A twin of `weights_above` in float32 of numpy: one rounding an operation, as the kernel has it.

F = np.float32


def exp_minus(y):
    k = y.astype(np.int32)
    f = y - k.astype(F)
    f2 = f * f
    u = (F(0.99999741) - F(0.6930302) * f) + f2 * (
        (F(0.23934107) - F(0.05307406) * f) + f2 * F(0.00676708)
    )
    return (u.view(np.int32) - (k << 23)).view(F)


def weights_above(gaps, rate, widest=None):
    """uint32 weights of differences to the best score, as the kernel computes them."""
    gaps = np.asarray(gaps, dtype=np.uint64)
    widest, drop = int(gaps.max() if widest is None else widest), 0
    to_log2 = F(min(float(rate) / math.log(2), 1e30))
    while widest >> drop > 2147483000:
        drop, to_log2 = drop + 1, to_log2 * F(2)
    with np.errstate(divide="ignore"):
        limit = F(31) / to_log2
    far = int(limit) + 1 if limit < F(2147483000) else 2147483000
    y = np.minimum(gaps >> np.uint64(drop), far).astype(np.int32).astype(F) * to_log2
    return (exp_minus(y) * F(1073807360)).astype(np.int32).astype(np.uint32) + np.uint32(1)


@pytest.mark.slow
def test_the_polynomial_is_as_close_as_stated():
    """2^21 points of [0, 32): relative error below 2^-18, and a weight that bounds the true one."""
    y = np.arange(2**21, dtype=np.float64) / 2**16
    y = np.concatenate([y, np.nextafter(np.arange(1, 33, dtype=F), F(0)).astype(np.float64)])
    value = exp_minus(y.astype(F))
    assert value.dtype == F
    exact = np.exp2(-y.astype(F).astype(np.float64))
    assert np.abs(value / exact - 1).max() < 2.0**-18
    weight = (value * F(1073807360)).astype(np.int64) + 1
    assert (weight >= 2.0**30 * exact * (1 + 2.0**-15)).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("widest", [2**8, 2**24, 2**31 - 648, 2**31, 2**45, 2**64 - 1])
def test_proposal_weights_are_upper_bounds(widest):
    """Of 2^30 exp(-gap rate) for exact gaps and rates, dropped bits and float errors included."""
    rng = np.random.default_rng(widest % 1000)
    for exponent in np.linspace(-8, 12, 41):
        rate = Fraction(2.0**exponent) / widest * 16
        if rate > 20:
            continue
        k, scale = binary_rate(rate)
        rate = k / Fraction(2) ** scale
        reach = min(widest, int(40 / rate))
        gaps = np.unique((rng.random(3000) * reach).astype(np.uint64))
        gaps = np.concatenate([gaps, np.arange(min(64, reach), dtype=np.uint64)])
        true = np.exp(-np.array([float(int(g) * rate) for g in gaps])) * 2.0**30
        weight = weights_above(gaps, rate, widest).astype(np.float64)
        assert (weight >= true * (1 + 1e-12)).all()
        if widest < 2**31 - 648:  # nothing dropped: bounds are close, so that few are rejected
            assert (weight <= true * (1 + 2.0**-12) + 2).all()


# -------------------------------------------------------------------------------------- selections


def choose(scores, rate, size, seed, k=1):
    """(size, k) selections by the kernel."""
    scores, source = np.asarray(scores, dtype=np.int64), BitSource(seed)
    rate = binary_rate(Fraction(rate))
    return np.array([select.top_k(scores, k, *rate, source) for _ in range(size)])


@pytest.mark.parametrize("gap", [1, 3, 1000])
@pytest.mark.parametrize("g", [1e-6, 0.4, 1.7, 12.5, 43.0])
def test_selection_decides_around_its_threshold_exactly(g, gap):
    """Candidate 1 is proposed; a scripted word around 2^64 p, p = 2^30 exp(-g) / weight, decides.

    Words below the threshold accept and words above reject, one by one across the part that the
    64-bit arithmetic leaves open; on the threshold the next word decides.
    """
    k, scale = binary_rate(Fraction(g) / gap)
    exact = gap * k / Fraction(2) ** scale
    weight = int(weights_above([0, gap], k / Fraction(2) ** scale)[1])
    threshold, second = words_of(lambda bits: true_exp(exact, bits + 30) / weight)
    scores = np.array([0, -gap])

    def chosen(*words):
        # All ones proposes the last candidate; 1 proposes the first (0 might be drawn again) and 0
        # accepts it.
        return select.top_k(scores, 1, k, scale, scripted(ALL_ONES, *words, 1, 0))[0]

    margin = 128 * 2**30 // weight + 4  # what the kernel leaves open
    shifts = {1, 2, 3, margin // 2, margin - 6, margin - 1, margin, margin + 1, 2 * margin}
    for shift in sorted(s for s in shifts if s > 0):
        if shift <= threshold:
            assert chosen(threshold - shift, 0) == 1
        if threshold + shift <= ALL_ONES:
            assert chosen(threshold + shift, 0) == 0
    if second > 0:
        assert chosen(threshold, second - 1) == 1
    if second < ALL_ONES:
        assert chosen(threshold, second + 1) == 0


@pytest.mark.parametrize("g", [1e-9, 0.1, 0.75, 2.5, 11.0, 40.0])
def test_permute_and_flip_decides_around_its_threshold_exactly(g):
    k, scale = binary_rate(Fraction(g) / 7)
    threshold, second = words_of(lambda bits: true_exp(7 * k / Fraction(2) ** scale, bits))
    scores = np.array([0, -7])

    def chosen(*words):
        return select.permute_and_flip(scores, k, scale, scripted(ALL_ONES, *words))

    for shift in (1, 2, 17, 64, 100, 127, 128, 129, 130, 1000):
        if shift <= threshold:
            assert chosen(threshold - shift, 0) == 1
        if threshold + shift <= ALL_ONES:
            assert chosen(threshold + shift, 0) == 0
    assert chosen(threshold, second - 1) == 1
    assert chosen(threshold, second + 1) == 0


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0, 5.0])
def test_exponential_mechanism_has_its_law(rate):
    scores = [3, 0, 5, -4, 5, 2, -20]
    counts = np.bincount(choose(scores, rate, 15_000, 29).ravel(), minlength=7)
    assert agrees(counts, softmax(scores, rate))


@pytest.mark.slow
@pytest.mark.statistical
def test_exponential_mechanism_over_many_gaps():
    """Forty candidates, each a fortieth below the last, at once."""
    scores = -np.arange(40) * 25
    counts = np.bincount(choose(scores, 0.004, 40_000, 31).ravel(), minlength=40)
    assert agrees(counts, softmax(scores, 0.004))


@pytest.mark.statistical
def test_equal_scores_and_a_single_candidate():
    for value in (0, -(2**63), 2**63 - 1):
        counts = np.bincount(choose([value] * 7, 1.0, 5000, 37).ravel(), minlength=7)
        assert agrees(counts, [1 / 7] * 7)
        assert choose([value], 1.0, 1, 1).tolist() == [[0]]


@pytest.mark.slow
@pytest.mark.statistical
def test_scores_at_both_ends_of_int64():
    scores = [2**63 - 1, -(2**63), 0, 2**62]
    counts = np.bincount(choose(scores, Fraction(1, 2**62), 15_000, 41).ravel(), minlength=4)
    assert agrees(counts, softmax(scores, Fraction(1, 2**62)))
    assert not choose(scores, 1e-9, 200, 1).any()
    assert not choose(scores, 1e12, 200, 1).any()
    both = choose([-(2**63), 2**63 - 1, 2**63 - 2], 1.0, 15_000, 43).ravel()
    assert agrees(np.bincount(both, minlength=3), [0, *softmax([1, 0], 1.0)])


@pytest.mark.slow
@pytest.mark.statistical
def test_ratios_of_a_billion_billion():
    """epsilon / range of 1e-12 and 1e12."""
    source = BitSource(47)
    narrow = Exponential(1.0, 10**12)
    draws = [narrow([0, 1, 2], source) for _ in range(6000)]
    assert agrees(np.bincount(draws, minlength=3), [1 / 3] * 3)
    draws = [narrow([0, 10**12, 2 * 10**12], source) for _ in range(6000)]
    assert agrees(np.bincount(draws, minlength=3), softmax([0, 1, 2], 1))
    wide = Exponential(1e12, 1)
    assert {wide([0, 1, -5], source) for _ in range(300)} == {1}
    draws = [wide([4, 4, 3], source) for _ in range(3000)]
    assert agrees(np.bincount(draws, minlength=3), [0.5, 0.5, 0])
    assert {Exponential(1e300, 1)([-(2**63), 2**63 - 1, 0], source) for _ in range(300)} == {1}


STEEP = """
import numpy as np
from privfit.privacy.mechanisms import TopK
for epsilon in EPSILONS:
    for scores in ([0, -1], [0, -1, -1, -2], [2**63 - 1, -2**63], [5, -2**63, 5]):
        order = TopK(len(scores), epsilon, 1)(np.array(scores), 0)
        assert sorted(order) == list(range(len(scores)))
        assert (np.diff(np.array(scores, dtype=object)[order]) <= 0).all(), (epsilon, order)
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilons",
    [
        "[22.0, 50.0, 88.0, 89.0, 100.0, 177.0]",
        "np.linspace(196, 200, 101)",
        "np.linspace(200, 800, 601)",
        "[1e6, 1.5e9, 1e10, 1e20, 1e29, 1e38, 1e300]",
    ],
)
def test_every_candidate_can_be_drawn_at_steep_rates(fresh_python, epsilons):
    """Weights stay positive and bound the true ones where exp(-rate) leaves the float range."""
    done = fresh_python(STEEP.replace("EPSILONS", epsilons))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("m", [1023, 1024, 1025, 2048, 2049])
def test_blocks_of_candidates_do_not_show(m):
    """The winner may be the last of all; equal scores are drawn uniformly across blocks."""
    scores = np.zeros(m, dtype=np.int64)
    scores[-1] = 1000
    assert (choose(scores, 1.0, 50, 53) == m - 1).all()
    source, rate = BitSource(59), binary_rate(Fraction(1))
    draws = [select.top_k(np.zeros(m, dtype=np.int64), 1, *rate, source)[0] for _ in range(8000)]
    cells = np.array(draws) * 32 // m
    size = np.bincount(np.arange(m) * 32 // m) / m
    assert agrees(np.bincount(cells, minlength=32), size)
    last = [np.sum(np.array(draws) >= m // 1024 * 1024), 8000]
    share = (m % 1024) / m
    assert agrees([last[0], 8000 - last[0]], [share, 1 - share])


@pytest.mark.slow
@pytest.mark.statistical
def test_thousands_of_candidates_have_their_law():
    rng = np.random.default_rng(61)
    scores = rng.integers(0, 300, 5000)
    draws = choose(scores, 0.02, 20_000, 61).ravel()
    p = softmax(scores, 0.02)
    by_score = np.bincount(scores // 10, weights=p, minlength=30)
    assert agrees(np.bincount(scores[draws] // 10, minlength=30), by_score)
    by_place = np.add.reduceat(p, np.arange(0, 5000, 125))
    assert agrees(np.bincount(draws // 125, minlength=40), by_place)


def test_threads_do_not_change_a_draw():
    scores = np.random.default_rng(67).integers(0, 10**6, 200_001)
    rate = binary_rate(Fraction(1, 10**5))
    one, two, three = (select.top_k(scores, 50, *rate, BitSource(1), n) for n in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)
    assert len(set(one.tolist())) == 50
    assert np.array_equal(one, TopK(50, 1.0, 10**5)(scores, 1))


# ------------------------------------------------------------------------------------------- top k


def peeling(scores, rate, k):
    """Each ordered choice and its probability, by definition."""
    for order in itertools.permutations(range(len(scores)), k):
        left, p = list(range(len(scores))), 1.0
        for i in order:
            p *= softmax([scores[j] for j in left], rate)[left.index(i)]
            left.remove(i)
        yield order, p


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scores", "rate", "k"),
    [
        ([0, -1, -2, -4], 0.5, 2),
        ([0, -1, -2, -4], 0.5, 3),
        ([0, 0, 3, 3], 1.0, 4),
        ([0, -1000, -1001, -1002], 1.0, 3),  # weights are taken anew once the best is gone
        ([0, -1000, -1001, -1002], 50.0, 3),
        ([2**63 - 1, -(2**63), -(2**63) + 1, 0], 0.5, 4),
        ([2**62, 2**62 - 1, -(2**62), -(2**62) + 3], 0.3, 4),
    ],
)
def test_top_k_is_peeling(scores, rate, k):
    law = dict(peeling(scores, rate, k))
    found = Counter(map(tuple, choose(scores, rate, 15_000, 71, k=k).tolist()))
    assert set(found) <= set(law)
    assert agrees([found[order] for order in law], list(law.values()))


def test_top_k_of_all_is_a_permutation():
    for m in (1, 5, 1024, 1500):
        scores = np.random.default_rng(m).integers(-50, 50, m)
        order = choose(scores, 0.5, 1, 73, k=m)[0]
        assert sorted(order.tolist()) == list(range(m))


@pytest.mark.slow
@pytest.mark.statistical
def test_the_rest_is_uniform_once_the_best_of_many_blocks_are_gone():
    """Two leaders in different blocks, far above 3000 equal ones."""
    scores = np.full(3000, -(10**6))
    scores[[5, 2999]] = [0, -1000]
    drawn = choose(scores, 1.0, 4000, 79, k=4)
    assert (drawn[:, :2] == [5, 2999]).all()
    rest = drawn[:, 2:].ravel() * 10 // 3000
    assert agrees(np.bincount(rest, minlength=10), np.array([299, *[300] * 8, 299]) / 2998)
    assert (drawn[:, 2] != drawn[:, 3]).all()


# -------------------------------------------------------------------------- other ways to pick one


def walk(scores, rate):
    """Permute-and-flip by its definition: all orders, all flips."""
    f = [math.exp(-(max(scores) - s) * rate) for s in scores]
    p = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        reach = 1 / math.factorial(len(scores))
        for i in order:
            p[i] += reach * f[i]
            reach *= 1 - f[i]
    return p


@pytest.mark.few(5)
@pytest.mark.statistical
@pytest.mark.parametrize("rate", [1e-6, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("scores", [[0, -1, -3, 1, 1], [7], [2, 2, 2], [2**63 - 1, -(2**63), 0, 5]])
def test_permute_and_flip_has_its_law(scores, rate):
    source, k = BitSource(83), binary_rate(Fraction(rate))
    draws = [select.permute_and_flip(np.array(scores), *k, source) for _ in range(10_000)]
    assert agrees(np.bincount(draws, minlength=len(scores)), walk(scores, rate))


def noisy_max_law(scores, rate, reach=400):
    """All values of the winner's noise; earlier candidates must stay below, later ones may tie."""
    x = np.arange(-reach, reach + 1)
    pmf = np.tanh(rate / 2) * np.exp(-rate * np.abs(x))
    cdf = np.cumsum(pmf)

    def at_most(t):
        return np.where(t < -reach, 0, cdf[np.clip(t + reach, 0, 2 * reach)])

    p = [
        sum(
            pmf
            * np.prod(
                [at_most(s + x - o - (j < i)) for j, o in enumerate(scores) if j != i], axis=0
            )
        )
        for i, s in enumerate(scores)
    ]
    return np.array(p)


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_noisy_max_has_its_law(epsilon):
    scores, source = [0, 2, 3, 3, -1], BitSource(89)
    mechanism = NoisyMax(epsilon, 2)
    draws = [mechanism(scores, source) for _ in range(5000)]
    assert agrees(np.bincount(draws, minlength=5), noisy_max_law(scores, epsilon / 2))


@pytest.mark.statistical
@pytest.mark.parametrize("count", [1, 2, 3])
def test_uniform_distinct_is_uniform(count):
    source = BitSource(97)
    found = Counter(tuple(select.uniform_distinct(4, count, source)) for _ in range(6000))
    law = list(itertools.permutations(range(4), count))
    assert agrees([found[order] for order in law], [1 / len(law)] * len(law))


@pytest.mark.statistical
def test_the_chi_square_used_here_bites():
    """A distribution off by one part in twenty is found."""
    scores = [3, 0, 5, -4, 5, 2, -20]
    counts = np.bincount(choose(scores, 0.3, 15_000, 29).ravel(), minlength=7)
    assert not agrees(counts, softmax(scores, 0.35))
    assert not agrees([10_000, 10_600], [0.5, 0.5], false_alarm=1e-4)
