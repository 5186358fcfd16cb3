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
# # Subject and verb: does the model agree?
#
# Given the start of a sentence, does a language model prefer the verb that fits the subject?

# %% [markdown]
# By the end you will have measured **targeted syntactic evaluation** (TSE) on every agreement construction of
# Newman et al. (2021), while a control shows
# whether the model needs the subject to do it. You will
#
# 1. score one pair of verb forms by hand,
# 2. score every pair with the library and see that both agree,
# 3. compare constructions, with intervals and with the published values,
# 4. see where a noun between subject and verb leads the model astray,
# 5. read the sentences it gets most wrong.
#
# About 20 minutes to read, one to run. Read `00_start_here` first. Sources: Newman, Ang, Gong and Hewitt (2021); items in
# the manner of Marvin and Linzen (2018) and BLiMP (Warstadt et al. 2020).

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # a bundled model, a name in data/models.csv, a hub id or a folder
revision = "main"
device = "auto"
dtype = "float32"
start_state = "eos"  # of recurrent models: "eos" or "zero"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
items = []  # item files (JSONL); [] = every construction there is
limit = 320  # pairs per construction; 0 = all
sample = "seeded"  # which pairs a limit keeps: "seeded" or "first"
seed = 0
capitalise = "auto"  # first word of a sentence: "auto" = where the model is cased, "yes", "no"
full_stop = True  # append a full stop to the right context
start_token = "never"  # of causal models: "never" (as published), "auto", "always"
target_policy = "single_token"  # one piece; of more: "whole_word", "sum_l2r", "within_word_l2r", "original"
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import charts, metrics, published, results, scoring
from lib.items import agreement_files, capitalises, count_by, gaps, origin, read_pairs
from lib.models import Gap, load, only
from lib.paths import DATA
from lib.store import Store

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# *The keys to the cabinet ___ on the table.* A speaker of English says **are**, because the subject is *keys*. The noun
# next to the gap, *cabinet*, would ask for **is**. Such a noun is called an **attractor**.

# %% [markdown]
# By hand: ask the model for its distribution at the gap, and look up the two forms. A masked model reads the whole
# sentence, a causal model what stands before the gap. TSE asks one thing of each pair: is the right form *more* probable
# than the wrong one? A tie is not a success.

# %%
gap = Gap("The keys to the cabinet", "on the table.")
batch = only(lm.fill([gap], start_token))
forms = ["are", "is"]
words = [lm.word(form, "middle") for form in forms]
by_hand = [batch.log_probabilities[0, word.id].item() if len(word.ids) == 1 else np.nan for word in words]
pd.DataFrame({"form": forms, "log-probability": by_hand, "probability": np.exp(by_hand)}).round(4)

# %%
Markdown(f"Here the model prefers **{forms[int(by_hand[1] >= by_hand[0])]}**, "
         f"by {abs(by_hand[0] - by_hand[1]):.2f} nats." if np.isfinite(by_hand).all() else
         "Here the vocabulary has no single item for one of the forms: there is nothing to look up.")

# %% [markdown]
# ## Before you go on
#
# What do you expect? Will a long sentence be harder than a short one, or does only the noun in between matter? Should a
# plural attractor do the same harm as a singular one?

# %% [markdown]
# ## The items
#
# Each line of an item file holds two sentences that differ in one word, the verb, and a label in the published
# coding: −2 when the right verb is plural, −1 when it is singular.

# %%
source = published.find(datasets)
files = agreement_files(source, items)
pairs, sampled = read_pairs(files, limit, sample, seed)
shown = (pairs.assign(sentence=pairs["left"] + " ___ " + pairs["right"])
         .groupby("construction", sort=False).head(1))
shown.set_index("construction")[["sentence", "good", "bad"]]

# %% [markdown]
# How many pairs there are, and how many of each number: a model that always said *are* must not look good.

# %%
counts = (count_by(pairs, ["template", "number"])
          .pivot(index="template", columns="number", values="items").fillna(0))
counts = counts.reindex(pairs["template"].unique())
assert pairs["label"].isin([-2, -1]).all() and (pairs["good"] != pairs["bad"]).all()
counts.astype(int)

