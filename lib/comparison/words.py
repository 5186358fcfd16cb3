"""Sentences of the index: what there is, what differs, what nobody gets right, and how sure that is."""

from collections.abc import Mapping, Sequence

import pandas as pd

from lib.comparison.matrix import chance
from lib.stats import power_in_words

ITEM_COLUMNS = ("notebook", "judgement", "condition", "item", "context", "sentence", "instead")
NAMED = 3  # so many models are named one by one


def names(labels: Sequence[str]) -> str:
    """Models in a sentence."""
    return ", ".join(f"`{label.replace('`', '')}`" for label in labels) or "none"


def there_is(found: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]) -> str:
    """What has run, in a sentence or two, with what failed and what is missing."""
    states = found["state"].value_counts()
    here = found[found["label"].isin(models) & found["notebook"].isin(titles)]
    missing = len(models) * len(titles) - len(here)
    parts = [f"**{states.get('done', 0)}** {_plural(states.get('done', 0), 'report is', 'reports are')} there"]
    parts += [f"**{states[state]}** {state}" for state in ("failed", "damaged") if state in states]
    return f"{len(models)} models, {len(titles)} diagnostics: {', '.join(parts)}, {missing} not run."


def against_chance(found: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]) -> str:
    """For each diagnostic in a line: who is above what guessing gets, as far as the interval goes."""
    lines = []
    done = found[(found["state"] == "done") & found["low"].notna()].set_index(["notebook", "label"])
    for notebook, words in titles.items():
        level = chance(notebook)
        rows = done.loc[[(notebook, name) for name in models if (notebook, name) in done.index]]
        if level is None or rows.empty:
            continue
        above, below = rows["low"] > level, rows["high"] < level
        kinds = {
            "above what guessing gets": above,
            "below what guessing gets": below,
            "not to be told from guessing": ~above & ~below,
        }
        parts = [_so_many(rows.index[kind].get_level_values("label"), len(rows), what) for what, kind in kinds.items()]
        lines.append(f"* **{words}**: {'; '.join(part for part in parts if part)}.")
    return "\n".join(lines) or "No results yet: run `make reports`."


def _so_many(labels: Sequence[str], n: int, what: str) -> str:
    if not len(labels):
        return ""
    who = names(list(labels)) if len(labels) <= NAMED else f"{len(labels)} of {n} models"
    return f"{who} {_plural(len(labels), 'is', 'are')} {what}"


def differences(pairs: pd.DataFrame, titles: Mapping[str, str]) -> str:
    """For each diagnostic in a line: how many comparisons show a difference, the largest of them, and what could be seen."""
    lines = []
    for (notebook, judgement), rows in pairs.groupby(["notebook", "judgement"], sort=False):
        believed = rows[rows["beyond_chance"]]
        what = f"{titles.get(notebook, notebook)} ({judgement})"
        if believed.empty:
            said = f"no difference beyond chance in {_comparisons(len(rows))}"
        else:
            largest = believed.loc[believed["difference"].abs().idxmax()]
            ahead, behind = (largest["first"], largest["second"])[:: 1 if largest["difference"] > 0 else -1]
            low, high = sorted(largest[["low", "high"]].abs())
            said = (
                f"{len(believed)} of {_comparisons(len(rows))} {_plural(len(believed), 'shows', 'show')} a difference; the "
                f"largest: {names([ahead])} over {names([behind])} by {abs(largest['difference']):.2f} [{low:.2f}, {high:.2f}]"
            )
        lines.append(f"* **{what}**: {said}. {_power(rows, len(pairs))}")
    return "\n".join(lines) or "No two models have results on the same items yet."


def _power(rows: pd.DataFrame, family: int) -> str:
    n = int(rows["n"].min())
    if "odds_ratio" in rows and rows["only_first"].notna().any():
        return power_in_words(n, family)
    return f"These are scores of {n:,} contexts; the interval says what can be seen."


def _comparisons(n: int) -> str:
    return f"{n:,} {_plural(n, 'comparison', 'comparisons')}"


def _plural(n: int, one: str, many: str) -> str:
    return one if n == 1 else many


