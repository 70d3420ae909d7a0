"""``privfit fit``: a private classifier from a table."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import Any

import numpy as np

from privfit.base.errors import InputError
from privfit.commands.console import Console
from privfit.commands.outputs import claim
from privfit.commands.pictures import claim_picture_if
from privfit.commands.schemafile import Declared, add_declared, read_declared
from privfit.commands.spending import (
    RunLedger,
    add_budget,
    check_share,
    open_run,
    report,
    seed_of,
    split,
)
from privfit.commands.tables import Table, read_records
from privfit.domains import Schema
from privfit.domains.hashing import BUCKETS
from privfit.report import plotting

__all__ = ["DESCRIPTION", "HELP", "SOLVER", "add", "add_model", "estimator_of", "run", "width_of"]

HELP = "fit a private classifier to a table"
DESCRIPTION = (
    "Fit a classifier to private records and write it as a model file, which holds "
    "only declarations and released values."
)

SOLVER = "method; default: auto, which is best in most cases; an unknown name lists all methods"
MODELS = {"logistic": "LogisticRegression", "svm": "LinearSVC"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_declared(parser)
    add_model(parser)
    add_budget(parser)
    parser.add_argument(
        "--holdout", type=float, metavar="SHARE",
        help="hold out this share of the records and release the accuracy on them; the held-out "
        "records are disjoint from the training records, so this adds nothing to the cost",
    )  # fmt: skip
    parser.add_argument(
        "--trusted-eval", action="store_true",
        help="print the exact accuracy on the held-out records to stderr: NOT PRIVATE",
    )  # fmt: skip
    parser.add_argument("--out", required=True, metavar="FILE", help="the model file")
    parser.add_argument("--plot", metavar="FILE", help="a plot of the shapes of the columns")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a classifier."""
    parser.add_argument(
        "--model",
        dest="kind",
        choices=MODELS,
        default="logistic",
        help="kind of classifier; default: logistic, which also predicts probabilities",
    )
    parser.add_argument("--solver", default="auto", metavar="NAME", help=SOLVER)
    parser.add_argument(
        "--C", type=float, metavar="NUMBER",
        help="weight of the hinge loss relative to the regulariser, for --model svm; default: 1",
    )  # fmt: skip
    parser.add_argument(
        "--no-intercept", dest="intercept", action="store_false",
        help="fit the weights of the columns without an intercept",
    )  # fmt: skip
    parser.add_argument(
        "--class-weight", metavar="WEIGHTS",
        help="'balanced', or weights by class such as 'no=1,yes=10'",
    )  # fmt: skip
    parser.add_argument(
        "--calibrate", action=argparse.BooleanOptionalAction,
        help="spend 4 %% of the budget on honest probabilities, or not; default: where it helps, "
        "for --model logistic",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> None:
    """Fit, evaluate, write."""
    if options.trusted_eval and options.holdout is None:
        raise InputError("--trusted-eval needs held-out records; pass --holdout 0.2")
    if options.holdout is not None:
        check_share(options.holdout)
    declared = read_declared(options, console)
    ledger = open_run(options, console)
    model = estimator_of(options, declared)
    model.set_params(
        epsilon=options.epsilon, ledger=ledger, random_state=seed_of(options, console),
        verbose=int(console.watched),
    )  # fmt: skip
    if options.holdout is not None and options.n_public is not None:
        model.set_params(n_public=max(1, round(options.n_public * (1 - options.holdout))))
    from privfit.models.model import dumps

    numbers = width_of(declared.schema) * len(declared.classes)
    with claim(options.out, numbers) as out, claim_picture_if(options.plot) as plot:
        table = read_records(options, console, declared.schema, declared.target)
        train, test = _split(table, options)
        with ledger.group("train") if len(test) else nullcontext():
            model.fit(train.columns, train.y)
        out.write(dumps(model))
        if plot is not None:
            plot(lambda _: plotting.draw_shapes(model))
    accuracy = _evaluate(model, test, options, console, ledger) if len(test) else None
    console.say(f"{options.out}: {type(model).__name__} of {len(declared.schema.columns)} columns, "
                f"{ledger.budget}, {options.adjacency}")  # fmt: skip
    if accuracy is not None:
        console.say(f"accuracy on held-out records, privately estimated: {accuracy:.4f}")
    console.say()
    spent = report(ledger, console)
    console.result({"model": options.out, "accuracy": accuracy, "ledger": spent})


def estimator_of(options: argparse.Namespace, declared: Declared) -> Any:
    """The classifier that the options ask for, not yet fitted."""
    from privfit import estimators

    if options.C is not None and options.kind != "svm":
        raise InputError("--C applies only to --model svm; leave it out")
    more = {"C": options.C, "calibrate": options.calibrate}
    given = {name: value for name, value in more.items() if value is not None}
    classes = list(declared.classes)
    return getattr(estimators, MODELS[options.kind])(
        delta=options.delta, domain=declared.schema, classes=classes, solver=options.solver,
        fit_intercept=options.intercept, class_weight=_class_weight(options.class_weight, classes),
        adjacency=options.adjacency, n_public=options.n_public, n_threads=options.threads, **given,
    )  # fmt: skip


def width_of(schema: Schema) -> int:
    """The number of coded columns; of blanks, the most that are bought unless there are names."""
    return sum(BUCKETS if column.is_blank else column.width for column in schema.columns.values())


def _class_weight(text: str | None, classes: list[Any]) -> Any:
    """What `class_weight` takes: None, 'balanced', or weights by the declared classes."""
    if text is None or text == "balanced":
        return text
    by_name, weights = {str(label): label for label in classes}, {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            weights[by_name[name.strip()]] = float(number)
        except (KeyError, ValueError):
            raise InputError(
                f"--class-weight ({text}) must be 'balanced' or weights by class; pass "
                f"{','.join(f'{label}=1' for label in classes)} with other numbers"
            ) from None
    return weights


def _split(table: Table, options: argparse.Namespace) -> tuple[Table, Table]:
    """The records to fit and those that are held out; none without --holdout."""
    if options.holdout is None:
        return table, table[:0]
    held = split(table, options.holdout, options.adjacency)
    return table[~held], table[held]


def _evaluate(
    model: Any, test: Table, options: argparse.Namespace, console: Console, ledger: RunLedger
) -> float | None:
    """The accuracy on records that the fit did not see: they have the whole budget to themselves.

    None with --trusted-eval, which prints the exact accuracy to stderr.
    """
    from privfit.evaluation.roc import accuracy_score

    right = model.predict(test.columns) == test.y
    if options.trusted_eval:
        console.warn(
            f"--trusted-eval: accuracy {np.mean(right):.4f} on held-out records is exact, NOT "
            "PRIVATE and in no ledger; show it only to people who may see the records"
        )
        return None
    with ledger.group("test"):
        return accuracy_score(
            np.ones(len(right), dtype=np.int64), right.astype(np.float64), options.epsilon,
            adjacency=options.adjacency, ledger=ledger, random_state=options.seed,
        )  # fmt: skip
