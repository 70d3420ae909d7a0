"""Kernels beside numpy, scipy, scikit-learn, faiss and OpenDP, and the least work each takes."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

import privfit
from bench import tables
from bench.measure import has
from bench.speed import baselines
from bench.speed.cases import Ready, Work, same, scaled, within
from bench.speed.cases import case as any_case

case = partial(any_case, "kernels")

# One vector of eight losses, counted in the kernels' own formulas. Logistic: the margin's abs, min
# and conversion, 2^-f (6 multiplies), log(1 + u) (8), rounding and sum; fused operations are ruled
# out so that the bits are the same everywhere.
LOSS = {
    "logistic": Work(multiplies=14, others=27),
    "hinge": Work(others=7),
    "zero_one": Work(others=3),
}


# ---------------------------------------------------------------------------------- linear models

ROUNDING = 0.6  # units that a record's integer may be away from the true loss
MODELS = 200


def _population(domain, m=MODELS):
    return domain.candidates(m, np.random.default_rng(6))


def dense_work(n, d, m, loss):
    """Pair products of all columns, then a loss for each record and candidate."""
    pairs = -(-d // 2)
    return (Work(multiplies=pairs, others=pairs) + LOSS[loss]) * (n * m / 8) + Work(bytes=2 * n * d)


def sparse_work(n, ones, values, m, loss):
    """An addition with a load for each one, a product more for other values."""
    rows = Work(others=ones + values, loads=ones + values, multiplies=2 * values) + LOSS[loss]
    return rows * (n * m / 8) + Work(bytes=n * (4 * ones + 6 * values + 16))


def _linear(objective, P, baseline, name, work, size):
    # Errors of the zero-one loss are whole numbers and must agree exactly.
    exact = objective.loss == "zero_one"
    tolerance = 0 if exact else objective.n_records * ROUNDING * objective.unit
    return Ready(
        size=size,
        ours=lambda: objective.scores(P),
        rivals={name: baseline},
        agree=within(tolerance, lambda scores: -scores * objective.unit),
        work=work,
    )


@case("logistic one-hot sparse", 16, 40, "given as CSR", given="csr")
@case("logistic one-hot found sparse", 16, 40, "given as a dense array", given="array")
@case("logistic one-hot dense path", 6.5, 20, 'layout="dense"', given="array", layout="dense")
@case("logistic one-hot, tuned numpy", note="a harder baseline", given="csr", tuned=True)
@case("hinge one-hot", 12, 25, given="csr", loss="hinge")
@case("zero-one one-hot", 12, 25, given="csr", loss="zero_one")
def one_hot(threads, scale, given, loss="logistic", layout="auto", tuned=False):
    X, y = tables.one_hot(scaled(48_842, scale))
    n, d = X.shape
    domain = privfit.Box(0, 1, n_features=d)
    records = sp.csr_array(X) if given == "csr" else X
    objective = privfit.LinearObjective(records, y, loss, domain, n_threads=threads, layout=layout)
    P = _population(domain)
    S = baselines.signed(X, y)
    if loss == "zero_one":
        X1 = np.column_stack([X, np.ones(n)])
        name, run = "numpy", lambda: baselines.zero_one(X1, y > 0, P)
    elif loss == "hinge":
        name, run = "numpy", lambda: baselines.hinge(S, P)
    elif tuned:
        name, run = "numpy log1p, chunks", lambda: baselines.logistic_tuned(S, P)
    else:
        name, run = "numpy logaddexp", lambda: baselines.logistic(S, P)
    ones = len(tables.LEVELS)
    dense = layout == "dense"
    work = dense_work(n, d, MODELS, loss) if dense else sparse_work(n, ones, 0, MODELS, loss)
    return _linear(objective, P, run, name, work, f"{n:,} x {d}, {MODELS} candidates")


@case("logistic census schema", note="8 categorical and 6 numeric columns")
def census(threads, scale):
    records, y, schema = tables.census(scaled(48_842, scale))
    n = len(y)
    objective = privfit.LinearObjective(records, y, "logistic", schema, n_threads=threads)
    P = _population(schema)
    S = baselines.signed(schema.encode(records).toarray() / 2.0**schema.grid.a, y)
    work = sparse_work(n, 8, 6, MODELS, "logistic")
    size = f"{n:,} x {schema.width}, {MODELS} candidates"
    return _linear(objective, P, lambda: baselines.logistic(S, P), "numpy logaddexp", work, size)


@case("logistic dense", 16, 45, n=30_000, d=23)
@case("logistic dense large", 12, 30, "baseline in chunks of rows", n=1_000_000, d=50)
def logistic_dense(threads, scale, n, d):
    n = scaled(n, scale)
    X, y = tables.dense(n, d)
    domain = privfit.Box(-1, 1, n_features=d)
    objective = privfit.LinearObjective(X, y, "logistic", domain, n_threads=threads)
    P = _population(domain)
    S = baselines.signed(X, y)
    chunks = n > 100_000
    run = baselines.logistic_chunks if chunks else baselines.logistic
    name = "numpy logaddexp, chunks" if chunks else "numpy logaddexp"
    work = dense_work(n, d, MODELS, "logistic")
    size = f"{n:,} x {d}, {MODELS} candidates"
    return _linear(objective, P, lambda: run(S, P), name, work, size)


def moves_work(S, coords):
    """A product, an addition and a loss for each entry; the parent's state and columns are read."""
    entries = np.diff(sp.csc_array(S).indptr)
    touched = float(entries[coords].sum())
    gathered = float(entries[np.unique(coords)].sum())
    step = (Work(multiplies=2, others=1) + LOSS["logistic"]) * (touched / 8)
    return step + Work(loads=gathered, bytes=8 * S.shape[0] + 6 * gathered)


