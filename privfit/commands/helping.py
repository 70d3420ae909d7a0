"""Help texts: one screen by ``--help``, all of it by ``--help-all``."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

__all__ = ["Brief", "HelpAll", "Whole"]

NAMES = 34  # columns for the names of options


class Whole(argparse.RawDescriptionHelpFormatter):
    """Every option with its whole text."""


class Brief(argparse.RawDescriptionHelpFormatter):
    """Every option in one line, with the first clause of its text."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=NAMES)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return text
        return textwrap.fill(text, width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return [textwrap.shorten(text.split(";")[0], width, placeholder=" ...")]

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        several = " ..." if action.nargs == "+" else ""
        return f"{action.option_strings[-1]} {self._metavar(action)}{several}"

    def _metavar(self, action: argparse.Action) -> str:
        if action.metavar is None and action.choices is not None:
            return "|".join(map(str, action.choices))
        return str(action.metavar or action.dest.upper())


class HelpAll(argparse.Action):
    """Print the whole help, and end."""

    def __init__(self, option_strings: Any, dest: str, **_: Any) -> None:
        super().__init__(
            option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS,
            help="this help at length",
        )  # fmt: skip

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.formatter_class, parser.usage = Whole, None
        parser.print_help()
        parser.exit()
