"""What a grid has: which results are there, which are kept, and what became of each job."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lib.grid.jobs import Job
from lib.results import damage, whole_json


def kept(root: Path, job: Job) -> bool:
    """True when there is a whole result, and it was made from what the grid would make it from now."""
    mark = _metadata(root, job).get("litmus", {}).get("mark")
    return mark == job.mark and not damage(beside(root, job, ".json"))


def state(root: Path, job: Job, old: Mapping[Path, int] | None = None) -> str:
    """In a word: done, failed, not run, or no page where only the page is missing.

    ``old``: stamps from before the grid ran. A notebook of that time was not run by this call: it counts where it is
    kept, and neither its failure nor its stale result does.
    """
    untouched = bool((old or {}).items() & stamps(root, [job]).items())
    if kept(root, job) if untouched else not damage(beside(root, job, ".json")):
        return "done" if beside(root, job, ".html").exists() else "no page"
    if untouched:
        return "not run"
    return "failed" if _metadata(root, job).get("papermill", {}).get("exception") else "not run"


def stamps(root: Path, grid: list[Job], suffix: str = ".ipynb") -> dict[Path, int]:
    """Times of change of the executed notebooks (or pages: ``.html``) that are there."""
    paths = [beside(root, job, suffix) for job in grid]
    return {
        path: path.stat().st_mtime_ns for path in paths if os.path.exists(path)
    }  # Path.exists raises for a long name


def _metadata(root: Path, job: Job) -> dict[str, Any]:
    """Metadata of a job's executed notebook; none where it is missing or broken."""
    try:
        found = whole_json(beside(root, job, ".ipynb"))["metadata"]
        return {name: part for name, part in found.items() if isinstance(part, dict)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def beside(root: Path, job: Job, suffix: str) -> Path:
    """One of a job's files."""
    return root / job.out.parent / f"{job.out.name}{suffix}"
