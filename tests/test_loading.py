"""From a name to a model: whatever cannot give scores that mean something is refused in one sentence, and nothing runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import tiny
import torch
import transformers
from safetensors.torch import load_file, save_file

from lib import hub, listing
from lib.errors import LitmusError
from lib.models import bundled, load
from lib.models.causal import CausalModel
from lib.models.masked import MaskedModel
from lib.paths import ROOT


def refused(name, **options) -> str:
    """The one sentence that loading ends in."""
    with pytest.raises(LitmusError) as caught:
        load(str(name), **options)
    sentence = str(caught.value)
    assert "\n" not in sentence and "\x1b" not in sentence
    assert sentence.endswith(".") and ". " not in sentence.replace(str(name), "")
    assert len(sentence.replace(str(name), "")) < 420
    return sentence


def copy_of(name: str, target: Path) -> Path:
    return Path(shutil.copytree(tiny.folder(name), target / f"my-{name}"))


def configured(folder: Path, **changes: object) -> Path:
    """The folder with other values in its config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return folder


def reweighted(folder: Path, change) -> Path:
    """The folder with its tensors passed through ``change``."""
    weights = change(load_file(folder / "model.safetensors"))
    save_file(
        {key: value.contiguous() for key, value in weights.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    return folder


def small(kind: str, **options: object):
    config = getattr(transformers, f"{kind}Config")
    return config(**{"vocab_size": 163} | options)


# --- a model of another kind ----------------------------------------------------------------------------------------


def test_an_encoder_without_a_head_is_refused(tmp_path):
    encoder = transformers.DistilBertModel(small("DistilBert", dim=16, n_heads=2, n_layers=1, hidden_dim=16))
    folder = tiny.save(tmp_path / "encoder", encoder, tiny.bert_tokenizer(lower_case=False))
    assert "is DistilBertModel: neither a masked nor a causal language model" in refused(folder)


def test_an_encoder_that_claims_to_be_a_masked_model_is_refused(tmp_path):
    encoder = transformers.DistilBertModel(small("DistilBert", dim=16, n_heads=2, n_layers=1, hidden_dim=16))
    folder = tiny.save(tmp_path / "encoder", encoder, tiny.bert_tokenizer(lower_case=False))
    sentence = refused(configured(folder, architectures=["DistilBertForMaskedLM"]))
    assert re.search(r"lacks \d trained weights \(.*vocab_", sentence)


def test_a_masked_model_that_lost_part_of_its_head_is_refused(tmp_path):
    def without_transform(weights):
        return {key: value for key, value in weights.items() if "predictions.transform.dense.weight" not in key}

    sentence = refused(reweighted(copy_of("bert-cased", tmp_path), without_transform))
    assert "lacks 1 trained weights (cls.predictions.transform.dense.weight)" in sentence


def test_a_classifier_is_refused(tmp_path):
    classifier = transformers.BertForSequenceClassification(tiny.model("bert-cased").network.config)
    folder = tiny.save(tmp_path / "classifier", classifier, tiny.bert_tokenizer(lower_case=False))
    assert "BertForSequenceClassification" in refused(folder)


def test_a_translation_model_is_refused(tmp_path):
    t5 = transformers.T5ForConditionalGeneration(small("T5", d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
    assert "T5ForConditionalGeneration" in refused(
        tiny.save(tmp_path / "t5", t5, tiny.bert_tokenizer(lower_case=False))
    )


def test_a_configuration_that_names_no_architecture_is_refused(tmp_path):
    folder = configured(copy_of("bert-cased", tmp_path), architectures=None)
    assert "is a bert without a named architecture" in refused(folder)


def test_a_masked_model_under_a_causal_name_is_refused(tmp_path):
    folder = configured(copy_of("bert-cased", tmp_path), architectures=["BertLMHeadModel"])
    assert "calls itself causal but sees what comes after a word" in refused(folder)


def test_a_permutation_model_is_refused(tmp_path):
    """XLNet has a causal class and, asked plainly, looks at both sides."""
    config = small("XLNet", d_model=16, n_layer=1, n_head=2, d_inner=16, initializer_range=0.5)
    folder = tiny.save(tmp_path / "xlnet", transformers.XLNetLMHeadModel(config), tiny.bert_tokenizer(lower_case=False))
    assert "sees what comes after a word" in refused(folder)


def test_case_93_the_configuration_decides_the_family():
    assert all(type(tiny.model(name)) is MaskedModel for name in tiny.MASKED)
    assert all(type(tiny.model(name)) is CausalModel for name in tiny.CAUSAL)


# --- files that do not belong together, or are damaged ---------------------------------------------------------------


def test_a_tokenizer_with_more_ids_than_the_weights_is_refused(tmp_path):
    bert = transformers.BertForMaskedLM(small("Bert", vocab_size=110, **tiny.SMALL))
    tokenizer = transformers.BertTokenizer(vocab=tiny.bert_tokenizer(False).get_vocab() | {"extra": 500})
    folder = tiny.save(tmp_path / "both", bert, tokenizer)
    assert "ids up to" in refused(folder) and "only 110 tokens; they do not belong together" in refused(folder)


@pytest.mark.parametrize("name", ["bert-cased", "gpt2"])
def test_a_folder_without_a_tokenizer_is_refused(name, tmp_path):
    """transformers makes up an empty one."""
    folder = copy_of(name, tmp_path)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    assert "has no tokenizer of its own" in refused(folder)


def test_a_masked_model_without_a_mask_token_is_refused(tmp_path):
    tokenizer = tiny.model("gpt2").tokenizer
    bert = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=len(tokenizer), **tiny.SMALL))
    assert "has no mask token" in refused(tiny.save(tmp_path / "maskless", bert, tokenizer))


def test_case_24_a_tokenizer_without_offsets_is_refused(tmp_path):
    folder = tmp_path / "bytes"
    config = transformers.GPT2Config(vocab_size=400, n_positions=24, n_embd=8, n_layer=1, n_head=1)
    tiny.save(folder, transformers.GPT2LMHeadModel(config), transformers.ByT5Tokenizer())
    assert "has a tokenizer without character offsets" in refused(folder)


def test_weights_of_another_size_than_the_configuration_are_refused(tmp_path):
    sentence = refused(configured(copy_of("gpt2", tmp_path), vocab_size=500))
    assert "config.json does not belong to its weights" in sentence and "not (500, 24)" in sentence


@pytest.mark.parametrize("content", [b"", b"garbage" * 50, None])
def test_damaged_weights_are_refused(content, tmp_path):
    file = copy_of("gpt2", tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100] if content is None else content)
    assert "a file of it is damaged" in refused(file.parent)


def test_missing_weights_are_refused(tmp_path):
    folder = copy_of("gpt2", tmp_path)
    (folder / "model.safetensors").unlink()
    assert "no file named model.safetensors" in refused(folder)


@pytest.mark.parametrize("content", ["", '{"architectures": ["Gpt', "[1, 2]", "{}"])
def test_a_damaged_configuration_is_refused(content, tmp_path):
    folder = copy_of("gpt2", tmp_path)
    (folder / "config.json").write_text(content)
    assert "could not be loaded" in refused(folder)


def test_a_damaged_tokenizer_is_refused(tmp_path):
    file = copy_of("gpt2", tmp_path) / "tokenizer.json"
    file.write_text(file.read_text()[:200])
    assert "a file of it is damaged" in refused(file.parent)


@pytest.mark.parametrize(("file", "content"), [("tokenizer.json", "{}"), ("tokenizer_config.json", "[]")])
def test_a_file_of_another_form_is_named(file, content, tmp_path):
    """transformers gives no more than the key it did not find."""
    folder = copy_of("gpt2", tmp_path)
    (folder / file).write_text(content)
    sentence = refused(folder)
    assert "(something is missing or wrong in its tokenizer files: " in sentence
    assert "a file of it is damaged, so get it again" in sentence


def test_a_setting_that_transformers_does_not_know_is_refused(tmp_path):
    sentence = refused(configured(copy_of("gpt2", tmp_path), activation_function="banana"))
    assert "missing or wrong in its config.json or weights: " in sentence and "banana" in sentence


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    def broken(weights):
        return weights | {"transformer.wte.weight": weights["transformer.wte.weight"] * float("nan")}

    assert "gives no numbers in torch.float32" in refused(reweighted(copy_of("gpt2", tmp_path), broken))


def test_a_model_type_that_transformers_does_not_know_is_refused(tmp_path):
    assert "nonsense" in refused(configured(copy_of("gpt2", tmp_path), model_type="nonsense"))


# --- names that lead nowhere ----------------------------------------------------------------------------------------


def test_paths_that_lead_nowhere_are_refused(tmp_path):
    assert "There is no model folder" in refused(tmp_path / "nothing")
    assert "There is no model folder ./nothing" in refused("./nothing")
    assert "There is no model folder" in refused("~/no-such-folder-of-mine")
    assert "has no config.json" in refused(tmp_path)
    assert "is a file, not a model folder" in refused(tiny.folder("gpt2") / "config.json")


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_refused(name):
    with pytest.raises(LitmusError, match="this one is empty"):
        load(name)


def test_a_name_that_no_hub_could_have_is_refused():
    assert "my model could not be loaded" in refused("my model")


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    copy_of("gpt2", tmp_path)
    assert load("~/my-gpt2").family == "causal"


def offline(code: str, home: Path) -> str:
    """What a Python process without network and with its own hub cache prints."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hub_ids_without_a_network_come_from_the_cache_or_are_refused(tmp_path):
    """Two revisions in a cache laid out as the hub's own library does it; a third that nobody has; a stranger."""
    repository = tmp_path / "hub" / "models--lab--tiny"
    for commit, name in (("a" * 40, "gpt2"), ("b" * 40, "gpt2-without-start")):
        shutil.copytree(tiny.folder(name), repository / "snapshots" / commit)
    for reference, commit in (("main", "a" * 40), ("step-100", "b" * 40)):
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / reference).write_text(commit)
    printed = offline(
        "from lib.errors import LitmusError\n"
        "from lib.models import load\n"
        "for name, revision in [('lab/tiny', 'main'), ('lab/tiny', 'step-100'), ('lab/tiny', 'step-9'), ('no/body', 'main'),"
        " ('bert-base-cased', 'main')]:\n"
        "    try:\n"
        "        print(load(name, revision).identity['weights'])\n"
        "    except LitmusError as error:\n"
        "        print(repr(str(error)))\n",
        tmp_path,
    ).splitlines()
    assert printed[:2] == [tiny.model(name).identity["weights"] for name in ("gpt2", "gpt2-without-start")]
    for name, sentence in zip(("lab/tiny", "no/body", "bert-base-cased"), printed[2:], strict=True):
        assert (
            sentence[1:].startswith(f"{name} ") and " is not on this machine, and the hub cannot be asked (" in sentence
        )
        assert "HF_HUB_OFFLINE" in sentence and "\\n" not in sentence


