"""Private ROC curves: their distance from the true ones on sms_spam, and their speed.

python bench/roc.py                 # both, about a minute
python bench/roc.py --runs 100
python bench/roc.py --write         # refresh bench/README.md and bench/roc.json

Distance: the area between the curves, |true positive rate - true one| averaged over the false
positive rate; median over runs, each on a split of its own, of 558 test messages. Classifiers are
scikit-learn's, not private, on 8,192 hashed words, at most 20 a message. One learns from 60
messages alone, one sees 400 words drawn at random, so that half of its scores are equal. "1 - area"
is the distance of a perfect classifier's curve: what a guess without any data would do here.
"""

import argparse
import re
import sys
import time
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve as exact_curve
from sklearn.naive_bayes import BernoulliNB

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from bench import datasets, machine  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from privfit import roc_curve  # noqa: E402
from privfit.evaluation.roc import exact_roc  # noqa: E402

LIMITS = {1.0: 0.023, 0.5: 0.029, 0.25: 0.054, 0.1: 0.092}  # the 2014 paper's Table 1
TEST = 558
AT = (np.arange(4000) + 0.5) / 4000
MODELS = {
    "BernoulliNB": (BernoulliNB, 8192, 5016),
    "LogisticRegression": (LogisticRegression, 8192, 5016),
    "LogisticRegression, 60 messages": (LogisticRegression, 8192, 60),
    "BernoulliNB, 400 words": (BernoulliNB, 400, 5016),
}  # the model, how many words it sees, and from how many messages it learns
WAYS = {
    "default": {},
    "no smoothing": {"smooth": False},
    "medians, wavelet": {"thresholds": "medians", "levels": 4, "noise": "wavelet"},
}


@lru_cache(maxsize=1)
def messages():
    """Hashed words (n, 8192) and labels."""
    table = datasets._read("sms_spam")
    words = [
        sorted({zlib.crc32(word.encode()) % 8192 for word in re.findall(r"\w+", text.lower())})[:20]
        for text in table["text"]
    ]
    starts = np.cumsum([0, *map(len, words)])
    X = sp.csr_matrix((np.ones(starts[-1]), np.concatenate(words), starts), (len(words), 8192))
    return X, np.array(table["label"]) == "spam"


@lru_cache(maxsize=64)
def tested(name, seed):
    """Labels, scores and the true curve of a classifier's test set."""
    (X, y), (make, words, learns) = messages(), MODELS[name]
    rng = np.random.default_rng(seed)
    order, some = rng.permutation(len(y)), rng.choice(X.shape[1], words, replace=False)
    test, train = order[:TEST], order[TEST : TEST + learns]
    model = make().fit(X[train][:, some], y[train])
    score = model.predict_proba(X[test][:, some])[:, 1]
    return y[test], score, np.interp(AT, *exact_roc(y[test], score))


def distance(name, way, epsilon, delta, adjacency, seed):
    """The area between the true curve of a test set and a private one."""
    labels, score, true = tested(name, seed)
    curve = roc_curve(
        labels, score, epsilon, delta, adjacency=adjacency, n_public=TEST, random_state=seed,
        **WAYS[way],
    )  # fmt: skip
    return float(np.abs(np.interp(AT, curve.fpr, curve.tpr) - true).mean())


def distances(runs):
    """One row for each classifier, adjacency and way: medians at each epsilon."""
    for name in MODELS:
        perfect = float(np.median([1 - tested(name, seed)[2].mean() for seed in range(runs)]))
        for adjacency in ("add_remove", "replace"):
            for way in WAYS:
                row = {"classifier": name, "perfect": perfect, "adjacency": adjacency, "way": way}
                for epsilon in LIMITS:
                    found = (distance(name, way, epsilon, 0.0, adjacency, s) for s in range(runs))
                    row[str(epsilon)] = float(np.median(list(found)))
                print(row, flush=True)
                yield row


def speed(n=1_000_000, repeat=7):
    """Best seconds of scikit-learn's exact curve and of ours, interleaved."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    score = np.clip(rng.normal(0.4 + 0.2 * y, 0.15), 0, 1)
    theirs, ours = [], []
    for _ in range(repeat):
        for run, taken in ((lambda: exact_curve(y, score), theirs),
                           (lambda: roc_curve(y, score, 1.0), ours)):  # fmt: skip
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return {"n": n, "scikit-learn": min(theirs), "privfit": min(ours)}


def markdown(report):
    """The generated part of README.md."""
    facts = "; ".join(f"{name} {value}" for name, value in report["machine"].items())
    header = [
        "classifier",
        "1 - area",
        "adjacency",
        "way",
        *(f"epsilon {epsilon:g}" for epsilon in LIMITS),
    ]
    rows = [["paper's best", "", "", "", *map(str, LIMITS.values())]]
    for row in report["distances"]:
        found = (f"{row[str(epsilon)]:.3f}" for epsilon in LIMITS)
        rows.append(
            [row["classifier"], f"{row['perfect']:.3f}", row["adjacency"], row["way"], *found]
        )
    taken = report["speed"]
    lines = [
        f"Median of {report['runs']} runs. Machine: {facts}.", "", *table_lines(header, rows), "",
        f"{taken['n']:,} scores: scikit-learn's exact `roc_curve` {taken['scikit-learn'] * 1e3:.0f}"
        f" ms, ours {taken['privfit'] * 1e3:.0f} ms.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40, help="splits of the data; default 40")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the speed")
    parser.add_argument("--write", action="store_true", help="refresh README.md and roc.json")
    options = parser.parse_args(arguments)
    path = HERE / "roc.json" if options.write else None
    report = {
        "runs": options.runs,
        "machine": machine.describe(),
        "speed": speed(options.records),
        "distances": [],
    }
    for row in distances(options.runs):
        report["distances"].append(row)
        keep(path, report)
    print(markdown(report))
    if options.write:
        refresh(HERE / "README.md", markdown(report), "roc")
    return 0


if __name__ == "__main__":
    sys.exit(main())
