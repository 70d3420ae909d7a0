"""Wrong input: one clear message each, with the remedy, without private values or partial state."""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from makers import compiled
from makers.cases import packed
from makers.raises import assert_reached, messages_of, raises_in

import privfit
from privfit import (
    Box,
    Categorical,
    CentersObjective,
    Domain,
    FacilityObjective,
    L1Ball,
    L2Ball,
    LinearObjective,
    Numeric,
    Reals,
    RecordObjective,
    Schema,
)
from privfit._kernels import threads
from privfit.domains import Grid
from privfit.domains.kinds import kinds_of
from privfit.objectives.clipping import SecondMoments
from privfit.objectives.coding import Broad
from privfit.privacy.neighbours import ADD_REMOVE
from privfit.records.compiled import _found_here, refuse_missing
from privfit.records.packing import pack

SECRET = 123456.789  # stands for a private value; no message may repeat it
LABEL = 987654.321

X = np.array([[SECRET, 0.5], [0.25, SECRET], [0.0, 1.0]])
Y = np.array([0, 1, 1])
UNIT = Box(-1, 1)
FINEST = Box(-1, 1, grid=Grid(a=14))
PLACES = np.eye(2)

NAN = np.where(X == 0.25, np.nan, X)
INF = np.where(X == 0.25, -np.inf, X)


def linear(**changes: Any) -> LinearObjective:
    return LinearObjective(**{"X": X, "y": Y, "loss": "logistic", "domain": UNIT, **changes})


def centers(**changes: Any) -> CentersObjective:
    return CentersObjective(**{"X": X, "n_clusters": 2, "domain": UNIT, **changes})


def facility(**changes: Any) -> FacilityObjective:
    return FacilityObjective(
        **{"X": X, "facilities": PLACES, "clip": (0, 1), "domain": UNIT, **changes}
    )


def own(records: Any, places: Any) -> np.ndarray:
    return np.abs(np.asarray(records)[:, None] - np.asarray(places)).sum(axis=2)


def total(records: Any, P: Any) -> np.ndarray:
    return np.outer(np.asarray(records).sum(axis=1), P)


def nothing(*arguments: Any) -> None:
    """A compiled function may write nothing."""


def counting() -> Callable[..., None]:
    """A score that grows from call to call."""
    calls = itertools.count()

    def score(record: Any, P: Any, out: Any) -> None:
        out[:] = next(calls) / 1024

    return score


def record(**changes: Any) -> RecordObjective:
    return RecordObjective(**{"records": X, "score": total, "low": 0, "high": 1, **changes})


NO_NUMBER = r"column 'a' has missing values or cells that are not numbers; declare Numeric\(low, hi"


def schema(column: Any, values: Any) -> Any:
    return linear(X={"a": values, "b": [SECRET] * 3},
                  domain=Schema({"a": column, "b": Numeric(0, 1)}))  # fmt: skip


def toml(text: str | bytes) -> Schema:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "schema.toml")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Schema.from_toml(path)


def toml_without_a_reader() -> Schema:
    with (
        mock.patch.object(sys, "version_info", (3, 10)),
        mock.patch.dict(sys.modules, {"tomli": None}),
    ):
        return toml("[columns]\na = {low = 0, high = 1}")


Case = tuple[Callable[[], Any], str]

