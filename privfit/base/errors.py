"""The errors that privfit raises, by class.

Every message names the remedy and shows no private value. An error is a `ValueError` and, if Python
has a narrower class for it, that class as well, so that the usual ``except`` clauses catch it.

=====================  ===========================================================================
`DeclarationError`     a parameter, setting, domain or other declaration (`DeclarationTypeError`)
`InputError`           records, labels or other data that were passed (`InputTypeError`)
`BudgetError`          the budget does not cover it
`SolverError`          a solver that failed after its budget was charged
`FileError`            the content or place of a file; `FileAccessError` if the system refuses it
`MissingExtraError`    an optional package that is not installed
`ClusterError`         a cluster whose workers do not answer
=====================  ===========================================================================
"""

from __future__ import annotations

import errno

__all__ = [
    "BudgetError",
    "ClusterError",
    "DeclarationError",
    "DeclarationTypeError",
    "FileAccessError",
    "FileError",
    "InputError",
    "InputTypeError",
    "MissingExtraError",
    "PrivfitError",
    "SolverError",
]


class PrivfitError(ValueError):
    """Base class of privfit's errors: the message says what to do, and quotes no record.

    See Also
    --------
    DeclarationError, InputError, BudgetError, FileError : The main kinds.

    Examples
    --------
    >>> from privfit import Box, PrivfitError
    >>> try:
    ...     Box(1, 0)
    ... except PrivfitError as error:
    ...     print(type(error).__name__)
    DeclarationError
    """


class DeclarationError(PrivfitError):
    """A parameter, setting, domain or other declaration that cannot be used.

    See Also
    --------
    InputError : Data that cannot be used.

    Examples
    --------
    >>> from privfit import DeclarationError, Ledger
    >>> try:
    ...     Ledger(epsilon=-1.0)
    ... except DeclarationError:
    ...     print("refused")
    refused
    """


class DeclarationTypeError(DeclarationError, TypeError):
    """A declaration of the wrong type; also a `TypeError`.

    See Also
    --------
    DeclarationError : The base class.

    Examples
    --------
    >>> from privfit import DeclarationTypeError
    >>> issubclass(DeclarationTypeError, TypeError)
    True
    """


class InputError(PrivfitError):
    """Records, labels or other data that cannot be used as they are.

    See Also
    --------
    DeclarationError : Declarations that cannot be used.

    Examples
    --------
    >>> from privfit import Box, InputError, LinearObjective
    >>> try:
    ...     LinearObjective([[0.0]], [7], domain=Box(-1, 1))
    ... except InputError:
    ...     print("refused")
    refused
    """


class InputTypeError(InputError, TypeError):
    """Data of the wrong type; also a `TypeError`.

    See Also
    --------
    InputError : The base class.

    Examples
    --------
    >>> from privfit import InputError, InputTypeError
    >>> issubclass(InputTypeError, InputError) and issubclass(InputTypeError, TypeError)
    True
    """


class BudgetError(PrivfitError, RuntimeError):
    """A release that the budget does not cover; nothing was drawn. Also a `RuntimeError`.

    See Also
    --------
    Ledger : Where budgets are charged.

    Examples
    --------
    >>> from privfit import BudgetError, Ledger
    >>> try:
    ...     Ledger(epsilon=1.0).reserve(2.0)
    ... except BudgetError:
    ...     print("refused")
    refused
    """


class SolverError(PrivfitError, RuntimeError):
    """A solver that failed after its budget was charged. Also a `RuntimeError`.

    The message says what was charged, the class of the error and the line of the solver. The error
    itself may quote what the code looked at, so it is neither shown nor kept: while you write a
    solver, call it with a `Run` over made-up records, where nothing is hidden.

    See Also
    --------
    Solver : What a solver must be.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, RecordObjective, SolverError, search
    >>> objective = RecordObjective(np.zeros(9), lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0)
    >>> try:
    ...     search(objective, Bits(4), 1.0, solver=lambda run: "no path")
    ... except SolverError:
    ...     print("failed")
    failed
    """


class FileError(PrivfitError):
    """A file whose content is not as required, or which is in an unusable place.

    See Also
    --------
    FileAccessError : A file that the system does not let privfit use.

    Examples
    --------
    >>> from privfit import FileError, load
    >>> try:
    ...     load("setup.cfg")
    ... except (FileError, FileNotFoundError):
    ...     print("refused")
    refused
    """


class FileAccessError(OSError, FileError):
    """A file that the system does not let privfit use; also an `OSError`.

    See Also
    --------
    FileError : The base class.

    Examples
    --------
    >>> from privfit import FileAccessError, Stream
    >>> try:
    ...     Stream("absent.csv")
    ... except FileAccessError:
    ...     print("refused")
    refused
    """


class FileMissingError(FileAccessError, FileNotFoundError):
    """A file that does not exist."""


class FilePermissionError(FileAccessError, PermissionError):
    """A file that this user may not read or write."""


class FileBusyError(FileAccessError, TimeoutError):
    """A file that another process keeps locked."""


class MissingExtraError(ImportError, PrivfitError):
    """An optional package that is not installed; also an `ImportError`.

    See Also
    --------
    PrivfitError : The base class.

    Examples
    --------
    >>> from privfit import MissingExtraError
    >>> issubclass(MissingExtraError, ImportError)
    True
    """


class ClusterError(PrivfitError, RuntimeError):
    """A cluster whose workers do not answer; also a `RuntimeError`.

    See Also
    --------
    Stream : Records on disk, without a cluster.

    Examples
    --------
    >>> from privfit import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


_BY_NUMBER = {
    errno.ENOENT: FileMissingError,
    errno.EACCES: FilePermissionError,
    errno.EPERM: FilePermissionError,
}


def access_error(number: int | None, message: str) -> FileAccessError:
    """The error of a file by the system's error number; a `PermissionError` or the like as well."""
    kind = _BY_NUMBER.get(number or 0, FileAccessError)
    return kind(number, message)
