"""A zoo of tokenizers: every operation gives plain transformers' numbers on each, or refuses in one sentence.

The oracles below know nothing of Litmus: one text at a time, tokenized as running text and put through the whole network.
"""

import itertools
import json
import math
import string
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
import transformers
from cloze import item
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from lib import metrics, scoring, sentences
from lib.cloze.answers import ask
from lib.errors import LitmusError
from lib.models import Gap, load
from lib.models.protocol import StartToken, TargetPolicy

TOLERANCE = 1e-4
GAPS = [
    Gap("The keys to the cabinet", "on the table."),
    Gap("The author near the senators", "."),
    Gap("the pilot", "and swim!"),
    Gap("The pilot has two", "; cats laugh."),
]
FORMS = ["are", "laughs", "zebra", "(", "日本", ""]
SENTENCES = [*tiny.SENTENCES[:2], "Does the farmer walk?", "Keys", "the zebra + the guard", "A 日本 walks."]
LONG = "the keys to " * 20


# --- the animals ----------------------------------------------------------------------------------------------------


def fast(backend: Tokenizer, **names: object) -> transformers.PreTrainedTokenizerBase:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def unigram(special: Sequence[str], scheme: str = "always") -> Tokenizer:
    """SentencePiece's way: a bar for each space, pieces by probability."""
    pieces = [(piece, 0.0) for piece in special]
    pieces += [(f"▁{word}", -4.0) for word in tiny.words({"laughs", "swims"})] + [("swim", -5.0)]
    pieces += [(letter, -9.0) for letter in ["▁", *".,;!?", *tiny.LETTERS]]
    backend = Tokenizer(models.Unigram(pieces, unk_id=list(special).index("<unk>")))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return backend


def bert_like(vocabulary_size: int, **more: object) -> transformers.PreTrainedModel:
    torch.manual_seed(6)
    options = {"vocab_size": vocabulary_size, "max_position_embeddings": 40, **tiny.SMALL, **tiny.WIDE, **more}
    return transformers.BertForMaskedLM(transformers.BertConfig(**options))


def gpt_like(vocabulary_size: int, **more: object) -> transformers.PreTrainedModel:
    torch.manual_seed(7)
    options = {"n_positions": 40, "n_embd": 24, "n_layer": 2, "n_head": 2, "bos_token_id": None, "eos_token_id": None}
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=vocabulary_size, **options, **tiny.WIDE, **more)
    )


def prefix_space_masked(folder: Path) -> Path:
    """Like RoBERTa's vocabulary as fairseq's other models use it: the first word of a text has a space before it as well."""
    vocabulary, merges = tiny.byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    mask = AddedToken("<mask>", lstrip=True, special=True)
    tokenizer = transformers.RobertaTokenizer(vocab=vocabulary, merges=merges, mask_token=mask, add_prefix_space=True)
    return tiny.save(folder, bert_like(len(tokenizer), pad_token_id=1), tokenizer)


def prefix_space_causal(folder: Path) -> Path:
    vocabulary, merges = tiny.byte_level([tiny.END])
    tokenizer = transformers.GPT2Tokenizer(vocab=vocabulary, merges=merges, add_prefix_space=True)
    return tiny.save(folder, gpt_like(len(tokenizer)), tokenizer)


def unigram_masked(folder: Path) -> Path:
    """Like XLM-RoBERTa and ALBERT: SentencePiece pieces, and a mask that eats the space before it."""
    backend = unigram(["<s>", "<pad>", "</s>", "<unk>"])
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>"}
    tokenizer = fast(backend, **names, unk_token="<unk>", mask_token=AddedToken("<mask>", lstrip=True, special=True))
    return tiny.save(folder, bert_like(len(tokenizer), pad_token_id=1), tokenizer)


def no_pad_masked(folder: Path) -> Path:
    """No padding token, a limit of 16 tokens, padding and cutting on the left by its own account."""
    plain = tiny.bert_tokenizer(lower_case=True)
    backend = Tokenizer.from_str(plain.backend_tokenizer.to_str())
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    tokenizer = fast(backend, **names, model_max_length=16, padding_side="left", truncation_side="left")
    return tiny.save(folder, bert_like(len(tokenizer), pad_token_id=None), tokenizer)


