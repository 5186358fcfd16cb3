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
# # Exercises: does *not* change anything?
#
# To [`32_negation`](../32_negation.ipynb). Three exercises, about 45 minutes. Write in the cells that say `NotImplementedError` or `...`, run them,
# and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib.checks import negation
from lib.cloze.answers import ask
from lib.cloze.items import item_file, read_negation
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · Right in the affirmative, right in the negative, right in both
#
# 10 minutes · easy · by hand
#
# *A robin is a ___* is true with **bird**, *A robin is not a ___* with **tree**. An item is right in a sentence when the true word is more probable than the false one. Write
# how many items are right in the affirmative sentence, in the negative one, and in both: three numbers. The arguments are arrays of shape (items,), the
# probability of the true and of the false word in each sentence. First on paper:
#
# | | true, affirmative | false, affirmative | true, negative | false, negative |
# |---|---|---|---|---|
# | robin | bird .5 | tree .1 | tree .1 | bird .5 |
# | oak | tree .3 | bird .1 | bird .2 | tree .1 |
# | trout | fish .2 | bird .2 | bird .3 | fish .1 |

# %% [markdown]
# <details><summary>Hint</summary>
#
# In both sentences it is true against false. For the third number, combine the two comparisons item by item with `&`, then count.
#
# </details>
# <details><summary>What should come out</summary>
#
# Two affirmative, two negative, one in both (*oak*). *Robin* has the same two probabilities with and without the *not*: what does its affirmative sentence tell of
# negation?
#
# </details>

# %% tags=["stub"]
def count_right(true_affirmative, false_affirmative, true_negative, false_negative):
    """Items right in the affirmative, in the negative, in both: three numbers."""
    raise NotImplementedError

# %%
negation.count_right(count_right)

# %% [markdown]
# ## 2 · Simple or natural
#
# 15 minutes · medium · change a choice
#
# The choice is the set: simple sentences (*A cello is not an instrument*) or natural ones, such as a person might say. First predict in which set this model has the larger share right in
# **negative** sentences. Then write the shares: `answers` is a table with a row for each word of each sentence, in any order, and the columns `item`, `polarity`
# (`affirmative`, `negative`), `role` (`true`, `false`) and `probability`, NaN where the word has no score. Give two numbers: the share of scored items that are right in the
# affirmative, and in the negative.

# %% tags=["hide-input"]
sets = {name: read_negation(item_file(f"{name} negation")).head(16) for name in ("simple", "natural")}
answers = {name: ask(lm, items)[0] for name, items in sets.items()}
answers["natural"][["item", "polarity", "role", "context", "candidate", "probability"]].head(4).round(5)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `answers.pivot(index=["polarity", "item"], columns="role", values="probability").dropna()` puts the true and the false word of a sentence side by side.
#
# </details>
# <details><summary>What should come out</summary>
#
# Two shares for each set. Add them up: without ties, a model to which the negative sentence is the affirmative one comes to exactly 1.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "simple", "natural" or "the same"

def shares(answers):
    """Share of scored items that are right in affirmative sentences, in negative ones: two numbers."""
    raise NotImplementedError

# %%
negation.shares(shares, prediction, answers["simple"], answers["natural"])

# %% [markdown]
# ## 3 · A negation set of your own
#
# 20 minutes · medium · your own items
#
# Write at least four items `(affirmative context, negative context, word that makes the first true, word that makes the second true)`. The second context is the first with one
# *not* more; both end before the gap, with `(a|an)` where the article depends on the word. Take nouns that name categories, single items of the
# vocabulary, and let each be as often the first word as the second, so that a common noun helps nobody.

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two categories are enough, such as *animal* and *tool*: two animals and two tools make four items. Is your negative sentence true with its word, and false with the other?
#
# </details>
# <details><summary>What should come out</summary>
#
# In how many of your sentences the true word wins, affirmative and negative. If both numbers are the same and half of all, the model may only like one noun better.
#
# </details>

# %% tags=["stub"]
my_items = [
    ("A hammer is (a|an)", "A hammer is not (a|an)", "tool", "animal"),
    ...,
]

# %%
negation.my_items(my_items, lm)
