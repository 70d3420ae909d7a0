"""What a stream leaves to an additive model is as much as that takes, whatever is bought."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import Categorical, Coding, LogisticRegression, Numeric, Schema
from privfit.linear import additive, fitting, room

KINDS = {
    "numbers": {f"x{i}": Numeric(bins="auto") for i in range(8)},
    "many numbers": {f"x{i}": Numeric(bins="auto") for i in range(30)},
    "ranges": {f"x{i}": Numeric(-1, 40) for i in range(6)},
    "narrow ranges": {f"x{i}": Numeric(0, 0.5) for i in range(3)},
    "declared bins": {f"x{i}": Numeric(-1, 40, bins=5 + i) for i in range(4)},
    "mixed": {
        "x0": Numeric(bins="auto"), "x1": Numeric(-9, 9, fill=0), "x2": Numeric(scale="log"),
        "x3": Categorical(), "x4": Categorical(["1", "2"], other=True),
    },
}  # fmt: skip


@pytest.fixture
def shapes(monkeypatch):
    """The coordinates and levels of models, and the most that there might have been."""
    found: dict[str, tuple[int, int]] = {}
    bought, most = additive.bought_frame, room.most_shape

    def frame(run, s, noise, features):
        found["made"] = features.dimensions, features.groups[-1].stop
        return bought(run, s, noise, features)

    def shape(*public):
        found["most"] = most(*public)
        return found["most"]

    monkeypatch.setattr(additive, "bought_frame", frame)
    monkeypatch.setattr(room, "most_shape", shape)
    return found


@pytest.mark.parametrize("coding", [Coding(), Coding(cuts=6), Coding(family="quantile", cuts=2)])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 100.0, 1000.0])
@pytest.mark.parametrize("kinds", KINDS)
def test_no_more_coordinates_and_levels_are_made_than_were_left_room_for(
    kinds, epsilon, coding, shapes
):
    rng, n = np.random.default_rng(1), 2000
    X = rng.standard_t(1, (n, len(KINDS[kinds])))
    X[:, 3:4] = rng.integers(0, 500, (n, 1)) if kinds == "mixed" else X[:, 3:4]
    model = LogisticRegression(
        epsilon, 1e-6, domain=Schema(KINDS[kinds]), classes=[0, 1], coding=coding,
        solver=additive.Additive(steps=2), random_state=0,
    )  # fmt: skip
    known = {}

    def room_of(*arguments):
        known["room"] = room.room_of(*arguments)
        return known["room"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "room_of", room_of)
        model.fit({f"x{i}": X[:, i] for i in range(X.shape[1])}, X[:, 0] > 0)
    assert shapes["made"][0] <= shapes["most"][0]
    assert shapes["made"][1] <= shapes["most"][1]
    least, most = known["room"]
    assert least <= room.most_bytes(*shapes["most"]) <= most