def two_masks(folder: Path) -> Path:
    """A second token that looks like a mask, and is none: left over from another model."""
    tokenizer = tiny.bert_tokenizer(lower_case=False)
    tokenizer.add_tokens([AddedToken("<mask>", special=True)], special_tokens=True)
    return tiny.save(folder, bert_like(len(tokenizer)), tokenizer)


def byte_fallback(folder: Path, scheme: str = "first") -> Path:
    """Like Llama 2: SentencePiece's pairs, bytes for all other characters, a start token that the tokenizer adds itself."""
    special = ["<unk>", "<s>", "</s>"]
    words = [f"▁{word}" for word in tiny.words({"laughs", "swims"})]
    alphabet = ["▁", *".,;!?(+", *tiny.LETTERS]
    pieces, merges = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *alphabet], []
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in pieces:
                pieces.append(word[:end])
                merges.append((word[: end - 1], word[end - 1]))
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    if scheme == "replace":  # as Gemma does: no bar before the first word
        backend.normalizer = normalizers.Replace(" ", "▁")
        backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
        backend.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer = fast(backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>", padding_side="left")
    torch.manual_seed(8)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=40, num_key_value_heads=1, bos_token_id=1, eos_token_id=2,
        **tiny.SMALL, **tiny.WIDE,
    )  # fmt: skip
    return tiny.save(folder, transformers.LlamaForCausalLM(config), tokenizer)


def padded_vocabulary(folder: Path) -> Path:
    """More rows of weights than the tokenizer has pieces, as where a vocabulary is rounded up; end and padding are one."""
    vocabulary, merges = tiny.byte_level([tiny.END])
    tokenizer = transformers.GPT2Tokenizer(vocab=vocabulary, merges=merges, pad_token=tiny.END, padding_side="left")
    return tiny.save(folder, gpt_like(len(tokenizer) + 24), tokenizer)


MASKED: dict[str, Callable[[Path], Path]] = {
    **tiny.MASKED, "prefix-space-masked": prefix_space_masked, "unigram-masked": unigram_masked,
    "no-pad-16-masked": no_pad_masked, "two-masks": two_masks,
}  # fmt: skip
CAUSAL: dict[str, Callable[[Path], Path]] = {
    **tiny.CAUSAL, "prefix-space-causal": prefix_space_causal, "byte-fallback": byte_fallback,
    "byte-fallback-no-bar": lambda folder: byte_fallback(folder, "replace"), "padded-vocabulary": padded_vocabulary,
}  # fmt: skip
ALL = [*MASKED, *CAUSAL]


@cache
def folder(name: str) -> Path:
    """Made once a session."""
    made = (MASKED | CAUSAL)[name](Path(tiny._MADE.name) / f"zoo-{name}")
    assert json.loads((made / "tokenizer.json").read_text(encoding="utf-8"))
    return made


@cache
def animal(name: str, dtype: str = "float32"):
    return load(str(folder(name)), dtype=dtype)


# --- what plain transformers says -----------------------------------------------------------------------------------


@torch.no_grad()
def distribution(model, ids: Sequence[int], at: int) -> torch.Tensor:
    logits = model.network(input_ids=torch.tensor([list(ids)])).logits[0, at]
    return torch.log_softmax(logits.float(), dim=0)


def plain(model, text: str) -> list[int]:
    return model.tokenizer(text, add_special_tokens=False)["input_ids"]


def around(model, gap: Gap) -> tuple[list[int], list[int]]:
    """Ids before and behind the mask of a running text."""
    behind = gap.right if gap.right[:1] in [*".,;:!?"] else f" {gap.right}"
    ids = model.tokenizer(f"{gap.left} {model.tokenizer.mask_token}{behind}")["input_ids"]
    at = ids.index(model.tokenizer.mask_token_id)
    return ids[:at], ids[at + 1 :]


