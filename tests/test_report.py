"""Pages: real notebooks from real kernels, opened from a file in a real browser."""

import base64
import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
import pages
import pandas as pd
import papermill
import pytest
from browser import MISSING, Browser, available, browser
from bs4 import BeautifulSoup
from conftest import require
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from traitlets.config import Config

from lib import charts
from lib.errors import LitmusError
from lib.paths import REPORTS, ROOT
from lib.report.downloads import LIMIT
from lib.report.head import bibtex
from lib.report.page import render
from lib.report.safe import clean
from lib.report.words import TEMPLATE, plain

SOURCE = """# %% [markdown]
# # Does the verb agree?
#
# *A question in everyday words.*

# %% tags=["parameters"]
model = "smollm2-135m-instruct"
limit = 0  # 0 = all

# %% tags=["hide-input"]
import pandas as pd
from IPython.display import Markdown
from lib import charts
charts.use_theme()

# %% [markdown]
# ## One example
#
# See [the next one](21_systematic_or_likely.ipynb), [below](#A-chart) and [the paper](https://example.org/paper).
#
# | control | share |
# |---|---|
# | shuffled | 12 |

# %%
table = pd.DataFrame({"condition": ["Simple", "Across"], "value": [.9, .6], "low": [.8, .5], "high": [1., .7], "n": 10})
table

# %% [markdown]
# ## A chart

# %%
charts.intervals(table)

# %%
Markdown("A **computed** sentence.")

# %% tags=["hide-output"]
print("a long list")

# %% tags=["remove-cell"]
print("nobody needs this")

# %% [markdown]
# ## A chart

# %%
charts.margins(pd.DataFrame({"condition": "Simple", "margin": [-1., .5, 2.]}))
"""
RECORD = {
    "notebook": "20_agreement",
    "title": "Does the verb agree?",
    "model": "smollm2-135m-instruct",
    "revision": "main",
    "family": "causal",
    "choices": {"start_token": "never", "dtype": "float32"},
    "data": {
        "name": "our own items",
        "sample": "30 pairs per construction, seed 0",
        "sha256": {"simple.jsonl": "9f" * 32},
    },
    "headline": {"metric": "TSE", "value": 0.9123, "low": 0.88, "high": 0.94, "n": 1234, "coverage": 0.972},
    "summary": [],
    "sources": ["newman2021", "no-such-source", "marvin2018"],
    "provenance": {
        "date": "2026-11-30T16:42:10+00:00",
        "seconds": 133.4,
        "git_commit": "c8c032f",
        "git_dirty": True,
        "versions": {"python": "3.11.2", "torch": "2.13.0", "pandas": "3.0.1"},
        "parameters": {"model": "smollm2-135m-instruct", "limit": 30},
        "overridden": ["limit"],
    },
}


