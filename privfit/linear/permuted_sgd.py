"""SGD over records in a random order, with noise on the weights alone (Wu et al. 2017).

Data sets differ by one record, replaced or, if the number of slots is public, added or removed. The
weights are released once; `_reach` derives how far one record moves them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privfit._kernels.select import uniform_distinct
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.linear.descent import ALMOST, CURVATURE, Descending, check_slopes, gaussian_noise
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import permuted_descent
from privfit.objectives.coding import Coding
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import GammaVector
from privfit.privacy.remainder import gaussian_left, gaussian_part
from privfit.runs.paths import Path
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Blank, blank, check_counts, check_positive
from privfit.runs.sizes import known_size
from privfit.runs.spaces import Reals

__all__ = ["PermutedSGD"]

ROUNDING = 2.0**-53  # of one operation in float64, relative
BITS = 20  # of the sensitivity of the weights, on the grid that they are noised on


@dataclass(frozen=True, repr=False)
class PermutedSGD(Descending):
    """Settings of SGD in a random order with noise on the final weights, for `solver`.

    Parameters
    ----------
    passes, batch : int, optional
        Number of passes k and size of a batch b in the paper.
    step : float, optional
        Step for a convex loss, at most 2 / smoothness; by default batch / sqrt(n), or the paper's 1
        / sqrt(n).
    ridge : float, optional
        Weight gamma of (gamma / 2) l2(w)^2 relative to the mean loss; 0 for a convex loss.
    paper : bool, default=False
        Whether to use the publication's passes and step.

    See Also
    --------
    Gradient : Noise on every step.

    Notes
    -----
    Released: the final weights. Cost: one release of the whole budget. The records must be in
    memory.

    References
    ----------
    X. Wu, F. Li, A. Kumar, K. Chaudhuri, S. Jha, J. Naughton, "Bolt-on differential privacy for
    scalable stochastic gradient descent-based analytics", SIGMOD 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, PermutedSGD
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = PermutedSGD(passes=5)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    needs_order: ClassVar[bool] = True

    passes: Blank[int] = blank(5, paper=10)
    batch: Blank[int] = blank(50)
    step: float | None = None
    ridge: float = 0.0
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "passes", "batch")
        check_positive(self, "step")
        if not is_finite(self.ridge) or self.ridge < 0:
            raise DeclarationError(f"ridge ({self.ridge!r}) must be 0 or positive; leave it out")
        if self.ridge and self.step is not None:
            raise DeclarationError("step must be left out if ridge > 0, which determines the steps")

    def size(self, task: Task[Any, Any] | Run[Any, Any]) -> int:
        where = ", where it is the number of slots that records are put in"
        return known_size(task.n_public, where, "a public number of records")

    def check(self, task: Task[LinearObjective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        check_slopes(task.objective, "sgd")
        self.size(task)

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Passes of SGD over records in one random order; then noise on the weights, once.

        Released: the weights. Cost: the grant's budget. The descent is in float64: its rounding
        errors, by a public bound (`_rounding`), are part of the sensitivity.
        """
        objective, slots = run.objective, self.size(run)
        coding = Coding(objective.domain, objective.fit_intercept)
        step, reach = _reach(self, objective.loss, slots)
        error = _rounding(self, coding, objective.loss, slots, step)
        sensitivity = (reach + 2 * error) * (1 + 1e-9)
        event = _event(run.whole, run.share, coding.width)
        run.set_aside(event)
        run.note(
            step=None if self.ridge else step, largest_step=step, slots=slots,
            sensitivity=sensitivity,
        )  # fmt: skip

        # Slots hold a uniform arrangement of the records and of empty ones, which stays secret.
        order = uniform_distinct(max(objective.n_records, slots), slots, run.source)
        weights = permuted_descent(
            objective, coding, order, batch=self.batch, passes=self.passes, step=step,
            ridge=self.ridge,
        )  # fmt: skip
        noisy = _noised(run, weights, event, sensitivity)
        bounded = np.clip(noisy / coding.longest(2), run.space.low, run.space.high)
        run.report(coding.weights(bounded)[None])
        return run.path()


def _noised(
    run: Run[LinearObjective, Reals], weights: Floats, event: Event, sensitivity: float
) -> Floats:
    """The weights, released by the one draw that was planned."""
    if event.kind != "gaussian":
        return np.asarray(run.release(GammaVector(event.parameter, sensitivity), weights))
    unit = 2.0 ** (math.frexp(sensitivity)[1] - BITS)
    moved = sensitivity / unit + math.sqrt(len(weights))  # rounding moves each by half a unit
    whole = np.rint(weights / unit).astype(np.int64)
    return np.asarray(unit * run.release(gaussian_noise(event.parameter, moved), whole))


def _event(budget: Budget, share: int, width: int) -> Event:
    """The draw of this budget with the shorter noise: Gaussian, or of density exp(-l2).

    In few dimensions the latter is shorter even if delta > 0. Its root mean square is sqrt(k (k +
    1)) / epsilon, a Gaussian's sqrt(k) / mu, times the sensitivity.
    """
    epsilon = budget.epsilon / share * ALMOST
    if budget.delta:
        mu = gaussian_part(gaussian_left(budget), share, ALMOST)
        if mu * math.sqrt(width + 1) > epsilon:
            return Event("gaussian", mu)
    return Event("pure", epsilon)


def _reach(settings: PermutedSGD, loss: str, slots: int) -> tuple[float, float]:
    """The (largest) step, and how far one slot's record can move the weights.

    Records are scaled to length 1, so gradients are at most 1 long and `smooth`-Lipschitz. Between
    neighbours one slot differs, in one step of each pass: there it adds at most 2 eta / b. A step
    of a convex loss is no expansion if eta <= 2 / smooth; one of a gamma-strongly convex loss
    contracts by 1 - eta gamma if eta <= 1 / (smooth + gamma). So the weights end at most
    (2 / b) max over slots of sum over passes of eta_t prod_{s > t} (1 - eta_s gamma) apart: 2 k eta
    / b (convex), at most 2 / (gamma n) for eta_t = min(1 / (smooth + gamma), 1 / (gamma t)).
    """
    s, smooth = settings, CURVATURE[loss]
    if not s.ridge:
        step = min(s.step or (1 if s.paper else s.batch) / math.sqrt(slots), 2 / smooth)
        return step, 2 * s.passes * step / s.batch
    step, steps_a_pass = 1 / (smooth + s.ridge), -(-slots // s.batch)
    eta = np.minimum(step, 1 / (s.ridge * np.arange(1, s.passes * steps_a_pass + 1)))
    kept = np.cumsum(np.log1p(-eta * s.ridge)[::-1])[::-1]  # of what stands before each step
    left = eta * np.exp(np.append(kept[1:], 0.0))
    furthest = float(left.reshape(s.passes, steps_a_pass).sum(axis=0).max())
    return step, 2 * furthest / s.batch * (1 + 1e-9)


def _rounding(settings: PermutedSGD, coding: Coding, loss: str, slots: int, step: float) -> float:
    """How far float64 may lead the weights from those of real arithmetic, in l2 norm; public.

    A step does not expand distances, so the errors of single ones add up. With r = 2^-53 the
    rounding of an operation, k weights of length at most W, and records x = offset + value, where
    o = l2(offset) and l2(value) <= 1 + o:

    - a margin has at most 2 k + 2 terms: it is off by 4 (k + 1) r (1 + 2 o) W, and a slope by c
      times that and its own 2^-49 (see `convex`);
    - a batch adds up b slopes times columns: off by 2 (b + 8) r (1 + 2 o), times the step;
    - shrinking, adding and projecting: 2 (k + 8) r W.

    The loss of a record at 0 is at most 0.7 and convex, so a step lengthens l2(w)^2 by at most
    1.4 step + step^2: W <= sqrt(T (1.4 step + step^2)) after T of them. With a ridge, gradients are
    at most 2 long and a step shrinks l2(w)^2 by 2 step ridge first: W <= sqrt((1.4 + 4 step) /
    ridge).
    """
    s, k, smooth = settings, coding.width, CURVATURE[loss]
    steps = s.passes * -(-slots // s.batch)
    squared = (1.4 + 4 * step) / s.ridge if s.ridge else steps * step * (1.4 + step)
    W = 1 + math.sqrt(squared)
    far = float(np.linalg.norm(coding.columns[1].astype(np.float64))) * coding.unit
    spread = 1 + 2 * far / coding.longest(2)
    slope = smooth * 4 * (k + 1) * ROUNDING * spread * W + 2.0**-49
    batch = 2 * (s.batch + 8) * ROUNDING * spread
    return 1.1 * steps * (step * (slope + batch) + 2 * (k + 8) * ROUNDING * W)
