"""Makes agreement pairs from a lexicon that anyone can edit.

``python -m lib.templates agreement --out FOLDER`` writes one JSONL file per construction, in the format of the
published targeted syntactic evaluations: the constructions of Marvin and Linzen (2018) in the naming of Newman et al.
(2021), and one file that plays the part of four paradigms of BLiMP. The same lexicon and seed give the same bytes on
every machine.

One choice of words is a *frame*. A frame is written out in every number its subject and its attractor can have, so
that a difference between singular and plural, or between match and mismatch, is never a difference between words.
"""

import csv
import dataclasses
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from lib import paths
from lib.errors import LitmusError

Number = Literal["singular", "plural"]
NUMBERS: tuple[Number, Number] = ("singular", "plural")
LABELS = {"singular": -1, "plural": -2}

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
    """A row of ``predicates.csv``: a verb that agrees, and the rest of its phrase."""

    kind: str
    singular: str
    plural: str
    rest: str
    subjects: tuple[str, ...]


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
    """A row of ``complement_verbs.csv``: a past tense that takes a clause without *that*."""

    past: str
    subjects: tuple[str, ...]


class Determiner(NamedTuple):
    """A row of ``determiners.csv``."""

    singular: str
    plural: str


class Lexicon(NamedTuple):
    """All words of a lexicon folder, each table in the order of its file."""

    folder: Path
    nouns: list[Noun]
    predicates: list[Predicate]
    prepositions: list[Preposition]
    relative_verbs: list[RelativeVerb]
    complement_verbs: list[ComplementVerb]
    determiners: list[Determiner]


TABLES: dict[str, Any] = {
    "nouns": Noun,
    "predicates": Predicate,
    "prepositions": Preposition,
    "relative_verbs": RelativeVerb,
    "complement_verbs": ComplementVerb,
    "determiners": Determiner,
}
KINDS = {
    "kind": ("intransitive", "transitive", "adjective", "auxiliary", "long"),
    "inflection": ("regular", "irregular"),
}
CLASSES = ("subjects", "objects")
MAY_BE_EMPTY = ("rest",)
NO_NUMBER = ("determiners",)  # "the" is singular and plural, and may be


def _read_table(folder: Path, name: str) -> list[tuple[int, Any]]:
    """The rows of one table with their line numbers."""
    path = folder / f"{name}.csv"
    row_type = TABLES[name]
    columns = [field.rstrip("_") for field in row_type._fields]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LitmusError(f"{path}: there is no such file; a lexicon folder needs {name}.csv.") from None
    except UnicodeDecodeError:
        raise LitmusError(f"{path}: this file is not UTF-8; save it again as CSV UTF-8.") from None
    reader = csv.reader(text.splitlines())
    header = next(reader, [])
    if header != columns:
        raise LitmusError(f"{path}, line 1: the columns are {','.join(header)}; they must be {','.join(columns)}.")
    rows = []
    for cells in reader:
        where = f"{path}, line {reader.line_num}"
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(columns):
            raise LitmusError(f"{where}: {len(cells)} values for {len(columns)} columns; quote a value with a comma.")
        values = dict(zip(columns, (" ".join(cell.split()) for cell in cells), strict=True))
        for column, value in values.items():
            if not value and column not in MAY_BE_EMPTY:
                raise LitmusError(f"{where}: no value for {column}; fill it in.")
            if column in KINDS and value not in KINDS[column]:
                raise LitmusError(f"{where}: {column} is {value!r}; it must be one of {', '.join(KINDS[column])}.")
            if column in NUMBERS and " " in value:
                raise LitmusError(f"{where}: {column} is {value!r}; it must be a single word.")
        rows.append((reader.line_num, row_type(*(tuple(v.split()) if c in CLASSES else v for c, v in values.items()))))
    if not rows:
        raise LitmusError(f"{path}: this table has no rows; add at least one.")
    return rows


