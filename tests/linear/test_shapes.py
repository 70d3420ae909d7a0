"""Shapes of columns: they add up to the model, and are centred by public weights."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from makers.raises import assert_reached, messages_of
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import privfit
from privfit import Categorical, LinearSVC, LogisticRegression, Numeric, Schema
from privfit.domains.hashing import bucket_of
from privfit.domains.scales import CUTS

COLUMNS = {
    "height": Numeric(100, 200, fill=150),
    "age": Numeric(17, 90, bins=4),
    "hours": Numeric(bins=[20.0, 35.0, 41.0], missing=True, ranks=[0.1, 0.3, 0.8]),
    "pay": Numeric(bins=[1e3, 1e4], scale="log", ranks=[0.25, 0.75], missing=True),
    "debt": Numeric(scale="log", fill=0),
    "sex": Categorical(["f", "m"], other=True),
    "town": Categorical(["Ur", "Uruk"], buckets=sorted({3, bucket_of("town", "Ur"), 999})),
}
SCHEMA = Schema(COLUMNS)
N = 400


def people(n: int = N) -> dict[str, list]:
    coins = np.random.default_rng(4)
    pays = np.where(coins.random(n) < 0.2, 0.0, coins.lognormal(8, 2, n)).tolist()
    return {
        "height": [*coins.uniform(90, 210, n - 2).tolist(), None, "?"],
        "age": coins.integers(10, 100, n).tolist(),
        "hours": [*coins.uniform(0, 60, n - 1).tolist(), None],
        "pay": [None, *pays[1:]],
        "debt": (coins.normal(0, 1e4, n)).tolist(),
        "sex": coins.choice(["f", "m", "x"], n).tolist(),
        "town": coins.choice(["Ur", "Uruk", "Eridu"], n).tolist(),
    }


PEOPLE = people()
LABELS = (np.array(PEOPLE["age"]) > 50).astype(int)
THREE = np.digitize(PEOPLE["age"], [35, 70])


def fitted(kind=None, labels=LABELS, weights=None, **changes):
    """A model of these people; its weights are then set, so that all of them matter."""
    changes = {"classes": sorted({*labels.tolist()}), "coding": "declared", **changes}
    model = (kind or WithoutErrors)(5.0, 1e-6, domain=SCHEMA, **changes).fit(PEOPLE, labels)
    if weights is None:
        weights = np.random.default_rng(9).normal(0, 1, model.coef_.shape)
    model.coef_ = weights
    return model


class WithoutErrors(LogisticRegression):
    """A model that does not know the noise of its weights."""

    def weight_errors(self, directions):
        return None


class WithErrors(LogisticRegression):
    """A model whose weights have noise with the covariance F F' (for each class, times k + 1)."""

    def factor(self) -> np.ndarray:
        width = self.domain_.width + 1
        return np.random.default_rng(2).normal(0, 1, (width, 7))

    def weight_errors(self, directions):
        one = np.linalg.norm(np.asarray(directions) @ self.factor(), axis=1)
        return one if len(self.coef_) == 1 else np.outer(one, np.arange(1, len(self.coef_) + 1))


# ------------------------------------------------------------------------------------- the identity


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_shapes_centres_and_intercept_add_up_to_the_margin(kind, fit_intercept):
    model = fitted(kind, fit_intercept=fit_intercept)
    total = np.full(N, model.intercept_[0])
    for name, cells in PEOPLE.items():
        shape = model.shape(name)
        total += shape.centre + shape.at(cells)
    np.testing.assert_allclose(total, model.decision_function(PEOPLE), rtol=0, atol=1e-9)


def test_shapes_of_several_classes_add_up_to_the_margins_of_each():
    model = fitted(labels=THREE)
    margins = model.decision_function(PEOPLE)
    for i, label in enumerate(model.classes_.tolist()):
        shapes = {name: model.shape(name, label) for name in PEOPLE}
        total = sum(shape.centre + shape.at(PEOPLE[name]) for name, shape in shapes.items())
        np.testing.assert_allclose(total + model.intercept_[i], margins[:, i], rtol=0, atol=1e-9)
        assert {shape.label for shape in shapes.values()} == {label}


@pytest.mark.parametrize("name", COLUMNS)
def test_one_cell_is_read_like_a_column(name):
    shape = fitted().shape(name)
    cells = PEOPLE[name]
    assert [shape(cell) for cell in cells[:20] + cells[-3:]] == [
        *shape.at(cells[:20]), *shape.at(cells[-3:])
    ]  # fmt: skip


