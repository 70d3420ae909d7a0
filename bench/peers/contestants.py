"""Our fits and those of others, on the same records, timed alike.

Each fit is a function (cell, seed) -> (what is measured, seconds of the fit). diffprivlib runs in a
process of its own, `worker.py`, and gets its records in a file.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.accuracy import THREADS, clusters, linear, messages
from bench.accuracy.tasks import TASKS, Cell
from bench.measure import ROOT
from bench.peers import fast_lloyd, noisy_descent
from privfit.datasets import Dataset
from privfit.privacy.neighbours import ADD_REMOVE

CACHE = Path(os.environ.get("PRIVFIT_BENCH", ROOT / "bench" / ".cache"))
PYTHON = CACHE / "peers" / "bin" / "python"  # made by python -m bench peers --setup


def timed(model: Any, X: Any, y: Any, score: Callable[[Any], float]) -> tuple[float, float]:
    """The score of a fitted model, and the seconds of its fit."""
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return float(score(model)), seconds


# -------------------------------------------------------------------------------------------- ours


def our_linear(cell: Cell, seed: int) -> tuple[float, float]:
    train, test = linear.split(cell.data, seed)
    solver = linear.SOLVERS[cell.solver]
    budget = cell.epsilon, cell.delta, cell.adjacency
    model = linear.estimator(solver, *budget, train, seed)
    return timed(model, train.table, train.labels, lambda m: m.score(test.table, test.labels))


def our_kmeans(cell: Cell, seed: int) -> tuple[float, float]:
    X = clusters.records(cell.data)
    model = clusters.estimator(
        cell.data, cell.solver, cell.epsilon, cell.delta, cell.adjacency, seed, n_threads=1
    )
    return timed(model, X, None, lambda m: clusters.nicv(X, m.cluster_centers_))


def our_features(cell: Cell, seed: int) -> tuple[float, float]:
    X, y, X_test, y_test = messages.fold(seed)
    budget = {"epsilon": cell.epsilon, "delta": cell.delta, "adjacency": cell.adjacency}
    settings = TASKS["features"].solvers[cell.solver]
    model = messages.selected(seed, **settings, **budget)
    return timed(model, X, y, lambda m: m.score(X_test, y_test))


# ------------------------------------------------------------------------------------- diffprivlib


class Worker:
    """A process that runs diffprivlib and interpret; asked and answered in lines of JSON."""

    def __init__(self, python: Path) -> None:
        if not python.exists():
            raise SystemExit(
                f"python ({str(python)!r}) must be an interpreter with diffprivlib; run "
                "python -m bench peers --setup"
            )
        self.folder = tempfile.TemporaryDirectory()
        self.tables: dict[Any, str] = {}
        self.numbers = itertools.count()
        self.process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("worker.py"))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, **dict.fromkeys(THREADS, "1")},
        )  # fmt: skip
        self.versions = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the process of peers has ended; see its message above")
        return dict(json.loads(line))

    def ask(self, key: Any, arrays: Callable[[], dict[str, Any]], **job: Any) -> dict[str, Any]:
        """Fit on the arrays of this key, which are handed over in a file, once."""
        if key not in self.tables:
            for path in self.tables.values():
                os.unlink(path)
            path = os.path.join(self.folder.name, f"{next(self.numbers)}.npz")  # never twice
            np.savez(path, **arrays())
            self.tables = {key: path}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**job, "table": self.tables[key]}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self.process.communicate()  # closes its input, at which it ends, and its output
        self.folder.cleanup()


def coded_arrays(train: Dataset, test: Dataset) -> dict[str, Any]:
    """Records in [0, 1]^d as the schema codes them, and labels."""
    X, X_test = (noisy_descent.coded(part).astype(np.float64) for part in (train, test))
    return {"X": X, "y": train.labels, "X_test": X_test, "y_test": test.labels}


def diffprivlib_linear(worker: Worker, cell: Cell, seed: int, **job: Any) -> tuple[float, float]:
    """Every column, one-hot or a number in [0, 1], adds at most 1 to a squared length."""
    train, test = linear.split(cell.data, seed)
    found = worker.ask(
        ("linear", cell.data, seed), lambda: coded_arrays(train, test), epsilon=cell.epsilon,
        seed=seed, norm=math.sqrt(len(train.table)), low=0.0, high=1.0, **job,
    )  # fmt: skip
    return found["value"], found["seconds"]


def diffprivlib_kmeans(worker: Worker, cell: Cell, seed: int) -> tuple[float, float]:
    X = clusters.records(cell.data)
    found = worker.ask(
        ("kmeans", cell.data), lambda: {"X": X}, model="kmeans", k=clusters.CLUSTERS[cell.data],
        epsilon=cell.epsilon, seed=seed, low=-1.0, high=1.0,
    )  # fmt: skip
    return clusters.nicv(X, np.array(found["centers"])), found["seconds"]


# ------------------------------------------------------------------------------------- other peers


def numpy_descent(cell: Cell, seed: int) -> tuple[float, float]:
    train, test = linear.split(cell.data, seed)
    X = noisy_descent.coded(train)
    settings = noisy_descent.settings_for(cell.epsilon)
    start = time.perf_counter()
    w = noisy_descent.fit(X, train.labels, cell.epsilon, cell.delta, cell.adjacency, seed, settings)
    seconds = time.perf_counter() - start
    return noisy_descent.accuracy(w, noisy_descent.coded(test), test.labels), seconds


class OpenDPTopK:
    """k features by OpenDP's noisy top k; its scale is set by its own privacy map."""

    def __init__(self, epsilon: float, k: int, criterion: str) -> None:
        self.epsilon, self.k, self.criterion = epsilon, k, criterion

    def fit(self, X: Any, y: Any) -> OpenDPTopK:
        import opendp.prelude as dp

        from privfit.features.scores import SCORES
        from privfit.records.binary import BinaryRecords

        dp.enable_features("contrib")
        how = SCORES[self.criterion]
        scores = how.integers(BinaryRecords.of(X, y, 2).counts(), None)
        one = how.sensitivity(ADD_REMOVE, None)
        monotonic = self.criterion == "total_count"  # a record more lowers no total count
        space = (
            dp.vector_domain(dp.atom_domain(T="i64")),
            dp.linf_distance(T="i64", monotonic=monotonic),
        )

        def make(scale: float) -> Any:
            return dp.m.make_noisy_top_k(*space, dp.max_divergence(), self.k, scale)

        scale = dp.binary_search_param(make, d_in=one, d_out=self.epsilon)
        self.chosen = np.sort(make(scale)(scores.tolist()))
        return self

    def transform(self, X: Any) -> Any:
        return X[:, self.chosen]


