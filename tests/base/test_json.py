"""One place writes and reads JSON, and what is encoded comes back as it was."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import privfit
from privfit.base.errors import FileError
from privfit.base.json import as_array, decoded, encoded, parse, plain, write
from privfit.runs.settings import Settings


def test_nobody_else_imports_json():
    package = Path(privfit.__file__).parent
    importing = [
        str(source.relative_to(package))
        for source in package.rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Import) and any(alias.name == "json" for alias in node.names)
    ]
    assert importing == [str(Path("base", "json.py"))]


def no_other(value):
    raise AssertionError(f"{value!r} needs no object of its own")


@pytest.mark.parametrize("code", [None, lambda dtype: dtype.str], ids=["name", "code"])
@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2**63 + 1], dtype=np.uint64),
        np.array([[-(2**63)], [2**63 - 1]]),
        np.array([0.1, -0.0, 5e-324]),
        np.array([[True], [False]]),
        np.array([3, -4], dtype=np.int16),
        np.array([], dtype=np.int64),
    ],
    ids=lambda value: value.dtype.name,
)
def test_arrays_come_back_bit_for_bit(value, code):
    text = write({"value": encoded(value, no_other, code)})
    again = decoded(parse(text)["value"], no_other, "value")
    assert (again.dtype, again.shape, again.tobytes()) == (
        value.dtype,
        value.shape,
        value.tobytes(),
    )


def test_tuples_and_numbers_come_back():
    value = [(1, "a", None, 0.5), [True, np.int64(3)]]
    text = write({"value": encoded(value, no_other)})
    assert decoded(parse(text)["value"], no_other, "value") == [(1, "a", None, 0.5), [True, 3]]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1], "<i16"), ([1], "O"), ([1], "complex128"), ([1.5], "<i8"), ([[1], [1, 2]], "uint64"),
     ("1", "<i8"), ([-1], "|u1")],
)  # fmt: skip
def test_arrays_that_would_change_are_refused(values, dtype):
    with pytest.raises(FileError, match="x must be a list of values of dtype"):
        as_array(values, dtype, "x")


def test_infinity_is_read_where_it_may_stand():
    text = write({"clip": float("inf"), "gap": float("nan")})
    assert text == '{"clip": Infinity, "gap": NaN}'
    assert parse(text, finite=False)["clip"] == float("inf")
    with pytest.raises(FileError, match="Infinity is not a finite number"):
        parse(text)


def test_a_field_that_is_given_twice_is_refused():
    for finite in (True, False):
        with pytest.raises(FileError, match="a field is given twice"):
            parse('{"a": 1, "a": 2}', finite=finite)
        with pytest.raises(FileError, match="the field 'a' is given twice"):
            parse('{"b": {"a": 1, "a": 2, "c": 3, "c": 4}}', finite=finite, public={"a", "b"})


def test_what_json_has_no_form_for_is_written_as_it_prints():
    assert plain(privfit.Event("pure", 0.5))["parameter"] == 0.5
    assert write({"b": np.float32(0.5), "a": Settings}, in_order=True) == (
        f'{{"a": "{Settings!r}", "b": 0.5}}'
    )
    assert write("é", ascii=False) == '"é"'
