"""The words that test sentences are made of: tables that anyone can edit, read and checked.

A lexicon is a folder of small CSV files (``data/lexicon/README.md`` describes them). Reading it refuses, with file and
line, what would make sentences ungrammatical or pairs that test nothing.
"""

import csv
import io
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lib.errors import LitmusError
from lib.paths import check_finite
from lib.say import did_you_mean

Number = Literal["singular", "plural"]
NUMBERS: tuple[Number, Number] = ("singular", "plural")

# --- English spelling -------------------------------------------------------------------------------------------------

VOWELS = "aeiou"
IRREGULAR_THIRD_PERSON = {"be": "is", "have": "has", "stomach": "stomachs"}
PLAIN_S_AFTER_O = {"disco", "lasso", "memo", "photo", "solo", "tango"}


def third_person(lemma: str) -> str:
    """The third person singular present of a verb given by its lemma: ``carry`` gives ``carries``."""
    if lemma in IRREGULAR_THIRD_PERSON:
        return IRREGULAR_THIRD_PERSON[lemma]
    before = lemma[-2:-1]
    if lemma.endswith("y") and (before not in VOWELS or lemma.endswith("quy")):
        return lemma[:-1] + "ies"
    if lemma.endswith("z") and before in VOWELS:
        return lemma + "zes"
    if lemma.endswith(("s", "x", "z", "ch", "sh")):
        return lemma + "es"
    if lemma.endswith("o") and before not in VOWELS and lemma not in PLAIN_S_AFTER_O:
        return lemma + "es"
    return lemma + "s"


# --- The lexicon ------------------------------------------------------------------------------------------------------


class Forms(NamedTuple):
    """A word in both numbers."""

    singular: str
    plural: str

    def of(self, number: Number) -> str:
        """The form of one number."""
        return self.singular if number == "singular" else self.plural


class Noun(NamedTuple):
    """A row of ``nouns.csv``; ``class_`` says what kind of thing it names, the other files refer to it."""

    singular: str
    plural: str
    class_: str
    inflection: str


class Predicate(NamedTuple):
    """A row of ``predicates.csv``: a verb that agrees, and the rest of its phrase.

    ``marks`` (of ``MARKS``) say beside what it reads well, ``not_of`` names the nouns of which it is not said.
    """

    kind: str
    singular: str
    plural: str
    rest: str
    subjects: tuple[str, ...]
    marks: tuple[str, ...]
    not_of: tuple[str, ...]


class Preposition(NamedTuple):
    """A row of ``prepositions.csv``."""

    preposition: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


class RelativeVerb(NamedTuple):
    """A row of ``relative_verbs.csv``: a verb with an object, for relative clauses."""

    singular: str
    plural: str
    past: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


class ComplementVerb(NamedTuple):
    """A row of ``complement_verbs.csv``: a verb that takes a clause without *that*; a past has one form for both."""

    singular: str
    plural: str
    subjects: tuple[str, ...]


class Determiner(NamedTuple):
    """A row of ``determiners.csv``."""

    singular: str
    plural: str


class ContentWord(NamedTuple):
    """A row of ``content_words.csv``: a word in all its forms, for nonsense sentences (``lib.templates.nonsense``)."""

    kind: str
    plain: str
    s: str
    past: str
    participle: str
    ing: str


class Modifier(NamedTuple):
    """A row of ``modifiers.csv``: a relative clause after a noun, the same in both numbers."""

    modifier: str
    nouns: tuple[str, ...]


class Event(NamedTuple):
    """A row of ``events.csv``: something that one can do once or as a habit, in all forms that show tense."""

    plain: str
    singular: str
    past: str
    rest: str
    subjects: tuple[str, ...]


class TemporalAdverb(NamedTuple):
    """A row of ``temporal_adverbs.csv``: a time that lies in the past, the present or the future."""

    tense: str
    adverb: str


class Lexicon(NamedTuple):
    """All words of a lexicon folder, each table in the order of its file."""

    folder: Path
    nouns: list[Noun]
    predicates: list[Predicate]
    prepositions: list[Preposition]
    relative_verbs: list[RelativeVerb]
    complement_verbs: list[ComplementVerb]
    determiners: list[Determiner]
    content_words: list[ContentWord]
    modifiers: list[Modifier]
    events: list[Event]
    temporal_adverbs: list[TemporalAdverb]


