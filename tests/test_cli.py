"""The command."""

from __future__ import annotations

import re
from functools import partial

import pytest

import privfit
from privfit import cli
from privfit.cli import main


def test_demo_fits_with_and_without_privacy(capsys, monkeypatch):
    monkeypatch.setattr(cli, "_race", partial(cli._race, rounds=1))
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"privfit {privfit.__version__}: ")
    accuracies = [float(value) for value in re.findall(r"accuracy (0\.\d{4})  ", out)]
    exposed, loose, strict, larger = accuracies
    # Fresh bits at each run: of 12, means 0.883 and 0.847, deviations 0.0012 and 0.0031; the bounds
    # are more than 20 deviations away.
    assert abs(exposed - loose) < 0.03
    assert strict > larger + 0.02
    assert "Ledger(epsilon 1.1, delta 2e-06; spent epsilon 1.1, delta 2e-06)" in out
    times = re.search(r"records: ([\d.]+) ms, exactly; numpy (\d+) ms, (\d+) times slower", out)
    assert all(float(value) > 0 for value in times.groups()[:2])


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
