"""What `paper=True` is for k-means, its post-processing and k-median."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from makers.published import Checks, calls, drawn, sizes

from privfit import (
    Box,
    CentersObjective,
    Coreset,
    FacilityObjective,
    Hybrid,
    KMeans,
    KMedian,
    L1Ball,
    Lloyd,
    PrivGene,
    Subsample,
    Swaps,
    UniformGrid,
)
from privfit._kernels import chain
from privfit.clustering import postprocess
from privfit.clustering.starts import packed
from privfit.privacy.ledger import Grant

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

CHECKS = Checks()
row = CHECKS.row

COINS = np.random.default_rng(0)
X = COINS.uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int)
# ------------------------------------------------------------------------------------------ k-means


BALL = X / 3


def clustered(solver: Any, **more: Any) -> Any:
    declared = {"domain": L1Ball(1.0), "adjacency": "add_remove", "n_public": 60, **more}
    return KMeans(3, 1.0, solver=solver, random_state=0, **declared).fit(BALL)


@row("kmeans", "steps T of noisy Lloyd")
def _() -> str:
    return str(clustered(Lloyd(paper=True)).release_.events[0].count)


@row("kmeans", "noise of counts and sums on the L1 ball, T steps")
def _() -> str:
    trace = postprocess.LloydTrace.from_release(clustered(Lloyd(paper=True)).release_)
    assert (trace.scale_counts, trace.scale_sums) == (pytest.approx(10, rel=0.01),) * 2
    return "2 T / epsilon"


@row("kmeans", "noise with a delta")
def _() -> str:
    model = KMeans(3, 1.0, 1e-6, domain=(-1, 1), solver=Lloyd(paper=True)).fit(BALL)
    assert {event.kind for event in model.release_.events} == {"pure"}
    return "Laplace nevertheless"


@row("kmeans", "empty clusters and small counts")
def _() -> str:
    model = clustered(Lloyd(paper=True))
    trace = postprocess.LloydTrace.from_release(model.release_)
    assert (trace.counts != np.rint(trace.counts)).any() or trace.counts.min() < 1
    assert (np.abs(model.cluster_centers_).sum(axis=1) <= 1 + 1e-9).all()
    return "noise for all, counts of at least 1"


@row("kmeans", "starts")
def _() -> str:
    for domain in (Box(-1, 1, 3), L1Ball(1.0, 3)):
        objective = CentersObjective(BALL, 4, domain)
        P = packed(objective, np.random.default_rng(0))
        gaps = np.linalg.norm(P[:, None] - P, axis=2)[np.triu_indices(4, 1)]
        assert gaps.min() > 0.5  # a random pair is often nearer
        assert np.array_equal(P, objective.project(P))
    first = postprocess.LloydTrace.from_release(clustered(Lloyd(paper=True)).release_).centroids[0]
    other = X[::-1] / 3
    again = KMeans(3, 1.0, domain=L1Ball(1.0), adjacency="add_remove", n_public=60, random_state=0,
                   solver=Lloyd(paper=True)).fit(other)  # fmt: skip
    same = postprocess.LloydTrace.from_release(again.release_).centroids[0]
    assert np.array_equal(first, same)
    return "drawn apart, without data"


@row("kmeans", "cells of EUGkM")
def _() -> str:
    sides = []
    for n in (10_000, 40_000):
        objective = CentersObjective(np.zeros((1, 2)), 2, Box(-1, 1, 2))
        model = KMeans(2, 1.0, domain=(-1, 1), n_public=n, solver=UniformGrid(paper=True))
        [counts] = [draw[3] for draw in calls(Grant, "release", lambda m=model: m.fit([[0.0, 0]]))]
        assert objective.n_features == 2
        sides.append(len(counts))
        assert 0.9 * (n / 10) <= len(counts) <= n / 10  # the power is 1 for two columns
    return "(n epsilon / 10)^(2d / (2 + d))"


@row("kmeans", "budgets of the hybrid, epsilon 1")
def _() -> str:
    events = clustered(Hybrid(paper=True), delta=1e-6).release_.events
    assert {event.kind for event in events} == {"pure"}
    return f"{events[0].parameter:g} for the grid, {sizes_of_rest(events)} for Lloyd"


def sizes_of_rest(events: Any) -> str:
    """Equal events are counted together."""
    total = sum(event.count * event.parameter for event in events)
    return f"{total - events[0].parameter:g}"


@row("kmeans", "Lloyd steps of the hybrid")
def _() -> str:
    settings = Hybrid(paper=True)
    assert not settings.lloyd.residual
    return str(settings.lloyd.steps)


# ------------------------------------------------------------------------------ its post-processing


TRACE = postprocess.LloydTrace(
    np.array([[[-0.9, 0.0], [0.9, 0.0]], [[-0.5, 0.0], [0.5, 0.0]], [[-0.4, 0.0], [0.4, 0.0]]]),
    np.array([[30.0, 70.0], [40.0, 60.0], [45.0, 55.0]]),
    np.array([[[-15.0, 0], [35.0, 0]], [[-16.0, 0], [24.0, 0]], [[-18.0, 0], [22.0, 0]]]),
    scale_counts=1.0, scale_sums=1.0, low=[-1, -1], high=[1, 1], domain="l1", radius=1.0,
)  # fmt: skip


class _Slots(Exception):  # noqa: N818
    """Thrown once the mixture is made."""


def proposal_shares(paper: bool) -> np.ndarray:
    """(sets, k): the part of proposals that each centre gets."""
    seen: list[Any] = []

    def mixture(sets: Any, n_assign: int, slots: Any, *rest: Any) -> Any:
        seen.append((sets.shape, slots))
        raise _Slots

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(chain, "Mixture", mixture)
        with pytest.raises(_Slots):
            postprocess.mcmc(TRACE, 2, paper=paper, rng=0)
    (sets, k, _), slots = seen[0]
    return np.bincount(slots, minlength=sets * k).reshape(sets, k) / len(slots)


@row("postprocess", "steps of the chain, variance of proposals")
def _() -> str:
    done = postprocess.mcmc(TRACE, 2, rng=0, paper=True)
    default = postprocess.mcmc.__kwdefaults__["delta"]
    return f"{done.steps:,}, {default:g}"


@row("postprocess", "sets of centres that propose, T iterations")
def _() -> str:
    shares = proposal_shares(paper=True)
    assert (shares[0] == 0).all()
    assert np.allclose(shares[1:].sum(axis=1), 1 / 3, atol=0.01)
    ours = proposal_shares(paper=False)
    assert np.allclose(ours.sum(axis=1), 1 / 4, atol=0.01)
    return "T, alike"


@row("postprocess", "proposals of a fit with `Lloyd(paper=True)` and a chain")
def _() -> str:
    for chained in ("mcmc", "anneal"):
        for solver, paper in ((Lloyd(paper=True), True), (Lloyd(steps=5), False)):
            asked = calls(chain, "Mixture", lambda s=solver, c=chained: clustered(s, postprocess=c))
            [(_, sets, _, slots, *_)] = asked
            by_set = np.bincount(slots // sets.shape[1], minlength=len(sets)) / len(slots)
            assert len(sets) == 6
            assert np.allclose(by_set, [0, *[1 / 5] * 5] if paper else 1 / 6, atol=0.01)
    return "the sets of `mcmc(..., paper=True)`"


@row("postprocess", "weights within a set")
def _() -> str:
    shares = proposal_shares(paper=True)[1:]
    near = postprocess.consistent(TRACE).counts
    assert np.allclose(shares * 3, near / near.sum(axis=1, keepdims=True), atol=0.01)
    return "the counts that made its means"


@row("postprocess", "first state")
def _() -> str:
    first = postprocess.mcmc(TRACE, 2, rng=0, steps=0, paper=True)
    means = TRACE.sums[-1] / TRACE.counts[-1][:, None]
    assert np.allclose(np.unique(first.points, axis=0), means, atol=1e-3)
    return "copies of the last means"


@row("postprocess", "noise that the likelihood is of")
def _() -> str:
    found = postprocess.mcmc(TRACE, 2, rng=0, steps=100, paper=True)
    ids = [np.abs(found.points[:, None] - centers).sum(axis=2).argmin(axis=1)
           for centers in TRACE.centroids]  # fmt: skip
    gap = 0.0
    for t, own in enumerate(ids):
        for j in range(2):
            gap += abs(TRACE.counts[t, j] - (own == j).sum())
            gap += np.abs(TRACE.sums[t, j] - found.points[own == j].sum(axis=0)).sum()
    assert found.log_likelihood == pytest.approx(-gap, rel=0.01)
    return "the raw values"


@row("postprocess", "density in the acceptance")
def _() -> str:
    mixture = chain.Mixture(np.array([[[-50]], [[50]]], dtype=np.int16), 1,
                            np.array([0, 1], dtype=np.uint16), np.array([40.0]), 1 / 3200,
                            np.array([[-500.0], [500.0]]), 0, 0.0)  # fmt: skip
    points = np.zeros((1, 4), dtype=np.int16)
    points[0, 1] = 1
    log_q = np.empty(1)
    chain.assign(mixture, points, np.empty((1, 1), dtype=np.uint16), log_q)
    assert log_q[0] == pytest.approx(math.log(2 * 0.5) - 50**2 / 3200, abs=1e-3)
    return "of the whole mixture"


# ----------------------------------------------------------------------------------------- k-median


PLACES = np.random.default_rng(3).uniform(0, 1, (40, 2))


def medians(solver: Any, **more: Any) -> Any:
    model = KMedian(4, 1.0, facilities=PLACES, domain=(0, 1), clip=(0.5, 1.0), solver=solver,
                    random_state=0, **more)  # fmt: skip
    return model.fit(np.abs(X[:, :2]))


@row("kmedian", "swaps T of Gupta et al., k = 4, f = 40")
def _() -> str:
    count = sum(event.count for event in medians(Swaps(paper=True)).release_.events)
    assert count - 1 == math.ceil(6 * 4 * math.log(40))
    return str(count - 1)


@row("kmedian", "selections that are charged")
def _() -> str:
    assert sum(event.count for event in medians(Swaps(3, paper=True)).release_.events) == 3 + 1
    return "T + 1"


@row("kmedian", "dampening of Gupta et al.")
def _() -> str:
    objective = FacilityObjective(np.abs(X[:, :2]), PLACES, (0.5, 1.0), Box(0, 1, 2))
    ranges = {mechanism.range for mechanism in drawn(lambda: medians(Swaps(2, paper=True)))}
    return f"{ranges.pop() / objective.largest:g} (hi - lo)"


@row("kmedian", "radii of Jones et al., alpha = 0.2, n = 60")
def _() -> str:
    radii, _ = Coreset(paper=True).plan(10**9, 4, 60)
    assert np.allclose(np.divide(radii[1:], radii[:-1]), 1.2)
    assert radii[-1] * 1.2 == pytest.approx(10**9)
    assert 10**9 / radii[0] >= 60
    return str(len(radii))


@row("kmedian", "places at a radius, alpha = 0.2, k = 4")
def _() -> str:
    return str(Coreset(paper=True).plan(10**9, 4, 60)[1])


@row("kmedian", "alpha")
def _() -> str:
    for alpha in (0.2, 0.6, 0.99):
        assert medians(Coreset(alpha=alpha)).cluster_centers_.shape == (4, 2)
    return f"{Coreset(paper=True).alpha:g}"


@row("kmedian", "cost of the places of Jones et al.")
def _() -> str:
    events = medians(Coreset(paper=True)).release_.events
    assert [event.kind for event in events] == ["selection", "pure"]
    assert events[0].count == 40  # all of them: radii and places ask for more
    assert events[0].count * events[0].parameter == pytest.approx(0.5)
    return "every selection"


@row("kmedian", "clip of distances, d columns in [0, 1]")
def _() -> str:
    rng = np.random.default_rng(0)
    for d in (3, 10):
        places = rng.uniform(0, 1, (200_000 // d, d))
        means = [np.abs(places - x).sum(axis=1).mean() for x in (np.zeros(d), np.full(d, 0.5))]
        assert np.allclose(means, [d / 2, d / 4], rtol=0.02)
    return "declared: `clip=(d / 4, d / 2)`"


@row("kmedian", "candidates of the sub-sampled mechanism")
def _() -> str:
    [draw] = calls(Grant, "release", lambda: medians(Subsample(paper=True)))
    return f"{len(draw[3]):,}"


@row("kmedian", "PrivGene on k-median, n = 40,000, epsilon 1")
def _() -> str:
    return sizes(medians(PrivGene(paper=True), n_public=40_000).release_)


CHECKED = CHECKS.keys()


@pytest.mark.few(4)
@pytest.mark.parametrize(("page", "what"), CHECKED, ids=[" ".join(key) for key in CHECKED])
def test_ours_is_what_the_page_says(page, what):
    CHECKS.compare(page, what)


def test_every_row_has_a_check_and_every_check_a_row():
    CHECKS.cover("kmeans", "kmedian", "postprocess")
