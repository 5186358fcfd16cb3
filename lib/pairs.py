"""Pairs of notebooks: ``X.py`` (py:percent) is the source, ``X.ipynb`` beside it is made from it and holds no outputs.

``python -m lib.pairs`` makes every notebook of the folder ``notebooks``; ``--check`` only compares. Time stamps mean
nothing after a clone or a checkout, so pairs are compared by content. The notebook depends on nothing but its source:
cell ids come from the text of the cells, so one changed cell is a few changed lines in a diff.
"""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Annotated

import jupytext
import nbformat
import typer
from jupytext.compare import NotebookDifference, compare_notebooks

from lib.errors import LitmusError
from lib.paths import NOTEBOOKS, ROOT

WITHOUT_PARAMETERS = {"solutions", "exercises"}
"""Folders whose notebooks nobody runs with parameters."""


def read(source: Path) -> nbformat.NotebookNode:
    """The notebook that a ``.py`` holds, as jupytext reads it. Raises LitmusError where it cannot."""
    text = _text(source)
    try:
        return jupytext.reads(text, fmt="py:percent")
    except Exception as error:  # the header is YAML, a cell's options are JSON, and jupytext trusts both
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise LitmusError(
            f"{_name(source)} cannot be read as a notebook ({why}): compare its header and the options of its cells with "
            "notebooks/_template.py."
        ) from error


def _text(source: Path) -> str:
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"byte {error.start} is not UTF-8"
        raise LitmusError(
            f"{_name(source)} cannot be read as a notebook ({why}): give a text file in UTF-8."
        ) from error


def notebook_of(source: Path) -> nbformat.NotebookNode:
    """The notebook that belongs to a ``.py``: its cells, no outputs, ids that follow from the cells.

    Raises LitmusError where the file cannot be read, where its header names no kernel or no format, where a merge conflict
    was left in it, and where not exactly one cell is tagged ``parameters``.
    """
    conflict = _conflict(_text(source))
    if conflict:
        raise LitmusError(f"{_name(source)}:{conflict} holds the mark of a merge conflict: settle it there first.")
    notebook = read(source)
    representation = notebook.metadata.get("jupytext", {}).pop("text_representation", {})
    if (
        representation.get("format_name") != "percent"
        or notebook.metadata.get("kernelspec", {}).get("name") != "python3"
    ):
        raise LitmusError(
            f"{_name(source)} has no header with the format percent and the kernel python3: "
            "copy the first lines of notebooks/_template.py."
        )
    tagged = sum("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)
    if tagged != 1 and source.parent.name not in WITHOUT_PARAMETERS:
        raise LitmusError(
            f"{_name(source)} has {tagged or 'no'} cell{'s' if tagged > 1 else ''} tagged parameters: "
            'tag exactly one with # %% tags=["parameters"].'
        )
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] += 1
        cell["id"] = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return notebook


def difference(source: Path) -> str:
    """One sentence that says how a pair differs and what repairs it; empty where source and notebook tell the same."""
    target = source.with_suffix(".ipynb")
    expected = notebook_of(source)
    if not target.exists():
        return f"{_name(target)} is missing: run `make pairs`."
    text = target.read_text(encoding="utf-8")
    try:
        actual = nbformat.reads(text, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError):
        reason = f"the mark of a merge conflict in line {_conflict(text)}" if _conflict(text) else "it is broken JSON"
        return f"{_name(target)} is not a notebook ({reason}): run `make pairs`."
    if any(cell.get("outputs") or cell.get("execution_count") for cell in actual.cells):
        return f"{_name(target)} holds outputs: run `make pairs`."
    try:
        compare_notebooks(actual, expected, fmt="py:percent", raise_on_first_difference=False)
    except NotebookDifference as found:
        where = " ".join(str(found).split()).rstrip(".")
        return f"{_name(target)} differs from {source.name} ({where}): run `make pairs`."
    return ""


def write(source: Path) -> bool:
    """Make the notebook of a source; False where it was there already, byte by byte."""
    target = source.with_suffix(".ipynb")
    text = nbformat.writes(notebook_of(source)) + "\n"
    if target.exists() and target.read_text(encoding="utf-8") == text:
        return False
    target.write_text(text, encoding="utf-8")
    return True


def sources(folder: Path = NOTEBOOKS) -> list[Path]:
    """The pairs of a folder, each named by its ``.py``, which may not exist; a person's own ``my_*`` are left alone."""
    halves = [path for path in folder.rglob("*") if path.suffix in (".py", ".ipynb")]
    return sorted({path.with_suffix(".py") for path in halves if not _private(path.relative_to(folder))})


def _private(path: Path) -> bool:
    return any(part.startswith((".", "my_", "__")) for part in path.parts)


def _conflict(text: str) -> int:
    """The first line that holds the mark of a merge conflict, counted from 1; 0 where there is none."""
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if line.startswith(("<<<<<<< ", ">>>>>>> "))), 0)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def _handle(source: Path, check: bool) -> str:
    """Check or make one pair; returns the sentence that says what is wrong with it, or nothing."""
    target = source.with_suffix(".ipynb")
    if not source.exists() and target.exists():
        return (
            f"{_name(target)} has no {source.name}, the source of a pair: "
            f"make it with `jupytext --to py:percent {_name(target)}` or remove the notebook."
        )
    if not source.exists():
        return f"{_name(source)} does not exist: give the path of a notebook or of its source."
    try:
        if check:
            return difference(source)
        if write(source):
            typer.echo(f"made {_name(target)}")
    except LitmusError as error:
        return str(error)
    return ""


def main(
    files: Annotated[list[Path] | None, typer.Argument(help="Halves of pairs; none: everything in notebooks/.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only compare; nothing is written.")] = False,
) -> None:
    """Make each notebook from its source, or check that both halves tell the same."""
    chosen = sorted({path.resolve().with_suffix(".py") for path in files}) if files else sources()
    wrong = [sentence for sentence in (_handle(source, check) for source in chosen) if sentence]
    for sentence in wrong:
        typer.echo(f"error: {sentence}", err=True)
    if wrong:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
