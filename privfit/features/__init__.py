"""Binary features: selection, naive Bayes, texts."""

from privfit.features.selection import ClusteredCounts, NoisyScores, Peeling, SparseVector

__all__ = ["ClusteredCounts", "NoisyScores", "Peeling", "SparseVector"]
