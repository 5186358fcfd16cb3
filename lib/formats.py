"""Files of minimal pairs in the formats that published work uses, read into one table, converted, and written back.

Three tab-separated formats, told apart by their header (quoted as spreadsheets quote: a cell with a quotation mark stands
in quotation marks, its own doubled):

* *original* (Gulordava et al. 2018): two rows a pair, ``correct`` and ``wrong``, with one sentence;
* *word-focused*: ``pattern, form, form_alt, sent, len_prefix``, a pair differs in one word;
* *sentence-focused*: ``pattern, sent, sent_alt``, a pair may differ in any number of words.

Read as well: Linzen, Dupoux and Goldberg's ``.text``/``.gold``/``.eval``, Marvin and Linzen's templates (their table of
sentences, their pickles) and the JSONL that Newman et al. (2021) made of them.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from lib.errors import LitmusError
from lib.paths import check_finite

Format = Literal["original", "word-focused", "sentence-focused"]
HEADERS: dict[str, tuple[str, ...]] = {
    "original": ("pattern", "constr_id", "sent_id", "form", "class", "len_prefix", "sent"),
    "word-focused": ("pattern", "form", "form_alt", "sent", "len_prefix"),
    "sentence-focused": ("pattern", "sent", "sent_alt"),
    "marvin-linzen": ("test case", "grammatical", "ungrammatical"),
}
FORMATS = tuple(HEADERS)[:3]  # those that can be written
PAIR = ("file", "line", "format", "item", "sentence_good", "sentence_bad", "left", "good", "bad", "right")
OURS = (*PAIR, "line_alt")
END = "<eos>"
ALL = "all"  # in summaries, the row over every pattern
ASCII_SPACE = " \t\n\r\f\v"
CLOSES = '.,;:!?)]}"”'
Row = dict[str, str]


def read(path: str | Path) -> pd.DataFrame:
    """The minimal pairs of a file, one row a pair, whatever of the formats above it has.

    Columns of every table: ``pattern``; ``file``, ``line``, ``format``, ``item`` (a name within the file);
    ``sentence_good`` and ``sentence_bad`` in full, without ``<eos>``; and the gap, where the two differ in one word:
    ``left``, ``good``, ``bad``, ``right`` (all empty where they differ in several). Beside them the file's own columns as
    they stand, as text; of the original format's two rows the wrong one's as ``NAME_alt`` where the two differ.
    The form always goes to the place that ``len_prefix`` says: most published sentences hold another word there.
    Raises LitmusError naming file and line.
    """
    path = Path(path)
    if path.suffix in (".text", ".gold", ".eval"):
        return read_linzen(path)
    if path.suffix == ".pickle":
        return read_templates(path)
    if path.suffix == ".jsonl":
        return _from_agreement(path)
    start, header, rows = _read_rows(path)
    found = format_of(header, f"{path}, line {start}")
    if taken := [column for column in header if column in OURS]:
        raise LitmusError(f"{path}, line {start}: the column name '{taken[0]}' is one of Litmus' own; rename it.")
    readers: dict[str, Callable[[Path, list[str], list[tuple[int, Row]]], list[dict[str, Any]]]] = {
        "original": _original, "word-focused": _word_focused, "sentence-focused": _sentence_focused,
        "marvin-linzen": _marvin_linzen,
    }  # fmt: skip
    return _table(path, found, readers[found](path, header, rows))


def format_of(header: Sequence[str], where: str) -> str:
    """The format whose columns a header has. Raises LitmusError, which begins with ``where``: what the nearest one lacks."""
    for name, columns in HEADERS.items():
        if set(columns) <= set(header):
            return name
    nearest = max(HEADERS, key=lambda name: len(set(HEADERS[name]) & set(header)) / len(HEADERS[name]))
    missing = [column for column in HEADERS[nearest] if column not in header]
    raise LitmusError(
        f"{where} is the header of no known format (nearest: {nearest}, which also has {', '.join(missing)}); "
        f"name the columns of one of them, separated by tabs: {'; '.join(', '.join(HEADERS[name]) for name in FORMATS)}."
    )


def write(table: pd.DataFrame, path: str | Path, format: Format | None = None) -> None:
    """Write pairs as a tab-separated file: in their own format (every column as it was read) or converted to another."""
    Path(path).write_bytes(text_of(table, format).encode())


def text_of(table: pd.DataFrame, format: Format | None = None) -> str:
    """What ``write`` writes. Raises LitmusError where the pairs cannot be put into that format."""
    if format is None:
        known = set(table["format"])
        if len(known) != 1 or not known <= set(FORMATS):
            raise LitmusError(
                f"Pairs in the format {' and '.join(sorted(known))} have no one format to be written in; "
                f"choose one of {', '.join(FORMATS)}."
            )
        [format] = known
    table = converted(table, format)
    own = [column for column in table.columns if column not in OURS]
    if format != "original":
        return _as_text(own, table[own].itertuples(index=False))
    header = [column for column in own if not (column.endswith("_alt") and column.removesuffix("_alt") in own)]
    wrong = [f"{column}_alt" if f"{column}_alt" in own else column for column in header]
    files = pd.factorize(table["file"])[0]
    rows = [*zip(files, table["line"], table[header].itertuples(index=False), strict=True),
            *zip(files, table["line_alt"], table[wrong].itertuples(index=False), strict=True)]  # fmt: skip
    return _as_text(header, (cells for _, _, cells in sorted(rows, key=lambda row: row[:2])))


def converted(table: pd.DataFrame, format: Format) -> pd.DataFrame:
    """The same pairs in another format, with that format's columns only; a table that has it already stays as it is.

    To word-focused where one word differs, to sentence-focused always, to the original format never: it says more of each
    pair than the others. Raises LitmusError naming the pair that cannot be converted.
    """
    if format not in FORMATS:
        raise LitmusError(f"'{format}' is no format to write; choose one of {', '.join(FORMATS)}.")
    if (table["format"] == format).all():
        return table
    if format == "original":
        raise LitmusError(
            "The original format names construction, sentence and class of every row, which these pairs do not have; "
            "write them word-focused or sentence-focused."
        )
    ends = [f" {END}" if _ends(row) else "" for row in table.to_dict("records")]
    pairs = table[[column for column in OURS if column in table]].assign(format=format)
    pairs.insert(0, "pattern", table["pattern"])
    if format == "sentence-focused":
        pairs.insert(1, "sent", table["sentence_good"] + ends)
        pairs.insert(2, "sent_alt", table["sentence_bad"] + ends)
        return pairs
    if several := [row for row in table.itertuples() if not row.good]:
        first = several[0]
        raise LitmusError(
            f"{first.file}, line {first.line}: the sentences do not differ in exactly one word, so the word-focused "
            "format cannot hold them; write them sentence-focused."
        )
    good, bad = ([ascii_words(sentence) for sentence in table[name]] for name in ("sentence_good", "sentence_bad"))
    at = [_different(a, b)[0] if a != b else len(ascii_words(left))
          for a, b, left in zip(good, bad, table["left"], strict=True)]  # fmt: skip
    pairs.insert(1, "form", [words[i] for words, i in zip(good, at, strict=True)])
    pairs.insert(2, "form_alt", [words[i] for words, i in zip(bad, at, strict=True)])
    pairs.insert(3, "sent", table["sentence_good"] + ends)
    pairs.insert(4, "len_prefix", [str(i) for i in at])
    return pairs


def read_linzen(path: str | Path) -> pd.DataFrame:
    """Pairs in the layout of Linzen et al.: line-aligned ``X.text``, ``X.gold`` and, where it is there, ``X.eval``.

    ``.gold`` has four columns (words before the target, right form, wrong form, number of attractors; ``pattern`` is then
    that number) or the twelve of Gulordava et al.; ``.eval`` repeats the number of words before the target. Any of the
    three names the set. Raises LitmusError naming file and line.
    """
    from lib.items import lines_of

    stem = Path(path).with_suffix("")
    texts, golds = (dict(lines_of(stem.with_name(f"{stem.name}.{suffix}"))) for suffix in ("text", "gold"))
    gold_path, eval_path = stem.with_name(f"{stem.name}.gold"), stem.with_name(f"{stem.name}.eval")
    evals = dict(lines_of(eval_path)) if eval_path.exists() else {}
    for line in sorted(set(texts) ^ set(golds)):
        raise LitmusError(f"{stem}.text and {gold_path.name} do not have the same lines (line {line}); align them.")
    if not texts:
        raise LitmusError(f"{stem}.text holds no sentences; it has one a line.")
    rows: list[dict[str, Any]] = []
    for line, gold in golds.items():
        cells = gold.split("\t")
        if len(cells) not in (4, 12):
            raise LitmusError(
                f"{gold_path}, line {line} has {len(cells)} columns; it needs 4, or 12 in the other layout."
            )
        if evals and evals.get(line, "").strip() != cells[0 if len(cells) == 4 else 3].strip():
            raise LitmusError(
                f"{eval_path}, line {line} does not say the same place as {gold_path.name}; mend one of them."
            )
        own = _gold_of_four(cells) if len(cells) == 4 else _gold_of_twelve(cells)
        own |= {"sent": texts[line]}
        pair = _at_gap(own, own.pop("form_wrong"), f"{gold_path}, line {line}")
        rows.append(own | {"line": line} | pair)
    table = _table(gold_path, "linzen", rows)
    if "constr_id" in table:
        _check_keys(table, ["pattern", "constr_id", "sent_id"], gold_path)
    return table


def _gold_of_four(cells: Sequence[str]) -> Row:
    before, form, wrong, attractors = cells
    return {"pattern": f"{attractors} attractor{'' if attractors == '1' else 's'}", "form": form, "form_wrong": wrong,
            "len_prefix": before, "n_attr": attractors}  # fmt: skip


def _gold_of_twelve(cells: Sequence[str]) -> Row:
    pattern, construction, sentence, before, _, _, form, wrong = cells[:8]
    return {
        "pattern": "__".join(pattern.split("!")[:2]), "constr_id": construction, "sent_id": sentence, "form": form,
        "form_wrong": wrong, "len_prefix": before, "type": "original" if sentence == "0" else "generated",
    }  # fmt: skip


def read_templates(path: str | Path) -> pd.DataFrame:
    """Marvin and Linzen's template files: a pickled mapping from a case to its tuples (right sentence, wrong sentences).

    The pickle is read as data only: any that names something to import is refused, so nothing in it can run. A tuple of
    three (negative polarity items) gives a pair for each wrong sentence. ``pattern`` is ``FILE--CASE`` as in their table.
    """
    path = Path(path)
    cases = _unpickled(path)
    if not isinstance(cases, dict) or not cases:
        raise LitmusError(f"{path} is no template file; it maps each case to a list of tuples of sentences.")
    rows: list[dict[str, Any]] = []
    for case, listed in cases.items():
        for group in listed if isinstance(listed, list | tuple) else [None]:
            if not isinstance(group, list | tuple) or len(group) < 2 or not all(isinstance(s, str) for s in group):
                raise LitmusError(
                    f"{path}: {type(group).__name__} where a tuple of sentences belongs, the right one first."
                )
            for wrong in group[1:]:
                line = len(rows) + 1  # a pickle has no lines: pairs are counted
                pair = _pair_of_sentences(group[0], wrong, f"{path}, pair {line}")
                rows.append({"pattern": f"{path.stem}--{case}", "line": line} | pair)
    if not rows:
        raise LitmusError(f"{path} holds no sentences; it maps each case to a list of tuples of sentences.")
    return _table(path, "marvin-linzen", rows)


def _unpickled(path: Path) -> Any:
    import pickle

    class DataOnly(pickle._Unpickler):  # the slow one: damaged files cannot make it ask for memory they do not fill
        def find_class(self, module: str, name: str) -> Any:
            raise LitmusError(
                f"{path} names {module}.{name}, which would run code; template files hold sentences only."
            )

        def persistent_load(self, pid: Any) -> Any:
            raise LitmusError(f"{path} points outside itself; template files hold sentences only.")

    check_finite(path)
    try:
        return DataOnly(io.BytesIO(path.read_bytes()), encoding="utf-8").load()
    except OSError as error:
        raise LitmusError(f"{path} cannot be read ({error.strerror}); name a template file.") from None
    except LitmusError:
        raise
    except Exception as error:  # whatever bytes can do to a machine that follows them
        raise LitmusError(f"{path} is no pickle that can be read ({error!r:.80}); get it again.") from None


def _from_agreement(path: Path) -> pd.DataFrame:
    from lib.items import read_agreement

    pattern, rows = path.stem.removesuffix("_all"), []
    for row in read_agreement(path).to_dict("records"):
        pair = _pair_of_sentences(row["sentence_good"], row["sentence_bad"], f"{path}, line {row['line']}")
        rows.append(row | {"pattern": pattern} | pair)
    return _table(path, "agreement", rows)


def _table(path: Path, format: str, rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The rows with file, format, and a name for each: its key where it has one, else its pattern and line."""
    named = []
    for row in rows:
        if row["pattern"].strip() in ("", ALL):
            raise LitmusError(
                f"{path}, line {row['line']}: the pattern is '{row['pattern']}', but it names a kind of pairs, and '{ALL}'"
                " stands for all of them; give it another name."
            )
        key = ("pattern", "constr_id", "sent_id") if "constr_id" in row else ("pattern", "line")
        named.append(row | {"file": path.name, "format": format, "item": ":".join(str(row[column]) for column in key)})
    return pd.DataFrame(named)


