"""Charts: one function a picture, from a tidy table to an Altair chart with a description in words.

Every function takes a table with the columns its docstring names (more columns do no harm) and returns a chart whose
``description`` says in words what is drawn; pass your own ``description`` where you know better. Nothing here prints,
opens a file or scores anything.

Why Altair 6 and a renderer of ours: Altair 5 makes the type JupyterLab wants, but is no longer developed. Altair 6's
own renderers do not fit the rest: papermill refuses the type of ``mimetype``, ``html`` needs a network, and JupyterLab
draws Vega-Lite up to 5 only. Everything we draw means the same in Vega-Lite 5 and 6, so our renderer labels the
specification as version 5 and puts three types in one output: the specification (drawn by JupyterLab and by our
pages), a picture (shown where scripts are not trusted) and the description (where there are no pictures).
"""

import functools
import hashlib
import re
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lib.paths import DATA

VEGA_LITE = "5.20"
"""The version of Vega-Lite that draws pictures and pages, so that both look as in JupyterLab."""

MIME_TYPE = "application/vnd.vegalite.v5+json"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PALETTE = (BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#8C6D46")
"""Okabe and Ito's colours, which colour-blind readers tell apart; brown replaces black, invisible on a dark page."""

GREY = "#767676"
METRIC_COLOURS = {"EW": BLUE, "MW": VERMILLION, "TSE": GREY}
SHAPES = ("circle", "square", "diamond", "triangle-up")
BUNDLED_MODELS = ("smollm2-135m-instruct", "distilbert-mlm", "wiki-lstm")

WIDTH = 430
"""Width in pixels of a single panel; labels on its left take up to 250 more."""

POWERS = alt.Axis(
    grid=False,
    tickCount=6,
    labelOverlap="greedy",
    labelSeparation=10,
    labelExpr="datum.value < 0.001 ? format(datum.value, '~e') : format(datum.value, '~g')",
)
"""How a logarithmic axis is labelled: 1e-5, 0.001, 1."""

UNDRAWABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that a picture cannot hold, because SVG cannot: control characters, and halves of characters."""

POINTS = 1000
"""At most so many points are drawn in one panel: more cannot be told apart and make pages heavy."""


def use_theme() -> None:
    """Make every chart and table of this session look and travel as ours: called in the import cell of each notebook."""
    pd.set_option("display.max_colwidth", 160, "display.max_rows", 120)  # sentences whole, tables of items too
    alt.theme.register("litmus", enable=True)(_theme)
    alt.renderers.register("litmus", _render)
    alt.renderers.enable("litmus")


def model_colours(models: Iterable[str]) -> dict[str, str]:
    """The colour of each model: by its name alone, so it is the same in every picture and on every page.

    The bundled models come first, then those of ``data/models.csv`` in its order, each with the next colour, and from the
    start when colours are used up; of any other model the name's digest decides. Where models share a colour, their shapes
    (``model_shapes``) and their labels tell them apart.
    """
    return {name: PALETTE[_place(name) % len(PALETTE)] for name in sorted(set(models))}


def model_shapes(models: Iterable[str]) -> dict[str, str]:
    """The shape of each model's points, by its name alone, as ``model_colours``; a circle for the first colours."""
    return {name: SHAPES[_place(name) // len(PALETTE) % len(SHAPES)] for name in sorted(set(models))}


def _place(name: str) -> int:
    """Where a model stands in the row of all looks, colour by colour and then shape by shape."""
    listed = _listed_models()
    if name in listed:
        return listed.index(name)
    return len(PALETTE) + int(hashlib.sha256(name.encode()).hexdigest(), 16) % (len(PALETTE) * (len(SHAPES) - 1))


@functools.cache
def _listed_models() -> tuple[str, ...]:
    names = pd.read_csv(DATA / "models.csv", keep_default_na=False)["name"]
    return (*BUNDLED_MODELS, *(name for name in names if name not in BUNDLED_MODELS))


def cutoff_curves(
    table: pd.DataFrame, value_title: str = "score", description: str = "", columns: int = 2
) -> alt.FacetChart:
    """Score against cutoff, as in the figures of Newman et al. (2021): top cutoffs solid, bottom cutoffs dashed.

    Columns: condition, model, metric ("EW" or "MW"), side ("top" or "bottom"), cutoff (share of the probability mass,
    over 0), value; and where present low and high (a band) and tse (one value a panel, drawn as a level line). One
    panel a condition, ``columns`` of them side by side; with several models one row of panels a condition and one
    column a model. The cutoff axis is logarithmic. Another ``value_title`` makes it the chart of the mass counted or of
    the share invalid.
    """
    data = _keep(table, ["condition", "model", "metric", "side", "cutoff", "value"], ["low", "high", "tse"])
    data = data[data["value"].notna()]
    metrics = [metric for metric in METRIC_COLOURS if metric in set(data["metric"])]
    has_tse = "tse" in data and bool(data["tse"].notna().any())
    shown = metrics + (["TSE"] if has_tse else [])
    colour = alt.Scale(domain=shown, range=[METRIC_COLOURS[metric] for metric in shown])
    base = alt.Chart().encode(
        x=alt.X("cutoff:Q", title="cutoff (share of probability mass)").scale(type="log", nice=False).axis(POWERS),
        color=alt.Color("metric:N", title=None, scale=colour),
    )
    dashes = alt.Scale(domain=["top", "bottom"], range=[[1, 0], [5, 3]])
    score = alt.Y("value:Q", title=value_title, scale=alt.Scale(domain=[0, 1]))
    line = base.mark_line(strokeWidth=2).encode(
        y=score, strokeDash=alt.StrokeDash("side:N", title="cutoff", scale=dashes)
    )
    point = base.mark_point(filled=True, size=26, opacity=1).encode(
        y=score, detail="side:N", tooltip=_tooltip(data, ["condition", "model", "metric", "side", "cutoff", "value"])
    )
    layers: list[alt.Chart] = []
    if {"low", "high"} <= set(data):
        layers += [base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q", detail="side:N")]
    if has_tse:
        level = alt.Chart().mark_rule(strokeWidth=1.5).encode(y="mean(tse):Q", color=alt.datum("TSE"))
        layers += [level]
    panel = alt.layer(*layers, line, point, data=data)
    several = data["model"].nunique() > 1
    across = data["model"].nunique() if several else columns
    panel = panel.properties(width=max(150, 640 // across - 35), height=140)
    words = description or (
        f"Line charts of {value_title} against cutoff, one panel for each of {_many(data, 'condition')}"
        f"{' and ' + _many(data, 'model') if several else ''}; lines: {', '.join(metrics)}, top cutoffs solid, "
        f"bottom cutoffs dashed{', TSE as a level line' if has_tse else ''}. {_extremes(data, 'condition')}"
    )
    condition = alt.Facet("condition:N", title=None, sort=_order(data, "condition"))
    if not several:
        return panel.facet(facet=condition, columns=columns).properties(description=words)
    model = alt.Column("model:N", title=None, sort=_order(data, "model"))
    row = alt.Row("condition:N", title=None, sort=_order(data, "condition"))
    return panel.facet(row=row, column=model).properties(description=words)


def intervals(
    table: pd.DataFrame,
    value_title: str = "score",
    chance: float | None = 0.5,
    description: str = "",
    domain: tuple[float, float] | None = (0, 1),
) -> alt.LayerChart | alt.FacetChart:
    """A dot with its interval for each condition, best first; published values as hollow diamonds beside ours.

    Columns: condition, value, low, high; and where present metric (a colour each), published, n. ``chance`` draws a
    dashed line there, None draws none; ``domain`` None lets the data decide.
    """
    data = _keep(table, ["condition", "value", "low", "high"], ["metric", "published", "n"])
    order = data.groupby("condition")["value"].mean().sort_values(ascending=False).index.tolist()
    place = alt.Y("condition:N", sort=order, title=None).axis(labelLimit=250, domain=False, ticks=False)
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=False)
    base = alt.Chart(data).encode(y=place, color=alt.value(BLUE))
    metrics = _order(data, "metric") if "metric" in data and data["metric"].nunique() > 1 else []
    if metrics:
        base = base.encode(
            color=_colour("metric", _metric_colours(metrics)), yOffset=alt.YOffset("metric:N", sort=metrics)
        )
    bar = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=value_title, scale=scale), x2="high:Q")
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(x="value:Q", tooltip=_tooltip(data, list(data)))
    layers = [bar, dot, *_chance(chance, "x")]
    published = "published" in data and bool(data["published"].notna().any())
    if published:
        layers.append(base.mark_point(shape="diamond", filled=False, size=90, strokeWidth=1.5).encode(x="published:Q"))
    note = "Dot and line: ours with its 95 % interval." + (" Hollow diamond: published." if published else "")
    words = description or (
        f"Dot plot of {value_title} with intervals for {_many(data, 'condition')}"
        f"{' and ' + ', '.join(metrics) if metrics else ''}{', published values beside ours' if published else ''}. "
        f"{_extremes(data, 'condition')}"
    )
    return alt.layer(*layers).properties(
        width=WIDTH, height=alt.Step(12 if metrics else 24), title=note, description=words
    )


def grouped_intervals(
    table: pd.DataFrame, group: str, value_title: str = "score", chance: float | None = 0.5, description: str = ""
) -> alt.FacetChart:
    """A dot with its interval for each condition, a panel for each ``group``, for more conditions than one list can hold.

    Columns: condition, ``group``, value, low, high; and where present published (a hollow diamond), n. Groups and, within
    them, conditions stand best first.
    """
    data = _keep(table, ["condition", group, "value", "low", "high"], ["published", "n"])
    ranked = data.assign(mean=data.groupby(group)["value"].transform("mean")).sort_values(
        ["mean", group, "value"], ascending=[False, True, False], kind="stable"
    )
    place = alt.Y("condition:N", sort=ranked["condition"].tolist(), title=None).axis(
        labelLimit=320, labelFontSize=11, labelPadding=8, domain=False, ticks=False
    )
    base = alt.Chart().encode(y=place, color=alt.value(BLUE))
    scale = alt.Scale(domain=[0, 1])
    bar = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=value_title, scale=scale), x2="high:Q")
    dot = base.mark_point(filled=True, size=55, opacity=1).encode(x="value:Q", tooltip=_tooltip(data, list(data)))
    layers = [bar, dot, *_chance(chance, "x")]
    note = "Dot and line: ours with its 95 % interval."
    if "published" in data and data["published"].notna().any():
        layers.append(base.mark_point(shape="diamond", filled=False, size=60, strokeWidth=1.5, color=VERMILLION).encode(
            x="published:Q", color=alt.value(VERMILLION)))  # fmt: skip
        note += " Hollow diamond: published."
    panel = alt.layer(*layers, data=data).properties(width=360, height=alt.Step(15))
    header = alt.Header(labelAngle=0, labelAlign="left", labelAnchor="start", labelOrient="top", labelPadding=3)
    words = description or (
        f"Dot plot of {value_title} with intervals for {_many(data, 'condition')} in {data[group].nunique()} groups. "
        f"{_extremes(data, 'condition')}"
    )
    row = alt.Row(f"{group}:N", title=None, sort=_order(ranked, group), header=header)
    return panel.facet(row=row, spacing=8).resolve_scale(y="independent").properties(title=note, description=words)


def flips(table: pd.DataFrame, description: str = "") -> alt.LayerChart | alt.FacetChart:
    """How many judgements another choice turns: to the left those that become wrong, to the right those that become right.

    Columns: choice, became ("right" or "wrong"), pairs (a count).
    """
    data = _keep(table, ["choice", "became", "pairs"], [])
    data = data.assign(signed=np.where(data["became"] == "right", data["pairs"], -data["pairs"]))
    base = alt.Chart().encode(
        y=alt.Y("choice:N", sort=_order(data, "choice"), title=None).axis(
            labelLimit=320, labelPadding=8, domain=False, ticks=False
        )
    )
    length = alt.X("signed:Q", title="pairs whose judgement changes").axis(format="d", labelExpr="abs(datum.value)")
    bars = base.mark_bar(height=13).encode(
        x=length, color=_colour("became", {"wrong": VERMILLION, "right": BLUE}, title="became"),
        tooltip=["choice:N", "became:N", "pairs:Q"],
    )  # fmt: skip
    zero = alt.Chart().mark_rule(color=GREY).encode(x=alt.datum(0))
    counts = data.pivot_table(index="choice", columns="became", values="pairs", aggfunc="sum", sort=False).fillna(0)
    said = " ".join(
        f"{row.Index}: {int(getattr(row, 'right', 0))} become right, {int(getattr(row, 'wrong', 0))} wrong."
        for row in counts.itertuples()
    )
    return alt.layer(bars, zero, data=data).properties(
        width=WIDTH, height=alt.Step(24), description=description or f"Bars of changed judgements by choice. {said}"
    )


MARGIN = "margin: log-probability of the right form minus the wrong form"


def margins(table: pd.DataFrame, description: str = "", value_title: str = MARGIN) -> alt.FacetChart:
    """How the margins of each condition are spread: a small histogram a condition, zero and the median marked.

    Columns: condition, margin (log-probability of the right form minus that of the wrong form, natural log). A margin
    of exactly zero is a tie and counts as wrong. Margins that are not finite are left out. Only counts travel with the
    chart, so a page stays small however many items there are.
    """
    data = _keep(table, ["condition", "margin"], [])
    data = data[np.isfinite(data["margin"])]
    counts, medians = _histograms(data)
    order = _order(data, "condition")
    joined = counts.merge(medians, on="condition")
    base = alt.Chart()
    colour = {"right": BLUE, "wrong": VERMILLION}
    bars = base.mark_bar(binSpacing=0).encode(
        x=alt.X("start:Q", title=value_title, bin="binned"),
        x2="end:Q",
        y=alt.Y("share:Q", title=None, axis=None),
        color=_colour("form", colour),
        tooltip=["condition:N", alt.Tooltip("start:Q", format=".2f"), alt.Tooltip("end:Q", format=".2f"), "items:Q"],
    )
    zero = base.mark_rule(color=GREY).encode(x=alt.datum(0))
    median = base.mark_tick(thickness=3, height=14, yOffset=-7, color=GREY).encode(
        x="mean(median):Q", y=alt.value(38), tooltip=[alt.Tooltip("mean(median):Q", format=".2f", title="median")]
    )
    words = description or (
        f"Histograms of margins for {_many(data, 'condition')}: "
        + "; ".join(
            f"{row.condition} median {row.median:.2f}, {row.above:.0%} over zero" for row in medians.itertuples()
        )
        + "."
    )
    header = alt.Header(labelAngle=0, labelAlign="left", labelOrient="left", labelLimit=250)
    row = alt.Row("condition:N", title=None, sort=order, header=header)
    panel = alt.layer(bars, zero, median, data=joined).properties(width=WIDTH, height=38)
    return panel.facet(row=row, spacing=6).properties(description=words)


def by_number_and_attractor(
    table: pd.DataFrame, value_title: str = "score", chance: float | None = 0.5, description: str = "", columns: int = 3
) -> alt.LayerChart | alt.FacetChart:
    """Dots with intervals: attractor match along the axis, one colour for each number of the subject.

    Columns: number ("singular" or "plural"), attractor (for instance "none", "match", "mismatch"), value, low, high;
    with a column condition one panel each.
    """
    data = _keep(table, ["number", "attractor", "value", "low", "high"], ["condition", "n"])
    known = [name for name in ("none", "match", "mismatch") if name in set(data["attractor"])]
    order = known + [name for name in _order(data, "attractor") if name not in known]
    base = alt.Chart().encode(
        x=alt.X("attractor:N", sort=order, title="attractor").axis(labelAngle=0),
        xOffset=alt.XOffset("number:N", sort=["singular", "plural"]),
        color=_colour("number", {"singular": BLUE, "plural": VERMILLION}, title="subject"),
    )
    scale = alt.Scale(domain=[0, 1])
    bar = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=value_title, scale=scale), y2="high:Q")
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(y="value:Q", tooltip=_tooltip(data, list(data)))
    panel = alt.layer(bar, dot, *_chance(chance, "y"), data=data)
    words = (
        description
        or f"Dot plot of {value_title} by number of the subject and match of the attractor. "
        + " ".join(
            f"{row.number}, {row.attractor}: {row.value:.2f}."
            for row in data.groupby(["number", "attractor"], sort=False)["value"].mean().reset_index().itertuples()
        )
    )
    if "condition" not in data:
        return panel.properties(width=WIDTH, height=220, description=words)
    facet = alt.Facet("condition:N", title=None, sort=_order(data, "condition"))
    return panel.properties(width=180, height=150).facet(facet=facet, columns=columns).properties(description=words)


