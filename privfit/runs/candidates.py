"""What a solver proposes and what it returns, checked against the space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import BudgetError, DeclarationError
from privfit.base.typing import Array
from privfit.runs.failures import ResultError
from privfit.runs.paths import Path
from privfit.runs.protocols import Space

__all__ = ["check_path", "inside", "reported", "rows", "to_select"]

ROUNDING = 1e-12  # of a bound, by which a mean of candidates may miss it


def to_select(space: Space, P: Array, k: int, size: float) -> Array:
    """Candidates of which k are to be selected, or an error; nothing is scored or drawn."""
    if math.isnan(size):
        raise BudgetError(
            "a selection must be planned before it is drawn; call run.plan('selection', count) "
            "first"
        )
    P = inside(space, P)
    if not 1 <= k <= len(P):
        raise DeclarationError(
            f"k ({k}) must be from 1 to the number of candidates ({len(P)}); pass fewer"
        )
    return P


def inside(space: Space, P: ArrayLike, remedy: str = "run.space.snap(P)") -> Array:
    """Candidates (m, ...), or an error if they are not candidates of the space."""
    P = rows(P)
    if P.ndim == 0 or len(P) == 0 or P.shape[1:] != tuple(space.shape):
        wanted = ", ".join(["m", *map(str, space.shape)])
        raise DeclarationError(
            f"P (shape {P.shape}) must be candidates of shape ({wanted}); pass them as rows"
        )
    contains = getattr(space, "contains", None)
    if contains is not None and not np.all(contains(P)):
        raise DeclarationError(
            f"P must lie in the space, {space!r}, and on the objective's grid; pass {remedy}, or "
            "candidates that the space's own methods make"
        )
    return P


def rows(P: ArrayLike) -> Array:
    """Candidates as an array."""
    try:
        return np.asarray(P)
    except ValueError:  # which would quote their shape alone, but not say what to do
        raise DeclarationError(
            "P must be candidates of one shape; pass an array with a row for each"
        ) from None


def reported(space: Space, survivors: Array, whole: bool) -> Array:
    """A copy of what a generation released, rows of which one or more are there."""
    survivors = np.array(survivors)
    if survivors.ndim == 0 or (whole and survivors.shape[1:] != tuple(space.shape)):
        wanted = ", ".join(["s", *map(str, space.shape)])
        raise DeclarationError(
            f"survivors (shape {survivors.shape}) must be candidates of shape ({wanted}); report "
            "them as rows: run.report(P[chosen])"
        )
    if len(survivors) == 0:
        raise DeclarationError("survivors must hold one candidate or more; report P[chosen]")
    return survivors


def check_path(path: Any, space: Space, *, boxed: bool) -> None:
    """Refuse what is no path, or whose answer is no candidate; messages hold no values.

    Fits of ours, and those that inherit from them, may answer in another coding than the box's.
    """
    if not isinstance(path, Path):
        raise ResultError("it returned a value that must be a Path; return run.path()")
    if not path.generations:
        raise ResultError(
            "it returned a path without candidates, which must have one; call "
            "run.report(survivors) before run.path()"
        )
    answer = np.asarray(path.answer)
    if answer.shape != tuple(space.shape):
        raise ResultError(
            "its answer must have the shape of a candidate; report survivors as rows: "
            "run.report(P[chosen])"
        )
    if not _is_candidate(answer, space, boxed):
        raise ResultError(
            "its answer must be a candidate of the space, or a mean of candidates; report "
            "candidates that the space's own methods make"
        )


def _is_candidate(answer: Array, space: Any, boxed: bool) -> bool:
    """Whether an answer lies in the space; a mean need not lie on its grid."""
    if not getattr(space, "has_means", False):
        contains = getattr(space, "contains", None)
        return contains is None or bool(np.all(contains(answer[None])))
    if answer.dtype.kind not in "fiu" or not np.isfinite(answer).all():
        return False
    if not boxed:
        return True
    low, high = (np.asarray(getattr(space, one, math.nan)) for one in ("low", "high"))
    beyond = np.maximum(low - answer, answer - high)  # by rounding, if it is a mean
    return not (beyond > ROUNDING * np.maximum(np.abs(low), np.abs(high))).any()
