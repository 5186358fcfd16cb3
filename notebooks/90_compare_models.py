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
# A language model guesses words. Its guesses show what it knows about a language: here each **diagnostic** asks one thing, such as
# whether a verb fits its subject, by letting the model choose between a right and a wrong word or sentence, many times.

# %% [markdown]
# This page is the index of all reports, made from whatever results there are. It says
#
# 1. what has run, and how well each model did,
# 2. which models do better than guessing,
# 3. where two models differ by more than chance, and how sure that is,
# 4. which constructions are hard, beside published values and people,
# 5. which items no model gets right, and every item across models.
#
# Each number leads to its report, which says how it was made.

# %% tags=["parameters"]
reports = ""  # folder of the results; "" = reports/
cluster = "context"  # drawn together in intervals of differences: a "context", a "condition", each "item" alone
seed = 0
rows = 60  # of comparisons, and of items nobody gets right, that the page shows; the files hold all
each = 12  # items of a diagnostic that the table of items shows
out = ""  # path of this notebook's own results, without suffix; unused unless run in a batch

# %% tags=["hide-input"]
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown, display

from lib import charts, listing, results
from lib.comparison import collected, conditions, items, matrix, words
from lib.paths import REPORTS

charts.use_theme()
pd.set_option("display.max_rows", 1000)  # the tables here are long, and can be searched
folder = Path(reports) if reports else REPORTS

# %% [markdown]
# ## What there is
#
# A row is a diagnostic, a column a model. *Value*: the share that the model gets right, or what the row says; below it the 95 %
# interval, and *scored*, the share of items that could be scored with this model's vocabulary.

# %%
found = collected.collect(folder)
models = collected.models_in_order(found)
titles = collected.titles(
    found, list(dict.fromkeys([*collected.per_model_notebooks(), *sorted(found["notebook"])])))
Markdown(words.there_is(found, models, titles))

# %%
HTML(matrix.matrix(found, models, titles))

# %% [markdown]
# ## Better than guessing?
#
# Guessing gets half of the pairs right, of three words a third. A model is above that if its whole interval is.

# %%
Markdown(words.against_chance(found, models, titles))

# %% [markdown]
# ## Result
#
# The same numbers as pictures. The further right, the better; the longer the line, the less sure. Published values are of the
# published items and of larger models: for scale, not for ranking.

# %%
done = found[found["state"] == "done"].assign(who=lambda rows: rows["label"], kind="model")
done = done.sort_values("label", key=lambda labels: labels.map(models.index), kind="stable")
dots = pd.concat([done, conditions.published_headlines(done["notebook"].unique())]).dropna(subset="value")
dots = dots.assign(diagnostic=dots["notebook"].map(titles),
                   chance=dots["notebook"].map(matrix.chance).astype(float))
dots = dots.sort_values("notebook", kind="stable")
for family, members in conditions.families(dots["notebook"].unique()).items():
    display(Markdown(f"### {family}"), charts.beside_published(dots[dots["notebook"].isin(members)]))

# %% [markdown]
# ## Where models differ beyond chance
#
# Two models are compared on the items that both could score. A difference is believed if two things agree: the exact McNemar test
# over the items that only one of the two gets right, corrected for the number of comparisons on this page (Holm), and an interval
# of the difference in which items that share a context (or whatever `cluster` says) are drawn together. What a test can find depends
# on the number of items: the sentences say it for a weaker model that alone is right on 5 % of them.

# %%
compared = items.compare(found, models, cluster, seed)
Markdown(words.differences(compared.pairs, titles))

# %% [markdown]
# *Difference*: share right of the first minus that of the second. *Alone right*: how many items only the first gets right, and how
# many only the second; *odds*: the first of these numbers over the second, however many items both get right. *Items*: how many, in
# how many clusters. *p*: corrected. For scores that are no yes or no, *d* is the mean difference over its standard deviation, and the
# test a paired t test over clusters. All intervals: 95 %.

