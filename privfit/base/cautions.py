"""Warnings about budgets that protect little, leaks outside the guarantee, and old names.

They are given before anything is charged, so that a program that turns them into errors has spent
nothing. They depend on declarations and public sizes alone: under 'add_remove', where the number of
records is private, delta is compared with `n_public` or with nothing.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FrameType
from typing import Any, TypeVar, cast

from privfit.base.validation import is_finite

__all__ = [
    "OldNameWarning",
    "PrivacyLeakWarning",
    "ScoreWarning",
    "SeedWarning",
    "UnwiseBudgetWarning",
    "call_depth",
    "callers",
    "caution",
    "caution_score",
    "old_names",
    "old_order",
    "public_records",
]

MOST_EPSILON = 20.0  # e^20 = 5e8: an attacker is all but certain
MOST_DELTA = 0.01  # whatever the number of records


class OldNameWarning(FutureWarning):
    """A name was used that has another one now, or another meaning; it works for one version."""


def old_names(module: str, renamed: Mapping[str, str]) -> Callable[[str], object]:
    """A module's `__getattr__` for names that have another one now; pickles look there, too."""

    def look_up(name: str) -> object:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is {module}.{renamed[name]} now; import that",
            OldNameWarning,
            stacklevel=2,
        )
        return getattr(sys.modules[module], renamed[name])

    return look_up


F = TypeVar("F", bound=Callable[..., object])


def old_order(*names: str) -> Callable[[F], F]:
    """Let a function that takes all but its first argument by name take them in an old order, too.

    A call is an old one if it has two arguments without a name, or one that is named as well.
    """

    def decorate(function: F) -> F:
        first, *others = inspect.signature(function).parameters

        @wraps(function)
        def called(*args: object, **named: object) -> object:
            is_old = len(args) > 1 or (args and first in named)
            if not is_old or len(args) > len(names):
                return function(*args, **named)
            form = ", ".join([first, *(f"{name}=..." for name in others)])
            warnings.warn(
                f"{function.__name__} takes all but {first} by name now; call "
                f"{function.__name__}({form})",
                OldNameWarning,
                stacklevel=2,
            )
            return function(**dict(zip(names, args, strict=False)), **named)

        return cast("F", called)

    return decorate


class PrivacyLeakWarning(UserWarning):
    """Something is about to depend on private records outside the guarantee.

    See Also
    --------
    SeedWarning, ScoreWarning : The kinds.

    Examples
    --------
    >>> import warnings
    >>> from privfit import PrivacyLeakWarning
    >>> warnings.simplefilter("error", PrivacyLeakWarning)  # a pipeline may refuse to go on
    """


class SeedWarning(PrivacyLeakWarning):
    """A seed was passed: anybody who knows it can subtract the noise. Given once per process.

    See Also
    --------
    PrivacyLeakWarning : The base class.

    Examples
    --------
    Tests and benchmarks, whose records are public, ignore it:

    >>> import warnings
    >>> from privfit import SeedWarning
    >>> warnings.simplefilter("ignore", SeedWarning)
    """


class ScoreWarning(PrivacyLeakWarning):
    """`score` returned an exact number, which no budget accounts for. Given once per process.

    See Also
    --------
    PrivacyLeakWarning : The base class.
    accuracy_score : A private score.

    Examples
    --------
    >>> import warnings
    >>> from privfit import ScoreWarning
    >>> warnings.simplefilter("ignore", ScoreWarning)  # the records are public
    """


class UnwiseBudgetWarning(UserWarning):
    """A budget that is valid but protects almost nobody.

    See Also
    --------
    Budget : Epsilon and delta.

    Examples
    --------
    >>> import warnings
    >>> from privfit import UnwiseBudgetWarning
    >>> warnings.simplefilter("error", UnwiseBudgetWarning)  # a pipeline may refuse it
    """


_silent: ContextVar[bool] = ContextVar("privfit_public_records", default=False)
_given: set[type[Warning]] = set()  # of those that are given once a process


@contextmanager
def public_records() -> Iterator[None]:
    """Give no warnings inside: the records were declared public, or are made up."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def caution(
    epsilon: float,
    delta: float,
    source: Any,
    size: int | None = None,
) -> None:
    """Warn of an unwise budget and of a seed; call it right before the charge.

    `size` is the public number of records, if there is one.
    """
    if is_finite(epsilon) and epsilon > MOST_EPSILON:
        _warn(
            f"epsilon ({epsilon:g}) is so large that it protects nobody: what is released may be "
            "e^epsilon times likelier with a record than without it; pass a budget such as 1.0",
            UnwiseBudgetWarning,
        )
    most = MOST_DELTA if size is None else min(MOST_DELTA, 1 / max(size, 1))
    if is_finite(delta) and most < delta < 1:  # what is no delta is refused
        _warn(
            f"delta ({delta:g}) is so large that a release could show whole records: it allows "
            "each of them to be published with this probability; pass a delta far below 1 / the "
            f"number of records, such as 1e-{max(6, 1 + math.ceil(-math.log10(most)))}",
            UnwiseBudgetWarning,
        )
    if source.seeded:
        _warn_once(
            "random_state is set, which voids privacy: whoever knows the seed can subtract the "
            "noise; leave it out for private records",
            SeedWarning,
        )


def caution_score(remedy: str) -> None:
    """Warn, once per process, that an exact score is about to be computed."""
    _warn_once(
        f"score is exact and not private: pass public records, or use {remedy}, which has a budget",
        ScoreWarning,
    )


def _warn_once(message: str, category: type[Warning]) -> None:
    if category not in _given and not _silent.get():
        _warn(message, category)
        _given.add(category)  # not where the warning is an error: then it is one each time


def _warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called privfit."""
    if not _silent.get():
        warnings.warn(message, category, stacklevel=call_depth())


def call_depth() -> int:
    """The frames between who warns and the call of privfit, also through scikit-learn."""
    frame, depth = sys._getframe(2), 2
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, depth = frame.f_back, depth + 1
    return depth


def callers() -> Iterator[str]:
    """The modules of scikit-learn, joblib and privfit through which privfit was called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_inside(frame.f_globals.get("__name__", "")):
        yield frame.f_globals["__name__"]
        frame = frame.f_back


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("privfit", "sklearn", "joblib")
