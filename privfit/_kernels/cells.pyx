"""Cells of CSV text: where they lie, and which numbers they write.

A record is a line. It ends with a line feed; one carriage return before that belongs to the end,
and any other is a character like all others, as is a zero byte. A field that begins with a quote
ends with the next quote that is not doubled, or with its line; what follows the closing quote is
part of the field, and a quote in any other field is a character. Nothing in one record changes how
another is read, unless line breaks are declared: then a quoted field may go on behind its line, for
at most `widest` bytes. If no quote closes it by then, it is read as if none were declared.

A cell is one int64: where it begins, its length, and whether quotes are to be taken out of it,
``begin << 32 | length << 1 | odd``; -1 stands for a field that the record does not have. Text is
never written to, so that threads may read one block.
"""

from libc.math cimport INFINITY, NAN
from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, memset

cdef enum:
    TAB = 9
    LF = 10
    CR = 13
    SPACE = 32
    QUOTE = 34
    PLUS = 43
    MINUS = 45
    DOT = 46
    ZERO = 48

cdef extern from "bytes.h" nogil:
    uint64_t bytes_among(const uint8_t *p, uint8_t a, uint8_t b)
    int lowest_bit(uint64_t found)

cdef enum Kind:
    NO_NUMBER
    NUMBER
    LONG_NUMBER


cdef inline const uint8_t *begin_of(const uint8_t *text, int64_t word) noexcept nogil:
    return text + (word >> 32)


cdef inline ptrdiff_t length_of(int64_t word) noexcept nogil:
    return <uint32_t>word >> 1


# ------------------------------------------------------------------------------------------ records


cdef ptrdiff_t closing(const uint8_t *text, ptrdiff_t at, ptrdiff_t stop,
                       bint line_breaks, bint *odd) noexcept nogil:
    """The quote that closes a field whose content begins at `at`; -1 if none does before `stop`.

    text[stop - 1] is a line feed, so that a quote is never the last byte.
    """
    while at < stop:
        if text[at] == QUOTE:
            if text[at + 1] != QUOTE:
                return at
            odd[0] = True
            at += 1
        elif text[at] == LF and not line_breaks:
            return -1
        at += 1
    return -1


cdef struct Ends:
    ptrdiff_t size       # of the text
    uint8_t delimiter
    ptrdiff_t first      # of 64 bytes,
    uint64_t found       # those among them that end a field: the first one is the lowest bit


cdef void look_on(const uint8_t *text, ptrdiff_t first, Ends *ends) noexcept nogil:
    """Finds the ends of fields among 64 bytes, or as many as there are."""
    cdef uint8_t[64] last
    ends.first = first
    if first + 64 <= ends.size:
        ends.found = bytes_among(text + first, LF, ends.delimiter)
    else:
        memset(last, 0, 64)
        memcpy(last, text + first, <size_t>(ends.size - first))
        ends.found = bytes_among(last, LF, ends.delimiter)


cdef inline ptrdiff_t next_end(const uint8_t *text, ptrdiff_t at, Ends *ends) noexcept nogil:
    """The next delimiter or line feed; text ends with one, and `at` never goes back."""
    cdef uint64_t found
    if at >= ends.first + 64:
        look_on(text, at, ends)
    while True:
        found = ends.found >> (at - ends.first)
        if found:
            return at + lowest_bit(found)
        at = ends.first + 64
        look_on(text, at, ends)


cdef inline ptrdiff_t line_end(const uint8_t *text, ptrdiff_t at, ptrdiff_t end) noexcept nogil:
    return <const uint8_t *>memchr(text + at, LF, <size_t>(end - at)) - text


cdef inline int64_t cell(const uint8_t *text, ptrdiff_t first, ptrdiff_t last,
                         bint odd) noexcept nogil:
    """The bytes first:last; a carriage return before a line feed is not part of them."""
    if text[last] == LF and last > first and text[last - 1] == CR:
        last -= 1
    return <int64_t>first << 32 | <int64_t>(last - first) << 1 | odd


