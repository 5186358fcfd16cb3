"""Models on the same items: who gets which right, and where they differ beyond chance."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lib.comparison.collected import again
from lib.results import is_whole
from lib.stats import beyond_chance, compare_models, compare_scores, holm

KEY = ["judgement", "condition", "item"]
SHOWN = ["context", "candidate", "right", "good", "bad", "alternative", "sentence_good", "sentence_bad"]
READ = ["item", "condition", "judgement", "correct", "margin", "metric", "score", "text", *SHOWN]
ONE_OF_SEVERAL = {"10_scoring_choices": "as in the parameters"}
"""The condition to compare, where the items stand under several ways to score them."""

PRECISION = {"dtype", "mass_arithmetic"}
"""Choices that are the model's and change no question."""

SAME_QUESTION = {"masked-target": "target-word"}
"""Choices that a family of models needs to be asked the same."""

CLUSTERS = ("context", "condition", "item")


class Compared(NamedTuple):
    """``pairs``: a row for each comparison of two models; ``items``: a row an item, with a column for each label;
    ``untold``: sentences on what could not be compared."""

    pairs: pd.DataFrame
    items: pd.DataFrame
    untold: list[str]


def compare(found: pd.DataFrame, models: Sequence[str], cluster: str = "context", seed: int = 0) -> Compared:
    """Every two models on every diagnostic that both have, over the same items asked in the same way.

    ``found`` as from ``collect``; ``models``: labels in their order; ``cluster``: which items are drawn together in the
    interval: those of one ``context``, of one ``condition`` (template, paradigm), or every ``item`` alone.
    ``pairs`` has the columns of ``stats.compare_models`` (of ``compare_scores`` for scores), ``notebook``, ``judgement`` (what
    was right), ``cluster``, ``beyond_chance``; ``p_holm`` is corrected for all comparisons of the table: one family.
    """
    pairs, items, untold = [], [], []
    for notebook, rows in found[found["state"] == "done"].groupby("notebook", sort=True):
        rows = rows.set_index("label").reindex([name for name in models if name in set(rows["label"])])
        tables, unread = _tables(rows)
        untold += [f"{notebook}: of `{label}` {reason}." for label, reason in unread.items()]
        untold += [f"{notebook}: {sentence}" for sentence in differing(rows.loc[list(tables)])]
        apart = {pair for pair in combinations(tables, 2) if why_not(*(rows.loc[label, "record"] for label in pair))}
        for judgement, values, texts in _wide(tables):
            made = _pairs(values, texts, cluster, seed, apart)
            pairs.append(made.assign(notebook=notebook, judgement=judgement, cluster=cluster))
            untold += [f"{notebook} ({judgement}): {sentence}" for sentence in strangers(values, apart)]
            if not _graded(values):
                items.append(texts.assign(notebook=notebook).join(values))
    table = (
        pd.concat(pairs, ignore_index=True)
        if pairs
        else compare_models(pd.DataFrame()).assign(notebook="", judgement="")
    )
    table["p_holm"] = holm(table["p_value"])
    together = (
        pd.concat(items, ignore_index=True)
        if items
        else pd.DataFrame(columns=["notebook", *KEY, "context", "sentence", "instead"])
    )
    return Compared(table.assign(beyond_chance=beyond_chance(table)), together, untold)


