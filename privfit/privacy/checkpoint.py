"""A journal of what a run released: after a crash it continues, and pays for nothing twice.

A `Checkpoint` has a ledger and a source of bits. A run that uses both writes every grant, every
draw and the seeds of its public coins to the journal. Started again, the same run is *replayed*:
its grants are those on record, a draw on record is not drawn again but read, and coins fall as they
did, so that candidates are the same. When the record ends the run continues by itself.

**Why this costs nothing.** A drawn value reaches the journal, on disk, before it reaches the
algorithm. So everything that anybody saw of the first run is on record, and reading it again is
post-processing. A draw that a crash kept from the record was seen by nobody; the one that is made
in its place is the first that is released. Noise is never on record: together with a released value
it would reveal the private one. On record are released values, and seeds that determine only what
to propose, or samples whose key is public.

The records are scored again, which takes time but no budget.

**With a budget file**, a grant is charged there first, under the id of the run and the number of
the grant, and then written to the journal; on resuming, one that is in the file is not charged
again. A draw is written to the budget file first, then to the journal, and then shown. So whatever
copy of a journal is resumed, nobody sees another outcome of a draw that was made: the copy has it,
gets it from the budget file, or is refused. Without a budget file nothing knows what an older copy
lacks.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from threading import RLock
from typing import SupportsInt, cast

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.errors import BudgetError, DeclarationError, DeclarationTypeError
from privfit.base.typing import Array
from privfit.privacy.budget_file import LedgerFile
from privfit.privacy.budget_text import Progress
from privfit.privacy.charges import Charge
from privfit.privacy.journal import VERSION, Journal, Line
from privfit.privacy.ledger import Budget, Grant, Ledger, Release
from privfit.privacy.mechanisms import Mechanism, T, V
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.privacy.privtree import Leaves

__all__ = ["Checkpoint"]


class Checkpoint:
    """A ledger and a source of bits whose use is recorded in a file, to resume after a crash.

    Parameters
    ----------
    path : str or path-like
        The journal; it is created if it does not exist, and replayed if it does.
    epsilon : float or None, default=None
        The budget of the whole run, as for a `Ledger`; by default that of `ledger`.
    delta : float, default=0.0
        Its delta, if epsilon is passed.
    ledger : LedgerFile or None, default=None
        A budget file (`open_ledger`) that pays for the run. Each grant is charged to it once, under
        a run id that both files keep, however often the run is killed and resumed. The file knows
        how far the run has got, so that an older copy of the journal is refused.
    random_state : None, int or numpy.random.Generator, default=None
        Source of new bits. None draws from the operating system; a seed is for tests.

    Attributes
    ----------
    ledger : Ledger
        For ``ledger=`` of everything that the run fits.
    coins : source of bits
        For ``random_state=`` of everything that the run fits.
    run : str
        The id of the run.

    See Also
    --------
    open_ledger : A budget that several runs share.

    Notes
    -----
    Replaying is post-processing of released values: it costs no budget. The journal contains
    released values and public seeds, but no noise.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from privfit import Checkpoint, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> def run(path):
    ...     with Checkpoint(path, 1.0, 1e-6) as journal:
    ...         model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[False, True],
    ...                                    ledger=journal.ledger, random_state=journal.coins)
    ...         return model.fit(X, X[:, 0] > 0).coef_, journal.ledger.spent.epsilon
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, again = run(f"{folder}/journal"), run(f"{folder}/journal")
    >>> bool((first[0] == again[0]).all()), again[1]
    (True, 1.0)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        ledger: LedgerFile | None = None,
        random_state: object = None,
    ) -> None:
        budget = _budget(epsilon, delta, ledger)
        if ledger is not None and not ledger.identity:
            raise DeclarationError(
                "ledger must be a budget file with an identity, by which the journal knows it; "
                "start one by open_ledger"
            )
        self._journal = Journal(path)
        what = {"privfit": VERSION, "epsilon": budget.epsilon, "delta": budget.delta,
                "ledger": "" if ledger is None else ledger.identity}  # fmt: skip
        try:
            run = str(self._journal.step("run", what, secrets.token_hex(8)))
            self._guard = None if ledger is None else _Guard(self._journal, ledger, run)
            self.ledger: Ledger = _Ledger(self._journal, budget, run, ledger)
            self.coins: BitSource = _Coins(self._journal, random_state)
        except BaseException:
            self._journal.close()
            raise
        self.run = run

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if self._guard is not None and kind is None:
            self._guard.settle()
        self._journal.close()

    def __repr__(self) -> str:
        return f"Checkpoint({self.ledger!r}, {self._journal.left} steps to replay)"


