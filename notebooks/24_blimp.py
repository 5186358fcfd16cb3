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
# # Minimal pairs: which of two sentences is better?
#
# Two sentences that differ in one thing, one good and one bad: does a language model find the good one more probable?

# %% [markdown]
# By the end you will have measured a model on **minimal pairs** of whole sentences, paradigm by paradigm, as in BLiMP
# (Warstadt et al. 2020), while controls show what length and the frequency of words have to do with it. You will
#
# 1. score one pair by hand, token by token,
# 2. score every pair with the library and see that both agree,
# 3. compare paradigms, phenomena and fields, with intervals, with people and with published models,
# 4. see what sentence length, the mean in place of the sum, and frequent words change,
# 5. read the pairs it gets most wrong.
#
# About 25 minutes to read, less than one to run. Read `00_start_here` first; `10_scoring_choices` tells what each choice does.
# Source: Warstadt, Parrish, Liu, Mohananey, Peng, Wang and Bowman (2020).

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # a bundled model, a name in data/models.csv, a hub id or a folder
revision = "main"
device = "auto"
dtype = "float32"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
items = []  # paradigm files (JSONL); [] = every paradigm there is
limit = 10  # pairs per paradigm; 0 = all
sample = "seeded"  # which pairs a limit keeps: "seeded" or "first"
seed = 0
exclude = ["identical"]  # pairs left out: "identical" (one string twice), "mistake" (known to be wrong)
start_state = "eos"  # of recurrent models: "eos" or "zero"
start_token = "auto"  # of causal models: "auto" (if the model defines one), "always", "never"
masked_method = "within_word_l2r"  # of masked models: "within_word_l2r" or "original"
reduction = "sum"  # of the tokens of a sentence: "sum" or "mean"
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import blimp, charts, metrics, published, results, sentences, stats
from lib.models import load
from lib.store import Store

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
blimp.check_order(lm)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# *The boy who met the queen hurt **himself***, and not *The boy who met the queen hurt **herself***. The reflexive belongs to the
# boy: the queen stands nearer, but inside the relative clause. A speaker need not think about it.

# %% [markdown]
# By hand: what each word costs, in bits, and the sum of its tokens' log-probabilities. A causal model judges each word by those before
# it, so the two sentences cost the same up to the word that differs; a masked model masks each word in turn and sees all others.

# %%
pair = ["The boy who met the queen hurt himself.", "The boy who met the queen hurt herself."]
of_pair = sentences.ask(lm, pair, start_token, masked_method)
charts.surprisal(pd.concat([sentences.words(found) for found in of_pair], ignore_index=True))

# %%
# A first token without anything before it has none.
scored = [pd.Series(found.log_probabilities).dropna() for found in of_pair]
by_hand = [tokens.sum(min_count=1) if reduction == "sum" else tokens.mean() for tokens in scored]
Markdown(f"The {reduction} is {by_hand[0]:.2f} for the good sentence and {by_hand[1]:.2f} for the bad one: "
         f"the model prefers the **{'good' if by_hand[0] > by_hand[1] else 'bad'}** one.")

# %% [markdown]
# ## Before you go on
#
# Which will be easier for a model: agreement between words that stand together, or the scope of *only* and *not*? Where would
# you yourself hesitate? And would a model that only knew which words are common do better than a coin?

# %% [markdown]
# ## The items
#
# A file is a **paradigm**: many pairs that differ in the same way. Paradigms belong to a phenomenon, phenomena to a field:
# morphology, syntax, semantics, or syntax and semantics together. One pair of each:

# %%
source = published.find(datasets)
files = blimp.paradigm_files(source, items)
pairs, left_out, sampled = blimp.read_pairs(files, limit, sample, seed, exclude)
pairs.groupby("paradigm", sort=False).head(1).set_index("paradigm")[["good", "bad"]]

# %%
assert (pairs["good"] != pairs["bad"]).all() or "identical" not in exclude
pairs.groupby(["field", "phenomenon"]).agg(paradigms=("paradigm", "nunique"), pairs=("pair", "size"))

# %% [markdown]
# In seven published pairs both sentences are the same string: nobody can be right there, so they are left out, and counted.

# %% tags=["hide-input"]
as_published = bool((pairs["release"] == "published").all())
kind = "given items" if items else "published: blimp" if as_published else "our own items"
data = {"name": kind, "sample": sampled, "sha256": results.checksums(files),
        "excluded": left_out["excluded"].value_counts().to_dict()}
Markdown(f"Data: **{kind}**, {len(pairs):,} pairs in {len(files)} paradigms; sample: {sampled}; "
         f"left out: {len(left_out)}"
         + (f" ({', '.join(f'{n} {why}' for why, n in data['excluded'].items())})."
            if len(left_out) else "."))