# --- untrusted input ------------------------------------------------------------------------------------------------


def test_code_that_comes_with_a_model_does_not_run_unless_asked_for(tmp_path):
    marker = tmp_path / "it-ran"
    folder = configured(
        copy_of("gpt2", tmp_path), model_type="mine", architectures=["MineForCausalLM"],
        auto_map={"AutoConfig": "mine.MineConfig", "AutoModelForCausalLM": "mine.MineForCausalLM"},
    )  # fmt: skip
    (folder / "mine.py").write_text(f"open({str(marker)!r}, 'w')\n")
    assert "say trust_remote_code=True" in refused(folder)
    assert not marker.exists()


def test_code_beside_a_known_architecture_does_not_run(tmp_path):
    marker = tmp_path / "it-ran"
    folder = configured(copy_of("gpt2", tmp_path), auto_map={"AutoModelForCausalLM": "mine.Mine"})
    (folder / "mine.py").write_text(f"open({str(marker)!r}, 'w')\n")
    assert load(str(folder)).identity["weights"] == tiny.model("gpt2").identity["weights"]
    assert not marker.exists()


class Hostile:
    """What it would unpickle to opens a file."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def test_a_hostile_pickle_is_refused_and_nothing_runs(tmp_path):
    folder, marker = copy_of("gpt2", tmp_path), tmp_path / "it-ran"
    (folder / "model.safetensors").unlink()
    torch.save({"transformer.wte.weight": Hostile(marker)}, folder / "pytorch_model.bin")
    assert "its weights are a pickle that may run code" in refused(folder)
    assert not marker.exists()


# --- dtype and device -----------------------------------------------------------------------------------------------


def test_unknown_dtypes_and_devices_are_refused():
    folder = tiny.folder("gpt2")
    assert "'int8' is no dtype that Litmus loads" in refused(folder, dtype="int8")
    for device in ["banana", "meta", *([] if torch.cuda.is_available() else ["cuda"])]:
        assert f"The device '{device}' cannot be used here" in refused(folder, device=device)


def test_float32_unless_named():
    """The folder of the Llama holds bfloat16."""
    assert tiny.model("llama").network.dtype == torch.float32
    for name in ("float16", "bfloat16"):
        model = load(str(tiny.folder("llama")), dtype=name)
        assert model.identity["dtype"] == name
        [batch] = model.fill([tiny.Gap("The keys to the cabinet", "")])
        assert batch.log_probabilities.dtype == torch.float32
        assert batch.log_probabilities.exp().sum().item() == pytest.approx(1, abs=1e-5)


# --- checkpoints as the hub keeps them ------------------------------------------------------------------------------


def test_an_old_bert_checkpoint(tmp_path):
    """bert-base-cased: LayerNorm called gamma and beta, no bias and no weights of the decoder, a head for next sentences."""
    norm = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def aged(weights):
        kept = {key: value for key, value in weights.items() if "decoder" not in key}
        for new, old in norm.items():
            kept = {key.replace(new, old): value for key, value in kept.items()}
        return kept | {
            "cls.seq_relationship.weight": torch.zeros(2, 24),
            "bert.pooler.dense.weight": torch.zeros(24, 24),
        }

    folder = reweighted(copy_of("bert-cased", tmp_path), aged)
    assert load(str(folder)).identity["weights"] == tiny.model("bert-cased").identity["weights"]


def test_an_old_gpt2_checkpoint(tmp_path):
    """gpt2: names without their prefix, the causal mask among the weights."""

    def aged(weights):
        return {key.removeprefix("transformer."): value for key, value in weights.items()} | {
            "h.0.attn.bias": torch.ones(1)
        }

    folder = reweighted(copy_of("gpt2", tmp_path), aged)
    assert load(str(folder)).identity["weights"] == tiny.model("gpt2").identity["weights"]


# --- data/models.csv ------------------------------------------------------------------------------------------------


def test_the_list_of_models():
    table = pd.read_csv(listing.FILE, keep_default_na=False)
    assert list(listing.read()) == list(table["name"])
    assert list(table.columns) == [
        "name", "source", "family", "revision", "grid", "parameters_millions", "disk_megabytes", "memory_megabytes",
        "licence", "note",
    ]  # fmt: skip
    assert table["name"].is_unique
    assert set(table["grid"]) == {"yes", "no"}
    assert set(table["family"]) <= {"masked", "causal", "recurrent"}
    assert (table[["parameters_millions", "disk_megabytes", "memory_megabytes"]] > 0).all(axis=None)
    assert (table[["licence", "revision"]] != "").all(axis=None)
    assert set(table.loc[table["source"] == "bundled", "name"]) == set(bundled.NAMES)
    paper = ["bert-base-cased", "bert-base-uncased", "bert-large-cased", "bert-large-uncased", "roberta-base",
             "roberta-large", "gpt2", "gpt2-xl"]  # fmt: skip
    of_paper = table.set_index("name").loc[paper]
    assert (of_paper["grid"] == "no").all()
    assert of_paper["source"].str.fullmatch(r"[\w-]+/[\w-]+").all()


HEAD = ",".join(listing.COLUMNS)


def test_a_list_of_models_that_is_none_is_one_sentence(tmp_path, monkeypatch):
    """All that can be wrong with it: tests/test_grid.py."""
    monkeypatch.setattr(listing, "FILE", tmp_path / "models.csv")
    assert refused("anything") == f"{tmp_path / 'models.csv'} is missing; it lists the models by name."
    (tmp_path / "models.csv").write_text(f"{HEAD}\na,b\n")
    assert f"{tmp_path / 'models.csv'}, line 2: this row has not 10 fields" in refused("anything")


def test_a_list_of_models_that_a_spreadsheet_saved(tmp_path, monkeypatch):
    """With a byte-order mark before the first column's name."""
    monkeypatch.setattr(listing, "FILE", tmp_path / "models.csv")
    content = f"{HEAD}\nmine,{tiny.folder('gpt2')},causal,main,no,1,1,1,MIT,\n"
    (tmp_path / "models.csv").write_text(content, encoding="utf-8-sig")
    assert load("mine").identity["weights"] == tiny.model("gpt2").identity["weights"]


