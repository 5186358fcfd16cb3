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
# # Inference: does the model put two and two together?
#
# When the clue to a word stands in the sentence before, does the model use it?

# %% [markdown]
# By the end you will have measured whether a model prefers the word that a reader would infer, while a control, the same
# sentence with the clue shuffled or cut away, shows where the preference comes from. You will
#
# 1. compare three completions of one item by hand,
# 2. ask about all items,
# 3. measure accuracy and sensitivity, for strongly and weakly constraining contexts,
# 4. look for the pattern of the human N400,
# 5. shuffle and truncate contexts, and see which predictions survive.
#
# About 25 minutes to read, about three to run, for the shuffles (`draws`). Read `00_start_here` first. Source:
# Ettinger (2020), *What BERT is not*, with items made after Federmeier and Kutas (1999).

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # bundled, in data/models.csv, hub id, folder, or folder of recorded scores
revision = "main"
device = "auto"
dtype = "float32"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
draws = 30  # how often sentence 1 is shuffled: about 3 minutes with the default model; 100 for a study, about 6
seed = 0
full_stop = True  # a full stop behind the gap, for models that see it
start_token = "never"  # of causal models: "never" (as published), "auto", "always"
start_state = "eos"  # of recurrent models: "eos" or "zero"
target_policy = "single_token"  # which words can be scored
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import charts, perturb, published, results
from lib.cloze import metrics, recorded
from lib.cloze.answers import ask, kept, top_predictions
from lib.cloze.items import gaps, item_file, read_explanations, read_inference
from lib.items import origin
from lib.models import load, only
from lib.paths import DATA
from lib.store import Store

charts.use_theme()
known = recorded.found(model)
lm = (recorded.read(model) if known
      else load(model, revision=revision, device=device, dtype=dtype, start_state=start_state))
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# An item has two sentences. The second ends before its last word; the clue to that word is in the first. Three words are
# compared: the **expected** one; one of the same category, **within**; one of another category, **between**.

# %%
source = published.find(datasets)
path = item_file("inference", source)
items = read_inference(path)
example = items[items["item"] == items["item"].iloc[0]]
Markdown(f"> {example['context'].iloc[0]} ___\n\nA reader expects **{example['candidate'].iloc[0]}**.")

# %% [markdown]
# By hand: the probability of each of the three at the gap.

# %%
batch = only(lm.fill(gaps(example.head(1), full_stop), start_token))
words = {role: lm.word(word, "middle")
         for role, word in zip(example["role"], example["candidate"], strict=True)}
by_hand = pd.Series({
    role: batch.log_probabilities[0, word.id].exp().item() if len(word.ids) == 1 else np.nan
    for role, word in words.items()
}, name="probability")
by_hand.to_frame().assign(word=list(example["candidate"])).round(5)

# %% [markdown]
# ## Before you go on
#
# People's brains respond less strongly (a smaller **N400**) to the expected word, and to an unexpected word of the *same*
# category less than to one of another category, above all in strongly constraining contexts. What would you expect of a model
# that only knows which words go together?

# %% [markdown]
# ## The items
#
# H stands for a strongly constraining context (people agree on the word), L for a weakly constraining one.

# %%
data = {"name": origin([path], source),
        "sample": "all", "sha256": results.checksums([path])}
assert (items.groupby("item")["role"].nunique() == 3).all()
counts = items.drop_duplicates("item")["constraint"].value_counts().rename_axis("constraint").to_frame("items")
counts

# %% [markdown]
# ## Scores
#
# Every context once, every candidate looked up; the library must agree with the hand. Words of several pieces cannot be scored
# under this policy: they are left out of numerator and denominator, and counted.

# %%
answers, choices = ask(lm, items, start_token, target_policy, full_stop, store)
np.testing.assert_allclose(answers["probability"].head(3), by_hand, rtol=1e-3)
Markdown(metrics.unscored(answers))

