"""Check, charge, draw, close: how everything private is paid for.

`Terms` are what a caller declares. `Terms.check` refuses what a solver would refuse; `Terms.charge`
or `Terms.open` warns of unwise budgets and reserves the budget, and nothing is refused afterwards.
All draws then go through a `Paid` account, and `Paid.close` ends it with a `Release`.

A solver that fails after the charge cannot be made to answer: what it would have drawn is not
known. So `Account.solved` does what is left: the budget stays charged, the grant is closed with a
release of what was drawn, and a `SolverError` says so. The error itself is not shown, nor kept in
the `SolverError`, since it may quote scores: `privfit.runs.failures`. That a solver fails must not
depend on records either, which `privfit.audit.audit_solver` tests.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, TypeVar

from privfit._kernels.random import BitSource
from privfit.base import blas, watching
from privfit.base.cautions import PrivacyLeakWarning, call_depth, caution
from privfit.base.errors import (
    BudgetError,
    ClusterError,
    DeclarationError,
    PrivfitError,
    SolverError,
)
from privfit.base.typing import Counted
from privfit.privacy.accounting import Event
from privfit.privacy.grants import check_source
from privfit.privacy.ledger import Budget, Grant, Ledger, Release, reserve_from
from privfit.privacy.mechanisms import Mechanism, T, V
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.runs.candidates import check_path
from privfit.runs.door import Guest, check_parts, is_users, unread
from privfit.runs.failures import is_of_place, told
from privfit.runs.heartbeats import beating
from privfit.runs.listeners import Listener, check_callback, progress
from privfit.runs.paths import Generation, Path
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.run import Run, Task, check_candidates, gridded
from privfit.runs.settings import Search
from privfit.runs.sizes import public_size
from privfit.runs.stops import RunEnded, path_of

__all__ = ["Account", "Paid", "Terms"]

O = TypeVar("O", bound=Objective)  # noqa: E741
S = TypeVar("S", bound=Space)
R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class Terms:
    """The public terms of something that costs a budget.

    `name` is its name in the ledger; the others are parameters of the estimator or function that
    pays. Here the word for
    a neighbour relation becomes a value, `neighbours`, which all that follows takes.
    """

    name: str
    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = "replace"
    n_public: int | None = None
    ledger: Ledger | None = None
    random_state: Any = None
    callback: Listener | None = None
    verbose: int = 0
    neighbours: Neighbours = field(init=False)
    began: float = field(init=False)  # before records are read: how long that takes tells of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.of(self.adjacency))
        object.__setattr__(self, "began", watching.now())

    @classmethod
    def of(cls, estimator: Any, name: str = "", **other: Any) -> Terms:
        """The parameters of an estimator, as far as it has them; `other` replaces some."""
        own = {
            one.name: getattr(estimator, one.name)
            for one in fields(cls)
            if one.init and one.name != "name" and hasattr(estimator, one.name)
        }
        return cls(name or type(estimator).__name__, **{**own, **other})

    @property
    def budget(self) -> Budget:
        """Epsilon and delta, which must be valid numbers."""
        return Budget(self.epsilon, self.delta)

    @property
    def is_infinite(self) -> bool:
        """Whether the budget is unlimited."""
        return isinstance(self.epsilon, Real) and self.epsilon == math.inf

    def size(self, records: Counted) -> int | None:
        """The public number of records; None if it was not declared."""
        return public_size(records, self.neighbours, self.n_public)

    def refuse_infinity(self, remedy: str = "pass solver='dpsga'") -> None:
        """Refuse an infinite budget, which only the plain genetic algorithm can run with."""
        if self.is_infinite:
            raise DeclarationError(f"epsilon (inf) is for the plain genetic algorithm; {remedy}")

    def check(self, name: str, settings: Any, objective: Any, space: Any) -> None:
        """Refuse what a solver would refuse, before anything is charged."""
        check_callback(self.callback)
        check_parts(name, settings, objective, space)
        gridded(space, objective)  # which refuses candidates of another shape
        size = self.size(objective)
        if not settings.runs_unpaid:
            self.refuse_infinity()
        if self.is_infinite or self.budget.epsilon > 0:  # the ledger refuses 0
            task = Task(objective, space, self.epsilon, self.delta, self.neighbours, size)
            if isinstance(settings, Guest) or not is_users(settings):
                settings.check(task)
                return
            settings.check(unread(task))  # of a class that inherits from one of ours
            if isinstance(settings, Search):
                check_candidates(task)

    def charge(self, records: Counted | None = None) -> Paid:
        """Warn of unwise choices, then charge the budget."""
        source = self._cautious(records)
        with watching.run_since(self.began):
            grant = reserve_from(self.ledger, self.epsilon, self.delta, self.name, self.neighbours)
        return Paid(self, source, grant)

    def open(self, records: Counted) -> Account:
        """Charge the budget; if it is infinite, warn and return an account that pays nothing."""
        if not self.is_infinite:
            return self.charge(records)
        source = self._cautious(records)
        if self.ledger is not None:
            raise DeclarationError(
                "epsilon (inf) cannot be charged to a ledger; leave the ledger out"
            )
        warnings.warn(
            "epsilon=inf: this is not private", PrivacyLeakWarning, stacklevel=call_depth()
        )
        return Account(self, source)

    def _cautious(self, records: Counted | None) -> BitSource:
        """The source of bits, with a warning if it or the budget is unwise."""
        source = BitSource.of(self.random_state)
        check_source(source, getattr(self.ledger, "recorder", None))
        size = self.n_public
        if records is not None and self.neighbours.size_is_public:
            size = records.n_records
        caution(self.epsilon, self.delta, source, size)
        return source


class Account:
    """A source of bits and the terms; without a grant nothing is private."""

    grant: Grant | None

    def __init__(self, terms: Terms, source: BitSource) -> None:
        self.terms, self.source, self.grant = terms, source, None
        self.closed: Release | None = None  # once it is closed
        self._heard = _Heard(None)

    def run(
        self,
        objective: O,
        space: S,
        name: str,
        share: int = 1,
        budget: Budget | None = None,
        before_draws: Callable[[], None] | None = None,
    ) -> Run[O, S]:
        """A run of a solver, one of `share` equal ones; `name` is shown by its progress bar.

        If it is not to spend everything, `budget` is its part: see `Run`.
        """
        terms = self.terms
        if self.grant is not None:
            self.grant.declare(*_declarations(name, terms, objective))
        self._heard = _Heard(progress(terms.callback, terms.verbose, name))
        return Run(
            objective, space, self.grant, self.source,
            self._heard if self._heard.callback else None, neighbours=terms.neighbours,
            n_public=terms.n_public, share=share, budget=budget, before_draws=before_draws,
            charged=None if self.grant is None else self.charged,
        )  # fmt: skip

    def solved(self, name: str, solver: Solver, run: Run[Any, Any]) -> Path:
        """The path that a solver returns, checked; of a user's only the candidates count.

        A path that is made by hand could have any number as a note, a range or a budget. Those of
        the run are known.
        """

        def path() -> Path:
            if not is_users(solver):
                with blas.one_thread():  # its matrices are small, and threads of BLAS spin
                    found = path_of(solver, run)
                    check_path(found, run.space, boxed=False)
                return found
            with blas.as_declared():
                found = path_of(solver, run)
            check_path(found, run.space, boxed=isinstance(solver, Guest))
            own = run.path()
            steps = own.steps if len(own.steps) == len(found.generations) else ()
            return Path(found.generations, found.average, own.notes, steps, own.before, own.budget)

        return self.attempt(name, path)

    def attempt(self, name: str, call: Callable[[], R]) -> R:
        """What the code of a solver returns; if it fails or is interrupted, the account is closed.

        The error is raised after that of the solver is forgotten: even its context may hold scores.
        """
        try:
            with beating(self.terms.callback):
                return call()
        except RunEnded:  # no failure
            raise
        except Exception as error:
            kept = error is self._heard.error or is_of_place(error)
            self._heard.error = None  # its traceback leads back here: records would outlive the fit
            failure: PrivfitError = self._failure(name, error)  # the account is closed either way
            if kept and not isinstance(error, ClusterError):
                if error.__context__ is not None and not is_of_place(error.__context__):
                    error.__context__ = error.__cause__ = None
                raise
            if kept:
                failure = ClusterError(f"{error}{self._stays_spent()}")
        except BaseException as error:  # such as Ctrl-C
            self._close_failed(name, error)
            raise
        try:
            raise failure
        finally:
            del failure  # its traceback, too

    @property
    def charged(self) -> Budget:
        """What was charged in all."""
        assert self.grant is not None, "nothing was charged"
        return self.grant.budget

    def _stays_spent(self) -> str:
        """What to add to the message of a cluster that was lost in the middle of a run."""
        return "" if self.grant is None else f"; {self.charged} was charged and stays spent"

    def _failure(self, name: str, error: Exception) -> SolverError:
        """What to say of a solver that failed: nothing that its own code has written."""
        what = f"solver {name!r} failed ({type(error).__name__}{told(error)})"
        if self.grant is None:
            return SolverError(f"{what}; nothing was charged; repair the solver")
        budget = self.charged
        self._close_failed(name, error)
        return SolverError(
            f"{what} after epsilon {budget.epsilon:.6g}, delta {budget.delta:.6g} were charged; "
            "the grant is closed, and its release shows what was drawn; repair the solver or the "
            "objective, and try them by privfit.audit.audit_solver before you pay again"
        )

    def _close_failed(self, name: str, error: BaseException) -> None:
        """Close the account with a release of what was drawn."""
        with suppress(BudgetError):  # closed already
            self.close("", {"solver": name, "failed": type(error).__name__})

    def close(
        self,
        domain: object = "",
        settings: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Release | None:
        """Close the account; without privacy there is no release."""
        return None


def _declarations(name: str, terms: Terms, objective: Objective) -> list[object]:
    """What a run is declared to be, for its journal: texts that are the same in every process."""
    domain = str(getattr(objective, "domain", ""))
    shown = "" if " at 0x" in domain else domain  # of a class without a text of its own
    return [name, type(objective).__name__, shown, terms.neighbours.relation, terms.n_public]


class _Heard:
    """A callback, and the error that it raised: that one is the caller's own, and seen by them."""

    def __init__(self, callback: Listener | None) -> None:
        self.callback = callback
        self.error: Exception | None = None

    def __call__(self, generation: Generation) -> object:
        assert self.callback is not None, "runs without a callback call none"
        try:
            return self.callback(generation)
        except Exception as error:
            self.error = error
            raise


class Paid(Account):
    """An account that was charged: plans and draws go through its grant."""

    grant: Grant

    def __init__(self, terms: Terms, source: BitSource, grant: Grant) -> None:
        super().__init__(terms, source)
        self.grant = grant

    @property
    def budget(self) -> Budget:
        """What was charged."""
        return self.grant.budget

    def plan(self, *events: Event) -> None:
        """Reserve draws, before the first of them."""
        self.grant.plan(*events)

    def release(self, mechanism: Mechanism[V, T], value: V) -> T:
        """Release what a mechanism draws from a private value."""
        return self.grant.release(mechanism, value, self.source)

    def close(
        self,
        domain: object = "",
        settings: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Release:
        """Close the account, once, and return what is now public."""
        self.closed = self.grant.close(self.terms.neighbours, domain, settings, parameters)
        return self.closed
