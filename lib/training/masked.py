"""How an encoder without a head becomes a masked language model again: a new head, and low-rank updates of frozen layers.

Low-rank updates are those of Hu et al. (2021): a layer's frozen matrix W becomes W + BA with B (out x rank) and A (rank x
in). The head is BERT's (Devlin et al. 2019): a layer, a normalisation, and the word embeddings once more as output.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib.models import bundled
from lib.training import corpora
from lib.training.corpora import Paragraph
from lib.training.loop import Task

LONGEST = 128  # pieces of an example, the two special ones included


Network = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Ids, attention and the places to read give log-odds (read places x vocabulary)."""


class Pieces(NamedTuple):
    """A paragraph as ids of word pieces, a list for each sentence."""

    source: str
    sentences: list[list[int]]


class UpdatedLinear(nn.Module):
    """A frozen linear layer with a low-rank update, which starts at zero; the small factors stay in float32."""

    weight: Tensor
    bias: Tensor

    def __init__(self, frozen: nn.Linear, rank: int, generator: torch.Generator):
        super().__init__()
        self.register_buffer("weight", frozen.weight.detach())
        self.register_buffer("bias", frozen.bias.detach())
        scale = frozen.in_features**-0.5
        self.lora_A = nn.Parameter(torch.randn(rank, frozen.in_features, generator=generator) * scale)
        self.lora_B = nn.Parameter(torch.zeros(frozen.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """x W' + b + x A' B'."""
        update = functional.linear(functional.linear(x, self.lora_A.to(x.dtype)), self.lora_B.to(x.dtype))
        return functional.linear(x, self.weight, self.bias) + update


class Trainee(nn.Module):
    """The encoder with updates of its layers from ``lowest`` (counted from 0) on, whose norms learn too, and a head.

    ``dtype`` is what the frozen part computes in.
    """

    def __init__(self, encoder: Any, rank: int, lowest: int = 0, seed: int = 0, dtype: torch.dtype = torch.float32):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.encoder = encoder.requires_grad_(False).to(dtype)
        for layer in self.encoder.transformer.layer[lowest:]:
            for parent, name in _linear_layers(layer):
                setattr(parent, name, UpdatedLinear(getattr(parent, name), rank, generator))
            for norm in (layer.sa_layer_norm, layer.output_layer_norm):
                norm.float().requires_grad_(True)
        width, size = encoder.config.dim, encoder.config.vocab_size
        self.vocab_transform = nn.Linear(width, width)
        nn.init.eye_(self.vocab_transform.weight)
        nn.init.zeros_(self.vocab_transform.bias)
        self.vocab_layer_norm = nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, ids: Tensor, attention: Tensor, read: Tensor) -> Tensor:
        """Log-odds (read positions x vocabulary, float32) at the positions where ``read`` is true."""
        hidden = self.encoder(input_ids=ids, attention_mask=attention).last_hidden_state[read].float()
        hidden = self.vocab_layer_norm(functional.gelu(self.vocab_transform(hidden)))
        words = self.encoder.embeddings.word_embeddings.weight
        return functional.linear(hidden.to(words.dtype), words).float() + self.bias

    def trained(self) -> dict[str, nn.Parameter]:
        """The trained parameters by the names they have in the adapter."""
        named = {}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                renamed = name.replace("encoder.", "distilbert.", 1) if name.startswith("encoder.") else name
                named["vocab_projector.bias" if renamed == "bias" else renamed] = parameter
        return named


def _linear_layers(layer: Any) -> list[tuple[nn.Module, str]]:
    attention = [(layer.attention, name) for name in ("q_lin", "k_lin", "v_lin", "out_lin")]
    return [*attention, (layer.ffn, "lin1"), (layer.ffn, "lin2")]


def in_pieces(paragraphs: Sequence[Paragraph], tokenizer: Any) -> list[Pieces]:
    """Paragraphs as word pieces, without special ones; ``tokenizer`` is one of the library tokenizers."""
    sentences = [sentence for paragraph in paragraphs for sentence in paragraph.sentences]
    ids = iter([found.ids for found in tokenizer.encode_batch_fast(sentences, add_special_tokens=False)])
    return [Pieces(paragraph.source, [next(ids) for _ in paragraph.sentences]) for paragraph in paragraphs]


def examples(paragraphs: Sequence[Pieces], alone: float, draw: random.Random, shortest: int = 4) -> Iterator[list[int]]:
    """Training examples without special pieces: a share ``alone`` of the paragraphs sentence by sentence, others packed.

    Packed: sentences that follow each other, as many as fit. A sentence that is too long is cut, one of less than
    ``shortest`` pieces is no example of its own.
    """
    room = LONGEST - 2
    for paragraph in paragraphs:
        by_itself = draw.random() < alone
        packed: list[int] = []
        for sentence in paragraph.sentences:
            if packed and (by_itself or len(packed) + len(sentence) > room):
                yield packed
                packed = []
            packed = [*packed, *sentence][:room] if not by_itself or len(sentence) >= shortest else []
        if len(packed) >= shortest:
            yield packed


def batches(found: list[list[int]], pieces: int, draw: random.Random) -> list[list[list[int]]]:
    """Examples of similar length together, at most ``pieces`` places a batch, in a drawn order."""
    draw.shuffle(found)
    result: list[list[list[int]]] = []
    for start in range(0, len(found), 2000):  # sorted within a window, so that batches differ from round to round
        batch: list[list[int]] = []
        for example in sorted(found[start : start + 2000], key=len):
            if batch and (len(batch) + 1) * (len(example) + 2) > pieces:
                result.append(batch)
                batch = []
            batch.append(example)
        result.append(batch)
    draw.shuffle(result)
    return result


class Text:
    """What each step trains on: rounds over all summaries and every ``books_in`` th paragraph of the books."""

    def __init__(self, paragraphs: Sequence[Pieces], seed: int, pieces: int, alone: float, books_in: int):
        self.paragraphs, self.seed, self.pieces, self.alone, self.books_in = paragraphs, seed, pieces, alone, books_in
        self.rounds: list[list[list[list[int]]]] = []

    def batch(self, step: int) -> list[list[int]]:
        """The examples of a step: the same for the same seed, whatever was asked before."""
        number = 0
        while step >= len(self._round(number)):
            step -= len(self._round(number))
            number += 1
        return self._round(number)[step]

    def _round(self, number: int) -> list[list[list[int]]]:
        while len(self.rounds) <= number:
            turn = len(self.rounds)
            draw = random.Random(f"{self.seed} {turn}")
            chosen = [
                paragraph
                for index, paragraph in enumerate(self.paragraphs)
                if paragraph.source == "wikipedia" or index % self.books_in == turn % self.books_in
            ]
            self.rounds.append(batches(list(examples(chosen, self.alone, draw)), self.pieces, draw))
        return self.rounds[number]


class Special(NamedTuple):
    """Ids of the special pieces."""

    start: int
    end: int
    mask: int
    pad: int


def masked(batch: Sequence[list[int]], share: float, special: Special, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids with masks, attention, and the pieces at masked places (-100 elsewhere), each (examples x longest).

    Each piece is masked with probability ``share``, drawn by ``seed``; of each batch at least one.
    """
    longest = max(map(len, batch)) + 2
    rows = [[special.start, *ids, special.end] for ids in batch]
    whole = torch.tensor([row + [special.pad] * (longest - len(row)) for row in rows])
    attention = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    inner = attention.bool() & (whole != special.start) & (whole != special.end)
    drawn = torch.rand(whole.shape, generator=torch.Generator().manual_seed(seed))
    hidden = inner & (drawn < share)
    if not hidden.any():
        hidden = drawn == drawn[inner].min()
    return whole.masked_fill(hidden, special.mask), attention, whole.masked_fill(~hidden, -100)


def loss_on(trainee: Trainee, ids: Tensor, attention: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy (nats) at the masked places."""
    read = targets != -100
    return functional.cross_entropy(trainee(ids, attention, read), targets[read])


@torch.inference_mode()
def held_out(network: Network, given: Sequence[tuple[Tensor, Tensor, Tensor]]) -> dict[str, float]:
    """Loss (nats) and top-1 accuracy at the masked places of given batches; ``network(ids, attention, read)`` as Trainee."""
    loss, right, places = 0.0, 0, 0
    for ids, attention, targets in given:
        read = targets != -100
        scores, wanted = network(ids, attention, read), targets[read]
        loss += functional.cross_entropy(scores, wanted, reduction="sum").item()
        right += int((scores.argmax(-1) == wanted).sum())
        places += len(wanted)
    return {"loss": loss / places, "top1": right / places, "places": places}


def log_frequencies(paragraphs: Sequence[Pieces], size: int) -> Tensor:
    """Logarithm of each piece's share in the text, one added to every count: where the output's bias starts."""
    counts = torch.ones(size)
    for paragraph in paragraphs:
        for sentence in paragraph.sentences:
            counts += torch.bincount(torch.tensor(sentence), minlength=size)
    return (counts / counts.sum()).log()


def measured(
    paragraphs: Sequence[Pieces], source: str, special: Special, share: float = 0.15, limit: int = 0, seed: int = 0
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches to measure on: the first ``limit`` held-out examples of a source (0 = all), packed, masked by ``seed``."""
    chosen = [paragraph for paragraph in paragraphs if paragraph.source == source]
    found = list(examples(chosen, 0.0, random.Random(seed)))
    found = sorted(found[: limit or None], key=len)
    return [masked(found[start : start + 16], share, special, seed + start) for start in range(0, len(found), 16)]


class Settings(NamedTuple):
    """What a masked run is made of, besides its text and its schedule."""

    rank: int = 16
    lowest: int = 2  # the first of the six layers that is updated: those below cost no backward pass
    share: float = 0.3  # of the pieces masked in training
    alone: float = 0.5  # of the paragraphs read sentence by sentence
    pieces: int = 1024  # places of a batch
    books_in: int = 2  # rounds in which every paragraph of the books comes up once
    dtype: str = "bfloat16"  # of the frozen part
    seed: int = 0


def tokenizer_of(folder: Path) -> tuple[Any, Special]:
    """The encoder's tokenizer, which neither cuts nor pads, and its special pieces."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.get_vocab()
    return tokenizer, Special(ids["[CLS]"], ids["[SEP]"], ids["[MASK]"], ids["[PAD]"])


def trainee(folder: Path, settings: Settings) -> Trainee:
    """The encoder of ``folder`` (``lib.models.bundled.encoder``) with updates and a head that have learnt nothing yet."""
    from safetensors.torch import load_file
    from transformers import DistilBertConfig, DistilBertModel

    weights = load_file(folder / "encoder.safetensors")
    configuration = DistilBertConfig(vocab_size=28_996)
    configuration._attn_implementation = "eager"  # on a CPU four times as fast to train as the fused one
    encoder = DistilBertModel(configuration).eval()
    encoder.load_state_dict({name.removeprefix("distilbert."): values for name, values in weights.items()})
    return Trainee(encoder, settings.rank, settings.lowest, settings.seed, getattr(torch, settings.dtype))


def task(
    network: Trainee, training: Sequence[Pieces], held_out_text: Sequence[Pieces], special: Special, settings: Settings
) -> Task:
    """The trainee, its loss step by step, and its figures on 64 held-out examples of each source, 15 % masked."""
    with torch.no_grad():
        network.bias.copy_(log_frequencies(training, len(network.bias)))
    text = Text(training, settings.seed, settings.pieces, settings.alone, settings.books_in)
    sources = dict.fromkeys(paragraph.source for paragraph in held_out_text)
    given = {source: measured(held_out_text, source, special, limit=64) for source in sources}

    def loss(step: int) -> Tensor:
        batch = masked(text.batch(step), settings.share, special, settings.seed * 1_000_000 + step)
        return loss_on(network, *batch)

    def evaluate() -> dict[str, float]:
        return {
            f"{source}_{name}": value
            for source, batches in given.items()
            for name, value in held_out(network, batches).items()
            if name != "places"
        }

    return Task(network.trained(), loss, evaluate)


def prepared(settings: Settings) -> tuple[Trainee, Task]:
    """The trainee and its task on the whole text (see ``lib.training.corpora``)."""
    source = bundled.encoder()
    tokenizer, special = tokenizer_of(source)
    network = trainee(source, settings)
    training, kept = corpora.prepare(bundled.summaries(), corpora.folder_of_books())
    return network, task(network, in_pieces(training, tokenizer), in_pieces(kept, tokenizer), special, settings)


def reader(network: Any) -> Network:
    """A masked language model of transformers (``DistilBertForMaskedLM``) as ``held_out`` asks it."""

    def read_at(ids: Tensor, attention: Tensor, read: Tensor) -> Tensor:
        hidden = network.distilbert(input_ids=ids, attention_mask=attention).last_hidden_state[read]
        hidden = network.vocab_layer_norm(network.activation(network.vocab_transform(hidden)))
        scores: Tensor = network.vocab_projector(hidden)
        return scores

    return read_at


def figures(adapters: Sequence[Path], limits: Sequence[int] = (32, 0), share: float = 0.15) -> list[dict[str, Any]]:
    """Held-out figures of adapters in float32: loss (nats) and top-1 on the first ``limit`` examples (0 = all) of a source.

    Every adapter is asked about the same places of the same examples.
    """
    from transformers import DistilBertForMaskedLM

    tokenizer, special = tokenizer_of(bundled.encoder())
    _, kept = corpora.prepare(bundled.summaries(), corpora.folder_of_books())
    pieces = in_pieces(kept, tokenizer)
    rows: list[dict[str, Any]] = []
    for adapter in adapters:
        network = reader(DistilBertForMaskedLM.from_pretrained(bundled.distilbert_with(adapter)).eval())
        for limit in limits:
            for source in ("wikipedia", "books"):
                found = held_out(network, measured(pieces, source, special, share, limit))
                rows.append({"adapter": adapter.parent.name, "source": source, "limit": limit, "share": share, **found})
    return rows


def save_adapter(network: Trainee, path: Path) -> None:
    """What was trained, in half precision, under the names that ``lib.models.bundled.merge_adapter`` reads."""
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: value.detach().half().contiguous() for name, value in network.trained().items()}, path)
