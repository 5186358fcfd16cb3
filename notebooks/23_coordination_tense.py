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
# # Coordination and tense: one word or the whole sentence?
#
# A sentence can be judged at one word, or as a whole. When do the two disagree, and over which sentences?

# %% [markdown]
# By the end you will have judged the same pairs in both ways, and found where in the sentence the evidence lies, while a control
# takes that evidence away. You will
#
# 1. judge one pair by hand, at its verb and as a sentence, with the evidence before the verb and after it,
# 2. make pairs from a lexicon: coordinated subjects, and tenses with an adverb of time,
# 3. compare the two judgements, pattern by pattern,
# 4. take a margin apart: before the verb, at it, after it,
# 5. read the pairs over which they disagree.
#
# About 20 minutes to read, one to run. Read `20_agreement` first. Sources: Marvin and Linzen (2018) judge whole sentences,
# Gulordava et al. (2018) the target word.

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # bundled, a name in data/models.csv, a hub id, a folder or a checkpoint
revision = "main"
device = "auto"
dtype = "float32"
start_state = "eos"  # of recurrent models: "eos" or "zero"
items = []  # files of pairs in any of the three formats; [] = our own, made from templates
limit = 6  # pairs per pattern, the same choices of words in all; 0 = all
seed = 0
start_token = "auto"  # of causal models, for both judgements: "never", "auto", "always"
masked_method = "within_word_l2r"  # of masked models, for sentences: or "original"
reduction = "sum"  # of a sentence's log-probabilities: or "mean"
target_policy = "single_token"  # which forms can be scored at the target
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import charts, evaluate, formats, metrics, results
from lib.items import tell_repeats
from lib.models import Gap, load, only
from lib.paths import DATA
from lib.store import Store
from lib.templates import coordination_tense
from lib.templates.lexicon import read_lexicon

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# *Yesterday the doctor ___ not work.* A speaker says **did**, not *will*. In *The doctor ___ not work yesterday* it must be **did** too, but
# whoever reads from left to right cannot know that yet at the gap.

# %%
example = pd.DataFrame(
    [("adverb first", "Yesterday the doctor", "not work."),
     ("adverb last", "The doctor", "not work yesterday.")],
    columns=["pattern", "left", "right"],
).assign(good="did", bad="will", item=["first", "last"], line=[1, 2])
for form in ("good", "bad"):
    example[f"sentence_{form}"] = example["left"] + " " + example[form] + " " + example["right"]
example[["pattern", "sentence_good", "sentence_bad"]].set_index("pattern")

# %% [markdown]
# By hand. At the **target**: the log-probability of *did* minus that of *will*, at the gap. As **sentences**: the sum of all words'
# log-probabilities, right sentence minus wrong one. Over zero means right. The start token is the same in both, so that they differ in one thing only.

# %%
by_hand = []
words = [lm.word(form, "middle") for form in ("did", "will")]
for row in example.itertuples():
    batch = only(lm.fill([Gap(row.left, row.right)], start_token))
    did, will = (batch.log_probabilities[0, word.id].item() if len(word.ids) == 1 else np.nan
                 for word in words)
    method = {"method": masked_method} if lm.family == "masked" else {}
    good, bad = lm.score([row.sentence_good, row.sentence_bad], start_token, **method)
    sums = [pd.Series(found.log_probabilities).sum(min_count=1) for found in (good, bad)]
    by_hand.append((did - will, sums[0] - sums[1]))
pd.DataFrame(by_hand, columns=["at the target", "whole sentence"], index=example["pattern"]).round(2)

# %% [markdown]
# Word by word, for the sentence with the adverb last: each word's log-probability in the right sentence minus that in the wrong one.
# The column adds up to the margin of the whole sentence.

# %%
words = evaluate.by_word(lm, example, start_token, masked_method, store)
last = words[words["item"] == "last"].pivot(index="position", columns="which", values="log_probability")
last = last.reindex(columns=["good", "bad"])
last = last.assign(difference=last["good"] - last["bad"], word=example["sentence_good"].iloc[1].split())
last.set_index("word").rename_axis(columns=None).round(2)

