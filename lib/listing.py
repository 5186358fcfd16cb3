"""Models by name: the rows of ``data/models.csv``, and how a revision is said (``name@revision``)."""

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lib.errors import LitmusError
from lib.paths import DATA
from lib.say import shown

FILE = DATA / "models.csv"
COLUMNS = ("name", "source", "family", "revision", "grid", "parameters_millions", "disk_megabytes", "memory_megabytes",
           "licence", "note")  # fmt: skip
MAIN = "main"  # the revision of a model of which none is named


def read(path: Path | None = None) -> dict[str, dict[str, str]]:
    """Rows of ``data/models.csv`` by name. Raises LitmusError, with the line, where it is not such a table."""
    path = path or FILE
    if not path.is_file():
        raise LitmusError(f"{path} is missing; it lists the models by name.")
    rows: dict[str, dict[str, str]] = {}
    advice = "save it as CSV UTF-8, separated by commas"
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            if missing := [column for column in COLUMNS if column not in (reader.fieldnames or [])]:
                raise LitmusError(f"{path}, line 1: there is no column {', '.join(missing)}; {advice}.")
            for row in reader:
                line = reader.line_num
                if problem := _problem(row, rows):
                    raise LitmusError(f"{path}, line {line}: {problem}.")
                rows[row["name"]] = row
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise LitmusError(f"{path}, line {line}: this is not UTF-8 text; {advice}.") from error
    except csv.Error as error:
        raise LitmusError(f"{path}, after line {line}: this is not CSV ({error}); {advice}.") from error
    return rows


def _problem(row: Mapping[Any, Any], above: Mapping[str, Any]) -> str:
    """What is wrong with a row of models, in words; "" where nothing is."""
    if None in row or None in row.values():
        return f"this row has not {len(COLUMNS)} fields; put text with commas into quotation marks"
    name = row["name"]
    if not name.strip() or not row["source"].strip():
        return "the name or the source is empty"
    if name in above:
        return f"{shown(name)} is there twice; keep one row of it"
    if row["grid"] not in ("yes", "no"):
        return f"grid is yes or no, not {shown(repr(row['grid']))}"
    if row["memory_megabytes"] and not re.fullmatch(r"\d{1,9}", row["memory_megabytes"]):
        return f"memory_megabytes is a whole number or empty, not {shown(repr(row['memory_megabytes']))}"
    if row["parameters_millions"] and not re.fullmatch(r"\d{1,9}(\.\d+)?", row["parameters_millions"]):
        return f"parameters_millions is a number or empty, not {shown(repr(row['parameters_millions']))}"
    return ""


def with_revision(word: str, known: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    """Model and revision of ``model@revision``; a name without @ has the revision of its row, else ``main``.

    A name in ``known`` (rows by name), or of something that lies there, is taken as it stands. Raises LitmusError where
    one of the two is empty.
    """
    if word in known:
        return word, known[word]["revision"] or MAIN
    model, at, revision = word.rpartition("@")
    if not at or os.path.exists(os.path.expanduser(word)):
        return word, MAIN
    if not model or not revision:
        raise LitmusError(f"{shown(word)} is not of the form model@revision; name both, or leave out the @.")
    return model, revision
