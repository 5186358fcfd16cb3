"""Every notebook for every model, and the index that compares them: what ``make reports`` calls.

Snakemake runs the grid (``reports/Snakefile``): one failing notebook never hides another, and a second call runs only
what is missing or stale. What makes a result stale is decided here by content: a result is kept while its executed
notebook carries the mark of the same sources, items, model and settings.
"""

import ast
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from lib import listing, published, run
from lib.errors import LitmusError
from lib.paths import DATA, ROOT
from lib.say import did_you_mean, short, shown

RUNNERS = {"run", "grid", "report", "experiments"}  # of lib: they carry results about and decide none
INDEX = "90_compare_models"
UNKNOWN_MEMORY = 8000  # megabytes asked for a model of unknown size
UNKNOWN_MINUTES = 240  # asked of a cluster for a notebook with such a model
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
START_SECONDS, SECONDS_A_MILLION = (
    20,
    0.7,
)  # of a notebook: 135 million parameters on two cores, mean of twelve notebooks


class Job(NamedTuple):
    """One notebook for one model. Paths are relative to the root where they lie inside it."""

    model: str  # as lib.run takes it: model or model@revision
    notebook: Path
    out: Path  # of the results, without suffix
    settings: dict[str, str]  # further parameters
    megabytes: int  # memory
    minutes: int  # that a cluster is asked for
    millions: float | None  # of parameters, where they are known
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
    with the parameters ``model`` and ``out``. A model that is not in the list is a hub id or a folder, and
    ``model@revision`` one state of it, with results of its own. ``limit`` (None:
    as each notebook says) and ``settings`` (``key=value``; paths count from ``root``) go to the notebooks that have
    these parameters.
    Raises LitmusError for a notebook that does not exist, a setting that no notebook has, two models whose results
    would share a folder, and an empty grid.
    """
    known_models = listed(root)
    names = list(dict.fromkeys(models)) or [
        name for name, row in listing.read(root / "data" / "models.csv").items() if row["grid"] == "yes"
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
    for word in names:
        model, revision = listing.with_revision(word, known_models)
        row = known_models.get(model)
        folder = root / os.path.expanduser(row["source"] if row else model)
        folder = folder / revision if revision != listing.MAIN and os.path.isdir(folder) else folder
        weights = _folder_state(folder)
        megabytes, minutes, millions = needs(row, weights)
        for path, parameters in known.items():
            if model != word and "revision" not in parameters:
                raise LitmusError(f"{path.stem} has no parameter revision, which {shown(word)} needs.")
            wanted = {name: value for name, value in given.items() if name in parameters}
            values = parameters | run.check_parameters(parameters, wanted)
            _, named = run.revised({"model": word} | wanted, known_models)
            content: list[Path | str] = [
                common,
                code[path],
                data(values.get("datasets", "")),
                path,
                *_named(root, values),
            ]
            if row and row["source"] == "bundled":
                content += sorted(file for file in (DATA / "models" / model).glob("*") if file.is_file())
            grid.append(
                Job(
                    model=word,
                    notebook=_within(path, root),
                    out=_within(run.page(Path(reports or root / "reports"), model, path.stem, named), root),
                    settings=wanted,
                    megabytes=megabytes,
                    minutes=minutes,
                    millions=millions,
                    mark=digest([*content, json.dumps([word, row, weights, wanted])]),
                )
            )
    owner: dict[Path, str] = {}
    for job in grid:
        if owner.setdefault(job.out, job.model) != job.model:
            raise LitmusError(
                f"{owner[job.out]} and {job.model} would share the folder {job.out.parent}; rename one of them."
            )
    return grid


def needs(row: Mapping[str, str] | None, weights: Sequence[Any]) -> tuple[int, int, float | None]:
    """Megabytes of memory and minutes that a notebook may need with a model, and the model's millions of parameters.

    From its row of ``data/models.csv``, else from the size of its files on disk (four bytes a parameter, with room for the
    numbers in between); of a model of which nothing is known yet, generous guesses and None. Minutes are for a cluster,
    which stops what takes longer: a processor's hour for 135 million parameters, six for 1,500 million.
    """
    bytes_ = sum(size for name, size, _ in weights if name.endswith(WEIGHTS))
    millions = float(row["parameters_millions"] or 0) if row else bytes_ / 4e6
    megabytes = int(row["memory_megabytes"] or 0) if row else 0
    return (
        megabytes or (1000 + round(bytes_ / 4e5) if bytes_ else UNKNOWN_MEMORY),
        30 + round(0.22 * millions) if millions else UNKNOWN_MINUTES,
        millions or None,
    )


def listed(root: Path) -> dict[str, dict[str, str]]:
    """Models known by name, before any folder of that name: the bundled ones, and those that ``root`` lists."""
    bundled = {name: row for name, row in listing.read().items() if row["source"] == "bundled"}
    return bundled | listing.read(root / "data" / "models.csv")


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


def _is_of_a_cluster(profile: Path) -> bool:
    """True where a profile of snakemake names an executor, which takes the jobs elsewhere."""
    import yaml

    settings = profile / "config.yaml"
    return settings.is_file() and "executor" in (yaml.safe_load(settings.read_text(encoding="utf-8")) or {})


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
    if " " in sys.executable and _is_of_a_cluster(folder):  # the executor puts the path into a line of shell as it is
        raise LitmusError(
            "jobs of a cluster cannot start a Python whose path has a space; make the environment in another folder."
        )
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
        _cancel_on_cluster(_last_log(root))
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


ENDED = re.compile(r"""SLURM-job\ '\d+'\ failed,\ SLURM\ status\ is:\ '(?P<status>\w+)'.*\n  # as the executor for SLURM logs it
    (?:.*\n)*?\s+output:\ (?P<out>.+?)\.json,.*\n\s+log:\ .*?,\ (?P<log>.+?\.log)\b""", re.VERBOSE)  # fmt: skip
REFUSED = re.compile(
    r"SLURM sbatch failed. The error message was '(?P<why>[^\n]*)'(?:.*\n)*?\s+output: (?P<out>.+?)\.json,"
)
ADVICE = {
    "TIMEOUT": "at its time limit; ask for more by runtime in the profile",
    "OUT_OF_MEMORY": "for want of memory; ask for more by mem_mb in the profile, or in data/models.csv",
    "CANCELLED": "because somebody cancelled it",
    "NODE_FAIL": "because its node failed; run the grid again",
}


def cluster_reasons(log: str) -> dict[str, str]:
    """Why jobs of a SLURM cluster left no results, in words, by their ``out``: read in a log of snakemake."""
    reasons = {found["out"]: f"SLURM took no job of it ({found['why'].strip()})" for found in REFUSED.finditer(log)}
    for found in ENDED.finditer(log):
        status = found["status"]
        advice = ADVICE.get(status, f"and its log says why: {found['log']}")
        reasons[found["out"]] = f"SLURM ended it ({status}) {advice}"
    return reasons


def _cancel_on_cluster(log: str) -> None:
    """Cancel whatever a stopped run still has on a SLURM cluster.

    snakemake does so too, but for jobs whose state it is asking for, or whose number it is waiting for, just then.
    """
    if (name := re.search(r"SLURM run ID: (\S+)", log)) and shutil.which("scancel"):
        subprocess.run(["scancel", "--name", name[1]], capture_output=True)


def _last_log(root: Path) -> str:
    """What snakemake logged in its last run; "" where it did not."""
    logs = sorted((root / ".snakemake" / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
    return logs[-1].read_text(encoding="utf-8", errors="replace") if logs else ""


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


# ---- what a call would do, and did


class Estimate(NamedTuple):
    """Seconds that a notebook may take (None: nobody can say), and from what that was guessed."""

    seconds: float | None
    basis: str


def recorded_seconds(reports: Path) -> dict[tuple[str, str], float]:
    """Seconds that earlier runs took, by folder of the results and notebook, as their results say."""
    found = {}
    for path in sorted(reports.glob("*/*.json")):
        try:
            seconds = json.loads(path.read_text(encoding="utf-8"))["provenance"]["seconds"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(seconds, int | float):
            found[path.parent.name, path.stem] = float(seconds)
    return found


def estimate(job: Job, seconds: Mapping[tuple[str, str], float], millions: Mapping[str, float]) -> Estimate:
    """How long a job may take: as long as last time, else as others took in relation to their size, else by size alone.

    ``seconds`` as from ``recorded_seconds``; ``millions``: parameters of the models whose results lie in a folder.
    """
    if known := seconds.get((job.out.parent.name, job.notebook.stem)):
        return Estimate(known, "its last run")
    if job.millions is None:
        return Estimate(None, "size not known")
    scaled = [
        START_SECONDS + max(took - START_SECONDS, 1) * job.millions / millions[folder]
        for (folder, notebook), took in seconds.items()
        if notebook == job.notebook.stem and folder in millions
    ]
    if scaled:
        return Estimate(statistics.median(scaled), "other models, by size")
    return Estimate(START_SECONDS + SECONDS_A_MILLION * job.millions, "its size alone")


def plan(root: Path, grid: list[Job], reports: Path, together: int) -> str:
    """What a call would run, what is fresh, and about how long it would take, in lines."""
    from lib.results import safe_name

    sizes = {
        safe_name(name): float(row["parameters_millions"])
        for name, row in listed(root).items()
        if row["parameters_millions"]
    }
    sizes |= {job.out.parent.name: job.millions for job in grid if job.millions}
    seconds = recorded_seconds(reports)
    wide = max(len(job.model) for job in grid)
    lines, waiting = [], []
    for job in grid:
        if kept(root, job):
            lines.append(f"{'fresh':9}{job.model:{wide}}  {job.notebook.stem}")
            continue
        guess = estimate(job, seconds, sizes)
        waiting.append(guess)
        words = f"about {duration(guess.seconds)} ({guess.basis})" if guess.seconds else f"no estimate ({guess.basis})"
        lines.append(f"{'to run':9}{job.model:{wide}}  {job.notebook.stem:24}{words}")
    if not waiting:
        return "\n".join([*lines, f"nothing to run: {counted(len(grid), 'result')} fresh"])
    known = [guess.seconds for guess in waiting if guess.seconds]
    total = f"to run: {len(waiting)} of {len(grid)}"
    if known:
        at_once = f", {duration(sum(known) / together)} with {together} at a time" if together > 1 else ""
        total += f", about {duration(sum(known))} one after another{at_once}"
    if len(known) < len(waiting):
        total += f"; without an estimate: {len(waiting) - len(known)}"
    basis = ", ".join(f"{basis} {times}" for basis, times in Counter(guess.basis for guess in waiting).items())
    return "\n".join(
        [*lines, total, f"An estimate, from: {basis}. Other settings or another machine take other times."]
    )


def duration(seconds: float) -> str:
    """Seconds as people say them: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def counted(number: int, noun: str) -> str:
    """1 result is, 2 results are."""
    return f"{number} {noun} is" if number == 1 else f"{number} {noun}s are"


