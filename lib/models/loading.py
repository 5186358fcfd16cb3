"""From a name to a model: bundled, listed in ``data/models.csv``, on the hub, in a folder, or in a checkpoint file."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from lib import hub, listing
from lib.errors import LitmusError
from lib.models import bundled, checkpoints
from lib.models.causal import CausalModel
from lib.models.hushed import hushed
from lib.models.masked import MaskedModel
from lib.models.recurrent import RecurrentModel, StartState, check_start_state
from lib.paths import check_finite
from lib.say import did_you_mean, first_sentence, is_of_memory, of_memory

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
DAMAGED = "a file of it is damaged, so get it again"


def load(
    name: str | Path,
    revision: str = "main",
    device: str = "auto",
    dtype: str = "float32",
    trust_remote_code: bool = False,
    start_state: StartState = "eos",
    vocabulary: str = "",
) -> MaskedModel | CausalModel | RecurrentModel:
    """The model of that name, ready to fill and score.

    ``name`` is a bundled name, a name in ``data/models.csv``, a folder, the file of a recurrent checkpoint, or a hub id.
    ``revision``: a branch, tag or commit of the hub; of a folder, the folder in it that holds this state of the model (as
    training leaves checkpoints). ``device`` ``auto`` takes a GPU where there is one; ``spread`` divides a large Hugging Face
    model among all that there are. ``trust_remote_code`` runs code that comes with a model: off unless asked for.
    ``start_state`` (see ``RecurrentModel``) and ``vocabulary``, the word list where it is not the ``vocab.txt`` beside the
    weights, are for recurrent models only. Raises LitmusError for whatever cannot give scores that mean something: an
    unknown name, a model of another kind, weights without a trained head, a tokenizer that does not fit.
    """
    name = os.fspath(name)
    listed = listing.read().get(name, {})
    revision = listed.get("revision") or revision if revision == listing.MAIN else revision
    source = source_of(name, revision)
    spread = device == "spread"
    found_device = device_of("auto" if spread else device)
    if dtype not in DTYPES:
        raise LitmusError(f"'{dtype}' is no dtype that Litmus loads; choose one of {', '.join(DTYPES)}.")
    check_start_state(start_state)
    if checkpoint := checkpoints.find(source):
        words = Path(os.path.expanduser(vocabulary)) if vocabulary else checkpoint.file.with_name("vocab.txt")
        return _recurrent(name, revision, checkpoint, words, start_state, found_device, DTYPES[dtype])
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    placing = {"device_map": "auto"} if spread else {}
    meant = name if listed or source != name else name + did_you_mean(name, listing.read())
    shown = meant if source == name else f"{name} ({source})"
    if not Path(source).is_dir() and hub.is_id(source) and (away := hub.unreachable()):
        if not hub.kept(source, revision):
            raise LitmusError(
                f"{shown}{_at(revision)} is not on this machine, and the hub cannot be asked ({away}); check the name, "
                "or get it where there is a network."
            )
        options["local_files_only"] = True
    with hushed():
        config = _told(shown, lambda: transformers.AutoConfig.from_pretrained(source, **options), "config.json")
        family, architecture = kind_of(name, config)
        _check_sizes(name, config, Path(source))
        tokenizer = _told(
            shown, lambda: transformers.AutoTokenizer.from_pretrained(source, **options), "tokenizer files"
        )
        network, report = _told(
            shown,
            lambda: architecture.from_pretrained(
                source,
                dtype=DTYPES[dtype],
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,
                **placing,
            ),
            "config.json or weights",
        )  # mismatched sizes are refused below, in words
    _check_head(name, report)
    _check_tokenizer(name, family, network, tokenizer)
    network = _told(name, lambda: network.eval() if spread else network.eval().to(found_device))
    _check_outlook(name, family, network)
    return family(name=name, revision=revision, network=network, tokenizer=tokenizer)


def _recurrent(
    name: str,
    revision: str,
    checkpoint: checkpoints.Checkpoint,
    word_list: Path,
    start_state: StartState,
    device: torch.device,
    dtype: torch.dtype,
) -> RecurrentModel:
    """A recurrent model of a checkpoint, tried once. Raises LitmusError as ``load`` does."""
    network = checkpoints.read_network(checkpoint)
    vocabulary = checkpoints.read_vocabulary(word_list, network.encoder.num_embeddings)
    network = _told(name, lambda: network.to(device, dtype))
    first = _told(name, lambda: network(torch.zeros(1, 2, dtype=torch.long, device=device))[0])
    if first.isnan().any():
        raise LitmusError(
            f"{name} gives no numbers in {dtype} on {device}; load it as float32, and if it was, get it again."
        )
    return RecurrentModel(name, revision, network, vocabulary, start_state)


def source_of(name: str, revision: str = listing.MAIN) -> str:
    """Where a model is found: a folder on disk, the file of a recurrent checkpoint, or a hub id."""
    if name in bundled.NAMES:
        if revision != listing.MAIN:
            raise LitmusError(
                f"{name} is bundled and has no revision {revision}; leave the revision at {listing.MAIN}."
            )
        return str(bundled.folder(name))
    source = listing.read().get(name, {}).get("source", name)
    path = Path(os.path.expanduser(source))
    check_finite(path)
    try:
        path.exists()
    except OSError as error:  # a name that is too long
        raise LitmusError(f"{source} is no name of a model ({error.strerror}); check it.") from None
    if not source.strip():
        raise LitmusError(
            "A model has a name, and this one is empty; name a model of data/models.csv, a folder, or a hub id."
        )
    if path.exists() and revision != listing.MAIN:
        path = _of_series(path, revision)
        source = str(path)
    if checkpoints.find(source):
        return str(path)
    if path.is_dir() and not (path / "config.json").is_file():
        raise LitmusError(
            f"The folder {source} has no config.json, so it is no model folder, and no weights (.pt, .safetensors) with a "
            "vocab.txt beside them, so it is no recurrent checkpoint; check the path."
        )
    if path.is_dir():
        for file in path.iterdir():
            check_finite(file)
        return str(path)
    if path.exists():
        raise LitmusError(
            f"{source} is a file, not a model folder; name the folder that holds config.json, or a .pt file."
        )
    apart = "name a revision apart from the model, by the parameter revision (--revision of a command)"
    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise LitmusError(f"There is no model folder {source}; {apart if '@' in source else 'check the path'}.")
    if "@" in source:
        raise LitmusError(f"{source} is no hub id; {apart}.")
    return source


def _of_series(path: Path, revision: str) -> Path:
    """The folder of one revision inside that of a model. Raises LitmusError where there is none."""
    if path.is_file():
        raise LitmusError(
            f"{path} is one file and has no revision {revision}; name the file of each state, and leave out the revision."
        )
    if revision in ("", "..") or Path(revision).name != revision:  # none of its own, or of another folder
        raise LitmusError(
            f"The revision '{revision}' is no name of a folder in {path}, which is what a revision of a model on disk is; "
            "name one that is there, or leave out the revision."
        )
    if not (path / revision).is_dir():
        folders = sorted(inner.name for inner in path.iterdir() if inner.is_dir())
        raise LitmusError(
            f"The folder {path} holds no folder {revision}{did_you_mean(revision, folders)}, which is what a revision of a "
            "model on disk is; name one that is there, or leave out the revision."
        )
    return path / revision


def _at(revision: str) -> str:
    return "" if revision == listing.MAIN else f" in the revision {revision}"


def device_of(device: str) -> torch.device:
    """``auto``: a GPU if there is one, else Apple's, else the processor."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise LitmusError(
            f"The device '{device}' cannot be used here ({first_sentence(error)}); try 'auto'."
        ) from error
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


