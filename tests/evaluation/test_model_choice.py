"""The private choice among models: sums, range, cost, and what one record changes."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import mpmath
import numpy as np
import pytest
import reference
from makers.raises import assert_reached, messages_of

import privfit
from privfit import (
    BernoulliNB,
    BudgetError,
    Categorical,
    Ledger,
    LogisticRegression,
    Numeric,
    PrivfitError,
    Schema,
    Stream,
    choose,
)
from privfit.audit import paired
from privfit.evaluation import model_choice
from privfit.privacy.mechanisms import Exponential

COINS = np.random.default_rng(0)
N = 1500  # a block and a part of one
X = COINS.uniform(-1, 1, (N, 3))
Y = (X[:, 0] + COINS.normal(0, 0.3, N) > 0).astype(int)


def linear(coef: Any, intercept: float = 0.0) -> LogisticRegression:
    """A model with these weights."""
    model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver="local")
    model.fit([[0.0] * 3, [1.0] * 3], [0, 1])
    model.coef_, model.intercept_ = np.array([coef]), np.array([intercept])
    return model


MODELS = {"first": linear([3.0, 0.0, 0.0]), "second": linear([0.0, 3.0, 0.0]),
          "none": linear([0.0, 0.0, 0.0], -0.5)}  # fmt: skip


@dataclass(frozen=True)
class Constant:
    """A model of no columns."""

    answer: Any
    classes: tuple[Any, ...] = (0, 1)

    @property
    def classes_(self) -> Any:
        return np.array(self.classes)

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.answer)


def scores_of(models: Any, table: Any, labels: Any, epsilon: float = 1.0, **options: Any) -> Any:
    """The exact scores and the mechanism that a choice draws with."""
    seen = []

    def spy(self: Any, value: Any, rng: Any = None) -> int:
        seen.append((np.asarray(value).copy(), self))
        return 0

    with mock.patch.object(Exponential, "__call__", spy):
        choose(models, table, labels, epsilon, **options)
    [found] = seen
    return found


# ------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize(("measure", "clip"), [("errors", None), ("log_loss", 4.0),
                                               ("log_loss", 0.3)])  # fmt: skip
def test_sums_are_those_of_records_one_by_one(measure, clip):
    some = slice(0, 300)
    options = {} if clip is None else {"clip": clip}
    found, _ = scores_of(MODELS, X[some], Y[some], measure=measure, **options)
    twin = reference.judged(list(MODELS.values()), X[some], Y[some].tolist(), clip)
    assert (-found).tolist() == twin


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, N])
def test_sums_add_up_over_parts_and_do_not_depend_on_the_order(size):
    whole, _ = scores_of(MODELS, X[:size], Y[:size], measure="log_loss")
    order = np.random.default_rng(1).permutation(size)
    mixed, _ = scores_of(MODELS, X[order], Y[order], measure="log_loss")
    assert whole.tolist() == mixed.tolist()
    if size > 1:
        parts = [scores_of(MODELS, X[part], Y[part], measure="log_loss")[0]
                 for part in (slice(0, size // 3 + 1), slice(size // 3 + 1, size))]  # fmt: skip
        assert whole.tolist() == sum(parts).tolist()


def test_a_record_that_is_added_leaves_the_predictions_of_others_alone():
    """Their margins are sums of products that cancel: how a row is rounded decides its class."""
    rng = np.random.default_rng(5)
    d = 37
    left = rng.integers(-4096, 4096, (700, d)) / 4096
    X_edge = np.concatenate([left, -left[:, ::-1]], axis=1)
    half = rng.normal(size=d)
    model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver="local")
    model.fit(np.ones((2, 2 * d)), [0, 1])
    model.coef_ = np.array([np.concatenate([half, half[::-1]])])
    model.intercept_ = np.zeros(1)
    models = {"edge": model, "no": Constant(0)}
    labels = np.zeros(700, dtype=int)
    base, _ = scores_of(models, X_edge, labels)
    for place in (0, 1, 3, 350):
        more, _ = scores_of(
            models, np.insert(X_edge, place, 1.0, axis=0), np.insert(labels, place, 1)
        )
        assert abs(int(more[0] - base[0])) <= 1
        assert int(base[1] - more[1]) == 1
    # BLAS rounds a table of one record in another way; in a block of full size it does not
    alone = sum(scores_of(models, X_edge[i : i + 1], labels[i : i + 1])[0] for i in range(50))
    assert alone.tolist() == scores_of(models, X_edge[:50], labels[:50])[0].tolist()


@dataclass(frozen=True)
class Placed(Constant):
    """What float32 products do, in the large: answers depend on the place in a table."""

    def predict(self, X: Any) -> Any:
        return (np.arange(len(X)) % 6 != 0).astype(int)

    def predict_proba(self, X: Any) -> Any:
        first = 0.5 / (1 + np.arange(len(X)) % 6)
        return np.stack([first, 1 - first], axis=1)


@dataclass(frozen=True)
class Centred(Constant):
    """A model that normalises over the records that it is given."""

    def predict(self, X: Any) -> Any:
        return (X[:, 0] >= X[:, 0].mean()).astype(int)

    def predict_proba(self, X: Any) -> Any:
        second = 1 / (1 + np.exp(X[:, 0].mean() - X[:, 0]))
        return np.stack([1 - second, second], axis=1)


@pytest.mark.parametrize("measure", ["errors", "log_loss"])
def test_a_model_of_another_package_gets_each_record_alone(measure):
    """Whatever it does with others, sums add up: a record changes them by its own losses."""
    models = [Placed(0), Centred(0), linear([3.0, 0.0, 0.0])]
    few = slice(0, 40)
    whole, _ = scores_of(models, X[few], Y[few], measure=measure)
    for first in (1, 7):  # others move to other places
        parts = [scores_of(models, X[part], Y[part], measure=measure)[0]
                 for part in (slice(0, first), slice(first, 40))]  # fmt: skip
        assert whole.tolist() == sum(parts).tolist()


def test_a_record_that_overflows_a_model_is_not_warned_of():
    class Steep(Constant):
        def predict(self, X: Any) -> Any:
            return (1 / (1 + np.exp(-1000 * X[:, 0])) > 0.5).astype(int)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores_of([Steep(0), Steep(1)], np.full((3, 1), -5.0), [0, 0, 1])


def test_tables_of_every_kind_give_the_same_sums():
    pandas = pytest.importorskip("pandas")
    schema = Schema({"x": Numeric(-1, 1), "kind": Categorical(["a", "b"])})
    kinds = np.where(X[:, 1] > 0, "a", "b")
    table = {"x": X[:, 0], "kind": kinds}
    fitted = [LogisticRegression(5.0, domain=schema, classes=[0, 1]).fit(table, Y)
              for _ in range(2)]  # fmt: skip
    tables = [table, pandas.DataFrame(table), list(zip(*table.values(), strict=True))]
    found = [scores_of(fitted, each, list(Y))[0].tolist() for each in tables]
    assert found[0] == found[1] == found[2]
    sparse = pytest.importorskip("scipy.sparse")
    bits = X > 0.5
    bayes = [BernoulliNB(5.0, classes=[0, 1]).fit(bits, Y) for _ in range(2)]
    of_bits = [scores_of(bayes, each, Y)[0].tolist() for each in (bits, sparse.csr_array(bits))]
    assert of_bits[0] == of_bits[1]


def test_a_stream_gives_the_sums_of_the_whole_table(tmp_path):
    lines = ["x,kind,late", *(f"{x:.6f},{'ab'[i % 2]},{y}" for i, (x, y)
                              in enumerate(zip(X[:, 0], Y, strict=True)))]  # fmt: skip
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    table = {"x": np.round(X[:, 0], 6), "kind": np.array(["a", "b"])[np.arange(N) % 2]}
    schema = Schema({"x": Numeric(-1, 1), "kind": Categorical(["a", "b"])})
    fitted = [LogisticRegression(5.0, domain=schema, classes=[0, 1]).fit(table, Y)
              for _ in range(2)]  # fmt: skip
    whole, _ = scores_of(fitted, table, Y)
    streamed, _ = scores_of(fitted, Stream(path), "late")
    assert streamed.tolist() == whole.tolist()


# ---------------------------------------------------------------------------------- range and cost


@pytest.mark.parametrize(("measure", "most"), [("errors", 1), ("log_loss", 4 * 2**16)])
@pytest.mark.parametrize(("adjacency", "changes"), [("add_remove", 1), ("replace", 2)])
def test_the_range_is_what_one_record_can_change_and_is_reached(measure, most, adjacency, changes):
    sure = {"yes": linear([0.0] * 3, 50.0), "no": linear([0.0] * 3, -50.0)}
    tables = [(X[:4], np.array([1, 1, 0, last])) for last in (0, 1)]
    if adjacency == "add_remove":
        tables[0] = X[:3], np.array([1, 1, 0])
    options = {"measure": measure, "adjacency": adjacency}
    (one, mechanism), (other, _) = (scores_of(sure, *table, **options) for table in tables)
    assert mechanism.range == changes * most
    assert abs(int((one - other)[0] - (one - other)[1])) == changes * most


def test_one_selection_is_charged_and_nothing_but_the_place_is_released():
    ledger = Ledger(1.0)
    chosen = choose(MODELS, X, Y, 0.75, ledger=ledger)
    assert chosen.model is MODELS[chosen.name]
    assert [(one.kind, one.parameter, one.count) for one in chosen.release.events] == [
        ("selection", 0.75, 1)
    ]  # fmt: skip
    assert set(chosen.release.parameters) == {"chosen"}
    assert chosen.release.settings == {
        "measure": "errors", "models": list(MODELS), "classes": [0, 1]
    }  # fmt: skip
    assert chosen.release.verify()
    assert (ledger.spent.epsilon, repr(chosen)) == (0.75, f"Chosen({chosen.name!r})")
    with pytest.raises(BudgetError):
        choose(MODELS, X, Y, 0.5, ledger=ledger)


@pytest.mark.slow
@pytest.mark.statistical
def test_draws_follow_the_exponential_mechanism():
    """4000 draws; chi-square of 2 degrees of freedom above 27.7 has a probability below 1e-6."""
    few = slice(0, 40)
    scores, mechanism = scores_of(MODELS, X[few], Y[few])
    weights = [
        mpmath.exp(mpmath.mpf(0.2) * int(u - scores.max()) / mechanism.range) for u in scores
    ]
    chances = [float(weight / sum(weights)) for weight in weights]
    drawn = Counter(choose(MODELS, X[few], Y[few], 0.2, random_state=seed).name
                    for seed in range(4000))  # fmt: skip
    expected = dict(zip(MODELS, (4000 * p for p in chances), strict=True))
    assert sum((drawn[name] - e) ** 2 / e for name, e in expected.items()) < 27.7


@pytest.mark.statistical
def test_the_best_model_is_chosen_where_the_budget_tells_it():
    """Errors differ by hundreds: a wrong choice has a probability below e^-100."""
    assert all(choose(MODELS, X, Y, 1.0, random_state=seed).name == "first" for seed in range(5))
    assert choose(list(MODELS.values()), X, Y, 1.0, measure="log_loss").name == 0


# -------------------------------------------------------------------------------------------- audit


def strains(adjacency: str, measure: str) -> Any:
    sure = {"yes": linear([0.0] * 3, 50.0), "no": linear([0.0] * 3, -50.0)}

    def run(table: Any, ledger: Any, random_state: Any) -> Any:
        found = choose(sure, *table, 1.0, measure=measure, adjacency=adjacency, ledger=ledger,
                       random_state=random_state)  # fmt: skip
        return found.name, found.release

    labels = np.array([1, 0, 1, 0, 1])
    first = (X[:5], labels)
    second = (X[:5], np.array([1, 0, 1, 0, 0]))
    if adjacency == "add_remove":
        second = X[:4], labels[:4]
    return paired(run, first, second, seed=0)


HALVED = {
    ("replace", "errors"): (privfit.Neighbours, "changes", 1),
    ("replace", "log_loss"): (model_choice._Judges, "most", 2 * 2**16),
    ("add_remove", "log_loss"): (model_choice._Judges, "most", 2 * 2**16),
}  # what makes the range half of what it is


@pytest.mark.parametrize(("adjacency", "measure"), [*HALVED, ("add_remove", "errors")])
def test_an_audit_finds_a_range_that_is_half_of_what_it_should_be(adjacency, measure):
    """Half of a range of 1 is none: bench/audit plants that fault in the mechanism."""
    honest = strains(adjacency, measure)
    assert [step.strain for step in honest.steps] == pytest.approx([1.0], abs=1e-6)
    assert not honest.differences
    if (adjacency, measure) in HALVED:
        owner, name, value = HALVED[adjacency, measure]
        with mock.patch.object(owner, name, value):
            faulty = strains(adjacency, measure)
        assert [step.strain for step in faulty.steps] == pytest.approx([2.0], abs=1e-6)


# -------------------------------------------------------------------------------------- wrong input


class Quoting:
    """A model whose error quotes a record."""

    classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Any:
        raise ValueError(f"bad record {X[0]}")


class Shaped(Constant):
    """Its answers have another shape: numpy would repeat a column for each label."""

    def predict(self, X: Any) -> Any:
        return np.ones((len(X), *self.answer))

    def predict_proba(self, X: Any) -> Any:
        return np.ones((len(X), *self.answer))


GOOD = (Constant(0), Constant(1))
WRONG = [
    (lambda: choose(3, X, Y, 1.0), r"models \(int\) must be several fitted models; pass a li"),
    (lambda: choose("ab", X, Y, 1.0), r"models \(str\) must be several fitted models"),
    (lambda: choose([Constant(0)], X, Y, 1.0), r"models \(1 of them\) must be from two to 10,000"),
    (lambda: choose({1: GOOD[0], 2: GOOD[1]}, X, Y, 1.0), r"by names that are texts; pass {'small"),
    (lambda: choose([*GOOD, 3], X, Y, 1.0), r"models \(2: int\) must have predict for measure='e"),
    (lambda: choose(GOOD, X, Y, 1.0, measure="log_loss"),
     r"models \(0: Constant\) must have predict_proba for measure='log_loss'; pass fitted class"),
    *((lambda m=m: choose(GOOD, X, Y, 1.0, measure=m), r"measure \(.*\) must be 'errors' or 'log_l")
      for m in ("accuracy", None, 3)),
    *((lambda c=c: choose(GOOD, X, Y, 1.0, clip=c), r"clip \(.*\) must be a number from 0.00390625")
      for c in (0, -1.0, 100, np.nan, "4", None)),
    (lambda: choose([Constant(0), Constant(2, (1, 2))], X, Y, 1.0),
     r"models must have the same classes as each other, and as classes if that is passed"),
    (lambda: choose(GOOD, X, Y, 1.0, classes=["a", "b"]), r"models must have the same classes"),
    (lambda: choose([Constant(0, (0,)), Constant(0, (0,))], X, Y, 1.0),
     r"classes must be at least two labels, which the models do not tell; pass classes="),
    (lambda: choose(GOOD, X, Y[:-1], 1.0), r"y must have one label for each record of X; pass a"),
    (lambda: choose(GOOD, X, 3, 1.0), r"y must have one label for each record of X"),
    (lambda: choose(GOOD, {"a": X[:, 0], "b": X[:3, 0]}, Y, 1.0), r"y must have one label for eac"),
    (lambda: choose(GOOD, X[:0], Y[:0], 1.0), r"X must have at least one record; pass a non-empty"),
    (lambda: choose(GOOD, X, np.where(Y, 98765, 0), 1.0),
     r"y has labels outside the declared classes; pass models of all classes, or classes=\["),
    (lambda: choose([GOOD[0], Quoting()], X, Y, 1.0),
     r"models \(1\) must predict the classes of X, but it failed with ValueError; pass models"),
    *((lambda m=m, s=s: choose([Shaped(s), Shaped(s)], X, Y, 1.0, measure=m),
       r"models must return one prediction for each record, or one probability for each of its cla")
      for m, s in (("errors", (1,)), ("errors", (2,)), ("log_loss", ()), ("log_loss", (3,)))),
    (lambda: choose([GOOD[0], LogisticRegression(1.0, classes=[0, 1])], X, Y, 1.0),
     r"models \(1\) must predict the classes of X, but it failed with NotFittedError"),
    (lambda: choose(GOOD, X, Y, float("inf")), r"epsilon \(inf\) is for the plain genetic algori"),
    *((lambda e=e: choose(GOOD, X, Y, e), r"epsilon") for e in (0.0, -1.0, None, "1")),
    (lambda: choose(GOOD, X, Y, 1.0, adjacency="swap"), r"adjacency \('swap'\) must be"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_input_is_refused_before_the_charge_and_quotes_no_record(call, message):
    with (
        mock.patch.object(Ledger, "reserve", side_effect=AssertionError("charged")),
        pytest.raises((PrivfitError, AssertionError), match=message) as caught,
    ):
        call()
    assert "98765" not in str(caught.value)
    assert str(X[0, 0])[:6] not in str(caught.value)
    assert caught.value.__cause__ is None


def test_every_refusal_is_tried():
    seen = "\n".join(messages_of(call) for call, _ in WRONG)
    assert_reached([Path(model_choice.__file__)], seen)


def test_a_model_that_has_no_classes_takes_those_that_are_declared():
    class Bare:
        def predict(self, X: Any) -> Any:
            return ["yes"] * len(X)

    names = np.where(Y, "yes", "no")
    found, _ = scores_of([Bare(), Bare()], X, names, classes=["no", "yes"])
    assert (-found).tolist() == [int((Y == 0).sum())] * 2
    odd, _ = scores_of([Constant("?", ("no", "yes")), Bare()], X, names, classes=["no", "yes"])
    assert -odd[0] == N  # a prediction of no class is an error, and no refusal


def test_probabilities_that_are_no_numbers_count_most():
    class Lost(Constant):
        def predict_proba(self, X: Any) -> Any:
            return np.full((len(X), 2), self.answer)

    models = [Lost(np.nan), Lost(0.0), Lost(1.0), Lost(7.0)]
    found, _ = scores_of(models, X, Y, measure="log_loss", clip=2.0)
    assert (-found).tolist() == [2 * 2**16 * N, 2 * 2**16 * N, 0, 0]
