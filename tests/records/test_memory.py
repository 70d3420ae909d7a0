"""The memory limit of a stream is kept by the whole process, or refused before anything is read.

Each case is a child process; what counts is the peak of its resident memory (`ru_maxrss`).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit
from privfit import (
    Box,
    Categorical,
    KMeans,
    Ledger,
    LogisticRegression,
    Numeric,
    Schema,
    Stream,
)
from privfit.records import memory

TESTS = Path(__file__).resolve().parents[1]
LINUX = Path("/proc/self/statm").exists()
ROWS, COLUMNS, TIMES = 60_000, 20, 20  # records of a part, and how often a file repeats it
NAMES = [f"c{i}" for i in range(COLUMNS)]
WORDS = [f"word {i}" for i in range(50)]
LIMIT = 340_000_000

# The child, and what starts it: a process begins with the peak of the one that started it.
CHILD = """
import json, sys
from privfit import Box, Categorical, Gradient, KMeans, LogisticRegression, Numeric, Schema, Stream
from privfit.records.memory import resident
path, labels, limit, words = json.loads(sys.argv[1])
if limit < 2 * 10**8:
    limit += resident()  # so much beside what it holds
print(limit, flush=True)
columns = {f"c{i}": Numeric(-1, 1) for i in range(20)}
if words:
    columns["word"] = Categorical(words, other=True)
domain, solver = Schema(columns) if labels == "late" else Box(-1, 1), Gradient(steps=3)
if words == ["learn"]:
    domain, solver = "learn", "additive"
if words[:1] == ["bins"]:
    columns = {f"c{i}": Numeric(-1, 1, bins=words[1]) for i in range(20)}
    domain, solver = Schema(columns), words[2]
    if solver == "gradient":
        solver = Gradient(steps=3, whiten=True)
epsilon, classes, n_public = 1.0, [0, 1], None
if words[:1] == ["classes"]:
    domain, solver = Schema({f"x{i}": Numeric(bins="auto") for i in range(20)}), "additive"
    epsilon, classes, n_public = 300.0, range(words[1]), 3000
if solver == "lloyd":
    model = KMeans(4, 1.0, solver=solver, domain=domain)
else:
    model = LogisticRegression(
        epsilon, 1e-9, classes=classes, solver=solver, domain=domain, n_public=n_public
    )
