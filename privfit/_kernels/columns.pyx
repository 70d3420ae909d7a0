"""Columns of numbers and of codes, read into small integers a block at a time.

A column is any array of numbers with one dimension: its kind is given, its steps from cell to cell
are its own. A block of cells is widened to double or int64, which no kind needs more than, so that
each kernel has one loop of its own, and a loop a kind to widen it.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)

cdef enum:
    BLOCK = 512

cdef enum Kind:
    I1
    I2
    I4
    I8
    U1
    U2
    U4
    U8
    F4
    F8

KINDS = {"i1": I1, "i2": I2, "i4": I4, "i8": I8, "u1": U1, "u2": U2, "u4": U4, "u8": U8,
         "f4": F4, "f8": F8, "b1": U1}  # of the cells of a column, by what numpy calls them

ctypedef fused cell_t:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

ctypedef fused wide_t:
    int64_t
    double

ctypedef fused entry_t:
    int32_t
    int64_t

ctypedef fused out_t:
    int8_t
    int16_t
    int32_t
    int64_t


cdef inline void widen_as(const char *at, ptrdiff_t step, ptrdiff_t n, cell_t like,
                          wide_t *out) noexcept nogil:
    cdef const cell_t *cells = <const cell_t *>at
    cdef ptrdiff_t i
    if step == <ptrdiff_t>sizeof(cell_t):
        for i in range(n):
            out[i] = <wide_t>cells[i]
    else:
        for i in range(n):
            out[i] = <wide_t>(<const cell_t *>(at + i * step))[0]


cdef void widen(int kind, const char *at, ptrdiff_t step, ptrdiff_t n, wide_t *out) noexcept nogil:
    """A block of cells, as numpy's `astype` has them."""
    if kind == I1:
        widen_as[int8_t, wide_t](at, step, n, 0, out)
    elif kind == I2:
        widen_as[int16_t, wide_t](at, step, n, 0, out)
    elif kind == I4:
        widen_as[int32_t, wide_t](at, step, n, 0, out)
    elif kind == I8:
        widen_as[int64_t, wide_t](at, step, n, 0, out)
    elif kind == U1:
        widen_as[uint8_t, wide_t](at, step, n, 0, out)
    elif kind == U2:
        widen_as[uint16_t, wide_t](at, step, n, 0, out)
    elif kind == U4:
        widen_as[uint32_t, wide_t](at, step, n, 0, out)
    elif kind == U8:
        widen_as[uint64_t, wide_t](at, step, n, 0, out)
    elif wide_t is double:
        if kind == F4:
            widen_as[float, wide_t](at, step, n, 0, out)
        else:
            widen_as[double, wide_t](at, step, n, 0, out)


# -------------------------------------------------------------------------------------------- codes


cdef inline entry_t narrow_to(const entry_t *entry, ptrdiff_t n, entry_t odd,
                              out_t *out) noexcept nogil:
    cdef entry_t seen = 0
    cdef ptrdiff_t i
    for i in range(n):
        seen |= entry[i]
        out[i] = <out_t>(odd if entry[i] < 0 else entry[i])
    return seen


cdef entry_t narrow_block(const entry_t *entry, ptrdiff_t n, entry_t odd, ptrdiff_t size,
                          uint8_t *out) noexcept nogil:
    """Writes entries in `size` bytes each, and `odd` for those below zero; below zero if any is."""
    if size == 1:
        return narrow_to(entry, n, odd, <int8_t *>out)
    if size == 2:
        return narrow_to(entry, n, odd, <int16_t *>out)
    if size == 4:
        return narrow_to(entry, n, odd, <int32_t *>out)
    return narrow_to(entry, n, odd, <int64_t *>out)


def narrow(
    const int64_t[::1] entry,  # IN   (n,) below zero where a cell is odd
    int64_t odd,               # IN   what is written for those
    uint8_t[:, ::1] out,       # OUT  (n, size) whole numbers of so many bytes
):
    """Write entries; whether one is odd."""
    cdef ptrdiff_t n = entry.shape[0]
    cdef int64_t seen = 0
    if n:
        with nogil:
            seen = narrow_block(&entry[0], n, odd, out.shape[1], &out[0, 0])
    return seen < 0


cdef inline void look_up(const int64_t *table, uint64_t size, ptrdiff_t n,
                         int64_t *codes) noexcept nogil:
    """table[code + 1] of each code; table[0] of -1 and of codes that are none."""
    cdef uint64_t at
    cdef ptrdiff_t i
    for i in range(n):
        at = <uint64_t>codes[i] + 1
        codes[i] = table[at if at < size else 0]


