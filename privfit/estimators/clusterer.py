"""What estimators of clusters share: one paid run, distances and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_sparse, is_whole
from privfit.estimators.common import (
    PrivateEstimator,
    block_by_block,
    check_names,
    reread_table,
)
from privfit.estimators.serving import Coder, nearest_model
from privfit.privacy.ledger import Ledger
from privfit.records import is_partitioned
from privfit.records.answers import Form
from privfit.runs.door import before, realised
from privfit.runs.paths import Generation, Path
from privfit.runs.payment import Account, Terms
from privfit.runs.protocols import Space
from privfit.runs.settings import Settings

BLOCK = 4096  # sparse records that are dense at a time


class Clusterer(TransformerMixin, ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """Distances, labels and one paid run; a subclass makes the objective."""

    n_clusters: int
    epsilon: float
    delta: float
    adjacency: str
    n_public: int | None
    ledger: Ledger | None
    random_state: Any
    callback: Callable[[Generation], object] | None
    verbose: int
    solver: Any

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.solver, str) and self.solver == "auto"

    def _run(
        self, name: str, settings: Settings, objective: Any, space: Callable[[BitSource], Space]
    ) -> tuple[Path, Account, dict[str, Any]]:
        """Check, charge and run; return what was found, what paid for it, and the settings used."""
        terms = Terms.of(self)
        terms.check(name, settings, objective, space(BitSource(0)))
        given = before(settings)
        account = terms.open(objective)
        # Nothing is drawn from the caller's bits before the charge.
        run = account.run(objective, space(account.source), terms.name)
        with self._bounded():
            path = account.solved(name, settings, run)
        self._remember_solver(name, given)
        return path, account, realised(name, given, path)

    def _check_clusters(self) -> None:
        if not is_whole(self.n_clusters) or self.n_clusters < 1:
            raise DeclarationError(
                f"n_clusters ({self.n_clusters!r}) must be a positive whole number; pass "
                "n_clusters=8"
            )

    def _apart(self, X: Any) -> Floats:
        """(n, k): the distance of each record to each centre."""
        raise NotImplementedError

    @block_by_block
    def transform(self, X: Any) -> Floats:
        """The distance of each record, clipped to the domain, to each centre: **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of shape (n, n_clusters)
            The distances. They depend on each record: do not publish them for private records.
        """
        check_is_fitted(self)
        return self._apart(X)

    def _distances(self, X: Any, metric: str) -> Floats:
        """(n, k) distances of records, as the domain codes and clips them."""
        records = self.domain_.rounded(reread_table(self, X, self.domain_), uniform=True)
        if not is_sparse(records):
            return np.asarray(cdist(records, self.cluster_centers_, metric))
        blocks = (records[i : i + BLOCK].toarray() for i in range(0, records.shape[0], BLOCK))
        return np.concatenate([cdist(block, self.cluster_centers_, metric) for block in blocks])

    def _reread(self, X: Any) -> Any:
        """Records for an objective, checked if they are in memory and have columns."""
        whole = self.domain_ is not None and not is_partitioned(X)
        return reread_table(self, X, self.domain_) if whole else X

    def _check_parts(self, X: Any) -> None:
        """Check the names of columns of a stream or collection, which are known after reading."""
        if self.domain_ is not None and is_partitioned(X):
            check_names(self, X, self.domain_)

    @block_by_block
    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centre of each record: **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns), Stream or Dask collection
            The records.

        Returns
        -------
        array of int of shape (n,)
            Indices of centres. They depend on each record: do not publish them for private records.
        """
        check_is_fitted(self)
        return np.asarray(self._apart(X).argmin(axis=1), dtype=np.int32)

    def _form(self, name: str) -> Form:
        """What a method returns, for `block_by_block`."""
        if name == "predict":
            return Form(np.int32)
        return Form(np.float64, len(self.cluster_centers_))

    def _stock_pipeline(self, metric: str) -> Any:
        """The pipeline of scikit-learn that finds the nearest centre."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        coder = Coder.of(self.domain_, names, uniform=True, dense=True)
        return coder.ending_in(nearest_model(coder.weights(self.cluster_centers_), metric))

    def fit_predict(self, X: Any, y: Any = None, **refused: Any) -> NDArray[np.int32]:
        """Call `fit`, then `predict` on the same records; the labels are **not private**.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            Private records, in memory.
        y : object, default=None
            Ignored.
        **refused : object
            Other arguments of scikit-learn, such as `sample_weight`, are refused.

        Returns
        -------
        array of int of shape (n,)
            Indices of centres. They depend on each record: do not publish them.
        """
        return np.asarray(self.fit(X, y, **refused).predict(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: kmeans0, kmeans1, ...

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        array of str of shape (n_clusters,)
            The names.
        """
        check_is_fitted(self)
        stem = type(self).__name__.lower()
        names = [f"{stem}{j}" for j in range(len(self.cluster_centers_))]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
