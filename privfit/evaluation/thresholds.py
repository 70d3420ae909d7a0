"""A threshold from a released ROC curve: post-processing, which costs nothing."""

from __future__ import annotations

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.validation import is_finite
from privfit.evaluation.roc import RocCurve

__all__ = ["best_threshold"]


def best_threshold(curve: RocCurve, *, cost: float = 1.0, prevalence: float = 0.5) -> float:
    """The threshold of a private ROC curve whose errors cost least.

    Parameters
    ----------
    curve : RocCurve
        A released curve, of scores that `predict` compares with the threshold.
    cost : float, default=1.0
        What a missed positive costs relative to a false alarm.
    prevalence : float, default=0.5
        The public fraction of positives where the threshold will be used. The default weighs both
        rates equally: with ``cost=1.0`` the threshold maximises tpr - fpr.

    Returns
    -------
    float
        The threshold: predict class 1 where the score is at least this. It is infinite if no
        prediction of class 1 is worth its false alarms.

    See Also
    --------
    roc_curve : Releases a curve.
    LogisticRegression.predict : Takes the threshold.

    Notes
    -----
    Released: nothing, since the curve is public already. Choose the threshold on other records than
    those of the fit if both must not share a budget.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import best_threshold, roc_curve
    >>> y = np.repeat([0, 1], 5000)
    >>> curve = roc_curve(y, np.linspace(0, 1, 10_000), epsilon=1.0)
    >>> bool(0.4 < best_threshold(curve) < 0.6)
    True
    """
    if not isinstance(curve, RocCurve):
        raise DeclarationTypeError(
            f"curve ({type(curve).__name__}) must be a RocCurve; pass what privfit.roc_curve "
            "returns"
        )
    if not is_finite(cost) or cost <= 0:
        raise DeclarationError(f"cost ({cost!r}) must be a positive number; pass cost=1.0")
    if not is_finite(prevalence) or not 0 < prevalence < 1:
        raise DeclarationError(
            f"prevalence ({prevalence!r}) must lie between 0 and 1; pass prevalence=0.5"
        )
    costs = (1 - prevalence) * curve.fpr + cost * prevalence * (1 - curve.tpr)
    return float(curve.thresholds[int(np.argmin(costs))])
