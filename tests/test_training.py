"""Training: schedules and updates by hand, runs that are taken up again, and text that no diagnostic asks about."""

import io
import itertools
import random
import urllib.error
import zipfile
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from conftest import require
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from transformers import DistilBertConfig, DistilBertForMaskedLM, DistilBertModel

from lib.errors import LitmusError
from lib.models import bundled, load
from lib.models.bundled import merge_adapter
from lib.models.recurrent import RecurrentNetwork
from lib.paths import DATA
from lib.training import corpora
from lib.training import masked as masked_training
from lib.training import recurrent as recurrent_training
from lib.training.corpora import Forbidden, Paragraph
from lib.training.loop import Schedule, Task, first_losses, train
from lib.training.masked import Pieces, Special
from lib.training.trigram import Trigram

# The loop ------------------------------------------------------------------------------------------------------------


def test_rates_by_hand():
    """Two steps up to 1, flat to step 6, then a cosine over four: (1 + cos(pi i / 4)) / 2, and .02 at the end."""
    schedule = Schedule(10, 1.0, warm_up=2, decay=4, end=0.0)
    assert [schedule.rate(step) for step in range(6)] == [0.5, 1, 1, 1, 1, 1]
    assert [schedule.rate(step) for step in range(6, 10)] == pytest.approx([0.853553, 0.5, 0.146447, 0], abs=1e-6)
    assert schedule._replace(end=0.02).rate(9) == pytest.approx(0.02)


def small_task(seed: int = 0) -> Task:
    """A line to fit: noise of step n depends on n alone."""
    torch.manual_seed(seed)
    line = nn.Linear(3, 1)

    def loss(step: int):
        x = torch.randn(8, 3, generator=torch.Generator().manual_seed(step))
        return functional.mse_loss(line(x)[:, 0], x[:, 0] - 2 * x[:, 2])

    return Task(dict(line.named_parameters()), loss, lambda: {"weight": line.weight[0, 0].item()})


SCHEDULE = Schedule(30, 0.1, warm_up=3, decay=10)


def run(folder, schedule=SCHEDULE, stops=(None,), settings=None):
    """The log and the trained numbers of a run that is stopped at ``stops`` and begun anew each time."""
    for stop in stops:
        task = small_task()
        log = train(
            task, schedule, folder, settings or {"rank": 1}, every=10, save_every=7, stop=stop, say=lambda _: None
        )
    return log, torch.cat([parameter.detach().flatten() for parameter in task.parameters.values()])


@pytest.mark.parametrize("stops", [(1, None), (12, 20, None), (25, None), (29, 30, None)])
def test_a_run_that_was_stopped_gives_what_one_gives_that_was_not(stops, tmp_path):
    log, trained = run(tmp_path / "whole")
    again, taken_up = run(tmp_path / "stopped", stops=stops)
    assert again == log and [entry["step"] for entry in log] == [10, 20, 30]
    assert torch.equal(taken_up, trained)
    assert (tmp_path / "stopped" / "log.csv").read_text() == (tmp_path / "whole" / "log.csv").read_text()


def test_it_learns(tmp_path):
    log, trained = run(tmp_path, Schedule(300, 0.1, 3, 150))
    assert log[-1]["loss"] < 1e-3 < log[0]["loss"]
    assert trained.tolist() == pytest.approx([1, 0, -2, 0], abs=0.05)


def test_a_longer_run_goes_on_from_the_flat_part(tmp_path):
    """From ``flat.pt``, or from a checkpoint of the flat part, to what the longer run would have been."""
    longer = Schedule(60, 0.1, warm_up=3, decay=10)
    log, trained = run(tmp_path / "longer", longer)
    run(tmp_path / "flat")
    (tmp_path / "flat" / "flat.pt").rename(tmp_path / "flat" / "checkpoint.pt")
    run(tmp_path / "early", stops=(15,))
    for folder in ("flat", "early"):
        again, taken_up = run(tmp_path / folder, longer)
        assert again == log and torch.equal(taken_up, trained)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    run(tmp_path, stops=(25,))
    with pytest.raises(LitmusError, match=r"made with other settings .*name another folder or remove it\.$"):
        run(tmp_path, settings={"rank": 2})
    with pytest.raises(LitmusError, match=r"at step 25 of another schedule .*flat\.pt"):
        run(tmp_path, Schedule(60, 0.1, warm_up=3, decay=10))


