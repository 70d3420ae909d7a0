"""The one-run audit: many canaries at once, each included by a coin flip, and guesses which were.

Steinke, Nasr, Jagielski: *Privacy auditing with one (1) training run*, NeurIPS 2023. An attacker
sees what a mechanism released and guesses for r of m canaries whether they were included. If the
mechanism is (epsilon, delta)-DP, then with f(v) = P[Bin(r, e^epsilon / (1 + e^epsilon)) >= v]

    P[right >= v] <= f(v) + 2 m delta max over 1 <= i <= v of (f(v - i) - f(v)) / i.

So a number of right guesses that is unlikely by this bound refutes epsilon. An (epsilon, delta)
guarantee implies that of every larger epsilon: all below the largest refuted one are refuted.

**Neighbours.** Under add_remove a canary is in the table or not. Under replace it is the canary or
a fixed other record. The coins must be independent, and r fixed before the run. Several runs with
their own canaries and coins are one mechanism on all their records together, where each record
affects one run; the bound holds with the sums of m, r and right guesses.

**Power** is that of the attack. A perfect attack on a mechanism with twice the claimed epsilon, at
epsilon 1, is found with probability 0.9 by 60, 137 and 258 guesses at confidence 0.95, 0.999 and 1
- 1e-6 (`guesses_needed`), and by any number from 69, 142 and 268 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite, is_whole

__all__ = ["OneRunAudit", "audit_guesses", "guesses_needed", "one_run"]


LARGEST = 50.0  # no bound above this is looked for
HALVINGS = 45


@dataclass(frozen=True)
class OneRunAudit:
    """A certified lower bound on epsilon from guesses about canaries.

    Parameters
    ----------
    lower_bound : float
        With the stated confidence no (epsilon, delta) guarantee with a smaller epsilon is true.
    right, guesses, canaries : int
        Number of right guesses, of guesses, and of canaries, over all runs.
    confidence : float
        The confidence of the bound.
    delta : float
        The delta of the guarantee.

    See Also
    --------
    one_run, audit_guesses : Return it.

    Examples
    --------
    >>> from privfit.audit import audit_guesses
    >>> audit_guesses(right=50, guesses=100, canaries=100).lower_bound
    0.0
    """

    lower_bound: float
    right: int
    guesses: int
    canaries: int
    confidence: float
    delta: float

    def passes(self, epsilon: float) -> bool:
        """Whether no evidence against (epsilon, delta) was found.

        Parameters
        ----------
        epsilon : float
            The claimed epsilon.

        Returns
        -------
        bool
            False if the claim is refuted with the stated confidence.
        """
        return self.lower_bound <= epsilon


def audit_guesses(
    right: int, guesses: int, canaries: int, *, delta: float = 0.0, confidence: float = 0.999
) -> OneRunAudit:
    """Bound epsilon from below by the number of right guesses.

    Parameters
    ----------
    right, guesses : int
        Number of right guesses, and of guesses, which must have been fixed in advance.
    canaries : int
        Number of canaries that were included by independent coin flips, guessed or not.
    delta : float, default=0.0
        The delta of the guarantee.
    confidence : float, default=0.999
        The confidence of the bound.

    Returns
    -------
    OneRunAudit
        The certified lower bound.

    See Also
    --------
    one_run : Runs a mechanism, and guesses.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023.

    Examples
    --------
    >>> from privfit.audit import audit_guesses
    >>> found = audit_guesses(right=135, guesses=145, canaries=145)
    >>> found.passes(1.0), found.passes(2.0)
    (False, True)
    """
    _check_counts(right, guesses, canaries)
    _check_share("confidence", confidence, 0.999, least=math.ulp(0.0))
    _check_share("delta", delta, 0.0, least=0.0)

    def refuted(epsilon: float) -> bool:
        return _chance(right, guesses, canaries, epsilon, delta) <= 1 - confidence

    low, high = 0.0, LARGEST
    if refuted(LARGEST):
        low = LARGEST
    elif refuted(0.0):
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if refuted(middle) else (low, middle)
    return OneRunAudit(low, int(right), int(guesses), int(canaries), confidence, delta)


def _chance(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The bound on P[right guesses or more] under (epsilon, delta)-DP."""
    p = float(scipy.special.expit(epsilon))
    if right == 0 or delta == 0:
        return float(scipy.stats.binom.sf(right - 1, guesses, p))
    f = scipy.stats.binom.sf(np.arange(-1, right), guesses, p)  # f(0), ..., f(right)
    gains = (f[-2::-1] - f[-1]) / np.arange(1, right + 1)
    return float(f[-1] + 2 * canaries * delta * gains.max())


