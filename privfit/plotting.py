"""Pictures of released values; matplotlib loads when first used."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_roc"]

Floats: TypeAlias = NDArray[np.float64]


def draw_roc(
    private: tuple[Floats, Floats], label: str, true: tuple[Floats, Floats] | None, ax: Any
) -> Any:
    """Draw a private ROC curve, and the true one where it is given, on axes; new ones if None."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError(
                "plot needs matplotlib; install it with: pip install 'privfit[plot]'"
            ) from None
        ax = pyplot.subplots()[1]
    ax.plot([0, 1], [0, 1], linestyle=":", color="0.6", label="chance")
    if true is not None:
        ax.plot(*true, color="0.3", linewidth=1, label="true (not private)")
    ax.plot(*private, label=label)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    ax.legend(loc="lower right")
    return ax
