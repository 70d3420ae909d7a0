"""Speed of clustering: one Lloyd step against scikit-learn's, and a whole fit against diffprivlib.

python bench/cluster_speed.py                       # a million records, both tables
python bench/cluster_speed.py --write               # refresh bench/README.md

A step of ours gives exact counts and sums of all clusters, or sums of clipped residuals. An
iteration of scikit-learn is the difference of fits with many iterations and with one, so that its
checks and copies are left out. Rounds are interleaved and the best counts.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import baselines, clusters, machine, tables  # noqa: E402
from bench.cells import Cell  # noqa: E402
from bench.contestants import PYTHON, Worker, diffprivlib_kmeans  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.kernels import _milliseconds, _times, race  # noqa: E402
from bench.results import refresh  # noqa: E402

ITERATIONS = 6


def scikit_learn(X: Any, centers: Any, iterations: int) -> Callable[[], Any]:
    """A fit of so many iterations from these centres."""
    from sklearn.cluster import KMeans

    model = KMeans(len(centers), init=centers, n_init=1, max_iter=iterations, algorithm="lloyd",
                   tol=0.0)  # fmt: skip

    def fit() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few iterations do not converge
            return model.fit(X)

    return fit


def step_rows(n: int, repeat: int, threads: int, d: int = 10, k: int = 16) -> Iterator[list[str]]:
    """Our steps, each against scikit-learn's iteration and against its public functions."""
    X = tables.blobs(n, d, k)
    objective = privfit.CentersObjective(X, k, privfit.Box(0, 1), n_threads=threads)
    centers = objective.snap(np.random.default_rng(9).uniform(0.2, 0.8, (k, d)))
    radius = round(0.25 / objective.unit**0.5)
    steps = {
        "Lloyd": lambda: objective.lloyd(centers),
        "residuals, l2": lambda: objective.residuals(centers, radius, 2),
        "residuals, l1": lambda: objective.residuals(centers, radius, 1),
    }
    first, last = "one iteration", f"{ITERATIONS} iterations"
    rivals = {
        first: scikit_learn(X, centers, 1),
        last: scikit_learn(X, centers, ITERATIONS),
        "argmin, sums": lambda: baselines.lloyd_argmin(X, centers),
    }
    with threadpool_limits(threads):
        taken = {name: times[0] for name, times in race({**steps, **rivals}, repeat).items()}
    iteration = (taken[last] - taken[first]) / (ITERATIONS - 1)
    size = f"{n:,} x {d}, k = {k}"
    for name in steps:
        ours = taken[name]
        yield [name, size, str(threads), _milliseconds(ours), _milliseconds(iteration),
               _times(iteration / ours), _milliseconds(taken["argmin, sums"]),
               _times(taken["argmin, sums"] / ours)]  # fmt: skip


def fit_rows(python: Path, repeat: int, threads: tuple[int, ...]) -> Iterator[list[str]]:
    """`KMeans` on s1 at epsilon 1, whole fits, against diffprivlib's in its own process."""
    X, cell = clusters.records("s1"), Cell("kmeans", "s1", "diffprivlib", 1.0, 0.0, "add_remove")
    worker, theirs = Worker(python), []
    ours: dict[int, list[float]] = {count: [] for count in threads}
    for seed in range(repeat + 1):
        for count, taken in ours.items():
            model = clusters.estimator("s1", "auto", 1.0, 0.0, "add_remove", seed, n_threads=count)
            taken.append(machine.best_of(lambda model=model: model.fit(X), 1))
        theirs.append(diffprivlib_kmeans(worker, cell, seed)[1])
    worker.close()
    peer = min(theirs[1:])  # the first is cold
    for count, taken in ours.items():
        best = min(taken[1:])
        yield ["KMeans on s1", str(count), _milliseconds(best), _milliseconds(peer),
               _times(peer / best)]  # fmt: skip


def lines(n: int, repeat: int, threads: tuple[int, ...], python: Path) -> Iterator[str]:
    """Both tables; the second where there is an interpreter with diffprivlib."""
    with machine.Others() as others:
        rows = [row for count in threads for row in step_rows(n, repeat, count)]
    share = 100 * (others.share or 0)
    yield f"Best of {repeat}, interleaved; others took {share:.0f} % of the cores."
    yield ""
    yield from table_lines(
        ["step", "size", "threads", "privfit ms", "scikit-learn's iteration ms", "ratio",
         "argmin and sums ms", "ratio"], rows,
    )  # fmt: skip
    if not python.exists():
        yield ""
        yield "diffprivlib was not there: run `python bench/peers.py --setup`."
        return
    yield ""
    yield from table_lines(
        ["fit", "threads", "privfit ms", "diffprivlib ms", "ratio"],
        fit_rows(python, repeat, threads),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--records", type=int, default=1_000_000, help="of the steps; default 1,000,000")
    add("--repeat", type=int, default=7, help="interleaved rounds; default 7")
    add("--python", type=Path, default=PYTHON,
        help="an interpreter that has diffprivlib; default that of peers.py --setup")  # fmt: skip
    add("--write", action="store_true", help="refresh bench/README.md")
    options = parser.parse_args(arguments)
    text = "\n".join(lines(options.records, options.repeat, (1, 2), options.python)) + "\n"
    print(text)
    if options.write:
        refresh(HERE / "README.md", text, "cluster speed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