cdef bint take_bytes(const uint8_t *codes, ptrdiff_t step, ptrdiff_t n, const int64_t *table,
                     uint64_t size, bint signed, int64_t odd, uint8_t *out) noexcept nogil:
    """Writes the entries, of a byte each, of codes of a byte each; whether one is odd."""
    cdef uint16_t[256] found  # the entry, and above it whether it is odd
    cdef uint16_t seen = 0
    cdef int64_t entry
    cdef ptrdiff_t i
    for i in range(256):
        entry = <int8_t>i if signed else i
        look_up(table, size, 1, &entry)
        found[i] = <uint8_t>odd | 256 if entry < 0 else <uint8_t>entry
    for i in range(n):
        seen |= found[codes[i * step]]
        out[i] = <uint8_t>found[codes[i * step]]
    return seen >= 256


def take(
    object codes,              # IN   (n,) whole numbers
    int kind,                  # IN   of the codes
    const int64_t[::1] table,  # IN   (values + 1,) the entry of code c is at c + 1
    int64_t odd,               # IN   as of `narrow`
    uint8_t[:, ::1] out,       # OUT  as of `narrow`
):
    """Write the entry of each code; whether one is odd."""
    cdef int64_t[BLOCK] block
    cdef int64_t seen = 0
    cdef uint64_t size = <uint64_t>table.shape[0]
    cdef ptrdiff_t first = 0, count, n = out.shape[0]
    cdef Py_buffer view
    PyObject_GetBuffer(codes, &view, PyBUF_STRIDED_RO)
    try:
        with nogil:
            if (kind == I1 or kind == U1) and out.shape[1] == 1:
                if n and take_bytes(<const uint8_t *>view.buf, view.strides[0], n, &table[0], size,
                                    kind == I1, odd, &out[0, 0]):
                    seen = -1
                first = n
            while first < n:
                count = min(n - first, <ptrdiff_t>BLOCK)
                widen(kind, <const char *>view.buf + first * view.strides[0], view.strides[0],
                      count, block)
                look_up(&table[0], size, count, block)
                seen |= narrow_block(block, count, odd, out.shape[1], &out[first, 0])
                first += count
    finally:
        PyBuffer_Release(&view)
    return seen < 0


# ------------------------------------------------------------------------------------------ numbers


cdef inline bint to_float32(const double *wide, ptrdiff_t n, float *out) noexcept nogil:
    """The nearest float32; whether one is NaN."""
    cdef bint unknown = False
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = <float>wide[i]
        unknown |= out[i] != out[i]
    return unknown


cdef inline bint take_float32(const char *at, ptrdiff_t step, ptrdiff_t n,
                              float *out) noexcept nogil:
    """Cells that are float32 already; whether one is NaN."""
    cdef const float *cells = <const float *>at
    cdef bint unknown = False
    cdef ptrdiff_t i
    if step == <ptrdiff_t>sizeof(float):
        for i in range(n):
            out[i] = cells[i]
            unknown |= out[i] != out[i]
    else:
        for i in range(n):
            out[i] = (<const float *>(at + i * step))[0]
            unknown |= out[i] != out[i]
    return unknown


cdef inline void place(const float *x, ptrdiff_t n, const float *cut, ptrdiff_t cuts,
                       int32_t *out) noexcept nogil:
    """How many cuts are at most x; a cut that is NaN is not.

    Few cuts are all compared, eight numbers at a time. Of many a search finds the place, without a
    branch: `cuts` is a power of two less one then, with NaN at the end.
    """
    cdef ptrdiff_t i, k, half
    cdef float least
    if cuts < 32:
        for i in range(n):
            out[i] = 0
        for k in range(cuts):
            least = cut[k]
            for i in range(n):
                out[i] += least <= x[i]
    else:
        for i in range(n):
            k = 0
            half = (cuts + 1) >> 1
            while half:
                k += half if cut[k + half - 1] <= x[i] else 0
                half >>= 1
            out[i] = <int32_t>k


cdef inline void scale(const float *x, ptrdiff_t n, double low, double high, double one,
                       int32_t *out) noexcept nogil:
    """The share of the range in units, rounded towards zero."""
    cdef double span = high - low, share
    cdef ptrdiff_t i
    for i in range(n):
        share = <double>x[i]
        share = low if share < low else share
        share = high if share > high else share
        out[i] = <int32_t>((share - low) / span * one)


cdef inline void mark_unknown(const float *x, ptrdiff_t n, int32_t *out) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        if x[i] != x[i]:
            out[i] = -1


cdef struct steps_args:
    int kind          # of the numbers
    const float *cut  # (cuts,) least number of the bins from the second on; see `place`
    ptrdiff_t cuts
    double low        # where there are no cuts: 0 stands for this,
    double high       # and `one` for this
    double one
    int32_t odd       # stands for NaN


cdef int32_t code_block(const char *at, ptrdiff_t step, ptrdiff_t n, const steps_args *steps,
                        ptrdiff_t size, uint8_t *out) noexcept nogil:
    """Write at most BLOCK numbers as `narrow` does; below zero if one is NaN."""
    cdef double[BLOCK] wide
    cdef float[BLOCK] x
    cdef int32_t[BLOCK] entry
    cdef bint unknown
    if steps.kind == F4:
        unknown = take_float32(at, step, n, x)
    else:
        widen(steps.kind, at, step, n, wide)
        unknown = to_float32(wide, n, x)
    if steps.cuts:
        place(x, n, steps.cut, steps.cuts, entry)
    else:
        scale(x, n, steps.low, steps.high, steps.one, entry)
    if unknown:
        mark_unknown(x, n, entry)
    return narrow_block(entry, n, steps.odd, size, out)