def guesses_needed(epsilon: float, factor: float, confidence: float, power: float = 0.9) -> int:
    """The smallest number of guesses by which a perfect attack shows a factor in epsilon.

    A mechanism that is (factor epsilon)-DP and no better, where the attack guesses right as often
    as that allows, is then found not to be epsilon-DP with probability `power`. The power is not
    monotone in the number of guesses: slightly more are needed until all larger numbers suffice.

    Parameters
    ----------
    epsilon : float
        The claimed epsilon.
    factor : float
        By how much the claim is exceeded.
    confidence : float
        Confidence of the audit.
    power : float, default=0.9
        Probability that the audit refutes the claim.

    Returns
    -------
    int
        The number of guesses.

    See Also
    --------
    one_run : The audit.

    Examples
    --------
    >>> from privfit.audit import guesses_needed
    >>> guesses_needed(1.0, 2.0, confidence=0.999)
    137
    """
    claimed, true = scipy.special.expit([epsilon, factor * epsilon]).tolist()
    m = 1
    while True:
        unlikely = scipy.stats.binom.sf(np.arange(-1, m), m, claimed) <= 1 - confidence
        # The least number of right guesses that refutes the claim, if all right ones do.
        if unlikely[-1] and scipy.stats.binom.sf(unlikely.argmax() - 1, m, true) >= power:
            return m
        m += 1


def one_run(
    run: Callable[[NDArray[np.bool_], Any], Any],
    canaries: int,
    guesses: int,
    *,
    runs: int = 1,
    delta: float = 0.0,
    confidence: float = 0.999,
    rng: Any = None,
) -> OneRunAudit:
    """Run a mechanism once, or a few times, with randomly included canaries, and guess which.

    Parameters
    ----------
    run : callable (included, rng) -> array of shape (canaries,)
        Builds a table with the canaries that are `included`, a bool vector (under replace the
        others are replaced by fixed other records), releases, and returns a number for each canary:
        the larger, the more likely it was included. It may use only what was released.
    canaries : int
        Number of canaries m. Give each its own direction: a rare category, a corner of the box.
    guesses : int
        Number of guesses r in each run: the r / 2 canaries with the largest numbers are guessed to
        be in, the r / 2 with the smallest to be out. It must be even, and at most m.
    runs : int, default=1
        Number of runs, each with fresh coins. Small models carry few canaries.
    delta : float, default=0.0
        The delta of the guarantee.
    confidence : float, default=0.999
        Confidence of the bound: 0.999 for a report, 1 - 1e-6 for a test.
    rng : None, int or numpy.random.Generator, default=None
        Source of the coins; it is also passed to `run`.

    Returns
    -------
    OneRunAudit
        The certified lower bound.

    See Also
    --------
    audit_runs : Many runs on one pair of inputs.
    guesses_needed : The number of guesses to make.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023.

    Examples
    --------
    A histogram that is claimed to be 1-DP if a record is added or removed, with half the noise:

    >>> import numpy as np
    >>> from privfit.audit import one_run
    >>> def histogram(included, rng):
    ...     counts = 5 + included  # a category each
    ...     return counts + rng.laplace(scale=0.5, size=len(counts))
    >>> found = one_run(histogram, canaries=2000, guesses=400, rng=0)
    >>> found.passes(1.0), found.passes(2.0)
    (False, True)
    """
    _check_plan(canaries, guesses, runs)
    coins = np.random.default_rng(rng)
    right = 0
    for _ in range(runs):
        included = coins.random(canaries) < 0.5
        seems = np.asarray(run(included.copy(), coins), dtype=np.float64)
        if seems.shape != (canaries,):
            raise DeclarationError(
                f"run must return a number for each canary, not shape {seems.shape}; pass a run "
                f"that returns ({canaries},)"
            )
        right += _right_guesses(included, seems, guesses // 2, coins)
    return audit_guesses(right, runs * guesses, runs * canaries, delta=delta, confidence=confidence)


def _right_guesses(
    included: NDArray[np.bool_], seems: NDArray[np.float64], half: int, coins: np.random.Generator
) -> int:
    """Guess that the canaries of the largest numbers are in, and those of the least out."""
    # Ties are broken by coins, or the position of a canary would tell.
    order = np.lexsort((coins.random(len(seems)), seems))
    return int(included[order[len(order) - half :]].sum() + (~included[order[:half]]).sum())


# ------------------------------------------------------------------------------------------ checks


def _check_counts(right: Any, guesses: Any, canaries: Any) -> None:
    for name, value, least in (("right", right, 0), ("guesses", guesses, 1),
                               ("canaries", canaries, 1)):  # fmt: skip
        if not is_whole(value) or value < least:
            raise DeclarationError(
                f"{name} ({value!r}) must be a whole number of at least {least}; pass one"
            )
    if not right <= guesses <= canaries:
        raise DeclarationError(
            f"right ({right}), guesses ({guesses}) and canaries ({canaries}) must not decrease in "
            f"this order; pass at most one guess for each canary"
        )


def _check_plan(canaries: Any, guesses: Any, runs: Any) -> None:
    _check_counts(0, guesses, canaries)
    if guesses % 2:
        raise DeclarationError(
            f"guesses ({guesses}) must be even: half in, half out; pass {guesses + 1}, or fewer"
        )
    if not is_whole(runs) or runs < 1:
        raise DeclarationError(f"runs ({runs!r}) must be a positive whole number; pass runs=1")


def _check_share(name: str, value: Any, usual: float, least: float) -> None:
    if not is_finite(value) or not least <= value < 1:
        raise DeclarationError(
            f"{name} ({value!r}) must lie between 0 and 1, and below 1; pass {name}={usual}"
        )