# --- revisions, and the hub -----------------------------------------------------------------------------------------


@pytest.fixture
def no_hub(monkeypatch):
    """A hub that cannot be asked, and that nobody may ask again."""
    monkeypatch.setattr(hub, "unreachable", lambda: "huggingface.co does not answer: no such host")
    for auto in (transformers.AutoConfig, transformers.AutoTokenizer):
        monkeypatch.setattr(auto, "from_pretrained", lambda *_, **options: pytest.fail("asked after all"))


def test_a_model_of_the_hub_without_network_fails_at_once(no_hub):
    assert refused("gpt-2") == (
        "gpt-2 (did you mean gpt2?) is not on this machine, and the hub cannot be asked (huggingface.co does not answer: "
        "no such host); check the name, or get it where there is a network."
    )
    assert refused("gpt2-xl").startswith("gpt2-xl (openai-community/gpt2-xl) is not on this machine")
    assert refused("org/series", revision="step1000").startswith("org/series in the revision step1000 is not on this")


def test_a_model_that_the_hub_left_here_is_used_without_network(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "unreachable", lambda: "no network")
    monkeypatch.setattr(hub, "kept", lambda source, revision: (source, revision) == ("org/tiny", "step10"))
    asked, from_pretrained = [], transformers.AutoConfig.from_pretrained

    def here(source, **options):
        asked.append((source, options["revision"], options["local_files_only"]))
        return from_pretrained(tiny.folder("gpt2"))

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", here)
    refused("org/tiny", revision="step10")  # only its configuration is there
    assert set(asked) == {("org/tiny", "step10", True)}


