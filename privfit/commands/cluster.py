"""``privfit cluster``: private k-means centres, or k-median centres among places."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from privfit.base.errors import InputError
from privfit.clustering.grids import KEPT_CELLS
from privfit.clustering.lloyd import MOST_STEPS
from privfit.clustering.units import in_units
from privfit.commands.arguments import Between
from privfit.commands.console import Console
from privfit.commands.files import CsvForm
from privfit.commands.fit import SOLVER, width_of
from privfit.commands.outputs import claim
from privfit.commands.pictures import claim_picture_if
from privfit.commands.schemafile import add_declared, read_declared
from privfit.commands.spending import add_budget, open_run, report, seed_of
from privfit.commands.tables import read_records, read_table
from privfit.domains import Schema
from privfit.privacy.accounting import Event
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import epsilon_left
from privfit.report import plotting

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "draw_centres", "run", "show_centres"]

HELP = "find private k-means centres of a table, or k-median centres among places"
EXAMPLE = (
    "privfit cluster places.csv --schema places.toml --clusters 15 --epsilon 1 --out centres.json"
)
DESCRIPTION = (
    "Find private k-means centres, or with --places k-median centres among public places, and "
    "write them as a model file. Distances are computed on columns scaled to [0, 1] by their "
    "declared ranges, and on one-hot encoded categories."
)

CLUSTERS = Between(1, 10_000, "8", whole=True)
CHOSEN_FROM = range(2, 21)  # by --clusters auto
CHOICE = 0.3  # of epsilon, for --clusters auto
FEW_COLUMNS = 6  # that stand side by side in a table of centres
LEVEL = 0.9  # of intervals of sizes


def clusters(text: str) -> int | None:
    """A number of clusters; None for 'auto'."""
    return None if text == "auto" else int(CLUSTERS(text))


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_declared(parser, target=False)
    parser.add_argument(
        "--clusters", type=clusters, required=True, metavar="K",
        help="number of centres; 'auto' spends 30 %% of epsilon to choose one from 2 to 20",
    )  # fmt: skip
    parser.add_argument(
        "--places", metavar="FILE",
        help="a table of PUBLIC places with the columns of the schema: choose the centres among "
        "them by k-median, with the l1 distance",
    )  # fmt: skip
    parser.add_argument("--solver", default="auto", metavar="NAME", help=SOLVER)
    parser.add_argument(
        "--postprocess", choices=("auto", "mcmc", "anneal", "none"), default="auto",
        help="improve the centres by a likely synthetic data set, given what was released, at no "
        "cost; auto does so where it helps",
    )  # fmt: skip
    add_budget(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the model file")
    parser.add_argument("--plot", metavar="FILE", help="a plot of the centres")
    parser.add_argument(
        "--plot-costs", metavar="FILE", help="a plot of the costs by which --clusters auto chose"
    )


def run(options: argparse.Namespace, console: Console) -> None:
    """Cluster, write, draw."""
    declared = read_declared(options, console, label=False)
    if options.plot is not None and width_of(declared.schema) < 2:
        raise InputError("--plot needs two columns; pass more --columns, or leave out --plot")
    if options.plot_costs is not None and options.clusters is not None:
        raise InputError("--plot-costs is for --clusters auto; pass that, or leave it out")
    ledger = open_run(options, console)
    model = _estimator_of(options, declared.schema)
    model.set_params(
        ledger=ledger, random_state=seed_of(options, console), verbose=int(console.watched)
    )
    from privfit.models.model import dumps

    numbers = _most_numbers(model, declared.schema)
    with (
        claim(options.out, numbers) as out,
        claim_picture_if(options.plot) as plot,
        claim_picture_if(options.plot_costs) as plot_costs,
    ):
        table = read_records(options, console, declared.schema)
        is_public = Neighbours.of(options.adjacency).size_is_public
        if is_public and (options.clusters or CHOSEN_FROM[-1]) > len(table):
            raise InputError(
                f"--clusters ({options.clusters or CHOSEN_FROM[-1]}) must be at most the number of "
                "records; pass a smaller one"
            )
        if options.clusters is None:
            chosen = _choose(model, table.columns)
            if plot_costs is not None:
                plot_costs(lambda ax: plotting.draw_choice(chosen, ax))
        model.fit(table.columns)
        out.write(dumps(model))
        if plot is not None:
            plot(lambda ax: draw_centres(model, ax))
    names, values = _centres(model)
    console.say(f"{options.out}: {len(values)} centres, {ledger.budget}, {options.adjacency}\n")
    show_centres(model, console)
    console.say()
    spent = report(ledger, console)
    sizes = getattr(model, "cluster_sizes_", None)
    console.result({"model": options.out, "columns": names, "centres": values, "sizes": sizes,
                    "ledger": spent})  # fmt: skip


def _choose(model: Any, columns: Any) -> Any:
    """Choose the number of clusters with a part of the model's budget, which keeps the rest."""
    from privfit.clustering.choosing import choose_k

    part = CHOICE * model.epsilon
    shared = ("domain", "adjacency", "n_public", "ledger", "n_threads", "random_state")
    settings = {name: getattr(model, name) for name in shared}
    chosen = choose_k(columns, CHOSEN_FROM, part, **settings)
    rest = epsilon_left(model.epsilon, Event("pure", part))
    model.set_params(n_clusters=chosen.k, epsilon=rest)
    return chosen


