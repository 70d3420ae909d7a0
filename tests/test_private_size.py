"""Where records are added or removed, nothing that is shown tells how many there are.

Every estimator, solver and metric runs on 98,765 rows under "add_remove"; that number and
its neighbours are looked for in all that a run leaves: attributes, reprs, files, output, warnings,
and the messages of wrong input. Seeds are fixed, so no noisy count is that number by chance.
"""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from makers.short_methods import ANYWHERE, KMEANS, KMEDIAN, LINEAR, SEARCHES

from privfit import (
    BernoulliNB,
    Box,
    Categorical,
    CentersObjective,
    Checkpoint,
    FacilityObjective,
    KMeans,
    KMedian,
    Ledger,
    LinearObjective,
    LinearSVC,
    Lloyd,
    Local,
    LogisticRegression,
    Numeric,
    Reals,
    RecordObjective,
    Release,
    Schema,
    SelectFeatures,
    SparseVector,
    Stream,
    accuracy_score,
    confusion_matrix,
    roc_auc_score,
    roc_curve,
    search,
    sweep,
)
from privfit.clustering import (
    kmeans,
    kmedian,
    medians,
)
from privfit.domains import Domain
from privfit.estimators import linear
from privfit.features.selection import METHODS as SELECTIONS
from privfit.models.model import dumps
from privfit.searches.sample_aggregate import aggregate

N = 98_765
PUBLIC = 90_000  # what is declared instead, and steers
NEAR = {N - 1, N, N + 1}
SHOWN = re.compile("|".join(rf"(?<![\d.])(?:{k}|{k:,}|{k:_})(?!\d|\.\d*[1-9])" for k in NEAR))

GENERATOR = np.random.default_rng(3)
X = GENERATOR.uniform(-1, 1, (N, 2))
Y = (X[:, 0] + 0.3 * GENERATOR.normal(size=N) > 0).astype(int)
ONES = X > 0.5
PLACES = GENERATOR.uniform(-1, 1, (6, 2))
SCORE = (X[:, 0] + 1) / 2


def test_no_method_is_forgotten():
    assert set(LINEAR) == set(linear.METHODS)
    assert set(KMEANS) == set(kmeans.METHODS)
    assert set(KMEDIAN) == set(kmedian.METHODS)
    assert set(ANYWHERE) == set(medians.METHODS)


# ------------------------------------------------------------------------------ what shows a number


def texts(value: Any, seen: set[int] | None = None) -> Iterator[str]:
    """All that can be read off a value: texts, numbers as they print, and what it is made of."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type) or callable(value):
        return
    seen.add(id(value))
    yield repr(value)
    yield str(value)
    if isinstance(value, np.ndarray):
        yield repr(value.shape)
        yield repr(value.tolist())
    elif isinstance(value, np.generic):
        yield repr(value.item())
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))
    elif isinstance(value, Release):
        yield value.to_json()
    elif isinstance(value, Domain):
        yield json.dumps(value.to_dict())
    if isinstance(value, Mapping):
        for one in (*value.keys(), *value.values()):
            yield from texts(one, seen)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from texts(one, seen)
    elif is_dataclass(value):
        for one in fields(value):
            yield from texts(getattr(value, one.name), seen)
    elif hasattr(value, "__dict__"):
        yield from texts(vars(value), seen)


def shows(found: Iterator[str]) -> list[str]:
    return [text[max(0, hit.start() - 40) : hit.end() + 40]
            for text in found if (hit := SHOWN.search(text))]  # fmt: skip


@pytest.mark.parametrize(
    "leak",
    [f"n is {N}", f"{N:,} rows", f"(shape={X.shape})", {"a": [N]}, np.array([1, N]), float(N),
     np.float64(N - 1), N + 1],
    ids=str,
)  # fmt: skip
def test_the_search_for_the_number_finds_it(leak):
    assert shows(texts({"deep": [leak]}))


def test_the_search_for_the_number_finds_nothing_else():
    assert not shows(texts([1987654, 0.98765, 98765.5, "198765", {"a": np.arange(5)}]))


class Told:
    """A run's ledger, listener, warnings and output."""

    def __init__(self, capsys: Any, caplog: Any) -> None:
        self.ledger, self.generations = Ledger(1000.0, 0.1), []
        self._capsys, self._caplog = capsys, caplog

    def public(self, **more: Any) -> dict[str, Any]:
        return {"adjacency": "add_remove", "ledger": self.ledger, "random_state": 5, **more}

    def run(self, call: Callable[[], Any]) -> None:
        """Call, and look at all that is left of it."""
        self._caplog.set_level(logging.DEBUG)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call()
        output = self._capsys.readouterr()
        found = [
            *texts(result), *texts(self.generations), self.ledger.to_json(), repr(self.ledger),
            str(self.ledger), *(str(one.message) for one in caught), output.out, output.err,
            self._caplog.text,
        ]  # fmt: skip
        assert not shows(iter(found))


