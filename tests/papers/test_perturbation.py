"""What `paper=True` is for perturbed fits, the functional mechanism and sample and aggregate."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from makers.published import Checks, drawn, listed, sizes

from privfit import (
    Box,
    CentersObjective,
    DiscreteLaplace,
    Functional,
    GammaVector,
    Gupt,
    L2Ball,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    ObjectivePerturbation,
    OutputPerturbation,
    PrivateSVM,
    SmoothLoss,
)
from privfit._kernels.random import BitSource
from privfit.linear import functional as functional_module
from privfit.linear.newton import coding_of
from privfit.objectives.coding import Compact
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import REPLACE
from privfit.searches.sample_aggregate import _asked, _partition, diameters

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

CHECKS = Checks()
row = CHECKS.row

COINS = np.random.default_rng(8)
X = COINS.standard_normal((50, 10))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (X[:, 0] > 0).astype(int)
MANY, EPSILON = 14_000, 0.1


def model_of(
    solver: Any, n: int = MANY, delta: float = 0.0, kind: Any = LogisticRegression, **more: Any
) -> Any:
    """As many records as are public; what they are does not matter."""
    declared = {"domain": L2Ball(1.0), "classes": [0, 1], "fit_intercept": False, **more}
    return kind(EPSILON, delta, solver=solver, n_public=n, random_state=1, **declared)


def fitted(*of: Any, **more: Any) -> Any:
    return model_of(*of, **more).fit(X, Y)


def mechanism(*of: Any, **more: Any) -> tuple[Any, dict[str, Any]]:
    """The one mechanism of a fit, and the settings of its release."""
    model = model_of(*of, **more)
    [found] = drawn(lambda: model.fit(X, Y))
    return found, model.release_.settings


# ------------------------------------------------------------------- Chaudhuri and Monteleoni, 2008


@row("perturbation", "records of 10 columns")
def _() -> str:
    coding = coding_of(L2Ball(1.0, 10), intercept=False)
    A = coding.matrix.toarray()
    assert np.allclose(A, np.eye(10, 11), atol=1e-8)
    return f"x, {coding.shape.size} coordinates"


@row("perturbation", "an intercept")
def _() -> str:
    for kind in (OutputPerturbation, ObjectivePerturbation):
        with pytest.raises(ValueError, match="the published algorithm has no intercept; pass"):
            fitted(kind(paper=True), fit_intercept=True)
    return "refused"


@row("perturbation", "Lambda, n = 14,000")
def _() -> str:
    kinds = OutputPerturbation, ObjectivePerturbation
    found = {fitted(kind(paper=True)).release_.settings["regularisation"] for kind in kinds}
    return listed(*found)


@row("perturbation", "Algorithm 1, sensitivity, n = 14,000")
def _() -> str:
    found, settings = mechanism(OutputPerturbation(paper=True))
    moved = found.sensitivity * settings["grid"]  # the root of p units among them
    exact = (2 + 2 * settings["tolerance"]) / settings["regularisation"]
    assert exact < moved < exact * (1 + 1e-5)
    return f"{moved:.4g}"


@row("perturbation", "Algorithm 1, rate of its noise, n = 14,000, epsilon 0.1")
def _() -> str:
    found, settings = mechanism(OutputPerturbation(paper=True))
    assert isinstance(found, GammaVector)
    return f"{found.epsilon / (found.sensitivity * settings['grid']):.4g}"


def rate(n: int, **settings: Any) -> str:
    found, _ = mechanism(ObjectivePerturbation(paper=True, **settings), n)
    assert found.shape is None  # its length is an l2 norm
    return f"{1 / found.scale:.4g}"


@row("perturbation", "Algorithm 2, rate of its noise, n = 14,000, epsilon 0.1")
def _() -> str:
    return rate(MANY)


@row("perturbation", "the same, n = 500")
def _() -> str:
    return rate(500)


@row("perturbation", "the same, n = 100, where no rate would do")
def _() -> str:
    with pytest.warns(UserWarning, match="too small for any noise"):
        found = rate(100)
    return f"{found}, with Lambda raised to 20.2"


@row("perturbation", "Theorem 3, kappa = 3, rate, n = 14,000, epsilon 0.1")
def _() -> str:
    """Of the loss divided by kappa; so it is a third of that, of the loss itself."""
    steep = SmoothLoss(lambda m: 3 * np.sqrt(m * m + 1), lambda m: 3 * m / np.sqrt(m * m + 1), 3, 3)
    found, settings = mechanism(ObjectivePerturbation(paper=True, loss=steep))
    assert settings["regularisation"] == pytest.approx(140)
    return f"{1 / found.scale / 3:.4g}"


@row("perturbation", "with delta = 1e-6")
def _() -> str:
    kinds = OutputPerturbation, ObjectivePerturbation
    found = [sizes(fitted(kind(paper=True), delta=1e-6).release_) for kind in kinds]
    return "; ".join(found)


@row("perturbation", "noise on top, of a share of epsilon")
def _() -> str:
    found, settings = mechanism(ObjectivePerturbation(paper=True))
    assert settings["epsilon_1"] + settings["epsilon_3"] <= EPSILON
    return listed(found.repair)


# ------------------------------------------------------------------------------- PrivGene's rivals


@row("perturbation", "PrivateSVM, l1 sensitivity, n = 14,000, 10 columns")
def _() -> str:
    found, settings = mechanism(PrivateSVM(paper=True), kind=LinearSVC)
    assert isinstance(found, DiscreteLaplace)
    return f"{found.sensitivity * settings['grid']:.4g}"


@row("perturbation", "PrivateSVM, C = 10 beside the mean of losses, n = 14,000")
def _() -> str:
    settings = fitted(PrivateSVM(MANY / 10, paper=True), kind=LinearSVC).release_.settings
    return f"`PrivateSVM({settings['regularisation']:g}, paper=True)`"


@row("perturbation", "PrivateSVM, C = 10 beside the sum of losses")
def _() -> str:
    settings = fitted(PrivateSVM(1 / 10, paper=True), kind=LinearSVC).release_.settings
    return f"`PrivateSVM({settings['regularisation']:g}, paper=True)`"


@row("perturbation", "PrivateERM, 1e-12 beside the mean of losses, n = 14,000, epsilon 0.1")
def _() -> str:
    asked = 1e-12 * MANY
    with pytest.warns(UserWarning, match=r"regularisation \(1.4e-08\) is too small for any noise"):
        found, settings = mechanism(ObjectivePerturbation(asked, paper=True))
    assert found.shape is None
    raised = settings["regularisation"]
    return f"`ObjectivePerturbation({asked:g}, paper=True)`, raised to {raised:.3g}"


@row("perturbation", "PrivateERM, smallest Lambda of 2011, epsilon 0.1")
def _() -> str:
    ridge = 0.25 / math.expm1(EPSILON / 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # it is feasible as it is
        _, settings = mechanism(ObjectivePerturbation(ridge, paper=True))
    return f"`ObjectivePerturbation({settings['regularisation']:.4g}, paper=True)`"


@row("perturbation", "PrivateERM, loss of the support vector machine")
def _() -> str:
    found, _ = mechanism(ObjectivePerturbation(paper=True), kind=LinearSVC)
    return f"Huber's, h = {found.loss.smoothing:g}"


# --------------------------------------------------------------------------- functional mechanism


def plan_of(domain: Any, **settings: Any) -> Any:
    objective = LinearObjective(X, Y, domain=domain, fit_intercept=False)
    return functional_module._plan(objective, Functional(paper=True, **settings), Budget(1.0),
                                   REPLACE)  # fmt: skip


@row("functional", "weight of the linear part beside that of a product, records of the unit ball")
def _() -> str:
    """A s v and v v' of v = x / 2 are the paper's s x / 2 and x x' / 4 if A is 1."""
    plan = plan_of(L2Ball(1.0))
    assert plan_of(Box(-1, 1)).A * plan.coding.unit == pytest.approx(math.sqrt(10), rel=1e-3)
    return f"{plan.A * plan.coding.unit / 2:.4g} beside 0.25"


