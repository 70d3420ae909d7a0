"""Scores of one's own by compiled functions: one call a record, and nothing else depends on it."""

from __future__ import annotations

import ctypes
import math
import pickle
import sys
from types import SimpleNamespace

import mpmath
import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from makers import compiled
from makers.cases import ADJACENCIES, packed
from scipy import LowLevelCallable

from privfit import EEM, Bits, Ledger, Local, Reals, RecordObjective, Subsets, search
from privfit.records import compiled as records_compiled
from privfit.records import loops
from privfit.records.scored import ScoredRows

P = np.array([[-1.0, 0.5], [0.25, 0.0], [2.0, -3.0]])


def product(x, P, out):
    out[:] = P @ x


def in_numpy(records, P):
    return np.array([[p @ x for p in P] for x in np.asarray(records, dtype=float)])


def units(X, P, low, high, unit):
    """The twin: each record's integers, added up."""
    values = [[float(np.dot(p, x)) for x in X] for p in P]
    return [sum(reference.own_units(v, low, high, unit) for v in one) for one in values]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 200])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_scores_equal_the_twin_for_any_tile_and_thread(n, n_threads, knobs, rng):
    X = rng.integers(-192, 192, (n, 2)) / 64
    for slices in (4e8, 1.0):
        knobs(thread_work=0.0, slice_work=slices)
        objective = RecordObjective(X, compiled.score(product), -0.7, 2, n_threads=n_threads)
        assert objective.scores(P).tolist() == units(X, P, -0.7, 2, objective.unit)


def test_kinds_of_tables_do_not_matter(rng):
    X = (rng.integers(-9, 9, (60, 2)) * (rng.random((60, 2)) < 0.5)).astype(float)
    low_level = compiled.score(product)
    expected = RecordObjective(X, in_numpy, -5, 5).scores(P).tolist()
    for records in (X, X.tolist(), np.asfortranarray(X), X.astype(np.int8), X.astype(np.float32),
                    X.astype(str), pd.DataFrame(X), {"a": X[:, 0], "b": X[:, 1].astype(str)},
                    sp.csr_array(X), sp.csc_matrix(X), X[::-1][::-1], X.astype(">f8"),
                    X.reshape(60, 1, 2)):  # fmt: skip
        objective = RecordObjective(records, low_level, -5, 5)
        assert objective.scores(P).tolist() == expected
        objective.check(P)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.float32])
def test_small_types_are_kept_small_and_python_gets_float64(kind, rng):
    """By their type alone: no value of a record decides it."""
    X = rng.integers(0, 2, (50, 2)).astype(kind)
    for python, expected in ((None, np.float32), (shifted_in_numpy, np.float64)):
        objective = RecordObjective(X, compiled.score(product), -5, 5, moves=python)
        assert packed(objective)._records.dtype == expected
        wide = RecordObjective(X.astype(np.int64), compiled.score(product), -5, 5)
        assert packed(wide)._records.dtype == np.float64
        assert objective.scores(P).tolist() == wide.scores(P).tolist()


def test_a_vector_has_records_of_one_number_and_scalars_are_candidates_of_one():
    objective = RecordObjective([1, 2], compiled.score(lambda x, P, out: product(x, P, out)), 0, 8)
    assert (objective.scores([1.0, 2.0]) * objective.unit).tolist() == [3, 6]


def test_missing_cells_are_nan_and_nan_counts_as_low():
    objective = RecordObjective({"a": ["1", "", "x"]}, compiled.score(product), -1, 1)
    alone = RecordObjective([1.0], compiled.score(product), -1, 1)
    assert objective.scores([0.5]).tolist() == alone.scores([0.5]).tolist()


def test_what_is_not_written_counts_as_low_and_shows_no_earlier_record():
    def only_positive(x, P, out):
        if x[0] > 0:
            product(x, P, out)

    X = np.array([[1.0, 1.0], [-1.0, 1.0], [2.0, 0.0], [-2.0, 0.0]])
    objective = RecordObjective(X, compiled.score(only_positive), -5, 5)
    assert objective.scores(P).tolist() == units(X[[0, 2]], P, -5, 5, objective.unit)


