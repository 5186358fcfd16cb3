"""How sure is it: intervals for proportions and means.

This module fixes which method is used where; the methods are statsmodels' and scipy's wherever these serve.
"""

from collections.abc import Hashable, Sequence
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