@pytest.fixture
def told(capsys: Any, caplog: Any) -> Told:
    return Told(capsys, caplog)


# --------------------------------------------------------------------------------------------- fits


def fitted(told: Told, model: Any, *data: Any) -> None:
    def call() -> tuple[Any, ...]:
        model.fit(*data)
        shown = model.get_params() | {"ledger": None, "callback": None, "random_state": None}
        attributes = {name: value for name, value in vars(model).items() if name not in shown}
        return attributes, repr(model), dumps(model), model.release_

    told.run(call)


def listening(told: Told, **more: Any) -> dict[str, Any]:
    return told.public(n_public=PUBLIC, callback=told.generations.append, verbose=1, **more)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("name", ["auto", *LINEAR])
def test_a_linear_fit_does_not_show_it(kind, name, told):
    if name == "privatesvm" or (kind is LinearSVC and name in ("functional", "evidence")):
        kind = LinearSVC if name == "privatesvm" else LogisticRegression
    delta = 0.0 if name in ("privatesvm", "objective") else 1e-6
    declared = {"domain": (-1, 1), "classes": [0, 1], "solver": LINEAR.get(name, name)}
    if name in ("additive", "evidence"):
        declared["domain"] = Schema({place: Numeric(-1, 1, bins=5) for place in "ab"})
    fitted(told, kind(1.0, delta, **declared, **listening(told)), X, Y)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["auto", *KMEANS])
def test_a_k_means_fit_does_not_show_it(name, told):
    model = KMeans(2, 1.0, 1e-6, domain=(-1, 1), solver=KMEANS.get(name, name), **listening(told))
    fitted(told, model, X)
    told.run(lambda: model.private_inertia(X, 1.0).release)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["auto", *KMEDIAN])
def test_a_k_median_fit_does_not_show_it(name, told):
    solver = KMEDIAN.get(name, name)
    model = KMedian(2, 1.0, 1e-6, facilities=PLACES, domain=(-1, 1), solver=solver,
                    **listening(told))  # fmt: skip
    fitted(told, model, X)
    told.run(lambda: model.private_cost(X, 1.0).release)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["auto", *ANYWHERE])
def test_a_k_median_fit_without_facilities_does_not_show_it(name, told):
    model = KMedian(2, 1.0, 1e-6, domain=(-1, 1), metric="l2", solver=ANYWHERE.get(name, name),
                    **listening(told))  # fmt: skip
    fitted(told, model, X)
    told.run(lambda: model.private_cost(X, 1.0).release)


@pytest.mark.few(7)
@pytest.mark.parametrize("criterion", ["total_count", "information_gain"])
@pytest.mark.parametrize("name", ["auto", *SELECTIONS])
def test_a_selection_of_features_does_not_show_it(name, criterion, told):
    method = SparseVector(k=1, threshold=100) if name == "sparse_vector" else name
    model = SelectFeatures(1.0, 1e-6, k=1, solver=method, criterion=criterion, classes=[0, 1],
                           max_ones=1, **told.public(n_public=PUBLIC))  # fmt: skip
    fitted(told, model, ONES, Y)


def test_other_estimators_do_not_show_it(told):
    fitted(told, BernoulliNB(1.0, classes=[0, 1], **told.public()), ONES, Y)
    schema = Schema({"a": Numeric(-1, 1), "b": Categorical([0, 1])})
    frame = pd.DataFrame({"a": X[:, 0], "b": Y})
    model = LogisticRegression(1.0, 1e-6, domain=schema, classes=[0, 1], **listening(told))
    fitted(told, model, frame, Y)
    anneal = KMeans(2, 1.0, domain=(-1, 1), solver=Lloyd(steps=2), postprocess="mcmc",
                    **told.public(n_public=PUBLIC))  # fmt: skip
    fitted(told, anneal, X)


