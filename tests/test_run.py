"""The strict runner: every way of being wrong with parameters, failing notebooks, published experiment files."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import nbformat
import pytest
import typer
from typer.testing import CliRunner

from lib import run
from lib.errors import LitmusError
from lib.experiments import config_files, experiments_of
from lib.run import check_parameters, execute, parameters_of

HEADER = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

"""

TINY = """\
# %% tags=["parameters"]
model = "none"
limit = 0  # 0 = all
share = 0.5
full_stop = True
items = []
cutoffs_top = [0.1,
               0.2]
how = ""
out = ""

# %% [markdown]
# ## What is written

# %%
import errno
import json
import os
import time
from pathlib import Path

seen = {name: os.environ.get(name) for name in ("LITMUS_QUIET", "LITMUS_NOTEBOOK", "LITMUS_OVERRIDDEN")}
seen |= {"cutoffs_top": cutoffs_top, "folder": str(Path.cwd())}
Path(f"{out}.json").write_text(json.dumps(seen))

# %% [markdown]
# ## What goes wrong

# %%
if how == "raise":
    halves = 1 / limit
if how == "raise inside":
    halves = json.loads("{")
if how == "kill":
    os.kill(os.getpid(), 9)
if how == "sleep":
    time.sleep(600)
"""


def write(path, source=TINY):
    path.write_text(HEADER + textwrap.dedent(source))
    return path


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A tiny notebook, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "tiny.py")


# ---- parameters


def test_parameters_are_read_with_their_defaults(tiny):
    assert parameters_of(tiny) == {
        "model": "none",
        "limit": 0,
        "share": 0.5,
        "full_stop": True,
        "items": [],
        "cutoffs_top": [0.1, 0.2],
        "how": "",
        "out": "",
    }


@pytest.mark.parametrize(
    "cell, said",
    [
        ("# %%\nmodel = 1\n", "has 0 cells tagged parameters"),
        ('# %% tags=["parameters"]\na = 1\n\n# %% tags=["parameters"]\nb = 1\n', "has 2 cells tagged parameters"),
        (
            '# %% tags=["parameters"]\na = 1\nb = a + 1\n',
            "`b = a \\+ 1` in the cell tagged parameters is not of the form",
        ),
        ('# %% tags=["parameters"]\nlimit: int | None = None\n', "`limit: int \\| None = None`"),
        ('# %% tags=["parameters"]\nlimit = None\n', "`limit = None`"),
        ('# %% tags=["parameters"]\na = b = 1\n', "`a = b = 1`"),
        ('# %% tags=["parameters"]\nimport os\n', "`import os`"),
        ('# %% tags=["parameters"]\nlimit = \n', "is not Python"),
    ],
)
def test_case_73_a_parameters_cell_that_is_not_plain_is_refused(tmp_path, cell, said):
    with pytest.raises(LitmusError, match=said):
        parameters_of(write(tmp_path / "odd.py", cell))


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("limit", "5", 5),
        ("share", "5", 5.0),
        ("share", "1e-3", 0.001),
        ("full_stop", "False", False),
        ("full_stop", "true", True),
        ("full_stop", False, False),
        ("items", '["a.jsonl", "b.jsonl"]', ["a.jsonl", "b.jsonl"]),
        ("items", "[]", []),
        ("cutoffs_top", "[1, 0.5]", [1.0, 0.5]),
        ("model", "gpt2", "gpt2"),
        ("model", '"gpt2"', "gpt2"),
        ("model", "'gpt2'", "gpt2"),
        ("model", "5", "5"),
        ("model", "a=b", "a=b"),
        ("model", "", ""),
        ("model", '"', '"'),
    ],
)
def test_values_that_will_do(tiny, name, text, value):
    checked = check_parameters(parameters_of(tiny), {name: text})[name]
    assert checked == value
    assert type(checked) is type(value)


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("lmit", "5", "there is no parameter lmit \\(did you mean limit\\?\\); the notebook has: model, limit, share"),
        ("limit", "many", "limit is a whole number, and many is not"),
        ("limit", "5.0", "limit is a whole number, and 5.0 is not"),
        ("limit", "True", "limit is a whole number, and True is not"),
        ("limit", "", "limit is a whole number"),
        ("limit", "[5]", "limit is a whole number"),
        ("limit", None, "limit is a whole number, and None is not"),
        ("share", "half", "share is a number"),
        ("share", "1e999", "share is a number, and inf is not"),
        ("full_stop", "1", "full_stop is True or False, and 1 is not"),
        ("full_stop", "yes", "full_stop is True or False"),
        ("items", "a.jsonl", 'items is a list such as \\["a", "b"\\]'),
        ("items", "('a',)", "items is a list"),
        ("items", "[open('x')]", "items is a list"),
        ("cutoffs_top", "['a']", "cutoffs_top\\[0\\] is a number"),
        ("cutoffs_top", "[0.1, True]", "cutoffs_top\\[1\\] is a number"),
        ("model", 5, "model is text, and 5 is not"),
        ("limit", "9x" * 500, "limit is a whole number, and (9x){38}9\\.\\.\\. is not"),
        ("limit", [1] * 500, "limit is a whole number, and \\[[1, ]{76}\\.\\.\\. is not"),
        ("limit", "-1", "limit is 0 or more, and -1 is not"),
        ("limit", -(10**200), "limit is 0 or more, and -10{75}\\.\\.\\. is not"),
        ("x" * 500, "5", "there is no parameter x{77}\\.\\.\\.; the notebook has"),
    ],
)
def test_case_73_names_and_values_that_are_refused(tiny, name, value, said):
    with pytest.raises(LitmusError, match=said):
        check_parameters(parameters_of(tiny), {name: value})