# The masked model ----------------------------------------------------------------------------------------------------

SPECIAL = Special(start=1, end=2, mask=3, pad=0)
CONFIGURATION = {
    "vocab_size": 40,
    "dim": 8,
    "n_layers": 3,
    "n_heads": 2,
    "hidden_dim": 16,
    "max_position_embeddings": 130,
}


def tiny_trainee(rank=2, lowest=1, learnt=True):
    torch.manual_seed(1)
    encoder = DistilBertModel(DistilBertConfig(**CONFIGURATION)).eval()
    plain = {f"distilbert.{name}": tensor.clone() for name, tensor in encoder.state_dict().items()}
    trainee = masked_training.Trainee(encoder, rank, lowest)
    if learnt:
        for parameter in trainee.trained().values():
            parameter.data += torch.randn_like(parameter) / 4
    return plain, trainee


def test_an_update_by_hand():
    """(1 2; 3 4) + (1; 10) (5 6) = (6 8; 53 64), bias (1, 1), for the input (1, 1)."""
    frozen = nn.Linear(2, 2)
    frozen.weight.data, frozen.bias.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2)
    layer = masked_training.UpdatedLinear(frozen, 1, torch.Generator())
    assert layer(torch.ones(2)).tolist() == [4, 8]
    layer.lora_A.data, layer.lora_B.data = torch.tensor([[5.0, 6.0]]), torch.tensor([[1.0], [10.0]])
    assert layer(torch.ones(2)).tolist() == [15, 118]


def test_the_adapter_merged_is_the_model_that_was_trained(tmp_path):
    plain, trainee = tiny_trainee()
    masked_training.save_adapter(trainee, tmp_path / "adapter.safetensors")
    from safetensors.torch import load_file

    adapter = load_file(tmp_path / "adapter.safetensors")
    network = DistilBertForMaskedLM(DistilBertConfig(**CONFIGURATION)).eval()
    network.load_state_dict(merge_adapter(plain, adapter))
    batch = masked_training.masked([[5, 6, 7], [8, 9, 10, 11, 12]], 0.5, SPECIAL, 0)
    with torch.no_grad():
        mine = trainee(batch[0], batch[1], batch[2] != -100)
        theirs = network(batch[0], attention_mask=batch[1]).logits[batch[2] != -100]
    assert torch.allclose(mine, theirs, atol=0.02) and mine.std() > 0.1  # half precision in between
    assert not any("layer.0." in name for name in adapter) and any("layer.1." in name for name in adapter)


def test_only_what_is_trained_gets_gradients_and_nothing_below_the_lowest_layer():
    _, trainee = tiny_trainee()
    masked_training.loss_on(trainee, *masked_training.masked([[5, 6, 7, 8]], 0.5, SPECIAL, 0)).backward()
    with_gradient = {name for name, parameter in trainee.named_parameters() if parameter.grad is not None}
    assert len(with_gradient) == len(trainee.trained()) == 2 * (6 * 2 + 4) + 5
    assert not trainee.encoder.transformer.layer[0].ffn.lin1.weight.requires_grad


def test_a_trainee_that_has_learnt_nothing_is_the_encoder():
    _, trainee = tiny_trainee(learnt=False)
    ids = torch.tensor([[1, 5, 6, 2]])
    torch.manual_seed(1)
    encoder = DistilBertModel(DistilBertConfig(**CONFIGURATION)).eval()
    assert torch.allclose(trainee.encoder(ids).last_hidden_state, encoder(ids).last_hidden_state, atol=1e-6)


@given(st.lists(st.lists(st.integers(4, 30), min_size=1, max_size=20), min_size=1, max_size=5), st.integers(0, 10**9))
def test_masks_hide_pieces_and_nothing_else(batch, seed):
    ids, attention, targets = masked_training.masked(batch, 0.3, SPECIAL, seed)
    assert attention.sum(1).tolist() == [len(example) + 2 for example in batch]
    hidden = targets != -100
    assert hidden.any() and ((ids == SPECIAL.mask) == hidden).all()
    whole = torch.where(hidden, targets, ids)
    for row, example in zip(whole.tolist(), batch, strict=True):
        assert row == [1, *example, 2, *[0] * (len(row) - len(example) - 2)]
    assert torch.equal(masked_training.masked(batch, 0.3, SPECIAL, seed)[0], ids)


