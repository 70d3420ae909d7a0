"""HTML: every text is escaped, wherever it stands."""

from __future__ import annotations

import pytest
from makers.markup import Page, assert_harmless

from privfit.base.markup import Markup, element, joined, shown, table

EVIL = """<script>alert("1")</script>'><img src=x onerror=alert(1)>&amp;"""


def test_texts_come_back_as_they_were_and_never_as_elements():
    made = element("p", EVIL, element("b", EVIL), class_=EVIL, title=EVIL)
    page = Page(made)
    assert [tag for tag, _ in page.elements] == ["p", "b"]
    assert page.texts == [EVIL, EVIL]
    assert page.elements[0][1] == {"class": EVIL, "title": EVIL}


def test_tables_escape_heads_cells_and_names():
    page = assert_harmless(table([EVIL, EVIL], [[EVIL, "1"]], stacked=True))
    assert page.texts == [EVIL, EVIL, EVIL, "1"]
    assert [marks.get("data-name") for tag, marks in page.elements if tag == "td"] == [None, EVIL]


def test_markup_is_not_escaped_twice_and_void_elements_do_not_end():
    assert joined(joined("<"), Markup("<br>")) == "&lt;<br>"
    assert element("img", alt="a") == '<img alt="a">'


@pytest.mark.parametrize(("text", "seen"), [
    ("a\u202eb", "a\\u202eb"), ("\x00\n", "\\x00\\n"), ("\udc80", "\\udc80"), ("é 東", "é 東")
])  # fmt: skip
def test_what_cannot_be_seen_is_shown_as_its_code(text, seen):
    assert shown(text) == seen
    assert seen in element("p", text)
    element("p", text, title=text).encode()  # as a file holds it
