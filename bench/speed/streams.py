"""Records in parts beside the same records in memory: streams from disk, and Dask's workers.

The rival is memory, so that a ratio of 1 is as fast, and 0.67 is one and a half times slower.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import Call
from bench.speed.cases import Ready, case, same, scaled
from privfit import Box, Gradient, LinearObjective, Local, LogisticRegression, Stream
from privfit.records.memory import limit_of, resident

DOMAIN = Box(-1, 1)
ROWS, D, POPULATION = 2_000_000, 50, 200
AGAIN = "with 128 MB beside the process most is read from disk again, with 2 GB it stays in memory"
FITTED, FITTED_D = 1_000_000, 20
WHOLE = "whole fits, in which records are packed, too; one partition for each worker"
TRIP = "two workers of one thread, beside two threads; a gradient waits for a round trip"


def table(rows: int, d: int = D) -> tuple[Any, Any]:
    """Uniform float32 records, and labels of a noisy line."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, d), dtype=np.float32) * 2 - 1
    return X, (X[:, 0] - X[:, 1] + rng.normal(0, 0.3, rows) > 0).astype(np.int8)


def question(objective: LinearObjective, name: str) -> Call:
    """A population or a gradient, as searches and descents ask for them."""
    P = DOMAIN.bind(D).candidates(POPULATION, np.random.default_rng(1))
    if name == "scores":
        return lambda: objective.scores(P)
    return lambda: objective.gradient(P[0], 0.5)


@case("streams", "scores, stream 2GB", 0.67, asked="scores", limit="2GB")
@case("streams", "scores, stream 128MB", 0.67, asked="scores", limit="128MB")
@case("streams", "gradient, stream 2GB", 0.67, asked="gradient", limit="2GB")
@case("streams", "gradient, stream 128MB", 0.67, note=AGAIN, asked="gradient", limit="128MB")
def streamed(threads: int, scale: float, asked: str, limit: str) -> Ready:
    X, y = table(scaled(ROWS, scale))
    memory = LinearObjective(X, y, "logistic", DOMAIN, n_threads=threads)
    room = resident() + (limit_of(limit) or 0)  # records and their rival are in memory, too
    stream = LinearObjective(Stream(X, memory_limit=room), y, "logistic", DOMAIN,
                             n_threads=threads)  # fmt: skip
    return Ready(f"{len(y):,} x {D}", question(stream, asked), {"memory": question(memory, asked)},
                 same)  # fmt: skip


def _rows_of_file(path: str, first: int, last: int) -> Any:
    return np.load(path, mmap_mode="r")[first:last]


def delayed_parts(folder: Path, rows: int, partitions: int) -> tuple[list[Any], list[Any]]:
    """Records and labels in files, as Dask's delayed values."""
    from dask import delayed

    load, step = delayed(_rows_of_file), -(-rows // partitions)
    X, y = ([load(str(folder / name), first, first + step) for first in range(0, rows, step)]
            for name in ("X.npy", "y.npy"))  # fmt: skip
    return X, y


def on_cluster(X: Any, y: Any, workers: int, partitions: int) -> tuple[Any, Call]:
    """Partitions of records and labels for new workers of one thread, and what ends these."""
    from distributed import Client, LocalCluster

    folder = tempfile.TemporaryDirectory()
    for name, values in (("X.npy", X), ("y.npy", y)):
        np.save(Path(folder.name) / name, values)
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
    client = Client(cluster)

    def close() -> None:
        client.close()
        cluster.close()
        folder.cleanup()

    return delayed_parts(Path(folder.name), len(y), partitions), close


@case("streams", "scores, Dask, 2 partitions", 0.77, asked="scores", partitions=2)
@case("streams", "scores, Dask, 1000 partitions", 0.77, asked="scores", partitions=1000)
@case("streams", "gradient, Dask, 2 partitions", 0.77, asked="gradient", partitions=2)
@case("streams", "gradient, Dask, 1000 partitions", 0.77, note=TRIP, asked="gradient",
      partitions=1000)  # fmt: skip
def on_workers(threads: int, scale: float, asked: str, partitions: int) -> Ready:
    X, y = table(scaled(ROWS, scale))
    parts, close = on_cluster(X, y, threads, max(2, round(partitions * scale)))
    memory = LinearObjective(X, y, "logistic", DOMAIN, n_threads=threads)
    workers = LinearObjective(*parts, "logistic", DOMAIN)
    return Ready(f"{len(y):,} x {D}", question(workers, asked), {"memory": question(memory, asked)},
                 same, close=close)  # fmt: skip


@case("streams", "fit, gradient, Dask", 0.77, solver=Gradient())
@case("streams", "fit, local, Dask", 0.67, note=WHOLE, solver=Local())
def fit_on_workers(threads: int, scale: float, solver: Any) -> Ready:
    X, y = table(scaled(FITTED, scale), FITTED_D)
    parts, close = on_cluster(X, y, threads, threads)
    model = LogisticRegression(1.0, 1e-6, domain=DOMAIN, classes=[0, 1], solver=solver,
                               random_state=0, n_threads=threads)  # fmt: skip
    return Ready(f"{len(y):,} x {FITTED_D}", lambda: model.fit(*parts).coef_,
                 {"memory": lambda: model.fit(X, y).coef_}, same, close=close)  # fmt: skip