def _budget(epsilon: float | None, delta: float, ledger: LedgerFile | None) -> Budget:
    """The budget of the whole run: what was declared, or that of the budget file."""
    if ledger is not None and not isinstance(ledger, LedgerFile):
        raise DeclarationTypeError(
            f"ledger ({type(ledger).__name__}) must be that of a budget file, which outlives a "
            "crash; pass open_ledger(path)"
        )
    if epsilon is not None:
        return Budget(epsilon, delta)
    if ledger is None:
        raise DeclarationError(
            "epsilon (None) must be a number; pass the budget of the run, or a ledger by "
            "ledger=open_ledger(path)"
        )
    return ledger.budget


class _Ledger(Ledger):
    """A ledger whose grants are on record, and charged to a budget file once if there is one."""

    def __init__(
        self, journal: Journal, budget: Budget, run: str = "", file: LedgerFile | None = None
    ) -> None:
        super().__init__(budget.epsilon, budget.delta)
        self._journal, self._run, self._paid_from = journal, run, file
        self.recorder = journal
        self._outer = file  # whose relation counts
        self._begun = None if file is None else file.current_run()  # before records are read

    def _charge(self, charge: Charge) -> None:
        if self._paid_from is not None and self._begun is not None:
            self._check_covers(charge)
            paid = self._journal.check("grant", _asked(charge))
            with self._paid_from.under(self._begun):
                self._paid_from.charge_once(charge, self._run, len(self._charges), paid=paid)
        super()._charge(charge)

    def _grant(self, charge: Charge) -> Grant:
        self._journal.step("grant", _asked(charge))
        return _Grant(self._journal, len(self._charges) - 1, *self._terms(charge))

    def nested(
        self,
        epsilon: float,
        delta: float = 0.0,
        name: str = "part",
        adjacency: Adjacency | None = None,
    ) -> Ledger:
        """Refused: grants of a ledger within would draw anew whenever the run is resumed."""
        raise DeclarationError(
            "a ledger within that of a checkpoint has no journal, and would draw anew in each "
            "resumed run; reserve parts from journal.ledger itself"
        )

    def publish_part(self, release: Release, part: int) -> None:
        """Keep the release of a grant, here and in the budget file."""
        super().publish(release)
        if self._paid_from is not None:
            self._paid_from.publish(release, self._run, part, replaces=True)


def _asked(charge: Charge) -> list[object]:
    """What is on record of a grant."""
    asked = charge.budget
    return [charge.group, charge.name, asked.epsilon, asked.delta, charge.adjacency]


class _Part:
    """What a grant needs of its ledger: where its release goes."""

    def __init__(self, ledger: _Ledger, part: int) -> None:
        self._ledger, self._part = ledger, part

    def agree(self, neighbours: Neighbours | None) -> Neighbours:
        """The ledger's neighbours, or from now on these."""
        return self._ledger.agree(neighbours)

    def publish(self, release: Release) -> None:
        """Keep the release."""
        self._ledger.publish_part(release, self._part)


