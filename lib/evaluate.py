"""Minimal pairs from any file of ``lib.formats``, judged by any model: at the target word, or as whole sentences.

``evaluate`` gives one row a pair, ``summary`` one row a pattern, and ``python -m lib.evaluate`` both, for people who live in
the shell::

    python -m lib.evaluate --data pairs.tab --model gpt2 | cut -f1-4 | column -t -s "$(printf '\\t')"

Three modes, after the evaluation scripts of Gulordava et al. (2018) and its followers. *target-word*: how probable are both
forms after all that precedes them? *masked-target*: how probable are they in their place, with all around them (masked
models)? *whole-sentence*: how probable are both sentences, token by token?
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pandas as pd
import typer

from lib import formats
from lib.errors import LitmusError
from lib.paths import DATA
from lib.say import did_you_mean, shown, told

Mode = Literal["target-word", "masked-target", "whole-sentence"]
MODES = get_args(Mode)
AT_TARGET = ["correct", "pattern", "good", "bad", "log_probability_good", "log_probability_bad", "prediction",
             "prediction_log_probability", "rank_good", "rank_bad"]  # fmt: skip
AS_SENTENCES = ["correct", "pattern", "sentence_good", "sentence_bad", "log_probability_good", "log_probability_bad",
                "tokens_good", "tokens_bad"]  # fmt: skip
JUDGED = frozenset([
    "log_probability_good", "log_probability_bad", "margin", "tie", "near_tie", "scorable", "reason", "correct", "rank_good",
    "rank_bad", "prediction", "prediction_log_probability", "tokens_good", "tokens_bad", "unknown", "mode", "start_state",
    "start_token", "target_policy", "mass_arithmetic", "masked_method", "reduction", "dtype", "flag",
])  # fmt: skip
OF_NUMBERS = frozenset(["score_good", "score_bad", "margin", "tie", "scorable", "reason", "correct", "mode"])
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
ALWAYS = ["tie", "scorable", "reason", "item", "line"]


def mode_for(family: str, start_state: str, pairs: pd.DataFrame, mode: str = "auto") -> Mode:
    """The mode that ``mode`` means for a family of models, refused in words where it makes no sense.

    ``auto``: at the target where every pair differs in one word (masked where the model is masked), else whole sentences.
    """
    at_target: Mode = "masked-target" if family == "masked" else "target-word"
    if mode == "auto":
        return at_target if (pairs["good"] != "").all() else "whole-sentence"
    if mode not in MODES:
        raise LitmusError(f"'{mode}' is no mode{did_you_mean(mode, MODES)}; choose one of auto, {', '.join(MODES)}.")
    if mode == "target-word" and family == "masked":
        raise LitmusError(
            "A masked model reads both sides, so it would see the target word it is asked about; choose masked-target or "
            "whole-sentence."
        )
    if mode == "masked-target" and family != "masked":
        raise LitmusError(
            f"A {family} model reads only what comes before a word, so there is nothing to mask; choose target-word or "
            "whole-sentence."
        )
    if mode == "whole-sentence" and start_state == "carry":
        raise LitmusError(
            "With the start state carry the two sentences of a pair would not start alike; choose target-word, or the start "
            "state eos or zero."
        )
    return mode  # type: ignore[return-value]


def evaluate(
    model: Any,
    pairs: pd.DataFrame,
    mode: str = "auto",
    start_token: str = "default",
    target_policy: str = "single_token",
    masked_method: str = "within_word_l2r",
    reduction: str = "sum",
    store: Any = None,
) -> pd.DataFrame:
    """``pairs`` (from ``lib.formats.read``) with a model's judgement on each, in their order.

    New columns: ``log_probability_good``, ``log_probability_bad`` (natural log; of the form, or of the sentence by
    ``reduction``), ``margin``, ``tie``, ``scorable``, ``reason`` (why not), ``correct`` (1 or 0, NaN when unscorable; a tie is
    not correct). At a target also ``rank_good``, ``rank_bad``, ``prediction`` and ``prediction_log_probability`` (the model's
    own likeliest vocabulary item there); for sentences ``tokens_good`` and ``tokens_bad``. And the choices: ``mode``,
    ``start_state`` (recurrent models), ``start_token`` (``default``: never at a target, auto for sentences), and
    ``target_policy`` and ``mass_arithmetic`` (targets) or ``masked_method`` and ``reduction`` (sentences), ``dtype``, and
    ``flag`` where the policy is known to mislead.

    A pair that differs in several words has no target: at a target its reason is ``several_words``. With the start state
    ``carry`` the state runs on in the order of ``pairs``, through each sentence as its file has it.
    Raises LitmusError where a column of the file has the name of a new one.
    """
    _check_free(pairs, JUDGED)
    start_state = model.identity.get("start_state", "")
    found_mode = mode_for(model.family, start_state, pairs, mode)
    index, pairs = pairs.index, pairs.reset_index(drop=True)
    if found_mode == "whole-sentence":
        chosen = "auto" if start_token == "default" else start_token
        judged = _sentences(model, pairs, chosen, masked_method, reduction, store)
    else:
        chosen = "never" if start_token == "default" else start_token
        judged = _targets(model, pairs, chosen, target_policy, store)
    own = [column for column in pairs if column not in judged]  # the judgement repeats the forms
    return pd.concat([pairs[own], judged.assign(mode=found_mode, start_state=start_state)], axis=1).set_index(index)


def _sentences(
    model: Any, pairs: pd.DataFrame, start_token: str, masked_method: str, reduction: str, store: Any
) -> pd.DataFrame:
    from lib import sentences

    table = pd.DataFrame({"good": pairs["sentence_good"], "bad": pairs["sentence_bad"]})
    judged = sentences.minimal_pairs(model, table, start_token, masked_method, reduction, store)  # type: ignore[arg-type]
    return judged.drop(columns=["good", "bad"])


def _targets(model: Any, pairs: pd.DataFrame, start_token: str, target_policy: str, store: Any) -> pd.DataFrame:
    has_target = (pairs["good"] != "").to_numpy()
    asked = pairs[has_target]
    parts = [asked]
    if target_policy != "single_token" and len(asked):  # whole forms are scored one by one: only those of each pair
        parts = [part for _, part in asked.groupby(["good", "bad"], sort=False)]
    tables, choices = zip(*(_at_gaps(model, part, start_token, target_policy, store) for part in parts), strict=True)
    judged = pd.concat([*tables, _without_target(pairs[~has_target], tables[0])]).sort_index()
    return judged.astype({"tie": bool, "scorable": bool}).assign(**choices[0])


def _at_gaps(
    model: Any, pairs: pd.DataFrame, start_token: str, target_policy: str, store: Any
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Pairs with a target, judged at it (``metrics.minimal_pairs``), with the model's own prediction; and the choices."""
    from lib import metrics, scoring
    from lib.models import Gap

    good, bad = pairs["good"].tolist(), pairs["bad"].tolist()
    if model.identity.get("start_state") == "carry":
        fills = _in_order(model, pairs, [*good, *bad], target_policy)
    else:
        gaps = [Gap(left, right) for left, right in zip(pairs["left"], pairs["right"], strict=True)]
        policy = {"start_token": start_token, "target_policy": target_policy, "start_form": "as_written"}
        fills = scoring.fill(model, gaps, [*good, *bad], store=store, **policy)  # type: ignore[arg-type]
    judged = metrics.minimal_pairs(fills, good, bad)
    likeliest = fills.values["likeliest"][fills.context_of, 0]
    spelled = iter(model.spelling([int(token) for token in likeliest if token >= 0]))
    judged["prediction"] = [next(spelled) if token >= 0 else "" for token in likeliest]
    judged["prediction_log_probability"] = fills.values["likeliest_log_probability"][fills.context_of, 0].astype(float)
    for rank in ("rank_good", "rank_bad"):
        judged[rank] = judged[rank].mask(judged[rank] == 0).astype("Int64")  # 0: no rank
    return judged.set_index(pairs.index), fills.choices


