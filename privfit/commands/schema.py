"""``privfit schema``: the draft of a schema, read from the data and marked so, or a bought one."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable
from typing import Any

from privfit.base.errors import InputError
from privfit.base.json import write
from privfit.commands.bought import add_bought, check_not_bought, run_bought
from privfit.commands.console import Console
from privfit.commands.files import TABLE, CsvForm, add_csv_form, nearest, opened
from privfit.commands.outputs import claim
from privfit.commands.tables import COMMA, as_labels, as_number, as_value
from privfit.domains import Categorical, Numeric, Schema
from privfit.domains.reading import Odd, canonical, objects

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

HELP = "draft the schema of a table, or buy one"
EXAMPLE = "privfit schema people.csv --target income --out schema.toml"
DESCRIPTION = (
    "Draft the types, ranges and categories of a table's columns, for people who may see the "
    "records. The draft is not private: replace its ranges by documented ones. With --epsilon, buy "
    "cuts of numbers and names of categories from a privacy budget: that schema may be published."
)

MOST_LEVELS = 100  # of a category; a column with more distinct texts is free text
MOST_SEEN = 100_000  # distinct values that are tracked when looking for identifiers
LONGEST = 200  # characters of a category; a longer text is free text
MOST_CODES = 12  # up to this many distinct whole numbers, a column may hold codes
FEWEST = 20  # records from which a column of distinct values may be an identifier

# Texts that stand for a missing value as a rule; the draft declares those of them that were seen.
MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none", "."})

# 12,5 is a number with a decimal comma; 1,234 may have a thousands separator.
COMMAS = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")
DATE = re.compile(r"(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}-\d{2}-\d{2})([ T]\d{2}:\d{2}.*)?")
LOST = "\ufffd"  # stands for bytes that are not of the encoding
SEPARATED = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f]\d{3})+(\.\d*)?")  # 1,234.5

HEAD = """\
# A draft of a schema, READ FROM THE DATA: its ranges and values reveal individual records, and no
# privacy budget pays for that.
#
# 1. Replace every range by a documented or obvious one, such as age = {{low = 0, high = 120}}.
# 2. Replace every list of values by the documented one; other = true accepts unknown ones.
# 3. Remove the columns that the model must not see.
# 4. List the texts that stand for missing values. A declared value is never missing.
# 5. Delete the table [draft] below. Until then privfit fit refuses this file.

missing = {missing}

[draft]
read_from_data = true
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", help=TABLE)
    parser.add_argument("--target", metavar="NAME", help="the column of labels")
    add_csv_form(parser)
    parser.add_argument("--out", metavar="FILE", help="file of the schema; default: stdout")
    add_bought(parser)


def run(options: argparse.Namespace, console: Console) -> None:
    """Look at every column and write the draft; with --epsilon, buy the schema."""
    if options.epsilon is not None:
        run_bought(options, console)
        return
    check_not_bought(options)
    form = CsvForm.of(options)
    seen = _look(options.data, form)
    lost = [repr(name) for name, one in seen.items() if one.lost]
    tokens = sorted({""}.union(*(one.missing for one in seen.values())))
    data = [*_take_label(seen, options), *(f"{name} = {_toml(value)}"
                                           for name, value in form.declared.items())]  # fmt: skip
    data = ["\n".join(["[data]", *data]) + "\n"] if data else []
    left_out = {name: one.doubt() for name, one in seen.items() if one.doubt()}
    columns = {name: one.column() for name, one in seen.items() if name not in left_out}
    if not columns:
        raise InputError(
            f"{options.data!r} has no column of numbers or categories to draft; write the "
            "schema by hand"
        )
    codes = {name: one.codes() for name, one in seen.items() if name in columns and one.codes()}
    head = HEAD.format(missing=f"[{', '.join(map(_toml, tokens))}]")
    text = "\n".join([head, *data, Schema(columns).to_toml(), *_comments(left_out, codes)])
    for name, doubt in left_out.items():
        console.note(f"left out {name!r}: {doubt}")
    if lost:
        console.warn(f"column {', '.join(lost)} has characters that are not {form.encoding}; pass "
                     "--encoding latin-1, cp1252 or the like")  # fmt: skip
    console.warn("the draft reveals individual records: replace its ranges and values by "
                 "documented ones, and keep it as safe as the records")  # fmt: skip
    if options.out is not None:
        with claim(options.out) as out:
            out.write(text)
    elif not console.machine:
        console.product(text)
    console.result({"schema": options.out or text, "left_out": left_out})


def _look(path: str, form: CsvForm) -> dict[str, _Seen]:
    seen: dict[str, _Seen] = {}
    with opened(path, None, form) as chunks:
        for chunk in chunks:
            if not seen:
                if form.header is None:
                    _check_header(path, chunk)
                seen = {name: _Seen(name, form.decimal == ",") for name in chunk}
            for name, values in chunk.items():
                seen[name].add(values)
    return seen


def _check_header(path: str, names: Iterable[str]) -> None:
    """Refuse a first line that looks like a record, without quoting it: it may be one."""
    if any(as_number(name) is not None for name in names):
        raise InputError(
            f"{path!r} must have a header line, but its first line contains numbers; add a line "
            "of column names above the records, or pass --header or --no-header"
        )


