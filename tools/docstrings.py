"""Validate the docstrings of all public names with numpydoc.

python tools/docstrings.py                  # list what is not valid; exit 1 if there is anything
python tools/docstrings.py privfit.linear   # the names of one room

`numpydoc lint` reads files and cannot tell which names are public. Public are the names that
privfit and its rooms export, and the public methods and properties of their classes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from numpydoc.validate import Validator, validate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import privfit

# Checks of numpydoc that are left out, and why. All others apply.
NOWHERE = {
    "ES01": "a summary that says everything needs no second paragraph",
    "SS05": "a summary may start with a plural noun, which the check takes for a verb",
}
ON_MEMBERS = {
    "SA01": "the class lists what is related",
    "EX01": "the example of the class calls its methods",
}
ON_PROTOCOLS = {"PR01": "a protocol is never called"}
DESCRIBED = (property, cached_property, staticmethod, classmethod)
WITHOUT_NAMES = ("_kernels", "commands")  # rooms that export nothing to users


def rooms() -> list[str]:
    """Privfit itself, and its rooms."""
    found = [module.name for module in pkgutil.iter_modules(privfit.__path__) if module.ispkg]
    return ["privfit", *(f"privfit.{name}" for name in found if name not in WITHOUT_NAMES)]


def full_name(found: Any) -> str:
    """The name under which numpydoc imports an object."""
    return f"{found.__module__}.{found.__qualname__}"


def public(room: str) -> Iterator[tuple[str, bool]]:
    """The full name of everything public in a room, and whether it is a member of a class."""
    module = importlib.import_module(room)
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        yield full_name(found), False
        if inspect.isclass(found):
            yield from ((member, True) for member in members(found))


def members(kind: type[Any]) -> Iterator[str]:
    """Public methods and properties of a class, by the class of privfit that describes them."""
    for name in dir(kind):
        # An override without a docstring has that of the method which it overrides.
        owners = [one for one in kind.__mro__ if name in vars(one)]
        owner = next((one for one in owners if vars(one)[name].__doc__), owners[0])
        found = vars(owner)[name]
        is_described = inspect.isfunction(found) or isinstance(found, DESCRIBED)
        is_ours = owner.__module__.startswith("privfit")
        if is_described and is_ours and not name.startswith("_"):
            yield f"{full_name(owner)}.{name}"


def faults(name: str, is_member: bool) -> list[str]:
    """What numpydoc finds wrong with the docstring of a name."""
    is_protocol = getattr(Validator._load_obj(name), "_is_protocol", False)
    left_out = {
        *NOWHERE,
        *(ON_MEMBERS if is_member else ()),
        *(ON_PROTOCOLS if is_protocol else ()),
    }
    errors = validate(name)["errors"]
    return [f"{name}: {code} {text}" for code, text in errors if code not in left_out]


def main(chosen: list[str]) -> int:
    names = dict(pair for room in chosen or rooms() for pair in public(room))
    found = [fault for name, member in sorted(names.items()) for fault in faults(name, member)]
    print(*found, f"{len(names)} public names, {len(found)} faults", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
