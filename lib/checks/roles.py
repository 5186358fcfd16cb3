"""Checks of the exercises to ``31_roles``."""

import math
from typing import Any

import numpy as np
import pandas as pd

from lib import perturb
from lib.checks import NotYet, a_number, an_array, call, exercise, judge, own_items, own_words, prediction
from lib.cloze import metrics
from lib.cloze.answers import ask
from lib.cloze.items import ROLES, read_roles
from lib.models.protocol import LanguageModel

THRESHOLD = 0.01
HIDDEN = {
    "object hidden": perturb.hide_object,
    "subject hidden": perturb.hide_subject,
    "both hidden": perturb.hide_both,
}


@exercise(1)
def sensitivity(function: Any) -> str:
    """Sensitivity to the reversal by two thresholds, from log-probabilities with a tie and a target without score."""
    with_both = np.array(
        [[0.5, 0.1], [0.3, 0.295], [0.4, 0.399], [0.2, 0.2], [0.0002, 0.0001], [0.1, 0.3], [0.1, 0.2], [0.012, 0.001]]
    )
    log_a, log_b = np.log(np.vstack([with_both, [np.nan, 0.1]])).T
    a, b = with_both.T
    for threshold in (0.0, THRESHOLD):
        right = (a - b > threshold).sum()
        judge(a_number(call(function, log_a, log_b, threshold)), right / 8, {
            "You do not use the threshold: the difference must be larger than it.": (a > b).sum() / 8,
            "You compare the difference of the log-probabilities with the threshold. The published threshold is one "
            "of probabilities: take np.exp first.": (np.log(a) - np.log(b) > threshold).sum() / 8,
            "You count the tie as right. The target is as probable in b as in a: a tie is no success.":
                (a >= b).sum() / 8,
            "You count the pair without a score as a failure. It leaves the share: eight pairs are left.": right / 9,
            "You take the difference without its sign. Where the target is more probable in b, the pair is wrong.":
                (abs(a - b) > threshold).sum() / 8,
            "You count the pairs in which the target is more probable in b.": (b - a > threshold).sum() / 8,
            "One score that is not there (NaN) makes your whole share NaN. Keep the pairs in which both have one.":
                np.nan,
            "You count the pairs; a share is that number divided by the number of pairs with both scores.": right,
            "You divide the probabilities; the threshold is one of their difference.": (a / b > threshold).mean(),
            "You take the mean difference; a share counts the pairs whose difference is larger than the threshold.":
                (a - b).mean(),
        }, f"nine pairs, one of them without a score, and the threshold {threshold}")  # fmt: skip
    return (
        "A tie is no success, a pair without a score is left out, and a threshold of probabilities wants probabilities."
    )


@exercise(2)
def share_right(function: Any, expected: Any, items: pd.DataFrame, lm: LanguageModel) -> str:
    """Share right and number of undefined pairs: by hand, then on ``items`` with nouns hidden."""
    expected = prediction(expected, ("zero", "half", "undefined"))
    a = ["which cook the guest had", "which guest the cook had", "which dog the boy had", "which boy the dog had",
         "which one the other had", "which one the other had"]  # fmt: skip
    b = [a[1], a[0], a[3], a[2], *a[4:]]
    probability_a, probability_b = np.array([0.3, 0.2, 0.1, 0.2, 0.3, 0.1]), np.array([0.1, 0.1, 0.2, 0.2, 0.3, 0.1])
    judge(an_array(call(function, a, b, probability_a, probability_b), 2), [2 / 4, 2], {
        "You count undefined pairs as wrong. One context cannot be more probable than itself: leave such pairs out "
        "of the share.": [2 / 6, 2],
        "You count a tie as undefined. In the fourth pair the contexts differ; the model could have told them apart "
        "and did not: it counts, as no success.": [2 / 3, 3],
        "You count a tie as right. Where the contexts differ, a tie is no success.": [3 / 4, 2],
        "You do not count the undefined pairs: how many have the same context twice?": [2 / 4, 0],
        "You give the number of defined pairs; the number of the undefined ones is asked for.": [2 / 4, 4],
        "Nothing is undefined in your function: two pairs have the same context twice.": [2 / 6, 0],
        "You give the two numbers in the wrong order: first the share, then the number.": [2, 2 / 4],
    }, "six pairs, in two of which the contexts are the same")  # fmt: skip
    judge(an_array(call(function, a[4:], b[4:], probability_a[4:], probability_b[4:]), 2), [np.nan, 2], {
        "Where no pair is left there is no share: 0 would say that the model failed. Give NaN (`np.nan`).": [0, 2],
        "Where no pair is left there is no share: .5 would say that the model guessed. Give NaN (`np.nan`).": [0.5, 2],
        "Where no pair is left there is no share: 1 would say that the model did well. Give NaN (`np.nan`).": [1, 2],
    }, "two pairs with the same context twice")  # fmt: skip
    told = []
    for name, hide in {"nothing hidden": lambda table: table, **HIDDEN}.items():
        answers = ask(lm, hide(items))[0]
        sides = answers.pivot(index="item", columns="condition", values=["context", "probability"]).dropna()
        texts = [list(sides["context", side]) for side in ("a", "b")]
        found = an_array(
            call(function, *texts, *(sides["probability", side].to_numpy(float) for side in ("a", "b"))), 2
        )
        share = "no share" if math.isnan(found[0]) else f"{found[0]:.2f}"
        told.append(f"{name} {share} ({found[1]:.0f} undefined)")
    came = "as you expected" if expected == "undefined" else f"where you expected *{expected}*"
    return f"On this model: {', '.join(told)}. With both nouns hidden there is nothing to compare, {came}."


