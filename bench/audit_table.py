"""Measure what the audits find, and write the tables of docs/audit.md.

`python -m bench.audit_table` measures all, `--filter KMeans` some rows again; `--write` makes the
page of what was measured before. Results are kept in bench/audits.json as they come, each with the
pairs that found most, which the tests repeat.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
from pathlib import Path
from typing import Any

from bench import audits, samplers

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "audits.json"
PAGE = ROOT / "docs" / "audit.md"
COLUMNS = [(adjacency, delta) for adjacency in audits.ADJACENCIES for delta in audits.DELTAS]
LEAST, MOST = 2.0, 4.0  # a fault that must be found, and the largest that is planted


def known() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"audits": {}, "samplers": {}}


def keep(results: dict[str, Any]) -> None:
    """One line a result, in order."""
    parts = [
        f' "{part}": {{\n'
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in sorted(of.items()))
        + "\n }"
        for part, of in results.items()
    ]
    RESULTS.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def measure(wanted: str) -> None:
    """Every pair and seed of the wanted audits, on right code and with the smallest fault found."""
    for audit in audits.all_audits():
        if wanted not in audit.key:
            continue
        right = audit.measure()
        finds = smallest_fault(audit, right)
        results = known()
        results["audits"][audit.key] = {
            "finds": finds, "passes": right.passes, "tries": right.tries,
            "pairs": len(audit.pairs()) * len(audits.SEEDS),
            "date": datetime.date.today().isoformat(),
        }  # fmt: skip
        keep(results)
        print(f"{audit.key}: {finds}, {'passes' if right.passes else right.differences}")
    for sampler in samplers.SAMPLERS:
        if wanted not in sampler.name:
            continue
        results = known()
        results["samplers"][sampler.name] = {
            "finds": sampler.smallest(), "draws": sampler.draws,
            "date": datetime.date.today().isoformat(),
        }  # fmt: skip
        keep(results)
        print(f"{sampler.name}: {results['samplers'][sampler.name]['finds']}")


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


def rows(results: dict[str, Any]) -> dict[tuple[str, str], dict[Any, list[Any]]]:
    """The results of each estimator and solver, by relation and delta, over all its domains."""
    table: dict[tuple[str, str], dict[Any, list[Any]]] = {}
    for audit in audits.all_audits():
        if audit.key in results["audits"]:
            cell = table.setdefault(audit.row, {}).setdefault((audit.adjacency, audit.delta), [])
            cell.append(results["audits"][audit.key])
    return table


def shown(cell: list[Any] | None) -> str:
    """The weakest over the domains; what is not found is said in words."""
    if cell is None:
        return "-"
    if not all(one["passes"] for one in cell):
        return "**alarm**"
    weakest = max(one["finds"] or math.inf for one in cell)
    if weakest > LEAST:
        return "**not audited**"
    return f"{math.ceil(100 * weakest - 1e-6) / 100:.2f}"


def tables() -> str:
    results = known()
    dates = sorted({one["date"] for part in results.values() for one in part.values()})
    tried = sum(one["pairs"] for one in results["audits"].values())
    lines = [
        f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}: {len(results['audits'])} "
        f"audits, {tried} paired runs, epsilon 1, delta 0 or 1e-6. Paired audits compare exact "
        "numbers: confidence 1, no false alarms.",
        "",
        "| estimator | solver | replace, pure | replace, delta | add_remove, pure | "
        "add_remove, delta |",
        "|---|---|---|---|---|---|",
    ]
    for (estimator, solver), cells in rows(results).items():
        numbers = " | ".join(shown(cells.get(column)) for column in COLUMNS)
        lines.append(f"| `{estimator}` | {solver or '(one method)'} | {numbers} |")
    lines += ["", "| sampler | draws | smallest wrong rate found |", "|---|---|---|"]
    for sampler in samplers.SAMPLERS:
        one = results["samplers"][sampler.name]
        factor = f"{one['finds']:g}" if one["finds"] else "**none up to 2: not audited**"
        lines.append(f"| `{sampler.name}` | {one['draws']} | {factor} |")
    return "\n".join(lines)


def write() -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- tables begin -->", "<!-- tables end -->"
    filled = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{tables()}\n{end}", text, flags=re.S)
    PAGE.write_text(filled, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="", help="measure the audits whose name contains this")
    parser.add_argument("--write", action="store_true", help="measure nothing, write the page")
    options = parser.parse_args()
    if not options.write:
        measure(options.filter)
    write()


if __name__ == "__main__":
    main()
