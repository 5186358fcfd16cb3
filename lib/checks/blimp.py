"""Checks of the exercises to ``24_blimp``."""

from typing import Any

import numpy as np
import pandas as pd

from lib import sentences
from lib.checks import NotYet, an_array, call, exercise, judge, own_items, own_words, prediction
from lib.models.protocol import LanguageModel

COLUMNS = ["log_probability_good", "log_probability_bad", "tokens_good", "tokens_bad", "words_good", "words_bad"]


@exercise(1)
def verdicts(function: Any) -> str:
    """Right or not, by sum and by mean, for pairs of unequal length in arrays with padding, one of them a tie."""
    good = np.array([[-1, -2, -1, -9], [-2, -2, -2, -2], [-1, -1, -9, -9], [-3, -3, -8, -7], [-2, -1, -4, -1.0]])
    bad = np.array([[-1, -3, -1, -10], [-3, -2, -2, -9], [-1, -1, -9, -9], [-2, -2, -2, -1], [-2, -1, -3, -5.0]])
    tokens = np.array([3, 4, 2, 2, 4]), np.array([3, 3, 2, 4, 2])
    values = [(table, length) for table, length in zip((good, bad), tokens, strict=True)]
    inside = [np.where(np.arange(4) < length[:, None], table, 0).sum(1) for table, length in values]
    read_on = [table.sum(1) for table, _ in values]
    totals = {"sum": inside, "mean": [total / length for total, length in zip(inside, tokens, strict=True)]}
    padded = {"sum": read_on, "mean": [table.mean(1) for table, _ in values]}
    for reduction, other in (("sum", "mean"), ("mean", "sum")):
        found = an_array(call(function, good, bad, *tokens, reduction), 5)
        first, second = totals[reduction]
        judge(found, first > second, {
            f"You count the tie as right with the {reduction}. Both sentences are equally probable there: a tie is no "
            "success.":
                first >= second,
            f"With the {reduction} you read the padding as tokens. Take only the first `tokens_good` and `tokens_bad` "
            "of each row.":
                padded[reduction][0] > padded[reduction][1],
            "With the mean your verdicts are those of the sum. Divide each sum by its own number of tokens, not by "
            "the width of the array."
                if reduction == "mean" else "You give the mean where the sum is asked for: look at `reduction`.":
                totals[other][0] > totals[other][1],
            "You tell the padding by its value, -9, but it can be any number. Go by `tokens_good` and `tokens_bad`.":
                np.where(good == -9, 0, good).sum(1) > np.where(bad == -9, 0, bad).sum(1),
            f"With the {reduction} you mark the pairs in which the bad sentence is more probable.": first < second,
            f"You give the difference by the {reduction}, not the verdict; it is 1 where the difference is over zero, "
            "else 0.":
                first - second,
        }, f"five pairs and the {reduction}")  # fmt: skip
    return "Padding is no token, a tie is no success, and the two reductions judge two of these five pairs differently."


@exercise(2)
def turned(function: Any, expected: Any, scored: pd.DataFrame) -> str:
    """Which verdicts turn when the mean replaces the sum: by hand, then on ``scored`` (columns ``COLUMNS``)."""
    expected = prediction(expected, ("yes", "no"))
    rows = [
        (-20, -21, 5, 5, 5, 5), (-24, -22, 8, 6, 6, 5), (-20, -20, 4, 5, 4, 5), (-21, -20, 7, 5, 5, 5),
        (-20, -25, 4, 5, 4, 4), (-15, -18, 5, 6, 4, 6), (-20, -30, 5, 6, 5, 6),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=COLUMNS).astype({column: float for column in COLUMNS[:2]})
    good, bad = table["log_probability_good"], table["log_probability_bad"]
    by_mean, by_words = ([good / table[f"{unit}_good"], bad / table[f"{unit}_bad"]] for unit in ("tokens", "words"))
    judge(an_array(call(function, table), len(table)), (good > bad) != (by_mean[0] > by_mean[1]), {
        "You divide by the number of words. The mean is over tokens, and a word can be several.":
            (good > bad) != (by_words[0] > by_words[1]),
        "You compare signs. From a tie to the wrong side nothing turns: the pair was no success and is none.":
            np.sign(good - bad) != np.sign(by_mean[0] - by_mean[1]),
        "You count a tie as right, by one reduction or by both. It is no success.":
            (good >= bad) != (by_mean[0] >= by_mean[1]),
        "You mark pairs whose sentences have different numbers of tokens. Those could turn; the question is which do.":
            table["tokens_good"] != table["tokens_bad"],
        "You mark what is right by the mean; mark where it differs from what is right by the sum.":
            by_mean[0] > by_mean[1],
        "You mark what is right by the sum; mark where the mean says otherwise.": good > bad,
        "You mark the pairs that do not turn.": (good > bad) == (by_mean[0] > by_mean[1]),
    }, "a table of seven pairs")  # fmt: skip
    on_model = an_array(call(function, scored), len(scored)) == 1
    same_words = int((on_model & (scored["words_good"] == scored["words_bad"])).sum())
    count = (
        f"{on_model.sum()} of {len(scored)}, {same_words} of them"
        if on_model.any()
        else f"none of {len(scored)}, and none"
    )
    came = "as you expected" if expected == "yes" else "where you expected not"
    return (
        f"Pairs that turn on this model: {count} with as many words in both sentences. Such pairs can turn, {came}: a "
        "word can be several tokens, and the mean is over tokens. With as many tokens in both, none can."
    )


@exercise(3)
def my_pairs(given: Any, lm: LanguageModel) -> str:
    """At least four pairs (good, bad) that differ in one word, with as many tokens, every form as often good as bad."""
    pairs, forms = [], []
    for place, pair in enumerate(own_items.listed(given, 4, "pairs"), start=1):
        where = f"Pair {place}"
        good, bad = own_items.texts(pair, ["good sentence", "bad sentence"], where)
        left, *differing, _ = own_items.one_word_apart(good, bad, where)
        if not left:
            raise NotYet(
                f"{where}: the sentences differ in their first word, so what a model has before it, a start token or "
                "nothing, would decide too. Let them differ later."
            )
        lengths = [len(found.pieces) for found in sentences.score(lm, [good, bad])]
        if lengths[0] != lengths[1]:
            raise NotYet(
                f"{where}: {' and '.join(f'*{form}*' for form in differing)} make sentences of {lengths[0]} and "
                f"{lengths[1]} tokens for this model, so their length would help to decide. Take forms of as many "
                "pieces, such as commoner words."
            )
        pairs.append((good, bad))
        forms.append(differing)
    own_words.as_often([good for good, _ in forms], [bad for _, bad in forms], "In your paradigm")
    judged = sentences.minimal_pairs(lm, pd.DataFrame(pairs, columns=["good", "bad"]))
    return (
        f"{len(judged)} pairs of equal length, in which no form is a safe bet; this model is right in "
        f"{judged['correct'].sum():.0f}. One that only liked some words better would get half."
    )
