"""Our own minimal pairs: the published layout, one difference, balance, nothing borrowed."""

import json
import re
from collections import Counter

import pytest

from lib.blimp import FIELDS, OURS, read_paradigm
from lib.paths import DATA

PARADIGMS = sorted(path.stem for path in OURS.glob("*.jsonl"))
REORDERED = {"adjunct_island", "ellipsis_n_bar_1", "left_branch_island_simple_question"}
KEYS = [
    "sentence_good", "sentence_bad", "field", "linguistics_term", "UID", "simple_LM_method", "one_prefix_method",
    "two_prefix_method", "lexically_identical", "pairID",
]  # fmt: skip
PREFIX = ["one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"]
PRONOUNS = {
    "anaphor_gender_agreement": {("himself", "herself"): 20, ("herself", "himself"): 20},
    "principle_A_domain_1": {("him", "himself"): 20, ("her", "herself"): 20},
}


def lines(paradigm: str) -> list[dict]:
    return [json.loads(line) for line in (OURS / f"{paradigm}.jsonl").read_text("utf-8").splitlines()]


ROWS = {paradigm: lines(paradigm) for paradigm in PARADIGMS}


def words(sentence: str) -> list[str]:
    return re.findall(r"\w+(?:['-]\w+)*", sentence.lower())


def five_grams(sentence: str) -> set[tuple[str, ...]]:
    found = words(sentence)
    return {tuple(found[i : i + 5]) for i in range(len(found) - 4)}


def differing(row: dict) -> list[tuple[str, str]]:
    pairs = zip(words(row["sentence_good"]), words(row["sentence_bad"]), strict=True)
    return [(good, bad) for good, bad in pairs if good != bad]


def test_nineteen_paradigms_in_all_four_fields():
    fields = Counter(ROWS[paradigm][0]["field"] for paradigm in PARADIGMS)
    assert fields == {"morphology": 5, "syntax": 7, "semantics": 3, "syntax_semantics": 4} and set(fields) == set(
        FIELDS
    )


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_the_published_layout(paradigm):
    rows = ROWS[paradigm]
    assert [row["pairID"] for row in rows] == [str(i) for i in range(40)]
    for row in rows:
        expected = [*KEYS[:2], *PREFIX, *KEYS[2:]] if row["one_prefix_method"] else KEYS
        assert list(row) == expected and row["UID"] == paradigm
        assert row["lexically_identical"] == (paradigm in REORDERED)
    text = (OURS / f"{paradigm}.jsonl").read_text("utf-8")
    assert text.isascii() and text.endswith("}\n")
    assert (read_paradigm(OURS / f"{paradigm}.jsonl")["excluded"] == "").all()


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_one_difference_and_nothing_else(paradigm):
    for row in ROWS[paradigm]:
        good, bad = row["sentence_good"], row["sentence_bad"]
        assert len(good.split()) == len(bad.split())
        for sentence in (good, bad):
            assert re.fullmatch(r"[A-Z][A-Za-z.' ]+[.?]", sentence) and "  " not in sentence, sentence
        if paradigm in REORDERED:
            assert Counter(words(good)) == Counter(words(bad)) and good != bad
        else:
            assert len(differing(row)) == 1, row
        if row["one_prefix_method"]:
            for which, sentence in (("good", good), ("bad", bad)):
                assert sentence.startswith(f"{row['one_prefix_prefix']} {row[f'one_prefix_word_{which}']}")


def test_no_sentence_stands_twice():
    sentences = [row[which] for rows in ROWS.values() for row in rows for which in ("sentence_good", "sentence_bad")]
    assert len(set(sentences)) == len(sentences) == 2 * 40 * 19


@pytest.mark.parametrize("paradigm", PRONOUNS)
def test_as_many_of_one_kind_as_of_the_other(paradigm):
    assert Counter(differing(row)[0] for row in ROWS[paradigm]) == PRONOUNS[paradigm]


def test_numbers_are_balanced():
    plural = [differing(row)[0][0] == "themselves" for row in ROWS["anaphor_number_agreement"]]
    assert sum(plural) == 20
    goods = [row["sentence_good"] for row in ROWS["determiner_noun_agreement_1"]]
    found = Counter(re.search(r"\b(this|that|these|those)\b", good.lower())[1] for good in goods)
    assert found == {"this": 10, "that": 10, "these": 10, "those": 10}
    # A paradigm in which a word gives the answer away would measure a liking for that word.
    nouns = [differing(row)[0] for row in ROWS["regular_plural_subject_verb_agreement_2"]]
    assert sum(len(good) > len(bad) for good, bad in nouns) == 20


def test_no_five_words_in_a_row_are_in_a_published_pair(datasets):
    published = set()
    for folder in ("blimp", "refining-tse/blimp"):
        for path in sorted((datasets / folder).glob("*.jsonl")):
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                published |= five_grams(row["sentence_good"]) | five_grams(row["sentence_bad"])
    assert len(published) > 200_000
    ours = [row[which] for rows in ROWS.values() for row in rows for which in ("sentence_good", "sentence_bad")]
    assert not [sentence for sentence in ours if five_grams(sentence) & published]


def test_uids_fields_and_phenomena_are_the_published_ones(datasets):
    for paradigm in PARADIGMS:
        with (datasets / "blimp" / f"{paradigm}.jsonl").open(encoding="utf-8") as file:
            published = json.loads(file.readline())
        for key in ("UID", "field", "linguistics_term"):
            assert ROWS[paradigm][0][key] == published[key], paradigm


def test_the_readme_names_every_paradigm():
    text = (DATA / "items" / "minimal_pairs" / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, flags=re.M) == PARADIGMS
