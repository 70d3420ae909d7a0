"""The benchmarks' machinery: results survive, stale ones are known, peers are marked when ahead."""

from __future__ import annotations

import json
import math
import sys
import types
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.places import ROOT

if not (ROOT / "bench" / "datasets.py").exists():
    pytest.skip("no benchmarks beside these tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test

from bench import (
    accuracy,
    cells,
    chain,
    contestants,
    datasets,
    fits,
    kernels,
    machine,
    noisy_descent,
    peers,
    plain_chain,
    results,
    stamps,
    targets,
)
from bench.cells import Cell
from bench.store import Store, run
from privfit.clustering.postprocess import mcmc

POINTS = [Cell("linear", "spambase", "Objective", e, 0.0) for e in (0.1, 1.0)]


def opened(folder: Path, mark: str = "one") -> Store:
    return Store(folder / "a.json", folder / "a.jsonl", lambda cell: mark)


def doubled(cell: Cell, seed: int) -> tuple[float, float]:
    return 2 * cell.epsilon + seed / 8, 0.25


# ------------------------------------------------------------------------------------------- store


def test_a_new_store_finds_what_an_earlier_one_was_given(tmp_path: Path) -> None:
    first = opened(tmp_path)
    run(first, first.missing(POINTS, 3), fit=doubled)
    second = opened(tmp_path)
    assert second.results == first.results
    assert second.values(POINTS[1]) == {0: 2.0, 1: 2.125, 2: 2.25}
    assert second.missing(POINTS, 3) == []
    assert second.missing(POINTS, 4) == [(cell, 3) for cell in POINTS]


def test_a_run_that_is_stopped_loses_the_fit_under_way_alone(tmp_path: Path) -> None:
    def stopped(cell: Cell, seed: int) -> tuple[float, float]:
        if seed == 1:
            raise KeyboardInterrupt
        return doubled(cell, seed)

    first = opened(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(first, first.missing(POINTS, 2), fit=stopped)
    assert opened(tmp_path).missing(POINTS, 2) == [(cell, 1) for cell in POINTS]


def test_a_line_that_was_cut_is_dropped_and_the_next_starts_on_its_own(tmp_path: Path) -> None:
    first = opened(tmp_path)
    run(first, first.missing(POINTS, 1), fit=doubled)
    whole = first.journal.read_text()
    first.journal.write_text(whole[:-9])
    second = opened(tmp_path)
    assert second.missing(POINTS, 1) == [(POINTS[1], 0)]
    run(second, second.missing(POINTS, 1), fit=doubled)
    assert opened(tmp_path).results == first.results


def test_the_committed_file_has_the_same_results_and_replaces_the_journal(tmp_path: Path) -> None:
    first = opened(tmp_path)
    everywhere = [*POINTS, Cell("linear", "spambase", "not private")]
    run(first, first.missing(everywhere, 3), fit=lambda cell, seed: (0.5 + seed / 8, 0.25))
    first.write()
    assert not first.journal.exists()
    assert opened(tmp_path).results == first.results
    rows = json.loads(first.path.read_text())["rows"]
    assert len(rows) == 2  # a row for each solver, not for each epsilon
    assert {row["cell"][2] for row in rows} == {"Objective", "not private"}


def test_results_of_other_code_are_stale_and_fitted_again_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    old = opened(tmp_path, "one")
    run(old, old.missing(POINTS, 1), fit=doubled)
    new = opened(tmp_path, "two")
    assert len(new.missing(POINTS, 1)) == 2
    assert new.missing(POINTS, 1, keep_stale=True) == []
    assert new.values(POINTS[0]) == {0: 0.2}
    assert new.values(POINTS[0], stale=False) == {}
    run(new, [(POINTS[0], 0)], fit=doubled)
    assert opened(tmp_path, "two").missing(POINTS, 1) == [(POINTS[1], 0)]


def test_a_refusal_is_kept_and_not_asked_for_again(tmp_path: Path, capsys: Any) -> None:
    def refused(cell: Cell, seed: int) -> tuple[float, float]:
        raise ValueError("epsilon must be larger")

    first = opened(tmp_path)
    run(first, first.missing(POINTS, 1), fit=refused)
    assert "epsilon must be larger" in capsys.readouterr().err
    assert first.missing(POINTS, 1) == []
    assert first.values(POINTS[0]) == {}
    assert "2 refused" in next(accuracy.status(first, POINTS, 1))


@pytest.mark.slow
def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    one, two = (Store(tmp_path / f"{n}.json", tmp_path / f"{n}.jsonl") for n in (1, 2))
    jobs = one.missing(POINTS, 2)
    assert run(one, jobs) == run(two, jobs, processes=2) == 4
    assert {job: r.value for job, r in one.results.items()} == {
        job: r.value for job, r in two.results.items()
    }


def test_no_fit_is_begun_after_the_limit(tmp_path: Path) -> None:
    first = opened(tmp_path)
    assert run(first, first.missing(POINTS, 3), fit=doubled, limit=-1) == 1


# ------------------------------------------------------------------------------------------- cells


@pytest.mark.slow
@pytest.mark.parametrize("task", cells.TASKS)
def test_every_cell_of_a_task_is_named_once_and_has_a_fingerprint(task: str) -> None:
    found = list(cells.product(task))
    kind = cells.TASKS[task]
    assert len(found) == len(set(found))
    assert {cell.data for cell in found} == set(kind.data)
    assert {cell.solver for cell in found} == {*kind.solvers, *kind.references}
    marks = {solver: cells.fingerprint(Cell(task, "", solver)) for solver in kind.solvers}
    assert len(set(marks.values())) == len(marks)


@pytest.mark.few(1)
@pytest.mark.parametrize("task", cells.TASKS)
def test_the_entrances_of_a_task_reach_its_solvers_and_the_kernels(task: str) -> None:
    kind = cells.TASKS[task]
    reached = stamps.ours().reached(map(stamps.file_of, kind.entrances))
    models = [getattr(model, "settings", model) for model in kind.solvers.values()]
    settings = [model for model in models if type(model).__module__.startswith("privfit.")]
    assert {stamps.file_of(type(each)) for each in settings} <= reached
    assert ROOT / "privfit" / "_kernels" / "lanes.h" in reached


def test_targets_name_cells_of_the_table_and_the_untuned_data_first() -> None:
    found = list(targets.targets())
    assert {t.cell for t in found} <= set(cells.product("linear"))
    tuned = [not t.cell.data.startswith(targets.UNTUNED) for t in found]
    assert tuned == sorted(tuned)
    asked = {(t.cell.data, t.cell.delta, t.cell.epsilon): t.asked for t in found}
    assert asked["adult, no bins", 1e-6, 1.0] == 0.845  # asked outright
    assert asked["mushroom", 1e-6, 0.3162] == pytest.approx(0.9783 - 0.005)  # add_remove comes last


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_a_slice_runs_is_shown_and_is_not_run_again(tmp_path: Path, capsys: Any) -> None:
    chosen = ["--tasks", "linear,features", "--data", "spambase;sms_spam",
              "--solvers", "Objective;total count", "--epsilons", "1", "--deltas", "0",
              "--adjacencies", "replace", "--seeds", "2", "--jobs", "1", "--sections", "table",
              "--store", str(tmp_path)]  # fmt: skip
    accuracy.main([*chosen, "--write"])
    first = capsys.readouterr().out
    assert "linear: spambase, replace; test accuracy; not private 0." in first
    assert "| Objective | 0." in first
    accuracy.main([*chosen, "--status"])
    assert "linear: 6 of 6 fits, 0 stale, 0 missing, 0 refused" in capsys.readouterr().out
    accuracy.main([*chosen, "--no-run"])
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--sections", "tables", "must be among generations; papers"),
        ("--data", "adult, few bins", "must be among adult; adult, no bins"),
        ("--solvers", "Local, auto", "must be among DPSGA; DPSGA 10"),  # a comma is no separator
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(
    option: str, value: str, told: str, capsys: Any
) -> None:
    with pytest.raises(SystemExit):
        accuracy.parse([option, value])
    assert told in capsys.readouterr().err


def test_unknown_contestants_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    options = peers.parse(["--contestants", "theirs;nobody"])
    with pytest.raises(SystemExit, match=r"\{'nobody'\}\) must be among auto; theirs"):
        peers.jobs(opened(tmp_path), contest(0.0), options)


def test_the_quick_profile_names_cells_that_exist() -> None:
    for task, (data, solvers) in accuracy.QUICK.items():
        assert set(data) <= set(cells.TASKS[task].data)
        assert set(solvers) <= set(cells.TASKS[task].solvers)


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_a_data_set_can_be_declared_without_bins_or_with_equal_ones() -> None:
    plain, binned = datasets.load("adult, no bins"), datasets.load("adult, 8 bins")
    assert plain.schema.width == 108
    assert binned.schema.width == 108 - 6 + 48
    with pytest.raises(ValueError, match=r"form \('few bins'\) must be 'no bins' or '8 bins'"):
        datasets.load("adult, few bins")


def test_verdicts_follow_the_interval_of_the_difference() -> None:
    assert accuracy.verdict([0.1, 0.11, 0.12]) == "holds"
    assert accuracy.verdict([-0.1, -0.11, -0.12]) == "reversed"
    assert accuracy.verdict([-0.1, 0.1]) == "undecided"
    assert accuracy.verdict([0.1]) == "-"


# ------------------------------------------------------------------------------------------ stamps

FLAT = {
    "__init__.py": "from shop.fit import Fit\n",
    "fit.py": (
        '"""Fits."""\n'
        "import numpy as np\n"
        "from typing import TYPE_CHECKING\n"
        "from shop import noise\n"
        "from shop._kernels import tiles\n"
        "from shop.limits import LOW as low, HIGH\n"
        "if TYPE_CHECKING:\n"
        "    from shop.colours import Colour\n"
        "class Fit:\n"
        "    def run(self, colour: 'Colour'):\n"
        "        return np.clip(tiles.sums(noise.SCALE), low, HIGH)\n"
    ),
    "noise.py": "SCALE = 2.5\n",
    "limits.py": "LOW = 0\nHIGH = 9\n",
    "colours.py": "class Colour:\n    pass\n",
    "report.py": "from shop.fit import Fit\nTITLE = 'what was found'\n",
    "_kernels/__init__.py": "",
    "_kernels/tiles.pyx": (
        "from shop._kernels.lanes cimport lane\n\ndef sums(x):  # of all\n    return lane(x) // 2\n"
    ),
    "_kernels/lanes.pxd": 'cdef extern from "lanes.h":\n    int lane(int x)\n',
    "_kernels/lanes.h": "#include <math.h>\n/* Twice,\n   or so. */\n#define lane(x) (2 * (x))\n",
}
ROOMS = {
    "__init__.py": "from shop.fits.fit import Fit\n",
    "fits/__init__.py": '"""Fits."""\nfrom .fit import Fit\n__all__ = ["Fit"]\n',
    "fits/fit.py": (
        '"""Fits, in a room."""\n'
        "import numpy\n\n"
        "from ..privacy import budget_noise  # renamed\n"
        "from shop._kernels import tiles as kernels\n"
        "from shop.base import HIGH as top, LOW, Colour\n\n\n"
        "class Fit:\n"
        '    """Of records."""\n\n'
        "    def run(self, colour: 'Colour'):\n"
        "        # now with a comment\n"
        "        return numpy.clip(kernels.sums(budget_noise.SCALE), LOW, top)\n"
    ),
    "privacy/__init__.py": "",
    "privacy/budget_noise.py": "SCALE = 2.5\n",
    "base/__init__.py": (
        "from shop.base.limits import HIGH, LOW\n"
        "from shop.base.colours import Colour\n"
        "from shop.base.report import TITLE\n"
    ),
    "base/limits.py": "HIGH = 9\n\nLOW = 0\n",
    "base/colours.py": FLAT["colours.py"],
    "base/report.py": FLAT["report.py"],
    "_kernels/__init__.py": "",
    "_kernels/tiles.pyx": (
        "# Tiles.\nfrom shop._kernels.lanes cimport (\n    lane,\n)\n"
        "def sums(x):\n    return lane(x) // 2\n"
    ),
    "_kernels/lanes.pxd": FLAT["_kernels/lanes.pxd"],
    "_kernels/lanes.h": "#define lane(x) (2 * (x))  // twice\n",
}


def stamped(folder: Path, files: dict[str, str], start: str) -> str:
    for name, text in files.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return stamps.Package("shop", (folder,)).stamp([folder / "shop" / start])


def test_a_stamp_stays_when_modules_are_moved_renamed_and_described(tmp_path: Path) -> None:
    flat = stamped(tmp_path / "flat", FLAT, "fit.py")
    assert stamped(tmp_path / "rooms", ROOMS, "fits/fit.py") == flat


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("noise.py", "2.5", "2.6"),
        ("fit.py", "LOW as low, HIGH", "HIGH as low, HIGH"),  # a name that means something else
        ("fit.py", "numpy as np", "math as np"),
        ("fit.py", "np.clip", "np.add"),
        ("_kernels/tiles.pyx", "// 2", "// 3"),
        ("_kernels/lanes.h", "(2 * (x))", "(4 * (x))"),
    ],
)
def test_a_stamp_changes_with_what_the_code_does(
    tmp_path: Path, file: str, old: str, new: str
) -> None:
    changed = FLAT | {file: FLAT[file].replace(old, new)}
    assert changed != FLAT
    first, second = (stamped(tmp_path / str(i), f, "fit.py") for i, f in enumerate((FLAT, changed)))
    assert first != second


