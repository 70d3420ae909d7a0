"""Check that kernels call nothing of Python where they hold no lock.

    python tools/nogil.py              # every kernel
    python tools/nogil.py linear       # one of them

Lets Cython translate each `.pyx` file and reads the C that it writes: between the line that gives
up the interpreter's lock and the one that takes it back, and in every function that is declared
`noexcept nogil`, no name of Python's or Cython's own may be called. So no loop over `prange` makes
an object, raises or allocates. `cython -a` shows the same lines in yellow.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "privfit" / "_kernels"

CALL = re.compile(r"\b(_*Py[A-Z_]\w*|__Pyx_\w+|malloc|calloc|realloc|free)\s*\(")
HARMLESS = {"__Pyx_FastGIL_Remember", "__Pyx_FastGIL_Forget"}  # nothing, in CPython
DECLARED = re.compile(r"^\s*cdef [^(\n]*?(\w+)\([^:]*?\) noexcept nogil", re.MULTILINE)
BODY = re.compile(
    r"^static [^;{}]*?\b(__pyx_f_\w+)\([^;{}]*\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)
RELEASED = re.compile(
    r"^( *)_save = PyEval_SaveThread\(\);\n(.*?)^\1/\*finally:\*/", re.MULTILINE | re.DOTALL
)


def translated(sources: list[Path], folder: Path) -> dict[str, str]:
    """The C text of each source, as a release build has it."""
    directives = {"language_level": 3, "boundscheck": False, "wraparound": False,
                  "initializedcheck": False, "cdivision": True}  # fmt: skip
    modules = cythonize(
        list(map(str, sources)), build_dir=str(folder), compiler_directives=directives,
        quiet=True, force=True, shared_utility_qualified_name="privfit._kernels._cyutility",
    )  # fmt: skip
    return {m.name.rpartition(".")[2]: Path(m.sources[0]).read_text() for m in modules}


def without_lock(folder: Path = KERNELS) -> list[re.Pattern[str]]:
    """The C names of all functions that are declared to hold no lock."""
    return [
        re.compile(rf"__pyx_f_\w*{len(path.stem)}{path.stem}_\w*{name}")
        for path in [*folder.glob("*.pyx"), *folder.glob("*.pxd")]
        for name in DECLARED.findall(path.read_text())
    ]


def calls(text: str) -> set[str]:
    """What a piece of C calls of Python's."""
    return set(CALL.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))) - HARMLESS


def faults(name: str, text: str, unlocked: list[re.Pattern[str]]) -> list[str]:
    """A sentence for each place of one kernel that calls Python without the lock."""
    found = []
    for match in RELEASED.finditer(text):
        if called := calls(match[2]):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{name}.c:{line}: without the lock, calls {', '.join(sorted(called))}")
    for function, body in BODY.findall(text):
        if (called := calls(body)) and any(known.fullmatch(function) for known in unlocked):
            found.append(f"{name}: {function} calls {', '.join(sorted(called))}")
    return found


def main(names: list[str]) -> None:
    names = names or sorted(path.stem for path in KERNELS.glob("*.pyx"))
    unlocked = without_lock()
    with tempfile.TemporaryDirectory() as folder:
        texts = translated([KERNELS / f"{name}.pyx" for name in names], Path(folder))
    found = [fault for name, text in texts.items() for fault in faults(name, text, unlocked)]
    loops = sum(text.count("#pragma omp parallel") for text in texts.values())
    released = sum(len(RELEASED.findall(text)) for text in texts.values())
    print(f"{len(texts)} kernels, {loops} loops on several threads, {released} places without lock")
    if found or (len(names) > 5 and not loops):
        sys.exit("\n".join(found) or "no loop on several threads was found")


if __name__ == "__main__":
    main(sys.argv[1:])
