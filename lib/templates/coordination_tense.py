"""Makes pairs of whole sentences: coordinated subjects, and tense with temporal anaphors.

The files are in the *sentence-focused* format (``pattern``, ``sent``, ``sent_alt``), the one for pairs that may differ in
more than one word. One choice of words is written out in every pattern, on consecutive lines, so that patterns never
differ in their words.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib.errors import LitmusError
from lib.templates.lexicon import (
    NUMBERS,
    Deal,
    Event,
    Forms,
    Lexicon,
    Noun,
    Number,
    TemporalAdverb,
    dealer,
    row_of,
    write_rows,
)

COLUMNS = ("pattern", "sent", "sent_alt")
Pair = dict[str, str]

# --- Noun phrases joined by "and" -------------------------------------------------------------------------------------

HUMAN = ("child", "person")
SUBJECTS = (HUMAN, HUMAN, ("animal",), ("text",), ("message",), ("picture",))  # people twice: most verbs are theirs
PREDICATES = ("intransitive", "transitive", "adjective")
LENGTHS = ("short", "long")
COORDINATION_PATTERNS = tuple(
    f"{length}_{first}_{second}" for length in LENGTHS for first in NUMBERS for second in NUMBERS
)


def coordination_frame(lexicon: Lexicon, deal: Deal) -> list[Pair]:
    """One choice of words for ``The king and the queen sing`` in both lengths and in all numbers of the two nouns.

    The verb is plural in every right sentence and singular in every wrong one. In the long patterns a relative clause
    follows each noun; none ends in a noun, which the second noun could be joined to (*the note about the road and the
    bridge is long* is good English).
    """
    classes = deal(SUBJECTS)
    first, second = _two(lexicon, deal, "nouns", lambda row: row.class_ in classes, " or ".join(classes))
    verb = row_of(
        lexicon, deal, "predicates", f"predicate for the classes {first.class_} and {second.class_}",
        lambda row: row.kind in PREDICATES and {first.class_, second.class_} <= set(row.subjects),
    )  # fmt: skip
    after_first, after_second = _two(
        lexicon, deal, "modifiers", lambda row: {first.class_, second.class_} <= set(row.nouns), first.class_
    )
    pairs = []
    for length in LENGTHS:
        for first_number in NUMBERS:
            for second_number in NUMBERS:
                subject = (
                    f"the {_of(first, first_number)} {after_first.modifier if length == 'long' else ''} and "
                    f"the {_of(second, second_number)} {after_second.modifier if length == 'long' else ''}"
                )
                pairs.append(_pair(
                    f"{length}_{first_number}_{second_number}",
                    f"{subject} {verb.plural} {verb.rest}", f"{subject} {verb.singular} {verb.rest}",
                ))  # fmt: skip
    return pairs


# --- Tense and the time that an adverb names --------------------------------------------------------------------------

PLACES = ("first", "last")
TENSE_PATTERNS = tuple(
    f"{contrast}_{tense}_{place}"
    for contrast, tenses in (
        ("simple", ("past", "present")), ("will", ("past", "future")), ("auxiliary", ("past", "future"))
    )
    for tense in tenses
    for place in PLACES
)  # fmt: skip


def tense_frame(lexicon: Lexicon, deal: Deal) -> list[Pair]:
    """One choice of words for ``Yesterday the doctor visited the museum`` in every tense, contrast and place of the adverb.

    Contrasts: ``simple``, past against present (*visited, visits*: one word differs); ``will``, past against future
    (*visited, will visit*: the sentences differ in length); ``auxiliary``, the same with *not* (*did, will*: one word
    differs). The adverb alone says which is right: each verb phrase is right beside one adverb and wrong beside another.
    """
    subject = row_of(lexicon, deal, "nouns", "noun of the class child or person", lambda row: row.class_ in HUMAN)
    number: Number = deal(NUMBERS)
    wanted = f"event for the class {subject.class_}"
    event: Event = row_of(lexicon, deal, "events", wanted, lambda row: subject.class_ in row.subjects)
    times = {tense: _adverb(lexicon, deal, tense) for tense in ("past", "present", "future")}
    past, present = f"{event.past} {event.rest}", f"{Forms(event.singular, event.plain).of(number)} {event.rest}"
    plain = f"{event.plain} {event.rest}"
    contrasts = {
        "simple": {"past": past, "present": present},
        "will": {"past": past, "future": f"will {plain}"},
        "auxiliary": {"past": f"did not {plain}", "future": f"will not {plain}"},
    }
    pairs = []
    for contrast, phrases in contrasts.items():
        for tense, right in phrases.items():
            [wrong] = [phrase for other, phrase in phrases.items() if other != tense]
            for place in PLACES:
                sentences = [_placed(place, times[tense].adverb, f"the {_of(subject, number)} {phrase}")
                             for phrase in (right, wrong)]  # fmt: skip
                pairs.append(_pair(f"{contrast}_{tense}_{place}", *sentences))
    return pairs


def _adverb(lexicon: Lexicon, deal: Deal, tense: str) -> TemporalAdverb:
    return row_of(lexicon, deal, "temporal_adverbs", f"adverb of the {tense}", lambda row: row.tense == tense)


def _placed(place: str, adverb: str, clause: str) -> str:
    return f"{adverb} {clause}" if place == "first" else f"{clause} {adverb}"


# --- Both -------------------------------------------------------------------------------------------------------------

MAKERS: dict[str, tuple[Callable[[Lexicon, Deal], list[Pair]], tuple[str, ...]]] = {
    "coordination": (coordination_frame, COORDINATION_PATTERNS),
    "tense": (tense_frame, TENSE_PATTERNS),
}


def sentence_pairs(lexicon: Lexicon, kind: str, pairs: int, seed: int = 0) -> list[Pair]:
    """So many pairs, no two alike, as rows of a sentence-focused file; as many of each pattern.

    ``kind`` is ``"coordination"`` (8 patterns) or ``"tense"`` (12). Raises LitmusError for a number of pairs that the
    patterns do not divide, and for a lexicon with too few words.
    """
    frame_of, patterns = MAKERS[kind]
    if pairs < 1 or pairs % len(patterns):
        raise LitmusError(f"--pairs {pairs}: give a multiple of {len(patterns)}, so that every pattern has as many.")
    deal = dealer(f"{seed} {kind}")
    rows: list[Pair] = []
    seen: set[tuple[str, str]] = set()
    idle = 0
    while len(rows) < pairs:
        frame = frame_of(lexicon, deal)
        keys = {(pair["sent"], pair["sent_alt"]) for pair in frame}
        if not keys & seen:
            seen |= keys
            rows += frame
            idle = 0
        elif (idle := idle + 1) == 1000:
            raise LitmusError(
                f"{lexicon.folder}: these words give no more than about {len(rows)} of {pairs} different pairs; "
                "add words or ask for fewer with --pairs."
            )
    return rows


def write_sentence_pairs(out: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Writes pairs as a sentence-focused file."""
    write_rows(out, COLUMNS, rows)


