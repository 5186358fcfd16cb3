"""Each diagnostic on each animal of the zoo, from a file to its judgements: the oracle's numbers, or a reason for each row.

The files hold words that the tiny vocabularies know beside words that they cut into pieces, cannot write or find too long.
"""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_metrics import by_loop
from test_zoo import (
    ALL,
    GAPS,
    MASKED,
    TOLERANCE,
    animal,
    around,
    before,
    distribution,
    folder,
    pieces_behind,
    plain,
    scorable,
    token_scores,
)

from lib import blimp, evaluate, metrics, perturb, scoring, sentences
from lib.cloze import items as cloze_items
from lib.cloze import metrics as cloze_metrics
from lib.cloze.answers import ask
from lib.errors import LitmusError
from lib.metrics import PLURAL, SINGULAR
from lib.models import Gap
from lib.paths import ROOT
from lib.report.page import render

REASONS = {
    "too_long",
    "several_pieces",
    "unknown",
    "identical",
    "empty_context",
    "missing",
    "several_words",
    "opens_text",
}


def at_gap(model, gap: Gap) -> np.ndarray:
    """The oracle's distribution at a gap, natural log; empty where the text does not fit."""
    if model.family == "causal":
        ids = before(model, gap)
        return distribution(model, ids, -1).numpy() if 0 < len(ids) <= model.maximum_length else np.array([])
    left, right = around(model, gap)
    if len(left) + 1 + len(right) > model.maximum_length:
        return np.array([])
    return distribution(model, [*left, model.tokenizer.mask_token_id, *right], len(left)).numpy()


def single(model, left: str, form: str) -> int | None:
    """The one vocabulary item that a form is behind a text, if it is one."""
    ids = pieces_behind(model, left, form) if left else plain(model, form)
    return ids[0] if len(ids) == 1 and scorable(model, ids) else None


# --- over verbs -----------------------------------------------------------------------------------------------------

VERBS = pd.DataFrame(
    [("is", "are"), ("has", "have"), ("laughs", "laugh"), ("walks", "walk"), ("swims", "swim"), ("zooms", "zoom")],
    columns=["singular", "plural"],
)
TOP, BOTTOM = (0.2, 0.6, 0.95, 1.0), (0.5, 0.01)


@pytest.mark.parametrize("name", ALL)
def test_ew_and_mw_are_those_of_a_plain_loop_over_the_vocabulary(name):
    model, labels = animal(name), [PLURAL, SINGULAR, SINGULAR, PLURAL]
    ids = {form: single(model, "The pilot", form) for form in [*VERBS["singular"], *VERBS["plural"]]}
    known = [ids[row.singular] is not None and ids[row.plural] is not None for row in VERBS.itertuples()]
    fills = scoring.fill(model, GAPS, list(ids), cutoffs_top=TOP, cutoffs_bottom=BOTTOM)
    usable = metrics.usable_verbs(fills, VERBS)
    assert usable["usable"].tolist() == known and set(usable["reason"]) <= REASONS | {""}
    contexts = metrics.distinct_contexts(fills, labels)
    if not any(known):
        with pytest.raises(LitmusError, match="choose another verb list"):
            metrics.by_cutoff(fills, contexts, usable, TOP, BOTTOM)
        return
    scores = metrics.by_cutoff(fills, contexts, usable, TOP, BOTTOM)
    as_ids = VERBS[known].map(ids.__getitem__)
    for row, (gap, label) in enumerate(zip(GAPS, labels, strict=True)):
        exact = np.exp(at_gap(model, gap).astype(float))
        probability = dict(enumerate(exact / exact.sum()))
        for side, cutoffs in (("top", TOP), ("bottom", BOTTOM)):
            for cutoff in cutoffs:
                ew, mw, mass = by_loop(probability, label, as_ids, side, cutoff)
                found = scores[(scores["context"] == row) & (scores["side"] == side) & (scores["cutoff"] == cutoff)]
                assert found["score"].tolist() == pytest.approx([ew, mw], abs=TOLERANCE, nan_ok=True)
                assert found["mass_counted"].tolist() == pytest.approx([mass, mass], abs=TOLERANCE)


# --- the psycholinguistic items ---------------------------------------------------------------------------------------

