"""Pictures: what they show is what was released, and nothing else is in them."""

from __future__ import annotations

import gc
import types
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from makers.pictures import (
    COINS,
    POINTS,
    clusters_of,
    curve_of,
    pictures,
    png_of,
    release_of,
    shapes_of,
    sweep_of,
)
from makers.raises import assert_reached, messages_of

import privfit
from privfit import (
    EEM,
    Budget,
    Categorical,
    Event,
    KMeans,
    KMedian,
    L1Ball,
    L2Ball,
    Ledger,
    LogisticRegression,
    Numeric,
    PrivacyLeakWarning,
    RecordObjective,
    Schema,
    Subsets,
    compose,
    roc_curve,
    search,
)
from privfit.privacy.accounting import METHODS, gaussian_total
from privfit.report.plotting import (
    draw_budget,
    draw_clusters,
    draw_composition,
    draw_roc,
    draw_shapes,
    draw_sweep,
    save_figure,
)
from privfit.report.sweeps import Sweep, Trial
from privfit.runs import Path as Walk

matplotlib = pytest.importorskip("matplotlib")


def labels_of(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line_named(ax, start: str):
    (found,) = (line for line in ax.lines if line.get_label().startswith(start))
    return found


# ----------------------------------------------------------------------------------------- accuracy


def test_a_sweep_is_drawn_at_its_means_with_its_intervals():
    found = sweep_of()
    ax = draw_sweep(found)
    (container,) = ax.containers
    line, _, (bars,) = container
    means, halves = (np.array([getattr(row, name) for row in found.rows])
                     for name in ("mean", "half_width"))  # fmt: skip
    np.testing.assert_array_equal(line.get_xdata(), [0.1, 1.0, 10.0])
    np.testing.assert_array_equal(line.get_ydata(), means)
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([means - halves, means + halves]))
    for row in found.reference_rows:
        np.testing.assert_array_equal(line_named(ax, row.setting).get_ydata(), [row.mean] * 2)
    assert labels_of(ax) == ["A", "not private", "larger class"]
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "1", "10"]
    assert ax.get_xlabel() == "epsilon, at delta 1e-06"
    assert ax.get_ylabel() == "accuracy (share of held-out records)"


def test_curves_share_references_that_are_equal_and_name_those_that_are_not():
    ax = draw_sweep({"one": sweep_of("x"), "two": sweep_of("y")})
    assert labels_of(ax) == ["one", "two", "not private", "larger class"]
    ax = draw_sweep({"one": sweep_of("x"), "two": sweep_of("y", shift=0.05)})
    assert labels_of(ax)[2:] == [
        "not private: one", "larger class: one", "not private: two", "larger class: two",
    ]  # fmt: skip


def test_six_curves_differ_without_their_colours():
    ax = draw_sweep({str(i): sweep_of(shift=i / 50) for i in range(6)})
    looks = [(c[0].get_marker(), c[0].get_linestyle(), c[0]._dash_pattern) for c in ax.containers]
    assert len({str(look) for look in looks}) == 6
    assert len({look[0] for look in looks}) == 6


def test_one_seed_has_no_intervals_and_half_a_sweep_its_rows():
    ax = draw_sweep(sweep_of(seeds=1))
    assert ax.containers[0][2] == ()
    whole = sweep_of()
    half = Sweep(**{**vars(whole), "trials": whole.trials[:1]})
    np.testing.assert_array_equal(draw_sweep(half).containers[0][0].get_xdata(), [0.1])
    empty = Sweep(**{**vars(whole), "trials": ()})
    png_of(draw_sweep(empty))


def test_crowded_epsilons_are_labelled_where_there_is_room():
    whole = sweep_of(seeds=1)
    places = (0.5, 0.7, 1.0, 1.01, 1.02, 5.0)
    trials = tuple(Trial(place, 0, 0.7) for place in places)
    ax = draw_sweep(Sweep(**{**vars(whole), "epsilons": places, "trials": trials}))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.5", "0.7", "1", "5"]


# ---------------------------------------------------------------------------------------------- ROC