def _original(path: Path, header: list[str], rows: list[tuple[int, Row]]) -> list[dict[str, Any]]:
    by_key: dict[tuple[str, ...], dict[str, tuple[int, Row]]] = {}
    for line, row in rows:
        key, kind = (row["pattern"], row["constr_id"], row["sent_id"]), row["class"]
        if kind not in ("correct", "wrong"):
            raise LitmusError(f"{path}, line {line}: the class '{kind}' is neither 'correct' nor 'wrong'.")
        found = by_key.setdefault(key, {})
        if kind in found:
            raise LitmusError(
                f"{path}, line {line} is a second {kind} row of {_name(key)}, after line {found[kind][0]}; "
                "pattern, constr_id and sent_id together name one pair, with one correct and one wrong row."
            )
        found[kind] = line, row
    for name, found in by_key.items():
        if len(found) == 1:
            [(kind, (line, _))] = found.items()
            missing = "wrong" if kind == "correct" else "correct"
            raise LitmusError(f"{path}, line {line}: {_name(name)} has no {missing} row; add it.")
        (line, row), (line_alt, row_alt) = found["correct"], found["wrong"]
        for column in ("sent", "len_prefix"):
            if row[column] != row_alt[column]:
                raise LitmusError(f"{path}, line {line_alt} has another {column} than line {line}; a pair has one.")
    pairs = [(found["correct"], found["wrong"]) for found in by_key.values()]
    differing = {column for (_, row), (_, row_alt) in pairs for column in header if row[column] != row_alt[column]}
    differing |= {"form"}
    clashes = {f"{column}_alt" for column in differing} & set(header)
    if clashes:
        raise LitmusError(
            f"{path}, line 1: '{min(clashes)}' would be taken for a wrong form's value; rename the column."
        )
    result = []
    for (line, row), (line_alt, row_alt) in pairs:
        own: dict[str, Any] = {}
        for column in header:
            own |= {column: row[column]} | ({f"{column}_alt": row_alt[column]} if column in differing else {})
        pair = _at_gap(row, row_alt["form"], f"{path}, line {line}", f"{path}, line {line_alt}")
        result.append(own | {"line": line, "line_alt": line_alt} | pair)
    return result


