"""The budget of one run: its own ledger, the shared file behind it, and the split of its records.

A run may fit on some records and measure accuracy on others. The two parts are disjoint, so each
may use the whole budget of the run (`privfit.privacy.ledger` has the proof, and its conditions on
the split). The shared file is charged once, for the whole run and for all records: another run may
split differently, so groups of one run mean nothing to the next.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.base.errors import InputError
from privfit.commands.arguments import COUNT, DELTA, EPSILON
from privfit.commands.console import Console
from privfit.commands.tables import Table
from privfit.privacy.budget_file import LedgerFile, open_ledger
from privfit.privacy.charges import Charge
from privfit.privacy.ledger import ADJACENCIES, Grant, Ledger, Release
from privfit.privacy.neighbours import Neighbours

__all__ = [
    "Mask",
    "RunLedger",
    "add_budget",
    "check_share",
    "open_run",
    "open_shared",
    "report",
    "seed_of",
    "split",
]

Mask: TypeAlias = NDArray[np.bool_]


class RunLedger(Ledger):
    """The ledger of one run: charged in full to the shared one when its first grant is made."""

    def __init__(
        self,
        epsilon: float,
        delta: float,
        shared: LedgerFile | None = None,
        adjacency: str | None = None,
        model: str = "",
    ) -> None:
        super().__init__(epsilon, delta, adjacency)
        self.shared, self.charged = shared, False
        self._paid: Grant | None = None  # the whole run's, in the shared ledger
        if shared is not None:  # before records are read
            self._begun = shared.begun(model)
            shared._check_covers(Charge("", "this run", self.budget, adjacency))

    def _charge(self, charge: Charge) -> None:
        self._check_covers(charge)
        if not self.charged:
            self.charged = True  # first: an interrupt while the file is written must not hide it
            try:
                if self.shared is not None:
                    self._paid = self._reserved(self.shared, charge.name)
            except Exception:
                self.charged = False
                raise
        super()._charge(charge)

    def _reserved(self, shared: LedgerFile, name: str) -> Grant:
        """The whole budget of the run, with the time when it began."""
        whole = self.budget
        with shared.under(self._begun):
            return shared.reserve(whole.epsilon, whole.delta, name, adjacency=self.adjacency)

    def publish(self, release: Release) -> None:
        """Keep a release here, and in the shared ledger."""
        super().publish(release)
        if self._paid is not None:
            self._paid.holder.publish(release)


def add_budget(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add the options of a command that spends budget, or that may do so."""
    budget = parser.add_argument_group("privacy")
    budget.add_argument(
        "--epsilon",
        type=EPSILON,
        required=required,
        metavar="E",
        help="the privacy budget of this run: smaller is more private; often 0.1 to 3",
    )
    budget.add_argument(
        "--delta",
        type=DELTA,
        default=0.0,
        metavar="D",
        help="the delta of (epsilon, delta)-differential privacy; choose it far below 1 / (number "
        "of records); default: 0",
    )
    budget.add_argument(
        "--adjacency", choices=ADJACENCIES, default="replace",
        help="what is protected: the contents of one row (replace, the default), or the presence "
        "of one record (add_remove; the number of records is then private, too)",
    )  # fmt: skip
    budget.add_argument(
        "--n-public", type=COUNT, metavar="N",
        help="a public estimate of the number of records, for add_remove",
    )  # fmt: skip
    budget.add_argument(
        "--ledger", metavar="FILE",
        help="a budget file shared between runs, created by privfit budget --create",
    )  # fmt: skip
    budget.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="make a run repeatable, which VOIDS PRIVACY; for tests",
    )


def open_shared(path: str, adjacency: str | None = None) -> LedgerFile:
    """The ledger of a budget file, which must exist."""
    if not os.path.exists(path):
        raise InputError(
            f"--ledger ({path!r}) must be an existing budget file; create one with privfit "
            "budget --create --ledger FILE --epsilon E --delta D"
        )
    return open_ledger(path, adjacency=adjacency)


def open_run(options: argparse.Namespace, console: Console) -> RunLedger:
    """The ledger of this run; the shared file must exist and have enough budget left."""
    shared = None if options.ledger is None else open_shared(options.ledger)
    model = getattr(options, "out", None) or ""
    console.ledger = RunLedger(options.epsilon, options.delta, shared, options.adjacency, model)
    return console.ledger


def seed_of(options: argparse.Namespace, console: Console) -> int | None:
    """The seed, with its warning."""
    if options.seed is None:
        return None
    if options.seed < 0:
        raise InputError(f"--seed ({options.seed}) must be 0 or more; pass a whole number")
    console.warn(
        "--seed voids privacy: anyone who knows it can subtract the noise; leave it out for real "
        "records"
    )
    return int(options.seed)


def check_share(share: float) -> None:
    """Refuse a share that is not between 0 and 1."""
    if not 0 < share < 1:
        raise InputError(f"--holdout ({share}) must lie between 0 and 1; pass a share such as 0.2")


def split(table: Table, share: float, adjacency: str) -> Mask:
    """Which records are held out: a mask (n,), by a public rule.

    'replace': by position, shuffled by a public seed, so that replacing a record leaves all others
    where they were. 'add_remove': by the record alone, a hash of its values, since one more
    record would shift the positions of the others; equal records stay together.
    """
    if Neighbours.of(adjacency).replaces:
        held = np.random.default_rng(0).permutation(len(table)) < round(share * len(table))
    else:
        held = _hashes(table) < np.uint64(int(share * 2**64))
    if held.all() or not held.any():
        raise InputError(
            f"--holdout ({share}) must leave records on both sides; pass another share, or more "
            "records"
        )
    return held


def _hashes(table: Table) -> NDArray[np.uint64]:
    """(n,): a hash of each record's values, by the finaliser of MurmurHash3 over its columns."""
    state = np.zeros(len(table), dtype=np.uint64)
    for values in table.codes():
        state ^= np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
        for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
            state ^= state >> np.uint64(shift)
            state *= np.uint64(factor)
        state ^= state >> np.uint64(33)
        state += np.uint64(0x9E3779B97F4A7C15)  # so that columns of zeros still stir
    return state


def report(ledger: RunLedger, console: Console) -> dict[str, Any]:
    """Print what the run spent as a table, and return it as a dictionary."""
    rows = [(name, group or "all", f"{budget.epsilon:.6g}", f"{budget.delta:.6g}")
            for group, name, budget in ledger.entries]  # fmt: skip
    spent = ledger.budget
    rows.append(("charged", "all", f"{spent.epsilon:.6g}", f"{spent.delta:.6g}"))
    if ledger.shared is not None:
        left = ledger.shared.remaining
        cost = Charge("", "run", spent, ledger.adjacency).cost(ledger.shared.neighbours)
        if cost != spent:
            name = f"the same under {ledger.shared.adjacency}"
            rows.append((name, "all", f"{cost.epsilon:.6g}", f"{cost.delta:.6g}"))
        rows.append(("left in the file", "all", f"{left.epsilon:.6g}", f"{left.delta:.6g}"))
    console.table(("ledger", "records", "epsilon", "delta"), rows)
    return {
        "entries": [
            {"name": name, "records": group or "all", "epsilon": budget.epsilon,
             "delta": budget.delta}
            for group, name, budget in ledger.entries
        ],
        "adjacency": ledger.adjacency,
        "charged": {"epsilon": spent.epsilon, "delta": spent.delta},
        "remaining": None if ledger.shared is None else {
            "epsilon": ledger.shared.remaining.epsilon, "delta": ledger.shared.remaining.delta
        },
    }  # fmt: skip
