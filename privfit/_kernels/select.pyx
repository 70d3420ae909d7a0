"""Exact private selection: exponential mechanism, peeling of the top k, permute-and-flip.

A rate is k / 2^scale with 0 < k < 2^32; candidate i has weight exp(-(best - score_i) rate).

The exponential mechanism proposes i in proportion to an integer weight that is at least 2^30 times
the true one, and accepts with the exact quotient, so what comes out has exactly the distribution of
the mechanism. Integer weights are sums of blocks, so a draw from a million candidates reads a
thousand block sums and one block. Peeling repeats the draw without those already taken, which is
the one-shot race of Gumbel variables in distribution.
"""

from fractions import Fraction

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stddef cimport ptrdiff_t
from libc.math cimport ldexp, log
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from privfit._kernels.losses cimport exp_minus
from privfit._kernels.random cimport (
    BitSource, EXP_ERROR, exp_fixed, gamma_fixed, tables,
)
from privfit._kernels.random import exp_interval, is_below

cdef enum:
    BLOCK = 1024         # candidates that share a block sum
    PATIENCE = 32        # rejections in a row before weights are taken anew
    WEIGHT_BITS = 30


cdef inline uint64_t difference(int64_t best, int64_t score) noexcept nogil:
    return <uint64_t>best - <uint64_t>score


cdef inline void extremes(const int64_t *scores, ptrdiff_t n, int64_t *best,
                          int64_t *least) noexcept nogil:
    """The best and the least of n > 0 scores."""
    cdef int64_t most = scores[0], fewest = scores[0]
    cdef ptrdiff_t i
    for i in range(1, n):
        most = scores[i] if scores[i] > most else most
        fewest = scores[i] if scores[i] < fewest else fewest
    best[0], least[0] = most, fewest


# ---------------------------------------------------------------------- weights to propose with


cdef inline uint32_t weight_above(int32_t gap, int32_t far, float to_log2) noexcept nogil:
    """An integer of at least 2^30 exp(-gap rate), in float; to_log2 is rate / ln 2.

    Relative errors of the argument (at most 22) are below 2^-22 in all and that of the polynomial
    is below 2^-18, so a margin of 2^-14 covers both. The caller draws in proportion to these
    integers and accepts with the exact remaining probability, so a loose bound costs time and
    nothing else.
    """
    cdef float one = 1073807360.0  # 2^30 (1 + 2^-14)
    return <uint32_t><int32_t>(exp_minus(<float>(gap if gap < far else far) * to_log2) * one) + 1


cdef inline uint64_t weights_above(const int64_t *scores, ptrdiff_t n, int64_t best, int64_t least,
                                   float to_log2, uint32_t *out) noexcept nogil:
    """Put n weights into `out`, at most BLOCK; their sum. `best` and `least` bound the scores.

    Dropping low bits of a difference can only raise its weight: so many are dropped that 31 are
    left. A smaller rate can only raise weights as well: it is at most 31, so that differences times
    the rate stay below 62, within a float's exponents. Beyond 31 / rate a weight is 1 in any case.
    """
    cdef uint64_t widest = difference(best, least)
    cdef uint32_t w, low = 0, high = 0  # halves of the sum: of 2^15 weights below 2^31
    cdef float limit, most = 31.0, edge = 2147483000.0
    cdef int32_t far = 2147483000
    cdef int drop = 0
    cdef ptrdiff_t i
    while widest >> drop > 2147483000u:
        drop += 1
        to_log2 *= 2
    to_log2 = to_log2 if to_log2 < most else most
    limit = most / to_log2
    if limit < edge:
        far = <int32_t>limit + 1
    if drop == 0:  # 32 bits of each number do
        for i in range(n):
            w = weight_above(<int32_t>(<uint32_t>best - <uint32_t>scores[i]), far, to_log2)
            out[i] = w
            low += w & 0xffff
            high += w >> 16
    else:
        for i in range(n):
            w = weight_above(<int32_t>(difference(best, scores[i]) >> drop), far, to_log2)
            out[i] = w
            low += w & 0xffff
            high += w >> 16
    return low + (<uint64_t>high << 16)


# ---------------------------------------------------------------------------------- mechanisms


