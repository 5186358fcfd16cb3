"""Coordinated subjects and tense: the generators of whole-sentence pairs, and the items made with them."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import formats
from lib.errors import LitmusError
from lib.paths import DATA
from lib.templates.coordination_tense import (
    COORDINATION_PATTERNS,
    MAKERS,
    TENSE_PATTERNS,
    sentence,
    sentence_pairs,
    without_evidence,
    write_sentence_pairs,
)
from lib.templates.lexicon import read_lexicon

LEXICON = DATA / "lexicon"
ITEMS = DATA / "items"
WORDS = read_lexicon(LEXICON)
COUNTS = {"coordination": 320, "tense": 480}
KINDS = sorted(MAKERS)
seeds = st.integers(0, 10_000)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_items_are_what_the_generator_makes(tmp_path, kind):
    write_sentence_pairs(tmp_path / "made.tab", sentence_pairs(WORDS, kind, COUNTS[kind]))
    assert (tmp_path / "made.tab").read_bytes() == (ITEMS / kind / f"{kind}.tab").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_reader_reads_the_items_and_writes_them_back(tmp_path, kind):
    path = ITEMS / kind / f"{kind}.tab"
    pairs = formats.read(path)
    assert set(pairs["format"]) == {"sentence-focused"} and list(pairs.columns[:3]) == ["pattern", "sent", "sent_alt"]
    formats.write(pairs, tmp_path / "again.tab")
    assert (tmp_path / "again.tab").read_bytes() == path.read_bytes()
    one_word = pairs[pairs["good"] != ""]
    differs = {"coordination": 8, "tense": 8}[kind]  # of tense, the four patterns with "will" differ in two words
    assert one_word["pattern"].nunique() == differs
    formats.write(one_word, tmp_path / "words.tab", "word-focused")
    assert formats.read(tmp_path / "words.tab")["sentence_bad"].tolist() == one_word["sentence_bad"].tolist()


@given(st.sampled_from(KINDS), seeds, st.integers(1, 4))
def test_seeded_balanced_and_without_repeats(kind, seed, frames):
    patterns = MAKERS[kind][1]
    rows = sentence_pairs(WORDS, kind, frames * len(patterns), seed)
    assert rows == sentence_pairs(WORDS, kind, frames * len(patterns), seed)
    assert Counter(row["pattern"] for row in rows) == dict.fromkeys(patterns, frames)
    assert len({(row["sent"], row["sent_alt"]) for row in rows}) == len(rows)
    assert rows[: len(patterns)] == sentence_pairs(WORDS, kind, len(patterns), seed)
    for row in rows:
        for text in (row["sent"], row["sent_alt"]):
            assert re.fullmatch(r"[A-Z][a-zA-Z]*( [a-zA-Z]+)*\.", text)
        assert row["sent"] != row["sent_alt"]


GLUE = {"coordination": "the and", "tense": "the will did not"}
TABLES = {"coordination": ("nouns", "predicates", "modifiers"), "tense": ("nouns", "events", "temporal_adverbs")}


@given(st.sampled_from(KINDS), seeds)
def test_every_word_is_from_the_lexicon(kind, seed):
    known = set(GLUE[kind].split())
    for name in TABLES[kind]:
        for row in getattr(WORDS, name):
            for cell in row:
                known |= set(words(cell if isinstance(cell, str) else ""))
    for row in sentence_pairs(WORDS, kind, len(MAKERS[kind][1]), seed):
        assert set(words(row["sent"]) + words(row["sent_alt"])) <= known


@given(seeds)
def test_a_coordinated_subject_is_plural_and_its_verb_alone_differs(seed):
    """A second way: both nouns looked up, the verb found as the only word that differs."""
    number_of = {row.singular: "singular" for row in WORDS.nouns} | {row.plural: "plural" for row in WORDS.nouns}
    subjects: dict[tuple[str, str, str], set[str]] = {}
    for row in WORDS.predicates:
        subjects.setdefault((row.singular, row.plural, row.rest), set()).update(row.subjects)
    for row in sentence_pairs(WORDS, "coordination", 8, seed):
        good, bad = row["sent"].strip(".").split(), row["sent_alt"].strip(".").split()
        [at] = [place for place, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b]
        fitting = subjects[bad[at], good[at], " ".join(good[at + 1 :])]
        length, *numbers = row["pattern"].split("_")
        assert len(numbers) == 2 and good.count("and") == 1
        second = good.index("and") + 2
        nouns = good[1], good[second]
        assert good[second - 1] == "the"
        assert [number_of[noun] for noun in nouns] == numbers
        for noun in nouns:
            [found] = [entry for entry in WORDS.nouns if noun in (entry.singular, entry.plural)]
            assert found.class_ in fitting
        long = [" ".join(good[2 : second - 2]), " ".join(good[second + 1 : at])]
        assert all(long) == any(long) == (length == "long")
        if length == "long":
            assert set(long) <= {modifier.modifier for modifier in WORDS.modifiers} and long[0] != long[1]


def test_no_modifier_ends_in_a_noun_that_and_could_join():
    nouns = {form for row in WORDS.nouns for form in row[:2]}
    for modifier in WORDS.modifiers:
        assert modifier.modifier.split()[0] in ("who", "that")
        assert modifier.modifier.split()[-1] not in nouns


@given(seeds)
def test_the_adverb_agrees_with_the_tense_of_the_right_verb_and_not_of_the_wrong_one(seed):
    """A second way: the tense of each sentence is read off its verb, the adverb's off the lexicon."""
    tense_of = {row.adverb: row.tense for row in WORDS.temporal_adverbs}
    pasts = {row.past for row in WORDS.events}
    number_of = {row.singular: "singular" for row in WORDS.nouns} | {row.plural: "plural" for row in WORDS.nouns}
    presents = {"singular": {row.singular for row in WORDS.events}, "plural": {row.plain for row in WORDS.events}}

    def tense(clause: list[str]) -> str:
        verb, number = clause[2], number_of[clause[1]]
        if verb in ("will", "did"):
            return "future" if verb == "will" else "past"
        return "past" if verb in pasts else "present" if verb in presents[number] else "none"

    for row in sentence_pairs(WORDS, "tense", 12, seed):
        contrast, named, place = row["pattern"].split("_")
        tenses = []
        for text in (row["sent"].strip("."), row["sent_alt"].strip(".")):
            text = text[0].lower() + text[1:]
            ends = (str.startswith, str.endswith)[place == "last"]
            adverb = max((a for a in tense_of if ends(text, a)), key=len)
            assert tense_of[adverb] == named
            clause = text.removeprefix(adverb) if place == "first" else text.removesuffix(adverb)
            tenses.append(tense(clause.split()))
        assert tenses[0] == named and tenses[1] not in (named, "none")
        assert set(tenses) == {"past", "present" if contrast == "simple" else "future"}


