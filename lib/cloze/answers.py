"""What a model answers to the items of the psycholinguistic diagnostics: one table that every metric is made from.

The columns of the items (``lib.cloze.items``) and

``log_probability`` (natural log), ``probability``, ``rank`` (1 = likeliest, ties share the better rank) and ``place`` (ties
share the worse one: a word is among the likeliest k for sure if its place is at most k) of the candidate; ``scorable`` and
``reason`` why not; ``expected_rank``, ``expected_place``, ``expected_scorable`` and ``expected_reason``: the best of the
expected words that can be scored;
``context_number``: equal where the model sees the same context; ``ranks_to``: how far down ranks are known (infinite for
models, the length of the list for recorded predictions);
``top_ids``, ``top_pieces``, ``top_kinds``, ``top_probabilities``: the likeliest pieces, tuples; ``top_tie``: the first two are
equally likely. A kind is ``word`` (a whole vocabulary item where a word begins), ``piece`` (anything else: the rest of a word,
punctuation, a special token) or ``bytes`` (part of a character).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from lib.cloze.items import forms, gaps
from lib.models.protocol import LanguageModel, StartToken
from lib.scoring import Fills, TargetPolicy, fill
from lib.store import Store

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
WHITE_SPACE = set("ĠĊĉč▁ \n\t")  # as vocabularies spell it
TOP = ["top_ids", "top_pieces", "top_kinds", "top_probabilities"]


class Answering(Protocol):
    """Scores made elsewhere (``lib.cloze.recorded``): what holds answers to items already."""

    family: str

    def answers(self, items: pd.DataFrame) -> pd.DataFrame:
        """The table of answers described above."""


def ask(
    model: Any,
    items: pd.DataFrame,
    start_token: StartToken = "never",
    target_policy: TargetPolicy = "single_token",
    full_stop: bool = True,
    store: Store | None = None,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The answers of ``model`` to ``items``, and the choices that they depend on.

    ``model``: any ``LanguageModel``, or recorded scores (``lib.cloze.recorded.Recorded``), whose choices were made elsewhere.
    ``full_stop``: a masked model reads one behind the gap, as in running text; others never see it.
    """
    if model.family == "recorded":
        return model.answers(items), {"start_token": "as recorded", "target_policy": "as recorded"}
    fills = fill(model, gaps(items, full_stop), forms(items), start_token, target_policy, store=store)
    return answers(model, items, fills), {**fills.choices, "full_stop": "yes" if full_stop else "no"}


def answers(model: LanguageModel, items: pd.DataFrame, fills: Fills) -> pd.DataFrame:
    """The table of answers from ``fills``, which were asked for ``gaps(items)`` and ``forms(items)``."""
    rows = np.arange(len(items))
    of_candidates = _read_off(fills, rows, list(items["candidate"]))
    listed = [(row, word) for row, words in enumerate(items["expected"]) for word in words]
    of_expected = _read_off(fills, np.array([row for row, _ in listed], dtype=int), [word for _, word in listed])
    top = _tops(model, fills).iloc[fills.context_of].reset_index(drop=True)
    return assemble(items, fills.context_of, of_candidates, of_expected, top.assign(ranks_to=np.inf))


def assemble(
    items: pd.DataFrame,
    context_number: np.ndarray,
    of_candidates: pd.DataFrame,
    of_expected: pd.DataFrame,
    top: pd.DataFrame,
) -> pd.DataFrame:
    """Put a table of answers together.

    ``of_candidates``: ``log_probability``, ``rank``, ``place`` and ``reason``, a row an item; ``of_expected``: the same with
    ``row``, a row for each expected word of each item; ``top``: ``ranks_to`` and the columns of ``TOP``, a row an item.
    """
    table = items.reset_index(drop=True)
    table["log_probability"] = of_candidates["log_probability"].astype(float)
    table["probability"] = np.exp(table["log_probability"])
    table["rank"], table["place"] = of_candidates["rank"], of_candidates["place"]
    table["reason"] = of_candidates["reason"]
    table["scorable"] = of_candidates["reason"] == ""
    known = of_expected[of_expected["reason"] == ""].groupby("row")[["rank", "place"]].min().reindex(table.index)
    reasons = of_expected.groupby("row")["reason"].first().reindex(table.index, fill_value="no_expected_word")
    table["expected_rank"], table["expected_place"] = known["rank"], known["place"]
    table["expected_scorable"] = known["place"].notna()
    table["expected_reason"] = reasons.where(~table["expected_scorable"], "")
    table["context_number"] = np.asarray(context_number, dtype=int)
    for column in [*TOP, "ranks_to"]:
        table[column] = top[column].to_numpy()
    table["top_tie"] = [len(found) > 1 and found[0] == found[1] for found in table["top_probabilities"]]
    return table


def kept(answers: pd.DataFrame, perturbed: Mapping[str, pd.DataFrame] | None = None) -> pd.DataFrame:
    """Answers as results keep them (``lib.results.write``): one row a candidate, those to perturbed items below the others.

    ``perturbed``: answers by the name of a perturbation. Columns: those of the answers and ``perturbation`` (``none`` for items
    as they stand), ``draw`` (missing where there is one version only), ``tie`` (of the two likeliest pieces); instead of lists,
    which outside tools could not read, ``expected`` (words between ``|``), ``top_piece``, ``top_probability`` (the likeliest).
    """
    named = {"none": answers, **(perturbed or {})}
    table = pd.concat([part.assign(perturbation=name) for name, part in named.items()], ignore_index=True)
    table["draw"] = table["draw"].astype("Int64") if "draw" in table else pd.array([pd.NA] * len(table), dtype="Int64")
    table["top_piece"] = [
        shown(pieces[0], kinds[0]) if pieces else ""
        for pieces, kinds in zip(table["top_pieces"], table["top_kinds"], strict=True)
    ]
    table["top_probability"] = [found[0] if found else np.nan for found in table["top_probabilities"]]
    table["expected"] = table["expected"].map("|".join)
    if "left_out" in table:
        table["left_out"] = table["left_out"].fillna("")
    return table.drop(columns=TOP).rename(columns={"top_tie": "tie"})


