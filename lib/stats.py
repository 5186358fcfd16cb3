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
    test takes items as independent, so where they share templates the interval is the more careful of the two.

    Columns: ``first``, ``second``; ``n`` items; ``only_first``, ``only_second``: items that one of them alone gets right;
    ``difference``: share right of the first minus that of the second, with its paired bootstrap interval ``low``, ``high``;
    ``odds_ratio``: ``only_first`` / ``only_second``, the size of the effect among items that tell the two apart (infinite
    where the second never wins alone, NaN where they never differ); ``p_value``: exact McNemar; ``p_holm``: the same,
    corrected for all rows of the table.
    """
    from statsmodels.stats.contingency_tables import mcnemar

    pairs = list(combinations(right.columns, 2))
    answers = {model: right[model].to_numpy(dtype=float, na_value=np.nan) for model in right}
    apart = np.column_stack([answers[one] - answers[other] for one, other in pairs] or [np.empty((len(right), 0))])
    difference, low, high = clustered_means(apart, clusters, seed)
    counts = [((apart == sign).sum(0)) for sign in (1, -1)]
    table = pd.DataFrame(pairs, columns=["first", "second"]).assign(
        n=(~np.isnan(apart)).sum(0),
        only_first=counts[0],
        only_second=counts[1],
        difference=difference,
        low=low,
        high=high,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        table["odds_ratio"] = counts[0] / counts[1]
    table["p_value"] = [
        float(mcnemar([[0, one], [other, 0]], exact=True).pvalue) if n else np.nan
        for n, one, other in table[["n", "only_first", "only_second"]].itertuples(index=False)
    ]
    return table.assign(p_holm=holm(table["p_value"]))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """p-values corrected for being a family of comparisons (Holm 1979); NaN stays NaN and is none of the family."""
    from statsmodels.stats.multitest import multipletests

    values = np.asarray(p_values, dtype=float)
    corrected, known = np.full(values.shape, np.nan), ~np.isnan(values)
    if known.any():
        corrected[known] = multipletests(values[known], method="holm")[1]
    return corrected


def smallest_visible_difference(n: int, comparisons: int = 1) -> float:
    """The smallest difference between two models that an exact McNemar test on ``n`` items can ever call significant.

    That is when every item that tells the models apart speaks for the same one: with k such items p is 2 / 2^k, so k = 6 is
    the least (5 %, one comparison), and with 34 items a difference under 6/34 = .18 cannot be seen, however it comes about.
    ``comparisons``: size of the family, of which the strictest Holm step is taken. NaN where even all items do not suffice.
    """
    needed = int(np.ceil(np.log2(2 * comparisons / (1 - CONFIDENCE)) - 1e-9))
    return needed / n if n >= needed else np.nan


def power(n: int, only_first: float, only_second: float) -> float:
    """The probability that an exact McNemar test on ``n`` items sees a difference (p < .05).

    ``only_first``, ``only_second``: the true shares of items that one model alone gets right; their difference is the
    difference between the models. Exact: summed over how many of the ``n`` items tell the two apart, and which way.
    """
    from scipy.stats import binom

    apart = only_first + only_second
    if not apart:
        return 0.0
    seen = 0.0
    for differing in range(n + 1):
        wins = np.arange(differing + 1)
        p_values = np.minimum(1, 2 * binom.cdf(np.minimum(wins, differing - wins), differing, 0.5))
        significant = binom.pmf(wins, differing, only_first / apart)[p_values < 1 - CONFIDENCE].sum()
        seen += binom.pmf(differing, n, apart) * significant
    return float(seen)


def power_in_words(n: int, comparisons: int = 1) -> str:
    """What ``n`` items cannot show, as a sentence that stands beside a comparison."""
    smallest = smallest_visible_difference(n, comparisons)
    if np.isnan(smallest):
        return f"With {n} items no difference between two models can be told from chance."
    family = "" if comparisons == 1 else f" in a family of {comparisons} comparisons"
    typical = power(n, 0.15, 0.05)
    return (
        f"With {n} items a difference under {smallest:.2f} cannot be seen{family}; where one model alone gets 15 % of the "
        f"items and the other alone 5 %, a test finds that difference in {typical:.0%} of samples."
    )
