"""``python -m lib.grid``: the reports of the grid, made or brought up to date; ``make reports`` calls it."""

import os
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lib import listing
from lib.errors import LitmusError
from lib.grid.cluster import last_log, reasons
from lib.grid.jobs import jobs, listed
from lib.grid.plan import plan, summary
from lib.grid.running import INDEX, build_index, locked, profile_folder, render_failed, run_grid, unwritable
from lib.grid.state import stamps, state
from lib.paths import ROOT
from lib.run import TIMEOUT
from lib.say import did_you_mean, short, shown


def _absolute(word: str, known: Mapping[str, Mapping[str, str]]) -> str:
    """A folder or file as a path that holds from anywhere, with its revision; any other name as it is."""
    model, revision = listing.with_revision(word, known)
    if model in known or not os.path.exists(os.path.expanduser(model)):
        return word
    path = str(Path(model).expanduser().resolve())
    return path if model == word else f"{path}@{revision}"


def _words(text: str, option: str) -> list[str]:
    """Names separated by spaces; all of it one name where that lies there. Raises LitmusError for an open quotation."""
    if os.path.exists(os.path.expanduser(text)):
        return [text]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise LitmusError(f"{option} {shown(text)} cannot be read ({str(error).lower()}).") from error


def main(
    models: Annotated[
        str,
        typer.Option(
            help='names separated by spaces, a path with a space in quotation marks; "" = grid = yes in data/models.csv'
        ),
    ] = "",
    notebooks: Annotated[str, typer.Option(help='names separated by spaces; "" = all')] = "",
    limit: Annotated[
        int | None,
        typer.Option(help="pairs per construction, 0 = all; not given: as each notebook says"),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="another parameter, key=value, for the notebooks that have it")
    ] = None,
    profile: Annotated[str, typer.Option(help="default (this machine), slurm, or a folder of your own")] = "default",
    jobs_: Annotated[int, typer.Option("--jobs", min=1, help="notebooks at a time on this machine")] = 2,
    timeout: Annotated[int, typer.Option(min=1, help="seconds a cell may take")] = TIMEOUT,
    reports: Annotated[Path | None, typer.Option(help="folder of the results")] = None,
    root: Annotated[Path, typer.Option(help="folder that holds notebooks/ and data/models.csv")] = ROOT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would run")] = False,
) -> None:
    """Run every notebook for every model, render the pages, build reports/index.html.

    Exit code: 0 all done, 1 something failed (the rest is there), 2 wrong usage.
    """
    for signalled in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signalled, signal.default_int_handler)
    try:
        root = root.resolve()
        reports = (reports or root / "reports").resolve()
        known, names = listed(root), _words(models, "--models")
        choice: dict[str, Any] = {
            "models": [_absolute(name, known) for name in names],
            "notebooks": _words(notebooks, "--notebooks"),
            "limit": limit,
            "settings": settings or [],
            "reports": str(reports),
        }
        grid = jobs(root, **choice)
        for name in choice["models"]:
            if name not in known and not {"/", "@"} & set(name) and (hint := did_you_mean(name, known)):
                sys.stderr.write(f"note: {name} is not in data/models.csv{hint}; it is taken for a model of the hub.\n")
        if dry_run:
            profile_folder(profile)
            left_out = unwritable(root, grid, make=False)
            waiting = [job for job in grid if job.out not in left_out]
            print(plan(root, waiting, reports, jobs_ if profile == "default" else 1))
            raise typer.Exit(0)
        with locked(root) as lock:
            old, old_pages = stamps(root, grid), stamps(root, grid, ".html")
            code = run_grid(root, grid, profile, jobs_, choice | {"timeout": timeout}, lock)
            render_failed(root, grid, old)
            index = build_index(root, reports)
    except LitmusError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(2) from error
    except OSError as error:
        sys.stderr.write(f"error: {shown(error.filename or str(root))} cannot be used here ({error.strerror}).\n")
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        sys.stderr.write("stopped: what is done is kept, and the next call goes on from there.\n")
        raise typer.Exit(130) from None
    pages = len(set(stamps(root, grid, ".html").items()) - set(old_pages.items()))
    print(summary(root, grid, old, pages, {} if profile == "default" else reasons(last_log(root))))
    if code and not any(state(root, job, old) == "failed" for job in grid):
        log = short(root / ".snakemake" / "log")
        sys.stderr.write(f"error: not all is done, for reasons that stand above, or in the last log in {log}.\n")
    page = reports / "index.html"
    print(f"the index: {short(page)}" if page.exists() else f"no index: it could not be made by {INDEX}")
    raise typer.Exit(1 if code or index else 0)


if __name__ == "__main__":
    typer.run(main)
