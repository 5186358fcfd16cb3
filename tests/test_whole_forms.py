"""Targets of several pieces and shared beginnings: against the whole network run on one text at a time, piece by piece."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import metrics, scoring
from lib.errors import LitmusError
from lib.items import read_verbs
from lib.models import Gap
from lib.models.causal import CausalModel
from lib.models.masked import MaskedModel
from lib.models.prefixes import pack
from lib.store import Store

TOLERANCE = 1e-4
GAPS = [
    Gap("The keys to the cabinet", "on the table."),
    Gap("The author", "."),
    Gap("the pilot that the guard", "swim!"),
]
FORMS = ["are", "is", "laughs", "laugh", "souvenirs", "zebra", "swims", "swim"]
CHAINS = ("whole_word", "sum_l2r", "within_word_l2r")


def continued(model, gaps, forms, policy, **options):
    """What ``continue_`` streams, in order: an array of numbers or a reason for each gap."""
    found = {}
    for batch in model.continue_(gaps, forms, policy, **options):
        for i, row in enumerate(batch.rows):
            assert row not in found
            found[row] = batch.reason if batch.log_probabilities is None else batch.log_probabilities[i].numpy()
    return [found[row] for row in range(len(gaps))]


@torch.no_grad()
def next_token(model, ids):
    return torch.log_softmax(model.network(torch.tensor([ids])).logits[0, -1].double(), dim=0)


def boundary_mass(model, distribution):
    """log P(what follows ends the word), item by item."""
    the, total = model.tokenizer("the", add_special_tokens=False)["input_ids"], 0.0
    for item in range(len(model.tokenizer)):
        behind = model.tokenizer.decode([*the, item], clean_up_tokenization_spaces=False)[3:]
        ends = behind[:1].isspace() or (behind[:1] in set("""!"#$%&'()*+,-./:;<=>?@[]^_`{|}~\\""") and behind != "")
        if ends or item in model.tokenizer.all_special_ids:
            total += distribution[item].exp().item()
    return np.log(total)


def causal_oracle(model, gap, form, policy, start=()):
    ids = [*start, *model.tokenizer(gap.left, add_special_tokens=False)["input_ids"]]
    total = 0.0
    for piece in model.word(form, "middle" if gap.left else "start").ids:
        total += next_token(model, ids)[piece].item()
        ids = [*ids, piece]
    return total + (boundary_mass(model, next_token(model, ids)) if policy == "whole_word" else 0.0)


@torch.no_grad()
def masked_oracle(model, gap, form, policy):
    pieces, mask = model.word(form, "middle" if gap.left else "start").ids, model.tokenizer.mask_token_id
    right = gap.right if gap.right[:1] in ".,;:!?" else f" {gap.right}"
    text = f"{gap.left}{' ' if gap.left else ''}{model.tokenizer.mask_token}{right}"
    ids = model.tokenizer(text)["input_ids"]
    at, total = ids.index(mask), 0.0
    for i, piece in enumerate(pieces):
        later = pieces[i + 1 :] if policy == "original" else [mask] * (len(pieces) - i - 1)
        copy = torch.tensor([[*ids[:at], *pieces[:i], mask, *later, *ids[at + 1 :]]])
        total += torch.log_softmax(model.network(copy).logits[0, at + i], dim=0)[piece].item()
    return total


# --- continue_ against brute force ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", CHAINS)
@pytest.mark.parametrize("name", list(tiny.CAUSAL))
def test_case_19_causal_forms_are_the_chain_rule(name, policy):
    model = tiny.model(name)
    assert max(len(model.word(form).ids) for form in FORMS) > 2
    for gap, found in zip(GAPS, continued(model, GAPS, FORMS, policy), strict=True):
        expected = [causal_oracle(model, gap, form, policy) for form in FORMS]
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("policy", [*CHAINS, "original"])
@pytest.mark.parametrize("name", list(tiny.MASKED))
def test_case_19_masked_forms_have_one_mask_a_piece(name, policy):
    model = tiny.model(name)
    assert max(len(model.word(form).ids) for form in FORMS) > 2
    for gap, found in zip(GAPS, continued(model, GAPS, FORMS, policy), strict=True):
        expected = [masked_oracle(model, gap, form, policy) for form in FORMS]
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_case_30_forms_that_open_a_text():
    model, gap = tiny.model("gpt2"), Gap("", "the farmer walk?")
    assert continued(model, [gap], ["does"], "sum_l2r") == ["empty_context"]
    [found] = continued(model, [gap], ["does", "is"], "whole_word", start_token="always")
    np.testing.assert_allclose(
        found, [causal_oracle(model, gap, form, "whole_word", [0]) for form in ("does", "is")], atol=1e-4
    )
    bert = tiny.model("bert-cased")
    [found] = continued(bert, [gap], ["does"], "sum_l2r")
    assert found[0] == pytest.approx(masked_oracle(bert, gap, "does", "sum_l2r"), abs=TOLERANCE)


