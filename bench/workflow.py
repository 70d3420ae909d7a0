"""Select features, then fit naive Bayes, under one budget; and how fast features are counted.

python bench/workflow.py                    # SMS spam, ten folds, and the counting of two tables
python bench/workflow.py --parts accuracy --repeats 5
python bench/workflow.py --write            # refresh bench/README.md and bench/workflow.json

Accuracies are means over folds and repeats, and half the width of their 95 % interval by Student's
t. Folds overlap in their training data, so that interval is a rough one. Seeded fits are for
benchmarks: they are not private, and nor are scores of a cross-validation.
"""

import argparse
import csv
import datetime
import gzip
import os
import sys
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold
from sklearn.naive_bayes import BernoulliNB as Plain
from sklearn.pipeline import Pipeline

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from bench.trials import interval  # noqa: E402
from privfit import BernoulliNB, HashWords, Ledger, SelectFeatures  # noqa: E402
from privfit.records.binary import BinaryRecords  # noqa: E402

PARTS = ("accuracy", "counting")
EPSILON, FEATURES, MOST = 1.0, 8192, 20
SHARE, KEPT = 0.75, 3  # of epsilon for the selection; of the selected features, ones a message
SIZES = ((5_574, 8_192), (1_000_000, 32_768))
ONES = 20


# ----------------------------------------------------------------------------------------- accuracy


