"""Unwise budgets, seeds and exact scores are warned of: once, before the charge, with a remedy."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from makers.places import TESTS

import privfit
from privfit import ScoreWarning, SeedWarning, UnwiseBudgetWarning
from privfit.base import cautions
from privfit.commands.main import main
from privfit.searches.sample_aggregate import aggregate

N = 1999  # private under add_remove
COINS = np.random.default_rng(2)
X = COINS.uniform(-1, 1, (N, 2))
Y = (X[:, 0] > 0).astype(int)
LINE = {"domain": (-1, 1)}
PLACES = {"facilities": X[:5], "clip": (0, 4)}


def one(x: Any, P: Any) -> Any:
    return np.zeros((len(x), len(P)))


# By name: what charges (epsilon, delta), with its options.
ENTRANCES: dict[str, Callable[..., Any]] = {
    "LogisticRegression": lambda e, d, **o: privfit.LogisticRegression(
        e, d, classes=[0, 1], solver="local", **LINE, **o).fit(X, Y),
    "LinearSVC": lambda e, d, **o: privfit.LinearSVC(
        e, d, classes=[0, 1], solver="local", **LINE, **o).fit(X, Y),
    "KMeans": lambda e, d, **o: privfit.KMeans(2, e, d, **LINE, **o).fit(X),
    "KMedian": lambda e, d, **o: privfit.KMedian(2, e, d, **PLACES, **o).fit(X),
    "SelectFeatures": lambda e, d, **o: privfit.SelectFeatures(
        e, d, classes=[0, 1], k=1, **o).fit(X > 0, Y),
    "search": lambda e, d, **o: privfit.search(
        privfit.RecordObjective(X, one, -1.0, 0.0), privfit.Bits(3), e, d,
        privfit.DPSGA(generations=2), **o),
    "roc_curve": lambda e, d, **o: privfit.roc_curve(Y, X[:, 0], e, d, bounds=(-1, 1), **o),
    "aggregate": lambda e, d, **o: aggregate(X, np.mean, (-1, 1), e, d, blocks=10, **o),
}  # fmt: skip
NO_SIZE = {  # they take no n_public
    "BernoulliNB": lambda e, d, **o: privfit.BernoulliNB(e, d, classes=[0, 1], **o).fit(X > 0, Y),
}
PURE: dict[str, Callable[..., Any]] = {
    "confusion_matrix": lambda e, **o: privfit.confusion_matrix(Y, X[:, 0], e, **o),
    "accuracy_score": lambda e, **o: privfit.accuracy_score(Y, X[:, 0], e, **o),
    "roc_auc_score": lambda e, **o: privfit.roc_auc_score(Y, X[:, 0], e, bounds=(-1, 1), **o),
    "private_inertia": lambda e, **o: privfit.KMeans(2, 1.0, **LINE).fit(X).set_params(
        **o).private_inertia(X, e),
    "private_cost": lambda e, **o: privfit.KMedian(2, 1.0, **PLACES).fit(X).set_params(
        **o).private_cost(X, e),
}  # fmt: skip
ALL = ENTRANCES | NO_SIZE


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been warned of before."""
    monkeypatch.setattr(cautions, "_given", set())


