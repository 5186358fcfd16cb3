"""Masked and causal models against brute force: one text at a time through the whole network, nothing clever."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.errors import LitmusError
from lib.models import Gap, load, only
from lib.models.masked import words_of

TOLERANCE = 1e-4
SENTENCES = [
    "The keys to the cabinet are on the table.",
    "Does the farmer walk?",
    "the souvenir near the traveler",
    "Keys",
    "the authors that the guard likes are young",
]
GAPS = [
    Gap("The keys to the cabinet", "on the table."),
    Gap("The key to the cabinets", "on the table."),
    Gap("", "the farmer walk?"),
    Gap("The author near the senators", "."),
    Gap("Keys", "small"),
    Gap("the pilot that the guard", ", and swim!"),
]


@pytest.fixture(params=list(tiny.MASKED))
def tiny_masked(request):
    return tiny.model(request.param)


@pytest.fixture(params=list(tiny.CAUSAL))
def tiny_causal(request):
    return tiny.model(request.param)


@pytest.fixture(params=[*tiny.MASKED, *tiny.CAUSAL])
def either(request):
    return tiny.model(request.param)


@torch.no_grad()
def masked_oracle(model, gap):
    left = f"{gap.left} " if gap.left else ""
    right = gap.right if gap.right[:1] in ".,;:!?" else f" {gap.right}"
    inputs = model.tokenizer(f"{left}{model.tokenizer.mask_token}{right}", return_tensors="pt")
    at = inputs["input_ids"][0].tolist().index(model.tokenizer.mask_token_id)
    return torch.log_softmax(model.network(**inputs).logits[0, at], dim=0)


@torch.no_grad()
def causal_oracle(model, gap, start=()):
    ids = [*start, *model.tokenizer(gap.left, add_special_tokens=False)["input_ids"]]
    return torch.log_softmax(model.network(torch.tensor([ids])).logits[0, -1], dim=0)


@torch.no_grad()
def masked_score_oracle(model, sentence):
    inputs = model.tokenizer(sentence, return_tensors="pt", return_special_tokens_mask=True)
    special = inputs.pop("special_tokens_mask")[0]
    scores = []
    for at, token in enumerate(inputs["input_ids"][0].tolist()):
        if not special[at]:
            ids = inputs["input_ids"].clone()
            ids[0, at] = model.tokenizer.mask_token_id
            scores.append(torch.log_softmax(model.network(ids).logits[0, at], dim=0)[token].item())
    return np.array(scores)


def distributions(model, gaps, **options):
    """What ``fill`` streams, put back in order: a row of log-probabilities or a reason for each gap."""
    found = {}
    for batch in model.fill(gaps, **options):
        for i, row in enumerate(batch.rows):
            assert row not in found, "every gap comes exactly once"
            found[row] = batch.reason if batch.log_probabilities is None else batch.log_probabilities[i]
    assert sorted(found) == list(range(len(gaps)))
    return [found[row] for row in range(len(gaps))]


def same(found, expected, tolerance=TOLERANCE):
    return float((torch.as_tensor(found) - torch.as_tensor(expected)).abs().max()) < tolerance


# --- fill -----------------------------------------------------------------------------------------------------------


def test_case_42_masked_fill_equals_brute_force(tiny_masked):
    for gap, found in zip(GAPS, distributions(tiny_masked, GAPS), strict=True):
        assert same(found, masked_oracle(tiny_masked, gap))


def test_case_42_causal_fill_equals_brute_force(tiny_causal):
    gaps = [gap for gap in GAPS if gap.left]
    for gap, found in zip(gaps, distributions(tiny_causal, gaps), strict=True):
        assert same(found, causal_oracle(tiny_causal, gap))


@pytest.mark.parametrize(("name", "start_id"), [("gpt2", 0), ("llama", 1)])
def test_case_43_a_start_token_comes_first_when_asked_and_once(name, start_id):
    model = tiny.model(name)
    for policy in ("auto", "always"):
        for gap, found in zip(GAPS, distributions(model, GAPS, start_token=policy), strict=True):
            assert same(found, causal_oracle(model, gap, [start_id]))
    [with_start], [without] = (distributions(model, GAPS[:1], start_token=policy) for policy in ("auto", "never"))
    assert not same(with_start, without, 0.01)


def test_a_model_without_a_start_token_goes_without_or_says_so():
    model = tiny.model("gpt2-without-start")
    [found] = distributions(model, GAPS[:1], start_token="auto")
    assert same(found, causal_oracle(model, GAPS[0]))
    with pytest.raises(LitmusError, match="defines no start token"):
        distributions(model, GAPS[:1], start_token="always")


def test_an_unknown_start_token_policy_is_refused():
    with pytest.raises(LitmusError, match="'sometimes' is no start-token policy"):
        distributions(tiny.model("gpt2"), GAPS[:1], start_token="sometimes")


def test_the_output_layer_sees_only_the_positions_that_are_read(either):
    seen, output_layer = [], either.network.get_output_embeddings()
    hook = output_layer.register_forward_hook(lambda _, arguments, __: seen.append(arguments[0].shape))
    try:
        distributions(either, [gap for gap in GAPS if gap.left])
    finally:
        hook.remove()
    assert sum(rows * positions for rows, positions, _ in seen) == 5


def test_distributions_are_float32_over_the_whole_vocabulary(either):
    found = distributions(either, GAPS[:1])[0]
    assert found.dtype == torch.float32
    assert found.shape == (either.vocabulary_size,)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_case_46_order_and_token_budget_and_batch_of_one_change_nothing(either):
    gaps = [gap for gap in GAPS if gap.left]
    together = distributions(either, gaps)
    backwards = distributions(either, gaps[::-1])[::-1]
    alone = [distributions(either, [gap])[0] for gap in gaps]
    for budget in (1, 25, 100_000):
        for found in (backwards, alone, distributions(replace(either, token_budget=budget), gaps)):
            assert all(same(a, b, 1e-5) for a, b in zip(together, found, strict=True))


def test_case_55_the_tokenizers_padding_side_changes_nothing(either, monkeypatch):
    gaps = [gap for gap in GAPS if gap.left]
    before, scores = distributions(either, gaps), either.score(SENTENCES)
    for side in ("left", "right"):
        monkeypatch.setattr(either.tokenizer, "padding_side", side)
        assert all(same(a, b, 1e-5) for a, b in zip(before, distributions(either, gaps), strict=True))
        for a, b in zip(scores, either.score(SENTENCES), strict=True):
            np.testing.assert_allclose(a.log_probabilities, b.log_probabilities, atol=1e-5)


def test_case_49_no_batch_is_larger_than_the_token_budget(either, monkeypatch):
    model, sizes, plain = replace(either, token_budget=40), [], type(either).padded
    monkeypatch.setattr(
        type(either), "padded", lambda self, ids: sizes.append(len(ids) * max(map(len, ids))) or plain(self, ids)
    )
    distributions(model, [gap for gap in GAPS if gap.left] * 5)
    model.score(SENTENCES * 5)
    assert len(sizes) > 5
    assert max(sizes) <= 40


def test_case_49_a_batch_of_many_contexts_yields_few_distributions_at_a_time_and_a_large_vocabulary_has_small_batches(
    monkeypatch,
):
    model = tiny.model("gpt2")
    gaps = [Gap(f"The {one} {other}", "") for one in tiny.words(set()) for other in ("key", "keys", "table")]
    batches = list(model.fill(gaps))
    assert max(len(batch.rows) for batch in batches) <= 128 < len(gaps)
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(gaps)))
    assert model.budget == model.token_budget
    monkeypatch.setattr(type(model), "vocabulary_size", 250_000)
    assert model.budget == 2**26 // 250_000


def test_case_30_an_empty_context_is_filled_by_masked_models_and_by_causal_ones_with_a_start_token():
    for name in tiny.MASKED:
        [found] = distributions(tiny.model(name), [Gap("", "")])
        assert same(found, masked_oracle(tiny.model(name), Gap("", "")))
    gap = Gap("", "the farmer walk?")
    for name in tiny.CAUSAL:
        assert distributions(tiny.model(name), [gap]) == ["empty_context"]
    [found] = distributions(tiny.model("gpt2"), [gap], start_token="auto")
    assert same(found, causal_oracle(tiny.model("gpt2"), gap, [0]))


def test_case_28_a_space_at_the_end_of_the_context_changes_nothing(tiny_causal):
    plain, spaced = distributions(
        tiny_causal, [Gap("The keys to the cabinet", ""), Gap("The keys to the cabinet ", "")]
    )
    assert same(plain, spaced, 0.05)  # one of them is a bfloat16 model
    assert tiny_causal.seen(Gap("The keys ", "on the table.")) == Gap("The keys", "")


def test_a_masked_model_sees_both_sides(tiny_masked):
    first, second = distributions(tiny_masked, [Gap("The keys", "on the table."), Gap("The keys", "young.")])
    assert not same(first, second, 0.01)


@pytest.mark.parametrize(("name", "limit"), [("bert-cased", 24), ("roberta", 20), ("gpt2", 24), ("llama", 16)])
def test_case_50_too_long_is_a_reason_and_the_rest_goes_on(name, limit):
    model = tiny.model(name)
    assert model.maximum_length == limit
    added = {"bert-cased": 3, "roberta": 3}.get(name, 0)  # [CLS], [SEP] and the mask
    fits, too_long = (Gap(" ".join(["the"] * (limit - added + more)), "") for more in (0, 1))
    short = GAPS[0]
    found = distributions(model, [too_long, fits, short])
    assert found[0] == "too_long"
    oracle = masked_oracle if model.family == "masked" else causal_oracle
    assert same(found[1], oracle(model, fits))
    assert same(found[2], oracle(model, short))
    scored = model.score([too_long.left + " the the the", SENTENCES[0]], start_token="never")
    assert [s.reason for s in scored] == ["too_long", ""]
    assert scored[0].pieces == [] and len(scored[0].log_probabilities) == 0


@pytest.mark.parametrize("name", list(tiny.MASKED))
def test_special_tokens_in_an_item_are_a_reason(name):
    model = tiny.model(name)
    mask, end = model.tokenizer.mask_token, model.tokenizer.sep_token
    gaps = [Gap(f"The keys {mask}", "here"), Gap(f"The keys {end}", "here"), GAPS[0]]
    found = distributions(model, gaps)
    assert found[:2] == ["mask_in_text", "special_token_in_text"]
    assert same(found[2], masked_oracle(model, GAPS[0]))
    sentences = [f"The keys {mask} here", f"The keys {end} here"]
    assert [s.reason for s in model.score(sentences)] == ["special_token_in_text"] * 2


@pytest.mark.parametrize(("name", "token"), [("gpt2", "<|endoftext|>"), ("llama", "</s>"), ("llama", "<s>")])
def test_special_tokens_in_a_causal_item_are_a_reason(name, token):
    model = tiny.model(name)
    for policy in ("never", "auto"):
        found = distributions(model, [Gap(f"The keys {token} are", ""), Gap("The keys", "")], start_token=policy)
        assert found[0] == "special_token_in_text"
        assert not isinstance(found[1], str)
        [scored] = model.score([f"The keys {token}"], start_token=policy)
        assert scored.reason == "special_token_in_text"


@pytest.mark.parametrize("name", ["bert-cased", "llama"])
def test_an_unknown_word_may_stand_in_a_context(name):
    model, gap = tiny.model(name), Gap("The 日 near the table", "young")
    assert model.tokenizer.unk_token_id in model.tokenizer(gap.left)["input_ids"]
    [found] = distributions(model, [gap])
    assert same(found, (masked_oracle if model.family == "masked" else causal_oracle)(model, gap))


def test_a_mask_that_does_not_eat_its_space_gives_the_same_numbers(tmp_path):
    """Folders of slow tokenizers (vocab.json, merges.txt) lose the habit; a bare space piece would stand before the gap."""
    folder = shutil.copytree(tiny.folder("roberta"), tmp_path / "old")
    backend = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "vocab.json").write_text(json.dumps(backend["vocab"]))
    (folder / "merges.txt").write_text("\n".join(" ".join(pair) for pair in backend["merges"]))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text("{}")
    old = load(str(folder))
    assert len(old.tokenizer("the <mask>", add_special_tokens=False)["input_ids"]) == 3  # else this test shows nothing
    for a, b in zip(distributions(tiny.model("roberta"), GAPS), distributions(old, GAPS), strict=True):
        assert same(a, b, 1e-5)


def test_case_54_a_masked_tokenizer_that_adds_no_special_tokens(tmp_path):
    tokenizer = tiny.bert_tokenizer(lower_case=False)
    tokenizer.backend_tokenizer.post_processor = tiny.processors.ByteLevel()
    bare = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, model_max_length=24,
        **{f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")},
    )  # fmt: skip
    model = load(str(tiny.save(tmp_path / "bare", tiny.model("bert-cased").network, bare)))
    assert model.tokenizer("The keys")["input_ids"] == bare("The keys", add_special_tokens=False)["input_ids"]
    [found] = distributions(model, GAPS[:1])
    assert same(found, masked_oracle(model, GAPS[0]))
    [scored] = model.score(["The keys are"])
    assert scored.pieces == ["The", "keys", "are"]
    np.testing.assert_allclose(scored.log_probabilities, masked_score_oracle(model, "The keys are"), atol=TOLERANCE)


def test_no_gaps_and_no_sentences_give_nothing(either):
    assert list(either.fill([])) == []
    assert either.score([]) == []


# --- score ----------------------------------------------------------------------------------------------------------


def test_causal_score_is_transformers_own_loss(tiny_causal):
    starts = {"never": [], "auto": [i for i in [tiny_causal.tokenizer.bos_token_id] if i is not None]}
    for policy, start in starts.items():
        for sentence, scored in zip(SENTENCES, tiny_causal.score(SENTENCES, start_token=policy), strict=True):
            ids = torch.tensor([[*start, *tiny_causal.tokenizer(sentence, add_special_tokens=False)["input_ids"]]])
            if ids.shape[1] < 2:
                assert np.isnan(scored.log_probabilities).all()
                continue
            with torch.no_grad():
                loss = tiny_causal.network(ids, labels=ids).loss.item()
            assert -np.nanmean(scored.log_probabilities) == pytest.approx(loss, abs=TOLERANCE)
            assert len(scored.log_probabilities) == ids.shape[1] - len(start)


def test_case_43_an_unscored_first_token_is_not_a_number(tiny_causal):
    for scored in tiny_causal.score(SENTENCES, start_token="never"):
        assert np.isnan(scored.log_probabilities[0])
        assert np.isfinite(scored.log_probabilities[1:]).all()


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_case_43_with_a_start_token_every_token_is_scored(name):
    for scored in tiny.model(name).score(SENTENCES):
        assert np.isfinite(scored.log_probabilities).all()


def test_masked_score_is_brute_force_one_mask_at_a_time(tiny_masked):
    for sentence, scored in zip(SENTENCES, tiny_masked.score(SENTENCES), strict=True):
        np.testing.assert_allclose(scored.log_probabilities, masked_score_oracle(tiny_masked, sentence), atol=TOLERANCE)


def test_case_21_later_pieces_of_a_word_are_masked_with_it():
    """By hand: of 's ##o ##u ...' each piece sees what is left of it in its word, never what is right of it."""
    model, sentence = tiny.model("bert-cased"), "the zebra walk"
    ids = model.tokenizer(sentence)["input_ids"]
    word = [i for i, piece in enumerate(model.tokenizer.convert_ids_to_tokens(ids)) if piece.startswith(("z", "##"))]
    assert len(word) >= 3
    [scored] = model.score([sentence], method="within_word_l2r")
    for i, at in enumerate(word):
        copy = torch.tensor([ids])
        copy[0, word[i:]] = model.tokenizer.mask_token_id
        with torch.no_grad():
            expected = torch.log_softmax(model.network(copy).logits[0, at], dim=0)[ids[at]].item()
        assert scored.log_probabilities[at - 1] == pytest.approx(expected, abs=TOLERANCE)


def test_case_21_a_bare_space_piece_belongs_to_the_word_behind_it():
    model, sentence = tiny.model("roberta"), "the zzq walk"
    [scored] = model.score([sentence])
    assert scored.pieces == ["the", "Ġ", "z", "z", "q", "Ġwalk"]
    assert words_of(sentence, scored.spans) == [1, 2, 2, 2, 2, 3]
    [within] = model.score([sentence], method="within_word_l2r")
    assert within.log_probabilities[[0, 4, 5]] == pytest.approx(scored.log_probabilities[[0, 4, 5]], abs=TOLERANCE)
    assert abs(within.log_probabilities[1] - scored.log_probabilities[1]) > 0.01
    assert words_of("the walk", [(0, 0), (0, 3), (4, 8)]) == [1, 1, 2]  # a space that a tokenizer puts first


WHOLE_WORDS = {"bert-cased": "the keys to cabinet are on table", "bert-uncased": "The keys Are on TABLE the",
               "roberta": "the to are on the near and"}  # fmt: skip


@pytest.mark.parametrize("name", list(tiny.MASKED))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_case_21_both_masked_scores_agree_when_every_word_is_one_piece(name, data):
    model = tiny.model(name)
    words = ["the", *data.draw(st.lists(st.sampled_from(WHOLE_WORDS[name].split()), min_size=1, max_size=8))]
    original, within = (model.score([" ".join(words)], method=m)[0] for m in ("original", "within_word_l2r"))
    assert len(original.pieces) == len(words)  # one piece a word
    np.testing.assert_allclose(original.log_probabilities, within.log_probabilities, atol=1e-5)


def test_an_unknown_masked_score_is_refused():
    with pytest.raises(LitmusError, match="'sideways' is no masked score"):
        tiny.model("bert-cased").score(["The keys"], method="sideways")


def test_case_45_special_tokens_are_never_scored_and_spans_spell_the_sentence(either):
    for sentence, scored in zip(SENTENCES, either.score(SENTENCES), strict=True):
        assert not set(scored.pieces) & set(either.tokenizer.all_special_tokens)
        letters = "".join(sentence[start:end] for start, end in scored.spans).replace(" ", "")
        assert letters == sentence.replace(" ", "")
        assert len(scored.pieces) == len(scored.spans) == len(scored.log_probabilities)


def test_case_46_scores_do_not_depend_on_company(either):
    together = either.score(SENTENCES)
    backwards = either.score(SENTENCES[::-1])[::-1]
    alone = [either.score([sentence])[0] for sentence in SENTENCES]
    tight = replace(either, token_budget=1).score(SENTENCES)
    for other in (backwards, alone, tight):
        for a, b in zip(together, other, strict=True):
            assert a.sentence == b.sentence and a.pieces == b.pieces
            np.testing.assert_allclose(a.log_probabilities, b.log_probabilities, atol=1e-5)


def test_an_empty_sentence_is_a_reason(either):
    empty, full = either.score(["", SENTENCES[0]])
    assert (empty.reason, full.reason) == ("empty", "")


@pytest.mark.parametrize("name", ["bert-cased", "llama"])
def test_case_13_an_unknown_token_has_no_score(name):
    model = tiny.model(name)
    [scored] = model.score(["The 日 walk"])
    unknown = [piece == model.tokenizer.unk_token for piece in scored.pieces]
    assert sum(unknown) == 1
    assert np.isnan(scored.log_probabilities).tolist() == unknown


@pytest.mark.parametrize("name", ["bert-cased", "gpt2", "llama"])
def test_case_3_and_48_half_precision_gives_float32_numbers_near_the_others(name):
    model, half = tiny.model(name), load(str(tiny.folder(name)), dtype="bfloat16")
    [found] = distributions(half, GAPS[:1])
    assert found.dtype == torch.float32 and found.exp().sum().item() == pytest.approx(1, abs=1e-5)
    for one, other in zip(model.score(SENTENCES), half.score(SENTENCES), strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=0.5)
    for one, other in zip(half.score(SENTENCES), [half.score([s])[0] for s in SENTENCES], strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=0.2)


@pytest.mark.parametrize("name", ["bert-cased", "gpt2"])
def test_a_model_spread_over_what_there_is_gives_the_same_numbers(name):
    model, spread = tiny.model(name), load(str(tiny.folder(name)), device="spread")
    assert same(distributions(model, GAPS[:1])[0].cpu(), distributions(spread, GAPS[:1])[0].cpu())
    for one, other in zip(model.score(SENTENCES), spread.score(SENTENCES), strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("name", "layers"), [("bert-cased", "bert.encoder.layer"), ("gpt2", "transformer.h"), ("llama", "model.layers")]
)
def test_weights_that_wait_on_the_disk_give_the_same_numbers_and_the_same_identity(name, layers, tmp_path):
    """What ``device_map`` does with a model that no device holds whole: most weights are nowhere until they are needed."""
    model = load(str(tiny.folder(name)))
    modules = {weight.rpartition(".")[0] for weight in model.network.state_dict()}
    places = {module: "disk" if module.startswith(layers) else "cpu" for module in modules}
    network = type(model.network).from_pretrained(
        tiny.folder(name), device_map=places, offload_folder=tmp_path, dtype=torch.float32
    )
    assert sum(weight.is_meta for weight in network.parameters()) > 10
    waiting = replace(model, network=network.eval())
    assert waiting.identity == model.identity
    for one, other in zip(model.score(SENTENCES), waiting.score(SENTENCES), strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-6)


# --- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["roberta", "gpt2", "gpt2-without-start"])
def test_case_18_and_23_a_word_inside_a_text_has_its_leading_space(name):
    model = tiny.model(name)
    assert model.tokenizer.convert_ids_to_tokens(list(model.word("are", "middle").ids)) == ["Ġare"]
    assert model.word("are", "middle").ids == tuple(model.tokenizer(" are", add_special_tokens=False)["input_ids"])


def test_a_word_with_a_bar_for_its_space():
    model = tiny.model("llama")
    for position, piece in (("middle", "▁are"), ("start", "▁The")):
        word = model.word("the" if position == "start" else "are", position)
        assert model.tokenizer.convert_ids_to_tokens(list(word.ids)) == [piece]


def test_case_18_a_word_of_several_pieces_has_all_its_ids(either):
    word = either.word("zebrakeys")
    assert len(word.ids) > 1 and word.reason == ""
    shown = either.tokenizer.decode(list(word.ids), clean_up_tokenization_spaces=False)
    assert shown.replace("##", "").replace(" ", "") == "zebrakeys"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=8))
def test_case_27_every_form_has_a_piece_of_its_own_or_a_reason(either, form):
    """What is scored behind a context is cut out by characters: never nothing, and never a piece of the context."""
    for position in ("start", "start_as_written", "middle"):
        word = either.word(form, position)
        assert bool(word.ids) != bool(word.reason)
        if word.ids and form.isalnum() and form.isascii() and either.cased:
            shown = either.tokenizer.decode(list(word.ids), clean_up_tokenization_spaces=False).replace("##", "")
            assert shown.replace(" ", "").lower() == form.lower()


def test_case_87_progress_is_plain_text_for_a_person_and_nothing_inside_a_run(either, monkeypatch, capsys):
    for quiet in ("", "1"):
        monkeypatch.setenv("LITMUS_QUIET", quiet)
        list(either.fill(GAPS))
        told = capsys.readouterr()
        assert told.out == ""
        assert ("gaps:   0%" in told.err) is not bool(quiet)
        assert not quiet or told.err == ""


def test_one_gap_and_one_form_have_an_answer_or_a_sentence():
    """What a by-hand cell of a notebook asks: it ends in words, not in Python's complaint about None or an empty tuple."""
    bert = tiny.model("bert-cased")
    batch = only(bert.fill([Gap("The keys", "on the table.")]))
    assert batch.log_probabilities.shape == (1, len(bert.tokenizer))
    assert bert.word("keys", "middle").id == bert.word("keys", "middle").ids[0]
    with pytest.raises(LitmusError, match=r"no answer for the gap \(too_long\); take another example"):
        only(bert.fill([Gap("keys " * 600, ".")]))
    for form, why in (("日", "unknown"), ("zebrakeys", "it is [2-9] pieces")):
        with pytest.raises(LitmusError, match=rf"'{form}' is no item of this model's vocabulary \({why}\)"):
            bert.word(form, "middle").id  # noqa: B018


