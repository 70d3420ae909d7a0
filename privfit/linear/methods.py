"""The solvers of linear models by name: searches, descents, perturbed convex fits and others."""

from __future__ import annotations

from privfit.linear.additive import Additive
from privfit.linear.descent import Gradient
from privfit.linear.evidence import Evidence
from privfit.linear.frank_wolfe import FrankWolfe
from privfit.linear.functional import Functional
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.linear.permuted_sgd import PermutedSGD
from privfit.linear.perturbation import OutputPerturbation, PrivateSVM
from privfit.linear.select_refine import SelectRefine
from privfit.runs.settings import Settings
from privfit.searches.majority import Majority
from privfit.searches.sample_aggregate import Gupt
from privfit.searches.solvers import SOLVERS

__all__ = ["METHODS", "RENAMED"]

METHODS: dict[str, type[Settings]] = {
    **SOLVERS,
    "gradient": Gradient,
    "additive": Additive,
    "evidence": Evidence,
    "frank_wolfe": FrankWolfe,
    "sgd": PermutedSGD,
    "select_refine": SelectRefine,
    "output": OutputPerturbation,
    "objective": ObjectivePerturbation,
    "privatesvm": PrivateSVM,
    "functional": Functional,
    "gupt": Gupt,
    "majority": Majority,
}

RENAMED = {"hybrid": "select_refine"}  # names that work for one version, with a warning
