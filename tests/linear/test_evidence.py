"""Weights of evidence: sensitivities, what is released, the twin, and where the rule takes them."""

from __future__ import annotations

import itertools
import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES
from scipy.special import logit

from privfit import (
    Budget,
    Categorical,
    Coding,
    DeclarationError,
    Evidence,
    Ledger,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Reals,
    Schema,
    Stream,
)
from privfit.audit import audit_solver
from privfit.linear import auto, evidence
from privfit.linear.coding import _coarse_cuts, coded
from privfit.linear.recipe import Recipe
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE

both = pytest.mark.parametrize("adjacency", ADJACENCIES)

FEW = Schema(
    {"x": Numeric(0, 10, bins=[2, 5], missing=True), "z": Categorical(["a", "b", "c"]),
     "w": Categorical(["u", "v"])}
)  # fmt: skip
PLAIN = Schema({"x": Numeric(0, 100), "y": Numeric(-1, 9), "z": Categorical(["a", "b", "c"])})

BLANK = Schema({"x": Numeric(), "y": Numeric(-1, 9), "z": Categorical()})


def people(n: int, seed: int = 0) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    table = {"x": rng.uniform(0, 10, n), "y": rng.uniform(-1, 9, n),
             "z": rng.choice(list("abc"), n), "w": rng.choice(["u", "v"], n)}  # fmt: skip
    return table, (rng.uniform(0, 10, n) < np.where(table["z"] == "a", 8, table["x"] / 2)) * 1


def model(epsilon: float = 1.0, domain: Any = FEW, **more: Any) -> Any:
    given = {"classes": [0, 1], "random_state": 0, "n_public": 1000, "solver": "evidence"} | more
    return LogisticRegression(epsilon, domain=domain, **given)


class Exact:
    """Noise that is 0, of the deviation that was asked for."""

    right = staticmethod(evidence.DiscreteLaplace)

    def __init__(self, epsilon: float, sensitivity: int) -> None:
        noise = self.right(epsilon, sensitivity)
        self.event, self.scale, self.sensitivity = noise.event, noise.scale, sensitivity

    def __call__(self, value: Any, rng: Any = None) -> Any:
        return np.asarray(value)


# ---------------------------------------------------------------------------------------- the proof


def sums_of(record: tuple[Any, ...], label: int) -> tuple[int, Any]:
    """What one record adds to the balance and to the counts."""
    table = dict(zip("xzw", ([cell] for cell in record), strict=True))
    objective = LinearObjective(table, [label], "logistic", FEW)
    lower, upper = objective.label_counts().tolist()
    return upper - lower, objective.level_counts()


@both
def test_noise_hides_the_largest_change_of_each_sum(adjacency, monkeypatch):
    """Against all records of a small schema, and all pairs of them."""
    drawn: list[int] = []

    class Spy(evidence.DiscreteLaplace):  # type: ignore[misc]
        def __call__(self, value: Any, rng: Any = None) -> Any:
            drawn.append(self.sensitivity)
            return super().__call__(value, rng)

    monkeypatch.setattr(evidence, "DiscreteLaplace", Spy)
    model(adjacency=adjacency).fit(*people(100))
    cells = itertools.product([0.0, 3.0, 9.0, None], "abc", "uv")
    sums = [sums_of(record, label) for record in cells for label in (0, 1)]
    if adjacency == "replace":
        pairs = list(itertools.combinations(sums, 2))
        balance = max(abs(a[0] - b[0]) for a, b in pairs)
        counts = max(np.abs(a[1] - b[1]).sum() for a, b in pairs)
    else:
        balance = max(abs(one[0]) for one in sums)
        counts = max(np.abs(one[1]).sum() for one in sums)
    assert drawn == [balance, counts]


