"""The experiments of Humphries, Differentially private simple genetic algorithms (2021), anew.

python -m bench papers --filter humphries_2021 --list

Data, coding, budgets and references are the thesis's (`humphries_tasks`). Its 30 or 100 repetitions
are 10 here, and axes and grids have fewer points; docs/papers/humphries_2021.md says which. Figures
share fits: all of them by `--jobs 1` make none twice, and one alone makes those of others anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

import privfit
from bench.papers import Claim, Curve, Figure, Panel, level
from bench.papers.humphries_tasks import (
    TUNING,
    Logistic,
    Medians,
    Task,
    Way,
    best_of,
    tuned,
    way,
)
from privfit import (
    DPSGA,
    EEM,
    Coreset,
    FrankWolfe,
    Gradient,
    Local,
    ObjectivePerturbation,
    PermutedSGD,
    PrivGene,
    Subsample,
    Swaps,
)

EPSILONS = (0.1, 0.3162, 1.0, 3.162)  # of classifiers
SMALL = (0.03162, 0.1, 0.3162, 1.0)  # of k-median, which converges earlier
ENDS = (0.1, 1.0)  # where fits are many or slow
K = 4  # medians, where the thesis gives no number
GENERATIONS = (2, 10, 20, 50, 100)  # of the thesis's 30 values
ADULT, CREDIT, SPAM, MUSHROOMS = map(Logistic, ("Adult", "Credit", "Spam", "Mushrooms"))
CLASSIFIERS = {ADULT: ENDS, CREDIT: EPSILONS, SPAM: EPSILONS, MUSHROOMS: EPSILONS}
SPAM_MEDIANS, MUSHROOM_MEDIANS = Medians("Spam", K), Medians("Mushrooms", K)
MEDIANS = {
    Medians("Adult", K): ENDS,
    Medians("Credit", K): SMALL,
    SPAM_MEDIANS: SMALL,
    MUSHROOM_MEDIANS: SMALL,
}

GA = way(DPSGA, paper=True)
PRIVGENE = way(PrivGene, paper=True)
HUNDRED = way(DPSGA, generations=100, paper=True)


def curve(task: Task, one: Way) -> Curve:
    """One way of fitting a task, by epsilon."""
    return Curve(lambda epsilon, seed: task.fit(one, epsilon, seed), task.shown(one))


def references(task: Task) -> dict[str, Curve]:
    """The thesis's baseline and its fit without privacy: the same at every epsilon."""
    measures = (task.baseline, task.plain)
    return {label: level(measure, text) for (label, text), measure
            in zip(task.references.items(), measures, strict=True)}  # fmt: skip


def panel(
    task: Task,
    points: Sequence[float],
    ways: dict[str, Way | Curve],
    claims: Iterable[Claim] = (),
    compared: bool = True,
) -> Panel:
    """Ways to fit one task, by epsilon, beside its references."""
    curves = {
        label: one if isinstance(one, Curve) else curve(task, one) for label, one in ways.items()
    }
    lines = references(task) if compared else {}
    return Panel(task.title, task.measure, "epsilon", points, curves | lines, tuple(claims))


def better(task: Task, lower: str, higher: str, points: Sequence[float] | None = None) -> Claim:
    """That one curve of a task's panel is below another."""
    return Claim(f"{lower} beats {higher} ({task.title})", lower, higher, points)


def above(points: Sequence[float], least: float) -> tuple[float, ...]:
    """The points beyond one."""
    return tuple(point for point in points if point > least)


# ---------------------------------------------------------------- Chapter 6: selection, composition

BOUNDED = "bounded range, exponential mechanism"
LEMMAS = {
    "naive": ("naive", 1),
    "advanced": ("advanced", 1),
    "Kairouz et al.": ("kov", 1),
    "Renyi": ("rdp", 1),
    "bounded range, any mechanism": ("bounded_range", 2),
    BOUNDED: ("bounded_range", 1),
    "tight, exponential mechanism (ours)": ("tight", 1),
}