@case("offspring from scratch", 110, 250, "ours: a new parent and its offspring", kind="random")
@case("offspring increment", 14, 40, "both keep the parent", kind="random", keep=True)
@case("neighbours (PrivLocal)", 100, 230, "ours: a new parent and all moves", kind="all")
def offspring(threads, scale, kind, keep=False):
    X, y = tables.one_hot(scaled(48_842, scale))
    n, d = X.shape
    domain = privfit.Box(0, 1, n_features=d)
    objective = privfit.LinearObjective(sp.csr_array(X), y, "logistic", domain, n_threads=threads)
    rng = np.random.default_rng(7)
    w = _population(domain, 1)[0]
    if kind == "all":
        coords, steps = np.tile(np.arange(d + 1), 2), np.repeat([0.125, -0.125], d + 1)
    else:
        coords = rng.integers(0, d + 1, MODELS)
        steps = rng.choice(np.array([-128, -64, 64, 128]) / 2.0**domain.grid.b, MODELS)
    at = objective.at(w)
    S = baselines.signed(X, y)
    if keep:
        increment = baselines.Increment(S, w)
        name, run = "numpy on CSC", lambda: increment(coords, steps)
    else:
        P = at.candidates(coords, steps)
        name, run = "numpy logaddexp", lambda: baselines.logistic(S, P)
    return Ready(
        size=f"{n:,} x {d}, {len(coords)} candidates",
        ours=(lambda: at.scores(coords, steps))
        if keep
        else (lambda: objective.at(w).scores(coords, steps)),
        rivals={name: run},
        agree=within(n * ROUNDING * objective.unit, lambda scores: -scores * objective.unit),
        work=moves_work(S, coords),
    )


@case("gradient one-hot", 4, 10, table="one-hot")
@case("gradient one-hot, scipy CSR", note="a harder baseline", table="one-hot", sparse=True)
@case("gradient dense large", 2, 4, table="dense")
def gradient(threads, scale, table, sparse=False, cap=0.5):
    hot = table == "one-hot"
    X, y = (
        tables.one_hot(scaled(48_842, scale)) if hot else tables.dense(scaled(1_000_000, scale), 50)
    )
    n, d = X.shape
    domain = privfit.Box(0, 1, n_features=d) if hot else privfit.Box(-1, 1, n_features=d)
    objective = privfit.LinearObjective(X, y, "logistic", domain, n_threads=threads)
    w = _population(domain, 1)[0]
    S = baselines.signed(sp.csr_array(X) if sparse else X, y)
    ones = n * len(tables.LEVELS)
    residuals = Work(multiplies=14, others=20) * (n / 8)
    if hot:
        # One by one: a column's number and weight for the margin, its number and sum afterwards.
        work = residuals + Work(loads=4 * ones, bytes=4 * ones + 16 * n)
    else:
        work = residuals + Work(multiplies=3, others=3) * (n / 8 * d / 2) + Work(bytes=2 * n * d)
    name = "scipy CSR X.T @ r" if sparse else "numpy X.T @ r"
    residual_unit = objective.gradient_unit * 2.0**objective.grid.a
    return Ready(
        size=f"{n:,} x {d}",
        ours=lambda: objective.gradient(w, cap),
        rivals={name: lambda: baselines.gradient(S, w, cap)},
        agree=within(n * ROUNDING * residual_unit, lambda sums: sums * objective.gradient_unit),
        work=work,
    )


