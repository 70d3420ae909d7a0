"""Results as CSV files: a line a cell, on disk as soon as it is measured, and never half a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.measure import ROOT, stamp

FOLDER = ROOT / "bench" / "results"
STAMPS = ("load", "date", "commit", "digest", "machine")  # the last columns of every file

Row = dict[str, str]


class Results:
    """The lines of a CSV file by their first columns, which name the cell."""

    def __init__(self, path: Path, key: tuple[str, ...], values: tuple[str, ...]) -> None:
        self.path, self.key, self.columns = path, key, (*key, *values, *STAMPS)
        self.rows: dict[tuple[str, ...], Row] = {}
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    self.rows[tuple(row[name] for name in key)] = row

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows.values())

    def get(self, *key: Any) -> Row | None:
        return self.rows.get(tuple(map(text, key)))

    def add(self, row: Mapping[str, Any], load: float | None = None, write: bool = True) -> Row:
        """Keep a line, stamped, in the place of the cell's line before."""
        whole = {**row, **stamp(), "load": "" if load is None else f"{load:.2f}"}
        unknown = whole.keys() - set(self.columns)
        if unknown:
            raise KeyError(f"row has columns {sorted(unknown)} that {self.path.name} has not")
        line = {name: text(whole.get(name, "")) for name in self.columns}
        self.rows[tuple(line[name] for name in self.key)] = line
        if write:
            self.write()
        return line

    def fresh(self, *key: Any) -> bool:
        """Whether the cell was measured with the code at hand."""
        row = self.get(*key)
        return row is not None and row["digest"] == stamp()["digest"]

    def write(self) -> None:
        """Write the whole file."""
        made = io.StringIO()
        writer = csv.DictWriter(made, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows.values())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(self.path, made.getvalue())


def text(value: Any) -> str:
    """A number in six digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def joined(values: Iterable[float | None]) -> str:
    """Numbers by seed as one text: "-" where one was refused or not measured."""
    return " ".join("-" if value is None else f"{value:.6g}" for value in values)


def parsed(values: str) -> list[float | None]:
    """The numbers of `joined`."""
    return [None if part == "-" else float(part) for part in values.split()]


def by_seed(row: Row | None) -> dict[int, float]:
    """The numbers of a line's seeds, where there is one."""
    known = parsed(row["values"]) if row else []
    return {seed: value for seed, value in enumerate(known) if value is not None}


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, whenever the process ends."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