def test_a_streamed_fit_does_not_show_it(told):
    blocks: list[int] = []
    stream = Stream(X, progress=blocks.append)
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=Local(
        generations=2), **listening(told))  # fmt: skip
    told.run(lambda: repr(stream))
    fitted(told, model, stream, Y)


def test_a_checkpoint_does_not_show_it(told, tmp_path):
    path = tmp_path / "journal"
    with Checkpoint(path, 5.0, 1e-6, random_state=1) as journal:
        model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], n_public=PUBLIC,
                                   solver=Local(generations=3), adjacency="add_remove",
                                   ledger=journal.ledger, random_state=journal.coins)  # fmt: skip
        told.run(lambda: model.fit(X, Y).release_)
        told.run(lambda: journal.ledger.to_json())
    assert not shows(iter([path.read_text(errors="replace")]))


def test_metrics_do_not_show_it(told):
    told.run(lambda: roc_curve(Y, SCORE, 1.0, n_public=PUBLIC, **told.public()))
    told.run(lambda: roc_curve(Y, SCORE, 1.0, thresholds=[0.2, 0.6], **told.public()))
    for metric in (roc_auc_score, accuracy_score, confusion_matrix):
        told.run(lambda metric=metric: metric(Y, SCORE, 1.0, **told.public()))
        told.run(lambda metric=metric: metric(Y, SCORE, 1.0, **told.public()).release)
    predicted = (SCORE > 0.5).astype(int)
    for metric in (accuracy_score, confusion_matrix):
        public = {"classes": [0, 1], **told.public()}
        told.run(lambda metric=metric, public=public: metric(Y, predicted, 1.0, **public))


def test_searches_and_aggregates_do_not_show_it(told):
    objective = RecordObjective(X[:, 0], nearness, -2, 0)
    told.run(lambda: repr(objective))
    public = told.public()
    told.run(lambda: search(objective, Reals(-1, 1, 1), 1.0, 1e-6, SEARCHES["dpsga"], **public))
    told.run(lambda: aggregate(X[:, 0], np.mean, (-1, 1), 1.0, blocks=20, **public))


def nearness(x: Any, P: Any) -> Any:
    return -np.abs(x[:, None] - P[:, 0])


def test_objectives_do_not_show_it():
    made = [LinearObjective(X, Y, domain=Box(-1, 1), adjacency="add_remove"),
            CentersObjective(X, 2, Box(-1, 1), adjacency="add_remove"),
            FacilityObjective(X, PLACES, (0, 1), Box(-1, 1)),
            LinearObjective(Stream(X), Y, domain=Box(-1, 1), adjacency="add_remove")]  # fmt: skip
    for objective in made:
        assert not shows(iter([repr(objective), str(objective)]))


# -------------------------------------------------------------------------------------- wrong input


