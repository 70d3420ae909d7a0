"""What an audit is: one way to release something, and neighbouring tables that strain it.

`rows` has one for every estimator, solver and metric of the library. `python -m bench audit` tries
all pairs and writes docs/audit.md; the tests repeat those that strained most. `fault` plants noise
that is too small, which an audit must find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from privfit.audit import paired
from privfit.evaluation import roc_plan
from privfit.linear import tilts
from privfit.privacy import mechanisms, names, privtree, quantiles

SEEDS = (0,)

Pair = tuple[Any, Any]
Try = tuple[int, int]  # the place of a pair, a seed


@dataclass(frozen=True, eq=False)
class Audit:
    """One kind of release, and pairs of neighbouring tables.

    released    (table, delta, adjacency=, ledger=, random_state=) -> what is released of a table
    neighbours  (adjacency) -> pairs of tables
    """

    estimator: str
    solver: str
    domain: str
    adjacency: str
    delta: float
    released: Callable[..., Any]
    neighbours: Callable[[str], list[Pair]]

    @property
    def row(self) -> tuple[str, str]:
        return self.estimator, self.solver

    @property
    def key(self) -> str:
        return "/".join([*self.row, self.domain, self.adjacency, f"{self.delta:g}"])

    def pairs(self) -> list[Pair]:
        return self.neighbours(self.adjacency)

    def run(self, table: Any, ledger: Any, random_state: Any) -> Any:
        return self.released(
            table, self.delta, adjacency=self.adjacency, ledger=ledger, random_state=random_state
        )

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