def figure_6_1() -> Figure:
    """What each of 1,000 selections may spend, by the theorem that adds them up."""

    def budget(method: str, factor: int) -> Curve:
        return Curve(
            lambda epsilon, seed: (
                privfit.calibrate(1000, epsilon=epsilon, delta=1e-5, method=method) / factor
            ),
            f"`calibrate(1000, epsilon=epsilon, delta=1e-5, method={method!r})`"
            + (" / 2" if factor == 2 else ""),
        )

    others = [label for label in LEMMAS if label != BOUNDED and "ours" not in label]
    claims = [Claim(f"{BOUNDED}, leaves a selection more than {label}", label, BOUNDED)
              for label in others]  # fmt: skip
    claims += [
        Claim(f"Kairouz et al. leave slightly more than {label} at small budgets", label,
              "Kairouz et al.", (0.01, 0.1, 1.0))
        for label in ("advanced", "Renyi")
    ]  # fmt: skip
    whole = Panel(
        "1,000 selections, delta 1e-5", "epsilon of one selection (higher is better)", "epsilon",
        (0.01, 0.1, 1.0, 10.0), {label: budget(*lemma) for label, lemma in LEMMAS.items()},
        tuple(claims), log="xy",
    )  # fmt: skip
    return Figure("Budget of a selection by composition theorem", (whole,), seeds=2)


def figure_6_2() -> Figure:
    """Which mechanism selects, and which theorem adds up, at 100 generations."""
    best = "exponential, bounded range"
    ways = {best: HUNDRED} | {
        label: way(DPSGA, generations=100, selection=selection, composition="kov", paper=True)
        for label, selection in (
            ("exponential, Kairouz", "exponential"),
            ("noisy max, Kairouz", "noisy_max"),
            ("permute and flip, Kairouz", "permute_and_flip"),
        )
    }
    panels = [
        panel(task, ENDS, ways, [better(task, best, label) for label in list(ways)[1:]])
        for task in (ADULT, SPAM, MUSHROOMS, MUSHROOM_MEDIANS)
    ]
    return Figure("The genetic algorithm by selection and composition", panels, across=2)


# ------------------------------------------------------------------------------- Chapter 7: tuning


def figure_7_1() -> Figure:
    """Distances clipped to [d/4, d/2] or not, measured by distances as they are."""
    panels = []
    points = {"Adult": ENDS, "Credit": (0.1, 1.0, 10.0), "Spam": EPSILONS[:3],
              "Mushrooms": EPSILONS[:3]}  # fmt: skip
    for data, at in points.items():
        clipped, whole = Medians(data, K, True, True), Medians(data, K, False, True)
        exception = at[-1:] if data == "Credit" else ()
        claims = [better(clipped, "clipped", "not clipped", [x for x in at if x not in exception])]
        if exception:
            claims.append(better(clipped, "not clipped", "clipped", exception))
        ways = {"clipped": curve(clipped, HUNDRED), "not clipped": curve(whole, HUNDRED)}
        panels.append(panel(clipped, at, ways, claims))
    return Figure("Clipping the distances of k-median", panels, across=2)


NUMBERED = tuple(way(DPSGA, generations=r, paper=True) for r in GENERATIONS)
BUDGETS = (0.1, 1.0, 10.0)
SEARCHED = (CREDIT, MUSHROOMS, SPAM_MEDIANS, MUSHROOM_MEDIANS)


def best_generations(task: Task, epsilon: float, seed: int) -> list[int]:
    """The numbers of generations from the best to the worst, by one fit each."""
    ranked = best_of(task, NUMBERED, epsilon, (seed,))
    return [dict(one.given)["generations"] for one in ranked]


CHOSEN = f"chosen by the mean of {len(TUNING)} fits on seeds that are not measured"
GRID_TEXT = (
    f"of N_g in {{{', '.join(map(str, GENERATIONS))}}}, `DPSGA(generations=N_g, paper=True)`"
)


def figure_7_2() -> Figure:
    """The numbers of generations that fit best, by budget: the mean of the best one to three."""

    def means(task: Task, epsilon: float) -> Curve:
        def fit(points: Sequence[float], seed: int) -> list[float]:
            ranked = best_generations(task, epsilon, seed)
            return [float(np.mean(ranked[: int(count)])) for count in points]

        return Curve(fit, f"the best {GRID_TEXT}", whole=True)

    panels = [
        Panel(
            task.title, "generations of the best fits", "best fits that are averaged", (1, 2, 3),
            {f"epsilon {epsilon:g}": means(task, epsilon) for epsilon in BUDGETS},
            [Claim(f"epsilon {low:g} wants fewer generations than {high:g} ({task.title})",
                   f"epsilon {low:g}", f"epsilon {high:g}")
             for low, high in combinations(BUDGETS, 2)],
            log="",
        )
        for task in SEARCHED
    ]  # fmt: skip
    return Figure("The best number of generations", panels, across=2)