def messages(error: BaseException | None) -> Iterator[str]:
    """What a traceback shows: the message, and those of errors behind it that are not hidden."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


SHORT, LONG = Y[:-1], np.append(Y, 0)
SCHEMA = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1)})
NAN = np.where(X > 0.999, np.nan, X)
TABLES: dict[str, Any] = {
    "one dimension": X[:, 0],
    "three dimensions": X[:, :, None],
    "no column": X[:, :0],
    "text": np.full(X.shape, "x"),
    "objects": np.where(X > 0.9, "x", X.astype(object)),
    "complex": X * 1j,
    "NaN": NAN,
    "sparse NaN": sp.csr_array(NAN),
    "frame": pd.DataFrame({"a": X[:, 0], "b": ["x"] * N}),
}
LABELS: dict[str, Any] = {
    "short": SHORT,
    "long": LONG,
    "two columns": np.c_[Y, Y],
    "a row": Y[None],
    "undeclared": np.where(Y, 7, 0),
    "continuous": X[:, 0],
    "NaN": np.where(Y, np.nan, 0),
    "text": np.where(Y, "u", "v"),
    "nothing": None,
}


def classifier(told: Told, **more: Any) -> Any:
    declared = {"domain": (-1, 1), "classes": [0, 1], "solver": Local(generations=2), **more}
    return LogisticRegression(1.0, 1e-6, **declared, **told.public(n_public=PUBLIC))


def wrong(told: Told, call: Callable[[], Any]) -> None:
    """A refusal that charges nothing and does not show the number."""
    with pytest.raises((ValueError, TypeError)) as caught:
        told.run(call)
    assert not shows(messages(caught.value))
    assert not told.ledger.entries


def quiet(told: Told, call: Callable[[], Any]) -> None:
    """What some methods take and others refuse: either way the number is not shown."""
    try:
        told.run(call)
    except (ValueError, TypeError) as error:
        assert not shows(messages(error))  # noqa: PT017


@pytest.mark.few(1)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_wrong_table_is_refused_without_it(table, told):
    public = told.public(n_public=PUBLIC)
    wrong(told, lambda: classifier(told).fit(table, Y))
    wrong(told, lambda: KMeans(2, 1.0, domain=(-1, 1), **public).fit(table))
    wrong(told, lambda: KMedian(2, facilities=PLACES, domain=(-1, 1), **public).fit(table))
    wrong(told, lambda: LinearObjective(table, Y, domain=Box(-1, 1)))
    wrong(told, lambda: CentersObjective(table, 2, Box(-1, 1)))
    wrong(told, lambda: FacilityObjective(table, PLACES, (0, 1), Box(-1, 1)))
    wrong(told, lambda: BernoulliNB(1.0, classes=[0, 1], **told.public()).fit(table, Y))
    quiet(told, lambda: classifier(told, domain=SCHEMA).fit(table, Y))


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_wrong_labels_are_refused_without_it(labels, told):
    wrong(told, lambda: classifier(told).fit(X, labels))
    wrong(told, lambda: SelectFeatures(1.0, k=1, classes=[0, 1], **told.public()).fit(ONES, labels))
    wrong(told, lambda: LinearObjective(X, labels, domain=Box(-1, 1)))
    wrong(told, lambda: accuracy_score(labels, SCORE, 1.0, **told.public()))
    for y, predicted in ((labels, Y), (Y, labels)):
        for metric in (accuracy_score, confusion_matrix):
            wrong(told, lambda metric=metric, y=y, predicted=predicted: metric(
                y, predicted, 1.0, classes=[0, 1], **told.public()))  # fmt: skip
    if labels is not None and np.ndim(labels) == 1:
        stream = Stream(X)
        wrong(told, lambda: classifier(told).fit(stream, labels))
    quiet(told, lambda: BernoulliNB(1.0, classes=[0, 1], **told.public()).fit(ONES, labels))


@pytest.mark.parametrize(
    "score",
    [SCORE[:-1], SCORE[:, None], SCORE[None], SCORE.astype(str), np.where(Y, np.nan, SCORE), None],
    ids=["short", "column", "row", "text", "NaN", "nothing"],
)
def test_wrong_scores_are_refused_without_it(score, told):
    for metric in (roc_curve, roc_auc_score, accuracy_score, confusion_matrix):
        wrong(told, lambda metric=metric: metric(Y, score, 1.0, **told.public()))


def test_uneven_columns_are_refused_without_it(told):
    uneven = {"a": X[:, 0], "b": X[:-1, 1]}
    for table in (uneven, {"a": X[:, 0], "b": X}, {"a": X[:, 0]}, X[:, :1], X[:, [0, 1, 1]]):
        wrong(told, lambda table=table: classifier(told, domain=SCHEMA).fit(table, Y))
    wrong(told, lambda: FacilityObjective.of_distances(X[:, 0], (0, 1)))
    wrong(told, lambda: FacilityObjective.of_distances(X.astype(str), (0, 1)))
    wrong(told, lambda: aggregate((X, SHORT), np.mean, (-1, 1), 1.0, **told.public()))
    trial = classifier(told)
    wrong(told, lambda: sweep([trial], X, SHORT, epsilons=[1.0], score="accuracy"))


def test_functions_of_ones_own_are_refused_without_it(told):
    """Also those that hold on to all records, and so have a shape that tells."""
    public = told.public(n_public=PUBLIC)
    fixed = np.zeros((N, 4))
    few = SEARCHES["dpsga"]
    for score in (lambda x, P: fixed, lambda x, P: x, lambda x, P: {}[N]):
        for records in (X[:, 0], Stream(X[:, :1])):
            own = RecordObjective(records, score, 0, 1)
            wrong(told, lambda own=own: search(own, Reals(-1, 1, 1), 1.0, solver=few, **public))
    for metric in (lambda x, f: np.zeros((N, 7)), lambda x, f: np.full((len(x), 6), np.nan)):
        wrong(told, lambda metric=metric: KMedian(
            2, facilities=PLACES, clip=(0, 1), metric=metric, **public).fit(X))  # fmt: skip
