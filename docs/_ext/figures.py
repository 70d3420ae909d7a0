"""Pictures of the gallery: privfit's figures are not managed by pyplot, so look for axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def scraper(block: Any, variables: dict[str, Any], config: dict[str, Any]) -> str:
    """Save the figure of each axes that the block assigned to a name."""
    from matplotlib.axes import Axes
    from sphinx_gallery.scrapers import figure_rst

    seen = variables.setdefault("seen_figures", set())
    held = [one for one in variables["example_globals"].values() if isinstance(one, Axes)]
    fresh = {id(ax.figure): ax.figure for ax in held if id(ax.figure) not in seen}
    saved = []
    for key, figure in fresh.items():
        seen.add(key)
        path = Path(next(variables["image_path_iterator"]))
        figure.savefig(path, dpi=100, bbox_inches="tight")
        saved.append(str(path))
    return figure_rst(saved, config["src_dir"])
