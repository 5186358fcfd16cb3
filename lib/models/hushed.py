"""Loading without chatter."""

import contextlib
import warnings
from collections.abc import Iterator

import transformers


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Without transformers' progress bars, warnings and advice: a notebook's page is for its reader."""
    verbosity, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            transformers.logging.set_verbosity(verbosity)
            if bars:
                transformers.logging.enable_progress_bar()
