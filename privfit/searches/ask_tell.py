"""Ask and tell: the private selection of any optimiser that has a loop of its own.

The optimiser proposes candidates, and is told which of them were selected; it never sees a score.
Everything is charged and planned before the first candidate. Let g be the number of generations and
k the number of parents: the door reserves g k + 1 equal selections, k for each generation and one
for a best candidate at the end.

**Why this is private.** A candidate is proposed from what was released before, so given the same
releases it is the same for neighbouring tables. `select` releases the indices that k draws of the
exponential mechanism peel off, at the objective's own range for these candidates. By adaptive
composition of selections whose sizes were fixed in advance, all of them cost the budget. An
optimiser that stops early, for any reason it can see, computes a function of what was released:
that is free, and saves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import BudgetError, DeclarationError
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_whole
from privfit.privacy.ledger import Ledger, Release
from privfit.privacy.neighbours import Adjacency
from privfit.runs.candidates import inside, rows
from privfit.runs.door import Guest
from privfit.runs.guests import complete
from privfit.runs.listeners import Listener
from privfit.runs.paths import Path
from privfit.runs.payment import Account, Terms
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run
from privfit.runs.stops import RunEnded

__all__ = ["AskTell"]

NAME = "ask_tell"


class AskTell:
    """A door between private records and an optimiser with its own loop: ask, select, tell.

    Parameters
    ----------
    objective : Objective
        The scores of candidates, which stay private.
    space : Space
        What a candidate may be.
    epsilon : float
        The budget.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    generations : int
        Maximum number of calls of `select`.
    population : int
        Number of candidates of each call.
    parents : int
        Number of candidates that each call selects.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    n_public : int or None, default=None
        A public, possibly approximate number of records; nothing here needs it.
    ledger : Ledger or None, default=None
        The ledger to charge, when the `with` block begins; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each selection, with released values only. If it returns True, the loop over
        the door ends there.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    answer : array
        What `best` selected; without it, the candidate that was selected first in the last
        generation.
    path : Path
        The selected candidates of each generation.
    release : Release
        What was released and its cost, after the `with` block.

    See Also
    --------
    search : For solvers that take a run.
    Solver : A solver of your own, which works in every estimator.

    Notes
    -----
    Released: the indices of the selected candidates, in the order of their draws. Cost: the whole
    budget, charged when the block begins. Leaving early is allowed and costs nothing more. However
    the block ends, the grant is closed with a release of what was drawn.

    Candidates of `Reals` must lie in the box; they are rounded to the objective's grid, by at most
    half a unit, before they are scored, and the path has the rounded ones.

    Examples
    --------
    A random search that narrows around the mean of its parents:

    >>> import numpy as np
    >>> from privfit import AskTell, Reals, RecordObjective
    >>> heights = np.random.default_rng(0).normal(170, 10, 5000)  # private
    >>> def nearness(heights, P):
    ...     return -np.abs(heights[:, None] - P[:, 0])
    >>> objective = RecordObjective(heights, nearness, low=-50.0, high=0.0)
    >>> space, coins = Reals(100, 250, 1), np.random.default_rng(1)
    >>> mean, width = 175.0, 40.0
    >>> with AskTell(objective, space, 1.0, 1e-6, generations=8, population=30, parents=5,
    ...              random_state=0) as door:
    ...     for _ in door:
    ...         P = np.clip(coins.normal(mean, width, (30, 1)), 100, 250)
    ...         mean, width = float(P[door.select(P)].mean()), 0.6 * width
    >>> door.release.verify(), abs(mean - 170) < 5
    (True, True)
    """

    def __init__(
        self,
        objective: Objective,
        space: Space,
        epsilon: float,
        delta: float = 0.0,
        *,
        generations: int,
        population: int,
        parents: int,
        adjacency: Adjacency = "replace",
        n_public: int | None = None,
        ledger: Ledger | None = None,
        random_state: object = None,
        callback: Listener | None = None,
        verbose: int = 0,
    ) -> None:
        sizes = {"generations": generations, "population": population, "parents": parents}
        for name, value in sizes.items():
            if not is_whole(value) or value < 1:
                raise DeclarationError(
                    f"{name} ({value!r}) must be a positive whole number; pass {name}=10"
                )
        if parents > population:
            raise DeclarationError(
                f"parents ({parents}) must be at most the population ({population}); pass fewer"
            )
        self._sizes, self._objective, self._space = sizes, complete(objective), space
        self._terms = Terms(NAME, epsilon, delta, adjacency, n_public, ledger, random_state,
                            callback, verbose)  # fmt: skip
        self._domain = ""
        self._account: Account | None = None
        self._run: Run[Objective, Space] | None = None
        self._selected, self._has_best, self._ended = 0, False, False

    def __repr__(self) -> str:
        left = self._sizes["generations"] - self._selected
        return f"AskTell(<{left} of {self._sizes['generations']} generations left>)"

    # --------------------------------------------------------------------------------- with and for

    def __enter__(self) -> AskTell:
        """Check, charge and plan everything."""
        if self._account is not None:
            raise BudgetError("a door must be entered once, since it was charged; make another")
        # What is proposed is the optimiser's affair: the space needs no method for it.
        self._terms.refuse_infinity("pass a finite epsilon, or call search with solver='dpsga'")
        self._terms.check(NAME, Guest(_Loop()), self._objective, self._space)
        self._domain = str(getattr(self._objective, "domain", ""))
        self._account = self._terms.open(self._objective)
        self._run = run = self._account.run(self._objective, self._space, NAME)
        selections = self._sizes["generations"] * self._sizes["parents"] + 1
        size = run.plan("selection", selections, generations=self._sizes["generations"] + 1)
        run.note(**self._sizes, selections=selections, eps_s=size)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the grant with a release of what was drawn; errors of the block go on."""
        assert self._account is not None, "a block that ends has begun"
        if self._account.closed is not None:  # by an objective that failed
            return
        path = self.path
        said: dict[str, Any] = {"solver": NAME, **path.notes, "drawn": self._selected}
        if kind is not None:
            said["failed"] = kind.__name__
        values = {"answer": path.answer} if path.generations else {}
        self._account.close(self._domain, said, values)

    def __iter__(self) -> Iterator[int]:
        """The numbers of the generations that are left, from 0."""
        self._opened()
        while self._selected < self._sizes["generations"] and not self._ended:
            before = self._selected
            yield before
            if self._selected == before:  # the optimiser had nothing to ask
                return

    @property
    def _release(self) -> Release | None:
        """The release, once the grant is closed."""
        return None if self._account is None else self._account.closed

    def _opened(self) -> Run[Objective, Space]:
        """The run, within the block."""
        if self._run is None or self._release is not None:
            raise BudgetError(
                "a door must be open to select, and it is charged when it opens; use it within "
                "`with AskTell(...) as door:`"
            )
        return self._run

    # ---------------------------------------------------------------------------------------- draws

    def select(self, P: ArrayLike) -> Integers:
        """Select parents among candidates.

        Parameters
        ----------
        P : array-like of shape (population, ...)
            The candidates, proposed from released values and public ones alone.

        Returns
        -------
        array of int of shape (parents,)
            Indices of the selected candidates, in the order in which they were drawn: the first is
            most likely the best. This is all that is released.
        """
        run = self._opened()
        if self._ended:
            raise BudgetError(
                "the callback ended this loop, so nothing more is drawn; leave it, or iterate over "
                "the door, which ends with it"
            )
        if self._selected == self._sizes["generations"]:
            raise BudgetError(
                f"generations ({self._selected}) must not be exceeded, since no more selections "
                "were planned; leave the loop, or pass more generations"
            )
        candidates = self._candidates(P, run)
        if len(candidates) != self._sizes["population"]:
            raise DeclarationError(
                f"P must hold {self._sizes['population']} candidates, the declared population, but "
                f"has {len(candidates)}; pass all of a generation, or another population"
            )
        chosen = self._drawn(run, candidates, self._sizes["parents"])
        self._selected += 1
        self._report(run, candidates[chosen])
        return chosen

    def best(self, P: ArrayLike) -> Array:
        """Select one candidate at the end, as the answer.

        Parameters
        ----------
        P : array-like of shape (m, ...)
            Candidates, proposed from released values and public ones alone, as many as you like.

        Returns
        -------
        array
            The selected candidate. It is public.
        """
        run = self._opened()
        if self._has_best:
            raise BudgetError(
                "best must be called once, since one selection was planned for it; keep its answer"
            )
        if self._ended:
            raise BudgetError(
                "the callback ended this loop, so no best is drawn; answer is the first parent of "
                "the last generation, at no cost"
            )
        candidates = self._candidates(P, run)
        chosen = self._drawn(run, candidates, 1)
        self._has_best = True
        self._report(run, candidates[chosen])
        return np.array(candidates[chosen[0]])

    def _drawn(self, run: Run[Objective, Space], P: Array, k: int) -> Integers:
        """k selected candidates; if the objective fails, the grant is closed, and nothing quoted.

        The objective is handed copies, so that what is reported is what was proposed.
        """
        assert self._account is not None, "a door that is open has an account"
        return self._account.attempt(NAME, lambda: run.select(P, k))

    def _report(self, run: Run[Objective, Space], survivors: Array) -> None:
        """Add to the path; if the callback ends the loop, the optimiser is asked no more."""
        try:
            run.report(survivors)
        except RunEnded:
            self._ended = True

    def _candidates(self, P: ArrayLike, run: Run[Objective, Space]) -> Array:
        """Candidates on the grid of the objective; those outside the space are refused."""
        array = rows(P)
        space: Any = run.space
        if all(hasattr(space, part) for part in ("low", "high", "snap")):  # a box, with a grid
            shaped = array.shape[1:] == tuple(space.shape) and array.dtype.kind in "fiu"
            if shaped and ((space.low <= array) & (array <= space.high)).all():
                array = space.snap(array)
        return inside(space, array, "space.snap(P)")

    # ------------------------------------------------------------------------------------- results

    @property
    def path(self) -> Path:
        """What was selected so far, at no cost."""
        if self._run is None:
            self._opened()
        assert self._run is not None, "a door that was opened has a run"
        return self._run.path()

    @property
    def answer(self) -> Array:
        """What `best` selected, or the first parent of the last generation."""
        path = self.path
        if not path.generations:
            raise BudgetError("nothing was selected yet; call select first")
        return path.answer

    @property
    def release(self) -> Release:
        """What was released, and what it cost."""
        if self._release is None:
            raise BudgetError("the release is made when the block ends; look at it after that")
        return self._release


class _Loop:
    """What a space must have for a loop outside: a shape alone."""

    name = NAME
    space_needs = ()

    def __call__(self, run: Run[Objective, Space]) -> Path:
        """Never called: the loop is the optimiser's."""
        raise NotImplementedError