def verbs(
    table: pd.DataFrame,
    by: str = "probability",
    by_title: str = "mean probability of the verb",
    description: str = "",
) -> alt.LayerChart | alt.FacetChart:
    """Share right against how likely the model finds each verb: a point a verb, and the mean of twelve equal groups.

    Columns: verb, ``by`` (probability or frequency; rows at zero cannot stand on a logarithmic axis and are left out),
    share_right (share of the contexts in which the right form is the likelier). The line uses every verb; of more than
    1,000 verbs every so-manieth by ``by`` is drawn, and the chart says so.
    """
    data = _keep(table, ["verb", by, "share_right"], [])
    data = data[data[by] > 0].sort_values(by, ignore_index=True)
    groups = pd.cut(data.index, 12, labels=False) if len(data) > 12 else data.index
    grouped = data.groupby(groups)
    means = pd.DataFrame(
        {
            by: np.exp(grouped[by].agg(lambda values: np.log(values).mean())).map(_short),
            "share_right": grouped["share_right"].mean().round(4),
            "verbs": grouped.size(),
        }
    )
    drawn = (
        data.iloc[np.unique(np.linspace(0, len(data) - 1, min(POINTS, len(data))).astype(int))] if len(data) else data
    )
    drawn = drawn.assign(**{by: drawn[by].map(_short), "share_right": drawn["share_right"].round(3)})
    x = alt.X(f"{by}:Q", title=f"{by_title} (logarithmic)").scale(type="log", nice=False).axis(POWERS)
    y = alt.Y("share_right:Q", title="share of contexts right", scale=alt.Scale(domain=[0, 1]))
    points = (
        alt.Chart(drawn)
        .mark_circle(size=22, opacity=0.3, color=BLUE, aria=False)
        .encode(x=x, y=y, tooltip=["verb:N", f"{by}:Q", "share_right:Q"])
    )
    line = (
        alt.Chart(means)
        .mark_line(color=VERMILLION, strokeWidth=2.5, point=alt.OverlayMarkDef(color=VERMILLION, size=40))
        .encode(x=x, y=y, tooltip=["verbs:Q", f"{by}:Q", "share_right:Q"])
    )
    note = ["A point: one verb. Line: mean of twelve groups of equal size, from rare to likely."]
    if len(drawn) < len(data):
        note.append(f"{len(drawn):,} of {len(data):,} verbs are drawn; the line uses all.")
    ends = f" From {means['share_right'].iloc[0]:.2f} to {means['share_right'].iloc[-1]:.2f}." if len(means) else ""
    words = description or f"Share of contexts right against {by_title} for {len(data):,} verbs.{ends}"
    return alt.layer(points, line).properties(width=620, height=300, title=note, description=words)


