"""Time calls and whole fits on one thread and on two while other processes keep the cores busy.

python bench/busy.py                    # two busy neighbours, medians of 40
python bench/busy.py --neighbours 0     # an idle machine
python bench/busy.py --filter fit       # whole fits alone
python bench/busy.py --write            # both, to bench/busy.json and bench/README.md

A ratio is the median time on two threads divided by that on one; calls take turns. Of whole fits
the target is in speeds: on two threads at least 0.95 times that on one, 1.3 times at best.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import tables  # noqa: E402
from bench.results import keep, refresh  # noqa: E402

Call = Callable[[], Any]


def spin() -> None:
    """Keep a core busy until the process is ended."""
    while True:
        sum(range(100_000))


@contextmanager
def busy(neighbours: int) -> Iterator[None]:
    """So many busy processes beside this one."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=spin, daemon=True) for _ in range(neighbours)]
    for process in processes:
        process.start()
    time.sleep(1.0 if processes else 0.0)  # until they have imported what they need
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def calls(threads: int) -> dict[str, Call]:
    """Calls of some microseconds up to tens of milliseconds."""
    X, y = tables.one_hot(48_842)
    domain = privfit.Box(0, 1, X.shape[1])
    P = domain.candidates(200, np.random.default_rng(6))
    sparse = privfit.LinearObjective(X, y, "logistic", domain, n_threads=threads)
    X, y = tables.dense(30_000, 23)
    box = privfit.Box(-1, 1, 23)
    dense = privfit.LinearObjective(X, y, "logistic", box, n_threads=threads)
    Q = box.candidates(200, np.random.default_rng(6))
    centers = privfit.CentersObjective(X[:, :10], 16, privfit.Box(-1, 1, 10), n_threads=threads)
    C = centers.snap(np.random.default_rng(5).uniform(-1, 1, (16, 10))[None])[0]
    return {
        "200 candidates, one-hot": lambda: sparse.scores(P),
        "20 candidates, one-hot": lambda: sparse.scores(P[:20]),
        "gradient, one-hot": lambda: sparse.gradient(P[0], 0.5),
        "200 candidates, dense": lambda: dense.scores(Q),
        "20 candidates, dense": lambda: dense.scores(Q[:20]),
        "gradient, dense": lambda: dense.gradient(Q[0], 0.5),
        "lloyd, k = 16": lambda: centers.lloyd(C),
    }


def fits(threads: int) -> dict[str, Call]:
    """Whole fits, reading included: tenths of a second each."""
    columns, y, schema = tables.census()
    blobs = tables.blobs(200_000, 10, 16)

    def linear(solver: Any) -> Call:
        model = privfit.LogisticRegression(
            1.0, 1e-6, domain=schema, classes=[0, 1], solver=solver, n_threads=threads,
            random_state=1,
        )  # fmt: skip
        return lambda: model.fit(columns, y)

    means = privfit.KMeans(
        16, 1.0, 1e-6, domain=(0, 1), solver="hybrid", n_threads=threads, random_state=1
    )
    return {
        "fit, Gradient": linear(privfit.Gradient(steps=100)),
        "fit, Local by gradient": linear(privfit.Local(generations=100)),
        "fit, Local by loss": linear(privfit.Local(scoring="loss", generations=50)),
        "fit, EEM": linear(privfit.EEM(generations=50)),
        "fit, DPSGA": linear(privfit.DPSGA(generations=20)),
        "fit, objective": linear(privfit.ObjectivePerturbation()),
        "fit, KMeans": lambda: means.fit(blobs),
    }


def measure(neighbours: int, repeat: int, wanted: str = "") -> list[dict[str, Any]]:
    """A row a call: medians on one thread and on two."""
    one, two = ({**calls(threads), **fits(threads)} for threads in (1, 2))
    one = {name: call for name, call in one.items() if re.search(wanted, name)}
    for call in (*one.values(), *(two[name] for name in one)):
        call()  # budgets are calibrated, and libraries loaded
    rows = []
    with busy(neighbours):
        for name in one:
            times: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(max(3, repeat // 4) if name.startswith("fit") else repeat):
                for threads, call in ((1, one[name]), (2, two[name])):
                    start = time.perf_counter()
                    call()
                    times[threads].append(time.perf_counter() - start)
            first, second = (statistics.median(times[threads]) for threads in (1, 2))
            rows.append({"name": name, "neighbours": neighbours, "one": first, "two": second,
                         "worst": max(times[2])})  # fmt: skip
            print(f"{name:26} {neighbours} busy  {first * 1e3:8.3f} {second * 1e3:8.3f} ms  "
                  f"{second / first:.2f}", flush=True)  # fmt: skip
    return rows


def markdown(report: dict[str, Any]) -> str:
    """A table of ratios."""
    lines = [
        f"Measured on {report['date']}, medians of {report['repeat']}, a quarter of it for fits.",
        "",
        "| call | busy neighbours | one thread, ms | two threads, ms | two / one |",
        "|---|---|---|---|---|",
        *(f"| {row['name']} | {row['neighbours']} | {row['one'] * 1e3:.2f} | "
          f"{row['two'] * 1e3:.2f} | {row['two'] / row['one']:.2f} |" for row in report["rows"]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neighbours", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=40, help="of calls; a quarter of it of fits")
    parser.add_argument("--filter", default="", help="regular expression for names")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    counts = (0, 2) if options.write else (options.neighbours,)
    warnings.simplefilter("ignore", privfit.SeedWarning)
    rows = [row for count in counts for row in measure(count, options.repeat, options.filter)]
    report = {"date": datetime.date.today().isoformat(), "repeat": options.repeat, "rows": rows}
    if options.write:
        keep(HERE / "busy.json", report)
        refresh(HERE / "README.md", markdown(report), "busy")


if __name__ == "__main__":
    main()
