"""Items of the psycholinguistic diagnostics: published files and our own, read strictly into one tidy table.

The three sets are those of Ettinger (2020), "What BERT is not", section 5: inference (CPRAG-102), roles (ROLE-88) and
negation (NEG-136-SIMP and -NAT). The larger probes are those of Shivagunde et al. (2023). Every reader returns one row a
context with its candidate, in the order of the published processing, with these columns:

``file``, ``line``, ``item``, ``condition``; ``context``: all before the gap, as it stands in the file but for spaces at its
right edge; ``candidate`` and its ``role``; ``expected``: the words that an accuracy counts as right, a tuple; ``cloze`` of
the candidate, ``cloze_strict``, ``expected_cloze`` (shares of people, NaN where nobody was asked); ``constraint`` (H, L or
empty); ``polarity``; ``licensing`` (Y, N or empty); ``sentence_1``, ``sentence_2`` (inference); ``subject`` (negation).
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from lib.errors import LitmusError
from lib.items import lines_of
from lib.models.protocol import Gap
from lib.paths import DATA

ProbeKind = Literal["negation", "roles"]
FILES = {
    "inference": ("CPRAG-102/CPRAG-102.tsv", "inference/inference.tsv"),
    "explanations": ("CPRAG-102/CPRAG-explanations.tsv", "inference/explanations.tsv"),
    "roles": ("ROLE-88/ROLE-88.tsv", "roles/roles.tsv"),
    "simple negation": ("NEG-136/NEG-136-SIMP.tsv", "negation/simple.tsv"),
    "natural negation": ("NEG-136/NEG-136-NAT.tsv", "negation/natural.tsv"),
}  # of each set the published file and our own
NOTHING = {
    "cloze": np.nan, "cloze_strict": np.nan, "expected_cloze": np.nan, "constraint": "", "polarity": "", "licensing": "",
    "sentence_1": "", "sentence_2": "", "subject": "",
}  # fmt: skip
INFERENCE = ("item", "context_s1", "context_s2", "expected", "within_category", "between_category", "constraint")
ROLES = ("item", "context", "expected", "exp_cloze", "target", "tgt_cloze", "tgt_cloze(strict)")
NEGATION = ("item", "context_aff", "context_neg", "target_aff", "target_neg")
ARTICLE = "(a|an)"
NEGATED = re.compile(r"\b(can)?not\b|n['’]t\b|\b(no|never|nobody|nothing)\b", re.IGNORECASE)
SUBJECT = re.compile(r"^(?:an?|the)\s+(.+?)\s+(?:is|was) \(a\|an\)$", re.IGNORECASE)
SOUNDS_LIKE_A_CONSONANT = re.compile(r"(uni([^nm]|$)|us[eu]|ut[ei]|eu|ewe|onc?e\b)", re.IGNORECASE)
SOUNDS_LIKE_A_VOWEL = re.compile(r"(hour|honest|honou?r|heir)", re.IGNORECASE)


def item_file(name: str, published: Path | None = None, chosen: str = "") -> Path:
    """The file of a run for one of ``FILES``: the chosen one, else the published one where it is, else our own."""
    theirs, ours = FILES[name]
    listed = published / "lm-diagnostics" / theirs if published else None
    return Path(chosen) if chosen else listed if listed and listed.exists() else DATA / "items" / ours


def read_inference(path: str | Path) -> pd.DataFrame:
    """Inference items in the format of CPRAG-102: two sentences with an expected word and two that do not fit.

    ``role`` and ``condition``: ``expected``, ``within`` (the same category as the expected word) and ``between`` (another
    one). ``constraint``: H or L, or empty where nobody was asked. Raises LitmusError naming file and line.
    """
    path, rows = Path(path), []
    for line, cells in _cells(path, INFERENCE):
        if cells["constraint"] not in ("H", "L", ""):
            raise LitmusError(
                f"{path}, line {line}: the constraint is '{cells['constraint']}'; write H or L, or nothing without norms."
            )
        context = f"{cells['context_s1']} {cells['context_s2']}"
        for role in ("expected", "within", "between"):
            candidate = cells[role if role == "expected" else f"{role}_category"]
            _word(path, line, candidate)
            rows.append({
                "file": path.stem, "line": line, "item": cells["item"], "condition": role, "context": context,
                "candidate": candidate, "role": role, "expected": (cells["expected"],), "constraint": cells["constraint"],
                "sentence_1": cells["context_s1"], "sentence_2": cells["context_s2"],
            })  # fmt: skip
    return _tidy(path, rows, ["item", "role"])


def read_explanations(path: str | Path, items: pd.DataFrame) -> pd.DataFrame:
    """``items`` (as from ``read_inference``) with ``explanation``: what has to be inferred, in the authors' words.

    The file holds item, context, expected word and explanation, without a header. Every item needs one, and the expected
    words must agree. Raises LitmusError naming file and line.
    """
    path, found = Path(path), {}
    expected = items.drop_duplicates("item").set_index("item")["expected"]
    for line, text in lines_of(path):
        cells = [cell.strip() for cell in text.split("\t")]
        if len(cells) != 4 or not all(cells):
            raise LitmusError(f"{path}, line {line} is not item, context, expected word and explanation between tabs.")
        if cells[0] in expected and cells[2] not in expected[cells[0]]:
            raise LitmusError(
                f"{path}, line {line} explains '{cells[2]}', but item {cells[0]} expects '{expected[cells[0]][0]}'."
            )
        found[cells[0]] = cells[3]
    if missing := [item for item in expected.index if item not in found]:
        raise LitmusError(f"{path} explains no item {missing[0]}; give every item a line.")
    return items.assign(explanation=items["item"].map(found))


def read_roles(path: str | Path) -> pd.DataFrame:
    """Role pairs in the format of ROLE-88: contexts a and b with two nouns swapped, and one target for both.

    ``condition``: ``a`` (the target fits) or ``b``; ``item``: the pair. ``|`` separates expected words that tie in cloze;
    of an answer of several words the first counts, as in the paper. Empty cloze cells are NaN. Raises LitmusError naming
    file and line.
    """
    path, rows = Path(path), []
    for line, cells in _cells(path, ROLES):
        pair, _, condition = cells["item"].rpartition("-")
        if not pair or condition not in ("a", "b"):
            raise LitmusError(f"{path}, line {line}: '{cells['item']}' is not a pair's number with -a or -b.")
        answers = [answer.split() for answer in cells["expected"].split("|")]
        if not all(answers):
            raise LitmusError(
                f"{path}, line {line}: '{cells['expected']}' has an empty answer; separate words by a single |."
            )
        rows.append({
            "file": path.stem, "line": line, "item": pair, "condition": condition, "context": cells["context"],
            "candidate": cells["target"].split()[0], "role": "target", "expected": tuple(answer[0] for answer in answers),
            "cloze": _share(path, line, cells["tgt_cloze"]), "expected_cloze": _share(path, line, cells["exp_cloze"]),
            "cloze_strict": _share(path, line, cells["tgt_cloze(strict)"]),
        })  # fmt: skip
    table = _tidy(path, rows, ["item", "condition"])
    for pair, both in table.groupby("item", sort=False):
        where = f"{path}, line {both['line'].iloc[0]}"
        if len(both) != 2:
            raise LitmusError(
                f"{where}: pair {pair} has no {'b' if both['condition'].iloc[0] == 'a' else 'a'}; add it."
            )
        if both["candidate"].nunique() != 1:
            raise LitmusError(f"{where}: pair {pair} has two targets, {' and '.join(both['candidate'])}; give it one.")
    return table


def read_negation(path: str | Path) -> pd.DataFrame:
    """Negation items in the format of NEG-136: an affirmative and a negative context, and what makes each of them true.

    Four rows an item, ``condition`` ``true affirmative``, ``false negative``, ``false affirmative``, ``true negative``;
    ``role``: ``true`` or ``false``. ``(a|an)`` at the end of a context becomes the article of the candidate, so that the two
    candidates can have different contexts. ``licensing`` (Y, N) where the file has that column (NEG-136-NAT). ``subject``:
    what a context like "A trout is (a|an)" speaks of, else empty. Raises LitmusError naming file and line.
    """
    path, rows = Path(path), []
    for line, cells in _cells(path, NEGATION):
        affirmative, negative = cells["context_aff"], cells["context_neg"]
        if NEGATED.search(affirmative) or not NEGATED.search(negative):
            raise LitmusError(
                f"{path}, line {line}: only context_neg may and must hold a negation such as 'not'; mend the contexts."
            )
        if cells["target_aff"] == cells["target_neg"]:
            raise LitmusError(f"{path}, line {line}: both targets are '{cells['target_aff']}'; one must be false.")
        licensing = cells.get("licensing", "")
        if "licensing" in cells and licensing not in ("Y", "N"):
            raise LitmusError(f"{path}, line {line}: the licensing is '{licensing}'; write Y or N.")
        subject = SUBJECT.match(affirmative)
        for truth, polarity, target in (
            ("true", "affirmative", "target_aff"), ("false", "negative", "target_aff"),
            ("false", "affirmative", "target_neg"), ("true", "negative", "target_neg"),
        ):  # fmt: skip
            candidate = cells[target]
            _word(path, line, candidate)
            context = affirmative if polarity == "affirmative" else negative
            right = "target_aff" if polarity == "affirmative" else "target_neg"
            rows.append({
                "file": path.stem, "line": line, "item": cells["item"], "condition": f"{truth} {polarity}",
                "context": _with_article(path, line, context, candidate), "candidate": candidate, "role": truth,
                "expected": (cells[right],), "polarity": polarity, "licensing": licensing,
                "subject": subject[1] if subject else "",
            })  # fmt: skip
    return _tidy(path, rows, ["item", "condition"])


def read_probes(path: str | Path, kind: ProbeKind) -> pd.DataFrame:
    """Larger probes (Shivagunde et al. 2023): lines ``context target,``, the two of a pair one after the other.

    ``kind`` ``negation``: affirmative, then negative; ``roles``: ``a``, then ``b`` with the roles reversed; this is the
    ``condition``. ``item`` counts the pairs from 0. Raises LitmusError naming file and line.
    """
    if kind not in ("negation", "roles"):
        raise LitmusError(f"'{kind}' is no kind of probe; choose 'negation' or 'roles'.")
    path, rows = Path(path), []
    conditions = ("affirmative", "negative") if kind == "negation" else ("a", "b")
    for at, (line, text) in enumerate(lines_of(path)):
        context, _, target = text.strip().removesuffix(",").rstrip().rpartition(" ")
        if not context.strip() or "," in target or not text.rstrip().endswith(","):
            raise LitmusError(f"{path}, line {line}: '{text}' is not a context, its target and a comma.")
        condition = conditions[at % 2]
        if kind == "negation" and (condition == "negative") != bool(NEGATED.search(context)):
            raise LitmusError(
                f"{path}, line {line}: this line should be {condition}; each pair is an affirmative line and a negative one."
            )
        rows.append({
            "file": path.stem, "line": line, "item": str(at // 2), "condition": condition, "context": context.rstrip(),
            "candidate": target, "role": "target", "expected": (target,),
            "polarity": condition if kind == "negation" else "",
        })  # fmt: skip
    if len(rows) % 2:
        raise LitmusError(f"{path} has {len(rows)} lines, so one of them has no partner; give every pair two lines.")
    return _tidy(path, rows, ["item", "condition"])


def gaps(items: pd.DataFrame, full_stop: bool = True) -> list[Gap]:
    """The gap behind every context, closed by a full stop for models that read on: ``context [MASK].``"""
    return [Gap(context, "." if full_stop else "") for context in items["context"]]


def forms(items: pd.DataFrame) -> list[str]:
    """Every word that the metrics ask about: candidates and expected words, each once."""
    return list(dict.fromkeys([*items["candidate"], *(word for words in items["expected"] for word in words)]))


def cloze_quartile(expected_cloze: Iterable[float]) -> np.ndarray:
    """The quartile (1 to 4, NaN without cloze) of each row's highest cloze, among all rows given, as in the paper."""
    cloze = np.asarray(list(expected_cloze), dtype=float)
    if np.isnan(cloze).all():
        return np.full(len(cloze), np.nan)
    bounds = np.nanpercentile(cloze, [25, 50, 75])
    return np.where(np.isnan(cloze), np.nan, 1 + (cloze[:, None] > bounds).sum(1))