# %% [markdown]
# ## Result
#
# Mean probability of the three kinds of word, on a logarithmic axis. A model that infers has *expected* far to the right, more so
# for H; a model that knows categories has *within* to the right of *between*.

# %%
means = metrics.mean_probabilities(answers, ["role", "constraint"], seed)
charts.means(means.rename(columns={"role": "condition"}), "constraint")

# %% [markdown]
# **Sensitivity**: the expected word is more probable than both others; and by at least .01. **Accuracy@k**: it is among the
# likeliest k words.

# %%
compared = metrics.compare(answers, ["item"], "role", "expected", ["within", "between"])
everything = [metrics.sensitivity(compared), metrics.sensitivity(compared, ["constraint"]),
              metrics.accuracy(answers, (1, 5)), metrics.accuracy(answers, (1, 5), ["constraint"])]
summary = pd.concat(everything).fillna({"constraint": "all"}).rename(columns={"constraint": "condition"})
metrics.for_reading(summary, ["metric", "condition"])

# %%
main = metrics.sensitivity(compared).iloc[0]
Markdown(f"The expected word wins in **{main['value']:.0%}** of {main['scored']:.0f} scored items "
         f"[{main['low']:.2f}, {main['high']:.2f}]; {main['n'] - main['scored']:.0f} of {main['n']:.0f} "
         f"could not be scored ({main['reasons'] or 'none'}).")

# %%
charts.intervals(summary[summary["metric"] == "sensitivity"].drop(columns="metric"),
                 value_title="sensitivity", chance=1 / 3)

# %% [markdown]
# The **N400 pattern**: how often is the word of the same category more probable, by .01, than that of another?

# %%
pattern = metrics.compare(answers, ["item"], "role", "within", ["between"])
n400 = metrics.shares(pattern, "higher_by_threshold", "N400 pattern", ["constraint"])
n400 = n400.rename(columns={"constraint": "condition"})
metrics.for_reading(n400, ["metric", "condition"])

# %% [markdown]
# ## The likeliest words
#
# What the model would say itself, with what has to be inferred.

# %%
tops = top_predictions(answers, 5)
said = (tops["piece"] + tops["probability"].map(" {:.3f}".format)).groupby(tops["context"]).agg(" · ".join)
explained = read_explanations(item_file("explanations", source), items.drop_duplicates("item"))
explained = (explained.assign(says=said.reindex(explained["context"]).to_numpy())
             .rename(columns={"candidate": "expected word"}))
explained.set_index("expected word")[["context", "says", "explanation"]]

# %% [markdown]
# ## Beside published values
#
# From the paper, for BERT, and what people do. Intervals over so few items are wide: two models of which one is better by a
# tenth cannot be told apart.

# %%
ettinger = pd.read_csv(DATA / "reference" / "ettinger2020.csv", keep_default_na=False)
ettinger[ettinger["diagnostic"] == "CPRAG-102"].set_index("measure")[["model", "value"]]

# %% [markdown]
# ## A control
#
# Shuffle the words of the first sentence, many times; cut the second down to its last two words; do both. If sensitivity stays,
# it did not rest on the sense of the sentences but on words that stood in them.

# %%
shuffled = perturb.shuffle_first(items, draws, seed)
changed = {"shuffled": shuffled, "truncated": perturb.truncate_second(items),
           "both": perturb.truncate_second(shuffled)}
Markdown("\n\n".join(f"> **{name}** {table['context'].iloc[0]} ___" for name, table in changed.items()))

# %%
of_changed = {name: ask(lm, table, start_token, target_policy, full_stop, store)[0]
              for name, table in changed.items()}
over = pd.concat([metrics.over_draws(table, (1, 5)).assign(condition=name)
                  for name, table in of_changed.items()])
over = pd.concat([summary[summary["condition"] == "all"].assign(condition="whole text"), over])
over = over.sort_values("metric", kind="stable")
metrics.for_reading(over, ["metric", "condition"], ["draws", "sd"])

