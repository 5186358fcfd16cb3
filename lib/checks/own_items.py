"""What is asked of items that students write themselves, whatever the diagnostic."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from lib.checks import NotYet
from lib.errors import LitmusError
from lib.items import read_verbs, split_at_difference
from lib.models.protocol import LanguageModel
from lib.paths import DATA
from lib.say import shown


def listed(given: Any, at_least: int, what: str = "items") -> list:
    """The items as a list of at least so many; ``NotYet`` for anything else."""
    if given is ...:
        raise NotYet(f"Nothing is written there yet: put {what} of your own in the place of the three dots.")
    if not isinstance(given, (list, tuple)):
        raise NotYet(f"Give a list of {what}, and not {shown(repr(given))}.")
    if any(part is ... for one in given for part in (one if isinstance(one, (list, tuple)) else [one])):
        raise NotYet("There are three dots left in your list: put something of your own in their place.")
    if len(given) < at_least:
        raise NotYet(f"At least {at_least} {what} are asked for, and you give {len(given)}.")
    if len({repr(one) for one in given}) < len(given):
        raise NotYet(f"One of your {what} is there twice: it would count twice and tell nothing new.")
    return list(given)


def texts(item: Any, fields: Sequence[str], where: str) -> list[str]:
    """The texts of an item that is a tuple of ``fields``; ``NotYet`` for anything else."""
    if not isinstance(item, (list, tuple)) or len(item) != len(fields):
        raise NotYet(f"{where} should hold {len(fields)} texts ({', '.join(fields)}), and is {shown(repr(item))}.")
    for field, text in zip(fields, item, strict=True):
        if not isinstance(text, str):
            raise NotYet(f"{where}: {field} is no text but {shown(repr(text))}.")
    return list(item)


def one_word_apart(good: str, bad: str, where: str) -> tuple[str, str, str, str]:
    """Left context, good form, bad form and right context of two sentences that differ in exactly one word."""
    for sentence in (good, bad):
        if not sentence[:1].isupper() or sentence[-1:] not in (".", "?", "!"):
            raise NotYet(f"{where}: *{sentence}* should start with a capital letter and end with a full stop.")
    try:
        return split_at_difference(good, bad, where)
    except LitmusError as error:
        raise NotYet(f"{str(error)[:1].upper()}{str(error)[1:]}") from None


def number_of(form: str, where: str) -> str:
    """``singular`` or ``plural``: the number of a verb form of the present (or *was*, *were*), by ``data/verbs.csv``."""
    number = _numbers().get(form)
    if number is None:
        raise NotYet(
            f"{where}: *{form}* is no verb form whose number can be told; take is/are, or a verb in the present."
        )
    return number


def agreeing(good: str, bad: str, where: str) -> str:
    """The number of the good form, which must be the other form of the bad one's verb."""
    number = number_of(good, where)
    if number_of(bad, where) == number:
        raise NotYet(f"{where}: *{good}* and *{bad}* are both {number}; one must be singular and the other plural.")
    if frozenset((good, bad)) not in _verbs():
        raise NotYet(
            f"{where}: *{good}* and *{bad}* are forms of two verbs; then a difference may come from the verb and "
            "not from its number. Take two forms of one verb."
        )
    return number


def balanced(numbers: Sequence[str]) -> None:
    """As many singular items as plural ones: else a model that always says *are* looks good."""
    count = Counter(numbers)
    if count["singular"] != count["plural"]:
        raise NotYet(
            f"The right form is singular in {count['singular']} items and plural in {count['plural']}: a model that always "
            "takes one number would not get half of them. Write as many of each."
        )


def one_piece(lm: LanguageModel, form: str, where: str, kind: str = "verb") -> None:
    """The form is a single vocabulary item of the model, so that it can be looked up at a gap."""
    word = lm.word(form, "middle")
    if len(word.ids) != 1:
        pieces = " ".join(lm.spelling(word.ids)) or word.reason
        raise NotYet(
            f"{where}: the model's vocabulary has no single item *{form}* ({pieces}), so take a commoner {kind}."
        )


@cache
def _verbs() -> set[frozenset[str]]:
    table = read_verbs(DATA / "verbs.csv")
    return {frozenset(forms) for forms in zip(table["singular"], table["plural"], strict=True)}


@cache
def _numbers() -> dict[str, str]:
    table = read_verbs(DATA / "verbs.csv").query("not ambiguous")
    return dict.fromkeys(table["singular"], "singular") | dict.fromkeys(table["plural"], "plural")
