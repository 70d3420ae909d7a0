"""Where the compiled kernels lie, and whether they were built from the sources at hand.

A build leaves a file beside the modules that it compiled: the fingerprint of their sources. At the
root of a clone the folder of sources hides an installed privfit, so its kernels are looked for
along ``sys.path``; those that were built from other sources are refused, in place or installed.

`setup.py` runs this file by its path: it imports nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

SUFFIXES = {".pyx", ".pxd", ".h"}
STAMP = "built"  # with the suffix of compiled modules, which names the interpreter
REMEDY = "run `pip install .` or `python setup.py build_ext --inplace`"


def fingerprint(folder: Path) -> str:
    """The digest of all sources of the kernels."""
    return digest(path for path in folder.iterdir() if path.suffix in SUFFIXES)


def digest(sources: Iterable[Path]) -> str:
    """The SHA-256 of names and texts, the same for all line endings."""
    sha256 = hashlib.sha256()
    for source in sorted(sources):
        text = source.read_bytes().replace(b"\r\n", b"\n")
        sha256.update(f"{source.name} {len(text)}\n".encode() + text)
    return sha256.hexdigest()


def stamp_in(folder: Path, suffix: str = EXTENSION_SUFFIXES[0]) -> Path:
    """The file that a finished build for one interpreter leaves in a folder of kernels."""
    return folder / f"{STAMP}{suffix}.txt"


def find_build(here: Path, search: Iterable[str]) -> Path:
    """The folder of the compiled kernels: here, or in a privfit on the path, from these sources."""
    elsewhere = (Path(entry) / "privfit" / "_kernels" for entry in search)
    built = [folder for folder in (here, *elsewhere) if stamp_in(folder).is_file()]
    if not built:
        raise ImportError(f"privfit has no compiled kernels for this Python; {REMEDY}")
    if not any(here.glob("*.pyx")):  # an installed privfit has no sources to compare with
        return built[0]
    wanted = fingerprint(here)
    for folder in built:
        if stamp_in(folder).read_text().strip() == wanted:
            return folder
    raise ImportError(
        f"the compiled kernels in {built[0]} were built from other sources than those in {here}; "
        f"{REMEDY}"
    )


def locate() -> str:
    """The folder of the compiled kernels of this process."""
    return str(find_build(Path(__file__).parent, sys.path))