def _word_focused(path: Path, header: list[str], rows: list[tuple[int, Row]]) -> list[dict[str, Any]]:
    return [row | {"line": line} | _at_gap(row, row["form_alt"], f"{path}, line {line}") for line, row in rows]


def _sentence_focused(path: Path, header: list[str], rows: list[tuple[int, Row]]) -> list[dict[str, Any]]:
    return [row | {"line": line} | _pair_of_sentences(row["sent"], row["sent_alt"], f"{path}, line {line}")
            for line, row in rows]  # fmt: skip


def _marvin_linzen(path: Path, header: list[str], rows: list[tuple[int, Row]]) -> list[dict[str, Any]]:
    return [row | {"pattern": row["test case"], "line": line}
            | _pair_of_sentences(row["grammatical"], row["ungrammatical"], f"{path}, line {line}")
            for line, row in rows]  # fmt: skip


def _at_gap(row: Row, wrong: str, where: str, where_wrong: str = "") -> dict[str, str]:
    """Both sentences of a pair, and its gap, by putting each form where ``len_prefix`` says."""
    words = _sentence_words(row["sent"], where)
    before = row["len_prefix"]
    if not re.fullmatch(r"[0-9]{1,9}", before) or int(before) >= len(words):
        raise LitmusError(
            f"{where}: len_prefix is '{before}', but the sentence has {len(words)} words; it is the number of words "
            "before the target."
        )
    for form, place in ((row["form"], where), (wrong, where_wrong or where)):
        if len(ascii_words(form)) != 1 or ascii_words(form) != [form] or form == END:
            raise LitmusError(f"{place}: the form '{form}' is not one word; forms stand alone, without spaces.")
    at = int(before)
    left, right = " ".join(words[:at]), " ".join(words[at + 1 :])
    good, bad = (" ".join([*words[:at], form, *words[at + 1 :]]) for form in (row["form"], wrong))
    return {"sentence_good": good, "sentence_bad": bad, "left": left, "good": row["form"], "bad": wrong, "right": right}


