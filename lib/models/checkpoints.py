"""Checkpoints of recurrent models, which are untrusted input: weights are read, and nothing in a file is ever run.

Three kinds: safetensors, a state dict saved by torch, and a whole pickled ``RNNModel`` of the word-language-model example of
PyTorch, as Gulordava et al. (2018) published theirs. A pickle names the functions and classes it wants; ``TENSORS`` and
``MODULES`` list all that are let in. The first make tensors; for the others an object stands in that only holds values.
torch's own restricted reader (``weights_only``) does the rest, and the module is built anew from the weights it found.
"""

import io
import json
import os
import pickletools
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch

from lib.errors import LitmusError
from lib.models.recurrent import ASCII_SPACE, RecurrentNetwork
from lib.paths import check_finite

KINDS = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
TENSORS = {
    "collections.OrderedDict", "builtins.set", "__builtin__.set", "torch.Size", "torch.device", "torch.Tensor",
    "torch.nn.parameter.Parameter", "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter", "torch.float32", "torch.float64", "torch.float16", "torch.bfloat16",
    *(f"{module}.{kind}Storage" for module in ("torch", "torch.cuda", "torch.storage") for kind in KINDS),
}  # fmt: skip
MODULES = {
    "torch.nn.modules.dropout.Dropout", "torch.nn.modules.sparse.Embedding", "torch.nn.modules.linear.Linear",
    "torch.nn.modules.rnn.LSTM", "torch.nn.modules.rnn.GRU", "torch.nn.modules.rnn.RNN",
    "torch.nn.parallel.data_parallel.DataParallel",
    "torch.nn.backends.thnn._get_thnn_function_backend",  # named by files of torch 1.1 and older
}  # fmt: skip
RNN_MODEL = re.compile(r"(\w+\.)*(model|__main__)\.RNNModel")  # wherever its model.py lay
STATE_KEYS = ("state_dict", "model_state_dict", "model")  # under which training scripts keep a state dict
GATES = {4: "LSTM", 3: "GRU", 1: "RNN"}  # rows of a recurrent matrix for each of its columns
CLASS_OF = "litmus.class_of"
SUFFIXES = (".safetensors", ".pt", ".pth")


class Checkpoint(NamedTuple):
    """A file of weights, and the settings (``config.json``) beside it, empty where there are none."""

    file: Path
    settings: dict[str, Any]


class StandIn:
    """Takes the place of a class or function that a pickle names: it can be called, holds values, and does nothing."""

    def __init__(self, *_: Any):
        pass


def class_of(_kind: str, found: Any, *_source: Any) -> Any:
    """The class in what old torch wrote for one: ("module", class, file, source code)."""
    return found


def find(source: str) -> Checkpoint | None:
    """The recurrent checkpoint at a path, or None if there is none.

    ``source``: a file of weights, or a folder that holds one beside a ``vocab.txt``. A folder whose ``config.json`` is another
    library's is none. Raises LitmusError where a folder has more than one file of weights.
    """
    path = Path(os.path.expanduser(source))
    check_finite(path)
    if path.is_file() and path.suffix in SUFFIXES:
        return Checkpoint(path, settings_of(path.parent))
    if not path.is_dir() or not (path / "vocab.txt").is_file():
        return None
    settings = settings_of(path)
    if (path / "config.json").is_file() and "cell" not in settings:
        return None
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    for file in files:
        check_finite(file)
    if len(files) > 1:
        raise LitmusError(
            f"The folder {source} has {len(files)} files of weights ({files[0].name}, {files[1].name}); name one."
        )
    return Checkpoint(files[0], settings) if files else None


def settings_of(folder: Path) -> dict[str, Any]:
    """``config.json`` of a folder; nothing where there is none. Raises LitmusError where it cannot be read."""
    file = folder / "config.json"
    check_finite(file)
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LitmusError(f"{file} is not valid JSON ({error}); mend it or get it again.") from None
    return found if isinstance(found, dict) else {}


