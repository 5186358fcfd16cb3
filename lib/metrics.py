"""What is measured: a metric is a function from tables or arrays of log-probabilities to a tidy table.

TSE, EW and MW are from Newman, Ang, Gong and Hewitt (2021), "Refining targeted syntactic evaluation of language models".
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from lib.errors import LitmusError
from lib.scoring import Fills
from lib.stats import clustered_means, proportion

Metric = Literal["EW", "MW"]
Side = Literal["top", "bottom"]
PLURAL, SINGULAR = -2, -1
KIND = ["metric", "side", "cutoff"]  # what makes one curve's point
CHUNK = 64  # contexts whose verb x cutoff tables are held at once


def minimal_pairs(fills: Fills, good: Sequence[str], bad: Sequence[str]) -> pd.DataFrame:
    """TSE, pair by pair: is the right form more probable than the wrong one at its gap?

    Columns: ``log_probability_good``, ``log_probability_bad`` (natural log), ``rank_good``, ``rank_bad``, ``margin`` (their
    difference), ``scorable`` (both forms have a score; the paper's *valid*), ``reason`` (why not), ``tie`` and ``correct``
    (1 or 0, NaN when unscorable; a tie is not correct).
    """
    table = pd.DataFrame({f"log_probability_{which}": fills.at("log_probability", forms).astype(float)
                          for which, forms in (("good", good), ("bad", bad))})  # fmt: skip
    table["rank_good"], table["rank_bad"] = fills.at("rank", good), fills.at("rank", bad)
    table["margin"] = table["log_probability_good"] - table["log_probability_bad"]
    table["scorable"] = table["margin"].notna()
    table["reason"] = [first or second for first, second in zip(fills.reason(good), fills.reason(bad), strict=True)]
    same = table["scorable"] & fills.same(good, bad)  # one word twice, or one to a vocabulary without capitals
    table.loc[same, ["scorable", "reason"]] = [False, "identical"]
    table["tie"] = table["scorable"] & (table["margin"] == 0)
    table["correct"] = np.where(table["scorable"], (table["margin"] > 0).astype(float), np.nan)
    return table


def summarise_pairs(pairs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """TSE of each kind of pair: the mean of ``correct`` over valid rows, repeats included, as in the paper.

    ``pairs`` as from ``minimal_pairs``, with the columns ``by``. Columns: those of ``by``, ``metric``, ``n`` (pairs),
    ``scored``, ``value``, ``low``, ``high`` (Wilson, 95 %), ``ties``, ``coverage`` (share of pairs scored).
    """
    rows = []
    for key, group in pairs.groupby(list(by), sort=False, dropna=False):
        scored = group[group["scorable"]]
        interval = proportion(scored["correct"].sum(), len(scored))
        rows.append([*key, "TSE", len(group), len(scored), *interval, scored["tie"].sum(), len(scored) / len(group)])
    columns = [*by, "metric", "n", "scored", "value", "low", "high", "ties", "coverage"]
    return pd.DataFrame(rows, columns=columns)


def check_scored(pairs: pd.DataFrame) -> None:
    """Raise LitmusError, with the reasons, when not one pair could be scored: there is nothing to average."""
    if not pairs["scorable"].any():
        reasons = ", ".join(f"{times} {reason}" for reason, times in pairs["reason"].value_counts().items())
        raise LitmusError(
            f"None of the {len(pairs)} pairs can be scored by this model ({reasons}); choose other items."
        )


def check_filled(scores: pd.DataFrame) -> None:
    """Raise LitmusError when not one context of ``by_cutoff``'s table has a distribution."""
    if scores["mass_counted"].isna().all():
        raise LitmusError(
            "This model can read none of the contexts (too long, or with special tokens); choose other items."
        )


def wanted_metrics(metric: str, cutoffs_top: Sequence[float]) -> list[Metric]:
    """What the parameter ``metric`` asks for: EW, MW or both, over at least one top cutoff."""
    if metric not in ("EW", "MW", "both"):
        raise LitmusError(f"'{metric}' is no metric over verbs; choose 'EW', 'MW' or 'both'.")
    if not len(cutoffs_top):
        raise LitmusError("cutoffs_top is empty; give at least one, 1.0 for the whole vocabulary.")
    return ["EW", "MW"] if metric == "both" else [metric]  # type: ignore[list-item]


def distinct_contexts(fills: Fills, labels: Sequence[int]) -> pd.DataFrame:
    """The distinct contexts that EW and MW average over, in the order of their first row.

    Columns: ``context`` (row in ``fills``), ``label`` (of its first row, as in the published code: -2 plural, -1
    singular), ``rows`` (how many pairs share it), ``both_labels`` (mistakes of the data: counted, and told).
    """
    rows = pd.DataFrame({"context": fills.context_of, "label": np.asarray(labels, dtype=int)})
    return rows.groupby("context", sort=False).agg(
        label=("label", "first"), rows=("label", "size"), both_labels=("label", lambda found: found.nunique() > 1)
    ).reset_index()  # fmt: skip


def usable_verbs(fills: Fills, verbs: pd.DataFrame) -> pd.DataFrame:
    """``verbs`` (columns ``singular``, ``plural``) with ``usable`` and ``reason``: a lemma needs a score for both forms."""
    reasons = fills.forms["reason_middle"]
    table = verbs.assign(reason=[reasons[s] or reasons[p] for s, p in zip(verbs.singular, verbs.plural, strict=True)])
    return table.assign(usable=table["reason"] == "")


def by_cutoff(
    fills: Fills,
    contexts: pd.DataFrame,
    verbs: pd.DataFrame,
    cutoffs_top: Sequence[float],
    cutoffs_bottom: Sequence[float],
    metrics: Sequence[Metric] = ("EW", "MW"),
) -> pd.DataFrame:
    """EW and MW of every context at every cutoff: one row each, in the order of ``contexts``.

    ``contexts`` as from ``distinct_contexts``; ``verbs`` as from ``usable_verbs``. The cutoffs must be those that ``fills``
    was made with. Columns: ``context``, ``metric``, ``side``, ``cutoff``, ``score`` (NaN where no verb counts: an *invalid*
    context), ``mass_counted`` (probability of both forms of the lemmas that count, 0 where none does).

    EW is the share of counted lemmas whose right form outranks the wrong one. MW is the probability of counted right
    forms over that of all counted forms. Top cutoffs: a lemma counts for EW when either form is inside, for MW each form
    counts when it is itself inside. Bottom cutoffs: a lemma counts when both forms are inside. As the mass rarely lands on
    the cutoff, a value is interpolated between without and with the item that crosses it (paper, section 4).
    """
    usable = _some(verbs[verbs["usable"]])
    sides: dict[Side, np.ndarray] = {"top": np.array(cutoffs_top, float), "bottom": np.array(cutoffs_bottom, float)}
    pieces = []
    for start in range(0, len(contexts), CHUNK):
        chunk = contexts.iloc[start : start + CHUNK]
        values = fills.values[chunk["context"]]
        plural = (chunk["label"] == PLURAL).to_numpy()[:, None]
        forms = [fills.columns(usable[number]) for number in ("singular", "plural")]
        right, wrong = np.where(plural, forms[1], forms[0]), np.where(plural, forms[0], forms[1])
        for side, cutoffs in sides.items():
            if len(cutoffs):
                scores, mass = _scores(values, right, wrong, side, cutoffs, fills.vocabulary_size)
                pieces += [_tidy(chunk["context"], m, side, cutoffs, scores[m], mass) for m in metrics]
    columns = ["context", "metric", "side", "cutoff", "score", "mass_counted"]
    return pd.concat(pieces, ignore_index=True) if pieces else pd.DataFrame(columns=columns)


def summarise_cutoffs(scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """EW and MW at each cutoff: means over contexts, of one template.

    ``scores`` as from ``by_cutoff``. Columns: ``metric``, ``side``, ``cutoff``, ``n`` (contexts), ``unscorable`` (contexts
    without a distribution), ``share_invalid`` (of the others: no verb counts), ``value`` (mean over valid contexts), ``low``,
    ``high`` (bootstrap over contexts, 95 %), ``mass_counted`` (mean over all contexts with a distribution).
    """
    scores = scores.drop_duplicates(["context", *KIND])
    kinds = scores[KIND].drop_duplicates(ignore_index=True)
    wide = scores.pivot(index="context", columns=KIND, values=["score", "mass_counted"])
    in_order = pd.MultiIndex.from_frame(kinds)
    values, mass = (wide[column][in_order].to_numpy(dtype=float) for column in ("score", "mass_counted"))
    filled = ~np.isnan(mass)
    value, low, high = clustered_means(values, seed=seed)
    with np.errstate(invalid="ignore"):
        return kinds.assign(
            n=len(values), unscorable=(~filled).sum(0),
            share_invalid=(np.isnan(values) & filled).sum(0) / filled.sum(0),
            value=value, low=low, high=high,
            mass_counted=np.nansum(mass, axis=0) / filled.sum(0),
        )  # fmt: skip


def by_lemma(verb_table: pd.DataFrame) -> pd.DataFrame:
    """Each lemma over all contexts: are the verbs that a model finds likely the ones it inflects right?

    ``verb_table`` as from ``by_verb``. Columns: ``verb`` (plural form), ``probability`` (mean over contexts of both forms
    together), ``share_right``, ``ties``, ``contexts`` (those where both forms have a score; a lemma without is left out).
    """
    verb_table = verb_table[verb_table["correct"].notna()]
    both = np.exp(verb_table["log_probability_right"]) + np.exp(verb_table["log_probability_wrong"])
    grouped = verb_table.assign(both=both).groupby("plural", sort=False)
    return grouped.agg(
        probability=("both", "mean"), share_right=("correct", "mean"), ties=("tie", "sum"), contexts=("tie", "size")
    ).reset_index(names="verb")  # fmt: skip


def _some(usable: pd.DataFrame) -> pd.DataFrame:
    if usable.empty:
        raise LitmusError("No verb of the list has a score for both forms in this model; choose another verb list.")
    return usable


def _scores(
    values: np.ndarray, right: np.ndarray, wrong: np.ndarray, side: Side, cutoffs: np.ndarray, vocabulary_size: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """EW and MW, and the mass counted, each of shape (contexts, cutoffs), for forms at columns ``right`` and ``wrong``."""
    take = np.take_along_axis
    probability = np.exp(values["log_probability"].astype(float))
    p_right, p_wrong = take(probability, right, 1), take(probability, wrong, 1)
    place = values["rank"] if side == "top" else vocabulary_size - values["rank"] + 1
    right_place, wrong_place = take(place, right, 1), take(place, wrong, 1)
    unscored = np.isnan(p_right + p_wrong)  # one item inside a sentence can be several where it opens one
    right_place[unscored] = wrong_place[unscored] = vocabulary_size + 1
    p_right[unscored] = p_wrong[unscored] = 0
    lemma_place = np.minimum(right_place, wrong_place) if side == "top" else np.maximum(right_place, wrong_place)
    if side == "bottom":
        right_place = wrong_place = lemma_place

    items, below, reached = np.moveaxis(values[side], 2, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(reached > below, (cutoffs - below) / (reached - below), 1.0).clip(0, 1)
    right_forms, wrong_forms = np.stack([p_right, p_wrong], 1)[:, :, None, :].swapaxes(0, 1)
    lemmas = np.stack([np.ones_like(p_right), p_right > p_wrong, p_right + p_wrong], 1)
    ends = []
    for prefix in (items - 1, items):
        counted, right_wins, mass = np.moveaxis(lemmas @ _inside(lemma_place, prefix), 1, 0)
        right_mass = (right_forms @ _inside(right_place, prefix))[:, 0]
        wrong_mass = (wrong_forms @ _inside(wrong_place, prefix))[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            ends.append({"EW": right_wins / counted, "MW": right_mass / (right_mass + wrong_mass), "mass": mass})
    without, with_item = ends
    scores = {metric: _between(without[metric], with_item[metric], share) for metric in ("EW", "MW")}
    mass = np.where(np.isnan(items), np.nan, _between(without["mass"], with_item["mass"], share))
    return scores, mass


def _inside(place: np.ndarray, prefix: np.ndarray) -> np.ndarray:
    """1 where a place lies within a prefix of the sorted vocabulary, else 0: shape (contexts, places, cutoffs)."""
    return (place[:, :, None] <= prefix[:, None, :]).astype(float)


def _between(without: np.ndarray, with_item: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Linear in mass between the two ends; where one is undefined, the other."""
    value = without + share * (with_item - without)
    return np.where(np.isnan(without), with_item, np.where(np.isnan(with_item), without, value))


def _tidy(
    contexts: pd.Series, metric: Metric, side: Side, cutoffs: np.ndarray, scores: np.ndarray, mass: np.ndarray
) -> pd.DataFrame:
    return pd.DataFrame({
        "context": np.repeat(contexts.to_numpy(), len(cutoffs)),
        "metric": metric,
        "side": side,
        "cutoff": np.tile(cutoffs, len(contexts)),
        "score": scores.ravel(),
        "mass_counted": mass.ravel(),
    })  # fmt: skip


def by_verb(fills: Fills, contexts: pd.DataFrame, verbs: pd.DataFrame) -> pd.DataFrame:
    """Every usable lemma in every context: what the means are made of.

    Columns: ``context``, ``singular``, ``plural``, and for the right and the wrong form ``log_probability_right``,
    ``rank_right``, ``cumulative_mass_right``, ``log_probability_wrong``, ...; ``tie``; ``correct`` (1 where the right form is
    strictly more probable, else 0, NaN where a form has no score).
    """
    usable = verbs[verbs["usable"]]
    plural = (contexts["label"] == PLURAL).to_numpy()[:, None]
    forms = [fills.columns(usable[number]) for number in ("singular", "plural")]
    columns = {"right": np.where(plural, forms[1], forms[0]), "wrong": np.where(plural, forms[0], forms[1])}
    table = pd.DataFrame({
        "context": np.repeat(contexts["context"].to_numpy(), len(usable)),
        "singular": np.tile(usable["singular"].to_numpy(), len(contexts)),
        "plural": np.tile(usable["plural"].to_numpy(), len(contexts)),
    })  # fmt: skip
    values = fills.values[contexts["context"]]
    for which, found in columns.items():
        for field in ("log_probability", "rank", "cumulative_mass"):
            table[f"{field}_{which}"] = np.take_along_axis(values[field], found, 1).ravel()
    margin = table["log_probability_right"] - table["log_probability_wrong"]
    return table.assign(tie=margin == 0, correct=(margin > 0).astype(float).where(margin.notna()))
