"""``privfit roc``: the private ROC curve of a model on labelled records."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import InputError
from privfit.base.typing import Array, Floats
from privfit.commands.console import Console
from privfit.commands.files import TABLE, add_csv_form, nearest
from privfit.commands.models import load_model, schema_of
from privfit.commands.outputs import claim_if
from privfit.commands.pictures import claim_picture_if
from privfit.commands.spending import Mask, RunLedger, add_budget, open_run, report, seed_of
from privfit.commands.tables import Coded, Table, Target, read_records
from privfit.domains import Schema
from privfit.privacy.neighbours import Neighbours
from privfit.report.plotting import draw_roc

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "chances", "run", "show_curve"]

HELP = "release the private ROC curve of a model on labelled records"
EXAMPLE = "privfit roc model.json test.csv --target income --epsilon 0.5 --plot roc.png"
DESCRIPTION = (
    "Release the ROC curve of a binary classifier. On records that the model was fitted to, this "
    "is a second release, which must be charged to the same budget: pass the --ledger of the fit."
)
OTHERS = "other values"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a model file")
    parser.add_argument("data", help=f"labelled {TABLE}")
    parser.add_argument("--target", required=True, metavar="NAME", help="the column of labels")
    parser.add_argument(
        "--positive", metavar="LABEL", help="positive class; default: the last one of the model"
    )
    parser.add_argument(
        "--group", metavar="NAME",
        help="a column of declared categories: one curve for each; they share no record, so all "
        "together cost what one costs (needs --adjacency add_remove)",
    )  # fmt: skip
    add_csv_form(parser)
    add_budget(parser)
    parser.add_argument("--out", metavar="FILE", help="the curve, as a model file")
    parser.add_argument("--plot", metavar="FILE", help="a plot of the curve")


def run(options: argparse.Namespace, console: Console) -> None:
    """Release a curve, or one for each group."""
    from privfit.models.model import dumps

    model = load_model(options.model)
    schema, classes = schema_of(model, options.model), _classes(model, options)
    positive, groups = _positive(options, classes), _groups(schema, options)
    ledger, seed = open_run(options, console), seed_of(options, console)
    with claim_if(options.out) as out, claim_picture_if(options.plot) as plot:
        table = read_records(options, console, schema, Target(options.target, tuple(classes)))
        scores = chances(model, table)
        scores = scores if positive == classes[-1] else 1 - scores
        sides = [next(label for label in classes if label != positive), positive]
        curves = {}
        for name, rows in _parts(table, groups, options.group):
            with ledger.group(f"{options.group}={name}") if groups else nullcontext():
                curves[name] = _curve(
                    (table.y, sides), scores, rows, options, len(groups), ledger, seed
                )
        if out is not None:
            out.write(dumps(curves[""]))
        if plot is not None:
            plot(lambda ax: draw_roc(curves if groups else curves[""], ax=ax))
    fields = {}
    for name, curve in curves.items():
        where = f" where {options.group} is {name!r}" if groups else ""
        fields[name] = show_curve(curve, console, f"{positive!r}{where}")
    told = {"groups": fields} if groups else fields[""]
    console.result({**told, "ledger": report(ledger, console)})


def chances(model: Any, table: Table) -> Floats:
    """(n,): scores of the last class, within [0, 1]."""
    return np.asarray(scipy.special.expit(model.decision_function(table.columns)))


def show_curve(curve: Any, console: Console, of: str) -> dict[str, Any]:
    """Print the area and some points of a curve, and return all of it for `--json`."""
    console.say(f"area under the private curve of {of}: {curve.auc:.4f}\n")
    shown = range(0, len(curve.fpr), max(1, len(curve.fpr) // 16))
    console.table(
        ("threshold", "false positives", "true positives"),
        [(f"{curve.thresholds[i]:.4f}", f"{curve.fpr[i]:.4f}", f"{curve.tpr[i]:.4f}")
         for i in shown],
    )  # fmt: skip
    console.say()
    thresholds = [None, *curve.thresholds[1:]]
    return {"auc": curve.auc, "fpr": curve.fpr, "tpr": curve.tpr, "thresholds": thresholds}


def _curve(
    labels: tuple[Array, list[Any]], scores: Floats, rows: Mask | None, options: argparse.Namespace,
    groups: int, ledger: RunLedger, seed: int | None,
) -> Any:  # fmt: skip
    """The curve of all records, or of a group; `labels` are their labels, and the two classes.

    Whether a group is empty must not show, so each gets one public record besides its own.
    """
    from privfit.evaluation.roc import roc_curve

    (y, (negative, positive)), size = labels, options.n_public
    if rows is not None:
        y, scores = np.append(y[rows], negative), np.append(scores[rows], 0.5)
        size = None if size is None else max(1, size // groups)
    return roc_curve(
        y, scores, options.epsilon, options.delta, adjacency=options.adjacency,
        n_public=size, ledger=ledger, random_state=seed, pos_label=positive,
    )  # fmt: skip


def _groups(schema: Schema, options: argparse.Namespace) -> list[str]:
    """The declared values of the column of --group; empty without it."""
    if options.group is None:
        return []
    column = schema.columns.get(options.group)
    values = None if column is None or column.holds_numbers else column.values
    if column is None or not values:
        known = [name for name, one in schema.columns.items() if not one.holds_numbers]
        raise InputError(
            f"--group ({options.group!r}){nearest(options.group, known)} must be a column of the "
            "model with declared categories; pass another, or leave it out"
        )
    if Neighbours.of(options.adjacency).replaces:
        raise InputError(
            "--group needs --adjacency add_remove: a record that is replaced may come into another "
            "group, and two curves would change; pass that"
        )
    if options.out is not None:
        raise InputError("--out takes one curve; leave it out, or leave out --group")
    names, others = list(map(str, values)), OTHERS
    while others in names:  # groups of one name would share one budget
        others = f"all {others}"
    return [*names, others] if column.width > len(values) else names


def _parts(table: Table, groups: list[str], name: str | None) -> Any:
    """Names of groups and their records; '' and None without groups."""
    if name is None:
        return [("", None)]
    column = table.columns[name]
    assert isinstance(column, Coded)
    codes = np.where(column.codes < 0, len(column.values), column.codes.astype(np.int64))
    return [(group, codes == code) for code, group in enumerate(groups)]


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
