"""How many threads a kernel may use."""

import os
from numbers import Integral

from privfit._kernels.cores import allowed, share
from privfit.base.errors import DeclarationError

cdef extern from *:
    """
    #if defined(_OPENMP)
    #include <omp.h>
    static int privfit_openmp(void) { return omp_get_max_threads(); }
    #else
    static int privfit_openmp(void) { return 0; }
    #endif
    """
    int privfit_openmp()  # asks the runtime, which makes it begin

_forked = False


def _after_fork() -> None:
    # The parent's pool of OpenMP threads does not exist in the child, and libgomp waits for it.
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def has_openmp() -> bool:
    """Whether the kernels were built with OpenMP."""
    return privfit_openmp() > 0


def resolve(n_threads: int | None = None) -> int:
    """The number of threads: as asked, else ``OMP_NUM_THREADS``, else the cores of this process.

    These are the ones that its affinity mask and the quotas of its control groups allow. One thread
    after a fork and in builds without OpenMP.
    """
    if n_threads is not None and (
        isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1
    ):
        raise DeclarationError(
            f"n_threads ({n_threads!r}) must be a whole number of at least 1; "
            "pass None to use every core"
        )
    if _forked or not has_openmp():
        return 1
    if n_threads is not None:
        return int(n_threads)
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return allowed()


def team(n_threads: int | None = None, seconds: float = 0.0) -> int:
    """The number of threads for a call of about so many seconds: as asked, else a share of all.

    Python threads that call kernels at the same time share the cores.
    """
    total = resolve(n_threads)
    return total if n_threads is not None or total == 1 else share(total, seconds)
