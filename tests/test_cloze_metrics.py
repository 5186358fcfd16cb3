"""Metrics of the psycholinguistic diagnostics by hand, on distributions that a test writes down."""

import numpy as np
import pandas as pd
import pytest
from cloze import SpellingModel, answers_of, item
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import perturb
from lib.cloze import metrics as cloze_metrics
from lib.cloze.answers import ask, kept, place_of, shown, side_by_side, top_predictions
from lib.cloze.items import cloze_quartile
from lib.errors import LitmusError
from lib.stats import proportion

WORDS = ["chess", "golf", "tea", "##s", "other", "oak"]
FLAT = [0.3, 0.2, 0.2, 0.1, 0.1, 0.1]


def model(**contexts) -> SpellingModel:
    """A model of six pieces; each context by its name (underscores are spaces) with six probabilities or a reason."""
    return SpellingModel(WORDS, {name.replace("_", " "): found for name, found in contexts.items()})


def three(name: str, context: str, expected="chess", within="golf", between="tea", **more) -> list[dict]:
    """An inference item."""
    candidates = {"expected": expected, "within": within, "between": between}
    return [item(name, role, context, word, (expected,), **more) for role, word in candidates.items()]


def value(table: pd.DataFrame, **where) -> pd.Series:
    """The one row of a summary where all columns have these values."""
    [found] = [row for _, row in table.iterrows() if all(row[column] == wanted for column, wanted in where.items())]
    return found


def test_answers_hold_ranks_and_places():
    """0.2 comes twice: both share rank 2, and in the worse case both stand at place 3."""
    table = answers_of(model(x=FLAT), *three("0", "x"))
    assert list(table["rank"]) == [1, 2, 2] and list(table["place"]) == [1, 3, 3]
    np.testing.assert_allclose(table["probability"], [0.3, 0.2, 0.2], rtol=1e-6)
    assert list(table["expected_place"]) == [1, 1, 1] and set(table["context_number"]) == {0}
    assert (
        table["top_pieces"][0][:3] == ("chess", "golf", "tea")
        and dict(zip(table["top_pieces"][0], table["top_kinds"][0], strict=True))["##s"] == "piece"
    )
    assert not table["top_tie"].any() and (table["ranks_to"] == np.inf).all()


def test_a_tie_that_leaves_the_list_may_go_on():
    likeliest = np.log([[0.2, 0.1, 0.1], [0.2, 0.1, 0.05]])
    places = place_of(np.array([2.0, 2.0]), np.log([0.1, 0.1]), likeliest)
    assert list(places) == [np.inf, 2]


def test_accuracy_counts_each_distinct_context_once():
    asked = model(x=FLAT, y=[0.1, 0.1, 0.1, 0.4, 0.1, 0.2])
    found = cloze_metrics.accuracy(answers_of(asked, *three("0", "x"), *three("1", "y")), ks=(1, 2, 6))
    assert list(found["n"]) == [2, 2, 2] and list(found["successes"]) == [1, 1, 2]
    assert tuple(found.loc[0, ["value", "low", "high"]]) == pytest.approx(proportion(1, 2))
    assert list(found["metric"]) == ["accuracy@1", "accuracy@2", "accuracy@6"] and list(found["k"]) == [1, 2, 6]


def test_case_01_and_02_a_constant_model_is_right_about_nothing():
    vocabulary = [*WORDS, *(f"w{i}" for i in range(30))]
    table = answers_of(SpellingModel(vocabulary, {"x": [1 / 36] * 36}), *three("0", "x"))
    found = cloze_metrics.accuracy(table)
    assert list(found["value"]) == [0, 0] and list(found["ties"]) == [1, 1]
    compared = cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"])
    sensitivity = cloze_metrics.sensitivity(compared)
    assert list(sensitivity["value"]) == [0, 0] and list(sensitivity["ties"]) == [1, 1]
    assert cloze_metrics.shares(compared, "alike", "alike")["value"][0] == 1


