"""Reports for people: sweeps over budgets, and plots."""

from privfit.report.sweeps import Sweep, sweep

__all__ = ["Sweep", "sweep"]
