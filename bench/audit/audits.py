"""What each audit finds: pairs of tables for every estimator, solver and metric of the library.

An `Audit` is one way to release something, and neighbouring tables that strain it. `python -m bench
audit` tries them all and writes docs/audit.md; the tests repeat the pairs it found.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np

import privfit
from privfit.audit import paired
from privfit.clustering import CellMedians, Mean, Medians, OverSeeded, Tree
from privfit.evaluation import roc_plan
from privfit.linear import tilts
from privfit.linear.coding import purchase_of
from privfit.privacy import mechanisms, names, privtree, quantiles
from privfit.runs.payment import Terms
from privfit.searches.sample_aggregate import aggregate

ADJACENCIES = ("replace", "add_remove")
DELTAS = (0.0, 1e-6)
EPSILON = 1.0
N_PUBLIC = 50
SEEDS = (0,)


@dataclass(frozen=True, eq=False)
class Audit:
    """One kind of release: `run(table, ledger, random_state)`, and pairs of neighbouring tables."""

    estimator: str
    solver: str
    domain: str
    adjacency: str
    delta: float
    run: Callable[[Any, Any, Any], Any]
    pairs: Callable[[], list[tuple[Any, Any]]]

    @property
    def row(self) -> tuple[str, str]:
        return self.estimator, self.solver

    @property
    def key(self) -> str:
        return "/".join([*self.row, self.domain, self.adjacency, f"{self.delta:g}"])

    def measure(self, tries: list[Try] | None = None) -> Measured:
        """The largest strain of each release, over these tries or over all pairs and seeds."""
        pairs = self.pairs()
        if tries is None:
            tries = [(pair, seed) for pair in range(len(pairs)) for seed in SEEDS]
        found = [paired(self.run, *pairs[pair], seed=seed) for pair, seed in tries]
        best: dict[str, tuple[float, Try]] = {}
        for step, where in ((step, where) for one, where in zip(found, tries, strict=True)
                            for step in one.steps):  # fmt: skip
            place = f"{step.place}: {step.mechanism.partition('(')[0]}"
            best[place] = max(best.get(place, (-1.0, where)), (step.strain, where))
        return Measured(
            sorted({where for _, where in best.values()}),
            {place: strain for place, (strain, _) in best.items()},
            sorted({text for one in found for text in one.differences}),
        )


Try = tuple[int, int]  # the place of a pair, a seed


@dataclass(frozen=True)
class Measured:
    """The tries that strain some release most, and by how much: by who releases, and how."""

    tries: list[Try]
    strains: dict[str, float]
    differences: list[str]

    @property
    def finds(self) -> float:
        """A fault by more than this factor is found, in whichever release it is."""
        least = min(self.strains.values(), default=0.0)
        return 1 / least if least else float("inf")

    @property
    def passes(self) -> bool:
        return not self.differences and max(self.strains.values(), default=0.0) <= 1 + 1e-9


# ---------------------------------------------------------------------------------- planted faults


def weakened(kind: Any, name: str, factor: float) -> dict[str, Any]:
    """What to change in a mechanism so that it draws as for `factor` times its budget."""
    honest, begin = kind.event.fget, kind.__init__

    def event(self: Any) -> Any:
        return replace(honest(self), parameter=self._promised)

    def weaker(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        object.__setattr__(self, "_promised", getattr(self, name))
        object.__setattr__(self, name, factor * self._promised)

    return {"event": property(event), "__init__": weaker}


BUDGETS = {
    mechanisms.Exponential: "epsilon",
    mechanisms.PermuteAndFlip: "epsilon",
    mechanisms.NoisyMax: "epsilon",
    mechanisms.TopK: "epsilon_each",
    mechanisms.AboveThreshold: "epsilon",
    mechanisms.DiscreteLaplace: "epsilon",
    mechanisms.DiscreteGaussian: "mu",
    mechanisms.GammaVector: "epsilon",
    roc_plan.Medians: "epsilon_each",
    quantiles.SegmentQuantiles: "epsilon",
    names.NameSet: "epsilon",
    names.NoisyNames: "mu",
    privtree.SplitTree: "epsilon",
    tilts.PerturbedMinimiser: "epsilon",
}


@contextmanager
def fault(factor: float) -> Iterator[None]:
    """While this lasts, every mechanism adds noise that is too small by a factor.

    It draws with `factor` times the epsilon (or mu) that it is charged for: what a sensitivity or a
    range that is too small by that factor does.
    """
    with ExitStack() as patches:
        for kind, name in BUDGETS.items():
            patches.enter_context(mock.patch.multiple(kind, **weakened(kind, name, factor)))
        yield


# ------------------------------------------------------------------------------------------ tables


def neighbours_of(
    base: list[Any], extremes: list[Any], adjacency: str, table: Callable[[list[Any]], Any]
) -> list[tuple[Any, Any]]:
    """Tables with one record of the extremes for another, or with one more."""
    if adjacency == "replace":
        return [(table([*base, a]), table([*base, b]))
                for a, b in itertools.combinations(extremes, 2)]  # fmt: skip
    return [(table(base), table([*base, a])) for a in extremes]


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
REFUSED = {("LogisticRegression", "privatesvm"), ("LinearSVC", "functional")}
NEEDS_DELTA = ("select_refine",)  # of linear models
TREES = ("auto", "tree", "hybrid", "over_seeded", "over_seeded, in a frame", "synopsis", "medians",
         "cell_medians")  # of clusters  # fmt: skip


def changes_of(points: list[Any]) -> list[tuple[Any, Any]]:
    """Records at opposite and at adjacent points, or at one, with labels kept or flipped."""
    opposite = list(zip(points, points[::-1], strict=True))[: len(points) // 2]
    far = [((a, y), (b, z)) for a, b in opposite for y, z in itertools.product((0, 1), repeat=2)]
    near = [((a, y), (b, 0)) for a, b in itertools.pairwise(points) for y in (0, 1)]
    return far + near + [((a, 0), (a, 1)) for a in points]


CROWD = {"sgd": 1500, "output": 3000, "gupt": 45}  # records that agree, beside the one that changes


def linear_pairs(
    place: Place, name: str, solver: str, adjacency: str, intercept: bool
) -> list[tuple[Any, Any]]:
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


def last_slot(n: int, k: int, source: Any) -> Any:
    """An arrangement of n records in k slots: the last record in the last slot, and in its place.

    With one record more than slots it is the arrangement of the others but for that slot: the
    coupling of the proof, where a record that joins takes the place of one that leaves.
    """
    return np.append(np.arange(k - 1), n - 1)


NO_INTERCEPT = ", no intercept"
LINEAR = {  # the places where each is tried
    "LogisticRegression": tuple(PLACES),
    "LinearSVC": tuple(PLACES),
    f"LogisticRegression{NO_INTERCEPT}": ("l2 ball", "schema"),
}


def linear_models() -> Iterator[Audit]:
    for model, solver, adjacency, delta, where in itertools.product(
        LINEAR, linear_settings(), ADJACENCIES, DELTAS, PLACES
    ):
        name, place, intercept = (
            model.removesuffix(NO_INTERCEPT),
            PLACES[where],
            NO_INTERCEPT not in model,
        )
        if where not in LINEAR[model] or (not intercept and solver == "majority"):
            continue
        if (name, solver) in REFUSED or (solver in NEEDS_DELTA and not delta):
            continue
        settings = linear_settings(name)[solver]

        def run(table, ledger, random_state, name=name, settings=settings, adjacency=adjacency,
                delta=delta, place=place, intercept=intercept):  # fmt: skip
            slots = CROWD["sgd"] + 1 if isinstance(settings, privfit.PermutedSGD) else N_PUBLIC
            model = getattr(privfit, name)(
                EPSILON, delta, domain=place.domain, classes=[0, 1], solver=settings,
                fit_intercept=intercept, calibrate=False, adjacency=adjacency, n_public=slots,
                ledger=ledger, n_threads=1, random_state=random_state,
            )  # fmt: skip
            with mock.patch("privfit.linear.permuted_sgd.uniform_distinct", last_slot):
                return model.fit(*table)

        def pairs(place=place, name=name, solver=solver, adjacency=adjacency, intercept=intercept):
            return linear_pairs(place, name, solver, adjacency, intercept)

        yield Audit(model, solver, where, adjacency, delta, run, pairs)


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
    """With a clip that every record's gradient reaches."""
    metrics = {"additive": "block", "additive, full": "full"}
    for name, solver, adjacency in itertools.product(
        ("LogisticRegression", "LinearSVC"), metrics, ADJACENCIES
    ):

        def run(table, ledger, random_state, name=name, solver=solver, adjacency=adjacency):
            settings = privfit.Additive(metric=metrics[solver], steps=3, clip=0.02)
            model = getattr(privfit, name)(
                EPSILON, 1e-6, domain=LEVELS, classes=[0, 1], solver=settings, adjacency=adjacency,
                n_public=N_PUBLIC, ledger=ledger, n_threads=1, random_state=random_state,
            )  # fmt: skip
            return model.fit(*table)

        def pairs(adjacency=adjacency):
            return neighbours_of(mixed(SIZES, 12), both(SIZES), adjacency, as_levels)

        yield Audit(name, solver, "levels", adjacency, 1e-6, run, pairs)


