"""Scores of one's own, clipped, rounded and added up; see scored.pyx."""

import numpy as np
from numpy.typing import NDArray

from privfit.base.typing import Floats, Integers

def sum_values(
    values: NDArray[np.floating], low: float, high: float, unit: float, out: Integers
) -> None: ...
def sum_compiled(
    function: object,
    takes_data: bool,
    records: NDArray[np.floating],
    candidates: Floats,
    where: NDArray[np.intp] | None,
    what: Floats | None,
    low: float,
    high: float,
    unit: float,
    record: Floats,
    values: Floats,
    out: Integers,
) -> None: ...
def addresses() -> tuple[int, int]: ...
