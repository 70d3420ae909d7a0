"""The functional mechanism: logistic regression from the noisy coefficients of its loss.

Zhang, Zhang, Xiao, Yang, Winslett (PVLDB 2012) expand the logistic loss to order 2 about 0,

    ln(1 + e^z) - y z  ~  ln 2 + (1/2 - y) z + z^2 / 8,      z = <v, u>,

so that the sum over records is a quadratic function of the weights u, known from the sums of
s v (s = 1 - 2 y) and of v v'. These are released once, with noise; whatever is done to them
afterwards is free. v is the record in the coding of `Compact`, the intercept 1/2 included; where
a one-hot group is declared, its columns add up to the intercept, which is then left out. Where no
intercept is fitted, b is 0 in all that follows, no column is centred, and v is x / 2^k.

**Sensitivity.** Released are the integers (A s v, v_i v_j for i <= j), summed over records: A is a
public whole number, the weight of the linear part. All terms depend on one record alone. Let
w_j >= abs(v_j) bound the numbers, h_g be the entry of group g, b the intercept, and N, H, W the
sums of the w_j, of the h_g, and of both and b. One record added or removed changes them by

    l1    A W + (W^2 + S) / 2                        S: the sum of the squares of all w_j, h_g, b
    l2    sqrt(A^2 S + (S^2 + F) / 2)                F: the sum of their fourth powers

at most: all terms grow with abs(v_j), so a corner of the box is worst. In a ball of radius r we
have W = r + b, or sqrt(d) r + b for the l2 ball, S = r^2 + b^2 and F = r^4 + b^4. One record
replaced, v and s by v' and s':

- *l2*, with c = abs(<v, v'>): the linear part moves by at most sqrt(2 S + 2 c) A, the squares of
  the quadratic part add up to at most S^2 + F - b^4 - c^2, since its inner product is
  (c^2 + sum of v_i^2 v'_i^2) / 2 >= 0 and b^2 does not change. The sum of squares is largest at
  c = min(A^2, S): a label alone that flips (c = S) moves no quadratic term.
- *l1, box and schema*: s v_j and v_i v_j are products of two of the numbers z = (A s, b, v_1, ...),
  whose bounds add up to M = A + b + N. The l1 distance of these products is convex in each z, so
  largest at corners, where just the products of a flipped and a kept number change, each by twice
  its size: with flipped bounds that add up to f, by 2 f (M - f) <= M^2 / 2. Half of what two
  records would cost. A square v_j^2 changes by at most w_j^2. The products with a group's entry
  are bounded one by one: 2 H M, and H^2 + (sum of h_g^2) among the groups.
- *l1, balls*: twice the add_remove value less the square of b; in the l2 ball the quadratic part
  alone is at most r^2 (d / sqrt 2 + 1), by its rank of 2 and Cauchy's inequality.

Sums too fine for noise of 64 bits are cut to multiples of a power of two, which adds at most one
unit to the change of each coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privfit._kernels.records import RESIDUAL_UNIT
from privfit.base import blas
from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import OF_THREAD
from privfit.objectives.coding import Compact
from privfit.privacy.budget_noise import deviation, noise_for
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.records.packing import MAX_RECORDS
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Settings, check_positive
from privfit.runs.spaces import Reals

__all__ = ["Functional"]


SENSITIVITY_BITS = 32  # of the integers that are released: far finer than their noise


@dataclass(frozen=True, repr=False)
class Functional(Settings):
    """Settings of the functional mechanism, for the parameter `solver`.

    Parameters
    ----------
    weight : float, optional
        Weight A of the linear part relative to the quadratic one, in units of a coded record. By
        default 2 if delta is 0 and 1 otherwise: flat optima on three public tables at epsilon 0.1
        and 1. The paper's is twice the length of the longest coded record.
    ridge : float, optional
        What is added to the eigenvalues of the noisy quadratic, in standard deviations of its
        noise; by default 0.5 sqrt(d), a quarter of the largest eigenvalue of noise alone, which did
        well on the same tables. The paper has 4.
    paper : bool, default=False
        Whether to use the publication's parameters, uncentred columns and pure budget, whatever
        delta is: add the ridge, then drop negative eigenvalues. By default these are set to 0
        before it is added. Repaired: the sensitivity is that of the declared domain; the paper's
        d^2 / 4 + 3 d allows for columns up to 1 each, though it scales them to 1 / sqrt(d).

    See Also
    --------
    ObjectivePerturbation, OutputPerturbation : Fits of the exact loss.

    Notes
    -----
    Released: about d^2 / 2 noisy coefficients of the second-order loss, which the model minimises.
    Cost: one release, pure or Gaussian, of the whole budget.

    References
    ----------
    J. Zhang, Z. Zhang, X. Xiao, Y. Yang, M. Winslett, "Functional mechanism: regression analysis
    under differential privacy", PVLDB 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Functional, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = Functional()
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    weight: float | None = None
    ridge: float | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "weight", "ridge")

    @property
    def largest_weight(self) -> float:
        return 5.0 if self.paper else 10.0

    def bounds_codes(self, objective: Objective) -> bool:
        return True

    def rows_held(self, width: int, n_threads: int) -> float:
        """Second moments, their triangle, its positions and noise, and an eigendecomposition.

        Parameters
        ----------
        width : int
            The number of weights.
        n_threads : int
            The number of threads, each of which adds up moments of its own.

        Returns
        -------
        float
            The number of rows.
        """
        return (8 + OF_THREAD * (n_threads - 1)) * width

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        _plan(task.objective, self, task.budget, task.neighbours)

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Release the coefficients of the second-order loss, and minimise the function they define.

        Released: about d^2 / 2 integers; their minimiser is reported. Cost: one release, pure or
        Gaussian, of the grant's budget. The space bounds the weights of coded columns.
        """
        plan = _plan(run.objective, self, run.whole, run.neighbours, run.share)
        run.set_aside(plan.noise.event)
        run.note(weight=plan.A * plan.coding.unit, ridge=plan.ridge(self))
        linear, quadratic = plan.coefficients(run.objective)
        value = np.concatenate([linear, quadratic[plan.upper]]) >> plan.cut
        noisy = run.release(plan.noise, value)
        u = np.zeros(run.objective.n_weights)
        u[plan.columns] = plan.minimiser(noisy, self)
        run.report(plan.coding.weights(np.clip(u, run.space.low, run.space.high))[None])
        return run.path()


@dataclass(frozen=True)
class _Plan:
    """The public facts of a release: coding, columns, A, bits that are cut off, noise."""

    coding: Compact
    columns: Integers
    A: int
    cut: int
    noise: DiscreteLaplace | DiscreteGaussian

    @property
    def upper(self) -> tuple[Integers, Integers]:
        """The positions of the coefficients of the quadratic part."""
        return np.triu_indices(len(self.columns))

    def ridge(self, settings: Functional) -> float:
        """What is added to the eigenvalues, in deviations of their noise."""
        ours = 0.5 * math.sqrt(len(self.columns))
        return settings.ridge or (4.0 if settings.paper else ours)

    def coefficients(self, objective: LinearObjective) -> tuple[Integers, Integers]:
        """int64: -A times the sums of s v, and those of v v', of the columns."""
        # At w = 0 every slope is 1/2; cut to one unit, the sums are those of the records.
        first = objective.gradient(np.zeros(objective.n_weights), RESIDUAL_UNIT)
        linear = self.coding.gradient(first)
        quadratic = self.coding.moments(objective.second_moments())
        return self.A * linear[self.columns], quadratic[np.ix_(self.columns, self.columns)]

    def minimiser(self, noisy: Integers, settings: Functional) -> Floats:
        """The weights that minimise the noisy quadratic, made positive definite."""
        d, unit = len(self.columns), self.coding.unit
        linear = noisy[:d] * (2.0**self.cut * unit / self.A)
        quadratic = np.zeros((d, d))
        quadratic[self.upper] = noisy[d:] * (2.0**self.cut * unit**2)
        quadratic += np.triu(quadratic, 1).T
        sigma = deviation(self.noise) * 2.0**self.cut * unit**2
        ridge = self.ridge(settings)
        with blas.one_thread():
            values, vectors = np.linalg.eigh(quadratic)
        if settings.paper:
            values = values + ridge * sigma
        else:
            values = np.maximum(values, 0.0) + ridge * sigma
        inverse = np.divide(2.0, values, out=np.zeros(d), where=values > 0)
        return np.asarray(vectors @ (inverse * (linear @ vectors)))