def curved_objectives() -> Iterator[Audit]:
    """Objective perturbation on a few functions of each number."""
    for adjacency in ADJACENCIES:

        def run(table, ledger, random_state, adjacency=adjacency):
            model = privfit.LogisticRegression(
                EPSILON, domain=LEVELS, classes=[0, 1], adjacency=adjacency, n_public=N_PUBLIC,
                solver=privfit.ObjectivePerturbation(functions=3), ledger=ledger, n_threads=1,
                random_state=random_state,
            )  # fmt: skip
            return model.fit(*table)

        def pairs(adjacency=adjacency):
            return neighbours_of(mixed(SIZES, 12), both(SIZES), adjacency, as_levels)

        yield Audit("LogisticRegression", "objective, functions", "levels", adjacency, 0.0, run,
                    pairs)  # fmt: skip


def three_classes() -> Iterator[Audit]:
    """One model for each class, on one budget: one record may move all of them."""
    for solver, adjacency, delta in itertools.product(("local", "auto"), ADJACENCIES, DELTAS):

        def run(table, ledger, random_state, solver=solver, adjacency=adjacency, delta=delta):
            model = privfit.LogisticRegression(
                EPSILON, delta, domain=(-1, 1), classes=[0, 1, 2], adjacency=adjacency,
                solver=linear_settings()[solver], calibrate=False, n_public=N_PUBLIC, ledger=ledger,
                n_threads=1, random_state=random_state,
            )  # fmt: skip
            return model.fit(*table)

        def pairs(adjacency=adjacency):
            base = [(x, i % 3) for i, (x, _) in enumerate(mixed(CORNERS, 12))]
            extremes = [(x, y) for x in CORNERS[:3] for y in (0, 2)]
            return neighbours_of(base, extremes, adjacency, labelled)

        yield Audit("LogisticRegression, 3 classes", solver, "box", adjacency, delta, run, pairs)