def before(model, gap: Gap, start_token: StartToken = "never") -> list[int]:
    start = [] if start_token == "never" or model.tokenizer.bos_token_id is None else [model.tokenizer.bos_token_id]
    return [*start, *plain(model, gap.left)]


def pieces_behind(model, left: str, form: str) -> list[int]:
    """Ids of a form in this very text: those of the text with it, less those of the text without it."""
    without, with_form = plain(model, left), plain(model, f"{left} {form}")
    assert with_form[: len(without)] == without
    return with_form[len(without) :]


def scorable(model, ids: Sequence[int]) -> bool:
    return bool(ids) and model.tokenizer.unk_token_id not in ids


def chain(model, gap: Gap, ids: Sequence[int], policy: TargetPolicy) -> float:
    """Log-probability of a form's pieces at a gap, one network call a piece."""
    total = 0.0
    for i, piece in enumerate(ids):
        if model.family == "causal":
            total += distribution(model, [*before(model, gap), *ids[:i]], -1)[piece].item()
        else:
            left, right = around(model, gap)
            later = ids[i + 1 :] if policy == "original" else [model.tokenizer.mask_token_id] * (len(ids) - i - 1)
            copy = [*left, *ids[:i], model.tokenizer.mask_token_id, *later, *right]
            total += distribution(model, copy, len(left) + i)[piece].item()
    return total


@cache
def ending(name: str) -> list[int]:
    """Vocabulary items that can stand behind a whole word: each decoded behind one; and whatever ends a text."""
    tokenizer = animal(name).tokenizer
    the = tokenizer("the", add_special_tokens=False)["input_ids"]
    found = set(tokenizer.all_special_ids) - ({tokenizer.unk_token_id} - {tokenizer.eos_token_id})
    for i in range(len(tokenizer)):
        behind = tokenizer.decode([*the, i], clean_up_tokenization_spaces=False).lstrip()[3:4]
        if behind.isspace() or (behind and behind in string.punctuation):
            found.add(i)
    return sorted(found)


def boundary(model, name: str, gap: Gap, ids: Sequence[int]) -> float:
    """Log-probability that the word ends behind a form."""
    found = distribution(model, [*before(model, gap), *ids], -1).double()
    return torch.logsumexp(found[ending(name)], dim=0).item()


def token_scores(model, sentence: str, start_token: StartToken, method: str) -> list[float]:
    """Log-probability of every token of a sentence, NaN for unknown ones and for a first one with nothing before it."""
    found: list[float] = []
    unknown = model.tokenizer.unk_token_id if model.tokenizer.unk_token_id != model.tokenizer.bos_token_id else None
    if model.family == "causal":
        start = before(model, Gap("", ""), start_token)
        ids = [*start, *plain(model, sentence)]
        for i in range(len(start), len(ids)):
            nothing = i == 0 or ids[i] == unknown
            found.append(math.nan if nothing else distribution(model, ids[:i], -1)[ids[i]].item())
        return found
    assert method == "original"
    ids = model.tokenizer(sentence)["input_ids"]
    special = model.tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
    for i, token in enumerate(ids):
        if token == unknown or not special[i]:
            copy = [*ids[:i], model.tokenizer.mask_token_id, *ids[i + 1 :]]
            found.append(math.nan if token == unknown else distribution(model, copy, i)[token].item())
    return found


def in_order(batches, rows: int) -> list:
    """Numbers or a reason for each row."""
    found = {}
    for batch in batches:
        for i, row in enumerate(batch.rows):
            found[row] = (
                batch.reason if batch.log_probabilities is None else batch.log_probabilities[i].double().numpy()
            )
    return [found[row] for row in range(rows)]


