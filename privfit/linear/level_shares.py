"""The part of all records that is in each level of a column, as far as released moments tell.

An additive fit releases the means and second moments of each column's features. With T_l the row of
level l, v_l = (T_l, the triangle of T_l T_l') and a_l the part of all records in it, the released
numbers of a column are v = sum of a_l v_l plus noise of a known standard deviation s. So they tell
of the parts, and what follows is post-processing, which costs nothing.

**Estimate.** Levels may outnumber what is known of them, so the parts are those that stay nearest
to the assumed ones p (`Part.assumed`), as far as noise allows: they minimise

    l2(v - sum of a_l v_l)^2 / (2 s^2) + sum of a_l log(a_l / p_l)

over all a >= 0 with sum 1. It is convex and has one answer, which is p where noise drowns
everything, and what was released where there is none. No part is negative, so a mean by these parts
lies between the smallest and the largest value of a column, and a variance is never negative.

**Levels with one row** cannot be told apart; they divide their part as the assumed ones do.

**Rare categories.** A category that no record has gets a part of about s from noise, and often a
large weight, since no record says otherwise. So categories below 3 s count as empty, unless the
others have less than half of all records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # its submodules load when first used

from privfit.base import blas
from privfit.base.typing import Floats
from privfit.domains import Domain
from privfit.domains.parts import Part
from privfit.linear.feature_frames import FeatureFrame
from privfit.objectives.features import ONE, Levels, Table

__all__ = ["level_shares", "read_shares", "usual_shares", "written_shares"]

EQUAL = 0.01  # of the assumed parts is divided equally: no level is ruled out beforehand
LEAST_NOISE = 2.0**-12  # of a moment: rows are rounded to it
LEAST_SHARE = 1e-15  # of all records
DIGITS = 7  # behind the point of a share that is kept
ROUNDS, HALVINGS = 60, 30  # of Newton's method, and of a step
RARE = 3.0  # standard deviations of noise, below which a category counts as empty
CLOSE = 1e-7  # what a round may leave to gain
FARTHEST = 5.0  # logarithm of what a round multiplies a part by


def usual_shares(part: Part) -> Floats:
    """(width,): the assumed part of each encoded level; missing values are assumed to be none."""
    return np.pad(part.assumed, (0, part.column.width - part.n_levels))


def level_shares(frame: FeatureFrame, domain: Domain) -> Floats:
    """(width,): the parts of all levels, column by column.

    The fit is paid for by now, so nothing here may fail: what cannot be computed is assumed.
    """
    features, found = frame.features, []
    moments = frame.matrix / frame.n_records
    noise = max(frame.noise / frame.n_records, LEAST_NOISE)
    columns = zip(features.tables, features.parts, domain.parts.values(), strict=True)
    with np.errstate(all="ignore"):
        for table, place, part in columns:
            width = part.column.width
            assumed = (1 - EQUAL) * usual_shares(part) + EQUAL / width
            means, products = moments[place, -1], moments[place, place]
            found.append(_of_column(table, means, products, noise, assumed / assumed.sum()))
    return np.concatenate(found)


def written_shares(shares: Floats) -> list[float]:
    """Shares as a release keeps them: rounded, so that files stay short."""
    return [round(share, DIGITS) for share in shares.tolist()]


def read_shares(part: Part, written: Sequence[float] | None) -> Floats:
    """(width,): the parts of a column's levels, of what a release kept; assumed ones without it."""
    if written is None:
        return usual_shares(part)
    own = np.asarray(written[part.place], dtype=np.float64)
    return own / own.sum()


def _of_column(
    table: Table, means: Floats, products: Floats, noise: float, assumed: Floats
) -> Floats:
    """The parts of one column's levels."""
    if isinstance(table, Levels):  # v_l is a coordinate of its own
        return _without_rare(_nearest(assumed, np.ones(len(assumed)), means, noise), noise)
    whole, same = np.unique(table.rows, axis=0, return_inverse=True)
    same, rows = same.reshape(-1), whole / ONE
    together = np.bincount(same, assumed).astype(np.float64)
    with blas.one_thread():
        plain, squares = rows @ rows.T, np.square(rows) @ np.square(rows).T
        # Of a triangle: half of what the whole matrix and its diagonal have.
        gram = plain + (np.square(plain) + squares) / 2
        along = ((rows @ products) * rows).sum(axis=1) + np.square(rows) @ products.diagonal()
        target = rows @ means + along / 2
    return _nearest(together, gram, target, noise)[same] * assumed / together[same]


def _without_rare(shares: Floats, noise: float) -> Floats:
    """Parts of categories, those that noise alone could have made left out if they are few."""
    kept = np.where(shares >= RARE * noise, shares, 0.0)
    total = float(kept.sum())
    return kept / total if total >= 0.5 else shares


def _nearest(assumed: Floats, gram: Floats, target: Floats, noise: float) -> Floats:
    """The parts a that minimise (a' gram a / 2 - target a) / noise^2 + sum of a log(a / assumed).

    A `gram` (m,) is the diagonal of one. By Newton's method in the logarithms of the parts.
    """
    gram, target = gram / noise**2, target / noise**2

    def times(a: Floats) -> Floats:
        return gram * a if gram.ndim == 1 else gram @ a

    def value(a: Floats) -> float:
        return float(a @ (times(a) / 2 - target + np.log(a / assumed)))

    a = np.maximum(assumed, LEAST_SHARE)
    best = value(a)
    for _ in range(ROUNDS):
        slope = times(a) - target + np.log(a / assumed)
        move = _newton(a, gram, slope)
        gain = -float(slope @ (a * move))
        if not gain > CLOSE:
            break
        for _ in range(HALVINGS):
            tried = a * np.exp(np.clip(move, -FARTHEST, FARTHEST))
            tried = np.maximum(tried / tried.sum(), LEAST_SHARE)
            if (now := value(tried)) < best:
                break
            move = move / 2
        else:
            break
        a, best = tried, now
    return np.asarray(a / a.sum())


def _newton(a: Floats, gram: Floats, slope: Floats) -> Floats:
    """The step of log a that a quadratic model takes, with the sum of a as it is."""
    root = np.sqrt(a)
    wanted = np.stack([-slope, np.ones(len(a))], axis=1) * root[:, None]
    if gram.ndim == 1:
        solved = wanted / (1 + a * gram)[:, None]
    else:
        curved = root[:, None] * gram * root
        curved[np.diag_indices(len(a))] += 1
        with blas.one_thread():
            solved = scipy.linalg.solve(curved, wanted, assume_a="pos", check_finite=False)
    downhill, level = solved.T
    return np.asarray((downhill - level * (root @ downhill) / (root @ level)) / root)
