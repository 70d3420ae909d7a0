"""Small tests of arguments, shared by every module."""

from __future__ import annotations

import math
import sys
from numbers import Integral, Real
from typing import Any

DASK = ("dask", "dask_expr", "distributed")  # whose collections lie in parts


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number (numpy's count, booleans do not)."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def is_finite(value: Any) -> bool:
    """Whether a value is a finite real number (numpy's count, booleans do not)."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def is_sparse(value: Any) -> bool:
    """Whether a value is a SciPy sparse matrix; does not import scipy.sparse to find out."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(value))


def is_partitioned(X: Any) -> bool:
    """Whether records lie in parts: in a `Stream`, or on the workers of a Dask cluster.

    A list of partitions is such a collection, too. Nothing is imported to find out.
    """
    one = X[0] if isinstance(X, list) and X else X
    modules = {kind.__module__ for kind in type(one).__mro__}
    return "privfit.records.stream" in modules or any(m.partition(".")[0] in DASK for m in modules)