def _tables(rows: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Judged items by label, and by label why there are none."""
    tables, unread = {}, {}
    for row in rows.itertuples():
        try:
            tables[row.Index] = judged(row)
        except ValueError as error:
            unread[row.Index] = str(error)
    return tables, unread


def judged(row: Any) -> pd.DataFrame:
    """The judged items of one result: ``KEY``, ``value`` (1, 0, NaN; or a score), ``sentence``, ``instead``, ``context``.

    Raises ValueError, in words, where there is no table to read, or none that tells items apart.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not is_whole(row.items, row.record):
            raise OSError
        known = set(pq.read_schema(row.items).names)
        table = pq.read_table(row.items, columns=[name for name in READ if name in known]).to_pandas()
    except (OSError, pa.ArrowException):
        raise ValueError(
            f"the table of items {row.items.name} is missing or not as it was written; {again(row.items)}"
        ) from None
    if row.notebook in ONE_OF_SEVERAL and "condition" in known:
        table = table[table["condition"] == ONE_OF_SEVERAL[row.notebook]]
    if "correct" in known:
        value = table["correct"]
    elif "score" in known:  # of contexts: as the model sees them, of the headline's metric
        table = table[table["metric"] == row.metric] if "metric" in known else table
        value, table = table["score"], table.assign(item=table["text"] if "text" in known else table["item"])
    elif "margin" in known:
        value = (table["margin"] > 0).astype(float).where(table["margin"].notna())
    else:
        raise ValueError("the items do not say which are right")
    judgement = table["judgement"] if "judgement" in known else pd.Series(str(row.metric), index=table.index)
    texts = {name: table[name].fillna("").astype(str) if name in table else "" for name in SHOWN}
    value = pd.to_numeric(value, errors="coerce").to_numpy(dtype=float)
    made = pd.DataFrame({"judgement": judgement, "value": value}, index=table.index).assign(
        condition=table["condition"].astype(str), item=table["item"].astype(str), context=texts["context"],
        **_sentences(pd.DataFrame(texts, index=table.index)),
    )  # fmt: skip
    made = made[made["judgement"].fillna("") != ""]
    if made.empty or made.duplicated(KEY).any():
        raise ValueError("the items have no names that tell them apart" if len(made) else "no item was judged")
    return made


def _sentences(texts: pd.DataFrame) -> dict[str, np.ndarray]:
    """``sentence``: the text with what is right in it; ``instead``: what would be wrong."""
    candidate = texts["candidate"].where(texts["candidate"] != "", texts["good"])
    put = (texts["context"] + " " + candidate + " " + texts["right"]).str.strip()
    whole = texts["sentence_good"].where(candidate == "", candidate.where(candidate == texts["context"], put))
    alternative = texts["alternative"].where(texts["alternative"] != "", texts["bad"])
    return {
        "sentence": whole.to_numpy(),
        "instead": alternative.where(alternative != "", texts["sentence_bad"]).to_numpy(),
    }


def _wide(tables: dict[str, pd.DataFrame]) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """For each judgement: values (a row an item, a column a label), and beside them what the items are."""
    if not tables:
        return
    every = pd.concat(tables, names=["label"]).reset_index("label")
    for judgement, part in every.groupby("judgement", sort=False):
        values = part.pivot(index=["condition", "item"], columns="label", values="value").reindex(columns=list(tables))
        texts = part.drop_duplicates(["condition", "item"]).set_index(["condition", "item"])
        order = texts.index  # as the first model has them
        texts = texts[["judgement", "context", "sentence", "instead"]].reset_index()
        yield str(judgement), values.reindex(order).reset_index(drop=True).rename_axis(columns=None), texts


def _graded(values: pd.DataFrame) -> bool:
    return not (values.isna() | values.isin([0, 1])).all(axis=None)


def _pairs(values: pd.DataFrame, texts: pd.DataFrame, cluster: str, seed: int, apart: set) -> pd.DataFrame:
    labels = None if cluster == "item" else texts[cluster].tolist()
    table = (compare_scores if _graded(values) else compare_models)(values.dropna(axis=1, how="all"), labels, seed)
    comparable = [(row.first, row.second) not in apart and row.n > 0 for row in table.itertuples()]
    return table[np.array(comparable, dtype=bool)]


def strangers(values: pd.DataFrame, apart: set) -> list[str]:
    """In words: models that share no item which both could score, as contexts read on one side are none of those read on two.

    ``values``: a row an item, a column a label, NaN where there is no score; pairs of labels in ``apart`` are told elsewhere.
    """
    scored = values.notna().astype(int)
    shared = scored.T @ scored
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in (label for label in shared if shared.loc[label, label]):
        others = tuple(
            other
            for other in shared
            if shared.loc[other, other] and not shared.loc[one, other] and not {(one, other), (other, one)} & apart
        )
        groups.setdefault(others, []).append(one)
    told = {frozenset([others, tuple(ones)]): (ones, others) for others, ones in groups.items() if others}
    return [
        f"none of the items scored with {_names(ones)} was scored with {_names(others)}. They are not compared."
        for ones, others in told.values()
    ]


def _names(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


# ---- the same question?


def why_not(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Why two results of a notebook cannot be compared; "" where they can: same items, same sample, same choices.

    A choice counts where both have it: a masked model has no start token, a causal one no full stop.
    """
    mine, theirs = _asked(one), _asked(other)
    return next((name for name in mine if name in theirs and mine[name] != theirs[name]), "")


def differing(rows: pd.DataFrame) -> list[str]:
    """In words, by aspect: which models of a notebook were asked what, where they were not all asked the same."""
    asked = {row.Index: _asked(row.record) for row in rows.itertuples()}
    sentences = []
    for name in dict.fromkeys(name for found in asked.values() for name in found):
        values = pd.Series({label: found[name] for label, found in asked.items() if name in found})
        if values.nunique() > 1:
            groups = [f"{_words(name, value)} for {_names(values.index[values == value])}"
                      for value in values.unique()]  # fmt: skip
            sentences.append(f"{name} is {'; '.join(groups)}. Models across these are not compared.")
    return sentences


def _asked(record: dict[str, Any]) -> dict[str, str]:
    data, choices = record["data"], record.get("choices", {})
    items = "; ".join(f"{name} {value}" for name, value in sorted(data.get("sha256", {}).items()))
    found = {"the data": f"{data['name']} [{items}]", "the sample": str(data["sample"])}
    kept = {f"`{name}`": str(value) for name, value in choices.items() if name not in PRECISION and str(value)}
    return found | {name: SAME_QUESTION.get(value, value) for name, value in kept.items()}


def _words(name: str, value: str) -> str:
    """A value in a sentence; of data the name, and of the checksums only the beginning of their own."""
    if name != "the data":
        return f"*{value}*"
    import hashlib

    words, _, items = value.partition(" [")
    return f"{words} (version {hashlib.sha256(items.encode()).hexdigest()[:6]})"