def steep(run: Any) -> Any:
    """A solver that draws nothing: a public model that is sure of itself, for its calibration."""
    model = np.zeros(run.space.shape)
    model[:2] = 4.0, -4.0
    run.report(model[None])
    return run.path()


def calibrations() -> Iterator[Audit]:
    """The sums that calibrate: records that agree with a steep model, and some that do not."""
    for name, adjacency, delta in itertools.product(
        ("LogisticRegression", "LinearSVC"), ADJACENCIES, DELTAS
    ):

        def run(table, ledger, random_state, name=name, adjacency=adjacency, delta=delta):
            return getattr(privfit, name)(
                EPSILON, delta, domain=(-1, 1), classes=[0, 1], solver=steep, calibrate=True,
                adjacency=adjacency, n_public=N_PUBLIC, ledger=ledger, n_threads=1,
                random_state=random_state,
            ).fit(*table)  # fmt: skip

        def pairs(adjacency=adjacency):
            base = [(x, int(x[0] > x[1])) for x, _ in mixed(CORNERS, 40)]
            return neighbours_of(base, both([*CORNERS, (0.0, 0.0)]), adjacency, labelled)

        yield Audit(f"{name}, calibrated", "a steep model", "box", adjacency, delta, run, pairs)


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


def points_of(adjacency: str, solver: str) -> list[tuple[Any, Any]]:
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
    return [pair for base in bases
            for pair in neighbours_of(base, places, adjacency, unlabelled)]  # fmt: skip