def test_a_single_question_flashes_no_progress_bar(either, monkeypatch, capsys):
    monkeypatch.setenv("LITMUS_QUIET", "")
    list(either.fill(GAPS[:1]))
    assert capsys.readouterr().err == ""


def test_case_29_the_first_word_of_a_text_is_capitalised_and_has_no_space():
    for name in ("roberta", "gpt2"):
        model = tiny.model(name)
        assert model.tokenizer.convert_ids_to_tokens(list(model.word("the", "start").ids)) == ["The"]
        assert model.word("The", "start").ids == model.word("the", "start").ids
    bert = tiny.model("bert-cased")
    assert bert.tokenizer.convert_ids_to_tokens(list(bert.word("keys", "start").ids)) == ["Keys"]
    assert bert.tokenizer.convert_ids_to_tokens(list(bert.word("keys", "middle").ids)) == ["keys"]


def test_case_29_capitals_inside_a_word_stay():
    bert = tiny.model("bert-cased")
    assert bert.word("mcKeys", "start").ids == bert.word("McKeys", "middle").ids


@pytest.mark.parametrize("name", ["bert-cased", "bert-uncased", "llama"])
def test_case_13_an_unknown_form_has_no_ids_never_the_unknown_token(name):
    model = tiny.model(name)
    for form in ("日", "keys日"):
        for position in ("start", "middle"):
            assert model.word(form, position) == (form, (), "unknown")


