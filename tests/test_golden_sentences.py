"""Whole-sentence scores against minicons' recorded numbers on 200 BLiMP pairs."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from lib.models import load
from lib.models.bundled import distilbert_with
from lib.sentences import reduce, score

pytestmark = pytest.mark.bundled
CLOSE = 5e-4


@pytest.fixture(scope="module")
def recorded(golden, datasets) -> tuple[list[tuple[str, str]], dict[str, np.ndarray]]:
    """The pairs of sentences, and minicons' scores of them by setting, shape (pairs, 2)."""
    found = json.loads((golden / "minicons.json").read_text())
    paradigms = {pair["uid"] for pair in found["pairs"]}
    lines = {uid: Path(datasets / "blimp" / f"{uid}.jsonl").read_text().splitlines() for uid in paradigms}
    rows = [json.loads(lines[pair["uid"]][pair["row"]]) for pair in found["pairs"]]
    pairs = [(row["sentence_good"], row["sentence_bad"]) for row in rows]
    return pairs, {name: np.array(scores) for name, scores in found["scores"].items()}


def ours(model, pairs, **choices) -> np.ndarray:
    scores = score(model, [sentence for pair in pairs for sentence in pair], **choices)
    return np.array([reduce(found) for found in scores]).reshape(-1, 2)


@pytest.mark.parametrize(
    ("start_token", "setting", "first"), [("never", "no_bos", 200), ("always", "bos", 200), ("auto", "bos", 5)]
)
def test_case_43_causal_sums_with_and_without_a_start_token(start_token, setting, first, recorded, causal):
    pairs, expected = recorded
    found = ours(causal, pairs[:first], start_token=start_token)
    assert np.abs(found - expected[f"smollm2-135m-instruct/sum/{setting}"][:first]).max() < CLOSE


@pytest.fixture(scope="module")
def pilot_model(pilot):
    return load(str(distilbert_with(pilot)))


@pytest.mark.parametrize("method", ["original", "within_word_l2r"])
def test_case_21_masked_sums_by_both_methods(method, recorded, pilot_model):
    """minicons takes words from the tokenizer, which splits at apostrophes and hyphens: the same words everywhere else."""
    pairs, expected = recorded
    found = ours(pilot_model, pairs, masked_method=method)
    split = np.array([[bool(re.search(r"\w['’-]\w", sentence)) for sentence in pair] for pair in pairs])
    compared = np.ones_like(split) if method == "original" else ~split
    assert compared.mean() > 0.6
    differences = np.abs(found - expected[f"distilbert-mlm-pilot/pll/{method}"])
    assert differences[compared].max() < CLOSE
