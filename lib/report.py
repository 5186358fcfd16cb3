"""From an executed notebook to one page that needs nothing else: ``python -m lib.report reports/MODEL/NOTEBOOK.ipynb``.

The page holds its style, its script, one copy of Vega-Lite (only where there is a chart) and all pictures. It opens
from a file with the network off. What a notebook shows comes from item files, model names and tracebacks, so nothing of
it is trusted: HTML is cleaned after Markdown has been turned into it, everything else is escaped, and the page's own
policy lets the browser run no script but ours and fetch nothing at all. The numbers behind it and the notebook travel in
the page, as far as it stays small, so that a page that is sent to someone is whole. Readers see plain words where tables
carry names of code (``report_template/words.csv``); what they download keeps the names.
"""

import ast
import base64
import contextlib
import csv
import datetime
import functools
import gzip
import hashlib
import html
import json
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import bleach
import nbformat
import typer
from bleach.css_sanitizer import CSSSanitizer
from bs4 import BeautifulSoup
from nbconvert.exporters import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from traitlets.config import Config

from lib.errors import LitmusError
from lib.paths import DATA
from lib.results import safe_name

TEMPLATE = Path(__file__).parent / "report_template"
LIMIT = 2_500_000
"""Bytes that a page may have: what would make it larger is linked and not carried."""

FEW_ITEMS, FEW_IN_A_ROW = 100, 30
"""Fewer scored items than this make a headline, or a row of the summary, a small sample."""

LONG_TEXT = 30
"""Characters of a table's cell above which it needs room."""

WIDE = 8
"""Columns above which a table is printed smaller, and its words may break."""

NAME = re.compile(r"(?<![\w./:-])[a-z][a-z0-9]*(?:_[A-Za-z0-9]+)+(?![\w/-]|[.:]\w)")
"""A name as code writes it; no part of a path, of an address or of a notebook's name."""

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

