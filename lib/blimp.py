"""Minimal pairs in the layout of BLiMP (Warstadt et al. 2020): the published paradigms and our own, read strictly.

A file is a paradigm, a line a pair: ``sentence_good``, ``sentence_bad``, ``UID`` (the paradigm), ``linguistics_term`` (the
phenomenon it belongs to), ``field`` and ``pairID``. Pairs whose two sentences are the same string are left out and
counted; ``data/reference/blimp_mistakes.csv`` lists further pairs that are known to be wrong.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from lib import metrics, published, sentences
from lib.errors import LitmusError
from lib.items import json_object, lines_of, sample, tell_repeats
from lib.models.protocol import LanguageModel, MaskedMethod, StartToken
from lib.paths import DATA
from lib.store import Store

Exclusion = Literal["identical", "mistake"]
EXCLUSIONS = ("identical", "mistake")
FIELDS = ("morphology", "syntax", "semantics", "syntax_semantics")
NEEDED = ("sentence_good", "sentence_bad", "field", "linguistics_term", "UID", "pairID")
OURS = DATA / "items" / "minimal_pairs"
MODELS = ("gpt2", "transformer-xl", "lstm", "5-gram")
CARRIER = "and"  # almost any word may follow it


def paradigm_files(folder: Path | None = None, chosen: Sequence[str] = ()) -> list[Path]:
    """The files of a run, one a paradigm: the ``chosen`` ones, else the published 67 under ``folder``, else our own.

    Raises LitmusError where only some of the published files are there, or some are not as published.
    """
    if chosen:
        return [Path(path) for path in chosen]
    listed = [Path(row.file) for row in published.listed() if row.set == "blimp"]
    there = [folder / file for file in listed if folder and (folder / file).exists()]
    if folder and there:
        if missing := [str(file) for file in listed if folder / file not in there]:
            raise LitmusError(
                f"{len(missing)} of {len(listed)} paradigms of BLiMP are missing in {folder}, first {missing[0]}; "
                "complete them by make data, or name the files you want."
            )
        if others := published.changed(listed, folder):
            raise LitmusError(
                f"{len(others)} of {len(listed)} paradigms of BLiMP in {folder} are not as published, first {others[0]}; "
                "get them anew by make data, or name the files you want."
            )
        return there
    return sorted(OURS.glob("*.jsonl"))


def read_paradigm(path: str | Path) -> pd.DataFrame:
    """The pairs of one file.

    Columns: ``file``, ``line``, ``pair`` (its pairID), ``paradigm``, ``phenomenon``, ``field``, ``good``, ``bad``,
    ``words_good``, ``words_bad`` (white-space words), ``release`` (``published`` where the file is BLiMP's own, by checksum;
    an older release or other sentences under the same name are ``other``), and ``excluded``: ``identical``, ``mistake`` or
    empty. Raises LitmusError naming file and line.
    """
    path = Path(path)
    rows = [_row(path, line, text) for line, text in lines_of(path)]
    if not rows:
        raise LitmusError(f"{path} holds no pairs; a paradigm has one JSON object a line.")
    table = pd.DataFrame(rows)
    for column, name in (("paradigm", "UID"), ("phenomenon", "linguistics_term"), ("field", "field")):
        if len(others := table[table[column] != table[column].iloc[0]]):
            row = others.iloc[0]
            raise LitmusError(
                f"{path}, line {row['line']} has the {name} '{row[column]}' and those above '{table[column].iloc[0]}'; "
                "a file holds one paradigm."
            )
    if len(again := table[table["pair"].duplicated()]):
        raise LitmusError(
            f"{path}, line {again['line'].iloc[0]} repeats the pairID {again['pair'].iloc[0]}; number pairs."
        )
    release = "published" if _is_published(path) else "other"
    wrong = mistakes()
    known = set(wrong.loc[wrong["paradigm"] == table["paradigm"].iloc[0], "pair"]) if release == "published" else set()
    excluded = np.where(table["good"] == table["bad"], "identical", np.where(table["pair"].isin(known), "mistake", ""))
    return table.assign(release=release, excluded=excluded)


def _row(path: Path, line: int, text: str) -> dict[str, Any]:
    where = f"{path}, line {line}"
    item = json_object(where, text)
    for name in NEEDED:
        if name not in item:
            raise LitmusError(f"{where} lacks the field '{name}'; a pair needs {', '.join(NEEDED)}.")
        if not isinstance(item[name], str) or not item[name].strip():
            raise LitmusError(f"{where}: '{name}' is {item[name]!r}; write it as text in quotation marks.")
    field = item["field"].replace("/", "_")  # one published paradigm writes syntax/semantics
    if field not in FIELDS:
        raise LitmusError(f"{where} has the field '{item['field']}'; use one of {', '.join(FIELDS)}.")
    good, bad = item["sentence_good"], item["sentence_bad"]
    return {
        "file": path.stem, "line": line, "pair": item["pairID"], "paradigm": item["UID"],
        "phenomenon": item["linguistics_term"], "field": field, "good": good, "bad": bad,
        "words_good": len(good.split()), "words_bad": len(bad.split()),
    }  # fmt: skip


def _is_published(path: Path) -> bool:
    listed = {Path(row.file).name: row.sha256 for row in published.listed() if row.set == "blimp"}
    return path.name in listed and published.sha256(path) == listed[path.name]


def mistakes() -> pd.DataFrame:
    """Pairs of the published release that are known to be wrong: ``paradigm``, ``pair``, ``reason``, ``source``."""
    return pd.read_csv(DATA / "reference" / "blimp_mistakes.csv", dtype=str)


def read_pairs(
    paths: Sequence[Path],
    limit: int = 0,
    how: str = "seeded",
    seed: int = 0,
    exclude: Sequence[Exclusion] = ("identical",),
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """The pairs of all files; those that were left out; and words for the sample that was taken.

    Pairs whose ``excluded`` is one of ``exclude`` are left out before a sample is drawn: at most ``limit`` (0: all) a
    paradigm, as in ``lib.items.sample``. A paradigm may not come twice.
    """
    if unknown := [kind for kind in exclude if kind not in EXCLUSIONS]:
        raise LitmusError(f"'{unknown[0]}' is no kind of pair to exclude; choose from {', '.join(EXCLUSIONS)}.")
    kept, left_out, cut = [], [], False
    seen: dict[str, Path] = {}
    for path in paths:
        whole = read_paradigm(path)
        name = whole["paradigm"].iloc[0]
        if name in seen:
            raise LitmusError(f"{path} and {seen[name]} both hold the paradigm {name}; name one of them.")
        seen[name] = path
        away = whole["excluded"].isin(exclude)
        usable = whole[~away]
        if usable.empty:
            raise LitmusError(f"{path} holds no pair that is not excluded; its good and bad sentences are the same.")
        drawn = sample(usable, limit, how, seed)
        cut = cut or len(drawn) < len(usable)
        kept.append(drawn)
        left_out.append(whole[away])
    words = f"{'first ' if how == 'first' else ''}{limit} pairs per paradigm"
    words += f", drawn with seed {seed}" if how == "seeded" else ""
    tell_repeats(pairs := pd.concat(kept, ignore_index=True), ["good", "bad"])
    return pairs, pd.concat(left_out, ignore_index=True), words if cut else "all"


def reference() -> pd.DataFrame:
    """Published accuracies on the published sentences: a row a paradigm, columns ``people`` and those of ``MODELS``.

    From BLiMP's own result files, as corrected by its authors: the first printed table differs from them.
    """
    values = pd.read_csv(DATA / "reference" / "warstadt2020.csv")
    wide = values.pivot(index="paradigm", columns="who", values="value")
    return wide[["people", *MODELS]].rename_axis(columns=None)


def check_order(model: LanguageModel) -> None:
    """Raise LitmusError for a recurrent model that carries its state from one sentence to the next.

    The judgement on a pair must not depend on the pairs before it.
    """
    if model.identity.get("start_state") == "carry":
        raise LitmusError(
            f"{model.name} was loaded with the start state 'carry', by which each sentence depends on the ones before it; "
            "choose 'eos' or 'zero' for minimal pairs."
        )


def longer(pairs: pd.DataFrame, unit: Literal["words", "tokens"]) -> pd.Series:
    """Which sentence of each pair is the longer one: ``good``, ``bad`` or ``neither``, in ``words`` or in ``tokens``."""
    difference = pairs[f"{unit}_good"] - pairs[f"{unit}_bad"]
    return difference.map(lambda found: "neither" if found == 0 else "good" if found > 0 else "bad")


def own_words(good: str, bad: str) -> tuple[str, str]:
    """The words that each of two sentences has and the other lacks, repeats counted; empty where only order differs."""
    first, second = (Counter(_bare(sentence)) for sentence in (good, bad))
    return " ".join((first - second).elements()), " ".join((second - first).elements())


def _bare(sentence: str) -> list[str]:
    """White-space words without the sentence's closing mark and the capital of its first word."""
    words = sentence.rstrip(".?!").split()
    return [words[0][:1].lower() + words[0][1:], *words[1:]] if words else []


