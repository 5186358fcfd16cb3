"""From gaps and forms to numbers: each distinct context once, and of each distribution only what is asked for.

``fill`` asks a model about gaps and reads off every form's log-probability, rank and cumulative mass, the places where
the sorted vocabulary reaches each cutoff, and the likeliest words. Agreement, verb by verb or pair by pair, needs nothing
else, and nothing that grows with the vocabulary is kept.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pandas as pd
import torch

from lib.errors import LitmusError
from lib.models.protocol import Gap, LanguageModel, Position, StartToken, TargetPolicy, Word
from lib.progress import bar
from lib.store import Store, code_version, digest

MassArithmetic = Literal["float64", "float32"]
TARGET_POLICIES: tuple[TargetPolicy, ...] = get_args(TargetPolicy)
CONTEXTS = 16  # contexts after which scores of whole forms are kept: what a kill can cost,
FORMS = 4096  # or fewer, so that these are the most forms in contexts that are scored at once
FLOAT32_SLACK = 1e-6  # how far a float32 sum of probabilities may fall short of a cutoff and still count as reaching it
CUTOFFS_TOP = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0)
CUTOFFS_BOTTOM = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
LIKELIEST = 21  # words kept of each distribution: enough for accuracy at 20, and to see a tie at that place
POSITIONS: tuple[Position, Position] = ("start", "middle")
StartForm = Literal["capitalised", "as_written"]


@dataclass(frozen=True)
class Fills:
    """What a model says at some gaps about some forms.

    ``contexts``: the distinct contexts as the model sees them; ``context_of``: for each gap asked, its context's row.
    ``context_reason``: per context, empty, or why it could not be filled. ``forms``: a table with one row a form, indexed
    by it: ``column``, and for the ``middle`` and the ``start`` of a text the number of ``pieces``, their ids as text
    (``spelled``) and the ``reason`` why it cannot be scored (empty if it can). ``values``: one record per context (see
    ``record``), NaN where unscorable. ``vocabulary_size``: how many items were ranked. ``choices``: what the numbers depend
    on, for the results; ``flag`` among them where a choice is known to be biased.
    """

    contexts: list[Gap]
    context_of: np.ndarray
    context_reason: np.ndarray
    forms: pd.DataFrame
    values: np.ndarray
    vocabulary_size: int
    choices: dict[str, str]

    def columns(self, forms: Iterable[str]) -> np.ndarray:
        """The column of each form in ``log_probability``, ``rank`` and ``cumulative_mass``."""
        return self.forms["column"].loc[list(forms)].to_numpy()

    def at(self, field: str, forms: Iterable[str]) -> np.ndarray:
        """``field`` of one form per gap asked, in the order of the gaps: shape (gaps,)."""
        return self.values[field][self.context_of, self.columns(forms)]

    def first(self, gaps: int) -> "Fills":
        """The same fills for the first ``gaps`` gaps asked."""
        return replace(self, context_of=self.context_of[:gaps])

    def reason(self, forms: Iterable[str]) -> list[str]:
        """For one form per gap asked: why it has no score there, or empty."""
        reasons = zip(self.context_reason[self.context_of], self._by_position("reason", forms), strict=True)
        return [of_context or of_form for of_context, of_form in reasons]

    def same(self, forms: Iterable[str], others: Iterable[str]) -> np.ndarray:
        """For two forms per gap asked: whether they are the same pieces there."""
        one, other = (np.array(self._by_position("spelled", listed), dtype=object) for listed in (forms, others))
        return one == other

    def _by_position(self, name: str, forms: Iterable[str]) -> list:
        of_position = {position: self.forms[f"{name}_{position}"].to_numpy() for position in POSITIONS}
        rows = zip(self.context_of, self.columns(forms), strict=True)
        return [of_position[position_of(self.contexts[row])][column] for row, column in rows]


def record(forms: int, top: int, bottom: int) -> np.dtype:
    """What is kept of one context's distribution; all logarithms are natural.

    ``log_probability``, ``rank`` (1 = likeliest; equal probabilities share the better rank) and ``cumulative_mass``
    (mass of the form and of all that outranks it): one number a form. ``top``, ``bottom``: one row a cutoff p with
    (items, mass without, mass with): the smallest prefix of the sorted vocabulary whose mass reaches p, from the
    likeliest or the unlikeliest end, without and with the item that crosses p. ``likeliest``: ids and log-probabilities.
    """
    fields: list[tuple] = [
        ("log_probability", "f4", (forms,)),
        ("rank", "i4", (forms,)),
        ("cumulative_mass", "f4", (forms,)),
        ("top", "f8", (top, 3)),
        ("bottom", "f8", (bottom, 3)),
        ("likeliest", "i4", (LIKELIEST,)),
        ("likeliest_log_probability", "f4", (LIKELIEST,)),
    ]
    return np.dtype(fields)


def fill(
    model: LanguageModel,
    gaps: Sequence[Gap],
    forms: Iterable[str],
    start_token: StartToken = "never",
    target_policy: TargetPolicy = "single_token",
    cutoffs_top: Sequence[float] = (),
    cutoffs_bottom: Sequence[float] = (),
    mass_arithmetic: MassArithmetic = "float64",
    store: Store | None = None,
    start_form: StartForm = "capitalised",
) -> Fills:
    """Ask ``model`` about each distinct context of ``gaps`` once, and read off every one of ``forms``.

    ``start_token`` ``never`` is the published setting for gaps. ``target_policy`` ``single_token`` scores a form that is
    one vocabulary item and reports any other as unscorable (Newman et al. 2021, section 3); the others score forms of
    several pieces too (see ``LanguageModel.continue_``), which have a rank among the vocabulary's items but no cumulative
    mass. Cutoffs are probabilities in (0, 1]; as they rank single items, other policies take none but a top cutoff of 1,
    the whole vocabulary. ``mass_arithmetic`` ``float64`` sums probabilities exactly; ``float32`` takes them as the published
    code does, from a float32 softmax whose sum can miss 1 by 1e-5, so that "the whole vocabulary" loses its last items.
    With a ``store``, contexts scored before are not scored again, and new ones are kept batch by batch. ``start_form``: a form
    that opens a text is ``capitalised`` where the model is cased (Newman et al. 2021), or taken ``as_written``, which target
    policies other than ``single_token`` cannot do: there it has no score.
    """
    if target_policy not in TARGET_POLICIES:
        raise LitmusError(f"'{target_policy}' is no target policy; choose one of {', '.join(TARGET_POLICIES)}.")
    if mass_arithmetic not in ("float64", "float32"):
        raise LitmusError(f"'{mass_arithmetic}' is no mass arithmetic; choose 'float64' or 'float32'.")
    _check_cutoffs([*cutoffs_top, *cutoffs_bottom])
    single = target_policy == "single_token"
    if not single and (set(cutoffs_top) - {1.0} or len(cutoffs_bottom)):
        raise LitmusError(
            f"Cutoffs rank single vocabulary items, so the target policy '{target_policy}' has none; "
            "set cutoffs_top to [1.0] and cutoffs_bottom to []."
        )
    seen = [model.seen(gap) for gap in gaps]
    row_of = {gap: row for row, gap in enumerate(dict.fromkeys(seen))}
    contexts, form_list = list(row_of), list(dict.fromkeys(forms))
    words = words_at(model, form_list, start_form)
    values = blank(len(contexts), record(len(form_list), len(cutoffs_top), len(cutoffs_bottom)))
    reasons = np.full(len(contexts), "", dtype=object)

    cutoffs = (cutoffs_top, cutoffs_bottom, mass_arithmetic)
    method = digest(form_list, cutoffs, start_token, target_policy, start_form, LIKELIEST, code_version()).hex()
    keys = [digest(method, *gap) for gap in contexts]
    kept = store.get(keys) if store else {}
    for row, key in enumerate(keys):
        if key in kept:
            values[row] = np.frombuffer(kept[key], values.dtype)[0]
    missing = [row for row, key in enumerate(keys) if key not in kept]

    step = max(1, len(missing) if single else min(CONTEXTS, FORMS // max(1, len(form_list))))
    parts = [missing[start : start + step] for start in range(0, len(missing), step)] or [[]]
    for some in bar(parts, desc=f"{model.name}: whole forms", shown=not single):
        ascending: dict[int, np.ndarray] = {}
        for batch in model.fill([contexts[row] for row in some], start_token):
            rows = np.array([some[i] for i in batch.rows])
            if batch.log_probabilities is None:
                reasons[rows] = batch.reason
                continue
            # Half precision can overflow in one text and not in the others.
            distributions = batch.log_probabilities
            numbers = ~distributions.isnan().any(1)
            reasons[rows[~numbers.cpu().numpy()]] = "not_a_number"
            rows, distributions = rows[numbers.cpu().numpy()], distributions[numbers]
            positions = np.array([position_of(contexts[row]) for row in rows])
            for position in POSITIONS:
                if (here := np.flatnonzero(positions == position)).size:
                    log_probabilities = distributions[torch.from_numpy(here)]
                    values[rows[here]] = read_off(log_probabilities, words[position], values.dtype, *cutoffs)
            if not single:
                ascending |= zip(rows.tolist(), np.sort(distributions.cpu().numpy()), strict=True)
            elif store:
                store.put({keys[row]: values[row].tobytes() for row in rows})
        if ascending:
            opening = [row for row in ascending if start_form == "as_written" and not contexts[row].left]
            reasons[opening] = "opens_text"
            asked = sorted(set(ascending) - set(opening))
            for batch in model.continue_([contexts[row] for row in asked], form_list, target_policy, start_token):
                for row, i in enumerate(batch.rows):
                    at, found = asked[i], batch.log_probabilities
                    of_position = words[position_of(contexts[at])]
                    reasons[at] = (
                        batch.reason
                        if found is None
                        else _add_whole(values[at], found[row].cpu().numpy(), of_position, ascending[at])
                    )
            if store:
                store.put({keys[row]: values[row].tobytes() for row in asked if not reasons[row]})

    choices = {
        "start_token": start_token, "target_policy": target_policy, "dtype": model.identity["dtype"],
        "mass_arithmetic": mass_arithmetic, "start_state": model.identity.get("start_state", ""),
    }  # fmt: skip
    if target_policy in ("sum_l2r", "within_word_l2r") and model.family == "causal":
        choices["flag"] = "word_ends_ignored"
    context_of = np.array([row_of[gap] for gap in seen], dtype=int)
    return Fills(contexts, context_of, reasons, form_table(words, single), values, model.vocabulary_size, choices)


def _add_whole(values: np.void, log_probabilities: np.ndarray, words: Sequence[Word], ascending: np.ndarray) -> str:
    """Write whole forms' numbers into one record; the reason where one that has ids has no number.

    ``ascending``: the distribution at the gap, sorted.
    """
    if any(word.ids and np.isnan(found) for word, found in zip(words, log_probabilities, strict=True)):
        return "not_a_number"
    several = [column for column, word in enumerate(words) if len(word.ids) > 1]
    values["log_probability"] = log_probabilities
    above = len(ascending) - np.searchsorted(ascending, log_probabilities[several], side="right")
    values["rank"][several] = np.minimum(above + 1, len(ascending))
    return ""


def read_off(
    log_probabilities: torch.Tensor,
    words: Sequence[Word],
    dtype: np.dtype,
    cutoffs_top: Sequence[float] = (),
    cutoffs_bottom: Sequence[float] = (),
    mass_arithmetic: MassArithmetic = "float64",
) -> np.ndarray:
    """One ``record`` per row of ``log_probabilities`` (rows, vocabulary); words of other than one piece get NaN.

    Only values are sorted, never ids: a rank is then a binary search, which is what makes thousands of forms cheap.
    """
    values = blank(len(log_probabilities), dtype)
    columns = np.array([column for column, word in enumerate(words) if len(word.ids) == 1], dtype=int)
    ids = np.array([words[column].ids[0] for column in columns], dtype=int)
    likeliest = log_probabilities.topk(min(LIKELIEST, log_probabilities.shape[1]))
    width = likeliest.indices.shape[1]
    values["likeliest"][:, :width] = likeliest.indices.cpu().numpy()
    values["likeliest_log_probability"][:, :width] = likeliest.values.cpu().numpy()
    slack = 0.0 if mass_arithmetic == "float64" else FLOAT32_SLACK

    def read_row(found: np.void, row: np.ndarray) -> None:
        of_forms, ascending = row[ids], np.sort(row)
        mass_up_to = np.cumsum(np.exp(ascending, dtype=np.float64))
        if mass_arithmetic == "float64":
            mass_up_to /= mass_up_to[-1]
        not_above = np.searchsorted(ascending, of_forms, side="right")
        found["log_probability"][columns] = of_forms
        found["rank"][columns] = len(row) - not_above + 1
        mass_above = mass_up_to[-1] - mass_up_to[not_above - 1]
        found["cumulative_mass"][columns] = mass_above + np.exp(of_forms, dtype=np.float64)
        found["top"] = prefix_from_top(mass_up_to, cutoffs_top, slack)
        found["bottom"] = prefix_from_bottom(mass_up_to, cutoffs_bottom)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:  # NumPy sorts and sums without holding Python's lock
        list(pool.map(read_row, values, log_probabilities.cpu().numpy()))
    return values


def prefix_from_bottom(mass_up_to: np.ndarray, cutoffs: Sequence[float]) -> np.ndarray:
    """Per cutoff (items, mass without, mass with): the fewest items from the unlikely end whose mass reaches it.

    ``mass_up_to``: cumulative mass from the least probable item on, shape (vocabulary,), last entry 1.
    """
    items = np.minimum(np.searchsorted(mass_up_to, cutoffs, side="left") + 1, len(mass_up_to))
    padded = np.concatenate([[0.0], mass_up_to])
    return np.column_stack([items, padded[items - 1], padded[items]])


def prefix_from_top(mass_up_to: np.ndarray, cutoffs: Sequence[float], slack: float = 0.0) -> np.ndarray:
    """The same from the likely end. A mass that sums to 1 reaches a cutoff of 1 with the whole vocabulary only."""
    total = mass_up_to[-1]
    whole = (np.asarray(cutoffs) >= 1) & (total == 1)
    left_out = np.searchsorted(mass_up_to, total - np.asarray(cutoffs) + slack, side="right")
    left_out = np.where(whole, 0, np.minimum(left_out, len(mass_up_to) - 1))
    padded = np.concatenate([[0.0], mass_up_to])
    return np.column_stack([len(mass_up_to) - left_out, total - padded[left_out + 1], total - padded[left_out]])


def blank(rows: int, dtype: np.dtype) -> np.ndarray:
    """Records that say nothing: NaN, rank 0, likeliest id -1."""
    values = np.zeros(rows, dtype)
    for field in ("log_probability", "cumulative_mass", "top", "bottom", "likeliest_log_probability"):
        values[field] = np.nan
    values["likeliest"] = -1
    return values


def words_at(
    model: LanguageModel, forms: Sequence[str], start_form: StartForm = "capitalised"
) -> dict[Position, list[Word]]:
    """Each form as the first word of a text (``start``), capitalised or as written, and after another one (``middle``)."""
    first: Position = "start" if start_form == "capitalised" else "start_as_written"
    return {
        "start": [model.word(form, first) for form in forms],
        "middle": [model.word(form, "middle") for form in forms],
    }


def form_table(words: dict[Position, list[Word]], single: bool = True) -> pd.DataFrame:
    """The forms with their columns, pieces, ids and reasons (see ``Fills``).

    Where only ``single`` vocabulary items are scored, more than one piece is a reason of its own.
    """
    table = pd.DataFrame({"form": [word.form for word in words["middle"]]}).reset_index(names="column")
    for position, listed in words.items():
        several = "several_pieces" if single else ""
        table[f"pieces_{position}"] = [len(word.ids) for word in listed]
        table[f"spelled_{position}"] = [" ".join(map(str, word.ids)) for word in listed]
        table[f"reason_{position}"] = [word.reason or (several if len(word.ids) > 1 else "") for word in listed]
    return table.set_index("form")


def position_of(gap: Gap) -> Position:
    """Whether a gap opens its text, where words are written differently, or stands inside it."""
    return "middle" if gap.left else "start"


def _check_cutoffs(cutoffs: Iterable[float]) -> None:
    if wrong := [cutoff for cutoff in cutoffs if not 0 < cutoff <= 1]:
        raise LitmusError(f"A cutoff is a share of probability above 0 and up to 1; {wrong[0]} is not.")
