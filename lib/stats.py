"""How sure is it: intervals for proportions and means.

This module fixes which method is used where; the methods are statsmodels' and scipy's wherever these serve.
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

CONFIDENCE = 0.95
RESAMPLES = 1000
MOST_AT_ONCE = 4_000_000  # numbers of draws held at once


class Interval(NamedTuple):
    """A value with its 95 % interval; all NaN where there is nothing to average."""

    value: float
    low: float
    high: float


def proportion(successes: float, n: int) -> Interval:
    """A share of ``n`` trials with its Wilson interval, which stays within 0 and 1 and holds for few trials."""
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return Interval(np.nan, np.nan, np.nan)
    low, high = proportion_confint(successes, n, alpha=1 - CONFIDENCE, method="wilson")
    value = successes / n
    return Interval(value, min(float(low), value), max(float(high), value))  # at 0 and 1 they may miss it by rounding


def clustered_means(
    values: np.ndarray, clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of the columns of ``values`` over its rows, NaN left out, with a bootstrap interval that redraws clusters.

    ``values``: shape (items, columns). ``clusters``: one label an item (its template, its context); items of a cluster are
    drawn together, because they are not independent. None: every item is its own. Returns value, low and high (percentile
    interval, 95 %), each of shape (columns,); value is NaN for a column without a value, low and high are NaN for one with
    values in fewer than two clusters. Resamples in which a column has no value say nothing about it and are left out.
    """
    values = np.asarray(values, dtype=float)
    labels = np.arange(len(values)) if clusters is None else pd.factorize(np.asarray(clusters, dtype=object))[0]
    present = ~np.isnan(values)
    sums = pd.DataFrame(np.where(present, values, 0.0)).groupby(labels).sum().to_numpy()
    counts = pd.DataFrame(present.astype(float)).groupby(labels).sum().to_numpy()
    known = (counts > 0).sum(0) > 1
    low, high = np.full((2, values.shape[1]), np.nan)
    with np.errstate(invalid="ignore"):
        means = sums.sum(0) / counts.sum(0)
        if known.any():
            drawn = _resampled(sums[:, known], counts[:, known], seed)
            low[known], high[known] = np.nanquantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return means, low, high


