"""``privfit budget``: the epsilon of each selection, and the state of a budget file."""

from __future__ import annotations

import argparse

from privfit.base.errors import InputError
from privfit.commands.arguments import DELTA, EPSILON, Between
from privfit.commands.console import Console
from privfit.commands.pictures import claim_picture_if
from privfit.commands.spending import open_shared
from privfit.privacy.accounting import METHODS, calibrate, table
from privfit.privacy.ledger import ADJACENCIES, Budget, Ledger
from privfit.report import plotting

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "show what each of n selections may spend, or the state of a budget file"
DESCRIPTION = (
    "Show how much epsilon each of n selections may spend under every composition theorem. With "
    "--ledger, show what a budget file has spent and what is left; --create creates the file."
)

SELECTIONS = Between(1, 10**6, "1001", whole=True)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--epsilon", type=EPSILON, default=1.0, metavar="E", help="total epsilon; default: 1"
    )
    parser.add_argument(
        "--delta", type=DELTA, default=1e-6, metavar="D", help="total delta; default: 1e-6"
    )
    parser.add_argument(
        "--selections",
        type=SELECTIONS,
        nargs="+",
        default=[10, 101, 1001],
        metavar="N",
        help="number of private selections that share the budget; default: 10 101 1001",
    )
    parser.add_argument("--ledger", metavar="FILE", help="a budget file")
    parser.add_argument(
        "--create", action="store_true", help="create the budget file with --epsilon and --delta"
    )
    parser.add_argument(
        "--adjacency", choices=ADJACENCIES,
        help="the neighbour relation of the budget file; default: the relation of its first run",
    )  # fmt: skip
    parser.add_argument("--plot", metavar="FILE", help="a plot of the budget file")


def run(options: argparse.Namespace, console: Console) -> None:
    """Show a table of theorems, or a budget file."""
    if options.ledger is None:
        if options.create or options.plot:
            raise InputError("--create and --plot are for a budget file; pass --ledger FILE")
        if options.adjacency:
            raise InputError("--adjacency is for a budget file; pass --ledger FILE")
        _theorems(options, console)
        return
    if not options.create:
        _file(open_shared(options.ledger, options.adjacency), options, console)
        return
    from privfit.privacy.budget_file import open_ledger

    ledger = open_ledger(options.ledger, options.epsilon, options.delta, options.adjacency)
    _file(ledger, options, console)


def _theorems(options: argparse.Namespace, console: Console) -> None:
    epsilon, delta = options.epsilon, options.delta
    console.say(table(epsilon, delta, options.selections))
    if console.machine:
        each = {
            method: {
                str(n): calibrate(n, epsilon=epsilon, delta=delta, method=method)
                for n in options.selections
            }
            for method in METHODS
        }
        console.result({"epsilon": epsilon, "delta": delta, "epsilon_each": each})


def _file(ledger: Ledger, options: argparse.Namespace, console: Console) -> None:
    rows = [(name, group or "all", budget) for group, name, budget in ledger.entries]
    relation = ledger.adjacency or "not declared yet"
    sums = [("spent", ledger.spent), ("left", ledger.remaining), ("budget", ledger.budget)]
    with claim_picture_if(options.plot) as plot:
        if plot is not None:
            plot(lambda ax: plotting.draw_budget(ledger, ax=ax))
    console.table(
        (options.ledger, "records", "epsilon", "delta"),
        [(name, group, f"{budget.epsilon:.6g}", f"{budget.delta:.6g}")
         for name, group, budget in [*rows, *((name, "all", budget) for name, budget in sums)]],
    )  # fmt: skip
    console.say(f"neighbours: {relation}, at most {ledger.max_rows} row(s) per person")
    for charge in ledger.charges:
        if charge.cost(ledger.neighbours) != charge.budget:
            console.say(f"{charge.name}: {charge.budget} under {charge.adjacency}, converted")
    console.result(
        {"entries": [{"name": name, "records": group, **_numbers(budget)}
                     for name, group, budget in rows]}
        | {name: _numbers(budget) for name, budget in sums}
        | {"adjacency": ledger.adjacency, "max_rows": ledger.max_rows}
    )  # fmt: skip


def _numbers(budget: Budget) -> dict[str, float]:
    return {"epsilon": budget.epsilon, "delta": budget.delta}