# %% [markdown]
# *value* is the mean over the draws, its interval that of as many trials as there are items; *sd* says how far the draws differ.
# All drawn sentences are stored with the results, the least and the most of the draws with the summary.

# %%
charts.intervals(over[over["metric"] == "sensitivity"].drop(columns="metric"),
                 value_title="sensitivity", chance=1 / 3)

# %% [markdown]
# Which expected words survive shuffling, and why? In the paper, those with a distinctive word in the first sentence. *Survives*: the
# share of shuffles in which the expected word is among the likeliest five. *Carried by*: the word of the first sentence whose loss,
# with all others in place, costs the expected word most (*loss*, in nats).

# %%
survival = metrics.survival(answers, of_changed["shuffled"])
survivors = survival.sort_values(["survives", "mean_place"], ascending=[False, True], kind="stable").head(6)
left_out = perturb.leave_out_each(items[items["item"].isin(survivors["item"])])
of_changed["one word left out"], _ = ask(lm, left_out, start_token, target_policy, full_stop, store)
carried = survivors.merge(metrics.carrying_words(answers, of_changed["one word left out"]),
                          on="item", how="left")
carried = carried.assign(expected=carried["expected"].map(" | ".join)).set_index("expected")
carried[["context", "survives", "mean_place", "carried_by", "loss"]].round(2)

# %%
likely = survival[survival["before"] == 1]
Markdown(f"In the whole text {len(likely)} of {len(survival)} expected words are among the likeliest five; "
         f"{(likely['survives'] >= 0.5).sum()} of these are so in at least half of the {draws} shuffles.")

# %% [markdown]
# ## Where it goes wrong
#
# The items in which another word wins by most.

# %%
worst = compared[compared["higher"] == 0].nsmallest(6, "margin").round({"margin": 4})
words = {f"candidate_{role}": role for role in ("expected", "within", "between")}
(worst.drop(columns=["expected"]).rename(columns=words)
 .set_index("expected")[["context", "within", "between", "margin"]])

# %% [markdown]
# ## What this does not show
#
# * A third of all items would be right by chance.
# * Words differ in frequency; a rare expected word has a hard time for reasons that have nothing to do with inference.
# * For our own items nobody was asked; H and L are the writer's judgement.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("30_inference", globals(), lm, store)
means = means.assign(condition=means["role"] + ", " + means["constraint"])
everything = pd.concat([summary, n400, means, over[over["condition"] != "whole text"]])
judged = compared.assign(judgement="the expected word is more probable than both others",
                         alternative=compared["candidate_within"] + " | " + compared["candidate_between"])
rows = metrics.with_judgement(kept(answers, of_changed), judged, ["item"], ("role", "expected"))
saved = results.write(
    out, notebook="30_inference", title="Inference: does the model put two and two together?",
    items=rows.assign(**choices), summary=everything.drop(columns=["role", "constraint"]),
    headline={"metric": "sensitivity", **main[["value", "low", "high", "n", "coverage"]]},
    data=data, choices=choices, sources=["ettinger2020"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. Three probabilities at one gap make an item.
# 2. The library asks each context once; what cannot be scored is counted.
# 3. Accuracy asks what the model would say, sensitivity what it prefers among three.
# 4. The N400 pattern asks for categories, not for inference.
# 5. What survives shuffling did not need the sentence, but a word of it.

# %% [markdown]
# Next: [`31_roles`](31_roles.ipynb). Back: [`00_start_here`](00_start_here.ipynb). [Exercises](exercises/30_inference.ipynb); your copy to write in lies in `my_exercises`.
#
# * Ettinger (2020), *What BERT is not: lessons from a new suite of psycholinguistic diagnostics for language models*, TACL.
# * Federmeier and Kutas (1999), *A rose by any other name*, Journal of Memory and Language.

# %% tags=["hide-input"]
results.provenance_table(provenance)
