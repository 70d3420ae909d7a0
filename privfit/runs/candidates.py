"""What a solver proposes and what it returns, checked against the space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privfit.base.errors import BudgetError, DeclarationError
from privfit.base.typing import Array
from privfit.runs.paths import Path
from privfit.runs.protocols import Space

__all__ = ["check_path", "inside", "to_select"]


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


def inside(space: Space, P: Array) -> Array:
    """Candidates (m, ...), or an error if they are not candidates of the space."""
    P = np.asarray(P)
    if P.ndim == 0 or len(P) == 0 or P.shape[1:] != tuple(space.shape):
        wanted = ", ".join(["m", *map(str, space.shape)])
        raise DeclarationError(
            f"P (shape {P.shape}) must be candidates of shape ({wanted}); pass them as rows"
        )
    contains = getattr(space, "contains", None)
    if contains is not None and not np.all(contains(P)):
        raise DeclarationError(
            f"P must lie in the space, {space!r}, and on the objective's grid; pass "
            "run.space.snap(P), or candidates that the space's own methods make"
        )
    return P


def check_path(path: Any, space: Space) -> None:
    """Refuse what is no path, or whose answer is no candidate."""
    if not isinstance(path, Path):
        raise DeclarationError(
            f"it returned a value of type {type(path).__name__}, which must be a Path; return "
            "run.path()"
        )
    if not path.generations:
        raise DeclarationError(
            "it returned a path without candidates, which must have one; call "
            "run.report(survivors) before run.path()"
        )
    answer = np.asarray(path.answer)
    if answer.shape != tuple(space.shape):
        raise DeclarationError(
            f"its answer (shape {answer.shape}) must have the shape of a candidate, "
            f"{tuple(space.shape)}; report survivors as rows: run.report(P[chosen])"
        )
    if not getattr(space, "has_means", False):
        inside(space, answer[None])
    elif answer.dtype.kind not in "fiu" or not np.isfinite(answer).all():
        raise DeclarationError("its answer must be finite numbers; report candidates of the space")
