"""Noisy descent for additive models: one curve for each column, each a few smooth functions.

Records are mapped to features of their levels (`privfit.objectives.features`): a category to its
levels, a number to smooth functions of it, all public. `Additive` buys second moments of features,
descends on clipped gradients in the coordinates that they whiten, and shrinks what it found.

**Neighbours.** Data sets differ by one record, replaced ('replace', the size n is public) or added
or removed ('add_remove', n is private). Integer vectors plus discrete Gaussian noise are released:
moments (`objectives/feature_moments.py` derives their sensitivities for both relations) and sums of
clipped gradients (`objectives/clipping.py`). Everything else is a function of these: coordinates,
steps, the path, its mean, what is shrunk. Under 'add_remove' the size is `n_public`, or is taken
from the noisy moments. All rules are functions of public numbers (`privfit.linear.recipe`).

**Cost.** One draw with mu_0 and T draws with mu_t are one Gaussian draw with mu^2 = mu_0^2 + T
mu_t^2, exactly.

**Coordinates.** `privfit.linear.feature_frames` makes them of the moments, and
`privfit.linear.wary` descends in them: it slows down where gradients point back, and raises the
floor where the first one says that labels are weak.

**Shrinking.** The mean w of the path has, at coordinate j, a variance N_j from noise and sampling
that is known, but for the curvature h of the loss. In each band of coordinates (coarse, middle or
fine functions of one column) the w_j are taken to be drawn with a variance t around 0, which is
estimated by their squares, and w_j is replaced by w_j t / (t + c N_j), with a caution c:
empirical Bayes. The intercept takes up what this changes of the mean score, as far as released
moments know it. Errors are those of the shrunk weights, but for columns of which nothing is left:
their errors are those before shrinking, since noise of that size may hide a curve.

**Shares.** Released moments also tell which part of all records is in each level of a column
(`privfit.linear.level_shares`), by which shapes and summaries are centred.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.domains import Schema
from privfit.domains.columns import Column
from privfit.domains.scales import SMOOTH, SMOOTHEST
from privfit.linear.calibration import Facts, Prior
from privfit.linear.descent import (
    CURVATURE,
    LEAST,
    Descending,
    Noise,
    check_reach,
    check_slopes,
)
from privfit.linear.feature_frames import USUAL_CURVATURE, FeatureFrame, Filled, bought_frame
from privfit.linear.level_shares import level_shares
from privfit.linear.recipe import PUBLIC, Metric, Recipe, fastest, most_functions
from privfit.linear.uncertainty import Stride, noise_of
from privfit.linear.wary import Trail, descend_warily
from privfit.objectives import LinearObjective
from privfit.objectives.coding import Coding
from privfit.objectives.features import room_for_levels
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import gaussian_left
from privfit.runs.noise import Spread
from privfit.runs.paths import Path
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import (
    check_counts,
    check_positive,
    check_positive_shares,
    check_shares,
)
from privfit.runs.spaces import Reals

__all__ = ["Additive"]

RIDGE = 0.1  # flat from .02 to 1
MOST_NUMBERS = 1 << 25  # of the rows of noise
LARGEST_NOISE = 1e9  # of a weight: beyond, a linear law says nothing
KEPT_NUMBERS = 3 << 14  # of its directions, so that the model of Adult is a file below 1 MB
REFITS = 5  # rounds in which the variance of a band is estimated
NOTHING = 1e-3  # of weights: a column of which shrinking leaves less has no curve above its noise


@dataclass(frozen=True, repr=False)
class Additive(Descending):
    """Settings of the descent for additive models, for the parameter `solver`.

    The domain is a `Schema` whose columns are all levels: categories, and numbers with bins or a
    scale. Parameters that are left out follow a public rule (`privfit.linear.recipe.Recipe`).

    Parameters
    ----------
    steps : int, optional
        Number of steps T.
    metric : {'block', 'full'}, optional
        Whether second moments are bought of each column alone, or of all columns together.
    moments : float, optional
        Fraction of the squared Gaussian parameter that buys them.
    floor : float, optional
        What is added to their eigenvalues, in units of the noise of moments ('full') or of
        gradients ('block').
    clip : float, optional
        Bound on the length of gradients, as a fraction of their expected length at the start.
    ridge : float, optional
        Weight of an l2 regulariser, in units of the noise of a gradient.
    average : float, optional
        Fraction of the path whose mean is taken; 0 for the last step.
    public : int, optional
        The most functions of a number's public scale.
    learned : int, optional
        The most functions of a number's own bins.
    mixing : float, optional
        The smooth part of the kernel of bins; the rest tells single bins apart.
    shrink : bool, optional
        Whether weights are shrunk at the end by their known noise, which costs nothing.
    smooth : {0.7, 2.0}, optional
        Decades over which functions of the public scale are smooth.
    straight : float, optional
        The part of the squared length of a row that a straight line has, in columns with a declared
        range, with one function of each kind beside it; 0 for none.
    pool : bool, optional
        Whether block moments are pooled over numbers with the same map, which costs nothing.
    caution : float, optional
        How many times their variance weights are shrunk for.
    weak : float, optional
        The strength of labels, an R^2, below which the floor of full moments is raised; 0 for
        never. It is estimated from the first gradient, which costs nothing.

    See Also
    --------
    Gradient : The descent for any linear model.
    Numeric : A column of numbers, with bins or a scale.

    Notes
    -----
    Released: noisy second moments of features, and T noisy sums of clipped gradients; the weights
    are a function of these. The last generation of the path is the answer. Cost: the budget of the
    fit, by discrete Gaussian noise; delta must be positive.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Additive, LogisticRegression, Numeric, Schema
    >>> x = np.random.default_rng(0).lognormal(3, 1, 3000)
    >>> y = (abs(x - 20) < 12).astype(int)  # no line can tell
    >>> schema = Schema({"x": Numeric(scale="log")})
    >>> model = LogisticRegression(1.0, 1e-6, domain=schema, classes=[0, 1], solver=Additive())
    >>> model.fit({"x": x}, y).coef_.shape
    (1, 211)
    """

    is_gaussian = True

    steps: int | None = None
    metric: Metric | None = None
    moments: float | None = None
    floor: float | None = None
    clip: float | None = None
    ridge: float | None = None
    average: float | None = None
    public: int | None = None
    learned: int | None = None
    mixing: float | None = None
    shrink: bool | None = None
    smooth: float | None = None
    straight: float | None = None
    pool: bool | None = None
    caution: float | None = None
    weak: float | None = None

    clips_slopes: ClassVar[bool] = True
    weighs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_counts(self, "steps", "public", "learned")
        check_shares(self, "average", "mixing", "straight", "weak")
        check_positive_shares(self, "moments")
        check_positive(self, "clip", "floor", "caution")
        if self.moments == 1:
            raise DeclarationError("moments (1) must be below 1; leave it out")
        if self.metric not in (None, "block", "full"):
            raise DeclarationError(
                f"metric ({self.metric!r}) must be 'block' or 'full'; leave it out"
            )
        if self.ridge is not None and (not is_finite(self.ridge) or self.ridge < 0):
            raise DeclarationError(f"ridge ({self.ridge!r}) must be 0 or positive; leave it out")
        for name in ("shrink", "pool"):
            if getattr(self, name) not in (None, True, False):
                raise DeclarationError(
                    f"{name} ({getattr(self, name)!r}) must be True or False; leave it out"
                )
        if self.smooth not in (None, SMOOTH, SMOOTHEST):
            raise DeclarationError(
                f"smooth ({self.smooth!r}) must be {SMOOTH} or {SMOOTHEST}; leave it out"
            )

    def following(self, recipe: Recipe) -> Additive:
        """These settings, and a recipe's for those that were left out.

        Parameters
        ----------
        recipe : Recipe
            The rule for the whole budget of a fit, of which the solver gets a part.

        Returns
        -------
        Additive
            The settings to use.
        """
        usual, given = asdict(recipe), asdict(self)
        named = {
            name: usual[name] for name, value in given.items() if value is None and name in usual
        }
        return replace(self, **named)

    def score_prior(self, facts: Facts) -> Prior:
        """What a calibration expects of the scores of such a model.

        Parameters
        ----------
        facts : Facts
            What is public of them.

        Returns
        -------
        Prior
            A slope by the signal of the table.
        """
        recipe = Recipe.of(
            facts.size, facts.mu, facts.neighbours, facts.table_columns, facts.numbers, self.metric,
            self.pool, facts.ranged,
        )  # fmt: skip
        error = recipe.intercept_error
        if facts.weighted:
            error = max(error, facts.intercept_error)
        return Prior(recipe.slope, recipe.slope_error, error)

    def room(self, schema: Schema) -> int:
        """How many levels of blank categories a model has room for, whatever the recipe.

        Parameters
        ----------
        schema : Schema
            The columns; a blank number may get as many functions as there are.

        Returns
        -------
        int
            The number of levels.
        """
        return room_for_levels(schema.columns, self.most_of(schema.columns))

    def most_of(self, columns: Mapping[str, Column]) -> int:
        """The most coordinates of a number, whatever the budget.

        Parameters
        ----------
        columns : dict of str to Column
            The columns.

        Returns
        -------
        int
            The number of coordinates.
        """
        passed = [one for one in (self.public, self.learned) if one is not None]
        most = most_functions(sum(column.holds_numbers for column in columns.values()))
        by_rule = (max(2 * PUBLIC, most), most, 0)[len(passed)]
        return sum(passed) + by_rule + 1  # one of missing values

    def by(self, recipe: Recipe) -> Filled:
        """These settings, with what a recipe says where they say nothing.

        Parameters
        ----------
        recipe : Recipe
            The public rule for a table and a budget, with the metric of these settings.

        Returns
        -------
        Filled
            The settings to use.
        """
        usual = {**asdict(recipe), "ridge": RIDGE, "shrink": True}
        filled = {name: usual[name] if value is None else value
                  for name, value in asdict(self).items()}  # fmt: skip
        longest = fastest(filled["clip"], filled["metric"] == "full", filled["pool"])
        return Filled(**filled, fastest=longest)

    def check(self, task: Task[LinearObjective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        objective, budget = task.objective, task.budget
        check_slopes(objective, "additive")
        if not budget.delta:
            raise DeclarationError(
                "solver 'additive' draws Gaussian noise, and needs delta > 0; pass delta=1e-6, or "
                "solver='objective' or 'local'"
            )
        if not objective.fit_intercept:
            raise DeclarationError(
                "fit_intercept (False) must be True for solver 'additive', whose curves have no "
                "level of their own; leave it out, or pass solver='gradient'"
            )
        s = self._filled(objective, task.n_public, gaussian_left(budget), task.neighbours)
        s.features(objective)
        columns = objective.domain.declared_columns
        room_for_levels(columns, self.most_of(columns))
        if Noise.of_budget(s.descent, budget, 1).least < LEAST:
            raise DeclarationError(
                f"epsilon ({budget.epsilon!r}) is too small for this number of steps; pass fewer "
                "steps or a larger epsilon"
            )
        check_reach(objective, Coding(objective.domain))

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Buy moments, descend, and shrink the mean of the path; the space bounds coded weights.

        Released: the noisy moments, and T noisy gradients. The weights after each step, and last
        the answer, functions of these, are reported. Cost: the grant's budget. A run that a
        callback ends returns the mean of what there is, not shrunk.
        """
        objective = run.objective
        s = self._filled(objective, run.n_public, run.mu, run.neighbours)
        noise = Noise.of_budget(s.descent, run.whole, run.share)
        run.set_aside(*noise.events, generations=s.steps + 1)
        coding, features = Coding(objective.domain), s.features(objective)
        s = s.fitting(features)
        run.note(**s.noted)
        frame, trail = descend_warily(run, coding, bought_frame(run, s, noise, features), s, noise)
        if run.path().stopped:
            return run.path(s.average)
        weights = np.mean(trail.weights[-s.averaged :], axis=0)
        factors = _factors(weights, trail, s, frame, CURVATURE[objective.loss] * USUAL_CURVATURE)
        answer = _shrunk(weights, factors, frame.means)
        run.report(coding.weights(frame.placed(answer, run.space)[1])[None])
        return replace(
            run.path(), noise=_noise(weights, factors, trail, s, frame, coding, objective.loss),
            shares=level_shares(frame, objective.domain),
        )  # fmt: skip

    def _filled(
        self, objective: LinearObjective, size: int | None, mu: float, neighbours: Neighbours
    ) -> Filled:
        columns = objective.domain.declared_columns.values()
        numbers = [column for column in columns if column.holds_numbers]
        ranged = sum(column.has_range for column in numbers)
        count = max(1, len(columns))
        return self.by(
            Recipe.of(size, mu, neighbours, count, len(numbers), self.metric, ranged=ranged)
        )


