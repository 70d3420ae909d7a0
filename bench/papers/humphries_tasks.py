"""The two problems of Humphries' thesis on its four tables, and solvers as a reader types them.

    Logistic("Adult").fit(way(DPSGA, paper=True), epsilon=1.0, seed=0)      # a test error
    Medians("Spam", 4).fit(way(DPSGA, paper=True), epsilon=1.0, seed=0)     # a cost a record

Section 5.2 of the thesis: numbers are scaled to [0, 1] by their minimum and maximum, a missing
category becomes the most frequent one, two values are one bit and more are one-hot. Classifiers
are trained on a random 80 % and tested on the rest. k-median takes all records, and public
facilities drawn uniformly from [0, 1]^d, a quarter as many. Such a coding looks at the records: it
is for comparisons with the thesis, and a private use declares it. Seeded fits are not private.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench import tables
from bench.accuracy import medians
from bench.measure import quiet
from privfit import Box, FacilityObjective, LogisticRegression, Numeric
from privfit.searches.dpsga import thesis_delta

# By the thesis's name: the file, and columns that are left out. Of Mushrooms stalk-root is: only so
# are there 107 columns, as the thesis's Table 5.2 says.
FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Adult": ("adult", ()),
    "Credit": ("credit_default", ()),
    "Spam": ("spambase", ()),
    "Mushrooms": ("mushroom", ("stalk-root",)),
}
CODES = ("SEX", "EDUCATION", "MARRIAGE")  # of Credit: numbers, as its 24 columns tell
TUNING = (1001, 1002, 1003)  # seeds of fits that choose settings; none of them is measured


@dataclass(frozen=True, eq=False)
class Table:
    """Coded records: X (n, d) in [0, 1], and labels y (n,) of 0 and 1."""

    X: Any
    y: Any


@functools.cache
def table(name: str) -> Table:
    """A table of the thesis, coded."""
    file, left_out = FILES[name]
    data = tables.real(file)
    parts = [
        scaled(values)
        if isinstance(data.schema.columns[column], Numeric) or column in CODES
        else one_hot(values)
        for column, values in data.table.items()
        if column not in left_out
    ]
    return Table(np.hstack(parts), data.labels)


def scaled(values: Any) -> Any:
    """(n, 1): numbers from their minimum at 0 to their maximum at 1."""
    low, high = values.min(), values.max()
    return ((values - low) / (high - low))[:, None]


def one_hot(values: Any) -> Any:
    """(n, values that occur), or one bit for two of them; "?" counts as the most frequent."""
    texts = values.astype(str)
    known = Counter(texts[texts != "?"].tolist())
    filled = np.where(texts == "?", known.most_common(1)[0][0], texts)
    kept = sorted(known)[1:] if len(known) == 2 else sorted(known)
    return (filled[:, None] == np.array(kept)) * 1.0


# ----------------------------------------------------------------------------------------- solvers


@dataclass(frozen=True)
class Way:
    """Settings as they are typed; `pure` for those that the thesis gives no delta."""

    kind: Any
    given: tuple[tuple[str, Any], ...]
    pure: bool

    @property
    def settings(self) -> Any:
        return self.kind(**dict(self.given))

    @property
    def text(self) -> str:
        return f"{self.kind.__name__}({', '.join(f'{k}={v!r}' for k, v in self.given)})"


def way(kind: Any, pure: bool = False, **given: Any) -> Way:
    """Settings of this class with these arguments."""
    return Way(kind, tuple(given.items()), pure)


# ------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Logistic:
    """Logistic regression: a seed sets the split and the fit, and the test error is measured."""

    data: str
    measure = "test error"

    @property
    def title(self) -> str:
        return f"logistic regression, {self.data}"

    @property
    def genes(self) -> int:
        return int(table(self.data).X.shape[1]) + 1

    def shown(self, one: Way) -> str:
        """What a reader types."""
        delta = "0" if one.pure else "thesis_delta(n)"
        return f"`LogisticRegression(epsilon, {delta}, domain=(0, 1), solver={one.text})`"

    @functools.cache  # noqa: B019  (tasks are few, and as long-lived as the process)
    def fit(self, one: Way, epsilon: float, seed: int) -> float:
        train, test = split(self.data, seed)
        n = len(train.y)
        model = LogisticRegression(
            epsilon, 0.0 if one.pure else thesis_delta(n), domain=(0, 1), classes=[0, 1],
            solver=one.settings, calibrate=False, n_threads=1, random_state=seed,
        )  # fmt: skip
        with quiet():  # of large budgets and seeds: they are the benchmark's
            return 1 - float(model.fit(train.X, train.y).score(test.X, test.y))

    @functools.cache  # noqa: B019
    def baseline(self, seed: int) -> float:
        """The error of zero weights, which say class 0."""
        return float(split(self.data, seed)[1].y.mean())

    @functools.cache  # noqa: B019
    def plain(self, seed: int) -> float:
        """The error of scikit-learn's logistic regression, as the thesis has it."""
        from sklearn.linear_model import LogisticRegression as Plain

        train, test = split(self.data, seed)
        with quiet():  # of convergence after the default 100 passes
            model = Plain(solver="sag", random_state=seed).fit(train.X, train.y)
        return 1 - float(model.score(test.X, test.y))

    references: ClassVar[dict[str, str]] = {
        "zero weights": "all weights 0, the thesis's baseline",
        "not private": "`sklearn.linear_model.LogisticRegression(solver='sag')`",
    }


