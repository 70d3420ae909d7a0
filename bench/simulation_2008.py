"""The simulations of Chaudhuri and Monteleoni (2008): objective, output and no perturbation.

python bench/simulation_2008.py             # five folds at each epsilon, below a minute

17,500 points of a 10-dimensional sphere, labelled by a half space through the origin. Separable: no
point within 0.03 of its boundary. Unseparable: within 0.1 of it labels are flipped with probability
0.2. lambda is 0.01, so Lambda = 0.01 n. The paper gives test errors of 0.143 (objective) and 0.296
(output) on the former, 0.190 and 0.326 on the latter, and no epsilon.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

from bench.fits import table_lines  # noqa: E402
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


def folds(n: int, rng: np.random.Generator) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """(rows to train on, rows to test on) of each fold."""
    parts = np.array_split(rng.permutation(n), FOLDS)
    for i, test in enumerate(parts):
        yield np.concatenate([part for j, part in enumerate(parts) if j != i]), test


def errors(
    x: Floats, y: NDArray[np.int64], solver: Any, epsilon: float, seed: int = 0, repeats: int = 3
) -> list[float]:
    """The test errors of `repeats` seeded fits in each fold."""
    rng, found = np.random.default_rng(seed), []
    for train, test in folds(len(x), rng):
        for _ in range(repeats):
            model = LogisticRegression(
                epsilon, domain=L2Ball(1.0), classes=[0, 1], solver=solver, n_threads=1,
                random_state=rng,
            )  # fmt: skip
            found.append(1 - model.fit(x[train], y[train]).score(x[test], y[test]))
    return found


def sweep(kind: str, repeats: int) -> dict[str, list[float]]:
    """The mean test error of each solver at each epsilon; "not private" is epsilon a million."""
    make = {"separable": separable, "unseparable": unseparable}[kind]
    x, y = make(np.random.default_rng(2008))
    found = {
        name: [float(np.mean(errors(x, y, solver, e, repeats=repeats))) for e in EPSILONS]
        for name, solver in SOLVERS.items()
    }
    return {**found, "not private": [float(np.mean(errors(x, y, SOLVERS["output"], 1e6)))]}


def crossing(curve: list[float], published: float) -> str:
    """The epsilon at which a falling curve passes a published error, interpolated in its log."""
    if not min(curve) <= published <= max(curve):
        return "outside the sweep"
    where = np.interp(-published, -np.array(curve), np.log(EPSILONS))
    return f"epsilon {np.exp(where):.3f}"


def lines(repeats: int = 3) -> Iterator[str]:
    """A table for each kind of points."""
    for kind, published in PUBLISHED.items():
        found = sweep(kind, repeats)
        yield f"{kind}; not private: {found['not private'][0]:.3f}"
        yield ""
        rows = [
            [name, *map("{:.3f}".format, (*found[name], aim)), crossing(found[name], aim)]
            for name, aim in zip(SOLVERS, published, strict=True)
        ]
        header = ["test error", *(f"epsilon {e:g}" for e in EPSILONS), "the paper", "at"]
        yield from table_lines(header, rows)
        yield ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="fits in each of the five folds")
    print("\n".join(lines(parser.parse_args(arguments).repeats)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