# ------------------------------------------------------------------------------------------ answers


def _factors(
    weights: Floats, trail: Trail, s: Filled, frame: FeatureFrame, curvature: float
) -> Floats:
    """(p,): what weights are multiplied by, from what is known of their noise."""
    factors = np.ones(len(weights))
    if s.shrink:
        noise = trail.deviation**2 / s.averaged / curvature**2
        variances = frame.variances(noise, 1 / (frame.size * curvature))
        for band in frame.features.bands:
            factors[band] = _kept(weights[band], s.caution * variances[band])
    return factors


def _kept(weights: Floats, variances: Floats) -> Floats:
    """Factors of one band, by empirical Bayes: its own variance is estimated by precision."""
    excess = np.square(weights) - variances
    own = max(0.0, float(excess.mean()))
    for _ in range(REFITS):
        precision = 1 / np.square(own + variances)
        own = max(0.0, float((precision * excess).sum() / precision.sum()))
    return np.asarray(own / (own + variances))


def _hidden(factors: Floats, frame: FeatureFrame) -> Floats:
    """(p,): what noise is multiplied by: factors, but 1 in columns of which nothing is left."""
    found = factors.copy()
    for part in frame.features.parts:
        if (factors[part] < NOTHING).all():
            found[part] = 1.0
    return found


