"""Items perturbed (Ettinger 2020, sections 7 and 8): how much of a context does a prediction need?

Pure functions from items (``lib.cloze.items``) to items with other contexts, so that the drawn strings are in the table and
are stored with the results (``lib.cloze.answers.kept``). What is drawn depends on the seed, the draw and the sentence alone:
neither the order of the items nor what else is asked changes it.
"""

import hashlib
import re

import numpy as np
import pandas as pd

from lib.errors import LitmusError

DRAWS = 100
CLOSING = ".!?’”'\""
NOUNS = re.compile(r"\bwhich (?P<object>.+) the (?P<subject>\S+(?: \S+)*?) had\b")


def shuffle_first(items: pd.DataFrame, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Inference items with the words of sentence 1 in random order, ``draws`` times; ``draw`` counts from 0.

    Full stops are taken out of the sentence, wherever they stand, and one is put at its end, as in the released code (which
    draws three times, without a seed). All candidates of an item share a draw.
    """
    _check(items, "sentence_1")
    if draws < 1:
        raise LitmusError(f"{draws} draws make no sense; draw at least once.")
    tables = []
    for draw in range(draws):
        shuffled = {sentence: _shuffled(sentence, draw, seed) for sentence in items["sentence_1"].unique()}
        tables.append(_with_sentences(items, first=items["sentence_1"].map(shuffled)).assign(draw=draw))
    return pd.concat(tables, ignore_index=True)


def truncate_second(items: pd.DataFrame) -> pd.DataFrame:
    """Inference items with the last two words of sentence 2 only. Of shuffled items it makes the third perturbation: both."""
    _check(items, "sentence_2")
    return _with_sentences(items, second=items["sentence_2"].map(lambda sentence: " ".join(sentence.split()[-2:])))


def leave_out_each(items: pd.DataFrame) -> pd.DataFrame:
    """Inference items without one word of sentence 1, each word in turn: ``left_out`` is the word, ``draw`` its place from 0.

    What closes the sentence stays, and the first word keeps its capital: only a word is missing.
    """
    _check(items, "sentence_1")
    rows = []
    for row in items.to_dict("records"):
        sentence = row["sentence_1"].rstrip(CLOSING)
        closing, words = row["sentence_1"][len(sentence) :], sentence.split()
        for at, word in enumerate(words):
            rest = " ".join(words[:at] + words[at + 1 :]).rstrip(",;:")
            first = f"{rest[:1].upper()}{rest[1:]}{closing}"
            found = {"sentence_1": first, "context": f"{first} {row['sentence_2']}", "draw": at}
            rows.append(row | found | {"left_out": word.strip(",;:")})
    return pd.DataFrame(rows)


def hide_object(items: pd.DataFrame) -> pd.DataFrame:
    """Role items with a generic object: "which swimmer the lifeguard had" becomes "which one the lifeguard had"."""
    return _with_nouns(items, lambda found: f"which one the {found['subject']} had")


def hide_subject(items: pd.DataFrame) -> pd.DataFrame:
    """Role items with a generic subject: "which swimmer the lifeguard had" becomes "which swimmer the other had"."""
    return _with_nouns(items, lambda found: f"which {found['object']} the other had")


def hide_both(items: pd.DataFrame) -> pd.DataFrame:
    """Role items with both nouns generic: the contexts a and b of a pair are then one, and their comparison is undefined."""
    return _with_nouns(items, lambda _: "which one the other had")


def _shuffled(sentence: str, draw: int, seed: int) -> str:
    words = sentence.replace(".", "").split()
    key = int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:8], "big")
    return " ".join(np.random.default_rng([seed, draw, key]).permutation(words)) + "."


def _with_sentences(
    items: pd.DataFrame, first: pd.Series | None = None, second: pd.Series | None = None
) -> pd.DataFrame:
    first = items["sentence_1"] if first is None else first
    second = items["sentence_2"] if second is None else second
    return items.assign(sentence_1=first, sentence_2=second, context=first + " " + second)


def _with_nouns(items: pd.DataFrame, written) -> pd.DataFrame:
    found = [NOUNS.search(context) for context in items["context"]]
    for item, context, match in zip(items["item"], items["context"], found, strict=True):
        if not match:
            raise LitmusError(f"Item {item}: '{context}' holds no 'which ... the ... had', so no noun can be hidden.")
    contexts = [
        context[: match.start()] + written(match) + context[match.end() :]
        for context, match in zip(items["context"], found, strict=True)
        if match
    ]
    return items.assign(context=contexts)


def _check(items: pd.DataFrame, column: str) -> None:
    if empty := [item for item, text in zip(items["item"], items[column], strict=True) if not text]:
        raise LitmusError(f"Item {empty[0]} has no {column}: only inference items have two sentences.")