def means(
    table: pd.DataFrame, group: str, value_title: str = "mean probability", description: str = ""
) -> alt.LayerChart | alt.FacetChart:
    """Means with intervals on a logarithmic axis: a row a condition, a colour a ``group``.

    Columns: condition, ``group``, value, low, high. Values and ends at zero cannot stand on the axis and are left out.
    """
    data = _keep(table, ["condition", group, "value", "low", "high"], [])
    data = data[data["value"] > 0].assign(low=data["low"].where(data["low"] > 0))
    groups = _order(data, group)
    base = alt.Chart(data).encode(
        y=alt.Y("condition:N", sort=_order(data, "condition"), title=None).axis(domain=False, ticks=False),
        yOffset=alt.YOffset(f"{group}:N", sort=groups),
        color=_colour(group, dict(zip(groups, PALETTE, strict=False)), title=group),
    )
    scale = alt.Scale(type="log", nice=False)
    bar = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q")
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("value:Q", title=f"{value_title} (logarithmic)", scale=scale, axis=POWERS),
        tooltip=_tooltip(data, list(data)),
    )
    said = " ".join(f"{row.condition}, {row[2]}: {row.value:.4f}." for row in data.itertuples())
    said_ = description or f"Dot plot of {value_title} by condition and {group}. {said}"
    return alt.layer(bar, dot).properties(width=WIDTH, height=alt.Step(16), description=said_)


