"""From a name to a model: bundled, listed in ``data/models.csv``, on the hub, or in a folder."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers

from lib.errors import LitmusError
from lib.models import bundled
from lib.models.causal import CausalModel
from lib.models.hushed import hushed
from lib.models.masked import MaskedModel
from lib.paths import DATA

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def load(
    name: str,
    revision: str = "main",
    device: str = "auto",
    dtype: str = "float32",
    trust_remote_code: bool = False,
) -> MaskedModel | CausalModel:
    """The model of that name, ready to fill and score.

    ``name`` is a bundled name, a name in ``data/models.csv``, a folder, or a hub id (then ``revision`` counts).
    ``device`` ``auto`` takes a GPU where there is one. ``trust_remote_code`` runs code that comes with a model: off
    unless asked for. Raises LitmusError for whatever cannot give scores that mean something: an unknown name, a model of
    another kind, weights without a trained head, a tokenizer that does not fit.
    """
    source = source_of(name)
    found_device = device_of(device)
    if dtype not in DTYPES:
        raise LitmusError(f"'{dtype}' is no dtype that Litmus loads; choose one of {', '.join(DTYPES)}.")
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    with hushed():
        config = _told(name, lambda: transformers.AutoConfig.from_pretrained(source, **options))
        family, architecture = kind_of(name, config)
        tokenizer = _told(name, lambda: transformers.AutoTokenizer.from_pretrained(source, **options))
        network, report = _told(
            name,
            lambda: architecture.from_pretrained(source, dtype=DTYPES[dtype], output_loading_info=True, **options),
        )
    _check_head(name, report)
    _check_tokenizer(name, family, network, tokenizer)
    return family(name=name, revision=revision, network=network.eval().to(found_device), tokenizer=tokenizer)


def listed() -> pd.DataFrame:
    """``data/models.csv``: the models Litmus knows by name, one row each; ``grid`` says which run by default."""
    return pd.read_csv(DATA / "models.csv", keep_default_na=False)


def source_of(name: str) -> str:
    """Where transformers finds a model: a folder on disk or a hub id."""
    if name in bundled.NAMES:
        return str(bundled.folder(name))
    table = listed().set_index("name")["source"]
    source = table.get(name, name)
    if Path(source).is_dir():
        return source
    if Path(source).exists():
        raise LitmusError(f"{source} is a file, not a model folder; name the folder that holds config.json.")
    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise LitmusError(f"There is no model folder {source}; check the path.")
    return source


def device_of(device: str) -> torch.device:
    """``auto``: a GPU if there is one, else Apple's, else the processor."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise LitmusError(f"The device '{device}' cannot be used here ({first_line(error)}); try 'auto'.") from error
    return torch.device(device)


def kind_of(name: str, config: Any) -> tuple[type[MaskedModel] | type[CausalModel], Any]:
    """The family of a configuration and the transformers class that loads it; anything else is refused in words."""
    architectures = config.architectures or []
    if any(a.endswith(("ForMaskedLM", "ForPreTraining")) for a in architectures):
        return MaskedModel, transformers.AutoModelForMaskedLM
    if any(a.endswith(("ForCausalLM", "LMHeadModel")) for a in architectures):
        return CausalModel, transformers.AutoModelForCausalLM
    shown = " or ".join(architectures) or f"a {config.model_type} without a named architecture"
    raise LitmusError(
        f"{name} is {shown}: neither a masked nor a causal language model with a trained output layer, so it cannot be scored."
    )


def _check_head(name: str, report: dict[str, Any]) -> None:
    missing = sorted(report["missing_keys"]) + [str(key) for key in sorted(report.get("mismatched_keys") or [])]
    if missing:
        raise LitmusError(
            f"{name} lacks {len(missing)} trained weights ({', '.join(missing[:3])}{', ...' if missing[3:] else ''}); "
            "untrained ones would give meaningless scores, so choose a checkpoint that has them."
        )


def _check_tokenizer(name: str, family: type, network: Any, tokenizer: Any) -> None:
    if not tokenizer.is_fast:
        raise LitmusError(f"{name} has a tokenizer without character offsets (a slow one), which scoring needs.")
    rows = network.get_input_embeddings().num_embeddings
    highest = max(tokenizer.get_vocab().values())
    if highest >= rows:
        raise LitmusError(
            f"{name}: its tokenizer knows ids up to {highest} but its weights only {rows} tokens; they do not belong together."
        )
    if family is MaskedModel and tokenizer.mask_token_id is None:
        raise LitmusError(f"{name} is a masked model whose tokenizer has no mask token, so no gap can be marked.")


def _told(name: str, action: Any) -> Any:
    """What ``action`` gives; what transformers raises becomes one sentence."""
    try:
        return action()
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError) as error:
        raise LitmusError(
            f"{name} could not be loaded ({first_line(error)}); check the name, the folder's files, or the network."
        ) from error
    except Exception as error:
        if type(error).__module__.split(".")[0] in (
            "safetensors_rust",
            "tokenizers",
            "safetensors",
            "pickle",
            "_pickle",
        ):
            raise LitmusError(f"{name} could not be loaded ({first_line(error)}); a file of it is damaged.") from error
        raise


def first_line(error: BaseException) -> str:
    """The first line of an error's text, cut to a readable length."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
