"""Blanks of a schema: declared, written, refused; and columns as they are once they are bought."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from makers.entrances import EXACT, INFERRING, UnableError
from reference import number_key, number_place

from privfit import (
    Categorical,
    CentersObjective,
    DeclarationError,
    Domain,
    KMeans,
    Ledger,
    LinearObjective,
    Lloyd,
    LogisticRegression,
    Numeric,
    PrivGene,
    Schema,
    choose_k,
)
from privfit.domains.hashing import BUCKETS, Bucket, BucketReader, NameReader, bucket_of
from privfit.domains.keys import (
    KEYS,
    MISSING,
    ZERO,
    favoured,
    first_place,
    key_of,
    number_at,
    places,
    written,
)

BLANKS = {
    "range": Numeric(),
    "cuts": Numeric(bins="auto"),
    "cuts in a range": Numeric(0, 10, bins="auto"),
    "range and bins": Numeric(bins=4),
    "filled": Numeric(bins="auto", fill=3),
    "hashed": Categorical(),
    "named": Categorical(names="bought"),
}
BOUGHT = {
    "cut": Numeric(bins=[-1.0, 0.0, 37.1], missing=True),
    "cut in a range": Numeric(0, 10, bins=[1, 5], missing=True),
    "even": Numeric(0, 10, bins=4, missing=True),
    "many": Numeric(bins=list(range(50)), missing=True),
    "hashed": Categorical(buckets=[3, 529, 774]),
    "hashed, with names": Categorical(["nurse", 1], buckets=[0, 529]),
    "none kept": Categorical(buckets=[]),
    "names": Categorical(["a", "b"], other=True),
}


# ------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize("name", BLANKS)
def test_a_blank_is_known_as_one(name):
    assert BLANKS[name].is_blank
    schema = Schema({"a": BLANKS[name], "b": Numeric(0, 1)})
    assert schema.has_blanks
    assert schema.blanks == ["a"]
    assert str(schema) == "Schema(<2 columns, 1 with blanks>)"


@pytest.mark.parametrize("name", BOUGHT)
def test_what_was_bought_is_no_blank(name):
    assert not BOUGHT[name].is_blank
    assert not Schema({"a": BOUGHT[name]}).has_blanks


@pytest.mark.parametrize("columns", [BLANKS, BOUGHT], ids=["blanks", "bought"])
def test_schemas_are_written_and_read_again(columns, tmp_path):
    schema = Schema(columns, missing=("", "?"))
    assert Domain.from_dict(schema.to_dict()) == schema
    path = tmp_path / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.from_toml(path) == schema
    for column in columns.values():
        assert eval(repr(column), {"Numeric": Numeric, "Categorical": Categorical}) == column


def test_a_schema_of_kinds_is_all_blanks():
    schema = Schema.blank({"age": "number", "job": "category"}, missing=("?",))
    assert schema == Schema({"age": Numeric(bins="auto"), "job": Categorical()}, missing=("?",))
    with pytest.raises(
        ValueError, match=r"kinds \({'age': 'text'}\) must be 'number', 'category' or 'bool"
    ):
        Schema.blank({"age": "text"})


X, Y = {"a": [1.0, 2.0], "b": [0.5, 0.5]}, [0, 1]


@pytest.mark.parametrize("use", [
    lambda schema: schema.encode(X),
    lambda schema: schema.width,
    lambda schema: LinearObjective(X, Y, domain=schema),
    lambda schema: CentersObjective(X, 2, domain=schema),
], ids=["encoder", "width", "linear", "centers"])  # fmt: skip
@pytest.mark.parametrize("name", BLANKS)
def test_a_blank_is_refused_where_nobody_buys_it(name, use):
    schema = Schema({"a": BLANKS[name], "b": Numeric(0, 1)})
    message = r"domain \(a Schema with the blanks 'a'\) must declare .* pass learn_schema\(X"
    with pytest.raises(DeclarationError, match=message):
        use(schema)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Numeric(1), r"Numeric range \(1, None\) must be finite and increasing"),
    (lambda: Numeric(bins="even"), r"bins \('even'\) must be 0 or a positive number"),
    (lambda: Numeric(bins=[2, 1]), r"bins \(\[2, 1\]\) must increase between low and high"),
    (lambda: Numeric(bins=[]), r"bins \(\[\]\) must increase between low and high"),
    (lambda: Numeric(0, 1, missing=True), r"missing \(True\) must stand beside bins or a scale"),
    (lambda: Numeric(0, 1, 2, fill=1, missing=True), r"missing \(True\) must stand beside bins"),
    (lambda: Numeric(0, 1, 2, missing=1), r"missing \(1\) must be a bool; pass missing=True"),
    (lambda: Categorical(names="all"), r"names \('all'\) must be 'bought', and only where nothing"),
    (lambda: Categorical(["a"], names="bought"), r"names \('bought'\) must be 'bought', and only"),
    (lambda: Categorical(buckets=[BUCKETS]), r"buckets \(\[1024\]\) must be whole numbers from 0"),
    (lambda: Categorical(buckets=[2, 2]), r"buckets \(\[2, 2\]\) must be .* that increase; pass"),
    (lambda: Categorical(buckets="12"), r"buckets \('12'\) must be whole numbers from 0 to 1023"),
    (lambda: Domain.from_dict({**Schema({"a": Numeric()}).to_dict(), "columns": {"a": {}}}),
     r"column 'a' \({}\) must have low and high, or values; .* or a blank: {kind = \"number\"}"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("fit", [
    lambda schema, ledger: KMeans(
        2, 1.0, domain=schema, solver=Lloyd(paper=True), ledger=ledger
    ).fit(X),
    lambda schema, ledger: choose_k(X, [2, 3], 1.0, domain=schema, ledger=ledger),
    lambda schema, ledger: LogisticRegression(
        1.0, 1e-6, domain=schema, classes=[0, 1], solver=PrivGene(paper=True), ledger=ledger
    ).fit(X, Y),
], ids=["clusters", "choices", "publications"])  # fmt: skip
def test_a_fit_that_cannot_buy_blanks_is_refused_before_the_charge(fit):
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(DeclarationError, match="learn_schema"):
        fit(Schema.blank({"a": "number"}), ledger)
    assert ledger.spent.epsilon == 0


# ---------------------------------------------------------------------------------------- numbers

NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 1e-42, 2.0**-133, -(2.0**-133), 1e39, -1e39,
           math.inf, -math.inf, math.nan, 3.4028235e38, 1e308, 16777217.0, 0.1]  # fmt: skip


@given(st.lists(st.floats() | st.sampled_from(NUMBERS), max_size=20))
@example(NUMBERS)
def test_places_and_keys_are_those_of_the_definition(numbers):
    found = places(np.array(numbers, dtype=np.float64))
    expected = [number_place(x) for x in numbers]
    assert found.tolist() == [MISSING if place is None else place for place in expected]
    present = found[found != MISSING]
    keys = [number_key(x) for x in numbers if not math.isnan(x)]
    assert (key_of(present) - ZERO).tolist() == keys
    for place, key in zip(present.tolist(), key_of(present).tolist(), strict=True):
        assert first_place(key) <= place < first_place(key + 1)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_places_keep_the_order_of_numbers(a, b):
    first, second = places(np.array([min(a, b), max(a, b)])).tolist()
    assert first <= second


def test_there_are_65279_keys_and_zero_has_one_of_its_own():
    assert KEYS == 65_279
    ends = key_of(places(np.array([-np.inf, np.inf, 0.0])))
    assert ends.tolist() == [0, KEYS - 1, ZERO]
    assert favoured[ZERO]
    assert not favoured[ZERO + 1]
    numbers = number_at(np.array([first_place(key) for key in range(KEYS)]))
    assert (np.diff(numbers) > 0).all()
    assert number_at(np.array([first_place(KEYS)]))[0] == np.inf


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_short_number_stands_for_the_same_float32(x):
    assert np.float32(written(x)) == np.float32(x)
    assert len(repr(written(x))) <= len(repr(x))


# ------------------------------------------------------------------------------------- categories


def test_buckets_are_public():
    assert bucket_of("job", "nurse") == 529
    assert Schema({"job": Categorical(buckets=[529])}).encode({"job": ["nurse", "x"]}).toarray()[
        :, 0
    ].tolist() == [4096, 0]
    known = Categorical(["nurse", "clerk", "driver"], buckets=[3, 529, 774])
    assert known.level_names("job") == ["job=#3", "job=nurse", "job=clerk", "job=<other>"]


def test_texts_are_counted_by_their_canonical_form():
    cells = [1, "1", 1.0, True, None, math.nan, "?", "e\u0301", "\u00e9", [1], "\ud800", "x" * 300]
    assert NameReader(["?"]).counts(cells) == {"1": 4, "\u00e9": 2}
    codes = BucketReader("c", ["?"]).codes(cells)
    assert codes[:8].tolist() == [*[bucket_of("c", "1")] * 4, -1, -1, -1, bucket_of("c", "\u00e9")]
    assert codes[9] == -1
    assert BucketReader("c").codes([Bucket(7), None]).tolist() == [7, -1]


def test_unused_categories_of_a_column_are_no_names():
    import pandas as pd

    column = pd.Series(pd.Categorical(["a", None], categories=["a", "b"]))
    assert NameReader().counts(column) == {"a": 1}


# -------------------------------------------------------------------------------------- every cell

SCHEMA = Schema(
    {"n": BOUGHT["cut"], "m": BOUGHT["even"], "h": BOUGHT["hashed"], "c": BOUGHT["names"]},
    missing=("", "?"),
)
CELLS = [None, math.nan, math.inf, -math.inf, 1e308, 2**53 + 1, True, "x", "", "?", "01", "1e+16",
         b"x", "nurse", "37.1", 37.1, -1, "a,b", 'a"', "a\nb", "\ufffd", 0.5, "a"]  # fmt: skip
ROWS = [(1.5, 2, "nurse", "a"), (None, 9.5, "clerk", "b"), (37.1, None, None, None)]


@pytest.mark.parametrize("name", [*EXACT, *INFERRING])
@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_no_cell_is_refused_and_none_changes_another_row(name, cell):
    """Law 1 at every entrance, in every column at once."""
    coded = {**EXACT, **INFERRING}[name]
    try:
        before = coded(SCHEMA, ROWS)
        after = coded(SCHEMA, [*ROWS[:2], (cell,) * 4])
    except UnableError:
        return
    assert before.shape == after.shape == (3, SCHEMA.width)
    assert np.array_equal(before[:2], after[:2])
    assert (after.sum(axis=1) == 4 * 4096).all()  # one level of each column
    if name in EXACT:
        assert np.array_equal(after, EXACT["dict of lists"](SCHEMA, [*ROWS[:2], (cell,) * 4]))
