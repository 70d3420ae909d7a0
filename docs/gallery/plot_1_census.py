"""
Census income, with nothing declared
====================================

A table, a budget and the name of the target: that is all. Which columns are numbers and which are
categories follows from the types of the table; their ranges, cuts and values are bought from the
budget of the fit, and nothing is read off the records for free.
"""

# %%
# A table
# -------
# 30,000 made-up people. Numbers are in columns of numbers, categories in columns of texts. These
# types belong to the table: no single record decides them.

import pandas as pd

from privfit import Ledger, LogisticRegression, accuracy_score, roc_curve
from privfit.datasets import make_census
from privfit.report.plotting import draw_budget, draw_roc, draw_shapes

census = make_census(30_000)
numbers = ["age", "years", "gain", "hours"]
people = pd.DataFrame(census.table)
people = people.astype({name: str for name in people if name not in numbers})
rich = census.labels
people.dtypes

# %%
# A budget, and two groups of records
# -----------------------------------
# The last fifth is for testing. It is disjoint from the rest, so that both groups may use the whole
# budget.

train, test = slice(0, 24_000), slice(24_000, None)
ledger = Ledger(epsilon=1.0, delta=1e-6)

# %%
# The fit
# -------
# ``domain="learn"`` buys what nobody declared. The classes are declared: they are the question.

model = LogisticRegression(1.0, 1e-6, domain="learn", classes=[0, 1], ledger=ledger)
with ledger.group("train"):
    model.fit(people[train], rich[train])
cuts = model.domain_.columns["age"].bins
print(f"{len(cuts)} cuts of age were bought: {cuts[0]}, {cuts[1]} and so on")

# %%
# What was released
# -----------------
# The model is a sum of curves, one for each column. They are computed from what was released, and
# cost nothing.

ax = draw_shapes(model, columns=["age", "years", "hours"])

# %%
# How good is it?
# ---------------
# An exact accuracy would be a leak. This one has noise added, and is paid for, as the curve is.

scores = model.predict_proba(people[test])[:, 1]
with ledger.group("test"):
    accuracy = accuracy_score(rich[test], scores, epsilon=0.2, ledger=ledger)
    curve = roc_curve(rich[test], scores, epsilon=0.8, ledger=ledger)
print(f"accuracy {accuracy:.3f}, area under the curve {curve.auc:.3f}, privately")
roc_axes = draw_roc(curve)

# %%
# What it cost
# ------------
# Two groups, each with its own charges; together they cost as much as the larger one.

budget_axes = draw_budget(ledger)
print(ledger)

# %%
# Anybody can check the arithmetic: the release lists every draw, and ``verify`` adds them up again.

print(model.release_.verify(), model.release_.epsilon, model.release_.delta)
