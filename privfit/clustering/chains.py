"""Post-processing as part of a fit: which solvers leave something to it, and when it is used.

The rule of `auto` is public: it depends on the number of columns and on the solver that `auto`
chose, which itself follows from public numbers. The evidence is in docs/postprocess.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.clustering.grids import KEPT_CELLS, Tree, UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.over_seeded import OverSeeded
from privfit.clustering.parts import CellCounts, KMeansTrace
from privfit.clustering.pooled import drawn_on
from privfit.clustering.postprocess import Progress, mcmc
from privfit.clustering.trace import LloydTrace
from privfit.runs.settings import Settings

__all__ = ["chain_of", "check_chain", "is_cut", "postprocessed"]

CHAINS = {"mcmc": False, "anneal": True}  # by name: whether the chain is cooled
TRACED = (Lloyd, UniformGrid, Tree, Hybrid, OverSeeded)  # solvers that release counts
HELPED = (Tree, Hybrid)  # where measurements show a gain,
MOST_COLUMNS = 10  # up to so many columns: beyond, likely records have a shape of their own


def check_chain(postprocess: Any) -> None:
    """Refuse what names no post-processing."""
    known = isinstance(postprocess, str) and postprocess in ("auto", *CHAINS)
    if postprocess is not None and not known:
        raise DeclarationError(
            f"postprocess ({postprocess!r}) must be None, 'auto', 'mcmc' or 'anneal'; pass one of "
            "them"
        )


def chain_of(
    postprocess: str | None, name: str, settings: Settings, is_auto: bool, n_features: int
) -> str | None:
    """The chain that follows a solver, or None.

    'auto' follows only a solver that was left to a rule, too, and only where it helps.
    """
    if postprocess == "auto":
        helps = isinstance(settings, HELPED) and n_features <= MOST_COLUMNS
        return "anneal" if is_auto and helps else None
    if postprocess is not None and not isinstance(settings, TRACED):
        raise DeclarationError(
            f"postprocess ({postprocess!r}) needs noisy counts of clusters or cells, which solver "
            f"({name!r}) does not release; pass solver='lloyd', 'tree', 'hybrid' or 'over_seeded'"
        )
    return postprocess


def is_cut(trace: LloydTrace | KMeansTrace) -> bool:
    """Whether a trace lacks the smallest of many cells, so that likely records would, too."""
    parts = trace.parts if isinstance(trace, KMeansTrace) else ()
    return any(isinstance(part, CellCounts) and len(part.counts) >= KEPT_CELLS for part in parts)


def postprocessed(
    trace: LloydTrace | KMeansTrace,
    centers: Floats,
    chain: str,
    rng: Any,
    paper: bool,
    callback: Callable[[Progress], object] | None,
) -> Floats:
    """Better centres from released values only.

    After plain Lloyd steps they are those of the likely data set; after other solvers, whose
    centres are good already, they are half way to the means of its clusters.
    """
    options: dict[str, Any] = {"rng": rng, "anneal": CHAINS[chain], "callback": callback}
    if isinstance(trace, LloydTrace):
        return mcmc(trace, len(centers), paper=paper, **options).centers
    return drawn_on(centers, mcmc(trace, len(centers), n_init=1, **options).points)
