"""Small checks of arguments, shared by every module."""

from __future__ import annotations

import math
import sys
from numbers import Integral, Real
from typing import Any, TypeGuard


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number (numpy's count, booleans do not)."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value is a finite real number (numpy's count, booleans do not)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of a whole number beyond float64
        return False


def is_sparse(value: Any) -> bool:
    """Whether a value is a SciPy sparse matrix; does not import scipy.sparse to find out."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(value))
