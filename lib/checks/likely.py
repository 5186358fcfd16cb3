"""Checks of the exercises to ``21_systematic_or_likely``."""

from typing import Any

import numpy as np
import pandas as pd

from lib import metrics, scoring
from lib.checks import NotYet, a_number, an_array, call, exercise, judge, own_items, prediction
from lib.items import agreement_files, gaps, read_pairs
from lib.models.protocol import LanguageModel

VOCABULARY = {
    item: times / 128
    for item, times in {
        "has": 5, "stand": 1, "the": 23, "say": 1, "are": 40, "looks": 14, "plays": 1, "work": 1, "a": 4, "is": 16, "have": 12,
        "works": 2, "play": 2, "look": 3, "says": 2, "stands": 1,
    }.items()
}  # fmt: skip
"""A vocabulary that fits on a page, and the probability of each item behind *The keys to the cabinet*."""
VERBS = [
    ("are", "is"), ("have", "has"), ("look", "looks"), ("play", "plays"), ("say", "says"), ("stand", "stands"),
    ("work", "works"),
]  # fmt: skip
"""Seven verbs: the form that is right behind a plural subject, and the wrong one."""
CHANGES = ("rises", "falls", "stays")
CONTEXTS = 12


@exercise(1)
def ew_and_mw(function: Any) -> str:
    """EW and MW of six verbs, one of them a tie."""
    right = np.array([0.30, 0.02, 0.01, 0.002, 0.001, 0.001])
    wrong = np.array([0.10, 0.03, 0.01, 0.001, 0.004, 0.002])
    found = an_array(call(function, right, wrong), 2)
    ew, mw = 2 / 6, right.sum() / (right.sum() + wrong.sum())
    given = "six verbs, one of them a tie,"
    if np.allclose(found, [mw, ew]):
        raise NotYet("You give MW first; the task asks for EW first, then MW.")
    judge(found[0], ew, {
        "EW: you count the tie as right. Its right form does not outrank the wrong one.": 3 / 6,
        "EW: you count the tie as half right. Its right form does not outrank the wrong one.": 2.5 / 6,
        "EW: you leave the tie out. It is one of the six verbs; it is only not right.": 2 / 5,
        "EW: you count the right verbs; divide by their number.": 2,
        "EW: you let probabilities weigh the verbs. That is MW; for EW each verb has one vote.": mw,
    }, f"{given} EW in")  # fmt: skip
    judge(found[1], mw, {
        "MW: you take the share of each verb and then their mean, which gives each verb the same weight again. Sum first, "
        "then divide.": (right / (right + wrong)).mean(),
        "MW: you give each verb a vote. That is EW; for MW its probability is its weight.": ew,
        "MW: you divide the right forms by the wrong ones; divide by both together.": right.sum() / wrong.sum(),
        "MW: you give the probability of all right forms; divide it by that of all forms.": right.sum(),
        "MW: you take the exponential of what are probabilities already.": np.exp(right).sum() / np.exp([*right, *wrong]).sum(),
        "MW: you sum the probability of the verbs that are right, with both of their forms. Every verb's right form "
        "counts, also where the wrong one is likelier.": 0.403 / (right + wrong).sum(),
        "MW: you sum the right forms of the verbs that are right. Every verb's right form counts, also where the wrong one "
        "is likelier.": 0.302 / (right + wrong).sum(),
    }, f"{given} MW in")  # fmt: skip
    return (
        "On six other verbs EW is .33 and MW .69: the likely verbs do well, and the others do not. "
        "One verb makes up most of MW."
    )


