"""Whole fits by solver, records and threads; import time and memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import privfit

SOLVERS: dict[str, Any] = {
    "gradient": privfit.Gradient(steps=50),
    "local": privfit.Local(generations=50),
    "eem": privfit.EEM(generations=25),
    "dpsga": privfit.DPSGA(generations=10),
    "objective": privfit.ObjectivePerturbation(),
}


class Fits:
    """Fits of tables with ten columns of ten categories, read from columns."""

    rounds, repeat, number, warmup_time, timeout = 1, (2, 5, 1.0), 1, 0, 300

    def records(self, n: int) -> tuple[dict[str, Any], Any]:
        rng = np.random.default_rng(1)
        X = {f"x{j}": rng.integers(10, size=n) for j in range(10)}
        return X, (X["x0"] + X["x1"] + rng.normal(0, 4, n) > 9).astype(int)


class Linear(Fits):
    """Logistic regression."""

    param_names = ("solver", "n", "threads")
    params = (list(SOLVERS), [10_000, 40_000, 160_000], [1, 2])

    def setup(self, solver: str, n: int, threads: int) -> None:
        if n > 10_000 and threads > 1:
            raise NotImplementedError
        self.X, self.y = self.records(n)
        schema = privfit.Schema({name: privfit.Categorical(range(10)) for name in self.X})
        self.model = privfit.LogisticRegression(
            1.0, 1e-6, domain=schema, classes=[0, 1], solver=SOLVERS[solver], n_threads=threads,
            random_state=1,
        ).fit(self.X, self.y)  # fmt: skip

    def time_fit(self, *_: Any) -> None:
        self.model.fit(self.X, self.y)


class Clusters(Fits):
    """k-means in the plane and beyond."""

    param_names = ("solver", "n", "d", "threads")
    params = (["auto", "lloyd", "hybrid"], [10_000, 40_000, 160_000], [2, 8], [1, 2])

    def setup(self, solver: str, n: int, d: int, threads: int) -> None:
        if (n > 10_000) + (d > 2) + (threads > 1) > 1:
            raise NotImplementedError
        self.X = np.random.default_rng(1).uniform(-1, 1, (n, d))
        self.model = privfit.KMeans(
            8, 1.0, domain=(-1, 1), solver=solver, n_threads=threads, random_state=1
        ).fit(self.X)

    def time_fit(self, *_: Any) -> None:
        self.model.fit(self.X)


class Streams(Fits):
    """A gradient fit of records that are read from disk in blocks, by the number of records."""

    param_names = ("n",)
    params = ([100_000, 400_000],)

    def setup(self, n: int) -> None:
        rng = np.random.default_rng(1)
        self.X = (rng.random((n, 20), dtype=np.float32) * 2) - 1
        self.y = (self.X[:, 0] > 0).astype(np.int8)
        self.model = privfit.LogisticRegression(
            1.0, 1e-9, domain=privfit.Box(-1, 1), classes=[0, 1], solver=privfit.Gradient(steps=10),
            random_state=0,
        )  # fmt: skip

    def time_fit(self, n: int) -> None:
        self.model.fit(privfit.Stream(self.X, memory_limit="64MB"), self.y)


def timeraw_import() -> str:
    """A fresh interpreter that imports privfit."""
    return "import privfit"


class Memory:
    """The peak of a process that scores 200 candidates on n records."""

    param_names = ("n",)
    params = ([100_000, 1_000_000],)

    def setup(self, n: int) -> None:
        X = np.random.default_rng(1).uniform(-1, 1, (n, 20)).astype(np.float32)
        domain = privfit.Box(-1, 1, n_features=20)
        self.objective = privfit.LinearObjective(X, X[:, 0] > 0, "logistic", domain)
        self.P = domain.candidates(200, np.random.default_rng(2))

    def peakmem_scores(self, n: int) -> None:
        self.objective.scores(self.P)