TAGS = (
    {"a", "abbr", "b", "br", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "small", "span", "strong", "u"}
    | {"blockquote", "details", "div", "figcaption", "figure", "hr", "img", "p", "pre", "sub", "summary", "sup", "var"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "dd", "dl", "dt", "li", "ol", "ul"}
    | {"caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
)
ATTRIBUTES = {
    "align",
    "alt",
    "class",
    "colspan",
    "dir",
    "height",
    "lang",
    "rowspan",
    "scope",
    "style",
    "title",
    "width",
}
RESERVED = {"failed", "contents", "top", "main"}
"""Ids of the page itself, which no heading may take."""

DOWNLOADS = "<!--downloads-->"
"""Where the template wants the links to files: their size decides what goes in, so they come last."""

KINDS = {
    "ipynb": ("executed notebook", "application/x-ipynb+json"),
    "csv": ("items as CSV", "text/csv"),
    "json": ("summary as JSON", "application/json"),
    "parquet": ("items as parquet", "application/vnd.apache.parquet"),
}
"""Files of a run that can be downloaded, by suffix: in words, and as browsers name them. The first go in first."""


def render(path: Path | str, out: Path | str | None = None) -> Path:
    """Write the page of an executed notebook and return where it is.

    Without ``out`` the page lies beside the notebook: ``X.html``, or ``X.FAILED.html`` where a cell of the notebook
    failed (and a page of the other kind, left from an earlier run, is removed). A page put elsewhere, and the index, has
    no links to neighbours. The head tells what ``X.json`` says; where there is none, what papermill left in the notebook.
    Raises LitmusError for a file that is missing or no notebook.
    """
    path = Path(path)
    notebook = _read(path)
    failing = _failing_cell(notebook)
    failed = failing is not None or bool(notebook.metadata.get("papermill", {}).get("exception"))
    record = {} if failed else _record(path.with_name(f"{path.stem}.json"))
    good, bad = path.with_name(f"{path.stem}.html"), path.with_name(f"{path.stem}.FAILED.html")
    target = Path(out) if out else bad if failed else good
    notebook.cells = [cell for cell in notebook.cells if not _tags(cell) & {"remove-cell", "papermill-error-cell-tag"}]
    alone = bool(out) or target.name == "index.html"
    title, contents = _prepare(notebook, _model_names(record, notebook), linked=not alone)
    sources = bibtex(record.get("sources", []))
    page = {
        "title": record.get("title") or title or path.stem,
        "contents": contents,
        "finding": [_finding(entry) for entry in _as_list(record.get("headline")) if entry],
        "facts": _facts(record, notebook),
        "banners": _banners(record, notebook, failing, failed),
        "made": _made(record, notebook),
        "bibtex": sources,
        "bibtex_link": f"data:application/x-bibtex;base64,{_base64(sources.encode())}",
        "index": "" if alone else "../index.html",
        "notebook": path.stem,
        **_scripts(notebook),
    }
    if failing is not None:
        failing.metadata["litmus"] = {"failed": True}
    text, _ = _exporter().from_notebook_node(notebook, resources={"page": page})
    text = text.replace(DOWNLOADS, _downloads(path, target, record, LIMIT - len(text.encode())), 1)
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(target)
    if not out:
        (good if failed else bad).unlink(missing_ok=True)
    return target


def clean(text: str, label: str = "Table") -> str:
    """HTML from a notebook, made safe and fit for a page.

    Kept are the marks of running text, tables and pictures that are inside the page; gone are scripts, event handlers,
    style sheets (pandas puts one before each table), forms, frames, ids, and every address but http, https, mailto and
    relative ones. Tables lie in a box that scrolls and is called ``label``; their headings say what they head, columns of
    numbers and long texts are marked, rows are not numbered, and one without rows says so.
    """
    text = re.sub(r"<style\b.*?</style\s*>|<script\b.*?</script\s*>", "", text, flags=re.DOTALL | re.IGNORECASE)
    safe = bleach.clean(
        text,
        tags=TAGS,
        attributes=_allowed,
        protocols={"http", "https", "mailto", "data"},
        css_sanitizer=CSSSanitizer(allowed_css_properties=["text-align", "color", "background-color", "font-weight"]),
        strip=True,
    )
    soup = BeautifulSoup(safe, "html.parser")
    for table in soup.find_all("table"):
        _join_heads(table)
        _drop_row_numbers(table)
        _mark_headings(table)
        _mark_cells(table)
        _say_none(table)
        kind = "scroll wide" if max((len(row) for row in _rows(table)), default=0) > WIDE else "scroll"
        table.wrap(soup.new_tag("div", attrs={"class": kind, "tabindex": "0", "role": "group", "aria-label": label}))
    for image in soup.find_all("img", src=False):
        image.decompose()
    for link in soup.find_all("a", href=True):
        link["href"] = re.sub(r"^(?:\./)?(\w+)\.ipynb(?=#|$)", r"\1.html", str(link["href"]))
    return str(soup)


def markdown(text: str, attachments: dict | None = None) -> str:
    """Markdown from a notebook as safe HTML; formulas stay as they are written."""
    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True, attachments=attachments)
    try:
        return clean(str(MarkdownWithMath(renderer=renderer).render(text)))
    except InvalidNotebook:  # it names a picture that the notebook does not hold
        return f"<pre>{html.escape(text)}</pre>"


def plain(text: str, names: Collection[str] = ()) -> str:
    """The text with names of code in plain words: ``several_pieces`` becomes *written in several pieces*.

    Which names say more in other words stands in ``report_template/words.csv``; of any other, underscores become spaces.
    ``names`` (of models) stay as they are.
    """
    known = _words("words.csv")
    return NAME.sub(
        lambda found: found[0] if found[0] in names else known.get(found[0], found[0].replace("_", " ")), text
    )


@functools.cache
def _words(file: str) -> dict[str, str]:
    """The two columns of a list in the template's folder."""
    with (TEMPLATE / file).open(encoding="utf-8", newline="") as lines:
        return dict(list(csv.reader(lines))[1:])


