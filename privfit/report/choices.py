"""A plot of a chosen number of clusters: the bought curve of costs, with errors."""

from __future__ import annotations

from typing import Any

from privfit.base.errors import DeclarationTypeError
from privfit.report.axes import BEHIND, axes, finish, style

__all__ = ["draw_choice"]

WANTED = ("k", "ks", "costs", "errors", "release")


def draw_choice(chosen: Any, ax: Any = None) -> Any:
    """Draw the costs of numbers of clusters, with 95 % intervals, and the number that was chosen.

    Parameters
    ----------
    chosen : ChosenK
        What `privfit.choose_k` returned.
    ax : matplotlib axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import choose_k
    >>> from privfit.report.plotting import draw_choice
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> ax = draw_choice(choose_k(X, range(2, 6), epsilon=1.0, domain=(-1, 1)))
    >>> len(ax.lines) > 0
    True
    """
    if not all(hasattr(chosen, name) for name in WANTED):
        raise DeclarationTypeError(
            f"chosen ({type(chosen).__name__}) must be a ChosenK; pass what privfit.choose_k "
            "returned"
        )
    ax = axes(ax)
    release = chosen.release
    at = f", delta {release.delta:g}" if release.delta else ""
    ax.errorbar(
        chosen.ks, chosen.costs, yerr=1.96 * chosen.errors, capsize=3, elinewidth=1,
        label=f"noisy cost, epsilon {release.epsilon:g}{at}", **style(0),
    )  # fmt: skip
    ax.axvline(
        chosen.k, color="0.45", linewidth=1.2, linestyle="--", zorder=BEHIND,
        label=f"chosen: {chosen.k}",
    )  # fmt: skip
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("squared distances to the nearest centre, clipped")
    ax.xaxis.get_major_locator().set_params(integer=True)
    finish(ax)
    return ax