def test_a_function_that_raises_counts_as_low(capfd, monkeypatch):
    """What ctypes says of it is silenced here; a compiled function cannot raise."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    def fragile(x, P, out):
        out[0] = 1 / x[0]

    X = np.array([[0.0, 1.0], [0.5, 1.0]])
    objective = RecordObjective(X, compiled.score(fragile), 0, 4)
    assert (objective.scores(P[:1]) * objective.unit).tolist() == [2.0]


def test_records_are_copies():
    X = np.array([[1.0, 1.0], [2.0, 0.0]])
    kept = X.copy()

    def vandal(x, P, out):
        product(x, P, out)
        x[:] = 99

    objective = RecordObjective(X, compiled.score(vandal), -5, 5)
    assert objective.scores(P).tolist() == objective.scores(P).tolist()
    assert (kept == X).all()


def test_arrays_begin_on_cache_lines(knobs):
    """So that no vectorised loop is cut otherwise for another record or thread."""
    knobs(thread_work=0.0)
    seen = []

    def addresses(record, n, candidates, width, m, out):
        seen.extend(ctypes.addressof(one.contents) % 64 for one in (record, candidates, out))

    function = ctypes.CFUNCTYPE(None, *compiled.SCORE)(addresses)
    RecordObjective(np.ones((70, 3)), function, 0, 1, n_threads=2).scores(np.ones((5, 2)))
    assert set(seen) == {0}
    assert len(seen) == 3 * 70


@pytest.mark.parametrize("bits", [1, 16])
def test_range_is_reached_and_never_exceeded(bits):
    """Whatever a hostile function writes: clipping leaves every corner, and nothing beyond."""
    wild = [1e300, -1e300, math.nan, math.inf, -math.inf, 0.1]

    def hostile(x, P, out):
        out[:] = [wild[int(x[0] + 2 * p) % len(wild)] for p in P[:, 0]]

    function = compiled.score(hostile)
    singles = [RecordObjective([float(t)], function, -0.3, 0.8, bits=bits) for t in range(12)]
    q = np.array([single.scores([0, 1, 2, 3]) for single in singles])
    for adjacency in ADJACENCIES:
        assert reference.realised_range(q, adjacency) == singles[0].range([0, 1], adjacency)


# -------------------------------------------------------------------------------- how it is passed


def test_user_data_reaches_the_function():
    def scaled(x, P, out, data):
        product(x, P, out)
        out *= ctypes.cast(data, compiled.DOUBLES)[0]

    factor = ctypes.c_double(2.0)
    function = compiled.score(scaled, ctypes.c_void_p)
    pointer = ctypes.cast(ctypes.byref(factor), ctypes.c_void_p)
    objective = RecordObjective(P, LowLevelCallable(function, pointer), -9, 9)
    expected = RecordObjective(P, compiled.score(product), -9, 9).scores(2 * P)
    assert objective.scores(P).tolist() == expected.tolist()


def test_what_has_a_function_of_ctypes_is_taken_like_a_cfunc_of_numba():
    cfunc = SimpleNamespace(ctypes=compiled.score(product))
    expected = RecordObjective(P, cfunc.ctypes, -9, 9).scores(P)
    assert RecordObjective(P, cfunc, -9, 9).scores(P).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "whole",
    ["long long", "npy_intp", "Py_ssize_t", "ptrdiff_t", "long long int", "int64_t n"],
)
def test_names_of_types_may_differ(whole):
    signature = f"void ( double const *,{whole},double const* , {whole}, {whole}, double *)"
    function = LowLevelCallable(compiled.score(product), signature=signature)
    assert RecordObjective(P, function, -9, 9).scores(P).shape == (3,)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("intptr_t m", "long double m"), ("intptr_t m", "unsigned long m"), ("intptr_t m", "long m[]"),
     ("double *out", "double complex *out"), ("double *out", "double _Complex *"),
     ("double *out", "long double *out"), ("double *out", "double one two"),
     ("double *out", "void (*)"), ("double *out", "double (*)(double)"), ("double *out", ""),
     ("void (", "(")],
)  # fmt: skip
def test_all_words_of_a_type_are_compared(right, wrong):
    signature = records_compiled.SCORE.replace(right, wrong)
    assert signature != records_compiled.SCORE
    function = LowLevelCallable(compiled.score(product), signature=signature)
    with pytest.raises(
        TypeError, match=r"score \(signature .*\) must have another signature; pass"
    ):
        RecordObjective(P, function, -9, 9)
    for text in ("void (*)", "*", "(", ")", ","):
        assert records_compiled._plain(text) != records_compiled._plain(records_compiled.SCORE)


def test_a_function_may_be_passed_by_its_name(monkeypatch):
    module = SimpleNamespace(loss=compiled.score(product))
    monkeypatch.setitem(sys.modules, "my_losses", module)
    objective = RecordObjective(P, "my_losses:loss", -9, 9)
    expected = RecordObjective(P, module.loss, -9, 9).scores(P).tolist()
    assert objective.scores(P).tolist() == expected
    exported = SimpleNamespace(__pyx_capi__={"loss": LowLevelCallable(module.loss)})
    monkeypatch.setitem(sys.modules, "my_losses", exported)
    again = pickle.loads(pickle.dumps(objective))
    assert again.scores(P).tolist() == expected


def test_an_address_travels_within_its_process_alone(monkeypatch):
    objective = RecordObjective(P, compiled.score(product), -9, 9, moves=compiled.moves(shifted))
    sent = pickle.dumps(objective)
    assert pickle.loads(sent).scores(P).tolist() == objective.scores(P).tolist()
    monkeypatch.setattr(records_compiled, "_here", {})
    elsewhere = pickle.loads(sent)._own
    for function, name in ((elsewhere.function, "score"), (elsewhere.moves, "moves")):
        with pytest.raises(ValueError, match=f"{name} is a compiled function of another process"):
            records_compiled.refuse_missing(function)


def test_a_name_that_a_worker_cannot_import_is_refused_when_it_packs(monkeypatch):
    """Unpickling itself refuses nothing: a worker would close its connection."""
    module = SimpleNamespace(loss=compiled.score(product))
    monkeypatch.setitem(sys.modules, "my_losses", module)
    sent = pickle.dumps(RecordObjective(P, "my_losses:loss", -9, 9)._own)
    monkeypatch.delitem(sys.modules, "my_losses")
    with pytest.raises(ValueError, match=r"score \('my_losses:loss'\) must name a compiled"):
        ScoredRows.pack(P, None, score=pickle.loads(sent))


# ------------------------------------------------------------------------------------------- moves


def shifted(x, w, where, what, out):
    out[:] = w @ x + x[where] * what


def shifted_in_numpy(records, w, where, what):
    records = np.asarray(records)
    return (records @ w)[:, None] + records[:, where] * what


def replaced_in_numpy(records, w, where, what):
    """For spaces whose moves replace a coordinate."""
    records = np.asarray(records)
    return (records @ w)[:, None] + records[:, where] * (what.astype(float) - w[where])


def replaced(x, w, where, what, out):
    out[:] = w @ x + x[where] * (what - w[where])


SPACES = {
    "reals": (Reals(-2, 2, 3), shifted, shifted_in_numpy),
    "bits": (Bits(3), replaced, replaced_in_numpy),
    "subsets": (Subsets(9, 3), replaced, replaced_in_numpy),
}


@pytest.mark.parametrize("low_level", [False, True])
@pytest.mark.parametrize("name", SPACES)
def test_moves_score_what_the_moved_candidates_do(name, low_level, rng):
    space, compiled_moves, python_moves = SPACES[name]
    X = rng.integers(-64, 64, (100, 3)) / 64
    function = compiled.moves(compiled_moves) if low_level else python_moves
    objective = RecordObjective(X, in_numpy, -9, 9, moves=function, block=30)
    objective.check(space.extremes, space)
    view = objective.at(space.sample(1, rng)[0], space)
    for _ in range(4):
        where, what = space.some_moves(view.w, 20, 0.25, rng)
        moved = view.candidates(where, what)
        assert view.scores(where, what).tolist() == objective.scores(moved).tolist()
        assert view.prior(where, what).tolist() == [0] * 20
        for adjacency in ADJACENCIES:
            assert view.range(where, what, adjacency) == objective.range(moved, adjacency)
        view.step(where[3], what[3])
        assert (view.model == moved[3]).all()
    assert view.scores(where[:0], what[:0]).shape == (0,)


@pytest.mark.parametrize("solver", [EEM(generations=6, population=30), Local(generations=6)])
def test_a_walk_is_the_same_with_moves_and_without(solver, rng):
    X = rng.integers(-64, 64, (300, 3)) / 64
    answers = []
    for moves in (None, shifted_in_numpy, compiled.moves(shifted)):
        objective = RecordObjective(X, in_numpy, -9, 9, moves=moves)
        found = search(objective, Reals(-4, 4, 3), 1.0, solver=solver, random_state=1)
        answers.append(found.answer.tobytes())
    assert len(set(answers)) == 1


def test_moves_are_asked_in_a_walk_instead_of_the_score():
    """The score is called for checks alone, with few records."""
    asked = {"score": 0, "moves": 0}

    def score(records, P):
        asked["score"] += len(records) * len(P)
        return in_numpy(records, P)

    def moves(records, w, where, what):
        asked["moves"] += len(records) * len(where)
        return shifted_in_numpy(records, w, where, what)

    objective = RecordObjective(np.ones((500, 2)), score, -9, 9, moves=moves)
    settings = EEM(generations=3, population=40)
    search(objective, Reals(-1, 1, 2), 1.0, solver=settings, random_state=0)
    assert asked["moves"] > 3 * 500 * 40
    assert asked["score"] < 500 * 40


def wrong_sign(records, w, where, what):
    return shifted_in_numpy(records, w, where, -what)


def forgets_the_candidate(x, w, where, what, out):
    out[:] = x[where] * what


def one_unit_off(records, w, where, what):
    return shifted_in_numpy(records, w, where, what) + 2.0**-10


@pytest.mark.parametrize("moves", [wrong_sign, compiled.moves(forgets_the_candidate), one_unit_off])
def test_moves_that_disagree_with_the_score_are_refused_before_the_charge(moves, rng):
    ledger = Ledger(1.0)
    objective = RecordObjective(rng.normal(size=(90, 2)), in_numpy, -9, 9, moves=moves)
    with pytest.raises(ValueError, match="moves must return the scores of the moved candidates"):
        search(objective, Reals(-1, 1, 2), 1.0, solver=EEM(generations=3), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_function_with_a_memory_is_refused_before_the_charge():
    calls = []

    def counts(x, P, out):
        calls.append(0)
        out[:] = len(calls) % 7

    ledger = Ledger(1.0)
    objective = RecordObjective(np.ones((90, 2)), compiled.score(counts), 0, 9)
    with pytest.raises(ValueError, match="score must treat each record by itself; a record got an"):
        search(objective, Reals(-1, 1, 2), 1.0, solver=EEM(generations=3), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_moves_that_fail_on_a_record_count_as_low(rng):
    X = rng.integers(-64, 64, (50, 3)) / 64
    X[7] = 100.0

    def fragile(records, w, where, what):
        if (np.asarray(records) > 50).any():
            raise KeyError
        return shifted_in_numpy(records, w, where, what)

    w, where, what = np.zeros(3), np.arange(3), np.ones(3)
    objective = RecordObjective(X, in_numpy, -9, 9, moves=fragile)
    others = RecordObjective(np.delete(X, 7, axis=0), in_numpy, -9, 9, moves=shifted_in_numpy)
    expected = others.moved_scores(w, where, what).tolist()
    assert objective.moved_scores(w, where, what).tolist() == expected


# ------------------------------------------------------------------------------------------- loops


def doubles(values):
    return values.ctypes.data_as(compiled.DOUBLES)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 14, 255, 256, 257, 600])
@pytest.mark.parametrize("m", [1, 3, 200])
def test_products_are_those_of_numpy_whatever_the_number_of_zeros(n, m, rng):
    """On small whole numbers, which floats add up exactly."""
    for share in (0.0, 0.1, 1.0):
        x = np.round(rng.integers(1, 9, n) * (rng.random(n) < share)).astype(float)
        candidates = rng.integers(-9, 9, (n, m)).astype(float)
        out = rng.integers(-9, 9, m).astype(float)
        expected = out + x @ candidates
        loops.add_products(doubles(x), n, doubles(candidates), m, doubles(out))
        assert (out == expected).all()


@pytest.mark.parametrize("m", [1, 255, 256, 257, 1000])
@pytest.mark.parametrize("y", [1.0, -1.0, 0.5])
def test_the_log_sigmoid_is_near_the_true_one(m, y, rng):
    z = np.r_[rng.normal(0, 10, m), 0.0, -0.0, 1e-300, 63.999, -64.0, 64.001, 750.0, -750.0, -1e9]
    exact = [float(-mpmath.log1p(mpmath.exp(-mpmath.mpf(y * v)))) for v in z]
    found = z.copy()
    loops.log_sigmoid(doubles(found), y, len(z))
    assert np.abs(found - exact).max() <= 2e-10
    odd = np.array([np.nan, np.inf, -np.inf])
    loops.log_sigmoid(doubles(odd), 1.0, 3)
    assert np.isnan(odd[0])
    assert np.abs(odd[1]) <= 2e-10
    assert odd[2] == -np.inf
