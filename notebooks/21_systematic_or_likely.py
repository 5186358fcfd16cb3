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
# # Systematic, or just likely?
#
# A model may inflect the verbs it expects and fail on all others: does it know the rule, or the common cases?

# %% [markdown]
# By the end you will have shown how far agreement reaches beyond the verbs that a model finds likely, while a control, which
# scores singular and plural subjects separately, shows whether a high score is a rule or a habit. You will
#
# 1. compute **EW** and **MW** for one context by hand,
# 2. score every context and every verb with the library,
# 3. see both scores change as only the likeliest, or only the unlikeliest, part of the vocabulary counts,
# 4. compare with TSE and with the published values,
# 5. see verb by verb whether likely verbs are inflected better.
#
# About 30 minutes to read, one to run. Read `20_agreement` first.
# Source: Newman, Ang, Gong and Hewitt (2021), *Refining targeted syntactic evaluation of language models*.

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
target_policy = "single_token"  # one piece; of more: "whole_word", ..., with cutoffs [1.0] and [], small limits
mass_arithmetic = "float64"  # "float64" is exact; "float32" sums probabilities as the published code does
verbs = ""  # verb list (CSV: idx,sing,plur,freq); "" = the published one where it is, else ours
verb_limit = 0  # lemmas, drawn with the seed; 0 = all. Of several pieces: 100, limit 10: minutes, not days
metric = "both"  # "EW", "MW" or "both"
cutoffs_top = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0]
cutoffs_bottom = [0.5, 0.1, 0.01, 0.001, 0.0001, 1e-05, 1e-06]
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import charts, metrics, published, results, scoring
from lib.items import agreement_files, capitalises, gaps, origin, read_pairs, read_verbs, verb_list
from lib.latex import agreement_table
from lib.models import Gap, load, only
from lib.paths import DATA
from lib.stats import clustered_means
from lib.store import Store

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# *The keys to the cabinet ___ on the table.* TSE compared *are* with *is*. But many verbs fit here: *lie*, *stay*, *rust*.
# A speaker inflects all of them, likely or not.

# %% [markdown]
# By hand, with five verbs (those of them whose forms are in the vocabulary): the probability of each form at the gap.

# %%
gap = Gap("The keys to the cabinet", "on the table.")
five = pd.DataFrame({"singular": ["is", "has", "looks", "works", "stands"],
                     "plural": ["are", "have", "look", "work", "stand"]})
five = five[five.map(lambda form: len(lm.word(form, "middle").ids) == 1).all(axis=1)]
batch = only(lm.fill([gap], start_token))
by_hand = five.assign(**{
    f"P({number})": batch.log_probabilities[0, [lm.word(form, "middle").id for form in five[number]]].exp()
    for number in ("plural", "singular")
})
by_hand["right form likelier"] = by_hand["P(plural)"] > by_hand["P(singular)"]
by_hand.set_index("plural").drop(columns="singular")

# %% [markdown]
# **EW**, *equally weighted*, gives each verb one vote: the share of verbs whose right form outranks the wrong one. It asks
# whether the model is *systematic*.
#
# **MW**, *model-weighted*, lets the model's own probabilities weigh the verbs: the probability of all right forms, over that
# of all forms. It asks how the model would *likely behave*.

# %%
ew_by_hand = by_hand["right form likelier"].mean()
mw_by_hand = by_hand["P(plural)"].sum() / (by_hand["P(plural)"] + by_hand["P(singular)"]).sum()
Markdown(f"With these five verbs, in this context: EW = {ew_by_hand:.2f}, MW = {mw_by_hand:.2f}.")

# %% [markdown]
# ## Before you go on
#
# Which of the two do you expect to be higher over hundreds of verbs? What would it mean if MW were high and EW low?

# %% [markdown]
# ## The items
#
# The contexts are those of `20_agreement`. Of pairs that share a context, one is enough: the model gives the same
# distribution.