@exercise(3)
def my_pairs(given: Any, lm: LanguageModel) -> str:
    """At least four pairs (context a, context b, target) with two nouns exchanged, each with its mirror."""
    rows = []
    for place, pair in enumerate(own_items.listed(given, 4, "pairs"), start=1):
        where = f"Pair {place}"
        a, b, target = own_items.texts(pair, ["context a", "context b", "target"], where)
        _judge_reversal(a, b, where)
        own_words.single(lm, target, where)
        own_words.outside(target, a, where)
        rows.append((a.strip(), b.strip(), target))
    targets: dict[tuple[str, str], set[str]] = {}
    for a, b, target in rows:
        targets.setdefault((a, b), set()).add(target)
    for place, (a, b, target) in enumerate(rows, start=1):
        mirror = targets.get((b, a), set())
        if target in mirror:
            raise NotYet(
                f"*{target}* is the target for *{a}* and for its reversal. It can fit one of them only, or it tests "
                "nothing."
            )
        if not mirror:
            raise NotYet(
                f"Pair {place} has no mirror: a pair with *{b}* as its a, *{a}* as its b and another target, which "
                "fits there. With it, a model that likes one order of the nouns gets no more than half."
            )
    lines = [[f"{place}-{side}", context, target, "", target, "", ""]
             for place, (a, b, target) in enumerate(rows, start=1)
             for side, context in (("a", a), ("b", b))]  # fmt: skip
    compared = metrics.role_pairs(ask(lm, own_words.as_table(lines, ROLES, read_roles))[0])
    right, clear = compared["higher"].sum(), compared["higher_by_threshold"].sum()
    return (
        f"{len(rows)} pairs with the same words in each. The target is more probable in a in {right:.0f}, and by more "
        f"than .01 in {clear:.0f}."
    )


def _judge_reversal(a: str, b: str, where: str) -> None:
    """Two contexts in which exactly two words have changed places."""
    for context in (a, b):
        own_words.open_ended(context, where)
    first, second = a.split(), b.split()
    if first == second:
        raise NotYet(f"{where}: a and b are the same sentence.")
    if sorted(first) != sorted(second):
        others = sorted(set(first) ^ set(second))
        what = f"*{others[0]}* is in one only" if others else "one word is there more often in one"
        raise NotYet(
            f"{where}: a and b must have the same words in another order, so that only the roles differ, but {what}. "
            "A capital counts: exchange nouns inside the sentence."
        )
    moved = [word for word, other in zip(first, second, strict=True) if word != other]
    if len(moved) != 2:
        raise NotYet(
            f"{where}: {len(moved)} words have changed places ({', '.join(moved)}); exchange two nouns of one word "
            "each."
        )
