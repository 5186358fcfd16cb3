"""Checks of the exercises to ``10_scoring_choices``."""

from typing import Any

import numpy as np
import pandas as pd

from lib import sentences
from lib.checks import NotYet, a_number, call, exercise, judge, own_items, prediction
from lib.models.protocol import LanguageModel

START = "<s>"
BIGRAM = {
    START: {"the": 0.5, "dogs": 0.01, "dog": 0.1},
    "the": {"dog": 0.3, "dogs": 0.2},
    "dog": {"sleep": 0.25, "near": 0.1},
    "dogs": {"sleep": 0.5, "near": 0.1},
    "near": {"the": 0.5},
    "sleep": {"##s": 0.4, ".": 0.6},
    "##s": {".": 0.9},
}
"""A model that fits on a page: the probability of a piece behind the piece before it. ``##s`` goes on with a word."""
PAIRS = {
    "first": (["dogs", "sleep", "."], ["dog", "sleep", "."]),
    "middle": (["the", "dogs", "sleep", "."], ["the", "dog", "sleep", "."]),
    "last": (["the", "dog", "sleep", "##s", "."], ["the", "dog", "sleep", "."]),
}
"""Two sentences in pieces, by where they differ: in the first word, in the middle, in the verb."""


@exercise(1)
def pseudo_log_likelihood(function: Any) -> str:
    """One sentence of three tokens, padded to five."""
    matrix = np.log([
        [0.1, 0.2, 0.1, 0.5, 0.1],
        [0.2, 0.1, 0.4, 0.1, 0.2],
        [0.1, 0.1, 0.1, 0.1, 0.6],
        [0.9, 0.02, 0.04, 0.02, 0.02],
        [0.8, 0.05, 0.05, 0.05, 0.05],
    ])  # fmt: skip
    ids = np.array([3, 1, 4, 0, 0])
    of_tokens = matrix[np.arange(5), ids]
    right = of_tokens[:3].sum()
    judge(a_number(call(function, matrix, ids, 0)), right, {
        "You read the padding as tokens. It only fills the row up to the longest sentence's length: leave it out.":
            of_tokens.sum(),
        "You take the mean; the task asks for the sum. (You read the padding as tokens, too.)": of_tokens.mean(),
        "You take the mean; a log-likelihood is the sum. Which of the two is another choice.": of_tokens[:3].mean(),
        "You leave the padding out of the sum, and divide by its places all the same; no mean is asked for.": right / 5,
        "You take the likeliest token of each row; take the one that stands there, `ids`.": matrix[:3].max(1).sum(),
        "You take the likeliest token of each row, and of the padding too; take the one that stands there.":
            matrix.max(1).sum(),
        "You score the first token only; the sum goes over all three.": of_tokens[0],
        "Those are probabilities multiplied; sum the logarithms, which are there already.": np.exp(right),
        "You sum probabilities; sum the logarithms, as they stand in the matrix.": np.exp(of_tokens[:3]).sum(),
        "Rows and columns have changed places: the row is the position, the column the piece.":
            matrix[ids, np.arange(5)][:3].sum(),
        "The sign is wrong: a sum of logarithms of probabilities is negative.": -right,
        "You sum the whole matrix; of each row only the token that stands there counts.": matrix.sum(),
        "You sum whole rows; of each row only the token that stands there counts.": matrix[:3].sum(),
    }, "three tokens and two places of padding")  # fmt: skip
    whole = matrix[:3], ids[:3], 0
    judge(a_number(call(function, *whole)), right, {}, "the same sentence without padding")
    other = call(function, matrix, np.array([3, 1, 2, 2, 2]), 2)
    judge(a_number(other), matrix[0, 3] + matrix[1, 1], {
        "Here the padding is piece 2, and piece 0 a word: use the id that is given.": matrix[range(5), [3, 1, 2, 2, 2]].sum(),
    }, "two tokens, where the padding is piece 2,")  # fmt: skip
    return "Padding changes no score, and the sum goes over the tokens that stand there."


