"""What a report of a problem shows."""

from __future__ import annotations

import sys

import privfit
from privfit._kernels import cpu


def test_versions_name_what_runs(capsys):
    privfit.show_versions()
    shown = capsys.readouterr().out
    for text in (privfit.__version__, "numpy", "OpenMP: ", f"instruction set: {cpu.active()}",
                 "threads: ", "BLAS:"):  # fmt: skip
        assert text in shown


def test_versions_do_not_need_what_is_not_installed(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.setattr("privfit.report.versions.PACKAGES", ("no_such_package",))
    privfit.show_versions()
    shown = capsys.readouterr().out
    assert "no_such_package: not installed" in shown
    assert "threadpoolctl is not installed" in shown
