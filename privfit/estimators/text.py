"""Texts as binary features: a scikit-learn transformer that learns nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from privfit.features.text import binary_rows, hashed, listed


class HashWords(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Which words a text contains, as binary features with public columns.

    It learns nothing from texts, so `fit` does nothing and costs nothing. A vocabulary learned from
    private texts would publish their words; scikit-learn's vectorizers do that when they are
    fitted.

    Parameters
    ----------
    n_features : int, default=8192
        Number of hash values: words with the same one share a column.
    vocabulary : sequence of str or None, default=None
        Public words, one for each column, instead of hash values; other words are dropped.
    fold_digits : bool, default=True
        Whether to read every digit as 0, so that numbers of one length are one word.

    See Also
    --------
    BernoulliNB : A classifier of binary features.
    SelectFeatures : Private selection of features.

    Examples
    --------
    >>> from privfit import HashWords
    >>> HashWords(vocabulary=["free", "£", "000"]).transform(["FREE!", "win £500 now"]).toarray()
    array([[1, 0, 0],
           [0, 1, 1]], dtype=int8)
    """

    def __init__(
        self, n_features: int = 8192, *, vocabulary: Any = None, fold_digits: bool = True
    ) -> None:
        self.n_features = n_features
        self.vocabulary = vocabulary
        self.fold_digits = fold_digits

    def fit(self, X: Any = None, y: Any = None) -> HashWords:
        """Check the parameters; texts are not read.

        Parameters
        ----------
        X : object, default=None
            Ignored.
        y : object, default=None
            Ignored.

        Returns
        -------
        HashWords
            The transformer itself.
        """
        self._columns()
        return self

    def transform(self, X: Any) -> Any:
        """Find the words of texts.

        Parameters
        ----------
        X : sequence of str
            The texts.

        Returns
        -------
        CSR array of shape (n, n_features)
            Zeros and ones, a row for each text.
        """
        column_of, width = self._columns()
        return binary_rows(X, column_of, width, self.fold_digits)

    def _columns(self) -> tuple[Any, int]:
        if self.vocabulary is None:
            return hashed(self.n_features), int(self.n_features)
        return listed(self.vocabulary), len(self.vocabulary)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns: the vocabulary, or hashwords0, hashwords1, ...

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        array of str
            The names.
        """
        if self.vocabulary is not None:
            return np.array(list(self.vocabulary), dtype=object)
        return np.array([f"hashwords{j}" for j in range(self.n_features)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """The same for scikit-learn before 1.6."""
        return {"X_types": ["string"], "requires_fit": False, "stateless": True}
