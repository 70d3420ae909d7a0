"""
Texts: features, a classifier and its ROC curve
===============================================

Messages become columns of words, some words are selected, a classifier is fitted to them, and its
ROC curve is drawn: all private, all on one budget.
"""

# %%
# 8,000 made-up messages, an eighth of them spam.

import numpy as np
from sklearn.pipeline import Pipeline

from privfit import BernoulliNB, HashWords, Ledger, SelectFeatures, best_threshold, roc_curve
from privfit.datasets import make_texts
from privfit.report.plotting import draw_roc

messages = make_texts(8_000)
texts, spam = np.asarray(messages.table["text"]), messages.target
train = np.arange(8_000) < 6_000  # by position
print(texts[0])

# %%
# Three steps, one pipeline
# -------------------------
# The words of private texts must not become columns, for one rare word can tell who wrote it. So
# words are hashed into public columns, which learns nothing. The selection and the classifier have
# a part of the budget each.

ledger = Ledger(epsilon=1.0)
declared = {"classes": messages.classes, "ledger": ledger}
model = Pipeline(
    [
        ("words", HashWords(4096)),
        ("select", SelectFeatures(epsilon=0.75, k=6, max_ones=15, **declared)),
        ("bayes", BernoulliNB(epsilon=0.25, max_ones=6, **declared)),
    ]
)
with ledger.group("train"):
    model.fit(texts[train], spam[train])
print(model["select"].get_support(indices=True))

# %%
# The curve
# ---------
# Messages that the fit did not see are another group, which may use the whole budget.

scores = model.predict_proba(texts[~train])[:, 1]
with ledger.group("test"):
    curve = roc_curve(
        spam[~train], scores, epsilon=1.0, pos_label=messages.classes[1], ledger=ledger
    )
print(f"area {curve.auc:.3f}; spent: {ledger.spent}")
ax = draw_roc(curve)

# %%
# A threshold is read from the released curve, for free: here a lost message is ten times as bad as
# a spam that gets through, so a missed spam costs a tenth of a false alarm.

print(best_threshold(curve, cost=0.1, prevalence=0.125))
