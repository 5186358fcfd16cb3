# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercises: does the model agree?
#
# To [`20_agreement`](../20_agreement.ipynb). Three exercises, about 40 minutes. Write in the cells that say `NotImplementedError` or
# `...`, run them, and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from lib import metrics, scoring
from lib.checks import agreement
from lib.items import agreement_files, gaps, read_pairs
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · Five pairs by hand
#
# 10 minutes · easy · by hand
#
# TSE is the share of pairs in which the right form is more probable. Write it: `good` and `bad` are arrays of shape (pairs,) with the
# natural log-probability of the right and of the wrong form of each pair, NaN where a form cannot be scored. The answer is one number. Work out
# first, with a pencil, what it should be for these five pairs:
#
# | | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|
# | log P(right) | -0.9 | -1.6 | -2.3 | -1.2 | NaN |
# | log P(wrong) | -2.3 | -1.2 | -2.3 | -1.6 | -4.6 |

# %% [markdown]
# <details><summary>Hint</summary>
#
# A pair is *valid* when both forms have a score; `np.isfinite` tells. What is `np.nan > 1`? And in pair 3, is one form more probable?
#
# </details>
# <details><summary>What should come out</summary>
#
# For the table, 2 of 4: pair 5 is not valid, and the tie in pair 3 is no success.
#
# </details>

# %% tags=["stub"]
def share_right(good, bad):
    """Share of valid pairs whose right form is strictly more probable; arrays of shape (pairs,)."""
    raise NotImplementedError

# %% tags=["solution"]
def share_right(good, bad):
    """Share of valid pairs whose right form is strictly more probable; arrays of shape (pairs,)."""
    valid = np.isfinite(good) & np.isfinite(bad)
    return (good > bad)[valid].mean()

# %%
agreement.share_right(share_right)

# %% [markdown]
# ## 2 · What a mean hides
#
# 15 minutes · medium · change a choice
#
# The choice is how to divide the pairs. First predict: in which pairs is the model right least often, where no noun stands between subject and
# verb (`"none"`), one of the subject's number (`"match"`), or one of the other number (`"mismatch"`)? Then write the function. `pairs` is a table with a
# row a pair, `column` names the column that divides it, and the column `correct` holds 1, 0, or NaN where the pair has no score. Give a
# dict or a Series: the share right of each group. The check tries it on a small table, and then on the table below.

# %% tags=["hide-input"]
pairs, _ = read_pairs(agreement_files(), limit=6)
fills = scoring.fill(lm, gaps(pairs, lm.cased), [*pairs["good"], *pairs["bad"]])
scored = pd.concat([pairs, metrics.minimal_pairs(fills, pairs["good"], pairs["bad"])], axis=1)
scored["attractor"] = scored["match"].map({True: "match", False: "mismatch"}).fillna("none")
scored[["left", "good", "bad", "right", "attractor", "correct"]].head()

# %% [markdown]
# <details><summary>Hint</summary>
#
# `pairs.groupby(column)` makes the groups; the mean of a column leaves NaN out by itself.
#
# </details>
# <details><summary>What should come out</summary>
#
# Three shares between 0 and 1. A model that listens to the nearest noun is worst with a mismatch; with these few pairs, chance can change the order.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "none", "match" or "mismatch"

def share_by(pairs, column):
    """Mean of ``correct`` over scored pairs for each value of ``column``: a dict or a Series."""
    raise NotImplementedError

# %% tags=["solution"]
prediction = "mismatch"

def share_by(pairs, column):
    """Mean of ``correct`` over scored pairs for each value of ``column``: a dict or a Series."""
    return pairs.groupby(column)["correct"].mean()

# %%
agreement.share_by(share_by, prediction, scored)

# %% [markdown]
# ## 3 · Pairs of your own
#
# 15 minutes · medium · your own items
#
# Write at least four pairs that you think this model gets wrong. Each is a dict in the published format: `sentence_good`, `sentence_bad`,
# `label` (-2 where the right verb is plural, -1 where it is singular). The two sentences differ in the verb alone, a noun of the other number stands between
# it and its subject, and as many pairs are singular as plural. Take verbs that the model's vocabulary has whole.

# %% [markdown]
# <details><summary>Hint</summary>
#
# One sentence gives two items: *The label on the bottles is new* and *The labels on the bottle are new*. Relative clauses (*that the
# teachers know*) and two attractors are harder than a prepositional phrase.
#
# </details>
# <details><summary>What should come out</summary>
#
# A line that says in how many of your pairs the model is right. If it is in all: what would make a person stumble?
#
# </details>

# %% tags=["stub"]
my_items = [
    {"sentence_good": "The label on the bottles is new.",
     "sentence_bad": "The label on the bottles are new.", "label": -1},
    ...,
]

# %% tags=["solution"]
my_items = [
    {"sentence_good": "The label on the bottles is new.",
     "sentence_bad": "The label on the bottles are new.", "label": -1},
    {"sentence_good": "The labels on the bottle are new.",
     "sentence_bad": "The labels on the bottle is new.", "label": -2},
    {"sentence_good": "The boy that the teachers know works here.",
     "sentence_bad": "The boy that the teachers know work here.", "label": -1},
    {"sentence_good": "The boys that the teacher knows work here.",
     "sentence_bad": "The boys that the teacher knows works here.", "label": -2},
]

# %%
agreement.my_items(my_items, lm)
