"""Benchmarks of privfit: `python -m bench SUBJECT`.

speed      kernels and fits beside the obvious alternatives, in turns
accuracy   every solver on real data, over seeds
columns    whole tables of which kinds are known, or everything; ours and peers
rules      the default beside every solver of ours, whatever the budget and the size
papers     the papers' figures, measured anew
peers      other libraries on the same splits and budgets
audit      what the audits find, and the smallest fault they find
coverage   how often intervals cover what solvers reach without noise
pictures   figures of docs/, from results

Results are CSV files, a line a cell: in the folder of --out, or in bench/results with --write,
which also refreshes the pages. A run that is stopped loses the cell under way alone.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import re
import sys
import time
from pathlib import Path

from bench.results import FOLDER

SUBJECTS = ("speed", "accuracy", "columns", "rules", "papers", "peers", "audit", "coverage",
            "pictures")  # fmt: skip


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """One set of options; each subject takes those that it has a use for."""
    parser = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("subject", choices=SUBJECTS)
    add("--filter", type=re.compile, default=re.compile(""), metavar="REGEX",
        help="cells whose name matches; see --list")  # fmt: skip
    add("--list", action="store_true", help="the names of the cells, and end")
    add(
        "--quick",
        action="store_true",
        help="small sizes, few cells, one round: does it run? never written to bench/results",
    )
    add("--threads", type=_counts, default=[2], metavar="1,2", help="of speed; default 2")
    add("--repeat", type=int, metavar="N", help="interleaved rounds of speed; default 9")
    add("--seeds", type=int, metavar="N", help="fits of each cell; default 10, papers their own")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N",
        help="processes of one thread each; default 2")  # fmt: skip
    add("--minutes", type=float, default=math.inf, metavar="N",
        help="begin no cell after so many; 0 shows what is there")  # fmt: skip
    add("--keep", action="store_true", help="leave results of other code as they are")
    add("--setup", action="store_true", help="make the environments of peers, and end")
    add("--out", type=Path, default=Path("found"), metavar="FOLDER",
        help="where results are kept; default found")  # fmt: skip
    add("--write", action="store_true", help="keep them in bench/results, refresh the pages")
    options = parser.parse_args(arguments)
    options.until = time.perf_counter() + 60 * options.minutes
    options.write = options.write and not options.quick
    if options.write:
        options.out = FOLDER
    return options


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    importlib.import_module(f"bench.{options.subject}").run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
