"""Private selection of binary features by their class-conditional counts.

After Stoddard, Chen, Machanavajjhala: *Differentially private algorithms for empirical machine
learning*, 2014, repaired. `scores.py` has the scores and what one record changes.

==================  ==============================================================================
`NoisyScores`       noise on the scores of all features; then the best k, or those over a threshold
`Peeling`           k features, one after the other, by the exponential mechanism
`ClusteredCounts`   noise on all counts; then features are clustered, which costs nothing
`SparseVector`      the first k features that pass a noisy threshold (Lyu, Su, Li 2017)
==================  ==============================================================================

A method is a frozen dataclass that is called with a problem and with what pays for it. `best_of` is
the rule of 'auto'.

Private *threshold testing*, as published, is not here: it noises the threshold alone and compares
true scores with it, so that two features with equal scores always fare alike. D = ten records (1,1)
and one (1,0) has total counts 11 and 10; one more record (0,1) makes them equal. At threshold 10.5
the answer "first, not second" then has probability 1 - exp(-epsilon/2) under D and 0 under its
neighbour: no epsilon holds. Nor is cluster selection as published, which assigns true counts to
noisy centres; here counts get noise first. *NoisyCut* noises scores too, but each of its answers
costs anew and it never stops. `method_of` refuses both by name and says what replaces them.

`published_split` has the budgets and the sampling of the paper's experiments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.features.scores import SCORES, Score, TotalCount
from privfit.privacy.accounting import calibrate
from privfit.privacy.budget_noise import CountNoise
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import AboveThreshold, DiscreteLaplace, TopK
from privfit.privacy.neighbours import ADD_REMOVE, Neighbours
from privfit.records.binary import BinaryRecords, ClassCounts, count_sensitivity
from privfit.runs.door import OURS, name_of, settings_of
from privfit.runs.failures import ResultError
from privfit.runs.fields import apart
from privfit.runs.guests import without_sums
from privfit.runs.means import weighted_means
from privfit.runs.payment import Paid
from privfit.runs.run import coins_of
from privfit.runs.settings import Blank, Parameters
from privfit.searches.solvers import SOLVERS

__all__ = [
    "METHODS",
    "ClusteredCounts",
    "FeatureScores",
    "NoisyScores",
    "Peeling",
    "Selected",
    "SparseVector",
    "Split",
    "best_of",
    "published_split",
]


# ---------------------------------------------------------------------------------------- problems


@dataclass(frozen=True, repr=False)
class FeatureScores:
    """Records, the score of their features, and what is public about both.

    Parameters
    ----------
    records : BinaryRecords
        Two classes; one is enough for the total count.
    criterion : str
        A key of `SCORES`.
    max_ones : int
        s: records with more ones are reduced to a sample when they are counted.
    bound : int, optional
        The number of records if they are replaced; else a public bound of it, if there is one.
    """

    records: BinaryRecords
    criterion: str
    max_ones: int
    neighbours: Neighbours
    bound: int | None = None

    def __post_init__(self) -> None:
        if self.criterion not in SCORES:
            raise DeclarationError(
                f"criterion ({self.criterion!r}) must be one of {', '.join(SCORES)}; pass one of "
                "them"
            )
        if self.criterion != TotalCount.name and self.records.n_classes != 2:
            raise DeclarationError(
                f"criterion ({self.criterion!r}) must be 'total_count' for other than two classes; "
                "pass that, or one class against the rest as labels"
            )

    @property
    def d(self) -> int:
        """How many features there are."""
        return self.records.n_features

    @property
    def how(self) -> Score:
        """The score."""
        return SCORES[self.criterion]

    @property
    def sensitivity(self) -> int:
        """S."""
        return self.how.sensitivity(self.neighbours, self.bound)

    @property
    def range(self) -> int:
        """R."""
        return self.how.range(self.neighbours, self.bound)

    def noise(self, budget: Budget) -> CountNoise:
        """Of one release of the score's statistic with this budget."""
        return CountNoise.of(budget, *self.how.spread(self.max_ones, self.d, self.neighbours))

    def unread(self) -> FeatureScores:
        """The same without records, for code of users that is called before the charge.

        Returns
        -------
        FeatureScores
            What is public about the records: their features and classes, and the bound.
        """
        return replace(self, records=replace(self.records, sums=without_sums(self.records.sums)))

    def counts(self, source: BitSource) -> ClassCounts:
        """Exact counts of the records, each reduced to at most s ones by fresh coins."""
        return self.records.at_most(self.max_ones, source.bits(64)).counts()

    def scores(self, source: BitSource) -> Integers:
        """int64 (d,): exact scores."""
        return self.how.integers(self.counts(source), self.bound)