# %% [markdown]
# ## Before you go on
#
# A masked model reads both sides of the gap. Should its two judgements differ at all? And for a model that reads from left to right: in
# which patterns can the target not be enough?

# %% [markdown]
# ## The items
#
# Templates filled from a lexicon that you can edit; here is one choice of words for each. **Coordination**: joined by *and*, two singular nouns are a
# plural subject; in the long patterns a clause follows each noun. **Tense**: what is right beside one adverb is wrong beside the other, and the
# adverb stands first (as here) or last. In the `will` patterns more than one word differs, so there is no single target.

# %%
lexicon = read_lexicon(DATA / "lexicon")
patterns = {kind: len(coordination_tense.MAKERS[kind][1]) for kind in ("coordination", "tense")}
made = [coordination_tense.sentence_pairs(lexicon, kind, number, seed) for kind, number in patterns.items()]
made = pd.DataFrame([*made[0], *made[1]])
made[made["pattern"].str.endswith(("_singular", "_first"))].set_index("pattern")

# %% [markdown]
# The files hold forty choices of words each. `limit` draws some, the same in every pattern, so that patterns never differ in their words.

# %%
files = ([Path(path) for path in items]
         or [DATA / "items" / kind / f"{kind}.tab" for kind in ("coordination", "tense")])
every = pd.concat([formats.read(path) for path in files], ignore_index=True)
every["item"] = every["file"] + ":" + every["item"]
pairs = evaluate.sampled(every, limit, seed).reset_index(drop=True)
parts = pairs["pattern"].str.split("_")
kinds = [pairs["pattern"].isin(coordination_tense.MAKERS[kind][1]) for kind in ("coordination", "tense")]
pairs["group"] = np.select(kinds, ["coordination, " + parts.str[0], "tense, adverb " + parts.str[-1]],
                           pairs["pattern"])
assert (pairs["sentence_good"] != pairs["sentence_bad"]).all()
tell_repeats(pairs, ["pattern", "sentence_good", "sentence_bad"])
counts = pairs.assign(differ_in_one_word=pairs["good"] != "").groupby("group", sort=False)["differ_in_one_word"]
counts.agg(pairs="size", differ_in_one_word="sum")

# %% tags=["hide-input"]
sample = f"{limit} pairs per pattern, drawn with seed {seed}" if len(pairs) < len(every) else "all"
data = {"name": "given items" if items else "our own items", "sample": sample,
        "sha256": results.checksums(files)}
Markdown(f"Data: **{data['name']}**, {len(pairs):,} pairs of {pairs['pattern'].nunique()} patterns; "
         f"sample: {sample}.")

# %% [markdown]
# ## Scores
#
# Both judgements on every pair; the example's are equal to the hand's. Below: what cannot be judged, and why. At the target these are
# pairs that differ in several words, and forms that are not one item of the vocabulary.

# %%
at_target = "masked-target" if lm.family == "masked" else "target-word"
options = {"start_token": start_token, "masked_method": masked_method, "reduction": reduction, "store": store}
whole = evaluate.evaluate(lm, pairs, "whole-sentence", **options)
target = evaluate.evaluate(lm, pairs, at_target, start_token, target_policy, store=store)
again = evaluate.evaluate(lm, example, "whole-sentence", **options | {"reduction": "sum"})["margin"]
at_gap = evaluate.evaluate(lm, example, at_target, start_token, store=store)["margin"]
np.testing.assert_allclose(np.column_stack([at_gap, again]), by_hand, atol=1e-3)

# %%
judged = pd.concat({"at the target": target, "whole sentence": whole}, names=["judged"]).reset_index("judged")
metrics.check_scored(judged)
reasons = judged.assign(reason=judged["reason"].replace("", "scored"))
reasons.groupby(["judged", "reason"], sort=False).size().rename("pairs").to_frame()

# %% [markdown]
# ## Result
#
# The share of pairs in which the right form, or the right sentence, is more probable, with its 95 % interval. Chance is half.
# Then by pattern: in coordination the names say the number of the first and of the second noun; in tense what is compared, which tense is
# right, and where the adverb stands.

