"""What a call of the grid would do, and did, in lines for the person who called."""

import statistics
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lib.grid.jobs import Job, listed
from lib.grid.state import kept, stamps, state
from lib.results import safe_name, whole_json

START_SECONDS, SECONDS_A_MILLION = 20, 0.7
"""Of a notebook, and of a million parameters in it: 135 million on two cores, mean of twelve notebooks."""


class Estimate(NamedTuple):
    """Seconds that a notebook may take (None: nobody can say), and from what that was guessed."""

    seconds: float | None
    basis: str


def recorded_seconds(reports: Path) -> dict[tuple[str, str], float]:
    """Seconds that earlier runs took, by folder of the results and notebook, as their results say."""
    found = {}
    for path in sorted(reports.glob("*/*.json")):
        try:
            seconds = whole_json(path)["provenance"]["seconds"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(seconds, int | float) and 0 <= seconds < 1e9:
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
        total += f", about {duration(sum(known))}"
        if together > 1 and len(known) > 1:
            at_once = max(sum(known) / together, *known)
            total += f" one after another, {duration(at_once)} with {together} at a time"
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
