"""A public scale of all numbers, and a smooth map of its cells: nothing here knows any records.

**Cells.** Numbers within a millionth of 0 are one cell. Every other cell is an eighth of a decade
wide, from 10^-4 to 10^9; what is smaller or larger in size belongs to the first or the last one.
Negative numbers have cells of their own, which mirror the positive ones.

**Maps.** Cells of the same sign are alike as exp(-abs(log10 x - log10 x') / w), an
Ornstein-Uhlenbeck kernel; 0 and cells of different signs are not alike. There are two maps: w = 0.7
decades, and the smoother w = 2 for tables with so little signal that a curve has few functions. A
map takes a cell to the leading eigenfunctions of this kernel under public weights:
exp(-abs(log10 x - 1.5) / 2), a fifth of that for negative numbers, and half the weight of all
positive ones for 0. Its rows have a length of at most 1, whatever the number of eigenfunctions, so
that a linear model of them is a smooth curve at the price of a single column.

Eigenvectors differ in their last bits between machines, so maps ship as whole numbers, rounded
towards zero (`log_scale.csv`, the smoother one behind the other, written by
``python -m privfit.domains.scales``).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from privfit.base.typing import Floats, Integers
from privfit.domains.keys import written

__all__ = ["CUTS", "MAP_BITS", "MOST_DIMENSIONS", "SMOOTH", "SMOOTHEST", "cell_map", "cells_of"]

FINE = 8  # cells of a decade
FIRST, LAST = -4, 9  # decades
NEAR = 1e-6  # to 0
MAP_BITS = 12
MOST_DIMENSIONS = 24
SMOOTH, SMOOTHEST = 0.7, 2.0  # decades over which the kernel of a map falls to 1/e
FILE = "log_scale.csv"


def _cuts() -> tuple[float, ...]:
    steps = np.arange(FIRST * FINE, LAST * FINE) + 0.5
    positive = [NEAR, *(written(float(f"{10 ** (step / FINE):.4g}")) for step in steps)]
    return (*(-cut for cut in reversed(positive)), *positive)


CUTS = _cuts()  # where cells begin, all but the first


def cells_of(numbers: Floats) -> Integers:
    """The cell of each number."""
    return np.searchsorted(CUTS, numbers, side="right")


@cache
def cell_map(smooth: float = SMOOTH) -> NDArray[np.int64]:
    """(cells, MOST_DIMENSIONS): a map, in units of 2^-MAP_BITS; leading functions first."""
    text = (files(__package__) / FILE).read_text(encoding="utf-8")
    both = np.array([line.split(",") for line in text.split()], dtype=np.int64)
    first = (SMOOTH, SMOOTHEST).index(smooth) * MOST_DIMENSIONS
    rows = both[:, first : first + MOST_DIMENSIONS]
    rows.setflags(write=False)
    return rows


def computed_map(smooth: float = SMOOTH) -> Floats:
    """A map as this machine computes it, in units."""
    steps = np.arange(FIRST * FINE, LAST * FINE + 1) / FINE
    size = np.concatenate([steps[::-1], [0.0], steps])
    sign = np.sign(np.arange(len(size)) - len(steps))
    kernel = np.exp(-np.abs(size[:, None] - size) / smooth)
    kernel[sign[:, None] != sign] = 0.0
    weight = np.exp(-np.abs(size - 1.5) / 2) * np.where(sign < 0, 0.2, 1.0)
    weight[sign == 0] = weight[sign > 0].sum() / 2
    return leading(kernel, weight / weight.sum(), MOST_DIMENSIONS) * 2.0**MAP_BITS


def leading(kernel: Floats, weights: Floats, dimensions: int) -> Floats:
    """(n, dimensions): the leading eigenfunctions of a kernel under weights, with its scale.

    The sum of squares of a row is at most the kernel's diagonal. The entry of an eigenfunction that
    is largest in size is positive.
    """
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
    order = np.argsort(-values, kind="stable")[:dimensions]
    functions = vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0)) / root[:, None]
    largest = functions[np.abs(functions).argmax(axis=0), np.arange(functions.shape[1])]
    return np.asarray(functions * np.where(largest < 0, -1.0, 1.0))


if __name__ == "__main__":
    rows = np.concatenate(
        [np.trunc(computed_map(w)).astype(np.int64) for w in (SMOOTH, SMOOTHEST)], 1
    )
    lines = [",".join(map(str, row)) for row in rows.tolist()]
    from pathlib import Path

    Path(__file__).with_name(FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