def without_evidence(pairs: pd.DataFrame, lexicon: Lexicon) -> pd.DataFrame:
    """The same forms in the same sentences, without what decides between them: what a model prefers anyway.

    ``pairs`` as ``lib.formats.read`` reads them. A coordinated subject loses its first noun phrase (*the king and the queen
    sing* becomes *the queen sing*), a tensed sentence its adverb. Pairs whose second noun is plural are left out, since
    there the plural verb stays right, and so are pairs of other patterns. The columns keep their names: ``good`` is what was
    good in the whole sentence.
    """
    adverbs = sorted({row.adverb for row in lexicon.temporal_adverbs}, key=len, reverse=True)
    kept = {*TENSE_PATTERNS, *(pattern for pattern in COORDINATION_PATTERNS if pattern.endswith("_singular"))}
    shorter = pairs[pairs["pattern"].isin(kept)].reset_index(drop=True)
    tensed = shorter["pattern"].isin(TENSE_PATTERNS)
    for column in ("sentence_good", "sentence_bad", "left", "right"):
        shorter[column] = [
            _without_adverb(text, adverbs) if of_tense else text if column == "right" else _without_first(text)
            for text, of_tense in zip(shorter[column], tensed, strict=True)
        ]
    return shorter


def _without_first(text: str) -> str:
    return _capitalised(text.partition(" and ")[2])


def _without_adverb(text: str, adverbs: Sequence[str]) -> str:
    for adverb in adverbs:
        if text.startswith(f"{_capitalised(adverb)} "):
            return _capitalised(text.removeprefix(f"{_capitalised(adverb)} "))
        if f" {text}".endswith(f" {adverb}."):
            return f"{text.removesuffix(f'{adverb}.').rstrip()}."
    return text


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _two(lexicon: Lexicon, deal: Deal, table: str, fits: Callable[[Any], bool], classes: str) -> tuple[Any, Any]:
    """Two different rows of a table that fit."""
    first = row_of(lexicon, deal, table, f"row for {classes}", fits)
    return first, row_of(lexicon, deal, table, f"second row for {classes}", lambda row: fits(row) and row != first)


def _of(noun: Noun, number: Number) -> str:
    return Forms(noun.singular, noun.plural).of(number)


def _pair(pattern: str, right: str, wrong: str) -> Pair:
    return {"pattern": pattern, "sent": sentence(right), "sent_alt": sentence(wrong)}


def sentence(words: str) -> str:
    """Words as a sentence: single spaces, a capital, a full stop."""
    tidy = " ".join(words.split())
    return f"{_capitalised(tidy)}."
