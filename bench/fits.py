"""Time whole fits against the same searches in numpy; see README.md beside this file.

python bench/fits.py                        # every part, two threads, best of 7
python bench/fits.py --parts race --filter gradient
python bench/fits.py --write                # refresh bench/README.md and bench/fits.json; what
                                            # was not run this time stays as it was
"""

import argparse
import datetime
import gc
import json
import math
import re
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans as PlainMeans
from sklearn.linear_model import LogisticRegression as PlainRegression
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import datasets, machine, tables  # noqa: E402
from bench.kernels import BUSY, ENOUGH, PAUSE, _milliseconds, _times  # noqa: E402
from bench.numpy_fits import FITS, Plan, coded  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from privfit import (  # noqa: E402
    DPSGA,
    EEM,
    Gradient,
    KMeans,
    Local,
    LogisticRegression,
    ObjectivePerturbation,
)
from privfit._kernels import cpu  # noqa: E402
from privfit.objectives import LinearObjective  # noqa: E402

EPSILON, DELTA = 1.0, 1e-6
OUTSIDE = 0.2  # of a fit's time may pass outside kernels
HOPELESS = 1.5  # times slower in the first round: a variant is not run again
PARTS = ("race", "rows", "generations", "convex", "clusters")
ROWS = (10_000, 100_000, 1_000_000)
OTHER_MODULES = (".threads", ".cpu", ".random", ".candidates", ".cells", ".objects", "._cyutility")
QUICK_ROWS = (500, 1_000)


def records():
    """Columns, labels and schema of Adult, or a table like it, and which."""
    try:
        adult = datasets.load("adult")
    except FileNotFoundError:
        return *tables.census(), "generated census"
    return adult.columns, adult.y, adult.schema, "adult"


# --------------------------------------------------------------------------------------- measuring


def estimator(solver, schema, threads, **options):
    """A logistic regression by this solver; seeded, so that every round does the same work."""
    return LogisticRegression(
        EPSILON, DELTA, domain=schema, classes=[0, 1], solver=solver, n_threads=threads,
        random_state=1, **options,
    )  # fmt: skip


class Numpy:
    """One numpy variant as a call without arguments: its times, and the model it found."""

    def __init__(self, variant, plan, table, errors):
        (self.kind, self.loop), self.plan, self.table = variant, plan, table
        self.errors = errors
        self.seconds, self.loop_seconds = [], []

    def __call__(self):
        columns, y, schema, _ = self.table
        start = time.perf_counter()
        S = coded(columns, y, schema, self.kind, signed=not self.errors)
        ready = time.perf_counter()
        self.w = self.loop(S, self.plan, y > 0) if self.errors else self.loop(S, self.plan)
        end = time.perf_counter()
        self.seconds.append(end - start)
        self.loop_seconds.append(end - ready)


class Ours:
    """Our fit as a call without arguments: its times, and the model."""

    def __init__(self, model, table):
        self.model, self.table, self.seconds = model, table, []

    def __call__(self):
        start = time.perf_counter()
        self.model.fit(*self.table[:2])
        self.seconds.append(time.perf_counter() - start)


def kernel_modules():
    """The compiled modules that records are given to, as far as they are loaded."""
    loaded = {
        name: module
        for name, module in sys.modules.items()
        if name.startswith("privfit._kernels.") and not name.endswith(OTHER_MODULES)
    }
    return [module for module in loaded.values() if not module.__file__.endswith(".py")]


@contextmanager
def parts():
    """Time spent in compiled kernels, in selection and in packing, by wrapping what is called."""
    spent, saved = Counter(), []

    def wrap(owner, name, part):
        call = getattr(owner, name)

        def timed(*args, **options):
            start = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                spent[part] += time.perf_counter() - start

        saved.append((owner, name, call))
        setattr(owner, name, timed)

    for module in kernel_modules():
        part = "selection" if module.__name__.endswith(".select") else "kernels"
        for name, value in list(vars(module).items()):
            own = getattr(value, "__module__", None) == module.__name__
            if own and callable(value) and not isinstance(value, type):
                wrap(module, name, part)  # its helpers from elsewhere would be counted twice
    wrap(LinearObjective, "__init__", "reading")
    try:
        yield spent
    finally:
        for owner, name, call in saved:
            setattr(owner, name, call)


