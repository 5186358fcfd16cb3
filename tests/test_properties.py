"""What must hold whatever comes in. Metrics over verbs and formats have theirs in test_metrics and test_formats."""

import copy
import io
import json
import pickle
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jupytext
import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import blimp, formats, listing, metrics, pairs, results, scoring, sentences
from lib.cloze import items as cloze_items
from lib.cloze import recorded
from lib.comparison import collected
from lib.errors import LitmusError
from lib.evaluate import read_long_distance
from lib.experiments import experiments_of
from lib.grid import plan, state
from lib.items import read_agreement, read_verbs
from lib.models import Gap, checkpoints
from lib.pairs import notebook_of
from lib.paths import DATA, NOTEBOOKS
from lib.report.page import render
from lib.run import parameters_of
from lib.templates import lexicon, nonsense

FEW = settings(max_examples=15)
FORMS = ["are", "is", "laughs", "laugh", "cats", "has", "have", "like"]
LEFTS = ["The keys", "The key to the cabinets", "The author near the senators", "the pilot", "Cabinets"]


@FEW
@given(
    st.permutations(range(5)),
    st.permutations(FORMS),
    st.sampled_from([1, 7, 64]),
    st.sampled_from(["bert-cased", "gpt2"]),
)
def test_order_of_items_and_forms_and_size_of_batches_change_no_number(order, forms, budget, name):
    gaps = [Gap(left, "on the table.") for left in LEFTS]
    plain = scoring.fill(tiny.model(name), gaps, FORMS, cutoffs_top=(0.5, 1.0))
    other = scoring.fill(
        replace(tiny.model(name), token_budget=budget), [gaps[i] for i in order], forms, cutoffs_top=(0.5, 1.0)
    )
    for form in FORMS:
        expected = plain.at("log_probability", [form] * 5)[list(order)]
        np.testing.assert_allclose(other.at("log_probability", [form] * 5), expected, atol=1e-4)
    np.testing.assert_allclose(
        other.values["top"][other.context_of], plain.values["top"][plain.context_of][list(order)], atol=1e-4
    )


@FEW
@given(st.lists(st.sampled_from([("are", "is"), ("laugh", "laughs"), ("cats", "have"), ("is", "is")]), min_size=1, max_size=5),
       st.sampled_from(["bert-uncased", "llama"]))  # fmt: skip
def test_swapping_good_and_bad_mirrors_every_judgement(pairs, name):
    model = tiny.model(name)
    goods, bads = map(list, zip(*pairs, strict=True))
    gaps = [Gap(left, ".") for left in LEFTS[: len(pairs)]]
    fills = scoring.fill(model, gaps, [*goods, *bads])
    texts = pd.DataFrame({"good": [f"The pilot {g} ." for g in goods], "bad": [f"The pilot {b} ." for b in bads]})
    turned = texts.rename(columns={"good": "bad", "bad": "good"})
    both = [
        (metrics.minimal_pairs(fills, goods, bads), metrics.minimal_pairs(fills, bads, goods)),
        (sentences.minimal_pairs(model, texts), sentences.minimal_pairs(model, turned)),
    ]  # fmt: skip
    for one, other in both:
        assert (one["scorable"] == other["scorable"]).all() and (one["tie"] == other["tie"]).all()
        usable = one[one["scorable"]]
        np.testing.assert_allclose(usable["margin"], -other.loc[usable.index, "margin"], atol=1e-4)
        assert (usable["correct"] + other.loc[usable.index, "correct"] + usable["tie"] == 1).all()
        assert usable["correct"].isin([0, 1]).all()


ITEMS = DATA / "items"


def beginning(path: Path, lines: int = 5) -> bytes:
    """The first lines of a file."""
    return b"".join(path.read_bytes().splitlines(keepends=True)[:lines])


def torch_file(old: bool = False) -> bytes:
    content = io.BytesIO()
    torch.save({"encoder.weight": torch.zeros(3, 2)}, content, _use_new_zipfile_serialization=not old)
    return content.getvalue()