def _without_target(pairs: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Pairs that differ in several words, or in none, in the columns of those that were judged at their target."""
    blank = pd.DataFrame(index=pairs.index, columns=judged.columns).astype(judged.dtypes.drop(["tie", "scorable"]))
    same = pairs["sentence_good"] == pairs["sentence_bad"]
    reasons = np.where(same, "identical", "several_words").astype(object)
    return blank.assign(tie=False, scorable=False, prediction="", reason=reasons)


def _in_order(model: Any, pairs: pd.DataFrame, forms: Sequence[str], target_policy: str) -> Any:
    """What ``scoring.fill`` gives, from sentences read one after the other (the start state ``carry``)."""
    from lib import scoring
    from lib.models import Gap

    if target_policy != "single_token":
        raise LitmusError(f"With the start state carry a form is one word; '{target_policy}' needs eos or zero.")
    sentences = pairs["sent"].tolist() if "sent" in pairs else pairs["sentence_good"].tolist()
    before = [len(formats.ascii_words(left)) for left in pairs["left"]]
    distinct = list(dict.fromkeys(forms))
    words = scoring.words_at(model, distinct, "as_written")
    contexts = [Gap(left, "") for left in pairs["left"]]
    values = scoring.blank(len(contexts), scoring.record(len(distinct), 0, 0))
    reasons = np.full(len(contexts), "", dtype=object)
    for batch in model.at(sentences, before):
        if batch.log_probabilities is None:
            reasons[batch.rows] = batch.reason
            continue
        for row, distribution in zip(batch.rows, batch.log_probabilities, strict=True):
            found = words[scoring.position_of(contexts[row])]
            values[row] = scoring.read_off(distribution[None], found, values.dtype)[0]
    choices = {"start_token": "", "target_policy": target_policy, "dtype": model.identity["dtype"],
               "mass_arithmetic": "float64"}  # fmt: skip
    return scoring.Fills(
        contexts, np.arange(len(contexts)), reasons, scoring.form_table(words), values, model.vocabulary_size, choices
    )


def recorded(pairs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Pairs judged by numbers that the file itself gives for each form: a recorded log-probability, a frequency.

    ``column`` holds the right form's number, ``COLUMN_alt`` the wrong one's. New columns ``score_good``, ``score_bad`` and
    those of a judgement. Raises LitmusError for a column that the file does not have, and for one with the name of a new one.
    """
    _check_free(pairs, OF_NUMBERS)
    if column not in pairs:
        raise LitmusError(
            f"There is no column '{column}' in {pairs['file'].iloc[0]}{did_you_mean(column, map(str, pairs.columns))}; "
            "name one whose numbers belong to the forms."
        )
    other = f"{column}_alt" if f"{column}_alt" in pairs else column
    good, bad = (pd.to_numeric(pairs[name], errors="coerce").astype(float) for name in (column, other))
    margin = good - bad
    scorable = np.isfinite(margin)
    return pairs.assign(
        score_good=good, score_bad=bad, margin=margin, tie=scorable & (margin == 0), scorable=scorable,
        reason=np.where(scorable, "", "no_number"), correct=np.where(scorable, (margin > 0).astype(float), np.nan),
        mode=f"column {column}",
    )  # fmt: skip


def _check_free(pairs: pd.DataFrame, new: frozenset[str]) -> None:
    if taken := [column for column in pairs if column in new]:
        raise LitmusError(
            f"The column '{taken[0]}' of {pairs['file'].iloc[0]} has the name of one that a judgement adds; rename it."
        )


def summary(judged: pd.DataFrame, by: Sequence[str] = ("pattern",)) -> pd.DataFrame:
    """Accuracy of each pattern, or of each value of the columns ``by``.

    Columns: those of ``by``, ``metric``, ``n`` (pairs), ``scored``, ``value``, ``low``, ``high`` (Wilson, 95 %), ``ties``,
    ``coverage`` (share of pairs scored).
    """
    from lib import metrics

    if missing := [column for column in by if column not in judged]:
        known = did_you_mean(missing[0], map(str, judged.columns))
        raise LitmusError(
            f"There is no column '{missing[0]}'{known} to summarise by; the file's own columns are there."
        )
    return metrics.summarise_pairs(judged, by).assign(metric="accuracy")


def by_word(model: Any, judged: pd.DataFrame, start_token: str = "default", masked_method: str = "within_word_l2r",
            store: Any = None) -> pd.DataFrame:  # fmt: skip
    """Both sentences of every pair, word by word: what a whole-sentence score is made of.

    Columns: ``item``, ``pattern``, ``which`` (good or bad), ``position``, ``word``, ``pieces``, ``log_probability``, ``bits``.
    """
    from lib import sentences

    chosen = "auto" if start_token == "default" else start_token
    both = [*judged["sentence_good"], *judged["sentence_bad"]]
    scores = sentences.score(model, both, chosen, masked_method, store)  # type: ignore[arg-type]
    tables = []
    for which, scored in (("good", scores[: len(judged)]), ("bad", scores[len(judged) :])):
        for row, found in zip(judged.itertuples(), scored, strict=True):
            tables.append(sentences.words(found).assign(item=row.item, pattern=row.pattern, which=which))
    columns = ["item", "pattern", "which", "position", "word", "pieces", "log_probability", "bits"]
    kinds = {"position": int, "log_probability": float}  # also where no sentence has a word
    return pd.concat(tables)[columns].astype(kinds).reset_index(drop=True)


def sampled(pairs: pd.DataFrame, limit: int, seed: int, by: Sequence[str] = ("pattern",)) -> pd.DataFrame:
    """At most ``limit`` pairs of each pattern, or of each value of the columns ``by`` (0: all), drawn by ``seed``, in order.

    Raises LitmusError for pairs of one name and line, as the same file gives them when it is read twice.
    """
    from lib.items import sample

    if len(twice := pairs[pairs.duplicated(["file", "item", "line"])]):
        first = twice.iloc[0]
        raise LitmusError(
            f"{first['file']}, line {first['line']} is there twice: a file is named twice, or two have one name; name each "
            "file once, and rename one of two."
        )
    groups = [sample(group, limit, "seeded", seed) for _, group in pairs.groupby(list(by), sort=False)]
    return pd.concat(groups).sort_index()


def long_distance_file(chosen: str = "", published: Path | None = None) -> Path:
    """The pairs of a run: the chosen file, else the published English set with its recorded scores, else our own."""
    theirs = published / "colorless-green" / "evaluation_output" / "English" / "best_model.tab" if published else None
    if chosen:
        return Path(chosen)
    return theirs if theirs and theirs.exists() else DATA / "items" / "long_distance" / "long_distance.tab"


def read_long_distance(path: Path) -> pd.DataFrame:
    """Pairs with their ``kind`` (``sense``, ``nonsense``; ``given`` where the file does not say) and ``sentence``, its group.

    A sensible sentence and its nonsense variants have one ``sentence``; pairs of other files have one each.
    """
    pairs = formats.read(path)
    kinds = {"original": "sense", "generated": "nonsense"}
    types = pairs["type"] if "type" in pairs else pd.Series("", pairs.index)
    group = pairs["constr_id"] if "constr_id" in pairs else pairs["line"].astype(str)
    return pairs.assign(kind=[kinds.get(kind, "given") for kind in types], sentence=pairs["pattern"] + ":" + group)


def example(model: Any, pairs: pd.DataFrame) -> pd.DataFrame:
    """A sensible sentence and a nonsense variant, short, with an attractor if there are such, their forms one piece each.

    ``pairs`` as from ``read_long_distance``. Where no sentence is of both kinds, one pair that can be scored; else no row.
    """
    forms = {form: len(model.word(form, "middle").ids) == 1 for form in {*pairs["good"], *pairs["bad"]}}
    fits = [bool(row.left) and forms[row.good] and forms[row.bad] for row in pairs.itertuples()]
    known = pairs[fits].drop_duplicates(["sentence", "kind"])
    known = known.assign(kinds=known.groupby("sentence")["kind"].transform("size"), attractors=known.get("n_attr", "0"))
    if known.empty:
        return known
    known["length"] = known["sentence_good"].str.len()
    wanted = ["kinds", "attractors", "length"]
    first = known.assign(attractors=~known["attractors"].isin(["", "0"])).sort_values(
        wanted, ascending=[False, False, True], kind="stable"
    )
    return known[known["sentence"] == first["sentence"].iloc[0]].sort_values("kind", ascending=False)


def rows_of(judged: pd.DataFrame) -> pd.DataFrame:
    """The columns that the command prints, those to read first, the choices last."""
    first = [column for column in AT_TARGET if column in judged]
    if "tokens_good" in judged:
        first = AS_SENTENCES
    if "score_good" in judged:
        first = ["correct", "pattern", "good", "bad", "score_good", "score_bad"]
    choices = ["mode", "start_state", "start_token", "target_policy", "masked_method", "reduction", "flag", "dtype"]
    return judged[[*first, *ALWAYS, *(choice for choice in choices if choice in judged)]]


def plain(table: pd.DataFrame) -> str:
    """A table as ``cut`` and ``column`` like it: a header, tabs, one line a row, no quotation marks around cells."""
    cells = table.astype(object).where(table.notna(), "")
    if "correct" in cells:
        cells["correct"] = [int(value) if value != "" else "" for value in cells["correct"]]
    lines = [table.columns, *cells.itertuples(index=False)]
    return "".join("\t".join(_cell(value) for value in line) + "\n" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return _visible(" ".join(str(value).split()) if any(space in str(value) for space in "\t\n\r") else str(value))


def _visible(text: str) -> str:
    """A text with what a terminal would obey written out."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def main(
    data: Annotated[list[str], typer.Option(help="A file of pairs, in any format that lib.formats reads.")],
    model: Annotated[str, typer.Option(help="A name in data/models.csv, a hub id, a folder, or a checkpoint.")] = "",
    vocab: Annotated[
        str, typer.Option(help="Word list of a recurrent checkpoint, if not the vocab.txt beside it.")
    ] = "",
    mode: Annotated[str, typer.Option(help=f"{', '.join(MODES)}; auto: a target mode if each pair has one.")] = "auto",
    start_state: Annotated[str, typer.Option(help="Recurrent models: eos, zero or carry.")] = "eos",
    start_token: Annotated[
        str, typer.Option(help="never, auto or always; default: never at a target, auto for sentences.")
    ] = "default",
    target_policy: Annotated[str, typer.Option(help="Target modes: which forms can be scored.")] = "single_token",
    masked_method: Annotated[
        str, typer.Option(help="Whole sentences, masked models: within_word_l2r or original.")
    ] = "within_word_l2r",
    reduction: Annotated[str, typer.Option(help="Whole sentences: sum or mean of the tokens.")] = "sum",
    column: Annotated[str, typer.Option(help="In place of a model, a column of the file with numbers.")] = "",
    by: Annotated[str, typer.Option(help="Columns of the file to summarise by, with commas.")] = "pattern",
    limit: Annotated[int, typer.Option(help="At most so many pairs of each pattern; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Which pairs --limit draws.")] = 0,
    revision: Annotated[str, typer.Option(help="Of a model on the hub.")] = "main",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    per_word: Annotated[bool, typer.Option("--per-word", help="Whole sentences: one row a word.")] = False,
    out: Annotated[Path | None, typer.Option(help="A file for the rows, in place of the output.")] = None,
) -> None:
    """Judge minimal pairs: a row for each pair as plain tab-separated text, then a summary on the error stream.

    A row begins with correct (1 or 0; empty where a pair cannot be scored, see reason), the pattern, both forms or sentences,
    and both log-probabilities (natural log). It ends with the choices that the numbers depend on.
    """
    with told():
        file = _one_file(data)
        pairs = sampled(formats.read(file), limit, seed)
        names = list(dict.fromkeys(name.strip() for name in by.split(",")))
        summary(recorded(pairs, "line"), names)  # a wrong name is told before the model runs
        _check_out(out, [file, *map(file.with_suffix, (".text", ".gold", ".eval")), *([Path(vocab)] if vocab else [])])
        if bool(column) == bool(model):
            raise LitmusError(
                "Name what judges the pairs: a model with --model, or a column of the file with --column."
            )
        given = {
            "--start-state": start_state != "eos", "--vocab": bool(vocab), "--start-token": start_token != "default",
            "--target-policy": target_policy != "single_token", "--masked-method": masked_method != "within_word_l2r",
            "--reduction": reduction != "sum", "--per-word": per_word, "--mode": mode != "auto",
            "--revision": revision != "main", "--device": device != "auto", "--dtype": dtype != "float32",
        }  # fmt: skip
        if column:
            _check_of_use(given, {}, "the numbers of a column")
            judged = recorded(pairs, column)
            table, judge = rows_of(judged), f"column {column}"
        else:
            from lib.models import load
            from lib.store import Store

            lm = load(model, revision, device, dtype, start_state=start_state, vocabulary=vocab)  # type: ignore[arg-type]
            found_mode = mode_for(lm.family, lm.identity.get("start_state", ""), pairs, mode)
            whole = found_mode == "whole-sentence"
            of_use = dict.fromkeys(given, True) | {
                "--start-state": lm.family == "recurrent", "--vocab": lm.family == "recurrent",
                "--start-token": lm.family == "causal", "--target-policy": not whole,
                "--masked-method": whole and lm.family == "masked", "--reduction": whole, "--per-word": whole,
            }  # fmt: skip
            _check_of_use(given, of_use, f"a {lm.family} model in the mode {found_mode}")
            store = Store(lm.identity)
            judged = evaluate(lm, pairs, found_mode, start_token, target_policy, masked_method, reduction, store)
            words = by_word(lm, judged, start_token, masked_method, store) if per_word else None
            table = rows_of(judged) if words is None else words
            judge = f"{lm.name} ({lm.revision}), {lm.family}, {found_mode}, {lm.identity['dtype']} on {lm.device}"
        _put(plain(table), out)
    _tell(judged, names, f"{file.name}: {judge}")


def _check_of_use(given: dict[str, bool], of_use: dict[str, bool], whom: str) -> None:
    """Refuse a flag that would have no effect: whoever gives it expects one."""
    if useless := [flag for flag in given if given[flag] and not of_use.get(flag)]:
        raise LitmusError(f"{useless[0]} has no meaning for {whom}; leave it out.")


def _one_file(data: Sequence[str]) -> Path:
    if len(data) != 1 or not data[0].strip():
        given = "is empty" if len(data) == 1 else f"is given {len(data)} times"
        raise LitmusError(f"--data {given}, and it takes one file of pairs; run the command once for each file.")
    return Path(data[0])


def _check_out(out: Path | None, read: Sequence[Path]) -> None:
    """Refuse a file that cannot be written, or is one of those that are ``read``, before the model has worked for it."""
    if out is None:
        return
    with _writing(out):
        if any(out.exists() and file.exists() and out.samefile(file) for file in read):
            raise LitmusError(f"--out {shown(str(out))} is a file that this command reads; name another one.")
        target = out.resolve()
        new = not target.exists()
        if new or target.is_file() or target.is_dir():
            target.open("a").close()
            _half(target).open("a").close()
            _half(target).unlink()
        if new:
            target.unlink()


def _half(target: Path) -> Path:
    """Where rows are written until they are whole."""
    return target.with_name(f".rows.{os.getpid()}")


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LitmusError(f"{shown(str(out))} cannot be written ({error.strerror}); name another file.") from None


def _put(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with _writing(out):
        target = out.resolve()
        if target.exists() and not target.is_file():  # a pipe, a device
            target.write_text(text, encoding="utf-8")
            return
        try:
            _half(target).write_text(text, encoding="utf-8")
            _half(target).replace(target)
        finally:
            _half(target).unlink(missing_ok=True)


def _tell(judged: pd.DataFrame, by: Sequence[str], title: str) -> None:
    tables = [summary(judged, by), summary(judged.assign(all="all"), ["all"]).rename(columns={"all": by[0]})]
    summarised = pd.concat(tables).drop(columns="metric").rename(columns={"value": "accuracy"})
    for name in by:
        summarised[name] = summarised[name].map(lambda value: _visible(str(value)), na_action="ignore")
    typer.echo(f"\n{_visible(title)}\n{summarised.round(3).to_string(index=False, na_rep='')}", err=True)
    for reason, number in judged.loc[~judged["scorable"], "reason"].value_counts().items():
        typer.echo(f"not scored: {number} {reason}", err=True)
    if repeated := judged.duplicated(["pattern", "sentence_good", "sentence_bad"]).sum():
        typer.echo(f"repeated: {repeated} pairs that stand in the file before; each counts", err=True)
    if replaced := list(_replaced(judged)):
        line, word = replaced[0]
        told_of = f"first: line {line}, '{_visible(shown(word))}'"
        typer.echo(
            f"replaced: {len(replaced)} pairs hold another word than their forms at len_prefix ({told_of})", err=True
        )


def _replaced(judged: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Line and word of pairs whose sentence holds neither form in its place: most published ones, and a slip of one's own."""
    if {"sent", "len_prefix"} <= set(judged):
        for row in judged.itertuples():
            word = formats.ascii_words(row.sent)[int(row.len_prefix)]
            if word not in (row.good, row.bad):
                yield row.line, word


if __name__ == "__main__":
    typer.run(main)