def execute(text: str, path: Path, parameters: dict | None = None) -> Path:
    """Run a notebook as lib.run does: in a real kernel, keeping what a failed one has done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = Config({"KernelManager": {"transport": "ipc"}})
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with contextlib.suppress(papermill.PapermillExecutionError):
        papermill.execute_notebook(notebook, path, parameters, kernel_name="python3", progress_bar=False, config=config)
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "smollm2-135m-instruct"
    path = execute(SOURCE, folder / "20_agreement.ipynb", {"limit": 30})
    path.with_suffix(".json").write_text(json.dumps(RECORD))
    path.with_suffix(".csv").write_text("item\n1\n")
    return render(path)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "smollm2-135m-instruct"
    broken = SOURCE.replace("charts.intervals(table)", 'raise ValueError("<img src=x onerror=hacked=1>\\nlast line")')
    path = execute(broken, folder / "20_agreement.ipynb", {"limit": 30})
    path.with_suffix(".json").write_text(json.dumps(RECORD))  # left by an earlier run: says nothing about this one
    path.with_suffix(".html").write_text("left by an earlier run")
    return render(path)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    require(available(), MISSING)
    with browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def opened(chromium: Browser, page: Path) -> Browser:
    chromium.open(page)
    chromium.wait("document.querySelectorAll('figure.chart.drawn, figure.chart.undrawn').length == 2")
    return chromium


def notebook_page(folder: Path, cells: list, record: dict | None = None, name: str = "x", **metadata) -> Path:
    """A page of cells written by hand, for what a kernel would not give."""
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    if record is not None:
        path.with_suffix(".json").write_text(json.dumps(record))
    return render(path)


def shown(*data: dict) -> list:
    return [new_code_cell("1", outputs=[new_output("display_data", data=entry)]) for entry in data]


# ---- the page as a file


def test_case_83_a_page_refers_to_nothing_outside_and_is_not_heavy(page: Path):
    text = page.read_text()
    markup = re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert re.findall(r"<(?:link|iframe|object|embed|base)\b[^>]*>", markup) == ['<link rel="icon" href="data:,">']
    assert all(source.startswith("data:image/") for source in re.findall(r'src="([^"]*)"', markup))
    assert "@import" not in TEMPLATE.joinpath("style.css").read_text()
    assert "url(" not in TEMPLATE.joinpath("style.css").read_text()
    assert len(text.encode()) < 1_200_000
    assert text.count("vegaEmbed=") <= 1


def test_a_page_without_charts_carries_no_chart_library(tmp_path: Path):
    path = notebook_page(tmp_path, [new_markdown_cell("# Only words")])
    assert path.stat().st_size < 30_000


def test_the_head_tells_what_the_record_says(page: Path):
    text = page.read_text().replace("\u00a0", " ")
    for words in (
        "smollm2-135m-instruct (causal)",
        "<span>TSE</span> <strong>0.91</strong>",
        "Guessing gives 0.5.",
        "95 % interval 0.88 to 0.94; 1,234 items; 97 % could be scored.",
        "our own items",
        "30 November 2026, 16:42 UTC",
        "2 min 13 s",
        "python 3.11.2, torch 2.13.0",
        "A sample, not everything: 30 pairs per construction, seed 0.",
        "9f" * 32,
    ):
        assert words in text
    assert '<tr class="set"><th scope="row">limit</th><td><code>30</code></td><td>set for this run</td>' in text
    assert text.index("@inproceedings{newman2021") < text.index("@inproceedings{marvin2018")
    assert 'href="../index.html"' in text


def test_all_items_are_no_sample(tmp_path: Path):
    record = RECORD | {"data": {"name": "our own items", "sample": "all", "sha256": {}}}
    record["provenance"] = RECORD["provenance"] | {"parameters": {"limit": 0}, "overridden": []}
    text = notebook_page(tmp_path, [], record).read_text()
    assert 'class="banner' not in text
    assert '<tr class="set">' not in text


def test_case_80_the_cell_that_papermill_adds_is_shown_as_the_parameters_cell_is(page: Path):
    labels = re.findall(
        r'<details class="code"( open)?>\s*<summary[^>]*>\s*(parameters[ \w]*?)\s*</summary>', page.read_text()
    )
    assert labels == [("", "parameters"), ("", "parameters of this run")]


def test_without_a_record_the_head_tells_what_papermill_left(tmp_path: Path):
    parameters = new_code_cell('model = "gpt2"\nlimit = 0  # 0 = all\nseed = 0', metadata={"tags": ["parameters"]})
    run = {"parameters": {"limit": 5, "seed": 0}, "start_time": "2026-11-30T10:00:00.5", "duration": 7.2}
    text = notebook_page(tmp_path, [parameters], papermill=run).read_text()
    assert "<dt>Model</dt><dd>gpt2</dd>" in text
    assert "30 November 2026, 10:00" in text
    assert "<dt>Time taken</dt><dd>7 s</dd>" in text
    assert "A trial run, not everything: limit = 5." in text
    assert re.findall(r'<tr class="set"><th scope="row">(\w+)', text) == ["limit"]


def test_the_index_has_no_way_up(tmp_path: Path):
    path = tmp_path / "90_compare_models.ipynb"
    nbformat.write(new_notebook(), path)
    assert "../index.html" not in render(path, tmp_path / "index.html").read_text()


def test_a_removed_cell_is_gone_and_the_title_stands_once(page: Path):
    text = page.read_text()
    assert "nobody needs this" not in text
    assert text.count("<h1") == 1
    assert "<title>Does the verb agree? · smollm2-135m-instruct" in text


def test_rendering_again_after_a_repair_removes_the_failed_page(tmp_path: Path):
    error = new_output("error", ename="ValueError", evalue="no", traceback=["ValueError: no"])
    bad = notebook_page(tmp_path, [new_code_cell("1", outputs=[error])])
    assert bad == tmp_path / "x.FAILED.html"
    good = notebook_page(tmp_path, [new_code_cell("1")])
    assert (good, bad.exists()) == (tmp_path / "x.html", False)


def test_an_announced_error_is_no_failure(tmp_path: Path):
    error = new_output("error", ename="ValueError", evalue="no", traceback=["ValueError: no"])
    cell = new_code_cell("1", outputs=[error], metadata={"tags": ["raises-exception"]})
    assert notebook_page(tmp_path, [cell]).name == "x.html"


def test_a_notebook_that_never_started_has_a_failed_page_too(tmp_path: Path):
    path = notebook_page(tmp_path, [], papermill={"exception": True})
    assert path.name == "x.FAILED.html"
    assert "stopped before its first cell" in path.read_text()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.ipynb", None, "missing.ipynb does not exist"),
        ("broken.ipynb", "{", "broken.ipynb is not an executed notebook"),
        ("wrong.ipynb", "[1]", "wrong.ipynb is not an executed notebook"),
    ],
)
def test_what_is_no_notebook_is_refused_in_one_sentence(tmp_path: Path, name: str, text: str | None, words: str):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(LitmusError, match=words):
        render(tmp_path / name)


@pytest.mark.parametrize("text", ["{", "[1]", "null"])
def test_a_broken_record_is_refused_in_one_sentence(tmp_path: Path, text: str):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(LitmusError, match=r"x\.json"):
        notebook_page(tmp_path, [])


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    """In the place of the notebook or its record it is refused; in that of a table nothing is linked."""
    os.mkfifo(tmp_path / "pipe.ipynb")
    with pytest.raises(LitmusError, match=r"pipe\.ipynb is not an executed notebook"):
        render(tmp_path / "pipe.ipynb")
    os.mkfifo(tmp_path / "x.csv")
    assert "items as CSV" not in notebook_page(tmp_path, []).read_text()
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(LitmusError, match=r"x\.json is not JSON"):
        notebook_page(tmp_path, [])


def test_the_command_prints_where_the_page_is(tmp_path: Path):
    nbformat.write(new_notebook(), tmp_path / "x.ipynb")
    call = [sys.executable, "-m", "lib.report"]
    done = subprocess.run(
        [*call, str(tmp_path / "x.ipynb"), "--out", str(tmp_path / "deep" / "y.html")], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "deep" / "y.html"))
    assert 'download="x.ipynb.gz"' in (tmp_path / "deep" / "y.html").read_text()
    refused = subprocess.run([*call, str(tmp_path / "z.ipynb")], capture_output=True, text=True)
    assert refused.returncode == 2
    assert re.fullmatch(r"error: .*z\.ipynb does not exist: [^\n]*\n", refused.stderr)


def test_every_source_has_a_complete_entry():
    keys = ["newman2021", "marvin2018", "warstadt2020", "linzen2016"]
    keys += ["gulordava2018", "ettinger2020", "shivagunde2023", "kauf2023"]
    entries = bibtex(keys).split("\n\n")
    assert len(entries) == len(keys)
    for entry in entries:
        assert entry.count("{") == entry.count("}")
        assert all(f"  {field} " in entry for field in ("author", "title", "year"))


# ---- cleaning


@pytest.mark.parametrize(
    ("dirty", "tidy"),
    [
        ("<b>kept</b>", "<b>kept</b>"),
        ("a<script>hacked=1</script>b", "ab"),
        ("<style scoped>td {}</style>x", "x"),
        ("<img src=x onerror=hacked=1>", ""),
        ('<img src="https://example.org/a.png">', ""),
        ('<img src="data:image/png;base64,AA=="/>', '<img src="data:image/png;base64,AA=="/>'),
        ('<a href="javascript:hacked=1">x</a>', "<a>x</a>"),
        ('<a href=" data:text/html,x">x</a>', "<a>x</a>"),
        ('<a href="https://example.org/?a=1&amp;b=2">x</a>', '<a href="https://example.org/?a=1&amp;b=2">x</a>'),
        ('<a href="21_systematic_or_likely.ipynb#Result">x</a>', '<a href="21_systematic_or_likely.html#Result">x</a>'),
        ("<svg onload=hacked=1><text>x</text></svg>", "x"),
        ('<p style="color: red; background-image: url(https://example.org)">x</p>', '<p style="color: red;">x</p>'),
        ('<p id="failed" onclick="hacked=1">x</p>', "<p>x</p>"),
        ("1 &lt; 2", "1 &lt; 2"),
    ],
)
def test_what_is_kept_of_html(dirty: str, tidy: str):
    assert clean(dirty) == tidy


def test_columns_of_numbers_are_marked_and_others_not():
    table = pd.DataFrame({"word": ["is", "7"], "share": [0.5, None], "count": ["1,200", "12 %"], "mixed": [1, "x"]})
    html = clean(table.to_html(notebook=True))
    assert re.findall(r'<th class="number" scope="col">(\w+)</th>', html) == ["share", "count"]
    assert html.count('class="number"') == 6
    assert '<div aria-label="Table" class="scroll" role="group" tabindex="0"><table' in html


def table(html: str) -> list[list[str]]:
    """The words of each row of a cleaned table."""
    soup = BeautifulSoup(clean(html), "html.parser")
    return [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in soup.find_all("tr")]


def test_a_table_has_one_row_of_headings_no_row_numbers_and_says_when_it_is_empty():
    frame = pd.DataFrame({"share": [0.5, 0.25]}, index=pd.Index(["is", "are"], name="verb"))
    assert table(frame.to_html()) == [["verb", "share"], ["is", "0.50"], ["are", "0.25"]]
    assert table(frame.reset_index().to_html()) == [["verb", "share"], ["is", "0.50"], ["are", "0.25"]]
    assert table(frame.iloc[:0].to_html()) == [["verb", "share"], ["none"]]
    counted = frame.set_axis([1, 0]).to_html()  # not the numbers of the rows: they may mean something
    assert table(counted) == [["", "share"], ["1", "0.50"], ["0", "0.25"]]
    grouped = frame.rename_axis(columns="measure").to_html()  # two rows of headings that name both axes stay
    assert table(grouped)[:2] == [["measure", "share"], ["verb", ""]]


def test_headings_say_what_they_head_and_numbers_are_marked_where_a_label_stands_for_several_rows():
    index = pd.MultiIndex.from_product([["a", "b"], ["x", "y"]], names=["one", "two"])
    html = clean(pd.DataFrame({"value": [1, 2, 3, 4]}, index=index).to_html())
    assert re.findall(r'scope="(\w+)"[^>]*>(\w+)<', html)[:3] == [("col", "one"), ("col", "two"), ("col", "value")]
    assert re.findall(r'scope="rowgroup"[^>]*>(\w+)<', html) == ["a", "b"]
    assert re.findall(r'<td class="number">(\d)<', html) == ["1", "2", "3", "4"]


# ---- plain words


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("4 several_pieces", "4 written in several pieces"),
        ("masked_method: within_word_l2r", "masked method: within words from left to right"),
        ("principle_A_c_command", "principle A c command"),
        ("simple_agrmt", "simple agreement"),
        ("20_agreement", "20_agreement"),  # a notebook
        ("my_model and org/my_model", "my_model and org/my_model"),
        ("data/my_items.jsonl, my_items.jsonl", "data/my_items.jsonl, my_items.jsonl"),
        ("https://example.org/a_b", "https://example.org/a_b"),
        ("The keys ___ here", "The keys ___ here"),
    ],
)
def test_names_of_code_become_words_and_other_names_stay(written: str, read: str):
    assert plain(written, {"my_model"}) == read


def test_outputs_are_in_plain_words_and_code_and_fields_of_charts_are_not(tmp_path: Path):
    charts.use_theme()
    frame = pd.DataFrame({"item": ["1"], "cloze_difference": [0.2], "margin": [0.1], "context": ["several_pieces"]})
    chart = {**charts.differences(frame).to_dict(), "$schema": charts.SCHEMA}
    cells = [
        new_code_cell("several_pieces = 1"),
        *shown(
            {"text/html": pd.DataFrame({"reason": ["several_pieces"], "model": ["my_model"]}).to_html()},
            {"text/markdown": "2 several_pieces by the policy `single_token`"},
            {charts.MIME_TYPE: chart, "text/plain": "x"},
        ),
    ]
    text = notebook_page(tmp_path, cells, RECORD | {"model": "org/my_model"}).read_text()
    assert ">written in several pieces</td>" in text and ">my_model</td>" in text
    assert "2 written in several pieces by the policy <code>single_token</code>" in text
    [written] = re.findall(r'<script type="application/json">(.*?)</script>', text)
    [row] = [row for rows in json.loads(written)["datasets"].values() for row in rows if row]
    assert (row["context"], row["cloze_difference"]) == ("written in several pieces", 0.2)
    assert '"field":"cloze_difference"' in written
    assert "several_pieces" in text  # in the code that made it


# ---- small samples


def test_the_head_says_what_few_items_cannot_show(tmp_path: Path):
    """34 items, all scored: six that all speak for one model are the fewest that count, 6/34 = .18."""
    headline = RECORD["headline"] | {"n": 34, "coverage": 1.0}
    summary = [{"condition": "long_ago", "scored": 12}, {"condition": "now", "n": 400, "coverage": 0.5}, {"n": 3}]
    text = notebook_page(tmp_path, [], RECORD | {"headline": headline, "summary": summary}).read_text()
    assert "A small sample: 34 scored items. Another model must differ by 0.18 or more" in text
    assert "1 of 2 conditions rest on fewer than 30 scored items (long ago: 12)" in text


def test_five_items_tell_no_two_models_apart(tmp_path: Path):
    text = notebook_page(tmp_path, [], RECORD | {"headline": RECORD["headline"] | {"n": 5}}).read_text()
    assert "A small sample: 5 scored items. They cannot tell any two models apart." in text


def test_many_items_are_no_small_sample(page: Path):
    assert "small sample" not in page.read_text() and "Small samples" not in page.read_text()


# ---- downloads


def downloads(text: str) -> list[tuple[str, str]]:
    """Address and name of each file that can be downloaded."""
    return re.findall(r'<a href="([^"]*)" download="([^"]*)"', text)


def test_a_page_carries_its_files_and_the_sources(page: Path):
    found = {name: address for address, name in downloads(page.read_text())}
    names = [f"smollm2-135m-instruct.20_agreement.{suffix}.gz" for suffix in ("ipynb", "csv", "json")]
    assert list(found) == [*names, "20_agreement.bib"]
    for name, suffix in zip(names, ("ipynb", "csv", "json"), strict=True):
        packed = base64.b64decode(found[name].removeprefix("data:application/gzip;base64,"))
        assert gzip.decompress(packed) == page.with_suffix(f".{suffix}").read_bytes()
    sources = base64.b64decode(found["20_agreement.bib"].split(",")[1]).decode()
    assert sources.startswith("@inproceedings{newman2021,")


def test_what_would_make_a_page_too_heavy_is_linked_beside_it(tmp_path: Path):
    (tmp_path / "x.csv").write_bytes(os.urandom(2_400_000))  # cannot be packed
    (tmp_path / "x.parquet").write_bytes(b"little")
    path = notebook_page(tmp_path, [])
    assert path.stat().st_size < LIMIT
    text = path.read_text()
    assert 'href="x.csv" download=""' in text and "2.4 MB, lies beside this page" in text
    assert [name for _, name in downloads(text)] == ["x.ipynb.gz", "", "x.parquet.gz"]


def test_a_page_put_elsewhere_has_no_links_to_neighbours(tmp_path: Path):
    words = "See [the next](21_systematic_or_likely.ipynb), "
    words += "[the paper](https://example.org/a.html), [a task](exercises/x.ipynb)."
    nbformat.write(new_notebook(cells=[new_markdown_cell(words)]), tmp_path / "x.ipynb")
    alone = render(tmp_path / "x.ipynb", tmp_path / "alone.html").read_text()
    assert "See the next, <a" in alone and 'href="https://example.org/a.html"' in alone
    assert "index.html" not in alone
    beside = render(tmp_path / "x.ipynb").read_text()
    assert 'href="21_systematic_or_likely.html"' in beside and ", a task." in beside  # no page is made of an exercise


# ---- the page in a browser


@pytest.mark.browser
def test_charts_are_drawn_with_no_request_and_no_complaint(opened: Browser):
    marks = opened.script(
        "return [...document.querySelectorAll('figure.chart')].map(figure =>"
        " figure.querySelectorAll('.drawing svg .mark-symbol path, .drawing svg .mark-rect path').length)"
    )
    assert marks[0] >= 2
    assert marks[1] >= 3
    assert opened.script("return [...document.querySelectorAll('img.still')].every(image => !image.offsetParent)")
    assert opened.errors() == []
    assert opened.outside() == []


@pytest.mark.browser
def test_charts_have_words_for_those_who_do_not_see_them(opened: Browser):
    words = opened.script(
        "return [...document.querySelectorAll('figure.chart')].map(figure =>"
        " [figure.ariaLabel, figure.querySelector('img').alt, figure.querySelector('.chart-wrapper').ariaLabel])"
    )
    assert all(label == alt == drawn and label.startswith(("Dot plot", "Histograms")) for label, alt, drawn in words)


@pytest.mark.browser
def test_one_button_opens_and_folds_all_code(opened: Browser):
    count = "[...document.querySelectorAll('details.code')].filter(details => details.open).length"
    every = opened.script("return document.querySelectorAll('details.code').length")
    assert opened.script(f"return {count}") == 0
    button = opened.driver.find_element("css selector", "button.switch")
    button.click()
    assert (opened.script(f"return {count}"), button.text) == (every, "Hide all code")
    button.click()
    assert (opened.script(f"return {count}"), button.text) == (0, "Show all code")


@pytest.mark.browser
def test_contents_lead_to_their_headings_also_where_two_are_called_the_same(opened: Browser):
    links = opened.script("return [...document.querySelectorAll('.contents ol a')].map(a => [a.textContent, a.hash])")
    assert links == [["One example", "#One-example"], ["A chart", "#A-chart"], ["A chart", "#A-chart-2"]]
    assert opened.script("return document.querySelectorAll('#A-chart, #A-chart-2').length") == 2


@pytest.mark.browser
def test_tags_fold_quiet_and_hide(opened: Browser):
    assert opened.script("return document.querySelectorAll('details.code.quiet').length") == 1
    assert opened.script("return document.querySelector('details.output').open") is False
    summaries = opened.script(
        "return [...document.querySelectorAll('details.code summary')].map(s => s.innerText.trim())"
    )
    assert summaries[:3] == ["parameters", "parameters of this run", "code"]


@pytest.mark.browser
def test_paper_shows_charts_and_no_code(opened: Browser):
    opened.script("document.querySelectorAll('details').forEach(details => details.open = true)")
    opened.emulate(media="print")
    try:
        visible = (
            "[...document.querySelectorAll(arguments[0])].filter(element => element.getClientRects().length).length"
        )
        assert opened.script(f"return {visible}", ".drawing svg.marks") == 2
        assert (
            opened.script(f"return {visible}", "details.code, .highlight, .contents, .switch, .vega-embed summary") == 0
        )
        assert opened.script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        opened.emulate()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_of_charts_and_text_stand_out_from_the_ground(opened: Browser, scheme: str):
    opened.emulate(prefers_color_scheme=scheme)
    try:
        ground, ink, label = opened.script(
            "const style = (selector) => getComputedStyle(document.querySelector(selector));"
            "return [style('body').backgroundColor, style('body').color, style('.drawing svg text').fill]"
        )
    finally:
        opened.emulate()
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 765 for colour in (ground, ink, label)]
    assert ink == label
    assert (light[0] > 0.9 and light[1] < 0.2) if scheme == "light" else (light[0] < 0.15 and light[1] > 0.8)


@pytest.mark.browser
def test_on_a_phone_the_contents_are_folded_and_on_a_wide_screen_they_stand_beside(chromium: Browser, page: Path):
    for width, shown_at_once in ((390, False), (900, False), (1440, True)):
        chromium.resize(width, 900)
        chromium.open(page)
        assert chromium.script("return document.querySelector('.contents ol').checkVisibility()") == shown_at_once
    chromium.resize(1280, 900)


@pytest.mark.browser
def test_a_phone_scrolls_tables_and_charts_but_not_the_page(opened: Browser):
    opened.resize(390, 800)
    try:
        assert opened.script("return document.documentElement.scrollWidth") == 390
        assert opened.script(
            "const figure = document.querySelector('figure.chart');return figure.scrollWidth > figure.clientWidth"
        )
    finally:
        opened.resize(1280, 900)


@pytest.mark.browser
def test_without_scripts_the_pictures_stand_for_the_charts(page: Path, tmp_path: Path):
    require(available(), MISSING)
    copy = tmp_path / "page.html"
    copy.write_text(re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.DOTALL))
    with browser(tmp_path) as running:
        running.open(copy)
        stills = "[...document.querySelectorAll('img.still')]"
        assert (
            running.script(f"return {stills}.map(image => image.offsetParent && image.naturalWidth > 200)")
            == [True] * 2
        )


@pytest.mark.browser
def test_a_failed_page_names_the_error_and_leads_to_the_cell(failed: Path, chromium: Browser):
    assert failed.name == "20_agreement.FAILED.html"
    assert not failed.with_name("20_agreement.html").exists()
    chromium.open(failed)
    banner = chromium.driver.find_element("css selector", ".banner.failed")
    assert banner.text.startswith("This run failed. ValueError: last line")
    banner.find_element("tag name", "a").click()
    assert chromium.script("return location.hash") == "#failed"
    cell = chromium.driver.find_element("id", "failed")
    assert "onerror=hacked=1" in cell.find_element("css selector", ".output.error").text
    assert cell.find_element("css selector", "details.code").get_attribute("open")
    top = chromium.script("return document.getElementById('failed').getBoundingClientRect().top")
    assert -5 <= top < 800
    text = chromium.driver.find_element("tag name", "main").text
    assert "Nothing below this cell was run." in text
    assert "1,234" not in text
    assert "papermill" not in chromium.driver.find_element("css selector", "main > section").text
    assert chromium.script("return typeof hacked") == "undefined"
    assert chromium.errors() == []


ATTACK = """<img src=x onerror="hacked=1"></title></script><script>hacked=1</script><svg/onload=hacked=1>'">-->"""


