"""Loading without chatter."""

import contextlib
import warnings
from collections.abc import Iterator

import transformers
from huggingface_hub.utils import logging as hub_logging


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Without transformers' progress bars, warnings and advice: a notebook's page is for its reader."""
    verbosity, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    hub_verbosity = hub_logging.get_verbosity()
    hub_logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            transformers.logging.set_verbosity(verbosity)
            hub_logging.set_verbosity(hub_verbosity)
            if bars:
                transformers.logging.enable_progress_bar()