model.fit(Stream(path, memory_limit=limit), labels)
"""
STARTER = """
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", *sys.argv[1:]])
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run_child(*arguments: Any, before: Any = None) -> subprocess.CompletedProcess[str]:
    """The run of a child; it prints its limit, and then the peak of its resident memory."""
    path = os.pathsep.join([str(Path(privfit.__file__).parents[1]), str(TESTS)])
    return subprocess.run(
        [sys.executable, "-S", "-c", STARTER, CHILD, json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": path}, cwd=TESTS, capture_output=True, text=True,
        timeout=600, preexec_fn=before,
    )  # fmt: skip


@pytest.fixture(scope="module")
def part() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    return {**columns, "late": (X[:, 0] > 0).astype(np.int8), "word": rng.integers(0, 50, ROWS)}


@pytest.fixture(scope="module")
def folder(part, tmp_path_factory):
    """Files of 1,200,000 records: 100 MB as numbers, 260 MB as texts."""
    pyarrow = pytest.importorskip("pyarrow", reason='needs pip install "privfit[parquet]"')
    from pyarrow import csv, feather, parquet

    folder = tmp_path_factory.mktemp("memory")
    X = np.column_stack([part[name] for name in NAMES])
    np.save(folder / "part.npy", X)
    np.save(folder / "numbers.npy", np.tile(X, (TIMES, 1)))
    np.save(folder / "late.npy", np.tile(part["late"], TIMES))
    numbers = pyarrow.table({name: part[name] for name in (*NAMES, "late")})
    words = numbers.append_column("word", pyarrow.array([WORDS[i] for i in part["word"].tolist()]))
    for name, table in (("numbers", numbers), ("words", words)):
        with parquet.ParquetWriter(folder / f"{name}.parquet", table.schema) as file:
            for _ in range(TIMES):
                file.write_table(table)
        csv.write_csv(table, folder / "part.csv")
        header, _, lines = (folder / "part.csv").read_bytes().partition(b"\n")
        with open(folder / f"{name}.csv", "wb") as file:
            file.write(header + b"\n" + b"".join([lines] * TIMES))
        if name == "numbers":
            few = b"".join(lines.splitlines(keepends=True)[:2000])
            (folder / "few.csv").write_bytes(header + b"\n" + few)
    packed = gzip.compress(lines, 1)
    (folder / "words.csv.gz").write_bytes(gzip.compress(header + b"\n") + packed * TIMES)
    whole = pyarrow.concat_tables([words] * TIMES)
    feather.write_feather(whole, str(folder / "words.feather"))
    with pyarrow.ipc.new_file(str(folder / "words.arrow"), whole.schema) as file:
        file.write_table(whole.combine_chunks())  # all records in one batch
    yield folder
    shutil.rmtree(folder)


FILES = ["numbers.npy", "numbers.parquet", "words.parquet", "numbers.csv", "words.csv",
         "words.csv.gz", "words.arrow", "words.feather"]  # fmt: skip


def arguments(folder: Path, name: str, limit: int) -> list[Any]:
    labels = str(folder / "late.npy") if name.endswith(".npy") else "late"
    return [str(folder / name), labels, limit, WORDS if name.startswith("words") else []]


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
@pytest.mark.parametrize("name", FILES)
def test_peak_memory_stays_below_the_limit(name, folder):
    """With 60 MB beside what the process holds; readers of Arrow and Parquet need some more."""
    room = 60_000_000 if name.endswith((".npy", ".csv", ".csv.gz")) else 99_000_000
    done = run_child(*arguments(folder, name, room))
    assert done.returncode == 0, done.stderr
    limit, peak = map(int, done.stdout.split())
    assert room < peak < limit


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_columns_that_are_bought_are_counted(folder):
    """20 numbers become some 4,900 levels, whose matrices take a few hundred megabytes."""
    done = run_child(str(folder / "numbers.parquet"), "late", 1_100_000_000, ["learn"])
    assert done.returncode == 0, done.stderr
    limit, peak = map(int, done.stdout.split())
    assert 300_000_000 < peak < limit
    done = run_child(str(folder / "numbers.parquet"), "late", 150_000_000, ["learn"])
    assert done.returncode == 1  # there is room for blocks, and for the model of few records
    assert "and for a model of up to" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_second_moments_of_coded_columns_are_counted(folder):
    """20 numbers of 36 bins: a dozen matrices of 721 x 721, of 4 MB each."""
    for limit, code in ((270_000_000, 1), (LIMIT + 8 * 6 * 721**2 * (os.cpu_count() or 1), 0)):
        done = run_child(str(folder / "numbers.csv"), "late", limit, ["bins", 36, "gradient"])
        assert done.returncode == code, done.stderr
        assert int(done.stdout.split()[1]) < limit


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
@pytest.mark.parametrize(
    "solver", ["functional", "output", "frank_wolfe", "select_refine", "subsample"]
)
def test_what_other_solvers_hold_is_counted(folder, solver):
    """20 numbers of 72 bins: up to eight matrices of 1441 x 1441, of 17 MB each, or candidates."""
    few = str(folder / "few.csv")
    refused = run_child(few, "late", LIMIT, ["bins", 72, solver])
    assert refused.returncode == 1
    least = int(re.search(r"pass memory_limit='(\d+)MB'", refused.stderr)[1]) * 10**6
    done = run_child(few, "late", least, ["bins", 72, solver])
    assert done.returncode == 0, done.stderr
    assert LIMIT - 50_000_000 < int(done.stdout.split()[1]) < least


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_what_is_kept_of_each_class_is_counted(tmp_path):
    """60 models of some 4,500 levels: 4 MB each, with the weights after each step."""
    rng, few = np.random.default_rng(3), (str(tmp_path / "X.npy"), str(tmp_path / "y.npy"))
    np.save(few[0], rng.normal(size=(3000, 20)))
    np.save(few[1], np.arange(3000) % 60)
    refused = run_child(*few, 150_000_000, ["classes", 60])
    assert refused.returncode == 1
    least = int(re.search(r"pass memory_limit='(\d+)MB'", refused.stderr)[1]) * 10**6
    done = run_child(*few, least, ["classes", 60])
    assert done.returncode == 0, done.stderr
    before, peak = (int(run.stdout.split()[1]) for run in (refused, done))
    assert before + 200_000_000 < peak < least  # what the models keep is what takes memory


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_levels_are_counted_where_each_is_a_column(folder):
    """A record of 160 bytes, as 20 numbers, is packed with 1,440 columns."""
    done = run_child(str(folder / "part.npy"), None, 60_000_000, ["bins", 72, "lloyd"])
    assert done.returncode == 0, done.stderr
    limit, peak = map(int, done.stdout.split())
    assert peak < limit


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_a_limit_that_cannot_be_kept_is_refused_and_not_exceeded(folder):
    done = run_child(*arguments(folder, "words.csv", 200_000_000))
    assert done.returncode == 1
    assert "must leave room to read and pack a block" in done.stderr


REFUSED = (
    r"memory_limit \(64000000 bytes\) must leave room to read and pack a block, beside what the "
    r"process holds; pass memory_limit='\d+MB' or more"
)
GROUPS = Path("/sys/fs/cgroup")


def memory_group() -> tuple[Path, str]:
    """A new control group below that of this process, and the name of its limit."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    for line in lines:
        _, kinds, path = line.split(":", 2)
        first = GROUPS / "memory" if kinds == "memory" else GROUPS
        name = "memory.limit_in_bytes" if kinds == "memory" else "memory.max"
        if kinds in ("", "memory") and (first / path.lstrip("/") / name).exists():
            made = first / path.lstrip("/") / f"privfit-{os.getpid()}"
            made.mkdir()
            if (made / name).exists():
                return made, name
            made.rmdir()
    raise OSError("no group of this process limits memory")


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="the system has no control groups")
@pytest.mark.parametrize("name", ["words.parquet", "words.csv"])
def test_a_container_of_the_size_of_the_limit_is_enough(name, folder):
    """The kernel itself enforces the limit; `ru_maxrss` is tested above wherever this cannot be."""
    try:
        group, limit = memory_group()
    except OSError as error:
        pytest.skip(f"a memory cgroup cannot be made here: {error}")
    try:
        (group / limit).write_text(str(LIMIT))
        enter = group / "cgroup.procs"
        done = run_child(*arguments(folder, name, LIMIT), before=lambda: enter.write_text("0"))
        assert done.returncode == 0, done.stderr
    finally:
        group.rmdir()


# ---------------------------------------------------------------------------------- in this process


@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_a_limit_below_what_the_process_holds_is_refused_before_anything_is_read_or_charged():
    X, y = np.random.default_rng(0).uniform(-1, 1, (100, 2)), np.arange(100) % 2
    ledger, told = Ledger(2.0, 1e-6), []
    records = Stream(X, memory_limit="64MB", progress=told.append)
    models = (
        LogisticRegression(1.0, 1e-9, domain=Box(-1, 1), classes=[0, 1], ledger=ledger),
        LogisticRegression(1.0, 1e-9, domain="learn", classes=[0, 1], ledger=ledger),
    )
    for model in models:
        with pytest.raises(ValueError, match=REFUSED) as refused:
            model.fit(records, y)
    assert ledger.spent.epsilon == 0
    assert told == []
    enough = int(str(refused.value).partition("='")[2].partition("MB")[0])
    assert memory.resident() / 1e6 < enough < memory.resident() / 1e6 + 300
    KMeans(2, 1.0, domain=Box(-1, 1)).fit(Stream(X, memory_limit=f"{enough + 100}MB"))


@pytest.mark.skipif(not LINUX, reason="the system does not report resident memory")
def test_a_limit_without_room_for_bought_categories_is_refused_before_the_charge():
    pyarrow = pytest.importorskip("pyarrow", reason='needs pip install "privfit[parquet]"')
    table = pyarrow.table({f"w{i}": ["a", "b"] * 50 for i in range(4)} | {"late": [0, 1] * 50})
    ledger = Ledger(2.0, 1e-6)
    model = LogisticRegression(1.0, 1e-9, domain="learn", classes=[0, 1], ledger=ledger)
    limit = memory.resident() + 300_000_000
    message = (
        r"must leave room to read and pack a block, and for a model of up to \d+ MB, beside what "
        r"the process holds; pass memory_limit='\d+MB' or more, or declare more of its columns"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(Stream(table, memory_limit=limit), "late")
    assert ledger.spent.epsilon == 0
    declared = Schema({f"w{i}": Categorical(["a", "b"]) for i in range(4)})
    model.set_params(domain=declared).fit(Stream(table, memory_limit=limit), "late")


def test_a_limit_that_is_too_low_for_so_many_records_is_refused_before_the_charge(monkeypatch):
    """How much is bought of 30 numbers depends on how many records there are."""
    monkeypatch.setattr(memory, "resident", lambda: 200 * 10**6)
    X, y = np.random.default_rng(0).normal(size=(3000, 30)), np.arange(3000) % 2
    ledger, told = Ledger(40.0, 1e-6), []
    schema = Schema({f"x{i}": Numeric(bins="auto") for i in range(30)})
    model = LogisticRegression(
        20.0, 1e-6, domain=schema, classes=[0, 1], solver="additive", adjacency="replace",
        ledger=ledger,
    )  # fmt: skip
    with pytest.raises(ValueError, match="and for a model of up to"):
        model.fit(Stream(X, memory_limit="370MB", progress=told.append), y)
    assert told  # records were read
    assert ledger.spent.epsilon == 0
    model.fit(Stream(X[:50], memory_limit="370MB"), y[:50])
    assert ledger.spent.epsilon == 20


WORDS = [f"word {i}" for i in range(50)]
DOMAINS = {
    "blank numbers": Schema({f"x{i}": Numeric(bins="auto") for i in range(30)}),
    "numbers": Schema({f"x{i}": Numeric(-1, 1) for i in range(30)}),
    "words": Schema({**{f"x{i}": Numeric(-1, 1) for i in range(8)}, "x8": Categorical(WORDS)}),
    "box": Box(-1, 1, 1500),
}


@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_limit_that_a_refusal_proposes_is_not_refused(name, epsilon, monkeypatch, tmp_path):
    """Also where the number of records, which is not known at first, decides what models take."""
    monkeypatch.setattr(memory, "resident", lambda: 200 * 10**6)
    domain, rng, told = DOMAINS[name], np.random.default_rng(0), []
    X, y = rng.uniform(-1, 1, (3000, domain.n_columns)), np.arange(3000) % 2
    source, labels = X, y
    if name == "words":
        source, labels = tmp_path / "table.csv", "late"
        cells = [*X.T[:8], rng.choice(WORDS, 3000), y]
        rows = [",".join(map(str, row)) for row in zip(*cells, strict=True)]
        source.write_text("\n".join([",".join([*domain.column_names, "late"]), *rows]) + "\n")
    ledger = Ledger(epsilon, 1e-6)
    model = LogisticRegression(epsilon, 1e-6, domain=domain, classes=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match="must leave room to read") as refused:
        model.fit(Stream(source, memory_limit="64MB", progress=told.append), labels)
    assert told == []
    proposed = re.search(
        r"pass memory_limit='(\d+MB)' or more \('\d+MB' may do: that depends on the number of "
        r"records\)",
        str(refused.value),
    )
    assert proposed is not None
    model.fit(Stream(source, memory_limit=proposed[1]), labels)
    assert ledger.spent.epsilon == epsilon


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(("columns", "solver"), [(30, "additive"), (2, "auto"), (2, "gradient")])
def test_memory_that_records_take_decides_no_refusal(monkeypatch, adjacency, columns, solver):
    """A long cell may take any amount of it: refusals follow from what was held before."""
    held = [200 * 10**6]
    monkeypatch.setattr(memory, "resident", lambda: held[0])
    X, y = np.random.default_rng(0).uniform(0, 1, (300, columns)), np.arange(300) % 2
    whole, box = Schema({f"x{i}": Numeric(bins="auto") for i in range(columns)}), Box(0, 1, columns)
    model = LogisticRegression(
        1.0, 1e-6, domain=whole if solver == "additive" else box, classes=[0, 1], solver=solver,
        adjacency=adjacency, n_public=None if adjacency == "replace" else 300,
    )  # fmt: skip
    stream = Stream(X, memory_limit="600MB", progress=lambda _: held.__setitem__(0, 590 * 10**6))
    model.fit(stream, y)
    assert held[0] == 590 * 10**6  # records were read
    with pytest.raises(ValueError, match="memory_limit"):  # what is held before them does count
        model.fit(Stream(X, memory_limit="600MB"), y)


def test_memory_of_records_that_are_read_twice_decides_no_refusal(monkeypatch):
    """'auto' reads a box to choose a solver, which may read it again, around its middle."""
    held = [200 * 10**6]
    monkeypatch.setattr(memory, "resident", lambda: held[0])
    X, reads = np.random.default_rng(0).uniform(1, 2, (300, 2)), []

    def told(blocks):
        reads.append(blocks)
        held[0] = 590 * 10**6

    model = LogisticRegression(1.0, domain=Box(1, 2, 2), classes=[0, 1])
    model.fit(Stream(X, memory_limit="600MB", progress=told), np.arange(300) % 2)
    assert reads == [1, 1]
    assert model.release_.settings["solver"] == "objective"


@pytest.mark.parametrize("model", [
    KMeans(2, 1.0, domain=Box(0, 1)), KMeans(2, 1.0, domain=Schema({"a": Numeric()})),
    LogisticRegression(1.0, domain=Box(0, 1), classes=[0, 1]),
], ids=["k-means", "bought", "logistic"])  # fmt: skip
def test_each_fit_of_a_stream_looks_at_what_the_process_holds(monkeypatch, model):
    held, ledger = [200 * 10**6], Ledger(4.0)
    monkeypatch.setattr(memory, "resident", lambda: held[0])
    stream = Stream(np.linspace(0, 1, 300)[:, None], memory_limit="600MB")
    model.set_params(ledger=ledger).fit(stream, np.arange(300) % 2)
    held[0] = 590 * 10**6
    with pytest.raises(ValueError, match="memory_limit"):
        model.fit(stream, np.arange(300) % 2)
    assert ledger.spent.epsilon == 1


def test_less_room_makes_smaller_blocks_and_fewer_packers(monkeypatch):
    monkeypatch.setattr(memory, "resident", lambda: 200 * 10**6)
    rooms = [memory.Room(limit * 10**6, 4) for limit in (240, 400, 1000, 10_000)]
    assert rooms[0].packers == 1
    assert rooms[-1].packers == 4
    assert [room.block for room in rooms] == sorted(room.block for room in rooms)
    assert rooms[-1].block == memory.LARGEST_BLOCK
    assert rooms[-1].packed == memory.PACKED_BLOCK
    for room, limit in zip(rooms, (240, 400, 1000, 10_000), strict=True):
        assert 2 * room.packed + room.packers * room.block < (limit - 200) * 10**6


def test_blocks_stay_until_their_share_or_the_process_is_full(monkeypatch):
    held = [200 * 10**6]
    monkeypatch.setattr(memory, "resident", lambda: held[0])
    room = memory.Room(10**9, 1)
    assert room.keeps(300 * 10**6)
    assert not room.keeps(300 * 10**6)
    assert room.keeps(10**6)
    held[0] = 990 * 10**6
    assert not room.keeps(10**6)


@pytest.mark.parametrize(("limit", "n_public", "stays"), [
    (None, None, True), (10**9, None, False), (10**9, 3000, True),
])  # fmt: skip
def test_blocks_leave_what_a_model_may_ask_for_later_under_a_limit(
    monkeypatch, limit, n_public, stays
):
    """30 numbers may take 2 GB: how much is bought of them depends on the number of records."""
    monkeypatch.setattr(memory, "resident", lambda: 200 * 10**6)
    answers, keeps = [], memory.Room.keeps

    def noted(room, length):
        answers.append(keeps(room, length))
        return answers[-1]

    monkeypatch.setattr(memory.Room, "keeps", noted)
    X, y = np.random.default_rng(0).normal(size=(3000, 30)), np.arange(3000) % 2
    schema = Schema({f"x{i}": Numeric(bins="auto") for i in range(30)})
    model = LogisticRegression(
        1.0, 1e-6, domain=schema, classes=[0, 1], solver="additive", n_public=n_public
    )
    model.fit(Stream(X, memory_limit=limit), y)
    assert answers[0] is stays  # of the first reading


def test_the_reader_counts(monkeypatch):
    monkeypatch.setattr(memory, "resident", lambda: 200 * 10**6)
    memory.Room(300 * 10**6, 1, reader=50 * 10**6)
    with pytest.raises(ValueError, match="pass memory_limit='350MB' or more"):
        memory.Room(300 * 10**6, 1, reader=70 * 10**6)
    again = memory.Room(300 * 10**6, 1, reader=10**9, again=True)
    assert again.block > 0


def test_memory_is_given_back_near_the_limit(monkeypatch):
    held, calls = [200 * 10**6], []
    monkeypatch.setattr(memory, "resident", lambda: held[0])
    room = memory.Room(10**9, 1)
    monkeypatch.setattr(memory, "give_back", lambda: calls.append(1))
    room.tidy()
    held[0] = 10**9
    room.tidy()
    assert calls == [1]


def test_without_a_limit_a_process_of_any_size_may_stream(monkeypatch):
    monkeypatch.setattr(memory, "resident", lambda: 1 << 45)
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    assert KMeans(2, 1.0, domain=Box(-1, 1)).fit(Stream(X)).cluster_centers_.shape == (2, 2)


def test_a_system_that_reports_nothing_streams_as_well(monkeypatch):
    monkeypatch.setattr(memory, "_trim", lambda: None)
    monkeypatch.setattr("builtins.open", lambda *_, **__: (_ for _ in ()).throw(OSError))
    assert memory.resident() == 0
    memory.give_back()
    assert memory.Room(10**8, 2).block > 0


def test_records_that_were_read_before_the_charge_are_not_refused_after_it(monkeypatch):
    """A fit that buys blanks reads its stream again, when the process may hold more than before."""
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))

    def objective(stream: Stream) -> Any:
        return privfit.CentersObjective(stream, 2, Box(-1, 1))

    stream, P = Stream(X, memory_limit="8GB").of_a_fit(), np.zeros((1, 2, 2))
    before = objective(stream).scores(P)
    monkeypatch.setattr(memory, "resident", lambda: 8 * 10**9)
    np.testing.assert_array_equal(objective(stream).scores(P), before)
    with pytest.raises(ValueError, match="must leave room to read and pack a block"):
        objective(Stream(X, memory_limit="8GB"))
