"""The published data sets: fetched from pinned commits, checked by checksum, never part of this repository.

``data/datasets.csv`` lists every file with its address, checksum, licence and citation; ``python -m lib.published``
(``make data``) puts them under ``data/published/``, in the layout of the column ``file``.
"""

import csv
import hashlib
import os
import shutil
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import typer

from lib.errors import LitmusError
from lib.paths import DATA
from lib.say import did_you_mean

PUBLISHED = DATA / "published"
ATTEMPTS = 3  # of one file: each goes on where the last one stopped
TIMEOUT = 30  # seconds without a byte


class Published(NamedTuple):
    """One row of ``data/datasets.csv``: a file of a published set."""

    set: str
    file: str
    url: str
    sha256: str
    licence: str
    citation: str


def listed(path: Path = DATA / "datasets.csv") -> list[Published]:
    """Every published file this project knows, in the order of the list."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [Published(**row) for row in csv.DictReader(lines)]


def find(datasets: str | Path = "") -> Path | None:
    """The folder of published data to use, or None where there is none.

    The argument comes first, then the environment variable ``LITMUS_DATASETS``, then ``data/published`` if it holds a
    set. Raises LitmusError for a named folder that does not exist or holds none of the published sets.
    """
    named = str(datasets) or os.environ.get("LITMUS_DATASETS", "")
    if not named:
        return PUBLISHED if sets_in(PUBLISHED) else None
    folder = Path(os.path.expanduser(named))
    origin = "the parameter datasets" if str(datasets) else "the environment variable LITMUS_DATASETS"
    if not os.path.isdir(folder):  # Path.is_dir raises for a name that is too long
        raise LitmusError(f"{folder}, named by {origin}, is not a folder; name one that holds the published sets.")
    if not sets_in(folder):
        sets = ", ".join(dict.fromkeys(row.set for row in listed()))
        raise LitmusError(
            f"{folder}, named by {origin}, holds none of the published sets ({sets}); fill it by make data."
        )
    return folder


def sets_in(folder: Path) -> list[str]:
    """Names of the published sets of which ``folder`` holds at least one file."""
    return sorted({row.set for row in listed() if (folder / row.file).is_file()})


def sha256(path: Path) -> str:
    """Checksum of a file's content, as hexadecimal digits."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def changed(files: Iterable[Path], folder: Path) -> list[Path]:
    """Those of ``files`` (in ``folder``, in the layout of the list) whose content is not the published one."""
    known = {row.file: row.sha256 for row in listed()}
    return [file for file in files if sha256(folder / file) != known.get(file.as_posix())]


class Unreachable(Exception):
    """The host itself does not answer, so that no other file of it can be had either."""


def fetch(row: Published, folder: Path, mirror: Path | None = None) -> str:
    """Put one published file under ``folder`` and return "", or why it could not be had, in words.

    A file that is there with the right checksum is left alone. What arrives goes to ``<file>.part``, which a later call
    continues, and gets its name only once its checksum is right. Raises Unreachable when the host cannot be reached.
    """
    target = folder / row.file
    if target.is_file() and sha256(target) == row.sha256:
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    if mirror and not (mirror / row.file).is_file():
        return f"not in {mirror}"
    continued = part.exists()
    if mirror:
        shutil.copyfile(mirror / row.file, part)
    elif problem := _download(row.url, part):
        return problem
    found = sha256(part)
    if found == row.sha256:
        os.replace(part, target)
        return ""
    part.unlink()
    if continued and not mirror:  # the beginning may have been of something else: once more from the start
        return fetch(row, folder)
    return f"what came has another checksum than data/datasets.csv says ({found[:12]}..., not {row.sha256[:12]}...)"


def _download(url: str, part: Path) -> str:
    """Fetch ``url`` into ``part``, continuing what is there; "" or why not."""
    problem = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(0.2 * attempt)
        try:
            if _receive(url, part):
                return ""
            problem = "the connection broke off; what came is kept, and the next call goes on from there"
        except urllib.error.HTTPError as error:
            if error.code == 416:  # nothing left to ask for: a complete part, or one that is longer than the file
                part.unlink(missing_ok=True)
                continue
            problem = f"the server answers {error.code} {error.reason}"
            if error.code < 500:
                return problem
        except urllib.error.URLError as error:
            raise Unreachable(f"{_host(url)} cannot be reached ({error.reason})") from error
        except (OSError, HTTPException) as error:
            problem = f"the connection broke off ({error}); what came is kept, and the next call goes on from there"
    return problem


