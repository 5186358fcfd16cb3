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
# # Exercises: one word or the whole sentence?
#
# To [`23_coordination_tense`](../23_coordination_tense.ipynb). Three exercises, about 40 minutes. Write in the cells that say
# `NotImplementedError` or `...`, run them, and run the check below, which says why where something is not right yet. Hints are folded:
# open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import pandas as pd

from lib.checks import coordination_tense
from lib.models import Gap, load

lm = load(model)

# %% [markdown]
# ## 1 · Three judges on paper
#
# 10 minutes · easy · by hand
#
# Behind each word stands its log-probability (natural log; made up). Which pairs are right by the **target**, the word in bold alone, which by the **sum** over the
# sentence, and which by the **mean** over its words? Write the letters of the right pairs, such as `"AD"`.
#
# | | good | bad |
# |---|---|---|
# | A | The -1 guests -3 **sing -2** loudly -2 | The -1 guests -3 **sings -5** loudly -2 |
# | B | The -1 doctor -3 **did -3** not -1 work -2 yesterday -2 | The -1 doctor -3 **will -2** not -1 work -2 yesterday -5 |
# | C | The -1 guests -2 will -1.5 run -1.5 tomorrow -2 | The -1 guests -2 ran -2 tomorrow -2.5 |
# | D | The -1 girl -2 and -1 the -1 boys -2 **laugh -3** today -3 | The -1 girl -2 and -1 the -1 boys -2 **laughs -4** today -2 |

# %% [markdown]
# <details><summary>Hint</summary>
#
# A sum of log-probabilities is nearer to 0 for the more probable sentence. Which pair has no single target? Which has sentences of different lengths? Is a tie a
# success?
#
# </details>
# <details><summary>What should come out</summary>
#
# Two letters, two letters, and three. One pair is right by all three judges, and each of the others by some.
#
# </details>

# %% tags=["stub"]
right = {"target": ..., "sum": ..., "mean": ...}

# %% tags=["solution"]
right = {"target": "AD", "sum": "AB", "mean": "ABC"}

# %%
coordination_tense.on_paper(right)

# %% [markdown]
# ## 2 · Hide what stands behind the gap
#
# 15 minutes · medium · change a choice
#
# *The doctor ___ not work yesterday* needs **did**; its mirror with *tomorrow* needs **will**. A masked model reads both sides of the gap. First predict: if it is
# shown the left side only, over which share of the four pairs below will it be right? Then write the function: `pairs` is the table, and the answer a list
# with a `Gap(left, right)` for each row, its left context as it is, and behind it nothing but a full stop.

# %%
pairs = pd.DataFrame(
    [("The doctor", "did", "will", "not work yesterday."),
     ("The doctor", "will", "did", "not work tomorrow."),
     ("The guests", "did", "will", "not sing last night."),
     ("The guests", "will", "did", "not sing tomorrow night.")],
    columns=["left", "good", "bad", "right"],
)
pairs

# %% [markdown]
# <details><summary>Hint</summary>
#
# `[... for left in pairs["left"]]`. For the prediction: once the right side is hidden, what tells a pair from its mirror?
#
# </details>
# <details><summary>What should come out</summary>
#
# A share that you can know without a model. With both sides shown, a model can be right in all four.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "none of them", "half of them", "all of them" or "it depends on the model"

def left_only(pairs):
    """A list with a ``Gap`` for each row of ``pairs``: its left context, and a full stop."""
    raise NotImplementedError

# %% tags=["solution"]
prediction = "half of them"

def left_only(pairs):
    """A list with a ``Gap`` for each row of ``pairs``: its left context, and a full stop."""
    return [Gap(left, ".") for left in pairs["left"]]

# %%
coordination_tense.left_only(left_only, prediction, pairs, lm)

# %% [markdown]
# ## 3 · Pairs of your own
#
# 15 minutes · medium · your own items
#
# Write at least four pairs of at least two patterns, about tense or about coordination: `(pattern, good sentence, bad sentence)`. The two sentences differ in one
# word inside the sentence. Within a pattern each form is good as often as bad, so that a model which merely likes *will* better than *did* gets no more
# than half. Both forms must be single items of the model's vocabulary.

# %% [markdown]
# <details><summary>Hint</summary>
#
# Make pairs in mirrors, as in exercise 2. For coordination, *the king **and** the queen* wants a plural verb and *the king **near** the queen* a singular one.
#
# </details>
# <details><summary>What should come out</summary>
#
# For each pattern, in how many of its pairs the model is right. Is it the pattern that you thought harder?
#
# </details>

# %% tags=["stub"]
my_pairs = [
    ("adverb first", "Yesterday the teacher did not smile.", "Yesterday the teacher will not smile."),
    ...,
]

# %% tags=["solution"]
my_pairs = [
    ("adverb first", "Yesterday the teacher did not smile.", "Yesterday the teacher will not smile."),
    ("adverb first", "Tomorrow the teacher will not smile.", "Tomorrow the teacher did not smile."),
    ("coordination", "The king and the queen are here.", "The king and the queen is here."),
    ("coordination", "The king near the queen is here.", "The king near the queen are here."),
]

# %%
coordination_tense.my_pairs(my_pairs, lm)
