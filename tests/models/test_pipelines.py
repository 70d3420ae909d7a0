"""Files of pipelines: the models of all steps come back, and no file names code of others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import privfit
from privfit import BernoulliNB, DeclarationTypeError, FileError, HashWords, SelectFeatures
from privfit.models.model import check, dumps, loads

TEXTS = ["free money now", "see you at noon", "win a prize", "lunch at home"] * 100
LABELS = ["spam", "ham", "spam", "ham"] * 100


def fitted():
    steps = [
        ("words", HashWords(256)),
        ("select", SelectFeatures(4.0, k=8, classes=["ham", "spam"], max_ones=8, random_state=1)),
        ("model", BernoulliNB(4.0, classes=["ham", "spam"], max_ones=8, random_state=1)),
    ]
    return Pipeline(steps).fit(TEXTS, LABELS)


def test_a_pipeline_comes_back(tmp_path):
    pipeline = fitted()
    privfit.save(pipeline, tmp_path / "spam.json")
    again = privfit.load(tmp_path / "spam.json")
    assert [name for name, _ in again.steps] == ["words", "select", "model"]
    assert (again.predict_proba(TEXTS) == pipeline.predict_proba(TEXTS)).all()
    assert again["model"].release_.verify()
    assert dumps(again) == dumps(pipeline)


def test_steps_of_others_are_not_written():
    with pytest.raises(DeclarationTypeError, match=r"step 'scale' \(StandardScaler\) must be"):
        dumps(Pipeline([("scale", StandardScaler()), ("words", HashWords(8))]))
    with pytest.raises(DeclarationTypeError, match=r"step 'inner' \(Pipeline\) must be an estima"):
        dumps(Pipeline([("inner", Pipeline([("words", HashWords(8))]))]))


def test_a_pipeline_is_no_single_model():
    with pytest.raises(FileError, match=r"class \('Pipeline'\) must be one model here; pass the"):
        check(dumps(Pipeline([("words", HashWords(8))])))


@pytest.mark.parametrize("change", [
    {"privfit-model": 4}, {"privfit-model": 6}, {"written-by": 3}, {"steps": []}, {"more": 1},
    {"steps": "words"}, {"steps": [1]}, {"steps": [{"name": "a", "model": {"class": "Pipeline"}}]},
    {"steps": [{"name": "a__b", "model": {"class": "HashWords"}}]},
    {"steps": [{"name": "a", "model": {"class": ["HashWords"]}}]},
    {"steps": [{"name": "a", "model": {"class": "os.system"}}]},
    {"steps": 2 * [{"name": "a", "model": {"class": "HashWords"}}]},
    {"steps": [{"name": f"a{i}", "model": {"class": "HashWords"}} for i in range(33)]},
])  # fmt: skip
def test_other_files_are_refused(change):
    held = json.loads(dumps(Pipeline([("words", HashWords(8))])))
    with pytest.raises(FileError, match=r"a model file of a Pipeline must have the version 5 and"):
        loads(json.dumps({**held, **change}))


def test_each_step_is_checked_like_a_file_of_its_own():
    held = json.loads(dumps(fitted()))
    held["steps"][2]["model"]["release"]["epsilon"] = 0.1
    with pytest.raises(privfit.PrivfitError):
        loads(json.dumps(held))
    assert np.shape(loads(dumps(fitted()))[0].transform(TEXTS)) == (400, 256)
