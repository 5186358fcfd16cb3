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
# # Template: a or an?
#
# The question in everyday words, in one line: does the model know that *an* wants a vowel?
#
# Copy this file to `notebooks/NN_name.py`, change every cell, run `make pairs`. The order of the headings is checked by a test.

# %% [markdown]
# By the end you will have shown *the claim*, while *the control* would have shown it to be false. You will
#
# 1. work one item by hand,
# 2. score all items with the library,
# 3. read the result with its interval,
# 4. look at a control and at the worst items.
#
# About 10 minutes to read, less than one to run. What to read before. Where the items and the idea come from.

# %% tags=["parameters"]
model = "smollm2-135m-instruct"  # literals only: the runner reads this cell without running it
revision = "main"
device = "auto"
dtype = "float32"
start_state = "eos"  # of recurrent models: "eos" or "zero"
start_token = "never"
target_policy = "single_token"
out = ""  # path of the results, without suffix; "" = write none

# %% tags=["hide-input"]
import pandas as pd
from IPython.display import Markdown

from lib import charts, metrics, results, scoring
from lib.models import Gap, load, only
from lib.store import Store

charts.use_theme()
lm = load(model, revision=revision, device=device, dtype=dtype, start_state=start_state)
store = Store(lm.identity)

# %% [markdown]
# ## One example
#
# *She ate an ___.* What a speaker would say, and why: **apple**, because *an* stands before a vowel; never **banana**.

# %% [markdown]
# The same by hand, as a small table.

# %%
gap = Gap("She ate an", ".")
batch = only(lm.fill([gap], start_token))
by_hand = {form: batch.log_probabilities[0, lm.word(form, "middle").id].item()
           for form in ("apple", "banana")}
pd.Series(by_hand, name="log-probability").to_frame().round(3)

# %% [markdown]
# ## Before you go on
#
# What do you expect, and what would surprise you?

# %% [markdown]
# ## The items
#
# Read them (`lib.items`), show some, count them, assert what must hold.

# %%
items = pd.DataFrame(
    [
        ("an", "She ate an", "apple", "banana"),
        ("an", "He found an", "egg", "box"),
        ("an", "They saw an", "island", "river"),
        ("a", "She ate a", "banana", "apple"),
        ("a", "He found a", "box", "egg"),
        ("a", "They saw a", "river", "island"),
    ],
    columns=["article", "left", "good", "bad"],
)
assert items["article"].value_counts().nunique() == 1, "as many of one kind as of the other"
items.set_index("left")

# %% [markdown]
# ## Scores
#
# The library does all items; it must agree with the hand.

# %%
gaps = [Gap(left, ".") for left in items["left"]]
fills = scoring.fill(lm, gaps, [*items["good"], *items["bad"]], start_token, target_policy, store=store)
scored = pd.concat([items, metrics.minimal_pairs(fills, items["good"], items["bad"])], axis=1)
assert abs(scored.loc[0, "log_probability_good"] - by_hand["apple"]) < 1e-4
scored.set_index("left")[["good", "bad", "margin", "scorable", "reason"]].round(2)

# %% [markdown]
# ## Result
#
# The summary with its interval; one chart for one claim; a sentence that is computed, so that it holds for any model.

# %%
summary = metrics.summarise_pairs(scored, ["article"])
charts.intervals(summary.rename(columns={"article": "condition"}), value_title="share right")

# %%
overall = metrics.summarise_pairs(scored.assign(all="all items"), ["all"]).iloc[0]
Markdown(
    f"Right in **{overall['value']:.0%}** of {overall['scored']} scored items "
    f"[{overall['low']:.2f}, {overall['high']:.2f}]; "
    f"{overall['n'] - overall['scored']} of {overall['n']} could not be scored."
)

# %% [markdown]
# ## Beside published values
#
# Published and human values next to ours, from `data/reference/`. This template has none.

# %% [markdown]
# ## A control
#
# What else could make the score high? The same nouns behind *the*, which does not care: preferences that are left there are
# habits of the model.

# %%
neutral = [Gap(left.rsplit(" ", 1)[0] + " the", ".") for left in items["left"]]
control = scoring.fill(lm, neutral, [*items["good"], *items["bad"]], start_token, target_policy, store=store)
margins = pd.DataFrame({
    "a or an": scored["margin"], "the": metrics.minimal_pairs(control, items["good"], items["bad"])["margin"]
})
charts.margins(margins.melt(var_name="condition", value_name="margin"))

# %% [markdown]
# ## Where it goes wrong
#
# The worst items, as sentences.

# %%
scored.nsmallest(3, "margin").set_index("left")[["good", "bad", "margin"]].round(2)

# %% [markdown]
# ## What this does not show
#
# * Six items show the file, not the language.
# * Two to five lines of limits.

# %% tags=["results"]
provenance = results.provenance("_template", globals(), lm, store)
rows = scored.assign(item=scored.index, condition=scored["article"], context=scored["left"],
                     candidate=scored["good"], log_probability=scored["log_probability_good"],
                     rank=scored["rank_good"], **fills.choices)
saved = results.write(
    out, notebook="_template", title="Template: a or an?", items=rows,
    summary=summary.rename(columns={"article": "condition"}),
    headline={"metric": "share right", **overall[["value", "low", "high", "n", "coverage"]]},
    data={"name": "six items of this notebook", "sample": "all", "sha256": {}},
    choices=fills.choices, sources=[], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. One item by hand makes the rest readable.
# 2. The library agrees with the hand.
# 3. An interval belongs to every value.
# 4. A control says what a score may rest on.

# %% [markdown]
# Next and back: links to other notebooks, the exercise, three to six references.

# %% tags=["hide-input"]
results.provenance_table(provenance)
