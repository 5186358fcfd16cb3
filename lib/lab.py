"""JupyterLab, open at the first notebook, with a copy of each exercise to work in: ``make lab``.

The kernel is the Python that runs this, whatever other kernels are installed; the server listens to this machine only
and asks for its token; nothing is fetched from anywhere.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from lib import pairs
from lib.paths import ROOT
from lib.say import short, told

FIRST = "00_start_here.ipynb"
MINE = "my_exercises"
"""Where a student's exercises lie, beside ``exercises``; git, ``make pairs`` and the tests leave every ``my_*`` alone."""


def copy_exercises(notebooks: Path) -> list[Path]:
    """Copy the exercises to ``my_exercises``, both halves of each; one of which a half is there already is a student's work
    and stays as it is. Returns the halves that are new.
    """
    mine = notebooks / MINE
    new = [
        # The script last: of two halves that differ, jupytext takes the older script for outdated.
        half
        for source in pairs.sources(notebooks / "exercises")
        if not any((mine / source.name).with_suffix(suffix).exists() for suffix in (".py", ".ipynb"))
        for half in (source.with_suffix(".ipynb"), source)
    ]
    for half in new:
        mine.mkdir(exist_ok=True)
        shutil.copyfile(half, mine / half.name)
    return [mine / half.name for half in new]


def settings(root: Path) -> list[str]:
    """The words that JupyterLab is started with in the repository ``root``."""
    return [f"--ServerApp.root_dir={root}", "--ServerApp.ip=localhost", str(root / "notebooks" / FIRST)]


def prefer_ours(root: Path) -> None:
    """Let Jupyter find the kernel of the running Python and the settings of the folder ``.jupyter`` before all others.

    A kernel named ``python3`` in the user's home would have no ``lib``; the settings keep Lab from asking whether to fetch
    news, and show Markdown as text to read.
    """
    for variable, ours in (
        ("JUPYTER_PATH", Path(sys.prefix, "share", "jupyter")),
        ("JUPYTER_CONFIG_PATH", root / ".jupyter"),
    ):
        os.environ[variable] = os.pathsep.join(filter(None, [str(ours), os.environ.get(variable)]))


def main(
    words: Annotated[list[str] | None, typer.Argument(help="Words for JupyterLab, such as --no-browser.")] = None,
    root: Annotated[Path, typer.Option(help="A folder laid out as the repository.")] = ROOT,
) -> None:
    """Copy the exercises that are not there yet, and start JupyterLab at the first notebook."""
    from jupyterlab.labapp import LabApp

    with told():
        new = copy_exercises(root.resolve() / "notebooks")
    if new:
        typer.echo(f"{len(new) // 2} exercises for you in {short(new[0].parent)}")
    prefer_ours(ROOT)
    LabApp.launch_instance([*settings(root.resolve()), *(words or [])])


if __name__ == "__main__":
    app = typer.Typer()
    app.command(context_settings={"ignore_unknown_options": True})(main)
    app()
