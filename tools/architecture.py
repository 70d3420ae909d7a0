"""Draw the rooms and write the walk of one fit, from the code itself.

python tools/architecture.py            # write docs/figures/rooms.svg and docs/architecture.md
python tools/architecture.py --check    # say whether they are as the code is; exit 1 if not
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURE, PAGE = ROOT / "docs" / "figures" / "rooms.svg", ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- the walk: begin -->", "<!-- the walk: end -->"

# --------------------------------------------------------------------------------------- the rooms


def layers() -> list[list[str]]:
    """The rooms from the top to the bottom, as import-linter's contract has them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [listed] = re.findall(r"^layers = \[\n(.*?)^\]", text, re.M | re.S)
    return [line.strip(' ",').split(" | ") for line in listed.splitlines()]


def modules(room: str) -> list[str]:
    """The modules and folders of a room that a reader may look for."""
    folder = ROOT / "privfit" / room
    files = [*folder.glob("*.py"), *folder.glob("*.pyx")]
    folders = [path.parent for path in folder.glob("[!_]*/__init__.py")]
    return sorted({path.stem for path in files + folders} - {"__init__", "__main__"})


def imports(room: str) -> set[str]:
    """The rooms that a room imports, wherever it does so."""
    found = set()
    for path in (ROOT / "privfit" / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                inner = [alias.name for alias in node.names] if len(parts) == 1 else parts[1:2]
                found |= set(inner) if parts[0] == "privfit" else set()
    return found - {room}


def essential(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without arrows that longer ways already draw."""

    def below(room: str) -> set[str]:
        return set().union(graph[room], *(below(other) for other in graph[room]))

    return {
        room: others - set().union(*(below(other) for other in others))
        for room, others in graph.items()
    }


# ------------------------------------------------------------------------------------- the picture

WIDTH, GAP, LINE, HEAD = 980, 26, 15, 24
LETTERS = 7.2  # points of a letter of the small text


def picture() -> str:
    """The rooms as an SVG: a row for each layer, an arrow for each import that none implies."""
    rows = layers()
    rooms = {room for row in rows for room in row}
    rank = {room: i for i, row in enumerate(rows) for room in row}
    graph = {room: {o for o in imports(room) & rooms if rank[o] > rank[room]} for room in rooms}
    boxes: dict[str, tuple[float, float, float, float]] = {}
    parts, y = [], 10.0
    for row in rows:
        width = (WIDTH - 20 - GAP * (len(row) - 1)) / len(row)
        wrapped = {room: _wrapped(modules(room), int((width - 20) / LETTERS)) for room in row}
        height = HEAD + LINE * max(map(len, wrapped.values())) + 12
        for i, room in enumerate(row):
            x = 10 + i * (width + GAP)
            boxes[room] = x, y, width, height
            parts.append(_box(room, wrapped[room], *boxes[room]))
        y += height + GAP
    drawn = [(room, other) for room, others in essential(graph).items() for other in others]
    drawn.sort(key=lambda pair: (rank[pair[0]], pair))
    far = [pair for pair in drawn if rank[pair[1]] - rank[pair[0]] > 1]
    arrows = [
        _arrow(
            boxes[upper],
            boxes[lower],
            1 + far.index((upper, lower)) if (upper, lower) in far else 0,
        )
        for upper, lower in drawn
    ]
    body = "\n".join(arrows + parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - GAP + 10:.0f}" '
        'font-family="DejaVu Sans, Verdana, sans-serif">\n'
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _wrapped(names: list[str], letters: int) -> list[str]:
    """Names as lines of so many letters."""
    lines = [""]
    for name in names:
        longer = f"{lines[-1]} · {name}".removeprefix(" · ")
        lines = [*lines[:-1], longer] if len(longer) <= letters else [*lines, name]
    return lines


def _box(room: str, lines: list[str], x: float, y: float, width: float, height: float) -> str:
    texts = [
        f'<text x="{x + 10:.0f}" y="{y + HEAD + 14 + LINE * i:.0f}" font-size="11" fill="#444">'
        f"{line}</text>"
        for i, line in enumerate(lines)
    ]
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="7" '
        'fill="#eef3fa" stroke="#5b7fb0"/>\n'
        f'<text x="{x + 10:.0f}" y="{y + 19:.0f}" font-size="14" font-weight="bold" '
        f'fill="#1d3557">{room}</text>\n' + "\n".join(texts)
    )


def _arrow(upper: tuple[float, ...], lower: tuple[float, ...], far: int) -> str:
    """An arrow down; one that passes other rows is dashed, and has a place of its own."""
    (x1, y1, width1, height1), (x2, y2, width2, _) = upper, lower
    wanted = (x1 + width1 / 2 if width1 < width2 else x2 + width2 / 2) + 14 * far
    start = max(x1 + 12, min(wanted, x1 + width1 - 12))
    end = max(x2 + 12, min(wanted, x2 + width2 - 12))
    dashes = ' stroke-dasharray="5 4"' if far else ""
    return (
        f'<line x1="{start:.0f}" y1="{y1 + height1:.0f}" x2="{end:.0f}" y2="{y2 - 2:.0f}" '
        f'stroke="#888" stroke-width="1.3" marker-end="url(#end)"{dashes}/>'
    )


# ---------------------------------------------------------------------------------------- the walk


def fit() -> None:
    """The fit that is walked through: a table of a number and a category, all made up."""
    os.environ.pop("OMP_NUM_THREADS", None)  # with which cores would not be counted

    import numpy as np

    from privfit import Categorical, LogisticRegression, Numeric, Schema

    coins = np.random.default_rng(0)
    people = {"age": coins.integers(17, 90, 500), "job": coins.choice(["clerk", "nurse"], 500)}
    late = coins.integers(0, 2, 500)
    schema = Schema({"age": Numeric(17, 90), "job": Categorical(["clerk", "nurse"])})
    model = LogisticRegression(1.0, 1e-6, domain=schema, classes=[0, 1], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seed
        model.fit(people, late)


def walk() -> Iterator[tuple[str, str, str]]:
    """(room, function, what it says of itself): calls from one room to another, in order.

    A function is named once. Properties and what `base` has are left out.
    """
    found: dict[str, tuple[str, str, str]] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        room = _room(frame) if event == "call" else ""
        if room in ("", "base") or room == _caller(frame):
            return
        name = f"{frame.f_globals['__name__']}.{_qualified(frame)}"
        function = _function(frame)
        if name not in found and function is not None:
            said = (inspect.getdoc(function) or "").partition("\n\n")[0]
            found[name] = room, name, " ".join(said.split())

    sys.setprofile(watch)
    try:
        fit()
    finally:
        sys.setprofile(None)
    yield from found.values()


def _room(frame: FrameType) -> str:
    parts = frame.f_globals.get("__name__", "").split(".")
    return parts[1] if parts[0] == "privfit" and len(parts) > 1 else ""


def _caller(frame: FrameType) -> str:
    """The room that called, through whatever stands between."""
    back = frame.f_back
    while back is not None and _room(back) in ("", "base"):
        back = back.f_back
    return "" if back is None else _room(back)


def _qualified(frame: FrameType) -> str:
    """The name of a function with its class, where it is one of a class."""
    code = frame.f_code
    owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
    kind = owner if isinstance(owner, type) else type(owner)
    for each in kind.__mro__:
        if code.co_name in vars(each) and owner is not None:
            return f"{each.__name__}.{code.co_name}"
    return code.co_name


def _function(frame: FrameType) -> Any:
    """What was called, if it is a function of its module or a method, and public."""
    name = frame.f_code.co_name
    if name.startswith(("_", "<")):
        return None
    owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
    kind = owner if isinstance(owner, type) else type(owner)
    for each in kind.__mro__ if owner is not None else ():
        if name in vars(each):
            found = vars(each)[name]
            return getattr(found, "__func__", found) if callable(found) else None
    return frame.f_globals.get(name)


def told() -> str:
    """The walk as a list of Markdown."""
    lines = []
    for room, name, said in walk():
        short = name.removeprefix("privfit.")
        lines.append(f"1. **{room}** `{short}`" + (f": {said}" if said else ""))
    return "\n".join(lines)


def main() -> int:
    """Write, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the code; write nothing")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    page = f"{head}{BEGIN}\n{told()}\n{END}{rest.partition(END)[2]}"
    texts = {PICTURE: picture(), PAGE: page}
    stale = [path for path, text in texts.items()
             if not path.exists() or path.read_text(encoding="utf-8") != text]  # fmt: skip
    if options.check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run tools/architecture.py")
        return bool(stale)
    for path in stale:
        path.write_text(texts[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
