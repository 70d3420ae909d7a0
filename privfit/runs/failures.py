"""What may be said of an error that ends a paid run: where, and in a sentence that is fixed.

After the charge, any value that a solver computes may be a score, and any text may quote one: the
text of its own errors, and that of privfit's if they name an argument that the solver passed. So
neither is shown. What is shown is the class of the error, the solver's line, and a sentence for the
method of `Run` that refused it. Errors of the places where records are (a file that has gone, a
cluster that does not answer) are the caller's own, and are shown as they are; they are told by
where they were raised, since a solver can raise any class.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np

from privfit.base.errors import (
    BudgetError,
    ClusterError,
    DeclarationError,
    FileError,
    InputError,
    PrivfitError,
)
from privfit.base.typing import Integers
from privfit.base.validation import is_whole

__all__ = ["ResultError", "checked_range", "checked_scores", "is_of_place", "told"]

PLACES = (FileError, ClusterError, InputError, OSError)  # and what they may raise
OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
RECORDS = os.path.join(OURS, "records") + os.sep
KERNELS = "privfit/_kernels/"  # as compiled code names its files

SENTENCES = {
    "plan": "run.plan takes a kind ('selection', 'pure', or 'gaussian' with delta > 0) and a "
    "positive whole count, once and before the first draw",
    "set_aside": "run.set_aside takes events that cost no more than the budget",
    "size_of": "run.size_of takes a kind ('selection', 'pure', or 'gaussian' with delta > 0) and a "
    "positive whole count",
    "select": "run.select takes candidates of the space as rows (run.space.snap(P) moves them "
    "there), k from 1 to their number, a positive size, and one integer score for each",
    "release": "run.release takes a mechanism and a value of its kind",
    "note": "run.note takes settings before run.objective or run.around is used, since they are "
    "released",
    "report": "run.report takes survivors as rows, at least one, of the shape of a candidate: "
    "run.report(P[chosen])",
    "path": "run.path takes an average from 0 to 1",
}
UNPLANNED = (
    "a selection must be planned before it is drawn, and no more may be drawn than was planned; "
    "call run.plan('selection', count) first"
)


class ResultError(DeclarationError):
    """What code of a user returned cannot be used. Its messages hold no value: they are shown."""


def checked_scores(scores: Any, m: int) -> Integers:
    """Scores or priors of m candidates, which are private, or an error without them."""
    scores = np.asarray(scores)
    if scores.shape != (m,) or scores.dtype.kind not in "iu":
        raise ResultError(
            "scores and prior of an objective must be integers, one for each candidate; return "
            "arrays of int64 of shape (m,)"
        )
    return scores


def checked_range(value: Any) -> int:
    """A range of scores, or an error."""
    if not is_whole(value) or value < 0:
        raise ResultError(
            "range of an objective must be a whole number of at least 0; return how much the "
            "difference of two scores can change"
        )
    return int(value)


def _frames(error: BaseException) -> Iterator[tuple[CodeType, int, bool]]:
    """Code, line, and whether it is privfit's own, from the outermost call to the raise."""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        inside = code.co_filename.startswith((OURS, KERNELS))
        yield code, trace.tb_lineno, inside
        trace = trace.tb_next


def is_of_place(error: BaseException) -> bool:
    """Whether an error was raised where records are read, and not by a solver or an objective."""
    frames = [(code.co_filename, inside) for code, _, inside in _frames(error)]
    if all(inside for _, inside in frames):
        return isinstance(error, (*PLACES, MemoryError))
    if not isinstance(error, PLACES):
        return False
    first = next((i for i, (file, _) in enumerate(frames) if file.startswith(RECORDS)), None)
    before = {file for file, inside in frames[:first] if not inside}
    return first is not None and frames[-1][0] not in before


def told(error: BaseException) -> str:
    """The line outside of privfit that an error came from, and what can be said without values."""
    place, method, outside, inside = "", "", False, True
    for code, line, inside in _frames(error):
        outside |= not inside
        if not inside and not code.co_filename.startswith("<"):  # of generated code
            method = ""
            place = f", {os.path.basename(code.co_filename)} line {line}"
        if code.co_filename == os.path.join(OURS, "runs", "run.py") and code.co_name in SENTENCES:
            method = method or code.co_name
    if not inside or not isinstance(error, PrivfitError):
        return place
    if isinstance(error, ResultError) or not (outside or method):
        return f"{place}: {error}"  # all values in it are ours
    if isinstance(error, BudgetError) and method in ("select", "release"):
        return f"{place}: {UNPLANNED}"
    return f"{place}: {SENTENCES[method]}" if method else place