def test_case_13_an_unknown_token_that_transformers_was_not_told_of(tmp_path):
    tokenizer = tiny.llama_tokenizer(unknown_declared=False)
    model = load(str(tiny.save(tmp_path / "untold", tiny.model("llama").network, tokenizer)))
    assert model.tokenizer.unk_token_id is None
    assert model.tokenizer("日", add_special_tokens=False)["input_ids"] == [model.tokenizer("▁").input_ids[1], 0]
    assert model.word("日") == ("日", (), "unknown")
    assert np.isnan(model.score(["The 日 walk"])[0].log_probabilities).sum() == 1


def test_special_tokens_and_empty_forms_are_no_words(either):
    for token in either.tokenizer.all_special_tokens:
        assert either.word(token).ids == () and either.word(token).reason
    for form in ("", " "):
        assert either.word(form) == (form, (), "empty")


def test_case_33_forms_are_taken_literally(either):
    for form in ("c++", "a.b", "(", "a dog"):
        word = either.word(form)
        if word.ids:
            shown = either.tokenizer.decode(list(word.ids), clean_up_tokenization_spaces=False)
            assert shown.replace(" ", "").replace("##", "") == form.replace(" ", "")


@pytest.mark.parametrize(("name", "cased"), [("bert-cased", True), ("bert-uncased", False), ("roberta", True),
                                             ("gpt2", True), ("llama", True)])  # fmt: skip
