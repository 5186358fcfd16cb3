"""Third person forms, and our own verb list."""

import csv
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.paths import DATA
from lib.templates.lexicon import read_lexicon, third_person

# Written by hand: every rule and every exception.
FORMS = """
have has   be is   do does   go goes   undergo undergoes   undo undoes
carry carries   fly flies   try tries   buy buys   obey obeys   survey surveys
watch watches   wish wishes   pass passes   tax taxes   fix fixes   buzz buzzes   waltz waltzes   stomach stomachs
quiz quizzes   bus buses   focus focuses   refocus refocuses   veto vetoes   echo echoes   torpedo torpedoes
radio radios   video videos   tattoo tattoos   boo boos   photo photos   see sees   die dies   ski skis   sing sings
bathe bathes   raze razes   sneeze sneezes   argue argues   ache aches   laugh laughs   taxi taxis
misbehave misbehaves
"""
# Their plain form is also a past tense, so it can follow any subject.
PAST_LIKE = """
put cut let set hit cost read spread shut hurt quit burst cast split bet rid shed thrust upset slit broadcast forecast
beat bid reset saw found lay wound ground bore felt left fell
"""

verbs = list(csv.DictReader((DATA / "verbs.csv").open(encoding="utf-8", newline="")))


@pytest.mark.parametrize(("lemma", "form"), list(zip(FORMS.split()[::2], FORMS.split()[1::2], strict=True)))
def test_case_9_third_person(lemma, form):
    assert third_person(lemma) == form


@given(st.text(string.ascii_lowercase, min_size=3, max_size=12))
def test_third_person_of_any_word_ends_in_s_and_keeps_the_word(lemma):
    form = third_person(lemma)
    assert form != lemma and form.endswith("s")
    assert form.startswith(lemma) or (lemma[-1] == "y" and form == lemma[:-1] + "ies") or lemma == "have"
    assert len(form) - len(lemma) in (1, 2, 3, 0)


def test_the_list_has_the_published_columns_and_enough_verbs():
    assert list(verbs[0]) == ["idx", "sing", "plur", "freq"]
    assert len({row["plur"] for row in verbs}) >= 1500


def test_case_9_no_form_stands_twice_or_in_both_columns():
    singular, plural = [row["sing"] for row in verbs], [row["plur"] for row in verbs]
    assert len(set(singular)) == len(singular)
    assert len(set(plural)) == len(plural)
    assert not set(singular) & set(plural)
    assert len({row["idx"] for row in verbs}) == len(verbs)


def test_every_form_follows_from_its_lemma():
    for row in verbs:
        if row["idx"] == "be":
            assert (row["sing"], row["plur"]) == ("is", "are")
        elif row["idx"] == "be (past)":
            assert (row["sing"], row["plur"]) == ("was", "were")
        else:
            assert (row["sing"], row["plur"]) == (third_person(row["idx"]), row["idx"])
        assert row["plur"].isalpha() and row["plur"].islower() and row["freq"] == "_"


def test_no_plain_form_is_also_a_past_tense():
    lexicon = read_lexicon(DATA / "lexicon")
    plain = {row["plur"] for row in verbs} | {row.plural for row in [*lexicon.predicates, *lexicon.relative_verbs]}
    assert not plain & set(PAST_LIKE.split())


def test_the_lexicon_conjugates_by_the_same_rules():
    lexicon = read_lexicon(DATA / "lexicon")
    for row in [*lexicon.predicates, *lexicon.relative_verbs]:
        assert (row.singular, row.plural) in {("is", "are"), ("was", "were"), (third_person(row.plural), row.plural)}
