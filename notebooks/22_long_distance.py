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
# # Far from its subject: does the verb still agree?
#
# Words stand between subject and verb, and in most of these sentences nothing makes sense. Does a model agree all the same?

# %% [markdown]
# By the end you will have measured agreement across a distance, in sentences that somebody might say and in nonsense of the
# same form, while the frequency of the verb forms and a control without the subject show what grammar is not needed for. You will
#
# 1. score one verb in a sentence and in its nonsense variant by hand,
# 2. score every pair with the library,
# 3. compare sense with nonsense, pattern by pattern,
# 4. see what nouns of the other number do in between,
# 5. set the model beside a recorded LSTM and beside plain frequency.
#
# About 20 minutes to read, less than one to run. Read `20_agreement` first. Source: Gulordava et al. (2018), *Colorless green
# recurrent networks dream hierarchically*.

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # bundled, a name in data/models.csv, a hub id, a folder, or a checkpoint
revision = "main"
device = "auto"
dtype = "float32"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
items = ""  # a file of pairs in any format of lib.formats; "" = the published set or our own
limit = 0  # pairs per pattern and kind; 0 = all
seed = 0
mode = "auto"  # "target-word", "masked-target", "whole-sentence"; "auto" = at the target
start_state = "eos"  # recurrent models: "eos", "zero" or "carry"
start_token = "default"  # of causal models: "never" (at a target), "auto" (for sentences), "always"
target_policy = "single_token"  # which verb forms can be scored
masked_method = "within_word_l2r"  # whole sentences, masked models
reduction = "sum"  # whole sentences: "sum" or "mean" over tokens
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import charts, evaluate, metrics, published, results
from lib.items import origin, tell_repeats
from lib.models import Gap, load, only
from lib.paths import DATA
from lib.stats import clustered_means, proportion
from lib.store import Store

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
store = Store(lm.identity)
choices = {"start_token": start_token, "target_policy": target_policy,
           "masked_method": masked_method, "reduction": reduction}

# %% [markdown]
# ## One example
#
# A sentence that somebody might say, and one of the same form that nobody ever said. Which form of the verb is right is clear in
# both. Knowing the world is no help with the second: only the form of the sentence is.

# %%
source = published.find(datasets)
path = evaluate.long_distance_file(items, source)
everything = evaluate.read_long_distance(path)
example = evaluate.example(lm, everything)
example[["kind", "left", "good", "bad", "right"]].set_index("kind")

# %% [markdown]
# By hand: the distribution at the gap, and in it the two forms. A causal or recurrent model has read what stands before the
# gap; a masked model reads both sides.

# %%
def at_gap(row):
    """The model's log-probabilities over its vocabulary at one gap."""
    if start_state == "carry" and lm.family == "recurrent":
        batch = only(lm.at([row.sent], [int(row.len_prefix)]))
    else:
        batch = only(lm.fill([Gap(row.left, row.right)], "never"))
    return batch.log_probabilities[0]

# %%
by_hand = []
for row in example.itertuples():
    distribution = at_gap(row)
    ids = [lm.word(form, "middle").id for form in (row.good, row.bad)]
    by_hand.append([row.good, row.bad, *distribution[ids].tolist(),
                    lm.spelling([int(distribution.argmax())])[0]])
columns = ["right form", "wrong form", "log P(right)", "log P(wrong)", "the model's own word"]
pd.DataFrame(by_hand, columns=columns, index=example["kind"]).round(3)

# %% [markdown]
# ## Before you go on
#
# What do you expect? If a model agrees because it has often met *bridge* with *leads*, what will nonsense do to it? If it
# agrees because it has found the subject, what should nonsense change?

# %% [markdown]
# ## The items
#
# A file in the format of Gulordava et al.: two rows a pair, one sentence, and the place of the verb. Each sensible sentence
# has up to nine nonsense variants, made by putting other words of the same kind and form in its place.

# %%
pairs = evaluate.sampled(everything, limit, seed, ["pattern", "kind"])
assert (pairs["sentence_good"] != pairs["sentence_bad"]).all()
tell_repeats(pairs, ["pattern", "sentence_good", "sentence_bad"])
counts = pairs.groupby(["pattern", "kind"], sort=False).size().unstack().astype("Int64")
counts[sorted(counts, reverse=True)]

# %% tags=["hide-input"]
sampled = ("all" if len(pairs) == len(everything)
           else f"{limit} pairs per pattern and kind, drawn with seed {seed}")
data = {"name": "given items" if items else origin([path], source), "sample": sampled,
        "sha256": results.checksums([path])}
Markdown(f"Data: **{data['name']}**, {len(pairs)} pairs; sample: {sampled}.")

# %%
def around_gap(row):
    """The words near the gap, with both forms in it."""
    left, right = row.left.split(), row.right.split()
    words = (["…"] * (len(left) > 12) + left[-12:] + [f"[{row.good} | {row.bad}]"]
             + right[:8] + ["…"] * (len(right) > 8))
    return " ".join(words)


