"""Checks of the exercises to ``23_coordination_tense``."""

from typing import Any

import pandas as pd

from lib import metrics, scoring
from lib.checks import NotYet, call, exercise, own_items, own_words, prediction
from lib.models.protocol import Gap, LanguageModel
from lib.say import shown

JUDGES = {"target": "AD", "sum": "AB", "mean": "ABC"}  # who finds which of the four pairs right
HALF = ("none of them", "half of them", "all of them", "it depends on the model")


@exercise(1)
def on_paper(given: Any) -> str:
    """Which of the four pairs of the exercise are right by each judge: a dict of letters."""
    if not isinstance(given, dict) or set(given) != set(JUDGES):
        raise NotYet(f"Give a dict with the keys {', '.join(map(repr, JUDGES))}, and not {shown(repr(given))}.")
    for judge, letters in given.items():
        if letters is ...:
            raise NotYet(
                f"There are three dots left by the {judge}: put the letters of the right pairs in their place."
            )
        if not isinstance(letters, str):
            raise NotYet(f"By the {judge}: give the letters as one text, such as 'AD', and not {shown(repr(letters))}.")
        _judge_letters(judge, "".join(sorted(set(letters.upper()) - set(" ,;"))))
    return (
        "Each judge finds other pairs right, and none of them finds all: who judges is a choice, and belongs to the "
        "result."
    )


def _judge_letters(judge: str, found: str) -> None:
    if found == JUDGES[judge]:
        return
    if judge == "target" and "C" in found:
        raise NotYet(
            "By the target: *will run* and *ran* differ in more than one word, so C has no single target to judge at."
        )
    if judge == "target" and "B" in found:
        raise NotYet(
            "By the target: in B *will* costs less than *did*. What comes after it makes up for that only in the "
            "sentence."
        )
    if judge != "target" and "D" in found:
        raise NotYet(f"By the {judge}: D is a tie, since both sentences add up to the same. A tie is no success.")
    if judge == "sum" and found == JUDGES["mean"]:
        raise NotYet("By the sum: that is what the mean says. Add up the words and do not divide: C costs -8 and -7.5.")
    if judge == "mean" and found == JUDGES["sum"]:
        raise NotYet(
            "By the mean: that is what the sum says. Divide each by its own number of words: C has five and four."
        )
    wrong = sorted(set(found) ^ set(JUDGES[judge]))
    raise NotYet(f"By the {judge}: look again at {wrong[0]}. The nearer a log-probability is to 0, the more probable.")


@exercise(2)
def left_only(function: Any, expected: Any, pairs: pd.DataFrame, lm: LanguageModel) -> str:
    """Gaps that show what stands before them and nothing behind but the full stop; then the model with and without it.

    ``pairs``: columns ``left``, ``good``, ``bad``, ``right``; each pair beside its mirror.
    """
    expected = prediction(expected, HALF)
    tried = pd.DataFrame({"left": ["The girl", "The boys"], "good": "did", "bad": "will",
                          "right": ["not sing yesterday.", "not sing last week."]})  # fmt: skip
    _judge_gaps(tried, _gaps(call(function, tried)))
    hidden = _gaps(call(function, pairs))
    _judge_gaps(pairs, hidden)
    whole, left = (
        _right(lm, pairs, gaps) for gaps in ([Gap(*row) for row in pairs[["left", "right"]].to_numpy()], hidden)
    )
    came = "as you expected" if expected == HALF[1] else f"where you expected *{expected}*"
    both = "With both sides" if lm.family == "masked" else "With both sides, of which this model reads only the left,"
    return (
        f"{both} {whole} of {len(pairs)} are right, with the left side {left}, {came}. A pair and its mirror "
        "then show the same words, so the form that the model prefers is right in one and wrong in the other, "
        "whatever the model."
    )


def _right(lm: LanguageModel, pairs: pd.DataFrame, gaps: list[Gap]) -> int:
    fills = scoring.fill(lm, gaps, [*pairs["good"], *pairs["bad"]])
    return int(metrics.minimal_pairs(fills, pairs["good"], pairs["bad"])["correct"].sum())


def _gaps(found: Any) -> list[Gap]:
    if not isinstance(found, (list, tuple)) or isinstance(found, Gap):
        raise NotYet(f"A list of gaps is asked for, one a pair; your function gives {shown(found)}.")
    for one in found:
        if not isinstance(one, (tuple, list)) or len(one) != 2 or not all(isinstance(text, str) for text in one):
            raise NotYet(f"A gap is two texts, Gap(left, right); in your list stands {shown(repr(one))}.")
    return [Gap(*one) for one in found]


def _judge_gaps(pairs: pd.DataFrame, found: list[Gap]) -> None:
    lefts, rights = list(pairs["left"]), [gap.right for gap in found]
    if len(found) != len(pairs):
        raise NotYet(
            f"Of {len(pairs)} pairs you make {len(found)} gaps; make one for each, for both forms are read off the "
            "same gap."
        )
    if rights == list(pairs["right"]):
        raise NotYet(
            "You leave what stands behind the gap where it is; the model would see *yesterday*. Put a full stop in "
            "its place."
        )
    if rights == [""] * len(pairs):
        raise NotYet(
            "You hide the full stop too. A masked model then takes the gap for a sentence that breaks off, and two "
            "things have changed at once; keep a full stop as right context."
        )
    for gap, left in zip(found, lefts, strict=True):
        if gap.left.strip() != left:
            raise NotYet(f"The left context of a gap should stay *{left}*; yours is *{gap.left}*.")
        if gap.right != ".":
            raise NotYet(f"Behind the gap should stand a full stop alone, '.'; in yours stands {shown(gap.right)!r}.")


@exercise(3)
def my_pairs(given: Any, lm: LanguageModel) -> str:
    """At least four pairs (pattern, good, bad) that differ in one word; every form is as often good as bad."""
    rows = []
    for place, pair in enumerate(own_items.listed(given, 4, "pairs"), start=1):
        pattern, good, bad = own_items.texts(pair, ["pattern", "good sentence", "bad sentence"], f"Pair {place}")
        left, *forms, right = own_items.one_word_apart(good, bad, f"Pair {place}")
        if not left or not right:
            raise NotYet(
                f"Pair {place}: the word that differs should stand inside the sentence, with words before it and "
                "behind it."
            )
        for form in forms:
            own_words.single(lm, form, f"Pair {place}")
        rows.append([pattern.strip(), left, *forms, f"{right}{good[-1]}"])
    table = pd.DataFrame(rows, columns=["pattern", "left", "good", "bad", "right"])
    if table["pattern"].nunique() < 2:
        raise NotYet(
            "All your pairs are of one pattern; with two, such as the adverb first and last, there is something to "
            "compare."
        )
    for pattern, of_pattern in table.groupby("pattern", sort=False):
        own_words.as_often(of_pattern["good"], of_pattern["bad"], f"In the pattern *{pattern}*")
    fills = scoring.fill(
        lm, [Gap(*row) for row in table[["left", "right"]].to_numpy()], [*table["good"], *table["bad"]]
    )
    correct = metrics.minimal_pairs(fills, table["good"], table["bad"])["correct"].groupby(table["pattern"], sort=False)
    told = ", ".join(
        f"{pattern} {right:.0f} of {n}"
        for pattern, right, n in zip(correct.groups, correct.sum(), correct.size(), strict=True)
    )
    return f"{len(table)} pairs, and no form is a safe bet. Right at the target: {told}."
