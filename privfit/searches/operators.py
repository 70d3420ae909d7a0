"""Operators: how `PrivGene` and `DPSGA` make new candidates, as small values that they take.

==========  ================================  ====================================================
setting     called with                       ours
==========  ================================  ====================================================
crossover   (space, A, B, coins) -> children  `OnePoint`, `Uniform`, `Union`
mutation    (space, P, scale, coins) -> P     `Step`, `Gaussian`, `Redraw`, `Swap`, `Insertion`
schedule    (generation, generations) -> a    `Constant`, `Decay`, `Geometric`
            factor of steps, the `scale`
starts      (space, m, coins) -> P            `RandomStarts`, `MiddleStarts`, `InterceptStarts`
==========  ================================  ====================================================

Any function with such arguments is an operator, too. Operators see a space and candidates that were
released or drawn, and never the objective: what they do costs no privacy.

What is left out of an operator is the search's own: the step, and the rate of a crossover or of a
mutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from privfit.base.typing import Array, Coins
from privfit.runs.protocols import Space
from privfit.runs.settings import Parameters, check_positive_shares, check_shares
from privfit.runs.spaces import Permutations, Subsets

__all__ = ["Constant", "Decay", "Gaussian", "Geometric", "Insertion", "InterceptStarts",
           "MiddleStarts", "OnePoint", "RandomStarts", "Redraw", "Step", "Swap", "Uniform",
           "Union"]  # fmt: skip


class Redrawing(Space, Protocol):
    """A space whose coordinates can be drawn anew."""

    def redraw(self, P: Array, rate: float, coins: Coins) -> Array:
        """Draw each coordinate anew with probability `rate`."""


class Snapping(Space, Protocol):
    """A space that has a candidate near any numbers."""

    def snap(self, P: Array) -> Array:
        """The nearest candidates."""


class Operator(Parameters):
    """An operator of privfit: a frozen dataclass whose fields are shares."""

    setting: ClassVar[str]  # the setting of a search that it is for
    needs: ClassVar[tuple[str, ...]] = ()  # the methods of a space that it calls

    def __post_init__(self) -> None:
        check_shares(self, *self.get_params())


# --------------------------------------------------------------------------------------- crossover


@dataclass(frozen=True, repr=False)
class OnePoint(Operator):
    """One-point crossover: the first coordinates of one parent, the last of the other.

    Parameters
    ----------
    rate : float, optional
        Fraction of children with two parents; others are copies of one. By default all of
        `PrivGene`, half of `DPSGA`.

    See Also
    --------
    Uniform : Each coordinate from either parent.

    Notes
    -----
    It is the method `splice` of a space. Permutations keep the first places of one parent, and fill
    the others in the order of the other parent; of sets it is `Union`.

    Examples
    --------
    >>> from privfit import DPSGA
    >>> from privfit.searches import OnePoint
    >>> DPSGA(crossover=OnePoint(0.8))
    DPSGA(crossover=OnePoint(rate=0.8))
    """

    setting: ClassVar[str] = "crossover"
    needs: ClassVar[tuple[str, ...]] = ("splice",)

    rate: float | None = None

    def __call__(self, space: Space, A: Array, B: Array, coins: Coins) -> Array:
        return space.splice(A, B, coins)


@dataclass(frozen=True, repr=False)
class Uniform(Operator):
    """Uniform crossover: each coordinate of either parent, with equal probability.

    Parameters
    ----------
    rate : float, optional
        Fraction of children with two parents; others are copies of one. By default all of
        `PrivGene`, half of `DPSGA`.

    See Also
    --------
    OnePoint : The first coordinates of one parent, the last of the other.

    Notes
    -----
    It is the method `mix` of a space. Permutations keep half of the places of one parent, and fill
    the others in the order of the other parent; of sets it is `Union`.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import Uniform
    >>> PrivGene(crossover=Uniform())
    PrivGene(crossover=Uniform())
    """

    setting: ClassVar[str] = "crossover"
    needs: ClassVar[tuple[str, ...]] = ("mix",)

    rate: float | None = None

    def __call__(self, space: Space, A: Array, B: Array, coins: Coins) -> Array:
        return space.mix(A, B, coins)


@dataclass(frozen=True, repr=False)
class Union(Operator):
    """Crossover of sets: members drawn uniformly from the union of both parents.

    Parameters
    ----------
    rate : float, optional
        Fraction of children with two parents; others are copies of one. By default all of
        `PrivGene`, half of `DPSGA`.

    See Also
    --------
    privfit.Subsets : The space that it is for.

    Notes
    -----
    It is the method `unite` of a space.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import Union
    >>> PrivGene(crossover=Union(0.5))
    PrivGene(crossover=Union(rate=0.5))
    """

    setting: ClassVar[str] = "crossover"
    needs: ClassVar[tuple[str, ...]] = ("unite",)

    rate: float | None = None

    def __call__(self, space: Subsets, A: Array, B: Array, coins: Coins) -> Array:
        return space.unite(A, B, coins)


# ---------------------------------------------------------------------------------------- mutation


@dataclass(frozen=True, repr=False)
class Step(Operator):
    """Mutation of one coordinate of each candidate, by a step up or down.

    Parameters
    ----------
    step : float, optional
        Size of the step, as a fraction of the coordinate's width; by default the search's.

    See Also
    --------
    Gaussian : Normal steps of several coordinates.

    Notes
    -----
    It is the method `nudge` of a space: one bit flips, one member of a set is swapped for a new
    one, two things of a permutation are swapped.

    Examples
    --------
    >>> from privfit import DPSGA
    >>> from privfit.searches import Step
    >>> DPSGA(mutation=Step(0.1))
    DPSGA(mutation=Step(step=0.1))
    """

    setting: ClassVar[str] = "mutation"
    needs: ClassVar[tuple[str, ...]] = ("nudge",)

    step: float | None = None

    def __call__(self, space: Space, P: Array, scale: float, coins: Coins) -> Array:
        assert self.step is not None, "a search completes its operators"
        return space.nudge(P, self.step * scale, coins)


@dataclass(frozen=True, repr=False)
class Gaussian(Operator):
    """Mutation of each coordinate with some probability, by a normal step.

    Parameters
    ----------
    step : float, optional
        Standard deviation, as a fraction of the coordinate's width; by default the search's.
    rate : float, optional
        Probability that a coordinate changes; by default 1 / (coordinates + 1).

    See Also
    --------
    Step : A step of one coordinate.
    Redraw : Coordinates drawn anew.

    Notes
    -----
    It is the method `jitter` of a space: bits flip, members of a set are swapped for new ones,
    things of a permutation are swapped, each at this rate.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import Gaussian
    >>> PrivGene(mutation=Gaussian(step=0.1))
    PrivGene(mutation=Gaussian(step=0.1))
    """

    setting: ClassVar[str] = "mutation"
    needs: ClassVar[tuple[str, ...]] = ("jitter",)

    step: float | None = None
    rate: float | None = None

    def __call__(self, space: Space, P: Array, scale: float, coins: Coins) -> Array:
        assert self.step is not None, "a search completes its operators"
        assert self.rate is not None, "a search completes its operators"
        return space.jitter(P, self.step * scale, self.rate, coins)


@dataclass(frozen=True, repr=False)
class Redraw(Operator):
    """Mutation that draws each coordinate anew with some probability.

    Parameters
    ----------
    rate : float, optional
        Probability that a coordinate is drawn anew; by default 1 / (coordinates + 1). A schedule
        scales it.

    See Also
    --------
    Gaussian : Coordinates stay close to what they were.

    Notes
    -----
    It is the method `redraw` of a space. Of a permutation, the places that are drawn are shuffled.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import Redraw
    >>> PrivGene(mutation=Redraw(0.01))
    PrivGene(mutation=Redraw(rate=0.01))
    """

    setting: ClassVar[str] = "mutation"
    needs: ClassVar[tuple[str, ...]] = ("redraw",)

    rate: float | None = None

    def __call__(self, space: Redrawing, P: Array, scale: float, coins: Coins) -> Array:
        assert self.rate is not None, "a search completes its operators"
        return space.redraw(P, min(self.rate * scale, 1.0), coins)


@dataclass(frozen=True, repr=False)
class Swap(Operator):
    """Mutation of permutations: two things of each candidate are swapped.

    See Also
    --------
    Insertion : One thing moves, and those between shift.
    privfit.Permutations : The space that it is for.

    Notes
    -----
    It is the method `swap` of a space.

    Examples
    --------
    >>> from privfit import DPSGA
    >>> from privfit.searches import Swap
    >>> DPSGA(mutation=Swap())
    DPSGA(mutation=Swap())
    """

    setting: ClassVar[str] = "mutation"
    needs: ClassVar[tuple[str, ...]] = ("swap",)

    def __call__(self, space: Permutations, P: Array, scale: float, coins: Coins) -> Array:
        return space.swap(P, coins)


@dataclass(frozen=True, repr=False)
class Insertion(Operator):
    """Mutation of permutations: one thing moves to another place, and those between shift.

    See Also
    --------
    Swap : Two things are swapped.
    privfit.Permutations : The space that it is for.

    Notes
    -----
    It is the method `insert` of a space.

    Examples
    --------
    >>> from privfit import DPSGA
    >>> from privfit.searches import Insertion
    >>> DPSGA(mutation=Insertion())
    DPSGA(mutation=Insertion())
    """

    setting: ClassVar[str] = "mutation"
    needs: ClassVar[tuple[str, ...]] = ("insert",)

    def __call__(self, space: Permutations, P: Array, scale: float, coins: Coins) -> Array:
        return space.insert(P, coins)


# --------------------------------------------------------------------------------------- schedules


@dataclass(frozen=True, repr=False)
class Constant(Operator):
    """A schedule without effect: steps have the same size in all generations.

    See Also
    --------
    Decay, Geometric : Steps that become smaller.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import Constant
    >>> PrivGene(schedule=Constant())
    PrivGene(schedule=Constant())
    """

    setting: ClassVar[str] = "schedule"

    def __call__(self, generation: int, generations: int) -> float:
        return 1.0


@dataclass(frozen=True, repr=False)
class Decay(Operator):
    """A schedule that multiplies steps by a factor after each generation.

    Parameters
    ----------
    factor : float, default=0.98
        The factor.

    See Also
    --------
    Geometric : Steps that reach a given size in the last generation.

    Examples
    --------
    >>> from privfit.searches import Decay
    >>> [Decay(0.5)(generation, 3) for generation in range(3)]
    [1.0, 0.5, 0.25]
    """

    setting: ClassVar[str] = "schedule"

    factor: float = 0.98

    def __call__(self, generation: int, generations: int) -> float:
        return self.factor**generation


@dataclass(frozen=True, repr=False)
class Geometric(Operator):
    """A schedule of steps that become smaller geometrically, down to a fraction of the first.

    Parameters
    ----------
    last : float, default=0.3
        The steps of the last generation, relative to those of the first.

    See Also
    --------
    Decay : A given factor from one generation to the next.

    Examples
    --------
    >>> from privfit.searches import Geometric
    >>> [Geometric(0.25)(generation, 3) for generation in range(3)]
    [1.0, 0.5, 0.25]
    """

    setting: ClassVar[str] = "schedule"

    last: float = 0.3

    def __post_init__(self) -> None:
        check_positive_shares(self, "last")

    def __call__(self, generation: int, generations: int) -> float:
        return self.last ** (generation / max(generations - 1, 1))


# ------------------------------------------------------------------------------------------ starts


@dataclass(frozen=True, repr=False)
class RandomStarts(Operator):
    """Starts that are drawn uniformly.

    See Also
    --------
    MiddleStarts, InterceptStarts : Some are not.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import RandomStarts
    >>> PrivGene(starts=RandomStarts())
    PrivGene(starts=RandomStarts())
    """

    setting: ClassVar[str] = "starts"
    needs: ClassVar[tuple[str, ...]] = ("sample",)

    def __call__(self, space: Space, m: int, coins: Coins) -> Array:
        return space.sample(m, coins)


@dataclass(frozen=True, repr=False)
class MiddleStarts(Operator):
    """Starts that are drawn uniformly, but for some in the middle of the space.

    Parameters
    ----------
    share : float, default=0.05
        Fraction of the starts in the middle.

    See Also
    --------
    RandomStarts : All are drawn uniformly.

    Notes
    -----
    The starts of `DPSGA` in a box of real numbers.

    Examples
    --------
    >>> from privfit import PrivGene
    >>> from privfit.searches import MiddleStarts
    >>> PrivGene(starts=MiddleStarts(0.5))
    PrivGene(starts=MiddleStarts(share=0.5))
    """

    setting: ClassVar[str] = "starts"
    needs: ClassVar[tuple[str, ...]] = ("sample", "middle")

    share: float = 0.05

    def __call__(self, space: Space, m: int, coins: Coins) -> Array:
        P = np.array(space.sample(m, coins))
        P[: int(m * self.share)] = space.middle
        return P


@dataclass(frozen=True, repr=False)
class InterceptStarts(Operator):
    """Starts that are drawn uniformly, but for some with nothing but an intercept.

    Parameters
    ----------
    share : float, default=0.1
        Fraction of the starts with an intercept alone; it is positive in half of them.

    See Also
    --------
    RandomStarts : All are drawn uniformly.

    Notes
    -----
    The starts of `PrivGene` for linear models with an intercept, which is the last coordinate.

    Examples
    --------
    >>> from privfit import DPSGA
    >>> from privfit.searches import InterceptStarts
    >>> DPSGA(starts=InterceptStarts())
    DPSGA(starts=InterceptStarts())
    """

    setting: ClassVar[str] = "starts"
    needs: ClassVar[tuple[str, ...]] = ("sample", "snap")

    share: float = 0.1

    def __call__(self, space: Snapping, m: int, coins: Coins) -> Array:
        P = np.array(space.sample(m, coins))
        flat, alone = P.reshape(m, -1), int(m * self.share / 2)
        flat[: 2 * alone, :-1] = 0
        flat[:alone, -1] = np.abs(flat[:alone, -1])
        flat[alone : 2 * alone, -1] = -np.abs(flat[alone : 2 * alone, -1])
        return space.snap(P)  # zero or a sign may lie outside the box