DOMAINS: list[Case] = [
    (lambda: Schema({"c": Categorical(buckets=range(4), hashes=4)}).table_cells(),
     r"column 'c' hashes values into buckets, which no transformer of scikit-learn does; fit with"),
    (lambda: Schema({"a": Numeric(0, 1)}, missing=("-9",)).table_cells(),
     r"column 'a' counts a number as missing \(-9\), which no transformer of scikit-learn does"),
    (lambda: L1Ball(1.0).table_cells(), r"domain \(L1Ball\(.*\)\) projects whole records, which"),
    *((partial(Grid, **{name: bits}), rf"grid bits {name} \({re.escape(repr(bits))}\) must be")
      for name, bits in [("a", 0), ("a", 15), ("a", 12.0), ("a", True), ("b", -1), ("b", 17),
                         ("c", 15), ("c", "12"), ("c", -1)]),
    (lambda: Grid(a=4, b=4, c=1), r"grid bits c \(1\) must be at most a \+ b - 8 \(0\)"),
    (lambda: Box(-1, 1).width, r"does not know its number of columns; pass n_features"),
    (lambda: Box(-1, 1).candidates(3, np.random.default_rng(0)), r"number of columns"),
    (lambda: Box(-1, 1, 2).snap([1.0, 2.0]), r"P \(shape \(2,\)\) must have 3 columns"),
    (lambda: Box(-1, 1, 2).snap(3.0), r"P \(shape \(\)\) must have 3 columns"),
    (lambda: Box(-1, 1, 1).snap([[np.nan, 0]]), r"P must be finite; pass candidates without NaN"),
    (lambda: Box([[0]], 1), r"Box bounds must be numbers or one row of numbers"),
    *((partial(Box, *bounds), r"Box bounds must be finite; pass the documented range")
      for bounds in [(np.nan, 1), (0, np.inf), ([0, -np.inf], 1)]),
    *((partial(Box, *bounds), r"Box bounds must be 0 or .*1e-100")
      for bounds in [(0, 1e-300), (-1e200, 1), ([-5e-324, 0], [1, 1])]),
    (lambda: Box(1, -1), r"Box lower bounds must not exceed the upper ones"),
    (lambda: Box([0, 3], [1, 2]), r"Box lower bounds must not exceed the upper ones"),
    (lambda: Box([0, 0], 1, 3), r"n_features \(3\) must be the number of bounds \(2\)"),
    (lambda: Box(1000.1, 1000.2, 1).low, r"Box is narrower than its grid in column 0; pass Grid"),
    (lambda: Box([0, 0.001], [9e9, 0.002]).quantise(X, uniform=True), r"narrower .* column 1"),
    (lambda: linear(X=sp.csr_array(X), domain=Box(0.1, 1)), r"sparse X must have 0 inside"),
    *((partial(ball, radius), r"radius \(.*\) must be a positive number; pass the declared bound")
      for ball in (L1Ball, L2Ball) for radius in (0, -1.0, np.nan, np.inf, "1", None)),
    *((partial(Numeric, *bounds), r"Numeric range \(.*\) must be finite and increasing")
      for bounds in [(1, 1), (2, 1), (np.nan, 1), (0, np.inf)]),
    *((partial(Numeric, 0, 1, bins=bins), r"bins \(.*\) must be 0 or a positive number")
      for bins in (-1, 2.0, True, "2")),
    *((partial(Numeric, 0, 1, bins=bins), r"bins \(.*\) must increase between low and high")
      for bins in ([0.5, 0.5], [0.5, 0.2], [0], [0.5, 1.0], [np.nan], ["a"], np.array([2.0]))),
    *((partial(Numeric, 0, 1, fill=fill), r"fill must be a finite number; pass a declared value")
      for fill in (np.nan, np.inf)),
    (lambda: Categorical([]), r"Categorical needs at least one value"),
    (lambda: Categorical(["a", "a"]), r"Categorical values must differ"),
    (lambda: Categorical(names="all"), r"names \('all'\) must be 'bought', and only where nothing"),
    (lambda: Categorical(buckets=[2, 1]), r"buckets \(\[2, 1\]\) must be whole numbers from 0 to"),
    (lambda: Numeric(0, 1, 2, missing=1), r"missing \(1\) must be a bool; pass missing=True"),
    (lambda: Numeric(0, 1, missing=True), r"missing \(True\) must stand beside bins or a"),
    (lambda: Numeric(scale="linear"), r"scale \('linear'\) must be 'log'; pass it or leave it out"),
    (lambda: Numeric(bins=[1, 2], ranks=[0.5]), r"ranks \(\[0.5\]\) must increase between 0 and 1"),
    *((lambda h=h: Categorical(buckets=[1, 2], hashes=h), r"hashes \(.*\) must be a power of two")
      for h in (0, 3, 2048, 1.5, "4")),
    (lambda: Categorical(["a"], hashes=4), r"hashes \(4\) must be a power of two up to 1024, and"),
    (lambda: Categorical(buckets=[1, 2], shares=[0.5]), r"shares .* must be parts of 1,"),
    (lambda: Categorical(buckets=[1, 2], shares=[0.5, 0.6]), r"shares .* must be parts of 1, one"),
    (lambda: Categorical(buckets=[1], shares=0.5), r"shares \(0.5\) must be parts of 1"),
    (lambda: kinds_of({"a": [SECRET]}), r"column 'a' \(of no declared type\) must be of numbers,"),
    (lambda: kinds_of([[SECRET]]), r"X \(list\) must declare the types of its columns for domain="),
    (lambda: kinds_of({3: X[:, 0]}), r"X must have columns with different names that are texts"),
    (lambda: kinds_of({}), r"X \(dict\) must declare the types of its columns for domain='learn'"),
    (lambda: Schema.blank({"a": "number"}).with_blanks_filled({"b": {"low": 0, "high": 1}}),
     r"columns \(b\) must be those of the schema, with its blanks filled in and its numbers"),
    (lambda: Schema.blank({"a": "text"}), r"kinds \({'a': 'text'}\) must be 'number', 'categor"),
    (lambda: schema(Numeric(0, 1), np.array([1, 2, 3], dtype="M8[D]")),
     r"column 'a' \(of the type datetime64\[D\]\) must be of numbers, and a date or a duration h"),
    (lambda: linear(X={"a": [SECRET]}, domain=Schema.blank({"a": "number"})),
     r"domain \(a Schema with the blanks 'a'\) must declare .* pass learn_schema\(X, epsilon"),
    (lambda: privfit.learn_schema({"a": [SECRET]}, 1.0, columns="a"),
     r"columns \(str\) must be a Schema or a dict of kinds; pass {'age': 'number'"),
    (lambda: Schema({}), r"Schema needs at least one column"),
    *((lambda f=f: Schema({"a": Numeric(0, 1)}).for_distances(f), r"level \(.*\) must be a")
      for f in (0.05, 1.5)),
    (lambda: Schema({"a": (0, 1)}), r"Schema column 'a' must be declared; pass Numeric"),
    (toml_without_a_reader, r"needs tomli before Python 3.11; run pip install tomli"),
    *((partial(toml, text), r"path \('.*schema.toml'\) must be a TOML file; pass one that parses: ")
      for text in ("age = {low = 17", "[columns", b"\xff = 1", "[columns]\na = 1\na = 1")),
    *((partial(toml, text), r"columns \(.*\) must be a table of declared columns; pass \[columns\]")
      for text in ("", "columns = 3", "[[columns]]\na = 1", "[column]\na = {low = 0, high = 1}")),
    (lambda: toml("[columns]"), r"Schema needs at least one column"),
    *((partial(toml, f"{text}\n[columns]\na = {{low = 0, high = 1}}"),
       r"grid \(.*\) must be a table of bits a, b and c; pass \[grid\]")
      for text in ("grid = 12", "[[grid]]\na = 12", "[grid]\nd = 12")),
    (lambda: toml("[grid]\na = 99\n[columns]\na = {low = 0, high = 1}"), r"grid bits a \(99\)"),
    *((partial(toml, f"[columns]\na = {entry}"),
       r"column 'a' \(.*\) must have low and high, or values; pass \{low = 17, high = 90\}")
      for entry in ("3", "'x'", "[0, 1]", "{}", "{low = 0}", "{low = 0, hi = 1}", "{other = true}",
                    "{low = 0, high = 1, values = ['a']}", "{low = 0, high = 1, other = true}",
                    "{values = ['a'], bins = 2}")),
    *((partial(toml, f"[columns]\na = {{values = {values}}}"),
       r"column 'a': values \(.*\) must be a list of texts or numbers; pass values = \[")
      for values in ("'ab'", "3", "{b = 1}", "[['b']]", "[{b = 1}]", "[nan]", "[2001-01-01]")),
    *((partial(toml, f"[columns]\na = {{values = ['b'], other = {other}}}"),
       r"column 'a': other \(.*\) must be true or false; pass other = true")
      for other in ("1", "'yes'", "[]")),
    *((partial(toml, f"[columns]\na = {{{entry}}}"), rf"column 'a': {message}")
      for entry, message in [
          ("low = 2, high = 1", r"Numeric range \(2, 1\) must be finite and increasing"),
          ("low = nan, high = 1", r"Numeric range \(nan, 1\) must be finite and increasing"),
          ("low = '0', high = 1", r"Numeric range \('0', 1\) must be finite and increasing"),
          ("low = 0, high = 1, bins = 2.0", r"bins \(2.0\) must be 0 or a positive number"),
          ("low = 0, high = 1, fill = 'x'", r"fill must be a finite number; pass a declared value"),
          ("values = []", r"Categorical needs at least one value"),
          ("values = ['b', 'b']", r"Categorical values must differ")]),
    (lambda: Schema({"a": Numeric(0, 1)}).parts["a"].codes(str(SECRET)),
     r"cells \(str\) must be the cells of column .a.; pass a list or an array, and a single value"),
    (lambda: Schema({3: Numeric(0, 1)}).to_dict(),
     r"column 3 must have a str as its name to be written; pass a Schema with texts"),
    *((lambda v=v: Categorical([v]),
       r"Categorical values \(.*\) must be a text, a date or a number below 2\^53, so that it")
      for v in (None, float("nan"), float("inf"), 2**53, "9007199254740993", 10**400, ["b"], {})),
    *((lambda v=v: Categorical(v), r"Categorical values must differ, but two of them read as '1'")
      for v in ([True, 1], [1, "1.0"], ["1", "true"], [0, 1, 1.0])),
    *((lambda v=v: Numeric(*v), r"Numeric range \(.*\) must be at least 4096 steps of float32 wide")
      for v in ((1e6, 1e6 + 1), (0, 1e50), (0, 1e-60), (-1e39, 1), (1.7e9, 1.7e9 + 1000))),
    *((lambda v=v: Schema({"a": Numeric(0, 1)}, missing=v),
       r"missing \(.*\) must be a list of texts; pass those that stand for a missing value")
      for v in ("NA", ["", 3], None, 4)),
    (partial(toml, "missing = 'NA'\n[columns]\na = {low = 0, high = 1}"), r"missing \('NA'\) must"),
    (lambda: Schema({"a": Categorical(["\udc80"])}).to_toml(),
     r"texts must be valid Unicode for TOML to hold them; pass decoded names"),
    *((partial(Domain.from_dict, wrong),
       r"domain \(.*\) must be one of Box, L1Ball, L2Ball, Schema, ScaledSchema; pass what")
      for wrong in (None, {}, {"domain": "Ball"}, {"domain": ["Box"]})),
    *((partial(Domain.from_dict, wrong),
       r"domain \('Box'\) must have the fields grid, lower, n_features, upper; pass what to_dict")
      for wrong in ({"domain": "Box"}, {**Box(0, 1).to_dict(), "more": 1})),
    *((partial(Domain.from_dict, {**Box(0, 1).to_dict(), name: wrong}),
       rf"{name} must be one or more finite numbers; pass what to_dict returned")
      for name, wrong in [("lower", "0"), ("upper", [1, None]), ("n_features", "2")]),
    *((partial(Domain.from_dict, {**Schema({"a": Numeric(0, 1)}).to_dict(), "bought": wrong}),
       message)
      for wrong, message in (
          ({"price": None}, r"bought must be a table of numbers, texts and a list of"),
          ({"price": 1, "columns": "a"}, r"bought must be a table of numbers, texts and a list"),
      )),
    (lambda: Domain.from_dict({**Box(0, 1).to_dict(), "n_features": 2.5}),
     r"n_features \(2.5\) must be a whole number; pass what to_dict returned"),
    (lambda: linear(X={"b": [SECRET]}, domain=Schema({"a": Numeric(0, 1)})),
     r"X lacks the declared columns \['a'\]; pass them or remove them"),
    (lambda: schema(Numeric(0, 1), [SECRET]), r"X must have columns of one equal length"),
    (lambda: linear(X={"a": SECRET}, domain=Schema({"a": Numeric(0, 1)})),
     r"X \(a dict of single values\) must have columns; pass one record as a list: \[record\]"),
    (lambda: linear(domain=Schema({"a": Numeric(0, 1)})), r"must have the 1 declared columns"),
    (lambda: linear(X=sp.csr_array(X), domain=Schema({"a": Numeric(0, 1)})), r"declared columns"),
    (lambda: schema(Categorical(["u"]), ["u", str(SECRET), "u"]), r"column 'a' has values that"),
    (lambda: schema(Categorical([1.0]), [1.0, SECRET, np.nan]), r"column 'a' has values that"),
    (lambda: schema(Numeric(0, 1), [0, np.nan, SECRET]), NO_NUMBER),
    (lambda: schema(Numeric(0, 1), ["x", str(SECRET), "y"]), NO_NUMBER),
    (lambda: schema(Numeric(0, 1), [0, {}, SECRET]), NO_NUMBER),
]  # fmt: skip