class _Grant(Grant):
    """A grant whose declarations and draws are on record."""

    def __init__(
        self, journal: Journal, part: int, name: str, budget: Budget, lock: RLock, holder: Ledger
    ) -> None:
        super().__init__(name, budget, lock, _Part(cast("_Ledger", holder), part))
        self._journal = self.recorder = journal

    def declare(self, *declarations: object) -> None:
        """Tie the journal to declarations."""
        self._check_process()
        with self._lock:
            self._check_open()
            self._journal.step("declared", list(declarations))

    def release(self, mechanism: Mechanism[V, T], value: V, rng: object = None) -> T:
        """Check, charge, and draw or read what was drawn."""
        with self._lock:
            what = repr(mechanism)
            self._charge(mechanism, rng)
            known = self._journal.recorded("draw", what)
            if known is not None:
                return cast("T", _decoded(known))
            with self._journal.draw():
                drawn = mechanism(value, rng)
            self._journal.append("draw", what, _encoded(drawn))
        self._tell("release", mechanism)
        return drawn


class _Guard:
    """Keeps a journal and its budget file in step, so that no draw is made twice.

    The line of a draw is in the budget file before it is in the journal, and in both before anybody
    sees it. So a journal that lacks just this line gets it from there, and one that lacks more, or
    has other lines, is not the newest copy.
    """

    def __init__(self, journal: Journal, file: LedgerFile, run: str) -> None:
        self._journal, self._file, self._run = journal, file, run
        self._known = file.progress(run)
        self._catch_up()
        journal.before_draw = self.before_draw

    def _catch_up(self) -> None:
        """Add the line that only the budget file has; refuse copies that are not the newest."""
        known, sums = self._known, self._journal.sums
        if known is not None and len(sums) == known.lines and self._journal.follows(known.last):
            self._journal.write(known.last)
        drawn = max(self._journal.draws, default=0)
        has = 0 if known is None else known.lines
        if drawn > has:
            raise BudgetError(
                "the journal has draws that its budget file does not know: the budget file is an "
                "older copy; put its newest copy back to continue"
            )
        if known is not None and (len(sums) <= has or sums[has] != known.sum):
            raise BudgetError(
                "the journal is an older copy, or was changed: its budget file knows that the run "
                "has got further; put the newest copy of the journal back, or begin another run, "
                "which is charged anew"
            )

    def before_draw(self, line: Line) -> None:
        """Write the line of a draw to the budget file."""
        after = Progress(self._run, line.number, line.sum, line.text)
        self._file.advance(self._known, after)
        self._known = after

    def settle(self) -> None:
        """Drop the copy of the last line, which the journal has; if that fails, it stays."""
        if self._known is not None and self._known.last:
            with suppress(OSError, ValueError, BudgetError):
                self._file.advance(self._known, self._known._replace(last=""))


class _Coins(BitSource):
    """A source of bits; those taken outside draws are recorded."""

    def __init__(self, journal: Journal, random_state: object) -> None:
        super().__init__(random_state)
        self.journal = journal

    def bits(self, count: int) -> int:
        if self.journal.drawing:
            return super().bits(count)
        known = self.journal.recorded("coins", count)
        if known is None:
            known = str(super().bits(count))
            self.journal.append("coins", count, known)
        return int(str(known))


def _encoded(drawn: object) -> object:
    """A drawn value as JSON can hold it: whatever array a mechanism draws comes back as it was."""
    if isinstance(drawn, Leaves):
        return {"leaves": [_encoded(drawn.codes), _encoded(drawn.levels)]}
    if isinstance(drawn, np.ndarray):
        return {"array": drawn.tolist(), "dtype": drawn.dtype.str}
    if drawn is None or isinstance(drawn, list):  # names, or candidates of several segments
        return {"plain": drawn}
    return int(cast("SupportsInt", drawn))


def _decoded(known: object) -> object:
    if not isinstance(known, dict):
        return known
    if "leaves" in known:
        return Leaves(*map(_array, known["leaves"]))
    if "plain" in known:
        return known["plain"]
    return _array(known)


def _array(known: dict[str, str]) -> Array:
    return np.array(known["array"], dtype=known["dtype"])
