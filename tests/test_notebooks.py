"""Every notebook as people run it: as a plain script for one family of model, and through the runner for another."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pages
import pandas as pd
import pytest
from browser import MISSING, available, browser
from conftest import require

from lib.cloze import recorded
from lib.cloze.answers import ask
from lib.cloze.items import item_file, read_negation
from lib.comparison.items import judged
from lib.models import bundled
from lib.paths import NOTEBOOKS, REPORTS, ROOT
from lib.report import downloads
from lib.report.page import render

NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))
ONCE = ("90_compare_models", "95_bundled_models")  # not for each model
FOR_EACH_MODEL = [name for name in NAMES if name not in ONCE]
SMALL: dict[str, dict[str, int]] = {
    "10_scoring_choices": {"limit": 2}, "20_agreement": {"limit": 6}, "21_systematic_or_likely": {"limit": 6},
    "22_long_distance": {"limit": 2}, "23_coordination_tense": {"limit": 2}, "24_blimp": {"limit": 2},
    "30_inference": {"draws": 2}, "95_bundled_models": {"articles": 150, "steps": 2, "recurrent_steps": 4},
}  # fmt: skip
SAMPLED = {
    "10_scoring_choices": "2 pairs per paradigm, drawn with seed 0",
    "20_agreement": "6 pairs per construction, drawn with seed 0",
    "21_systematic_or_likely": "6 pairs per construction, drawn with seed 0",
    "22_long_distance": "2 pairs per pattern and kind, drawn with seed 0",
    "23_coordination_tense": "2 pairs per pattern, drawn with seed 0",
    "24_blimp": "2 pairs per paradigm, drawn with seed 0",
}
OWN_ITEMS = {**os.environ, "LITMUS_DATASETS": ""}


def run(*words, env=OWN_ITEMS):
    return subprocess.run([sys.executable, *map(str, words)], cwd=ROOT, env=env, capture_output=True, text=True)


def with_parameters(name: str, **more: str) -> str:
    """A notebook's source with small numbers in its parameters, so that it ends soon."""
    source = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    for parameter, value in {**SMALL.get(name, {}), **more}.items():
        line = f"{parameter} = {value!r}"
        source, found = re.subn(rf"^{parameter} = (\d+|\".*?\")", lambda _, line=line: line, source, flags=re.MULTILINE)
        assert found == 1
    return source


def says_all(name: str, model: str, family: str, result: dict, items: pd.DataFrame) -> None:
    """What every result must say, whatever the notebook."""
    assert (result["model"], result["notebook"], result["family"]) == (model, name, family)
    headline = result["headline"]
    assert 0 <= headline["low"] <= headline["value"] <= headline["high"] <= 1
    assert 0 < headline["coverage"] <= 1
    wanted = {"model", "revision", "diagnostic", "item", "condition", "context", "scorable", "start_token", "dtype"}
    assert wanted <= set(items.columns)
    assert set(items["model"]) == {model}
    assert result["data"]["sample"] == SAMPLED.get(name, "all")


def as_a_script(name: str, folder: Path, **more: str) -> None:
    script = folder / f"{name}.py"
    script.write_text(with_parameters(name, out=str(folder / "result"), **more), encoding="utf-8")
    done = run(script)
    assert done.returncode == 0, done.stderr[-2000:]


