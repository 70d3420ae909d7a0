"""The walk of a fit of linear models, and everything that it buys from one budget.

    plan -> charge -> buy blanks -> buy counts -> run per class -> calibrate -> close

A `Plan` follows from public facts alone; what can be refused is refused there, and nothing
afterwards. Then the budget is charged, and spent in this order:

- **blanks** of the schema, if it has any. What they leave is the account of everything else
  (`runs.purchases`);
- **counts** of the classes, if their weights need them (`linear.class_weights`);
- **a run of the solver** for each class that gets a model;
- **calibration**: a slope and an intercept of each model's scores (`linear.calibration`).

Counts, solver and calibration divide what the blanks left as they divide a whole budget (`Parts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats
from privfit.domains import Domain
from privfit.linear import auto
from privfit.linear.additive import Additive
from privfit.linear.calibration import Parts, Scale, prior_of, share_of
from privfit.linear.class_weights import ClassWeights, Weighing
from privfit.linear.coding import Coding, purchase_of
from privfit.linear.descent import Gradient
from privfit.linear.evidence import Evidence
from privfit.linear.labelled import Labelled, Packed
from privfit.linear.level_shares import written_shares
from privfit.linear.methods import METHODS
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.linear.recipe import Recipe
from privfit.linear.room import most_room, room_of, solver_room
from privfit.linear.select_refine import SelectRefine
from privfit.objectives import LinearObjective
from privfit.privacy.ledger import Budget, Release
from privfit.records.blanks import Blanks
from privfit.runs.door import before, realised, settings_of
from privfit.runs.fields import Taken
from privfit.runs.paths import Path
from privfit.runs.payment import Account, Paid, Terms
from privfit.runs.purchases import Purchase
from privfit.runs.settings import Settings
from privfit.runs.sizes import PRIVATE, known_size

__all__ = ["Fitted", "Wanted", "fit"]

DECLARED = "declared"


@dataclass(frozen=True, eq=False)
class Wanted:
    """What an estimator asks for: its loss, a solver (None is 'auto'), and what else to buy."""

    loss: str
    solver: tuple[str, Any] | None
    class_weight: Any
    calibrate: Any
    coding: Any = DECLARED
    learned: bool = False  # whether the kinds of columns are the table's own, and not declared

    def coding_of(self, labelled: Labelled, terms: Terms) -> Coding | None:
        """How the columns of a table are coded; None if they stay as they are declared.

        By default they are coded for additive models alone, which 'auto' fits for log odds under a
        schema, with an intercept, and for objective perturbation with `functions`.
        """
        wanted = self.coding
        is_usual, is_declared = (isinstance(wanted, str) and wanted == name
                                 for name in ("auto", DECLARED))  # fmt: skip
        if not is_usual and not is_declared and not isinstance(wanted, Coding):
            raise DeclarationError(
                f"coding ({wanted!r}) must be 'auto', 'declared' or a Coding; pass coding='auto', "
                "or Coding(family='log')"
            )
        if is_declared:
            return None
        coding = self._usual_coding if is_usual else wanted
        if self.solver is not None and is_coded(self.solver[1]):
            return coding if labelled.domain.declared_columns else None
        if not is_usual:
            if self.solver is None and labelled.domain.declared_columns and terms.delta:
                return coding
            raise DeclarationError(
                f"coding ({wanted!r}) is for additive models under a Schema; pass "
                "solver='evidence', or solver='additive' with delta > 0, or leave coding out"
            )
        fits = self.solver is None and auto.is_additive(
            labelled.domain, terms, self.loss, labelled.fit_intercept
        )
        return coding if fits and (terms.delta or not self._weighs(labelled)) else None

    @property
    def _usual_coding(self) -> Coding:
        counts = self.solver is not None and isinstance(self.solver[1], Evidence)
        return Coding(family="decades") if counts else Coding()

    def chooses(self, labelled: Labelled) -> bool:
        """Whether the solver of a coded table is open to the signal that it turns out to have."""
        return self.solver is None and not self._weighs(labelled)

    def _weighs(self, labelled: Labelled) -> bool:
        """Whether classes or the loss have weights, which a perturbed objective has not."""
        return self.class_weight is not None or labelled.weights.get("C", 1.0) != 1.0

    def calibration(self, settings: Settings, terms: Terms) -> float:
        """The part of the budget that buys a calibration."""
        wanted = self.calibrate
        if not (isinstance(wanted, bool) or (isinstance(wanted, str) and wanted == "auto")):
            raise DeclarationError(
                f"calibrate ({wanted!r}) must be True, False or 'auto'; pass one of them"
            )
        impossible = is_publication(settings) or terms.is_infinite
        if wanted is True and impossible:
            raise DeclarationError(
                "calibrate (True) must be False for a solver with paper=True and for an infinite "
                "epsilon; pass calibrate=False or calibrate='auto'"
            )
        honest = self.loss == "logistic" and getattr(settings, "has_honest_scores", False)
        left_out = wanted is False or impossible or (wanted == "auto" and honest)
        return 0.0 if left_out else share_of(settings)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit released: models (heads, n_weights), the path of each, and the release."""

    paths: dict[Any, Path]
    domain: Domain
    classes: Array
    coef: Floats
    intercept: Floats
    release: Release | None
    solver: tuple[str, Taken]
    column_names: tuple[Any, ...]  # if they were only read where the records are