# %%
source = published.find(datasets)
files = agreement_files(source, items)
pairs, sampled = read_pairs(files, limit, sample, seed)
verb_file = verb_list(verbs, source)
listed = read_verbs(verb_file)
lemmas = listed.sample(verb_limit, random_state=seed) if 0 < verb_limit < len(listed) else listed
lemmas.sample(min(5, len(lemmas)), random_state=seed).set_index("plural")[["singular"]]

# %% tags=["hide-input"]
kind = "given items" if items else origin(files["path"], source)
data = {"name": kind, "sample": sampled, "sha256": results.checksums([*files["path"], verb_file])}
Markdown(f"Data: **{kind}**, {len(pairs):,} pairs; sample: {sampled}. "
         f"Verbs: {len(lemmas):,} of {len(listed):,} lemmas in `{verb_file.name}`.")

# %% [markdown]
# A lemma is a verb with its two forms, singular and plural. It can be used when both of its forms can be scored; by the
# policy `single_token`, when both are single pieces of this model's vocabulary. How many that leaves is part of every result
# below.

# %%
forms = [*lemmas["singular"], *lemmas["plural"], *five["singular"], *five["plural"]]
asked = scoring.fill(lm, [], forms, start_token, target_policy, mass_arithmetic=mass_arithmetic)
checked = metrics.usable_verbs(asked, lemmas)
coverage = checked["usable"].mean()
checked["reason"].replace("", "usable").value_counts().rename_axis("verb").rename("lemmas").to_frame()

# %% [markdown]
# ## Scores
#
# For one template: fill each distinct context once, then read off every form of every verb. The steps are the ones of the
# example, so the library must give the same numbers for it.

# %%
example = scoring.fill(lm, [gap], [*five["singular"], *five["plural"]], start_token, cutoffs_top=[1.0])
context = metrics.distinct_contexts(example, [metrics.PLURAL])
five = metrics.usable_verbs(example, five)
of_library = metrics.by_cutoff(example, context, five, [1.0], []).set_index("metric")["score"]
np.testing.assert_allclose([of_library["EW"], of_library["MW"]], [ew_by_hand, mw_by_hand], atol=1e-4)
(metrics.by_verb(example, context, five)
 .set_index("plural")[["rank_right", "cumulative_mass_right", "rank_wrong", "correct"]].round(3))

# %% [markdown]
# The table shows what is kept of each verb in each context: its rank in the vocabulary, and the *cumulative mass*, the
# probability of the form and of all that outranks it. A **top cutoff** of 0.5 counts a verb when either form is within the
# likeliest words that make up half of the probability. A **bottom cutoff** of 0.001 counts only verbs among the least likely
# words that together hold a thousandth.
#
# Some contexts may stand with a plural verb in one pair and a singular one in another: mistakes of the data, counted below as
# *both labels*. As in the published code, the first row decides.

# %%
wanted = metrics.wanted_metrics(metric, cutoffs_top)
usable = checked[checked["usable"]]
verb_forms = [*usable["singular"], *usable["plural"]]


def of_template(group):
    """What is measured on the pairs of one template: the scores of contexts, of pairs, and of verbs."""
    words = [*group["good"], *group["bad"], *verb_forms]
    fills = scoring.fill(lm, gaps(group, capitalises(capitalise, lm), full_stop), words, start_token,
                         target_policy, cutoffs_top, cutoffs_bottom, mass_arithmetic, store)
    contexts = metrics.distinct_contexts(fills, group["label"])
    scores = metrics.by_cutoff(fills, contexts, usable, cutoffs_top, cutoffs_bottom, wanted)
    text = pd.Series([f"{context.left} ___ {context.right}".strip() for context in fills.contexts])
    return {
        "contexts": contexts.assign(text=text[contexts["context"]].to_numpy()),
        "scores": scores,
        "cutoffs": metrics.summarise_cutoffs(scores, seed),
        "pairs": metrics.minimal_pairs(fills, group["good"], group["bad"]),
        "verbs": metrics.by_lemma(metrics.by_verb(fills, contexts, usable)),
    }


