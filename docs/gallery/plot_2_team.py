"""
A budget shared by a team
=========================

Three people use one table, in processes of their own. The budget is a file: each of them opens it,
every fit is charged to it before it looks at a record, and what it does not cover is refused.
"""

# %%
# Whoever is responsible for the records creates the file, once.

import tempfile
from pathlib import Path

from privfit import BudgetError, KMeans, LinearSVC, LogisticRegression, open_ledger
from privfit.datasets import make_census
from privfit.report.plotting import draw_budget

census = make_census(20_000)
file = Path(tempfile.mkdtemp(), "budget.json")
print(open_ledger(file, epsilon=1.0, delta=1e-6).remaining)

# %%
# Ann fits a classifier with half of it.

ann = open_ledger(file)
declared = {"domain": census.schema, "classes": [0, 1]}
income = LogisticRegression(0.5, 1e-6, ledger=ann, **declared)
with ann.scope("Ann"):
    income.fit(census.table, census.labels)
print(ann.remaining)

# %%
# Ben looks for groups of people, on another day.

ben = open_ledger(file)
ages = census.to_array(["age", "hours"])
groups = KMeans(3, 0.3, domain=census.box(["age", "hours"]), ledger=ben)
with ben.scope("Ben"):
    groups.fit(ages)
print(ben.remaining)

# %%
# Cleo asks for more than is left. Nothing is drawn, and nothing is charged.

cleo = open_ledger(file)
margins = LinearSVC(0.5, ledger=cleo, **declared)
try:
    margins.fit(census.table, census.labels)
except BudgetError as error:
    print(error)

# %%
# She takes what is left instead.

margins.set_params(epsilon=cleo.remaining.epsilon)
with cleo.scope("Cleo"):
    margins.fit(census.table, census.labels)
print(cleo.remaining)

# %%
# Everybody sees the same books. A bar is what one entry took.

books = open_ledger(file)
for release in books.releases:
    print(release.name, release.epsilon, release.verify())
ax = draw_budget(books)
