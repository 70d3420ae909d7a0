"""Fits of linear models: noisy descents, perturbed convex problems, the functional mechanism."""

from privfit.linear.descent import FrankWolfe, Gradient, PermutedSGD
from privfit.linear.functional import Functional
from privfit.linear.losses import SmoothLoss
from privfit.linear.perturbation import ObjectivePerturbation, OutputPerturbation, PrivateSVM
from privfit.linear.select_refine import LinearHybrid

__all__ = [
    "FrankWolfe",
    "Functional",
    "Gradient",
    "LinearHybrid",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PermutedSGD",
    "PrivateSVM",
    "SmoothLoss",
]
