"""Pipelines of privfit's own estimators as model files: the files of their steps, one in another.

    {
      "privfit-model": 5,
      "written-by": "privfit 0.1.0",
      "class": "Pipeline",
      "steps": [{"name": "words", "model": {...}}, ...]     each model as in a file of its own
    }

Each step is read as a file of its own would be. Steps of other packages are refused when a pipeline
is written, and there is no way to name one in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privfit.base.errors import DeclarationTypeError, FileError
from privfit.base.json import parse, write
from privfit.base.version import __version__
from privfit.models.kinds import ESTIMATORS

__all__ = ["PIPELINE", "read", "written"]

PIPELINE = "Pipeline"
VERSION = 5
MOST_STEPS = 32
FIELDS = {"privfit-model", "written-by", "class", "steps"}


def written(pipeline: Any, dumps: Callable[[Any], str]) -> dict[str, Any]:
    """The fields of a pipeline's file; `dumps` writes a step."""
    steps = []
    for name, model in pipeline.steps:
        if type(model).__name__ not in ESTIMATORS:
            raise DeclarationTypeError(
                f"step {name!r} ({type(model).__name__}) must be an estimator of privfit itself; "
                f"pass a Pipeline of {', '.join(ESTIMATORS)}, or pickle yours"
            )
        steps.append({"name": name, "model": parse(dumps(model))})
    head = {"privfit-model": VERSION, "written-by": f"privfit {__version__}"}
    return {**head, "class": PIPELINE, "steps": steps}


def read(held: dict[str, Any], loads: Callable[[str], Any]) -> Any:
    """The pipeline of a file with these fields; `loads` reads a step."""
    from privfit.estimators.serving import Pipeline  # of scikit-learn, which loads now

    steps = held.get("steps")
    if (
        held.keys() != FIELDS
        or held["privfit-model"] != VERSION
        or not isinstance(held["written-by"], str)
        or not isinstance(steps, list)
        or not 0 < len(steps) <= MOST_STEPS
        or not all(_is_step(step) for step in steps)
        or len({step["name"] for step in steps}) < len(steps)
    ):
        raise FileError(
            f"a model file of a Pipeline must have the version {VERSION} and up to {MOST_STEPS} "
            "steps with different names and models of privfit; pass a file as it was written"
        )
    return Pipeline([(step["name"], loads(write(step["model"]))) for step in steps])


def _is_step(step: Any) -> bool:
    """Whether a value is a named model that may be a step."""
    if not isinstance(step, dict) or step.keys() != {"name", "model"}:
        return False
    name, model = step["name"], step["model"]
    named = isinstance(name, str) and 0 < len(name) <= 256 and "__" not in name
    return named and isinstance(model, dict) and model.get("class") in list(ESTIMATORS)