# %% tags=["hide-input"]
kind = "given items" if items else origin(files["path"], source)
data = {"name": kind, "sample": sampled, "sha256": results.checksums(files["path"])}
Markdown(f"Data: **{kind}**, {len(pairs):,} pairs in {len(files)} files; sample: {sampled}.")

# %% [markdown]
# ## Scores
#
# The library does what we did by hand, for all pairs. Each distinct context goes through the model once; a causal model
# sees only what precedes the gap, so several pairs may share one.

# %%
contexts = gaps(pairs, capitalises(capitalise, lm), full_stop)
candidates = [*pairs["good"], *pairs["bad"]]
fills = scoring.fill(lm, contexts, candidates, start_token, target_policy, store=store)
example = scoring.fill(lm, [gap], forms, start_token, store=store)
np.testing.assert_allclose(example.at("log_probability", ["are"]), by_hand[0], atol=1e-4)
Markdown(f"{len(contexts):,} gaps, {len(fills.contexts):,} distinct contexts as this model sees them.")

# %% [markdown]
# A pair is *valid* when both forms can be scored. The paper's rule, the policy `single_token`, asks that both are single
# items of the vocabulary, and its price is that some pairs are left out. They are counted, with the reason.

# %%
scored = pd.concat([pairs, metrics.minimal_pairs(fills, pairs["good"], pairs["bad"])], axis=1)
metrics.check_scored(scored)
reasons = scored.loc[~scored["scorable"], "reason"].value_counts().rename_axis("reason").rename("pairs")
reasons.to_frame()

# %% [markdown]
# ## Result
#
# The share of valid pairs in which the right form is more probable, with its 95 % Wilson interval. The dashed line is
# chance. The hollow mark is the published value of a large model: of the same family where the paper has one.

# %%
summary = metrics.summarise_pairs(scored, ["template"])
peer = {"masked": "bert-large-cased"}.get(lm.family, "gpt2-xl")
newman = pd.read_csv(DATA / "reference" / "newman2021.csv")
of_peer = newman[(newman["model"] == peer) & (newman["metric"] == "TSE")].set_index("template")["value"]
summary["published"] = summary["template"].map(of_peer)
summary.set_index("template").drop(columns="metric").round(3)

# %%
charts.intervals(summary.rename(columns={"template": "condition"}), value_title="TSE")

# %%
overall = metrics.summarise_pairs(scored.assign(all="all pairs"), ["all"]).iloc[0]
low, high = summary.loc[summary["value"].idxmin()], summary.loc[summary["value"].idxmax()]
Markdown(
    f"Over all pairs TSE is **{overall['value']:.3f}** [{overall['low']:.3f}, {overall['high']:.3f}], with "
    f"{overall['coverage']:.0%} of the pairs valid and {overall['ties']} ties. Easiest: *{high['template']}* "
    f"({high['value']:.2f}); hardest: *{low['template']}* ({low['value']:.2f})."
)

# %% [markdown]
# ## Beside published values
#
# The four models of the paper, and this one. The paper's models are much larger: look at the order of
# the rows rather than at single numbers.

# %%
table = newman[newman["metric"] == "TSE"].pivot(index="template", columns="model", values="value")
table.insert(0, model, summary.set_index("template")["value"].round(2))
table.reindex(summary["template"])

# %% [markdown]
# ## Number and attractor
#
# A mean hides who is right: here by the number of the subject, and by whether the attractor has the subject's number. Only
# our own items say which noun is the attractor; where other items are used above, ours are scored for this picture.

# %%
if "match" in scored:
    marked = scored
else:
    own, _ = read_pairs(agreement_files(), limit, sample, seed)
    of_own = scoring.fill(lm, gaps(own, capitalises(capitalise, lm), full_stop), [*own["good"], *own["bad"]],
                          start_token, target_policy, store=store)
    marked = pd.concat([own, metrics.minimal_pairs(of_own, own["good"], own["bad"])], axis=1)

