"""The benchmarks' machinery: sides agree before a race, results survive, pages show them."""

from __future__ import annotations

import ast
import csv
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.places import ROOT

if not (ROOT / "bench" / "speed").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench import __main__ as command
from bench import accuracy, columns, coverage, measure, pages, peers, pictures, results, speed
from bench.accuracy import targets, tasks
from bench.accuracy.tasks import Cell
from bench.command import chosen, in_time
from bench.peers import contestants, noisy_descent
from bench.speed.cases import Case, Ready

CELLS = [Cell("linear", "spambase", "Objective", e, 0.0) for e in (0.1, 1.0)]


@pytest.fixture(autouse=True)
def one_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stamp that takes no look at the sources."""
    known = {"date": "2026-01-02", "commit": "abc", "digest": "12345678", "machine": "a machine"}
    monkeypatch.setattr(results, "stamp", lambda: known)


def options(*arguments: str) -> Any:
    return command.parse(["accuracy", "--jobs", "1", *arguments])


def doubled(cell: Cell, seed: int) -> tuple[float, float]:
    return 2 * cell.epsilon + seed / 8, 0.25


# -------------------------------------------------------------------------------------- the command


def test_every_subject_takes_the_same_options_and_lists_its_cells(capsys: Any) -> None:
    for subject in command.SUBJECTS:
        command.main([subject, "--list"])
        assert len(capsys.readouterr().out.splitlines()) > 8


def test_results_go_to_a_folder_or_to_the_committed_ones() -> None:
    assert options().out == Path("found")
    assert options("--out", "a").out == Path("a")
    assert options("--out", "a", "--write").out == results.FOLDER
    assert options("--out", "a", "--write", "--quick").out == Path("a")


def test_cells_are_chosen_by_name_or_listed_and_begun_while_there_is_time(capsys: Any) -> None:
    names = ["one", "two", "three"]
    assert chosen(options("--filter", "t"), names, str) == ["two", "three"]
    assert chosen(options("--filter", "t", "--list"), names, str) == []
    assert chosen(options("--filter", "nothing"), names, str, str.upper) == []
    assert capsys.readouterr().out.split() == ["two", "three", "ONE", "TWO", "THREE"]
    assert list(in_time(options(), names)) == names
    assert list(in_time(options("--minutes", "0"), names)) == []


# ------------------------------------------------------------------------------------------ results


def opened(folder: Path) -> results.Results:
    return results.Results(folder / "a.csv", ("name", "threads"), ("best", "note"))


def test_a_line_is_on_disk_at_once_and_replaced_when_it_is_measured_again(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.add({"name": "one, two", "threads": 2, "best": 0.123456789}, load=0.5)
    kept.add({"name": "three", "threads": 2, "best": None})
    kept.add({"name": "one, two", "threads": 2, "best": 3.0, "note": "again"})
    again = opened(tmp_path)
    assert list(again) == list(kept)
    assert [row["name"] for row in again] == ["one, two", "three"]
    row = again.get("one, two", 2)
    assert row is not None
    assert (row["best"], row["note"], row["load"], row["commit"]) == ("3", "again", "", "abc")
    assert again.fresh("three", 2)
    assert not again.fresh("four", 2)
    with pytest.raises(KeyError, match=r"row has columns \['worst'\] that a.csv has not"):
        kept.add({"name": "five", "threads": 1, "worst": 1.0})


def test_numbers_by_seed_survive_as_a_text() -> None:
    values = [0.25, None, 12345.678]
    assert results.parsed(results.joined(values)) == [0.25, None, 12345.7]


def test_a_file_is_whole_at_any_time(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.add({"name": "one", "threads": 1})
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_text_goes_between_its_markers_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- a: begin -->\nold\n<!-- a: end -->\nbelow\n")
    pages.refresh(page, "new\n", "a")
    assert page.read_text() == "above\n<!-- a: begin -->\nnew\n<!-- a: end -->\nbelow\n"
    with pytest.raises(SystemExit, match="lacks the markers"):
        pages.refresh(page, "new\n", "b")


def committed() -> list[Path]:
    return sorted((ROOT / "bench" / "results").rglob("*.csv"))


@pytest.mark.parametrize("path", committed(), ids=lambda path: path.stem)
def test_committed_results_are_stamped_lines_of_distinct_cells(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        assert None not in row
        assert None not in row.values()
        assert row["date"]
        assert row["machine"]
    keys = {"speed": speed.KEY, "coverage": coverage.KEY,
            **dict.fromkeys(("accuracy", "columns", "rules", "peers"), accuracy.KEY)}  # fmt: skip
    key = keys.get(path.stem, tuple(rows[0])[: 4 if path.parent.name == "papers" else 1])
    assert len({tuple(row[name] for name in key) for row in rows}) == len(rows)


# ------------------------------------------------------------------------------------------- stamps


def test_a_digest_changes_with_any_source_and_not_with_words(tmp_path: Path) -> None:
    def digest(name: str, **files: str) -> str:
        folder = tmp_path / name
        for stem, text in files.items():
            path = folder / stem.replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return measure.digest(folder)

    first = digest(
        "a", a__py='"""Words."""\nx = 1  # one\n', k__pyx="# top\ncdef int f(): return 1\n"
    )
    assert first == digest("b", a__py="x = 1\n", k__pyx="cdef int f(): return 1  # same\n")
    assert first != digest("c", a__py="x = 2\n", k__pyx="cdef int f(): return 1\n")
    assert first != digest("d", a__py="x = 1\n", k__pyx="cdef int f(): return 2\n")
    assert first != digest("e", a__py="x = 1\n", k__pyx="cdef int f(): return 1\n", b__py="")


def test_the_first_folder_with_a_file_counts(tmp_path: Path) -> None:
    for folder, text in (("installed", "x = 1\n"), ("clone", "x = 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(text)
    both = measure.digest(tmp_path / "installed", tmp_path / "clone")
    assert both == measure.digest(tmp_path / "installed")


# -------------------------------------------------------------------------------------------- speed


def test_a_race_interleaves_and_drops_hopeless_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    order: list[str] = []

    def taking(name: str, seconds: float) -> Any:
        def call() -> None:
            order.append(name)
            clock[0] += seconds

        return call

    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(measure.time, "sleep", lambda _: None)
    calls = {"quick": taking("quick", 1.0), "slow": taking("slow", 9.0), "ours": taking("ours", 20)}
    taken = measure.race(calls, 3)
    assert order == ["quick", "slow", "ours", "quick", "ours", "quick", "ours"]
    assert (taken["quick"].best, taken["quick"].median, len(taken["slow"].walls)) == (1.0, 1.0, 1)


def fake_case(theirs: int) -> Case:
    def build(threads: int, scale: float) -> Ready:
        return Ready("3", lambda: 1, {"theirs": lambda: theirs}, speed.cases.same)

    return Case("kernels", "fake", build, 2.0, 4.0)


def test_sides_that_disagree_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "race", lambda *_: pytest.fail("timed"))
    with pytest.raises(AssertionError, match="theirs differs"):
        speed.measured(fake_case(2), 1, 1.0, 1)


@pytest.mark.parametrize(
    ("ratio", "load", "repeat", "told"),
    [(5, 0, 9, "goal"), (3, 0, 9, "target"), (1, 0, 9, "short"), (3, 0.2, 9, "target?"),
     (3, 0, 2, "-")],
)  # fmt: skip
def test_verdicts_need_rounds_and_doubt_a_busy_machine(
    tmp_path: Path, ratio: float, load: float, repeat: int, told: str
) -> None:
    taken = {"theirs": measure.Taken([ratio], [ratio]), "ours": measure.Taken([1.0], [1.0])}
    case = fake_case(1)
    row = speed.row_of(case, case.make(), taken, 1, 1.0, repeat, None)
    assert speed.verdict(speed.open_results(tmp_path).add(row, load)) == told


def test_a_bench_that_dies_has_kept_every_cell_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def dies(case: Case, threads: int, *_: Any) -> Any:
        if len(done) == 2:
            raise RuntimeError("the third cell")
        done.append(case.name)
        return {"group": case.group, "name": case.name, "threads": threads, "repeat": 1}, None

    monkeypatch.setattr(speed, "measured", dies)
    monkeypatch.setattr(measure, "sample", lambda *_: measure.Limits(1, 1.0, 1.0))
    with pytest.raises(RuntimeError, match="the third cell"):
        command.main(["speed", "--out", str(tmp_path), "--threads", "1"])
    assert [row["name"] for row in speed.open_results(tmp_path)] == done


@pytest.mark.few(3)
@pytest.mark.parametrize("name", [case.name for case in speed.CASES.values()
                                  if case.group in ("kernels", "searches")])  # fmt: skip
def test_both_sides_of_a_case_agree_on_few_records(name: str) -> None:
    ready = speed.CASES[name].make(2, 0.001)
    try:
        result = ready.ours()
        for rival, call in ready.rivals.items():
            ready.agree(result, rival, call())
    finally:
        ready.close()


# ----------------------------------------------------------------------------------------- accuracy


def test_cells_that_are_there_are_not_measured_again_unless_the_code_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = accuracy.open_results(tmp_path)
    assert accuracy.measure_cells(kept, CELLS, 3, options(), doubled) == 2
    assert accuracy.Found(kept).values(CELLS[1]) == {0: 2.0, 1: 2.125, 2: 2.25}
    again = accuracy.open_results(tmp_path)
    assert accuracy.measure_cells(again, CELLS, 3, options(), doubled) == 0
    assert accuracy.measure_cells(again, CELLS[:1], 4, options(), doubled) == 1  # a seed more
    monkeypatch.setattr(results, "stamp", lambda: {"digest": "other", "date": "2026-01-03"})
    assert accuracy.measure_cells(again, CELLS, 3, options("--keep"), doubled) == 0
    assert accuracy.measure_cells(again, CELLS, 3, options(), doubled) == 2


def test_a_refusal_is_kept_and_no_cell_is_begun_after_the_minutes(
    tmp_path: Path, capsys: Any
) -> None:
    def refused(cell: Cell, seed: int) -> tuple[float, float]:
        raise ValueError("epsilon must be larger")

    kept = accuracy.open_results(tmp_path)
    assert accuracy.measure_cells(kept, CELLS, 1, options("--minutes", "0"), refused) == 0
    assert accuracy.measure_cells(kept, CELLS, 1, options("--minutes", "1e-9"), refused) == 1
    assert "epsilon must be larger" in capsys.readouterr().err
    assert accuracy.Found(kept).values(CELLS[0]) == {}
    assert accuracy.known_seeds(kept, CELLS[0], keep=False) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    found = []
    for jobs in ("1", "2"):
        kept = accuracy.open_results(tmp_path / jobs)
        accuracy.measure_cells(kept, CELLS, 2, options("--jobs", jobs))
        found.append([accuracy.Found(kept).values(cell) for cell in CELLS])
    assert found[0] == found[1]


@pytest.mark.parametrize("task", tasks.TASKS)
def test_every_cell_of_a_task_is_named_once(task: str) -> None:
    found = list(tasks.product(task))
    kind = tasks.TASKS[task]
    assert len(found) == len(set(found)) == len({cell.key for cell in found})
    assert {cell.data for cell in found} == set(kind.data)
    assert {cell.solver for cell in found} == {*kind.solvers, *kind.references}


def test_targets_name_cells_of_the_table_and_the_untuned_data_first() -> None:
    found = list(targets.all_targets())
    assert {t.cell for t in found} <= set(tasks.product("linear"))
    tuned = [not t.cell.data.startswith(targets.UNTUNED) for t in found]
    assert tuned == sorted(tuned)
    asked = {(t.cell.data, t.cell.delta, t.cell.epsilon): t.target for t in found}
    assert asked["adult, no bins", 1e-6, 1.0] == 0.845  # asked outright
    assert asked["mushroom", 1e-6, 0.3162] == pytest.approx(0.9783 - 0.005)  # add_remove comes last


def test_the_quick_cells_exist() -> None:
    quick = set(tasks.quick_cells())
    assert quick <= set(tasks.all_cells())
    assert {cell.task for cell in quick} == set(tasks.QUICK)


def test_verdicts_follow_the_interval_of_the_difference() -> None:
    assert pages.verdict([0.1, 0.11, 0.12]) == "holds"
    assert pages.verdict([-0.1, -0.11, -0.12], "reversed") == "reversed"
    assert pages.verdict([-0.1, 0.1]) == "undecided"
    assert pages.verdict([0.1]) == "undecided"


@pytest.mark.parametrize("page", ["speed", "accuracy", "clusters", "peers", "columns"])
def test_pages_show_the_committed_results(page: str) -> None:
    text = (pages.PAGES / f"{page}.md").read_text(encoding="utf-8")
    if page == "speed":
        lines = list(speed.sections(speed.open_results(results.FOLDER)))
    elif page == "columns":
        lines = list(columns.sections(accuracy.open_results(results.FOLDER, "columns")))
    elif page == "peers":
        kept = accuracy.open_results(results.FOLDER, "peers")
        lines = list(peers.sections(kept, peers.contests(None)))
    else:
        found = accuracy.Found(accuracy.open_results(results.FOLDER))
        lines = list(accuracy.solver_lines(found, ("kmeans",) if page == "clusters" else ("svm",)))
    assert len(lines) > 5
    assert "\n".join(lines).strip() in text


# ------------------------------------------------------------------------------------------ imports


def test_no_bench_imports_from_the_tests() -> None:
    tests = {"tests", "makers", "reference", "conftest"}
    for path in (ROOT / "bench").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {node.module or ""}
            else:
                continue
            assert not {name.partition(".")[0] for name in names} & tests, path


# -------------------------------------------------------------------------------------------- peers


def contest(gap: float) -> peers.Contest:
    """Ours finds 0.8, the peer a gap more, in every seed a little differently."""

    def ours(cell: Cell, seed: int) -> tuple[float, float]:
        return 0.8 + seed / 100, 0.02

    def theirs(cell: Cell, seed: int) -> tuple[float, float]:
        return 0.8 + seed / 100 + gap + seed / 1000, 0.01

    peer = peers.Peer(theirs, 0.0)
    return peers.Contest("linear", ("adult",), ours, (0.0, 1e-6), "replace", {"theirs": peer})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("gap", "marks"),
    [(0.05, "**PEER AHEAD**"), (-0.05, "ours"), (-0.001, "within the interval")],
)
def test_a_peer_ahead_is_marked_against_each_of_our_budgets(
    tmp_path: Path, gap: float, marks: str
) -> None:
    held = contest(gap)
    kept = accuracy.open_results(tmp_path, "peers")
    accuracy.measure_cells(kept, held.cells("adult", 1.0), 3, options(), held.fit)
    rows = list(peers.compared(accuracy.Found(kept), held, "adult", 1.0))
    told = [row[-1] for row in rows if row[-1]]
    assert len(told) == 2  # against our pure fit and against that with delta
    assert all(marks in each for each in told)


def test_a_missing_interpreter_is_refused_with_the_way_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"run python -m bench peers --setup"):
        contestants.Worker(tmp_path / "python")
    cell = Cell("kmeans", "s1", "diffprivlib", 1.0, 0.0, "add_remove")
    assert not peers.at_hand(cell, None)


@pytest.mark.slow
def test_a_worker_hands_each_table_over_once_and_under_a_name_of_its_own(tmp_path: Path) -> None:
    """A second table once had the first one's name, and was never read."""
    (tmp_path / "diffprivlib").mkdir()
    (tmp_path / "diffprivlib" / "__init__.py").write_text("__version__ = '0'\n")
    (tmp_path / "diffprivlib" / "models.py").write_text(
        "import numpy as np\n"
        "class KMeans:\n"
        "    def __init__(self, k, **settings): self.k = k\n"
        "    def fit(self, X): self.cluster_centers_ = X[:self.k]\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    worker = contestants.Worker(python)
    settings = {"model": "kmeans", "k": 1, "epsilon": 1.0, "seed": 0, "low": 0, "high": 1}
    found = [
        worker.ask(key, lambda key=key: {"X": np.full((3, 2), float(key))}, **settings)["centers"]
        for key in (1, 1, 2)
    ]
    worker.close()
    assert found == [[[1.0, 1.0]], [[1.0, 1.0]], [[2.0, 2.0]]]
    assert worker.versions["diffprivlib"] is None  # no package of this name is installed there


def test_googles_clustering_gets_our_records_budget_and_radius(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}
    module, parts = types.ModuleType("clustering"), types.SimpleNamespace
    module.clustering_params = parts(  # type: ignore[attr-defined]
        Data=lambda **data: given.update(data) or given,
        DifferentialPrivacyParam=lambda **budget: given.update(budget) or given,
    )
    module.clustering_algorithm = parts(  # type: ignore[attr-defined]
        private_lsh_clustering=lambda k, data, budget: parts(centers=data["datapoints"][:k])
    )
    monkeypatch.setitem(sys.modules, "clustering", module)
    X = np.random.default_rng(0).uniform(-1, 1, (15, 2))
    monkeypatch.setattr(contestants.clusters, "records", lambda name: X)
    value, _ = contestants.google_kmeans(Cell("kmeans", "s1", "Google, LSH", 0.5, 1e-6), 0)
    assert value == pytest.approx(0.0, abs=1e-12)  # k = 15 records, each its own centre
    assert (given["epsilon"], given["delta"], given["radius"]) == (0.5, 1e-6, math.sqrt(2))


def test_numpys_noisy_descent_learns_and_its_noise_grows_with_the_sensitivity() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (4000, 3)).astype(np.float32)
    y = (X[:, 0] > X[:, 1]).astype(np.int64)
    settings = noisy_descent.settings_for(1.0)
    w = noisy_descent.fit(X, y, 1.0, 1e-6, "replace", 0, settings)
    assert noisy_descent.accuracy(w, X, y) > 0.9
    empty, none = np.zeros((1, 3), np.float32), np.array([0])
    still = noisy_descent.Descent(1, 0.2, 1.0)  # one step: the noise, and next to nothing else
    lengths = [
        np.linalg.norm(noisy_descent.fit(empty, none, 0.1, 1e-6, adjacency, 0, still))
        for adjacency in ("replace", "add_remove")
    ]
    assert lengths[0] / lengths[1] == pytest.approx(2, rel=0.05)


