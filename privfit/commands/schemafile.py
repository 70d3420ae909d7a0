"""What a schema file declares: the columns of a record, the label and its classes.

Besides the tables that `Schema.from_toml` reads, such a file may have

    [data]
    label = "income"
    classes = ["<=50K", ">50K"]
    decimal = ","             # of the files that commands read, unless an option says otherwise
    encoding = "latin-1"

    [draft]
    read_from_data = true     # written by `privfit schema`: the ranges are not confirmed yet
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privfit.base.errors import InputError
from privfit.commands.arguments import COUNT, add_list
from privfit.commands.console import Console
from privfit.commands.files import TABLE, add_csv_form, nearest
from privfit.commands.tables import Target, as_labels
from privfit.domains import Schema
from privfit.domains.toml import read_toml

__all__ = ["Declared", "add_declared", "read_declared"]


@dataclass(frozen=True)
class Declared:
    """The columns that a model sees, and the label, if there is one."""

    schema: Schema
    target: Target | None = None

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels; empty without a target."""
        return () if self.target is None else self.target.classes


def add_declared(parser: argparse.ArgumentParser, target: bool = True) -> None:
    """Add the options of a command that fits to records."""
    parser.add_argument("data", help=TABLE)
    parser.add_argument(
        "--schema", required=True, metavar="FILE", help="TOML file that declares the columns"
    )
    if target:
        parser.add_argument(
            "--target", metavar="NAME", help="the column of labels; default: the schema's"
        )
        add_list(
            parser, "--classes", metavar="LABEL",
            help="the values of the label; default: the schema's",
        )  # fmt: skip
    add_list(parser, "--columns", metavar="NAME", help="columns to use; default: all of the schema")
    add_csv_form(parser)
    parser.add_argument(
        "--accept-leak", action="store_true",
        help="accept a draft of privfit schema, although it reveals individual records",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=COUNT, metavar="N", help="number of threads; default: all cores"
    )


def read_declared(options: argparse.Namespace, console: Console, label: bool = True) -> Declared:
    """What the schema file and the options declare together."""
    fields, schema = read_toml(options.schema), Schema.from_toml(options.schema)
    _check_draft(fields, options, console)
    data = fields.get("data", {})
    if not isinstance(data, dict):
        raise InputError(f"data ({data!r}) must be a table in {options.schema!r}; write [data]")
    _take_form(data, options)
    target = _target(schema, data, options) if label else None
    columns = {name: column for name, column in schema.columns.items()
               if target is None or name != target.name}  # fmt: skip
    if options.columns:
        columns = {name: columns[_known(name, columns, options)] for name in options.columns}
    if not columns:
        raise InputError(f"{options.schema!r} must declare columns besides the target; add some")
    return Declared(replace(schema, columns=columns).marked(schema.bought), target)


def _take_form(data: dict[str, Any], options: argparse.Namespace) -> None:
    """Use the decimal mark and the encoding of the schema file where no option was passed."""
    for name, known in (("decimal", ".,"), ("encoding", "")):
        value = data.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or (known and value not in [*known]):
            raise InputError(
                f"{name} ({value!r}) must be {' or '.join(known) or 'a text'} in the table [data] "
                f"of {options.schema!r}; write {name} = {'...' if not known else 'one of them'}"
            )
        if getattr(options, name) is None:
            setattr(options, name, value)


def _known(name: str, columns: dict[str, Any], options: argparse.Namespace) -> str:
    if name not in columns:
        raise InputError(
            f"--columns ({name!r}) must be a declared column of {options.schema!r} and not the "
            f"target; pass some of {', '.join(columns)}"
        )
    return name


def _check_draft(fields: dict[str, Any], options: argparse.Namespace, console: Console) -> None:
    if "draft" not in fields:
        return
    if not options.accept_leak:
        raise InputError(
            f"{options.schema!r} is a draft that was read from the data: its ranges and values "
            "reveal individual records, and no budget pays for that; replace them by documented "
            "ones and delete the table [draft], or pass --accept-leak if the data are public or "
            "you accept the risk"
        )
    console.warn(
        "--accept-leak: ranges and values read from the data are not covered by the guarantee"
    )


def _target(schema: Schema, data: dict[str, Any], options: argparse.Namespace) -> Target:
    """The label and its classes: from the options, else from the schema."""
    name = options.target or data.get("label")
    if not isinstance(name, str):
        raise InputError(f'pass --target, or label = "..." in a table [data] of {options.schema!r}')
    column = schema.columns.get(name)
    classes: Sequence[Any] | None = options.classes and as_labels(options.classes)
    if classes is None and name == data.get("label"):
        classes = data.get("classes")
    if classes is None and column is not None:
        classes = column.choices
    if not _are_labels(classes):
        known = [*filter(None, [data.get("label")]), *schema.columns]
        raise InputError(
            f"--target ({name!r}){nearest(name, known) if name not in known else ''} must have two "
            "or more different declared classes; "
            f"pass --classes, or label and classes = [...] in a table [data] of {options.schema!r}"
        )
    return Target(name, tuple(classes or ()))


def _are_labels(classes: Any) -> bool:
    """Whether this is a list of two or more different texts or numbers."""
    if not isinstance(classes, Sequence) or isinstance(classes, str):
        return False
    plain = all(isinstance(label, str | int | float) for label in classes)
    return plain and 1 < len(classes) == len(set(classes))
