"""Items: published files and our own, read strictly and prepared as the papers prepared them.

Every reader returns a table with one row an item and says, when a line is wrong, which file, which line, and what is
wrong with it.
"""

import csv
import json
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.errors import LitmusError
from lib.models.protocol import Gap, LanguageModel
from lib.paths import DATA, check_finite
from lib.say import shown

LABELS = {-2: "plural", -1: "singular"}
FIELDS = ("sentence_good", "sentence_bad", "label")
EXTRAS = ("id", "paradigm", "subject_number", "attractor_number", "match", "subject", "verb")
OURS = DATA / "items" / "agreement"


def read_agreement(path: str | Path) -> pd.DataFrame:
    """The agreement pairs of a JSONL file in the published format of Newman et al. (2021), prepared as they were.

    A line holds ``sentence_good``, ``sentence_bad`` and ``label`` (-2: the right verb is plural, -1: singular). ASCII
    punctuation is stripped from both ends, the rest split on white space, and the one differing word is the gap.
    Columns: ``file``, ``line``, ``sentence_good``, ``sentence_bad``, ``label``, ``number`` of the right form, ``left``,
    ``good``, ``bad``, ``right`` and those of ``EXTRAS`` that the file has. Raises LitmusError naming file and line.
    """
    path = Path(path)
    rows = [_agreement_row(path, line, text) for line, text in lines_of(path)]
    if not rows:
        raise LitmusError(f"{path} holds no items; an item file has one JSON object a line.")
    return pd.DataFrame(rows)