cdef ptrdiff_t quoted(const uint8_t *text, ptrdiff_t at, ptrdiff_t end, Ends *ends,
                      bint last, ptrdiff_t widest, int64_t *out) noexcept nogil:
    """Reads the field that begins with a quote at `at`; returns where it ends, -1 if unknown yet.

    `widest` is 0 where a field must end with its line.
    """
    cdef bint odd = False
    cdef ptrdiff_t first = at + 1, stop = end, close
    if widest and first + widest < end:
        stop = first + widest
    close = closing(text, first, stop, widest != 0, &odd)
    if close < 0 and widest:
        if stop == end and not last:
            return -1
        odd = False
        close = closing(text, first, end, False, &odd)
    if close < 0:
        at = line_end(text, first, end)
        out[0] = cell(text, first, at, odd)
        return at
    at = next_end(text, close + 1, ends)
    if at == close + 1 or (text[at] == LF and at == close + 2 and text[close + 1] == CR):
        out[0] = <int64_t>first << 32 | <int64_t>(close - first) << 1 | odd
    else:
        out[0] = cell(text, first, at, True)
    return at


def count_lines(
    const uint8_t[::1] text,   # IN
):
    """How many line feeds there are."""
    cdef const uint8_t *bytes_of = &text[0] if text.shape[0] else NULL
    cdef ptrdiff_t first, i, size = text.shape[0], count = 0
    cdef uint8_t some  # of fewer bytes than it can count, so that many are compared at a time
    with nogil:
        for first in range(0, size - 127, 128):
            some = 0
            for i in range(128):
                some += bytes_of[first + i] == LF
            count += some
        for i in range(size - size % 128, size):
            count += bytes_of[i] == LF
    return count


def split_records(
    const uint8_t[::1] text,     # IN   whole records, and perhaps the beginning of one more
    ptrdiff_t first,             # IN   where the first record begins
    bint last,                   # IN   whether no text follows; then it ends with a line feed
    int delimiter,               # IN   a byte
    ptrdiff_t widest,            # IN   bytes of a field with line breaks; 0: none may have any
    ptrdiff_t longest,           # IN   bytes of a record; fields that end behind them are missing
    const int32_t[::1] place,    # IN   (fields,) the wanted column that a field is, or -1
    int64_t[:, ::1] out,         # OUT  (wanted columns, rows) cells
):
    """(number of records, where the next one begins): as many as are whole, and as have room."""
    cdef const uint8_t *bytes_of = &text[0] if text.shape[0] else NULL
    cdef ptrdiff_t end = text.shape[0], rows = out.shape[1]
    cdef ptrdiff_t n_fields = place.shape[0], row = 0, begin = first, at, field, j
    cdef int64_t word
    cdef Ends ends = Ends(end, <uint8_t>delimiter, first - 64, 0)
    with nogil:
        while end > first and bytes_of[end - 1] != LF:
            end -= 1
        while row < rows and begin < end:
            at = begin
            field = 0
            while True:
                if bytes_of[at] == QUOTE:
                    at = quoted(bytes_of, at, end, &ends, last, widest, &word)
                    if at < 0:
                        break
                elif field < n_fields:
                    j = at
                    at = next_end(bytes_of, at, &ends)
                    word = cell(bytes_of, j, at, False)
                elif widest:
                    at = next_end(bytes_of, at, &ends)
                else:
                    at = line_end(bytes_of, at, end)
                if field < n_fields and place[field] >= 0:
                    out[place[field], row] = word if at - begin <= longest else -1
                if bytes_of[at] == LF:
                    break
                at += 1
                field += 1
            if at < 0:
                break
            for j in range(field + 1, n_fields):
                if place[j] >= 0:
                    out[place[j], row] = -1
            begin = at + 1
            row += 1
    return row, begin


# ------------------------------------------------------------------------------------------ numbers


cdef double[23] TENS = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
                        1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22]  # each exact


cdef double[2] SIGNS = [1.0, -1.0]


