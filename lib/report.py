"""From an executed notebook to one page that needs nothing else: ``python -m lib.report reports/MODEL/NOTEBOOK.ipynb``.

The page holds its style, its script, one copy of Vega-Lite (only where there is a chart) and all pictures. It opens
from a file with the network off. What a notebook shows comes from item files, model names and tracebacks, so nothing of
it is trusted: HTML is cleaned after Markdown has been turned into it, everything else is escaped, and the page's own
policy lets the browser run no script but ours and fetch nothing at all.
"""

import ast
import base64
import contextlib
import functools
import hashlib
import html
import json
import os
import re
from collections.abc import Iterable
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

TEMPLATE = Path(__file__).parent / "report_template"
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
RESERVED = {"failed", "contents", "top"}
"""Ids of the page itself, which no heading may take."""


def render(path: Path | str, out: Path | str | None = None) -> Path:
    """Write the page of an executed notebook and return where it is.

    Without ``out`` the page lies beside the notebook: ``X.html``, or ``X.FAILED.html`` where a cell of the notebook
    failed (and a page of the other kind, left from an earlier run, is removed). The head tells what ``X.json`` says;
    where there is none, what papermill left in the notebook. Raises LitmusError for a file that is missing or no
    notebook.
    """
    path = Path(path)
    notebook = _read(path)
    failing = _failing_cell(notebook)
    failed = failing is not None or bool(notebook.metadata.get("papermill", {}).get("exception"))
    record = {} if failed else _record(path.with_name(f"{path.stem}.json"))
    good, bad = path.with_name(f"{path.stem}.html"), path.with_name(f"{path.stem}.FAILED.html")
    target = Path(out) if out else bad if failed else good
    notebook.cells = [cell for cell in notebook.cells if not _tags(cell) & {"remove-cell", "papermill-error-cell-tag"}]
    title, contents = _prepare(notebook)
    page = {
        "title": record.get("title") or title or path.stem,
        "contents": contents,
        "facts": _facts(path, record, notebook),
        "banners": _banners(record, notebook, failing, failed),
        "made": _made(record, notebook),
        "bibtex": bibtex(record.get("sources", [])),
        "downloads": _downloads(path, target),
        "index": "" if target.name == "index.html" else "../index.html",
        "notebook": path.stem,
        **_scripts(notebook),
    }
    if failing is not None:
        failing.metadata["litmus"] = {"failed": True}
    text, _ = _exporter().from_notebook_node(notebook, resources={"page": page})
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(target)
    if not out:
        (good if failed else bad).unlink(missing_ok=True)
    return target


def clean(text: str) -> str:
    """HTML from a notebook, made safe and fit for a page.

    Kept are the marks of running text, tables and pictures that are inside the page; gone are scripts, event handlers,
    style sheets (pandas puts one before each table), forms, frames, ids, and every address but http, https, mailto and
    relative ones. Tables lie in a box that scrolls, and columns of numbers are marked.
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
        _mark_numbers(table)
        table.wrap(
            soup.new_tag("div", attrs={"class": "scroll", "tabindex": "0", "role": "group", "aria-label": "table"})
        )
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


def _prepare(notebook: NotebookNode) -> tuple[str, list[dict[str, str]]]:
    """Turn text cells into safe HTML with an id on each heading; returns the title (taken out) and the contents."""
    title, contents, taken = "", [], set(RESERVED)
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        soup = BeautifulSoup(markdown(cell.source, cell.get("attachments")), "html.parser")
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


def _mark_numbers(table: Any) -> None:
    """Give cells of columns that hold only numbers the class ``number``, the heading above them too."""
    rows = [row.find_all(["td", "th"], recursive=False) for row in table.find_all("tr")]
    body = [row for row in rows if row and any(cell.name == "td" for cell in row)]
    if not body or len({len(row) for row in body}) > 1:
        return
    width = len(body[0])
    for column in range(width):
        cells = [row[column] for row in body]
        if not all(cell.name == "td" and _is_number(cell.get_text()) for cell in cells):
            continue
        for cell in cells + [row[column] for row in rows if len(row) == width and row not in body]:
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
    exporter.register_filter("clean", clean)
    exporter.register_filter("markdown", markdown)
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


def _facts(path: Path, record: dict, notebook: NotebookNode) -> list[tuple[str, str]]:
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
        ("Result", "; ".join(_result(entry) for entry in _as_list(record.get("headline")) if entry)),
        ("Data", data.get("name")),
        ("Sample", data.get("sample")),
        ("Run", ", ".join(part for part in (_date(provenance["date"]), _seconds(provenance["seconds"])) if part)),
        ("Made with", ", ".join(named)),
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
    return banners


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


def _downloads(path: Path, target: Path) -> list[tuple[str, str]]:
    """Name and relative address of the files of this run that exist."""
    kinds = {
        "csv": "items as CSV",
        "parquet": "items as parquet",
        "json": "summary as JSON",
        "ipynb": "executed notebook",
    }
    files = {words: path.with_name(f"{path.stem}.{suffix}") for suffix, words in kinds.items()}
    return [
        (words, quote(os.path.relpath(file, target.parent).replace(os.sep, "/")))
        for words, file in files.items()
        if file.exists()
    ]


def _result(entry: dict[str, Any]) -> str:
    """``TSE 0.91 [0.88, 0.94], n = 1,234, coverage 97 %``, of which what is missing is left out."""
    words = f"{entry.get('metric', '')} {_score(entry.get('value'))}".strip()
    if entry.get("low") is not None and entry.get("high") is not None:
        words += f" [{_score(entry['low'])}, {_score(entry['high'])}]"
    if entry.get("n") is not None:
        words += f", n = {entry['n']:,}" if isinstance(entry["n"], int) else f", n = {entry['n']}"
    if isinstance(entry.get("coverage"), int | float):
        words += f", coverage {entry['coverage']:.0%}".replace("%", " %")
    return re.sub(r" (?=[=%\[]|\d)", "\u00a0", words)  # a number stays with what it belongs to


def _score(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else "n/a"


def _date(value: Any) -> str:
    return str(value or "")[:16].replace("T", " ")


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