def read_network(checkpoint: Checkpoint) -> RecurrentNetwork:
    """The network of a checkpoint, in float32 on the processor, ready to be asked.

    Sizes and the kind of cell follow from the shapes of the weights: a recurrent matrix has four rows for each of its columns
    in an LSTM, three in a GRU and one in a plain RNN. tanh and relu leave no trace in weights: a pickled module says which,
    or else ``cell`` in the settings must. Raises LitmusError for a file that is damaged, wants more than weights, or holds
    another kind of model.
    """
    file, settings = checkpoint
    try:
        weights, said = (
            (_read_safetensors(file), "") if file.suffix == ".safetensors" else _weights_of(_read_torch(file), file)
        )
    except RecursionError:
        raise LitmusError(
            f"{file} holds something that is nested in itself, which no model is; get it again."
        ) from None
    weights = _at_top(weights, file)
    cell = _cell(weights, said or str(settings.get("cell", "")), file)
    return _built(weights, cell, settings.get("tied") is True, file)


def read_vocabulary(file: Path, words: int) -> tuple[str, ...]:
    """The words of a ``vocab.txt`` in the order of the decoder's rows, of which there are ``words``.

    ASCII white space separates them, so that a word may hold a no-break space. The published code splits at any white space;
    where only that gives the right number of words, it is what the model was trained with. Raises LitmusError where neither
    does: every later word would be another one's.
    """
    check_finite(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise LitmusError(f"There is no word list {file}; put the model's vocab.txt there, or name it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LitmusError(f"The word list {file} cannot be read ({error}); it is a text file in UTF-8.") from None
    found = [word for word in ASCII_SPACE.split(text) if word]
    for vocabulary in (found, text.split()):
        if len(vocabulary) == words:
            if len(set(vocabulary)) < words:
                twice = next(word for at, word in enumerate(vocabulary) if word in vocabulary[:at])
                raise LitmusError(
                    f"{file} lists '{twice}' more than once, so it is not clear which row of weights it names."
                )
            return tuple(vocabulary)
    raise LitmusError(
        f"{file} has {len(found)} words and the model {words}, so they do not belong together; get both from one place."
    )


def _read_safetensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise LitmusError(f"{file} cannot be read as safetensors ({_first_line(error)}); get it again.") from None


def _read_torch(file: Path) -> Any:
    """What torch saved in a file, with ``StandIn`` objects for modules. Raises LitmusError for what may not be let in."""
    try:
        with file.open("rb") as opened:
            names, content = _names_and_content(opened)
            if refused := [name for name in names if not _let_in(name)]:
                raise LitmusError(
                    f"{file} wants {refused[0]}, which no recurrent model needs and could run code, so it is not opened; "
                    "get the weights from a source you trust, as a state dict or safetensors."
                )
            stand_ins = [(StandIn, name) for name in names if name not in TENSORS]
            with torch.serialization.safe_globals([*stand_ins, (class_of, CLASS_OF)]):  # type: ignore[list-item]
                return torch.load(content, map_location="cpu", weights_only=True)
    except LitmusError:
        raise
    except Exception as error:  # a damaged file makes readers raise almost anything
        raise LitmusError(
            f"{file} cannot be read as a torch checkpoint ({_first_line(error)}); get it again."
        ) from None


def _let_in(name: str) -> bool:
    return name in TENSORS or name in MODULES or bool(RNN_MODEL.fullmatch(name))


def _names_and_content(opened: BinaryIO) -> tuple[list[str], BinaryIO | io.BytesIO]:
    """What the pickles in a file name, in order, and the file, or its content as ``weights_only`` can read it."""
    if opened.read(4) == b"PK\x03\x04":  # as torch tells a zip archive
        opened.seek(0)
        with zipfile.ZipFile(opened) as archive:
            pickles = [archive.read(name) for name in archive.namelist() if name.endswith(".pkl")]
        opened.seek(0)
        return [name for content in pickles for name in _names(content)], opened
    opened.seek(
        0
    )  # before torch 1.6: four pickles, of which the last is the object, then one of keys, then raw numbers
    starts = []
    for _ in range(5):
        starts.append(opened.tell())
        for _ in pickletools.genops(opened):
            pass
    ends = [*starts[1:], opened.tell()]
    opened.seek(0)
    pickles = [opened.read(end - start) for start, end in zip(starts, ends, strict=True)]
    names = [name for content in pickles for name in _names(content)]
    rewritten = _without_sources(pickles[3])
    if rewritten == pickles[3]:
        opened.seek(0)
        return names, opened
    return names, io.BytesIO(b"".join([*pickles[:3], rewritten, pickles[4], opened.read()]))


def _names(content: bytes) -> Iterator[str]:
    """The functions and classes that a pickle names."""
    for operation, argument, _ in pickletools.genops(content):
        if operation.name in ("GLOBAL", "INST"):
            yield str(argument).replace(" ", ".")
        elif operation.name == "STACK_GLOBAL" or operation.name.startswith("EXT"):
            yield "something under a hidden name"


def _without_sources(content: bytes) -> bytes:
    """An old pickle with each ("module", class, file, source code) behind a call of ``class_of`` in place of a special id.

    Until 1.6, and in that format later on, torch wrote a module's class so, which ``weights_only`` refuses.
    """
    call = f"c{CLASS_OF.replace('.', chr(10))}\n".encode()
    pieces: list[bytes] = []
    marks: list[tuple[int, bool]] = []  # where each open tuple starts, and whether its first entry is "module"
    kept: set[Any] = set()  # under which numbers the pickle keeps the text "module" for later
    done, closed, before = 0, (0, False), ("", None)
    for operation, argument, at in pickletools.genops(content):
        name, place = operation.name, at or 0
        is_module = argument in kept if name.endswith("BINGET") else argument == "module"
        if name.endswith("BINPUT") and before[1] == "module":
            kept.add(argument)
        if before[0] == "MARK":
            marks[-1] = (marks[-1][0], is_module)
        if name == "MARK":
            marks.append((place, False))
        elif name in ("TUPLE", "APPENDS", "SETITEMS"):
            closed = marks.pop()
        elif name == "BINPERSID" and closed[1]:
            pieces += [content[done : closed[0]], call, content[closed[0] : place], b"R"]
            done = place + 1
        before = (name, argument)
    return b"".join([*pieces, content[done:]])


def _weights_of(found: Any, file: Path) -> tuple[dict[str, torch.Tensor], str]:
    """The tensors by their names, and the kind of cell where a pickled module says it."""
    if isinstance(found, StandIn):
        weights = dict(_tensors(found))
        return weights, next(_cells(found), "")
    for key in STATE_KEYS:
        if isinstance(found, dict) and isinstance(found.get(key), dict | StandIn):
            return _weights_of(found[key], file)
    tensors = isinstance(found, dict) and all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in found.items()
    )
    if not tensors:
        raise LitmusError(f"{file} holds neither a model nor a state dict of one; choose the checkpoint's file.")
    return dict(found), ""


def _parts(module: StandIn, kind: str) -> dict[str, Any]:
    found = vars(module).get(kind)
    return found if isinstance(found, dict) else {}


def _tensors(module: StandIn, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in _parts(module, "_parameters").items():
        if isinstance(tensor, torch.Tensor):
            yield f"{prefix}{name}", tensor
    for name, part in _parts(module, "_modules").items():
        if isinstance(part, StandIn):
            yield from _tensors(part, f"{prefix}{name}.")


def _cells(module: StandIn) -> Iterator[str]:
    """What a pickled recurrent module calls its cell: LSTM, GRU, RNN_TANH or RNN_RELU, since the first torch."""
    if isinstance(mode := vars(module).get("mode"), str):
        yield mode
    for part in _parts(module, "_modules").values():
        if isinstance(part, StandIn):
            yield from _cells(part)


def _at_top(weights: dict[str, torch.Tensor], file: Path) -> dict[str, torch.Tensor]:
    """The weights without what a wrapper (``module.``) put before their names. Raises LitmusError for other layouts."""
    prefixes = [name.removesuffix("encoder.weight") for name in weights if name.endswith("encoder.weight")]
    if len(prefixes) != 1 or f"{prefixes[0]}rnn.weight_hh_l0" not in weights:
        raise LitmusError(
            f"{file} holds no recurrent model in the published layout (encoder.weight, rnn.weight_ih_l0, ..., decoder.weight); "
            f"its first weights are {', '.join(list(weights)[:3]) or 'none at all'}."
        )
    return {name.removeprefix(prefixes[0]): tensor.detach() for name, tensor in weights.items()}


def _cell(weights: Mapping[str, torch.Tensor], said: str, file: Path) -> str:
    """The kind of cell: what the shapes say, and between tanh and relu what else is said."""
    matrix = weights["rnn.weight_hh_l0"]
    rows, columns = matrix.shape if matrix.ndim == 2 and matrix.numel() else (0, 1)
    kind = GATES.get(rows // columns, "") if rows % columns == 0 else ""
    if not kind:
        raise LitmusError(
            f"{file}: rnn.weight_hh_l0 has the shape {tuple(matrix.shape)}, which no LSTM, GRU or plain RNN has."
        )
    if kind == "RNN" and said not in ("RNN_TANH", "RNN_RELU"):
        raise LitmusError(
            f"{file} holds a plain RNN, and its weights do not tell tanh from relu; "
            f'say which in {file.parent / "config.json"}: {{"cell": "RNN_TANH"}} or {{"cell": "RNN_RELU"}}.'
        )
    if said and not said.startswith(kind):
        raise LitmusError(
            f"{file} is said to hold a cell of the kind {said}, but its weights are of the kind {kind}; mend the one."
        )
    return said if kind == "RNN" else kind


def _built(weights: dict[str, torch.Tensor], cell: str, said_tied: bool, file: Path) -> RecurrentNetwork:
    """A network with these weights. Biases that are not there are zero; where it is said, the decoder is the encoder."""
    if weights["encoder.weight"].ndim != 2:
        raise LitmusError(f"{file}: encoder.weight is not a matrix with one row a word; get the file again.")
    words, embedding_size = weights["encoder.weight"].shape
    hidden_size = weights["rnn.weight_hh_l0"].shape[1]
    layers = sum(name.startswith("rnn.weight_hh_l") and name[15:].isdigit() for name in weights)
    if "decoder.weight" not in weights and not said_tied:
        raise LitmusError(
            f"{file} has no decoder.weight; get it again, or if its decoder is its encoder, say so in "
            f'{file.parent / "config.json"}: {{"cell": "{cell}", "tied": true}}.'
        )
    tied = "decoder.weight" not in weights or _equal(weights["decoder.weight"], weights["encoder.weight"])
    if tied and embedding_size != hidden_size:
        raise LitmusError(
            f"{file} has no decoder.weight, and its encoder does not have the size of a decoder; get it again."
        )
    with torch.device("meta"):
        network = RecurrentNetwork(cell, words, embedding_size, hidden_size, layers, tied)  # type: ignore[arg-type]
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    if tied:
        weights = weights | {"decoder.weight": weights["encoder.weight"]}
    weights = {n: torch.zeros(shape) for n, shape in expected.items() if "bias" in n} | weights
    if other := sorted(weights.keys() - expected.keys()):
        raise LitmusError(
            f"{file} has weights that are no part of a recurrent model read from left to right ({', '.join(other[:3])}), "
            "so its scores would mean something else; choose another checkpoint."
        )
    if wrong := [name for name, shape in expected.items() if name not in weights or weights[name].shape != shape]:
        found = f"the shape {tuple(weights[wrong[0]].shape)}" if wrong[0] in weights else "no value"
        raise LitmusError(
            f"{file}: {wrong[0]} has {found}, not the shape {tuple(expected[wrong[0]])}; get the file again."
        )
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    if tied:
        network.decoder.weight = network.encoder.weight
    return network.eval().requires_grad_(False)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and (a.data_ptr() == b.data_ptr() or torch.equal(a, b))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0][:200].rstrip(" .:")