def article(word: str) -> str:
    """``a`` or ``an`` by the first letter, as in the paper, but for the few words whose first sound is another one."""
    vowel = word[:1].lower() in set("aeiou") and not SOUNDS_LIKE_A_CONSONANT.match(word)
    return "an" if vowel or SOUNDS_LIKE_A_VOWEL.match(word) else "a"


def _with_article(path: Path, line: int, context: str, candidate: str) -> str:
    if ARTICLE not in context:
        return context
    if not context.endswith(f" {ARTICLE}") or context.count(ARTICLE) > 1:
        raise LitmusError(f"{path}, line {line}: {ARTICLE} stands once, at the end of a context; mend '{context}'.")
    return context.removesuffix(ARTICLE) + article(candidate)


def _cells(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a TSV file by column, without spaces around cells. Quotation marks are text: they are never undone."""
    listed = lines_of(path)
    header = [cell.strip() for cell in listed[0][1].split("\t")] if listed else []
    if missing := [column for column in columns if column not in header]:
        raise LitmusError(f"{path}, line 1 names no column '{missing[0]}'; the columns are {', '.join(columns)}.")
    rows = []
    for line, text in listed[1:]:
        cells = [cell.strip() for cell in text.split("\t")]
        if len(cells) != len(header):
            raise LitmusError(
                f"{path}, line {line} has {len(cells)} cells and the header {len(header)}; mend the tabs."
            )
        row = dict(zip(header, cells, strict=True))
        may_be_empty = {"exp_cloze", "tgt_cloze", "tgt_cloze(strict)", "constraint", "licensing"}
        if empty := [column for column in columns if not row[column] and column not in may_be_empty]:
            raise LitmusError(f"{path}, line {line}: the column '{empty[0]}' is empty; fill it.")
        rows.append((line, row))
    return rows


def _word(path: Path, line: int, candidate: str) -> None:
    if len(candidate.split()) != 1:
        raise LitmusError(f"{path}, line {line}: '{candidate}' is not one word, so it fills no gap of one word.")


def _share(path: Path, line: int, text: str) -> float:
    try:
        share = float(text) if text else np.nan
    except ValueError:
        share = -1.0
    if share < 0 or share > 1:
        raise LitmusError(
            f"{path}, line {line}: the cloze '{text}' is no share between 0 and 1; leave it empty if unknown."
        )
    return share


def _tidy(path: Path, rows: list[dict[str, Any]], key: list[str]) -> pd.DataFrame:
    if not rows:
        raise LitmusError(f"{path} holds no items.")
    table = pd.DataFrame([{**NOTHING, **row} for row in rows])
    table = table[[*(column for column in rows[0] if column not in NOTHING), *NOTHING]]
    if (twice := table.duplicated(key)).any():
        first = table[twice].iloc[0]
        raise LitmusError(
            f"{path}, line {first['line']} gives item {first['item']} ({first[key[1]]}) again; number it anew."
        )
    return table