def figure_7_3() -> Figure:
    """The best three numbers of generations averaged over data, beside the thesis's defaults."""

    def mean(tasks: Sequence[Task]) -> Curve:
        return Curve(
            lambda epsilon, seed: float(
                np.mean([best_generations(task, epsilon, seed)[:3] for task in tasks])
            ),
            f"the mean of the best three {GRID_TEXT}, over {' and '.join(t.data for t in tasks)}",
        )

    curves = {"logistic regression": mean(SEARCHED[:2]), "k-median": mean(SEARCHED[2:])}
    curves["the thesis's default"] = Curve(
        lambda epsilon, seed: float(generations_of(GA, 1000, epsilon)), f"`{GA.text}`"
    )
    whole = Panel("all data", "generations of the best three fits", "epsilon", BUDGETS, curves)
    return Figure("The best number of generations over data sets", (whole,))


def figure_7_4() -> Figure:
    """The default number of generations, against 100 and against the best."""
    panels = []
    for task in (ADULT, CREDIT, SPAM, MUSHROOMS, SPAM_MEDIANS, MUSHROOM_MEDIANS):
        best = Curve(
            lambda epsilon, seed, task=task: tuned(task, NUMBERED, epsilon, seed),
            f"the best {GRID_TEXT}, {CHOSEN}",
        )
        ways = {"default": GA, "100 generations": HUNDRED, "best": best}
        points = ENDS if task is ADULT else SMALL[:2] + ENDS[1:]
        claims = [better(task, "default", "100 generations", points)]
        panels.append(panel(task, points, ways, claims))
    return Figure("The genetic algorithm by number of generations", panels)


def figure_7_5() -> Figure:
    """One parameter after the other: selections, crossover, mutation."""
    panels = []
    for task in (MUSHROOMS, MUSHROOM_MEDIANS):
        few, many, rate = "N_s = 5", "N_s = 20", 1 / (task.genes + 1)
        ways = {"default": GA}
        ways |= {f"N_s = {s}": way(DPSGA, survivors=s, paper=True) for s in (5, 20)}
        ways |= {f"p_c = {c}": way(DPSGA, crossover=c, paper=True) for c in (0.35, 0.65)}
        ways |= {
            f"p_m = {m} / (c + 1)": way(DPSGA, mutation=round(m * rate, 6), paper=True)
            for m in (0.75, 1.5, 2)
        }
        claims = [
            better(task, few, many, (0.1,)),
            better(task, many, few, (1.0,)),
            better(task, "p_m = 1.5 / (c + 1)", "default"),
            better(task, "p_m = 2 / (c + 1)", "default"),
        ]
        panels.append(panel(task, ENDS, ways, claims, compared=False))
    return Figure("The genetic algorithm by its other parameters", panels, across=2)


@cache
def grid(task: Task) -> tuple[Way, ...]:
    """Twelve of the 252 settings of Table 7.1."""
    return tuple(
        way(DPSGA, generations=n_g, survivors=n_s, mutation=round(m / (task.genes + 1), 6),
            paper=True)
        for n_g in (20, 50, 100) for n_s in (5, 10) for m in (1, 2)
    )  # fmt: skip


def optimum(task: Task) -> Curve:
    """The genetic algorithm with the best settings of the grid."""
    return Curve(
        lambda epsilon, seed: tuned(task, grid(task), epsilon, seed),
        "the best of N_g in {20, 50, 100}, N_s in {5, 10}, p_m in {1, 2} / (c + 1), " + CHOSEN,
    )


def figure_7_6() -> Figure:
    """The default settings against the best of the grid."""
    panels = []
    tasks = CLASSIFIERS | {SPAM_MEDIANS: ENDS, MUSHROOM_MEDIANS: ENDS}
    for task, points in tasks.items():
        claims = [better(task, "GA, optimal", "GA", points)]
        panels.append(panel(task, points, {"GA": GA, "GA, optimal": optimum(task)}, claims))
    return Figure("The genetic algorithm with default and optimal settings", panels)


