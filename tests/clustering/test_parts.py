"""Traces of all k-means solvers, likelihoods of all kinds of releases, and the chain on a pool."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import reference
from makers.cases import case
from scipy import stats

import privfit
from privfit import Box, CentersObjective, KMeans, L1Ball, L2Ball, Ledger, Reals, Release
from privfit._kernels import pool as kernels
from privfit.clustering import (
    CellCounts,
    ClusterSums,
    Hybrid,
    KMeansTrace,
    Lloyd,
    LloydTrace,
    Mean,
    NormCounts,
    OverSeeded,
    Tree,
    UniformGrid,
    chains,
    mcmc,
)
from privfit.clustering.chains import HELPED, MOST_COLUMNS, TRACED, chain_of
from privfit.clustering.pooled import Pool, Records, drawn_on, ended_at, estimated_size
from privfit.clustering.sizes import Sizes
from privfit.models.model import dumps, loads
from privfit.privacy.grants import Grant
from privfit.runs.run import Run

SOLVERS = {
    "residuals": Lloyd(steps=4, residual=True),
    "grid": UniformGrid(cells=40),
    "tree": Tree(),
    "hybrid": Hybrid(),
    "over_seeded": OverSeeded(mean=True),
    "mean": Mean(),
}
KINDS_OF_PARTS = {
    "residuals": {"sums"},
    "grid": {"cells"},
    "tree": {"cells"},
    "hybrid": {"cells", "sums"},
    "over_seeded": {"cells", "sums", "norms"},
    "mean": {"sums", "norms"},
}
RARE = 1e-6 / 2 / 8  # how often one side of one of at most eight tests is a false alarm


def records(n: int = 3000, d: int = 3) -> np.ndarray:
    coins = np.random.default_rng(4)
    centers = coins.uniform(-0.7, 0.7, (3, d))
    return np.clip(centers[coins.integers(3, size=n)] + coins.normal(0, 0.15, (n, d)), -1, 1)


def fitted(solver, delta=0.0, epsilon=1.0, **more):
    made = {"domain": (-1, 1), "postprocess": None, "random_state": 5, **more}
    return KMeans(3, epsilon, delta, solver=solver, **made).fit(records())


# ---------------------------------------------------------------------------- traces of all solvers


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_leaves_a_trace_of_what_it_released(name, delta):
    model = fitted(SOLVERS[name], delta)
    trace = KMeansTrace.from_release(model.release_)
    assert {part.what for part in trace.parts} == KINDS_OF_PARTS[name]
    assert len(trace.parts) == len(model.path_.kept)
    again = KMeansTrace.from_release(loads(dumps(model)).release_)
    for part, same in zip(trace.parts, again.parts, strict=True):
        assert type(part) is type(same)
        for field, value in vars(part).items():
            assert np.array_equal(value, getattr(same, field))


def noise_of(trace: KMeansTrace, X: np.ndarray) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """What it is noise of, in units of the scale that a trace states, of everything it holds."""
    found = []
    for part in trace.parts:
        rows = part.rows(X)
        if part.counts is not None:
            scale = part.scale_counts if isinstance(part, ClusterSums) else part.scale
            exact = np.bincount(rows, minlength=len(part.counts))[: len(part.counts)]
            found.append(((part.kind, part.what, "counts"), (part.counts - exact) / scale))
        if isinstance(part, ClusterSums):
            sums = np.zeros_like(part.sums)
            np.add.at(sums, rows, part.vectors(X, rows, trace.origin))
            noise = (part.sums - sums).ravel() / part.scale_sums
            found.append(((part.kind, part.what, "sums"), noise))
    return found


def is_stated(kind: str, noise: np.ndarray) -> bool:
    """Whether noise has scale 1, by its sum of sizes or squares; wrong at most once in 10^6."""
    if kind == "laplace":
        law, found = stats.gamma(noise.size), np.abs(noise).sum()
    else:
        law, found = stats.chi2(noise.size), np.square(noise).sum()
    return bool(law.ppf(RARE) < found < law.isf(RARE))


@pytest.mark.few(6)
@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", ["residuals", "tree", "hybrid", "over_seeded", "mean"])
def test_noise_has_the_scale_that_the_trace_states(name, delta, adjacency):
    """Of all values of 24 fits, each kind by itself; and a scale that is 3 times wrong is found.

    A false alarm: at most 1e-6 a test. Records are rounded and shrunk in whole units of a grid,
    which moves sums by far less than the noise.
    """
    domain, X = Box(-1, 1, 3), records()
    X = CentersObjective(X, 3, domain).decoded()[0]
    noises: dict[tuple[str, ...], list[np.ndarray]] = {}
    for seed in range(24):
        model = fitted(SOLVERS[name], delta, 0.2, adjacency=adjacency, n_public=3000,
                       random_state=seed)  # fmt: skip
        for what, noise in noise_of(KMeansTrace.from_release(model.release_), X):
            noises.setdefault(what, []).append(noise)
    assert len(noises) <= 8
    for (kind, *_), parts in noises.items():
        noise = np.concatenate(parts)
        assert is_stated(kind, noise)
        assert not is_stated(kind, noise * 3)
        assert not is_stated(kind, noise / 3)


def test_a_solver_that_releases_no_counts_leaves_no_trace():
    model = fitted("local")
    assert model.path_.kept == ()
    with pytest.raises(ValueError, match=r"release 'KMeans' must hold a trace of Lloyd"):
        KMeansTrace.from_release(model.release_)


def test_the_trace_of_an_ended_run_has_what_was_released_until_then():
    whole = fitted(Lloyd(steps=4, residual=True)).path_.kept
    ended = fitted(Lloyd(steps=4, residual=True), callback=lambda now: now.index == 2).path_.kept
    assert (len(whole), len(ended)) == (4, 2)


def test_a_solver_of_a_user_cannot_keep_anything():
    objective = CentersObjective(records(), 3, Box(-1, 1, 3))
    run = Run(objective, Reals(-1, 1, (3, 3)), None)
    with pytest.raises(ValueError, match=r"run.keep must be called by solvers of privfit.*report"):
        run.keep(3.0)


# -------------------------------------------------------------------------------------- likelihoods


def small_trace(kind: str, seed: int = 0) -> KMeansTrace:
    """All kinds of parts, of two columns; values are whole multiples of 2^-6."""
    coins = np.random.default_rng(seed)

    def drawn(*shape):
        return np.rint(coins.normal(0, 3, shape) * 64) / 64

    centers = np.rint(coins.uniform(-1, 1, (6, 3, 2)) * 64) / 64
    low = np.array([[-1.0, -1.0], [0.0, -1.0], [0.0, 0.0]])  # a quarter is in no cell
    high = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    parts = (
        ClusterSums(centers[0], 3 + drawn(3), drawn(3, 2), 2.0, 1.5, kind, 0.5, 1),
        CellCounts(low, high, 3 + drawn(3), 1.25, kind),
        ClusterSums(centers[1], 3 + drawn(3), drawn(3, 2), 0.75, 1.0, "laplace", 0.75, 2),
        NormCounts(centers[2], [0.25, 0.5, 1.0], 2 + drawn(4), 1.75, 2, kind),
        ClusterSums(centers[3][:1], None, drawn(1, 2), 1.0, 2.5, kind, 1.0, 2),
        ClusterSums(centers[4], 3 + drawn(3), drawn(3, 2), 1.0, 0.5, kind),
        NormCounts(centers[5], [0.5, 0.75], 2 + drawn(3), 0.5, 1, "laplace"),
    )
    return KMeansTrace(parts, [-1, -1], [1, 1], origin=[0.25, -0.5])


@pytest.mark.parametrize("n", [1, 9, 70_000])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_likelihood_is_that_of_the_noise(kind, n):
    """As the twin has it, of each kind of part; if a record stands for several, too."""
    trace, coins = small_trace(kind), np.random.default_rng(1)
    pool = Pool(trace, coins, size=50)
    state = Records(pool, n, coins)
    assert state.each == (4.0 if n > 1 << 16 else 1.0)
    if n < 10:
        found = reference.trace_likelihood(trace, state.points, state.each, pool.unit)
        assert state.likelihood() == pytest.approx(found, rel=1e-12)
    before = state.likelihood()
    state.walk(np.ones(1), 200, cooled=True)
    assert state.best_value == pytest.approx(state.likelihood(), rel=1e-9)
    assert state.best_value >= before


@pytest.mark.parametrize("which", range(7))
def test_a_likelihood_with_a_wrong_variance_is_found(which):
    """The planted fault: a part whose noise is stated a tenth too wide differs from the twin."""
    trace, coins = small_trace("gaussian"), np.random.default_rng(1)
    names = [name for name in ("scale_sums", "scale_counts", "scale")
             if hasattr(trace.parts[which], name)]  # fmt: skip
    if getattr(trace.parts[which], "counts", None) is None:
        names.remove("scale_counts")
    for name in names:
        part = replace(trace.parts[which], **{name: 1.1 * getattr(trace.parts[which], name)})
        parts = (*trace.parts[:which], part, *trace.parts[which + 1 :])
        pool = Pool(replace(trace, parts=parts), coins, size=50)
        state = Records(pool, 9, coins)
        right = reference.trace_likelihood(trace, state.points, 1.0, pool.unit)
        assert state.likelihood() != pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_chain_takes_the_steps_of_its_twin(kind):
    """The same records after 300 steps; and a twin of another variance takes others."""
    trace, coins = small_trace(kind, 3), np.random.default_rng(2)
    pool = Pool(trace, coins, size=20)
    start = coins.integers(20, size=6).astype(np.int32)
    index, offered = coins.integers(6, size=300), coins.integers(20, size=300)
    log_u, betas = -coins.standard_exponential(300), np.linspace(0.2, 3.0, 300)
    parts, chosen, best = pool.released(1.0), start.copy(), start.copy()
    kernels.put_in(parts, chosen)
    values = np.full(2, kernels.log_likelihood(parts, pool.part_of))
    accepted = kernels.walk(parts, chosen, index, offered, log_u, betas, values, best)
    assert 20 < accepted < 280

    def walked(told):
        def likelihood(members):
            return reference.trace_likelihood(told, pool.points[members], 1.0, pool.unit)

        steps = zip(index.tolist(), offered.tolist(), log_u, betas, strict=True)
        return reference.pool_walk(likelihood, start.tolist(), steps), likelihood

    twin, likelihood = walked(trace)
    assert chosen.tolist() == twin
    assert values[0] == pytest.approx(likelihood(twin), rel=1e-9)
    assert values[1] == pytest.approx(likelihood(best.tolist()), rel=1e-9)
    assert values[1] >= values[0]
    wrong = [replace(part, **{name: 3 * getattr(part, name) for name in ("scale_sums", "scale")
                              if hasattr(part, name)}) for part in trace.parts]  # fmt: skip
    assert chosen.tolist() != walked(replace(trace, parts=tuple(wrong)))[0]


def test_points_are_found_in_their_cells():
    trace = small_trace("laplace")
    points = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    expected = [reference.part_row(trace.parts[1], x) for x in points]
    found = trace.parts[1].rows(points)
    assert found.tolist() == [3 if row < 0 else row for row in expected]
    assert set(found.tolist()) == {0, 1, 2, 3}


def test_a_trace_of_lloyd_says_the_same_in_parts():
    model = fitted(Lloyd(steps=3))
    lloyd = LloydTrace.from_release(model.release_)
    trace = KMeansTrace.from_release(model.release_)
    assert [part.what for part in trace.parts] == ["sums"] * 3
    assert np.array_equal([part.sums for part in trace.parts], lloyd.sums)
    assert np.allclose([part.centers for part in trace.parts], lloyd.centroids + lloyd.origin)
    assert {part.scale_sums for part in trace.parts} == {lloyd.scale_sums}


# -------------------------------------------------------------------------------- pools and centres


@pytest.mark.parametrize("domain", [Box(-1, 1, 3), L1Ball(1.5, 3), L2Ball(1.0, 3)], ids=repr)
@pytest.mark.parametrize("name", ["tree", "hybrid", "over_seeded"])
def test_synthetic_records_lie_in_the_domain(name, domain):
    model = fitted(SOLVERS[name], domain=domain)
    trace = KMeansTrace.from_release(model.release_)
    points = mcmc(trace, 3, steps=2000, anneal=True, rng=0).points
    unit = CentersObjective(records()[:1], 3, domain).candidate_units
    assert (np.abs(points) <= domain.high + unit).all()
    if not isinstance(domain, Box):
        length = np.linalg.norm(points, domain.order, axis=1)
        assert length.max() <= float(domain.high[0]) * (1 + 1e-9) + unit


def test_the_number_of_records_is_the_mean_of_totals_by_their_precision():
    sharp = CellCounts([[-1.0], [0.0]], [[0.0], [1.0]], [40.0, 60.0], 1.0)
    blunt = CellCounts([[-1.0], [0.0]], [[0.0], [1.0]], [80.0, 120.0], 3.0)
    trace = KMeansTrace((sharp, blunt), [-1.0], [1.0])
    assert estimated_size(trace) == 110  # 100 and 200, weighed 9 to 1
    wide = replace(sharp, kind="gaussian", scale=np.sqrt(2.0))  # the same variance
    assert estimated_size(replace(trace, parts=(wide, blunt))) == 110
    lone = ClusterSums([[0.0]], None, [[1.0]], 1.0, 1.0)
    assert estimated_size(KMeansTrace((lone,), [-1.0], [1.0])) is None


def test_centres_end_where_the_last_half_of_the_steps_moved_them():
    model = fitted(Lloyd(steps=4, residual=True), epsilon=50.0)
    centers, counts = ended_at(KMeansTrace.from_release(model.release_))
    np.testing.assert_allclose(centers, model.cluster_centers_, atol=1e-3)
    assert counts.sum() == pytest.approx(3000, rel=0.02)
    assert ended_at(KMeansTrace.from_release(fitted("tree").release_)) is None


def test_centres_go_half_way_to_the_means_of_their_points():
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [9.0, 9.0]])
    points = np.array([[1.0, 0.0], [1.0, 2.0], [5.0, 0.0]])
    expected = [[0.5, 0.5], [4.5, 0.0], [9.0, 9.0]]
    assert drawn_on(centers, points).tolist() == expected


@pytest.mark.parametrize("anneal", [False, True])
def test_a_chain_explains_what_was_released(anneal):
    """Its best data set is nearly as likely as the records themselves; it is found by a seed."""
    model = fitted("hybrid", epsilon=0.3)
    trace = KMeansTrace.from_release(model.release_)
    found = mcmc(trace, 3, rng=0, anneal=anneal)
    again = mcmc(trace, 3, rng=0, anneal=anneal)
    assert np.array_equal(found.centers, again.centers)
    first = mcmc(trace, 3, rng=0, steps=0)
    assert found.log_likelihood > first.log_likelihood
    if anneal:
        X = CentersObjective(records(), 3, Box(-1, 1, 3)).decoded()[0]
        true = sum(-np.abs(noise).sum() for _, noise in noise_of(trace, X))
        assert found.log_likelihood > 1.2 * true


# --------------------------------------------------------------------------------- as part of a fit


@pytest.mark.parametrize("chain", ["mcmc", "anneal"])
@pytest.mark.parametrize("name", ["residuals", "grid", "tree", "hybrid", "over_seeded"])
def test_postprocessing_of_any_solver_is_a_function_of_the_release(name, chain):
    plain = fitted(SOLVERS[name])
    model = fitted(SOLVERS[name], postprocess=chain)
    release = Release.from_json(model.release_.to_json())
    assert release.events == plain.release_.events
    assert release.settings["postprocess"] == chain
    assert np.array_equal(release.parameters["centers"], plain.cluster_centers_)
    trace = KMeansTrace.from_release(release)
    points = mcmc(trace, 3, rng=5, anneal=chain == "anneal", n_init=1).points
    objective = CentersObjective(records()[:1], 3, Box(-1, 1, 3))
    expected = objective.project(drawn_on(plain.cluster_centers_, points))
    assert np.array_equal(model.cluster_centers_, expected)
    assert np.array_equal(loads(dumps(model)).cluster_centers_, expected)


def test_auto_anneals_after_solvers_that_it_helps_and_no_others():
    for settings in (Lloyd(), Tree(), Hybrid(), OverSeeded(), Mean()):
        expected = "anneal" if isinstance(settings, HELPED) else None
        assert chain_of("auto", "x", settings, True, 10) == expected
        assert chain_of("auto", "x", settings, True, 11) is None
        assert chain_of("auto", "x", settings, False, 10) is None
        assert chain_of(None, "x", settings, True, 10) is None
    assert fitted("auto", postprocess="auto").release_.settings["postprocess"] == "anneal"
    assert fitted("tree", postprocess="auto").release_.settings["postprocess"] is None


def test_postprocessing_of_a_hybrid_touches_no_record(monkeypatch):
    """After the last release nothing asks the objective for what depends on records."""
    log = []

    def logged(owner, name):
        method = getattr(owner, name)

        def spy(self, *arguments, **named):
            log.append(name)
            return method(self, *arguments, **named)

        monkeypatch.setattr(owner, name, spy)

    for name in ("lloyd", "residuals", "norm_counts", "scores", "cells", "grid_counts", "walk"):
        logged(CentersObjective, name)
    logged(Grant, "release")
    fitted(Hybrid(lloyd=Lloyd(residual=True, steps=2)), postprocess="anneal")
    assert log == ["cells", "release", "release", *["residuals", "release"] * 2]


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("n", [1, 60])
def test_auto_post_processes_a_schema_and_hardly_any_record(n, adjacency, rng):
    schema, people = case("schema").domain, case("schema").rows(rng, 60)
    assert schema.width <= MOST_COLUMNS
    model = KMeans(3, 0.5, domain=schema, adjacency=adjacency, random_state=1, solver="auto")
    model.fit(people[:n])
    assert (model.release_.settings["solver"] == "mean") == ("postprocessed" not in
                                                             model.release_.parameters)  # fmt: skip
    assert model.cluster_centers_.shape == (3, schema.width)
    assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()


def test_the_cells_of_the_largest_counts_are_kept(monkeypatch):
    whole = fitted("tree").path_.kept[0]
    monkeypatch.setattr("privfit.clustering.grids.KEPT_CELLS", 5)
    model = fitted("tree", postprocess="anneal")
    kept = model.path_.kept[0]
    assert len(whole.counts) > 20
    assert sorted(kept.counts) == sorted(whole.counts)[-5:]
    where = [whole.low.tolist().index(low) for low in kept.low.tolist()]
    assert where == sorted(where)
    assert kept.high.tolist() == whole.high[where].tolist()


def test_a_grid_without_filled_cells_is_left_as_it_is():
    model = KMeans(2, 1e-3, domain=(-1, 1), solver=UniformGrid(cells=2), adjacency="add_remove",
                   n_public=1, postprocess="anneal", random_state=1)  # fmt: skip
    seeds = (model.set_params(random_state=seed).fit(np.zeros((1, 2))) for seed in range(40))
    empty = next(one for one in seeds if not one.path_.kept)
    assert np.array_equal(empty.cluster_centers_, empty.release_.parameters["centers"])
    assert "parts" not in empty.release_.parameters


# ------------------------------------------------------------------------------------- wrong values

SUMS = {"centers": [[0.0], [1.0]], "counts": [3.0, 4.0], "sums": [[0.1], [0.2]],
        "scale_counts": 1.0, "scale_sums": 1.0}  # fmt: skip
CELLS = {"low": [[0.0]], "high": [[1.0]], "counts": [3.0], "scale": 1.0}
NORMS = {"centers": [[0.0]], "radii": [0.5], "counts": [3.0, 1.0], "scale": 1.0}
WRONG = [
    (ClusterSums, SUMS, {"sums": [[0.1]]}, r"sums \(shape \(1, 1\)\) must be \(2, 1\).*; pass one"),
    (ClusterSums, SUMS, {"counts": [3.0]}, r"counts \(shape \(1,\)\) must be \(2,\)"),
    (ClusterSums, SUMS, {"counts": [3.0, np.nan]}, r"counts must be finite; pass released values"),
    (ClusterSums, SUMS, {"sums": "abc"}, r"sums must be an array of numbers; pass released"),
    (ClusterSums, SUMS, {"scale_sums": 0.0}, r"scale_sums \(0.0\) must be a positive number; pass"),
    (ClusterSums, SUMS, {"kind": "cauchy"}, r"kind \('cauchy'\) must be one of .*; pass that of"),
    (
        ClusterSums,
        SUMS,
        {"radius": -1.0},
        r"radius \(-1.0\) must be at least 0 and norm \(2\) 1 or",
    ),
    (
        ClusterSums,
        SUMS,
        {"norm": 3},
        r"radius \(0.0\) must be at least 0 and norm \(3\) 1 or 2; pa",
    ),
    (CellCounts, CELLS, {"low": [[0.0], [1.0]]}, r"low \(shape \(2, 1\)\) must be \(1, 1\)"),
    (
        CellCounts,
        CELLS,
        {"scale": -1.0},
        r"scale \(-1.0\) must be a positive number; pass the scal",
    ),
    (NormCounts, NORMS, {"counts": [3.0]}, r"counts \(shape \(1,\)\) must be \(2,\)"),
    (NormCounts, NORMS, {"norm": 0}, r"norm \(0\) must be 1 or 2; pass that of the radii"),
]


@pytest.mark.parametrize(("kind", "good", "change", "says"), WRONG)
def test_parts_refuse_what_nothing_releases(kind, good, change, says):
    kind(**good)
    with pytest.raises(ValueError, match=says):
        kind(**{**good, **change})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parts": ()}, r"parts must be ClusterSums, CellCounts or NormCounts, at least one; pass"),
        ({"parts": (3,)}, r"parts must be ClusterSums, CellCounts or NormCounts"),
        ({"low": [0.0, 0.0]}, r"low \(shape \(2,\)\) must be \(1,\)"),
        ({"parts": (CellCounts(**CELLS), ClusterSums([[0.0, 0.0]], None, [[0.0, 0.0]], 1.0, 1.0))},
         r"parts must have the same columns; pass those of one fit"),
        ({"domain": "cube"}, r"domain \('cube'\) must be one of .*; pass those of the records"),
        ({"domain": "l1"}, r"radius \(0.0\) positive for a ball and 0 for a box; pass"),
    ],
)  # fmt: skip
def test_traces_refuse_what_is_no_trace(change, says):
    good = {"parts": (CellCounts(**CELLS),), "low": [0.0], "high": [1.0]}
    KMeansTrace(**good)
    with pytest.raises(ValueError, match=says):
        KMeansTrace(**{**good, **change})


def test_a_changed_release_is_refused():
    held = fitted("tree").release_
    for changed in ({**held.parameters["parts"], "colour": 1}, {"low": [0.0], "high": [1.0]}):
        release = replace(held, parameters={**held.parameters, "parts": changed})
        with pytest.raises(ValueError, match=r"must have the fields of KMeansTrace and no others"):
            KMeansTrace.from_release(release)


def test_a_chain_on_a_pool_refuses_what_it_cannot_use():
    sums = ClusterSums([[0.0]], None, [[1.0]], 1.0, 1.0)
    trace = KMeansTrace((sums,), [-1.0], [1.0])
    with pytest.raises(ValueError, match=r"n_records \(None\) must be a number.*; pass the public"):
        mcmc(trace, 1)
    assert mcmc(trace, 1, n_records=20, steps=50).points.shape == (20, 1)
    with pytest.raises(ValueError, match=r"paper \(True\) must be False for a KMeansTrace; pass"):
        mcmc(trace, 1, n_records=20, paper=True)


def test_solvers_without_counts_cannot_be_post_processed():
    for solver in ("mean", "local"):
        says = rf"postprocess \('anneal'\) needs noisy counts .* solver \('{solver}'\) does not"
        with pytest.raises(ValueError, match=says):
            fitted(solver, postprocess="anneal")
    assert not {type(solver) for solver in SOLVERS.values()} - {*TRACED, Mean}


def test_parts_are_public_names_of_their_room():
    for name in ("CellCounts", "ClusterSums", "KMeansTrace", "NormCounts"):
        assert name in privfit.clustering.__all__


@dataclass(frozen=True)
class Counting(Lloyd):
    """Returns exact counts beside its centres."""

    def __call__(self, run):
        found = super().__call__(run)
        return replace(found, sizes=Sizes.of_steps([run.objective.lloyd(found.answer)[0]], 1,
                                                   "laplace", 1.0))  # fmt: skip


def test_a_user_cannot_release_sizes_of_their_own():
    assert fitted(Lloyd(steps=2, residual=True)).cluster_sizes_ is not None
    model = fitted(Counting(steps=2, residual=True))
    assert model.cluster_sizes_ is None
    assert "sizes" not in model.release_.parameters


def test_post_processing_by_default_leaves_fits_of_many_cells_alone(monkeypatch):
    usual = KMeans(3, 1.0, domain=(-1, 1), random_state=0, n_public=900)
    X = records()[:, :2]
    monkeypatch.setattr(chains, "KEPT_CELLS", 1)
    centers = usual.fit(X).cluster_centers_
    assert np.array_equal(centers, usual.set_params(postprocess=None).fit(X).cluster_centers_)


def test_what_was_paid_for_is_released_if_post_processing_is_interrupted(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("privfit.estimators.kmeans.postprocessed", interrupted)
    ledger = Ledger(1.0)
    with pytest.raises(KeyboardInterrupt):
        KMeans(3, 1.0, domain=(-1, 1), ledger=ledger, random_state=0).fit(records()[:, :2])
    [release] = ledger.releases
    assert np.shape(release.parameters["centers"]) == (3, 2)
