"""What a private run releases: the survivors of each generation, in order, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privfit.base.cautions import old_names
from privfit.base.json import parse, write
from privfit.base.tables import Frame, as_frame
from privfit.base.typing import Array, Floats
from privfit.privacy.accounting import Event, compose
from privfit.privacy.ledger import Budget
from privfit.runs.noise import Spread

__all__ = ["Draws", "Generation", "Path", "Paths", "together"]

EXACT = 50  # generations of a path of which the accountant is asked
WIDEST = 64  # numbers of a candidate up to which a table has a column for each


@dataclass(frozen=True)
class Draws:
    """The draws of one generation, as public as the plan that they are a part of.

    Parameters
    ----------
    events : tuple of Event, default=()
        Its releases, equal ones counted together; none if nothing was drawn, or nothing is private.
    range : float or None, default=None
        How much the scores of the last release may change between neighbours, or its sensitivity if
        it adds noise; None if it has neither.

    See Also
    --------
    Path : Has the step of each generation.

    Examples
    --------
    >>> from privfit import Event
    >>> from privfit.runs import Draws
    >>> Draws((Event("selection", 0.1, 10),), 512).epsilon
    0.1
    """

    events: tuple[Event, ...] = ()
    range: float | None = None

    @property
    def last(self) -> Event | None:
        """The kind of release that was drawn last."""
        return self.events[-1] if self.events else None

    @property
    def epsilon(self) -> float | None:
        """The epsilon of each release of the last kind; None for Gaussian ones."""
        return None if self.last is None or self.last.kind == "gaussian" else self.last.parameter

    @property
    def mu(self) -> float | None:
        """The parameter of each Gaussian release; None if the last kind is another."""
        return self.last.parameter if self.last and self.last.kind == "gaussian" else None


def together(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events, equal ones counted together."""
    found: dict[tuple[str, float, float], Event] = {}
    for event in events:
        key = event.kind, event.parameter, event.delta
        same = found.get(key)
        found[key] = event if same is None else replace(same, count=same.count + event.count)
    return tuple(found.values())


def cost_of(events: Sequence[Event], budget: Budget) -> Budget:
    """What a part of the releases of a budget costs at its delta: at most the whole."""
    return replace(budget, epsilon=min(compose(events, budget.delta), budget.epsilon))


@dataclass(frozen=True)
class Generation:
    """The progress of a search, as passed to callbacks: released values only.

    Parameters
    ----------
    index : int
        Number of this generation.
    total : int
        Number of generations of the search.
    parameters : array
        The leading candidate of the generation.
    spent : Budget or None
        The budget of the search, which was charged in full before it began, and is the guarantee
        whenever the search ends; None if the search is not private. See `spent_so_far`.
    survivors : array of shape (s, ...)
        All candidates that the generation released, the leading one first.
    step : Draws
        The draws of this generation: `step.events`, and `step.range`.
    drawn : tuple of Event
        Everything that was drawn from this budget so far.

    See Also
    --------
    privfit.LogisticRegression : Has a parameter `callback`.
    Path : All generations.

    Notes
    -----
    A callback that returns True ends the search, which then returns what was released so far. This
    costs nothing, and saves nothing: the sizes of all draws were planned, and charged, before the
    first. Decide by what is in a generation, and never by a clock or by records.

    There is no time here: how long a generation takes depends on the records a little.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> seen = []
    >>> declared = {"domain": (-1, 1), "classes": [0, 1], "solver": "local"}
    >>> model = LogisticRegression(1.0, 1e-6, callback=seen.append, **declared)
    >>> _ = model.fit(np.linspace(-1, 1, 1000)[:, None], np.repeat([0, 1], 500))
    >>> len(seen) == seen[-1].total
    True
    >>> seen[0].spent_so_far.epsilon < seen[-1].spent_so_far.epsilon <= seen[0].spent.epsilon
    True
    """

    index: int
    total: int
    parameters: Array
    spent: Budget | None
    survivors: Array
    step: Draws = Draws()
    drawn: tuple[Event, ...] = ()

    @property
    def epsilon(self) -> float | None:
        """The epsilon of each draw of this generation; None for Gaussian noise (`mu`)."""
        return self.step.epsilon

    @property
    def mu(self) -> float | None:
        """The parameter of the Gaussian noise of this generation, if it drew any."""
        return self.step.mu

    @property
    def range(self) -> float | None:
        """The range of the scores between neighbours; the sensitivity if noise was added."""
        return self.step.range

    @property
    def spent_so_far(self) -> Budget | None:
        """What the draws so far cost; None if the search is not private.

        It shows how far the plan has come. The guarantee of a search that ends here is still the
        whole budget, `spent`: when to end was decided after looking at releases.
        """
        return None if self.spent is None else cost_of(self.drawn, self.spent)


