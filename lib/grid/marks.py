"""What decides a result: the code, data, model and settings behind it, as one checksum. A result of another one is stale."""

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lib import published
from lib.paths import ROOT

RUNNERS = {"run", "grid", "report", "experiments"}  # of lib: they carry results about and decide none


def digest(parts: Iterable[Path | str]) -> str:
    """One checksum of texts and of files' names and contents; a file that is missing counts as missing."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            content = published.sha256(part) if os.path.isfile(part) else "missing"
            part = f"{part.name} {content}"
        total.update(f"{len(part)} {part}".encode())
    return total.hexdigest()


def common_data(root: Path) -> list[Path]:
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


def published_files(root: Path, datasets: str) -> list[Path]:
    """The published files that a run with this parameter ``datasets`` may read."""
    folder = published.find(root / os.path.expanduser(datasets) if datasets else "")
    return [folder / row.file for row in published.listed()] if folder else []


def named_files(root: Path, values: Mapping[str, Any]) -> Iterator[Path]:
    """Files that the parameters ``items`` and ``verbs`` name, with all files of a folder."""
    for value in (values.get("items", ""), values.get("verbs", "")):
        for name in [value] if isinstance(value, str) else value:
            path = root / os.path.expanduser(str(name))
            if os.path.isdir(path) and name:
                yield from sorted(file for file in path.rglob("*") if file.is_file())
            elif name:
                yield path


def folder_state(model: Path) -> list[Any]:
    """Names, sizes and times of change of a model's files, where it is a folder or a file: weights are too large to read."""
    file = os.path.isfile(model)  # Path.is_file raises for a name that is too long
    files = [model] if file else sorted(model.iterdir()) if os.path.isdir(model) else []
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
