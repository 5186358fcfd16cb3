"""Language models behind one small protocol: ``load`` one by name, then ``fill`` gaps or ``score`` sentences with it."""

import warnings

# tqdm says so in every notebook without widgets, and with a path of this machine: our progress bars are plain text.
warnings.filterwarnings("ignore", message="IProgress not found")

from lib.models.loading import load  # noqa: E402
from lib.models.protocol import FilledBatch, Gap, LanguageModel, TokenScores, Word, only  # noqa: E402

__all__ = ["FilledBatch", "Gap", "LanguageModel", "TokenScores", "Word", "load", "only"]
