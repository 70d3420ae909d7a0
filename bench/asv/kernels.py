"""Kernels over the shapes that decide their time: layout, loss, n, d, m, k and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import privfit
from privfit.clustering.postprocess import LloydTrace, mcmc

DEFAULT = {"layout": "codes", "loss": "logistic", "n": 20_000, "d": 20, "m": 50, "k": 5,
           "threads": 1}  # fmt: skip
LAYOUTS = ["dense", "one-hot", "codes"]
RECORDS = [20_000, 80_000, 320_000]


class _Timed:
    """How long asv looks at each point: about half a second.

    A subclass goes along one axis (`params`) and leaves the other sizes at `DEFAULT`: lines, not
    their product, which would take hours.
    """

    rounds, repeat, sample_time, warmup_time, timeout = 1, (3, 7, 0.4), 0.02, 0.05, 120
    number = 0
    param_names: tuple[str, ...] = ()
    sizes = DEFAULT

    def setup(self, *point: Any) -> None:
        self.build(**{**self.sizes, **dict(zip(self.param_names, point, strict=True))})


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


def _along(kind: type, **axes: list[Any]) -> type:
    """A class of benchmarks along these axes, as asv finds it in this module.

    Threads are shown what is worth sharing: many records.
    """
    last = list(axes)[-1]
    name = f"{kind.__name__.strip('_')}By{last.capitalize()}"
    sizes = {**DEFAULT, "n": RECORDS[1]} if last == "threads" else DEFAULT
    facts = {"param_names": tuple(axes), "params": tuple(axes.values()), "sizes": sizes}
    return type(name, (kind,), {**facts, "__module__": __name__, "__doc__": kind.__doc__})


class _Scores(_Timed):
    """Scores of m linear models."""

    def build(self, layout: str, loss: str, n: int, d: int, m: int, threads: int, **_: Any) -> None:
        self.objective, domain = linear_objective(layout, loss, n, d, threads)
        self.P = domain.candidates(m, np.random.default_rng(2))

    def time_scores(self, *_: Any) -> None:
        self.objective.scores(self.P)


ScoresByN = _along(_Scores, layout=LAYOUTS, n=RECORDS)
ScoresByD = _along(_Scores, layout=LAYOUTS, d=[20, 80, 320])
ScoresByM = _along(_Scores, layout=LAYOUTS, m=[50, 200, 800])
ScoresByThreads = _along(_Scores, layout=LAYOUTS, threads=[1, 2])
ScoresByLoss = _along(_Scores, layout=LAYOUTS, loss=["logistic", "hinge", "zero_one"])


class _Gradients(_Timed):
    """The clipped gradient, and the moves of one parent."""

    def build(self, layout: str, loss: str, n: int, d: int, threads: int, **_: Any) -> None:
        self.objective, domain = linear_objective(layout, loss, n, d, threads)
        self.w = domain.candidates(1, np.random.default_rng(2))[0]
        self.coords = np.arange(100) % len(self.w)
        self.steps = np.full(100, 0.25)

    def time_gradient(self, *_: Any) -> None:
        self.objective.gradient(self.w, 0.5)

    def time_moves(self, *_: Any) -> None:
        self.objective.at(self.w).scores(self.coords, self.steps)


GradientsByN = _along(_Gradients, layout=LAYOUTS, n=RECORDS)
GradientsByD = _along(_Gradients, layout=LAYOUTS, d=[20, 80, 320])
GradientsByThreads = _along(_Gradients, layout=LAYOUTS, threads=[1, 2])


class _Centers(_Timed):
    """Costs of m sets of k centres, one step of Lloyd, and residuals."""

    def build(self, n: int, d: int, k: int, m: int, threads: int, **_: Any) -> None:
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


CentersByN = _along(_Centers, n=RECORDS)
CentersByD = _along(_Centers, d=[4, 16, 64])
CentersByK = _along(_Centers, k=[5, 20, 80])
CentersByThreads = _along(_Centers, threads=[1, 2])


class _Facilities(_Timed):
    """Records and public facilities, and m sets of k of them."""

    def build(self, n: int, k: int, m: int, threads: int, **_: Any) -> None:
        rng = np.random.default_rng(1)
        X, places = rng.uniform(0, 1, (n, 8)), rng.uniform(0, 1, (500, 8))
        self.objective = privfit.FacilityObjective(
            X, places, (0, 4), privfit.Box(0, 1, 8), n_threads=threads
        )
        self.sets = np.stack([rng.choice(500, k, replace=False) for _ in range(m)])
        self.view = self.objective.at(self.sets[0])


class _Sets(_Facilities):
    """Scores of sets of facilities."""

    def time_scores(self, *_: Any) -> None:
        self.objective.scores(self.sets)


class _Swaps(_Facilities):
    """All swaps of one set."""

    def time_all_swaps(self, *_: Any) -> None:
        self.view.all_scores()


SetsByN, SwapsByN = (_along(kind, n=[5_000, 20_000, 80_000]) for kind in (_Sets, _Swaps))
SetsByK, SwapsByK = (_along(kind, k=[4, 16, 64]) for kind in (_Sets, _Swaps))
SetsByThreads, SwapsByThreads = (_along(kind, threads=[1, 2]) for kind in (_Sets, _Swaps))
SetsByM = _along(_Sets, m=[50, 200, 800])


class _Draws(_Timed):
    """Selection and noise: m scores or draws."""

    def build(self, m: int, **_: Any) -> None:
        self.scores = np.random.default_rng(7).normal(0, 1000, m).astype(np.int64)
        self.top, self.noise = privfit.TopK(10, 0.5, 100), privfit.DiscreteLaplace(1.0, 1)

    def time_top_10(self, m: int) -> None:
        self.top(self.scores)

    def time_laplace(self, m: int) -> None:
        self.noise(self.scores)


DrawsByM = _along(_Draws, m=[200, 10_000, 1_000_000])


class Chain(_Timed):
    """A million steps of the chain over synthetic records that fit a release of noisy Lloyd."""

    param_names = ("k",)
    params = ([5, 15],)

    def build(self, k: int, **_: Any) -> None:
        X = np.random.default_rng(1).uniform(-0.1, 0.1, (1000, 2))
        settings = {"solver": privfit.Lloyd(paper=True), "n_public": 1000, "random_state": 0}
        model = privfit.KMeans(
            k, 0.5, domain=privfit.L1Ball(1.0), adjacency="add_remove", **settings
        )
        self.trace = LloydTrace.from_release(model.fit(X).release_)

    def time_walk(self, k: int) -> None:
        mcmc(self.trace, k, steps=1_000_000, n_records=1000, rng=1, n_init=1)
