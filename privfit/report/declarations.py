"""What was declared of records and what was bought, for a report."""

from __future__ import annotations

from typing import Any

from privfit.base.markup import Markup, element, table
from privfit.domains import Domain
from privfit.domains.described import described, kind_of
from privfit.domains.schema import BOOLEAN
from privfit.privacy.cards import settings_table
from privfit.privacy.ledger import Release
from privfit.privacy.purchases import Purchase

__all__ = ["bought_before", "domain_parts"]

WHERE = (
    "The influence of one record is bounded by what is declared of it; records outside are "
    "clipped or counted as other. What was given to the fit comes from documentation; what was "
    "bought before has a price of its own; what the fit bought was paid for from its budget."
)
GIVEN = "given to the fit"


def domain_parts(model: Any, release: Release) -> list[Markup]:
    """The columns with where they come from; for records without names, the domain."""
    domain = getattr(model, "domain_", None)
    classes = getattr(model, "classes_", None)
    parts = [element("p", WHERE)]
    columns = domain.declared_columns if isinstance(domain, Domain) else {}
    if columns:
        asked = getattr(model, "domain", None)
        rows = [(name, kind_of(column), described(column), _origin(asked, name, column, release))
                for name, column in columns.items()]  # fmt: skip
        parts.append(table(("column", "kind", "what it may hold", "where it comes from"), rows,
                           texts=4, stacked=True))  # fmt: skip
    elif release.domain:
        parts.append(element("p", f"Records: {release.domain}."))
    if classes is not None:
        declared = "declared" if getattr(model, "classes", None) is not None else (
            "read from the labels, which no budget paid for")  # fmt: skip
        listed = ", ".join(str(label) for label in classes.tolist())
        parts.append(element("p", f"Classes: {listed} ({declared})."))
    purchase = bought_before(model)
    if purchase is not None:
        parts.append(_price(purchase))
    bought = release.settings.get("blanks")
    if bought:
        parts.append(element("p", "What was bought:"))
        parts.append(settings_table(bought if isinstance(bought, dict) else {"blanks": bought}))
    return parts if len(parts) > 1 else []


def bought_before(model: Any) -> Purchase | None:
    """How the schema of a model was bought before its fit, if it was."""
    return Purchase.of(getattr(getattr(model, "domain", None), "bought", None))


def _price(purchase: Purchase) -> Markup:
    """What a schema cost that was bought before the fit."""
    known = f" (release {purchase.release})" if purchase.release else ""
    return element(
        "p", f"The schema was bought before the fit: {', '.join(purchase.columns)}, for "
        f"epsilon {purchase.epsilon:.6g}, delta {purchase.delta:.3g} under "
        f"{purchase.adjacency}{known}. If it was bought from the same "
        "records, its price adds to that of the model.",
    )  # fmt: skip


def _origin(asked: Any, name: str, column: Any, release: Release) -> str:
    """Whether a column was declared, bought, or declared and cut, for a price or by a rule."""
    if isinstance(asked, str):  # domain="learn"
        return "declared type" if column == BOOLEAN else "bought"
    given = asked.declared_columns.get(name) if isinstance(asked, Domain) else None
    mark = getattr(asked, "bought", None)
    if mark is not None and name in mark["columns"]:
        return "bought before the fit"
    if given is None or given == column:
        return GIVEN
    if given.is_blank:
        return "bought"
    if given.holds_numbers and given.filled() == column:
        return GIVEN
    bought = "columns" in release.parameters and column.ranks is not None
    return "range declared, cuts bought" if bought else "declared, cut by a public rule"
