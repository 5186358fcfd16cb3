"""Recurrent models against plain loops over torch's own modules, and their checkpoints against files that mean harm."""

import collections
import functools
import json
import os
import pickle
import pickletools
import random
import shutil
import subprocess
import sys
import types
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lib import scoring
from lib.errors import LitmusError
from lib.models import Gap, checkpoints, load
from lib.models.recurrent import RecurrentModel, RecurrentNetwork, save, word_spans, words_of
from lib.paths import DATA, ROOT

CELLS = ["LSTM", "GRU", "RNN_TANH", "RNN_RELU"]
STATES = ["eos", "zero", "carry"]
WORDS = (
    "<unk>",
    "<eos>",
    "The",
    "the",
    "cat",
    "cats",
    "near",
    "dog",
    "dogs",
    "sees",
    "see",
    ".",
    ",",
    "'s",
    "U.S.",
    "well-known",
)
SENTENCES = [
    "The cat near the dogs sees the cat .",
    "cats see",
    "the dog 's cats see the well-known cat , the dog .",
    "The",
]
GAPS = [
    Gap("The cat near the dogs", "."),
    Gap("the", ""),
    Gap("The dog's cats see the zebra, the", "x"),
    Gap("cats", ""),
]


# --- models, and the plain way to ask them ---------------------------------------------------------------------------


class RNNModel(nn.Module):
    """The layout of the published checkpoints: these names of parts and these attributes."""

    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, tie_weights=False):
        super().__init__()
        kind, options = (
            (nn.RNN, {"nonlinearity": rnn_type[4:].lower()}) if "_" in rnn_type else (getattr(nn, rnn_type), {})
        )
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = kind(ninp, nhid, nlayers, dropout=0.2 if nlayers > 1 else 0, **options)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, ids, state=None):
        hidden, state = self.rnn(self.drop(self.encoder(ids)), state)
        return self.decoder(self.drop(hidden)), state


@pytest.fixture
def module_called_model(monkeypatch):
    """The class as the published scripts pickle it, ``model.RNNModel``."""
    module = types.ModuleType("model")
    module.RNNModel, module.__file__ = RNNModel, __file__  # old formats carry the source code along
    monkeypatch.setitem(sys.modules, "model", module)
    monkeypatch.setattr(RNNModel, "__module__", "model")


@cache
def published(cell="LSTM", tied=True, layers=2):
    torch.manual_seed(7)
    module = RNNModel(cell, len(WORDS), 6, 6 if tied else 5, layers, tied).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0, 0.6)
    return module


def folder_of(folder, module, file="model.pt", words=WORDS, **options):
    """A folder as people have it: the weights as a file and ``vocab.txt``."""
    folder.mkdir(exist_ok=True)
    torch.save(module, folder / file, **options)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return folder


def model_of(cell="LSTM", tied=True, start_state="eos", words=WORDS, **options):
    """Our model with the weights of the published one."""
    theirs = published(cell, tied)
    network = RecurrentNetwork(cell, len(WORDS), 6, theirs.nhid, 2, tied).eval()
    network.load_state_dict(theirs.state_dict())
    return RecurrentModel("tiny", "main", network, tuple(words), start_state, **options)


@torch.no_grad()
def plain_scores(module, sentences, start_state, vocabulary):
    """Word by word through torch's own module, one sentence at a time, nothing clever."""
    rows, state, last = [], None, None
    for sentence in sentences:
        if start_state != "carry":
            state, last = None, None
        if start_state == "eos":
            output, state = module(torch.tensor([[vocabulary.index("<eos>")]]), None)
            last = output[0, 0].log_softmax(0)
        scores = []
        for word in sentence.split():
            row = vocabulary.index(word)
            scores.append(np.nan if last is None else last[row].item())
            output, state = module(torch.tensor([[row]]), state)
            last = output[0, 0].log_softmax(0)
        if start_state == "carry":
            output, state = module(torch.tensor([[vocabulary.index("<eos>")]]), state)
            last = output[0, 0].log_softmax(0)
        rows.append(np.array(scores))
    return rows


def filled(model, gaps, **options):
    """Distributions by row, NaN where there is none, and the reasons."""
    values, reasons, seen = torch.full((len(gaps), model.vocabulary_size), torch.nan), [""] * len(gaps), []
    for batch in model.fill(gaps, **options):
        seen += batch.rows
        if batch.log_probabilities is None:
            for row in batch.rows:
                reasons[row] = batch.reason
        else:
            values[batch.rows] = batch.log_probabilities
    assert sorted(seen) == list(range(len(gaps)))
    return values, reasons


# --- the same numbers as the plain way -------------------------------------------------------------------------------


