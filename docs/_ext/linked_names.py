"""Link public names that are shown as code, such as `KMeans`, and pages that docstrings name.

A docstring names a page by its file, such as docs/linear.md, for readers of the code.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

import privfit

SHOWN = re.compile(r"(?:privfit\.)?(\w+)(?:\(\))?")
PAGE = re.compile(r"`{0,2}docs/([\w/]+)\.md`{0,2}")


def link(app: Any, doctree: nodes.document) -> None:
    """Make a reference of each literal that is a public name, except within links and titles."""
    own_page = app.env.docname.rpartition("/")[2]
    for literal in list(doctree.findall(nodes.literal)):
        found = SHOWN.fullmatch(literal.astext())
        if found is None or found[1] not in privfit.__all__ or is_within_link(literal):
            continue
        name = f"privfit.{found[1]}"
        if own_page == name:
            continue
        reference = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=True
        )
        literal.replace_self(reference)
        reference += literal


def link_pages(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Make a reference of each page that a docstring names."""
    lines[:] = [PAGE.sub(r":doc:`/\1`", line) for line in lines]


def is_within_link(node: nodes.Node) -> bool:
    """Whether a node is part of a link already, or of a heading."""
    while node is not None:
        if isinstance(node, nodes.reference | nodes.title | addnodes.pending_xref):
            return True
        node = node.parent
    return False


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", link)
    app.connect("autodoc-process-docstring", link_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
