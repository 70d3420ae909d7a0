"""How tables become codes: frames of every library, and CSV, beside what libraries do.

Adult's 14 columns are read by `Schema.read`: eight of texts, six of numbers, four of which are cut
into bins. The rivals give the same levels: a library's own way to code declared values, and numpy's
`searchsorted`. Frames are read on one thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed.cases import Ready, case, scaled
from privfit import Stream
from privfit.datasets import load_adult, load_schema
from privfit.records.ahead import in_order

SCHEMA = load_schema("adult", "observed")
TEXTS = {name: column for name, column in SCHEMA.columns.items() if not column.holds_numbers}
NUMBERS = {name: column for name, column in SCHEMA.columns.items() if column.holds_numbers}
MEGABYTES = 1 << 24  # of memory for a block of CSV

Levels = dict[str, np.ndarray]


@cache
def columns(scale: float) -> dict[str, list[Any]]:
    """Columns of Adult: texts, and whole numbers."""
    table = load_adult().table
    n = scaled(len(table["age"]), scale)
    return {name: (values[:n] if name in TEXTS else values[:n].astype(np.int64)).tolist()
            for name, values in table.items()}  # fmt: skip


# ------------------------------------------------------------------------------------- both sides


def ours(X: Any) -> Levels:
    """The levels of the columns of texts, and of numbers with bins."""
    return levels_of(SCHEMA.read(X))


def levels_of(codes: Any) -> Levels:
    cut = [name for name, column in SCHEMA.columns.items() if column.coded_range is None]
    return dict(zip(cut, codes.levels, strict=True))


def numbers(of: Callable[[str], np.ndarray]) -> Levels:
    """Bins by numpy; a number without bins becomes its share of the range."""
    found = {}
    for name, column in NUMBERS.items():
        x = of(name)
        if column.bins:
            found[name] = np.searchsorted(np.asarray(column.bins), x, side="right")
        else:
            np.clip((x - column.low) / (column.high - column.low), 0, 1)
    return found


def by_pandas(frame: Any) -> Levels:
    """Positions in an index of the declared values."""
    import pandas as pd

    texts = {name: pd.Index(column.values).get_indexer(frame[name])
             for name, column in TEXTS.items()}  # fmt: skip
    return texts | numbers(lambda name: frame[name].to_numpy())


def by_recoding(frame: Any) -> Levels:
    """Categories that are there already, put into the declared order."""
    texts = {name: frame[name].cat.set_categories(list(column.values)).cat.codes.to_numpy()
             for name, column in TEXTS.items()}  # fmt: skip
    return texts | numbers(lambda name: frame[name].to_numpy())


def by_sklearn(encoder: Any, frame: Any) -> Levels:
    """scikit-learn's encoder, which has been fitted to the declared values."""
    codes = encoder.transform(frame[list(TEXTS)])
    return dict(zip(TEXTS, codes.T, strict=True)) | numbers(lambda name: frame[name].to_numpy())


def encoder() -> Any:
    import pandas as pd
    from sklearn.preprocessing import OrdinalEncoder

    values = [list(column.values) for column in TEXTS.values()]
    made = OrdinalEncoder(categories=values, handle_unknown="use_encoded_value", unknown_value=-1)
    first = pd.DataFrame({name: [column.values[0]] for name, column in TEXTS.items()})
    return made.set_params(dtype=np.int16).fit(first)


def by_arrow(table: Any) -> Levels:
    """Positions among the declared values, by pyarrow."""
    import pyarrow
    from pyarrow import compute

    found = {}
    for name, column in TEXTS.items():
        at = compute.index_in(table[name], value_set=pyarrow.array(column.values))
        found[name] = at.fill_null(-1).to_numpy()
    return found | numbers(lambda name: table[name].to_numpy())


def by_polars(frame: Any) -> Levels:
    """An Enum of the declared values, by Polars."""
    import polars

    found = {}
    for name, column in TEXTS.items():
        kind = polars.Enum(list(column.values))
        codes = frame[name].cast(polars.String).cast(kind, strict=False).to_physical()
        found[name] = codes.cast(polars.Int16).fill_null(-1).to_numpy()
    return found | numbers(lambda name: frame[name].to_numpy())


# ----------------------------------------------------------------------------------------- frames


def frame(kind: str, scale: float) -> tuple[Any, dict[str, Callable[[Any], Levels]]]:
    """A table of this kind, and who else may code it."""
    import pandas as pd

    texts = {name: columns(scale)[name] for name in TEXTS}
    whole = {name: np.array(columns(scale)[name], dtype=np.int64) for name in NUMBERS}
    joined = {name: texts.get(name, whole.get(name)) for name in SCHEMA.columns}
    if kind.startswith("Arrow"):
        import pyarrow

        table = pyarrow.table(joined)
        if kind == "Arrow, dictionaries":
            coded = {name: table[name].dictionary_encode() for name in TEXTS}
            table = pyarrow.table({name: coded.get(name, table[name]) for name in joined})
        return table, {"pyarrow": by_arrow}
    if kind.startswith("Polars"):
        import polars

        named = polars.DataFrame(joined)
        if kind == "Polars, categories":
            named = named.with_columns(polars.col(list(TEXTS)).cast(polars.Categorical))
        return named, {"polars": by_polars}
    if kind.startswith("numpy"):
        arrays = {name: np.array(column) for name, column in joined.items()}
        return arrays, {"pandas": lambda table: by_pandas(pd.DataFrame(table))}
    fitted = encoder()
    rivals = {"pandas": by_pandas, "scikit-learn": lambda table: by_sklearn(fitted, table)}
    if kind == "pandas, texts as objects":
        return pd.DataFrame({name: pd.Series(column, dtype=object) if name in TEXTS else column
                             for name, column in joined.items()}), rivals  # fmt: skip
    strings = pd.DataFrame(joined)
    if kind == "pandas, categories":
        return strings.astype(dict.fromkeys(TEXTS, "category")), rivals | {"pandas": by_recoding}
    return strings, rivals