def test_the_hub_is_asked_once_and_told_in_words(monkeypatch):
    calls = []

    def head(*_, timeout):
        calls.append(timeout)
        raise OSError("[Errno -2] Name or service not known.\nand more")

    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: type("Session", (), {"head": head})())
    hub.unreachable.cache_clear()
    try:
        said = [hub.unreachable(), hub.unreachable()]
    finally:
        hub.unreachable.cache_clear()
    assert calls == [hub.SECONDS]
    assert set(said) == {"huggingface.co does not answer: [Errno -2] Name or service not known. and more"}
    assert hub.is_id("org/nowhere") and not hub.kept("org/nowhere") and not hub.is_id("my model")


def test_the_revision_of_a_model_on_disk_is_a_folder_in_its_folder(tmp_path):
    for name, maker in (("step10", tiny.gpt2), ("step20", tiny.gpt2_without_start)):
        maker(tmp_path / "series" / name)
    series = str(tmp_path / "series")
    found = [load(series, revision=revision) for revision in ("step10", "step20")]
    assert [(model.name, model.revision) for model in found] == [(series, "step10"), (series, "step20")]
    assert found[0].identity["weights"] == tiny.model("gpt2").identity["weights"] != found[1].identity["weights"]
    assert "holds no folder step11 (did you mean step10?)" in refused(series, revision="step11")
    assert "is bundled and has no revision step1" in refused("distilbert-mlm", revision="step1")
    for elsewhere in ("../series", "..", ".", "", "/tmp", "step10/../step20"):
        assert f"The revision '{elsewhere}' is no name of a folder in" in refused(series, revision=elsewhere)
    assert "by the parameter revision (--revision of a command)" in refused(f"{series}@step10")