RECORDS: list[Case] = [
    *((make, r"needs the declared domain of a record; pass domain=Box\(low, high\)")
      for make in (partial(linear, domain=None), partial(centers, domain=None))),
    (lambda: linear(domain=(-1, 1)), r"domain \(tuple\) must be a Domain; pass domain=Box"),
    (lambda: linear(domain=Box), r"domain \(type\) must be a Domain"),
    *((partial(make, X=wrong), r"X must be finite; replace NaN and infinity first")
      for make in (linear, centers, facility)
      for wrong in (NAN, INF, sp.csr_array(NAN), sp.csc_array(INF))),
    *((partial(make, X=np.empty((0, 2)), **more), r"X must have at least one record; pass a non-em")
      for make, more in ((linear, {"y": []}), (centers, {}), (facility, {}))),
    (lambda: linear(X=sp.csr_array((0, 2)), y=[]), r"X must have at least one record"),
    (lambda: linear(X={"a": []}, y=[], domain=Schema({"a": Numeric(0, 1)})), r"at least one reco"),
    *((partial(make, X=X[:, :0]), r"X must have at least one column; pass a non-empty table")
      for make in (linear, centers, facility)),
    (lambda: linear(X=sp.csr_array((3, 0))), r"X must have at least one column"),
    (lambda: linear(X=np.broadcast_to(0.0, (2**31 + 1, 1))), r"X must have at most .* records"),
    (lambda: linear(X=sp.csr_array((3, 2**31))), r"X must have at most .* records and columns in"),
    *((partial(linear, X=wrong), r"X \(\d dimensions\) must have two dimensions; pass records as")
      for wrong in (X[0], X[None], SECRET)),
    *[(lambda: linear(X=sp.coo_array(X[:, 0])), r"must have two dimensions")
      for made in [sp.coo_array(X[:, 0])] if made.ndim == 1],  # older SciPy makes two
    *((partial(linear, X=wrong), r"X \(dtype .*\) must hold real numbers; pass numbers, or declare")
      for wrong in (X * 1j, sp.csr_array(X * 1j))),
    *((partial(linear, X=wrong), r"X must hold numbers; pass numbers, or declare a Schema")
      for wrong in (np.array([["a", "1"]] * 3), [[1.0, SECRET], [2.0, None]],
                    [[1.0], [1.0, SECRET]], np.array([[{}, 1]] * 3))),
    *((partial(linear, y=wrong), r"y must have one label for each record of X; pass a vector")
      for wrong in (Y[:2], Y[:, None], 1)),
    *((partial(linear, y=wrong), r"y must hold 0 and 1, or -1 and \+1; encode other labels")
      for wrong in ([0, 1, LABEL], [-1, 0, 1], [1, 2, 1], [0, np.nan, 1], list("abc"), [None] * 3)),
    *((partial(linear, y=wrong, n_classes=3), r"y must hold whole numbers in 0..2; encode labels")
      for wrong in ([0, 1, LABEL], [0, 1, 3], [-1, 0, 1], [0.5, 1.0, 2.0], list("abc"))),
    *((partial(linear, n_classes=n), r"n_classes \(.*\) must be a whole number of at least 2; "
                                     r"leave")
      for n in (1, 2.0, True, "3")),
    (lambda: linear().against(1), r"head \(1\) must be one of the classes 0 .. n_classes - 1"),
    *((lambda c=c: linear(n_classes=3).against(c), r"head \(.*\) must be one of the classes")
      for c in (3, -1)),
    (lambda: linear(domain=Box(-1, 1, 5)), r"X has 2 columns but Box declares 5; pass a domain"),
    (lambda: linear(domain=L2Ball(1.0, 3)), r"X has 2 columns but L2Ball declares 3"),
    (lambda: centers(domain=Box([0], [1])), r"X has 2 columns but Box declares 1"),
    (lambda: pack(X, UNIT.bind(2), layout="tiled"), r"layout \('tiled'\) must be 'auto', 'dense'"),
    (lambda: linear(layout="csr"), r"layout \('csr'\) must be 'auto', 'dense' or 'sparse'"),
    (lambda: linear(joint=1), r"joint \(1\) must be a whole number of at least 2"),
]  # fmt: skip

