"""How a word-level LSTM is trained, and the trigram model that it has to beat.

The network is the one of the published checkpoints (Gulordava et al. 2018), smaller, with tied weights. An example is a few
sentences in a row, ``<eos>`` before each, read from the empty state.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from lib.models import bundled
from lib.models.recurrent import END, UNKNOWN, RecurrentNetwork, words_of
from lib.training import corpora
from lib.training.corpora import Paragraph
from lib.training.loop import Task
from lib.training.trigram import Trigram

ROWS = 256  # of the output layer at a time


class Settings(NamedTuple):
    """What a recurrent run is made of, besides its text and its schedule."""

    words: int = 15_000
    size: int = 165  # of embeddings and states
    layers: int = 2
    dropout: float = 0.2
    longest: int = 64  # words of an example
    rows: int = 24  # examples of a batch
    dtype: str = "bfloat16"  # of the output layer in training
    seed: int = 0


def sentences_in_words(paragraphs: Iterable[Paragraph]) -> list[list[list[str]]]:
    """Each paragraph as sentences of words."""
    return [[words_of(sentence) for sentence in paragraph.sentences] for paragraph in paragraphs]


def vocabulary_of(paragraphs: Iterable[Sequence[Sequence[str]]], size: int) -> list[str]:
    """``<unk>``, ``<eos>`` and the most frequent words, of equally frequent ones the first by alphabet."""
    counts = Counter(word for sentences in paragraphs for sentence in sentences for word in sentence)
    return [UNKNOWN, END, *sorted(counts, key=lambda word: (-counts[word], word))[: size - 2]]


def in_ids(paragraphs: Iterable[Sequence[Sequence[str]]], vocabulary: Sequence[str]) -> list[list[list[int]]]:
    """Each sentence as rows of the vocabulary, with the row of ``<unk>`` for unknown words."""
    rows = {word: row for row, word in enumerate(vocabulary)}
    return [[[rows.get(word, 0) for word in sentence] for sentence in sentences] for sentences in paragraphs]


def examples(paragraphs: Iterable[Sequence[Sequence[int]]], longest: int, end: int = 1) -> list[list[int]]:
    """Runs of ``<eos>`` sentence ``<eos>`` sentence ... ``<eos>``: as many whole sentences as fit, a long one cut."""
    found = []
    for sentences in paragraphs:
        run = [end]
        for sentence in sentences:
            if len(run) > 1 and len(run) + len(sentence) + 1 > longest:
                found.append(run)
                run = [end]
            run = [*run, *sentence[: longest - 2], end]
        if len(run) > 2:
            found.append(run)
    return found


class Data(NamedTuple):
    """The vocabulary of the training text, its examples, and the held-out examples by their source."""

    vocabulary: list[str]
    examples: list[list[int]]
    held_out: dict[str, list[list[int]]]


def ready(training: Sequence[Paragraph], held_out: Sequence[Paragraph], settings: Settings) -> Data:
    """Paragraphs in the words of a vocabulary."""
    in_words = sentences_in_words(training)
    vocabulary = vocabulary_of(in_words, settings.words)
    measured = {}
    for source in dict.fromkeys(paragraph.source for paragraph in held_out):
        chosen = [paragraph for paragraph in held_out if paragraph.source == source]
        measured[source] = examples(in_ids(sentences_in_words(chosen), vocabulary), settings.longest)
    return Data(vocabulary, examples(in_ids(in_words, vocabulary), settings.longest), measured)


class Text:
    """The batches of every round: all examples once, similar lengths together, in an order drawn by the seed."""

    def __init__(self, found: Sequence[list[int]], rows: int, seed: int):
        self.found, self.rows, self.seed = list(found), rows, seed
        self.round: tuple[int, list[list[list[int]]]] = (-1, [])

    def __len__(self) -> int:
        """Batches in a round."""
        return -(-len(self.found) // self.rows)

    def batch(self, step: int) -> list[list[int]]:
        """The examples of a step."""
        number, place = divmod(step, len(self))
        if self.round[0] != number:
            draw = random.Random(f"{self.seed} {number}")
            order = sorted(self.found, key=lambda example: len(example) + draw.random())
            batches = [order[start : start + self.rows] for start in range(0, len(order), self.rows)]
            draw.shuffle(batches)
            self.round = (number, batches)
        return self.round[1][place]


def padded(batch: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    """Words read and words to come, each (rows x longest); -100 where a row is over."""
    longest = max(map(len, batch)) - 1
    read = torch.tensor([row[:-1] + [0] * (longest + 1 - len(row)) for row in batch])
    follow = torch.tensor([row[1:] + [-100] * (longest + 1 - len(row)) for row in batch])
    return read, follow


class OutputLoss(torch.autograd.Function):
    """Summed cross-entropy of an output layer, whose scores (places x words) are never all there at once.

    Gradients are computed along with the loss, some rows at a time while they are in the processor's cache: on a CPU almost
    twice as fast as the plain way, to the same numbers.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, dtype: torch.dtype) -> Tensor:
        """Products are computed in ``dtype``, all else in float32."""
        words, total = weight.to(dtype), hidden.new_zeros(())
        gradients = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(hidden), ROWS):
            some, wanted = hidden[start : start + ROWS].to(dtype), targets[start : start + ROWS, None]
            scores = functional.linear(some, words).float() + bias
            norms = scores.logsumexp(1, keepdim=True)
            total += (norms - scores.gather(1, wanted)).sum()
            too_much = scores.sub_(norms).exp_()
            too_much.scatter_add_(1, wanted, -torch.ones_like(norms))
            gradients[2].add_(too_much.sum(0))
            too_much = too_much.to(dtype)
            gradients[0][start : start + ROWS] = too_much @ words
            gradients[1].add_(too_much.T @ some)
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients, scaled."""
        return (*(gradient * given[0] for gradient in ctx.saved_tensors), None, None)


def loss_on(network: RecurrentNetwork, read: Tensor, follow: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Summed cross-entropy (nats) of the words to come; the output layer is computed in ``dtype``, only where there is one."""
    hidden, _ = network.read(read)
    there = follow != -100
    decoder = network.decoder
    loss: Tensor = OutputLoss.apply(network.drop(hidden[there]), decoder.weight, decoder.bias, follow[there], dtype)
    return loss