def test_arrays_and_series_are_read_like_lists():
    pandas = pytest.importorskip("pandas")
    shape, ages = fitted().shape("age"), PEOPLE["age"]
    for cells in (np.array(ages), np.array(ages, dtype=np.float32), pandas.Series(ages),
                  [str(age) for age in ages]):  # fmt: skip
        np.testing.assert_array_equal(shape.at(cells), shape.at(ages))


# -------------------------------------------------------------------------------- steps and centres


def naive_parts(name: str) -> list[float]:
    """The assumed part of each level, without that of missing values, by one loop."""
    column = COLUMNS[name]
    levels = column.width - bool(getattr(column, "missing", False))
    if getattr(column, "ranks", None) is None:
        return [1 / levels] * levels
    ends, ranks = [-np.inf, *column.bins, np.inf], [0.0, *column.ranks, 1.0]
    lows = [-np.inf, *column.cuts]
    parts = []
    for low in lows:
        (bin_,) = (i for i in range(len(ends) - 1) if ends[i] <= low < ends[i + 1])
        inside = sum(ends[bin_] <= other < ends[bin_ + 1] for other in lows)
        parts.append((ranks[bin_ + 1] - ranks[bin_]) / inside)
    return parts


def weights_of(model, name: str) -> np.ndarray:
    place = model.domain_.parts[name].place
    return model.coef_[0, place]


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "height"])
def test_values_are_weights_less_their_mean_by_assumed_parts(name):
    model = fitted()
    shape, own, parts = model.shape(name), weights_of(model, name), naive_parts(name)
    n = len(parts)
    assert sum(parts) == pytest.approx(1.0, abs=1e-12)
    centre = sum(part * weight for part, weight in zip(parts, own[:n], strict=True))
    np.testing.assert_allclose(shape.values, own[:n] - centre, rtol=0, atol=1e-12)
    assert shape.centre == pytest.approx(centre, abs=1e-12)
    assert np.dot(parts, shape.values) == pytest.approx(0.0, abs=1e-12)
    variance = np.dot(parts, np.square(shape.values))
    assert shape.importance == pytest.approx(np.sqrt(variance), abs=1e-12)
    if len(own) > n:
        assert shape.missing == pytest.approx(own[n] - centre, abs=1e-12)
    else:
        assert shape.missing is None


def test_a_plain_number_is_a_line_over_its_range_which_is_zero_in_the_middle():
    model = fitted()
    shape, (weight,) = model.shape("height"), weights_of(model, "height")
    assert shape.kind == "line"
    np.testing.assert_array_equal(shape.edges, [100, 200])
    np.testing.assert_allclose(shape.values, [-weight / 2, weight / 2])
    assert shape.importance == pytest.approx(abs(weight) / np.sqrt(12))
    assert [shape(150), shape(100), shape(200), shape(300)] == [0, *shape.values, shape.values[1]]
    assert shape(None) == shape("?") == shape(150)  # its fill
    inside = shape(172.5)
    assert inside == pytest.approx(weight * (0.725 - 0.5), abs=abs(weight) / 2**10)


def test_edges_are_ends_of_the_range_and_cuts():
    model = fitted()
    np.testing.assert_allclose(model.shape("age").edges, np.linspace(17, 90, 5))
    np.testing.assert_array_equal(model.shape("hours").edges, [-np.inf, 20, 35, 41, np.inf])
    np.testing.assert_array_equal(model.shape("debt").edges, [-np.inf, *CUTS, np.inf])
    both = sorted({*CUTS, 1e3, 1e4})
    np.testing.assert_array_equal(model.shape("pay").edges, [-np.inf, *both, np.inf])
    for name in ("sex", "town"):
        assert model.shape(name).edges is None
        assert model.shape(name).kind == "category"
    assert model.shape("sex").levels == ("f", "m", "<other>")
    assert "Ur" in model.shape("town").levels
    assert model.shape("town").levels[-1] == "<other>"


def test_a_cell_on_an_edge_belongs_to_the_step_above_it():
    shape = fitted().shape("hours")
    for i, edge in enumerate(shape.edges[1:-1]):
        assert shape(edge) == shape.values[i + 1]
        assert shape(np.nextafter(np.float32(edge), np.float32(0))) == shape.values[i]