TABLES: dict[str, Any] = {
    "nouns": Noun,
    "predicates": Predicate,
    "prepositions": Preposition,
    "relative_verbs": RelativeVerb,
    "complement_verbs": ComplementVerb,
    "determiners": Determiner,
    "content_words": ContentWord,
    "modifiers": Modifier,
    "events": Event,
    "temporal_adverbs": TemporalAdverb,
}
INFLECTIONS = ("regular", "irregular")
TENSES = ("past", "present", "future")
VERB_FORMS = ("plain", "s", "past", "participle", "ing")
FORMS_OF: dict[str, tuple[str, ...]] = {
    "noun": ("plain", "s"),
    "mass noun": ("plain",),
    "clause noun": ("plain", "s"),
    "transitive verb": VERB_FORMS,
    "intransitive verb": VERB_FORMS,
    "adjective": ("plain",),
    "adverb": ("plain",),
}
"""The kinds of content words and the forms each has; ``s`` is a noun's plural or a verb's third person singular."""

ALLOWED: dict[str, dict[str, tuple[str, ...]]] = {
    "predicates": {"kind": ("intransitive", "transitive", "adjective", "auxiliary", "long")},
    "nouns": {"inflection": INFLECTIONS},
    "content_words": {"kind": tuple(FORMS_OF)},
    "temporal_adverbs": {"tense": TENSES},
}
MARKS = ("passing", "lasting", "good", "bad", "place", "speech", "noun", "coordination")
"""What a predicate's ``marks`` may say of it (``data/lexicon/README.md``)."""

CLASSES = ("subjects", "objects", "nouns")
LISTS = (*CLASSES, "marks", "not_of")
SINGLE_WORDS = (*NUMBERS, *VERB_FORMS)
MAY_BE_EMPTY = {"predicates": ("rest", "marks", "not_of"), "events": ("rest",), "content_words": VERB_FORMS[1:]}
NO_NUMBER = ("determiners", "events", "complement_verbs")  # "the" and "said" are both; an event has no plural