def test_case_35_casing_is_found_by_trying(name, cased):
    model = tiny.model(name)
    assert model.cased is cased
    assert (model.word("Table") == model.word("table")) is False  # the form stays as it was asked
    assert (model.word("Table").ids == model.word("table").ids) is not cased


def test_case_35_casing_is_found_where_single_letters_are_unknown():
    model = tiny.model("bert-cased")
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "the": 5, "B": 6, "b": 7}
    assert replace(model, tokenizer=transformers.BertTokenizer(vocab=vocabulary, do_lower_case=False)).cased
    assert not replace(model, tokenizer=transformers.BertTokenizer(vocab=vocabulary, do_lower_case=True)).cased


def test_case_38_and_39_spelling_is_decoded_item_by_item():
    bert = tiny.model("bert-cased")
    assert bert.spelling(bert.tokenizer.convert_tokens_to_ids(["keys", "##s", ".", "[MASK]"])) == [
        "keys",
        "##s",
        ".",
        "[MASK]",
    ]
    assert tiny.model("llama").spelling(tiny.model("llama").word("are").ids) == ["are"]


@pytest.mark.parametrize("name", ["roberta", "gpt2"])
def test_spelling_shows_parts_of_characters_as_such(name):
    model = tiny.model(name)
    first, second = model.tokenizer("é", add_special_tokens=False)["input_ids"]
    assert model.spelling([first, second, model.word("are").ids[0]]) == ["�", "�", "are"]
    bare_space = model.tokenizer.convert_tokens_to_ids("Ġ")
    assert model.spelling([bare_space]) == ["Ġ"]


