"""``privfit fit``: a private classifier from a table."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import Any

import numpy as np

from privfit.base.errors import InputError
from privfit.commands.console import Console
from privfit.commands.files import is_partitioned
from privfit.commands.outputs import claim
from privfit.commands.pictures import claim_picture_if
from privfit.commands.roc import chances, show_curve
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
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.released import ReleasedFloat
from privfit.report import plotting
from privfit.report.estimates import Estimate

__all__ = [
    "DESCRIPTION",
    "EXAMPLE",
    "HELP",
    "SOLVER",
    "add",
    "add_model",
    "estimator_of",
    "run",
    "width_of",
]

HELP = "fit a private classifier to a table"
EXAMPLE = "privfit fit people.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out model.json"
DESCRIPTION = (
    "Fit a classifier to private records; the model file holds declarations and released values."
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
        "--roc", nargs="?", const="", metavar="FILE",
        help="also release the ROC curve on the held-out records, from three quarters of their "
        "epsilon; the model file keeps it for privfit report, and FILE gets a plot of it",
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
    _check_evaluation(options)
    declared = read_declared(options, console)
    if options.roc is not None and len(declared.classes) != 2:
        raise InputError("--roc is for two classes; leave it out")
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
    kept = options.holdout is not None and not options.trusted_eval
    with (
        claim(options.out, numbers) as out,
        claim(options.out, numbers) if kept else nullcontext() as evaluated,
        claim_picture_if(options.plot) as plot,
        claim_picture_if(options.roc or None) as plot_roc,
    ):
        if options.roc is not None:
            console.say(
                f"held-out records: epsilon {_shares(options)[0]:.6g} for their accuracy, "
                f"{_shares(options)[1]:.6g} for their ROC curve\n"
            )
        table = read_records(options, console, declared.schema, declared.target)
        train, test = _split(table, options)
        with ledger.group("train") if len(test) else nullcontext():
            model.fit(train.columns, train.y)
        out.write(dumps(model))  # first, so that it is not lost if an evaluation fails
        if plot is not None:
            plot(lambda _: plotting.draw_shapes(model))
        found = _evaluations(model, test, options, console, ledger)
        if plot_roc is not None:
            plot_roc(lambda ax: found["curve"].plot(ax=ax))
        if evaluated is not None:
            evaluated.write(dumps(model, **found))
    console.say(f"{options.out}: {type(model).__name__} of {len(declared.schema.columns)} columns, "
                f"{ledger.budget}, {options.adjacency}")  # fmt: skip
    told = {"model": options.out, **_told(found, len(test), declared.classes[-1], console)}
    console.result({**told, "ledger": report(ledger, console)})


def _evaluations(
    model: Any, test: Table, options: argparse.Namespace, console: Console, ledger: RunLedger
) -> dict[str, Any]:
    """What was released of the held-out records: their accuracy and, with --roc, their curve."""
    if not len(test):
        return {}
    found: dict[str, Any] = {"accuracy": _evaluate(model, test, options, console, ledger)}
    if options.roc is not None:
        found["curve"] = _roc(model, test, options, ledger)
    return found


def _told(found: dict[str, Any], n: int, positive: Any, console: Console) -> dict[str, Any]:
    """Print evaluations, and return them for `--json`."""
    accuracy, curve = found.get("accuracy"), found.get("curve")
    told: dict[str, Any] = {"accuracy": accuracy}
    if accuracy is not None:
        estimate = Estimate.of(accuracy, n)
        told["accuracy_interval"] = [estimate.lower, estimate.upper]
        console.say(f"accuracy on held-out records, privately estimated: {estimate}")
    console.say()
    if curve is not None:
        told["roc"] = show_curve(curve, console, f"{positive!r} on held-out records")
    return told


def _check_evaluation(options: argparse.Namespace) -> None:
    """Refuse options for held-out records where there are none."""
    if options.holdout is not None:
        check_share(options.holdout)
        by_query = options.sql is not None
        moves = by_query or is_partitioned(options.data)
        if Neighbours.of(options.adjacency).replaces and moves:
            where = "what a record contains may decide its row" if by_query else (
                "the folder of a record is part of it here"
            )  # fmt: skip
            raise InputError(
                f"--holdout splits records by position under --adjacency replace, but {where}, so "
                "that one that is replaced could shift others; pass --adjacency add_remove, or one "
                "file"
            )
    elif options.trusted_eval or options.roc is not None:
        name = "--roc" if options.roc is not None else "--trusted-eval"
        raise InputError(f"{name} needs held-out records; pass --holdout 0.2")
    if options.trusted_eval and options.roc is not None:
        raise InputError("--roc is private, and --trusted-eval is not; leave one of them out")


def _shares(options: argparse.Namespace) -> tuple[float, float]:
    """What held-out records pay for their accuracy, and for their ROC curve."""
    if options.roc is None:
        return options.epsilon, 0.0
    accuracy = options.epsilon / 4
    return accuracy, options.epsilon - accuracy


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
) -> ReleasedFloat | None:
    """The accuracy on records that the fit did not see: they have a whole budget to themselves.

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
            np.ones(len(right), dtype=np.int64), right.astype(np.float64), _shares(options)[0],
            adjacency=options.adjacency, ledger=ledger, random_state=options.seed,
        )  # fmt: skip


def _roc(model: Any, test: Table, options: argparse.Namespace, ledger: RunLedger) -> Any:
    """The ROC curve of the last declared class on the same records, from the rest of it."""
    from privfit.evaluation.roc import roc_curve

    size, positive = options.n_public, model.classes[-1]
    scores = chances(model, test)
    scores = scores if model.classes_[-1] == positive else 1 - scores
    with ledger.group("test"):
        return roc_curve(
            test.y, scores, _shares(options)[1], options.delta, pos_label=positive,
            adjacency=options.adjacency, ledger=ledger, random_state=options.seed,
            n_public=None if size is None else max(1, round(size * options.holdout)),
        )  # fmt: skip