# ------------------------------------------------------------------------------- tables of codes

JOINTS = 5  # uint16 codes of a record


def _coded(threads, scale, layout="auto"):
    people, schema = tables.coded(scaled(48_842, scale))
    X, y = tables.one_hot(scaled(48_842, scale))
    objective = privfit.LinearObjective(
        people, y, "logistic", schema, n_threads=threads, layout=layout
    )
    return X, y, schema, objective


@case("gradient codes", 16, 30, baseline="numpy X.T @ r")
@case("gradient codes, scipy CSR", 8, 15, baseline="scipy CSR X.T @ r")
@case("gradient codes, our lists of non-zeros", 3.5, 5, baseline="lists of non-zeros")
def coded_gradient(threads, scale, baseline, cap=0.5):
    X, y, schema, objective = _coded(threads, scale)
    n, d = X.shape
    w = _population(schema, 1)[0]
    # Two loads for each code: the weight of its bin for the margin, its sum afterwards.
    work = Work(multiplies=14, others=20) * (n / 8) + Work(loads=4 * JOINTS * n, bytes=10 * n)
    if baseline.startswith("lists"):
        lists = _coded(threads, scale, "sparse")[3]
        run, agree = (lambda: lists.gradient(w, cap)), same
    else:
        S = baselines.signed(sp.csr_array(X) if "CSR" in baseline else X, y)
        tolerance = n * ROUNDING * objective.gradient_unit * 2.0**objective.grid.a
        run = lambda: baselines.gradient(S, w, cap)  # noqa: E731
        agree = within(tolerance, lambda sums: sums * objective.gradient_unit)
    return Ready(
        size=f"{n:,} x {d}",
        ours=lambda: objective.gradient(w, cap),
        rivals={baseline: run},
        agree=agree,
        work=work,
    )


@case("logistic codes, our lists of non-zeros", 1.25, 1.6)
def coded_scores(threads, scale):
    X, _, schema, objective = _coded(threads, scale)
    n, d = X.shape
    P = _population(schema)
    lists = _coded(threads, scale, "sparse")[3]
    return Ready(
        size=f"{n:,} x {d}, {MODELS} candidates",
        ours=lambda: objective.scores(P),
        rivals={"lists of non-zeros": lambda: lists.scores(P)},
        agree=same,
        work=sparse_work(n, JOINTS, 0, MODELS, "logistic"),
    )


@case("second moments codes", 10, 30)
def coded_moments(threads, scale):
    X, _, schema, objective = _coded(threads, scale)
    n, d = X.shape
    X1 = np.column_stack([X, np.ones(n)])
    pieces = 10  # of at most 64 levels: a count for every two of them
    return Ready(
        size=f"{n:,} x {d}",
        ours=objective.second_moments,
        rivals={"numpy X.T @ X": lambda: X1.T @ X1},
        agree=within(0, lambda sums: sums * 4.0**-schema.grid.a),
        work=Work(loads=3 * n * pieces * (pieces + 1) / 2, bytes=2 * JOINTS * n),
    )


# ---------------------------------------------------------------------------------------- centres