KINDS = ("pandas, texts", "pandas, texts as objects", "pandas, categories",
         "numpy, arrays of texts", "Arrow, texts", "Arrow, dictionaries", "Polars, texts",
         "Polars, categories")  # fmt: skip


def read(threads: int, scale: float, kind: str) -> Ready:
    table, rivals = frame(kind, scale)
    return Ready(
        size=f"{len(columns(scale)['age']):,} x {len(SCHEMA.columns)}",
        ours=lambda: ours(table),
        rivals={name: lambda code=code: code(table) for name, code in rivals.items()},
        agree=check_same,
    )


for _kind in KINDS:
    case("reading", _kind, kind=_kind)(read)


# -------------------------------------------------------------------------------------------- CSV


def write_csv(path: Path, rows: int, labelled: bool, many: int = 100_000) -> None:
    """Lines of Adult, with their labels or without, drawn with replacement, so many at a time."""
    known = columns(1.0)
    if labelled:
        known = known | {"income": np.where(load_adult().labels > 0, ">50K", "<=50K").tolist()}
    lines = np.array([",".join(map(str, line)) for line in zip(*known.values(), strict=True)],
                     dtype=object)  # fmt: skip
    coins = np.random.default_rng(0)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(known) + "\n")
        for first in range(0, rows, many):
            drawn = lines[coins.integers(0, len(lines), min(many, rows - first))]
            file.write("\n".join(drawn) + "\n")


@case("reading", "CSV", note="600,000 records of Adult, drawn with replacement, in a file")
def read_csv(threads: int, scale: float) -> Ready:
    folder = tempfile.TemporaryDirectory()
    path, rows = Path(folder.name) / "adult.csv", scaled(600_000, scale)
    write_csv(path, rows, labelled=False)

    def streamed() -> Levels:
        blocks = Stream(path, columns=list(SCHEMA.columns))._source.blocks(None, MEGABYTES)
        parts = list(in_order(lambda block: ours(block[0]), blocks, threads))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def by_pandas_file() -> Levels:
        import pandas as pd

        kinds = dict.fromkeys(TEXTS, "category")
        return by_recoding(pd.read_csv(path, usecols=list(SCHEMA.columns), dtype=kinds))

    def by_arrow_file() -> Levels:
        import pyarrow
        from pyarrow import csv as arrow_csv

        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        options = arrow_csv.ConvertOptions(
            include_columns=list(SCHEMA.columns), column_types=dict.fromkeys(TEXTS, kind)
        )
        how = arrow_csv.ReadOptions(use_threads=threads > 1)
        return by_arrow(arrow_csv.read_csv(path, read_options=how, convert_options=options))

    return Ready(f"{rows:,} x {len(SCHEMA.columns)}", streamed,
                 {"pandas": by_pandas_file, "pyarrow": by_arrow_file}, check_same,
                 close=folder.cleanup)  # fmt: skip


@case(
    "reading", "CSV to a fitted model", note="ours: reading and a whole fit; the rivals only read"
)
def fit_csv(threads: int, scale: float) -> Ready:
    from privfit import Gradient, LogisticRegression

    folder = tempfile.TemporaryDirectory()
    path, rows = Path(folder.name) / "adult.csv", scaled(10_000_000, scale)
    write_csv(path, rows, labelled=True)
    model = LogisticRegression(1.0, 1e-9, domain=SCHEMA, classes=["<=50K", ">50K"],
                               solver=Gradient(), calibrate=False, n_threads=threads,
                               random_state=0)  # fmt: skip

    def by_pandas_alone() -> int:
        import pandas as pd

        return len(pd.read_csv(path, dtype=dict.fromkeys([*TEXTS, "income"], "category")))

    def by_arrow_alone() -> int:
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(path, arrow_csv.ReadOptions(use_threads=threads > 1)).num_rows

    def whole(fitted: Any, rival: str, found: int) -> None:
        assert found == rows, f"{rival}: {found:,} records"

    return Ready(f"{rows:,} x {len(SCHEMA.columns)}", lambda: model.fit(Stream(path), "income"),
                 {"pandas": by_pandas_alone, "pyarrow": by_arrow_alone}, whole,
                 close=folder.cleanup)  # fmt: skip


def check_same(ours: Levels, rival: str, theirs: Levels) -> None:
    """Both sides find the same levels; what is not declared is `other`."""
    for name, levels in ours.items():
        found = np.asarray(theirs[name]).astype(np.int64)
        if name in TEXTS:
            found = np.where(found < 0, len(TEXTS[name].values), found)
        assert np.array_equal(levels, found), f"{rival}: the levels of {name!r} differ"