def test_roc_curves_are_drawn_as_released_with_their_areas():
    one, two = curve_of(1.0), curve_of(0.2)
    ax = draw_roc({"A": one, "B": two})
    for name, curve in (("A", one), ("B", two)):
        line = line_named(ax, name)
        np.testing.assert_array_equal(line.get_xdata(), curve.fpr)
        np.testing.assert_array_equal(line.get_ydata(), curve.tpr)
    assert labels_of(ax) == [f"A (area {one.auc:.3f})", f"B (area {two.auc:.3f})", "chance"]
    np.testing.assert_array_equal(line_named(ax, "chance").get_xydata(), [[0, 0], [1, 1]])


def test_the_exact_curve_is_drawn_on_demand_alone():
    curve = curve_of()
    assert "true (not private)" not in labels_of(curve.plot())
    with pytest.warns(PrivacyLeakWarning, match="draws the exact curve"):
        ax = curve.plot(true=([0, 1, 1], [0.1, 0.9, 0.4]))
    np.testing.assert_array_equal(line_named(ax, "true").get_ydata(), [0, 0.5, 1, 1])


# ----------------------------------------------------------------------------------------- clusters


def nearest(points: np.ndarray, centers: np.ndarray, metric: str) -> np.ndarray:
    apart = points[:, None, :] - centers
    return (np.abs(apart).sum(axis=2) if metric == "l1" else (apart**2).sum(axis=2)).argsort(axis=1)


def clusterings() -> dict[str, tuple]:
    places = np.random.default_rng(5).uniform(-0.7, 0.7, (30, 2))
    return {
        "box": (clusters_of(), "l2"),
        "many": (clusters_of(15), "l2"),
        "ball": (clusters_of(4, domain=L2Ball(1.2)), "l2"),
        "l2 median": (KMedian(4, 5.0, facilities=places, metric="l2").fit(POINTS), "l2"),
        "l1 median": (KMedian(5, 5.0, facilities=places, domain=L1Ball(1.5)).fit(POINTS), "l1"),
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["box", "many", "ball", "l2 median", "l1 median"])
def test_centres_are_those_released_and_borders_equally_near_two_of_them(name):
    model, metric = clusterings()[name]
    centers = np.asarray(model.cluster_centers_)
    ax = draw_clusters(model)
    marks, borders = ax.collections[1], ax.collections[0]
    np.testing.assert_array_equal(marks.get_offsets(), centers)
    assert [text.get_text() for text in ax.texts] == [str(j) for j in range(len(centers))]
    assert borders.get_clip_path() is not None
    points = np.concatenate(borders.get_segments())
    order = nearest(points, centers, metric)[:, :2]
    first, second = (
        np.linalg.norm(points - centers[order[:, i]], ord=1 if metric == "l1" else 2, axis=1)
        for i in (0, 1)
    )
    # Corners where three regions meet are cut by a lattice cell at most: 2 / 300 a side.
    assert np.abs(first - second).max() < 0.03
    assert np.median(np.abs(first - second)) < 1e-3
    touched = {j for pair in order for j in pair}
    assert touched == set(range(len(centers)))  # every region has a border


def test_one_cluster_has_no_border():
    ax = draw_clusters(clusters_of(1))
    assert ax.collections[0].get_segments() == []
    png_of(ax)


def test_the_outline_is_that_of_the_domain():
    box = draw_clusters(clusters_of()).patches[0].get_path().vertices
    np.testing.assert_array_equal([box.min(axis=0), box.max(axis=0)], [[-1, -1], [1, 1]])
    ball = draw_clusters(clusters_of(domain=L2Ball(1.5))).patches[0].get_path().vertices
    np.testing.assert_allclose(np.linalg.norm(ball, axis=1), 1.5)
    diamond = draw_clusters(clusters_of(domain=L1Ball(2.0))).patches[0].get_path().vertices
    np.testing.assert_allclose(np.abs(diamond).sum(axis=1), 2.0)


def test_sizes_are_drawn_if_they_were_released():
    model = clusters_of(solver="lloyd", epsilon=20.0)
    counts = np.asarray(model.release_.parameters["trace"]["counts"])[-1]
    areas = draw_clusters(model).collections[1].get_sizes()
    np.testing.assert_allclose(areas / areas.max(), counts / counts.max(), rtol=1e-12)
    assert (draw_clusters(clusters_of()).collections[1].get_sizes() == 45.0).all()
    chain = clusters_of(solver="lloyd", epsilon=20.0, postprocess="mcmc")
    assert (draw_clusters(chain).collections[1].get_sizes() == 45.0).all()  # other centres


