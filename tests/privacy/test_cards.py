"""What notebooks show of releases and ledgers: what is public already, and nothing that runs."""

from __future__ import annotations

import numpy as np
from makers.markup import assert_harmless

from privfit import DiscreteLaplace, Ledger

EVIL = "<script>alert(1)</script>"
COUNT = 918273


def ledger():
    made = Ledger(2.0, 1e-6, adjacency="replace")
    with made.group("train"):
        grant = made.reserve(0.5, name=EVIL)
    noisy = grant.release(DiscreteLaplace(0.5, sensitivity=1), [COUNT])
    shown = {"count": noisy, "rows": [[1], [2, 3]], "law": {"scale": 1.0}, "one": np.float64(0.5),
             "none": None, EVIL: "x" * 500}  # fmt: skip
    grant.close("replace", settings={EVIL: EVIL, "left": None}, parameters=shown)
    return made


def test_a_release_shows_its_guarantee_draws_settings_and_shapes():
    release = ledger().releases[0]
    page = assert_harmless(release._repr_html_())
    assert "epsilon 0.5, delta 0, for the contents of one row (replace)" in page.text
    for words in ("pure 1 0.5 0", f"{EVIL} {EVIL}", "left chosen by the method", "count 1 values",
                  "rows 2 values", "law 1 entries: scale", "one 0.5", "..."):  # fmt: skip
        assert words in page.text
    assert str(COUNT) not in page.text


def test_a_ledger_shows_what_was_spent_and_what_is_left():
    page = assert_harmless(ledger()._repr_html_())
    assert "Ledger, replace" in page.text
    assert f"{EVIL} train 0.5 0 spent all 0.5 0 left all 1.5 1e-06 budget all 2 1e-06" in page.text
    assert "no relation declared yet" in assert_harmless(Ledger(1.0)._repr_html_()).text


def test_the_text_of_a_release_names_its_fields_and_cuts_long_values():
    grant = Ledger(1.0).reserve(1.0, name="weights", adjacency="add_remove")
    grant.release(DiscreteLaplace(1.0, 1), [1])
    noise = [{"factor": np.zeros((50, 2000)).tolist(), "rest": "x" * 5000}]
    release = grant.close(parameters={"coef": np.arange(1e5), "noise": noise})
    text = repr(release)
    assert text.startswith("Release(name='weights', epsilon=1.0, delta=0.0, adjacency='add_remove'")
    assert text.endswith("filter='')")
    assert "Event(kind='pure', parameter=1.0, count=1, delta=0.0)" in text
    assert len(text) < 1500