def attacked(value):
    """The same record with every text an attack, also where a number should be."""
    if isinstance(value, dict):
        return {
            f"{ATTACK}{name}" if name in ("simple.jsonl", "pandas") else name: attacked(v) for name, v in value.items()
        }
    if isinstance(value, list):
        return [attacked(entry) for entry in value]
    return ATTACK


@pytest.mark.browser
def test_nothing_that_comes_from_data_is_run(tmp_path: Path, chromium: Browser):
    import altair as alt
    import pandas as pd

    charts.use_theme()
    table = pd.DataFrame({"condition": [ATTACK], "value": [0.5], "low": [0.4], "high": [0.6]})
    chart = charts.intervals(table, description=ATTACK).to_dict() | {"$schema": charts.SCHEMA}
    svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='hacked=1'><script>hacked=1</script></svg>"
    error = new_output("error", ename=ATTACK, evalue=ATTACK, traceback=[ATTACK])
    cells = [
        new_markdown_cell(f"# {ATTACK}\n\n## {ATTACK}\n\n{ATTACK}\n\n[x](javascript:hacked=1)"),
        new_markdown_cell(f"## {ATTACK}\n\n![{ATTACK}](attachment:none) <a href='JaVaScRiPt:hacked=1'>y</a>"),
        new_code_cell(ATTACK, metadata={"tags": ["hide-input"]}),
        *shown(
            {charts.MIME_TYPE: chart, "image/png": '"><img src=x onerror=hacked=1>', "text/plain": ATTACK},
            {charts.MIME_TYPE: chart | {"description": ""}, "text/plain": ATTACK},
            {"text/html": table.to_html(notebook=True) + ATTACK},
            {"text/html": "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe><form action=x><button>"},
            {"text/html": "<noscript><p title='</noscript><img src=x onerror=hacked=1>'></noscript>"},
            {"text/html": "<math><mtext><table><mglyph><style><!--</style><p title='--&gt;&lt;img onerror=hacked&gt;'>"},
            {"text/markdown": f"{ATTACK}\n\n```mermaid\n{ATTACK}\n```\n\n```python\n{ATTACK}\n```\n\n${ATTACK}$"},
            {"image/svg+xml": svg, "text/plain": ATTACK},
            {"image/png": '"><img src=x onerror=hacked=1>', "text/plain": ATTACK},
            {"image/jpeg": '"><img src=x onerror=hacked=1>', "text/plain": ATTACK},
            {"text/latex": ATTACK},
            {"text/plain": ATTACK},
            {"application/javascript": "hacked=1", "text/plain": "not a script"},
            {"application/vnd.jupyter.widget-view+json": {"model_id": ATTACK}, "text/plain": "not a widget"},
        ),
        new_code_cell("1", outputs=[new_output("stream", name=name, text=ATTACK) for name in ("stdout", "stderr")]),
    ]  # fmt: skip
    name = "<img src=x onerror=hacked=1>"
    good = notebook_page(tmp_path, cells, attacked(RECORD), name)
    bad = tmp_path / "bad"
    bad.mkdir()
    run = {"parameters": {"model": ATTACK, "limit": ATTACK}, "start_time": ATTACK, "duration": ATTACK}
    failing = notebook_page(bad, [*cells, new_code_cell("1", outputs=[error])], name=name, papermill=run)
    assert alt.renderers.active == "litmus"
    for path, scripts in ((good, 2), (failing, 2)):
        chromium.open(path)
        chromium.wait("document.querySelectorAll('figure.chart.drawn, figure.chart.undrawn').length == 2")
        assert chromium.script("return typeof hacked") == "undefined"
        forbidden = "[onerror], [onload], [onclick], iframe, object, embed, form:not(.vega-bindings), base, noscript"
        assert chromium.script("return document.querySelectorAll(arguments[0]).length", forbidden) == 0
        running = "return document.querySelectorAll('script:not([type=\"application/json\"])').length"
        assert chromium.script(running) == scripts
        assert chromium.script("return document.querySelectorAll('a[href^=\"javascript\" i]').length") == 0
        assert chromium.script("return document.querySelectorAll('figure.chart.drawn').length") == 2
        assert 'onerror="hacked=1"' in chromium.driver.find_element("tag name", "main").text
        assert "not a script" in chromium.driver.find_element("tag name", "main").text
        assert chromium.outside() == []
        assert [message for message in chromium.errors() if "Content Security Policy" in message] == []