# %% [markdown]
# ## Scores
#
# The library scores each distinct sentence once, equal to the hand. A pair cannot be scored when a sentence is too long for the
# model, or when the two hold different unknown words; unknown words that both hold are left out of both. Equal scores are a
# tie, and a tie is no success.

# %%
example = pd.DataFrame({"good": pair[:1], "bad": pair[1:]})
options = {"start_token": start_token, "masked_method": masked_method, "store": store}
scored = sentences.minimal_pairs(lm, pd.concat([pairs, example], ignore_index=True),
                                 reduction=reduction, **options)
np.testing.assert_allclose(scored.iloc[-1][["log_probability_good", "log_probability_bad"]].tolist(),
                           by_hand, atol=1e-3)
scored = scored.iloc[:-1]
metrics.check_scored(scored)
reasons = ", ".join(f"{n} {why}" for why, n in scored.loc[~scored["scorable"], "reason"].value_counts().items())

# %%
Markdown(f"{blimp.surprisal_check(scored, lm.vocabulary_size)} "
         f"Scored: {scored['scorable'].sum():,} of {len(scored):,} pairs"
         f"{f' (not: {reasons})' if reasons else ''}; "
         f"in {(scored['scorable'] & (scored['unknown'] > 0)).sum()} of them both sentences hold the "
         f"same unknown words, left out of both; {scored['tie'].sum()} ties; "
         f"{scored['near_tie'].sum()} pairs closer than 0.0001, which another machine might judge otherwise.")

# %% [markdown]
# ## Result
#
# **Accuracy** is the share of pairs in which the good sentence is the more probable one; the dashed line is chance. First by
# phenomenon; the hollow mark is what people did, who chose the better of two sentences.

# %%
known = blimp.reference()
kinds = scored[["field", "phenomenon", "paradigm"]].drop_duplicates()
by_paradigm = metrics.summarise_pairs(scored, ["field", "phenomenon", "paradigm"]).assign(metric="accuracy")
by_paradigm["published"] = by_paradigm["paradigm"].map(known["people"])
by_phenomenon = metrics.summarise_pairs(scored, ["phenomenon"]).assign(metric="accuracy")
by_phenomenon["published"] = by_phenomenon["phenomenon"].map(
    by_paradigm.groupby("phenomenon")["published"].mean())
charts.intervals(by_phenomenon.rename(columns={"phenomenon": "condition"}).drop(columns="metric"),
                 value_title="accuracy")

# %%
value, low, high = (float(found[0]) for found in
                    stats.clustered_means(scored[["correct"]].to_numpy(), scored["paradigm"], seed))
best, worst = by_paradigm.loc[by_paradigm["value"].idxmax()], by_paradigm.loc[by_paradigm["value"].idxmin()]
Markdown(f"Over all pairs accuracy is **{value:.3f}** [{low:.3f}, {high:.3f}], "
         f"the interval from redrawing paradigms. Best: *{best['paradigm']}* ({best['value']:.2f}); "
         f"worst: *{worst['paradigm']}* ({worst['value']:.2f}).")

# %% [markdown]
# Every paradigm, in panels by phenomenon. A phenomenon can hide a paradigm below chance beside one above.

# %%
charts.grouped_intervals(by_paradigm.rename(columns={"paradigm": "condition"}), "phenomenon",
                         value_title="accuracy")

# %% [markdown]
# The same as a table, with what could be scored.

# %%
shown = ["n", "value", "low", "high", "ties", "coverage"]
by_paradigm.set_index("paradigm")[shown].round(3)

# %% [markdown]
# ## Beside published values
#
# People and four models of 2020, from BLiMP's own result files. Where the sentences are not the published ones, the published
# values belong to other sentences of the same paradigm: compare the order of the rows, not single numbers.

# %%
beside = known.reindex(by_paradigm["paradigm"])
beside.insert(0, "this model", by_paradigm.set_index("paradigm")["value"])
beside.round(2)

# %% [markdown]
# The mean over the paradigms of each field, for all of them; an interval is known for this model only.

# %%
of_field = by_paradigm.set_index("paradigm")["field"]
fields = beside.rename(columns={"this model": model}).groupby(of_field).mean().reset_index(names="diagnostic")
fields = fields.melt(id_vars="diagnostic", var_name="model", value_name="value").dropna()
ours = metrics.summarise_pairs(scored, ["field"]).set_index("field")
for end in ("low", "high"):
    fields[end] = np.where(fields["model"] == model, fields["diagnostic"].map(ours[end]), fields["value"])
charts.compare(fields, value_title="accuracy", description="Mean accuracy over the paradigms of each field: "
               "this model, people, and four published models.")

# %%
alike = beside.corr("spearman")["this model"].drop("this model").dropna().sort_values(ascending=False)
means = ", ".join(f"{name} {mean:.2f}" for name, mean in beside.mean().items())
Markdown(
    f"{'The sentences are the published ones.' if as_published else 'These are not the published sentences.'} "
    f"Mean over these paradigms: {means}. Rank correlation with this model: "
    f"{', '.join(f'{name} {rho:.2f}' for name, rho in alike.items())}."
)

