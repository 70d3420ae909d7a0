"""HTML that is escaped where it is made: no text becomes markup anywhere else.

`element` escapes each text that it is given, and `Markup` is what it returns; so a category that is
called ``<script>`` is shown and never run, whoever put the parts together. Characters that are not
printable, such as marks that turn the direction of a line, are shown as their codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Markup", "element", "joined", "shown", "table"]

VOID = {"img", "meta", "source"}  # elements without an end


class Markup(str):
    """A text that is HTML already: what `element` and `joined` return."""

    __slots__ = ()


def shown(text: str) -> str:
    r"""A text whose characters can all be seen.

    >>> from privfit.base.markup import shown
    >>> shown("a\u202eb")
    'a\\u202eb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def joined(*parts: str) -> Markup:
    """Parts one after the other; texts are escaped, and markup stays as it is.

    >>> from privfit.base.markup import element, joined
    >>> joined("1 < 2, ", element("b", "R&D"))
    '1 &lt; 2, <b>R&amp;D</b>'
    """
    return Markup("".join(one if isinstance(one, Markup) else escape(shown(one)) for one in parts))


def element(tag: str, /, *content: str, **attributes: str) -> Markup:
    """An element with this content; an underscore behind an attribute's name is dropped.

    >>> from privfit.base.markup import element
    >>> element("p", "a < b", class_='"x"')
    '<p class="&quot;x&quot;">a &lt; b</p>'
    """
    given = (f' {name.rstrip("_")}="{escape(shown(value))}"' for name, value in attributes.items())
    start = f"<{tag}{''.join(given)}>"
    return Markup(start if tag in VOID else f"{start}{joined(*content)}</{tag}>")


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1, stacked: bool = False
) -> Markup:
    """A table; all but the first `texts` columns are numbers, aligned at the right.

    A style may stack the cells of a row on narrow screens if each has the name of its column.

    >>> from privfit.base.markup import table
    >>> table(["draws", "count"], [["gaussian", "32"]]).count('class="number"')
    2
    """
    names = list(head) if stacked else []
    lines = [element("tr", *_cells("th", head, texts, []))]
    lines += [element("tr", *_cells("td", row, texts, names)) for row in rows]
    inner = element("table", *lines, class_="stacked") if stacked else element("table", *lines)
    return element("div", inner, class_="table")


def _cells(tag: str, row: Sequence[str], texts: int, names: Sequence[str]) -> list[Markup]:
    cells = []
    for place, cell in enumerate(row):
        marks = {} if place < texts else {"class": "number"}
        if place and place < len(names):
            marks["data-name"] = names[place]
        cells.append(element(tag, cell, **marks))
    return cells