def test_neighbouring_levels_that_are_alike_are_one_step():
    weights = np.zeros((1, SCHEMA.width))
    place = SCHEMA.parts["debt"].place
    weights[0, place.start + 150 : place.stop] = 2.0
    weights[0, place.start + 160] += 1e-13  # less than what counts
    weights[0, place.start + 180] = 5.0
    shape = fitted(weights=weights).shape("debt")
    edges = [-np.inf, CUTS[149], CUTS[179], CUTS[180], np.inf]
    np.testing.assert_array_equal(shape.edges, edges)
    np.testing.assert_allclose(np.diff(shape.values), [2, 3, -3])
    assert shape.part.n_levels == 211
    cells = [-5.0, CUTS[149], CUTS[165], CUTS[179], CUTS[180], 1e12]
    np.testing.assert_array_equal(shape.at(cells), shape.values[[0, 1, 1, 2, 3, 3]])
    flat = fitted(weights=np.zeros((1, SCHEMA.width))).shape("pay")
    np.testing.assert_array_equal(flat.edges, [-np.inf, np.inf])
    assert (flat.values.tolist(), flat.missing) == ([0.0], 0.0)
    assert flat(None) == flat(17) == 0.0


def test_categories_that_are_alike_stay_apart():
    shape = fitted(weights=np.zeros((1, SCHEMA.width))).shape("sex")
    assert shape.values.tolist() == [0, 0, 0]


def test_alike_levels_whose_errors_differ_stay_apart():
    model = fitted(WithErrors, weights=np.zeros((1, SCHEMA.width)))
    assert len(model.shape("age").values) == 4
    assert len(model.shape("debt").values) == 211


# -------------------------------------------------------------------------------------------- bands


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_bands_are_those_of_the_centred_values(name, level):
    model = fitted(WithErrors)
    shape, place = model.shape(name, level=level), model.domain_.parts[name].place
    own = model.factor()[place] @ model.factor()[place].T  # the covariance of the weights
    if name == "height":
        spread = np.sqrt(own[0, 0]) / 2 * np.ones(2)
    else:
        parts = np.array(naive_parts(name))
        n = len(parts)
        middle = parts @ own[:n, :n] @ parts
        spread = np.sqrt([own[j, j] - 2 * parts @ own[:n, j] + middle for j in range(len(own))])
    half = norm.ppf(0.5 + level / 2) * spread
    values = shape.values if shape.missing is None else np.append(shape.values, shape.missing)
    lower, upper = shape.lower, shape.upper
    if shape.missing is not None:
        lower = np.append(lower, shape.missing_lower)
        upper = np.append(upper, shape.missing_upper)
    np.testing.assert_allclose(upper - values, half, rtol=1e-9)
    np.testing.assert_allclose(values - lower, half, rtol=1e-9)
    assert shape.level == level


def test_each_class_has_its_own_errors():
    model = fitted(WithErrors, labels=THREE)
    halves = [np.ptp([model.shape("age", k).lower, model.shape("age", k).upper], axis=0)
              for k in range(3)]  # fmt: skip
    np.testing.assert_allclose(halves[1], 2 * halves[0])
    np.testing.assert_allclose(halves[2], 3 * halves[0])


def test_without_known_errors_there_is_no_band():
    shape = fitted().shape("pay")
    assert shape.lower is shape.upper is shape.missing_lower is shape.missing_upper is None
    model = fitted(LogisticRegression, solver="local")
    assert model.weight_errors(np.eye(SCHEMA.width + 1)) is None
    assert model.shape("age").lower is None


# --------------------------------------------------------------------------- importances and tables


def test_importances_are_the_largest_first_and_means_over_classes():
    model = fitted()
    found = model.importances()
    assert set(found) == set(COLUMNS)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found == {name: model.shape(name).importance for name in found}
    several = fitted(labels=THREE)
    each = [several.importances(label) for label in range(3)]
    for name, mean in several.importances().items():
        assert mean == pytest.approx(np.mean([one[name] for one in each]))


@pytest.mark.parametrize("kind", [WithoutErrors, WithErrors])
def test_a_table_has_a_row_for_each_value(kind):
    pytest.importorskip("pandas")
    model = fitted(kind)
    for name in COLUMNS:
        shape = model.shape(name)
        table = shape.to_frame()
        n = len(shape.values)
        assert len(table) == n + (shape.missing is not None)
        assert list(table) == [
            "column", "label", "level", "low", "high", "value", "lower", "upper"
        ]  # fmt: skip
        np.testing.assert_array_equal(table["value"][:n], shape.values)
        assert table["lower"].isna().all() == (shape.lower is None)
        if shape.kind == "number":
            np.testing.assert_array_equal(table["low"][:n], shape.edges[:-1])
            np.testing.assert_array_equal(table["high"][:n], shape.edges[1:])
        elif shape.kind == "line":
            np.testing.assert_array_equal(table["low"], shape.edges)
        else:
            assert tuple(table["level"]) == shape.levels
        if shape.missing is not None:
            assert table["level"].iloc[-1] == "<missing>"
            assert table["value"].iloc[-1] == shape.missing