def summary(root: Path, grid: list[Job], old: Mapping[Path, int], pages: int, reasons: Mapping[str, str]) -> str:
    """What a call did: a line for each notebook that ran or should have, and how many results were fresh.

    ``old``: stamps from before; ``pages``: how many were rendered; ``reasons``: why a job ended without results, by its
    ``out``.
    """
    lines, fresh = [], 0
    for job in grid:
        now = state(root, job, old)
        untouched = bool(old.items() & stamps(root, [job]).items())
        if untouched and now == "done":
            fresh += 1
            continue
        why = reasons.get(str(job.out), "") if now == "not run" else ""
        lines.append(f"{now:9}{job.model}  {job.notebook.stem}" + (f": {why}" if why else ""))
    if not lines:
        again = f", {counted(pages, 'page').removesuffix(' is').removesuffix(' are')} rendered again" if pages else ""
        return f"nothing to {'run' if pages else 'do'}: {counted(fresh, 'result')} fresh{again}"
    return "\n".join([*lines, f"{counted(fresh, 'further result')} fresh"] if fresh else lines)


def stamps(root: Path, grid: list[Job], suffix: str = ".ipynb") -> dict[Path, int]:
    """Times of change of the executed notebooks (or pages: ``.html``) that are there."""
    paths = [_beside(root, job, suffix) for job in grid]
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


def _absolute(word: str, known: Mapping[str, Mapping[str, str]]) -> str:
    """A folder or file as a path that holds from anywhere, with its revision; any other name as it is."""
    model, revision = listing.with_revision(word, known)
    if model in known or not os.path.exists(os.path.expanduser(model)):
        return word
    path = str(Path(model).expanduser().resolve())
    return path if model == word else f"{path}@{revision}"


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
            print(plan(root, grid, reports, jobs_ if profile == "default" else 1))
            raise typer.Exit(0)
        with locked(root) as lock:
            old, old_pages = stamps(root, grid), stamps(root, grid, ".html")
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
    pages = len(set(stamps(root, grid, ".html").items()) - set(old_pages.items()))
    print(summary(root, grid, old, pages, {} if profile == "default" else cluster_reasons(_last_log(root))))
    if code and not any(state(root, job, old) == "failed" for job in grid):
        sys.stderr.write(f"error: snakemake ended with {code}; its log is in {short(root / '.snakemake' / 'log')}.\n")
    page = reports / "index.html"
    print(f"the index: {short(page)}" if page.exists() else f"no index: it could not be made by {INDEX}")
    raise typer.Exit(1 if code or index else 0)


if __name__ == "__main__":
    typer.run(main)
