"""Run privfit for a long time, kill it again and again, and say what was lost.

    python tools/soak.py                     # an hour
    python tools/soak.py --minutes 3 --json

Rounds of `kills.py` follow each other until the time is up: grants, runs with a journal, and fits
with a journal, with and without a cleaner that removes lock files; each round has a budget file of
its own. A budget that many processes race for is spent to its end and not beyond. Meanwhile one
process, which nobody kills, fits, scores, predicts and charges, and its memory is watched: the
median of its resident memory in the last quarter of the time against that in the second one. Then
a table is printed; the exit code is 1 if something was lost. POSIX, and /proc for memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from kills import EPSILON, Trial, Worker, report

from privfit import (
    Box,
    BudgetError,
    Checkpoint,
    DiscreteLaplace,
    KMeans,
    LinearObjective,
    LogisticRegression,
    open_ledger,
)

KILLS = 25  # of a round
GRANTS = 64  # in a budget that is raced for
GROWTH = 8.0  # MB: between two quarters the allocator's own moods stay below it
WRONG = ("lost", "charged_twice", "drawn_twice", "corrupt", "failed", "overspent")


def records(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 5))
    return X, (X[:, 0] + rng.normal(0, 0.3, n) > 0).astype(int)


class Fits(Trial):
    """Processes that fit with a journal; a model is reported by its digest."""

    def start(self, slot: int) -> Worker:
        number, anew = self.slots[slot], self.coins.random() < 0.25

        def work(tell: int) -> None:
            X, y = records()
            ledger = open_ledger(self.path) if anew else self.ledger
            with Checkpoint(self.folder / f"journal {number}", EPSILON, ledger=ledger) as journal:
                model = LogisticRegression(
                    EPSILON, domain=Box(-1, 1), classes=[0, 1], solver="local", calibrate=False,
                    ledger=journal.ledger, random_state=journal.coins, n_threads=1,
                ).fit(X, y)  # fmt: skip
            report(tell, number, 0, zlib.crc32(model.coef_.tobytes()))

        return Worker(work)

    def table(self) -> dict[str, int]:
        """Fits have one name; so each journal that was begun may have one charge, and no more."""
        charges = open_ledger(self.path).charges[1:]
        paid = Counter((one.reservation.run, one.reservation.part) for one in charges)
        twice = sum(count > 1 for count in paid.values()) + max(0, len(charges) - self.runs)
        return super().table() | {"charged_twice": twice}


def race(folder: Path, seed: int) -> dict[str, int]:
    """Let eight processes spend one small budget until they are refused."""
    path = folder / "raced.json"
    open_ledger(path, GRANTS * EPSILON, adjacency="replace")

    def spend(tell: int) -> None:
        ledger = open_ledger(path)
        while True:
            try:
                grant = ledger.reserve(EPSILON)
            except BudgetError:
                return
            report(tell, 1)
            grant.close()

    workers = [Worker(spend) for _ in range(8)]
    time.sleep((seed % 7) / 10)
    ends = [worker.end(kill=i < 2) for i, worker in enumerate(workers)]
    granted = sum(len(said) for said, _ in ends)
    ledger = open_ledger(path)
    over = ledger.spent.epsilon > ledger.budget.epsilon or granted > GRANTS
    return {
        "kills": 2, "released": granted, "charged": len(ledger.charges),
        "overspent": int(over), "lost": max(0, granted - len(ledger.charges)),
        "failed": sum(code not in (0, -9) for _, code in ends),
    }  # fmt: skip


def steadily(tell: int, folder: Path) -> None:
    """Fit, score, predict and charge, without an end; report the resident memory in KB."""
    X, y = records()
    domain, rounds = Box(-1, 1, 5), 0
    P = domain.candidates(50, np.random.default_rng(1))
    while True:
        path = folder / f"steady {rounds}.json"
        ledger = open_ledger(path, 1.0, 1e-3, adjacency="replace")
        for _ in range(8):
            model = LogisticRegression(0.05, 1e-6, domain=domain, classes=[0, 1], ledger=ledger)
            model.fit(X, y).predict_proba(X)
            KMeans(3, epsilon=0.05, domain=domain, ledger=ledger).fit(X).predict(X)
            LinearObjective(X, y, "logistic", domain).scores(P)
            grant = ledger.reserve(EPSILON)
            grant.release(DiscreteLaplace(EPSILON, 1), [0])
            grant.close()
        path.unlink()
        rounds += 1
        gc.collect()  # what is in cycles goes when the collector comes by, which says nothing
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files = len(os.listdir("/proc/self/fd"))
        report(tell, 16 * rounds, pages * os.sysconf("SC_PAGE_SIZE") // 1024, files)


def grown(memory: list[int]) -> float:
    """MB that the median of the last quarter is above that of the second one."""
    quarter = len(memory) // 4
    if not quarter:
        return 0.0
    early, late = memory[quarter : 2 * quarter], memory[-quarter:]
    return (statistics.median(late) - statistics.median(early)) / 1024


def soak(minutes: float, seed: int) -> dict[str, float]:
    """Rounds until the time is up, and the sums of what they found."""
    found: Counter[str] = Counter(dict.fromkeys(WRONG, 0))
    end, number = time.monotonic() + 60 * minutes, 0
    kinds = [(Trial, False, False), (Trial, True, False), (Trial, False, True),
             (Trial, True, True), (Fits, False, True), (Fits, True, True)]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        steady = Worker(lambda tell: steadily(tell, Path(folder)))
        while time.monotonic() < end and not steady.has_ended:
            kind, cleaner, journals = kinds[number % len(kinds)]
            options = SimpleNamespace(
                kills=KILLS, processes=8, pause=0.4 if kind is Fits else 0.1, cleaner=cleaner,
                checkpoints=journals, seed=seed + number,
            )  # fmt: skip
            with tempfile.TemporaryDirectory() as one:
                round_ = kind(options, Path(one)).run()
                found["lost"] += max(0, round_["released"] - round_["charged"])
                found["fits_killed"] += round_["kills"] * (kind is Fits)
                found.update({name: n for name, n in round_.items() if name != "processes"})
                found.update(race(Path(one), number))
            steady.listen()
            number += 1
        told, code = steady.end()
    found["failed"] += code != -9
    memory, files = [one[1] for one in told], [one[2] for one in told]
    return {
        "minutes": minutes, "rounds": number, "steady_fits": told[-1][0] if told else 0, **found,
        "memory_mb": round(statistics.median(memory) / 1024, 1) if memory else 0.0,
        "grown_mb": round(grown(memory), 1),
        "grown_files": max(files[1:], default=0) - files[0] if files else 0,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=5, help="of the moments of the kills")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = soak(options.minutes, options.seed)
    print(json.dumps(found) if options.json else "\n".join(f"{k:15}{v}" for k, v in found.items()))
    wrong = any(found[name] for name in WRONG)
    return int(wrong or found["grown_mb"] > GROWTH or found["grown_files"] > 2)


if __name__ == "__main__":
    sys.exit(main())
