"""How records in parts compare with records in memory, and what the largest run takes.

python bench/scale.py                # streaming, Dask and partitions at 2,000,000 rows
python bench/scale.py --only large   # 20,000,000 x 50 float32 with memory_limit="1GB", measured
python bench/scale.py --only same    # 2,000,000 rows: the same releases wherever they lie?
python bench/scale.py --write        # refresh bench/scale.json and bench/README.md

Times are the best of interleaved rounds, wall and CPU: on a busy machine the latter is the one to
compare. The large run writes 4 GB and a cache of 2 GB to `--folder`, and removes them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

from bench import machine  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from privfit import Box, LinearObjective, LogisticRegression, Stream  # noqa: E402

DOMAIN = Box(-1, 1)
D = 50
POPULATION = 200


def table(rows, first=0):
    """Uniform float32 records and labels of a noisy line; the same rows wherever they are made."""
    rng = np.random.default_rng(first)
    X = rng.random((rows, D), dtype=np.float32) * 2 - 1
    return X, (X[:, 0] - X[:, 1] + rng.normal(0, 0.3, rows) > 0).astype(np.int8)


def over(X, y, n_threads=None):
    return LinearObjective(X, y, "logistic", DOMAIN, n_threads=n_threads)


def race(runners, rounds, busy=time.process_time):
    """{name: (wall, cpu)}: the best seconds of each call over interleaved rounds.

    The first of two calls goes uncounted: fits ask the same records again and again, and threads of
    the runner before may still be spinning.
    """
    best = dict.fromkeys(runners, (np.inf, np.inf))
    clock = min(-busy() + busy() for _ in range(20))  # asking workers for theirs takes some itself
    for _ in range(rounds):
        for name, run in runners.items():
            run()
            cpu, wall = busy(), time.perf_counter()
            run()
            took = time.perf_counter() - wall, busy() - cpu - clock
            best[name] = tuple(map(min, best[name], took))
    return best


def questions(objective):
    """A population and a gradient, as searches and descents ask for them."""
    P = DOMAIN.bind(D).candidates(POPULATION, np.random.default_rng(1))
    return {
        "scores": lambda: objective.scores(P),
        "gradient": lambda: objective.gradient(P[0], 0.5),
    }


def compare(objectives, rounds, busy=time.process_time):
    """Times of each question for each named objective, and ratios to the first one."""
    rows = []
    for question in ("scores", "gradient"):
        runners = {name: questions(one)[question] for name, one in objectives.items()}
        best = race(runners, rounds, busy)
        base = best[next(iter(runners))]
        for name, (wall, cpu) in best.items():
            rows.append({"question": question, "where": name, "wall": wall, "cpu": cpu,
                         "wall_ratio": wall / base[0], "cpu_ratio": cpu / base[1]})  # fmt: skip
            print(f"{question:9} {name:24} {wall:8.4f} s  cpu {cpu:8.4f} s  "
                  f"{wall / base[0]:5.2f}x  cpu {cpu / base[1]:5.2f}x")  # fmt: skip
    return rows


def streaming(rows, rounds):
    X, y = table(rows)
    objectives = {"memory": LinearObjective(X, y, "logistic", DOMAIN)}
    for limit in ("2GB", "128MB"):  # all of it stays; all of it is read again
        objectives[f"stream {limit}"] = over(Stream(X, memory_limit=limit), y)
    return compare(objectives, rounds)


def growing(rows, rounds):
    """The same questions of a half, a quarter and an eighth of the rows, streamed with no room."""
    X, y = table(rows)
    found = []
    for count in (rows // 8, rows // 4, rows // 2, rows):
        objective = over(Stream(X[:count], memory_limit="128MB"), y[:count])
        for question, (wall, cpu) in race(questions(objective), rounds).items():
            found.append({"question": question, "rows": count, "wall": wall, "cpu": cpu})
            print(
                f"{question:9} {count:9} rows {wall:8.4f} s  cpu {1e9 * cpu / count:6.1f} ns a row"
            )
    return found


def _rows_of_file(path, first, last):
    return np.load(path, mmap_mode="r")[first:last]


def _delayed(folder, rows, partitions):
    from dask import delayed

    load, step = delayed(_rows_of_file), -(-rows // partitions)
    return tuple(
        [load(str(folder / name), first, first + step) for first in range(0, rows, step)]
        for name in ("X.npy", "y.npy")
    )


def on_dask(rows, rounds, partitions=(2, 100, 1000)):
    """Two workers of one thread against two threads, and the same rows in many partitions."""
    from distributed import Client, LocalCluster

    X, y = table(rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        objectives = {"memory, 2 threads": LinearObjective(X, y, "logistic", DOMAIN, n_threads=2)}
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):

            def busy():  # of the driver and of both workers
                return time.process_time() + sum(client.run(time.process_time).values())

            for count in partitions:
                objectives[f"dask, {count} partitions"] = over(*_delayed(folder, rows, count))
            found = compare(objectives, rounds, busy)
            few = questions(over(*_delayed(folder, 2000, 2)))["gradient"]
            wall, cpu = race({"few": few}, 20 * rounds, busy)["few"]
            print(f"a question of 2,000 rows: {wall:.4f} s  cpu {cpu:.4f} s")
            return [*found, {"question": "of 2,000 rows", "wall": wall, "cpu": cpu}]


# ---------------------------------------------------------------------------------- the largest run


def write_table(folder, rows, block=1_000_000):
    """X.npy (rows, D) float32 and y.npy, written block by block."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (rows, D))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, (rows,))
    for first in range(0, rows, block):
        count = min(block, rows - first)
        X[first : first + count], y[first : first + count] = table(count, first)


