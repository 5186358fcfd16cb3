"""Every result there is under ``reports``: one row each, done, failed or damaged, and the models in their order."""

import re
import shlex
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from lib import listing
from lib.errors import LitmusError
from lib.paths import NOTEBOOKS
from lib.results import read, whole_json
from lib.run import parameters_of

COLUMNS = ["label", "model", "revision", "notebook", "title", "state", "reason", "page", "metric", "value", "low", "high",
           "n", "coverage", "data", "sample", "family", "seconds", "date", "items", "record"]  # fmt: skip
NUMBERS = ["value", "low", "high", "n", "coverage", "seconds"]
NO_RESULTS = "it left no results"
LONG = 40  # characters of a model's name that a heading of a table holds


def collect(reports: Path) -> pd.DataFrame:
    """One row a result under ``reports``.

    A result is what tells so itself, or what lies where one belongs: a file named as a notebook, or with a notebook beside
    it that papermill executed. Other files, and links out of ``reports``, are none.

    Columns: ``label`` (how the model is called on the page: its name, with its revision where that is not ``main``),
    ``model``, ``revision``, ``notebook``, ``title``, ``state`` (``done``, ``failed``, or ``damaged``: there, and not to be
    read), ``reason`` (why, in words), ``page`` (relative to ``reports``); of the headline ``metric``, ``value``, ``low``,
    ``high``, ``n``, ``coverage``; ``data``, ``sample``, ``family``, ``seconds``, ``date``; ``items`` (path of the table of
    items) and ``record`` (all that the JSON holds).
    """
    known = {path.stem for path in NOTEBOOKS.glob("*.py")}
    rows = [_done(path, reports) for path in _within(reports, "*/*.json") if _is_ours(path, known)]
    executed = [path for path in _within(reports, "*/*.ipynb") if not path.with_suffix(".json").exists()]
    rows += [_failed(path, reports) for path in executed if _is_ours(path, known)]
    found = pd.DataFrame(rows, columns=COLUMNS)
    found[NUMBERS] = found[NUMBERS].apply(pd.to_numeric, errors="coerce")
    twice = found.duplicated(
        ["label", "notebook"], keep=False
    )  # two folders with one model: neither may hide the other
    found.loc[twice, "label"] = [Path(page).parts[0] for page in found.loc[twice, "page"]]
    return found


def _within(reports: Path, pattern: str) -> list[Path]:
    """Files of ``reports``, but for those that a link brings in from elsewhere."""
    home = reports.resolve()
    return [path for path in sorted(reports.glob(pattern)) if path.resolve().is_relative_to(home)]


def _is_ours(path: Path, known: Set[str]) -> bool:
    """True for a result, whole or damaged, of a notebook whose name is ``known`` or that papermill executed."""
    if path.stem.split("--")[0] in known or _parameters(path):
        return True
    with suppress(LitmusError):
        return path.suffix == ".json" and bool(read(path))
    return False


def _parameters(path: Path) -> dict[str, Any]:
    """With which parameters the notebook of a result was executed; none where that cannot be read."""
    try:
        return dict(whole_json(path.with_suffix(".ipynb"))["metadata"]["papermill"]["parameters"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}


def again(path: Path) -> str:
    """How to make the result at ``path`` again, in words: with the command, where notebook and model are known."""
    asked = _parameters(path)
    model, revision = asked.get("model"), asked.get("revision", listing.MAIN)
    if not (isinstance(model, str) and 0 < len(model) < 200) or path.stem not in per_model_notebooks():
        return "run it again"
    name = model if revision == listing.MAIN else f"{model}@{revision}"
    return f"make it again: make reports MODELS={shlex.quote(shlex.quote(name))} NOTEBOOKS={path.stem}"


def _done(path: Path, reports: Path) -> dict[str, Any]:
    rendered = path.with_suffix(".html")  # a run without a page links to its numbers
    row: dict[str, Any] = {
        "notebook": path.stem,
        "page": (rendered if rendered.exists() else path).relative_to(reports).as_posix(),
    }
    try:
        record = read(path)
        headline, data, made = _parts(record)
        row |= {key: headline.get(key) for key in ("metric", "value", "low", "high", "n", "coverage")}
        return row | {
            "label": _label(record["model"], record["revision"], path), "model": record["model"],
            "revision": record["revision"], "state": "done", "reason": "", "title": str(record["title"]), "data": data["name"],
            "sample": data["sample"], "family": record["family"], "seconds": made["seconds"], "date": str(made["date"])[:10],
            "items": path.with_suffix(".parquet"), "record": record,
        }  # fmt: skip
    except LitmusError:
        reason = f"{path.name} is no whole result"
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"{path.name} {f'lacks {error}' if isinstance(error, KeyError) else 'has another form'}"
    name = path.parent.name
    return row | {"label": name, "model": name, "state": "damaged", "reason": f"{reason}; {again(path)}"}


def _parts(record: dict[str, Any]) -> tuple[dict, dict, dict]:
    """Headline, data and provenance of a result. Raises TypeError where a part of it has another form than results have."""
    parts = [record["headline"], record["data"], record["provenance"], *record["summary"]]
    parts += [record["data"].get("sha256", {}), record.setdefault("choices", {})]
    texts = [
        *(record[key] for key in ("model", "revision", "family")),
        *(record["data"][key] for key in ("name", "sample")),
    ]
    if not all(isinstance(part, dict) for part in parts) or not all(isinstance(text, str) for text in texts):
        raise TypeError
    return record["headline"], record["data"], record["provenance"]


def _failed(executed: Path, reports: Path) -> dict[str, Any]:
    """An executed notebook that left no results."""
    model, revision, reason = executed.parent.name, listing.MAIN, NO_RESULTS
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):  # half of one, or none
        notebook = whole_json(executed)
        parameters = notebook["metadata"]["papermill"]["parameters"]
        model, revision = str(parameters.get("model", model)), str(parameters.get("revision", revision))
        reason = _reason(notebook)
    page = executed.with_suffix(".FAILED.html")
    link = (
        f"{page.relative_to(reports).as_posix()}#failed" if page.exists() else executed.relative_to(reports).as_posix()
    )
    return {"label": _label(model, revision, executed), "model": model, "revision": revision, "notebook": executed.stem,
            "state": "failed", "reason": reason, "page": link}  # fmt: skip


