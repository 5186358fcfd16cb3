"""Pairs: the notebook follows from its source and from nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from lib import pairs
from lib.errors import LitmusError
from lib.paths import ROOT

HEADER = """# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

"""
BODY = """# %% [markdown]
# # A title

# %% tags=["parameters"]
limit = 0  # 0 = all

# %%
limit + 1

# %%
limit + 1
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "10_example.py"
    path.write_text(HEADER + BODY)
    return path


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lib.pairs", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_case_74_a_notebook_has_the_cells_tags_and_kernel_of_its_source(source: Path):
    notebook = pairs.notebook_of(source)
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "code", "code"]
    assert notebook.cells[1].metadata.tags == ["parameters"]
    assert notebook.metadata.kernelspec.name == "python3"
    nbformat.validate(notebook)


def test_making_twice_gives_the_same_bytes_and_two_equal_cells_get_two_ids(source: Path):
    assert pairs.write(source)
    first = source.with_suffix(".ipynb").read_bytes()
    assert not pairs.write(source)
    assert source.with_suffix(".ipynb").read_bytes() == first
    ids = [cell["id"] for cell in json.loads(first)["cells"]]
    assert len(set(ids)) == 4
    assert ids[3] == f"{ids[2]}-2"


def test_a_changed_cell_leaves_the_ids_of_the_others(source: Path):
    before = [cell["id"] for cell in pairs.notebook_of(source).cells]
    source.write_text(source.read_text().replace("A title", "Another title"))
    after = [cell["id"] for cell in pairs.notebook_of(source).cells]
    assert before[1:] == after[1:]
    assert before[0] != after[0]


def test_case_81_time_stamps_mean_nothing(source: Path):
    pairs.write(source)
    os.utime(source.with_suffix(".ipynb"), (1, 1))
    assert pairs.difference(source) == ""
    os.utime(source, (1, 1))
    os.utime(source.with_suffix(".ipynb"))
    assert pairs.difference(source) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda notebook: notebook.cells[2].update(source="limit + 2"), "differs from 10_example.py"),
        (lambda notebook: notebook.cells.pop(), "differs from 10_example.py"),
        (lambda notebook: notebook.cells[1].metadata.pop("tags"), "differs from 10_example.py"),
        (lambda notebook: notebook.cells[2].update(execution_count=3), "holds outputs"),
        (
            lambda notebook: notebook.cells[2].update(outputs=[nbformat.v4.new_output("stream", text="1")]),
            "holds outputs",
        ),
    ],
)
def test_a_difference_is_one_sentence_that_names_the_repair(source: Path, change, words: str):
    notebook = pairs.notebook_of(source)
    change(notebook)
    nbformat.write(notebook, source.with_suffix(".ipynb"))
    sentence = pairs.difference(source)
    assert words in sentence
    assert sentence.endswith("run `make pairs`.")
    assert "\n" not in sentence
    pairs.write(source)
    assert pairs.difference(source) == ""


def test_what_jupyterlab_adds_when_it_saves_is_no_difference(source: Path):
    notebook = pairs.notebook_of(source)
    notebook.metadata["language_info"] = {"name": "python", "version": "3.11.2"}
    notebook.cells[2]["id"] = "another"
    notebook.cells[2].metadata["trusted"] = True
    nbformat.write(notebook, source.with_suffix(".ipynb"))
    assert pairs.difference(source) == ""


def test_case_82_what_papermill_leaves_in_a_notebook_does_not_reach_the_source(source: Path, tmp_path: Path):
    """Saving an executed notebook in JupyterLab would write its source anew, by this configuration."""
    (tmp_path / "jupytext.toml").write_bytes((ROOT / "jupytext.toml").read_bytes())
    (tmp_path / "notebooks").mkdir()
    notebook = pairs.notebook_of(source)
    notebook.metadata["papermill"] = {"duration": 7.2, "parameters": {"limit": 5}}
    notebook.cells[2].metadata["papermill"] = {"duration": 0.1, "status": "completed"}
    nbformat.write(notebook, tmp_path / "notebooks" / "x.ipynb")
    subprocess.run([sys.executable, "-m", "jupytext", "--sync", "notebooks/x.ipynb"], cwd=tmp_path, check=True)
    text = (tmp_path / "notebooks" / "x.py").read_text()
    assert "limit + 1" in text and 'tags=["parameters"]' in text
    assert "papermill" not in text


def test_the_command_checks_makes_and_checks_again(source: Path):
    checked = command("--check", source)
    assert checked.returncode == 1
    assert checked.stderr == f"error: {source.with_suffix('.ipynb')} is missing: run `make pairs`.\n"
    assert not source.with_suffix(".ipynb").exists()
    made = command(source)
    assert (made.returncode, made.stdout) == (0, f"made {source.with_suffix('.ipynb')}\n")
    assert command("--check", source.with_suffix(".ipynb")).returncode == 0


def test_conflict_marks_in_the_notebook_are_found_and_repaired(source: Path):
    pairs.write(source)
    target = source.with_suffix(".ipynb")
    target.write_text("{\n<<<<<<< HEAD\n" + target.read_text())
    assert "merge conflict in line 2" in pairs.difference(source)
    pairs.write(source)
    assert pairs.difference(source) == ""


def test_conflict_marks_in_the_source_are_for_a_person(source: Path):
    source.write_text(source.read_text() + "<<<<<<< HEAD\nlimit = 1\n")
    with pytest.raises(LitmusError, match=r"10_example.py:25 holds the mark of a merge conflict"):
        pairs.notebook_of(source)


def test_a_notebook_without_its_source(tmp_path: Path):
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "alone.ipynb")
    result = command("--check", tmp_path / "alone.ipynb")
    assert result.returncode == 1
    assert "has no alone.py" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BODY, "no header with the format percent and the kernel python3"),
        (HEADER.replace("python3", "python9") + BODY, "no header with the format percent and the kernel python3"),
        (HEADER + BODY.replace(' tags=["parameters"]', ""), "has no cell tagged parameters"),
        (HEADER + BODY + '\n# %% tags=["parameters"]\nx = 1\n', "has 2 cells tagged parameters"),
    ],
)
def test_cases_73_and_75_a_source_that_could_not_be_run_with_parameters_is_refused(source: Path, text: str, words: str):
    source.write_text(text)
    with pytest.raises(LitmusError, match=words):
        pairs.notebook_of(source)


def test_exercises_need_no_parameters(tmp_path: Path):
    (tmp_path / "solutions").mkdir()
    path = tmp_path / "solutions" / "S20_agreement.py"
    path.write_text(HEADER + BODY.replace(' tags=["parameters"]', ""))
    assert len(pairs.notebook_of(path).cells) == 4


def test_what_belongs_to_a_person_or_to_a_tool_is_no_half_of_a_pair(tmp_path: Path):
    for name in ("a.py", "b.ipynb", "my_a.py", ".ipynb_checkpoints/a.ipynb", "__pycache__/a.py", "sub/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert pairs.sources(tmp_path) == [tmp_path / "a.py", tmp_path / "b.py", tmp_path / "sub" / "c.py"]


def test_every_pair_of_the_repository_tells_the_same():
    found = {source.name: pairs._handle(source, check=True) for source in pairs.sources()}
    assert {name: sentence for name, sentence in found.items() if sentence} == {}
