"""Small tests of arguments, shared by every module."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number (numpy's count, booleans do not)."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether a value is a finite real number (numpy's count, booleans do not)."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
