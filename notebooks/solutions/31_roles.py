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
# # Exercises: who did what to whom?
#
# To [`31_roles`](../31_roles.ipynb). Three exercises, about 45 minutes. Write in the cells that say `NotImplementedError` or `...`, run them, and
# run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib import perturb
from lib.checks import roles
from lib.cloze.items import item_file, read_roles
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · Sensitive to the reversal
#
# 10 minutes · easy · by hand
#
# `log_a` and `log_b` are arrays of shape (pairs,): the natural log-probability of the target in its own sentence a and in the reversed sentence b, NaN where it has no
# score. Write the share of scored pairs in which the target is more probable in a by more than `threshold`, a difference of **probabilities**. First on paper, for
# the thresholds 0 and .01, with probabilities in place of their logarithms:
#
# | | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|
# | P(target in a) | .30 | .004 | .10 | .20 |
# | P(target in b) | .10 | .001 | .10 | .25 |

# %% [markdown]
# <details><summary>Hint</summary>
#
# `np.exp` turns log-probabilities into probabilities. `np.isfinite` tells which pairs have both.
#
# </details>
# <details><summary>What should come out</summary>
#
# With the threshold 0, two of four; with .01, one. In pair 2 the target is four times as probable in a, and the difference is under .01 all the same.
#
# </details>

# %% tags=["stub"]
def sensitivity(log_a, log_b, threshold):
    """Share of scored pairs with P(a) - P(b) > ``threshold``; arrays of shape (pairs,)."""
    raise NotImplementedError

# %% tags=["solution"]
def sensitivity(log_a, log_b, threshold):
    """Share of scored pairs with P(a) - P(b) > ``threshold``; arrays of shape (pairs,)."""
    scored = np.isfinite(log_a) & np.isfinite(log_b)
    return (np.exp(log_a) - np.exp(log_b) > threshold)[scored].mean()

# %%
roles.sensitivity(sensitivity)

# %% [markdown]
# ## 2 · Hide the nouns
#
# 15 minutes · medium · change a choice
#
# The control hides the object noun, the subject noun, or both. First predict: what is sensitivity with both hidden, `"zero"`, `"half"` or `"undefined"`? Then write
# it so that it says so. `contexts_a` and `contexts_b` are lists of texts, the probabilities arrays, all of length (pairs,). Give two numbers: the share of pairs with
# a more probable target in a, among those whose contexts differ (NaN where none do), and the number of the others, whose comparison is undefined.

# %% tags=["hide-input"]
items = read_roles(item_file("roles")).head(6)
hidden = perturb.hide_both(items)
items.assign(both_hidden=hidden["context"])[["item", "condition", "context", "both_hidden", "candidate"]]

# %% [markdown]
# <details><summary>Hint</summary>
#
# `differ = np.array(contexts_a) != np.array(contexts_b)`. The mean of nothing is no number: ask `differ.any()` first.
#
# </details>
# <details><summary>What should come out</summary>
#
# A share for each kind of hiding but one. A tie between two *different* contexts is no success; one context compared with itself is no comparison.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "zero", "half" or "undefined"

def share_right(contexts_a, contexts_b, probability_a, probability_b):
    """Share right among pairs whose contexts differ (NaN: none do), number of the others."""
    raise NotImplementedError

# %% tags=["solution"]
prediction = "undefined"

def share_right(contexts_a, contexts_b, probability_a, probability_b):
    """Share right among pairs whose contexts differ (NaN: none do), number of the others."""
    differ = np.array(contexts_a) != np.array(contexts_b)
    share = (probability_a > probability_b)[differ].mean() if differ.any() else np.nan
    return share, (~differ).sum()

# %%
roles.share_right(share_right, prediction, items, lm)

# %% [markdown]
# ## 3 · Reversals of your own
#
# 20 minutes · medium · your own items
#
# Write at least four pairs `(context a, context b, target)`. In b two nouns of one word have changed places, and nothing else; the target is a single item of the vocabulary,
# likely in a and odd in b. For each pair write its mirror too: the same two contexts the other way round, with another target that fits there. Contexts end
# right before the target, and have the form of the items: *... which guest the cook had*.

# %% [markdown]
# <details><summary>Hint</summary>
#
# Who can do what to whom? Cooks feed guests, and guests thank cooks. Verbs that either could do (*see*, *know*) test nothing.
#
# </details>
# <details><summary>What should come out</summary>
#
# In how many of your pairs the model prefers the target in a, and in how many clearly. Half is what the words alone give.
#
# </details>

# %% tags=["stub"]
my_pairs = [
    ("The reporter asked which thief the policeman had",
     "The reporter asked which policeman the thief had", "arrested"),
    ...,
]

# %% tags=["solution"]
my_pairs = [
    ("The reporter asked which thief the policeman had",
     "The reporter asked which policeman the thief had", "arrested"),
    ("The reporter asked which policeman the thief had",
     "The reporter asked which thief the policeman had", "escaped"),
    ("Nobody remembered which pupil the teacher had",
     "Nobody remembered which teacher the pupil had", "taught"),
    ("Nobody remembered which teacher the pupil had",
     "Nobody remembered which pupil the teacher had", "admired"),
]

# %%
roles.my_pairs(my_pairs, lm)
