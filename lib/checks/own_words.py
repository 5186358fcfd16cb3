"""What is asked of the words in items of one's own: one vocabulary item, not in the text, as often right as wrong."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd

from lib.checks import NotYet
from lib.checks.own_items import one_piece
from lib.errors import LitmusError
from lib.models.protocol import LanguageModel


def single(lm: LanguageModel, word: str, where: str) -> None:
    """A word that fills the gap is one white-space word and one item of the model's vocabulary."""
    if len(word.split()) != 1:
        raise NotYet(f"{where}: '{word}' is not one word, so it fills no gap of one word.")
    one_piece(lm, word, where, "word")


def outside(word: str, text: str, where: str) -> None:
    """A word that is asked for does not stand in the context already, where a model need only repeat it."""
    if word.lower() in re.findall(r"[\w'’-]+", text.lower()):
        raise NotYet(f"{where}: *{word}* stands in the context already; a model that repeats words would find it.")


def open_ended(context: str, where: str) -> None:
    """A context ends right before its gap: no full stop, no mark of a gap."""
    if not context.strip() or context.rstrip()[-1] in ".?!_]":
        raise NotYet(
            f"{where}: a context ends right before the gap, with a word, and not with a full stop or a blank: "
            f"*{context}*."
        )


def as_often(right: Iterable[str], wrong: Iterable[str], where: str = "") -> None:
    """Every word as often right as wrong: else a model that likes one of them looks good."""
    often = Counter(right)
    often.subtract(Counter(wrong))
    for word, more in often.items():
        if more:
            kind, other = ("right", "wrong") if more > 0 else ("wrong", "right")
            raise NotYet(
                f"{where}{' *' if where else '*'}{word}* is {kind} more often than {other}: a model that merely likes "
                "one word better would not get half. For each item add its mirror, in which right and wrong have "
                "changed places."
            )


def as_table(
    lines: Sequence[Sequence[str]], columns: Sequence[str], reader: Callable[[Path], pd.DataFrame]
) -> pd.DataFrame:
    """The items as the library's reader has them from a file; what it refuses is said of the item, not of the file."""
    if any(mark in text for line in lines for text in line for mark in "\t\n\r"):
        raise NotYet("There is a tab or a line break in one of your texts; take it out.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.tsv"
        path.write_text("".join("\t".join(line) + "\n" for line in [columns, *lines]), encoding="utf-8")
        try:
            return reader(path)
        except LitmusError as error:
            sentence = re.sub(
                rf"{re.escape(str(path))}, line (\d+)", lambda found: f"Item {int(found[1]) - 1}", str(error)
            )
            raise NotYet(sentence) from None
