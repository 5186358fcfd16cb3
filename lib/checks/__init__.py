"""Checks of the exercises: each says in a sentence or two why an answer is not right yet.

One module a notebook, one function an exercise. A check calls the student's function on small inputs made by hand and
compares with what is right and with what each common mistake would give; it raises ``NotYet`` or returns the line that is
said when all is well. The decorator ``exercise`` prints either; students never see a traceback of ours.
"""

import copy
import functools
import html
import pickle
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lib.progress import silence
from lib.say import did_you_mean, shown

ADVICE = {
    "truth value of an array": "To combine arrays take `&`, `|` and `~`, with brackets around each comparison.",
    "out of bounds for dimension 0": "`batch.log_probabilities` has a row for each gap and a column for each item: name both.",
    "'generator' object": "`lm.fill` gives its batches one by one: `[batch] = lm.fill(...)` takes the only one.",
}
"""What to do about an error whose own words do not say it, by a part of those words."""


NOTHING = (
    "Your function gives nothing back (`None`): does it end with `return`, on every way through? `print` only shows."
)


class NotYet(Exception):
    """Why an answer is not right yet: whole sentences, for the student."""


class Line(str):
    """What a check says: a notebook shows ``*x*`` in italics and breaks lines between words; elsewhere it is plain text."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        verdict, dot, why = html.escape(self, quote=False).partition(". ")
        parts = re.split("(`[^`]+`)", why)
        parts[::2] = [re.sub(r"(?<!\w)\*(\S|\S[^*]*\S)\*(?!\w)", r"<em>\1</em>", part) for part in parts[::2]]
        parts[1::2] = [f"<code>{part[1:-1]}</code>" for part in parts[1::2]]
        return f"<p><strong>{verdict}.</strong> {''.join(parts)}</p>" if dot else f"<p>{verdict}</p>"


def exercise(number: int) -> Callable[[Callable[..., str]], Callable[..., None]]:
    """Make a check say its result: *Exercise 1: yes. ...* or *Exercise 1: not yet. ...*, and return nothing.

    A check asks little, so it shows no progress.

    The check itself, which raises ``NotYet``, stays there as ``__wrapped__``.
    """

    def decorate(check: Callable[..., str]) -> Callable[..., None]:
        @functools.wraps(check)
        def said(*answer: Any) -> None:
            from IPython.display import display

            try:
                with silence():
                    result = f"yes. {check(*answer)}"
            except NotYet as why:
                result = f"not yet. {why}"
            except Exception as error:  # an answer that nobody has thought of
                result = (
                    f"not yet. The check cannot read your answer ({_named(error)}): "
                    "has it the form that the task asks for?"
                )
            display(Line(f"Exercise {number}: {' '.join(result.split())}"))  # one line, whatever is shown in it

        return said

    return decorate


def call(function: Any, *arguments: Any) -> Any:
    """What the student's ``function`` gives for a copy of ``arguments``; whatever goes wrong becomes ``NotYet``.

    So does an interrupt, for a function that never ends.
    """
    if not callable(function):
        raise NotYet(f"Give the function itself, without parentheses behind its name, and not {shown(function)}.")
    given = copy.deepcopy(arguments)
    before = _frozen(given)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = function(*given)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise NotYet(_stopped(function, error)) from None
    if _frozen(given) != before:
        raise NotYet(
            "Your function changes what it is given, so the next cell that uses it would get other numbers. "
            "Work on a copy."
        )
    return found


def a_number(found: Any) -> float:
    """One number, whatever holds it; ``NotYet`` for anything else. NaN is a number here."""
    array = _numbers(found, "one number")
    if array.size != 1:
        raise NotYet(f"One number is asked for; your function gives {array.size} of them.")
    return float(array.ravel()[0])


def an_array(found: Any, *shape: int) -> np.ndarray:
    """Numbers in this ``shape``; ``NotYet`` for anything else."""
    wanted = _counted(shape)
    array = _numbers(found, wanted)
    if array.shape != shape:
        raise NotYet(f"{_asked(wanted)}; your function gives {_counted(array.shape)}.")
    return array


def judge(found: Any, right: Any, mistakes: Mapping[str, Any], given: str) -> None:
    """``NotYet`` unless ``found`` is ``right``: with the first of ``mistakes`` that would give it, else with both values.

    ``mistakes``: what a mistake gives for the same input, by the sentence that explains it. ``given``: the input in words,
    behind *for*. Numbers and arrays are the same up to 1e-6.
    """
    if _same(found, right):
        return
    for sentence, value in mistakes.items():
        if _same(found, value):
            raise NotYet(sentence)
    raise NotYet(f"For {given} your answer is {_short(found)}; it should be {_short(right)}.")


def prediction(given: Any, choices: Sequence[Any]) -> Any:
    """A prediction, which must be one of ``choices``: whether it comes true is for the student to see."""
    known = ", ".join(map(repr, choices))
    if given is ...:
        raise NotYet(f"First write down what you expect, in the place of the three dots: {known}.")
    if not any(type(given) is type(choice) and given == choice for choice in choices):
        hint = did_you_mean(given, [c for c in choices if isinstance(c, str)]) if isinstance(given, str) else ""
        raise NotYet(f"A prediction is one of {known}, and not {shown(repr(given))}{hint}.")
    return given


def _frozen(value: Any) -> bytes:
    """Bytes that change with ``value``; none where it cannot be written, and so counts as unchanged."""
    try:
        return pickle.dumps(value)
    except Exception:
        return b""


def _numbers(found: Any, wanted: str) -> np.ndarray:
    if found is None:
        raise NotYet(NOTHING)
    if isinstance(found, Iterator):
        raise NotYet("Your function gives a generator, whose values nobody has computed yet: give a list or an array.")
    if isinstance(found, (str, bytes, dict, set, bool, np.bool_)):
        raise NotYet(f"{_asked(wanted)}; your function gives {shown(repr(found))}.")
    try:
        return np.asarray(found.detach().cpu() if hasattr(found, "detach") else found, dtype=float)
    except Exception:
        raise NotYet(f"{_asked(wanted)}; your function gives {shown(repr(found))}.") from None


def _counted(shape: tuple[int, ...]) -> str:
    """A shape in words, as far as words are plainer."""
    return (
        "one number"
        if shape in ((), (1,))
        else f"{shape[0]} numbers"
        if len(shape) == 1
        else f"an array of shape {shape}"
    )


def _asked(wanted: str) -> str:
    return f"{wanted[0].upper()}{wanted[1:]} {'are' if wanted.endswith('numbers') else 'is'} asked for"


def _same(one: Any, other: Any) -> bool:
    try:
        one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    except (TypeError, ValueError):
        return type(one) is type(other) and bool(one == other)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-6, atol=1e-6, equal_nan=True)


def _short(value: Any) -> str:
    if isinstance(value, str):
        return repr(value)
    try:
        return np.array2string(np.asarray(value, dtype=float), precision=4, separator=", ")
    except (TypeError, ValueError):
        return shown(value)


def _named(error: BaseException) -> str:
    text = " ".join(str(error).split())
    shorter = text if len(text) <= 100 else f"{text[:97]}..."
    return f"{type(error).__name__}: {shorter}" if text else type(error).__name__


def _stopped(function: Any, error: BaseException) -> str:
    """The student's line at which a function stopped, and why."""
    if isinstance(error, NotImplementedError) and not str(error):
        name = getattr(function, "__name__", "your function")
        return f"Nothing is written there yet: in `{name}`, put lines of your own in the place of `raise NotImplementedError`."
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    theirs = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" in its line `{theirs[-1].line}`" if theirs and theirs[-1].line else ""
    if isinstance(error, KeyboardInterrupt):
        return (
            f"You stopped your function{where}. If it would not have come to an end, look for a loop that never ends."
        )
    advice = "".join(f" {what}" for part, what in ADVICE.items() if part in str(error))
    return f"Your function stops{where} with {_named(error)}.{advice}"