def bibtex(keys: Iterable[str], file: Path = DATA / "references.bib") -> str:
    """The entries of ``data/references.bib`` with these keys, in this order; keys without entry are left out."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    entries = {found[1]: found[0] for found in re.finditer(r"^@\w+\{([^,\s]+),.*?^\}", text, re.DOTALL | re.MULTILINE)}
    return "\n\n".join(entries[key] for key in keys if key in entries)


# ---- reading


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except FileNotFoundError as error:
        raise LitmusError(f"{path} does not exist: run the notebook first, with `python -m lib.run`.") from error
    except (OSError, ValueError, AttributeError, nbformat.ValidationError) as error:  # AttributeError: JSON, but a list
        raise LitmusError(
            f"{path} is not an executed notebook: give the .ipynb that `python -m lib.run` wrote."
        ) from error


def _record(path: Path) -> dict[str, Any]:
    """What ``lib.results`` wrote beside the notebook; nothing where there is none."""
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise LitmusError(f"{path} is not JSON ({error}): run the notebook again.") from error
    if not isinstance(record, dict):
        raise LitmusError(f"{path} does not hold the results of a notebook: run the notebook again.")
    return record


def _tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _failing_cell(notebook: NotebookNode) -> NotebookNode | None:
    """The first cell with an error among its outputs, unless the cell announces one (tag ``raises-exception``)."""
    for cell in notebook.cells:
        wrong = any(output.output_type == "error" for output in cell.get("outputs", []))
        if wrong and "raises-exception" not in _tags(cell):
            return cell
    return None


# ---- the body


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
        data["text/html"] = _in_plain_words(clean(data["text/html"], label), names)
    if "text/markdown" in data:
        data["text/markdown"] = _in_plain_words(markdown(data["text/markdown"]), names)
    if isinstance(data.get(VEGA_LITE_TYPE), dict):
        chart = data[VEGA_LITE_TYPE]
        datasets = chart.get("datasets")
        tables = [rows for rows in datasets.values() if isinstance(rows, list)] if isinstance(datasets, dict) else []
        fields = {str(name) for rows in tables for row in rows if isinstance(row, dict) for name in row}
        data[VEGA_LITE_TYPE] = _chart_in_plain_words(chart, {*names, *fields})


def _in_plain_words(safe: str, names: Collection[str]) -> str:
    """Safe HTML in plain words: its text, but for what is marked as code."""
    soup = BeautifulSoup(safe, "html.parser")
    for text in soup.find_all(string=NAME):
        if not text.find_parent(["code", "pre", "kbd"]):
            text.replace_with(plain(text, names))
    return str(soup)


def _chart_in_plain_words(part: Any, names: Collection[str]) -> Any:
    """A chart's labels in plain words. Names of its fields must stay: they are among ``names``."""
    if isinstance(part, dict):
        return {name: _chart_in_plain_words(value, names) for name, value in part.items()}
    if isinstance(part, list):
        return [_chart_in_plain_words(value, names) for value in part]
    return plain(part, names) if isinstance(part, str) else part


def _model_names(record: dict, notebook: NotebookNode) -> set[str]:
    """Names of models, which a page must not reword, however much they look like names of code."""
    parameters = _provenance(record, notebook)["parameters"] or {}
    rows = [row for row in _as_list(record.get("summary")) if isinstance(row, dict)]
    names = [record.get("model"), parameters.get("model"), *(row.get("model") for row in rows)]
    return {part for name in names if name for part in (str(name), Path(str(name)).name)}


def _unused(name: str, taken: set[str]) -> str:
    candidates = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    chosen = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(chosen)
    return chosen


def _allowed(tag: str, name: str, value: str) -> bool:
    address = re.sub(r"[\s\x00-\x1f]", "", value).lower()
    if (tag, name) == ("img", "src"):
        return address.startswith(("data:image/png", "data:image/jpeg", "data:image/svg+xml", "data:image/gif"))
    if (tag, name) == ("a", "href"):
        return not address.startswith("data:")
    return name in ATTRIBUTES


def _rows(part: Any) -> list[list[Any]]:
    """The cells of each row of a table, or of a part of it."""
    return [row.find_all(["td", "th"], recursive=False) for row in part.find_all("tr")] if part else []


