"""Word-level recurrent language models: LSTM, GRU and plain RNN. They see the left context only.

The layout is that of the word-language-model example of PyTorch, which Gulordava et al. (2018) trained their models with: an
embedding ``encoder``, a recurrent ``rnn`` and a linear ``decoder``, each word of a list one row.
"""

import json
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import nn

from lib.errors import LitmusError

Cell = Literal["LSTM", "GRU", "RNN_TANH", "RNN_RELU"]
State = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
UNKNOWN, END = "<unk>", "<eos>"
ASCII_SPACE = re.compile(r"[ \t\n\r\f\v]+")
STRAIGHT = str.maketrans("’‘“”", "''\"\"")
CLITIC = re.compile(r"(?:n'|')(?:s|t|d|m|re|ve|ll)", re.IGNORECASE)  # 's, 'll and their kind, and n't
INSIDE = re.compile(r"\w+|[^\w\s]")


class RecurrentNetwork(nn.Module):
    """Words in, scores of the next word out; weights are named as in the published checkpoints.

    ``tied``: the decoder's weights are the encoder's, for which both sizes must be equal. ``dropout`` acts in training only.
    """

    def __init__(
        self,
        cell: Cell,
        words: int,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        tied: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if cell not in get_args(Cell):
            raise LitmusError(f"'{cell}' is no recurrent cell; choose one of {', '.join(get_args(Cell))}.")
        if tied and embedding_size != hidden_size:
            raise LitmusError(
                f"Tied weights need equal sizes, not {embedding_size} (embedding) and {hidden_size} (hidden)."
            )
        self.cell, self.tied = cell, tied
        between = dropout if layers > 1 else 0.0
        kind, plain = (
            (getattr(nn, cell), {}) if cell in ("LSTM", "GRU") else (nn.RNN, {"nonlinearity": cell[4:].lower()})
        )
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(words, embedding_size)
        self.rnn = kind(embedding_size, hidden_size, layers, batch_first=True, dropout=between, **plain)
        self.decoder = nn.Linear(hidden_size, words)
        if tied:
            self.decoder.weight = self.encoder.weight
        for weight in (self.encoder.weight, self.decoder.weight):
            nn.init.uniform_(weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def read(self, ids: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
        """Hidden states after each word, shape (rows, words, hidden), and the state after the last; none before is empty."""
        return self.rnn(self.drop(self.encoder(ids)), state)

    def forward(self, ids: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
        """Logits of the word after each word, shape (rows, words, vocabulary), and the state after the last word."""
        hidden, state = self.read(ids, state)
        return self.decoder(self.drop(hidden)), state

    @property
    def configuration(self) -> dict[str, str | int | bool]:
        """What ``RecurrentNetwork`` needs to be built again, with the name of its layout."""
        rnn = self.rnn
        return {
            "model_type": "recurrent", "cell": self.cell, "words": self.encoder.num_embeddings,
            "embedding_size": rnn.input_size, "hidden_size": rnn.hidden_size, "layers": rnn.num_layers, "tied": self.tied,
        }  # fmt: skip


def save(folder: Path, network: RecurrentNetwork, vocabulary: Sequence[str], file: str = "model.safetensors") -> Path:
    """Network and word list as ``load`` reads them: weights, ``config.json`` and ``vocab.txt``, a word a line in id order.

    ``file``: ``model.safetensors``, or ``model.pt`` for a state dict as torch saves it. Weights keep their dtype, so a network
    in half precision makes a file of half the size. Raises LitmusError where the words are not as many as the network knows.
    """
    from safetensors.torch import save_file

    if len(vocabulary) != network.encoder.num_embeddings:
        known = network.encoder.num_embeddings
        raise LitmusError(f"The vocabulary has {len(vocabulary)} words and the network knows {known}; they must agree.")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {key: tensor.detach().cpu().contiguous() for key, tensor in network.state_dict().items()}
    if file.endswith(".safetensors"):
        if network.tied:  # safetensors keeps no tensor under two names
            del weights["decoder.weight"]
        save_file(weights, folder / file, {"format": "pt"})
    else:
        torch.save(weights, folder / file)
    (folder / "config.json").write_text(json.dumps(network.configuration, indent=1) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    return folder


def words_of(text: str, vocabulary: Container[str] = ()) -> list[str]:
    """The words of running text as a word-level model is given them, quotes made straight (see ``word_spans``)."""
    straight = text.translate(STRAIGHT)
    return [straight[start:end] for start, end in word_spans(text, vocabulary)]


def word_spans(text: str, vocabulary: Container[str] = ()) -> list[tuple[int, int]]:
    """Where the words of ``text`` start and end, in characters.

    White space (ASCII only) separates words, as in the files of the published checkpoints. A piece that ``vocabulary`` lacks
    loses punctuation from its ends until it is known or has none left; what remains is split before ``'s``, ``'ll``, ``n't``
    and their kind, then at the punctuation inside it. Curly quotes count as straight ones. Without a vocabulary everything is
    split so, which is how text is made ready for training.
    """
    spans = []
    end = 0
    for piece in ASCII_SPACE.split(text):
        if piece:
            start = text.index(piece, end)
            end = start + len(piece)
            spans += [(start + first, start + last) for first, last in _split(piece.translate(STRAIGHT), vocabulary)]
    return spans


def _split(piece: str, vocabulary: Container[str]) -> list[tuple[int, int]]:
    """Spans of the words of a piece without white space."""
    first, last = 0, len(piece)
    while first < last and piece[first:last] not in vocabulary and not CLITIC.fullmatch(piece, first, last):
        if _punctuation(piece[last - 1]):
            last -= 1
        elif _punctuation(piece[first]):
            first += 1
        else:
            break
    before = [(at, at + 1) for at in range(first)]
    after = [(at, at + 1) for at in range(last, len(piece))]
    return [*before, *_split_inside(piece, first, last, vocabulary), *after]


def _split_inside(piece: str, first: int, last: int, vocabulary: Container[str]) -> list[tuple[int, int]]:
    """Spans of the words of ``piece[first:last]``, which has no punctuation at its ends."""
    core = piece[first:last]
    if not core or core in vocabulary or CLITIC.fullmatch(core):
        return [(first, last)] if core else []
    cut = last - _clitic_length(core, vocabulary)
    head = piece[first:cut]
    spans = [(first, cut)] if head in vocabulary else [match.span() for match in INSIDE.finditer(piece, first, cut)]
    return spans + [(cut, last)] * (cut < last)


def _clitic_length(core: str, vocabulary: Container[str]) -> int:
    """How many characters at the end of a word are one of ``'s``, ``n't``, ..., 0 for none; ``'t`` where only that is known."""
    at = core.rfind("'")
    if at <= 0:
        return 0
    longer = at - 1 if core[at - 1] in "nN" and core[at + 1 :].lower() == "t" else at
    starts = [start for start in (longer, at) if start > 0 and CLITIC.fullmatch(core, start)]
    known = [start for start in starts if core[start:] in vocabulary]
    return len(core) - (known or starts or [len(core)])[0]


def _punctuation(character: str) -> bool:
    return not character.isalnum() and character != "_"