@dataclass(frozen=True, eq=False)
class Selected:
    """Released: the chosen features, best first where the method knows, and its noisy scores."""

    features: Integers
    scores: Floats | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)  # settings as they were used


# ----------------------------------------------------------------------------------------- methods


def check_selected(selected: Any, d: int) -> None:
    """Refuse what is not a selection of different features below d."""
    features = np.asarray(selected.features) if isinstance(selected, Selected) else np.array(None)
    if (
        features.ndim != 1
        or features.dtype.kind not in "iu"
        or not ((0 <= features) & (features < d)).all()
        or len(np.unique(features)) < len(features)
    ):
        raise ResultError(
            f"it returned a value that must be a Selected with different features below {d}; "
            "return Selected(features)"
        )


class SelectionMethod(Parameters):
    """What all methods share: a check of public numbers, and a call that draws.

    A method of one's own inherits from it, as a frozen dataclass. It draws from the scores of all
    features; a solver of a `Run` searches sets of them instead (`sets.py`). Its check gets a
    problem without records, and its notes are not released, since they were made after it looked.
    """

    def check(self, problem: FeatureScores, budget: Budget) -> None:
        """Refuse what a call would refuse, before anything is charged."""
        raise NotImplementedError

    def __call__(self, problem: FeatureScores, paid: Paid) -> Selected:
        """Select features: all that was released."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class NoisyScores(SelectionMethod):
    """Select the k features with the largest noisy scores, or all that reach a threshold.

    Parameters
    ----------
    k : int or None, default=None
        Number of features; either this or a threshold.
    threshold : float or None, default=None
        A public score that selected features reach.
    paper : bool, default=False
        Whether to perturb scores as published: Laplace noise on the scores themselves, of scale
        S(Q) Delta(Q) / epsilon, where one record added changes Delta(Q) scores by up to S(Q): s of
        them for counts, all of them for the purity index and information gain. By default the noise
        of the latter is on the counts, which is far less. A record replaced is one removed and one
        added: twice that.

    See Also
    --------
    SelectFeatures : The estimator that takes these settings.
    Peeling : Less noise if records have many features.

    Notes
    -----
    Released: the noisy scores of all features. Cost: one release, with noise of scale l1 / epsilon,
    or Gaussian noise of l2 / mu.

    References
    ----------
    B. Stoddard, Y. Chen, A. Machanavajjhala, "Differentially private algorithms for empirical
    machine learning", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import NoisyScores, SelectFeatures
    >>> X = np.random.default_rng(0).random((2000, 50)) < 0.1
    >>> y = X[:, 7].astype(int)
    >>> settings = NoisyScores(k=2)
    >>> select = SelectFeatures(1.0, classes=[0, 1], max_ones=5, solver=settings)
    >>> select.fit(X, y).release_.epsilon
    1.0
    """

    k: int | None = None
    threshold: float | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        _check_choice(self.k, self.threshold)

    def check(self, problem: FeatureScores, budget: Budget) -> None:
        """Refuse what a call would refuse, before anything is charged.

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.
        """
        if self.paper:
            published_noise(problem, budget)
        else:
            problem.noise(budget)

    def __call__(self, problem: FeatureScores, paid: Paid) -> Selected:
        """Noise on every feature's statistic; the choice is post-processing."""
        noisy = self._noisy(problem, paid)
        order = np.argsort(-noisy, kind="stable")
        if self.threshold is None:
            return Selected(order[: self.k], noisy)
        return Selected(order[: int((noisy >= self.threshold).sum())], noisy)

    def _noisy(self, problem: FeatureScores, paid: Paid) -> Floats:
        if self.paper:
            mechanism = published_noise(problem, paid.budget)
            paid.plan(mechanism.event)
            drawn = paid.release(mechanism, problem.scores(paid.source))
            return np.asarray(drawn / problem.how.units)
        noise = problem.noise(paid.budget)
        paid.plan(noise.event)
        statistic = problem.how.statistic(problem.counts(paid.source))
        return problem.how.of_noisy(noise.add(statistic, paid.release))


