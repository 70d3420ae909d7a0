"""The three protocols of a private search, `Objective`, `Space` and `Solver`, and a view of moves.

privfit's own are in `privfit.objectives`, `privfit.runs.spaces` and `privfit.searches`; any object
with these methods works. `privfit.runs.door` says in a sentence what an object lacks, before
anything is charged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from privfit.base.typing import Array, Coins, Integers
from privfit.privacy.neighbours import Neighbours

if TYPE_CHECKING:
    from privfit.runs.paths import Path
    from privfit.runs.run import Run

__all__ = ["Objective", "Solver", "Space", "View"]

Kind = TypeVar("Kind", bound="Space")


class Objective(Protocol):
    """Exact scores of candidates over private records, and how much one record can change them.

    This is a protocol: any object with `n_records`, `scores`, `range` and `prior` works. A class
    that inherits from it has `spread`, too; for others it is `range`. More is optional:

    - ``at(w)`` returns a view of a candidate that scores moves away from it incrementally, for
      `EEM` and `Local`; without it, all candidates are scored anew. If the view needs the space, or
      `at` means something else, it is ``around(w, space)``;
    - ``gradient`` and ``domain`` are for solvers that ask for them; the domain is named in the
      release;
    - ``check(P, space)`` refuses an objective that cannot score candidates, before the charge;
    - ``candidate_units`` is the grid of candidates, to which a space rounds.

    See Also
    --------
    privfit.RecordObjective : A user-defined score.
    privfit.LinearObjective, privfit.CentersObjective, privfit.FacilityObjective : Fast scores.
    privfit.search : Searches a space for a candidate with a high score.

    Notes
    -----
    Scores are private: only a mechanism may release them. `range`, `prior` and `spread` are public,
    so they must not depend on the records.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Objective, RecordObjective
    >>> def score(x, P):
    ...     return -np.abs(x[:, None] - P[:, 0])
    >>> objective: Objective = RecordObjective(np.zeros(9), score, low=-1.0, high=0.0)
    >>> objective.range(np.array([[0.0], [1.0]]), "replace") > 0
    True
    """

    @property
    def n_records(self) -> int:
        """The number of records; public only if neighbours replace a record."""

    def scores(self, P: Array) -> Integers:
        """The sum over records of each candidate's score.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """

    def prior(self, P: Array) -> Integers:
        """The part of the objective that does not depend on the records.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of int64 of shape (m,)
            What to add to the scores. It is public.
        """

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """How much the difference of two candidates' scores can change between neighbours.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        neighbours : Neighbours
            The neighbour relation.

        Returns
        -------
        int
            A bound over all pairs of candidates. It is public.
        """

    def spread(self, P: Array, neighbours: Neighbours, /) -> int:
        """The same as `range`, computed from the sensitivity of each candidate by itself.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        neighbours : Neighbours
            The neighbour relation.

        Returns
        -------
        int
            A bound, at least as large as `range` and faster to compute. It is public.
        """
        return self.range(P, neighbours)