@dataclass(frozen=True, eq=False)
class Path:
    """Everything that a search released: the selected candidates of each generation, in order.

    Parameters
    ----------
    generations : tuple of arrays of shape (s, ...)
        The selected candidates of each generation.
    average : float, default=0.0
        The fraction of the path whose mean is the answer; 0 means the last selection.
    notes : dict, default={}
        Settings as they were used: the values that rules chose, and None for those that had no
        effect. They are public, and become settings of the `Release`.
    steps : tuple of Draws, default=()
        The draws of each generation.
    before : tuple of Event, default=()
        What was drawn from the same budget before this path: the models of other classes.
    budget : Budget or None, default=None
        The budget that paid for everything; None if nothing is private.
    noise : Spread or None, default=None
        The known noise of `answer`; None if the solver does not know it.
    kept : tuple, default=()
        Parts of what was released, in their order, for post-processing.
    shares : array of shape (d,) or None, default=None
        The part of all records that is in each encoded level, as far as releases tell; None if they
        do not.

    See Also
    --------
    privfit.search : Returns a path in its `Found`.
    Generation : One generation, as passed to callbacks.

    Notes
    -----
    Everything in a path has been released and paid for; computing with it is post-processing and
    costs nothing. Estimators keep theirs as `path_`. Model files do not have it.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, RecordObjective, search
    >>> objective = RecordObjective(np.zeros(9), lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0)
    >>> found = search(objective, Bits(4), 1.0)
    >>> found.path.answer.shape
    (4,)
    """

    generations: tuple[Array, ...]
    average: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Draws, ...] = ()
    before: tuple[Event, ...] = ()
    budget: Budget | None = None
    noise: Spread | None = None
    kept: tuple[Any, ...] = ()
    shares: Floats | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{len(self.generations)} generations>)"

    @property
    def last(self) -> Array:
        """The candidate that was selected last."""
        return np.asarray(self.generations[-1][0])

    def mean(self, share: float) -> Array:
        """The mean of everything that the last generations released.

        Parameters
        ----------
        share : float
            Fraction of the generations to take, at least one.

        Returns
        -------
        array
            The mean. It is post-processing and costs nothing.
        """
        count = max(1, round(share * len(self.generations)))
        return np.asarray(np.concatenate(self.generations[-count:]).mean(axis=0))

    @property
    def answer(self) -> Array:
        """The mean of the last `average` of the path, or the last selection."""
        return self.mean(self.average) if self.average else self.last

    @property
    def _each_step(self) -> tuple[Draws, ...]:
        """A step for each generation, also of a path that was made without any."""
        return self.steps or (Draws(),) * len(self.generations)

    @property
    def stopped(self) -> bool:
        """Whether a callback ended the search before all planned draws were made."""
        return "stopped" in self.notes

    @property
    def spent_so_far(self) -> tuple[float | None, ...]:
        """The epsilon, at the budget's delta, of all draws up to each generation.

        It takes the accountant a while: a path of more than 50 generations has it for 50 of them,
        evenly spaced, and for the others that of the next of these, which is at least theirs. The
        guarantee of the path is that of the whole budget: see `Generation.spent_so_far`.
        """
        count = len(self.generations)
        if self.budget is None:
            return (None,) * count
        ends = sorted({round(end) for end in np.linspace(1, count, min(count, EXACT))})
        costs, drawn, start = [], self.before, 0
        for end in ends:
            new = (event for step in self._each_step[start:end] for event in step.events)
            drawn = together((*drawn, *new))
            costs += [cost_of(drawn, self.budget).epsilon] * (end - start)
            start = end
        return tuple(costs)

    def to_dict(self) -> dict[str, Any]:
        """All generations as plain values, which JSON can hold.

        Returns
        -------
        dict
            The answer, the fraction that it averages, the budget, the notes, and of each generation
            its draws, their range, what was spent so far, and its survivors.
        """
        rows = zip(self._each_step, self.spent_so_far, self.generations, strict=True)
        shown = {
            "answer": self.answer,
            "average": self.average,
            "stopped": self.stopped,
            "budget": self.budget,
            "notes": dict(self.notes),
            "generations": [
                {"index": index, "events": step.events, "range": step.range, "spent_so_far": spent,
                 "survivors": survivors}
                for index, (step, spent, survivors) in enumerate(rows, 1)
            ],
        }  # fmt: skip
        return parse(write(shown), finite=False)

    def to_frame(self) -> Frame:
        """A table with one row for each generation.

        Returns
        -------
        pandas.DataFrame
            By `index`: the `kind` of the last draws, how many `draws` there were in all, `epsilon`
            or `mu` of each, `range`, the epsilon `spent_so_far`, the `norm` of the leading
            candidate, and its numbers `p0`, `p1`, ... if there are at most 64 in each generation.
        """
        return as_frame(self._columns(), "index")

    def _columns(self) -> dict[str, Any]:
        """The columns of the table."""
        leaders = [np.ravel(np.asarray(some[0])) for some in self.generations]
        columns: dict[str, Any] = {
            "index": range(1, len(leaders) + 1),
            "kind": [None if step.last is None else step.last.kind for step in self._each_step],
            "draws": [sum(event.count for event in step.events) for step in self._each_step],
            **{name: np.array([getattr(step, name) for step in self._each_step], dtype=np.float64)
               for name in ("epsilon", "mu", "range")},
            "spent_so_far": np.array(self.spent_so_far, dtype=np.float64),
            "norm": [float(np.linalg.norm(leader)) for leader in leaders],
        }  # fmt: skip
        sizes = {leader.size for leader in leaders}
        if len(sizes) == 1 and max(sizes) <= WIDEST:
            columns |= {f"p{i}": part for i, part in enumerate(np.transpose(leaders))}
        return columns


