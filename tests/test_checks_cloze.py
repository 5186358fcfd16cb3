"""Common wrong answers to the exercises on inference, roles and negation, each with the message that it gets."""

import inspect

import numpy as np
import pandas as pd
import pytest
from test_checks_sentences import PAIRS, OnePieceEach, refused

from lib.checks import blimp, coordination_tense, inference, negation, roles
from lib.checks import own_words as words_of

THREE = ["expected", "within", "between"]
KEYS = ("She sat down before the keys.", "Soon everybody listened to her")


def accuracy_at(predictions, expected, k, kinds=("word",), skip=False, place="last"):
    right = 0
    for listed, word in zip(predictions, expected, strict=True):
        shown = [found for found in listed if not skip or found[1] == "word"]
        own = [p for piece, kind, p in shown if piece == word and kind in kinds]
        places = (
            [
                sum(p >= own[0] for *_, p in shown),
                next(at for at, found in enumerate(shown, start=1) if found[:2] == (word, "word") or "piece" in kinds),
            ]
            if own
            else [999, 999]
        )
        right += places[place != "last"] <= k
    return right / len(expected)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda p, e, k: accuracy_at(p, e, k - 1), "You leave out the place k itself"),
        (lambda p, e, k: accuracy_at(p, e, 1), "You look at the first prediction only"),
        (lambda p, e, k: accuracy_at(p, e, 99), "or at one place more than k"),
        (lambda p, e, k: accuracy_at(p, e, k + 1), "or at one place more than k"),
        (lambda p, e, k: accuracy_at(p, e, k) * len(e), "a share is that number divided"),
        (lambda p, e, k: accuracy_at(p, e, k, kinds=("word", "piece")), "You let the end of another word count"),
        (lambda p, e, k: accuracy_at(p, e, k, skip=True), "You take the pieces out before you count places"),
        (lambda p, e, k: accuracy_at(p, e, k, place="listed"), "by where it happens to stand in the list"),
        (lambda p, e, k: [accuracy_at(p, e, k)] * 2, "One number is asked for"),
        (lambda p, e, k: 0.5, "For three contexts, whose words stand at place 2, at place 3 and nowhere, and k = 3"),
    ],
)
def test_among_the_likeliest_k(function, words):
    refused(inference.accuracy_at, words, function)
    assert inference.accuracy_at.__wrapped__(accuracy_at)


def in_order(first, second, third, threshold):
    steps = np.array([first - second, second - third])
    return (steps > threshold).all(0)[np.isfinite(steps).all(0)].mean()


def scored(*roles):
    return np.isfinite(np.array(roles)).all(0)


ANSWERS = pd.DataFrame(
    [(item, role, p) for item, row in enumerate([[0.5, 0.2, 0.1], [0.003, 0.002, 0.001]])
     for role, p in zip(THREE, row, strict=True)],
    columns=["item", "role", "probability"],
)  # fmt: skip


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda e, w, b, t: ((e - w > t) & (w - b > t)).mean(), "as a failure"),
        (lambda e, w, b, t: ((e >= w) & (w >= b))[scored(e, w, b)].mean(), "You count ties as right order"),
        (lambda e, w, b, t: ((e > w) & (e > b))[scored(e, w, b)].mean(), "that is sensitivity"),
        (lambda e, w, b, t: (w - b > t)[scored(e, w, b)].mean(), "You ask only for *within* above *between*"),
        (lambda e, w, b, t: ((e - w > t) & (w > b))[scored(e, w, b)].mean(), "You ask the expected word alone"),
        (
            lambda e, w, b, t: ((e > w) & (w > b) & (e - b > t))[scored(e, w, b)].mean(),
            "two small steps make one large one",
        ),
        (lambda e, w, b, t: in_order(e, w, b, 0), "You do not use the threshold"),
        (lambda e, w, b, t: (e - w).mean(), "makes your whole share NaN"),
        (lambda e, w, b, t: ((e - w > t) & (w - b > t)).sum(), "a share is that number divided"),
        (lambda e, w, b, t: None, "gives nothing back"),
    ],
)
def test_the_order_of_the_n400(function, words):
    refused(inference.in_order, words, function, "down or stays", ANSWERS)