@pytest.mark.parametrize("start_state", STATES)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_scores_are_those_of_a_plain_loop(cell, tied, start_state):
    expected = plain_scores(published(cell, tied), SENTENCES, start_state, WORDS)
    for scores, wanted in zip(model_of(cell, tied, start_state).score(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(scores.log_probabilities, wanted, atol=1e-5)


@pytest.mark.parametrize("start_state", ["eos", "zero"])
@pytest.mark.parametrize("cell", CELLS)
def test_distributions_at_gaps_are_those_of_the_whole_network(cell, start_state):
    model, theirs = model_of(cell, start_state=start_state), published(cell)
    found, _ = filled(model, GAPS)
    known = [
        ["The", "cat", "near", "the", "dogs"],
        ["the"],
        ["The", "dog", "'s", "cats", "see", "the", "<unk>", ",", "the"],
        ["cats"],
    ]
    for row, words in enumerate(known):
        ids = [*([1] if start_state == "eos" else []), *map(WORDS.index, words)]
        with torch.no_grad():
            expected = theirs(torch.tensor(ids)[:, None])[0][-1, 0].log_softmax(0)
        torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("start_state", STATES)
def test_a_distribution_at_a_word_holds_that_words_score(start_state):
    model = model_of(start_state=start_state)
    sentences, positions = [f"{sentence} <eos>" for sentence in SENTENCES], [3, 1, 5, 0]
    scores = model.score(sentences)
    found = {}
    for batch in model.at(sentences, positions):
        for i, row in enumerate(batch.rows):
            found[row] = np.nan if batch.log_probabilities is None else batch.log_probabilities[i]
    for row, at in enumerate(positions):
        wanted = scores[row].log_probabilities[at]
        if np.isnan(wanted):
            assert found[row] is np.nan and start_state == "zero" and at == 0
        else:
            assert found[row][WORDS.index(sentences[row].split()[at])].item() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("start_state", STATES)
@pytest.mark.parametrize("budget", [1, 7, 4096])
def test_batches_change_nothing(start_state, budget):
    whole = model_of(start_state=start_state).score(SENTENCES)
    for one, other in zip(whole, model_of(start_state=start_state, token_budget=budget).score(SENTENCES), strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-5)


def test_many_words_of_one_sentence_are_scored_in_parts(monkeypatch):
    """The output layer sees a limited number of words at once, also within one sentence."""
    model, long = model_of(), " ".join(["the cat near"] * 20)
    whole = model.score([long])[0].log_probabilities
    monkeypatch.setattr("lib.models.recurrent.ROWS", 7)
    np.testing.assert_allclose(model.score([long])[0].log_probabilities, whole, atol=1e-6)


@pytest.mark.parametrize("start_state", STATES)
def test_the_output_layer_sees_only_what_is_read(start_state, monkeypatch):
    """With 50,000 words it is by far the widest layer: one row a question, and a limited number of rows at once."""
    monkeypatch.setattr("lib.models.recurrent.ROWS", 5)
    model, seen = model_of(start_state=start_state), []
    handle = model.network.decoder.register_forward_hook(lambda _, inputs, output: seen.append(len(output)))
    batches = list(model.at([SENTENCES[0]] * 23, [4] * 23))
    assert sum(seen) == 23 and max(seen) <= 5 and sum(len(batch.rows) for batch in batches) == 23
    seen.clear()
    model.score(SENTENCES)
    handle.remove()
    assert sum(seen) == sum(len(sentence.split()) for sentence in SENTENCES) and max(seen) <= 5


@pytest.mark.parametrize("start_state", ["eos", "zero"])
def test_forms_of_several_words_are_the_sum_of_their_words(start_state):
    model, forms = model_of(start_state=start_state), ["cat", "cat's", "zebra", "The dog's cats"]
    found = np.full((len(GAPS), len(forms)), np.nan)
    for batch in model.continue_(GAPS, forms, "whole_word"):
        found[batch.rows] = batch.log_probabilities
    for row, gap in enumerate(GAPS):
        before = len(model.encoded(gap.left)[0])
        for column, form in enumerate(forms):
            [scores] = model.score([f"{gap.left} {form}"])
            wanted = np.nan if form == "zebra" else scores.log_probabilities[before:].sum()
            assert found[row, column] == pytest.approx(wanted, abs=1e-5, nan_ok=True)


def test_a_form_at_the_start_is_the_form_with_a_capital():
    model = model_of()
    [batch] = model.continue_([Gap("", "")], ["the", "cats"], "sum_l2r")
    scores = [model.score([word])[0].log_probabilities[0] for word in ("The", "cats")]
    assert batch.log_probabilities[0].tolist() == pytest.approx(scores, abs=1e-5)
    with pytest.raises(LitmusError, match="which a recurrent model cannot; choose 'whole_word'"):
        list(model.continue_([Gap("", "")], ["the"], "original"))


# --- start states: cases 63 and 64 -----------------------------------------------------------------------------------


def test_case_63_order_changes_scores_where_the_state_is_carried_and_nowhere_else():
    swapped = [SENTENCES[1], SENTENCES[0]]
    for start_state in STATES:
        model = model_of(start_state=start_state)
        first, second = model.score(SENTENCES[:2])
        second_again, first_again = model.score(swapped)
        same = all(
            np.allclose(one.log_probabilities, other.log_probabilities, atol=1e-5, equal_nan=True)
            for one, other in ((first, first_again), (second, second_again))
        )
        assert same == (start_state != "carry")


def test_case_64_a_first_word_has_a_score_or_none_but_never_zero():
    of_eos, of_zero, of_carry = (model_of(start_state=state).score(SENTENCES) for state in STATES)
    assert all(scores.log_probabilities[0] < -0.1 for scores in of_eos)
    assert all(np.isnan(scores.log_probabilities[0]) for scores in of_zero)
    assert [bool(np.isnan(scores.log_probabilities[0])) for scores in of_carry] == [True, False, False, False]
    assert [scores.first_unscored for scores in (*of_eos, *of_zero, *of_carry)] == [False] * 4 + [True] * 5 + [
        False
    ] * 3


def test_the_state_of_skipped_sentences_is_not_carried():
    model = model_of(start_state="carry")
    with_gap = model.score([SENTENCES[0], "", SENTENCES[1]])
    assert with_gap[1].reason == "empty"
    np.testing.assert_allclose(
        with_gap[2].log_probabilities, model.score(SENTENCES[:2])[1].log_probabilities, atol=1e-6
    )


def test_gaps_in_no_order_and_a_carried_state_do_not_go_together():
    with pytest.raises(LitmusError, match="gaps come in no order; choose the start state 'eos' or 'zero'"):
        scoring.fill(model_of(start_state="carry"), GAPS, ["sees"])


def test_at_the_very_start_only_the_end_of_a_sentence_gives_something_to_go_on():
    assert filled(model_of(), [Gap("", "sees")])[1] == [""]
    assert filled(model_of(start_state="zero"), [Gap("", "sees"), Gap("the", "")])[1] == ["empty_context", ""]
    [first, second] = model_of(start_state="carry").at(SENTENCES[:2], [0, 0])
    assert (first.reason, second.reason) == ("empty_context", "") and second.log_probabilities is not None


def test_the_start_state_is_part_of_the_identity_and_of_the_choices():
    model = model_of(start_state="zero")
    assert model.identity["start_state"] == "zero" and model.identity != model_of().identity
    assert scoring.fill(model, GAPS, ["sees"]).choices["start_state"] == "zero"


def test_an_unknown_start_state_and_a_missing_end_are_told():
    with pytest.raises(LitmusError, match="'warm' is no start state; choose one of eos, zero, carry"):
        model_of(start_state="warm")
    without = ("x" if word == "<eos>" else word for word in WORDS)
    with pytest.raises(LitmusError, match="has no <eos>, which the start state 'eos' reads; choose 'zero'"):
        model_of(words=without)


def test_a_position_outside_its_sentence_is_told():
    with pytest.raises(LitmusError, match=r"no word 2 .* which has 2 words"):
        list(model_of().at(["cats see <eos>"], [2]))


# --- words: cases 62 and 65 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The U.S., near the well-known cat's dogs.", "The U.S. , near the well-known cat 's dogs ."),
        ('"Mother-in-law\'s," (he) said...', "\" Mother - in - law 's , \" ( he ) said . . ."),
        ("don't can’t we'll I'm 'em dogs'", "do n't ca n't we 'll I 'm ' em dogs '"),
        ("  two  spaces\tand <eos>", "two spaces and <eos>"),
    ],
)  # fmt: skip
def test_running_text_becomes_words(text, words):
    assert words_of(text, {*WORDS, "<eos>"}) == words.split()


