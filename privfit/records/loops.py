"""Loops for compiled scores of one's own, as functions of ctypes, which numba can call.

They are those of `privfit._kernels.fitness`, compiled for this CPU: numba does not vectorise
exponentials and logarithms by itself.

====================================================  ============================================
`add_products(record, n, candidates, m, out)`         out[c] += the sum over j < n of
                                                      record[j] candidates[j, c]
`log_sigmoid(z, y, m)`                                z[c] becomes -ln(1 + exp(-y z[c])), with an
                                                      error of at most 2e-10
====================================================  ============================================
"""

from __future__ import annotations

import ctypes

from privfit._kernels.scored import addresses

__all__ = ["add_products", "log_sigmoid"]

_DOUBLES, _WHOLE = ctypes.POINTER(ctypes.c_double), ctypes.c_ssize_t
_products, _log_sigmoid = addresses()

add_products = ctypes.CFUNCTYPE(None, _DOUBLES, _WHOLE, _DOUBLES, _WHOLE, _DOUBLES)(_products)
log_sigmoid = ctypes.CFUNCTYPE(None, _DOUBLES, ctypes.c_double, _WHOLE)(_log_sigmoid)