def published_noise(problem: FeatureScores, budget: Budget) -> DiscreteLaplace:
    """What score perturbation adds to every score, in units of a score (Section 3.2)."""
    one = problem.how.sensitivity(ADD_REMOVE, problem.bound)
    changed = min(problem.max_ones, problem.d) if problem.how.is_local else problem.d
    return DiscreteLaplace(budget.epsilon, problem.neighbours.changes * one * changed)


@dataclass(frozen=True, repr=False)
class Peeling(SelectionMethod):
    """Select k features, each by the exponential mechanism among the rest.

    Parameters
    ----------
    k : int
        Number of features.

    See Also
    --------
    SelectFeatures : The estimator that takes these settings.
    NoisyScores : Less noise if records have few features.

    Notes
    -----
    Released: the selected features. Cost: k selections of range R, accounted for together: epsilon
    / k each if delta = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Peeling, SelectFeatures
    >>> X = np.random.default_rng(0).random((2000, 50)) < 0.1
    >>> y = X[:, 7].astype(int)
    >>> settings = Peeling(k=2)
    >>> select = SelectFeatures(1.0, classes=[0, 1], max_ones=5, solver=settings)
    >>> select.fit(X, y).release_.epsilon
    1.0
    """

    k: int

    def __post_init__(self) -> None:
        _check_k(self.k)

    def mechanism(self, problem: FeatureScores, budget: Budget) -> TopK:
        """The mechanism: k selections that cost the budget.

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.

        Returns
        -------
        TopK
            The mechanism.
        """
        k = min(self.k, problem.d)
        eps_s = calibrate(k, epsilon=budget.epsilon, delta=budget.delta)
        return TopK(k, eps_s, problem.range)

    def check(self, problem: FeatureScores, budget: Budget) -> None:
        """Refuse what a call would refuse, before anything is charged.

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.
        """
        self.mechanism(problem, budget)

    def __call__(self, problem: FeatureScores, paid: Paid) -> Selected:
        """Select k times without replacement."""
        mechanism = self.mechanism(problem, paid.budget)
        paid.plan(mechanism.event)
        return Selected(paid.release(mechanism, problem.scores(paid.source)))


@dataclass(frozen=True, repr=False)
class ClusteredCounts(SelectionMethod):
    """Cluster features by noisy counts, and select those of the best clusters.

    Features are points (x_0, x_1) of noisy counts. They are ranked by the score of their cluster's
    centre and, within a cluster, by their own noisy score; the first k are selected. With a
    `threshold`, all features whose cluster's centre reaches it are selected instead, as published.

    Parameters
    ----------
    k : int or None, default=None
        Number of features; either this or a threshold.
    n_clusters : int, default=8
        Number of clusters.
    threshold : float or None, default=None
        A public score that the centres of selected clusters reach.

    See Also
    --------
    SelectFeatures : The estimator that takes these settings.

    Notes
    -----
    Released: noisy counts of all features and classes. Cost: one release. Clustering is
    post-processing and costs nothing.

    References
    ----------
    B. Stoddard, Y. Chen, A. Machanavajjhala, "Differentially private algorithms for empirical
    machine learning", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import ClusteredCounts, SelectFeatures
    >>> X = np.random.default_rng(0).random((2000, 50)) < 0.1
    >>> y = X[:, 7].astype(int)
    >>> settings = ClusteredCounts(k=10)
    >>> select = SelectFeatures(1.0, classes=[0, 1], max_ones=5, solver=settings)
    >>> select.fit(X, y).release_.epsilon
    1.0
    """

    k: int | None = None
    n_clusters: int = 8
    threshold: float | None = None

    def __post_init__(self) -> None:
        _check_choice(self.k, self.threshold)
        if not is_whole(self.n_clusters) or self.n_clusters < 2:
            raise DeclarationError(
                f"n_clusters ({self.n_clusters!r}) must be a whole number of at least 2; pass 8"
            )

    def noise(self, problem: FeatureScores, budget: Budget) -> CountNoise:
        """The noise of one release of all counts.

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.

        Returns
        -------
        CountNoise
            The noise.
        """
        changed = count_sensitivity(problem.max_ones, problem.neighbours)
        return CountNoise.of(budget, changed, changed)

    def check(self, problem: FeatureScores, budget: Budget) -> None:
        """Refuse what a call would refuse, before anything is charged.

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.
        """
        self.noise(problem, budget)

    def __call__(self, problem: FeatureScores, paid: Paid) -> Selected:
        """Release counts, cluster the features, take those of the best clusters."""
        noise = self.noise(problem, paid.budget)
        paid.plan(noise.event)
        counts, classes = problem.counts(paid.source), problem.records.n_classes
        exact = np.concatenate([counts.ones.ravel(), counts.sizes])
        noisy = noise.add(exact, paid.release)
        ones, sizes = noisy[:-classes].reshape(classes, -1), noisy[-classes:]
        k = min(self.n_clusters, problem.d)
        centers = weighted_means(ones.T, np.ones(problem.d), k, coins_of(paid.source))
        nearest = scipy.spatial.distance.cdist(ones.T, centers).argmin(axis=1)
        scores = problem.how.of(ones, sizes)
        of_centers = problem.how.of(centers.T, sizes)[nearest]
        order, most = np.lexsort((-scores, -of_centers)), self.k
        if self.threshold is not None:
            most = int((of_centers >= self.threshold).sum())
        return Selected(order[:most], scores, {"n_clusters": k})


