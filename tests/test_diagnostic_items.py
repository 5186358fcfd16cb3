"""Our items for inference, roles and negation: published columns, balance, words of one piece, nothing borrowed."""

import csv
import re
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

from lib.paths import DATA

ITEMS = DATA / "items"
COLUMNS = {
    "inference/inference.tsv": "item context_s1 context_s2 expected within_category between_category constraint",
    "roles/roles.tsv": "item context expected exp_cloze target tgt_cloze tgt_cloze(strict)",
    "negation/simple.tsv": "item context_aff context_neg target_aff target_neg",
    "negation/natural.tsv": "item context_aff context_neg target_aff target_neg licensing",
}
PUBLISHED = {
    "inference/inference.tsv": "CPRAG-102/CPRAG-102.tsv",
    "roles/roles.tsv": "ROLE-88/ROLE-88.tsv",
    "negation/simple.tsv": "NEG-136/NEG-136-SIMP.tsv",
    "negation/natural.tsv": "NEG-136/NEG-136-NAT.tsv",
}
ENDINGS = ("expected", "within_category", "between_category")


def rows(name: str) -> list[dict[str, str]]:
    with (ITEMS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


INFERENCE, ROLES, SIMPLE, NATURAL = (rows(name) for name in COLUMNS)
PAIRS = {row["item"]: row for row in ROLES}
NUMBERS = range(1, 45)


def explanations() -> list[list[str]]:
    return [line.split("\t") for line in (ITEMS / "inference/explanations.tsv").read_text("utf-8").splitlines()]


def with_article(context: str, target: str) -> str:
    return f"{context.replace('(a|an)', 'an' if target[0] in 'aeiou' else 'a')} {target}"


def sentences() -> list[str]:
    """Every item with every word that is scored in its gap, and every explanation."""
    texts = [f"{row['context_s1']} {row['context_s2']} {row[ending]}" for row in INFERENCE for ending in ENDINGS]
    texts += [row["context"] + verb for row in ROLES for verb in [*row["expected"].split("|"), row["target"]]]
    for row in SIMPLE + NATURAL:
        targets = row["target_aff"], row["target_neg"]
        texts += [with_article(row[context], word) for context in ("context_aff", "context_neg") for word in targets]
    return texts + [text for line in explanations() for text in line[1:]]


def five_grams(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+(?:['-]\w+)*", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_the_published_ones_by_a_literal_list(name):
    header = (ITEMS / name).read_text("utf-8").splitlines()[0]
    assert header.split("\t") == COLUMNS[name].split()


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_the_published_ones_by_the_file(name, datasets):
    with (datasets / "lm-diagnostics" / PUBLISHED[name]).open(encoding="utf-8") as file:
        assert (ITEMS / name).read_text("utf-8").splitlines()[0] == file.readline().rstrip("\r\n")


@pytest.mark.parametrize("name", COLUMNS)
def test_plain_text_every_field_filled_but_the_norms(name):
    text = (ITEMS / name).read_text("utf-8")
    assert text.isascii() and '"' not in text and text.endswith("\n")
    for line in text.splitlines():
        fields = line.split("\t")
        assert len(fields) == len(COLUMNS[name].split())
        assert all(field.strip() == field for field in fields if not field.endswith(" had "))
    for row in rows(name):
        assert all(bool(value) != ("cloze" in column) for column, value in row.items())


def test_sizes_and_numbers():
    assert [row["item"] for row in INFERENCE] == [str(i) for i in range(34)]
    assert [row["item"] for row in ROLES] == [f"{i}-{member}" for i in NUMBERS for member in "ba"]
    assert [row["item"] for row in SIMPLE] == [str(i) for i in range(18)]
    assert [row["item"] for row in NATURAL] == [str(i) for i in range(16)]


def test_inference_every_word_once_in_every_condition():
    expected, within, between = ({row[ending] for row in INFERENCE} for ending in ENDINGS)
    assert expected == within == between and len(expected) == 34
    partner = {row["expected"]: row["within_category"] for row in INFERENCE}
    assert all(partner[partner[word]] == word for word in partner)
    assert all(row["between_category"] not in (row["expected"], partner[row["expected"]]) for row in INFERENCE)


def test_inference_constraint_is_balanced_and_so_are_lengths():
    assert Counter(row["constraint"] for row in INFERENCE) == {"H": 17, "L": 17}
    constraint = {row["expected"]: row["constraint"] for row in INFERENCE}
    assert all(constraint[row["within_category"]] != row["constraint"] for row in INFERENCE)
    for sentence in ("context_s1", "context_s2"):
        high, low = (mean(len(r[sentence].split()) for r in INFERENCE if r["constraint"] == kind) for kind in "HL")
        assert abs(high - low) < 1


def test_inference_no_article_decides_and_no_target_is_given_away():
    for row in INFERENCE:
        words = re.findall(r"[a-z]+", f"{row['context_s1']} {row['context_s2']}".lower())
        assert words[-1] not in ("a", "an")
        assert not {row[ending] for ending in ENDINGS} & set(words), row["item"]
        assert row["context_s1"].endswith(".") and not row["context_s2"].endswith((".", " "))


def test_inference_explains_every_item():
    told = [(item, text, word) for item, text, word, _ in explanations()]
    assert told == [(r["item"], f"{r['context_s1']} {r['context_s2']}", r["expected"]) for r in INFERENCE]
    assert all(len(line[3].split()) >= 10 for line in explanations())


@pytest.mark.parametrize("number", NUMBERS)
def test_roles_swap_two_nouns_and_nothing_else(number):
    a, b = PAIRS[f"{number}-a"], PAIRS[f"{number}-b"]
    main, first, second = re.fullmatch(r"([A-Z].*) which (.+) the (.+) had ", a["context"]).groups()
    assert b["context"] == f"{main} which {second} the {first} had "
    assert a["target"] == b["target"] == a["expected"].split("|")[0]
    assert not set(a["expected"].split("|")) & set(b["expected"].split("|"))


def test_roles_targets_clauses_and_nouns_stand_once():
    contexts = [PAIRS[f"{number}-a"]["context"] for number in NUMBERS]
    clauses, nouns = zip(*(context.removesuffix(" had ").split(" which ") for context in contexts), strict=True)
    assert len(set(clauses)) == len({PAIRS[f"{number}-a"]["target"] for number in NUMBERS}) == 44
    assert len({noun.split()[-1] for pair in nouns for noun in pair.split(" the ")}) == 88


def test_roles_as_many_expected_words_in_a_as_in_b():
    a, b = (mean(len(PAIRS[f"{number}-{x}"]["expected"].split("|")) for number in NUMBERS) for x in "ab")
    assert abs(a - b) < 0.1


@pytest.mark.parametrize("row", SIMPLE + NATURAL, ids=lambda row: row["context_aff"])
def test_negation_adds_a_not_and_nothing_else(row):
    assert row["context_neg"] in (row["context_aff"].replace(" is ", f" {negated} ") for negated in ("is not", "isn't"))
    assert row["target_aff"] != row["target_neg"]


def test_simple_negation_has_the_same_targets_on_both_sides_and_one_article_an_item():
    true, false = (Counter(row[target] for row in SIMPLE) for target in ("target_aff", "target_neg"))
    assert true == false and set(true.values()) == {2} and len(true) == 9
    assert all((row["target_aff"][0] in "aeiou") == (row["target_neg"][0] in "aeiou") for row in SIMPLE)
    assert sum(row["target_aff"][0] in "aeiou" for row in SIMPLE) == 4
    assert all(row["context_aff"].endswith(" is (a|an)") for row in SIMPLE)
    assert len({row["context_aff"] for row in SIMPLE}) == 18


def test_natural_negation_crosses_opposites_direction_and_licensing():
    cells = {(row["target_aff"], row["target_neg"], row["licensing"]) for row in NATURAL}
    opposites = {frozenset(cell[:2]) for cell in cells}
    assert len(opposites) == 4 and cells == {
        (*o, kind) for p in opposites for o in (tuple(p), tuple(p)[::-1]) for kind in "YN"
    }
    licensed, unlicensed = (mean(len(r["context_aff"].split()) for r in NATURAL if r["licensing"] == k) for k in "YN")
    assert abs(licensed - unlicensed) < 0.5


def targets() -> set[str]:
    words = {row[ending] for row in INFERENCE for ending in ENDINGS} | {row["target"] for row in ROLES}
    return words | {row[target] for row in SIMPLE + NATURAL for target in ("target_aff", "target_neg")}


def expected_verbs() -> set[str]:
    return {verb for row in ROLES for verb in row["expected"].split("|")}


def test_every_word_is_one_piece_of_the_masked_vocabulary(masked):
    assert [word for word in sorted(targets() | expected_verbs()) if len(masked.word(word, "middle").ids) != 1] == []


def test_every_target_is_one_piece_of_the_causal_vocabulary(causal):
    """The README of the roles names the expected words that are not; each has another beside it."""
    split = {word for word in targets() | expected_verbs() if len(causal.word(word, "middle").ids) != 1}
    assert split == {"booked", "cheated", "disliked", "insulted", "ridden"}
    assert not split & targets()
    assert all(set(row["expected"].split("|")) - split for row in ROLES)


def published_lines(folder: Path) -> list[str]:
    files = [*(folder / "lm-diagnostics").rglob("*.tsv"), *(folder / "larger-probes").glob("*.txt")]
    assert len(files) == 8
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    simple = [line.split("\t") for line in lines if "(a|an)" in line]
    with_articles = [with_article(row[c], row[t]) for row in simple for c in (1, 2) for t in (3, 4)]
    return lines + with_articles


def test_no_five_words_in_a_row_are_in_a_published_item(datasets):
    theirs = set().union(*map(five_grams, published_lines(datasets)))
    assert ("and", "his", "sister", "often", "spent") in theirs and len(theirs) > 5000
    assert [text for text in sentences() if five_grams(text) & theirs] == []


@pytest.mark.parametrize("folder", ["inference", "roles", "negation"])
def test_every_item_has_a_verdict(folder):
    with (ITEMS / folder / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        verdicts = list(csv.DictReader(file))
    names = {
        "inference": [row["item"] for row in INFERENCE],
        "roles": [row["item"] for row in ROLES],
        "negation": [
            f"{name}-{r['item']}" for name, table in [("simple", SIMPLE), ("natural", NATURAL)] for r in table
        ],
    }
    assert [row["item"] for row in verdicts] == names[folder]
    assert {row["verdict"] for row in verdicts} <= {"good", "mended", "replaced"}
    assert all(row["note"] for row in verdicts if row["verdict"] != "good")