LINEAR: list[Case] = [
    (lambda: linear(loss="squared"), r"loss \('squared'\) must be 'logistic', 'hinge' or"),
    (lambda: linear(loss=None), r"loss \(None\) must be"),
    *((partial(linear, loss="hinge", C=C), r"C \(.*\) must be a positive number; pass C=1.0")
      for C in (0, -1.0, np.nan, np.inf, "1", True, None)),
    (lambda: linear(C=2.0), r"C \(2.0\) weights the hinge loss only; leave it out"),
    *((partial(linear, l2=l2), r"l2 \(.*\) must be 0 or a positive number; pass l2=0.0")
      for l2 in (-1.0, np.nan, np.inf, "1", True)),
    (lambda: linear(loss="hinge", C=1e300).scores(np.zeros((1, 3))), r"too large for exact"),
    *((partial(make, n_threads=n), r"n_threads \(.*\) must be a whole number of at least 1")
      for make in (linear, centers, facility) for n in (0, -2, 1.5, "2", True)),
    *((lambda w=w: linear().scores(w), r"P \(shape .*\) must have 2 dimensions; pass candidates")
      for w in (np.zeros(3), np.zeros((1, 1, 3)), 0.0)),
    (lambda: linear().scores(np.zeros((2, 2))), r"P \(shape \(2, 2\)\) must have 3 columns; pass"),
    (partial(linear, fit_intercept="no"), r"fit_intercept \('no'\) must be True or False"),
    (lambda: linear().scores(np.zeros((0, 3))), r"P must hold at least one candidate"),
    *((lambda v=v: linear().scores([[0, v, 0]]), r"P must be finite; pass candidates without NaN")
      for v in (np.nan, np.inf)),
    (lambda: linear().scores([[0, 0.3, 0]]), r"P must lie on the grid; pass domain.snap\(P\)"),
    (lambda: linear().range([[0, 0.3, 0]], "replace"), r"P must lie on the grid"),
    (lambda: linear().prior([[0, 0.3, 0]]), r"P must lie on the grid"),
    (lambda: linear(l2=1e300).prior([[0.5, 0, 0]]), r"prior is too large for 64 bits; pass"),
    (lambda: linear().scores([[2.0**30, 0, 0]]), r"candidates are too large for exact margins"),
    (lambda: linear().at([2.0**30, 0, 0]), r"candidates are too large for exact margins"),
    (lambda: linear().check_margins([[2.0**30, 0, 0]]), r"candidates are too large for exact mar"),
    (lambda: linear(loss="hinge", C=1e6).scores([[2.0**20, 0, 0]]),
     r"candidates are too large for exact sums of losses; pass smaller weights, a smaller C or a"),
    (lambda: linear().range([[2.0**20, 0, 0]], "add_remove"),
     r"with a smaller c, or adjacency='add_remove' to the objective, which then takes coarser un"),
    (lambda: linear(adjacency="removal"), r"adjacency \('removal'\) must be 'replace' or"),
    (lambda: SecondMoments(linear(domain=FINEST), Broad(FINEST.bind(2))).sensitivity(ADD_REMOVE),
     r"grid bits a \(14\) are too many for exact moments of 2\^31 and more records, which"),
    *((lambda a=a: linear().range(np.zeros((1, 3)), a), r"adjacency \(.*\) must be 'replace' or")
      for a in ("bounded", None, 1)),
    (lambda: linear().gradient_range(0.5, "ar"), r"adjacency \('ar'\) must be"),
    *((lambda cap=cap: linear().gradient(np.zeros(3), cap), r"cap \(.*\) must lie in \(0, 1\]")
      for cap in (0, -1, 1.01, np.nan, "1", True)),
    (lambda: linear().gradient_range(2.0, "replace"), r"cap \(2.0\) must lie in \(0, 1\]"),
    (lambda: linear(loss="zero_one").gradient(np.zeros(3), 0.5), r"gradient needs a loss with a"),
    (lambda: linear().gradient(np.zeros((2, 3)), 0.5), r"w \(shape \(2, 3\)\) must be one"),
    (lambda: linear().weighed(1.0, 2.0),
     r"weights \(1.0, 2.0, 1.0\) must lie in \(0, 1\]; divide them by the largest, and pass"),
    (lambda: linear().at(np.zeros((1, 3))), r"w \(shape \(1, 3\)\) must be one candidate"),
    (lambda: linear().at([0, 0.3, 0]), r"P must lie on the grid"),
    (lambda: linear().at(np.zeros(3)).scores([0, 1], [0.5]), r"coords \(shape .* one length"),
    (lambda: linear().at(np.zeros(3)).scores([[0]], [[0.5]]), r"coords \(shape .* one length"),
    (lambda: linear().at(np.zeros(3)).scores([0.0], [0.5]), r"coords \(dtype float64\) must be"),
    *((lambda c=c: linear().at(np.zeros(3)).scores([c], [0.5]), r"coords must lie in 0..2, an")
      for c in (-1, 3)),
    *((lambda s=s: linear().at(np.zeros(3)).scores([0], [s]), r"steps must be finite; pass")
      for s in (np.nan, np.inf)),
    (lambda: linear().at(np.zeros(3)).scores([0], [0.3]), r"lie on the grid; pass steps on"),
]  # fmt: skip

