"""The known noise of a released answer: a normal law in the space of its numbers.

An answer w is what the same solver would have reached without noise, plus A' xi, where xi are
independent standard normal numbers and the rows of A are public: they follow from the sizes of the
draws and from what was released. So errors and intervals are post-processing, and cost nothing.
They are of noise alone: how far other records of the same kind would have led is not in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base import blas
from privfit.base.typing import Floats
from privfit.base.validation import is_sparse

__all__ = ["Spread", "spread_rows"]

MOST = 1 << 14  # numbers of a factor that is kept: all of it for up to 180 numbers of an answer
WIDEST = 2048  # numbers of an answer up to which correlations are computed
DIGITS = 5  # of a number that is kept
BLOCK = 1 << 21  # numbers of a product at a time
HELD = 7.0  # matrices (n, n) that `Spread.of` holds at a time, for as many directions


@dataclass(frozen=True, eq=False)
class Spread:
    """The noise of an answer of n numbers: factor' xi + rest * zeta, all of them standard normal.

    Parameters
    ----------
    factor : array of shape (r, n)
        Directions of correlated noise, each with its length.
    rest : array of shape (n,)
        Standard deviations of independent noise beside them; 0 where `factor` is everything.

    See Also
    --------
    Path : Has the spread of its answer, if its solver knows it.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.runs import Spread
    >>> spread = Spread.of(np.array([[3.0, 0.0], [4.0, 1.0]]))
    >>> spread.errors.tolist()
    [5.0, 1.0]
    >>> spread.along([[1.0, -1.0]]).round(3).tolist()
    [4.243]
    """

    factor: Floats
    rest: Floats

    @classmethod
    def of(cls, rows: Any, most: int | None = None) -> Spread:
        """The noise rows' xi in a compact form, rounded to five digits.

        The errors of single numbers are always kept. Of more than 180 numbers the leading
        directions are kept, and what is left counts as independent.

        Parameters
        ----------
        rows : array or sparse array of shape (k, n)
            Independent directions of noise, each with its length.
        most : int or None, default=None
            How many numbers of directions are kept, if n is large and the rows, an array, are few.

        Returns
        -------
        Spread
            The noise.
        """
        n = rows.shape[1]
        if most is not None and n * (n + 1) // 2 > MOST:
            return cls._with_rest(rows, _leading_of_few(rows, most // n))
        squares = np.asarray(_squares(rows).sum(axis=0)).ravel()
        if n > WIDEST:
            return cls(np.zeros((0, n)), _rounded(np.sqrt(squares)))
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        if n * (n + 1) // 2 <= MOST:
            with blas.one_thread():
                return cls(_rounded(np.asarray(np.linalg.qr(dense, mode="r"))), np.zeros(n))
        return cls._with_rest(dense, _leading(dense, MOST // n))

    @classmethod
    def _with_rest(cls, rows: Floats, leading: Floats) -> Spread:
        """These directions, and what they leave of the rows as independent noise."""
        factor = _rounded(leading)
        left = np.square(rows).sum(axis=0) - np.square(factor).sum(axis=0)
        return cls(factor, _rounded(np.sqrt(np.maximum(left, 0.0))))

    @property
    def errors(self) -> Floats:
        """(n,): the standard deviation of each number."""
        return np.asarray(np.sqrt(np.square(self.factor).sum(axis=0) + self.rest**2))

    def along(self, directions: Any) -> Floats:
        """The standard deviations of linear functions of the answer.

        Parameters
        ----------
        directions : array-like or sparse array of shape (m, n)
            The coefficients of each function.

        Returns
        -------
        array of shape (m,)
            The standard deviations.
        """
        D = directions if is_sparse(directions) else np.asarray(directions, dtype=np.float64)
        step = max(1, BLOCK // max(self.factor.shape[1], 1))
        parts = [self._along(D[start : start + step]) for start in range(0, D.shape[0], step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _along(self, D: Any) -> Floats:
        squares = np.square(np.asarray(D @ self.factor.T)).sum(axis=1)
        return np.asarray(np.sqrt(squares + np.asarray(_squares(D) @ self.rest**2)))

    def times(self, slope: float) -> Spread:
        """The noise of the answer times a number.

        Parameters
        ----------
        slope : float
            The number.

        Returns
        -------
        Spread
            The noise.
        """
        return Spread(_rounded(slope * self.factor), _rounded(abs(slope) * self.rest))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, which JSON can hold; zeros at the beginning of a row are left out.

        Returns
        -------
        dict
            `factor` and `rest`.
        """
        filled = self.factor != 0
        starts = np.where(filled.any(axis=1), filled.argmax(axis=1), filled.shape[1]).tolist()
        rows = [row[start:].tolist() for row, start in zip(self.factor, starts, strict=True)]
        return {"factor": rows, "rest": self.rest.tolist() if self.rest.any() else []}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], n: int) -> Spread:
        """What `to_dict` wrote, of an answer of n numbers.

        Parameters
        ----------
        plain : dict
            `factor` and `rest`.
        n : int
            How many numbers the answer has.

        Returns
        -------
        Spread
            The noise.
        """
        factor = np.zeros((len(plain["factor"]), n))
        for row, kept in zip(factor, plain["factor"], strict=True):
            row[n - len(kept) :] = kept
        rest = np.zeros(n)
        rest[: len(plain["rest"])] = plain["rest"]
        return cls(factor, rest)


def spread_rows(n: int) -> float:
    """How many rows of n numbers `Spread.of` holds at a time for as many directions, at most.

    Parameters
    ----------
    n : int
        How many numbers the answer has.

    Returns
    -------
    float
        The number of rows.
    """
    return HELD * n if n <= WIDEST else 0.0


def _leading(rows: Floats, count: int) -> Floats:
    """(count, n): the directions in which noise is longest, each with its length."""
    with blas.one_thread():
        values, vectors = np.linalg.eigh(rows.T @ rows)
    lengths = np.sqrt(np.maximum(values[-count:], 0.0))
    return np.asarray((vectors[:, -count:] * lengths).T)


def _leading_of_few(rows: Floats, count: int) -> Floats:
    """The same for fewer rows than there are numbers; at most as many directions as rows."""
    with blas.one_thread():
        _, vectors = np.linalg.eigh(rows @ rows.T)
        return np.asarray(vectors[:, max(0, len(rows) - count) :].T @ rows)


def _squares(rows: Any) -> Any:
    """The square of each number; of a sparse matrix, an asterisk may be another product."""
    return rows.multiply(rows) if is_sparse(rows) else rows * rows


def _rounded(numbers: Floats) -> Floats:
    """To five digits: nobody needs more of an error, and files stay short."""
    sizes = np.abs(numbers)
    powers = np.floor(np.log10(sizes, out=np.zeros_like(sizes), where=sizes > 0))
    shift = (DIGITS - 1 - powers).clip(-200, 200)
    ten = 10.0 ** np.abs(shift)
    return np.asarray(
        np.where(shift >= 0, np.rint(numbers * ten) / ten, np.rint(numbers / ten) * ten)
    )