def shares(run, repeat):
    """Seconds of one fit by part, from the round that was quickest in all."""
    best = None
    for _ in range(repeat):
        time.sleep(PAUSE)
        with parts() as spent:
            run()
        whole = run.seconds.pop()
        if best is None or whole < best["whole"]:
            best = {"whole": whole, **{part: spent[part] for part in ("kernels", "selection")},
                    "reading": spent["reading"]}  # fmt: skip
    return best


def plan_of(fit, model):
    """What numpy needs to do the same: read off the release of our fit."""
    event = model.release_.events[-1]  # second moments, if any, come first
    errors = isinstance(fit.solver, DPSGA)
    if isinstance(fit.solver, Gradient):
        return Plan(np.empty(0), event.parameter, math.inf, event.count)
    r = fit.solver.generations or event.count
    bound = 1.0 if errors else 10.0
    steps = np.empty(0) if errors else 2 * bound * fit.solver.schedule(r)
    return Plan(steps, event.parameter, bound, r)


def _in_the_race(group):
    """The variants that may still turn out to be the fastest, after a first round."""
    limit = HOPELESS * min(run.seconds[0] for run in group.values())
    return {name: run for name, run in group.items() if run.seconds[0] <= limit}


def measure(fit, table, threads, repeat):
    """One row, as a dict."""
    columns, y, schema, _ = table
    ours = Ours(estimator(fit.solver, schema, threads), table)
    ours()  # cold: the accounting is cached from now on
    cold = ours.seconds.pop()
    plan, errors = plan_of(fit, ours.model), isinstance(fit.solver, DPSGA)
    groups = [
        {name: Numpy(variant, plan, table, errors) for name, variant in group.items()}
        for group in (fit.variants, fit.hard)
        if group
    ]
    entered = groups
    with threadpool_limits(threads), machine.Others() as others:
        for number in range(repeat):
            for run in (ours, *(run for group in groups for run in group.values())):
                time.sleep(PAUSE)
                run()
                gc.collect()
            if number == 0:
                groups = [_in_the_race(group) for group in groups]
        split = shares(ours, repeat)
    best, inner = min(ours.seconds), split["kernels"] + split["selection"]
    X1 = coded(columns, y, schema, "float64", signed=False)
    rows = []
    for group, all_of_it, reach in zip(groups, entered, (fit.reach, None), strict=False):
        name, run = min(group.items(), key=lambda item: min(item[1].seconds))
        rows.append({
            "name": fit.name,
            "size": f"{len(y):,} x {X1.shape[1] - 1}, {plan.generations} generations",
            "threads": threads,
            "baseline": name,
            "baseline_seconds": min(run.seconds),
            "seconds": best,
            "ratio": min(run.seconds) / best,
            "search_ratio": min(run.loop_seconds) / (best - split["reading"]),
            "reach": reach,
            "cold_seconds": cold,
            "parts": split,
            "outside": 1 - inner / split["whole"],
            "outside_search": 1 - inner / (split["whole"] - split["reading"]),
            "accuracy": ours.model.score(columns, y),
            "baseline_accuracy": float(np.mean((X1 @ run.w > 0) == (y > 0))),
            "all_seconds": {"ours": sorted(ours.seconds)}
            | {variant: sorted(each.seconds) for variant, each in all_of_it.items()},
            "others_share": others.share,
            "comparable": repeat >= ENOUGH,
        })  # fmt: skip
    return rows


# ----------------------------------------------------------------------------------------- scaling


