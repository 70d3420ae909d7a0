"""Compiled functions for tests: ctypes makes them from Python functions, without a compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

DOUBLES, WHOLES = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_ssize_t)
SCORE = (DOUBLES, ctypes.c_ssize_t, DOUBLES, ctypes.c_ssize_t, ctypes.c_ssize_t, DOUBLES)
MOVES = (DOUBLES, ctypes.c_ssize_t, DOUBLES, ctypes.c_ssize_t, WHOLES, DOUBLES, ctypes.c_ssize_t,
         DOUBLES)  # fmt: skip


def arrays(*shapes: Any) -> Any:
    return (np.ctypeslib.as_array(pointer, shape) for pointer, shape in shapes)


def score(function: Callable[[Any, Any, Any], Any], *more: Any) -> Any:
    """A function of ctypes that calls function(record, P, out), where P is (m, coordinates)."""

    def filled(record: Any, n: int, candidates: Any, width: int, m: int, out: Any, *data: Any):
        x, P, z = arrays((record, (n,)), (candidates, (width, m)), (out, (m,)))
        function(x, P.T, z, *data)

    return ctypes.CFUNCTYPE(None, *SCORE, *more)(filled)


def moves(function: Callable[..., Any], *more: Any) -> Any:
    """A function of ctypes that calls function(record, w, where, what, out)."""

    def filled(record: Any, n: int, one: Any, width: int, where: Any, what: Any, m: int, out: Any,
               *data: Any):  # fmt: skip
        x, w, i, v, z = arrays((record, (n,)), (one, (width,)), (where, (m,)), (what, (m,)),
                               (out, (m,)))  # fmt: skip
        function(x, w, i, v, z, *data)

    return ctypes.CFUNCTYPE(None, *MOVES, *more)(filled)
