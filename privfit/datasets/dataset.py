"""A data set: records by column, the target, what is declared of them, and where they are from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Array, Floats, Integers
from privfit.base.validation import is_whole
from privfit.domains import Box, Schema

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Records by column, their target, and what is declared of both.

    The functions of `privfit.datasets` return it: ``load_adult(folder)`` reads a public data set
    from a file, ``make_census(n)`` makes records up.

    Parameters
    ----------
    name : str
        Name of the data set.
    table : dict of str to array, or DataFrame
        The features by name: float64 for numbers and numeric codes, texts otherwise. Values are
        those of the file; nothing is imputed or scaled.
    schema : Schema or None, default=None
        The declared range or values of each feature; None for texts.
    target : array of shape (n,) or None, default=None
        What is to be predicted, as in the file: classes, or float64 numbers.
    classes : tuple or None, default=None
        The documented classes of the target; None if it is a number.
    target_range : tuple of float or None, default=None
        The declared range of a target that is a number.
    units : array of shape (n,) or None, default=None
        Whom each record belongs to, if one person or plane has several.
    others : dict of str to array, default={}
        Columns that are neither features nor the target, such as a published split.
    facts : dict of str to object, default={}
        What is known of made-up records, such as the centers of clusters.
    title, source, description : str
        Full name, origin, and notes on the columns and their ranges.
    seed : int, default=1
        Seed of `split` by default.
    made_up : bool, default=False
        Whether the records were generated.

    Attributes
    ----------
    table, schema, target, classes, units, others, facts : object
        As passed.

    See Also
    --------
    privfit.datasets.load : Load a data set by its name.
    privfit.datasets.make_census : Make up records like those of a census.

    Examples
    --------
    >>> from privfit.datasets import make_census
    >>> census = make_census(1000, seed=0)
    >>> train, test = census.split()
    >>> len(train), len(test), census.classes
    (800, 200, (0, 1))
    """

    name: str
    table: Any
    schema: Schema | None = None
    target: Array | None = None
    classes: tuple[Any, ...] | None = None
    target_range: tuple[float, float] | None = None
    units: Array | None = None
    others: Mapping[str, Array] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    source: str = ""
    description: str = ""
    seed: int = 1
    made_up: bool = False

    def __len__(self) -> int:
        return len(self.table[next(iter(self.table))])

    def __repr__(self) -> str:
        kind = ", made up" if self.made_up else ""
        return f"Dataset({self.name!r}, {len(self)} records{kind}, {self.schema})"

    @property
    def n_public(self) -> int:
        """The number of records, which is public for public or made-up records.

        Returns
        -------
        int
            What to pass as ``n_public``.
        """
        return len(self)

    @cached_property
    def labels(self) -> Integers:
        """The position of each record's class among `classes`.

        Returns
        -------
        array of int of shape (n,)
            0 or 1 for two classes, as objectives take them.
        """
        if self.target is None or self.classes is None:
            raise DeclarationError(
                f"labels need classes, and {self.name!r} has none; use target, or compare it with "
                "a threshold, such as target > 15"
            )
        labels = np.full(len(self), -1, dtype=np.int64)
        for i, value in enumerate(self.classes):
            labels[self.target == value] = i
        if (labels < 0).any():
            raise InputError(
                f"target of {self.name!r} must hold declared classes alone; drop the other records"
            )
        return labels

    # ------------------------------------------------------------------------------------- parts

    def take(self, index: Any) -> Dataset:
        """Some of the records.

        Parameters
        ----------
        index : array of int or bool
            Positions of the records, or whether to take each.

        Returns
        -------
        Dataset
            These records, with the same declarations.
        """

        def some(values: Any) -> Any:
            return None if values is None else values[index]

        if isinstance(self.table, dict):
            table: Any = {name: values[index] for name, values in self.table.items()}
        else:
            table = self.table[index] if np.asarray(index).dtype == bool else self.table.iloc[index]
        others = {name: values[index] for name, values in self.others.items()}
        return replace(
            self, table=table, target=some(self.target), units=some(self.units), others=others
        )

    def split(self, seed: int | None = None) -> tuple[Dataset, Dataset]:
        """Split the records at random: 80 % to train on, and 20 % to test on.

        Parameters
        ----------
        seed : int or None, default=None
            Seed of the split; by default that of the data set.

        Returns
        -------
        tuple of Dataset
            The records to train on, and those to test on.
        """
        order = np.random.default_rng(self.seed if seed is None else seed).permutation(len(self))
        cut = 4 * len(self) // 5
        return self.take(order[:cut]), self.take(order[cut:])

    def published_split(self) -> tuple[Dataset, Dataset]:
        """Split the records as they were published.

        Returns
        -------
        tuple of Dataset
            The records to train on, and those to test on.
        """
        if "split" not in self.others:
            raise DeclarationError(
                f"{self.name!r} must be published in two parts to be split so; call split(seed)"
            )
        is_train = self.others["split"] == "train"
        return self.take(is_train), self.take(~is_train)

    # ----------------------------------------------------------------------------------- numbers

    def with_bins(self, bins: int) -> Dataset:
        """Declare equal bins for each column of numbers.

        Parameters
        ----------
        bins : int
            Number of bins; 0 for none.

        Returns
        -------
        Dataset
            The same records under another schema.
        """
        schema = self._declared()
        columns = {
            name: replace(column, bins=bins) if column.holds_numbers else column
            for name, column in schema.columns.items()
        }
        return replace(self, schema=replace(schema, columns=columns))

    def to_array(self, columns: Sequence[str] | None = None) -> Floats:
        """Columns of numbers side by side.

        Parameters
        ----------
        columns : sequence of str or None, default=None
            Names of the columns; by default all that hold numbers.

        Returns
        -------
        array of float of shape (n, d)
            The numbers as they are in the file, NaN where one is missing.
        """
        names = self._numeric(columns)
        return np.column_stack([np.asarray(self.table[name], dtype=np.float64) for name in names])

    def box(self, columns: Sequence[str] | None = None) -> Box:
        """The domain of `to_array`.

        Parameters
        ----------
        columns : sequence of str or None, default=None
            Names of the columns; by default all that hold numbers.

        Returns
        -------
        Box
            The declared ranges of these columns.
        """
        declared = [self._declared().columns[name] for name in self._numeric(columns)]
        ranges = [(column.low, column.high) for column in declared if column.holds_numbers]
        return Box(*np.array(ranges, dtype=np.float64).T)

    def _declared(self) -> Schema:
        if self.schema is None:
            raise DeclarationError(
                f"{self.name!r} must have a schema, but its records are texts; use table['text']"
            )
        return self.schema

    def _numeric(self, columns: Sequence[str] | None) -> list[str]:
        """The names of columns of numbers: those passed, or all."""
        declared = self._declared().columns
        numeric = [name for name, column in declared.items() if column.holds_numbers]
        if columns is None:
            columns = numeric
        if isinstance(columns, str) or not columns or not set(columns) <= set(numeric):
            raise DeclarationError(
                f"columns ({columns!r}) must be columns of numbers; pass some of {numeric}"
            )
        return list(columns)


def check_count(value: Any, name: str, least: int = 1) -> int:
    """Refuse what is not a whole number of at least so many."""
    if not is_whole(value) or value < least:
        raise DeclarationError(
            f"{name} ({value!r}) must be a whole number of at least {least}; pass one such as "
            f"{name}=1000"
        )
    return int(value)
