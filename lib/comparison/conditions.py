"""Construction by construction: the values of each condition, with published and human values beside them."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from lib.comparison.collected import summaries
from lib.paths import DATA

FAMILIES = {
    "Agreement": ("20_agreement", "22_long_distance", "23_coordination_tense"),
    "Every verb": ("21_systematic_or_likely",),
    "Minimal pairs": ("24_blimp",),
    "Meaning and expectation": ("30_inference", "31_roles", "32_negation"),
}
"""Diagnostics that belong in one picture."""

IN_WORDS = {"all": "all items", "H": "strong constraint", "L": "weak constraint", "both": "shuffled and truncated"}

OTHERS = "First steps and others"

COLUMNS = ["notebook", "group", "condition", "who", "kind", "value", "low", "high"]


def _sensitivity(rows: pd.DataFrame) -> pd.Series:
    quartile = rows["condition"].astype(str).str.contains("quartile|no cloze")
    return (rows["metric"] == "sensitivity") & ~quartile


CHOSEN: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "20_agreement": lambda rows: rows["metric"] == "TSE",
    "21_systematic_or_likely": lambda rows: (rows["side"] == "top") & (rows["cutoff"] == 1),
    "22_long_distance": lambda rows: rows["condition"].isin(["sense", "nonsense"]),
    "23_coordination_tense": lambda rows: ~rows["metric"].isin(["with the evidence", "without"]),
    "24_blimp": lambda rows: rows["metric"] == "accuracy",
    "30_inference": _sensitivity,
    "31_roles": _sensitivity,
    "32_negation": _sensitivity,
}
"""Which rows of a summary are conditions of the diagnostic: the rest are other metrics, controls, perturbations."""


def families(notebooks: Sequence[str]) -> dict[str, list[str]]:
    """Which of ``notebooks`` stand in one picture; those of no family in one of their own."""
    known = {name for members in FAMILIES.values() for name in members}
    every = {family: [name for name in members if name in notebooks] for family, members in FAMILIES.items()}
    every[OTHERS] = [name for name in notebooks if name not in known]
    return {family: members for family, members in every.items() if members}


def by_condition(found: pd.DataFrame, models: Sequence[str], notebooks: Sequence[str]) -> pd.DataFrame:
    """One row a condition and model, then those that others published: columns ``COLUMNS``.

    ``group``: what was measured; ``who``: label of a model, or who else; ``kind``: ``model``,
    ``published`` or ``people``. A published value stands only beside a condition that some model here has.
    """
    tables = []
    for notebook in notebooks:
        rows = summaries(found, notebook)
        if rows.empty:
            continue
        if notebook in ("00_start_here", "10_scoring_choices"):  # eight pairs; choices and no constructions
            continue
        rows = rows[CHOSEN[notebook](rows)] if notebook in CHOSEN else rows
        rows = rows.assign(notebook=notebook, who=rows["model"], kind="model", place=rows["model"].map(models.index))
        if "polarity" in rows:
            rows["condition"] += rows["polarity"].map(
                lambda polarity: f", {polarity}" if isinstance(polarity, str) else ""
            )
        rows = rows.sort_values("place", kind="stable")
        beside = published(notebook)
        known = set(zip(rows["condition"], rows["metric"], strict=True))
        beside = beside[[key in known for key in zip(beside["condition"], beside["metric"], strict=True)]]
        both = pd.concat([rows, beside], ignore_index=True)
        tables.append(both.assign(group=both["metric"].astype(str)))
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)
    table[["value", "low", "high"]] = table[["value", "low", "high"]].apply(pd.to_numeric, errors="coerce")
    table["condition"] = table["condition"].map(lambda condition: IN_WORDS.get(condition, condition))
    return table.loc[table["value"].notna(), COLUMNS].reset_index(drop=True)


def published(notebook: str) -> pd.DataFrame:
    """What papers report for a notebook's conditions: ``notebook``, ``condition``, ``metric``, ``who``, ``kind``, ``value``.

    The published items may be others than those scored here: the reports say which these are.
    """
    made = {
        "20_agreement": _newman, "21_systematic_or_likely": _newman, "22_long_distance": _gulordava,
        "24_blimp": _warstadt, "30_inference": lambda: _ettinger("CPRAG"), "31_roles": lambda: _ettinger("ROLE"),
        "32_negation": lambda: _ettinger("NEG"),
    }.get(notebook)  # fmt: skip
    table = made() if made else pd.DataFrame(columns=["condition", "metric", "who", "value"])
    kind = table["who"].map(lambda who: "people" if who == "people" else "published")
    return table.assign(
        notebook=notebook, kind=kind, who=table["who"].where(kind == "people", table["who"] + " (published)")
    )


def published_headlines(notebooks: Sequence[str]) -> pd.DataFrame:
    """The published values that stand beside a headline: of BLiMP the mean of its 67 paradigms. Columns as of ``published``."""
    tables = []
    for notebook in notebooks:
        table = published(notebook)
        if notebook == "24_blimp":
            table = table.groupby(["notebook", "metric", "who", "kind"], sort=False)["value"].mean().reset_index()
        elif notebook in ("30_inference", "31_roles"):
            table = table[table["condition"] == "all"]
        else:
            continue
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else published("")


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(DATA / "reference" / f"{name}.csv", keep_default_na=False)


def _newman() -> pd.DataFrame:
    return _read("newman2021").rename(columns={"template": "condition", "model": "who"})


def _gulordava() -> pd.DataFrame:
    table = _read("gulordava2018")
    whole = table[(table["pattern"] == "all") & (table["attractors"] == "all")]
    condition = whole["type"].map({"original": "sense", "generated": "nonsense"})
    return whole.assign(condition=condition, metric="accuracy", who=whole["model"])


def _warstadt() -> pd.DataFrame:
    return _read("warstadt2020").rename(columns={"paradigm": "condition", "measure": "metric"})


ETTINGER: Mapping[tuple[str, str], str] = {
    ("CPRAG-102", "expected preferred over both inappropriate"): "all",
    ("ROLE-88", "good preferred over role reversal"): "all",
    ("NEG-136-SIMP", "true preferred in affirmative"): "simple, affirmative",
    ("NEG-136-SIMP", "true preferred in negative"): "simple, negative",
    ("NEG-136-NAT natural", "true preferred in negative"): "natural, licensed, negative",
    ("NEG-136-NAT less natural", "true preferred in negative"): "natural, unlicensed, negative",
}


def _ettinger(diagnostic: str) -> pd.DataFrame:
    table = _read("ettinger2020")
    table = table[table["diagnostic"].str.startswith(diagnostic)]
    keys = list(zip(table["diagnostic"], table["measure"], strict=True))
    table = table.assign(condition=[ETTINGER.get(key) for key in keys], metric="sensitivity", who=table["model"])
    return table[table["condition"].notna()]
