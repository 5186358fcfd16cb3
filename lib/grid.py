"""Every notebook for every model, and the index that compares them: what ``make reports`` calls.

Snakemake runs the grid (``reports/Snakefile``): one failing notebook never hides another, and a second call runs only
what is missing or stale. What makes a result stale is decided here by content: a result is kept while its executed
notebook carries the mark of the same sources, items, model and settings.
"""

import csv
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from filelock import FileLock, Timeout

from lib import published, run
from lib.errors import LitmusError
from lib.paths import ROOT
from lib.say import did_you_mean, short

# Of lib: what a result is made by. Anything more would run everything again for a change that shows nowhere.
MAKERS = ("models/**/*.py", "scoring.py", "*metrics.py", "*items.py", "cloze_answers.py", "perturb.py", "stats.py",
          "results.py", "charts.py")  # fmt: skip
INDEX = "90_compare_models"
UNKNOWN_MEMORY = 8000  # megabytes asked for a model that is not in data/models.csv


class Job(NamedTuple):
    """One notebook for one model. Paths are relative to the root where they lie inside it."""

    model: str  # as lib.run takes it
    notebook: Path
    out: Path  # of the results, without suffix
    settings: dict[str, str]  # further parameters
    megabytes: int  # memory
    mark: str  # digest of everything that decides the result


def jobs(
    root: Path = ROOT,
    models: str = "",
    notebooks: str = "",
    limit: int | None = None,
    settings: str = "",
    reports: Path | None = None,
) -> list[Job]:
    """The grid: chosen models x chosen notebooks.

    ``models`` and ``notebooks`` are names separated by spaces; "" stands for the models with ``grid`` = yes in
    ``data/models.csv``, and for every numbered notebook with the parameters ``model`` and ``out``. A model that is
    not in the list is a hub id or a folder. ``limit`` (None: as each notebook says) and ``settings`` (``key=value``
    separated by spaces) go to the notebooks that have these parameters.
    Raises LitmusError for a notebook that does not exist, a setting that no notebook has, two models whose results
    would share a folder, and an empty grid.
    """
    rows = _rows(root)
    names = list(dict.fromkeys(shlex.split(models))) or [name for name, row in rows.items() if row["grid"] == "yes"]
    chosen = _notebooks(root, shlex.split(notebooks))
    if not names or not chosen:
        raise LitmusError(
            f"there is nothing to run: {len(names)} models (grid = yes), {len(chosen)} notebooks in {root}."
        )
    given = run.settings_of(shlex.split(settings))
    data = published.find()
    if limit is not None:
        given["limit"] = str(limit)
    known = {path: run.parameters_of(path) for path in chosen}
    for name in given:
        if not any(name in parameters for parameters in known.values()):
            every = dict.fromkeys(name for parameters in known.values() for name in parameters)
            raise LitmusError(f"no notebook of the grid has the parameter {name}{did_you_mean(name, every)}.")
    common = digest([*_sources(root), *([data / row.file for row in published.listed()] if data else [])])
    grid = []
    for model in names:
        for path, parameters in known.items():
            wanted = {name: value for name, value in given.items() if name in parameters}
            run.check_parameters(parameters, wanted)
            row = rows.get(model)
            grid.append(
                Job(
                    model=model,
                    notebook=_within(path, root),
                    out=_within(run.page(reports or root / "reports", model, path.stem), root),
                    settings=wanted,
                    megabytes=int(row["memory_megabytes"] or UNKNOWN_MEMORY) if row else UNKNOWN_MEMORY,
                    mark=digest([common, path, json.dumps([model, row, _folder_state(model), wanted])]),
                )
            )
    owner: dict[Path, str] = {}
    for job in grid:
        if owner.setdefault(job.out, job.model) != job.model:
            raise LitmusError(
                f"{owner[job.out]} and {job.model} would share the folder {job.out.parent}; rename one of them."
            )
    return grid