PEOPLE = Schema(
    {
        "sex": Categorical(["F", "M"]),
        "age": Numeric(20, 80),
        "tax in $": Numeric(0, 1e6),
        "height": Numeric(100, 200, bins=2),
    }
)
RECORDS = {
    "sex": COINS.choice(["F", "M"], 500),
    "age": COINS.uniform(20, 80, 500),
    "tax in $": COINS.uniform(0, 1e6, 500),
    "height": COINS.uniform(100, 200, 500),
}


def test_columns_of_a_schema_are_drawn_in_their_own_units():
    model = KMeans(2, 5.0, domain=PEOPLE).fit(RECORDS)
    ax = draw_clusters(model, public_points={name: v[:7] for name, v in RECORDS.items()})
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", r"tax in \$")
    np.testing.assert_allclose(
        ax.collections[1].get_offsets(), [20, 0] + model.cluster_centers_[:, 2:4] * [60, 1e6]
    )
    dots = line_named(ax, "public").get_xydata()
    np.testing.assert_allclose(dots[:, 0], RECORDS["age"][:7], atol=60 / 2**6)
    assert "equally near, by these two columns" in labels_of(ax)
    ax = draw_clusters(model, columns=("sex=M", 2))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sex=M", "age")
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], model.cluster_centers_[:, 1])


def test_two_of_several_columns_are_chosen_by_name_or_position():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COINS.uniform(-1, 1, (300, 4)), columns=list("abcd"))
    model = KMeans(2, 5.0, domain=(-1, 1)).fit(table)
    for columns in (("d", "b"), (3, 1), ["d", 1], np.array([3, 1])):
        ax = draw_clusters(model, columns=columns, public_points=table[:9])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("d", "b")
        np.testing.assert_array_equal(
            ax.collections[1].get_offsets(), model.cluster_centers_[:, [3, 1]]
        )
        np.testing.assert_array_equal(line_named(ax, "public").get_xydata(), table[["d", "b"]][:9])


# ------------------------------------------------------------------------------------------- budget


def test_a_run_is_drawn_at_the_tight_cost_beside_the_plain_sum():
    event = Event("selection", 0.1, 40)
    release = release_of(event, epsilon=compose([event], 1e-6))
    ax = draw_budget(release)
    draws, tight = line_named(ax, "tight").get_data()
    assert (draws[0], draws[-1]) == (0, 40)
    np.testing.assert_array_equal(
        tight[1:], [compose([Event("selection", 0.1, int(n))], 1e-6) for n in draws[1:]]
    )
    np.testing.assert_allclose(line_named(ax, "plain").get_ydata(), 0.1 * draws)
    np.testing.assert_array_equal(line_named(ax, "promised").get_ydata(), [release.epsilon] * 2)
    assert ax.get_xlabel() == "draws from the records"
    assert ax.get_ylabel() == "epsilon spent, at delta 1e-06"


def test_draws_of_several_kinds_come_in_their_order():
    events = (Event("pure", 0.3), Event("approximate", 0.2, 1, 2e-7), Event("gaussian", 0.05, 4))
    ax = draw_budget(release_of(*events))
    draws, tight = line_named(ax, "tight").get_data()
    np.testing.assert_array_equal(draws, range(7))
    np.testing.assert_array_equal(
        tight[1:3], [compose(events[:1], 1e-6), compose(events[:2], 1e-6)]
    )
    assert tight[-1] == compose(events, 1e-6)
    each = gaussian_total(0.05, 2e-7)
    plain = line_named(ax, "plain").get_ydata()
    np.testing.assert_allclose(plain, [0, 0.3, *(0.5 + each * np.arange(5))])


def test_a_pure_run_has_one_curve_and_one_without_draws_none():
    ax = draw_budget(release_of(Event("pure", 0.1, 10), delta=0.0))
    assert labels_of(ax) == ["plain sum, with nothing to save: 1 in the end", "promised: epsilon 1"]
    png_of(draw_budget(release_of()))


