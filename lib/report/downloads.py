"""The files of a run, as links: inside the page while it stays small, else beside it."""

import base64
import gzip
import html
import os
from pathlib import Path
from urllib.parse import quote

from lib.results import safe_name

LIMIT = 2_500_000
"""Bytes that a page may have: what would make it larger is linked and not carried."""

KINDS = {
    "ipynb": ("executed notebook", "application/x-ipynb+json"),
    "csv": ("items as CSV", "text/csv"),
    "json": ("summary as JSON", "application/json"),
    "parquet": ("items as parquet", "application/vnd.apache.parquet"),
}
"""Files of a run that can be downloaded, by suffix: in words, and as browsers name them. The first go in first."""


def links(path: Path, target: Path, record: dict, room: int) -> str:
    """Links to the files of this run that exist: packed into the page while there is room (bytes), else beside it."""
    who = f"{safe_name(str(record['model']))}." if record.get("model") else ""
    listed = []
    for suffix, (words, kind) in KINDS.items():
        file = path.with_name(f"{path.stem}.{suffix}")
        if not file.is_file():
            continue
        beside = quote(os.path.relpath(file, target.parent).replace(os.sep, "/"))
        attributes, note = {"href": beside, "download": ""}, f"{_size(file.stat().st_size)}, lies beside this page"
        packed = _packed(file) if file.stat().st_size < 20 * LIMIT else ""
        name = f"{who}{file.name}"
        if packed and len(packed) + 400 < room:
            address = f"data:application/gzip;base64,{packed}"
            attributes = {"href": address, "download": f"{name}.gz", "data-name": name, "data-kind": kind}
            note = _size(file.stat().st_size)
        written = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
        listed.append(f"<li><a {written}>{words}</a> <small>{note}</small></li>")
        room -= len(listed[-1])
    return f'<ul class="downloads" aria-label="Downloads">{"".join(listed)}</ul>' if listed else ""


def _packed(file: Path) -> str:
    return base64.b64encode(gzip.compress(file.read_bytes(), mtime=0)).decode()


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{max(1, round(count / 1e3))} kB"
