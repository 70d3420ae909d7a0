"""Options that take several values: with spaces, with commas, or given again."""

from __future__ import annotations

import argparse

import pytest

from privfit.base.errors import InputError
from privfit.commands.arguments import EPSILON, add_list
from privfit.commands.main import _parser


@pytest.mark.parametrize("given", [
    ["--columns", "age", "hours", "job"], ["--columns", "age,hours,job"],
    ["--columns", "age, hours", "--columns", "job"], ["--columns", "age", "hours,job"],
])  # fmt: skip
def test_a_list_is_the_same_however_it_is_written(given):
    fit = ["fit", "people.csv", "--schema", "s.toml", "--epsilon", "1", "--out", "m.json"]
    assert _parser().parse_args([*fit, *given]).columns == ["age", "hours", "job"]
    buy = ["--number" if one == "--columns" else one for one in given]
    assert _parser().parse_args(["schema", "a.csv", *buy]).number == ["age", "hours", "job"]
    keep = ["--keep" if one == "--columns" else one for one in given]
    assert _parser().parse_args(["predict", "m", "a.csv", *keep]).keep == ["age", "hours", "job"]


def test_numbers_classes_and_missing_texts_are_lists_too():
    sweep = ["sweep", "a.csv", "--schema", "s.toml", "--out", "o.json", "--epsilons", "0.1,1", "3"]
    options = _parser().parse_args([*sweep, "--classes", '"no, never",yes'])
    assert options.epsilons == [0.1, 1.0, 3.0]
    assert options.classes == ["no, never", "yes"]
    assert _parser().parse_args(["schema", "a.csv", "--missing", "NA,?"]).missing == ["NA", "?"]
    assert _parser().parse_args(["budget", "--selections", "10,20"]).selections == [10, 20]
    assert _parser().parse_args(["budget"]).selections == [10, 101, 1001]


@pytest.mark.parametrize(("text", "message"), [
    ("", r"\(''\) must be values with commas or spaces between them; pass such as a,b"),
    ("0.1,,2", r"must be values with commas or spaces between them"),
    ("0.1,x", r"\('x'\) must be a number from"),
])  # fmt: skip
def test_an_empty_or_wrong_part_is_refused(text, message):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_list(parser, "--epsilons", EPSILON)
    with pytest.raises(argparse.ArgumentError, match=message):
        parser.parse_args(["--epsilons", text])


def test_a_table_that_a_list_swallowed_is_asked_for():
    with pytest.raises(InputError, match=r"required: data; pass the table first, before options"):
        _parser().parse_args(["schema", "--number", "age", "people.csv"])
