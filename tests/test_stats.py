"""Intervals: by hand, against closed cases, and by how often they hold what they should."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, bootstrap, ttest_rel
from statsmodels.stats.contingency_tables import mcnemar

from lib import stats
from lib.stats import (
    beyond_chance,
    clustered_means,
    compare_models,
    compare_scores,
    holm,
    likely_visible_difference,
    power,
    power_in_words,
    proportion,
    smallest_visible_difference,
)

pytestmark = pytest.mark.filterwarnings("error")


# ---- proportions


def test_wilson_by_hand():
    """p = 8/10, z = 1.959964: centre (p + z²/20)/(1 + z²/10) = .7167, half (z √(p(1 - p)/10 + z²/400))/(1 + z²/10) = .2266."""
    found = proportion(8, 10)
    assert found.value == 0.8
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@pytest.mark.parametrize(("successes", "low", "high"), [(0, 0, 0.2775), (10, 0.7225, 1)])
def test_wilson_stays_within_0_and_1_and_has_width_at_the_ends(successes, low, high):
    """At the ends z²/(n + z²) = 3.8415/13.8415 = .2775 remains."""
    found = proportion(successes, 10)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_nothing_tried_has_no_proportion():
    assert np.isnan(proportion(0, 0)).all()


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_mirrors_and_narrows_with_n(case):
    successes, n = case
    found, mirror, more = proportion(successes, n), proportion(n - successes, n), proportion(10 * successes, 10 * n)
    assert (mirror.low, mirror.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-12)
    assert found.low <= found.value <= found.high
    assert more.high - more.low < found.high - found.low


# ---- means


def test_two_clusters_by_hand():
    """Clusters of mean 0 (3 items) and 1 (1 item): redraws give 0, 1/4 and 1, with probabilities 1/4, 1/2 and 1/4."""
    value, low, high = clustered_means(np.array([[0.0], [0], [0], [1]]), ["a", "a", "a", "b"])
    assert (value[0], low[0], high[0]) == (0.25, 0, 1)


def test_redrawn_clusters_have_their_multinomial_shares():
    """How often the two clusters above are drawn, out of 1,000: each within five standard deviations."""
    drawn = stats._resampled(np.array([[0.0], [1]]), np.array([[3.0], [1]]), seed=0)[:, 0]
    values, times = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0, 0.25, 1]
    assert (abs(times - [250, 500, 250]) < 80).all()


def test_items_of_their_own_agree_with_scipy():
    values = np.random.default_rng(0).random((200, 3))
    value, low, high = clustered_means(values)
    found = bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1))
    np.testing.assert_allclose(value, values.mean(0))
    width = found.confidence_interval.high - found.confidence_interval.low
    assert (abs(low - found.confidence_interval.low) < 0.1 * width).all()
    assert (abs(high - found.confidence_interval.high) < 0.1 * width).all()


def test_alike_items_of_a_cluster_count_as_one_draw():
    """Fifty copies of each of 20 values say no more than the 20 values; taken as 1,000 items they would seem to."""
    values = np.random.default_rng(0).random(20)
    copies, labels = np.repeat(values, 50)[:, None], np.repeat(np.arange(20), 50)
    alone, clustered, careless = (
        clustered_means(*given) for given in ((values[:, None],), (copies, labels), (copies,))
    )
    np.testing.assert_allclose(clustered, alone)
    width, careless_width = (high - low for _, low, high in (clustered, careless))
    assert careless_width == pytest.approx(width / np.sqrt(50), rel=0.1)


def test_columns_are_on_their_own_and_missing_values_left_out():
    """Half of the second column is missing at random; a third without any value; a fourth with one value only."""
    random = np.random.default_rng(0)
    values = random.random((100, 4))
    values[::2, 1], values[:, 2], values[1:, 3] = np.nan, np.nan, np.nan
    value, low, high = clustered_means(values)
    np.testing.assert_allclose(value, [values[:, 0].mean(), values[1::2, 1].mean(), np.nan, values[0, 3]])
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, False, True, True]
    assert high[1] - low[1] > 1.2 * (high[0] - low[0])  # half as many values: about 1.4 times as wide
    for column in (0, 1):
        alone = clustered_means(values[:, [column]])
        np.testing.assert_allclose([value[column], low[column], high[column]], np.ravel(alone))


def test_a_column_with_few_values_still_has_an_interval():
    """Two values in 100 rows: one redraw in seven has neither of them, and says nothing about their mean."""
    values = np.full((100, 1), np.nan)
    values[:2, 0] = 0, 1
    value, low, high = clustered_means(values)
    assert (value[0], low[0], high[0]) == (0.5, 0, 1)


def test_equal_values_have_an_interval_without_width():
    assert np.ravel(clustered_means(np.ones((10, 1)))).tolist() == [1, 1, 1]


@pytest.mark.parametrize("values", [np.array([[0.2], [0.4]]), np.array([[np.nan], [0.3]])])
def test_one_cluster_says_nothing_about_others(values):
    value, low, high = clustered_means(values, ["same", "same"])
    assert value[0] == pytest.approx(0.3) and np.isnan([low[0], high[0]]).all()


def test_no_rows_no_means():
    found = clustered_means(np.empty((0, 2)))
    assert np.isnan(found).all() and np.shape(found) == (3, 2)


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    values = np.random.default_rng(0).random((50, 1))
    first, again, other = (np.ravel(clustered_means(values, seed=seed)) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_many_clusters_are_drawn_in_blocks_that_together_are_all(monkeypatch):
    values = np.random.default_rng(0).random((40, 2))
    whole = stats._resampled(values, np.ones((40, 2)), seed=0)
    monkeypatch.setattr(stats, "MOST_AT_ONCE", 1500)
    np.testing.assert_allclose(stats._resampled(values, np.ones((40, 2)), seed=0), whole)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1) | st.just(np.nan), min_size=1, max_size=20), st.integers(0, 5))
def test_intervals_lie_within_the_values_and_around_the_mean_of_what_is_there(listed, seed):
    [value], [low], [high] = clustered_means(np.array(listed)[:, None], seed=seed)
    known = [number for number in listed if number == number]
    assert np.isnan(value) == (not known)
    assert np.isnan(low) == np.isnan(high) == (len(known) < 2)
    if len(known) > 1:
        assert min(known) - 1e-9 <= low <= high <= max(known) + 1e-9
        assert value == pytest.approx(np.mean(known))


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says():
    """300 samples of 30 clusters of 5 items that share their cluster's level; true mean 0.

    The percentile interval is a little narrow with 30 clusters: about 93 %. Items drawn singly would give about 60 %.
    """
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 5)
    samples = [random.normal(size=30)[labels, None] + random.normal(scale=0.5, size=(150, 1)) for _ in range(300)]
    held = {}
    for name, clusters in (("clustered", labels), ("careless", None)):
        intervals = [clustered_means(sample, clusters, seed) for seed, sample in enumerate(samples)]
        held[name] = np.mean([low[0] <= 0 <= high[0] for _, low, high in intervals])
    assert 0.89 <= held["clustered"] <= 0.98
    assert held["careless"] < 0.75


# ---- two models on the same items


def compare_paired(first, second, clusters=None, seed=0):
    """The one row of a comparison of two models."""
    right = pd.DataFrame({"one": first, "other": second}, dtype=float)
    return next(compare_models(right, clusters, seed).itertuples(index=False))


def test_two_models_by_hand():
    """8 items: both right 3, only the first 4, only the second 0, both wrong 1; p = 2 * (1/2)^4 = .125."""
    found = compare_paired([1, 1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0, 0])
    assert (found.n, found.only_first, found.only_second) == (8, 4, 0)
    assert found.difference == 0.5 and found.odds_ratio == np.inf
    assert found.odds_low == pytest.approx(0.025**0.25 / (1 - 0.025**0.25)) and found.odds_high == np.inf
    assert found.p_value == pytest.approx(0.125)
    assert 0 < found.low < 0.5 < found.high < 1


def test_discordant_items_decide_and_not_the_others_case_90():
    """15 against 3 items of 220 that tell two models apart: 2 * P(X <= 3 | 18, 1/2) = 2 * 988 / 2^18 = .00754.

    The two shares (.75 and .695) have Wilson intervals that overlap widely.
    """
    first = [1] * 15 + [0] * 3 + [1] * 150 + [0] * 52
    second = [0] * 15 + [1] * 3 + [1] * 150 + [0] * 52
    found = compare_paired(first, second)
    assert found.p_value == pytest.approx(2 * 988 / 2**18)
    assert found.low > 0
    assert proportion(165, 220).low < proportion(153, 220).high


def test_an_item_without_a_score_of_one_model_is_no_item_of_the_comparison():
    found = compare_paired([1, np.nan, 0, 1], [0, 1, np.nan, 1])
    assert (found.n, found.only_first, found.only_second) == (2, 1, 0)
    nothing = compare_paired([np.nan], [1])
    assert nothing.n == 0 and np.isnan([nothing.difference, nothing.p_value, nothing.p_holm]).all()


def test_models_that_never_differ_show_no_difference():
    found = compare_paired([1, 0, 1], [1, 0, 1])
    assert (found.difference, found.p_value) == (0, 1)
    assert np.isnan([found.odds_ratio, found.odds_low, found.odds_high]).all()


def test_odds_of_the_items_that_tell_two_models_apart_by_hand():
    """6 against 2: odds 3; the exact interval of 6/8 is .3491 to .9681 (Clopper and Pearson), as odds .536 to 30.4."""
    found = compare_paired([1] * 6 + [0] * 2 + [1] * 5, [0] * 6 + [1] * 2 + [1] * 5)
    assert found.odds_ratio == pytest.approx(3)
    assert (found.odds_low, found.odds_high) == pytest.approx((0.536, 30.4), rel=0.01)


@given(st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=25)
def test_the_test_is_the_exact_mcnemar_test_of_statsmodels(one, other):
    found = compare_paired([1] * one + [0] * other + [1], [0] * one + [1] * other + [1])
    assert found.p_value == pytest.approx(float(mcnemar([[1, one], [other, 0]], exact=True).pvalue))


def test_clusters_are_counted_and_only_those_with_items_of_both():
    found = compare_paired([1, 0, 1, np.nan], [0, 0, 1, 1], ["a", "a", "b", "c"])
    assert (found.n, found.clusters) == (3, 2)
    assert compare_paired([1, 0], [0, 0]).clusters == 2


def test_a_difference_is_believed_where_test_and_clusters_agree():
    """In 40 items one model is ahead of the other: p is tiny. But all of them belong to one of five templates."""
    first, second = [1] * 40 + [0] * 80, [0] * 120
    spread, one_template = list("abcde") * 24, ["a"] * 40 + list("bcde") * 20
    alone, together = (
        compare_models(pd.DataFrame({"x": first, "y": second}), labels) for labels in (spread, one_template)
    )
    assert alone["p_holm"].item() == together["p_holm"].item() < 1e-9
    assert beyond_chance(alone).tolist() == [True] and beyond_chance(together).tolist() == [False]
    assert beyond_chance(compare_models(pd.DataFrame({"x": [np.nan], "y": [1.0]}))).tolist() == [False]


# ---- two models' scores on the same items


def test_two_models_scores_by_hand():
    """Differences .1, .2, .3: mean .2, deviation .1, so d = 2 and t = 2 sqrt(3), p = .0742 with two degrees of freedom."""
    scores = pd.DataFrame({"one": [0.5, 0.6, 0.7, np.nan], "other": [0.4, 0.4, 0.4, 0.9]})
    [found] = compare_scores(scores).itertuples(index=False)
    assert (found.n, found.clusters) == (3, 3) and found.difference == pytest.approx(0.2)
    assert (found.effect, found.p_value) == (pytest.approx(2), pytest.approx(0.0742, abs=1e-4))
    assert found.p_value == pytest.approx(ttest_rel(scores["one"][:3], scores["other"][:3]).pvalue)
    assert 0.09 < found.low < 0.2 < found.high < 0.31


def test_scores_of_a_cluster_are_one_observation():
    """Ten copies of each of four differences are four observations, in the test as in the interval."""
    random = np.random.default_rng(0)
    few = pd.DataFrame({"one": random.random(4), "other": random.random(4)})
    many, labels = few.loc[np.repeat(few.index, 10)], np.repeat(list("abcd"), 10)
    alone, clustered = compare_scores(few).iloc[0], compare_scores(many, labels).iloc[0]
    for name in ("difference", "low", "high", "effect", "p_value"):
        assert clustered[name] == pytest.approx(alone[name])
    assert clustered["n"] == 40 and clustered["clusters"] == 4


def test_scores_that_never_differ_and_scores_that_are_not_there():
    same = compare_scores(pd.DataFrame({"one": [0.5, 0.5], "other": [0.5, 0.5]})).iloc[0]
    assert (same["difference"], same["p_value"]) == (0, 1) and np.isnan(same["effect"])
    one = compare_scores(pd.DataFrame({"one": [0.5, np.nan], "other": [0.4, 0.5]})).iloc[0]
    assert one["n"] == 1 and np.isnan([one["low"], one["effect"], one["p_value"], one["p_holm"]]).all()


def test_every_pair_of_models_is_one_row_and_all_rows_one_family():
    right = pd.DataFrame({"a": [1] * 12, "b": [1] * 6 + [0] * 6, "c": [0] * 12})
    found = compare_models(right).set_index(["first", "second"])
    assert found.index.tolist() == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["p_value"].tolist() == pytest.approx([2 / 64, 2 / 4096, 2 / 64])
    assert found["p_holm"].tolist() == pytest.approx([2 * 2 / 64, 3 * 2 / 4096, 2 * 2 / 64])
    assert compare_models(right[["a"]]).empty


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=60))
@settings(max_examples=20, deadline=None)
def test_swapping_the_models_mirrors_the_comparison(pairs):
    one, other = zip(*pairs, strict=True)
    there, back = compare_paired(one, other), compare_paired(other, one)
    assert there.difference == pytest.approx(-back.difference)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert there.p_value == pytest.approx(back.p_value)


def test_alike_items_of_a_template_widen_the_interval_of_a_difference():
    first, second = np.repeat([1, 1, 0, 1], 25), np.repeat([0, 1, 0, 1], 25)
    careless, careful = compare_paired(first, second), compare_paired(first, second, np.repeat(list("abcd"), 25))
    assert careless.difference == careful.difference == 0.25
    assert careful.low == 0 < careless.low


def test_holm_by_hand():
    """Sorted .01, .02, .04 times 3, 2, 1: .03, .04, .04; a comparison without a p-value is none."""
    assert holm([0.04, np.nan, 0.01, 0.02]) == pytest.approx([0.04, np.nan, 0.03, 0.04], nan_ok=True)


def test_what_34_items_cannot_show():
    """Six items all one way give p = 2/64 = .031, five give .0625; ten comparisons need 2/2^k < .005, so nine."""
    assert smallest_visible_difference(34) == pytest.approx(6 / 34)
    assert smallest_visible_difference(34, comparisons=10) == pytest.approx(9 / 34)
    assert np.isnan(smallest_visible_difference(5))
    assert power_in_words(34).startswith("With 34 items a difference under 0.18 cannot be seen; one of 0.3")
    assert "0.32 cannot be seen among 45 comparisons" in power_in_words(34, comparisons=45)
    assert "no difference is found" in power_in_words(6) and "no difference between two models" in power_in_words(5)
    assert "under 0.0001 cannot" in power_in_words(60_000)


def test_the_difference_that_is_likely_seen_has_that_power():
    found = likely_visible_difference(34)
    assert power(34, found + 0.05, 0.05) == pytest.approx(0.8, abs=0.01)
    assert likely_visible_difference(34, comparisons=45) > likely_visible_difference(340, comparisons=45)
    assert np.isnan(likely_visible_difference(6))


@pytest.mark.parametrize("comparisons", [1, 2, 10, 32])
def test_the_smallest_visible_difference_is_visible_and_anything_smaller_is_not(comparisons):
    needed = round(34 * smallest_visible_difference(34, comparisons))
    p_values = [compare_paired([1] * k + [0] * (34 - k), [0] * 34).p_value for k in (needed, needed - 1)]
    assert p_values[0] * comparisons <= 0.05 < p_values[1] * comparisons


@pytest.mark.parametrize(
    ("n", "first", "second", "comparisons"), [(34, 0.3, 0.1, 1), (60, 0.5, 0.5, 3), (21, 0.2, 0, 1)]
)
def test_power_is_the_sum_over_every_way_the_items_can_fall(n, first, second, comparisons):
    total = 0.0
    for differing in range(n + 1):
        for wins in range(differing + 1):
            p_value = min(1, 2 * binom.cdf(min(wins, differing - wins), differing, 0.5))
            if p_value * comparisons <= 0.05:
                total += binom.pmf(differing, n, first + second) * binom.pmf(wins, differing, first / (first + second))
    assert power(n, first, second, comparisons) == pytest.approx(total, abs=1e-7)


@pytest.fixture
def uncorrected(monkeypatch):
    """No Holm correction, which is nothing for one comparison, and slow because statsmodels collects garbage each time."""
    monkeypatch.setattr(stats, "holm", np.asarray)


def test_power_by_hand_and_by_simulation(uncorrected):
    """Six items, all of which one model alone gets right: always seen. Half of that share: (1/2)^6."""
    assert power(6, 1, 0) == pytest.approx(1)
    assert power(6, 0.5, 0) == pytest.approx(0.5**6)
    assert power(34, 0, 0) == 0
    assert power(9, 0.9, 0, comparisons=10) == pytest.approx(0.9**9)
    assert power(8, 1, 0, comparisons=10) == 0
    random = np.random.default_rng(0)
    samples = random.choice([1, -1, 0], p=[0.3, 0.1, 0.6], size=(400, 34))
    seen = [compare_paired(sample == 1, sample == -1).p_value < 0.05 for sample in samples]
    assert np.mean(seen) == pytest.approx(power(34, 0.3, 0.1), abs=0.08)


def test_the_paired_interval_holds_the_true_difference_about_as_often_as_it_says(uncorrected):
    random = np.random.default_rng(1)
    held = 0
    for seed in range(300):
        sample = random.choice([1, -1, 0], p=[0.2, 0.1, 0.7], size=80)
        found = compare_paired(sample == 1, sample == -1, seed=seed)
        held += found.low <= 0.1 <= found.high
    assert 0.89 <= held / 300 <= 0.98
