"""Causal language models: GPT-2, Llama and their kind. They see the left context only."""

import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from lib.errors import LitmusError
from lib.models.hugging_face import BOUNDARY, HuggingFaceModel, logits_at
from lib.models.prefixes import Tree, pack, visible
from lib.models.protocol import FilledBatch, Gap, StartToken, TargetPolicy, TokenScores, Word

WIDTH = 128  # nodes of a tree: wide enough to share, narrow enough for attention to stay cheap
LOGITS = 2**26  # of a batch: a quarter of a gigabyte in float32
TEXTS = 4096  # continued texts that are laid out at once
PROBE = [[5, 11, 7, 13, 6, 9], [5, 11, 7, 8, 6, 12, 10], [5, 8, 13], [4, 6, 12, 7, 9]]  # texts that share beginnings


class CausalModel(HuggingFaceModel):
    """A causal model. Whether a start token comes first is the caller's choice, never the tokenizer's."""

    family = "causal"

    def seen(self, gap: Gap) -> Gap:
        """A causal model sees what stands before the gap, without the space that belongs to the next word."""
        return Gap(gap.left.rstrip(), "")

    def start_ids(self, start_token: StartToken) -> list[int]:
        """The start token's id in a list: none for ``never``; for ``auto`` if the model defines one; ``always`` insists."""
        if start_token not in ("never", "auto", "always"):
            raise LitmusError(f"'{start_token}' is no start-token policy; choose 'never', 'auto' or 'always'.")
        start = self.tokenizer.bos_token_id
        if start_token == "always" and start is None:
            raise LitmusError(f"{self.name} defines no start token; choose start_token 'auto' or 'never'.")
        return [] if start_token == "never" or start is None else [start]

    def fill(self, gaps: Sequence[Gap], start_token: StartToken = "never") -> Iterator[FilledBatch]:
        """Distributions after the left contexts (see the protocol).

        A row is refused as ``too_long``, as ``empty_context`` when there is neither text nor start token to go on, or as
        ``special_token_in_text`` when the item itself holds one.
        """
        ids, reasons = self._contexts(gaps, start_token)
        usable = [row for row, reason in enumerate(reasons) if not reason]
        trees, laid = self.packed([ids[row] for row in usable])
        places = dict(zip(usable, laid, strict=True))
        ends = [(places[row][0], places[row][1][-1]) if row in places else (-1, -1) for row in range(len(gaps))]
        yield from self.distributions(trees, reasons, ends)

    def _contexts(
        self, gaps: Sequence[Gap], start_token: StartToken, more: int = 0
    ) -> tuple[list[list[int]], list[str]]:
        """The ids of the left contexts, start token included, and why one cannot be read with ``more`` tokens behind it."""
        start = self.start_ids(start_token)
        texts = [self.seen(gap).left for gap in gaps]
        encoded = self.encoded(texts, add_special_tokens=False)["input_ids"] if texts else []
        ids = [[*start, *row] for row in encoded]
        reasons = [
            self.refusal(text, len(row) + more) if row else "empty_context"
            for text, row in zip(encoded, ids, strict=True)
        ]
        return ids, reasons

    def score(self, sentences: Sequence[str], start_token: StartToken = "auto") -> list[TokenScores]:
        """Each token's log-probability given all before it; what sentences have in common from the start is computed once.

        NaN for the first token when no start token comes before it, and for unknown ones: what the model says of the
        unknown token is not about the word.
        """
        start = self.start_ids(start_token)
        encoding = (
            self.encoded(list(sentences), add_special_tokens=False, return_offsets_mapping=True) if sentences else {}
        )
        texts = encoding.get("input_ids", [])
        ids = [[*start, *text] for text in texts]
        reasons = [self.refusal(text, len(row)) if text else "empty" for text, row in zip(texts, ids, strict=True)]
        usable = [row for row, reason in enumerate(reasons) if not reason]
        found = iter(self._chains([ids[row] for row in usable]))
        results = []
        for row, (sentence, reason) in enumerate(zip(sentences, reasons, strict=True)):
            if reason:
                results.append(TokenScores(sentence, [], [], np.array([]), reason))
                continue
            values = next(found)[len(start) :]
            values[np.isin(texts[row], list(self.unknown_ids))] = np.nan
            pieces = self.tokenizer.convert_ids_to_tokens(texts[row])
            spans = [tuple(span) for span in encoding["offset_mapping"][row]]
            results.append(TokenScores(sentence, pieces, spans, values, first_unscored=not start))
        return results

    def _chains(self, ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """For each row of ids, the log-probability of every token given those before it; NaN for the first."""
        trees, places = self.packed([row[:-1] for row in ids])
        readings = [
            (tree, node, token)
            for row, (tree, path) in zip(ids, places, strict=True)
            for node, token in zip(path, row[1:], strict=True)
        ]
        found = self.log_probabilities(trees, np.array(readings, dtype=np.int64).reshape(-1, 3))
        ends = np.cumsum([len(row) - 1 for row in ids])
        return [np.concatenate([[np.nan], part]) for part in np.split(found, ends[:-1])] if len(ids) else []

    def continue_(
        self, gaps: Sequence[Gap], forms: Sequence[str], policy: TargetPolicy, start_token: StartToken = "never"
    ) -> Iterator[FilledBatch]:
        """Log-probabilities of whole forms after the left contexts, by the chain rule over their pieces (see the protocol).

        ``whole_word`` adds that a word boundary follows: some item with a space before it, punctuation, or the text's end.
        ``sum_l2r`` and ``within_word_l2r`` leave that out; then a form that is the beginning of another one is never less
        probable than it, whatever the context.
        """
        if policy == "original":
            raise LitmusError("'original' masks one piece at a time, which a causal model cannot; choose 'whole_word'.")
        words = {position: [self.word(form, position) for form in forms] for position in ("start", "middle")}
        boundary = [BOUNDARY] if policy == "whole_word" else []
        longest = max((len(word.ids) for listed in words.values() for word in listed), default=0)
        ids, reasons = self._contexts(gaps, start_token, more=longest - 1 + len(boundary) if longest else 0)
        for reason in sorted(set(reasons) - {""}):
            yield FilledBatch([row for row, found in enumerate(reasons) if found == reason], None, reason)
        usable = [row for row, reason in enumerate(reasons) if not reason]
        size = max(1, TEXTS // max(1, len(forms)))
        for some in (usable[start : start + size] for start in range(0, len(usable), size)):
            asked = [words["middle" if self.seen(gaps[row]).left else "start"] for row in some]
            yield FilledBatch(some, self._continued([ids[row] for row in some], asked, boundary), "")

    def _continued(
        self, contexts: Sequence[list[int]], words: Sequence[Sequence[Word]], boundary: list[int]
    ) -> torch.Tensor:
        """The log-probability of each word after each context, shape (contexts, words); NaN for a word without ids."""
        pairs = [(row, column) for row, listed in enumerate(words) for column, word in enumerate(listed) if word.ids]
        chains = [[*words[row][column].ids, *boundary] for row, column in pairs]
        trees, places = self.packed(
            [[*contexts[row], *chain[:-1]] for (row, _), chain in zip(pairs, chains, strict=True)]
        )
        readings, owners = [], []
        for pair, ((row, _), chain, (tree, path)) in enumerate(zip(pairs, chains, places, strict=True)):
            nodes = path[len(contexts[row]) - 1 :]
            readings += [(tree, node, token) for node, token in zip(nodes, chain, strict=True)]
            owners += [pair] * len(chain)
        found = self.log_probabilities(trees, np.array(readings, dtype=np.int64).reshape(-1, 3))
        totals = torch.full((len(contexts), len(words[0])), torch.nan, dtype=torch.float64)
        at = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
        sums = np.bincount(np.array(owners, dtype=np.int64), found, minlength=len(pairs))
        totals[at[:, 0], at[:, 1]] = torch.from_numpy(sums)
        return totals

    def packed(self, texts: Sequence[Sequence[int]]) -> tuple[list[Tree], list[tuple[int, list[int]]]]:
        """Texts as trees of shared beginnings (see ``prefixes.pack``); each alone where the network allows no sharing."""
        short = max(map(len, texts), default=0) <= self.window
        return pack(texts, min(WIDTH, self.budget) if short and self.shares_beginnings else 0)

    def inputs(self, rows: Sequence[Tree]) -> dict[str, Any]:
        """Trees as the network takes them; chains as any text, so that nothing depends on the mask where it need not."""
        if all(tree.parents == list(range(-1, len(tree) - 1)) for tree in rows):
            return self.padded([tree.tokens for tree in rows]) | self.options
        inputs = self.padded([tree.tokens for tree in rows])
        width = inputs["input_ids"].shape[1]
        depths = [[*tree.depths, *[0] * (width - len(tree))] for tree in rows]
        seen = torch.from_numpy(visible(rows, width)).to(self.device)[:, None]
        hidden = torch.finfo(self.network.dtype).min
        inputs["attention_mask"] = torch.zeros(seen.shape, dtype=self.network.dtype, device=self.device).masked_fill(
            ~seen, hidden
        )
        return inputs | {"position_ids": torch.tensor(depths, device=self.device)} | self.options

    @property
    def budget(self) -> int:
        """How many tokens a batch may hold: every one can be read, so a large vocabulary leaves room for fewer."""
        return min(self.token_budget, max(WIDTH, LOGITS // self.vocabulary_size))

    @cached_property
    def options(self) -> dict[str, Any]:
        """Nothing is generated, so no network needs to keep keys and values."""
        return {"use_cache": False} if "use_cache" in inspect.signature(self.network.forward).parameters else {}

    @cached_property
    def window(self) -> int:
        """How far back the network looks: longer texts are not packed, because a tree's mask replaces the window's."""
        config = self.network.config.get_text_config()
        limits = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
        return min([limit for limit in limits if limit], default=sys.maxsize)

    @cached_property
    def shares_beginnings(self) -> bool:
        """Whether a tree gives the numbers that its texts give alone. Found by trying: some networks count positions by
        place in the row, some read it in order, and some take no such mask."""
        texts = [[token % self.vocabulary_size for token in text[: min(self.window, len(text))]] for text in PROBE]
        trees, places = pack(texts, WIDTH)
        try:
            together = logits_at(self.network, self.inputs(trees), np.array([path[-1] for _, path in places])).float()
        except Exception:  # whatever a network raises on inputs that it was not written for
            return False
        alone = [
            logits_at(self.network, self.padded([text]) | self.options, np.array([len(text) - 1])) for text in texts
        ]
        apart = torch.cat(alone).float()
        close = 1e-4 if self.network.dtype == torch.float32 else 0.05
        return bool((together - apart).abs().max() <= close * apart.abs().max())
