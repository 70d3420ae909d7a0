"""Calibration curves from released ROC curves: intervals that cover, at no cost."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import DeclarationTypeError, roc_curve
from privfit.evaluation.priroc import PriROC
from privfit.models.model import dumps, loads
from privfit.report.plotting import draw_calibration
from privfit.report.reliability import CalibrationCurve

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

N = 6000
CASES = {
    "flat": {"noise": "flat"},
    "wavelet": {"noise": "wavelet"},
    "hierarchy": {"noise": "hierarchy", "adjacency": "add_remove", "n_public": N},
    "gaussian": {"noise": "gaussian", "delta": 1e-6},
    "grid": {"thresholds": "grid"},
}


def curve_of(seed=0, honest=True, **options):
    """A curve of uniform probabilities that come true, or of which half do."""
    coins = np.random.default_rng(seed)
    chance = coins.uniform(size=N)
    y = coins.uniform(size=N) < (chance if honest else chance / 2)
    return roc_curve(y, chance, 1.0, **{"delta": 0.0, "random_state": seed, **options})


@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_what_is_true_in_a_cell(name):
    """160 intervals of 95 %, of which at most 8 + 30 miss by chance less than once in 1e6 runs."""
    missed = 0
    for seed in range(20):
        found = CalibrationCurve.of(curve_of(seed, **CASES[name]))
        middle = (found.edges[1:] + found.edges[:-1]) / 2  # the mean of uniform probabilities
        missed += int(((middle < found.lower) | (middle > found.upper)).sum())
        assert len(found.shares) <= 8
        assert (found.lower <= found.shares).all()
        assert (found.shares <= found.upper).all()
    assert missed <= 30


def test_a_model_that_promises_twice_too_much_is_found_out():
    found = CalibrationCurve.of(curve_of(honest=False))
    assert found.upper[-1] < found.edges[-2]


def test_it_is_a_function_of_the_file(tmp_path):
    curve = curve_of()
    again, ours = (CalibrationCurve.of(one) for one in (loads(dumps(curve)), curve))
    assert again.rows() == ours.rows()
    assert ours.edges[0] == 0
    assert ours.edges[-1] == 1


@pytest.mark.parametrize("options", [{"bounds": (-1, 2)}, {"paper": PriROC(thresholds="laplace")}])
def test_scores_that_are_no_probabilities_have_no_calibration(options):
    curve = curve_of(**options)
    assert CalibrationCurve.of(curve) is None
    with pytest.raises(DeclarationTypeError, match="curve must be one of probabilities to show"):
        draw_calibration(curve)


def test_anything_else_is_refused():
    with pytest.raises(DeclarationTypeError, match=r"curve \(float\) must be a RocCurve; pass"):
        CalibrationCurve.of(0.5)


def test_the_picture_has_a_box_for_each_cell_and_room_for_rare_classes():
    coins = np.random.default_rng(1)
    chance = coins.beta(1, 40, N)
    rare = roc_curve(coins.uniform(size=N) < chance, chance, 1.0, random_state=0)
    ax = draw_calibration(rare)
    assert ax.get_xscale() == ax.get_yscale() == "function"
    ax = draw_calibration(CalibrationCurve.of(curve_of()))
    assert ax.get_xscale() == "linear"
    assert ax.get_xlabel() == "predicted probability"