# ------------------------------------------------------------------- Chapter 8: against other work


def against(
    tasks: dict[Any, Sequence[float]],
    rivals: dict[str, Way],
    claims: Callable[[Any, Sequence[float]], Iterable[Claim]],
) -> list[Panel]:
    """The genetic algorithm, for classifiers tuned too, beside its rivals."""
    panels = []
    for task, points in tasks.items():
        ours: dict[str, Way | Curve] = {"GA": GA}
        if isinstance(task, Logistic):
            ours["GA, optimal"] = optimum(task)
        panels.append(panel(task, points, ours | rivals, claims(task, points)))
    return panels


def figure_8_1() -> Figure:
    """Against PrivGene, and for classifiers against PrivEEM."""

    def claims(task: Task, points: Sequence[float]) -> list[Claim]:
        if isinstance(task, Medians):
            return [better(task, "GA", "PrivGene", above(points, 0.1))]
        middle = [point for point in points if point <= 1]
        return [better(task, "GA", "PrivGene"), better(task, "GA", "PrivEEM", middle)]

    both = {"PrivGene": PRIVGENE, "PrivEEM": way(EEM, paper=True)}
    panels = against(CLASSIFIERS, both, claims) + against(MEDIANS, {"PrivGene": PRIVGENE}, claims)
    return Figure("The genetic algorithm against PrivGene and PrivEEM", panels, across=4)


@cache
def generations_of(one: Way, n: int, epsilon: float) -> int:
    """The rounds that a search makes of so many records, by its release."""
    tiny = privfit.RecordObjective(np.zeros(2), lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0)
    found = privfit.search(
        tiny, privfit.Reals(-1, 1, 2), epsilon, 0.0, one.settings, n_public=n, random_state=1
    )
    return int(found.release.settings["generations"])


def figure_8_2() -> Figure:
    """How many generations PrivGene's formula gives."""
    sizes = (4_601, 8_124, 30_000, 48_842)
    curves = {
        f"PrivGene, {n:,} records": Curve(
            lambda epsilon, seed, n=n: generations_of(PRIVGENE, n, epsilon),
            f"`{PRIVGENE.text}`, `n_public={n}`",
        )
        for n in sizes
    }
    curves["GA"] = Curve(lambda epsilon, seed: generations_of(GA, 1000, epsilon), f"`{GA.text}`")
    claims = [Claim(f"PrivGene makes fewer generations ({n:,} records)",
                    f"PrivGene, {n:,} records", "GA", EPSILONS[:3]) for n in sizes]  # fmt: skip
    whole = Panel("generations", "generations", "epsilon", (*EPSILONS, 10.0), curves, claims, "xy")
    return Figure("Generations of PrivGene and of the genetic algorithm", (whole,), seeds=2)


def figure_8_3() -> Figure:
    """PrivGene with other numbers of generations."""
    ways = {"GA": GA, "PrivGene": PRIVGENE} | {
        f"PrivGene, {r} generations": way(PrivGene, generations=r, paper=True)
        for r in (10, 50, 100)
    }
    panels = [
        panel(task, ENDS, ways,
              [better(task, "PrivGene", label) for label in list(ways)[2:]]
              + [better(task, "GA", label) for label in list(ways)[2:]])
        for task in (SPAM, MUSHROOMS, SPAM_MEDIANS, MUSHROOM_MEDIANS)
    ]  # fmt: skip
    return Figure("PrivGene by number of generations", panels, across=2)


def figure_8_4() -> Figure:
    """Against PrivLocal."""
    panels = []
    for task, points in CLASSIFIERS.items():
        late = above(points, 0.3)
        wins = [better(task, "GA", "PrivLocal", points if task is not MUSHROOMS else points[:1])]
        if task is MUSHROOMS:
            wins.append(better(task, "PrivLocal", "GA", late))
        wins.append(better(task, "GA, optimal", "PrivLocal", points))
        if task in (CREDIT, SPAM):
            wins.append(better(task, "GA, optimal", "not private", points[-1:]))
        ways = {"GA": GA, "GA, optimal": optimum(task), "PrivLocal": way(Local, paper=True)}
        panels.append(panel(task, points, ways, wins))
    return Figure("The genetic algorithm against PrivLocal", panels, across=2)