# --- fill, continue_, score -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_gaps_are_filled_as_running_text_says(name):
    model = animal(name)
    for gap, found in zip(GAPS, in_order(model.fill(GAPS), len(GAPS)), strict=True):
        if model.family == "causal":
            expected = distribution(model, before(model, gap), -1)
        else:
            left, right = around(model, gap)
            expected = distribution(model, [*left, model.tokenizer.mask_token_id, *right], len(left))
        np.testing.assert_allclose(found, expected.numpy(), atol=TOLERANCE)


@pytest.mark.parametrize("name", ALL)
def test_a_word_is_written_as_in_its_text(name):
    """The ids of a form do not depend on the words before it, and are those that the whole text has."""
    model = animal(name)
    for gap, form in itertools.product(GAPS, [form for form in FORMS if form]):
        ids = pieces_behind(model, gap.left, form)
        word = model.word(form, "middle")
        assert list(word.ids) == (ids if scorable(model, ids) else [])
        assert bool(word.ids) != bool(word.reason)


@pytest.mark.parametrize("policy", ["whole_word", "sum_l2r", "within_word_l2r", "original"])
@pytest.mark.parametrize("name", ALL)
def test_whole_forms_are_their_pieces_one_after_the_other(name, policy):
    model, gaps = animal(name), GAPS[:2]
    if model.family == "causal" and policy == "original":
        with pytest.raises(LitmusError, match="which a causal model cannot"):
            in_order(model.continue_(gaps, FORMS, policy), len(gaps))
        return
    several, longest = 0, max(len(model.word(form).ids) for form in FORMS)
    for gap, found in zip(gaps, in_order(model.continue_(gaps, FORMS, policy), len(gaps)), strict=True):
        if isinstance(found, str):
            assert found == "too_long"
            assert (
                longest
                + len(before(model, gap) if model.family == "causal" else [*itertools.chain(*around(model, gap))])
                > 16
            )
            continue
        for form, value in zip(FORMS, found, strict=True):
            ids = pieces_behind(model, gap.left, form) if form else []
            if not scorable(model, ids):
                assert np.isnan(value)
                continue
            ends = boundary(model, name, gap, ids) if model.family == "causal" and policy == "whole_word" else 0.0
            assert value == pytest.approx(chain(model, gap, ids, policy) + ends, abs=TOLERANCE), form
            several += len(ids) > 1
    assert several or model.maximum_length == 16


@pytest.mark.parametrize("name", ALL)
def test_sentences_are_scored_token_by_token(name):
    model = animal(name)
    for start_token in ("auto", "never") if model.family == "causal" else ("auto",):
        more = {"method": "original"} if model.family == "masked" else {}
        for found in model.score(SENTENCES, start_token, **more):
            if found.reason:
                assert (found.reason, model.maximum_length) == ("too_long", 16)
                continue
            expected = token_scores(model, found.sentence, start_token, "original")
            np.testing.assert_allclose(found.log_probabilities, expected, atol=TOLERANCE)
            assert len(found.spans) == len(found.pieces) == len(expected)


@pytest.mark.parametrize("name", ALL)
def test_what_is_too_long_or_holds_a_special_token_has_a_reason_and_the_rest_goes_on(name):
    model = animal(name)
    special = next(iter(sorted(set(model.tokenizer.all_special_tokens) - {model.tokenizer.unk_token})), None)
    gaps = [GAPS[0], Gap(LONG, "."), GAPS[1]] + ([Gap(f"The {special} keys", ".")] if special else [])
    kinds = [found if isinstance(found, str) else "" for found in in_order(model.fill(gaps), len(gaps))]
    assert kinds[:3] == ["", "too_long", ""]
    assert not special or kinds[3] in ("special_token_in_text", "mask_in_text")
    reasons = [found.reason for found in model.score([SENTENCES[0], LONG, "", *([f"a {special}"] if special else [])])]
    assert reasons[1:3] == ["too_long", "empty"]
    assert not special or reasons[3] == "special_token_in_text"