def _reason(notebook: Mapping[str, Any]) -> str:
    """What the failing cell said, in a line."""
    outputs = [output for cell in notebook.get("cells", []) for output in cell.get("outputs", [])]
    said = [output.get("evalue", "") for output in outputs if output.get("output_type") == "error"]
    line = next((line.strip() for line in reversed(said[0].splitlines()) if line.strip()), "") if said else ""
    return line[:200] or NO_RESULTS


def _label(model: str, revision: str, path: Path) -> str:
    """A model as a heading: a path or a very long name by its folder, which ``lib.results.safe_name`` made of it."""
    if len(model) > LONG or model[:1] in (".", "/", "~") or "\\" in model or not model:
        return path.parent.name
    return model if revision in ("", listing.MAIN) else f"{model}@{revision}"


def models_in_order(found: pd.DataFrame) -> list[str]:
    """Labels in the one order of every table and picture: those of ``data/models.csv`` as listed, then others by name.

    Models of the default grid are there even where nothing has run. States of one model stand by the number in their
    revision, ``main`` last.
    """
    listed = listing.read()
    place = {name: number for number, name in enumerate(listed)}
    rows = found.drop_duplicates("label")[["label", "model", "revision"]].fillna("").astype(str)
    known = [(place.get(row.model, len(place)), row.model, *revision_order(row.revision), row.label)
             for row in rows.itertuples()]  # fmt: skip
    ran = set(found["model"])
    known += [(place[name], name, 0, 0.0, "", name) for name, row in listed.items()
              if row["grid"] == "yes" and name not in ran]  # fmt: skip
    return [label for *_, label in sorted(known)]


def revision_order(revision: str) -> tuple[int, float, str]:
    """By the last number in a revision's name (``step1000``, ``checkpoint-20``); without one before these, ``main`` last."""
    numbers = re.findall(r"\d+", revision)
    if revision in ("", listing.MAIN) or not numbers:
        return (2 if revision in ("", listing.MAIN) else 0), 0.0, revision
    return 1, float(numbers[-1]), revision


def summaries(found: pd.DataFrame, notebook: str) -> pd.DataFrame:
    """The summary rows of one notebook for every model that has them, with the column ``model`` (its label)."""
    rows = found[(found["notebook"] == notebook) & (found["state"] == "done")]
    tables = [pd.DataFrame(row.record["summary"]).assign(model=row.label) for row in rows.itertuples()]
    columns = ["condition", "metric", "value", "low", "high", "n", "coverage", "side", "cutoff", "model"]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return table.reindex(columns=[*columns, *(name for name in table if name not in columns)])


def over_revisions(found: pd.DataFrame, titles: Mapping[str, str]) -> pd.DataFrame:
    """Headlines of models that have results of several revisions on a diagnostic, from the first revision to the last.

    Columns: ``diagnostic``, ``model``, ``revision``, ``value``, ``low``, ``high``.
    """
    rows = found[(found["state"] == "done") & found["value"].notna()]
    states = rows.drop_duplicates(["notebook", "model", "revision"]).groupby(["notebook", "model"]).size()
    keys = pd.MultiIndex.from_frame(rows[["notebook", "model"]])
    rows = rows[states.reindex(keys).to_numpy() > 1]
    order = [revision_order(name) for name in rows["revision"]]
    rows = rows.assign(diagnostic=[titles[name] for name in rows["notebook"]], order=order)
    return rows.sort_values(["notebook", "order"], kind="stable")[
        ["diagnostic", "model", "revision", "value", "low", "high"]
    ]


def per_model_notebooks() -> list[str]:
    """The numbered notebooks that run once a model and write results."""
    known = [path for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.py")) if {"model", "out"} <= set(parameters_of(path))]
    return [path.stem for path in known]


def titles(found: pd.DataFrame, notebooks: Sequence[str]) -> dict[str, str]:
    """What each notebook asks, in short: its title up to the colon."""
    known = dict(found.loc[found["title"].notna(), ["notebook", "title"]].to_numpy())
    return {name: _short_title(known.get(name) or _heading(name)) for name in notebooks}


def _heading(notebook: str) -> str:
    path = NOTEBOOKS / f"{notebook}.py"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line.removeprefix("# # ") for line in lines if line.startswith("# # ")), notebook)


def _short_title(title: str) -> str:
    return title.split(":")[0].strip()
