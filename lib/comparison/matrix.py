"""The table at the top of the index: a row a diagnostic, a column a model."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

NOT_LIKELIER = {"30_inference": 1 / 3}
"""What guessing gets, where it is not a half."""


def chance(notebook: str) -> float | None:
    """The share that a model which guesses gets right; None where nothing is right or wrong."""
    return None if notebook == "10_scoring_choices" else NOT_LIKELIER.get(notebook, 0.5)


def matrix(found: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]) -> str:
    """HTML: value, interval and coverage with a link to the report; ``failed``, ``damaged`` or ``not run`` where there is none.

    ``found`` as from ``collect``; ``models``: labels, the columns; ``titles``: words by notebook, the rows.
    """
    cells = {(row.label, row.notebook): row for row in found.itertuples()}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in models)
    lines = []
    for notebook, words in titles.items():
        row = "".join(_cell(cells.get((model, notebook))) for model in models)
        metrics = found.loc[(found["notebook"] == notebook) & found["metric"].notna(), "metric"].unique()
        measured = f"<br><small>{escape(', '.join(map(str, metrics)))}</small>" if len(metrics) else ""
        name = f"<br><small>{escape(notebook)}</small>" if words != notebook else ""
        lines.append(f'<tr><th scope="row">{escape(words)}{measured}{name}</th>{row}</tr>')
    return (
        f'<table class="matrix"><thead><tr><th scope="col">diagnostic</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(result: Any) -> str:
    if result is None:
        return '<td class="not-run">not run</td>'
    page = escape(result.page, quote=True)
    if result.state != "done":
        return f'<td class="failed"><a href="{page}">{result.state}</a></td>'
    value = "n/a" if pd.isna(result.value) else f"{result.value:.2f}"
    interval = "" if pd.isna(result.low) else f"<br><small>{result.low:.2f} to {result.high:.2f}</small>"
    coverage = "" if pd.isna(result.coverage) else f"<br><small>scored {result.coverage:.0%}</small>"
    return f'<td><a href="{page}">{value}</a>{interval}{coverage}</td>'


PALE, DEEP = (247, 251, 255), (8, 48, 107)  # shades of 0 and 1
BLACK, WHITE = "#000000", "#ffffff"
EVEN = 0.179  # the luminance on which black and white are equally easy to read


def shaded(values: pd.DataFrame) -> str:
    """HTML: a row a condition, a column whoever has values for it, and a shade that says the same: darker is higher.

    ``values`` as from ``conditions.by_condition``, of one ``group``.
    """
    who = values["who"].drop_duplicates().tolist()
    cells = {(row.condition, row.who): row.value for row in values.itertuples()}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in who)
    lines = []
    for condition in values["condition"].drop_duplicates():
        row = "".join(_shade(cells.get((condition, name))) for name in who)
        lines.append(f'<tr><th scope="row">{escape(str(condition))}</th>{row}</tr>')
    return (
        f'<table class="shaded"><thead><tr><th scope="col">condition</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _shade(value: float | None) -> str:
    """A cell in the ink, black or white, that can be read on its ground."""
    if value is None:
        return "<td></td>"
    share = min(max(value, 0.0), 1.0)
    ground = [round(pale + share * (deep - pale)) for pale, deep in zip(PALE, DEEP, strict=True)]
    ink = BLACK if _luminance(ground) > EVEN else WHITE
    colours = f"background-color:#{bytes(ground).hex()};color:{ink}"
    return f'<td style="{colours}">{value:.2f}</td>'


def _luminance(colour: Sequence[int]) -> float:
    """Relative luminance of red, green and blue (0 to 255), from 0 to 1, as the accessibility guidelines WCAG 2 define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