def clusterings() -> Iterator[Audit]:
    for name, methods in clustering_settings().items():
        for (solver, settings), adjacency, delta in itertools.product(
            methods.items(), ADJACENCIES, DELTAS
        ):

            def run(X, ledger, random_state, name=name, settings=settings, adjacency=adjacency,
                    delta=delta, solver=solver):  # fmt: skip
                told = {"facilities": FACILITIES} if name == "KMedian" else {}
                if solver in ANYWHERE:
                    told = {"metric": "l2"}
                model = getattr(privfit, name)(
                    2, EPSILON, delta, domain=(-1, 1), solver=settings, adjacency=adjacency,
                    n_public=N_PUBLIC, ledger=ledger, n_threads=1, random_state=random_state,
                    **told,
                )  # fmt: skip
                return model.fit(X)

            def pairs(adjacency=adjacency, solver=solver):
                return points_of(adjacency, solver)

            yield Audit(name, solver, "box", adjacency, delta, run, pairs)


@lru_cache(maxsize=4)
def at_a_corner(name: str, adjacency: str) -> Any:
    """A model of one cluster, released from records that all lie in one corner."""
    told = {"facilities": FACILITIES} if name == "KMedian" else {}
    return getattr(privfit, name)(
        1, EPSILON, domain=(-1, 1), adjacency=adjacency, n_public=N_PUBLIC, random_state=0, **told
    ).fit(np.full((200, 2), -1.0))


def costs() -> Iterator[Audit]:
    """The released costs of a clustering, of records of their own."""
    for (name, method), adjacency in itertools.product(
        (("KMeans", "private_inertia"), ("KMedian", "private_cost")), ADJACENCIES
    ):

        def run(X, ledger, random_state, name=name, method=method, adjacency=adjacency):
            model = copy.copy(at_a_corner(name, adjacency))
            model.set_params(ledger=ledger, random_state=random_state)
            return getattr(model, method)(X, EPSILON)

        def pairs(name=name, adjacency=adjacency):
            centre = tuple(at_a_corner(name, adjacency).cluster_centers_[0])
            return neighbours_of([(0.0, 0.0)] * 5, [centre, *CORNERS], adjacency, unlabelled)

        yield Audit(f"{name}.{method}", "", "box", adjacency, 0.0, run, pairs)


