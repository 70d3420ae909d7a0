"""scikit-learn estimators: thin classes over the searches. They contain no mathematics."""

from privfit.estimators.cluster import KMeans, KMedian
from privfit.estimators.linear import LinearSVC, LogisticRegression

__all__ = ["KMeans", "KMedian", "LinearSVC", "LogisticRegression"]
