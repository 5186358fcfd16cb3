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
# # Negation: does *not* change anything?
#
# *A robin is a bird. A robin is not a ___.* Does the model mind the *not*?

# %% [markdown]
# By the end you will have seen, in one picture, whether a model's predictions follow the meaning of a sentence or only its
# words, while a control shows what it would do with the words alone. You will
#
# 1. compare two completions of one sentence and of its negation by hand,
# 2. ask about all items, simple and natural,
# 3. measure accuracy in affirmative sentences, and sensitivity in both,
# 4. see which words the model would say with and without the negation,
# 5. ask what so few items can and cannot tell.
#
# About 20 minutes to read, one to run. Read `00_start_here` first. Source: Ettinger (2020), *What BERT is not*, who took the
# simple items from Fischler et al. (1983) and the natural ones from Nieuwland and Kuperberg (2008).

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # bundled, in data/models.csv, hub id, folder, or folder of recorded scores
revision = "main"
device = "auto"
dtype = "float32"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
limit = 200  # pairs of a larger probe; 0 = all
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

from lib import charts, published, results
from lib.cloze import metrics, recorded
from lib.cloze.answers import ask, kept, side_by_side
from lib.cloze.items import gaps, item_file, read_negation, read_probes
from lib.items import origin, sample_groups
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
# *A robin is a ___*: people say **bird**, and *A robin is not a ___* is true with **tree** and false with **bird**. People know
# that at once when asked. Yet the brain's first response, the N400, is as small for *not a bird* as for *a bird*: at the first
# glance, people too go by the words (Fischler et al. 1983).

# %% [markdown]
# By hand, with the first item of the set: the probability of both words in both sentences. The true word should be the likelier
# one in each.

# %%
source = published.find(datasets)
paths = {name: item_file(name, source) for name in ("simple negation", "natural negation")}
example = read_negation(paths["simple negation"]).head(4)
by_hand = []
for row, gap in zip(example.itertuples(), gaps(example, full_stop), strict=True):
    batch = only(lm.fill([gap], start_token))
    ids = lm.word(row.candidate, "middle").ids
    by_hand.append(batch.log_probabilities[0, ids[0]].exp().item() if len(ids) == 1 else np.nan)
example.assign(probability=by_hand).set_index("condition")[["context", "candidate", "probability"]].round(6)

# %%
by_condition = dict(zip(example["condition"], by_hand, strict=True))
said = {name: by_condition[f"true {name}"] > by_condition[f"false {name}"]
        for name in ("affirmative", "negative")}
Markdown(" ".join(f"In the {name} sentence the true word {'is' if right else 'is **not**'} the likelier one."
                  for name, right in said.items()))

# %% [markdown]
# ## Before you go on
#
# A model that goes by the words alone: what will it do in the affirmative sentences, and what in the negative ones? What would
# chance be?

# %% [markdown]
# ## The items
#
# *Simple*: subject and category, as above; the article fits the completion, so a or an gives nothing away. *Natural*: sentences
# one might say; in half of them the negation is **licensed** (Y): there is a reason to deny something. In the others there is none (N).

# %%
items = pd.concat([read_negation(path).assign(set=name) for name, path in paths.items()], ignore_index=True)
items["unit"] = items["set"] + " " + items["item"]
assert (items.groupby("unit")["condition"].nunique() == 4).all()
items.groupby("set").head(4).set_index("condition")[["context", "candidate", "licensing"]]

# %% tags=["hide-input"]
kind = origin(list(paths.values()), source)
data = {"name": kind, "sample": "all", "sha256": results.checksums(paths.values())}
Markdown(f"Data: **{kind}**; "
         f"{', '.join(f'{n} {name}' for name, n in items.groupby('set')['unit'].nunique().items())} items.")

# %% [markdown]
# ## Scores
#
# The library asks about every context once and looks up every candidate. By hand and by library must agree.

# %%
answers, choices = ask(lm, items.assign(item=items["unit"]), start_token, target_policy, full_stop, store)
np.testing.assert_allclose(answers["probability"].head(4), by_hand, rtol=1e-3)
Markdown(metrics.unscored(answers))

