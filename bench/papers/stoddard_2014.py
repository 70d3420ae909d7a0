"""The experiments of Stoddard, Chen and Machanavajjhala (2014), on the messages of sms_spam.

python -m bench papers --filter stoddard_2014 --list

A seed is one of ten folds, as in the paper. Words are its features, without stop words; they are
read off the messages to learn from, as the paper does, which is not private. Threshold testing,
NoisyCut and the clusters of Algorithm 1 are not private at any epsilon; they are drawn here alone,
as published, since the paper's claims are about them. Errors of ROC curves are medians of ten runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as PlainRegression
from sklearn.naive_bayes import BernoulliNB as PlainBayes

from bench.papers import Claim, Curve, Figure, Panel, published_selections
from bench.papers.sms_words import Fold, common_fold, fold, scores
from privfit import (
    BernoulliNB,
    ClusteredCounts,
    L2Ball,
    LogisticRegression,
    NoisyScores,
    ObjectivePerturbation,
    SelectFeatures,
    roc_curve,
)
from privfit.evaluation.binormal import isotonic
from privfit.evaluation.cumulative import Haar
from privfit.evaluation.priroc import PriROC
from privfit.evaluation.roc import exact_roc
from privfit.features.scores import SCORES
from privfit.features.selection import published_split
from privfit.records.binary import BinaryRecords

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EPSILONS = (0.1, 0.25, 0.5, 1.0)
S, R = 20, 10  # words of a message, and how many of them a sample keeps (Sections 5.1.1, 5.1.2)
SHARE = 0.2  # of a selection by clusters or by threshold testing (Section 5.1.2)
KEPT, TAU = 320, 32.0  # words to select; a total count that some 210 reach (ours: none is printed)
CENTERS, ROUNDS = 8, 5  # of Algorithm 1 (ours: none is printed)
RUNS, TEST = 10, 558  # of which a ROC error is the median (Section 5.2); messages to test on
TABLE_1 = {
    "Laplace": (0.442, 0.372, 0.343, 0.218),
    "alpha-FixedSpace": (0.146, 0.079, 0.042, 0.034),
    "k-RecursiveMedians": (0.092, 0.054, 0.029, 0.023),
}  # of SMS, at EPSILONS
AT = (np.arange(4000) + 0.5) / 4000  # false positive rates at which curves are compared
COMMON = {"adjacency": "add_remove", "n_threads": 1}
NAMES = {"total count": "total_count", "difference count": "difference_count",
         "purity index": "purity_index", "information gain": "information_gain"}  # fmt: skip


# --------------------------------------------------------------------------------------- selection


def by_score(data: Fold, epsilon: float, seed: int, criterion: str, most: int = R) -> Integers:
    """Score perturbation as published; for information gain under records replaced, too."""
    way = COMMON | ({"adjacency": "replace"} if criterion == "information_gain" else {})
    model = SelectFeatures(epsilon, criterion=criterion, solver=NoisyScores(KEPT, paper=True),
                           max_ones=most, classes=[0, 1], random_state=seed, **way)  # fmt: skip
    return np.asarray(model.fit(data.X, data.y).ranking_)


def by_clusters(data: Fold, epsilon: float, seed: int, criterion: str) -> Integers:
    """Clusters of noisy counts: Algorithm 1, repaired."""
    settings = ClusteredCounts(threshold=TAU, n_clusters=CENTERS)
    model = SelectFeatures(epsilon, criterion=criterion, solver=settings, max_ones=R,
                           classes=[0, 1], random_state=seed, **COMMON)  # fmt: skip
    return np.asarray(model.fit(data.X, data.y).ranking_)


def by_clusters_as_published(data: Fold, epsilon: float, seed: int, criterion: str) -> Integers:
    """Algorithm 1 as printed. Not private."""
    return np.flatnonzero(centred(data, epsilon, seed, criterion, TAU))


def centred(data: Fold, epsilon: float, seed: int, criterion: str, tau: float) -> NDArray[np.bool_]:
    """Words whose noisy centre reaches tau."""
    counts = BinaryRecords.of(data.X, data.y, 2, n_threads=1).at_most(R, seed).counts()
    return published_selections.clusters(
        counts, SCORES[criterion], tau, epsilon, seed, most=R, centers=CENTERS, rounds=ROUNDS
    )


def by_testing(data: Fold, epsilon: float, seed: int, criterion: str) -> Integers:
    """Threshold testing as printed (Algorithm 2), about as many words. Not private."""
    exact = scores(data, criterion)
    tau = TAU if criterion == "total_count" else np.sort(exact)[-220]
    sigma = np.log(len(data.y)) if criterion == "information_gain" else 1.0
    cost = 1 if criterion == "total_count" else 2  # Corollary 1, Theorem 2
    found = published_selections.threshold_testing(exact, tau, cost * sigma / epsilon, seed)
    return np.flatnonzero(found)


Select = Callable[[Fold, float, int, str], Integers]


@dataclass(frozen=True)
class Method:
    """A selection, its share of epsilon, and how many words of a message count."""

    select: Select
    share: float
    most: int = R
    samples: bool = True  # once, for the selection and the classifier

    def errs(self, model: Learn, criterion: str, epsilon: float, seed: int) -> float:
        """The test error of a classifier after the selection."""
        data = model.data(seed)
        data = data.sampled(self.most, seed) if self.samples else data
        first = self.share * epsilon
        return model(data, self.select(data, first, seed, criterion), epsilon - first, seed,
                     self.most)  # fmt: skip


METHODS = {
    "score perturbation": Method(by_score, published_split("noisy", 1.0).selection),
    "clusters": Method(by_clusters, SHARE),
    "clusters, as published": Method(by_clusters_as_published, SHARE),
    "threshold testing, as published": Method(by_testing, SHARE, S, samples=False),
}
TESTING, CUT = "threshold testing, as published", "NoisyCut, as published"


# ------------------------------------------------------------------------------------- classifiers


def bayes(data: Fold, words: Any, epsilon: float, seed: int, most: int) -> float:
    """The error of private naive Bayes on some words."""
    if not len(words):
        return majority(1.0, seed)
    some = data.only(words)
    model = BernoulliNB(epsilon, max_ones=min(most, len(words)), classes=[0, 1],
                        random_state=seed, **COMMON).fit(some.X, some.y)  # fmt: skip
    return some.error(model.predict(some.X_test))


def regression(data: Fold, words: Any, epsilon: float, seed: int, most: int) -> float:
    """The error of objective perturbation on some words, of messages scaled to the unit ball."""
    if not len(words):
        return majority(1.0, seed)
    some = data.only(words)
    solver = ObjectivePerturbation(regularisation=10, shaped=False)
    model = LogisticRegression(epsilon, domain=L2Ball(1.0), classes=[0, 1], solver=solver,
                               calibrate=False, random_state=seed, **COMMON)  # fmt: skip
    return some.error(model.fit(unit(some.X), some.y).predict(unit(some.X_test)))


def unit(X: Any) -> Floats:
    """Each message divided by its length."""
    rows = X.toarray().astype(np.float64)
    return np.asarray(rows / np.sqrt(np.maximum(rows.sum(axis=1), 1))[:, None])


@dataclass(frozen=True)
class Learn:
    """A private classifier, the same without privacy, and its data."""

    private: Callable[[Fold, Any, float, int, int], float]
    plain: Any
    data: Callable[[int], Fold]

    def __call__(self, data: Fold, words: Any, epsilon: float, seed: int, most: int) -> float:
        return self.private(data, words, epsilon, seed, most)

    def everything(self, most: int, epsilon: float, seed: int) -> float:
        """The private error on all words."""
        data = self.data(seed)
        return self(data, np.arange(data.X.shape[1]), epsilon, seed, most)

    def exact(self, criterion: str | None, kept: float, seed: int) -> float:
        """The error without privacy on the words of the highest scores, or on all."""
        data = self.data(seed)
        if criterion is not None:
            data = data.only(np.argsort(-scores(data, criterion), kind="stable")[: int(kept)])
        return data.error(self.plain().fit(data.X, data.y).predict(data.X_test))


BAYES = Learn(bayes, PlainBayes, fold)
ERM = Learn(regression, partial(PlainRegression, max_iter=1000), common_fold)


def majority(_: float, seed: int) -> float:
    """The error of the most frequent class."""
    data = fold(seed)
    return data.error(np.full(len(data.y_test), round(data.y.mean())))


def ours(epsilon: float, seed: int) -> float:
    """Our defaults: eight words by peeling with three quarters of epsilon, then naive Bayes."""
    data = fold(seed)
    first = 0.75 * epsilon
    select = SelectFeatures(first, max_ones=S, classes=[0, 1], random_state=seed, **COMMON)
    return bayes(data, select.fit(data.X, data.y).ranking_, epsilon - first, seed, 3)


# ------------------------------------------------------------------------- figures 1, 2, 4: errors

CODING = "words of the training messages without stop words, `adjacency='add_remove'`"
ONCE = "one sample of words for both steps"
HOW = {
    "score perturbation": f"`NoisyScores(k={KEPT}, paper=True)`, `max_ones={R}`, .5 of epsilon "
    f"(information gain under `adjacency='replace'`), {ONCE}",
    "clusters": f"`ClusteredCounts(threshold={TAU:g}, n_clusters={CENTERS})`, `max_ones={R}`, .2, "
    f"{ONCE}",
    "clusters, as published": f"Algorithm 1 as printed (not private), {CENTERS} centres, {ROUNDS} "
    f"rounds, tau {TAU:g}, r = {R}, .2 of epsilon, {ONCE}",
    TESTING: f"Algorithm 2 as printed (not private), tau {TAU:g} or the 220th score, .2 of epsilon",
}
THEN = {
    BAYES: "`BernoulliNB(max_ones={most})`",
    ERM: "`ObjectivePerturbation(regularisation=10, shaped=False)`, messages in the unit ball",
}


def selected(model: Learn, method: str, criterion: str) -> Curve:
    """A selection and a classifier, by total epsilon."""
    way = METHODS[method]
    name = NAMES[criterion]
    then = THEN[model].format(most=way.most)
    return Curve(partial(way.errs, model, name), f"{HOW[method]}, `{name}`; then {then}; {CODING}")


def references(model: Learn) -> dict[str, Curve]:
    """No selection, and the most frequent class."""
    every = {"all words": S, "all words, sampled": R} if model is BAYES else {"all words": S}
    return {
        label: Curve(partial(model.everything, most),
                     f"{THEN[model].format(most=most)} on all words; {CODING}")
        for label, most in every.items()
    } | {"majority": Curve(majority, "the most frequent class of training messages")}  # fmt: skip


def exact_panel(model: Learn, name: str) -> Panel:
    """Without privacy, by the number of words kept."""
    curves = {
        label: Curve(partial(model.exact, criterion), f"scikit-learn's {name}, the best by {label}")
        for label, criterion in NAMES.items()
    } | {"all words": Curve(partial(model.exact, None), f"scikit-learn's {name}, all words")}
    claims = [Claim(f"without privacy, selecting by {label} errs a little less than all words",
                    label, "all words") for label in curves if label != "all words"]  # fmt: skip
    claims += [Claim(f"without privacy, information gain errs less than {label}",
                     "information gain", label)
               for label in ("total count", "difference count")]  # fmt: skip
    return Panel(f"{name}, not private", "test error", "words kept", (20, 80, 320, 1280), curves,
                 claims)  # fmt: skip


def selection_panel(method: str, criteria: Sequence[str], better: Sequence[str]) -> Panel:
    """One method before naive Bayes by its scores; the paper has epsilon 1 alone."""
    curves = {label: selected(BAYES, method, label) for label in criteria}
    claims = [Claim(f"{method} with {label} errs less than all words, sampled", label,
                    "all words, sampled", (1.0,)) for label in better]  # fmt: skip
    claims += [Claim(f"{method} with total count errs less than with {label}", "total count",
                     label, (1.0,)) for label in criteria if label != "total count"]  # fmt: skip
    return Panel(method, "test error", "total epsilon", EPSILONS, curves | references(BAYES),
                 claims)  # fmt: skip


def figure_1() -> Figure:
    counts = ("total count", "difference count")
    sampled = Claim("sampling words errs less than all of them, without any selection",
                    "all words, sampled", "all words", (1.0,))  # fmt: skip
    exact = exact_panel(BAYES, "BernoulliNB")
    panels = [
        selection_panel("score perturbation", tuple(NAMES), counts),
        selection_panel("clusters", counts, counts),
        selection_panel("clusters, as published", counts, counts),
        selection_panel(TESTING, tuple(NAMES), (*counts, "purity index")),
    ]
    panels[0] = replace(panels[0], claims=[sampled, *panels[0].claims])
    return Figure("Naive Bayes after a selection of words, SMS", (exact, *panels), seeds=20)


def methods_panel(model: Learn, title: str, base: str) -> Panel:
    """Total counts under all methods, by total epsilon."""
    curves = {label: selected(model, label, "total count") for label in METHODS}
    order = (TESTING, "clusters, as published", "score perturbation")
    claims = [Claim(f"{low} errs less than {high}", low, high)
              for low, high in pairwise(order)]  # fmt: skip
    claims += [Claim(f"{label} errs less than no selection", label, base) for label in METHODS]
    return Panel(title, "test error", "total epsilon", EPSILONS, curves | references(model), claims)


def figure_2() -> Figure:
    return Figure(
        "Logistic regression after a selection of words, SMS",
        (exact_panel(ERM, "LogisticRegression"),
         methods_panel(ERM, "objective perturbation, total count", "all words")),
        across=2,
    )  # fmt: skip


def figure_4() -> Figure:
    panel = methods_panel(BAYES, "naive Bayes, total count", "all words, sampled")
    mine = Curve(ours, f"`SelectFeatures(max_ones={S})` with .75 of epsilon, then "
                 f"`BernoulliNB(max_ones=3)`; {CODING}")  # fmt: skip
    panel = replace(panel, curves=dict(panel.curves) | {"our defaults": mine})
    return Figure("Naive Bayes by total epsilon, SMS", (panel,), seeds=20)


# ------------------------------------------------------------------------ figure 3: which words


def found_words(method: str, tau: float, seed: int) -> float:
    """1 - F1 of the words that a method takes for those with a total count of tau or more."""
    data = fold(seed)
    exact = scores(data, "total_count")
    if method == TESTING:
        found = published_selections.threshold_testing(exact, tau, 1.0, seed)
    elif method == CUT:
        found = published_selections.noisy_cut(exact, tau, 1.0, seed)
    elif method == "clusters, as published":
        found = centred(data, 1.0, seed, "total_count", tau)
    else:
        settings = (NoisyScores(threshold=tau, paper=True) if method == "score perturbation"
                    else ClusteredCounts(threshold=tau, n_clusters=CENTERS))  # fmt: skip
        model = SelectFeatures(1.0, criterion="total_count", solver=settings, max_ones=R,
                               random_state=seed, **COMMON).fit(data.X)  # fmt: skip
        found = model.get_support()
    both = int(np.sum(found & (exact >= tau)))
    return 1 - 2 * both / max(int(np.sum(found) + np.sum(exact >= tau)), 1)


def figure_3() -> Figure:
    how = {
        "score perturbation": f"`NoisyScores(threshold=tau, paper=True)`, `max_ones={R}`",
        "clusters": f"`ClusteredCounts(threshold=tau, n_clusters={CENTERS})`, `max_ones={R}`",
        "clusters, as published": "Algorithm 1 as printed (not private), "
        f"{CENTERS} centres, {ROUNDS} rounds, r = {R}",
        TESTING: "Algorithm 2 as printed (not private), noise of scale 1 on tau",
        CUT: "not private: noise of scale 4/3 on every count and 4 on tau",
    }
    curves = {label: Curve(partial(found_words, label), f"{text}, epsilon 1; {CODING}")
              for label, text in how.items()}  # fmt: skip
    claims = [Claim(f"threshold testing finds more of the right words than {label}", TESTING, label)
              for label in how if label != TESTING]  # fmt: skip
    panel = Panel("words with a total count of tau", "1 - F1", "tau", (10, 20, 40, 80, 160),
                  curves, claims)  # fmt: skip
    return Figure("Which words are found, SMS", (panel,), seeds=20)


# --------------------------------------------------------------------- figure 5: shares, sampling


def tuned(share: float, most: float, seed: int, once: bool = True) -> float:
    """Score perturbation by total counts, then naive Bayes, at total epsilon 1."""
    data = fold(seed).sampled(int(most), seed) if once else fold(seed)
    words = by_score(data, share, seed, "total_count", int(most))
    return bayes(data, words, 1 - share, seed, int(most))


def figure_5() -> Figure:
    def text(share: str, most: str, once: str = ONCE) -> str:
        return (f"`NoisyScores(k={KEPT}, paper=True)` with {share} of epsilon 1, `max_ones={most}` "
                f"there and in `BernoulliNB`, {once}; {CODING}")  # fmt: skip

    shares, rates = (0.1, 0.3, 0.5, 0.7, 0.9), (1, 2, 5, 10, 20, 40)
    split = Panel(
        "share of the selection", "test error", "share", shares,
        {"by share": Curve(lambda x, seed: tuned(x, S, seed), text("a share", str(S))),
         "half": Curve(lambda _, seed: tuned(0.5, S, seed), text("half", str(S)))},
        [Claim("half of epsilon for the selection errs less than other shares", "half", "by share",
               (0.1, 0.3, 0.7, 0.9))],
        log="",
    )  # fmt: skip
    anew = text("half", "r", "a sample for each step, of the words that it sees")
    sampling = Panel(
        "words that a message keeps", "test error", "r", rates,
        {"by r": Curve(lambda r, seed: tuned(0.5, r, seed), text("half", "r")),
         "r = 10": Curve(lambda _, seed: tuned(0.5, R, seed), text("half", "10")),
         "by r, sampled in each step": Curve(lambda r, seed: tuned(0.5, r, seed, False), anew)},
        [Claim("ten words a message err less than fewer", "r = 10", "by r", (1, 2, 5)),
         Claim("ten words a message err less than more", "r = 10", "by r", (20, 40))],
    )  # fmt: skip
    return Figure("Shares of the budget, and sampling, SMS", (split, sampling), seeds=20)


# ------------------------------------------------------------------ figures 6 to 8, table 1: curves


@lru_cache(maxsize=32)
def tested(classifier: str, seed: int) -> tuple[Integers, Floats]:
    """Labels and predictions of the messages to test on; 1 is no spam."""
    data = fold(seed)
    if classifier == "not private":
        return data.y_test, PlainBayes().fit(data.X, data.y).predict_proba(data.X_test)[:, 1]
    parts, data = published_split("noisy", 1.0), data.sampled(R, seed)
    some = data.only(by_score(data, parts.selection, seed, "total_count"))
    model = BernoulliNB(parts.classification, max_ones=R, classes=[0, 1], random_state=seed,
                        **COMMON).fit(some.X, some.y)  # fmt: skip
    return data.y_test, model.predict_proba(some.X_test)[:, 1]


Way = tuple[tuple[str, Any], ...]  # options of `roc_curve`


def published(**settings: Any) -> Way:
    """A curve of the paper."""
    return (("paper", PriROC(**settings)),)


@lru_cache(maxsize=512)
def drawn(classifier: str, way: Way, epsilon: float, seed: int, run: int) -> Any:
    """One private curve of a test set; `run` tells repetitions apart."""
    return roc_curve(*tested(classifier, seed), epsilon, **dict(way), adjacency="add_remove",
                     n_public=TEST, random_state=RUNS * seed + run)  # fmt: skip


@cache
def between(classifier: str, way: Way, epsilon: float, seed: int) -> float:
    """The area between the true and a private curve, the median of ten runs."""
    true = np.interp(AT, *exact_roc(*tested(classifier, seed)))
    curves = (drawn(classifier, way, epsilon, seed, run) for run in range(RUNS))
    return float(np.median([np.abs(np.interp(AT, c.fpr, c.tpr) - true).mean() for c in curves]))


def unordered(classifier: str, epsilon: float, seed: int) -> float:
    """Of the Laplace baseline without a monotone fit: the difference of areas, median of ten."""
    true = np.interp(AT, *exact_roc(*tested(classifier, seed))).mean()
    found = []
    for run in range(RUNS):
        way = published(thresholds="laplace", t=10)
        release = drawn(classifier, way, epsilon, seed, run).release
        above = np.asarray(release.parameters["noisy"], dtype=np.float64).reshape(2, -1)
        shares = np.clip(above[:, ::-1] / np.maximum(above[:, :1], 1), 0, 1)
        fpr, tpr = np.pad(shares, ((0, 0), (1, 0)))
        found.append(abs(float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2)) - true))
    return float(np.median(found))


def fitted_first(classifier: str, epsilon: float, seed: int) -> float:
    """Of k-RecursiveMedians with counts made monotone, then divided by their last; as `between`."""
    true = np.interp(AT, *exact_roc(*tested(classifier, seed)))
    found = []
    for run in range(RUNS):
        release = drawn(classifier, published(k=10), epsilon, seed, run).release.parameters
        noisy = np.asarray(release["noisy"]).reshape(2, -1)
        cells = Haar(10).estimate(noisy)[:, len(release["cuts"]) :: -1]
        fpr, tpr = (np.append(0, np.clip(sums / max(sums[-1], 1), 0, 1))
                    for sums in map(isotonic, np.cumsum(cells, axis=1)))  # fmt: skip
        fpr[-1] = tpr[-1] = 1
        found.append(np.abs(np.interp(AT, fpr, tpr) - true).mean())
    return float(np.median(found))


MODELS = {
    "not private": "predictions of scikit-learn's BernoulliNB on all words",
    "private": "predictions of naive Bayes after score perturbation by total counts, epsilon 1, "
    f"{ONCE}",
}
GRID: Way = (("thresholds", "grid"), ("levels", 10), ("noise", "wavelet"), ("smooth", False))


def curve_of(classifier: str, way: Way, printed: Sequence[float] = ()) -> Curve:
    """The error of a kind of curve, by epsilon."""
    options = "".join(f", {name}={value!r}" for name, value in way)
    return Curve(
        partial(between, classifier, way),
        f"`roc_curve(y_true, y_score, epsilon{options}, adjacency='add_remove', n_public={TEST})`, "
        f"the median of {RUNS} runs; {MODELS[classifier]}",
        published=dict(zip(EPSILONS, printed, strict=bool(printed))),
    )


def error_panel(classifier: str, number: int, table: bool = False) -> Panel:
    """Errors of three curves by epsilon: t and k are `number`, alpha is halved below ten."""
    alpha = 0.5 ** (10 - number)
    ways = {
        "Laplace": published(thresholds="laplace", t=number),
        "alpha-FixedSpace": published(thresholds="grid", alpha=alpha),
        "k-RecursiveMedians": published(k=number),
    }
    curves = {label: curve_of(classifier, way, TABLE_1[label] if table else ())
              for label, way in ways.items()}  # fmt: skip
    pairs = [("k-RecursiveMedians", "alpha-FixedSpace"), ("k-RecursiveMedians", "Laplace"),
             ("alpha-FixedSpace", "Laplace")]  # fmt: skip
    if table:
        raw = ("the noisy counts of *Laplace* without a monotone fit, rates clipped to [0, 1]; the "
               f"difference of areas; {MODELS[classifier]}")  # fmt: skip
        curves["Laplace, not monotone"] = Curve(partial(unordered, classifier), raw)
        last = ("the noisy counts of *k-RecursiveMedians*, made monotone, then divided by the last "
                f"of them; {MODELS[classifier]}")  # fmt: skip
        curves["k-RecursiveMedians, fitted first"] = Curve(partial(fitted_first, classifier), last)
        curves["an even grid, each class with all of epsilon"] = curve_of(classifier, GRID)
        curves["our defaults"] = curve_of(classifier, ())
        pairs += [(low, "Laplace, not monotone")
                  for low in ("k-RecursiveMedians", "alpha-FixedSpace")]  # fmt: skip
    claims = [Claim(f"{low} is nearer to the true curve than {high} ({classifier} predictions, "
                    f"{number} levels)", low, high) for low, high in pairs]  # fmt: skip
    title = f"t, k = {number}, alpha = {alpha:g}; {classifier} predictions"
    return Panel(title, "area between the curves", "epsilon", EPSILONS, curves, claims)


def table_1() -> Figure:
    panels = [error_panel(classifier, 10, table=True) for classifier in MODELS]
    return Figure("Error of private ROC curves, SMS", panels)


def figure_6() -> Figure:
    at = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

    def rates(way: Way | None, epsilon: float, points: Any, seed: int) -> list[float]:
        """True positive rates at some false positive rates, of one curve."""
        if way is None:
            fpr, tpr = exact_roc(*tested("private", seed))
        else:
            curve = drawn("private", way, epsilon, seed, 0)
            fpr, tpr = curve.fpr, curve.tpr
        return [float(rate) for rate in np.interp(points, fpr, tpr)]

    kinds = {"true": None, "k-RecursiveMedians": published(k=10), "our defaults": ()}
    panels = [
        Panel(
            f"epsilon {epsilon:g}", "true positive rate", "false positive rate", at,
            {label: Curve(partial(rates, way, epsilon), f"one run; {MODELS['private']}", whole=True)
             for label, way in kinds.items()},
        )
        for epsilon in reversed(EPSILONS)
    ]  # fmt: skip
    return Figure("True and private ROC curves, SMS", panels, across=2)


def figure_7() -> Figure:
    panels = [error_panel("private", number) for number in (10, 9, 8, 7)]
    return Figure("Error of private ROC curves by thresholds, SMS", panels, across=2)


def figure_8() -> Figure:
    panels = [
        Panel(
            f"{classifier} predictions", "area between the curves", "epsilon", EPSILONS,
            {f"k = {k}": curve_of(classifier, published(k=k)) for k in (7, 8, 9, 10)},
            [Claim(f"ten levels are nearer to the true curve than {k} ({classifier} predictions)",
                   "k = 10", f"k = {k}") for k in (7, 8, 9)],
        )
        for classifier in MODELS
    ]  # fmt: skip
    return Figure("Error of k-RecursiveMedians by k, SMS", panels)


FIGURES = {"1": figure_1, "2": figure_2, "3": figure_3, "4": figure_4, "5": figure_5,
           "table 1": table_1, "6": figure_6, "7": figure_7, "8": figure_8}  # fmt: skip
