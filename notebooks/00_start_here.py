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
# # Start here: one sentence, by hand
#
# What does a language model do with a sentence, and how can we ask it about grammar?

# %% [markdown]
# By the end you will have asked a model the two questions that everything in this repository is made of, **fill** and
# **score**, and seen that it prefers a grammatical sentence, while a control shows when such a preference means nothing. You will
#
# 1. turn a sentence into tokens,
# 2. *fill*: compute the distribution at one gap by hand,
# 3. *score*: compute the log-probability of each token of a sentence,
# 4. compare two sentences that differ in one word, a **minimal pair**,
# 5. check that the library gives the same numbers.
#
# About 25 minutes to read, less than one to run. You need Python and the idea of a probability, nothing else.

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # a bundled model, a name in data/models.csv, a hub id or a folder
revision = "main"
device = "auto"
dtype = "float32"
start_state = "eos"  # of recurrent models: "eos" or "zero"
start_token = "never"  # of causal models, at gaps: "never" (as published), "auto", "always"
start_token_of_sentences = "auto"  # of causal models, for whole sentences
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from lib import charts, results, stats
from lib.models import Gap, load, only

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)

# %% [markdown]
# ## One example
#
# *The children ___ in the garden.* A speaker of English would fill the gap with *are*, *were* or *play*, never with *is* or
# *plays*: the subject is plural, and the verb agrees with it. Does the model know?
#
# There are three families of model. A **masked** model sees both sides of the gap. A **causal** model sees only what stands
# before it, and so does a **recurrent** one, which reads word by word. The questions are the same for all.

# %%
gap = Gap(left="The children", right="in the garden.")
seen = lm.seen(gap)
Markdown(f"`{model}` is a **{lm.family}** model; at this gap it sees: *{seen.left} ___ {seen.right}*")

# %% [markdown]
# ## Tokens
#
# A model does not read letters. A tokenizer cuts the text into pieces of a fixed vocabulary, and each piece has a number. For
# a recurrent model the pieces are whole words, and any word that it does not know is one and the same, `<unk>`.

# %%
if lm.family == "recurrent":
    ids = lm.context_ids(seen.left)
    pieces = lm.spelling(ids)
else:
    text = f"{seen.left} {lm.tokenizer.mask_token} {seen.right}" if lm.family == "masked" else seen.left
    ids = lm.tokenizer(text, add_special_tokens=lm.family == "masked")["input_ids"]
    pieces = lm.tokenizer.convert_ids_to_tokens(ids)
pd.DataFrame({"piece": pieces, "number": ids}).T

# %% [markdown]
# ## Fill, by hand
#
# The network gives one number for each vocabulary item at each position, its **logit**. At the gap, the softmax turns them
# into probabilities: exponentiate, and divide by the sum.

# %%
position = ids.index(lm.tokenizer.mask_token_id) if lm.family == "masked" else len(ids) - 1
with torch.no_grad():
    logits = lm.network(torch.tensor([ids], device=lm.device))[0][0, position].float().cpu()
probabilities = logits.exp() / logits.exp().sum()
Markdown(f"{len(probabilities):,} probabilities, which sum to {probabilities.sum():.4f}.")

# %% [markdown]
# The ten likeliest words at the gap.

# %%
top = probabilities.topk(10)
likeliest = pd.DataFrame({"word": lm.spelling(top.indices.tolist()), "probability": top.values})
charts.words(likeliest)

# %% [markdown]
# And the four words we care about. Behind a space, a word is often another vocabulary item than at the start of a text;
# `word` knows which.

# %%
forms = ["are", "is", "play", "plays"]
chosen = [lm.word(form, "middle").ids for form in forms]
by_hand = {form: float(probabilities[i[0]].log()) for form, i in zip(forms, chosen, strict=True) if len(i) == 1}
pd.DataFrame({"log-probability": pd.Series(by_hand), "probability": np.exp(pd.Series(by_hand))}).round(4)

# %% [markdown]
# ## Fill, by the library
#
# `fill` does the same for any number of gaps, in batches. It must agree with the hand.

# %%
batch = only(lm.fill([gap], start_token="never"))
for form, log_probability in by_hand.items():
    assert abs(batch.log_probabilities[0, lm.word(form, "middle").id].item() - log_probability) < 1e-4
log_are, log_is = (batch.log_probabilities[0, lm.word(form, "middle").id].item() for form in ("are", "is"))
Markdown(f"`fill` agrees on {len(by_hand)} words. "
         f"P(are) / P(is) = {np.exp(log_are - log_is):.1f}.")

# %% [markdown]
# ## Score
#
# The second question takes a whole sentence: how probable is each of its tokens? A causal model and a recurrent one answer from
# what came before. A masked model has no order, so each token is masked in turn; the sum is called
# **pseudo-log-likelihood**. The negative log-probability is the **surprisal**, here in bits: 1 bit is a coin toss, 10 bits are
# one in 1,024.

# %%
pair = ["The children play in the garden.", "The children plays in the garden."]
scored = lm.score(pair, start_token=start_token_of_sentences)
surprisal = pd.concat([
    pd.DataFrame({"sentence": s.sentence, "position": range(len(s.pieces)),
                  "word": [s.sentence[a:b].strip() for a, b in s.spans],
                  "bits": -s.log_probabilities / np.log(2)})
    for s in scored
], ignore_index=True)
charts.surprisal(surprisal)

# %% [markdown]
# Which words cost more in the second sentence? A causal or recurrent model can be surprised from the verb on only, by the verb
# and by what follows it; a masked model also by the subject, which it now sees beside the wrong verb.

# %% [markdown]
# ## A minimal pair
#
# Two sentences that differ in one thing only. The sum of the log-probabilities says which one the model prefers.