@pytest.mark.parametrize("name", [*tiny.MASKED, *tiny.CAUSAL])
def test_forms_and_gaps_do_not_disturb_each_other(name):
    model = tiny.model(name)
    together = continued(model, GAPS, FORMS, "whole_word")
    for row, gap in enumerate(GAPS):
        for column, form in enumerate(FORMS):
            for other in (model, replace(model, token_budget=1)):
                assert continued(other, [gap], [form], "whole_word")[0][0] == pytest.approx(
                    together[row][column], abs=1e-5
                )


@pytest.mark.parametrize("name", ["bert-cased", "gpt2"])
def test_reasons_of_gaps_and_forms_without_ids(name):
    model = tiny.model(name)
    long = Gap(" ".join(["the"] * 24), "")
    found = continued(model, [long, GAPS[0]], ["are", "souvenirs", " "], "sum_l2r")
    assert found[0] == "too_long"
    assert np.isnan(found[1]).tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_original_is_refused_where_nothing_is_masked(name):
    with pytest.raises(LitmusError, match="masks one piece at a time, which a causal model cannot"):
        continued(tiny.model(name), GAPS, FORMS, "original")


@pytest.mark.parametrize("name", list(tiny.CAUSAL))
def test_whole_words_share_one_probability_and_bare_chains_do_not(name):
    """A word and its beginnings: together at most 1 as whole words; as bare chains a beginning is never less probable."""
    model, forms = tiny.model(name), ["s", "sw", "swi", "swim", "swims", "swimsq"]
    nested = [f for f in forms if model.word("swimsq").ids[: len(model.word(f).ids)] == model.word(f).ids]
    assert len(nested) > 1
    for whole, bare in zip(
        *(continued(model, GAPS, nested, policy) for policy in ("whole_word", "sum_l2r")), strict=True
    ):
        assert np.exp(whole).sum() <= 1
        assert (np.diff(bare) < 0).all()
        assert (whole < bare).all()


def test_what_can_follow_a_word():
    model = tiny.model("gpt2")
    ends = set(model.tokenizer.convert_ids_to_tokens(model.boundary_ids.tolist()))
    assert {"Ġ", "Ġthe", ".", ",", "'", tiny.END} <= ends
    assert not {"s", "the", "é", "Ã", "7"} & ends


# --- shared beginnings ----------------------------------------------------------------------------------------------

texts = st.lists(st.lists(st.integers(0, 2), max_size=7), max_size=12)


@settings(max_examples=200)
@given(texts, st.integers(0, 20))
def test_every_text_lies_in_its_tree(texts, width):
    trees, places = pack(texts, width)
    for text, (number, path) in zip(texts, places, strict=True):
        assert [trees[number].tokens[node] for node in path] == text if text else path == []
        assert [trees[number].parents[node] for node in path] == [-1, *path][: len(path)]
        assert [trees[number].depths[node] for node in path] == list(range(len(path)))
    assert all(len(tree) <= max(width, *map(len, texts)) for tree in trees)
    if width == 0:
        assert sorted(tree.tokens for tree in trees) == sorted(text for text in texts if text)


@settings(max_examples=200)
@given(texts)
def test_a_wide_tree_holds_each_distinct_beginning_once(texts):
    trees, _ = pack(texts, 1000)
    distinct = {tuple(text[:end]) for text in texts for end in range(1, len(text) + 1)}
    assert sum(map(len, trees)) == len(distinct)