# %%
summary = evaluate.summary(judged, ["group", "judged"]).rename(columns={"group": "condition"})
summary["metric"] = summary["judged"]
charts.intervals(summary[summary["scored"] > 0], value_title="share right")

# %%
by_pattern = evaluate.summary(judged, ["pattern", "judged"])
shown = (by_pattern.pivot(index="pattern", columns="judged", values="value")
         .reindex(pairs["pattern"].unique()).round(2))
shown.astype(object).where(shown.notna(), "n/a")

# %% [markdown]
# ## When do they disagree?
#
# Each point is a pair: to the right the target is right, to the top the whole sentence. In the upper left quarter the sentence is right and the word wrong.

# %%
both = pairs[["item", "pattern", "group", "sentence_good", "good", "bad", "sentence_bad"]].assign(
    x=target["margin"].where(target["scorable"]), y=whole["margin"].where(whole["scorable"])
)
charts.two_margins(both.rename(columns={"group": "condition", "sentence_good": "sentence"}))

# %%
compared = both.dropna(subset=["x", "y"])
word, sentence = compared["x"] > 0, compared["y"] > 0
verdicts = ["both right", "only the target", "only the sentence", "both wrong"]
verdict = np.select([word & sentence, word, sentence], verdicts[:3], verdicts[3])
table = pd.crosstab(compared["group"], verdict).reindex(columns=verdicts, fill_value=0)
table.rename_axis(columns=None).reindex(compared["group"].unique())

# %%
different = (table[verdicts[1:3]].sum(axis=1) / table.sum(axis=1)).sort_values()
Markdown(f"They disagree over **{(word != sentence).sum()} of {len(compared)}** pairs that both can judge: "
         + ", ".join(f"{share:.0%} in *{group}*" for group, share in different.items()) + ".")

# %% [markdown]
# ## Where the evidence lies
#
# The margin of a sentence is a sum over its words. Split at the target: what comes before it, the target itself, and what comes after. A model
# that reads from left to right gives nothing before the target (both sentences are the same there), and after it whatever the right context says of the choice.
# A masked model is asked about each word with all others around it, so the words before the target judge it too.

# %%
one_word = pairs[pairs["good"] != ""]
words = evaluate.by_word(lm, one_word, start_token, masked_method, store)
before = one_word.set_index("item")["left"].str.split().str.len()
distance = words["position"] - before[words["item"]].to_numpy()
places = ["before the target", "at the target", "after the target"]
place = np.sign(distance).map(dict(zip((-1, 0, 1), places, strict=True)))
signed = words["log_probability"] * np.where(words["which"] == "good", 1, -1)
sums = signed.groupby([words["item"], place]).sum().unstack()
of_group = sums.groupby(one_word.set_index("item")["group"]).mean()
of_group.reindex(index=one_word["group"].unique(), columns=places).round(2) + 0.0

# %% [markdown]
# ## How long a sentence is
#
# Where the sentences of a pair differ in length (*ran, will run*), a sum charges for every word. The mean over words does not, and has a price of its own: long
# sentences of cheap words look good. Which of the two is used is a choice, and here it can be seen.

# %%
uneven = pairs[pairs["good"] == ""].reset_index(drop=True)
lengths = {}
for name in ("sum", "mean") if len(uneven) else ():
    of_name = evaluate.evaluate(lm, uneven, "whole-sentence", **options | {"reduction": name})
    lengths[name] = evaluate.summary(of_name).set_index("pattern")["value"]
pd.DataFrame(lengths).round(2) if lengths else Markdown("All pairs here differ in one word.")

# %% [markdown]
# ## Beside published values
#
# These pairs are new, so no published number belongs to them. For scale: what larger models were reported to do where two *verbs* are
# coordinated (*is angry and likes music*), judged at the target.

# %%
newman = pd.read_csv(DATA / "reference" / "newman2021.csv")
nearest = newman[(newman["metric"] == "TSE") & newman["template"].isin(["Simple", "VP coordination"])]
nearest.pivot(index="template", columns="model", values="value").rename_axis(columns=None)

