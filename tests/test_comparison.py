"""The index: made from whatever results there are, read in a real browser with the network off."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import MISSING, available, browser
from conftest import require

from lib import charts, results
from lib.comparison import collected, conditions, items, matrix, words
from lib.paths import ROOT

BUNDLED = ["smollm2-135m-instruct", "distilbert-mlm"]
ODD = 'odd"/><script>alert(1)</script>'
NOTEBOOKS = ["00_start_here", "10_scoring_choices", "20_agreement", "21_systematic_or_likely", "22_long_distance",
             "23_coordination_tense", "24_blimp", "30_inference", "31_roles", "32_negation"]  # fmt: skip
TITLES = {name: name for name in NOTEBOOKS}


def put(
    folder: Path, model: str, notebook: str = "20_agreement", right=(1, 1, 0, 1), revision: str = "main", **changed
) -> Path:
    """A result as a notebook writes it: an item for each of ``right`` (1, 0, or NaN), in two conditions."""
    values = np.asarray(right, dtype=float)
    n = len(values)
    condition = ["Simple" if k % 2 else "VP coordination" for k in range(n)]
    table = pd.DataFrame({
        "item": [f"item:{k}" for k in range(n)], "condition": condition, "context": [f"The keys {k // 2}" for k in range(n)],
        "candidate": "are", "alternative": "is", "right": "here", "correct": values,
    })  # fmt: skip
    headline = {
        "metric": "TSE",
        "value": np.nanmean(values),
        "low": np.nanmean(values) / 2,
        "high": 0.99,
        "n": n,
        "coverage": 1.0,
    }
    summary = [{"condition": name, **headline} for name in dict.fromkeys(condition)]
    given = {
        "notebook": notebook, "title": f"{notebook}: a title", "items": table, "summary": pd.DataFrame(summary),
        "headline": headline, "data": {"name": "our own items", "sample": "all", "sha256": {"simple.jsonl": "ab"}},
        "choices": {"start_token": "never"}, "sources": [],
        "provenance": {"parameters": {"model": model, "revision": revision}, "family": "causal", "seconds": 1.0,
                       "date": "2026-11-30T10:00:00+00:00"},
    }  # fmt: skip
    name = results.safe_name(model) + ("" if revision == "main" else f"--{revision}")
    path = results.write(str(folder / name / notebook), **given | changed)
    path.with_suffix(".html").write_text("<p>a page</p>", encoding="utf-8")
    return path


def put_failed(folder: Path, model: str, notebook: str) -> None:
    """What a failed run leaves: the executed notebook with its error, and its page."""
    (folder / results.safe_name(model)).mkdir(exist_ok=True)
    path = folder / results.safe_name(model) / f"{notebook}.ipynb"
    error = {
        "output_type": "error",
        "ename": "LitmusError",
        "evalue": "None of the pairs <b>can</b> be scored.",
        "traceback": [],
    }
    executed = {"cells": [{"cell_type": "code", "outputs": [error]}], "nbformat": 4,
                "metadata": {"papermill": {"parameters": {"model": model}}}}  # fmt: skip
    path.write_text(json.dumps(executed), encoding="utf-8")
    path.with_name(f"{notebook}.FAILED.html").write_text("<p>failed</p>", encoding="utf-8")


def index_of(folder: Path) -> Path:
    """Run the notebook over a folder, as the grid does, and render its page."""
    given = ["-m", "lib.run", "90_compare_models", "--set", f"reports={folder}", "--out", str(folder / "index")]
    for command in (given, ["-m", "lib.report", str(folder / "index.ipynb")]):
        done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder / "index.html"


# ---- what there is


def test_done_failed_and_damaged_are_told_and_none_hides_another(tmp_path):
    put(tmp_path, BUNDLED[0])
    put_failed(tmp_path, BUNDLED[1], "20_agreement")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "20_agreement.json").write_text('{"model": "two", "headl', encoding="utf-8")
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "20_agreement.json").write_text(
        '{"notebook": "20_agreement", "model": "three", "headline": {}, "summary": []}', encoding="utf-8"
    )
    found = collected.collect(tmp_path).set_index("label")
    assert found["state"].to_dict() == {BUNDLED[0]: "done", BUNDLED[1]: "failed", "two": "damaged", "three": "damaged"}
    assert found.loc[BUNDLED[0], "value"] == 0.75 and found.loc[BUNDLED[0], "page"] == f"{BUNDLED[0]}/20_agreement.html"
    assert found.loc[BUNDLED[1], "page"] == f"{BUNDLED[1]}/20_agreement.FAILED.html#failed"
    assert found.loc[BUNDLED[1], "reason"] == "None of the pairs <b>can</b> be scored."
    assert "lacks 'data'" in found.loc["three", "reason"] and "no whole result" in found.loc["two", "reason"]
    assert list(collected.summaries(found.reset_index(), "20_agreement")["model"].unique()) == [BUNDLED[0]]


def test_files_of_others_and_links_to_elsewhere_are_no_results(tmp_path):
    reports, elsewhere = tmp_path / "reports", tmp_path / "elsewhere"
    put(reports, "one")
    put(elsewhere, "two")
    for name, text in (
        ("package.json", "{}"),
        ("notes.ipynb", '{"metadata": {}}'),
        ("half.json", '{"na'),
        ("x.csv", ""),
    ):
        (reports / "one" / name).write_text(text, encoding="utf-8")
    os.mkfifo(reports / "one" / "pipe.json")
    (reports / "linked").symlink_to(elsewhere / "two")
    (reports / "beside").mkdir()
    (reports / "beside" / "24_blimp.json").symlink_to(elsewhere / "two" / "20_agreement.json")
    assert collected.collect(reports)["label"].tolist() == ["one"]
    put(reports, "one", "my_own")  # a notebook of one's own tells by itself what it is
    (reports / "one" / "another.json").write_text('{"na', encoding="utf-8")
    executed = {"metadata": {"papermill": {"parameters": {"model": "one"}}}}
    (reports / "one" / "another.ipynb").write_text(json.dumps(executed), encoding="utf-8")
    found = collected.collect(reports).set_index("notebook")
    assert found["state"].to_dict() == {"20_agreement": "done", "my_own": "done", "another": "damaged"}


def test_what_is_damaged_is_named_with_the_command_that_makes_it_again(tmp_path):
    """A pipe is damaged too, and not waited for."""
    command = "make reports MODELS={} NOTEBOOKS=20_agreement"
    for model, revision in (("org/one", "main"), ("two", "step1"), ("my model", "main")):
        result = put(tmp_path, model, revision=revision)
        parameters = {"model": model} if revision == "main" else {"model": model, "revision": revision}
        executed = {"metadata": {"papermill": {"parameters": parameters}}}
        result.with_suffix(".ipynb").write_text(json.dumps(executed), encoding="utf-8")
    found = compare(tmp_path)
    assert not found.untold and len(found.pairs) == 3
    put(tmp_path, "zero").unlink()
    os.mkfifo(tmp_path / "zero" / "20_agreement.json")
    (tmp_path / "org--one" / "20_agreement.json").write_text("{", encoding="utf-8")
    table = tmp_path / "two--step1" / "20_agreement.parquet"
    table.write_bytes((tmp_path / "zero" / "20_agreement.parquet").read_bytes())  # whole, and of another result
    reasons = collected.collect(tmp_path).set_index("label")["reason"]
    again = f"20_agreement.json is no whole result; make it again: {command.format('org/one')}"
    assert reasons["org--one"] == again and reasons["zero"] == "20_agreement.json is no whole result; run it again"
    (untold,) = compare(tmp_path).untold
    assert untold == (
        "20_agreement: of `two@step1` the table of items 20_agreement.parquet is missing or not as it was written; "
        f"make it again: {command.format('two@step1')}."
    )
    spaced = collected.again(tmp_path / results.safe_name("my model") / "20_agreement.json")
    assert shlex.split(shlex.split(spaced.partition("MODELS=")[2])[0]) == ["my model"]


@pytest.mark.parametrize(
    "part",
    [
        {"summary": {"value": 1}},
        {"headline": []},
        {"data": None},
        {"choices": "never"},
        {"model": 7},
        {"provenance": {}},
    ],
)
def test_a_result_with_a_part_of_another_form_is_damaged(part, tmp_path):
    path = put(tmp_path, "one")
    path.write_text(json.dumps(results.read(path) | part), encoding="utf-8")
    found = collected.collect(tmp_path)
    assert found["state"].tolist() == ["damaged"] and collected.summaries(found, "20_agreement").empty


def test_a_run_without_a_page_links_to_what_there_is(tmp_path):
    put(tmp_path, "one").with_suffix(".html").unlink()
    (tmp_path / "one" / "21_systematic_or_likely.ipynb").write_text("{}", encoding="utf-8")
    found = collected.collect(tmp_path).set_index("notebook")
    assert found["page"].to_dict() == {
        "20_agreement": "one/20_agreement.json", "21_systematic_or_likely": "one/21_systematic_or_likely.ipynb"
    }  # fmt: skip
    assert found["state"].tolist() == ["done", "failed"]
    assert found.loc["21_systematic_or_likely", "reason"] == "it left no results"


def test_two_folders_of_one_model_stand_apart(tmp_path):
    put(tmp_path, "gpt2")
    (tmp_path / "gpt2").rename(tmp_path / "of yesterday")
    put(tmp_path, "gpt2")
    assert sorted(collected.collect(tmp_path)["label"]) == ["gpt2", "of yesterday"]


def test_models_stand_in_the_order_of_the_list_then_by_name_and_revisions_by_number(tmp_path):
    for model in ("zeta", "gpt2", BUNDLED[1], "alpha"):
        put(tmp_path, model)
    for revision in ("step1000", "step20", "step300"):
        put(tmp_path, "alpha", revision=revision)
    put(tmp_path, "/a/very/long/path/of/a/model")
    order = collected.models_in_order(collected.collect(tmp_path))
    folder = results.safe_name("/a/very/long/path/of/a/model")
    assert order.index(BUNDLED[0]) < order.index(BUNDLED[1]) < order.index("gpt2") < order.index("alpha")
    assert order[-6:] == [folder, "alpha@step20", "alpha@step300", "alpha@step1000", "alpha", "zeta"]


def test_a_series_over_revisions_runs_from_the_first_to_the_last(tmp_path):
    put(tmp_path, "gpt2")
    put(tmp_path, "alpha", right=[1, 1, 1, 1])
    for revision, right in (("step1000", [1, 1, 1, 0]), ("step20", [0, 0, 0, 1]), ("step300", [1, 0, 1, 0])):
        put(tmp_path, "alpha", right=right, revision=revision)
    found = collected.collect(tmp_path)
    series = collected.over_revisions(found, TITLES)
    assert list(series["revision"]) == ["step20", "step300", "step1000", "main"]
    assert list(series["value"]) == [0.25, 0.5, 0.75, 1] and set(series["model"]) == {"alpha"}
    assert "from 0.25 to 1.00" in charts.over_revisions(series).to_dict()["description"]
    assert collected.over_revisions(found[found["revision"] == "main"], TITLES).empty


def test_matrix_has_a_row_for_every_diagnostic_and_escapes(tmp_path):
    put(tmp_path, BUNDLED[0])
    put(tmp_path, ODD)
    put_failed(tmp_path, BUNDLED[1], "20_agreement")
    found = collected.collect(tmp_path)
    table = matrix.matrix(
        found, [*BUNDLED, ODD], {"20_agreement": "Agreement & more", "21_systematic_or_likely": "Likely"}
    )
    assert table.count("<td") == 6 and table.count("<tr>") == 3
    assert table.count("not run") == 3 and table.count(">failed<") == 1
    assert "<script>" not in table and "Agreement &amp; more" in table
    assert f'<a href="{BUNDLED[0]}/20_agreement.html">0.75</a><br><small>0.38 to 0.99</small>' in table


def test_titles_are_what_a_notebook_asks_up_to_the_colon(tmp_path):
    put(tmp_path, "one", title="Agreement: does it?")
    found = collected.titles(collected.collect(tmp_path), ["20_agreement", "32_negation", "99_unknown"])
    assert found == {"20_agreement": "Agreement", "32_negation": "Negation", "99_unknown": "99_unknown"}


def test_above_below_and_not_to_be_told_from_guessing(tmp_path):
    for model, low, high in (("a", 0.6, 0.9), ("b", 0.4, 0.6), ("c", 0.1, 0.3)):
        put(tmp_path, model, headline={"metric": "TSE", "value": (low + high) / 2, "low": low, "high": high, "n": 4})
    said = words.against_chance(collected.collect(tmp_path), ["a", "b", "c"], {"20_agreement": "Agreement"})
    assert said == (
        "* **Agreement**: `a` is above what guessing gets; `c` is below what guessing gets; "
        "`b` is not to be told from guessing."
    )


# ---- models on the same items


def compare(folder: Path, cluster: str = "context") -> items.Compared:
    found = collected.collect(folder)
    return items.compare(found, collected.models_in_order(found), cluster)


def test_two_models_on_the_same_items_by_hand(tmp_path):
    """20 items; b is right where a is wrong in none, a alone in 12: p = 2 / 2^12."""
    put(tmp_path, "a", right=[1] * 12 + [1] * 4 + [0] * 4)
    put(tmp_path, "b", right=[0] * 12 + [1] * 4 + [0] * 4)
    found = compare(tmp_path)
    [row] = found.pairs.itertuples()
    assert (row.first, row.second, row.notebook, row.judgement) == ("a", "b", "20_agreement", "TSE")
    assert (row.n, row.clusters, row.only_first, row.only_second) == (20, 10, 12, 0)
    assert row.p_value == pytest.approx(2 / 2**12) == row.p_holm and row.difference == 0.6 and row.beyond_chance
    assert found.untold == []
    assert list(found.items["a"]) == [1] * 16 + [0] * 4 and found.items["sentence"][0] == "The keys 0 are here"
    said = words.differences(found.pairs, {"20_agreement": "Agreement"})
    assert "1 of 1 comparison shows a difference; the largest: `a` over `b` by 0.60" in said
    assert "With 20 items a difference under 0.30 cannot be seen" in said
    assert compare(tmp_path, "condition").pairs["clusters"].tolist() == [2]
    assert compare(tmp_path, "item").pairs["clusters"].tolist() == [20]


def test_all_comparisons_of_the_page_are_one_family(tmp_path):
    for notebook in ("20_agreement", "22_long_distance", "24_blimp"):
        put(tmp_path, "a", notebook, right=[1] * 12)
        put(tmp_path, "b", notebook, right=[0] * 12)
    found = compare(tmp_path).pairs
    assert len(found) == 3 and found["p_holm"].tolist() == pytest.approx([3 * 2 / 2**12] * 3)


DATA = {"name": "our own items", "sample": "all", "sha256": {"simple.jsonl": "ab"}}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"data": DATA | {"sha256": {"simple.jsonl": "cd"}}}, "the data is"),
        ({"data": DATA | {"sample": "6 pairs per construction, drawn with seed 0"}}, "the sample is"),
        ({"choices": {"start_token": "always"}}, "`start_token` is *never* for `a`, `c`; *always* for `b`"),
    ],
)
def test_other_items_and_other_choices_are_not_compared_and_the_page_says_so(changed, told, tmp_path):
    put(tmp_path, "a", right=[1] * 12)
    put(tmp_path, "b", right=[0] * 12, **changed)
    put(tmp_path, "c", right=[0] * 12)
    found = compare(tmp_path)
    assert list(zip(found.pairs["first"], found.pairs["second"], strict=True)) == [("a", "c")]
    assert len(found.untold) == 1 and told in found.untold[0] and "`b`" in found.untold[0]


def test_models_without_a_common_item_are_told_in_one_sentence(tmp_path):
    """As contexts that end at the gap (a, c) are others than those that go on behind it (b); d scored nothing."""
    left, both = ([f"The keys {n}{rest}" for n in range(12)] for rest in ("", " here"))
    for model, items_of in (("a", left), ("b", both), ("c", left), ("d", left)):
        table = pd.DataFrame({"item": items_of, "condition": "simple", "context": items_of, "correct": 1.0})
        put(tmp_path, model, items=table if model != "d" else table.assign(correct=np.nan))
    found = compare(tmp_path)
    assert list(zip(found.pairs["first"], found.pairs["second"], strict=True)) == [("a", "c")]
    [told] = found.untold
    assert told == (
        "20_agreement (TSE): none of the items scored with `b` was scored with `a`, `c`. They are not compared."
    )


def test_what_a_family_has_no_choice_of_and_precision_part_no_models(tmp_path):
    put(tmp_path, "a", right=[1] * 12, choices={"mode": "target-word", "start_token": "never", "dtype": "bfloat16"})
    put(tmp_path, "b", right=[0] * 12, choices={"mode": "masked-target", "start_token": "", "dtype": "float32"})
    found = compare(tmp_path)
    assert len(found.pairs) == 1 and found.untold == []


def test_a_table_of_items_that_is_missing_broken_or_without_judgement_is_told(tmp_path):
    put(tmp_path, "a")
    put(tmp_path, "b").with_suffix(".parquet").unlink()
    put(tmp_path, "c").with_suffix(".parquet").write_bytes(b"PAR1 and no more")
    put(tmp_path, "d", items=pd.DataFrame({"item": ["1"], "condition": ["x"]}))
    put(tmp_path, "e", items=pd.DataFrame({"item": ["1", "1"], "condition": ["x", "x"], "correct": [1.0, 0.0]}))
    found = compare(tmp_path)
    assert found.pairs.empty and list(found.items.columns)[-1] == "a"
    assert [sentence.split("`")[1] for sentence in found.untold] == ["b", "c", "d", "e"]
    assert (
        "the table of items 20_agreement.parquet is missing or not as it was written; run it again" in found.untold[1]
        and "do not say which" in found.untold[2]
        and "tell them apart" in found.untold[3]
    )


def test_only_rows_that_were_judged_count_each_judgement_for_itself(tmp_path):
    table = pd.DataFrame({
        "item": list("0011"), "condition": list("tftf"), "context": "A robin is", "candidate": ["bird", "tree"] * 2,
        "judgement": ["affirmative", "", "negative", ""], "correct": [1.0, np.nan, 0.0, np.nan], "alternative": "tree",
    })  # fmt: skip
    for model in ("a", "b"):
        put(tmp_path, model, "32_negation", items=table)
    found = compare(tmp_path)
    assert list(found.pairs["judgement"]) == ["affirmative", "negative"] and list(found.pairs["n"]) == [1, 1]
    assert list(words.nobody_right(found.items, ["a", "b"])["item"]) == ["1"]


def test_scores_of_contexts_are_compared_by_what_the_model_sees(tmp_path):
    """Two contexts are seen by both models, under other numbers; the second metric is not the headline's."""
    for model, order, shift in (("a", [0, 1, 2], 0.0), ("b", [1, 0, 3], 0.1)):
        table = pd.DataFrame({
            "item": [f"Simple:{k}" for k in range(3)] * 2, "condition": "Simple", "text": [f"The keys {k}" for k in order] * 2,
            "metric": ["MW"] * 3 + ["EW"] * 3, "score": [0.5 + shift + k / 100 for k in order] + [0.1] * 3,
        })  # fmt: skip
        put(tmp_path, model, "21_systematic_or_likely", items=table, headline={"metric": "MW", "value": 0.5})
    found = compare(tmp_path, "item")
    [row] = found.pairs.itertuples()
    assert row.n == 2 and row.difference == pytest.approx(-0.1) and found.items.empty
    assert "scores of 2 contexts" in words.differences(found.pairs, TITLES)


