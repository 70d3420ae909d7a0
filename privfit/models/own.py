"""Solvers of users in model files: written by their import path, never imported by a file.

A model file holds what such a solver was, and no code:

    {"own": "mypackage.es:ES", "name": "ES", "fields": {"parents": 5, ...}}

Reading it makes a `SavedSolver`, a description that does not run. `load(path, solvers=[ES])` makes
the solver again, since the caller has imported and named the class. A file therefore never decides
what is imported or called: not when it is read, and not when the loaded model is fitted again. The
same holds for the name of a solver that an installed package offers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import FunctionType
from typing import Any

from privfit.base.errors import DeclarationError, DeclarationTypeError, FileError
from privfit.runs.door import OURS
from privfit.runs.fields import Taken

__all__ = ["SavedSolver", "allowed", "made", "read", "written"]

PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
KEYS = {"own", "name", "fields"}


@dataclass(frozen=True)
class SavedSolver:
    """A solver as a model file describes it; it says what it was, and refuses to run."""

    path: str  # module:name, or the name under which a package offers it
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.fields.items())
        return f"<saved solver {self.path}({shown})>"

    def check(self, task: object) -> None:
        """Refuse to be fitted, before anything is charged."""
        raise DeclarationError(
            f"solver ({self!r}) must be loaded to fit again, since a model file imports nothing; "
            f"pass load(path, solvers=[{self.name}]), or set_params(solver=...)"
        )

    def __call__(self, run: object) -> Any:
        """Never called: `check` comes before."""
        self.check(run)


# ------------------------------------------------------------------------------------------ writing


def written(solver: SavedSolver | Taken, encode: Callable[[Any], Any]) -> dict[str, Any] | str:
    """A solver of a user as JSON has it; `encode` writes its fields."""
    if isinstance(solver, SavedSolver):
        if ":" not in solver.path:
            return solver.path
        path, name, held = solver.path, solver.name, dict(solver.fields)
    else:
        path, name, held = import_path(solver.kind), solver.name, _fields(solver)
    return {"own": path, "name": name, "fields": {key: encode(held[key]) for key in held}}


def import_path(kind: Any) -> str:
    """Where a function, or the class of settings, is imported from; the place is looked at."""
    module, name = kind.__module__, kind.__qualname__
    try:
        found: Any = reduce(getattr, name.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        found = None
    if found is not kind or module == "builtins":
        raise DeclarationTypeError(
            f"solver ({name}) cannot be written to a model file, since it cannot be imported from "
            f"{module!r}; define it at the top level of a module, or pickle the model"
        )
    return f"{module}:{name}"


def _fields(solver: Taken) -> dict[str, Any]:
    """The arguments that make these settings again."""
    if solver.fields is None:
        raise DeclarationTypeError(
            f"solver ({solver.kind.__name__}) cannot be written to a model file, since its "
            "settings are not known; pass a function of a module, or make its class a dataclass, "
            "or pickle the model"
        )
    return dict(solver.fields)


# ------------------------------------------------------------------------------------------ reading


def read(value: dict[str, Any], decode: Callable[[Any], Any]) -> SavedSolver:
    """The description of a solver in a file; `decode` reads its fields."""
    path, name, held = value["own"], value["name"], value["fields"]
    texts = isinstance(path, str) and isinstance(name, str) and isinstance(held, dict)
    if not texts or not PATH.fullmatch(path) or not name or name in OURS:
        raise FileError(
            "solver must be an import path, a name that is none of privfit's own, and fields; pass "
            "the text unchanged"
        )
    return SavedSolver(path, name, {key: decode(held[key]) for key in held})


def allowed(solvers: Any) -> Mapping[str, Any]:
    """The classes and functions that a caller allows, by import path or by the given name."""
    if solvers is None:
        return {}
    named = dict(solvers) if isinstance(solvers, Mapping) else None
    if named is None:
        many = solvers if isinstance(solvers, Iterable) else [solvers]
        named = {f"{getattr(one, '__module__', '')}:{getattr(one, '__qualname__', '')}": one
                 for one in many}  # fmt: skip
    for path, kind in named.items():
        if not isinstance(path, str) or not isinstance(kind, type | FunctionType):
            raise DeclarationTypeError(
                f"solvers ({kind!r}) must be classes or functions that you have imported; pass "
                "solvers=[ES], or solvers={'mypackage.es:ES': ES}"
            )
    return named


def made(value: Any, kinds: Mapping[str, Any]) -> Any:
    """A saved solver as its class makes it, if that is allowed; anything else as it is."""
    if not isinstance(value, SavedSolver) or value.path not in kinds:
        return value
    kind, held = kinds[value.path], {key: made(value.fields[key], kinds) for key in value.fields}
    if any(isinstance(part, SavedSolver) for part in held.values()):
        return value
    if isinstance(kind, FunctionType):
        if held:
            raise FileError(
                f"solver must have no fields, since {value.path} is a function, which reading "
                "never calls; pass the class that was saved, or the text unchanged"
            )
        return kind
    try:
        return kind(**held)
    except (TypeError, ValueError) as error:
        raise FileError(
            f"solver must have the fields of {value.path}; pass the class that was saved, or the "
            f"text unchanged: {error}"
        ) from None