# %%
table = words.for_reading(compared.pairs, titles, rows)
display(Markdown(f"{len(table)} of {len(compared.pairs):,} comparisons, "
                 "those beyond chance and the largest first."))
table

# %% [markdown]
# What could not be compared, because models were asked other items or in another way:

# %%
Markdown("\n".join(f"* {sentence}" for sentence in compared.untold)
         or "Everything that is there could be compared.")

# %% [markdown]
# ## Construction by construction
#
# Which kinds of sentence are hard, and for whom? Dark is high. Columns at the right are published.

# %%
values = conditions.by_condition(found, models, list(titles))
for (notebook, group), part in values.groupby(["notebook", "group"], sort=False):
    display(Markdown(f"### {titles[notebook]}: {group}"), HTML(matrix.shaded(part)))

# %% [markdown]
# ## Over the course of training
#
# Where a model was run in several states (`model@revision`), its values from the first to the last.

# %%
series = collected.over_revisions(found, titles)
(charts.over_revisions(series) if len(series)
 else Markdown("No model has results of more than one revision here."))

# %% [markdown]
# ## Where every model fails
#
# Items that no model gets right, of those that at least two could score: hard sentences, or doubtful items. Read them.

# %%
Markdown(words.how_many_nobody(compared.items, models, titles))

# %%
nobody = words.nobody_right(compared.items, models)
shown = words.spread(nobody, rows).rename(columns={"sentence": "right", "instead": "preferred or as likely"})
(shown.assign(diagnostic=shown["notebook"].map(titles))
 .set_index("diagnostic")[["condition", "right", "preferred or as likely"]])

# %% [markdown]
# ## Item by item
#
# ✓ right, ✗ wrong (a tie too), – no score. First the items over which the models are most divided; the search field finds words,
# models' columns sort. The file of items above holds every item.

# %%
words.item_table(compared.items, models, titles, each)

# %% [markdown]
# ## What went wrong
#
# Failed and damaged results, with what they said. Everything else is unharmed.

# %%
broken = found[found["state"] != "done"].assign(diagnostic=lambda rows: rows["notebook"].map(titles))
broken.set_index("label")[["diagnostic", "state", "reason"]] if len(broken) else Markdown("Nothing.")

# %% [markdown]
# ## What each number rests on

# %%
based = found[found["state"] == "done"].round({"coverage": 2, "seconds": 0})
based.set_index(["notebook", "label"]).sort_index()[["data", "sample", "n", "coverage", "seconds", "date"]]

# %% [markdown]
# ## The models
#
# What Litmus knows by name, with the disk and memory each takes. Any other hub id or folder works as well.

# %%
pd.DataFrame(listing.read().values()).set_index("name")

# %% [markdown]
# ## What this does not show
#
# * A headline is a mean; the constructions and the reports show what it hides.
# * Models with other vocabularies are scored on other items: look at the share scored before you compare values.
# * Items of a diagnostic share words beyond their context, so even these intervals are somewhat too narrow.
# * No difference found is not no difference: the sentences above say what could have been seen.
# * Small models are here to make the method run anywhere. Their numbers are no findings.

# %% tags=["results"]
provenance = results.provenance("90_compare_models", globals())
saved = results.write(
    out, notebook="90_compare_models", title="Every model, every diagnostic",
    items=compared.items.rename(columns=words.column_of), summary=compared.pairs, headline={},
    data={"name": "the results in this folder", "sample": "all", "sha256": {}}, choices={"cluster": cluster},
    sources=["newman2021", "gulordava2018", "warstadt2020", "ettinger2020"], provenance=provenance,
)

# %% [markdown]
# ## Takeaways
#
# 1. The first table says what ran, failed or is missing, and each number leads to its report.
# 2. A value over what guessing gets counts where its interval says so.
# 3. Two models are compared on the same items, asked in the same way, or not at all.
# 4. Constructions often differ more than models do.
# 5. Items that nobody gets right are to be read, not counted.

# %% tags=["hide-input"]
results.provenance_table(provenance)
