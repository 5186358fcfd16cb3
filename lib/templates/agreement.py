"""Pairs of subject-verb agreement from a lexicon: ``python -m lib.templates agreement --out FOLDER``.

One JSONL file per construction, in the format of the published targeted syntactic evaluations: the constructions of
Marvin and Linzen (2018) in the naming of Newman et al. (2021), and one file that plays the part of four paradigms of
BLiMP. The same lexicon and seed give the same bytes on every machine.

One choice of words is a *frame*. A frame is written out in every number its subject and its attractor can have, so
that a difference between singular and plural, or between match and mismatch, is never a difference between words.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lib.errors import LitmusError
from lib.templates.coordination_tense import HUMAN, sentence
from lib.templates.lexicon import (
    INFLECTIONS,
    NUMBERS,
    ComplementVerb,
    Deal,
    Determiner,
    Forms,
    Lexicon,
    Noun,
    Predicate,
    RelativeVerb,
    dealer,
    row_of,
)

LABELS = {"singular": -1, "plural": -2}

# --- Frames -----------------------------------------------------------------------------------------------------------


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
INANIMATE = ("message", "picture", "text")
THE = Determiner("the", "the")
PLAIN = ("adjective", "verb")
MIXED = ("adjective", "auxiliary", "verb")  # two thirds of the verbs that BLiMP tests are auxiliaries
BRITISH = ("postman",)  # the set with coordinated subjects has it; these sentences are American


def _noun(
    lexicon: Lexicon,
    deal: Deal,
    classes: Sequence[str],
    inflections: Sequence[str] = INFLECTIONS,
    other_than: Noun | None = None,
) -> Noun:
    wanted = f"{' or '.join(inflections)} noun of the class {' or '.join(classes)}"
    wanted += f" other than {other_than.singular!r}" if other_than else ""
    return row_of(
        lexicon,
        deal,
        "nouns",
        wanted,
        lambda row: (
            row.class_ in classes
            and row.inflection in inflections
            and row != other_than
            and row.singular not in BRITISH
        ),
    )


def _predicate(
    lexicon: Lexicon,
    deal: Deal,
    subject: Noun,
    groups: Sequence[str],
    fits: Callable[[Predicate], bool] = lambda row: True,
    wanted: str = "",
) -> Predicate:
    """A predicate that makes sense of the subject; the groups take turns ("verb": with or without an object)."""
    group = deal(groups)
    kinds = ("intransitive", "transitive") if group == "verb" else (group,)
    return row_of(
        lexicon,
        deal,
        "predicates",
        f"{' or '.join(kinds)} predicate for the class {subject.class_}{wanted}",
        lambda row: (
            row.kind in kinds
            and subject.class_ in row.subjects
            and subject.singular not in row.not_of
            and "coordination" not in row.marks
            and fits(row)
        ),
    )


ASPECTS = {"passing", "lasting"}
CLASHES = (("good", "bad"), ("bad", "good"), ("place", "place"), ("speech", "speech"))


def _join(first: Predicate, second: Predicate) -> bool:
    """Whether *and* joins two predicates well: both passing or both lasting, no clash, and no verb or last word twice."""
    ones, others = set(first.marks), set(second.marks)
    return (
        bool(ones & others & ASPECTS)
        and (first.singular != second.singular or first.singular == "is")
        and (first.rest.split()[-1:] != second.rest.split()[-1:] or not first.rest)
        and not any(one in ones and other in others for one, other in CLASHES)
    )


def _relative_verb(lexicon: Lexicon, deal: Deal, subject: Noun, patient: Noun) -> RelativeVerb:
    wanted = f"verb for a subject of the class {subject.class_} and an object of the class {patient.class_}"
    return row_of(
        lexicon,
        deal,
        "relative_verbs",
        wanted,
        lambda row: subject.class_ in row.subjects and patient.class_ in row.objects,
    )


def _forms(row: Noun | Predicate | RelativeVerb | ComplementVerb | Determiner) -> Forms:
    return Forms(row.singular, row.plural)


def _determiner(lexicon: Lexicon, deal: Deal, noun: Noun, blimp: bool) -> Forms:
    if noun.class_ == "name":
        return Forms("", "the")  # Anna, the Millers
    return _forms(deal(lexicon.determiners if blimp else [THE]))


def _simple(
    lexicon: Lexicon,
    deal: Deal,
    subjects: Sequence[str],
    inflections: Sequence[str] = INFLECTIONS,
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
    said = row_of(lexicon, deal, "complement_verbs", "verb for a person", lambda row: speaker.class_ in row.subjects)
    verb = _predicate(lexicon, deal, subject, PLAIN)
    return Frame(
        f"the {{speaker}} {{said}} the {{subject}} {{target}} {verb.rest}",
        _forms(verb),
        subject,
        {"subject": _forms(subject)},
        {"speaker": _forms(speaker), "said": _forms(said)},
    )


def _coordination(lexicon: Lexicon, deal: Deal, subjects: Sequence[str], groups: Sequence[str] = PLAIN) -> Frame:
    subject = _noun(lexicon, deal, subjects)
    second = _predicate(
        lexicon, deal, subject, groups, lambda row: bool(ASPECTS & set(row.marks)), " that is passing or lasting"
    )
    first = _predicate(
        lexicon, deal, subject, groups, lambda row: _join(row, second), f" that fits beside {second.plural!r}"
    )
    return Frame(
        f"the {{subject}} {{first}} {first.rest} and {{target}} {second.rest}",
        _forms(second),
        subject,
        {"subject": _forms(subject), "first": _forms(first)},
    )


def _prepositional_phrase(lexicon: Lexicon, deal: Deal, subjects: Sequence[str], blimp: bool = False) -> Frame:
    subject = _noun(lexicon, deal, subjects)
    wanted = f"preposition after the class {subject.class_}"
    link = row_of(lexicon, deal, "prepositions", wanted, lambda row: subject.class_ in row.subjects)
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
    verb = _predicate(  # with nouns, "the man that the climbers love dances" would be about dances
        lexicon, deal, head, PLAIN, lambda row: "noun" not in row.marks, " whose forms are no nouns"
    )
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


def _write_out(frame: Frame) -> Iterator[dict[str, Any]]:
    """The pairs of a frame: each number of the subject with each number of the attractor, if there is one."""
    for subject_number in NUMBERS:
        for attractor_number in NUMBERS if frame.with_attractor else (None,):
            words = {gap: forms.of(subject_number) for gap, forms in frame.with_subject.items()}
            if attractor_number:
                words |= {gap: forms.of(attractor_number) for gap, forms in frame.with_attractor.items()}
            wrong_number = NUMBERS[1 - NUMBERS.index(subject_number)]
            yield {
                "sentence_good": sentence(frame.pattern.format(target=frame.target.of(subject_number), **words)),
                "sentence_bad": sentence(frame.pattern.format(target=frame.target.of(wrong_number), **words)),
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