def gaps(solver, columns, y, schema, threads):
    """Seconds of each generation but the first: the callback looks at the clock."""
    stamps = []
    listen = lambda _: stamps.append(time.perf_counter())  # noqa: E731
    estimator(solver, schema, threads, callback=listen).fit(columns, y)
    return np.diff(stamps)


def _walkers(generations):
    return {
        "Local by loss": Local(scoring="loss", generations=generations),
        "Local by gradient": Local(generations=generations),
        "EEM": EEM(generations=generations),
    }


def by_rows(threads, repeat, sizes=ROWS):
    """Seconds of a generation, by the number of records of a generated census."""
    result = {name: {} for name in _walkers(1)}
    for n in sizes:
        table = tables.census(n)
        for name, solver in _walkers(20).items():
            rounds = [np.median(gaps(solver, *table, threads)) for _ in range(min(repeat, 3))]
            result[name][n] = float(min(rounds))
    return result


def by_generation(table, threads, repeat):
    """Seconds of the generations 2-50 and 451-500 of one fit, the median of each."""
    result = {}
    for name, solver in _walkers(500).items():
        taken = np.min([gaps(solver, *table[:3], threads) for _ in range(min(repeat, 3))], axis=0)
        result[name] = {"2-50": float(np.median(taken[:49])),
                        "451-500": float(np.median(taken[-50:]))}  # fmt: skip
    return result


# -------------------------------------------------------------------------- perturbed convex fits


def against_scikit_learn(table, threads, repeat):
    """Seconds of a fit by 'objective', reading the table included, and of lbfgs on coded records.

    lbfgs has the same regularisation; its tolerance is for the mean of the gradients, so that
    gamma / n is the same as ours, and 1e-4 is what it takes by default.
    """
    columns, y, schema, _ = table
    X = schema.encode(columns) * float(schema.record_units()[0])
    model = estimator(ObjectivePerturbation(), schema, threads)
    ridge = model.fit(columns, y).release_.settings["regularisation"]
    runs = {"objective": lambda: model.fit(columns, y)}
    for name, tolerance in {"lbfgs, 1e-4": 1e-4, "lbfgs, same": 2.0**-16 / len(y)}.items():
        plain = PlainRegression(C=1 / ridge, tol=tolerance, max_iter=5000)
        runs[name] = lambda plain=plain: plain.fit(X, y)
    taken = {name: [] for name in runs}
    with threadpool_limits(threads):
        for name, run in [*runs.items()] * min(repeat, 5):
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
    return {name: min(seconds) for name, seconds in taken.items()}


# ----------------------------------------------------------------------------------------- k-means


def against_k_means(threads, repeat, n=1_000_000, d=10, k=16):
    """Seconds of a whole `KMeans` by 'hybrid', and of scikit-learn's with one start."""
    X = tables.blobs(n, d, k)
    ours = KMeans(
        k, EPSILON, DELTA, domain=(0, 1), solver="hybrid", n_threads=threads, random_state=1
    )
    plain = PlainMeans(k, n_init=1, random_state=1)
    taken = {"hybrid": [], "scikit-learn": []}
    with threadpool_limits(threads), machine.Others() as others:
        for name, model in [("hybrid", ours), ("scikit-learn", plain)] * (min(repeat, 5) + 1):
            start = time.perf_counter()
            model.fit(X)
            taken[name].append(time.perf_counter() - start)
    cost = {"hybrid": inertia(X, ours.cluster_centers_), "scikit-learn": plain.inertia_}
    return {
        "size": f"{n:,} x {d}, k = {k}",
        "seconds": {name: min(seconds[1:]) for name, seconds in taken.items()},
        "inertia": cost,
        "others_share": others.share,
    }


def inertia(X, centers):
    """The sum of squared distances to the nearest centre, in blocks of records."""
    squares = np.square(centers).sum(axis=1)
    blocks = (X[i : i + 8192] for i in range(0, len(X), 8192))
    return float(sum((np.square(x).sum(axis=1) + (squares - 2 * x @ centers.T).min(axis=1)).sum()
                     for x in blocks))  # fmt: skip