# %%
totals = [float(np.nansum(s.log_probabilities)) for s in scored]
Markdown(
    f"log P of the good sentence: {totals[0]:.2f}, of the bad one: {totals[1]:.2f}. The model prefers the "
    f"**{'good' if totals[0] > totals[1] else 'bad'}** one, by {abs(totals[0] - totals[1]):.2f} nats."
)

# %% [markdown]
# ## Before you go on
#
# Here are eight pairs. In which of them do you expect the model to fail? Do you feel a pull towards the wrong verb yourself?

# %% [markdown]
# ## The items
#
# In the first four the verb stands beside its subject; in the last four another noun, an **attractor**, stands between.

# %%
items = pd.DataFrame(
    [
        ("none", "The dogs", "sleep", "sleeps", "all day."),
        ("none", "The teacher", "knows", "know", "the answer."),
        ("none", "My friends", "live", "lives", "in London."),
        ("none", "This book", "is", "are", "about history."),
        ("between", "The label on the bottles", "is", "are", "green."),
        ("between", "The friends of the teacher", "live", "lives", "in London."),
        ("between", "The boy beside the windows", "sleeps", "sleep", "all day."),
        ("between", "The houses near the river", "are", "is", "old."),
    ],
    columns=["attractor", "left", "good", "bad", "right"],
)
items.set_index("left")

# %% [markdown]
# ## Scores
#
# One gap an item; the two forms are looked up in its distribution. A form that is no single item of the vocabulary cannot be
# looked up, and a sentence too long for the model has no distribution: the pair is left out, and counted.

# %%
items[["log_probability_good", "log_probability_bad"]] = np.nan
for batch in lm.fill([Gap(left, right) for left, right in zip(items["left"], items["right"], strict=True)],
                     start_token):
    answered = [] if batch.reason else zip(batch.rows, batch.log_probabilities, strict=True)
    for row, log_probabilities in answered:
        for which in ("good", "bad"):
            ids = lm.word(items.loc[row, which], "middle").ids
            if len(ids) == 1:
                items.loc[row, f"log_probability_{which}"] = log_probabilities[ids[0]].item()
items["margin"] = items["log_probability_good"] - items["log_probability_bad"]
items.set_index("left")[["good", "bad", "log_probability_good", "log_probability_bad", "margin"]].round(2)

# %% [markdown]
# ## Result
#
# The share of pairs in which the right form is more probable, with a 95 % interval. With eight items it is very wide, and
# that is the honest answer.

# %%
usable = items.dropna(subset="margin").assign(correct=lambda table: table["margin"] > 0)
summary = pd.DataFrame([
    {"condition": name, "n": len(group), **stats.proportion(group["correct"].sum(), len(group))._asdict()}
    for name, group in [("all", usable), *usable.groupby("attractor", sort=False)]
])
charts.intervals(summary, value_title="share right")

# %%
everything = summary.iloc[0]
Markdown(f"Right in {everything['value']:.0%} of {len(usable)} pairs "
         f"[{everything['low']:.2f}, {everything['high']:.2f}]; "
         f"{len(items) - len(usable)} of {len(items)} could not be scored.")

# %% [markdown]
# ## A control
#
# The same verbs behind a subject that does not show its number: *The sheep*. Whatever the model prefers here, it is a habit of
# the model and no agreement.

# %%
batch = only(lm.fill([Gap("The sheep", "in the garden.")], start_token))
control = {form: batch.log_probabilities[0, lm.word(form, "middle").id].item() for form in by_hand}
Markdown(
    f"Behind *The children*, are against is: {by_hand['are'] - by_hand['is']:+.2f} nats. "
    f"Behind *The sheep*: {control['are'] - control['is']:+.2f} nats."
)

# %% [markdown]
# ## Where it goes wrong
#
# The pair with the smallest margin, as a sentence.

# %%
items.nsmallest(3, "margin").set_index("left")[["right", "good", "bad", "margin"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * Eight pairs written by one person measure nothing; `20_agreement` uses thousands.
# * A preference for the right form in one context is not yet a rule: see `21_systematic_or_likely`.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("00_start_here", globals(), lm)
choices = {"start_token": start_token, "start_state": lm.identity.get("start_state", ""),
           "target_policy": "single_token", "dtype": dtype}
rows = items.assign(item=items.index, condition=items["attractor"], context=items["left"],
                    candidate=items["good"], log_probability=items["log_probability_good"],
                    scorable=items["margin"].notna(), tie=items["margin"] == 0, **choices)
coverage = len(usable) / len(items)
headline = {"metric": "share right", **everything[["value", "low", "high", "n"]], "coverage": coverage}
saved = results.write(
    out, notebook="00_start_here", title="Start here: one sentence, by hand", items=rows, summary=summary,
    headline=headline, data={"name": "eight pairs of this notebook", "sample": "all", "sha256": {}},
    choices=choices, sources=["linzen2016", "marvin2018"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. Text becomes tokens; a word may be one piece or several.
# 2. *Fill* is a softmax over the vocabulary at one gap.
# 3. *Score* is the log-probability of each token; surprisal is its negative, in bits.
# 4. A minimal pair turns a question about grammar into a comparison of two numbers.
# 5. The library does what you did by hand.

# %% [markdown]
# Next: [`20_agreement`](20_agreement.ipynb) asks about every agreement construction. [Exercises](exercises/00_start_here.ipynb); your copy to write in lies in `my_exercises`.
#
# * Linzen, Dupoux and Goldberg (2016), *Assessing the ability of LSTMs to learn syntax-sensitive dependencies*, TACL.
# * Marvin and Linzen (2018), *Targeted syntactic evaluation of language models*, EMNLP.

# %% tags=["hide-input"]
results.provenance_table(provenance)
