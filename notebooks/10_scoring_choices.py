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
# # One sentence, many scores: what does each choice change?
#
# How probable is a sentence? It depends on choices that papers seldom name. Which of them matter?

# %% [markdown]
# By the end you will have scored one pair of sentences under every choice there is, and counted how many **judgements** each
# choice turns round, while a control shows how many would turn by chance of computing. You will
#
# 1. add up a sentence's score by hand, token by token,
# 2. see where a start token, the mean, the pieces of words and the full stop come in,
# 3. judge many minimal pairs under each choice, and count what changes,
# 4. compare words of several pieces by each rule,
# 5. read the pairs whose judgement depends on the choice.
#
# About 25 minutes to read, about one to run. Read `00_start_here` first.
# Sources: Salazar et al. (2020) and Kauf and Ivanova (2023) on masked models; Warstadt et al. (2020) for the pairs' form.

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # a bundled model, a name in data/models.csv, a hub id or a folder
revision = "main"
device = "auto"
dtype = "float32"
items = []  # paradigm files (JSONL); [] = our own minimal pairs
limit = 10  # pairs per paradigm; 0 = all
sample = "seeded"  # which pairs a limit keeps: "seeded" or "first"
seed = 0
start_state = "eos"  # of recurrent models: "eos" or "zero"
start_token = "auto"  # of causal models: "auto" (if the model defines one), "always", "never"
masked_method = "within_word_l2r"  # of masked models: "within_word_l2r" or "original"
reduction = "sum"  # of the tokens of a sentence: "sum" or "mean"
other_dtype = ""  # also compare this one, for instance "bfloat16"; "" = do not
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import blimp, charts, metrics, results, sentences, stats
from lib.errors import LitmusError
from lib.items import read_verbs
from lib.models import Gap, load
from lib.paths import DATA
from lib.store import Store

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
blimp.check_order(lm)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# *The father who fed the twins scalded **himself**.* It cannot be *themselves*: the twins stand inside the relative clause. Both
# sentences have a word that many vocabularies cut into pieces, *scalded*.

# %% [markdown]
# By hand: the tokens, and what each costs. A causal model reads from left to right, so its first token has a score only if
# something stands before it; a masked model hides the token it is asked about, and perhaps the later pieces of the same word.

# %%
pair = ["The father who fed the twins scalded himself.", "The father who fed the twins scalded themselves."]
good, bad = sentences.ask(lm, pair, start_token, masked_method)
pd.DataFrame({
    f"{which}: {name}": pd.Series(values)
    for which, found in (("good", good), ("bad", bad))
    for name, values in (("token", found.pieces),
                         ("log-probability", [f"{value:.2f}" for value in found.log_probabilities]))
}).fillna("")

# %%
scored = [pd.Series(found.log_probabilities).dropna() for found in (good, bad)]
sums, means = [tokens.sum(min_count=1) for tokens in scored], [tokens.mean() for tokens in scored]
by_hand = sums if reduction == "sum" else means
Markdown(f"Sum: {sums[0]:.2f} against {sums[1]:.2f}. "
         f"Divided by the {len(scored[0])} and {len(scored[1])} tokens that have a score: "
         f"{means[0]:.2f} against {means[1]:.2f}.")

# %% [markdown]
# ## Before you go on
#
# Which choices can change *which* of the two sentences wins, and which only shift both scores alike? When two sentences have the same
# number of tokens, can the mean decide otherwise than the sum?

# %% [markdown]
# ## The choices
#
# **Start token**: does something stand before the first word? **Reduction**: sum or mean. **Masked method**: are later pieces of a
# word hidden too? **Start state**: where a recurrent model begins. And the text itself: with or without its **full stop**, with or without its
# **capital**. A choice that a family does not have is not in the table.

# %%
families = {"causal": ["start_token auto", "start_token always", "start_token never"],
            "masked": ["masked_method within_word_l2r", "masked_method original"],
            "recurrent": ["start_state eos", "start_state zero"]}
named = {"start_token": start_token, "masked_method": masked_method,
         "start_state": start_state, "reduction": reduction}
words = [text.split() for text in [*families[lm.family], "reduction sum", "reduction mean"]]
variants = {f"{choice}: {value}": {choice: value} for choice, value in words}
variants |= {"text: no full stop": {"text": "no full stop"}, "text: no capital": {"text": "no capital"}}
variants |= {f"dtype: {other_dtype}": {"dtype": other_dtype}} if other_dtype else {}

# %%
def written(table, text):
    """The pairs as another writer would set them."""
    if text == "no full stop":
        return table.assign(**{which: table[which].str.rstrip(".?!") for which in ("good", "bad")})
    small = {which: table[which].str[0].str.lower() + table[which].str[1:] for which in ("good", "bad")}
    return table.assign(**small) if text == "no capital" else table

# %% [markdown]
# `judged` scores pairs under the choices of the parameters, with one of them changed.

# %%
loaded = {(dtype, start_state): (lm, store)}

