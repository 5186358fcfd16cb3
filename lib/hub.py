"""Whether a model of the hub can be had from here, found out at once: left alone, transformers tries for half a minute."""

from functools import cache

from lib.listing import MAIN

SECONDS = 5  # to wait for the hub's answer


@cache
def unreachable() -> str:
    """Why the hub cannot be asked, in words; "" where it answers. Asked once a process."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.HF_HUB_OFFLINE:
        return "the environment says that there is no network: HF_HUB_OFFLINE"
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception as error:  # of whatever library it uses; any answer at all will do
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return f"{constants.ENDPOINT.split('//')[-1]} does not answer: {why[:100]}"
    return ""


def is_id(source: str) -> bool:
    """True where the hub could have a model of that name."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(source)
    except HFValidationError:
        return False
    return True


def kept(source: str, revision: str = MAIN) -> bool:
    """True where the model of a hub id is in the hub's folder on this machine, at least its configuration."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(source, "config.json", revision=revision), str)
