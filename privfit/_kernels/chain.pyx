"""The Metropolis-Hastings chain over synthetic data sets (Lee and Kifer), with their acceptance
put right.

The state is n synthetic records. A step draws an index j and a record x from the mixture

    q(x) = sum over sets s and clusters c of weight[s, c] N(x; center[s, c], variance I)

and replaces record j by x, or leaves the state alone. A proposal that lies outside the domain is
refused. Otherwise it is accepted if ln u < beta gain + tilt (ln q(old) - ln q(x)), where gain is
the change of the log likelihood of the released counts and sums.

Detailed balance. j and x do not depend on the state, so the chain goes from D to D' (record j: y
becomes x) with the flow

    pi(D) (1/n) q(x) min(1, r),   r = (L(D') / L(D))^beta (q(y) / q(x))^tilt.

With pi(D) = L(D)^beta product over records z of q(z)^(1 - tilt) inside the domain, and 0 outside,

    pi(D') q(y) / (pi(D) q(x)) = (L'/L)^beta (q(x)/q(y))^(1 - tilt) q(y)/q(x) = r,

so the flow back is pi(D') (1/n) q(y) min(1, 1/r) = pi(D) (1/n) q(x) r min(1, 1/r), the same. So
tilt = 1 has the posterior of a uniform prior, as in the paper, and tilt = 0 that of records drawn
from q itself. q is the density of the whole mixture: with that of the drawn component alone the
ratio would depend on something that is not in the state. Rounding a record to the grid multiplies
q by the volume of a cell, which is the same for all cells.

Proposals do not depend on the state, so CROWD of them are drawn, assigned to clusters under each
set and given their density together; then they are walked one by one. Records and centres are
int16 on one grid: clusters, counts and sums are exact, and ties go to the lowest index.
"""

import numpy as np

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t

from privfit._kernels.draws cimport STREAMS, log_uniforms, normals, stream_words
from privfit._kernels.grid cimport PANEL, QUAD
from privfit._kernels.margins cimport L2, margins
from privfit._kernels.proposals cimport (
    CROWD, chain_source, density, lay_out, nearest_centers, place, refuse_strays,
)
from privfit._kernels.random cimport BitSource
from privfit._kernels.walks cimport (
    chain_block, chain_state, log_likelihood, save_best, walk_block,
)

CROWD_SIZE = CROWD
STREAM_COUNT = STREAMS


def streams(BitSource source) -> np.ndarray:
    """uint64 (4, STREAMS): seeds of the fast generators, from a source of random bits."""
    cdef uint64_t[:, ::1] state = np.empty((4, STREAMS), dtype=np.uint64)
    cdef ptrdiff_t i, j
    for i in range(4):
        for j in range(STREAMS):
            state[i, j] = source.word()
    return np.asarray(state)


