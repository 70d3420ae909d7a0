"""A user's own Cython builds on what the kernels declare: the worked example of the docs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from makers.pages import run_page
from makers.places import ROOT
from scipy import LowLevelCallable

import privfit
from privfit import EEM, Box, Reals, RecordObjective, search
from privfit._kernels.threads import has_openmp
from privfit.records.packing import pack

EXAMPLES = ROOT / "docs" / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLES.exists(), reason="no docs beside these tests"),
    pytest.mark.skipif(not has_openmp(), reason="the example is built with OpenMP"),
]


def built(name: str, folder: Path) -> ModuleType:
    """An example, built as its page says."""
    shutil.copytree(EXAMPLES / name, folder)
    paths = os.pathsep.join([str(Path(privfit.__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=folder, capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": paths}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (module,) = folder.glob(f"{name}.*.so")
    spec = importlib.util.spec_from_file_location(name, module)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return built("own_kernel", tmp_path_factory.mktemp("own") / "kernel")


@pytest.fixture(scope="module")
def fitness(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return built("own_fitness", tmp_path_factory.mktemp("own") / "fitness")


def test_pairs_of_columns_are_counted_whatever_the_number_of_threads(own, rng):
    X = rng.integers(0, 2, (3000, 6)).astype(float)
    records = pack(X, Box(0, 1, 6), layout="sparse")
    pairs = np.array([[0, 1], [2, 5], [3, 3]], dtype=np.int32)
    expected = [(X[:, i] * X[:, j]).sum() for i, j in pairs]
    for threads in (1, 3):
        out = np.zeros((threads, len(pairs)), dtype=np.int64)
        own.count_both(records.rows, len(X), pairs, out)
        assert np.array_equal(out.sum(axis=0), expected)


def test_distances_by_lanes_are_those_of_numpy(own, rng):
    X = rng.integers(-1000, 1000, (100, 5)) / 4096
    domain = Box(-1, 1, 5)
    records = pack(X, domain, layout="dense")
    whole = np.concatenate(list(records.blocks(16))).astype(int)
    center = np.zeros((records.pairs, 2), dtype=np.int16)
    center.ravel()[:5] = rng.integers(-1000, 1000, 5)
    z = np.empty(records.panels.shape[0] * 16, dtype=np.int32)
    own.l1_sum(records.as_pairs, center.view(np.int32)[:, 0], z)
    assert np.array_equal(z[:100], np.abs(whole - center.ravel()[:5]).sum(axis=1))


# ------------------------------------------------------------------------------ scores of one's own


def people(rng: np.random.Generator, n: int = 3000) -> np.ndarray:
    """Four features, many of them 0 or 1, then a label, -1 or 1."""
    X = rng.uniform(-1, 1, (n, 4))
    X[:, :2] = X[:, :2] > 0.3
    return np.column_stack([X, np.where(X[:, 0] + X[:, 3] > 0.2, 1.0, -1.0)])


def log_likelihood(records: np.ndarray, P: np.ndarray) -> np.ndarray:
    margins = records[:, :-1] @ P[:, :-1].T + P[:, -1]
    return -np.logaddexp(0, -margins * records[:, -1:])


def test_the_compiled_logistic_loss_is_that_of_numpy(fitness, knobs, rng):
    """To a unit of each record: its polynomials err by 2e-10, and a unit is 1.2e-4."""
    knobs(thread_work=0.0)
    compiled = LowLevelCallable.from_cython(fitness, "logistic")
    R, P = people(rng), rng.normal(0, 20, (50, 5))
    for n_threads in (1, 2):
        own = RecordObjective(R, compiled, -8.0, 0.0, n_threads=n_threads)
        expected = RecordObjective(R, log_likelihood, -8.0, 0.0).scores(P)
        assert np.abs(own.scores(P) - expected).max() <= 1  # of 3,000 records
    alone = [RecordObjective(r[None], compiled, -8.0, 0.0).scores(P) for r in R[:50]]
    whole = [RecordObjective(r[None], log_likelihood, -8.0, 0.0).scores(P) for r in R[:50]]
    assert np.abs(np.array(alone) - whole).max() <= 1


def test_the_compiled_logistic_loss_of_extreme_margins(fitness):
    """Far out it is linear, and NaN is no score."""
    compiled = LowLevelCallable.from_cython(fitness, "logistic")
    z = np.array([0.0, 1e-300, -1e-300, 0.5, -0.5, 37.0, -37.0, 63.9, -64.1, 710.0, -710.0, 1e9])
    P = np.column_stack([z, np.zeros(len(z))])
    for bits in (16, 30):
        own = RecordObjective([[1.0, 1.0]], compiled, -800.0, 0.0, bits=bits)
        exact = np.clip(-np.logaddexp(0, -z), -800, 0) + 800
        assert np.abs(own.scores(P) - exact / own.unit).max() <= 0.6
    assert own.scores([[np.nan, 0.0], [0.0, np.nan]]).tolist() == [0, 0]


def test_compiled_moves_score_what_the_moved_candidates_do(fitness, rng):
    score, moves = (
        LowLevelCallable.from_cython(fitness, name) for name in ("logistic", "logistic_moves")
    )
    space, R = Reals(-5, 5, 5), people(rng)
    objective = RecordObjective(R, score, -8.0, 0.0, moves=moves)
    objective.check(space.extremes, space)
    view = objective.at(space.sample(1, rng)[0], space)
    for _ in range(3):
        where, what = space.some_moves(view.w, 30, 0.1, rng)
        expected = objective.scores(view.candidates(where, what))
        assert np.abs(view.scores(where, what) - expected).max() <= 1
        view.step(where[0], what[0])
    answers = [
        search(one, space, 1.0, solver=EEM(generations=9), random_state=3).answer.tolist()
        for one in (objective, RecordObjective(R, score, -8.0, 0.0))
    ]
    assert np.allclose(*answers)


def test_the_page_of_compiled_scores(fitness, monkeypatch):
    """Its walks come to the same answer, by addresses and by names."""
    monkeypatch.setitem(sys.modules, "own_fitness", fitness)
    page = run_page("own_fitness.md", "cython")
    assert np.allclose(page["answer"], page["found"].answer)
    named = RecordObjective(page["people"], "own_fitness:logistic", -8.0, 0.0)
    P = np.random.default_rng(0).normal(0, 3, (40, 3))
    assert (named.scores(P) == page["fastest"].scores(P)).all()