def test_a_vocabulary_says_how_it_writes_not():
    assert words_of("don't", {"don", "'t"}) == ["don", "'t"]
    assert words_of("don't", {"do", "n't"}) == ["do", "n't"]
    assert words_of("don't", {"don't"}) == ["don't"]


@given(st.text(alphabet="ab'’-., \t\u00a0\u2028\"(n t", max_size=30))
def test_words_cover_all_but_white_space_in_order(text):
    spans = word_spans(text, {"a-b", "n't", "a."})
    covered = [character for start, end in spans for character in range(start, end)]
    assert covered == sorted(set(covered))
    left_out = {text[i] for i in range(len(text)) if i not in set(covered)}
    assert all(character.isspace() for character in left_out)


def test_spans_are_characters_of_the_text():
    sentence = "The cat's dogs see the U.S., the zebra."
    [scores] = model_of().score([sentence])
    assert scores.pieces == ["The", "cat", "'s", "dogs", "see", "the", "U.S.", ",", "the", "<unk>", "."]
    assert [sentence[start:end] for start, end in scores.spans] == [
        "The",
        "cat",
        "'s",
        "dogs",
        "see",
        "the",
        "U.S.",
        ",",
        "the",
        "zebra",
        ".",
    ]
    assert np.flatnonzero(np.isnan(scores.log_probabilities)).tolist() == [9]


