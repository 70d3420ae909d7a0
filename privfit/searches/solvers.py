"""The general-purpose entry: any objective, any space, any of the searches."""

from __future__ import annotations

from dataclasses import dataclass

from privfit.base.typing import Array
from privfit.privacy.ledger import Ledger, Release
from privfit.privacy.neighbours import Adjacency
from privfit.runs.listeners import Listener
from privfit.runs.paths import Path
from privfit.runs.payment import Terms
from privfit.runs.protocols import Objective, Space
from privfit.runs.settings import Settings, realised, settings_of
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
    """What a search found: all of it released.

    `answer` is the candidate; `path` what each generation released; `release` the proof of what
    it cost (None for an infinite epsilon, which is not private).

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
    solver: str | Settings = "dpsga",
    *,
    adjacency: Adjacency = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: object = None,
    callback: Listener | None = None,
    verbose: int = 0,
) -> Found:
    """Search a space privately for a candidate that scores high over private records.

    Parameters
    ----------
    objective : an objective
        `RecordObjective` takes anybody's own fitness; `CentersObjective`, `FacilityObjective` and
        `LinearObjective` are faster and have smaller ranges.
    space : Reals, Subsets or Bits
        What a candidate may be.
    epsilon, delta : float
        The budget; ``epsilon=math.inf`` with 'dpsga' is the plain genetic algorithm, not private.
    solver : str or settings
        'dpsga', 'local', 'eem', 'privgene', 'subsample', or settings: ``EEM(generations=50)``.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee.
    n_public : int, optional
        A public, possibly rough number of records; needed under 'add_remove' where a rule uses it.
    ledger : Ledger, optional
        Where the budget is charged, before the search begins.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.
    callback : callable (Generation) -> object
        Told of each generation; released values only.
    verbose : int
        1 shows a progress bar, if tqdm is installed.

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
    name, settings = settings_of(solver, SOLVERS)
    terms = Terms(
        "search", epsilon, delta, adjacency, n_public, ledger, random_state, callback, verbose
    )
    terms.check(settings, objective, space)
    account = terms.open(objective)
    path = settings(account.run(objective, space, name))
    release = account.close(
        getattr(objective, "domain", ""), realised(name, settings, path), {"answer": path.answer}
    )
    return Found(path.answer, path, release)
