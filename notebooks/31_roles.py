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
# # Roles: who did what to whom?
#
# *Which customer the waitress had served*, or *which waitress the customer had served*: does the model notice who is who?

# %% [markdown]
# By the end you will have measured whether a model's expectation of a verb depends on who acts and who is acted upon, while a
# control that hides the nouns shows how much the verb needs them. You will
#
# 1. compare one verb in a sentence and in its reversal by hand,
# 2. ask about all pairs,
# 3. measure sensitivity to the reversal, and accuracy,
# 4. set the model's differences beside people's,
# 5. hide one noun, the other, or both.
#
# About 20 minutes to read, one to run. Read `30_inference` first. Source: Ettinger (2020), *What BERT is not*, with items from
# Chow et al. (2016).

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # bundled, in data/models.csv, a hub id, a folder, or a folder of recorded scores
revision = "main"
device = "auto"
dtype = "float32"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
limit = 200  # pairs of a larger probe; 0 = all
strict_cloze = False  # people's answers: as published, or counting the very word only
seed = 0
full_stop = True  # a full stop behind the gap, for models that see it
start_token = "never"  # of causal models: "never" (as published), "auto", "always"
target_policy = "single_token"  # which words can be scored
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from IPython.display import Markdown

from lib import charts, cloze_metrics, perturb, published, recorded, results
from lib.cloze_answers import ask, side_by_side
from lib.cloze_items import cloze_quartile, gaps, item_file, read_probes, read_roles
from lib.items import origin, sample_groups
from lib.models import load
from lib.paths import DATA
from lib.store import Store

charts.use_theme()
lm = recorded.read(model) if recorded.found(model) else load(model, revision=revision, device=device, dtype=dtype)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# An item is a pair: in **a** the target verb fits, in **b** the two nouns have changed places and it does not. The words are the
# same; only who does what has changed.

# %%
source = published.find(datasets)
path = item_file("roles", source)
items = read_roles(path)
example = items[items["item"] == items["item"].iloc[0]].sort_values("condition")
Markdown("\n\n".join(f"> **{row.condition}** {row.context} ___" for row in example.itertuples())
         + f"\n\nThe target is **{example['candidate'].iloc[0]}**.")  # fmt: skip

# %% [markdown]
# By hand: the probability of the target in both. It should be higher in a.

# %%
ids = lm.word(example["candidate"].iloc[0], "middle").ids
by_hand = {}
for row, gap in zip(example.itertuples(), gaps(example, full_stop), strict=True):
    [batch] = lm.fill([gap], start_token)
    by_hand[row.condition] = batch.log_probabilities[0, ids[0]].exp().item() if len(ids) == 1 else np.nan
pd.Series(by_hand, name="probability of the target").to_frame().round(5)

# %% [markdown]
# ## Before you go on
#
# People's brains are slow here too: the N400 to the verb is the same in a and b, as if at first only the words counted, though
# asked for a completion they hardly ever give the target in b. Which of the two will a model resemble?

# %% [markdown]
# ## The items
#
# Of a published item we know how many people gave the target as completion (its *cloze*). For our own items nobody was asked.

# %%
data = {"name": origin([path], source),
        "sample": "all", "sha256": results.checksums([path])}  # fmt: skip
assert (items.groupby("item")["condition"].nunique() == 2).all()
has_cloze = items["cloze"].notna().any()
Markdown(f"Data: **{data['name']}**, {items['item'].nunique()} pairs; {'with' if has_cloze else 'without'} cloze values.")

# %% [markdown]
# ## Scores
#
# Every context once, every target looked up, equal to the hand.

# %%
answers, choices = ask(lm, items, start_token, target_policy, full_stop, store)
of_example = answers[answers["item"] == example["item"].iloc[0]].set_index("condition")["probability"]
np.testing.assert_allclose(of_example[list(by_hand)], list(by_hand.values()), rtol=1e-3)
Markdown(cloze_metrics.unscored(answers))

# %% [markdown]
# ## Result
#
# **Sensitivity**: in how many pairs is the target more probable in a than in b, at all, and by at least .01? Many pairs differ by
# less than that: there the model hardly notices.

# %%
compared = cloze_metrics.role_pairs(answers, strict_cloze)
alike = cloze_metrics.shares(compared, "alike", "difference under .01")
tops = cloze_metrics.shares(cloze_metrics.tops_of_pairs(answers, "a", "b"), "same", "same likeliest word in a and b")
accuracy = cloze_metrics.accuracy(answers, (1, 5), count="per_row")
summary = pd.concat([cloze_metrics.sensitivity(compared), alike, tops, accuracy]).assign(condition="all")
summary.set_index("metric")[["n", "scored", "value", "low", "high", "ties", "coverage"]].round(3)

# %%
main = summary.iloc[0]
Markdown(f"The target is more probable in its own sentence in **{main['value']:.0%}** of {main['scored']:.0f} pairs "
         f"[{main['low']:.2f}, {main['high']:.2f}]; chance is half.")  # fmt: skip

# %%
margin = compared.assign(condition="pairs", margin=compared["log_probability_a"] - compared["log_probability_b"])
charts.margins(margin, value_title="log P(target | a) - log P(target | b)")

# %% [markdown]
# ## What people do
#
# The model's difference in probability against people's difference in cloze, pair by pair. If model and people used the roles
# alike, the points would rise to the right.

# %%
charts.differences(compared) if has_cloze else Markdown("These items have no cloze values: `make data` fetches those that have.")

