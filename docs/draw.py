"""Draw `figures/solvers.svg`: `python docs/draw.py`.

It has a tree of questions for each estimator, which follows the public rules of `auto`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).resolve().parent
BLUE, GREY = "#0072b2", "#767676"
WIDE, GAP = 3.75, 1.1  # of a question, and of the arrows behind it

# A tree is a solver, or a question with the tree of each answer.
Tree = str | tuple[str, dict[str, "Tree"]]

LINEAR: Tree = (
    "4,096 columns or more\n(delta = 0: over 1,024)?",
    {
        "yes": "local: few long steps",
        "no": (
            "delta > 0?",
            {
                "yes": (
                    "logistic regression\nunder a schema?",
                    {
                        "yes": "additive: a curve a column",
                        "no": (
                            "n mu > 3 columns,\nat most 1,024 columns?",
                            {"yes": "gradient", "no": "select_refine"},
                        ),
                    },
                ),
                "no": (
                    "logistic under a schema,\nor n epsilon > 20 columns?",
                    {"yes": "objective", "no": "local"},
                ),
            },
        ),
    },
)
MEANS: Tree = (
    "at most 2 columns?",
    {
        "yes": "tree",
        "no": (
            "noise of a step above\na quarter of the radius?",
            {
                "yes": "mean: all centres at the mean",
                "no": (
                    "few clusters, 3 columns,\nor n unknown?",
                    {"yes": "hybrid", "no": "over_seeded"},
                ),
            },
        ),
    },
)
MEDIAN: Tree = (
    "facilities given?",
    {
        "yes": ("at most 3 columns?", {"yes": "synopsis", "no": "greedy"}),
        "no": ("at most 2 columns?", {"yes": "cell_medians", "no": "medians"}),
    },
)


def leaves(tree: Tree) -> int:
    """How many solvers a tree names."""
    return 1 if isinstance(tree, str) else sum(map(leaves, tree[1].values()))


def draw_tree(ax: Axes, tree: Tree, x: float, top: float) -> float:
    """Draw a tree from x to the right, its first leaf at the height `top`; its own height."""
    if isinstance(tree, str):
        name, _, note = tree.partition(": ")
        box = {"boxstyle": "round,pad=0.4", "facecolor": BLUE, "edgecolor": "none"}
        ax.text(x + 0.15, top, name, color="white", weight="bold", va="center", bbox=box)
        ax.text(x + 0.1, top - 0.45, note, color=GREY, size=8, va="center")
        return top
    question, answers = tree
    heights, below = [], top
    for part in answers.values():
        heights.append(draw_tree(ax, part, x + WIDE + GAP, below))
        below -= leaves(part)
    middle = (heights[0] + heights[-1]) / 2
    for answer, height in zip(answers, heights, strict=True):
        ax.annotate(
            "", (x + WIDE + GAP, height), (x + WIDE, middle),
            arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
        above = height > middle
        y = middle + 0.42 * (height - middle) + (0.1 if above else -0.1)
        side = "bottom" if above else "top"
        ax.text(x + WIDE + 0.42 * GAP, y, answer, color=GREY, size=9, ha="right", va=side)
    ax.add_patch(
        FancyBboxPatch((x, middle - 0.36), WIDE, 0.72, boxstyle="round,pad=0,rounding_size=0.12",
                       facecolor="white", edgecolor=GREY)
    )  # fmt: skip
    ax.text(x + WIDE / 2, middle, question, size=9, ha="center", va="center")
    return middle


def draw_solvers() -> Figure:
    """One panel for each estimator, below each other."""
    trees = {"LogisticRegression, LinearSVC": LINEAR, "KMeans": MEANS, "KMedian": MEDIAN}
    sizes = [leaves(tree) for tree in trees.values()]
    figure = Figure(figsize=(13.2, 0.72 * sum(sizes) + 1.2))
    grid = figure.add_gridspec(len(trees), 1, height_ratios=[n + 0.5 for n in sizes], hspace=0.05)
    for row, (title, tree) in enumerate(trees.items()):
        ax = figure.add_subplot(grid[row])
        ax.set(xlim=(0, 21.6), ylim=(-leaves(tree) + 0.3, 1.1))
        ax.axis("off")
        ax.text(0, 0.9, title, size=12, weight="bold", va="top")
        draw_tree(ax, tree, 0.05, 0.0)
    return figure


def main() -> None:
    """Write the picture."""
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "privfit", "font.family": "sans-serif"}
    path = HERE / "figures" / "solvers.svg"
    draw_solvers().savefig(path, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
