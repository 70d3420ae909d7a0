"""Evaluations in model files: kept, checked like files of their own, and gone after a new fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from makers.raises import assert_reached, messages_of
from sklearn.pipeline import Pipeline

import privfit
from privfit import (
    KMeans,
    LogisticRegression,
    Numeric,
    Schema,
    accuracy_score,
    confusion_matrix,
    learn_schema,
    roc_auc_score,
    roc_curve,
)
from privfit.models.model import check, dumps, load, loads, save
from privfit.privacy.purchases import Purchase

COINS = np.random.default_rng(0)
TABLE = {"x": COINS.uniform(0, 10, 900), "y": COINS.uniform(0, 10, 900)}
LABEL = TABLE["x"] > 5
SCHEMA = Schema({"x": Numeric(0, 10), "y": Numeric(0, 10)})


@pytest.fixture(scope="module")
def model():
    return LogisticRegression(1.0, domain=SCHEMA, classes=[False, True]).fit(TABLE, LABEL)


@pytest.fixture(scope="module")
def evaluated(model):
    chances = model.predict_proba(TABLE)[:, 1]
    return {"accuracy": accuracy_score(LABEL, chances, 1.0, pos_label=True, random_state=0),
            "curve": roc_curve(LABEL, chances, 1.0, pos_label=True, random_state=1)}  # fmt: skip


def test_a_file_keeps_evaluations_and_gives_them_back(model, evaluated, tmp_path):
    save(model, tmp_path / "model.json", **evaluated)
    again = load(tmp_path / "model.json")
    assert again.evaluations_["accuracy"] == evaluated["accuracy"]
    assert again.evaluations_["accuracy"].release.verify()
    assert again.evaluations_["curve"].auc == evaluated["curve"].auc
    assert dumps(again) == (tmp_path / "model.json").read_text(encoding="utf-8")
    assert check(dumps(again)).version == 6
    assert check(dumps(model)).version == 3
    assert not hasattr(loads(dumps(model)), "evaluations_")


def test_a_matrix_may_stand_for_the_accuracy(model):
    matrix = confusion_matrix(LABEL, model.predict(TABLE), 1.0, classes=[False, True])
    again = loads(dumps(model, accuracy=matrix))
    assert again.evaluations_["accuracy"].accuracy == matrix.accuracy


def test_a_new_fit_forgets_the_evaluations_of_the_old_one(model, evaluated):
    again = loads(dumps(model, **evaluated))
    again.fit(TABLE, LABEL)
    assert "evaluations" not in json.loads(dumps(again))


def test_an_accuracy_has_a_file_of_its_own(evaluated):
    again = loads(dumps(evaluated["accuracy"]))
    assert again == evaluated["accuracy"].value
    assert again.release.to_json() == evaluated["accuracy"].release.to_json()


def edited(text: str, *path: object, to: object) -> str:
    held = json.loads(text)
    inner = held
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return json.dumps(held)


SCORES = ("release", "parameters")
REFUSED = {
    "no field": (("evaluations",), {}, r"evaluations must be accuracy or curve, or both; pass"),
    "another": (("evaluations", "area"), {}, r"evaluations must be accuracy or curve"),
    "a model": (("evaluations", "curve", "class"), "KMeans", r"curve must be a RocCurve; pass"),
    "swapped": (("evaluations", "accuracy", "class"), "RocCurve",
                r"accuracy must be a ReleasedFloat or ConfusionMatrix; pass"),
    "too good": (("evaluations", "accuracy", *SCORES, "accuracy"), 1.5,
                 r"an accuracy must be a share with its noisy counts"),
    "no counts": (("evaluations", "accuracy", *SCORES, "noisy"), ["a"],
                  r"an accuracy must be a share with its noisy counts"),
    "cheaper": (("evaluations", "accuracy", "release", "epsilon"), 0.1, r"cost|epsilon"),
    "texts": (("evaluations", "curve", *SCORES, "noisy", 0, 0), "", r"noisy"),
    "older": (("privfit-model",), 3, r"evaluations is missing or unknown"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_evaluations_are_refused(model, evaluated, name):
    path, value, message = REFUSED[name]
    with pytest.raises(privfit.PrivfitError, match=message):
        loads(edited(dumps(model, **evaluated), *path, to=value))


def clusters():
    return KMeans(2, 1.0, domain=SCHEMA).fit(TABLE)


def test_what_was_not_released_is_not_kept(model, evaluated):
    calls = {
        r"accuracy \(float\) must be one that was released; pass what privfit.accuracy_score":
            lambda: dumps(model, accuracy=0.9),
        r"curve \(ReleasedFloat\) must be one that was released; pass what privfit.roc_curve":
            lambda: dumps(model, curve=evaluated["accuracy"]),
        r"estimator \(KMeans\) must be one of LogisticRegression, LinearSVC, BernoulliNB":
            lambda: dumps(clusters(), **evaluated),
        r"estimator \(Pipeline\) must be one of LogisticRegression":
            lambda: dumps(Pipeline([("model", model)]), **evaluated),
        r"ReleasedFloat must be an accuracy to be written; save the curve":
            lambda: dumps(roc_auc_score(LABEL, TABLE["x"] / 10, 1.0, pos_label=True)),
    }  # fmt: skip
    for message, call in calls.items():
        with pytest.raises(ValueError, match=message):
            call()
    calls_of_files = [lambda row=row: loads(edited(dumps(model, **evaluated), *row[0], to=row[1]))
                      for row in REFUSED.values()]  # fmt: skip
    source = Path(privfit.__file__).parent / "models" / "evaluations.py"
    assert_reached([source], "\n".join(map(messages_of, [*calls.values(), *calls_of_files])))


# ------------------------------------------------------------------------------- bought schemas


@pytest.fixture(scope="module")
def bought():
    return learn_schema(TABLE, 1.0, columns={"x": "number", "y": Numeric(0, 10)})


def test_a_bought_schema_keeps_its_price_in_every_file(bought, tmp_path):
    mark = Purchase.of(bought.bought)
    assert (mark.epsilon, mark.delta, mark.adjacency, mark.columns) == (1.0, 0.0, "replace", ("x",))
    (tmp_path / "schema.toml").write_text(bought.to_toml(), encoding="utf-8")
    read = Schema.from_toml(tmp_path / "schema.toml")
    assert read.bought == bought.bought
    assert read == bought
    model = LogisticRegression(1.0, domain=read, classes=[False, True]).fit(TABLE, LABEL)
    assert check(dumps(model)).version == 6
    again = loads(dumps(model))
    assert Purchase.of(again.domain.bought) == mark
    page = privfit.report.html(again)
    assert "bought before the fit" in page
    assert f"for epsilon 1, delta 0 under replace (release {mark.release})" in page
    assert "the schema, as its file states" in page
    assert "given to the fit" in page  # y


def test_a_schema_without_its_bought_columns_is_declared(bought):
    assert SCHEMA.marked(bought.bought).bought["columns"] == ["x"]
    alone = Schema({"y": Numeric(0, 10)})
    assert alone.marked(bought.bought) is alone
    assert Purchase.of(SCHEMA.bought) is None


def test_an_older_file_without_columns_is_of_all_of_them(tmp_path):
    text = Schema({"a": Numeric(0, 1)}).to_toml()
    price = 'epsilon = 0.1\ndelta = 0\nadjacency = "replace"\n'
    (tmp_path / "schema.toml").write_text(f"{text}\n[bought]\n{price}")
    assert Purchase.of(Schema.from_toml(tmp_path / "schema.toml").bought).columns == ("a",)


@pytest.mark.parametrize("mark", [
    {"price": 1, "columns": ["x"]}, {"epsilon": 1, "delta": 0, "columns": ["x"]},
    {"epsilon": "1", "delta": 0, "adjacency": "replace", "columns": ["x"]},
    {"epsilon": 1, "delta": 0, "adjacency": "replace", "columns": ["x"], "more": 1},
])  # fmt: skip
def test_another_price_is_refused(mark):
    with pytest.raises(privfit.DeclarationError, match=r"bought must have numbers as epsilon and"):
        Purchase.of(mark)
