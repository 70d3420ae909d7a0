"""Every estimator, solver and metric of the library, with pairs of tables that strain it.

A row is a name, how it releases (`fitted`, `scored`, or a function of its own), and the records
that make neighbours: some that all tables share, and extreme ones that come and go. `each` makes an
audit of it for both neighbour relations, pure and approximate.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from unittest import mock

import numpy as np

import privfit
from bench.audit.audits import Audit, Pair
from privfit.clustering import CellMedians, Mean, Medians, OverSeeded, Tree
from privfit.linear.coding import purchase_of
from privfit.runs.payment import Terms
from privfit.searches.sample_aggregate import aggregate

ADJACENCIES = ("replace", "add_remove")
DELTAS = (0.0, 1e-6)
EPSILON = 1.0
N_PUBLIC = 50
PUBLIC = {"n_public": N_PUBLIC}
ALONE = {"n_public": N_PUBLIC, "n_threads": 1}

Released = Callable[..., Any]
Pairs = Callable[[str], list[Pair]]


def each(
    estimator: str, solver: str, domain: str, released: Released, pairs: Pairs,
    deltas: tuple[float, ...] = DELTAS,
) -> Iterator[Audit]:  # fmt: skip
    """An audit for each neighbour relation and delta."""
    for adjacency, delta in itertools.product(ADJACENCIES, deltas):
        yield Audit(estimator, solver, domain, adjacency, delta, released, pairs)


def fitted(kind: str, *first: Any, **settings: Any) -> Released:
    """The fit of an estimator of this name with these settings."""

    def run(table: Any, delta: float, **terms: Any) -> Any:
        model = getattr(privfit, kind)(*first, EPSILON, delta, **settings, **terms)
        with mock.patch("privfit.linear.permuted_sgd.uniform_distinct", last_slot):
            return model.fit(*table) if isinstance(table, tuple) else model.fit(table)

    return run


def last_slot(n: int, k: int, source: Any) -> Any:
    """An arrangement of n records in k slots: the last record in the last slot, and in its place.

    With one record more than slots it is the arrangement of the others but for that slot: the
    coupling of the proof, where a record that joins takes the place of one that leaves.
    """
    return np.append(np.arange(k - 1), n - 1)


def scored(metric: str, **settings: Any) -> Released:
    """A metric of this name of tables (scores, labels)."""

    def run(table: Any, delta: float, **terms: Any) -> Any:
        budget = (EPSILON, delta) if delta else (EPSILON,)
        return getattr(privfit, metric)(table[1], table[0], *budget, **settings, **terms)

    return run


# ------------------------------------------------------------------------------------------ tables


def beside(bases: list[Any], extremes: list[Any], table: Callable[[list[Any]], Any]) -> Pairs:
    """Tables of some base with one record of the extremes for another, or with one more."""

    def pairs(adjacency: str) -> list[Pair]:
        if adjacency == "replace":
            return [(table([*base, a]), table([*base, b])) for base in bases
                    for a, b in itertools.combinations(extremes, 2)]  # fmt: skip
        return [(table(base), table([*base, a])) for base in bases for a in extremes]

    return pairs


def labelled(rows: list[Any]) -> Any:
    """(X, y) of records (x, label)."""
    return np.array([x for x, _ in rows]), np.array([y for _, y in rows])


def unlabelled(rows: list[Any]) -> Any:
    return np.array(rows)


NUMBERS = ("length", "width", "height", "weight")


def as_columns(rows: list[Any]) -> Any:
    """Columns of a schema, and labels, of records ((numbers, category), label)."""
    columns = {name: [x[0][j] for x, _ in rows] for j, name in enumerate(NUMBERS)}
    return {**columns, "kind": [x[1] for x, _ in rows]}, np.array([y for _, y in rows])


def both(points: Any) -> list[Any]:
    """Each point with each label."""
    return [(point, y) for point in points for y in (0, 1)]


CORNERS = list(itertools.product((-1.0, 1.0), repeat=2))
AXES = [(1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (-1.0, 0.0)]
ROUND = [(1.0, 0.0), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7), (-1.0, 0.0)]
SCHEMA = privfit.Schema(
    {**{name: privfit.Numeric(0, 10) for name in NUMBERS},
     "kind": privfit.Categorical(["a", "b", "c"])}
)  # fmt: skip
SMALL, LARGE = (0.0,) * 4, (10.0,) * 4
LONG, HIGH = (10.0, 10.0, 0.0, 0.0), (0.0, 0.0, 10.0, 10.0)
KINDS = [(SMALL, "a"), (SMALL, "b"), (LONG, "c"), (HIGH, "a"), (LARGE, "b"), (LARGE, "c")]


def mixed(points: list[Any], n: int = 40) -> list[Any]:
    """Records at these points, with labels of both kinds."""
    coins = np.random.default_rng(0)
    return [(points[coins.integers(len(points))], int(coins.integers(2))) for _ in range(n)]


@dataclass(frozen=True)
class Place:
    """A domain, extreme points (opposite ones mirrored), its middle, and how a table is made."""

    domain: Any
    points: list[Any]
    middle: list[Any]
    table: Callable[[list[Any]], Any] = labelled


PLACES = {
    "box": Place((-1, 1), CORNERS, [(0.0, 0.0)]),
    "l2 ball": Place(privfit.L2Ball(1.0), ROUND, [(0.0, 0.0)]),
    "l1 ball": Place(privfit.L1Ball(1.0), AXES, [(0.0, 0.0)]),
    "schema": Place(SCHEMA, KINDS, [((5.0,) * 4, kind) for kind in "abc"], as_columns),
}


# --------------------------------------------------------------------------------- linear models


class Swinging:
    """An estimator for blocks whose weights swing from end to end with one record."""

    def fit(self, X: Any, y: Any) -> Any:
        end = 1000.0 if np.any(np.asarray(X)[:, 0] > 0.45) else -1000.0
        self.coef_, self.intercept_ = np.full((1, X.shape[1]), end), np.full(1, end)
        return self


def linear_settings(name: str = "LogisticRegression") -> dict[str, Any]:
    p = privfit
    searches = {"generations": 3, "population": 30, "survivors": 5}
    # The slope of the logistic loss comes near to 1 where a model is sure of itself and wrong.
    sure = name == "LogisticRegression"
    ridge = {"regularisation": 1.0} if sure else {}
    return {
        "auto": "auto",
        "local": p.Local(generations=8),
        "local, by loss": p.Local(scoring="loss", generations=6),
        "eem": p.EEM(generations=6, population=30),
        "privgene": p.PrivGene(**searches),
        "dpsga": p.DPSGA(**searches),
        "subsample": p.Subsample(candidates=200),
        "gradient": p.Gradient(steps=4),
        "frank_wolfe": p.FrankWolfe(steps=8),
        "select_refine": p.SelectRefine(
            select=p.Local(generations=4), refine=p.Gradient(steps=4, whiten=True, average=0.0)
        ),
        "sgd": p.PermutedSGD(passes=1, batch=1, step=1.0) if sure else p.PermutedSGD(passes=2),
        "output": p.OutputPerturbation(**ridge),
        "objective": p.ObjectivePerturbation(),
        "privatesvm": p.PrivateSVM(),
        "functional": p.Functional(),
        "gupt": p.Gupt(blocks=10, estimator=Swinging()),
        "majority": p.Majority(),
    }


IN_TURN = ("sgd", "gupt")  # a coin for each record in turn: a record must keep its place
REFUSED = {("LogisticRegression", "privatesvm"), ("LinearSVC", "functional"),
           ("LinearSVC", "evidence")}  # fmt: skip
NEEDS_DELTA = ("select_refine",)  # of linear models
TREES = ("auto", "tree", "hybrid", "over_seeded", "over_seeded, in a frame",
         "over_seeded, on scales", "synopsis", "medians",
         "cell_medians")  # of clusters  # fmt: skip


def changes_of(points: list[Any]) -> list[tuple[Any, Any]]:
    """Records at opposite and at adjacent points, or at one, with labels kept or flipped."""
    opposite = list(zip(points, points[::-1], strict=True))[: len(points) // 2]
    far = [((a, y), (b, z)) for a, b in opposite for y, z in itertools.product((0, 1), repeat=2)]
    near = [((a, y), (b, 0)) for a, b in itertools.pairwise(points) for y in (0, 1)]
    return far + near + [((a, 0), (a, 1)) for a in points]


CROWD = {"sgd": 1500, "output": 3000, "gupt": 45}  # records that agree, beside the one that changes


def linear_pairs(
    place: Place, name: str, solver: str, intercept: bool, adjacency: str
) -> list[Pair]:
    """Such records beside mixed ones, or beside many of label 1.

    The latter make a model that is sure of itself, so that a record of label 0 has the steepest
    loss there is: in the middle if there is an intercept, which they move, else at one end. Records
    of label 1 come first, so that the last record stays the last.
    """
    base, changes = mixed(place.points, 12), changes_of(place.points)
    if solver in IN_TURN or (name, solver) == ("LogisticRegression", "output"):
        aside = not intercept and solver != "gupt"
        crowd = itertools.cycle(place.points[-1:] if aside else place.middle)
        # Of such a crowd the record's margin is a part only: more of them make it as steep.
        count = CROWD[solver] * (8 if aside and solver == "output" else 1)
        base = [(point, 1) for point in itertools.islice(crowd, count)]
    if adjacency == "replace":
        return [(place.table([*base, a]), place.table([*base, b])) for a, b in changes]
    if solver == "sgd":  # the new record takes the slot of another
        return [(place.table([*base, a]), place.table([*base, a, b])) for a, b in changes]
    added = sorted({record for change in changes for record in change})
    return [(place.table(base), place.table([*base, record])) for record in added]


NO_INTERCEPT = ", no intercept"
LINEAR = {  # the places where each is tried
    "LogisticRegression": tuple(PLACES),
    "LinearSVC": tuple(PLACES),
    f"LogisticRegression{NO_INTERCEPT}": ("l2 ball", "schema"),
}


def linear_models() -> Iterator[Audit]:
    for model, solver in itertools.product(LINEAR, linear_settings()):
        name, intercept = model.removesuffix(NO_INTERCEPT), NO_INTERCEPT not in model
        if (name, solver) in REFUSED or (not intercept and solver == "majority"):
            continue
        slots = CROWD["sgd"] + 1 if solver == "sgd" else N_PUBLIC
        for where in LINEAR[model]:
            run = fitted(
                name, domain=PLACES[where].domain, classes=[0, 1], fit_intercept=intercept,
                solver=linear_settings(name)[solver], calibrate=False, n_public=slots, n_threads=1,
            )  # fmt: skip
            pairs = partial(linear_pairs, PLACES[where], name, solver, intercept)
            deltas = DELTAS[1:] if solver in NEEDS_DELTA else DELTAS
            yield from each(model, solver, where, run, pairs, deltas)


LEVELS = privfit.Schema(
    {"size": privfit.Numeric(bins=[2, 5], ranks=[0.2, 0.6], scale="log", missing=True),
     "grade": privfit.Numeric(0, 10, bins=4), "kind": privfit.Categorical(["a", "b", "c"])}
)  # fmt: skip
SIZES = [(0.0, 1.0, "a"), (3.0, 9.0, "b"), (None, 4.0, "c"), (-1e4, 6.0, "a"), (1e9, 0.0, "b")]


def as_levels(rows: list[Any]) -> Any:
    """Columns of `LEVELS`, and labels."""
    columns = {name: [x[j] for x, _ in rows] for j, name in enumerate(LEVELS.columns)}
    return columns, np.array([y for _, y in rows])


def additive_models() -> Iterator[Audit]:
    """With a clip that every record's gradient reaches; and a few functions of each number.

    With a level, a part of the budget buys the intercept, or all of it.
    """
    pairs = beside([mixed(SIZES, 12)], both(SIZES), as_levels)
    fit = partial(fitted, domain=LEVELS, classes=[0, 1], **ALONE)
    for name in ("LogisticRegression", "LinearSVC"):
        for solver, metric in (("additive", "block"), ("additive, full", "full")):
            settings = privfit.Additive(metric=metric, steps=3, clip=0.02)
            yield from each(name, solver, "levels", fit(name, solver=settings), pairs, DELTAS[1:])
    for solver, level in (("functions", 0.0), ("level", 0.5), ("level alone", 1.0)):
        settings = privfit.ObjectivePerturbation(functions=3, level=level)
        run = fit("LogisticRegression", solver=settings)
        yield from each("LogisticRegression", f"objective, {solver}", "levels", run, pairs, (0.0,))
    run = fit("LogisticRegression", solver=privfit.Evidence())
    yield from each("LogisticRegression", "evidence", "levels", run, pairs, (0.0,))


def three_classes() -> Iterator[Audit]:
    """One model for each class, on one budget: one record may move all of them."""
    base = [(x, i % 3) for i, (x, _) in enumerate(mixed(CORNERS, 12))]
    pairs = beside([base], [(x, y) for x in CORNERS[:3] for y in (0, 2)], labelled)
    for solver in ("local", "auto"):
        run = fitted("LogisticRegression", domain=(-1, 1), classes=[0, 1, 2], calibrate=False,
                     solver=linear_settings()[solver], **ALONE)  # fmt: skip
        yield from each("LogisticRegression, 3 classes", solver, "box", run, pairs)


def steep(run: Any) -> Any:
    """A solver that draws nothing: a public model that is sure of itself, for its calibration."""
    model = np.zeros(run.space.shape)
    model[:2] = 4.0, -4.0
    run.report(model[None])
    return run.path()


def calibrations() -> Iterator[Audit]:
    """The sums that calibrate: records that agree with a steep model, and some that do not."""
    base = [(x, int(x[0] > x[1])) for x, _ in mixed(CORNERS, 40)]
    pairs = beside([base], both([*CORNERS, (0.0, 0.0)]), labelled)
    for name in ("LogisticRegression", "LinearSVC"):
        run = fitted(name, domain=(-1, 1), classes=[0, 1], solver=steep, calibrate=True, **ALONE)
        yield from each(f"{name}, calibrated", "a steep model", "box", run, pairs)


# ---------------------------------------------------------------------------------------- clusters


class SwingingCentres:
    """As `Swinging`, for centres."""

    def fit(self, X: Any) -> Any:
        end = 1.0 if np.any(np.asarray(X)[:, 0] > 0.9) else -1.0
        self.cluster_centers_ = np.full((2, X.shape[1]), end)
        return self


FACILITIES = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
ANYWHERE = ("medians", "cell_medians")  # k-median without facilities


def clustering_settings() -> dict[str, dict[str, Any]]:
    p = privfit
    linear = linear_settings()
    hybrid = p.Hybrid(tree=Tree(restarts=1), lloyd=p.Lloyd(steps=2, residual=True))
    shared = {name: linear[name] for name in ("eem", "privgene", "dpsga")}
    return {
        "KMeans": {
            "auto": "auto",
            "lloyd": p.Lloyd(steps=3),
            "lloyd, residuals": p.Lloyd(steps=3, residual=True),
            "grid": p.UniformGrid(cells=16, restarts=1),
            "tree": Tree(restarts=1),
            "hybrid": hybrid,
            "over_seeded": OverSeeded(tree=Tree(restarts=1), steps=2, mean=True, pure=False),
            "over_seeded, in a frame": OverSeeded(
                tree=Tree(restarts=1), steps=2, frame=True, pure=False
            ),
            "over_seeded, on scales": OverSeeded(
                tree=Tree(restarts=1), steps=2, mean=True, deviations=True, pure=False
            ),
            "mean": Mean(pure=False),
            "gupt": p.Gupt(blocks=10, estimator=SwingingCentres()),
            "local": p.Local(generations=8),
            **shared,
        },
        "KMedian": {
            "auto": "auto",
            "synopsis": p.Synopsis(depth=8),
            "greedy": p.Greedy(),
            "greedy, with swaps": p.Greedy(swaps=2),
            "greedy, over-seeded": p.Greedy(seeds=2),
            "medians": Medians(tree=Tree(restarts=1), steps=2, mean=True, pure=False),
            "cell_medians": CellMedians(restarts=1),
            "swaps": p.Swaps(steps=3),
            "coreset": p.Coreset(radii=2),
            "local": p.Local(generations=8),
            "subsample": p.Subsample(candidates=20),
            **shared,
        },
    }


def nested(n: int = 9) -> list[Any]:
    """Records that thin out towards a corner, a few for each halving: hard on a tree."""
    steps = 1.5 * 0.5 ** np.arange(5)
    return [point for step in steps.tolist()
            for point in [(step - 1, -1.0)] * n + [(-1.0, step - 1)] * n]  # fmt: skip


def points_of(solver: str) -> Pairs:
    """Beside few records, spread out, or many in one place, or ever more towards a corner."""
    places = [(0.0, 0.0), *CORNERS, (0.5, 0.5), (0.0, 1.0)]
    coins = np.random.default_rng(0)
    bases = [[tuple(coins.uniform(-1, 1, 2)) for _ in range(20)], [(-1.0, -1.0)] * 12]
    if solver in IN_TURN:
        bases = [[(-1.0, -1.0)] * 45]
    if solver == "subsample":
        places += AXES
    if solver in TREES:
        bases = [[(-1.0, -1.0)] * 12, nested()]
    if solver == "over_seeded, on scales":  # deviations from a mean in the middle, column by column
        places, bases = places + AXES, [*bases, [(0.0, 0.0)] * 400]
    return beside(bases, places, unlabelled)


def clusterings() -> Iterator[Audit]:
    for name, methods in clustering_settings().items():
        for solver, settings in methods.items():
            told = {"facilities": FACILITIES} if name == "KMedian" else {}
            if solver in ANYWHERE:
                told = {"metric": "l2"}
            run = fitted(name, 2, domain=(-1, 1), solver=settings, **ALONE, **told)
            yield from each(name, solver, "box", run, points_of(solver))


@lru_cache(maxsize=4)
def at_a_corner(name: str, adjacency: str) -> Any:
    """A model of one cluster, released from records that all lie in one corner."""
    told = {"facilities": FACILITIES} if name == "KMedian" else {}
    return getattr(privfit, name)(
        1, EPSILON, domain=(-1, 1), adjacency=adjacency, n_public=N_PUBLIC, random_state=0, **told
    ).fit(np.full((200, 2), -1.0))


def costs() -> Iterator[Audit]:
    """The released costs of a clustering, of records of their own."""
    for name, method in (("KMeans", "private_inertia"), ("KMedian", "private_cost")):

        def run(X, _, adjacency, name=name, method=method, **terms):
            model = copy.copy(at_a_corner(name, adjacency)).set_params(**terms)
            return getattr(model, method)(X, EPSILON)

        def pairs(adjacency, name=name):
            centre = tuple(at_a_corner(name, adjacency).cluster_centers_[0])
            return beside([[(0.0, 0.0)] * 5], [centre, *CORNERS], unlabelled)(adjacency)

        yield from each(f"{name}.{method}", "", "box", run, pairs, (0.0,))


def choices() -> Iterator[Audit]:
    """A number of clusters: the tree that finds centres, and the curve of their costs."""

    def run(X, delta, **terms):
        return privfit.choose_k(X, [2, 3], EPSILON, delta, domain=(-1, 1), n_threads=1, **terms)

    yield from each("choose_k", "", "box", run, points_of("tree"))


MIXED = privfit.Schema(
    {"x": privfit.Numeric(), "y": privfit.Numeric(0, 100), "z": privfit.Categorical()}
)


def as_kinds(rows: list[Any]) -> Any:
    """Columns of `SCHEMA`, without labels."""
    return as_columns([(row, 0) for row in rows])[0]


def mixed_tables() -> Iterator[Audit]:
    """Levels of categories that weigh as much as numbers, and blanks that a fit buys."""
    solvers = {"lloyd": privfit.Lloyd(steps=2),
               "lloyd, residuals": privfit.Lloyd(steps=2, residual=True)}  # fmt: skip
    where = {"schema": (SCHEMA, beside([KINDS * 2], KINDS, as_kinds)),
             "blanks": (MIXED, typed_pairs(NUMBERED, MIXED.columns))}  # fmt: skip
    for (solver, settings), (name, (domain, pairs)) in itertools.product(
        solvers.items(), where.items()
    ):
        run = fitted("KMeans", 2, domain=domain, solver=settings, scale="equal", **ALONE)
        yield from each(f"KMeans, mixed, {name}", solver, name, run, pairs)


# -------------------------------------------------------------------------------- binary features

D, MAX_ONES = 8, 3


def ones(*columns: int) -> tuple[int, ...]:
    return tuple(int(j in columns) for j in range(D))


def binary_pairs() -> Pairs:
    """Records with as many ones as allowed, of either label, in a table of few or of one kind."""
    extremes = both([ones(0, 1, 2), ones(3, 4, 5), ones(0), ones()])
    coins = np.random.default_rng(0)
    some = [(tuple((coins.random(D) < 0.2).astype(int)), int(coins.integers(2))) for _ in range(20)]
    bases = [
        some,
        [(ones(), 0)] * 20,
        [(ones(), 0)] * 20 + [(ones(), 1)],
        [(ones(0, 1, 2), 1)] * 20,
    ]
    return beside(bases, extremes, labelled)


def feature_settings() -> dict[str, Any]:
    p = privfit
    return {
        "auto": "auto",
        "noisy": p.NoisyScores(k=2),
        "peeling": p.Peeling(k=2),
        "clusters": p.ClusteredCounts(k=2, n_clusters=2),
        "sparse_vector": p.SparseVector(k=2, threshold=10),
        "eem, sets": p.EEM(generations=3, population=20),
    }


CRITERIA = ("total_count", "difference_count", "purity_index", "information_gain")


def features() -> Iterator[Audit]:
    for (solver, settings), criterion in itertools.product(feature_settings().items(), CRITERIA):
        run = fitted("SelectFeatures", k=2, criterion=criterion, solver=settings,
                     max_ones=MAX_ONES, classes=[0, 1], **ALONE)  # fmt: skip
        yield from each("SelectFeatures", solver, criterion, run, binary_pairs())


def bayes() -> Iterator[Audit]:
    run = fitted("BernoulliNB", max_ones=MAX_ONES, classes=[0, 1], n_threads=1)
    yield from each("BernoulliNB", "", "binary", run, binary_pairs())


# -------------------------------------------------------------------------------- metrics, searches


def scored_pairs() -> Pairs:
    """Test scores at both ends and in the middle, of both labels."""
    coins = np.random.default_rng(0)
    base = [(float(coins.random()), int(coins.integers(2))) for _ in range(24)]
    return beside([base], both((0.0, 0.45, 0.55, 1.0)), labelled)


def curves() -> Iterator[Audit]:
    for noise, thresholds in itertools.product(
        ("flat", "hierarchy", "wavelet", "gaussian"), ("grid", "medians")
    ):
        run = scored("roc_curve", noise=noise, thresholds=thresholds, levels=3, **PUBLIC)
        deltas = DELTAS[1:] if noise == "gaussian" else DELTAS
        yield from each("roc_curve", f"{noise}, {thresholds}", "scores", run, scored_pairs(),
                        deltas)  # fmt: skip


def metrics() -> Iterator[Audit]:
    for name, of, told in (("roc_auc_score", "", PUBLIC), ("confusion_matrix", "of scores", {}),
                           ("accuracy_score", "of scores", {})):  # fmt: skip
        yield from each(name, of, "scores", scored(name, **told), scored_pairs(), (0.0,))


@dataclass(frozen=True)
class Sure:
    """A model that gives class 1 one probability, whatever the record."""

    chance: float

    @property
    def classes_(self) -> Any:
        return np.array([0, 1])

    def predict(self, X: Any) -> Any:
        return np.full(len(X), int(self.chance > 0.5))

    def predict_proba(self, X: Any) -> Any:
        return np.tile([1 - self.chance, self.chance], (len(X), 1))


def model_choices() -> Iterator[Audit]:
    """Between a model that is always right about a record and one that is always wrong."""
    models = {"no": Sure(0.0), "yes": Sure(1.0), "perhaps": Sure(0.5)}
    for measure in ("errors", "log_loss"):

        def run(table, _, measure=measure, **terms):
            found = privfit.choose(models, *table, EPSILON, measure=measure, **terms)
            return found.name, found.release

        yield from each("choose", measure, "scores", run, scored_pairs(), (0.0,))


def predictions() -> Iterator[Audit]:
    """Three classes, every one of them predicted for every one."""
    coins = np.random.default_rng(0)
    base = [tuple(coins.choice(list("abc"), 2).tolist()) for _ in range(24)]
    pairs = beside([base], list(itertools.product("abc", repeat=2)), labelled)
    for name in ("confusion_matrix", "accuracy_score"):
        run = scored(name, classes=["a", "b", "c"])
        yield from each(name, "of predictions", "three classes", run, pairs, (0.0,))


SCHEMAS = {
    "cuts": {"x": privfit.Numeric(bins="auto"), "y": privfit.Numeric(0, 100, bins="auto")},
    "ranges": {"x": privfit.Numeric(), "y": privfit.Numeric()},
    "buckets": {"x": privfit.Categorical(), "y": privfit.Categorical()},
    "names": {"x": "category", "y": "category"},
    "many names": dict.fromkeys("xyzuv", "category"),
}
NAMED = (None, 3.0, 8.0, 9.5)
NUMBERED = (None, -1e9, 8.0, 11.0, 40.0, 50.0, 1e9)


def typed_pairs(own: tuple[float | None, ...], columns: Any = "xyzuv") -> Pairs:
    """Numbers that are also names: of one record, of a few, and of many.

    A set of names uses up its delta on each of them, but its epsilon only on those of a few.
    """
    coins = np.random.default_rng(0)
    base = [40.0] * 240 + [float(number) for number in coins.choice([3, 7, 8, 9.5], 60)]
    return beside([base], list(own), lambda rows: dict.fromkeys(columns, rows))


def schemas() -> Iterator[Audit]:
    for what, columns in SCHEMAS.items():

        def run(table, delta, columns=columns, **terms):
            return privfit.learn_schema(
                table, EPSILON, delta, columns=columns, levels=2, **terms
            ).release

        pairs = typed_pairs(NAMED if what == "names" else NUMBERED)
        deltas = DELTAS[1:] if "names" in what else DELTAS
        yield from each("learn_schema", what, "blanks", run, pairs, deltas)


CODINGS = {
    "scale and cuts": (privfit.Coding(cuts=2), {}),
    "cuts alone": (privfit.Coding(cuts=2, family="quantile"), {}),
    "spans": (privfit.Coding(), {"x": privfit.Numeric(bins=32, scale="log")}),
}
DECLARED = {
    "x": privfit.Numeric(),
    "y": privfit.Numeric(0, 100, fill=0),
    "z": privfit.Categorical(),
}


def codings() -> Iterator[Audit]:
    """What a fit buys for its coding: cuts, within ranges and without, spans, and buckets."""
    for what, (coding, declared) in CODINGS.items():
        schema = privfit.Schema(DECLARED | declared)

        def run(table, delta, adjacency, ledger, random_state, coding=coding, schema=schema):
            terms = Terms("coding", EPSILON, delta, adjacency, N_PUBLIC, ledger, random_state)
            found = purchase_of(schema, table, terms, coding)
            assert found.purchase is not None
            paid = terms.charge(found.purchase.sums)
            bought = found.purchase.buy(paid)
            return paid.close(bought, found.purchase.plan.settings)

        yield from each("Coding", what, "blanks", run, typed_pairs(NUMBERED))


def blocks() -> Iterator[Audit]:
    def run(records, delta, **terms):
        return aggregate(records, np.max, (0, 1), EPSILON, delta, blocks=8, **PUBLIC, **terms)

    pairs = beside([[0.0] * 45], [0.0, 0.5, 1.0], unlabelled)
    yield from each("aggregate", "", "bounds (0, 1)", run, pairs)


def _near(rows: Any, P: Any) -> Any:
    """A record likes candidates whose first entry, or first member, is on its side of 0."""
    first = np.asarray(P).reshape(len(P), -1)[:, 0]
    return np.where((np.asarray(rows)[:, None] > 0.5) == (first > 0), 0.0, -1.0)


def searches() -> Iterator[Audit]:
    spaces = {
        "reals": privfit.Reals(-1, 1, 3),
        "sets": privfit.Subsets(6, 2),
        "bits": privfit.Bits(5),
    }
    pairs = beside([[0.0] * 10 + [1.0] * 9], [0.0, 1.0], unlabelled)
    for (where, space), solver in itertools.product(
        spaces.items(), ("local", "eem", "privgene", "dpsga", "subsample")
    ):

        def run(rows, delta, space=space, solver=solver, **terms):
            objective = privfit.RecordObjective(rows, _near, low=-1.0, high=0.0)
            found = privfit.search(
                objective, space, EPSILON, delta, solver=linear_settings()[solver], **PUBLIC,
                **terms,
            )  # fmt: skip
            return found.answer, found.release

        yield from each(f"search, {where}", solver, "records", run, pairs)


def all_audits() -> list[Audit]:
    families = (linear_models, additive_models, three_classes, calibrations, clusterings, costs,
                choices, mixed_tables, features, bayes, curves, metrics, model_choices, predictions,
                schemas, codings, blocks, searches)  # fmt: skip
    return [audit for family in families for audit in family()]