def _take_label(seen: dict[str, _Seen], options: argparse.Namespace) -> list[str]:
    """Remove the target from the columns, and return its lines of the table [data]."""
    if options.target is None:
        return []
    if options.target not in seen:
        raise InputError(
            f"--target ({options.target!r}){nearest(options.target, list(seen))} must be a column "
            f"of {options.data!r}; pass a name from its header"
        )
    levels = seen.pop(options.target).levels
    if levels is None or len(levels) < 2:
        raise InputError(
            f"--target ({options.target!r}) must have between 2 and {MOST_LEVELS} classes in the "
            "data; pass another column"
        )
    labels = as_labels(_in_order(levels))
    lines = [f"label = {_toml(options.target)}", f"classes = [{', '.join(map(_toml, labels))}]"]
    if len(labels) == 2:
        lines.append("# the second is the positive class: exchange them if it is the other one")
    return lines


def _comments(left_out: dict[str, str], codes: dict[str, list[int]]) -> list[str]:
    """Comments on columns that are left out, and on numbers that may be codes."""
    lines = [f"# {_toml(name)} is left out: {doubt}\n" for name, doubt in left_out.items()]
    if codes:
        lines.append("# If these numbers are codes and not amounts, write instead:\n")
        declared = Schema({name: Categorical(levels) for name, levels in codes.items()}).to_toml()
        lines += [f"# {line}\n" for line in declared.splitlines() if "=" in line]
    return ["".join(lines)] if lines else []


class _Seen:
    """What has been seen of one column so far."""

    def __init__(self, name: str, comma: bool = False) -> None:
        self._name, self._count, self._lacks, self._comma = name, 0, False, comma
        self.missing: set[str] = set()  # texts that stand for missing values
        self.levels: set[str] | None = set()  # None once there are too many
        self._different: set[int] = set()  # hashes of values
        self._numeric, self._whole, self._separated = True, True, False
        self._commas, self._dates, self.lost = False, True, False
        self._low, self._high = math.inf, -math.inf

    def add(self, values: Any) -> None:
        """Update with some cells, from CSV or Parquet."""
        texts = ["" if value is None else str(value) for value in objects(values)]
        self.missing.update(text for text in set(texts) if text.strip() in MISSING)
        present = [text for text in texts if text not in self.missing]
        self._lacks |= len(present) < len(texts)
        self._count += len(present)
        different = set(present)
        if len(self._different) < MOST_SEEN:
            self._different.update(map(hash, different))
        if self.levels is not None:
            self.levels |= different
            if len(self.levels) > MOST_LEVELS or max(map(len, different), default=0) > LONGEST:
                self.levels = None
        if self._numeric:
            marked = (text.translate(COMMA) if self._comma else text for text in different)
            self._add_numbers([as_number(text) for text in marked])
        self._separated |= any(map(SEPARATED.fullmatch, different))
        self._commas |= any(map(COMMAS.fullmatch, different))
        self._dates &= all(map(DATE.fullmatch, different))
        self.lost |= any(LOST in text for text in (self._name, *different))

    def _add_numbers(self, numbers: list[float | None]) -> None:
        found = [number for number in numbers if number is not None]
        self._numeric = len(found) == len(numbers)
        self._whole = self._whole and all(number.is_integer() for number in found)
        self._low, self._high = min([self._low, *found]), max([self._high, *found])

    def doubt(self) -> str:
        """Why the column should be left out, or the empty string."""
        if not self._count:
            return "it has no values"
        if len(self._different) == 1:
            return "it has the same value in all records"
        if self._dates:
            return "it has dates; write the days since a public date into a column of numbers"
        if self._commas and not self._numeric:
            return "it has numbers with decimal commas; pass --decimal ,"
        if self._is_identifier():
            return "it looks like an identifier"
        if self._separated:
            return "it has numbers with thousands separators; write them as 1234.5"
        if self._numeric and not self._has_range():
            return "its numbers differ too little relative to their size; subtract an offset"
        if not self._numeric and self.levels is None:
            return f"it looks like free text, with many (over {MOST_LEVELS}) or long values"
        return ""

    def _has_range(self) -> bool:
        try:
            Numeric(self._low, self._high)
        except ValueError:
            return False
        return True

    def _is_identifier(self) -> bool:
        """Whether all values differ: texts, or whole numbers that fill their range."""
        if len(self._different) < min(self._count, MOST_SEEN) or self._count < FEWEST:
            return False
        return not self._numeric or (self._whole and self._high - self._low < 2 * self._count)

    def codes(self) -> list[int]:
        """The values of a column that may be codes: three or a few more distinct whole numbers."""
        if not (self._numeric and self._whole) or self.levels is None:
            return []
        levels = sorted({as_value(level) for level in self.levels})
        return levels if 2 < len(levels) <= MOST_CODES else []

    def column(self) -> Numeric | Categorical:
        """The declaration of the column, from what was seen."""
        if self._numeric:
            low, high = as_value(str(self._low)), as_value(str(self._high))
            return Numeric(low, high, fill=(low + high) / 2 if self._lacks else None)
        levels = self.levels or set()
        odd = any(isinstance(canonical(level), Odd) for level in levels)
        return Categorical(_in_order(levels), other=self._lacks or odd)


def _in_order(levels: set[str]) -> list[Any]:
    """Sort numbers by size, else texts alphabetically; keep the first spelling of each value."""
    ordered = sorted(level for level in levels if isinstance(canonical(level), str))
    if all(as_number(level) is not None for level in ordered):
        ordered.sort(key=float)
    spelled = {canonical(level): level for level in reversed(ordered)}
    return [level for level in ordered if spelled[canonical(level)] == level]


def _toml(value: Any) -> str:
    """A text or number in TOML, which is the same as in JSON."""
    return write(value, ascii=False)