@pytest.mark.browser
def test_even_a_script_that_got_into_a_page_is_not_run(page: Path, chromium: Browser, tmp_path: Path):
    copy = tmp_path / "page.html"
    attack = "<script>window.hacked=1</script><img src='data:,' onerror='window.hacked=1'><img src='https://example.org/a.png'>"
    copy.write_text(page.read_text().replace("<main", f"{attack}<main", 1))
    chromium.open(copy)
    chromium.wait("document.querySelectorAll('figure.chart.drawn').length == 2")
    assert chromium.script("return typeof window.hacked") == "undefined"
    assert sum("Content Security Policy" in message for message in chromium.errors()) >= 3


WORDS = pd.DataFrame({
    "word": [f"word{i}" for i in range(20)],
    "kind": ["noun", "verb"] * 10,
    "share": [f"{(i * 7) % 20 / 10:.1f} [0.1, 0.9]" for i in range(19)] + ["n/a"],
})  # fmt: skip
ROWS = "[...document.querySelectorAll('.long tbody tr')].filter(row => !row.hidden).map(row => row.cells[0].innerText)"


@pytest.fixture
def long_table(tmp_path: Path, chromium: Browser) -> Browser:
    grouped = WORDS.sort_values("kind", kind="stable").set_index(["kind", "word"])
    tables = (WORDS.set_index("word"), WORDS.head(3), grouped)
    chromium.open(notebook_page(tmp_path, shown(*({"text/html": table.to_html()} for table in tables))))
    return chromium


