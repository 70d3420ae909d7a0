"""Results as tables of pandas, which is imported when a table is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from privfit.base.errors import MissingExtraError

__all__ = ["Frame", "as_frame"]

Frame: TypeAlias = Any  # pandas.DataFrame, where pandas is installed


def as_frame(columns: Mapping[str, Any], index: str | None = None) -> Frame:
    """A pandas DataFrame with these columns, one of which may be its index.

    >>> from privfit.base.tables import as_frame
    >>> as_frame({"epsilon": [0.5, 1.0]}).shape
    (2, 1)
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingExtraError(
            "to_frame needs pandas; run pip install pandas, or use to_dict()"
        ) from None
    frame = DataFrame(dict(columns))
    return frame if index is None else frame.set_index(index)
