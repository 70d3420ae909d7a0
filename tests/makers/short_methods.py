"""Every method of every estimator, by its name, with so few steps that a fit is short."""

from __future__ import annotations

from typing import Any

from privfit import (
    DPSGA,
    EEM,
    Additive,
    Coreset,
    Evidence,
    FrankWolfe,
    Functional,
    Gradient,
    Greedy,
    Gupt,
    Hybrid,
    Lloyd,
    Local,
    Majority,
    ObjectivePerturbation,
    OutputPerturbation,
    PermutedSGD,
    PrivateSVM,
    PrivGene,
    SelectRefine,
    Subsample,
    Swaps,
    Synopsis,
    UniformGrid,
)
from privfit.clustering import CellMedians, Mean, Medians, OverSeeded, Tree

FEW = {"generations": 2, "population": 8, "survivors": 2}
SEARCHES: dict[str, Any] = {
    "eem": EEM(generations=2, population=8),
    "privgene": PrivGene(**FEW),
    "dpsga": DPSGA(**FEW),
}
LINEAR: dict[str, Any] = {
    **SEARCHES,
    "local": Local(generations=3),
    "subsample": Subsample(candidates=30),
    "gradient": Gradient(steps=3),
    "additive": Additive(steps=3),
    "select_refine": SelectRefine(
        select=Local(generations=2), refine=Gradient(steps=2, whiten=True, average=0.0)
    ),
    "frank_wolfe": FrankWolfe(steps=3),
    "sgd": PermutedSGD(passes=1),
    "output": OutputPerturbation(),
    "objective": ObjectivePerturbation(),
    "functional": Functional(),
    "evidence": Evidence(),
    "gupt": Gupt(blocks=4),
    "majority": Majority(),
    "privatesvm": PrivateSVM(),
}
KMEANS: dict[str, Any] = {
    **SEARCHES,
    "local": Local(generations=2),
    "lloyd": Lloyd(steps=2),
    "grid": UniformGrid(cells=16, restarts=1),
    "tree": Tree(restarts=1),
    "hybrid": Hybrid(tree=Tree(restarts=1), lloyd=Lloyd(steps=1, residual=True)),
    "over_seeded": OverSeeded(tree=Tree(restarts=1), steps=1),
    "mean": Mean(steps=2),
    "gupt": Gupt(blocks=4),
}
KMEDIAN: dict[str, Any] = {
    **SEARCHES,
    "synopsis": Synopsis(depth=6),
    "greedy": Greedy(),
    "swaps": Swaps(steps=2),
    "local": Local(generations=2),
    "coreset": Coreset(radii=2),
    "subsample": Subsample(candidates=10),
}
ANYWHERE: dict[str, Any] = {
    "medians": Medians(tree=Tree(restarts=1), steps=1),
    "cell_medians": CellMedians(restarts=1),
    "hybrid": KMEANS["hybrid"],
    "mean": KMEANS["mean"],
}
