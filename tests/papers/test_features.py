"""What `paper=True` is for feature scores, naive Bayes and ROC curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from makers.published import Checks, drawn, listed, sizes

from privfit import (
    BernoulliNB,
    Budget,
    ClusteredCounts,
    DiscreteLaplace,
    NoisyScores,
    SelectFeatures,
    roc_curve,
)
from privfit.evaluation.priroc import PriROC
from privfit.features.selection import FeatureScores, method_of, published_noise, published_split
from privfit.privacy import smooth_medians
from privfit.privacy.neighbours import ADD_REMOVE
from privfit.privacy.smooth_medians import SmoothMedians
from privfit.records.binary import BinaryRecords

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

CHECKS = Checks()
row = CHECKS.row

# ----------------------------------------------------------------------------------------- features


ONES = (np.random.default_rng(1).random((200, 30)) < 0.3).astype(int)
LABELS = (ONES[:, 0] | ONES[:, 1]).astype(int)


def feature_problem(criterion: str, max_ones: int) -> FeatureScores:
    records = BinaryRecords.of(ONES, LABELS, 2)
    return FeatureScores(records, criterion, max_ones, ADD_REMOVE, 200)


@row("features", "features that a record keeps, r")
def _() -> str:
    splits = {published_split(name, 1.0).max_ones for name in ("noisy", "clusters")}
    return str(splits.pop()) if len(splits) == 1 else "different"


@row("features", "sample of a record's features")
def _() -> str:
    twenty = np.tile([[1] * 20, [0] * 20], (2000, 1))
    model = BernoulliNB(1e3, max_ones=1, classes=[0, 1], adjacency="add_remove", random_state=0)
    counts = model.fit(twenty[:, :1], twenty[:, 0]).feature_count_  # one column was selected
    assert counts[1, 0] == pytest.approx(2000, abs=1)  # a sample of all twenty keeps a hundred
    return "one for each step, of the features it sees"


@row("features", "shares of score perturbation")
def _() -> str:
    split = published_split("noisy", 1.0)
    return listed(split.selection, split.classification)


@row("features", "shares of cluster selection")
def _() -> str:
    split = published_split("clusters", 1.0)
    return listed(split.selection, split.classification)


@row("features", "noise on total and difference counts, r = 10")
def _() -> str:
    scales = set()
    for criterion in ("total_count", "difference_count"):
        noise = published_noise(feature_problem(criterion, 10), Budget(1.0))
        scales.add(noise.sensitivity)
    model = SelectFeatures(0.5, k=3, criterion="total_count", max_ones=10, adjacency="add_remove",
                           method=NoisyScores(k=3, paper=True))  # fmt: skip
    assert drawn(lambda: model.fit(ONES)) == [DiscreteLaplace(0.5, 10)]
    return f"{scales.pop()} / epsilon" if len(scales) == 1 else "different"


@row("features", "noise on the purity index, d features")
def _() -> str:
    noise = published_noise(feature_problem("purity_index", 10), Budget(1.0))
    assert noise.sensitivity == ONES.shape[1]
    return "d / epsilon"


@row("features", "noise on information gain, n records")
def _() -> str:
    problem = feature_problem("information_gain", 10)
    noise = published_noise(problem, Budget(1.0))
    psi = 201 * math.log(201) - 200 * math.log(200)
    assert noise.sensitivity / problem.how.units == pytest.approx(30 * psi, rel=0.03)
    return "d psi(n) / epsilon"


@row("features", "clusters that are taken")
def _() -> str:
    model = SelectFeatures(50.0, criterion="total_count", method=ClusteredCounts(threshold=58.0),
                           random_state=0).fit(ONES)  # fmt: skip
    scores = model.release_.parameters["noisy_scores"]
    assert 0 < len(model.ranking_) < 30
    assert scores[model.ranking_].min() >= np.delete(scores, model.ranking_).max()
    return "those whose centre reaches tau"


@row("features", "noise of cluster selection")
def _() -> str:
    model = SelectFeatures(1.0, max_ones=10, classes=[0, 1], method=ClusteredCounts(k=3),
                           adjacency="add_remove")  # fmt: skip
    [mechanism] = drawn(lambda: model.fit(ONES, LABELS))
    assert mechanism == DiscreteLaplace(1.0, 11)
    return "once, on the counts"


def refusal(method: str) -> str:
    with pytest.raises(ValueError, match="must be private") as error:
        method_of(method, 3)
    assert "pass " in str(error.value)
    return "refused"


@row("features", "private threshold testing")
def _() -> str:
    return refusal("private threshold testing")


@row("features", "NoisyCut")
def _() -> str:
    return refusal("NoisyCut")


@row("features", "noise of naive Bayes, r = 10")
def _() -> str:
    model = BernoulliNB(0.5, max_ones=10, classes=[0, 1], adjacency="add_remove")
    [mechanism] = drawn(lambda: model.fit(ONES, LABELS))
    assert model.feature_count_.shape == (2, 30)
    return f"{mechanism.sensitivity} / epsilon"


# --------------------------------------------------------------------------------------- ROC curves


SCORED = np.random.default_rng(2)
TRUTH = (SCORED.random(558) < 0.86).astype(int)
SCORES = np.clip(SCORED.normal(0.4 + 0.2 * TRUTH, 0.15), 0, 1)


def curve(paper: Any, **more: Any) -> Any:
    return roc_curve(TRUTH, SCORES, 1.0, paper=paper, adjacency="add_remove", n_public=558,
                     random_state=0, **more)  # fmt: skip


@row("roc", "levels k, n = 558")
def _() -> str:
    return str(curve(True).release.events[0].count)


@row("roc", "budget of a level, epsilon 1")
def _() -> str:
    return f"{curve(True).release.events[0].parameter:g}"


@row("roc", "share of the medians")
def _() -> str:
    event = curve(True).release.events[0]
    return f"{event.count * event.parameter:g}"


@row("roc", "medians")
def _() -> str:
    assert curve(True).release.events[0].kind == "pure"
    [medians, _] = drawn(lambda: curve(True))
    assert isinstance(medians, SmoothMedians)
    assert (smooth_medians.NOISE, smooth_medians.BETA) == (8, 0.5)
    return "Cauchy noise of scale 8 S / epsilon, beta = epsilon / 2, on 4,096 places"


@row("roc", "a median out of its cell")
def _() -> str:
    cuts = np.array(curve(True).release.parameters["cuts"])
    level = SmoothMedians(0.02, ADD_REMOVE, 1).law(np.bincount([7] * 9, minlength=4096))
    assert level.argmax() + 1 == 2048
    assert (cuts == 0.5).sum() == 1
    return "the middle of the cell"


@row("roc", "thresholds of k levels")
def _() -> str:
    assert len(curve(PriROC(k=4)).release.parameters["cuts"]) == 2**4 - 1
    return "2^k - 1 at most"


@row("roc", "budget of Privelet for each class, epsilon 1")
def _() -> str:
    return f"{curve(True).release.events[1].parameter:g}"


@row("roc", "noise of Privelet, m cells, epsilon_2 for both classes")
def _() -> str:
    mechanism = drawn(lambda: curve(PriROC(k=6)))[-1]
    assert (mechanism.epsilon, mechanism.sensitivity) == (pytest.approx(0.4), 1 + 6)
    return "(1 + log2 m) / (epsilon_2 / 2)"


@row("roc", "cells of alpha-FixedSpace, n = 558, alpha = 1, .5, .25, .125")
def _() -> str:
    counts = [len(curve(PriROC("grid", alpha=a)).fpr) - 1 for a in (1, 0.5, 0.25, 0.125)]
    return listed(*counts)


@row("roc", "n of k and alpha-FixedSpace, records added or removed")
def _() -> str:
    for paper in (True, PriROC("grid")):
        with pytest.raises(ValueError, match="n_public must be given under adjacency"):
            roc_curve(TRUTH, SCORES, 1.0, paper=paper, adjacency="add_remove")
    return "`n_public`"


@row("roc", "budget of alpha-FixedSpace for each class, epsilon 1")
def _() -> str:
    return sizes(curve(PriROC("grid")).release).rpartition(" ")[2]


@row("roc", "Laplace baseline: t and noise, epsilon 1")
def _() -> str:
    [mechanism] = drawn(lambda: curve(PriROC("laplace")))
    assert len(curve(PriROC("laplace")).release.parameters["noisy"].ravel()) == 2 * 11
    return f"{PriROC().t}, scale {mechanism.sensitivity / mechanism.epsilon:g}"


@row("roc", "thresholds of the baseline")
def _() -> str:
    cuts = curve(PriROC("laplace")).release.parameters["cuts"]
    assert np.allclose(np.diff(cuts), 1 / 11)
    return "even"


@row("roc", "monotonicity")
def _() -> str:
    for paper in (True, PriROC("grid"), PriROC("laplace")):
        drawn_curve = curve(paper)
        assert (np.diff(drawn_curve.fpr) >= 0).all()
        assert (np.diff(drawn_curve.tpr) >= 0).all()
        assert (np.diff(drawn_curve.thresholds) <= 0).all()
        assert not drawn_curve.release.settings["smooth"]
    return "isotonic regression; rates fall as thresholds rise"


CHECKED = CHECKS.keys()


@pytest.mark.few(2)
@pytest.mark.parametrize(("page", "what"), CHECKED, ids=[" ".join(key) for key in CHECKED])
def test_ours_is_what_the_page_says(page, what):
    CHECKS.compare(page, what)


def test_every_row_has_a_check_and_every_check_a_row():
    CHECKS.cover("features", "roc")
