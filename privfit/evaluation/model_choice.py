"""The best of several fitted models on private records, by one selection.

**Guarantee.** Models are public: they were released, or made from other records. Of record i with
label y_i, model j has a loss l(i, j), a whole number from 0 to L that depends on the record and on
the model alone:

=========  ==================================================================================
errors     0 if the model predicts y_i, else 1: L = 1
log loss   -ln of the probability that the model gives y_i, cut at `clip` and rounded down to
           units of 2^-16: L = floor(2^16 clip)
=========  ==================================================================================

Model j scores u_j = -sum_i l(i, j), an int64. Let q_i = l(i, r') - l(i, r), which is in [-L, L].
u_r - u_r' is the sum of all q_i. A record that is added or removed changes it by one q_i, at most
L; a record that is replaced by the difference of two, at most 2 L. So the range of the scores is L
under 'add_remove' and 2 L under 'replace', and the exponential mechanism with exp(epsilon u / R)
is epsilon-bounded-range, hence epsilon-DP: one selection, and nothing else leaves. How many records
each model gets right is not released.

The index alone is released, so the charge does not depend on the number of models. With k models
the chosen one has at most R (ln k + ln 1/b) / epsilon more loss than the best, except with
probability b.

**A record by itself.** The sums are exact, and so a record must not change what another record is
predicted to be, not even in its last bit. A product of matrices may round a row by its place in the
table and by how many others there are: products in float32 do so in the middle of a table, too.
Models of other packages therefore get each record alone, in a table of one row. Whatever they do
with it, normalise it included, is a function of that record. Models of privfit multiply in float64
and row by row, and get blocks of one size, the last one filled up with copies of its first record,
on one thread of BLAS: so the place of a record makes no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from privfit.base import blas
from privfit.base.errors import DeclarationError, DeclarationTypeError, InputError, PrivfitError
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_finite
from privfit.domains.frames import indexable, length, records_of, rows_of
from privfit.domains.reading import LevelReader, positions
from privfit.evaluation.roc import shown_labels
from privfit.privacy.ledger import Ledger, Release
from privfit.privacy.mechanisms import Exponential
from privfit.privacy.neighbours import Adjacency
from privfit.records import sums_of
from privfit.records.packing import Run
from privfit.records.rows import Rows
from privfit.runs.guests import is_ours
from privfit.runs.payment import Terms

__all__ = ["Chosen", "choose"]

ERRORS, LOG_LOSS = "errors", "log_loss"
UNITS = 1 << 16  # of a log loss
CLIPS = (2.0**-8, 64.0)
MOST_MODELS = 10_000
BLOCK = 1024  # records that a model of privfit predicts at a time


@dataclass(frozen=True, eq=False)
class Chosen:
    """The model that `choose` selected.

    Parameters
    ----------
    name : str or int
        Its name, or its position in a list.
    model : object
        The model itself.
    release : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    choose : Returns it.

    Examples
    --------
    >>> from privfit import Ledger
    >>> from privfit.evaluation import Chosen
    >>> Chosen("small", None, Ledger(1.0).reserve(1.0, adjacency="replace").close())
    Chosen('small')
    """

    name: str | int
    model: Any = field(repr=False)
    release: Release = field(repr=False)

    def __repr__(self) -> str:
        return f"Chosen({self.name!r})"


def choose(
    models: Any,
    X: Any,
    y: Any,
    epsilon: float,
    *,
    measure: str = ERRORS,
    clip: float = 4.0,
    classes: Sequence[Any] | None = None,
    adjacency: Adjacency = "replace",
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> Chosen:
    """Choose the best of several fitted classifiers on private records.

    Parameters
    ----------
    models : sequence or dict of str to fitted classifiers
        At least two models that were released, or fitted to other records, with `predict`, and with
        `predict_proba` for the log loss. Those of other packages predict record by record, each
        alone, which takes as long as so many calls.
    X : array-like of shape (n, n_columns), DataFrame, dict of columns or Stream
        Private records, as the models take them. They may be those of the fits: the choice is
        one more release about them.
    y : array-like of shape (n,) or str
        Private labels; of a stream, the name of their column.
    epsilon : float
        The budget of the choice.
    measure : {'errors', 'log_loss'}, default='errors'
        What is to be small: the number of wrong predictions, or the sum of -ln of the probability
        of the label.
    clip : float, default=4.0
        For the log loss: the most that a record counts. The noise is in proportion to it.
    classes : sequence or None, default=None
        The declared labels; by default those of the models, which must be the same.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    ledger : Ledger or None, default=None
        The ledger to charge, before anything is drawn; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    Chosen
        The chosen model with its name and the release.

    See Also
    --------
    accuracy_score : The accuracy of one model.
    choose_k : Chooses a number of clusters.

    Notes
    -----
    Released: which model it is, and nothing about the others. Cost: one selection of epsilon,
    however many models there are; the fits are charged by themselves. With k models and n records
    the error rate of the chosen model exceeds the least one by more than 2 (ln k + ln 1/b) / (n
    epsilon) with probability b at most ('add_remove': half as much). docs/choose.md has the proof.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Ledger, LogisticRegression, choose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> ledger = Ledger(2.5, 2e-6)
    >>> def fitted(labels):
    ...     model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], ledger=ledger)
    ...     return model.fit(X, labels)
    >>> models = {"right": fitted(y), "wrong": fitted(1 - y)}
    >>> choose(models, X, y, epsilon=0.5, ledger=ledger)
    Chosen('right')
    >>> ledger.spent.epsilon
    2.5
    """
    judges = _Judges.of(models, measure, clip, classes)
    terms = Terms("choose", epsilon, 0.0, adjacency, None, ledger, random_state)
    terms.refuse_infinity("pass a finite epsilon")
    table = sums_of(X, y, partial(JudgedRows.pack, judges=judges))
    mechanism = Exponential(epsilon, terms.neighbours.changes * judges.most)
    paid = terms.charge(table)
    place = paid.release(mechanism, -table.sum(JudgedRows.losses))
    release = paid.close("", judges.settings, {"chosen": place})
    return Chosen(judges.names[place], judges.models[place], release)


@dataclass(frozen=True, eq=False, repr=False)
class _Judges:
    """Public models, and the loss by which they are compared."""

    names: list[Any]
    models: list[Any]
    classes: list[Any]
    measure: str
    clip: float

    @classmethod
    def of(cls, models: Any, measure: Any, clip: Any, classes: Any) -> _Judges:
        named = _named(models)
        if not isinstance(measure, str) or measure not in (ERRORS, LOG_LOSS):
            raise DeclarationError(
                f"measure ({measure!r}) must be 'errors' or 'log_loss'; pass one of them"
            )
        if not is_finite(clip) or not CLIPS[0] <= clip <= CLIPS[1]:
            raise DeclarationError(
                f"clip ({clip!r}) must be a number from {CLIPS[0]:g} to {CLIPS[1]:g}; pass clip=4.0"
            )
        asked = "predict" if measure == ERRORS else "predict_proba"
        for name, model in named.items():
            if not callable(getattr(model, asked, None)):
                raise DeclarationTypeError(
                    f"models ({name!r}: {type(model).__name__}) must have {asked} for "
                    f"measure={measure!r}; pass fitted classifiers"
                )
        labels = _classes_of(named, classes)
        return cls(list(named), list(named.values()), labels, measure, float(clip))

    @property
    def most(self) -> int:
        """The largest loss of a record."""
        return 1 if self.measure == ERRORS else math.floor(UNITS * self.clip)

    @property
    def settings(self) -> dict[str, Any]:
        """What a `Release` says of the choice."""
        cut = {} if self.measure == ERRORS else {"clip": self.clip}
        return {"measure": self.measure, **cut, "models": self.names,
                "classes": shown_labels(self.classes)}  # fmt: skip

    def losses(self, X: Any, codes: Integers) -> Integers:
        """int64 (k,): the sum of each model's losses on records whose labels have these codes."""
        total = np.zeros(len(self.models), dtype=np.int64)
        for first in range(0, len(codes), BLOCK):
            rows = np.arange(first, first + BLOCK)
            rows[rows >= len(codes)] = first  # copies of the first record fill the last block
            block, labels = rows_of(X, rows), codes[first : first + BLOCK]
            for place in range(len(self.models)):
                total[place] += int(self._block(place, block, labels).sum())
        return total

    def _block(self, place: int, block: Any, labels: Integers) -> Integers:
        """int64 (n,): the loss of each record of a block, of which n have labels."""
        model, failed = self.models[place], ""
        try:
            # A warning that a number overflows would be one about a record.
            with blas.one_thread(), np.errstate(all="ignore"):
                if self.measure == ERRORS:
                    said = self._said(model, model.predict, block, len(labels), ())
                    return self._errors(said, labels)
                tail = (len(self.classes),)
                said = self._said(model, model.predict_proba, block, len(labels), tail)
                return self._log_losses(model, said, labels)
        except PrivfitError:
            raise
        except Exception as error:  # its message may quote records
            failed = type(error).__name__
        raise InputError(
            f"models ({self.names[place]!r}) must predict the classes of X, but it failed with "
            f"{failed}; pass models that are fitted, to columns that X has"
        )

    def _said(
        self, model: Any, ask: Callable[[Any], Any], block: Any, n: int, tail: tuple[int, ...]
    ) -> Array:
        """(n, *tail): what a model says of the first n records of a block."""
        if is_ours(model):
            return _answer(ask(block), (BLOCK, *tail))[:n]
        each = (ask(rows_of(block, np.array([i]))) for i in range(n))
        return np.concatenate([_answer(one, (1, *tail)) for one in each])

    def _errors(self, predicted: Array, labels: Integers) -> Integers:
        """0 where the prediction is the label, else 1."""
        return (self._reader.codes(predicted).astype(np.int64) != labels).astype(np.int64)

    def _log_losses(self, model: Any, chances: Array, labels: Integers) -> Integers:
        """-ln of the probability of each label, cut and in whole units; NaN counts most."""
        places = self._reader.codes(np.asarray(model.classes_))
        column = np.argsort(places.astype(np.int64))[labels]
        chance = chances.astype(np.float64)[np.arange(len(labels)), column]
        loss = -np.log(np.clip(chance, 0.0, 1.0))
        cut = np.where(loss < self.clip, loss, self.clip)  # which is also where it is NaN
        return np.floor(UNITS * cut).astype(np.int64)

    @cached_property
    def _reader(self) -> LevelReader:
        return LevelReader(positions(self.classes, "classes"))


