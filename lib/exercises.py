"""Exercises: the notebooks of ``notebooks/solutions`` without their solutions.

``python -m lib.exercises`` makes ``notebooks/exercises/X.py`` and ``X.ipynb`` from ``notebooks/solutions/X.py``: cells tagged
``solution`` go out, everything else stays. ``--check`` only compares. What nobody derives any more is told, not deleted.
"""

from pathlib import Path
from typing import Annotated

import jupytext
import typer
from nbconvert.preprocessors import TagRemovePreprocessor

from lib import pairs
from lib.errors import LitmusError
from lib.paths import NOTEBOOKS
from lib.say import short, told

SOLUTIONS = NOTEBOOKS / "solutions"
EXERCISES = NOTEBOOKS / "exercises"


def exercise_of(source: Path) -> str:
    """The text (py:percent) of the exercise that belongs to the ``.py`` of a solution.

    Raises LitmusError where the solution is no notebook of the project (see ``pairs.notebook_of``), and where it has no cell
    tagged ``solution``, for then the exercise would show all.
    """
    pairs.notebook_of(source)
    notebook = jupytext.read(source, fmt="py:percent")
    before = len(notebook.cells)
    left, _ = TagRemovePreprocessor(enabled=True, remove_cell_tags={"solution"}).preprocess(notebook, {})
    if len(left.cells) == before:
        raise LitmusError(f"{short(source)} has no cell tagged solution; tag what students are to write themselves.")
    written, first = jupytext.writes(left, fmt="py:percent"), "# %%"
    text = source.read_text(encoding="utf-8")
    return (
        text[: text.index(first)] + written[written.index(first) :]
    )  # the header as it is, without a version of jupytext


def difference(solution: Path, folder: Path = EXERCISES) -> str:
    """One sentence that says why the exercise in ``folder`` is not the one of its solution; empty where it is."""
    exercise = folder / solution.name
    if not exercise.exists() or exercise.read_text(encoding="utf-8") != exercise_of(solution):
        return f"{short(exercise)} is not what {short(solution)} makes: run `make exercises`."
    return pairs.difference(exercise)


def write(solution: Path, folder: Path = EXERCISES) -> bool:
    """Make the pair of one exercise in ``folder``, and the notebook of its solution; False where all was there already."""
    exercise, text = folder / solution.name, exercise_of(solution)
    changed = not exercise.exists() or exercise.read_text(encoding="utf-8") != text
    if changed:
        exercise.parent.mkdir(exist_ok=True)
        exercise.write_text(text, encoding="utf-8")
    made = [pairs.write(half) for half in (solution, exercise)]
    return changed or any(made)


def without_solution(solutions: Path = SOLUTIONS, exercises: Path = EXERCISES) -> list[Path]:
    """Exercises whose solution is gone: someone has to remove them, or to bring the solution back."""
    return [path for path in pairs.sources(exercises) if not (solutions / path.name).exists()]


def main(
    files: Annotated[list[Path] | None, typer.Argument(help="Solutions; none: all in notebooks/solutions.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only compare; nothing is written.")] = False,
) -> None:
    """Make each exercise from its solution, or check that it follows from it."""
    with told():
        solutions = [path.resolve().with_suffix(".py") for path in files] if files else pairs.sources(SOLUTIONS)
        wrong = [f"{short(path)} has no solution; remove it." for path in without_solution()] if not files else []
        for solution in solutions:
            if check:
                wrong.append(difference(solution))
            elif write(solution):
                typer.echo(f"made {short(EXERCISES / solution.name)}")
    for sentence in filter(None, wrong):
        typer.echo(f"error: {sentence}", err=True)
    if any(wrong):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