def fit(labelled: Labelled, terms: Terms, wanted: Wanted) -> Fitted:
    """Fit a linear model to each class that gets one."""
    plan = Plan.of(labelled, terms, wanted)
    account = terms.open(plan.packed.objective)
    packed, rest = plan.buy_blanks(account)
    weighings = plan.buy_counts(rest, packed)
    paths = plan.run(rest, packed, weighings)
    scales = plan.calibrate(rest, packed, paths, weighings)
    return plan.close(account, packed, paths, weighings, scales)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What a fit will do; it depends on public facts alone, and nothing was charged for it.

    `packed` are the records by which everything was checked: under a schema without the blanks, if
    `purchase` is to fill them in.
    """

    wanted: Wanted
    declared: Domain
    name: str
    settings: Any
    taken: Taken  # the solver as it was passed, before the charge
    weights: ClassWeights
    labelled: Labelled
    purchase: Purchase | None
    packed: Packed
    parts: Parts

    @classmethod
    def of(cls, labelled: Labelled, terms: Terms, wanted: Wanted) -> Plan:
        """Choose, divide, and refuse what cannot be done."""
        weights, declared = ClassWeights(wanted.class_weight, labelled.classes), labelled.domain
        coding = wanted.coding_of(labelled, terms)
        (name, settings), known = _solver(labelled, terms, wanted, coding)
        if settings.leaves_delta and not _buys_names(declared):
            terms = replace(terms, delta=0.0)  # the whole budget is charged all the same
        taken = before(settings)
        if coding is not None:
            found = _coded(labelled, terms, (name, settings), coding, wanted.chooses(labelled))
            name, taken, settings = found.name, found.taken, found.settings
            purchase, labelled, terms = found.purchase, found.labelled, found.terms
        else:
            models = len(labelled.heads)
            room = solver_room(labelled.domain, settings, terms, models, labelled.n_threads)
            labelled = labelled.leaving(room)
            if known is not None:  # records were read before the solver was chosen
                labelled.check_room()
            purchase, labelled = _bought(labelled, terms, name, settings)
        seen = labelled if purchase is None else labelled.under(purchase.stand_in)
        check_loss_weight(labelled, name, settings)
        packed = Packed.of(seen, settings, known)
        weights.check(name, settings, terms.delta)
        left = terms if purchase is None else purchase.terms(terms)
        calibration = wanted.calibration(settings, terms)
        counts = 0.0 if terms.is_infinite else weights.share(settings, terms.delta)
        parts = Parts(left, calibration, counts, len(labelled.heads))
        parts.terms.check(name, settings, packed.objective, packed.space)
        return cls(
            wanted, declared, name, settings, taken, weights, labelled, purchase, packed, parts
        )

    def buy_blanks(self, account: Account) -> tuple[Packed, Account]:
        """The records under a schema without blanks, and the account of everything else."""
        if self.purchase is None or not isinstance(account, Paid):
            return self.packed, account
        bought = self.labelled.under(self.purchase.buy(account))
        return Packed.of(bought, self.settings), self.purchase.account(account)

    def buy_counts(self, account: Account, packed: Packed) -> list[Weighing]:
        """The weights of the classes in each model, from noisy counts if they need any."""
        counts = None
        if self.parts.counts_share and isinstance(account, Paid):
            counts = self.parts.buy_counts(account, packed.class_counts())
        return self.weights.weighings(packed.heads, counts)

    def run(self, account: Account, packed: Packed, weighings: list[Weighing]) -> dict[Any, Path]:
        """The path of each class that has a model."""
        labels, paths = packed.labelled.classes.tolist(), {}
        for head, weighing in zip(packed.heads, weighings, strict=True):
            one = packed.of_head(head, self.settings).weighed(*weighing.pair, weighing.mean)
            run = self.parts.run(account, one, packed.space, labels[head])
            paths[labels[head]] = account.solved(self.name, self.settings, run)
        return paths

    def calibrate(
        self, account: Account, packed: Packed, paths: dict[Any, Path], weighings: list[Weighing]
    ) -> list[Scale]:
        """The slope and the intercept of each model's scores; none if they are not bought."""
        if not self.parts.share or not isinstance(account, Paid):
            return []
        weighted = any(one.pair != (1.0, 1.0) for one in weighings)
        facts = auto.facts(packed.objective, self.parts.terms, len(packed.heads), weighted)
        prior = prior_of(self.settings, facts)
        return [
            self.parts.calibrate(account, packed.against(head), path.answer, prior, weighing.pair)
            for head, path, weighing in zip(packed.heads, paths.values(), weighings, strict=True)
        ]

    def close(
        self,
        account: Account,
        packed: Packed,
        paths: dict[Any, Path],
        weighings: list[Weighing],
        scales: list[Scale],
    ) -> Fitted:
        """Close the account with everything that was released."""
        objective, classes = packed.objective, packed.labelled.classes
        domain = packed.labelled.domain.bind(objective.domain.width)
        models = np.array([path.answer for path in paths.values()])
        spreads = [path.noise for path in paths.values()]
        if scales and self.wanted.loss == "logistic":  # margins of a hinge stay as they are
            pairs = zip(models, scales, strict=True)
            models = np.array([one.of(model, objective.fit_intercept) for model, one in pairs])
            spreads = [None if noise is None else noise.times(one.slope)
                       for noise, one in zip(spreads, scales, strict=True)]  # fmt: skip
        coef, intercept = models[:, : domain.width], np.zeros(len(models))
        if objective.fit_intercept:
            intercept = models[:, -1]
        said = self._said(account, packed, paths, weighings, scales)
        released: dict[str, Any] = {
            "classes": classes.copy(), "coef": coef, "intercept": intercept,
        }  # fmt: skip
        known = [noise.to_dict() for noise in spreads if noise is not None]
        if len(known) == len(models):
            released["noise"] = known
        shares = [path.shares for path in paths.values() if path.shares is not None]
        if shares:
            released["shares"] = written_shares(np.mean(shares, axis=0))
        changed = self.wanted.learned or packed.labelled.domain != self.declared
        if domain.column_names is not None and changed:
            released["columns"] = domain.to_dict()["columns"]
        release = account.close(domain, said, released)
        return Fitted(
            paths, domain, classes, coef.copy(), intercept.copy(), release,
            (self.name, self.taken), objective.column_names,
        )  # fmt: skip

    def _said(
        self,
        account: Account,
        packed: Packed,
        paths: dict[Any, Path],
        weighings: list[Weighing],
        scales: list[Scale],
    ) -> dict[str, Any]:
        """The settings as they were used, for the release."""
        said = {**_realised(self.name, self.taken, paths), **packed.labelled.weights}
        if self.purchase is not None and isinstance(account, Paid):
            said["blanks"] = self.purchase.described(account)
        if self.weights.declared is not None:
            said["class_weight"] = {"share": self.parts.counts_share,
                                    "weights": [list(one.pair) for one in weighings]}  # fmt: skip
        if scales:
            said["calibration"] = self.parts.described(scales)
        labels = packed.labelled.classes
        said["fit_intercept"] = packed.objective.fit_intercept
        said["budget_split"] = {str(labels[i]): 1 / len(paths) for i in packed.heads}
        return said


