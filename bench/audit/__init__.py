"""What the audits find: every estimator, solver and metric, with the smallest fault that is found.

`rows` has pairs of neighbouring tables for every way to release something, `samplers` tests what
draws. Results keep the pairs that strained most, which the tests repeat; docs/audit.md shows them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import command, measure
from bench.audit import audits, rows, samplers
from bench.pages import refresh, table
from bench.results import FOLDER, Results, Row

PAGE = measure.ROOT / "docs" / "audit.md"
COLUMNS = [(adjacency, delta) for adjacency in rows.ADJACENCIES for delta in rows.DELTAS]
LEAST, MOST = 2.0, 4.0  # a fault that must be found, and the largest that is planted
PLANTED = 1.5  # what the tests plant


def open_audits(folder: Path = FOLDER) -> Results:
    return Results(folder / "audits.csv", ("audit",), ("finds", "passes", "tries", "pairs"))


def open_samplers(folder: Path = FOLDER) -> Results:
    return Results(folder / "samplers.csv", ("sampler",), ("finds", "draws"))


def tries_of(row: Row) -> list[audits.Try]:
    """The pairs and seeds of a line."""
    return [tuple(map(int, one.split(":"))) for one in row["tries"].split()]  # type: ignore[misc]


# --------------------------------------------------------------------------------------- measuring


def measure_audit(audit: audits.Audit) -> dict[str, Any]:
    """Every pair and seed, on right code and with the smallest fault that is found.

    A fault leads a search along another path, where other pairs may strain most: those that do
    under the fault of the tests are kept too.
    """
    right = audit.measure()
    with audits.fault(PLANTED):
        kept = sorted({*right.tries, *audit.measure().tries})
    return {
        "audit": audit.key, "finds": smallest_fault(audit, right), "passes": right.passes,
        "tries": " ".join(f"{pair}:{seed}" for pair, seed in kept),
        "pairs": len(audit.pairs()) * len(audits.SEEDS),
    }  # fmt: skip


def smallest_fault(audit: audits.Audit, right: audits.Measured) -> float | None:
    """The smallest factor that was planted and found, from what the strain of right code promises.

    A little more is needed where a loss is not in proportion to epsilon, or where the fault leads
    a search along another path. None if nothing up to `MOST` is found.
    """
    factor = right.finds
    while factor <= MOST:
        with audits.fault(1.001 * factor):
            if not audit.measure(right.tries).passes:
                return round(factor, 4)
        factor *= 1.03
    return None


# -------------------------------------------------------------------------------------------- page


def shown(cell: list[Row] | None) -> str:
    """The weakest over the domains; what is not found is said in words."""
    if cell is None:
        return "-"
    if not all(one["passes"] == "True" for one in cell):
        return "**alarm**"
    weakest = max(float(one["finds"] or math.inf) for one in cell)
    if weakest > LEAST:
        return "**not audited**"
    return f"{math.ceil(100 * weakest - 1e-6) / 100:.2f}"


def tables(found: Results, drawn: Results) -> Iterator[str]:
    """What docs/audit.md shows: a line a solver, a column a relation and kind of budget."""
    dates = sorted({row["date"] for part in (found, drawn) for row in part})
    tried = sum(int(row["pairs"]) for row in found)
    yield (
        f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}: {len(found.rows)} "
        f"audits, {tried} paired runs, epsilon 1, delta 0 or 1e-6. Paired audits compare exact "
        "numbers: confidence 1, no false alarms."
    )
    yield ""
    cells: dict[tuple[str, str], dict[Any, list[Row]]] = {}
    for audit in rows.all_audits():
        row = found.get(audit.key)
        if row is not None:
            own = cells.setdefault(audit.row, {})
            own.setdefault((audit.adjacency, audit.delta), []).append(row)
    yield from table(
        ("estimator", "solver", "replace, pure", "replace, delta", "add_remove, pure",
         "add_remove, delta"),
        ([f"`{estimator}`", solver or "(one method)", *(shown(own.get(c)) for c in COLUMNS)]
         for (estimator, solver), own in cells.items()),
    )  # fmt: skip
    yield ""
    yield from table(
        ("sampler", "draws", "smallest wrong rate found"),
        ([f"`{row['sampler']}`", row["draws"], row["finds"] or "**none up to 2: not audited**"]
         for sampler in samplers.SAMPLERS if (row := drawn.get(sampler.name))),
    )  # fmt: skip


# -------------------------------------------------------------------------------------- the command


def name_of(each: audits.Audit | samplers.Sampler) -> str:
    return each.key if isinstance(each, audits.Audit) else each.name


def run(options: argparse.Namespace) -> None:
    """Measure the chosen audits and samplers; with --write, refresh docs/audit.md."""
    chosen = command.chosen(options, [*rows.all_audits(), *samplers.SAMPLERS], name_of)
    found, drawn = open_audits(options.out), open_samplers(options.out)
    for each in command.in_time(options, chosen[:1] if options.quick else chosen):
        if isinstance(each, audits.Audit):
            row = found.add(measure_audit(each))
        else:
            row = drawn.add({"sampler": each.name, "finds": each.smallest(), "draws": each.draws})
        print(f"{name_of(each)}: finds {row['finds']}", flush=True)
    if options.write and chosen:
        refresh(PAGE, "\n".join(tables(found, drawn)), "tables")
