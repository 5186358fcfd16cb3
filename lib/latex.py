"""The paper's table as LaTeX."""

import math

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
        row = [
            _three(*(cells.get((template, model, metric), math.nan) for metric in ("MW", "EW", "TSE")))
            for model in models
        ]
        lines.append(f"{escape(template)} & {' & '.join(row)} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}"])


def _three(mw: float, ew: float, tse: float) -> str:
    better = max((value for value in (ew, tse) if not math.isnan(value)), default=math.nan)
    styles = ["\\textit{%.2f}", *("\\textbf{%.2f}" if value == better else "%.2f" for value in (ew, tse))]
    return " & ".join(
        "--" if math.isnan(value) else style % value for style, value in zip(styles, (mw, ew, tse), strict=True)
    )


def escape(text: str) -> str:
    """Plain text with the characters that LaTeX would act upon made harmless."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}"}  # [ after \\ is an option
    special |= {character: "\\" + character for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)