def is_publication(settings: Settings) -> bool:
    """Whether a solver is a paper's and nothing else: no blanks, no calibration."""
    return bool(getattr(settings, "paper", False))


def is_coded(settings: Any) -> bool:
    """Whether a solver fits an additive model, for which columns are coded."""
    by_functions = isinstance(settings, ObjectivePerturbation) and settings.functions is not None
    return isinstance(settings, (Additive, Evidence)) or by_functions


@dataclass(frozen=True, eq=False, repr=False)
class _Coded:
    """A solver with its settings by a recipe, as they were before it, and what it is to fit."""

    name: str
    taken: Taken
    settings: Any
    purchase: Purchase | None
    labelled: Labelled
    terms: Terms


def _coded(
    labelled: Labelled, terms: Terms, solver: tuple[str, Any], coding: Coding, chooses: bool
) -> _Coded:
    """The solver by its recipe, and records under the schema that the coding makes.

    If the solver is open, the signal may ask for another one, for columns as they are declared, or
    for a delta to be left unused.
    """
    terms.refuse_infinity()
    schema: Any = labelled.domain
    models, numbers = len(labelled.heads), sum(one.holds_numbers for one in schema.columns.values())
    leaves = chooses and (numbers or schema.has_blanks) and not _buys_names(schema)
    is_pure = partial(auto.leaves_delta, numbers=numbers) if leaves else None

    def solver_of(recipe: Recipe, delta: float, size: int | None) -> tuple[str, Any, bool]:
        if not chooses:
            return *solver, True
        plain: Any = None
        if not delta and auto.is_cut(schema):  # a delta is left, and without one nothing is coded
            pure, intercept = Budget(terms.epsilon), labelled.fit_intercept
            plain = auto.choose(size, schema, pure, terms.neighbours, models, intercept)
        elif not schema.has_blanks:
            plain = auto.choose_declared(recipe, len(schema.columns), numbers, delta)
        chosen = plain or auto.choose_additive(delta, recipe.coarse)
        return *settings_of(chosen, METHODS), plain is None

    if labelled.is_streamed:
        room = room_of(schema, terms, solver_of, coding, models, is_pure, labelled.n_threads)
        labelled = labelled.leaving(*room)
    read = labelled.read_once()
    found = purchase_of(schema, read.table, terms, coding, labelled.n_threads, models, is_pure)
    name, settings, codes = solver_of(found.recipe, found.terms.delta, found.size)
    if not codes:
        plain = solver_room(schema, settings, found.terms, models, labelled.n_threads)
        read = read.leaving(plain)
        read.check_room()
        return _Coded(name, before(settings), settings, None, read, found.terms)
    followed = settings.following(found.recipe)
    purchase = _in_room(found.purchase, followed)
    if purchase is not None:
        purchase = purchase.beside(followed, found.terms.budget)
        purchase.check(name, followed)
    read = read.leaving(most_room(found.schema, followed, found.recipe, terms, models))
    read.check_room()
    return _Coded(
        name, before(settings), followed, purchase, read.under(found.schema), found.terms
    )  # fmt: skip