INFERENCE = """item\tcontext_s1\tcontext_s2\texpected\twithin_category\tbetween_category\tconstraint
1\tThe pilot has two cats.\tThe pilots like\tcats\tkeys\tzebras\tH
2\tThe farmer lost the key.\tThe key is not on the\ttable\tcabinet\t日本\tL
"""
ROLES = """item\tcontext\texpected\texp_cloze\ttarget\ttgt_cloze\ttgt_cloze(strict)
1-a\tThe guard knows which pilot the farmer had \tlost\t\tlost\t.5\t.4
1-b\tThe guard knows which farmer the pilot had \tlost|laugh\t\tlost\t.1\t0
2-a\tA senator knows which cat the author had \tlost\t\tseen\t.2\t.2
2-b\tA senator knows which author the cat had \tlost\t\tseen\t.1\t.1
"""
NEGATION = """item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg
1\tThe guard is (a|an)\tThe guard is not (a|an)\tpilot\tkey
2\tThe tables are\tThe tables are not\tsmall\tyoung
3\tCats walk and\tCats do not walk and\tlaugh\tunderstand
"""


def asked(model, items: pd.DataFrame) -> pd.DataFrame:
    """The answers, each compared with the oracle's distribution: number, rank, likeliest piece, or the reason why not."""
    found, _ = ask(model, items)
    for row in found.itertuples():
        logs = at_gap(model, Gap(row.context, "."))
        wanted = single(model, row.context, row.candidate)
        if not len(logs):
            assert (row.reason, row.scorable, row.top_pieces) == ("too_long", False, ())
            continue
        assert row.top_probabilities[0] == pytest.approx(math.exp(logs.max()), rel=1e-3)
        assert logs[row.top_ids[0]] == pytest.approx(logs.max(), abs=TOLERANCE)
        if wanted is None:
            assert row.reason in ("several_pieces", "unknown") and math.isnan(row.log_probability)
            continue
        assert row.scorable and row.log_probability == pytest.approx(logs[wanted], abs=TOLERANCE)
        near = np.abs(logs - logs[wanted]) < 2 * TOLERANCE  # what rounding can put above or below
        above = int(((logs > logs[wanted]) & ~near).sum())
        assert above + 1 <= row.rank <= above + near.sum()
    return found


def judged_as_told(compared: pd.DataFrame, best: str, others: tuple[str, ...]) -> None:
    """A comparison follows from the answers beside it."""
    for row in compared.to_dict("records"):
        numbers = [row[f"log_probability_{value}"] for value in (best, *others)]
        assert row["scorable"] == (not row["reason"]) and (not row["reason"] or row["reason"] in REASONS)
        if row["scorable"]:
            assert row["higher"] == (numbers[0] > max(numbers[1:])) and not any(map(math.isnan, numbers))
        else:
            assert math.isnan(row["higher"])


@pytest.mark.parametrize("name", ALL)
def test_inference_roles_and_negation_with_their_perturbations(name, tmp_path):
    model = animal(name)
    for file, text in (("inference", INFERENCE), ("roles", ROLES), ("negation", NEGATION)):
        (tmp_path / file).write_text(text, encoding="utf-8")
    inference = cloze_items.read_inference(tmp_path / "inference")
    roles = cloze_items.read_roles(tmp_path / "roles")
    negation = cloze_items.read_negation(tmp_path / "negation")
    answers = {"inference": asked(model, inference), "roles": asked(model, roles), "negation": asked(model, negation)}
    shuffled = perturb.shuffle_first(inference, draws=2)
    for items in (shuffled, perturb.truncate_second(shuffled), perturb.leave_out_each(inference)):
        asked(model, items)
    for items in (perturb.hide_object(roles), perturb.hide_subject(roles)):
        asked(model, items)
    hidden = cloze_metrics.role_pairs(asked(model, perturb.hide_both(roles)))
    assert not hidden["scorable"].any() and set(hidden["reason"]) <= REASONS
    units = {"inference": (["item"], "role", "expected", ("within", "between")),
             "roles": (["item"], "condition", "a", ("b",)),
             "negation": (["item", "polarity"], "role", "true", ("false",))}  # fmt: skip
    for kind, (unit, column, best, others) in units.items():
        compared = cloze_metrics.compare(answers[kind], unit, column, best, others)
        judged_as_told(compared, best, others)
        assert cloze_metrics.sensitivity(compared)["n"].tolist() == [len(compared)] * 2
        told = cloze_metrics.accuracy(answers[kind])
        for row in told.itertuples():
            assert row.scored + sum(map(int, re.findall(r"\d+", row.reasons))) == row.n
    cloze_metrics.tops_under_negation(answers["negation"])
    cloze_metrics.articles(answers["negation"], 5)
    cloze_metrics.subject_repeats(answers["negation"])


# --- whole sentences --------------------------------------------------------------------------------------------------


