"""Reports: every model has one, nothing in it runs, and it says what was released and no more."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import mpmath
import numpy as np
import pytest
from makers.markup import assert_harmless
from makers.raises import assert_reached, messages_of

import privfit
from privfit import (
    BernoulliNB,
    BudgetError,
    Categorical,
    HashWords,
    KMeans,
    KMedian,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Schema,
    SelectFeatures,
    accuracy_score,
    confusion_matrix,
    learn_schema,
    roc_auc_score,
    roc_curve,
)
from privfit.privacy.released import ReleasedFloat
from privfit.report import html
from privfit.report.estimates import Estimate
from privfit.report.guarantee import Odds, percent_up, rounded_up

EVIL = """<script>alert(1)</script>"""
SECRET = 98765.4321
N = 1200

coins = np.random.default_rng(0)
AGE = coins.integers(18, 90, N).astype(float)
JOB = coins.choice(["clerk", EVIL, "R&D"], N)
OLD = AGE + coins.normal(0, 10, N) > 50
TABLE = {"age": AGE, "job": JOB}
SCHEMA = Schema({"age": Numeric(17, 90), "job": Categorical(["clerk", EVIL, "R&D"])})
BITS = coins.random((N, 12)) < 0.3
POINTS = coins.uniform(-1, 1, (N, 2))


def fitted(model, *table):
    """A model whose noise is not from a seed."""
    return model.fit(*table)


MODELS = {
    "logistic": lambda: fitted(
        LogisticRegression(1.0, 1e-6, domain=SCHEMA, classes=[False, True]), TABLE, OLD
    ),
    "svm": lambda: fitted(
        LinearSVC(1.0, 1e-6, domain="learn", classes=[EVIL, "no"], adjacency="add_remove",
                  n_public=N), TABLE, np.where(OLD, EVIL, "no")),
    "three classes": lambda: fitted(
        LogisticRegression(3.0, domain=(-1, 1), classes=[0, 1, 2], solver="local"),
        POINTS, np.arange(N) % 3),
    "means": lambda: fitted(KMeans(3, 1.0, domain=SCHEMA), TABLE),
    "two columns": lambda: fitted(KMeans(3, 1.0, domain=(-1, 1)), POINTS),
    "medians": lambda: fitted(KMedian(2, 1.0, facilities=POINTS[:30], domain=(-1, 1)), POINTS),
    "bayes": lambda: fitted(BernoulliNB(1.0, classes=[0, 1]), BITS, OLD.astype(int)),
    "features": lambda: fitted(
        SelectFeatures(1.0, k=3, classes=[0, 1]), BITS, OLD.astype(int)),
    "curve": lambda: roc_curve(OLD, AGE / 100, 1.0, pos_label=True),
    "matrix": lambda: confusion_matrix(OLD, AGE / 100, 1.0, pos_label=True),
}  # fmt: skip
SECTIONS = ["What was released", "The guarantee", "Budget", "Settings", "Checks", "Versions"]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_every_model_has_a_report_in_which_nothing_runs(model):
    page = assert_harmless(html(model, title=EVIL, date=EVIL))
    assert all(title in page.text for title in SECTIONS)
    assert page.text.count(EVIL) >= 3  # the title twice, and the date
    assert f"({type(model).__name__})" in page.text
    assert "failed" not in page.text
    policy = [marks["content"] for tag, marks in page.elements if "http-equiv" in marks]
    assert policy[0].startswith("default-src 'none'")


def test_a_report_is_a_function_of_the_model(model):
    assert html(model) == html(model)
    assert "20" + "26" not in re.sub(r'"data:[^"]*"|[0-9a-f]{64}', "", html(model))[:2000]


def test_a_file_and_the_model_that_it_holds_have_the_same_report(model, tmp_path):
    privfit.save(model, tmp_path / "model.json")
    of_file = html(tmp_path / "model.json")
    assert "SHA-256" in of_file
    assert str(tmp_path) not in of_file

    def numbers(text):
        return text.partition("<h2>Versions")[0]

    assert numbers(of_file) == numbers(html(privfit.load(tmp_path / "model.json")))
    if hasattr(model, "ledger"):
        assert numbers(of_file) == numbers(html(model))


def test_without_matplotlib_there_are_tables(model):
    with mock.patch.dict(sys.modules, {"matplotlib": None}):
        page = assert_harmless(html(model))
    assert "img" not in page.tags
    if hasattr(model, "shape") and model.domain_.column_names:
        assert "adds" in page.text
    if hasattr(model, "auc"):
        assert "true positives" in page.text


def test_names_of_columns_categories_and_classes_are_shown_as_they_are():
    assert f"job={EVIL}" in assert_harmless(html(MODELS["logistic"]())).text
    assert EVIL in assert_harmless(html(MODELS["svm"]())).text


# ---------------------------------------------------------------------------- what it must not say


def test_no_record_is_in_a_report():
    """One that is far outside, and a category of one person: neither is shown."""
    table = {"age": AGE.copy(), "job": JOB.astype(object)}
    table["age"][3], table["job"][3] = SECRET, "astronaut"
    schema = Schema({"age": Numeric(17, 90), "job": Categorical(["clerk", EVIL], other=True)})
    made = LogisticRegression(1.0, domain=schema, classes=[False, True]).fit(table, OLD)
    shown = html(made) + made._repr_html_() + made.release_._repr_html_() + schema._repr_html_()
    for secret in (str(SECRET)[:6], "astronaut"):
        assert secret not in shown


def test_a_release_that_promises_too_little_has_no_report():
    made = MODELS["two columns"]()
    made.release_ = replace(made.release_, epsilon=0.5)
    with pytest.raises(BudgetError, match=r"promises epsilon 0\.5 but its events cost"):
        html(made)


def test_a_seed_is_the_first_thing_that_is_said():
    made = KMeans(2, 1.0, domain=(-1, 1), random_state=0)
    made.fit(POINTS)
    page = assert_harmless(html(made))
    assert page.text.index("Not private.") < page.text.index("What was released")
    assert "2 of 3" in page.text
    assert "failed: this was drawn with a seed" in page.text


def test_a_model_that_holds_more_than_was_released_is_found():
    made = MODELS["two columns"]()
    made.cluster_centers_ = made.cluster_centers_ + 0.25
    assert "not checked: cluster_centers_ must be what was released" in html(made)


# ------------------------------------------------------------------------------------- what it says


def test_ledger_accuracy_and_curve_are_in_it():
    ledger = Ledger(4.0, 1e-5)
    made = LogisticRegression(
        1.0, 1e-6, domain=SCHEMA, classes=[False, True], ledger=ledger
    ).fit(TABLE, OLD)  # fmt: skip
    scores = made.predict_proba(TABLE)[:, 1]
    curve = roc_curve(OLD, scores, 1.0, pos_label=True, ledger=ledger)
    accuracy = accuracy_score(OLD, scores, 1.0, pos_label=True, ledger=ledger)
    page = assert_harmless(html(made, curve={EVIL: curve}, accuracy=accuracy))
    assert f"{100 * accuracy:.1f} % of records are predicted correctly" in page.text
    assert f"{curve.auc:.4f}" in page.text
    assert "Ledger, replace" in page.text
    assert "spent all 3 1e-06" in page.text
    assert "8 of 8" in page.text  # two checks of three releases, the file, the ledger
    assert "No released accuracy was passed to this report" in html(made)
    assert "Calibration" in html(made)


def test_what_was_bought_is_told_from_what_was_declared():
    page = assert_harmless(html(MODELS["svm"]()))
    assert "number any number, cut at" in page.text
    assert page.text.count(" bought") >= 2
    declared = assert_harmless(html(MODELS["means"]())).text
    assert "category clerk, <script>alert(1)</script>, R&D given to the fit" in declared
    bought = learn_schema(TABLE, 1.0, 1e-6, columns={"age": "number", "job": "category"})
    made = LogisticRegression(1.0, domain=bought, classes=[False, True]).fit(TABLE, OLD)
    page = assert_harmless(html(made))
    assert "bought before the fit: age, job, for epsilon 1, delta 1e-06" in page.text
    assert "the schema: its" in page.text


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
def test_odds_are_those_of_the_worst_release_there_is(epsilon, delta):
    """Which says the truth with probability delta, and otherwise randomises its response."""
    odds, e = Odds(epsilon, delta), mpmath.exp(epsilon)
    truth = [(delta, 0), ((1 - delta) * e / (1 + e), (1 - delta) / (1 + e)),
             ((1 - delta) / (1 + e), (1 - delta) * e / (1 + e)), (0, delta)]  # fmt: skip
    assert odds.factor == pytest.approx(float(e))
    assert odds.success == pytest.approx(float(sum(max(p) for p in truth)) / 2)
    for alarms in (0.0, 0.01, 0.05, 0.5, 1.0):
        # Neyman and Pearson: accuse where the ratio is largest, until false alarms are used up
        left, power = mpmath.mpf(alarms), mpmath.mpf(0)
        for member, other in truth:
            share = 1 if other <= left else left / other
            power, left = power + share * member, left - share * other
        assert odds.power(alarms) == pytest.approx(float(power), abs=1e-12)
    assert odds.posterior(0.5) == pytest.approx(float(e / (1 + e)))


def test_numbers_are_rounded_up_where_they_are_bounds():
    assert percent_up(0.73105) == "73.2 %"
    assert percent_up(0.5) == "50.0 %"
    assert percent_up(1.0) == "100.0 %"
    assert [rounded_up(x, 4) for x in (np.e, 1.0, 22026.4658, 1e30)] == [
        "2.719", "1", "2.203e+4", "1.001e+30"
    ]  # fmt: skip
    assert Odds(1e6, 0.0).success == 1.0


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("released", ["score", "matrix"])
def test_intervals_of_an_accuracy_cover_it(adjacency, released):
    """400 draws miss 95 % by chance: above 60 misses with a probability below 1e-12 at 5 %."""
    rng, share, n, missed = np.random.default_rng(1), 0.8, 300, 0
    for seed in range(400):
        y = rng.integers(0, 2, n)
        guess = np.where(rng.random(n) < share, y, 1 - y)
        release = accuracy_score if released == "score" else confusion_matrix
        found = release(y, guess, 0.2, classes=[0, 1], adjacency=adjacency, random_state=seed)
        estimate = Estimate.of(found)
        assert 0 <= estimate.lower <= estimate.value <= estimate.upper <= 1
        missed += not estimate.lower <= share <= estimate.upper
    assert missed <= 60
    assert estimate.upper - estimate.lower < 0.6


def test_an_accuracy_at_the_end_of_its_range_says_nothing_of_its_size():
    y = np.array([0, 1])
    found = None
    for seed in range(50):
        found = accuracy_score(y, y, 0.5, classes=[0, 1], random_state=seed)
        if found == 1.0:
            break
    estimate = Estimate.of(found)
    assert (estimate.lower, estimate.upper) == (0.0, 1.0)


# -------------------------------------------------------------------------------------- wrong input

WRONG = [
    (lambda: html(KMeans(2)), r"model \(KMeans\) must have been released; pass a fitted estimator"),
    (lambda: html(HashWords(8)), r"model \(HashWords\) must have been released"),
    (lambda: html(None), r"model \(NoneType\) must have been released"),
    (lambda: html(MODELS["features"](), ledger=3), r"ledger \(int\) must be a Ledger; pass the on"),
    (lambda: html(MODELS["features"](), curve=3), r"curve \('ROC': int\) must be a RocCurve; pass"),
    (lambda: html(MODELS["features"](), curve={"a": 3}), r"curve \('a': int\) must be a RocCurve"),
    (lambda: html(MODELS["features"](), title=" "), r"title \(' '\) must be a text; pass such as"),
    (lambda: html(MODELS["features"](), title=3), r"title \(3\) must be a text"),
    (lambda: html(MODELS["features"](), accuracy=0.9),
     r"accuracy \(float\) must be one that was released; pass what privfit.accuracy_score or"),
    (lambda: html(MODELS["features"](), accuracy=roc_auc_score(OLD, AGE, 1.0, pos_label=True)),
     r"accuracy \(ReleasedFloat\) must be one that was released"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_input_is_refused_with_its_remedy(call, message):
    with pytest.raises(privfit.PrivfitError, match=message):
        call()


def test_every_refusal_of_a_report_is_tried():
    room = Path(privfit.report.document.__file__).parent
    seen = "\n".join(messages_of(call) for call, _ in WRONG)
    assert_reached([room / "document.py", room / "estimates.py", room / "guarantee.py"], seen)
    assert isinstance(roc_auc_score(OLD, AGE, 1.0, pos_label=True), ReleasedFloat)
