"""Whether to show progress: to a person yes, inside a batch run no."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def quiet() -> bool:
    """True inside ``python -m lib.run`` (which sets ``LITMUS_QUIET``), where a progress bar would end up in the page."""
    return os.environ.get("LITMUS_QUIET", "") not in ("", "0")


@contextmanager
def silence() -> Iterator[None]:
    """No progress bars inside, for work too short to need one: in JupyterLab each leaves an empty red box behind."""
    before = os.environ.get("LITMUS_QUIET")
    os.environ["LITMUS_QUIET"] = "1"
    try:
        yield
    finally:
        os.environ.pop("LITMUS_QUIET")
        if before is not None:
            os.environ["LITMUS_QUIET"] = before
