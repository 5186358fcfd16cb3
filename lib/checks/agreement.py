"""Checks of the exercises to ``20_agreement``."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import metrics, scoring
from lib.checks import NOTHING, NotYet, a_number, call, exercise, judge, own_items, prediction
from lib.errors import LitmusError
from lib.items import FIELDS, LABELS, gaps, read_agreement
from lib.models.protocol import LanguageModel

ATTRACTORS = ("none", "match", "mismatch")


@exercise(1)
def share_right(function: Any) -> str:
    """TSE of five pairs with a tie, and of four pairs of which two have no score."""
    good, bad = np.log([0.4, 0.2, 0.1, 0.3, 0.05]), np.log([0.1, 0.3, 0.1, 0.2, 0.01])
    judge(a_number(call(function, good, bad)), 3 / 5, {
        "You count the tie as right. Neither form is more probable there: a tie is no success.": 4 / 5,
        "You count the tie as half right. It is no success: three of the five pairs are right.": 3.5 / 5,
        "You leave the tie out. It was scored, so it is one of the five pairs; it is only not right.": 3 / 4,
        "You count the pairs in which the wrong form is more probable.": 1 / 5,
        "You count the pairs in which the wrong form is at least as probable.": 2 / 5,
        "You count the right pairs; a share is that number divided by the number of pairs.": 3,
        "You take the mean difference. TSE asks only which form is more probable, and not by how much.": (good - bad).mean(),
        "You give per cent; a share lies between 0 and 1.": 60,
    }, "five pairs, one of them a tie,")  # fmt: skip
    good, bad = np.array([-1, -2, np.nan, -3, -1.0]), np.array([-2, -1, -1, np.nan, -4.0])
    judge(a_number(call(function, good, bad)), 2 / 3, {
        "You count a pair without a score as a failure. It is not valid: it leaves the share and is counted apart.": 2 / 5,
        "You count a pair without a score as right, perhaps by counting all that are not wrong. Leave it out.": 4 / 5,
        "One score that is not there (NaN) makes your whole share NaN. Keep the pairs in which both forms have one.": np.nan,
    }, "five pairs, of which two have a form without a score,")  # fmt: skip
    return "A tie is no success, and a pair without a score is no failure: it is left out, and told."


@exercise(2)
def share_by(function: Any, expected: Any, scored: pd.DataFrame) -> str:
    """Shares by group on a table made by hand, then on ``scored`` (columns ``attractor``, ``correct``)."""
    expected = prediction(expected, ATTRACTORS)
    groups = ["match", "mismatch", "match", "mismatch", "none", "mismatch", "match", "mismatch"]
    table = pd.DataFrame({"attractor": groups, "correct": [1, 0, 1, 1, 0, np.nan, 1, 0]})
    found = _shares(call(function, table, "attractor"), ATTRACTORS)
    if found == _shares(scored.groupby("attractor")["correct"].mean(), ATTRACTORS):
        raise NotYet("You take the table `scored`; take the one that is given to your function, `pairs`.")
    _judge_shares(found, {"none": 0, "match": 1, "mismatch": 1 / 3})
    numbers = pd.DataFrame({"number": ["singular", "plural", "plural"], "correct": [1.0, 1.0, 0.0]})
    judge(
        list(_shares(call(function, numbers, "number"), ("singular", "plural")).values()), [1, 0.5], {},
        "one singular pair that is right and two plural ones of which one is",
    )  # fmt: skip
    on_model = _shares(call(function, scored, "attractor"), ATTRACTORS)
    hardest = min(on_model, key=lambda name: on_model[name])
    told = ", ".join(f"{name} {share:.2f}" for name, share in on_model.items())
    came = "and so it is" if hardest == expected else f"but here it is *{hardest}*; why could that be"
    return (
        f"On this model: {told}. You expected *{expected}* to be hardest, {came}{'.' if hardest == expected else '?'}"
    )


@exercise(3)
def my_items(given: Any, lm: LanguageModel) -> str:
    """At least four pairs in the published format, as many singular as plural, with words between subject and verb."""
    items = own_items.listed(given, 4)
    table = _read(items)
    numbers = []
    for row in table.itertuples():
        where = f"Item {row.line}"
        own_items.one_word_apart(row.sentence_good, row.sentence_bad, where)
        numbers.append(own_items.agreeing(row.good, row.bad, where))
        if numbers[-1] != row.number:
            raise NotYet(
                f"{where}: the label {row.label} says that the right form is {row.number}, but *{row.good}* is {numbers[-1]}. "
                "The label is -2 for plural, -1 for singular."
            )
        if len(row.left.split()) < 4:
            raise NotYet(
                f"{where}: before the verb stands only *{row.left}*. Put an attractor between subject and verb, such as "
                "*The keys to the cabinet*."
            )
        own_items.one_piece(lm, row.good, where)
        own_items.one_piece(lm, row.bad, where)
    own_items.balanced(numbers)
    fills = scoring.fill(lm, gaps(table, lm.cased), [*table["good"], *table["bad"]])
    judged = metrics.minimal_pairs(fills, table["good"], table["bad"])
    return f"{len(table)} pairs, half of them plural; this model is right in {judged['correct'].sum():.0f}."


def _shares(found: Any, groups: tuple[str, ...]) -> dict[str, float]:
    """What the student's function gives as one number a group, in the order of ``groups``."""
    if found is None:
        raise NotYet(NOTHING)
    if isinstance(found, pd.DataFrame):
        raise NotYet('Your function gives a table; give the shares alone, a Series: one column, such as `["correct"]`.')
    if not isinstance(found, (dict, pd.Series)):
        raise NotYet(f"A dict or a Series with one share for each group is asked for, and not {type(found).__name__}.")
    of_group = dict(found)
    if missing := [name for name in groups if name not in of_group]:
        raise NotYet(f"The group *{missing[0]}* is missing: the groups are the values of the column that is named.")
    return {name: a_number(of_group[name]) for name in groups}


def _judge_shares(found: dict[str, float], right: dict[str, float]) -> None:
    def of(none: float, match: float, mismatch: float) -> list[float]:
        return [none, match, mismatch]

    judge(list(found.values()), list(right.values()), {
        "You give every group the share of all pairs. Take each group alone.": of(*3 * [4 / 7]),
        "You give every group the share of all pairs, and count one without a score as wrong.": of(*3 * [4 / 8]),
        "You count a pair without a score as wrong. It leaves the group: mismatch is one of three.": of(0, 1, 1 / 4),
        "You count the right pairs; a share is that number divided by the pairs of the group.": of(0, 3, 1),
        "You divide by the number of all pairs; divide by those of the group.": of(0, 3 / 8, 1 / 8),
        "You divide by the number of all scored pairs; divide by those of the group.": of(0, 3 / 7, 1 / 7),
    }, "the groups none, match, mismatch")  # fmt: skip


def _read(items: list) -> pd.DataFrame:
    """The items as the library's reader has them; its errors in the words of the exercise."""
    for place, item in enumerate(items, start=1):
        if not isinstance(item, dict) or any(field not in item for field in FIELDS):
            raise NotYet(f"Item {place} should be a dict with the fields {', '.join(FIELDS)}.")
        if type(item["label"]) is not int or item["label"] not in LABELS:
            raise NotYet(f"Item {place} has the label {item['label']!r}; it is -2 for plural and -1 for singular.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        try:
            path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
            return read_agreement(path)
        except TypeError:
            raise NotYet(
                "An item holds something that is neither text nor a number; two sentences and a label are enough."
            ) from None
        except LitmusError as error:
            raise NotYet(str(error).replace(f"{path}, line", "Item")) from None