def test_case_12_what_cannot_be_scored_is_in_neither_numerator_nor_denominator():
    asked = model(x=FLAT, y=FLAT, z="too_long")
    items = [*three("0", "x"), *three("1", "y", expected="zzq"), *three("2", "z"), *three("3", "y", within="zzq")]
    table = answers_of(asked, *items)
    found = cloze_metrics.accuracy(table[table["item"].isin(["0", "1", "2"])], ks=(1,)).iloc[0]
    assert (found["n"], found["scored"], found["value"], found["coverage"]) == (3, 1, 1, pytest.approx(1 / 3))
    assert found["reasons"] == "unknown 1, too_long 1"
    compared = cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"])
    sensitivity = value(cloze_metrics.sensitivity(compared), metric="sensitivity")
    assert (sensitivity["n"], sensitivity["scored"], sensitivity["value"]) == (4, 1, 1)
    means = cloze_metrics.mean_probabilities(table[table["item"].isin(["0", "1"])])
    assert value(means, condition="expected")["value"] == pytest.approx(0.3)
    assert value(means, condition="expected")["coverage"] == 0.5


def test_case_13_a_word_of_two_pieces_is_no_target_and_neither_is_its_first_piece():
    table = answers_of(model(x=FLAT), *three("0", "x", expected="chess-other"))
    assert table["reason"][0] == table["expected_reason"][0] == "several_pieces" and np.isnan(table["rank"][0])


def test_a_row_counts_when_one_of_its_expected_words_can_be_scored():
    rows = [item("0", "a", "x", "golf", ("zzq", "tea", "golf")), item("1", "a", "y", "golf", ())]
    found = cloze_metrics.accuracy(answers_of(model(x=FLAT, y=FLAT), *rows), ks=(3,)).iloc[0]
    assert (found["n"], found["scored"], found["successes"]) == (2, 1, 1)
    assert found["reasons"] == "no_expected_word 1"


def test_the_threshold_is_strict_and_in_probability():
    """Differences of .2, .01 (no more than the threshold) and .005, each from what it must beat."""
    asked = model(
        x=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1], y=[0.26, 0.25, 0.1, 0.2, 0.1, 0.09], z=[0.25, 0.1, 0.245, 0.2, 0.1, 0.105]
    )
    table = answers_of(asked, *three("0", "x"), *three("1", "y"), *three("2", "z"))
    compared = cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"], threshold=0.0101)
    assert list(compared["higher"]) == [1, 1, 1] and list(compared["higher_by_threshold"]) == [1, 0, 0]
    assert list(compared["alike"]) == [0, 1, 1]
    np.testing.assert_allclose(compared["margin"], [0.2, 0.01, 0.005], atol=1e-7)


def test_the_expected_word_must_beat_both_others():
    table = answers_of(model(x=[0.2, 0.1, 0.3, 0.2, 0.1, 0.1]), *three("0", "x"))
    compared = cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"])
    assert compared["higher"][0] == 0 and compared["margin"][0] == pytest.approx(-0.1)
    n400 = cloze_metrics.compare(table, ["item"], "role", "within", ["between"])
    assert value(cloze_metrics.sensitivity(n400), metric="sensitivity by threshold")["value"] == 0


def test_kinds_of_items_are_told_apart():
    asked = model(x=FLAT, y=[0.1, 0.2, 0.2, 0.1, 0.1, 0.3])
    table = answers_of(asked, *three("0", "x", constraint="H"), *three("1", "y", constraint="L"))
    found = cloze_metrics.accuracy(table, ks=(1,), by=["constraint"])
    assert value(found, constraint="H")["value"] == 1 and value(found, constraint="L")["value"] == 0
    compared = cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"])
    by = cloze_metrics.sensitivity(compared, ["constraint"])
    assert value(by, constraint="H", metric="sensitivity")["value"] == 1
    means = cloze_metrics.mean_probabilities(table, ["condition", "constraint"])
    assert value(means, condition="expected", constraint="L")["value"] == pytest.approx(0.1)


def roles(context_a: str, context_b: str, number: str = "1", **more) -> list[dict]:
    return [
        item(number, "a", context_a, "chess", ("chess",), **more), item(number, "b", context_b, "chess", ("tea",), **more),
    ]  # fmt: skip


