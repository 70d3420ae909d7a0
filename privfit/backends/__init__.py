"""Where records live: in memory, on disk, or on the workers of a Dask cluster.

Scores add up exactly, so where records live is a detail. An estimator's `fit` takes arrays as ever;
a `Stream` of files or memory-mapped arrays that do not fit into memory; or Dask arrays, DataFrames
and delayed partitions, which stay on their workers. `place` cuts such records into parts, and the
partitioned objectives of `parts` ask every part the same questions and add the answers. The same
seed gives the same model, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from privfit.backends.parts import (
    BinaryPart,
    CentersPart,
    FacilityPart,
    LinearPart,
    Make,
    Part,
    PartitionedBinary,
    PartitionedCenters,
    PartitionedFacility,
    PartitionedLinear,
    PartitionedRecords,
    Parts,
    RecordPart,
    as_table,
)
from privfit.backends.stream import Stream
from privfit.checks import is_partitioned
from privfit.domains import Domain
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)
from privfit.objectives.facility import FEW_COLUMNS, Metric
from privfit.packing import check_domain

__all__ = [
    "BinaryPart",
    "CentersPart",
    "FacilityPart",
    "LinearPart",
    "Part",
    "PartitionedBinary",
    "PartitionedCenters",
    "PartitionedFacility",
    "PartitionedLinear",
    "PartitionedRecords",
    "Parts",
    "RecordPart",
    "Stream",
    "as_table",
    "centers_objective",
    "facility_objective",
    "is_partitioned",
    "linear_objective",
    "place",
    "record_objective",
]


def linear_objective(
    X: Any,
    y: Any,
    loss: str = "logistic",
    domain: Domain | None = None,
    *,
    labels: Callable[[Any], Any] | None = None,
    n_threads: int | None = None,
    **settings: Any,
) -> LinearObjective:
    """A `LinearObjective` of records wherever they lie; `labels(y)` are y as it takes them."""
    domain = check_domain(domain, "LinearObjective")
    make: Any = partial(_linear, loss=loss, domain=domain, labels=labels, **settings)
    if not is_partitioned(X):
        return make(X, y, n_threads=n_threads)
    parts = place(X, y, partial(_part_of, LinearPart, make), n_threads)
    return PartitionedLinear(parts, loss, domain, n_threads=n_threads, **settings)


def _linear(X: Any, y: Any, *, labels: Any, domain: Any, **settings: Any) -> LinearObjective:
    y = y if labels is None else labels(y)
    return LinearObjective(as_table(X, domain), y, domain=domain, **settings)


def centers_objective(
    X: Any,
    n_clusters: int,
    domain: Domain | None = None,
    power: int = 2,
    n_threads: int | None = None,
    *,
    adjacency: str = "replace",
) -> CentersObjective:
    """A `CentersObjective` of records wherever they lie."""
    domain = check_domain(domain, "CentersObjective")
    settings: Any = {"power": power, "adjacency": adjacency}
    make: Any = partial(_centers, n_clusters=n_clusters, domain=domain, **settings)
    if not is_partitioned(X):
        return make(X, n_threads=n_threads)
    parts = place(X, None, partial(_part_of, CentersPart, make), n_threads)
    return PartitionedCenters(parts, n_clusters, domain, n_threads=n_threads, **settings)


def _centers(X: Any, y: None = None, *, domain: Any, **settings: Any) -> CentersObjective:
    return CentersObjective(as_table(X, domain), domain=domain, **settings)


def facility_objective(
    X: Any,
    facilities: Any,
    clip: tuple[float, float],
    domain: Domain | None = None,
    n_threads: int | None = None,
    *,
    metric: Metric = "l1",
) -> FacilityObjective:
    """A `FacilityObjective` of records wherever they lie; a metric of your own is sent there."""
    make: Any = partial(_facility, facilities=facilities, clip=clip, domain=domain, metric=metric)
    if not is_partitioned(X):
        return make(X, n_threads=n_threads)
    few = not callable(metric) and np.shape(facilities)[-1:] <= (FEW_COLUMNS,)
    parts = place(
        X, None, partial(_part_of, FacilityPart, make), n_threads, 0 if few else len(facilities)
    )
    return PartitionedFacility(parts, facilities, clip, domain, n_threads, metric=metric)


def _facility(X: Any, y: None = None, *, domain: Any, **settings: Any) -> FacilityObjective:
    return FacilityObjective(as_table(X, domain), domain=domain, **settings)


def record_objective(
    records: Any, score: Callable[[Any, Any], Any], low: float, high: float, **settings: Any
) -> RecordObjective:
    """A `RecordObjective` of records wherever they lie; a table's block is a dict of arrays.

    Cells of CSV files are texts, None where a record lacks the field; your function reads them.
    """
    make: Any = partial(_own, score=score, low=low, high=high, **settings)
    if not is_partitioned(records):
        return make(records)
    parts = place(records, None, partial(_part_of, RecordPart, make))
    return PartitionedRecords(parts, score, low, high, **settings)


def _own(records: Any, y: None = None, **settings: Any) -> RecordObjective:
    if isinstance(records, Mapping):
        records = {name: _array(column) for name, column in records.items()}
    return RecordObjective(records, **settings)


def _array(column: Any) -> Any:
    """A column as numpy has it; missing numbers of Arrow are NaN, missing texts None."""
    if hasattr(getattr(column, "type", None), "index_type"):  # a dictionary of Arrow
        column = column.cast(column.type.value_type)
    return np.asarray(column)


def _part_of(kind: type[Part], make: Make, X: Any, y: Any) -> Part:
    return kind(make(X, y))


def place(X: Any, y: Any, make: Make, n_threads: int | None = None, more_columns: int = 0) -> Parts:
    """The parts that ``make(records, labels)`` makes of X and y, where these lie.

    `more_columns` are those that a packed record has besides its own.
    """
    if isinstance(X, Stream):
        return X.place(y, make, n_threads, more_columns)
    from privfit.backends.cluster import place_on_workers

    return place_on_workers(X, y, make)