def _rows(root: Path) -> dict[str, dict[str, str]]:
    """Rows of ``data/models.csv`` by name."""
    path = root / "data" / "models.csv"
    if not path.is_file():
        raise LitmusError(f"{path} is missing; it lists the models of the grid.")
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["name"]: row for row in csv.DictReader(lines)}


def _notebooks(root: Path, wanted: list[str]) -> list[Path]:
    """Numbered notebooks that run once a model, in order; only the ``wanted`` ones where any is named."""
    paths = {path.stem: path for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.py"))}
    every = {name: path for name, path in paths.items() if {"model", "out"} <= run.parameters_of(path).keys()}
    for name in wanted:
        if name not in every:
            raise LitmusError(
                f"there is no notebook {name}{did_you_mean(name, every)} in the grid; there are: {', '.join(every)}."
            )
    return [path for name, path in every.items() if not wanted or name in wanted]


def _within(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def _sources(root: Path) -> list[Path]:
    """What makes every result stale: code that scores, measures and draws, items, verbs."""
    code = [path for pattern in MAKERS for path in sorted((ROOT / "lib").glob(pattern))]
    items = sorted(path for path in (root / "data" / "items").rglob("*") if path.is_file())
    return [*code, *items, root / "data" / "verbs.csv"]


def _folder_state(model: str) -> list[Any]:
    """Names, sizes and times of change of a model's files where it is a folder: its weights are too large to read."""
    files = sorted(Path(model).iterdir()) if Path(model).is_dir() else []
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def digest(parts: Iterable[Path | str]) -> str:
    """One checksum of texts and of files' names and contents; a file that is missing counts as missing."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            content = published.sha256(part) if part.is_file() else "missing"
            part = f"{part.name} {content}"
        total.update(f"{len(part)} {part}".encode())
    return total.hexdigest()


# ---- one call of the grid


def run_grid(root: Path, grid: list[Job], profile: str, together: int, words: list[str]) -> int:
    """Run what is missing or stale of ``grid`` with snakemake, given further ``words``; returns its exit code."""
    stale = [str(job.out) + ".json" for job in grid if _beside(root, job, ".json").exists() and not kept(root, job)]
    folder = Path(profile) if Path(profile).is_dir() else ROOT / "reports" / "profiles" / profile
    if not folder.is_dir():
        raise LitmusError(f"there is no profile {profile}: name default, slurm, or a folder with a config.yaml.")
    if profile == "slurm" and not shutil.which("sbatch"):
        raise LitmusError("the profile slurm needs a SLURM cluster, and there is no sbatch on this machine.")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "reports" / "Snakefile")]
    command += ["--directory", str(root), "--workflow-profile", str(folder)]
    if profile == "default":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        command += ["--cores", str(cores), "--set-threads", f"execute={max(1, cores // together)}"]
        command += ["--resources", f"mem_mb={_megabytes()}", *([f"gpu={_gpus()}"] if _gpus() else [])]
    command += ["--forcerun", *stale] if stale else []
    process = subprocess.Popen([*command, *words], process_group=0)
    try:
        return process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)  # snakemake and the notebooks, whatever signal it was that came here
        process.wait()
        raise


def kept(root: Path, job: Job) -> bool:
    """True when there is a result, and it was made from what the grid would make it from now."""
    mark = _metadata(root, job).get("litmus", {}).get("mark")
    return _beside(root, job, ".json").exists() and mark == job.mark


def _metadata(root: Path, job: Job) -> dict[str, Any]:
    """Metadata of a job's executed notebook; none where it is missing or broken."""
    try:
        return json.loads(_beside(root, job, ".ipynb").read_text(encoding="utf-8"))["metadata"]
    except (OSError, ValueError, KeyError):
        return {}


def _beside(root: Path, job: Job, suffix: str) -> Path:
    """One of a job's files."""
    return root / job.out.parent / f"{job.out.name}{suffix}"


def _megabytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _gpus() -> int:
    """Accelerators of this machine: each notebook takes one."""
    return 1 if sys.platform == "darwin" else len(list(Path("/dev").glob("nvidia[0-9]*")))


def state(root: Path, job: Job) -> str:
    """In a word: done, failed, not run, or no page where only the page is missing."""
    if _beside(root, job, ".json").exists():
        return "done" if _beside(root, job, ".html").exists() else "no page"
    return "failed" if _metadata(root, job).get("papermill", {}).get("exception") else "not run"


def render_failed(root: Path, grid: list[Job]) -> None:
    """Pages of the notebooks that failed: ``<out>.FAILED.html``."""
    for job in grid:
        if state(root, job) == "failed" and not _beside(root, job, ".FAILED.html").exists():
            words = [sys.executable, "-m", "lib.report", str(_beside(root, job, ".ipynb"))]
            subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL)


def build_index(root: Path, reports: Path) -> int:
    """Run ``90_compare_models`` over whatever is in ``reports`` and render it, unless nothing has changed; 0 or 1."""
    notebook = root / "notebooks" / f"{INDEX}.py"
    if not notebook.exists():
        return 0
    results = sorted(path for path in reports.rglob("*.json") if path != reports / "index.json")
    failed_pages = sorted(str(path.relative_to(reports)) for path in reports.rglob("*.FAILED.html"))
    code = sorted(path for path in (ROOT / "lib").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    notebooks = sorted((root / "notebooks").glob("*.py"))
    seen = [str(path.relative_to(reports)) for path in results]
    mark = digest([*seen, *failed_pages, *results, *code, *notebooks, root / "data" / "models.csv"])
    stamp = reports / ".index"
    if stamp.exists() and stamp.read_text() == mark and (reports / "index.html").exists():
        return 0
    where = ["--set", f"reports={_within(reports, root)}", "--out", str(_within(reports / "index", root))]
    words = [sys.executable, "-m", "lib.run", str(_within(notebook, root)), *where]
    failed = subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL).returncode
    words = [sys.executable, "-m", "lib.report", str(reports / "index.ipynb")]
    failed = subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL).returncode or failed
    if not failed:
        stamp.write_text(mark)
    return 1 if failed else 0


