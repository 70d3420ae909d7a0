"""``privfit sweep``: the privacy-accuracy curve of a classifier on public records."""

from __future__ import annotations

import argparse
from pathlib import Path

from privfit.base.errors import InputError
from privfit.commands.arguments import COUNT, DELTA, EPSILON, add_list
from privfit.commands.console import Console
from privfit.commands.fit import add_model, estimator_of
from privfit.commands.outputs import claim
from privfit.commands.pictures import claim_picture_if
from privfit.commands.schemafile import add_declared, read_declared
from privfit.commands.tables import read_records
from privfit.privacy.ledger import ADJACENCIES
from privfit.report import plotting

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

HELP = "compute the privacy-accuracy curve on public or synthetic records"
EXAMPLE = (
    "privfit sweep synthetic.csv --schema schema.toml --public --epsilons 0.1 1 --out sweep.json"
)
DESCRIPTION = (
    "Fit private models at several values of epsilon, and one without privacy, on several splits. "
    "The accuracies are exact, so the records must be public or synthetic."
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_declared(parser)
    add_model(parser)
    add_list(
        parser,
        "--epsilons",
        EPSILON,
        default=[0.1, 0.3, 1.0, 3.0],
        metavar="E",
        help="values of epsilon; default: 0.1 0.3 1 3",
    )
    parser.add_argument(
        "--delta", type=DELTA, default=0.0, metavar="D", help="delta of every fit; default: 0"
    )
    parser.add_argument(
        "--adjacency",
        choices=ADJACENCIES,
        default="replace",
        help="neighbour relation; default: replace",
    )
    parser.add_argument(
        "--n-public",
        type=COUNT,
        metavar="N",
        help="public estimate of the number of records, for add_remove",
    )
    parser.add_argument(
        "--splits", type=COUNT, default=10, metavar="N", help="number of splits; default: 10"
    )
    parser.add_argument(
        "--public", action="store_true", help="declare that the records are public or synthetic"
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="the results of all trials, as JSON"
    )
    parser.add_argument("--resume", action="store_true", help="resume from the trials in --out")
    parser.add_argument("--plot", metavar="FILE", help="a plot of the curve")


def run(options: argparse.Namespace, console: Console) -> None:
    """Try every epsilon, and keep finished trials after an interrupt."""
    from privfit.report.sweeps import Sweep, SweepInterrupted, sweep
    from privfit.runs.listeners import bar

    if not options.public:
        raise InputError(
            "privfit sweep prints exact accuracies, which are not private; pass --public if the "
            "records are public or synthetic, or use privfit fit --holdout"
        )
    declared = read_declared(options, console)
    earlier = Sweep.from_json(Path(options.out).read_bytes()) if options.resume else None
    model = estimator_of(options, declared)
    with claim(options.out) as out, claim_picture_if(options.plot) as plot:
        table = read_records(options, console, declared.schema, declared.target)
        show = bar("sweep", "fit") if console.watched else lambda done, total: None
        try:
            found = sweep(
                model, table.columns, table.y, options.epsilons, public=True,
                seeds=options.splits, resume=earlier,
                progress=lambda now: show(len(now.trials), now.total),
            )  # fmt: skip
        except SweepInterrupted as interrupted:
            out.write(interrupted.sweep.to_json())
            raise
        out.write(found.to_json())
        if plot is not None:
            plot(lambda ax: plotting.draw_sweep(found, ax=ax))
    console.say(str(found))
    console.result({"sweep": options.out, "rows": [
        {"epsilon": row.setting, "mean": row.mean, "half_width": row.half_width}
        for row in found.rows
    ]})  # fmt: skip
