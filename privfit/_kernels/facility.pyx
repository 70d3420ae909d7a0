"""Clipped distances to public facilities, kept in one or two bytes, and minima over sets of them.

The matrix has a row for each facility, padded to whole strips of records, so that a set's minimum
streams k rows. Tiles are rows (first, count, 0) of an int64 array; each thread owns a row of OUT.
"""

from cython.parallel cimport prange, threadid
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from privfit._kernels.facilities cimport (
    STRIP, clip_store, clip_transpose, code_store, code_strip, least_sum, lesser_sum, root_store,
    short_panel, small, swaps,
)
from privfit._kernels.grid cimport PANEL, QUAD, WIDTH
from privfit._kernels.lanes cimport LANES, LOOKS
from privfit._kernels.margins cimport (
    L1, L2, distance_wide, margins, own_sums, sparse_margins,
)
from privfit._kernels.records cimport SparseRows

STRIP_ROWS = STRIP  # rows are read in strips of this many records
TOGETHER = LANES    # facilities whose swaps are summed at once, one to a lane
QUICK_CODES = bool(LOOKS)  # whether `code_distances` is faster than `onehot_distances`

cdef enum:
    BLOCK_ROWS = 8192      # records whose nearest members stay in the second level of cache
    BLOCK_FACILITIES = 16  # facilities that meet them there
    CODE_STRIPS = 4        # strips of records whose codes share the first level with a facility's


def dense_distances(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,        # IN   (quads, pairs, QUAD): facilities, as int16 pairs
    int32_t low,                       # IN   clip bounds in record units
    int32_t high,
    int shift,                         # IN   record units to score units
    int32_t[:, :, ::1] work,           # WORK (threads, QUAD, rows of the largest tile, padded)
    small[:, ::1] out,                 # OUT  (facilities, n padded)
):
    """out[f, r] = round((clip(l1(x_r - f), low, high) - low) / 2^shift)."""
    cdef ptrdiff_t t, q, c, first, rows
    cdef int n_threads = work.shape[0], me
    cdef int32_t[QUAD] start = [0, 0, 0, 0]
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        for q in range(w.shape[0]):
            margins(L1, &panels[first // PANEL, 0, 0], (rows + PANEL - 1) // PANEL,
                    panels.shape[1], &w[q, 0, 0], start, &work[me, 0, 0], work.shape[2])
            for c in range(min(<ptrdiff_t>QUAD, out.shape[0] - q * QUAD)):
                clip_store(&work[me, c, 0], rows, low, high, shift, &out[q * QUAD + c, first])


def short_distances(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,        # IN   (quads, pairs, QUAD): facilities, as int16 pairs
    const int32_t[:, :, ::1] start,    # IN   (quads, chunks, QUAD): see facilities
    const int32_t[:, ::1] level,       # IN   (quads, QUAD)
    ptrdiff_t chunk,                   # IN   pairs in a chunk
    int shift,                         # IN   record units to score units
    int top,                           # IN   the largest distance, in score units
    int32_t[:, ::1] work,              # WORK (threads, rows of the largest tile, padded)
    small[:, ::1] out,                 # OUT  (facilities, n padded)
):
    """As `dense_distances`, by sums of 16 bits: level is less `low`, and rounds halves upwards."""
    cdef ptrdiff_t t, q, p, first, n_panels, pairs = panels.shape[1]
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0] // PANEL
        n_panels = (tile_rows[t, 1] + PANEL - 1) // PANEL
        own_sums(&panels[first, 0, 0], n_panels, pairs, &work[me, 0])
        for q in range(w.shape[0]):
            for p in range(n_panels):
                short_panel(&panels[first + p, 0, 0], pairs, &w[q, 0, 0], &start[q, 0, 0], chunk,
                            &level[q, 0], &work[me, p * PANEL], shift, top,
                            out.shape[0] - q * QUAD, &out[q * QUAD, (first + p) * PANEL],
                            out.shape[1])