def main(
    models: Annotated[str, typer.Option(help='names separated by spaces; "" = grid = yes in data/models.csv')] = "",
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
        models = shlex.join(str(Path(name).resolve()) if Path(name).is_dir() else name for name in shlex.split(models))
        pairs = shlex.join(settings or [])
        grid = jobs(root, models, notebooks, limit, pairs, reports)
        choice = {"MODELS": models, "NOTEBOOKS": notebooks, "SET": pairs, "REPORTS": str(reports)}
        words = ["--config", *(f"{name}={value}" for name, value in choice.items() if value)]
        words += [f"LIMIT={limit}"] if limit is not None else []
        if dry_run:
            for job in grid:
                print(f"{'is there' if kept(root, job) else 'to run':9}{job.model}  {job.notebook.stem}")
            raise typer.Exit(0)
        (root / ".snakemake").mkdir(exist_ok=True)
        with FileLock(root / ".snakemake" / "grid.lock", timeout=0):
            code = run_grid(root, grid, profile, jobs_, words)
            render_failed(root, grid)
            index = build_index(root, reports)
    except LitmusError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(2) from error
    except Timeout as error:
        sys.stderr.write(f"error: another grid is running in {root}; wait for it, or stop it.\n")
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        sys.stderr.write("stopped: what is done is kept, and the next call goes on from there.\n")
        raise typer.Exit(130) from None
    for job in grid:
        print(f"{state(root, job):9}{job.model}  {job.notebook.stem}")
    if code and all(state(root, job) == "done" for job in grid):
        sys.stderr.write(f"error: snakemake ended with {code}; its log is in {short(root / '.snakemake' / 'log')}.\n")
    page = reports / "index.html"
    print(f"the index: {short(page)}" if page.exists() else f"no index: it could not be made by {INDEX}")
    raise typer.Exit(1 if code or index else 0)


if __name__ == "__main__":
    typer.run(main)
