"""How to install an extra of privfit from where this privfit came from.

An installer that was not given a name to look up in an index, but a folder, an archive or a
repository, leaves a note of it (PEP 610). A hint that named the index instead would install
nothing, or somebody else's package.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from privfit.base.json import parse

__all__ = ["install"]


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "{_source(_origin(), extra)}"'


def _origin() -> dict[str, Any]:
    """The installer's note of where privfit came from; empty if that was an index."""
    from importlib import metadata  # which takes a while, and is needed for a hint alone

    try:
        return parse(metadata.distribution("privfit").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}


def _source(origin: dict[str, Any], extra: str) -> str:
    url = origin.get("url")
    if not isinstance(url, str):
        return f"privfit[{extra}]"
    if "dir_info" in origin and url.startswith("file:"):
        return f"{unquote(urlsplit(url).path)}[{extra}]"
    system = origin.get("vcs_info", {}).get("vcs")
    return f"privfit[{extra}] @ {system}+{url}" if system else f"privfit[{extra}] @ {url}"
