"""The files of a source: folders as pipelines leave them, wildcards, and other file systems.

Beside the parts of a table there are files that are none: `_SUCCESS`, `_metadata`, checksums and
hidden files. They are ignored in folders and where a wildcard finds them, by their names alone. A
folder called `year=2020` adds the column `year` to the files in it (Hive's partitions). Its value
is a text: the partition that a record is in is part of that record. What is found depends on names
of files and folders, which are public, and on no content.

A text with `://` in it is a path of another file system, which fsspec opens.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote

from privfit.base import extras
from privfit.base.errors import (
    DeclarationError,
    DeclarationTypeError,
    FileMissingError,
    MissingExtraError,
)

__all__ = ["File", "find_files"]

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive and Spark call a missing value
WILD = re.compile(r"[*?\[]")
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True)
class File:
    """A file of a source.

    Attributes
    ----------
    path : str
        Its path, within its file system.
    system : object or None
        The file system of fsspec; None for the machine's own.
    partition : dict of str to (str or None)
        The columns that the names of its folders add, and their value in this file.
    """

    path: str
    system: Any = None
    partition: dict[str, str | None] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.path if self.system is None else str(self.system.unstrip_protocol(self.path))

    @property
    def kind(self) -> str:
        """The ending of its name; .csv.gz is one ending."""
        path = PurePosixPath(self.path) if self.system is not None else Path(self.path)
        return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix

    @property
    def local(self) -> Path | None:
        """Its path on this machine; None if it is elsewhere."""
        return Path(self.path) if self.system is None else None

    def open(self) -> IO[bytes]:
        """The file, to be read in order or by position."""
        if self.system is None:
            return open(self.path, "rb", buffering=0)
        file: IO[bytes] = self.system.open(self.path, "rb")
        return file


def find_files(source: Any) -> list[File]:
    """The files of a path, a folder, a wildcard or a list of them, in order of their names."""
    listed = source if isinstance(source, list | tuple) else [source]
    if not listed or not all(isinstance(path, str | os.PathLike) for path in listed):
        raise DeclarationTypeError(
            f"source ({type(source).__name__}) must be an array, a path, a list of paths or an "
            "Arrow table; pass one of them"
        )
    found = [file for path in map(os.fspath, listed) for file in _files_at(path)]
    if not found:
        others = " and others" if len(listed) > 1 else ""
        raise DeclarationError(
            f"source ({os.fspath(listed[0])!r}{others}) must hold at least one file; pass a folder "
            "that is not empty, or a wildcard that finds one"
        )
    return found


def _files_at(path: str) -> Iterator[File]:
    place: _Local | _Remote = _Remote(path) if REMOTE.match(path) else _Local(path)
    if place.is_folder(place.path):
        yield from _within(place, place.path, place.below(place.path))
    elif place.is_file(place.path):
        yield File(place.path, place.system)
    elif WILD.search(place.path):
        yield from _matches(place)
    else:
        raise FileMissingError(f"source ({path!r}) must exist; pass the path of a file")


def _matches(place: _Local | _Remote) -> Iterator[File]:
    """What a wildcard finds; folders that it finds stand for their files."""
    parts = place.path.split("/")
    fixed = next(i for i, part in enumerate(parts) if WILD.search(part))
    start = "/".join(parts[:fixed])
    names: set[str] = set()
    for match in place.matches():
        names.update(place.below(match) if place.is_folder(match) else [match])
    yield from _within(place, start, names, by_name=True)


def _within(
    place: _Local | _Remote, start: str, paths: Iterable[str], by_name: bool = False
) -> Iterator[File]:
    """The parts of a table among files below a folder; folders of a wildcard need no `=`."""
    found = []
    for path in paths:
        *folders, name = path[len(start) :].strip("/").split("/")
        if any(part.startswith((".", "_")) and "=" not in part for part in (*folders, name)):
            continue
        if not name.endswith(".crc"):
            found.append((folders, name, path))
    for folders, _, path in sorted(found):
        plain = [folder for folder in folders if not folder.partition("=")[1]]
        if plain and not by_name:
            raise DeclarationError(
                f"source ({start!r}) has a folder {plain[0]!r}, which names no partition "
                "(column=value); pass the folder that holds the files, or a path with wildcards"
            )
        yield File(path, place.system, _partition(folders))


def _partition(folders: list[str]) -> dict[str, str | None]:
    """The columns that folders name, as Hive writes them: texts, with %xx for odd characters."""
    pairs = (folder.partition("=") for folder in folders)
    return {
        unquote(name): None if value == NO_VALUE else unquote(value)
        for name, equals, value in pairs
        if equals
    }


class _Local:
    """The machine's own files."""

    system = None

    def __init__(self, path: str) -> None:
        self.path = path.replace(os.sep, "/") if os.sep != "/" else path

    is_folder = staticmethod(os.path.isdir)
    is_file = staticmethod(os.path.exists)

    def matches(self) -> list[str]:
        return [path.replace(os.sep, "/") for path in glob.glob(self.path, recursive=True)]

    def below(self, folder: str) -> list[str]:
        """All files below a folder; a link to a folder above it is not followed."""
        found = []
        for at, folders, names in os.walk(folder, followlinks=True):
            here = os.path.join(os.path.realpath(at), "")
            below = ((name, os.path.realpath(os.path.join(at, name))) for name in folders)
            folders[:] = [name for name, real in below if not here.startswith(f"{real}{os.sep}")]
            found += [os.path.join(at, name).replace(os.sep, "/") for name in names]
        return found


class _Remote:
    """Files of another file system."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MissingExtraError(
                f"paths with :// need fsspec; run {extras.install('remote')}, or pass a path on "
                "this machine"
            ) from None
        protocol = url.partition("://")[0]
        try:
            self.system, path = url_to_fs(url)
        except ImportError:
            raise MissingExtraError(
                f"source ({protocol}://) needs a package that fsspec knows for this protocol, such "
                'as s3fs for s3://; install it beside "privfit[remote]"'
            ) from None
        except ValueError:
            raise DeclarationError(
                f"source ({protocol}://) must be of a protocol that fsspec knows; pass one such "
                "as s3:// or a path on this machine"
            ) from None
        self.path = path

    def is_folder(self, path: str) -> bool:
        return bool(self.system.isdir(path))

    def is_file(self, path: str) -> bool:
        return bool(self.system.exists(path))

    def matches(self) -> list[str]:
        return list(self.system.glob(self.path))

    def below(self, folder: str) -> list[str]:
        """All files below a folder."""
        return list(self.system.find(folder))