def lines_of(path: Path) -> list[tuple[int, str]]:
    """The non-blank lines of a text file with their numbers: UTF-8 without byte-order mark, Unix line ends."""
    check_finite(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise LitmusError(f"There is no file {path}; check the path.") from None
    except OSError as error:
        raise LitmusError(f"{path} cannot be read ({error.strerror}); name a text file.") from None
    except UnicodeDecodeError as error:
        raise LitmusError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    except ValueError as error:  # a name with a null byte
        raise LitmusError(f"{path} is no name of a file ({error}); check the path.") from None
    if text.startswith("\ufeff"):
        raise LitmusError(f"{path}, line 1 starts with a byte-order mark; save the file as UTF-8 without BOM.")
    lines = list(enumerate(text.split("\n"), start=1))  # never splitlines(): items may hold other line separators
    if returns := [number for number, line in lines if "\r" in line]:
        whose = "a Windows line end" if "\r\n" in text else "line ends of old Macs (CR)"
        raise LitmusError(f"{path}, line {returns[0]} has {whose}; save the file with Unix line ends (LF).")
    if nulls := [number for number, line in lines if "\0" in line]:
        raise LitmusError(f"{path}, line {nulls[0]} holds null characters, as UTF-16 does; save the file as UTF-8.")
    return [(number, line) for number, line in lines if line.strip()]


def json_object(where: str, text: str) -> dict[str, Any]:
    """The object that one line of an item file holds. Raises LitmusError, which begins with ``where``, if it is none."""
    try:
        item = json.loads(text)
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # an escape can make what neither a tokenizer nor a file takes
        raise LitmusError(f"{where} holds half of a character (such as \\ud83d alone); write it in full.") from None
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
        raise LitmusError(f"{where} is not valid JSON ({why}); each line is one JSON object.") from None
    if not isinstance(item, dict):
        raise LitmusError(f'{where} is not a JSON object; write it as {{"sentence_good": ..., ...}}.')
    return item


def _agreement_row(path: Path, line: int, text: str) -> dict[str, Any]:
    where = f"{path}, line {line}"
    item = json_object(where, text)
    if missing := [field for field in FIELDS if field not in item]:
        other = " (a BLiMP paradigm, which 24_blimp reads?)" if "UID" in item else ""
        raise LitmusError(f"{where} lacks the field '{missing[0]}'{other}; an item needs {', '.join(FIELDS)}.")
    if type(item["label"]) is not int or item["label"] not in LABELS:
        raise LitmusError(f"{where} has the label {item['label']!r}; use -2 (right verb plural) or -1 (singular).")
    for field in FIELDS[:2]:
        if not isinstance(item[field], str):
            raise LitmusError(f"{where}: '{field}' is not text; write the sentence in quotation marks.")
    _check_attractor(item, where)
    left, good, bad, right = split_at_difference(item["sentence_good"], item["sentence_bad"], where)
    extras = {field: item[field] for field in EXTRAS if field in item}
    return {
        "file": path.stem, "line": line, **{field: item[field] for field in FIELDS}, "number": LABELS[item["label"]],
        "left": left, "good": good, "bad": bad, "right": right, **extras,
    }  # fmt: skip


def agreement_files(published: Path | None = None, chosen: Sequence[str] = ()) -> pd.DataFrame:
    """The item files of a run: ``template`` (row of the paper's table), ``construction`` and ``path``, one row a file.

    ``chosen`` paths if any; else the published files under ``published`` if they are there; else our own.
    ``data/constructions.csv`` says which file belongs to which template. Raises LitmusError for a file that is chosen twice,
    and for two of one name, whose items would have one name too.
    """
    known = pd.read_csv(DATA / "constructions.csv", keep_default_na=False)
    if chosen:
        templates = dict(zip(known["construction"], known["template"], strict=True))
        stems = [Path(path).stem.removesuffix("_all") for path in chosen]
        _check_apart([Path(path) for path in chosen], stems)
        templates_of_stems = [templates.get(stem, stem) for stem in stems]
        return pd.DataFrame({"template": templates_of_stems, "construction": stems, "path": [Path(p) for p in chosen]})
    there = [bool(published) and (published / file).exists() for file in known["published"]]
    if published and any(there):
        if not all(there):
            missing = known.loc[~np.array(there), "published"]
            raise LitmusError(
                f"{len(missing)} of {len(known)} agreement files are missing in {published}, first {missing.iloc[0]}; "
                "complete them by make data, or name another folder."
            )
        return known.assign(path=[published / file for file in known["published"]])[
            ["template", "construction", "path"]
        ]
    known = known[known["ours"] != ""]
    known = known.assign(
        construction=[Path(file).stem for file in known["ours"]], path=[OURS / f for f in known["ours"]]
    )
    return known[["template", "construction", "path"]]


def _check_apart(paths: Sequence[Path], names: Sequence[str]) -> None:
    """Refuse files that cannot be told apart: one named twice, by whatever path, or two whose items would share names."""
    for at, path in enumerate(paths):
        for before, name in zip(paths[:at], names, strict=False):
            if path.exists() and before.exists() and path.samefile(before):
                raise LitmusError(f"{path} and {before} are one file, whose items would count twice; name it once.")
            if name == names[at]:
                raise LitmusError(
                    f"{path} and {before} are both called {name}, by which their items are named; rename one."
                )


def origin(paths: Sequence[Path], published: Path | None = None) -> str:
    """In words, where item files come from: ``published: SET``, ``our own items``, or both.

    The name ``published`` is for files that are as published, by their checksums: others make it ``changed: SET``, with their
    number and what to do.
    """
    from lib.published import changed

    theirs = [Path(path).relative_to(published) for path in paths if published and Path(path).is_relative_to(published)]
    if published is None or not theirs:
        return "our own items"
    others = changed(theirs, published)
    kind = "changed" if others else "published"
    words = f"{kind}: {', '.join(sorted({path.parts[0] for path in theirs}))}"
    if others:
        words += f" ({len(others)} of {len(theirs)} files not as published, first {others[0].name}; make data gets them anew)"
    return words + ("" if len(theirs) == len(paths) else ", and our own items")


def tell_repeats(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Say, below the cell that reads them, how many rows repeat others of their file. Published sets have such: all count."""
    again = table.duplicated(["file", *columns])
    for file, lines in table[again].groupby("file", sort=False)["line"]:
        print(f"{shown(str(file))}: repeated pairs: {len(lines)} (first in line {lines.iloc[0]}); each counts.")


def read_pairs(files: pd.DataFrame, limit: int = 0, how: str = "seeded", seed: int = 0) -> tuple[pd.DataFrame, str]:
    """The pairs of all files with their ``template`` and ``construction``, and words for the sample that was taken.

    ``files`` as from ``agreement_files``; ``limit``, ``how`` and ``seed`` as in ``sample``, for each construction.
    """
    tables, cut = [], False
    for file in files.itertuples():
        whole = read_agreement(file.path)
        kept = sample(whole, limit, how, seed)
        cut = cut or len(kept) < len(whole)
        tables.append(kept.assign(template=file.template, construction=file.construction))
    words = f"{'first ' if how == 'first' else ''}{limit} pairs per construction"
    words += f", drawn with seed {seed}" if how == "seeded" else ""
    pairs = pd.concat(tables, ignore_index=True)
    tell_repeats(pairs, ["sentence_good", "sentence_bad"])
    return pairs, words if cut else "all"


def _check_attractor(item: dict[str, Any], where: str) -> None:
    """Whoever marks attractors marks them whole: the three fields together, with values that mean something."""
    marks = {"subject_number": ("singular", "plural"), "attractor_number": ("singular", "plural", None),
             "match": (True, False, None)}  # fmt: skip
    given = [field for field in marks if field in item]
    if given and len(given) < len(marks):
        raise LitmusError(f"{where} has {' and '.join(given)} only; give {', '.join(marks)} together or none of them.")
    for field in given:
        if item[field] not in marks[field] or type(item[field]) in (int, float):  # 1 is not True
            raise LitmusError(f"{where}: '{field}' is {item[field]!r}; use one of {', '.join(map(str, marks[field]))}.")


def split_at_difference(sentence_good: str, sentence_bad: str, where: str = "this pair") -> tuple[str, str, str, str]:
    """Left context, good form, bad form, right context of two sentences that differ in exactly one word."""
    good, bad = (sentence.strip(string.punctuation).split() for sentence in (sentence_good, sentence_bad))
    if len(good) != len(bad):
        raise LitmusError(
            f"{where}: the sentences have {len(good)} and {len(bad)} words; they must differ in exactly one word."
        )
    different = [i for i, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b]
    if len(different) != 1:
        found = "no word" if not different else f"{len(different)} words"
        raise LitmusError(f"{where}: the sentences differ in {found}; they must differ in exactly one.")
    [at] = different
    return " ".join(good[:at]), good[at], bad[at], " ".join(good[at + 1 :])


def gaps(items: pd.DataFrame, capitalise: bool, full_stop: bool = True) -> list[Gap]:
    """The gap of every item as the paper set it: first word capitalised (for cased models), a full stop at the end.

    A gap that opens its sentence stays without left context; its forms are then capitalised by the model's ``word``.
    """
    lefts = [_capitalised(left) if capitalise else left for left in items["left"]]
    return [Gap(left, right + ("." if full_stop else "")) for left, right in zip(lefts, items["right"], strict=True)]


def capitalises(choice: str, model: LanguageModel) -> bool:
    """Whether first words are capitalised: ``auto`` where the model's vocabulary is cased, else ``yes`` or ``no``."""
    if choice not in ("auto", "yes", "no"):
        raise LitmusError(f"'{choice}' does not say whether to capitalise; choose 'auto', 'yes' or 'no'.")
    return model.cased if choice == "auto" else choice == "yes"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def sample(items: pd.DataFrame, limit: int, how: str = "seeded", seed: int = 0) -> pd.DataFrame:
    """At most ``limit`` rows (0: all), in file order: drawn by ``seed`` (``seeded``), or the ``first`` ones."""
    if limit < 0:
        raise LitmusError(f"A limit of {limit} items makes no sense; use 0 for all or a positive number.")
    if seed < 0:
        raise LitmusError(f"A seed is a whole number from 0 on; {seed} is not.")
    if how not in ("seeded", "first"):
        raise LitmusError(f"'{how}' is no way to take a sample; choose 'seeded' or 'first'.")
    if not limit or len(items) <= limit:
        return items
    if how == "first":
        return items.head(limit)
    chosen = np.random.default_rng(seed).choice(len(items), size=limit, replace=False)
    return items.iloc[np.sort(chosen)]


def sample_groups(items: pd.DataFrame, column: str, limit: int, how: str = "seeded", seed: int = 0) -> pd.DataFrame:
    """At most ``limit`` groups of rows (0: all) that share a value of ``column``, whole and in file order."""
    groups = sample(items[[column]].drop_duplicates(), limit, how, seed)
    return items[items[column].isin(groups[column])].reset_index(drop=True)


def verb_list(chosen: str, published: Path | None = None) -> Path:
    """The verb list of a run: the chosen file, else the published one where it is, else our own ``data/verbs.csv``."""
    listed = published / "refining-tse" / "verbs" / "combined_verb_list.csv" if published else None
    return Path(chosen) if chosen else listed if listed and listed.exists() else DATA / "verbs.csv"


def read_verbs(path: str | Path) -> pd.DataFrame:
    """A verb list in the published format ``idx,sing,plur,freq``: columns ``singular``, ``plural``, ``frequency``, ``line``.

    Lemmas are told apart by their two forms, never by ``idx`` (constant in the published file, whose own reader so keeps
    one verb of 1,951). Repeated rows count once, which is printed. A row whose two forms are the same is an error, and so is
    one that another row has the other way round; a row whose form also stands in the other column elsewhere is kept and
    marked in ``ambiguous``.
    """
    path = Path(path)
    lines = [(line, _cells(path, line, text)) for line, text in lines_of(path)]
    start, header = lines[0] if lines else (1, [])
    if missing := [column for column in ("sing", "plur") if column not in header]:
        raise LitmusError(
            f"{path}, line {start} names no column '{missing[0]}'; a verb list starts with idx,sing,plur,freq."
        )
    rows = []
    for line, listed in lines[1:]:
        cells = dict(zip(header, listed, strict=False))
        singular, plural = (cells.get(column, "") for column in ("sing", "plur"))
        if len(listed) != len(header) or not singular or not plural:
            raise LitmusError(
                f"{path}, line {line}: '{','.join(listed)}' is not {','.join(header)}; give every verb both forms."
            )
        if singular == plural:
            raise LitmusError(
                f"{path}, line {line}: both forms are '{singular}'; a verb that does not inflect tests nothing."
            )
        rows.append({"singular": singular, "plural": plural, "frequency": _number(cells.get("freq", "")), "line": line})
    if not rows:
        raise LitmusError(f"{path} holds no verbs; every line after the first is one.")
    table = pd.DataFrame(rows).drop_duplicates(["singular", "plural"], ignore_index=True)
    if len(table) < len(rows):
        print(f"{path.name}: repeated verbs: {len(rows) - len(table)}; each counts once.")
    _check_no_contradiction(table, path)
    in_both = set(table["singular"]) & set(table["plural"])
    return table.assign(ambiguous=table["singular"].isin(in_both) | table["plural"].isin(in_both))


def _check_no_contradiction(verbs: pd.DataFrame, path: Path) -> None:
    line_of = {(row.singular, row.plural): row.line for row in verbs.itertuples()}
    for (singular, plural), line in line_of.items():
        if before := line_of.get((plural, singular)):
            raise LitmusError(
                f"{path}, lines {line} and {before} call '{singular}' the singular of '{plural}' and its plural; "
                "take one of them out."
            )


def _cells(path: Path, line: int, text: str) -> list[str]:
    try:
        [cells] = csv.reader([text], strict=True)
    except csv.Error as error:
        raise LitmusError(f"{path}, line {line} is not a row of a CSV file ({error}); mend its quotes.") from None
    return [cell.strip() for cell in cells]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def count_by(items: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """How many items there are of each kind: the columns and ``items``."""
    return items.groupby(list(columns), sort=False, dropna=False).size().rename("items").reset_index()
