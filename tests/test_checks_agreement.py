"""Common wrong answers to the exercises on agreement, each with the message that it gets."""

import numpy as np
import pandas as pd
import pytest

from lib.checks import NotYet, agreement

pytestmark = pytest.mark.bundled
SCORED = pd.DataFrame({"attractor": ["none", "match", "mismatch", "mismatch"], "correct": [1.0, 1.0, 0.0, 1.0]})
ITEMS = [
    ("The label on the bottles is new.", "The label on the bottles are new.", -1),
    ("The labels on the bottle are new.", "The labels on the bottle is new.", -2),
    ("The boy that the teachers know works here.", "The boy that the teachers know work here.", -1),
    ("The boys that the teacher knows work here.", "The boys that the teacher knows works here.", -2),
]


def item(good, bad, label):
    return {"sentence_good": good, "sentence_bad": bad, "label": label}


def refused(check, words, *answer):
    with pytest.raises(NotYet) as found:
        check.__wrapped__(*answer)
    assert words in str(found.value)


def right(good, bad):
    valid = np.isfinite(good) & np.isfinite(bad)
    return (good > bad)[valid].mean()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda good, bad: (good >= bad).mean(), "You count the tie as right"),
        (lambda good, bad: ((good > bad) + (good == bad) / 2).mean(), "You count the tie as half right"),
        (lambda good, bad: (good > bad)[good != bad].mean(), "You leave the tie out"),
        (lambda good, bad: (good < bad).mean(), "in which the wrong form is more probable"),
        (lambda good, bad: (good <= bad).mean(), "at least as probable"),
        (lambda good, bad: (good > bad).sum(), "a share is that number divided"),
        (lambda good, bad: np.nanmean(good - bad), "You take the mean difference"),
        (lambda good, bad: 100 * (good > bad).mean(), "You give per cent"),
        (lambda good, bad: (good > bad).mean(), "You count a pair without a score as a failure"),
        (lambda good, bad: 1 - (good <= bad).mean(), "You count a pair without a score as right"),
        (lambda good, bad: np.nan if np.isnan(good).any() else right(good, bad), "makes your whole share NaN"),
        (lambda good, bad: 0.6, "For five pairs, of which two have a form without a score,"),
    ],
)
def test_share_right(function, words):
    refused(agreement.share_right, words, function)
    assert agreement.share_right.__wrapped__(right)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda t, c: dict.fromkeys(t[c], t["correct"].mean()), "You give every group the share of all pairs. Take"),
        (lambda t, c: dict.fromkeys(t[c], t["correct"].fillna(0).mean()), "and count one without a score as wrong"),
        (
            lambda t, c: t.fillna({"correct": 0}).groupby(c)["correct"].mean(),
            "It leaves the group: mismatch is one of three",
        ),
        (lambda t, c: t.groupby(c)["correct"].sum(), "You count the right pairs"),
        (lambda t, c: t.groupby(c)["correct"].sum() / len(t), "You divide by the number of all pairs"),
        (
            lambda t, c: t.groupby(c)["correct"].sum() / t["correct"].count(),
            "You divide by the number of all scored pairs",
        ),
        (lambda t, c: t.groupby("attractor")["correct"].mean(), "with KeyError: 'attractor'"),
        (lambda t, c: t.groupby(c)[["correct"]].mean(), "Your function gives a table"),
        (lambda t, c: SCORED.groupby(c)["correct"].mean(), "You take the table `scored`"),
        (lambda t, c: {"match": 1}, "The group *none* is missing"),
        (lambda t, c: [0, 1, 1 / 3], "A dict or a Series with one share for each group is asked for, and not list"),
        (lambda t, c: None, "gives nothing back"),
        (lambda t, c: {"none": 0, "match": 1, "mismatch": 1 / 3}, "The group *singular* is missing"),
    ],
)
def test_share_by(function, words):
    refused(agreement.share_by, words, function, "none", SCORED)


def test_a_prediction_that_does_not_come_true_is_told_and_no_failure():
    def share_by(table, column):
        return table.groupby(column)["correct"].mean()

    said = agreement.share_by.__wrapped__(share_by, "none", SCORED)
    assert said.startswith("On this model: none 1.00, match 1.00, mismatch 0.50.")
    assert said.endswith("You expected *none* to be hardest, but here it is *mismatch*; why could that be?")
    assert agreement.share_by.__wrapped__(share_by, "mismatch", SCORED).endswith("and so it is.")
    refused(agreement.share_by, "First write down what you expect", share_by, ..., SCORED)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: item("The label is new.", "The label are new.", -1)}, "Item 1: before the verb stands only *The label*"),
        ({0: item(*ITEMS[0][:2], -2)}, "the label -2 says that the right form is plural, but *is* is singular"),
        ({0: item(*ITEMS[0][:2], 1)}, "Item 1 has the label 1; it is -2 for plural"),
        ({0: item(*ITEMS[0][:2], [1])}, "Item 1 has the label [1]; it is -2 for plural"),
        ({0: item(None, *ITEMS[0][1:])}, "Item 1: 'sentence_good' is not text"),
        ({0: item(ITEMS[0][0], "The label on the bottle are new.", -1)}, "Item 1: the sentences differ in 2 words"),
        ({0: item(*ITEMS[0]) | {"note": {1}}}, "An item holds something that is neither text nor a number"),
        ({0: ITEMS[0]}, "Item 1 should be a dict with the fields sentence_good, sentence_bad, label"),
        ({0: item("The label on the bottles rusts.", "The label on the bottles rust.", -1)}, "no single item *rusts*"),
        ({0: item("The labels on a bottle are new.", "The labels on a bottle is new.", -2)}, "plural in 3"),
        ({3: item(*ITEMS[0])}, "is there twice"),
    ],
)  # fmt: skip
def test_my_items(change, words, masked):
    items = [change.get(place, item(*one)) for place, one in enumerate(ITEMS)]
    refused(agreement.my_items, words, items, masked)


def test_my_items_are_run(masked):
    said = agreement.my_items.__wrapped__([item(*one) for one in ITEMS], masked)
    assert said.startswith("4 pairs, half of them plural; this model is right in ")