def test_what_a_shape_is_says_its_class():
    assert fitted().shape("age").measure == "log odds"
    assert fitted(LinearSVC).shape("age").measure == "margin"
    assert repr(fitted().shape("age")).startswith("Shape('age', number, -")
    assert fitted().shape("age").label == fitted().shape("age", 1).label == 1
    with pytest.raises(ValueError, match="read-only"):
        fitted().shape("age").values[0] = 1.0


def test_a_model_file_has_the_same_shapes(tmp_path):
    model = LogisticRegression(5.0, 1e-6, domain=SCHEMA, classes=[0, 1]).fit(PEOPLE, LABELS)
    privfit.save(model, tmp_path / "model.json")
    loaded = privfit.load(tmp_path / "model.json")
    assert loaded.importances() == model.importances()
    for name in COLUMNS:
        one, other = model.shape(name), loaded.shape(name)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.at(PEOPLE[name]), other.at(PEOPLE[name]))


def test_blanks_that_a_fit_bought_have_shapes():
    blank = Schema.blank({"age": "number", "sex": "category"})
    some = {name: PEOPLE[name] for name in ("age", "sex")}
    model = LogisticRegression(5.0, 1e-6, domain=blank, classes=[0, 1]).fit(some, LABELS)
    total = model.intercept_[0] + sum(
        model.shape(name).centre + model.shape(name).at(cells) for name, cells in some.items()
    )
    np.testing.assert_allclose(total, model.decision_function(some), rtol=0, atol=1e-9)


# ----------------------------------------------------------------------------------------- refusals

SHAPE = fitted().shape
PLAIN = LogisticRegression(1.0, 1e-6, domain=(0, 1), classes=[0, 1]).fit(np.eye(4), [0, 1, 0, 1])
REFUSED = [
    *((call, r"domain \(Box\) must declare columns by name, which have shapes; pass domain=Schema")
      for call in (partial(PLAIN.shape, "age"), PLAIN.importances)),
    *((partial(SHAPE, name), r"column \(.*\) must be a column of the schema; pass one of 'height',")
      for name in ("weight", 0, None, ["age"])),
    *((partial(SHAPE, "age", level=level), r"level \(.*\) must be a probability between 0 and 1; p")
      for level in (0, 1, 90, "0.9", float("nan"), True)),
    *((partial(call, label=0), r"label \(0\) must be a class that has a model; pass one of 1$")
      for call in (partial(SHAPE, "age"), fitted().importances)),
    (partial(fitted(labels=THREE).shape, "age"),
     r"label \(None\) must be a class that has a model; pass one of 0, 1, 2$"),
    *((partial(SHAPE("age").at, cells),
       r"cells \(\w+\) must be the cells of column 'age'; pass a list or an array, and a single va")
      for cells in ("17", 17, {"age": [17]}, np.eye(2))),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_wrong_input_has_one_clear_message(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_cells_that_the_schema_refuses_are_refused_without_being_shown():
    schema = Schema({"age": Numeric(0, 100), "sex": Categorical(["f", "m"])})
    some = {"age": PEOPLE["age"], "sex": ["f", "m"] * (N // 2)}
    model = LogisticRegression(
        1.0, 1e-6, domain=schema, classes=[0, 1], coding="declared"
    ).fit(some, LABELS)  # fmt: skip
    with pytest.raises(ValueError, match="column 'sex' has values that are not declared") as error:
        model.shape("sex").at(["secret"])
    assert "secret" not in str(error.value)
    with pytest.raises(ValueError, match="column 'age' has missing values"):
        model.shape("age")(None)


def test_shapes_need_a_fit():
    model = LogisticRegression(1.0, domain=SCHEMA, classes=[0, 1])
    for call in (partial(model.shape, "age"), model.importances, partial(model.weight_errors, [])):
        with pytest.raises(NotFittedError):
            call()


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED)
    room = Path(privfit.__file__).parent
    assert_reached([room / "linear/shapes.py", room / "domains/parts.py"], seen)