cdef inline void product(double a, double b, double *high, double *low) noexcept nogil:
    """a * b = high + low, exactly (Dekker 1971, with Veltkamp's splitting)."""
    cdef double c = 134217729.0 * a, d = 134217729.0 * b  # 2^27 + 1
    cdef double a1 = c - (c - a), b1 = d - (d - b)
    cdef double a2 = a - a1, b2 = b - b1
    high[0] = a * b
    low[0] = ((a1 * b1 - high[0]) + a1 * b2 + a2 * b1) + a2 * b2


cdef bint scaled(uint64_t digits, int exponent, double *out) noexcept nogil:
    """The double nearest to digits * 10^exponent; False if it is too close to call.

    high + low is the value up to a share of 2^-102 for each step: the digits are split exactly, and
    a step multiplies or divides twice the digits of a double. Three steps stay within 2^-98.
    """
    cdef double high = <double>digits, low, a, b, q, power, error
    cdef int left = exponent if exponent >= 0 else -exponent, step
    low = <double>(<int64_t>(digits - <uint64_t>high))
    while left > 0:
        step = left if left < 22 else 22
        power = TENS[step]
        left -= step
        if exponent > 0:
            product(high, power, &a, &b)
            b += low * power
        else:
            q = high / power
            product(q, power, &a, &b)
            b = (((high - a) - b) + low) / power
            a = q
        high = a + b
        low = b - (high - a)
    error = high * 3.2e-30  # 2^-98
    out[0] = high + (low - error)
    return out[0] == high + (low + error)


cdef struct Digits:
    uint64_t value  # of at most 19 digits, else nonsense
    ptrdiff_t count
    int power       # of ten


cdef inline bint from_digits(const Digits *digits, double *out) noexcept nogil:
    """The nearest double; False if that is not easily said."""
    cdef int power = digits.power
    if digits.count > 19:
        return False
    if digits.value <= 1ULL << 53 and -22 <= power <= 22:  # one operation on two exact numbers
        if power < 0:
            out[0] = <double>digits.value / TENS[-power]
        else:
            out[0] = <double>digits.value * TENS[power]
        return True
    if digits.value == 0:
        out[0] = 0.0
        return True
    return -66 <= power <= 66 and scaled(digits.value, power, out)


cdef inline bint is_word(const uint8_t *at, ptrdiff_t length, const char *word,
                         ptrdiff_t size) noexcept nogil:
    """Whether these bytes are the word, in any case."""
    cdef ptrdiff_t i
    if length != size:
        return False
    for i in range(size):
        if (at[i] | 32) != <uint8_t>word[i]:
            return False
    return True


cdef bint word_number(const uint8_t *at, const uint8_t *end, bint bare, double *out) noexcept nogil:
    """inf and infinity, and without a sign true and false."""
    if is_word(at, end - at, "inf", 3) or is_word(at, end - at, "infinity", 8):
        out[0] = INFINITY
        return True
    out[0] = is_word(at, end - at, "true", 4)
    return bare and (out[0] == 1.0 or is_word(at, end - at, "false", 5))


cdef inline const uint8_t *take_digits(const uint8_t *at, const uint8_t *end,
                                       Digits *digits) noexcept nogil:
    cdef const uint8_t *start = at
    cdef uint64_t value = digits.value
    cdef uint32_t d
    if digits.count == 0:
        while at < end and at[0] == ZERO:  # which does not count
            at += 1
    start = at
    while at < end:
        d = <uint32_t>at[0] - ZERO
        if d > 9:
            break
        value = 10 * value + d
        at += 1
    digits.value = value
    digits.count += at - start
    return at


cdef const uint8_t *take_exponent(const uint8_t *at, const uint8_t *end,
                                  Digits *digits) noexcept nogil:
    """NULL if no digit follows the e before `at`."""
    cdef bint minus = at < end and at[0] == MINUS
    cdef const uint8_t *start
    cdef int power = 0
    if at < end and (at[0] == MINUS or at[0] == PLUS):
        at += 1
    start = at
    while at < end and ZERO <= at[0] <= ZERO + 9:
        if power < 1 << 26:  # beyond all digits of a record
            power = 10 * power + at[0] - ZERO
        at += 1
    digits.power += -power if minus else power
    return at if at > start else NULL


