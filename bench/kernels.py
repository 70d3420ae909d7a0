"""Time the kernels against the obvious alternatives; see README.md beside this file.

python bench/kernels.py                     # every row, two threads, best of 9
python bench/kernels.py --filter logistic --threads 1,2 --sizes small
python bench/kernels.py --write             # refresh bench/README.md and bench/kernels.json
"""

import argparse
import datetime
import gc
import json
import re
import resource
import subprocess
import sys
import time
import tracemalloc
from dataclasses import asdict
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import machine, tables  # noqa: E402
from bench.cases import CASES, Case, Ready, Work  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from privfit._kernels import cpu  # noqa: E402

__all__ = ["CASES", "Case", "Ready", "Work", "measure", "race", "set_limit"]

SIZES = {"full": 1.0, "small": 0.05}
PAUSE = 0.1  # seconds between calls: a precaution against worker threads that still spin
ENOUGH = 7  # rounds before a ratio is held against its target
BUSY = 0.05  # of the cores taken by others: both times are suspect, threaded ones most
SHORT = 0.02  # calls shorter than this are preceded by an untimed one


# --------------------------------------------------------------------------------------- measuring


def race(runners, repeat):
    """The times in seconds of each named call, sorted, over interleaved rounds."""
    times = {name: [] for name in runners}
    for _ in range(repeat):
        for name, run in runners.items():
            time.sleep(PAUSE)
            if min(times[name], default=SHORT) < SHORT:
                run()
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: sorted(taken) for name, taken in times.items()}


def _limit_threads(threads):
    """BLAS and OpenMP of the baselines; ours are told directly."""
    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(threads)
    return threadpool_limits(threads)


def measure(case, threads=2, scale=1.0, repeat=9, with_baseline=True):
    """One row, as a dict: both sides agree first, then they are timed in turns."""
    ready = case.make(threads, scale)
    rivals = ready.baselines if with_baseline else {}
    result = ready.ours()
    for name, run in rivals.items():
        ready.agree(result, name, run())
    del result
    gc.collect()
    with _limit_threads(threads), machine.Others() as others:
        times = race({**rivals, "ours": ready.ours}, repeat)
    ours = times.pop("ours")
    fastest = min(times, key=times.get) if times else None  # lists compare by their best time
    theirs = times[fastest] if fastest else None
    return {
        "name": case.name,
        "size": ready.size,
        "threads": threads,
        "baseline": fastest or ("not installed" if with_baseline else "not timed"),
        "baseline_seconds": theirs[0] if theirs else None,
        "seconds": ours[0],
        "ratio": theirs[0] / ours[0] if theirs else None,
        "all_seconds": {**times, "ours": ours},
        "others_share": others.share,
        "comparable": scale == 1.0 and repeat >= ENOUGH,
        "reach": case.reach,
        "moonshot": case.moonshot,
        "work": asdict(ready.work),
        "note": case.note,
    }


def set_limit(row, limits):
    """Add the least time of the row's work at these limits, and which limit binds."""
    least, bound = Work(**row["work"]).least_time(limits)
    row |= {"limit_seconds": least, "of_limit": least / row["seconds"], "bound": bound}


# ------------------------------------------------------------------------------- memory and import


def memory(scale, threads):
    """Extra memory of one scoring call on 1,000,000 x 50, and the size of packed records; bytes.

    Runs in a process of its own: `kernels.py --memory`.
    """
    command = [sys.executable, str(HERE / "kernels.py"), "--memory"]
    command += ["--sizes", str(scale), "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _memory_here(scale, threads):
    X, y = tables.dense(max(64, round(1_000_000 * scale)), 50)
    domain = privfit.Box(-1, 1, n_features=50)
    tracemalloc.start()
    objective = privfit.LinearObjective(X, y, "logistic", domain, n_threads=threads)
    packed = tracemalloc.get_traced_memory()[0]
    given = X.nbytes
    tables.dense.cache_clear()
    del X, y
    P = domain.candidates(200, np.random.default_rng(0))
    gc.collect()
    resident = _reset_peak()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    objective.scores(P)
    traced = tracemalloc.get_traced_memory()[1] - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "packed_bytes": packed,
        "float64_bytes": given,
        "call_traced_bytes": traced,
        "call_resident_bytes": None if resident is None else max(0, peak - resident),
    }


