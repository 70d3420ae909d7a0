"""The seam between objectives and records: a question to all records, and one sum.

A `Sums` is all that an objective knows about its records. ``sums.sum(LinearRows.label_counts)``
asks every table of packed records that question, and adds the answers: integers of one shape, or
(for the names of categories alone) arrays of tallies, which add up as well. A score is a sum of
integers over records, so the answer does not depend on where the records are, nor on how they are
partitioned. A question is a function of packed records, or an unbound method of theirs: it is sent
by name.

There are three places: memory (`Held`), a `Stream` and the workers of a Dask cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np

from privfit._kernels import threads
from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Integers
from privfit.records.packing import MAX_RECORDS
from privfit.records.rows import Rows

R = TypeVar("R", bound=Rows)
A = TypeVar("A")
Q = ParamSpec("Q")

Make: TypeAlias = Callable[[Any, Any], R]  # packs records and labels


@dataclass(frozen=True, repr=False)
class Question(Generic[R, A]):
    """A function of packed records, with its other arguments."""

    of: Callable[..., A]
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, records: R) -> A:
        return self.of(records, *self.arguments, **self.named)

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable identity."""
        return self.of, *self.arguments, *self.named.items()


class Sums(ABC, Generic[R]):
    """Private records packed into tables of one kind, wherever they are stored.

    Attributes
    ----------
    n_records : int
        The number of records; private if records are added or removed.
    n_features : int
        The number of columns of a record.
    column_names : tuple
        The names of its columns, if they were only read where the records are.

    See Also
    --------
    sums_of : Pack records.

    Notes
    -----
    Sums are exact and private: only a mechanism may release them.

    Examples
    --------
    >>> import numpy as np
    >>> from functools import partial
    >>> from privfit.records import sums_of
    >>> from privfit.records.binary import BinaryRows
    >>> made_up = np.array([[1, 0], [1, 1], [0, 1]])
    >>> sums = sums_of(made_up, np.array([0, 0, 1]), partial(BinaryRows.pack, n_classes=2))
    >>> sums.sum(BinaryRows.counts).tolist()
    [[2, 1, 2], [0, 1, 1]]
    """

    n_records: int
    n_features: int
    column_names: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    def sum(
        self, question: Callable[Concatenate[R, Q], Integers], *args: Q.args, **named: Q.kwargs
    ) -> Integers:
        """The sum of a question's answers over all tables.

        Parameters
        ----------
        question : callable ``(table, *args, **named)`` -> array of int64
            What is asked of each table: a function, or an unbound method of the tables.
        *args, **named
            Further arguments of the question.

        Returns
        -------
        array of int64
            The sum. It is private.
        """
        return self._sum(Question(question, args, named))

    def try_one(
        self, question: Callable[Concatenate[R, Q], Integers], *args: Q.args, **named: Q.kwargs
    ) -> None:
        """Let one table answer, to see whether it can; the answer is dropped.

        Parameters
        ----------
        question : callable ``(table, *args, **named)`` -> array of int64
            What is asked.
        *args, **named
            Further arguments of the question.
        """
        self._try_one(Question(question, args, named))

    def viewed(
        self, view: Callable[Concatenate[R, Q], R], *args: Q.args, **named: Q.kwargs
    ) -> Sums[R]:
        """The same records, seen through a view of each table.

        Parameters
        ----------
        view : callable ``(table, *args, **named)`` -> table
            Makes the view of a table.
        *args, **named
            Further arguments of the view.

        Returns
        -------
        Sums
            Sums over the views.
        """
        return _Viewed(self, Question(view, args, named))

    def whole(self, what: str) -> R:
        """All records in one table, if they are in memory.

        Parameters
        ----------
        what : str
            What needs them, for the message of the error.

        Returns
        -------
        Rows
            The table.

        Raises
        ------
        InputError
            If the records are a stream or a Dask collection.
        """
        raise DeclarationError(
            f"{what} needs all records at once, but X is a stream or a Dask collection; pass an "
            f"array in memory, or "
            "a solver that takes sums alone"
        )

    @abstractmethod
    def _sum(self, question: Question[R, Integers]) -> Integers:
        """The sum of all tables' answers."""

    @abstractmethod
    def _try_one(self, question: Question[R, Integers]) -> None:
        """Let one table answer."""

    def _count(self, sizes: list[int], widths: list[int]) -> None:
        """Check and add up what the tables have."""
        if sum(sizes) == 0:
            raise InputError("X must have at least one record; pass a non-empty table")
        if sum(sizes) > MAX_RECORDS:
            raise InputError(
                f"X must have at most {MAX_RECORDS} records, so that no sum can overflow; pass "
                "fewer, such as a sample"
            )
        if len(set(widths)) != 1:
            raise InputError("X must have the same columns in all its parts; pass equal tables")
        self.n_records, self.n_features = sum(sizes), widths[0]


