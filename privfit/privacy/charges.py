"""What a grant takes from a ledger: charges, and their cost under the ledger's relation.

A charge is stored as it was requested, with its own relation. Under the ledger's relation it costs
the same, or as much as the steps that lead from one to the other (`budgets.after_steps`), or there
is no cost and it is refused. Files of the first version did not record the relation of a charge.
The release of a fit has it; a charge without one, of a fit that did not end, is of unknown relation
and counts as the worse of both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from privfit.base.errors import BudgetError
from privfit.base.json import write
from privfit.base.rounding import exact
from privfit.privacy.budgets import Budget, after_steps
from privfit.privacy.fields import ChargeFields, ReleaseFields
from privfit.privacy.neighbours import ADJACENCIES, Neighbours
from privfit.privacy.reservations import Reservation

__all__ = ["UNKNOWN", "Charge", "Entry", "Running", "charge_of", "relations_of", "total"]

UNKNOWN = "unknown"  # the relation of a charge that nobody wrote down

Entry: TypeAlias = tuple[str, str, Budget]  # group, name, what was charged
Sums: TypeAlias = tuple[Fraction, Fraction]  # of epsilons and of deltas
Look: TypeAlias = tuple[str, float, float]  # name, epsilon and delta: all that a release tells


@dataclass(frozen=True)
class Charge:
    """What a grant reserved, for which records, and under which relation.

    `adjacency` is None if it is the ledger's own, and 'unknown' if it was not recorded. Charges of
    budget files have a `reservation`, unless an earlier version wrote them.
    """

    group: str
    name: str
    budget: Budget
    adjacency: str | None = None
    reservation: Reservation | None = None

    def steps_to(self, neighbours: Neighbours) -> int | None:
        """How many steps lead to neighbours of a ledger; None where no number does.

        As many as the worse relation needs, if its own is unknown.
        """
        if self.adjacency is None:
            return 1
        possible = ADJACENCIES if self.adjacency == UNKNOWN else (self.adjacency,)
        steps = [Neighbours(one, neighbours.rows).steps_to(neighbours) for one in possible]
        return None if None in steps else max(filter(None, steps))

    def cost(self, neighbours: Neighbours | None) -> Budget:
        """What it takes from a ledger with these neighbours, if they are known.

        Raises
        ------
        BudgetError
            If no epsilon and delta cover it.
        """
        steps = 1 if neighbours is None else self.steps_to(neighbours)
        if steps == 1:
            return self.budget
        cost = None if steps is None else after_steps(self.budget, steps)
        if cost is None:
            raise BudgetError(self._refusal(steps))
        return cost

    def _refusal(self, steps: int | None) -> str:
        if steps is not None:
            return (
                f"{self.name!r} asks for {self.budget} under 'add_remove', which is no guarantee "
                "under 'replace', the relation of the ledger: (1 + e^epsilon) delta is 1 or more; "
                "ask for less"
            )
        theirs = "an unknown relation" if self.adjacency == UNKNOWN else "'replace'"
        remedy = (
            "if you know that it was under 'add_remove', open the file with adjacency='add_remove'"
            if self.adjacency == UNKNOWN
            else "pass adjacency='add_remove' to it, or charge it to a ledger of its own"
        )
        return (
            f"{self.name!r} is under {theirs}, which has no cost under 'add_remove', the relation "
            f"of the ledger: it may publish the number of records; {remedy}"
        )

    def fields(self, neighbours: Neighbours | None) -> ChargeFields:
        """This charge for JSON, with its cost if that differs from what was requested."""
        asked, cost = self.budget, self.cost(neighbours)
        shown: ChargeFields = {
            "group": self.group, "name": self.name, "epsilon": asked.epsilon, "delta": asked.delta,
            "adjacency": self.adjacency,
        }  # fmt: skip
        if cost != asked:  # for the reader; it is computed again
            shown["charged"] = {"epsilon": cost.epsilon, "delta": cost.delta}
        if self.reservation is not None:
            shown.update(self.reservation.fields())  # type: ignore[typeddict-item]
        return shown


def charge_of(entry: ChargeFields, relation: str | None) -> Charge:
    """The charge with these fields of JSON, under this relation.

    Raises
    ------
    KeyError, TypeError
        If a field is missing or wrong.
    """
    if relation not in (None, UNKNOWN, *ADJACENCIES):
        raise KeyError(relation)
    budget = Budget(entry["epsilon"], entry["delta"])
    hash(entry["group"])  # a TypeError for what is no name
    return Charge(entry["group"], entry["name"], budget, relation, Reservation.of(entry))


def decimals(budget: Budget) -> Sums:
    """Epsilon and delta as the decimals that are typed and shown."""
    return exact(budget.epsilon), exact(budget.delta)


def doubles(budget: Budget) -> Sums:
    """Epsilon and delta as the binary numbers that mechanisms take."""
    return Fraction(budget.epsilon), Fraction(budget.delta)


def total(entries: Iterable[Entry], read: Callable[[Budget], Sums] = decimals) -> Sums:
    """Exact sums: the common group counts in each of the others."""
    epsilons: dict[str, Fraction] = {"": Fraction(0)}
    deltas: dict[str, Fraction] = {"": Fraction(0)}
    for group, _, budget in entries:
        epsilon, delta = read(budget)
        epsilons[group] = epsilons.get(group, Fraction(0)) + epsilon
        deltas[group] = deltas.get(group, Fraction(0)) + delta
    common = epsilons.pop(""), deltas.pop("")
    return (
        common[0] + max(epsilons.values(), default=Fraction(0)),
        common[1] + max(deltas.values(), default=Fraction(0)),
    )


class Running:
    """Exact sums of entries by group, as decimals and as doubles, that grow with each entry."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        zero = Fraction(0)
        self._sums = {"": (zero, zero, zero, zero)}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Count one more entry."""
        self._sums[entry[0]] = self._with(entry)

    def _with(self, entry: Entry) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        group, _, budget = entry
        more = (*decimals(budget), *doubles(budget))
        known = self._sums.get(group)
        if known is None:
            return more
        return known[0] + more[0], known[1] + more[1], known[2] + more[2], known[3] + more[3]

    def exceeds(self, budget: Budget, more: Entry | None = None) -> bool:
        """Whether they add up to more than a budget, `more` included: as decimals and as doubles.

        Three times 0.1 is 0.3 as decimals. A part of a budget, and what Python's subtraction leaves
        of it, make up the whole as doubles, except for half a unit in its last place.
        """
        sums = self._sums if more is None else {**self._sums, more[0]: self._with(more)}
        common, groups = sums[""], [sums[group] for group in sums if group]
        whole = [part + max((one[i] for one in groups), default=Fraction(0))
                 for i, part in enumerate(common)]  # fmt: skip
        typed = zip(whole[:2], decimals(budget), strict=True)
        taken = zip(whole[2:], (budget.epsilon, budget.delta), strict=True)
        return any(part > limit for part, limit in typed) and any(
            part > Fraction(limit) + Fraction(math.ulp(limit)) / 2 for part, limit in taken
        )


def relations_of(
    entries: Sequence[ChargeFields], releases: Sequence[ReleaseFields]
) -> list[str | None]:
    """The relation of each charge of the first version: that of its release.

    Releases identify a charge by name and size alone. So all that look alike are known if each has
    a release and these agree, and unknown otherwise. A release may have been written twice.
    """
    unlike = {write(release, in_order=True): release for release in releases}.values()
    charged = Counter(map(_looks, entries))
    made = Counter(map(_looks, unlike))
    found: dict[Look, set[str]] = {}
    for release in unlike:
        found.setdefault(_looks(release), set()).add(release["adjacency"])
    known = {look: min(relations) for look, relations in found.items()
             if len(relations) == 1 and made[look] >= charged[look]}  # fmt: skip
    return [known.get(_looks(entry), UNKNOWN) for entry in entries]


def _looks(fields: ChargeFields | ReleaseFields) -> Look:
    return fields["name"], float(fields["epsilon"]), float(fields["delta"])
