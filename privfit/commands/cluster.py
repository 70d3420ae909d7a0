"""``privfit cluster``: private k-means centres of a table."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from privfit import plotting
from privfit.commands.arguments import Between
from privfit.commands.console import Console, InputError
from privfit.commands.fit import SOLVER
from privfit.commands.outputs import claim
from privfit.commands.pictures import claim_picture_if
from privfit.commands.schemafile import add_declared, read_declared
from privfit.commands.spending import add_budget, open_run, report, seed_of
from privfit.commands.tables import read_records
from privfit.domains import Numeric, Schema
from privfit.kmeans import MOST_STEPS

__all__ = ["DESCRIPTION", "HELP", "add", "run", "show_centres"]

HELP = "private k-means centres of a table"
DESCRIPTION = (
    "Find private k-means centres and write them as a model file. Distances are "
    "those of columns scaled to [0, 1] by their declared ranges, and of categories as 0 or 1."
)

CLUSTERS = Between(1, 10_000, "8", whole=True)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_declared(parser, target=False)
    parser.add_argument(
        "--clusters", type=CLUSTERS, required=True, metavar="K", help="how many centres"
    )
    parser.add_argument("--solver", default="auto", metavar="NAME", help=SOLVER)
    parser.add_argument(
        "--postprocess", choices=("mcmc", "anneal"),
        help="cluster a likely synthetic data set, given what noisy Lloyd released, at no cost",
    )  # fmt: skip
    add_budget(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the model file")
    parser.add_argument("--plot", metavar="FILE", help="a picture of the centres")


def run(options: argparse.Namespace, console: Console) -> None:
    """Cluster, write, draw."""
    declared = read_declared(options, console, label=False)
    if options.plot is not None and declared.schema.width < 2:
        raise InputError("--plot needs two columns; pass --columns with more of them, or no --plot")
    ledger = open_run(options, console)
    from privfit.estimators import KMeans
    from privfit.model import dumps

    model = KMeans(
        options.clusters, options.epsilon, options.delta, domain=declared.schema,
        solver=options.solver, postprocess=options.postprocess, adjacency=options.adjacency,
        n_public=options.n_public, ledger=ledger, n_threads=options.threads,
        random_state=seed_of(options, console), verbose=int(console.watched),
    )  # fmt: skip
    # A model file keeps the centres, counts and sums of every step of noisy Lloyd.
    numbers = 3 * MOST_STEPS * declared.schema.width * options.clusters
    with claim(options.out, numbers) as out, claim_picture_if(options.plot) as plot:
        table = read_records(options, console, declared.schema)
        if options.adjacency == "replace" and options.clusters > len(table):  # a public number
            raise InputError(
                f"--clusters ({options.clusters}) must be at most the number of records; pass a "
                "smaller one"
            )
        model.fit(table.columns)
        out.write(dumps(model))
        if plot is not None:
            plot(lambda ax: plotting.draw_clusters(model, ax=ax))
    names, values = _centres(model)
    console.say(f"{options.out}: {len(values)} centres, {ledger.budget}, {options.adjacency}\n")
    show_centres(model, console)
    console.say()
    spent = report(ledger, console)
    console.result({"model": options.out, "columns": names, "centres": values, "ledger": spent})


def show_centres(model: Any, console: Console) -> None:
    """A table of centres."""
    names, values = _centres(model)
    console.table(
        ("centre", *names),
        [(str(i), *(f"{value:.6g}" for value in centre)) for i, centre in enumerate(values)],
    )


def _centres(model: Any) -> tuple[list[str], Any]:
    """The names of the coded columns, and (k, d) centres in the units of the table's numbers."""
    schema, values = model.domain_, np.array(model.cluster_centers_)
    if not isinstance(schema, Schema):
        return [f"x{j}" for j in range(values.shape[1])], values
    start = 0
    for column in schema.columns.values():
        if isinstance(column, Numeric) and not column.bins:
            values[:, start] = column.low + values[:, start] * (column.high - column.low)
        start += column.width
    return schema.feature_names, values
