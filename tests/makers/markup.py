"""What a browser would make of a text of HTML: its elements, in order, and what they ask for."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"img", "meta", "source"}


class Page(HTMLParser):
    """The elements of a page; refuses ends without starts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"{self.open} do not end"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is read, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def asks_for(self) -> list[str]:
        """Addresses of whatever a browser would load or follow."""
        wanted = ("src", "srcset", "href", "action", "data", "background", "poster")
        return [value or "" for _, marks in self.elements for name, value in marks.items()
                if name in wanted]  # fmt: skip


def assert_harmless(text: str) -> Page:
    """Nothing is run, loaded or followed but pictures that the page itself holds."""
    page = Page(text)
    assert not page.tags & {"script", "iframe", "object", "embed", "link", "form", "base", "svg"}
    assert all(one.startswith("data:image/png;base64,") for one in page.asks_for())
    names = {name for _, marks in page.elements for name in marks}
    assert not {name for name in names if name.startswith("on")}
    return page
