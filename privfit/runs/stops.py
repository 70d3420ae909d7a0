"""How a callback ends a run, and what a run that was ended returns.

A callback that returns True ends its run. **Why this is free.** A run plans the sizes of all its
draws before the first, and its grant is charged for all of them. A callback sees released values
only, so that a run that it ends releases a function of what the whole run would have released:
post-processing. It saves nothing either. Who saw the releases chose the end, so what was not drawn
cannot be spent on anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.base.validation import is_finite
from privfit.runs.paths import Path

if TYPE_CHECKING:
    from privfit.runs.run import Run

__all__ = ["RunEnded", "path_of", "says_stop"]


class RunEnded(BaseException):
    """Raised where a run that was ended would go on; no error, and so no `Exception`."""


def says_stop(answer: object) -> bool:
    """Whether a callback returned True, and not just anything that is not false."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def path_of(solver: Callable[[Run[Any, Any]], Path], run: Run[Any, Any]) -> Path:
    """What a solver releases; if a callback ends the run, what was released until then.

    The answer is then the mean of the last `average` of that path, if the solver has such a
    setting, a number from 0 to 1, before it runs. A solver that has more to return catches
    `RunEnded` itself.
    """
    average = getattr(solver, "average", 0.0)
    with suppress(RunEnded):
        return solver(run)
    return run.path(average if is_finite(average) and 0 <= average <= 1 else 0.0)
