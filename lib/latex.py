"""The paper's table as LaTeX."""

import pandas as pd


def agreement_table(values: pd.DataFrame, caption: str) -> str:
    """Templates against models, each with MW, EW and TSE, as in Newman et al. (2021), table 1.

    ``values``: columns ``template``, ``model``, ``metric`` ("MW", "EW", "TSE") and ``value``. MW is italic, the better of
    EW and TSE bold; a missing value is a dash. Needs the LaTeX package booktabs.
    """
    models = list(dict.fromkeys(values["model"]))
    cells = {(row.template, row.model, row.metric): row.value for row in values.itertuples()}
    head = " & ".join(f"\\multicolumn{{3}}{{c}}{{{escape(model)}}}" for model in models)
    lines = [
        "\\begin{table}", f"\\caption{{{escape(caption)}}}", f"\\begin{{tabular}}{{l{'rrr' * len(models)}}}", "\\toprule",
        f"Template & {head} \\\\", " & " + " & ".join(["MW & EW & TSE"] * len(models)) + " \\\\", "\\midrule",
    ]  # fmt: skip
    for template in dict.fromkeys(values["template"]):
        row = [_three(*(cells.get((template, model, metric)) for metric in ("MW", "EW", "TSE"))) for model in models]
        lines.append(f"{escape(template)} & {' & '.join(row)} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}"])


def _three(mw: float | None, ew: float | None, tse: float | None) -> str:
    shown = ["--" if pd.isna(value) else f"{value:.2f}" for value in (mw, ew, tse)]
    best = max((value for value in (ew, tse) if not pd.isna(value)), default=None)
    bold = [f"\\textbf{{{text}}}" if value == best else text for text, value in zip(shown[1:], (ew, tse), strict=True)]
    return " & ".join([f"\\textit{{{shown[0]}}}", *bold])


def escape(text: str) -> str:
    """Plain text with the characters that LaTeX would act upon made harmless."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)
