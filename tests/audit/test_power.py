"""Every estimator and solver is audited, with the power that docs/audit.md states.

Paired audits compare exact numbers and raise no false alarm; the test of a sampler alarms by chance
at most once in 1e6 runs, and its seed is fixed. `python -m bench audit` measures all rows and
writes the page; here one audit of each row is repeated, on the pairs that were found there.
"""

from __future__ import annotations

import sys
from unittest import mock

import pytest
from makers.places import ROOT

import privfit
from privfit import DiscreteLaplace
from privfit.clustering import kmeans, kmedian
from privfit.estimators import linear
from privfit.features import selection
from privfit.searches import solvers

if not (ROOT / "bench" / "audit").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench.audit import PLANTED, audits, open_audits, open_samplers, samplers, tables, tries_of
from bench.audit.rows import REFUSED, all_audits

ALL = all_audits()
KNOWN = open_audits()
SOLVERS = {
    "LogisticRegression": linear.METHODS,
    "LinearSVC": linear.METHODS,
    "KMeans": kmeans.METHODS,
    "KMedian": kmedian.METHODS,
    "SelectFeatures": selection.METHODS,
    **{f"search, {space}": solvers.SOLVERS for space in ("reals", "sets", "bits")},
}
NO_RELEASE = {"HashWords"}  # reads texts into public columns


def test_every_solver_of_every_estimator_has_a_row():
    rows = {audit.row for audit in ALL}
    for estimator, methods in SOLVERS.items():
        wanted = {(estimator, name) for name in methods} - REFUSED
        assert wanted <= rows
        if not estimator.startswith("search"):
            assert (estimator, "auto") in rows
    for estimator, solver in REFUSED:
        model = getattr(privfit, estimator)(1.0, domain=(-1, 1), classes=[0, 1], solver=solver)
        with pytest.raises(ValueError, match=f"(?i){solver}"):
            model.fit([[0.0], [1.0]], [0, 1])


def test_every_estimator_and_metric_has_a_row():
    estimators = {audit.estimator.split(",")[0].split(".")[0] for audit in ALL}
    assert set(privfit.estimators.__all__) - NO_RELEASE <= estimators
    takes_a_budget = {name for name in privfit.__all__ if name[0].islower() and "epsilon" in
                      getattr(privfit, name).__code__.co_varnames[:6]}  # fmt: skip
    assert takes_a_budget - {"delta_at", "open_ledger", "sweep"} <= estimators
    methods = {audit.estimator for audit in ALL}
    assert {"KMeans.private_inertia", "KMedian.private_cost", "aggregate"} <= methods


def test_every_row_was_measured_and_the_page_shows_it():
    drawn = open_samplers()
    assert {audit.key for audit in ALL} == {row["audit"] for row in KNOWN}
    assert {sampler.name for sampler in samplers.SAMPLERS} == {row["sampler"] for row in drawn}
    assert all(row["passes"] == "True" for row in KNOWN)
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert "\n".join(tables(KNOWN, drawn)) in page


def one_of_each():
    """An audit of each row: domains, relations and budgets in turn."""
    by_row = {}
    for audit in ALL:
        by_row.setdefault(audit.row, []).append(audit)
    return [audit_list[(5 * place) % len(audit_list)]
            for place, audit_list in enumerate(by_row.values())]  # fmt: skip


@pytest.mark.few(45)
@pytest.mark.parametrize("audit", one_of_each(), ids=lambda audit: audit.key)
def test_a_fault_of_a_half_is_found_and_right_code_passes(audit):
    """Noise too small by 1.5; by 2 where the table says that no less is found."""
    known = KNOWN.get(audit.key)
    tries = tries_of(known)
    assert audit.measure(tries).passes
    factor = PLANTED if float(known["finds"]) < 1.49 else 2.0
    with audits.fault(factor):
        assert not audit.measure(tries).passes


def test_a_planted_fault_is_gone_afterwards():
    before = {kind: (kind.event, kind.__init__) for kind in audits.BUDGETS}
    with audits.fault(3.0):
        planted = DiscreteLaplace(1.0, 1)
        assert (planted.epsilon, planted.event.parameter) == (3.0, 1.0)
    assert {kind: (kind.event, kind.__init__) for kind in audits.BUDGETS} == before
    assert DiscreteLaplace(1.0, 1).epsilon == 1.0


RANGES = {
    "linear range": ("privfit.objectives.linear.LinearObjective.range", "dpsga"),
    "clipped gradients": ("privfit.objectives.clipping.ClippedGradient.sensitivity", "gradient"),
    "second moments": ("privfit.objectives.clipping.SecondMoments.sensitivity", "gradient"),
}


@pytest.mark.parametrize("what", RANGES)
def test_a_halved_sensitivity_in_the_code_itself_is_found(what):
    """Not in the mechanism, but where the number is computed."""
    path, solver = RANGES[what]
    audit = next(a for a in ALL if a.key == f"LogisticRegression/{solver}/box/replace/1e-06")
    tries = tries_of(KNOWN.get(audit.key))
    module, kind, name = path.rsplit(".", 2)
    owner = getattr(sys.modules[module], kind)
    honest = getattr(owner, name)

    def halved(self, *rest, **named):
        found = honest(self, *rest, **named)
        return found // 2 if isinstance(found, int) else found / 2

    with mock.patch.object(owner, name, halved):
        assert not audit.measure(tries).passes
    assert audit.measure(tries).passes


@pytest.mark.slow
@pytest.mark.parametrize("sampler", samplers.SAMPLERS, ids=lambda sampler: sampler.name)
def test_a_sampler_follows_its_law_and_one_that_is_half_too_sharp_is_found(sampler):
    """False alarms: 1e-6 a sampler."""
    assert not sampler.alarm(1.0)
    assert sampler.alarm(1.5)