def choices() -> Iterator[Audit]:
    """A number of clusters: the tree that finds centres, and the curve of their costs."""
    for adjacency, delta in itertools.product(ADJACENCIES, DELTAS):

        def run(X, ledger, random_state, adjacency=adjacency, delta=delta):
            return privfit.choose_k(
                X, [2, 3], EPSILON, delta, domain=(-1, 1), adjacency=adjacency, ledger=ledger,
                n_threads=1, random_state=random_state,
            )  # fmt: skip

        def pairs(adjacency=adjacency):
            return points_of(adjacency, "tree")

        yield Audit("choose_k", "", "box", adjacency, delta, run, pairs)


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
    for (solver, settings), (where, domain), adjacency, delta in itertools.product(
        solvers.items(), {"schema": SCHEMA, "blanks": MIXED}.items(), ADJACENCIES, DELTAS
    ):

        def run(table, ledger, random_state, settings=settings, domain=domain,
                adjacency=adjacency, delta=delta):  # fmt: skip
            return privfit.KMeans(
                2, EPSILON, delta, domain=domain, solver=settings, scale="equal",
                adjacency=adjacency, n_public=N_PUBLIC, ledger=ledger, n_threads=1,
                random_state=random_state,
            ).fit(table)  # fmt: skip

        def pairs(where=where, adjacency=adjacency):
            if where == "schema":
                return neighbours_of(KINDS * 2, KINDS, adjacency, as_kinds)
            found = typed_pairs(adjacency, where)
            return [tuple({name: table[name] for name in "xyz"} for table in pair)
                    for pair in found]  # fmt: skip

        yield Audit(f"KMeans, mixed, {where}", solver, where, adjacency, delta, run, pairs)


# -------------------------------------------------------------------------------- binary features

D, MAX_ONES = 8, 3


def ones(*columns: int) -> tuple[int, ...]:
    return tuple(int(j in columns) for j in range(D))


def binary_pairs(adjacency: str) -> list[tuple[Any, Any]]:
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
    return [pair for base in bases
            for pair in neighbours_of(base, extremes, adjacency, labelled)]  # fmt: skip


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
    for (method, settings), criterion, adjacency, delta in itertools.product(
        feature_settings().items(), CRITERIA, ADJACENCIES, DELTAS
    ):

        def run(table, ledger, random_state, settings=settings, criterion=criterion,
                adjacency=adjacency, delta=delta):  # fmt: skip
            return privfit.SelectFeatures(
                EPSILON, delta, k=2, criterion=criterion, solver=settings, max_ones=MAX_ONES,
                classes=[0, 1], adjacency=adjacency, n_public=N_PUBLIC, ledger=ledger, n_threads=1,
                random_state=random_state,
            ).fit(*table)  # fmt: skip

        def pairs(adjacency=adjacency):
            return binary_pairs(adjacency)

        yield Audit("SelectFeatures", method, criterion, adjacency, delta, run, pairs)


def bayes() -> Iterator[Audit]:
    for adjacency, delta in itertools.product(ADJACENCIES, DELTAS):

        def run(table, ledger, random_state, adjacency=adjacency, delta=delta):
            return privfit.BernoulliNB(
                EPSILON, delta, max_ones=MAX_ONES, classes=[0, 1], adjacency=adjacency,
                ledger=ledger, n_threads=1, random_state=random_state,
            ).fit(*table)  # fmt: skip

        def pairs(adjacency=adjacency):
            return binary_pairs(adjacency)

        yield Audit("BernoulliNB", "", "binary", adjacency, delta, run, pairs)


# -------------------------------------------------------------------------------- metrics, searches


def scored_pairs(adjacency: str) -> list[tuple[Any, Any]]:
    """Test scores at both ends and in the middle, of both labels."""
    coins = np.random.default_rng(0)
    base = [(float(coins.random()), int(coins.integers(2))) for _ in range(24)]
    return neighbours_of(base, both((0.0, 0.45, 0.55, 1.0)), adjacency, labelled)


def curves() -> Iterator[Audit]:
    ways = [(noise, thresholds) for noise in ("flat", "hierarchy", "wavelet", "gaussian")
            for thresholds in ("grid", "medians")]  # fmt: skip
    for (noise, thresholds), adjacency, delta in itertools.product(ways, ADJACENCIES, DELTAS):
        if noise == "gaussian" and not delta:
            continue

        def run(table, ledger, random_state, noise=noise, thresholds=thresholds,
                adjacency=adjacency, delta=delta):  # fmt: skip
            curve = privfit.roc_curve(
                table[1], table[0], EPSILON, delta, noise=noise, thresholds=thresholds, levels=3,
                adjacency=adjacency, n_public=N_PUBLIC, ledger=ledger, random_state=random_state,
            )  # fmt: skip
            return curve.fpr, curve.tpr, curve.thresholds, curve.release

        def pairs(adjacency=adjacency):
            return scored_pairs(adjacency)

        yield Audit("roc_curve", f"{noise}, {thresholds}", "scores", adjacency, delta, run, pairs)