# %%
pairs["text"] = [around_gap(row) for row in pairs.itertuples()]
shown = pairs.groupby(["pattern", "kind"], sort=False).head(1).head(8)
shown.rename(columns={"text": "sentence [right | wrong]"}).set_index(["kind"])[["sentence [right | wrong]"]]

# %% [markdown]
# ## Scores
#
# The library does the same for every pair. First the two pairs from above, to see that it does: equal to the hand.

# %%
at_target = "auto" if mode == "whole-sentence" else mode
alone = [evaluate.evaluate(lm, example.iloc[[i]], at_target, target_policy=target_policy)
         for i in range(len(example))]
for judged, row in zip(alone, by_hand, strict=True):
    np.testing.assert_allclose(judged[["log_probability_good", "log_probability_bad"]].iloc[0],
                               row[2:4], atol=1e-4)

# %%
scored = evaluate.evaluate(lm, pairs, mode, **choices, store=store)
metrics.check_scored(scored)
reasons = scored.loc[~scored["scorable"], "reason"].value_counts().rename_axis("reason").rename("pairs")
Markdown(f"Mode: **{scored['mode'].iloc[0]}**. {scored['scorable'].sum()} of {len(scored)} pairs can be scored"
         + (f"; the others: {', '.join(f'{n} {reason}' for reason, n in reasons.items())}."
            if len(reasons) else "."))

# %% [markdown]
# ## Result
#
# The share of pairs in which the right form is the more probable one, with its 95 % Wilson interval; a tie is no success.

# %%
in_order = scored.sort_values("kind", ascending=False, kind="stable")
by_kind = evaluate.summary(in_order, ["kind"])
by_pattern = evaluate.summary(in_order, ["pattern", "kind"])
by_kind.set_index("kind").drop(columns="metric").round(3)

# %%
charts.intervals(by_pattern.assign(condition=by_pattern["pattern"], metric=by_pattern["kind"]),
                 value_title="accuracy")

# %% [markdown]
# Sense against nonsense, fairly: each sentence against its own variants, so that a hard sentence is hard on both sides. The
# interval redraws whole sentences, because variants of one sentence are not independent.

# %%
means = scored.groupby(["sentence", "kind"])["correct"].mean().unstack()
both = means.reindex(columns=["sense", "nonsense"]).dropna()
[gain], [low], [high] = clustered_means((both["sense"] - both["nonsense"]).to_numpy()[:, None], seed=seed)
Markdown(f"In {len(both)} sentences with variants, "
         f"sense is better than nonsense by **{gain:.2f}** [{low:.2f}, {high:.2f}]."
         if len(both) else "These items have no sensible sentences with nonsense variants to compare.")

# %% [markdown]
# ## Attractors
#
# A noun (or verb) of the other number between subject and verb is an **attractor**. A model that listens to the nearest noun
# falls for it.

# %%
marked = {"n_attr", "correct_number"} <= set(scored)
if marked:
    number = in_order["correct_number"].map({"sing": "singular", "plur": "plural"})
    attracted = in_order.assign(attractor=in_order["n_attr"], number=number)
    attracted = attracted.sort_values(["kind", "attractor"], ascending=[False, True])
    by_attractor = evaluate.summary(attracted, ["kind", "attractor", "number"])
    chart = charts.by_number_and_attractor(by_attractor.assign(condition=by_attractor["kind"]),
                                           value_title="accuracy")
chart if marked else Markdown("These items name no attractors.")

# %%
told = attracted.groupby("attractor")["correct"].agg(["mean", "count"]) if marked else pd.DataFrame()
Markdown("Accuracy by number of attractors: "
         + ", ".join(f"{row.Index}: **{row.mean:.2f}** ({row.count} pairs)" for row in told.itertuples()) + ".")

# %% [markdown]
# ## Beside frequency
#
# Always take the verb form that is more frequent: no grammar at all. Where this does well, accuracy proves little.

# %%
as_read = in_order[pairs.columns]
beside = [by_kind.assign(who=model)]
if "freq" in pairs:
    beside.append(evaluate.summary(evaluate.recorded(as_read, "freq"), ["kind"])
                  .assign(who="more frequent form"))
(pd.concat(beside).set_index(["who", "kind"])
 [["n", "scored", "value", "low", "high", "ties", "coverage"]].round(3))

# %% [markdown]
# ## Beside published values
#
# Gulordava et al. published what their best LSTM said of each form, and how frequent each form is. Read with the same measures,
# from the published file where it is present, else as counted from it before. On our own items the values are of other
# sentences: compare the distance between sense and nonsense, not the numbers.

# %%
lstm = "hidden650_batch128_dropout0.2_lr20.0"
if lstm in pairs:
    recorded = evaluate.summary(evaluate.recorded(as_read, lstm), ["kind"]).assign(who="best LSTM, recorded")
else:
    facts = (pd.read_csv(DATA / "reference" / "gulordava2018.csv")
             .query("pattern == 'all' and attractors == 'all'"))
    facts["kind"] = facts["type"].map({"original": "sense", "generated": "nonsense"})
    intervals = [proportion(row.right, row.pairs) for row in facts.itertuples()]
    recorded = pd.DataFrame({"who": facts["model"] + ", published", "kind": facts["kind"], "n": facts["pairs"],
                             "value": [i.value for i in intervals], "low": [i.low for i in intervals],
                             "high": [i.high for i in intervals]})