# %%
related = [cloze_metrics.correlations(compared, seed=seed), cloze_metrics.mean_margins(compared, seed=seed),
           cloze_metrics.mean_cloze_difference(compared, seed)]  # fmt: skip
pd.concat(related).set_index("metric")[["n", "scored", "value", "low", "high"]].round(3)

# %% [markdown]
# Accuracy by how much people agree (quartiles of the cloze of the expected word).

# %%
quartiles = answers.assign(quartile=cloze_quartile(answers["expected_cloze"])) if has_cloze else answers.assign(quartile="no cloze")
by_quartile = cloze_metrics.accuracy(quartiles, (1, 5), ["quartile"], count="per_row")
by_quartile.set_index(["metric", "quartile"]).sort_index()[["n", "scored", "value", "low", "high"]].round(2)

# %% [markdown]
# ## The likeliest words
#
# What the model would say in a and in b, side by side.

# %%
said = side_by_side(answers, ["a", "b"], 3).groupby(["context (a)", "context (b)"], sort=False)
said[["piece (a)", "piece (b)"]].agg(", ".join).reset_index().set_index("context (a)")

# %% [markdown]
# ## Beside published values
#
# From the paper, for BERT.

# %%
ettinger = pd.read_csv(DATA / "reference" / "ettinger2020.csv", keep_default_na=False)
ettinger[ettinger["diagnostic"] == "ROLE-88"].set_index("measure")[["model", "value"]]

# %% [markdown]
# ## A control
#
# Hide the object noun (*which one the waitress had*), the subject noun (*which customer the other had*), or both. With both
# hidden a and b are one sentence: their comparison is undefined, a tie by construction, and no result.

# %%
hidden = {"object hidden": perturb.hide_object(items), "subject hidden": perturb.hide_subject(items),
          "both hidden": perturb.hide_both(items)}  # fmt: skip
tables = {"whole": answers} | {name: ask(lm, table, start_token, target_policy, full_stop, store)[0] for name, table in hidden.items()}
rows = []
for name, table in tables.items():
    of_table = [cloze_metrics.sensitivity(cloze_metrics.role_pairs(table)).head(1), cloze_metrics.accuracy(table, (5,))]
    rows.append(pd.concat(of_table).assign(condition=name))
perturbed = pd.concat(rows)
perturbed.set_index(["metric", "condition"])[["n", "scored", "value", "low", "high", "reasons"]].round(3)

# %%
charts.intervals(perturbed[perturbed["metric"] == "sensitivity"].dropna(subset="value").drop(columns="metric"), value_title="sensitivity")

# %% [markdown]
# ## Larger probes
#
# With 44 pairs, two good models cannot be told apart. Shivagunde et al. (2023) made 1,500 lines in the same way.

# %%
probe = source / "larger-probes" / "ROLE-1500.txt" if source else None
larger = pd.DataFrame(columns=["metric", "n", "value", "low", "high", "coverage"])
if probe and probe.exists():
    drawn = sample_groups(read_probes(probe, "roles"), "item", limit, "seeded", seed)
    of_probe, _ = ask(lm, drawn, start_token, target_policy, full_stop, store)
    larger = cloze_metrics.accuracy(of_probe, (1, 5, 10, 20), count="per_row")
larger.set_index("metric")[["n", "value", "low", "high", "coverage"]].round(3) if len(larger) else Markdown("Not here: `make data`.")

# %%
of_44 = cloze_metrics.proportion(33, 44)
Markdown(f"With 44 pairs, three quarters of them right, the interval runs from {of_44.low:.2f} to {of_44.high:.2f}.")

# %% [markdown]
# ## Where it goes wrong
#
# The pairs in which the target is more probable in the wrong sentence, by most.

# %%
wrong = margin[margin["higher"] == 0].nsmallest(6, "margin").set_index("candidate_a")
wrong[["context_a", "context_b", "margin"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * Some targets are common verbs and likely in both sentences; a difference in probability is then small for that reason.
# * Fit is a matter of degree: in a few pairs the reversal is odd rather than impossible.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("31_roles", globals(), lm, store)
written = answers.drop(columns=["expected", "top_ids", "top_pieces", "top_kinds", "top_probabilities"])
written = written.assign(tie=written["top_tie"], **choices)
saved = results.write(
    out, notebook="31_roles", title="Roles: who did what to whom?", items=written,
    summary=pd.concat([summary, perturbed[perturbed["condition"] != "whole"]]),
    headline={"metric": "sensitivity", **main[["value", "low", "high", "n", "coverage"]]}, data=data, choices=choices,
    sources=["ettinger2020", "shivagunde2023"], provenance=provenance,
)  # fmt: skip

# %% [markdown]
# ## Takeaways
#
# 1. One verb in two sentences with the same words isolates the roles.
# 2. The library asks each context once.
# 3. Sensitivity at all and by a threshold can tell different stories.
# 4. Differences in cloze say what people do; the model's need not follow them.
# 5. Hiding a noun shows which one the expectation rests on.

# %% [markdown]
# Next: [`32_negation`](32_negation.ipynb). Back: [`30_inference`](30_inference.ipynb).
#
# * Ettinger (2020), *What BERT is not: lessons from a new suite of psycholinguistic diagnostics for language models*, TACL.
# * Chow et al. (2016), *A "bag-of-arguments" mechanism for initial verb predictions*, Language, Cognition and Neuroscience.
# * Shivagunde, Lialin and Rumshisky (2023), *Larger probes tell a different story*, EMNLP.

# %% tags=["hide-input"]
results.provenance_table(provenance)