def _resampled(sums: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
    """The means of ``RESAMPLES`` redraws of the clusters, shape (resamples, columns).

    How often each cluster is drawn is multinomial, so a redraw of all columns is one row of a matrix product. scipy's
    bootstrap copies every cluster for every redraw and column (forty times slower here), and gives no interval at all for
    a column that is without a value in one of its redraws.
    """
    clusters = len(sums)
    random, blocks = np.random.default_rng(seed), 1 + clusters * RESAMPLES // MOST_AT_ONCE
    drawn = []
    for block in np.array_split(np.arange(RESAMPLES), blocks):
        times = random.multinomial(clusters, np.full(clusters, 1 / clusters), size=len(block)).astype(float)
        drawn.append((times @ sums) / (times @ counts))
    return np.concatenate(drawn)


# ---- two models on the same items


def compare_models(right: pd.DataFrame, clusters: Sequence[Hashable] | None = None, seed: int = 0) -> pd.DataFrame:
    """Does one model get more of the same items right than another? One row for each pair of models.

    ``right``: one row an item, one column a model; 1 (right), 0 (wrong) or NaN (no score). An item that one of two models
    has no score for is left out of their comparison. ``clusters``: one label an item, see ``clustered_means``; the McNemar
    test takes items as independent, so where they share templates or contexts the interval is the more careful of the two.

    Columns: ``first``, ``second``; ``n`` items in ``clusters``; ``only_first``, ``only_second``: items that one of them
    alone gets right; ``p_value``: exact McNemar; ``p_holm``: the same, corrected for all rows of the table. How large is the
    effect: ``difference``, share right of the first minus that of the second, with its paired bootstrap interval ``low``,
    ``high``, says what it means in items; ``odds_ratio``, ``only_first`` / ``only_second``, with its exact interval
    ``odds_low``, ``odds_high``, says how lopsided the items are that tell the two apart, however few they are (infinite
    where the second never wins alone, NaN where they never differ). Cohen's g is a function of the odds ratio.
    """
    from scipy.stats import binom
    from statsmodels.stats.proportion import proportion_confint

    pairs, apart = _apart(right)
    table = _differences(pairs, apart, clusters, seed)
    first, second = (apart == 1).sum(0), (apart == -1).sum(0)
    either = first + second
    p_values = np.minimum(1, 2 * binom.cdf(np.minimum(first, second), either, 0.5))  # all at once: McNemar's, exact
    shares = (first / np.maximum(either, 1), *proportion_confint(first, np.maximum(either, 1), 1 - CONFIDENCE, "beta"))
    odds = [np.where(either > 0, _odds(np.asarray(share, dtype=float)), np.nan) for share in shares]
    columns = {
        "only_first": first,
        "only_second": second,
        "odds_ratio": odds[0],
        "odds_low": odds[1],
        "odds_high": odds[2],
    }
    table = table.assign(**columns, p_value=np.where(table["n"] > 0, p_values, np.nan))
    return table.assign(p_holm=holm(table["p_value"]))


def compare_scores(scores: pd.DataFrame, clusters: Sequence[Hashable] | None = None, seed: int = 0) -> pd.DataFrame:
    """Is one model's score higher than another's on the same items? As ``compare_models``, for scores that are no yes or no.

    The test is a paired t test over the means of clusters, as many observations as there are clusters. Columns: ``first``,
    ``second``, ``n``, ``clusters``, ``difference`` (of the means), ``low``, ``high``, ``effect`` (Cohen's d of paired
    observations: mean difference of clusters over its standard deviation), ``p_value``, ``p_holm``.
    """
    from scipy.stats import ttest_1samp

    pairs, apart = _apart(scores)
    table = _differences(pairs, apart, clusters, seed)
    labels = np.arange(len(apart)) if clusters is None else pd.factorize(np.asarray(clusters, dtype=object))[0]
    of_clusters = pd.DataFrame(apart).groupby(labels).mean()
    tests = []
    for column in of_clusters:
        known = of_clusters[column].dropna()
        spread = known.std() if len(known) > 1 else np.nan
        if not spread > 0:
            tests.append([np.nan, 1.0 if len(known) > 1 and known.iloc[0] == 0 else np.nan])
            continue
        tests.append([known.mean() / spread, float(ttest_1samp(known, 0).pvalue)])
    table[["effect", "p_value"]] = pd.DataFrame(tests, columns=["effect", "p_value"])
    return table.assign(p_holm=holm(table["p_value"]))


def beyond_chance(compared: pd.DataFrame) -> pd.Series:
    """Which rows of a comparison to believe: corrected p below 5 %, and an interval over clusters that excludes 0.

    Both are asked for: the McNemar test sees every item as one of its own, the interval does not correct for the family.
    """
    outside = (compared["low"] > 0) | (compared["high"] < 0)
    return (compared["p_holm"] < 1 - CONFIDENCE) & outside


def _apart(table: pd.DataFrame) -> tuple[list[tuple], np.ndarray]:
    """Every pair of columns, and their differences item by item: shape (items, pairs)."""
    values = table.to_numpy(dtype=float, na_value=np.nan)
    chosen = list(combinations(range(values.shape[1]), 2))
    apart = [values[:, one] - values[:, other] for one, other in chosen]
    pairs = [(table.columns[one], table.columns[other]) for one, other in chosen]
    return pairs, np.column_stack(apart) if apart else np.empty((len(table), 0))


def _differences(pairs: list[tuple], apart: np.ndarray, clusters: Sequence[Hashable] | None, seed: int) -> pd.DataFrame:
    """Mean differences with their bootstrap interval, and how many items and clusters stand behind them."""
    difference, low, high = clustered_means(apart, clusters, seed)
    known = ~np.isnan(apart)
    labels = np.arange(len(apart)) if clusters is None else pd.factorize(np.asarray(clusters, dtype=object))[0]
    counted = pd.DataFrame(known).groupby(labels).any().sum()
    columns = {
        "n": known.sum(0),
        "clusters": counted.to_numpy(dtype=int),
        "difference": difference,
        "low": low,
        "high": high,
    }
    return pd.DataFrame(pairs, columns=["first", "second"]).assign(**columns)


def _odds(share: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return share / (1 - share)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """p-values corrected for being a family of comparisons (Holm 1979); NaN stays NaN and is none of the family."""
    from statsmodels.stats.multitest import multipletests

    values = np.asarray(p_values, dtype=float)
    corrected, known = np.full(values.shape, np.nan), ~np.isnan(values)
    if known.any():
        corrected[known] = multipletests(values[known], method="holm")[1]
    return corrected


# ---- what so many items can show


def smallest_visible_difference(n: int, comparisons: int = 1) -> float:
    """The smallest difference between two models that an exact McNemar test on ``n`` items can ever call significant.

    That is when every item that tells the models apart speaks for the same one: with k such items p is 2 / 2^k, so k = 6 is
    the least (5 %, one comparison), and with 34 items a difference under 6/34 = .18 cannot be seen, however it comes about.
    ``comparisons``: size of the family, of which the strictest Holm step is taken. NaN where even all items do not suffice.
    """
    needed = int(np.ceil(np.log2(2 * comparisons / (1 - CONFIDENCE)) - 1e-9))
    return needed / n if n >= needed else np.nan


def power(n: int, only_first: float, only_second: float, comparisons: int = 1) -> float:
    """The probability that an exact McNemar test on ``n`` items sees a difference (p < .05, over ``comparisons``).

    ``only_first``, ``only_second``: the true shares of items that one model alone gets right; their difference is the
    difference between the models. Summed over how many of the ``n`` items tell the two apart, and which way; numbers of
    items that come about less than once in a billion samples are left out.
    """
    from scipy.stats import binom

    apart = only_first + only_second
    if not apart:
        return 0.0
    least, most = binom.ppf([1e-9, 1 - 1e-9], n, apart)
    differing = np.arange(max(least, 0), most + 1)
    level = (1 - CONFIDENCE) / comparisons / 2
    edge = binom.ppf(level, differing, 0.5)  # the most wins of the lesser side that are still significant ...
    edge = np.where(binom.cdf(edge, differing, 0.5) <= level, edge, edge - 1)  # ... which ppf may pass by one
    share = only_first / apart
    seen = binom.cdf(edge, differing, share) + binom.sf(differing - edge - 1, differing, share)
    return float((binom.pmf(differing, n, apart) * seen).sum())


def likely_visible_difference(
    n: int, comparisons: int = 1, only_second: float = 0.05, wanted_power: float = 0.8
) -> float:
    """The smallest difference that a test on ``n`` items finds in four of five samples; NaN where no difference is.

    ``only_second``: the share of items that the weaker model alone gets right; the more there are, the harder it is.
    """
    from scipy.optimize import brentq

    def missing(difference: float) -> float:
        return power(n, only_second + difference, only_second, comparisons) - wanted_power

    largest = 1 - 2 * only_second
    return float(brentq(missing, 1e-6, largest, xtol=1e-3)) if missing(largest) > 0 else np.nan


def power_in_words(n: int, comparisons: int = 1) -> str:
    """What ``n`` items cannot show, as a sentence that stands beside a comparison (see ``likely_visible_difference``)."""
    smallest, likely = smallest_visible_difference(n, comparisons), likely_visible_difference(n, comparisons)
    if np.isnan(smallest):
        return f"With {n:,} items no difference between two models can be told from chance."
    family = "" if comparisons == 1 else f" among {comparisons:,} comparisons"
    sure = "no difference is" if np.isnan(likely) else f"one of {likely:{_digits(likely)}} is"
    return (
        f"With {n:,} items a difference under {smallest:{_digits(smallest)}} cannot be seen{family}; {sure} found in four of "
        "five samples."
    )


def _digits(share: float) -> str:
    """Two decimals, or as many as the first digit that is not zero needs."""
    return ".2f" if share >= 0.01 else ".1g"