def _check_numbers(path: Path, rows: list) -> None:
    """No form may be singular in one row and plural in another (or in the same: *sheep*)."""
    plurals = {row.plural for _, row in rows}
    for line, row in rows:
        if row.singular in plurals:
            raise LitmusError(
                f"{path}, line {line}: {row.singular!r} is both a singular and a plural form; "
                "take a word whose forms differ."
            )


def read_lexicon(folder: Path) -> Lexicon:
    """Reads and checks a lexicon folder (``data/lexicon/README.md`` describes the tables).

    Raises LitmusError, naming file and line, for a missing file, unknown or missing columns, a missing value, a row
    that stands twice, a form that is both singular and plural, and a class of nouns that ``nouns.csv`` does not have.
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
    return Lexicon(folder, *([row for _, row in rows] for rows in tables.values()))


# --- Frames -----------------------------------------------------------------------------------------------------------

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


@dataclasses.dataclass(frozen=True)
class Frame:
    """One choice of words for a construction, not yet in any number.

    ``pattern`` has a gap ``{target}`` for the verb that is tested, and gaps for the words in ``with_subject`` and
    ``with_attractor``, which take their number from the subject and from the attractor.
    """

    pattern: str
    target: Forms
    subject: Noun
    with_subject: dict[str, Forms]
    with_attractor: dict[str, Forms] = dataclasses.field(default_factory=dict)


PERSON = ("person",)
HUMAN = ("child", "person")
INANIMATE = ("message", "picture", "text")
THE = Determiner("the", "the")
PLAIN = ("adjective", "verb")
MIXED = ("adjective", "auxiliary", "verb")  # two thirds of the verbs that BLiMP tests are auxiliaries
ANY_INFLECTION = KINDS["inflection"]


def _row(lexicon: Lexicon, deal: Deal, table: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
    """One of the rows of a table that fit; ``wanted`` says in words which these are."""
    rows = [row for row in getattr(lexicon, table) if fits(row)]
    if not rows:
        raise LitmusError(f"{lexicon.folder / table}.csv: there is no {wanted}; add a row.")
    return deal(rows)


def _noun(
    lexicon: Lexicon,
    deal: Deal,
    classes: Sequence[str],
    inflections: Sequence[str] = ANY_INFLECTION,
    other_than: Noun | None = None,
) -> Noun:
    wanted = f"{' or '.join(inflections)} noun of the class {' or '.join(classes)}"
    wanted += f" other than {other_than.singular!r}" if other_than else ""
    return _row(
        lexicon,
        deal,
        "nouns",
        wanted,
        lambda row: row.class_ in classes and row.inflection in inflections and row != other_than,
    )


def _predicate(lexicon: Lexicon, deal: Deal, subject: Noun, groups: Sequence[str]) -> Predicate:
    """A predicate that makes sense of the subject; the groups take turns ("verb": with or without an object)."""
    group = deal(groups)
    kinds = ("intransitive", "transitive") if group == "verb" else (group,)
    wanted = f"{' or '.join(kinds)} predicate for the class {subject.class_}"
    return _row(lexicon, deal, "predicates", wanted, lambda row: row.kind in kinds and subject.class_ in row.subjects)


def _relative_verb(lexicon: Lexicon, deal: Deal, subject: Noun, patient: Noun) -> RelativeVerb:
    wanted = f"verb for a subject of the class {subject.class_} and an object of the class {patient.class_}"
    return _row(
        lexicon,
        deal,
        "relative_verbs",
        wanted,
        lambda row: subject.class_ in row.subjects and patient.class_ in row.objects,
    )


def _forms(row: Noun | Predicate | RelativeVerb | Determiner) -> Forms:
    return Forms(row.singular, row.plural)


def _determiner(lexicon: Lexicon, deal: Deal, noun: Noun, blimp: bool) -> Forms:
    if noun.class_ == "name":
        return Forms("", "the")  # Anna, the Millers
    return _forms(deal(lexicon.determiners if blimp else [THE]))


def _simple(
    lexicon: Lexicon,
    deal: Deal,
    subjects: Sequence[str],
    inflections: Sequence[str] = ANY_INFLECTION,
    blimp: bool = False,
) -> Frame:
    subject = _noun(lexicon, deal, subjects, inflections)
    verb = _predicate(lexicon, deal, subject, MIXED if blimp else PLAIN)
    return Frame(
        f"{{determiner}} {{subject}} {{target}} {verb.rest}",
        _forms(verb),
        subject,
        {"subject": _forms(subject), "determiner": _determiner(lexicon, deal, subject, blimp)},
    )


def _sentential_complement(lexicon: Lexicon, deal: Deal, subjects: Sequence[str]) -> Frame:
    subject = _noun(lexicon, deal, subjects)
    speaker = _noun(lexicon, deal, PERSON, other_than=subject)
    said = _row(lexicon, deal, "complement_verbs", "verb for a person", lambda row: speaker.class_ in row.subjects)
    verb = _predicate(lexicon, deal, subject, PLAIN)
    return Frame(
        f"the {{speaker}} {said.past} the {{subject}} {{target}} {verb.rest}",
        _forms(verb),
        subject,
        {"subject": _forms(subject)},
        {"speaker": _forms(speaker)},
    )


def _coordination(lexicon: Lexicon, deal: Deal, subjects: Sequence[str], groups: Sequence[str] = PLAIN) -> Frame:
    subject = _noun(lexicon, deal, subjects)
    second = _predicate(lexicon, deal, subject, groups)
    first = second
    while first == second or first.singular == second.singular != "is":
        first = _predicate(lexicon, deal, subject, groups)
    return Frame(
        f"the {{subject}} {{first}} {first.rest} and {{target}} {second.rest}",
        _forms(second),
        subject,
        {"subject": _forms(subject), "first": _forms(first)},
    )


def _prepositional_phrase(lexicon: Lexicon, deal: Deal, subjects: Sequence[str], blimp: bool = False) -> Frame:
    subject = _noun(lexicon, deal, subjects)
    wanted = f"preposition after the class {subject.class_}"
    link = _row(lexicon, deal, "prepositions", wanted, lambda row: subject.class_ in row.subjects)
    attractor = _noun(lexicon, deal, link.objects, other_than=subject)
    verb = _predicate(lexicon, deal, subject, MIXED if blimp else PLAIN)
    return Frame(
        f"the {{subject}} {link.preposition} {{attractor_determiner}} {{attractor}} {{target}} {verb.rest}",
        _forms(verb),
        subject,
        {"subject": _forms(subject)},
        {"attractor": _forms(attractor), "attractor_determiner": _determiner(lexicon, deal, attractor, blimp)},
    )


def _subject_relative(lexicon: Lexicon, deal: Deal) -> Frame:
    subject = _noun(lexicon, deal, PERSON)
    attractor = _noun(lexicon, deal, PERSON, other_than=subject)
    relative = _relative_verb(lexicon, deal, subject, attractor)
    verb = _predicate(lexicon, deal, subject, PLAIN)
    return Frame(
        f"the {{subject}} that {{relative}} the {{attractor}} {{target}} {verb.rest}",
        _forms(verb),
        subject,
        {"subject": _forms(subject), "relative": _forms(relative)},
        {"attractor": _forms(attractor)},
    )


def _past_relative(lexicon: Lexicon, deal: Deal) -> Frame:
    """A subject relative clause in the past: its verb gives no hint of the subject's number."""
    subject = _noun(lexicon, deal, PERSON)
    attractor = _noun(lexicon, deal, ("name", "person"), other_than=subject)
    relative = _relative_verb(lexicon, deal, subject, attractor)
    verb = _predicate(lexicon, deal, subject, MIXED)
    return Frame(
        f"{{determiner}} {{subject}} who {relative.past} {{attractor_determiner}} {{attractor}} {{target}} {verb.rest}",
        _forms(verb),
        subject,
        {"subject": _forms(subject), "determiner": _determiner(lexicon, deal, subject, blimp=True)},
        {"attractor": _forms(attractor), "attractor_determiner": _determiner(lexicon, deal, attractor, blimp=True)},
    )