def judged(table, text="", **changed):
    """Judgements on ``table`` with other choices than the parameters'."""
    chosen = named | {"dtype": dtype} | changed
    key = chosen.pop("dtype"), chosen.pop("start_state")
    if key not in loaded:
        another = load(model, revision=revision, device=device, dtype=key[0], start_state=key[1])
        loaded[key] = another, Store(another.identity)
    asked, kept = loaded[key]
    return sentences.minimal_pairs(asked, written(table, text), store=kept, **chosen)

# %% [markdown]
# The one pair under every choice.

# %%
example = pd.DataFrame({"good": pair[:1], "bad": pair[1:]})
rows = []
for name, changed in variants.items():
    try:
        [row] = judged(example, **changed).to_dict("records")
    except LitmusError:  # "always", where the model defines no start token
        continue
    rows.append({"choice": name, "good": row["log_probability_good"], "bad": row["log_probability_bad"],
                 "margin": row["margin"], "tokens": f"{row['tokens_good']}, {row['tokens_bad']}",
                 "prefers": "good" if row["correct"] else "bad"})
pd.DataFrame(rows).set_index("choice").round(2)

# %% [markdown]
# ## The items
#
# Many pairs, to see how often a judgement turns: our own minimal pairs, a sample of each paradigm.

# %%
files = blimp.paradigm_files(None, items)
pairs, left_out, sampled = blimp.read_pairs(files, limit, sample, seed)
data = {"name": "given items" if items else "our own items", "sample": sampled,
        "sha256": results.checksums(files)}
assert (pairs["good"] != pairs["bad"]).all()
Markdown(f"Data: **{data['name']}**, {len(pairs)} pairs in {len(files)} paradigms; sample: {sampled}.")

# %% [markdown]
# ## Scores
#
# First with the choices of the parameters, equal to the hand.

# %%
base = judged(pd.concat([pairs, example], ignore_index=True))
np.testing.assert_allclose(base.iloc[-1][["log_probability_good", "log_probability_bad"]].tolist(),
                           by_hand, atol=1e-3)
base = base.iloc[:-1]
metrics.check_scored(base)
Markdown(f"{blimp.surprisal_check(base, lm.vocabulary_size)} "
         f"{base['scorable'].sum()} of {len(base)} pairs scored, "
         f"in {(base['scorable'] & (base['unknown'] > 0)).sum()} of them "
         f"without the unknown words that both sentences hold; {base['tie'].sum()} ties.")

# %% [markdown]
# Then with each choice changed, one at a time.

# %%
skipped = {f"{choice}: {value}" for choice, value in named.items()} | {f"dtype: {dtype}"}
if start_token == "auto" and len(sentences.ask(lm, ["The"], "auto", masked_method)[0].log_probabilities):
    skipped |= {"start_token: always"}  # the same as auto, or impossible
tables = {name: judged(pairs, **changed) for name, changed in variants.items() if name not in skipped}

# %% [markdown]
# ## Result
#
# What each choice turns round, against the choices of the parameters: pairs that become right, and pairs that become wrong.

# %%
turned = blimp.turned(base, tables)
charts.flips(turned)

# %%
summary = blimp.accuracies({"as in the parameters": base, **tables})
summary.drop(columns="metric").set_index("condition").round(3)

# %%
stable = pd.concat([base["correct"], *(table["correct"] for table in tables.values())], axis=1).dropna()
same = stable.nunique(axis=1) == 1
value, low, high = stats.proportion(same.sum(), len(same))
most = turned.groupby("choice", sort=False)["pairs"].sum()
Markdown(f"**{value:.0%}** [{low:.2f}, {high:.2f}] of {len(same)} pairs are judged alike under every choice. "
         f"The choice that turns most is *{most.idxmax()}*, with {most.max()} pairs.")

# %% [markdown]
# An accuracy can stay the same while many judgements turn, as long as as many turn one way as the other. So compare numbers of two papers
# only where their choices are the same, and say yours.

# %% [markdown]
# ## Words of several pieces
#
# At a gap, a verb of several pieces can be scored in several ways. `single_token` leaves it out. `sum_l2r` adds up its pieces from left to
# right: where *walks* is the pieces of *walk* and one more, *walks* can never win, whatever the subject. `whole_word` also asks that the word
# ends there. A masked model gets one mask a piece; `original` shows all pieces but one, `within_word_l2r` only those before it.

# %%
verbs = read_verbs(DATA / "verbs.csv")
ids = {form: lm.word(form, "middle").ids for form in [*verbs["singular"], *verbs["plural"]]}
split = [min(len(ids[s]), len(ids[p])) > 0 and len(ids[s]) + len(ids[p]) > 2
         for s, p in zip(verbs["singular"], verbs["plural"], strict=True)]
several = verbs[split].head(40)
hopeless = [ids[s][: len(ids[p])] == ids[p]
            for s, p in zip(several["singular"], several["plural"], strict=True)]
Markdown(f"This vocabulary splits a form of {sum(split):,} of the {len(verbs):,} verbs in our list. "
         f"Among the first {len(several)} of them "
         f"there are {sum(hopeless)} whose singular is the plural's pieces and more.")

