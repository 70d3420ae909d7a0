"""``privfit report``: one HTML file about a model, for people who decide about it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from privfit.base.errors import InputError
from privfit.commands.console import Console
from privfit.commands.models import load_model
from privfit.commands.outputs import claim
from privfit.commands.spending import open_shared
from privfit.evaluation.roc import ConfusionMatrix, RocCurve
from privfit.privacy.released import ReleasedFloat

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

HELP = "write a report on a model for an ethics board: one HTML file"
EXAMPLE = "privfit report model.json -o report.html"
DESCRIPTION = (
    "Write one HTML file that says what a model released, what is guaranteed about each record, "
    "what an attacker gains, what it cost and how it was checked. It contains released values "
    "alone, and spends nothing."
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a model file")
    parser.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="the report: an .html file"
    )
    parser.add_argument(
        "--curve", metavar="FILE",
        help="an ROC curve of the model, written by privfit roc; default: that of the model file",
    )  # fmt: skip
    parser.add_argument(
        "--accuracy", metavar="FILE",
        help="an accuracy or a confusion matrix of the model, written by privfit.save; default: "
        "that of the model file, which privfit fit --holdout keeps there",
    )  # fmt: skip
    parser.add_argument("--ledger", metavar="FILE", help="the budget file that was charged")
    parser.add_argument("--title", metavar="TEXT", help="the title")
    parser.add_argument("--date", metavar="TEXT", help="the date of the report; default: none")


def run(options: argparse.Namespace, console: Console) -> None:
    """Write a report."""
    from privfit.report.document import html

    if Path(options.out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out ({options.out!r}) must end in .html; pass such a path")
    load_model(options.model)  # a file that is no model is refused by its own message
    given: dict[str, Any] = {"title": options.title, "date": options.date}
    given["curve"] = _opened(options.curve, (RocCurve,), "--curve", "privfit roc --out writes")
    given["accuracy"] = _opened(
        options.accuracy, (ConfusionMatrix, ReleasedFloat), "--accuracy",
        "privfit.save writes of a confusion matrix",
    )  # fmt: skip
    if options.ledger is not None:
        given["ledger"] = open_shared(options.ledger, None)
    with claim(options.out) as out:
        out.write(html(options.model, **given))
    console.say(f"{options.out}: report on {options.model}")
    console.result({"report": options.out, "model": options.model})


def _opened(path: str | None, kinds: tuple[type[Any], ...], option: str, source: str) -> Any:
    """What was released of the model, from its file."""
    if path is None:
        return None
    found = load_model(path)
    if not isinstance(found, kinds):
        named = " or a ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{option} ({path!r}) must be a {named}; pass what {source}")
    return found
