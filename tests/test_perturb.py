"""Perturbations: what the released code does, but seeded, and the same whoever else is asked."""

import pandas as pd
import pytest
from cloze import item
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import perturb
from lib.cloze.items import item_file, read_inference, read_roles
from lib.errors import LitmusError


def inference(*sentences: tuple[str, str]) -> pd.DataFrame:
    rows = [
        item(str(at), role, f"{first} {second}", role, ("x",), sentence_1=first, sentence_2=second)
        for at, (first, second) in enumerate(sentences) for role in ("expected", "within", "between")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def roles(context: str) -> pd.DataFrame:
    return pd.DataFrame([item("1", "a", context, "x", ("x",))])


def test_case_70_full_stops_are_taken_out_and_one_is_put_back():
    """Anywhere in sentence 1, as in the released code: Mr. loses its own too."""
    table = perturb.shuffle_first(inference(("Mr. Smith ate at 5 p.m.", "He had some")), draws=20)
    assert {frozenset(s.removesuffix(".").split()) for s in table["sentence_1"]} == {
        frozenset(["Mr", "Smith", "ate", "at", "5", "pm"])
    }
    assert table["sentence_1"].str.count(r"\.").eq(1).all() and table["sentence_1"].str.endswith(".").all()
    assert (table["context"] == table["sentence_1"] + " He had some").all()


def test_case_70_shuffles_are_seeded_and_shared_by_the_candidates_of_an_item():
    items = inference(("one two three four five six.", "and so on"))
    table = perturb.shuffle_first(items, draws=50, seed=3)
    assert table.groupby("draw")["context"].nunique().eq(1).all() and sorted(table["draw"].unique()) == list(range(50))
    assert table["context"].nunique() > 40
    pd.testing.assert_frame_equal(table, perturb.shuffle_first(items, draws=50, seed=3))
    assert (table["context"] != perturb.shuffle_first(items, draws=50, seed=4)["context"]).any()


sentences = st.lists(st.text("abc.’ ", min_size=1).filter(lambda s: s.replace(".", "").split()), min_size=1, max_size=4)


@settings(deadline=None, max_examples=30)
@given(sentences, st.integers(0, 5))
def test_a_draw_depends_on_its_sentence_alone_and_keeps_its_words(firsts, seed):
    items = inference(*((first, "a b c") for first in firsts))
    table = perturb.shuffle_first(items, draws=2, seed=seed)
    for first, drawn in zip([*items["sentence_1"]] * 2, table["sentence_1"], strict=True):
        assert sorted(drawn.removesuffix(".").split()) == sorted(first.replace(".", "").split())
    alone = perturb.shuffle_first(items.tail(3), draws=2, seed=seed)
    assert list(alone["context"]) == [*table["context"][len(items) - 3 : len(items)], *table["context"].tail(3)]


def test_the_last_two_words_of_sentence_2_are_kept():
    items = inference(("A b c.", "She was really good at"))
    assert set(perturb.truncate_second(items)["context"]) == {"A b c. good at"}
    both = perturb.truncate_second(perturb.shuffle_first(items, draws=3))
    assert both["sentence_2"].eq("good at").all() and both["draw"].nunique() == 3
    assert list(both["sentence_1"]) == list(perturb.shuffle_first(items, draws=3)["sentence_1"])
    assert items["sentence_2"][0] == "She was really good at", "the items given stay as they are"


def test_each_word_is_left_out_once():
    items = inference(("The dog, alone, barked!”", "So he"))
    table = perturb.leave_out_each(items)
    first = table[table["role"] == "expected"]
    assert list(first["sentence_1"]) == [
        "Dog, alone, barked!”",
        "The alone, barked!”",
        "The dog, barked!”",
        "The dog, alone!”",
    ]
    assert list(first["left_out"]) == ["The", "dog", "alone", "barked"] and list(first["draw"]) == [0, 1, 2, 3]
    assert (table["context"] == table["sentence_1"] + " So he").all() and len(table) == 12
    with pytest.raises(LitmusError, match="Item 1 has no sentence_1"):
        perturb.leave_out_each(roles("the cat had"))


def test_generic_nouns():
    items = roles("The boss forgot which theatre manager the therapist's aunt had")
    assert perturb.hide_object(items)["context"][0] == "The boss forgot which one the therapist's aunt had"
    assert perturb.hide_subject(items)["context"][0] == "The boss forgot which theatre manager the other had"
    assert perturb.hide_both(items)["context"][0] == "The boss forgot which one the other had"
    both = perturb.hide_subject(perturb.hide_object(items))
    assert both["context"][0] == perturb.hide_both(items)["context"][0]


def test_what_cannot_be_perturbed_is_told():
    with pytest.raises(LitmusError, match="Item 1: 'the cat had' holds no 'which"):
        perturb.hide_object(roles("the cat had"))
    with pytest.raises(LitmusError, match="Item 1 has no sentence_1"):
        perturb.shuffle_first(roles("the cat had"))
    with pytest.raises(LitmusError, match="Item 1 has no sentence_2"):
        perturb.truncate_second(roles("the cat had"))
    with pytest.raises(LitmusError, match="0 draws make no sense"):
        perturb.shuffle_first(inference(("A b.", "c d")), draws=0)


def test_published_and_own_pairs_become_one_context_each(datasets):
    for folder in (datasets, None):
        items = read_roles(item_file("roles", folder))
        hidden = perturb.hide_both(items)
        assert hidden.groupby("item")["context"].nunique().eq(1).all() and hidden["context"].nunique() == 44
        assert perturb.hide_object(items)["context"].nunique() == perturb.hide_subject(items)["context"].nunique() == 88
        inference = read_inference(item_file("inference", folder))
        assert perturb.truncate_second(inference)["sentence_2"].str.split().str.len().eq(2).all()
