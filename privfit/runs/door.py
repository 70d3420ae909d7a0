"""The one door for solvers: privfit's own, a user's, and those of other packages by name.

`settings_of` takes whatever was passed as ``solver=`` and returns its name and its settings. A
solver that does not inherit from `Settings` becomes a `Guest`: it states the facts that it wants
to, and has the defaults of `Settings` for the others. From there on all solvers are alike. What
runs is a copy of a user's solver: it keeps nothing from one run to the next.

A name that is none of privfit's own is looked up among the entry points ``privfit.solvers`` of the
installed packages. Only the one package that offers this name is imported, and only because the
caller wrote the name: a model file is never the reason (`privfit.models.own`).

What is wrong with a solver, an objective or a space is refused here, in one sentence each, before
anything is charged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from privfit.base.cautions import OldNameWarning, call_depth
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.validation import is_finite
from privfit.runs.fields import Taken, apart, name_of, shown, taken
from privfit.runs.guests import is_ours, without_records
from privfit.runs.paths import Path
from privfit.runs.protocols import Solver
from privfit.runs.run import Task, check_candidates
from privfit.runs.settings import Settings, listed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["FACTS", "GROUP", "OURS", "Guest", "before", "check_parts", "fields_shown", "is_users",
           "name_of", "realised", "settings_of", "unread"]  # fmt: skip

GROUP = "privfit.solvers"  # of entry points
# Names that no other solver may have, wherever they are known; a test compares the tables.
OURS = frozenset({
    "additive", "auto", "cell_medians", "clusters", "coreset", "dpsga", "eem", "evidence",
    "frank_wolfe", "functional", "gradient", "greedy", "grid", "gupt", "hybrid", "lloyd", "local",
    "majority", "mean", "medians", "noisy", "objective", "output", "over_seeded", "peeling",
    "privatesvm", "privgene", "select_refine", "sgd", "sparse_vector", "subsample", "swaps",
    "synopsis", "tree",
})  # fmt: skip
NOT_RENAMED: Mapping[str, str] = MappingProxyType({})
FACTS: Mapping[str, str] = MappingProxyType({
    "needs_order": "True or False",
    "counts_errors": "True or False",
    "centres_columns": "True or False",
    "runs_unpaid": "True or False",
    "is_gaussian": "True or False",
    "leaves_delta": "True or False",
    "weighs_loss": "True or False",
    "needs_size": "True or False",
    "without_size": "a text",
    "largest_weight": "a positive number",
    "space_needs": "a tuple of names of methods",
    "takes": "a class or a tuple of classes",
    "bounds_codes": "a method bounds_codes(objective)",
    "rows_held": "a method rows_held(width, n_threads)",
})  # fmt: skip


class Guest(Settings):
    """A solver with the facts that it states; the others are the defaults of `Settings`."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        for name, kind in FACTS.items():
            if hasattr(solver, name) and not _is_fact(kind, getattr(solver, name)):
                raise DeclarationTypeError(
                    f"{name} ({getattr(solver, name)!r}) of solver {name_of(solver)!r} must be "
                    f"{kind}; leave it out, or correct it"
                )

    def __repr__(self) -> str:
        return repr(self.solver)

    def __getattribute__(self, name: str) -> Any:
        if name in FACTS:
            solver = super().__getattribute__("solver")
            if hasattr(solver, name):
                return getattr(solver, name)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python itself, such as those of copies
            raise AttributeError(name)
        return getattr(super().__getattribute__("solver"), name)

    @property
    def space_needs(self) -> tuple[str, ...]:
        """Most searches begin with candidates that are drawn uniformly."""
        return ("sample",)

    def check(self, task: Task[Any, Any]) -> None:
        """Refuse what the solver refuses, or else a space that the objective cannot score.

        A user's own check sees no records: what it raises reaches the caller, unpaid.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        own = getattr(self.solver, "check", None)
        if own is not None:
            own(unread(task))
            return
        super().check(task)
        check_candidates(task)

    def __call__(self, run: Any) -> Path:
        return self.solver(run)


def _is_fact(kind: str, value: Any) -> bool:
    if kind == "True or False":
        return isinstance(value, bool)
    if kind == "a text":
        return isinstance(value, str)
    if kind == "a positive number":
        return is_finite(value) and value > 0
    if kind.startswith("a tuple"):
        return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    if kind.startswith("a class"):
        return all(
            isinstance(one, type) for one in (value if isinstance(value, tuple) else [value])
        )
    return callable(value)


# ------------------------------------------------------------------------------------ what is asked


def settings_of(
    solver: Any, methods: Mapping[str, type[Any]], renamed: Mapping[str, str] = NOT_RENAMED
) -> tuple[str, Any]:
    """The name and the settings of a solver given by either, of privfit or not.

    A name that is renamed works as before and warns whoever called the caller.
    """
    if isinstance(solver, str) and solver in renamed:
        warnings.warn(
            f"solver {solver!r} is {renamed[solver]!r} now; pass that",
            OldNameWarning,
            stacklevel=call_depth(),
        )
        solver = renamed[solver]
    for name, kind in methods.items():
        if type(solver) is kind:
            return name, solver
        if isinstance(solver, str) and solver == name:
            return name, kind()
    if isinstance(solver, str):
        return solver, _installed(solver, methods)
    return name_of(solver), _guest(solver, repr(solver), methods)


def _guest(solver: Any, shown: str, methods: Iterable[str]) -> Settings:
    """A copy of a solver that is not in the table, with all facts."""
    if isinstance(solver, type):
        raise DeclarationTypeError(
            f"solver ({shown}) must be one of {', '.join(methods)}, or settings instead of their "
            f"class; pass {solver.__name__}()"
        )
    if not callable(solver):
        raise DeclarationTypeError(
            f"solver ({shown}) must be one of {', '.join(methods)}, settings such as "
            "DPSGA(generations=50), or an object that is called with a Run and returns a Path; "
            "pass one of them"
        )
    if name_of(solver) in OURS:
        raise DeclarationError(
            f"name ({name_of(solver)!r}) of a solver must not be that of one of privfit's own, "
            "since releases show it; give it another name"
        )
    solver = apart(solver)
    return solver if isinstance(solver, Settings) else Guest(solver)


def is_users(solver: Any) -> bool:
    """Whether a solver is code of a user, or of another package."""
    return isinstance(solver, Guest) or not is_ours(solver)


# ------------------------------------------------------------------------------------- entry points


def _installed(name: str, methods: Iterable[str]) -> Settings:
    """The settings of a solver that an installed package offers by this name."""
    offered = {} if name in OURS else _offered(name)
    if not offered:
        others = sorted({one.name for one in _entries()} - OURS)
        raise DeclarationError(
            f"solver ({name!r}) must be one of {', '.join([*methods, *others])}, settings such as "
            "DPSGA(generations=50), or an object that is called with a Run and returns a Path; "
            "pass one of them"
        )
    if len(offered) > 1:
        raise DeclarationError(
            f"solver ({name!r}) must be offered by one package, but {', '.join(sorted(offered))} "
            "offer it; pass settings instead of the name"
        )
    [(package, entry)] = offered.items()
    try:
        solver = entry.load()
        solver = solver() if isinstance(solver, type) else solver
    except Exception as error:
        raise DeclarationError(
            f"solver ({name!r}) of package {package!r} must be importable as {entry.value!r}, but "
            f"that raised {type(error).__name__}; repair the package, or pass settings"
        ) from error
    return _guest(solver, repr(name), methods)


def _offered(name: str) -> dict[str, EntryPoint]:
    """Entry points of this name by their packages, which a path may list twice; none is loaded."""
    found = [one for one in _entries() if one.name == name]
    return {one.dist.name if one.dist else one.value: one for one in found}


def _entries() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # which takes longer to import than most rooms

    return entry_points(group=GROUP)


# ------------------------------------------------------------------------------------------- checks


def unread(task: Task[Any, Any]) -> Task[Any, Any]:
    """The same task with an objective without records, for code of users."""
    return replace(task, objective=without_records(task.objective, task.neighbours))


def check_parts(name: str, settings: Settings, objective: Any, space: Any) -> None:
    """Refuse an objective or a space that lacks what a solver needs; nothing is read or charged."""
    for part in ("scores", "range", "prior"):
        if not callable(getattr(objective, part, None)):
            raise DeclarationTypeError(
                f"objective ({type(objective).__name__}) must have a method {part}; pass an "
                "objective such as RecordObjective, or add it (privfit.Objective)"
            )
    if not hasattr(objective, "n_records"):
        raise DeclarationTypeError(
            f"objective ({type(objective).__name__}) must have n_records, the number of records; "
            "pass an objective such as RecordObjective, or add it (privfit.Objective)"
        )
    if not isinstance(objective, settings.takes):
        kinds = settings.takes if isinstance(settings.takes, tuple) else (settings.takes,)
        raise DeclarationTypeError(
            f"objective ({type(objective).__name__}) must be a "
            f"{' or a '.join(kind.__name__ for kind in kinds)} for solver {name!r}; pass another "
            "solver, or such an objective"
        )
    for part in ("shape", *settings.space_needs):
        if not hasattr(space, part):
            raise DeclarationTypeError(
                f"space ({type(space).__name__}) must have {part!r} for solver {name!r}; pass "
                "another solver or operator, or a space with it (privfit.Space)"
            )


# ------------------------------------------------------------------------------------ what was used


def before(settings: Any) -> Taken:
    """A solver as it is before the charge, which is what its release shows; see `runs.fields`."""
    return taken(settings.solver if isinstance(settings, Guest) else settings)


class Noted(Protocol):
    """What a solver returned: a `Path`, or another value with notes."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """Settings as they were used."""


def realised(solver: str, given: Taken, found: Noted) -> dict[str, Any]:
    """The solver's settings as they were used, for the settings of a `Release`."""
    used = _merged(fields_shown(given), found.notes)
    return {"solver": solver, **{name: used[name] for name in used if name != "solver"}}


def fields_shown(given: Taken) -> dict[str, Any]:
    """The fields of a solver for releases; those that are unlisted only if passed."""
    return listed(given.kind, {name: shown(value) for name, value in given.used.items()})


def _merged(given: Any, used: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of their parts; values that were used replace those that were passed."""
    own = given if isinstance(given, dict) else {}
    both = {
        name: _merged(own.get(name), value) if isinstance(value, Mapping) else value
        for name, value in used.items()
    }
    return {**own, **both}
