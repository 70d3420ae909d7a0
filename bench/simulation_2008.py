"""The simulations of Chaudhuri and Monteleoni (2008): objective, output and no perturbation.

python bench/simulation_2008.py             # five folds at each epsilon, below a minute

17,500 points of a 10-dimensional sphere, labelled by a half space through the origin. Separable: no
point within 0.03 of its boundary. Unseparable: within 0.1 of it labels are flipped with probability
0.2. lambda is 0.01, so Lambda = 0.01 n. The paper gives test errors of 0.143 (objective) and 0.296
(output) on the former, 0.190 and 0.326 on the latter, and no epsilon.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

from bench.fits import table_lines  # noqa: E402
from bench.trials import PLAIN  # noqa: E402
from privfit import (  # noqa: E402
    L2Ball,
    LogisticRegression,
    ObjectivePerturbation,
    OutputPerturbation,
)

Floats = NDArray[np.float64]

POINTS, DIMENSION, FOLDS = 17_500, 10, 5
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
PUBLISHED = {"separable": (0.143, 0.296), "unseparable": (0.190, 0.326)}
SOLVERS = {
    "objective": ObjectivePerturbation(paper=True),
    "output": OutputPerturbation(paper=True),
}


def sphere(n: int, rng: np.random.Generator) -> Floats:
    """(n, 10): points uniform on the unit sphere."""
    x = rng.standard_normal((n, DIMENSION))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def separable(rng: np.random.Generator, n: int = POINTS) -> tuple[Floats, NDArray[np.int64]]:
    """Points at least 0.03 from the boundary, and their side."""
    normal = sphere(1, rng)[0]
    x = sphere(2 * n, rng)
    x = x[np.abs(x @ normal) >= 0.03][:n]
    return x, (x @ normal > 0).astype(np.int64)


def unseparable(rng: np.random.Generator, n: int = POINTS) -> tuple[Floats, NDArray[np.int64]]:
    """All points, and their side; within 0.1 of the boundary it is flipped one time in five."""
    normal, x = sphere(1, rng)[0], sphere(n, rng)
    flipped = (np.abs(x @ normal) < 0.1) & (rng.random(n) < 0.2)
    return x, ((x @ normal > 0) ^ flipped).astype(np.int64)


@lru_cache(maxsize=2)
def points(kind: str) -> tuple[Floats, NDArray[np.int64]]:
    """The points of one kind: the same in every fold."""
    return {"separable": separable, "unseparable": unseparable}[kind](np.random.default_rng(2008))


def error(
    kind: str,
    solver: str,
    epsilon: float,
    seed: int,
    size: int = POINTS,
    adjacency: str = "replace",
) -> float:
    """Test error in fold `seed % 5` of shuffle `seed // 5`, of the first `size` points."""
    x, y = points(kind)
    shuffle, fold = divmod(seed, FOLDS)
    parts = np.array_split(np.random.default_rng(shuffle).permutation(size), FOLDS)
    test = parts.pop(fold)
    train = np.concatenate(parts)
    plain = solver == PLAIN
    model = LogisticRegression(
        1e6 if plain else epsilon, domain=L2Ball(1.0), classes=[0, 1],
        solver=SOLVERS["output" if plain else solver], adjacency=adjacency,
        n_public=len(train), n_threads=1, random_state=seed,
    )  # fmt: skip
    return float(1 - model.fit(x[train], y[train]).score(x[test], y[test]))


def crossing(curve: Sequence[float], published: float) -> str:
    """The epsilon at which a falling curve passes a published error, interpolated in its log."""
    if not min(curve) <= published <= max(curve):
        return "outside the sweep"
    where = np.interp(-published, -np.array(curve), np.log(EPSILONS))
    return f"epsilon {np.exp(where):.3f}"


def lines(found: Callable[[str, str, float], float]) -> Iterator[str]:
    """A table for each kind of points; `found` is the mean error of (kind, solver, epsilon)."""
    for kind, published in PUBLISHED.items():
        yield f"{kind}; not private: {found(kind, PLAIN, math.inf):.3f}"
        yield ""
        rows = []
        for name, aim in zip(SOLVERS, published, strict=True):
            curve = [found(kind, name, epsilon) for epsilon in EPSILONS]
            rows.append([name, *map("{:.3f}".format, (*curve, aim)), crossing(curve, aim)])
        header = ["test error", *(f"epsilon {e:g}" for e in EPSILONS), "the paper", "at"]
        yield from table_lines(header, rows)
        yield ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="fits in each of the five folds")
    seeds = range(FOLDS * parser.parse_args(arguments).repeats)

    def found(kind: str, solver: str, epsilon: float) -> float:
        return float(np.mean([error(kind, solver, epsilon, seed) for seed in seeds]))

    print("\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
