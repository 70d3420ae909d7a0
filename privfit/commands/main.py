"""The command ``privfit``: its parser, and how it ends."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import privfit
from privfit.base.cautions import (
    OldNameWarning,
    PrivacyLeakWarning,
    SeedWarning,
    UnwiseBudgetWarning,
)
from privfit.base.errors import InputError
from privfit.base.signals import stopped_by_signals
from privfit.commands import COMMANDS
from privfit.commands.console import DONE, EXIT_CODES, READER_GONE, REFUSED, Console, end_of
from privfit.commands.helping import Brief, HelpAll
from privfit.commands.outputs import check_outputs
from privfit.privacy.budget_file import BudgetFileWarning

__all__ = ["main"]

TOLD = (PrivacyLeakWarning, UnwiseBudgetWarning, BudgetFileWarning, OldNameWarning)

DESCRIPTION = """\
Fit models to sensitive records under differential privacy.

  privfit schema people.csv --target income > schema.toml   # then edit the draft
  privfit fit people.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out model.json
  privfit show model.json
  privfit predict model.json new.csv > predictions.csv"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    with stopped_by_signals():
        try:
            options = _parser().parse_args(arguments)
        except InputError as error:
            print(f"privfit: error: {error}", file=sys.stderr)
            return REFUSED
        except KeyboardInterrupt as error:
            code, sentence = end_of(error)
            print(f"privfit: error: {sentence}; nothing was spent", file=sys.stderr)
            return code
        return _run(options, Console(options))


def _run(options: argparse.Namespace, console: Console) -> int:
    """Run what was asked for, and tell how it ended."""
    try:
        with _warnings_told(console):
            check_outputs(options)
            options.run(options, console)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return READER_GONE
    except (Exception, KeyboardInterrupt) as error:
        code = console.fail(error)
        try:
            sys.stdout.flush()
        except OSError:
            _abandon_stdout()
        return code
    return DONE


def _abandon_stdout() -> None:
    """Redirect stdout to the null device: Python flushes it again at exit, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        remedy = "" if "; pass" in message else f"; {self.prog} --help lists the options"
        if message.endswith(("required: data", "required: model, data")):
            remedy = "; pass the table first, before options that take several values"
        sentence = message.removeprefix("argument ").replace(": (", " (", 1)
        raise InputError(f"{sentence}{remedy}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="privfit",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"privfit {privfit.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        one = commands.add_parser(
            name, help=command.HELP, description=command.DESCRIPTION, formatter_class=Brief,
            usage=f"privfit {name} [options]", epilog=f"example:\n  {command.EXAMPLE}",
            add_help=False,
        )  # fmt: skip
        one.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        command.add(one)
        one.set_defaults(run=command.run)
        one.add_argument("--help-all", action=HelpAll)
        one.add_argument("--json", action="store_true", help="print one JSON object on stdout")
        one.add_argument("--quiet", action="store_true", help="print only errors and warnings")
        one.add_argument(
            "--debug", action="store_true",
            help="print tracebacks, which MAY SHOW PRIVATE VALUES",
        )  # fmt: skip
    return parser


@contextmanager
def _warnings_told(console: Console) -> Iterator[None]:
    """Print warnings about leaks, budgets, files and old names once; others might quote records.

    The warning about a seed is printed by `--seed` itself.
    """
    told: set[str] = set()

    def tell(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        ours = issubclass(category, TOLD)
        if ours and category is not SeedWarning and str(message) not in told:
            told.add(str(message))
            console.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = tell
        yield


if __name__ == "__main__":
    sys.exit(main())
