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
# # Litmus: every model, every diagnostic
#
# What do these language models know about syntax and sense, and how sure can we be?

# %% [markdown]
# This page is the index of all reports: it is made from whatever results there are. You will
#
# 1. see at a glance what has run, what failed and what is missing,
# 2. compare models on each diagnostic, with intervals,
# 3. compare them construction by construction, beside published values,
# 4. find the details: each number links to its report.
#
# A minute to run. The reports say how each number was made.

# %% tags=["parameters"]
reports = ""  # folder of the results; "" = reports/
out = ""  # path of this notebook's own results, without suffix; unused unless run in a batch

# %% tags=["hide-input"]
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown

from lib import charts, comparison, results
from lib.paths import DATA, REPORTS

charts.use_theme()
folder = Path(reports) if reports else REPORTS

# %% [markdown]
# ## What there is
#
# Each cell: the headline of a report with its 95 % interval, and the share of items that could be scored.

# %%
found = comparison.collect(folder)
catalogue = pd.read_csv(DATA / "models.csv", keep_default_na=False)
notebooks = list(dict.fromkeys([*comparison.per_model_notebooks(), *found["notebook"]]))
models = list(dict.fromkeys([*catalogue.loc[catalogue["grid"] == "yes", "name"], *found["model"]]))
HTML(comparison.matrix(found, models, notebooks))

# %%
done, failed = (found["state"] == "done").sum(), (found["state"] == "failed").sum()
Markdown(f"{done} reports, {failed} failed, {len(models) * len(notebooks) - done - failed} not run.")

# %% [markdown]
# A number is only worth comparing with another made from the same items. This is what each report used.

# %%
done_rows = found[found["state"] == "done"]
done_rows.set_index(["model", "notebook"])[["data", "sample", "n", "coverage", "seconds"]].round({"coverage": 2, "seconds": 0})

# %% [markdown]
# ## One example
#
# How to read a cell: *TSE 0.912 [0.90, 0.92], coverage 68 %* says that in 91 of 100 scored pairs the model found the right
# form more probable, that shares from 90 to 92 % fit what was seen, as far as the items are independent (they share words, so
# a little more than that), and that a third of the items could not be scored with this model's vocabulary.

# %% [markdown]
# ## Result
#
# Models side by side, one panel a diagnostic. Where two intervals overlap, ask for a paired test on the same items before you
# believe in a difference.

# %%
headlines = done_rows.assign(diagnostic=done_rows["notebook"] + ": " + done_rows["metric"].astype(str))
charts.compare(headlines) if len(headlines) else Markdown("No results yet: run `make reports`.")

# %% [markdown]
# ## Construction by construction
#
# TSE of `20_agreement`: the share of pairs in which the right verb form is the more probable one.

# %%
tse = comparison.summaries(folder, "20_agreement")
charts.compare(tse.rename(columns={"condition": "diagnostic"}), value_title="TSE") if len(tse) else Markdown("Not run yet.")

# %% [markdown]
# EW and MW of `21_systematic_or_likely` over the whole vocabulary, beside TSE: is what looks like knowledge also systematic?

# %%
verbs = comparison.summaries(folder, "21_systematic_or_likely")
whole = verbs[(verbs["side"] == "top") & (verbs["cutoff"] == 1)] if len(verbs) else verbs
both = pd.concat([whole, tse])
both.pivot_table(index="condition", columns=["model", "metric"], values="value", sort=False).sort_index(axis=1).round(2)

# %% [markdown]
# ## Beside published values
#
# From the table of Newman et al. (2021). Those models are several times larger, and their items are the published ones; the
# reports say which items stand behind ours.

# %%
newman = pd.read_csv(DATA / "reference" / "newman2021.csv")
newman.pivot_table(index="template", columns=["model", "metric"], values="value", sort=False).sort_index(axis=1)

# %% [markdown]
# ## A control
#
# A model that guesses scores .5 on every pair, and a model that always takes the plural does too, because every set holds as
# many singular as plural subjects. That is the dashed line in the pictures above.

# %% [markdown]
# ## What went wrong
#
# Failed reports, with a link to the cell that failed. Everything else is unharmed.

# %%
broken = found[found["state"] == "failed"]
HTML(comparison.matrix(broken, broken["model"].unique(), broken["notebook"].unique())) if len(broken) else Markdown("None.")

# %% [markdown]
# ## The models
#
# What Litmus knows by name, with the disk and memory each takes. Any other hub id or folder works as well.

# %%
catalogue.set_index("name")

# %% [markdown]
# ## What this does not show
#
# * Headlines are means; the reports show what they hide.
# * Models with other vocabularies are scored on other items: compare coverage before values.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("90_compare_models", globals())
saved = results.write(
    out, notebook="90_compare_models", title="Every model, every diagnostic", items=found.drop(columns=["model", "revision"]),
    summary=done_rows[["model", "notebook", "metric", "value", "low", "high", "n", "coverage"]], headline={},
    data={"name": "the results in this folder", "sample": "all", "sha256": {}}, choices={},
    sources=["newman2021"], provenance=provenance,
)  # fmt: skip

# %% [markdown]
# ## Takeaways
#
# 1. The matrix says what ran, failed or is missing.
# 2. Intervals say which differences to believe.
# 3. Constructions differ more than models often do; published values help to see it.
# 4. Every number leads to a report.

# %% tags=["hide-input"]
results.provenance_table(provenance)