def test_a_higher_threshold_is_told_to_whoever_expected_it_to_help():
    say = inference.in_order.__wrapped__(in_order, "up or stays", ANSWERS)
    assert "1.00 of the items without a threshold, 0.50 with .01" in say and "where you expected *up or stays*" in say
    refused(inference.in_order, "A prediction is one of 'up or stays'", in_order, "up", ANSWERS)


def rotated():
    words = [
        ("piano", "guitar", "horse"),
        ("guitar", "piano", "cow"),
        ("horse", "cow", "guitar"),
        ("cow", "horse", "piano"),
    ]
    return [(f"The {number} sentence is whole.", f"The {number} breaks off before its", *row)
            for number, row in zip(("first", "second", "third", "fourth"), words, strict=True)]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (..., "There are three dots left"),
        (("Whole.", "Not", "cow", "horse"), "Item 4 should hold 5 texts"),
        (("No full stop", "Breaks off", "cow", "horse", "piano"), "Item 4: the first sentence is whole"),
        (("Whole.", "Does not break off.", "cow", "horse", "piano"), "Item 4: a context ends right before the gap"),
        (("Whole.", "Breaks off before its", "cow", "cow", "piano"), "three different words"),
        (("A cow came.", "Breaks off before its", "cow", "horse", "piano"), "*cow* stands in the context already"),
        (("Whole.", "Breaks off before its", "zebra", "horse", "piano"), "no single item *zebra*"),
        (("Whole.", "Breaks off before its", "two cows", "horse", "piano"), "is not one word"),
        (
            ("Whole.", "Breaks off before its", "horse", "cow", "piano"),
            "*horse* is expected 2 times, within 0 and between 1",
        ),
    ],
)
def test_inference_items_of_ones_own(last, words):
    refused(inference.my_items, words, [*rotated()[:3], last], OnePieceEach())


def test_between_is_of_another_category():
    words = [
        ("piano", "guitar", "horse"),
        ("guitar", "piano", "cow"),
        ("horse", "cow", "guitar"),
        ("cow", "horse", "piano"),
    ]
    inference._judge_roles([list(row) for row in words])
    words = [("piano", "guitar", "violin"), ("guitar", "violin", "piano"), ("violin", "piano", "guitar")]
    with pytest.raises(words_of.NotYet, match=r"Item 1: by your own \*within\* words \*piano\* and \*violin\*"):
        inference._judge_roles([list(row) for row in words])


def sensitivity(a, b, threshold):
    return (np.exp(a) - np.exp(b) > threshold)[np.isfinite(a) & np.isfinite(b)].mean()


def kept(a, b):
    return np.isfinite(a) & np.isfinite(b)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a, b, t: (a >= b)[kept(a, b)].mean(), "You count the tie as right"),
        (lambda a, b, t: (np.exp(a) - np.exp(b) > t).mean(), "as a failure"),
        (lambda a, b, t: (abs(np.exp(a) - np.exp(b)) > t)[kept(a, b)].mean(), "without its sign"),
        (lambda a, b, t: sensitivity(b, a, t), "more probable in b"),
        (lambda a, b, t: (a - b > t)[kept(a, b)].mean(), "take np.exp first"),
        (lambda a, b, t: sensitivity(a, b, 0), "You do not use the threshold"),
        (lambda a, b, t: (a - b).mean(), "makes your whole share NaN"),
        (lambda a, b, t: (np.exp(a) - np.exp(b) > t).sum(), "a share is that number divided"),
        (lambda a, b, t: (np.exp(a - b) > t)[kept(a, b)].mean(), "You divide the probabilities"),
        (lambda a, b, t: (np.exp(a) - np.exp(b))[kept(a, b)].mean(), "You take the mean difference"),
    ],
)
def test_sensitive_to_the_reversal(function, words):
    refused(roles.sensitivity, words, function)
    assert roles.sensitivity.__wrapped__(sensitivity)


