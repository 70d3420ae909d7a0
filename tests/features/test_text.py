"""Texts to public columns: the same everywhere, each text by itself, and nothing learnt."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from makers.raises import messages_of, raises_in
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

import privfit
from privfit import BernoulliNB, HashWords, Ledger, SelectFeatures
from privfit.features.text import binary_rows, hashed, words

TEXTS = ["Go until Jurong point, crazy..", "WINNER!! Claim £900 now: 09061701461", "", "  \n\t"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WINNER!! Claim £900", ["winner", "!", "!", "claim", "£", "000"]),
        ("snake_case e-mail", ["snake", "case", "e", "-", "mail"]),
        ("Größe 12ab", ["größe", "00ab"]),
        ("٣ apples", ["0", "apples"]),  # a digit of another script
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_or_single_signs(text, found):
    assert words(text) == found


def test_digits_are_folded_only_if_asked():
    assert words("call 0800", fold_digits=False) == ["call", "0800"]


def rows_by_hand(texts: list[str], n: int) -> np.ndarray:
    """The naive twin."""
    table, column = np.zeros((len(texts), n), dtype=np.int8), hashed(n)
    for row, text in zip(table, texts, strict=True):
        for word in words(text):
            row[column(word)] = 1
    return table


@pytest.mark.parametrize("n", [1, 7, 8192])
def test_rows_are_those_by_hand(n):
    rows = HashWords(n).transform(TEXTS)
    assert sp.issparse(rows)
    assert rows.format == "csr"
    assert rows.has_canonical_format
    assert rows.dtype == np.int8
    assert np.array_equal(rows.toarray(), rows_by_hand(TEXTS, n))


def test_a_text_is_read_by_itself():
    together = HashWords(64).transform(TEXTS).toarray()
    for text, row in zip(TEXTS, together, strict=True):
        assert np.array_equal(HashWords(64).fit(["other"]).transform([text]).toarray()[0], row)


def test_columns_never_change():
    """Models are kept for years: a hash that moved would void them."""
    column = hashed(8192)
    assert [column(word) for word in ("free", "£", "00000000000", "größe")] == EXPECTED


EXPECTED = [5389, 417, 3573, 6388]


@pytest.mark.slow
def test_columns_do_not_depend_on_the_process(fresh_python):
    script = (
        "from privfit.features.text import hashed;print([hashed(8192)(w) for w in ('free', 'txt')])"
    )
    answers = {fresh_python(script, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "random")}
    assert answers == {f"{[hashed(8192)(w) for w in ('free', 'txt')]}\n"}


def test_a_lone_surrogate_is_a_word_too():
    assert HashWords(16).transform(["a\ud800b"]).shape == (1, 16)


def test_hash_values_are_spread_evenly():
    """Chi-square of 20,000 words in 64 columns; fixed words, so that it never alarms falsely."""
    column = hashed(64)
    counts = np.bincount([column(f"word{i}") for i in range(20_000)], minlength=64)
    assert (np.square(counts - 312.5) / 312.5).sum() < 130


def test_a_declared_vocabulary_has_a_column_a_word_and_drops_others():
    helper = HashWords(vocabulary=["claim", "£", "000"])
    assert helper.transform(TEXTS).toarray().tolist() == [
        [0, 0, 0],
        [1, 1, 1],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert helper.get_feature_names_out().tolist() == ["claim", "£", "000"]
    assert HashWords(3).get_feature_names_out().tolist() == [f"hashwords{j}" for j in range(3)]


def test_nothing_is_learnt():
    helper = HashWords(32)
    before = dict(vars(helper))
    assert helper.fit(TEXTS) is helper
    assert vars(helper) == before
    assert pickle.dumps(clone(helper)) == pickle.dumps(HashWords(32))


def test_any_sequence_of_texts_will_do():
    rows = HashWords(32).transform(TEXTS).toarray()
    for form in (tuple, iter, lambda texts: np.array(texts, dtype=object), np.array):
        assert np.array_equal(HashWords(32).transform(form(TEXTS)).toarray(), rows)
    assert HashWords(32).transform([]).shape == (0, 32)


def test_a_pipeline_runs_from_texts_to_labels():
    coins = np.random.default_rng(0)
    y = coins.integers(0, 2, 2000)
    texts = [f"{'claim a prize' if label else 'see you'} {coins.integers(100)}" for label in y]
    ledger = Ledger(2.0)
    shared = {"classes": [0, 1], "ledger": ledger, "random_state": 2}
    model = Pipeline([("words", HashWords(512)), ("select", SelectFeatures(1.0, k=3, **shared)),
                      ("bayes", BernoulliNB(1.0, **shared))])  # fmt: skip
    assert model.fit(texts, y).score(texts, y) > 0.95
    assert ledger.remaining.epsilon == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_is_content():
    """It skips what would need numbers."""
    check_estimator(HashWords())


REFUSED: dict[str, tuple[Any, str]] = {
    "one text": (lambda: HashWords().transform("a text"), "texts must be a list"),
    "bytes": (lambda: HashWords().transform([b"a text"]), "texts must be str"),
    "missing": (lambda: HashWords().transform([None]), "texts must be str"),
    "size": (lambda: HashWords(0).fit(), r"n_features \(0\) must be a whole number"),
    "share": (lambda: HashWords(0.5).transform(TEXTS), r"n_features \(0.5\) must be a whole"),
    "from the data": (lambda: HashWords(vocabulary="auto").fit(TEXTS),
                      "never the words of the private texts"),
    "numbers": (lambda: HashWords(vocabulary=[1, 2]).fit(), "must be a public list of words"),
    "twice": (lambda: HashWords(vocabulary=["a", "a"]).fit(), "must hold different words"),
    "none": (lambda: HashWords(vocabulary=[]).fit(), "must hold different words"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_is_refused_without_showing_it(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "a text" not in str(error.value)


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED.values())
    package = Path(privfit.__file__).parent
    for source in ("features/text.py", "estimators/text.py"):
        for line, parts in raises_in(package / source):
            assert all(part in seen for part in parts), f"{source}:{line}"


def test_rows_can_be_made_without_scikit_learn():
    assert binary_rows(TEXTS, hashed(8), 8).shape == (4, 8)
