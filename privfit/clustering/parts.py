"""What any k-means fit released, part by part: the trace that post-processing takes.

A part is one release: its noisy values, the scale and kind of their noise, and the public numbers
that say what was summed. Given a public point, a part says which of its rows a record there counts
in, and which vector it adds to that row's sums. So the likelihood of a part, given a data set, is
that of its noise, and the likelihood of a trace is the product over its parts:

===============  ==================================  ============================================
part             row of a record x                   what x adds
===============  ==================================  ============================================
`ClusterSums`    the nearest centre c                1, and x - c shrunk to norm r; or x - origin
`CellCounts`     the cell that holds x               1
`NormCounts`     the least radius that holds x - c   1
===============  ==================================  ============================================

The shape of a tree was released as well, by noisy tests of counts that are not kept: its
likelihood is left out, which loses information and biases nothing that is kept, since the counts
have noise of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from privfit._kernels import pool as pool_kernels
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.clustering.trace import DOMAINS, KINDS, LloydTrace, frozen
from privfit.objectives import CentersObjective
from privfit.privacy.ledger import Release

__all__ = ["CellCounts", "ClusterSums", "KMeansTrace", "NormCounts"]


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Noisy counts and sums of the clusters of one step.

    Parameters
    ----------
    centers : array of shape (k, d)
        The centres that assigned the records.
    counts : array of shape (k,) or None
        Noisy numbers of records of each cluster; None if only sums were released.
    sums : array of shape (k, d)
        Noisy sums of residuals x - c, or of x - origin if the radius is 0.
    scale_counts, scale_sums : float
        Scale of the noise of a count, and of each coordinate of a sum: b of Laplace noise, or a
        standard deviation.
    kind : {'laplace', 'gaussian'}
        The noise.
    radius : float, default=0.0
        Residuals longer than this were shrunk to it; 0 if whole records were summed.
    norm : {1, 2}, default=2
        The norm of that radius.

    See Also
    --------
    KMeansTrace : A list of parts.

    Examples
    --------
    >>> from privfit.clustering import ClusterSums
    >>> part = ClusterSums([[0.0], [1.0]], [9.5, 11.2], [[0.4], [-0.1]], 1.0, 0.5, radius=0.5)
    >>> part.counts.tolist()
    [9.5, 11.2]
    """

    what: ClassVar[str] = "sums"

    centers: Floats
    counts: Any
    sums: Floats
    scale_counts: float
    scale_sums: float
    kind: str = "laplace"
    radius: float = 0.0
    norm: int = 2

    def __post_init__(self) -> None:
        _freeze(self, "centers", "sums", *(() if self.counts is None else ("counts",)))
        _check_shapes(self, {"sums": self.centers.shape})
        if self.counts is not None:
            _check_shapes(self, {"counts": self.centers.shape[:1]})
        _check_noise(self, "scale_counts", "scale_sums")
        _check_radius(self)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.centers.shape[1])

    def rows(self, points: Floats) -> Integers:
        """The nearest centre of each point.

        Parameters
        ----------
        points : array of shape (m, d)
            The points.

        Returns
        -------
        array of int of shape (m,)
            Indices of centres; the lowest of several.
        """
        return _nearest(points, self.centers)

    def vectors(self, points: Floats, rows: Integers, origin: Floats) -> Floats:
        """What each point adds to the sums of its row.

        Parameters
        ----------
        points : array of shape (m, d)
            The points.
        rows : array of int of shape (m,)
            Their rows.
        origin : array of shape (d,)
            The point that whole records are relative to.

        Returns
        -------
        array of shape (m, d)
            The vectors: residuals, no longer than the radius.
        """
        if not self.radius:
            return points - origin
        residuals = points - self.centers[rows]
        length = np.linalg.norm(residuals, self.norm, axis=1, keepdims=True)
        return residuals * np.minimum(1.0, self.radius / np.maximum(length, self.radius))


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Noisy counts of the cells of a tree or a grid.

    Parameters
    ----------
    low, high : array of shape (m, d)
        Corners of the cells [low, high), which do not overlap.
    counts : array of shape (m,)
        Noisy numbers of records.
    scale : float
        Scale of their noise.
    kind : {'laplace', 'gaussian'}
        The noise.

    See Also
    --------
    KMeansTrace : A list of parts.

    Examples
    --------
    >>> from privfit.clustering import CellCounts
    >>> CellCounts([[-1.0], [0.0]], [[0.0], [1.0]], [30.0, 12.0], scale=2.0).counts.tolist()
    [30.0, 12.0]
    """

    what: ClassVar[str] = "cells"

    low: Floats
    high: Floats
    counts: Floats
    scale: float
    kind: str = "laplace"

    def __post_init__(self) -> None:
        _freeze(self, "low", "high", "counts")
        _check_shapes(self, {"low": (*self.counts.shape, self.low.shape[-1]),
                             "high": self.low.shape})  # fmt: skip
        _check_noise(self, "scale")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.low.shape[1])

    def rows(self, points: Floats) -> Integers:
        """The cell of each point.

        Parameters
        ----------
        points : array of shape (m, d)
            The points.

        Returns
        -------
        array of int of shape (m,)
            Indices of cells; for points in none of them, one more than the last.
        """
        found = np.empty(len(points), dtype=np.int32)
        pool_kernels.locate(np.ascontiguousarray(points), self.low, self.high, found)
        return np.where(found < 0, len(self.counts), found)


@dataclass(frozen=True, eq=False)
class NormCounts:
    """A noisy histogram of the lengths of residuals.

    Parameters
    ----------
    centers : array of shape (k, d)
        The centres that assigned the records.
    radii : array of shape (m,)
        Ascending radii.
    counts : array of shape (m + 1,)
        Noisy numbers of records within each radius and not within the one before; the last is of
        records beyond all of them.
    scale : float
        Scale of their noise.
    norm : {1, 2}
        The norm.
    kind : {'laplace', 'gaussian'}
        The noise.

    See Also
    --------
    KMeansTrace : A list of parts.

    Examples
    --------
    >>> from privfit.clustering import NormCounts
    >>> NormCounts([[0.0]], [0.1, 0.2], [50.0, 31.0, 4.0], scale=2.0).radii.tolist()
    [0.1, 0.2]
    """

    what: ClassVar[str] = "norms"

    centers: Floats
    radii: Floats
    counts: Floats
    scale: float
    norm: int = 2
    kind: str = "laplace"

    def __post_init__(self) -> None:
        _freeze(self, "centers", "radii", "counts")
        _check_shapes(self, {"counts": (len(self.radii) + 1,)})
        _check_noise(self, "scale")
        if self.norm not in (1, 2):
            raise DeclarationError(f"norm ({self.norm!r}) must be 1 or 2; pass that of the radii")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.centers.shape[1])

    def rows(self, points: Floats) -> Integers:
        """The least radius that holds the residual of each point.

        Parameters
        ----------
        points : array of shape (m, d)
            The points.

        Returns
        -------
        array of int of shape (m,)
            Indices of radii; for residuals beyond all of them, one more than the last.
        """
        residuals = points - self.centers[_nearest(points, self.centers)]
        length = np.linalg.norm(residuals, self.norm, axis=1)
        return np.searchsorted(self.radii, length)


Part: TypeAlias = ClusterSums | CellCounts | NormCounts
SHAPES = {1: "l1", 2: "l2", math.inf: "box"}  # of domains, by the order of their norm
PARTS: dict[str, type[Part]] = {part.what: part for part in (ClusterSums, CellCounts, NormCounts)}


@dataclass(frozen=True, eq=False)
class KMeansTrace:
    """Everything that a k-means fit released, for `mcmc`.

    Parameters
    ----------
    parts : sequence of ClusterSums, CellCounts or NormCounts
        The releases, in their order.
    low, high : array of shape (d,)
        Smallest and largest value of each coordinate of a record.
    domain : {'box', 'l1', 'l2'}, default='box'
        A box, or a ball about the origin.
    radius : float, default=0.0
        Radius of the ball; 0 for a box.
    origin : array of shape (d,), optional
        The middle of the ball, and the point that sums of whole records are relative to; 0 by
        default.

    See Also
    --------
    privfit.mcmc : Clusters a likely data set.
    privfit.LloydTrace : The trace of plain noisy Lloyd steps.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> from privfit.clustering import KMeansTrace
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = KMeans(3, 1.0, domain=(-1, 1), solver="tree").fit(X)
    >>> [part.what for part in KMeansTrace.from_release(model.release_).parts]
    ['cells']
    """

    parts: tuple[Part, ...]
    low: Floats
    high: Floats
    domain: str = "box"
    radius: float = 0.0
    origin: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if self.origin is None:
            object.__setattr__(self, "origin", np.zeros(np.shape(self.low)))
        _freeze(self, "low", "high", "origin")
        if not self.parts or not all(
            isinstance(part, tuple(PARTS.values())) for part in self.parts
        ):
            raise DeclarationError(
                "parts must be ClusterSums, CellCounts or NormCounts, at least one; pass what was "
                "released"
            )
        d = self.parts[0].n_features
        _check_shapes(self, {"low": (d,), "high": (d,), "origin": (d,)})
        if any(part.n_features != d for part in self.parts):
            raise DeclarationError("parts must have the same columns; pass those of one fit")
        if self.domain not in DOMAINS or (self.radius > 0) != (self.domain != "box"):
            raise DeclarationError(
                f"domain ({self.domain!r}) must be one of {DOMAINS}, and radius ({self.radius!r}) "
                "positive for a ball and 0 for a box; pass those of the records"
            )

    @classmethod
    def of(cls, objective: CentersObjective, parts: tuple[Part, ...]) -> KMeansTrace:
        """The trace of a fit; of the objective only its declared domain is used.

        Parameters
        ----------
        objective : CentersObjective
            The objective.
        parts : tuple of parts
            What was released.

        Returns
        -------
        KMeansTrace
            The trace.
        """
        unit, order = objective.candidate_units, objective.domain.order
        low, high = (np.asarray(bound * unit, dtype=np.float64) for bound in objective.bounds)
        origin = objective.middle * unit
        radius = float(high[0] - origin[0]) if order < math.inf else 0.0
        return cls(parts, low, high, SHAPES[order], radius, origin)

    @classmethod
    def from_lloyd(cls, trace: LloydTrace) -> KMeansTrace:
        """The trace of plain noisy Lloyd steps as a list of parts.

        Parameters
        ----------
        trace : LloydTrace
            The trace.

        Returns
        -------
        KMeansTrace
            The same released values.
        """
        steps = [
            ClusterSums(centers + trace.origin, counts, sums, trace.scale_counts, trace.scale_sums,
                        trace.kind)
            for centers, counts, sums in zip(trace.centroids, trace.counts, trace.sums, strict=True)
        ]  # fmt: skip
        low, high = trace.low + trace.origin, trace.high + trace.origin
        return cls(tuple(steps), low, high, trace.domain, trace.radius, trace.origin)

    @classmethod
    def from_release(cls, release: Release) -> KMeansTrace:
        """Read the trace of a fit from its release (``parameters["parts"]``).

        Parameters
        ----------
        release : Release
            The release of the fit.

        Returns
        -------
        KMeansTrace
            The trace.
        """
        held = release.parameters.get("parts")
        if not isinstance(held, Mapping):
            return cls.from_lloyd(LloydTrace.from_release(release))
        try:
            fields = dict(held)
            parts = [_read(part) for part in fields.pop("parts")]
            return cls(parts=tuple(parts), **fields)
        except (KeyError, TypeError):
            raise DeclarationError(
                f"the trace of release {release.name!r} must have the fields of KMeansTrace and no "
                "others; pass the release unchanged"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in the form that a release stores.

        Returns
        -------
        dict
            Plain values.
        """
        parts = [{"what": part.what, **vars(part)} for part in self.parts]
        return {**vars(self), "parts": parts}


