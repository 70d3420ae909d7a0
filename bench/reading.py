"""Time how tables become codes: frames of every library, and CSV, beside what libraries do.

python bench/reading.py                     # Adult from frames, and a CSV file of 600,000 records
python bench/reading.py --filter CSV --rows 10000000
python bench/reading.py --write             # refresh bench/README.md and bench/reading.json

Adult's 14 columns are read by `Schema.read`: eight of texts, six of numbers, four of which are cut
into bins. The alternatives give the same levels: a library's own way to code declared values, and
numpy's `searchsorted`. Rounds are interleaved, and the best of each side counts. Frames are read on
one thread, CSV on two by default. CPU time is that of all threads; on a busy machine it is the
number to look at.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gzip
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import OrdinalEncoder

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

from bench.datasets import RANGES  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from privfit import Stream  # noqa: E402
from privfit.datasets import load_schema  # noqa: E402
from privfit.records.ahead import in_order  # noqa: E402

SCHEMA = load_schema("adult", RANGES)
TEXTS = {name: column for name, column in SCHEMA.columns.items() if not column.holds_numbers}
NUMBERS = {name: column for name, column in SCHEMA.columns.items() if column.holds_numbers}
MEGABYTES = 1 << 24  # of memory for a block of CSV

Levels = dict[str, np.ndarray]
Call = Callable[[], Levels]


def records() -> tuple[list[str], list[list[str]]]:
    """The header and the records of Adult, as they are written."""
    folder = Path(os.environ.get("PRIVFIT_DATA", HERE.parents[1] / "shared" / "data"))
    with gzip.open(folder / "adult.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


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


def by_pandas(frame: pd.DataFrame) -> Levels:
    """Positions in an index of the declared values."""
    texts = {name: pd.Index(column.values).get_indexer(frame[name])
             for name, column in TEXTS.items()}  # fmt: skip
    return texts | numbers(lambda name: frame[name].to_numpy())


def by_recoding(frame: pd.DataFrame) -> Levels:
    """Categories that are there already, put into the declared order."""
    texts = {name: frame[name].cat.set_categories(list(column.values)).cat.codes.to_numpy()
             for name, column in TEXTS.items()}  # fmt: skip
    return texts | numbers(lambda name: frame[name].to_numpy())


def by_sklearn(encoder: OrdinalEncoder, frame: pd.DataFrame) -> Levels:
    """scikit-learn's encoder, which has been fitted to the declared values."""
    codes = encoder.transform(frame[list(TEXTS)])
    return dict(zip(TEXTS, codes.T, strict=True)) | numbers(lambda name: frame[name].to_numpy())


def encoder() -> OrdinalEncoder:
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


def frames() -> dict[str, tuple[Call, dict[str, Call]]]:
    """By kind of table: ours, and the alternatives."""
    import polars
    import pyarrow

    header, rows = records()
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    whole = {name: np.array(columns[name], dtype=np.int64) for name in NUMBERS}
    texts = {name: list(columns[name]) for name in TEXTS}
    joined = {name: texts.get(name, whole.get(name)) for name in SCHEMA.columns}
    strings = pd.DataFrame(joined)
    objects = pd.DataFrame({name: pd.Series(column, dtype=object) if name in TEXTS else column
                            for name, column in joined.items()})  # fmt: skip
    categories = strings.astype(dict.fromkeys(TEXTS, "category"))
    arrays = {name: np.array(column) for name, column in joined.items()}
    arrow = pyarrow.table(joined)
    listed = pyarrow.table({name: arrow[name].dictionary_encode() if name in TEXTS else arrow[name]
                            for name in joined})  # fmt: skip
    frame = polars.DataFrame(joined)
    named = frame.with_columns(polars.col(list(TEXTS)).cast(polars.Categorical))
    fitted = encoder()
    return {
        "pandas, texts": (lambda: ours(strings), {
            "pandas": lambda: by_pandas(strings),
            "scikit-learn": lambda: by_sklearn(fitted, strings)}),
        "pandas, texts as objects": (lambda: ours(objects), {
            "pandas": lambda: by_pandas(objects),
            "scikit-learn": lambda: by_sklearn(fitted, objects)}),
        "pandas, categories": (lambda: ours(categories), {
            "pandas": lambda: by_recoding(categories),
            "scikit-learn": lambda: by_sklearn(fitted, categories)}),
        "numpy, arrays of texts": (lambda: ours(arrays), {
            "pandas": lambda: by_pandas(pd.DataFrame(arrays))}),
        "Arrow, texts": (lambda: ours(arrow), {"pyarrow": lambda: by_arrow(arrow)}),
        "Arrow, dictionaries": (lambda: ours(listed), {"pyarrow": lambda: by_arrow(listed)}),
        "Polars, texts": (lambda: ours(frame), {"polars": lambda: by_polars(frame)}),
        "Polars, categories": (lambda: ours(named), {"polars": lambda: by_polars(named)}),
    }  # fmt: skip


