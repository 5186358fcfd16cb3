"""HTML and Markdown from a notebook, made safe and fit for a page; tables made readable."""

import html
import re
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from bs4 import BeautifulSoup
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath

LONG_TEXT = 30
"""Characters of a table's cell above which it needs room."""

WIDE = 8
"""Columns above which a table is printed smaller, and its words may break."""

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