def test_role_pairs_with_both_clozes():
    rows = roles("x", "y")
    rows[0] |= {"cloze": 0.5, "cloze_strict": 0.4}
    rows[1] |= {"cloze": 0.2, "cloze_strict": 0.0}
    table = answers_of(model(x=FLAT, y=[0.295, 0.2, 0.2, 0.1, 0.1, 0.105]), *rows)
    pairs, strict = cloze_metrics.role_pairs(table), cloze_metrics.role_pairs(table, strict=True)
    assert pairs["margin"][0] == pytest.approx(0.005, abs=1e-7) and pairs["alike"][0] == 1
    assert pairs["cloze_difference"][0] == pytest.approx(0.3) and strict["cloze_difference"][0] == 0.4
    assert cloze_metrics.mean_cloze_difference(pairs)["value"][0] == pytest.approx(0.3)
    assert cloze_metrics.mean_margins(pairs)["value"][0] == pytest.approx(0.005, abs=1e-7)


def test_case_11_both_nouns_hidden_make_one_context_and_an_undefined_comparison():
    rows = [*roles("which cat the dog had", "which dog the cat had")]
    hidden = perturb.hide_both(pd.DataFrame(rows)).to_dict("records")
    table = answers_of(model(**{"which one the other had": [0.2, 0.1, 0.4, 0.1, 0.1, 0.1]}), *hidden)
    found = cloze_metrics.sensitivity(cloze_metrics.role_pairs(table)).iloc[0]
    assert found["scored"] == 0 and np.isnan(found["value"]) and found["reasons"] == "identical 1"
    tops = cloze_metrics.tops_of_pairs(table, "a", "b")
    assert np.isnan(tops["same"][0]) and tops["reason"][0] == "identical"
    once, per_row = (cloze_metrics.accuracy(table, ks=(1,), count=c).iloc[0] for c in ("once", "per_row"))
    assert (once["n"], once["successes"]) == (1, 1), "the union of expected words, once"
    assert (per_row["n"], per_row["successes"]) == (2, 1), "as published"


def test_a_part_that_is_missing_or_twice_is_told():
    table = answers_of(model(x=FLAT, y=FLAT), *roles("x", "y"))
    alone = cloze_metrics.compare(table[table["condition"] == "a"].assign(role="a"), ["item"], "role", "a", ["a"])
    assert alone["reason"][0] == "identical"
    with pytest.raises(LitmusError, match="No item has the condition 'c'; there are a, b"):
        cloze_metrics.compare(table, ["item"], "condition", "c", ["b"])
    with pytest.raises(LitmusError, match="Item 1 has the condition 'a' more than once"):
        cloze_metrics.compare(pd.concat([table, table]), ["item"], "condition", "a", ["b"])
    more = answers_of(model(x=FLAT, y=FLAT), *roles("x", "y"), item("2", "a", "x", "chess", ("chess",)))
    assert list(cloze_metrics.compare(more, ["item"], "condition", "a", ["b"])["reason"]) == ["", "missing"]
    with pytest.raises(LitmusError, match="'twice' is no way to count"):
        cloze_metrics.accuracy(table, count="twice")


def test_correlations_are_pearson_and_spearman():
    pairs = pd.DataFrame(
        {"cloze_difference": [0.1, 0.2, 0.3, 0.9, np.nan], "margin": [1.0, 2, 3, 4, 9], "scorable": True}
    )
    found = cloze_metrics.correlations(pairs).set_index("metric")
    by_hand = np.corrcoef([0.1, 0.2, 0.3, 0.9], [1, 2, 3, 4])[0, 1]
    assert found.loc["Pearson", "value"] == pytest.approx(by_hand) and found.loc["Spearman", "value"] == pytest.approx(
        1
    )
    assert (
        list(found["scored"]) == [4, 4] and (found["low"] <= found["value"]).all() and (found["high"] <= 1 + 1e-9).all()
    )
    squares = cloze_metrics.correlations(pairs.assign(margin=[4.0, 1, 2, 0, 0])).set_index("metric")
    assert squares.loc["Spearman", "value"] == pytest.approx(-0.8)  # ranks 1 2 3 4 against 4 2 3 1: 1 - 6 * 18 / 60
    flat = cloze_metrics.correlations(pairs.assign(margin=1.0))
    assert flat["value"].isna().all() and flat["low"].isna().all()


