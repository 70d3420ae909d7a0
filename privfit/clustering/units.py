"""Centres in the units of a table: numbers in their range, categories as shares of their levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privfit.base.typing import Floats
from privfit.domains import Domain

__all__ = ["in_units"]


def in_units(
    domain: Domain, centers: Floats, names: Sequence[str] | None = None
) -> dict[str, Floats]:
    """(k,) arrays by the names of coded columns: post-processing, at no cost.

    A number goes back to its declared range. The coordinates of a category's levels are noisy means
    of ones: what is below 0 is 0, and they are divided by their sum, so that they are shares. A
    centre that has none of them above 0 has equal ones.
    """
    values = np.array(centers, dtype=np.float64)
    for j, (low, high) in domain.shares.items():
        values[:, j] = low + values[:, j] * (high - low)
    for group in domain.groups:
        values[:, group] = _shares(values[:, group])
    return dict(zip(domain.coded_names(names), values.T, strict=True))


def _shares(levels: Floats) -> Floats:
    """(k, levels): the same in proportion, none negative, each row with sum 1."""
    least = np.maximum(levels, 0.0)
    total = least.sum(axis=1, keepdims=True)
    return np.where(total > 0, least / np.where(total > 0, total, 1.0), 1 / levels.shape[1])