def _read(held: Any) -> Part:
    fields = dict(held)
    return PARTS[fields.pop("what")](**fields)


def _nearest(points: Floats, centers: Floats) -> Integers:
    """(m,): the nearest centre of each point; the lowest index of several."""
    rows, least = np.zeros(len(points), dtype=np.int64), np.full(len(points), math.inf)
    for j, center in enumerate(centers):
        apart = np.square(points - center).sum(axis=1)
        rows[apart < least] = j
        least = np.minimum(apart, least)
    return rows


def _freeze(part: Any, *names: str) -> None:
    for name in names:
        object.__setattr__(part, name, frozen(name, getattr(part, name)))
        if not np.isfinite(getattr(part, name)).all():
            raise DeclarationError(f"{name} must be finite; pass released values")


def _check_shapes(part: Any, expected: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in expected.items():
        found = getattr(part, name).shape
        if found != shape or 0 in shape:
            raise DeclarationError(
                f"{name} (shape {found}) must be {shape}, none of them 0; pass one value for each"
            )


def _check_noise(part: Any, *scales: str) -> None:
    for name in scales:
        value = getattr(part, name)
        if not is_finite(value) or value <= 0:
            raise DeclarationError(
                f"{name} ({value!r}) must be a positive number; pass the scale of the noise"
            )
    if part.kind not in KINDS:
        raise DeclarationError(
            f"kind ({part.kind!r}) must be one of {KINDS}; pass that of the noise"
        )


def _check_radius(part: ClusterSums) -> None:
    if not is_finite(part.radius) or part.radius < 0 or part.norm not in (1, 2):
        raise DeclarationError(
            f"radius ({part.radius!r}) must be at least 0 and norm ({part.norm!r}) 1 or 2; pass "
            "those of the residuals"
        )