def likelier_words(
    model: LanguageModel,
    pairs: pd.DataFrame,
    start_token: StartToken = "auto",
    masked_method: MaskedMethod = "within_word_l2r",
    store: Store | None = None,
) -> pd.Series:
    """Whose own words the model finds likelier outside the sentence, behind *and*: a control for the frequency of words.

    For each pair ``good``, ``bad``, ``neither``, ``same words`` (only the order differs, or one sentence has words in
    addition to those of the other), or ``unknown`` where a word has no score.
    """
    own = [own_words(good, bad) for good, bad in zip(pairs["good"], pairs["bad"], strict=True)]
    texts = list(dict.fromkeys(words for pair in own for words in pair if words))
    scores = sentences.score(model, [f"{CARRIER} {words}" for words in texts], start_token, masked_method, store)
    value = {words: _behind_carrier(found) for words, found in zip(texts, scores, strict=True)}

    def whose(good: str, bad: str) -> str:
        if not good or not bad:
            return "same words"
        margin = value[good] - value[bad]
        return "unknown" if np.isnan(margin) else "neither" if margin == 0 else "good" if margin > 0 else "bad"

    return pd.Series([whose(*pair) for pair in own], index=pairs.index)


def _behind_carrier(scores: Any) -> float:
    behind = [
        value for (_, end), value in zip(scores.spans, scores.log_probabilities, strict=True) if end > len(CARRIER)
    ]
    return float(np.sum(behind)) if behind else float("nan")


