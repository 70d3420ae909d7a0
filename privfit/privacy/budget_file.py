"""A ledger whose budget is stored in a file, shared by processes and safe against crashes.

    ledger = open_ledger("budget.json", epsilon=1.0, delta=1e-6)

Every process that opens the file shares its budget. To reserve is to lock the file, read it, check
the exact sums, write it again with the charge, and only then return the grant: nothing is drawn
before its charge is on disk. So no order of events across processes overspends, and a run that is
killed at any moment leaves a complete file that counts everything that was granted; a charge whose
grant was never used stays charged.

An entry also says who reserved it, when, and whether it was finished (`privfit.privacy.
reservations`). The file knows how far the journal of a `Checkpoint` has got, so that an older copy
of the journal is refused.

The file is replaced as a whole at each change. Two locks keep others out meanwhile: that of a file
beside it, which all versions take, and that of the folder, which is still held when a cleaner
removes the other. The operating system frees the locks of a process that dies. `docs/ledger.md` has
the format, and what a file cannot protect against: above all, an old copy that is put back between
two runs.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from privfit.base.errors import (
    BudgetError,
    DeclarationError,
    DeclarationTypeError,
    FileError,
    FileMissingError,
)
from privfit.base.files import remove_leftovers, write_atomically
from privfit.privacy.budget_locks import explained, locked
from privfit.privacy.budget_text import Book, BudgetText, Made, Progress
from privfit.privacy.charges import UNKNOWN, Charge, Entry, Running
from privfit.privacy.grants import Grant, Release
from privfit.privacy.ledger import Ledger
from privfit.privacy.neighbours import Adjacency, Neighbours, check_rows, relation_of
from privfit.privacy.reservations import (
    FINISHED,
    INTERRUPTED,
    Begun,
    Reservation,
    check_renewal,
    now,
    period_of,
)

__all__ = ["BudgetFileWarning", "LedgerFile", "open_ledger"]


class BudgetFileWarning(RuntimeWarning):
    """A budget file is incomplete: it lacks a release that was made, or its neighbour relation."""


def open_ledger(
    path: str | os.PathLike[str],
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: Adjacency | None = None,
    max_rows: int = 1,
    renewal: str | None = None,
) -> LedgerFile:
    """Open the ledger of a budget file, to pass as `ledger=` like any other.

    Parameters
    ----------
    path : str or path-like
        The budget file. Its lock is kept beside it, so the folder must be writable.
    epsilon, delta : float, optional
        The budget. They start a new file if there is none (delta is 0 if left out). For an existing
        file they may be left out; other numbers than the file's are refused.
    adjacency : {'replace', 'add_remove'}, optional
        The neighbour relation of the guarantee; by default that of the first grant that has one.
        For a file of the first version, which did not record it, you declare it: that of all
        charges whose fits left no release.
    max_rows : int, default=1
        How many rows one person may own; see `Ledger`.
    renewal : {'day', 'week', 'month', 'year'} or None, default=None
        The period, in UTC, after which a new file has its whole budget again; None for a budget
        that is spent once. The guarantee is then one per period: over k periods the same person
        loses up to k times epsilon.

    Returns
    -------
    LedgerFile
        The ledger. Every charge is on disk before anything is drawn.

    See Also
    --------
    Ledger : A ledger in memory.
    Checkpoint : A run that can be resumed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privfit import open_ledger
    >>> path = Path(tempfile.mkdtemp()) / "budget.json"
    >>> grant = open_ledger(path, epsilon=1.0).reserve(0.75, name="morning")
    >>> open_ledger(path).remaining  # here, in another process, or after a crash
    Budget(epsilon=0.25, delta=0.0)
    """
    declared = None if adjacency is None else Neighbours.of(adjacency)
    check_rows(max_rows, "max_rows")
    check_renewal(renewal)
    place = _place(path)
    try:
        ledger = LedgerFile(place)
    except FileNotFoundError:
        if epsilon is None:
            raise FileMissingError(
                f"path ({path}) must be a budget file, but there is none; pass epsilon to start one"
            ) from None
        new = Ledger(epsilon, 0.0 if delta is None else delta, adjacency, max_rows)
        _create(place, new, renewal)
        ledger = LedgerFile(place)
    if declared is not None and ledger.adjacency is None:
        ledger.declare(declared)
    _check_declared(ledger, epsilon=epsilon, delta=delta, adjacency=relation_of(declared),
                    max_rows=None if max_rows == 1 else max_rows, renewal=renewal)  # fmt: skip
    if ledger.adjacency is None and any(charge.adjacency for charge in ledger.charges):
        warnings.warn(
            f"the budget file ({path}) is of an earlier version, which did not record its "
            f"neighbour relation; pass adjacency='replace' or 'add_remove', or let the "
            "next grant declare it",
            BudgetFileWarning,
            stacklevel=2,
        )
    return ledger


def _check_declared(ledger: LedgerFile, **declared: float | str | None) -> None:
    """Refuse declarations that differ from the file's."""
    budget = ledger.budget
    said = {"epsilon": budget.epsilon, "delta": budget.delta, "adjacency": ledger.adjacency,
            "max_rows": ledger.max_rows, "renewal": ledger.renewal}  # fmt: skip
    for name, wanted in declared.items():
        if wanted is not None and wanted != said[name]:
            raise DeclarationError(
                f"{name} ({wanted!r}) must be that of the budget file, {said[name]!r}; leave it "
                "out, or start another file"
            )