class Held(Sums[R]):
    """One table in memory; a question is an ordinary call."""

    def __init__(self, records: R) -> None:
        self.records = records
        self.n_records, self.n_features = records.n_records, records.n_features

    def sum(
        self, question: Callable[Concatenate[R, Q], Integers], *args: Q.args, **named: Q.kwargs
    ) -> Integers:
        return question(self.records, *args, **named)

    def viewed(
        self, view: Callable[Concatenate[R, Q], R], *args: Q.args, **named: Q.kwargs
    ) -> Sums[R]:
        return Held(view(self.records, *args, **named))

    def whole(self, what: str) -> R:
        return self.records

    def _sum(self, question: Question[R, Integers]) -> Integers:
        return question(self.records)

    def _try_one(self, question: Question[R, Integers]) -> None:
        question(self.records)


class _Viewed(Sums[R]):
    """Records seen through a view; each table makes its own, and may keep the last."""

    def __init__(self, sums: Sums[R], view: Question[R, R]) -> None:
        self._sums, self._view = sums, view
        self.n_records, self.n_features = sums.n_records, sums.n_features
        self.column_names = sums.column_names

    def _sum(self, question: Question[R, Integers]) -> Integers:
        return self._sums._sum(Question(_through, (self._view, question)))

    def _try_one(self, question: Question[R, Integers]) -> None:
        self._sums._try_one(Question(_through, (self._view, question)))


def _through(records: R, view: Question[R, R], question: Question[R, Integers]) -> Integers:
    return question(records.seen(view, view.key))


class _Several(Sums[R]):
    """The records of several collections."""

    def __init__(self, several: Sequence[Sums[R]]) -> None:
        self._count([one.n_records for one in several], [one.n_features for one in several])
        self._all = several

    def _sum(self, question: Question[R, Integers]) -> Integers:
        first, *others = [one._sum(question) for one in self._all]
        return np.asarray(sum(others, first))

    def _try_one(self, question: Question[R, Integers]) -> None:
        self._all[0]._try_one(question)


def joined(several: Sequence[Sums[R]]) -> Sums[R]:
    """The sums of several collections; tables in memory become one if they are of one kind."""
    tables = [one.records for one in several if isinstance(one, Held)]
    if len(tables) == len(several) and len({table.kind for table in tables} | {None}) == 2:
        return Held(tables[0].joined(tables[1:]))
    return _Several(several)


# ------------------------------------------------------------------------- many tables in a place

SMALL = 1 << 15  # records of a table that is joined with others: a call takes as long as they do
JOINED = 1 << 18  # records of a table that is large enough


def join_small(tables: Mapping[tuple[int, ...], R]) -> dict[tuple[int, ...], R]:
    """The same records in fewer tables, each with the numbers of the tables it was made from."""
    found, waiting = {}, defaultdict[Any, list[tuple[int, ...]]](list)
    for numbers, table in tables.items():
        if table.kind is None or table.n_records >= SMALL:
            found[numbers] = table
        else:
            waiting[table.kind].append(numbers)
    for alike in waiting.values():
        while alike:
            group, size = [], 0
            while alike and size < JOINED:
                group.append(alike.pop())
                size += tables[group[-1]].n_records
            first, *others = [tables[numbers] for numbers in group]
            found[sum(group, ())] = first.joined(others) if others else first
    return found


def share_threads(tables: Sequence[Rows], n_threads: int | None) -> int:
    """The number of tables that answer at the same time; each gets its share of the threads.

    Many tables with one thread each are faster than one table after the other with all threads:
    nobody waits for the slowest thread of each.
    """
    total = threads.team(n_threads)
    at_once = min(total, len(tables))
    for table in tables:
        table.n_threads = max(1, total // max(1, at_once))
    return at_once