def test_a_checkpoint_file_has_no_revision(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"")
    assert refused(tmp_path / "model.pt", revision="step10").endswith(
        "model.pt is one file and has no revision step10; name the file of each state, and leave out the revision."
    )


def test_a_revision_in_the_name_is_told_apart():
    assert "is no hub id; name a revision apart from the model" in refused("org/series@step10")


def test_a_revision_of_the_list_is_the_one_that_is_loaded(tmp_path, monkeypatch):
    tiny.gpt2_without_start(tmp_path / "series" / "step20")
    monkeypatch.setattr(listing, "FILE", tmp_path / "models.csv")
    (tmp_path / "models.csv").write_text(f"{HEAD}\nmine,{tmp_path / 'series'},causal,step20,no,1,1,1,MIT,\n")
    assert load("mine").revision == "step20"


def test_a_start_state_is_checked_whatever_the_family():
    assert "'warm' is no start state; choose one of eos, zero, carry" in refused(
        tiny.folder("gpt2"), start_state="warm"
    )


def test_a_file_that_is_no_checkpoint_and_a_folder_without_anything_say_what_would_do(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    assert "name the folder that holds config.json, or a .pt file" in refused(tmp_path / "notes.txt")
    assert "no weights (.pt, .safetensors) with a vocab.txt beside them" in refused(tmp_path)


# --- what may never end, and sizes that no file holds -----------------------------------------------------------------


def test_pipes_and_devices_are_not_read(tmp_path):
    folder, lstm = copy_of("gpt2", tmp_path), tmp_path / "lstm"
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/dev/zero")
    lstm.mkdir()
    (lstm / "vocab.txt").write_text("a b")
    os.mkfifo(lstm / "model.pt")
    for path in (folder, lstm, lstm / "model.pt", "/dev/zero"):
        assert "is a pipe or a device, which may never end" in refused(path)


@pytest.mark.parametrize("sizes", [{"vocab_size": 10**12}, {"n_layer": 10**9}, {"n_embd": 10**9}])
def test_sizes_that_no_file_holds_are_told_before_anything_is_made_of_them(sizes, tmp_path):
    folder = configured(copy_of("gpt2", tmp_path), **sizes)
    sentence = refused(folder)
    assert f" {next(iter(sizes.values()))}" in sentence and "far more than its files hold" in sentence


def test_a_name_in_other_capitals_is_pointed_out(monkeypatch):
    monkeypatch.setattr(hub, "unreachable", lambda: "no network")
    assert "WIKI-LSTM (did you mean wiki-lstm?)" in refused("WIKI-LSTM")