class _Kept(NamedTuple):
    """What a change leaves in the file besides releases; journals are as they were by default."""

    charges: list[Charge]
    neighbours: Neighbours | None
    journals: list[Progress] | None = None


class _Unwritten(NamedTuple):
    """A release that is not in the file yet; it may replace what its grant released before."""

    made: Made
    replaces: bool


class _Tally:
    """The exact sums of the charges of a file, by period, kept while charges are added."""

    def __init__(self) -> None:
        self._sums: dict[str, Running] = {}
        self._counted, self._neighbours = 0, cast("Neighbours | None", None)

    def of(
        self, charges: list[Charge], neighbours: Neighbours | None, renewal: str | None
    ) -> dict[str, Running]:
        """The sums of these charges, the first of which are those that were counted before."""
        if neighbours != self._neighbours or len(charges) < self._counted:
            self._sums, self._counted, self._neighbours = {}, 0, neighbours
        for charge in charges[self._counted :]:
            cost = charge.cost(neighbours)
            sums = self._sums.setdefault(_period(charge, renewal), Running())
            sums.add((charge.group, charge.name, cost))
            self._counted += 1
        return self._sums


class _Entry:
    """What a grant needs of its ledger: the entry that its release belongs to."""

    def __init__(self, ledger: LedgerFile, run: str) -> None:
        self._ledger, self._run = ledger, run

    def agree(self, neighbours: Neighbours | None) -> Neighbours:
        """The ledger's neighbours, or from now on these."""
        return self._ledger.agree(neighbours)

    def publish(self, release: Release) -> None:
        """Write the release to the file."""
        self._ledger.publish(release, self._run)