def test_one_choice_of_words_stands_in_every_pattern():
    """What is right in one tense is wrong in the other, word for word but for the adverb."""
    rows = {row["pattern"]: row for row in sentence_pairs(WORDS, "tense", 12, seed=3)}
    assert set(rows) == set(TENSE_PATTERNS)
    adverb = {row.adverb for row in WORDS.temporal_adverbs}

    def bare(text: str) -> str:
        text = text.strip(".")
        return text.removesuffix(max((a for a in adverb if text.endswith(a)), key=len))

    for contrast, other in (("simple", "present"), ("will", "future"), ("auxiliary", "future")):
        past, later = rows[f"{contrast}_past_last"], rows[f"{contrast}_{other}_last"]
        assert bare(past["sent"]) == bare(later["sent_alt"]) and bare(past["sent_alt"]) == bare(later["sent"])
    short, long = (sentence_pairs(WORDS, "coordination", 8, seed=3)[COORDINATION_PATTERNS.index(name)]
                   for name in ("short_plural_singular", "long_plural_singular"))  # fmt: skip
    assert set(words(short["sent"])) < set(words(long["sent"]))


def test_without_evidence_by_hand(tmp_path):
    """What a person would strike out, at the target and in the sentences."""
    rows = [
        ("short_singular_singular", "The king and the queen sing.", "The king and the queen sings."),
        ("short_plural_plural", "The kings and the queens sing.", "The kings and the queens sings."),
        (
            "long_plural_singular",
            "The men who came and the boy who left are old.",
            "The men who came and the boy who left is old.",
        ),
        ("simple_past_first", "A week ago the men danced.", "A week ago the men dance."),
        ("simple_past_last", "The men danced a week ago.", "The men dance a week ago."),
        ("will_future_last", "The men will run home next week.", "The men ran home next week."),
        ("auxiliary_future_first", "The day after tomorrow we will not go.", "The day after tomorrow we did not go."),
        ("something else", "Kings and queens sing.", "Kings and queens sings."),
    ]
    write_sentence_pairs(
        tmp_path / "p.tab", [dict(zip(("pattern", "sent", "sent_alt"), row, strict=True)) for row in rows]
    )
    left = without_evidence(formats.read(tmp_path / "p.tab"), WORDS)
    columns = ["sentence_good", "sentence_bad", "left", "good", "bad", "right"]
    assert left[columns].values.tolist() == [
        ["The queen sing.", "The queen sings.", "The queen", "sing", "sings", "."],
        ["The boy who left are old.", "The boy who left is old.", "The boy who left", "are", "is", "old."],
        ["The men danced.", "The men dance.", "The men", "danced", "dance", "."],
        ["The men danced.", "The men dance.", "The men", "danced", "dance", "."],
        ["The men will run home.", "The men ran home.", "", "", "", ""],
        ["We will not go.", "We did not go.", "We", "will", "did", "not go."],
    ]
    assert left["item"].tolist()[:2] == ["short_singular_singular:2", "long_plural_singular:4"]


