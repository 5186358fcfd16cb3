"""Common wrong answers to the exercises on coordination and tense and on minimal pairs, each with the message that it gets."""

import numpy as np
import pandas as pd
import pytest
from tiny import model

from lib.checks import NotYet, blimp, coordination_tense, own_words
from lib.models import Gap

RIGHT = {"target": "AD", "sum": "AB", "mean": "ABC"}
MIRRORS = [
    ("first", "Yesterday the boy did not sing.", "Yesterday the boy will not sing."),
    ("first", "Tomorrow the boy will not sing.", "Tomorrow the boy did not sing."),
    ("last", "The boy did not sing yesterday.", "The boy will not sing yesterday."),
    ("last", "The boy will not sing tomorrow.", "The boy did not sing tomorrow."),
]
REFLEXIVES = [
    ("The boy hurt himself.", "The boy hurt herself."),
    ("The queen hurt herself.", "The queen hurt himself."),
    ("The king saw himself.", "The king saw herself."),
    ("The girl saw herself.", "The girl saw himself."),
]


def refused(check, words, *answer):
    with pytest.raises(NotYet) as found:
        check.__wrapped__(*answer)
    assert words in str(found.value)


class OnePieceEach:
    """A stand-in for a model: every word but those with a z is one piece."""

    def word(self, form, position):
        from lib.models.protocol import Word

        return Word(form, (1, 2) if "z" in form else (1,), "")

    def spelling(self, ids):
        return ["piece"] * len(ids)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (..., "Give a dict with the keys 'target', 'sum', 'mean'"),
        ({"sum": "AB"}, "Give a dict with the keys"),
        (RIGHT | {"mean": ...}, "There are three dots left by the mean"),
        (RIGHT | {"mean": {"A", "B", "C"}}, "give the letters as one text"),
        (RIGHT | {"target": "ACD"}, "C has no single target"),
        (RIGHT | {"target": "ABD"}, "makes up for that only in the sentence"),
        (RIGHT | {"target": "A"}, "By the target: look again at D"),
        (RIGHT | {"sum": "ABD"}, "By the sum: D is a tie"),
        (RIGHT | {"mean": "ABCD"}, "By the mean: D is a tie"),
        (RIGHT | {"sum": "ABC"}, "By the sum: that is what the mean says"),
        (RIGHT | {"mean": "AB"}, "By the mean: that is what the sum says"),
        (RIGHT | {"sum": "ABX"}, "By the sum: look again at X"),
    ],
)
def test_three_judges_on_paper(answer, words):
    refused(coordination_tense.on_paper, words, answer)


def test_letters_come_in_any_order_and_case():
    said = coordination_tense.on_paper.__wrapped__({"target": "d, a", "sum": "BA", "mean": "A B C"})
    assert said.endswith("who judges is a choice, and belongs to the result.")


PAIRS = pd.DataFrame([("The boy", "did", "will", "not sing yesterday."), ("The boy", "will", "did", "not sing tomorrow.")],
                     columns=["left", "good", "bad", "right"])  # fmt: skip


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda pairs: [Gap(*row) for row in pairs[["left", "right"]].to_numpy()],
            "You leave what stands behind the gap",
        ),
        (lambda pairs: [Gap(left, "") for left in pairs["left"]], "You hide the full stop too"),
        (lambda pairs: [Gap(left, ".") for left in pairs["left"].unique()[:1]], "make one for each"),
        (lambda pairs: [Gap(left, "not.") for left in pairs["left"]], "should stand a full stop alone"),
        (lambda pairs: [Gap(left + " did", ".") for left in pairs["left"]], "should stay *The girl*"),
        (lambda pairs: list(pairs["left"]), "A gap is two texts"),
        (lambda pairs: [1, 2], "A gap is two texts"),
        (lambda pairs: None, "A list of gaps is asked for"),
        (lambda pairs: Gap("The girl", "."), "A list of gaps is asked for"),
    ],
)
def test_hide_what_stands_behind_the_gap(function, words):
    refused(coordination_tense.left_only, words, function, "half of them", PAIRS, None)


