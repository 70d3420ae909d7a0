"""A report on a model for people who decide whether it may be published: one HTML file.

Everything in it was released, declared or recomputed from what was; nothing is read from records.
The file has no scripts, no links to other files, and no date that was not passed: one model makes
one text. Its texts are escaped where it is made (`privfit.base.markup`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privfit.base.errors import DeclarationError, DeclarationTypeError, PrivfitError
from privfit.base.markup import Markup, element, joined, table
from privfit.base.version import __version__
from privfit.evaluation.roc import RocCurve
from privfit.models import model as model_files
from privfit.privacy.cards import (
    SEEDED,
    draws_table,
    ledger_card,
    settings_table,
    values_table,
)
from privfit.privacy.ledger import Ledger, Release
from privfit.report.declarations import bought_before, domain_parts
from privfit.report.estimates import LEVEL, Estimate
from privfit.report.findings import calibration_parts, findings_of, kind_of, roc_parts
from privfit.report.guarantee import Odds, guarantee_section, percent_up
from privfit.report.page_style import STYLE

__all__ = ["html"]

DRAWS = {
    "selection": "a choice among candidates by the exponential mechanism; its size is its epsilon",
    "pure": "numbers with discrete Laplace noise, or a choice; its size is its epsilon",
    "gaussian": "numbers with discrete Gaussian noise; its size is the most that one row changes "
    "them, in standard deviations of the noise",
    "approximate": "a release with an epsilon, its size, and a delta of its own",
}
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no scripts, no network


def html(
    model: Any,
    *,
    curve: Any = None,
    accuracy: Any = None,
    ledger: Ledger | None = None,
    title: str | None = None,
    date: Any = None,
) -> str:
    """A report on a released model, as the text of an HTML file.

    Parameters
    ----------
    model : fitted estimator, RocCurve, ConfusionMatrix, str or path-like
        A fitted estimator of privfit, a released curve or matrix, or the path of a model file.
    curve : RocCurve, dict of str to RocCurve or None, default=None
        What `roc_curve` released of the model; by default the curve that is kept in its file. A
        curve of probabilities is shown with a calibration curve, which is computed from it.
    accuracy : ReleasedFloat, ConfusionMatrix or None, default=None
        What `accuracy_score` or `confusion_matrix` released of the model; by default what is kept
        in its file. It is shown with a 95 % interval, of its noise and of the test records.
    ledger : Ledger or None, default=None
        The ledger that was charged; by default that of the estimator, if it has one.
    title : str or None, default=None
        The title; by default the kind of the model.
    date : object, default=None
        The date of the report, such as a `datetime.date`. By default there is none, so that the
        same model makes the same text.

    Returns
    -------
    str
        The text of a file without scripts and without links to other files.

    Raises
    ------
    BudgetError
        If the draws of a release cost more than it promises.

    See Also
    --------
    privfit.save : Writes the model itself.
    privfit.report.plotting.draw_shapes : One of the pictures.

    Notes
    -----
    Released: nothing, since everything in the report is public already. Pictures need matplotlib;
    without it there are tables. docs/report.md explains the sections.

    Examples
    --------
    >>> import numpy as np
    >>> import privfit
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> model = privfit.KMeans(2, 1.0, domain=(-1, 1)).fit(X)
    >>> text = privfit.report.html(model, title="Two places")
    >>> "<h1>Two places</h1>" in text, "<script" in text
    (True, False)
    """
    report = _Report.of(model, curve, accuracy, ledger)
    heading = f"Privacy report: {kind_of(report.model)}" if title is None else _text(title, "title")
    body = [*_header(report, heading, date), *report.sections(), _footer(report)]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", **{"http-equiv": "Content-Security-Policy", "content": POLICY}),
        element("title", heading),
        element("style", Markup(STYLE)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en')}\n"


@dataclass(frozen=True)
class _Source:
    """Where a model came from: this process, or a file."""

    written_by: str = ""
    digest: str = ""

    def rows(self) -> list[tuple[str, str]]:
        """What the table of versions says of it."""
        if not self.written_by:
            return [("model", "fitted in the process that made this report")]
        return [("model file, written by", self.written_by), ("its SHA-256", self.digest)]


@dataclass(frozen=True, eq=False)
class _Report:
    """What a report is about."""

    model: Any
    release: Release
    source: _Source
    curves: Mapping[str, RocCurve]
    estimate: Estimate | None
    matrix: Any
    ledger: Ledger | None
    checks: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, model: Any, curve: Any, accuracy: Any, ledger: Any) -> _Report:
        source = _Source()
        if isinstance(model, str | os.PathLike):
            content = Path(model).read_bytes()
            model = model_files.load(model)
            writer = model_files.check(content).written_by
            source = _Source(writer, hashlib.sha256(content).hexdigest())
        release = _release_of(model)
        kept = getattr(model, "evaluations_", {})
        curve = kept.get("curve") if curve is None else curve
        accuracy = kept.get("accuracy") if accuracy is None else accuracy
        ledger = getattr(model, "ledger", None) if ledger is None else ledger
        if ledger is not None and not isinstance(ledger, Ledger):
            raise DeclarationTypeError(
                f"ledger ({type(ledger).__name__}) must be a Ledger; pass the one that was charged"
            )
        estimate = None if accuracy is None else Estimate.of(accuracy)
        matrix = accuracy if hasattr(accuracy, "counts") else None
        made = cls(model, release, source, _curves(curve), estimate, matrix, ledger)
        made.checks.extend(made._checked())
        return made

    @property
    def releases(self) -> dict[str, Release]:
        """Every release that the report is about, by what it is of."""
        found = {"the model": self.release}
        bought = getattr(getattr(self.model, "domain", None), "release", None)
        if isinstance(bought, Release):
            found["the schema"] = bought
        if self.estimate is not None:
            found["the accuracy"] = self.estimate.release
        return found | {f"the curve {name!r}": one.release for name, one in self.curves.items()}

    def _checked(self) -> Iterator[tuple[str, str]]:
        """What was recomputed; a release that promises too little is an error."""
        for name, release in self.releases.items():
            release.verify()
            draws = sum(event.count for event in release.events)
            yield (
                f"{name}: its {draws:,} draws cost epsilon {release.cost():.6g} at delta "
                f"{release.delta:.3g}, and {release.epsilon:.6g} was promised",
                "passed",
            )
            yield (f"{name}: noise from the operating system's entropy",
                   f"failed: {SEEDED}" if release.seeded else "passed")  # fmt: skip
        yield "the model holds what was released, and nothing else", self._held()
        if self.ledger is not None:
            spent, whole = self.ledger.spent, self.ledger.budget
            within = spent.epsilon <= whole.epsilon and spent.delta <= whole.delta
            yield (f"the ledger's grants add up to {spent}, within {whole}",
                   "passed" if within else "failed")  # fmt: skip

    def _held(self) -> str:
        """Whether a model file can hold the model, since it compares each number."""
        try:
            model_files.dumps(self.model)
        except PrivfitError as error:
            return f"not checked: {error}"
        return "passed"

    def sections(self) -> list[Markup]:
        """The sections, in order."""
        found = findings_of(self.model)
        parts = {
            "What was released": self._released(),
            "The guarantee": guarantee_section(self.release),
            "Budget": self._budget(),
            "Declared and bought": domain_parts(self.model, self.release),
            "Accuracy": self._accuracy(),
            "What the model says": found,
            "Settings": [settings_table(self.release.settings)],
            "Checks": [table(("check", "result"), self.checks, texts=2)],
            "Versions": [table(("what", "version"), self._versions(), texts=2)],
        }
        return [element("section", element("h2", title), *content)
                for title, content in parts.items() if content]  # fmt: skip

    def _released(self) -> list[Markup]:
        words = (
            f"Published: {kind_of(self.model)} ({type(self.model).__name__}), made from private "
            "records under differential privacy. The table lists every value that this fit "
            "took from the records; all else here is computed from them, from public declarations "
            "and from other releases, which are named as such. No record, no exact count and no "
            "exact accuracy is among them."
        )
        return [element("p", words), values_table(self.release.parameters)]

    def _budget(self) -> list[Markup]:
        words = (
            f"The release was charged epsilon {self.release.epsilon:.6g}, delta "
            f"{self.release.delta:.3g}, before anything was drawn. Random draws were made as "
            "follows; together they cost no more, as the checks below recompute."
        )
        kinds = dict.fromkeys(event.kind for event in self.release.events)
        parts = [element("p", words), draws_table(self.release),
                 element("ul", *(element("li", element("b", kind), f": {DRAWS[kind]}")
                                 for kind in kinds))]  # fmt: skip
        rows = [(name, one.name, f"{one.epsilon:.6g}", f"{one.delta:.3g}", one.adjacency)
                for name, one in self.releases.items()]  # fmt: skip
        stated = bought_before(self.model)
        if stated is not None and "the schema" not in self.releases:
            rows.append(("the schema, as its file states", "learn_schema",
                         f"{stated.epsilon:.6g}", f"{stated.delta:.3g}",
                         stated.adjacency))  # fmt: skip
        if len(rows) > 1:
            words = (
                "Releases in this report. The costs of releases from the same records add up; "
                "those from disjoint records do not."
            )
            parts.append(element("p", words))
            parts.append(table(("of", "name", "epsilon", "delta", "relation"), rows, texts=2,
                               stacked=True))  # fmt: skip
        if self.ledger is not None:
            parts.append(ledger_card(self.ledger))
        return parts

    def _accuracy(self) -> list[Markup]:
        parts: list[Markup] = []
        if self.estimate is not None:
            one = self.estimate
            parts.append(
                element(
                    "p",
                    element("b", f"{100 * one.value:.1f} % of records are predicted correctly"),
                    f", with a {100 * LEVEL:g} % interval from {100 * one.lower:.1f} % to "
                    f"{100 * one.upper:.1f} %, for the noise and for the choice of test records.",
                )
            )
        if self.matrix is not None:
            parts += findings_of(self.matrix)
        if self.curves:
            parts += roc_parts(dict(self.curves))
        if self.curves and hasattr(self.model, "predict_proba"):
            parts += calibration_parts(dict(self.curves))
        if not parts and hasattr(self.model, "predict") and hasattr(self.model, "classes_"):
            parts.append(element("p", "No released accuracy was passed to this report. An exact "
                                      "one, on private records, would be a leak."))  # fmt: skip
        return parts

    def _versions(self) -> list[tuple[str, str]]:
        return [*self.source.rows(), ("this report, made by", f"privfit {__version__}")]


def _release_of(model: Any) -> Release:
    """The release of a fitted model, a curve or a matrix."""
    release = getattr(model, "release_", getattr(model, "release", None))
    if not isinstance(release, Release):
        raise DeclarationTypeError(
            f"model ({type(model).__name__}) must have been released; pass a fitted estimator of "
            "privfit with a finite epsilon, a released curve, or the path of a model file"
        )
    return release


def _curves(curve: Any) -> dict[str, RocCurve]:
    """Released curves by name."""
    named = curve if isinstance(curve, Mapping) else {} if curve is None else {"ROC": curve}
    for name, one in named.items():
        if not isinstance(one, RocCurve):
            raise DeclarationTypeError(
                f"curve ({name!r}: {type(one).__name__}) must be a RocCurve; pass what "
                "privfit.roc_curve returns"
            )
    return {str(name): one for name, one in named.items()}


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DeclarationError(f"{name} ({value!r}) must be a text; pass such as 'Readmissions'")
    return value


def _header(report: _Report, heading: str, date: Any) -> list[Markup]:
    """The title, the guarantee at a glance, and a warning if there is one."""
    release = report.release
    odds = Odds(release.epsilon, release.delta)
    dated = [] if date is None else [element("p", str(date), class_="sub")]
    glance = {
        "epsilon": f"{release.epsilon:.6g}",
        "delta": f"{release.delta:.3g}",
        "relation": release.adjacency,
        "attacker's best guess of two tables": percent_up(odds.success),
        "checks passed": f"{sum(result == 'passed' for _, result in report.checks)} of "
        f"{len(report.checks)}",
    }
    if report.estimate is not None:
        glance["accuracy"] = f"{100 * report.estimate.value:.1f} %"
    boxes = [element("div", element("dt", name), element("dd", value))
             for name, value in glance.items()]  # fmt: skip
    name = type(report.model).__name__
    parts = [
        element("header", element("h1", heading), *dated),
        element("p", f"Subject: {kind_of(report.model)} ({name}), computed from private records "
                     "under differential privacy. This report states what was published, what is "
                     "guaranteed about each record, and how both were checked."),
        element("dl", *boxes, class_="glance"),
    ]  # fmt: skip
    if any(one.seeded for one in report.releases.values()):
        parts.append(element("p", element("b", "Not private. "), f"At least one release: "
                             f"{SEEDED}.", class_="warning"))  # fmt: skip
    return parts


def _footer(report: _Report) -> Markup:
    return element(
        "footer",
        element("p", joined("Made by privfit ", __version__, " from released values alone. The "
                            "model file holds all that the fit released, and can be checked by "
                            "anyone: ", element("code", "privfit show model.json"), ". Curves, "
                            "accuracies and budgets are shown as they were passed to this report; "
                            "that they belong to this model is for its author to say."))
    )  # fmt: skip
