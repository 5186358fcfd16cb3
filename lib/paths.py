"""Where things lie: the repository's folders and the user's cache."""

import os
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
REPORTS = ROOT / "reports"


def cache() -> Path:
    """The folder of converted models and kept scores; the environment variable ``LITMUS_CACHE`` moves it."""
    return Path(os.environ.get("LITMUS_CACHE") or platformdirs.user_cache_dir("litmus"))