def test_the_share_that_no_model_can_change_is_told_to_whoever_expected_another():
    judged = coordination_tense.left_only.__wrapped__
    say = judged(
        lambda pairs: [Gap(left, ".") for left in pairs["left"]], "all of them", _known_to_tiny(), model("bert-cased")
    )
    assert say.startswith("With both sides ") and "with the left side 1, where you expected *all of them*" in say
    say = judged(
        lambda pairs: [Gap(left, ".") for left in pairs["left"]], "all of them", _known_to_tiny(), model("gpt2")
    )
    assert say.startswith(
        "With both sides, of which this model reads only the left, 1 of 2 are right, with the left side 1"
    )
    refused(coordination_tense.left_only, "First write down what you expect", None, ..., PAIRS, None)


def _known_to_tiny():
    return pd.DataFrame([("The pilot", "walks", "laugh", "and laughs."), ("The pilot", "laugh", "walks", "and walk.")],
                        columns=["left", "good", "bad", "right"])  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (..., "Nothing is written there yet"),
        ([MIRRORS[0], ...], "There are three dots left"),
        (MIRRORS[:3], "At least 4 pairs"),
        ([*MIRRORS[:3], MIRRORS[0]], "is there twice"),
        ([*MIRRORS[:3], MIRRORS[3][1:]], "Pair 4 should hold 3 texts"),
        ([*MIRRORS[:3], ("last", "The boy ran.", "The boy will run.")], "3 and 4 words"),
        ([*MIRRORS[:3], ("last", "The boy sings.", "The boy sing.")], "should stand inside the sentence"),
        ([("all", *pair[1:]) for pair in MIRRORS], "All your pairs are of one pattern"),
        (
            [*MIRRORS[:3], ("last", "The girl did not sing.", "The girl will not sing.")],
            "*last* *did* is right more often",
        ),
        ([*MIRRORS[:3], ("last", "The boy dozes not.", "The boy will not.")], "no single item *dozes*"),
    ],
)
def test_pairs_of_ones_own(pairs, words):
    refused(coordination_tense.my_pairs, words, pairs, OnePieceEach())


def by(values, tokens, reduction):
    total = np.where(np.arange(values.shape[1]) < tokens[:, None], values, 0).sum(1)
    return total if reduction == "sum" else total / tokens


def verdicts(good, bad, tokens_good, tokens_bad, reduction):
    return by(good, tokens_good, reduction) > by(bad, tokens_bad, reduction)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda g, b, m, n, r: by(g, m, r) >= by(b, n, r), "You count the tie as right with the sum"),
        (lambda g, b, m, n, r: verdicts(g, b, m, n, "mean"), "You give the mean where the sum is asked for"),
        (lambda g, b, m, n, r: verdicts(g, b, m, n, "sum"), "With the mean your verdicts are those of the sum"),
        (lambda g, b, m, n, r: verdicts(g * 1, b, m, n, "sum") if r == "sum" else by(g, m, "sum") / 4 > by(b, n, "sum") / 4,
         "not by the width of the array"),
        (lambda g, b, m, n, r: getattr(g, r)(axis=1) > getattr(b, r)(axis=1), "With the sum you read the padding as tokens"),
        (lambda g, b, m, n, r: verdicts(g, b, m, n, r) if r == "sum" else g.mean(1) > b.mean(1),
         "With the mean you read the padding"),
        (lambda g, b, m, n, r: np.where(g == -9, 0, g).sum(1) > np.where(b == -9, 0, b).sum(1), "the padding by its value"),
        (lambda g, b, m, n, r: by(g, m, r) < by(b, n, r), "in which the bad sentence is more probable"),
        (lambda g, b, m, n, r: by(g, m, r) - by(b, n, r), "not the verdict"),
        (lambda g, b, m, n, r: verdicts(g, b, m, n, r).mean(), "5 numbers are asked for; your function gives one number"),
        (lambda g, b, m, n, r: None, "gives nothing back"),
        (lambda g, b, m, n, r: np.zeros(5), "For five pairs and the sum"),
        (lambda g, b, m, n, r: g.fill(0), "changes what it is given"),
    ],
)  # fmt: skip
def test_verdicts_from_tokens(function, words):
    refused(blimp.verdicts, words, function)
    assert blimp.verdicts.__wrapped__(verdicts)


