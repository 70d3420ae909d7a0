"""Settings of solvers: frozen dataclasses with blanks, with facts, and with a call that runs them.

A *blank* is a field that may be left out. It then has our default, or the paper's where
``paper=True``, or what a rule of public numbers says; the settings themselves stay as they were
written, and what was used is in the `Release`.

*Facts* are what others must know of a solver: whether it needs the records in order, how large its
weights may be. They are attributes, so that nobody keeps a list of solvers' names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, fields, is_dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload, runtime_checkable

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite, is_whole
from privfit.runs.paths import Path
from privfit.runs.run import Run, Task, check_candidates
from privfit.runs.sizes import known_size

__all__ = ["Blank", "Parameters", "Search", "Settings", "Solver", "blank", "realised",
           "settings_of"]  # fmt: skip

T = TypeVar("T")
Own = TypeVar("Own", bound="Parameters")


# ------------------------------------------------------------------------------------------ blanks


class Blank(Generic[T]):
    """A field of settings that may be left out; whoever reads it gets what `rule` says then.

    The rule sees the settings alone. It is kept apart from what was passed, which `get_params` and
    `repr` show.
    """

    def __init__(self, rule: Callable[[Any], T]) -> None:
        self._rule = rule

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, settings: None, kind: type) -> None: ...

    @overload
    def __get__(self, settings: object, kind: type) -> T: ...

    def __get__(self, settings: object | None, kind: type) -> T | None:
        if settings is None:  # what dataclasses take for the field's default
            return None
        passed: T | None = vars(settings)[self._name]
        return self._rule(settings) if passed is None else passed

    def __set__(self, settings: object, value: T | None) -> None:
        vars(settings)[self._name] = value


def blank(ours: T, paper: T | None = None) -> Blank[T]:
    """A blank that stands for our number, or for the paper's if that is another one."""
    return Blank(lambda settings: paper if paper is not None and settings.paper else ours)


# ---------------------------------------------------------------------------------------- settings


class Parameters:
    """Fields that scikit-learn reaches by `get_params`, so that ``solver__steps`` is a parameter.

    Settings are frozen: `set_params` returns a changed copy.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of those that inherit

    def __repr__(self) -> str:
        """The settings as they were written: what was left out is not shown."""
        usual = {one.name: repr(one.default) for one in fields(self)}
        given = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        shown = [f"{name}={text}" for name, text in given.items() if text != usual[name]]
        return f"{type(self).__name__}({', '.join(shown)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields as they were passed; if deep, with those of settings or estimators in them."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = vars(self)[one.name]
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{one.name}__{name}": part for name, part in value.get_params().items()}
            found[one.name] = value
        return found

    def set_params(self: Own, **params: Any) -> Own:
        """A copy of these settings with other fields; ``select__steps`` is a field of a field."""
        found = self.get_params(deep=False)
        own, inner = by_depth(params)
        for name in (*own, *inner):
            if name not in found:
                raise DeclarationError(
                    f"{name} must be a parameter of {type(self).__name__}; pass one of "
                    f"{', '.join(found)}"
                )
        found |= own
        found |= {name: changed(found[name], name, parts) for name, parts in inner.items()}
        return type(self)(**found)


def by_depth(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters by name, and those of parameters: ``select__steps`` is one of `select`."""
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for key, value in params.items():
        name, _, rest = key.partition("__")
        if rest:
            inner.setdefault(name, {})[rest] = value
        else:
            own[name] = value
    return own, inner


def changed(value: Any, name: str, params: Mapping[str, Any]) -> Any:
    """A copy of settings with other fields; an estimator is changed in its place."""
    if not hasattr(value, "set_params"):
        raise DeclarationError(
            f"{name} ({value!r}) must be settings for {name}__{next(iter(params))} to be set; pass "
            "settings such as Gradient()"
        )
    return value.set_params(**params)