# %%
marked = marked.assign(attractor=marked["match"].map({True: "match", False: "mismatch"}).fillna("none"))
by_attractor = metrics.summarise_pairs(marked, ["subject_number", "attractor"])
charts.by_number_and_attractor(by_attractor.rename(columns={"subject_number": "number"}), value_title="TSE")

# %%
means = marked[marked["scorable"]].groupby("attractor")["correct"].mean().reindex(["match", "mismatch"])
Markdown(
    f"With an attractor of the subject's number TSE is {means['match']:.2f}, with one of the other number "
    f"{means['mismatch']:.2f}: a difference of {means['match'] - means['mismatch']:.2f}."
)

# %% [markdown]
# ## Margins
#
# Right by a hair and right by a mile count the same in TSE. The margin, log P(right) − log P(wrong), shows the difference.

# %%
charts.margins(scored.rename(columns={"template": "condition"}))

# %% [markdown]
# ## A control
#
# Does the model look at the subject at all? Keep only the word right before the gap and drop the rest of the left context.
# What the model still gets right, it gets from that neighbour or from a habit.

# %%
without_subject = [Gap(gap.left.split()[-1] if gap.left else "", gap.right) for gap in contexts]
blind = scoring.fill(lm, without_subject, candidates, start_token, target_policy, store=store)
control = pd.concat([pairs, metrics.minimal_pairs(blind, pairs["good"], pairs["bad"])], axis=1)
control_summary = metrics.summarise_pairs(control, ["template"])
both = pd.concat([summary.assign(metric="whole context"), control_summary.assign(metric="last word only")])
charts.intervals(both.rename(columns={"template": "condition"}).drop(columns="published"), value_title="TSE")

# %% [markdown]
# A construction whose two marks, whole context and last word only, lie close together tells little about syntax: the word
# before the gap was enough. In simple sentences that word *is* the subject, so there the control should be high.

# %% [markdown]
# ## Where it goes wrong
#
# The pairs with the largest margins on the wrong side, as sentences.

# %%
worst = scored[scored["correct"] == 0].nsmallest(8, "margin")
worst = worst.assign(sentence=worst["left"] + " ___ " + worst["right"]).set_index("template")
worst[["sentence", "good", "bad", "margin"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * One pair of verbs in one sentence is one vote; whether the model would inflect *other* verbs there is asked in
#   `21_systematic_or_likely`.
# * Verbs of several pieces are left out by the policy `single_token`; coverage says how many.
# * The items come from templates: rows share words, so intervals are narrower than they should be.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("20_agreement", globals(), lm, store)
fields = ["value", "low", "high", "n", "coverage"]
rows = scored.assign(
    item=scored["construction"] + ":" + scored["line"].astype(str), condition=scored["template"],
    context=scored["left"], candidate=scored["good"], alternative=scored["bad"],
    log_probability=scored["log_probability_good"], rank=scored["rank_good"], **fills.choices,
)
saved = results.write(
    out, notebook="20_agreement", title="Subject and verb: does the model agree?", items=rows,
    summary=summary.rename(columns={"template": "condition"}), headline={"metric": "TSE", **overall[fields]},
    data=data, choices=fills.choices, sources=["newman2021", "marvin2018", "warstadt2020"],
    provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. TSE compares two log-probabilities at one gap; you can do it by hand.
# 2. The library gives the same numbers, asking each distinct context once.
# 3. Constructions differ, and an interval says how sure the difference is.
# 4. An attractor of the other number is the test that matters.
# 5. The worst items show what a mean cannot.

# %% [markdown]
# Next: [`21_systematic_or_likely`](21_systematic_or_likely.ipynb) asks about every verb, not two. Back: [`00_start_here`](00_start_here.ipynb). [Exercises](exercises/20_agreement.ipynb); your copy to write in lies in `my_exercises`.
#
# * Newman et al. (2021), *Refining targeted syntactic evaluation of language models*, NAACL.
# * Marvin and Linzen (2018), *Targeted syntactic evaluation of language models*, EMNLP.
# * Warstadt et al. (2020), *BLiMP: the benchmark of linguistic minimal pairs for English*, TACL.

# %% tags=["hide-input"]
results.provenance_table(provenance)
