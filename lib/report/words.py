"""Plain words in place of names of code: a page is for people. What they download keeps the names."""

import csv
import functools
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

TEMPLATE = Path(__file__).parent / "template"
NAME = re.compile(r"(?<![\w./:-])[a-z][a-z0-9]*(?:_[A-Za-z0-9]+)+(?![\w/-]|[.:]\w)")
"""A name as code writes it; no part of a path, of an address or of a notebook's name."""


def plain(text: str, names: Collection[str] = ()) -> str:
    """The text with names of code in plain words: ``several_pieces`` becomes *written in several pieces*.

    Which names say more in other words stands in ``template/words.csv``; of any other, underscores become spaces.
    ``names`` (of models) stay as they are.
    """
    known = listed("words.csv")
    return NAME.sub(
        lambda found: found[0] if found[0] in names else known.get(found[0], found[0].replace("_", " ")), text
    )


@functools.cache
def listed(file: str) -> dict[str, str]:
    """The two columns of a list in the template's folder."""
    with (TEMPLATE / file).open(encoding="utf-8", newline="") as lines:
        return dict(list(csv.reader(lines))[1:])


def html_in_plain_words(safe: str, names: Collection[str]) -> str:
    """Safe HTML in plain words: its text, but for what is marked as code."""
    soup = BeautifulSoup(safe, "html.parser")
    for text in soup.find_all(string=NAME):
        if not text.find_parent(["code", "pre", "kbd"]):
            text.replace_with(plain(text, names))
    return str(soup)


def chart_in_plain_words(part: Any, names: Collection[str]) -> Any:
    """A chart's labels in plain words. Names of its fields must stay: they are among ``names``."""
    if isinstance(part, dict):
        return {name: chart_in_plain_words(value, names) for name, value in part.items()}
    if isinstance(part, list):
        return [chart_in_plain_words(value, names) for value in part]
    return plain(part, names) if isinstance(part, str) else part