CENTERS: list[Case] = [
    (lambda: centers(adjacency="removal"), r"adjacency \('removal'\) must be 'replace' or"),
    *((lambda a=a: centers().range(np.full((2, 2, 2), 5000.0), a),
       r"centres are too far out for exact sums of distances; pass centres inside the domain, or")
      for a in ("add_remove",)),
    (lambda: CentersObjective(np.zeros((1, 2**20)), 1, Box(-1, 1), 2, adjacency="add_remove"),
     r"domain \(1048576 columns\) must leave room for the costs of 2\^32 records under adjacenc"),
    *((partial(centers, power=p), r"power \(.*\) must be 2 \(squared l2\) or 1 \(l1\)")
      for p in (0, 3, "2", None)),
    *((partial(centers, n_clusters=k), r"n_clusters \(.*\) must be a positive whole number")
      for k in (0, -1, 2.0, "2", True)),
    (lambda: centers().scores(np.zeros((2, 2))), r"P \(shape \(2, 2\)\) must have 3 dimensions"),
    (lambda: centers().scores(np.zeros((1, 3, 2))), r"must be sets of 2 centres with 2 columns"),
    (lambda: centers().scores(np.zeros((0, 2, 2))), r"P must hold at least one candidate"),
    (lambda: centers().scores(np.full((1, 2, 2), np.nan)), r"P must be finite"),
    (lambda: centers().scores(np.full((1, 2, 2), 0.3)), r"lie on the grid; pass objective.snap"),
    (lambda: centers().scores(np.full((1, 2, 2), 2.0**30)), r"centres are too far out for exact"),
    (lambda: centers().lloyd(np.full((2, 2), 2.0**30)), r"centres are too far out for exact"),
    *((lambda n=n: centers().residuals(np.eye(2), 9, n), r"norm \(.*\) must be 1 or 2; pass one")
      for n in (0, 3, "1", None)),
    *((lambda r=r: centers().residuals(np.eye(2), r, 1), r"radius \(.*\) must be a whole number of")
      for r in (0, -1, 1.5, 2**31, True, None)),
    (lambda: centers().deviations(np.zeros(2), 0, 1), r"radius \(0\) must be a whole number of"),
    *((lambda m=m: centers().cost_steps([np.eye(2)], m), r"most \(.*\) must be a whole number from")
      for m in (0, 1 << 30, 2.5)),
    *((lambda s=s: centers().cost_steps([np.eye(2)], 9, s), r"shift \(.*\) must be a whole number ")
      for s in (-1, 41)),
    *((lambda r=r, t=t: centers().products([0.0, 0.0], t, r, 1), r"radius \(.*\) and shift \(.*\)")
      for r, t in ((0, 0), (2**24, 0), (1.5, 0), (5, 16), (5, -1))),
    (lambda: centers().cost_steps([], 9), r"sets must be one or more sets of centres; pass arrays"),
    *((lambda r=r: centers().norm_counts(np.eye(2), r, 1), r"radii must be ascending whole numbers")
      for r in ([2, 1], [0.5], [[1]], [-1], [2**31])),
    (lambda: centers().residuals(np.full((2, 2), 2.0**30), 9, 1), r"centres are too far out"),
    *((lambda a=a: centers().cells(a), r"axes \(shape .*\) must be at most 62 columns; pass Hal")
      for a in ([0] * 63, [[0]])),
    *((lambda a=a: centers().cells(a), r"axes must lie in 0..1; pass columns to halve")
      for a in ([2], [0, -1])),
    (lambda: centers().walk(np.eye(2)).range([0], [0.5], "add"), r"adjacency \('add'\) must be"),
    (lambda: centers().range(np.zeros((1, 2, 2)), "add"), r"adjacency \('add'\) must be"),
    (lambda: centers().at(np.eye(2)).scores([0, 1], [[0, 0]]), r"which \(shape .* must match"),
    (lambda: centers().at(np.eye(2)).scores([0], [[0, 0, 0]]), r"one new centre with 2 columns"),
    *((lambda i=i: centers().at(np.eye(2)).scores([i], [[0, 0]]), r"which must hold indices in 0")
      for i in (-1, 2, 0.0)),
    (lambda: centers().at(np.eye(2)).scores([0], [[0.3, 0]]), r"P must lie on the grid"),
]  # fmt: skip

