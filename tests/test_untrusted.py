"""Items, folders and parameters by people who mean harm: nothing runs, nothing leaks into the page, nothing else is touched."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import tiny
from browser import MISSING, available, browser
from conftest import require
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lib import formats, results, sentences
from lib.errors import LitmusError
from lib.evaluate import evaluate, plain, rows_of
from lib.items import read_agreement
from lib.models import load
from lib.paths import ROOT
from lib.report.page import render
from lib.run import check_parameters, check_place

HOSTILE = {
    "script": "<script>hacked=1</script>",
    "image": "<img src=x onerror=hacked=1>",
    "closing": "</td></tr></table><iframe src=//evil.example></iframe>",
    "right-to-left": "\u202eneewteb\u202c",
    "control": "a\x00b\x07c\x1b[31m",
    "formula": '=HYPERLINK("http://evil.example","x")',
    "command": "=cmd|'/c_calc'!A1",
    "template": "{{ 7 * 7 }}{% raw %}",
    "formula of a page": "$\\href{javascript:hacked=1}{x}$",
    "megabyte": "x" * 2**20,
}


@pytest.mark.parametrize("word", list(HOSTILE.values()), ids=list(HOSTILE))
def test_a_hostile_item_is_an_item(word, tmp_path):
    """Read, scored or given a reason, printed as one row, and beside it the others as always."""
    word = "_".join(word.split())
    both = f"The {word} are here.", f"The {word} is here."
    line = json.dumps(dict(zip(("sentence_good", "sentence_bad", "label"), (*both, -2), strict=True)))
    good = json.dumps({"sentence_good": "The keys are here.", "sentence_bad": "The keys is here.", "label": -2})
    (tmp_path / "items.jsonl").write_text(f"{line}\n{good}\n", encoding="utf-8")
    assert read_agreement(tmp_path / "items.jsonl")["left"].tolist() == [f"The {word}", "The keys"]
    judged = evaluate(tiny.model("gpt2"), formats.read(tmp_path / "items.jsonl"))
    assert judged["scorable"][1] and (judged["scorable"][0] or judged["reason"][0])
    printed = plain(rows_of(judged))
    assert printed.count("\n") == 3 and not any(character in printed for character in "\x00\x07\x1b")
    assert [path.name for path in tmp_path.iterdir()] == ["items.jsonl"]


def test_a_spreadsheet_runs_nothing_of_a_downloaded_table(tmp_path):
    """Text that begins like a formula has an apostrophe before it in the CSV; the parquet has it as it stands."""
    texts = [HOSTILE["formula"], "+1+1", "-2", "@SUM(A1)", "\t=1", "plain"]
    items = pd.DataFrame({"item": texts, "context": texts, "margin": [-1.5] * len(texts)})
    provenance = {"parameters": {"model": "m", "revision": "main"}}
    path = results.write(
        str(tmp_path / "x"), notebook="n", title="t", items=items, summary=pd.DataFrame(), headline={}, data={},
        choices={}, sources=[], provenance=provenance,
    )  # fmt: skip
    read = pd.read_csv(path.with_suffix(".csv"))
    assert [text[:1] for text in read["context"]] == ["'"] * 5 + ["p"]
    assert set(read["margin"]) == {-1.5}  # a negative number is a number
    assert pd.read_parquet(path.with_suffix(".parquet"))["context"].tolist() == texts


@pytest.mark.parametrize("name", ["script", "image", "closing", "template"])
def test_what_an_item_holds_stays_text_in_a_page(name, tmp_path):
    table = pd.DataFrame({"context": [HOSTILE[name]]})
    outputs = [
        new_output("execute_result", data={"text/html": table.to_html(), "text/plain": str(table)}),
        new_output("stream", text=HOSTILE[name]),
    ]
    nbformat.write(new_notebook(cells=[new_code_cell("1", outputs=outputs)]), tmp_path / "x.ipynb")
    text = render(tmp_path / "x.ipynb").read_text(encoding="utf-8")
    assert not any(live in text for live in ("<script>hacked", "<img src=x", "<iframe", "> 49"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.html", "x.ipynb"]


@pytest.mark.parametrize(
    "text", ['"; import os; os.system("x"); "', "'''\nhacked = 1\n'''", "a\nb", "\\", "{model}", "`id`"]
)
def test_a_parameter_with_quotes_is_text(text):
    from papermill.translators import PythonTranslator

    value = check_parameters({"model": "m"}, {"model": text})["model"]
    names: dict = {}
    exec(PythonTranslator.codify({"model": value}), names)  # as the injected cell does
    assert names["model"] == value and set(names) == {"__builtins__", "model"}


UNREADABLE = ["(" * 3000, "[" * 3000, "-" * 20000 + "1", "9" * 400, "9" * 5000, "1e999", "\x00", "[[]]", "['a', 1]",
              "{[]: 1}", "{'a'}", "__import__('os')", "f'{1}'", "b'a'", "['\\ud800']", "[None]", "'\ud800"]  # fmt: skip


def test_names_that_are_no_text_are_told(tmp_path):
    """Bytes of a command line that are no UTF-8 come as halves of characters."""
    with pytest.raises(LitmusError, match="parameter out is text, and"):
        check_place(tmp_path / "a\udcff")
    assert results.safe_name("a\udcff").isascii()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", UNREADABLE, ids=[ascii(text[:20]) for text in UNREADABLE])
def test_a_parameter_that_is_no_value_of_its_kind_is_refused(text):
    for name, default in {"limit": 1, "share": 0.5, "flag": True, "items": [], "cutoffs": [0.5]}.items():
        if (name, text) != ("limit", "9" * 400):  # a whole number, if a large one
            with pytest.raises(LitmusError, match=f"parameter {name}") as refused:
                check_parameters({name: default}, {name: text})
            assert str(refused.value).isprintable() and len(str(refused.value)) < 300


def test_a_folders_name_does_not_lead_out_of_the_reports():
    for name in ("../../etc/passwd", "/etc/passwd", "..", "a/../../b", "con\x00trol", "<script>", "a b;rm"):
        safe = results.safe_name(name)
        assert "/" not in safe and "\\" not in safe and not safe.startswith(".") and safe.isprintable()


def test_sentences_of_any_characters_are_scored_or_have_a_reason():
    model = load(str(tiny.folder("bert-cased")))
    texts = [value for name, value in HOSTILE.items() if name != "megabyte"]
    for found in sentences.score(model, texts):
        assert found.reason or len(found.pieces) == len(found.log_probabilities) > 0


# --- folders and names of models ----------------------------------------------------------------------------------------


class Hostile:
    """What unpickles to a file that is there then."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def add(folder: Path, file: str, **entries: object) -> None:
    """Entries in one of the JSON files of a model folder."""
    path = folder / file
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(known | entries), encoding="utf-8")


