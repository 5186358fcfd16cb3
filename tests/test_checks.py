"""The core of the checks: whatever a student hands over, the answer is a sentence or two."""

import os

import numpy as np
import pandas as pd
import pytest
import torch

from lib import checks
from lib.checks import NotYet, own_items
from lib.progress import quiet


@checks.exercise(7)
def double(function):
    """A check as small as can be."""
    checks.judge(checks.a_number(checks.call(function, 3)), 6, {"You add 2; double it.": 5}, "the number 3")
    return "Doubled."


def raises(_):
    return 1 / 0


def refuses(_):
    raise ValueError("a\nlong " + "story " * 40)


def leaves(_):
    raise SystemExit("bye")


def joins(number):
    return np.zeros(2) < number and np.ones(2) < number


def takes_a_row(number):
    return torch.zeros(1, 9)[number]


def keeps_generator(number):
    return (number for _ in "a").log_probabilities


def interrupted(_):
    """As JupyterLab's Kernel > Interrupt does it in the midst of a loop."""
    while True:
        raise KeyboardInterrupt


def calls_itself(number):
    return calls_itself(number)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda n: 2 * n, "yes. Doubled."),
        (lambda n: np.float32(2 * n), "yes. Doubled."),
        (lambda n: torch.tensor(2.0 * n, requires_grad=True), "yes. Doubled."),
        (lambda n: [2 * n], "yes. Doubled."),
        (lambda n: n + 2, "not yet. You add 2; double it."),
        (lambda n: n, "not yet. For the number 3 your answer is 3.; it should be 6."),
        (lambda n: None, "not yet. Your function gives nothing back (`None`)"),
        (lambda n: (2 * n for _ in "a"), "not yet. Your function gives a generator"),
        (lambda n: "6", "not yet. One number is asked for; your function gives '6'."),
        (lambda n: n == 3, "not yet. One number is asked for; your function gives True."),
        (lambda n: {"double": 6}, "not yet. One number is asked for; your function gives {'double': 6}."),
        (lambda n: [6, 6], "not yet. One number is asked for; your function gives 2 of them."),
        (lambda n: [[6], [6, 6]], "not yet. One number is asked for; your function gives [[6], [6, 6]]."),
        (lambda n: np.nan, "not yet. For the number 3 your answer is nan; it should be 6."),
        (lambda: 6, "not yet. Your function stops with TypeError: "),
        (raises, "not yet. Your function stops in its line `return 1 / 0` with ZeroDivisionError: division by zero."),
        (refuses, "with ValueError: a long story"),
        (joins, "To combine arrays take `&`, `|` and `~`, with brackets around each comparison."),
        (takes_a_row, "a row for each gap and a column for each item: name both."),
        (keeps_generator, "`[batch] = lm.fill(...)` takes the only one."),
        (
            interrupted,
            "not yet. You stopped your function in its line `raise KeyboardInterrupt`. If it would not have come",
        ),
        (leaves, 'not yet. Your function stops in its line `raise SystemExit("bye")` with SystemExit: bye.'),
        (calls_itself, "with RecursionError"),
        (6, "not yet. Give the function itself, without parentheses behind its name, and not 6."),
        (None, "not yet. Give the function itself, without parentheses behind its name, and not None."),
    ],
)
def test_whatever_a_function_does_the_answer_is_a_sentence(answer, words, capsys):
    assert double(answer) is None
    said = capsys.readouterr().out
    assert said.startswith("Exercise 7: ") and words in said
    assert said.count("\n") == 1 and len(said) < 300 and "Traceback" not in said


def test_the_check_itself_raises():
    with pytest.raises(NotYet, match="You add 2"):
        double.__wrapped__(lambda n: n + 2)


