"""What a command refuses, it refuses in the words of the command line."""

from __future__ import annotations

import re

import numpy as np
import pytest

from privfit.commands.main import main
from privfit.commands.wording import SENTENCES, in_options

LABELS = '[data]\nlabel = "rich"\nclasses = ["no", "yes"]\n[columns]\n'
SCHEMAS = {
    "plain": 'age = {low = 0, high = 100}\nsex = {values = ["f", "m"]}\n',
    "blank": 'age = {kind = "number"}\n',
    "names": 'age = {low = 0, high = 100}\nsex = {kind = "category", names = "bought"}\n',
    "huge": "age = {low = 0, high = 1e300}\n",
    "grid": "age = {low = 0, high = 100}\n[grid]\na = 40\n",
}
PUBLIC = "--n-public must be given under --adjacency add_remove"
SVM = ["--model", "svm"]
# Arguments after `fit --schema plain.toml --epsilon 1`, and what must be said.
FIT = {
    "size": (["--adjacency", "add_remove", "--delta", "1e-6"], f"{PUBLIC}, where the number of"),
    "steps": (["--adjacency", "add_remove", "--solver", "frank_wolfe"],
              "is private; pass a public estimate\n"),
    "generations": (["--adjacency", "add_remove", "--solver", "local"],
                    "is private; pass a public estimate\n"),
    "blocks": (["--adjacency", "add_remove", "--solver", "gupt"],
               "is private; pass a public estimate\n"),
    "C": ([*SVM, "--C", "3", "--solver", "local"],
          "--C (3.0) must be 1.0 for solver 'local', which does not weigh its loss; pass --solver "
          "eem, privgene, or leave --C out"),
    "no C": ([*SVM, "--C", "-1"], "--C (-1.0) must be a positive number; pass --C 1.0"),
    "weights": (["--solver", "eem", "--class-weight", "balanced"],
                "--class-weight ('balanced') must be left out for solver 'eem', which does not "
                "weigh slopes; pass --solver gradient, or leave --class-weight out"),
    "negative": (["--class-weight", "no=-1,yes=2"], "--class-weight must be 'balanced' or positive"
                 " numbers by class; pass such as no=1,yes=10"),
    "delta": (["--solver", "additive"], "pass --delta 1e-6, or --solver objective or local\n"),
    "unknown": (["--solver", "x"], "gupt, majority; pass one of them"),
    "majority": (["--solver", "majority", "--no-intercept"],
                 "leave out --no-intercept, or pass another --solver"),
    "svm alone": (["--solver", "privatesvm"], "pass --solver output, or --model svm"),
    "logistic alone": ([*SVM, "--solver", "functional"], "pass --model logistic"),
    "names": (["--schema", "names.toml"], 'pass --delta 1e-6, or {kind = "category"}, whose'),
    "range": (["--schema", "huge.toml"], "column 'age': its range (0, 1e+300) must be finite"),
    "grid": (["--schema", "grid.toml"], "pass a = 12, b = 10, c = 12 in its table [grid]"),
    "noise": (["--epsilon", "1e-7", "--solver", "functional"], "pass a larger epsilon\n"),
    "too small": (["--epsilon", "1e-7", "--solver", "gradient"], "pass a larger --epsilon\n"),
    "spent": (["--ledger", "small.json"], "pass a smaller --epsilon, or create a larger budget"),
    "relation": (["--ledger", "added.json", "--epsilon", "0.01"],
                 "pass --adjacency add_remove, or another --ledger"),
}  # fmt: skip
CLUSTER = {
    "places": (["--places", "places.csv", "--clusters", "40"],
               "--clusters (40) must be at most the number of places (2); pass fewer --clusters"),
    "blanks": (["--schema", "blank.toml", "--clusters", "auto"],
               "the schema has the blanks 'age', which this command does not buy; buy them by"),
    "chain": (["--clusters", "2", "--solver", "eem", "--postprocess", "mcmc"],
              "does not release; pass --solver lloyd, tree, hybrid or over_seeded"),
    "cells": (["--clusters", "2", "--solver", "grid", "--adjacency", "add_remove"],
              "is private; pass a public estimate\n"),
}  # fmt: skip
PYTHON = re.compile(r"\b[a-z]+_[a-z_]+=|\b(solver|delta|adjacency|domain|classes)=|[A-Z]\w+\(\w*=")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    coins = np.random.default_rng(5)
    cells = zip(coins.integers(20, 80, 60), coins.choice(["f", "m"], 60), strict=True)
    lines = [f"{age},{sex},{'yes' if age > 50 else 'no'}" for age, sex in cells]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,rich", *lines]) + "\n")
    (tmp_path / "places.csv").write_text("age\n1\n99\n")
    for name, text in SCHEMAS.items():
        (tmp_path / f"{name}.toml").write_text(LABELS + text)
    for name, more in (("small", []), ("added", ["--adjacency", "add_remove"])):
        create = ["budget", "--create", "--ledger", f"{name}.json", "--epsilon", "0.1"]
        assert main([*create, "--delta", "1e-6", "--quiet", *more]) == 0
    return tmp_path


def check(capsys, arguments, sentence):
    assert main(arguments) in (2, 3)
    said = capsys.readouterr().err
    assert sentence in said
    assert not PYTHON.search(said)
    assert said.count("\n") == 1


@pytest.mark.few(8)
@pytest.mark.parametrize("name", FIT)
def test_a_refused_fit_names_options(folder, capsys, name):
    options, sentence = FIT[name]
    start = ["fit", "people.csv", "--schema", "plain.toml", "--epsilon", "1", "--out", "m.json"]
    check(capsys, [*start, *options], sentence)


@pytest.mark.parametrize("name", CLUSTER)
def test_refused_clusters_name_options(folder, capsys, name):
    options, sentence = CLUSTER[name]
    start = ["cluster", "people.csv", "--schema", "plain.toml", "--columns", "age", "--epsilon",
             "1", "--out", "c.json"]  # fmt: skip
    check(capsys, [*start, *options], sentence)


def test_other_commands_name_options_too(folder, capsys):
    check(capsys, ["show", "plain.toml"], "pass")
    (folder / "sweep.json").write_text("{}")
    check(capsys, ["show", "sweep.json"], "pass one that privfit fit, cluster or roc wrote")


def test_a_sentence_without_parameters_stays_as_it_is():
    for sentence in ("column 'age' has cells that are no numbers; set fill in its line",
                     "--target ('rihc') must be a column; pass one"):  # fmt: skip
        assert in_options(sentence) == sentence
    assert len({pattern for pattern, _ in SENTENCES}) == len(SENTENCES)
