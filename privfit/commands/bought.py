"""privfit schema --epsilon: a schema bought from a budget, which may be published."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from privfit.base.errors import InputError
from privfit.commands.arguments import add_list
from privfit.commands.console import Console
from privfit.commands.files import CsvForm, opened
from privfit.commands.outputs import claim_if
from privfit.commands.spending import add_budget, open_run, report, seed_of
from privfit.commands.tables import with_points
from privfit.domains import Categorical, Numeric, Schema
from privfit.domains.toml import toml_text
from privfit.records.blanks import BlankRows
from privfit.records.sums import Held, joined
from privfit.runs.payment import Terms
from privfit.runs.schemas import bought

__all__ = ["add_bought", "check_not_bought", "run_bought"]

HEAD = """\
# A schema bought from records by privfit schema. It may be published: [bought] says what it cost.
# A column that you change by hand is declared by you: take its name off the list there.

"""

ONLY_BOUGHT = ("number", "category", "missing", "no_names", "ledger", "seed", "n_public")


def add_bought(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a schema that is bought."""
    group = parser.add_argument_group("a schema that may be published, bought with --epsilon")
    add_list(group, "--number", metavar="NAME", help="columns of numbers: their cuts are bought")
    add_list(
        group, "--category", metavar="NAME",
        help="columns of categories: names of frequent values are bought",
    )  # fmt: skip
    group.add_argument(
        "--no-names", action="store_true",
        help="hash the values of categories instead of buying their names; needs no --delta",
    )  # fmt: skip
    add_list(
        group, "--missing", metavar="TEXT",
        help="texts that stand for a missing value, besides empty cells",
    )  # fmt: skip
    add_budget(parser, required=False)


def check_not_bought(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing without a budget."""
    given = [name for name in ONLY_BOUGHT if getattr(options, name) not in (None, False)]
    if given:
        raise InputError(
            f"--{given[0].replace('_', '-')} needs a budget; pass --epsilon, or leave it out for "
            "a draft"
        )


def run_bought(options: argparse.Namespace, console: Console) -> None:
    """Read the columns, buy their blanks, write the schema."""
    if options.target is not None:
        raise InputError(
            "--target is for drafts, since classes are declared and not bought; pass --target and "
            "--classes to privfit fit"
        )
    schema = _blank(options)
    ledger = open_run(options, console)
    terms = Terms(
        "learn_schema", options.epsilon, options.delta, options.adjacency, options.n_public,
        ledger, seed_of(options, console),
    )  # fmt: skip
    with claim_if(options.out) as out:
        found = bought(schema, joined([*_pieces(options, schema)]), terms, None)
        form = CsvForm.of(options).declared
        text = HEAD + found.to_toml() + (f"\n{toml_text({}, {'data': form})}" if form else "")
        if out is not None:
            out.write(text)
    if out is not None or console.machine:
        console.result({"schema": options.out or text, "ledger": report(ledger, console)})
    else:
        console.product(text)


def _pieces(options: argparse.Namespace, schema: Schema) -> Iterator[Held[BlankRows]]:
    form = CsvForm.of(options)
    numbers = [name for name, one in schema.columns.items() if one.holds_numbers]
    with opened(options.data, list(schema.columns), form) as pieces:
        for piece in pieces:
            read = {name: with_points(piece[name]) for name in numbers if form.decimal == ","}
            yield Held(BlankRows.pack({**piece, **read}, schema=schema))


def _blank(options: argparse.Namespace) -> Schema:
    """The columns that were named, in the order of the options."""
    numbers, categories = options.number or [], options.category or []
    twice = sorted(name for name in {*numbers, *categories}
                   if (numbers + categories).count(name) > 1)  # fmt: skip
    if twice or not numbers + categories:
        raise InputError(
            f"--number and --category ({', '.join(twice) or 'none'}) must name each column once; "
            "pass --number age,hours --category job"
        )
    if categories and not options.no_names and not options.delta:
        raise InputError(
            "--category needs --delta for names to be bought; pass --delta 1e-6, or --no-names"
        )
    category = Categorical() if options.no_names else Categorical(names="bought")
    columns: dict[str, Numeric | Categorical] = dict.fromkeys(numbers, Numeric(bins="auto"))
    columns |= dict.fromkeys(categories, category)
    return Schema(columns, missing=tuple(dict.fromkeys(["", *(options.missing or [])])))