def _pair_of_sentences(good: str, bad: str, where: str) -> dict[str, str]:
    """Both sentences in plain words, and the gap where they differ in one word (its punctuation goes to the right)."""
    of_good, of_bad = (_sentence_words(sentence, where) for sentence in (good, bad))
    pair = {"sentence_good": " ".join(of_good), "sentence_bad": " ".join(of_bad)}
    different = _different(of_good, of_bad)
    if len(of_good) != len(of_bad) or len(different) != 1:
        return pair | {"left": "", "good": "", "bad": "", "right": ""}
    [at] = different
    right, wrong, tail = of_good[at], of_bad[at], ""
    while right[-1] == wrong[-1] and right[-1] in CLOSES and min(len(right), len(wrong)) > 1:
        right, wrong, tail = right[:-1], wrong[:-1], right[-1] + tail
    after = " ".join([tail, *of_good[at + 1 :]] if tail else of_good[at + 1 :])
    return pair | {"left": " ".join(of_good[:at]), "good": right, "bad": wrong, "right": after}


def _different(good: Sequence[str], bad: Sequence[str]) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(good, bad, strict=False)) if a != b]


def ascii_words(text: str) -> list[str]:
    """Words between ASCII white space; other spaces are part of a word, as in the vocabularies of word-level models."""
    return [word for word in re.split(f"[{ASCII_SPACE}]+", text) if word]