def training_curves(
    table: pd.DataFrame, value_title: str, levels: dict[str, float] | None = None, description: str = ""
) -> alt.LayerChart | alt.FacetChart:
    """How a figure changes over the steps of a training, a line a series; ``levels``: dashed lines to compare with.

    Columns: step, series, value.
    """
    data = _keep(table, ["step", "series", "value"], []).round({"value": 4})
    series = _order(data, "series")
    line = alt.Chart(data).mark_line(point=True).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("value:Q", title=value_title, scale=alt.Scale(zero=False)),
        color=_colour("series", dict(zip(series, PALETTE, strict=False))),
        tooltip=_tooltip(data, ["series", "step", "value"]),
    )  # fmt: skip
    named = pd.DataFrame({"name": list(levels or {}), "value": list((levels or {}).values())})
    rule = alt.Chart(named).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="value:Q")
    label = alt.Chart(named).mark_text(align="left", dx=4, dy=-6, color=GREY).encode(
        y="value:Q", x=alt.value(0), text="name:N"
    )  # fmt: skip
    ends = data.groupby("series", sort=False)["value"].agg(["first", "last"])
    said = " ".join(f"{row.Index}: from {row.first:.3g} to {row.last:.3g}." for row in ends.itertuples())
    said += "".join(f" {name}: {value:.3g}." for name, value in (levels or {}).items())
    said_ = description or f"Line chart of {value_title} by training step. {said}"
    return alt.layer(line, rule, label).properties(width=WIDTH, height=220, description=said_)