def _plan(
    objective: Objective,
    settings: Functional,
    budget: Budget,
    neighbours: Neighbours,
    share: int = 1,
) -> _Plan:
    if not isinstance(objective, LinearObjective) or objective.loss != "logistic":
        raise DeclarationError(
            "functional expands only the logistic loss; pass solver='functional' to "
            "LogisticRegression"
        )
    domain, d, a = objective.domain, objective.n_features, objective.grid.a
    if settings.paper:  # which has no delta
        budget = Budget(budget.epsilon)
    coding = Compact(domain, not settings.paper, objective.fit_intercept)
    columns = np.arange(d if domain.groups else coding.width)
    # As published, records scaled to the unit ball add s x / 2 and x x' / 4.
    printed = 2 * coding.longest(2) if settings.paper else None
    weight = settings.weight or printed or (1.0 if budget.delta else 2.0)
    # A sum of A s v over all the records that there may ever be must stay below 2^62.
    A = max(1, min(round(weight / coding.unit), 2**62 // (MAX_RECORDS << (a + 1))))
    l1, l2 = sensitivities(domain, coding, A, neighbours)
    cut = max(0, l1.bit_length() - SENSITIVITY_BITS)
    count = len(columns) * (len(columns) + 3) // 2 if cut else 0
    noise = noise_for(budget, -(-l1 >> cut) + count, l2 / 2.0**cut + math.sqrt(count), share)
    return _Plan(coding, columns, A, cut, noise)


def sensitivities(
    domain: Domain, coding: Compact, A: int, neighbours: Neighbours
) -> tuple[int, float]:
    """How much one record changes the coefficients in l1 and l2: the table above, in integers."""
    replaced = neighbours.replaces
    if domain.order < math.inf:
        return _in_ball(domain, coding, A, replaced)
    hot, numbers, b = _entries(domain, coding)
    H, M = sum(hot), A + b + sum(numbers)
    W = M - A + H
    squares = _powers(hot, 2) + _powers(numbers, 2)
    fourths = _powers(hot, 4) + _powers(numbers, 4)
    if replaced:
        flipped = max(A, b, *numbers, M // 2)  # of M: a half, or more if one number is
        products = 2 * flipped * (M - flipped)
        l1 = H * H + _powers(hot, 2) + 2 * H * M + products + _powers(numbers, 2)
    else:
        l1 = A * W + (W * W + squares + b * b) // 2
    return l1, _l2(A, squares + b * b, fourths, b, replaced)


def _entries(domain: Domain, coding: Compact) -> tuple[list[int], list[int], int]:
    """The sizes of a record's entries: of each group, of each number, of the intercept."""
    largest = coding.reach.tolist()
    hot = [largest[group.start] for group in domain.groups]
    numbers = [largest[j] for j in domain.numbers]
    return hot, numbers, 0 if hot else coding.constant


def _in_ball(domain: Domain, coding: Compact, A: int, replaced: bool) -> tuple[int, float]:
    r, b, d = int(coding.reach[0]), coding.constant, domain.width
    longest = r if domain.order == 1 else _root_up(d * r * r)  # in l1
    W, squares = longest + b, r * r + b * b
    if not replaced:
        l1 = A * W + -(-(W * W + squares) // 2)
    else:
        quadratic = longest * longest + r * r
        if domain.order == 2:
            quadratic = min(quadratic, _root_up(d * d * r**4 // 2 + 1) + r * r)
        l1 = 2 * A * W + 2 * longest * b + quadratic
    return l1, _l2(A, squares, r**4, b, replaced)


def _l2(A: int, squares: int, fourths: int, b: int, replaced: bool) -> float:
    """The l2 sensitivity; `fourths` is without the intercept's, which only an added record has."""
    if replaced:
        c = min(A * A, squares)
        total = 2 * A * A * (squares + c) + squares**2 + fourths - c * c
    else:
        total = A * A * squares + (squares**2 + fourths + b**4 + 1) // 2
    return math.sqrt(total) * ABOVE


def _powers(values: list[int], power: int) -> int:
    return sum(value**power for value in values)


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root + (root * root < square)