def test_a_capital_that_belongs_to_the_place_is_taken_off_where_the_word_is_unknown_with_it():
    model = model_of()
    [first, inside] = model.score(["Cats see", "the Cats see"])
    assert first.pieces == ["cats", "see"] and inside.pieces == ["the", "<unk>", "see"]
    assert model.word("the", "start").ids == (WORDS.index("The"),)
    assert model.word("dogs", "start").ids == model.word("dogs", "middle").ids == (WORDS.index("dogs"),)


def test_an_uncased_vocabulary_reads_capitals_as_small_letters():
    words = tuple(word.lower() if word != "The" else "a" for word in WORDS)
    model = model_of(words=words)
    assert not model.cased and model_of().cased
    [scores] = model.score(["THE Cat in İt see"])
    assert scores.pieces == ["the", "cat", "<unk>", "<unk>", "see"] and scores.spans[-1] == (14, 17)


def test_case_65_unknown_words_are_told_and_white_space_is_white_space():
    model = model_of()
    assert model.word("zebra") == ("zebra", (), "unknown")
    assert model.word("<unk>").reason == model.word("<eos>").reason == "unknown"
    assert model.word(" ").reason == "empty"
    assert model.word("cat's").ids == (WORDS.index("cat"), WORDS.index("'s"))
    plain, spaced, ended = model.score(["the cat sees", "the  cat\tsees ", "the cat sees <eos>"])
    np.testing.assert_array_equal(plain.log_probabilities, spaced.log_probabilities)
    np.testing.assert_array_equal(plain.log_probabilities, ended.log_probabilities)
    assert model.score(["the <eos> cat"])[0].reason == "special_token_in_text"
    assert filled(model, [Gap("the <eos> cat", "")])[1] == ["special_token_in_text"]


def test_without_an_unknown_word_an_unknown_context_has_a_reason():
    model = model_of(words=("x", *WORDS[1:]))
    assert filled(model, [Gap("the zebra", ""), Gap("the cat", "")])[1] == ["unknown_in_context", ""]
    assert model.score(["the zebra"])[0].reason == "unknown_in_context"


def vocabulary_file(folder, text):
    path = folder / "vocab.txt"
    path.write_bytes(text.encode("utf-8"))
    return path


def test_case_62_a_no_break_space_does_not_shift_what_follows(tmp_path):
    text = "<eos>\nNew\u00a0York\r\nline\u2028end\n<unk>\nlast\n"
    path = vocabulary_file(tmp_path, text)
    assert checkpoints.read_vocabulary(path, 5) == ("<eos>", "New\u00a0York", "line\u2028end", "<unk>", "last")
    assert (len(text.split()), len(text.splitlines()), text.count("\n")) == (7, 6, 5)
    assert checkpoints.read_vocabulary(path, 7)[1:3] == ("New", "York")  # as the published code reads it
    with pytest.raises(LitmusError, match="has 5 words and the model 6, so they do not belong together"):
        checkpoints.read_vocabulary(path, 6)


def test_word_lists_that_cannot_be_read_are_told(tmp_path):
    with pytest.raises(LitmusError, match="There is no word list"):
        checkpoints.read_vocabulary(tmp_path / "vocab.txt", 5)
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(LitmusError, match=r"cannot be read .* text file in UTF-8"):
        checkpoints.read_vocabulary(tmp_path / "latin.txt", 1)


