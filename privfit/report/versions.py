"""What a report of a problem should contain: versions, the machine, and how kernels run."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from privfit._kernels import cpu, threads
from privfit.base.version import __version__

__all__ = ["show_versions"]

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "threadpoolctl", "pandas", "polars", "pyarrow", "dask",
    "distributed", "filelock", "tqdm", "matplotlib",
)  # fmt: skip


def show_versions() -> None:
    """Print the versions of privfit and its dependencies, the system, and how kernels run.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn.

    Notes
    -----
    Nothing here depends on records.

    Examples
    --------
    >>> import privfit
    >>> privfit.show_versions()  # doctest: +ELLIPSIS
    System:
            python: ...
    """
    parts = {
        "System": {"python": sys.version.replace("\n", " "), "executable": sys.executable,
                   "machine": platform.platform()},
        "Packages": {"privfit": __version__, **{name: _installed(name) for name in PACKAGES}},
        "Kernels": {"instruction set": cpu.active(), "OpenMP": str(threads.has_openmp()),
                    "threads": str(threads.resolve())},
        "BLAS": dict(_blas()),
    }  # fmt: skip
    for title, facts in parts.items():
        print(f"{title}:")
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:>{width + 4}}: {value}")
        print()


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _blas() -> Iterator[tuple[str, str]]:
    """The libraries of linear algebra that are loaded, with their threads."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        yield "unknown", "threadpoolctl is not installed"
        return
    found = [one for one in threadpool_info() if one["user_api"] == "blas"]
    for i, one in enumerate(found):
        kind = one.get("architecture", "")
        yield f"{one['internal_api']} {i}", f"{one['version']} {kind}, {one['num_threads']} threads"
    if not found:
        yield "none", "no library was found"