def read_rows(path: Path, columns: Sequence[str], delimiter: str = ",") -> list[tuple[int, dict[str, str]]]:
    """The rows of a table in UTF-8 with their line numbers, blank ones left out and white space tidied.

    Raises LitmusError naming file and line: no such file, another encoding, other columns, a row with more or fewer
    values, no rows at all.
    """
    check_finite(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LitmusError(f"{path}: there is no such file; a lexicon folder needs {path.name}.") from None
    except UnicodeDecodeError:
        raise LitmusError(f"{path}: this file is not UTF-8; save it again as CSV UTF-8.") from None
    except OSError as error:
        raise LitmusError(f"{path} cannot be read ({error.strerror}); name a file.") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        (_, header), *lines = [(reader.line_num, cells) for cells in reader] or [(1, [])]
    except csv.Error as error:
        raise LitmusError(f"{path}, line {reader.line_num}: this is no row of a table ({error}); mend it.") from None
    if header != list(columns):
        raise LitmusError(f"{path}, line 1: the columns are {','.join(header)}; they must be {','.join(columns)}.")
    rows = []
    for line, cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(columns):
            raise LitmusError(
                f"{path}, line {line}: {len(cells)} values for {len(columns)} columns; quote a value with a comma."
            )
        rows.append((line, dict(zip(columns, (" ".join(cell.split()) for cell in cells), strict=True))))
    if not rows:
        raise LitmusError(f"{path}: this table has no rows; add at least one.")
    return rows


def write_rows(out: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Rows as a file separated by tabs, quoted where needed, with Unix line ends; the file is replaced."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(text.getvalue().encode())


def _read_table(folder: Path, name: str) -> list[tuple[int, Any]]:
    """The rows of one table with their line numbers."""
    path = folder / f"{name}.csv"
    row_type = TABLES[name]
    rows = []
    for line, values in read_rows(path, [field.rstrip("_") for field in row_type._fields]):
        where = f"{path}, line {line}"
        for column, value in values.items():
            allowed = ALLOWED.get(name, {}).get(column)
            if not value and column not in MAY_BE_EMPTY.get(name, ()):
                raise LitmusError(f"{where}: no value for {column}; fill it in.")
            if allowed and value not in allowed:
                raise LitmusError(f"{where}: {column} is {value!r}; it must be one of {', '.join(allowed)}.")
            if column in SINGLE_WORDS and " " in value:
                raise LitmusError(f"{where}: {column} is {value!r}; it must be a single word.")
        rows.append((line, row_type(*(tuple(v.split()) if c in LISTS else v for c, v in values.items()))))
    return rows


def _check_content_words(path: Path, rows: list[tuple[int, ContentWord]]) -> None:
    """Every form that a kind has and no other, and verbs whose plain form is nothing else."""
    for line, row in rows:
        for form in VERB_FORMS:
            if (form in FORMS_OF[row.kind]) != bool(getattr(row, form)):
                which = ", ".join(FORMS_OF[row.kind])
                raise LitmusError(
                    f"{path}, line {line}: {row.plain!r} is of the kind {row.kind}, whose forms are {which}."
                )
    verbs = [(line, row) for line, row in rows if row.past]
    _check_tense(path, verbs)
    _check_numbers(path, [(line, Forms(row.s, row.plain)) for line, row in verbs])
    nouns = [(line, Forms(row.plain, row.s)) for line, row in rows if row.s and not row.past]
    _check_numbers(path, nouns)


def _check_tense(path: Path, rows: Sequence[tuple[int, ContentWord | Event]]) -> None:
    """No verb whose past is its plain form (*put*): after a singular subject that form is good English."""
    for line, row in rows:
        if row.plain == row.past:
            raise LitmusError(
                f"{path}, line {line}: {row.plain!r} is both the plain and the past form; take a verb that differs."
            )


def _check_numbers(path: Path, rows: list) -> None:
    """No form may be singular in one row and plural in another (or in the same: *sheep*)."""
    plurals = {row.plural for _, row in rows}
    for line, row in rows:
        if row.singular in plurals:
            raise LitmusError(
                f"{path}, line {line}: {row.singular!r} is both a singular and a plural form; "
                "take a word whose forms differ."
            )


def _check_predicates(path: Path, rows: list[tuple[int, Predicate]], nouns: list[Noun]) -> None:
    """Marks that exist, and exceptions that are nouns of which the predicate would be said otherwise."""
    class_of = {noun.singular: noun.class_ for noun in nouns}
    for line, row in rows:
        for mark in row.marks:
            if mark not in MARKS:
                raise LitmusError(f"{path}, line {line}: the mark {mark!r} is unknown; known are {', '.join(MARKS)}.")
        for noun in row.not_of:
            if noun not in class_of:
                raise LitmusError(
                    f"{path}, line {line}: not_of names {noun!r}, which is no singular in nouns.csv"
                    f"{did_you_mean(noun, class_of)}; mend it or take it out."
                )
            if class_of[noun] not in row.subjects:
                raise LitmusError(
                    f"{path}, line {line}: not_of names {noun!r}, which is of the class {class_of[noun]!r} and not of "
                    f"{' or '.join(row.subjects)}, so it is no exception; take it out."
                )


def read_lexicon(folder: Path) -> Lexicon:
    """Reads and checks a lexicon folder (``data/lexicon/README.md`` describes the tables).

    Raises LitmusError, naming file and line, for a missing file, unknown or missing columns, a missing value, a row
    that stands twice, a form that is both singular and plural, a class of nouns that ``nouns.csv`` does not have,
    an unknown mark, and an exception that is no noun or none of those that a predicate is said of.
    """
    tables = {name: _read_table(folder, name) for name in TABLES}
    known = {row.class_ for _, row in tables["nouns"]}
    for name, rows in tables.items():
        path = folder / f"{name}.csv"
        seen: dict = {}
        for line, row in rows:
            if row in seen:
                raise LitmusError(f"{path}, line {line}: the same row as line {seen[row]}; delete one.")
            seen[row] = line
            for column in CLASSES:
                for class_ in getattr(row, column, ()):
                    if class_ not in known:
                        raise LitmusError(
                            f"{path}, line {line}: {column} names the class {class_!r}, which no row of nouns.csv has; "
                            f"known are {', '.join(sorted(known))}."
                        )
        if "singular" in TABLES[name]._fields and name not in NO_NUMBER:
            _check_numbers(path, rows)
    nouns = [row for _, row in tables["nouns"]]
    _check_predicates(folder / "predicates.csv", tables["predicates"], nouns)
    _check_content_words(folder / "content_words.csv", tables["content_words"])
    _check_tense(folder / "events.csv", tables["events"])
    return Lexicon(folder, *([row for _, row in rows] for rows in tables.values()))


# --- Drawing words ----------------------------------------------------------------------------------------------------

Deal = Callable[[Sequence[Any]], Any]


def dealer(key: str) -> Deal:
    """A function that picks from a list like a dealer of cards: every member once, in random order, then again.

    ``key`` seeds it. Only ``random()`` is used, whose sequence Python promises to keep.
    """
    generator = random.Random(key)
    decks: dict[tuple, list] = {}

    def deal(words: Sequence[Any]) -> Any:
        deck = decks.setdefault(tuple(words), [])
        if not deck:
            deck.extend(sorted(words, key=lambda _: generator.random()))
        return deck.pop()

    return deal


def row_of(lexicon: Lexicon, deal: Deal, table: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
    """One of the rows of a table that fit; ``wanted`` says in words which these are.

    Raises LitmusError, naming the file, where none fits.
    """
    rows = [row for row in getattr(lexicon, table) if fits(row)]
    if not rows:
        raise LitmusError(f"{lexicon.folder / table}.csv: there is no {wanted}; add a row.")
    return deal(rows)
