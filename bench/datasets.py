"""The real data sets of the benchmarks, read by the schemas that `schemas/` declares.

    adult = load("adult")
    train, test = adult.split()
    LinearObjective(train.columns, train.y, "logistic", adult.schema)
    load("adult, no bins"), load("adult, 8 bins")       # numeric columns coded otherwise

A schema's file also has a table `[data]`: the `label` column, its `classes` and the `positive` one,
columns to `drop`, and the `seed` of the split. The data lie in the folder `PRIVFIT_DATA`.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit import Categorical, Numeric, Schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = ROOT / "bench" / "schemas"
NAMES = tuple(sorted(path.stem for path in SCHEMAS.glob("*.toml")))


@dataclass(frozen=True)
class Dataset:
    """Labelled records.

    columns   name: (n,) float64 of a numeric column, text or float64 codes of a categorical one
    y         (n,) int64, 1 for the positive class and 0 for the others
    seed      of the split, where none is passed
    """

    name: str
    schema: Schema
    columns: dict[str, NDArray[Any]]
    y: NDArray[np.int64]
    seed: int

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} records, {self.schema!r})"

    def rows(self, index: NDArray[Any]) -> Dataset:
        """The records at these positions."""
        columns = {name: values[index] for name, values in self.columns.items()}
        return replace(self, columns=columns, y=self.y[index])

    def with_bins(self, bins: int) -> Dataset:
        """The same records, with so many equal bins for each numeric column (0 for none)."""
        columns = {
            name: replace(column, bins=bins) if isinstance(column, Numeric) else column
            for name, column in self.schema.columns.items()
        }
        return replace(self, schema=Schema(columns))

    def split(self, seed: int | None = None) -> tuple[Dataset, Dataset]:
        """A random 80 % to train on, and the other 20 % to test on."""
        rng = np.random.default_rng(self.seed if seed is None else seed)
        order = rng.permutation(len(self))
        cut = 4 * len(self) // 5
        return self.rows(order[:cut]), self.rows(order[cut:])


def load(name: str) -> Dataset:
    """The data set of this name, whole, in the order of its file.

    A name may end in ", no bins" or ", 8 bins": all numeric columns are then declared so.
    """
    name, _, form = name.partition(", ")
    if form:
        return load(name).with_bins(_bins(form))
    if name not in NAMES:
        raise ValueError(f"name ({name!r}) must be a declared data set; pass one of {NAMES}")
    path = SCHEMAS / f"{name}.toml"
    schema, data = Schema.from_toml(path), tomllib.loads(path.read_text(encoding="utf-8"))["data"]
    table = read(name)
    undeclared = table.keys() - schema.columns.keys() - {data["label"], *data.get("drop", [])}
    if undeclared:
        raise ValueError(
            f"columns ({sorted(undeclared)}) must be declared; pass them in {path.name}, or drop "
            "them there"
        )
    return Dataset(
        name=name,
        schema=schema,
        columns={key: _parse(table[key], column) for key, column in schema.columns.items()},
        y=(np.array(table[data["label"]]) == str(data["positive"])).astype(np.int64),
        seed=data["seed"],
    )


def _bins(form: str) -> int:
    number = form.removesuffix(" bins")
    if number != "no" and not number.isdecimal():
        raise ValueError(f"form ({form!r}) must be 'no bins' or '8 bins'; pass one of them")
    return 0 if number == "no" else int(number)


def read(name: str) -> dict[str, tuple[str, ...]]:
    """The columns of a file, as they are written."""
    folder = Path(os.environ.get("PRIVFIT_DATA", ROOT.parent / "shared" / "data"))
    path = folder / f"{name}.csv.gz"
    if not path.exists():
        raise FileNotFoundError(
            f"PRIVFIT_DATA ({str(folder)!r}) must hold {path.name}; set it to the data's folder"
        )
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _parse(texts: tuple[str, ...], column: Numeric | Categorical) -> NDArray[Any]:
    """Numbers where the schema declares numbers or codes, else texts."""
    if isinstance(column, Categorical) and isinstance(column.values[0], str):
        return np.array(texts)
    return np.array(texts, dtype=np.float64)
