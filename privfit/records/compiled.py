"""Compiled functions that score one record at a time: their addresses, signatures and names.

An address is valid in one process only. Within it a compiled function may be pickled, as a stream
does with its tables. In another process only a function that was passed by its name is found.
"""

from __future__ import annotations

import ctypes
import re
import uuid
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

from scipy import LowLevelCallable

from privfit.base.errors import DeclarationError, DeclarationTypeError

__all__ = ["MOVES", "SCORE", "Compiled", "is_compiled", "refuse_missing"]

SCORE = (
    "void (const double *record, intptr_t n_columns, const double *candidates, "
    "intptr_t n_coordinates, intptr_t m, double *out)"
)
MOVES = (
    "void (const double *record, intptr_t n_columns, const double *candidate, "
    "intptr_t n_coordinates, const intptr_t *where, const double *what, intptr_t m, double *out)"
)
USER_DATA = "void*"  # may follow, if the function takes it

_CFunction = ctypes.CFUNCTYPE(None).__mro__[1]  # of all functions of ctypes

# What compilers and bindings call a whole number as wide as a pointer.
_WHOLE = {"intptr_t", "Py_ssize_t", "ssize_t", "ptrdiff_t", "npy_intp", "longlong", "int64_t"}
if ctypes.sizeof(ctypes.c_long) == ctypes.sizeof(ctypes.c_void_p):
    _WHOLE |= {"long"}

# Of these words a type consists, in any number; a type of another name is one word.
_WORDS = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "bool",
          "complex", "_Bool", "_Complex", "struct", "union", "enum"}  # fmt: skip
_LEFT_OUT = {"const", "restrict", "volatile"}


def is_compiled(function: object) -> bool:
    """Whether this is a compiled function, or the name of one, rather than a Python function."""
    if isinstance(function, str):
        return ":" in function
    known = isinstance(function, LowLevelCallable | _CFunction)
    return known or isinstance(getattr(function, "ctypes", None), _CFunction)


class Compiled:
    """A compiled function, checked against the signature that it must have.

    `function` is a `scipy.LowLevelCallable`, a function of ctypes, an object whose attribute
    `ctypes` is one (numba's `cfunc`), or a text ``"module:function"``; `form` is `SCORE` or
    `MOVES`, and `name` that of the argument, for messages.
    """

    def __init__(self, function: Any, form: str, name: str) -> None:
        self.form, self.name = form, name
        self._text = function if isinstance(function, str) else None
        found = self._imported(function) if isinstance(function, str) else function
        self._owner, self._low_level = found, self._wrapped(found)  # the owner keeps code alive
        self.takes_data = self._checked(self._low_level.signature)
        self._token = uuid.uuid4().hex
        _here[self._token] = self

    @property
    def capsule(self) -> object:
        """The address of the function, with its user data as context."""
        return tuple.__getitem__(self._low_level, 0)

    def __repr__(self) -> str:
        return "<compiled>" if self._text is None else self._text

    def _imported(self, text: str) -> Any:
        """The function of this name: exported by a Cython module, or any attribute of a module."""
        module, _, name = text.partition(":")
        try:
            found = import_module(module)
            exported = getattr(found, "__pyx_capi__", {})
            return exported[name] if name in exported else getattr(found, name)
        except (ImportError, AttributeError, ValueError):
            raise DeclarationError(
                f"{self.name} ({text!r}) must name a compiled function; pass 'module:function' of "
                "a module that can be imported wherever records are"
            ) from None

    def _wrapped(self, found: Any) -> LowLevelCallable:
        if isinstance(found, LowLevelCallable):
            return found
        try:
            return LowLevelCallable(getattr(found, "ctypes", found))
        except (ValueError, TypeError, AttributeError):  # no function, or one without types
            raise DeclarationTypeError(
                f"{self.name} must be a compiled function that declares its types; pass a "
                f"scipy.LowLevelCallable, or a function of ctypes with argtypes, {self.form}"
            ) from None

    def _checked(self, signature: str | None) -> bool:
        """Whether a function with this signature takes user data; any other one is refused."""
        found, wanted = _plain(signature or ""), _plain(self.form)
        if found not in (wanted, [*wanted, USER_DATA]):
            raise DeclarationTypeError(
                f"{self.name} (signature {signature!r}) must have another signature; pass a "
                f"function {self.form}, with void *user_data after it if it takes any"
            )
        return len(found) > len(wanted)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._text is not None:
            return _found_by_name, (self._text, self.form, self.name)
        return _found_here, (self._token, self.name)


class _Missing:
    """Stands for a compiled function that was not found where it was unpickled.

    Who unpickles cannot refuse: a worker of a cluster would drop the message, and its connection.
    """

    def __init__(self, refusal: DeclarationError) -> None:
        self.refusal = refusal


_here: WeakValueDictionary[str, Compiled] = WeakValueDictionary()


def _found_here(token: str, name: str) -> Compiled | _Missing:
    refusal = DeclarationError(
        f"{name} is a compiled function of another process, whose address means nothing here; pass "
        f"{name}='module:function', which each worker imports"
    )
    return _here.get(token) or _Missing(refusal)


def _found_by_name(text: str, form: str, name: str) -> Compiled | _Missing:
    try:
        return Compiled(text, form, name)
    except DeclarationError as refusal:
        return _Missing(refusal)


def refuse_missing(*functions: object) -> None:
    """Refuse compiled functions that were not found in this process."""
    for function in functions:
        if isinstance(function, _Missing):
            raise function.refusal


def _plain(signature: str) -> list[str]:
    """The types of a signature, the result first, in one spelling each; none of another form."""
    form = re.fullmatch(r"([^()]+)\(([^()]*)\)\s*", signature)
    if form is None:  # such as that of a function which takes functions
        return []
    return [_plain_type(text) for text in (form[1], *form[2].split(","))]


def _plain_type(text: str) -> str:
    """A type without const and blanks, and without the name of its argument."""
    words = [word for word in re.findall(r"\w+", text) if word not in _LEFT_OUT]
    known = [word for word in words if word in _WORDS] or words[:1]
    names = len(words) - len(known)
    if "long" in known and "double" not in known:  # which may be written with int and signed
        known = [word for word in known if word not in ("int", "signed")]
    kind = "".join(known)
    if names > 1 or re.search(r"[^\w\s*]", text):  # arrays, and what is no type
        return text
    return ("intptr_t" if kind in _WHOLE else kind) + "*" * text.count("*")