# %%
found = {template: of_template(group) for template, group in pairs.groupby("template", sort=False)}
names = ["template", "row"]
contexts, scores, curves, judged, lemma_scores = (
    pd.concat({template: tables[key] for template, tables in found.items()},
              names=names).reset_index("template")
    for key in ("contexts", "scores", "cutoffs", "pairs", "verbs")
)
metrics.check_filled(scores)
choices = asked.choices
contexts.groupby("template", sort=False).agg(
    contexts=("rows", "size"), pairs=("rows", "sum"), both_labels=("both_labels", "sum"))

# %% [markdown]
# ## Result
#
# Score against cutoff. At the right end every verb counts. Towards the left the solid line leaves out more and more unlikely
# verbs (one form inside the cutoff is enough), the dashed one more and more likely ones (both forms must be inside). The level
# line is TSE.

# %%
tse = metrics.summarise_pairs(judged, ["template"])
curves["tse"] = curves["template"].map(tse.set_index("template")["value"])
curves["model"] = model
shown = curves.rename(columns={"template": "condition"})
charts.cutoff_curves(shown)

# %%
whole = curves[(curves["side"] == "top") & (curves["cutoff"] == max(cutoffs_top))]
of_top = scores[scores["side"] == "top"]
mean_of, tightest = (of_top[of_top["cutoff"] == end(cutoffs_top)].groupby("metric")["score"].mean()
                     for end in (max, min))
Markdown(f"Over all contexts, TSE {judged['correct'].mean():.2f}; " + "; ".join(
    f"**{name}** {mean_of[name]:.2f} over the vocabulary, "
    f"{tightest[name]:.2f} within the likeliest {min(cutoffs_top):.0%}"
    for name in wanted) + f". Verbs counted at most: {len(usable):,} of {len(lemmas):,} ({coverage:.0%}).")

# %% [markdown]
# ## How much is counted
#
# A score says nothing about how often such verbs would appear. The *mass counted* is the probability of all counted forms. A
# context in which no verb counts is **invalid**: it has no score and does not enter the mean. Where most contexts are
# invalid, the score describes the few that are left. Mass counted and share invalid are the same for EW and MW. Forms of
# several pieces are only scores to a masked model, so with a policy other than `single_token` read its mass, and MW, as sums
# of scores.

# %%
of_one = shown[shown["metric"] == wanted[0]].drop(columns=["tse", "low", "high"])
charts.cutoff_curves(of_one.assign(value=of_one["mass_counted"]), value_title="mass counted", columns=3)

# %%
charts.cutoff_curves(of_one.assign(value=of_one["share_invalid"]), value_title="share invalid", columns=3)

# %% [markdown]
# ## Beside published values
#
# The paper's table holds EW and MW over the whole vocabulary, and TSE. It was made with a longer list of verbs than the
# one that is public, and with far larger models; compare the order of rows and metrics.

# %%
ours = pd.concat([whole[["template", "metric", "value"]],
                  tse[["template", "metric", "value"]]]).assign(model=model)
newman = pd.read_csv(DATA / "reference" / "newman2021.csv").drop(columns="source")
beside = pd.concat([ours, newman[newman["template"].isin(ours["template"])]], ignore_index=True)
columns = [(name, score) for name in beside["model"].unique() for score in ("MW", "EW", "TSE")]
wide = beside.pivot(index="template", columns=["model", "metric"], values="value").reindex(columns=columns)
wide.reindex(ours["template"].unique()).round(2)

# %% tags=["hide-output"]
print(agreement_table(beside, f"Agreement of {model} and, from Newman et al. (2021), of four larger models."))

# %% [markdown]
# ## Verb by verb
#
# Each point is a verb: how probable the model finds it in these contexts, and in what share of them its right form is the
# more probable one. The paper's claim is that likely verbs are inflected better.

# %%
per_verb = lemma_scores.groupby("verb").apply(
    lambda rows: pd.Series({name: np.average(rows[name], weights=rows["contexts"])
                            for name in ("probability", "share_right")})
).reset_index()
charts.verbs(per_verb)

