"""The command."""

from __future__ import annotations

import re
from functools import partial

import pytest

import privfit
from privfit import cli
from privfit.cli import main


def test_demo_shows_exactness_and_speed(capsys, monkeypatch):
    monkeypatch.setattr(cli, "_race", partial(cli._race, rounds=1))
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"privfit {privfit.__version__}: exact scores on ")
    assert len(re.findall(r"bit for bit: +True", out)) == 2
    assert "False" not in out
    assert float(re.search(r"replaced: +([\d.]+) in loss", out)[1]) > 0
    times = re.search(r"privfit +([\d.]+) ms +numpy +([\d.]+) ms +(\d+) times faster", out)
    assert all(float(value) > 0 for value in times.groups()[:2])
    # At most 0.6 units a record, 48,842 records.
    assert float(re.search(r"48,842 records: ([\d.]+) in loss", out)[1]) < 0.6 * 48_842 / 4096


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"privfit {privfit.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--fast"]])
def test_a_wrong_command_says_how_to_call_it(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert "usage: privfit" in error
    assert "error:" in error


def test_the_module_runs_as_a_program(fresh_python):
    done = fresh_python("import runpy, sys; sys.argv = ['privfit', '--version'];"
                        "runpy.run_module('privfit.cli', run_name='__main__')")  # fmt: skip
    assert (done.stdout, done.returncode) == (f"privfit {privfit.__version__}\n", 0)
