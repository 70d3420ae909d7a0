"""Records of a schema as rows of joint codes: a dozen bytes a record, and no list of non-zeros.

A *joint column* stands for several one-hot groups together: its bins are all combinations of their
levels. Which groups are joined follows from the declared numbers of levels alone, so that the plan
is public. A code is the place of a bin in one table of all joint columns' bins. Numbers that are no
levels are int16 columns beside the codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit._kernels.records import CodeRows
from privfit.base.typing import Array, Integers
from privfit.domains.codes import Codes, level_type
from privfit.records.packing import Columns, Run, against, runs_of

MOST_CODES = 1 << 16  # places that a code can have
MOST_BINS = 1 << 13  # of all joint columns, unless levels alone are more: tables stay in the cache
# Bins of a joint column; fewer where there would be more than MOST_BINS. Adult's gradients took .81
# of the time with 1,024 that they took with 256, and DPSGA .98; of columns without numbers .87.
JOINT = 1024
NOTHING = np.empty(0, dtype=np.uint8)
PART = 1 << 18  # rows that are sorted by group at a time
# Bins of a column for tables of pairs; the fewer where tables would have more than MOST_COUNTS. Of
# Adult, seven columns instead of nine took two thirds of the time.
APART, FARTHER_APART = 256, 64
MOST_COUNTS = 1 << 17


@dataclass(frozen=True, repr=False)
class Plan:
    """Which groups of a schema share a joint column; `plan_of` makes it.

    Parameters
    ----------
    groups : tuple of (first column, number of levels)
        The one-hot groups.
    places : tuple of int
        The columns of numbers.
    n_features : int
        The number of encoded columns.
    joints : tuple of tuple of int
        The groups of each joint column. The last one's levels are next to each other.
    """

    groups: tuple[tuple[int, int], ...]
    places: tuple[int, ...]
    n_features: int
    joints: tuple[tuple[int, ...], ...]

    @cached_property
    def sizes(self) -> Integers:
        """The number of bins of each joint column."""
        return np.array([_bins(self.groups, joint) for joint in self.joints], dtype=np.int64)

    @cached_property
    def bases(self) -> Integers:
        """The place of each joint column's first bin."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def bins(self) -> int:
        """The number of bins of all joint columns."""
        return int(self.sizes.sum())

    @cached_property
    def parts(self) -> Integers:
        """(groups, 4) rows (base, bins of the groups before, first column, levels)."""
        rows = []
        for base, joint in zip(self.bases.tolist(), self.joints, strict=True):
            before = 1
            for group in joint:
                start, width = self.groups[group]
                rows.append((base, before, start, width))
                before *= width
        return np.array(rows, dtype=np.int64)

    @cached_property
    def ends(self) -> Integers:
        """The columns of numbers, and the intercept's."""
        return np.array([*self.places, self.n_features], dtype=np.int64)

    @cached_property
    def joint_of(self) -> Integers:
        """The joint column of each encoded one; -1 for numbers."""
        found = np.full(self.n_features, -1)
        for number, joint in enumerate(self.joints):
            for start, width in (self.groups[group] for group in joint):
                found[start : start + width] = number
        return found

    @cached_property
    def pieces(self) -> Pieces:
        """The joint columns in pieces of few levels, for tables of pairs."""
        pieces = self._pieces(APART)
        return pieces if pieces.counts <= MOST_COUNTS else self._pieces(FARTHER_APART)

    def _pieces(self, most: int) -> Pieces:
        """The joint columns in pieces of at most so many levels, unless a group has more."""
        rows: list[tuple[int, ...]] = []
        parts: list[tuple[int, ...]] = []
        lookup = []
        for number, (base, joint) in enumerate(zip(self.bases.tolist(), self.joints, strict=True)):
            inner = int(self.sizes[number])
            for piece in _split(self.groups, joint, most):
                levels, first, before = _bins(self.groups, piece), len(parts), 1
                inner //= levels
                for group in piece:
                    start, width = self.groups[group]
                    parts.append((len(rows), before, start, width))
                    before *= width
                rows.append((number, levels, first, len(parts)))
                code = np.arange(self.bins, dtype=np.int64) - base
                lookup.append(np.clip(code // inner % levels, 0, levels - 1).astype(np.uint16))
        return Pieces(np.array(rows), np.array(parts), np.array(lookup))

    def joined(self, levels: Sequence[Array]) -> Iterator[NDArray[np.uint16]]:
        """The codes (n,) of each joint column, from the levels of each group."""
        for base, joint in zip(self.bases.tolist(), self.joints, strict=True):
            code = levels[joint[0]].astype(np.uint16)
            for group in joint[1:]:
                code *= np.uint16(self.groups[group][1])
                code += levels[group]
            code += np.uint16(base)
            yield code

    def levels(self, codes: NDArray[np.uint16]) -> list[Array]:
        """The levels (n,) in each group, from rows of codes."""
        found: dict[int, Array] = {}
        for column, base, joint in zip(codes.T, self.bases.tolist(), self.joints, strict=True):
            code = column - np.uint16(base)
            for group in reversed(joint):
                width = self.groups[group][1]
                code, level = np.divmod(code, np.uint16(width)) if width > 1 else (code, 0 * code)
                found[group] = level.astype(level_type(width))
        return [found[group] for group in range(len(self.groups))]


@dataclass(frozen=True, repr=False)
class Pieces:
    """Pieces of joint columns, as the kernels of second moments take them.

    Parameters
    ----------
    rows : int64 (pieces, 4)
        Joint column, number of levels, first part, last part.
    parts : int64 (groups, 4)
        Piece, levels of the groups before, first column, levels.
    lookup : uint16 (pieces, bins)
        The level of each code of its joint column.
    """

    rows: Integers
    parts: Integers
    lookup: NDArray[np.uint16]

    @cached_property
    def counts(self) -> int:
        """The size of all tables of two pieces, and of each."""
        sizes = self.rows[:, 1]
        return int((sizes * (np.cumsum(sizes) - sizes + 1)).sum())

    @cached_property
    def room(self) -> int:
        """The size of the largest table of a group's and a piece's levels."""
        return int(self.parts[:, 3].max() * self.rows[:, 1].max())


def _split(
    groups: Sequence[tuple[int, int]], joint: Sequence[int], most: int
) -> Iterator[list[int]]:
    """The groups of a joint column in runs of at most `most` levels together."""
    piece: list[int] = []
    for group in joint:
        if piece and _bins(groups, [*piece, group]) > most:
            yield piece
            piece = []
        piece.append(group)
    yield piece


def _bins(groups: Sequence[tuple[int, int]], joint: Sequence[int]) -> int:
    return int(np.prod([groups[group][1] for group in joint], dtype=object))


def _packed_groups(groups: tuple[tuple[int, int], ...], most: int) -> tuple[tuple[int, ...], ...]:
    """Few joint columns of at most `most` bins: each group, the widest first, where it fits."""
    joints: list[list[int]] = []
    for group in sorted(range(len(groups)), key=lambda g: -groups[g][1]):
        fits = (joint for joint in joints if _bins(groups, [*joint, group]) <= most)
        joint = next(fits, None)
        if joint is None:
            joints.append(joint := [])
        joint.insert(0, group)
    return tuple(map(tuple, joints))


@lru_cache(maxsize=64)
def _plan(
    groups: tuple[tuple[int, int], ...], places: tuple[int, ...], n_features: int, most: int
) -> Plan | None:
    levels = sum(width for _, width in groups)
    if not groups or levels >= MOST_CODES:
        return None
    while True:
        plan = Plan(groups, places, n_features, _packed_groups(groups, most))
        if plan.bins <= max(MOST_BINS, levels):
            return plan
        most //= 2


def plan_of(X: Codes, most: int = JOINT) -> Plan | None:
    """The plan of a schema's records; None where there are no groups, or too many levels."""
    groups = tuple((group.start, group.stop - group.start) for group in X.groups)
    return _plan(groups, tuple(X.places), X.shape[1], most)


@dataclass(frozen=True, repr=False)
class CodeRecords:
    """Rows of codes (n, joints), and columns of numbers (numbers, n)."""

    codes: NDArray[np.uint16]
    numbers: NDArray[np.int16]
    plan: Plan
    runs: tuple[Run, ...]
    one: int
    rows: CodeRows = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", CodeRows(self.codes, self.numbers))

    def __reduce__(self) -> Any:  # what the kernel reads is made anew
        return CodeRecords, (self.codes, self.numbers, self.plan, self.runs, self.one)

    @property
    def n_features(self) -> int:
        """The number of encoded columns."""
        return self.plan.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return self.codes.nbytes + self.numbers.nbytes

    @property
    def mean_entries(self) -> float:
        """Codes and numbers of a record."""
        return float(self.codes.shape[1] + self.numbers.shape[0])

    def against(self, group: int) -> CodeRecords:
        """The same records; those of this group are class 1, all others class 0."""
        result = replace(self, runs=against(self.runs, group))
        if "by_column" in self.__dict__:
            result.__dict__["by_column"] = self.by_column.of(result.runs)
        return result

    def labelled_blocks(self, rows: int) -> Iterator[tuple[Run, scipy.sparse.csr_array]]:
        """The records as CSR blocks (at most `rows`, d) of one class, with the run of each."""
        for run in self.runs:
            for first in range(run.first, run.first + run.count, rows):
                last = min(first + rows, run.first + run.count)
                yield run, self._unpacked(first, last).csr(self.one)

    def _unpacked(self, first: int, last: int) -> Codes:
        plan = self.plan
        groups = [slice(start, start + width) for start, width in plan.groups]
        levels, numbers = plan.levels(self.codes[first:last]), list(self.numbers[:, first:last])
        return Codes(groups, levels, plan.places, numbers, (last - first, plan.n_features))

    @cached_property
    def by_column(self) -> Columns:
        """The records of each level, and of numbers and the intercept all of them."""
        n, plan = len(self.codes), self.plan
        every, ones = np.arange(n, dtype=np.int32), np.full(n, self.one, dtype=np.int16)
        entries = {plan.n_features: (every, ones, [n])}
        for place, numbers in zip(plan.places, self.numbers, strict=True):
            entries[place] = every, numbers, [n]
        for (start, width), level in zip(plan.groups, plan.levels(self.codes), strict=True):
            by_level = np.argsort(level, kind="stable").astype(np.int32)
            entries[start] = by_level, ones, np.bincount(level, minlength=width).tolist()
        rows, values, counts = zip(*(entries[start] for start in sorted(entries)), strict=True)
        starts = np.cumsum([0, *(count for some in counts for count in some)])
        return Columns(starts, np.concatenate(rows), np.concatenate(values), self.runs)

    def joined(self, tables: Sequence[CodeRecords]) -> CodeRecords:
        """All records of tables with this plan in a single table: by group."""
        runs = sorted(((table, run) for table in tables for run in table.runs),
                      key=lambda of: of[1].group)  # fmt: skip
        parts = [(table, slice(run.first, run.first + run.count)) for table, run in runs]
        count = np.bincount([run.group for _, run in runs], [run.count for _, run in runs])
        return CodeRecords(
            np.concatenate([table.codes[part] for table, part in parts]),
            np.ascontiguousarray(
                np.concatenate([table.numbers[:, part] for table, part in parts], axis=1)
            ),
            self.plan,
            runs_of(count.astype(np.int64)),
            self.one,
        )


def pack_codes(X: Codes, plan: Plan, groups: Array, one: int, *, keep: bool = True) -> CodeRecords:
    """Pack records by a plan, sorted by `groups`; unless X is kept, its columns are given up."""
    members = [groups == group for group in range(int(groups.max(initial=0)) + 1)]
    runs = runs_of(np.array([np.count_nonzero(some) for some in members]))
    codes = np.empty((X.shape[0], len(plan.joints)), dtype=np.uint16)
    numbers = np.empty((len(X.numbers), X.shape[0]), dtype=np.int16)
    for j, (joint, code) in enumerate(zip(plan.joints, plan.joined(X.levels), strict=True)):
        _put_by_group(code, members, runs, codes[:, j])
        if not keep:
            for group in joint:
                X.levels[group] = NOTHING
    for j, column in enumerate(X.numbers):
        _put_by_group(column, members, runs, numbers[j])
    return CodeRecords(codes, numbers, plan, runs, one)


def _put_by_group(column: Array, members: Sequence[Array], runs: Sequence[Run], out: Array) -> None:
    """Put a column into `out`, sorted by group; in parts, since numpy lists the rows of each."""
    for run in runs:
        first = run.first
        for start in range(0, len(column), PART):
            part = slice(start, start + PART)
            some = column[part].compress(members[run.group][part])  # four times as fast as a mask
            out[first : first + len(some)] = some
            first += len(some)
