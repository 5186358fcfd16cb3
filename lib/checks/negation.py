"""Checks of the exercises to ``32_negation``."""

from typing import Any

import numpy as np
import pandas as pd

from lib.checks import NotYet, an_array, call, exercise, judge, own_items, own_words, prediction
from lib.cloze import metrics
from lib.cloze.answers import ask
from lib.cloze.items import ARTICLE, NEGATION, article, read_negation
from lib.models.protocol import LanguageModel

SETS = ("simple", "natural", "the same")


@exercise(1)
def count_right(function: Any) -> str:
    """How many of six items are right in the affirmative sentence, in the negative one, and in both; there are ties."""
    true_affirmative, false_affirmative = np.array([[0.5, 0.4, 0.3, 0.2, 0.3, 0.6], [0.1, 0.1, 0.4, 0.2, 0.1, 0.1]])
    true_negative, false_negative = np.array([[0.2, 0.05, 0.3, 0.1, 0.3, 0.1], [0.1, 0.3, 0.1, 0.05, 0.3, 0.5]])
    given = true_affirmative, false_affirmative, true_negative, false_negative
    found = an_array(call(function, *given), 3)
    with_itself = true_affirmative > false_negative, true_negative > false_affirmative
    judge(found, [4, 3, 1], {
        "You count ties as right. Where both words are equally probable the model does not prefer the true one.":
            [5, 4, 3],
        "In the negative sentences you count where the false word wins. There *tree* is true and *bird* is false: "
        "true against false, in both.": [4, 2, 2],
        "For both you take the smaller of the two numbers. An item is right in both only if it is the same item: "
        "compare item by item.":
            [4, 3, 3],
        "For both you count items that are right in at least one of their sentences.": [4, 3, 6],
        "For both you add the two numbers; count the items that are right in both sentences.": [4, 3, 7],
        "You give shares; the numbers of items are asked for.": [4 / 6, 3 / 6, 1 / 6],
        "You give the two sentences in the wrong order: first affirmative, then negative.": [3, 4, 1],
        "You compare the true words of both sentences; compare the two words of one sentence, true against false.":
            [(true_affirmative > true_negative).sum(), (true_negative > true_affirmative).sum(), 0],
        "You compare a word with itself, with and without *not*; compare the two words of one sentence, true against "
        "false.": [*np.sum(with_itself, axis=1), np.sum(with_itself[0] & with_itself[1])],
        "The first two numbers are right, the third is not: count the items that are right in both of their sentences.":
            [4, 3, found[2]],
    }, "six items")  # fmt: skip
    blind = true_affirmative, false_affirmative, false_affirmative, true_affirmative
    judge(an_array(call(function, *blind), 3), [4, 1, 0], {}, "a model that does not read *not*")
    return (
        "And a model that does not read *not*, with the same two probabilities in both sentences, is right in 4, 1 "
        "and 0 of these: the better it knows its birds, the worse it looks in the negative. Its affirmative "
        "sentences say nothing about negation."
    )


