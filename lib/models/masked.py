"""Masked language models: BERT, RoBERTa, DistilBERT and their kind. They see both sides of a gap."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch

from lib.errors import LitmusError
from lib.models.hugging_face import CARRIER, HuggingFaceModel, log_probabilities_at
from lib.models.protocol import FilledBatch, Gap, MaskedMethod, StartToken, TokenScores

CLOSES_UP = tuple(".,;:!?)]}'’”")


class MaskedModel(HuggingFaceModel):
    """A masked model; the special tokens around the text ([CLS], [SEP]) are the tokenizer's own, always there."""

    family = "masked"

    def seen(self, gap: Gap) -> Gap:
        """A masked model sees the whole context."""
        return gap

    def fill(self, gaps: Sequence[Gap], start_token: StartToken = "never") -> Iterator[FilledBatch]:
        """Distributions at the gaps (see the protocol). ``start_token`` has no effect: a masked model always has its own.

        A row is refused as ``too_long``, as ``mask_in_text`` when the item itself holds the mask token, or as
        ``special_token_in_text`` when it holds another one.
        """
        mask = self.tokenizer.mask_token_id
        texts = [text_with_gap(gap, self.tokenizer.mask_token, self.space_before_mask) for gap in gaps]
        encoded = self.encoded(texts, return_special_tokens_mask=True) if texts else {"input_ids": []}
        ids = encoded["input_ids"]
        reasons = [
            self._refusal(row, special)
            for row, special in zip(ids, encoded.get("special_tokens_mask", []), strict=True)
        ]
        positions = [row.index(mask) if not reason else -1 for row, reason in zip(ids, reasons, strict=True)]
        yield from self.distributions(ids, reasons, positions)

    def _refusal(self, ids: list[int], special: list[int]) -> str:
        mask = self.tokenizer.mask_token_id
        text = [token for token, added in zip(ids, special, strict=True) if not added]
        if text.count(mask) > 1 and len(ids) <= self.maximum_length:
            return "mask_in_text"
        return self.refusal([token for token in text if token != mask], len(ids))

    @cached_property
    def space_before_mask(self) -> str:
        """The space before the gap, empty where it would become a piece of its own: it belongs to the word that is sought.

        Most vocabularies with leading spaces let the mask swallow it; a folder saved long ago may have lost that habit.
        """
        pieces = self.encoded(f"{CARRIER} {self.tokenizer.mask_token}", add_special_tokens=False)["input_ids"]
        bare = self.encoded(f"{CARRIER}{self.tokenizer.mask_token}", add_special_tokens=False)["input_ids"]
        return " " if pieces == bare else ""

    def score(
        self, sentences: Sequence[str], start_token: StartToken = "auto", method: MaskedMethod = "original"
    ) -> list[TokenScores]:
        """Pseudo-log-likelihood: each token masked in turn (Salazar et al. 2020).

        ``original`` masks one token at a time. ``within_word_l2r`` also masks the later pieces of the same word, taken by
        white space, so that the end of a rare word does not give its beginning away (Kauf and Ivanova 2023). NaN for
        unknown tokens: what the model says of the unknown token is not about the word.
        """
        if method not in ("original", "within_word_l2r"):
            raise LitmusError(f"'{method}' is no masked score; choose 'original' or 'within_word_l2r'.")
        return [self._score_one(sentence, method) for sentence in sentences]

    def _score_one(self, sentence: str, method: MaskedMethod) -> TokenScores:
        encoding = self.encoded(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
        ids, spans = encoding["input_ids"], encoding["offset_mapping"]
        read = [i for i, special in enumerate(encoding["special_tokens_mask"]) if not special]
        reason = self.refusal([ids[i] for i in read], len(ids)) if read else "empty"
        if reason:
            return TokenScores(sentence, [], [], np.array([]), reason)
        words = words_of(sentence, [spans[i] for i in read])
        scores = np.empty(len(read))
        for batch in self.batches([len(ids)] * len(read), "masked copies"):
            copies = [self._masked_copy(ids, read, words, i, method) for i in batch]
            found = log_probabilities_at(self.network, self.padded(copies), [read[i] for i in batch])
            targets = torch.tensor([ids[read[i]] for i in batch], device=found.device)
            scores[batch] = found.gather(1, targets[:, None])[:, 0].cpu().numpy()
        scores[np.isin([ids[i] for i in read], list(self.unknown_ids))] = np.nan
        pieces = self.tokenizer.convert_ids_to_tokens([ids[i] for i in read])
        return TokenScores(sentence, pieces, [tuple(spans[i]) for i in read], scores)

    def _masked_copy(
        self, ids: list[int], read: list[int], words: list[int], target: int, method: MaskedMethod
    ) -> list[int]:
        copy = list(ids)
        for i in range(target, len(read) if method == "within_word_l2r" else target + 1):
            if words[i] == words[target]:
                copy[read[i]] = self.tokenizer.mask_token_id
        return copy


def text_with_gap(gap: Gap, filler: str, space: str = " ") -> str:
    """The running text with ``filler`` in the gap: ``space`` before it, a space behind it unless punctuation closes up."""
    before = f"{gap.left}{space}" if gap.left else ""
    after = gap.right if not gap.right or gap.right.startswith(CLOSES_UP) else f" {gap.right}"
    return f"{before}{filler}{after}"


def words_of(sentence: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each token, the number of the word that its last character stands in; a bare space belongs to the word behind it.

    Words are what white space separates, and each punctuation mark at either end of one is a word of its own.
    """
    numbers, number = [0] * (len(sentence) + 1), 0
    for match in re.finditer(r"\S+", sentence):
        opens = True
        left, right = inner(match.group())
        for at in range(match.start(), match.end()):
            within = left <= at - match.start() < right
            number += opens or not within
            opens = not within
            numbers[at] = number
    for at in reversed(range(len(sentence))):
        numbers[at] = numbers[at] or numbers[at + 1]
    return [numbers[end - 1] for _, end in spans]


def inner(word: str) -> tuple[int, int]:
    """Where a word begins and ends without the punctuation and symbols around it; a word of nothing else is empty."""
    letters = [at for at, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    return (letters[0], letters[-1] + 1) if letters else (0, 0)