cdef Kind number(const uint8_t *at, const uint8_t *end, double *out) noexcept nogil:
    """``[ \\t]*[+-]?(digits(.digits*)?|.digits)([eE][+-]?digits)?[ \\t]*``, or a word.

    A number of more than 19 digits, or far from 1, is left to Python.
    """
    cdef Digits digits = Digits(0, 0, 0)
    cdef const uint8_t *start
    cdef bint minus = False, bare = True, written
    while at < end and (at[0] == SPACE or at[0] == TAB):
        at += 1
    while end > at and ((end - 1)[0] == SPACE or (end - 1)[0] == TAB):
        end -= 1
    if at < end:  # without a branch for the sign, which nobody can predict
        minus = at[0] == MINUS
        bare = not (minus | (at[0] == PLUS))
        at += not bare
    if at < end and at[0] >= 65:  # a letter, if anything
        if not word_number(at, end, bare, out):
            return NO_NUMBER
    else:
        start = at
        at = take_digits(at, end, &digits)
        written = at > start
        if at < end and at[0] == DOT:
            start = at + 1
            at = take_digits(start, end, &digits)
            written = written or at > start
            digits.power = <int>(start - at)
        if written and at < end and (at[0] | 32) == 101:  # e
            at = take_exponent(at + 1, end, &digits)
        if not written or at != end:
            return NO_NUMBER
        if not from_digits(&digits, out):
            return LONG_NUMBER
    out[0] *= SIGNS[minus]
    return NUMBER


cdef inline bint few_digits(const uint8_t *at, ptrdiff_t length, double *out) noexcept nogil:
    """The number of one to eight digits, read at once; False if one of them is no digit.

    at[:8] can be read. What is behind the cell is shifted out, and zeros stand before it; then
    digits are added up by twos, fours and eights.
    """
    cdef uint64_t word, zeros = 0x3030303030303030ULL
    cdef int bits = 8 * <int>length
    memcpy(&word, at, 8)
    word = (word << (64 - bits) | (zeros >> (bits - 1)) >> 1) ^ zeros
    if ((word + 0x7676767676767676ULL) | word) & 0x8080808080808080ULL:
        return False
    word = 10 * (word & 0x000F000F000F000FULL) + (word >> 8 & 0x000F000F000F000FULL)
    word = 100 * (word & 0x000000FF000000FFULL) + (word >> 16 & 0x000000FF000000FFULL)
    out[0] = <double>(10000 * (word & 0xFFFF) + (word >> 32))
    return True


def read_numbers(
    const uint8_t[::1] text,   # IN
    const int64_t[::1] cells,  # IN   (rows,)
    double[::1] out,           # OUT  (rows,) NaN where a cell is missing or writes no number
    int64_t[::1] left,         # OUT  (rows,) rows of numbers that are left to Python, first
):
    """How many numbers are left."""
    cdef const uint8_t *bytes_of = &text[0] if text.shape[0] else NULL
    cdef ptrdiff_t row, count = 0
    cdef int64_t word
    cdef Kind kind
    cdef const uint8_t *at
    cdef const uint8_t *end = bytes_of + text.shape[0]
    cdef uint16_t order = 1
    cdef bint little = (<const uint8_t *>&order)[0]  # bytes of lower address are lower bits
    with nogil:
        for row in range(cells.shape[0]):
            word = cells[row]
            kind = NO_NUMBER
            if word >= 0 and not word & 1:
                at = begin_of(bytes_of, word)
                if little and 0 < length_of(word) <= 8 and at + 8 <= end \
                        and few_digits(at, length_of(word), &out[row]):
                    continue
                kind = number(at, at + length_of(word), &out[row])
            if kind == NO_NUMBER:
                out[row] = NAN
            elif kind == LONG_NUMBER:
                left[count] = row
                count += 1
    return count
