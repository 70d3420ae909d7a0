"""``privfit cluster``: private k-means centres of a table, or k-median ones among places."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from privfit.base.errors import InputError
from privfit.clustering.lloyd import MOST_STEPS
from privfit.commands.arguments import Between
from privfit.commands.console import Console
from privfit.commands.fit import SOLVER
from privfit.commands.outputs import claim
from privfit.commands.pictures import claim_picture_if
from privfit.commands.schemafile import add_declared, read_declared
from privfit.commands.spending import add_budget, open_run, report, seed_of
from privfit.commands.tables import CsvForm, read_records, read_table
from privfit.domains import Schema
from privfit.privacy.neighbours import Neighbours
from privfit.report import plotting

__all__ = ["DESCRIPTION", "HELP", "add", "run", "show_centres"]

HELP = "private k-means centres of a table, or k-median places"
DESCRIPTION = (
    "Find private k-means centres, or with --places k-median ones among public places, and write "
    "them as a model file. Distances are those of columns scaled to [0, 1] by their declared "
    "ranges, and of categories as 0 or 1."
)

CLUSTERS = Between(1, 10_000, "8", whole=True)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_declared(parser, target=False)
    parser.add_argument(
        "--clusters", type=CLUSTERS, required=True, metavar="K", help="how many centres"
    )
    parser.add_argument(
        "--places", metavar="FILE",
        help="a table of PUBLIC places with the columns of the schema: choose the centres among "
        "them by k-median, the sum of distances along the columns",
    )  # fmt: skip
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
    model = _estimator_of(options, declared.schema)
    model.set_params(
        ledger=ledger, random_state=seed_of(options, console), verbose=int(console.watched)
    )
    from privfit.models.model import dumps

    numbers = _most_numbers(model, declared.schema)
    with claim(options.out, numbers) as out, claim_picture_if(options.plot) as plot:
        table = read_records(options, console, declared.schema)
        is_public = Neighbours.of(options.adjacency).size_is_public
        if is_public and options.clusters > len(table):
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


def _estimator_of(options: argparse.Namespace, schema: Schema) -> Any:
    """k-means, or k-median where public places are given; not yet fitted."""
    from privfit.estimators import KMeans, KMedian

    shared = {
        "n_clusters": options.clusters, "epsilon": options.epsilon, "delta": options.delta,
        "domain": schema, "solver": options.solver, "adjacency": options.adjacency,
        "n_public": options.n_public, "n_threads": options.threads,
    }  # fmt: skip
    if options.places is None:
        return KMeans(**shared, postprocess=options.postprocess)
    if options.postprocess is not None:
        raise InputError("--postprocess is for k-means; leave it out, or pass no --places")
    places = read_table(options.places, schema, None, CsvForm.of(options))
    return KMedian(**shared, facilities=schema.rounded(places.columns).toarray())


def _most_numbers(model: Any, schema: Schema) -> int:
    """How many numbers a model file may hold."""
    if hasattr(model, "facilities"):
        return int(model.facilities.size) + model.n_clusters * schema.width
    # The centres, counts and sums of every step of noisy Lloyd.
    return 3 * MOST_STEPS * schema.width * int(model.n_clusters)


def show_centres(model: Any, console: Console) -> None:
    """A table of centres."""
    names, values = _centres(model)
    console.table(
        ("centre", *names),
        [(str(i), *(f"{value:.6g}" for value in centre)) for i, centre in enumerate(values)],
    )


def _centres(model: Any) -> tuple[list[str], Any]:
    """The names of the coded columns, and (k, d) centres in the units of the table's numbers."""
    domain, values = model.domain_, np.array(model.cluster_centers_)
    for j, (low, high) in domain.shares.items():
        values[:, j] = low + values[:, j] * (high - low)
    return domain.coded_names(), values
