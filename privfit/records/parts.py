"""Records that lie in parts, wherever the parts live: a question to all of them, and one sum.

`Parts.sum` asks every part the same question and adds the answers. A part is asked by its methods'
names, and answers with integers of one shape.

**Every question names all that it needs.** It says "the moves around this candidate", never "the
moves around where you stand". A part may keep margins from one question to the next and bring them
up to date, but that saves time and nothing else: a part that was made anew a moment ago, on another
machine, gives the same integers. So a question may be asked twice, answered twice, or asked of a
stand-in, and there is no state to restore when a worker dies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from privfit._kernels import threads
from privfit.base.typing import Array, Integers
from privfit.domains import Domain
from privfit.domains.frames import numbers_of
from privfit.records.packing import MAX_RECORDS

Make: TypeAlias = Callable[[Any, Any], Any]  # what turns records and labels into a part


class Parts(ABC):
    """Private records in parts that answer for themselves."""

    def __init__(self, sizes: list[int], widths: list[int]) -> None:
        if sum(sizes) == 0:
            raise ValueError("X must have at least one record; pass a non-empty table")
        if sum(sizes) > MAX_RECORDS:
            raise ValueError(
                f"X must have at most {MAX_RECORDS} records, so that no sum can overflow; pass "
                "fewer, such as a sample"
            )
        if len(set(widths)) != 1:
            raise ValueError("X must have the same columns in all its parts; pass equal tables")
        self.n_records, self.n_features = sum(sizes), widths[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    @abstractmethod
    def sum(self, question: str, *arguments: Any) -> Integers:
        """The sum of all parts' answers: of ``part.question(*arguments)``, int64 of one shape."""

    def try_one(self, question: str, *arguments: Any) -> None:
        """Let one part answer, to see whether it can; its answer is dropped."""
        self.sum(question, *arguments)


class Part:
    """What parts share: a place for what they keep between two questions.

    `keep` puts an array where it may stay; a part that streams by has it on disk. Such a part is
    `passing`: it keeps no more than what is dear to make again.
    """

    passing = False

    def __init__(self, records: Any) -> None:
        self._records = records
        self._kept: dict[str, tuple[tuple[Any, ...], Any]] = {}
        self.n_records = records.n_records
        self.n_features = getattr(records, "n_features", 0)  # one's own records need not have any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    def use_threads(self, n_threads: int) -> None:
        """Answer with so many threads."""
        self._records._n_threads = n_threads

    def keep(self, values: Array) -> Array:
        """The array, where it may stay."""
        return values

    @property
    def kind(self) -> str | None:
        """Parts of one kind can be joined; None of a kind that need not be."""
        return getattr(self._records, "layout", None)

    def joined(self, others: Sequence[Part]) -> Part:
        """One part with all their records."""
        return type(self)(self._records.joined([part._records for part in others]))

    def _memo(self, name: str, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What was made last for this name, if it was for the same key."""
        known, value = self._kept.get(name, (None, None))
        if known is None or not all(map(np.array_equal, known, key)):
            self._kept.pop(name, None)  # before it is replaced, it makes room
            value = make()
            self._kept[name] = key, value
        return value


SMALL = 1 << 15  # records of a part that are joined with others: a call takes as long as they do
JOINED = 1 << 18  # records of a part that is large enough


def join_small(parts: Mapping[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
    """The same records in fewer parts, each under the numbers of those that it was made of."""
    found, waiting = {}, defaultdict[Any, list[tuple[int, ...]]](list)
    for numbers, part in parts.items():
        kind = part.kind if part.n_records < SMALL and isinstance(part, Part) else None
        if kind is None:
            found[numbers] = part
        else:
            waiting[kind].append(numbers)
    for alike in waiting.values():
        while alike:
            group, size = [], 0
            while alike and size < JOINED:
                group.append(alike.pop())
                size += parts[group[-1]].n_records
            first, *others = [parts[numbers] for numbers in group]
            found[sum(group, ())] = first.joined(others) if others else first
    return found


def share_threads(parts: Sequence[Any], n_threads: int | None) -> int:
    """How many parts answer at the same time; each gets its share of the threads.

    Many parts with a thread each beat one part after the other with all threads: nobody waits for
    the slowest thread of each part.
    """
    total = threads.resolve(n_threads)
    at_once = min(total, len(parts))
    for part in parts:
        if isinstance(part, Part):
            part.use_threads(max(1, total // max(1, at_once)))
    return at_once


def as_table(X: Any, domain: Domain) -> Any:
    """The records of a part: named columns side by side, unless the domain asks for names."""
    if isinstance(X, Mapping) and domain.column_names is None:
        return numbers_of(X)
    return X


class Several(Parts):
    """The parts of several collections."""

    def __init__(self, several: Sequence[Parts]) -> None:
        super().__init__([one.n_records for one in several], [one.n_features for one in several])
        self._several = several

    def sum(self, question: str, *arguments: Any) -> Integers:
        first, *others = [one.sum(question, *arguments) for one in self._several]
        return np.asarray(sum(others, first))

    def try_one(self, question: str, *arguments: Any) -> None:
        self._several[0].try_one(question, *arguments)
