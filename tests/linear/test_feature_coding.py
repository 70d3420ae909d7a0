"""Objective perturbation on functions of numbers: coded records, what is released, what is refused.

Coded records and their norms are computed from their definitions, apart from the code under test.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.cases import ADJACENCIES
from makers.raises import messages_of, raises_in
from reference import feature_record

from privfit import (
    Box,
    Budget,
    Categorical,
    Coding,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    Reals,
    Schema,
    Stream,
)
from privfit.audit import audit_solver
from privfit.domains.hashing import bucket_of
from privfit.linear import auto, objective_perturbation
from privfit.linear import feature_coding as module
from privfit.linear.feature_coding import feature_coding, rounded
from privfit.linear.recipe import Recipe
from privfit.objectives.features import ONE, Features
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE
from privfit.privacy.noise_bodies import contrasts

both = pytest.mark.parametrize("adjacency", ADJACENCIES)

FEW = Schema(
    {
        "x": Numeric(bins=[1, 2], ranks=[0.2, 0.5], missing=True),
        "y": Numeric(0, 10, bins=4),
        "z": Categorical(["a", "b", "c"]),
    }
)
RECORDS = list(itertools.product((0.0, 1.5, 3.0, None), (1.0, 4.0, 6.0, 9.0), "abc"))
SETTINGS = ObjectivePerturbation(functions=2)
KINDS = Schema.blank({"pay": "number", "age": "number", "job": "category"})


def of_few(records: Any, labels: Any) -> LinearObjective:
    table = dict(zip("xyz", map(list, zip(*records, strict=True)), strict=True))
    return LinearObjective(table, labels, "logistic", FEW)


def people(n: int = 3000, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Labels that are a hump of one number, a tenth of them flipped."""
    rng = np.random.default_rng(seed)
    table = {"pay": rng.lognormal(6, 2, n), "age": rng.uniform(0, 100, n),
             "job": rng.choice(list("abcd"), n)}  # fmt: skip
    hump = np.abs(np.log10(table["pay"]) - 2.6) < 0.6
    return table, (hump ^ (rng.random(n) < 0.1)).astype(int)


def model(epsilon: float = 2.0, domain: Any = KINDS, **more: Any) -> LogisticRegression:
    given = {"classes": [0, 1], "random_state": 0, "n_public": 3000} | more
    return LogisticRegression(epsilon, domain=domain, **given)


# ---------------------------------------------------------------------------------------- the proof


def by_hand() -> tuple[Any, Any]:
    """(records, p): coded records from their definition, not scaled, and as they are coded."""
    features = Features.of(FEW, 2, 2, 0.6)
    coding = feature_coding(FEW, features)
    rows = [rounded(table.rows) / ONE for table in features.tables[:2]] + [contrasts(3).T]
    levels = itertools.product(*(range(len(one)) for one in rows))
    naive, coded = [], []
    for chosen in levels:
        naive.append(feature_record(list(zip(rows, chosen, strict=True))))
        hot = np.concatenate([np.eye(len(one))[at] for one, at in zip(rows, chosen, strict=True)])
        coded.append(coding.matrix @ np.append(hot, 1.0))
    return np.array(naive), np.array(coded)


def test_every_record_of_a_small_table_is_coded_as_the_definition_says():
    naive, coded = by_hand()
    longest = np.linalg.norm(naive, axis=1).max()
    assert np.allclose(coded * longest, naive, rtol=0, atol=1e-3)  # the scale is a bound, rounded


def test_every_record_and_every_change_is_within_what_the_proof_wants():
    """l2 and the norm of the noise: at most 1 of a record, at most 2 of one that is replaced."""
    coding = feature_coding(FEW, Features.of(FEW, 2, 2, 0.6))
    _, coded = by_hand()
    lengths = np.linalg.norm(coded, axis=1)
    norms = np.array([coding.shape.norm(phi) for phi in coded])
    assert lengths.max() <= 1
    assert lengths.max() > 0.98  # nothing is wasted
    assert norms.max() <= 1
    assert norms.max() > 1 - 1e-5
    changes = [coding.shape.norm(a - s * b) for a in coded for b in coded for s in (-1, 1)]
    assert 1.9 < max(changes) <= 2