class Space(Protocol):
    """What a candidate may be, and how to make new candidates from old ones without any data.

    This is a protocol. A space needs what a search calls, and no more:

    ====================  =========================================================================
    every search          `shape`
    `EEM`                 `middle`, `some_moves`, `moved`
    `Local`               `middle`, `all_moves`, `moved`
    `PrivGene`            `sample`, `splice`, `nudge`; as published `sibling`
    `DPSGA`               `size`, `sample`, `mix`, `jitter`; as published `sibling`
    `Subsample`           `sample`
    a solver of your own  what it names in its fact `space_needs`
    ====================  =========================================================================

    A search whose space lacks one of them is refused before the charge. The rest is optional:
    without `extremes` nothing is tried before the charge, without `has_means` candidates are never
    averaged, without `on_grid_of` the space is searched as it is. ``contains(P)``, if there is one,
    says which candidates lie in the space, and ``snap(P)`` moves them there.

    See Also
    --------
    privfit.Reals, privfit.Subsets, privfit.Bits : The spaces of privfit.
    privfit.search : Searches a space.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, Space
    >>> space: Space = Bits(4)
    >>> space.sample(3, np.random.default_rng(0)).shape
    (3, 4)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""

    @property
    def size(self) -> int:
        """The number of coordinates of a candidate."""

    @property
    def has_means(self) -> bool:
        """Whether the mean of candidates is a candidate."""

    @property
    def middle(self) -> Array:
        """The start of a walk."""

    @property
    def extremes(self) -> Array:
        """(m, ...): outermost candidates; bounds that hold for these hold for all."""

    def on_grid_of(self: Kind, objective: object) -> Kind:
        """This space on the grid of an objective.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched, without its records: it has its units,
            range, prior and domain.

        Returns
        -------
        Space
            The space to search.
        """

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw candidates uniformly.

        Parameters
        ----------
        m : int
            Number of draws.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Array]:
        """All moves away from a candidate.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Size of a step, as a fraction of a coordinate's width.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """Draw moves away from a candidate uniformly.

        Parameters
        ----------
        w : array
            The candidate.
        m : int
            Number of draws.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """

    def moved(self, w: Array, where: Array, what: Array) -> Array:
        """The candidates after each move.

        Parameters
        ----------
        w : array
            The candidate.
        where : array of int
            The coordinate or position that each move changes.
        what : array
            The new value, or the step, of each move.

        Returns
        -------
        array of shape (m, ...)
            The candidates after each move.
        """

    def splice(self, A: Array, B: Array, coins: Coins) -> Array:
        """One-point crossover of two populations.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        """Uniform crossover of two populations.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of each pair.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        child : array of shape (m, ...)
            The first child of each pair.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The other children.
        """

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Mutate one coordinate of each candidate.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Mutate each coordinate with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """


class Solver(Protocol):
    """A search or a fit: any object that is called with a `Run` and returns a `Path`.

    This is a protocol. A function is a solver; settings are better as a frozen dataclass, whose
    fields are then parameters (``solver__steps``) and stand in the release. *Facts*, which other
    code needs to know, are optional attributes (`privfit.runs.settings.Settings` has the defaults):

    ===================  ==========================================================================
    `name`               its name in releases; by default that of its class or function
    `space_needs`        the methods of a space that it calls; by default ('sample',)
    `needs_size`         whether it needs the public number of records, ``run.n_public``
    `needs_order`        whether it needs records in their order, so that no stream will do
    `largest_weight`     the bound on the weights of a linear model, by default 10
    `bounds_codes`       ``bounds_codes(objective)``: whether these are weights of coded columns
    `counts_errors`      whether a linear model is scored by its errors instead of its loss
    `weighs_loss`        whether it takes a weight of the loss, ``C``
    `centres_columns`    whether columns of a linear model are centred first
    `runs_unpaid`        whether it has a meaning for an infinite epsilon: ``run.plan`` then returns
                         infinity, and ``run.select`` the best
    `average`            the fraction of the path whose mean is the answer if a callback ends the
                         run, by default 0: the last survivor
    `is_gaussian`        whether all its draws are Gaussian with delta > 0: it may then share a
                         budget with the blanks of a schema
    `leaves_delta`       whether all its draws are pure: the fit of a linear model then uses a delta
                         for names of categories alone, and that of ``run.budget`` is 0
    `rows_held`          ``rows_held(width, n_threads)``: how many rows of one number a weight it
                         holds at a time, which a stream's memory limit leaves to it; by default 0
    `check`              ``check(task)`` refuses what the solver would refuse, before the charge;
                         by default, a space that the objective cannot score
    ===================  ==========================================================================

    See Also
    --------
    privfit.runs.Run : What a solver is called with.
    privfit.runs.Path : What it returns.
    privfit.audit.audit_solver : Finds leaks of a solver.

    Notes
    -----
    A solver plans its releases (``run.plan``) before it looks at any record, proposes candidates
    without data, and draws by ``run.select`` or ``run.release`` alone. Nothing else may depend on
    scores: not a proposal, not the number of steps, not an error.

    Examples
    --------
    The best of 100 random candidates:

    >>> import numpy as np
    >>> from privfit import LogisticRegression, Solver
    >>> def best_of_many(run):
    ...     run.plan("selection")
    ...     P = run.space.sample(100, run.coins)
    ...     run.report(P[run.select(P)])
    ...     return run.path()
    >>> solver: Solver = best_of_many
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[False, True], solver=solver)
    >>> model.fit(X, X[:, 0] > X[:, 1]).release_.settings["solver"]
    'best_of_many'
    """

    def __call__(self, run: Run[Any, Any], /) -> Path:
        """Run the solver.

        Parameters
        ----------
        run : Run
            The objective, the space, the budget, and the only ways to draw.

        Returns
        -------
        Path
            Everything that was released.
        """


class View(Protocol):
    """A candidate, and the scores of moves away from it."""

    @property
    def w(self) -> Array:
        """The candidate that moves start from, as the space represents it."""

    @property
    def model(self) -> Array:
        """The same as a candidate of the objective."""

    def scores(self, where: Integers, what: Array) -> Integers:
        """int64 (m,): the scores after each move."""

    def prior(self, where: Integers, what: Array) -> Integers:
        """int64 (m,): the part that does not depend on records, after each move."""

    def range(self, where: Integers, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours."""

    def step(self, where: int, what: Any) -> None:
        """Move."""