def test_fits_and_searches_are_drawn_by_their_release():
    X = COINS.uniform(-1, 1, (200, 2))
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1]).fit(X, X[:, 0] > 0)
    total = sum(event.count for event in model.release_.events)
    assert line_named(draw_budget(model), "tight").get_xdata()[-1] == total
    objective = RecordObjective(X, lambda X, P: np.ones((len(X), len(P))), low=0.0, high=1.0)
    found = search(objective, Subsets(5, 2), 1.0, solver=EEM(generations=4))
    ax = draw_budget(found)
    assert ax.get_xlabel() == "generation"
    assert ax.lines[-1].get_xdata()[-1] == 4
    draw_budget(curve_of())


def test_a_ledger_shows_entries_groups_and_what_is_left():
    ledger = Ledger(2.0, 1e-5)
    with ledger.group("train"):
        ledger.reserve(0.5, 1e-6, "fit")
        ledger.reserve(0.25, 0.0, "again")
    with ledger.group("test"):
        ledger.reserve(0.375, 0.0, "roc")
    ledger.reserve(0.125, 0.0, "common")
    ax = draw_budget(ledger)
    bars = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert bars == [(0, 0.125), (0.125, 0.5), (0.625, 0.25), (0.125, 0.375), (0.875, 1.125)]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        "common", "fit", "again", "roc", "left",
    ]  # fmt: skip
    assert [text.get_text() for text in ax.texts] == ["0.125", "0.5", "0.25", "0.375", "1.12"]
    assert labels_of(ax) == ["all records", "train", "test"]
    assert ax.get_xlabel() == "epsilon, of 2 (delta: 1e-06 of 1e-05 spent)"


def test_a_ledger_without_groups_needs_no_legend():
    ledger = Ledger(1.0)
    ledger.reserve(1.0, name="a name much longer than there is room for on the left")
    ax = draw_budget(ledger)
    assert ax.get_legend() is None
    assert ax.get_yticklabels()[0].get_text() == "a name much ... on the left"
    png_of(draw_budget(Ledger(1.0)))
    png_of(draw_budget(Ledger(0.0)))


# --------------------------------------------------------------------------------- all the pictures


@pytest.mark.slow
def test_pictures_need_no_pyplot_and_change_no_setting(fresh_python):
    done = fresh_python(
        "import sys, matplotlib\n"
        "from makers.pictures import pictures, png_of\n"
        "def settings():\n"  # to ask for the backend would load pyplot
        "    return {k: matplotlib.rcParams[k] for k in matplotlib.rcParams if k != 'backend'}\n"
        "before = settings()\n"
        "for draw in pictures().values():\n"
        "    png_of(draw())\n"
        "assert settings() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("name", pictures())
def test_pictures_are_drawn_on_the_axes_given(name):
    from matplotlib.figure import Figure

    ax = Figure(layout="constrained").subplots(1, 2)[1]
    assert pictures()[name](ax) is ax
    assert png_of(ax).startswith(b"\x89PNG")
    assert ax.get_xlabel() or name == "shapes"  # whose panels have labels of their own
    assert not ax.get_title()


def texts_of(ax) -> list:
    """Texts that a picture must have room for, but for ticks of numbers, which may be beyond it."""
    legend = ax.get_legend()
    texts = [ax.xaxis.label, ax.yaxis.label, ax._left_title, *ax.texts]
    return [*texts, *(legend.get_texts() if legend else ()), *ax.get_yticklabels()]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", pictures())
@pytest.mark.parametrize("dpi", [100, 200])
def test_texts_stay_inside_the_picture(name, dpi):
    ax = pictures()[name]()
    ax.figure.set_dpi(dpi)
    ax.figure.draw_without_rendering()
    frame = ax.figure.bbox
    for text in (text for part in ax.figure.axes for text in texts_of(part)):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert frame.x0 <= box.x0 and box.x1 <= frame.x1, text  # noqa: PT018


@pytest.mark.slow
@pytest.mark.parametrize("name", pictures())
def test_figures_are_written_whole_and_alike(name, tmp_path):
    ax = pictures()[name]()
    for suffix in ("png", "svg", "pdf"):
        path = tmp_path / f"plot.{suffix}"
        save_figure(ax, path)
        assert path.stat().st_size > 1000
        assert matplotlib.__version__.encode() not in path.read_bytes()
        assert list(tmp_path.glob(".*")) == []
    save_figure(pictures()[name](), tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "plot.png").read_bytes()


def reachable(start: object) -> list[object]:
    """All objects that can be come by from this one, but for modules, types and code."""
    closed = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
    seen, found, todo = {id(start)}, [], [start]
    while todo:
        now = todo.pop()
        found.append(now)
        for other in gc.get_referents(now):
            if id(other) not in seen and not isinstance(other, closed):
                seen.add(id(other))
                todo.append(other)
    return found


@pytest.mark.slow
def test_nothing_of_the_records_is_in_the_axes():
    X = COINS.uniform(-1, 1, (700, 2))
    model = KMeans(3, 5.0, domain=(-1, 1), solver="lloyd").fit(X)
    y = (X[:, 0] > 0).astype(int)
    fitted = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1]).fit(X, y)
    curve = roc_curve(y, X[:, 1] / 2 + 0.5, 1.0)
    named = LogisticRegression(1.0, 1e-6, domain=Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1)}),
                               classes=[0, 1]).fit(X, y)  # fmt: skip
    axes = [draw_clusters(model), draw_budget(fitted), draw_roc(curve), draw_budget(curve),
            draw_shapes(named)]  # fmt: skip
    shown = draw_clusters(model, public_points=X)  # and the search below does see what is there
    for ax, there in (*((ax, False) for ax in axes), (shown, True)):
        png_of(ax)
        everything = reachable(ax)
        assert any(part is ax.figure for part in everything)
        arrays = [part for part in everything if isinstance(part, np.ndarray)]
        assert any(a is X or np.shares_memory(a, X) or 700 in a.shape for a in arrays) is there
        for kept in (model, fitted, curve, named):
            assert all(part is not kept for part in everything)