def _no_threshold(settings: SparseVector) -> float:
    """Refuse a missing threshold: none can be known without the records."""
    raise DeclarationError(
        "threshold (None) must be given from public knowledge; pass "
        "solver=SparseVector(k=10, threshold=100)"
    )


@dataclass(frozen=True, repr=False)
class SparseVector(SelectionMethod):
    """Select the first k features, in the order of columns, that pass a noisy threshold.

    This is for scores that arrive one by one; on a whole table `Peeling` has less noise for the
    same k. It stops after k, so the columns' order must be public, and later ones may not be looked
    at.

    Parameters
    ----------
    k : int
        Maximum number of features.
    threshold : float
        A public score to pass.

    See Also
    --------
    SelectFeatures : The estimator that takes these settings.
    AboveThreshold : The mechanism.

    Notes
    -----
    Released: which features pass. Cost: one pure release of epsilon; delta is not used.

    References
    ----------
    M. Lyu, D. Su, N. Li, "Understanding the sparse vector technique for differential privacy", VLDB
    2017.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import SelectFeatures, SparseVector
    >>> X = np.random.default_rng(0).random((2000, 50)) < 0.1
    >>> y = X[:, 7].astype(int)
    >>> settings = SparseVector(k=2, threshold=1100)
    >>> select = SelectFeatures(1.0, classes=[0, 1], max_ones=5, solver=settings)
    >>> select.fit(X, y).release_.epsilon
    1.0
    """

    k: int
    threshold: Blank[float] = Blank(_no_threshold)

    def __post_init__(self) -> None:
        _check_k(self.k)
        _check_threshold(self.threshold)

    def mechanism(self, problem: FeatureScores, budget: Budget) -> AboveThreshold:
        """All of epsilon, divided so that the variance of score minus threshold is smallest.

        With x the threshold's share, S^2/x^2 + (k R)^2/(1-x)^2 is smallest at x : 1-x = S^(2/3) :
        (k R)^(2/3) (Lyu, Su, Li, section 4.2).

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.

        Returns
        -------
        AboveThreshold
            The mechanism.
        """
        S, R = problem.sensitivity, problem.range
        share = 1 / (1 + (self.k * R / S) ** (2 / 3))
        level = round(self.threshold * problem.how.units)
        return AboveThreshold(budget.epsilon, self.k, level, S, R, share)

    def check(self, problem: FeatureScores, budget: Budget) -> None:
        """Refuse what a call would refuse, before anything is charged.

        Parameters
        ----------
        problem : FeatureScores
            The records, and what is public about them.
        budget : Budget
            The budget.
        """
        self.mechanism(problem, budget)

    def __call__(self, problem: FeatureScores, paid: Paid) -> Selected:
        """Compare features with a threshold, one by one, until k have passed."""
        mechanism = self.mechanism(problem, paid.budget)
        paid.plan(mechanism.event)
        return Selected(paid.release(mechanism, problem.scores(paid.source)))


# ------------------------------------------------------------------------------------------ choice

METHODS: dict[str, type[SelectionMethod]] = {
    "noisy": NoisyScores,
    "peeling": Peeling,
    "clusters": ClusteredCounts,
    "sparse_vector": SparseVector,
}


def method_of(solver: Any, k: int) -> tuple[str, Any]:
    """The name and the settings of a method that is given by either; 'auto' stays as it is.

    What is no `SelectionMethod` is a solver of a `Run`, for `sets.BySets`.
    """
    _refuse_leaks(solver)
    if isinstance(solver, str) and solver == "auto":
        _check_k(k)
        return "auto", None
    for name, kind in METHODS.items():
        if type(solver) is kind:
            return name, solver
        if isinstance(solver, str) and solver == name:
            return name, kind(k=k)  # type: ignore[call-arg]
    if isinstance(solver, SelectionMethod) and name_of(solver) not in OURS:
        return name_of(solver), apart(solver)
    _check_k(k)
    return settings_of(solver, {"auto": Parameters, **METHODS, **SOLVERS})


