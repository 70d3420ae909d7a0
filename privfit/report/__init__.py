"""What people look at: sweeps over budgets, and pictures."""

from privfit.report.sweeps import Sweep, sweep

__all__ = ["Sweep", "sweep"]
