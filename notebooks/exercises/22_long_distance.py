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
# # Exercises: far from its subject
#
# To [`22_long_distance`](../22_long_distance.ipynb). Three exercises, about 50 minutes. Write in the cells that say `NotImplementedError` or
# `...`, run them, and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib.checks import long_distance
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · A row of the file
#
# 10 minutes · easy · by hand
#
# In the format of Gulordava et al. a row holds a sentence, the verb form of this row, and `len_prefix`, how many words stand before the verb. The word that
# stands in the sentence is often *another* form, and `<eos>` marks the end. What does this row say? Write it down, then the function for any row.
#
# | sent | len_prefix | form |
# |---|---|---|
# | The men that run the shop run it . `<eos>` | 6 | runs |

# %% [markdown]
# <details><summary>Hint</summary>
#
# `sent.split()` gives words, `words[len_prefix]` is the verb, and `" ".join(words)` makes a sentence again.
#
# </details>
# <details><summary>What should come out</summary>
#
# *The men that run the shop runs it .* The first *run* stays, and so does the space before the full stop: the format separates all words.
#
# </details>

# %% tags=["stub"]
def with_form(sent, len_prefix, form):
    """The sentence with ``form`` as its verb, without ``<eos>``: words separated by one space."""
    raise NotImplementedError

# %%
long_distance.with_form(with_form)

# %% [markdown]
# ## 2 · Sense against nonsense, fairly
#
# 20 minutes · hard · change a choice
#
# How much does sense help? The choice is where to take the difference. *Pooled*: the share right of all sensible rows minus that of all nonsense rows.
# *Within sentences*: the same difference for each sentence and its own nonsense variants, for a hard sentence is hard in all of them, and then the mean over
# sentences; one that lacks either kind says nothing. First predict, for the table below, which gives sense the larger advantage. Then write the one within
# sentences: `table` has a row a pair, and the columns `sentence`, `kind` (`"sense"` or `"nonsense"`) and `correct` (1 or 0). One number.
#
# | sentence | sense | nonsense |
# |---|---|---|
# | a | 1 | 1, 0 |
# | b | 0 | 1, 0, 0, 0 |
# | c | 1 | |

# %% [markdown]
# <details><summary>Hint</summary>
#
# `table.groupby(["sentence", "kind"])["correct"].mean().unstack()` has a row a sentence and a column a kind; `dropna` leaves out what lacks one.
#
# </details>
# <details><summary>What should come out</summary>
#
# Within sentences, a: 1 − 0.5; b: 0 − 0.25; c says nothing. The mean of the two is 0.125. Pooled it is 2/3 − 2/6.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "pooled", "within sentences" or "the same"

def gain(table):
    """Mean over sentences of share right in sense minus share right in nonsense: one number."""
    raise NotImplementedError

# %%
long_distance.gain(gain, prediction)

# %% [markdown]
# ## 3 · Nonsense of your own
#
# 20 minutes · medium · your own items
#
# Write at least two sentences in which words stand between subject and verb, and a nonsense variant of each. Give four sentences an item: sense with the
# right verb, sense with the wrong one, nonsense with the right verb, nonsense with the wrong one. The nonsense keeps the small words (*the, of, that,
# near, ...*) in their places and changes every other word for one of the same kind and number. Half of the items are plural.

# %% [markdown]
# <details><summary>Hint</summary>
#
# *The bridge near the old church leads* becomes *The spoon near the loud idea works*. Verbs must be whole in the model's vocabulary: take common ones.
#
# </details>
# <details><summary>What should come out</summary>
#
# A line with the mean margin for sense and for nonsense. Two sentences prove nothing; which of your nonsense words might the model have expected?
#
# </details>

# %% tags=["stub"]
my_sentences = [
    (
        "The bridge near the old church leads to a village.",
        "The bridge near the old church lead to a village.",
        ...,
        ...,
    ),
]

# %%
long_distance.my_sentences(my_sentences, lm)
