"""Fit models to sensitive records under differential privacy, on CPUs, fast."""

import typing as _typing

from privfit.accounting import Event, calibrate, compose, total
from privfit.aggregate import Gupt, Majority
from privfit.backends import Stream
from privfit.budget_file import open_ledger
from privfit.cautions import (
    PrivacyLeakWarning,
    ScoreWarning,
    SeedWarning,
    UnwiseBudgetWarning,
)
from privfit.checkpoint import Checkpoint
from privfit.descent import FrankWolfe, Gradient, PermutedSGD
from privfit.domains import Box, Categorical, Domain, Grid, L1Ball, L2Ball, Numeric, Schema
from privfit.dpsga import DPSGA
from privfit.features import ClusteredCounts, NoisyScores, Peeling, SparseVector
from privfit.functional import Functional
from privfit.hybrid import LinearHybrid
from privfit.kmeans import Hybrid, Lloyd, Tree, UniformGrid
from privfit.kmedian import Coreset, Greedy, Gupta, Synopsis
from privfit.ledger import Budget, BudgetError, Ledger, Release
from privfit.losses import SmoothLoss
from privfit.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from privfit.model import load, save
from privfit.neighbours import Neighbours
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)
from privfit.paths import Generation, Path
from privfit.perturbation import ObjectivePerturbation, OutputPerturbation, PrivateSVM
from privfit.privgene import EEM, Local, PrivGene
from privfit.roc import (
    ConfusionMatrix,
    RocCurve,
    accuracy_score,
    confusion_matrix,
    roc_auc_score,
    roc_curve,
)
from privfit.solvers import search
from privfit.spaces import Bits, Reals, Subsets
from privfit.subsample import Subsample
from privfit.sweeps import Sweep, sweep

if _typing.TYPE_CHECKING:
    from privfit.estimators import (
        BernoulliNB,
        HashWords,
        KMeans,
        KMedian,
        LinearSVC,
        LogisticRegression,
        SelectFeatures,
    )

__version__ = "0.1.0"

__all__ = [
    "DPSGA",
    "EEM",
    "AboveThreshold",
    "BernoulliNB",
    "Bits",
    "Box",
    "Budget",
    "BudgetError",
    "Categorical",
    "CentersObjective",
    "Checkpoint",
    "ClusteredCounts",
    "ConfusionMatrix",
    "Coreset",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Domain",
    "Event",
    "Exponential",
    "FacilityObjective",
    "FrankWolfe",
    "Functional",
    "GammaVector",
    "Generation",
    "Gradient",
    "Greedy",
    "Grid",
    "Gupt",
    "Gupta",
    "HashWords",
    "Hybrid",
    "KMeans",
    "KMedian",
    "L1Ball",
    "L2Ball",
    "Ledger",
    "LinearHybrid",
    "LinearObjective",
    "LinearSVC",
    "Lloyd",
    "Local",
    "LogisticRegression",
    "Majority",
    "Neighbours",
    "NoisyMax",
    "NoisyScores",
    "Numeric",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Path",
    "Peeling",
    "PermuteAndFlip",
    "PermutedSGD",
    "PrivGene",
    "PrivacyLeakWarning",
    "PrivateSVM",
    "Reals",
    "RecordObjective",
    "Release",
    "RocCurve",
    "Schema",
    "ScoreWarning",
    "SeedWarning",
    "SelectFeatures",
    "SmoothLoss",
    "SparseVector",
    "Stream",
    "Subsample",
    "Subsets",
    "Sweep",
    "Synopsis",
    "TopK",
    "Tree",
    "UniformGrid",
    "UnwiseBudgetWarning",
    "accuracy_score",
    "calibrate",
    "compose",
    "confusion_matrix",
    "load",
    "open_ledger",
    "roc_auc_score",
    "roc_curve",
    "save",
    "search",
    "sweep",
    "total",
]

_ESTIMATORS = (
    "BernoulliNB",
    "HashWords",
    "KMeans",
    "KMedian",
    "LinearSVC",
    "LogisticRegression",
    "SelectFeatures",
)


def __getattr__(name: str) -> _typing.Any:
    """Estimators load scikit-learn, so they load when first used."""
    if name in _ESTIMATORS:
        from privfit import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'privfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ESTIMATORS})
