"""How sure is it: intervals for proportions and means.

Everything here is scipy's or statsmodels'; this module only fixes which method is used where.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

CONFIDENCE = 0.95
RESAMPLES = 1000


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
    return Interval(successes / n, float(low), float(high))


def clustered_means(
    values: np.ndarray, clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of the columns of ``values`` over its rows, NaN left out, with a bootstrap interval that redraws clusters.

    ``values``: shape (items, columns). ``clusters``: one label an item (its template, its context); items of a cluster are
    drawn together, because they are not independent. None: every item is its own. Returns value, low and high, each of
    shape (columns,), NaN for a column without a value; low and high are NaN too when there is one cluster only.
    """
    from scipy.stats import bootstrap

    values = np.asarray(values, dtype=float)
    labels = np.arange(len(values)) if clusters is None else pd.factorize(np.asarray(clusters, dtype=object))[0]
    present = ~np.isnan(values)
    sums = pd.DataFrame(np.where(present, values, 0.0)).groupby(labels).sum().to_numpy()
    counts = pd.DataFrame(present.astype(float)).groupby(labels).sum().to_numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(0) / counts.sum(0)
        if len(sums) < 2:
            return means, np.full_like(means, np.nan), np.full_like(means, np.nan)
        found = bootstrap(
            (sums, counts),
            lambda s, n, axis: s.sum(axis) / n.sum(axis),
            axis=0,
            paired=True,
            n_resamples=RESAMPLES,
            batch=max(1, int(4e6 // sums.size)),
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    return means, found.confidence_interval.low, found.confidence_interval.high
