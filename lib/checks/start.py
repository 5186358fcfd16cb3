"""Checks of the exercises to ``00_start_here``."""

from typing import Any

import numpy as np
import pandas as pd

from lib import metrics, scoring
from lib.checks import NotYet, a_number, an_array, call, exercise, judge, own_items, prediction
from lib.models.protocol import Gap, LanguageModel

CHANGES = ("larger", "smaller", "the same")
FIELDS = ("left", "good", "bad", "right")


@exercise(1)
def surprisal(of_tokens: Any, of_sentence: Any) -> str:
    """Surprisal in bits of three tokens; perplexity of a sentence whose first token has no score."""
    given = np.log([1 / 2, 1 / 8, 1 / 1024])
    judge(an_array(call(of_tokens, given), 3), [1, 3, 10], {
        "Those are nats: you take the negative, and still have to divide by log 2, because e² is no power of 2.": -given,
        "The sign is wrong: a log-probability is negative, and a surprisal positive.": given / np.log(2),
        "You multiply by log 2. One bit is log 2 = 0.69 nats, so n nats are n / 0.69 bits.": -given * np.log(2),
        "You divide by log 10; bits are to the base 2.": -given / np.log(10),
        "You take a logarithm again, of numbers that are logarithms already: divide by log 2.": -np.log2(-given),
        "A logarithm of a negative number is not there. The numbers are logarithms already: divide by log 2.": [np.nan] * 3,
        "Those are the probabilities; the surprisal is the negative of the logarithm.": np.exp(given),
    }, "tokens of probability 1/2, 1/8 and 1/1024")  # fmt: skip
    given = np.array([np.nan, np.log(1 / 2), np.log(1 / 8)])
    judge(a_number(call(of_sentence, given)), 4, {
        "The first token has no score (NaN), and makes your perplexity NaN. Take the mean over tokens that have one.": np.nan,
        "You divide by three tokens; only two of them have a score.": 2 ** (4 / 3),
        "You take the sum. Perplexity takes the mean surprisal, so that long sentences are no worse than short ones.": 16,
        "The sign is wrong: perplexity is at least 1, as many words as the model seems to choose among.": 1 / 4,
        "You mix bits and nats: 2 to the power of bits, or e to the power of nats.": np.exp(2),
        "You mix nats and bits: e to the power of nats, or 2 to the power of bits.": 2 ** np.log(4),
        "That is the mean surprisal in bits; perplexity is 2 to the power of it.": 2,
        "That is the mean surprisal in nats; perplexity is e to the power of it.": np.log(4),
        "You take the mean of 1/p. Perplexity takes the mean of the logarithms first, and then the power.": 5,
        "You take the mean of the probabilities. Perplexity takes the mean of the logarithms first.": 3.2,
    }, "a sentence whose first token has no score and whose others have the probabilities 1/2 and 1/8")  # fmt: skip
    return "A perplexity of 4 is a mean surprisal of 2 bits: as if the model chose among four words at each place."


@exercise(2)
def margin(function: Any, expected: Any, lm: LanguageModel) -> str:
    """The margin at two gaps, which differ in the number of the attractor, against the library's."""
    expected = prediction(expected, CHANGES)
    margins = []
    for noun in ("bottle", "bottles"):
        gap = Gap(f"The label on the {noun}", "new.")
        found = a_number(call(function, *gap, "is", "are"))
        good, bad = _log_probabilities(lm, gap, ["is", "are"])
        blind, blind_bad = _log_probabilities(lm, Gap(gap.left, ""), ["is", "are"])
        judge(found, good - bad, {
            "The sign is turned: the margin is log P(good) − log P(bad), in this order.": bad - good,
            "You subtract probabilities. Take their logarithms: a margin says how many times more probable, not how much.":
                np.exp(good) - np.exp(bad),
            "You divide probabilities; the margin is the logarithm of that.": np.exp(good - bad),
            "Those are bits; the margin is asked for in nats, as the library gives it.": (good - bad) / np.log(2),
            "You give the log-probability of the good form alone; a margin compares it with the bad one.": good,
            "You take the absolute value, and so cannot see which form wins.": abs(good - bad),
            "You leave out what stands right of the gap; this model reads it.": blind - blind_bad,
        }, f"*{gap.left} ___ {gap.right}* with *is* and *are*")  # fmt: skip
        margins.append(good - bad)
    good, bad = _log_probabilities(lm, gap, ["was", "were"])
    judge(a_number(call(function, *gap, "was", "were")), good - bad, {
        "For *was* and *were* you give the margin of *is* and *are*: use the forms that are given, `good` and `bad`.":
            margins[-1],
    }, f"*{gap.left} ___ {gap.right}* with *was* and *were*")  # fmt: skip
    change = CHANGES[0 if margins[1] > margins[0] else 1 if margins[1] < margins[0] else 2]
    came = (
        "as you expected" if change == expected else f"and you expected *{expected}*: whom does this model listen to?"
    )
    return f"With *bottle* the margin is {margins[0]:.2f} nats, with *bottles* {margins[1]:.2f}: {change}, {came}" + (
        "." if change == expected else ""
    )


@exercise(3)
def my_pairs(given: Any, lm: LanguageModel) -> str:
    """At least four items (left, good, bad, right), as many singular as plural."""
    items = [own_items.texts(item, FIELDS, f"Item {n}") for n, item in enumerate(own_items.listed(given, 4), start=1)]
    numbers = []
    for place, (left, good, bad, right) in enumerate(items, start=1):
        where = f"Item {place}"
        for form in (good, bad):
            if len(form.split()) != 1 or form != form.strip():
                raise NotYet(f"{where}: '{form}' is not one word; the gap takes one, without spaces around it.")
        if "_" in left + right or not left.strip():
            raise NotYet(f"{where}: give what stands before the gap and what stands behind it, without the gap itself.")
        own_items.one_word_apart(f"{left} {good} {right}", f"{left} {bad} {right}", where)
        numbers.append(own_items.agreeing(good, bad, where))
        own_items.one_piece(lm, good, where)
        own_items.one_piece(lm, bad, where)
    own_items.balanced(numbers)
    table = pd.DataFrame(items, columns=list(FIELDS))
    gaps = [Gap(left.strip(), right.strip()) for left, right in zip(table["left"], table["right"], strict=True)]
    fills = scoring.fill(lm, gaps, [*table["good"], *table["bad"]])
    judged = metrics.minimal_pairs(fills, table["good"], table["bad"])
    worst = table.loc[judged["margin"].idxmin()]
    return (
        f"{len(table)} pairs, half of them plural; this model is right in {judged['correct'].sum():.0f}. "
        f"Smallest margin, {judged['margin'].min():.2f}: *{worst['left']} [{worst['good']} | {worst['bad']}] {worst['right']}*"
    )


def _log_probabilities(lm: LanguageModel, gap: Gap, forms: list[str]) -> list[float]:
    """Of each form at the gap, natural log, without a start token."""
    fills = scoring.fill(lm, [gap], forms)
    return [float(fills.at("log_probability", [form])[0]) for form in forms]
