"""Texts as binary features, without a look at any text but the one at hand.

A vocabulary that is read off private texts is a release of their words. So the columns are public
here: a number of hash values, or a vocabulary that is declared. A text's row depends on that text
alone, and the hash is the same in every process, version and machine (BLAKE2b; Python's own hash
of a text changes from run to run).

Words are runs of letters and digits in lower case, and single other signs, such as a pound sign.
Digits are folded to 0: numbers are nearly all different, so that each by itself would count once,
while "a number of eleven digits" is one feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import DeclarationError, InputError
from privfit.base.validation import is_whole
from privfit.domains.reading import objects

__all__ = ["binary_rows", "hashed", "listed", "words"]

WORD = re.compile(r"[^\W_]+|[^\w\s]")
DIGIT = re.compile(r"\d")
MOST_FEATURES = 2**31 - 1


def words(text: str, fold_digits: bool = True) -> list[str]:
    """The words of a text, in order."""
    text = text.lower()
    return WORD.findall(DIGIT.sub("0", text) if fold_digits else text)


def hashed(n_features: int) -> Callable[[str], int]:
    """The column of a word among `n_features`: a hash of it."""
    if not is_whole(n_features) or not 1 <= n_features <= MOST_FEATURES:
        raise DeclarationError(
            f"n_features ({n_features!r}) must be a whole number from 1 to 2^31 - 1; pass 8192"
        )

    def column(word: str) -> int:
        digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") % n_features

    return column


def listed(vocabulary: Sequence[str]) -> Callable[[str], int]:
    """The column of a word in a declared vocabulary; -1 for other words."""
    if isinstance(vocabulary, str) or not all(isinstance(word, str) for word in vocabulary):
        raise DeclarationError(
            "vocabulary must be a public list of words; pass one from documentation or a "
            "dictionary, never the words of the private texts, or leave it out and hash"
        )
    columns = {word: j for j, word in enumerate(vocabulary)}
    if not columns or len(columns) != len(vocabulary):
        raise DeclarationError("vocabulary must hold different words, at least one; pass each once")
    return lambda word: columns.get(word, -1)


def binary_rows(
    texts: Iterable[Any], column_of: Callable[[str], int], n_columns: int, fold_digits: bool = True
) -> Any:
    """CSR (n, n_columns) of int8: which columns' words a text has."""
    if isinstance(texts, str):
        raise InputError("texts must be a list; pass a list of texts, not a single one")
    known: dict[str, int] = {}
    start, columns = [0], []
    for text in objects(texts):
        if not isinstance(text, str):
            raise InputError(
                "texts must be str; decode bytes, and replace missing texts by '' first"
            )
        present = set()
        for word in words(text, fold_digits):
            if word not in known:
                known[word] = column_of(word)
            present.add(known[word])
        columns += sorted(present - {-1})
        start.append(len(columns))
    data = np.ones(len(columns), dtype=np.int8)
    shape = (len(start) - 1, n_columns)
    return scipy.sparse.csr_array(
        (data, np.array(columns, np.int32), np.array(start, np.int32)), shape=shape
    )
