"""Stream many generated rows under a memory limit: peak memory, speed, and the same releases.

    python tools/streams.py                                # 100,000,000 rows under 1 GB
    python tools/streams.py --rows 5000000 --compare       # and the same records from memory
    python tools/streams.py --dask                         # and from two workers, one killed
    python tools/streams.py --kinds npy parquet --limit 600MB --json

Each kind of file is written part by part, dropped from the page cache, read once as it is (the
speed of the disk), dropped again, and fitted by a process of its own. Its peak is what the system
reports when it has ended (`ru_maxrss`); with Dask, that of the largest process. Exits with 1 if a
limit was exceeded, or if releases differ between kinds of files, memory and Dask. POSIX only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

PART = 250_000  # rows that are generated at a time
COLUMNS = 10
KILLED = 4  # the step after which a worker is killed
KINDS = ("npy", "parquet", "csv")


def parts(rows: int) -> Iterator[tuple[Any, Any]]:
    """Uniform numbers with four digits, as float32, and labels of a noisy line."""
    for i in range(-(-rows // PART)):
        rng = np.random.default_rng([7, i])
        X = rng.integers(-9999, 10_000, (min(PART, rows - i * PART), COLUMNS)) / np.float32(10_000)
        noise = rng.normal(0, 0.3, len(X))
        yield X.astype(np.float32), (X[:, 0] - X[:, 1] + noise > 0).astype(np.int8)


def write(kind: str, folder: Path, rows: int) -> None:
    """A file of these rows; labels are a column, or a file of their own beside an array."""
    path, names = folder / f"x.{kind}", [f"c{j}" for j in range(COLUMNS)]
    if kind == "npy":
        shape = (rows, COLUMNS)
        X = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, shape[:1])
        for i, (some, labels) in enumerate(parts(rows)):
            X[i * PART : i * PART + len(some)], y[i * PART : i * PART + len(some)] = some, labels
            X.flush()
        y.flush()
        return
    import pyarrow
    from pyarrow import csv, parquet

    types = [(name, pyarrow.float32()) for name in names] + [("late", pyarrow.int8())]
    writer = parquet.ParquetWriter if kind == "parquet" else csv.CSVWriter
    with writer(str(path), pyarrow.schema(types)) as file:
        for X, y in parts(rows):
            file.write_table(pyarrow.table([*X.T, y], names=[*names, "late"]))


def forget(path: Path) -> None:
    """Drop a file from the page cache, so that it is read from its disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_through(path: Path) -> float:
    """Seconds to read a file in order, and nothing else."""
    forget(path)
    started, room = time.perf_counter(), memoryview(bytearray(1 << 22))
    with path.open("rb", buffering=0) as file:
        while file.readinto(room):
            pass
    forget(path)
    return time.perf_counter() - started


def fit(path: str, limit: str) -> None:
    """What a child does: fit, and print a digest of the release and how long packing took."""
    from privfit import Gradient, LogisticRegression, Numeric, Schema, Stream

    schema = Schema({f"c{j}": Numeric(-1, 1) for j in range(COLUMNS)})
    model = LogisticRegression(
        1.0, 1e-12, domain=schema, classes=[0, 1], solver=Gradient(steps=8), random_state=0
    )
    labels = str(Path(path).with_name("y.npy"))
    packed = [0.0]
    told = lambda _: packed.append(time.perf_counter() - started)  # noqa: E731
    with ExitStack() as stack:
        if limit == "memory":
            X, y = np.load(path), np.load(labels)
        elif limit == "dask":
            X, y, kill_one = stack.enter_context(on_workers(path, labels))
            model.set_params(callback=kill_one)
        else:
            X = Stream(path, memory_limit=limit, progress=told)
            y = labels if path.endswith(".npy") else "late"
        started = time.perf_counter()
        model.fit(X, y)
        taken = time.perf_counter() - started
    released = hashlib.sha256(model.release_.to_json().encode()).hexdigest()
    print(json.dumps([released, packed[-1], taken]))


def rows_of(path: str, first: int) -> Any:
    """A part of a mapped array, as a worker reads it."""
    return np.load(path, mmap_mode="r")[first : first + PART]


@contextmanager
def on_workers(path: str, labels: str) -> Iterator[tuple[Any, Any, Any]]:
    """Records and labels of two workers of one thread, and a callback that kills one of them."""
    from dask import delayed
    from distributed import Client, LocalCluster

    steps = count(1)

    def kill_one(_: Any) -> None:
        if next(steps) == KILLED:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0",
                     silence_logs=50) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.wait_for_workers(2)
        starts, load = range(0, len(np.load(labels, mmap_mode="r")), PART), delayed(rows_of)
        X, y = ([load(name, first) for first in starts] for name in (path, labels))
        yield X, y, kill_one
        if next(steps) <= KILLED:
            sys.exit("no worker was killed")


def run(path: Path, limit: str) -> dict[str, Any]:
    """The child's answer, and its peak memory."""
    command = [sys.executable, "-W", "ignore", __file__, "--child", str(path), limit]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    answer = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"the fit of {path.name} failed")
    released, packed, total = json.loads(answer)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"release": released[:12], "packing": packed, "fit": total, "peak": peak,
            "cpu": usage.ru_utime + usage.ru_stime}  # fmt: skip


def main() -> int:
    """Write, read and fit each kind of file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["npy", "parquet"])
    parser.add_argument("--limit", default="1GB")
    parser.add_argument("--folder", help="of the files; by default that for temporary ones")
    parser.add_argument("--compare", action="store_true", help="fit in memory, too; needs npy")
    parser.add_argument("--dask", action="store_true", help="fit on two workers, too; needs npy")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        fit(*options.child)
        return 0
    if options.write:
        write(options.write[0], Path(options.write[1]), options.rows)
        return 0
    from privfit.records.memory import limit_of

    limit, found = limit_of(options.limit) or 0, {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for kind in options.kinds:
            path = Path(folder) / f"x.{kind}"
            # By a process of its own: another one begins with the peak of that which started it.
            rows = str(options.rows)
            command = [sys.executable, __file__, "--rows", rows, "--write", kind, folder]
            subprocess.run(command, check=True)
            disk, size = read_through(path), path.stat().st_size
            others = [*["memory"] * options.compare, *["dask"] * options.dask]
            for name in (kind, *others * (kind == "npy")):
                how = name if name in others else options.limit
                forget(path)
                found[name] = {"bytes": size, "disk": disk, **run(path, how)}
            path.unlink()
    if options.json:
        print(json.dumps({"rows": options.rows, "limit": limit, "found": found}))
    else:
        show(options.rows, found)
    streamed = [facts for kind, facts in found.items() if kind in KINDS]
    kept = all(facts["peak"] < limit for facts in streamed)
    return int(not kept or len({facts["release"] for facts in found.values()}) != 1)


def show(rows: int, found: dict[str, dict[str, Any]]) -> None:
    """A table: a row for each kind of file."""
    print(f"{rows:,} x {COLUMNS}\n")
    print("kind          file      read   packing       fit       CPU      peak  release")
    for kind, facts in found.items():
        times = (f"{facts[name]:6.1f} s" for name in ("disk", "packing", "fit", "cpu"))
        size, peak = f"{facts['bytes'] / 1e9:5.2f} GB", f"{facts['peak'] / 1e6:5.0f} MB"
        print(f"{kind:8}", size, *times, peak, facts["release"], sep="  ")


if __name__ == "__main__":
    sys.exit(main())
