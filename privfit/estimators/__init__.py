"""scikit-learn estimators: thin classes over the searches. They contain no mathematics."""

from privfit.estimators.bayes import BernoulliNB
from privfit.estimators.kmeans import KMeans
from privfit.estimators.kmedian import KMedian
from privfit.estimators.linear import LinearSVC, LogisticRegression
from privfit.estimators.select import SelectFeatures
from privfit.estimators.text import HashWords

__all__ = [
    "BernoulliNB",
    "HashWords",
    "KMeans",
    "KMedian",
    "LinearSVC",
    "LogisticRegression",
    "SelectFeatures",
]
