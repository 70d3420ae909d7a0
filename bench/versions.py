"""Time the kernels of this tree against those of an older revision, in turns and in one process.

python bench/versions.py a7544c4                      # every kernel, 1 and 2 threads, best of 15
python bench/versions.py a7544c4 --filter smooth      # some of them
python bench/versions.py a7544c4 --write              # refresh bench/README.md and versions.json

The older revision is built under another name in bench/.cache. Both must give the same integers
before they are timed. A ratio is the time of the older kernel divided by that of this tree's.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tarfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.append(str(ROOT))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import machine, tables  # noqa: E402
from bench.results import keep, refresh  # noqa: E402

OLDER = "privfit_before"
Call = Callable[[], Any]
KERNELS: dict[str, Callable[[ModuleType, int], Call]] = {}


def built(revision: str) -> Path:
    """The folder of that revision, its package renamed and built in place."""
    folder = HERE / ".cache" / "versions" / revision
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = ["git", "archive", revision, "privfit", "setup.py", "pyproject.toml", "README.md"]
        packed = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archived:
            archived.extractall(folder)
        for path in folder.rglob("*"):
            if path.suffix in {".py", ".pyx", ".pxd", ".h", ".c", ".toml"}:
                path.write_text(re.sub(r"\bprivfit\b", OLDER, path.read_text()))
        (folder / "privfit").rename(folder / OLDER)
        setup = [sys.executable, "setup.py", "build_ext", "--inplace"]
        subprocess.run(setup, cwd=folder, check=True, capture_output=True)
        (folder / "done").touch()
    return folder


# --------------------------------------------------------------------------------- what is timed


def kernel(name: str, **settings: Any) -> Callable[[Callable[..., Call]], Callable[..., Call]]:
    """Register what makes a call of a package, for a number of threads."""

    def register(make: Callable[..., Call]) -> Callable[..., Call]:
        KERNELS[name] = lambda package, threads: make(package, threads, **settings)
        return make

    return register


def linear(package: ModuleType, threads: int, table: str, loss: str) -> tuple[Any, Any]:
    X, y = tables.one_hot(48_842) if table == "one-hot" else tables.dense(30_000, 23)
    low = 0 if table == "one-hot" else -1
    domain = package.Box(low, 1, n_features=X.shape[1])
    objective = package.LinearObjective(X, y, loss, domain, n_threads=threads)
    return objective, domain.candidates(96, np.random.default_rng(6))


@kernel("losses, dense, logistic", table="dense", loss="logistic")
@kernel("losses, dense, hinge", table="dense", loss="hinge")
@kernel("losses, dense, zero-one", table="dense", loss="zero_one")
@kernel("losses, one-hot, logistic", table="one-hot", loss="logistic")
@kernel("losses, one-hot, hinge", table="one-hot", loss="hinge")
@kernel("losses, one-hot, zero-one", table="one-hot", loss="zero_one")
@kernel("losses, dense, logistic, wide", table="dense", loss="logistic", shift=2.0**12)
@kernel("losses, one-hot, logistic, wide", table="one-hot", loss="logistic", shift=2.0**12)
def losses(package: ModuleType, threads: int, table: str, loss: str, shift: float = 0.0) -> Call:
    objective, P = linear(package, threads, table, loss)
    P = P[:8] + shift if shift else P
    return lambda: objective.scores(P)


@kernel("losses, schema of 14 columns, logistic")
def schema_losses(package: ModuleType, threads: int) -> Call:
    records, y, schema = tables.census(48_842)
    schema = package.Schema.from_dict(schema.to_dict())
    objective = package.LinearObjective(records, y, "logistic", schema, n_threads=threads)
    P = schema.candidates(96, np.random.default_rng(6))
    return lambda: objective.scores(P)


@kernel("moves, dense, logistic", table="dense", loss="logistic")
@kernel("moves, one-hot, logistic", table="one-hot", loss="logistic")
@kernel("moves, one-hot, hinge", table="one-hot", loss="hinge")
def moves(package: ModuleType, threads: int, table: str, loss: str) -> Call:
    objective, P = linear(package, threads, table, loss)
    coords = np.arange(200) % P.shape[1]
    steps = np.full(coords.size, 0.25)
    return lambda: objective.at(P[0]).scores(coords, steps)


@kernel("gradient, dense, logistic", table="dense", loss="logistic")
@kernel("gradient, dense, hinge", table="dense", loss="hinge")
@kernel("gradient, one-hot, logistic", table="one-hot", loss="logistic")
@kernel("gradient, one-hot, hinge", table="one-hot", loss="hinge")
def gradient(package: ModuleType, threads: int, table: str, loss: str) -> Call:
    objective, P = linear(package, threads, table, loss)
    return lambda: [objective.gradient(w, 0.5) for w in P[:8]]


@kernel("slopes and bends, dense", table="dense")
@kernel("slopes and bends, one-hot", table="one-hot")
def smooth(package: ModuleType, threads: int, table: str) -> Call:
    objective, P = linear(package, threads, table, "logistic")
    sums = objective.smooth(0.0, np.empty(0, dtype=np.int64), math.inf)
    bits = np.array([50])
    w, v = (np.rint(np.ldexp(p, 46)).astype(np.int64) for p in P[:2])

    def run() -> Any:
        slopes = sums.slopes(w[None], bits)
        return [slopes, sums.bends(w[None], bits, v[None])]

    return run


@kernel("costs, l2, d = 3, k = 15", d=3, k=15, power=2)
@kernel("costs, l1, d = 3, k = 15", d=3, k=15, power=1)
@kernel("costs, l2, d = 16, k = 16", d=16, k=16, power=2)
@kernel("costs, l1, d = 16, k = 16", d=16, k=16, power=1)
def costs(package: ModuleType, threads: int, d: int, k: int, power: int) -> Call:
    objective, rng = centers(package, threads, d, k, power)
    C = objective.snap(rng.uniform(-1, 1, (48, k, d)))
    return lambda: objective.scores(C)


def centers(package: ModuleType, threads: int, d: int, k: int, power: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (34_112, d))
    return package.CentersObjective(X, k, package.Box(-1, 1, d), power, n_threads=threads), rng


@kernel("one centre moved, l2", power=2)
@kernel("one centre moved, l1", power=1)
def center_moves(package: ModuleType, threads: int, power: int) -> Call:
    objective, rng = centers(package, threads, 10, 8, power)
    C = objective.snap(rng.uniform(-1, 1, (1, 8, 10)))[0]
    which = np.repeat(np.arange(8), 8)
    new = objective.snap(rng.uniform(-1, 1, (1, 64, 10)))[0]
    return lambda: objective.at(C).scores(which, new)


@kernel("lloyd, k = 5", k=5)
@kernel("lloyd, k = 16", k=16)
@kernel("lloyd, clipped residuals", k=16, clip=True)
def lloyd(package: ModuleType, threads: int, k: int, clip: bool = False) -> Call:
    objective, rng = centers(package, threads, 10, k, 2)
    C = objective.snap(rng.uniform(-1, 1, (1, k, 10)))[0]
    if clip:
        return lambda: [objective.residuals(C, 4096, 2) for _ in range(4)]
    return lambda: [objective.lloyd(C) for _ in range(4)]


@kernel("distances, real", kind="real")
@kernel("distances, one-hot", kind="one-hot")
def distances(package: ModuleType, threads: int, kind: str) -> Call:
    return lambda: facilities(package, threads, kind).scores([[0, 1], [2, 3]])


def facilities(package: ModuleType, threads: int, kind: str, n: int = 20_000) -> Any:
    rng = np.random.default_rng(4)
    if kind == "one-hot":
        X = tables.one_hot(n)[0]
        domain, clip = package.Box(0, 1, X.shape[1]), (0, X.shape[1])
    else:
        X = rng.uniform(0, 1, (n, 4))
        domain, clip = package.Box(0, 1, 4), (0, 4) if kind == "real" else (0, 0.2)
    return package.FacilityObjective(X, X[:512], clip, domain, n_threads=threads)


@kernel("least over sets, words", kind="real")
@kernel("least over sets, bytes", kind="one-hot")
def least(package: ModuleType, threads: int, kind: str) -> Call:
    objective = facilities(package, threads, kind)
    P = np.random.default_rng(3).integers(0, 512, (400, 16))
    return lambda: objective.scores(P)


@kernel("all swaps, words", kind="real")
@kernel("all swaps, bytes", kind="one-hot")
def swaps(package: ModuleType, threads: int, kind: str) -> Call:
    objective = facilities(package, threads, kind)
    return lambda: objective.at(np.arange(16)).all_scores()


@kernel("top 10 of 1,000,000")
def top(package: ModuleType, threads: int) -> Call:
    scores = np.random.default_rng(2).integers(-10_000_000, 0, 1_000_000)
    select = importlib.import_module(f"{package.__name__}._kernels.select")
    random = importlib.import_module(f"{package.__name__}._kernels.random")
    seeded = np.random.default_rng

    def run() -> Any:
        return select.top_k(scores, 10, 3, 20, random.BitSource(seeded(1)), threads)

    return run


@kernel("chain, d = 2", d=2)
@kernel("chain, d = 10", d=10)
def chain(package: ModuleType, threads: int, d: int) -> Call:
    room = importlib.import_module(f"{package.__name__}.clustering.postprocess")
    objective, rng = centers(package, threads, d, 5, 2)
    C = [objective.snap(rng.uniform(-1, 1, (1, 5, d)))[0] for _ in range(3)]
    steps = [objective.lloyd(c) for c in C]
    counts, sums = (np.stack([step[i] for step in steps]).astype(float) for i in range(2))
    trace = room.LloydTrace(
        np.stack(C), counts, sums * objective.candidate_units, 5.0, 5.0, -np.ones(d), np.ones(d),
        "gaussian", "box", 0.0,
    )  # fmt: skip
    return lambda: room.mcmc(trace, 5, steps=100_000, n_records=1000, rng=0, n_init=1)


@kernel("norms of pairs over a schema")
def norms(package: ModuleType, threads: int) -> Call:
    schema = package.Schema.from_dict(tables.census(100)[2].to_dict())
    P = schema.candidates(300, np.random.default_rng(6))
    return lambda: schema.pair_norms(P)


# ------------------------------------------------------------------------------------ whole fits


@kernel("fit, gradient", solver="gradient")
@kernel("fit, local", solver="local")
@kernel("fit, eem", solver="eem")
@kernel("fit, objective", solver="objective")
def linear_fit(package: ModuleType, threads: int, solver: str) -> Call:
    records, y, schema = tables.census(20_000)
    schema = package.Schema.from_dict(schema.to_dict())

    def run() -> Any:
        model = package.LogisticRegression(
            1.0, 1e-6, domain=schema, classes=[0, 1], solver=solver, n_threads=threads,
            random_state=0,
        )  # fmt: skip
        return model.fit(records, y).coef_

    return run


@kernel("fit, KMeans")
def kmeans_fit(package: ModuleType, threads: int) -> Call:
    X = np.random.default_rng(5).uniform(-1, 1, (34_112, 4))

    def run() -> Any:
        model = package.KMeans(8, 1.0, domain=(-1, 1), n_threads=threads, random_state=0)
        return model.fit(X).cluster_centers_

    return run


@kernel("fit, KMedian")
def kmedian_fit(package: ModuleType, threads: int) -> Call:
    X = np.random.default_rng(5).uniform(0, 1, (10_000, 6))

    def run() -> Any:
        model = package.KMedian(
            4, 1.0, facilities=X[:200], domain=(0, 1), n_threads=threads, random_state=0
        )
        return model.fit(X).cluster_centers_

    return run


# ------------------------------------------------------------------------------------- measuring


def same(one: Any, other: Any) -> bool:
    """Whether two answers are the same, bit for bit."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray | np.generic | int | float):
        return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
    shown = {name: value for name, value in vars(one).items() if isinstance(value, np.ndarray)}
    return bool(shown) and all(same(value, getattr(other, name)) for name, value in shown.items())


