"""Common wrong answers to the exercises to ``21_systematic_or_likely``, each with the message that it gets."""

import numpy as np
import pytest

from lib.checks import NotYet, likely

VERBS = [("is", "are"), ("has", "have"), ("faces", "face"), ("hands", "hand"), ("books", "book"), ("looks", "look")]


def refused(check, words, *answer):
    with pytest.raises(NotYet) as found:
        check.__wrapped__(*answer)
    assert words in str(found.value)


def ew(right, wrong):
    return (right > wrong).mean()


def mw(right, wrong):
    return right.sum() / (right + wrong).sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda r, w: (mw(r, w), ew(r, w)), "You give MW first"),
        (lambda r, w: ((r >= w).mean(), mw(r, w)), "EW: you count the tie as right"),
        (lambda r, w: (ew(r, w) + (r == w).mean() / 2, mw(r, w)), "EW: you count the tie as half right"),
        (lambda r, w: ((r > w)[r != w].mean(), mw(r, w)), "EW: you leave the tie out"),
        (lambda r, w: ((r > w).sum(), mw(r, w)), "EW: you count the right verbs"),
        (lambda r, w: (mw(r, w), mw(r, w)), "EW: you let probabilities weigh the verbs"),
        (lambda r, w: (ew(r, w), (r / (r + w)).mean()), "Sum first, then divide"),
        (lambda r, w: (ew(r, w), ew(r, w)), "MW: you give each verb a vote"),
        (lambda r, w: (ew(r, w), r.sum() / w.sum()), "MW: you divide the right forms by the wrong ones"),
        (lambda r, w: (ew(r, w), r.sum()), "MW: you give the probability of all right forms"),
        (lambda r, w: (ew(r, w), mw(np.exp(r), np.exp(w))), "MW: you take the exponential"),
        (lambda r, w: (ew(r, w), (r + w)[r > w].sum() / (r + w).sum()), "with both of their forms"),
        (lambda r, w: (ew(r, w), r[r > w].sum() / (r + w).sum()), "MW: you sum the right forms of the verbs that are right"),
        (lambda r, w: ew(r, w), "2 numbers are asked for; your function gives one number"),
        (lambda r, w: {"EW": ew(r, w), "MW": mw(r, w)}, "2 numbers are asked for; your function gives {'EW'"),
    ],
)  # fmt: skip
def test_ew_and_mw(function, words):
    refused(likely.ew_and_mw, words, function)
    assert likely.ew_and_mw.__wrapped__(lambda r, w: (ew(r, w), mw(r, w)))


def within(
    vocabulary, verbs, cutoff, crossing=True, both=False, of_verbs=False, tie=False, invalid=np.nan, divide="counted"
):
    """A right answer, with each of its choices made otherwise on request."""
    items = sorted(vocabulary, key=vocabulary.get, reverse=True)
    if of_verbs:
        items = [item for item in items if item in {form for verb in verbs for form in verb}]
    inside, mass = set(), 0.0
    for item in items:
        if mass >= cutoff or (not crossing and mass + vocabulary[item] > cutoff):
            break
        inside.add(item)
        mass += vocabulary[item]
    counted = [verb for verb in verbs if (all if both else any)(form in inside for form in verb)]
    votes = [vocabulary[r] > vocabulary[w] or (tie and vocabulary[r] == vocabulary[w]) for r, w in counted]
    if not counted:
        return invalid
    return sum(votes) / len(verbs if divide == "all" else votes)


def by_threshold(vocabulary, verbs, cutoff):
    votes = [vocabulary[r] > vocabulary[w] for r, w in verbs if max(vocabulary[r], vocabulary[w]) >= cutoff]
    return np.mean(votes) if votes else np.nan


def of_verbs_alone(vocabulary, verbs, cutoff):
    mass = sum(vocabulary[form] for verb in verbs for form in verb)
    return within(vocabulary, verbs, cutoff * mass, of_verbs=True)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda *a: within(*a, crossing=False), "You leave out the item that crosses the cutoff"),
        (lambda *a: within(*a, both=True), "You ask for both forms inside"),
        (by_threshold, "You compare each probability with the cutoff"),
        (lambda *a: within(*a, divide="all"), "You divide by all seven verbs"),
        (lambda v, verbs, c: within(v, verbs, 1.0), "With you every verb counts"),
        (lambda v, verbs, c: within(v, verbs, 1.0, tie=True), "as right, and every verb"),
        (lambda *a: within(*a, of_verbs=True), "With you every verb counts"),
        (of_verbs_alone, "Do you leave out *the*?"),
        (lambda v, verbs, c: within(v, verbs, c + 1e-9), "One item too many is inside"),
        (lambda *a: within(*a) or np.nan, "That is a score, and no invalid context"),
        (
            lambda v, verbs, c: within(v, verbs, c if c != 0.5 else 0.7),
            "For a cutoff of .5 your answer is 0.5; it should",
        ),
        (lambda *a: within(*a, tie=True), "You count the tie of *stand* and *stands* as right: neither"),
        (lambda *a: within(*a, invalid=0), "A 0 would say that the model is wrong"),
        (lambda *a: within(*a, invalid=1), "it has no score (NaN), and is told apart"),
        (lambda *a: within(*a, invalid=None), "gives nothing back"),
    ],
)
def test_ew_within(function, words):
    refused(likely.ew_within, words, function, "rises")
    assert likely.ew_within.__wrapped__(within, "rises")


def test_a_wrong_prediction_about_numbers_on_paper_is_explained():
    refused(
        likely.ew_within, "your prediction is not: from 1 to .8 to .5, EW goes from 3/7 to 2/3 to 1", within, "falls"
    )
    refused(likely.ew_within, "First write down what you expect", within, ...)


def test_the_vocabulary_of_the_page_is_a_distribution():
    assert sum(likely.VOCABULARY.values()) == 1
    assert [within(likely.VOCABULARY, likely.VERBS, cutoff) for cutoff in (1, 0.8, 0.5)] == [3 / 7, 2 / 3, 1]


@pytest.mark.bundled
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: ("are", "is")}, "Verb 1: *are* is the plural form; the singular comes first, *she is* ... *they are*"),
        ({0: ("is", "was")}, "Verb 1: *is* and *was* are both singular"),
        ({0: ("is", "have")}, "Verb 1: *is* and *have* are forms of two verbs"),
        ({0: ("rusts", "rust")}, "Verb 1: the model's vocabulary has no single item *rusts*"),
        ({0: "is are"}, "Verb 1 should hold 2 texts (singular, plural)"),
        ({0: ("has", "have")}, "One of your verbs is there twice"),
        ({0: ...}, "There are three dots left"),
    ],
)
def test_my_verbs(change, words, masked):
    verbs = [change.get(place, verb) for place, verb in enumerate(VERBS)]
    refused(likely.my_verbs, words, verbs, "MW", masked)


@pytest.mark.bundled
def test_my_verbs_are_run(masked):
    said = {expected: likely.my_verbs.__wrapped__(VERBS, expected, masked) for expected in ("EW", "MW")}
    assert all(line.startswith("6 verbs in 12 contexts: EW 0.") for line in said.values())
    assert said["EW"] != said["MW"]
    refused(likely.my_verbs, "At least 6 verbs are asked for, and you give 5", VERBS[:5], "EW", masked)
    refused(likely.my_verbs, "A prediction is one of 'EW', 'MW', and not 'ew'", VERBS, "ew", masked)
