"""Settings of solvers: frozen dataclasses with optional fields and facts, called to run a solver.

A *blank* is an optional field. If it is left out, it has our default, or the paper's with
``paper=True``, or what a rule computes from public numbers; the settings themselves stay as they
were written, and the values used are in the `Release`.

*Facts* are what other code must know about a solver: whether it needs the records in order, how
large its weights may be. They are attributes, so that there are no lists of solvers' names. Their
defaults are those of `Settings`, for solvers of users as well (`privfit.runs.door`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar, overload

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite, is_whole
from privfit.runs.paths import Path
from privfit.runs.run import Run, Task, check_candidates
from privfit.runs.sizes import known_size

__all__ = ["DEPRECATED", "Blank", "Parameters", "Search", "Settings", "blank", "fields_of",
           "has_own_fields", "listed"]  # fmt: skip

DEPRECATED = "deprecated"  # the default of a parameter that has another name now

T = TypeVar("T")
Own = TypeVar("Own", bound="Parameters")


# ------------------------------------------------------------------------------------------ blanks


class Blank(Generic[T]):
    """An optional field of settings; if it was left out, reading it returns what `rule` says.

    The rule sees only the settings. The field's value is kept apart from what was passed, which
    `get_params` and `repr` show.
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
    """An optional field with our default, and the paper's if it differs."""
    return Blank(lambda settings: paper if paper is not None and settings.paper else ours)


# ---------------------------------------------------------------------------------------- settings


class Parameters:
    """Fields that scikit-learn reaches by `get_params`, so that ``solver__steps`` is a parameter.

    Settings are frozen: `set_params` returns a changed copy.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of those that inherit
    unlisted: ClassVar[tuple[str, ...]] = ()  # fields that releases and files have only if passed

    def __repr__(self) -> str:
        """The settings as they were written, without those left out."""
        usual = {one.name: repr(one.default) for one in fields(self)}
        given = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        shown = [f"{name}={text}" for name, text in given.items() if text != usual[name]]
        return f"{type(self).__name__}({', '.join(shown)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields as they were passed.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the fields of settings or estimators among them.

        Returns
        -------
        dict
            Values by name.
        """
        found: dict[str, Any] = {}
        for one in fields(self):
            value = vars(self)[one.name]
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{one.name}__{name}": part for name, part in value.get_params().items()}
            found[one.name] = value
        return found

    def set_params(self: Own, **params: Any) -> Own:
        """Copy these settings with other fields.

        Parameters
        ----------
        **params : object
            Fields by name; ``select__steps`` is a field of the field `select`.

        Returns
        -------
        Settings
            The changed copy.
        """
        found = self.get_params(deep=False)
        own, inner = by_depth(params)
        _check_names((*own, *inner), found, self)
        found |= own
        found |= {name: changed(found[name], name, parts) for name, parts in inner.items()}
        return type(self)(**found)


def _check_names(names: Iterable[str], known: Iterable[str], settings: object) -> None:
    """Refuse fields that settings do not have."""
    for name in names:
        if name not in known:
            raise DeclarationError(
                f"{name} must be a parameter of {type(settings).__name__}; pass one of "
                f"{', '.join(known)}"
            )