def metrics() -> Iterator[Audit]:
    for name, adjacency in itertools.product(
        ("roc_auc_score", "confusion_matrix", "accuracy_score"), ADJACENCIES
    ):

        def run(table, ledger, random_state, name=name, adjacency=adjacency):
            told = {"n_public": N_PUBLIC} if name == "roc_auc_score" else {}
            found = getattr(privfit, name)(
                table[1], table[0], EPSILON, adjacency=adjacency, ledger=ledger,
                random_state=random_state, **told,
            )  # fmt: skip
            return found

        def pairs(adjacency=adjacency):
            return scored_pairs(adjacency)

        of = "" if name == "roc_auc_score" else "of scores"
        yield Audit(name, of, "scores", adjacency, 0.0, run, pairs)


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
    for measure, adjacency in itertools.product(("errors", "log_loss"), ADJACENCIES):

        def run(table, ledger, random_state, measure=measure, adjacency=adjacency):
            models = {"no": Sure(0.0), "yes": Sure(1.0), "perhaps": Sure(0.5)}
            found = privfit.choose(models, *table, EPSILON, measure=measure, adjacency=adjacency,
                                   ledger=ledger, random_state=random_state)  # fmt: skip
            return found.name, found.release

        def pairs(adjacency=adjacency):
            return scored_pairs(adjacency)

        yield Audit("choose", measure, "scores", adjacency, 0.0, run, pairs)


SCHEMAS = {
    "cuts": {"x": privfit.Numeric(bins="auto"), "y": privfit.Numeric(0, 100, bins="auto")},
    "ranges": {"x": privfit.Numeric(), "y": privfit.Numeric()},
    "buckets": {"x": privfit.Categorical(), "y": privfit.Categorical()},
    "names": {"x": "category", "y": "category"},
    "many names": dict.fromkeys("xyzuv", "category"),
}


def typed_pairs(adjacency: str, what: str) -> list[tuple[Any, Any]]:
    """Numbers that are also names: of one record, of a few, and of many.

    A set of names uses up its delta on each of them, but its epsilon only on those of a few.
    """
    coins = np.random.default_rng(0)
    base = [40.0] * 240 + [float(number) for number in coins.choice([3, 7, 8, 9.5], 60)]
    own = [None, 3.0, 8.0, 9.5] if what == "names" else [None, -1e9, 8.0, 11.0, 40.0, 50.0, 1e9]
    return neighbours_of(base, own, adjacency, lambda rows: dict.fromkeys("xyzuv", rows))


def schemas() -> Iterator[Audit]:
    for what, adjacency, delta in itertools.product(SCHEMAS, ADJACENCIES, DELTAS):
        if "names" in what and not delta:
            continue

        def run(table, ledger, random_state, what=what, adjacency=adjacency, delta=delta):
            return privfit.learn_schema(
                table, EPSILON, delta, columns=SCHEMAS[what], levels=2, adjacency=adjacency,
                ledger=ledger, random_state=random_state,
            ).release  # fmt: skip

        def pairs(adjacency=adjacency, what=what):
            return typed_pairs(adjacency, what)

        yield Audit("learn_schema", what, "blanks", adjacency, delta, run, pairs)


CODINGS = {
    "scale and cuts": privfit.Coding(cuts=2),
    "cuts alone": privfit.Coding(cuts=2, family="quantile"),
}
DECLARED = {
    "x": privfit.Numeric(),
    "y": privfit.Numeric(0, 100, fill=0),
    "z": privfit.Categorical(),
}


