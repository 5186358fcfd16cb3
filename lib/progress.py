"""Whether to show progress: to a person yes, inside a batch run no."""

import os


def quiet() -> bool:
    """True inside ``python -m lib.run`` (which sets ``LITMUS_QUIET``), where a progress bar would end up in the page."""
    return os.environ.get("LITMUS_QUIET", "") not in ("", "0")