def among(others: dict[str, bytes], file: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader of several files, of which the one under test is called ``file``."""

    def reader(path: Path) -> object:
        content = path.read_bytes()
        for name, text in {**others, file: content}.items():
            (path.parent / name).write_bytes(text)
        return read(path.parent)

    return reader


LINZEN = {
    "s.text": b"the key is here\nthe keys are here\n",
    "s.gold": b"2\tis\tare\t0\n2\tare\tis\t1\n",
    "s.eval": b"2\n2\n",
}
RECORDED = {
    "scores.csv": b"context,candidate,log_probability\na,b,-1\n",
    "predictions.csv": b"context,rank,piece,log_probability\na,1,b,-1\na,2,c,-2\n",
}
RESPONSES = {
    "r-contextlist": b"a b\nc d\n",
    "r-targetlist": b"x\ny\n",
    "modelpreds-r-m": b"x y z\nq r s\n",
    "modeltgtprobs-r-m": b".5\nnan\n",
}
WORD_FOCUSED = b'pattern\tform\tform_alt\tsent\tlen_prefix\n"P ""q"""\tis\tare\tthe key is <eos>\t2\n'
MARVIN = b"test case\tgrammatical\tungrammatical\na--b\tthe key is\tthe key are\n"
PICKLED = pickle.dumps({("sing", "plur"): [("the key is", "the key are")], "npi": [("a b", "a c", "a d")]}, 2)
EXPERIMENT = b"""dataset: {template_dir: ., template_files: [x.yaml], add_trailing_period: true, max_examples_per_template: 3}
metrics: {main: {cutoffs_top: [0.5, 1e-6], use_equal_verb_voting: true}, ML: {use_custom_dataset: true}}
model: {name: gpt2}
"""
NOTEBOOK = beginning(NOTEBOOKS / "_template.py", 60)
OUR_INFERENCE = ITEMS / "inference" / "inference.tsv"


def network(path: Path) -> object:
    return checkpoints.read_network(checkpoints.Checkpoint(path, {}))


def explanations(path: Path) -> object:
    return cloze_items.read_explanations(path, cloze_items.read_inference(OUR_INFERENCE))


READERS: dict[str, tuple[Callable[[Path], object], str, bytes]] = {
    "agreement": (read_agreement, "x.jsonl", beginning(ITEMS / "agreement" / "simple_agrmt.jsonl")),
    "verbs": (read_verbs, "x.csv", beginning(DATA / "verbs.csv")),
    "original": (read_long_distance, "x.tab", beginning(ITEMS / "long_distance" / "long_distance.tab")),
    "word-focused": (formats.read, "x.tab", WORD_FOCUSED),
    "sentence-focused": (formats.read, "x.tab", beginning(ITEMS / "tense" / "tense.tab")),
    "sentences of templates": (formats.read, "x.tsv", MARVIN),
    "pickled templates": (formats.read, "x.pickle", PICKLED),
    "jsonl as pairs": (formats.read, "x.jsonl", beginning(ITEMS / "agreement" / "simple_agrmt.jsonl")),
    "paradigm": (blimp.read_paradigm, "x.jsonl", beginning(ITEMS / "minimal_pairs" / "adjunct_island.jsonl")),
    "inference": (cloze_items.read_inference, "x.tsv", beginning(OUR_INFERENCE)),
    "explanations": (explanations, "x.tsv", (ITEMS / "inference" / "explanations.tsv").read_bytes()),
    "roles": (cloze_items.read_roles, "x.tsv", beginning(ITEMS / "roles" / "roles.tsv")),
    "negation": (cloze_items.read_negation, "x.tsv", beginning(ITEMS / "negation" / "natural.tsv")),
    "simple negation": (cloze_items.read_negation, "x.tsv", beginning(ITEMS / "negation" / "simple.tsv")),
    "probes": (
        lambda path: cloze_items.read_probes(path, "negation"),
        "x.txt",
        b"a bird is here,\na bird is not here,\n",
    ),
    "vocabulary": (lambda path: checkpoints.read_vocabulary(path, 3), "x.txt", b"a b c\n"),
    "checkpoint": (network, "x.pt", torch_file()),
    "old checkpoint": (network, "x.pt", torch_file(old=True)),
    "settings": (lambda path: checkpoints.settings_of(path.parent), "config.json", b'{"cell": "LSTM"}'),
    "models": (listing.read, "models.csv", beginning(DATA / "models.csv")),
    "result": (results.read, "x.json", b'{"notebook": "x", "model": "m", "headline": {"value": 1}, "summary": []}'),
    "parameters": (parameters_of, "x.py", NOTEBOOK),
    "pair": (notebook_of, "x.py", NOTEBOOK),
    "experiment": (experiments_of, "x.yaml", EXPERIMENT),
    "tagged sentences": (nonsense.read_originals, "x.tsv", beginning(ITEMS / "long_distance" / "sentences.tsv")),
    "counts": (nonsense.read_counts, "x.csv", beginning(DATA / "lexicon" / "counts.csv")),
}
for table in lexicon.TABLES:
    reader = lambda path, name=table: lexicon._read_table(path.parent, name)  # noqa: E731
    READERS[f"lexicon, {table}"] = reader, f"{table}.csv", beginning(DATA / "lexicon" / f"{table}.csv")
for part in LINZEN:
    READERS[part] = among(LINZEN, part, lambda folder: formats.read(folder / "s.text")), "x", LINZEN[part]
for part in RECORDED:
    READERS[part] = among(RECORDED, part, recorded.read), "x", RECORDED[part]
for part in RESPONSES:
    read = among(RESPONSES, part, lambda folder: recorded.read_responses(folder, "r", "m"))
    READERS[part] = read, "x", RESPONSES[part]

NASTY = [
    *(bytes([byte]) for byte in b"\x00\n\r\t\"',;[]{}()=\\/*|%\x1c\x85\xff"),
    *(text.encode() for text in ("", "\u00a0", "\u2028", "\u202e", "\ufeff", "\u0663", "\u00b2")),
    *(b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"nan", b"inf", b"-1", b"0", b"1e999", b"true", b"null", b"[]", b"{}", b"..."),
    *(b"<eos>", b"[a|a]", b"N/", b"/N", b"*/N", b"all", b"2001-99-99", b"0b_", b"&a", b"*a", b"!!python/object:os.system"),
    *(b"? ", b": ", b"# %%", b"---", b"'''", b"{[]: 1}", b"b'x'", b"1j"),
    *(b"[" * 3000, b"(" * 3000, b'{"a":' * 3000, b"-" * 9000, b"9" * 5000, b"a" * 140_000),
]  # fmt: skip


@st.composite
def damaged(draw, content: bytes) -> bytes:
    """A file of which a few places hold what nobody expects there; sometimes no more than bytes."""
    if not draw(st.integers(0, 9)):
        return draw(st.binary(max_size=80))
    for _ in range(draw(st.integers(1, 3))):
        cells = [found.span() for found in re.finditer(rb"[^\t\n,\"{}:=\[\]]+", content)] or [(0, 0)]
        start, end = draw(st.sampled_from(cells))
        how = draw(st.sampled_from(["cell", "cell", "inside", "cut", "again"]))
        if how == "inside":
            start = end = draw(st.integers(start, end))
        middle = content[max(0, start - 20) : end] * 2 if how == "again" else draw(st.sampled_from(NASTY))
        content = content[:start] if how == "cut" else content[:start] + middle + content[end:]
    return content


@pytest.mark.parametrize("name", list(READERS))
@settings(max_examples=25)
@given(data=st.data())
def test_no_bytes_crash_a_reader(name, data):
    """It reads them or says why not: in one sentence that a terminal can print and a person can read."""
    reader, file, whole = READERS[name]
    content = data.draw(damaged(whole))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_bytes(content)
        try:
            reader(path)
        except LitmusError as error:
            assert str(error).strip() and str(error).isprintable() and len(str(error)) < 1100


@pytest.mark.parametrize("name", list(READERS))
def test_what_is_not_damaged_is_read(name, tmp_path):
    """Otherwise nothing above could fail."""
    reader, file, whole = READERS[name]
    (tmp_path / file).write_bytes(whole)
    try:
        reader(tmp_path / file)
    except LitmusError as error:  # weights of one matrix are read, and are no model
        assert "checkpoint" in name and "recurrent" in str(error)


# --- what runs leave behind, changed by somebody else ---------------------------------------------------------------------

RESULT = {
    "notebook": "20_agreement",
    "title": "T",
    "model": "m",
    "revision": "main",
    "family": "causal",
    "choices": {"dtype": "float32"},
    "data": {"name": "ours", "sample": "all", "sha256": {"a": "b"}},
    "sources": ["newman2021"],
    "headline": {"metric": "TSE", "value": 0.9, "low": 0.8, "high": 0.95, "n": 10, "coverage": 1.0},
    "summary": [{"condition": "c", "metric": "TSE", "value": 0.5, "low": 0.4, "high": 0.6, "n": 3, "coverage": 1.0}],
    "provenance": {
        "date": "2026-11-30T16:42:10+00:00",
        "seconds": 1.5,
        "git_commit": "c",
        "git_dirty": True,
        "versions": {"python": "3"},
        "parameters": {"model": "m", "limit": 3},
        "overridden": ["limit"],
        "identity": {"model": "m"},
        "note": "x",
    },
}
EXECUTED = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# T\n\n## A"},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {"tags": ["parameters"]},
            "source": "a = 1",
            "outputs": [],
            "execution_count": 1,
        },
        {
            "cell_type": "code",
            "id": "c",
            "metadata": {"papermill": {"start_time": "x"}},
            "source": "1",
            "execution_count": 2,
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "x"},
                {
                    "output_type": "execute_result",
                    "execution_count": 2,
                    "metadata": {},
                    "data": {"text/html": "<table></table>", "text/plain": "x"},
                },
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["t"]},
            ],
        },
    ],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "x"},
        "litmus": {"mark": "x"},
        "papermill": {
            "parameters": {"model": "m", "revision": "main"},
            "start_time": "2026-01-01T00:00:00",
            "duration": 3.2,
            "exception": None,
        },
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}
ODD = [
    None,
    1,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    [1],
    ["x"],
    {"a": 1},
    {"a": {"b": [1]}},
    True,
    10**30,
    float("nan"),
    float("inf"),
    "<script>",
    "\ud800",
    "\x00",
    [[]],
    "2026-13-99T",
    "a" * 5000,
]