class LedgerFile(Ledger):
    """A ledger in a file; `open_ledger` makes it.

    What it shows (`entries`, `spent`, `remaining`, `releases`) is the present content of the file,
    including what other processes spent. If the budget renews, `spent` and `remaining` are those of
    the present period. `events` are those of this process. A pickle of it is a closed copy, without
    a file.
    """

    def __init__(self, path: Path) -> None:
        self._text, self._tally = BudgetText(), _Tally()
        self._content = _content(path)
        book = self._read(path, self._content)
        super().__init__(
            book.budget.epsilon, book.budget.delta, relation_of(book.neighbours), book.max_rows
        )
        self._file, self._identity, self._renewal = path, book.identity, book.renewal
        self._charges, self._made, self._journals = book.charges, book.made, book.journals
        self._unwritten: list[_Unwritten] = []
        self._check_sums(book)

    def __repr__(self) -> str:
        try:
            state = self._shown()
        except (OSError, ValueError, BudgetError):
            state = f"{self._budget}; its file cannot be read"
        return f"LedgerFile({str(self._file)!r}, {state})"

    @property
    def identity(self) -> str:
        """The random name of the file, by which a journal knows it."""
        return self._identity

    @property
    def renewal(self) -> str | None:
        """The period after which the whole budget is there again; None if it is spent once."""
        return self._renewal

    @property
    def period(self) -> str:
        """The present period, such as '2026-11'; '' if the budget does not renew."""
        self._refresh()
        return period_of(self._later(now()), self._renewal)

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation and the privacy unit; None until somebody, in any process, declares them."""
        self._refresh()
        return self._known()

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What every grant of every process asked for and under which relation, in order."""
        self._refresh()
        return super().charges

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is public: the release of every grant that was closed, in any process."""
        self._refresh()
        return tuple(made.release for made in (*self._made, *(one.made for one in self._unwritten)))

    def _counting(self) -> Iterable[Entry]:
        period, neighbours = self.period, self._known()
        return [(one.group, one.name, one.cost(neighbours)) for one in self._charges
                if _period(one, self._renewal) == period]  # fmt: skip

    # ----------------------------------------------------------------------------- what is known

    def _read(self, path: Path, content: bytes) -> Book:
        try:
            return self._text.read(content)
        except (ValueError, BudgetError) as error:
            raise _unlike(path, error) from None

    def _refresh(self) -> None:
        """Read what any process has spent since; refuse a file that lacks some of it."""
        with self._lock:
            try:
                content = _content(self._file)
            except FileNotFoundError:
                raise BudgetError(
                    f"the budget file ({self._file}) is missing, and with it the record of what "
                    f"was spent; put it back to continue"
                ) from None
            if content == self._content:
                return
            book = self._read(self._file, content)
            unchanged = (book.identity, book.budget, book.max_rows, book.renewal)
            known = (self._identity, self._budget, self._max_rows, self._renewal)
            if unchanged != known or not _continues(self._charges, book.charges):
                raise BudgetError(
                    f"the budget file ({self._file}) is another one or an older copy: it lacks "
                    f"what was spent since; put the newest copy back to continue"
                )
            self._check_sums(book)
            self._charges, self._made, self._journals = book.charges, book.made, book.journals
            self._neighbours = book.neighbours or self._neighbours
            self._content = content

    def _check_sums(self, book: Book) -> None:
        """Refuse a file that has reserved more than its budget."""
        try:
            sums = self._tally.of(book.charges, book.neighbours, book.renewal)
            if any(one.exceeds(book.budget) for one in sums.values()):
                raise BudgetError(
                    "this ledger has reserved more than its budget; do not rely on it"
                )
        except BudgetError as error:
            self._tally = _Tally()
            raise _unlike(self._file, error) from None

    def _beside(self, charge: Charge) -> list[Charge]:
        period = _period(charge, self._renewal) or self.period
        return [one for one in self._charges if _period(one, self._renewal) == period]

    def _sums_beside(self, charge: Charge, neighbours: Neighbours | None) -> Running:
        sums = self._tally.of(self._charges, neighbours, self._renewal)
        return sums.get(_period(charge, self._renewal) or self.period, Running())

    def _later(self, time: str) -> str:
        """A time, or that of the newest entry if it is later: times never run backwards."""
        times = (one.reservation.time for one in reversed(self._charges) if one.reservation)
        return max(time, next(times, ""))

    def _more(self) -> dict[str, str]:
        return {} if self._renewal is None else {"renewal": self._renewal}

    # ----------------------------------------------------------------------------- what is changed

    def declare(self, neighbours: Neighbours) -> None:
        """Count for these neighbours; charges without a relation are declared to be for them.

        Refused if the charges then have no cost, or exceed the budget.

        Parameters
        ----------
        neighbours : Neighbours
            The relation.
        """
        with self._lock, locked(self._file):
            self._refresh()
            if self._known() is not None:
                return
            neighbours = replace(neighbours, rows=self._max_rows)
            charges = [replace(one, adjacency=None) if one.adjacency == UNKNOWN else one
                       for one in self._charges]  # fmt: skip
            sums = _Tally().of(charges, neighbours, self._renewal)
            if any(one.exceeds(self._budget) for one in sums.values()):
                raise BudgetError(
                    f"the charges in the budget file ({self._file}) exceed its budget under "
                    f"{neighbours.relation!r}, where one under 'add_remove' costs more; start "
                    "another file"
                )
            self._write(_Kept(charges, neighbours))

    def agree(self, neighbours: Neighbours | None) -> Neighbours:
        """The ledger's neighbours, or from now on these; `publish` writes them.

        Parameters
        ----------
        neighbours : Neighbours or None
            The relation to declare if there is none; None is 'replace'.

        Returns
        -------
        Neighbours
            Those that the ledger counts for.
        """
        with suppress(OSError, ValueError, BudgetError):  # which `publish` tells
            self._refresh()
        return super().agree(neighbours)

    @contextmanager
    def run(self, model: str | os.PathLike[str] = "") -> Iterator[LedgerFile]:
        """Begin a run: ``with ledger.run("model.json"): ...``, entered before records are read.

        What is reserved inside has the time of now, and names this model file. Without it, an
        entry has the time of its reservation, which may be after records were packed. If the budget
        renews, a run counts for the period in which it began.

        Parameters
        ----------
        model : str or path-like, default=''
            The file that the result goes to, as auditors shall read it.

        Yields
        ------
        LedgerFile
            This ledger.
        """
        with self.under(self.begun(model)):
            yield self

    def begun(self, model: str | os.PathLike[str] = "") -> Begun:
        """The time of now and the model file of a run, for `under`.

        Parameters
        ----------
        model : str or path-like, default=''
            The file that the result goes to.

        Returns
        -------
        Begun
            Both.
        """
        if not isinstance(model, str | os.PathLike):
            raise DeclarationTypeError(
                f"model ({type(model).__name__}) must be the path of a model file; pass a text"
            )
        return Begun(now(), str(os.fspath(model)))

    @contextmanager
    def under(self, begun: Begun) -> Iterator[None]:
        """Reserve for a run that began earlier.

        Parameters
        ----------
        begun : Begun
            What `begun` returned then.

        Yields
        ------
        None
            Nothing.
        """
        outside = getattr(self._scopes, "begun", None)
        self._scopes.begun = begun
        try:
            yield
        finally:
            self._scopes.begun = outside

    def _charge(self, charge: Charge) -> None:
        begun = self.current_run()
        with locked(self._file):
            self._refresh()
            self._add(charge, begun, secrets.token_hex(8), 0)

    def current_run(self) -> Begun:
        """The run that this thread is in, or one that begins now.

        Returns
        -------
        Begun
            When it began, and its model file.
        """
        return getattr(self._scopes, "begun", None) or Begun(now())

    def _add(self, charge: Charge, begun: Begun, run: str, part: int) -> None:
        """Write one more charge. Call it with the lock and a fresh reading."""
        begun = begun._replace(time=self._later(begun.time))
        charge = replace(charge, reservation=Reservation.made(begun, run, part))
        self._write(_Kept([*self._charges, charge], self._check_covers(charge)))

    def _grant(self, charge: Charge) -> Grant:
        name, budget, lock, _ = self._terms(charge)
        reservation = self._charges[-1].reservation
        assert reservation is not None, "it was written just now"
        return Grant(name, budget, lock, _Entry(self, reservation.run))

    def publish(
        self, release: Release, run: str = "", part: int = 0, *, replaces: bool = False
    ) -> None:
        """Write a release. The draw was made, so a failure warns, and the next change writes it.

        If the last step of writing failed, the release may be there twice; the charge is not.

        Parameters
        ----------
        release : Release
            The release.
        run : str
            The run of the entry that paid for it.
        part : int, default=0
            Which of the grants of that run it is.
        replaces : bool, default=False
            Whether it takes the place of what the same grant released before: a run with a journal
            makes the same release again, or a longer one.
        """
        if self._entry(run, part) is None:
            raise BudgetError(
                f"release ({release.name!r}) must belong to an entry of the budget file; close the "
                "grant that made it"
            )
        made = Made(Release.from_json(release.to_json()), run, part)
        with self._lock:  # or another thread's change could forget it
            self._unwritten.append(_Unwritten(made, replaces))
            try:
                with locked(self._file):
                    self._refresh()
                    self._write(_Kept(self._charges, self._known()))
            except (OSError, ValueError, BudgetError) as error:
                warnings.warn(
                    f"the release of {release.name!r} is charged and made, but not yet in its "
                    f"budget file: {error}. The next reserve or close here writes it; until then "
                    "keep release.to_json()",
                    BudgetFileWarning,
                    stacklevel=4,
                )

    def _write(self, kept: _Kept) -> None:
        """Replace the file, and only then take note. Call it with the lock and a fresh reading."""
        charges, made = _settled(kept.charges, self._made, self._unwritten)
        journals = self._journals if kept.journals is None else kept.journals
        content = self._text.write(
            Book(self._identity, self._budget, self._max_rows, self._renewal, kept.neighbours,
                 charges, journals, made)
        )  # fmt: skip
        _replace(self._file, content)
        self._content, self._neighbours = content, kept.neighbours
        self._charges, self._journals, self._made = charges, journals, made
        self._unwritten = []

    def _after_fork(self) -> None:
        """A forked child keeps the file; it drops the parent's grants and unwritten releases."""
        self._lock, self._process, self._unwritten = threading.RLock(), os.getpid(), []
        for grant in self._grants:
            grant.close_in_fork(self._lock)

    # ------------------------------------------------------------------------- runs with a journal

    def _entry(self, run: str, part: int) -> Charge | None:
        """The charge of a grant of a run; the newest are looked at first."""
        return next((one for one in reversed(self._charges) if _is_of(one, run, part)), None)

    def charge_once(self, charge: Charge, run: str, part: int, *, paid: bool) -> None:
        """Charge a grant of a run with a journal, unless that was done before.

        Parameters
        ----------
        charge : Charge
            What it asks for.
        run : str
            The run.
        part : int
            Which of its grants it is.
        paid : bool
            Whether the journal has the grant, so that the file must have it, too.
        """
        begun = self.current_run()
        with self._lock, locked(self._file):
            self._refresh()
            known = self._entry(run, part)
            if known is None and paid:
                raise BudgetError(
                    f"the budget file ({self._file}) lacks {charge.name!r}, which the journal of "
                    "the run has: it is an older copy; put the newest copy back to continue"
                )
            if known is None:
                self._add(charge, begun, run, part)
            elif replace(known, reservation=None) != charge:
                raise BudgetError(
                    f"{charge.name!r} must ask for what this part of the run was charged for in "
                    f"the budget file ({self._file}); pass the same settings and fits in the same "
                    "order"
                )

    def progress(self, run: str) -> Progress | None:
        """How far the journal of a run has got, as far as the file knows.

        Parameters
        ----------
        run : str
            The run.

        Returns
        -------
        Progress or None
            None if nothing was drawn yet.
        """
        self._refresh()
        return next((one for one in self._journals if one.run == run), None)

    def advance(self, before: Progress | None, after: Progress) -> None:
        """Note that a journal is about to have one more draw.

        Parameters
        ----------
        before : Progress or None
            How far it had got.
        after : Progress
            How far it gets.

        Raises
        ------
        BudgetError
            If the file knows otherwise: another copy of the journal has gone on.
        """
        with self._lock, locked(self._file):
            if self.progress(after.run) != before:
                raise BudgetError(
                    "another copy of the journal has gone on: this one is older now; resume from "
                    "the newest copy"
                )
            others = [one for one in self._journals if one.run != after.run]
            self._write(_Kept(self._charges, self._known(), [*others, after]))