def _shrunk(weights: Floats, factors: Floats, means: Floats) -> Floats:
    """(..., p): weights times factors; the intercept takes up what the mean score loses."""
    shrunk = weights * factors
    shrunk[..., -1] += (weights - shrunk)[..., :-1] @ means[:-1]
    return np.asarray(shrunk)


def _noise(
    weights: Floats,
    factors: Floats,
    trail: Trail,
    s: Filled,
    frame: FeatureFrame,
    coding: Coding,
    loss: str,
) -> Spread | None:
    """The noise of the answer; None where nothing is known of it.

    The fit is paid for by now, so nothing here may fail: what cannot be computed is not known.
    """
    if frame.features.dimensions * coding.width > MOST_NUMBERS:
        return None
    with np.errstate(all="ignore"):
        curvature = frame.law.curvature(loss, weights, trail.clip)
        if not np.isfinite(curvature).all():
            return None
        stride = Stride(trail.steps, trail.kept, trail.deviation, s.averaged)
        rows = noise_of(stride, curvature, frame.basis)
        rows = _shrunk(rows, _hidden(factors, frame), frame.means)
        rows = coding.linear(frame.coded(rows))
    return Spread.of(rows, KEPT_NUMBERS) if (np.abs(rows) < LARGEST_NOISE).all() else None