def for_reading(pairs: pd.DataFrame, titles: Mapping[str, str], most: int) -> pd.DataFrame:
    """Comparisons as a page shows them: those beyond chance first, then by size; at most ``most`` rows."""
    order = pairs.assign(size=pairs["difference"].abs()).sort_values(
        ["beyond_chance", "size"], ascending=False, kind="stable"
    )
    shown = order.head(most)
    several = pairs.groupby("notebook")["judgement"].nunique()
    table = pd.DataFrame({
        "diagnostic": [titles.get(row.notebook, row.notebook)
                       + (f", {row.judgement.rsplit(', ')[-1]}" if several[row.notebook] > 1 else "")
                       for row in shown.itertuples()],
        "first": shown["first"], "second": shown["second"],
        "difference": [f"{row.difference:+.2f}" + ("" if pd.isna(row.low) else f" [{row.low:+.2f}, {row.high:+.2f}]")
                       for row in shown.itertuples()],
        "alone right": _alone(shown), "odds": _effect(shown),
        "items": [f"{row.n:,} in {row.clusters:,}" for row in shown.itertuples()],
        "p": shown["p_holm"].map(_p_value), "differ": shown["beyond_chance"].map({True: "yes", False: "not shown"}),
    })  # fmt: skip
    return table.set_index("diagnostic")


def _alone(rows: pd.DataFrame) -> list[str]:
    """Items that one of two models alone gets right, of the first and of the second."""
    rows = rows.reindex(columns=["only_first", "only_second"])
    return ["" if pd.isna(one) else f"{one:.0f} : {other:.0f}" for one, other in rows.itertuples(index=False)]


def _effect(rows: pd.DataFrame) -> list[str]:
    """The odds ratio of the items that tell two models apart; of scores Cohen's d."""
    rows = rows.reindex(columns=["odds_ratio", "odds_low", "odds_high", "effect"])
    return [
        (f"d = {row.effect:.2f}" if pd.notna(row.effect) else "") if pd.isna(row.odds_ratio)
        else f"{row.odds_ratio:.2g} ({row.odds_low:.2g} to {row.odds_high:.2g})".replace("inf", "∞")
        for row in rows.itertuples()
    ]  # fmt: skip


def _p_value(value: float) -> str:
    if pd.isna(value):
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}"


# ---- items


def nobody_right(items: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Items that no model gets right, of at least two that could be scored on them."""
    values = items.reindex(columns=list(models))
    return items[(values.notna().sum(axis=1) > 1) & (values.max(axis=1) == 0)]


def how_many_nobody(items: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]) -> str:
    """For each diagnostic in a line: how many items nobody gets right, and where most of them are."""
    lines = []
    wrong = nobody_right(items, models)
    for (notebook, judgement), rows in items.groupby(["notebook", "judgement"], sort=False):
        asked = int((rows.reindex(columns=list(models)).notna().sum(axis=1) > 1).sum())
        of_these = wrong[(wrong["notebook"] == notebook) & (wrong["judgement"] == judgement)]
        if not asked:
            continue
        where = of_these["condition"].value_counts()
        most = f", most of them in *{where.index[0]}* ({where.iloc[0]})" if len(where) > 1 else ""
        lines.append(f"* **{titles.get(notebook, notebook)}** ({judgement}): {len(of_these)} of {asked:,} items{most}.")
    return "\n".join(lines) or "Needs the results of two models on the same items."


def item_table(items: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str], each: int) -> pd.DataFrame:
    """Items as a page shows them, at most ``each`` of a diagnostic: first those over which the models are most divided.

    A tick: right; a cross: wrong; a dash: no score.
    """
    if items.empty:
        return pd.DataFrame()
    here = [name for name in models if name in items]
    values = items[here]
    share = values.mean(axis=1)
    divided = items.assign(divided=(share - 0.5).abs().fillna(1), share=share)
    chosen = divided.sort_values(["divided", "share"], kind="stable").groupby("notebook", sort=False).head(each)
    chosen = chosen.sort_values(["notebook", "divided"], kind="stable")
    marks = values.loc[chosen.index].map(lambda value: "–" if pd.isna(value) else "✓" if value else "✗")
    words = pd.DataFrame({
        "diagnostic": [titles.get(name, name) for name in chosen["notebook"]], "condition": chosen["condition"],
        "right": chosen["sentence"], "instead of": chosen["instead"],
    }, index=chosen.index)  # fmt: skip
    return words.join(marks).set_index("diagnostic")


def spread(items: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most ``most`` items, the same number of each diagnostic as far as there are, in their order."""
    turn = items.groupby(["notebook", "judgement"], sort=False).cumcount()
    return items.loc[turn.sort_values(kind="stable").index[:most]].sort_index()


def column_of(name: str) -> str:
    """The name of an item table's column: of a model's answers so that it can be no other column."""
    return name if name in ITEM_COLUMNS else f"correct ({name})"
