"""What every estimator, solver and mechanism releases with fixed seeds is what is on record."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from makers.places import ROOT

import privfit

TOOLS = ROOT / "tools"
if not (TOOLS / "releases.py").exists():
    pytest.skip("the tool is not shipped with these tests", allow_module_level=True)
sys.path.append(str(TOOLS))

import release_cases  # noqa: E402
import releases  # noqa: E402

RECORD = releases.Record.read(ROOT / "tests" / "models" / "releases.json")
NAMED = list(release_cases.every_case())
CASES = dict(NAMED)
COMPARED = sorted(name for name in CASES if name not in RECORD.cases or RECORD.holds_here(name))
GROUPS = {
    group: list(names)
    for group, names in groupby(COMPARED, lambda name: "/".join(name.split("/")[:2]))
}


@pytest.mark.few(40)
@pytest.mark.parametrize("group", GROUPS)
def test_releases_are_as_recorded(group):
    found = releases.run({name: CASES[name] for name in GROUPS[group]})
    assert releases.differences(found, RECORD) == []


def test_every_case_is_on_record_once():
    assert len(NAMED) == len(CASES)
    has_dask = importlib.util.find_spec("distributed") is not None
    assert set(CASES) == {name for name in RECORD.cases if has_dask or not name.startswith("Dask")}


def test_most_cases_are_portable_and_not_refused():
    entries = RECORD.cases.values()
    assert sum(entry.get("portable", True) for entry in entries) > 0.9 * len(entries)
    assert sum("refused" in entry for entry in entries) < 0.05 * len(entries)


# Errors and warnings, declarations that have no release of their own, what releases consist of, and
# arithmetic on public parameters.
NO_CASE = {
    "Budget", "BudgetError", "Chosen", "ChosenK", "ClusterError", "ConfusionMatrix",
    "DeclarationError",
    "DeclarationTypeError", "Domain", "FileAccessError", "FileError", "Found", "InputError",
    "InputTypeError", "MissingExtraError", "Neighbours", "Objective", "PrivacyLeakWarning",
    "PrivfitError", "Release", "RocCurve", "ScoreWarning", "SearchProblem", "SeedWarning", "Solver",
    "SolverError", "Space", "Sweep", "Sweeps", "UnwiseBudgetWarning", "best_threshold",
    "delta_at", "from_dp_accounting", "plan", "show_versions", "to_dp_accounting",
}  # fmt: skip


def test_every_public_name_has_a_case():
    text = (TOOLS / "release_cases.py").read_text(encoding="utf-8")
    used = {name for found in re.findall(r'privfit\.(\w+)|"(\w+)"', text) for name in found}
    assert set(privfit.__all__) - used - NO_CASE == set()


# ------------------------------------------------------------------------- it sees what is planted

NOISE, CHOICE, OTHER = "filter/basic", "mechanism/Exponential", "mechanism/Exponential, range 0"
AGGREGATE = "aggregate/median/9 blocks/pure/replace"


def few() -> Any:
    """The record of these cases, made now."""
    return releases.run({name: CASES[name] for name in (NOISE, CHOICE, AGGREGATE)})


def test_another_number_is_reported(monkeypatch):
    drawn = privfit.DiscreteLaplace.__call__
    monkeypatch.setattr(
        privfit.DiscreteLaplace, "__call__", lambda self, *value: drawn(self, *value) + 99
    )
    lines = [f"{NOISE}: numbers differ", f"{AGGREGATE}: numbers differ"]
    assert releases.differences(few(), RECORD) == lines


def test_a_renamed_setting_is_reported_apart_from_the_numbers(monkeypatch):
    written = privfit.Release.to_json
    monkeypatch.setattr(
        privfit.Release, "to_json", lambda self: written(self).replace('"blocks"', '"parts"')
    )
    assert releases.differences(few(), RECORD) == [f"{AGGREGATE}: settings differ"]


def test_a_refusal_is_reported_and_so_is_its_end(monkeypatch):
    def refuse(self: Any, *value: Any) -> None:
        raise ValueError("not today")

    found = few()
    monkeypatch.setattr(privfit.Exponential, "__call__", refuse)
    refused = few()
    assert releases.differences(refused, RECORD) == [f"{CHOICE}: refused"]
    assert releases.differences(found, refused) == [f"{CHOICE}: no longer refused"]


def test_an_error_that_is_no_refusal_is_not_taken_for_one(monkeypatch):
    monkeypatch.delattr(privfit.Exponential, "__call__")
    with pytest.raises(NotImplementedError):
        few()


def test_a_case_without_a_record_is_reported():
    known = {name: entry for name, entry in RECORD.cases.items() if name != CHOICE}
    assert releases.differences(few(), replace(RECORD, cases=known)) == [f"{CHOICE}: not on record"]


# ------------------------------------------------------------------------------- the command line


def planted(path: Any, name: str, **changes: Any) -> None:
    """The record with another entry for a case, in a file."""
    cases = {**RECORD.cases, name: {**RECORD.cases.get(name, {}), **changes}}
    replace(RECORD, cases=cases).write(path)


def test_comparing_names_what_differs_and_exits_with_one(tmp_path, capsys):
    path, wanted = tmp_path / "record.json", ["--filter", "^mechanism/(Exponential|Old)"]
    RECORD.write(path)
    assert json.loads(path.read_text()) == {"made_with": RECORD.made_with, "cases": RECORD.cases}
    assert releases.main(["--compare", str(path), *wanted]) == 0
    assert capsys.readouterr().out == "0 of 2 cases differ\n"
    planted(path, CHOICE, numbers="0" * 20)
    assert releases.main(["--compare", str(path), *wanted]) == 1
    assert capsys.readouterr().out == f"{CHOICE}: numbers differ\n1 of 2 cases differ\n"
    planted(path, "mechanism/Old", numbers="0" * 20)
    assert releases.main(["--compare", str(path), *wanted]) == 1
    assert "mechanism/Old: no such case\n" in capsys.readouterr().out


def test_what_is_not_portable_is_compared_only_where_it_was_made(tmp_path, capsys):
    path = tmp_path / "record.json"
    planted(path, CHOICE, numbers="0" * 20, portable=False)
    record = releases.Record.read(path)
    here = replace(record, made_with=releases.made_with())
    there = replace(record, made_with={**releases.made_with(), "numpy": "0.1"})
    found = few()
    assert releases.differences(found, here) == [f"{CHOICE}: numbers differ"]
    assert releases.differences(found, there) == []
    there.write(path)
    assert releases.main(["--compare", str(path), "--filter", f"^{CHOICE}$"]) == 0
    assert "1 are not portable and were made with" in capsys.readouterr().out


def test_recording_marks_what_differs_elsewhere_and_keeps_marks(tmp_path):
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    planted(there, CHOICE, numbers="0" * 20)
    wanted = ["--filter", "^mechanism/Exponential", "--out", str(here)]
    assert releases.main([*wanted, "--against", str(there)]) == 0
    assert releases.main(wanted) == 0  # once more, on top of it
    found = releases.Record.read(here)
    assert found.made_with == releases.made_with()
    assert found.cases == {
        CHOICE: {**RECORD.cases[CHOICE], "portable": False},
        OTHER: RECORD.cases[OTHER],
    }
    assert len(here.read_text().splitlines()) == 2 + 2 + 1


def test_a_dump_shows_all_that_was_released(tmp_path):
    assert releases.main(["--filter", "^mechanism/DiscreteLaplace$", "--dump", str(tmp_path)]) == 0
    shown = json.loads((tmp_path / "mechanism" / "DiscreteLaplace.json").read_text())
    assert len(shown["numbers"]["released"]["parameters"]["drawn"][0]) == len(release_cases.SCORES)
    assert shown["numbers"]["released"]["epsilon"] == (2.0).hex()
    assert shown["settings"]["adjacency"] == "replace"


# ----------------------------------------------------------------------------------- canonical form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1.0, np.nextafter(1.0, 2.0)),
        (1, 1.0),
        (True, 1.5),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        ({"a": [1.0]}, {"b": [1.0]}),
        (scipy.sparse.csr_matrix([[1, 0]]), scipy.sparse.csr_matrix([[0, 1]])),
    ],
)
def test_other_bits_have_another_digest(one, other):
    assert releases.digest(one) != releases.digest(other)
    assert releases.digest([one, other]) == releases.digest((one, other))


def test_what_has_no_canonical_form_is_refused():
    with pytest.raises(TypeError, match=r"value \(object\) has no canonical form; give its number"):
        releases.digest({"a": object()})


@pytest.mark.parametrize("name", [*release_cases.PLACES, *release_cases.RENAMED])
def test_names_are_found_wherever_they_are(name):
    assert callable(release_cases.public(name))


def test_a_name_that_went_away_is_missed():
    with pytest.raises(AttributeError, match="privfit has no Mode; say in PLACES or RENAMED wher"):
        release_cases.public("Mode")
