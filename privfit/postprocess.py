"""`privfit.clustering.postprocess` under its old name, for one version."""

import warnings as _warnings

from privfit.clustering.postprocess import *  # noqa: F403

_warnings.warn(
    "privfit.postprocess is privfit.clustering.postprocess now; import that",
    FutureWarning,
    stacklevel=2,
)