def centers_work(n, d, m, k, power):
    """For each pair of columns a product and a sum, for l1 a difference and abs more; minima."""
    pairs = -(-d // 2)
    others = pairs * (3 if power == 1 else 1) + 1
    one_set = Work(multiplies=pairs, others=others) * k + Work(others=2)
    return one_set * (n * m / 8) + Work(bytes=2 * n * d)


@case("k-means cost", 30, 100, n=34_112, d=3, k=15, m=200)
@case("k-means cost, faiss", 9, 45, "faiss in float32", n=34_112, d=3, k=15, m=200, peer="faiss")
@case("k-means cost large", 6, 12, n=100_000, d=64, k=64, m=50)
@case("l1 cost", 15, 60, n=34_112, d=3, k=15, m=200, power=1, peer="cdist")
def center_costs(threads, scale, n, d, k, m, power=2, peer="sklearn"):
    n = scaled(n, scale)
    X = tables.blobs(n, d, k)
    objective = privfit.CentersObjective(X, k, privfit.Box(0, 1), power, n_threads=threads)
    P = objective.snap(np.random.default_rng(8).uniform(0, 1, (m, k, d)))
    X32 = X.astype(np.float32)
    runs = {
        "sklearn": ("sklearn argmin_min", lambda: baselines.kmeans_sklearn(X, P)),
        "faiss": ("faiss flat", lambda: baselines.kmeans_faiss(X32, P)),
        "cdist": ("scipy cdist", lambda: baselines.kmedian_cdist(X, P)),
    }
    name, run = runs[peer]
    missing = peer == "faiss" and not has("faiss")
    # Distances on the grid are exact in float64, for whoever computes them.
    tolerance = n * d * 1e-6 if peer == "faiss" else 0
    return Ready(
        size=f"{n:,} x {d}, k={k}, {m} candidates",
        ours=lambda: objective.scores(P),
        rivals={} if missing else {name: run},
        agree=within(tolerance, lambda scores: -scores * objective.unit),
        work=centers_work(n, d, m, k, power),
    )


def ties(X, centers):
    """How many records have two nearest centres; exact, since all lie on the grid."""
    D = np.column_stack([np.square(X - c).sum(axis=1) for c in centers])
    D.partition(1, axis=1)
    return int((D[:, 0] == D[:, 1]).sum())


@case("lloyd", 10, 18, "counts and sums", n=30_000, d=10, k=5)
@case("lloyd large", 3, 5, "counts and sums", n=1_000_000, d=10, k=16)
def lloyd(threads, scale, n, d, k):
    n = scaled(n, scale)
    X = tables.blobs(n, d, k)
    objective = privfit.CentersObjective(X, k, privfit.Box(0, 1), n_threads=threads)
    centers = objective.snap(np.random.default_rng(9).uniform(0.2, 0.8, (k, d)))
    unit = objective.unit**0.5

    def agree(ours, name, theirs):
        counts, sums = ours
        if name != "sklearn KMeans":
            np.testing.assert_array_equal(np.column_stack([counts, sums * unit]), theirs)
        elif counts.all():  # KMeans moves empty clusters elsewhere
            # It subtracts the mean first, which breaks exact ties; a tied record may change sides.
            allowed = 1e-9 + ties(X, centers) / counts[:, None]
            assert (np.abs(sums / counts[:, None] * unit - theirs) <= allowed).all(), name

    assign = Work(multiplies=-(-d // 2), others=-(-d // 2) + 3) * (n * k / 8)
    add = Work(others=-(-d // 4), loads=-(-d // 4)) * n  # int64 sums of a cluster, four to a vector
    return Ready(
        size=f"{n:,} x {d}, k={k}",
        ours=lambda: objective.lloyd(centers),
        rivals={
            "sklearn KMeans": lambda: baselines.lloyd_kmeans(X, centers),
            "sklearn argmin, sums": lambda: baselines.lloyd_argmin(X, centers),
        },
        agree=agree,
        work=assign + add + Work(bytes=2 * n * d),
    )


# ------------------------------------------------------------------------------------- facilities

CLIP = {"real": (2.0, 10.0), "real wide": (30.0, 42.0), "one-hot": (4.0, 18.0)}


def _places(kind, scale):
    d = 117 if kind == "real wide" else 22
    return tables.places(scaled(8_124, scale), scaled(2_031, scale), d, kind == "one-hot")


@case("facility scores uint16", 150, 700, bits=16)
@case("facility scores uint8", 150, 700, bits=8)
@case("facility scores, uint16 numpy", note="a harder baseline", bits=16, by_facility=True)
def facility_scores(threads, scale, bits, by_facility=False, k=16, m=200):
    X, places = _places("real", scale)
    n, f = len(X), len(places)
    low, high = CLIP["real"]
    objective = privfit.FacilityObjective(
        X, places, (low, high), domain=privfit.Box(0, 1), bits=bits, n_threads=threads
    )
    rng = np.random.default_rng(10)
    sets = np.stack([rng.choice(f, k, replace=False) for _ in range(m)])
    A = baselines.clipped_distances(X, places, low, high)
    small = np.rint((A.T - low) / objective.unit).astype(np.uint16)
    if by_facility:
        name, run = "numpy uint16 rows", lambda: baselines.facility_scores_rows(small, sets)
    else:
        name, run = "numpy A[:, c]", lambda: baselines.facility_scores(A, sets)
    row = bits / 8 * n / 32
    distinct = len(np.unique(sets))
    unit, start = (1.0, 0.0) if by_facility else (objective.unit, n * low)
    # Two bytes hold every distance exactly; one byte rounds each.
    tolerance = n * ROUNDING * objective.unit if bits == 8 else 0
    return Ready(
        size=f"{n:,} x {f:,}, k={k}, {m} candidates",
        ours=lambda: objective.scores(sets),
        rivals={name: run},
        agree=within(tolerance, lambda scores: start - scores * unit),
        work=Work(loads=m * k * row, others=m * (k + 2) * row, bytes=distinct * 32 * row),
    )


WHOLE = "ours: the whole FacilityObjective, records included"


@case("distance matrix real", 20, 60, WHOLE, kind="real")
@case("distance matrix real wide", 20, 60, WHOLE, kind="real wide")
@case("distance matrix one-hot", 100, 400, WHOLE, kind="one-hot")
def distance_matrix(threads, scale, kind):
    X, places = _places(kind, scale)
    (n, d), f = X.shape, len(places)
    low, high = CLIP[kind]

    def ours():
        return privfit.FacilityObjective(
            X, places, (low, high), domain=privfit.Box(0, 1), n_threads=threads
        )

    def agree(objective, name, theirs):
        sums = -objective.scores(np.arange(f)[:, None]) * objective.unit
        np.testing.assert_array_equal(sums, (theirs - low).sum(axis=0))

    pairs = -(-d // 2)
    clip = Work(others=5)
    if kind == "one-hot":
        groups = len(tables.MUSHROOM)
        each = Work(others=groups, loads=groups) + clip
    else:
        each = Work(multiplies=pairs, others=3 * pairs) + clip
    return Ready(
        size=f"{n:,} x {f:,}, d={d}",
        ours=ours,
        rivals={"scipy cdist, clip": lambda: baselines.clipped_distances(X, places, low, high)},
        agree=agree,
        work=each * (n * f / 8) + Work(bytes=2 * n * f + 8 * n * d),
    )


# --------------------------------------------------------------------------------------- selection


def _scores(m):
    """Scores as a search sees them: a few candidates ahead of a bell curve."""
    return np.random.default_rng(7).normal(0, 1000, m).astype(np.int64)


def _agree_on_indices(m):
    def agree(ours, name, theirs):
        for drawn in (ours, theirs):
            assert len(np.unique(drawn)) == 10, name
            assert drawn.min() >= 0, name
            assert drawn.max() < m, name

    return agree


@case("top 10 of 200", note="operating system's entropy; no target but 0.1 ms", m=200)
@case("top 10 of 1,000,000 vs Gumbel", 35, m=1_000_000)
@case("top 10 of 1,000,000 vs choice", 150, m=1_000_000, loop=True)
def top_k(threads, scale, m, loop=False):
    scores, epsilon, widest = _scores(m), 0.5, 100
    mechanism = privfit.TopK(10, epsilon, widest)
    name, baseline = (
        ("numpy loop of choice", baselines.top_k_choice)
        if loop
        else ("numpy Gumbel + argpartition", baselines.top_k_gumbel)
    )
    return Ready(
        size=f"{m:,} scores, k=10",
        ours=lambda: mechanism(scores),
        rivals={name: lambda: baseline(scores, 10, epsilon / widest)},
        agree=_agree_on_indices(m),
        work=Work(multiplies=8 * m / 8, others=12 * m / 8, bytes=2 * 8 * m),
    )


@case("discrete Laplace, 100,000 draws", 10, note="epsilon 1, sensitivity 1; linear in the draws")
def discrete_laplace(threads, scale):
    n = 100_000
    zeros = np.zeros(n, dtype=np.int64)
    mechanism = privfit.DiscreteLaplace(1.0, 1)
    peers = {"OpenDP": baselines.laplace_opendp(n)} if has("opendp") else {}

    def agree(ours, name, theirs):
        variance = 2 * np.exp(-1) / (1 - np.exp(-1)) ** 2
        for drawn in (ours, theirs):
            assert abs(drawn.var() / variance - 1) < 0.05, name

    return Ready(
        size=f"{n:,}",
        ours=lambda: mechanism(zeros),
        rivals=peers,
        agree=agree,
        work=Work(bytes=16 * n),
    )
