"""Word-level recurrent language models: LSTM, GRU and plain RNN. They see the left context only.

The layout is that of the word-language-model example of PyTorch, which Gulordava et al. (2018) trained their models with: an
embedding ``encoder``, a recurrent ``rnn`` and a linear ``decoder``, each word of a list one row.
"""

import json
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import nn

from lib.errors import LitmusError
from lib.models.hugging_face import text_digest, weights_digest
from lib.models.protocol import FilledBatch, Gap, Position, StartToken, TargetPolicy, TokenScores, Word
from lib.progress import bar

StartState = Literal["eos", "zero", "carry"]
Cell = Literal["LSTM", "GRU", "RNN_TANH", "RNN_RELU"]
State = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
UNKNOWN, END = "<unk>", "<eos>"
ROWS = 256  # distributions at once: with 50,000 words each takes 0.2 MB
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


def check_start_state(start_state: str) -> None:
    """Raises LitmusError for what is no start state."""
    if start_state not in get_args(StartState):
        raise LitmusError(f"'{start_state}' is no start state; choose one of {', '.join(get_args(StartState))}.")


@dataclass(frozen=True)
class RecurrentModel:
    """A recurrent network with its words. ``name`` and ``revision`` are as the person gave them.

    ``start_state``: what comes before the first word of a text. ``eos`` reads the end of a sentence first, so that the first
    word has a score too; ``zero`` starts with the empty state, and a first word has none; ``carry`` goes on from the sentence
    before, in the order given and through its ``<eos>``, as the published evaluations do (Gulordava et al. 2018), and has no
    score for the very first word. There is no start token, so ``start_token`` has no effect.

    A context word that the vocabulary lacks is read as ``<unk>``. A text's first word that it lacks is tried with a small
    letter, because the capital belongs to the place and not to the word. Where no word has a capital, texts lose theirs.
    """

    name: str
    revision: str
    network: RecurrentNetwork
    vocabulary: tuple[str, ...]
    start_state: StartState = "eos"
    token_budget: int = 4096

    family = "recurrent"

    def __post_init__(self) -> None:
        check_start_state(self.start_state)
        if self.start_state != "zero" and END not in self.id_of:
            raise LitmusError(
                f"The vocabulary of {self.name} has no {END}, which the start state '{self.start_state}' reads; choose 'zero'."
            )

    @property
    def device(self) -> torch.device:
        return self.network.encoder.weight.device

    @property
    def vocabulary_size(self) -> int:
        return self.network.encoder.num_embeddings

    @cached_property
    def id_of(self) -> dict[str, int]:
        """The row of each word; of a word that is listed twice the last one, as in the published code."""
        return {word: row for row, word in enumerate(self.vocabulary)}

    @cached_property
    def cased(self) -> bool:
        """Whether any word has a capital letter."""
        return any(word != word.lower() for word in self.vocabulary)

    @cached_property
    def identity(self) -> dict[str, str]:
        """Name, revision, digests of weights, architecture and words, and the start state: what a kept score belongs to."""
        return {
            "model": self.name,
            "revision": self.revision,
            "weights": weights_digest(self.network),
            "configuration": text_digest(json.dumps(self.network.configuration, sort_keys=True)),
            "tokenizer": text_digest("\n".join(self.vocabulary)),
            "dtype": str(self.network.encoder.weight.dtype).removeprefix("torch."),
            "start_state": self.start_state,
        }

    def seen(self, gap: Gap) -> Gap:
        """A recurrent model sees what stands before the gap."""
        return Gap(gap.left.rstrip(), "")

    def word(self, form: str, position: Position = "middle") -> Word:
        """The row of ``form``, capitalised at the ``start`` of a text, ``start_as_written`` not.

        Several rows where the splitter makes several words of it.
        """
        if not form.strip():
            return Word(form, (), "empty")
        opened = form[:1].upper() + form[1:] if position == "start" else form
        ids, _ = self.encoded(opened, first=position != "middle")
        if {-1, self.id_of.get(UNKNOWN), self.id_of.get(END)} & set(ids):
            return Word(form, (), "unknown")
        return Word(form, tuple(ids), "")

    def spelling(self, ids: Sequence[int]) -> list[str]:
        """The words of these rows."""
        return [self.vocabulary[i] for i in ids]

    def encoded(self, text: str, first: bool = True) -> tuple[list[int], list[tuple[int, int]]]:
        """The rows of a text's words, -1 for what the vocabulary lacks, and their characters; ``first``: it opens a text."""
        plain = text.translate(STRAIGHT) if self.cased else _lowered(text.translate(STRAIGHT))
        spans = word_spans(plain, self.id_of)
        words = [plain[start:end] for start, end in spans]
        ids = [self.id_of.get(word, -1) for word in words]
        opening = next((at for at, word in enumerate(words) if word[0].isalnum()), None) if first else None
        if opening is not None and ids[opening] == -1:
            ids[opening] = self.id_of.get(words[opening][0].lower() + words[opening][1:], -1)
        return ids, spans

    def context_ids(self, text: str) -> list[int]:
        """The rows that the network reads before it says what comes after ``text``, that of the start state included."""
        start = [] if self.start_state == "zero" else [self.id_of[END]]
        return [*start, *self.read_as(self.encoded(text)[0])[0]]

    def read_as(self, ids: Sequence[int]) -> tuple[list[int], str]:
        """Rows as the network reads them, unknown words as ``<unk>``; or the reason why it cannot."""
        unknown = self.id_of.get(UNKNOWN, -1)
        read = [unknown if i == -1 else i for i in ids]
        if self.id_of.get(END, -2) in read:
            return read, "special_token_in_text"
        return read, "unknown_in_context" if -1 in read else ""

    def fill(self, gaps: Sequence[Gap], start_token: StartToken = "never") -> Iterator[FilledBatch]:
        """Distributions after the left contexts (see the protocol).

        A row is refused as ``empty_context`` when there is nothing to go on, as ``unknown_in_context`` when it holds an unknown
        word and the vocabulary no ``<unk>``, or as ``special_token_in_text`` when it holds ``<eos>``. Raises LitmusError for
        the start state ``carry``: gaps come in no order.
        """
        if self.start_state == "carry":
            raise LitmusError(
                f"{self.name} carries its state from sentence to sentence, and gaps come in no order; "
                "choose the start state 'eos' or 'zero'."
            )
        contexts = [self.encoded(self.seen(gap).left)[0] for gap in gaps]
        yield from self._distributions([*map(self.read_as, contexts)], [len(context) for context in contexts])

    def at(self, sentences: Sequence[str], positions: Sequence[int]) -> Iterator[FilledBatch]:
        """Distributions at one word of each whole sentence: which word comes there, after all before it?

        ``positions``: how many words, by white space, come before. With the start state ``carry`` sentences are read whole and
        in the order given; with the others only what comes before counts. An ``<eos>`` at the end of a sentence is understood.
        Batches and reasons are as in ``fill``. Raises LitmusError for a position outside its sentence.
        """
        read, at = [], []
        for sentence, position in zip(sentences, positions, strict=True):
            pieces = [piece for piece in ASCII_SPACE.split(_without_end(sentence)) if piece]
            if not 0 <= position < len(pieces):
                raise LitmusError(
                    f"There is no word {position} (from 0) in '{sentence}', which has {len(pieces)} words."
                )
            before = self.encoded(" ".join(pieces[:position]))[0]
            at.append(len(before))
            read.append(self.read_as(self.encoded(" ".join(pieces))[0] if self.start_state == "carry" else before))
        yield from self._distributions(read, at)

    @torch.inference_mode()
    def _distributions(self, read: Sequence[tuple[list[int], str]], at: Sequence[int]) -> Iterator[FilledBatch]:
        """Stream the distribution before word ``at`` of each row, or after its last word; rows with a reason come first."""
        reasons = [reason for _, reason in read]
        if self.start_state == "zero":
            reasons = [
                reason or ("" if before else "empty_context") for reason, before in zip(reasons, at, strict=True)
            ]
        for reason in sorted(set(reasons) - {""}):
            yield FilledBatch([row for row, found in enumerate(reasons) if found == reason], None, reason)
        usable = [row for row, reason in enumerate(reasons) if not reason]
        nothing = [0] if self.start_state != "carry" else []  # a place for the gap, whose word is never read
        task = "gaps" if len(usable) > 1 else ""
        for batch, hidden in self._before([[*read[row][0], *nothing] for row in usable], task):
            rows = [usable[i] for i in batch]
            if self.start_state == "carry" and batch == [0] and at[rows[0]] == 0:
                yield FilledBatch(rows, None, "empty_context")
                continue
            wanted = hidden[torch.arange(len(rows)), [at[row] for row in rows]]
            yield FilledBatch(rows, torch.log_softmax(self.network.decoder(wanted).float(), dim=-1), "")

    def continue_(
        self, gaps: Sequence[Gap], forms: Sequence[str], policy: TargetPolicy, start_token: StartToken = "never"
    ) -> Iterator[FilledBatch]:
        """Log-probabilities of whole forms after the left contexts, the chain rule over words where a form is several.

        All policies give the same, because a word is whole whatever follows it; ``original``, which masks, is refused.
        """
        if policy == "original":
            raise LitmusError(
                "'original' masks one piece at a time, which a recurrent model cannot; choose 'whole_word'."
            )
        words = {position: [self.word(form, position) for form in forms] for position in ("start", "middle")}
        for batch in self.fill(gaps, start_token):
            if batch.log_probabilities is None:
                yield batch
                continue
            found = torch.full((len(batch.rows), len(forms)), torch.nan, dtype=torch.float64)
            for line, (row, distribution) in enumerate(zip(batch.rows, batch.log_probabilities.cpu(), strict=True)):
                asked = words["middle" if self.seen(gaps[row]).left else "start"]
                columns = [column for column, word in enumerate(asked) if word.ids]
                found[line, columns] = distribution[[asked[column].ids[0] for column in columns]].double()
                for column in columns:
                    if len(asked[column].ids) > 1:
                        found[line, column] += self._rest(gaps[row], asked[column].ids)
            yield FilledBatch(batch.rows, found, "")

    @torch.inference_mode()
    def _rest(self, gap: Gap, ids: Sequence[int]) -> float:
        """The log-probability of all words of a form but its first, after the left context and those before them."""
        context, _ = self.read_as(self.encoded(self.seen(gap).left)[0])
        [(_, hidden)] = self._before([[*context, *ids]], "")
        return float(self._scores(hidden[0, len(context) + 1 :], ids[1:]).sum())

    @torch.inference_mode()
    def score(self, sentences: Sequence[str], start_token: StartToken = "auto") -> list[TokenScores]:
        """Each word's log-probability given all before it; an ``<eos>`` at the end of a sentence is understood.

        NaN for unknown words (what the model says of ``<unk>`` is not about the word) and for a first word with nothing before
        it (see ``start_state``). Sentences are refused as ``empty`` or for the reasons of ``fill``; ``carry`` skips those.
        """
        encodings = [self.encoded(_without_end(sentence)) for sentence in sentences]
        read = [self.read_as(ids) for ids, _ in encodings]
        reasons = [reason if ids else "empty" for ids, reason in read]
        results = [TokenScores(s, [], [], np.array([]), reason) for s, reason in zip(sentences, reasons, strict=True)]
        usable = [row for row, reason in enumerate(reasons) if not reason]
        for batch, hidden in self._before([read[row][0] for row in usable], "sentences"):
            for i, states in zip(batch, hidden, strict=True):
                row = usable[i]
                (_, spans), (targets, _) = encodings[row], read[row]
                found = self._scores(states[: len(targets)], targets)
                found[np.array(targets) == self.id_of.get(UNKNOWN, -1)] = np.nan
                results[row] = TokenScores(
                    sentences[row], self.spelling(targets), spans, found, first_unscored=bool(states[0].isnan().any())
                )
        return results

    def _scores(self, hidden: torch.Tensor, targets: Sequence[int]) -> np.ndarray:
        """The log-probability of each target, from the states before them, a limited number of distributions at a time."""
        ids = torch.tensor(targets, device=hidden.device)
        losses = [
            torch.nn.functional.cross_entropy(self.network.decoder(states).float(), some, reduction="none")
            for states, some in zip(hidden.split(ROWS), ids.split(ROWS), strict=True)
        ]
        return -torch.cat(losses).cpu().double().numpy()

    def _before(self, ids: Sequence[Sequence[int]], task: str) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Row numbers with the hidden states *before* each of their words, shape (rows, words, hidden).

        NaN before a first word that has nothing before it. Rows are padded on the right, which no earlier word can see.
        """
        end = self.id_of.get(END, -1)
        nothing = self.network.encoder.weight.new_full((1, 1, self.network.rnn.hidden_size), torch.nan)
        if self.start_state == "carry":
            last, state = nothing, None
            for [row] in self._batches([1] * len(ids), task, rows=1):
                hidden, state = self.network.read(self._padded([[*ids[row], end]]), state)
                yield [row], torch.cat([last, hidden[:, :-1]], dim=1)
                last = hidden[:, -1:]
            return
        for batch in self._batches([len(row) for row in ids], task, rows=ROWS):
            if self.start_state == "eos":
                yield batch, self.network.read(self._padded([[end, *ids[row][:-1]] for row in batch]))[0]
            else:
                hidden, _ = self.network.read(self._padded([ids[row] for row in batch]))
                yield batch, torch.cat([nothing.expand(len(batch), 1, -1), hidden[:, :-1]], dim=1)

    def _batches(self, lengths: Sequence[int], task: str, rows: int) -> Iterator[list[int]]:
        """Row numbers in batches of similar length, longest first, within the token budget; a ``task`` has a progress bar."""
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        with bar(total=len(order), desc=f"{self.name}: {task}", unit="text", shown=bool(task)) as done:
            while order:
                size = min(rows, max(1, self.token_budget // lengths[order[0]]))
                batch, order = order[:size], order[size:]
                yield batch
                done.update(len(batch))

    def _padded(self, ids: Sequence[Sequence[int]]) -> torch.Tensor:
        width = max(map(len, ids))
        return torch.tensor([[*row, *[0] * (width - len(row))] for row in ids], device=self.device)


def _without_end(sentence: str) -> str:
    """A sentence without the ``<eos>`` that files of the published layout end it with."""
    stripped = sentence.rstrip(" \t\n\r\f\v")
    return stripped.removesuffix(END) if ASCII_SPACE.split(stripped)[-1] == END else sentence


def _lowered(text: str) -> str:
    """Small letters, one for each character, so that places in the text stay the same."""
    return "".join(small if len(small := character.lower()) == 1 else character for character in text)


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