def _object_relative(lexicon: Lexicon, deal: Deal, heads: Sequence[str], that: str, within: bool) -> Frame:
    """An object relative clause; tested is the verb of the main clause, or the verb within the relative clause."""
    head = _noun(lexicon, deal, heads)
    person = _noun(lexicon, deal, PERSON, other_than=head)
    relative = _relative_verb(lexicon, deal, person, head)
    verb = _predicate(lexicon, deal, head, PLAIN)
    of_head = {"head": _forms(head)}
    of_person = {"person": _forms(person)}
    if within:
        pattern = f"the {{head}} {that} the {{person}} {{target}} {{main}} {verb.rest}"
        return Frame(pattern, _forms(relative), person, of_person, of_head | {"main": _forms(verb)})
    pattern = f"the {{head}} {that} the {{person}} {{relative}} {{target}} {verb.rest}"
    return Frame(pattern, _forms(verb), head, of_head, of_person | {"relative": _forms(relative)})


# --- Constructions ----------------------------------------------------------------------------------------------------

MakeFrame = Callable[[Lexicon, Deal], Frame]

CONSTRUCTIONS: dict[str, MakeFrame] = {
    "simple_agrmt": partial(_simple, subjects=HUMAN),
    "sent_comp": partial(_sentential_complement, subjects=HUMAN),
    "vp_coord": partial(_coordination, subjects=HUMAN),
    "long_vp_coord": partial(_coordination, subjects=PERSON, groups=("long",)),
    "prep_anim": partial(_prepositional_phrase, subjects=PERSON),
    "prep_inanim": partial(_prepositional_phrase, subjects=INANIMATE),
    "subj_rel": _subject_relative,
    "obj_rel_across_anim": partial(_object_relative, heads=PERSON, that="that", within=False),
    "obj_rel_across_inanim": partial(_object_relative, heads=INANIMATE, that="that", within=False),
    "obj_rel_no_comp_across_anim": partial(_object_relative, heads=PERSON, that="", within=False),
    "obj_rel_no_comp_across_inanim": partial(_object_relative, heads=INANIMATE, that="", within=False),
    "obj_rel_within_anim": partial(_object_relative, heads=PERSON, that="that", within=True),
    "obj_rel_within_inanim": partial(_object_relative, heads=INANIMATE, that="that", within=True),
    "obj_rel_no_comp_within_anim": partial(_object_relative, heads=PERSON, that="", within=True),
    "obj_rel_no_comp_within_inanim": partial(_object_relative, heads=INANIMATE, that="", within=True),
}
BLIMP = "blimp_like"
PARADIGMS: dict[str, MakeFrame] = {
    "irregular_plural": partial(
        _simple, subjects=("animal", "child", "person"), inflections=("irregular",), blimp=True
    ),
    "regular_plural": partial(_simple, subjects=("animal", "child", "person"), inflections=("regular",), blimp=True),
    "distractor_relational_noun": partial(_prepositional_phrase, subjects=("kin", *INANIMATE), blimp=True),
    "distractor_relative_clause": _past_relative,
}
BALANCE = 4 * len(PARADIGMS)  # four numbers of subject and attractor, in each paradigm