@given(seeds)
def test_without_evidence_a_tense_and_its_mirror_are_one_pair(seed):
    """Nothing is left to decide between them, so what is right in one is wrong in the other."""
    rows = {row["pattern"]: row for row in sentence_pairs(WORDS, "tense", 12, seed)}
    table = pd.DataFrame([row | dict.fromkeys(("left", "right"), "") for row in rows.values()])
    table = table.rename(columns={"sent": "sentence_good", "sent_alt": "sentence_bad"})
    left = without_evidence(table, WORDS).set_index("pattern")
    for contrast, other in (("simple", "present"), ("will", "future"), ("auxiliary", "future")):
        for place in ("first", "last"):
            past, later = left.loc[f"{contrast}_past_{place}"], left.loc[f"{contrast}_{other}_{place}"]
            assert past["sentence_good"] == later["sentence_bad"] and past["sentence_bad"] == later["sentence_good"]


def test_sentence_by_hand():
    assert sentence("the  king and the queen sing ") == "The king and the queen sing."


def test_the_example_files_hold_the_same_pairs_in_three_formats(tmp_path):
    folder = ITEMS / "formats"
    tables = {path.stem: formats.read(path) for path in sorted(folder.glob("*.tab"))}
    assert {name: set(table["format"]) for name, table in tables.items()} == {
        "original": {"original"}, "sentence_focused": {"sentence-focused"}, "word_focused": {"word-focused"},
    }  # fmt: skip
    columns = ["pattern", "sentence_good", "sentence_bad", "left", "good", "bad", "right"]
    for table in tables.values():
        assert len(table) == 12
        assert table[columns].equals(tables["original"][columns])
    whole = formats.read(ITEMS / "long_distance" / "long_distance.tab")
    assert set(tables["original"]["item"]) < set(whole["item"])
    for name in ("word-focused", "sentence-focused"):
        formats.write(tables["original"], tmp_path / "made.tab", name)
        assert (tmp_path / "made.tab").read_bytes() == (folder / f"{name.replace('-', '_')}.tab").read_bytes()


