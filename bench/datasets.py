"""The real data sets of the benchmarks: `privfit.datasets`, with ranges as papers declare them.

    adult = load("adult")
    train, test = adult.split()
    LinearObjective(train.columns, train.y, "logistic", adult.schema)
    load("adult, no bins"), load("adult, 8 bins")       # numeric columns coded otherwise

The data lie in the folder `PRIVFIT_DATA`.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit import datasets

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("adult", "bank_full", "credit_default", "mushroom", "spambase")  # with labels 0 and 1
RANGES = "observed"  # as the papers on these data sets declare them


class Dataset(datasets.Dataset):
    """Records by column with labels 0 and 1."""

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        return self.table

    @property
    def y(self) -> NDArray[np.int64]:
        return self.labels


def folder() -> Path:
    return Path(os.environ.get("PRIVFIT_DATA", ROOT.parent / "shared" / "data"))


def load(name: str) -> Dataset:
    """The data set of this name, whole, in the order of its file.

    A name may end in ", no bins" or ", 8 bins": all numeric columns are then declared so.
    """
    name, _, form = name.partition(", ")
    if name not in NAMES:
        raise ValueError(f"name ({name!r}) must be a declared data set; pass one of {NAMES}")
    found = datasets.load(name, folder(), ranges=RANGES)
    if form:
        found = found.with_bins(_bins(form))
    return Dataset(**{field.name: getattr(found, field.name) for field in fields(found)})


def _bins(form: str) -> int:
    number = form.removesuffix(" bins")
    if number != "no" and not number.isdecimal():
        raise ValueError(f"form ({form!r}) must be 'no bins' or '8 bins'; pass one of them")
    return 0 if number == "no" else int(number)


def read(name: str) -> dict[str, tuple[str, ...]]:
    """The columns of a file, as they are written."""
    with gzip.open(folder() / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, zip(*rows, strict=True), strict=True))