def fit_large(folder, limit):
    """Fit, and print what it took: run in a process of its own."""
    before, blocks = time.perf_counter(), []
    stream = Stream(folder / "X.npy", memory_limit=limit, folder=folder,
                    progress=lambda n: blocks.append(time.perf_counter()))  # fmt: skip
    model = LogisticRegression(
        1.0, 1e-9, domain=DOMAIN, classes=[0, 1], solver="gradient", random_state=0
    )
    model.fit(stream, folder / "y.npy")
    end = time.perf_counter()
    # Of this program alone; ru_maxrss remembers the one that started it.
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    print(json.dumps({
        "seconds": end - before, "packing": blocks[-1] - before, "blocks": len(blocks),
        "peak_rss": peak, "first_weights": model.coef_[0, :2].tolist(),
    }))  # fmt: skip


def large(rows, limit, folder):
    with tempfile.TemporaryDirectory(dir=folder) as name:
        write_table(Path(name), rows)
        script = (
            "from pathlib import Path; from bench import scale; "
            f"scale.fit_large(Path({name!r}), {limit!r})"
        )
        path = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=path
        )
    found = {"rows": rows, "limit": limit, **json.loads(done.stdout)}
    print(found)
    return found


# ------------------------------------------------------------------------------- the same releases

FITS = {"gradient": 1e-9, "objective": 0.0, "local": 0.0}  # solvers, and their delta


def same(rows):
    """{solver: {where: whether the release is that of memory}}."""
    import pyarrow
    from distributed import Client, LocalCluster
    from pyarrow import parquet

    X, y = table(rows)
    found = {solver: {} for solver in FITS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        columns = {f"x{j:02}": X[:, j] for j in range(D)} | {"y": y}
        parquet.write_table(pyarrow.table(columns), folder / "X.parquet", row_group_size=1 << 18)
        once = {solver: release(solver, X, y) for solver in FITS}

        def compare_with(where, X, y):
            for solver in FITS:
                found[solver][where] = release(solver, X, y) == once[solver]
                print(f"{solver:9} {where:16} {found[solver][where]}", flush=True)

        compare_with("memory-mapped", Stream(folder / "X.npy", memory_limit="256MB"), y)
        compare_with("parquet", Stream(folder / "X.parquet", memory_limit="512MB"), "y")
        for count in (1, 2, 4):
            with (
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as made,
                Client(made),
            ):
                compare_with(f"dask, {count} workers", *_delayed(folder, rows, 37))
    return found


def release(solver, X, y):
    """All that a fit with a fixed seed gives away."""
    model = LogisticRegression(
        1.0, FITS[solver], domain=DOMAIN, classes=[0, 1], solver=solver, random_state=0
    )
    return model.fit(X, y).release_.to_json()


# ---------------------------------------------------------------------------------------- reporting


def markdown(found):
    """The generated part of README.md."""
    rows = [
        [part, row["question"], row["where"], f"{1e3 * row['wall']:.0f}",
         f"{row['wall_ratio']:.2f}x", f"{row['cpu_ratio']:.2f}x"]
        for part in ("streaming", "dask")
        for row in found[part]["found"] if "where" in row
    ]  # fmt: skip
    lines = [f"{found['dask']['rows']:,} x {D} records; ratios to memory.", ""]
    lines += table_lines(["part", "question", "where", "wall ms", "wall ratio", "CPU ratio"], rows)
    grown = [
        [row["question"], f"{row['rows']:,}", f"{1e3 * row['wall']:.0f}",
         f"{1e9 * row['cpu'] / row['rows']:.0f}"]
        for row in found["growing"]["found"]
    ]  # fmt: skip
    lines += ["", "Streamed from disk, nothing kept in memory:", ""]
    lines += table_lines(["question", "rows", "wall ms", "CPU ns a row"], grown)
    large = found["large"]
    lines += ["", f"{large['rows']:,} x {D} float32, memory_limit {large['limit']}: peak resident "
              f"memory {large['peak_rss'] / 1e6:.0f} MB, {large['seconds']:.0f} s, of which "
              f"{large['packing']:.0f} s packing."]  # fmt: skip
    told = [f"{solver}: {', '.join(where)}" if all(where.values()) else f"{solver}: differs"
            for solver, where in found["same"]["found"].items()]  # fmt: skip
    lines += ["", f"The same release as in memory, bit for bit, of {found['same']['rows']:,} rows: "
              + "; ".join(told) + "."]  # fmt: skip
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--rows", type=int, default=2_000_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--only", nargs="+", default=["streaming", "growing", "dask"])
    arguments.add_argument("--large-rows", type=int, default=20_000_000)
    arguments.add_argument("--memory-limit", default="1GB")
    arguments.add_argument("--folder", default=None)
    arguments.add_argument("--write", action="store_true")
    asked = arguments.parse_args()
    path = HERE / "scale.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    rows, rounds = asked.rows, asked.rounds
    measures = {
        "large": lambda: large(asked.large_rows, asked.memory_limit, asked.folder),
        "same": lambda: {"rows": rows, "found": same(rows)},
        "streaming": lambda: {"rows": rows, "found": streaming(rows, rounds)},
        "growing": lambda: {"rows": rows, "found": growing(rows, rounds)},
        "dask": lambda: {"rows": rows, "found": on_dask(rows, rounds)},
    }
    for name, measured in measures.items():
        if name in asked.only:
            found[name] = measured()
            keep(path if asked.write else None, {**found, "machine": machine.describe()})
    if asked.write:
        refresh(HERE / "README.md", markdown(found), "scale")


if __name__ == "__main__":
    main()