def _reset_peak():
    """Set the peak of resident memory to its present value, in bytes; None where that fails."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def import_seconds(repeat=7):
    """The best time of `import privfit` in fresh interpreters."""
    code = (
        f"import sys, time; sys.path.append({str(HERE.parent)!r}); start = time.perf_counter(); "
        "import privfit; print(time.perf_counter() - start)"
    )
    runs = (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        for _ in range(repeat)
    )
    return min(float(run.stdout) for run in runs)


# ---------------------------------------------------------------------------------------- reporting


def verdict(row):
    """How the ratio stands to its targets; "?" where others took a share of the machine.

    None at all from few rounds or other sizes: a thread that waits for a busy core once made a
    baseline ten times slower, and only more rounds show that.
    """
    if row["ratio"] is None or row["reach"] is None or not row["comparable"]:
        return ""
    doubt = "?" if (row["others_share"] or 0) > BUSY else ""
    if row["moonshot"] is not None and row["ratio"] >= row["moonshot"]:
        return "moonshot" + doubt
    return ("reached" if row["ratio"] >= row["reach"] else "short") + doubt


def _milliseconds(seconds):
    if seconds is None:
        return "-"
    ms = seconds * 1e3
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.3f}"


def _times(ratio):
    return "-" if ratio is None else f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def cells(row):
    """A row of the printed table."""
    targets = [_times(row[aim]) if row[aim] else "-" for aim in ("reach", "moonshot")]
    return [
        row["name"],
        row["size"],
        str(row["threads"]),
        row["baseline"],
        _milliseconds(row["baseline_seconds"]),
        _milliseconds(row["seconds"]),
        _times(row["ratio"]),
        *targets,
        verdict(row) or "-",
        f"{row['of_limit']:.0%} {row['bound']}",
        "-" if row["others_share"] is None else f"{row['others_share']:.0%}",
    ]


HEADER = ["work", "size", "threads", "baseline", "ms", "privfit ms", "ratio", "reach", "moonshot",
          "verdict", "of the limit", "others"]  # fmt: skip
WIDTHS = [29, 36, 7, 23, 8, 10, 6, 6, 8, 9, 16, 6]


def print_line(values):
    padded = (value.ljust(width) for value, width in zip(values, WIDTHS, strict=True))
    print("  ".join(padded).rstrip(), flush=True)


def limit_lines(best):
    for limits in best.values():
        yield (
            f"{limits.threads} thread(s): {limits.flops / 1e9:.1f} GFLOP/s in float64, hence "
            f"{limits.pair_products / 1e9:.0f} G int16 multiply-adds/s; "
            f"{limits.bandwidth / 1e9:.1f} GB/s read"
        )


def other_lines(report):
    memory = report["memory"]
    if memory:
        resident = memory["call_resident_bytes"]
        seen = "" if resident is None else f", {resident / 1e6:.1f} MB in resident memory"
        yield (
            f"extra memory of a scoring call, 1,000,000 x 50, 200 candidates: "
            f"{memory['call_traced_bytes'] / 1e6:.2f} MB allocated{seen} (target: less than 64 MB)"
        )
        yield (
            f"packed records: {memory['packed_bytes'] / 1e6:.0f} MB, "
            f"{memory['packed_bytes'] / memory['float64_bytes']:.0%} of the float64 input"
        )
    if report["import_seconds"]:
        yield f"import privfit: {report['import_seconds']:.3f} s (target: less than 0.4 s)"


def markdown(report):
    """The generated part of README.md."""
    facts = "; ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [
        f"Measured on {report['date']}, privfit {report['privfit']} with {report['simd']} kernels, "
        f"best of {report['repeat']}, sizes x {report['scale']:g}.",
        "",
        f"Machine: {facts}.",
        "",
        "Measured limits:",
        "",
        *[f"- {line}" for line in report["limits"]],
        "",
        "| " + " | ".join(HEADER) + " |",
        "|" + "---|" * len(HEADER),
        *["| " + " | ".join(cells(row)) + " |" for row in report["rows"]],
        "",
        *[f"- {line}" for line in other_lines(report)],
        "",
        "Notes:",
        "",
        *sorted({f"- {row['name']}: {row['note']}" for row in report["rows"] if row["note"]}),
    ]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------- command line


def _threads(text):
    return [int(part) for part in text.split(",")]


def _scale(text):
    return SIZES[text] if text in SIZES else float(text)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--filter", default="", metavar="REGEX", help="rows whose name matches")
    add("--threads", type=_threads, default=[2], metavar="1,2", help="thread counts; default 2")
    add("--sizes", type=_scale, default=1.0, metavar="SIZE",
        help="full, small, or a factor on the number of records; default full")  # fmt: skip
    add("--repeat", type=int, default=9, help="interleaved rounds; the best counts; default 9")
    add("--baseline", choices=("all", "none"), default="all", help="none times the kernels alone")
    add("--json", type=Path, metavar="PATH", help="write the numbers here, row by row")
    add("--markdown", type=Path, metavar="PATH", help="write the table between the markers of PATH")
    add("--write", action="store_true", help="both, to bench/kernels.json and bench/README.md")
    add("--list", action="store_true", help="names of the rows")
    add("--memory", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def run(options, path=None):
    """Measure, print and keep each row as it comes, and return the report."""
    chosen = [case for case in CASES.values() if re.search(options.filter, case.name)]
    if not chosen:
        raise SystemExit(f"--filter {options.filter!r} matches no row; see --list")
    limits = {threads: machine.sample(threads, repeat=9) for threads in options.threads}
    report = {
        "date": datetime.date.today().isoformat(),
        "privfit": privfit.__version__,
        "simd": cpu.active(),
        "repeat": options.repeat,
        "scale": options.sizes,
        "machine": machine.describe(),
        "limits": [],
        "rows": [],
        "memory": None,
        "import_seconds": None,
    }
    print_line(HEADER)
    for case in chosen:
        for threads in options.threads:
            row = measure(case, threads, options.sizes, options.repeat, options.baseline == "all")
            limits[threads] = limits[threads].best(machine.sample(threads))
            set_limit(row, limits[threads])
            print_line(cells(row))
            report["rows"].append(row)
            report["limits"] = list(limit_lines(limits))
            keep(path, report)
            gc.collect()
    for row in report["rows"]:  # once more, with the best limits of the whole run
        set_limit(row, limits[row["threads"]])
    keep(path, report)
    if not options.filter:
        report["memory"] = memory(options.sizes, max(options.threads))
        report["import_seconds"] = import_seconds()
        keep(path, report)
    print("", *report["limits"], *other_lines(report), sep="\n")
    return report


def main(arguments=None):
    options = parse(arguments)
    if options.list:
        print(*CASES, sep="\n")
        return 0
    if options.memory:
        print(json.dumps(_memory_here(options.sizes, options.threads[0])))
        return 0
    report = run(options, options.json or (HERE / "kernels.json" if options.write else None))
    if options.markdown or options.write:
        refresh(options.markdown or HERE / "README.md", markdown(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
