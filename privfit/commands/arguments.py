"""Numbers and lists among the options, checked when they are parsed; an error names the option."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["COUNT", "DELTA", "EPSILON", "Between", "add_list"]


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


def add_list(parser: Any, name: str, each: Callable[[str], Any] = str, **options: Any) -> None:
    """Add an option that takes several values: with spaces, with commas, or given again.

    A value that has a comma is written in double quotes, as in a CSV file.
    """
    parser.add_argument(name, action=_Several, nargs="+", type=_Parts(each), **options)


@dataclass(frozen=True)
class _Parts:
    """The values of one argument."""

    each: Callable[[str], Any]

    def __call__(self, text: str) -> list[Any]:
        parts = next(csv.reader([text], skipinitialspace=True), [])
        if not all(part.strip() for part in parts) or not parts:
            raise argparse.ArgumentTypeError(
                f"({text!r}) must be values with commas or spaces between them; pass such as a,b"
            )
        return [self.each(part.strip()) for part in parts]


class _Several(argparse.Action):
    """Collect the values of all arguments of an option, however often it is given."""

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, __: Any = None) -> None:
        before = getattr(namespace, self.dest)
        kept = [] if before is self.default else before
        setattr(namespace, self.dest, [*kept, *(one for part in values for one in part)])
