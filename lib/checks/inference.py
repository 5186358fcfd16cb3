"""Checks of the exercises to ``30_inference``."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from lib.checks import NotYet, a_number, call, exercise, judge, own_items, own_words, prediction
from lib.cloze import metrics
from lib.cloze.answers import ask
from lib.cloze.items import INFERENCE, read_inference
from lib.models.protocol import LanguageModel

THRESHOLD = 0.01
DIRECTIONS = ("up or stays", "down or stays", "either way")


@exercise(1)
def accuracy_at(function: Any) -> str:
    """Accuracy@k over lists of predictions with pieces of words, with a tie, and with an answer at place k itself."""
    drinks = [("tea", "word", 0.3), ("wine", "word", 0.2), ("milk", "word", 0.1), ("beer", "word", 0.05)]
    animals = [("dog", "word", 0.4), ("fox", "word", 0.2), ("cat", "word", 0.1), ("bird", "word", 0.05)]
    colours = [("red", "word", 0.5), ("blue", "word", 0.2), ("green", "word", 0.1), ("white", "word", 0.05)]
    lists, expected = [drinks, animals, colours], ["wine", "cat", "black"]
    judge(a_number(call(function, lists, expected, 3)), 2 / 3, {
        "You leave out the place k itself: the word at place k is among the likeliest k.":
            _accuracy(lists, expected, 2),
        "You look at the first prediction only, or compare a word with whole tuples (piece, kind, probability); an "
        "expected word may stand as the piece at any of the first k places.": 0,
        "You leave out the context whose word is nowhere in the list. It is not among the likeliest k, and is counted.": 1,
        "You count the contexts; a share is that number divided by the number of contexts.": 2,
    }, "three contexts, whose words stand at place 2, at place 3 and nowhere, and k = 3")  # fmt: skip
    judge(a_number(call(function, lists, ["beer", "cat", "white"], 3)), 1 / 3, {
        "You look at all predictions, or at one place more than k: look at the first k.": 1,
    }, "three contexts, whose words stand at the places 4, 3 and 4, and k = 3")  # fmt: skip
    lamps = [("tea", "word", 0.3), ("light", "piece", 0.2), ("lamp", "word", 0.1), ("light", "word", 0.05)]
    plurals = [("dog", "word", 0.4), ("s", "piece", 0.2), ("cat", "word", 0.1), ("bird", "word", 0.05)]
    lists, expected = [drinks, lamps, plurals], ["wine", "light", "bird"]
    judge(a_number(call(function, lists, expected, 3)), 1 / 3, {
        "You let the end of another word count: *light* is at place 2 as a piece, as in *moonlight*, and at place 4 "
        "as the word that is expected.": _accuracy(lists, expected, 3, pieces="count"),
        "You take the pieces out before you count places. The model finds them likely too: a place is a place.":
            _accuracy(lists, expected, 3, pieces="skip"),
    }, "three contexts with pieces of words in their lists, and k = 3")  # fmt: skip
    seats = [("sofa", "word", 0.2), ("bed", "word", 0.2), ("chair", "word", 0.2), ("table", "word", 0.1)]
    lists, expected = [drinks, seats], ["wine", "bed"]
    for k, right in ((2, 1 / 2), (3, 1)):
        judge(a_number(call(function, lists, expected, k)), right, {
            "You count an expected word in a tie by where it happens to stand in the list. *sofa*, *bed* and *chair* "
            "are equally probable, so *bed* is among the likeliest 3 for sure, and among the likeliest 2 only by "
            "luck.": 1,
            "You leave out a word in a tie altogether. Three words are at least as probable as *bed*, itself among "
            "them, so its place is 3.": 1 / 2,
        }, f"two contexts, in one of which three words share the first place, and k = {k}")  # fmt: skip
    return "A place is a place, a piece of another word is no answer, and a word in a tie comes last in it."


def _accuracy(lists: list, expected: list[str], k: int, pieces: str = "no answer") -> float:
    """Accuracy@k, right as called by default and otherwise with a common mistake about pieces."""
    right = 0
    for predictions, word in zip(lists, expected, strict=True):
        shown = [found for found in predictions if pieces != "skip" or found[1] == "word"]
        own = [p for piece, kind, p in shown if piece == word and (kind == "word" or pieces == "count")]
        right += bool(own) and sum(p >= own[0] for _, _, p in shown) <= k
    return right / len(lists)


@exercise(2)
def in_order(function: Any, expected: Any, answers: pd.DataFrame) -> str:
    """Share of items in the order expected > within > between, by two thresholds; then on ``answers``."""
    expected = prediction(expected, DIRECTIONS)
    table = np.array([[0.5, 0.2, 0.1], [0.3, 0.2, 0.195], [0.4, 0.1, 0.1], [0.2, 0.3, 0.1], [0.3, 0.05, 0.2],
                      [0.108, 0.1, 0.05], [0.105, 0.1, 0.097], [0.1, 0.3, 0.2], [0.01, 0.2, 0.1],
                      [np.nan, 0.2, 0.1], [0.5, np.nan, 0.1]])  # fmt: skip
    first, within, between = table.T
    scored = np.isfinite(table).all(1)
    for threshold in (0.0, THRESHOLD):
        in_first, in_second = first - within > threshold, within - between > threshold
        order, both = in_first & in_second, in_first & (first - between > threshold)
        judge(a_number(call(function, first, within, between, threshold)), order[scored].mean(), {
            "You do not use the threshold: each step must be larger than it.":
                ((first > within) & (within > between))[scored].mean(),
            "You count an item with a word without a score as a failure. It leaves the share and is told apart.":
                order.mean(),
            "You count ties as right order. In the third item *within* and *between* are equally probable.":
                ((first >= within) & (within >= between))[scored].mean(),
            "You ask only if the expected word wins: that is sensitivity. *within* must also be above *between*.":
                both[scored].mean(),
            "You ask only for *within* above *between*. The expected word must also be above *within*.":
                in_second[scored].mean(),
            "You ask the expected word alone to win by the threshold. Both steps must be larger than it.":
                (in_first & (within > between))[scored].mean(),
            "You compare *expected* and *between* by the threshold: two small steps make one large one. Each counts.":
                ((first > within) & (within > between) & (first - between > threshold))[scored].mean(),
            "One score that is not there (NaN) makes your whole share NaN. Keep the items in which all three have one.":
                np.nan,
            "You count the items; a share is that number divided by the number of items that have all three scores.":
                order.sum(),
        }, f"eleven items, two of them without all scores, and the threshold {threshold}")  # fmt: skip
    by_role = answers.pivot(index="item", columns="role", values="probability")
    roles = [by_role[role].to_numpy(dtype=float) for role in ("expected", "within", "between")]
    shares = [a_number(call(function, *roles, threshold)) for threshold in (0.0, THRESHOLD)]
    came = "as you expected" if expected == DIRECTIONS[1] else f"where you expected *{expected}*"
    return (
        f"On this model {shares[0]:.2f} of the items without a threshold, {shares[1]:.2f} with .01. It can only go "
        f"down or stay, {came}: whoever passes the higher bar has passed the lower one."
    )


@exercise(3)
def my_items(given: Any, lm: LanguageModel) -> str:
    """At least four items (two sentences, expected, within, between); every word takes each role equally often."""
    fields = ["first sentence", "second sentence", "expected", "within", "between"]
    rows = []
    for place, item in enumerate(own_items.listed(given, 4), start=1):
        where = f"Item {place}"
        first, second, *words = own_items.texts(item, fields, where)
        if first.rstrip()[-1:] not in (".", "!", "?"):
            raise NotYet(f"{where}: the first sentence is whole, so it ends with a full stop: *{first}*.")
        own_words.open_ended(second, where)
        if len(set(words)) < 3:
            raise NotYet(f"{where}: expected, within and between should be three different words.")
        for word in words:
            own_words.single(lm, word, where)
            own_words.outside(word, f"{first} {second}", where)
        rows.append([str(place), first, second, *words, ""])
    _judge_roles([row[3:6] for row in rows])
    table = own_words.as_table(rows, INFERENCE, read_inference)
    compared = metrics.compare(ask(lm, table)[0], ["item"], "role", "expected", ["within", "between"])
    return (
        f"{len(rows)} items, in which every word is expected as often as not. The expected word wins in "
        f"{compared['higher'].sum():.0f}; a model that did not read the sentences would like the same words best each "
        "time and could not win in all."
    )


def _judge_roles(rows: list[list[str]]) -> None:
    """Each word equally often in each role, and *between* never of the category of the expected word."""
    often = [Counter(row[role] for row in rows) for role in range(3)]
    for word in dict.fromkeys(word for row in rows for word in row):
        times = [counter[word] for counter in often]
        if len(set(times)) > 1:
            raise NotYet(
                f"*{word}* is expected {times[0]} times, within {times[1]} and between {times[2]}: a word that is "
                "common anyway would help or harm one role. Let every word take each role equally often."
            )
    categories: list[set[str]] = []
    for expected, within, _ in rows:
        merged = {expected, within}.union(*(known for known in categories if known & {expected, within}))
        categories = [known for known in categories if not known & merged] + [merged]
    for place, (expected, _, between) in enumerate(rows, start=1):
        if any({expected, between} <= known for known in categories):
            raise NotYet(
                f"Item {place}: by your own *within* words *{expected}* and *{between}* are of one category, so "
                f"*{between}* cannot be between."
            )
