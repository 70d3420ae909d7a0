"""One relation and one privacy unit in a ledger; decimals add up; old files say what they know."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privfit import (
    Budget,
    BudgetError,
    Event,
    KMeans,
    Ledger,
    LogisticRegression,
    Neighbours,
    open_ledger,
    roc_curve,
)
from privfit.base.rounding import exact, rounded_down, rounded_up
from privfit.privacy.budget_file import BudgetFileWarning
from privfit.privacy.budgets import after_steps
from privfit.privacy.ledger import ADJACENCIES

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def path(tmp_path):
    pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')
    return tmp_path / "budget.json"


@pytest.fixture(params=["memory", "file"])
def start(request, tmp_path):
    """Make ledgers of either kind alike."""
    if request.param == "memory":
        return Ledger
    pytest.importorskip("filelock", reason='the budget file needs it: pip install "privfit[cli]"')
    return lambda *terms, **named: open_ledger(tmp_path / "budget.json", *terms, **named)


# -------------------------------------------------------------------------------------- neighbours


def test_a_replacement_is_two_steps_and_a_way_back_is_none():
    replace, join = Neighbours("replace"), Neighbours("add_remove")
    assert (replace.steps_to(replace), join.steps_to(join)) == (1, 1)
    assert join.steps_to(replace) == 2
    assert replace.steps_to(join) is None
    assert join.steps_to(Neighbours("replace", 3)) is None
    assert {replace, Neighbours("replace", rows=1)} == {replace}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Neighbours("swap"), r"relation \('swap'\) must be 'replace' or 'add_remove'"),
        (lambda: Neighbours(["replace"]), r"relation \(\['replace'\]\) must be"),
        (lambda: Neighbours("replace", 0), r"rows \(0\) must be a positive whole number; pass row"),
        (lambda: Neighbours("replace", 1.5), r"rows \(1\.5\) must be a positive whole number"),
        (lambda: Ledger(1.0, adjacency="swap"), r"adjacency \('swap'\) must be 'replace' or 'add_"),
        (lambda: Ledger(1.0, max_rows=0), r"max_rows \(0\) must be a positive whole number; pass"),
        (lambda: Ledger(1.0).reserve(0.5, adjacency="x"), r"adjacency \('x'\) must be 'replace'"),
    ],
)
def test_what_is_no_relation_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---------------------------------------------------------------------------------------- decimals


def test_three_times_a_tenth_fits_three_tenths(start):
    ledger = start(0.3)
    for _ in range(3):
        ledger.reserve(0.1)
    assert ledger.spent == Budget(0.3)
    assert ledger.remaining == Budget(0.0)
    with pytest.raises(BudgetError, match=r"has epsilon 0, delta 0 left"):
        ledger.reserve(1e-9)


def test_deltas_are_decimals_too(start):
    ledger = start(3.0, 3e-7)
    for _ in range(3):
        ledger.reserve(1.0, 1e-7)
    assert ledger.remaining == Budget(0.0, 0.0)


TYPED = st.one_of(
    st.decimals("0.000001", 1, places=6).map(float), st.floats(1e-9, 1.0), st.floats(1e-300, 1e-9)
)


def fit_as_doubles(parts, whole):
    return sum(map(Fraction, parts)) <= Fraction(whole) + Fraction(math.ulp(whole)) / 2


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(TYPED, min_size=1, max_size=12), TYPED)
@example([0.1, 0.1], 0.3)
@example([1e-300, 1.0], 1.0)
def test_what_is_left_can_be_reserved_and_the_exact_sum_is_never_exceeded(parts, whole):
    ledger, granted = Ledger(whole), []
    for part in parts:
        wanted = [*granted, part]
        fits = sum(map(exact, wanted)) <= exact(whole) or fit_as_doubles(wanted, whole)
        try:
            ledger.reserve(part)
        except BudgetError as error:
            assert not fits
            has, asks = (text.split(",")[0] for text in str(error).split("epsilon ")[1:4:2])
            assert has != asks
        else:
            assert fits
            granted.append(part)
    left = ledger.remaining.epsilon
    if left:
        ledger.reserve(left)
        granted.append(left)
    spent = sum(map(exact, granted))
    assert spent <= exact(whole) or fit_as_doubles(granted, whole)
    assert exact(ledger.spent.epsilon) >= spent
    assert exact(ledger.remaining.epsilon) <= max(exact(whole) - spent, 0)


def test_a_refusal_shows_as_many_digits_as_tell_the_numbers_apart():
    ledger = Ledger(0.3)
    ledger.reserve(0.2)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.1, .* asks for epsilon 0\.10000000001,"):
        ledger.reserve(0.10000000001)
    grant = Ledger(1.0).reserve(0.3)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.3, .* costs epsilon 0\.300000000003"):
        grant.plan(Event("pure", 0.100000000001, 3))


@given(st.fractions(min_value=0, max_value=10**6))
def test_rounding_is_to_the_next_text_on_the_safe_side(number):
    up, down = rounded_up(number, exact), rounded_down(number, exact)
    assert exact(down) <= number <= exact(up)
    assert exact(math.nextafter(down, math.inf)) > number
    assert exact(math.nextafter(up, -math.inf)) < number


# -------------------------------------------------------------------------------------- conversion


@settings(max_examples=200)
@given(st.floats(1e-9, 20.0), st.one_of(st.just(0.0), st.floats(1e-290, 1e-9)), st.integers(1, 4))
def test_several_steps_cost_what_the_theorem_says_rounded_up(epsilon, delta, steps):
    cost = after_steps(Budget(epsilon, delta), steps)
    mantissa = sum(math.exp(j * epsilon) for j in range(steps)) * delta
    if mantissa >= 1:
        assert cost is None
        return
    assert exact(cost.epsilon) >= steps * exact(epsilon)
    assert cost.epsilon == pytest.approx(steps * epsilon, rel=1e-15)
    assert cost.delta == pytest.approx(mantissa, rel=1e-12)
    assert delta == 0 or cost.delta >= delta


def test_the_converted_delta_is_rounded_to_the_safe_side():
    """e^1 has known digits: the float above 1 + e, and not the nearest, which lies below."""
    e = Fraction("2.71828182845904523536028747135266249775724709369995")
    delta = after_steps(Budget(1.0, 1e-6), 2).delta
    assert exact(delta) > (1 + e) * Fraction("1e-6") > exact(math.nextafter(delta, 0.0))


def excess(p: float, q: float, epsilon: float) -> float:
    """The delta between two coins, of heads with p and q."""
    pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
    return max(one - math.exp(epsilon) * other for one, other in pairs)


def test_the_converted_cost_is_needed_and_enough_for_two_steps():
    """Coins that are as far apart as one step allows; (2 epsilon, 2 delta) is a planted fault."""
    epsilon, delta, last = 0.5, 1e-3, 1e-2
    middle = math.exp(epsilon) * last + delta
    first = math.exp(epsilon) * middle + delta
    for p, q in ((first, middle), (middle, last)):
        assert excess(p, q, epsilon) == pytest.approx(delta, rel=1e-9)
    cost = after_steps(Budget(epsilon, delta), 2)
    assert excess(first, last, cost.epsilon) == pytest.approx(cost.delta, rel=1e-9)
    assert excess(first, last, cost.epsilon) > 1.3 * 2 * delta


def test_a_grant_under_add_remove_is_charged_to_a_ledger_under_replace_as_two_steps(start):
    ledger = start(1.0, 1e-5, "replace")
    grant = ledger.reserve(0.25, 1e-6, "counts", adjacency="add_remove")
    assert grant.budget == Budget(0.25, 1e-6)
    assert grant.budget.adjacency == "add_remove"
    delta = (1 + math.exp(0.25)) * 1e-6
    (entry,) = ledger.entries
    assert entry[2].epsilon == ledger.spent.epsilon == 0.5
    assert delta <= entry[2].delta == ledger.spent.delta == pytest.approx(delta)
    (charge,) = ledger.charges
    assert (charge.budget, charge.adjacency) == (Budget(0.25, 1e-6), "add_remove")
    message = (
        r"ledger has epsilon 0\.5, .* left of .*, but 'fit' asks for epsilon "
        r"0\.3, delta 0 under 'add_remove', which is epsilon 0\.6, delta 0 under 'replace'"
    )
    with pytest.raises(BudgetError, match=message):
        ledger.reserve(0.3, adjacency="add_remove")
    assert grant.close().adjacency == "add_remove"
    ledger.reserve(0.5)
    again = Ledger.from_json(ledger.to_json())
    assert (again.entries, again.charges) == (ledger.entries, ledger.charges)
    (shown, _) = json.loads(ledger.to_json())["entries"]
    assert (shown["epsilon"], shown["adjacency"], shown["charged"]["epsilon"]) == (
        0.25, "add_remove", 0.5,
    )  # fmt: skip


def test_a_grant_under_replace_is_refused_by_a_ledger_under_add_remove_before_the_charge(start):
    ledger = start(1.0, adjacency="add_remove")
    ledger.reserve(0.25)
    message = (
        r"'fit' is under 'replace', which has no cost under 'add_remove', the relation of the "
        r"ledger: it may publish the number of records; pass adjacency='add_remove' to it, or"
    )
    with pytest.raises(BudgetError, match=message):
        ledger.reserve(0.25, adjacency="replace")
    model = KMeans(2, 0.25, domain=(-1, 1), ledger=ledger)
    with pytest.raises(BudgetError, match="'KMeans' is under 'replace', which has no cost"):
        model.fit(X)
    assert ledger.spent == Budget(0.25)
    model.set_params(adjacency="add_remove").fit(X)
    assert ledger.spent == Budget(0.5)


def test_a_delta_that_grows_to_one_is_refused():
    ledger = Ledger(100.0, 0.5, "replace")
    with pytest.raises(BudgetError, match=r"\(1 \+ e\^epsilon\) delta is 1 or more; ask for less"):
        ledger.reserve(20.0, 1e-6, adjacency="add_remove")
    with pytest.raises(BudgetError, match="delta is 1 or more"):
        ledger.reserve(2000.0, 1e-300, adjacency="add_remove")
    assert ledger.entries == ()


@pytest.mark.parametrize("relation", ADJACENCIES)
def test_a_ledger_takes_the_relation_of_the_first_grant_that_has_one(start, relation):
    ledger = start(1.0)
    assert ledger.adjacency is ledger.neighbours is None
    assert repr(ledger).endswith("epsilon 1, delta 0; spent epsilon 0, delta 0)")
    own = ledger.reserve(0.25)
    ledger.reserve(0.25, adjacency=relation)
    assert ledger.adjacency == relation
    assert ledger.neighbours == Neighbours(relation)
    assert own.close().adjacency == relation
    assert repr(ledger).endswith(f"epsilon 1, delta 0; spent epsilon 0.5, delta 0; {relation})")
    assert str(ledger.spent) == str(ledger.remaining) == f"epsilon 0.5, delta 0, {relation}"
    assert json.loads(ledger.to_json())["adjacency"] == relation
    assert pickle.loads(pickle.dumps(ledger)).adjacency == relation


def test_a_refused_grant_declares_nothing(start):
    ledger = start(1.0)
    with pytest.raises(BudgetError, match="asks for"):
        ledger.reserve(2.0, adjacency="add_remove")
    assert ledger.adjacency is None
    ledger.reserve(1.0, adjacency="replace")


def test_closing_agrees_with_what_was_reserved(start):
    ledger = start(1.0)
    grant = ledger.reserve(0.25, adjacency="add_remove")
    message = (
        r"adjacency \('replace'\) must be that of the grant, 'add_remove', since it was charged "
        r"that way; pass adjacency='replace' to reserve"
    )
    with pytest.raises(ValueError, match=message):
        grant.close("replace")
    assert grant.close("add_remove").adjacency == "add_remove"
    second = ledger.reserve(0.25)
    with pytest.raises(ValueError, match=message):
        second.close("replace")
    assert second.close().adjacency == "add_remove"


def test_closing_declares_the_relation_where_nobody_has(start):
    ledger = start(1.0)
    first, second = ledger.reserve(0.25), ledger.reserve(0.25)
    assert first.close("add_remove").adjacency == "add_remove"
    assert ledger.adjacency == "add_remove"
    with pytest.raises(ValueError, match="must be that of the grant, 'add_remove'"):
        second.close("replace")
    other = Ledger(1.0)
    assert other.reserve(1.0).close().adjacency == other.adjacency == "replace"


def test_a_nested_ledger_has_the_relation_of_the_outer_one(start):
    ledger = start(4.0)
    inner = ledger.nested(1.0)
    ledger.reserve(1.0, adjacency="replace")
    inner.reserve(0.5, adjacency="add_remove")
    assert (inner.adjacency, inner.spent) == ("replace", Budget(1.0))
    counts = ledger.nested(0.5, adjacency="add_remove")
    assert (counts.adjacency, ledger.spent) == ("add_remove", Budget(3.0))
    with pytest.raises(BudgetError, match="'fit' is under 'replace', which has no cost"):
        counts.reserve(0.1, adjacency="replace")


def test_the_first_grant_of_a_nested_ledger_declares_the_outer_one(start):
    ledger = start(4.0)
    inner, other = ledger.nested(1.0), ledger.nested(1.0)
    inner.reserve(0.5, adjacency="add_remove")
    assert ledger.adjacency == other.adjacency == "add_remove"
    third = Ledger(1.0)
    part = third.nested(0.5)
    part.reserve(0.5).close("add_remove")
    assert third.adjacency == "add_remove"


def test_more_rows_of_a_person_are_kept_and_shown_and_nothing_is_reserved(start):
    ledger = start(1.0, adjacency="replace", max_rows=3)
    assert (ledger.max_rows, ledger.neighbours) == (3, Neighbours("replace", 3))
    assert repr(ledger).endswith("spent epsilon 0, delta 0; replace; max_rows 3)")
    message = r"max_rows \(3\) must be 1 to reserve, since fits bound what a row can change .*rt a"
    with pytest.raises(ValueError, match=message):
        ledger.reserve(0.5)
    with pytest.raises(ValueError, match=message):
        KMeans(2, 0.5, domain=(-1, 1), ledger=ledger).fit(X)
    assert ledger.entries == ()
    for again in (Ledger.from_json(ledger.to_json()), pickle.loads(pickle.dumps(ledger))):
        assert again.max_rows == 3


def test_fits_and_metrics_reserve_under_their_relation():
    ledger = Ledger(20.0, 1e-4, "replace")
    given = {"adjacency": "add_remove", "ledger": ledger}
    declared = {"domain": (-1, 1), "classes": [0, 1], "n_public": 300}
    LogisticRegression(0.5, 1e-6, **declared, **given).fit(X, Y)
    KMeans(2, 0.5, domain=(-1, 1), n_public=300, **given).fit(X)
    roc_curve(Y, (X[:, 0] + 1) / 2, 0.5, n_public=300, **given)
    assert [charge.adjacency for charge in ledger.charges] == ["add_remove"] * 3
    assert [budget.epsilon for _, _, budget in ledger.entries] == [1.0] * 3
    assert [release.epsilon for release in ledger.releases] == [0.5] * 3


# --------------------------------------------------------------------------------- files, old ones


def test_a_file_is_declared_when_it_is_made_or_opened(path):
    open_ledger(path, 1.0, adjacency="add_remove", max_rows=2)
    again = open_ledger(path)
    assert again.neighbours == Neighbours("add_remove", 2)
    message = r"adjacency \('replace'\) must be that of the budget file, 'add_remove'; leave it out"
    with pytest.raises(ValueError, match=message):
        open_ledger(path, adjacency="replace")
    with pytest.raises(ValueError, match=r"max_rows \(3\) must be that of the budget file, 2;"):
        open_ledger(path, max_rows=3)
    other = path.with_name("other.json")
    one, two = open_ledger(other, 1.0), open_ledger(other)
    open_ledger(other, adjacency="replace")
    assert one.adjacency == two.adjacency == "replace"
    with pytest.raises(ValueError, match=r"adjacency \('swap'\) must be"):
        open_ledger(path.with_name("third.json"), 1.0, adjacency="swap")
    assert not path.with_name("third.json").exists()
    for named in ({"adjacency": "swap"}, {"max_rows": 0}):
        with pytest.raises(ValueError, match="must be"):
            open_ledger(other, **named)


def first_version(path, *entries, budget=1.0):
    """A file as the first version wrote it; an entry with a relation has a release."""
    charged, made = [], []
    for i, (epsilon, relation) in enumerate(entries):
        charged.append({"group": "", "name": f"fit {i}", "epsilon": epsilon, "delta": 0.0})
        if relation:
            made.append({"name": f"fit {i}", "epsilon": epsilon, "delta": 0.0, "events": [],
                         "adjacency": relation})  # fmt: skip
    fields = {"privfit": 1, "id": "x", "epsilon": budget, "delta": 0.0, "entries": charged}
    path.write_text(json.dumps(fields | {"releases": made}))


def opened(path, **declared):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetFileWarning)
        return open_ledger(path, **declared)


def test_a_file_of_the_first_version_says_once_that_its_relation_is_unknown(path):
    first_version(path, (0.5, "replace"))
    message = r"is of an earlier version, .* pass adjacency='replace' or 'add_remove', or let the n"
    with pytest.warns(BudgetFileWarning, match=message):
        ledger = open_ledger(path)
    assert (ledger.adjacency, ledger.spent) == (None, Budget(0.5))
    assert json.loads(path.read_text())["privfit"] == 1  # to look changes nothing
    with pytest.raises(BudgetError, match=r"the ledger is of an earlier version, .* neither does"):
        ledger.reserve(0.25)
    ledger.reserve(0.25, adjacency="replace")
    again = open_ledger(path)  # without a warning
    assert (again.adjacency, again.spent) == ("replace", Budget(0.75))
    assert json.loads(path.read_text())["privfit"] == 3


def test_an_empty_file_of_the_first_version_has_nothing_to_declare(path):
    first_version(path)
    open_ledger(path).reserve(0.25)


def test_charges_of_the_first_version_count_under_the_relation_of_their_release(path):
    first_version(path, (0.25, "add_remove"), (0.25, "replace"))
    opened(path).reserve(0.125, adjacency="add_remove")  # the ledger can only be under replace
    ledger = open_ledger(path)
    assert ledger.adjacency == "replace"
    assert [budget.epsilon for _, _, budget in ledger.entries] == [0.5, 0.25, 0.25]


def test_a_charge_of_unknown_relation_counts_as_the_worst(path):
    first_version(path, (0.25, None))
    ledger = opened(path)
    message = r"'fit 0' is under an unknown relation, .*, open the file with adjacency='add_remove'"
    with pytest.raises(BudgetError, match=message):
        ledger.reserve(0.25, adjacency="add_remove")
    message = r"has epsilon 0\.5, .*; charges of unknown relation count as 'add_remove' here: if yo"
    with pytest.raises(BudgetError, match=message):
        ledger.reserve(0.75, adjacency="replace")
    assert ledger.adjacency is None
    ledger.reserve(0.5, adjacency="replace")
    assert open_ledger(path).spent == Budget(1.0)


@pytest.mark.parametrize("relation", ADJACENCIES)
def test_a_person_may_declare_what_is_unknown(path, relation):
    first_version(path, (0.25, None))
    ledger = opened(path, adjacency=relation)
    assert (ledger.adjacency, ledger.spent) == (relation, Budget(0.25))
    open_ledger(path).reserve(0.75)


def test_a_declaration_that_the_charges_contradict_is_refused(path):
    first_version(path, (0.75, "add_remove"))
    before = path.read_bytes()
    message = r"the charges in the budget file \(.*\) exceed its budget under 'replace', .*; start"
    with pytest.raises(BudgetError, match=message):
        opened(path, adjacency="replace")
    first_version(path.with_name("other.json"), (0.75, "replace"))
    with pytest.raises(BudgetError, match="'fit 0' is under 'replace', which has no cost"):
        opened(path.with_name("other.json"), adjacency="add_remove")
    assert path.read_bytes() == before


def test_charges_that_look_alike_are_known_if_all_their_releases_agree(path):
    first_version(path, *[(0.125, "replace")] * 2)
    fields = json.loads(path.read_text())
    for entry in (*fields["entries"], *fields["releases"]):
        entry["name"] = "fit"
    fields["releases"][1]["seeded"] = True  # so that they are two releases, not one written twice
    path.write_text(json.dumps(fields))
    assert [one.adjacency for one in opened(path).charges] == ["replace", "replace"]
    one, two = fields["releases"]
    for releases in ([one], [one, one], [one, {**two, "adjacency": "add_remove"}]):
        path.write_text(json.dumps(fields | {"releases": releases}))
        assert [one.adjacency for one in opened(path).charges] == ["unknown", "unknown"]


def test_a_relation_that_nobody_knows_makes_no_budget_file(path):
    first_version(path, (0.25, "swap"))
    with pytest.raises(ValueError, match="must be a budget file as privfit wrote it"):
        open_ledger(path)


def test_a_relation_declared_by_one_process_is_seen_by_all(path):
    one, two = open_ledger(path, 1.0), open_ledger(path)
    own = two.reserve(0.25)
    one.reserve(0.25, adjacency="add_remove")
    with pytest.raises(BudgetError, match="which has no cost under 'add_remove'"):
        two.reserve(0.25, adjacency="replace")
    assert own.close().adjacency == "add_remove"
