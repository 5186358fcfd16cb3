"""The page of one notebook, put together."""

import base64
import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import nbformat
from bs4 import BeautifulSoup
from nbconvert.exporters import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbformat import NotebookNode
from traitlets.config import Config

from lib.errors import LitmusError
from lib.report import downloads, head
from lib.report.safe import clean, markdown
from lib.report.words import TEMPLATE, chart_in_plain_words, html_in_plain_words
from lib.results import text_of
from lib.say import shown

VEGA_LITE_TYPE = "application/vnd.vegalite.v5+json"
SHOWN = [
    VEGA_LITE_TYPE,
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/latex",
    "text/plain",
]
"""The types of output a page can show, best first; anything else (widgets, scripts) it cannot."""

RESERVED = {"failed", "contents", "top", "main"}
"""Ids of the page itself, which no heading may take."""

DOWNLOADS = "<!--downloads-->"
"""Where the template wants the links to files: their size decides what goes in, so they come last."""


def render(path: Path | str, out: Path | str | None = None) -> Path:
    """Write the page of an executed notebook and return where it is.

    Without ``out`` the page lies beside the notebook: ``X.html``, or ``X.FAILED.html`` where a cell of the notebook
    failed (and a page of the other kind, left from an earlier run, is removed). A page put elsewhere, and the index, has
    no links to neighbours. The head tells what ``X.json`` says; where there is none, what papermill left in the notebook.
    Raises LitmusError for a file that is missing or no notebook, and for a record that is none.
    """
    path = Path(path)
    try:
        return _rendered(path, _read(path), out)
    except (LitmusError, OSError):
        raise
    except Exception as error:  # a notebook or a record that another program wrote or changed
        raise LitmusError(
            f"{path} and the {path.stem}.json beside it are not as `python -m lib.run` writes them "
            f"({type(error).__name__}: {error}): run the notebook again."
        ) from error


def _rendered(path: Path, notebook: NotebookNode, out: Path | str | None) -> Path:
    """Write the page (see ``render``)."""
    failing = _failing_cell(notebook)
    failed = failing is not None or bool(notebook.metadata.get("papermill", {}).get("exception"))
    record = {} if failed else _record(path.with_name(f"{path.stem}.json"))
    good, bad = path.with_name(f"{path.stem}.html"), path.with_name(f"{path.stem}.FAILED.html")
    target = Path(out) if out else bad if failed else good
    notebook.cells = [
        cell for cell in notebook.cells if not head.tags(cell) & {"remove-cell", "papermill-error-cell-tag"}
    ]
    alone = bool(out) or target.name == "index.html"
    title, contents = _prepare(notebook, head.model_names(record, notebook), linked=not alone)
    sources = head.bibtex(record.get("sources", []))
    page = {
        "title": record.get("title") or title or path.stem,
        "contents": contents,
        "finding": head.findings(record),
        "facts": head.facts(record, notebook),
        "banners": head.banners(record, notebook, failing, failed),
        "made": head.made(record, notebook),
        "bibtex": sources,
        "bibtex_link": f"data:application/x-bibtex;base64,{base64.b64encode(sources.encode()).decode()}",
        "index": "" if alone else "../index.html",
        "notebook": path.stem,
        **_scripts(notebook),
    }
    if failing is not None:
        failing.metadata["litmus"] = {"failed": True}
    text, _ = _exporter().from_notebook_node(notebook, resources={"page": page})
    text = text.replace(DOWNLOADS, downloads.links(path, target, record, downloads.LIMIT - len(text.encode())), 1)
    _put(text, target)
    if not out:
        (good if failed else bad).unlink(missing_ok=True)
    return target


def _put(text: str, target: Path) -> None:
    """Write a page whole or not at all; one of before stays until then."""
    half = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(text.encode())
        half.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            half.unlink()
        raise LitmusError(
            f"the page {shown(str(target))} cannot be written ({error.strerror}); make room, or name another place by --out."
        ) from error


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.reads(text_of(path), as_version=4)
    except FileNotFoundError as error:
        raise LitmusError(f"{path} does not exist: run the notebook first, with `python -m lib.run`.") from error
    except Exception as error:  # what nbformat raises on JSON that is no notebook has no end
        raise LitmusError(
            f"{path} is not an executed notebook: give the .ipynb that `python -m lib.run` wrote."
        ) from error