@exercise(2)
def start_token(function: Any, expected: Any) -> str:
    """Six short sentences under the model on a page, with and without a start token."""
    expected = prediction(expected, tuple(PAIRS))
    for pieces in [sentence for pair in PAIRS.values() for sentence in pair]:
        logs = [np.log(BIGRAM[before][piece]) for before, piece in zip([START, *pieces], pieces, strict=False)]
        first_pieces = sum(log for log, piece in zip(logs, pieces, strict=True) if not piece.startswith("##"))
        told = "*" + " ".join(pieces) + "*"
        for start, right, first in ((False, sum(logs[1:]), logs[0]), (True, sum(logs), 0.0)):
            asked = f"You were asked for a score {'with' if start else 'without'} the start token"
            judge(a_number(call(function, list(pieces), BIGRAM, start)), right, {
                f"{asked}, and give one {'without' if start else 'with'} it.": sum(logs[1:]) if start else sum(logs),
                "You score the first piece of each word only. *##s* goes on with a word, and is a piece like any other.":
                    first_pieces - first,
                "You take the mean; the task asks for the sum.": right / (len(pieces) - (not start)),
                "You take the mean, and count a first piece that has no score.": right / len(pieces),
                "You multiply probabilities; give the natural logarithm of that.": np.exp(right),
                "You add up probabilities; add up their logarithms.": np.exp(logs if start else logs[1:]).sum(),
                "Your logarithm has another base; take the natural one, `np.log`.": right / np.log(2),
                "Your logarithm has base 10; take the natural one, `np.log`.": right / np.log(10),
                "The sign is wrong: a log-probability is negative.": -right,
            }, f"{told} {'with' if start else 'without'} the start token")  # fmt: skip
    even = {START: {"dog": 1 / 2}, "dog": {"sleep": 1 / 2}, "sleep": {".": 1 / 2}}
    judge(a_number(call(function, ["dog", "sleep", "."], even, True)), 3 * np.log(1 / 2), {
        "You look the probabilities up in BIGRAM; take them from `table`, which can be another model.":
            np.log([0.1, 0.25, 0.6]).sum(),
    }, "*dog sleep .* with the start token, and a table in which every probability is 1/2,")  # fmt: skip
    if expected != "first":
        raise NotYet(
            f"The scores are right, your prediction is not. In the pair *{expected}* both sentences start with *the*, and "
            f"the start token adds log P(the | {START}) to both: that turns no judgement. Which pair has two first words?"
        )
    return (
        "Only where the first words differ can a start token turn the judgement: here it does. And in the pair *last*, "
        "*sleeps* is the pieces of *sleep* and one more, so its probability suffers whatever the subject is."
    )


@exercise(3)
def my_pair(given: Any, lm: LanguageModel) -> str:
    """Two sentences, of different numbers of tokens, of which the sum prefers one and the mean the other."""
    if isinstance(given, str):
        raise NotYet('Give two sentences, `("one sentence", "the other")`, and not one text.')
    good, bad = own_items.texts(
        tuple(own_items.listed(given, 2, "sentences")), ("one sentence", "the other"), "Your pair"
    )
    own_items.one_word_apart(good, bad, "Your pair")
    if lm.family == "recurrent":
        raise NotYet(
            "This model reads whole words, each of them one token: sum and mean cannot disagree on two sentences of as many "
            "words. Take a masked or a causal model for this exercise (`model`, in the cell of parameters)."
        )
    table = pd.DataFrame({"good": [good], "bad": [bad]})
    by_sum, by_mean = (sentences.minimal_pairs(lm, table, reduction=reduction).iloc[0] for reduction in ("sum", "mean"))
    if not by_sum["scorable"]:
        raise NotYet(f"This model gives one of your sentences no score ({by_sum['reason']}). Take other words.")
    if by_sum["tokens_good"] == by_sum["tokens_bad"]:
        raise NotYet(
            f"Both sentences have {by_sum['tokens_good']} tokens: the mean divides both sums by the same number, so it "
            "cannot prefer another one. Take a word that this vocabulary cuts into more pieces."
        )
    told = "; ".join(
        f"{name} {row['log_probability_good']:.2f} against {row['log_probability_bad']:.2f}"
        for name, row in (("sum", by_sum), ("mean", by_mean))
    )
    tokens = f"{by_sum['tokens_good']} and {by_sum['tokens_bad']} tokens"
    if np.sign(by_sum["margin"]) == np.sign(by_mean["margin"]) or by_sum["tie"] or by_mean["tie"]:
        raise NotYet(f"Sum and mean prefer the same sentence ({tokens}; {told}). {_further(by_sum, by_mean)}")
    return f"They disagree: {told} ({tokens})."


def _further(by_sum: pd.Series, by_mean: pd.Series) -> str:
    """What to change in a pair on which both agree."""
    longer = "good" if by_sum["tokens_good"] > by_sum["tokens_bad"] else "bad"
    if (by_sum["margin"] > 0) == (longer == "good"):
        return (
            "The longer one wins by the sum already; make its longer word less expected, so that the sum is against it."
        )
    return (
        "The longer one loses even by the mean; take a word whose later pieces follow from its first, such as a long "
        "name: each costs little and brings the mean up."
    )