def share_right(contexts_a, contexts_b, a, b):
    differ = np.array(contexts_a) != np.array(contexts_b)
    return (a > b)[differ].mean() if differ.any() else np.nan, (~differ).sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, y, a, b: ((a > b).mean(), share_right(x, y, a, b)[1]), "You count undefined pairs as wrong"),
        (lambda x, y, a, b: ((a > b)[a != b].mean(), (a == b).sum()), "You count a tie as undefined"),
        (lambda x, y, a, b: ((a >= b)[np.array(x) != np.array(y)].mean(), 2), "You count a tie as right"),
        (lambda x, y, a, b: (share_right(x, y, a, b)[0], 0), "You do not count the undefined pairs"),
        (lambda x, y, a, b: (share_right(x, y, a, b)[0], len(x) - 2), "number of defined pairs"),
        (lambda x, y, a, b: ((a > b).mean(), 0), "Nothing is undefined in your function"),
        (lambda x, y, a, b: share_right(x, y, a, b)[::-1], "in the wrong order"),
        (lambda x, y, a, b: np.nan_to_num(share_right(x, y, a, b)), "0 would say that the model failed"),
        (lambda x, y, a, b: np.nan_to_num(share_right(x, y, a, b), nan=0.5), ".5 would say that the model guessed"),
        (lambda x, y, a, b: share_right(x, y, a, b)[0], "2 numbers are asked for; your function gives one number"),
        (lambda x, y, a, b: x.clear(), "changes what it is given"),
    ],
)
def test_hide_the_nouns(function, words):
    refused(roles.share_right, words, function, "undefined", None, None)


THIEF, POLICE = "She asked which thief the policeman had", "She asked which policeman the thief had"
COOK, GUEST = "She asked which guest the cook had", "She asked which cook the guest had"
REVERSALS = [(THIEF, POLICE, "arrested"), (POLICE, THIEF, "escaped"), (COOK, GUEST, "fed"), (GUEST, COOK, "thanked")]


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (..., "There are three dots left"),
        (("one", "two"), "Pair 4 should hold 3 texts"),
        ((GUEST + ".", COOK, "thanked"), "a context ends right before the gap"),
        ((GUEST, GUEST, "thanked"), "a and b are the same sentence"),
        ((GUEST, COOK.replace("cook", "chef"), "thanked"), "*chef* is in one only"),
        ((GUEST, COOK.replace("cook", "guest"), "thanked"), "*cook* is in one only"),
        ((GUEST, "She asked the which cook guest had", "thanked"), "3 words have changed places"),
        ((GUEST, COOK, "amazed"), "no single item *amazed*"),
        ((GUEST, COOK, "asked"), "*asked* stands in the context already"),
        ((GUEST, COOK, "fed"), "*fed* is the target for"),
        ((THIEF, POLICE, "caught"), "Pair 3 has no mirror"),
    ],
)
def test_reversals_of_ones_own(last, words):
    refused(roles.my_pairs, words, [*REVERSALS[:3], last], OnePieceEach())