def test_as_many_pieces_are_masked_as_was_said():
    _, _, targets = masked_training.masked([[5] * 100] * 100, 0.3, SPECIAL, 0)
    assert (targets != -100).float().mean().item() == pytest.approx(0.3 * 100 / 102, abs=0.02)


def paragraphs(*lengths, source="wikipedia"):
    """Paragraphs of sentences of these lengths, every piece another number."""
    count = itertools.count(10)
    return [Pieces(source, [[next(count) for _ in range(length)] for length in sentences]) for sentences in lengths]


def test_examples_packed_and_alone_by_hand():
    text = paragraphs((60, 60, 60), (3, 5), (200,))
    packed = list(masked_training.examples(text, 0.0, random.Random(0)))
    assert [len(example) for example in packed] == [120, 60, 8, 126]
    alone = list(masked_training.examples(text, 1.0, random.Random(0)))
    assert [len(example) for example in alone] == [60, 60, 60, 5, 126]


def test_each_round_has_all_summaries_and_a_part_of_the_books():
    text = paragraphs(*[(20, 20)] * 30) + paragraphs(*[(9, 9)] * 30, source="books")
    rounds = masked_training.Text(text, seed=0, pieces=300, alone=0.5, books_in=2)
    rounds.batch(0)
    batches = [rounds.batch(step) for step in range(len(rounds.rounds[0]))]
    assert all(len(batch) * (max(map(len, batch)) + 2) <= 300 for batch in batches)
    seen = sorted(piece for batch in batches for example in batch for piece in example)
    wanted = [*text[:30], *text[30::2]]
    assert seen == sorted(piece for paragraph in wanted for sentence in paragraph.sentences for piece in sentence)
    late = masked_training.Text(text, seed=0, pieces=300, alone=0.5, books_in=2)
    assert late.batch(40) == rounds.batch(40) and late.batch(2) == batches[2]  # whatever was asked before
    assert masked_training.Text(text, seed=1, pieces=300, alone=0.5, books_in=2).batch(2) != batches[2]


def test_held_out_figures_by_hand():
    """Two places: the right piece has log-odds 1 against 0 (loss log(1 + 1/e), right) and 0 against 2 (loss log(1 + e^2))."""
    targets = torch.tensor([[0, 1, -100]])

    def network(ids, attention, read):
        return torch.tensor([[1.0, 0.0], [2.0, 0.0]])

    found = masked_training.held_out(network, [(targets, targets, targets)])
    assert found == {"loss": pytest.approx((0.313262 + 2.126928) / 2, abs=1e-5), "top1": 0.5, "places": 2}


def test_bias_starts_at_the_frequencies():
    found = masked_training.log_frequencies([Pieces("books", [[0, 0], [2]])], 3).exp()
    assert found.tolist() == pytest.approx([3 / 6, 1 / 6, 2 / 6])


# The recurrent model -------------------------------------------------------------------------------------------------


def test_the_output_loss_is_the_plain_one():
    torch.manual_seed(0)
    hidden, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((600, 5), (20, 5), (20,)))
    targets = torch.randint(0, 20, (600,))
    plain = functional.cross_entropy(functional.linear(hidden, weight, bias), targets, reduction="sum") / 3
    wanted = torch.autograd.grad(plain, (hidden, weight, bias))
    fused = recurrent_training.OutputLoss.apply(hidden, weight, bias, targets, torch.float32) / 3
    assert fused.item() == pytest.approx(plain.item(), rel=1e-5)
    for mine, theirs in zip(torch.autograd.grad(fused, (hidden, weight, bias)), wanted, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-4)


