"""What a sweep measured: trials, their means, and the sweeps of several models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import FileError
from privfit.base.json import parse, write
from privfit.base.markup import Markup, element, joined, table
from privfit.base.tables import Frame, as_frame

__all__ = ["Row", "Sweep", "SweepInterrupted", "Sweeps", "Trial", "interval"]

VERSION = 1  # of a sweep as JSON
NOT_PRIVATE = "These are exact functions of public records, and not private."


@dataclass(frozen=True)
class Trial:
    """One fit and its score on its test records. `setting` is epsilon, or names a reference."""

    setting: float | str
    seed: int
    value: float


@dataclass(frozen=True)
class Row:
    """The mean of a setting's trials, and half the width of its 95 % interval (NaN for one)."""

    setting: float | str
    mean: float
    half_width: float
    count: int


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep. It contains exact functions of the records, and is not private.

    Parameters
    ----------
    name, settings : str
        The estimator, and those of its parameters that were the same in every fit.
    measure : str
        What was measured on the test records of each split.
    delta : float
        The delta of all fits.
    test_size : float
        Fraction of test records; 0 for a search, which splits nothing.
    n_records : int
        Number of records.
    seeds : int
        Number of splits.
    epsilons : tuple of float
        The budgets, in increasing order.
    references : tuple of str
        The names of the references.
    trials : tuple of Trial
        The trials done so far, split by split.

    See Also
    --------
    sweep : Makes one.
    Sweeps : Several, by name.
    privfit.report.plotting.draw_sweep : Plots one.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, Sweep, sweep
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = sweep(KMeans(2, domain=(-1, 1)), X, None, [1.0], public=True, seeds=2)
    >>> Sweep.from_json(found.to_json()) == found
    True
    """

    name: str
    settings: str
    measure: str
    delta: float
    test_size: float
    n_records: int
    seeds: int
    epsilons: tuple[float, ...]
    references: tuple[str, ...]
    trials: tuple[Trial, ...] = ()

    @property
    def planned(self) -> Iterator[tuple[float | str, int]]:
        """(setting, seed) of every trial, in order: all settings of a split together."""
        settings: tuple[float | str, ...] = (*self.references, *self.epsilons)
        return ((setting, seed) for seed in range(self.seeds) for setting in settings)

    @property
    def total(self) -> int:
        """The number of trials of the complete sweep."""
        return (len(self.references) + len(self.epsilons)) * self.seeds

    @property
    def complete(self) -> bool:
        """Whether every trial is done."""
        return len(self.trials) == self.total

    @property
    def rows(self) -> tuple[Row, ...]:
        """The private fits: a row for each epsilon that was tried, in increasing order."""
        return self._rows(self.epsilons)

    @property
    def reference_rows(self) -> tuple[Row, ...]:
        """A row for each reference that was tried."""
        return self._rows(self.references)

    def _rows(self, settings: Sequence[float | str]) -> tuple[Row, ...]:
        values: dict[float | str, list[float]] = {setting: [] for setting in settings}
        for trial in self.trials:
            if trial.setting in values:
                values[trial.setting].append(trial.value)
        return tuple(Row(key, *interval(made), len(made)) for key, made in values.items() if made)

    def __str__(self) -> str:
        """A table in plain text."""
        missing = "" if self.complete else f"; {len(self.trials)} of {self.total} trials"
        where, times = (" on held-out records", "split") if self.test_size else ("", "run")
        lines = [
            f"{self.name}: {self.measure}{where}, mean and 95 % interval of {self.seeds} "
            f"{times}(s), delta {self.delta:g}{missing}",
            f"{'epsilon':>16}  {self.measure}",
        ]
        for row in (*self.rows, *self.reference_rows):
            name = row.setting if isinstance(row.setting, str) else f"{row.setting:g}"
            spread = "" if math.isnan(row.half_width) else f" +- {row.half_width:.4f}"
            lines.append(f"{name:>16}  {row.mean:.4f}{spread}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table of `str`, with the warning that it is not private."""
        head, _, *rows = str(self).splitlines()
        cells = [tuple(row.strip().split("  ", 1)) for row in rows]
        return element("div", element("p", element("b", head)), element("p", NOT_PRIVATE),
                       table(("epsilon", self.measure), cells))  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """This sweep as plain values: what `to_json` writes.

        Returns
        -------
        dict
            Numbers, texts, lists and dicts.
        """
        return parse(self.to_json(), finite=False)

    def to_frame(self) -> Frame:
        """A table with one row for each trial.

        Returns
        -------
        pandas.DataFrame
            The columns `model`, `measure`, `delta`, `epsilon` (NaN for a reference), `reference`
            (None for a private fit), `seed` and `value`.
        """
        return as_frame(self._columns(self.name))

    def _columns(self, model: str) -> dict[str, list[Any]]:
        """The columns of the table, under another name of the model."""
        settings = [trial.setting for trial in self.trials]
        same = {"model": model, "measure": self.measure, "delta": self.delta}
        return {
            **{name: [value] * len(settings) for name, value in same.items()},
            "epsilon": [math.nan if isinstance(one, str) else one for one in settings],
            "reference": [one if isinstance(one, str) else None for one in settings],
            "seed": [trial.seed for trial in self.trials],
            "value": [trial.value for trial in self.trials],
        }

    def to_json(self) -> str:
        """Write this sweep as JSON; `from_json` reads it back.

        Returns
        -------
        str
            The text.
        """
        return write({"privfit_sweep": VERSION, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Sweep:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The text.

        Returns
        -------
        Sweep
            The sweep.
        """
        try:
            fields = parse(text)
            version = fields.pop("privfit_sweep")
        except (ValueError, KeyError):
            raise FileError("text must be JSON written by Sweep.to_json; pass it as is") from None
        if version != VERSION:
            raise FileError(
                f"version ({version!r}) must be {VERSION}; use the privfit that wrote this sweep"
            )
        try:
            for name in ("epsilons", "references"):
                fields[name] = tuple(fields[name])
            fields["trials"] = tuple(Trial(**trial) for trial in fields["trials"])
            return cls(**fields)
        except (KeyError, TypeError):
            raise FileError("text must have all fields of a Sweep; pass it as is") from None


class Sweeps(Mapping[str, Sweep]):
    """The sweeps of several models on the same records: a mapping of names to sweeps.

    Parameters
    ----------
    sweeps : dict of str to Sweep
        The sweep of each model.

    See Also
    --------
    sweep : Makes one of a dict of models.
    privfit.report.plotting.draw_sweep : Plots one.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, sweep
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> models = {solver: KMeans(2, domain=(-1, 1), solver=solver) for solver in ("tree", "lloyd")}
    >>> found = sweep(models, X, None, [1.0], public=True, seeds=2)
    >>> list(found), found["tree"].complete
    (['tree', 'lloyd'], True)
    """

    def __init__(self, sweeps: Mapping[str, Sweep]) -> None:
        self._sweeps = dict(sweeps)

    def __getitem__(self, name: str) -> Sweep:
        return self._sweeps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sweeps)

    def __len__(self) -> int:
        return len(self._sweeps)

    def __repr__(self) -> str:
        return f"Sweeps({', '.join(self)}; {len(self.trials)} of {self.total} trials)"

    def __str__(self) -> str:
        """Tables in plain text."""
        return "\n\n".join(f"{name} = {sweep}" for name, sweep in self.items())

    def _repr_html_(self) -> str:
        parts = ((element("h4", name), Markup(one._repr_html_())) for name, one in self.items())
        return joined(*(part for pair in parts for part in pair))

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials done so far, model by model."""
        return tuple(trial for sweep in self.values() for trial in sweep.trials)

    @property
    def total(self) -> int:
        """The number of trials of all complete sweeps."""
        return sum(sweep.total for sweep in self.values())

    @property
    def complete(self) -> bool:
        """Whether every trial is done."""
        return all(sweep.complete for sweep in self.values())

    def to_dict(self) -> dict[str, Any]:
        """These sweeps as plain values: what `to_json` writes.

        Returns
        -------
        dict
            Numbers, texts, lists and dicts.
        """
        parts = {name: sweep.to_dict() for name, sweep in self.items()}
        return {"privfit_sweeps": VERSION, "sweeps": parts}

    def to_frame(self) -> Frame:
        """A table with one row for each trial.

        Returns
        -------
        pandas.DataFrame
            The columns of `Sweep.to_frame`; `model` is the name in this mapping.
        """
        tables = [sweep._columns(name) for name, sweep in self.items()]
        return as_frame({key: [cell for one in tables for cell in one[key]] for key in tables[0]})

    def to_json(self) -> str:
        """Write these sweeps as JSON; `from_json` reads them back.

        Returns
        -------
        str
            The text.
        """
        return write(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Sweeps:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The text.

        Returns
        -------
        Sweeps
            The sweeps.
        """
        try:
            fields = parse(text)
            if fields["privfit_sweeps"] != VERSION:
                raise ValueError
            parts = {name: write(part) for name, part in fields["sweeps"].items()}
        except (ValueError, KeyError, AttributeError):
            raise FileError("text must be JSON written by Sweeps.to_json; pass it as is") from None
        return cls({name: Sweep.from_json(part) for name, part in parts.items()})


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C was pressed; `sweep` is what was done so far, and can be resumed."""

    def __init__(self, sweep: Sweep | Sweeps) -> None:
        super().__init__(f"{len(sweep.trials)} of {sweep.total} trials are done; pass resume=")
        self.sweep = sweep


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval by Student's t (NaN for one value)."""
    v = np.asarray(values, dtype=np.float64)
    if len(v) < 2:
        return float(v.mean()), math.nan
    quantile = scipy.special.stdtrit(len(v) - 1, 0.975)
    return float(v.mean()), float(quantile * v.std(ddof=1) / math.sqrt(len(v)))
