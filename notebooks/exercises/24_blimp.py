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
# # Exercises: which of two sentences is better?
#
# To [`24_blimp`](../24_blimp.ipynb). Three exercises, about 45 minutes. Write in the cells that say `NotImplementedError` or `...`, run them,
# and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib import blimp, sentences
from lib.checks import blimp as checks
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · Verdicts from tokens
#
# 15 minutes · medium · by hand
#
# `good` and `bad` are arrays of shape (pairs, longest): the log-probability of each token, natural log. Shorter sentences are filled up with numbers
# that mean nothing, the padding: only the first `tokens_good` and `tokens_bad` numbers of a row count, arrays of shape (pairs,). Give an
# array of shape (pairs,): 1 where the good sentence is more probable by the `reduction`, `"sum"` or `"mean"`, else 0. Work these out first (padding: -9):
#
# | good | tokens | bad | tokens |
# |---|---|---|---|
# | -2 -2 -2 | 3 | -2 -3 -9 | 2 |
# | -1 -3 -9 | 2 | -2 -2 -9 | 2 |

# %% [markdown]
# <details><summary>Hint</summary>
#
# `np.arange(good.shape[1]) < tokens_good[:, None]` is true at the tokens and false at the padding; `np.where` can put a 0 there.
#
# </details>
# <details><summary>What should come out</summary>
#
# First pair: by the sum the shorter, bad sentence wins, by the mean the good one. Second pair: a tie by both, which is no success.
#
# </details>

# %% tags=["stub"]
def verdicts(good, bad, tokens_good, tokens_bad, reduction):
    """1 where the good sentence wins by the "sum" or "mean" of its tokens, else 0: shape (pairs,)."""
    raise NotImplementedError

# %%
checks.verdicts(verdicts)

# %% [markdown]
# ## 2 · The mean in place of the sum
#
# 15 minutes · medium · change a choice
#
# First predict: can the verdict on a pair turn when the mean over tokens replaces their sum, though both sentences have the same number of *words*? Then write
# the function. `scored` is a table with a row a pair: `log_probability_good` and `log_probability_bad` (sums, natural log), `tokens_good`, `tokens_bad`,
# `words_good`, `words_bad`. Give an array of shape (pairs,): 1 where the verdict by the mean is another one than by the sum, else 0.

# %% tags=["hide-input"]
names = ("transitive", "tough_vs_raising_1")
pairs, _, _ = blimp.read_pairs([blimp.OURS / f"{name}.jsonl" for name in names], limit=3)
scored = sentences.minimal_pairs(lm, pairs)
scored[["good", "bad", "log_probability_good", "log_probability_bad", "tokens_good", "tokens_bad"]].round(1)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two verdicts, each 1 or 0 (a tie is 0), and a comparison of the two. The mean is the sum divided by the number of tokens.
#
# </details>
# <details><summary>What should come out</summary>
#
# With as many tokens on both sides, no verdict turns. How many tokens a word is, the vocabulary decides.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "yes" or "no"

def turned(scored):
    """1 where the mean over tokens gives another verdict than the sum, else 0: shape (pairs,)."""
    raise NotImplementedError

# %%
checks.turned(turned, prediction, scored)

# %% [markdown]
# ## 3 · A paradigm of your own
#
# 15 minutes · medium · your own items
#
# Write at least four pairs `(good sentence, bad sentence)` that test one rule of English, such as *himself* and *herself*, *much* and *many*, *who* and *which*. The
# two sentences differ in one word, not the first; they have as many tokens for the model; and over the paradigm each word is good as often as it is bad.

# %% [markdown]
# <details><summary>Hint</summary>
#
# Mirrors again: *The boy hurt **himself**, not **herself***, and *The girl hurt **herself**, not **himself***. What makes it hard: words between the two that belong together.
#
# </details>
# <details><summary>What should come out</summary>
#
# In how many of your pairs the model is right. More than half cannot come from liking one word alone.
#
# </details>

# %% tags=["stub"]
my_pairs = [
    ("The boy near the queen hurt himself.", "The boy near the queen hurt herself."),
    ...,
]

# %%
checks.my_pairs(my_pairs, lm)
