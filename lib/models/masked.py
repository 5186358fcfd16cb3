"""Masked language models: BERT, RoBERTa, DistilBERT and their kind. They see both sides of a gap."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch

from lib.errors import LitmusError
from lib.models.hugging_face import CARRIER, HuggingFaceModel, logits_at
from lib.models.protocol import FilledBatch, Gap, MaskedMethod, StartToken, TargetPolicy, TokenScores, Word

CLOSES_UP = tuple(".,;:!?)]}'’”")
TEXTS = 4096  # forms in their contexts that are laid out at once
PROBE = [[5, 11, 7, 13, 6, 9], [8, 12, 10], [4, 6, 12, 7]]  # texts of different lengths
PLACES = [1, 4, 8, 15]  # of the padded probe laid flat: two of the first text, one of each other


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
        ids, positions, reasons = self._contexts(gaps)
        yield from self.distributions(ids, reasons, list(enumerate(positions)))

    def _contexts(self, gaps: Sequence[Gap], more: int = 0) -> tuple[list[list[int]], list[int], list[str]]:
        """Ids with a mask in the gap, where it stands, and why a row cannot be read with ``more`` masks; -1 for no place."""
        mask = self.tokenizer.mask_token_id
        texts = [text_with_gap(gap, self.tokenizer.mask_token, self.space_before_mask) for gap in gaps]
        encoded = self.encoded(texts, return_special_tokens_mask=True) if texts else {"input_ids": []}
        ids = encoded["input_ids"]
        reasons = [
            self._refusal(row, special, more)
            for row, special in zip(ids, encoded.get("special_tokens_mask", []), strict=True)
        ]
        return ids, [row.index(mask) if not reason else -1 for row, reason in zip(ids, reasons, strict=True)], reasons

    def continue_(
        self, gaps: Sequence[Gap], forms: Sequence[str], policy: TargetPolicy, start_token: StartToken = "never"
    ) -> Iterator[FilledBatch]:
        """Log-probabilities of whole forms at the gaps, one mask for each of their pieces (see the protocol).

        From left to right each piece is read off with the ones before it filled in and the ones behind it masked. What
        stands behind the gap shows where the word ends, so ``whole_word``, ``sum_l2r`` and ``within_word_l2r`` are one
        here. ``original`` shows all other pieces of the form. Forms of different numbers of pieces are compared as scores:
        they are no shares of one probability.
        """
        words = {position: [self.word(form, position) for form in forms] for position in ("start", "middle")}
        longest = max((len(word.ids) for listed in words.values() for word in listed), default=1)
        ids, positions, reasons = self._contexts(gaps, max(0, longest - 1))
        for reason in sorted(set(reasons) - {""}):
            yield FilledBatch([row for row, found in enumerate(reasons) if found == reason], None, reason)
        usable = [row for row, reason in enumerate(reasons) if not reason]
        size = max(1, TEXTS // max(1, len(forms)))
        for some in (usable[start : start + size] for start in range(0, len(usable), size)):
            asked = [words["middle" if gaps[row].left else "start"] for row in some]
            contexts = [(ids[row][: positions[row]], ids[row][positions[row] + 1 :]) for row in some]
            yield FilledBatch(some, self._continued(contexts, asked, policy), "")

    def _continued(
        self,
        contexts: Sequence[tuple[list[int], list[int]]],
        words: Sequence[Sequence[Word]],
        policy: TargetPolicy,
    ) -> torch.Tensor:
        """The score of each word in each context (left, right), shape (contexts, words); NaN for a word without ids.

        Words of as many pieces have their first masked copy in common, and those that begin alike the next ones too.
        """
        mask, rows, readings, owners = self.tokenizer.mask_token_id, Numbered(), [], []
        for number, ((left, right), listed) in enumerate(zip(contexts, words, strict=True)):
            for column, word in enumerate(listed):
                for i, token in enumerate(word.ids):
                    later = word.ids[i + 1 :] if policy == "original" else [mask] * (len(word.ids) - i - 1)
                    copy = (*left, *word.ids[:i], mask, *later, *right)
                    readings.append((rows[copy], len(left) + i, token))
                    owners.append(number * len(listed) + column)
        found = self.log_probabilities(list(rows), np.array(readings, dtype=np.int64).reshape(-1, 3))
        totals = np.bincount(np.array(owners, dtype=np.int64), found, minlength=len(contexts) * len(words[0]))
        totals[[not word.ids for listed in words for word in listed]] = np.nan
        return torch.from_numpy(totals.reshape(len(contexts), len(words[0])))

    def _refusal(self, ids: list[int], special: list[int], more: int) -> str:
        mask = self.tokenizer.mask_token_id
        text = [token for token, added in zip(ids, special, strict=True) if not added]
        if text.count(mask) > 1 and len(ids) <= self.maximum_length:
            return "mask_in_text"
        return self.refusal([token for token in text if token != mask], len(ids) + more)

    @cached_property
    def mixed(self) -> torch.nn.Module | None:  # type: ignore[override]
        """A normalisation in the last layer behind which no place looks at another one, found by trying.

        Of a masked copy one place is read, so the rest of that layer has little left to do. Where a layer normalises before
        it attends, or all layers are one, there is no such place: ``None``.
        """
        inputs = self.padded([[token % self.vocabulary_size for token in text] for text in PROBE])
        places, close = np.array(PLACES), 1e-4 if self.network.dtype == torch.float32 else 0.05
        plain = logits_at(self.network, inputs, places).float()
        for norm in last_norms(self.network):
            try:
                off = (logits_at(self.network, inputs, places, norm).float() - plain).abs().max()
            except Exception:  # whatever a network raises on fewer places than it expects
                continue
            if off <= close * plain.abs().max():
                return norm
        return None

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
        """Pseudo-log-likelihood: each token masked in turn (Salazar et al. 2020); equal masked copies are computed once.

        ``original`` masks one token at a time. ``within_word_l2r`` also masks the later pieces of the same word, taken by
        white space, so that the end of a rare word does not give its beginning away (Kauf and Ivanova 2023). NaN for
        unknown tokens: what the model says of the unknown token is not about the word.
        """
        if method not in ("original", "within_word_l2r"):
            raise LitmusError(f"'{method}' is no masked score; choose 'original' or 'within_word_l2r'.")
        if not sentences:
            return []
        encoding = self.encoded(list(sentences), return_offsets_mapping=True, return_special_tokens_mask=True)
        copies, readings, results = Numbered(), [], []
        for row, sentence in enumerate(sentences):
            ids, spans = encoding["input_ids"][row], encoding["offset_mapping"][row]
            read = [i for i, special in enumerate(encoding["special_tokens_mask"][row]) if not special]
            reason = self.refusal([ids[i] for i in read], len(ids)) if read else "empty"
            if reason:
                results.append(TokenScores(sentence, [], [], np.array([]), reason))
                continue
            spans = [tuple(spans[i]) for i in read]
            for at, masked in zip(read, masked_together(read, words_of(sentence, spans), method), strict=True):
                copy = list(ids)
                for i in masked:
                    copy[i] = self.tokenizer.mask_token_id
                readings.append((copies[tuple(copy)], at, ids[at]))
            pieces = self.tokenizer.convert_ids_to_tokens([ids[i] for i in read])
            results.append(TokenScores(sentence, pieces, spans, np.empty(len(read))))
        tokens = np.array(readings, dtype=np.int64).reshape(-1, 3)
        found = self.log_probabilities(list(copies), tokens)
        found[np.isin(tokens[:, 2], list(self.unknown_ids))] = np.nan
        start = 0
        for scores in results:
            scores.log_probabilities[:] = found[start : start + len(scores.pieces)]
            start += len(scores.pieces)
        return results


def last_norms(network: torch.nn.Module) -> list[torch.nn.Module]:
    """The layer normalisations of the last layer of the last stack of layers."""
    stacks = [module for module in network.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    last = stacks[-1][-1].modules() if stacks else ()
    return [module for module in last if isinstance(module, torch.nn.LayerNorm)]


class Numbered(dict):
    """Distinct things, numbered from 0 in the order in which they were first asked for."""

    def __missing__(self, key: tuple[int, ...]) -> int:
        self[key] = number = len(self)
        return number


def masked_together(read: Sequence[int], words: Sequence[int], method: MaskedMethod) -> Iterator[list[int]]:
    """For each position that is read: the positions masked then, itself alone or with the later ones of its word."""
    for first, word in enumerate(words):
        last = len(read) if method == "within_word_l2r" else first + 1
        yield [read[i] for i in range(first, last) if words[i] == word]


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
    return [numbers[max(end, 1) - 1] for _, end in spans]  # a space that a tokenizer puts first stands nowhere


def inner(word: str) -> tuple[int, int]:
    """Where a word begins and ends without the punctuation and symbols around it; a word of nothing else is empty."""
    letters = [at for at, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    return (letters[0], letters[-1] + 1) if letters else (0, 0)