def test_a_stamp_does_not_know_what_is_not_imported(tmp_path: Path) -> None:
    changed = FLAT | {"report.py": "TITLE = 'another'\n", "__init__.py": "VERSION = 2\n"}
    first, second = (stamped(tmp_path / str(i), f, "fit.py") for i, f in enumerate((FLAT, changed)))
    assert first == second


# ----------------------------------------------------------------------------------------- imports


def test_no_bench_imports_itself_through_others() -> None:
    package = stamps.Package("bench", (ROOT,))
    files = (ROOT / "bench").glob("*.py")
    TopologicalSorter({path: package.imported(path) for path in files}).prepare()


def test_no_bench_imports_from_the_tests() -> None:
    package = stamps.Package("bench", (ROOT,))
    bound = (each for path in (ROOT / "bench").glob("*.py") for each in package.bound(path))
    tests = {"tests", "makers", "reference", "conftest"}
    assert {each.module.partition(".")[0] for each in bound} & tests == set()


# ------------------------------------------------------------------------------------------- peers


def contest(gap: float) -> dict[str, peers.Contest]:
    """Ours finds 0.8, the peer a gap more, in every seed a little differently."""

    def ours(cell: Cell, seed: int) -> tuple[float, float]:
        return 0.8 + seed / 100, 0.02

    def theirs(cell: Cell, seed: int) -> tuple[float, float]:
        return 0.8 + seed / 100 + gap + seed / 1000, 0.01

    peer = peers.Peer(theirs, 0.0, lambda _: "theirs")
    held = peers.Contest("linear", ("adult",), ours, (0.0, 1e-6), "replace", {"theirs": peer})
    return {"linear": held}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("gap", "marks"),
    [(0.05, "**PEER AHEAD**"), (-0.05, "ours"), (-0.001, "within the interval")],
)
def test_a_peer_ahead_is_marked_against_each_of_our_budgets(
    tmp_path: Path, gap: float, marks: str
) -> None:
    held = contest(gap)
    arena = peers.Arena(held)
    kept = Store(tmp_path / "p.json", tmp_path / "p.jsonl", arena.fingerprint)
    options = peers.parse(["--epsilons", "1", "--seeds", "3"])
    work = peers.jobs(kept, held, options)
    assert [job[1] for job in work] == sorted(job[1] for job in work)  # seed by seed: in turns
    run(kept, work, fit=arena.fit)
    rows = list(peers.compared(accuracy.Found(kept, 3), held["linear"], "adult", 1.0))
    told = [row[-1] for row in rows if row[-1]]
    assert len(told) == 2  # against our pure fit and against that with delta
    assert all(marks in each for each in told)
    assert all("*" not in row[4] for row in rows)  # none is stale


