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
from makers.places import ROOT

import privfit
from privfit import Box
from privfit._kernels.threads import has_openmp
from privfit.records.packing import pack

EXAMPLE = ROOT / "docs" / "examples" / "own_kernel"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLE.exists(), reason="no docs beside these tests"),
    pytest.mark.skipif(not has_openmp(), reason="the example is built with OpenMP"),
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The example, built as its page says."""
    folder = tmp_path_factory.mktemp("own") / "kernel"
    shutil.copytree(EXAMPLE, folder)
    paths = os.pathsep.join([str(Path(privfit.__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=folder, capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": paths}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (module,) = folder.glob("own_kernel.*.so")
    spec = importlib.util.spec_from_file_location("own_kernel", module)
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    return own


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
