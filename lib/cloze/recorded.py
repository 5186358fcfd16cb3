"""Recorded scores as a model: what an API, another framework or a published file said runs through the same notebooks.

A folder holds ``scores.csv`` (context, candidate, log_probability; natural log, empty where the candidate could not be
scored) and ``predictions.csv`` (context, rank, piece, log_probability; the last may be empty). A context is all before the
gap; spaces at its right edge do not count. The three-step layout of Ettinger (2020) is read and written too: one list of
contexts, one of targets, and for each model ``modelpreds-NAME-MODEL`` (likeliest words) and ``modeltgtprobs-NAME-MODEL``.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from lib.cloze.answers import REPLACEMENT, assemble
from lib.errors import LitmusError
from lib.items import lines_of
from lib.models.protocol import FilledBatch, Gap, Position, StartToken, Word

SCORES, PREDICTIONS = "scores.csv", "predictions.csv"
MASK = re.compile(r"\s*(\[MASK\]|<mask>)\s*\.?\s*$")
Scores = dict[tuple[str, str], float]
Predictions = dict[str, list[tuple[str, float]]]


@dataclass(frozen=True)
class Recorded:
    """Scores made elsewhere, in the place of a model.

    ``scores``: the log-probability of each (context, candidate), NaN where it could not be scored. ``predictions``: for each
    context the likeliest pieces in order, with their log-probabilities (NaN where unknown).
    """

    name: str
    scores: Scores
    predictions: Predictions
    revision: str = "as recorded"
    family: str = "recorded"
    device: str = "none"

    @property
    def identity(self) -> dict[str, str]:
        """What the results say about where the scores come from."""
        return {"model": self.name, "revision": self.revision, "dtype": "as recorded"}

    @cached_property
    def vocabulary(self) -> list[str]:
        """Every word that has a score somewhere."""
        return sorted({word for _, word in self.scores})

    def word(self, form: str, position: Position = "middle") -> Word:
        """The place of a form among the recorded words, where a model has its vocabulary items."""
        known = form in self.vocabulary
        return Word(form, (self.vocabulary.index(form),) if known else (), "" if known else "not_recorded")

    def fill(self, gaps: Sequence[Gap], start_token: StartToken = "never") -> Iterator[FilledBatch]:
        """What was recorded at each gap, NaN for every other word: enough to look at an item by hand."""
        for row, gap in enumerate(gaps):
            found = [self.scores.get((gap.left.rstrip(), word), np.nan) for word in self.vocabulary]
            yield FilledBatch([row], torch.tensor([found], dtype=torch.float32), "")

    def answers(self, items: pd.DataFrame) -> pd.DataFrame:
        """The answers to ``items`` (see ``lib.cloze.answers``), as far as they were recorded.

        Ranks are known down to the end of each list. A candidate without a score has the reason ``not_recorded``, or
        ``unscorable`` where the record says so; an expected word needs a place in a list only.
        """
        contexts = [context.rstrip() for context in items["context"]]
        listed = [(row, word) for row, words in enumerate(items["expected"]) for word in words]
        of_candidates = self._found(zip(range(len(items)), contexts, items["candidate"], strict=True))
        of_expected = self._found((row, contexts[row], word) for row, word in listed)
        in_a_list = of_expected["row"].map(lambda row: contexts[row] in self.predictions).astype(bool)
        enough = in_a_list & (of_expected["reason"] == "not_recorded")
        of_expected["reason"] = of_expected["reason"].where(~enough, "")
        top = pd.DataFrame([self._top(context) for context in contexts])
        return assemble(items, pd.factorize(np.array(contexts, dtype=object))[0], of_candidates, of_expected, top)

    def _found(self, asked: Iterable[tuple[int, str, str]]) -> pd.DataFrame:
        rows = []
        for row, context, word in asked:
            score = self.scores.get((context, word))
            reason = "not_recorded" if score is None else "unscorable" if np.isnan(score) else ""
            rows.append([row, np.nan if score is None else score, *self._rank(context, word), reason])
        return pd.DataFrame(rows, columns=["row", "log_probability", "rank", "place", "reason"])

    def _rank(self, context: str, word: str) -> tuple[float, float]:
        """Better and worse rank of a word among the listed ones, with all that are as likely; infinite if not listed."""
        listed = self.predictions.get(context, [])
        at = next((at for at, (piece, _) in enumerate(listed) if piece == word), None)
        if at is None:
            return np.inf, np.inf
        same = [other for other, (_, score) in enumerate(listed) if score == listed[at][1]] or [at]
        return min(same) + 1, max(same) + 1

    def _top(self, context: str) -> dict[str, Any]:
        listed = self.predictions.get(context, [])
        pieces = tuple(piece for piece, _ in listed)
        return {
            "top_ids": pieces, "top_pieces": pieces, "top_kinds": tuple(map(_kind, pieces)),
            "top_probabilities": tuple(float(np.exp(score)) for _, score in listed), "ranks_to": len(listed),
        }  # fmt: skip


def found(name: str | Path) -> bool:
    """Whether a model's name is a folder of recorded scores."""
    return (Path(name) / SCORES).is_file()