def test_spelling_of_an_id_that_the_tokenizer_does_not_know():
    model = tiny.model("gpt2")
    assert model.spelling([len(model.tokenizer) + 5]) == [f"[unused id {len(model.tokenizer) + 5}]"]


# --- identity -------------------------------------------------------------------------------------------------------


def test_identity_tells_weights_tokenizers_and_dtypes_apart(tmp_path):
    model = tiny.model("gpt2")
    again = load(str(tiny.folder("gpt2")))
    assert again.identity == model.identity
    assert load(str(tiny.folder("gpt2")), dtype="bfloat16").identity != model.identity
    other = load(str(tiny.folder("gpt2")))
    with torch.no_grad():
        other.network.transformer.h[0].attn.c_attn.bias[3] += 1e-6
    assert other.identity["weights"] != model.identity["weights"]
    assert other.identity["tokenizer"] == model.identity["tokenizer"]
    names = {tiny.model(name).identity["tokenizer"] for name in [*tiny.MASKED, *tiny.CAUSAL]}
    assert len(names) == 6


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [("gpt2", "activation_function", "relu"), ("gpt2", "n_head", 4), ("gpt2", "layer_norm_epsilon", 0.1),
     ("gpt2", "scale_attn_weights", False), ("bert-cased", "hidden_act", "relu"),
     ("llama", "rope_parameters", {"rope_type": "default", "rope_theta": 10.0})],
)  # fmt: skip
def test_identity_depends_on_the_configuration(name, setting, value, tmp_path):
    """The weights are the same and the numbers are not, so what is kept of one is not the other's."""
    folder = shutil.copytree(tiny.folder(name), tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    assert config[setting] != value
    (folder / "config.json").write_text(json.dumps(config | {setting: value}))
    model, other = tiny.model(name), replace(load(str(folder)), name=tiny.model(name).name)
    differing = {key for key, found in other.identity.items() if found != model.identity[key]}
    assert differing == {"configuration"}
    assert not same(distributions(model, GAPS[:1])[0], distributions(other, GAPS[:1])[0])


def test_identity_depends_neither_on_the_place_nor_on_the_version_that_saved(tmp_path):
    folder = shutil.copytree(tiny.folder("llama"), tmp_path / "moved")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"transformers_version": "4.0.0", "dtype": "float16"}))
    moved, model = load(str(folder)), tiny.model("llama")
    assert moved.identity | {"model": ""} == model.identity | {"model": ""}