def told(call: Callable[[], Any], category: type[Warning] = Warning) -> list[str]:
    """The texts of this category's warnings of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in seen if issubclass(each.category, category)]


# ----------------------------------------------------------------------------------------- budgets


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ALL)
def test_a_large_delta_is_warned_of_once(name):
    (text,) = told(lambda: ALL[name](1.0, 0.5))
    assert text.startswith("delta (0.5) is so large")
    assert text.endswith("pass a delta far below 1 / the number of records, such as 1e-6")


def test_the_delta_that_is_proposed_is_wise_for_as_many_records():
    source = SimpleNamespace(seeded=False)
    (text,) = told(lambda: cautions.caution(1.0, 1e-6, source, size=10_000_000))
    assert text.endswith("such as 1e-8")
    assert told(lambda: cautions.caution(1.0, 1e-8, source, size=10_000_000)) == []


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ALL)
def test_delta_is_compared_with_the_number_of_records_where_that_is_public(name):
    wise, unwise = 0.9 / N, 1.1 / N
    assert told(lambda: ALL[name](1.0, wise)) == []
    assert len(told(lambda: ALL[name](1.0, unwise), UnwiseBudgetWarning)) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ENTRANCES)
def test_delta_is_compared_with_the_declared_number_where_the_real_one_is_private(name):
    run = ENTRANCES[name]
    private = {"adjacency": "add_remove", "n_public": 100}
    assert told(lambda: run(1.0, 0.009, **private)) == []
    (text,) = told(lambda: run(1.0, 0.0011, **private | {"n_public": 1000}))
    assert str(N) not in text
    assert "1000" not in text


def test_delta_is_compared_with_nothing_where_no_number_is_public():
    run = NO_SIZE["BernoulliNB"]
    assert told(lambda: run(1.0, 0.009, adjacency="add_remove")) == []
    assert len(told(lambda: run(1.0, 0.02, adjacency="add_remove"))) == 1


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ALL)
def test_a_large_epsilon_is_warned_of_once(name):
    assert told(lambda: ALL[name](20.0, 0.0)) == []
    (text,) = told(lambda: ALL[name](1000.0, 0.0))
    assert text.startswith("epsilon (1000) is so large that it protects nobody")
    assert text.endswith("pass a budget such as 1.0")


@pytest.mark.parametrize("name", PURE)
def test_a_large_epsilon_of_a_metric_is_warned_of_once(name):
    assert told(lambda: PURE[name](20.0)) == []
    (text,) = told(lambda: PURE[name](21.0))
    assert text.startswith("epsilon (21) is so large")


@pytest.mark.parametrize("name", ALL)
def test_a_program_that_refuses_unwise_budgets_has_spent_nothing(name):
    ledger = privfit.Ledger(1000.0, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnwiseBudgetWarning)
        for budget in ((1000.0, 0.0), (1.0, 0.5)):
            with pytest.raises(UnwiseBudgetWarning):
                ALL[name](*budget, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize("name", PURE)
def test_a_metric_that_is_refused_has_spent_nothing(name):
    ledger = privfit.Ledger(1000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnwiseBudgetWarning)
        with pytest.raises(UnwiseBudgetWarning):
            PURE[name](1000.0, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize("wrong", ["1", None, math.nan, -1.0, 2.0])
def test_what_is_no_delta_is_refused_and_not_warned_of(wrong):
    with pytest.raises((TypeError, ValueError), match="delta"):
        told(lambda: ENTRANCES["search"](1.0, wrong))
    nothing = SimpleNamespace(seeded=False)
    assert told(lambda: cautions.caution(1.0, wrong, nothing)) == []


def test_an_infinite_epsilon_has_a_warning_of_its_own():
    (text,) = told(lambda: ENTRANCES["search"](math.inf, 0.0))
    assert text == "epsilon=inf: this is not private"


def test_a_warning_points_at_the_line_that_called():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ENTRANCES["KMeans"](1000.0, 0.0)
    assert [Path(each.filename).name for each in seen] == [Path(__file__).name]


# ------------------------------------------------------------------------------------------- seeds


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ALL)
def test_a_seed_is_warned_of_once_a_process(name):
    (text,) = told(lambda: [ALL[name](1.0, 0.0, random_state=i) for i in range(2)])
    assert text == (
        "random_state is set, which voids privacy: whoever knows the seed can subtract the noise; "
        "leave it out for private records"
    )
    assert told(lambda: ALL["KMeans"](1.0, 0.0, random_state=1)) == []


@pytest.mark.parametrize("name", PURE)
def test_a_seed_of_a_metric_is_warned_of(name):
    assert len(told(lambda: PURE[name](1.0, random_state=0), SeedWarning)) == 1


def test_without_a_seed_nothing_is_said(tmp_path):
    assert told(lambda: ALL["KMeans"](1.0, 0.0)) == []
    with privfit.Checkpoint(tmp_path / "journal", 1.0) as journal:
        assert told(lambda: ALL["KMeans"](1.0, 0.0, ledger=journal.ledger,
                                          random_state=journal.coins)) == []  # fmt: skip


def test_a_program_that_refuses_seeds_refuses_each_before_the_charge():
    ledger = privfit.Ledger(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeedWarning)
        for _ in range(2):
            with pytest.raises(SeedWarning):
                ALL["KMeans"](1.0, 0.0, random_state=0, ledger=ledger)
    assert ledger.entries == ()


# ------------------------------------------------------------------------------------ exact scores


@pytest.mark.parametrize(
    ("fit", "remedy"),
    [
        (lambda: ALL["LogisticRegression"](1.0, 0.0).score(X, Y), "privfit.accuracy_score"),
        (lambda: ALL["LinearSVC"](1.0, 0.0).score(X, Y), "privfit.accuracy_score"),
        (lambda: ALL["BernoulliNB"](1.0, 0.0).score(X > 0, Y), "privfit.accuracy_score"),
        (lambda: ALL["KMeans"](1.0, 0.0).score(X), "private_inertia"),
        (lambda: ALL["KMedian"](1.0, 0.0).score(X), "private_cost"),
    ],
)
def test_a_score_says_once_a_process_that_it_is_not_private(fit, remedy):
    (text,) = told(lambda: [fit() for _ in range(2)])
    assert text == (
        f"score is exact and not private: pass public records, or use {remedy}, which has a budget"
    )


def test_scores_of_a_cross_validation_are_warned_of_at_the_callers_line():
    from sklearn.model_selection import cross_val_score

    model = privfit.BernoulliNB(1.0, classes=[0, 1])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        cross_val_score(model, X > 0, Y, cv=3)
    (only,) = (each for each in seen if each.category is ScoreWarning)
    assert Path(only.filename).name == Path(__file__).name


@pytest.mark.slow
def test_public_records_need_no_caution_and_do_not_use_it_up():
    model = privfit.LogisticRegression(delta=0.5, classes=[0, 1], solver="local", **LINE)
    assert told(lambda: privfit.sweep(model, X, Y, [100.0], public=True, seeds=1)) == []
    assert len(told(lambda: ALL["KMeans"](1.0, 0.0, random_state=0).score(X))) == 2


# ------------------------------------------------------------------------------------ the command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{x:.3f},{'ab'[y]}" for x, y in zip(X[:, 0], Y, strict=True))
    Path("people.csv").write_text(f"x,kind\n{rows}\n")
    Path("schema.toml").write_text(
        '[data]\nlabel = "kind"\nclasses = ["a", "b"]\n[columns]\nx = {low = -1, high = 1}\n'
    )
    return tmp_path


def commanded(capsys: Any, *more: str) -> list[str]:
    """The warnings of a fit with a held-out part: two charges."""
    fit = ["fit", "people.csv", "--schema", "schema.toml", "--holdout", "0.2", "--out", "m.json"]
    assert main([*fit, *more]) == 0
    return re.findall(r"^warning: (.*)", capsys.readouterr().err, re.M)


def test_the_command_prints_each_caution_once(folder, capsys):
    (epsilon,) = commanded(capsys, "--epsilon", "1000")
    assert epsilon.startswith("epsilon (1000) is so large that it protects nobody")
    (delta,) = commanded(capsys, "--epsilon", "1", "--delta", "0.01")
    assert delta.startswith("delta (0.01) is so large")
    (seed,) = commanded(capsys, "--epsilon", "1", "--seed", "1")
    assert seed.startswith("--seed voids privacy")
    assert commanded(capsys, "--epsilon", "1") == []


def test_the_command_shows_no_private_number(folder, capsys):
    private = ["--adjacency", "add_remove", "--n-public", "900", "--epsilon", "30"]
    cautions_told = commanded(capsys, *private, "--delta", "0.01")
    assert len(cautions_told) == 2
    assert not any(str(N) in text for text in cautions_told)


# --------------------------------------------------------------------------- every warning is here

SOURCES = sorted(Path(privfit.__file__).parent.rglob("*.py"))
# Where privfit warns, and a test that expects it; perturbed fits are all in one file.
WARNINGS = {
    "__init__.py": {"__getattr__": "test_names.py"},
    "base/cautions.py": {
        "_warn": "this file",
        "old_names": "test_names.py",
        "look_up": "test_names.py",
        **dict.fromkeys(("old_order", "decorate", "called"), "test_names.py"),
    },
    "privacy/budget_file.py": {
        "open_ledger": "privacy/test_relations.py",
        "publish": "privacy/test_budget_file.py",
    },
    "estimators/common.py": {
        "check_names": "test_every_estimator.py",
        "read_labels": "test_every_estimator.py",
    },
    "estimators/kmedian.py": {"fit": "test_names.py"},
    "runs/run.py": {"select": "test_names.py"},
    "estimators/select.py": {"_declared_solver": "test_names.py"},
    "evaluation/roc.py": {"plot": "evaluation/test_roc.py"},
    "runs/payment.py": {"open": "searches/test_search.py"},
    "runs/door.py": {"settings_of": "test_names.py"},
}


def places_that_warn(source: Path) -> set[str]:
    """The functions of a file that call `warnings.warn`."""
    found = set()
    for outer in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(outer, ast.FunctionDef):
            for node in ast.walk(outer):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                    found.add(outer.name)
    return found


def test_every_place_that_warns_is_known_and_tested():
    package = Path(privfit.__file__).parent
    found = {source.relative_to(package).as_posix(): places_that_warn(source) for source in SOURCES}
    if found.pop("linear/objective_perturbation.py"):
        assert "warns" in (TESTS / "linear" / "test_perturbation.py").read_text()
    assert {name: places for name, places in found.items() if places} == {
        name: set(places) for name, places in WARNINGS.items()
    }
    for places in WARNINGS.values():
        for test in set(places.values()) - {"this file"}:
            assert "warns" in (TESTS / test).read_text(encoding="utf-8")
