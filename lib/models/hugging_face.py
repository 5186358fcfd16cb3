"""What masked and causal Hugging Face models share: a network, a tokenizer, batches, and the ids of words."""

import hashlib
import json
import string
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from lib.models.protocol import FilledBatch, Position, Word
from lib.progress import bar

CARRIER = "the"
BOUNDARY = -1  # in place of a token: whatever can follow a whole word
LINES = 128  # rows of logits that are summed over at once
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
ELSEWHERE = (
    "_name_or_path",
    "transformers_version",
    "dtype",
)  # of a configuration: not about the numbers, or told apart


@dataclass(frozen=True)
class HuggingFaceModel:
    """A network with its tokenizer. ``name`` and ``revision`` are as the person gave them, ``dtype`` as loaded."""

    name: str
    revision: str
    network: Any
    tokenizer: Any
    token_budget: int = 1024

    @property
    def device(self) -> torch.device:
        """Where inputs go: weights that wait in memory or on the disk until they are needed are nowhere."""
        return next((weight.device for weight in self.network.parameters() if not weight.is_meta), torch.device("cpu"))

    @property
    def budget(self) -> int:
        """How many tokens a batch may hold."""
        return self.token_budget

    @property
    def mixed(self) -> torch.nn.Module | None:
        """A module behind which no place of the input looks at another one, where such a one is known."""
        return None

    @property
    def vocabulary_size(self) -> int:
        return self.network.config.get_text_config().vocab_size

    @cached_property
    def cased(self) -> bool:
        """Found by trying, because tokenizers are known to say one thing and do another."""
        large, small = (" ".join(letters) for letters in (string.ascii_uppercase, string.ascii_lowercase))
        return self.encoded(large)["input_ids"] != self.encoded(small)["input_ids"]

    @cached_property
    def maximum_length(self) -> int:
        """The longest input in tokens, special tokens included.

        RoBERTa-like models count positions from the padding id onward, so two of their 514 positions are never used.
        """
        config = self.network.config.get_text_config()
        limits = [getattr(config, key, None) for key in ("max_position_embeddings", "n_positions")]
        for module_name, module in self.network.named_modules():
            if module_name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
                unused = 0 if module.padding_idx is None else module.padding_idx + 1
                limits.append(module.num_embeddings - unused)
        limits.append(self.tokenizer.model_max_length)
        return min(limit for limit in limits if limit and limit > 0)

    @cached_property
    def identity(self) -> dict[str, str]:
        """Name, revision, and digests of weights, configuration and tokenizer: what a kept score belongs to."""
        tokenizer = json.dumps([self.tokenizer_file, self.tokenizer.special_tokens_map], default=str)
        return {
            "model": self.name,
            "revision": self.revision,
            "weights": weights_digest(self.network),
            "configuration": text_digest(json.dumps(self.configuration, sort_keys=True, default=str)),
            "tokenizer": text_digest(tokenizer),
            "dtype": str(self.network.dtype).removeprefix("torch."),
        }

    @property
    def configuration(self) -> dict[str, Any]:
        """What else the numbers depend on (activation, heads, rotation, ...), without path, version and dtype."""
        config = self.network.config.to_dict()
        return {key: value for key, value in config.items() if key not in ELSEWHERE}

    @cached_property
    def tokenizer_file(self) -> dict[str, Any]:
        """The tokenizer as its own file would say it, without truncation and padding, which each call sets anew."""
        content = json.loads(self.tokenizer.backend_tokenizer.to_str())
        return {key: value for key, value in content.items() if key not in ("truncation", "padding")}

    @cached_property
    def unknown_ids(self) -> set[int]:
        """What stands for any unknown word: as transformers was told, and as the tokenizer's file has it."""
        model = self.tokenizer_file["model"]
        in_file = [model.get("unk_id"), self.tokenizer.get_vocab().get(model.get("unk_token"))]
        return {found for found in (self.tokenizer.unk_token_id, *in_file) if found is not None}

    @cached_property
    def reserved_ids(self) -> set[int]:
        """Start, end, mask and their kind, which no running text may hold; the unknown token alone is not one of them."""
        added = {token for token, entry in self.tokenizer.added_tokens_decoder.items() if entry.special}
        roles = {getattr(self.tokenizer, f"{role}_token_id") for role in ("bos", "eos", "cls", "sep", "mask")}
        return ((added | set(self.tokenizer.all_special_ids)) - self.unknown_ids) | (roles - {None})

    def encoded(self, text: str | list[str], **options: Any) -> Any:
        """The tokenizer's own encoding of a text or of a list of them, never cut to a length."""
        return self.tokenizer(text, truncation=False, padding=False, verbose=False, **options)

    def refusal(self, text_ids: Sequence[int], length: int) -> str:
        """Why an input of ``length`` tokens, ``text_ids`` of them from the item itself, cannot be scored, or empty."""
        if length > self.maximum_length:
            return "too_long"
        return "special_token_in_text" if self.reserved_ids & set(text_ids) else ""

    def word(self, form: str, position: Position = "middle") -> Word:
        """The ids of ``form``: behind a space in the ``middle`` of a text, capitalised and without one at its ``start``.

        ``start_as_written`` is without a space and not capitalised either.

        The word is encoded behind a short carrier and cut out by character offsets, so the rule holds for
        vocabularies with and without leading spaces. Unknown forms have no ids: the id of the unknown token is never
        a score (transformers would give it without a word).
        """
        if not form.strip():
            return Word(form, (), "empty")
        if position != "middle":
            carrier, text = "", form[:1].upper() + form[1:] if self.cased and position == "start" else form
        else:
            carrier, text = CARRIER, f"{CARRIER} {form}"
        encoding = self.encoded(text, add_special_tokens=False, return_offsets_mapping=True)
        pairs = zip(encoding["input_ids"], encoding["offset_mapping"], strict=True)
        ids = tuple(token for token, (_, end) in pairs if end > len(carrier))
        if not ids or set(ids) & (self.reserved_ids | self.unknown_ids):
            return Word(form, (), "unknown")
        return Word(form, ids, "")

    def spelling(self, ids: Sequence[int]) -> list[str]:
        """Each id decoded alone; bytes that are no whole character show as the replacement character."""
        decode = self.tokenizer.decode
        return [decode([int(i)], clean_up_tokenization_spaces=False).strip() or self._piece(i) for i in ids]

    def _piece(self, token: int) -> str:
        return self.tokenizer.convert_ids_to_tokens(int(token)) or f"[unused id {token}]"

    def batches(self, lengths: Sequence[int], task: str) -> Iterator[list[int]]:
        """Row numbers in batches of similar length that fill the token budget, longest first; a ``task`` has a progress bar."""
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        with bar(total=len(order), desc=f"{self.name}: {task}", unit="text", shown=bool(task)) as done:
            while order:
                longest = lengths[order[0]]
                size = max(1, self.budget // longest)
                similar = sum(lengths[row] >= longest - longest // 16 for row in order[:size])
                size = max(1, similar, size // 4)  # rather a smaller batch than much padding
                batch, order = order[:size], order[size:]
                yield batch
                done.update(len(batch))

    def distributions(
        self, rows: Sequence[Any], reasons: Sequence[str], places: Sequence[tuple[int, int]]
    ) -> Iterator[FilledBatch]:
        """Stream the distribution at one place, (input row, position), of each item; those with a reason come without one.

        ``rows``: what ``inputs`` takes. Batches hold the items whose places lie in some of the rows.
        """
        for reason in sorted(set(reasons) - {""}):
            yield FilledBatch([item for item, found in enumerate(reasons) if found == reason], None, reason)
        items = [item for item, reason in enumerate(reasons) if not reason]
        readings = np.array([places[item] for item in items], dtype=np.int64).reshape(-1, 2)
        for picked, at, batch in self._read_batches(rows, readings, "gaps" if len(readings) > 1 else ""):
            lines, line_of = np.unique(at, return_inverse=True)
            logits = logits_at(self.network, self.inputs([rows[row] for row in batch]), lines, self.mixed)
            for some in np.split(np.arange(len(picked)), range(LINES, len(picked), LINES)):
                at_lines = torch.as_tensor(line_of[some], device=logits.device)
                found = torch.log_softmax(logits[at_lines].float(), dim=-1)
                yield FilledBatch([items[i] for i in picked[some]], found, "")
            del logits  # before the next batch has its own

    def log_probabilities(self, rows: Sequence[Any], readings: np.ndarray) -> np.ndarray:
        """The log-probability of one token at one position of an input row, for each of ``readings`` (row, position, token).

        Natural log, float64, shape (readings,). The token ``BOUNDARY`` stands for all that can follow a whole word. The output
        layer sees each position that is read once, and of its distribution only the wanted tokens are kept.
        """
        found = np.empty(len(readings))
        for picked, at, batch in self._read_batches(rows, readings, ""):
            lines, line_of = np.unique(at, return_inverse=True)
            inputs = self.inputs([rows[row] for row in batch])
            # No name for the logits: two batches of them would be held at once.
            found[picked] = self._gathered(
                logits_at(self.network, inputs, lines, self.mixed), line_of, readings[picked, 2]
            )
        return found

    @torch.inference_mode()
    def _gathered(self, logits: torch.Tensor, lines: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Log-probabilities of ``tokens`` at ``lines`` of ``logits``, some lines at a time."""
        totals = torch.cat([some.float().logsumexp(1) for some in logits.split(LINES)])
        at, wanted = (torch.as_tensor(array, device=logits.device) for array in (lines, tokens))
        values = logits[at, wanted.clamp(min=0)].float() - totals[at]
        whole = np.flatnonzero(tokens == BOUNDARY)
        for some in np.split(whole, range(LINES, len(whole), LINES)) if len(whole) else ():
            here, ids = at[torch.as_tensor(some, device=at.device)], self.boundary_ids.to(logits.device)
            values[torch.as_tensor(some, device=at.device)] = logits[here][:, ids].float().logsumexp(1) - totals[here]
        return values.cpu().double().numpy()

    def _read_batches(
        self, rows: Sequence[Any], readings: np.ndarray, task: str
    ) -> Iterator[tuple[np.ndarray, np.ndarray, list[int]]]:
        """Batches of the rows that are read: numbers of readings, their places in the batch laid flat, row numbers."""
        order = np.argsort(readings[:, 0], kind="stable")
        starts = np.searchsorted(readings[order, 0], np.arange(len(rows) + 1))
        used = np.flatnonzero(np.diff(starts)).tolist()
        for numbers in self.batches([len(rows[row]) for row in used], task):
            batch = [used[number] for number in numbers]
            parts = [order[starts[row] : starts[row + 1]] for row in batch]
            width = max(len(rows[row]) for row in batch)
            at = np.concatenate([n * width + readings[part, 1] for n, part in enumerate(parts)])
            yield np.concatenate(parts), at, batch

    def inputs(self, rows: Sequence[Any]) -> dict[str, torch.Tensor]:
        """What the network is given for some input rows."""
        return self.padded(rows)

    @cached_property
    def boundary_ids(self) -> torch.Tensor:
        """Vocabulary items that can follow a whole word: those with a space before them, punctuation, and the text's end.

        Found by trying each behind a word. Items that are parts of characters are not among them.
        """
        size = len(self.tokenizer)
        carrier = self.encoded(CARRIER, add_special_tokens=False)["input_ids"]
        texts = self.tokenizer.batch_decode([[*carrier, i] for i in range(size)], clean_up_tokenization_spaces=False)
        before = self.tokenizer.decode(carrier, clean_up_tokenization_spaces=False)  # some put a space before any text
        behind = [text.removeprefix(before)[:1] for text in texts]
        ids = {i for i, character in enumerate(behind) if character and closes(character)}
        return torch.tensor(sorted(ids | self.reserved_ids))

    def padded(self, ids: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Inputs padded on the right, whatever side the tokenizer prefers, so that positions count from the text's start."""
        filler = self.tokenizer.pad_token_id
        filler = 0 if filler is None else filler
        width = max(map(len, ids))
        rows = [[*row, *[filler] * (width - len(row))] for row in ids]
        inputs = {"input_ids": torch.tensor(rows, device=self.device)}
        if all(len(row) == width for row in ids):
            return inputs  # networks are faster without a mask
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in ids]
        return inputs | {"attention_mask": torch.tensor(mask, device=self.device)}


@torch.inference_mode()
def logits_at(
    network: Any, inputs: dict[str, torch.Tensor], places: np.ndarray, mixed: torch.nn.Module | None = None
) -> torch.Tensor:
    """The network's logits at some places of a batch laid flat: shape (places, vocabulary), in the network's dtype.

    The output layer is by far the widest one, so it gets to see the wanted places only. It is reached through a hook
    because not every architecture lets a caller say which positions to keep, and none lets each row have its own.
    ``mixed``: a module behind which no place looks at another one, so that only the wanted places need to go on from there.
    """
    at, output_layer = torch.as_tensor(places), network.get_output_embeddings()

    def keep(hidden: torch.Tensor) -> torch.Tensor:
        return hidden.flatten(0, 1)[at.to(hidden.device)][None]

    hook: Any = nullcontext()
    if mixed is not None:
        hook = mixed.register_forward_hook(lambda _, arguments, hidden: keep(hidden))
    elif output_layer is not None:
        hook = output_layer.register_forward_pre_hook(lambda _, arguments: (keep(arguments[0]), *arguments[1:]))
    with hook:
        flat = network(**inputs).logits.flatten(0, 1)
    return flat if len(flat) == len(at) else flat[at.to(flat.device)]


def closes(character: str) -> bool:
    """Whether a character ends the word before it: white space or punctuation, but no part of a character."""
    return character != REPLACEMENT and (character.isspace() or unicodedata.category(character)[0] in "PS")


def text_digest(text: str) -> str:
    """A digest of 16 bytes, in hexadecimal."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def weights_digest(network: Any) -> str:
    """A digest of every parameter's name, shape and bytes: two models with one name are never taken for each other."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        there: Any = fetched(network, name) if tensor.is_meta else tensor
        digest.update(there.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def fetched(network: Any, name: str) -> torch.Tensor:
    """A weight that ``device_map`` has put off to memory or disk, read from there."""
    from accelerate.utils import align_module_device

    module, _, weight = name.rpartition(".")
    owner = network.get_submodule(module)
    with align_module_device(owner):
        return getattr(owner, weight).detach().cpu().clone()