@st.composite
def changed(draw, whole: dict) -> str:
    """JSON of which some entries are gone or something else."""
    whole = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 2))):
        entries, queue = [], [whole]
        while queue:
            part = queue.pop()
            keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else []
            entries += [(part, key) for key in keys]
            queue += [part[key] for key in keys]
        if not entries:
            break
        part, key = draw(st.sampled_from(entries))
        if draw(st.booleans()):
            part[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        else:
            del part[key]
    return json.dumps(whole)


@settings(max_examples=60)
@given(changed(RESULT), changed(EXECUTED))
def test_a_result_that_was_changed_costs_its_own_row_and_nothing_else(result, executed):
    """The index shows it as damaged, or what is left of it; the good one beside it is there."""
    with tempfile.TemporaryDirectory() as folder:
        for model, file, text in (
            ("a", ".json", json.dumps(RESULT)),
            ("b", ".json", result),
            ("c", ".ipynb", executed),
        ):
            (Path(folder) / model).mkdir()
            (Path(folder) / model / f"20_agreement{file}").write_text(text, encoding="utf-8")
        found = collected.collect(Path(folder))
        assert len(found) == 3 and found["state"].isin(["done", "failed", "damaged"]).all()
        assert found.loc[found["page"].str.startswith("a/"), "state"].tolist() == ["done"]
        collected.models_in_order(found)
        collected.summaries(found, "20_agreement")
        collected.over_revisions(found, collected.titles(found, ["20_agreement"]))
        assert plan.recorded_seconds(Path(folder))["a", "20_agreement"] == 1.5
        job = SimpleNamespace(out=Path("c/20_agreement"), mark="y")
        assert not state.kept(Path(folder), job)


@settings(max_examples=40)
@given(changed(RESULT), changed(EXECUTED))
def test_a_page_of_what_was_changed_is_a_page_or_a_sentence(result, executed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "20_agreement.ipynb"
        whole = {**EXECUTED, "cells": EXECUTED["cells"][:2]}
        for notebook, record in ((executed, "{}"), (json.dumps(whole), result)):
            path.write_text(notebook, encoding="utf-8")
            path.with_suffix(".json").write_text(record, encoding="utf-8")
            try:
                assert "<script>hacked" not in render(path).read_text(encoding="utf-8")
            except LitmusError as error:
                assert str(error).isprintable() and len(str(error)) < 1100
        assert not [left for left in Path(folder).iterdir() if left.name.startswith(".")]


LINES = ["", "x = 1", "def f():", "    return 1", "\tif x:", "# a comment", "#", "# # x", "# ---", "---", "%matplotlib inline",
         "!ls", "%%time", "?x", "cd ..", "print('# %%')", "a\\", "<b>", "é日 \u202e", "$x$", "| a | b |", "=====", "- [ ] x",
         "</script>", "{{ 7 }}", "\\N"]  # fmt: skip
PLAIN = st.characters(codec="utf-8", categories=["L", "N", "P", "S"], exclude_characters="#%!?\"'<>=|")
LINE = st.sampled_from(LINES) | st.text(PLAIN, max_size=20)
TAGS = st.lists(st.sampled_from(["hide-input", "b c", 'x"y', "é", "solution"]), max_size=2, unique=True)
CELLS = st.tuples(st.sampled_from(["code", "markdown", "raw"]), st.lists(LINE, max_size=4), TAGS)


@FEW
@given(st.lists(CELLS, max_size=4))
def test_a_source_and_its_notebook_tell_the_same(cells):
    """From notebook to source and back no cell is lost or changed: kind, words, tags. (py:percent itself has no way to say
    an empty last line, a line of code that begins a cell, or a comment in front of a magic.)"""
    import nbformat

    made = [nbformat.v4.new_code_cell("limit = 0", metadata={"tags": ["parameters"]})]
    for kind, lines, tags in cells:
        text = "\n".join(lines).strip("\n")
        made.append(getattr(nbformat.v4, f"new_{kind}_cell")(text, metadata={"tags": tags} if tags else {}))
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=made, metadata=metadata)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "x.py"
        source.write_text(jupytext.writes(notebook, fmt="py:percent"), encoding="utf-8")
        once = notebook_of(source)
        assert [seen(cell) for cell in once.cells] == [seen(cell) for cell in made]
        pairs.write(source)
        assert pairs.difference(source) == ""
        source.write_text(jupytext.writes(once, fmt="py:percent"), encoding="utf-8")  # as saving in JupyterLab does
        assert pairs.difference(source) == ""


def seen(cell) -> tuple[str, str, list[str]]:
    """What a person sees of a cell."""
    return cell.cell_type, cell.source, cell.metadata.get("tags", [])


def test_an_error_is_one_line_of_a_size_that_can_be_read():
    assert str(LitmusError("x.tsv, line 2: 'a\tb\x1b[31m\n\u202e\ud83d' is wrong.")) == (
        r"x.tsv, line 2: 'a\tb\x1b[31m\n\u202e\ud83d' is wrong."
    )
    long = str(LitmusError(f"x.tsv, line 2: '{'a' * 2**20}' is no number; give one."))
    assert long.startswith("x.tsv, line 2: 'aaa") and long.endswith("' is no number; give one.") and len(long) < 1000
    assert str(LitmusError(str(LitmusError("a\\\n")))) == "a\\\\n"  # written out once