def count_right(ta, fa, tn, fn):
    return (ta > fa).sum(), (tn > fn).sum(), ((ta > fa) & (tn > fn)).sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda ta, fa, tn, fn: ((ta >= fa).sum(), (tn >= fn).sum(), ((ta >= fa) & (tn >= fn)).sum()),
            "You count ties as right",
        ),
        (lambda ta, fa, tn, fn: count_right(ta, fa, fn, tn), "where the false word wins"),
        (
            lambda ta, fa, tn, fn: (*count_right(ta, fa, tn, fn)[:2], min(count_right(ta, fa, tn, fn)[:2])),
            "the smaller of the two",
        ),
        (
            lambda ta, fa, tn, fn: ((ta > fa).sum(), (tn > fn).sum(), ((ta > fa) | (tn > fn)).sum()),
            "at least one of their sentences",
        ),
        (
            lambda ta, fa, tn, fn: ((ta > fa).sum(), (tn > fn).sum(), (ta > fa).sum() + (tn > fn).sum()),
            "For both you add",
        ),
        (lambda ta, fa, tn, fn: np.array(count_right(ta, fa, tn, fn)) / len(ta), "You give shares"),
        (lambda ta, fa, tn, fn: count_right(tn, fn, ta, fa), "in the wrong order"),
        (lambda ta, fa, tn, fn: count_right(ta, tn, tn, ta), "You compare the true words of both sentences"),
        (lambda ta, fa, tn, fn: count_right(ta, fn, tn, fa), "You compare a word with itself"),
        (lambda ta, fa, tn, fn: (4, 3, 4 * 3 / 6), "The first two numbers are right, the third is not"),
        (lambda ta, fa, tn, fn: 8, "3 numbers are asked for; your function gives one number"),
        (lambda ta, fa, tn, fn: (4, 3, 1), "For a model that does not read *not*"),
    ],
)
def test_right_in_both(function, words):
    refused(negation.count_right, words, function)
    assert negation.count_right.__wrapped__(count_right)


def shares(answers, drop=True, ties=False):
    table = answers.pivot(index=["polarity", "item"], columns="role", values="probability")
    table = table.dropna() if drop else table
    right = (table["true"] >= table["false"]) if ties else (table["true"] > table["false"])
    found = right.groupby("polarity").mean()
    return found["affirmative"], found["negative"]


def by_place(answers):
    parts = [
        answers.loc[answers["polarity"] == polarity, "probability"].to_numpy()
        for polarity in ("affirmative", "negative")
    ]
    return [(part[::2] > part[1::2]).mean() for part in parts]


def by_rows_of_roles(answers):
    found = []
    for polarity in ("affirmative", "negative"):
        rows = answers[answers["polarity"] == polarity]
        true, false = (rows.loc[rows["role"] == role, "probability"].to_numpy() for role in ("true", "false"))
        found.append((true > false)[np.isfinite(true) & np.isfinite(false)].mean())
    return found


def together(answers):
    table = answers.pivot(index=["polarity", "item"], columns="role", values="probability").dropna()
    return [(table["true"] > table["false"]).mean()] * 2


def of_set(*negatives):
    rows = [(i, polarity, role, p) for i, negative in enumerate(negatives) for polarity, role, p in (
        ("affirmative", "true", 0.5), ("affirmative", "false", 0.1), ("negative", "true", negative),
        ("negative", "false", 0.2))]  # fmt: skip
    return pd.DataFrame(rows, columns=["item", "polarity", "role", "probability"])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda t: shares(t, drop=False), "as a failure"),
        (lambda t: shares(t, ties=True), "You count a tie as right"),
        (lambda t: shares(t)[::-1], "in the wrong order"),
        (lambda t: (3, 1), "You count; a share is"),
        (together, "You do not keep the polarities apart"),
        (by_place, "You compare rows by where they stand"),
        (by_rows_of_roles, "You set the true and the false words side by side as their rows come"),
        (
            lambda t: t[t["role"] == "true"].groupby("polarity")["probability"].mean(),
            "You take the mean probability of the true words",
        ),
        (lambda t: 0.5, "2 numbers are asked for; your function gives one number"),
        (lambda t: t.drop(columns="item", inplace=True), "changes what it is given"),
    ],
)
def test_simple_or_natural(function, words):
    refused(negation.shares, words, function, "simple", of_set(0.1), of_set(0.1))