@functools.lru_cache(maxsize=8)
def split(name: str, seed: int) -> tuple[Table, Table]:
    """A random 80 % to train on, and the rest."""
    whole = table(name)
    order = np.random.default_rng(seed).permutation(len(whole.y))
    first, rest = np.split(order, [4 * len(order) // 5])
    return Table(whole.X[first], whole.y[first]), Table(whole.X[rest], whole.y[rest])


@dataclass(frozen=True)
class Medians:
    """k-median over one public set of facilities: a seed sets the fit.

    Distances are clipped to [d/4, d/2] in what is searched, unless `clipped` is False; `true` asks
    for the cost by distances as they are.
    """

    data: str
    k: int
    clipped: bool = True
    true: bool = False
    measure = "cost a record"

    @property
    def title(self) -> str:
        return f"{self.k}-median, {self.data}"

    @property
    def genes(self) -> int:
        return self.k

    def shown(self, one: Way) -> str:
        """What a reader types."""
        delta = "0" if one.pure else "thesis_delta(n)"
        clip = "(d / 4, d / 2)" if self.clipped else "(0, d)"
        return (
            f"`KMedian({self.k}, epsilon, {delta}, facilities=public, clip={clip}, domain=(0, 1), "
            f"solver={one.text})`"
        )

    def cost(self, members: Any) -> float:
        return problem(self.data, not self.true).cost(members)

    @functools.cache  # noqa: B019
    def fit(self, one: Way, epsilon: float, seed: int) -> float:
        task = problem(self.data, self.clipped)
        delta = 0.0 if one.pure else thesis_delta(task.n)
        return self.cost(
            medians.members(task, one.settings, self.k, epsilon, delta, "replace", seed)
        )

    @functools.cache  # noqa: B019
    def baseline(self, seed: int) -> float:
        """The mean cost of 1,000 random sets."""
        return problem(self.data, not self.true).random_cost(self.k, seed)

    @functools.cache  # noqa: B019
    def plain(self, seed: int) -> float:
        """Greedy additions, then the best swap while one helps: no coin is flipped."""
        return self.cost(medians.without_privacy(problem(self.data, True).objective, self.k))

    references: ClassVar[dict[str, str]] = {
        "random sets": f"the mean of {medians.RANDOM_SETS:,} random sets, the thesis's baseline",
        "not private": "greedy additions, then the best swap while one helps",
    }


@functools.cache
def problem(name: str, clipped: bool) -> medians.Problem:
    """The records of a table and a quarter as many public facilities, the same for all seeds."""
    X = table(name).X
    n, d = X.shape
    public = np.random.default_rng(0).uniform(0, 1, (n // 4, d))
    clip = (d / 4, d / 2) if clipped else (0.0, float(d))
    return medians.Problem(FacilityObjective(X, public, clip, Box(0, 1), n_threads=1), n)


Task = Logistic | Medians


@functools.cache
def best_of(task: Task, ways: tuple[Way, ...], epsilon: float, runs: tuple[int, ...]) -> list[Way]:
    """These ways, from the best mean on these seeds to the worst."""
    return sorted(ways, key=lambda one: np.mean([task.fit(one, epsilon, seed) for seed in runs]))


def tuned(task: Task, ways: Iterable[Way], epsilon: float, seed: int) -> float:
    """A fit by the way that was best on the seeds of tuning."""
    return task.fit(best_of(task, tuple(ways), epsilon, TUNING)[0], epsilon, seed)
