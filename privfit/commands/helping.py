"""Help texts: one screen by ``--help``, all of it by ``--help-all``."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

__all__ = ["Brief", "HelpAll", "Whole"]

NAMES = 34  # columns for the names of options
# Options that few runs need: --help names them, and --help-all describes them.
RARE = {"C", "accept_leak", "by_name", "debug", "delimiter", "header", "intercept", "line_breaks",
        "postprocess", "quiet", "resume", "seed", "sql", "threads", "trusted_eval"}  # fmt: skip


class Whole(argparse.RawDescriptionHelpFormatter):
    """Every option with its whole text."""


class Brief(argparse.RawDescriptionHelpFormatter):
    """Common options, each in one line with the first clause of its text; rare ones by name."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=NAMES)
        self._rare: list[str] = []

    def add_argument(self, action: argparse.Action) -> None:
        """Describe an option, or keep the name of a rare one for the end."""
        if action.dest in RARE and action.option_strings:
            self._rare.append(action.option_strings[-1])
        else:
            super().add_argument(action)

    def format_help(self) -> str:
        """The whole text; the names of rare options stand before the example."""
        text = super().format_help()
        if not self._rare:
            return text
        names = textwrap.fill(", ".join(self._rare), self._width, initial_indent="  ",
                              subsequent_indent="  ", break_on_hyphens=False)  # fmt: skip
        head, mark, tail = text.partition("example:")
        return f"{head}described by --help-all:\n{names}\n\n{mark}{tail}"

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