def test_a_second_token_that_looks_like_a_mask_is_none():
    """The gap is where the tokenizer's own mask is; the other one in a text is refused, and never filled."""
    model = animal("two-masks")
    other = model.tokenizer.convert_tokens_to_ids("<mask>")
    assert other not in (model.tokenizer.mask_token_id, model.tokenizer.unk_token_id)
    found = in_order(model.fill([Gap("The <mask> of the keys", "."), Gap("The [MASK] of", "."), GAPS[1]]), 3)
    assert found[:2] == ["special_token_in_text", "mask_in_text"] and not isinstance(found[2], str)
    assert model.word("<mask>").ids == () and model.score(["the <mask> is"])[0].reason == "special_token_in_text"


# --- the diagnostics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_pairs_at_the_gap_and_the_psycholinguistic_items(name):
    """TSE and the answers to items, read off the oracle's distributions; what is no single piece has a reason."""
    model = animal(name)
    goods, bads = ["are", "is", "laugh", "zebras"], ["is", "are", "are", "cats"]
    fills = scoring.fill(model, GAPS, [*goods, *bads])
    pairs = metrics.minimal_pairs(fills, goods, bads)
    items = pd.DataFrame([
        item(str(i), "true", GAPS[i].left, goods[i], (goods[i], bads[i])) for i in range(len(GAPS))
    ])  # fmt: skip
    answered, choices = ask(model, items)
    assert choices["start_token"] == "never"
    for i, (gap, good, bad) in enumerate(zip(GAPS, goods, bads, strict=True)):
        ids = [pieces_behind(model, gap.left, form) for form in (good, bad)]
        single = all(len(listed) == 1 and scorable(model, listed) for listed in ids)
        assert pairs["scorable"][i] == single and bool(pairs["reason"][i]) != single
        if single:
            expected = [chain(model, gap, listed, "single_token") for listed in ids]
            found = pairs.loc[i, ["log_probability_good", "log_probability_bad"]].tolist()
            np.testing.assert_allclose(found, expected, atol=TOLERANCE)
            assert pairs["correct"][i] == (expected[0] > expected[1])
            closed = Gap(gap.left, ".")
            assert answered["log_probability"][i] == pytest.approx(
                chain(model, closed, ids[0], "single_token"), abs=TOLERANCE
            )
        assert len(answered["top_pieces"][i]) >= 20 and all(
            isinstance(piece, str) and piece for piece in answered["top_pieces"][i]
        )
    assert len(pairs) == len(answered) == len(GAPS)


@pytest.mark.parametrize("method", ["original", "within_word_l2r"])
@pytest.mark.parametrize("name", ALL)
def test_whole_sentence_pairs_are_sums_of_their_tokens(name, method):
    model = animal(name)
    if model.family == "causal" and method == "original":
        return  # only masked models have methods
    good, bad = "The key is here.", "The key are here."
    [found] = sentences.minimal_pairs(
        model, pd.DataFrame({"good": [good], "bad": [bad]}), masked_method=method
    ).to_dict("records")  # fmt: skip
    assert found["scorable"], found["reason"]
    if method == "original" or model.family == "causal":
        sums = [np.nansum(token_scores(model, text, "auto", method)) for text in (good, bad)]
        np.testing.assert_allclose([found["log_probability_good"], found["log_probability_bad"]], sums, atol=TOLERANCE)
        assert found["correct"] == (sums[0] > sums[1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["roberta", "unigram-masked", "byte-fallback", "prefix-space-causal"])
def test_half_precision_is_near_and_its_logarithms_are_whole(name, dtype):
    model, exact = animal(name, dtype), animal(name)
    assert model.identity["dtype"] == dtype
    for found, full in zip(in_order(model.fill(GAPS), 4), in_order(exact.fill(GAPS), 4), strict=True):
        assert np.exp(found).sum() == pytest.approx(1, abs=1e-4)  # a softmax in half precision misses by more
        assert np.abs(found - full).max() < 1.0
    pairs = metrics.minimal_pairs(scoring.fill(model, GAPS[:1], ["are", "is"]), ["are"], ["is"])
    assert pairs["scorable"].all()
    assert scoring.fill(model, GAPS[:1], ["are"]).choices["dtype"] == dtype