def two_margins(
    table: pd.DataFrame,
    x_title: str = "margin at the target",
    y_title: str = "margin of the whole sentence",
    description: str = "",
) -> alt.FacetChart:
    """Two ways to judge the same pairs, against each other: where a point lies over zero on both axes, both are right.

    Columns: condition (a panel each, four or so), item, sentence, x, y (margins, natural log). Pairs that lack one of the
    two are left out; a margin of zero is a tie and counts as wrong.
    """
    data = _keep(table, ["condition", "item", "sentence", "x", "y"], []).dropna().round({"x": 3, "y": 3})
    agree = (data["x"] > 0) == (data["y"] > 0)
    data = data.assign(judgement=np.where(agree, "the same", "different"))
    base = alt.Chart()
    points = base.mark_circle(size=34, opacity=0.7).encode(
        x=alt.X("x:Q", title=x_title), y=alt.Y("y:Q", title=y_title),
        color=_colour("judgement", {"the same": BLUE, "different": VERMILLION}),
        tooltip=_tooltip(data, ["item", "sentence", "x", "y"]),
    )  # fmt: skip
    across = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(y=alt.datum(0))
    up = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=alt.datum(0))
    panel = alt.layer(across, up, points, data=data).properties(width=230, height=190)
    shares = data.groupby("condition", sort=False)["judgement"].agg(lambda found: (found == "different").mean())
    said = " ".join(f"{condition}: {share:.0%} of the pairs judged differently." for condition, share in shares.items())
    words = description or f"Scatter plots of two margins for {_many(data, 'condition')}. {said}"
    facet = alt.Facet("condition:N", title=None, sort=_order(data, "condition"))
    return panel.facet(facet=facet, columns=2).properties(description=words)


def differences(
    table: pd.DataFrame, x_title: str = "difference in cloze (people)", description: str = ""
) -> alt.LayerChart | alt.FacetChart:
    """The model's difference in probability against people's. Columns: item, cloze_difference, margin, context."""
    data = _keep(table, ["item", "cloze_difference", "margin", "context"], []).dropna()
    points = alt.Chart(data).mark_circle(size=45, color=BLUE, opacity=0.7).encode(
        x=alt.X("cloze_difference:Q", title=x_title),
        y=alt.Y("margin:Q", title="difference in probability (model)"),
        tooltip=_tooltip(data, ["item", "context", "cloze_difference", "margin"]),
    )  # fmt: skip
    zero = alt.Chart().mark_rule(color=GREY, strokeDash=[4, 3]).encode(y=alt.datum(0))
    above = int((data["margin"] > 0).sum())
    said_ = description or f"Scatter plot of {len(data)} items; in {above} the model's difference is over zero."
    return alt.layer(points, zero).properties(width=WIDTH, height=280, description=said_)


