"""The experiment of Lee and Kifer, Post-processing for iterative differentially private algorithms.

python -m bench papers --filter lee_kifer --list

Columns are scaled to [-1, 1] and records projected to the unit L1 ball; one record is added or
removed between neighbours; budgets are pure. A seed sets the starts, the noise and the chain, so
that noisy Lloyd and what is made of its release are compared on one and the same release.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from bench.accuracy import clusters
from bench.measure import quiet
from bench.papers import Claim, Curve, Figure, Panel, level
from privfit import (
    CentersObjective,
    Hybrid,
    KMeans,
    L1Ball,
    Lloyd,
    UniformGrid,
)
from privfit.clustering.postprocess import LloydTrace, mcmc

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
CLUSTERS = clusters.CLUSTERS
NAMES = {"s1": "S1", "gowalla_pois": "Gowalla (places)", "image_house_rgb": "Image",
         "adult": "Adult, 6 numbers", "lifesci": "Lifesci"}  # fmt: skip


@cache
def table(name: str) -> Any:
    """Records in [-1, 1]; a fit projects them."""
    return clusters.records(name)


@cache
def objective(name: str) -> CentersObjective:
    """The records in the L1 ball, to measure centres by."""
    return CentersObjective(table(name), CLUSTERS[name], L1Ball(1.0), n_threads=1)


def squares(name: str, centers: Any) -> float:
    """The sum over records, in the ball, of squared distances to the nearest centre."""
    target = objective(name)
    return -float(target.scores(target.snap(centers[None]))[0]) * target.unit


def fitted(name: str, solver: Any, postprocess: str | None, epsilon: float, seed: int) -> KMeans:
    X = table(name)
    with quiet():  # of seeds
        model = KMeans(CLUSTERS[name], epsilon, domain=L1Ball(1.0), solver=solver,
                       postprocess=postprocess, adjacency="add_remove", n_public=len(X),
                       n_threads=1, random_state=seed)  # fmt: skip
        return model.fit(X)


def cost(name: str, solver: Any, postprocess: str | None, epsilon: float, seed: int) -> float:
    return squares(name, fitted(name, solver, postprocess, epsilon, seed).cluster_centers_)


def cost_of_our_chain(name: str, epsilon: float, seed: int) -> float:
    """The chain that also proposes from the data-free starts."""
    release = fitted(name, Lloyd(paper=True), None, epsilon, seed).release_
    trace = LloydTrace.from_release(release)
    return squares(name, mcmc(trace, CLUSTERS[name], rng=seed).centers)


def not_private(name: str, seed: int) -> float:
    from sklearn.cluster import KMeans as Plain

    target = objective(name)
    X = target.decoded()[0]
    found = Plain(CLUSTERS[name], n_init=2, random_state=seed).fit(X)
    return squares(name, found.cluster_centers_)


def panel(name: str) -> Panel:
    head = "`KMeans(k, epsilon, domain=L1Ball(1.0), adjacency='add_remove', n_public=n, solver="
    lloyd = Lloyd(paper=True)
    curves = {
        "noisy Lloyd": Curve(partial(cost, name, lloyd, None), f"{head}Lloyd(paper=True))`"),
        "MCMC": Curve(partial(cost, name, lloyd, "mcmc"),
                      f"{head}Lloyd(paper=True), postprocess='mcmc')`"),
        "EUGkM": Curve(partial(cost, name, UniformGrid(paper=True), None),
                       f"{head}UniformGrid(paper=True))`"),
        "hybrid": Curve(partial(cost, name, Hybrid(paper=True), None),
                        f"{head}Hybrid(paper=True))`"),
        "not private": level(partial(not_private, name), "scikit-learn's `KMeans(n_init=2)`"),
        "extra: starts propose too": Curve(
            partial(cost_of_our_chain, name),
            "as noisy Lloyd, then `mcmc(LloydTrace.from_release(model.release_), n_clusters)`"),
        "extra: cooled chain": Curve(partial(cost, name, lloyd, "anneal"),
                                     f"{head}Lloyd(paper=True), postprocess='anneal')`"),
    }  # fmt: skip
    where = NAMES[name]
    claims = [Claim(f"the chain improves on noisy Lloyd ({where})", "MCMC", "noisy Lloyd")]
    if name == "lifesci":  # published as the exception
        claims = [Claim(f"the chain does not improve on noisy Lloyd ({where})", "noisy Lloyd",
                        "MCMC")]  # fmt: skip
    title = f"{where}, k = {CLUSTERS[name]}"
    return Panel(title, "within-cluster sum of squares", "epsilon", EPSILONS, curves, claims,
                 log="xy")  # fmt: skip


def figure_1() -> Figure:
    return Figure("Within-cluster sum of squares by epsilon: noisy Lloyd and its post-processing",
                  [panel(name) for name in CLUSTERS], seeds=12)  # fmt: skip


FIGURES: dict[str, Callable[[], Figure]] = {"1": figure_1}
