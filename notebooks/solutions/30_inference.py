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
# # Exercises: does the model put two and two together?
#
# To [`30_inference`](../30_inference.ipynb). Three exercises, about 50 minutes. Write in the cells that say `NotImplementedError` or `...`, run
# them, and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib.checks import inference
from lib.cloze.answers import ask
from lib.cloze.items import item_file, read_inference
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · Among the likeliest k
#
# 15 minutes · medium · by hand
#
# *Accuracy@k*: in which share of contexts is the expected word among the likeliest k? `predictions` holds for each context a list of `(piece, kind, probability)`,
# likeliest first; `expected` holds its word. Only a piece of the kind `"word"` can be the answer: a piece of the kind `"piece"` is the rest of some longer word,
# but it takes a place. A word in a tie comes last in it. First on paper, for k = 2, with *light* expected in A, *cat* in B and *bed* in C:
#
# | | 1 | 2 | 3 |
# |---|---|---|---|
# | A | (tea, word, .3) | (light, piece, .2) | (light, word, .1) |
# | B | (dog, word, .4) | (cat, word, .2) | (fox, word, .1) |
# | C | (bed, word, .2) | (chair, word, .2) | (sofa, word, .2) |

# %% [markdown]
# <details><summary>Hint</summary>
#
# The place of a word is the number of predictions whose probability is at least its own, itself among them. What if it is not in the list?
#
# </details>
# <details><summary>What should come out</summary>
#
# For k = 2, one of three: B. For k = 3, all three.
#
# </details>

# %% tags=["stub"]
def accuracy_at(predictions, expected, k):
    """Share of contexts whose expected word is among the likeliest ``k`` of their predictions."""
    raise NotImplementedError

# %% tags=["solution"]
def accuracy_at(predictions, expected, k):
    """Share of contexts whose expected word is among the likeliest ``k`` of their predictions."""
    right = 0
    for listed, word in zip(predictions, expected, strict=True):
        own = [probability for piece, kind, probability in listed if (piece, kind) == (word, "word")]
        right += bool(own) and sum(probability >= own[0] for *_, probability in listed) <= k
    return right / len(expected)

# %%
inference.accuracy_at(accuracy_at)

# %% [markdown]
# ## 2 · The order of the N400, with a threshold
#
# 15 minutes · medium · change a choice
#
# People are surprised least by the expected word, more by one of its category (*within*), most by one of another (*between*). Write the share of items in which a
# model's probabilities are in this order, each of the **two** steps larger than `threshold`. The three arguments are arrays of shape (items,), NaN where a word
# has no score; such items leave the share. First predict where the share can go when the threshold rises from 0 to .01, whatever the model.

# %% tags=["hide-input"]
items = read_inference(item_file("inference")).head(24)
answers, _ = ask(lm, items)
answers[["item", "role", "candidate", "probability"]].head(6).round(5)

# %% [markdown]
# <details><summary>Hint</summary>
#
# The steps are `expected - within` and `within - between`. `np.isfinite` tells which items have all three scores.
#
# </details>
# <details><summary>What should come out</summary>
#
# Two shares. The second may be much smaller: where all three words are improbable, no step can reach a hundredth.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "up or stays", "down or stays" or "either way"

def in_order(expected, within, between, threshold):
    """Share of scored items with both steps larger than ``threshold``; arrays of shape (items,)."""
    raise NotImplementedError

# %% tags=["solution"]
prediction = "down or stays"

def in_order(expected, within, between, threshold):
    """Share of scored items with both steps larger than ``threshold``; arrays of shape (items,)."""
    steps = np.array([expected - within, within - between])
    scored = np.isfinite(steps).all(0)
    return (steps > threshold).all(0)[scored].mean()

# %%
inference.in_order(in_order, prediction, answers)

# %% [markdown]
# ## 3 · Items of your own
#
# 20 minutes · hard · your own items
#
# Write at least four items `(sentence 1, sentence 2, expected, within, between)`. Sentence 1 is whole and holds the clue; sentence 2 breaks off before its last
# word. So that no word has an advantage by being common, each word is expected, within and between equally often: two categories of two words do it in four items.
# No word stands in the sentences already, and each is a single item of the vocabulary.

# %% [markdown]
# <details><summary>Hint</summary>
#
# With *piano, guitar* and *horse, cow*: expected and within from one pair, between from the other, and each of the four is expected once. Could you guess the word
# from sentence 2 alone? Then nothing has to be inferred.
#
# </details>
# <details><summary>What should come out</summary>
#
# In how many of your items the expected word wins. A model that did not read the sentences could not win in all of them.
#
# </details>

# %% tags=["stub"]
my_items = [
    ("She sat down in front of the black and white keys.",
     "Soon everybody listened to her", "piano", "guitar", "horse"),
    ...,
]

# %% tags=["solution"]
my_items = [
    ("She sat down in front of the black and white keys.",
     "Soon everybody listened to her", "piano", "guitar", "horse"),
    ("He tuned the six strings at the camp fire.", "Soon everybody listened to his", "guitar", "piano", "cow"),
    ("The rider put on her boots and took the saddle.",
     "Then she went to look for her", "horse", "cow", "guitar"),
    ("The farmer came with a bucket because he wanted milk.",
     "Then he went to look for his", "cow", "horse", "piano"),
]

# %%
inference.my_items(my_items, lm)
