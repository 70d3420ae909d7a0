"""Loaders of public data sets: from a folder, never from a URL, by declared kinds of columns."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from privfit.base.errors import FileError, MissingExtraError
from privfit.base.typing import Array, Floats
from privfit.datasets import files
from privfit.datasets.dataset import Dataset
from privfit.datasets.declared import Declared, declared

__all__ = [
    "load",
    "load_adult",
    "load_bank_full",
    "load_california_housing",
    "load_credit_default",
    "load_diamonds",
    "load_flights",
    "load_gowalla_pois",
    "load_health_panel",
    "load_image_house_rgb",
    "load_lifesci",
    "load_mushroom",
    "load_s1",
    "load_sms_spam",
    "load_spambase",
    "load_su2016_centroids",
    "load_su2016_results",
]

CENTROIDS, RESULTS = "s1_su2016_init_centroids", "s1_su2016_eugkm_results"
SETS, CENTERS = 30, 15  # of the starting centroids

F = TypeVar("F", bound=Callable[..., Dataset])


def load(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    ranges: str = "documented",
    as_frame: bool = False,
    verify: bool = False,
) -> Dataset:
    """Load a public data set by its name.

    Parameters
    ----------
    name : str
        One of `names`.
    folder : str, path-like or None, default=None
        The folder that has the file ``NAME.csv.gz`` or ``NAME.csv``. By default the environment
        variable ``PRIVFIT_DATA`` names it.
    ranges : {"documented", "observed"}, default="documented"
        Where the ranges of the schema come from; see `load_schema`.
    as_frame : bool, default=False
        Whether the table is a pandas DataFrame rather than a dict of arrays.
    verify : bool, default=False
        Whether to compare the file with its known SHA-256 hash first.

    Returns
    -------
    Dataset
        The records in the order of the file.

    See Also
    --------
    privfit.datasets.names : Names of the data sets.
    privfit.datasets.load_schema : The schema alone, without the file.

    Notes
    -----
    Each cell is read by itself, as the kind that is declared for its column: what a record becomes
    does not depend on others. Nothing is downloaded: docs/datasets.md lists where the files come
    from.

    Examples
    --------
    >>> from privfit.datasets import load
    >>> try:
    ...     load("adult", folder="an empty folder")
    ... except FileNotFoundError:
    ...     print("get the file first")
    get the file first
    """
    known = declared(name)
    schema = known.under(ranges)
    columns = _columns(known, folder, verify)
    target, classes = _target(known, columns)
    unit, text = known.data.get("unit"), known.data.get("text")
    features = [text] if text else [*schema.columns] if schema is not None else [*columns]
    table: Any = {key: columns.pop(key) for key in features}
    return Dataset(
        name=name,
        table=_frame(table) if as_frame else table,
        schema=schema,
        target=target,
        classes=classes,
        target_range=(known.data["low"], known.data["high"]) if "low" in known.data else None,
        units=columns.pop(unit) if unit else None,
        others=columns,
        title=known.data["title"],
        source=known.data["source"],
        description=known.description,
        seed=known.data.get("seed", 1),
    )


def _columns(
    known: Declared, folder: str | os.PathLike[str] | None, verify: bool
) -> dict[str, Array]:
    """All columns of the file, which is verified first if that is asked for."""
    path = files.find(known.name, folder, known.data["source"], [*known.kinds])
    if verify:
        files.verify(path, known.data["sha256"])
    return files.read(path, known.kinds)


def _target(
    known: Declared, columns: dict[str, Array]
) -> tuple[Array | None, tuple[Any, ...] | None]:
    """The label, taken out of the columns, and its classes."""
    if "label" not in known.data:
        return None, None
    target = columns.pop(known.data["label"])
    if "classes" not in known.data:
        return target, None
    classes = tuple(known.data["classes"])
    if isinstance(classes[0], int):
        if np.isnan(target).any():
            raise FileError(
                f"column {known.data['label']!r} of {known.name} must hold whole numbers; get the "
                "file again"
            )
        target = target.astype(np.int64)
    return target, classes


def _frame(table: dict[str, Array]) -> Any:
    """The columns as a DataFrame; texts stay objects, so that pandas infers no type."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("as_frame=True needs pandas; run pip install pandas") from None
    return pd.DataFrame(
        {name: pd.Series(values, dtype=values.dtype) for name, values in table.items()}
    )


