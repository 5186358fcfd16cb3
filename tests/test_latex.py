"""The paper's table as LaTeX."""

import pandas as pd
import pytest

from lib.latex import agreement_table, escape


def table(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["template", "model", "metric", "value"])


def cells(rows: list[tuple]) -> str:
    """The line of the only template, without its name."""
    [line] = [line for line in agreement_table(table(rows), "").splitlines() if line.startswith("Simple &")]
    return line.removeprefix("Simple & ").removesuffix(" \\\\")


def test_the_whole_table_by_hand():
    rows = [
        ("Simple", "bert_base", "MW", 0.987), ("Simple", "bert_base", "EW", 0.94), ("Simple", "bert_base", "TSE", 1),
        ("VP coordination", "bert_base", "EW", 0.9), ("Simple", "gpt2", "MW", 0.5), ("Simple", "gpt2", "TSE", 0.25),
    ]  # fmt: skip
    assert agreement_table(table(rows), "Scores & 95 % of them") == "\n".join([
        r"\begin{table}",
        r"\caption{Scores \& 95 \% of them}",
        r"\begin{tabular}{lrrrrrr}",
        r"\toprule",
        r"Template & \multicolumn{3}{c}{bert\_base} & \multicolumn{3}{c}{gpt2} \\",
        r" & MW & EW & TSE & MW & EW & TSE \\",
        r"\midrule",
        r"Simple & \textit{0.99} & 0.94 & \textbf{1.00} & \textit{0.50} & -- & \textbf{0.25} \\",
        r"VP coordination & -- & \textbf{0.90} & -- & -- & -- & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("ew", "tse", "expected"),
    [
        (0.5, 0.75, r"0.50 & \textbf{0.75}"),
        (0.75, 0.5, r"\textbf{0.75} & 0.50"),
        (0.5, 0.5, r"\textbf{0.50} & \textbf{0.50}"),
        (0.899, 0.901, r"0.90 & \textbf{0.90}"),  # what is better is decided before rounding
        (float("nan"), 0.5, r"-- & \textbf{0.50}"),
        (0.0, float("nan"), r"\textbf{0.00} & --"),
        (float("nan"), float("nan"), "-- & --"),
    ],
)
def test_the_better_of_ew_and_tse_is_bold_and_a_missing_one_is_a_dash(ew, tse, expected):
    rows = [("Simple", "m", "MW", 0.999), ("Simple", "m", "EW", ew), ("Simple", "m", "TSE", tse)]
    assert cells(rows) == rf"\textit{{1.00}} & {expected}"


def test_text_does_nothing_in_latex():
    assert escape("R&D 5% $1 #1 a_b {x}") == r"R\&D 5\% \$1 \#1 a\_b \{x\}"
    assert escape(r"\input~^<|>") == (
        r"\textbackslash{}input\textasciitilde{}\textasciicircum{}\textless{}\textbar{}\textgreater{}"
    )
    assert escape("plain, (that) – é") == "plain, (that) – é"


def test_a_row_that_opens_with_a_bracket_is_no_option_of_the_line_before():
    lines = agreement_table(table([("a", "m", "MW", 1), ("[2cm]", "m", "MW", 1)]), "").splitlines()
    assert any(line.startswith("{[}2cm] & ") for line in lines)