# %% [markdown]
# ## Result
#
# One line an item, from its affirmative to its negative sentence. Over zero, the true word is the more probable one. A model that
# understands *not* has all its points above; one that goes by the words crosses over.

# %%
compared = metrics.compare(answers, ["item", "polarity"], "role", "true", ["false"])
lines = compared.assign(condition=compared["set"],
                        value=compared["log_probability_true"] - compared["log_probability_false"])
licensed = lines["licensing"].map({"Y": "natural, licensed", "N": "natural, unlicensed"})
lines["condition"] = licensed.fillna("simple")
charts.paired(lines)

# %%
summary = metrics.sensitivity(lines, ["condition", "polarity"])
by_polarity = metrics.sensitivity(lines, ["polarity"]).set_index(["metric", "polarity"])
value = by_polarity["value"]["sensitivity"]
Markdown(f"The true word is the likelier one in **{value['affirmative']:.1%}** of affirmative "
         f"and **{value['negative']:.1%}** of negative sentences: "
         f"a difference of {100 * (value['affirmative'] - value['negative']):.1f} points.")

# %% [markdown]
# *Sensitivity*, the share of items above zero, with intervals; and *by threshold*, where the difference must exceed .01.

# %%
metrics.for_reading(summary, ["metric", "condition", "polarity"])

# %% [markdown]
# *Accuracy*: does the model say the category at all? Of its errors, how many repeat the subject? Do its words fit the article?

# %%
affirmative = answers[answers["condition"] == "true affirmative"]
accuracy = metrics.accuracy(affirmative, (1, 5), ["set"])
repeats = metrics.shares(metrics.subject_repeats(answers[answers["subject"] != ""]),
                         "repeats", "errors that repeat the subject")
articles = metrics.shares(metrics.articles(answers, 5), "respected", "likeliest five fit a or an")
parts = pd.concat([accuracy, repeats.assign(set="simple negation"), articles.assign(set="all")])
parts = parts.rename(columns={"set": "condition"})
metrics.for_reading(parts, ["metric", "condition"], ["successes"])

# %% [markdown]
# ## The likeliest words
#
# What the model would say, with and without the negation, side by side. If the words are the same, the *not* was not read.

# %%
of_tops = metrics.tops_under_negation(answers)
same = metrics.shares(of_tops, "same", "same likeliest word under negation").assign(condition="all")
alike = of_tops[of_tops["same"] == 1]
Markdown(f"The likeliest word is the same with and without the negation "
         f"in {len(alike)} of {same['scored'].sum()} pairs of sentences, "
         f"of {alike['item'].nunique()} of {of_tops['item'].nunique()} items "
         f"(a tie for the first place in {same['ties'].sum()}):")

# %%
unchanged = alike.set_index("top_first").rename_axis("likeliest word of both")
unchanged[["context_first", "context_second"]].set_axis(["without the negation", "with the negation"], axis=1)

# %% [markdown]
# And the three likeliest words of every item.

# %%
said = (side_by_side(answers, ["true affirmative", "false negative"], 3)
        .groupby(["item", "context (false negative)"], sort=False))
said = (said[["piece (true affirmative)", "piece (false negative)"]]
        .agg(" · ".join).reset_index().set_index("item"))
said.set_axis(["sentence", "without the negation", "with it"], axis=1)

# %% [markdown]
# ## Beside published values
#
# From the paper: in simple affirmative sentences both BERT models are right every time, in negative ones never.

# %%
ettinger = pd.read_csv(DATA / "reference" / "ettinger2020.csv", keep_default_na=False)
of_negation = ettinger[ettinger["diagnostic"].str.startswith("NEG")]
of_negation.set_index(["diagnostic", "measure"])[["model", "value"]]

# %% [markdown]
# ## A control
#
# Is the word order or the sense at work? Take the negation away from the sentence but keep its candidates: if the numbers of
# the negative sentences look like those of the affirmative ones with true and false swapped, the negation did nothing.

# %%
shifts = pd.concat([metrics.negation_shifts(lines, ["condition"], seed),
                    metrics.negation_shifts(lines, seed=seed).assign(condition="all")])
metrics.for_reading(shifts, ["condition"], ["needed"])