def _join_heads(table: Any) -> None:
    """Two rows of headings, of which one names the index and the other the columns (as pandas writes them), become one."""
    heads = _rows(table.thead)
    if len(heads) != 2 or len(heads[0]) != len(heads[1]):
        return
    if any(upper.get_text().strip() and lower.get_text().strip() for upper, lower in zip(*heads, strict=True)):
        return
    for upper, lower in zip(*heads, strict=True):
        if lower.get_text().strip():
            upper.replace_with(lower.extract())
    table.thead.find_all("tr")[1].decompose()


def _drop_row_numbers(table: Any) -> None:
    """Take out a first column that only counts the rows from 0: pandas puts one before tables without an index."""
    heads, body = _rows(table.thead), _rows(table.tbody)
    counted = [
        row[0].get_text().strip() for row in body if row and row[0].name == "th" and "rowspan" not in row[0].attrs
    ]
    corner = heads[0][0] if len(heads) == 1 and heads[0] else None
    unnamed = corner is not None and not corner.get_text().strip() and "colspan" not in corner.attrs
    if unnamed and body and counted == [str(number) for number in range(len(body))]:
        for row in heads + body:
            row[0].decompose()


def _say_none(table: Any) -> None:
    """A table without rows looks broken unless it says that there are none."""
    heads = _rows(table.thead)
    if heads and table.tbody and not _rows(table.tbody):
        fragment = BeautifulSoup(f'<tr><td colspan="{len(heads[-1])}">none</td></tr>', "html.parser")
        table.tbody.append(fragment)


def _mark_headings(table: Any) -> None:
    """Say of each heading what it heads: a column or a row, or several."""
    for row in _rows(table.thead):
        for cell in row:
            if cell.get_text().strip():
                cell["scope"] = "colgroup" if "colspan" in cell.attrs else "col"
    for body in table.find_all("tbody"):
        for cell in body.find_all("th"):
            cell["scope"] = "rowgroup" if "rowspan" in cell.attrs else "row"


def _mark_cells(table: Any) -> None:
    """Give long texts the class ``text``, and columns that hold only numbers, with their heading, the class ``number``.

    Columns are counted from the right, because a label that stands for several rows is written in the first of them only.
    """
    heads, rows = _rows(table.thead), _rows(table)
    body = [row for row in rows if row and row not in heads and any(cell.name == "td" for cell in row)]
    for cell in (cell for row in body for cell in row if len(cell.get_text()) > LONG_TEXT):
        cell["class"] = [*cell.get("class", []), "text"]
    width = max((len(row) for row in rows), default=0)
    for column in range(-1, -1 - min((len(row) for row in body), default=0), -1):
        cells = [row[column] for row in body]
        if not all(cell.name == "td" and _is_number(cell.get_text()) for cell in cells):
            continue
        for cell in cells + [row[column] for row in heads if len(row) == width]:
            cell["class"] = [*cell.get("class", []), "number"]


def _is_number(text: str) -> bool:
    pattern = r"[-+−]?[\d.,  ]*\d(e[-+]?\d+)?\s?%?|[-+]?inf|nan|n/a|<na>|none|-|–|"
    return re.fullmatch(pattern, text.strip(), re.IGNORECASE) is not None


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
    return _base64(hashlib.sha256(text.encode()).digest())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


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


# ---- the head


def _run_of(notebook: NotebookNode) -> dict[str, Any]:
    """What papermill left in the notebook, in the words of our own record."""
    run = notebook.metadata.get("papermill", {})
    given = run.get("parameters", {})
    defaults: dict[str, Any] = {}
    for cell in notebook.cells:
        if "parameters" in _tags(cell):
            defaults |= _literals(cell.source)
    overridden = [name for name in given if given[name] != defaults.get(name, given[name])]
    parameters = defaults | given
    return {
        "parameters": parameters,
        "overridden": overridden,
        "date": run.get("start_time"),
        "seconds": run.get("duration"),
    }