def _answer(said: Any, shape: tuple[int, ...]) -> Array:
    """What a model said, of this shape; numpy would repeat another one, and count it as often."""
    found = np.asarray(said)
    if found.shape != shape:
        raise InputError(
            "models must return one prediction for each record, or one probability for each of its "
            "classes; pass classifiers with the methods of scikit-learn's"
        )
    return found.astype(object)  # what one record is said to be leaves the others as they are


class JudgedRows(Rows):
    """The sums of the losses of public models over private records."""

    def __init__(self, n: int, losses: Integers) -> None:
        super().__init__((Run(0, n, 0),), 1)
        self._losses = losses

    @classmethod
    def pack(cls, X: Any, y: Any, *, judges: _Judges) -> JudgedRows:
        """Predict records, each by itself, and add up their losses."""
        n = length(y)
        if n < 0 or n != records_of(X):
            raise InputError("y must have one label for each record of X; pass a vector of labels")
        if n == 0:
            raise InputError("X must have at least one record; pass a non-empty table")
        codes = judges._reader.codes(y)
        if (codes < 0).any():
            raise InputError(
                "y has labels outside the declared classes; pass models of all classes, or "
                "classes=[...] with them"
            )
        return cls(n, judges.losses(indexable(X), codes.astype(np.int64)))

    def losses(self) -> Integers:
        """int64 (k,): the sum of the losses of each model."""
        return self._losses


