"""``python -m lib.report reports/MODEL/NOTEBOOK.ipynb``: the page of an executed notebook."""

from pathlib import Path
from typing import Annotated

import typer

from lib.report.page import render
from lib.say import told


def main(
    path: Annotated[Path, typer.Argument(help="An executed notebook, as `python -m lib.run` leaves it.")],
    out: Annotated[Path | None, typer.Option(help="The page; default: beside the notebook.")] = None,
) -> None:
    """Make the page of an executed notebook and print where it is."""
    with told():
        typer.echo(render(path, out))


if __name__ == "__main__":
    typer.run(main)