def by_depth(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters by name, and parameters of parameters: ``select__steps`` belongs to `select`."""
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
    """A copy of settings with other fields; an estimator is changed in place."""
    if has_own_fields(value):
        _check_names(params, fields_of(value), value)
        return replace(value, **params)
    if not hasattr(value, "set_params"):
        raise DeclarationError(
            f"{name} ({value!r}) must be settings for {name}__{next(iter(params))} to be set; pass "
            "settings such as Gradient()"
        )
    return value.set_params(**params)


class Settings(Parameters):
    """The facts of a solver, with common defaults; a solver is called with a `Run`."""

    needs_order: ClassVar[bool] = False  # all records in their order, not only sums over them
    counts_errors: ClassVar[bool] = False  # of a linear model, instead of its loss
    centres_columns: ClassVar[bool] = False  # takes them from their middle if there is an intercept
    runs_unpaid: ClassVar[bool] = False  # has a meaning where epsilon is infinite
    is_gaussian: ClassVar[bool] = False  # all its draws are, with delta > 0: sizes may come late
    leaves_delta: ClassVar[bool] = False  # its draws are pure, and use none
    without_size: ClassVar[str] = ""  # what to pass where the number of records is not public
    takes: ClassVar[type | tuple[type, ...]] = object  # the classes of objectives that it takes

    @property
    def space_needs(self) -> tuple[str, ...]:
        """The methods of a space that it calls."""
        return ()

    @property
    def weighs_loss(self) -> bool:
        """Whether it takes a weight of the loss relative to a regulariser."""
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
        """Whether the space bounds the weights of coded columns, which have one scale.

        Parameters
        ----------
        objective : Objective
            The objective.

        Returns
        -------
        bool
            False by default.
        """
        return False

    def rows_held(self, width: int, n_threads: int) -> float:
        """How many rows of one number a weight it holds at a time for a linear model, at most.

        A stream leaves memory to them. Few rows are not counted.

        Parameters
        ----------
        width : int
            The number of weights.
        n_threads : int
            The number of threads.

        Returns
        -------
        float
            0 by default.
        """
        return 0.0

    def size(self, task: Task[Any, Any] | Run[Any, Any]) -> int:
        """The public number of records, for a rule that needs it.

        Parameters
        ----------
        task : Task or Run
            What the solver is asked to do.

        Returns
        -------
        int
            The number; an error if it was not declared.
        """
        remedy = f", or {self.without_size}" if self.without_size else ""
        return known_size(task.n_public, remedy=f"a public estimate{remedy}")

    def check(self, task: Task[Any, Any]) -> None:
        """Refuse what the solver would refuse, before anything is charged; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        if self.needs_size:
            self.size(task)

    def __call__(self, run: Run[Any, Any]) -> Path:
        """Run the solver and return everything that it released."""
        raise NotImplementedError


class Search(Settings):
    """The facts of a search for any objective that scores all candidates of a space."""

    def check(self, task: Task[Any, Any]) -> None:
        """Refuse a space that the objective cannot score.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        super().check(task)
        check_candidates(task)


def fields_of(solver: Any) -> dict[str, Any]:
    """The fields of a solver, as they were passed: everywhere those of its dataclass.

    An object that is none has the parameters that scikit-learn would find, or no fields.
    """
    if has_own_fields(solver):
        return {one.name: getattr(solver, one.name) for one in fields(solver) if one.init}
    if is_dataclass(solver) and isinstance(solver, Parameters):  # whose blanks have values by rules
        return {one.name: vars(solver)[one.name] for one in fields(solver)}
    own = getattr(type(solver), "get_params", Parameters.get_params)
    if isinstance(solver, type) or own is Parameters.get_params:
        return {}
    return dict(solver.get_params(deep=False))


def has_own_fields(solver: Any) -> bool:
    """Whether this is a dataclass of a user, whose fields are its parameters."""
    return is_dataclass(solver) and not isinstance(solver, type | Parameters)


def listed(settings: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of settings for releases and files: those that are unlisted only if passed."""
    unlisted = getattr(settings, "unlisted", ())
    return {n: value for n, value in values.items() if value is not None or n not in unlisted}


# ------------------------------------------------------------------------------------------ checks


def check_counts(settings: Any, *names: str) -> None:
    """Refuse settings that are not positive whole numbers; None means that a rule decides."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not is_whole(value) or value < 1):
            raise DeclarationError(
                f"{name} ({value!r}) must be a positive whole number; leave it out"
            )


def check_shares(settings: Any, *names: str) -> None:
    """Refuse settings outside [0, 1]; None means that a rule decides."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not is_finite(value) or not 0 <= value <= 1):
            raise DeclarationError(f"{name} ({value!r}) must lie in [0, 1]; leave it out")


def check_positive_shares(settings: Any, *names: str) -> None:
    """Refuse settings outside (0, 1]; None means that a rule decides."""
    check_shares(settings, *names)
    for name in names:
        if getattr(settings, name) == 0:
            raise DeclarationError(f"{name} (0) must be above 0 and at most 1; leave it out")


def check_positive(settings: Any, *names: str) -> None:
    """Refuse settings that are not positive numbers; None means that a rule decides."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not (is_finite(value) and value > 0):
            raise DeclarationError(f"{name} ({value!r}) must be a positive number; leave it out")


def check_split(settings: Any, *names: str) -> None:
    """Refuse fractions that leave nothing on one side."""
    for name in names:
        value = getattr(settings, name)
        if not is_finite(value) or not 0 < value < 1:
            raise DeclarationError(f"{name} ({value!r}) must lie between 0 and 1; leave it out")