def read(folder: str | Path, name: str = "") -> Recorded:
    """The recorded scores of a folder; ``name``: the model's, else the folder's. Raises LitmusError naming file and line."""
    folder = Path(folder)
    scores: Scores = {}
    for line, cells in _rows(folder / SCORES, ("context", "candidate", "log_probability")):
        key = cells["context"].rstrip(), cells["candidate"].strip()
        _keep(scores, key, _log_probability(folder / SCORES, line, cells["log_probability"]), folder / SCORES, line)
    ranked: dict[str, dict[int, tuple[str, float]]] = {}
    path = folder / PREDICTIONS
    for line, cells in _rows(path, ("context", "rank", "piece", "log_probability")) if path.exists() else []:
        if not re.fullmatch(r"[1-9]\d{,8}", cells["rank"]):
            raise LitmusError(f"{path}, line {line}: the rank '{cells['rank']}' is no whole number from 1 on.")
        prediction = cells["piece"], _log_probability(path, line, cells["log_probability"])
        of_context = ranked.setdefault(cells["context"].rstrip(), {})
        _keep(of_context, int(cells["rank"]), prediction, path, line)
    for context, of_context in ranked.items():
        if sorted(of_context) != list(range(1, len(of_context) + 1)):
            raise LitmusError(f"{path}: the ranks of '{context}' are not 1 to {len(of_context)}; give every rank once.")
    predictions = {context: [of_context[rank] for rank in sorted(of_context)] for context, of_context in ranked.items()}
    return Recorded(name or folder.name, scores, predictions)


def write(answers: pd.DataFrame, folder: str | Path) -> None:
    """Write answers as recorded scores: what ``read`` reads."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    once = answers.drop_duplicates(["context", "candidate"])
    once[["context", "candidate", "log_probability"]].to_csv(folder / SCORES, index=False)
    rows = [
        [row.context, rank, piece, np.log(probability) if probability > 0 else -np.inf]
        for row in answers.drop_duplicates("context").itertuples()
        for rank, (piece, probability) in enumerate(zip(row.top_pieces, row.top_probabilities, strict=True), start=1)
    ]
    table = pd.DataFrame(rows, columns=["context", "rank", "piece", "log_probability"])
    table.to_csv(folder / PREDICTIONS, index=False)


def write_lists(items: pd.DataFrame, folder: str | Path, name: str, mask: str = "") -> None:
    """Step one of the published layout: ``NAME-contextlist`` and ``NAME-targetlist``, a line an item.

    ``name``: in the paper ``cprag``, ``role``, ``negsimp`` or ``negnat``. ``mask``: a mask token to end each context with.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / f"{name}-contextlist", (f"{context} {mask}".rstrip() for context in items["context"]))
    _write_lines(folder / f"{name}-targetlist", items["candidate"])


