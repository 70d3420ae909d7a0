"""A schema shows its columns, as text and in notebooks; releases hold its short form."""

from __future__ import annotations

import pytest
from makers.markup import assert_harmless

from privfit import Categorical, Numeric, Schema
from privfit.domains.described import described

EVIL = "<script>alert(1)</script>"


@pytest.mark.parametrize(("column", "words"), [
    (Numeric(17, 90), "17 to 90"),
    (Numeric(0, 9, bins=3), "0 to 9, 3 equal bins"),
    (Numeric(0, 1, fill=0.5), "0 to 1, missing values are 0.5"),
    (Numeric(bins=list(range(12)), missing=True),
     "any number, cut at 0, 1, 2, 3, 4, 5, 6 and 5 more, missing values are a level"),
    (Numeric(scale="log"), "any number, cut at a public scale"),
    (Numeric(), "any number, to be bought"),
    (Numeric(0, 9, bins="auto"), "0 to 9, cuts to be bought"),
    (Categorical(["f", "m"], other=True), "f, m, other"),
    (Categorical([1, 2.5]), "1, 2.5"),
    (Categorical(list("abcdefghij")), "a, b, c, d, e, f, g and 3 more"),
    (Categorical(), "to be bought"),
    (Categorical(names="bought"), "names to be bought"),
    (Categorical(buckets=[3, 7]), "2 buckets of hashed values, other"),
])  # fmt: skip
def test_a_column_in_words(column, words):
    assert described(column) == words


def test_a_schema_shows_its_columns():
    few = {"age": Numeric(17, 90), "sex": Categorical(["f", "m"])}
    assert repr(Schema(few)) == "Schema(age: 17 to 90; sex: f, m)"
    assert str(Schema(few)) == "Schema(<2 columns, 3 encoded>)"
    many = repr(Schema({f"column {i}": Numeric(0, 1) for i in range(60)}))
    assert many.splitlines()[:2] == ["Schema(", "    column 0: 0 to 1"]
    assert many.splitlines()[-2:] == ["    ... and 21 more columns", ")"]
    assert repr(Schema(few).for_distances(0.5)).endswith("sex: f, m), levels 0.5")


def test_a_notebook_shows_a_table_in_which_nothing_runs():
    page = assert_harmless(Schema({EVIL: Categorical([EVIL]), "x": Numeric()})._repr_html_())
    assert f"{EVIL} category {EVIL} x number any number, to be bought" in page.text