@torch.inference_mode()
def perplexity(network: RecurrentNetwork, found: Sequence[list[int]], rows: int = 32) -> dict[str, float]:
    """Perplexity and mean loss (nats) over all words of the examples, ``<eos>`` and ``<unk>`` included."""
    learning = network.training
    network.eval()
    order = sorted(found, key=len)
    total, places = 0.0, 0
    for start in range(0, len(order), rows):
        read, follow = padded(order[start : start + rows])
        total += loss_on(network, read, follow).item()
        places += int((follow != -100).sum())
    network.train(learning)
    return {"loss": total / places, "perplexity": float(torch.tensor(total / places).exp())}


def task(data: Data, settings: Settings) -> tuple[RecurrentNetwork, Task]:
    """A network that has learnt nothing yet, and its training task."""
    torch.manual_seed(settings.seed)
    network = RecurrentNetwork(
        "LSTM", settings.words, settings.size, settings.size, settings.layers, tied=True, dropout=settings.dropout
    )
    network.train()
    dtype = getattr(torch, settings.dtype)
    text = Text(data.examples, settings.rows, settings.seed)

    def loss(step: int) -> Tensor:
        torch.manual_seed(settings.seed * 1_000_000 + step)  # of the dropout
        read, follow = padded(text.batch(step))
        return loss_on(network, read, follow, dtype) / (follow != -100).sum()

    def evaluate() -> dict[str, float]:
        measured = {source: perplexity(network, some) for source, some in data.held_out.items()}
        return {f"{source}_{name}": value for source, found in measured.items() for name, value in found.items()}

    named: dict[str, Any] = dict(network.named_parameters())
    return network, Task(named, loss, evaluate)


def prepared(settings: Settings) -> tuple[Data, RecurrentNetwork, Task]:
    """The whole text (see ``lib.training.corpora``), a network and its task."""
    data = ready(*corpora.prepare(bundled.summaries(), corpora.folder_of_books()), settings)
    return data, *task(data, settings)


def figures(network: RecurrentNetwork, data: Data, limits: Sequence[int] = (200, 0)) -> list[dict[str, Any]]:
    """Held-out perplexity of the network and of a trigram with the same words on the first ``limit`` examples (0 = all)."""
    trigram, rows = Trigram(data.examples, len(data.vocabulary)), []
    together = {**data.held_out, "both": [example for found in data.held_out.values() for example in found]}
    for limit in limits:
        for source, found in together.items():
            chosen = found[: limit or None]
            of_network, of_trigram = perplexity(network, chosen)["perplexity"], trigram.perplexity(chosen)
            rows += [{"model": "wiki-lstm", "source": source, "limit": limit, "perplexity": of_network},
                     {"model": "Kneser-Ney trigram", "source": source, "limit": limit, "perplexity": of_trigram}]  # fmt: skip
    return rows