def written(folder: Path) -> tuple[dict, pd.DataFrame]:
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result, pd.read_parquet(folder / "result.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_runs_as_a_plain_script_with_the_causal_model(name, tmp_path):
    as_a_script(name, tmp_path)
    if name not in ONCE:
        says_all(name, "smollm2-135m-instruct", "causal", *written(tmp_path))


@pytest.mark.parametrize("name", FOR_EACH_MODEL)
def test_runs_as_a_plain_script_with_the_recurrent_model(name, tmp_path):
    as_a_script(name, tmp_path, model="wiki-lstm")
    result, items = written(tmp_path)
    says_all(name, "wiki-lstm", "recurrent", result, items)
    metric = result["headline"]["metric"]
    row = SimpleNamespace(items=tmp_path / "result.parquet", notebook=name, metric=metric, record=result)
    assert len(judged(row)), "the index cannot compare models on these items"


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> Path:
    """What the kernels of this file leave, as in ``reports/``."""
    return tmp_path_factory.mktemp("reports")


def in_a_kernel(name: str, reports: Path) -> Path:
    """The executed notebook, run once: with the masked model where it is run for each."""
    each, index = name in FOR_EACH_MODEL, name == "90_compare_models"
    out = reports / "index" if index else reports / "distilbert-mlm" / name
    if not out.with_suffix(".ipynb").exists():
        settings = [word for key, value in SMALL.get(name, {}).items() for word in ("--set", f"{key}={value}")]
        settings += ["--model", "distilbert-mlm"] if each else ["--set", f"reports={reports}"] if index else []
        done = run("-m", "lib.run", name, *settings, "--out", out)
        assert done.returncode == 0, done.stderr[-2000:]
    return out.with_suffix(".ipynb")


@pytest.mark.parametrize("name", FOR_EACH_MODEL)
def test_runs_in_a_kernel_with_the_masked_model(name, reports):
    out = in_a_kernel(name, reports)
    result = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    says_all(name, "distilbert-mlm", "masked", result, pd.read_parquet(out.with_suffix(".parquet")))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    require(available(), MISSING)
    with browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.mark.browser
@pytest.mark.parametrize("name", [*FOR_EACH_MODEL, *ONCE])
def test_its_page_is_whole_in_a_browser(name, reports, chromium):
    """Offline: charts, folding, filters, downloads, phone, dark, paper, axe-core; ``90`` is the index of the others."""
    notebook = in_a_kernel(name, reports)
    files = [kind for kind in downloads.KINDS if notebook.with_suffix(f".{kind}").exists()]
    pages.check(chromium, render(notebook), tuple(files))


def test_published_items_are_used_when_they_are_there_and_the_page_says_so(datasets, tmp_path):
    env = {**os.environ, "LITMUS_DATASETS": str(datasets)}
    words = ["-m", "lib.run", "20_agreement", "--model", "distilbert-mlm", "--set", "limit=3", "--out", tmp_path / "r"]
    done = run(*words, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert result["data"]["name"] == "published: refining-tse"
    assert len(result["data"]["sha256"]) == 19
    assert "simple_agrmt_all.jsonl" in result["data"]["sha256"]


def test_recorded_scores_run_through_the_same_notebooks(masked, tmp_path):
    """What was scored elsewhere, here by the bundled model, gives the same numbers as a table of scores."""
    items = pd.concat([read_negation(item_file(name)) for name in ("simple negation", "natural negation")])
    recorded.write(ask(masked, items.reset_index(drop=True))[0], tmp_path / "elsewhere")
    headlines = []
    for model in ("distilbert-mlm", tmp_path / "elsewhere"):
        done = run("-m", "lib.run", "32_negation", "--model", model, "--out", tmp_path / "result")
        assert done.returncode == 0, done.stderr[-2000:]
        headlines.append(json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["headline"])
    assert headlines[0] == headlines[1]


NEVER_ASKED_TWICE = """
from lib.models.masked import MaskedModel
fill_gaps = MaskedModel.fill
def fill_the_example_only(self, gaps, start_token="never"):
    assert len(gaps) <= 1, "the model was asked again"
    return fill_gaps(self, gaps, start_token)
MaskedModel.fill = fill_the_example_only
"""


def test_changed_prose_runs_again_without_scoring_again(tmp_path):
    """The one gap worked by hand goes to the model; all else must come from the score store."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "models").symlink_to(bundled.folder("distilbert-mlm").parent)
    env = {**OWN_ITEMS, "LITMUS_CACHE": str(tmp_path / "cache")}
    source = (NOTEBOOKS / "20_agreement.py").read_text(encoding="utf-8")
    source = source.replace('"smollm2-135m-instruct"', '"distilbert-mlm"').replace("limit = 320 ", "limit = 4 ")
    script = tmp_path / "notebook.py"
    script.write_text(source, encoding="utf-8")
    assert run(script, env=env).returncode == 0
    changed = source.replace("Will a long sentence", "Would a long sentence")
    script.write_text(changed.replace("charts.use_theme()", NEVER_ASKED_TWICE), encoding="utf-8")
    done = run(script, env=env)
    assert done.returncode == 0, done.stderr[-2000:]


def test_nothing_is_written_beside_the_notebooks():
    tracked = subprocess.run(["git", "ls-files", "notebooks"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert all(name.endswith((".py", ".ipynb", ".md")) for name in tracked)
    assert not [path for path in NOTEBOOKS.glob("*") if path.suffix in {".json", ".parquet", ".csv", ".html"}]
    assert REPORTS.is_dir()