def test_a_missing_interpreter_is_refused_with_the_way_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"run bench/peers.py --setup, or leave its peers out"):
        contestants.Worker(tmp_path / "python")


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
    assert worker.versions["diffprivlib"] == "0"


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


# ------------------------------------------------------------------------------------------- chain


def test_the_chain_in_python_walks_like_the_kernel() -> None:
    trace, n, steps = chain.blobs_trace(300, 2, 3), 300, 4000
    plain = plain_chain.PlainChain(trace, n, 1)
    plain.walk(steps)
    ours = mcmc(trace, 3, steps=steps, n_records=n, rng=1, n_init=1)
    assert plain.accepted / steps == pytest.approx(ours.accepted / steps, abs=0.03)
    rows = np.concatenate([trace.sums, trace.counts[..., None]], axis=2)
    for of, nearest in zip(rows, np.transpose(plain.cells), strict=False):
        np.subtract.at(of, nearest, np.column_stack([plain.points, np.ones(n)]))
    np.testing.assert_allclose(plain.rows, rows, atol=1e-9)


# -------------------------------------------------------------------------------------------- fits


def test_a_race_of_some_fits_leaves_the_others_as_they_were() -> None:
    names = [fit.name for fit in fits.FITS]
    old = {"race": [{"name": name, "ratio": 1.0} for name in names], "rows": {"EEM": {"10": 1.0}},
           "generations": {}, "convex": {"objective": 1.0}}  # fmt: skip
    new = {"race": [{"name": names[1], "ratio": 2.0}], "rows": {}, "generations": {}, "convex": {}}
    found = fits.merged(new, old)
    assert [row["name"] for row in found["race"]] == names
    assert [row["ratio"] for row in found["race"]] == [1.0, 2.0, *[1.0] * (len(names) - 2)]
    assert found["rows"] == old["rows"]
    assert found["kept"] == [*names[:1], *names[2:], "rows", "convex"]


