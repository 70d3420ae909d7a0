"""Blanks that a fit buys from its own budget, before its solver runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from privfit.base.errors import DeclarationError
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
    """What a fit buys, from which records, and what that leaves for its solver.

    With delta > 0, all draws of the solver must be Gaussian: they are planned together with what is
    bought, before the first draw, and the sizes of Gaussian draws may be chosen later
    (`privacy.grants`). A pure budget simply adds up, for every solver.
    """

    schema: Any
    sums: Sums[BlankRows]
    plan: BlankPlan
    rest: Budget

    @classmethod
    def of(cls, schema: Any, X: Any, terms: Terms, n_threads: int | None) -> Purchase:
        """Read the blank columns and plan; nothing is charged."""
        terms.refuse_infinity()
        sums = BlankRows.sums(X, schema, n_threads)
        plan = BlankPlan.within(schema, terms.budget, terms.neighbours, terms.size(sums))
        return cls(schema, sums, plan, plan.rest(terms.budget))

    @property
    def stand_in(self) -> Any:
        """A schema without blanks, by which records and settings are checked before the charge."""
        return self.plan.stand_in(self.schema)

    def terms(self, terms: Terms) -> Terms:
        """The terms of the solver: the budget that is left."""
        return replace(terms, epsilon=self.rest.epsilon, delta=self.rest.delta)

    def check(self, name: str, settings: Settings) -> None:
        """Refuse a solver whose draws cannot be planned beside what is bought, or a publication."""
        if getattr(settings, "paper", False):
            raise DeclarationError(
                f"solver ({name!r}) must not have paper=True with blanks, which no paper has; "
                "pass domain=learn_schema(X, epsilon, delta, columns=schema)"
            )
        if self.rest.delta and not settings.is_gaussian:
            raise DeclarationError(
                f"solver ({name!r}) must draw Gaussian noise alone to share a budget with blanks; "
                "pass solver='gradient', or delta=0.0, or domain=learn_schema(X, epsilon, delta, "
                "columns=schema)"
            )

    def buy(self, paid: Paid) -> Any:
        """The schema without blanks."""
        whole = paid.budget
        later = [Event("gaussian", self.plan.mu_left(whole))] if whole.delta else []
        paid.plan(*self.plan.events, *later)
        return self.plan.buy(self.schema, self.sums, paid.release)

    def account(self, paid: Paid) -> Paid:
        """What is left, for the runs of the solver; the whole is closed by its own account."""
        return _Rest(self.terms(paid.terms), paid, self.rest)


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