def _period(charge: Charge, renewal: str | None) -> str:
    """The period of a charge; '' if the budget does not renew, or if it has no time yet."""
    return "" if charge.reservation is None else period_of(charge.reservation.time, renewal)


def _is_of(charge: Charge, run: str, part: int) -> bool:
    reservation = charge.reservation
    return reservation is not None and (reservation.run, reservation.part) == (run, part)


def _settled(
    charges: list[Charge], made: list[Made], unwritten: Iterable[_Unwritten]
) -> tuple[list[Charge], list[Made]]:
    """Charges and releases with those that were not written yet; the charges have their state."""
    for new, replaces in unwritten:
        if replaces:
            made = [one for one in made if one[1:] != new[1:]]
        made = [*made, new]
        failed = new.release.settings.keys() == {"solver", "failed"}
        state = INTERRUPTED if failed else FINISHED
        charges = [_in_state(one, state) if _is_of(one, *new[1:]) else one for one in charges]
    return charges, made


def _in_state(charge: Charge, state: str) -> Charge:
    assert charge.reservation is not None, "only entries with one are found"
    return replace(charge, reservation=replace(charge.reservation, state=state))


def _continues(then: list[Charge], now: list[Charge]) -> bool:
    """Whether charges are those of before, and maybe more."""
    pairs = zip(then, now, strict=False)
    return len(now) >= len(then) and all(
        one is other or _asked(one) == _asked(other) for one, other in pairs
    )