cdef class Race:
    """Draws without replacement, in proportion to exp(score rate)."""

    cdef const int64_t[::1] _scores
    cdef uint32_t[BLOCK] _weights      # of the block looked at last
    cdef uint64_t *_sums               # of each block's weights, less those taken
    cdef uint64_t _only                # the sum of a single block
    cdef ptrdiff_t _blocks
    cdef uint64_t[::1] _several        # the sums of several blocks
    cdef list _taken
    cdef uint64_t _total
    cdef uint64_t _k
    cdef int _scale
    cdef float _to_log2
    cdef int64_t _best
    cdef int64_t _least
    cdef bint _stale
    cdef int _n_threads

    def __init__(self, const int64_t[::1] scores, k: int, scale: int, int n_threads=1):
        self._scores = scores
        self._k = k
        self._scale = scale
        self._to_log2 = <float>min(ldexp(<double>self._k, -scale) / log(2), 1e30)
        self._blocks = (scores.shape[0] + BLOCK - 1) // BLOCK
        self._sums = &self._only
        if self._blocks > 1:
            self._several = np.empty(self._blocks, dtype=np.uint64)
            self._sums = &self._several[0]
        self._taken = []
        self._n_threads = n_threads
        self._weigh()

    cdef ptrdiff_t _size(self, ptrdiff_t b) noexcept nogil:
        return min(<ptrdiff_t>BLOCK, self._scores.shape[0] - b * BLOCK)

    cdef int _weigh(self) except -1:
        """Block sums of the weights relative to the best candidate that is left."""
        cdef ptrdiff_t b
        if self._n_threads > 1:
            self._find_ends(np.empty((self._blocks, 2), dtype=np.int64))
        else:
            extremes(&self._scores[0], self._scores.shape[0], &self._best, &self._least)
        if self._taken:
            self._best = np.delete(np.asarray(self._scores), self._taken).max()
        if self._n_threads > 1:
            self._weigh_blocks(np.empty((self._n_threads, BLOCK), dtype=np.uint32))
        else:
            for b in range(self._blocks):
                self._sums[b] = self._weigh_block(b, self._weights)
        for b in {i // BLOCK for i in self._taken}:
            self._sums[b] = self._look(b)
        self._total = 0
        for b in range(self._blocks):
            self._total += self._sums[b]
        self._stale = False
        return 0

    cdef int _find_ends(self, int64_t[:, ::1] ends) except -1:
        cdef ptrdiff_t b, blocks = self._blocks
        cdef int n_threads = self._n_threads
        for b in prange(blocks, nogil=True, schedule="static", num_threads=n_threads):
            extremes(&self._scores[b * BLOCK], self._size(b), &ends[b, 0], &ends[b, 1])
        self._best, self._least = np.asarray(ends)[:, 0].max(), np.asarray(ends)[:, 1].min()
        return 0

    cdef int _weigh_blocks(self, uint32_t[:, ::1] buffers) except -1:
        cdef ptrdiff_t b, blocks = self._blocks
        cdef int n_threads = self._n_threads
        for b in prange(blocks, nogil=True, schedule="static", num_threads=n_threads):
            self._sums[b] = self._weigh_block(b, &buffers[threadid(), 0])
        return 0

    cdef uint64_t _weigh_block(self, ptrdiff_t b, uint32_t *weights) noexcept nogil:
        """Put the weights of block b into `weights`, of those taken too; their sum."""
        return weights_above(&self._scores[b * BLOCK], self._size(b), self._best, self._least,
                             self._to_log2, weights)

    cdef uint64_t _look(self, ptrdiff_t b) except? 0xFFFFFFFFFFFFFFFF:
        """Put the weights of block b into `_weights`, zero for those taken; their sum."""
        cdef uint64_t total = self._weigh_block(b, self._weights)
        cdef ptrdiff_t i
        for i in self._taken:
            if i // BLOCK == b:
                total -= self._weights[i % BLOCK]
                self._weights[i % BLOCK] = 0
        return total

    cdef ptrdiff_t _propose(self, BitSource source) except -1:
        """A candidate in proportion to its integer weight."""
        cdef uint64_t left = source.below(self._total)
        cdef ptrdiff_t b = 0, i = 0
        while left >= self._sums[b]:
            left -= self._sums[b]
            b += 1
        self._look(b)
        while left >= self._weights[i]:
            left -= self._weights[i]
            i += 1
        return b * BLOCK + i

    cdef bint _accept(self, BitSource source, ptrdiff_t i) except *:
        """True with probability 2^30 exp(-g) / weight, g = (best - score) rate."""
        cdef uint64_t weight = self._weights[i % BLOCK]
        cdef uint64_t gap = difference(self._best, self._scores[i])
        cdef uint64_t v = exp_fixed(tables(), gamma_fixed(gap, self._k, self._scale))
        cdef uint64_t whole = v // weight
        cdef uint64_t threshold, error, u = source.word()
        if whole >> (64 - WEIGHT_BITS):
            threshold = <uint64_t>-1
        else:
            threshold = (whole << WEIGHT_BITS) + ((v % weight) << WEIGHT_BITS) // weight
        error = ((<uint64_t>EXP_ERROR << WEIGHT_BITS) // weight) + 2
        if threshold > error and u < threshold - error:
            return True
        if u > threshold and u - threshold > error:
            return False
        g = Fraction(int(gap) * int(self._k)) / Fraction(2) ** self._scale
        w = int(weight)

        def interval(bits):
            low, high = exp_interval(g, bits + 2 * WEIGHT_BITS)
            return low // (w << WEIGHT_BITS), -(-high // (w << WEIGHT_BITS))

        return is_below(source, int(u), 64, interval)

    cdef ptrdiff_t _draw(self, BitSource source) except -1:
        cdef ptrdiff_t i
        cdef int rejections = 0
        while True:
            i = self._propose(source)
            if self._accept(source, i):
                return i
            rejections += 1
            if rejections == PATIENCE and self._stale:
                # The best are gone and what is left has tiny weights: measure from a new best.
                self._weigh()
                rejections = 0

    cdef int _remove(self, ptrdiff_t i) except -1:
        self._taken.append(i)
        self._sums[i // BLOCK] -= self._weights[i % BLOCK]
        self._total -= self._weights[i % BLOCK]
        self._stale = True
        return 0

    def take(self, BitSource source, int64_t[::1] out) -> None:
        """Fill `out` with different candidates, best chances first."""
        cdef ptrdiff_t j
        for j in range(out.shape[0]):
            out[j] = self._draw(source)
            self._remove(out[j])


def top_k(const int64_t[::1] scores, int count, k: int, scale: int, BitSource source,
          int n_threads=1) -> np.ndarray:
    """`count` different candidates by repeated exponential mechanism, in order of selection."""
    out = np.empty(count, dtype=np.int64)
    Race(scores, k, scale, n_threads).take(source, out)
    return out


def permute_and_flip(const int64_t[::1] scores, k: int, scale: int, BitSource source) -> int:
    """One candidate: walk in random order, stop with probability exp(-(best - score) rate)."""
    cdef ptrdiff_t m = scores.shape[0], i, j
    cdef int64_t best = scores[0], chosen
    cdef uint64_t v, u, gap
    cdef int64_t[::1] order = np.arange(m)
    for i in range(m):
        best = max(best, scores[i])
    for i in range(m):
        j = i + <ptrdiff_t>source.below(m - i)
        chosen = order[j]
        order[j] = order[i]
        gap = difference(best, scores[chosen])
        if gap == 0:
            return chosen
        v = exp_fixed(tables(), gamma_fixed(gap, k, scale))
        u = source.word()
        if v > EXP_ERROR and u < v - EXP_ERROR:
            return chosen
        if u <= v or u - v <= EXP_ERROR:
            g = Fraction(int(gap) * int(k)) / Fraction(2) ** scale
            if is_below(source, int(u), 64, lambda bits: exp_interval(g, bits)):
                return chosen
    raise AssertionError("the best candidate always stops the walk")


def uniform_distinct(m: int, count: int, BitSource source) -> np.ndarray:
    """`count` different numbers below m, uniformly: what range 0 means."""
    cdef int64_t[::1] order = np.arange(m)
    cdef ptrdiff_t i, j
    for i in range(count):
        j = i + <ptrdiff_t>source.below(m - i)
        order[i], order[j] = order[j], order[i]
    return np.asarray(order[:count]).copy()
