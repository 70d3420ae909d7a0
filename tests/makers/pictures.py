"""Released things that can be drawn, and their pictures."""

from __future__ import annotations

import io
from functools import partial

import numpy as np

from privfit import (
    Budget,
    Categorical,
    Event,
    KMeans,
    Ledger,
    LogisticRegression,
    Numeric,
    Release,
    Schema,
    roc_curve,
)
from privfit.report.plotting import (
    draw_budget,
    draw_centers,
    draw_clusters,
    draw_composition,
    draw_roc,
    draw_shapes,
    draw_sweep,
)
from privfit.report.sweeps import Sweep, Trial

COINS = np.random.default_rng(11)
POINTS = np.clip(COINS.choice([-0.6, 0.1, 0.7], (900, 1)) + COINS.normal(0, 0.05, (900, 2)), -1, 1)


def sweep_of(name: str = "A", shift: float = 0.0, seeds: int = 3, **changes) -> Sweep:
    epsilons = (0.1, 1.0, 10.0)
    trials = [
        Trial(setting, seed, shift + level + 0.01 * seed)
        for seed in range(seeds)
        for setting, level in zip((*epsilons, "not private", "larger class"),
                                  (0.6, 0.7, 0.8, 0.85, 0.55), strict=True)
    ]  # fmt: skip
    fields = {"measure": "accuracy", "delta": 1e-6, **changes}
    return Sweep(name=name, settings="", test_size=0.2, n_records=50, seeds=seeds,
                 epsilons=epsilons, references=("not private", "larger class"),
                 trials=tuple(trials), **fields)  # fmt: skip


def curve_of(epsilon: float = 1.0):
    y = np.arange(400) % 2
    score = np.clip(np.random.default_rng(3).normal(0.4 + 0.2 * y, 0.15), 0, 1)
    return roc_curve(y, score, epsilon, random_state=1)


def release_of(*events: Event, epsilon: float = 1.0, delta: float = 1e-6) -> Release:
    return Release("fit", epsilon, delta, "replace", events)


def clusters_of(k: int = 3, **options) -> KMeans:
    return KMeans(k, **{"epsilon": 5.0, "domain": (-1, 1), "random_state": 0, **options}).fit(
        POINTS
    )


SHAPED = Schema(
    {
        "height": Numeric(100, 200),
        "age": Numeric(17, 90, bins=8),
        "hours": Numeric(bins=[20, 35, 41], missing=True),
        "gain": Numeric(0, 99_999, bins=[1, 1000, 5000]),
        "debt": Numeric(scale="log"),
        "pay": Numeric(bins=[1e3, 1e4], scale="log"),
        "sex": Categorical(["f", "m"], other=True),
        "job": Categorical([f"job {j}" for j in range(20)]),
    }
)


class WithoutErrors(LogisticRegression):
    """A model that does not know the noise of its weights."""

    def weight_errors(self, directions):
        return None


class WithErrors(LogisticRegression):
    """A model that knows the noise of its weights: a deviation of 0.2 each."""

    def weight_errors(self, directions):
        one = 0.2 * np.linalg.norm(directions, axis=1)
        return one if len(self.coef_) == 1 else np.column_stack([one] * len(self.coef_))


def shapes_of(classes: int = 2, errors: bool = False, kind: type = WithoutErrors):
    """A linear model whose weights all differ."""
    coins = np.random.default_rng(6)
    table = {name: coins.uniform(17, 200, 300) for name in ("height", "age", "hours", "gain")}
    table |= {"debt": table["age"], "pay": table["gain"], "sex": coins.choice(["f", "m"], 300),
              "job": [f"job {j}" for j in coins.integers(0, 20, 300)]}  # fmt: skip
    made = WithErrors if errors else kind
    model = made(1.0, 1e-6, domain=SHAPED, classes=list(range(classes)), coding="declared",
                 random_state=0)  # fmt: skip
    model.fit(table, np.arange(300) % classes)
    model.coef_ = coins.normal(0, 1, model.coef_.shape)
    return model


def png_of(ax, **options) -> bytes:
    drawn = io.BytesIO()
    ax.figure.savefig(drawn, format="png", **options)
    return drawn.getvalue()


def pictures() -> dict:
    ledger = Ledger(1.0)
    with ledger.group("train"):
        ledger.reserve(0.5, name="fit")
    return {
        "sweep": partial(draw_sweep, sweep_of()),
        "roc": partial(draw_roc, curve_of()),
        "clusters": partial(draw_clusters, clusters_of(solver="lloyd")),
        "centers": partial(draw_centers, clusters_of(solver="lloyd")),
        "shapes": partial(draw_shapes, shapes_of(errors=True)),
        "ledger": partial(draw_budget, ledger),
        "run": partial(draw_budget, release_of(Event("selection", 0.1, 40))),
        "composition": partial(
            draw_composition,
            Event("selection", 0.1, 40),
            Budget(1.0, 1e-6),
        ),
    }
