"""Common wrong answers to the exercises to ``10_scoring_choices``, each with the message that it gets."""

import re
from itertools import pairwise
from types import SimpleNamespace

import jupytext
import numpy as np
import pytest

from lib import sentences
from lib.checks import NotYet, choices
from lib.checks.choices import START
from lib.paths import NOTEBOOKS


def refused(check, words, *answer):
    with pytest.raises(NotYet) as found:
        check.__wrapped__(*answer)
    assert words in str(found.value)


def of_tokens(matrix, ids):
    return matrix[np.arange(len(ids)), ids]


def likelihood(matrix, ids, padding):
    return of_tokens(matrix, ids)[ids != padding].sum()


def real(ids, padding):
    return (ids != padding).sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda m, i, p: of_tokens(m, i).sum(), "You read the padding as tokens. It only fills"),
        (lambda m, i, p: of_tokens(m, i).mean(), "You take the mean; the task asks for the sum. (You read the padding"),
        (lambda m, i, p: likelihood(m, i, p) / real(i, p), "You take the mean; a log-likelihood is the sum"),
        (lambda m, i, p: likelihood(m, i, p) / len(i), "and divide by its places all the same"),
        (lambda m, i, p: m[i != p].max(1).sum(), "You take the likeliest token of each row; take"),
        (lambda m, i, p: m.max(1).sum(), "You take the likeliest token of each row, and of the padding"),
        (lambda m, i, p: of_tokens(m, i)[0], "You score the first token only"),
        (lambda m, i, p: np.exp(likelihood(m, i, p)), "Those are probabilities multiplied"),
        (lambda m, i, p: np.exp(of_tokens(m, i))[i != p].sum(), "You sum probabilities"),
        (lambda m, i, p: m[i, np.arange(len(i))][i != p].sum(), "Rows and columns have changed places"),
        (lambda m, i, p: -likelihood(m, i, p), "The sign is wrong"),
        (lambda m, i, p: m.sum(), "You sum the whole matrix"),
        (lambda m, i, p: m[i != p].sum(), "You sum whole rows"),
        (lambda m, i, p: of_tokens(m, i)[i > 0].sum(), "Here the padding is piece 2, and piece 0 a word"),
        (lambda m, i, p: of_tokens(m, i)[:-2].sum(), "For the same sentence without padding"),
        (lambda m, i, p: of_tokens(m, i)[i != p], "One number is asked for; your function gives 3"),
    ],
)
def test_pseudo_log_likelihood(function, words):
    refused(choices.pseudo_log_likelihood, words, function)
    assert choices.pseudo_log_likelihood.__wrapped__(likelihood)


def logs(pieces, table, start):
    row = [START, *pieces] if start else pieces
    return [np.log(table[before][piece]) for before, piece in pairwise(row)]


def score(pieces, table, start):
    return sum(logs(pieces, table, start))


def of_first_pieces(pieces, table, start):
    found = zip(logs(pieces, table, start), pieces[not start :], strict=True)
    return sum(log for log, piece in found if not piece.startswith("##"))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda p, t, s: score(p, t, True), "for a score without the start token, and give one with it"),
        (lambda p, t, s: score(p, t, False), "for a score with the start token, and give one without it"),
        (of_first_pieces, "You score the first piece of each word only"),
        (lambda p, t, s: np.mean(logs(p, t, s)), "You take the mean; the task asks for the sum"),
        (lambda p, t, s: score(p, t, s) / len(p), "You take the mean, and count a first piece that has no score"),
        (lambda p, t, s: np.exp(score(p, t, s)), "You multiply probabilities"),
        (lambda p, t, s: np.exp(logs(p, t, s)).sum(), "You add up probabilities"),
        (lambda p, t, s: score(p, choices.BIGRAM, s), "You look the probabilities up in BIGRAM"),
        (lambda p, t, s: score(p, t, s) / np.log(2), "Your logarithm has another base"),
        (lambda p, t, s: score(p, t, s) / np.log(10), "Your logarithm has base 10"),
        (lambda p, t, s: -score(p, t, s), "The sign is wrong"),
        (lambda p, t, s: sum(np.log(t[START][piece]) for piece in p), "with KeyError"),
        (lambda p, t, s: p.append("."), "Your function changes what it is given"),
    ],
)
def test_start_token(function, words):
    refused(choices.start_token, words, function, "first")
    assert choices.start_token.__wrapped__(score, "first")


def test_a_wrong_prediction_about_numbers_on_paper_is_explained():
    refused(choices.start_token, "In the pair *middle* both sentences start with *the*", score, "middle")
    refused(choices.start_token, "First write down what you expect", score, ...)


def test_the_start_token_turns_the_first_pair_and_no_other():
    signs = {
        name: [score(good, choices.BIGRAM, start) > score(bad, choices.BIGRAM, start) for start in (False, True)]
        for name, (good, bad) in choices.PAIRS.items()
    }
    assert signs == {"first": [True, False], "middle": [True, True], "last": [False, False]}


@pytest.mark.bundled
@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("She saw the cat.", "She saw the dog."), "Both sentences have 5 tokens"),
        (("She saw the cat.", "She saw the chimpanzee."), "Sum and mean prefer the same sentence"),
        (("She saw the xqzjv.", "She saw the cat."), "loses even by the mean; take a word whose later pieces"),
        (("The wheels of cars are round.", "The wheels of chimpanzee are round."), None),
        (("She saw the cat.", "She saw a big dog."), "Your pair: the sentences have 4 and 5 words"),
        ("She saw the cat.", 'Give two sentences, `("one sentence", "the other")`'),
        (("She saw the cat.",), "At least 2 sentences are asked for"),
        (("She saw the cat.", 3), "Your pair: the other is no text but 3"),
        (("She saw the cat.", ...), "There are three dots left"),
        (("She saw the cat.", "She saw the dog.", "She saw the owl."), "Your pair should hold 2 texts"),
    ],
)
def test_my_pair(pair, words, masked):
    if words is None:  # either answer is one of the check's two
        with pytest.raises(NotYet, match="tokens"):
            choices.my_pair.__wrapped__(pair, masked)
        return
    refused(choices.my_pair, words, pair, masked)


def test_a_model_that_cuts_no_word_is_told_to_be_of_no_use_here():
    word_level = SimpleNamespace(family="recurrent")
    refused(choices.my_pair, "reads whole words", ("She saw the cat.", "She saw the dog."), word_level)


@pytest.mark.bundled
def test_the_cell_that_shows_costs_and_the_check_have_the_same_numbers(masked):
    cells = jupytext.read(NOTEBOOKS / "exercises" / "10_scoring_choices.py").cells
    [cell] = [cell.source for cell in cells if "She heard the violin again." in cell.source]
    told = []
    exec(cell.replace("violin", "chimpanzee"), {"lm": masked, "sentences": sentences, "print": told.append})
    of_sum, of_mean = re.findall(r"-[\d.]+\d", told[-1])
    with pytest.raises(NotYet) as found:
        choices.my_pair.__wrapped__(("She heard the chimpanzee again.", "She heard the man again."), masked)
    assert f"sum {of_sum} against" in str(found.value) and f"mean {of_mean} against" in str(found.value)


@pytest.mark.bundled
def test_a_pair_on_which_sum_and_mean_disagree(masked):
    said = choices.my_pair.__wrapped__(("They saw the mug yesterday.", "They saw the chimpanzee yesterday."), masked)
    assert said.startswith("They disagree: sum -") and "(6 and 9 tokens)" in said