# ----------------------------------------------------------------------------- results as they come


@pytest.mark.slow
def test_a_bench_that_dies_has_kept_every_row_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def dies(case: Any, *_: Any) -> dict[str, Any]:
        if len(measured) == 2:
            raise RuntimeError("the third row")
        measured.append(case.name)
        return {"name": case.name, "threads": 1}

    monkeypatch.setattr(kernels, "measure", dies)
    monkeypatch.setattr(kernels, "set_limit", lambda row, limits: None)
    monkeypatch.setattr(kernels, "cells", lambda row: [])
    monkeypatch.setattr(kernels, "print_line", lambda values: None)
    speed = machine.Limits(1, 1.0, 1.0)
    monkeypatch.setattr(machine, "sample", lambda threads, repeat=1: speed)
    path = tmp_path / "out.json"
    with pytest.raises(RuntimeError, match="the third row"):
        kernels.main(["--json", str(path), "--threads", "1"])
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == measured


@pytest.mark.slow
def test_a_bench_that_dies_at_its_end_has_kept_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last part starts interpreters of its own, which may find no privfit."""

    def dies(*_: Any) -> Any:
        raise RuntimeError("no memory was measured")

    monkeypatch.setattr(kernels, "memory", dies)
    monkeypatch.setattr(kernels, "CASES", {"top 10 of 200": kernels.CASES["top 10 of 200"]})
    path = tmp_path / "out.json"
    options = ["--sizes", "0.001", "--repeat", "1", "--threads", "1", "--json", str(path)]
    with pytest.raises(RuntimeError, match="no memory was measured"):
        kernels.main(options)
    (row,) = json.loads(path.read_text())["rows"]
    assert row["seconds"] > 0


def test_a_file_of_results_is_whole_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    results.keep(path, {"rows": [1]})
    with pytest.raises(TypeError, match="not JSON serializable"):
        results.keep(path, {"rows": [1, object()]})
    assert json.loads(path.read_text()) == {"rows": [1]}
    results.keep(None, {"rows": [1, 2]})  # nobody asked for a file
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


def test_text_goes_between_its_markers_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- a: begin -->\nold\n<!-- a: end -->\nbelow\n")
    results.refresh(page, "new\n", "a")
    assert page.read_text() == "above\n<!-- a: begin -->\nnew\n<!-- a: end -->\nbelow\n"
    with pytest.raises(SystemExit, match="lacks the markers"):
        results.refresh(page, "new\n", "b")