@exercise(2)
def ew_within(function: Any, expected: Any) -> str:
    """EW on the vocabulary of a page, within top cutoffs of .5, .8 and 1, and where no verb counts."""
    expected = prediction(expected, CHANGES)

    def ew(verbs: list[tuple[str, str]], cutoff: float) -> float:
        return a_number(call(function, dict(VOCABULARY), list(verbs), cutoff))

    every = (
        "With you every verb counts, whatever the cutoff. Go from the likeliest item down, *the* and *a* too, until the sum of "
        "probabilities reaches the cutoff; only what you have passed is inside."
    )
    judge(ew(VERBS, 0.8), 2 / 3, {
        "You leave out the item that crosses the cutoff. Here it is inside: the smallest set whose mass reaches .8.": 1 / 2,
        "You ask for both forms inside. At a top cutoff a verb counts as soon as either form is.": 1,
        "You compare each probability with the cutoff. The cutoff is about the *sum* of the likeliest ones.": np.nan,
        "You divide by all seven verbs; divide by those that count.": 2 / 7,
        every: 3 / 7,
        "You count the tie of *stand* and *stands* as right, and every verb.": 4 / 7,
    }, "a cutoff of .8")  # fmt: skip
    small = {"the": 1 / 2, "looks": 1 / 4, "are": 1 / 8, "is": 1 / 16, "look": 1 / 16}
    judge(a_number(call(function, small, [("are", "is"), ("look", "looks")], 0.75)), 0, {
        "One item too many is inside: with *the* and *looks* the sum reaches .75 exactly, and that is enough. (Do you "
        "leave out *the*? The cutoff is about the whole vocabulary.)": 1 / 2,
        "Only *look* counts, and it is wrong: an EW of 0. That is a score, and no invalid context.": np.nan,
    }, "a cutoff of .75 and the vocabulary *the* 1/2, *looks* 1/4, *are* 1/8, *is* 1/16, *look* 1/16")  # fmt: skip
    judge(ew(VERBS, 0.5), 1, {}, "a cutoff of .5")
    judge(ew(VERBS, 1.0), 3 / 7, {
        "You count the tie of *stand* and *stands* as right: neither outranks the other.": 4 / 7,
    }, "a cutoff of 1")  # fmt: skip
    judge(ew([("stand", "stands")], 0.5), np.nan, {
        "No verb counts here, so the context is invalid: it has no score (NaN). A 0 would say that the model is wrong, and "
        "pull down the mean.": 0,
        "No verb counts here, so the context is invalid: it has no score (NaN), and is told apart.": 1,
    }, "a cutoff of .5 and a verb that is not inside")  # fmt: skip
    if expected != "rises":
        raise NotYet(
            "Your function is right, your prediction is not: from 1 to .8 to .5, EW goes from 3/7 to 2/3 to 1. Which verbs are "
            "still inside when the cutoff gets smaller?"
        )
    return "From 1 to .8 to .5, EW rises from 3/7 to 2/3 to 1: these are the likely verbs, and the model inflects them well."


@exercise(3)
def my_verbs(given: Any, expected: Any, lm: LanguageModel) -> str:
    """At least six verbs (singular, plural), one piece each, in contexts of our own."""
    expected = prediction(expected, ("EW", "MW"))
    verbs = [own_items.texts(v, ("singular", "plural"), f"Verb {n}") for n, v in
             enumerate(own_items.listed(given, 6, "verbs"), start=1)]  # fmt: skip
    for place, (singular, plural) in enumerate(verbs, start=1):
        where = f"Verb {place}"
        if own_items.agreeing(singular, plural, where) != "singular":
            raise NotYet(
                f"{where}: *{singular}* is the plural form; the singular comes first, *she {plural}* ... *they {singular}*."
            )
        own_items.one_piece(lm, singular, where)
        own_items.one_piece(lm, plural, where)
    table = pd.DataFrame(verbs, columns=["singular", "plural"])
    pairs, _ = read_pairs(agreement_files().head(1), CONTEXTS)
    fills = scoring.fill(lm, gaps(pairs, lm.cased), [*table["singular"], *table["plural"]], cutoffs_top=[1.0])
    contexts = metrics.distinct_contexts(fills, pairs["label"])
    scores = metrics.by_cutoff(fills, contexts, metrics.usable_verbs(fills, table), [1.0], [])
    ew, mw = (scores.loc[scores["metric"] == metric, "score"].mean() for metric in ("EW", "MW"))
    higher = "EW" if ew > mw else "MW" if mw > ew else "neither"
    came = "as you expected." if higher == expected else "not what you expected: which of your verbs is likely here?"
    return f"{len(verbs)} verbs in {len(contexts)} contexts: EW {ew:.2f}, MW {mw:.2f}. Higher is {higher}, {came}"
