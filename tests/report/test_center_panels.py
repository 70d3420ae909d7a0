"""Heat maps of centres: rows are columns by name, colours places in declared ranges."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from makers.raises import assert_reached, messages_of

import privfit
from privfit import Box, Categorical, KMeans, KMedian, L2Ball, Numeric, Schema
from privfit.report import center_panels
from privfit.report.plotting import draw_centers

pytest.importorskip("matplotlib")
COINS = np.random.default_rng(0)
PEOPLE = Schema({"age": Numeric(20, 80), "job": Categorical(["a $", "b"]), "tax": Numeric(0, 1e6)})
TABLE = {"age": COINS.uniform(20, 80, 900), "job": COINS.choice(["a $", "b"], 900),
         "tax": COINS.uniform(0, 1e6, 900)}  # fmt: skip


def rows_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def columns_of(ax):
    return [name for name in rows_of(ax) if name != "noisy size"]


def places_of(ax):
    return np.asarray(ax.images[0].get_array())


@pytest.fixture(scope="module")
def model():
    return KMeans(3, 20.0, domain=PEOPLE).fit(TABLE)


def test_rows_are_columns_by_name_and_colours_places_in_their_range(model):
    ax = draw_centers(model)
    assert columns_of(ax) == ["age", r"job=a \$", "job=b", "tax"]
    centres = model.centers_in_units(as_frame=False)
    np.testing.assert_allclose(places_of(ax)[0], np.clip((centres["age"] - 20) / 60, 0, 1))
    np.testing.assert_allclose(places_of(ax)[1], centres["job=a $"])
    np.testing.assert_allclose(places_of(ax)[3], np.clip(centres["tax"] / 1e6, 0, 1))
    written = [text.get_text() for text in ax.texts]
    assert written[:3] == [f"{value:.3g}" for value in centres["age"]]


def test_sizes_stand_above_with_the_intervals_of_their_noise(model):
    ax = draw_centers(model)
    tall = np.array([-bar.get_height() for bar in ax.patches])
    unit = tall[0] / model.cluster_sizes_[0]
    np.testing.assert_allclose(tall, unit * model.cluster_sizes_)
    ends = np.array([line[:, 1] for line in ax.containers[0].lines[2][0].get_segments()])
    foot = ax.patches[0].get_y()
    drawn = np.sort((foot - ends) / unit, axis=1)
    np.testing.assert_allclose(drawn, np.maximum(model.cluster_size_intervals(0.9), 0), rtol=1e-9)
    assert rows_of(ax)[0] == "noisy size"
    assert [text.get_text() for text in ax.texts[-3:]] == [f"{n:.0f}" for n in model.cluster_sizes_]


def test_models_without_sizes_and_of_other_domains_are_drawn():
    points = COINS.uniform(-0.5, 0.5, (500, 4))
    medians = KMedian(2, 5.0, facilities=points[:40], domain=Box(-1, 1)).fit(points)
    ax = draw_centers(medians)
    assert rows_of(ax) == ["x0", "x1", "x2", "x3"]
    assert not ax.patches
    np.testing.assert_allclose(places_of(ax), (medians.cluster_centers_.T + 1) / 2)
    ball = draw_centers(KMeans(2, 5.0, domain=L2Ball(1.0)).fit(points))
    assert places_of(ball).shape == (4, 2)
    assert ((places_of(ball) >= 0) & (places_of(ball) <= 1)).all()


def test_of_many_columns_those_are_drawn_in_which_centres_differ(monkeypatch, model):
    monkeypatch.setattr(center_panels, "MOST_ROWS", 2)
    apart = {name: np.ptp(row) for name, row in zip(rows_of_all(model), all_places(model),
                                                    strict=True)}  # fmt: skip
    kept = sorted(apart, key=apart.get)[-2:]
    ax = draw_centers(model)
    assert set(columns_of(ax)) == set(kept)
    assert "2 columns that differ less are left out" in ax.get_xlabel()


def rows_of_all(model):
    return columns_of(draw_centers(model, columns=range(4)))


def all_places(model):
    return places_of(draw_centers(model, columns=range(4)))


def test_columns_are_asked_for_by_name_or_position(model):
    assert columns_of(draw_centers(model, columns=["tax", 0])) == ["tax", "age"]
    assert columns_of(draw_centers(model, columns=np.array([3]))) == ["tax"]


def test_no_more_numbers_are_written_than_can_be_read():
    many = KMeans(20, 50.0, domain=(-1, 1)).fit(COINS.uniform(-1, 1, (3000, 4)))
    assert not draw_centers(many).texts


def test_wrong_input_has_one_clear_message(model):
    cases = [
        (partial(draw_centers, KMeans(2)), r"model \(KMeans\) must be a fitted KMeans or KMedian"),
        (partial(draw_centers, None), r"model \(NoneType\) must be a fitted"),
        *((partial(draw_centers, model, columns=c), r"columns \(.*\) must be a list of encoded col")
          for c in ("age", [], ["nobody"], [4], [-1], [1.5])),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(privfit.PrivfitError, match=message):
            call()
    seen = "\n".join(messages_of(call) for call, _ in cases)
    assert_reached([Path(center_panels.__file__)], seen)
