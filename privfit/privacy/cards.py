"""What a notebook shows of a release and of a ledger: all of it is public already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from privfit.base.json import write
from privfit.base.markup import Markup, element, table
from privfit.privacy.neighbours import Neighbours

if TYPE_CHECKING:
    from privfit.privacy.grants import Release
    from privfit.privacy.ledger import Ledger

__all__ = ["SEEDED", "draws_table", "ledger_card", "release_card", "settings_table",
           "values_table"]  # fmt: skip

SEEDED = "this was drawn with a seed: anyone who knows it can subtract the noise"
LONGEST = 120  # characters of a setting that are shown


def release_card(release: Release) -> Markup:
    """The guarantee of a release, its draws, and in folds its settings and what it holds."""
    head = (
        f"Release {release.name!r}: epsilon {release.epsilon:.6g}, delta {release.delta:.6g}, "
        f"for {Neighbours.of(release.adjacency).hidden}"
    )
    parts = [element("p", element("b", head))]
    if release.seeded:
        parts.append(element("p", f"Not private: {SEEDED}."))
    parts.append(draws_table(release))
    for title, rows in (("settings", settings_table(release.settings)),
                        ("released values", values_table(release.parameters))):  # fmt: skip
        parts.append(element("details", element("summary", title), rows))
    return element("div", *parts, class_="privfit-release")


def ledger_card(ledger: Ledger) -> Markup:
    """What each grant of a ledger cost, what was spent, and what is left."""
    rows = [(name, group or "all", f"{cost.epsilon:.6g}", f"{cost.delta:.6g}")
            for group, name, cost in ledger.entries]  # fmt: skip
    sums = (("spent", ledger.spent), ("left", ledger.remaining), ("budget", ledger.budget))
    rows += [(name, "all", f"{one.epsilon:.6g}", f"{one.delta:.6g}") for name, one in sums]
    relation = ledger.adjacency or "no relation declared yet"
    head = element("p", element("b", f"Ledger, {relation}"))
    body = table(("grant", "records", "epsilon", "delta"), rows, texts=2)
    return element("div", head, body, class_="privfit-ledger")


def draws_table(release: Release) -> Markup:
    """The events of a release."""
    return table(
        ("draws", "count", "size of each", "delta of each"),
        [(one.kind, f"{one.count:,}", f"{one.parameter:.6g}", f"{one.delta:.6g}")
         for one in release.events],
    )  # fmt: skip


def settings_table(settings: Mapping[str, object]) -> Markup:
    """Settings as they were used; long ones are cut."""
    return table(("setting", "value"),
                 [(str(name), _short(value)) for name, value in settings.items()],
                 texts=2)  # fmt: skip


def values_table(parameters: Mapping[str, object]) -> Markup:
    """What released values there are, by name and shape."""
    return table(("released value", "what it is"),
                 [(str(name), _shape(value)) for name, value in parameters.items()],
                 texts=2)  # fmt: skip


def _short(value: object) -> str:
    if value is None:
        return "chosen by the method"
    text = value if isinstance(value, str) else write(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _shape(value: object) -> str:
    """A value in a few words: a number, a text, or how many there are."""
    if isinstance(value, Mapping):
        return f"{len(value)} entries: {', '.join(map(str, list(value)[:6]))}"
    if isinstance(value, str | bool | int | float | np.generic) or value is None:
        return _short(value.item() if isinstance(value, np.generic) else value)
    sizes = np.asarray(value, dtype=object).shape  # rows of different lengths are one each
    return f"{' x '.join(f'{size:,}' for size in sizes)} values"