def _sentence_words(sentence: str, where: str) -> list[str]:
    """The words of a sentence without the ``<eos>`` that may end it. Raises LitmusError where nothing is left."""
    words = ascii_words(sentence)
    words = words[:-1] if words[-1:] == [END] else words
    if END in words:
        raise LitmusError(f"{where}: {END} stands inside the sentence; it may stand at the end only.")
    if not words:
        raise LitmusError(f"{where} has an empty sentence; write one, or take the row out.")
    return words


def _ends(row: dict[str, Any]) -> bool:
    """Whether a pair's sentences end in ``<eos>`` in the file."""
    return ascii_words(str(row.get("sent", "")))[-1:] == [END]


def _read_rows(path: Path) -> tuple[int, list[str], list[tuple[int, Row]]]:
    """The header of a quoted tab-separated file, after its line number, and the rows, each with its own."""
    from lib.items import lines_of  # it needs torch, and a command's help should not wait for that

    lines = [(line, _cells(path, line, text)) for line, text in lines_of(path)]
    if len(lines) < 2:
        raise LitmusError(f"{path} holds no pairs; it starts with a line that names the columns, separated by tabs.")
    (start, header), rows = lines[0], []
    for column in header:
        if header.count(column) > 1 or not column.strip():
            raise LitmusError(f"{path}, line {start}: the column name '{column}' is empty or stands there twice.")
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise LitmusError(f"{path}, line {line} has {len(cells)} cells, the header {len(header)}; mend the tabs.")
        rows.append((line, dict(zip(header, cells, strict=True))))
    return start, header, rows


def _cells(path: Path, line: int, text: str) -> list[str]:
    try:
        [cells] = csv.reader([text], delimiter="\t", strict=True)
    except (csv.Error, ValueError) as error:
        raise LitmusError(
            f"{path}, line {line} is not a row of a quoted tab-separated file ({error}); a cell that starts with a "
            "quotation mark stands in quotation marks, its own doubled."
        ) from None
    return cells


def _as_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _check_keys(table: pd.DataFrame, key: list[str], path: Path) -> None:
    twice = table[table.duplicated(key)]
    if len(twice):
        row = twice.iloc[0]
        raise LitmusError(
            f"{path}, line {row['line']} is a second pair named {_name([row[k] for k in key])}; rename one."
        )


def _name(key: Iterable[str]) -> str:
    return "pattern {}, constr_id {}, sent_id {}".format(*key)