@lru_cache(maxsize=1)
def messages():
    """Binary features (5574, 8192) of the messages, and whether each is spam."""
    folder = Path(os.environ.get("PRIVFIT_DATA", HERE.parents[1] / "shared" / "data"))
    with gzip.open(folder / "sms_spam.csv.gz", "rt", encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    y = np.array([label == "spam" for label, _ in rows]).astype(np.int64)
    return HashWords(FEATURES).transform([text for _, text in rows]), y


def selected(seed, k=8, share=SHARE, epsilon=EPSILON, delta=0.0, adjacency="add_remove", **options):
    """Selection and naive Bayes on one ledger."""
    common = {"classes": [0, 1], "adjacency": adjacency, "ledger": Ledger(epsilon, delta),
              "random_state": seed}  # fmt: skip
    first = share * epsilon, share * delta
    second = epsilon - first[0], delta - first[1]  # no rounding beyond the ledger's whole
    return Pipeline([
        ("select", SelectFeatures(*first, k=k, max_ones=MOST, **options, **common)),
        ("bayes", BernoulliNB(*second, max_ones=KEPT, **common)),
    ])  # fmt: skip


def everything(seed, epsilon=EPSILON, delta=0.0, adjacency="add_remove"):
    """Naive Bayes on all features."""
    return BernoulliNB(
        epsilon, delta, max_ones=MOST, classes=[0, 1], adjacency=adjacency, random_state=seed
    )


class Majority:
    """The most frequent class."""

    def fit(self, X, y):
        self.answer = y.mean() > 0.5
        return self

    def score(self, X, y):
        return float(np.mean(y == self.answer))


MODELS = {
    "not private, all features": lambda seed: Plain(),
    "most frequent class": lambda seed: Majority(),
    "no selection": everything,
    "selection, our defaults": selected,
    "k = 4": lambda seed: selected(seed, k=4),
    "k = 12": lambda seed: selected(seed, k=12),
    "half of epsilon each": lambda seed: selected(seed, share=0.5),
    "difference count": lambda seed: selected(seed, criterion="difference_count"),
    "information gain": lambda seed: selected(seed, criterion="information_gain", n_public=5000),
    "total count": lambda seed: selected(seed, criterion="total_count"),
    "clusters of counts": lambda seed: selected(seed, solver="clusters"),
    "noise on all scores": lambda seed: selected(seed, solver="noisy"),
    "selection, epsilon 0.5": lambda seed: selected(seed, epsilon=0.5),
    "no selection, epsilon 0.5": lambda seed: everything(seed, 0.5),
}


QUICK = ("not private, all features", "selection, our defaults")


def fold(seed):
    """Messages and labels to train on and to test on: fold `seed % 10` of shuffle `seed // 10`."""
    X, y = messages()
    shuffle, number = divmod(seed, 10)
    train, test = list(KFold(10, shuffle=True, random_state=shuffle).split(X))[number]
    return X[train], y[train], X[test], y[test]


def fold_accuracy(make, seed):
    """Accuracy on one fold."""
    X, y, X_test, y_test = fold(seed)
    return float(make(seed).fit(X, y).score(X_test, y_test))


def measure_accuracy(repeats, models=tuple(MODELS), folds=10):
    for name in models:
        make = MODELS[name]
        start = time.perf_counter()
        found = [fold_accuracy(make, seed) for seed in range(folds * repeats)]
        mean, half = interval(found)
        seconds = (time.perf_counter() - start) / len(found)
        print(f"{name:<28}{mean:.4f} +- {half:.4f}  {seconds:.3f} s a fold", flush=True)
        yield {"model": name, "mean": mean, "half": half, "seconds": seconds}


# ----------------------------------------------------------------------------------------- counting


def labelled_table(n, d):
    """n records with 20 ones of d features, and labels of which 13 % are 1."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, d, (n, ONES), dtype=np.int32), axis=1)
    X = sp.csr_array((np.ones(n * ONES), columns.ravel(), np.arange(0, n * ONES + 1, ONES)),
                     shape=(n, d))  # fmt: skip
    X.sum_duplicates()
    X.data[:] = 1
    return X, (rng.random(n) < 0.13).astype(np.int32)


def best_times(calls, rounds):
    """The shortest time of each call, in rounds that take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def measure_counting(rounds, sizes=SIZES):
    """SciPy's products with dense and with sparse labels, against one pass over packed records."""
    for n, d in sizes:
        X, y = labelled_table(n, d)
        dense = np.stack([1.0 - y, y], axis=1)
        labels, records = sp.csr_array(dense), BinaryRecords.of(X, y, 2)
        assert np.array_equal(records.counts().ones, (X.T @ dense).T)
        best = best_times({
            "X.T @ dense": lambda X=X, Y=dense: X.T @ Y,
            "dense.T @ X": lambda X=X, Y=dense: Y.T @ X,
            "pack": lambda X=X, y=y: BinaryRecords.of(X, y, 2),
            "count, 1 thread": BinaryRecords.of(X, y, 2, n_threads=1).counts,
            "count, 2 threads": BinaryRecords.of(X, y, 2, n_threads=2).counts,
        }, rounds)  # fmt: skip
        best |= best_times({"sparse.T @ X": lambda X=X, Y=labels: Y.T @ X}, 1)
        shown = ", ".join(f"{name} {1e3 * value:.3f}" for name, value in best.items())
        print(f"{n} x {d}, ms: {shown}", flush=True)
        yield {"n": n, "d": d, "seconds": best}


# ------------------------------------------------------------------------------------- command line


def markdown(report):
    if "accuracy" in report:
        yield f"SMS spam, {report['repeats']} x 10 folds, 8,192 hashed features, at most 20 per"
        yield "message; total epsilon 1 by default, add_remove, delta 0."
        yield ""
        yield from table_lines(["model", "accuracy"], (
            [row["model"], f"{row['mean']:.4f} +- {row['half']:.4f}"] for row in report["accuracy"]
        ))  # fmt: skip
        yield ""
    if "counting" in report:
        names = list(report["counting"][0]["seconds"])
        rows = []
        for row in report["counting"]:
            times = (f"{1e3 * row['seconds'][name]:.3g}" for name in names)
            rows.append([f"{row['n']:,} x {row['d']:,}", *times])
        yield from table_lines(["counting, ms", *names], rows)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default=",".join(PARTS), metavar="A,B", help=f"of {', '.join(PARTS)}")
    add("--repeats", type=int, default=1, help="of the ten folds; default 1")
    add("--rounds", type=int, default=9, help="of timed calls; default 9")
    add("--write", action="store_true", help="refresh bench/workflow.json and bench/README.md")
    add("--quick", action="store_true", help="two models, two folds, small tables: does it run?")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        raise SystemExit(f"--parts {options.parts!r} must be of {', '.join(PARTS)}")
    report = {"date": datetime.date.today().isoformat(), "privfit": privfit.__version__,
              "repeats": options.repeats}  # fmt: skip
    models, folds, sizes = (QUICK, 2, SIZES[:1]) if options.quick else (tuple(MODELS), 10, SIZES)
    measures = {
        "accuracy": lambda: measure_accuracy(options.repeats, models, folds),
        "counting": lambda: measure_counting(options.rounds, sizes),
    }
    for part in parts:
        report[part] = []
        for row in measures[part]():
            report[part].append(row)
            keep(HERE / "workflow.json" if options.write else None, report)
    if options.write:
        refresh(HERE / "README.md", "\n".join(markdown(report)) + "\n", "workflow")
    return 0


if __name__ == "__main__":
    sys.exit(main())
