"""Objectives: exact integer scores of candidates against private records, and their range.

An objective holds packed records and answers with numbers that are *not* released: only a mechanism
of the ledger may see them. A score is a sum over records of integers, each a function of that
record and the candidate alone, so scores of two data sets add up bit for bit. The range is the one
sensitivity that a selection needs: how much the difference of two candidates' scores can change
between neighbouring data sets. It is computed from the candidates and the declared domain.
"""

from privfit.objectives.center_moves import CenterMoves
from privfit.objectives.centers import CentersObjective
from privfit.objectives.facility import FacilityMoves, FacilityObjective
from privfit.objectives.linear import LinearObjective
from privfit.objectives.linear_moves import LinearMoves
from privfit.objectives.record import RecordObjective
from privfit.objectives.record_moves import RecordMoves

__all__ = [
    "CenterMoves",
    "CentersObjective",
    "FacilityMoves",
    "FacilityObjective",
    "LinearMoves",
    "LinearObjective",
    "RecordMoves",
    "RecordObjective",
]
