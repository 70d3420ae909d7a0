"""The chain over synthetic data sets: its speed, and what it does for noisy Lloyd.

python bench/chain.py --speed               # steps a second, and against a loop in Python
python bench/chain.py --claim --seeds 10    # within-cluster sums of squares against noisy Lloyd
python bench/chain.py --speed --claim --write       # refresh bench/README.md and chain.json
python bench/chain.py --plot figure.png             # the paper's figure, from chain.json

The claim is that of Lee and Kifer: records in the L1 ball, T = 5, chain 30,000 ("anneal" has its
default length, "anneal, short" 30,000). Ratios are of means over seeds; below 1 the post-processing
helps. "released centres" is ordinary k-means on all centres that noisy Lloyd released, which is
post-processing too; "consistent" are the last means after the linear program.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

from bench import datasets  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.plain_chain import PlainChain  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from privfit import CentersObjective, DiscreteLaplace, L1Ball  # noqa: E402
from privfit.clustering.postprocess import CHUNK, LloydTrace, consistent, kmeans, mcmc  # noqa: E402

EPSILONS = (0.05, 0.1, 0.3162, 1.0)
T = 5

# Name: clusters, columns, and their declared ranges (those of the file where None).
DATA = {
    "s1": (15, ("x", "y"), None),
    "gowalla_pois": (5, ("latitude", "longitude"), ((-90, 90), (-180, 180))),
    "adult": (5, ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss",
                  "hours-per-week"), None),
    "image_house_rgb": (3, ("r", "g", "b"), ((0, 255),) * 3),
    "lifesci": (3, None, None),
}  # fmt: skip


def records(name):
    """Records scaled to [-1, 1], and the number of clusters."""
    k, columns, ranges = DATA[name]
    table = datasets._read(name)
    columns = columns or [column for column in table if column != "label"]
    X = np.column_stack([np.array(table[column], dtype=np.float64) for column in columns])
    low, high = (X.min(axis=0), X.max(axis=0)) if ranges is None else np.array(ranges).T
    return (2 * X - low - high) / (high - low), k


# ------------------------------------------------------------------------------------- noisy Lloyd


def starts(k, d, rng):
    """Centres in the L1 ball, drawn without looking at the data: the best spread of 50 sets."""
    signs = rng.choice([-1, 1], (50, k, d))
    parts = rng.exponential(size=(50, k, d + 1))
    sets = signs * parts[..., :d] / parts.sum(axis=2, keepdims=True)
    gaps = np.abs(sets[:, :, None] - sets[:, None]).sum(axis=3)
    gaps[:, np.arange(k), np.arange(k)] = np.inf
    return sets[gaps.min(axis=(1, 2)).argmax()]


def noisy_lloyd(objective, start, epsilon, rng):
    """T iterations, epsilon-DP if records are added or removed; the trace, and the last centres.

    Each iteration releases counts and sums at epsilon / T; in the L1 ball a record changes a count
    by 1 and a sum by at most 1 in l1.
    """
    unit = objective.unit**0.5
    one = round(1 / unit)
    noise = DiscreteLaplace(epsilon / T, 2 * one)
    centers, parts = np.asarray(objective.snap(start[None]))[0], []
    for _ in range(T):
        counts, sums = objective.lloyd(centers)
        exact = np.concatenate([counts[:, None] * one, sums], axis=1)
        noisy = np.asarray(noise(exact, rng)) * unit
        parts.append((centers, noisy[:, 0], noisy[:, 1:]))
        means = noisy[:, 1:] / np.maximum(noisy[:, :1], 1.0)
        means /= np.maximum(np.abs(means).sum(axis=1, keepdims=True), 1.0)
        centers = np.asarray(objective.snap(means[None]))[0]
    used, counts, sums = (np.stack(part) for part in zip(*parts, strict=True))
    d = used.shape[2]
    scale = 2 * T / epsilon
    trace = LloydTrace(
        used, counts, sums, scale, scale, -np.ones(d), np.ones(d), "laplace", "l1", 1.0
    )
    return trace, centers


def wcss(objective, centers):
    """The sum over records of squared distances to the nearest centre."""
    return -float(objective.scores(objective.snap(centers[None]))[0]) * objective.unit


def released_centers(trace, last, k, seed):
    """Ordinary k-means on every centre that was released after the first, data-free ones."""
    points = np.rint(np.concatenate([*trace.centroids[1:], last]) * 2**13).astype(np.int16)
    return kmeans(points, k, 20, np.random.default_rng(seed)) / 2**13


def consistent_centers(trace):
    """The means of the last iteration after the linear program."""
    near = consistent(trace)
    means = near.sums[-1] / np.maximum(near.counts[-1], 1.0)[:, None]
    return means / np.maximum(np.abs(means).sum(axis=1, keepdims=True), 1.0)


def claim(names, epsilons, seeds, steps, path=None):
    """{(name, epsilon): {method: mean of the sums of squares}}, the methods and plain Lloyd.

    What is found is kept at `path` as it comes.
    """
    table = {}
    for name in names:
        X, k = records(name)
        objective = CentersObjective(X, k, L1Ball(1.0), n_threads=1)
        for epsilon in epsilons:
            costs = {}
            for seed in range(seeds):
                rng = np.random.default_rng([seed, 7])
                trace, last = noisy_lloyd(objective, starts(k, X.shape[1], rng), epsilon, rng)
                found = {
                    "noisy Lloyd": last,
                    "mcmc": mcmc(trace, k, steps=steps, rng=seed).centers,
                    "anneal": mcmc(trace, k, rng=seed, anneal=True).centers,
                    "anneal, short": mcmc(trace, k, steps=steps, rng=seed, anneal=True).centers,
                    "released centres": released_centers(trace, last, k, seed),
                    "consistent": consistent_centers(trace),
                }
                for method, centers in found.items():
                    costs.setdefault(method, []).append(wcss(objective, centers))
            table[name, epsilon] = {method: float(np.mean(each)) for method, each in costs.items()}
            plain = table[name, epsilon]["noisy Lloyd"]
            row = "  ".join(f"{m} {v / plain:.2f}" for m, v in table[name, epsilon].items())
            print(f"{name:16} epsilon {epsilon:<7} {row}", flush=True)
            rows = [{"data": data, "epsilon": e, **costs} for (data, e), costs in table.items()]
            keep(path, {"seeds": seeds, "sums_of_squares": rows})
    return table


def ratio_lines(table):
    """A row a data set and method: sums of squares over those of plain noisy Lloyd."""
    methods = [method for method in next(iter(table.values())) if method != "noisy Lloyd"]
    epsilons = sorted({epsilon for _, epsilon in table})
    rows = []
    for name in dict.fromkeys(name for name, _ in table):
        for method in methods:
            cells = [table[name, e][method] / table[name, e]["noisy Lloyd"] for e in epsilons]
            rows.append([name, method, *(f"{cell:.2f}" for cell in cells)])
    yield from table_lines(["data", "method", *(f"epsilon {e:g}" for e in epsilons)], rows)


def plot(table, path):
    """The paper's figure: the sum of squares by epsilon, one panel a data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(name for name, _ in table))
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4))
    for axis, name in zip(axes.flat, names, strict=False):
        epsilons = sorted(epsilon for other, epsilon in table if other == name)
        for method in table[name, epsilons[0]]:
            axis.plot(epsilons, [table[name, e][method] for e in epsilons], "o-", label=method)
        axis.set(title=name, xlabel="epsilon", xscale="log")
        axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axis.minorticks_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("within-cluster sum of squares")
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    axes.flat[-1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
    figure.tight_layout()
    figure.savefig(path, dpi=75, metadata={"Software": None})


# ------------------------------------------------------------------------------------------- speed


def blobs_trace(n, d, k, epsilon=0.5, seed=0):
    """What noisy Lloyd releases of n records in k clusters."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-0.8, 0.8, (k, d)) / d
    X = middles[rng.integers(k, size=n)] + rng.normal(0, 0.1 / d, (n, d))
    objective = CentersObjective(X, k, L1Ball(1.0), n_threads=1)
    return noisy_lloyd(objective, middles, epsilon, rng)[0]


class Race:
    """Called by `mcmc` after each chunk of its steps: then the loop in Python makes some, too."""

    STEPS = 1_000  # of the loop

    def __init__(self, plain):
        self.plain_chain, self.ours, self.plain = plain, [], []
        self.begin = time.thread_time()

    def __call__(self, _):
        now = time.thread_time()
        self.ours.append(now - self.begin)  # the first has all that comes before the walk
        self.plain_chain.walk(self.STEPS)
        self.begin = time.thread_time()
        self.plain.append(self.begin - now)


def speed(repeat):
    """Interleaved: the chain on 30,000 records, and the same walk in Python; best of `repeat`.

    Seconds are those of the thread on its core, as both sides use one. A step costs the loop the
    same on fewer records, and it takes long to set up many.
    """
    rows = []
    for d, k in ((2, 5), (2, 15), (3, 5), (3, 15), (4, 5), (4, 15), (10, 5), (10, 15)):
        trace = blobs_trace(30_000, d, k)
        race = Race(PlainChain(trace, 1_000, 1))
        done = mcmc(trace, k, steps=(repeat + 1) * CHUNK, rng=1, n_init=1, callback=race)
        rate, plain_rate = CHUNK / min(race.ours[1:]), Race.STEPS / min(race.plain)
        rows.append([d, k, f"{rate / 1e6:.1f}", f"{plain_rate:,.0f}", f"{rate / plain_rate:,.0f}",
                     f"{done.accepted / done.steps:.2f}"])  # fmt: skip
        print(*rows[-1], file=sys.stderr, flush=True)
    header = [
        "d",
        "k",
        "million steps per second",
        "Python loop, steps per second",
        "ratio",
        "accepted",
    ]
    yield from table_lines(header, [[str(cell) for cell in row] for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--speed", action="store_true", help="steps a second")
    add("--claim", action="store_true", help="ratios to noisy Lloyd")
    add("--data", default=",".join(DATA), help="names, with commas between")
    add("--epsilons", default=",".join(map(str, EPSILONS)))
    add("--seeds", type=int, default=10)
    add("--steps", type=int, default=30_000)
    add("--repeat", type=int, default=15)
    add("--plot", help="file of the figure")
    add("--write", action="store_true", help="refresh bench/README.md")
    options = parser.parse_args()
    if options.speed:
        lines = list(speed(options.repeat))
        publish(lines, "chain speed", options.write)
    if options.claim:
        epsilons = [float(part) for part in options.epsilons.split(",")]
        path = HERE / "chain.json" if options.write else None
        table = claim(options.data.split(","), epsilons, options.seeds, options.steps, path)
        lines = [f"{options.seeds} seeds.", "", *ratio_lines(table)]
        publish(lines, "chain claim", options.write)
    if options.plot:
        rows = json.loads((HERE / "chain.json").read_text())["sums_of_squares"]
        plot({(row.pop("data"), row.pop("epsilon")): row for row in rows}, options.plot)


def publish(lines, marker, write):
    text = "\n".join(lines) + "\n"
    print(text)
    if write:
        refresh(HERE / "README.md", text, marker)


if __name__ == "__main__":
    main()
