"""A coding of records that keeps their norm small, for methods whose noise grows with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.checks import is_sparse
from privfit.domains import Domain, Schema
from privfit.objectives.common import Floats, Integers


class Compact:
    """Numbers as v = (x - middle) / 2^k in [-1/2, 1/2], one-hot columns as 0 or 1/2.

    The intercept is 1/2. `Centred` would code a one-hot group of any size as half units in every
    column; here one entry of a group is not zero. In units of 2^-(a + 2) a record is the integers
    v = factor x - shift, at most 2^(a + 1) in size, of its own integers x. Without `centre` columns
    keep their zero.
    """

    def __init__(self, domain: Domain, centre: bool = True) -> None:
        self._domain, d, a = domain, domain.width, domain.grid.a
        low, high = (np.rint(end / domain.record_units()) for end in (domain.low, domain.high))
        self.factor, self.shift = np.full(d, 2, dtype=np.int64), np.zeros(d, dtype=np.int64)
        plain = np.full(d, centre)
        for group in domain.groups if isinstance(domain, Schema) else []:
            plain[group] = False
        # Doubled until the width fills [-1/2, 1/2]: a column far from zero is narrow beside it.
        room = np.floor(np.log2(2.0 ** (a + 2) / np.maximum(high - low, 1))).astype(np.int64)
        self.factor[plain] = 1 << room[plain]
        self.shift[plain] = (self.factor * (low + high)).astype(np.int64)[plain] // 2
        ends = np.abs(self.factor * np.array([low, high]) - self.shift)
        self.largest: Integers = np.append(ends.max(axis=0), 1 << (a + 1)).astype(np.int64)

    @property
    def unit(self) -> float:
        """What one unit of the integers is worth."""
        return 2.0 ** -(self._domain.grid.a + 2)

    def sums(self, first: Integers, second: Integers) -> tuple[Integers, Integers]:
        """int64 (d + 1,) and (d + 1, d + 1): sums of y v and of v v', exactly.

        `first` and `second` are those of a record's own integers, the intercept 2^a last. Sums wrap
        on the way and come out right, since the results fit in 64 bits.
        """
        a = self._domain.grid.a
        factor = np.append(self.factor, 2)
        shift = np.append(self.shift, 0)
        total, n, columns = first[-1:] >> a, second[-1:, -1:] >> 2 * a, second[:, -1] >> a
        cross = np.outer(factor * columns, shift)
        products = second * np.outer(factor, factor) - cross - cross.T + np.outer(shift, shift) * n
        return first * factor - shift * total, products

    def records(self, X: Any) -> Floats:
        """Coded records (n, d), the intercept left out, of decoded ones."""
        dense = X.toarray() if is_sparse(X) else X
        return np.asarray(dense * self._scale - self.shift * self.unit)

    def weights(self, u: ArrayLike) -> Floats:
        """(d + 1,): the linear candidate of these weights of v, on its grid; the intercept last."""
        u = np.asarray(u, dtype=np.float64)
        w = np.append(u[:-1] * self._scale, u[-1] / 2 - u[:-1] @ self.shift * self.unit)
        units = self._domain.weight_units()
        return np.rint(w / units) * units

    @property
    def _scale(self) -> Floats:
        return self.factor * self.unit / self._domain.record_units()