def opendp_features(cell: Cell, seed: int, criterion: str) -> tuple[float, float]:
    """Our naive Bayes on the features that OpenDP selects, with our shares of epsilon."""
    from sklearn.pipeline import Pipeline

    X, y, X_test, y_test = messages.fold(seed)
    ours = messages.selected(seed, epsilon=cell.epsilon, adjacency=cell.adjacency)
    first = OpenDPTopK(messages.SHARE * cell.epsilon, 8, criterion)
    model = Pipeline([("select", first), ("bayes", ours.named_steps["bayes"])])
    return timed(model, X, y, lambda m: m.score(X_test, y_test))


def fast_lloyd_kmeans(cell: Cell, seed: int) -> tuple[float, float]:
    X, k = clusters.records(cell.data), clusters.CLUSTERS[cell.data]
    start = time.perf_counter()
    centers = fast_lloyd.fit(X, k, cell.epsilon, seed)
    return clusters.nicv(X, centers), time.perf_counter() - start


def google_kmeans(cell: Cell, seed: int) -> tuple[float, float]:
    """Its LSH clustering, seeded through numpy's global generator."""
    from clustering import clustering_algorithm, clustering_params

    X, k = clusters.records(cell.data), clusters.CLUSTERS[cell.data]
    np.random.seed(seed)  # noqa: NPY002  it draws from there
    data = clustering_params.Data(datapoints=X, radius=math.sqrt(X.shape[1]))
    budget = clustering_params.DifferentialPrivacyParam(epsilon=cell.epsilon, delta=cell.delta)
    start = time.perf_counter()
    found = clustering_algorithm.private_lsh_clustering(k, data, budget)
    return clusters.nicv(X, np.asarray(found.centers)), time.perf_counter() - start
