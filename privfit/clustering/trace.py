"""What a run of noisy Lloyd leaves for post-processing: a trace of released values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.privacy.ledger import Release

__all__ = ["LloydTrace"]

KINDS = ("laplace", "gaussian")
DOMAINS = ("box", "l1", "l2")


@dataclass(frozen=True, eq=False)
class LloydTrace:
    """What T iterations of noisy Lloyd released, relative to a public point `origin`.

    Parameters
    ----------
    centroids : array of shape (T, k, d)
        The centroids that assigned the records in each iteration.
    counts : array of shape (T, k)
        Noisy numbers of records in each cluster.
    sums : array of shape (T, k, d)
        Noisy sums of the records in each cluster.
    scale_counts, scale_sums : float
        Scale of the noise of a count, and of each coordinate of a sum in the units of the records:
        b of Laplace noise, or a standard deviation.
    low, high : array of shape (d,)
        Smallest and largest value of each coordinate of a record.
    kind : {'laplace', 'gaussian'}
        The noise.
    domain : {'box', 'l1', 'l2'}
        A box, or a ball about the origin.
    radius : float
        Radius of the ball; 0 for a box.
    origin : array of shape (d,), optional
        The point, in the records' own coordinates; 0 by default.

    See Also
    --------
    mcmc : Clusters a likely data set.
    Lloyd : The solver that leaves a trace.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, LloydTrace
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = KMeans(3, 1.0, domain=(-1, 1), solver="lloyd").fit(X)
    >>> LloydTrace.from_release(model.release_).counts.shape[1]
    3
    """

    centroids: Floats
    counts: Floats
    sums: Floats
    scale_counts: float
    scale_sums: float
    low: Floats
    high: Floats
    kind: str = "laplace"
    domain: str = "box"
    radius: float = 0.0
    origin: Any = None

    def __post_init__(self) -> None:
        if self.origin is None:
            object.__setattr__(self, "origin", np.zeros(np.shape(self.low)))
        for name in ("centroids", "counts", "sums", "low", "high", "origin"):
            object.__setattr__(self, name, frozen(name, getattr(self, name)))
        self._check_shapes()
        self._check_noise()
        self._check_domain()

    def _check_shapes(self) -> None:
        if self.centroids.ndim != 3 or 0 in self.centroids.shape:
            raise DeclarationError(
                f"centroids (shape {self.centroids.shape}) must be (T, k, d), none of them 0; pass "
                "the centroids of every iteration"
            )
        T, k, d = self.centroids.shape
        expected = {"counts": (T, k), "sums": (T, k, d), "low": (d,), "high": (d,), "origin": (d,)}
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise DeclarationError(
                    f"{name} (shape {getattr(self, name).shape}) must be {shape}, to match the "
                    f"centroids; pass one value for each"
                )
        for name in ("centroids", *expected):
            if not np.isfinite(getattr(self, name)).all():
                raise DeclarationError(f"{name} must be finite; pass released values")

    def _check_noise(self) -> None:
        for name in ("scale_counts", "scale_sums"):
            if not is_finite(getattr(self, name)) or getattr(self, name) <= 0:
                raise DeclarationError(
                    f"{name} ({getattr(self, name)!r}) must be a positive number; pass the scale "
                    "of the noise"
                )
        if self.kind not in KINDS:
            raise DeclarationError(
                f"kind ({self.kind!r}) must be one of {KINDS}; pass that of the noise"
            )

    def _check_domain(self) -> None:
        if self.domain not in DOMAINS:
            raise DeclarationError(
                f"domain ({self.domain!r}) must be one of {DOMAINS}; pass that of the records"
            )
        if not (self.low <= self.high).all():
            raise DeclarationError("low must not exceed high; pass the bounds of each column")
        if not is_finite(self.radius) or (self.radius > 0) != (self.domain != "box"):
            raise DeclarationError(
                f"radius ({self.radius!r}) must be 0 for a box and positive for a ball; pass that "
                "of the records' domain"
            )
        if self.domain != "box" and not (np.maximum(-self.low, self.high) <= self.radius).all():
            raise DeclarationError(
                "low and high must lie within the radius; pass those of the ball"
            )

    @classmethod
    def from_release(cls, release: Release) -> LloydTrace:
        """Read the trace of a noisy Lloyd fit from its release (``parameters["trace"]``).

        Parameters
        ----------
        release : Release
            The release of the fit.

        Returns
        -------
        LloydTrace
            The trace.
        """
        trace = release.parameters.get("trace")
        if isinstance(trace, cls):
            return trace
        if not isinstance(trace, Mapping):
            raise DeclarationError(
                f"release {release.name!r} must hold a trace of Lloyd iterations; pass the release "
                "of a fit by noisy Lloyd, or make a LloydTrace of your own arrays"
            )
        try:
            return cls(**trace)
        except TypeError:
            raise DeclarationError(
                f"the trace of release {release.name!r} must have the fields of LloydTrace and no "
                "others; pass the release unchanged"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in the form that a release stores.

        Returns
        -------
        dict
            Plain values.
        """
        return asdict(self)


def frozen(name: str, values: Any) -> Floats:
    """A read-only copy as float64."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DeclarationError(
            f"{name} must be an array of numbers; pass released values"
        ) from None
    array.flags.writeable = False
    return array


def check_trace(trace: Any) -> None:
    """Refuse anything that is not a trace."""
    if not isinstance(trace, LloydTrace):
        raise DeclarationTypeError(
            f"trace ({type(trace).__name__}) must be a LloydTrace; pass "
            "LloydTrace.from_release(release), or make one of your own arrays"
        )