def negation(number: str, subject: str, aff: str = "a", neg: str = "a", licensing: str = "") -> list[dict]:
    """A negation item about chess (true) and tea (false), with the article before each."""
    rows = []
    for truth, polarity, word, before in (
        ("true", "affirmative", "chess", aff), ("false", "negative", "chess", aff),
        ("false", "affirmative", "tea", neg), ("true", "negative", "tea", neg),
    ):  # fmt: skip
        context = f"A {subject} is {'not ' if polarity == 'negative' else ''}{before}"
        right = "chess" if polarity == "affirmative" else "tea"
        more = {"role": truth, "polarity": polarity, "subject": subject, "licensing": licensing}
        rows.append(item(number, f"{truth} {polarity}", context, word, (right,), **more))
    return rows


def test_negation_compares_true_with_false_in_each_polarity():
    asked = model(**{"A x is a": FLAT, "A x is not a": FLAT})
    table = answers_of(asked, *negation("0", "x", licensing="Y"))
    compared = cloze_metrics.compare(table, ["item", "polarity"], "role", "true", ["false"])
    found = cloze_metrics.sensitivity(compared, ["polarity", "licensing"])
    assert value(found, polarity="affirmative", metric="sensitivity")["value"] == 1
    assert value(found, polarity="negative", metric="sensitivity")["value"] == 0
    assert compared["same_context"].all()
    affirmative = table[table["condition"] == "true affirmative"]
    assert cloze_metrics.accuracy(affirmative, ks=(1,))["n"][0] == 1


def test_case_69_candidates_with_contexts_of_their_own_are_flagged():
    contexts = ["A bee is an", "A bee is a", "A bee is not an", "A bee is not a"]
    table = answers_of(model(**dict.fromkeys(contexts, FLAT)), *negation("3", "bee", "an", "a"))
    compared = cloze_metrics.compare(table, ["item", "polarity"], "role", "true", ["false"])
    assert not compared["same_context"].any()
    assert list(compared["context_true"]) == ["A bee is an", "A bee is not a"]
    assert list(compared["context_false"]) == ["A bee is a", "A bee is not an"]


def test_tops_with_and_without_negation_stand_behind_the_same_article():
    other = [0.1, 0.4, 0.2, 0.1, 0.1, 0.1]
    asked = model(**{"A bee is an": FLAT, "A bee is not an": FLAT, "A bee is a": FLAT, "A bee is not a": other,
                     "A x is a": FLAT, "A x is not a": [0.3, 0.3, 0.1, 0.1, 0.1, 0.1]})  # fmt: skip
    table = answers_of(asked, *negation("3", "bee", "an", "a"), *negation("4", "x"))
    tops = cloze_metrics.tops_under_negation(table)
    assert list(tops["item"]) == ["3", "3", "4"] and list(tops["same"][:2]) == [1, 0]
    assert list(tops["top_second"][:2]) == ["chess", "golf"] and list(tops["tie"]) == [False, False, True]
    assert list(tops["changed"][:2]) == [0, 1]


def test_errors_that_repeat_the_subject_noun():
    """The first is right, the second repeats its noun, the third errs in another way."""
    contexts = {"A tall Golf is a": [0.1, 0.4, 0.2, 0.1, 0.1, 0.1], "A tea is a": [0.1, 0.4, 0.2, 0.1, 0.1, 0.1],
                "A x is a": FLAT}  # fmt: skip
    negative = {name.replace("is", "is not"): found for name, found in contexts.items()}
    rows = [*negation("0", "x"), *negation("1", "tall Golf"), *negation("2", "tea")]
    table = cloze_metrics.subject_repeats(answers_of(model(**contexts, **negative), *rows))
    assert list(table["item"]) == ["1", "2"] and list(table["repeats"]) == [1, 0]
    assert cloze_metrics.shares(table, "repeats", "repeats the subject")["value"][0] == 0.5


def test_articles_before_the_likeliest_words():
    """``oak`` starts with a vowel, and ``##s`` is no word."""
    asked = model(**{"A x is a": [0.1, 0.1, 0.1, 0.2, 0.1, 0.4], "A x is not a": FLAT})
    found = cloze_metrics.articles(answers_of(asked, *negation("0", "x")), k=2)
    assert list(found["piece"]) == ["oak", "##s", "chess", "golf"]
    np.testing.assert_array_equal(found["respected"], [0, np.nan, 1, 1])
    assert cloze_metrics.shares(found, "respected", "article")["reasons"][0] == "no_word 1"


