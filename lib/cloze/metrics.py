"""Metrics of the psycholinguistic diagnostics: functions from tables to tables.

Accuracy and sensitivity are those of Ettinger (2020), "What BERT is not", sections 5 to 9. ``answers`` is always the table
of ``lib.cloze.answers``. Counts of successes carry Wilson intervals, means and correlations a bootstrap over items, 95 %.
Ties are counted and are no success; what cannot be scored is left out of numerator and denominator, and counted by reason.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from lib.cloze.answers import shown
from lib.cloze.items import article
from lib.errors import LitmusError
from lib.stats import CONFIDENCE, RESAMPLES, clustered_means, proportion

Counting = Literal["once", "per_row"]
THRESHOLD = 0.01
UNBROKEN = "\N{NO-BREAK SPACE}"
BESIDE = ("context", "candidate", "probability", "log_probability", "rank", "cloze", "cloze_strict")


def shares(table: pd.DataFrame, outcome: str, metric: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """How often ``outcome`` (1, 0, or NaN where it is undefined) is 1, for each kind of row.

    ``table`` also has ``tie`` and ``reason`` (why undefined). Columns: those of ``by``, ``metric``, ``n`` (rows), ``scored``,
    ``successes``, ``value``, ``low``, ``high`` (Wilson), ``ties``, ``coverage`` (share scored), ``reasons`` (counted).
    """
    rows = []
    for key, group in _groups(table, by):
        scored = group[group[outcome].notna()]
        successes = int(scored[outcome].sum())
        reasons = Counter(group.loc[group[outcome].isna(), "reason"])
        counted = ", ".join(f"{reason} {times}" for reason, times in reasons.most_common())
        rows.append([*key, metric, len(group), len(scored), successes, *proportion(successes, len(scored)),
                     int(scored["tie"].sum()), _of(len(scored), len(group)), counted])  # fmt: skip
    columns = ["metric", "n", "scored", "successes", "value", "low", "high", "ties", "coverage", "reasons"]
    return pd.DataFrame(rows, columns=[*by, *columns])


def accuracy(
    answers: pd.DataFrame, ks: Sequence[int] = (1, 5), by: Sequence[str] = (), count: Counting = "once"
) -> pd.DataFrame:
    """Accuracy@k: an expected word is among the likeliest k; a row for each kind and k (see ``shares``), with ``k``, ``count``.

    ``count`` ``once`` counts each distinct context once, with all words that any of its rows expects; ``per_row`` counts
    rows as they stand, as published for ROLE-88. For negation give the rows of ``true affirmative`` alone.
    """
    tables = [
        shares(_within(answers, k, by, count), "within", f"accuracy@{k}", by).assign(k=k, count=count) for k in ks
    ]
    return pd.concat(tables, ignore_index=True)


def _within(answers: pd.DataFrame, k: int, by: Sequence[str], count: Counting) -> pd.DataFrame:
    """One row a question: ``within`` (1, 0, NaN) whether an expected word is among the likeliest k, ``tie``, ``reason``."""
    table = answers
    if count == "once":
        best = {"expected_rank": "min", "expected_place": "min", "expected_scorable": "any", "expected_reason": "first",
                "ranks_to": "first"}  # fmt: skip
        table = answers.groupby([*by, "context_number"], sort=False, dropna=False).agg(best).reset_index()
    elif count != "per_row":
        raise LitmusError(f"'{count}' is no way to count contexts; choose 'once' or 'per_row'.")
    inside = table["expected_place"] <= k
    known = table["expected_scorable"] & (inside | (k <= table["ranks_to"]))
    reason = table["expected_reason"].where(~table["expected_scorable"], np.where(known, "", "rank_unknown"))
    tie = known & ~inside & (table["expected_rank"] <= k)
    return table.assign(within=inside.astype(float).where(known), tie=tie, reason=reason)


def compare(
    answers: pd.DataFrame,
    unit: Sequence[str],
    column: str,
    best: str,
    others: Sequence[str],
    threshold: float = THRESHOLD,
) -> pd.DataFrame:
    """Is the ``best`` of a unit's candidates more probable than each of the ``others``? One row a unit.

    The rows of a unit are told apart by ``column``: for inference ``compare(answers, ["item"], "role", "expected",
    ["within", "between"])``, for the N400 pattern ``"within", ["between"]``; for roles ``["item"], "condition", "a", ["b"]``;
    for negation ``["item", "polarity"], "role", "true", ["false"]``; with draws, ``draw`` is part of the unit.
    Columns: those of the best row, for each value v ``context_v``, ``candidate_v``, ``probability_v``, ``log_probability_v``,
    ``rank_v``, ``cloze_v``, ``cloze_strict_v``; ``margin`` (probability over the likeliest other), ``same_context``,
    ``scorable``, ``reason``, ``tie``; ``higher``, ``higher_by_threshold`` (strictly more than ``threshold``) and ``alike``
    (probabilities less than ``threshold`` apart): 1, 0, or NaN. The same candidate in what the model sees as the same
    context can only tie: undefined, reason ``identical``.
    """
    parts = {value: _part(answers, unit, column, value) for value in (best, *others)}
    table = parts[best].reset_index()
    parts = {value: part.reindex(parts[best].index) for value, part in parts.items()}
    for value, part in parts.items():
        for name in BESIDE:
            table[f"{name}_{value}"] = part[name].to_numpy()
    first, rest = parts[best], [parts[value] for value in others]
    table["margin"] = first["probability"].to_numpy() - _most(rest, "probability")
    reasons = [part["reason"].fillna("missing") for part in parts.values()]
    table["reason"] = [next((reason for reason in found if reason), "") for found in zip(*reasons, strict=True)]
    same = [(part["context_number"] == first["context_number"]).to_numpy() for part in rest]
    twice = [s & (part["candidate"] == first["candidate"]).to_numpy() for s, part in zip(same, rest, strict=True)]
    table["same_context"] = np.all(same, axis=0)
    table.loc[np.any(twice, axis=0) & (table["reason"] == ""), "reason"] = "identical"
    table["scorable"] = table["reason"] == ""
    ahead = first["log_probability"].to_numpy() - _most(rest, "log_probability")
    table["tie"] = table["scorable"] & (table["margin"] == 0)
    for outcome, found in (
        ("higher", ahead > 0), ("higher_by_threshold", table["margin"] > threshold),
        ("alike", table["margin"].abs() < threshold),
    ):  # fmt: skip
        table[outcome] = np.where(table["scorable"], np.asarray(found, dtype=float), np.nan)
    return table


def with_judgement(
    kept: pd.DataFrame, compared: pd.DataFrame, unit: Sequence[str], best: tuple[str, str]
) -> pd.DataFrame:
    """Rows as results keep them (``lib.cloze.answers.kept``) with what was judged of each unit, so that models can be compared.

    ``compared``: of ``compare``, with ``judgement`` (in words, what is right) and ``alternative`` (what lost or won against
    the best). ``best``: column and value that single out the best row of a unit. That row, of the items as they stand, gets
    ``judgement``, ``alternative`` and ``correct`` (1, 0; NaN where a candidate of the unit has no score). No other row was
    judged: its ``judgement`` is empty.
    """
    column, value = best
    found = compared.set_index(list(unit))[["higher", "alternative", "judgement"]].rename(columns={"higher": "correct"})
    table = kept.join(found, on=list(unit))
    judged = (kept["perturbation"] == "none") & (kept[column] == value)
    table[list(found)] = table[list(found)].where(judged)
    return table.fillna({"judgement": "", "alternative": ""})


def sensitivity(compared: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """How often the right candidate is more probable, at all and by the threshold (see ``shares`` and ``compare``)."""
    outcomes = {"higher": "sensitivity", "higher_by_threshold": "sensitivity by threshold"}
    return pd.concat([shares(compared, *outcome, by) for outcome in outcomes.items()], ignore_index=True)


def mean_probabilities(answers: pd.DataFrame, by: Sequence[str] = ("condition",), seed: int = 0) -> pd.DataFrame:
    """Mean probability of the candidates of each kind: ``n``, ``scored``, ``value``, ``low``, ``high``, ``coverage``."""
    return _means(answers, "probability", "mean probability", by, seed)


def mean_margins(compared: pd.DataFrame, by: Sequence[str] = (), seed: int = 0) -> pd.DataFrame:
    """Mean difference in probability of the compared candidates (see ``compare``), the undefined ones left out."""
    defined = compared.assign(margin=compared["margin"].where(compared["scorable"]))
    return _means(defined, "margin", "mean difference in probability", by, seed)


def role_pairs(answers: pd.DataFrame, strict: bool = False) -> pd.DataFrame:
    """``compare`` for role pairs, with ``cloze_difference``: of the published cloze of the target, or of the strict one."""
    compared = compare(answers, ["item"], "condition", "a", ["b"])
    cloze = "cloze_strict" if strict else "cloze"
    return compared.assign(cloze_difference=compared[f"{cloze}_a"] - compared[f"{cloze}_b"])


def mean_cloze_difference(pairs: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """What people do: the mean of ``cloze_difference`` (see ``role_pairs``)."""
    return _means(pairs, "cloze_difference", "mean cloze difference", (), seed)


def correlations(pairs: pd.DataFrame, x: str = "cloze_difference", y: str = "margin", seed: int = 0) -> pd.DataFrame:
    """Pearson and Spearman correlation over items, with a bootstrap over items; NaN below three items or without spread.

    Columns: ``metric``, ``n``, ``scored``, ``value``, ``low``, ``high``, ``coverage``.
    """
    from scipy.stats import rankdata

    both = pairs.loc[pairs["scorable"], [x, y]].dropna().to_numpy(dtype=float)
    drawn = (
        both[np.random.default_rng(seed).integers(len(both), size=(RESAMPLES, len(both)))] if len(both) > 2 else None
    )
    rows = []
    for metric, scale in (("Pearson", np.asarray), ("Spearman", lambda values: rankdata(values, axis=1))):
        value = low = high = np.nan
        if drawn is not None and np.ptp(both, axis=0).all():
            value = float(_correlation(scale(both[None]))[0])
            low, high = np.nanquantile(_correlation(scale(drawn)), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        rows.append([metric, len(pairs), len(both), value, low, high, _of(len(both), len(pairs))])
    return pd.DataFrame(rows, columns=["metric", "n", "scored", "value", "low", "high", "coverage"])


def tops_of_pairs(answers: pd.DataFrame, first: str, second: str, unit: Sequence[str] = ("item",)) -> pd.DataFrame:
    """Does the likeliest word change from condition ``first`` to ``second``? One row a unit.

    Columns: those of ``unit``, ``context_first``, ``context_second``, ``top_first``, ``top_second`` (as shown), ``same`` and
    ``changed`` (1, 0, NaN), ``tie`` (of the two likeliest, in either context), ``reason``. Contexts that the model sees as
    one can have no other likeliest word: undefined, reason ``identical``.
    """
    left, right = (_part(answers, unit, "condition", condition) for condition in (first, second))
    right = right.reindex(left.index)
    rows = []
    for (_, a), (_, b) in zip(left.iterrows(), right.iterrows(), strict=True):
        told = isinstance(b["top_ids"], tuple) and a["top_ids"] and b["top_ids"]
        reason = ("identical" if a["context_number"] == b["context_number"] else "") if told else "no_prediction"
        same = float(a["top_ids"][0] == b["top_ids"][0]) if not reason else np.nan
        words = [shown(found["top_pieces"][0], found["top_kinds"][0]) if told else "" for found in (a, b)]
        tie = bool(told and (a["top_tie"] or b["top_tie"]))
        rows.append([a["context"], b["context"], *words, same, 1 - same, tie, reason])
    columns = ["context_first", "context_second", "top_first", "top_second", "same", "changed", "tie", "reason"]
    return pd.concat([left.index.to_frame(index=False), pd.DataFrame(rows, columns=columns)], axis=1)


def tops_under_negation(answers: pd.DataFrame) -> pd.DataFrame:
    """``tops_of_pairs`` with and without the negation, behind the same article: each pair of contexts once."""
    behind = [("true affirmative", "false negative"), ("false affirmative", "true negative")]
    both = pd.concat([tops_of_pairs(answers, *conditions) for conditions in behind], ignore_index=True)
    both = both.drop_duplicates(["item", "context_first", "context_second"])
    return both.sort_values("item", key=lambda item: item.map({name: at for at, name in enumerate(item.unique())}),
                            kind="stable", ignore_index=True)  # fmt: skip


def subject_repeats(answers: pd.DataFrame) -> pd.DataFrame:
    """The affirmative contexts whose likeliest piece is not the expected word: is it the subject noun again?

    Columns: ``item``, ``context``, ``expected``, ``subject``, ``top``, ``repeats`` (1, 0), ``tie``, ``reason``; for ``shares``.
    The noun is the last word of the subject; upper and lower case count as one.
    """
    asked = answers[(answers["condition"] == "true affirmative") & answers["expected_scorable"]]
    errors = asked[(asked["expected_place"] > 1) & (asked["top_pieces"].str.len() > 0)]
    table = errors[["item", "context", "expected", "subject"]].assign(top=errors["top_pieces"].str[0], reason="")
    nouns = table["subject"].str.split().str[-1].fillna("")
    repeats = (table["top"].str.lower() == nouns.str.lower()).astype(float)
    return table.assign(repeats=repeats.where(nouns != ""), tie=errors["top_tie"],
                        reason=np.where(nouns == "", "no_subject", "")).reset_index(drop=True)  # fmt: skip


def articles(answers: pd.DataFrame, k: int = 1) -> pd.DataFrame:
    """Do the likeliest k words fit the article before them? One row for each distinct context that ends in a or an, and word.

    Columns: ``item``, ``polarity``, ``context``, ``article``, ``place``, ``piece``, ``respected`` (1, 0, NaN for what is no
    word), ``tie``, ``reason``; for ``shares``.
    """
    rows = []
    for row in answers.drop_duplicates("context_number").itertuples():
        before = row.context.rsplit(" ", 1)[-1].lower()
        if before not in ("a", "an"):
            continue
        for place, (piece, kind) in enumerate(zip(row.top_pieces[:k], row.top_kinds, strict=False), start=1):
            word = kind == "word" and piece[:1].isalpha()
            respected = float(article(piece) == before) if word else np.nan
            rows.append([row.item, row.polarity, row.context, before, place, piece, respected,
                         place == 1 and row.top_tie, "" if word else "no_word"])  # fmt: skip
    columns = ["item", "polarity", "context", "article", "place", "piece", "respected", "tie", "reason"]
    return pd.DataFrame(rows, columns=columns)


def survival(original: pd.DataFrame, drawn: pd.DataFrame, k: int = 5) -> pd.DataFrame:
    """Which expected words stay among the likeliest k when the context is perturbed? One row an item.

    ``original``: answers to the items; ``drawn``: answers to draws of them (with ``draw``). Columns: ``item``, ``context``,
    ``expected``, ``before`` (1, 0, NaN: among the likeliest k in the original), ``survives`` (share of the draws), ``draws``
    (scored ones), ``mean_place``.
    """
    table = _within(original, k, ["item", "context", "expected"], "once")
    per_draw = _within(drawn, k, ["item", "draw"], "once")
    found = per_draw.groupby("item").agg(
        survives=("within", "mean"), draws=("within", "count"), mean_place=("expected_place", "mean")
    )
    return table.rename(columns={"within": "before"})[["item", "context", "expected", "before"]].join(found, on="item")


def over_draws(drawn: pd.DataFrame, ks: Sequence[int] = (1, 5)) -> pd.DataFrame:
    """Sensitivity and accuracy@k of perturbed inference items: mean and spread over the draws, one row a metric.

    ``drawn``: answers with ``draw``; without that column there is one draw. Columns: ``metric``, ``n`` (items), ``scored``
    (items), ``draws``, ``value`` (mean over items and draws), ``low``, ``high`` (Wilson, with items as trials, because draws of
    an item are no trials of their own: rather too wide than too narrow), ``sd``, ``least`` and ``most`` of the draws, ``ties``
    and ``reasons`` (counted over draws), ``coverage`` (share of items and draws scored).
    """
    drawn = drawn if "draw" in drawn else drawn.assign(draw=0)
    compared = compare(drawn, ["item", "draw"], "role", "expected", ["within", "between"])
    outcomes = [("sensitivity", compared, "higher"), ("sensitivity by threshold", compared, "higher_by_threshold")]
    outcomes += [(f"accuracy@{k}", _within(drawn, k, ["item", "draw"], "once"), "within") for k in ks]
    rows = []
    for metric, table, outcome in outcomes:
        by_draw = table.groupby("draw")[outcome].mean().dropna()
        by_item = table.groupby("item")[outcome].mean()
        scored = int(by_item.notna().sum())
        [whole] = shares(table, outcome, metric).itertuples()
        rows.append([metric, len(by_item), scored, len(by_draw), *proportion(float(by_item.sum()), scored), by_draw.std(),
                     by_draw.min(), by_draw.max(), whole.ties, whole.coverage, whole.reasons])  # fmt: skip
    columns = ["metric", "n", "scored", "draws", "value", "low", "high", "sd", "least", "most", "ties", "coverage",
               "reasons"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def carrying_words(original: pd.DataFrame, without: pd.DataFrame) -> pd.DataFrame:
    """Which word of sentence 1 carries the expected word: the one whose loss costs it most. One row an item.

    ``without``: answers to ``perturb.leave_out_each``. Columns: ``item``, ``carried_by`` (the word) and ``loss`` (fall of the
    log-probability of the expected word without it, natural log). Items without scores are left out.
    """
    whole = original[original["role"] == "expected"].set_index("item")["log_probability"]
    table = without[without["role"] == "expected"]
    table = table.assign(loss=table["item"].map(whole) - table["log_probability"]).dropna(subset="loss")
    most = table.loc[table.groupby("item", sort=False)["loss"].idxmax(), ["item", "left_out", "loss"]]
    return most.rename(columns={"left_out": "carried_by"}).reset_index(drop=True)


def negation_shifts(compared: pd.DataFrame, by: Sequence[str] = (), seed: int = 0) -> pd.DataFrame:
    """How far the negation moves the preference between an item's two words, on the mean, and how far it should.

    ``compared``: ``compare(answers, ["item", "polarity"], "role", "true", ["false"])``. The preference is the log-probability
    of the word that is true in the affirmative sentence minus that of the other. ``needed`` would turn it around, into the
    same preference for the other word: minus twice the affirmative one. ``value`` is the shift found, of items scored in
    both polarities, with ``low`` and ``high`` (bootstrap over items). A model that ignores the negation has a shift of 0.
    """
    gap = (compared["log_probability_true"] - compared["log_probability_false"]).where(compared["scorable"])
    wide = compared.assign(gap=gap).pivot(index=[*by, "item"], columns="polarity", values="gap").reset_index()
    wide = wide.assign(shift=-wide["negative"] - wide["affirmative"], needed=-2 * wide["affirmative"])
    table = _means(wide, "shift", "mean shift by negation", by, seed)
    return table.assign(needed=[group["needed"].where(group["shift"].notna()).mean() for _, group in _groups(wide, by)])


def for_reading(summary: pd.DataFrame, index: Sequence[str] = ("metric",), also: Sequence[str] = ()) -> pd.DataFrame:
    """A summary as a page shows it, in words and narrow, told apart by ``index``.

    ``value`` (``undefined`` where nothing could be scored), ``95 %`` (its interval), the columns ``also``, ``scored`` (of how
    many), and where the summary has them ``ties`` and, unless all was scored, ``not scored`` (why, counted).
    """
    table = summary.set_index(list(index))
    narrow = pd.DataFrame(index=table.index)
    narrow["value"] = ["undefined" if np.isnan(value) else f"{value:.3f}" for value in table["value"]]
    bounds = zip(table["low"], table["high"], strict=True)
    narrow["95 %"] = ["" if np.isnan(low) else f"{low:.2f}{UNBROKEN}to{UNBROKEN}{high:.2f}" for low, high in bounds]
    for column in also:
        narrow[column] = [f"{value:.2f}".removesuffix(".00") if pd.notna(value) else "" for value in table[column]]
    narrow["scored"] = [
        f"{scored}{UNBROKEN}of{UNBROKEN}{n}" for scored, n in table[["scored", "n"]].astype(int).itertuples(index=False)
    ]
    if "ties" in table:
        narrow["ties"] = [f"{ties:.0f}" if pd.notna(ties) else "" for ties in table["ties"]]
    if "reasons" in table and table["reasons"].fillna("").any():
        narrow["not scored"] = table["reasons"].fillna("")
    return narrow


def unscored(answers: pd.DataFrame) -> str:
    """In words: how many candidates have no score, and why."""
    reasons = answers.loc[~answers["scorable"], "reason"].value_counts()
    why = ", ".join(f"{times} {reason}" for reason, times in reasons.items())
    return f"{reasons.sum()} of {len(answers)} candidates cannot be scored{f' ({why})' if why else ''}."


def _groups(table: pd.DataFrame, by: Sequence[str]) -> list[tuple[tuple, pd.DataFrame]]:
    if not by:
        return [((), table)]
    return list(table.groupby(list(by), sort=False, dropna=False))


def _of(part: int, whole: int) -> float:
    return part / whole if whole else np.nan


def _part(answers: pd.DataFrame, unit: Sequence[str], column: str, value: str) -> pd.DataFrame:
    part = answers[answers[column] == value]
    if part.empty:
        raise LitmusError(
            f"No item has the {column} '{value}'; there are {', '.join(map(str, answers[column].unique()))}."
        )
    if (twice := part.duplicated(list(unit))).any():
        raise LitmusError(
            f"Item {part.loc[twice, 'item'].iloc[0]} has the {column} '{value}' more than once; compare within draws or sets."
        )
    return part.set_index(list(unit))


def _most(parts: Sequence[pd.DataFrame], column: str) -> np.ndarray:
    """The largest of a column over parts, NaN where one of them has none: shape (units,)."""
    return np.max([part[column].to_numpy(dtype=float) for part in parts], axis=0)


def _means(table: pd.DataFrame, column: str, metric: str, by: Sequence[str], seed: int) -> pd.DataFrame:
    rows = []
    for key, group in _groups(table, by):
        means = clustered_means(group[[column]].to_numpy(dtype=float), list(group["item"]), seed)
        scored = int(group[column].notna().sum())
        rows.append([*key, metric, len(group), scored, *(float(part[0]) for part in means), _of(scored, len(group))])
    return pd.DataFrame(rows, columns=[*by, "metric", "n", "scored", "value", "low", "high", "coverage"])


def _correlation(pairs: np.ndarray) -> np.ndarray:
    """Product-moment correlation of each set of pairs, shape (sets, items, 2); NaN for a set without spread."""
    apart = pairs - pairs.mean(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return apart.prod(2).sum(1) / np.sqrt((apart**2).sum(1).prod(1))
