"""What a notebook leaves behind: a table of items, a summary, and where they come from.

PATH.parquet and PATH.csv hold one row an item, PATH.json the summary with its provenance. Pages, the comparison of models
and outside tools read these and nothing else.
"""

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib.paths import ROOT

STARTED = time.time()  # notebooks import this module in their first code cell
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "scipy", "altair")


def safe_name(model: str) -> str:
    """A model's name as a folder name: the last two parts of a path, anything odd replaced."""
    parts = [part for part in re.split(r"[/\\]", model) if part not in ("", ".", "..")]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "--".join(parts[-2:])).strip(".-") or "model"


def write(
    out: str,
    *,
    notebook: str,
    title: str,
    items: pd.DataFrame,
    summary: pd.DataFrame,
    headline: Mapping[str, Any],
    data: Mapping[str, Any],
    choices: Mapping[str, Any],
    sources: Sequence[str],
    provenance: Mapping[str, Any],
) -> Path | None:
    """Write the results beside each other under the path ``out`` (without suffix); nothing when ``out`` is empty.

    ``items`` and ``summary`` get the columns model, revision and diagnostic. The JSON is written last, so that whoever
    finds it finds the rest. Returns its path.
    """
    if not out:
        return None
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    who = {key: provenance["parameters"].get(key, "") for key in ("model", "revision")} | {"diagnostic": notebook}
    items = pd.concat([pd.DataFrame(who, index=items.index), items], axis=1)
    _replace(path, ".parquet", lambda target: items.to_parquet(target, index=False))
    _replace(path, ".csv", lambda target: items.map(_harmless).to_csv(target, index=False))
    content = {
        "notebook": notebook, "title": title, "model": who["model"], "revision": who["revision"],
        "family": provenance.get("family", ""), "choices": dict(choices), "data": dict(data), "headline": dict(headline),
        "summary": summary.to_dict(orient="records"), "sources": list(sources), "provenance": dict(provenance),
    }  # fmt: skip
    text = json.dumps(_plain(content), ensure_ascii=False, indent=1, allow_nan=False)
    _replace(path, ".json", lambda target: target.write_text(text, encoding="utf-8"))
    return path.with_name(path.name + ".json")


def read(path: Path) -> dict[str, Any]:
    """The JSON of one result."""
    return json.loads(path.read_text(encoding="utf-8"))


def _replace(path: Path, suffix: str, write_to: Any) -> None:
    """Write to a temporary neighbour, then rename: no reader ever sees half a file."""
    target = path.with_name(path.name + suffix)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    write_to(temporary)
    os.replace(temporary, target)


def _harmless(cell: Any) -> Any:
    """Text that a spreadsheet would run as a formula, with an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _plain(value: Any) -> Any:
    """numpy and pandas values as JSON knows them; NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value != value:
        return None
    return value


def provenance(notebook: str, names: Mapping[str, Any], model: Any = None, store: Any = None) -> dict[str, Any]:
    """Where numbers come from: date, seconds so far, code, versions, device, parameters, and what was overridden.

    ``names``: the notebook's ``globals()``; the values of its parameters are taken from there.
    """
    from lib.run import notebook_path, parameters_of

    parameters = {key: names[key] for key in parameters_of(notebook_path(notebook)) if key in names}
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - STARTED, 1),
        **git_state(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
        "parameters": parameters,
        "overridden": [name for name in os.environ.get("LITMUS_OVERRIDDEN", "").split(",") if name],
    }
    if model is not None:
        found |= {"family": model.family, "device": str(model.device), "identity": model.identity}
    if store is not None:
        found["store_megabytes"] = round(store.megabytes, 1)
    return found


def provenance_table(found: Mapping[str, Any]) -> pd.DataFrame:
    """Provenance as a small table for the end of a notebook."""
    flat = {}
    for key, value in found.items():
        flat[key] = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, Mapping) else value
    return pd.DataFrame({"": [str(value) for value in flat.values()]}, index=pd.Index(flat, name="provenance"))


def git_state() -> dict[str, Any]:
    """The commit of the code and whether tracked files differ from it; empty where there is no git."""
    try:
        commit, changes = (_git(*words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")))
    except (OSError, subprocess.CalledProcessError):
        return {"git_commit": "", "git_dirty": False}
    return {"git_commit": commit[:12], "git_dirty": bool(changes)}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def checksums(paths: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files by their name, as ``data.sha256`` of a result."""
    return {Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths}
