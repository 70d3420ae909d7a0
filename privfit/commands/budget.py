"""``privfit budget``: the epsilon of each selection, and the state of a budget file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from privfit.base.errors import InputError
from privfit.base.rounding import exact, rounded_up
from privfit.commands.arguments import DELTA, EPSILON, Between, add_list
from privfit.commands.console import Console
from privfit.commands.pictures import claim_picture_if
from privfit.commands.spending import open_shared
from privfit.privacy.accounting import METHODS, calibrate, table
from privfit.privacy.budget_file import LedgerFile, open_ledger
from privfit.privacy.charges import Charge, Entry, total
from privfit.privacy.ledger import ADJACENCIES, Budget, Ledger
from privfit.privacy.reservations import RENEWALS
from privfit.report import plotting

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

HELP = "show what each of n selections may spend, or the state of a budget file"
EXAMPLE = "privfit budget --create --ledger budget.json --epsilon 2 --delta 1e-5"
DESCRIPTION = (
    "Show how much epsilon each of n selections may spend under every composition theorem. With "
    "--ledger, show what a budget file has spent and what is left; --log adds who reserved what "
    "and when, and --create creates the file."
)

SELECTIONS = Between(1, 10**6, "1001", whole=True)
LOGGED = ("time", "run", "part", "user", "host", "version", "model", "state")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--epsilon", type=EPSILON, metavar="E", help="total epsilon; default of the table: 1"
    )
    parser.add_argument(
        "--delta", type=DELTA, metavar="D", help="total delta; default of the table: 1e-6"
    )
    add_list(
        parser,
        "--selections",
        SELECTIONS,
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
    parser.add_argument(
        "--renewal", choices=RENEWALS,
        help="with --create: the file has its whole budget again in each day, week, month or year "
        "(UTC); the guarantee is then one per period",
    )  # fmt: skip
    parser.add_argument(
        "--log", action="store_true",
        help="list the entries of the budget file with their time, run, user, host, version, model "
        "file and state",
    )  # fmt: skip
    parser.add_argument(
        "--plot", metavar="FILE", help="a plot of the budget file: what each entry took"
    )
    parser.add_argument(
        "--by-name", action="store_true", help="with --plot: one bar for all entries of a name"
    )


def run(options: argparse.Namespace, console: Console) -> None:
    """Show a table of theorems, or a budget file."""
    if options.by_name and not options.plot:
        raise InputError("--by-name is for a plot; pass --plot FILE")
    if options.renewal and not options.create:
        raise InputError("--renewal is declared with a new budget file; pass --create")
    if options.ledger is None:
        if options.create or options.plot:
            raise InputError("--create and --plot are for a budget file; pass --ledger FILE")
        if options.adjacency or options.log:
            raise InputError("--adjacency and --log are for a budget file; pass --ledger FILE")
        _theorems(options, console)
    elif options.create:
        if options.epsilon is None or options.delta is None:
            raise InputError("--create needs a budget; pass --epsilon 1 --delta 1e-6, or others")
        ledger = open_ledger(options.ledger, options.epsilon, options.delta, options.adjacency,
                             renewal=options.renewal)  # fmt: skip
        _file(ledger, options, console)
    else:
        _file(open_shared(options.ledger, options.adjacency), options, console)


def _theorems(options: argparse.Namespace, console: Console) -> None:
    epsilon = 1.0 if options.epsilon is None else options.epsilon
    delta = 1e-6 if options.delta is None else options.delta
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


def _file(ledger: LedgerFile, options: argparse.Namespace, console: Console) -> None:
    charges, neighbours = ledger.charges, ledger.neighbours
    rows = [(one, one.cost(neighbours)) for one in charges]
    sums = [("spent", ledger.spent), ("left", ledger.remaining), ("budget", ledger.budget)]
    with claim_picture_if(options.plot) as plot:
        if plot is not None:
            drawn = _drawn(ledger, options.by_name)
            plot(lambda ax: plotting.draw_budget(drawn, ax=ax))
    console.table(
        (options.ledger, "records", "epsilon", "delta"),
        [(name, group, f"{budget.epsilon:.6g}", f"{budget.delta:.6g}")
         for name, group, budget in [*((one.name, one.group or "all", cost) for one, cost in rows),
                                     *((name, "all", budget) for name, budget in sums)]],
    )  # fmt: skip
    _say_terms(ledger, charges, console)
    if options.log:
        _log(charges, console)
    entries = [{"name": one.name, "records": one.group or "all", **_numbers(cost), **_who(one)}
               for one, cost in rows]  # fmt: skip
    console.result(
        {"entries": entries}
        | {name: _numbers(budget) for name, budget in sums}
        | {"adjacency": ledger.adjacency, "max_rows": ledger.max_rows}
        | {"renewal": ledger.renewal, "period": ledger.period or None}
    )


def _say_terms(ledger: LedgerFile, charges: tuple[Charge, ...], console: Console) -> None:
    """Say what the numbers of the table are about."""
    relation = ledger.adjacency or "not declared yet"
    console.say(f"neighbours: {relation}, at most {ledger.max_rows} row(s) per person")
    if ledger.renewal is not None:
        console.say(f"renewal: each {ledger.renewal}; spent and left are those of {ledger.period}, "
                    "and periods add up")  # fmt: skip
    for charge in charges:
        if charge.cost(ledger.neighbours) != charge.budget:
            console.say(f"{charge.name}: {charge.budget} under {charge.adjacency}, converted")


def _log(charges: tuple[Charge, ...], console: Console) -> None:
    """Print who reserved what, one line for each entry."""
    console.say()
    console.table(
        ("name", *LOGGED),
        [(one.name, *(_cell(_who(one)[name]) for name in LOGGED)) for one in charges],
    )  # fmt: skip


def _cell(value: object) -> str:
    return "-" if value in (None, "") else str(value)


def _who(charge: Charge) -> dict[str, Any]:
    """The reservation of an entry; all None for one of an earlier version."""
    if charge.reservation is None:
        return dict.fromkeys(LOGGED)
    return charge.reservation.fields()


def _drawn(ledger: LedgerFile, by_name: bool) -> Ledger:
    """A ledger in memory, to draw: the entries of the present period, maybe added up by name."""
    shown = Ledger(ledger.budget.epsilon, ledger.budget.delta, ledger.adjacency)
    entries = list(ledger._counting())
    if by_name:
        entries = [
            (group, name, _sum(one for one in entries if one[:2] == (group, name)))
            for group, name in dict.fromkeys((group, name) for group, name, _ in entries)
        ]
    shown._charges = [Charge(*entry) for entry in entries]
    return shown


def _sum(entries: Iterable[Entry]) -> Budget:
    epsilon, delta = total(entries)
    return Budget(rounded_up(epsilon, exact), rounded_up(delta, exact))


def _numbers(budget: Budget) -> dict[str, float]:
    return {"epsilon": budget.epsilon, "delta": budget.delta}