def test_items_that_nobody_gets_right_need_two_models_that_tried(tmp_path):
    put(tmp_path, "a", right=[0, 0, 1, np.nan, 0])
    put(tmp_path, "b", right=[0, 1, 1, np.nan, np.nan])
    found = compare(tmp_path).items
    assert list(words.nobody_right(found, ["a", "b"])["item"]) == ["item:0"]
    assert "1 of 3 items." in words.how_many_nobody(found, ["a", "b"], TITLES)
    table = words.item_table(found, ["a", "b", "not here"], TITLES, each=3)
    assert table[["a", "b"]].to_numpy().tolist() == [["✗", "✓"], ["✗", "✗"], ["✗", "–"]]
    assert list(table["instead of"]) == ["is"] * 3


# ---- conditions


def test_published_values_stand_beside_the_conditions_that_are_here(tmp_path):
    put(tmp_path, "a")
    table = conditions.by_condition(collected.collect(tmp_path), ["a"], ["20_agreement", "22_long_distance"])
    assert set(table["condition"]) == {"Simple", "VP coordination"}
    simple = table[table["condition"] == "Simple"].set_index("who")
    assert simple.loc["gpt2-xl (published)", "value"] == 1.0 and simple.loc["a", "kind"] == "model"
    assert table["who"].iloc[0] == "a"
    assert conditions.by_condition(collected.collect(tmp_path), ["a"], ["21_systematic_or_likely"]).empty
    drawn = matrix.shaded(table[table["notebook"] == "20_agreement"])
    assert drawn.count("<tr>") == 3 and drawn.count('scope="col"') == 6
    assert '<th scope="row">Simple</th><td style="background-color:' in drawn and ">1.00</td>" in drawn