def write_responses(answers: pd.DataFrame, folder: str | Path, name: str, model: str, k: int = 5) -> None:
    """Step two: the likeliest k pieces (between spaces) and the probability of the target, a line an item.

    ``nan`` for a target that cannot be scored; white space inside a piece is written as ``▁``.
    """
    pieces = answers["top_pieces"].map(lambda listed: " ".join(re.sub(r"\s", "▁", piece) for piece in listed[:k]))
    _write_lines(Path(folder) / f"modelpreds-{name}-{model}", pieces)
    _write_lines(Path(folder) / f"modeltgtprobs-{name}-{model}", map(str, answers["probability"].astype(float)))


def read_responses(folder: str | Path, name: str, model: str) -> Recorded:
    """Step three: the published layout as recorded scores. Raises LitmusError naming file and line."""
    folder = Path(folder)
    names = (f"{name}-contextlist", f"{name}-targetlist", f"modelpreds-{name}-{model}", f"modeltgtprobs-{name}-{model}")
    lists = [lines_of(folder / file) for file in names]
    for file, listed in zip(names[1:], lists[1:], strict=True):
        if len(listed) != len(lists[0]):
            raise LitmusError(
                f"{folder / file} has {len(listed)} lines and {names[0]} {len(lists[0])}; they must belong together."
            )
    scores: Scores = {}
    predictions: Predictions = {}
    for (_, context), (_, target), (line, pieces), (_, probability) in zip(*lists, strict=True):
        context = MASK.sub("", context).rstrip()
        score = _log_of(folder / names[3], line, probability.strip())
        _keep(scores, (context, target.strip()), score, folder / names[3], line)
        _keep(
            predictions,
            context,
            [(piece, np.nan) for piece in pieces.strip().split(" ") if piece],
            folder / names[2],
            line,
        )
    return Recorded(model, scores, predictions)


def _kind(piece: str) -> str:
    """A guess, because a record does not say where words begin."""
    return "bytes" if REPLACEMENT in piece else "word" if piece[:1].isalnum() else "piece"


def _keep(kept: dict, key: Any, value: Any, path: Path, line: int) -> None:
    if key in kept and not _equal(kept[key], value):
        raise LitmusError(f"{path}, line {line} contradicts an earlier line about {key!r}; keep one of them.")
    kept[key] = value


def _equal(a: Any, b: Any) -> bool:
    return str(a) == str(b)  # NaN is equal to itself here


def _rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    if not path.is_file():
        raise LitmusError(f"There is no file {path}; recorded scores need it.")
    with path.open(encoding="utf-8", newline="") as text:
        reader = csv.DictReader(text, strict=True)
        try:
            header, rows = reader.fieldnames or [], [(reader.line_num, row) for row in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise LitmusError(f"{path}, line {reader.line_num} is not CSV in UTF-8 ({error}); mend it.") from None
    if missing := [column for column in columns if column not in header]:
        raise LitmusError(f"{path}, line 1 names no column '{missing[0]}'; the columns are {', '.join(columns)}.")
    for line, row in rows:
        if None in row or None in row.values():
            raise LitmusError(f"{path}, line {line} has more or fewer cells than the header; mend the commas.")
    return rows


def _log_probability(path: Path, line: int, text: str) -> float:
    try:
        score = float(text) if text.strip() else np.nan
    except ValueError:
        score = 1.0
    if score > 0:
        raise LitmusError(f"{path}, line {line}: '{text}' is no log-probability; give natural logarithms, at most 0.")
    return score


def _log_of(path: Path, line: int, text: str) -> float:
    try:
        probability = float(text)
    except ValueError:
        probability = -1.0
    if probability < 0 or probability > 1:
        raise LitmusError(f"{path}, line {line}: '{text}' is no probability between 0 and 1, and not nan.")
    return float(np.log(probability)) if probability else -np.inf


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