def codings() -> Iterator[Audit]:
    """What a fit buys for its coding: cuts of blank numbers and within ranges, and buckets."""
    for what, adjacency, delta in itertools.product(CODINGS, ADJACENCIES, DELTAS):

        def run(table, ledger, random_state, what=what, adjacency=adjacency, delta=delta):
            terms = Terms("coding", EPSILON, delta, adjacency, N_PUBLIC, ledger, random_state)
            found = purchase_of(privfit.Schema(DECLARED), table, terms, CODINGS[what])
            assert found.purchase is not None
            paid = terms.charge(found.purchase.sums)
            bought = found.purchase.buy(paid)
            return paid.close(bought, found.purchase.plan.settings)

        def pairs(adjacency=adjacency, what=what):
            return typed_pairs(adjacency, what)

        yield Audit("Coding", what, "blanks", adjacency, delta, run, pairs)


def predicted_pairs(adjacency: str) -> list[tuple[Any, Any]]:
    """Three classes, every one of them predicted for every one."""
    coins = np.random.default_rng(0)
    base = [tuple(coins.choice(list("abc"), 2).tolist()) for _ in range(24)]
    extremes = list(itertools.product("abc", repeat=2))
    return neighbours_of(base, extremes, adjacency, labelled)


def predictions() -> Iterator[Audit]:
    for name, adjacency in itertools.product(("confusion_matrix", "accuracy_score"), ADJACENCIES):

        def run(table, ledger, random_state, name=name, adjacency=adjacency):
            return getattr(privfit, name)(
                table[1], table[0], EPSILON, classes=["a", "b", "c"], adjacency=adjacency,
                ledger=ledger, random_state=random_state,
            )  # fmt: skip

        def pairs(adjacency=adjacency):
            return predicted_pairs(adjacency)

        yield Audit(name, "of predictions", "three classes", adjacency, 0.0, run, pairs)


def blocks() -> Iterator[Audit]:
    for adjacency, delta in itertools.product(ADJACENCIES, DELTAS):

        def run(records, ledger, random_state, adjacency=adjacency, delta=delta):
            return aggregate(
                records, np.max, (0, 1), EPSILON, delta, blocks=8, adjacency=adjacency,
                n_public=N_PUBLIC, ledger=ledger, random_state=random_state,
            )  # fmt: skip

        def pairs(adjacency=adjacency):
            return neighbours_of([0.0] * 45, [0.0, 0.5, 1.0], adjacency, unlabelled)

        yield Audit("aggregate", "", "bounds (0, 1)", adjacency, delta, run, pairs)


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
    solvers = {name: linear_settings()[name]
               for name in ("local", "eem", "privgene", "dpsga", "subsample")}  # fmt: skip
    for (where, space), (solver, settings), adjacency, delta in itertools.product(
        spaces.items(), solvers.items(), ADJACENCIES, DELTAS
    ):

        def run(rows, ledger, random_state, space=space, settings=settings, adjacency=adjacency,
                delta=delta):  # fmt: skip
            objective = privfit.RecordObjective(rows, _near, low=-1.0, high=0.0)
            found = privfit.search(
                objective, space, EPSILON, delta, solver=settings, adjacency=adjacency,
                n_public=N_PUBLIC, ledger=ledger, random_state=random_state,
            )  # fmt: skip
            return found.answer, found.release

        def pairs(adjacency=adjacency):
            return neighbours_of([0.0] * 10 + [1.0] * 9, [0.0, 1.0], adjacency, unlabelled)

        yield Audit(f"search, {where}", solver, "records", adjacency, delta, run, pairs)


def all_audits() -> list[Audit]:
    families = (linear_models, additive_models, curved_objectives, three_classes, calibrations,
                clusterings, costs, choices, mixed_tables, features, bayes, curves, metrics,
                model_choices, predictions, schemas, codings, blocks, searches)  # fmt: skip
    return [audit for family in families for audit in family()]
