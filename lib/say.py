"""How messages name things: near misses, short paths, long values cut; and how a command line tells an error."""

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lib.errors import LitmusError


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " (did you mean ...?)" where a known name is near ``name``, in capitals or not, else ""."""
    spelled = {each.casefold(): each for each in known}
    return "".join(f" (did you mean {spelled[match]}?)" for match in get_close_matches(name.casefold(), spelled, 1))


def short(path: Path) -> str:
    """A path as someone in the current folder would write it: relative inside that folder, else absolute."""
    absolute = path.resolve()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def shown(value: Any) -> str:
    """A value as a message shows it: 80 characters of it at most."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_sentence(error: BaseException) -> str:
    """The first sentence of an error's text, cut to a readable length and without its full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0][:200].rstrip(" .:")


def is_of_memory(kind: str, text: str) -> bool:
    """Whether an error of that name and text says that memory ran out: Python's, NumPy's, torch's, or the system's."""
    of_others = ("out of memory", "allocate memory", "bad_alloc")
    return "MemoryError" in kind or any(words in text for words in of_others)


def is_of_disk(text: str) -> bool:
    """Whether an error's text says that the disk takes no more."""
    return any(words in text for words in ("No space left", "File too large", "quota exceeded"))


def of_memory(what: str) -> str:
    """That the memory ran out, as a sentence with what to do; ``what``: how the error said it."""
    return f"the memory of this machine is too small ({what}); close other programs, or choose a smaller model"


def of_disk(what: str) -> str:
    """That the disk takes no more, as a sentence with what to do; ``what``: how the error said it."""
    return f"the disk takes no more ({what}); make room, or name another place"


def of_system(error: OSError) -> str:
    """What the system refused, as a sentence: which file, why, and what to do."""
    why = (error.strerror or str(error) or type(error).__name__).splitlines()[0]
    if is_of_disk(why):
        return f"{of_disk(why)}."
    if error.filename is None:
        return f"the system refused something ({why}); try again, or in another place."
    return f"{shown(str(error.filename))} cannot be used here ({why}); name another place, or mend this one."


@contextmanager
def told() -> Iterator[None]:
    """Around a command: what a person can mend becomes one line on the error stream, and exit code 2.

    Characters that the output's encoding lacks are written out as ``\\x``, ``\\u`` and ``\\U``.
    """
    import typer

    if isinstance(sys.stdout, io.TextIOWrapper):  # whatever an item holds, and whatever the terminal can show
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    except (LitmusError, OSError, MemoryError, RuntimeError) as error:
        sentence = of_system(error) if isinstance(error, OSError) else str(error)
        if not isinstance(error, LitmusError) and is_of_memory(type(error).__name__, str(error)):
            sentence = f"{of_memory(first_sentence(error))}."
        elif isinstance(error, RuntimeError):
            raise
        typer.echo(f"error: {sentence}", err=True)
        raise typer.Exit(2) from error
