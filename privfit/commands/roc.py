"""``privfit roc``: the private ROC curve of a model on labelled records."""

from __future__ import annotations

import argparse
from typing import Any

import scipy  # its submodules load when first used

from privfit.base.errors import InputError
from privfit.commands.console import Console
from privfit.commands.models import load_model, schema_of
from privfit.commands.outputs import claim_if
from privfit.commands.pictures import claim_picture_if
from privfit.commands.spending import add_budget, open_run, report, seed_of
from privfit.commands.tables import Target, add_csv_form, read_records

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "release the private ROC curve of a model on labelled records"
DESCRIPTION = (
    "Release the ROC curve of a binary classifier. On records that the model was fitted to, this "
    "is a second release, which must be charged to the same budget: pass the --ledger of the fit."
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a model file")
    parser.add_argument("data", help="labelled records: CSV, CSV.gz or Parquet")
    parser.add_argument("--target", required=True, metavar="NAME", help="the column of labels")
    parser.add_argument(
        "--positive", metavar="LABEL", help="positive class; default: the last one of the model"
    )
    add_csv_form(parser)
    add_budget(parser)
    parser.add_argument("--out", metavar="FILE", help="the curve, as a model file")
    parser.add_argument("--plot", metavar="FILE", help="a plot of the curve")


def run(options: argparse.Namespace, console: Console) -> None:
    """Release a curve."""
    from privfit.evaluation.roc import roc_curve
    from privfit.models.model import dumps

    model = load_model(options.model)
    schema, classes = schema_of(model, options.model), _classes(model, options)
    positive = _positive(options, classes)
    ledger, seed = open_run(options, console), seed_of(options, console)
    with claim_if(options.out) as out, claim_picture_if(options.plot) as plot:
        target = Target(options.target, tuple(classes))
        table = read_records(options, console, schema, target)
        scores = scipy.special.expit(
            model.decision_function(table.columns)
        )  # of the last class, within [0, 1]
        curve = roc_curve(
            table.y == positive, scores if positive == classes[-1] else 1 - scores,
            options.epsilon, options.delta, adjacency=options.adjacency,
            n_public=options.n_public, ledger=ledger, random_state=seed,
        )  # fmt: skip
        if out is not None:
            out.write(dumps(curve))
        if plot is not None:
            plot(lambda ax: curve.plot(ax=ax))
    console.say(f"area under the private curve of {positive!r}: {curve.auc:.4f}\n")
    shown = range(0, len(curve.fpr), max(1, len(curve.fpr) // 16))
    console.table(
        ("threshold", "false positives", "true positives"),
        [(f"{curve.thresholds[i]:.4f}", f"{curve.fpr[i]:.4f}", f"{curve.tpr[i]:.4f}")
         for i in shown],
    )  # fmt: skip
    console.say()
    rates = {"fpr": curve.fpr, "tpr": curve.tpr, "thresholds": [None, *curve.thresholds[1:]]}
    console.result({"auc": curve.auc, **rates, "ledger": report(ledger, console)})


def _classes(model: Any, options: argparse.Namespace) -> list[Any]:
    classes = list(getattr(model, "classes_", []))
    if len(classes) != 2 or not hasattr(model, "decision_function"):
        raise InputError(
            f"{options.model!r} must be a linear classifier with two classes; pass a model "
            "written by privfit fit"
        )
    return [label.item() if hasattr(label, "item") else label for label in classes]


def _positive(options: argparse.Namespace, classes: list[Any]) -> Any:
    if options.positive is None:
        return classes[-1]
    for label in classes:
        if str(label) == options.positive:
            return label
    raise InputError(
        f"--positive ({options.positive!r}) must be a class of the model; pass "
        f"{classes[0]} or {classes[1]}"
    )
