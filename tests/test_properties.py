"""What must hold whatever comes in. Metrics over verbs and formats have theirs in test_metrics and test_formats."""

import tempfile
from dataclasses import replace
from pathlib import Path

import jupytext
import numpy as np
import pandas as pd
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import blimp, formats, metrics, results, scoring, sentences
from lib.cloze import items as cloze_items
from lib.cloze import recorded
from lib.errors import LitmusError
from lib.items import read_agreement, read_verbs
from lib.models import Gap, checkpoints
from lib.pairs import notebook_of
from lib.run import parameters_of

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


READERS = {
    "agreement": (read_agreement, ".jsonl", '{"sentence_good": "a b", "sentence_bad": "a c", "label": -2}\n'),
    "verbs": (read_verbs, ".csv", "idx,sing,plur,freq\n_,runs,run,_\n"),
    "formats": (formats.read, ".tab", "pattern\tsent\tsent_alt\nP\ta b\ta c\n"),
    "paradigm": (blimp.read_paradigm, ".jsonl", '{"sentence_good": "a b", "sentence_bad": "a c"}\n'),
    "inference": (cloze_items.read_inference, ".tsv", "\t".join(cloze_items.INFERENCE) + "\n"),
    "roles": (cloze_items.read_roles, ".tsv", "\t".join(cloze_items.ROLES) + "\n"),
    "negation": (cloze_items.read_negation, ".tsv", "\t".join(cloze_items.NEGATION) + "\n"),
    "probes": (lambda path: cloze_items.read_probes(path, "negation"), ".txt", "a robin is a bird,\n"),
    "vocabulary": (lambda path: checkpoints.read_vocabulary(path, 3), ".txt", "a b c\n"),
    "checkpoint": (lambda path: checkpoints.read_network(checkpoints.Checkpoint(path, {})), ".pt", ""),
    "result": (results.read, ".json", '{"notebook": "x"'),
    "notebook": (parameters_of, ".py", '# %% tags=["parameters"]\na = 1\n'),
    "recorded": (lambda path: recorded.read(path.parent), "scores.csv", "context,candidate,log_probability\na,b,-1\n"),
}


@pytest.mark.parametrize("name", list(READERS))
@settings(max_examples=25)
@given(content=st.binary(max_size=80) | st.text(max_size=60).map(str.encode), keep=st.booleans())
def test_no_bytes_crash_a_reader(name, content, keep):
    """It reads them or says in one sentence why not."""
    reader, suffix, start = READERS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (suffix if suffix[0] != "." else f"any{suffix}")
        path.write_bytes((start.encode() if keep else b"") + content)
        try:
            reader(path)
        except LitmusError as error:
            assert str(error).strip() and "\n" not in str(error)


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x00"), max_size=30
)


@FEW
@given(st.lists(st.tuples(st.booleans(), CELL), max_size=4))
def test_a_source_and_its_notebook_tell_the_same(cells):
    """From notebook to source and back no cell is lost or changed, whatever its words."""
    import nbformat

    made = [nbformat.v4.new_code_cell("limit = 0", metadata={"tags": ["parameters"]})]
    made += [nbformat.v4.new_markdown_cell(f"a {text.strip()}") for is_text, text in cells if is_text]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=made, metadata=metadata)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "x.py"
        source.write_text(jupytext.writes(notebook, fmt="py:percent"), encoding="utf-8")
        if "<<<<<<< " in source.read_text(encoding="utf-8") or ">>>>>>> " in source.read_text(encoding="utf-8"):
            return
        assert [cell.source.strip() for cell in notebook_of(source).cells] == [cell.source.strip() for cell in made]