@pytest.mark.browser
def test_long_tables_are_searched_filtered_and_sorted_offline(long_table: Browser):
    driver, rows = long_table.driver, lambda: long_table.script(f"return {ROWS}")[:20]
    assert long_table.script("return document.querySelectorAll('.tools').length") == 2  # not the one of three rows
    [_, _, third] = driver.find_elements("css selector", ".long thead")[0].find_elements("css selector", "button")
    third.click()
    assert rows()[:3] == ["word0", "word3", "word6"]  # 0.0, 0.1, 0.2
    assert rows()[-1] == "word19"  # what has no number comes last
    third.click()
    assert rows()[0] == "word17" and rows()[-1] == "word19"
    assert long_table.script("return document.querySelector('[aria-sort]').ariaSort") == "descending"
    tools = driver.find_element("css selector", ".tools")
    tools.find_element("css selector", "input").send_keys("word1")
    assert tools.find_element("css selector", "output").text == "11 of 20 rows"
    tools.find_element("css selector", "option[value='=verb']").click()
    assert tools.find_element("css selector", "output").text == "6 of 20 rows"  # word1 and word11, 13, 15, 17, 19
    assert long_table.errors() == [] and long_table.outside() == []


@pytest.mark.browser
def test_a_label_of_several_rows_stands_in_each_so_that_they_can_be_sorted(long_table: Browser):
    driver = long_table.driver
    tools, box = driver.find_elements("css selector", ".tools")[1], driver.find_elements("css selector", ".long")[1]
    labels = [label.text.split()[0] for label in tools.find_elements("css selector", "label")]
    assert labels == ["Search", "kind"]
    tools.find_element("css selector", "option[value='=verb']").click()
    shown_rows = [row.text for row in box.find_elements("css selector", "tbody tr") if row.is_displayed()]
    assert len(shown_rows) == 10 and all(row.startswith("verb word") for row in shown_rows)
    assert long_table.script("return document.querySelectorAll('.long [rowspan]').length") == 0


