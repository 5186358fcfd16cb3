"""Small worlds for the tests of the psycholinguistic diagnostics: a fake model that spells, and items in one line."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from tiny import FakeModel

from lib.cloze.answers import ask
from lib.cloze.items import NOTHING


@dataclass
class SpellingModel(FakeModel):
    """A fake model whose vocabulary items are words, but for those that start with ``##`` or are a comma."""

    def spelling(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary[i] for i in ids]

    def word(self, form, position):
        found = super().word(form, position)
        return found._replace(ids=()) if form.startswith("##") or form == "," else found


def item(item: str, condition: str, context: str, candidate: str, expected: tuple[str, ...], **more) -> dict:
    """One row of items; whatever else it has by name."""
    row = {"item": item, "condition": condition, "context": context, "candidate": candidate, "role": condition}
    return {**row, "expected": expected, **NOTHING, **more}


def answers_of(model: SpellingModel, *items: dict) -> pd.DataFrame:
    """The answers of a model to rows of items."""
    return ask(model, pd.DataFrame(items))[0]
