"""``privfit show``: the contents of a model file, verified."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from privfit.base.errors import InputError
from privfit.commands.cluster import draw_centres, show_centres
from privfit.commands.console import Console
from privfit.commands.models import load_model
from privfit.commands.pictures import Draw, claim_picture_if
from privfit.privacy.ledger import Budget, Release
from privfit.privacy.neighbours import Neighbours
from privfit.report import plotting
from privfit.report.estimates import Estimate

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

HELP = "verify a model file and show its contents"
EXAMPLE = "privfit show model.json --plot shapes.png"
DESCRIPTION = (
    "Recompute the privacy cost of a model from its events, and show everything that it releases. "
    "With --quiet, only the exit code shows whether the file is valid."
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a model file")
    parser.add_argument(
        "--plot", metavar="FILE",
        help="a plot of what it releases: shapes of columns, centres or a curve",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> None:
    """Verify and show."""
    model = load_model(options.model)
    release: Release | None = getattr(model, "release_", getattr(model, "release", None))
    if release is None:
        raise InputError(f"{options.model!r} contains no release; pass a fitted model")
    release.verify()
    with claim_picture_if(options.plot) as plot:
        if plot is not None:
            plot(_picture_of(model))
    promise = Budget(release.epsilon, release.delta)
    console.say(f"{options.model}: {type(model).__name__}")
    console.say(f"guarantee: {promise}, for {Neighbours.of(release.adjacency).hidden}")
    console.say(f"verified: the draws below cost epsilon {release.cost():.6g} at this delta")
    if release.seeded:
        console.warn("this model was drawn with a seed: anyone who knows it can subtract the noise")
    console.say()
    console.table(
        ("draws", "count", "size", "delta"),
        [(event.kind, str(event.count), f"{event.parameter:.6g}", f"{event.delta:.6g}")
         for event in release.events],
    )  # fmt: skip
    console.say()
    console.table(
        ("setting", "value"),
        [(key, "chosen by the method" if value is None else str(value))
         for key, value in release.settings.items()],
    )  # fmt: skip
    console.say()
    for attribute, show in SHOWN.items():
        if hasattr(model, attribute):
            show(model, console)
    evaluated = _show_evaluations(getattr(model, "evaluations_", {}), console)
    console.result({"kind": type(model).__name__, "verified": True, "cost": release.cost(),
                    **asdict(release), "evaluations": evaluated})  # fmt: skip


def _show_evaluations(found: dict[str, Any], console: Console) -> dict[str, Any]:
    """The accuracy and the area that the file keeps; they are returned for `--json`."""
    told: dict[str, Any] = {}
    for one in found.values():
        one.release.verify()
    if "accuracy" in found:
        estimate = Estimate.of(found["accuracy"])
        told["accuracy"], told["accuracy_interval"] = (
            estimate.value,
            [estimate.lower, estimate.upper],
        )
        console.say(f"\nreleased accuracy: {estimate} (epsilon {estimate.release.epsilon:.6g})")
    if "curve" in found:
        curve = found["curve"]
        told["curve"] = {"auc": curve.auc, "fpr": curve.fpr, "tpr": curve.tpr}
        console.say(f"released area under the ROC curve: {curve.auc:.4f} (epsilon "
                    f"{curve.release.epsilon:.6g})")  # fmt: skip
    return told


def _show_weights(model: Any, console: Console) -> None:
    """The largest weights with their errors; for each class, if there are more than two."""
    for line in model.summary().lines():
        console.say(line)


def _show_area(model: Any, console: Console) -> None:
    console.say(f"area under the curve: {model.auc:.4f}")


def _picture_of(model: Any) -> Draw:
    """What draws a model."""
    for attribute, draw in DRAWN.items():
        if hasattr(model, attribute):
            return partial(draw, model)
    raise InputError(
        f"--plot draws classifiers, clusters and curves, and no {type(model).__name__}; leave it "
        "out"
    )


SHOWN = {"cluster_centers_": show_centres, "coef_": _show_weights, "auc": _show_area}
DRAWN: dict[str, Callable[..., Any]] = {
    "cluster_centers_": draw_centres,
    "coef_": lambda model, _: plotting.draw_shapes(model),  # in a figure of its own size
    "auc": plotting.draw_roc,
}
