"""Fit models to sensitive records under differential privacy, on CPUs, fast.

Importing privfit checks its kernels and loads little else: a public name is imported from its room
when it is first used. `__init__.pyi` shows the same names to type checkers and editors.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from privfit import _kernels as _kernels  # those built from other sources are refused here
from privfit.base.version import __version__ as __version__

# Where public names are: modules, and what they have to offer.
_NAMES = {
    "base.cautions": "PrivacyLeakWarning ScoreWarning SeedWarning UnwiseBudgetWarning",
    "base.errors": "BudgetError ClusterError DeclarationError DeclarationTypeError FileAccessError "
    "FileError InputError InputTypeError MissingExtraError PrivfitError SolverError",
    "clustering.choosing": "ChosenK choose_k",
    "clustering.grids": "UniformGrid",
    "clustering.hybrid": "Hybrid",
    "clustering.kmedian": "Coreset Greedy Swaps Synopsis",
    "clustering.lloyd": "Lloyd",
    "clustering.postprocess": "mcmc",
    "clustering.trace": "LloydTrace",
    "domains": "Box Categorical Domain L1Ball L2Ball Numeric Schema",
    "estimators": "BernoulliNB HashWords KMeans KMedian LinearSVC LogisticRegression "
    "SelectFeatures",
    "evaluation.model_choice": "Chosen choose",
    "evaluation.roc": "ConfusionMatrix RocCurve accuracy_score confusion_matrix roc_auc_score "
    "roc_curve",
    "evaluation.thresholds": "best_threshold",
    "features.selection": "ClusteredCounts NoisyScores Peeling SparseVector",
    "linear": "Additive Coding Evidence FrankWolfe Functional Gradient "
    "ObjectivePerturbation OutputPerturbation PermutedSGD PrivateSVM SelectRefine SmoothLoss",
    "models.model": "load save",
    "objectives": "CentersObjective FacilityObjective LinearObjective RecordObjective",
    "privacy": "AboveThreshold Budget Checkpoint DiscreteGaussian DiscreteLaplace Event "
    "Exponential GammaVector Ledger Neighbours NoisyMax PermuteAndFlip Release TopK calibrate "
    "compose delta_at from_dp_accounting open_ledger plan to_dp_accounting total",
    "records": "Stream",
    "report.sweeps": "SearchProblem Sweep Sweeps sweep",
    "report.versions": "show_versions",
    "runs": "Bits Integers Mixed Objective Permutations Reals Solver Space Subsets",
    "runs.schemas": "learn_schema",
    "searches": "DPSGA EEM AskTell Found Gupt Local Majority PrivGene Subsample aggregate search",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
_ROOMS = frozenset({
    "audit", "base", "clustering", "commands", "datasets", "domains", "estimators", "evaluation",
    "features", "linear", "models", "objectives", "privacy", "records", "report", "runs",
    "searches",
})  # fmt: skip

# Names that have left for their rooms: here they warn for one version.
_MOVED = {
    "Generation": "privfit.runs",
    "Grid": "privfit.domains",
    "Path": "privfit.runs",
    "Tree": "privfit.clustering",
}
# Classes that have another name now: the old one warns for one version.
_RENAMED = {"Gupta": "Swaps", "LinearHybrid": "SelectRefine"}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> _Any:
    """Import a public name or a room when it is first used; old names warn."""
    if name in _HOMES:
        return getattr(_import_module(f"privfit.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return _import_module(f"privfit.{name}")
    if name in _MOVED:
        import warnings

        room = _MOVED[name]
        warnings.warn(
            f"privfit.{name} is {room}.{name} now; import it from there",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(_import_module(room), name)
    from privfit.base.cautions import old_names

    return old_names(__name__, _RENAMED)(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
