"""A guarantee in words and odds: whose record it is about, and what an attacker gains.

An (epsilon, delta)-private release tells no more about which of two neighbouring tables it was made
from than this: with probability delta the answer itself, and otherwise an answer that is right with
probability e^epsilon / (1 + e^epsilon). Every such release is a randomised function of that answer
(Kairouz, Oh and Viswanath, *The composition theorem for differential privacy*, ICML 2015). So, in
whatever way a release is used,

- odds change by a factor of at most e^epsilon, except with probability delta;
- who has to say which of the two tables it was, each being as likely, is right with probability at
  most (e^epsilon + delta) / (1 + e^epsilon);
- a test that accuses wrongly with probability a is right about a member with probability at most
  min(e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a)).

All numbers are rounded up where they are shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from privfit.base.markup import Markup, element, joined, table
from privfit.privacy.grants import Release
from privfit.privacy.neighbours import Neighbours

__all__ = ["Odds", "guarantee_section", "percent_up", "rounded_up"]

PRIORS = (0.01, 0.1, 0.5)
FALSE_ALARMS = (0.01, 0.05)
LARGEST = 500.0  # of epsilon: above it, bounds are 100 %

ALIKE = "the release would have been almost as likely"
ROW_REPLACED = (
    "The guarantee is about the contents of one row of the table. It compares the table with every "
    "table in which that row is replaced by any other row that the declared domain allows: "
    f"{ALIKE}. The number of rows is public."
)
ROW_PRESENT = (
    "The guarantee is about the presence of one row of the table. It compares the table with every "
    f"table that has one row more or one row less: {ALIKE}. The number of rows is protected, too."
)
OWNERS = (
    "It protects every person who contributed one row. For a person who contributed k rows, it "
    "holds with k times epsilon and a larger delta."
)
WHAT_IS_NOT_HIDDEN = (
    "What holds for people in general is not hidden: if a study shows that smoking is harmful, it "
    "says so about smokers who took no part in it. The guarantee limits what is learned about a "
    "person because their row was used.",
    "Predictions for a record are computed from that record, so they are as sensitive as the "
    "record itself.",
    "Releases add up. Another release from the same records, by any program, adds its own "
    "epsilon and delta to these.",
)


@dataclass(frozen=True)
class Odds:
    """What a release of this epsilon and delta lets an attacker gain.

    >>> from privfit.report.guarantee import Odds
    >>> odds = Odds(1.0, 0.0)
    >>> round(odds.factor, 3), round(odds.success, 3), round(odds.power(0.05), 3)
    (2.718, 0.731, 0.136)
    """

    epsilon: float
    delta: float

    @property
    def factor(self) -> float:
        """By how much odds change at most, except with probability delta."""
        return math.exp(min(self.epsilon, LARGEST))

    @property
    def success(self) -> float:
        """The probability of telling two neighbours apart, at most."""
        return min(1.0, (self.factor + self.delta) / (1.0 + self.factor))

    def power(self, false_alarms: float) -> float:
        """The probability that a test of membership is right about a member, at most."""
        up = self.factor * false_alarms + self.delta
        down = 1.0 - (1.0 - self.delta - false_alarms) / self.factor
        return max(0.0, min(1.0, up, down))

    def posterior(self, prior: float) -> float:
        """The belief in a statement about a row afterwards, except with probability delta."""
        odds = self.factor * prior / (1.0 - prior)
        return odds / (1.0 + odds)


def guarantee_section(release: Release) -> list[Markup]:
    """Whose record, which relation, epsilon, delta, and what an attacker gains."""
    odds, neighbours = Odds(release.epsilon, release.delta), Neighbours.of(release.adjacency)
    parts = [
        element("p", ROW_REPLACED if neighbours.replaces else ROW_PRESENT),
        element("p", OWNERS),
        element("p", _in_words(release, odds)),
        table(
            ("attack", "without the release", "with the release, at most"),
            _attacks(odds),
        ),
    ]
    if release.delta:
        parts.append(element("p", _of_delta(release.delta)))
    parts.append(element("p", "What the guarantee does not say:"))
    parts.append(element("ul", *(element("li", one) for one in WHAT_IS_NOT_HIDDEN)))
    return parts


def _in_words(release: Release, odds: Odds) -> Markup:
    factor = rounded_up(odds.factor, 4)
    unless = f", except with probability delta = {release.delta:.3g}" if release.delta else ""
    return joined(
        element("b", f"Epsilon is {release.epsilon:.6g}, delta is {release.delta:.3g}."),
        f" Whatever an attacker knows beforehand, the release multiplies or divides the odds of "
        f"any statement about one row by at most e^epsilon = {factor}{unless}. This holds for "
        "any additional knowledge and any computing power, now and in the future.",
    )


def _of_delta(delta: float) -> str:
    return (
        f"The first three lines include the cases of probability delta = {delta:.3g} in which "
        "nothing is promised; the lines on belief hold in all others. Delta should be far below "
        "one divided by the number of rows."
    )


def _attacks(odds: Odds) -> list[tuple[str, str, str]]:
    rows = [("tell which of two equally likely tables was used", "50 %",
             percent_up(odds.success))]  # fmt: skip
    rows += [
        (f"recognise a member, at a false alarm rate of {100 * rate:g} %",
         f"{100 * rate:g} %", percent_up(odds.power(rate)))
        for rate in FALSE_ALARMS
    ]  # fmt: skip
    rows += [
        (f"believe a statement about one row, held likely at {100 * prior:g} % before",
         f"{100 * prior:g} %", percent_up(odds.posterior(prior)))
        for prior in PRIORS
    ]  # fmt: skip
    return rows


def percent_up(share: float) -> str:
    """A probability, rounded up to a tenth of a percent."""
    tenths = math.ceil(Fraction(share) * 1000)
    return f"{min(tenths, 1000) / 10:.1f} %"


def rounded_up(number: float, digits: int) -> str:
    """A number with so many digits, rounded up."""
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(number))
    return f"{up:.{digits}g}"