def paired(
    table: pd.DataFrame, value_title: str = "log P(true) - log P(false)", description: str = ""
) -> alt.FacetChart:
    """One line an item, from its affirmative to its negative sentence: over zero the true word is the likelier one.

    Columns: condition (a panel each), item, polarity ("affirmative", "negative"), value, context. Items without a value are
    left out.
    """
    data = _keep(table, ["condition", "item", "polarity", "value", "context"], [])
    data = data[data["value"].notna()]
    data = data.assign(right=np.where(data["value"] > 0, "right", "wrong"))
    base = alt.Chart().encode(
        x=alt.X("polarity:N", sort=["affirmative", "negative"], title=None).axis(labelAngle=0, domain=False),
        y=alt.Y("value:Q", title=value_title),
    )
    lines = base.mark_line(color=GREY, opacity=0.45, strokeWidth=1).encode(detail="item:N")
    dots = base.mark_point(filled=True, size=55, opacity=0.9).encode(
        color=_colour("right", {"right": BLUE, "wrong": VERMILLION}),
        tooltip=_tooltip(data, ["item", "context", "polarity", "value"]),
    )
    zero = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=alt.value(0), x2=alt.value(175), y=alt.datum(0))
    panel = alt.layer(zero, lines, dots, data=data).properties(width=175, height=300)
    shares = data.groupby(["condition", "polarity"], sort=False)["right"].agg(lambda found: (found == "right").mean())
    said = " ".join(f"{condition}, {polarity}: {share:.0%} right." for (condition, polarity), share in shares.items())
    said_ = description or f"Paired lines from affirmative to negative sentences of {_many(data, 'condition')}. {said}"
    return panel.facet(
        facet=alt.Facet("condition:N", title=None, sort=_order(data, "condition")), columns=3
    ).properties(description=said_)


def words(table: pd.DataFrame, description: str = "") -> alt.LayerChart | alt.FacetChart:
    """The likeliest words at a gap as bars, likeliest first. Columns: word, probability."""
    data = _keep(table, ["word", "probability"], []).reset_index(names="place")
    place = alt.Y("place:O", title=None, axis=None)
    bars = alt.Chart(data).mark_bar(color=BLUE).encode(y=place, x=alt.X("probability:Q", title="probability"))
    labels = alt.Chart(data).mark_text(align="right", dx=-6).encode(y=place, x=alt.value(0), text="word:N")
    said = ", ".join(f"{row.word} {row.probability:.3f}" for row in data.itertuples())
    size = {"width": WIDTH, "height": alt.Step(20)}
    return alt.layer(bars, labels).properties(**size, description=description or f"Bars of probabilities: {said}.")


def surprisal(table: pd.DataFrame, description: str = "") -> alt.FacetChart:
    """How surprising each token of a sentence is, in bits: one panel a sentence, bars in reading order.

    Columns: sentence, position, word, bits (NaN where a token has no score: no bar).
    """
    data = _keep(table, ["sentence", "position", "word", "bits"], [])
    base = alt.Chart().encode(x=alt.X("position:O", title=None, axis=None))
    bars = base.mark_bar(color=BLUE).encode(
        y=alt.Y("bits:Q", title="surprisal (bits)"), tooltip=["word:N", alt.Tooltip("bits:Q", format=".1f")]
    )
    labels = base.mark_text(baseline="top", dy=6).encode(y=alt.datum(0), text="word:N")
    panel = alt.layer(bars, labels, data=data).properties(width=alt.Step(62), height=120)
    sentences = alt.Facet("sentence:N", title=None, sort=_order(data, "sentence"), header=alt.Header(labelPadding=8))
    said = " ".join(
        f"{sentence} {', '.join(f'{row.word} {row.bits:.1f}' for row in group.itertuples())}."
        for sentence, group in data.groupby("sentence", sort=False)
    )
    return panel.facet(facet=sentences, columns=1).properties(description=description or f"Surprisal in bits. {said}")


def compare(
    table: pd.DataFrame, value_title: str = "score", chance: float | None = 0.5, description: str = "", columns: int = 2
) -> alt.FacetChart:
    """Models side by side: a small panel for each diagnostic, a dot with its interval in the colour of each model.

    Columns: diagnostic, model, value, low, high; and where present n.
    """
    data = _keep(table, ["diagnostic", "model", "value", "low", "high"], ["n"])
    models = _order(data, "model")
    base = alt.Chart().encode(
        y=alt.Y("model:N", sort=models, title=None).axis(labelLimit=150, domain=False, ticks=False),
        color=alt.Color("model:N", legend=None, scale=_scale(model_colours(models))),
        shape=alt.Shape("model:N", legend=None, scale=_scale(model_shapes(models))),
    )
    scale = alt.Scale(domain=[0, 1])
    bar = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=value_title, scale=scale), x2="high:Q")
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(x="value:Q", tooltip=_tooltip(data, list(data)))
    panel = alt.layer(bar, dot, *_chance(chance, "x"), data=data).properties(width=210, height=alt.Step(22))
    words = description or (
        f"Dot plots of {value_title} with intervals: {_many(data, 'diagnostic')}, {_many(data, 'model')}. "
        f"{_extremes(data, 'model')}"
    )
    facet = alt.Facet("diagnostic:N", title=None, sort=_order(data, "diagnostic"))
    return panel.facet(facet=facet, columns=columns).properties(description=words)


