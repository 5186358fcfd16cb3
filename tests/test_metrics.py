"""TSE, EW and MW: by hand, against a plain loop written from the definitions, and what must hold for every distribution."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import metrics, scoring
from lib.errors import LitmusError
from lib.metrics import PLURAL, SINGULAR
from lib.models.protocol import FilledBatch, Gap, Word
from lib.scoring import CUTOFFS_BOTTOM, CUTOFFS_TOP

pytestmark = pytest.mark.filterwarnings("error")
NAN = math.nan


class Table:
    """A model that is a table: a distribution over a small vocabulary for each left context, a reason where there is none."""

    name = "table"
    identity = {"dtype": "float32"}  # noqa: RUF012

    def __init__(self, vocabulary: Sequence[str], rows: dict[str, Sequence[float] | str], several_at_start: str = ""):
        self.vocabulary, self.rows, self.several_at_start = list(vocabulary), rows, several_at_start.split()
        self.vocabulary_size = len(vocabulary)

    def seen(self, gap: Gap) -> Gap:
        return Gap(gap.left, "")

    def word(self, form: str, position: str) -> Word:
        if position == "start" and form in self.several_at_start:
            return Word(form, (0, 1), "")
        return Word(form, (self.vocabulary.index(form),), "") if form in self.vocabulary else Word(form, (), "unknown")

    def fill(self, gaps: Sequence[Gap], start_token: str) -> Iterator[FilledBatch]:
        for row, gap in enumerate(gaps):
            found = self.rows[gap.left]
            if isinstance(found, str):
                yield FilledBatch([row], None, found)
            else:
                yield FilledBatch([row], torch.tensor(np.log([found]), dtype=torch.float32), "")


def verbs_of(*lemmas: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(lemmas, columns=["singular", "plural"])


def fill(model: Table, lefts: Sequence[str], verbs: pd.DataFrame, top=(), bottom=(), more=()) -> scoring.Fills:
    forms = [*verbs["singular"], *verbs["plural"], *more]
    return scoring.fill(model, [Gap(left, "") for left in lefts], forms, cutoffs_top=top, cutoffs_bottom=bottom)


def scores_of(model: Table, lefts: Sequence[str], labels: Sequence[int], verbs: pd.DataFrame, top=(), bottom=()):
    fills = fill(model, lefts, verbs, top, bottom)
    contexts = metrics.distinct_contexts(fills, labels)
    return metrics.by_cutoff(fills, contexts, metrics.usable_verbs(fills, verbs), top, bottom)


def grid(scores: pd.DataFrame, column: str, metric: str, side: str) -> np.ndarray:
    """Shape (contexts, cutoffs), in the order of ``scores``."""
    chosen = scores[(scores["metric"] == metric) & (scores["side"] == side)]
    return chosen[column].to_numpy().reshape(chosen["context"].nunique(), -1)


# ---- by hand
#
# sorted       the   is   are   on  runs  walk  run  walks  of   zzz
# probability  .30  .20   .15  .10   .08   .06  .05   .03  .02   .01
# from above   .30  .50   .65  .75   .83   .89  .94   .97  .99  1.00
# from below  1.00  .70   .50  .35   .25   .17  .11   .06  .03   .01
#
# The subject is plural: right are, run, walk; wrong is, runs, walks. Only walk outranks its singular.

VOCABULARY = ["the", "is", "are", "on", "runs", "walk", "run", "walks", "of", "zzz"]
BY_HAND = [0.30, 0.20, 0.15, 0.10, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01]
VERBS = verbs_of(("is", "are"), ("runs", "run"), ("walks", "walk"))
TOP = {  # cutoff: EW, MW, mass counted
    # `the` crosses .2; neither without it nor with it is there a verb.
    0.2: (NAN, NAN, 0),
    # `is` crosses .4 half-way. Without it: no verb. With it: be, wrong; of its forms only `is` is inside.
    0.4: (0, 0, 0.5 * 0.35),
    # `are` crosses .6 at 2/3. MW from 0 (only `is`) to .15/.35 = 3/7.
    0.6: (0, 2 / 3 * 3 / 7, 0.35),
    # `runs` crosses .8 at 5/8: be alone, then be and run (wrong), of which `run` is outside.
    0.8: (0, 3 / 7 + 5 / 8 * (0.15 / 0.43 - 3 / 7), 0.35 + 5 / 8 * 0.13),
    # `walk` crosses .86 half-way: EW from 0/2 to 1/3, MW from .15/.43 to (.15 + .06)/(.15 + .06 + .20 + .08) = 3/7.
    0.86: (1 / 6, (0.15 / 0.43 + 3 / 7) / 2, (0.48 + 0.57) / 2),
    # `run` crosses .9 at 1/5: no further lemma, MW from 3/7 to .26/.54.
    0.9: (1 / 3, 3 / 7 + 1 / 5 * (0.26 / 0.54 - 3 / 7), 0.57),
    1.0: (1 / 3, 0.26 / 0.57, 0.57),
}
BOTTOM = {
    # `of` crosses .02: no verb.
    0.02: (NAN, NAN, 0),
    # `run` crosses .10: walks and run are inside, but of no lemma both forms.
    0.10: (NAN, NAN, 0),
    # `walk` crosses .14 half-way. Without it: no lemma. With it: walk, right; MW .06/.09.
    0.14: (1, 2 / 3, 0.5 * 0.09),
    # `runs` crosses .21 half-way: from walk alone to walk and run, EW 1/2, MW .11/.22.
    0.21: (3 / 4, (2 / 3 + 1 / 2) / 2, (0.09 + 0.22) / 2),
    # `is` crosses .6 half-way: from these two to all three.
    0.6: ((1 / 2 + 1 / 3) / 2, (1 / 2 + 0.26 / 0.57) / 2, (0.22 + 0.57) / 2),
    1.0: (1 / 3, 0.26 / 0.57, 0.57),
}


def test_every_cutoff_by_hand():
    scores = scores_of(Table(VOCABULARY, {"they": BY_HAND}), ["they"], [PLURAL], VERBS, tuple(TOP), tuple(BOTTOM))
    for side, expected in (("top", TOP), ("bottom", BOTTOM)):
        ew, mw, mass = zip(*expected.values(), strict=True)
        np.testing.assert_allclose(grid(scores, "score", "EW", side)[0], ew, atol=1e-5, equal_nan=True)
        np.testing.assert_allclose(grid(scores, "score", "MW", side)[0], mw, atol=1e-5, equal_nan=True)
        for metric in ("EW", "MW"):
            np.testing.assert_allclose(grid(scores, "mass_counted", metric, side)[0], mass, atol=1e-5)


def test_the_rows_come_context_by_context_and_cutoff_by_cutoff_and_only_what_is_asked():
    model = Table(VOCABULARY, {"they": BY_HAND, "he": BY_HAND[::-1]})
    fills = fill(model, ["he", "they", "he"], VERBS, [0.5, 1.0], [0.1])
    contexts = metrics.distinct_contexts(fills, [SINGULAR, PLURAL, PLURAL])
    assert contexts.to_dict("list") == {
        "context": [0, 1], "label": [SINGULAR, PLURAL], "rows": [2, 1], "both_labels": [True, False],
    }  # fmt: skip
    usable = metrics.usable_verbs(fills, VERBS)
    scores = metrics.by_cutoff(fills, contexts, usable, [0.5, 1.0], [0.1], ["MW"])
    assert list(zip(scores["context"], scores["metric"], scores["side"], scores["cutoff"], strict=True)) == [
        (0, "MW", "top", 0.5), (0, "MW", "top", 1.0), (1, "MW", "top", 0.5), (1, "MW", "top", 1.0),
        (0, "MW", "bottom", 0.1), (1, "MW", "bottom", 0.1),
    ]  # fmt: skip
    only_top = metrics.by_cutoff(fill(model, ["he"], VERBS, [1.0]), contexts[:1], usable, [1.0], [])
    assert set(only_top["side"]) == {"top"}


def test_a_list_without_a_usable_verb_is_refused():
    with pytest.raises(LitmusError, match="another verb list"):
        scores_of(Table(VOCABULARY, {"they": BY_HAND}), ["they"], [PLURAL], verbs_of(("is", "zzzz")), (1.0,))


# ---- against a plain loop


def by_loop(probability: dict[str, float], label: int, verbs: pd.DataFrame, side: str, cutoff: float) -> tuple:
    """EW, MW and mass counted of one context, straight from the definitions."""
    ordered = sorted(probability, key=probability.__getitem__, reverse=side == "top")
    prefix, mass = [], 0.0
    for form in ordered:
        before, crossing = mass, form
        mass += probability[form]
        prefix.append(form)
        if mass >= cutoff:
            break
    share = 1.0 if mass == before else min(1.0, (cutoff - before) / (mass - before))
    pairs = [(s, p) if label == SINGULAR else (p, s) for s, p in zip(verbs["singular"], verbs["plural"], strict=True)]

    def ends(inside: set[str]) -> tuple:
        needed = any if side == "top" else all
        counted = [pair for pair in pairs if needed(form in inside for form in pair)]
        won = sum(probability[right] > probability[wrong] for right, wrong in counted)
        forms = inside if side == "top" else {form for pair in counted for form in pair}
        right_mass = sum(probability[right] for right, _ in pairs if right in forms)
        wrong_mass = sum(probability[wrong] for _, wrong in pairs if wrong in forms)
        ew = won / len(counted) if counted else NAN
        mw = right_mass / (right_mass + wrong_mass) if right_mass + wrong_mass else NAN
        return ew, mw, sum(probability[form] for pair in counted for form in pair)

    without, with_item = ends(set(prefix) - {crossing}), ends(set(prefix))
    return tuple(
        b if math.isnan(a) else a if math.isnan(b) else a + share * (b - a)
        for a, b in zip(without, with_item, strict=True)
    )


def drawn(seed: int, contexts: int = 3) -> tuple[Table, list[str], list[int], pd.DataFrame]:
    """A random model over up to 40 items, flat or peaked, with verbs among them."""
    random = np.random.default_rng(seed)
    size = int(random.integers(4, 40))
    vocabulary = [f"w{i}" for i in range(size)]
    logits = random.normal(scale=random.choice([0.3, 2, 6]), size=(contexts, size))
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    lemmas = random.permutation(size)[: 2 * int(random.integers(1, size // 2 + 1))].reshape(-1, 2)
    verbs = verbs_of(*((vocabulary[s], vocabulary[p]) for s, p in lemmas))
    lefts = [f"c{i}" for i in range(contexts)]
    labels = random.choice([SINGULAR, PLURAL], size=contexts).tolist()
    return Table(vocabulary, dict(zip(lefts, probabilities, strict=True))), lefts, labels, verbs


SEEDS = st.integers(0, 2**32 - 1)
EXAMPLES = settings(max_examples=60, deadline=None)


@EXAMPLES
@given(SEEDS)
def test_equal_to_a_plain_loop_on_any_distribution(seed):
    model, lefts, labels, verbs = drawn(seed)
    scores = scores_of(model, lefts, labels, verbs, CUTOFFS_TOP, CUTOFFS_BOTTOM)
    for side, cutoffs in (("top", CUTOFFS_TOP), ("bottom", CUTOFFS_BOTTOM)):
        for row, (left, label) in enumerate(zip(lefts, labels, strict=True)):
            exact = np.exp(np.log(model.rows[left]).astype(np.float32).astype(float))
            probability = dict(zip(model.vocabulary, exact / exact.sum(), strict=True))
            expected = [by_loop(probability, label, verbs, side, cutoff) for cutoff in cutoffs]
            ew, mw, mass = np.transpose(expected)
            np.testing.assert_allclose(grid(scores, "score", "EW", side)[row], ew, atol=1e-5)
            np.testing.assert_allclose(grid(scores, "score", "MW", side)[row], mw, atol=1e-5)
            np.testing.assert_allclose(grid(scores, "mass_counted", "EW", side)[row], mass, atol=1e-6)


@EXAMPLES
@given(SEEDS)
def test_scores_are_shares_and_mass_counted_grows_with_the_cutoff(seed):
    scores = scores_of(*drawn(seed), CUTOFFS_TOP, CUTOFFS_BOTTOM)
    assert scores["score"].dropna().between(-1e-9, 1 + 1e-9).all()
    assert scores["mass_counted"].between(0, 1 + 1e-6).all()
    assert (scores.loc[scores["score"].isna(), "mass_counted"] == 0).all()
    assert (np.diff(grid(scores, "mass_counted", "EW", "top"), axis=1) >= -1e-9).all()
    assert (np.diff(grid(scores, "mass_counted", "EW", "bottom")[:, ::-1], axis=1) >= -1e-9).all()


@EXAMPLES
@given(SEEDS)
def test_the_order_of_verbs_contexts_and_vocabulary_changes_nothing(seed):
    model, lefts, labels, verbs = drawn(seed)
    random = np.random.default_rng(seed)
    shuffled = random.permutation(model.vocabulary_size)
    other = Table([model.vocabulary[i] for i in shuffled], {left: row[shuffled] for left, row in model.rows.items()})
    order = random.permutation(len(lefts))
    moved = scores_of(
        other, [lefts[i] for i in order], [labels[i] for i in order],
        verbs.iloc[random.permutation(len(verbs))], CUTOFFS_TOP, CUTOFFS_BOTTOM,
    )  # fmt: skip
    scores = scores_of(model, lefts, labels, verbs, CUTOFFS_TOP, CUTOFFS_BOTTOM)
    for metric, side in [("EW", "top"), ("EW", "bottom"), ("MW", "top"), ("MW", "bottom")]:
        for column in ("score", "mass_counted"):
            found, expected = grid(moved, column, metric, side), grid(scores, column, metric, side)
            np.testing.assert_allclose(found, expected[order], atol=1e-6)


@EXAMPLES
@given(SEEDS)
def test_the_other_number_scores_one_minus(seed):
    """Without ties and with all verbs counted alike, right and wrong change places."""
    model, lefts, labels, verbs = drawn(seed)
    turned = [SINGULAR if label == PLURAL else PLURAL for label in labels]
    scores, mirror = (scores_of(model, lefts, given, verbs, CUTOFFS_TOP, CUTOFFS_BOTTOM) for given in (labels, turned))
    np.testing.assert_allclose(mirror["score"], 1 - scores["score"], atol=1e-6)
    np.testing.assert_allclose(mirror["mass_counted"], scores["mass_counted"], atol=1e-9)


def test_more_contexts_than_are_held_at_once():
    """Each context gets its own numbers on both sides of the border of a chunk."""
    random = np.random.default_rng(0)
    rows = {f"c{i}": random.dirichlet(np.ones(10)) for i in range(2 * metrics.CHUNK + 3)}
    model, lefts = Table(VOCABULARY, rows), list(rows)
    together = scores_of(model, lefts, [PLURAL] * len(lefts), VERBS, (0.6, 1.0))
    for left in (0, metrics.CHUNK - 1, metrics.CHUNK, len(lefts) - 1):
        alone = scores_of(model, [lefts[left]], [PLURAL], VERBS, (0.6, 1.0))
        np.testing.assert_allclose(together[together["context"] == left]["score"], alone["score"], atol=1e-12)


# ---- ties, nothing counted, nothing known


def test_a_constant_model_has_only_ties_and_scores_nothing():
    model = Table(VOCABULARY, {"they": [0.1] * 10, "he": [0.1] * 10})
    fills = fill(model, ["they", "he"], VERBS, (0.5, 1.0))
    pairs = metrics.minimal_pairs(fills, ["are", "runs"], ["is", "run"])
    assert pairs["tie"].all() and (pairs["correct"] == 0).all() and pairs["scorable"].all()
    [found] = metrics.summarise_pairs(pairs.assign(all=""), ["all"]).to_dict("records")
    assert (found["value"], found["ties"], found["scored"]) == (0, 2, 2)
    scores = scores_of(model, ["they"], [PLURAL], VERBS, (0.5, 1.0))
    assert (grid(scores, "score", "EW", "top") == 0).all()
    table = metrics.by_verb(
        fills, metrics.distinct_contexts(fills, [PLURAL, SINGULAR]), metrics.usable_verbs(fills, VERBS)
    )
    assert table["tie"].all() and (table["correct"] == 0).all()
    assert metrics.by_lemma(table)["ties"].tolist() == [2, 2, 2]


def test_case_5_a_peak_without_a_verb_is_invalid_and_not_zero():
    """Nine tenths of the mass are on one word that is no verb; no warning is given, and the share is told."""
    peaked = [0.91] + [0.01] * 9
    model = Table(VOCABULARY, {"they": peaked, "those": BY_HAND})
    scores = scores_of(model, ["they", "those"], [PLURAL, PLURAL], VERBS, (0.1, 0.6))
    np.testing.assert_array_equal(grid(scores, "score", "EW", "top"), [[NAN, NAN], [NAN, 0]])
    found = metrics.summarise_cutoffs(scores)
    assert found["share_invalid"].tolist() == [1, 0.5, 1, 0.5]
    assert found["n"].tolist() == [2] * 4 and found["unscorable"].tolist() == [0] * 4
    np.testing.assert_allclose(found["value"], [NAN, 0, NAN, 2 / 3 * 3 / 7], atol=1e-6)
    np.testing.assert_allclose(found["mass_counted"], [0, 0.35 / 2, 0, 0.35 / 2], atol=1e-6)
    assert found[["low", "high"]].isna().all(axis=None)  # one valid context says nothing about others


def test_a_context_without_a_distribution_is_counted_apart():
    model = Table(VOCABULARY, {"they": BY_HAND, "long": "too_long"})
    fills = fill(model, ["they", "long", "long"], VERBS, (0.2, 1.0), (0.02,), more=["zzz"])
    contexts = metrics.distinct_contexts(fills, [PLURAL] * 3)
    usable = metrics.usable_verbs(fills, VERBS)
    scores = metrics.by_cutoff(fills, contexts, usable, (0.2, 1.0), (0.02,))
    assert scores[scores["context"] == 1][["score", "mass_counted"]].isna().all(axis=None)
    found = metrics.summarise_cutoffs(scores[scores["metric"] == "EW"]).set_index(["side", "cutoff"])
    assert found["unscorable"].tolist() == [1, 1, 1] and found["n"].tolist() == [2, 2, 2]
    assert found["share_invalid"].tolist() == [1, 0, 1]
    assert found.loc[("top", 1.0), "mass_counted"] == pytest.approx(0.57)
    pairs = metrics.minimal_pairs(fills, ["are"] * 3, ["is", "is", "zzz"])
    assert pairs["reason"].tolist() == ["", "too_long", "too_long"]
    assert pairs["scorable"].tolist() == [True, False, False] and pairs["correct"].isna().tolist() == [
        False,
        True,
        True,
    ]
    lemmas = metrics.by_lemma(metrics.by_verb(fills, contexts, usable))
    assert lemmas["contexts"].tolist() == [1, 1, 1] and lemmas["share_right"].tolist() == [0, 0, 1]


def test_nothing_but_contexts_without_a_distribution():
    model = Table(VOCABULARY, {"long": "too_long"})
    fills = fill(model, ["long"], VERBS, (1.0,))
    contexts = metrics.distinct_contexts(fills, [PLURAL])
    usable = metrics.usable_verbs(fills, VERBS)
    [found] = metrics.summarise_cutoffs(metrics.by_cutoff(fills, contexts, usable, (1.0,), (), ["EW"])).to_dict(
        "records"
    )
    assert (found["n"], found["unscorable"]) == (1, 1)
    assert np.isnan([found[column] for column in ("value", "low", "high", "share_invalid", "mass_counted")]).all()
    assert metrics.by_lemma(metrics.by_verb(fills, contexts, usable)).empty
    found = metrics.summarise_pairs(metrics.minimal_pairs(fills, ["are"], ["is"]).assign(all=""), ["all"])
    assert (found["coverage"].item(), found["scored"].item()) == (0, 0) and np.isnan(found["value"].item())


def test_verbs_that_are_several_items_where_they_open_a_text_do_not_count_there():
    """Inside a sentence all three verbs count; at its start `is` is two items, so that two of them are left."""
    model = Table(VOCABULARY, {"they": BY_HAND, "": BY_HAND}, several_at_start="is")
    fills = fill(model, ["they", ""], VERBS, (1.0,), (0.5,))
    contexts, usable = metrics.distinct_contexts(fills, [PLURAL, PLURAL]), metrics.usable_verbs(fills, VERBS)
    assert usable["usable"].all()
    scores = metrics.by_cutoff(fills, contexts, usable, (1.0,), (0.5,))
    np.testing.assert_allclose(grid(scores, "score", "EW", "top"), [[1 / 3], [1 / 2]])
    np.testing.assert_allclose(grid(scores, "score", "MW", "top"), [[0.26 / 0.57], [0.11 / 0.22]], atol=1e-6)
    np.testing.assert_allclose(grid(scores, "mass_counted", "EW", "top"), [[0.57], [0.22]], atol=1e-6)
    table = metrics.by_verb(fills, contexts, usable)
    assert table["correct"].isna().tolist() == [False, False, False, True, False, False]
    assert metrics.by_lemma(table)["contexts"].tolist() == [1, 2, 2]
    pairs = metrics.minimal_pairs(fills, ["are", "are"], ["is", "is"])
    assert pairs["reason"].tolist() == ["", "several_pieces"]


# ---- minimal pairs


class Uncased(Table):
    """A table whose vocabulary knows small letters only."""

    def word(self, form: str, position: str) -> Word:
        return super().word(form.lower(), position)._replace(form=form)


def test_case_35_forms_that_an_uncased_vocabulary_cannot_tell_apart():
    pairs = metrics.minimal_pairs(
        fill(Uncased(VOCABULARY, {"they": BY_HAND}), ["they"], VERBS, more=["Run"]), ["run"], ["Run"]
    )
    assert pairs["reason"].tolist() == ["identical"]
    assert pairs["correct"].isna().all() and not pairs["tie"].any()


def test_minimal_pairs_by_hand():
    model = Table(VOCABULARY, {"they": BY_HAND})
    good, bad = ["walk", "are", "are", "runz", "are", "are"], ["walks", "is", "zzz", "run", "runz", "are"]
    pairs = metrics.minimal_pairs(fill(model, ["they"] * 6, VERBS, more=[*good, *bad]), good, bad)
    assert pairs["reason"].tolist() == ["", "", "", "unknown", "unknown", "identical"]
    np.testing.assert_array_equal(pairs["correct"], [1, 0, 1, NAN, NAN, NAN])
    np.testing.assert_allclose(pairs["margin"][:3], np.log([2, 0.75, 15]), atol=1e-5)
    assert pairs["rank_good"].tolist()[:3] == [6, 3, 3] and pairs["rank_bad"].tolist()[:3] == [8, 2, 10]
    assert not pairs["tie"].any()
    assert pairs["log_probability_good"][1] == pytest.approx(math.log(0.15), abs=1e-6)


def test_tse_counts_rows_as_they_stand_with_coverage_and_wilson_interval():
    """Of four rows of A three are scored and two right; B has none to score."""
    pairs = pd.DataFrame({
        "template": ["A", "B", "A", "A", "A"], "scorable": [True, False, True, True, False],
        "correct": [1, NAN, 1, 0, NAN], "tie": [False, False, False, True, False],
    })  # fmt: skip
    first, second = metrics.summarise_pairs(pairs, ["template"]).to_dict("records")
    # Wilson, 2 of 3: (p + z²/2n ± z √(p(1 - p)/n + z²/4n²)) / (1 + z²/n) with z = 1.959964, by hand .2077 and .9385.
    assert (first["template"], first["metric"]) == ("A", "TSE")
    assert [first[c] for c in ("n", "scored", "ties", "coverage")] == [4, 3, 1, 0.75]
    assert [first[c] for c in ("value", "low", "high")] == pytest.approx([2 / 3, 0.2077, 0.9385], abs=1e-4)
    assert [second[c] for c in ("n", "scored", "ties", "coverage")] == [1, 0, 0, 0]
    assert np.isnan([second[c] for c in ("value", "low", "high")]).all()


def test_tse_mirrors_when_good_and_bad_change_places():
    model, lefts, _, verbs = drawn(3, contexts=20)
    fills = fill(model, lefts, verbs)
    form = verbs.iloc[0]
    there, back = (
        metrics.minimal_pairs(fills, [form[a]] * 20, [form[b]] * 20)
        for a, b in (("singular", "plural"), ("plural", "singular"))
    )
    assert (there["correct"] + back["correct"] == 1).all() and 0 < there["correct"].mean() < 1
    assert (there["margin"] == -back["margin"]).all()


# ---- tables of verbs and of cutoffs


def test_usable_verbs_need_both_forms_and_say_why_not():
    verbs = verbs_of(("is", "are"), ("runz", "run"), ("runs", "ran"))
    found = metrics.usable_verbs(fill(Table(VOCABULARY, {"they": BY_HAND}), ["they"], verbs), verbs)
    assert found["usable"].tolist() == [True, False, False]
    assert found["reason"].tolist() == ["", "unknown", "unknown"]


def test_every_verb_in_every_context_and_each_lemma_over_all():
    model = Table(VOCABULARY, {"they": BY_HAND, "he": BY_HAND})
    fills = fill(model, ["they", "he"], VERBS)
    contexts = metrics.distinct_contexts(fills, [PLURAL, SINGULAR])
    table = metrics.by_verb(fills, contexts, metrics.usable_verbs(fills, VERBS))
    assert table["context"].tolist() == [0, 0, 0, 1, 1, 1]
    assert table["correct"].tolist() == [0, 0, 1, 1, 1, 0]
    assert table["rank_right"].tolist() == [3, 7, 6, 2, 5, 8] and table["rank_wrong"].tolist() == [2, 5, 8, 3, 7, 6]
    np.testing.assert_allclose(table["cumulative_mass_right"], [0.65, 0.94, 0.89, 0.50, 0.83, 0.97], atol=1e-6)
    np.testing.assert_allclose(np.exp(table["log_probability_wrong"][:3]), [0.20, 0.08, 0.03], atol=1e-6)
    lemmas = metrics.by_lemma(table)
    assert lemmas["verb"].tolist() == ["are", "run", "walk"]
    np.testing.assert_allclose(lemmas["probability"], [0.35, 0.13, 0.09], atol=1e-6)
    assert lemmas["share_right"].tolist() == [0.5, 0.5, 0.5] and lemmas["contexts"].tolist() == [2, 2, 2]


def test_means_over_contexts_keep_the_order_of_cutoffs_and_hold_their_interval():
    random = np.random.default_rng(1)
    rows = {f"c{i}": random.dirichlet(np.ones(10)) for i in range(30)}
    scores = scores_of(Table(VOCABULARY, rows), list(rows), [PLURAL] * 30, VERBS, (0.9, 0.5, 1.0), (0.1,))
    found = metrics.summarise_cutoffs(scores, seed=5)
    assert found[["metric", "side", "cutoff"]].to_numpy().tolist() == [
        ["EW", "top", 0.9], ["EW", "top", 0.5], ["EW", "top", 1.0], ["MW", "top", 0.9], ["MW", "top", 0.5],
        ["MW", "top", 1.0], ["EW", "bottom", 0.1], ["MW", "bottom", 0.1],
    ]  # fmt: skip
    plain = scores.groupby(["metric", "side", "cutoff"], sort=False)
    np.testing.assert_allclose(found["value"], plain["score"].mean())
    np.testing.assert_allclose(found["mass_counted"], plain["mass_counted"].mean())
    np.testing.assert_allclose(found["share_invalid"], plain["score"].apply(lambda score: score.isna().mean()))
    assert (found["low"] < found["value"]).all() and (found["value"] < found["high"]).all()
    pd.testing.assert_frame_equal(found, metrics.summarise_cutoffs(scores, seed=5))


def test_a_cutoff_asked_for_twice_counts_once():
    scores = scores_of(Table(VOCABULARY, {"they": BY_HAND}), ["they"], [PLURAL], VERBS, (1.0, 0.6, 1))
    assert metrics.summarise_cutoffs(scores)["cutoff"].tolist() == [1.0, 0.6, 1.0, 0.6]


# ---- nothing to measure


def test_when_nothing_can_be_scored_one_sentence_says_why():
    model = Table(VOCABULARY, {"they": BY_HAND, "we": "too_long"})
    pairs = metrics.minimal_pairs(fill(model, ["they", "we"], VERBS, more=["zzzz"]), ["zzzz", "are"], ["is", "is"])
    with pytest.raises(LitmusError, match=r"None of the 2 pairs can be scored by this model \(1 unknown, 1 too_long\)"):
        metrics.check_scored(pairs)
    metrics.check_scored(metrics.minimal_pairs(fill(model, ["they"], VERBS), ["are"], ["is"]))
    with pytest.raises(LitmusError, match="can read none of the contexts"):
        metrics.check_filled(scores_of(model, ["we"], [PLURAL], VERBS, top=(1.0,)))


def test_wanted_metrics_are_known_ones_over_some_cutoff():
    assert metrics.wanted_metrics("both", [1.0]) == ["EW", "MW"] and metrics.wanted_metrics("MW", [0.5]) == ["MW"]
    with pytest.raises(LitmusError, match="'XY' is no metric over verbs"):
        metrics.wanted_metrics("XY", [1.0])
    with pytest.raises(LitmusError, match="cutoffs_top is empty"):
        metrics.wanted_metrics("EW", [])
