"""Binary features: which of them to select, naive Bayes, texts."""

from privfit.features.selection import ClusteredCounts, NoisyScores, Peeling, SparseVector

__all__ = ["ClusteredCounts", "NoisyScores", "Peeling", "SparseVector"]