def _asked(charge: Charge) -> tuple[object, ...]:
    """What stays the same of a charge whose relation is declared later, or whose state changes."""
    known = charge.reservation
    whose = None if known is None else (known.time, known.run, known.part)
    return charge.group, charge.name, charge.budget, whose


def _place(path: str | os.PathLike[str]) -> Path:
    """The file itself: one lock and one file, whatever links lead there."""
    place = Path(os.path.realpath(path))
    if os.path.islink(path) and not os.path.exists(place):
        raise FileError(
            f"path ({path}) must not be a link to nothing; put the budget file back at {place}, or "
            "remove the link"
        )
    try:
        is_folder = stat.S_ISDIR(os.stat(place.parent).st_mode)
    except PermissionError as error:
        raise explained(error, place) from None
    except OSError:
        is_folder = False
    if not is_folder:
        raise FileError(f"path ({path}) must be in a folder that exists; make {place.parent}")
    return place


def _create(path: Path, ledger: Ledger, renewal: str | None) -> None:
    with locked(path):
        if not os.path.exists(path):  # another process may have been quicker
            book = Book(secrets.token_hex(16), ledger.budget, ledger.max_rows, renewal,
                        ledger.neighbours)  # fmt: skip
            _replace(path, BudgetText().write(book))


def _content(path: Path) -> bytes:
    """The bytes of a file that may be a budget file."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"path ({path}) must be a file, not a folder or device; pass another")
        if status.st_nlink > 1:  # a change would leave the other name with an old copy
            raise FileError(
                f"path ({path}) must be the only name of its file; remove the other hard links"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise explained(error, path) from None


def _unlike(path: Path, error: Exception) -> FileError:
    return FileError(
        f"path ({path}) must be a budget file as privfit wrote it: {error}. Put its newest copy "
        "back, or start another file"
    )


def _replace(path: Path, content: bytes) -> None:
    """Write the file anew. Call it with the lock."""
    remove_leftovers(path)
    try:
        if os.path.exists(path) and not os.access(path, os.W_OK):  # a rename would not ask
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        write_atomically(path, content)
    except OSError as error:
        raise explained(error, path) from None
