"""``privfit schema``: the draft of a schema, read from the data and marked as such."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from privfit.commands.console import Console, InputError
from privfit.commands.outputs import claim
from privfit.commands.tables import MISSING, as_labels, as_number, as_value, opened
from privfit.domains import Categorical, Numeric, Schema

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "draft a schema of a table"
DESCRIPTION = (
    "Draft the types, ranges and categories of a table's columns, for who may see "
    "the records. The draft is not private: replace its ranges by documented ones."
)

MOST_LEVELS = 100  # of a category; a column of more different texts is free text
MOST_SEEN = 100_000  # different values that are told apart when looking for identifiers
LONGEST = 200  # characters of a category; a longer text is free text
MOST_CODES = 12  # different whole numbers that are more likely codes than amounts
FEWEST = 20  # records from which on a column of different values looks like an identifier

SEPARATED = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f]\d{3})+(\.\d*)?")  # 1,234.5

HEAD = """\
# A draft of a schema, READ FROM THE DATA: its ranges and values tell of single records, and no
# privacy budget pays for that.
#
# 1. Replace every range by a documented or obvious one, as age = {low = 0, high = 120}.
# 2. Replace every list of values by the documented one; other = true takes unknown ones, too.
# 3. Remove the columns that the model must not see.
# 4. Delete the table [draft] below. Until then privfit fit refuses this file.

[draft]
read_from_data = true
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", help="CSV, CSV.gz or Parquet")
    parser.add_argument("--target", metavar="NAME", help="the column of labels")
    parser.add_argument("--delimiter", metavar="CHAR", help="default: seen from the first line")
    parser.add_argument("--out", metavar="FILE", help="default: stdout")


def run(options: argparse.Namespace, console: Console) -> None:
    """Look at every column, and write down what was seen."""
    seen = _look(options.data, options.delimiter)
    label = _take_label(seen, options)
    left_out = {name: one.doubt() for name, one in seen.items() if one.doubt()}
    columns = {name: one.column() for name, one in seen.items() if name not in left_out}
    if not columns:
        raise InputError(
            f"{options.data!r} has no column of numbers or categories that could be drafted; write "
            "the schema by hand"
        )
    codes = {name: one.codes() for name, one in seen.items() if name in columns and one.codes()}
    text = "\n".join([HEAD, *label, Schema(columns).to_toml(), *_comments(left_out, codes)])
    for name, doubt in left_out.items():
        console.note(f"left out {name!r}: {doubt}")
    console.warn("the draft tells of single records: replace its ranges and values by documented "
                 "ones, and keep it as safe as the records")  # fmt: skip
    if options.out is not None:
        with claim(options.out) as out:
            out.write(text)
    elif not console.machine:
        console.product(text)
    console.result({"schema": options.out or text, "left_out": left_out})


def _look(path: str, delimiter: str | None) -> dict[str, _Seen]:
    seen: dict[str, _Seen] = {}
    with opened(path, None, delimiter) as chunks:
        for chunk in chunks:
            if not seen:
                _check_header(path, chunk)
                seen = {name: _Seen(name) for name in chunk}
            for name, values in chunk.items():
                seen[name].add(values)
    return seen


def _check_header(path: str, names: Iterable[str]) -> None:
    """Refuse a first line that looks like a record; it is not quoted, since it may be one."""
    if any(as_number(name) is not None for name in names):
        raise InputError(
            f"{path!r} must name its columns in its first line, where numbers stand; add a line "
            "of names above the records"
        )


def _take_label(seen: dict[str, _Seen], options: argparse.Namespace) -> list[str]:
    """The lines of [data], once the target is taken out of the columns."""
    if options.target is None:
        return []
    if options.target not in seen:
        raise InputError(
            f"--target ({options.target!r}) must be a column of {options.data!r}; pass a name of "
            "its first line"
        )
    levels = seen.pop(options.target).levels
    if levels is None or len(levels) < 2:
        raise InputError(
            f"--target ({options.target!r}) must have from 2 to {MOST_LEVELS} classes in the data; "
            "pass another column"
        )
    classes = ", ".join(map(_toml, as_labels(_in_order(levels))))
    return [f"[data]\nlabel = {_toml(options.target)}\nclasses = [{classes}]\n"]