def _refuse_leaks(solver: Any) -> None:
    """Refuse what was published in 2014 but is not private, and say what replaces it."""
    name = solver.lower().replace(" ", "_").replace("-", "_") if isinstance(solver, str) else ""
    if name in ("threshold_testing", "private_threshold_testing", "ptt"):
        raise DeclarationError(
            f"solver ({solver!r}) must be private, and threshold testing as published is not, "
            "for any epsilon: it compares exact scores with one noisy threshold, so features with "
            "equal scores are always treated alike; pass NoisyScores(threshold=...) or 'peeling'"
        )
    if name in ("noisy_cut", "noisycut"):
        raise DeclarationError(
            f"solver ({solver!r}) must be private, and NoisyCut as published is not, for any "
            "epsilon that does not grow with the number of features: it answers for every feature "
            "and never stops, so each answer costs anew; pass SparseVector(k=..., threshold=...), "
            "which stops after k features, NoisyScores(threshold=...) or 'peeling'"
        )


# Stoddard, Chen, Machanavajjhala 2014, Section 5.1: the part of epsilon that selects features, and
# how many features a record keeps.
SHARES = {"noisy": 0.5, "clusters": 0.2}
SAMPLED = 10


@dataclass(frozen=True)
class Split:
    """Budgets of a selection and of the classifier after it, and `max_ones` of both."""

    selection: float
    classification: float
    max_ones: int


def published_split(solver: Any, epsilon: float) -> Split:
    """How the paper of 2014 shares a budget between a selection and a classifier.

    `solver` is 'noisy' (half each) or 'clusters' (a fifth for the selection), or their settings;
    either step counts a record with at most 10 of its features. The paper has no other method that
    is private.

    >>> from privfit.features.selection import published_split
    >>> published_split("noisy", 1.0)
    Split(selection=0.5, classification=0.5, max_ones=10)
    """
    _refuse_leaks(solver)
    name = next((name for name, kind in METHODS.items() if isinstance(solver, kind)), solver)
    if not isinstance(name, str) or name not in SHARES:
        raise DeclarationError(
            f"solver ({solver!r}) must be one of {', '.join(SHARES)}, which were published; pass "
            "one of them, or choose a split of your own"
        )
    whole = Budget(epsilon)
    selection = SHARES[name] * whole.epsilon
    return Split(selection, whole.epsilon - selection, SAMPLED)


def best_of(problem: FeatureScores, k: int, budget: Budget) -> tuple[str, Any]:
    """The method with the least noise, by public numbers alone.

    Pure: Laplace noise has scale l1 / epsilon, the Gumbel noise of k peeled selections k R /
    epsilon, and both tails are exponential; noise on counts moves a gain by up to psi times as
    much. For the total count that is Laplace if s < k. With delta: the smaller standard deviation,
    of Gaussian noise or of Gumbel noise, pi / sqrt(6) R / eps_s.
    """
    selections = Peeling(k).mechanism(problem, budget)
    noise = problem.noise(budget).scale * problem.how.slope(problem.bound)
    gumbel = selections.range / selections.epsilon_each
    if budget.delta:
        gumbel *= math.pi / math.sqrt(6)
    return ("noisy", NoisyScores(k=k)) if noise < gumbel else ("peeling", Peeling(k))


def _check_choice(k: Any, threshold: Any) -> None:
    """Features are the first k, or those that reach a threshold."""
    if (k is None) == (threshold is None):
        raise DeclarationError(
            f"threshold ({threshold!r}) must be given, or k ({k!r}), and not both; pass one of them"
        )
    if threshold is None:
        _check_k(k)
    else:
        _check_threshold(threshold)


def _check_k(k: Any) -> None:
    if not is_whole(k) or k < 1:
        raise DeclarationError(f"k ({k!r}) must be a positive whole number; pass k=10")


def _check_threshold(threshold: Any) -> None:
    if not is_finite(threshold) or abs(threshold) >= 2**40:
        raise DeclarationError(
            f"threshold ({threshold!r}) must be a number below 2^40 in size; pass a public score"
        )