@exercise(2)
def shares(function: Any, expected: Any, simple: pd.DataFrame, natural: pd.DataFrame) -> str:
    """Share right in affirmative and in negative sentences: from a table by hand, then from the answers of two sets."""
    expected = prediction(expected, SETS)
    rows = [
        ("1", "affirmative", "true", 0.5), ("2", "affirmative", "false", 0.2), ("1", "negative", "false", 0.4),
        ("2", "negative", "true", 0.3), ("1", "affirmative", "false", 0.1), ("2", "affirmative", "true", 0.4),
        ("3", "negative", "true", 0.2), ("3", "affirmative", "true", 0.6), ("1", "negative", "true", 0.1),
        ("3", "negative", "false", 0.2), ("2", "negative", "false", 0.1), ("3", "affirmative", "false", 0.5),
        ("4", "affirmative", "true", 0.2), ("4", "affirmative", "false", 0.3), ("4", "negative", "true", np.nan),
        ("4", "negative", "false", 0.5),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["item", "polarity", "role", "probability"])
    judge(an_array(call(function, table), 2), [3 / 4, 1 / 3], {
        "You count a sentence with a word without a score as a failure. It leaves the share: three negative ones are "
        "left.": [3 / 4, 1 / 4],
        "You count a tie as right. Item 3 is a tie in its negative sentence.": [3 / 4, 2 / 3],
        "You give the shares in the wrong order: first affirmative, then negative.": [1 / 3, 3 / 4],
        "You count; a share is that number divided by the number of items that have both scores.": [3, 1],
        "You take the mean probability of the true words; a share counts the items whose true word is the more probable.":
            table[table["role"] == "true"].groupby("polarity")["probability"].mean().to_numpy(),
        "You do not keep the polarities apart: each share is one of its own sentences.": [4 / 7, 4 / 7],
        "You set the true and the false words side by side as their rows come; join them by item and polarity.":
            [3 / 4, 0],
        "You compare rows by where they stand in the table. Compare the true and the false word of the same item and "
        "polarity.":
            _by_place(table),
    }, "a table of four items, whose rows come in any order,")  # fmt: skip
    found = {name: an_array(call(function, answers), 2) for name, answers in (("simple", simple), ("natural", natural))}
    told = "; ".join(
        f"{name} {pair[0]:.2f} and {pair[1]:.2f}, together {pair.sum():.2f}" for name, pair in found.items()
    )
    apart = found["simple"][1] - found["natural"][1]
    higher = SETS[2] if apart == 0 else SETS[0] if apart > 0 else SETS[1]
    came = "as you expected" if higher == expected else f"where you expected *{expected}*"
    return (
        f"Affirmative and negative on this model: {told}. More right in the negative: *{higher}*, {came}. A model "
        "that does not read *not* comes to 1 together (less with ties), one that reads it to 2: the sum says more "
        "than either share."
    )


def _by_place(table: pd.DataFrame) -> list[float]:
    """Shares of someone who takes rows in pairs as they stand."""
    values = [
        table.loc[table["polarity"] == polarity, "probability"].to_numpy() for polarity in ("affirmative", "negative")
    ]
    return [float((value[::2] > value[1::2]).mean()) for value in values]


@exercise(3)
def my_items(given: Any, lm: LanguageModel) -> str:
    """At least four items (affirmative, negative, what makes each true); every noun is as often true as false."""
    fields = [
        "affirmative context",
        "negative context",
        "word that makes the affirmative true",
        "word that makes the negative true",
    ]
    rows = []
    for place, item in enumerate(own_items.listed(given, 4), start=1):
        where = f"Item {place}"
        affirmative, negative, *words = own_items.texts(item, fields, where)
        _judge_negation(affirmative, negative, where)
        if words[0] == words[1]:
            raise NotYet(
                f"{where}: the two words are the same; one makes the affirmative sentence true and the other the "
                "negative one."
            )
        for word in words:
            own_words.single(lm, word, where)
            own_words.outside(word, affirmative, where)
        articles = {article(word) for word in words}
        if len(articles) > 1 and affirmative.split()[-1] in articles:
            raise NotYet(
                f"{where}: *{affirmative}* fits only one of *{words[0]}* and *{words[1]}*, and so gives it away; end "
                f"both contexts with {ARTICLE}."
            )
        rows.append([str(place), affirmative.strip(), negative.strip(), *words])
    own_words.as_often([row[3] for row in rows], [row[4] for row in rows])
    table = own_words.as_table(rows, NEGATION, read_negation)
    compared = metrics.compare(ask(lm, table)[0], ["item", "polarity"], "role", "true", ["false"])
    right = compared.groupby("polarity")["higher"].sum()
    return (
        f"{len(rows)} items, in which no word is a safe bet. The true word wins in {right['affirmative']:.0f} "
        f"affirmative and in {right['negative']:.0f} negative sentences."
    )


def _judge_negation(affirmative: str, negative: str, where: str) -> None:
    """The negative context is the affirmative one with one *not* more, and both end before the gap."""
    for context in (affirmative, negative):
        own_words.open_ended(context.removesuffix(ARTICLE).rstrip() or context, where)
    first, second = affirmative.split(), negative.split()
    if "not" in first:
        raise NotYet(f"{where}: *not* stands in the affirmative context already; it belongs into the negative one.")
    if "not" not in second:
        raise NotYet(f"{where}: the negative context has no *not*, as a word of its own: *{negative}*.")
    second.remove("not")
    if first != second:
        raise NotYet(
            f"{where}: but for *not* the two contexts must be the same, or something else could make the difference: "
            f"*{affirmative}* and *{negative}*. If the article depends on the word, end both with {ARTICLE}."
        )