def _comments(left_out: dict[str, str], codes: dict[str, list[int]]) -> list[str]:
    """What to know of columns that are left out, and of numbers that may be codes."""
    lines = [f"# {_toml(name)} is left out: {doubt}\n" for name, doubt in left_out.items()]
    if codes:
        lines.append("# Are these numbers codes of something, not amounts? Then write instead:\n")
        declared = Schema({name: Categorical(levels) for name, levels in codes.items()}).to_toml()
        lines += [f"# {line}\n" for line in declared.splitlines() if "=" in line]
    return ["".join(lines)] if lines else []


class _Seen:
    """What was seen of one column so far."""

    def __init__(self, name: str) -> None:
        self._name, self._count, self._missing = name, 0, False
        self.levels: set[str] | None = set()  # None once there are too many
        self._different: set[int] = set()  # hashes of values
        self._numeric, self._whole, self._separated = True, True, False
        self._low, self._high = math.inf, -math.inf

    def add(self, values: Any) -> None:
        """Take note of some values: texts, or what Parquet has."""
        texts = [_text(value) for value in values]
        present = [text for text in texts if text not in MISSING]
        self._missing |= len(present) < len(texts)
        self._count += len(present)
        different = set(present)
        if len(self._different) < MOST_SEEN:
            self._different.update(map(hash, different))
        if self.levels is not None:
            self.levels |= different
            if len(self.levels) > MOST_LEVELS or max(map(len, different), default=0) > LONGEST:
                self.levels = None
        if self._numeric:
            self._add_numbers([as_number(text) for text in different])
        self._separated |= any(map(SEPARATED.fullmatch, different))

    def _add_numbers(self, numbers: list[float | None]) -> None:
        found = [number for number in numbers if number is not None]
        self._numeric = len(found) == len(numbers)
        self._whole = self._whole and all(number.is_integer() for number in found)
        self._low, self._high = min([self._low, *found]), max([self._high, *found])

    def doubt(self) -> str:
        """Why the column is better left out, or nothing."""
        if not self._count:
            return "it has no values"
        if len(self._different) == 1:
            return "it has one value in all records"
        if self._is_identifier():
            return "it looks like an identifier"
        if self._separated:
            return "it has numbers with thousands separators; write them as 1234.5"
        if not self._numeric and self.levels is None:
            return f"it looks like free text, with many (over {MOST_LEVELS}) or long values"
        return ""

    def _is_identifier(self) -> bool:
        """All values differ: texts, or whole numbers that fill their range like a count."""
        if len(self._different) < min(self._count, MOST_SEEN) or self._count < FEWEST:
            return False
        return not self._numeric or (self._whole and self._high - self._low < 2 * self._count)

    def codes(self) -> list[int]:
        """The values of numbers that may be codes: three whole ones or a few more; else none."""
        if not (self._numeric and self._whole) or self.levels is None:
            return []
        levels = sorted({as_value(level) for level in self.levels})
        return levels if 2 < len(levels) <= MOST_CODES else []

    def column(self) -> Numeric | Categorical:
        """The column, as it was seen."""
        if self._numeric:
            low, high = as_value(str(self._low)), as_value(str(self._high))
            return Numeric(low, high, fill=(low + high) / 2 if self._missing else None)
        return Categorical(_in_order(self.levels or set()), other=self._missing)


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _in_order(levels: set[str]) -> list[Any]:
    """Numbers by size, else texts by the alphabet."""
    if all(as_number(level) is not None for level in levels):
        return sorted(levels, key=lambda level: (float(level), level))
    return sorted(levels)


def _toml(value: Any) -> str:
    """A text or number as TOML has it, which is as JSON has it."""
    return json.dumps(value, ensure_ascii=False)