def test_a_word_list_that_names_a_word_twice_is_told(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\nb\na\nc\n")
    with pytest.raises(LitmusError, match="lists 'a' more than once"):
        checkpoints.read_vocabulary(tmp_path / "vocab.txt", 4)


# --- checkpoints: cases 66 and 67 ------------------------------------------------------------------------------------


def same_as_theirs(model, cell="LSTM", tied=True):
    expected = plain_scores(published(cell, tied), SENTENCES, "eos", WORDS)
    for scores, wanted in zip(model.score(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(scores.log_probabilities, wanted, atol=1e-5)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_case_67_a_whole_pickled_model_is_read_without_its_class(
    cell, tied, zipped, tmp_path, module_called_model, monkeypatch
):
    folder = folder_of(tmp_path / "m", published(cell, tied), _use_new_zipfile_serialization=zipped)
    monkeypatch.delitem(sys.modules, "model")
    model = load(str(folder))
    assert model.family == "recurrent" and (model.network.cell, model.network.tied) == (cell, tied)
    assert "model" not in sys.modules
    same_as_theirs(model, cell, tied)


@pytest.mark.parametrize("zipped", [True, False])
def test_case_66_attributes_of_old_torch_are_not_needed(zipped, tmp_path, module_called_model, monkeypatch):
    """Torch 1.1 and older: no ``_flat_weights``, no ``proj_size``, weights in ``_all_weights``, a backend in each part."""

    def _get_thnn_function_backend():
        raise AssertionError("was called")

    class Backend:
        def __reduce__(self):
            return _get_thnn_function_backend, ()

    backends = types.ModuleType("torch.nn.backends.thnn")
    backends._get_thnn_function_backend = _get_thnn_function_backend
    monkeypatch.setattr(_get_thnn_function_backend, "__module__", "torch.nn.backends.thnn")
    monkeypatch.setattr(_get_thnn_function_backend, "__qualname__", "_get_thnn_function_backend")
    monkeypatch.setitem(sys.modules, "torch.nn.backends.thnn", backends)
    old = RNNModel("LSTM", len(WORDS), 6, 6, 2, True)
    old.load_state_dict(published().state_dict())
    for part in old.modules():
        vars(part)["_backend"] = Backend()
    monkeypatch.setattr(nn.RNNBase, "__getstate__", lambda self: {
        key: value for key, value in vars(self).items() if key not in ("_flat_weights", "_flat_weight_refs", "proj_size")
    })  # fmt: skip
    folder = folder_of(tmp_path / "old", old, _use_new_zipfile_serialization=zipped)
    raw = (folder / "model.pt").read_bytes()
    assert b"_get_thnn_function_backend" in raw and b"\x09\x00\x00\x00proj_size" not in raw
    monkeypatch.undo()
    same_as_theirs(load(str(folder)))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("wrapped", ["plain", "state_dict", "data parallel", "old format"])
def test_a_state_dict_says_what_it_is_of(cell, wrapped, tmp_path):
    state = dict(published(cell, False).state_dict())
    state = {f"module.{key}": value for key, value in state.items()} if wrapped == "data parallel" else state
    content = {"state_dict": state, "epoch": 3} if wrapped == "state_dict" else collections.OrderedDict(state)
    folder = folder_of(tmp_path / "m", content, _use_new_zipfile_serialization=wrapped != "old format")
    if cell.startswith("RNN"):
        with pytest.raises(
            LitmusError, match=r'do not tell tanh from relu; say which in .*config.json: {"cell": "RNN_TANH"}'
        ):
            load(str(folder))
        (folder / "config.json").write_text(json.dumps({"cell": cell}))
    model = load(str(folder))
    assert (model.network.cell, model.network.tied) == (cell, False)
    same_as_theirs(model, cell, False)


@pytest.mark.parametrize("file", ["model.safetensors", "model.pt"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_what_is_saved_is_loaded(cell, tied, file, tmp_path):
    ours = model_of(cell, tied)
    save(tmp_path / "m", ours.network, WORDS, file)
    by_folder, by_file = load(str(tmp_path / "m")), load(str(tmp_path / "m" / file))
    assert by_folder.identity["weights"] == by_file.identity["weights"] == ours.identity["weights"]
    assert by_folder.vocabulary == WORDS
    same_as_theirs(by_folder, cell, tied)
    assert (by_folder.network.decoder.weight is by_folder.network.encoder.weight) == tied


def test_half_precision_on_disk_is_what_was_asked_for_in_memory(tmp_path):
    network = RecurrentNetwork("GRU", len(WORDS), 6, 6, 1).half()
    save(tmp_path / "m", network, WORDS)
    assert load(str(tmp_path / "m")).identity["dtype"] == "float32"
    assert load(str(tmp_path / "m"), dtype="bfloat16").identity["dtype"] == "bfloat16"


def test_a_word_list_elsewhere_can_be_named(tmp_path):
    torch.save(published().state_dict(), tmp_path / "weights.pt")
    (tmp_path / "words.txt").write_text(" ".join(WORDS))
    assert load(str(tmp_path / "weights.pt"), vocabulary=str(tmp_path / "words.txt")).vocabulary == WORDS
    with pytest.raises(LitmusError, match=r"There is no word list .*vocab.txt"):
        load(str(tmp_path / "weights.pt"))


def test_biases_that_a_checkpoint_lacks_are_zero(tmp_path):
    weights = {key: tensor for key, tensor in published().state_dict().items() if "bias" not in key}
    network = load(str(folder_of(tmp_path / "m", weights))).network
    assert not any(tensor.any() for key, tensor in network.state_dict().items() if "bias" in key)


def refused(content, folder, **options) -> str:
    with pytest.raises(LitmusError) as caught:
        load(str(folder_of(folder, content)), **options)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence.endswith(".") and len(sentence.replace(str(folder), "")) < 420
    return sentence


def test_other_models_are_refused_in_words(tmp_path):
    state = published().state_dict()
    assert "holds no recurrent model in the published layout" in refused({"lstm.weight": torch.ones(2)}, tmp_path / "a")
    both_ways = state | {"rnn.weight_ih_l0_reverse": torch.ones(2)}
    assert "no part of a recurrent model read from left to right (rnn.weight_ih_l0_reverse)" in refused(
        both_ways, tmp_path / "b"
    )
    cut = state | {"rnn.weight_ih_l1": torch.ones(3, 3)}
    assert "rnn.weight_ih_l1 has the shape (3, 3), not the shape (24, 6)" in refused(cut, tmp_path / "c")
    odd = state | {"rnn.weight_hh_l0": torch.ones(13, 6)}
    assert "has the shape (13, 6), which no LSTM, GRU or plain RNN has" in refused(odd, tmp_path / "d")
    assert "neither a model nor a state dict" in refused([1, 2], tmp_path / "e")
    empty = state | {"rnn.weight_hh_l0": torch.ones(0, 0)}
    assert "has the shape (0, 0), which no LSTM" in refused(empty, tmp_path / "i")
    flat = state | {"encoder.weight": torch.ones(3)}
    assert "encoder.weight is not a matrix" in refused(flat, tmp_path / "j")
    assert "neither a model nor a state dict" in refused({1: torch.ones(2)}, tmp_path / "k")
    itself = {}
    itself["model"] = itself
    assert "nested in itself" in refused(itself, tmp_path / "l")
    undecoded = {key: value for key, value in state.items() if key != "decoder.weight"}
    assert "has no decoder.weight; get it again, or if its decoder is its encoder, say so in" in refused(
        undecoded, tmp_path / "m"
    )
    (tmp_path / "m" / "config.json").write_text('{"cell": "LSTM", "tied": true}')
    assert load(str(tmp_path / "m")).network.tied
    without = {key: value for key, value in state.items() if key != "rnn.weight_ih_l0"}
    assert "rnn.weight_ih_l0 has no value" in refused(without, tmp_path / "f")
    broken = state | {"decoder.bias": torch.full_like(state["decoder.bias"], torch.nan)}
    assert "gives no numbers" in refused(broken, tmp_path / "g")
    lacking = tmp_path / "h"
    lacking.mkdir()
    (lacking / "config.json").write_text('{"cell": "GRU"}')
    assert "said to hold a cell of the kind GRU, but its weights are of the kind LSTM" in refused(state, lacking)


@pytest.mark.parametrize("content", [b"", b"garbage" * 99, b"PK\x03\x04" + b"x" * 99, None])
@pytest.mark.parametrize("file", ["model.pt", "model.safetensors"])
def test_damaged_files_are_told(content, file, tmp_path):
    folder = save(tmp_path / "m", model_of().network, WORDS, file)
    path = folder / file
    path.write_bytes(path.read_bytes()[:-200] if content is None else content)
    with pytest.raises(LitmusError, match=r"cannot be read as .*; get it again"):
        load(str(folder))


def test_a_folder_of_another_library_with_a_word_list_is_still_that(tmp_path):
    """BERT's folders hold a ``vocab.txt`` too."""
    folder = shutil.copytree(tiny.folder("bert-cased"), tmp_path / "bert")
    (folder / "vocab.txt").write_text("[UNK]")
    assert load(str(folder)).family == "masked"
    (folder / "config.json").unlink()
    with pytest.raises(LitmusError, match="holds no recurrent model in the published layout"):
        load(str(folder))


def test_two_files_of_weights_are_one_too_many(tmp_path):
    folder = save(tmp_path / "m", model_of().network, WORDS)
    save(folder, model_of().network, WORDS, "model.pt")
    with pytest.raises(LitmusError, match=r"has 2 files of weights \(model.pt, model.safetensors\); name one"):
        load(str(folder))


# --- files that mean harm --------------------------------------------------------------------------------------------


class Calls:
    """Pickles as a call of any function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class WithState:
    """A class whose ``__setstate__`` does something."""

    def __init__(self, touched):
        self.touched = touched

    def __setstate__(self, state):
        Path(state["touched"]).touch()


def hostile(touched):
    """Objects that touch a file when a careless reader loads them."""
    command = f"touch {touched}"
    return {
        "os.system": Calls(os.system, command),
        "inside a state dict": {"encoder.weight": torch.ones(2, 2), "x": Calls(os.system, command)},
        "nested": Calls(eval, Calls(str, f"__import__('os').system({command!r})")),
        "getattr": Calls(getattr, Calls(__import__, "os"), "system"),
        "subprocess": Calls(subprocess.getoutput, command),
        "exec": Calls(exec, f"import os; os.system({command!r})"),
        "setstate": WithState(str(touched)),
        "pathlib": Calls(Path.touch, Path(touched)),
        "a module's part": whole_with(Calls(os.system, command)),
        "torch.load": Calls(torch.load, str(touched.with_name("other.pt"))),
        "partial": functools.partial(os.system, command),
    }


def whole_with(part):
    module = RNNModel("LSTM", len(WORDS), 6, 6, 1)
    vars(module)["hook"] = part
    return module


HOSTILE = list(hostile(Path("/nowhere")))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_in_a_file_is_run(kind, zipped, tmp_path, module_called_model):
    touched = tmp_path / "touched"
    folder = folder_of(tmp_path / "m", hostile(touched)[kind], _use_new_zipfile_serialization=zipped)
    with pytest.raises(
        LitmusError, match=r"wants .*, which no recurrent model needs and could run code, so it is not opened"
    ):
        load(str(folder))
    assert not touched.exists()


@pytest.mark.parametrize("kind", ["os.system", "nested", "setstate", "exec"])
def test_the_files_are_really_hostile(kind, tmp_path):
    """What the test above refuses does run where nothing is checked."""
    folder = folder_of(tmp_path / "m", hostile(tmp_path / "touched")[kind])
    torch.load(folder / "model.pt", weights_only=False)
    assert (tmp_path / "touched").exists()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_bare_pickle_of_any_protocol_is_not_run(protocol, tmp_path):
    folder = folder_of(tmp_path / "m", {})
    (folder / "model.pt").write_bytes(pickle.dumps(hostile(tmp_path / "touched")["os.system"], protocol))
    with pytest.raises(LitmusError):
        load(str(folder))
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("place", range(5))
def test_any_of_the_pickles_of_an_old_file_may_be_the_hostile_one(place, tmp_path):
    folder = folder_of(tmp_path / "m", published().state_dict(), _use_new_zipfile_serialization=False)
    raw = (folder / "model.pt").open("rb")
    starts = [0]
    for _ in range(5):
        list(pickletools.genops(raw))
        starts.append(raw.tell())
    content = (folder / "model.pt").read_bytes()
    parts = [content[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]
    parts[place] = pickle.dumps(hostile(tmp_path / "touched")["os.system"], 2)
    (folder / "model.pt").write_bytes(b"".join(parts))
    with pytest.raises(LitmusError, match=r"wants (posix|nt).system"):
        load(str(folder))
    assert not (tmp_path / "touched").exists()


def test_a_second_pickle_in_an_archive_is_read_with_the_same_care(tmp_path):
    folder = folder_of(tmp_path / "m", published().state_dict())
    with zipfile.ZipFile(folder / "model.pt", "a") as archive:
        archive.writestr("model/more.pkl", pickle.dumps(hostile(tmp_path / "touched")["os.system"], 2))
    with pytest.raises(LitmusError, match=r"wants (posix|nt).system"):
        load(str(folder))


def test_an_old_file_with_an_archive_behind_it_is_still_an_old_file(tmp_path):
    """Python finds the archive at the end, torch reads the pickles at the start: both must not be tricked."""
    folder = folder_of(tmp_path / "m", hostile(tmp_path / "touched")["os.system"], _use_new_zipfile_serialization=False)
    folder_of(tmp_path / "other", published().state_dict())
    content = (folder / "model.pt").read_bytes() + (tmp_path / "other" / "model.pt").read_bytes()
    (folder / "model.pt").write_bytes(content)
    with pytest.raises(LitmusError, match=r"wants (posix|nt).system"):
        load(str(folder))
    assert not (tmp_path / "touched").exists()


def test_what_is_let_in_does_nothing(tmp_path, module_called_model):
    """A stand-in takes the place even of a class that is really there, ``__setstate__`` and all."""

    class Dropout(WithState):
        __module__, __qualname__ = "torch.nn.modules.dropout", "Dropout"

    whole = whole_with(None)
    touched = tmp_path / "touched"
    vars(whole)["hook"] = hook = Dropout(str(touched))
    original = nn.modules.dropout.Dropout
    nn.modules.dropout.Dropout = Dropout
    try:
        del vars(whole)["_modules"]["drop"]
        folder = folder_of(tmp_path / "m", whole)
        assert load(str(folder)).network.cell == "LSTM" and not touched.exists()
    finally:
        nn.modules.dropout.Dropout = original
    assert hook.touched


def test_a_module_that_is_a_part_of_itself_is_told(tmp_path, module_called_model):
    whole = whole_with(None)
    vars(whole)["_modules"]["again"] = whole
    assert "nested in itself" in refused(whole, tmp_path / "m")


def test_the_list_of_what_is_let_in_is_as_it_was_after_loading(tmp_path, module_called_model):
    before = set(torch.serialization.get_safe_globals())
    load(str(folder_of(tmp_path / "m", published())))
    assert set(torch.serialization.get_safe_globals()) == before


def test_compiled_programs_are_refused(tmp_path):
    torch.jit.script(nn.Linear(2, 2)).save(str(tmp_path / "model.pt"))
    (tmp_path / "vocab.txt").write_text("a b")
    with pytest.raises(LitmusError):
        load(str(tmp_path))


# --- a model that learned something, and the notebooks ---------------------------------------------------------------


@cache
def trained():
    """A checkpoint trained for a few seconds on a toy grammar: a noun, another one near it, and the verb that agrees."""
    draw = random.Random(3)
    nouns, verbs = {"one": ["cat", "dog"], "many": ["cats", "dogs"]}, {"one": "sees", "many": "see"}
    sentences = []
    for _ in range(512):
        number, other = draw.choice(["one", "many"]), draw.choice(["one", "many"])
        subject, attractor = draw.choice(nouns[number]), draw.choice(nouns[other])
        sentences.append(f"<eos> the {subject} near the {attractor} {verbs[number]} the cat . <eos>")
    ids = torch.tensor([[WORDS.index(word) for word in sentence.split()] for sentence in sentences])
    torch.manual_seed(1)
    network = RecurrentNetwork("LSTM", len(WORDS), 16, 16, 1, tied=True)
    optimiser = torch.optim.Adam(network.parameters(), 0.02)
    for step in range(300):
        batch = ids[step % 8 :: 8]
        logits, _ = network(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


@pytest.mark.parametrize("start_state", STATES)
def test_a_trained_checkpoint_scores_as_a_plain_loop_says_and_agrees(start_state, tmp_path, module_called_model):
    theirs = RNNModel("LSTM", len(WORDS), 16, 16, 1, True).eval()
    theirs.load_state_dict(trained().state_dict())
    model = load(str(folder_of(tmp_path / "m", theirs)), start_state=start_state)
    sentences = [f"the {noun} near the {other} {verb} the cat ." for noun, other, verb in [
        ("cat", "dogs", "sees"), ("cats", "dog", "see"), ("cat", "dogs", "see"), ("cats", "dog", "sees")]]  # fmt: skip
    found = model.score(sentences)
    for scores, wanted in zip(found, plain_scores(theirs, sentences, start_state, WORDS), strict=True):
        np.testing.assert_allclose(scores.log_probabilities, wanted, atol=1e-5)
    right, wrong = (np.mean([scores.log_probabilities[5] for scores in part]) for part in (found[:2], found[2:]))
    assert right > wrong + 1


def words_of_our_items() -> list[str]:
    files = [path for path in sorted((DATA / "items").rglob("*")) if path.suffix in (".jsonl", ".tsv", ".csv", ".tab")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    texts.append((DATA / "verbs.csv").read_text(encoding="utf-8").replace(",", " "))
    texts.append("The is are has have looks look works work stands stand")
    return sorted({word for text in texts for word in words_of(text)})


@pytest.mark.parametrize("notebook", ["00_start_here", "20_agreement", "31_roles"])
def test_notebooks_take_recurrent_models(notebook, tmp_path):
    torch.manual_seed(2)
    words = ["<unk>", "<eos>", *words_of_our_items()]
    network = RecurrentNetwork("LSTM", len(words), 16, 16, 1, tied=True)
    nn.init.normal_(network.encoder.weight, 0, 0.5)
    folder = save(tmp_path / "tiny-lstm", network, words)
    settings = ["start_state=zero", *(["limit=4"] if notebook.startswith("20") else [])]
    command = [sys.executable, "-m", "lib.run", notebook, "--model", str(folder), "--out", str(tmp_path / "result")]
    command += [word for pair in settings for word in ("--set", pair)]
    environment = {**os.environ, "LITMUS_DATASETS": "", "LITMUS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["family"] == "recurrent" and result["choices"]["start_state"] == "zero"
    assert result["provenance"]["identity"]["start_state"] == "zero"
    assert result["headline"]["coverage"] > 0.5
