"""Labels that are a column of the table: `fit(people, "late")`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit import (
    BernoulliNB,
    Box,
    Categorical,
    InputError,
    InputTypeError,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Schema,
    SelectFeatures,
    Stream,
)

COINS = np.random.default_rng(20261119)
PEOPLE = pd.DataFrame({
    "late": COINS.choice(["no", "yes"], 600), "age": COINS.uniform(17, 90, 600),
    "rich": COINS.random(600) < 0.3, "job": COINS.choice(["clerk", "nurse", "none"], 600),
})  # fmt: skip
SCHEMA = Schema({"age": Numeric(17, 90), "job": Categorical(["clerk", "nurse"], other=True)})
TABLES = {
    "pandas": lambda frame: frame,
    "pandas in another order": lambda frame: frame[frame.columns[::-1]],
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "a record batch": pa.RecordBatch.from_pandas,
    "a dict of columns": lambda frame: {name: frame[name].to_numpy() for name in frame},
    "a dict of lists": lambda frame: frame.to_dict("list"),
    "a structured array": lambda frame: frame.to_records(index=False).view(np.ndarray),
    "records": lambda frame: frame.to_dict("records"),
}
NUMBERS = [name for name in TABLES if name not in ("records", "pandas in another order")]


def model(kind=LogisticRegression, **changes):
    return kind(
        1.0, **{"domain": SCHEMA, "classes": ["no", "yes"], "random_state": 0, **changes}
    )  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_any_kind_contains_its_labels(table):
    apart = model().fit(PEOPLE.drop(columns="late"), PEOPLE["late"])
    named = model().fit(TABLES[table](PEOPLE), "late")
    streamed = model().fit(Stream(pa.Table.from_pandas(PEOPLE)), "late")
    assert np.array_equal(named.coef_, apart.coef_)
    assert np.array_equal(named.coef_, streamed.coef_)
    assert named.release_.to_json() == apart.release_.to_json()


@pytest.mark.parametrize("table", NUMBERS)
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, BernoulliNB, SelectFeatures])
def test_labels_are_no_feature(kind, table):
    box = {} if kind in (BernoulliNB, SelectFeatures) else {"domain": Box([0, 17], [1, 90])}
    fitted = kind(1.0, classes=["no", "yes"], random_state=0, **box).fit(
        TABLES[table](PEOPLE[["rich", "late", "age"]]), "late"
    )
    assert fitted.feature_names_in_.tolist() == ["rich", "age"]
    assert fitted.n_features_in_ == 2


def test_the_label_is_no_column_of_a_learned_domain():
    fitted = model(domain="learn", delta=1e-6).fit(PEOPLE, "late")
    assert fitted.domain_.column_names == ["age", "rich", "job"]


def test_classes_may_be_read_from_named_labels():
    with pytest.warns(UserWarning, match="reads its classes from the private labels"):
        fitted = model(classes=None).fit(PEOPLE, "late")
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_a_label_that_no_column_has_is_refused_before_the_charge():
    ledger = Ledger(2.0)
    made, numbers = model(ledger=ledger), PEOPLE[["age"]].to_numpy()
    twice = pd.concat([PEOPLE, PEOPLE[["late"]]], axis=1)
    for X, y in ((PEOPLE, "lat"), (numbers, "late"), (twice, "late"), (numbers.tolist(), "late")):
        with pytest.raises(InputError, match=rf"^y \('{y}'\) must name one column of X, which"):
            made.fit(X, y)
    with pytest.raises(InputTypeError, match=r"X \(LazyFrame\) must be in memory; pass X.collect"):
        made.fit(pl.from_pandas(PEOPLE).lazy(), "late")
    records = PEOPLE.to_dict("records")
    for odd in ({"age": 20.0, "job": "nurse"}, (20.0, "nurse", "no")):
        with pytest.raises(InputError, match="y has labels outside the declared classes"):
            made.fit([*records, odd], "late")
    with pytest.raises(InputError, match=r"lacks the declared columns \['job'\]"):
        made.fit(PEOPLE[["late", "age"]], "late")
    assert ledger.spent.epsilon == 0
