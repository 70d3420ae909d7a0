"""Kernels over the shapes that decide their time: layout, loss, n, d, m, k and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import privfit


class Timed:
    """How long asv looks at each point: about half a second."""

    rounds, repeat, sample_time, warmup_time, timeout = 1, (3, 7, 0.4), 0.02, 0.05, 120
    number = 0


def linear_objective(layout: str, loss: str, n: int, d: int, threads: int) -> Any:
    """Records of this layout: uniform numbers, or as many one-hot groups as there are tens."""
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=n)
    if layout == "dense":
        X, domain = rng.uniform(-1, 1, (n, d)), privfit.Box(-1, 1, n_features=d)
    elif layout == "one-hot":
        groups = max(1, d // 10)
        places = rng.integers(10, size=(n, groups)) + 10 * np.arange(groups)
        shape = (n, 10 * groups)
        starts = np.arange(0, n * groups + 1, groups)
        X = sp.csr_array((np.ones(n * groups), places.ravel(), starts), shape=shape)
        domain = privfit.Box(0, 1, n_features=shape[1])
    else:
        groups = max(1, d // 10)
        X = {f"x{j}": rng.integers(10, size=n) for j in range(groups)}
        domain = privfit.Schema({name: privfit.Categorical(range(10)) for name in X})
    return privfit.LinearObjective(X, y, loss, domain, n_threads=threads), domain


class Scores(Timed):
    """Scores of m linear models."""

    param_names = ("layout", "loss", "n", "d", "m", "threads")
    params = (["dense", "one-hot", "codes"], ["logistic", "hinge"], [20_000, 80_000, 320_000],
              [20, 80], [50, 200], [1, 2])  # fmt: skip

    def setup(self, layout: str, loss: str, n: int, d: int, m: int, threads: int) -> None:
        # A line along each axis, not the whole product.
        bigger = (n > 20_000) + (d > 20) + (m > 50) + (threads > 1)
        if bigger > 1 or (loss == "hinge" and bigger):
            raise NotImplementedError
        self.objective, domain = linear_objective(layout, loss, n, d, threads)
        self.P = domain.candidates(m, np.random.default_rng(2))

    def time_scores(self, *_: Any) -> None:
        self.objective.scores(self.P)


class Gradients(Timed):
    """The clipped gradient, and the moves of one parent."""

    param_names = ("layout", "n", "d", "threads")
    params = (["dense", "one-hot", "codes"], [20_000, 80_000, 320_000], [20, 80], [1, 2])

    def setup(self, layout: str, n: int, d: int, threads: int) -> None:
        if (n > 20_000) + (d > 20) + (threads > 1) > 1:
            raise NotImplementedError
        self.objective, domain = linear_objective(layout, "logistic", n, d, threads)
        self.w = domain.candidates(1, np.random.default_rng(2))[0]
        self.coords = np.arange(100) % len(self.w)
        self.steps = np.full(100, 0.25)

    def time_gradient(self, *_: Any) -> None:
        self.objective.gradient(self.w, 0.5)

    def time_moves(self, *_: Any) -> None:
        self.objective.at(self.w).scores(self.coords, self.steps)


class Centers(Timed):
    """Costs of m sets of k centres, one step of Lloyd, and residuals."""

    param_names = ("n", "d", "k", "m", "threads")
    params = ([20_000, 80_000, 320_000], [4, 16, 64], [5, 20], [20, 80], [1, 2])

    def setup(self, n: int, d: int, k: int, m: int, threads: int) -> None:
        if (n > 20_000) + (d > 4) + (k > 5) + (m > 20) + (threads > 1) > 1:
            raise NotImplementedError
        rng = np.random.default_rng(1)
        X, domain = rng.uniform(-1, 1, (n, d)), privfit.Box(-1, 1, d)
        self.objective = privfit.CentersObjective(X, k, domain, n_threads=threads)
        self.P = self.objective.snap(rng.uniform(-1, 1, (m, k, d)))
        self.radius = round(0.5 / self.objective.unit**0.5)

    def time_costs(self, *_: Any) -> None:
        self.objective.scores(self.P)

    def time_lloyd(self, *_: Any) -> None:
        self.objective.lloyd(self.P[0])

    def time_residuals(self, *_: Any) -> None:
        self.objective.residuals(self.P[0], self.radius, 2)


class Facilities(Timed):
    """Scores of m sets of k facilities, and all swaps of one set."""

    param_names = ("n", "k", "m", "threads")
    params = ([5_000, 20_000], [4, 16, 64], [100, 400], [1, 2])

    def setup(self, n: int, k: int, m: int, threads: int) -> None:
        if (n > 5_000) + (k > 4) + (m > 100) + (threads > 1) > 1:
            raise NotImplementedError
        rng = np.random.default_rng(1)
        X, places = rng.uniform(0, 1, (n, 8)), rng.uniform(0, 1, (500, 8))
        self.objective = privfit.FacilityObjective(
            X, places, (0, 4), privfit.Box(0, 1, 8), n_threads=threads
        )
        self.sets = np.stack([rng.choice(500, k, replace=False) for _ in range(m)])
        self.view = self.objective.at(self.sets[0])

    def time_scores(self, *_: Any) -> None:
        self.objective.scores(self.sets)

    def time_all_swaps(self, *_: Any) -> None:
        self.view.all_scores()


class Draws(Timed):
    """Selection and noise: m scores or draws."""

    param_names = ("m",)
    params = ([200, 10_000, 1_000_000],)

    def setup(self, m: int) -> None:
        self.scores = np.random.default_rng(7).normal(0, 1000, m).astype(np.int64)
        self.top, self.noise = privfit.TopK(10, 0.5, 100), privfit.DiscreteLaplace(1.0, 1)

    def time_top_10(self, m: int) -> None:
        self.top(self.scores)

    def time_laplace(self, m: int) -> None:
        self.noise(self.scores)