FACILITY: list[Case] = [
    *((partial(facility, bits=b), r"bits \(.*\) must be 16 or 8; pass one of them")
      for b in (4, 32, "8", None)),
    *((partial(facility, clip=c), r"clip must be two numbers; pass clip=\(lo, hi\)")
      for c in (None, 3, (1,), (1, 2, 3), ("a", "b"))),
    *((partial(facility, clip=c), r"clip \(.*\) must increase from 0 or more to a finite bound")
      for c in ((-1, 1), (1, 1), (2, 1), (0, np.inf), (np.nan, 1), (0, np.nan))),
    *((partial(facility, facilities=f), r"facilities \(shape .*\) must be a non-empty, finite")
      for f in (np.eye(2)[0], np.empty((0, 2)), np.array([[0, np.nan]]), 0.0)),
    (lambda: facility(facilities=np.eye(3)), r"X has 2 columns but facilities 3; pass equal"),
    (lambda: facility(facilities=np.eye(2) * 1e6), r"facilities are too far outside the domain"),
    *((lambda P=P: facility().scores(P), r"P \(shape .*\) must be sets of facilities; pass indices")
      for P in ([0, 1], np.empty((0, 2), dtype=int), np.empty((2, 0), dtype=int), 0)),
    (lambda: facility().scores([[0.0, 1.0]]), r"P \(dtype float64\) must hold whole numbers"),
    *((lambda i=i: facility().scores([[0, i]]), r"P must hold indices in 0..1; pass indices")
      for i in (-1, 2)),
    (lambda: facility().range([[0], [1]], "x"), r"adjacency \('x'\) must be"),
    (lambda: facility().at([0, 1]).scores([0, 1], [0]), r"which \(shape .* one length; pass one"),
    *((lambda i=i: facility().at([0, 1]).scores([i], [0]), r"which must hold positions in 0..1")
      for i in (-1, 2, 0.0)),
    (lambda: facility().at([0, 1]).scores([0], [5]), r"P must hold indices in 0..1"),
    *((partial(facility, metric=m), r"metric \(.*\) must be 'l1', 'l2' or a function; pass metric")
      for m in ("l3", None, 2)),
    *((partial(FacilityObjective.of_distances, D, (0, 1)), r"distances \(\d dimensions, dtype .*\)")
      for D in ([1.0, 2.0], np.empty((0, 2)), [["a"]], 0.0)),
    (lambda: facility(metric=own, X=X[:0]), r"X and facilities must hold at least one record and"),
    (lambda: facility(metric=own, facilities=[]), r"X and facilities must hold at least one recor"),
    (lambda: facility(metric=lambda x, f: own(x, f).T),
     r"metric must return one row per record and 2 columns, one per facility; return an array"),
    (lambda: facility(metric=lambda x, f: own(x, f) * np.nan), r"metric returned NaN; return a n"),
    (lambda: facility(metric=lambda x, f: own(x - x.mean(axis=0), f) * 1e-6),
     r"metric must treat each record by itself; a record by itself got another"),
    *((lambda r=r: facility().growth().covered(r), r"radius \(.*\) must lie in 0..4095; pass a di")
      for r in (-1, 4096)),
    *((lambda b=b: facility().narrowed(*b), r"low \(.*\) and high \(.*\) must increase within "
                                            r"0..4096")
      for b in ((-1, 5), (5, 5), (7, 4), (0, 4097))),
    (lambda: facility(X=np.eye(4), facilities=np.eye(4)).check_cells(), r"cells are found"),
    (lambda: facility(metric=own).cells([0]), r"cells are found for l1 and l2 distances of at"),
    (lambda: facility().cells([2]), r"axes must lie in 0..1; pass columns to halve"),
    (lambda: facility().growth().add(2), r"P must hold indices in 0..1"),
    (lambda: facility().growth().range("x"), r"adjacency \('x'\) must be"),
    (lambda: facility().at([0, 1]).range([0], [1], "x"), r"adjacency \('x'\) must be"),
]  # fmt: skip