def test_survival_and_spread_over_draws():
    """Two draws: in one the expected word stays first."""
    contexts = {"a b. x": FLAT, "b a. x": [0.1, 0.4, 0.2, 0.1, 0.1, 0.1]}
    original = three("0", "a b. x", sentence_1="a b.", sentence_2="x")
    drawn = [row | {"draw": draw, "context": context} for draw, context in enumerate(contexts) for row in original]
    before, after = answers_of(model(**contexts), *original), answers_of(model(**contexts), *drawn)
    found = cloze_metrics.survival(before, after, k=1).iloc[0]
    assert (found["before"], found["survives"], found["draws"]) == (1, 0.5, 2) and found["expected"] == ("chess",)
    over = cloze_metrics.over_draws(after, ks=(1,)).set_index("metric").loc["accuracy@1"]
    assert (over["n"], over["draws"], over["value"], over["least"], over["most"]) == (1, 2, 0.5, 0, 1)
    assert over["sd"] == pytest.approx(np.std([0, 1], ddof=1)) and over["coverage"] == 1


def test_over_draws_takes_items_for_trials_however_often_they_are_drawn():
    """Item 0 is right in both draws, item 1 in none, item 2 has no score: one of two, with the interval of two trials."""
    flipped = [0.1, 0.4, 0.2, 0.1, 0.1, 0.1]
    contexts = {"0": FLAT, "1": flipped, "2": FLAT}
    rows = [*three("0", "0"), *three("1", "1"), *(row | {"candidate": "zzq"} for row in three("2", "2"))]
    drawn = answers_of(model(**contexts), *(row | {"draw": draw} for draw in range(2) for row in rows))
    found = cloze_metrics.over_draws(drawn, ks=()).set_index("metric").loc["sensitivity"]
    assert (found["n"], found["draws"], found["value"], found["sd"]) == (3, 2, 0.5, 0)
    assert tuple(found[["value", "low", "high"]]) == pytest.approx(proportion(1, 2)) and found["scored"] == 2
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["reasons"] == "unknown 2" and found["ties"] == 0
    once = cloze_metrics.over_draws(drawn[drawn["draw"] == 0].drop(columns="draw"), ks=()).iloc[0]
    assert once["draws"] == 1 and np.isnan(once["sd"]) and once["value"] == 0.5


def test_the_word_that_carries_an_item():
    """Without "b" the expected word falls from .3 to .1; without "a" it stays; item 1 has no score and is left out."""
    contexts = {
        "A b. x": FLAT,
        "B. x": FLAT,
        "A. x": [0.1, 0.4, 0.2, 0.1, 0.1, 0.1],
        "C d. x": FLAT,
        "D. x": FLAT,
        "C. x": FLAT,
    }
    unscored = [row | {"candidate": "zzq"} for row in three("1", "C d. x", sentence_1="C d.", sentence_2="x")]
    items = pd.DataFrame([*three("0", "A b. x", sentence_1="A b.", sentence_2="x"), *unscored])
    asked = model(**contexts)
    [found] = cloze_metrics.carrying_words(
        ask(asked, items)[0], ask(asked, perturb.leave_out_each(items))[0]
    ).itertuples()
    assert (found.item, found.carried_by) == ("0", "b") and found.loss == pytest.approx(np.log(3), rel=1e-5)


def test_negation_shifts_are_zero_where_the_negation_is_ignored_and_as_needed_where_it_turns_the_preference():
    """chess .3 against tea .2: ignored in item 0, turned around in item 1."""
    turned = [0.2, 0.2, 0.3, 0.1, 0.1, 0.1]
    asked = model(**{"A x is a": FLAT, "A x is not a": FLAT, "A tea is a": FLAT, "A tea is not a": turned})
    table = answers_of(asked, *negation("0", "x"), *negation("1", "tea"))
    compared = cloze_metrics.compare(table, ["item", "polarity"], "role", "true", ["false"])
    found = cloze_metrics.negation_shifts(compared, ["subject"]).set_index("subject")
    gap = np.log(0.3 / 0.2)
    assert found.loc["x", "value"] == pytest.approx(0, abs=1e-6) and found.loc["x", "needed"] == pytest.approx(-2 * gap)
    assert found.loc["tea", "value"] == pytest.approx(-2 * gap) and found.loc["tea", "needed"] == pytest.approx(
        -2 * gap
    )
    both = cloze_metrics.negation_shifts(compared).iloc[0]
    assert (both["n"], both["scored"]) == (2, 2) and both["value"] == pytest.approx(-gap)
    assert both["low"] == pytest.approx(-2 * gap) and both["high"] == pytest.approx(0, abs=1e-6)


