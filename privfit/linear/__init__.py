"""Fitting linear models: noisy descents, perturbed convex problems, the functional mechanism."""

from privfit.base.cautions import old_names
from privfit.linear.additive import Additive
from privfit.linear.coding import Coding
from privfit.linear.descent import Gradient
from privfit.linear.evidence import Evidence
from privfit.linear.frank_wolfe import FrankWolfe
from privfit.linear.functional import Functional
from privfit.linear.losses import SmoothLoss
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.linear.permuted_sgd import PermutedSGD
from privfit.linear.perturbation import OutputPerturbation, PrivateSVM
from privfit.linear.select_refine import SelectRefine
from privfit.linear.shapes import Shape
from privfit.linear.summary import Intervals, Outline, Summary, Weight

__all__ = [
    "Additive",
    "Coding",
    "Evidence",
    "FrankWolfe",
    "Functional",
    "Gradient",
    "Intervals",
    "ObjectivePerturbation",
    "Outline",
    "OutputPerturbation",
    "PermutedSGD",
    "PrivateSVM",
    "SelectRefine",
    "Shape",
    "SmoothLoss",
    "Summary",
    "Weight",
]

__getattr__ = old_names(__name__, {"LinearHybrid": "SelectRefine"})