# What the loaders below take and show: each has a summary of its own, and says what it returns.
SECTIONS = """

Parameters
----------
folder : str, path-like or None, default=None
    The folder of ``NAME.csv.gz`` or ``.csv``; by default ``PRIVFIT_DATA``.
RANGESas_frame : bool, default=False
    Whether the table is a pandas DataFrame rather than a dict of arrays.
verify : bool, default=False
    Whether to compare the file with its known SHA-256 hash first.

Returns
-------
Dataset
    RETURNS

See Also
--------
privfit.datasets.load : Load a data set by its name; it says how files are read.

Examples
--------
>>> from privfit.datasets import load_NAME
>>> try:
...     data = load_NAME("an empty folder")
... except FileNotFoundError:
...     print("get the file first")
get the file first
"""
RANGES = """ranges : {"documented", "observed"}, default="documented"
    Where the ranges of the schema come from; see `load_schema`.
"""


class RangedLoader(Protocol):
    """A loader of a data set with numeric columns whose ranges may be observed ones."""

    def __call__(
        self, folder: str | os.PathLike[str] | None = None, *, ranges: str = "documented",
        as_frame: bool = False, verify: bool = False,
    ) -> Dataset: ...  # fmt: skip


class Loader(Protocol):
    """A loader of a data set whose schema, if it has one, is documented alone."""

    def __call__(
        self, folder: str | os.PathLike[str] | None = None, *, as_frame: bool = False,
        verify: bool = False,
    ) -> Dataset: ...  # fmt: skip


def _ranged(name: str, summary: str, returns: str) -> RangedLoader:
    def loader(
        folder: str | os.PathLike[str] | None = None,
        *,
        ranges: str = "documented",
        as_frame: bool = False,
        verify: bool = False,
    ) -> Dataset:
        return load(name, folder, ranges=ranges, as_frame=as_frame, verify=verify)

    return _named(loader, name, summary, RANGES, returns)


def _loader(name: str, summary: str, returns: str) -> Loader:
    def loader(
        folder: str | os.PathLike[str] | None = None,
        *,
        as_frame: bool = False,
        verify: bool = False,
    ) -> Dataset:
        return load(name, folder, as_frame=as_frame, verify=verify)

    return _named(loader, name, summary, "", returns)


def _named(loader: F, name: str, summary: str, ranges: str, returns: str) -> F:
    """A loader as if it had been written out: with a name and a docstring."""
    text = SECTIONS.replace("RANGES", ranges).replace("RETURNS", returns).replace("NAME", name)
    loader.__name__ = loader.__qualname__ = f"load_{name}"
    loader.__doc__ = f"{summary}{text}"
    return loader


