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
# *Which swimmer the lifeguard rescued*, or *which lifeguard the swimmer rescued*: does the model notice who is who?

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
model = "smollm2-135m-instruct"  # bundled, in data/models.csv, hub id, folder, or folder of recorded scores
revision = "main"
device = "auto"
dtype = "float32"
datasets = ""  # folder of the published data; "" = LITMUS_DATASETS, else data/published, else our own items
limit = 200  # pairs of a larger probe; 0 = all
strict_cloze = False  # people's answers: as published, or counting the very word only
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
from lib.cloze.answers import ask, kept, side_by_side
from lib.cloze.items import cloze_quartile, gaps, item_file, read_probes, read_roles
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
# An item is a pair: in **a** the target verb fits, in **b** the two nouns have changed places and it does not. The words are the
# same; only who does what has changed.

# %%
source = published.find(datasets)
path = item_file("roles", source)
items = read_roles(path)
example = items[items["item"] == items["item"].iloc[0]].sort_values("condition")
Markdown("\n\n".join(f"> **{row.condition}** {row.context} ___" for row in example.itertuples())
         + f"\n\nThe target is **{example['candidate'].iloc[0]}**.")

# %% [markdown]
# By hand: the probability of the target in both. It should be higher in a.

# %%
ids = lm.word(example["candidate"].iloc[0], "middle").ids
by_hand = {}
for row, gap in zip(example.itertuples(), gaps(example, full_stop), strict=True):
    batch = only(lm.fill([gap], start_token))
    by_hand[row.condition] = batch.log_probabilities[0, ids[0]].exp().item() if len(ids) == 1 else np.nan
pd.Series(by_hand, name="probability of the target").to_frame().round(5)

# %% [markdown]
# ## Before you go on
#
# People's brains are slow here: the N400, the early sign of surprise that `30_inference` tells of, is the same for the verb in a
# and in b, as if at first only the words counted. Asked for a completion, people hardly ever give the target in b. Which of the
# two will a model resemble?

# %% [markdown]
# ## The items
#
# Of a published item we know what share of people gave the target as completion (its *cloze*). For our own items nobody was asked.

# %%
data = {"name": origin([path], source),
        "sample": "all", "sha256": results.checksums([path])}
assert (items.groupby("item")["condition"].nunique() == 2).all()
has_cloze = items["cloze"].notna().any()
Markdown(f"Data: **{data['name']}**, {items['item'].nunique()} pairs; "
         f"{'with' if has_cloze else 'without'} cloze values.")

# %% [markdown]
# ## Scores
#
# Each distinct context is asked once, and the probability of its target looked up. For the example that must be what we found
# by hand.

# %%
answers, choices = ask(lm, items, start_token, target_policy, full_stop, store)
of_example = answers[answers["item"] == example["item"].iloc[0]].set_index("condition")["probability"]
np.testing.assert_allclose(of_example[list(by_hand)], list(by_hand.values()), rtol=1e-3)
Markdown(metrics.unscored(answers))

# %% [markdown]
# ## Result
#
# **Sensitivity**: in how many pairs is the target more probable in a than in b, at all, and by more than .01? Many pairs differ by
# less than that: there the model hardly notices. **Accuracy**: is one of the words that people give in this very sentence among
# the model's likeliest one, or five? It is counted over both sentences of a pair; in b the expected words are others than in a.

# %%
compared = metrics.role_pairs(answers, strict_cloze)
alike = metrics.shares(compared, "alike", "difference under .01")
of_tops = metrics.tops_of_pairs(answers, "a", "b")
tops = metrics.shares(of_tops, "same", "same likeliest word in a and b")
accuracy = metrics.accuracy(answers, (1, 5), count="per_row")
summary = pd.concat([metrics.sensitivity(compared), alike, tops, accuracy]).assign(condition="all")
metrics.for_reading(summary)

# %%
main = summary.iloc[0]
Markdown(f"The target is more probable in its own sentence in **{main['value']:.0%}** "
         f"of {main['scored']:.0f} pairs [{main['low']:.2f}, {main['high']:.2f}]; chance is half.")

# %%
margin = compared.assign(condition="pairs",
                         margin=compared["log_probability_a"] - compared["log_probability_b"])
charts.margins(margin, value_title="log P(target | a) - log P(target | b)")

# %% [markdown]
# ## What people do
#
# The model's difference in probability against people's difference in cloze, pair by pair. If model and people used the roles
# alike, the points would rise to the right.

# %%
(charts.differences(compared) if has_cloze
 else Markdown("These items have no cloze values: `make data` fetches those that have."))

# %%
related = pd.concat([metrics.correlations(compared, seed=seed), metrics.mean_margins(compared, seed=seed),
                     metrics.mean_cloze_difference(compared, seed)]).assign(condition="all")
metrics.for_reading(related)

# %% [markdown]
# Accuracy by how much people agree on the expected word, and sensitivity by how much they agree on the one in a: quartiles of
# cloze, 1 the lowest.

# %%
quartile = cloze_quartile(answers["expected_cloze"])
of_quartile = answers.assign(quartile=[f"quartile {q:.0f}" if q == q else "no cloze" for q in quartile])
by_quartile = pd.concat([metrics.accuracy(of_quartile, (1, 5), ["quartile"], count="per_row"),
                         metrics.sensitivity(metrics.role_pairs(of_quartile), ["quartile"])])
by_quartile = by_quartile.rename(columns={"quartile": "condition"}).sort_values(["metric", "condition"])
metrics.for_reading(by_quartile, ["metric", "condition"])

# %% [markdown]
# ## The likeliest words
#
# What the model would say in a and in b, side by side.