def _check_sizes(name: str, config: Any, folder: Path) -> None:
    """Refuse a configuration that promises far more than a folder's files can hold, before anything is made in its size."""
    if not folder.is_dir():
        return
    text = config.get_text_config()
    width = getattr(text, "hidden_size", 0)
    sizes = [getattr(text, "num_hidden_layers", 0), getattr(text, "vocab_size", 0),
             width, getattr(text, "embedding_size", width)]  # fmt: skip
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        return  # transformers says what is wrong
    layers, words, width, embedding = sizes
    bits = 8 * sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    if layers * width * width + words * embedding > bits / 2:  # no layer has fewer weights; two bits each are very few
        raise LitmusError(
            f"{name}: its config.json promises {layers} layers of {width} and {words} words, far more than its files hold; "
            "get all of them from one place."
        )


def _check_head(name: str, report: dict[str, Any]) -> None:
    missing, mismatched = sorted(report["missing_keys"]), sorted(report["mismatched_keys"])
    if mismatched:
        key, found, expected = mismatched[0]
        raise LitmusError(
            f"{name}: its config.json does not belong to its weights, where {key} has the shape {tuple(found)}, "
            f"not {tuple(expected)}; get both from one place."
        )
    if missing:
        raise LitmusError(
            f"{name} lacks {len(missing)} trained weights ({', '.join(missing[:3])}{', ...' if missing[3:] else ''}); "
            "untrained ones would give meaningless scores, so choose a checkpoint that has them."
        )