def weights_elsewhere(folder: Path, name: str, kind: str) -> None:
    """An index in place of the weights, which names another file."""
    (folder / "model.safetensors").unlink()
    add(folder, f"{kind}.index.json", metadata={}, weight_map={"transformer.wte.weight": name})


def pickles_beside(folder: Path, pickled: bytes) -> None:
    for name in ("x.pkl", "training_args.bin", "optimizer.pt", "rng_state.pth", "tokenizer.pkl", "vocab.pickle"):
        (folder / name).write_bytes(pickled)


def pickled_shard(folder: Path, pickled: bytes) -> None:
    weights_elsewhere(folder, "part.bin", "pytorch_model.bin")
    (folder / "part.bin").write_bytes(pickled)


def linked_weights(folder: Path, target: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(target)


AUTO = {"AutoTokenizer": ["mine.Mine", "mine.Mine"]}
TRAP = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
FOLDERS: dict[str, tuple[Callable[[Path, bytes], object], str]] = {
    "code of a tokenizer": (lambda f, _: add(f, "tokenizer_config.json", auto_map=AUTO), ""),
    "class of a tokenizer": (lambda f, _: add(f, "tokenizer_config.json", auto_map=AUTO, tokenizer_class="Mine"), ""),
    "code of a configuration": (lambda f, _: add(f, "config.json", auto_map={"AutoConfig": "mine.Mine"}), ""),
    "pickles beside the weights": (pickles_beside, ""),
    "an adapter of elsewhere": (lambda f, _: add(f, "adapter_config.json", base_model_name_or_path="/etc"), ""),
    "a template of chats": (lambda f, _: (f / "chat_template.jinja").write_text(TRAP), ""),
    "a pickled part": (pickled_shard, "its weights are a pickle that may run code"),
    "a pickle as safetensors": (lambda f, p: (f / "model.safetensors").write_bytes(p), "damaged"),
    "weights outside": (lambda f, _: weights_elsewhere(f, "../../other.bin", "model.safetensors"), "could not be loaded"),
    "weights that are a link": (lambda f, _: linked_weights(f, Path("/etc/passwd")), "damaged"),
    "a limit that is text": (lambda f, _: add(f, "tokenizer_config.json", model_max_length="<script>"), "no number"),
    "brackets without end": (lambda f, _: (f / "config.json").write_text('{"a":' * 3000), "could not be loaded"),
}  # fmt: skip


def test_a_tokenizer_that_only_its_own_code_could_make_is_refused(tmp_path):
    """Named in ``tokenizer_config.json`` alone, beside an architecture that transformers knows."""
    folder, marker = Path(shutil.copytree(tiny.folder("gpt2"), tmp_path / "model")), tmp_path / "it-ran"
    (folder / "mine.py").write_text(f"open({str(marker)!r}, 'w')\n")
    (folder / "tokenizer.json").unlink()
    add(folder, "tokenizer_config.json", auto_map=AUTO, tokenizer_class="Mine")
    with pytest.raises(LitmusError, match=r"could not be loaded .*tokenizer"):
        load(str(folder))
    assert not marker.exists()


@pytest.mark.parametrize("name", list(FOLDERS))
def test_nothing_that_a_model_folder_brings_is_run(name, tmp_path):
    """Loaded as if it were not there, or refused in one sentence; the folder is as it was."""
    folder, marker = Path(shutil.copytree(tiny.folder("gpt2"), tmp_path / "model")), tmp_path / "it-ran"
    change, said = FOLDERS[name]
    (folder / "mine.py").write_text(f"open({str(marker)!r}, 'w')\n")
    change(folder, pickle.dumps(Hostile(marker)))
    before = {path: os.lstat(path).st_mtime_ns for path in folder.rglob("*")}
    try:
        model = load(str(folder))
        assert not said and model.identity["weights"] == tiny.model("gpt2").identity["weights"]
        assert model.maximum_length == 24 and model.score(["the keys are"])[0].reason == ""
    except LitmusError as error:
        assert said and said in str(error) and str(error).isprintable()
    assert {path: os.lstat(path).st_mtime_ns for path in folder.rglob("*")} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


NAMES = ["a\0b", "a\nb", "x" * 300, "x" * 5000, "/" + "x" * 300, "../../../etc", "--help", "~nobody-here/x", "~nobody-here",
         "file:///etc/passwd", "http://evil.example/x", "<script>", "a\x1b[31mb", "C:\\x", "$(touch hacked)"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name[:20]) for name in NAMES])
