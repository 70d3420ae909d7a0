"""Numbers that a metric released, together with the record of their release."""

from __future__ import annotations

from typing import SupportsFloat

from privfit.privacy.ledger import Release

__all__ = ["ReleasedFloat"]


class ReleasedFloat(float):
    """A released number that carries its `Release`; in all else a float.

    It adds, compares, prints, formats, hashes, pickles and turns into JSON and numpy like the
    float that it is. What is computed from it is a plain float.

    Attributes
    ----------
    release : Release
        What was drawn, what it cost and under which declarations.

    Examples
    --------
    >>> from privfit import accuracy_score
    >>> accuracy = accuracy_score([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> accuracy.release.epsilon
    1.0
    >>> type(1 - accuracy).__name__
    'float'
    """

    release: Release

    def __new__(cls, value: SupportsFloat, release: Release) -> ReleasedFloat:
        number = super().__new__(cls, value)
        number.release = release
        return number

    @property
    def value(self) -> float:
        """The number alone."""
        return float(self)

    def __reduce__(self) -> tuple[type[ReleasedFloat], tuple[float, Release]]:
        return ReleasedFloat, (float(self), self.release)
