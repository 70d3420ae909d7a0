"""Names that have moved: the old ones work for one version, and say where the new ones are."""

from __future__ import annotations

import importlib
import sys

import pytest

import privfit

MOVED = {
    "Generation": "privfit.runs",
    "Grid": "privfit.domains",
    "Path": "privfit.runs",
    "Tree": "privfit.clustering",
}
MODULES = {
    "privfit.plotting": "privfit.report.plotting",
    "privfit.postprocess": "privfit.clustering.postprocess",
}


@pytest.mark.parametrize(("name", "room"), MOVED.items())
def test_a_name_that_left_the_top_level_warns_and_is_the_same(name, room):
    with pytest.warns(FutureWarning, match=rf"privfit\.{name} is {room}\.{name} now"):
        old = getattr(privfit, name)
    assert old is getattr(importlib.import_module(room), name)
    assert name not in privfit.__all__


@pytest.mark.parametrize(("old", "new"), MODULES.items())
def test_a_module_that_moved_warns_and_has_the_same_names(old, new, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(FutureWarning, match=f"{old} is {new} now; import that"):
        module = importlib.import_module(old)
    monkeypatch.delattr(privfit, old.rpartition(".")[2])
    names = importlib.import_module(new).__all__
    assert all(getattr(module, name) is getattr(sys.modules[new], name) for name in names)


@pytest.mark.parametrize("name", ["Found", "LloydTrace", "aggregate", "mcmc"])
def test_what_people_use_is_at_the_top_level(name):
    assert name in privfit.__all__
    assert callable(getattr(privfit, name))
