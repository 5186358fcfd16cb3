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
# # Exercises: one sentence, by hand
#
# To [`00_start_here`](../00_start_here.ipynb). Three exercises, about 35 minutes. Write in the cells that say `NotImplementedError` or
# `...`, run them, and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib.checks import start
from lib.models import Gap, load, only

lm = load(model)

# %% [markdown]
# ## 1 · Bits, and choices
#
# 10 minutes · easy · by hand
#
# A model gives a token the log-probability -0.693 (natural logarithm). How many bits of surprisal is that? Do it on paper first. Then write two
# functions. `surprisal` turns natural log-probabilities, an array of shape (tokens,), into bits, of the same shape. `perplexity` makes one number of
# a sentence: 2 to the power of its mean surprisal in bits, over the tokens that have a score. A causal model gives the first token of a text
# none; in the array it is NaN.

# %% [markdown]
# <details><summary>Hint</summary>
#
# `np.log(2)` is 0.693. For the mean, `np.nanmean` leaves out what is NaN.
#
# </details>
# <details><summary>What should come out</summary>
#
# -0.693 is 1 bit: a coin toss. Two tokens of 1 and 3 bits make a perplexity of 4.
#
# </details>

# %% tags=["stub"]
def surprisal(log_probabilities):
    """Bits of each token; natural log-probabilities of shape (tokens,)."""
    raise NotImplementedError

def perplexity(log_probabilities):
    """One number, from natural log-probabilities of shape (tokens,), NaN where a token has none."""
    raise NotImplementedError

# %% tags=["solution"]
def surprisal(log_probabilities):
    """Bits of each token; natural log-probabilities of shape (tokens,)."""
    return -log_probabilities / np.log(2)

def perplexity(log_probabilities):
    """One number, from natural log-probabilities of shape (tokens,), NaN where a token has none."""
    return 2 ** np.nanmean(surprisal(log_probabilities))

# %%
start.surprisal(surprisal, perplexity)

# %% [markdown]
# ## 2 · The noun in between
#
# 15 minutes · medium · change a choice
#
# *The label on the bottle ___ new.* Change *bottle* to *bottles*: what happens to the margin of *is* over *are*, log P(is) − log P(are)? Write down first
# what you expect, then the function that measures it with the model `lm` that is loaded above. A gap has a left and a right side; the answer
# is one number, in nats.

# %% [markdown]
# <details><summary>Hint</summary>
#
# The notebook's cells *Fill, by the library* and *Scores* show both halves: `lm.fill([Gap(left, right)], "never")` gives batches with
# log-probabilities of shape (gaps, vocabulary), and `lm.word(form, "middle").id` is the column of a form.
#
# </details>
# <details><summary>What should come out</summary>
#
# Two margins and the way from one to the other. A speaker's would not change: the label is one label. If the model's gets smaller, it has listened
# to the wrong noun, if only a little.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "larger", "smaller" or "the same"

def margin(left, right, good, bad):
    """log P(good) - log P(bad) at the gap between ``left`` and ``right``, in nats: one number."""
    raise NotImplementedError

# %% tags=["solution"]
prediction = "smaller"

def margin(left, right, good, bad):
    """log P(good) - log P(bad) at the gap between ``left`` and ``right``, in nats: one number."""
    batch = only(lm.fill([Gap(left, right)], "never"))
    good_id, bad_id = (lm.word(form, "middle").id for form in (good, bad))
    return batch.log_probabilities[0, good_id] - batch.log_probabilities[0, bad_id]

# %%
start.margin(margin, prediction, lm)

# %% [markdown]
# ## 3 · Pairs of your own
#
# 10 minutes · easy · your own items
#
# Write at least four items as tuples (left, good, bad, right): what stands before the gap, the right form, the wrong form of the same verb, and
# what stands behind, up to the full stop. As many right forms are singular as plural. Take verbs that the model's vocabulary has whole, in
# the present tense or *was* and *were*. Can you find one that this model gets wrong?

# %% [markdown]
# <details><summary>Hint</summary>
#
# One sentence gives two items, with the numbers turned round. Forms of *be* and *have* are in every vocabulary. Words between the subject and its
# verb make it harder.
#
# </details>
# <details><summary>What should come out</summary>
#
# A line that says in how many pairs the model is right, and shows the pair with the smallest margin.
#
# </details>

# %% tags=["stub"]
my_pairs = [
    ("My sister", "lives", "live", "in London."),
    ...,
]

# %% tags=["solution"]
my_pairs = [
    ("My sister", "lives", "live", "in London."),
    ("My sisters", "live", "lives", "in London."),
    ("The friend of the teachers", "has", "have", "an old car."),
    ("The friends of the teacher", "have", "has", "an old car."),
]

# %%
start.my_pairs(my_pairs, lm)