class Paths(tuple[Path, ...]):
    """The paths of several models that share a budget, in the order in which they were fitted.

    Parameters
    ----------
    paths : dict of object to Path
        A path for each class, versus the rest.

    Attributes
    ----------
    classes : tuple
        The class of each path.

    See Also
    --------
    Path : The path of one model.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1, 2], solver="local")
    >>> paths = model.fit(X, np.arange(900) % 3).path_
    >>> len(paths), paths.classes
    (3, (0, 1, 2))
    """

    classes: tuple[Any, ...]

    def __new__(cls, paths: Mapping[Any, Path]) -> Paths:
        made = super().__new__(cls, paths.values())
        made.classes = tuple(paths)
        return made

    def __reduce__(self) -> tuple[type[Paths], tuple[dict[Any, Path]]]:
        return Paths, (dict(zip(self.classes, self, strict=True)),)

    def to_dict(self) -> dict[str, Any]:
        """The paths as plain values, which JSON can hold.

        Returns
        -------
        dict
            `Path.to_dict` of each class, by the text of the class.
        """
        pairs = zip(self.classes, self, strict=True)
        return {str(label): path.to_dict() for label, path in pairs}

    def to_frame(self) -> Frame:
        """A table with one row for each class and generation.

        Returns
        -------
        pandas.DataFrame
            `Path.to_frame` of each class, below each other, with a column `class`.
        """
        pairs = zip(self.classes, self, strict=True)
        labels = [label for label, path in pairs for _ in path.generations]
        tables = [path._columns() for path in self]
        whole = {name: [cell for one in tables for cell in one[name]] for name in tables[0]}
        return as_frame({"class": labels, **whole}, "index")


__getattr__ = old_names(__name__, {"Step": "Draws"})
