"""Language models behind one small protocol: ``load`` one by name, then ``fill`` gaps or ``score`` sentences with it."""

from lib.models.loading import listed, load
from lib.models.protocol import FilledBatch, Gap, LanguageModel, TokenScores, Word

__all__ = ["FilledBatch", "Gap", "LanguageModel", "TokenScores", "Word", "listed", "load"]