# -------------------------------------------------------------------------------------- composition


def test_composition_is_drawn_at_the_costs_of_each_method():
    event, budget = Event("selection", 0.1, 40), Budget(1.0, 1e-6)
    ax = draw_composition(event, budget)
    for method in METHODS:
        line = line_named(ax, f"{method}: ")
        counts, costs = line.get_xdata(), line.get_ydata()
        assert (counts[0], costs[0], counts[-1]) == (0, 0, 40)
        expected = [compose([Event("selection", 0.1, int(n))], 1e-6, method) for n in counts[1:]]
        np.testing.assert_array_equal(costs[1:], expected)
        (label,) = (label for label in labels_of(ax) if label.startswith(f"{method}: "))
        fit = int(label.removeprefix(f"{method}: ").removesuffix(" fit"))
        assert compose([Event("selection", 0.1, fit)], 1e-6, method) <= 1.0
        assert compose([Event("selection", 0.1, fit + 1)], 1e-6, method) > 1.0
    np.testing.assert_array_equal(line_named(ax, "budget: epsilon 1").get_ydata(), [1.0, 1.0])
    assert ax.get_xlabel() == "number of selections of size 0.1"
    assert ax.get_ylabel() == "epsilon of all of them, at delta 1e-06"
    assert 1.0 < line_named(ax, "tight").get_ydata()[-1] < ax.get_ylim()[1]


@pytest.mark.parametrize(
    ("event", "methods"),
    [
        (Event("gaussian", 0.1, 9), ["tight", "zcdp", "rdp"]),
        (Event("pure", 0.1, 9), ["tight", "zcdp", "rdp", "kov_exact", "kov", "advanced", "naive"]),
        (Event("approximate", 0.1, 9, 1e-9),
         ["tight", "zcdp", "rdp", "kov_exact", "kov", "advanced", "naive"]),
    ],
)  # fmt: skip
def test_only_methods_that_apply_are_drawn(event, methods):
    labels = labels_of(draw_composition(event, Budget(1.0, 1e-6)))
    assert sorted(label.split(":")[0] for label in labels) == sorted([*methods, "budget"])


def test_pure_privacy_has_one_way_to_add_up_and_methods_may_be_chosen():
    ax = draw_composition(Event("selection", 0.25, 3), Budget(1.0))
    assert labels_of(ax) == ["naive: 3 fit", "budget: epsilon 1"]
    np.testing.assert_array_equal(line_named(ax, "naive").get_ydata(), [0, 0.25, 0.5, 0.75])
    chosen = draw_composition(Event("pure", 2.0, 3), Budget(1.0, 1e-6), methods=["rdp", "tight"])
    assert labels_of(chosen) == ["rdp: 0 fit", "tight: 0 fit", "budget: epsilon 1"]


