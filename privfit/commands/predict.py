"""``privfit predict``: predictions of a model for new records."""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

from privfit.base.errors import InputError
from privfit.commands.arguments import add_list
from privfit.commands.console import Console
from privfit.commands.files import TABLE, CsvForm, add_csv_form
from privfit.commands.models import load_model, schema_of
from privfit.commands.outputs import claim
from privfit.commands.tables import Table, read_chunks

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

HELP = "predict classes or clusters of new records"
EXAMPLE = "privfit predict model.json new.csv --proba --out predictions.csv"
DESCRIPTION = (
    "Predict the class, or the cluster, of each record of a table. This spends no budget; the "
    "predictions are as sensitive as the records."
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a model file")
    parser.add_argument("data", help=TABLE)
    parser.add_argument(
        "--proba", action="store_true", help="also print the probability of each class"
    )
    parser.add_argument(
        "--threshold", type=float, metavar="NUMBER",
        help="of two classes, predict the second where its probability (or its margin, for a model "
        "without probabilities) is at least this",
    )  # fmt: skip
    parser.add_argument(
        "--id", metavar="NAME", help="a column to print first, such as a number of each record"
    )
    add_list(
        parser, "--keep", default=[], metavar="NAME",
        help="columns to print before the predictions, as they are in the table",
    )  # fmt: skip
    add_csv_form(parser)
    parser.add_argument("--out", metavar="FILE", help="a CSV file; default: stdout")


def run(options: argparse.Namespace, console: Console) -> None:
    """Predict, chunk by chunk."""
    model = load_model(options.model)
    schema = schema_of(model, options.model)
    if options.proba and not hasattr(model, "predict_proba"):
        kind = type(model).__name__
        raise InputError(f"--proba needs probabilities, which {kind} does not have; leave it out")
    if options.threshold is not None:
        _check_threshold(options.threshold, model)
    kept = list(dict.fromkeys([*filter(None, [options.id]), *options.keep]))
    chunks = read_chunks(
        options.data, schema, None, CsvForm.of(options), kept=kept,
        doubted=lambda names: console.warn(
            f"no cell of {', '.join(map(repr, names))} is a number, so all count as missing; pass "
            "--decimal , if numbers have decimal commas"
        ),
    )  # fmt: skip
    rows = _rows(model, chunks, options.proba, options.threshold)
    if console.machine and options.out is None:
        console.result(_fields(model, list(rows), kept, options.proba))
        return
    head = [*kept, "prediction"]
    if options.proba:
        head += [f"probability of {label}" for label in model.classes_]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(chain([head], rows))  # all of it, or nothing
    if options.out is None:
        console.product(text.getvalue())
        return
    with claim(options.out) as out:
        out.write(text.getvalue())
    console.say(f"{options.out}: predictions")
    console.result({"predictions": options.out})


def _check_threshold(threshold: float, model: Any) -> None:
    """Refuse a threshold that means nothing; an infinite one predicts the first class alone."""
    if len(getattr(model, "classes_", ())) != 2:
        raise InputError("--threshold applies to classifiers of two classes alone; leave it out")
    if hasattr(model, "predict_proba") and not (0 <= threshold <= 1 or threshold == math.inf):
        raise InputError(
            f"--threshold ({threshold}) must be a probability from 0 to 1, or inf for none of the "
            "second class; pass one such as 0.5"
        )


def _rows(
    model: Any, parts: Iterator[Table], proba: bool, threshold: float | None
) -> Iterator[list[Any]]:
    """Kept cells, the label of each record and, with --proba, the probability of each class."""
    how = {} if threshold is None else {"threshold": threshold}
    for part in parts:
        labels = np.asarray(model.predict(part.columns, **how)).tolist()
        chances: Any = repeat([])
        if proba:
            chances = np.round(model.predict_proba(part.columns), 6).tolist()
        before: Any = zip(*part.kept.values(), strict=True) if part.kept else repeat(())
        yield from (
            [*cells, label, *chance]
            for cells, label, chance in zip(before, labels, chances, strict=False)
        )


def _fields(model: Any, rows: list[list[Any]], kept: list[str], proba: bool) -> dict[str, Any]:
    """The same for `--json`."""
    at = len(kept)
    fields: dict[str, Any] = {"predictions": [row[at] for row in rows]}
    if kept:
        fields["kept"] = {name: [_plain(row[i]) for row in rows] for i, name in enumerate(kept)}
    if proba:
        fields |= {"classes": model.classes_, "probabilities": [row[at + 1 :] for row in rows]}
    return fields


def _plain(cell: Any) -> Any:
    """A kept cell as JSON has it: numbers, flags and texts, and all else as a text."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
