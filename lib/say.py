"""How messages name things: near misses, short paths, and long values cut."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " (did you mean ...?)" where a known name is near ``name``, else ""."""
    return "".join(f" (did you mean {match}?)" for match in get_close_matches(name, list(known), 1))


def short(path: Path) -> str:
    """A path as someone in the current folder would write it: relative inside that folder, else absolute."""
    absolute = path.resolve()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def shown(value: Any) -> str:
    """A value as a message shows it: 80 characters of it at most."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
