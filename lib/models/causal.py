"""Causal language models: GPT-2, Llama and their kind. They see the left context only."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from lib.errors import LitmusError
from lib.models.hugging_face import HuggingFaceModel
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
        encoded = self.encoded(texts, add_special_tokens=False)["input_ids"] if texts else []
        ids = [[*start, *row] for row in encoded]
        reasons = [
            self.refusal(text, len(row)) if row else "empty_context" for text, row in zip(encoded, ids, strict=True)
        ]
        yield from self.distributions(ids, reasons, [len(row) - 1 for row in ids])

    def score(self, sentences: Sequence[str], start_token: StartToken = "auto") -> list[TokenScores]:
        """Each token's log-probability given all before it.

        NaN for the first token when no start token comes before it, and for unknown ones: what the model says of the
        unknown token is not about the word.
        """
        start = self.start_ids(start_token)
        encodings = [self.encoded(s, add_special_tokens=False, return_offsets_mapping=True) for s in sentences]
        texts = [encoding["input_ids"] for encoding in encodings]
        ids = [[*start, *text] for text in texts]
        reasons = [self.refusal(text, len(row)) if text else "empty" for text, row in zip(texts, ids, strict=True)]
        results = [TokenScores(s, [], [], np.array([]), reason) for s, reason in zip(sentences, reasons, strict=True)]
        usable = [row for row, reason in enumerate(reasons) if not reason]
        for batch in self.batches([len(ids[row]) for row in usable], "sentences"):
            rows = [usable[i] for i in batch]
            for row, scores in zip(rows, self._next_token_scores([ids[row] for row in rows]), strict=True):
                unscored = [] if start else [np.nan]
                known = ~np.isin(texts[row], list(self.unknown_ids))
                pieces = self.tokenizer.convert_ids_to_tokens(texts[row])
                spans = [tuple(span) for span in encodings[row]["offset_mapping"]]
                found = np.where(known, [*unscored, *scores], np.nan)
                results[row] = TokenScores(sentences[row], pieces, spans, found, first_unscored=not start)
        return results

    @torch.inference_mode()
    def _next_token_scores(self, ids: list[list[int]]) -> list[np.ndarray]:
        """For each row, the log-probability of every token but the first."""
        inputs = self.padded(ids)
        logits = self.network(**inputs).logits[:, :-1].flatten(0, 1).float()
        targets = inputs["input_ids"][:, 1:]
        loss = torch.nn.functional.cross_entropy(logits, targets.flatten(), reduction="none").view(targets.shape)
        return [-loss[i, : len(row) - 1].cpu().double().numpy() for i, row in enumerate(ids)]
