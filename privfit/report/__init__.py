"""Reports for people: sweeps over budgets, and plots."""

from privfit.report.sweeps import SearchProblem, Sweep, Sweeps, sweep

__all__ = ["SearchProblem", "Sweep", "Sweeps", "sweep"]
