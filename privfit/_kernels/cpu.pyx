"""Which instruction set the kernels run with: chosen once, when the package is imported.

``PRIVFIT_SIMD=baseline`` forces the modules that every CPU of the platform runs. Scores do not
depend on the choice, bit for bit; only speed does.
"""

import os

cdef extern from *:
    """
    #if !defined(__x86_64__) && !defined(_M_X64)
    static int privfit_has_avx2(void) { return 0; }
    #elif defined(_MSC_VER)
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
    """
    bint privfit_has_avx2()

_wanted = os.environ.get("PRIVFIT_SIMD", "auto")
if _wanted not in ("auto", "baseline"):
    raise ImportError(f"PRIVFIT_SIMD ({_wanted!r}) must be 'auto' or 'baseline'; unset it")
_active = "avx2" if _wanted == "auto" and privfit_has_avx2() else "baseline"


def active() -> str:
    """The instruction set in use: ``'baseline'`` or ``'avx2'``."""
    return _active