# %%
policies = {"causal": ["sum_l2r", "whole_word"], "masked": ["within_word_l2r", "original"],
            "recurrent": ["whole_word"]}[lm.family]
places = {"singular": Gap("The child often", "in the garden."),
          "plural": Gap("The children often", "in the garden.")}
rows = []
for policy in policies if len(several) else []:
    for number, gap in places.items():
        [batch] = lm.continue_([gap], [*several["singular"], *several["plural"]], policy, "never")
        if batch.reason:
            continue  # as many masks as pieces can be too much for a model
        singular, plural = batch.log_probabilities[0].cpu().numpy().reshape(2, -1)
        right = singular > plural if number == "singular" else plural > singular
        rows.append({"policy": policy, "subject": number,
                     "verbs": len(right), "right": right.sum(), "share": right.mean()})
(pd.DataFrame(rows, columns=["policy", "subject", "verbs", "right", "share"])
 .set_index(["policy", "subject"]).round(2))

# %% [markdown]
# ## Beside published values
#
# What published tools do when nothing is said. None is wrong; but their numbers cannot be put side by side.

# %%
pd.DataFrame([
    ("minicons", "none unless asked", "mean"),
    ("lm-evaluation-harness", "the model's own, as the context of a text without context", "sum"),
    ("ours", "auto", "sum"),
], columns=["tool", "start token of causal models", "reduction"]).set_index("tool")

# %% [markdown]
# ## A control
#
# How much would turn by chance of computing? The same choices once more, without kept scores, in another order and so in other batches: nothing
# should turn, and the difference shows what the arithmetic leaves open.

# %%
backwards = pairs.iloc[::-1].head(60)
once_more = sentences.minimal_pairs(lm, backwards, start_token, masked_method, reduction)
difference = (once_more["margin"] - base.loc[backwards.index, "margin"]).abs().max()
turns = (once_more["correct"] != base.loc[backwards.index, "correct"])[once_more["scorable"]].sum()
Markdown(f"Of {len(backwards)} pairs scored again {turns} turn; "
         f"the largest difference of a margin is {difference:.1e}. "
         f"{base['near_tie'].sum()} of {len(base)} margins are smaller than 0.0001, "
         f"the difference that another machine may make.")

# %% [markdown]
# ## Where it goes wrong
#
# The pairs that most choices turn, with the margin under the choices of the parameters, and how many choices turn it.

# %%
turns_of = sum((table["correct"] != base["correct"]) & table["scorable"] & base["scorable"]
               for table in tables.values())
unsure = base.assign(**{"turned by": turns_of}).sort_values("turned by", ascending=False, kind="stable").head(8)
unsure.set_index("paradigm")[["good", "bad", "margin", "turned by"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * Which choice is *right*: that depends on what the model was trained to read. A model that never saw a text without a start token says little without one.
# * How choices act together: only one is changed at a time.
# * Our pairs have sentences of equal length in words; where they differ, as in some published paradigms, sum and mean part more often.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("10_scoring_choices", globals(), lm, store)
choices = {name: str(base[name].iloc[0]) for name in ("start_token", "masked_method", "reduction", "dtype")}
choices |= {"start_state": start_state if lm.family == "recurrent" else ""}
rows = pd.concat([
    table.assign(condition=name, item=table["paradigm"] + ":" + table["pair"], context=table["good"],
                 candidate=table["good"], alternative=table["bad"],
                 log_probability=table["log_probability_good"], start_state=choices["start_state"])
    for name, table in {"as in the parameters": base, **tables}.items()
], ignore_index=True)
headline = {"metric": "judged alike under every choice", "value": value, "low": low, "high": high,
            "n": len(pairs), "coverage": len(same) / len(pairs)}
saved = results.write(
    out, notebook="10_scoring_choices", title="One sentence, many scores: what does each choice change?",
    items=rows, summary=summary, headline=headline, data=data, choices=choices,
    sources=["salazar2020", "kauf2023", "warstadt2020"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. A score is a sum over tokens; what counts as a token with a score is a choice.
# 2. Some choices shift both sentences alike; others turn the judgement.
# 3. Count the judgements that turn, and not only the accuracy.
# 4. Words of several pieces need a rule for where they end.
# 5. A judgement with a small margin depends on the choice; the pairs show which.

# %% [markdown]
# Next: [`24_blimp`](24_blimp.ipynb) judges every paradigm. Back: [`00_start_here`](00_start_here.ipynb). [Exercises](exercises/10_scoring_choices.ipynb); your copy to write in lies in `my_exercises`.
#
# * Salazar, Liang, Nguyen and Kirchhoff (2020), *Masked language model scoring*, ACL.
# * Kauf and Ivanova (2023), *A better way to do masked language model scoring*, ACL.
# * Warstadt et al. (2020), *BLiMP: the benchmark of linguistic minimal pairs for English*, TACL.

# %% tags=["hide-input"]
results.provenance_table(provenance)