def test_shades_run_from_pale_to_deep_with_ink_to_be_read():
    table = pd.DataFrame({"condition": ["x", "x", "y"], "who": ["a", "<b>", "a"], "value": [0.0, 1.0, 0.6]})
    drawn = matrix.shaded(table)
    assert '<td style="background-color:#f7fbff;color:#000000">0.00</td>' in drawn
    assert '<td style="background-color:#08306b;color:#ffffff">1.00</td>' in drawn
    assert "<td></td>" in drawn and "&lt;b&gt;" in drawn


def test_every_diagnostic_is_in_one_picture():
    assert conditions.families(["00_start_here", "20_agreement", "22_long_distance", "99_own"]) == {
        "Agreement": ["20_agreement", "22_long_distance"], conditions.OTHERS: ["00_start_here", "99_own"]
    }  # fmt: skip


def test_the_mean_of_blimp_and_people_stand_beside_the_headline():
    found = conditions.published_headlines(["24_blimp", "30_inference", "20_agreement"]).set_index(["notebook", "who"])
    assert found.loc[("24_blimp", "people"), "kind"] == "people"
    assert found.loc[("24_blimp", "people"), "value"] == pytest.approx(0.8855, abs=1e-3)
    assert found.loc[("30_inference", "bert-large-uncased (published)"), "value"] == 0.794