@pytest.fixture
def lexicon_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(LEXICON, tmp_path / "lexicon"))


BROKEN = {
    "unknown tense": ("temporal_adverbs.csv", "odd,someday\n", "tense is 'odd'; it must be one of past, present, future"),
    "unknown class": ("modifiers.csv", "who left,star\n", "nouns names the class 'star'"),
    "no past": ("events.csv", "go,goes,,home,person\n", "no value for past"),
    "past like the plain form": ("events.csv", "put,puts,put,it there,person\n", "'put' is both the plain and the past"),
    "two words": ("events.csv", "look,looks up,looked,up,person\n", "singular is 'looks up'; it must be a single word"),
    "unknown kind": ("content_words.csv", "pronoun,she,,,,\n", "kind is 'pronoun'"),
    "a verb without forms": ("content_words.csv", "transitive verb,move,moves,,,\n", "'move' is of the kind transitive verb"),
    "an adverb with too many": ("content_words.csv", "adverb,soon,sooner,,,\n", "adverb, whose forms are plain"),
    "a verb like its past": ("content_words.csv", "transitive verb,cut,cuts,cut,cut,cutting\n", "'cut' is both the plain"),
    "sheep": ("content_words.csv", "noun,sheep,sheep,,,\n", "'sheep' is both a singular and a plural form"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_lexicon_is_refused_with_file_and_line(lexicon_copy, name):
    file, row, message = BROKEN[name]
    path = lexicon_copy / file
    text = path.read_text(encoding="utf-8") + row
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LitmusError) as error:
        read_lexicon(lexicon_copy)
    told = str(error.value)
    assert told.startswith(f"{path}, line {len(text.splitlines())}:") and message in told
    assert "\n" not in told and told.endswith(".")


def test_too_few_words_are_told():
    nouns = [row for row in WORDS.nouns if row.singular in ("king", "actor", "artist")]
    events = [row for row in WORDS.events if row.past == "danced"]
    few = WORDS._replace(nouns=nouns, events=events)
    assert len(sentence_pairs(few, "tense", 24)) == 24
    with pytest.raises(LitmusError, match="different pairs; add words or ask for fewer"):
        sentence_pairs(few, "tense", 12 * 2 * 2 * 9 * 2 * 9 * 2)
    with pytest.raises(LitmusError, match=r"nouns\.csv: there is no row for (animal|text|message|picture); add a row"):
        sentence_pairs(few, "coordination", 80)
    with pytest.raises(LitmusError, match="--pairs 10: give a multiple of 8"):
        sentence_pairs(WORDS, "coordination", 10)


def command(*arguments: str | Path) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "lib.templates", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, cwd=DATA.parent)


@pytest.mark.parametrize("kind", KINDS)
def test_command_line(tmp_path, lexicon_copy, kind):
    with (lexicon_copy / "nouns.csv").open("a") as file:
        file.write("zookeeper,zookeepers,person,regular\n")
    run = command(kind, "--out", tmp_path / "a.tab", "--pairs", "24", "--seed", "7", "--lexicon", lexicon_copy)
    assert run.returncode == 0, run.stderr
    rows = sentence_pairs(read_lexicon(lexicon_copy), kind, 24, seed=7)
    assert formats.read(tmp_path / "a.tab")["sent"].tolist() == [row["sent"] for row in rows]
    failed = command(kind, "--out", tmp_path / "b.tab", "--pairs", "25")
    assert failed.returncode == 2 and failed.stderr.startswith("error: --pairs 25: give a multiple of")
    assert failed.stderr.count("\n") == 1 and not (tmp_path / "b.tab").exists()