# %% [markdown]
# ## A control
#
# *Length.* A sum of log-probabilities falls with every token, so the shorter sentence has an advantage. Accuracy by which of the two
# sentences is the longer one, in words and in tokens: a model that goes by length is good where the bad sentence is longer, and bad
# where the good one is.

# %%
lengths = pd.concat([
    metrics.summarise_pairs(scored.assign(longer=blimp.longer(scored, unit)), ["longer"]).assign(unit=unit)
    for unit in ("words", "tokens")
])
lengths.set_index(["unit", "longer"]).sort_index()[["n", "scored", "value", "low", "high"]].round(3)

# %% [markdown]
# The mean over tokens in place of the sum takes length out, and puts something else in: a rare word of many easy pieces looks
# good on average.

# %%
other = "mean" if reduction == "sum" else "sum"
again = sentences.minimal_pairs(lm, pairs, reduction=other, **options)
flipped = scored["scorable"] & (scored["correct"] != again["correct"])
gained = (flipped & (again["correct"] == 1)).sum()
Markdown(f"With the {other}, {flipped.sum()} of {scored['scorable'].sum()} judgements change: "
         f"{gained} become right, {flipped.sum() - gained} wrong; "
         f"accuracy is {again['correct'].mean():.3f} instead of {scored['correct'].mean():.3f}.")

# %% [markdown]
# *Frequency.* Do the words in which the two differ decide already outside the sentence? The model scores them behind a lone
# *and*. If it only followed its liking for words, it would be right where the good sentence's words are the likelier ones, and wrong where the bad one's are.

# %%
favoured = blimp.likelier_words(lm, pairs, **options)
by_words = metrics.summarise_pairs(scored.assign(favoured=favoured), ["favoured"])
order = {"good": "good one's words likelier", "same words": "same words", "neither": "equally likely",
         "bad": "bad one's words likelier", "unknown": "a word is unknown"}
by_words = (by_words.set_index("favoured")
            .reindex([name for name in order if name in set(favoured)]).reset_index())
charts.intervals(by_words.assign(condition=by_words["favoured"].map(order)).drop(columns="metric"),
                 value_title="accuracy")

# %% [markdown]
# ## Where it goes wrong
#
# The pairs with the largest margins on the wrong side.

# %%
wrong = scored[scored["correct"] == 0].nsmallest(8, "margin").set_index("paradigm")
wrong[["good", "bad", "margin"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * A preference between two sentences is no judgement of one: the model may find both absurd.
# * Where two sentences differ in their first word, the start token decides with it: see `10_scoring_choices`.
# * Pairs of a paradigm come from one pattern; a model can be right on all of them for one reason that is not grammar.
# * Published pairs are generated and often odd. Some are wrong in themselves: `exclude = ["identical", "mistake"]` leaves out those that are known.
# * People chose quickly between sentences; their share is no upper bound of grammar.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("24_blimp", globals(), lm, store)
choices = {name: str(scored[name].iloc[0]) for name in ("start_token", "masked_method", "reduction", "dtype")}
choices |= {"start_state": start_state if lm.family == "recurrent" else "", "exclude": ", ".join(exclude)}
rows = scored.assign(item=scored["paradigm"] + ":" + scored["pair"], condition=scored["paradigm"],
                     context=scored["good"], candidate=scored["good"], alternative=scored["bad"],
                     favoured=favoured, **choices, log_probability=scored["log_probability_good"])
headline = {"metric": "accuracy", "value": value, "low": low, "high": high,
            "n": len(scored), "coverage": scored["scorable"].mean()}
saved = results.write(
    out, notebook="24_blimp", title="Minimal pairs: which of two sentences is better?", items=rows,
    summary=by_paradigm.rename(columns={"paradigm": "condition"}), headline=headline,
    data=data, choices=choices, sources=["warstadt2020", "kauf2023"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. A minimal pair asks for one comparison of two sums; you can do it by hand.
# 2. The library gives the same numbers, asking each sentence once.
# 3. Paradigms differ far more than models do on average: look at the panels.
# 4. Length and frequent words can make a model look good or bad; a control says how much.
# 5. The worst pairs show what a mean cannot.

# %% [markdown]
# Next: [`30_inference`](30_inference.ipynb). Back: [`10_scoring_choices`](10_scoring_choices.ipynb) and [`20_agreement`](20_agreement.ipynb). [Exercises](exercises/24_blimp.ipynb); your copy to write in lies in `my_exercises`.
#
# * Warstadt et al. (2020), *BLiMP: the benchmark of linguistic minimal pairs for English*, TACL.
# * Kauf and Ivanova (2023), *A better way to do masked language model scoring*, ACL.

# %% tags=["hide-input"]
results.provenance_table(provenance)
