"""The general-purpose entry: any objective, any space, any of the searches."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

from numpy.typing import NDArray

from privfit._kernels.random import BitSource
from privfit.base.cautions import PrivacyLeakWarning, caution
from privfit.privacy.ledger import Budget, Grant, Ledger, Release, reserve_from
from privfit.runs.paths import (
    Generation,
    Path,
    check_callback,
    check_candidates,
    check_space,
    public_size,
    realised,
)
from privfit.runs.spaces import Space
from privfit.searches.dpsga import DPSGA, dpsga
from privfit.searches.privgene import EEM, Local, PrivGene, climbs_slopes, eem, local, privgene
from privfit.searches.subsample import Subsample, subsample

__all__ = ["SOLVERS", "Found", "search", "settings_of"]

Settings: TypeAlias = DPSGA | EEM | Local | PrivGene | Subsample

# The searches by name: how each is set, and what runs it.
SOLVERS: dict[str, tuple[type[Any], Callable[..., Path]]] = {
    "local": (Local, local),
    "eem": (EEM, eem),
    "privgene": (PrivGene, privgene),
    "dpsga": (DPSGA, dpsga),
    "subsample": (Subsample, subsample),
}


def settings_of(solver: Any, methods: Mapping[str, Any] = SOLVERS) -> tuple[str, Any]:
    """The name and the settings of a solver that is given by either."""
    for name, (kind, _) in methods.items():
        if isinstance(solver, kind):
            return name, solver
        if isinstance(solver, str) and solver == name:
            return name, kind()
    raise ValueError(
        f"solver ({solver!r}) must be one of {', '.join(methods)}, or settings such as "
        "DPSGA(generations=50); pass one of them"
    )


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

    answer: NDArray[Any]
    path: Path
    release: Release | None


def search(
    objective: Any,
    space: Space,
    epsilon: float,
    delta: float = 0.0,
    solver: str | Settings = "dpsga",
    *,
    adjacency: str = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: Any = None,
    callback: Callable[[Generation], object] | None = None,
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
    name, settings = settings_of(solver)
    check_plan(settings, objective, space, epsilon, delta, adjacency, n_public, callback)
    source, listen = BitSource.of(random_state), progress(callback, verbose, name)
    caution(epsilon, delta, source, objective, adjacency, n_public)
    grant = open_grant("search", name, epsilon, delta, ledger, adjacency)
    path = SOLVERS[name][1](
        objective, space, settings, grant, source, listen, adjacency=adjacency, n_public=n_public
    )
    release = (
        None
        if grant is None
        else grant.close(
            adjacency,
            getattr(objective, "domain", ""),
            realised(name, settings, path),
            {"answer": path.answer},
        )
    )
    return Found(path.answer, path, release)


def check_plan(
    settings: Any,
    objective: Any,
    space: Space,
    epsilon: float,
    delta: float,
    adjacency: str,
    n_public: int | None,
    callback: Any,
) -> None:
    """Refuse what a method would refuse, before anything is charged.

    Searches are checked alike; other methods have settings with a `check` of their own.
    """
    check_callback(callback)
    size = public_size(objective, adjacency, n_public)
    if hasattr(settings, "check"):
        refuse_infinity(epsilon)
        budget = Budget(epsilon, delta)
        if budget.epsilon > 0:  # the ledger refuses 0
            settings.check(objective, budget, adjacency, size)
        return
    steered = isinstance(settings, EEM | Local | PrivGene) and settings.generations is None
    if size is None and steered:
        raise ValueError(
            "n_public must be given under adjacency='add_remove', where the number of records "
            "is private; pass a public estimate, or settings with generations="
        )
    candidates = check_space(objective, space)
    if climbs_slopes(settings, objective):
        objective.check_margins(objective.centred.weights(candidates))
        return
    check_candidates(objective, candidates, adjacency)


def refuse_infinity(epsilon: Any) -> None:
    """An infinite budget is for the one search that runs without any."""
    if isinstance(epsilon, Real) and epsilon == math.inf:
        raise ValueError("epsilon (inf) is for the plain genetic algorithm; pass solver='dpsga'")


def open_grant(
    what: str,
    solver: str,
    epsilon: float,
    delta: float,
    ledger: Ledger | None,
    adjacency: str,
) -> Grant | None:
    """A grant of the budget, charged now; None for an infinite epsilon, with a warning."""
    if solver != "dpsga":
        refuse_infinity(epsilon)
    if isinstance(epsilon, Real) and epsilon == math.inf:
        if ledger is not None:
            raise ValueError("epsilon (inf) cannot be charged to a ledger; leave the ledger out")
        warnings.warn("epsilon=inf: this is not private", PrivacyLeakWarning, stacklevel=3)
        return None
    return reserve_from(ledger, epsilon, delta, what, adjacency)


def progress(
    callback: Callable[[Generation], object] | None, verbose: int, name: str
) -> Callable[[Generation], object] | None:
    """The callback, with a progress bar before it if one is wanted; tqdm's where installed."""
    if not verbose:
        return callback
    show = _bar(name)

    def listen(generation: Generation) -> None:
        show(generation)
        if callback is not None:
            callback(generation)

    return listen


def _bar(name: str) -> Callable[[Generation], object]:
    show = bar(name, "generation")
    return lambda generation: show(generation.index, generation.total)


def bar(name: str, unit: str) -> Callable[[int, int], object]:
    """A progress bar that is told (done, total); tqdm's where installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return lambda done, total: print(
            f"\r{name}: {unit} {done} of {total}",
            end="\n" if done == total else "",
            file=sys.stderr,
            flush=True,
        )
    shown, seen = tqdm(desc=name, unit=unit), 0

    def show(done: int, total: int) -> None:
        nonlocal seen
        shown.total = total
        shown.update(done - seen)
        seen = done
        if done == total:
            shown.close()

    return show
