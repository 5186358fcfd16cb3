"""Checks of the exercises to ``22_long_distance``."""

from typing import Any

import numpy as np
import pandas as pd

from lib import metrics, scoring
from lib.checks import NOTHING, NotYet, a_number, call, exercise, judge, own_items, prediction
from lib.models.protocol import Gap, LanguageModel

SMALL_WORDS = """
a an the this that these those my your his her its our their some every each all no in on at by near behind beside beyond under
over above below between before after from of for to into with without about against around across along through and or but
who which whom whose when where while because if as than not never always often very
"""
FUNCTION_WORDS = frozenset(SMALL_WORDS.split())
MEANS = ("pooled", "within sentences", "the same")
FIELDS = ("sense, right", "sense, wrong", "nonsense, right", "nonsense, wrong")


@exercise(1)
def with_form(function: Any) -> str:
    """Three rows of a file in the format of Gulordava et al., one with the old word in two places."""
    bridge = "The bridge near the old church led to a quiet village . <eos>"
    words = bridge.split()[:-1]
    judge(_text(call(function, bridge, 6, "leads")), " ".join([*words[:6], "leads", *words[7:]]), {
        "You keep `<eos>`, which marks the end in the file and is no word of the sentence.": bridge.replace("led", "leads"),
        "You replace the word before. `len_prefix` counts the words before the verb, so the verb is `words[len_prefix]`, for "
        "Python counts from 0.": " ".join([*words[:5], "leads", *words[6:]]),
        "You replace the word behind. Python counts from 0: the verb is `words[len_prefix]`.":
            " ".join([*words[:7], "leads", *words[8:]]),
        "You put the form in and keep the word that stood there; take that out.": " ".join([*words[:6], "leads", *words[6:]]),
        "You put the form behind the word that stood there; take that out.": " ".join([*words[:7], "leads", *words[7:]]),
        "The word in the file still stands there. In most rows it is not the form of the row: put `form` in its place.":
            " ".join(words),
        "You give what stands up to the verb; the whole sentence is asked for.": " ".join([*words[:6], "leads"]),
        "You lose the full stop; only `<eos>` goes out.": " ".join([*words[:6], "leads", *words[7:-1]]),
        "You join the full stop to the word before it; the format keeps all words apart.":
            f"{' '.join([*words[:6], 'leads', *words[7:-1]])}.",
        "The space before `<eos>` is left at your sentence's end: split it first, or take it off (`strip`).":
            " ".join([*words[:6], "leads", *words[7:], ""]),
    }, f"*{bridge}*, 6 and *leads*")  # fmt: skip
    shop = "The men that run the shop run it . <eos>"
    judge(_text(call(function, shop, 6, "runs")), "The men that run the shop runs it .", {
        "You replace the word wherever it stands. *run* stands there twice, and only the one at `len_prefix` is the verb.":
            "The men that runs the shop runs it .",
        "You replace the first *run*; the verb is the one at `len_prefix`.": "The men that runs the shop run it .",
    }, f"*{shop}*, 6 and *runs*")  # fmt: skip
    judge(_text(call(function, "Go home . <eos>", 0, "Goes")), "Goes home .", {}, "*Go home . <eos>*, 0 and *Goes*")
    return "The form stands in its place, and only there."


@exercise(2)
def gain(function: Any, expected: Any) -> str:
    """Sense minus nonsense of three sentences, one of them without variants; which way to take the mean gives more."""
    expected = prediction(expected, MEANS)
    table = pd.DataFrame({
        "sentence": ["a", "a", "a", "b", "b", "b", "b", "b", "c"],
        "kind": ["sense", "nonsense", "nonsense", "sense", *4 * ["nonsense"], "sense"],
        "correct": [1, 1, 0, 0, 1, 0, 0, 0, 1],
    })  # fmt: skip
    sense, nonsense = (table.loc[table["kind"] == kind] for kind in ("sense", "nonsense"))
    both = table[table["sentence"] != "c"]
    pooled = both.groupby("kind")["correct"].mean()
    of_nonsense = nonsense.groupby("sentence")["correct"].mean()
    judge(a_number(call(function, table)), 0.125, {
        "You compare all sensible rows with all nonsense rows, so that a sentence with more variants counts more, and one "
        "without any counts on one side. Take the difference within each sentence first.":
            sense["correct"].mean() - nonsense["correct"].mean(),
        "You pool the rows of the sentences that have both. Then *b*, with four variants, counts twice as much as *a*. Take "
        "the difference within each sentence first, and then the mean.": pooled["sense"] - pooled["nonsense"],
        "Sentence *c* has no nonsense and still counts as sense. Without its other half it says nothing about the difference: "
        "leave it out.": sense["correct"].mean() - of_nonsense.mean(),
        "You read the missing nonsense of sentence *c* as 0, all wrong. It was not asked: leave *c* out.":
            (0.5 - 0.25 + 1) / 3,
        "You divide by three sentences; only two have both kinds.": 0.25 / 3,
        "The sign is turned: sense minus nonsense.": -0.125,
        "Sentence *c* has no nonsense, which makes your mean NaN. Leave it out.": np.nan,
        "You take the sum over the sentences; take the mean.": 0.25,
        "You count the rows that are right; take shares, or a sentence with more variants has more nonsense.": -0.5,
    }, "a table of three sentences")  # fmt: skip
    turned = table.iloc[::-1].assign(sentence=lambda t: t["sentence"].map({"a": 7, "b": 3, "c": 5}))
    judge(a_number(call(function, turned)), 0.125, {}, "the same rows in another order, with numbers for names,")
    if expected != "pooled":
        raise NotYet(
            "Your function is right, your prediction is not. Pooled, 2 of 3 sensible rows are right and 2 of 6 nonsense "
            "rows; what does each sentence add to these two shares, and what does *c*?"
        )
    return (
        "a: .50, b: -.25, c says nothing: .125 within sentences. Pooled it would be .333: there *c* stands for sense and "
        "for no nonsense, and the four variants of *b*, which are hard, for most of the nonsense."
    )


