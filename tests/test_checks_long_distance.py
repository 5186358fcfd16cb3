"""Common wrong answers to the exercises to ``22_long_distance``, each with the message that it gets."""

import numpy as np
import pytest

from lib.checks import NotYet, long_distance

ITEMS = [
    (
        "The bridge near the old church leads to a village.",
        "The bridge near the old church lead to a village.",
        "The idea near the loud spoon works to a bottle.",
        "The idea near the loud spoon work to a bottle.",
    ),
    (
        "The books that my brother bought are on the table.",
        "The books that my brother bought is on the table.",
        "The clouds that my sugar asked run on the number.",
        "The clouds that my sugar asked runs on the number.",
    ),
]


def refused(check, words, *answer):
    with pytest.raises(NotYet) as found:
        check.__wrapped__(*answer)
    assert words in str(found.value)


def with_form(sent, place, form, end=True, instead=True, shift=0):
    """A right answer, with each of its choices made otherwise on request."""
    words = sent.split()[:-1] if end else sent.split()
    at = place + shift
    return " ".join([*words[:at], form, *words[at + instead :]])


def everywhere(sent, place, form):
    words = sent.split()[:-1]
    return " ".join(form if word == words[place] else word for word in words)


def first_place(sent, place, form):
    words = sent.split()[:-1]
    return with_form(sent, words.index(words[place]), form)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda *a: with_form(*a, end=False), "You keep `<eos>`"),
        (lambda *a: with_form(*a, shift=-1), "You replace the word before"),
        (lambda *a: with_form(*a, shift=1), "You replace the word behind"),
        (lambda *a: with_form(*a, instead=False), "and keep the word that stood there"),
        (lambda *a: with_form(*a, instead=False, shift=1), "You put the form behind the word"),
        (lambda sent, place, form: " ".join(sent.split()[:-1]), "The word in the file still stands there"),
        (lambda sent, place, form: " ".join([*sent.split()[:place], form]), "You give what stands up to the verb"),
        (lambda *a: with_form(*a).removesuffix(" ."), "You lose the full stop"),
        (everywhere, "You replace the word wherever it stands"),
        (first_place, "You replace the first *run*"),
        (lambda *a: with_form(*a).replace(" .", "."), "You join the full stop to the word before"),
        (lambda *a: with_form(*a) + " ", "is left at your sentence's end"),
        (lambda sent, place, form: with_form(sent, place or 1, form), "your answer is 'Go Goes .'; it should be 'Goes home .'"),
        (lambda *a: with_form(*a).split(), "Your function gives a list of words"),
        (lambda *a: None, "gives nothing back"),
        (lambda *a: 3, "A sentence is asked for, and not int"),
    ],
)  # fmt: skip
def test_with_form(function, words):
    refused(long_distance.with_form, words, function)
    assert long_distance.with_form.__wrapped__(with_form)


def means(table):
    return table.groupby(["sentence", "kind"])["correct"].mean().unstack()


def gain(table):
    both = means(table).dropna()
    return (both["sense"] - both["nonsense"]).mean()


def counted(table):
    both = table.groupby(["sentence", "kind"])["correct"].sum().unstack().dropna()
    return (both["sense"] - both["nonsense"]).mean()


def pooled(table):
    of_kind = table.groupby("kind")["correct"].mean()
    return of_kind["sense"] - of_kind["nonsense"]


def of_both(table):
    return pooled(table[table.groupby("sentence")["kind"].transform("nunique") == 2])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (pooled, "You compare all sensible rows with all nonsense rows"),
        (of_both, "You pool the rows of the sentences that have both"),
        (
            lambda t: means(t)["sense"].mean() - means(t)["nonsense"].mean(),
            "Sentence *c* has no nonsense and still counts",
        ),
        (
            lambda t: (means(t).fillna(0)["sense"] - means(t).fillna(0)["nonsense"]).mean(),
            "You read the missing nonsense",
        ),
        (lambda t: (means(t)["sense"] - means(t)["nonsense"]).sum() / 3, "You divide by three sentences"),
        (lambda t: -gain(t), "The sign is turned"),
        (lambda t: np.mean((means(t)["sense"] - means(t)["nonsense"]).to_numpy()), "which makes your mean NaN"),
        (lambda t: 2 * gain(t), "You take the sum over the sentences"),
        (counted, "You count the rows that are right"),
        (
            lambda t: gain(t[t["sentence"].isin(["a", "b"])]),
            "with KeyError: 'sense'",
        ),
        (means, "One number is asked for; your function gives 6 of them"),
    ],
)
def test_gain(function, words):
    refused(long_distance.gain, words, function, "pooled")
    assert ".125 within sentences" in long_distance.gain.__wrapped__(gain, "pooled")


def test_a_wrong_prediction_about_rows_on_paper_is_explained():
    for expected in ("within sentences", "the same"):
        refused(long_distance.gain, "Pooled, 2 of 3 sensible rows are right", gain, expected)
    refused(long_distance.gain, "First write down what you expect", gain, ...)


NONSENSE = "The {} near the {} spoon {} to a bottle."


def changed(item, **places):
    return tuple(places.get(name, text) for name, text in zip(("a", "b", "c", "d"), item, strict=True))


@pytest.mark.bundled
@pytest.mark.parametrize(
    ("item", "words"),
    [
        (ITEMS[0][:2], "Item 1 should hold 4 texts"),
        (changed(ITEMS[0], b="The bridge near the old church leads to a town."), "Item 1, sense: *village* is no verb form"),
        (changed(ITEMS[0], d="The idea near the loud spoon work to a bottle"), "and end with a full stop"),
        (changed(ITEMS[0], b="The bridge near the old church led to a village."), "Item 1, sense: *led* is no verb form"),
        (changed(ITEMS[0], c="The idea near the spoon works to a bottle.", d="The idea near the spoon work to a bottle."),
         "Item 1: the sentence has 10 words and its nonsense 9"),
        (changed(ITEMS[0], c="The idea on the loud spoon works to a bottle.", d="The idea on the loud spoon work to a bottle."),
         "*near* became *on*"),
        (changed(ITEMS[0], c=NONSENSE.format("idea", "old", "works"), d=NONSENSE.format("idea", "old", "work")),
         "*old* stands in both"),
        (changed(ITEMS[0], c=NONSENSE.format("ideas", "loud", "work"), d=NONSENSE.format("ideas", "loud", "works")),
         "must stand in the same place and have the same number"),
        (("The bridge leads to a village.", "The bridge lead to a village.", "The idea works to a bottle.",
          "The idea work to a bottle."), "before the verb stands only *The bridge*"),
        (("The bridges near the old church lead to a village.", "The bridges near the old church leads to a village.",
          NONSENSE.format("ideas", "loud", "work"), NONSENSE.format("ideas", "loud", "works")), "plural in 2"),
        (changed(ITEMS[0], c=...), "There are three dots left"),
    ],
)  # fmt: skip
def test_my_sentences(item, words, masked):
    refused(long_distance.my_sentences, words, [item, ITEMS[1]], masked)


@pytest.mark.bundled
def test_my_sentences_are_run(masked):
    said = long_distance.my_sentences.__wrapped__(ITEMS, masked)
    assert said.startswith("2 sentences. Sense: right in ") and "nonsense: right in " in said
    refused(long_distance.my_sentences, "At least 2 items are asked for", ITEMS[:1], masked)
