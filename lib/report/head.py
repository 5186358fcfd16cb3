"""The head of a page: the finding, what must be known before a number is read, and how it was made."""

import ast
import contextlib
import datetime
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from lib.paths import DATA
from lib.report.words import listed, plain

FEW_ITEMS, FEW_IN_A_ROW = 100, 30
"""Fewer scored items than this make a headline, or a row of the summary, a small sample."""


def findings(record: dict) -> list[dict[str, str]]:
    """The headlines of a record, each in parts (see ``_finding``)."""
    return [_finding(entry) for entry in _as_list(record.get("headline")) if entry]


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
        "meaning": str(entry.get("meaning") or listed("metrics.csv").get(metric, "")),
    }


def facts(record: dict, notebook: NotebookNode) -> list[tuple[str, str]]:
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


def banners(
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


def made(record: dict, notebook: NotebookNode) -> list[tuple[str, list[tuple[str, str, str]]]]:
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


def bibtex(keys: Iterable[str], file: Path = DATA / "references.bib") -> str:
    """The entries of ``data/references.bib`` with these keys, in this order; keys without entry are left out."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    entries = {found[1]: found[0] for found in re.finditer(r"^@\w+\{([^,\s]+),.*?^\}", text, re.DOTALL | re.MULTILINE)}
    return "\n\n".join(entries[key] for key in keys if key in entries)


def model_names(record: dict, notebook: NotebookNode) -> set[str]:
    """Names of models, which a page must not reword, however much they look like names of code."""
    parameters = _provenance(record, notebook)["parameters"] or {}
    rows = [row for row in _as_list(record.get("summary")) if isinstance(row, dict)]
    names = [record.get("model"), parameters.get("model"), *(row.get("model") for row in rows)]
    return {part for name in names if name for part in (str(name), Path(str(name)).name)}


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _provenance(record: dict, notebook: NotebookNode) -> dict[str, Any]:
    return {**_run_of(notebook), **record.get("provenance", {})}


def _run_of(notebook: NotebookNode) -> dict[str, Any]:
    """What papermill left in the notebook, in the words of our own record."""
    run = notebook.metadata.get("papermill", {})
    given = run.get("parameters", {})
    defaults: dict[str, Any] = {}
    for cell in notebook.cells:
        if "parameters" in tags(cell):
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
