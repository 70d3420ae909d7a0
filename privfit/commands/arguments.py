"""Numeric options, checked when they are parsed; an error names the option."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

__all__ = ["COUNT", "DELTA", "EPSILON", "Between"]


@dataclass(frozen=True)
class Between:
    """A type for argparse: a number from `low` to `high`, an integer if `whole`."""

    low: float
    high: float
    such_as: str
    whole: bool = False

    def __call__(self, text: str) -> float:
        """Parse and check the number; NaN is never within bounds."""
        try:
            number = int(text) if self.whole else float(text)
        except ValueError:
            number = float("nan")
        if not self.low <= number <= self.high:
            kind = "whole number" if self.whole else "number"
            raise argparse.ArgumentTypeError(
                f"({text!r}) must be a {kind} from {self.low:g} to {self.high:g}; "
                f"pass one such as {self.such_as}"
            )
        return number


EPSILON = Between(1e-9, 1e6, "1")  # what the accounting takes
DELTA = Between(0, 0.5, "1e-6")  # a larger one promises nothing
COUNT = Between(1, 10**9, "10", whole=True)