RECORD: list[Case] = [
    (lambda: record(score="total"), r"score must be a function; pass score\(records, P\)"),
    *((partial(record, low=v), r"low \(.*\) must be a finite number; pass a public bound")
      for v in (np.nan, -np.inf, "0", True)),
    *((partial(record, high=v), r"high \(.*\) must be a finite number; pass a public bound")
      for v in (np.nan, np.inf, "0", True)),
    *((partial(record, low=v), r"low \(.*\) must be below high \(1\); pass the public bounds")
      for v in (1, 2.0)),
    *((partial(record, low=low, high=high), r"high - low \(.*\) must lie in 1e-100..1e100; pass")
      for low, high in ((0, 1e-200), (-1e308, 1e308))),
    *((partial(record, bits=b), r"bits \(.*\) must be a whole number from 1 to 30; pass bits=16")
      for b in (0, 31, 8.0, True, "8")),
    *((partial(record, block=b), r"block \(.*\) must be a positive number; pass block=4096")
      for b in (0, 1.5, True)),
    (lambda: record(records=X[:0]), r"records must hold at least one record"),
    (lambda: record().scores([]), r"P must hold at least one candidate"),
    (lambda: record(score=lambda r, P: total(r, P).T[:1]).check([1, 2]),
     r"score returned another shape for each of the first records; return an array \(n, m\), here"),
    (lambda: record(score=lambda r, P: {}[r[0, 0]]).check([1, 2]),
     r"score raised KeyError for each of the first records"),
    (lambda: record(score=lambda r, P: total(r - r.mean(axis=0), P)).check([1e-6]),
     r"score must treat each record by itself; a record by itself got another value than in a "
     r"block"),
    (lambda: record().range([1, 2], "removal"), r"adjacency \('removal'\) must be"),
    (lambda: record(n_threads=0), r"n_threads \(0\) must be a whole number of at least 1"),
    (lambda: record(moves=3), r"moves must be a function; pass moves\(records, w, where, what\)"),
    (lambda: record(score="no_such_module:total"),
     r"score \('no_such_module:total'\) must name a compiled function; pass 'module:function'"),
    *((partial(record, score=f"{module}:nothing"), r"score \(.*\) must name a compiled function")
      for module in ("math", "", "privfit._kernels.scored")),
    (lambda: record(score="math:sqrt"),
     r"score must be a compiled function that declares its types; pass a scipy.LowLevelCallable"),
    (lambda: record(score=ctypes.pythonapi.Py_IsInitialized),
     r"score must be a compiled function that declares its types"),
    (lambda: record(score=ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(abs)),
     r"score \(signature 'double \(double\)'\) must have another signature; pass a function void "
     r"\(const double \*record, intptr_t n_columns, const double \*candidates, intptr_t n_coord"),
    (lambda: record(score=compiled.moves(nothing)), r"score \(signature .*\) must have another s"),
    (lambda: record(moves=compiled.score(nothing)), r"moves \(signature .*\) must have another s"),
    (lambda: record(score=compiled.score(nothing), records=[["a", "b"]]), r"X must hold numbers"),
    (lambda: record(score=compiled.score(nothing), records=np.zeros((3, 0))),
     r"records \(dtype float64\) must be rows of numbers for a compiled function; pass an array"),
    (lambda: record(score=compiled.score(nothing), records=X + 1j),
     r"records \(dtype complex128\) must be rows of numbers for a compiled function"),
    (lambda: record(score=compiled.score(nothing), records=X[:0]),
     r"records must hold at least one record"),
    (lambda: record(score=compiled.score(counting())).check([1, 2]),
     r"score must treat each record by itself; a record got another value after other records"),
    (lambda: record(moves=lambda r, w, i, v: total(r, v) + 1).check([1], Reals(0, 1, 1)),
     r"moves must return the scores of the moved candidates, to the unit; pass a function"),
    (lambda: record(moves=compiled.moves(nothing)).moved_scores(1, [0, 1], np.ones((2, 2))),
     r"what \(shape \(2, 2\)\) must be a number for each move, where \(shape \(2,\)\) a position"),
    (lambda: refuse_missing(_found_here("", "score")),
     r"score is a compiled function of another process, whose address means nothing here; pass"),
]  # fmt: skip