# %% [markdown]
# ## A control
#
# Take away what decides: the first noun phrase (*the queen sing*), or the adverb. How often is the same form still preferred? Near the full
# sentence's mark, the model would have said so anyway. A tense and its mirror then are the same pair, so their two shares add up to one.

# %%
bare = coordination_tense.without_evidence(pairs, lexicon)
without = evaluate.evaluate(lm, bare, "whole-sentence", **options) if len(bare) else whole.head(0)
same = whole[whole["item"].isin(bare["item"])]
compared_with = {"with the evidence": same, "without": without}
control = pd.concat([evaluate.summary(table).assign(metric=name) for name, table in compared_with.items()])
control = control.rename(columns={"pattern": "condition"})
(charts.intervals(control, value_title="share for the form that is right in full")
 if len(bare) else Markdown("Not for these items."))

# %%
full, left = same["correct"].mean(), without["correct"].mean()
Markdown(f"Over these patterns the right sentence is preferred in **{full:.0%}** of the pairs, "
         f"and in {left:.0%} without the evidence: "
         f"a difference of {full - left:.2f} that the evidence makes."
         if len(bare) else "No evidence to take away.")

# %% [markdown]
# ## Where it goes wrong
#
# The pairs over which the two judgements differ most, as sentences: first those where only the sentence is right, then those where only the target is.

# %%
disagree = compared.assign(verdict=verdict, apart=(compared["x"] - compared["y"]).abs())
disagree = (disagree[word != sentence].sort_values(["verdict", "apart"], ascending=[True, False])
            .groupby("verdict").head(6))
disagree = disagree.rename(columns={"x": "at the target", "y": "whole sentence"}).set_index("verdict")
disagree[["sentence_good", "good", "bad", "at the target", "whole sentence"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * The two judgements answer different questions: what comes next, and which sentence is likelier. Neither is the right one for all purposes.
# * A choice of words stands in every pattern: rows are not independent, and intervals are narrower than they should be.
# * A masked model's whole-sentence score is no probability of the sentence, but a sum of one word's given all the others.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("23_coordination_tense", globals(), lm, store)
overall = evaluate.summary(whole.assign(all="all"), ["all"]).iloc[0]
more_probable = {"at the target": "the right form is more probable",
                 "whole sentence": "the right sentence is more probable"}
rows = judged.assign(condition=judged["pattern"], context=judged["left"], candidate=judged["good"],
                     judgement=judged["judged"].map(more_probable))
names = ("start_token", "start_state", "masked_method", "reduction", "dtype")
choices = {name: whole[name].iloc[0] for name in names} | {"target_policy": target_policy}
saved = results.write(
    out, notebook="23_coordination_tense", title="Coordination and tense: one word or the whole sentence?",
    items=rows, summary=pd.concat([summary, control]),
    headline={"metric": "whole sentence", **overall[["value", "low", "high", "n", "coverage"]]},
    data=data, choices=choices, sources=["gulordava2018", "marvin2018"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. The same pair has a margin at its target and a margin as a whole.
# 2. Templates make pairs in which the words stay the same and the evidence moves.
# 3. A target judges what stands before it; a sentence also what comes after.
# 4. The margin of a sentence can be taken apart, word by word.
# 5. Pairs over which two judgements disagree say what each of them measures.

# %% [markdown]
# Next: [`24_blimp`](24_blimp.ipynb). Back: [`22_long_distance`](22_long_distance.ipynb). [Exercises](exercises/23_coordination_tense.ipynb); your copy to write in lies in `my_exercises`.
#
# * Gulordava, Bojanowski, Grave, Linzen and Baroni (2018), *Colorless green recurrent networks dream hierarchically*, NAACL.
# * Marvin and Linzen (2018), *Targeted syntactic evaluation of language models*, EMNLP.
# * Kauf and Ivanova (2023), *A better way to do masked language model scoring*, ACL.

# %% tags=["hide-input"]
results.provenance_table(provenance)
