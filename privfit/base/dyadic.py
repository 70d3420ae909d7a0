"""Exact vectors: whole numbers of any size times a power of two, and matrices that act on them.

Every float64 is such a number, so nothing here is rounded unless a method says so. Vectors are
short, one entry for each column of a model; sums over records are computed elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats

__all__ = ["Dyadic", "FixedMatrix"]

Whole: TypeAlias = NDArray[Any]  # of Python's integers


FEW = 4096  # entries of a matrix that are multiplied one by one
LONG = 1000  # bits of a whole number that float64 still holds, rounded


@dataclass(frozen=True, eq=False, repr=False)
class Dyadic:
    """The vector whole * 2^-bits."""

    whole: Whole
    bits: int

    @classmethod
    def of(cls, values: ArrayLike) -> Dyadic:
        """These float64 numbers, exactly."""
        parts = [value.as_integer_ratio() for value in np.asarray(values, np.float64).tolist()]
        bits = max((below.bit_length() - 1 for _, below in parts), default=0)
        return cls(
            integers([above << (bits - below.bit_length() + 1) for above, below in parts]), bits
        )

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.whole)

    def at(self, bits: int) -> Whole:
        """The whole numbers with at least as many bits as there are."""
        return self.whole << (bits - self.bits) if bits > self.bits else self.whole

    def __add__(self, other: Dyadic) -> Dyadic:
        bits = max(self.bits, other.bits)
        return Dyadic(self.at(bits) + other.at(bits), bits)

    def __sub__(self, other: Dyadic) -> Dyadic:
        bits = max(self.bits, other.bits)
        return Dyadic(self.at(bits) - other.at(bits), bits)

    def times(self, factor: float) -> Dyadic:
        """The product with a float64 number."""
        above, below = float(factor).as_integer_ratio()
        return Dyadic(self.whole * above, self.bits + below.bit_length() - 1)

    def rounded(self, bits: int) -> Whole:
        """The nearest multiples of 2^-bits, half upwards."""
        if bits >= self.bits:
            return self.at(bits)
        drop = self.bits - bits
        return (self.whole + (1 << (drop - 1))) >> drop

    def floors(self, unit: float) -> list[int]:
        """The largest whole numbers of units, a positive float64 number, that do not exceed it."""
        scaled = Fraction(unit) * 2**self.bits
        return [value * scaled.denominator // scaled.numerator for value in self.whole]

    def floats(self) -> Floats:
        """The entries, each rounded once, unless it leaves the range of float64."""
        if max(map(int.bit_length, self.whole), default=0) <= LONG:
            return np.ldexp(self.whole.astype(np.float64), -self.bits)
        return np.array([_float(value, self.bits) for value in self.whole])


def _float(value: int, bits: int) -> float:
    """value * 2^-bits of any length."""
    drop = max(0, value.bit_length() - LONG)
    return math.ldexp(float(value >> drop), drop - bits)


def integers(values: Sequence[int]) -> Whole:
    """A vector of Python's integers."""
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


class FixedMatrix:
    """A sparse matrix whose entries are multiples of 2^-bits; products with vectors are exact.

    Python's integers multiply few entries. For more, entries and vectors are split into digits,
    short enough that products of digits, added over a row, are whole numbers below 2^53, which
    float64 does not round.
    """

    def __init__(self, matrix: Any, bits: int) -> None:
        self.matrix, self.bits = matrix, bits
        whole = np.rint(np.ldexp(matrix.data, bits))
        if (np.ldexp(whole, -bits) != matrix.data).any() or (np.abs(whole) >= 2.0**62).any():
            raise DeclarationError(
                f"matrix must hold multiples of 2^-{bits} below 2^{62 - bits}; round its entries"
            )
        self._entries = whole.astype(np.int64).astype(object)
        self._filled = np.flatnonzero(np.diff(matrix.indptr))  # rows
        longest = int(np.diff(matrix.indptr).max(initial=1))
        room = 53 - longest.bit_length()
        self._digit, self._vector_digit = room // 2, room - room // 2
        largest = int(np.abs(whole).max(initial=1)).bit_length()
        self._digits = [matrix.copy() for _ in range(largest // self._digit + 1)]
        left = whole.astype(np.int64)
        for part in self._digits:  # all but the last are not negative
            last = part is self._digits[-1]
            digit = left if last else left & ((1 << self._digit) - 1)
            part.data, left = digit.astype(np.float64), left >> self._digit

    @property
    def T(self) -> FixedMatrix:  # noqa: N802
        """The transposed matrix."""
        return FixedMatrix(self.matrix.T.tocsr(), self.bits)

    def __matmul__(self, vector: Dyadic) -> Dyadic:
        """The product, exactly."""
        if len(self._entries) <= FEW:
            return Dyadic(self._of_few(vector.whole), self.bits + vector.bits)
        digits = _digits(vector.whole, self._vector_digit)
        total = integers([0] * self.matrix.shape[0])
        for place, part in enumerate(self._digits):
            sums = (part @ digits).astype(np.int64).astype(object)
            for i in range(digits.shape[1]):
                total = total + (sums[:, i] << (place * self._digit + i * self._vector_digit))
        return Dyadic(total, self.bits + vector.bits)

    def _of_few(self, whole: Whole) -> Whole:
        total = integers([0] * self.matrix.shape[0])
        if len(self._filled):
            products = self._entries * whole[self.matrix.indices]
            total[self._filled] = np.add.reduceat(products, self.matrix.indptr[self._filled])
        return total


def _digits(whole: Whole, size: int) -> Floats:
    """(n, k): digits of whole numbers, the lowest first; the last one has the sign."""
    count = max(map(int.bit_length, whole), default=0) // size + 1
    mask = (1 << size) - 1
    columns = [(whole >> (i * size)) & mask for i in range(count - 1)]
    columns.append(whole >> ((count - 1) * size))
    return np.array(columns, dtype=object).astype(np.float64).T.copy()
