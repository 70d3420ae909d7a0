"""Scores of one's own that numba compiles, as the docs show them."""

from __future__ import annotations

import numpy as np
import pytest
from makers.pages import run_page
from makers.places import ROOT

from privfit import RecordObjective

pytest.importorskip("numba", reason='needs pip install "privfit[numba]"')

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="no docs beside these tests")


def test_the_page_and_its_scores(knobs, rng):
    """To a unit of each record; the walks of the page come to the same answer."""
    knobs(thread_work=0.0)
    page = run_page("own_fitness.md", "numba")
    assert np.allclose(page["answer"], page["found"].answer)
    P, people = rng.normal(0, 3, (40, 3)), page["people"]
    expected = page["objective"].scores(P)
    for n_threads in (1, 2):
        quick = RecordObjective(people, page["compiled"], -8.0, 0.0, n_threads=n_threads)
        assert np.abs(quick.scores(P) - expected).max() <= 1