# %% [markdown]
# *value*: how far the negation moves the preference between the two words, in nats; zero is a model to which the negative sentence
# is the affirmative one. *needed*: the move that would turn the preference around.

# %% [markdown]
# ## Larger probes
#
# Shivagunde et al. (2023) made 1,500 lines in the same way, because so few items cannot tell two good models apart: if they are
# here, see how often the likeliest word changes under negation.

# %%
probes = sorted((source / "larger-probes").glob("NEG-*.txt")) if source else []
tables = []
for path in probes:
    drawn = sample_groups(read_probes(path, "negation"), "item", limit, "seeded", seed)
    of_probe, _ = ask(lm, drawn, start_token, target_policy, full_stop, store)
    right = metrics.accuracy(of_probe[of_probe["condition"] == "affirmative"], (1, 5, 10, 20))
    changed = metrics.shares(metrics.tops_of_pairs(of_probe, "affirmative", "negative"),
                             "changed", "top word changes")
    tables.append(pd.concat([right, changed]).assign(condition=path.stem))
missing = Markdown("The larger probes are not here: `make data`.")
metrics.for_reading(pd.concat(tables), ["condition", "metric"]) if tables else missing

# %%
published_power, with_18 = 0.01, metrics.proportion(9, 18)
Markdown(f"With 18 items, half of them right, the interval runs from {with_18.low:.2f} to {with_18.high:.2f}. "
         f"The paper puts the power of the 18 items to show a difference between two good models at "
         f"{published_power}; .8 is what one usually asks for.")

# %%
shivagunde = (pd.read_csv(DATA / "reference" / "shivagunde2023.csv", keep_default_na=False)
              .query("diagnostic.str.startswith('NEG')"))
shivagunde["set"] = shivagunde["diagnostic"].str.removeprefix("NEG-").str.removeprefix("1500-SIMP-")
shivagunde["measure"] = shivagunde["measure"].replace({
    "affirmative accuracy at 5": "accuracy@5", "top prediction changes under negation": "top changes"})
shivagunde.pivot(index="model", columns=["measure", "set"], values="value")

# %% [markdown]
# ## Where it goes wrong
#
# The negative sentences in which the false word wins by most.

# %%
negative = lines[lines["polarity"] == "negative"].nsmallest(6, "value")
negative.set_index("candidate_true")[["candidate_false", "context", "value"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * There are many true ways to end *A robin is not a*; the items ask for one. Low probability of *tree* is no mistake by itself.
# * A difference between two words is not what the model would say; see the likeliest words.
# * No norms were collected for our own items.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("32_negation", globals(), lm, store)
negative_value = by_polarity.loc[("sensitivity", "negative")]
headline = {"metric": "sensitivity, negative", **negative_value[["value", "low", "high", "n", "coverage"]]}
judged = compared.assign(judgement="the true word is more probable than the false one, " + compared["polarity"],
                         alternative=compared["candidate_false"])
rows = metrics.with_judgement(kept(answers), judged, ["item", "polarity"], ("role", "true"))
saved = results.write(
    out, notebook="32_negation", title="Negation: does 'not' change anything?", items=rows.assign(**choices),
    summary=pd.concat([summary, parts, same, shifts, *tables]), headline=headline, data=data,
    choices=choices, sources=["ettinger2020", "shivagunde2023"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. Two probabilities in a sentence and in its negation make the test.
# 2. The library asks each context once.
# 3. Accuracy in affirmative sentences says little about negation; sensitivity in negative ones does.
# 4. The likeliest words show what the model would say.
# 5. A small set shows a large effect, and no small one.

# %% [markdown]
# Back: [`31_roles`](31_roles.ipynb). Index: `90_compare_models`. [Exercises](exercises/32_negation.ipynb); your copy to write in lies in `my_exercises`.
#
# * Ettinger (2020), *What BERT is not: lessons from a new suite of psycholinguistic diagnostics for language models*, TACL.
# * Shivagunde, Lialin and Rumshisky (2023), *Larger probes tell a different story*, EMNLP.
# * Fischler et al. (1983), *Brain potentials related to stages of sentence verification*, Psychophysiology.

# %% tags=["hide-input"]
results.provenance_table(provenance)
