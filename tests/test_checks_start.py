"""Common wrong answers to the exercises to ``00_start_here``, each with the message that it gets."""

import numpy as np
import pytest

from lib.checks import NotYet, start
from lib.models import Gap

ITEMS = [
    ("My sister", "lives", "live", "in London."),
    ("My sisters", "live", "lives", "in London."),
    ("The friend of the teachers", "has", "have", "an old car."),
    ("The friends of the teacher", "have", "has", "an old car."),
]


def refused(check, words, *answer):
    with pytest.raises(NotYet) as found:
        check.__wrapped__(*answer)
    assert words in str(found.value)


def bits(log_probabilities):
    return -log_probabilities / np.log(2)


def perplexity(log_probabilities):
    return np.exp(-np.nanmean(log_probabilities))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda lp: -lp, "Those are nats"),
        (lambda lp: lp / np.log(2), "The sign is wrong"),
        (lambda lp: -lp * np.log(2), "You multiply by log 2"),
        (lambda lp: -lp / np.log(10), "You divide by log 10"),
        (lambda lp: -np.log2(-lp), "You take a logarithm again"),
        (lambda lp: -np.log2(lp), "A logarithm of a negative number is not there"),
        (lambda lp: np.exp(lp), "Those are the probabilities"),
        (lambda lp: bits(lp).sum(), "3 numbers are asked for; your function gives one number"),
        (lambda lp: bits(lp) + 1, "For tokens of probability 1/2, 1/8 and 1/1024 your answer is [ 2.,  4., 11.]"),
    ],
)
def test_surprisal(function, words):
    refused(start.surprisal, words, function, perplexity)
    assert start.surprisal.__wrapped__(lambda lp: bits(lp).tolist(), perplexity)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda lp: np.exp(-np.mean(lp)), "makes your perplexity NaN"),
        (lambda lp: np.exp(-np.nansum(lp) / len(lp)), "You divide by three tokens"),
        (lambda lp: np.exp(-np.nansum(lp)), "You take the sum"),
        (lambda lp: np.exp(np.nanmean(lp)), "The sign is wrong"),
        (lambda lp: np.exp(np.nanmean(bits(lp))), "You mix bits and nats"),
        (lambda lp: 2 ** -np.nanmean(lp), "You mix nats and bits"),
        (lambda lp: np.nanmean(bits(lp)), "That is the mean surprisal in bits"),
        (lambda lp: -np.nanmean(lp), "That is the mean surprisal in nats"),
        (lambda lp: np.nanmean(1 / np.exp(lp)), "You take the mean of 1/p"),
        (lambda lp: 1 / np.nanmean(np.exp(lp)), "You take the mean of the probabilities"),
        (lambda lp: 4.5, "should be 4"),
    ],
)
def test_perplexity(function, words):
    refused(start.surprisal, words, bits, function)
    assert start.surprisal.__wrapped__(bits, perplexity)


def asked(lm, left, right, good, bad):
    [batch] = lm.fill([Gap(left, right)], "never")
    return [float(batch.log_probabilities[0, lm.word(form, "middle").ids[0]]) for form in (good, bad)]


@pytest.mark.bundled
@pytest.mark.parametrize(
    ("of_two", "words"),
    [
        (lambda good, bad: bad - good, "The sign is turned"),
        (lambda good, bad: np.exp(good) - np.exp(bad), "You subtract probabilities"),
        (lambda good, bad: np.exp(good) / np.exp(bad), "You divide probabilities"),
        (lambda good, bad: (good - bad) / np.log(2), "Those are bits"),
        (lambda good, bad: good, "You give the log-probability of the good form alone"),
    ],
)
def test_margin(of_two, words, masked):
    refused(start.margin, words, lambda *gap: of_two(*asked(masked, *gap)), "smaller", masked)


@pytest.mark.bundled
def test_margin_of_half_a_context_and_predictions(masked):
    def margin(left, right, good, bad):
        of_good, of_bad = asked(masked, left, right, good, bad)
        return of_good - of_bad

    refused(
        start.margin,
        "You leave out what stands right",
        lambda left, _, *forms: margin(left, "", *forms),
        "smaller",
        masked,
    )
    refused(start.margin, "use the forms that are given", lambda *gap: margin(*gap[:2], "is", "are"), "smaller", masked)
    refused(start.margin, "A prediction is one of", margin, "less", masked)
    said = {expected: start.margin.__wrapped__(margin, expected, masked) for expected in start.CHANGES}
    assert sorted(line.endswith("as you expected.") for line in said.values()) == [False, False, True]
    assert sum("whom does this model listen to?" in line for line in said.values()) == 2


@pytest.mark.bundled
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: ("My sister", "lives", "live")}, "Item 1 should hold 4 texts (left, good, bad, right)"),
        ({1: ("My sisters", "live", 1, "in London.")}, "Item 2: bad is no text but 1"),
        ({0: ("My sister", "does live", "live", "in London.")}, "Item 1: 'does live' is not one word"),
        ({0: ("My sister", "lives ", "live", "in London.")}, "Item 1: 'lives ' is not one word"),
        ({0: ("My sister ___", "lives", "live", "in London.")}, "without the gap itself"),
        ({0: ("", "lives", "live", "in London.")}, "without the gap itself"),
        ({0: ("my sister", "lives", "live", "in London.")}, "should start with a capital letter"),
        ({0: ("My sister", "lives", "live", "in London")}, "and end with a full stop"),
        ({0: ("My sister", "lives", "lives", "in London.")}, "Item 1: the sentences differ in no word"),
        ({0: ("My sister", "lives", "work", "in London.")}, "are forms of two verbs"),
        ({0: ("My sister", "lived", "live", "in London.")}, "*lived* is no verb form whose number can be told"),
        ({0: ("My sister", "rusts", "rust", "in London.")}, "no single item *rusts*"),
        ({0: ("My parents", "live", "lives", "in London.")}, "plural in 3"),
        ({0: ITEMS[1]}, "is there twice"),
    ],
)
def test_my_pairs(change, words, masked):
    refused(start.my_pairs, words, [change.get(place, item) for place, item in enumerate(ITEMS)], masked)


@pytest.mark.bundled
def test_my_pairs_are_run(masked):
    said = start.my_pairs.__wrapped__(ITEMS, masked)
    assert said.startswith("4 pairs, half of them plural; this model is right in ") and "[" in said