@pytest.mark.browser
def test_files_in_a_page_are_saved_unpacked_with_nothing_beside_it(page: Path, chromium: Browser, tmp_path: Path):
    alone = tmp_path / "mailed" / "page.html"
    alone.parent.mkdir()
    alone.write_bytes(page.read_bytes())
    saved = chromium.saving_to(tmp_path / "saved")
    chromium.open(alone)
    for link in chromium.driver.find_elements("css selector", ".downloads a"):
        link.click()
    chromium.driver.find_elements("css selector", ".box summary")[-1].click()
    chromium.driver.find_element("css selector", "a[download$='.bib']").click()
    names = [f"smollm2-135m-instruct.20_agreement.{suffix}" for suffix in ("csv", "ipynb", "json")]
    found = saved(len(names) + 1)
    assert found == ["20_agreement.bib", *names]
    for name in names:
        assert (tmp_path / "saved" / name).read_bytes() == page.with_suffix(Path(name).suffix).read_bytes()
    assert chromium.errors() == [] and chromium.outside() == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened: Browser, failed: Path, long_table: Browser, page: Path, scheme: str):
    """The whole page with everything unfolded; a failed page; long tables with their tools."""
    opened.emulate(prefers_color_scheme=scheme)
    try:
        assert opened.axe() == []  # the page with long tables
        for path in (page, failed):
            opened.open(path)
            opened.script("document.querySelectorAll('details').forEach(details => details.open = true)")
            assert opened.axe() == []
    finally:
        opened.emulate()


