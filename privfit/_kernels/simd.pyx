"""Which build of the tile functions runs: chosen once, when the package is imported.

``PRIVFIT_SIMD=baseline`` forces the code that every CPU of the platform runs. Scores do not depend
on the choice, bit for bit; only speed does.
"""

import os

cdef extern from *:
    """
    #include "tiles.h"
    #if !defined(PRIVFIT_HAVE_AVX2)
    static const tile_table *privfit_fastest(void) { return &privfit_tiles_baseline; }
    #else
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int privfit_has_avx2(void) {
        int leaf1[4], leaf7[4];
        __cpuid(leaf1, 1);
        if ((leaf1[2] & (1 << 27 | 1 << 12)) != (1 << 27 | 1 << 12)) return 0; /* OSXSAVE, FMA */
        if ((_xgetbv(0) & 6) != 6) return 0; /* the system saves the AVX registers */
        __cpuidex(leaf7, 7, 0);
        return (leaf7[1] >> 5) & 1;
    }
    #else
    static int privfit_has_avx2(void) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    #endif
    static const tile_table *privfit_fastest(void) {
        return privfit_has_avx2() ? &privfit_tiles_avx2 : &privfit_tiles_baseline;
    }
    #endif
    """
    const tile_table privfit_tiles_baseline
    const tile_table *privfit_fastest()

cdef const tile_table *_table

_wanted = os.environ.get("PRIVFIT_SIMD", "auto")
if _wanted == "baseline":
    _table = &privfit_tiles_baseline
elif _wanted == "auto":
    _table = privfit_fastest()
else:
    raise ImportError(f"PRIVFIT_SIMD ({_wanted!r}) must be 'auto' or 'baseline'; unset it")


cdef const tile_table *tiles() noexcept nogil:
    return _table


def active() -> str:
    """The instruction set in use: ``'baseline'`` or ``'avx2'``."""
    return _table.name.decode().rsplit("_", 1)[1]