def test_what_no_epsilon_covers_is_left_out_of_the_picture():
    ax = draw_composition(Event("approximate", 0.1, 20, 1e-7), Budget(1.0, 1e-6))
    assert line_named(ax, "tight").get_ydata()[-1] == np.inf
    assert labels_of(ax)[0] == "tight: 9 fit"
    assert png_of(ax).startswith(b"\x89PNG")


# ----------------------------------------------------------------------------------------- refusals

MODEL = clusters_of()
WALK = Walk((np.zeros((1, 2)),))


def without_a_grid():
    from matplotlib.figure import Figure

    draw_shapes(shapes_of(), Figure().add_axes((0, 0, 1, 1)))


REFUSED = [
    (partial(draw_sweep, {"A": sweep_of(), "B": sweep_of(measure="mean distance")}),
     r"sweeps \(of accuracy, mean distance\) must measure the same thing; draw others on their "
     r"own axes"),
    *((partial(draw, {}), r"there must be a curve to draw; pass a mapping of names to curves")
      for draw in (draw_sweep, draw_roc)),
    *((partial(draw_clusters, m), r"model \(.*\) must be a fitted KMeans or KMedian with a domain")
      for m in (KMeans(3), None, WALK)),
    (partial(draw_clusters, KMeans(2, domain=(0, 1)).fit(np.ones((9, 1)))),
     r"model must have two columns or more; there is no plane to draw"),
    *((partial(draw_clusters, MODEL, columns=c), r"columns \(.*\) must be two different columns; p")
      for c in ((0,), (0, 0), (0, 2), (0, -1), ("x0", "y"), "x0", (0, 1, 1), (0.0, 1.0))),
    *((partial(draw_budget, s), r"spent \(.*\) must be a Ledger or have a release; pass model.rel")
      for s in (WALK, [], None, KMeans(3))),
    *((partial(draw_composition, *given), r"event \(\w+\) must be an Event, and budget \(\w+\) a B")
      for given in ((0.1, Budget(1.0)), (Event("pure", 0.1), 1.0))),
    (partial(draw_composition, Event("gaussian", 0.1, 3), Budget(1.0)),
     r"method \('naive'\) must apply to every event, and a gaussian release is not epsilon-DP"),
    (partial(draw_composition, Event("pure", 0.1, 3), Budget(1.0, 1e-6), methods=["best"]),
     r"method \('best'\) must be known; pass one of"),
    *((partial(draw_shapes, m), r"model \(\w+\) must be a fitted LogisticRegression or LinearSVC; ")
      for m in (None, LogisticRegression(1.0), KMeans(3))),
    *((partial(draw_shapes, shapes_of(), columns=c), r"columns \(.*\) must be a list of columns; p")
      for c in ("age", [])),
    (partial(draw_shapes, shapes_of(), columns=["nobody"]),
     r"column \(.nobody.\) must be a column of the schema; pass one of "),
    *((partial(draw_shapes, shapes_of(), across=a), r"across \(.*\) must be a positive number; pas")
      for a in (0, 1.5, None)),
    (without_a_grid, r"ax must be in a grid of axes, in which panels find room; pass one of figu"),
    *((partial(save_figure, draw_roc(curve_of()), name), r"path \('.*'\) must end in a known form")
      for name in ("plot", "plot.xyz", Path("a.b/plot"))),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_wrong_input_has_one_clear_message(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def without_matplotlib():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "matplotlib", None)
        draw_sweep(sweep_of())


def test_without_matplotlib_they_say_what_to_install():
    with pytest.raises(ImportError, match=r"a plot needs matplotlib; run pip install .*\[plo"):
        without_matplotlib()


def test_every_raise_is_reached_by_a_case_above():
    calls = [*(call for call, _ in REFUSED), without_matplotlib]
    seen = "\n".join(messages_of(call) for call in calls)
    assert_reached([Path(privfit.__file__).parent / "report/plotting.py"], seen)