SENTENCES = [
    "The keys are small.",
    "The keys are young.",
    "The keys on the table",
    "The",
    "the",
    "Does the farmer walk?",
]


def without_sharing(model):
    class Alone(CausalModel):
        shares_beginnings = False

    return Alone(model.name, model.revision, model.network, model.tokenizer)


@pytest.mark.parametrize("start_token", ["never", "auto"])
@pytest.mark.parametrize("name", list(tiny.CAUSAL))
def test_shared_beginnings_change_no_number(name, start_token, monkeypatch):
    model, fed = tiny.model(name), []
    assert model.shares_beginnings
    plain = type(model).padded
    monkeypatch.setattr(CausalModel, "padded", lambda self, ids: fed.append(sum(map(len, ids))) or plain(self, ids))
    shared = model.score(SENTENCES, start_token)
    of_shared, apart = sum(fed), without_sharing(model).score(SENTENCES, start_token)
    for one, two in zip(shared, apart, strict=True):
        np.testing.assert_allclose(one.log_probabilities, two.log_probabilities, atol=1e-5)
    assert of_shared < sum(fed) - of_shared  # else this test shows nothing
    filled = [np.concatenate([b.log_probabilities.numpy()[np.argsort(b.rows)] for b in m.fill(GAPS)])
              for m in (model, without_sharing(model))]  # fmt: skip
    np.testing.assert_allclose(*filled, atol=1e-5)


def test_the_last_token_of_a_sentence_is_read_but_never_fed(monkeypatch):
    model, fed = tiny.model("gpt2"), []
    plain = type(model).padded
    monkeypatch.setattr(CausalModel, "padded", lambda self, ids: fed.extend(ids) or plain(self, ids))
    [scored] = model.score(["The keys are"], "never")
    assert sum(map(len, fed)) == len(scored.pieces) - 1


@cache
def odd(kind: str) -> CausalModel:
    """Causal networks for which a packed tree is not what it is for the others."""
    torch.manual_seed(7)
    tokenizer = tiny.model("gpt2").tokenizer
    size = {"vocab_size": len(tokenizer)}
    if kind == "places of its own":  # biases by distance in the row, whatever positions it is told
        network = transformers.BloomForCausalLM(
            transformers.BloomConfig(**size, hidden_size=32, n_layer=2, n_head=2, initializer_range=0.3)
        )
    elif kind == "in order":  # a state instead of attention
        network = transformers.MambaForCausalLM(
            transformers.MambaConfig(**size, hidden_size=24, num_hidden_layers=2, initializer_range=0.3)
        )
    else:
        config = transformers.MistralConfig(
            **size, **tiny.SMALL, **tiny.WIDE, num_key_value_heads=1, sliding_window=3, max_position_embeddings=64
        )
        network = transformers.MistralForCausalLM(config)
    return CausalModel(kind, "main", network.eval(), tokenizer)


@pytest.mark.parametrize(("kind", "shares"), [("places of its own", False), ("in order", False), ("window", True)])
def test_networks_that_cannot_be_packed_are_found_by_trying_and_read_plainly(kind, shares):
    model = odd(kind)
    assert model.shares_beginnings is shares
    for scored in model.score(SENTENCES, "never"):
        ids = model.tokenizer(scored.sentence)["input_ids"]
        for at in range(1, len(ids)):
            assert scored.log_probabilities[at] == pytest.approx(
                next_token(model, ids[:at])[ids[at]].item(), abs=TOLERANCE
            )


# --- places that nobody reads ----------------------------------------------------------------------------------------

