"""``privfit predict``: what a model file says of new records."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from privfit.commands.console import Console, InputError
from privfit.commands.models import load_model, schema_of
from privfit.commands.outputs import claim
from privfit.commands.tables import Table, read_chunks

__all__ = ["add", "run"]


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="classes or clusters of new records",
        description="The class, or the cluster, that a model gives each record of a table. It "
        "spends nothing; predictions are as private as the records they are made of.",
    )
    parser.add_argument("model", help="a model file")
    parser.add_argument("data", help="CSV, CSV.gz or Parquet")
    parser.add_argument("--proba", action="store_true", help="also the probability of each class")
    parser.add_argument("--delimiter", metavar="CHAR", help="default: seen from the first line")
    parser.add_argument("--out", metavar="FILE", help="a CSV file; default: stdout")
    return parser


def run(options: argparse.Namespace, console: Console) -> None:
    """Predict, some records at a time."""
    model = load_model(options.model)
    schema = schema_of(model, options.model)
    if options.proba and not hasattr(model, "predict_proba"):
        kind = type(model).__name__
        raise InputError(f"--proba needs probabilities, which {kind} has not; leave it out")
    parts = read_chunks(options.data, schema, None, options.delimiter)
    if console.machine and options.out is None:
        console.result({"predictions": [label for part in parts for label in _labels(model, part)]})
        return
    text = "".join(_csv(model, parts, options.proba))  # all of it, or nothing
    if options.out is None:
        console.product(text)
        return
    with claim(options.out) as out:
        out.write(text)
    console.say(f"{options.out}: predictions")
    console.result({"predictions": options.out})


def _labels(model: Any, part: Table) -> list[Any]:
    return list(np.asarray(model.predict(part.columns)).tolist())


def _csv(model: Any, parts: Iterator[Table], proba: bool) -> Iterator[str]:
    """A CSV table of predictions, a piece for each part."""
    head = ["prediction"]
    if proba:
        head += [f"probability of {label}" for label in model.classes_]
    yield _lines([head])
    for part in parts:
        columns: list[Any] = [_labels(model, part)]
        if proba:
            columns += np.round(model.predict_proba(part.columns), 6).T.tolist()
        yield _lines(zip(*columns, strict=True))


def _lines(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