def _literals(source: str) -> dict[str, Any]:
    """Names and values of the lines ``name = literal`` of a cell."""
    found: dict[str, Any] = {}
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # the cell that made the notebook fail
        return found
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                with contextlib.suppress(ValueError):
                    found[name] = ast.literal_eval(value)
    return found


def _provenance(record: dict, notebook: NotebookNode) -> dict[str, Any]:
    return {**_run_of(notebook), **record.get("provenance", {})}


def _facts(record: dict, notebook: NotebookNode) -> list[tuple[str, str]]:
    """Label and value of what a reader must know before reading a number; empty values are left out."""
    provenance = _provenance(record, notebook)
    parameters, data = provenance["parameters"] or {}, record.get("data", {})
    model = str(record.get("model") or parameters.get("model") or "")
    family = f" ({record['family']})" if record.get("family") else ""
    versions = provenance.get("versions", {})
    named = [f"{name} {versions[name]}" for name in ("python", "torch", "transformers") if name in versions]
    facts = [
        ("Model", f"{model}{family}" if model else ""),
        ("Revision", record.get("revision") or parameters.get("revision")),
        ("Data", data.get("name")),
        ("Sample", "all items" if data.get("sample") == "all" else data.get("sample")),
        ("Date", _date(provenance["date"])),
        ("Time taken", _seconds(provenance["seconds"])),
        ("Made with", ", ".join(named)),
        ("Small samples", _small_rows(record)),
        ("About the model", provenance.get("note")),
    ]
    return [(label, str(value)) for label, value in facts if value]


def _banners(
    record: dict, notebook: NotebookNode, failing: NotebookNode | None, failed: bool
) -> list[tuple[str, str, str]]:
    """Kind (failed, sample), sentence and target of a link (or nothing) of what must not be overlooked."""
    banners = []
    if failed:
        errors = [output for output in failing.outputs if output.output_type == "error"] if failing is not None else []
        sentence = _last_line(errors[0]) if errors else "The notebook stopped before its first cell."
        banners.append(("failed", f"This run failed. {sentence}", "#failed" if failing is not None else ""))
    sample = record.get("data", {}).get("sample")
    limit = (_provenance(record, notebook)["parameters"] or {}).get("limit")
    if sample and sample != "all":
        banners.append(("sample", f"A sample, not everything: {sample}.", ""))
    elif limit and not sample:
        banners.append(("sample", f"A trial run, not everything: limit = {limit}.", ""))
    scored = [_scored(entry) for entry in _as_list(record.get("headline")) if isinstance(entry, dict)]
    few = min((n for n in scored if n is not None), default=FEW_ITEMS)
    if few < FEW_ITEMS:
        banners.append(("sample", f"A small sample: {few} scored items. {_not_seen(few)}", ""))
    return banners


def _not_seen(n: int) -> str:
    """What ``n`` items cannot show of another model on the same items."""
    from lib.stats import smallest_visible_difference

    least = smallest_visible_difference(n)
    if least != least:
        return "They cannot tell any two models apart."
    return f"Another model must differ by {_score(least)} or more before they can tell the two apart."


def _scored(entry: dict[str, Any]) -> int | None:
    """How many items stand behind a value: those that could be scored."""
    counted = entry.get("scored")
    if counted is None and _number(entry.get("n")):
        counted = entry["n"] * (entry["coverage"] if _number(entry.get("coverage")) else 1)
    return round(counted) if isinstance(counted, int | float) else None


def _small_rows(record: dict) -> str:
    """Which rows of the summary rest on few items."""
    rows = [(row, _scored(row)) for row in _as_list(record.get("summary")) if isinstance(row, dict)]
    counted: dict[str, int] = {}
    for row, scored in rows:
        if scored is not None and row.get("condition"):
            condition = str(row["condition"])
            counted[condition] = min(scored, counted.get(condition, scored))
    few = {condition: scored for condition, scored in counted.items() if scored < FEW_IN_A_ROW}
    if not few:
        return ""
    which = "All" if len(few) == len(counted) else f"{len(few)} of {len(counted)}"
    example = min(few, key=lambda condition: few[condition])
    return f"{which} conditions rest on fewer than {FEW_IN_A_ROW} scored items ({plain(example)}: {few[example]})"