MASKED_NETWORKS = {
    "distilbert": (transformers.DistilBertForMaskedLM, transformers.DistilBertConfig,
                   {"dim": 24, "n_layers": 2, "n_heads": 2, "hidden_dim": 48}),
    "one layer again and again": (transformers.AlbertForMaskedLM, transformers.AlbertConfig,
                                  {**tiny.SMALL, "embedding_size": 16}),
    "normalises first": (transformers.ModernBertForMaskedLM, transformers.ModernBertConfig,
                         {**tiny.SMALL, "pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3}),
}  # fmt: skip


@cache
def masked_network(kind: str) -> MaskedModel:
    """Masked networks built otherwise than BERT."""
    torch.manual_seed(8)
    tokenizer = tiny.model("bert-cased").tokenizer
    network, config, sizes = MASKED_NETWORKS[kind]
    made = network(config(vocab_size=len(tokenizer), max_position_embeddings=24, initializer_range=0.3, **sizes))
    return MaskedModel(kind, "main", made.eval(), tokenizer)


@pytest.mark.parametrize("kind", [*tiny.MASKED, *MASKED_NETWORKS])
def test_the_last_layer_does_for_a_place_that_is_read_what_it_does_for_all(kind):
    """Found by trying where that is possible; where it is not, all places go on. The numbers are those of every place."""
    model = tiny.model(kind) if kind in tiny.MASKED else masked_network(kind)
    assert (model.mixed is None) is (kind in ("one layer again and again", "normalises first"))
    for gap, found in zip(GAPS, continued(model, GAPS, FORMS, "whole_word"), strict=True):
        expected = [masked_oracle(model, gap, form, "whole_word") for form in FORMS]
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("kind", [*tiny.MASKED, "distilbert"])
def test_behind_its_attention_the_last_layer_sees_only_what_is_read(kind):
    model, seen = (tiny.model(kind) if kind in tiny.MASKED else masked_network(kind)), []
    wide = [m for m in model.network.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 48][-1]
    assert model.mixed is not None
    handle = wide.register_forward_hook(lambda _, arguments, found: seen.append(found.shape[:-1].numel()))
    try:
        [scored] = model.score(["The keys are young."])
    finally:
        handle.remove()
    assert sum(seen) == len(scored.pieces)


# --- in the diagnostics ---------------------------------------------------------------------------------------------

VERBS = pd.DataFrame({"singular": ["is", "swims", "laughs", "zebras"], "plural": ["are", "swim", "laugh", "zebra"]})
VERB_FORMS = [*VERBS["singular"], *VERBS["plural"]]


@pytest.mark.parametrize("policy", CHAINS)
@pytest.mark.parametrize("name", ["bert-cased", "roberta", "gpt2", "llama"])
def test_ew_and_mw_over_verbs_of_several_pieces(name, policy):
    """Coverage is whole, and both scores are those of the forms' numbers, worked out plainly."""
    model, labels = tiny.model(name), [metrics.PLURAL, metrics.SINGULAR, metrics.PLURAL]
    fills = scoring.fill(model, GAPS, VERB_FORMS, target_policy=policy, cutoffs_top=[1.0])
    verbs = metrics.usable_verbs(fills, VERBS)
    assert verbs["usable"].all()
    contexts = metrics.distinct_contexts(fills, labels)
    scores = metrics.by_cutoff(fills, contexts, verbs, [1.0], []).pivot(
        index="context", columns="metric", values="score"
    )
    for row, (gap, label) in enumerate(zip(GAPS, labels, strict=True)):
        p = {
            form: np.exp((masked_oracle if model.family == "masked" else causal_oracle)(model, gap, form, policy))
            for form in VERB_FORMS
        }
        right, wrong = ("plural", "singular") if label == metrics.PLURAL else ("singular", "plural")
        pairs = [(p[verb[right]], p[verb[wrong]]) for verb in VERBS.to_dict("records")]
        assert scores["EW"][row] == pytest.approx(np.mean([one > other for one, other in pairs]))
        assert scores["MW"][row] == pytest.approx(sum(one for one, _ in pairs) / sum(map(sum, pairs)), abs=1e-4)


def test_pairs_of_forms_of_several_pieces_are_judged_and_not_taken_for_one_another():
    model = tiny.model("gpt2")
    good, bad = ["souvenirs", "zebra", "zebra"], ["souvenir", "zebras", "zebra"]
    single, whole = (
        metrics.minimal_pairs(scoring.fill(model, GAPS, [*good, *bad], target_policy=policy), good, bad)
        for policy in ("single_token", "whole_word")
    )
    assert single["reason"].tolist() == ["several_pieces"] * 3
    assert whole["reason"].tolist() == ["", "", "identical"]
    expected = [causal_oracle(model, gap, form, "whole_word") for gap, form in zip(GAPS, good, strict=True)]
    np.testing.assert_allclose(whole["log_probability_good"], expected, atol=TOLERANCE)


def test_the_rank_of_a_form_of_several_pieces_is_that_of_its_score_among_the_items():
    model = tiny.model("gpt2")
    fills = scoring.fill(model, GAPS[:1], ["zebra", "are"], target_policy="sum_l2r")
    [batch] = model.fill(GAPS[:1])
    score = causal_oracle(model, GAPS[0], "zebra", "sum_l2r")
    above = (batch.log_probabilities[0] > score).sum()
    assert fills.at("rank", ["zebra"])[0] == min(
        above + 1, model.vocabulary_size
    )  # less probable than any item: the last
    assert np.isnan(fills.at("cumulative_mass", ["zebra"])[0])
    assert (
        fills.at("rank", ["are"])[0]
        == (batch.log_probabilities[0] > batch.log_probabilities[0, model.word("are").ids[0]]).sum() + 1
    )


@pytest.mark.parametrize(("name", "policy", "flag"), [
    ("gpt2", "sum_l2r", "word_ends_ignored"), ("gpt2", "within_word_l2r", "word_ends_ignored"), ("gpt2", "whole_word", None),
    ("bert-cased", "sum_l2r", None), ("gpt2", "single_token", None)])  # fmt: skip
def test_a_chain_that_ignores_where_words_end_is_flagged(name, policy, flag):
    choices = scoring.fill(tiny.model(name), GAPS, ["are"], target_policy=policy).choices
    assert choices.get("flag") == flag and choices["target_policy"] == policy


@pytest.mark.parametrize("cutoffs", [{"cutoffs_top": [0.5, 1.0]}, {"cutoffs_top": [1.0], "cutoffs_bottom": [0.1]}])
def test_cutoffs_are_for_single_items_only(cutoffs):
    with pytest.raises(
        LitmusError, match="Cutoffs rank single vocabulary items, so the target policy 'whole_word' has none"
    ):
        scoring.fill(tiny.model("gpt2"), GAPS, FORMS, target_policy="whole_word", **cutoffs)


def test_whole_forms_are_kept_and_not_asked_again(tmp_path, monkeypatch):
    model, asked = tiny.model("gpt2"), []
    plain = CausalModel.continue_
    monkeypatch.setattr(CausalModel, "continue_", lambda self, gaps, *a: asked.extend(gaps) or plain(self, gaps, *a))
    monkeypatch.setattr(scoring, "CONTEXTS", 2)
    first, again = (
        scoring.fill(model, GAPS, FORMS, target_policy="whole_word", store=Store(model.identity, tmp_path))
        for _ in range(2)
    )
    assert first.values.tobytes() == again.values.tobytes()
    assert len(asked) == 3
    scoring.fill(model, GAPS, FORMS, target_policy="sum_l2r", store=Store(model.identity, tmp_path))
    assert len(asked) == 6


@pytest.mark.bundled
def test_verbs_for_which_the_bare_chain_rule_can_never_be_right(causal, datasets):
    """The singular is the plural's pieces and more, so its bare chain is less probable in every context."""
    verbs = read_verbs(datasets / "refining-tse" / "verbs" / "combined_verb_list.csv")
    ids = {form: causal.word(form).ids for form in [*verbs["singular"], *verbs["plural"]]}
    several = verbs[[len(ids[s]) > 1 or len(ids[p]) > 1 for s, p in zip(verbs.singular, verbs.plural, strict=True)]]
    never = several[[ids[s][: len(ids[p])] == ids[p] for s, p in zip(several.singular, several.plural, strict=True)]]
    assert len(never) == 103
    some, singular = never.iloc[::26], Gap("The author near the senators", "")
    forms = [*some["singular"], *some["plural"]]
    bare, whole = (continued(causal, [singular], forms, policy)[0] for policy in ("sum_l2r", "whole_word"))
    wins = [(found[: len(some)] > found[len(some) :]).mean() for found in (bare, whole)]
    assert wins[0] == 0 and wins[1] > 0