SCORED = pd.DataFrame([(-24.0, -22.0, 8, 6, 6, 6), (-20.0, -25.0, 5, 5, 5, 5)], columns=blimp.COLUMNS)


def means(table, unit="tokens"):
    return [table[f"log_probability_{side}"] / table[f"{unit}_{side}"] for side in ("good", "bad")]


def sums(table):
    return table["log_probability_good"], table["log_probability_bad"]


def turned(table):
    (good, bad), (first, second) = sums(table), means(table)
    return (good > bad) != (first > second)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda t: (sums(t)[0] > sums(t)[1]) != (means(t, "words")[0] > means(t, "words")[1]),
            "You divide by the number of words",
        ),
        (lambda t: np.sign(sums(t)[0] - sums(t)[1]) != np.sign(means(t)[0] - means(t)[1]), "You compare signs"),
        (lambda t: (sums(t)[0] >= sums(t)[1]) != (means(t)[0] >= means(t)[1]), "You count a tie as right"),
        (lambda t: t["tokens_good"] != t["tokens_bad"], "Those could turn"),
        (lambda t: means(t)[0] > means(t)[1], "You mark what is right by the mean"),
        (lambda t: sums(t)[0] > sums(t)[1], "You mark what is right by the sum"),
        (lambda t: ~turned(t), "You mark the pairs that do not turn"),
        (lambda t: turned(t).sum(), "7 numbers are asked for; your function gives one number"),
    ],
)
def test_the_mean_in_place_of_the_sum(function, words):
    refused(blimp.turned, words, function, "yes", SCORED)


def test_turned_tells_how_many_and_where_the_prediction_went():
    say = blimp.turned.__wrapped__(turned, "no", SCORED)
    assert "on this model: 1 of 2, 1 of them with as many words" in say and "where you expected not" in say
    say = blimp.turned.__wrapped__(turned, "yes", SCORED.tail(1))
    assert "on this model: none of 1, and none with as many words" in say and "as you expected" in say
    refused(blimp.turned, "A prediction is one of 'yes', 'no'", turned, "maybe", SCORED)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (..., "Nothing is written there yet"),
        (REFLEXIVES[:3], "At least 4 pairs"),
        ([*REFLEXIVES[:3], ("The girl saw herself", "The girl saw himself.")], "end with a full stop"),
        ([*REFLEXIVES[:3], ("Some saw herself.", "Many saw herself.")], "in their first word"),
        ([*REFLEXIVES[:3], ("The girl saw herself.", "The girl saw us.")], "their length would help to decide"),
        (
            [*REFLEXIVES[:3], ("The man saw himself.", "The man saw herself.")],
            "In your paradigm *himself* is right more often",
        ),
        ([*REFLEXIVES[:3], ("The man saw himself.", "The men see himself.")], "differ in 2 words"),
    ],
)
def test_a_paradigm_of_ones_own(pairs, words):
    refused(blimp.my_pairs, words, pairs, model("bert-cased"))


def test_a_fair_paradigm_is_judged():
    assert "4 pairs of equal length" in blimp.my_pairs.__wrapped__(REFLEXIVES, model("bert-cased"))


def test_words_of_ones_own_items():
    for context in ("It is a bird.", "It is a ___", "", "It is a [MASK]"):
        with pytest.raises(NotYet, match="ends right before the gap"):
            own_words.open_ended(context, "Item 1")
    with pytest.raises(NotYet, match="'two words' is not one word"):
        own_words.single(OnePieceEach(), "two words", "Item 1")
    with pytest.raises(NotYet, match=r"\*bird\* stands in the context already"):
        own_words.outside("bird", "A Bird's nest, a bird, is", "Item 1")
    own_words.outside("bird", "A birdhouse is", "Item 1")
    with pytest.raises(NotYet, match="tab or a line break"):
        own_words.as_table([["1", "a\tb"]], ["item", "context"], pd.read_table)
