"""Reports for people: a page on a model, sweeps over budgets, and plots."""

from privfit.report.document import html
from privfit.report.sweeps import SearchProblem, Sweep, Sweeps, sweep

__all__ = ["SearchProblem", "Sweep", "Sweeps", "html", "sweep"]