def beside_published(table: pd.DataFrame, description: str = "") -> alt.FacetChart:
    """A panel for each diagnostic: models as dots with intervals, below them published values and people's.

    Columns: diagnostic, who, kind ("model", "published" or "people"), value, low, high (NaN where none is known), chance
    (NaN: none is drawn). Who stands where follows from the table; models have their own colours, others are hollow diamonds.
    """
    data = _keep(table, ["diagnostic", "who", "kind", "value", "low", "high", "chance"], [])
    models = _order(data[data["kind"] == "model"], "who")
    base = alt.Chart().encode(
        y=alt.Y("who:N", sort=_order(data, "who"), title=None).axis(labelLimit=190, domain=False, ticks=False)
    )
    ours, others = (base.transform_filter(f"datum.kind {sign} 'model'") for sign in ("==", "!="))
    colour = alt.Color("who:N", legend=None, scale=_scale(model_colours(models)))
    shape = alt.Shape("who:N", legend=None, scale=_scale(model_shapes(models)))
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]))
    tooltip = _tooltip(data, ["who", "value", "low", "high"])
    bar = ours.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q", color=colour)
    dot = ours.mark_point(filled=True, size=70, opacity=1).encode(x=x, color=colour, shape=shape, tooltip=tooltip)
    beside = others.mark_point(shape="diamond", filled=False, size=80, strokeWidth=1.5, color=GREY).encode(
        x=x, tooltip=tooltip
    )
    level = alt.Chart().mark_rule(strokeDash=[3, 3], color=GREY).encode(x=alt.X("mean(chance):Q", title=None))
    panel = alt.layer(level, bar, dot, beside, data=data).properties(
        width=WIDTH, height=alt.Step(19 if len(models) <= 8 else 13)
    )
    said = " ".join(f"{row.diagnostic}: {row.who} {row.value:.2f}." for row in data.itertuples())
    note = "Dot and line: a model with its 95 % interval. Dashed: guessing."
    if len(models) < data["who"].nunique():
        note += " Hollow diamond: published."
    header = alt.Header(labelAngle=0, labelAlign="left", labelAnchor="start", labelOrient="top", labelPadding=3)
    row = alt.Row("diagnostic:N", title=None, sort=_order(data, "diagnostic"), header=header)
    chart = panel.facet(row=row, spacing=12).resolve_scale(y="independent")
    return chart.properties(title=note, description=description or f"Dot plots. {said}")


def over_revisions(table: pd.DataFrame, description: str = "", columns: int = 2) -> alt.FacetChart:
    """The states of a model as a line, from the first to the last: a panel a diagnostic, a line a model, intervals as a band.

    Columns: diagnostic, model, revision, value, low, high; revisions are drawn in the order of the table.
    """
    data = _keep(table, ["diagnostic", "model", "revision", "value", "low", "high"], [])
    colour = _colour("model", model_colours(_order(data, "model")))
    base = alt.Chart().encode(
        x=alt.X("revision:N", sort=_order(data, "revision"), title="revision").axis(labelAngle=-40, labelLimit=120)
    )
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]))
    bar = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=alt.Y("low:Q", title=None), y2="high:Q", color=colour)
    line = base.mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=2).encode(
        y=y, color=colour, tooltip=_tooltip(data, ["model", "revision", "value", "low", "high"])
    )
    panel = alt.layer(bar, line, data=data).properties(width=260, height=150)
    ends = data.groupby(["diagnostic", "model"], sort=False)["value"].agg(["first", "last"])
    said = " ".join(
        f"{name}, {model}: from {row['first']:.2f} to {row['last']:.2f}." for (name, model), row in ends.iterrows()
    )
    facet = alt.Facet("diagnostic:N", title=None, sort=_order(data, "diagnostic"))
    return panel.facet(facet=facet, columns=columns).properties(
        description=description or f"Lines over revisions. {said}"
    )


def _render(spec: dict, **_: object) -> tuple[dict, dict]:
    """The three types of one output, and the size at which the picture is to be shown."""
    import vl_convert

    spec = _drawable({**spec, "$schema": SCHEMA})
    scale = 1.25  # sharper costs more bytes in every notebook and page than it is worth
    png = _smaller(vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=scale))
    width, height = struct.unpack(">II", png[16:24])
    bundle = {
        MIME_TYPE: spec,
        "image/png": png,
        "text/plain": spec.get("description", "A chart without a description."),
    }
    return bundle, {"image/png": {"width": round(width / scale), "height": round(height / scale)}}


def _drawable(part: Any) -> Any:
    """A specification whose texts hold what a picture can hold: one control character in a word ends the whole process."""
    if isinstance(part, dict):
        return {_drawable(name): _drawable(value) for name, value in part.items()}
    if isinstance(part, list):
        return [_drawable(value) for value in part]
    return UNDRAWABLE.sub("\N{REPLACEMENT CHARACTER}", part) if isinstance(part, str) else part


