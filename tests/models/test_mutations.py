"""Damaged model files: each is refused by a sentence, or makes a model that predicts."""

from __future__ import annotations

import json
import random
import resource
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privfit import (
    Box,
    FileError,
    HashWords,
    KMeans,
    LogisticRegression,
    PrivfitError,
    SelectFeatures,
)
from privfit.models import limits
from privfit.models.model import check, dumps, load, loads

FILES = sorted(
    path for path in Path(__file__).parent.glob("*/*.json") if path.stem not in ("ledger",)
)
NASTY: list[Any] = [
    None, True, False, 0, 1, -1, 10**400, -(10**400), 2**63, 2**64, 10**9, 10**12, 1e308, -1e308,
    1e-308, 0.5, "", "x" * 50, "U999999", "object", [], {}, [[]], [None], {"a": 1}, {"tuple": []},
    {"array": [], "dtype": "float64"}, {"array": ["a"], "dtype": "U999999"}, {"domain": "Box"},
    {"settings": "Local"}, {"own": "os:system", "name": "x", "fields": {}}, [1] * 1000,
]  # fmt: skip
DEPTHS = (5, 40, 300, 900, 3000)
WIDEST = 10**5  # columns of a record that is predicted


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values are, the first few of each list."""
    inner = value.items() if isinstance(value, dict) else ()
    inner = list(enumerate(value[:6])) if isinstance(value, list) else inner
    return [at, *(place for key, item in inner for place in places(item, (*at, key)))]


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def damaged_bytes(coins: random.Random, text: str) -> bytes:
    content = bytearray(text.encode())
    for _ in range(coins.choice([1, 1, 3])):
        i = coins.randrange(len(content))
        content[i : i + coins.randrange(2)] = bytes(
            [coins.choice(b'0123456789eE-+.[]{}",\x00\xff')] * coins.randrange(2)
        )
    return bytes(content)


def changed(coins: random.Random, value: Any) -> Any:
    """A value that is nearly the same."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        power = 10 ** coins.randrange(20)
        return coins.choice([value + 1, -value, value * 2, value * power, value / 3])
    if isinstance(value, str):
        return value + coins.choice(["x", "\0", "é"])
    if isinstance(value, list):
        return value * coins.choice([0, 2, 3])
    return {**value, "more": 1}


def mutated(seed: int) -> tuple[Path, str | bytes]:
    """A file and its text with one change."""
    coins = random.Random(seed)
    path = coins.choice(FILES)
    text, kind = path.read_text(), coins.randrange(6)
    if kind == 0:
        return path, damaged_bytes(coins, text)
    held = json.loads(text)
    *outer, key = coins.choice(places(held)[1:])
    parent = at(held, tuple(outer))
    if kind == 1:
        parent[key] = coins.choice(NASTY)
    elif kind == 2:
        del parent[key]
    elif kind == 3:
        parent[key] = changed(coins, parent[key])
    elif kind == 4:
        other = json.loads(coins.choice(FILES).read_text())
        parent[key] = at(other, coins.choice(places(other)[1:]))
    else:
        depth = coins.choice(DEPTHS)
        form = coins.choice(['{"tuple": [%s]}', "[%s]", '{"own": %s}'])
        begin, end = form.split("%s")
        inner = json.dumps(parent[key])
        parent[key] = "here"
        nested = begin * depth + inner + end * depth
        return path, json.dumps(held).replace('"here"', nested, 1)
    return path, json.dumps(held)


def records_for(model: Any) -> Any:
    """A few records of any model; None for a model of too many columns to make one up."""
    if isinstance(model, HashWords):
        return ["free money", "see you"]
    domain = getattr(model, "domain_", None)
    if domain is not None and domain.column_names is not None:
        return {name: [0.5, 1.0, 2.0] if column.holds_numbers else [*(column.values or "a")][:1] * 3
                for name, column in domain.columns.items()}  # fmt: skip
    columns = getattr(model, "n_features_in_", None)
    if columns is None or columns > WIDEST:
        return None
    names = getattr(model, "feature_names_in_", None)
    numbers = np.random.default_rng(0).uniform(-1, 1, (3, columns))
    return numbers if names is None else dict(zip(names, numbers.T, strict=True))


def answers(model: Any) -> Any:
    records = records_for(model)
    if records is None:
        return None
    if hasattr(model, "predict"):
        return model.predict(records).tolist()
    return list(model.transform(records).shape) if isinstance(model, HashWords) else None


@cache
def original(path: Path) -> tuple[dict[str, Any], Any]:
    return json.loads(path.read_text()), answers(loads(path.read_text()))