@pytest.mark.parametrize(
    ("expected", "sets", "words"),
    [
        ("natural", (of_set(0.1, 0.1), of_set(0.3, 0.1)), "*natural*, as you expected"),
        ("natural", (of_set(0.3, 0.3), of_set(0.3, 0.1)), "*simple*, where you expected *natural*"),
        ("simple", (of_set(0.3), of_set(0.3)), "*the same*, where you expected *simple*"),
    ],
)
def test_the_set_with_more_right_is_told(expected, sets, words):
    say = negation.shares.__wrapped__(shares, expected, *sets)
    assert words in say and f"natural 1.00 and {shares(sets[1])[1]:.2f}" in say


TOOLS = [(f"A {tool} is (a|an)", f"A {tool} is not (a|an)", "tool", "animal") for tool in ("hammer", "saw")]
ANIMALS = [(f"A {animal} is (a|an)", f"A {animal} is not (a|an)", "animal", "tool") for animal in ("lion", "cow")]


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (..., "There are three dots left"),
        (("A cow is", "A cow is not", "animal"), "Item 4 should hold 4 texts"),
        (("A cow is an animal.", "A cow is not an animal.", "animal", "tool"), "a context ends right before the gap"),
        (("A cow is not", "A cow is not", "animal", "tool"), "in the affirmative context already"),
        (("A cow is a", "A cow is no", "animal", "tool"), "has no *not*"),
        (("A cow is an", "A cow is not a", "animal", "tool"), "but for *not* the two contexts must be the same"),
        (("A cow is a", "A cow is not a", "animal", "animal"), "the two words are the same"),
        (("A cow animal is a", "A cow animal is not a", "animal", "tool"), "*animal* stands in the context already"),
        (("A cow is a", "A cow is not a", "zoo", "tool"), "no single item *zoo*"),
        (("An axe is (a|an)", "An axe is not (a|an)", "tool", "animal"), "*tool* is right more often than wrong"),
        (("A cow is an", "A cow is not an", "animal", "tool"), "*A cow is an* fits only one of *animal* and *tool*"),
        (("A cow is (a|an)", "A cow isn't (a|an)", "animal", "tool"), "has no *not*, as a word of its own"),
        (("A cow is not never", "A cow is never not", "animal", "tool"), "in the affirmative context already"),
        (("A cow is never (a|an)", "A cow is never not (a|an)", "animal", "tool"), "Item 4: only context_neg may"),
    ],
)
def test_negation_sets_of_ones_own(last, words):
    refused(negation.my_items, words, [*TOOLS, ANIMALS[0], last], OnePieceEach())


MODULES = (blimp, coordination_tense, inference, negation, roles)
OF_ALL = [(module, check) for module in MODULES for check in vars(module).values() if hasattr(check, "__wrapped__")]
CHECKS = [check for module, check in OF_ALL if check.__module__ == module.__name__]
JUNK = [
    None, ..., 3, "text", b"bytes", [], [None] * 5, [("a",) * 5] * 5, [[1, 2]] * 4, {"sum": 1}, {1, 2}, object(),
    np.zeros((2, 2)), pd.DataFrame({"a": [1]}), lambda *_: None, lambda: 1, lambda *_: [object()], lambda *_: "no",
    lambda *_: {1: 2}, lambda *given: 1 / 0, lambda *given: given, lambda *_: np.array(["a"] * 5), lambda *_: iter([1]),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.__module__.rpartition('.')[2]}.{check.__name__}")
def test_whatever_is_handed_over_the_answer_is_one_line(check, capsys):
    predictions = {
        "left_only": "half of them",
        "turned": "yes",
        "in_order": "either way",
        "share_right": "zero",
        "shares": "simple",
    }
    beside = [predictions.get(check.__name__), PAIRS, None][: len(inspect.signature(check.__wrapped__).parameters) - 1]
    for junk in JUNK:
        check(junk, *beside)
        out = capsys.readouterr().out
        assert out.startswith("Exercise ") and ": not yet. " in out and out.count("\n") == 1, out