load_adult = _ranged(
    "adult",
    "Load Adult (UCI): whether a person earns more than 50,000 dollars a year.",
    "48,842 records; ``published_split`` gives the published parts. ``?`` means missing.",
)
load_bank_full = _ranged(
    "bank_full",
    "Load Bank Marketing (UCI): whether a client subscribes a term deposit.",
    "45,211 records.",
)
load_california_housing = _loader(
    "california_housing",
    "Load California housing (1990 census): median house values of block groups.",
    "20,640 records; the target is a number. Missing numbers of bedrooms are NaN.",
)
load_credit_default = _ranged(
    "credit_default",
    "Load Default of Credit Card Clients (UCI): whether a client defaults.",
    "30,000 records.",
)
load_diamonds = _loader(
    "diamonds",
    "Load diamonds (ggplot2): prices of diamonds.",
    "53,940 records; the target is a number.",
)
load_flights = _loader(
    "flights",
    "Load flights from New York in 2013 (nycflights13): minutes of delay on arrival.",
    "336,776 records; the target is a number, NaN for flights that did not arrive. ``units`` "
    "are tail numbers of planes, empty if unknown.",
)
load_gowalla_pois = _ranged(
    "gowalla_pois",
    "Load Gowalla: latitude and longitude of places.",
    "32,510 records without a target.",
)
load_health_panel = _loader(
    "health_panel",
    "Load the German health survey 1984-1988 (rwm5yr): visits to a doctor in a year.",
    "19,609 records; the target is a number. ``units`` are people, with one to five yearly "
    "records each; ``others`` has the days in hospital.",
)
load_image_house_rgb = _ranged(
    "image_house_rgb",
    "Load House (USC-SIPI 4.1.05): the distinct colours of a picture.",
    "33,925 records without a target.",
)
load_lifesci = _ranged(
    "lifesci",
    "Load life sciences (ds1.10): ten principal components of compounds.",
    "26,733 records; the target tells 804 active compounds.",
)
load_mushroom = _loader(
    "mushroom",
    "Load Mushroom (UCI): whether a mushroom is poisonous.",
    "8,124 records, all columns of which are categories.",
)
load_s1 = _ranged(
    "s1",
    "Load S1: points of 15 clusters in the plane.",
    "5,000 records; the target is the cluster, from 1 to 15, that a point was drawn from.",
)
load_sms_spam = _loader(
    "sms_spam",
    "Load SMS Spam Collection (UCI): whether a text message is spam.",
    "5,574 records with one column ``text`` and no schema.",
)
load_spambase = _loader(
    "spambase",
    "Load Spambase (UCI): whether an e-mail is spam.",
    "4,601 records.",
)


def load_su2016_centroids(
    folder: str | os.PathLike[str] | None = None, *, verify: bool = False
) -> Floats:
    """Load starting centroids for `load_s1` that Su et al. (2016) used.

    Parameters
    ----------
    folder : str, path-like or None, default=None
        The folder that has ``s1_su2016_init_centroids.csv.gz``; by default that of
        ``PRIVFIT_DATA``.
    verify : bool, default=False
        Whether to compare the file with its known SHA-256 hash first.

    Returns
    -------
    array of float of shape (30, 15, 2)
        Thirty sets of fifteen centers in [-1, 1] x [-1, 1], the observed ranges of s1.

    See Also
    --------
    privfit.datasets.load_su2016_results : What was published of fits from these centroids.

    Examples
    --------
    >>> from privfit.datasets import load_su2016_centroids
    >>> try:
    ...     starts = load_su2016_centroids("an empty folder")
    ... except FileNotFoundError:
    ...     print("get the file first")
    get the file first
    """
    table = _columns(declared(CENTROIDS), folder, verify)
    place = table["init_set"] * CENTERS + table["centroid"]
    if not np.array_equal(place, np.arange(SETS * CENTERS)):
        raise FileError(
            f"{CENTROIDS} must list {SETS} sets of {CENTERS} centroids in order; get the file again"
        )
    return np.column_stack([table["x"], table["y"]]).reshape(SETS, CENTERS, 2)


def load_su2016_results(
    folder: str | os.PathLike[str] | None = None, *, verify: bool = False
) -> dict[str, Floats]:
    """Load results of the grid method EUGkM on `load_s1` that Su et al. (2016) published.

    Parameters
    ----------
    folder : str, path-like or None, default=None
        The folder that has ``s1_su2016_eugkm_results.csv.gz``; by default that of
        ``PRIVFIT_DATA``.
    verify : bool, default=False
        Whether to compare the file with its known SHA-256 hash first.

    Returns
    -------
    dict of str to array of shape (30,)
        The columns of the table; ``nicv_true_data`` is the mean squared distance to the nearest
        center, of records scaled to [-1, 1].

    See Also
    --------
    privfit.datasets.load_su2016_centroids : The centroids that these fits started from.

    Examples
    --------
    >>> from privfit.datasets import load_su2016_results
    >>> try:
    ...     results = load_su2016_results("an empty folder")
    ... except FileNotFoundError:
    ...     print("get the file first")
    get the file first
    """
    return _columns(declared(RESULTS), folder, verify)
