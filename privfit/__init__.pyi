"""The public names of privfit for type checkers and editors; `__init__.py` imports them lazily."""

from privfit import datasets as datasets
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
from privfit.clustering.choosing import ChosenK, choose_k
from privfit.clustering.grids import UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.kmedian import Coreset, Greedy, Swaps, Synopsis
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.postprocess import mcmc
from privfit.clustering.trace import LloydTrace
from privfit.domains import Box, Categorical, Domain, L1Ball, L2Ball, Numeric, Schema
from privfit.estimators import (
    BernoulliNB,
    HashWords,
    KMeans,
    KMedian,
    LinearSVC,
    LogisticRegression,
    SelectFeatures,
)
from privfit.evaluation.model_choice import Chosen, choose
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
from privfit.report.versions import show_versions
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

__all__ = [
    "DPSGA",
    "EEM",
    "AboveThreshold",
    "Additive",
    "AskTell",
    "BernoulliNB",
    "Bits",
    "Box",
    "Budget",
    "BudgetError",
    "Categorical",
    "CentersObjective",
    "Checkpoint",
    "Chosen",
    "ChosenK",
    "ClusterError",
    "ClusteredCounts",
    "Coding",
    "ConfusionMatrix",
    "Coreset",
    "DeclarationError",
    "DeclarationTypeError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Domain",
    "Event",
    "Evidence",
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
    "choose",
    "choose_k",
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
    "show_versions",
    "sweep",
    "to_dp_accounting",
    "total",
]