together = pd.concat([*beside, recorded])
charts.intervals(together.assign(condition=together["kind"], metric=together["who"]), value_title="accuracy")

# %% [markdown]
# ## How a sentence starts
#
# A recurrent model reads a sentence from a state, and which one is a choice: after the end of a sentence (`eos`), from nothing
# (`zero`), or from wherever the sentence before left it (`carry`, as published). Only under `carry` does the order of the file matter.

# %%
started = [by_kind.assign(start_state=start_state)]
others = {"eos", "zero"} | ({"carry"} if mode != "whole-sentence" else set())
for state in sorted(others - {start_state}) if lm.family == "recurrent" else ():
    other = load(model, revision=revision, device=device, dtype=dtype, start_state=state)
    started.append(evaluate.summary(evaluate.evaluate(other, pairs, mode, **choices), ["kind"])
                   .assign(start_state=state))
of_states = pd.concat(started).pivot(index="start_state", columns="kind", values="value").round(3)
(of_states if lm.family == "recurrent"
 else Markdown(f"This model is {lm.family}: it has no state to start from."))

# %% [markdown]
# ## A control
#
# Take the subject away: only the last word before the verb is left. What a model still gets right it owes to that word, or to a
# habit of preferring some forms.

# %%
last = pairs["left"].str.split().str[-1].fillna("")
blind = pairs.drop(columns="sent", errors="ignore").assign(left=last)
for which in ("good", "bad"):
    blind[f"sentence_{which}"] = (last + " " + pairs[which] + " " + pairs["right"]).str.strip()
control = evaluate.summary(evaluate.evaluate(lm, blind, mode, **choices, store=store), ["kind"])
control = control.sort_values("kind", ascending=False)
shown = pd.concat([by_kind.assign(metric="whole sentence"), control.assign(metric="without the subject")])
charts.intervals(shown.assign(condition=shown["kind"]), value_title="accuracy")

# %%
Markdown("Without the subject: " + ", ".join(
    f"{row.kind} {row.value:.2f} in place of {by_kind.set_index('kind').loc[row.kind, 'value']:.2f}"
    for row in control.itertuples()) + ".")

# %% [markdown]
# ## Where it goes wrong
#
# The pairs with the largest margins on the wrong side, and what the model itself would have said there.

# %%
worst = scored[scored["correct"] == 0].nsmallest(8, "margin")
worst = (worst.rename(columns={"text": "sentence [right | wrong]", "prediction": "the model's own"})
         .set_index("kind"))
worst[[column for column in ("sentence [right | wrong]", "margin", "the model's own")
       if column in worst]].round(2)

# %% [markdown]
# ## What this does not show
#
# * Nonsense is also less expected word by word; a lower score there is not all about agreement.
# * Variants share the function words of their sentence: fewer independent items than rows.
# * With some forty or fifty sensible sentences, their interval is wide.
# * Text is given as the file has it, with spaces before punctuation, which suits word-level models best.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("22_long_distance", globals(), lm, store)
overall = evaluate.summary(scored.assign(all="all"), ["all"]).iloc[0]
rows = scored.assign(
    condition=scored["kind"], context=scored["left"], candidate=scored["good"], alternative=scored["bad"],
    log_probability=scored["log_probability_good"],
)
used = {name: scored[name].iloc[0] for name in ("mode", "start_state", *choices, "dtype") if name in scored}
tables = [by_kind.assign(condition=by_kind["kind"]),
          by_pattern.assign(condition=by_pattern["pattern"] + ", " + by_pattern["kind"])]
saved = results.write(
    out, notebook="22_long_distance", title="Far from its subject: does the verb still agree?", items=rows,
    summary=pd.concat(tables),
    headline={"metric": "accuracy", **overall[["value", "low", "high", "n", "coverage"]]},
    data=data, choices=used, sources=["gulordava2018", "linzen2016"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. Agreement can be asked of sentences that mean nothing, by hand as by library.
# 2. The library reads the published format as it is, puts each form in its place, and counts what it cannot score.
# 3. Each sentence against its own variants says what sense adds.
# 4. Attractors show what the model listens to.
# 5. Frequency alone sets the level that a model has to beat.

# %% [markdown]
# In the shell: `python -m lib.evaluate --data FILE --model NAME`. Back: [`20_agreement`](20_agreement.ipynb), [`00_start_here`](00_start_here.ipynb). [Exercises](exercises/22_long_distance.ipynb); your copy to write in lies in `my_exercises`.
#
# * Gulordava, Bojanowski, Grave, Linzen and Baroni (2018), *Colorless green recurrent networks dream hierarchically*, NAACL.
# * Linzen, Dupoux and Goldberg (2016), *Assessing the ability of LSTMs to learn syntax-sensitive dependencies*, TACL.

# %% tags=["hide-input"]
results.provenance_table(provenance)