@pytest.mark.slow
@both
def test_the_audit_passes_and_finds_a_planted_fault(adjacency, monkeypatch):
    def made(records: Any) -> LinearObjective:
        rows, labels = zip(*records, strict=True)
        table = dict(zip("xzw", map(list, zip(*rows, strict=True)), strict=True))
        return LinearObjective(table, list(labels), "logistic", FEW)

    records = [((0.0, "a", "u"), 0), ((3.0, "b", "v"), 1), ((9.0, "c", "u"), 0)]
    audit = partial(audit_solver, Evidence(), made, Reals(-1e6, 1e6, FEW.width + 1), 1.0, 0.0,
                    records=records, n=2, adjacency=adjacency, seeds=range(1))  # fmt: skip
    assert audit().passes()
    right = evidence.DiscreteLaplace
    monkeypatch.setattr(evidence, "DiscreteLaplace", lambda e, most: right(e, -(-most // 3)))
    assert not audit().passes()  # as if a record were counted in one column


# ------------------------------------------------------------------------------- what is released


@both
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_weights_are_those_of_the_twin(adjacency, epsilon):
    found = model(epsilon, adjacency=adjacency, calibrate=False)
    counts: list[Any] = []
    right = evidence._weights

    def noted(*arguments: Any) -> Any:
        counts.append(arguments)
        return right(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "_weights", noted)
        found.fit(*people(1000))
    ((noisy, variance, _, odds, size),) = counts
    expected, spread = list[float](), 0.0
    for (name, column), group in zip(FEW.columns.items(), FEW.groups, strict=True):
        ordered = column.width - 1 if name == "x" else 0
        weights, part = reference.weights_of_evidence(
            noisy[:, group].tolist(), variance, odds, size, ordered
        )
        expected, spread = expected + weights, spread + part
    assert found.coef_[0] == pytest.approx(expected, abs=2e-6)
    intercept = reference.levelled_intercept(odds, spread / 0.6)
    assert found.intercept_[0] == pytest.approx(intercept, abs=1e-5)


@pytest.mark.parametrize(
    "column",
    [Numeric(0, 10, bins=[2, 5, 7, 8]), Numeric(0, 10, bins=3, missing=True), Categorical(["a"]),
     Numeric(0, 10, bins=1), Numeric(0, 10, bins=1, missing=True), Categorical(range(7))],
    ids=repr,
)  # fmt: skip
def test_levels_of_any_column_are_those_of_the_twin(column):
    rng = np.random.default_rng(0)
    ordered = column.width - column.missing if column.holds_numbers else 0
    for variance in (0.01, 8.0, 1e6):
        counts = rng.normal(20, 10 + variance**0.5, (2, column.width))
        ((found, spread),) = evidence._weights(counts, variance, {"x": column}, 0.3, 200)
        expected, part = reference.weights_of_evidence(counts.tolist(), variance, 0.3, 200, ordered)
        assert found == pytest.approx(expected, abs=1e-9)
        assert spread == pytest.approx(part, abs=1e-9)


@pytest.mark.parametrize("column", [Numeric(0, 10, bins=6000), Categorical(range(6000))],
                         ids=["number", "category"])  # fmt: skip
def test_memory_grows_with_the_number_of_levels_and_not_with_its_square(column):
    x = np.random.default_rng(0).integers(0, 10, 300)
    tracemalloc.start()
    try:
        found = model(domain=Schema({"x": column})).fit({"x": x}, x > 4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.coef_.shape == (1, 6000)
    assert peak < 100_000_000 < 8 * 6000**2


def test_without_noise_weights_are_damped_log_odds_of_levels(monkeypatch):
    monkeypatch.setattr(evidence, "DiscreteLaplace", Exact)
    table, y = people(200_000)
    found = model(100.0, n_public=200_000, calibrate=False).fit(table, y)
    of_w = [logit(y[table["w"] == name].mean()) for name in "uv"]
    weights = found.coef_[0, FEW.groups[2]]
    assert weights[1] - weights[0] == pytest.approx(0.6 * (of_w[1] - of_w[0]), abs=0.01)
    assert found.predict_proba(table)[:, 1].mean() == pytest.approx(y.mean(), abs=0.01)


@both
def test_the_budget_is_spent_by_two_releases_and_a_calibration(adjacency):
    ledger = Ledger(1.0)
    found = model(adjacency=adjacency, ledger=ledger).fit(*people(1000))
    kinds = [(event.kind, event.count) for event in found.release_.events]
    assert kinds == [("pure", 1)] * 3
    assert found.release_.verify()
    assert 0.999 < sum(event.parameter for event in found.release_.events) <= 1.0
    assert ledger.remaining.epsilon == 0
    assert found.release_.settings["calibration"]["share"] == 0.15
    assert found.release_.settings["balance"] == pytest.approx(
        40 * (2 if adjacency == "replace" else 1) / (1000 * 0.85), rel=1e-3
    )


@both
@pytest.mark.parametrize("coding", ["auto", "declared", Coding(family="log")], ids=str)
def test_a_delta_is_left_unused(coding, adjacency):
    domain = FEW if coding == "declared" else BLANK
    ledger = Ledger(1.0, 1e-6)
    made = {"domain": domain, "coding": coding, "adjacency": adjacency}
    found = model(delta=1e-6, ledger=ledger, **made).fit(*people(1000))
    pure = model(**made).fit(*people(1000))
    assert found.release_.events == pure.release_.events
    assert found.release_.settings == pure.release_.settings
    assert np.array_equal(found.coef_, pure.coef_)
    assert found.intercept_ == pure.intercept_
    assert ledger.spent == Budget(1.0, 1e-6) == Budget(found.release_.epsilon, found.release_.delta)


@both
def test_names_are_bought_with_a_delta_and_everything_else_without(adjacency):
    schema = Schema({"x": Numeric(), "z": Categorical(names="bought")})
    found = model(domain=schema, delta=1e-6, adjacency=adjacency).fit(*people(1000))
    release = found.release_
    assert release.verify()
    assert set(found.domain_.columns["z"].values) <= set("abc")
    rest = release.settings["blanks"]["rest"]
    assert rest["delta"] == 0
    assert rest["epsilon"] > 0.8
    assert [(one["kind"], one["count"]) for one in rest["events"]] == [("pure", 1)] * 3
    parts = [one["parameter"] for one in rest["events"]]
    assert sum(parts) == pytest.approx(rest["epsilon"], rel=1e-3)
    assert parts[-1] == pytest.approx(0.15 * rest["epsilon"], rel=1e-3)
    assert release.settings["calibration"]["share"] == 0.15


@both
@pytest.mark.parametrize("coding", ["auto", Coding(), Coding(cuts=2), Coding(family="log"),
                                    Coding(family="quantile")], ids=str)  # fmt: skip
@pytest.mark.parametrize("names", [None, "bought"])
def test_what_is_bought_with_a_delta_leaves_enough_for_the_counts(names, coding, adjacency):
    ledger = Ledger(2.0, 1e-5)
    schema = Schema({"x": Numeric(), "y": Numeric(-1, 9), "z": Categorical(names=names)})
    found = model(
        domain=schema, delta=1e-6, coding=coding, adjacency=adjacency, ledger=ledger
    ).fit(*people(1000))  # fmt: skip
    assert found.release_.settings["solver"] == "evidence"
    assert found.release_.verify()
    assert np.isfinite([*found.coef_[0], *found.intercept_]).all()
    assert ledger.spent == Budget(1.0, 1e-6)


def test_there_is_room_for_any_number_of_columns():
    """No products of columns are made, which an additive model has room for at most 4,095 of."""
    blank = Schema({**{f"x{i}": Numeric() for i in range(25)}, "z": Categorical()})
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.uniform(0, 10, 20_000) for i in range(25)}
    table["z"] = rng.choice(list("abc"), 20_000)
    for coding in ("auto", Coding(family="log")):
        found = model(10.0, blank, coding=coding, n_public=20_000).fit(table, table["z"] == "a")
        assert found.release_.verify()


def test_several_classes_share_the_budget():
    table, _ = people(1000)
    found = model(classes=[0, 1, 2]).fit(table, np.arange(1000) % 3)
    assert found.release_.verify()
    assert found.coef_.shape == (3, FEW.width)


def test_records_in_blocks_give_the_same_model(tmp_path):
    import pyarrow as pa

    table, y = people(1000)
    for domain in (FEW, PLAIN):
        whole = model(domain=domain).fit(table, y)
        stream = Stream(pa.table({**table, "label": y}), folder=tmp_path)
        parts = model(domain=domain).fit(stream, "label")
        assert np.array_equal(whole.coef_, parts.coef_)
        assert whole.intercept_ == parts.intercept_


def test_it_learns_from_few_records():
    table, y = people(500)
    fresh, labels = people(4000, seed=1)
    accuracy = [
        (model(2.0, PLAIN, n_public=500, random_state=seed).fit(table, y).predict(fresh) == labels)
        .mean() for seed in range(5)
    ]  # fmt: skip
    assert np.mean(accuracy) > max(labels.mean(), 1 - labels.mean()) + 0.05


# ------------------------------------------------------------------------------------------- codes


def test_a_decade_has_two_cuts_where_numbers_are_few():
    schema = Schema({"gain": Numeric(0, 1000, fill=0), "free": Numeric()})
    recipe = Recipe.pure(1000, 0.1, ADD_REMOVE, 6, 5)
    found = coded(schema, Coding(family="decades"), recipe).columns
    cuts = [0.1, 0.3, 1, 3, 10, 30, 100, 250, 300, 500, 750]
    assert found["gain"] == Numeric(0, 1000, bins=cuts, fill=0)
    positive = [1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6]
    negative = [-1000, -300, -100, -30, -10, -3, -1]
    assert found["free"] == Numeric(bins=[*negative, 0, *positive], missing=True)


def test_numbers_are_cut_at_powers_of_ten_and_at_quarters():
    schema = Schema(
        {"age": Numeric(17, 90), "gain": Numeric(0, 1000, fill=0), "pay": Numeric(-1, 9),
         "free": Numeric(), "job": Categorical(), "own": Numeric(0, 1, bins=[0.5])}
    )  # fmt: skip
    recipe = Recipe.pure(1000, 0.1, ADD_REMOVE, 16, 15)
    found = coded(schema, Coding(family="decades"), recipe).columns
    assert found["age"] == Numeric(17, 90, bins=[35.25, 53.5, 71.75], missing=True)
    assert found["gain"] == Numeric(0, 1000, bins=[0.1, 1, 10, 100, 250, 500, 750], fill=0)
    assert found["pay"].bins == (-0.1, -0.01, -0.001, 0.001, 0.01, 0.1, 1.0, 1.5, 4.0, 6.5)
    assert found["free"].bins == (-1000, -100, -10, -1, 0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6)
    assert found["job"].hashes
    assert found["own"] == schema.columns["own"]


@pytest.mark.parametrize("per_decade", [1, 2])
def test_no_two_coarse_cuts_are_the_same_in_single_precision(per_decade):
    assert _coarse_cuts(Numeric(0, 0.4), 2)[-3:] == [0.1, 0.2, 0.3]
    ends = [i / 1000 for i in range(1, 2000)] + [1e-30, 0.13333333333333333, 1e6, 3e37]
    for end in ends:
        for low in (0.0, -end, end / 3):
            cuts = [low, *_coarse_cuts(Numeric(low, end), per_decade), end]
            assert (np.diff(np.array(cuts, dtype=np.float32)) > 0).all()


def test_decades_take_no_cuts():
    with pytest.raises(DeclarationError, match=r"cuts \(3\) must be left out for family 'decades'"):
        Coding(cuts=3, family="decades")


# --------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("signal", "columns", "numbers", "expected"),
    [
        (11, 20, 10, False),
        (13, 20, 10, True),
        (13, 10, 5, False),  # n epsilon of 130 changes buys an intercept alone
        (17, 10, 5, True),
        (199, 20, 10, True),
        (201, 20, 10, False),
        (301, 20, 10, False),
        (100, 20, 0, False),
        (100, 40, 29, True),
        (100, 40, 30, False),
    ],
)
def test_counts_follow_from_public_numbers(signal, columns, numbers, expected):
    for neighbours in (ADD_REMOVE, REPLACE):
        size = 1000 * neighbours.changes
        recipe = Recipe.pure(size, signal * columns / 1000, neighbours, columns, numbers)
        assert recipe.coarse is expected
        assert recipe.per_decade == (1 if numbers >= 15 else 2)
        chosen = auto.choose_additive(0.0, recipe.coarse)
        assert isinstance(chosen, Evidence) is expected
        ranged = Recipe.pure(size, signal * columns / 1000, neighbours, columns, numbers, numbers)
        assert ranged.coarse is (expected or (numbers == 10 and 200 < signal < 300))
    assert not Recipe.pure(None, 1.0, ADD_REMOVE, columns, numbers).coarse
    assert not Recipe.pure(10**12, 1e-8, ADD_REMOVE, 200, 10).coarse  # there is no noise


def test_the_default_counts_levels_where_records_are_few():
    table, y = people(1000)
    found = model(0.2, PLAIN, solver="auto").fit(table, y)
    assert found.release_.settings["solver"] == "evidence"
    assert found.domain_.columns["x"].bins == (
        0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 25.0, 30.0, 50.0, 75.0
    )  # fmt: skip
    blank = model(0.2, Schema.blank({"x": "number", "z": "category"}), solver="auto").fit(table, y)
    assert blank.release_.settings["solver"] == "evidence"
    more = model(2.0, PLAIN, solver="auto").fit(table, y)
    assert more.release_.settings["solver"] == "objective"
    named = model(0.2, PLAIN, solver="objective").fit(table, y)
    assert named.domain_ == PLAIN  # columns stay as they are for a solver that was passed


@both
@pytest.mark.parametrize(("coding", "solver"), [
    (Coding(), "evidence"), (Coding(family="decades"), "evidence"), (Coding(cuts=3), "objective"),
    (Coding(family="quantile", cuts=2), "evidence"), (Coding(dimensions=4), "objective"),
])  # fmt: skip
def test_a_coding_is_followed_where_a_delta_is_left_and_levels_are_counted(
    coding, solver, adjacency
):
    """With so small a delta Gaussian noise has 14 times the deviation."""
    schema = Schema({**BLANK.columns, **{f"w{i}": Categorical(["u", "v"]) for i in range(7)}})
    size = 1000 if adjacency == "add_remove" else 2000
    made = {"domain": schema, "coding": coding, "adjacency": adjacency, "n_public": size}
    table, y = people(size)
    table |= {f"w{i}": table["w"] for i in range(7)}
    found = model(0.17, delta=1e-50, solver="auto", **made).fit(table, y)
    said = found.release_.settings
    assert said["solver"] == solver
    assert {event.kind for event in found.release_.events} <= {"pure", "selection"}
    assert ("levels" in said.get("blanks", {})) == bool(coding.cuts)
    if coding.cuts:
        assert said["blanks"]["levels"] == coding.cuts
    if coding.dimensions:
        assert said["functions"] == coding.dimensions


# ---------------------------------------------------------------------------------------- refusals


def test_what_cannot_be_counted_is_refused_before_the_charge():
    ledger = Ledger(1.0)
    table, y = people(100)
    more = {"ledger": ledger}
    with pytest.raises(DeclarationError, match="'evidence' is for log odds; pass LogisticRegr"):
        LinearSVC(1.0, domain=FEW, classes=[0, 1], solver="evidence", **more).fit(table, y)
    with pytest.raises(DeclarationError, match=r"fit_intercept \(False\) must be True for solver"):
        model(fit_intercept=False, **more).fit(table, y)
    with pytest.raises(DeclarationError, match=r"domain \(\['x', 'y'\]\) must be a Schema of lev"):
        model(domain=PLAIN, coding="declared", **more).fit(table, y)
    with pytest.raises(DeclarationError, match=r"domain \(Box\) must be a Schema of levels"):
        model(domain=(-1, 1), **more).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(DeclarationError, match=r"n_public must be given .* public estimate"):
        model(adjacency="add_remove", n_public=None, **more).fit(table, y)
    named = Schema({"z": Categorical(names="bought")})
    with pytest.raises(DeclarationError, match=r"epsilon .* too small for counts.*'majority'"):
        model(1e-9, named, delta=1e-6, **more).fit(table, y)
    assert ledger.remaining.epsilon == 1.0
    with pytest.raises(DeclarationError, match=r"epsilon .* too small for counts.*'majority'"):
        model(1e-7).fit(table, y)