@pytest.mark.browser
def test_a_page_is_whole(page: Path, chromium: Browser):
    pages.check(chromium, page, ("ipynb", "csv", "json"))


@pytest.mark.browser
def test_the_sample_report_is_whole_and_has_all_it_names(chromium: Browser):
    """What a visitor sees first: tracked, small, linked from the README, and complete by itself."""
    sample = REPORTS / "sample"
    page = sample / "20_agreement.html"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\((reports/sample/[^)]+)\)", readme))
    assert named == {"reports/sample/20_agreement.html", "reports/sample/agreement.png", "reports/sample/README.md"}
    assert all((ROOT / name).exists() for name in named)
    assert sum(path.stat().st_size for path in sample.iterdir()) < 1_600_000
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    assert {link["href"].split(":")[0] for link in soup.find_all("a", href=re.compile("^[^#]"))} <= {"data", "https"}
    assert len(soup.find_all("img")) >= 3 and all(image["src"].startswith("data:") for image in soup.find_all("img"))
    pages.check(chromium, page)


@pytest.mark.browser
def test_axe_would_find_something(tmp_path: Path, chromium: Browser):
    (tmp_path / "bad.html").write_text("<!DOCTYPE html><title>x</title><main><img src='data:,'><input></main>")
    chromium.open(tmp_path / "bad.html")
    assert {line.split(":")[0] for line in chromium.axe()} >= {"image-alt", "label", "html-has-lang"}


@pytest.mark.browser
def test_paper_has_every_word_but_the_code_and_nothing_is_cut_off(tmp_path: Path, chromium: Browser):
    wide = pd.DataFrame({f"column{i}": [f"value{i}"] for i in range(14)})
    words = ["beginning", *wide, *wide.loc[0], "y" * 40 + "end"]
    cells = [
        new_markdown_cell("## Heading\n\nbeginning"),
        *shown({"text/html": wide.to_html()}, {"text/plain": "y " * 400 + "y" * 40 + "end"}),
        *shown({"text/html": WORDS.to_html()}),
        new_code_cell("secret = 1"),
    ]
    chromium.open(notebook_page(tmp_path, cells))
    chromium.script("document.querySelectorAll('details').forEach(details => details.open = true)")
    paper = "".join(chromium.paper())
    assert [word for word in [*words, *WORDS["word"]] if word not in paper] == []
    assert "secret" not in paper and "Search this table" not in paper