def _made(record: dict, notebook: NotebookNode) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The folded box: a heading and rows of name, value and note for each part of how the page was made."""
    provenance = _provenance(record, notebook)
    overridden = set(_as_list(provenance.pop("overridden", [])))
    parts = {"Parameters": provenance.pop("parameters", None) or {}, "Choices": record.get("choices", {})}
    versions = provenance.pop("versions", {})
    parts["The run"] = {name: value for name, value in provenance.items() if value is not None}
    parts |= {"Versions": versions, "Checksums of the data (SHA-256)": record.get("data", {}).get("sha256", {})}
    return [
        (
            heading,
            [
                (name.replace("_", " ") if heading == "The run" else name, _literal(value), note)
                for name, value in rows.items()
                for note in ["set for this run" if heading == "Parameters" and name in overridden else ""]
            ],
        )
        for heading, rows in parts.items()
        if rows
    ]


def _downloads(path: Path, target: Path, record: dict, room: int) -> str:
    """Links to the files of this run that exist: packed into the page while there is room (bytes), else beside it."""
    who = f"{safe_name(str(record['model']))}." if record.get("model") else ""
    links = []
    for suffix, (words, kind) in KINDS.items():
        file = path.with_name(f"{path.stem}.{suffix}")
        if not file.exists():
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
        links.append(f"<li><a {written}>{words}</a> <small>{note}</small></li>")
        room -= len(links[-1])
    return f'<ul class="downloads" aria-label="Downloads">{"".join(links)}</ul>' if links else ""


def _packed(file: Path) -> str:
    return _base64(gzip.compress(file.read_bytes(), mtime=0))


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{max(1, round(count / 1e3))} kB"


def _finding(entry: dict[str, Any]) -> dict[str, str]:
    """A headline in parts: ``metric``, ``value``, ``sure`` (interval, items, coverage) and ``meaning``, each may be empty."""
    sure = []
    if _number(entry.get("low")) and _number(entry.get("high")):
        sure.append(f"95 % interval {_score(entry['low'])} to {_score(entry['high'])}")
    if entry.get("n") is not None:
        sure.append(f"{entry['n']:,} items" if isinstance(entry["n"], int) else f"{entry['n']} items")
    if _number(entry.get("coverage")):
        sure.append(f"{entry['coverage']:.0%} could be scored".replace("%", " %"))
    metric = str(entry.get("metric", ""))
    return {
        "metric": metric[:1].upper() + metric[1:],
        "value": _score(entry.get("value")),
        "sure": "; ".join(sure).replace(" %", "\u00a0%"),
        "meaning": str(entry.get("meaning") or _words("metrics.csv").get(metric, "")),
    }


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _score(value: Any) -> str:
    return f"{value:.2f}" if _number(value) else "n/a"


def _date(value: Any) -> str:
    """``30 November 2026, 16:42 UTC``; what is no date, as it is."""
    try:
        moment = datetime.datetime.fromisoformat(str(value or ""))
    except ValueError:
        return str(value or "")[:16]
    zone = " UTC" if moment.utcoffset() == datetime.timedelta(0) else ""
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def _seconds(value: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _last_line(error: NotebookNode) -> str:
    """What a person has to read of an error: our own sentences as they are, others with their kind."""
    lines = [line for line in error.get("evalue", "").splitlines() if line.strip()]
    sentence = lines[-1].strip() if lines else ""
    return sentence if error.get("ename") in ("LitmusError", "Stopped") else f"{error.get('ename')}: {sentence}"


def _literal(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)


def _as_list(value: Any) -> list:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def main(
    path: Annotated[Path, typer.Argument(help="An executed notebook, as `python -m lib.run` leaves it.")],
    out: Annotated[Path | None, typer.Option(help="The page; default: beside the notebook.")] = None,
) -> None:
    """Make the page of an executed notebook and print where it is."""
    try:
        typer.echo(render(path, out))
    except LitmusError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error


if __name__ == "__main__":
    typer.run(main)
