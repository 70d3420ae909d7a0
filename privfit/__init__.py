"""Fit models to sensitive records under differential privacy, on CPUs, fast."""

import typing as _typing

from privfit.base.cautions import (
    PrivacyLeakWarning,
    ScoreWarning,
    SeedWarning,
    UnwiseBudgetWarning,
)
from privfit.base.errors import (
    BudgetError,
    ClusterError,
    DeclarationError,
    DeclarationTypeError,
    FileAccessError,
    FileError,
    InputError,
    InputTypeError,
    MissingExtraError,
    PrivfitError,
    SolverError,
)
from privfit.base.version import __version__ as __version__
from privfit.clustering.grids import UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.kmedian import Coreset, Greedy, Swaps, Synopsis
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.postprocess import mcmc
from privfit.clustering.trace import LloydTrace
from privfit.domains import Box, Categorical, Domain, L1Ball, L2Ball, Numeric, Schema
from privfit.evaluation.roc import (
    ConfusionMatrix,
    RocCurve,
    accuracy_score,
    confusion_matrix,
    roc_auc_score,
    roc_curve,
)
from privfit.evaluation.thresholds import best_threshold
from privfit.features.selection import ClusteredCounts, NoisyScores, Peeling, SparseVector
from privfit.linear.descent import Gradient
from privfit.linear.frank_wolfe import FrankWolfe
from privfit.linear.functional import Functional
from privfit.linear.losses import SmoothLoss
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.linear.permuted_sgd import PermutedSGD
from privfit.linear.perturbation import OutputPerturbation, PrivateSVM
from privfit.linear.select_refine import SelectRefine
from privfit.models.model import load, save
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)
from privfit.privacy.accounting import Event, calibrate, compose, delta_at, total
from privfit.privacy.budget_file import open_ledger
from privfit.privacy.checkpoint import Checkpoint
from privfit.privacy.dp_events import from_dp_accounting, to_dp_accounting
from privfit.privacy.ledger import Budget, Ledger, Release
from privfit.privacy.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.planning import plan
from privfit.records import Stream
from privfit.report.sweeps import SearchProblem, Sweep, Sweeps, sweep
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.schemas import learn_schema
from privfit.runs.spaces import Bits, Integers, Mixed, Permutations, Reals, Subsets
from privfit.searches.ask_tell import AskTell
from privfit.searches.dpsga import DPSGA
from privfit.searches.majority import Majority
from privfit.searches.privgene import EEM, Local, PrivGene
from privfit.searches.sample_aggregate import Gupt, aggregate
from privfit.searches.solvers import Found, search
from privfit.searches.subsample import Subsample

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

__all__ = [
    "DPSGA",
    "EEM",
    "AboveThreshold",
    "AskTell",
    "BernoulliNB",
    "Bits",
    "Box",
    "Budget",
    "BudgetError",
    "Categorical",
    "CentersObjective",
    "Checkpoint",
    "ClusterError",
    "ClusteredCounts",
    "ConfusionMatrix",
    "Coreset",
    "DeclarationError",
    "DeclarationTypeError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Domain",
    "Event",
    "Exponential",
    "FacilityObjective",
    "FileAccessError",
    "FileError",
    "Found",
    "FrankWolfe",
    "Functional",
    "GammaVector",
    "Gradient",
    "Greedy",
    "Gupt",
    "HashWords",
    "Hybrid",
    "InputError",
    "InputTypeError",
    "Integers",
    "KMeans",
    "KMedian",
    "L1Ball",
    "L2Ball",
    "Ledger",
    "LinearObjective",
    "LinearSVC",
    "Lloyd",
    "LloydTrace",
    "Local",
    "LogisticRegression",
    "Majority",
    "MissingExtraError",
    "Mixed",
    "Neighbours",
    "NoisyMax",
    "NoisyScores",
    "Numeric",
    "Objective",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Peeling",
    "Permutations",
    "PermuteAndFlip",
    "PermutedSGD",
    "PrivGene",
    "PrivacyLeakWarning",
    "PrivateSVM",
    "PrivfitError",
    "Reals",
    "RecordObjective",
    "Release",
    "RocCurve",
    "Schema",
    "ScoreWarning",
    "SearchProblem",
    "SeedWarning",
    "SelectFeatures",
    "SelectRefine",
    "SmoothLoss",
    "Solver",
    "SolverError",
    "Space",
    "SparseVector",
    "Stream",
    "Subsample",
    "Subsets",
    "Swaps",
    "Sweep",
    "Sweeps",
    "Synopsis",
    "TopK",
    "UniformGrid",
    "UnwiseBudgetWarning",
    "accuracy_score",
    "aggregate",
    "best_threshold",
    "calibrate",
    "compose",
    "confusion_matrix",
    "delta_at",
    "from_dp_accounting",
    "learn_schema",
    "load",
    "mcmc",
    "open_ledger",
    "plan",
    "roc_auc_score",
    "roc_curve",
    "save",
    "search",
    "sweep",
    "to_dp_accounting",
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


# Names that have left for their rooms: here they warn for one version.
_MOVED = {
    "Generation": "privfit.runs",
    "Grid": "privfit.domains",
    "Path": "privfit.runs",
    "Tree": "privfit.clustering",
}
# Classes that have another name now: the old one warns for one version.
_RENAMED = {"Gupta": "Swaps", "LinearHybrid": "SelectRefine"}


def __getattr__(name: str) -> _typing.Any:
    """Estimators load scikit-learn, so they load when first used; so do data sets."""
    if name == "datasets":
        import importlib

        return importlib.import_module("privfit.datasets")
    if name in _ESTIMATORS:
        from privfit import estimators

        return getattr(estimators, name)
    if name in _MOVED:
        import importlib
        import warnings

        room = _MOVED[name]
        warnings.warn(
            f"privfit.{name} is {room}.{name} now; import it from there",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(room), name)
    from privfit.base.cautions import old_names

    return old_names(__name__, _RENAMED)(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ESTIMATORS, "datasets"})