# --------------------------------------------------------------------------------------- reporting

HEADER = ["fit", "size", "threads", "baseline", "ms", "privfit ms", "ratio", "search ratio",
          "reach", "verdict", "outside kernels", "without reading", "first fit ms", "accuracy",
          "others"]  # fmt: skip


def verdict(row):
    """How the ratio stands to its target; "?" where others took a share of the machine."""
    if row["reach"] is None or not row["comparable"]:
        return "-"
    doubt = "?" if (row["others_share"] or 0) > BUSY else ""
    return ("reached" if row["ratio"] >= row["reach"] else "short") + doubt


def cells(row):
    """A row of the printed table."""
    return [
        row["name"],
        row["size"],
        str(row["threads"]),
        row["baseline"],
        _milliseconds(row["baseline_seconds"]),
        _milliseconds(row["seconds"]),
        _times(row["ratio"]),
        _times(row["search_ratio"]),
        _times(row["reach"]),
        verdict(row),
        f"{row['outside']:.0%}" + ("" if row["outside"] < OUTSIDE else " (over)"),
        f"{row['outside_search']:.0%}",
        _milliseconds(row["cold_seconds"]),
        f"{row['accuracy']:.3f}, numpy {row['baseline_accuracy']:.3f}",
        "-" if row["others_share"] is None else f"{row['others_share']:.0%}",
    ]


