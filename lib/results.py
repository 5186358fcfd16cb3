"""What a notebook leaves behind: a table of items, a summary, and where they come from.

PATH.parquet and PATH.csv hold one row an item, PATH.json the summary with its provenance. Pages, the comparison of models
and outside tools read these and nothing else.
"""

import csv
import datetime
import errno
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib import listing
from lib.errors import LitmusError
from lib.paths import ROOT

STARTED = time.monotonic()  # notebooks import this in their first code cell; a clock that is set back changes nothing
HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?", re.ASCII)
TABLES = ("parquet", "csv")  # of items, beside the JSON
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "scipy", "altair")


def safe_name(model: str) -> str:
    """A model's name as a folder name: ``gpt2``, ``org--name``; a path by its last two parts and a digest of the whole.

    A name is a path where it cannot be a hub id, or where it has a slash and something lies there: as in loading a model.
    """
    parts = [part for part in re.split(r"[/\\]", model) if part not in ("", ".", "..")]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "--".join(parts[-2:])).strip(".-") or "model"
    unchanged = name == model.replace("/", "--")
    if unchanged and HUB_ID.fullmatch(model) and not ("/" in model and os.path.exists(model)):
        return name
    return f"{name}--{hashlib.sha256(os.path.abspath(model).encode(errors='surrogatepass')).hexdigest()[:8]}"


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

    ``items`` gets the columns model, revision and diagnostic. All files are made before the first is put in place, the JSON
    last: no reader sees half a file, and whoever finds the JSON finds the rest. It holds the checksums of the tables
    (``tables``), by which a damaged one is known. Returns its path.
    """
    if not out:
        return None
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    who = {key: provenance["parameters"].get(key, "") for key in ("model", "revision")} | {"diagnostic": notebook}
    items = items.drop(columns=list(who), errors="ignore")
    items = pd.concat([pd.DataFrame(who, index=items.index), items.apply(_uniform)], axis=1)
    content = {
        "notebook": notebook, "title": title, "model": who["model"], "revision": who["revision"],
        "family": provenance.get("family", ""), "choices": dict(choices), "data": dict(data), "headline": dict(headline),
        "summary": summary.to_dict(orient="records"), "sources": list(sources), "provenance": dict(provenance),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        made = Path(folder)
        items.to_parquet(made / "parquet", index=False)
        # All text in quotation marks: a carriage return in it would otherwise end its row.
        items.map(_harmless).to_csv(made / "csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
        content["tables"] = checksums(made / suffix for suffix in TABLES)
        text = json.dumps(_plain(content), ensure_ascii=False, indent=1, allow_nan=False)
        (made / "json").write_text(text, encoding="utf-8")
        for suffix in (*TABLES, "json"):
            os.replace(made / suffix, path.with_name(f"{path.name}.{suffix}"))
    return path.with_name(f"{path.name}.json")


def read(path: Path) -> dict[str, Any]:
    """The JSON of one result. Raises LitmusError when the file is no such thing."""
    try:
        found = whole_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise LitmusError(f"{path} cannot be read as a result ({error}); run its notebook again.") from None
    if not isinstance(found, dict) or not {"notebook", "model", "headline", "summary"} <= set(found):
        raise LitmusError(f"{path} is not a result that a notebook wrote; keep other files out of the reports.")
    return found


def damage(path: Path) -> str:
    """What is wrong with the result whose JSON is ``path``, in words; "" where it and its tables are as they were written."""
    try:
        record = read(path)
    except LitmusError:
        return f"{path.name} is no whole result"
    tables = [path.with_name(f"{path.stem}.{suffix}") for suffix in TABLES]
    broken = [table.name for table in tables if not is_whole(table, record)]
    return f"{' and '.join(broken)} not as written" if broken else ""


def is_whole(table: Path, record: Mapping[str, Any]) -> bool:
    """True where a table is there with the checksum that its result (``record``) has of it; results of before have none."""
    known = record.get("tables")
    wanted = known.get(table.suffix[1:]) if isinstance(known, dict) else None
    try:
        return table.is_file() and wanted in (None, hashlib.sha256(table.read_bytes()).hexdigest())
    except OSError:
        return False


def whole_json(path: Path) -> Any:
    """What a JSON file holds. Raises OSError, ValueError (also for half of a character) or RecursionError."""
    found = json.loads(text_of(path))
    json.dumps(found, ensure_ascii=False).encode()  # an escape can make what no table and no page takes
    return found


def text_of(path: Path) -> str:
    """The text of a file. Raises OSError also for a pipe and a device, which may never end, and ValueError for other bytes."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return path.read_text(encoding="utf-8")


def _uniform(column: pd.Series) -> pd.Series:
    """A column of mixed kinds as text, because parquet has one kind a column."""
    mixed = pd.api.types.infer_dtype(column, skipna=True).startswith("mixed")
    return column.map(str, na_action="ignore") if mixed else column


def _harmless(cell: Any) -> Any:
    """Text that a spreadsheet would run as a formula, with an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _plain(value: Any) -> Any:
    """numpy and pandas values as JSON knows them; what is no number (NaN, infinity, NA) becomes null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value


def provenance(notebook: str, names: Mapping[str, Any], model: Any = None, store: Any = None) -> dict[str, Any]:
    """Where numbers come from: date, seconds so far, code, versions, device, parameters, and what was overridden.

    ``names``: the notebook's ``globals()``; the values of its parameters are taken from there.
    """
    from lib.run import notebook_path, parameters_of

    parameters = {key: names[key] for key in parameters_of(notebook_path(notebook)) if key in names}
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - STARTED, 1),
        **git_state(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
        "parameters": parameters,
        "overridden": [name for name in os.environ.get("LITMUS_OVERRIDDEN", "").split(",") if name],
    }
    if model is not None:
        found |= {"family": model.family, "device": str(model.device), "identity": model.identity}
        found["note"] = model_note(str(parameters.get("model", "")))
        found["peak_megabytes"] = round(peak_megabytes(str(model.device)))
    if store is not None:
        found["store_megabytes"] = round(store.megabytes, 1)
    return found


def peak_megabytes(device: str) -> float:
    """The most memory that this process has held so far, and on GPUs what torch has held there besides."""
    unit = 1 if sys.platform == "darwin" else 1024
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    if device.startswith("cuda"):
        import torch

        held += sum(torch.cuda.max_memory_allocated(number) for number in range(torch.cuda.device_count())) / 1e6
    return held


def model_note(name: str) -> str:
    """What ``data/models.csv`` says a reader must know of a model; empty for one that is not listed."""
    return listing.read().get(name, {}).get("note", "")


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
    """SHA-256 of files by their name, as ``data.sha256`` of a result; by their path where two have one name."""
    listed = list(dict.fromkeys(Path(path) for path in paths))
    names = [path.name for path in listed]
    return {
        name if names.count(name) == 1 else str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path, name in zip(listed, names, strict=True)
    }