def quads(const int16_t[:, ::1] centers):
    """Centres (m, d) as `margins` takes them: w (quads, pairs, QUAD), start (quads, QUAD).

    w are pairs of int16, -2 c; start is the square of c. The last centre fills the last quad.
    """
    cdef ptrdiff_t m = centers.shape[0], d = centers.shape[1], i, j, c
    cdef ptrdiff_t pairs = (d + 1) // 2, n_quads = (m + QUAD - 1) // QUAD
    cdef int16_t[:, :, :, ::1] w = np.zeros((n_quads, pairs, QUAD, 2), dtype=np.int16)
    cdef int32_t[:, ::1] start = np.zeros((n_quads, QUAD), dtype=np.int32)
    for i in range(n_quads * QUAD):
        c = min(i, m - 1)
        for j in range(d):
            w[i // QUAD, j // 2, i % QUAD, j % 2] = -2 * centers[c, j]
            start[i // QUAD, i % QUAD] += <int32_t>centers[c, j] * centers[c, j]
    return np.asarray(w).view(np.int32)[..., 0], np.asarray(start)


cdef class Mixture:
    """Where proposals come from, how records are assigned, and buffers for CROWD proposals.

    The first `n_assign` sets of centres assign; all of them propose. A component is drawn by its
    share of `slots`.
    """

    cdef chain_source _source
    cdef const double[:, ::1] _centers         # (sets k, d)
    cdef const int32_t[:, :, ::1] _w           # (quads, pairs, QUAD)
    cdef const int32_t[:, ::1] _start          # (quads, QUAD)
    cdef const uint16_t[::1] _slots            # (2^slot_bits,) components
    cdef float[::1] _weight                    # (sets k,)
    cdef const double[::1] _spread             # (d,)
    cdef const double[:, ::1] _bounds          # (2, d)
    cdef double _precision
    cdef ptrdiff_t _k, _d, _n_assign, _width
    # WORK: one block of proposals
    cdef uint64_t[:, ::1] _words               # (2 + pairs, CROWD)
    cdef double[:, ::1] _noise                 # (2 pairs, CROWD)
    cdef int32_t[:, ::1] _whole                # (2 pairs, CROWD)
    cdef int16_t[:, :, :, ::1] _panels         # (CROWD / PANEL, pairs, PANEL, 2)
    cdef int32_t[:, ::1] _z                    # (quads QUAD, CROWD)
    cdef int32_t[:, ::1] _which                # (sets, CROWD) nearest components
    cdef int32_t[:, ::1] _least                # (sets, CROWD)
    cdef double[::1] _square                   # (CROWD,)
    cdef int32_t[::1] _component               # (CROWD,)
    cdef int32_t[::1] _index                   # (CROWD,)
    cdef int16_t[:, ::1] _points               # (CROWD, width)
    cdef uint16_t[:, ::1] _ids                 # (CROWD, n_assign)
    cdef double[::1] _log_q                    # (CROWD,)
    cdef double[::1] _log_u                    # (CROWD,)

    def __init__(
        self,
        const int16_t[:, :, ::1] centers,      # IN (sets, k, d)
        int n_assign,                          # IN sets that assign, at most all
        const uint16_t[::1] slots,             # IN (a power of two,) components
        const double[::1] spread,              # IN (d,) standard deviations; 0 holds a column
        double precision,                      # IN 1 / (2 variance) of the density
        const double[:, ::1] bounds,           # IN (2, d) least and largest coordinate
        int norm,                              # IN 0: a box; 1, 2: an l1 or l2 ball as well
        double limit,                          # IN radius of the ball, squared for l2
    ):
        cdef ptrdiff_t pairs = (centers.shape[2] + 1) // 2, i
        self._k = centers.shape[1]
        self._d = centers.shape[2]
        self._n_assign = n_assign
        self._width = (self._d + 4) // 4 * 4
        flat = np.asarray(centers).reshape(-1, self._d)
        self._centers = flat.astype(np.float64)
        self._w, self._start = quads(flat)
        self._slots = slots
        self._weight = np.zeros(self._centers.shape[0], dtype=np.float32)
        for i in range(slots.shape[0]):
            self._weight[slots[i]] += 1.0
        for i in range(self._weight.shape[0]):
            self._weight[i] /= slots.shape[0]
        self._spread = spread
        self._bounds = bounds
        self._source.d = self._d
        self._source.centers = &self._centers[0, 0]
        self._source.slots = &self._slots[0]
        self._source.slot_shift = 65 - int(slots.shape[0]).bit_length()
        self._source.norm = norm
        self._source.spread = &self._spread[0]
        self._source.bounds = &self._bounds[0, 0]
        self._source.limit = limit
        self._precision = precision
        self._words = np.zeros((2 + pairs, CROWD), dtype=np.uint64)
        self._noise = np.zeros((2 * pairs, CROWD))
        self._whole = np.zeros((2 * pairs, CROWD), dtype=np.int32)
        self._panels = np.zeros((CROWD // PANEL, pairs, PANEL, 2), dtype=np.int16)
        self._z = np.zeros((self._w.shape[0] * QUAD, CROWD), dtype=np.int32)
        self._which = np.zeros((centers.shape[0], CROWD), dtype=np.int32)
        self._least = np.zeros((centers.shape[0], CROWD), dtype=np.int32)
        self._square = np.zeros(CROWD)
        self._component = np.zeros(CROWD, dtype=np.int32)
        self._index = np.zeros(CROWD, dtype=np.int32)
        self._points = np.zeros((CROWD, self._width), dtype=np.int16)
        for i in range(CROWD):
            self._points[i, self._d] = 1
        self._ids = np.zeros((CROWD, n_assign), dtype=np.uint16)
        self._log_q = np.zeros(CROWD)
        self._log_u = np.zeros(CROWD)

    cdef void _draw(self, uint64_t *state, uint64_t n) noexcept nogil:
        """A block: which point to replace, by what, and ln u; infinity refuses what is outside.

        Words of a block: CROWD whose upper bits are a slot and whose lower half is an index, CROWD
        uniform numbers, then CROWD for each two columns. An index is uniform up to n / 2^32, and
        need not be more: the same index goes there and back.
        """
        cdef ptrdiff_t j, pairs = self._panels.shape[1]
        stream_words(state, (2 + pairs) * CROWD, &self._words[0, 0])
        log_uniforms(&self._words[1, 0], CROWD, &self._log_u[0])
        for j in range(pairs):
            normals(&self._words[2 + j, 0], CROWD, &self._noise[2 * j, 0],
                    &self._noise[2 * j + 1, 0])
        place(&self._source, &self._words[0, 0], n, &self._noise[0, 0], &self._whole[0, 0],
              &self._component[0], &self._index[0], &self._log_u[0])

    cdef void _look(self) noexcept nogil:
        """Clusters and density of the block's points."""
        cdef ptrdiff_t i, q, t
        lay_out(&self._whole[0, 0], self._d, self._width, &self._points[0, 0],
                &self._panels[0, 0, 0, 0], &self._square[0])
        for q in range(self._w.shape[0]):
            margins(L2, <const int32_t *>&self._panels[0, 0, 0, 0], CROWD // PANEL,
                    self._panels.shape[1], &self._w[q, 0, 0], &self._start[q, 0],
                    &self._z[q * QUAD, 0], CROWD)
        for t in range(self._which.shape[0]):
            nearest_centers(&self._z[t * self._k, 0], self._k, <int32_t>(t * self._k),
                            &self._which[t, 0], &self._least[t, 0])
        for i in range(CROWD):
            for t in range(self._n_assign):
                self._ids[i, t] = <uint16_t>self._which[t, i]
        density(&self._which[0, 0], &self._least[0, 0], self._which.shape[0], &self._weight[0],
                self._precision, &self._square[0], &self._log_q[0])

    cdef void _next(self, uint64_t *state, uint64_t n) noexcept nogil:
        """Draw a block, and look at it."""
        self._draw(state, n)
        self._look()
        refuse_strays(&self._component[0], &self._which[0, 0], self._which.shape[0],
                      &self._log_u[0])


def assign(
    Mixture mixture,               # IN   (and WORK)
    const int16_t[:, ::1] points,  # IN   (n, width): records, a one, zeros
    uint16_t[:, ::1] ids,          # OUT  (n, n_assign): t k + nearest centre of set t
    double[::1] log_q,             # OUT  (n,): ln of the mixture's density
):
    """Clusters and density of records, as the chain has them."""
    cdef ptrdiff_t block, first, i, j, n = points.shape[0], count
    with nogil:
        for block in range((n + CROWD - 1) // CROWD):
            first = block * CROWD
            count = min(<ptrdiff_t>CROWD, n - first)
            for i in range(count):
                for j in range(mixture._d):
                    mixture._whole[j, i] = points[first + i, j]
            mixture._look()
            for i in range(count):
                for j in range(mixture._n_assign):
                    ids[first + i, j] = mixture._ids[i, j]
                log_q[first + i] = mixture._log_q[i]


def propose(
    Mixture mixture,               # IN   (and WORK)
    uint64_t[:, ::1] state,        # IN OUT (4, STREAMS) of `streams`
    ptrdiff_t n,                   # IN   number of records
):
    """The next block, as the chain would walk it: (index, points, ids, log_q, log_u), copied."""
    mixture._next(&state[0, 0], <uint64_t>n)
    return (np.array(mixture._index), np.array(mixture._points), np.array(mixture._ids),
            np.array(mixture._log_q), np.array(mixture._log_u))


def walk(
    Mixture mixture,               # IN   (and WORK)
    uint64_t[:, ::1] state,        # IN OUT (4, STREAMS) of `streams`
    int16_t[:, ::1] points,        # IN OUT (n, width)
    uint16_t[:, ::1] ids,          # IN OUT (n, n_assign) of `assign`
    double[::1] log_q,             # IN OUT (n,) of `assign`
    double[:, ::1] rows,           # IN OUT (n_assign k, width): released less synthetic values
    const double[::1] weight,      # IN   (width,): 1 / scale, or 1 / (2 scale^2); 0 for padding
    bint quadratic,                # IN   Gaussian noise
    const double[::1] betas,       # IN   (blocks,): inverse temperature of each block of CROWD
    ptrdiff_t steps,               # IN   at most blocks * CROWD
    double tilt,                   # IN   1: a uniform prior, 0: the mixture itself
    int16_t[:, ::1] best,          # IN OUT (n, width): points of the best state, but for the stale
    int64_t[::1] stale,            # IN OUT (n,): points that changed since then
    uint8_t[::1] is_stale,         # IN OUT (n,)
    int64_t[::1] counters,         # IN OUT (3,): how many are stale, at the best state, accepted
    double[::1] values,            # IN OUT (2,): log likelihood now, and of the best state
):
    """Walk `steps` steps. Afterwards `best` is the best state, whole.

    Begin with best = points, nothing stale, counters (0, 1, 0) and both values minus infinity.
    """
    cdef chain_state s
    cdef chain_block b
    cdef ptrdiff_t done = 0, n = points.shape[0]
    s.sets = mixture._n_assign
    s.width = mixture._width
    s.points = &points[0, 0]
    s.ids = &ids[0, 0]
    s.log_q = &log_q[0]
    s.rows = &rows[0, 0]
    s.weight = &weight[0]
    s.best = &best[0, 0]
    s.stale = &stale[0]
    s.is_stale = &is_stale[0]
    s.n_stale, s.at_best, s.accepted = counters[0], counters[1] != 0, counters[2]
    s.best_value = values[1]
    b.index = &mixture._index[0]
    b.points = &mixture._points[0, 0]
    b.ids = &mixture._ids[0, 0]
    b.log_q = &mixture._log_q[0]
    b.log_u = &mixture._log_u[0]
    b.tilt = tilt
    with nogil:
        s.value = log_likelihood(&s, rows.shape[0], quadratic)
        if s.at_best:
            s.best_value = s.value
        while done < steps:
            b.n = min(<ptrdiff_t>CROWD, steps - done)
            b.beta = betas[done // CROWD]
            mixture._next(&state[0, 0], <uint64_t>n)
            walk_block(&s, &b, quadratic)
            done += b.n
        if s.at_best:
            save_best(&s)
    counters[0], counters[1], counters[2] = s.n_stale, s.at_best, s.accepted
    values[0], values[1] = s.value, s.best_value
