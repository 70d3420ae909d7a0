"""What ships with the package: a TOML file for each data set, with its columns and its origin.

`schemas/NAME.toml` is a schema file like any other (`Schema.from_toml`, ``privfit fit --schema``).
Its comments say where each range comes from. Besides `[columns]` it has

    [data]        title, source, rows and SHA-256 of the CSV file; the label with its classes or its
                  range; the columns of a published split, of units and of texts; the seed of splits
    [others]      columns that are no features, as "number" or "text"
    [observed]    columns as papers declare them: by the least and largest values of the records
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.domains import Schema
from privfit.domains.columns import Column, columns_from
from privfit.domains.toml import read_toml

__all__ = ["Declared", "declared", "load_schema", "names", "schema_path"]

FOLDER = Path(__file__).parent / "schemas"
RANGES = ("documented", "observed")


@dataclass(frozen=True)
class Declared:
    """The tables of a shipped file."""

    name: str
    data: dict[str, Any]
    others: dict[str, str]
    schema: Schema | None
    observed: dict[str, Column]
    description: str

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each column of the file has numbers or texts."""
        columns = self.schema.columns if self.schema is not None else {}
        kinds = {name: _kind(column) for name, column in columns.items()} | self.others
        if "label" in self.data:
            classes = self.data.get("classes", [0.0])
            kinds[self.data["label"]] = "text" if isinstance(classes[0], str) else "number"
        return kinds

    def under(self, ranges: str) -> Schema | None:
        """The schema with documented ranges, or with those that papers declare."""
        if ranges not in RANGES:
            raise DeclarationError(f"ranges ({ranges!r}) must be one of {RANGES}; pass one of them")
        if self.schema is None or ranges == "documented":
            return self.schema
        return replace(self.schema, columns={**self.schema.columns, **self.observed})


def _kind(column: Column) -> str:
    is_text = not column.holds_numbers and isinstance((column.values or [""])[0], str)
    return "text" if is_text else "number"


def names() -> tuple[str, ...]:
    """Names of the data sets that have a loader.

    Returns
    -------
    tuple of str
        What `load` takes, in alphabetical order.

    See Also
    --------
    privfit.datasets.load : Load a data set by its name.

    Examples
    --------
    >>> from privfit.datasets import names
    >>> names()[:3]
    ('adult', 'bank_full', 'california_housing')
    """
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def schema_path(name: str) -> Path:
    """Path of a schema that ships with the package.

    Parameters
    ----------
    name : str
        Name of the data set.

    Returns
    -------
    pathlib.Path
        A TOML file, which `Schema.from_toml` and ``privfit fit --schema`` read.

    See Also
    --------
    privfit.datasets.load_schema : The schema itself.

    Examples
    --------
    >>> from privfit.datasets import schema_path
    >>> schema_path("adult").name
    'adult.toml'
    """
    if name not in names():
        raise DeclarationError(f"name ({name!r}) must be a known data set; pass one of {names()}")
    return FOLDER / f"{name}.toml"


def load_schema(name: str, ranges: str = "documented") -> Schema:
    """The schema of a data set, which ships with the package.

    Parameters
    ----------
    name : str
        Name of the data set.
    ranges : {"documented", "observed"}, default="documented"
        Where ranges of numbers come from: documentation and round numbers; or the least and largest
        values of the records, as many papers declare them.

    Returns
    -------
    Schema
        The declared columns; the comments of the file `schema_path` say where they come from.

    See Also
    --------
    privfit.datasets.load : The records as well.

    Notes
    -----
    Observed ranges are for repeating published tables alone: a range that is read off private
    records is itself a release.

    Examples
    --------
    >>> from privfit.datasets import load_schema
    >>> print(load_schema("adult"))
    Schema(<14 columns, 135 encoded>)
    """
    schema = declared(name).under(ranges)
    if schema is None:
        raise DeclarationError(
            f"name ({name!r}) must be a data set with a schema; call load({name!r}) for its columns"
        )
    return schema


@cache
def declared(name: str) -> Declared:
    """What the file of a data set declares."""
    path = schema_path(name)
    tables = read_toml(path)
    lines = path.read_text(encoding="utf-8").partition("\n\n[")[0].splitlines()
    return Declared(
        name=name,
        data=tables["data"],
        others=tables.get("others", {}),
        schema=Schema.from_toml(path) if "columns" in tables else None,
        observed=dict(columns_from(tables["observed"])) if "observed" in tables else {},
        description="\n".join(line.removeprefix("#").removeprefix(" ") for line in lines),
    )