class Settings(Parameters):
    """The facts of a solver, with those of most of them; a solver is called with a `Run`."""

    needs_order: ClassVar[bool] = False  # all records in their order, not only sums over them
    counts_errors: ClassVar[bool] = False  # of a linear model, instead of its loss
    centres_columns: ClassVar[bool] = False  # takes them from their middle if there is an intercept
    runs_unpaid: ClassVar[bool] = False  # has a meaning where epsilon is infinite
    without_size: ClassVar[str] = ""  # what to pass where the number of records is not public

    @property
    def weighs_loss(self) -> bool:
        """Whether it heeds a weight of the loss beside a regulariser."""
        return False

    @property
    def largest_weight(self) -> float:
        """The bound on the weights of a linear model, in units of a column's scale."""
        return 10.0

    @property
    def needs_size(self) -> bool:
        """Whether a rule needs the public number of records."""
        return False

    def bounds_codes(self, objective: Any) -> bool:
        """Whether the space bounds the weights of coded columns, which have one scale."""
        return False

    def size(self, task: Task[Any, Any] | Run[Any, Any]) -> int:
        """The public number of records, for a rule that needs it."""
        remedy = f", or {self.without_size}" if self.without_size else ""
        return known_size(task.n_public, remedy=f"a public estimate{remedy}")

    def check(self, task: Task[Any, Any]) -> None:
        """Refuse what the solver would refuse, before anything is charged; nothing is drawn."""
        if self.needs_size:
            self.size(task)

    def __call__(self, run: Run[Any, Any]) -> Path:
        """Run the solver: all that it released."""
        raise NotImplementedError


class Search(Settings):
    """The facts of a search for any objective that scores all candidates of a space."""

    def check(self, task: Task[Any, Any]) -> None:
        """Refuse a space that the objective cannot score."""
        super().check(task)
        check_candidates(task)


@runtime_checkable
class Solver(Protocol):
    """Settings of somebody's own: the facts above, a check, a call, and a name for releases."""

    name: str
    needs_order: bool
    counts_errors: bool
    centres_columns: bool
    runs_unpaid: bool
    weighs_loss: bool
    largest_weight: float

    def bounds_codes(self, objective: Any) -> bool:
        """Whether the space bounds the weights of coded columns."""

    def check(self, task: Task[Any, Any]) -> None:
        """Refuse what the solver would refuse, before anything is charged."""

    def __call__(self, run: Run[Any, Any]) -> Path:
        """Run the solver: all that it released."""


def settings_of(solver: Any, methods: Mapping[str, type[Any]]) -> tuple[str, Any]:
    """The name and the settings of a solver that is given by either; others bring their name."""
    for name, kind in methods.items():
        if isinstance(solver, kind):
            return name, solver
        if isinstance(solver, str) and solver == name:
            return name, kind()
    if isinstance(solver, Solver) and not isinstance(solver, type):
        return solver.name, solver
    raise DeclarationError(
        f"solver ({solver!r}) must be one of {', '.join(methods)}, or settings such as "
        "DPSGA(generations=50); pass one of them"
    )


def realised(solver: str, settings: Any, path: Path) -> dict[str, Any]:
    """What was done, for the settings of a `Release`: the solver's settings as they were used."""
    given: dict[str, Any] = {}
    if is_dataclass(settings) and not isinstance(settings, type):
        given = asdict(settings)
    return {"solver": solver, **_merged(given, path.notes)}


def _merged(given: dict[str, Any], used: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of their parts: what was used goes before what was given."""
    both = {
        name: _merged(given[name], value) if isinstance(value, Mapping) else value
        for name, value in used.items()
    }
    return {**given, **both}


# ------------------------------------------------------------------------------------------ checks


def check_counts(settings: Any, *names: str) -> None:
    """Refuse settings that are not positive whole numbers; None stands for a rule."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not is_whole(value) or value < 1):
            raise DeclarationError(
                f"{name} ({value!r}) must be a positive whole number; leave it out"
            )


def check_shares(settings: Any, *names: str) -> None:
    """Refuse settings outside [0, 1]; None stands for a rule."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not is_finite(value) or not 0 <= value <= 1):
            raise DeclarationError(f"{name} ({value!r}) must be in [0, 1]; leave it out")


def check_positive_shares(settings: Any, *names: str) -> None:
    """Refuse settings outside (0, 1]; None stands for a rule."""
    check_shares(settings, *names)
    for name in names:
        if getattr(settings, name) == 0:
            raise DeclarationError(f"{name} (0) must be above 0 and at most 1; leave it out")


def check_positive(settings: Any, *names: str) -> None:
    """Refuse settings that are not positive numbers; None stands for a rule."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not (is_finite(value) and value > 0):
            raise DeclarationError(f"{name} ({value!r}) must be a positive number; leave it out")


def check_split(settings: Any, *names: str) -> None:
    """Refuse shares that leave nothing on one side."""
    for name in names:
        value = getattr(settings, name)
        if not is_finite(value) or not 0 < value < 1:
            raise DeclarationError(f"{name} ({value!r}) must be between 0 and 1; leave it out")