def left_to_right_scores(model, sentence: str) -> list[float]:
    """Each token masked with the later ones of its word: words are runs of letters or single marks, by character offsets."""
    encoding = model.tokenizer(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
    ids, mask = encoding["input_ids"], model.tokenizer.mask_token_id
    words = [found.span() for found in re.finditer(r"\w+|[^\w\s]", sentence)]
    places = [i for i, special in enumerate(encoding["special_tokens_mask"]) if not special]
    word_of = {
        i: next(number for number, (_, end) in enumerate(words) if encoding["offset_mapping"][i][1] <= end)
        for i in places
    }
    found = []
    for i in places:
        masked = [mask if j in places and j >= i and word_of[j] == word_of[i] else token for j, token in enumerate(ids)]
        unknown = ids[i] == model.tokenizer.unk_token_id
        found.append(math.nan if unknown else distribution(model, masked, i)[ids[i]].item())
    return found


def sentence_value(model, sentence: str, method: str, reduction: str) -> float:
    """The oracle's number for a sentence, NaN where it does not fit."""
    start = [] if model.family == "masked" or model.tokenizer.bos_token_id is None else [model.tokenizer.bos_token_id]
    ids = model.tokenizer(sentence)["input_ids"] if model.family == "masked" else [*start, *plain(model, sentence)]
    if len(ids) > model.maximum_length:
        return math.nan
    l2r = method == "within_word_l2r" and model.family == "masked"
    found = left_to_right_scores(model, sentence) if l2r else token_scores(model, sentence, "auto", "original")
    return float((np.nansum if reduction == "sum" else np.nanmean)(found))


PAIRS = [
    ("The key is here.", "The key are here."),
    ("The pilots laugh, the guard swims.", "The pilots laughs, the guard swims."),
    ("Does the souvenir walk?", "Do the souvenir walk?"),
    ("A 日 walks.", "A 日 walk."),
    ("The guard likes keys.", "The guard likes two small keys."),
    ("The keys " * 30, "The key " * 30),
]
METHODS = [(name, method) for name in ALL for method in ("original", "within_word_l2r")
           if name in MASKED or method == "within_word_l2r"]  # fmt: skip


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_blimp_and_whole_sentences_by_sum_and_by_mean(name, method, tmp_path):
    model = animal(name)
    more = {"field": "syntax", "linguistics_term": "agreement", "UID": "tiny"}
    lines = [json.dumps({"sentence_good": good, "sentence_bad": bad, "pairID": str(i), **more})
             for i, (good, bad) in enumerate(PAIRS)]  # fmt: skip
    (tmp_path / "tiny.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pairs, _, _ = blimp.read_pairs([tmp_path / "tiny.jsonl"])
    for reduction in ("sum", "mean"):
        judged = sentences.minimal_pairs(model, pairs, masked_method=method, reduction=reduction)
        for row, both in zip(judged.itertuples(), PAIRS, strict=True):
            good, bad = (sentence_value(model, sentence, method, reduction) for sentence in both)
            if math.isnan(good + bad):
                assert (row.reason, row.scorable) == ("too_long", False)
                continue
            assert row.scorable and row.log_probability_good == pytest.approx(good, abs=5 * TOLERANCE)
            assert row.log_probability_bad == pytest.approx(bad, abs=5 * TOLERANCE)
            assert row.correct == (row.margin > 0)
        assert judged["scorable"].any() and judged["reason"].iloc[-1] == "too_long"
    assert "bits on average" in blimp.surprisal_check(judged, model.vocabulary_size)
    assert set(blimp.likelier_words(model, pairs, masked_method=method)) <= {
        "good", "bad", "neither", "same words", "unknown",
    }  # fmt: skip


MESSY = ["The key is here.", "The  key is   here .", " The key", "The key ", "\tThe\nkey", "The\u00a0key\u3000is", "key-like x",
         "日本 the", "The (key) 'is'", "\u200bThe key"]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_the_words_of_a_sentence_are_all_its_pieces(name):
    """Whatever its white space, and whatever pieces a vocabulary makes of it: the words add up to the sentence."""
    for found in animal(name).score(MESSY):
        words = sentences.words(found)
        assert words["word"].tolist() == found.sentence.split() or found.reason == "too_long"
        assert words["pieces"].sum() == len(found.pieces)
        if not np.isnan(found.log_probabilities).any() and not found.reason:
            assert words["log_probability"].sum() == pytest.approx(sentences.reduce(found))


# --- files of pairs: long distance, coordination, tense -----------------------------------------------------------------

LONG_DISTANCE = """pattern\tconstr_id\tsent_id\tform\tclass\ttype\tlen_prefix\tsent
near\t0\t0\tlaughs\tcorrect\toriginal\t5\tThe author near the senators walks . <eos>
near\t0\t0\tlaugh\twrong\toriginal\t5\tThe author near the senators walks . <eos>
near\t0\t1\tis\tcorrect\tgenerated\t4\tThe key to cabinets is small . <eos>
near\t0\t1\tare\twrong\tgenerated\t4\tThe key to cabinets is small . <eos>
opens\t0\t0\tdoes\tcorrect\toriginal\t0\tdoes the farmer walk ? <eos>
opens\t0\t0\tdo\twrong\toriginal\t0\tdoes the farmer walk ? <eos>
"""
TENSE = """pattern\tsent\tsent_alt
short\tThe author and the guard are small.\tThe author and the guard is small.
long\tA farmer that has two cats walks.\tA farmer that has two cats walked and swims.
"""


@pytest.mark.parametrize("name", ALL)
def test_long_distance_coordination_and_tense_at_the_target_and_as_sentences(name, tmp_path):
    model = animal(name)
    (tmp_path / "a.tab").write_text(LONG_DISTANCE, encoding="utf-8")
    (tmp_path / "b.tab").write_text(TENSE, encoding="utf-8")
    at_target = "masked-target" if name in MASKED else "target-word"
    for file, mode in (("a.tab", "auto"), ("b.tab", at_target), ("a.tab", "whole-sentence"), ("b.tab", "auto")):
        pairs = evaluate.read_long_distance(tmp_path / file)
        judged = evaluate.evaluate(model, pairs, mode)
        assert evaluate.summary(judged)["n"].sum() == len(pairs) and set(judged["reason"]) <= REASONS | {""}
        assert evaluate.plain(evaluate.rows_of(judged)).count("\n") == len(pairs) + 1
        for row in judged.itertuples():
            if judged["mode"].iloc[0] == "whole-sentence":
                found = [
                    sentence_value(model, text, "within_word_l2r", "sum")
                    for text in (row.sentence_good, row.sentence_bad)
                ]
                expected = [row.log_probability_good, row.log_probability_bad]
                assert not row.scorable or found == pytest.approx(expected, abs=5 * TOLERANCE)
                continue
            logs = at_gap(model, Gap(row.left, row.right)) if row.good else np.array([])
            ids = [single(model, row.left, form) for form in (row.good, row.bad)]
            if not len(logs) or None in ids:
                assert not row.scorable and row.reason in REASONS and math.isnan(row.correct)
                continue
            assert [row.log_probability_good, row.log_probability_bad] == pytest.approx(logs[ids], abs=TOLERANCE)
            assert row.prediction_log_probability == pytest.approx(logs.max(), abs=TOLERANCE) and row.prediction
    if model.family == "masked":
        with pytest.raises(LitmusError, match="choose masked-target"):
            evaluate.evaluate(model, pairs, "target-word")
    assert evaluate.by_word(model, judged)["word"].notna().all()


# --- notebooks --------------------------------------------------------------------------------------------------------


def run(notebook: str, name: str, place: Path) -> tuple[subprocess.CompletedProcess, Path]:
    """A notebook through the runner on our own items, and its page."""
    out = place / "reports" / name / notebook
    limit = ["--set", "limit=2"] if notebook == "20_agreement" else []
    command = [sys.executable, "-m", "lib.run", notebook, "--model", str(folder(name)), "--out", str(out), *limit]
    environment = {**os.environ, "LITMUS_DATASETS": "", "LITMUS_CACHE": str(place / "cache")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return done, render(out.with_suffix(".ipynb"))


def test_a_notebook_whose_items_a_model_cannot_read_says_so_in_one_sentence(tmp_path):
    done, page = run("20_agreement", "no-pad-16-masked", tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert re.search(r"None of the \d+ pairs can be scored by this model \(\d+ too_long\); choose other", done.stderr)
    assert "This run failed. None of the" in page.read_text(encoding="utf-8")
    assert not page.with_name("20_agreement.json").exists()


def test_a_notebook_whose_words_a_model_cuts_into_pieces_comes_to_its_page_and_claims_nothing(tmp_path):
    done, page = run("32_negation", "byte-fallback-no-bar", tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    headline = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["headline"]
    assert (headline["value"], headline["coverage"]) == (None, 0)
    table = pd.read_parquet(page.with_suffix(".parquet"))
    assert set(table.loc[~table["scorable"], "reason"]) <= REASONS and table["top_piece"].str.len().gt(0).any()
    text = page.read_text(encoding="utf-8")
    assert "n/a" in text and "0\u00a0% could be scored" in text
