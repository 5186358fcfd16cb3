"""What a model is here: anything that can fill a gap, put whole words in it, score a sentence and say which ids a word is.

A new family of models is one file with a class of these methods; nothing else in Litmus has to know of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import torch

from lib.errors import LitmusError

StartToken = Literal["never", "auto", "always"]
Position = Literal["start", "start_as_written", "middle"]
TargetPolicy = Literal["single_token", "whole_word", "sum_l2r", "within_word_l2r", "original"]
MaskedMethod = Literal["original", "within_word_l2r"]


class Gap(NamedTuple):
    """A place for one word: the text before it and the text after it, as in running text and without the gap's spaces."""

    left: str
    right: str


class Word(NamedTuple):
    """A form as a model writes it: its piece ids, or no ids and the reason why it cannot be scored."""

    form: str
    ids: tuple[int, ...]
    reason: str

    @property
    def id(self) -> int:
        """The item of the vocabulary that the form is. Raises LitmusError where it is several, or none."""
        if len(self.ids) != 1:
            why = self.reason or f"it is {len(self.ids)} pieces"
            raise LitmusError(
                f"{self.form!r} is no item of this model's vocabulary ({why}); take another example, or another model."
            )
        return self.ids[0]


class FilledBatch(NamedTuple):
    """What a model says about some gaps: which of them, and either its numbers or why there are none.

    ``log_probabilities``, natural log, is ``None`` where ``reason`` is not empty. From ``fill``: distributions, float32,
    shape (rows, vocabulary). From ``continue_``: one number a form, float64, shape (rows, forms), NaN for a form without ids.
    """

    rows: list[int]
    log_probabilities: torch.Tensor | None
    reason: str


def only(batches: Iterable[FilledBatch]) -> FilledBatch:
    """The one batch of ``fill`` or ``continue_`` for a single gap. Raises LitmusError where the model has no answer for it."""
    [batch] = batches
    if batch.reason:
        raise LitmusError(
            f"this model has no answer for the gap ({batch.reason}); take another example, or another model."
        )
    return batch


@dataclass(frozen=True)
class TokenScores:
    """One sentence, piece by piece.

    ``pieces``: the tokens as the vocabulary spells them. ``spans``: (start, end) characters of each in ``sentence``.
    ``log_probabilities``: natural log, NaN where the model gives none (unknown tokens; a first token without anything
    before it, then ``first_unscored``). ``reason``: empty, or why nothing was scored (``too_long``, ...), in which case the
    lists are empty.
    """

    sentence: str
    pieces: list[str]
    spans: list[tuple[int, int]]
    log_probabilities: np.ndarray
    reason: str = ""
    first_unscored: bool = False


class LanguageModel(Protocol):
    """The protocol of every model family."""

    name: str
    revision: str
    family: str

    @property
    def cased(self) -> bool:
        """Whether the vocabulary tells capital letters from small ones."""

    @property
    def vocabulary_size(self) -> int:
        """How many vocabulary items a distribution covers."""

    @property
    def identity(self) -> dict[str, str]:
        """All that makes two sets of scores comparable: name, revision, weights, configuration, tokenizer, dtype."""

    def seen(self, gap: Gap) -> Gap:
        """The part of a gap's context that this model sees: both sides, or the left one only."""

    def fill(self, gaps: Sequence[Gap], start_token: StartToken) -> Iterator[FilledBatch]:
        """Stream the distributions at the gaps, in batches and in any order; every gap comes exactly once."""

    def continue_(
        self, gaps: Sequence[Gap], forms: Sequence[str], policy: TargetPolicy, start_token: StartToken
    ) -> Iterator[FilledBatch]:
        """Stream the log-probabilities of whole forms, of however many pieces, at the gaps; every gap comes exactly once.

        ``whole_word``: that this word stands there, up to its end. ``within_word_l2r``, ``sum_l2r``: its pieces from left
        to right. ``original``: each piece with all others shown (masked models only). Masked models get one mask a piece.
        """

    def score(self, sentences: Sequence[str], start_token: StartToken) -> list[TokenScores]:
        """The log-probability of every token of every sentence."""

    def word(self, form: str, position: Position) -> Word:
        """The ids of a form after a word (``middle``) or as the first word of a text, capitalised (``start``) or not."""

    def spelling(self, ids: Sequence[int]) -> list[str]:
        """Vocabulary items as a person reads them; parts of characters are shown as such."""