def measure(name: str, before: ModuleType, threads: int, repeat: int) -> dict[str, Any]:
    """One row: both agree, then they are timed in turns."""
    old, new = KERNELS[name](before, threads), KERNELS[name](privfit, threads)
    if not same(old(), new()):
        raise SystemExit(f"{name}: the two versions disagree")
    times: dict[Call, list[float]] = {old: [], new: []}
    with machine.Others() as others:
        for turn in range(repeat):
            for call in (old, new) if turn % 2 else (new, old):
                start = time.perf_counter()
                call()
                times[call].append(time.perf_counter() - start)
    return {"name": name, "threads": threads, "before": min(times[old]), "now": min(times[new]),
            "others_share": others.share}  # fmt: skip


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows for the instruction set of this process."""
    warnings.simplefilter("ignore")  # seeds of fits
    sys.path.append(str(built(options.revision)))
    before = importlib.import_module(OLDER)
    rows = []
    for name in KERNELS:
        if re.search(options.filter, name):
            for threads in options.threads:
                row = measure(name, before, threads, options.repeat)
                rows.append(row | {"simd": privfit._kernels.cpu.active()})
                print(json.dumps(rows[-1]), flush=True)
    return rows


def markdown(report: dict[str, Any]) -> str:
    """A line a kernel, a column for each instruction set and number of threads."""
    columns = sorted({(row["simd"], row["threads"]) for row in report["rows"]})
    ratios = {(r["name"], r["simd"], r["threads"]): r["before"] / r["now"] for r in report["rows"]}
    names = dict.fromkeys(row["name"] for row in report["rows"])
    means = [
        math.exp(np.mean([math.log(v) for k, v in ratios.items() if k[1:] == column]))
        for column in columns
    ]
    lines = [
        f"Measured on {report['date']} against {report['revision']}, best of {report['repeat']}.",
        "",
        "| kernel | " + " | ".join(f"{simd}, {n} thread(s)" for simd, n in columns) + " |",
        "|---|" + "---|" * len(columns),
        *("| " + " | ".join([name, *(f"{ratios[(name, *c)]:.2f}" for c in columns)]) + " |"
          for name in names),
        "| **geometric mean** | " + " | ".join(f"**{mean:.2f}**" for mean in means) + " |",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("revision", help="of git, to compare with")
    add("--filter", default="", metavar="REGEX", help="kernels whose name matches")
    add("--threads", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2])
    add("--repeat", type=int, default=15, help="rounds; the best of each side counts")
    add("--write", action="store_true", help="to bench/versions.json and bench/README.md")
    add("--here", action="store_true", help=argparse.SUPPRESS)  # this process's instruction set
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.here:
        run(options)
        return
    built(options.revision)
    rows = []
    for simd in ("auto", "baseline"):
        command = [sys.executable, __file__, *(arguments or sys.argv[1:]), "--here"]
        environment = {**os.environ, "PRIVFIT_SIMD": simd}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout or ():
                rows.append(json.loads(line))
                row = rows[-1]
                print(f"{row['name']:42} {row['simd']:9} {row['threads']}  "
                      f"{row['before'] * 1e3:9.3f} {row['now'] * 1e3:9.3f} ms  "
                      f"{row['before'] / row['now']:.2f}", flush=True)  # fmt: skip
        if child.returncode:
            raise SystemExit(child.returncode)
    report = {"date": datetime.date.today().isoformat(), "revision": options.revision,
              "repeat": options.repeat, "rows": rows}  # fmt: skip
    print(markdown(report))
    if options.write:
        keep(HERE / "versions.json", report)
        refresh(HERE / "README.md", markdown(report), "versions")


if __name__ == "__main__":
    main()