# %%
said = side_by_side(answers, ["a", "b"], 3).groupby(["item", "context (a)", "context (b)"], sort=False)
said = said[["piece (a)", "piece (b)"]].agg(" · ".join).reset_index().set_index("item")
said[["context (a)", "piece (a)", "context (b)", "piece (b)"]]

# %% [markdown]
# The pairs in which the reversal leaves the likeliest word as it is.

# %%
same = of_tops[of_tops["same"] == 1].set_index("top_first").rename_axis("likeliest word of both")
same[["context_first", "context_second"]].set_axis(["a", "b"], axis=1)

# %% [markdown]
# ## Beside published values
#
# Sensitivity and accuracy at 5: from Ettinger for BERT, from Shivagunde et al. for more models and for the larger probe below.

# %%
ettinger = pd.read_csv(DATA / "reference" / "ettinger2020.csv", keep_default_na=False)
shivagunde = pd.read_csv(DATA / "reference" / "shivagunde2023.csv", keep_default_na=False)
of_roles = pd.concat([ettinger, shivagunde]).query("diagnostic.str.startswith('ROLE')")
of_roles = of_roles.pivot(index=["source", "measure", "model"], columns="diagnostic", values="value")
of_roles.map("{:.3f}".format, na_action="ignore").fillna("")

# %% [markdown]
# ## A control
#
# Hide the object noun (*which one the lifeguard had*), the subject noun (*which swimmer the other had*), or both. With both
# hidden a and b are one sentence with one target: their comparison is undefined, a tie by construction, and no result. Accuracy is
# counted in two ways: *per row* as published, each sentence with its own expected words; and each distinct sentence *once*, with
# the expected words of all its rows.

# %%
hidden = {"object hidden": perturb.hide_object(items), "subject hidden": perturb.hide_subject(items),
          "both hidden": perturb.hide_both(items)}
of_hidden = {name: ask(lm, table, start_token, target_policy, full_stop, store)[0]
             for name, table in hidden.items()}
pairs = {name: metrics.role_pairs(table) for name, table in of_hidden.items()}
perturbed = [metrics.sensitivity(table).assign(condition=name) for name, table in pairs.items()]
perturbed += [metrics.accuracy(table, (5,), count=count).assign(condition=name)
              for name, table in {"whole": answers, **of_hidden}.items() for count in ("per_row", "once")]
perturbed = pd.concat([summary[summary["metric"].str.startswith("sensitivity")].assign(condition="whole"),
                       *perturbed])
perturbed = perturbed.fillna({"count": ""})
metrics.for_reading(perturbed.sort_values(["metric", "count"], kind="stable"), ["metric", "count", "condition"])

# %%
undefined = (pairs["both hidden"]["reason"] == "identical").sum()
Markdown(f"With both nouns hidden, a and b are the same sentence with the same target "
         f"in {undefined} of {len(compared)} pairs: sensitivity is undefined there, "
         "neither right nor wrong, and has no place in the picture.")

# %%
charts.intervals(perturbed[perturbed["metric"] == "sensitivity"].dropna(subset="value").drop(columns="metric"),
                 value_title="sensitivity")

# %% [markdown]
# ## Larger probes
#
# Shivagunde et al. (2023) made 1,500 lines in the same way, because so few pairs cannot tell two good models apart.

# %%
probe = source / "larger-probes" / "ROLE-1500.txt" if source else None
larger = pd.DataFrame()
if probe and probe.exists():
    drawn = sample_groups(read_probes(probe, "roles"), "item", limit, "seeded", seed)
    of_probe, _ = ask(lm, drawn, start_token, target_policy, full_stop, store)
    larger = metrics.accuracy(of_probe, (1, 5, 10, 20), count="per_row").assign(condition="ROLE-1500")
metrics.for_reading(larger) if len(larger) else Markdown("Not here: `make data`.")

# %%
published_power, of_44 = 0.26, metrics.proportion(33, 44)
Markdown(f"With 44 pairs, three quarters of them right, "
         f"the interval runs from {of_44.low:.2f} to {of_44.high:.2f}. "
         f"The paper puts the power of the 44 pairs to show a difference between two good models at "
         f"{published_power}; .8 is what one usually asks for.")

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
everything = [summary, related, by_quartile, perturbed[perturbed["condition"] != "whole"]]
judged = compared.assign(judgement="the verb is more probable than with the nouns exchanged",
                         alternative=compared["context_b"])
rows = metrics.with_judgement(kept(answers, of_hidden), judged, ["item"], ("condition", "a"))
saved = results.write(
    out, notebook="31_roles", title="Roles: who did what to whom?", items=rows.assign(**choices),
    summary=pd.concat([*everything, larger] if len(larger) else everything),
    headline={"metric": "sensitivity", **main[["value", "low", "high", "n", "coverage"]]},
    data=data, choices=choices, sources=["ettinger2020", "shivagunde2023"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. One verb in two sentences with the same words isolates the roles.
# 2. The library asks each context once.
# 3. Sensitivity at all and by a threshold can tell different stories.
# 4. Differences in cloze say what people do; the model's need not follow them.
# 5. Hiding a noun shows which one the expectation rests on.

# %% [markdown]
# Next: [`32_negation`](32_negation.ipynb). Back: [`30_inference`](30_inference.ipynb). [Exercises](exercises/31_roles.ipynb); your copy to write in lies in `my_exercises`.
#
# * Ettinger (2020), *What BERT is not: lessons from a new suite of psycholinguistic diagnostics for language models*, TACL.
# * Chow et al. (2016), *A "bag-of-arguments" mechanism for initial verb predictions*, Language, Cognition and Neuroscience.
# * Shivagunde, Lialin and Rumshisky (2023), *Larger probes tell a different story*, EMNLP.

# %% tags=["hide-input"]
results.provenance_table(provenance)
