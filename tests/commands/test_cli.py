"""The command: its parser, the way it ends, and the demo."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from makers.places import ROOT

import privfit
from privfit._kernels.random import BitSource
from privfit.base.errors import FileBusyError
from privfit.commands import COMMANDS, demo
from privfit.commands.console import EXIT_CODES, end_of
from privfit.commands.main import _parser, main


@pytest.mark.slow
def test_demo_fits_with_and_without_privacy(capsys, monkeypatch):
    monkeypatch.setattr(demo, "_race", partial(demo._race, rounds=1))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # runs without any extra
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"privfit {privfit.__version__}: ")
    accuracies = [float(value) for value in re.findall(r"accuracy (0\.\d{4})  ", out)]
    exposed, loose, strict, larger = accuracies
    # Fresh bits at each run: of 12, means 0.889 and 0.868, deviations 0.0015 and 0.0030; the bounds
    # are more than 15 deviations away.
    assert abs(exposed - loose) < 0.03
    assert strict > larger + 0.02
    assert "Ledger(epsilon 1.1, delta 2e-06; spent epsilon 1.1, delta 2e-06; replace)" in out
    times = re.search(r"records: ([\d.]+) ms, exactly; numpy (\d+) ms, (\d+) times slower", out)
    assert all(float(value) > 0 for value in times.groups()[:2])
    assert re.fullmatch(r'no plot: a plot needs matplotlib; run pip install ".*\[plot\]"\n', err)
    assert min(map(int, re.findall(r"delta 1e-6: (\d+) private draws, ", out))) > 20  # not one


def test_demo_draws_where_it_can(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "N", 2000)
    monkeypatch.setattr(demo, "SPLITS", 2)
    monkeypatch.setattr(demo, "_race", partial(demo._race, rounds=1))
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["picture"] == str(tmp_path / demo.PICTURE)
    assert (tmp_path / demo.PICTURE).read_bytes().startswith(b"\x89PNG")
    assert list(result["accuracies"]) == ["not private", "epsilon 1", "epsilon 0.1", "larger class"]


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"privfit {privfit.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--fast"], ["fit", "data.csv"]])
def test_a_wrong_command_says_how_to_call_it(arguments, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("privfit: error: ")
    assert "--help lists the options" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", [one.__name__.split(".")[-1] for one in COMMANDS])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: privfit {command}")
    assert "--json" in out
    assert re.search(rf"^example:\n  privfit {command}\b", out, re.M)
    with pytest.raises(SystemExit):
        main([command, "--help-all"])
    whole = capsys.readouterr().out
    assert len(whole) > len(out)
    parser = argparse.ArgumentParser()
    next(one for one in COMMANDS if one.__name__.endswith(f".{command}")).add(parser)
    for action in parser._actions:
        for name in action.option_strings[-1:]:
            assert re.search(rf"{name}\b", out)
            assert re.search(rf"{name}\b", whole)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.__name__.split(".")[-1])
def test_help_fits_a_screen_and_its_example_is_of_this_command(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([command.__name__.split(".")[-1], "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    _parser().parse_args(shlex.split(command.EXAMPLE)[1:])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.__name__.split(".")[-1])
def test_every_option_is_read_by_its_command(command):
    parser = argparse.ArgumentParser()
    command.add(parser)
    texts, todo = {}, [command.__name__]
    while todo:
        name = todo.pop()
        texts[name] = Path(sys.modules[name].__file__).read_text()
        imported = re.findall(r"^from (privfit\.commands\.\w+) import", texts[name], re.M)
        todo += set(imported) - texts.keys()
    said = "".join(texts.values())
    options = {action.dest for action in parser._actions} - {"help"}
    assert {name for name in options if f"options.{name}" not in said} == set()


def test_help_lists_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    codes = [int(code) for code in re.findall(r"^ +(\d+)  ", capsys.readouterr().out, re.M)]
    assert codes == [0, 1, 2, 3, 4, 130, 141, 143]


PAGE = ROOT / "docs" / "cli.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not shipped with these tests")
def test_the_page_calls_commands_that_exist():
    text = PAGE.read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    lines = re.findall(r"^privfit.*", blocks, re.M)
    calls = [shlex.split(line, comments=True)[1:] for line in lines]
    assert {call[0] for call in calls} == {one.__name__.split(".")[-1] for one in COMMANDS}
    for call in calls:
        _parser().parse_args(call[: call.index(">")] if ">" in call else call)
    codes = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.M)
    assert [f"{code}  {meaning}" for code, meaning in codes] == [
        line.strip() for line in EXIT_CODES.splitlines()[1:]
    ]


@pytest.mark.slow
def test_the_module_runs_as_a_program_without_extras(fresh_python):
    done = fresh_python(
        "import runpy, sys; sys.argv = ['privfit', 'budget', '--json', '--selections', '10'];"
        "extras = ['pandas', 'tqdm', 'matplotlib', 'pyarrow', 'filelock'];"
        "sys.modules.update(dict.fromkeys(extras));"
        "runpy.run_module('privfit', run_name='__main__')"
    )
    assert done.returncode == 0
    each = json.loads(done.stdout)["epsilon_each"]
    assert each["naive"]["10"] == pytest.approx(0.1)
    assert each["tight"]["10"] == pytest.approx(privfit.calibrate(10, epsilon=1.0, delta=1e-6))


@pytest.mark.slow
def test_budget_prints_every_theorem(capsys):
    assert main(["budget", "--epsilon", "1", "--delta", "1e-6", "--selections", "1001"]) == 0
    out = capsys.readouterr().out
    assert "0.01495" in out
    assert re.findall(r"^(\w+) +[\d.]+$", out, re.M) == [
        "naive", "advanced", "kov", "kov_exact", "rdp", "bounded_range", "zcdp", "tight"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--epsilon", "0"], "--epsilon ('0') must be a number from 1e-09"),
        (["--delta", "2"], "--delta ('2') must be a number from 0"),
        (["--selections", "0"], "--selections ('0') must be a whole number"),
        (["--create"], "--create and --plot are for a budget file; pass --ledger FILE"),
        (["--by-name"], "--by-name is for a plot; pass --plot FILE"),
        (["--renewal", "month"], "--renewal is declared with a new budget file; pass --create"),
        (["--log"], "--adjacency and --log are for a budget file; pass --ledger FILE"),
        (
            ["--adjacency", "replace"],
            "--adjacency and --log are for a budget file; pass --ledger FILE",
        ),
    ],
)
def test_budget_refuses_what_is_no_budget(arguments, sentence, capsys):
    assert main(["budget", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_errors_of_unknown_origin_are_told_by_type_alone():
    for error in (ValueError("secret"), KeyError("secret"), ZeroDivisionError("secret")):
        code, sentence = end_of(error)
        assert code == 1
        assert sentence.startswith(f"{type(error).__name__} inside privfit; its text is withheld")
        assert "secret" not in sentence


@pytest.mark.parametrize("quote", [float, ["a"].index, Fraction])
def test_errors_of_built_in_functions_are_told_by_type_alone(quote):
    with pytest.raises(ValueError, match="secret") as caught:
        quote("secret")
    code, sentence = end_of(caught.value)
    assert (code, "secret" in sentence) == (1, False)


def test_errors_of_kernels_are_told():
    with pytest.raises(ValueError, match="must not be negative") as caught:
        BitSource(-1)
    assert end_of(caught.value)[0] == 2


def test_errors_of_privfit_are_told():
    assert end_of(privfit.DeclarationError("n must be")) == (2, "n must be")
    assert end_of(privfit.InputTypeError("pass another")) == (2, "pass another")
    assert end_of(privfit.MissingExtraError("run pip install")) == (2, "run pip install")
    assert end_of(privfit.BudgetError("too much")) == (3, "too much")
    assert end_of(MemoryError("secret"))[0] == 2
    assert end_of(KeyboardInterrupt())[0] == 130


def test_errors_of_files_have_a_remedy():
    assert end_of(OSError(28, "No space left on device")) == (
        2, "the output is on a full disk; free some space, or pass a path on another disk"
    )  # fmt: skip
    assert end_of(PermissionError(13, "", "a.csv"))[1].startswith("'a.csv' cannot be accessed")
    assert end_of(OSError(5, "", "a.csv"))[1].startswith("'a.csv' cannot be used: input/output")
    assert end_of(FileBusyError("the budget file is locked; wait")) == (
        2,
        "the budget file is locked; wait",
    )