def code_numbers(
    object numbers,          # IN   (n,)
    int kind,                # IN   of the numbers
    const float[::1] cut,    # IN   (cuts,) as of `steps_args`, like the others
    double low,              # IN
    double high,             # IN
    double one,              # IN
    int32_t odd,             # IN
    uint8_t[:, ::1] out,     # OUT  as of `narrow`
):
    """Write the bin of each number, or its share of the range; whether one is NaN."""
    cdef int32_t seen = 0
    cdef ptrdiff_t first = 0, count, n = out.shape[0], cuts = cut.shape[0]
    cdef const float *least = &cut[0] if cuts else NULL
    cdef steps_args steps = steps_args(kind, least, cuts, low, high, one, odd)
    cdef Py_buffer view
    PyObject_GetBuffer(numbers, &view, PyBUF_STRIDED_RO)
    try:
        with nogil:
            while first < n:
                count = min(n - first, <ptrdiff_t>BLOCK)
                seen |= code_block(<const char *>view.buf + first * view.strides[0],
                                   view.strides[0], count, &steps, out.shape[1], &out[first, 0])
                first += count
    finally:
        PyBuffer_Release(&view)
    return seen < 0


def code_table(
    object numbers,               # IN   (n, d)
    int kind,                     # IN   of the numbers
    const double[:, ::1] ranges,  # IN   (d, 3) what 0 and `one` stand for, and `one`
    const int32_t[::1] odd,       # IN   (d,) stands for NaN
    uint8_t[::1] seen,            # OUT  (d,) whether a column has one
    int16_t[:, ::1] out,          # OUT  (d, n) shares of the ranges
):
    """Write shares of numbers that are side by side: of some records, column by column."""
    cdef ptrdiff_t first = 0, count, j, n = out.shape[1], d = out.shape[0]
    cdef steps_args steps
    cdef Py_buffer view
    PyObject_GetBuffer(numbers, &view, PyBUF_STRIDED_RO)
    try:
        with nogil:
            while first < n:
                count = min(n - first, <ptrdiff_t>BLOCK)
                for j in range(d):
                    steps = steps_args(kind, NULL, 0, ranges[j, 0], ranges[j, 1], ranges[j, 2],
                                       odd[j])
                    seen[j] |= code_block(
                        <const char *>view.buf + first * view.strides[0] + j * view.strides[1],
                        view.strides[0], count, &steps, 2, <uint8_t *>&out[j, first]) < 0
                first += count
    finally:
        PyBuffer_Release(&view)


cdef inline void search(const double *x, ptrdiff_t n, const double *known, const int64_t *entries,
                        ptrdiff_t size, int64_t *out) noexcept nogil:
    """The entry of each number among the known ones, which ascend; -1 if it is not among them.

    A fraction is that of its float32. There are a power of two of them less one, NaN at the end,
    and none from 2^53 on.
    """
    cdef ptrdiff_t i, k, half
    cdef double number, limit = 9007199254740992.0  # 2^53
    for i in range(n):
        number = x[i]
        if -limit < number < limit and number != <double><int64_t>number:
            number = <double><float>number
        k = 0
        half = (size + 1) >> 1
        while half:
            k += half if known[k + half - 1] < number else 0
            half >>= 1
        out[i] = entries[k] if k < size and known[k] == number else -1


def find_numbers(
    object numbers,              # IN   (n,)
    int kind,                    # IN   of the numbers
    const double[::1] known,     # IN   (size,) see `search`
    const int64_t[::1] entries,  # IN   (size,)
    int64_t odd,                 # IN   stands for numbers that are not known
    uint8_t[:, ::1] out,         # OUT  as of `narrow`
):
    """Write the entry of each number; whether one is not known."""
    cdef double[BLOCK] wide
    cdef int64_t[BLOCK] entry
    cdef int64_t seen = 0
    cdef ptrdiff_t first = 0, count, n = out.shape[0], size = known.shape[0]
    cdef const double *sorted_ones = &known[0] if size else NULL
    cdef const int64_t *their = &entries[0] if size else NULL
    cdef Py_buffer view
    PyObject_GetBuffer(numbers, &view, PyBUF_STRIDED_RO)
    try:
        with nogil:
            while first < n:
                count = min(n - first, <ptrdiff_t>BLOCK)
                widen(kind, <const char *>view.buf + first * view.strides[0], view.strides[0],
                      count, wide)
                search(wide, count, sorted_ones, their, size, entry)
                seen |= narrow_block(entry, count, odd, out.shape[1], &out[first, 0])
                first += count
    finally:
        PyBuffer_Release(&view)
    return seen < 0