def _sentence(words: str) -> str:
    sentence = " ".join(words.split())
    return f"{sentence[0].upper()}{sentence[1:]}."


def _write_out(frame: Frame) -> Iterator[dict[str, Any]]:
    """The pairs of a frame: each number of the subject with each number of the attractor, if there is one."""
    for subject_number in NUMBERS:
        for attractor_number in NUMBERS if frame.with_attractor else (None,):
            words = {gap: forms.of(subject_number) for gap, forms in frame.with_subject.items()}
            if attractor_number:
                words |= {gap: forms.of(attractor_number) for gap, forms in frame.with_attractor.items()}
            wrong_number = NUMBERS[1 - NUMBERS.index(subject_number)]
            yield {
                "sentence_good": _sentence(frame.pattern.format(target=frame.target.of(subject_number), **words)),
                "sentence_bad": _sentence(frame.pattern.format(target=frame.target.of(wrong_number), **words)),
                "label": LABELS[subject_number],
                "subject_number": subject_number,
                "attractor_number": attractor_number,
                "match": None if attractor_number is None else attractor_number == subject_number,
                "subject": frame.subject.singular,
                "verb": frame.target.plural,
            }


def _pairs(lexicon: Lexicon, make_frame: MakeFrame, key: str, count: int) -> list[dict[str, Any]]:
    """So many different pairs, frame by frame."""
    deal = dealer(key)
    pairs: list[dict[str, Any]] = []
    seen: set[str] = set()
    idle = 0
    while len(pairs) < count:
        written = list(_write_out(make_frame(lexicon, deal)))
        if written[0]["sentence_good"] not in seen:
            seen.update(pair["sentence_good"] for pair in written)
            pairs.extend(written)
            idle = 0
        elif (idle := idle + 1) == 1000:
            raise LitmusError(
                f"{lexicon.folder}: these words give no more than about {len(pairs)} of {count} different pairs; "
                "add words or ask for fewer with --pairs."
            )
    return pairs