def _named(models: Any) -> dict[Any, Any]:
    """Models by name or position."""
    if isinstance(models, Mapping):
        named = dict(models)
    elif isinstance(models, Sequence) and not isinstance(models, str):
        named = dict(enumerate(models))
    else:
        raise DeclarationTypeError(
            f"models ({type(models).__name__}) must be several fitted models; pass a list, or a "
            "dict of names"
        )
    texts = all(isinstance(name, str) for name in named) or not isinstance(models, Mapping)
    if not texts or not 2 <= len(named) <= MOST_MODELS:
        raise DeclarationError(
            f"models ({len(named)} of them) must be from two to {MOST_MODELS:,}, by names that are "
            "texts; pass {'small': model, 'large': other}"
        )
    return named


def _classes_of(named: dict[Any, Any], classes: Any) -> list[Any]:
    """The labels, declared or those of the models; all models must agree."""
    known = [getattr(model, "classes_", None) for model in named.values()]
    listed = [_plain(one) for one in known if one is not None]
    if classes is not None:
        listed.insert(0, _plain(classes))
    if not listed or len(listed[0]) < 2:
        raise DeclarationError(
            "classes must be at least two labels, which the models do not tell; pass classes=[...]"
        )
    first = positions(listed[0], "classes").keys()
    if any(positions(one, "classes").keys() != first for one in listed):
        raise DeclarationError(
            "models must have the same classes as each other, and as classes if that is passed; "
            "pass models of one task"
        )
    return listed[0]


def _plain(labels: Any) -> list[Any]:
    return list(labels.tolist() if isinstance(labels, np.ndarray) else labels)