def test_rows_are_turned_into_a_ball_and_keep_what_they_tell():
    rows = Features.of(Schema({"x": Numeric(scale="log")}), 8, 8, 0.6).tables[0].rows
    found = rounded(rows)
    assert found.shape == rows.shape
    lengths = np.linalg.norm(found, axis=1) / ONE
    assert 1 <= lengths.max() < 1.01
    # An affine map: rows and a constant tell as much as before.
    with_one = np.column_stack([rows, np.full(len(rows), ONE)])
    left = np.linalg.lstsq(with_one / ONE, found / ONE, rcond=None)[0]
    assert np.abs(with_one / ONE @ left - found / ONE).max() < 1e-3
    volume = np.linalg.slogdet(np.cov(found.T))[1] - np.linalg.slogdet(np.cov(rows.T))[1]
    assert volume > 2 * 8 * math.log(1 / 0.75)  # the same ball holds more of them


@pytest.mark.slow
@both
def test_the_audit_of_solvers_passes_and_finds_a_planted_fault(adjacency, monkeypatch):
    def made(records: Any) -> LinearObjective:
        rows, labels = zip(*records, strict=True)
        return of_few(list(rows), list(labels))

    records = [(RECORDS[0], 0), (RECORDS[-1], 1), (RECORDS[17], 0)]
    audit = partial(audit_solver, SETTINGS, made, Reals(-1e6, 1e6, FEW.width + 1), 1.0, 0.0,
                    records=records, n=2, adjacency=adjacency, seeds=range(1))  # fmt: skip
    assert audit().passes()
    right = module._Part.shape
    monkeypatch.setattr(module._Part, "shape", lambda self, scale: right(self, scale / 3))
    assert not audit().passes()  # noise that is too small for the rows


# ------------------------------------------------------------------------------------------- fits


@both
def test_auto_is_additive_with_a_pure_budget_and_spends_it(adjacency):
    ledger = Ledger(2.0)
    found = model(adjacency=adjacency, ledger=ledger).fit(*people())
    said = found.release_.settings
    assert said["solver"] == "objective"
    assert (said["functions"], said["smooth"]) == (8, 0.7)
    assert found.release_.delta == 0
    assert found.release_.epsilon == 2.0
    assert {event["kind"] for event in found.release_.to_dict()["events"]} <= {"pure", "selection"}
    assert found.release_.verify()
    assert ledger.remaining.epsilon == 0


def test_a_curve_is_learned_that_no_line_can_tell():
    fresh, labels = people(2000, seed=1)
    assert model(8.0).fit(*people()).score(fresh, labels) > 0.75
    lines = model(8.0, coding="declared", solver="objective", domain=Schema(
        {"pay": Numeric(0, 1e5, fill=0), "age": Numeric(0, 100), "job": Categorical(list("abcd"))}
    ))  # fmt: skip
    assert lines.fit(*people()).score(fresh, labels) < 0.7


def test_class_weights_and_infinite_budgets_keep_their_solvers():
    table, y = people(300)
    assert model(class_weight="balanced").fit(table, y).release_.settings["solver"] == "local"
    assert model(coding="declared").fit(table, y).release_.settings.get("functions") is None


def test_several_classes_share_one_budget():
    table, _ = people(600)
    found = model(classes=[0, 1, 2]).fit(table, np.arange(600) % 3)
    assert found.coef_.shape[0] == 3
    assert found.release_.verify()
    assert found.release_.epsilon == 2.0


def test_support_vector_machines_take_functions():
    table, y = people()
    found = LinearSVC(8.0, domain=KINDS, classes=[0, 1], solver=ObjectivePerturbation(functions=8),
                      n_public=3000, random_state=0).fit(table, y)  # fmt: skip
    assert found.score(table, y) > 0.75


def test_streams_have_the_bits_of_memory(tmp_path):
    import pyarrow as pa

    table, y = people(1500)
    stream = Stream(pa.table({**table, "y": y}), folder=tmp_path)
    one, other = model().fit(table, y), model().fit(stream, "y")
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)


def test_a_cluster_has_the_bits_of_memory():
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    table, y = people(600)
    frame = pd.DataFrame({**table, "y": y})
    here = model().fit(table, y)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                 dashboard_address=":0") as there,
        distributed.Client(there),
    ):  # fmt: skip
        parts = dd.from_pandas(frame, npartitions=2)
        far = model().fit(parts[list(table)], parts["y"])
    assert np.array_equal(here.coef_, far.coef_)
    assert np.array_equal(here.intercept_, far.intercept_)