def _buys_names(domain: Domain) -> bool:
    """Whether names of categories are bought, which needs a delta."""
    schema: Any = domain
    return domain.has_blanks and bool(Blanks.of(schema).named)


def _bought(
    labelled: Labelled, terms: Terms, name: str, settings: Settings
) -> tuple[Purchase | None, Labelled]:
    """What is bought of a declared domain, if it has blanks, and records that were read once."""
    if not labelled.domain.has_blanks:
        return None, labelled
    read = labelled.read_once()
    purchase = Purchase.of(read.domain, read.table, terms, labelled.n_threads, settings)
    purchase.check(name, settings)
    return _in_room(purchase, settings), read


def _in_room(purchase: Any, settings: Settings) -> Any:
    """The purchase, of no more categories than an additive model has room for: public numbers.

    What was bought is paid for, and must not be refused afterwards. Counts have room for any.
    """
    if purchase is None or not is_coded(settings) or isinstance(settings, Evidence):
        return purchase
    coder: Any = settings
    room = coder.room(purchase.schema)
    return replace(purchase, plan=replace(purchase.plan, room=room))


def _solver(
    labelled: Labelled, terms: Terms, wanted: Wanted, coding: Coding | None
) -> tuple[tuple[str, Any], LinearObjective | None]:
    """The name and settings of the solver; 'auto' may have packed the records to choose it."""
    if wanted.solver is not None:
        return wanted.solver, None
    if coding is not None:
        if terms.delta and not terms.neighbours.replaces:
            known_size(terms.n_public, f"{PRIVATE} and solver='auto' depends on it")
        return settings_of(auto.choose_additive(terms.delta), METHODS), None
    weighs = wanted.class_weight is not None
    if labelled.weights.get("C", 1.0) != 1.0:
        terms.refuse_infinity()
        return settings_of(auto.WEIGHS_LOSS, METHODS), None
    if labelled.domain.has_blanks:
        return settings_of(auto.choose_beside_blanks(terms.delta, weighs), METHODS), None
    models = len(labelled.heads)
    rooms = [solver_room(labelled.domain, one, terms, models, labelled.n_threads)
             for one in (Gradient(), SelectRefine())]  # fmt: skip
    objective = labelled.leaving(0, max(rooms)).packed()
    terms.refuse_infinity()
    chosen = auto.choose(
        terms.size(objective), objective.domain, terms.budget, terms.neighbours,
        len(labelled.heads), objective.fit_intercept, weighs_classes=weighs,
    )  # fmt: skip
    return settings_of(chosen, METHODS), objective


def check_loss_weight(labelled: Labelled, name: str, settings: Settings) -> None:
    """Refuse a weight of the loss that the solver would ignore."""
    weight = labelled.weights.get("C", 1.0)
    if weight != 1.0 and not settings.weighs_loss:
        raise DeclarationError(
            f"C ({weight!r}) must be 1.0 for solver {name!r}, which does not weigh its loss; "
            "pass solver='eem', 'privgene' or Local(scoring='loss'), or leave C out"
        )


def _realised(name: str, given: Taken, paths: dict[Any, Path]) -> dict[str, Any]:
    """The settings as they were used, and where a callback ended the model of each class."""
    said = realised(name, given, [*paths.values()][-1])
    if len(paths) > 1 and any(path.stopped for path in paths.values()):
        said["stopped"] = {str(one): path.notes.get("stopped") for one, path in paths.items()}
    return said
