"""Whole sentences: how probable a model finds them, token by token, word by word, and pair by pair.

``score`` asks a model about each distinct sentence once and keeps what it says; ``reduce`` makes one number of a sentence,
``words`` a table of surprisals, ``minimal_pairs`` the judgement on pairs of sentences as in BLiMP (Warstadt et al. 2020).
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from lib.errors import LitmusError
from lib.models.protocol import LanguageModel, MaskedMethod, StartToken, TokenScores
from lib.progress import bar
from lib.store import Store, code_version, digest

Reduction = Literal["sum", "mean"]
Unknown = Literal["refuse", "leave_out"]
NEAR = 1e-4  # nats: what batches, threads and machines can change in float32
PAIRS = 2048  # whose tokens are held at once, so that memory does not grow with the table
CHUNK = 256  # sentences after which scores are kept: what a kill can cost


def score(
    model: LanguageModel,
    sentences: Sequence[str],
    start_token: StartToken = "auto",
    masked_method: MaskedMethod = "within_word_l2r",
    store: Store | None = None,
) -> list[TokenScores]:
    """The log-probability of every token of every sentence, in the order given; each distinct sentence is asked once.

    ``start_token`` is about causal and recurrent models: ``never``, ``auto`` (if the model defines one), ``always``.
    ``masked_method`` is about masked models: ``original`` pseudo-log-likelihood (Salazar et al. 2020) or
    ``within_word_l2r`` (Kauf and Ivanova 2023). With a ``store``, what was scored before is not scored again, and new
    scores are kept as they come. A sentence that cannot be scored comes with its reason and is not kept. A recurrent model
    that carries its state from sentence to sentence is asked about all of them, in order, and nothing is kept.
    """
    if model.identity.get("start_state") == "carry":  # every sentence counts, in order, and none stands for itself
        return ask(model, sentences, start_token, masked_method)
    about_model = (masked_method,) if model.family == "masked" else (start_token,)
    method = digest("sentences", about_model, code_version()).hex()
    distinct = list(dict.fromkeys(sentences))
    keys = {sentence: digest(method, sentence) for sentence in distinct}
    kept = store.get(keys.values()) if store else {}
    found = {s: from_bytes(s, kept[key]) for s, key in keys.items() if key in kept}
    missing = [sentence for sentence in distinct if sentence not in found]
    if model.family == "causal":
        missing.sort()  # neighbours share beginnings, which are then computed once
    with bar(total=len(missing), desc=f"{model.name}: sentences", unit="sentence", shown=len(missing) > 1) as done:
        for start in range(0, len(missing), CHUNK):
            scored = ask(model, missing[start : start + CHUNK], start_token, masked_method)
            if store:
                store.put({keys[s.sentence]: to_bytes(s) for s in scored if not s.reason})
            found |= {s.sentence: s for s in scored}
            done.update(len(scored))
    return [found[sentence] for sentence in sentences]


def ask(
    model: LanguageModel, sentences: Sequence[str], start_token: StartToken, masked_method: MaskedMethod
) -> list[TokenScores]:
    """The model's own ``score``: only a masked one has methods to choose from."""
    if model.family == "masked":
        return model.score(sentences, start_token, method=masked_method)  # type: ignore[call-arg]
    return model.score(sentences, start_token)


def reduce(token_scores: TokenScores, reduction: Reduction = "sum", unknown: Unknown = "refuse") -> float:
    """One number for a sentence: the ``sum`` of its tokens' log-probabilities (natural log), or their ``mean``.

    A first token with nothing before it is left out. A sentence with unknown tokens has no number, unless ``unknown`` is
    ``leave_out``; nor has one that could not be scored: NaN.
    """
    if reduction not in ("sum", "mean"):
        raise LitmusError(f"'{reduction}' is no reduction; choose 'sum' or 'mean'.")
    values = token_scores.log_probabilities[int(token_scores.first_unscored) :]
    if unknown == "leave_out":
        values = values[~np.isnan(values)]
    if not len(values):
        return float("nan")
    return float(values.sum() if reduction == "sum" else values.mean())


def minimal_pairs(
    model: LanguageModel,
    table: pd.DataFrame,
    start_token: StartToken = "auto",
    masked_method: MaskedMethod = "within_word_l2r",
    reduction: Reduction = "sum",
    store: Store | None = None,
) -> pd.DataFrame:
    """``table`` (columns ``good`` and ``bad``, two sentences) with the model's judgement on each pair.

    New columns: ``log_probability_good``, ``log_probability_bad`` (reduced, natural log), ``tokens_good``, ``tokens_bad``
    (tokens that were scored), ``unknown`` (unknown tokens left out of both sentences), ``margin``, ``scorable``, ``reason``
    (why not: ``identical`` where both sentences are the same tokens), ``tie``, ``near_tie`` (a margin under 1e-4, which
    another machine or half precision could turn), ``correct`` (1 or 0, NaN when unscorable; a tie is not correct), and the
    choices: ``start_token``, ``masked_method``, ``reduction``, ``dtype``.

    An unknown token has no score. Where both sentences hold the same ones, all others are compared; where they do not,
    the pair is unscorable.
    """
    rows = []
    for start in range(0, len(table), PAIRS):
        some = table.iloc[start : start + PAIRS]
        both = [sentence for pair in zip(some["good"], some["bad"], strict=True) for sentence in pair]
        scores = score(model, both, start_token, masked_method, store)
        rows += [judged(first, second, reduction) for first, second in zip(scores[::2], scores[1::2], strict=True)]
    found = pd.DataFrame(rows, columns=list(JUDGEMENT), index=table.index).astype(JUDGEMENT)
    return table.assign(**found, **choices(model, start_token, masked_method, reduction))