def test_a_name_of_any_kind_is_a_model_or_a_sentence(name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(LitmusError) as refused:
        load(name)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 1100
    for read in (read_agreement, formats.read, published_find):
        with pytest.raises(LitmusError):
            read(name)


def published_find(name: str) -> None:
    from lib import published

    published.find(name)


# --- the whole way: items, parameters, a notebook, its page in a browser --------------------------------------------------

QUOTED = """it's a "folder" {limit} \\n `touch hacked` $(touch hacked); import os; __import__('os').system('touch hacked') #"""


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory) -> Path:
    """The folder of a real run over hostile items, which lie in a folder that is called like code."""
    folder = tmp_path_factory.mktemp("run")
    (folder / QUOTED.replace("/", "")).mkdir()
    items = folder / QUOTED / "items <script>hacked=1</script>.jsonl".replace("/", "")
    hostile = ["_".join(word.split()) for word in HOSTILE.values()]
    subjects = [*hostile, "keys", "authors", "pilots", "guards", "tables"]
    lines = [{"sentence_good": f"The {word} are here.", "sentence_bad": f"The {word} is here.", "label": -2,
              "id": word, "paradigm": word} for word in subjects]  # fmt: skip
    items.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    words = ["--model", str(tiny.folder("bert-cased")), "--set", f"items={[str(items)]!r}", "--set", "limit=0"]
    words += ["--set", 'sample="seeded"', "--out", str(folder / "out")]
    environment = {**os.environ, "LITMUS_DATASETS": "", "LITMUS_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "lib.run", "20_agreement", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_hostile_items_and_quoted_parameters_go_the_whole_way_as_text(hostile_run):
    result = json.loads((hostile_run / "out.json").read_text(encoding="utf-8"))
    [path] = result["provenance"]["parameters"]["items"]
    assert Path(path).is_file() and QUOTED in path
    table = pd.read_parquet(hostile_run / "out.parquet")
    assert len(table) == len(HOSTILE) + 5 and table["scorable"].sum() >= 5
    assert (table["reason"] != "").sum() == (~table["scorable"]).sum()
    cells = pd.read_csv(hostile_run / "out.csv", dtype=str, keep_default_na=False)
    texts = cells.drop(columns=[name for name in cells if pd.api.types.is_numeric_dtype(table[name])])
    assert not texts.map(lambda cell: cell[:1] in ("=", "+", "@", "\t")).any(axis=None)
    names = {"cache", "out.csv", "out.html", "out.ipynb", "out.json", "out.parquet", QUOTED}
    assert {path.name for path in hostile_run.iterdir()} <= names
    assert not list(ROOT.glob("hacked*"))


@pytest.mark.browser
def test_the_page_of_hostile_items_runs_nothing(hostile_run, tmp_path):
    require(available(), MISSING)
    page = render(hostile_run / "out.ipynb")
    assert page.stat().st_size < 8 * 2**20
    with browser(tmp_path) as chromium:
        chromium.open(page)
        chromium.wait("document.querySelectorAll('figure.chart.drawn').length > 0")
        assert chromium.script("return typeof hacked") == "undefined"
        live = "iframe, object, embed, base, [onerror], [onload], a[href^='javascript' i], img[src='x']"
        assert chromium.script("return document.querySelectorAll(arguments[0]).length", live) == 0
        assert "hacked=1" in chromium.script("return document.body.textContent")  # shown, as text
        assert chromium.outside() == [] and chromium.errors() == []
