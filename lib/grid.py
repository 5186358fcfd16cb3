"""Every notebook for every model, and the index that compares them: what ``make reports`` calls.

Snakemake runs the grid (``reports/Snakefile``): one failing notebook never hides another, and a second call runs only
what is missing or stale. What makes a result stale is decided here by content: a result is kept while its executed
notebook carries the mark of the same sources, items, model and settings.
"""

import ast
import csv
import fcntl
import functools
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from lib import published, run
from lib.errors import LitmusError
from lib.paths import DATA, ROOT
from lib.say import did_you_mean, short, shown

RUNNERS = {"run", "grid", "report", "experiments"}  # of lib: they carry results about and decide none
INDEX = "90_compare_models"
COLUMNS = ("name", "source", "family", "revision", "grid", "parameters_millions", "disk_megabytes", "memory_megabytes",
           "licence", "note")  # fmt: skip
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
    models: Sequence[str] = (),
    notebooks: Sequence[str] = (),
    limit: int | None = None,
    settings: Sequence[str] = (),
    reports: str | Path | None = None,
) -> list[Job]:
    """The grid: chosen models x chosen notebooks.

    No ``models`` stands for those with ``grid`` = yes in ``data/models.csv``, no ``notebooks`` for every numbered one
    with the parameters ``model`` and ``out``. A model that is not in the list is a hub id or a folder. ``limit`` (None:
    as each notebook says) and ``settings`` (``key=value``; paths count from ``root``) go to the notebooks that have
    these parameters.
    Raises LitmusError for a notebook that does not exist, a setting that no notebook has, two models whose results
    would share a folder, and an empty grid.
    """
    known_models = listed(root)
    names = list(dict.fromkeys(models)) or [
        name for name, row in read_models(root / "data" / "models.csv").items() if row["grid"] == "yes"
    ]
    chosen = _notebooks(root, notebooks)
    if not names or not chosen:
        raise LitmusError(
            f"there is nothing to run: {len(names)} models (grid = yes), {len(chosen)} notebooks in {root}."
        )
    given = run.settings_of([*settings, *([] if limit is None else [f"limit={limit}"])])
    if given.get("limit", "").startswith("-"):
        raise LitmusError(f"the limit is a number of pairs (0 = all), and {shown(given['limit'])} is below 0.")
    known = {path: run.parameters_of(path) for path in chosen}
    for name in given:
        if not any(name in parameters for parameters in known.values()):
            every = dict.fromkeys(name for parameters in known.values() for name in parameters)
            raise LitmusError(f"no notebook of the grid has the parameter {shown(name)}{did_you_mean(name, every)}.")
    common = digest(_sources(root))
    code = {path: digest(code_behind(path)) for path in chosen}
    data = functools.cache(lambda datasets: digest(_published(root, datasets)))
    grid = []
    for model in names:
        for path, parameters in known.items():
            wanted = {name: value for name, value in given.items() if name in parameters}
            values = parameters | run.check_parameters(parameters, wanted)
            row = known_models.get(model)
            content: list[Path | str] = [
                common,
                code[path],
                data(values.get("datasets", "")),
                path,
                *_named(root, values),
            ]
            if row and row["source"] == "bundled":
                content += sorted(file for file in (DATA / "models" / model).glob("*") if file.is_file())
            weights = _folder_state(root / os.path.expanduser(row["source"] if row else model))
            grid.append(
                Job(
                    model=model,
                    notebook=_within(path, root),
                    out=_within(run.page(Path(reports or root / "reports"), model, path.stem), root),
                    settings=wanted,
                    megabytes=int(row["memory_megabytes"] or UNKNOWN_MEMORY) if row else UNKNOWN_MEMORY,
                    mark=digest([*content, json.dumps([model, row, weights, wanted])]),
                )
            )
    owner: dict[Path, str] = {}
    for job in grid:
        if owner.setdefault(job.out, job.model) != job.model:
            raise LitmusError(
                f"{owner[job.out]} and {job.model} would share the folder {job.out.parent}; rename one of them."
            )
    return grid


def listed(root: Path) -> dict[str, dict[str, str]]:
    """Models known by name, before any folder of that name: the bundled ones, and those that ``root`` lists."""
    bundled = {name: row for name, row in read_models(DATA / "models.csv").items() if row["source"] == "bundled"}
    return bundled | read_models(root / "data" / "models.csv")


def read_models(path: Path) -> dict[str, dict[str, str]]:
    """Rows of ``data/models.csv`` by name. Raises LitmusError, with the line, where it is not such a table."""
    if not path.is_file():
        raise LitmusError(f"{path} is missing; it lists the models of the grid.")
    rows: dict[str, dict[str, str]] = {}
    advice = "save it as CSV UTF-8, separated by commas"
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            if missing := [column for column in COLUMNS if column not in (reader.fieldnames or [])]:
                raise LitmusError(f"{path}, line 1: there is no column {', '.join(missing)}; {advice}.")
            for row in reader:
                line = reader.line_num
                if problem := _problem(row, rows):
                    raise LitmusError(f"{path}, line {line}: {problem}.")
                rows[row["name"]] = row
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise LitmusError(f"{path}, line {line}: this is not UTF-8 text; {advice}.") from error
    except csv.Error as error:
        raise LitmusError(f"{path}, after line {line}: this is not CSV ({error}); {advice}.") from error
    return rows