def decides(held: dict[str, Any]) -> Any:
    """What a prediction may depend on: all but who wrote the file, and what the release tells."""
    release = held.get("release", {})
    parts = {key: held.get(key) for key in ("class", "columns", "labels", "thresholds")}
    values = release.get("parameters") if isinstance(release, dict) else None
    return json.dumps([parts, held.get("parameters"), values], sort_keys=True)


@pytest.mark.parametrize("first", [0, 500, 1000, 1500])
def test_a_damaged_file_is_refused_or_predicts(first):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused: list[str] = []
    for seed in range(first, first + 500):
        path, text = mutated(seed)
        try:
            model = loads(text)
            found = answers(model)
        except PrivfitError as error:
            refused.append(str(error))
            continue
        before, expected = original(path)
        if decides(json.loads(text)) == decides(before):
            assert found == expected, seed
    assert 250 < len(refused) < 500
    assert max(map(len, refused)) < 1000  # a sentence, not a file
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 256 << 10  # kilobytes


# ---------------------------------------------------------------- what is refused by which sentence


def held_of(model: Any) -> dict[str, Any]:
    return json.loads(dumps(model))


@cache
def text_of(kind: str) -> str:
    coins = np.random.default_rng(0)
    X = coins.uniform(-1, 1, (200, 3))
    if kind == "means":
        return dumps(KMeans(2, 1.0, domain=(-1, 1), random_state=1).fit(X))
    if kind == "selection":
        return dumps(
            SelectFeatures(1.0, k=2, classes=[0, 1], random_state=1).fit(X > 0, X[:, 0] > 0)
        )
    fit = LogisticRegression(1.0, domain=Box(-1, 1), classes=["no", "yes"], random_state=1).fit
    return dumps(fit(X, np.where(X[:, 0] > 0, "yes", "no")))


def with_value(kind: str, value: Any, *place: Any) -> str:
    held = json.loads(text_of(kind))
    at(held, place[:-1])[place[-1]] = value
    return json.dumps(held)


def nested(depth: int) -> str:
    return with_value("linear", "here", "parameters", "domain").replace(
        '"here"', "[" * depth + "]" * depth
    )


CUT = {"low": 0, "high": 1, "bins": 10**9, "scale": "log"}
SCHEMA = {"domain": "Schema", "columns": {"a": CUT},
          "grid": {"a": 12, "b": 10, "c": 12}, "missing": [""]}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), [
    (lambda: with_value("linear", 10**400, "parameters", "n_public"),
     r"a whole number \(1329 bits\) must have at most 64 bits; pass a file as it was written"),
    (lambda: with_value("linear", 10**400, "columns"), r"a whole number \(1329 bits\) must"),
    (lambda: with_value("linear", 10**12, "columns"), r"columns \(10+\) must be at most 16777216;"),
    (lambda: with_value("selection", 10**9, "columns"), r"columns \(10+\) must be at most 16777"),
    (lambda: with_value("selection", 1, "parameters", "k"), r"k \(1\) must be at least the 2 feat"),
    (lambda: with_value("selection", "2", "parameters", "k"), r"k \('2'\) must be at least the 2 "),
    (lambda: with_value("means", 7, "parameters", "n_clusters"), r"n_clusters \(7\) must be what"),
    (lambda: with_value("linear", SCHEMA, "parameters", "domain"),
     r"bins \(1000000000\) must be 0 or a positive number up to 65536; pass"),
    (lambda: with_value(
        "linear", {"array": ["a"] * 300, "dtype": "U999999"}, "parameters", "classes"),
     r"classes must be a list of values of dtype 'U999999'; pass the text unchanged"),
    (lambda: with_value("linear", [["no"], "yes"], "parameters", "classes"),
     r"a value is of the wrong kind; pass a model as it was fitted, .*: ValueError"),
    *((lambda depth=depth: nested(depth), r"nested (too deeply|at most 32 deep)")
      for depth in (33, 300, 900, 3000, 100_000)),
])  # fmt: skip
def test_sizes_and_depths_are_refused_by_one_sentence(text, message):
    with pytest.raises(PrivfitError, match=message):
        loads(text())
    with pytest.raises(PrivfitError, match=message):
        check(text())


def test_a_file_of_gigabytes_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text(text_of("linear"))
    monkeypatch.setattr(limits, "MOST_BYTES", 100)
    with pytest.raises(FileError, match=r"a model file \(\d+ bytes\) must have at most 100; "):
        load(path)


def test_digits_beyond_what_python_reads_are_refused():
    text = text_of("linear").replace('"columns": 3', '"columns": ' + "9" * 10_000)
    with pytest.raises(FileError, match=r"text must be JSON as privfit writes it|a whole number"):
        loads(text)
    assert sys.get_int_max_str_digits() < 10_000