def _estimator_of(options: argparse.Namespace, schema: Schema) -> Any:
    """k-means, or k-median if public places are given; not yet fitted."""
    from privfit.estimators import KMeans, KMedian

    if options.clusters is None and options.places is not None:
        raise InputError("--clusters auto is for k-means; pass a number, or leave out --places")
    shared = {
        "n_clusters": options.clusters or CHOSEN_FROM[-1], "epsilon": options.epsilon,
        "delta": options.delta, "domain": schema, "solver": options.solver,
        "adjacency": options.adjacency, "n_public": options.n_public, "n_threads": options.threads,
    }  # fmt: skip
    if options.places is None:
        chain = None if options.postprocess == "none" else options.postprocess
        return KMeans(**shared, postprocess=chain)
    if options.postprocess != "auto":
        raise InputError("--postprocess is for k-means; leave out --postprocess or --places")
    places = read_table(options.places, schema, None, CsvForm.of(options))
    return KMedian(**shared, facilities=schema.rounded(places.columns).toarray())


def _most_numbers(model: Any, schema: Schema) -> int:
    """The largest number of values that the model file may contain."""
    if hasattr(model, "facilities"):
        return int(model.facilities.size) + model.n_clusters * schema.width
    # The centres, counts and sums of every step, of twice as many seeds, and the cells of a tree.
    steps = 3 * (MOST_STEPS + 4) * width_of(schema) * 2 * int(model.n_clusters)
    return steps + (2 * width_of(schema) + 1) * KEPT_CELLS


def show_centres(model: Any, console: Console) -> None:
    """A table of centres, with released sizes; each of many columns has a row."""
    names, values = _centres(model)
    sizes, texts = _sizes(model), [[f"{value:.6g}" for value in centre] for centre in values]
    if len(names) <= FEW_COLUMNS:
        head = ("centre", *names, *(name for name, _ in sizes))
        rows = [(str(i), *cells, *(column[i] for _, column in sizes))
                for i, cells in enumerate(texts)]  # fmt: skip
        console.table(head, rows)
        return
    rows = [(name, *column) for name, column in sizes]
    rows += [(name, *cells) for name, *cells in zip(names, *texts, strict=True)]
    console.table(("column", *(f"centre {i}" for i in range(len(values)))), rows)


def draw_centres(model: Any, ax: Any) -> Any:
    """The plane of two columns, or of many columns a heat map in a figure of its own size."""
    if np.shape(model.cluster_centers_)[1] > plotting.PLANE:
        return plotting.draw_centers(model)
    return plotting.draw_clusters(model, ax)


def _centres(model: Any) -> tuple[list[str], Any]:
    """The names of the coded columns, and (k, d) centres in the units of the table."""
    named = getattr(model, "feature_names_in_", None)
    columns = in_units(model.domain_, model.cluster_centers_, named)
    return list(columns), np.array([*columns.values()]).T


def _sizes(model: Any) -> list[tuple[str, list[str]]]:
    """Columns of noisy sizes and their intervals; none if no sizes were released."""
    sizes = getattr(model, "cluster_sizes_", None)
    if sizes is None:
        return []
    ends = [f"{low:.0f} to {high:.0f}" for low, high in model.cluster_size_intervals(LEVEL)]
    return [("size", [f"{size:.0f}" for size in sizes]), (f"{100 * LEVEL:g} % interval", ends)]
