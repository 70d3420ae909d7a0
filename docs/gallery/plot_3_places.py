"""
Clustering places
=================

Where do people live? Points in the plane, an unknown number of clusters, and a map that may be
published.
"""

# %%
# 20,000 made-up homes around seven centres. The square that they lie in is declared.

from privfit import KMeans, Ledger, choose_k
from privfit.datasets import make_clusters
from privfit.report.plotting import draw_choice, draw_clusters

homes = make_clusters(20_000, 2, 7, spread=0.05, seed=21)
X, square = homes.to_array(), homes.box()
ledger = Ledger(epsilon=1.0)

# %%
# How many?
# ---------
# ``choose_k`` buys the costs of all numbers of clusters in one release, and takes the sharpest
# bend.

chosen = choose_k(X, range(2, 13), epsilon=0.4, domain=square, ledger=ledger)
print(chosen.k)
choice_axes = draw_choice(chosen)

# %%
# Where?
# ------
# The centres and their sizes are released. There are no labels of the homes: they would tell where
# each of them is.

model = KMeans(chosen.k, epsilon=0.5, domain=square, ledger=ledger).fit(X)
print(model.cluster_centers_.round(2))
clusters_axes = draw_clusters(model)

# %%
# How many live there? Sizes come with intervals for the noise: each contains the size without noise
# nine times out of ten.

for size, (low, high) in zip(model.cluster_sizes_, model.cluster_size_intervals(), strict=True):
    print(f"{size:7.0f}  [{low:.0f}, {high:.0f}]")

# %%
# How good?
# ---------
# The mean squared distance of a home to its centre, privately, with the last tenth of the budget.

inertia = model.private_inertia(X, epsilon=0.1)
print(f"{inertia / len(X):.4f}, and {ledger.remaining.epsilon} of the budget is left")