THREADS: list[Case] = [
    *((partial(threads.resolve, n), r"n_threads \(.*\) must be a whole number of at least 1; pass")
      for n in (0, -1, 2.0, "4", False)),
]  # fmt: skip

ALL = [*DOMAINS, *RECORDS, *LINEAR, *CENTERS, *FACILITY, *RECORD, *THREADS]


@pytest.mark.few(7)
@pytest.mark.parametrize(
    ("call", "message"),
    ALL,
    ids=[f"{i} {re.sub('[^a-zA-Z0-9_]+', ' ', text)[:40]}" for i, (_, text) in enumerate(ALL)],
)
def test_wrong_input_has_one_clear_message(call, message):
    with pytest.raises((ValueError, TypeError, ImportError), match=message) as caught:
        call()
    text = str(caught.value)
    assert str(SECRET) not in text
    assert str(LABEL) not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


FEATURES = {"features", "feature_moments"}  # tests/objectives/test_features.py has their cases


def test_every_raise_is_reached_by_a_case_above():
    package = Path(privfit.__file__).parent
    sources = [
        *(s for s in package.glob("domains/*.py") if s.stem not in {"frames", "reading"}),
        *(
            package / "records" / f"{name}.py"
            for name in (
                "packing",
                "candidates",
                "cells",
                "centers",
                "compiled",
                "facilities",
                "layouts",
                "linear",
                "rows",
                "scored",
                "smooth",
            )
        ),
        *(s for s in package.glob("objectives/*.py") if s.stem not in FEATURES),
    ]
    seen = "\n".join(messages_of(call) for call, _ in ALL)
    assert_reached(sources, seen)
    assert sum(len(raises_in(source)) for source in sources) > 50


def test_no_object_shows_private_values(rng):
    objectives = [linear(), centers(), facility(), record()]
    views = [
        objectives[0].at(np.zeros(3)), objectives[1].at(np.eye(2)), objectives[2].at([0, 1]),
        objectives[2].growth(), objectives[0]._sums, packed(objectives[0]), pack(X, UNIT.bind(2)),
        pack(X, UNIT.bind(2), layout="sparse"),
    ]  # fmt: skip
    for shown in (*objectives, *views):
        for text in (repr(shown), str(shown), f"{shown}"):
            assert "123456" not in text
            assert "array" not in text
            assert len(text) < 200


@pytest.mark.parametrize("make", [linear, centers, facility])
def test_a_failed_call_leaves_an_objective_as_it_was(make):
    objective = make()
    P = {linear: np.zeros((1, 3)), centers: np.zeros((1, 2, 2)), facility: [[0, 1]]}[make]
    before = objective.scores(P)
    for wrong in (np.zeros((0, 3)), [[0.3]], "x", None, [[[[np.nan]]]]):
        with pytest.raises((ValueError, TypeError)):
            objective.scores(wrong)
        with pytest.raises((ValueError, TypeError)):
            objective.at(wrong)
    assert np.array_equal(objective.scores(P), before)


def test_wrong_simd_setting_is_refused(fresh_python):
    done = fresh_python("import privfit", PRIVFIT_SIMD="avx1024")
    assert done.returncode == 1
    assert "PRIVFIT_SIMD ('avx1024') must be 'auto' or 'baseline'; unset it" in done.stderr
