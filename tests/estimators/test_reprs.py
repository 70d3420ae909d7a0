"""Notebooks: scikit-learn's diagram, and below it what a fit released."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from makers.markup import Page
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from privfit import KMeans, LogisticRegression, Sweep, sweep

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))


def test_the_release_is_below_the_diagram_of_a_fitted_estimator():
    model = KMeans(2, 1.0, domain=(-1, 1))
    before = model._repr_html_()
    assert "sk-top-container" in before
    assert "privfit-release" not in before
    after = model.fit(X)._repr_html_()
    assert after.index("sk-top-container") < after.index("privfit-release")
    assert model._repr_mimebundle_()["text/html"].endswith(model.release_._repr_html_())
    assert "KMeans" in model._repr_mimebundle_()["text/plain"]


def test_a_pipeline_keeps_its_own_diagram():
    made = make_pipeline(FunctionTransformer(), KMeans(2, 1.0, domain=(-1, 1))).fit(X)
    assert "sk-top-container" in made._repr_html_()


def test_without_diagrams_there_is_text_alone():
    with sklearn.config_context(display="text"):
        model = KMeans(2, 1.0, domain=(-1, 1)).fit(X)
        assert "text/html" not in model._repr_mimebundle_()
        with pytest.raises(AttributeError):
            _ = model._repr_html_


def test_a_sweep_is_a_table_that_says_that_it_is_not_private():
    models = {"<b>": LogisticRegression(domain=(-1, 1))}
    found = sweep(models, X, X[:, 0] > 0, [0.5, 1.0], public=True, seeds=2, delta=1e-6)
    page = Page(found._repr_html_())
    assert "b" not in [tag for tag, marks in page.elements if "class" in marks]
    assert "<b>" in page.text
    assert "not private" in page.text
    one = found["<b>"]
    assert isinstance(one, Sweep)
    assert f"{one.rows[0].mean:.4f}" in Page(one._repr_html_()).text
    assert "larger class" in Page(one._repr_html_()).text