def test_identity_does_not_depend_on_what_the_tokenizer_did_before():
    before, used = load(str(tiny.folder("llama"))), load(str(tiny.folder("llama")))
    used.tokenizer(["the keys", "the"], padding=True, truncation=True)
    assert used.identity == before.identity


def test_identity_depends_on_which_token_is_the_start():
    plain, other = (load(str(tiny.folder("llama"))) for _ in range(2))
    other.tokenizer.bos_token = "</s>"
    assert other.identity != plain.identity


# --- the bundled models ---------------------------------------------------------------------------------------------

PLAIN = ["The keys to the cabinet are on the table.", "She souvenirs nothing.", "Does he?"]


@pytest.mark.bundled
def test_bundled_causal_equals_brute_force(causal):
    gaps = [
        Gap("The keys to the cabinet", ""),
        Gap("The author near the senators", ""),
        Gap("I think that the pilots", ""),
    ]
    for gap, found in zip(gaps, distributions(causal, gaps), strict=True):
        assert same(found, causal_oracle(causal, gap))
    start = causal.tokenizer.bos_token_id
    for sentence, scored in zip(PLAIN, causal.score(PLAIN), strict=True):
        ids = torch.tensor([[start, *causal.tokenizer(sentence, add_special_tokens=False)["input_ids"]]])
        with torch.no_grad():
            loss = causal.network(ids, labels=ids).loss.item()
        assert -scored.log_probabilities.mean() == pytest.approx(loss, abs=TOLERANCE)


@pytest.mark.bundled
def test_bundled_masked_equals_brute_force(masked):
    for gap, found in zip(GAPS, distributions(masked, GAPS), strict=True):
        assert same(found, masked_oracle(masked, gap))
    for sentence, scored in zip(PLAIN, masked.score(PLAIN), strict=True):
        np.testing.assert_allclose(scored.log_probabilities, masked_score_oracle(masked, sentence), atol=TOLERANCE)


@pytest.mark.bundled
def test_bundled_words(causal, masked):
    assert causal.cased and masked.cased
    assert masked.maximum_length == 512
    assert causal.tokenizer.convert_ids_to_tokens(list(causal.word("are").ids)) == ["Ġare"]
    assert masked.tokenizer.convert_ids_to_tokens(list(masked.word("are", "start").ids)) == ["Are"]
    assert (causal.family, masked.family) == ("causal", "masked")


@pytest.mark.bundled
def test_case_52_bundled_models_find_plain_text_likelier_than_chance(causal, masked):
    for model in (causal, masked):
        [scored] = model.score(["This is a test sentence."])
        assert -scored.log_probabilities.mean() < 0.7 * np.log(model.vocabulary_size)