# --------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(("size", "columns", "numbers", "found"), [
    (100, 14, 6, (4, 2.0, 0, 4)),  # the intercept, and little else
    (1000, 14, 6, (8, 0.7, 0, 16)),
    (1000, 20, 18, (5, 2.0, 0, 16)),  # many numbers
    (3000, 14, 6, (8, 0.7, 0, 0)),
    (39_000, 14, 6, (8, 0.7, 2, 0)),
    (39_000, 20, 18, (8, 0.7, 0, 0)),
])  # fmt: skip
def test_the_recipe_follows_from_public_numbers(size, columns, numbers, found):
    recipe = Recipe.pure(size, 1.0, ADD_REMOVE, columns, numbers)
    assert (recipe.public, recipe.smooth, recipe.depth, recipe.hashes) == found
    doubled = Recipe.pure(2 * size, 1.0, REPLACE, columns, numbers)
    assert (doubled.public, doubled.smooth, doubled.depth, doubled.hashes) == found


def test_blank_categories_are_hashed_for_nothing_at_a_low_signal():
    table, y = people(500)
    found = model(0.5, n_public=500).fit(table, y)
    assert found.domain_.columns["job"] == Categorical(buckets=range(16), hashes=16)
    assert "blanks" not in found.release_.settings


def test_few_buckets_are_those_of_many_taken_together():
    column = Categorical(buckets=[1, 6], hashes=8, values=["x0"])
    cells = [f"x{i}" for i in range(100)] + [None]
    coded = Schema({"c": column}).encode({"c": cells}).toarray()
    wanted = [{1: 0, 6: 1}.get(bucket_of("c", text) % 8, 2) for text in cells[:-1]] + [2]
    assert coded.argmax(axis=1).tolist() == wanted
    assert Schema.from_dict(Schema({"c": column}).to_dict()).columns["c"] == column


@pytest.mark.parametrize(("epsilon", "delta", "count", "step"), [
    (0.1, 0.0, None, None),  # too few steps: the usual walk
    (1.0, 0.0, 6, 0.4), (10.0, 0.0, 25, 0.08),
    (0.1, 1e-6, None, None), (1.0, 1e-6, 24, 0.083),
])  # fmt: skip
def test_texts_are_walked_over_by_few_long_steps(epsilon, delta, count, step):
    walk = auto.choose(5016, Box(0, 1, 4096), Budget(epsilon, delta), REPLACE, models=1)
    assert isinstance(walk, Local)
    assert walk.generations == count
    assert walk.step == (step if step is None else pytest.approx(step, rel=0.02))
    assert walk.last_step == walk.step


# ---------------------------------------------------------------------------------------- refusals

REFUSED = [
    (lambda: ObjectivePerturbation(functions=1), r"functions \(1\) must be a whole number"),
    (lambda: ObjectivePerturbation(functions=2.5), r"functions \(2.5\) must be a whole number"),
    (lambda: ObjectivePerturbation(smooth=1.0), r"smooth \(1.0\) must be 0.7 or 2.0; leave it out"),
    (lambda: ObjectivePerturbation(level=0.5), r"level \(0.5\) is for additive models, which have"),
    (lambda: ObjectivePerturbation(functions=8, paper=True), "functions must be left out with pap"),
    (lambda: ObjectivePerturbation(functions=8, shaped=False), "functions must be left out with"),
    (lambda: model(delta=1e-6, solver=SETTINGS).fit(*people(50)), "delta must be 0 for objective"),
    (lambda: model(fit_intercept=False, solver=SETTINGS).fit(*people(50)),
     r"fit_intercept \(False\) must be True for objective perturbation"),
    (lambda: model(domain=(-1, 1), solver=SETTINGS).fit([[0.0], [1.0]], [0, 1]),
     r"domain \(Box\) must be a Schema for an additive model"),
    (lambda: Categorical(buckets=[0], hashes=3), r"hashes \(3\) must be a power of two up to 1024"),
    (lambda: Categorical(hashes=8), r"hashes \(8\) must be a power of two up to 1024, and needs b"),
    (lambda: Categorical(buckets=[8], hashes=8), "must be whole numbers from 0 to 7 that increase"),
    (lambda: model(coding=Coding(cuts=2), solver="objective").fit(*people(50)),
     "is for additive models under a Schema"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_has_no_meaning_is_refused_with_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_refusal_of_functions_is_reached():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED)
    raised = raises_in(Path(objective_perturbation.__file__))
    own = [parts for _, parts in raised if "function" in "".join(parts) or "smooth (" in parts]
    assert len(own) == 6
    assert all(part in seen for parts in own for part in parts)


def test_refusals_come_before_the_charge():
    ledger = Ledger(2.0, 1e-6)
    with pytest.raises(ValueError, match="must be 0 for objective perturbation"):
        model(1.0, delta=1e-6, solver=SETTINGS, ledger=ledger).fit(*people(50))
    assert ledger.remaining.epsilon == 2.0
