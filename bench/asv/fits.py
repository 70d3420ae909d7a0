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


class _Fits:
    """How long asv looks at a fit: two to five of them, about a second."""

    rounds, repeat, number, warmup_time, timeout = 1, (2, 5, 1.0), 1, 0, 300


class _Linear(_Fits):
    """Logistic regression on ten columns of ten categories, read from columns."""

    def setup(self, solver: str, n: int = 10_000, threads: int = 1) -> None:
        rng = np.random.default_rng(1)
        self.X = {f"x{j}": rng.integers(10, size=n) for j in range(10)}
        self.y = (self.X["x0"] + self.X["x1"] + rng.normal(0, 4, n) > 9).astype(int)
        schema = privfit.Schema({name: privfit.Categorical(range(10)) for name in self.X})
        self.model = privfit.LogisticRegression(
            1.0, 1e-6, domain=schema, classes=[0, 1], solver=SOLVERS[solver], n_threads=threads,
            calibrate=False, random_state=1,
        ).fit(self.X, self.y)  # fmt: skip

    def time_fit(self, *_: Any) -> None:
        self.model.fit(self.X, self.y)


class LinearByN(_Linear):
    """By the number of records."""

    param_names = ("solver", "n")
    params = (list(SOLVERS), [10_000, 40_000, 160_000])


class LinearByThreads(_Linear):
    """By the number of threads."""

    param_names = ("solver", "threads")
    params = (list(SOLVERS), [1, 2])

    def setup(self, solver: str, threads: int) -> None:
        super().setup(solver, threads=threads)


class KMeansByN(_Fits):
    """k-means in the plane."""

    param_names = ("solver", "n")
    params = (["auto", "lloyd", "hybrid"], [10_000, 40_000, 160_000])

    def setup(self, solver: str, n: int = 10_000, d: int = 2) -> None:
        self.X = np.random.default_rng(1).uniform(-1, 1, (n, d))
        self.model = privfit.KMeans(
            8, 1.0, domain=(-1, 1), solver=solver, n_threads=1, random_state=1
        ).fit(self.X)

    def time_fit(self, *_: Any) -> None:
        self.model.fit(self.X)


class KMeansByD(KMeansByN):
    """k-means by the number of columns."""

    param_names = ("solver", "d")
    params = (["auto", "lloyd", "hybrid"], [2, 4, 8])

    def setup(self, solver: str, d: int) -> None:
        super().setup(solver, d=d)


class StreamsByN(_Fits):
    """A gradient fit of records that are read from disk in blocks, by the number of records."""

    param_names = ("n",)
    params = ([100_000, 400_000],)

    def setup(self, n: int) -> None:
        rng = np.random.default_rng(1)
        self.X = (rng.random((n, 20), dtype=np.float32) * 2) - 1
        self.y = (self.X[:, 0] > 0).astype(np.int8)
        self.model = privfit.LogisticRegression(
            1.0, 1e-9, domain=privfit.Box(-1, 1), classes=[0, 1], solver=privfit.Gradient(steps=10),
            calibrate=False, random_state=0,
        )  # fmt: skip

    def time_fit(self, n: int) -> None:
        self.model.fit(privfit.Stream(self.X), self.y)


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
