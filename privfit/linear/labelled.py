"""Records and their labels: packed once, with an objective for the model of each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privfit.base.typing import Array, Integers
from privfit.domains import Domain
from privfit.domains.once import read_once
from privfit.objectives import LinearObjective
from privfit.privacy.neighbours import Neighbours
from privfit.records import Stream
from privfit.runs.door import is_users
from privfit.runs.guests import without_records
from privfit.runs.settings import Settings
from privfit.runs.spaces import Reals

__all__ = ["Labelled", "Packed", "space_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Labelled:
    """Records and labels, wherever they are, and what is declared of them."""

    table: Any
    labels: Any  # (n,) positions among the classes; of parts, what they are asked for
    read_labels: Callable[[Any], Integers] | None  # of parts: the positions of a block's labels
    classes: Array
    loss: str
    domain: Domain
    n_threads: int | None
    neighbours: Neighbours
    fit_intercept: bool
    weights: dict[str, Any]  # of the loss

    @property
    def heads(self) -> range:
        """The positions of the classes that get a model; with two classes, the second."""
        return range(1, 2) if len(self.classes) == 2 else range(len(self.classes))

    @property
    def is_streamed(self) -> bool:
        """Whether the records have a memory limit to keep."""
        return isinstance(self.table, Stream)

    def under(self, domain: Domain) -> Labelled:
        """The same records under another domain."""
        return self if domain is self.domain else replace(self, domain=domain)

    def leaving(self, room: int, most: int = 0) -> Labelled:
        """The same records; a stream leaves so many bytes of its memory limit to a model."""
        if not isinstance(self.table, Stream):
            return self
        return replace(self, table=self.table.leaving(room, most))

    def check_room(self) -> None:
        """Refuse a stream that was read, if its limit has no room for what it leaves to a model."""
        if isinstance(self.table, Stream):
            self.table.check_room()

    def read_once(self) -> Labelled:
        """These records with their cells read; those on a cluster are read where they are."""
        schema: Any = self.domain
        if isinstance(self.table, Stream):
            read: Any = self.table.read_once(schema, self.labels, self.classes, self.n_threads)
        else:
            read = self.table if self.read_labels else read_once(schema, self.table)
        return replace(self, table=read)

    def coded_for(self, settings: Settings) -> Labelled:
        """These records on the grid of a solver; centring needs an intercept."""
        centres = settings.centres_columns and self.fit_intercept
        return self.under(self.domain.centred() if centres else self.domain)

    def packed(self) -> LinearObjective:
        """The objective of all records, by class if several classes get a model."""
        return self._objective(
            self.labels,
            labels=self.read_labels,
            n_classes=len(self.classes) if len(self.heads) > 1 else None,
        )

    def against_rest(
        self, packed: LinearObjective, head: int, settings: Settings
    ) -> LinearObjective:
        """The objective of one class versus the rest."""
        if len(self.heads) == 1:
            return packed
        if settings.needs_order:  # in which class 1 comes first
            return self._objective(self.labels == head)
        return packed.against(head)

    def _objective(self, y: Any, **settings: Any) -> LinearObjective:
        return LinearObjective(
            self.table, y, self.loss, self.domain, n_threads=self.n_threads,
            adjacency=self.neighbours, fit_intercept=self.fit_intercept, **self.weights, **settings,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Packed:
    """Records as the model sees them, and as the solver does: on its grid, packed, in its space."""

    labelled: Labelled
    coded: Labelled
    objective: LinearObjective
    space: Reals

    @classmethod
    def of(
        cls, labelled: Labelled, settings: Settings, known: LinearObjective | None = None
    ) -> Packed:
        """Pack records for a solver; `known` are the same ones, if they were packed for another."""
        coded = labelled.coded_for(settings)
        objective = coded.packed() if known is None or coded is not labelled else known
        return cls(labelled, coded, objective, space_of(settings, objective))

    @property
    def heads(self) -> range:
        """The positions of the classes that get a model."""
        return self.labelled.heads

    def of_head(self, head: int, settings: Settings) -> LinearObjective:
        """The objective of one class versus the rest, for the solver."""
        return self.coded.against_rest(self.objective, head, settings)

    def against(self, head: int) -> LinearObjective:
        """The objective of one class versus the rest, for sums over records."""
        return self.objective.against(head) if len(self.heads) > 1 else self.objective

    def class_counts(self) -> Integers:
        """int64 (n_classes,): how many records each class has. Private: to be released."""
        if len(self.heads) == 1:
            return self.objective.label_counts()
        return np.array([self.against(head).label_counts()[1] for head in self.heads])


def space_of(settings: Settings, objective: LinearObjective) -> Reals:
    """The box of weights: for coded columns, or in units of each column's scale."""
    high = np.full(objective.n_weights, settings.largest_weight)
    asked = without_records(objective, objective.neighbours) if is_users(settings) else objective
    if not settings.bounds_codes(asked):
        high[: objective.domain.width] *= np.ldexp(1.0, -objective.domain.exponents)
    return Reals(-high, high, objective.n_weights)
