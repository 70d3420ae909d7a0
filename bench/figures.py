"""Draw the figures of docs/plotting.md from generated records; nothing in them is private.

python bench/figures.py            # into docs/figures
python bench/figures.py --out .    # elsewhere
"""

import argparse
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

from privfit import Budget, Event, KMeans, Ledger, LogisticRegression, roc_curve, sweep  # noqa: E402
from privfit.report.plotting import (  # noqa: E402
    draw_budget,
    draw_clusters,
    draw_composition,
    draw_roc,
    draw_sweep,
    save_figure,
)

DELTA = 1e-6


def labelled(n, seed):
    """Records (n, 5) in [-1, 1], and noisy labels of a linear rule."""
    coins = np.random.default_rng(seed)
    X = coins.uniform(-1, 1, (n, 5))
    y = X @ [1.0, -1.0, 0.5, 0.25, 0.0] + coins.normal(0, 0.4, n) > 0.5
    return X, y.astype(int)


def model(epsilon=1.0, **options):
    return LogisticRegression(epsilon, DELTA, domain=(-1, 1), classes=[0, 1], **options)


def accuracy():
    X, y = labelled(4000, 0)
    epsilons = [0.03, 0.1, 0.3, 1.0, 3.0]
    return draw_sweep(
        {
            solver: sweep(model(solver=solver), X, y, epsilons, public=True, seeds=8)
            for solver in ("local", "gradient", "objective")
        }
    )


def roc():
    X, y = labelled(6000, 1)
    fitted = model(random_state=0).fit(X[:5000], y[:5000])
    score = fitted.predict_proba(X[5000:])[:, 1]
    return draw_roc(
        {f"epsilon {e:g}": roc_curve(y[5000:], score, e, random_state=0) for e in (1.0, 0.1)}
    )


def clusters():
    coins = np.random.default_rng(2)
    middles = coins.uniform(-0.85, 0.85, (7, 2))
    X = np.clip(middles[coins.integers(7, size=8000)] + coins.normal(0, 0.07, (8000, 2)), -1, 1)
    fitted = KMeans(7, 1.0, domain=(-1, 1), random_state=0).fit(X)
    return draw_clusters(fitted, public_points=X[:400])


def run():
    X, y = labelled(4000, 3)
    return draw_budget(model(random_state=0).fit(X, y))


def ledger():
    X, y = labelled(6000, 4)
    book = Ledger(2.0, 2e-6)
    KMeans(3, 0.25, domain=(-1, 1), ledger=book).fit(X)
    with book.group("train"):
        fitted = model(1.0, ledger=book).fit(X[:5000], y[:5000])
    with book.group("test"):
        score = fitted.predict_proba(X[5000:])[:, 1]
        roc_curve(y[5000:], score, 0.5, ledger=book)
    return draw_budget(book)


def composition():
    return draw_composition(Event("selection", 0.0625, 150), Budget(1.0, DELTA))


FIGURES = {"accuracy": accuracy, "roc": roc, "clusters": clusters, "run": run, "ledger": ledger,
           "composition": composition}  # fmt: skip


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = HERE.parent / "docs" / "figures"
    parser.add_argument("--out", type=Path, default=folder, help="folder; default docs/figures")
    options = parser.parse_args(arguments)
    for name, draw in FIGURES.items():
        path = options.out / f"{name}.png"
        save_figure(draw(), path, dpi=90)
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