def top_predictions(answers: pd.DataFrame, k: int = 5) -> pd.DataFrame:
    """The likeliest k pieces at every distinct context: ``item``, ``condition``, ``context``, ``place``, ``piece``, ``kind``,
    ``probability``, and ``expected`` (whether the piece is an expected word, where a word begins)."""
    rows = []
    for row in answers.drop_duplicates("context_number").itertuples():
        tops = zip(row.top_pieces[:k], row.top_kinds, row.top_probabilities, strict=False)
        for place, (piece, kind, probability) in enumerate(tops, start=1):
            rows.append([row.item, row.condition, row.context, place, shown(piece, kind), kind, probability,
                         kind == "word" and piece in row.expected])  # fmt: skip
    columns = ["item", "condition", "context", "place", "piece", "kind", "probability", "expected"]
    return pd.DataFrame(rows, columns=columns)


def side_by_side(answers: pd.DataFrame, conditions: Sequence[str], k: int = 5) -> pd.DataFrame:
    """The likeliest k pieces of the ``conditions`` of each item beside each other: one row an item and place.

    Columns: ``item``, ``place``, and ``context (c)``, ``piece (c)``, ``probability (c)`` for each condition c.
    """
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in answers[answers["condition"].isin(conditions)].itertuples():
        tops = zip(row.top_pieces[:k], row.top_kinds, row.top_probabilities, strict=False)
        for place, (piece, kind, probability) in enumerate(tops, start=1):
            rows.setdefault((row.item, place), {"item": row.item, "place": place}).update({
                f"context ({row.condition})": row.context,
                f"piece ({row.condition})": shown(piece, kind),
                f"probability ({row.condition})": probability,
            })  # fmt: skip
    columns = [f"{what} ({c})" for c in conditions for what in ("context", "piece", "probability")]
    return pd.DataFrame(rows.values(), columns=["item", "place", *columns])


def shown(piece: str, kind: str) -> str:
    """A piece as a page shows it: words bare, the rest of a word behind a hyphen; white space and parts of characters named."""
    if kind == "bytes":
        return f"{piece} (part of a character)"
    if set(piece) <= WHITE_SPACE:
        return f"{piece} (white space)"
    return f"-{piece.removeprefix('##')}" if kind == "piece" and piece.removeprefix("##")[:1].isalnum() else piece


def place_of(rank: np.ndarray, log_probability: np.ndarray, likeliest: np.ndarray) -> np.ndarray:
    """The worse rank among ties: ``rank`` and all that are as likely, as far as the list of the likeliest shows them.

    ``likeliest``: log-probabilities, shape (words, list). A tie that runs to the end of the list may go on: infinite.
    """
    same = likeliest == log_probability[:, None]
    tied = same.sum(1)
    return np.where((tied > 1) & same[:, -1], np.inf, rank + np.maximum(tied, 1) - 1)


def _read_off(fills: Fills, rows: np.ndarray, words: list[str]) -> pd.DataFrame:
    """Log-probability, rank, place and reason of one word at each of ``rows`` (of the gaps asked)."""
    contexts, columns = fills.context_of[rows], fills.columns(words)
    log_probability = fills.values["log_probability"][contexts, columns]
    scored = ~np.isnan(log_probability)
    rank = np.where(scored, fills.values["rank"][contexts, columns].astype(float), np.nan)
    place = place_of(rank, log_probability, fills.values["likeliest_log_probability"][contexts])
    by_position = {position: fills.forms[f"reason_{position}"].to_numpy() for position in ("start", "middle")}
    reasons = [
        fills.context_reason[context] or by_position["middle" if fills.contexts[context].left else "start"][column]
        for context, column in zip(contexts, columns, strict=True)
    ]
    return pd.DataFrame(
        {"row": rows, "log_probability": log_probability, "rank": rank, "place": place, "reason": reasons}
    )


def _tops(model: LanguageModel, fills: Fills) -> pd.DataFrame:
    """The columns of ``TOP``, one row a context."""
    ids = [int(i) for i in np.unique(fills.values["likeliest"]) if i >= 0]
    pieces = dict(zip(ids, model.spelling(ids), strict=True))
    kinds = {i: _kind(model, i, piece) for i, piece in pieces.items()}
    rows = []
    for found, log_probabilities in zip(
        fills.values["likeliest"], fills.values["likeliest_log_probability"], strict=True
    ):
        listed = [int(i) for i in found if i >= 0]
        probabilities = tuple(float(p) for p in np.exp(log_probabilities[: len(listed)].astype(float)))
        rows.append([tuple(listed), tuple(pieces[i] for i in listed), tuple(kinds[i] for i in listed), probabilities])
    return pd.DataFrame(rows, columns=TOP)


def _kind(model: LanguageModel, token: int, piece: str) -> str:
    """A word is what the model itself would write as this one item behind a space."""
    if REPLACEMENT in piece:
        return "bytes"
    return "word" if model.word(piece, "middle").ids == (token,) else "piece"
