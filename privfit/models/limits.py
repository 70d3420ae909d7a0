"""How large the parts of a model file may be: a file that asks for more is refused unread.

A few bytes can ask for gigabytes: a number of columns, the width of labels, a number of bins. A
number may have more digits than any float, and lists may be nested until a reader's stack is full.
Limits are far beyond what any model needs, and within what any machine has.
"""

from __future__ import annotations

import os
from typing import Any

from privfit.base.errors import FileError

__all__ = ["MOST_COLUMNS", "check_file", "check_values"]

MOST_BYTES = 1 << 30  # of a file
MOST_COLUMNS = 1 << 24  # of a record
DEEPEST = 32  # values within values
MOST_BITS = 64  # of a whole number


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is too large to be a model."""
    size = os.stat(path).st_size
    if size > MOST_BYTES:
        raise FileError(
            f"a model file ({size} bytes) must have at most {MOST_BYTES}; pass what privfit.save "
            "wrote"
        )


def check_values(held: dict[str, Any]) -> None:
    """Refuse values that are nested too deeply, and whole numbers beyond 64 bits."""
    level: list[Any] = [held]
    for _ in range(DEEPEST):
        inner = []
        for value in level:
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, dict | list):
                    inner.append(item)
                elif isinstance(item, int) and item.bit_length() > MOST_BITS:
                    raise FileError(
                        f"a whole number ({item.bit_length()} bits) must have at most {MOST_BITS} "
                        "bits; pass a file as it was written"
                    )
        level = inner
    if level:
        raise FileError(
            f"values must be nested at most {DEEPEST} deep; pass a file as it was written"
        )
