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
# # Exercises: what does each choice change?
#
# To [`10_scoring_choices`](../10_scoring_choices.ipynb). Three exercises, about 50 minutes. Write in the cells that say `NotImplementedError` or
# `...`, run them, and run the check below, which says why where something is not right yet. Hints are folded: open them late.

# %% tags=["parameters"]
model = "distilbert-mlm"  # a bundled model, a name in data/models.csv, a hub id or a folder

# %% tags=["hide-input"]
import numpy as np

from lib import sentences
from lib.checks import choices
from lib.checks.choices import BIGRAM, PAIRS, START
from lib.models import load

lm = load(model)

# %% [markdown]
# ## 1 · One sentence, padded
#
# 15 minutes · easy · by hand
#
# A masked model was asked about a sentence of two tokens, one token hidden at a time. To fit with longer sentences it was padded to three:
# `ids = [2, 1, 0]`, where piece 0 is the padding. Row i of the matrix is the distribution at position i over a vocabulary of three pieces.
#
# | log P | piece 0 | piece 1 | piece 2 |
# |---|---|---|---|
# | position 0 | -2.3 | -0.7 | -0.9 |
# | position 1 | -1.6 | -1.6 | -0.5 |
# | position 2 | -0.1 | -3.0 | -3.0 |
#
# Its pseudo-log-likelihood is the sum of the log-probabilities of its tokens. Work it out on paper, then write the function for any
# matrix of shape (positions, vocabulary), `ids` of shape (positions,) and id of the padding. One number.

# %% [markdown]
# <details><summary>Hint</summary>
#
# `matrix[np.arange(len(ids)), ids]` takes one number from each row; `ids != padding` says which rows are tokens.
#
# </details>
# <details><summary>What should come out</summary>
#
# For the table, -0.9 + -1.6 = -2.5. Neither the likeliest pieces nor the padding counts.
#
# </details>

# %% tags=["stub"]
def pseudo_log_likelihood(log_probabilities, ids, padding):
    """One number; arrays of shape (positions, vocabulary) and (positions,), the padding's id."""
    raise NotImplementedError

# %% tags=["solution"]
def pseudo_log_likelihood(log_probabilities, ids, padding):
    """One number; arrays of shape (positions, vocabulary) and (positions,), the padding's id."""
    of_tokens = log_probabilities[np.arange(len(ids)), ids]
    return of_tokens[ids != padding].sum()

# %%
choices.pseudo_log_likelihood(pseudo_log_likelihood)

# %% [markdown]
# ## 2 · Does a start token turn the judgement?
#
# 20 minutes · medium · change a choice
#
# Below is a causal model that fits on a page: the probability of each piece behind the piece before it. `<s>` is its start token, and `##s` goes on
# with a word. Three pairs of sentences differ in their first word, in the middle, or in the last word. In which pair can the start token
# turn round which of the two is more probable? Predict first.
#
# Then write the score: the sum of natural log-probabilities of the pieces, a list of texts. `start_token` is `True` or `False`: with it the first
# piece is scored behind `<s>`; without it nothing stands before the first piece, and it has no score.

# %%
BIGRAM

# %%
PAIRS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `zip(pieces, pieces[1:])` walks over neighbours. With the start token, do the same with `[START, *pieces]`.
#
# </details>
# <details><summary>What should come out</summary>
#
# Two sentences with the same first word get the same number more, and their margin stays. In the pair with two first words the start token has an
# opinion of its own.
#
# </details>

# %% tags=["stub"]
prediction = ...  # "first", "middle" or "last"

def score(pieces, table, start_token):
    """Log-probability of a list of pieces; ``table[before][piece]`` is a probability: one number."""
    raise NotImplementedError

# %% tags=["solution"]
prediction = "first"

def score(pieces, table, start_token):
    """Log-probability of a list of pieces; ``table[before][piece]`` is a probability: one number."""
    row = [START, *pieces] if start_token else pieces
    return sum(np.log(table[before][piece]) for before, piece in zip(row, row[1:]))

# %%
choices.start_token(score, prediction)

# %% [markdown]
# ## 3 · Where sum and mean disagree
#
# 15 minutes · hard · your own items
#
# Write two sentences that differ in one word, of which this model prefers one by the sum of the log-probabilities of its tokens and the other by the
# mean. First think: what must be true of the numbers of tokens? And which of the two will the mean prefer? The cell below shows how the model cuts
# a sentence, what each token costs, and the sum and mean that count; look for your words with it.

# %%
[scored] = sentences.score(lm, ["She heard the violin again."])
for piece, cost in zip(scored.pieces, scored.log_probabilities):
    print(f"{piece:10} {cost:.2f}")
print(f"sum {sentences.reduce(scored, 'sum'):.2f}, mean {sentences.reduce(scored, 'mean'):.2f}")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The sum must prefer the sentence with fewer tokens, and the mean the other. A long rare name is cut into many pieces: the first costs much; the
# others follow from it and cost little, so they bring the mean up and the sum down. Set it against words of one piece, from common to rare in the
# same place: too common a word wins both, too rare a one loses both; between them lies what you look for.
#
# </details>
# <details><summary>What should come out</summary>
#
# A line with both sums, both means, and the numbers of tokens.
#
# </details>

# %% tags=["stub"]
my_pair = ...  # ("one sentence", "the other")

# %% tags=["solution"]
my_pair = (
    "They saw the mug yesterday.",
    "They saw the chimpanzee yesterday.",
)

# %%
choices.my_pair(my_pair, lm)