# -------------------------------------------------------------------------------------------- CSV


def write_csv(path: Path, rows: int) -> None:
    """Records of Adult, drawn with replacement."""
    header, known = records()
    lines = [",".join(row) for row in known]
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(header) + "\n")
        for first in range(0, rows, 100_000):
            drawn = rng.integers(0, len(lines), min(100_000, rows - first)).tolist()
            file.write("\n".join([lines[i] for i in drawn]) + "\n")


def csv_files(path: Path, n_threads: int) -> dict[str, tuple[Call, dict[str, Call]]]:
    """A file of CSV, read into codes."""

    def streamed() -> Levels:
        blocks = Stream(path, columns=list(SCHEMA.columns))._source.blocks(None, MEGABYTES)
        parts = list(in_order(lambda block: ours(block[0]), blocks, n_threads))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def pandas() -> Levels:
        kinds = dict.fromkeys(TEXTS, "category")
        return by_recoding(pd.read_csv(path, usecols=list(SCHEMA.columns), dtype=kinds))

    def arrow() -> Levels:
        import pyarrow
        from pyarrow import csv as arrow_csv

        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        options = arrow_csv.ConvertOptions(
            include_columns=list(SCHEMA.columns), column_types=dict.fromkeys(TEXTS, kind)
        )
        read = arrow_csv.ReadOptions(use_threads=n_threads > 1)
        return by_arrow(arrow_csv.read_csv(path, read_options=read, convert_options=options))

    return {"CSV": (streamed, {"pandas": pandas, "pyarrow": arrow})}


# --------------------------------------------------------------------------------------- measuring


def check_same(one: Levels, other: Levels) -> None:
    """Both sides find the same levels; what is not declared is `other`."""
    for name, levels in one.items():
        found = np.asarray(other[name]).astype(np.int64)
        if name in TEXTS:
            found = np.where(found < 0, len(TEXTS[name].values), found)
        if not np.array_equal(levels, found):
            raise SystemExit(f"the levels of {name!r} differ; nothing was timed")


def measure(name: str, mine: Call, others: dict[str, Call], repeat: int) -> dict[str, Any]:
    """A row: the best wall and CPU time of each side, in seconds."""
    sides = {"privfit": mine, **others}
    for other in others.values():
        check_same(mine(), other())
    times: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for _ in range(repeat):
        for side, call in sides.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            times[side].append((time.perf_counter() - wall, time.process_time() - cpu))
    row = {"name": name, "wall": {side: min(w for w, _ in took) for side, took in times.items()},
           "cpu": {side: min(c for _, c in took) for side, took in times.items()}}  # fmt: skip
    print(line(row), flush=True)
    return row


def line(row: dict[str, Any]) -> str:
    """A line of the table."""
    unit = 1e3
    best = min((side for side in row["wall"] if side != "privfit"), key=row["wall"].__getitem__)
    ratios = (f"{row[clock][best] / row[clock]['privfit']:.1f}" for clock in ("wall", "cpu"))
    cells = ", ".join(f"{side} {took * unit:.1f}" for side, took in row["wall"].items()
                      if side != "privfit")  # fmt: skip
    return (f"| {row['name']} | {row['wall']['privfit'] * unit:.1f} | {cells} | "
            + " | ".join(ratios) + " |")  # fmt: skip


def markdown(report: dict[str, Any]) -> str:
    """The table, as it is kept in the README."""
    return "\n".join([
        f"Measured on {report['date']}, best of {report['repeat']}; CSV of {report['rows']:,} "
        f"records on {report['threads']} threads. Milliseconds of wall time; the ratios are to the "
        "faster alternative.",
        "",
        "| table | privfit, ms | alternatives, ms | ratio | by CPU time |",
        "|---|---|---|---|---|",
        *map(line, report["measured"]),
    ]) + "\n"  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", metavar="REGEX", help="rows to measure")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--rows", type=int, default=600_000, help="records of the CSV file")
    parser.add_argument("--threads", type=int, default=2, help="that read CSV")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases = frames()
        if re.search(options.filter, "CSV"):
            write_csv(path := Path(folder) / "adult.csv", options.rows)
            cases |= csv_files(path, options.threads)
        measured = [measure(name, *sides, options.repeat) for name, sides in cases.items()
                    if re.search(options.filter, name)]  # fmt: skip
    report = {"date": datetime.date.today().isoformat(), "repeat": options.repeat,
              "rows": options.rows, "threads": options.threads, "measured": measured}  # fmt: skip
    if options.write:
        keep(HERE / "reading.json", report)
        refresh(HERE / "README.md", markdown(report), "reading")


if __name__ == "__main__":
    main()