# --------------------------------------------------------------------------------- asv and pictures


def test_a_line_of_scaling_keeps_the_other_sizes_at_their_least() -> None:
    names = ["layout", "n", "m"]
    times = {("'dense'", "10", "5"): 1.0, ("'dense'", "20", "5"): 2.0, ("'dense'", "10", "50"): 9.0,
             ("'codes'", "10", "5"): 0.5}  # fmt: skip
    assert list(pictures.lines_along("n", names, times)) == [("dense", [10.0, 20.0], [1.0, 2.0])]
    assert list(pictures.lines_along("m", names, times)) == [("dense", [5.0, 50.0], [1.0, 9.0])]
    assert list(pictures.lines_along("threads", names, times)) == []


@pytest.mark.few(4)
@pytest.mark.parametrize("module", ["kernels", "fits"])
def test_benchmarks_of_asv_run_at_their_smallest_point(module: str) -> None:
    import importlib

    found = importlib.import_module(f"bench.asv.{module}")
    kinds = [each for each in vars(found).values()
             if isinstance(each, type) and getattr(each, "params", None)]  # fmt: skip
    assert len(kinds) > 3
    for kind in kinds[:1]:
        assert len(kind.params) == len(kind.param_names)
        point = [values[0] for values in kind.params]
        one = kind()
        one.setup(*point)
        for name in dir(one):
            if name.startswith(("time_", "peakmem_")):
                getattr(one, name)(*point)
