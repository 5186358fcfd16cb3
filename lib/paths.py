"""Where things lie: the repository's folders and the user's cache."""

import os
import stat
from pathlib import Path

import platformdirs

from lib.errors import LitmusError

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
REPORTS = ROOT / "reports"


def cache() -> Path:
    """The folder of converted models and kept scores; the environment variable ``LITMUS_CACHE`` moves it."""
    return Path(os.environ.get("LITMUS_CACHE") or platformdirs.user_cache_dir("litmus"))


def check_finite(path: Path) -> None:
    """Raise LitmusError for a pipe, a socket or a device: reading one can wait for ever, or fill the memory without end.

    Links are followed. Whatever else is wrong with a path is left to its reader.
    """
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise LitmusError(
            f"{path} is a pipe or a device, which may never end; write what it gives into a file, and name that."
        )