def test_recurrent_examples_by_hand():
    """Whole sentences in a row, the end of a sentence (1) before and after each."""
    assert recurrent_training.examples([[[5, 6], [7], [8, 9, 10]]], 6) == [[1, 5, 6, 1, 7, 1], [1, 8, 9, 10, 1]]
    assert recurrent_training.examples([[list(range(10, 30))]], 6) == [[1, 10, 11, 12, 13, 1]]
    read, follow = recurrent_training.padded([[1, 5, 1], [1, 5, 6, 1]])
    assert read.tolist() == [[1, 5, 0], [1, 5, 6]] and follow.tolist() == [[5, 1, -100], [5, 6, 1]]


def test_the_vocabulary_by_hand():
    text = [[["b", "a", "c"], ["b", "a"]], [["b", "d"]]]
    assert recurrent_training.vocabulary_of(text, 5) == ["<unk>", "<eos>", "b", "a", "c"]
    assert recurrent_training.in_ids(text, ["<unk>", "<eos>", "b", "a"]) == [[[2, 3, 0], [2, 3]], [[2, 0]]]


def test_perplexity_is_that_of_the_network_sentence_by_sentence():
    torch.manual_seed(0)
    network = RecurrentNetwork("LSTM", 12, 6, 6, 2, tied=True, dropout=0.5)
    found = [[1, 5, 6, 1], [1, 7, 1], [1, 4, 4, 4, 4, 1]]
    measured = recurrent_training.perplexity(network, found, rows=2)
    network.eval()
    logs = [
        torch.log_softmax(network(torch.tensor([example[:-1]]))[0][0], -1)[range(len(example) - 1), example[1:]]
        for example in found
    ]
    assert measured["loss"] == pytest.approx(-torch.cat(logs).mean().item(), rel=1e-5)


def test_recurrent_rounds_hold_every_example_once():
    found = [[1, *[5] * n, 1] for n in range(1, 20)]
    text = recurrent_training.Text(found, 4, 0)
    assert len(text) == 5
    seen = [example for step in range(5) for example in text.batch(step)]
    assert sorted(map(len, seen)) == sorted(map(len, found))
    assert recurrent_training.Text(found, 4, 0).batch(7) == text.batch(7) != text.batch(2)


def test_trigrams_by_hand():
    """Of "1 5 6 1", "1 5 7 1" (doubled first 1): 5 follows "1 1" twice. Discounts .75 where counts of counts say nothing."""
    model = Trigram([[1, 5, 6, 1], [1, 5, 7, 1]], 10)
    uniform = 1 / 10
    one = (1 - model.levels[0].discounts[1] + model.levels[0].taken[()] * uniform) / 5  # 5 after one word, of 5 bigrams
    assert model.levels[0].counts[((), 5)] == 1 and model.levels[0].total[()] == 5
    two = (1 - model.levels[1].discounts[1] + model.levels[1].taken[(1,)] * one) / 1
    three = (2 - model.levels[2].discounts[2] + model.levels[2].taken[(1, 1)] * two) / 2
    assert model.probability(1, 1, 5) == pytest.approx(three)


