"""`privfit.report.plotting` under its old name, for one version."""

import warnings as _warnings

from privfit.report.plotting import *  # noqa: F403

_warnings.warn(
    "privfit.plotting is privfit.report.plotting now; import that",
    FutureWarning,
    stacklevel=2,
)
