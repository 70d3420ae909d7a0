"""Copies that nobody can write into, for code of users that sees records.

A candidate is public because it was proposed without data. Code that is handed the array itself
could write a record into it, and the array is what is reported later. A view that is only marked
as read-only has a base that can be written; a copy in a `bytes` object has none.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

__all__ = ["frozen"]


def frozen(values: Any) -> Any:
    """A copy of an array that cannot be made writeable; of anything else, just a copy."""
    if not isinstance(values, np.ndarray) or values.dtype.hasobject:  # which bytes cannot hold
        return deepcopy(values)
    return np.ndarray(values.shape, values.dtype, values.tobytes())