def _check_tokenizer(name: str, family: type, network: Any, tokenizer: Any) -> None:
    if not tokenizer.is_fast:
        raise LitmusError(f"{name} has a tokenizer without character offsets (a slow one), which scoring needs.")
    if not isinstance(tokenizer.model_max_length, int | float):
        raise LitmusError(
            f"{name}: the model_max_length of its tokenizer_config.json is {tokenizer.model_max_length!r} and no number; "
            "mend it or take it out."
        )
    rows = network.get_input_embeddings().num_embeddings
    highest = max(tokenizer.get_vocab().values(), default=-1)
    if highest >= rows:
        raise LitmusError(
            f"{name}: its tokenizer knows ids up to {highest} but its weights only {rows} tokens; they do not belong together."
        )
    if 2 * (highest + 1) < rows:  # transformers makes up an empty tokenizer where a folder has none
        raise LitmusError(
            f"{name} has no tokenizer of its own: its weights know {rows} tokens and what was found {highest + 1}; "
            "add its tokenizer files."
        )
    if family is MaskedModel and tokenizer.mask_token_id is None:
        raise LitmusError(f"{name} is a masked model whose tokenizer has no mask token, so no gap can be marked.")


@torch.inference_mode()
def _check_outlook(name: str, family: type, network: Any) -> None:
    """Try it: a causal model must not see what comes later, whatever its configuration says, and numbers must be finite."""
    size = network.get_input_embeddings().num_embeddings
    ids = torch.tensor([[size // 2, size // 3, size // 4], [size // 2, size // 3, size // 5]], device=network.device)
    first = _told(name, lambda: network(input_ids=ids).logits[:, 0].float())
    if first.isnan().any():
        raise LitmusError(
            f"{name} gives no numbers in {network.dtype} on {network.device}; load it as float32, and if it was, get it again."
        )
    if family is CausalModel and not torch.allclose(first[0], first[1], rtol=0.01, atol=0.01):
        raise LitmusError(
            f"{name} calls itself causal but sees what comes after a word, so its scores would mean something else; "
            "choose a checkpoint that was trained to read from left to right."
        )


def _told(name: str, action: Callable[[], Any], reading: str = "") -> Any:
    """What ``action`` gives; whatever transformers and those below it raise becomes one sentence.

    ``reading``: the files that the action reads, named where they hold something that transformers stumbles over.
    """
    try:
        return action()
    except Exception as error:
        why, advice = first_sentence(error), _advice(error)
        if is_of_memory(type(error).__name__, str(error)):
            raise LitmusError(f"{name} could not be loaded: {of_memory(why)}, or one of a smaller dtype.") from error
        if reading and isinstance(error, (LookupError, TypeError, AttributeError)):
            why, advice = f"something is missing or wrong in its {reading}: {why}", DAMAGED
        raise LitmusError(f"{name} could not be loaded ({why}); {advice}.") from error


def _advice(error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return "it brings code of its own, which runs only if you trust it and say trust_remote_code=True"
    if isinstance(error, pickle.UnpicklingError):
        return "its weights are a pickle that may run code, so look for a version with safetensors"
    made_of_bytes = type(error).__module__.startswith("safetensors") or type(error) is Exception  # as tokenizers raises
    if made_of_bytes or isinstance(error, json.JSONDecodeError):
        return DAMAGED
    return "check the name, the folder's files, or the network"
