"""Blanks that a fit buys from its own budget, before anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.base.json import plain
from privfit.privacy.accounting import Event
from privfit.privacy.budgets import Budget
from privfit.privacy.grants import Part
from privfit.privacy.ledger import Release
from privfit.records.blanks import BlankRows
from privfit.records.sums import Sums
from privfit.runs.blanks import BlankPlan
from privfit.runs.payment import Paid, Terms
from privfit.runs.settings import Settings

__all__ = ["Purchase"]


@dataclass(frozen=True, eq=False, repr=False)
class Purchase:
    """What a fit buys, from which records, and what that leaves for everything else.

    Everything is planned before the first draw, in one of three ways:

    - a pure budget simply adds up, for every solver;
    - of a solver that draws Gaussian noise alone the sizes may be chosen later (`privacy.grants`):
      what is bought is composed tightly with one Gaussian release, which the fit then divides;
    - another solver plans when it sees the columns that were bought. It gets an (epsilon, delta) of
      its own, or an epsilon alone if it leaves the delta unused, and all that it draws, and the
      calibration after it, is one release of that size to the plan (`Grant.enclose`).
    """

    schema: Any
    sums: Sums[BlankRows]
    plan: BlankPlan
    rest: Budget
    is_enclosed: bool = False

    @classmethod
    def of(
        cls, schema: Any, X: Any, terms: Terms, n_threads: int | None, settings: Settings
    ) -> Purchase:
        """Read the blank columns and plan, beside a solver; nothing is charged."""
        terms.refuse_infinity()
        sums, budget = BlankRows.sums(X, schema, n_threads), terms.budget
        plan = BlankPlan.within(schema, budget, terms.neighbours, terms.size(sums))
        return cls(schema, sums, plan, *_rest(plan, budget, settings))

    def beside(self, settings: Settings, budget: Budget) -> Purchase:
        """The same, beside a solver that was chosen later; `budget` is that of the whole fit."""
        rest, is_enclosed = _rest(self.plan, budget, settings)
        return replace(self, rest=rest, is_enclosed=is_enclosed)

    @property
    def stand_in(self) -> Any:
        """A schema without blanks, by which records and settings are checked before the charge."""
        return self.plan.stand_in(self.schema)

    def terms(self, terms: Terms) -> Terms:
        """The terms of the solver: the budget that is left."""
        return replace(terms, epsilon=self.rest.epsilon, delta=self.rest.delta)

    def check(self, name: str, settings: Settings) -> None:
        """Refuse a publication, and a budget that leaves nothing for the solver."""
        if getattr(settings, "paper", False):
            raise DeclarationError(
                f"solver ({name!r}) must not have paper=True with blanks, which no paper has; "
                "pass domain=learn_schema(X, epsilon, delta, columns=schema)"
            )
        if self.is_enclosed and not self.rest.epsilon:
            raise DeclarationError(
                f"solver ({name!r}) must draw Gaussian noise alone to share so small or so large a "
                "budget with blanks; pass solver='gradient', or delta=0.0, or "
                "domain=learn_schema(X, epsilon, delta, columns=schema)"
            )

    def buy(self, paid: Paid) -> Any:
        """The schema without blanks."""
        paid.plan(*self.plan.events, *self._later(paid.budget))
        return self.plan.buy(self.schema, self.sums, paid.release)

    def _later(self, whole: Budget) -> list[Event]:
        """What the plan says of everything that is drawn later."""
        if self.is_enclosed:
            return [Event("approximate", self.rest.epsilon, 1, self.rest.delta)]
        return [Event("gaussian", self.plan.mu_left(whole))] if whole.delta else []

    def account(self, paid: Paid) -> Paid:
        """What is left, for everything else; the whole is closed by its own account."""
        if self.is_enclosed:
            paid.grant.enclose(self.rest)
        return _Rest(self.terms(paid.terms), paid, self.rest)

    def described(self, paid: Paid) -> dict[str, Any]:
        """What a release records of this purchase, and of draws that are one release to it."""
        said = self.plan.settings
        if self.is_enclosed:
            said["rest"] = {"epsilon": self.rest.epsilon, "delta": self.rest.delta,
                            "events": [plain(event) for event in paid.grant.enclosed]}  # fmt: skip
        return said


def _rest(plan: BlankPlan, budget: Budget, settings: Settings) -> tuple[Budget, bool]:
    """What a plan leaves to a solver, and whether that is a part of its own."""
    if not budget.delta or settings.is_gaussian:
        return plan.rest(budget), False
    return plan.enclosed(budget, settings.leaves_delta), True


class _Rest(Paid):
    """The account of a run that has a part of a grant; if it fails, the whole is closed."""

    def __init__(self, terms: Terms, paid: Paid, rest: Budget) -> None:
        super().__init__(terms, paid.source, Part(paid.grant, rest))
        self._paid = paid

    @property
    def charged(self) -> Budget:
        return self._paid.charged

    def close(
        self,
        domain: object = "",
        settings: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Release:
        return self._paid.close(domain, settings, parameters)