def test_answers_are_kept_with_their_perturbation_and_draw():
    items = pd.DataFrame(three("0", "a b. x", sentence_1="a b.", sentence_2="x"))
    shuffled = perturb.shuffle_first(items, draws=3)
    asked = model(**dict.fromkeys(["a b. x", "b a. x", "q"], FLAT))
    answers = ask(asked, items)[0]
    table = kept(answers, {"shuffled": ask(asked, shuffled)[0], "hidden": ask(asked, items.assign(context="q"))[0]})
    assert table.groupby("perturbation", sort=False).size().to_dict() == {"none": 3, "shuffled": 9, "hidden": 3}
    assert table["draw"].isna().groupby(table["perturbation"]).all().to_dict() == {
        "none": True,
        "shuffled": False,
        "hidden": True,
    }
    drawn = table[table["perturbation"] == "shuffled"]
    assert list(drawn["context"]) == list(shuffled["context"]) and list(drawn["draw"]) == list(shuffled["draw"])
    assert set(table["expected"]) == {"chess"} and set(table["top_piece"]) == {"chess"}
    assert table["top_probability"].to_numpy() == pytest.approx(0.3)
    alone = kept(answers)
    assert set(alone["perturbation"]) == {"none"} and alone["draw"].isna().all() and not alone["tie"].any()


def test_top_predictions_show_pieces_for_what_they_are():
    table = answers_of(model(x=[0.2, 0.1, 0.1, 0.4, 0.1, 0.1]), *three("0", "x"))
    found = top_predictions(table, k=2)
    assert list(found["piece"]) == ["-s", "chess"] and list(found["kind"]) == ["piece", "word"]
    assert list(found["expected"]) == [False, True] and list(found["place"]) == [1, 2]
    assert shown("�", "bytes") == "� (part of a character)" and shown("Ġ", "piece") == "Ġ (white space)"
    assert shown(",", "piece") == "," and shown("ed", "piece") == "-ed" and shown("dog", "word") == "dog"


def test_paired_conditions_stand_side_by_side():
    table = answers_of(model(x=FLAT, y=[0.1, 0.1, 0.1, 0.1, 0.1, 0.5]), *roles("x", "y"))
    found = side_by_side(table, ["a", "b"], k=1)
    assert found.iloc[0][["item", "place", "piece (a)", "piece (b)"]].tolist() == ["1", 1, "chess", "oak"]
    assert found["probability (b)"][0] == pytest.approx(0.5)


def test_quartiles_split_a_sensitivity():
    rows = [row | {"expected_cloze": c} for n, c in enumerate([0.1, 0.2, 0.3, 0.4]) for row in roles("x", "y", str(n))]
    table = answers_of(model(x=FLAT, y=[0.1, 0.2, 0.2, 0.1, 0.1, 0.3]), *rows)
    table["cloze_quartile"] = cloze_quartile(table["expected_cloze"])
    found = cloze_metrics.sensitivity(cloze_metrics.role_pairs(table), ["cloze_quartile"])
    assert list(found.loc[found["metric"] == "sensitivity", "n"]) == [1, 1, 1, 1]


def test_nothing_at_all_is_no_number():
    table = answers_of(model(x=FLAT), *three("0", "x"))
    nothing = cloze_metrics.shares(cloze_metrics.subject_repeats(table.assign(condition="expected")), "repeats", "r")
    assert nothing["n"][0] == 0 and nothing[["value", "low", "high", "coverage"]].isna().all(axis=None)


