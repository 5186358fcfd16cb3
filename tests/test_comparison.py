"""The index: made from whatever results there are, read in a real browser with the network off."""

import json
import subprocess
import sys

import pytest
from browser import MISSING, available, browser
from conftest import require

from lib import comparison
from lib.paths import ROOT

MODELS = ["smollm2-135m-instruct", "distilbert-mlm", 'odd"/><script>alert(1)</script>']


def result(model: str, notebook: str, value: float) -> dict:
    summary = {"condition": "Simple", "metric": "TSE", "n": 10, "value": value, "low": value - 0.1, "high": value + 0.05,
               "coverage": 1.0}  # fmt: skip
    return {
        "notebook": notebook, "title": notebook, "model": model, "revision": "main", "family": "causal", "choices": {},
        "data": {"name": "our own items", "sample": "all", "sha256": {}},
        "headline": {key: summary[key] for key in ("metric", "value", "low", "high", "n", "coverage")},
        "summary": [summary, {**summary, "metric": "EW", "side": "top", "cutoff": 1.0}], "sources": [],
        "provenance": {"date": "2026-11-30T10:00:00+00:00", "seconds": 1.0, "parameters": {}, "versions": {}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Three models: one with results, one whose notebook failed, one with an odd name; and the index made of them."""
    folder = tmp_path_factory.mktemp("reports with a space")
    for model, name, value in ((MODELS[0], "one", 0.9), (MODELS[2], "three", 0.6)):
        (folder / name).mkdir()
        for notebook in ("20_agreement", "21_systematic_or_likely"):
            text = json.dumps(result(model, notebook, value))
            (folder / name / f"{notebook}.json").write_text(text, encoding="utf-8")
            (folder / name / f"{notebook}.html").write_text("<p>a page</p>", encoding="utf-8")
    (folder / "two").mkdir()
    (folder / "two" / "20_agreement.FAILED.html").write_text("<p>failed</p>", encoding="utf-8")
    executed = {"cells": [], "metadata": {"papermill": {"parameters": {"model": MODELS[1]}}}, "nbformat": 4}
    (folder / "two" / "20_agreement.ipynb").write_text(json.dumps(executed), encoding="utf-8")
    words = ["-m", "lib.run", "90_compare_models", "--set", f"reports={folder}", "--out", str(folder / "index")]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "lib.report", str(folder / "index.ipynb")], cwd=ROOT, check=True)
    return folder


def test_collect_knows_done_and_failed(reports):
    found = comparison.collect(reports).set_index(["model", "notebook"])
    assert found.loc[(MODELS[0], "20_agreement"), "state"] == "done"
    assert found.loc[(MODELS[0], "20_agreement"), "value"] == 0.9
    assert found.loc[(MODELS[1], "20_agreement"), "state"] == "failed"
    assert found.loc[(MODELS[1], "20_agreement"), "page"] == "two/20_agreement.FAILED.html#failed"


def test_matrix_has_a_cell_for_every_model_and_notebook_and_escapes(reports):
    table = comparison.matrix(comparison.collect(reports), MODELS, ["20_agreement", "21_systematic_or_likely"])
    assert table.count("<td") == 6
    assert table.count("not run") == 1 and table.count(">failed<") == 1
    assert "<script>" not in table
    assert '<small>TSE</small><br><a href="one/20_agreement.html">0.900</a> [0.80, 0.95]' in table


def test_a_run_without_a_page_links_to_what_there_is(tmp_path):
    """Neither a finished run nor a failed one is hidden because nobody rendered it."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "20_agreement.json").write_text(
        json.dumps(result("one", "20_agreement", 0.7)), encoding="utf-8"
    )
    (tmp_path / "one" / "21_systematic_or_likely.ipynb").write_text("{}", encoding="utf-8")
    found = comparison.collect(tmp_path).set_index("notebook")
    assert found["page"].to_dict() == {
        "20_agreement": "one/20_agreement.json", "21_systematic_or_likely": "one/21_systematic_or_likely.ipynb"
    }  # fmt: skip
    assert found["state"].tolist() == ["done", "failed"]


def test_a_damaged_result_is_shown_as_failed_and_hides_nothing(tmp_path):
    for name, text in (("one", json.dumps(result("one", "20_agreement", 0.7))), ("two", '{"model": "two", "headl')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "20_agreement.json").write_text(text, encoding="utf-8")
    found = comparison.collect(tmp_path).set_index("model")
    assert found["state"].to_dict() == {"one": "done", "two": "failed"}
    assert comparison.summaries(tmp_path, "20_agreement")["model"].unique().tolist() == ["one"]


def test_no_results_at_all_is_an_index_too(tmp_path):
    words = ["-m", "lib.run", "90_compare_models", "--set", f"reports={tmp_path}", "--out", str(tmp_path / "index")]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert comparison.collect(tmp_path).empty


@pytest.mark.browser
def test_index_opens_offline_with_charts_drawn(reports, tmp_path):
    require(available(), MISSING)
    with browser(tmp_path) as page:
        page.open(reports / "index.html")
        page.wait("document.querySelectorAll('.chart svg, .chart canvas').length >= 2")
        cells = page.script("return [...document.querySelectorAll('table.matrix td')].map(cell => cell.innerText)")
        assert any("failed" in cell for cell in cells) and any("not run" in cell for cell in cells)
        links = page.script("return [...document.querySelectorAll('table.matrix a')].map(a => a.getAttribute('href'))")
        assert "one/20_agreement.html" in links and "two/20_agreement.FAILED.html#failed" in links
        assert page.outside() == [] and page.errors() == []
