"""Items, folders and parameters by people who mean harm: nothing runs, nothing leaks into the page, nothing else is touched."""

import json

import nbformat
import pandas as pd
import pytest
import tiny
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lib import formats, results, sentences
from lib.evaluate import evaluate, plain, rows_of
from lib.items import read_agreement
from lib.models import load
from lib.report.page import render
from lib.run import check_parameters

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
    assert plain(rows_of(judged)).count("\n") == 3
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


def test_a_folders_name_does_not_lead_out_of_the_reports():
    for name in ("../../etc/passwd", "/etc/passwd", "..", "a/../../b", "con\x00trol", "<script>", "a b;rm"):
        safe = results.safe_name(name)
        assert "/" not in safe and "\\" not in safe and not safe.startswith(".") and safe.isprintable()


def test_sentences_of_any_characters_are_scored_or_have_a_reason():
    model = load(str(tiny.folder("bert-cased")))
    texts = [value for name, value in HOSTILE.items() if name != "megabyte"]
    for found in sentences.score(model, texts):
        assert found.reason or len(found.pieces) == len(found.log_probabilities) > 0
