"""A table of texts and their entries, by open addressing.

A text is some bytes. What tells texts of up to 16 bytes apart is their length and two words of 4 or
8 bytes, which may overlap: the first and the last ones. They stand in the table itself, so that
most texts are found by three comparisons; the bytes of longer ones are kept beside it.

A slot has four words: the first and the last bytes, where the text is kept and how long it is
(``begin << 32 | length << 1``; -1 in a free slot), and the entry.
"""

from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef enum:
    REACH = 64    # slots that are tried for a text
    UNSEEN = -2   # the entry of a text that is not in the table

cdef struct Table:
    const int64_t *slots
    uint64_t mask          # their number less one; they are a power of two
    const uint8_t *kept

cdef struct Key:
    uint64_t first
    uint64_t last
    uint64_t hash


cdef inline Table table_of(const int64_t[:, ::1] slots, const uint8_t[::1] kept) noexcept:
    """The table of these slots, a power of two; some bytes are kept, be it for nothing."""
    cdef Table table
    table.slots = &slots[0, 0]
    table.mask = <uint64_t>slots.shape[0] - 1
    table.kept = &kept[0]
    return table


cdef inline uint64_t eight(const uint8_t *at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline uint64_t four(const uint8_t *at) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, at, 4)
    return word


cdef inline uint64_t stirred(uint64_t word) noexcept nogil:
    word *= 0x9E3779B97F4A7C15ULL
    return word ^ word >> 32


cdef inline Key key_of(const uint8_t *at, ptrdiff_t length) noexcept nogil:
    """The words of a text and their hash, which takes in all bytes of a long one."""
    cdef Key key
    cdef ptrdiff_t i = 8
    if length >= 8:
        key.first = eight(at)
        key.last = eight(at + length - 8)
    elif length >= 4:
        key.first = four(at)
        key.last = four(at + length - 4)
    elif length > 0:
        key.first = at[0] | <uint64_t>at[length >> 1] << 8
        key.last = at[length - 1]
    else:
        key.first = key.last = 0
    key.hash = stirred(stirred(key.first ^ <uint64_t>length << 56) ^ key.last)
    while i < length - 8:
        key.hash = stirred(key.hash ^ eight(at + i))
        i += 8
    return key


cdef inline ptrdiff_t slot_of(const Table *table, const uint8_t *at, ptrdiff_t length, Key key,
                              bint *known) noexcept nogil:
    """The slot of a text, or the first free one; -1 if `REACH` others are near.

    So texts that were chosen for their hashes cost a call of Python each, and no more.
    """
    cdef uint64_t place = key.hash & table.mask
    cdef const int64_t *slot
    cdef int _
    for _ in range(REACH):
        slot = table.slots + 4 * place
        if slot[2] < 0:
            break
        if <uint64_t>slot[0] == key.first and <uint64_t>slot[1] == key.last \
                and <uint32_t>slot[2] == <uint32_t>length << 1 \
                and (length <= 16
                     or memcmp(table.kept + (slot[2] >> 32), at, <size_t>length) == 0):
            known[0] = True
            return <ptrdiff_t>place
        place = (place + 1) & table.mask
    else:
        return -1
    known[0] = False
    return <ptrdiff_t>place


cdef inline int64_t entry_of(const Table *table, const uint8_t *at,
                             ptrdiff_t length) noexcept nogil:
    """The entry of a text, or `UNSEEN`."""
    cdef bint known = False
    cdef ptrdiff_t slot = slot_of(table, at, length, key_of(at, length), &known)
    return table.slots[4 * slot + 3] if known else <int64_t>UNSEEN
