"""The rules of writing notebooks, kept by a test and not by memory."""

import ast
import itertools
import re
import statistics
from pathlib import Path

import jupytext
import pytest

from lib.paths import NOTEBOOKS, ROOT

NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))
EXERCISES = sorted(f"exercises/{path.stem}" for path in NOTEBOOKS.glob("exercises/*.py"))
SOLUTIONS = sorted(f"solutions/{path.stem}" for path in NOTEBOOKS.glob("solutions/*.py"))
TAGS = {"parameters", "hide-input", "hide-output", "remove-cell", "results", "task", "solution", "check"}
HEADINGS = [
    "One example", "Before you go on", "The items", "Scores", "Result", "Beside published values", "A control",
    "Where it goes wrong", "What this does not show", "Takeaways",
]  # fmt: skip
WITHOUT = {"00_start_here": {"Beside published values"}, "90_compare_models": set(HEADINGS) - {"Result", "Takeaways"}}
CODE_LINES, TEXT_LINES = 20, 14
CODE_WIDTH = 112  # about 118 characters fit in JupyterLab's window before it scrolls sideways


def cells(name: str, kind: str) -> list:
    return [cell for cell in jupytext.read(NOTEBOOKS / f"{name}.py").cells if cell.cell_type == kind]


def lines_of(cell) -> int:
    return len(cell.source.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_one_title_and_the_headings_in_order(name):
    text = "\n".join(cell.source for cell in cells(name, "markdown"))
    assert len(re.findall(r"^# ", text, flags=re.M)) == 1
    found = re.findall(r"^## (.+)$", text, flags=re.M)
    wanted = [heading for heading in HEADINGS if heading not in WITHOUT.get(name, set())]
    positions = [found.index(heading) for heading in wanted]
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_few_and_short(name):
    code = [lines_of(cell) for cell in cells(name, "code")]
    assert 25 <= len(code) + len(cells(name, "markdown")) <= 42
    assert statistics.median(code) <= 8
    others = [cell for cell in cells(name, "code") if "parameters" not in cell.metadata.get("tags", [])]
    assert max(lines_of(cell) for cell in others) <= CODE_LINES
    assert max(lines_of(cell) for cell in cells(name, "markdown")) <= TEXT_LINES


@pytest.mark.parametrize("name", [*NAMES, *EXERCISES, *SOLUTIONS])
def test_code_fits_the_window(name):
    lines = [line for cell in cells(name, "code") for line in cell.source.splitlines()]
    assert [line for line in lines if len(line) > CODE_WIDTH] == []


@pytest.mark.parametrize("name", [*NAMES, *EXERCISES, *SOLUTIONS])
def test_code_holds_no_hint_for_a_formatter(name):
    assert not re.search(r"#\s*fmt:", (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_one_cell_of_literals_and_tags_are_known(name):
    tags = [tag for cell in cells(name, "code") for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1
    assert set(tags) <= TAGS
    [cell] = [cell for cell in cells(name, "code") if "parameters" in cell.metadata.get("tags", [])]
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)


@pytest.mark.parametrize("name", NAMES)
def test_text_stands_before_code_that_computes(name):
    everything = jupytext.read(NOTEBOOKS / f"{name}.py").cells
    unexplained = 0
    for before, cell in itertools.pairwise(everything):
        quiet = {"hide-input", "parameters", "results"} & set(cell.metadata.get("tags", []))
        follows_code = before.cell_type == "code" and not before.metadata.get("tags")
        if cell.cell_type == "code" and not quiet and follows_code:
            unexplained += 1
        else:
            unexplained = 0
        assert unexplained <= 2, f"three code cells in a row before:\n{cell.source}"


@pytest.mark.parametrize("name", NAMES)
def test_plain_python_without_tricks(name):
    source = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert not re.search(r"^\s*[%!]", source, flags=re.M), "no magics, no shell lines"
    assert "sys.path" not in source and "if TEST" not in source
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert all(node.end_lineno - node.lineno < CODE_LINES for node in functions)


@pytest.mark.parametrize("name", NAMES)
def test_prose_quotes_no_result(name):
    """Numbers that depend on the model stand in computed sentences only; example readings are in italics."""
    if name == "90_compare_models":
        return  # its one example of how to read a cell is made up, and said to be so
    text = "\n".join(cell.source for cell in cells(name, "markdown"))
    assert not re.findall(r"\b0?\.\d{2,}\b(?! counts only)", text)


def test_no_tracked_text_names_a_place_of_one_machine():
    places = re.compile(r"/(home|Users|root|work)/")
    for folder in ("lib", "notebooks", "data", "reports"):
        for path in sorted((ROOT / folder).rglob("*")):
            tracked = path.suffix in {".py", ".md", ".csv", ".yaml", ".ipynb"} and "published" not in path.parts
            if tracked and (folder != "reports" or path.parent.name in {"reports", "default", "slurm"}):
                assert not places.search(path.read_text(encoding="utf-8")) or path.name.startswith("index"), path


def test_the_top_level_is_the_one_agreed():
    visible = {path.name for path in Path(ROOT).iterdir() if path.is_dir() and not path.name.startswith(".")}
    built = {name for name in visible if name.endswith(".egg-info")}
    assert visible - built == {"data", "lib", "notebooks", "reports", "tests"}
