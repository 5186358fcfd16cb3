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
# # Exercises: systematic, or just likely?
#
# To [`21_systematic_or_likely`](../21_systematic_or_likely.ipynb). Three exercises, about 55 minutes. Write in the cells that say `NotImplementedError` or
# `...`, run them, and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib.checks import likely
from lib.checks.likely import VERBS, VOCABULARY
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · Two scores from one table
#
# 15 minutes · easy · by hand
#
# The probabilities of four verbs behind a plural subject:
#
# | | are, is | have, has | look, looks | rust, rusts |
# |---|---|---|---|---|
# | right form | 0.40 | 0.06 | 0.01 | 0.01 |
# | wrong form | 0.10 | 0.03 | 0.01 | 0.02 |
#
# EW gives each verb one vote: the share of verbs whose right form is strictly more probable. MW lets probability weigh: the probability of all right
# forms over that of all forms. Work out both on paper, then write the function for arrays of shape (verbs,). It gives EW and MW, in this order.

# %% [markdown]
# <details><summary>Hint</summary>
#
# For MW, first sum, then divide, and only once.
#
# </details>
# <details><summary>What should come out</summary>
#
# For the table, EW = 2/4: *look* is a tie, and *rust* is wrong. MW = 0.48 / 0.64 = 0.75.
#
# </details>

# %% tags=["stub"]
def ew_and_mw(right, wrong):
    """EW and MW of one context, from probabilities of shape (verbs,): two numbers."""
    raise NotImplementedError

# %%
likely.ew_and_mw(ew_and_mw)

# %% [markdown]
# ## 2 · Only the likely part
#
# 25 minutes · hard · change a choice
#
# Below is a vocabulary that fits on a page, with the probability of each item behind *The keys to the cabinet*, and seven verbs (right form,
# wrong form). Change the top cutoff from 1 to 0.8 to 0.5: does EW rise, fall or stay? Predict, then write the function.
#
# A top cutoff p keeps the smallest set of likeliest items whose probabilities sum to at least p; the item that crosses p is inside. (The library
# goes on to interpolate there; you need not.) A verb counts when either of its forms is inside. EW is the share right of the verbs that
# count. Where none counts, the context is invalid and EW is NaN.

# %%
VOCABULARY

# %%
VERBS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Sort the items by probability, likeliest first, and add up until the sum reaches the cutoff: a loop with a set does it. The numbers are 128ths, so sums
# are exact.
#
# </details>
# <details><summary>What should come out</summary>
#
# With 0.5, *are*, *the* and *is* are inside. Unlikely verbs leave first as the cutoff shrinks; what stays is the model's best.
#
# </details>

# %% tags=["stub"]
prediction = ...  # as the cutoff shrinks from 1 to 0.5, EW "rises", "falls" or "stays"

def ew_within(vocabulary, verbs, cutoff):
    """EW of a list of (right, wrong) within a top cutoff; ``vocabulary`` is a dict: one number."""
    raise NotImplementedError

# %%
likely.ew_within(ew_within, prediction)

# %% [markdown]
# ## 3 · Verbs of your own
#
# 15 minutes · medium · your own items
#
# Choose at least six verbs as tuples (singular, plural), so that EW and MW of this model part as far as you can make them. Both forms must be whole
# in its vocabulary. The check asks about them in simple sentences such as *The author ___*. Which of the two do you expect to be higher?

# %% [markdown]
# <details><summary>Hint</summary>
#
# Forms of *be* take most of the probability, so they decide MW. Verbs that are nouns too, such as *book*, are hard to inflect for a model.
#
# </details>
# <details><summary>What should come out</summary>
#
# A line with both scores, and whether you were right about the order. If they are equal, your verbs are all easy.
#
# </details>

# %% tags=["stub"]
prediction = ...  # which is higher: "EW" or "MW"

my_verbs = [
    ("is", "are"),
    ...,
]

# %%
likely.my_verbs(my_verbs, prediction, lm)