@exercise(3)
def my_sentences(given: Any, lm: LanguageModel) -> str:
    """At least two sensible pairs with a nonsense variant each, one singular and one plural."""
    items = [own_items.texts(item, FIELDS, f"Item {n}") for n, item in enumerate(own_items.listed(given, 2), start=1)]
    numbers, rows = [], []
    for place, (*sense, nonsense_good, nonsense_bad) in enumerate(items, start=1):
        where = f"Item {place}"
        asked = []
        for kind, good, bad in (("sense", *sense), ("nonsense", nonsense_good, nonsense_bad)):
            found = own_items.one_word_apart(good, bad, f"{where}, {kind}")
            asked.append((kind, *found, own_items.agreeing(found[1], found[2], f"{where}, {kind}")))
            own_items.one_piece(lm, found[1], where)
            own_items.one_piece(lm, found[2], where)
        _same_form(sense[0], nonsense_good, where)
        (_, left, *_, number), (_, left_of_nonsense, *_, number_of_nonsense) = asked
        if len(left.split()) != len(left_of_nonsense.split()) or number != number_of_nonsense:
            raise NotYet(f"{where}: the verb of the nonsense must stand in the same place and have the same number.")
        if len(left.split()) < 4:
            raise NotYet(f"{where}: before the verb stands only *{left}*. Put words between the subject and its verb.")
        numbers.append(number)
        rows += asked
    own_items.balanced(numbers)
    table = pd.DataFrame(rows, columns=["kind", "left", "good", "bad", "right", "number"])
    gaps = [Gap(left, f"{right}.") for left, right in zip(table["left"], table["right"], strict=True)]
    fills = scoring.fill(lm, gaps, [*table["good"], *table["bad"]])
    judged = metrics.minimal_pairs(fills, table["good"], table["bad"]).assign(kind=table["kind"])
    means = judged.groupby("kind")["margin"].mean()
    right = judged.groupby("kind")["correct"].sum()
    return (
        f"{len(items)} sentences. Sense: right in {right['sense']:.0f}, mean margin {means['sense']:.2f}; nonsense: "
        f"right in {right['nonsense']:.0f}, mean margin {means['nonsense']:.2f}."
    )


def _text(found: Any) -> str:
    if found is None:
        raise NotYet(NOTHING)
    if isinstance(found, (list, tuple)):
        raise NotYet("Your function gives a list of words; join them with spaces, `' '.join(...)`.")
    if not isinstance(found, str):
        raise NotYet(f"A sentence is asked for, and not {type(found).__name__}.")
    return found


def _same_form(sense: str, nonsense: str, where: str) -> None:
    """Nonsense keeps the sentence's form: as many words, its small words in their places, and no other word."""
    here, there = (sentence.strip(".?!").split() for sentence in (sense, nonsense))
    if len(here) != len(there):
        raise NotYet(
            f"{where}: the sentence has {len(here)} words and its nonsense {len(there)}; the form must be the same."
        )
    for word, other in zip(here, there, strict=True):
        small = {word.lower(), other.lower()} & FUNCTION_WORDS
        if small and word.lower() != other.lower():
            raise NotYet(
                f"{where}: *{word}* became *{other}*. Keep the small words ({', '.join(sorted(small))}) as they are."
            )
        if not small and word.lower() == other.lower():
            raise NotYet(f"{where}: *{word}* stands in both. In the nonsense, change every word but the small ones.")
