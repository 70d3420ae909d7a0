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
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import SupportsInt, cast

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.errors import FileError
from privfit.base.json import parse, write
from privfit.base.typing import Array
from privfit.privacy.charges import Charge
from privfit.privacy.ledger import Budget, Grant, Ledger
from privfit.privacy.mechanisms import Mechanism, T, V
from privfit.privacy.privtree import Leaves

__all__ = ["Checkpoint"]

VERSION = 1
START = b'{"kind": "run", "what": {"privfit": '  # of every journal


class Checkpoint:
    """A ledger and a source of bits whose use is recorded in a file, to resume after a crash.

    Parameters
    ----------
    path : str or path-like
        The journal; it is created if it does not exist, and replayed if it does.
    epsilon, delta : float
        The budget of the whole run, as for a `Ledger`.
    random_state : None, int or numpy.random.Generator, default=None
        Source of new bits. None draws from the operating system; a seed is for tests.

    Attributes
    ----------
    ledger : Ledger
        For ``ledger=`` of everything that the run fits.
    coins : source of bits
        For ``random_state=`` of everything that the run fits.

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
        epsilon: float,
        delta: float = 0.0,
        *,
        random_state: object = None,
    ) -> None:
        budget = Budget(epsilon, delta)
        self._journal = _Journal(path)
        self._journal.step("run", {"privfit": VERSION, "epsilon": budget.epsilon,
                                   "delta": budget.delta})  # fmt: skip
        self.ledger: Ledger = _Ledger(self._journal, epsilon, delta)
        self.coins: BitSource = _Coins(self._journal, random_state)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.close()

    def __repr__(self) -> str:
        return f"Checkpoint({self.ledger!r}, {self._journal.left} steps to replay)"


class _Journal:
    """Lines of JSON: read while there are any, then appended to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file: int | None = os.open(self._path, flags, 0o600)
        self._lock_file(self._file)
        with open(self._path, "rb") as file:
            whole = file.read()
        lines = whole[: whole.rfind(b"\n") + 1]  # a line that a crash cut short was never told
        try:
            if not whole.startswith(START[: len(whole)]):
                raise ValueError
            self._steps = [parse(line, finite=False) for line in lines.splitlines()]
        except ValueError:
            raise FileError(
                f"path ({self._path!r}) must be a journal of privfit, or new; pass another path"
            ) from None
        os.ftruncate(self._file, len(lines))  # only now: another file is left as it is
        os.lseek(self._file, 0, os.SEEK_END)
        self._next, self._process = 0, os.getpid()
        self.drawing = False

    def close(self) -> None:
        """Release the file for another run."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def _lock_file(self, file: int) -> None:
        """Refuse a journal that another run is writing to."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(
                f"path ({self._path!r}) must not be in use by another run; wait until it ends, or "
                "pass another path"
            ) from None

    @property
    def left(self) -> int:
        """Steps on record that were not replayed yet."""
        return len(self._steps) - self._next

    def recorded(self, kind: str, what: object) -> object:
        """What is on record for this step; None if the record has ended."""
        if not self.left:
            return None
        step = self._steps[self._next]
        if (step.get("kind"), step.get("what")) != (kind, what):
            raise FileError(
                f"path ({self._path!r}) must be the journal of this run, but step "
                f"{self._next + 1} differs; pass the same settings and fits in the same order, or "
                "another path"
            )
        self._next += 1
        return step["value"]

    def append(self, kind: str, what: object, value: object) -> None:
        """Write a step to the record, on disk."""
        if self._file is None:
            raise FileError(
                f"path ({self._path!r}) was closed; fit within `with Checkpoint(...) as journal:`"
            )
        if os.getpid() != self._process:
            raise FileError(
                f"path ({self._path!r}) is the journal of another process, of which this one is a "
                f"fork; fit there, or pass another path to a new Checkpoint"
            )
        step = {"kind": kind, "what": what, "value": value}
        line = write(step).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError:
            self.close()  # a line may be cut short, and none may follow it
            raise
        self._steps.append(step)
        self._next += 1

    def step(self, kind: str, what: object) -> None:
        """A step without a value: it is on record, or is recorded now."""
        if self.recorded(kind, what) is None:
            self.append(kind, what, True)

    @contextmanager
    def draw(self) -> Iterator[None]:
        """While a mechanism draws, bits are noise, and are not recorded."""
        self.drawing = True
        try:
            yield
        finally:
            self.drawing = False


class _Ledger(Ledger):
    """A ledger whose grants are on record."""

    def __init__(self, journal: _Journal, epsilon: float, delta: float) -> None:
        super().__init__(epsilon, delta)
        self._journal = journal

    def _grant(self, charge: Charge) -> Grant:
        asked = charge.budget
        self._journal.step("grant", [charge.group, charge.name, asked.epsilon, asked.delta])
        return _Grant(self._journal, *self._terms(charge))


class _Grant(Grant):
    """A grant whose draws are on record."""

    def __init__(
        self, journal: _Journal, name: str, budget: Budget, lock: RLock, holder: Ledger
    ) -> None:
        super().__init__(name, budget, lock, holder)
        self._journal = journal

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
            return drawn


class _Coins(BitSource):
    """A source of bits; those taken outside draws are recorded."""

    def __init__(self, journal: _Journal, random_state: object) -> None:
        super().__init__(random_state)
        self._journal = journal

    def bits(self, count: int) -> int:
        if self._journal.drawing:
            return super().bits(count)
        known = self._journal.recorded("coins", count)
        if known is None:
            known = str(super().bits(count))
            self._journal.append("coins", count, known)
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
