"""
An optimiser of your own
========================

CMA-ES, from the package `cmaes <https://pypi.org/project/cmaes/>`_, fits a private model. It
proposes candidates and is told which were selected; it never sees a score.
"""

# %%
# The records
# -----------
# Six columns, and labels by the odds of a linear model.

import numpy as np
from cmaes import CMA
from matplotlib.figure import Figure

from privfit import AskTell, Box, LinearObjective, Reals

TRUE = np.array([4.0, -2.0, 1.0, 0.0, 3.0, -1.0, 0.5])


def people(n, seed):
    """Records and labels of the same kind."""
    coins = np.random.default_rng(seed)
    X = coins.uniform(-1, 1, (n, 6))
    odds = 1 / (1 + np.exp(-(X @ TRUE[:-1] + TRUE[-1])))
    return X, (coins.random(n) < odds).astype(int)


X, y = people(40_000, 0)  # private
objective = LinearObjective(X, y, "logistic", Box(-1, 1, 6))

# %%
# The loop
# --------
# CMA-ES needs ranks only. The ten selected candidates get the ranks 0 to 9, in the order in which
# they were drawn, and all others share the last one.

population, parents, generations = 40, 10, 40
optimiser = CMA(
    mean=np.zeros(7), sigma=1.0, bounds=np.array([[-8.0, 8.0]] * 7), population_size=population,
    seed=0,
)  # fmt: skip
means = []
with AskTell(
    objective, Reals(-8.0, 8.0, 7), 1.0, 1e-6,
    generations=generations, population=population, parents=parents,
) as door:  # fmt: skip
    for _ in door:
        P = np.array([optimiser.ask() for _ in range(population)])
        ranks = np.full(population, float(parents))
        ranks[door.select(P)] = np.arange(parents)  # all that is released
        optimiser.tell(list(zip(P, ranks, strict=True)))
        means.append(optimiser.mean.copy())
print(door.release.verify(), door.release.epsilon, door.release.delta)

# %%
# The result
# ----------
# What the optimiser makes of its selections is post-processing, and free. It may be drawn, too.

ax = Figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
lines = ax.plot(np.arange(1, generations + 1), means)
for line, true in zip(lines, TRUE, strict=True):
    ax.axhline(true, color=line.get_color(), linestyle=":", linewidth=0.8)
ax.set(xlabel="generation", ylabel="weight (dotted: true)")
print(optimiser.mean.round(2))

# %%
# Fresh records, which are not private, tell how good it is.

fresh, labels = people(40_000, 1)
predicted = fresh @ optimiser.mean[:-1] + optimiser.mean[-1] > 0
best = fresh @ TRUE[:-1] + TRUE[-1] > 0
print(f"accuracy {(predicted == labels).mean():.4f}")
print(f"accuracy of the true weights {(best == labels).mean():.4f}")