def _receive(url: str, part: Path) -> bool:
    """Append what is missing to ``part``; True when all that the server announced has come."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        continues = answer.status == 206
        announced = answer.headers.get("Content-Length")
        with part.open("ab" if continues else "wb") as content:
            before = content.tell()
            shutil.copyfileobj(answer, content)
            return announced is None or content.tell() - before == int(announced)


def _host(url: str) -> str:
    return urlsplit(url).netloc


def get(
    rows: list[Published], folder: Path = PUBLISHED, mirror: Path | None = None, only_check: bool = False
) -> dict[str, str]:
    """Fetch (or only check) ``rows``; returns the files that are not right in ``folder``, each with the reason."""
    from tqdm import tqdm

    missing: dict[str, str] = {}
    gone: dict[str, str] = {}  # hosts that do not answer, and why
    for row in tqdm(rows, unit="file", desc="published data", disable=only_check):
        if only_check:
            problem = _state(row, folder)
        elif _host(row.url) in gone and not mirror and _state(row, folder):
            problem = gone[_host(row.url)]
        else:
            try:
                problem = fetch(row, folder, mirror)
            except Unreachable as error:
                problem = gone[_host(row.url)] = str(error)
        if problem:
            missing[row.file] = problem
    return missing


def _state(row: Published, folder: Path) -> str:
    """ "" when the file is right in ``folder``, else what is wrong."""
    path = folder / row.file
    if not path.is_file():
        return "not there"
    return "" if sha256(path) == row.sha256 else "its content is not the published one (checksum)"


def chosen(only: str = "") -> list[Published]:
    """Rows of the sets named in ``only`` (comma separated; "" = all); LitmusError for a set that is not listed."""
    rows = listed()
    known = list(dict.fromkeys(row.set for row in rows))
    wanted = [name.strip() for name in only.split(",") if name.strip()] or known
    for name in wanted:
        if name not in known:
            raise LitmusError(
                f"there is no published set {name}{did_you_mean(name, known)}; there are {', '.join(known)}."
            )
    return [row for row in rows if row.set in wanted]


def summary(rows: list[Published], missing: dict[str, str], folder: Path) -> str:
    """What is there, set by set with its licence, and what is missing and why, in plain lines."""
    lines = []
    for name, total in Counter(row.set for row in rows).items():
        lacking = sum(row.set == name and row.file in missing for row in rows)
        licence = next(row.licence for row in rows if row.set == name)
        lines.append(f"{name}: {total - lacking} of {total} files (licence: {licence})")
    for reason, number in Counter(missing.values()).items():
        files = [file for file, why in missing.items() if why == reason]
        shown = ", ".join(files[:3]) + (f" and {number - 3} more" if number > 3 else "")
        lines.append(f"missing: {shown}: {reason}")
    if missing:
        lines.append(
            f"{len(missing)} of {len(rows)} files are missing in {folder}; run it again to go on where it stopped,"
        )
        lines.append("or take them from a copy in the same layout: make data FROM=folder")
    else:
        lines.append(f"all {len(rows)} files are in {folder}")
    return "\n".join(lines)


def main(
    source: Annotated[
        Path | None, typer.Option("--from", help="a local copy in the same layout, in place of the network")
    ] = None,
    only: Annotated[str, typer.Option(help="sets to fetch, comma separated, e.g. refining-tse,blimp")] = "",
    check: Annotated[bool, typer.Option("--check", help="fetch nothing, say what is there")] = False,
    into: Annotated[
        Path | None, typer.Option(help="the folder to fill, or to check; else LITMUS_DATASETS, else data/published")
    ] = None,
) -> None:
    """Fetch the published data sets, checked by checksum; a second call fetches only what is missing."""
    into = into or Path(os.path.expanduser(os.environ.get("LITMUS_DATASETS") or PUBLISHED))
    try:
        rows = chosen(only)
        if source and not source.is_dir():
            raise LitmusError(f"{source} is not a folder; --from takes a copy of the published sets.")
        missing = get(rows, into, source, check)
    except LitmusError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(summary(rows, missing, into))
    raise typer.Exit(1 if missing else 0)


if __name__ == "__main__":
    typer.run(main)
