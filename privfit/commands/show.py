"""``privfit show``: the contents of a model file, verified."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

import numpy as np

from privfit.base.errors import InputError
from privfit.commands.cluster import show_centres
from privfit.commands.console import Console
from privfit.commands.models import load_model
from privfit.privacy.ledger import Budget, Release

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "verify a model file and show its contents"
DESCRIPTION = (
    "Recompute the privacy cost of a model from its events, and show everything that it releases. "
    "With --quiet, only the exit code shows whether the file is valid."
)

HIDDEN = {
    "replace": "for the contents of one row (replace)",
    "add_remove": "for the presence of one record (add_remove)",
}
MOST = 12  # number of coefficients shown


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a model file")


def run(options: argparse.Namespace, console: Console) -> None:
    """Verify and show."""
    model = load_model(options.model)
    release: Release | None = getattr(model, "release_", getattr(model, "release", None))
    if release is None:
        raise InputError(f"{options.model!r} contains no release; pass a fitted model")
    release.verify()
    promise = Budget(release.epsilon, release.delta)
    console.say(f"{options.model}: {type(model).__name__}")
    console.say(f"guarantee: {promise}, {HIDDEN[release.adjacency]}")
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
    console.result({"kind": type(model).__name__, "verified": True, "cost": release.cost(),
                    **asdict(release)})  # fmt: skip


def _show_weights(model: Any, console: Console) -> None:
    """The largest weights; for each class, if there are more than two."""
    labels = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    names, (weights, intercept) = model.coef_names_, _centred(model)
    largest = np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:MOST]
    rows = [(names[j], *(f"{weight:+.4f}" for weight in weights[:, j])) for j in largest]
    if model.fit_intercept:
        rows.append(("intercept", *(f"{weight:+.4f}" for weight in intercept)))
    console.table((f"largest of {len(names)} weights", *map(str, labels)), rows)


def _centred(model: Any) -> tuple[Any, Any]:
    """The same model with weights whose mean is 0 in each group of categories.

    A record has one category of each group, so their mean can be moved to the intercept; without
    an intercept, the weights are unchanged.
    """
    weights, intercept = model.coef_.copy(), model.intercept_.copy()
    for group in model.domain_.groups if model.fit_intercept else []:
        shared = weights[:, group].mean(axis=1)
        weights[:, group] -= shared[:, None]
        intercept += shared
    return weights, intercept


def _show_area(model: Any, console: Console) -> None:
    console.say(f"area under the curve: {model.auc:.4f}")


SHOWN = {"cluster_centers_": show_centres, "coef_": _show_weights, "auc": _show_area}
