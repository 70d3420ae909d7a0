"""Small tables of points, and a grant that is watched: for tests of the parts of clusterings."""

from __future__ import annotations

import itertools

import numpy as np

from privfit import Box, Budget, CentersObjective, DiscreteGaussian
from privfit._kernels.random import BitSource
from privfit.domains import Grid
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import Exponential
from privfit.privacy.neighbours import Neighbours
from privfit.runs.run import Run
from privfit.runs.spaces import Reals

COARSE = Box(-1, 1, 2, grid=Grid(a=1, b=7, c=0))
RECORDS = np.array(list(itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=2)))


class Watched:
    """A grant that keeps mechanisms and values; selections are the first, others exact."""

    events = ()

    def __init__(self, budget=None):
        self.budget, self.seen = budget or Budget(1.0, 1e-6), []

    def plan(self, *events):
        pass

    def release(self, mechanism, value, rng):
        self.seen.append((mechanism, np.array(value)))
        return 0 if isinstance(mechanism, Exponential) else np.array(value)


def run_of(objective, adjacency, grant=None, size=100, space=None):
    space = space or Reals(-1, 1, (objective.n_clusters, objective.n_features))
    return Run(objective, space, grant or Watched(), BitSource(2), neighbours=Neighbours(adjacency),
               n_public=size)  # fmt: skip


def tables(adjacency, records=RECORDS):
    """Every pair of neighbours with one record beside a common one, and every one more."""
    common = RECORDS[[7]]
    if adjacency == "add_remove":
        return [(common, np.concatenate([common, x[None]])) for x in records]
    pairs = itertools.product(records, repeat=2)
    return [tuple(np.concatenate([common, x[None]]) for x in pair) for pair in pairs]


def worst_gap(adjacency, kind, step):
    """How far a step's one release moves between neighbours, in units of its sensitivity."""
    worst = 0.0
    for pair in tables(adjacency):
        seen = []
        for X in pair:
            run = run_of(CentersObjective(X, 2, COARSE, adjacency=adjacency), adjacency)
            step(run, Event(kind, 0.5))
            seen += run._grant.seen
        (mechanism, first), (other, second) = seen
        assert mechanism == other
        assert isinstance(mechanism, DiscreteGaussian) == (kind == "gaussian")
        gap = np.linalg.norm((first - second).astype(float), ord=2 if kind == "gaussian" else 1)
        worst = max(worst, gap / mechanism.sensitivity)
    return worst


def blobs(seed, n, d, k, width=0.1):
    coins = np.random.default_rng(seed)
    middles = coins.uniform(-0.8, 0.8, (k, d))
    return np.clip(middles[coins.integers(k, size=n)] + coins.normal(0, width, (n, d)), -1, 1)


def cost(X, centers):
    return np.square(X[:, None] - centers).sum(axis=2).min(axis=1).mean()