@row("functional", "added to the eigenvalues, in deviations of the noise")
def _() -> str:
    return listed(plan_of(L2Ball(1.0)).ridge(Functional(paper=True)))


@row("functional", "eigenvalues that stay negative")
def _() -> str:
    plan = plan_of(L2Ball(1.0))
    noisy = np.zeros(65, dtype=np.int64)
    noisy[:10] = 1 << 20
    diagonal = [10 + i * 10 - i * (i - 1) // 2 for i in range(10)]
    noisy[diagonal] = np.arange(10) * 10**14 - 10**14
    u = plan.minimiser(noisy, Functional(paper=True))
    assert u[0] == 0
    assert (u[2:] != 0).all()
    return "dropped, with their directions"


@row("functional", "columns")
def _() -> str:
    coding = plan_of(Box(0, 1)).coding
    assert isinstance(coding, Compact)
    assert not coding.columns[1].any()
    return "as they are: zero stays zero"


@row("functional", "l1 sensitivity, 10 columns of the unit ball, one record replaced")
def _() -> str:
    plan = plan_of(L2Ball(1.0))
    l1, _ = functional_module.sensitivities(L2Ball(1.0, 10), plan.coding, plan.A, REPLACE)
    return f"{l1 * plan.coding.unit**2:.3g}"


@row("functional", "release with delta = 1e-6")
def _() -> str:
    return sizes(fitted(Functional(paper=True), delta=1e-6).release_)


# ----------------------------------------------------------------------------- sample and aggregate


@row("aggregate", "blocks, n = 40,000")
def _() -> str:
    return listed(Gupt(paper=True).count(40_000, Budget(1.0), 20))


@row("aggregate", "weights of linear models")
def _() -> str:
    objective = LinearObjective(X, Y, domain=Box(-1, 1), fit_intercept=False)
    bounds = _asked(objective, Gupt(paper=True), Budget(1.0), COINS).bounds
    # A column of [-1, 1] is coded as [-1/2, 1/2]: its weight is half of the coded one.
    w = Compact(objective.domain, intercept=False).weights(np.stack([bounds.low, bounds.high]))
    return f"[{w.min():g}, {w.max():g}]"


@row("aggregate", "centres of k-means")
def _() -> str:
    objective = CentersObjective(X, 3, Box(-2, 2))
    bounds = _asked(objective, Gupt(paper=True), Budget(1.0), COINS).bounds
    assert (bounds.width, bounds.low.min(), bounds.high.max()) == (30, -2.0, 2.0)
    return "the domain of a record"


@row("aggregate", "sensitivity of the sum over blocks, 10 coded weights")
def _() -> str:
    objective = LinearObjective(X, Y, domain=Box(-1, 1), fit_intercept=False)
    bounds = _asked(objective, Gupt(paper=True), Budget(1.0), COINS).bounds
    return listed(round(diameters(bounds)[0] * bounds.record_units()[0]))


@row("aggregate", "release with delta = 1e-6")
def _() -> str:
    return sizes(fitted(Gupt(blocks=5, paper=True), delta=1e-6).release_)


@row("aggregate", "a record's block")
def _() -> str:
    before, after = ([set(rows.tolist()) for rows in _partition(n, 7, BitSource(3))]
                     for n in (100, 101))  # fmt: skip
    assert sum(a == b for a, b in zip(before, after, strict=True)) == 6
    return "drawn by itself"


CHECKED = CHECKS.keys()


@pytest.mark.few(11)
@pytest.mark.parametrize(("page", "what"), CHECKED, ids=[" ".join(key) for key in CHECKED])
def test_ours_is_what_the_page_says(page, what):
    CHECKS.compare(page, what)


def test_every_row_has_a_check_and_every_check_a_row():
    CHECKS.cover("perturbation", "functional", "aggregate")
