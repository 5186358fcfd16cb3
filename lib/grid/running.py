"""One call of the grid: snakemake runs what is missing or stale, failed notebooks get their pages, the index is made."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lib import run
from lib.errors import LitmusError
from lib.grid import cluster
from lib.grid.jobs import Job, within
from lib.grid.marks import digest
from lib.grid.state import beside, kept, stamps, state
from lib.paths import ROOT
from lib.say import shown

INDEX = "90_compare_models"


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

    ``choice``: the arguments of ``jobs`` that gave the grid, and the ``timeout`` of a cell in seconds where it is not
    that of ``lib.run``; they go through a file, because snakemake reads words of its command line in a way of its own.
    ``lock`` stays open in snakemake. A job whose results cannot be written (``unwritable``) is left out, and makes the
    exit code 1. Raises LitmusError for a profile that does not exist, where nothing can be written, and when snakemake
    ends before any job.
    """
    folder = profile_folder(profile)
    left_out = unwritable(root, grid)
    grid = [job for job in grid if job.out not in left_out]
    clear(root, grid)
    stale = [f"{job.out}.json" for job in grid if not kept(root, job)]  # even one that is missing, beside its page
    chosen = root / ".snakemake" / "grid.json"
    chosen.write_text(json.dumps({**choice, "left_out": [str(out) for out in left_out]}), encoding="utf-8")
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
        cluster.cancel(cluster.last_log(root))
        raise
    if code and stamps(root, grid) == before and (reason := _refusal(command)):
        raise LitmusError(f"snakemake ended before any notebook ran: {reason}.")
    return code or (1 if left_out else 0)


def profile_folder(profile: str) -> Path:
    """The folder of a profile of snakemake. Raises LitmusError where there is none, or where this machine cannot use it."""
    folder = Path(profile) if os.path.isdir(profile) else ROOT / "reports" / "profiles" / profile
    if not os.path.isfile(folder / "config.yaml"):
        raise LitmusError(f"there is no profile {shown(profile)}: name default, slurm, or a folder with a config.yaml.")
    if profile == "slurm" and not shutil.which("sbatch"):
        raise LitmusError("the profile slurm needs a SLURM cluster, and there is no sbatch on this machine.")
    if " " in sys.executable and cluster.is_of_a_cluster(
        folder
    ):  # the executor puts the path into a line of shell as it is
        raise LitmusError(
            "jobs of a cluster cannot start a Python whose path has a space; make the environment in another folder."
        )
    return folder


def unwritable(root: Path, grid: list[Job], make: bool = True) -> list[Path]:
    """The ``out`` of jobs that have to run and whose results cannot be written, after one sentence a model on stderr.

    ``make`` as in ``run.check_place``. Raises LitmusError with that sentence where it is so for every job.
    """
    found: dict[Path, tuple[str, str]] = {}
    for job in grid:
        try:
            if not kept(root, job):
                run.check_place(root / job.out, make)
        except LitmusError as error:
            found[job.out] = job.model, str(error)
    sentences = dict(reversed(found.values()))  # the first of each model
    if len(found) == len(grid):
        raise LitmusError(next(sentence for _, sentence in found.values()))
    sys.stderr.writelines(f"error: {sentence}\n" for sentence in reversed(sentences.values()))
    return list(found)


def clear(root: Path, grid: list[Job]) -> None:
    """Remove pipes, devices and links to nothing that lie where results belong: whoever opens one may wait for ever."""
    for job in grid:
        for path in (beside(root, job, suffix) for suffix in (".ipynb", *run.RESULTS)):
            if os.path.lexists(path) and not path.is_file() and not path.is_dir():
                path.unlink()


def _refusal(command: list[str]) -> str:
    """Why snakemake cannot even plan its work, in its words; "" when it can. Of a real run the profile hides them."""
    plan = [*command, "--dry-run", "--quiet", "host", "progress", "rules", "reason"]
    planned = subprocess.run(plan, capture_output=True, text=True)
    if not planned.returncode:
        return ""
    lines = [line.strip() for line in (planned.stdout + planned.stderr).splitlines() if line.strip()]
    start = next((index for index, line in enumerate(lines) if "rror" in line), 0)
    return " ".join(lines[start : start + 2]).rstrip(".") or f"exit code {planned.returncode}"


def render_failed(root: Path, grid: list[Job], old: Mapping[Path, int]) -> None:
    """Pages of the notebooks that failed: ``<out>.FAILED.html``."""
    for job in grid:
        if state(root, job, old) == "failed" and not beside(root, job, ".FAILED.html").exists():
            words = [sys.executable, "-m", "lib.report", str(beside(root, job, ".ipynb"))]
            subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL)


def build_index(root: Path, reports: Path) -> int:
    """Run ``90_compare_models`` over whatever is in ``reports`` and render it, unless nothing has changed; 0 or 1."""
    notebook = root / "notebooks" / f"{INDEX}.py"
    if not notebook.exists():
        return 0
    found = [
        path for suffix in (*run.WRITTEN, ".ipynb", ".FAILED.html") for path in sorted(reports.glob(f"*/*{suffix}"))
    ]
    results = [path for path in found if path.suffix in (".json", ".parquet")]
    code = sorted(path for path in (ROOT / "lib").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    notebooks = sorted((root / "notebooks").glob("*.py"))
    seen = [str(path.relative_to(reports)) for path in found]
    mark = digest([*seen, *results, *code, *notebooks, root / "data" / "models.csv"])
    stamp = reports / ".index"
    if stamp.is_file() and stamp.read_text() == mark and (reports / "index.html").exists():
        return 0
    where = ["--set", f"reports={within(reports, root)}", "--out", str(within(reports / "index", root))]
    words = [sys.executable, "-m", "lib.run", str(within(notebook, root)), *where]
    failed = subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL).returncode
    words = [sys.executable, "-m", "lib.report", str(reports / "index.ipynb")]
    failed = subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL).returncode or failed
    if not failed:
        stamp.write_text(mark)
    return 1 if failed else 0


def _megabytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _gpus() -> int:
    """Accelerators of this machine: each notebook takes one."""
    return 1 if sys.platform == "darwin" else len(list(Path("/dev").glob("nvidia[0-9]*")))
