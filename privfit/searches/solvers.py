"""The general-purpose entry point: any objective, any space, any search."""

from __future__ import annotations

from dataclasses import dataclass

from privfit.base.typing import Array
from privfit.privacy.ledger import Ledger, Release
from privfit.privacy.neighbours import Adjacency
from privfit.runs.door import Guest, before, realised, settings_of
from privfit.runs.guests import complete
from privfit.runs.listeners import Listener
from privfit.runs.paths import Path
from privfit.runs.payment import Terms
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.run import check_space
from privfit.runs.settings import Search, Settings
from privfit.searches.dpsga import DPSGA
from privfit.searches.privgene import EEM, Local, PrivGene
from privfit.searches.subsample import Subsample

__all__ = ["SOLVERS", "Found", "search"]

SOLVERS: dict[str, type[Settings]] = {
    "local": Local,
    "eem": EEM,
    "privgene": PrivGene,
    "dpsga": DPSGA,
    "subsample": Subsample,
}


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a search: everything in it has been released.

    Parameters
    ----------
    answer : array
        The candidate found.
    path : Path
        What each generation released.
    release : Release or None
        The record of what it cost; None for an infinite epsilon, which is not private.

    See Also
    --------
    search : Returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, Found, RecordObjective, search
    >>> objective = RecordObjective(np.zeros(9), lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0)
    >>> isinstance(search(objective, Bits(4), 1.0), Found)
    True
    """

    answer: Array
    path: Path
    release: Release | None


def search(
    objective: Objective,
    space: Space,
    epsilon: float,
    delta: float = 0.0,
    solver: str | Solver = "dpsga",
    *,
    adjacency: Adjacency = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: object = None,
    callback: Listener | None = None,
    verbose: int = 0,
) -> Found:
    """Search a space privately for a candidate with a high score over private records.

    Parameters
    ----------
    objective : Objective
        The scores. `RecordObjective` takes a user-defined score; `CentersObjective`,
        `FacilityObjective` and `LinearObjective` are faster and have smaller ranges.
    space : Space
        What a candidate may be.
    epsilon : float
        The budget; ``epsilon=math.inf`` with 'dpsga' is the plain genetic algorithm, which is not
        private.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    solver : str, settings or Solver, default='dpsga'
        'dpsga', 'local', 'eem', 'privgene', 'subsample', settings such as ``EEM(generations=50)``,
        a solver of your own, or the name of one that an installed package offers.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    n_public : int or None, default=None
        A public, possibly approximate number of records; needed under 'add_remove' if a rule uses
        it.
    ledger : Ledger or None, default=None
        The ledger to charge, before the search begins; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation, with released values only. If it returns True, the search ends
        there, with what was released so far; the budget stays charged in full.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Found
        The candidate, the path that led to it, and the release.

    See Also
    --------
    RecordObjective : A user-defined score.
    DPSGA, PrivGene, EEM, Local, Subsample : Settings of the solvers.
    Objective, Space, Solver : What each of them must be; yours may be as well.
    AskTell : For an optimiser that has its own loop.

    Notes
    -----
    Released: the candidates selected in each generation. The whole budget is charged before the
    first draw.

    Examples
    --------
    Choose 2 of 6 public places for people on a line:

    >>> import numpy as np
    >>> from privfit import DPSGA, RecordObjective, Subsets, search
    >>> places = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    >>> people = np.repeat([0.2, 0.8], 1000)
    >>> def near(people, P):
    ...     return -np.abs(people[:, None, None] - places[P]).min(axis=2)
    >>> objective = RecordObjective(people, near, low=-1.0, high=0.0)
    >>> found = search(objective, Subsets(6, 2), 2.0, solver=DPSGA(generations=3), random_state=1)
    >>> sorted(places[found.answer].tolist())
    [0.2, 0.8]
    """
    terms = Terms(
        "search", epsilon, delta, adjacency, n_public, ledger, random_state, callback, verbose
    )
    return _found(*settings_of(solver, SOLVERS), complete(objective), space, terms)


def _found(
    name: str, settings: Settings, objective: Objective, space: Space, terms: Terms
) -> Found:
    """Check, charge, search, close."""
    terms.check(name, settings, objective, space)
    if not isinstance(settings, Search | Guest) and hasattr(space, "extremes"):
        objective.prior(check_space(objective, space))  # estimators make the right space themselves
    given, domain = before(settings), str(getattr(objective, "domain", ""))
    account = terms.open(objective)
    path = account.solved(name, settings, account.run(objective, space, name))
    release = account.close(domain, realised(name, given, path), {"answer": path.answer})
    return Found(path.answer, path, release)
