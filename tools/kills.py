"""Kill processes that share a budget file, again and again, and count what is lost.

    python tools/kills.py                            # 8 processes, 1,000 kills
    python tools/kills.py --cleaner                  # meanwhile the lock file is removed
    python tools/kills.py --checkpoints              # each process runs fits with a journal
    python tools/kills.py --checkpoints --cleaner --kills 100 --json

Each process reserves, draws, reports the draw and closes, until `kill -9` ends it at a random
moment and another one takes its place. In the end the file must count at least as many charges as
there were reports. With journals, a killed run is resumed: it must be charged once, and a draw that
was reported must never come out differently. The noise is so wide that two draws are equal with a
probability below 1e-6. POSIX only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from privfit import Checkpoint, DiscreteLaplace, open_ledger
from privfit.privacy.budget_file import LedgerFile

EPSILON = 2.0**-20  # of a grant: there are a million of them in the budget
DRAWS = 8  # of a run with a journal


class Worker:
    """A forked process and what it reports: lines of JSON."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self._hear, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 3
            try:
                os.close(self._hear)
                work(tell)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(tell)
        self._heard = b""

    def listen(self) -> None:
        """Take what it has reported so far."""
        while select.select([self._hear], [], [], 0)[0]:
            more = os.read(self._hear, 1 << 16)
            if not more:
                return
            self._heard += more

    def end(self, kill: bool = True) -> tuple[list[list[int]], int]:
        """Kill it, or wait for it: its complete reports, and its exit code (-9 if killed)."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        while more := os.read(self._hear, 1 << 16):
            self._heard += more
        os.close(self._hear)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        lines = self._heard[: self._heard.rfind(b"\n") + 1].splitlines()
        return [json.loads(line) for line in lines], code

    @property
    def has_ended(self) -> bool:
        """Whether it came to its end by itself."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def report(tell: int, *numbers: int) -> None:
    os.write(tell, json.dumps(numbers).encode() + b"\n")


def spend(ledger: LedgerFile, tell: int) -> None:
    """Reserve, draw, report and close, without an end."""
    while True:
        grant = ledger.reserve(EPSILON)
        grant.release(DiscreteLaplace(EPSILON, 1), [0])
        report(tell, 1)
        grant.close()


def resume(ledger: LedgerFile, journal: Path, number: int, tell: int) -> None:
    """A run with a journal, begun or resumed."""
    with Checkpoint(journal, EPSILON, ledger=ledger) as checkpoint:
        grant = checkpoint.ledger.reserve(EPSILON, name=f"run {number}")
        for i in range(DRAWS):
            drawn = grant.release(DiscreteLaplace(EPSILON / DRAWS, 1), [0], checkpoint.coins)
            report(tell, number, i, int(drawn[0]))
        grant.close()


def clean(lock: Path) -> None:
    """Remove the lock file whenever it is there."""
    while True:
        lock.unlink(missing_ok=True)
        time.sleep(0.001)


class Trial:
    """Processes, kills and reports over one budget file."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.path = folder / "budget.json"
        self.ledger = open_ledger(self.path, 1.0, adjacency="replace")
        self.ledger.reserve(EPSILON, name="the first").close()  # so that all is imported
        self.coins = random.Random(options.seed)
        self.slots: list[int] = list(range(options.processes))  # the run of each process
        self.runs = options.processes
        self.reports = 0
        self.seen: dict[tuple[int, int], int] = {}
        self.kills = self.finished = self.failed = self.corrupt = self.drawn_twice = 0

    def start(self, slot: int) -> Worker:
        """A process of this slot; some open the file anew, others inherit it."""
        anew, number = self.coins.random() < 0.25, self.slots[slot]

        def work(tell: int) -> None:
            ledger = open_ledger(self.path) if anew else self.ledger
            if self.options.checkpoints:
                resume(ledger, self.folder / f"journal {number}", number, tell)
            else:
                spend(ledger, tell)

        return Worker(work)

    def end(self, slot: int, worker: Worker, kill: bool = True) -> None:
        """End a process and count its reports; after a run that came to its end the next begins."""
        said, code = worker.end(kill)
        self.kills += code == -signal.SIGKILL
        self.failed += code not in (0, -signal.SIGKILL)
        self.reports += len(said)
        for one in said if self.options.checkpoints else ():
            number, i, value = one
            self.drawn_twice += self.seen.setdefault((number, i), value) != value
        if code == 0:
            self.finished += 1
            self.slots[slot], self.runs = self.runs, self.runs + 1

    def check(self) -> None:
        """Read the file as a new process would."""
        try:
            open_ledger(self.path)
        except Exception:
            traceback.print_exc()
            self.corrupt += 1

    def run(self) -> dict[str, int]:
        """Kill as often as asked, let the last runs finish, and count."""
        cleaner = (
            Worker(lambda _: clean(Path(f"{self.path}.lock"))) if self.options.cleaner else None
        )
        try:
            workers = [self.start(slot) for slot in range(self.options.processes)]
            while self.kills < self.options.kills:
                time.sleep(self.coins.uniform(0, self.options.pause))
                for slot, worker in enumerate(workers):
                    worker.listen()
                    if worker.has_ended:
                        self.end(slot, worker, kill=False)
                        workers[slot] = self.start(slot)
                slot = self.coins.randrange(len(workers))
                self.end(slot, workers[slot])
                workers[slot] = self.start(slot)
                if self.kills % 100 == 0:
                    self.check()
            for slot, worker in enumerate(workers):
                self.end(slot, worker, kill=not self.options.checkpoints)
        finally:
            if cleaner is not None:
                cleaner.end()
        self.check()
        return self.table()

    def table(self) -> dict[str, int]:
        """What was found in the end."""
        charges = open_ledger(self.path).charges[1:]
        names = Counter(one.name for one in charges)
        released = (
            len({number for number, _ in self.seen}) if self.options.checkpoints else self.reports
        )
        return {
            "processes": self.options.processes, "kills": self.kills, "reports": self.reports,
            "released": released, "charged": len(charges), "finished": self.finished,
            "charged_twice": sum(n > 1 for n in names.values()) if self.options.checkpoints else 0,
            "drawn_twice": self.drawn_twice, "corrupt": self.corrupt, "failed": self.failed,
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.1, help="longest time between two kills")
    parser.add_argument("--cleaner", action="store_true", help="remove the lock file meanwhile")
    parser.add_argument("--checkpoints", action="store_true", help="runs with journals")
    parser.add_argument("--folder", help="where to keep the files; by default nowhere")
    parser.add_argument("--seed", type=int, default=5, help="of the moments of the kills")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = Trial(options, Path(options.folder or folder)).run()
    print(json.dumps(found) if options.json else "\n".join(f"{k:15}{v}" for k, v in found.items()))
    wrong = ("charged_twice", "drawn_twice", "corrupt", "failed")
    return int(found["released"] > found["charged"] or any(found[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