def _problem(row: Mapping[Any, Any], above: Mapping[str, Any]) -> str:
    """What is wrong with a row of models, in words; "" where nothing is."""
    if None in row or None in row.values():
        return f"this row has not {len(COLUMNS)} fields; put text with commas into quotation marks"
    name, memory = row["name"], row["memory_megabytes"]
    if not name.strip() or not row["source"].strip():
        return "the name or the source is empty"
    if name in above:
        return f"{shown(name)} is there twice; keep one row of it"
    if row["grid"] not in ("yes", "no"):
        return f"grid is yes or no, not {shown(repr(row['grid']))}"
    if memory and not memory.isdecimal():
        return f"memory_megabytes is a whole number or empty, not {shown(repr(memory))}"
    return ""


def _notebooks(root: Path, wanted: Sequence[str]) -> list[Path]:
    """Numbered notebooks that run once a model, in order; only the ``wanted`` ones where any is named."""
    paths = {path.stem: path for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.py"))}
    every = {name: path for name, path in paths.items() if {"model", "out"} <= run.parameters_of(path).keys()}
    for name in wanted:
        if name not in every:
            raise LitmusError(
                f"there is no notebook {shown(name)}{did_you_mean(name, every)} in the grid; "
                f"there are: {', '.join(every)}."
            )
    return [path for name, path in every.items() if not wanted or name in wanted]


def _within(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def _sources(root: Path) -> list[Path]:
    """Data that makes every result stale: items, lexicon, published numbers, verbs."""
    folders = [root / "data" / name for name in ("items", "lexicon", "reference")]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [*files, root / "data" / "verbs.csv"]


def code_behind(notebook: Path) -> list[Path]:
    """The files of ``lib`` that a notebook imports, itself or through others, but for those that only carry results about.

    A family of models may be imported only when it is needed, so that all of ``lib/models`` counts as soon as any of it does.
    """
    seen: dict[Path, None] = {}
    queue = [notebook]
    while queue:
        for name in _imported(queue.pop()):
            folder = ROOT / Path(*name.split(".")[:2])
            found = sorted(folder.glob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
            if folder.name not in RUNNERS:
                queue += [path for path in found if path.is_file() and path not in seen]
                seen |= dict.fromkeys(path for path in found if path.is_file())
    return sorted(seen)


def _imported(file: Path) -> Iterator[str]:
    """Names of the parts of ``lib`` that a file imports, at the top or later; of a notebook that is broken none."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "lib":
            yield from (f"lib.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lib."):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("lib."))


def _published(root: Path, datasets: str) -> list[Path]:
    """The published files that a run with this parameter ``datasets`` may read."""
    folder = published.find(root / os.path.expanduser(datasets) if datasets else "")
    return [folder / row.file for row in published.listed()] if folder else []


def _named(root: Path, values: Mapping[str, Any]) -> Iterator[Path]:
    """Files that the parameters ``items`` and ``verbs`` name, with all files of a folder."""
    for value in (values.get("items", ""), values.get("verbs", "")):
        for name in [value] if isinstance(value, str) else value:
            path = root / os.path.expanduser(str(name))
            if os.path.isdir(path) and name:
                yield from sorted(file for file in path.rglob("*") if file.is_file())
            elif name:
                yield path


def _folder_state(model: Path) -> list[Any]:
    """Names, sizes and times of change of a model's files, where it is a folder or a file: weights are too large to read."""
    file = os.path.isfile(model)  # Path.is_file raises for a name that is too long
    files = [model] if file else sorted(model.iterdir()) if os.path.isdir(model) else []
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def digest(parts: Iterable[Path | str]) -> str:
    """One checksum of texts and of files' names and contents; a file that is missing counts as missing."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            content = published.sha256(part) if os.path.isfile(part) else "missing"
            part = f"{part.name} {content}"
        total.update(f"{len(part)} {part}".encode())
    return total.hexdigest()


# ---- one call of the grid


@contextmanager
def locked(root: Path) -> Iterator[int]:
    """Hold the lock of the grids in ``root``; gives its file descriptor. Raises LitmusError when another one holds it.

    Snakemake gets the descriptor, so that the lock is held as long as it runs, even when this process is killed.
    """
    (root / ".snakemake").mkdir(exist_ok=True)
    with (root / ".snakemake" / "grid.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LitmusError(f"another grid is running in {root}; wait for it, or stop it.") from error
        yield lock.fileno()


def run_grid(root: Path, grid: list[Job], profile: str, together: int, choice: Mapping[str, Any], lock: int) -> int:
    """Run what is missing or stale of ``grid`` with snakemake; returns its exit code.

    ``choice``: the arguments of ``jobs`` that gave the grid; they go through a file, because snakemake reads words of
    its command line in a way of its own. ``lock`` stays open in snakemake. Raises LitmusError for a profile that does
    not exist, a place that cannot be written, and when snakemake ends before any job.
    """
    stale = [str(job.out) + ".json" for job in grid if _beside(root, job, ".json").exists() and not kept(root, job)]
    folder = Path(profile) if Path(profile).is_dir() else ROOT / "reports" / "profiles" / profile
    if not folder.is_dir():
        raise LitmusError(f"there is no profile {profile}: name default, slurm, or a folder with a config.yaml.")
    if profile == "slurm" and not shutil.which("sbatch"):
        raise LitmusError("the profile slurm needs a SLURM cluster, and there is no sbatch on this machine.")
    for job in grid:
        run.check_place(root / job.out)
    chosen = root / ".snakemake" / "grid.json"
    chosen.write_text(json.dumps(choice), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "reports" / "Snakefile")]
    command += ["--configfile", str(chosen)]
    command += ["--directory", str(root), "--workflow-profile", str(folder)]
    if profile == "default":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        command += ["--cores", str(cores), "--set-threads", f"execute={max(1, cores // together)}"]
        command += ["--resources", f"mem_mb={_megabytes()}", *([f"gpu={_gpus()}"] if _gpus() else [])]
    command += ["--forcerun", *stale] if stale else []
    before = stamps(root, grid)
    process = subprocess.Popen(command, process_group=0, pass_fds=[lock])
    try:
        code = process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)  # snakemake and the notebooks, whatever signal it was that came here
        process.wait()
        raise
    if code and stamps(root, grid) == before and (reason := _refusal(command)):
        raise LitmusError(f"snakemake ended before any notebook ran: {reason}.")
    return code


def _refusal(command: list[str]) -> str:
    """Why snakemake cannot even plan its work, in its words; "" when it can. Of a real run the profile hides them."""
    plan = [*command, "--dry-run", "--quiet", "host", "progress", "rules", "reason"]
    planned = subprocess.run(plan, capture_output=True, text=True)
    if not planned.returncode:
        return ""
    lines = [line.strip() for line in (planned.stdout + planned.stderr).splitlines() if line.strip()]
    start = next((index for index, line in enumerate(lines) if "rror" in line), 0)
    return " ".join(lines[start : start + 2]).rstrip(".") or f"exit code {planned.returncode}"


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


def stamps(root: Path, grid: list[Job]) -> dict[Path, int]:
    """Times of change of the executed notebooks that are there."""
    paths = [_beside(root, job, ".ipynb") for job in grid]
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


def state(root: Path, job: Job, old: Mapping[Path, int] | None = None) -> str:
    """In a word: done, failed, not run, or no page where only the page is missing.

    ``old``: stamps from before the grid ran. A notebook of that time was not run by this call: it counts where it is
    kept, and neither its failure nor its stale result does.
    """
    untouched = bool((old or {}).items() & stamps(root, [job]).items())
    if _beside(root, job, ".json").exists() and (not untouched or kept(root, job)):
        return "done" if _beside(root, job, ".html").exists() else "no page"
    if untouched:
        return "not run"
    return "failed" if _metadata(root, job).get("papermill", {}).get("exception") else "not run"


def render_failed(root: Path, grid: list[Job], old: Mapping[Path, int]) -> None:
    """Pages of the notebooks that failed: ``<out>.FAILED.html``."""
    for job in grid:
        if state(root, job, old) == "failed" and not _beside(root, job, ".FAILED.html").exists():
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


def _words(text: str, option: str) -> list[str]:
    """Names separated by spaces. Raises LitmusError where a quotation mark is not closed."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise LitmusError(f"{option} {shown(text)} cannot be read ({str(error).lower()}).") from error


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
        known, names = listed(root), _words(models, "--models")
        choice: dict[str, Any] = {
            "models": [
                name if name in known or not os.path.exists(name) else str(Path(name).resolve()) for name in names
            ],
            "notebooks": _words(notebooks, "--notebooks"),
            "limit": limit,
            "settings": settings or [],
            "reports": str(reports),
        }
        grid = jobs(root, **choice)
        if dry_run:
            for job in grid:
                print(f"{'is there' if kept(root, job) else 'to run':9}{job.model}  {job.notebook.stem}")
            raise typer.Exit(0)
        with locked(root) as lock:
            old = stamps(root, grid)
            code = run_grid(root, grid, profile, jobs_, choice, lock)
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
    for job in grid:
        print(f"{state(root, job, old):9}{job.model}  {job.notebook.stem}")
    if code and not any(state(root, job, old) == "failed" for job in grid):
        sys.stderr.write(f"error: snakemake ended with {code}; its log is in {short(root / '.snakemake' / 'log')}.\n")
    page = reports / "index.html"
    print(f"the index: {short(page)}" if page.exists() else f"no index: it could not be made by {INDEX}")
    raise typer.Exit(1 if code or index else 0)


if __name__ == "__main__":
    typer.run(main)