# %%
ranks = per_verb[["probability", "share_right"]].rank()
correlation = ranks["probability"].corr(ranks["share_right"])
half = per_verb["probability"] > per_verb["probability"].median()
means = per_verb.groupby(half)["share_right"].mean().reindex([True, False])
Markdown(
    f"Rank correlation of probability and share right: **{correlation:.2f}**. "
    f"The likelier half of the verbs is right in {means[True]:.0%} of contexts, "
    f"the other half in {means[False]:.0%}. Exact ties between two forms: {lemma_scores['ties'].sum():,}."
)

# %% [markdown]
# ## A control
#
# Is a high score agreement with the *subject*, or a liking for plural forms? Singular and plural subjects, scored
# separately, show a lean to one side: where one column is far above .5 and the other far below, the score is a habit and not
# a rule.

# %%
at_whole = scores[(scores["side"] == "top") & (scores["cutoff"] == max(cutoffs_top))]
by_number = at_whole.merge(contexts[["template", "context", "label"]], on=["template", "context"])
by_number = by_number.assign(subject=by_number["label"].map({-2: "plural", -1: "singular"}))
lean = by_number.pivot_table(index=["template", "metric"], columns="subject", values="score", sort=False)
lean = lean.reindex(columns=["plural", "singular"])
lean.assign(lean_to_plural=lean["plural"] - lean["singular"]).round(2)

# %% [markdown]
# ## Where it goes wrong
#
# The contexts with the lowest score over the whole vocabulary.

# %%
lowest = (at_whole[at_whole["metric"] == wanted[0]].nsmallest(8, "score")
          .merge(contexts, on=["template", "context"]))
lowest = lowest.assign(subject=lowest["label"].map({-2: "plural", -1: "singular"})).set_index("template")
lowest[["text", "subject", "score", "mass_counted"]].round(3)

# %% [markdown]
# ## What this does not show
#
# * By the policy `single_token`, only verbs whose two forms are single vocabulary items count: that depends on the tokenizer.
# * A list of verbs treats every verb as possible in every context; many would be odd there.
# * Intervals redraw contexts, not verbs.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("21_systematic_or_likely", globals(), lm, store)
summary = curves.drop(columns=["model"]).rename(columns={"template": "condition"}).assign(coverage=coverage)
mean_score = at_whole[at_whole["metric"] == wanted[-1]]
value, low, high = (float(number[0])
                    for number in clustered_means(mean_score[["score"]], mean_score["template"], seed))
rows = at_whole.merge(contexts, on=["template", "context"])
rows = rows.assign(item=rows["template"] + ":" + rows["context"].astype(str), condition=rows["template"],
                   context=rows["text"], scorable=rows["score"].notna(), **choices)
saved = results.write(
    out, notebook="21_systematic_or_likely", title="Systematic, or just likely?", items=rows, summary=summary,
    headline={"metric": wanted[-1], "value": value, "low": low, "high": high,
              "n": len(mean_score), "coverage": coverage},
    data=data, choices=choices, sources=["newman2021", "marvin2018", "warstadt2020"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. EW gives verbs equal votes and asks for a rule; MW weighs them by probability and asks for behaviour.
# 2. Both come from the same distribution at the gap, and the library agrees with the hand.
# 3. Cutoffs show where in the vocabulary the score is made; mass counted and invalid contexts say how much it stands on.
# 4. TSE, which looks at two chosen verbs, can be higher or lower than both.
# 5. The picture by verb shows whether likely verbs are inflected better.

# %% [markdown]
# Next: `90_compare_models` puts every result side by side. Back: [`20_agreement`](20_agreement.ipynb). [Exercises](exercises/21_systematic_or_likely.ipynb); your copy to write in lies in `my_exercises`.
#
# * Newman et al. (2021), *Refining targeted syntactic evaluation of language models*, NAACL.
# * Marvin and Linzen (2018), *Targeted syntactic evaluation of language models*, EMNLP.
# * Warstadt et al. (2020), *BLiMP: the benchmark of linguistic minimal pairs for English*, TACL.

# %% tags=["hide-input"]
results.provenance_table(provenance)