# ---- running


def errors_in(path) -> list[str]:
    """What the error outputs of an executed notebook say."""
    cells = nbformat.read(path, as_version=4).cells
    return [output.evalue for cell in cells for output in cell.get("outputs", []) if output.output_type == "error"]


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_what_lies_in_the_way_of_results_is_told_before_anything_runs(tiny, tmp_path, kind):
    out = tmp_path / "page"
    if kind == "device":
        out = run.Path("/dev/full")
    elif kind == "pipe":
        os.mkfifo(out)
    else:
        (tmp_path / "page.csv").mkdir()
    before = sorted(out.parent.iterdir())
    said = "page.csv is a folder; move it away" if kind == "folder" else "it is a device or a pipe"
    for make in (True, False):
        with pytest.raises(
            LitmusError, match=rf"results cannot be written to .* \({said}\); name another place by --out"
        ):
            run.check_place(out, make)
    with pytest.raises(LitmusError, match=said):
        execute(tiny, {}, out)
    assert sorted(out.parent.iterdir()) == before


def test_a_run_leaves_its_results_and_nothing_of_an_earlier_one(tiny, tmp_path):
    out = tmp_path / "pages of it" / "tiny"
    out.parent.mkdir()
    for suffix in run.RESULTS:
        (out.parent / f"tiny{suffix}").write_text("earlier")
    before = tiny.read_bytes()
    assert execute(tiny, {"limit": "3", "share": "0.5", "cutoffs_top": [1]}, out) == 0
    assert sorted(path.name for path in out.parent.iterdir()) == ["tiny.ipynb", "tiny.json"]
    assert json.loads((out.parent / "tiny.json").read_text()) == {
        "LITMUS_QUIET": "1",
        "LITMUS_NOTEBOOK": "tiny",
        "LITMUS_OVERRIDDEN": "limit,cutoffs_top",  # share has its default
        "cutoffs_top": [1.0],
        "folder": str(tmp_path),
    }
    assert tiny.read_bytes() == before
    assert not tiny.with_suffix(".ipynb").exists()
    assert "LITMUS_NOTEBOOK" not in os.environ
    metadata = nbformat.read(out.parent / "tiny.ipynb", as_version=4).metadata.papermill
    assert metadata.parameters == {"limit": 3, "share": 0.5, "cutoffs_top": [1.0], "out": "pages of it/tiny"}
    assert metadata.output_path == "pages of it/tiny.ipynb"