def table_lines(header, rows):
    """A table of Markdown."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def race_lines(report):
    yield from table_lines(HEADER, map(cells, report["race"]))
    yield ""
    for row in {row["name"]: row for row in report["race"]}.values():
        parts = row["parts"]
        rest = parts["whole"] - parts["reading"] - parts["kernels"] - parts["selection"]
        yield (
            f"- {row['name']}: {_milliseconds(parts['whole'])} ms, of which reading and packing "
            f"{_milliseconds(parts['reading'])}, kernels {_milliseconds(parts['kernels'])}, "
            f"selection {_milliseconds(parts['selection'])}, the rest {_milliseconds(rest)}"
        )


def rows_lines(report):
    sizes = [int(n) for n in next(iter(report["rows"].values()))]
    header = [
        "ms per generation",
        *(f"{n:,} rows" for n in sizes),
        "growth at the last step of rows",
    ]
    rows = []
    for name, taken in report["rows"].items():
        last = list(taken.items())[-2:]
        (n0, t0), (n1, t1) = last
        growth = f"{t1 / t0:.1f}x for {int(n1) / int(n0):.0f}x"  # JSON has texts for keys
        rows.append([name, *(_milliseconds(t) for t in taken.values()), growth])
    yield from table_lines(header, rows)


def generations_lines(report):
    header = ["ms per generation", "generations 2-50", "generations 451-500", "ratio"]
    rows = [
        [name, *(_milliseconds(t) for t in taken.values()),
         f"{taken['451-500'] / taken['2-50']:.2f}"]
        for name, taken in report["generations"].items()
    ]  # fmt: skip
    yield from table_lines(header, rows)


def convex_lines(report):
    ours = report["convex"]["objective"]
    rows = [[name, _milliseconds(t), _times(t / ours)] for name, t in report["convex"].items()]
    yield from table_lines(["logistic regression", "ms", "ratio"], rows)


def clusters_lines(report):
    found = report["clusters"]
    ours = found["seconds"]["hybrid"]
    rows = [
        [name, found["size"], _milliseconds(t), _times(t / ours), f"{found['inertia'][name]:.0f}"]
        for name, t in found["seconds"].items()
    ]
    yield from table_lines(["k-means", "size", "ms", "ratio", "inertia"], rows)


LINES = {
    "race": race_lines,
    "rows": rows_lines,
    "generations": generations_lines,
    "convex": convex_lines,
    "clusters": clusters_lines,
}


def markdown(report):
    """The generated part of README.md."""
    facts = "; ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [
        f"Measured on {report['date']}, privfit {report['privfit']} with {report['simd']} kernels, "
        f"best of {report['repeat']}, {report['threads']} thread(s), data: {report['data']}.",
        "",
        f"Machine: {facts}.",
    ]
    if report.get("kept"):
        lines += ["", f"From an earlier run: {', '.join(report['kept'])}."]
    for part in PARTS:
        if report.get(part):
            lines += ["", *LINES[part](report)]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------ command line


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default=",".join(PARTS), metavar=",".join(PARTS), help="what to measure")
    add("--filter", default="", metavar="REGEX", help="fits of the race whose name matches")
    add("--threads", type=int, default=2, help="of both sides; default 2")
    add("--repeat", type=int, default=7, help="interleaved rounds; the best counts; default 7")
    add("--json", type=Path, metavar="PATH", help="write the numbers here, part by part")
    add("--write", action="store_true", help="refresh bench/fits.json and bench/README.md")
    add("--quick", action="store_true", help="few rows and one round: does it run?")
    options = parser.parse_args(arguments)
    if options.quick:
        options.repeat = 1
    return options


def run(options, path=None, old=None):
    """Measure, print and keep what is found as it comes, and return the report.

    `old` is an earlier report, whose fits and parts are kept where they are not measured again.
    """
    table = (*tables.census(QUICK_ROWS[-1]), "small census") if options.quick else records()
    chosen = options.parts.split(",")
    report = {
        "date": datetime.date.today().isoformat(),
        "privfit": privfit.__version__,
        "simd": cpu.active(),
        "repeat": options.repeat,
        "threads": options.threads,
        "data": table[3],
        "machine": machine.describe(),
        "race": [],
        "rows": {},
        "generations": {},
        "convex": {},
        "clusters": {},
    }
    estimator(Local(generations=2), table[2], options.threads).fit(*table[:2])  # imports
    if "race" in chosen:
        for fit in FITS:
            if re.search(options.filter, fit.name):
                report["race"] += measure(fit, table, options.threads, options.repeat)
                print("  ".join(cells(report["race"][-1])), flush=True)
                keep(path, merged(report, old))
    sizes = QUICK_ROWS if options.quick else ROWS
    measures = {
        "rows": lambda: by_rows(options.threads, options.repeat, sizes),
        "generations": lambda: by_generation(table, options.threads, options.repeat),
        "convex": lambda: against_scikit_learn(table, options.threads, options.repeat),
        "clusters": lambda: against_k_means(
            options.threads, options.repeat, 20_000 if options.quick else 1_000_000
        ),
    }
    for part, measured in measures.items():
        if part in chosen:
            report[part] = measured()
            keep(path, merged(report, old))
    report = merged(report, old)
    print("", markdown(report), sep="\n")
    return report


def merged(report, old):
    """The report, with the fits and parts that only an earlier one has; `kept` names them."""
    if old is None:
        return report
    ran = {row["name"] for row in report["race"]}
    rows = [row for row in old.get("race", []) if row["name"] not in ran]
    parts = [part for part in PARTS[1:] if not report.get(part) and old.get(part)]
    place = {fit.name: i for i, fit in enumerate(FITS)}
    race = sorted(report["race"] + rows, key=lambda row: place.get(row["name"], len(place)))
    kept = [*dict.fromkeys(row["name"] for row in rows), *parts]
    return {**report, **{part: old[part] for part in parts}, "race": race, "kept": kept}


def main(arguments=None):
    options = parse(arguments)
    path = options.json or (HERE / "fits.json" if options.write else None)
    known = options.write and path.exists()
    report = run(options, path, json.loads(path.read_text()) if known else None)
    if options.write:
        refresh(HERE / "README.md", markdown(report), "fits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
