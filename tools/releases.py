"""What every estimator, solver and mechanism releases with fixed seeds, and whether it changed.

python tools/releases.py --compare tests/models/releases.json    # what differs; exit 1 if any does
python tools/releases.py --compare tests/models/releases.json --filter KMeans/tree --dump found
python tools/releases.py --out tests/models/releases.json        # the record, anew

The record keeps two digests of each case of `release_cases.py`: `numbers`, of the events, the
released numbers, what a callback heard, the fitted attributes and what a model answers about public
points; and `settings`, of all else that a release says. A case that is refused is on record as
refused. A case whose floats depend on Python, numpy, scipy or the CPU is marked
``"portable": false``, and is compared only where these are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse
import sklearn
import threadpoolctl

if __name__ == "__main__":  # at the root of a clone its sources, elsewhere what is installed
    sys.path.insert(0, os.getcwd())

from release_cases import Case, Released, every_case

import privfit

DIGITS = 20  # of a digest: two texts that differ have the same one once in 2^80
REFUSED = Released({"refused": True}, {})


def canonical(value: Any) -> Any:
    """A value as JSON that is the same where all its bits are: floats are written in base 16."""
    if isinstance(value, float):  # numpy's and released ones, too
        return float(value).hex()
    if value is None or isinstance(value, bool | int | str):
        return value
    if scipy.sparse.issparse(value):
        return canonical([value.shape, value.data, value.indices, value.indptr])
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "values": canonical(value.tolist())}
    if isinstance(value, Mapping):
        return {str(key): canonical(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(part) for part in value]
    raise TypeError(f"value ({type(value).__name__}) has no canonical form; give its numbers")


def text_of(value: Any) -> str:
    return json.dumps(canonical(value), sort_keys=True, indent=1)


def digest(value: Any) -> str:
    return hashlib.sha256(text_of(value).encode()).hexdigest()[:DIGITS]


def outcome(case: Case) -> Released:
    """What a case releases; warnings are for people."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return case()
        except ValueError:
            return REFUSED


def made_with() -> dict[str, str]:
    """What the floats of cases that are not portable depend on."""
    pools = threadpoolctl.threadpool_info()
    blas = {f"{p['internal_api']} {p['architecture']}" for p in pools if p["user_api"] == "blas"}
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "blas": ", ".join(sorted(blas)),
        "instructions": "AVX-512" if _has_avx512() else "no AVX-512",
    }


def _has_avx512() -> bool:
    """Whether numpy's loops use it: BLAS may take a CPU that it does not know for an older one."""
    core = import_module("numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0"
                         else "numpy.core")  # fmt: skip
    features = core._multiarray_umath.__cpu_features__
    return bool(features.get("X86_V4", features.get("AVX512F")))


Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """Digests by case, and what they were made with."""

    made_with: Mapping[str, str]
    cases: Mapping[str, Entry]

    @classmethod
    def read(cls, path: Path) -> Record:
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Sorted, one line a case."""
        entries = sorted(self.cases.items())
        lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries]
        head = f'{{"made_with": {json.dumps(self.made_with)},\n"cases": {{\n'
        path.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")

    def holds_here(self, name: str) -> bool:
        """Whether a case on record must release the same bits in this environment."""
        return self.cases[name].get("portable", True) or self.made_with == made_with()

    def marked(self, others: Iterable[Record], earlier: Record | None) -> Record:
        """This record, with marks where another environment differs, and where there were some."""
        found = {}
        for name, entry in self.cases.items():
            alike = not any(difference(entry, other.cases.get(name, entry)) for other in others)
            known = earlier.cases.get(name, entry) if earlier else entry
            portable = alike and known.get("portable", True)
            found[name] = entry if portable else {**entry, "portable": False}
        return Record(self.made_with, found)


def difference(found: Entry, recorded: Entry) -> str:
    """What differs between two entries of a case; nothing if they are the same."""
    if found.get("refused") != recorded.get("refused"):
        return "refused" if "refused" in found else "no longer refused"
    parts = [part for part in ("numbers", "settings") if found.get(part) != recorded.get(part)]
    return f"{' and '.join(parts)} differ" if parts else ""


def differences(found: Record, recorded: Record) -> list[str]:
    """A line for each case that is not as recorded, of those that must be so here."""
    lines = []
    for name, entry in found.cases.items():
        if name not in recorded.cases:
            lines.append(f"{name}: not on record")
        elif recorded.holds_here(name) and (what := difference(entry, recorded.cases[name])):
            lines.append(f"{name}: {what}")
    return lines


def entry_of(released: Released) -> Entry:
    if released is REFUSED:
        return {"refused": True}
    return {"numbers": digest(released.numbers), "settings": digest(released.settings)}


def write_whole(folder: Path, name: str, released: Released) -> None:
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(vars(released)) + "\n", encoding="utf-8")


def run(chosen: Mapping[str, Case], dump: Path | None = None, shows: bool = False) -> Record:
    """The record of these cases, made now with one thread of BLAS."""
    found = {}
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        for done, (name, case) in enumerate(chosen.items(), 1):
            if shows:
                line = f"\r{done} of {len(chosen)}: {name:<80.80}"
                print(line, end="", file=sys.stderr, flush=True)
            released = outcome(case)
            found[name] = entry_of(released)
            if dump is not None:
                write_whole(dump, name, released)
    if shows:
        print(file=sys.stderr)
    return Record(made_with(), found)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What every fit releases with fixed seeds.")
    for name, metavar, meaning in (
        ("--out", "FILE", "write the record; its marks of cases that are not portable stay"),
        ("--compare", "FILE", "list the cases that differ from a record; exit 1 if any does"),
        ("--dump", "DIR", "write all that each case released"),
    ):
        parser.add_argument(name, type=Path, metavar=metavar, help=meaning)
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cases that match this")
    parser.add_argument(
        "--against", type=Path, nargs="+", metavar="FILE", default=[],
        help="records of other environments: what differs there is marked in --out",
    )  # fmt: skip
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    told = parsed(arguments)
    print(f"privfit of {Path(privfit.__file__).parent}", file=sys.stderr)
    wanted = re.compile(told.filter)
    chosen = {name: case for name, case in every_case() if wanted.search(name)}
    found = run(chosen, told.dump, shows=True)
    if told.out is not None:
        earlier = Record.read(told.out) if told.out.exists() else None
        found.marked([Record.read(path) for path in told.against], earlier).write(told.out)
    if told.compare is None:
        return 0
    recorded = Record.read(told.compare)
    known = [name for name in recorded.cases if wanted.search(name)]
    lines = differences(found, recorded)
    lines += [f"{name}: no such case" for name in known if name not in chosen]
    print(*lines, f"{len(lines)} of {len(chosen)} cases differ", sep="\n")
    passed_over = sum(not recorded.holds_here(name) for name in known)
    if passed_over:
        print(f"{passed_over} are not portable and were made with {dict(recorded.made_with)}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
