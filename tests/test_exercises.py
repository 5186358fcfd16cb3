"""Exercises follow from their solutions; every solution passes its checks, and every stub fails in a sentence."""

import re
from functools import cache

import jupytext
import pytest
from test_pairs import HEADER

from lib import exercises, pairs
from lib import models as library
from lib.errors import LitmusError
from lib.paths import NOTEBOOKS

NAMES = sorted(path.stem for path in exercises.SOLUTIONS.glob("*.py"))
KINDS = ("by hand", "change a choice", "your own items")
CODE_LINES, TEXT_LINES, FOLDED_LINES = 20, 16, 18
STUB_WIDTH = 104
"""Characters that JupyterLab shows in a window of 1,400 pixels without scrolling sideways."""
BODY = """# %% [markdown]
# # Exercises

# %% tags=["stub"]
answer = ...

# %% tags=["solution"]
answer = 42

# %%
answer
"""


def cells(name: str, folder=exercises.SOLUTIONS) -> list:
    return jupytext.read(folder / f"{name}.py").cells


def tags(cell) -> set:
    return set(cell.metadata.get("tags", []))


def said_by(source, monkeypatch, capsys) -> list[str]:
    """What the checks of a notebook print when its cells run from top to bottom; one load of the model for all."""
    monkeypatch.setattr(library, "load", loaded)
    space: dict = {"__name__": "__main__"}
    for number, cell in enumerate(jupytext.read(source).cells):
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{source.name}, cell {number}", "exec"), space)
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("Exercise ")]


load = library.load


@cache
def loaded(name: str):
    return load(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_solution_passes(name, monkeypatch, capsys):
    lines = said_by(exercises.SOLUTIONS / f"{name}.py", monkeypatch, capsys)
    count = sum(cell.source.startswith("## ") for cell in cells(name))
    assert [line[: len("Exercise 1: yes.")] for line in lines] == [f"Exercise {n}: yes." for n in range(1, count + 1)]


@pytest.mark.parametrize("name", NAMES)
def test_every_stub_fails_with_its_reason_and_the_notebook_runs_to_its_end(name, monkeypatch, capsys):
    lines = said_by(exercises.EXERCISES / f"{name}.py", monkeypatch, capsys)
    count = sum(cell.source.startswith("## ") for cell in cells(name))
    assert len(lines) == count
    for number, line in enumerate(lines, start=1):
        assert re.match(
            rf"Exercise {number}: not yet\. (Nothing is written there|First write down|There are three dots)", line
        ), line


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_exercise_is_the_one_that_its_solution_makes(name):
    assert exercises.difference(exercises.SOLUTIONS / f"{name}.py") == ""
    assert not [cell for cell in cells(name, exercises.EXERCISES) if "solution" in tags(cell)]


def test_no_exercise_has_lost_its_solution():
    assert exercises.without_solution() == []


@pytest.mark.parametrize("name", NAMES)
def test_anatomy(name):
    """Task with number, minutes, difficulty and kind; hint and result folded; stub, solution and check, in this order."""
    everything = cells(name)
    assert everything[0].source.startswith("# Exercises")
    assert f"../{name}.ipynb" in everything[0].source and (NOTEBOOKS / f"{name}.py").exists()
    starts = [place for place, cell in enumerate(everything) if cell.source.startswith("## ")]
    assert 2 <= len(starts) <= 4
    minutes, kinds = [], []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(everything)], strict=True), start=1):
        task, *rest = everything[start:end]
        line = re.match(
            rf"## {number} · .+\n\n(\d+) minutes · (easy|medium|hard) · ({'|'.join(KINDS)})\n\n", task.source
        )
        assert line, task.source
        minutes.append(int(line[1]))
        kinds.append(line[3])
        assert [kind for cell in rest for kind in ("stub", "solution") if kind in tags(cell)] == ["stub", "solution"]
        folded = [cell.source for cell in rest if cell.source.startswith("<details>")]
        assert len(folded) == 1 and folded[0].count("</details>") == 2
        assert "<summary>Hint</summary>" in folded[0] and "<summary>What should come out</summary>" in folded[0]
        place = next(place for place, cell in enumerate(rest) if "solution" in tags(cell))
        assert rest[place + 1].cell_type == "code" and not tags(rest[place + 1])
        assert "..." in rest[place - 1].source or "raise NotImplementedError" in rest[place - 1].source
    assert f"about {sum(minutes)} minutes" in everything[0].source
    assert len(set(kinds)) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_short_and_plain(name):
    for cell in cells(name):
        lines = len(cell.source.splitlines())
        assert lines <= (
            TEXT_LINES + 4 if "<details>" in cell.source else TEXT_LINES if cell.cell_type == "markdown" else CODE_LINES
        )
        assert tags(cell) <= {"parameters", "hide-input", "stub", "solution"}
        assert not re.search(r"^\s*[%!]", cell.source, flags=re.M)
        assert "stub" not in tags(cell) or max(map(len, cell.source.splitlines())) <= STUB_WIDTH


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_leads_to_its_exercises(name):
    assert f"(exercises/{name}.ipynb)" in (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")


def test_an_exercise_is_the_solution_without_its_solution_cells(tmp_path):
    solution = tmp_path / "solutions" / "10_example.py"
    solution.parent.mkdir()
    solution.write_text(HEADER + BODY)
    folder = tmp_path / "exercises"
    assert exercises.difference(solution, folder).endswith("run `make exercises`.")
    assert exercises.write(solution, folder)
    text = (folder / "10_example.py").read_text()
    assert "answer = ..." in text and "42" not in text and "42" not in (folder / "10_example.ipynb").read_text()
    assert pairs.difference(folder / "10_example.py") == exercises.difference(solution, folder) == ""
    assert (solution.with_suffix(".ipynb")).exists()
    assert not exercises.write(solution, folder)
    solution.write_text(HEADER + BODY.replace("Exercises", "More exercises"))
    assert "is not what" in exercises.difference(solution, folder)
    solution.unlink()
    solution.with_suffix(".ipynb").unlink()
    assert exercises.without_solution(solution.parent, folder) == [folder / "10_example.py"]


def test_a_solution_that_would_tell_all_is_refused(tmp_path):
    path = tmp_path / "solutions" / "10_example.py"
    path.parent.mkdir()
    path.write_text(HEADER + BODY.replace(' tags=["solution"]', ""))
    with pytest.raises(LitmusError, match=r"10_example.py has no cell tagged solution; tag what students"):
        exercises.exercise_of(path)