def test_a_stub_is_told_from_a_function_that_lacks_something(capsys):
    def stub(n):
        raise NotImplementedError

    def of_a_library(n):
        raise NotImplementedError("no such kernel")

    double(stub)
    double(of_a_library)
    first, second = capsys.readouterr().out.splitlines()
    assert (
        "Nothing is written there yet: in `stub`, put lines of your own in the place of `raise NotImplementedError`."
        in first
    )
    assert "NotImplementedError: no such kernel" in second


def test_a_notebook_shows_the_line_as_text_to_read():
    line = checks.Line("Exercise 1: not yet. Take `a * b * c`: *<s>* & *is* | *are*, 2 * 3 * 4, x*y*z, *the mug*'s.")
    assert line._repr_html_() == (
        "<p><strong>Exercise 1: not yet.</strong> Take <code>a * b * c</code>: <em>&lt;s&gt;</em> &amp; <em>is</em> | "
        "<em>are</em>, 2 * 3 * 4, x*y*z, <em>the mug</em>'s.</p>"
    )
    assert repr(line) == str(line) == line
    assert checks.Line("One word")._repr_html_() == "<p>One word</p>"


def test_a_check_shows_no_progress_and_forgets_that_afterwards(monkeypatch):
    monkeypatch.setenv("LITMUS_QUIET", "")
    seen = []
    double(lambda n: seen.append(quiet()) or 2 * n)
    assert seen == [True] and not quiet() and os.environ["LITMUS_QUIET"] == ""
    monkeypatch.delenv("LITMUS_QUIET")
    double(lambda n: 2 * n)
    assert "LITMUS_QUIET" not in os.environ


def test_an_answer_that_nobody_thought_of_is_a_sentence_too(capsys):
    class Odd:
        def __call__(self, n):
            return self

        def __repr__(self):
            raise RuntimeError("no words")

    double(Odd())
    assert "not yet. The check cannot read your answer (RuntimeError: no words)" in capsys.readouterr().out


def changes_list(given):
    given.append(1)
    return 1


def changes_array(given):
    given[0] = 1
    return 1


def changes_table(given):
    given["new"] = 1
    return 1


@pytest.mark.parametrize(
    ("function", "given"),
    [(changes_list, [0]), (changes_array, np.zeros(3)), (changes_table, pd.DataFrame({"a": [0]}))],
)
def test_a_function_that_changes_its_input_is_told_so_and_harms_nothing(function, given):
    before = repr(given)
    with pytest.raises(NotYet, match="Your function changes what it is given"):
        checks.call(function, given)
    assert repr(given) == before
    assert checks.call(lambda g: len(g), given) == len(given)


def test_functions_can_be_given_too():
    assert checks.call(lambda function, n: function(n), lambda n: n + 1, 2) == 3


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([[1.0, 2.0]], r"2 numbers are asked for; your function gives an array of shape \(1, 2\)\."),
        (3.0, r"2 numbers are asked for; your function gives one number\."),
        ([1, None], None),
        (["a", "b"], r"2 numbers are asked for; your function gives \['a', 'b'\]"),
    ],
)
def test_shapes(found, words):
    if words is None:  # numpy reads None as a number that is not there
        assert np.isnan(checks.an_array(found, 2)[1])
        return
    with pytest.raises(NotYet, match=words):
        checks.an_array(found, 2)