@pytest.mark.parametrize(
    "how, timeout, said",
    [
        (
            "raise",
            600,
            "tiny failed at `halves = 1 / limit` under «What goes wrong»: ZeroDivisionError: division by zero",
        ),
        (
            "raise inside",
            600,
            'tiny failed at `halves = json.loads("{")` under «What goes wrong»: JSONDecodeError: Expecting property name',
        ),
        (
            "kill",
            600,
            'tiny failed in the cell that begins `if how == "raise":` under «What goes wrong»: the kernel died',
        ),
        ("sleep", 2, "the cell took longer than the limit of 2 s"),
    ],
)
def test_case_78_a_notebook_that_fails_is_kept_and_says_where(tiny, tmp_path, capsys, how, timeout, said):
    out = tmp_path / "pages" / "tiny"
    out.parent.mkdir()
    for suffix in run.RESULTS:
        (out.parent / f"tiny{suffix}").write_text("earlier")
    assert execute(tiny, {"how": how}, out, timeout) == 1
    assert [path.name for path in out.parent.iterdir()] == ["tiny.ipynb"]
    assert len(errors_in(out.parent / "tiny.ipynb")) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.endswith("; see pages/tiny.ipynb.\n")
    assert told.count("\n") == 1


def test_a_notebook_of_the_grid_that_writes_no_results_has_failed(tiny, tmp_path, capsys):
    assert execute(tiny, {}, tmp_path / "page", mark="abc") == 1  # it writes .json, and neither .parquet nor .csv
    assert "without having written its results (.json, .parquet, .csv)" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.ipynb", "tiny.py"]
    metadata = nbformat.read(tmp_path / "page.ipynb", as_version=4).metadata
    assert metadata.litmus.mark == "abc"
    assert metadata.papermill.exception is True


def test_a_run_that_is_stopped_keeps_what_was_there_and_ends_its_kernel(tiny, tmp_path):
    (tmp_path / "page.ipynb").write_text("earlier")
    (tmp_path / "page.csv").write_text("earlier")
    words = [sys.executable, "-m", "lib.run", "tiny.py", "--set", "how=sleep", "--out", "page"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "page.json").exists():
        assert process.poll() is None
        time.sleep(0.1)
    kernels = children(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[1] == "error: stopped from outside.\n"
    assert process.returncode == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.csv", "page.ipynb", "tiny.py"]
    assert kernels
    assert not any(alive(kernel) for kernel in kernels)


@pytest.mark.parametrize(
    "out", ["/dev/null/x", "/dev/null/x/tiny", "x" * 250, "x" * 300 + "/tiny", "/proc/litmus/tiny"]
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(tiny, tmp_path, out):
    app = typer.Typer()
    app.command()(run.main)
    told = CliRunner().invoke(app, ["tiny.py", "--out", out])
    assert told.exit_code == 2
    assert told.stderr.startswith("error: results cannot be written to ")
    assert told.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.py"]


def test_a_full_disk_leaves_nothing_of_the_run(tiny, tmp_path, monkeypatch, capsys):
    def fill(source, target):
        target.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run.shutil, "copyfile", fill)
    (tmp_path / "page.ipynb").write_text("earlier")
    assert execute(tiny, {}, tmp_path / "page") == 1
    told = capsys.readouterr().err
    assert told.startswith("error: tiny ran, and its executed notebook cannot be written to page.ipynb (No space left")
    assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.ipynb", "tiny.py"]


def test_halves_of_killed_runs_are_swept_and_nothing_else(tmp_path):
    for name in (
        ".page.ipynb.12",
        ".page--x.ipynb.12",
        ".page.notes",
        ".page.FAILED.html.7",
        "page.ipynb",
        ".page.csv.1",
    ):
        (tmp_path / name).touch()
    for folder in (".page-ab_cd123", ".page-tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "csv").touch()
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    (tmp_path / ".page.csv.1").touch()  # somebody is writing it now
    run._sweep(tmp_path / "page")
    left = {".page--x.ipynb.12", ".page.notes", "page.ipynb", ".page.csv.1", ".page-tests"}
    assert {path.name for path in tmp_path.iterdir()} == left


def children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(child) for child, parent in (line.split() for line in listed.splitlines()) if int(parent) == process]


def alive(process: int) -> bool:
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(listed) and not listed.startswith("Z")


def call(*words) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "lib.run", *words], capture_output=True, text=True)