def onehot_distances(
    SparseRows records,                # IN   records of zeros and ones only
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,        # IN   (groups, d + 1, WIDTH): 1 - 2 f_j, last the sum of f
    int32_t low,                       # IN   clip bounds in record units
    int32_t high,
    int shift,                         # IN   record units to score units
    int32_t[:, :, ::1] work,           # WORK (threads, PANEL, WIDTH)
    small[:, ::1] out,                 # OUT  (facilities, n padded)
):
    """The same for one-hot records: l1(x - f) = sum of f + sum over ones of (1 - 2 f_j)."""
    cdef ptrdiff_t t, g, p, first, last, stop, facilities
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        for g in range(w.shape[0]):
            facilities = min(<ptrdiff_t>WIDTH, out.shape[0] - g * WIDTH)
            for p in range((tile_rows[t, 1] + PANEL - 1) // PANEL):
                first = tile_rows[t, 0] + p * PANEL
                last = min(first + PANEL, stop)
                sparse_margins(&records.view, first, last, &w[g, 0, 0], w.shape[1] - 1, 0,
                               &work[me, 0, 0])
                clip_transpose(&work[me, 0, 0], last - first, facilities, low, high, shift,
                               &out[g * WIDTH, first], out.shape[1])


cdef void strip_distances(const uint8_t *codes, ptrdiff_t stride, const uint8_t *looks,
                          const uint8_t *place, ptrdiff_t fours, const uint8_t *stored,
                          int32_t least, ptrdiff_t sixteens, small *out) noexcept nogil:
    cdef uint8_t[STRIP] count
    code_strip(codes, stride, looks, place, fours, count)
    code_store(count, stored, least, sixteens, out)


def code_distances(
    const uint8_t[:, ::1] codes,       # IN   (fours, n padded): four columns of zeros and ones
    const uint8_t[:, ::1] places,      # IN   (some facilities, fours): the same of each facility
    const uint8_t[:, ::1] looks,       # IN   (16, 16): columns in which two codes differ
    const uint8_t[:, :, ::1] stored,   # IN   (2, sixteens, 16): low and high bytes of what is kept
    int32_t least,                     # IN   for `least` columns that differ in all, and more
    small[:, ::1] out,                 # OUT  (some facilities, n padded)
    int n_threads,
):
    """out[f, r] = stored[columns in which f and r differ]: at most 63 codes, so that bytes hold."""
    cdef ptrdiff_t t, f, s, strips = codes.shape[1] // STRIP
    for t in prange((strips + CODE_STRIPS - 1) // CODE_STRIPS, nogil=True, schedule="dynamic",
                    num_threads=n_threads):
        for f in range(places.shape[0]):
            for s in range(t * CODE_STRIPS, min((t + 1) * CODE_STRIPS, strips)):
                strip_distances(&codes[0, s * STRIP], codes.shape[1], &looks[0, 0], &places[f, 0],
                                codes.shape[0], &stored[0, 0, 0], least, stored.shape[1],
                                &out[f, s * STRIP])


def root_distances(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const double[:, ::1] places,         # IN   (facilities, 2 * pairs) whole numbers
    double low,                          # IN   clip bounds in record units
    double high,
    double unit,                         # IN   a score unit in record units, a power of two
    double[:, ::1] work,                 # WORK (threads, rows of the largest tile, padded)
    small[:, ::1] out,                   # OUT  (facilities, n padded)
):
    """out[f, r] = round((clip(l2(x_r - f), low, high) - low) / unit)."""
    cdef ptrdiff_t t, f, first, rows
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        for f in range(places.shape[0]):
            distance_wide(&panels[first // PANEL, 0, 0, 0], (rows + PANEL - 1) // PANEL,
                          panels.shape[1], &places[f, 0], L2, &work[me, 0])
            root_store(&work[me, 0], rows, low, high, unit, &out[f, first])


def least_sums(
    const small[:, ::1] matrix,        # IN   (facilities, n padded)
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[:, ::1] sets,        # IN   (m, k) facility indices
    int64_t[:, ::1] out,               # OUT  (threads, m)
):
    """Add the sum over records of the least distance to a set, for each of m sets."""
    cdef ptrdiff_t t, i
    cdef int n_threads = out.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        for i in range(sets.shape[0]):
            out[me, i] += least_sum(&matrix[0, tile_rows[t, 0]], matrix.shape[1], &sets[i, 0],
                                    sets.shape[1], tile_rows[t, 1])


def nearest_two(
    const small[:, ::1] matrix,        # IN   (facilities, n padded)
    const int64_t[::1] members,        # IN   (k,) facility indices
    small[:, ::1] distances,           # OUT  (2, n): nearest, second nearest
    int32_t[::1] which,                # OUT  (n,) position in `members` of the nearest
    int n_threads,
):
    """Each record's two nearest facilities of a set; of one facility alone, the largest number."""
    cdef ptrdiff_t r, i
    cdef small v
    cdef small largest = <small>(-1)
    for r in prange(which.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        distances[0, r] = largest
        distances[1, r] = largest
        which[r] = 0
        for i in range(members.shape[0]):
            v = matrix[members[i], r]
            if v < distances[0, r]:
                distances[1, r] = distances[0, r]
                distances[0, r] = v
                which[r] = <int32_t>i
            elif v < distances[1, r]:
                distances[1, r] = v


def swap_sums(
    const small[:, ::1] matrix,        # IN   (facilities, n padded)
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const small[:, ::1] distances,     # IN   (2, n) from `nearest_two`
    const int32_t[::1] which,          # IN   (n,)
    const int64_t[::1] replaced,       # IN   (m,) position in the set that is given up
    const int64_t[::1] facility,       # IN   (m,) facility that takes its place
    small[:, ::1] work,                # WORK (threads, rows of the largest tile)
    int64_t[:, ::1] out,               # OUT  (threads, m)
):
    """Add the cost of the set with one facility replaced, for each of m replacements."""
    cdef ptrdiff_t t, i, r, first, rows
    cdef small *kept
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        kept = &work[me, 0]
        for i in range(replaced.shape[0]):
            if i == 0 or replaced[i] != replaced[i - 1]:
                for r in range(rows):
                    kept[r] = (distances[1, first + r] if which[first + r] == replaced[i]
                               else distances[0, first + r])
            out[me, i] += lesser_sum(&matrix[facility[i], first], kept, rows)


def addition_sums(
    const small[:, ::1] matrix,        # IN   (some facilities, n padded)
    const small[::1] nearest,          # IN   (n,) distance to the nearest member so far
    int64_t[::1] out,                  # OUT  (some facilities,)
    int n_threads,
):
    """The cost of a set with one facility added, for each facility."""
    cdef ptrdiff_t b, f, t, first, n = nearest.shape[0]
    cdef ptrdiff_t blocks = (matrix.shape[0] + BLOCK_FACILITIES - 1) // BLOCK_FACILITIES
    for b in prange(blocks, nogil=True, schedule="dynamic", num_threads=n_threads):
        for f in range(b * BLOCK_FACILITIES, min((b + 1) * BLOCK_FACILITIES, matrix.shape[0])):
            out[f] = 0
        for t in range((n + BLOCK_ROWS - 1) // BLOCK_ROWS):
            first = t * BLOCK_ROWS
            for f in range(b * BLOCK_FACILITIES, min((b + 1) * BLOCK_FACILITIES, matrix.shape[0])):
                out[f] += lesser_sum(&matrix[f, first], &nearest[first],
                                     min(<ptrdiff_t>BLOCK_ROWS, n - first))


def all_swap_sums(
    const small[:, ::1] matrix,        # IN   (some facilities, n padded)
    const small[:, ::1] distances,     # IN   (2, n) from `nearest_two`
    const int32_t[::1] which,          # IN   (n,)
    int32_t[:, :, ::1] work,           # WORK (threads, k + 1, TOGETHER)
    int64_t[:, ::1] out,               # OUT  (some facilities, k)
):
    """The cost of the set with member i replaced by facility f, for all i and f in one pass.

    With d, e the distances to the nearest and second nearest member, and v to f, a record costs
    min(v, e) if its nearest member is the one that goes, else min(v, d). So the sum of min(v, d)
    over all records serves every i, and the records of i add min(v, e) - min(v, d).
    """
    cdef ptrdiff_t b, c, t, i, f, count, first, rows, n = which.shape[0], k = out.shape[1]
    cdef int n_threads = work.shape[0], me
    cdef int32_t *sums
    for b in prange((matrix.shape[0] + LANES - 1) // LANES, nogil=True, schedule="dynamic",
                    num_threads=n_threads):
        me = threadid()
        sums = &work[me, 0, 0]
        f = b * LANES
        count = min(<ptrdiff_t>LANES, matrix.shape[0] - f)
        for c in range(count):
            for i in range(k):
                out[f + c, i] = 0
        for t in range((n + BLOCK_ROWS - 1) // BLOCK_ROWS):
            first = t * BLOCK_ROWS
            rows = min(<ptrdiff_t>BLOCK_ROWS, n - first)
            for i in range(k * LANES):
                sums[i] = 0
            swaps(&matrix[f, first], matrix.shape[1], count, &distances[0, first],
                  &distances[1, first], &which[first], rows, sums + k * LANES, sums)
            for c in range(count):
                for i in range(k):
                    out[f + c, i] += <int64_t>sums[k * LANES + c] + sums[i * LANES + c]