JUDGEMENT = {
    "log_probability_good": float, "log_probability_bad": float, "tokens_good": int, "tokens_bad": int, "unknown": int,
    "margin": float, "scorable": bool, "reason": str, "tie": bool, "near_tie": bool,
    "correct": float,
}  # fmt: skip


def judged(good: TokenScores, bad: TokenScores, reduction: Reduction) -> tuple:
    """The values of ``JUDGEMENT`` for one pair."""
    unknown = [unknown_words(scores) for scores in (good, bad)]
    reason = good.reason or bad.reason
    if not reason and unknown[0] != unknown[1]:  # two unknown words are one piece, and not the same word
        reason = "unknown"
    if not reason and good.pieces == bad.pieces:
        reason = "identical"
    values = [reduce(scores, reduction, "leave_out") for scores in (good, bad)]
    tokens = [int(np.isfinite(scores.log_probabilities).sum()) for scores in (good, bad)]
    margin = values[0] - values[1]
    if not reason and np.isnan(margin):
        reason = "nothing_scored"
    scorable = not reason
    correct = float(margin > 0) if scorable else float("nan")
    ties = scorable and margin == 0, scorable and abs(margin) < NEAR
    return *values, *tokens, unknown[0].total(), margin, scorable, reason, *ties, correct


def unknown_words(scores: TokenScores) -> Counter:
    """The texts of a sentence's unknown tokens, and how often each stands in it."""
    first = int(scores.first_unscored)
    pairs = zip(scores.spans[first:], scores.log_probabilities[first:], strict=True)
    return Counter(scores.sentence[start:end] for (start, end), value in pairs if np.isnan(value))


def choices(
    model: LanguageModel, start_token: StartToken, masked_method: MaskedMethod, reduction: Reduction
) -> dict[str, str]:
    """What whole-sentence scores depend on, for the results; empty where a choice does not concern the family."""
    masked = model.family == "masked"
    return {
        "start_token": "" if masked else start_token, "masked_method": masked_method if masked else "",
        "reduction": reduction, "dtype": model.identity["dtype"],
    }  # fmt: skip


def words(token_scores: TokenScores, critical: tuple[int, int] | None = None) -> pd.DataFrame:
    """A sentence as readers know it: one row a white-space word.

    Columns: ``sentence``, ``position`` (of the word, from 0), ``word``, ``pieces`` (how many), ``log_probability`` (sum of
    its pieces, natural log; NaN where one has none), ``bits`` (surprisal), ``critical`` (whether the word lies in the
    region ``critical``, (start, end) characters of the sentence).
    """
    sentence, rows = token_scores.sentence, []
    matches = list(re.finditer(r"\S+", sentence)) if token_scores.pieces else []
    # A piece belongs to the word that its end lies in; white space alone to the word behind it, at the end to the last one.
    ends = [match.end() for match in matches]
    word_of = np.searchsorted(ends, [end for _, end in token_scores.spans]).clip(max=len(ends) - 1)
    start, stop = critical or (0, 0)
    for position, match in enumerate(matches):
        inside = np.flatnonzero(word_of == position)
        total = token_scores.log_probabilities[inside].sum() if len(inside) else np.nan
        marked = match.start() < stop and match.end() > start
        rows.append([sentence, position, match.group(), len(inside), total, -total / np.log(2), marked])
    return pd.DataFrame(rows, columns=["sentence", "position", "word", "pieces", "log_probability", "bits", "critical"])


def difference(sentence: str, other: str) -> tuple[int, int]:
    """The region of ``sentence`` that ``other`` does not share: from the first to the last differing word, in characters."""
    matches, others = list(re.finditer(r"\S+", sentence)), other.split()
    texts = [match.group() for match in matches]
    before = 0
    while before < min(len(texts), len(others)) and texts[before] == others[before]:
        before += 1
    after = 0
    while after < min(len(texts), len(others)) - before and texts[-1 - after] == others[-1 - after]:
        after += 1
    inside = matches[before : len(matches) - after]
    return (inside[0].start(), inside[-1].end()) if inside else (0, 0)


def to_bytes(scores: TokenScores) -> bytes:
    """What is kept of a scored sentence."""
    plain = [scores.pieces, scores.spans, scores.log_probabilities.tolist(), scores.first_unscored]
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def from_bytes(sentence: str, content: bytes) -> TokenScores:
    """A scored sentence from what was kept of it, number for number."""
    pieces, spans, log_probabilities, first_unscored = json.loads(content)
    values = np.array(log_probabilities, dtype=float)
    return TokenScores(sentence, pieces, [tuple(span) for span in spans], values, "", first_unscored)