def figure_8_5() -> Figure:
    """Against the local search of Gupta et al. for k-median."""
    label, rival = "Gupta et al.", way(Swaps, pure=True, paper=True)
    points = {Medians(data, k): ENDS if k == 4 else (1.0,)
              for k in (4, 16) for data in ("Spam", "Mushrooms")}  # fmt: skip
    panels = [
        panel(task, at, {"GA": GA, label: rival}, [better(task, "GA", label)])
        for task, at in points.items()
    ]
    return Figure("The genetic algorithm against swaps", panels, across=2)


def figure_8_6() -> Figure:
    """Against the sub-sampled exponential mechanism."""
    label = "sub-sampled EM"

    def claims(task: Task, points: Sequence[float]) -> list[Claim]:
        late = above(points, 0.1)
        if isinstance(task, Medians):
            return [better(task, "GA", label, late)]
        usual = better(task, *(label, "GA") if task is CREDIT else ("GA", label), late)
        return [usual, better(task, "GA, optimal", label, late)]

    rival = {label: way(Subsample, paper=True)}
    panels = against(CLASSIFIERS, rival, claims) + against(MEDIANS, rival, claims)
    return Figure("The genetic algorithm against sub-sampling", panels, across=4)


# Of each rival of the benchmark a few settings, of which the best is taken, as the benchmark does.
CONVEX = {
    "AMP": (way(ObjectivePerturbation),),
    "noisy descent, for P-SGD": tuple(
        way(Gradient, whiten=False, steps=steps) for steps in (16, 32, 64)
    ),
    "P-PSGD": tuple(way(PermutedSGD, paper=True, step=step) for step in (0.01, 0.1, 1.0)),
    "P-SCPSGD": tuple(way(PermutedSGD, paper=True, ridge=ridge) for ridge in (1e-4, 1e-3, 1e-2)),
    "DP Frank-Wolfe": tuple(way(FrankWolfe, radius=radius) for radius in (5, 20)),
}


def figure_8_7() -> Figure:
    """Against methods of convex optimisation, each with its best settings."""
    panels = []
    for task, points in CLASSIFIERS.items():
        ways: dict[str, Way | Curve] = {"GA": GA, "GA, optimal": optimum(task)}
        for label, several in CONVEX.items():
            ways[label] = Curve(
                lambda epsilon, seed, task=task, several=several: tuned(
                    task, several, epsilon, seed
                ),
                task.shown(several[0]) if len(several) == 1
                else f"the best of `{'`, `'.join(one.text for one in several)}`, {CHOSEN}",
            )  # fmt: skip
        claims = [better(task, "GA, optimal", label) for label in CONVEX]
        panels.append(panel(task, points, ways, claims))
    return Figure("The genetic algorithm against convex optimisation", panels, across=2)


def figure_8_8() -> Figure:
    """Against the coreset of Jones et al., by its alpha."""
    ways = {"GA": GA} | {
        f"Jones et al., alpha = {alpha}": way(Coreset, alpha=alpha) for alpha in (0.2, 0.6, 0.99)
    }
    fine, _, coarse = list(ways)[1:]
    panels = [
        panel(task, ENDS, ways, [better(task, "GA", coarse), better(task, fine, "GA"),
                                 better(task, fine, coarse)])
        for task in (SPAM_MEDIANS, MUSHROOM_MEDIANS)
    ]  # fmt: skip
    return Figure("The genetic algorithm against coresets", panels, across=2)


FIGURES = {
    "6.1": figure_6_1,
    "6.2": figure_6_2,
    "7.1": figure_7_1,
    "7.2": figure_7_2,
    "7.3": figure_7_3,
    "7.4": figure_7_4,
    "7.5": figure_7_5,
    "7.6": figure_7_6,
    "8.1": figure_8_1,
    "8.2": figure_8_2,
    "8.3": figure_8_3,
    "8.4": figure_8_4,
    "8.5": figure_8_5,
    "8.6": figure_8_6,
    "8.7": figure_8_7,
    "8.8": figure_8_8,
}
