"""Audits: what a mechanism or a whole fit really reveals, and how small an error they detect.

**Paired runs.** `paired` runs a fit on two neighbouring tables with one history of releases, and
compares every value that goes to a mechanism with what its event promises (`strain`). It needs a
pair of tables and no statistics, and finds errors of any solver that releases through a grant.

**Solvers.** `audit_solver` does this for a solver, in one call: on objectives that have nothing in
common it finds a solver that looks at scores, and on neighbours one that draws with too little
noise.

**White box.** `audit_selection` takes a small public domain, enumerates every pair of neighbouring
data sets, and computes the output distribution of a selection for each from its integer scores. It
reports the largest log ratio and the largest *range* of log ratios between neighbours. This is a
proof for that domain, size and candidate set, up to an error below 1e-30; it finds a range that is
too small, and nothing that depends on the sampler.

**Black box.** `audit_runs` runs anything on two neighbouring inputs and finds an event that
distinguishes them. The event is chosen on half of the runs and certified on the other half, with
exact binomial bounds (Clopper and Pearson 1934): with the stated confidence no (epsilon, delta)
guarantee below `lower_bound` holds. This is a statement about the code that ran; a small bound
proves nothing else. `canary` is a worst pair for selections. `one_run` needs one run, or a few, of
a mechanism that takes many canaries at once (Steinke, Nasr and Jagielski 2023).

>>> import numpy as np
>>> from privfit.audit import audit_runs
>>> def noisy_count(count, rng):  # a user-defined mechanism, claimed to be 1-DP
...     return count + rng.laplace(scale=0.5)
>>> found = audit_runs(noisy_count, 10, 11, runs=20_000, rng=np.random.default_rng(0))
>>> found.passes(1.0)
False
>>> found.lower_bound > 1.5
True

Inputs are made up and public; an audit releases nothing and charges nothing. Never run it on
private records: its report shows what a mechanism drew. docs/audit.md says how small an error is
detected in each estimator and solver.
"""

from privfit.audit.black_box import RunsAudit, audit_outcomes, audit_runs
from privfit.audit.canaries import OneRunAudit, audit_guesses, guesses_needed, one_run
from privfit.audit.pairs import PairedAudit, PairedStep, paired, worst_pair
from privfit.audit.solvers import SolverAudit, audit_solver
from privfit.audit.strains import strain
from privfit.audit.white_box import (
    Canary,
    Neighbours,
    SelectionAudit,
    audit_scores,
    audit_selection,
    canary,
    neighbours,
    output_distribution,
)
from privfit.base.cautions import old_names

__all__ = [
    "Canary",
    "Neighbours",
    "OneRunAudit",
    "PairedAudit",
    "PairedStep",
    "RunsAudit",
    "SelectionAudit",
    "SolverAudit",
    "audit_guesses",
    "audit_outcomes",
    "audit_runs",
    "audit_scores",
    "audit_selection",
    "audit_solver",
    "canary",
    "guesses_needed",
    "neighbours",
    "one_run",
    "output_distribution",
    "paired",
    "strain",
    "worst_pair",
]

__getattr__ = old_names(__name__, {"Step": "PairedStep"})