def test_the_picture_of_headlines_says_every_value_in_words():
    table = pd.DataFrame({
        "diagnostic": "Roles", "who": ["gpt2", "people"], "kind": ["model", "people"], "value": [0.5, 0.9],
        "low": [0.4, np.nan], "high": [0.6, np.nan], "chance": 0.5,
    })  # fmt: skip
    drawn = charts.beside_published(table).to_dict()
    assert "Roles: gpt2 0.50. Roles: people 0.90." in drawn["description"] and "Hollow diamond" in drawn["title"]


# ---- the page


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Three models: one with results, one whose notebook failed, one with an odd name; and the index made of them."""
    folder = tmp_path_factory.mktemp("reports with a space")
    for model, right in ((BUNDLED[0], [1] * 18 + [0] * 6), (ODD, [0] * 12 + [1] * 6 + [0] * 6)):
        for notebook in ("20_agreement", "32_negation"):
            put(folder, model, notebook, right)
    put_failed(folder, BUNDLED[1], "20_agreement")
    index_of(folder)
    return folder


def test_no_results_at_all_is_an_index_too(tmp_path):
    assert "No results yet" in index_of(tmp_path).read_text(encoding="utf-8")


def test_the_index_leaves_every_item_and_every_comparison_in_its_files(reports):
    table = pd.read_parquet(reports / "index.parquet")
    assert len(table) == 48 and f"correct ({BUNDLED[0]})" in table
    pairs = json.loads((reports / "index.json").read_text(encoding="utf-8"))["summary"]
    assert [row["only_first"] for row in pairs] == [12, 12] and pairs[0]["beyond_chance"] is True


@pytest.mark.browser
def test_index_opens_offline_with_charts_drawn(reports, tmp_path):
    require(available(), MISSING)
    with browser(tmp_path) as page:
        page.open(reports / "index.html")
        page.wait("document.querySelectorAll('.chart svg, .chart canvas').length >= 2")
        cells = page.script("return [...document.querySelectorAll('table.matrix td')].map(cell => cell.innerText)")
        assert any("failed" in cell for cell in cells) and any("not run" in cell for cell in cells)
        links = page.script("return [...document.querySelectorAll('table.matrix a')].map(a => a.getAttribute('href'))")
        assert f"{BUNDLED[0]}/20_agreement.html" in links and f"{BUNDLED[1]}/20_agreement.FAILED.html#failed" in links
        text = page.script("return document.querySelector('main').innerText")
        assert "1 of 1 comparison shows a difference" in text
        assert "None of the pairs <b>can</b> be scored." in text and "✓" in text
        assert page.outside() == [] and page.errors() == []


def test_twenty_models_and_twelve_notebooks_make_one_page_in_time(tmp_path):
    """240 results of 200 items: every cell within a minute (the runner's own limit), the page under 2.5 MB."""
    random = np.random.default_rng(0)
    notebooks = [*(name for name in NOTEBOOKS if name not in items.ONE_OF_SEVERAL), "40_more", "41_more", "42_more"]
    for number in range(20):
        for notebook in notebooks:
            put(tmp_path, f"model-{number}", notebook, random.random(200) < 0.5 + number / 50)
    words_ = ["90_compare_models", "--set", f"reports={tmp_path}", "--timeout", "60", "--out", str(tmp_path / "index")]
    done = subprocess.run([sys.executable, "-m", "lib.run", *words_], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "-m", "lib.report", str(tmp_path / "index.ipynb")], cwd=ROOT, check=True)
    assert (tmp_path / "index.html").stat().st_size < 2_500_000
    pairs = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))["summary"]
    assert len(pairs) == 12 * 190