def _record(path: Path) -> dict[str, Any]:
    """What ``lib.results`` wrote beside the notebook; nothing where there is none."""
    if not path.exists():
        return {}
    try:
        record = json.loads(text_of(path))
    except (OSError, ValueError, RecursionError) as error:
        raise LitmusError(f"{path} is not JSON ({error}): run the notebook again.") from error
    if not isinstance(record, dict):
        raise LitmusError(f"{path} does not hold the results of a notebook: run the notebook again.")
    return record


def _failing_cell(notebook: NotebookNode) -> NotebookNode | None:
    """The first cell with an error among its outputs, unless the cell announces one (tag ``raises-exception``)."""
    for cell in notebook.cells:
        wrong = any(output.output_type == "error" for output in cell.get("outputs", []))
        if wrong and "raises-exception" not in head.tags(cell):
            return cell
    return None


def _prepare(notebook: NotebookNode, names: Collection[str], linked: bool) -> tuple[str, list[dict[str, str]]]:
    """Turn texts and tables into safe HTML with an id on each heading; returns the title (taken out) and the contents.

    Outputs come in plain words, but for ``names``. Links to files become text; with ``linked``, those to pages beside this one
    stay.
    """
    title, taken = "", set(RESERVED)
    contents: list[dict[str, str]] = []
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            for output in cell.get("outputs", []):
                _prepare_output(output.get("data", {}), f"Table: {contents[-1]['words'] if contents else title}", names)
            continue
        soup = BeautifulSoup(markdown(cell.source, cell.get("attachments")), "html.parser")
        for link in soup.find_all("a", href=re.compile(r"^(?!#|https?:|mailto:)")):
            if not (linked and re.match(r"\w+\.html(#|$)", str(link["href"]))):  # no page lies there
                link.unwrap()
        for heading in soup.find_all(re.compile("^h[1-6]$")):
            words = heading.get_text().strip()
            if heading.name == "h1" and not title:
                title = words
                heading.decompose()
                continue
            name = _unused("-".join(words.split()) or "section", taken)
            heading["id"] = name
            if heading.name == "h2":
                contents.append({"id": name, "words": words})
        cell.metadata["html"] = str(soup)
    return title, contents


def _prepare_output(data: dict[str, Any], label: str, names: Collection[str]) -> None:
    """Put what an output shows into safe HTML and plain words, in place."""
    if "text/html" in data:
        data["text/html"] = html_in_plain_words(clean(data["text/html"], label), names)
    if "text/markdown" in data:
        data["text/markdown"] = html_in_plain_words(markdown(data["text/markdown"]), names)
    if isinstance(data.get(VEGA_LITE_TYPE), dict):
        chart = data[VEGA_LITE_TYPE]
        datasets = chart.get("datasets")
        tables = [rows for rows in datasets.values() if isinstance(rows, list)] if isinstance(datasets, dict) else []
        fields = {str(name) for rows in tables for row in rows if isinstance(row, dict) for name in row}
        data[VEGA_LITE_TYPE] = chart_in_plain_words(chart, {*names, *fields})


def _unused(name: str, taken: set[str]) -> str:
    candidates = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    chosen = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(chosen)
    return chosen


def _json_in_page(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return (
        json.dumps(data, separators=(",", ":")).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    )


def _scripts(notebook: NotebookNode) -> dict[str, str]:
    """Our scripts, our style, and a policy that lets the browser run just these and fetch nothing."""
    charts = any(
        VEGA_LITE_TYPE in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])
    )
    bundle, script = _bundle() if charts else "", (TEMPLATE / "script.js").read_text(encoding="utf-8")
    digests = " ".join(f"'sha256-{_digest(text)}'" for text in (bundle, script) if text)
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {digests}; base-uri 'none'"
    )
    style = (TEMPLATE / "style.css").read_text(encoding="utf-8")
    return {"bundle": bundle, "script": script, "style": style, "policy": f"{policy}; form-action 'none'"}


@functools.cache
def _bundle() -> str:
    import vl_convert

    from lib.charts import VEGA_LITE

    text = vl_convert.javascript_bundle(vl_version=VEGA_LITE).replace("\r", "")  # type: ignore[call-arg]
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _exporter() -> TemplateExporter:
    """nbconvert with our template; not its HTMLExporter, which would parse and write the whole page a second time."""
    exporter = TemplateExporter(
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN}}),
        file_extension=".html",
        template_name=TEMPLATE.name,
        extra_template_basedirs=[str(TEMPLATE.parent)],
    )
    exporter.register_filter("highlight_code", Highlight2HTML(pygments_lexer="python3"))
    exporter.register_filter("json_in_page", _json_in_page)
    return exporter
