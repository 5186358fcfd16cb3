"""Every result there is, side by side: what ``90_compare_models`` and the index of the reports are made of."""

import contextlib
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from lib.errors import LitmusError
from lib.paths import NOTEBOOKS
from lib.results import read
from lib.run import parameters_of

STATES = ("done", "failed", "not run")


def collect(reports: Path) -> pd.DataFrame:
    """One row a result under ``reports``, done or failed.

    Columns: ``model``, ``revision``, ``notebook``, ``state``, ``page`` (relative to ``reports``), and of the headline
    ``metric``, ``value``, ``low``, ``high``, ``n``, ``coverage``; ``data``, ``sample``, ``family``, ``seconds``.
    """
    rows = [_done(path, reports) for path in sorted(reports.glob("*/*.json"))]
    executed = [path for path in sorted(reports.glob("*/*.ipynb")) if not path.with_suffix(".json").exists()]
    rows += [_failed(path, reports) for path in executed]
    columns = ["model", "revision", "notebook", "state", "page", "metric", "value", "low", "high", "n", "coverage",
               "data", "sample", "family", "seconds"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _done(path: Path, reports: Path) -> dict:
    rendered = path.with_suffix(".html")
    page = str(
        (rendered if rendered.exists() else path).relative_to(reports)
    )  # a run without a page links to its numbers
    try:
        result = read(path)
    except LitmusError:  # damaged: shown as failed, and made again by the next call
        return {"model": path.parent.name, "notebook": path.stem, "state": "failed", "page": page}
    headline = result["headline"]
    return {
        "model": result["model"], "revision": result["revision"], "notebook": path.stem, "state": "done",
        "page": page, "data": result["data"]["name"],
        "sample": result["data"]["sample"], "family": result["family"], "seconds": result["provenance"]["seconds"],
        **{key: headline.get(key) for key in ("metric", "value", "low", "high", "n", "coverage")},
    }  # fmt: skip


def _failed(executed: Path, reports: Path) -> dict:
    """An executed notebook that left no results."""
    try:
        parameters = json.loads(executed.read_text(encoding="utf-8"))["metadata"]["papermill"]["parameters"]
    except (OSError, ValueError, KeyError):
        parameters = {}
    page = executed.with_suffix(".FAILED.html")
    link = f"{page.relative_to(reports)}#failed" if page.exists() else str(executed.relative_to(reports))
    return {
        "model": parameters.get("model", executed.parent.name), "revision": parameters.get("revision", "main"),
        "notebook": executed.stem, "state": "failed", "page": link,
    }  # fmt: skip


def summaries(reports: Path, notebook: str) -> pd.DataFrame:
    """The summary rows of one notebook for every model that has them, with the column ``model``."""
    found = []
    for path in sorted(reports.glob(f"*/{notebook}.json")):
        with contextlib.suppress(LitmusError):
            found.append(read(path))
    tables = [pd.DataFrame(result["summary"]).assign(model=result["model"]) for result in found]
    columns = ["model", "condition", "metric", "side", "cutoff", "n", "value", "low", "high", "coverage"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def per_model_notebooks() -> list[str]:
    """The numbered notebooks that run once a model and write results."""
    known = [path for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.py")) if {"model", "out"} <= set(parameters_of(path))]
    return [path.stem for path in known]


def matrix(found: pd.DataFrame, models: Sequence[str], notebooks: Sequence[str]) -> str:
    """An HTML table of models by notebooks: value with interval and link, "failed" with a link to the cell, or "not run"."""
    cells = {(row.model, row.notebook): row for row in found.itertuples()}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in notebooks)
    lines = []
    for model in models:
        row = "".join(_cell(cells.get((model, name))) for name in notebooks)
        lines.append(f'<tr><th scope="row">{escape(model)}</th>{row}</tr>')
    return f'<table class="matrix"><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _cell(result) -> str:
    if result is None:
        return '<td class="not-run">not run</td>'
    page = escape(result.page, quote=True)
    if result.state == "failed":
        return f'<td class="failed"><a href="{page}">failed</a></td>'
    value = "n/a" if pd.isna(result.value) else f"{result.value:.3f}"
    interval = "" if pd.isna(result.low) else f" [{result.low:.2f}, {result.high:.2f}]"
    coverage = "" if pd.isna(result.coverage) else f"<br><small>coverage {result.coverage:.0%}</small>"
    return f'<td><small>{escape(str(result.metric))}</small><br><a href="{page}">{value}</a>{interval}{coverage}</td>'
