"""Progress bars: for a person, on the right stream; inside a batch run none."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


def bar(parts: Iterable | None = None, shown: bool = True, **settings: Any) -> tqdm:
    """A ``tqdm`` that goes away when it is done; none inside a batch run, or where it is not to be ``shown``.

    It writes to the error stream, and in a kernel to the other: JupyterLab paints the error stream red, even an empty line.
    """
    stream = sys.stdout if _in_a_kernel() else sys.stderr
    return tqdm(parts, disable=quiet() or not shown, leave=False, file=stream, **settings)


def _in_a_kernel() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def quiet() -> bool:
    """True inside ``python -m lib.run`` (which sets ``LITMUS_QUIET``), where a progress bar would end up in the page."""
    return os.environ.get("LITMUS_QUIET", "") not in ("", "0")


@contextmanager
def silence() -> Iterator[None]:
    """No progress bars inside, for work too short to need one."""
    before = os.environ.get("LITMUS_QUIET")
    os.environ["LITMUS_QUIET"] = "1"
    try:
        yield
    finally:
        os.environ.pop("LITMUS_QUIET")
        if before is not None:
            os.environ["LITMUS_QUIET"] = before