@pytest.mark.parametrize(
    "words, said",
    [
        (["tiny.py", "--set", "lmit=3"], "did you mean limit?"),
        (["tiny.py", "--set", "limit"], "--set takes key=value"),
        (["tiny.py", "--set", "limit=1", "--set", "limit=2"], "given twice"),
        (["tiny.py", "--model", "a", "--set", "model=b"], "given twice"),
        (["tiny.py", "--set", "out=here"], "--out PATH"),
        (["tiny.py", "--only", "a"], "--config"),
        (["once.py", "--model", "a"], "once has no parameter model"),
        (["nowhere.py"], "there is no notebook nowhere.py"),
        (["n" * 300], "there is no notebook nnn"),
        (["n" * 300 + ".py"], "there is no notebook nnn"),
        (["nowhere"], "there is no notebook nowhere"),
        ([], "give the name of a notebook"),
        (["tiny.py", "--config", "x.yaml"], "give the name of a notebook"),
        (["--config", "nowhere"], "there is no nowhere"),
        (["--config", ".", "--out", "x"], "--reports FOLDER"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(tiny, tmp_path, words, said):
    write(tmp_path / "once.py", '# %% tags=["parameters"]\nreports = ""\nout = ""\n')
    app = typer.Typer()
    app.command()(run.main)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["once.py", "tiny.py"]


def test_the_exit_code_of_a_failing_notebook(tiny, tmp_path):
    failed = call("tiny.py", "--model", "org/some model", "--set", "how=raise", "--reports", "pages")
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "ZeroDivisionError" in failed.stderr
    (kept,) = (tmp_path / "pages").rglob("*.ipynb")
    assert kept.name == "tiny.ipynb"
    assert kept.parent.parent.name == "pages"  # the model's name, made safe, is one folder


# ---- published experiment files

CONFIG = """\
dataset:
  add_trailing_period: true
  capitalize_first_word: true
  max_examples_per_template: null
  name: custom
  template_dir: data/ML
  template_files:
  - simple.jsonl
experiment:
  max_examples: null
logger:
  path: results/some-model/ML_simple/tse_ew
  print_metrics_to_general_log: false
  print_to_stdout: false
metrics:
  ML:
    example_aggregator: mean
    use_custom_dataset: true
  main:
    cutoffs_bot:
    - 0.5
    - 1e-6
    cutoffs_top:
    - 0.1
    - 1
    example_aggregator: mean
    lemma_inflections_path: data/verbs/combined_verb_list.csv
    use_custom_dataset: true
    use_equal_verb_voting: true
model:
  name: some-model
"""


@pytest.fixture
def published(tmp_path, monkeypatch):
    """An experiment file two folders down, its data in the folder above both, as in the published repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LITMUS_DATASETS", raising=False)
    for name in ("data/ML/simple.jsonl", "data/verbs/combined_verb_list.csv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    config = tmp_path / "configs" / "some-model" / "ML_simple" / "tse_ew.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG)
    return config


def test_an_experiment_file_becomes_notebooks_and_parameters(published):
    common = {
        "model": "some-model",
        "items": ["data/ML/simple.jsonl"],
        "full_stop": True,
        "capitalise": "yes",
        "limit": 0,  # all, as null says, whatever the notebook's own default
    }
    assert experiments_of(published) == [
        ("20_agreement", common),
        (
            "21_systematic_or_likely",
            common
            | {
                "metric": "EW",
                "verbs": "data/verbs/combined_verb_list.csv",
                "cutoffs_top": [0.1, 1.0],
                "cutoffs_bottom": [0.5, 1e-6],
            },
        ),
    ]


def test_the_notebooks_have_the_parameters_that_experiment_files_set(published):
    limited = CONFIG.replace("max_examples: null", "max_examples: 5")
    published.write_text(limited)
    for notebook, parameters in experiments_of(published):
        assert check_parameters(parameters_of(run.notebook_path(notebook)), parameters) == parameters


@pytest.mark.parametrize(
    "old, new, notebook, parameters",
    [
        ("voting: true", "voting: false", 1, {"metric": "MW"}),
        ("add_trailing_period: true", "add_trailing_period: false", 0, {"full_stop": False}),
        ("word: true", "word: false", 0, {"capitalise": "no"}),
        ("max_examples_per_template: null", "max_examples_per_template: 7", 0, {"limit": 7, "sample": "first"}),
        ("max_examples: null", "max_examples: 5", 1, {"limit": 5, "sample": "first"}),
    ],
)
def test_each_published_key_reaches_its_parameter(published, old, new, notebook, parameters):
    published.write_text(CONFIG.replace(old, new))
    assert experiments_of(published)[notebook][1].items() >= parameters.items()


def test_absent_keys_leave_the_notebook_its_defaults(published):
    published.write_text(
        "dataset: {template_dir: data/ML, template_files: [simple.jsonl]}\nmetrics: {main: }\nmodel: {name: m}\n"
    )
    assert experiments_of(published) == [
        ("21_systematic_or_likely", {"model": "m", "items": ["data/ML/simple.jsonl"], "limit": 0})
    ]


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("dataset:", "datset:", "unknown key datset \\(did you mean dataset\\?\\)"),
        ("template_files:", "template_file:", "unknown key dataset.template_file \\(did you mean template_files\\?\\)"),
        ("cutoffs_bot:", "cutoffs_bottom:", "unknown key metrics.main.cutoffs_bottom"),
        ("  ML:", "  TSE:", "unknown key metrics.TSE"),
        ("word: true", "word: 1", "dataset.capitalize_first_word must be true or false, not 1"),
        ("  - simple.jsonl", "    simple.jsonl", "dataset.template_files must be a list, not 'simple.jsonl'"),
        ("  name: some-model", "  name: null", "has no model.name"),
        ("  - simple.jsonl", "    []", "has no dataset.template_files"),
        ("name: custom", "name: mpe", "dataset.name must be custom"),
        ("use_custom_dataset: true", "use_custom_dataset: false", "use_custom_dataset must be true"),
        ("example_aggregator: mean", "example_aggregator: max", "example_aggregator must be mean"),
        ("- 0.1", "- 1.5", "cutoffs_top holds 1.5"),
        ("- 0.1", "- " + "a lot" * 99, "cutoffs_top holds '(a lot){15}a...; a cutoff"),
        ("- simple.jsonl", "- " + "s" * 500, "there is no data/ML/s{69}...,"),
        ("- 0.1", "- a lot", "cutoffs_top holds 'a lot'"),
        ("template: null", "template: 0", "must be at least 1"),
        ("template: null", "template: all", "must be a whole number or null, not 'all'"),
        ("- simple.jsonl", "- other.jsonl", "there is no data/ML/other.jsonl"),
        ("  - simple.jsonl", "   - [simple.jsonl", "tse_ew.yaml, line \\d+: not valid YAML"),
        ("  ML:", "   ML:", "tse_ew.yaml, line 19: not valid YAML"),  # as in the annotated file of the published README
        (CONFIG, "", "is not an experiment file"),
        (CONFIG, "model: {name: m}\n", "names no metric"),
    ],
)
def test_an_experiment_file_that_cannot_be_followed_is_refused(published, old, new, said):
    assert old in CONFIG
    published.write_text(CONFIG.replace(old, new))
    with pytest.raises(LitmusError, match=said) as refused:
        experiments_of(published)
    assert str(published) in str(refused.value)


def test_a_cap_over_several_files_together_is_refused(published, tmp_path):
    (tmp_path / "data" / "ML" / "more.jsonl").touch()
    published.write_text(
        CONFIG.replace("max_examples: null", "max_examples: 5").replace(
            "- simple.jsonl", "- simple.jsonl\n  - more.jsonl"
        )
    )
    with pytest.raises(LitmusError, match="counts over all template files together"):
        experiments_of(published)


def test_paths_are_found_in_the_published_set(published, tmp_path, monkeypatch):
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    place = tmp_path / "sets" / "refining-tse" / "ML"
    place.mkdir(parents=True)
    (place / "simple_agrmt_all.jsonl").touch()
    published.write_text(CONFIG.replace("simple.jsonl", "simple_agrmt_all.jsonl").replace("lemma_infl", "#"))
    monkeypatch.setenv("LITMUS_DATASETS", str(tmp_path / "sets"))
    assert experiments_of(published)[0][1]["items"] == ["sets/refining-tse/ML/simple_agrmt_all.jsonl"]


def test_white_list_and_black_list(published, tmp_path):
    configs = tmp_path / "configs"
    for name in ("some-model/ML_prep/mw.yaml", "gpt2/ML_prep/mw.yml", "gpt2/notes.txt", ".venv/x.yaml", "gpt2/.x.yml"):
        (configs / name).parent.mkdir(parents=True, exist_ok=True)
        (configs / name).write_text(CONFIG)

    def names(only="", without=""):
        return [str(path.relative_to(configs)) for path in config_files(configs, only, without)]

    assert names() == ["gpt2/ML_prep/mw.yml", "some-model/ML_prep/mw.yaml", "some-model/ML_simple/tse_ew.yaml"]
    assert names(only="some-model") == ["some-model/ML_prep/mw.yaml", "some-model/ML_simple/tse_ew.yaml"]
    assert names(only="gpt2, simple") == ["gpt2/ML_prep/mw.yml", "some-model/ML_simple/tse_ew.yaml"]
    assert names(without="mw") == ["some-model/ML_simple/tse_ew.yaml"]
    assert names(only="some-model", without="simple") == ["some-model/ML_prep/mw.yaml"]
    with pytest.raises(LitmusError, match="none of the 3 experiment files"):
        names(only="roberta")
    (tmp_path / "none" / ".git").mkdir(parents=True)
    (tmp_path / "none" / ".git" / "x.yaml").touch()
    with pytest.raises(LitmusError, match=r"there is no experiment file \(.yaml, .yml\) in .*none; name the file"):
        config_files(tmp_path / "none")


def test_a_folder_goes_on_after_failures_and_tells_each_file(published, tmp_path, monkeypatch, capsys):
    broken = published.with_name("broken.yaml")
    broken.write_text(CONFIG.replace("dataset:", "datset:"))
    other = tmp_path / "configs" / "failing-model" / "ML_simple" / "mw.yaml"
    other.parent.mkdir(parents=True)
    other.write_text(CONFIG.replace("name: some-model", "name: failing-model"))
    ran = []

    def fake(notebook, parameters, out, timeout):
        ran.append((notebook, parameters["model"], parameters.get("limit"), str(out.relative_to(tmp_path))))
        return int(parameters["model"] == "failing-model")

    monkeypatch.setattr(run, "execute", fake)
    monkeypatch.setattr(run, "notebook_path", lambda name: name)
    files = config_files(tmp_path / "configs")
    assert run.run_configs(files, tmp_path / "pages", given={"limit": "5"}) == 1
    assert ran == [
        ("20_agreement", "failing-model", "5", "pages/failing-model/20_agreement--ML_simple--mw"),
        ("21_systematic_or_likely", "failing-model", "5", "pages/failing-model/21_systematic_or_likely--ML_simple--mw"),
        ("20_agreement", "some-model", "5", "pages/some-model/20_agreement--ML_simple--tse_ew"),
        ("21_systematic_or_likely", "some-model", "5", "pages/some-model/21_systematic_or_likely--ML_simple--tse_ew"),
    ]
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.splitlines()] == ["failed", "refused", "done"]
    assert "did you mean dataset?" in told.err
    assert run.run_configs(files[-1:], tmp_path / "pages") == 0


def test_two_files_never_share_a_place(published, tmp_path, monkeypatch, capsys):
    twin = tmp_path / "configs" / "again" / "ML_simple" / "tse_ew.yaml"
    twin.parent.mkdir(parents=True)
    twin.write_text(CONFIG)
    monkeypatch.setattr(run, "execute", lambda *_: 0)
    monkeypatch.setattr(run, "notebook_path", lambda name: name)
    assert run.run_configs([published, twin], tmp_path / "pages") == 1
    assert "would overwrite" in capsys.readouterr().err