def agreement_pairs(lexicon: Lexicon, construction: str, pairs: int = 320, seed: int = 0) -> list[dict[str, Any]]:
    """The pairs of one construction, as rows of its JSONL file.

    ``construction`` is a key of ``CONSTRUCTIONS`` or ``"blimp_like"``; ``pairs`` a multiple of 16, so that the numbers
    of subject and attractor stay balanced. The constructions with and without *that* get the same words.

    Raises LitmusError for another number of pairs, and for a lexicon with too few words.
    """
    if pairs < 1 or pairs % BALANCE:
        raise LitmusError(f"--pairs {pairs}: give a multiple of {BALANCE}, so that the numbers stay balanced.")
    if construction == BLIMP:
        count = pairs // len(PARADIGMS)
        rows = [
            pair | {"paradigm": paradigm}
            for paradigm, make_frame in PARADIGMS.items()
            for pair in _pairs(lexicon, make_frame, f"{seed} {paradigm}", count)
        ]
    else:
        key = f"{seed} {construction.replace('_no_comp', '')}"
        rows = _pairs(lexicon, CONSTRUCTIONS[construction], key, pairs)
    return [
        row | {"construction": construction, "id": f"{construction}-{number:04d}"}
        for number, row in enumerate(rows, start=1)
    ]


def write_agreement(out: Path, lexicon: Lexicon, pairs: int = 320, seed: int = 0) -> list[Path]:
    """Writes one JSONL file per construction into a folder, and gives their paths."""
    texts = {}
    for construction in (*CONSTRUCTIONS, BLIMP):
        rows = agreement_pairs(lexicon, construction, pairs, seed)
        texts[out / f"{construction}.jsonl"] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_bytes(text.encode())
    return list(texts)


# --- Command line -----------------------------------------------------------------------------------------------------

app = typer.Typer(add_completion=False, help="Make test items from a lexicon that anyone can edit.")


@app.callback()
def _main() -> None:
    """Each kind of items is a command of its own."""


@app.command()
def agreement(
    out: Annotated[Path, typer.Option(help="Folder for the JSONL files; files of the same name are replaced.")],
    pairs: Annotated[int, typer.Option(help=f"Pairs per construction, a multiple of {BALANCE}.")] = 320,
    seed: Annotated[int, typer.Option(help="Another seed gives another choice of words.")] = 0,
    lexicon: Annotated[Path, typer.Option(help="Folder of the word lists.")] = paths.DATA / "lexicon",
) -> None:
    """Subject-verb agreement: one file of minimal pairs per construction."""
    try:
        written = write_agreement(out, read_lexicon(lexicon), pairs, seed)
    except (LitmusError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"wrote {len(written)} files of {pairs} pairs to {out}")


if __name__ == "__main__":
    app()
