"""Causal language models: GPT-2, Llama and their kind. They see the left context only."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from lib.errors import LitmusError
from lib.models.hugging_face import HuggingFaceModel, log_probabilities_at
from lib.models.protocol import FilledBatch, Gap, StartToken, TokenScores


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
        start = self.start_ids(start_token)
        texts = [self.seen(gap).left for gap in gaps]
        encoded = self.tokenizer(texts, add_special_tokens=False, truncation=False)["input_ids"] if texts else []
        ids = [[*start, *row] for row in encoded]
        reasons = [self._reason(row, len(start)) for row in ids]
        for reason in sorted(set(reasons) - {""}):
            yield FilledBatch([row for row, found in enumerate(reasons) if found == reason], None, reason)
        usable = [row for row, reason in enumerate(reasons) if not reason]
        for batch in self.batches([len(ids[row]) for row in usable], "gaps"):
            rows = [usable[i] for i in batch]
            inputs = self.padded([ids[row] for row in rows])
            last = [len(ids[row]) - 1 for row in rows]
            yield FilledBatch(rows, log_probabilities_at(self.network, inputs, last), "")

    def _reason(self, ids: list[int], start: int) -> str:
        if not ids:
            return "empty_context"
        if len(ids) > self.maximum_length:
            return "too_long"
        return "special_token_in_text" if set(ids[start:]) & set(self.tokenizer.all_special_ids) else ""

    def score(self, sentences: Sequence[str], start_token: StartToken = "auto") -> list[TokenScores]:
        """Each token's log-probability given all before it; the first is NaN when no start token comes before it."""
        start = self.start_ids(start_token)
        encodings = [self.tokenizer(s, add_special_tokens=False, return_offsets_mapping=True) for s in sentences]
        ids = [[*start, *encoding["input_ids"]] for encoding in encodings]
        reasons = [self._reason(row, len(start)) if len(row) > len(start) else "empty" for row in ids]
        results = [TokenScores(s, [], [], np.array([]), reason) for s, reason in zip(sentences, reasons, strict=True)]
        usable = [row for row, reason in enumerate(reasons) if not reason]
        for batch in self.batches([len(ids[row]) for row in usable], "sentences"):
            rows = [usable[i] for i in batch]
            for row, scores in zip(rows, self._next_token_scores([ids[row] for row in rows]), strict=True):
                unscored = [] if start else [np.nan]
                pieces = self.tokenizer.convert_ids_to_tokens(encodings[row]["input_ids"])
                spans = [tuple(span) for span in encodings[row]["offset_mapping"]]
                results[row] = TokenScores(sentences[row], pieces, spans, np.array([*unscored, *scores]))
        return results

    @torch.inference_mode()
    def _next_token_scores(self, ids: list[list[int]]) -> list[np.ndarray]:
        """For each row, the log-probability of every token but the first."""
        inputs = self.padded(ids)
        logits = self.network(**inputs).logits[:, :-1].flatten(0, 1).float()
        targets = inputs["input_ids"][:, 1:]
        loss = torch.nn.functional.cross_entropy(logits, targets.flatten(), reduction="none").view(targets.shape)
        return [-loss[i, : len(row) - 1].cpu().double().numpy() for i, row in enumerate(ids)]
