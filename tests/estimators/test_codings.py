"""Codings of estimators: what they change, what they cost, and what they refuse."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from privfit import (
    Additive,
    Box,
    Categorical,
    Coding,
    Gradient,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Schema,
    Stream,
    load,
    save,
)
from privfit.base.errors import DeclarationError
from privfit.privacy.neighbours import ADJACENCIES

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

N = 4000
BLANK = Schema.blank({"age": "number", "gain": "number", "job": "category"})
DECLARED = Schema({
    "age": Numeric(0, 100), "gain": Numeric(0, 1e5, bins=[1, 5000]),
    "job": Categorical(["clerk", "nurse", "driver"], other=True),
})  # fmt: skip


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "age": rng.integers(18, 90, n).astype(float),
        "gain": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
        "job": rng.choice(["clerk", "nurse", "driver"], n),
    }
    bent = np.abs(table["age"] - 50) < 15  # no line can tell
    return table, (bent ^ (rng.random(n) < 0.1)).astype(int)


def model(kind=LogisticRegression, epsilon=4.0, delta=1e-6, domain=BLANK, **settings):
    settings = {"classes": [0, 1], "random_state": 1, **settings}
    return kind(epsilon, delta, domain=domain, **settings)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("domain", [BLANK, DECLARED, "learn"], ids=["blank", "declared", "learn"])
def test_the_default_fit_of_a_table_is_additive_and_spends_its_budget(domain, adjacency):
    table, y = people()
    X = pd.DataFrame(table)
    ledger = Ledger(10.0, 1e-4)
    fitted = model(domain=domain, adjacency=adjacency, n_public=N, ledger=ledger).fit(X, y)
    release = fitted.release_
    assert release.settings["solver"] == "additive"
    assert release.verify()
    assert (ledger.spent.epsilon, ledger.spent.delta) == (4.0, 1e-6)
    assert 3.9 < release.cost() <= 4.0
    assert fitted.domain_.columns["age"].scale == "log"
    assert fitted.score(*people(seed=1)) > 0.85
    assert set(release.parameters["columns"]) == {"age", "gain", "job"}


def test_a_line_cannot_do_what_a_curve_does():
    X, y = people()
    fresh = people(seed=1)
    straight = model(domain=DECLARED, coding="declared").fit(X, y)
    assert straight.release_.settings["solver"] == "gradient"
    assert straight.domain_ == DECLARED
    assert "columns" not in straight.release_.parameters
    assert straight.score(*fresh) < 0.75 < 0.85 < model(domain=DECLARED).fit(X, y).score(*fresh)


def test_other_solvers_take_columns_as_they_are_declared():
    X, y = people(500)
    fitted = model(domain=DECLARED, solver=Gradient(steps=4)).fit(X, y)
    assert fitted.domain_ == DECLARED
    assert model(LinearSVC, domain=DECLARED).fit(X, y).domain_ == DECLARED
    plain = model(domain=DECLARED, delta=0.0, coding="declared")
    assert plain.fit(X, y).domain_ == DECLARED


def test_thousands_of_categories_are_left_to_another_solver():
    X, y = people(300)
    wide = Schema({"job": Categorical([f"job {i}" for i in range(4200)], other=True)})
    fitted = model(domain=wide).fit({"job": X["job"]}, y)
    assert fitted.release_.settings["solver"] == "local"


@pytest.mark.parametrize("family", ["log", "quantile", "width"])
def test_a_coding_is_followed(family):
    X, y = people()
    fitted = model(domain=DECLARED, coding=Coding(family=family)).fit(X, y)
    age = fitted.domain_.columns["age"]
    assert (age.low, age.high) == (0, 100)
    assert age.scale == ("log" if family == "log" else None)
    assert age.bins if family != "log" else age.bins == 32  # equal bins beside the scale
    assert fitted.domain_.columns["gain"] == DECLARED.columns["gain"]
    assert ("blanks" in fitted.release_.settings) == (family == "quantile")
    assert fitted.release_.verify()


def test_settings_that_are_passed_win_over_the_recipe():
    X, y = people()
    solver = Additive(steps=5, metric="full")
    fitted = model(solver=solver).fit(X, y)
    assert fitted.release_.settings["steps"] == 5
    assert fitted.release_.settings["metric"] == "full"
    assert len(fitted.path_.generations) == 6


def test_weights_of_classes_calibration_and_columns_are_bought_together():
    X, y = people()
    rare = y & (np.arange(len(y)) % 7 == 0)
    fitted = model(class_weight="balanced").fit(X, rare)
    assert fitted.release_.verify()
    assert {"blanks", "class_weight", "calibration"} <= fitted.release_.settings.keys()
    assert 0.25 < fitted.predict(X).mean() < 0.75


def test_three_classes_share_the_columns():
    X, _ = people()
    y = np.digitize(X["age"], [40, 60])
    fitted = model(classes=[0, 1, 2]).fit(X, y)
    assert fitted.release_.verify()
    assert fitted.score(X, y) > 0.9


def test_streams_give_the_same_bits(tmp_path):
    X, y = people(800)
    frame = pd.DataFrame({**X, "late": y})
    frame.to_csv(tmp_path / "people.csv", index=False)
    in_memory = model(n_threads=1).fit(X, y)
    streamed = model().fit(Stream(tmp_path / "people.csv"), "late")
    np.testing.assert_array_equal(in_memory.coef_, streamed.coef_)
    assert in_memory.domain_ == streamed.domain_


def test_missing_cells_and_new_values_are_predicted():
    fitted = model().fit(*people())
    odd = {"age": [None, "?", -5], "gain": [1e12, float("nan"), 0], "job": ["pilot", None, ""]}
    assert np.isfinite(fitted.decision_function(odd)).all()


def test_models_are_saved_with_their_columns(tmp_path):
    X, y = people()
    for domain, coding in ((BLANK, "auto"), (DECLARED, Coding(family="quantile", cuts=2))):
        fitted = model(domain=domain, coding=coding).fit(X, y)
        save(fitted, tmp_path / "model.json")
        again = load(tmp_path / "model.json")
        assert again.domain_ == fitted.domain_
        assert again.get_params()["coding"] == coding
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coding": "best"}, r"coding \('best'\) must be 'auto', 'declared' or a Coding; pass"),
        ({"coding": None}, r"coding \(None\) must be 'auto', 'declared' or a Coding; pass"),
        ({"coding": Coding(), "solver": "local"}, r"coding .* is for additive models .*; pass"),
        ({"coding": Coding(), "delta": 0.0}, r"coding .* or solver='additive' with delta > 0"),
        ({"coding": Coding(family="decades"), "delta": 0.0}, r"coding .* pass solver='evidence'"),
        ({"coding": Coding(), "domain": Box(0, 1)}, r"coding .* under a Schema; pass"),
        ({"coding": Coding(family="width")}, r"column 'age' must have a declared range"),
        ({"coding": "declared", "solver": "additive", "domain": DECLARED}, r"column 'age'.*; "),
    ],
)
def test_what_cannot_be_coded_is_refused_before_the_charge(changes, message):
    X, y = people(200)
    ledger = Ledger(10.0, 1e-4)
    table = np.zeros((200, 2)) if isinstance(changes.get("domain"), Box) else X
    with pytest.raises(DeclarationError, match=message):
        model(ledger=ledger, **changes).fit(table, y)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("family", ["decades", "log"])
def test_the_remedy_for_a_coding_without_a_delta_works(family):
    fitted = model(delta=0.0, coding=Coding(family=family), solver="evidence").fit(*people(500))
    assert fitted.release_.settings["solver"] == "evidence"


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_names_are_bought_with_their_delta_at_a_low_signal_too(adjacency):
    named = Schema({**BLANK.columns, "job": Categorical(names="bought")})
    X, y = people(500)
    ledger = Ledger(10.0, 1e-4)
    made = {"adjacency": adjacency, "n_public": 500, "ledger": ledger}
    fitted = model(epsilon=0.02, domain=named, **made).fit(X, y)
    assert fitted.release_.settings["solver"] == "additive"
    assert fitted.release_.verify()
    assert fitted.domain_.columns["job"].other
    hashed = model(epsilon=0.02, **made).fit(X, y)  # which needs no delta
    assert {event.kind for event in hashed.release_.events} == {"pure"}
    assert (ledger.spent.epsilon, ledger.spent.delta) == (0.04, 2e-6)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("levels", "epsilon"), [(3, 0.003), (1, 0.01), (30, 0.01)])
def test_a_table_whose_numbers_are_cut_is_fitted_as_without_a_delta_that_is_left(
    levels, epsilon, adjacency, tmp_path
):
    bins = [float(i) for i in range(1, levels + 1)]
    schema = Schema({
        "age": Numeric(0, 100, bins=bins), "gain": Numeric(0, 9, bins=bins[:8]),
        "job": DECLARED.columns["job"],
    })  # fmt: skip
    X, y = people(1000)
    made = {"domain": schema, "adjacency": adjacency, "n_public": 1000, "epsilon": epsilon}
    left, pure = (model(delta=delta, **made).fit(X, y) for delta in (1e-6, 0.0))
    assert {event.kind for event in left.release_.events} <= {"pure", "selection"}
    assert left.release_.settings == pure.release_.settings
    assert np.array_equal(left.coef_, pure.coef_)
    assert left.intercept_ == pure.intercept_
    pd.DataFrame({**X, "late": y}).to_csv(tmp_path / "people.csv", index=False)
    streamed = model(delta=1e-6, **made).fit(Stream(tmp_path / "people.csv"), "late")
    assert np.array_equal(streamed.coef_, left.coef_)


@pytest.mark.parametrize("solver", ["auto", "evidence", "additive"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("domain", [BLANK, DECLARED], ids=["blank", "declared"])
@pytest.mark.parametrize(("n", "epsilon", "message"), [
    (0, 1.0, "X must have at least one record; pass a non-empty table"),
    (50, 0.0, r"epsilon \(0(.0)?\) must be (positive|a finite number > 0)"),
])  # fmt: skip
def test_no_records_and_no_epsilon_are_refused(n, epsilon, message, domain, delta, solver):
    X, y = people(n)
    ledger = Ledger(10.0, 1e-4)
    with pytest.raises(ValueError, match=message):
        model(epsilon=epsilon, delta=delta, domain=domain, solver=solver, ledger=ledger).fit(X, y)
    assert ledger.spent.epsilon == 0


def test_one_record_changes_no_kind_of_column():
    X, y = people(300)
    for value in (None, "x", 1e300, -1e300, float("nan")):
        odd = {**X, "age": np.array(X["age"], dtype=object)}
        odd["age"][0] = value
        fitted = model(epsilon=1.0).fit(odd, y)
        assert fitted.domain_.columns.keys() == BLANK.columns.keys()
        assert fitted.release_.verify()


# ------------------------------------------------------------------- what reviews of the code found


def test_a_narrow_range_is_learned_at_a_low_signal_too():
    rng = np.random.default_rng(0)
    year = rng.integers(1990, 2025, 3000)
    table = {"year": year, **{f"z{i}": rng.normal(size=3000) for i in range(9)}}
    ranges = {"year": Numeric(1990, 2025), **{f"z{i}": Numeric(-4, 4) for i in range(9)}}
    fitted = model(epsilon=1.0, domain=Schema(ranges)).fit(table, (year >= 2007).astype(int))
    assert fitted.domain_.columns["year"].bins == 32
    assert fitted.score(table, (year >= 2007).astype(int)) > 0.9


@pytest.mark.parametrize("count", [28, 58, 60])
def test_tables_of_many_numbers_are_additive(count):
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.normal(size=2000) for i in range(count)}
    fitted = model(domain=Schema.blank(dict.fromkeys(table, "number"))).fit(table, [0, 1] * 1000)
    assert fitted.release_.settings["solver"] == "additive"


def test_room_for_several_classes_is_checked_before_the_charge():
    levels = Schema({f"x{i}": Numeric(scale="log", missing=True) for i in range(250)})
    ledger, rows = Ledger(10.0, 1e-4), {name: [0.0, 1.0, 2.0] for name in levels.columns}
    with pytest.raises(DeclarationError, match=r"must have fewer than 4096 .* declare fewer"):
        model(
            epsilon=1.0, domain=levels, classes=[0, 1, 2], coding="declared", solver=Additive(),
            adjacency="add_remove", n_public=116_000, ledger=ledger,
        ).fit(rows, [0, 1, 2])  # fmt: skip
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("levels", [65_535, 65_536])
def test_as_many_levels_as_a_code_has_values_are_fitted(levels):
    x = np.random.default_rng(0).random(50)
    schema = Schema({"x": Numeric(0, 1, bins=levels, fill=0)})
    solver = Additive(metric="full", steps=2)
    fitted = model(domain=schema, solver=solver, coding="declared").fit({"x": x}, [0, 1] * 25)
    assert fitted.coef_.shape == (1, levels)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("solver", [Additive(), Additive(pool=True, metric="block")])
def test_numbers_that_the_scale_does_not_reach_add_nothing(solver):
    schema = Schema({"x": Numeric(-1e12, -1e11, fill=-5e11)})
    table = {"x": np.full(500, -5e11)}
    fitted = model(domain=schema, solver=solver, coding=Coding(family="log")).fit(
        table, [0, 1] * 250
    )
    assert np.isfinite(fitted.decision_function(table)).all()


def test_many_blank_categories_have_room():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{i}": rng.choice(["a", "b"], 80) for i in range(130)})
    assert model(domain="learn").fit(table, [0, 1] * 40).release_.verify()


def test_importances_do_not_count_levels_that_nobody_has():
    X, y = people(20_000)
    X["city"] = np.random.default_rng(3).choice(["here", "there"], 20_000)
    blank = Schema.blank(
        dict.fromkeys(("age", "gain"), "number") | dict.fromkeys(("job", "city"), "category")
    )
    fitted = model(domain=blank).fit(X, y)
    shares = fitted.domain_.columns["city"].shares
    assert sorted(shares)[-2] > 0.4
    assert sum(shares) <= 1
    found = fitted.importances()
    assert next(iter(found)) == "age"
    for name in ("gain", "job", "city"):
        assert found[name] < 0.25 * found["age"]


@pytest.mark.parametrize("seed", range(5))
def test_centres_and_importances_are_those_of_records(seed):
    """Over records shapes have a mean near 0, ties and all; by assumed ranks `gain` is 1.2 off."""
    X, y = people(20_000, seed)
    fitted = model(random_state=seed).fit(X, y)
    found = fitted.importances()
    for name, cells in X.items():
        values = fitted.shape(name).at(cells)
        assert abs(values.mean()) < 0.05
        assert abs(values.std() - found[name]) < 0.15
    assert found["gain"] < 0.25 * found["age"]


def test_importances_are_never_negative_nor_beyond_the_values():
    for seed in range(4):
        fitted = model(epsilon=0.1, random_state=seed).fit(*people(300, seed))
        for name, importance in fitted.importances().items():
            shape = fitted.shape(name)
            ends = [*shape.values, *([] if shape.missing is None else [shape.missing])]
            assert min(ends) - 1e-12 <= 0 <= max(ends) + 1e-12  # where the mean is
            assert 0 <= importance <= np.ptp(ends) / 2 + 1e-12


@pytest.mark.parametrize("classes", [2, 3])
def test_summaries_shapes_and_importances_agree(classes):
    X, y = people()
    y = y if classes == 2 else np.digitize(X["age"], [40, 60])
    fitted = model(classes=list(range(classes))).fit(X, y)
    summary = fitted.summary()
    for label in fitted.classes_.tolist()[1 if classes == 2 else 0 :]:
        for name in X:
            shape = fitted.shape(name, label)
            own = [one for one in summary.weights if (one.column, one.label) == (name, label)]
            values = [one.weight for one in own]
            shown = [*shape.values, *([] if shape.missing is None else [shape.missing])]
            np.testing.assert_allclose(values, np.array(shown)[shape.steps], atol=1e-9)
            half = np.array([one.upper - one.weight for one in own])
            band = [*(shape.upper - shape.values), *([] if shape.missing is None else [
                shape.missing_upper - shape.missing])]  # fmt: skip
            np.testing.assert_allclose(half, np.array(band)[shape.steps], atol=1e-9)
            parts = np.array([one.share for one in own])
            assert shape.importance == pytest.approx(np.sqrt(parts @ np.square(values)), abs=1e-9)
            outline = [one for one in summary.outlines if (one.name, one.label) == (name, label)]
            assert len(outline) == (name != "job")
            assert all(one.importance == pytest.approx(shape.importance) for one in outline)


def test_a_summary_says_what_matters_first(tmp_path):
    X, y = people(20_000)
    fitted = model().fit(X, y)
    summary = fitted.summary()
    lines = str(summary).splitlines()
    assert re.match(r"largest of \d+ rows +size +1 +per unit +error +90 % interval$", lines[0])
    assert re.match(
        r"age +\d\.\d{4} +-\d\.\d\d at \S+ to \S+, \+\d\.\d\d at \S+ to \S+ +", lines[1]
    )
    assert sum(line.startswith("age") for line in lines) == 1
    assert not any("[" in one.name for one in summary.weights)
    names = [one.name for one in summary.weights]
    assert len(names) == len(set(names)) == fitted.coef_.shape[1] + 1
    assert len(summary.to_frame()) == len(names)
    (age,) = (one for one in summary.outlines if one.name == "age")
    assert not age.below_noise
    assert age.smallest < -1 < 1 < age.largest
    low, high = map(float, age.largest_at.split(" to "))
    assert 35 <= low < high <= 65  # the hump
    save(fitted, tmp_path / "model.json")
    assert str(load(tmp_path / "model.json").summary()) == str(summary)
    assert summary.to_dict()["outlines"][0]["name"] == "age"


def test_categories_that_nobody_has_come_last():
    X, y = people(20_000)
    rows = str(model().fit(X, y).summary()).splitlines()[1:-2]
    assert [row.split()[0] for row in rows[:2]] == ["age", "gain"] or "job" in rows[1]
    assert not any(row.startswith("job=<other>") for row in rows[:4])


def test_a_summary_without_errors_has_outlines():
    X, y = people(500)
    cut = Schema({**DECLARED.columns, "age": Numeric(0, 100, bins=[30, 50, 70])})
    fitted = model(domain=cut, solver="local").fit(X, y)
    lines = str(fitted.summary()).splitlines()
    assert lines[-1] == "no errors are known for solver 'local'"
    (age,) = (line for line in lines if line.startswith("age"))
    assert re.search(r" at \d+ to \d+, \S+ at \d+ to \d+$", age)
    assert fitted.summary().outlines[0].error is None


def test_what_was_shrunk_to_nothing_has_the_error_that_noise_could_hide():
    """It is that of the same fit before its weights are shrunk, from the same draws."""
    rng = np.random.default_rng(0)
    kinds = {f"z{i}": Categorical(range(6)) for i in range(8)}
    table, y = {name: rng.integers(0, 6, 3000) for name in kinds}, rng.integers(0, 2, 3000)
    shrunk, whole = (
        model(epsilon=1.0, domain=Schema(kinds), solver=solver, calibrate=False).fit(table, y)
        for solver in (Additive(caution=100.0), Additive(shrink=False))
    )
    parts = shrunk.domain_.parts
    nothing = [name for name in kinds if not shrunk.coef_[0, parts[name].place].any()]
    assert len(nothing) > 4
    before = {one.name: one for one in whole.summary().weights}
    for one in shrunk.summary().weights:
        if one.column in nothing:
            assert one.weight == 0
            assert one.below_noise
            assert one.error == pytest.approx(before[one.name].error, rel=1e-3)
            assert one.lower < 0 < one.upper
    assert shrunk.shape(nothing[0]).upper.min() > 0


@pytest.mark.parametrize("container", ["numpy", "pandas", "nullable", "arrow", "polars"])
def test_booleans_are_learned_as_two_names_from_every_container(container, tmp_path):
    import polars
    import pyarrow

    rng = np.random.default_rng(0)
    cells = rng.random(800) < 0.4
    y = (cells ^ (rng.random(800) < 0.1)).astype(int)
    lost = [None, *cells.tolist()[1:]]
    table = {
        "numpy": lambda: cells[:, None],
        "pandas": lambda: pd.DataFrame({"x0": cells}),
        "nullable": lambda: pd.DataFrame({"x0": pd.array(lost, dtype="boolean")}),
        "arrow": lambda: pyarrow.table({"x0": lost}),
        "polars": lambda: polars.DataFrame({"x0": lost}),
    }[container]()
    fitted = model(domain="learn").fit(table, y)
    assert fitted.domain_.columns["x0"] == Categorical([False, True], other=True)
    assert fitted.coef_names_ == ["x0=False", "x0=True", "x0=<other>"]
    assert (fitted.predict(table) == cells)[1:].all()
    assert fitted.release_.verify()
    save(fitted, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.domain_ == fitted.domain_
    np.testing.assert_array_equal(again.predict(table), fitted.predict(table))


def test_a_number_that_is_almost_always_missing_has_a_summary():
    rng = np.random.default_rng(0)
    table = {"x": np.where(np.arange(N) < 2, 5.0, np.nan), "job": rng.choice(["a", "b"], N)}
    schema = Schema({"x": Numeric(scale="log", missing=True), "job": Categorical(["a", "b"])})
    fitted = model(domain=schema).fit(table, (table["job"] == "a").astype(int))
    assert "x" in str(fitted.summary())