@given(
    st.lists(st.lists(st.integers(1, 6), min_size=2, max_size=9), min_size=1, max_size=12),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_trigram_probabilities_add_up_to_one(text, a, b):
    model = Trigram(text, 7)
    found = [model.probability(a, b, word) for word in range(7)]
    assert min(found) >= 0 and sum(found) == pytest.approx(1)


# The text ------------------------------------------------------------------------------------------------------------


def test_sentences_by_hand():
    text = "\u201cMr. Fox is out,\u201d said J. B. Hare\u2014sadly.  He left. (It rained.) Why? 3 came."
    assert corpora.sentences_of(text) == [
        '"Mr. Fox is out," said J. B. Hare \u2014 sadly.', "He left.", "(It rained.)", "Why?", "3 came.",
    ]  # fmt: skip


def test_an_author_is_capped_and_others_are_not():
    text = [Paragraph("books", author, (f"{author} {n} three",)) for author in "ab" for n in range(10)]
    text += [Paragraph("wikipedia", "", (f"{n} two three",)) for n in range(10)]
    kept = corpora.capped(text, words=12)
    assert [sum(paragraph.author == author for paragraph in kept) for author in ("a", "b", "")] == [4, 4, 10]
    assert corpora.capped(text, words=12) == kept != corpora.capped(text, words=12, seed=1)


def test_what_an_item_forbids():
    forbidden = Forbidden(["The keys to the cabinet are here.", "The boys laugh"])
    assert forbidden.shares("He lost 'the keys to THE cabinet', he said.")
    assert forbidden.shares("The boys laugh!") and not forbidden.shares("The boys laugh at him.")
    assert not forbidden.shares("He lost the keys to the car, the cabinet is new.")


def test_an_excluded_sentence_cuts_its_paragraph():
    text = [Paragraph("books", "a", ("One.", "Two.", "Three.", "Four."))]
    kept = corpora.without_excluded(text, {corpora.digest("Two."), corpora.digest("Four.")})
    assert [paragraph.sentences for paragraph in kept] == [("One.",), ("Three.",)]


def archive(pages: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as files:
        for name, body in pages.items():
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
            files.writestr(f"book-1/src/epub/text/{name}.xhtml", page)
    return content.getvalue()


def test_a_book_from_its_repository():
    pages = {
        "chapter-2": "<p>Short one.</p><p>They <em>said</em>\n\t so.</p>",
        "chapter-1": "<h2>A title of a chapter</h2><p><span>Isn\u2019t it</span><br/>\n<span>funny</span></p>",
        "colophon": "<p>Made by many people.</p>",
    }
    assert corpora.text_of_archive(archive(pages)) == "Isn\u2019t it funny\nThey said so.\n"


def test_books_that_cannot_be_had_or_differ_are_told(tmp_path, monkeypatch):
    with pytest.raises(LitmusError, match=r"is not in .*get the books by python -m lib\.training books"):
        corpora.read_books(tmp_path)

    def nothing(*_, **__):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", nothing)
    with pytest.raises(LitmusError, match=r"could not be had .*LITMUS_CORPORA\.$"):
        corpora.fetch_books(tmp_path)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(archive({"a": "<p>Not the book.</p>"})))
    said: list[str] = []
    corpora.fetch_books(tmp_path, said.append)
    assert len(said) == len(corpora.listed_books()) == 24
    assert all("not quite the text" in line for line in said)


@pytest.fixture(scope="module")
def text():
    """The training and the held-out paragraphs, where the books lie here."""
    books = corpora.folder_of_books()
    require(all((books / book.file).is_file() for book in corpora.listed_books()), "LITMUS_CORPORA names no books here")
    training, held_out = corpora.prepare(bundled.summaries(), books)
    return SimpleNamespace(training=training, held_out=held_out)


@pytest.mark.bundled
def test_the_split_and_the_cap(text):
    assert 0.02 < len(text.held_out) / len(text.training) < 0.03
    assert not {paragraph.sentences for paragraph in text.training} & {
        paragraph.sentences for paragraph in text.held_out
    }
    words: dict[str, int] = {}
    for paragraph in text.training:
        words[paragraph.author] = words.get(paragraph.author, 0) + len(" ".join(paragraph.sentences).split())
    assert max(count for author, count in words.items() if author) <= corpora.WORDS_OF_ONE_AUTHOR + 1000


def shared_with(folder, text) -> list[str]:
    """Training sentences that share five words in a row with an item, or are a short one."""
    forbidden = Forbidden(corpora.item_texts(folder))
    assert len(forbidden.runs) > 10_000
    return [sentence for paragraph in text.training for sentence in paragraph.sentences if forbidden.shares(sentence)]


@pytest.mark.bundled
def test_no_published_item_shares_five_words_with_the_training_text(text, datasets):
    assert not shared_with(datasets, text)


@pytest.mark.bundled
def test_no_item_of_ours_is_in_the_training_text(text):
    """Nothing that an item says as a whole. Items written after the training may share a phrase with some sentences."""
    shared = shared_with(DATA / "items", text)
    assert len(shared) < 0.001 * sum(len(paragraph.sentences) for paragraph in text.training), "lib.training exclude"
    flat = ["", *(" ".join(corpora.words(sentence)) for sentence in shared), ""]
    whole = {" ".join(corpora.words(item)) for item in corpora.item_texts(DATA / "items")}
    read = " | ".join(flat)
    assert not [item for item in whole if item.count(" ") >= 4 and f" {item} " in read]
    assert not whole & set(flat) - {""}


def test_the_list_of_excluded_sentences_grows(tmp_path):
    text = [Paragraph("books", "a", ("The old man and the sea.", "The old man and the goat."))]
    forbidden = Forbidden(["Where the old man and the goat met."])
    assert corpora.exclude(text, forbidden, tmp_path / "list") == 2  # "the old man and the" is in both
    assert corpora.exclude(text, Forbidden(["Nothing of the sort is here."]), tmp_path / "list") == 0
    assert set((tmp_path / "list").read_text().split()) == {corpora.digest(s) for s in text[0].sentences}


# What is shipped -----------------------------------------------------------------------------------------------------


def shipped(name: str, file: str) -> pd.DataFrame:
    return pd.read_csv(DATA / "models" / name / file)


def test_the_shipped_models_are_better_than_what_they_were_measured_against():
    """The pilot under the same masks, and a trigram with the same words, each in one run with ours."""
    of_masked = shipped("distilbert-mlm", "held_out.csv").query("limit == 0").pivot(index="source", columns="adapter")
    assert (of_masked["top1"]["distilbert-mlm"] > of_masked["top1"]["distilbert-mlm-pilot"]).all()
    assert (of_masked["loss"]["distilbert-mlm"] < of_masked["loss"]["distilbert-mlm-pilot"]).all()


@pytest.mark.bundled
def test_held_out_figures_of_the_shipped_masked_model(text):
    """On the first examples of each source, in float32, as they stand in the table."""
    measured = pd.DataFrame(masked_training.figures([bundled.ADAPTER], limits=[32])).set_index("source")
    noted = shipped("distilbert-mlm", "held_out.csv").query("limit == 32 and adapter == 'distilbert-mlm'")
    noted = noted.set_index("source")
    assert (measured["places"] == noted["places"]).all()
    assert measured["loss"].to_dict() == pytest.approx(noted["loss"].to_dict(), abs=2e-3)
    assert measured["top1"].to_dict() == pytest.approx(noted["top1"].to_dict(), abs=4e-3)


@pytest.mark.bundled
def test_the_first_steps_of_the_masked_run_are_found_again(text):
    _, task = masked_training.prepared(masked_training.Settings())
    found = first_losses(task, Schedule(900, 2e-3, 50, 300), steps=2)
    noted = shipped("distilbert-mlm", "first_losses.csv")["loss"][:2].tolist()
    assert [entry["loss"] for entry in found] == pytest.approx(noted, abs=0.02)  # bfloat16 differs between processors


@pytest.mark.bundled
def test_held_out_figures_of_the_shipped_recurrent_model(text):
    """Of 200 examples of each source; the trigram is counted anew, too."""
    settings = recurrent_training.Settings()
    data = recurrent_training.ready(text.training, text.held_out, settings)
    model = load("wiki-lstm")
    assert list(model.vocabulary) == data.vocabulary
    measured = pd.DataFrame(recurrent_training.figures(model.network, data, limits=[200]))
    noted = shipped("wiki-lstm", "held_out.csv").query("limit == 200")
    assert measured["model"].tolist() == noted["model"].tolist()
    assert measured["perplexity"].tolist() == pytest.approx(noted["perplexity"].tolist(), rel=1e-3)


@pytest.mark.bundled
def test_the_first_steps_of_the_recurrent_run_are_found_again(text):
    settings = recurrent_training.Settings()
    data = recurrent_training.ready(text.training, text.held_out, settings)
    _, task = recurrent_training.task(data, settings)
    found = first_losses(task, Schedule(22_500, 2e-3, 200, 7_500), steps=3)
    noted = shipped("wiki-lstm", "first_losses.csv")["loss"].tolist()
    assert [entry["loss"] for entry in found] == pytest.approx(noted, abs=0.01)


def test_the_first_losses_of_a_run_that_has_no_more_steps():
    weight = torch.nn.Parameter(torch.tensor(2.0))
    task = Task({"weight": weight}, lambda step: (weight - step) ** 2, dict)
    found = first_losses(task, Schedule(2, 1e-9, warm_up=1), steps=3)
    assert [entry["step"] for entry in found] == [0, 1]
    assert [entry["loss"] for entry in found] == pytest.approx([4.0, 1.0])