def surprisal_check(scored: pd.DataFrame, vocabulary_size: int) -> str:
    """In words, whether the good sentences cost less than guessing does: bits a token against log2 of the vocabulary.

    ``scored`` as from ``sentences.minimal_pairs``. A model whose every word costs as much as a guess was loaded wrongly, or
    reads a vocabulary that is not its own; its accuracies mean nothing, and the sentence says so in bold.
    """
    usable = scored[scored["scorable"]]
    summed = usable["log_probability_good"] * np.where(usable["reduction"] == "mean", usable["tokens_good"], 1)
    bits = -summed.sum() / usable["tokens_good"].sum() / np.log(2)
    guess = np.log2(vocabulary_size)
    found = f"A token of the good sentences costs {bits:.1f} bits on average, a blind guess would cost {guess:.1f}."
    if bits < guess:
        return found
    return f"**{found} This model knows less than nothing about these sentences: check its weights and its tokenizer.**"


def turned(base: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How many judgements each of ``others`` turns round against ``base``: columns ``choice``, ``became``, ``pairs``.

    All are tables as from ``sentences.minimal_pairs`` with the same pairs in the same order; ``became``: ``right`` or
    ``wrong``. Pairs that either table cannot score count as neither.
    """
    rows = []
    for choice, other in others.items():
        changed = base["scorable"] & other["scorable"] & (base["correct"] != other["correct"])
        right = int((changed & (other["correct"] == 1)).sum())
        rows += [(choice, "wrong", int(changed.sum()) - right), (choice, "right", right)]
    return pd.DataFrame(rows, columns=["choice", "became", "pairs"])


def accuracies(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy of each of several tables of judgements, with interval, ties and coverage, and the name as ``condition``."""
    rows = [metrics.summarise_pairs(table.assign(condition=name), ["condition"]) for name, table in tables.items()]
    return pd.concat(rows, ignore_index=True).assign(metric="accuracy")