def test_equal_values_pass_and_the_first_mistake_that_fits_is_told():
    checks.judge([1.0, np.nan], np.array([1 + 1e-8, np.nan]), {}, "this")
    checks.judge("a b", "a b", {}, "this")
    with pytest.raises(NotYet, match=r"^First\.$"):
        checks.judge([2, 2], [1, 2], {"Not this.": [2, 1], "First.": [2, 2], "Second.": [2, 2]}, "this")
    with pytest.raises(NotYet, match=r"For this your answer is \[2., 2.\]; it should be \[1., 2.\]."):
        checks.judge([2, 2], [1, 2], {}, "this")
    with pytest.raises(NotYet, match=r"For this your answer is 'b'; it should be 'a'."):
        checks.judge("b", "a", {}, "this")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (..., "First write down what you expect, in the place of the three dots: 'larger', 'smaller'."),
        ("smaler", r"A prediction is one of 'larger', 'smaller', and not 'smaler' \(did you mean smaller\?\)."),
        (None, "A prediction is one of 'larger', 'smaller', and not None."),
        (np.zeros(3), "A prediction is one of"),
    ],
)
def test_predictions(given, words):
    with pytest.raises(NotYet, match=words):
        checks.prediction(given, ["larger", "smaller"])
    assert checks.prediction("larger", ["larger", "smaller"]) == "larger"
    with pytest.raises(NotYet):
        checks.prediction(1, [True, False])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (..., "Nothing is written there yet"),
        ([("a",), ...], "There are three dots left"),
        ("four items", "Give a list of items, and not 'four items'"),
        ([("a",)], "At least 2 items are asked for, and you give 1"),
        ([("a",), ("a",)], "is there twice"),
    ],
)
def test_lists_of_own_items(given, words):
    with pytest.raises(NotYet, match=words):
        own_items.listed(given, 2)
    assert own_items.listed((("a",), ("b",)), 2) == [("a",), ("b",)]


def test_an_item_is_so_many_texts():
    assert own_items.texts(["a", "b"], ["left", "right"], "Item 1") == ["a", "b"]
    with pytest.raises(NotYet, match=r"Item 1 should hold 2 texts \(left, right\), and is 'a b'."):
        own_items.texts("a b", ["left", "right"], "Item 1")
    with pytest.raises(NotYet, match=r"Item 1: right is no text but 3\."):
        own_items.texts(["a", 3], ["left", "right"], "Item 1")


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("the cat is old.", "The cat are old.", r"Item 1: \*the cat is old.\* should start with a capital"),
        ("The cat is old.", "The cat are old", "should start with a capital letter and end with a full stop"),
        ("The cat is old.", "The cats are old.", "Item 1: the sentences differ in 2 words"),
        ("The cat is old.", "The cat is old.", "Item 1: the sentences differ in no word"),
        ("The cat is old.", "The cat is very old.", "Item 1: the sentences have 4 and 5 words"),
        ("", "The cat is old.", "should start with a capital"),
    ],
)
def test_two_sentences_differ_in_one_word(good, bad, words):
    with pytest.raises(NotYet, match=words):
        own_items.one_word_apart(good, bad, "Item 1")
    assert own_items.one_word_apart("The cat is old.", "The cat are old.", "Item 1") == ("The cat", "is", "are", "old")


def test_the_two_forms_are_of_one_verb_and_two_numbers():
    assert own_items.agreeing("is", "are", "Item 1") == "singular"
    assert own_items.agreeing("walk", "walks", "Item 1") == "plural"
    with pytest.raises(NotYet, match=r"Item 1: \*is\* and \*was\* are both singular"):
        own_items.agreeing("is", "was", "Item 1")
    with pytest.raises(NotYet, match=r"Item 1: \*is\* and \*walk\* are forms of two verbs"):
        own_items.agreeing("is", "walk", "Item 1")
    with pytest.raises(NotYet, match=r"Item 1: \*walked\* is no verb form whose number can be told"):
        own_items.agreeing("walked", "walks", "Item 1")


def test_numbers_are_balanced():
    own_items.balanced(["plural", "singular"])
    with pytest.raises(NotYet, match="singular in 2 items and plural in 1"):
        own_items.balanced(["plural", "singular", "singular"])


@pytest.mark.bundled
def test_a_verb_of_several_pieces_is_named_with_its_pieces(masked):
    own_items.one_piece(masked, "walks", "Item 1")
    with pytest.raises(NotYet, match=r"Item 1: the model's vocabulary has no single item \*rusts\* \(.+\), so take"):
        own_items.one_piece(masked, "rusts", "Item 1")