def _smaller(png: bytes) -> bytes:
    """The same picture, its pixels packed as tightly as zlib can: vl-convert's are up to four times larger."""
    chunks, position = [], 8
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        chunks.append((png[position + 4 : position + 8], png[position + 8 : position + 8 + length]))
        position += length + 12
    pixels = zlib.compress(zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT")), 9)
    packed = [png[:8]]
    for kind, body in [(k, b) for k, b in chunks if k not in (b"IDAT", b"IEND")] + [(b"IDAT", pixels), (b"IEND", b"")]:
        packed += [struct.pack(">I", len(body)), kind, body, struct.pack(">I", zlib.crc32(kind + body))]
    return b"".join(packed)


def _theme() -> alt.theme.ThemeConfig:
    ink, pale = "#333333", "#DDDDDD"
    words: Any = {
        "labelColor": ink,
        "titleColor": ink,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    return {
        "config": {
            "background": "white",
            "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
            "padding": 8,
            "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": 260},
            "axis": {**words, "gridColor": pale, "domainColor": GREY, "tickColor": GREY, "titlePadding": 8},
            "axisY": {"domain": False, "ticks": False, "titleAnchor": "end", "tickCount": 5},
            "legend": {**words, "orient": "top", "titleOrient": "left", "symbolStrokeWidth": 2, "symbolOpacity": 1},
            "header": {**words, "labelFontWeight": 600, "labelFontSize": 11, "labelLimit": 280, "labelPadding": 6},
            "title": {"anchor": "start", "color": ink, "fontSize": 12, "fontWeight": "normal", "offset": 10},
            "facet": {"spacing": 24},
            "range": {"category": list(PALETTE)},
            "mark": {"color": BLUE},
        }
    }


def _keep(table: pd.DataFrame, needed: list[str], optional: list[str]) -> pd.DataFrame:
    """Only the columns a chart needs, numbers to four digits, so that specifications stay small."""
    kept = table[needed + [name for name in optional if name in table]].reset_index(drop=True)
    floats = [
        name for name in kept.select_dtypes("float") if name in ("value", "low", "high", "tse", "published", "margin")
    ]
    return kept.round(dict.fromkeys(floats, 4))


def _histograms(data: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Counts in shared bins of which zero is an edge, and the median and the share over zero, all per condition."""
    reach = float(data["margin"].max() - data["margin"].min()) if len(data) else 0.0
    width = _nice(reach / 40) if reach else 0.1
    bins = np.ceil(
        data["margin"] / width
    )  # bin k holds (k - 1, k] times the width, so that a tie falls among the wrong
    counts = data.groupby(["condition", bins.rename("bin")], sort=False).size().rename("items").reset_index()
    counts["start"] = ((counts["bin"] - 1) * width).round(6)
    counts["end"] = (counts["bin"] * width).round(6)
    counts["form"] = np.where(counts["bin"] > 0, "right", "wrong")
    counts["share"] = (counts["items"] / counts.groupby("condition")["items"].transform("sum")).round(4)
    grouped = data.groupby("condition", sort=False)["margin"]
    medians = pd.DataFrame({"median": grouped.median(), "above": grouped.agg(lambda values: (values > 0).mean())})
    return counts.drop(columns="bin"), medians.reset_index()


def _nice(width: float) -> float:
    """The next larger of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= width))


def _short(number: float) -> float:
    """Three significant digits: what a tooltip shows, at a third of the size."""
    return float(f"{number:.3g}")


def _chance(level: float | None, axis: str) -> list[alt.Chart]:
    if level is None:
        return []
    return [alt.Chart().mark_rule(strokeDash=[3, 3], color=GREY).encode(**{axis: alt.datum(level)})]


def _scale(colours: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(colours), range=list(colours.values()))


def _colour(field: str, colours: dict[str, str], title: str | None = None) -> alt.Color:
    return alt.Color(f"{field}:N", title=title, scale=_scale(colours))


def _metric_colours(metrics: list[str]) -> dict[str, str]:
    spare = iter(PALETTE[2:] * len(metrics))
    return {metric: METRIC_COLOURS.get(metric) or next(spare) for metric in metrics}


def _tooltip(data: pd.DataFrame, names: list[str]) -> list[alt.Tooltip]:
    """Name and value of each column, scores with three decimals."""
    decimals = {"value", "low", "high", "tse", "published"}
    return [
        alt.Tooltip(name, title=name.replace("_", " "), format=".3f" if name in decimals else alt.Undefined)
        for name in names
    ]


def _order(data: pd.DataFrame, column: str) -> list[str]:
    """Values in the order of the table: whoever made it knew why."""
    return data[column].drop_duplicates().tolist()


def _many(data: pd.DataFrame, column: str) -> str:
    count = data[column].nunique()
    return f"{count} {column}{'' if count == 1 else 's'}"


def _extremes(data: pd.DataFrame, column: str) -> str:
    """A sentence with the highest and the lowest mean value, or nothing where there is nothing to compare."""
    means = data.groupby(column)["value"].mean().dropna()
    if len(means) < 2:
        return ""
    return f"Highest on average: {means.idxmax()}, {means.max():.2f}; lowest: {means.idxmin()}, {means.min():.2f}."