def test_a_summary_for_reading_says_what_is_undefined_and_why():
    table = answers_of(model(x=FLAT, y=FLAT), *three("0", "x"), *three("1", "y", expected="zzq"))
    whole = cloze_metrics.sensitivity(cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"]))
    found = cloze_metrics.for_reading(whole, ["metric"], ["successes"]).loc["sensitivity"]
    low, high = proportion(1, 1)[1:]
    unbroken = {name: text.replace("\N{NO-BREAK SPACE}", " ") for name, text in found.items()}
    assert unbroken == {"value": "1.000", "95 %": f"{low:.2f} to {high:.2f}", "successes": "1",
                               "scored": "1 of 2", "ties": "0", "not scored": "unknown 1"}  # fmt: skip
    nothing = cloze_metrics.for_reading(cloze_metrics.accuracy(table[table["item"] == "1"], (1,))).loc["accuracy@1"]
    assert nothing["value"] == "undefined" and nothing["95 %"] == "" and nothing["scored"].split() == ["0", "of", "1"]
    assert list(cloze_metrics.for_reading(cloze_metrics.mean_probabilities(table))) == ["value", "95 %", "scored"]


def test_choices_are_told():
    _, choices = ask(model(x=FLAT), pd.DataFrame(three("0", "x")), full_stop=False)
    assert choices["full_stop"] == "no" and choices["start_token"] == "never"


weights = st.lists(st.sampled_from([1, 2, 3, 5]), min_size=6, max_size=6)


def shares_of(found: list[int]) -> list[float]:
    return [weight / sum(found) for weight in found]


@settings(deadline=None, max_examples=30)
@given(weights, weights)
def test_accuracy_grows_with_k_and_bounds_hold(first, second):
    asked = model(x=shares_of(first), y=shares_of(second))
    table = answers_of(asked, *three("0", "x"), *three("1", "y"))
    assert (table["place"] >= table["rank"]).all()
    found = cloze_metrics.accuracy(table, ks=range(1, 7))
    assert found["value"].is_monotonic_increasing and found["value"].iloc[-1] == 1
    assert ((found["low"] <= found["value"]) & (found["value"] <= found["high"])).all()


@settings(deadline=None, max_examples=30)
@given(weights)
def test_what_is_higher_one_way_is_not_higher_the_other(found):
    table = answers_of(model(x=shares_of(found)), *three("0", "x"))
    one = cloze_metrics.compare(table, ["item"], "role", "within", ["between"]).iloc[0]
    other = cloze_metrics.compare(table, ["item"], "role", "between", ["within"]).iloc[0]
    assert one["higher"] + other["higher"] + one["tie"] == 1 and one["margin"] == -other["margin"]
    assert one["higher_by_threshold"] <= one["higher"]


# ---- what was judged, in the rows that are written


def test_each_item_has_one_judgement_in_the_rows_that_are_written():
    """Of x chess wins, of y golf ties with it, and z has a word that the model does not know; shuffled rows have none."""
    asked = model(x=FLAT, y=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05], z=FLAT)
    table = answers_of(asked, *three("0", "x"), *three("1", "y"), *three("2", "z", within="yak"))
    compared = cloze_metrics.compare(table, ["item"], "role", "expected", ["within", "between"])
    compared = compared.assign(judgement="expected wins", alternative=compared["candidate_within"])
    rows = cloze_metrics.with_judgement(kept(table, {"shuffled": table}), compared, ["item"], ("role", "expected"))
    assert len(rows) == 18
    judged = rows[rows["judgement"] != ""]
    assert list(judged["candidate"]) == ["chess"] * 3 and set(judged["perturbation"]) == {"none"}
    np.testing.assert_array_equal(judged["correct"], [1, 0, np.nan])
    assert list(judged["alternative"]) == ["golf", "golf", "yak"]
    assert rows.loc[rows["judgement"] == "", "correct"].isna().all()


def test_a_unit_of_two_columns_has_its_own_words():
    rows = [item("0", polarity, polarity, word, ("chess",), polarity=polarity, role=role)
            for polarity in ("yes", "no") for role, word in (("true", "chess"), ("false", "tea"))]  # fmt: skip
    table = answers_of(model(yes=FLAT, no=[0.1, 0.2, 0.3, 0.2, 0.1, 0.1]), *rows)
    compared = cloze_metrics.compare(table, ["item", "polarity"], "role", "true", ["false"])
    compared = compared.assign(judgement="true wins, " + compared["polarity"], alternative=compared["candidate_false"])
    found = cloze_metrics.with_judgement(kept(table), compared, ["item", "polarity"], ("role", "true"))
    assert list(found["judgement"]) == ["true wins, yes", "", "true wins, no", ""]
    assert list(found["correct"].dropna()) == [1, 0]
