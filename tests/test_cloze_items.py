"""Readers of the psycholinguistic diagnostics: published dialects, our own files, and a sentence for every wrong line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.cloze import items as cloze_items
from lib.cloze.items import article, cloze_quartile, forms, gaps, item_file
from lib.errors import LitmusError
from lib.models import Gap

INFERENCE = "item\tcontext_s1\tcontext_s2\texpected\twithin_category\tbetween_category\tconstraint"
ROLES = "item\tcontext\texpected\texp_cloze\ttarget\ttgt_cloze\ttgt_cloze(strict)"
SIMPLE = "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg"
NATURAL = f"{SIMPLE}\tlicensing"


@pytest.fixture
def file(tmp_path):
    def write(*lines: str) -> Path:
        path = tmp_path / "items.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def test_inference_items_have_three_candidates_each(file):
    table = cloze_items.read_inference(file(INFERENCE, "7\tHe sat down.\tShe took the\tchair\tstool\tlamp\tL"))
    assert list(table["role"]) == list(table["condition"]) == ["expected", "within", "between"]
    assert list(table["candidate"]) == ["chair", "stool", "lamp"]
    assert set(table["context"]) == {"He sat down. She took the"} and set(table["expected"]) == {("chair",)}
    assert set(table["item"]) == {"7"} and set(table["line"]) == {2} and set(table["constraint"]) == {"L"}
    assert table["cloze"].isna().all()


def test_explanations_stand_beside_their_items(file, tmp_path):
    items = cloze_items.read_inference(file(INFERENCE, "7\tHe sat down.\tShe took the\tchair\tstool\tlamp\tL"))
    path = tmp_path / "why.tsv"
    path.write_text("7\tHe sat down. She took the\tchair\tone sits on chairs\n")
    assert list(cloze_items.read_explanations(path, items)["explanation"]) == ["one sits on chairs"] * 3
    for text, wrong in (
        ("7\tHe sat down.\tlamp\tlight", "why.tsv, line 1 explains 'lamp', but item 7 expects 'chair'"),
        ("8\tHe sat down.\tlamp\tlight", "explains no item 7"), ("7\tHe\tchair", "why.tsv, line 1 is not item, context"),
    ):  # fmt: skip
        path.write_text(f"{text}\n")
        with pytest.raises(LitmusError, match=re.escape(wrong)):
            cloze_items.read_explanations(path, items)


def test_role_pairs_with_ties_and_answers_of_several_words(file):
    table = cloze_items.read_roles(
        file(ROLES, "3-b\tthe boy saw which dog the cat had \tchecked in|seen\t0.5\tbitten\t0.1\t0",
             "3-a\tthe boy saw which cat the dog had \tbitten\t\tbitten\t\t")
    )  # fmt: skip
    assert list(table["condition"]) == ["b", "a"] and set(table["item"]) == {"3"}
    assert list(table["expected"]) == [("checked", "seen"), ("bitten",)]
    np.testing.assert_array_equal(table[["expected_cloze", "cloze", "cloze_strict"]], [[0.5, 0.1, 0], [np.nan] * 3])


def test_case_28_spaces_at_the_right_edge_of_a_context_belong_to_the_gap(file):
    """Every context of ROLE-88 ends in a space, which would become a piece of its own in many vocabularies."""
    table = cloze_items.read_roles(file(ROLES, *(f"1-{c}\tthe x had  \ty\t\tz\t\t" for c in "ab")))
    assert gaps(table) == [Gap("the x had", ".")] * 2 and gaps(table, full_stop=False) == [Gap("the x had", "")] * 2


def test_negation_has_four_conditions_in_the_published_order(file):
    table = cloze_items.read_negation(file(NATURAL, "0\tIce is very\tIce isn't very\tcold\thot\tN"))
    assert list(table["condition"]) == ["true affirmative", "false negative", "false affirmative", "true negative"]
    assert list(table["role"]) == ["true", "false", "false", "true"]
    assert list(table["candidate"]) == ["cold", "cold", "hot", "hot"]
    assert list(table["expected"]) == [("cold",), ("hot",), ("cold",), ("hot",)]
    assert list(table["polarity"]) == ["affirmative", "negative"] * 2 and set(table["licensing"]) == {"N"}
    assert set(table["subject"]) == {""} and forms(table) == ["cold", "hot"]


def test_case_69_each_candidate_has_its_own_article_and_context(file):
    table = cloze_items.read_negation(file(SIMPLE, "3\tA bee is (a|an)\tA bee is not (a|an)\tinsect\tbuilding"))
    assert list(table["context"]) == ["A bee is an", "A bee is not an", "A bee is a", "A bee is not a"]
    assert set(table["subject"]) == {"bee"}


def test_case_57_quotation_marks_are_text(file):
    """This dialect knows no quoting: a quotation mark opens nothing, and two of them stay two."""
    row = '0\t"Checkmate," she said.\t“He”\'s ""good"" at\tchess\tgo\tgolf\tH'
    table = cloze_items.read_inference(file(INFERENCE, row, row.replace("0", "1", 1)))
    assert table["context"][0] == '"Checkmate," she said. “He”\'s ""good"" at' and len(table) == 6


def test_probes_come_in_pairs_of_lines(file):
    table = cloze_items.read_probes(file("A cat  is an animal,", "A cat is not a machine ,"), "negation")
    assert list(table["item"]) == ["0", "0"] and list(table["condition"]) == ["affirmative", "negative"]
    assert list(table["context"]) == ["A cat  is an", "A cat is not a"]
    assert list(table["expected"]) == [("animal",), ("machine",)]
    roles = cloze_items.read_probes(file("which cat the dog had bitten,", "which dog the cat had fed,"), "roles")
    assert list(roles["condition"]) == ["a", "b"] and list(roles["polarity"]) == ["", ""]


GOOD_ROLE = "1-a\tthe x had\ty\t\tz\t\t"
WRONG = [
    ("inference", ["item\tcontext_s1"], "line 1 names no column 'context_s2'"),
    ("inference", [INFERENCE, "0\tA.\tB\tc\td"], "line 2 has 5 cells and the header 7"),
    ("inference", [INFERENCE, "0\tA.\tB\tc\td\te\tX"], "line 2: the constraint is 'X'"),
    ("inference", [INFERENCE, "0\tA.\tB\tc c\td\te\tH"], "line 2: 'c c' is not one word"),
    ("inference", [INFERENCE, "0\tA.\t\tc\td\te\tH"], "line 2: the column 'context_s2' is empty"),
    ("inference", [INFERENCE, *["0\tA.\tB\tc\td\te\tH"] * 2], "line 3 gives item 0 (expected) again"),
    ("inference", [INFERENCE], "holds no items"),
    ("roles", [ROLES, "1\tthe x had\ty\t\tz\t\t"], "line 2: '1' is not a pair's number with -a or -b"),
    ("roles", [ROLES, GOOD_ROLE], "line 2: pair 1 has no b"),
    ("roles", [ROLES, GOOD_ROLE, "1-b\tthe x had\ty\t\tw\t\t"], "line 2: pair 1 has two targets, z and w"),
    ("roles", [ROLES, "1-a\tthe x had\ty||v\t\tz\t\t"], "line 2: 'y||v' has an empty answer"),
    ("roles", [ROLES, "1-a\tthe x had\ty\tmany\tz\t\t"], "line 2: the cloze 'many' is no share"),
    ("roles", [ROLES, "1-a\tthe x had\ty\t1.5\tz\t\t"], "line 2: the cloze '1.5' is no share"),
    ("negation", [SIMPLE, "0\tIce isn't\tIce is\tcold\thot"], "line 2: only context_neg may and must hold a negation"),
    ("negation", [SIMPLE, "0\tIce is\tIce is very\tcold\thot"], "line 2: only context_neg may and must hold a negation"),
    ("negation", [SIMPLE, "0\tIce is\tIce is not\tcold\tcold"], "line 2: both targets are 'cold'"),
    ("negation", [SIMPLE, "0\tIce is (a|an) so\tIce is not\tcold\thot"], "line 2: (a|an) stands once, at the end"),
    ("negation", [NATURAL, "0\tIce is\tIce is not\tcold\thot\tmaybe"], "line 2: the licensing is 'maybe'"),
    ("negation probes", ["A cat is an animal"], "line 1: 'A cat is an animal' is not a context, its target and a comma"),
    ("negation probes", ["animal,"], "line 1: 'animal,' is not a context"),
    ("negation probes", ["A cat is an animal,"], "has 1 lines, so one of them has no partner"),
    ("negation probes", ["A cat is a pet,"] * 2, "line 2: this line should be negative"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lines", "sentence"), WRONG, ids=[sentence[:50] for _, _, sentence in WRONG])
def test_every_wrong_file_is_told_in_one_sentence(file, kind, lines, sentence):
    path = file(*lines)
    with pytest.raises(LitmusError, match=re.escape(sentence)) as found:
        if kind == "negation probes":
            cloze_items.read_probes(path, "negation")
        else:
            getattr(cloze_items, f"read_{kind}")(path)
    assert str(path) in str(found.value) and "\n" not in str(found.value)


def test_an_unknown_kind_of_probe_is_refused(file):
    with pytest.raises(LitmusError, match="'roless' is no kind of probe"):
        cloze_items.read_probes(file("x y,"), "roless")


def test_articles_follow_the_letter_but_for_other_sounds():
    for word in ("apple", "insect", "uncle", "hour", "umbrella", "honest"):
        assert article(word) == "an", word
    for word in ("building", "unicorn", "European", "one", "house", "user"):
        assert article(word) == "a", word


def test_quartiles_count_the_bounds_below():
    """Bounds of 0, 1, 2, 3, 4 are 1, 2, 3."""
    np.testing.assert_array_equal(cloze_quartile([0, 1, 2, 3, 4, np.nan]), [1, 1, 2, 3, 4, np.nan])
    np.testing.assert_array_equal(cloze_quartile([np.nan, np.nan]), [np.nan, np.nan])


@pytest.mark.parametrize(("name", "rows"), [
    ("inference", 102), ("roles", 88), ("simple negation", 72), ("natural negation", 64),
])  # fmt: skip
def test_our_own_items_have_the_published_sizes(name, rows):
    reader = {"inference": cloze_items.read_inference, "roles": cloze_items.read_roles}.get(
        name, cloze_items.read_negation
    )
    table = reader(item_file(name))
    assert len(table) == rows and table["cloze"].isna().all() and table["expected_cloze"].isna().all()


def test_the_chosen_file_comes_first_then_the_published_one(datasets, tmp_path):
    assert item_file("roles", datasets, "mine.tsv") == Path("mine.tsv")
    assert item_file("roles", datasets) == datasets / "lm-diagnostics" / "ROLE-88" / "ROLE-88.tsv"
    assert item_file("roles", tmp_path) == item_file("roles")


def test_published_counts(datasets):
    inference = cloze_items.read_inference(item_file("inference", datasets))
    constraints = inference.drop_duplicates("item")["constraint"]
    assert (len(inference), inference["context"].nunique()) == (102, 34)
    assert constraints.value_counts().to_dict() == {"H": 18, "L": 16}
    explained = cloze_items.read_explanations(item_file("explanations", datasets), inference)
    assert explained["explanation"].nunique() == 34 and "checkmate" in explained["explanation"][0]
    roles = cloze_items.read_roles(item_file("roles", datasets))
    assert roles["context"].nunique() == 88 and roles["item"].nunique() == 44
    quartiles = pd.Series(cloze_quartile(roles["expected_cloze"])).value_counts().sort_index()
    assert list(quartiles) == [25, 23, 23, 17]
    simple = cloze_items.read_negation(item_file("simple negation", datasets))
    natural = cloze_items.read_negation(item_file("natural negation", datasets))
    assert (len(simple), len(natural)) == (72, 64)
    assert natural.drop_duplicates("item")["licensing"].value_counts().to_dict() == {"Y": 8, "N": 8}
    assert simple.drop_duplicates("item")["subject"].str.fullmatch(r"\w+").all()


def test_published_traps(datasets):
    inference = cloze_items.read_inference(item_file("inference", datasets))
    assert inference["context"][0].startswith("“Checkmate,” Rosaline") and "couldn’t" in inference["context"][9]
    roles = cloze_items.read_roles(item_file("roles", datasets))
    assert roles["context"].str[0].str.islower().sum() == 76
    assert not roles["context"].str.endswith(" ").any()
    a = roles[roles["condition"] == "a"]
    assert sum(row.candidate not in row.expected for row in a.itertuples()) == 9
    assert roles.loc[roles["item"] == "71", "expected"].iloc[0] == ("worked",)
    simple = cloze_items.read_negation(item_file("simple negation", datasets))
    affirmative = simple[simple["polarity"] == "affirmative"].groupby("item")["context"].nunique()
    assert (affirmative > 1).sum() == 4


@pytest.mark.parametrize(("name", "kind", "lines"), [
    ("NEG-1500-SIMP-GEN", "negation", 1500), ("NEG-1500-SIMP-TEMP", "negation", 1540), ("ROLE-1500", "roles", 1500),
])  # fmt: skip
def test_published_larger_probes(datasets, name, kind, lines):
    table = cloze_items.read_probes(datasets / "larger-probes" / f"{name}.txt", kind)
    assert len(table) == lines and table["condition"].value_counts().nunique() == 1
    assert not table["candidate"].str.contains(r"[,\s]").any()
