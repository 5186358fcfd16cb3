"""The grid on tiny notebooks: a failure hides nothing, a second call does nothing, what has changed runs again."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import tiny
import typer
from click.testing import Result
from test_results import write
from typer.testing import CliRunner

from lib import published, run
from lib.errors import LitmusError
from lib.grid.__main__ import main
from lib.grid.jobs import UNKNOWN_MEMORY, UNKNOWN_MINUTES, jobs, needs
from lib.grid.marks import code_behind
from lib.grid.plan import duration, estimate
from lib.grid.running import locked
from lib.grid.state import kept, stamps, state
from lib.paths import NOTEBOOKS, ROOT

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

# %% [markdown]
# # {title}

# %% tags=["parameters"]
"""

TINY = """\
model = "none"
limit = 0
out = ""

# %%
import json
from pathlib import Path

with Path("ran.log").open("a") as log:
    log.write(f"{Path(out).stem} {model} {limit}\\n")

# %%
assert model != "bad/model", f"there is no model {model}"

# %%
for suffix in (".parquet", ".csv"):
    Path(out + suffix).write_text("a result")
result = {"notebook": Path(out).stem, "model": model, "headline": {}, "summary": [], "limit": limit}
Path(out + ".json").write_text(json.dumps(result))
"""

INDEX = """\
reports = ""
out = ""

# %%
from pathlib import Path

for page in sorted(Path(reports).glob("*/*.ipynb")):
    state = "done" if page.with_suffix(".json").exists() else "failed"
    print("cell:", page.parent.name, page.stem, state)
"""

MODELS = """\
name,source,family,revision,grid,parameters_millions,disk_megabytes,memory_megabytes,licence,note
good,org/good,causal,main,yes,1,1,100,MIT,
bad/model,org/bad,causal,main,yes,1,1,900000000,MIT,more memory than any machine has
other,org/other,masked,main,no,1,1,,MIT,
"""


def make_root(root: Path) -> Path:
    """A folder like the repository, with two tiny notebooks, an index and three models of which one is bad."""
    (root / "notebooks").mkdir(parents=True)
    for name, source in {
        "10_tiny": TINY,
        "11_other": TINY.replace("limit", "seed"),
        "90_compare_models": INDEX,
    }.items():
        (root / "notebooks" / f"{name}.py").write_text(HEADER.format(title=name) + source)
    (root / "notebooks" / "_template.py").write_text(HEADER.format(title="not in the grid") + TINY)
    (root / "data" / "items").mkdir(parents=True)
    (root / "data" / "items" / "pairs.jsonl").write_text("{}\n")
    (root / "data" / "models.csv").write_text(MODELS)
    return root


@pytest.fixture(autouse=True)
def no_published_data(monkeypatch, tmp_path_factory):
    """Whatever data lies on this machine, the tiny grid uses none."""
    monkeypatch.delenv("LITMUS_DATASETS", raising=False)
    monkeypatch.setattr(published, "PUBLISHED", tmp_path_factory.mktemp("nothing"))


# ---- which jobs there are


@pytest.fixture
def root(tmp_path):
    return make_root(tmp_path / "a root")


def pairs(grid) -> list[tuple[str, str]]:
    return [(job.model, job.notebook.stem) for job in grid]


def test_the_grid_is_models_times_notebooks(root):
    grid = jobs(root)
    assert pairs(grid) == [
        ("good", "10_tiny"),
        ("good", "11_other"),
        ("bad/model", "10_tiny"),
        ("bad/model", "11_other"),
    ]
    assert grid[0].notebook == Path("notebooks/10_tiny.py")
    assert grid[0].out == Path("reports/good/10_tiny")
    assert grid[0].megabytes == 100
    assert all(len(job.out.parts) == 3 for job in grid)  # a model with a slash is one folder too


def test_models_and_notebooks_are_narrowed(root):
    grid = jobs(root, models=["other", "org/new"], notebooks=["11_other"])
    assert pairs(grid) == [("other", "11_other"), ("org/new", "11_other")]
    assert [job.megabytes for job in grid] == [UNKNOWN_MEMORY] * 2


def test_settings_go_to_the_notebooks_that_have_them(root):
    first, second = jobs(root, models=["good"], limit=5, settings=["seed=3"])
    assert first.settings == {"limit": "5"}
    assert second.settings == {"seed": "3"}
    assert jobs(root, models=["good"], limit=0)[0].settings == {"limit": "0"}
    assert jobs(root, models=["good"])[0].settings == {}


def test_the_mark_follows_published_data(root, tmp_path, monkeypatch):
    file = tmp_path / "sets" / published.listed()[0].file
    file.parent.mkdir(parents=True)
    marks = [jobs(root)[0].mark]
    monkeypatch.setenv("LITMUS_DATASETS", str(tmp_path / "sets"))
    for content in ("{}", "{ }"):
        file.write_text(content)
        marks.append(jobs(root)[0].mark)
    assert len(set(marks)) == 3


@pytest.mark.parametrize(
    "choice, said",
    [
        ({"notebooks": ["10_tinny"]}, "there is no notebook 10_tinny \\(did you mean 10_tiny\\?\\)"),
        ({"notebooks": ["90_compare_models"]}, "there is no notebook 90_compare_models"),
        ({"settings": ["lmit=3"]}, "no notebook of the grid has the parameter lmit \\(did you mean limit\\?\\)"),
        ({"settings": ["seed=many"]}, "parameter seed is a whole number, and many is not"),
        ({"settings": ["seed"]}, "key=value"),
        ({"limit": -3}, "parameter limit is 0 or more, and -3 is not"),
        ({"settings": ["limit=-3"]}, "parameter limit is 0 or more, and -3 is not"),
        ({"settings": ["seed=-1"]}, "parameter seed is 0 or more, and -1 is not"),
        ({"models": ["org/a", "a,b"]}, "there is no model a,b: nothing lies there, and it is no hub id; names are sep"),
        ({"models": ["./mine"]}, "there is no model ./mine: nothing lies there"),
        ({"models": ["/no/such/folder@step1"]}, "there is no model /no/such/folder@step1: nothing lies there"),
        ({"settings": ["limit=5"], "limit": 5}, "limit is given twice"),
        ({"settings": ["seed=" + "9x" * 500]}, "is a whole number, and (9x){38}9... is not"),
        ({"notebooks": ["n" * 500]}, "there is no notebook n{77}... in"),
    ],
)
def test_a_wrong_choice_is_refused(root, choice, said):
    with pytest.raises(LitmusError, match=said):
        jobs(root, **choice)


def test_two_models_of_one_folder_are_refused(root):
    (root / "data" / "models.csv").write_text(MODELS.replace("other,", "bad--model,"))
    with pytest.raises(LitmusError, match="bad/model and bad--model would share the folder reports/bad--model"):
        jobs(root, models=["bad/model", "bad--model"])


def test_an_empty_grid_is_refused(root):
    (root / "data" / "models.csv").write_text(MODELS.replace(",yes,", ",no,"))
    with pytest.raises(LitmusError, match="nothing to run: 0 models"):
        jobs(root)


def test_the_mark_follows_content_and_nothing_else(root):
    def mark(**choice):
        return jobs(root, models=["good"], notebooks=["10_tiny"], **choice)[0].mark

    def changed(path, old, new):
        before, text = mark(), (root / path).read_text()
        assert old in text
        (root / path).write_text(text.replace(old, new))
        after = mark()
        (root / path).write_text(text)
        assert mark() == before
        return after != before

    for path in root.rglob("*.*"):
        os.utime(path, (1, 1))
    assert changed("notebooks/10_tiny.py", "# 10_tiny", "# A better title")
    assert changed("data/items/pairs.jsonl", "{}", "{ }")
    assert changed("data/models.csv", "good,org/good,causal,main", "good,org/good,causal,v2")
    assert not changed("notebooks/11_other.py", "# 11_other", "# A better title")
    assert not changed("data/models.csv", "other,org/other", "other,org/elsewhere")
    assert mark(limit=5) != mark(limit=6) != mark()


def test_a_result_is_stale_when_code_behind_its_notebook_changes_and_not_for_other_code():
    """What is imported through others counts, and all families of models; what only runs notebooks does not."""
    agreement = {path.relative_to(ROOT / "lib").as_posix() for path in code_behind(NOTEBOOKS / "20_agreement.py")}
    assert {"scoring.py", "metrics.py", "stats.py", "charts.py", "models/masked.py", "models/recurrent.py"} <= agreement
    assert not {"run.py", "perturb.py", "cloze/metrics.py"} & agreement
    assert not [name for name in agreement if name.startswith(("grid/", "report/"))]
    assert "perturb.py" in {path.name for path in code_behind(NOTEBOOKS / "30_inference.py")}


def test_the_mark_of_a_model_in_a_folder_follows_its_files(root, tmp_path):
    weights = tmp_path / "mine" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"one")
    before = jobs(root, models=[str(weights.parent)])[0].mark
    weights.write_bytes(b"longer")
    assert jobs(root, models=[str(weights.parent)])[0].mark != before


def test_the_mark_of_a_model_in_one_file_follows_it(root, tmp_path):
    checkpoint = tmp_path / "model.pt"
    marks = set()
    for content in ("one", "longer"):
        checkpoint.write_text(content)
        marks.add(jobs(root, models=[str(checkpoint)])[0].mark)
    assert len(marks) == 2


def test_the_mark_follows_a_listed_models_folder(root, tmp_path):
    weights = root / "trained here" / "model.safetensors"
    weights.parent.mkdir()
    (root / "data" / "models.csv").write_text(MODELS.replace("org/good", "trained here"))
    marks = set()
    for content in ("one", "longer"):
        weights.write_text(content)
        marks.add(jobs(root)[0].mark)
    assert len(marks) == 2


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("name", ["items", "verbs"])
def test_the_mark_follows_the_files_that_parameters_name(root, name, folder):
    """Paths count from the root, where notebooks run; a notebook's default counts too."""
    default = "[]" if name == "items" else '""'
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("limit = 0", f"limit = 0\n{name} = {default}"))
    file = root / "my own" / "set, one.jsonl"
    file.parent.mkdir()
    value = str((file.parent if folder else file).relative_to(root))

    def mark():
        setting = f'{name}=["{value}"]' if name == "items" else f"{name}={value}"
        return jobs(root, notebooks=["10_tiny"], settings=[setting])[0].mark

    marks = [mark()]
    for content in ("a", "b"):
        file.write_text(content)
        marks.append(mark())
    os.utime(file, (1, 1))
    assert len(set(marks)) == 3
    assert mark() == marks[-1]
    source.write_text(source.read_text().replace(default, f'["{value}"]' if name == "items" else f'"{value}"'))
    by_default = jobs(root)[0].mark
    file.write_text("c")
    assert jobs(root)[0].mark != by_default


def test_the_mark_follows_the_data_that_the_parameter_datasets_names(root):
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("limit = 0", 'limit = 0\ndatasets = ""'))
    file = root / "sets" / published.listed()[0].file
    file.parent.mkdir(parents=True)
    marks = set()
    for content in ("{}", "{ }"):
        file.write_text(content)
        marks.add(jobs(root, settings=["datasets=sets"])[0].mark)
    assert len(marks) == 2
    with pytest.raises(LitmusError, match="elsewhere, named by the parameter datasets, is not a folder"):
        jobs(root, settings=["datasets=elsewhere"])


# ---- revisions


def test_each_revision_is_a_model_of_its_own(root):
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("limit = 0", 'limit = 0\nrevision = "main"'))
    for name in ("checkpoint-1", "checkpoint-2"):
        (root / "series" / name).mkdir(parents=True)
    models = ["org/new", "org/new@step1", "org/new@refs/pr/1", "series@checkpoint-1"]
    grid = jobs(root, models=models, notebooks=["10_tiny"])
    assert [job.model for job in grid] == models
    folders = [job.out.parent.name for job in grid]
    assert folders[:2] == ["org--new", "org--new@step1"]
    assert folders[2].startswith("org--new@pr--1--") and folders[3] == "series@checkpoint-1"
    assert len({job.mark for job in grid}) == 4
    before = grid[3].mark
    (root / "series" / "checkpoint-1" / "model.safetensors").write_bytes(b"weights")
    assert jobs(root, models=models, notebooks=["10_tiny"])[3].mark != before
    (by_setting,) = jobs(root, models=["org/new"], notebooks=["10_tiny"], settings=["revision=step1"])
    assert by_setting.out == grid[1].out


def test_a_revision_that_cannot_be_meant_is_refused(root):
    with pytest.raises(LitmusError, match="10_tiny has no parameter revision, which good@v2 needs"):
        jobs(root, models=["good@v2"])
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("limit = 0", 'limit = 0\nrevision = "main"'))
    for word in ("org/new@", "@step1"):
        with pytest.raises(LitmusError, match=f"{word} is not of the form model@revision"):
            jobs(root, models=[word], notebooks=["10_tiny"])
    with pytest.raises(LitmusError, match="revision of org/new is said twice: by @a and by --set revision="):
        jobs(root, models=["org/new@a"], notebooks=["10_tiny"], settings=["revision=b"])


def test_a_folder_with_an_at_sign_is_a_folder(root, monkeypatch):
    (root / "my@model").mkdir()
    monkeypatch.chdir(root)
    (job,) = jobs(root, models=["my@model"], notebooks=["10_tiny"])
    assert job.out.parent.name.startswith("my-model--")


# ---- what a model needs, and how long it takes


def test_what_a_model_needs_follows_its_size(root, tmp_path):
    assert needs({"parameters_millions": "135", "memory_megabytes": "1600"}, []) == (1600, 60, 135)
    assert needs({"parameters_millions": "1558", "memory_megabytes": "9000"}, []) == (9000, 373, 1558)
    assert needs(None, []) == (UNKNOWN_MEMORY, UNKNOWN_MINUTES, None)
    on_disk = [("config.json", 900, 0), ("model.safetensors", 400_000_000, 0)]
    assert needs(None, on_disk) == (2000, 52, 100)
    (tmp_path / "model.safetensors").write_bytes(bytes(4_000_000))
    assert jobs(root, models=[str(tmp_path)])[0].millions == 1


def test_an_estimate_says_from_what_it_comes(root):
    job = jobs(root, models=["good"], notebooks=["10_tiny"])[0]._replace(millions=300)
    mine, other, third = ("good", "10_tiny"), ("other", "10_tiny"), ("third", "10_tiny")
    sizes = {"other": 100.0, "third": 300.0}
    assert estimate(job, {mine: 70.0, other: 30.0}, sizes) == (70, "its last run")
    # 30 s for 100 millions, of which 20 to start: 20 + 3 x 10; and 90 s as they are.
    assert estimate(job, {other: 30.0}, sizes) == (50, "other models, by size")
    assert estimate(job, {other: 30.0, third: 90.0}, sizes).seconds == 70
    assert estimate(job, {("other", "11_other"): 30.0}, sizes) == (230, "its size alone")
    assert estimate(job._replace(millions=None), {other: 30.0}, sizes) == (None, "size not known")


def test_a_dry_run_says_what_would_run_and_roughly_how_long(root):
    folder = root / "reports" / "good"
    folder.mkdir(parents=True)
    (folder / "10_tiny.json").write_text(json.dumps({"provenance": {"seconds": 600.4}}))
    (folder / "11_other.json").write_text("{}")  # of another program: no times
    dry = call_here(root, "--models", "good other org/new", "--dry-run")
    assert dry.stdout.splitlines() == [
        "to run   good     10_tiny                 about 10 min (its last run)",
        "to run   other    10_tiny                 about 10 min (other models, by size)",
        "to run   org/new  10_tiny                 no estimate (size not known)",
        "to run: 3 of 3, about 20 min one after another, 10 min with 2 at a time; without an estimate: 1",
        "An estimate, from: its last run 1, other models, by size 1, size not known 1. "
        "Other settings or another machine take other times.",
    ]
    assert [duration(seconds) for seconds in (0.2, 89, 90, 5399, 9000)] == [
        "1 s",
        "89 s",
        "2 min",
        "90 min",
        "2.5 h",
    ]


# ---- data/models.csv as spreadsheets save it


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "line 1: there is no column name, source"),
        (MODELS.replace(",", ";"), "line 1: there is no column name, source"),
        (MODELS.replace("memory_megabytes", "memory"), "line 1: there is no column memory_megabytes"),
        (MODELS.encode("utf-16"), "line 1: this is not UTF-8 text; save it as CSV UTF-8"),
        (MODELS.replace("any machine", "any größe").encode("latin-1"), "line 3: this is not UTF-8 text"),
        (MODELS.replace("1,100,MIT", '1,"1,2",MIT'), "line 2: memory_megabytes is a whole number or empty, not '1,2'"),
        (MODELS.replace("1,100,MIT", "1,-5,MIT"), "line 2: memory_megabytes is a whole number or empty, not '-5'"),
        (MODELS.replace("yes,1,1,100", "yes,1M,1,100"), "line 2: parameters_millions is a number or empty, not '1M'"),
        (MODELS.replace("other,org", "good,org"), "line 4: good is there twice"),
        (MODELS.replace("yes,1,1,100", "Yes,1,1,100"), "line 2: grid is yes or no, not 'Yes'"),
        (MODELS.replace("good,org/good", ",org/good"), "line 2: the name or the source is empty"),
        (MODELS.replace("org/good,", "org/good"), "line 2: this row has not 10 fields"),
        (MODELS.replace("more memory", "more, memory"), "line 3: this row has not 10 fields"),
        (MODELS + '"never closed', "after line 4: this is not CSV"),
    ],
)
def test_a_list_of_models_that_is_no_table_is_refused(root, content, said):
    path = root / "data" / "models.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    told = call_here(root, "--dry-run")
    assert told.exit_code == 2
    assert told.stderr.startswith(f"error: {path}, {said}")
    assert told.stderr.count("\n") == 1


def test_a_list_of_models_may_begin_with_a_mark_of_its_encoding(root):
    (root / "data" / "models.csv").write_text(MODELS, encoding="utf-8-sig")
    assert jobs(root)[0].model == "good"


# ---- the grid itself


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """A root in which the grid has run once, and what that call said."""
    root = make_root(tmp_path_factory.mktemp("grid") / "a root")
    return root, call(root)


def call(root, *words) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name != "LITMUS_DATASETS"}
    command = [sys.executable, "-m", "lib.grid", "--root", str(root), "--notebooks", "10_tiny", *words]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


def ran(root) -> list[str]:
    """What ran since the last look."""
    lines = (root / "ran.log").read_text().splitlines() if (root / "ran.log").exists() else []
    (root / "ran.log").unlink(missing_ok=True)
    return lines


def index_cells(root) -> list[str]:
    cells = nbformat.read(root / "reports" / "index.ipynb", as_version=4).cells
    text = "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))
    return [line.removeprefix("cell: ") for line in text.splitlines()]


def test_a_failing_model_hides_nothing(tried):
    root, said = tried
    assert said.returncode == 1
    assert "done     good  10_tiny" in said.stdout
    assert "failed   bad/model  10_tiny" in said.stdout
    assert said.stdout.endswith("the index: reports/index.html\n")
    assert 'failed at `assert model != "bad/model"' in said.stderr
    assert "AssertionError: there is no model bad/model" in said.stderr

    good, bad = root / "reports" / "good", jobs(root)[2].out.parent
    assert {path.name for path in good.iterdir()} == {
        "10_tiny.csv",
        "10_tiny.html",
        "10_tiny.ipynb",
        "10_tiny.json",
        "10_tiny.parquet",
    }
    assert {path.name for path in (root / bad).iterdir()} == {"10_tiny.FAILED.html", "10_tiny.ipynb"}
    assert "there is no model bad/model" in (root / bad / "10_tiny.FAILED.html").read_text()
    assert index_cells(root) == [f"{bad.name} 10_tiny failed", "good 10_tiny done"]
    assert (root / "reports" / "index.html").exists()
    assert sorted(ran(root)) == ["10_tiny bad/model 0", "10_tiny good 0"]


def test_a_second_call_does_nothing_even_if_files_were_touched(tried):
    root, _ = tried
    pages = [*sorted((root / "reports" / "good").iterdir()), root / "reports" / "index.html"]
    stamps = [path.stat().st_mtime_ns for path in pages]
    for path in (root / "notebooks").iterdir():
        path.touch()
    ran(root)
    assert call(root).returncode == 1
    assert ran(root) == ["10_tiny bad/model 0"]  # what failed is tried again
    assert [path.stat().st_mtime_ns for path in pages] == stamps


def test_a_second_call_says_that_there_is_nothing_to_do(tried):
    root, _ = tried
    again = call(root, "--models", "good")
    assert (again.returncode, again.stdout) == (0, "nothing to do: 1 result is fresh\nthe index: reports/index.html\n")
    assert call_here(root, "--models", "good", "--dry-run").stdout.endswith("nothing to run: 1 result is fresh\n")
    beside = call(root, "--models", "good other")
    assert "\ndone     other  10_tiny\n1 further result is fresh\n" in f"\n{beside.stdout}"
    (root / "reports" / "good" / "10_tiny.html").unlink()
    assert "nothing to run: 1 result is fresh, 1 page rendered again\n" in call(root, "--models", "good").stdout


def test_a_changed_sentence_runs_that_notebook_again(tried):
    root, _ = tried
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("# # 10_tiny", "# # A better title"))
    ran(root)
    assert call(root, "--models", "good").returncode == 0
    assert ran(root) == ["10_tiny good 0"]
    assert "A better title" in (root / "reports" / "good" / "10_tiny.html").read_text()


def test_a_result_made_by_hand_with_other_settings_is_not_taken_for_the_grids(tried):
    root, _ = tried
    (job,) = jobs(root, models=["good"], notebooks=["10_tiny"])
    words = ["notebooks/10_tiny.py", "--model", "good", "--reports", "reports"]
    assert subprocess.run([sys.executable, "-m", "lib.run", *words, "--mark", job.mark], cwd=root).returncode == 0
    assert kept(root, job)
    assert state(root, job) == "no page"
    assert not kept(root, jobs(root, models=["good"], notebooks=["10_tiny"], limit=3)[0])
    assert subprocess.run([sys.executable, "-m", "lib.run", *words, "--set", "limit=3"], cwd=root).returncode == 0
    assert not kept(root, job)
    dry = call_here(root, "--models", "good", "--dry-run")
    assert dry.stdout.startswith("to run   good  10_tiny")


def call_here(root, *words) -> Result:
    """As ``call``, in this process: for what ends before snakemake starts."""
    app = typer.Typer()
    app.command()(main)
    return CliRunner().invoke(app, ["--root", str(root), "--notebooks", "10_tiny", *words])


def damaged(path: Path, how: str) -> None:
    """Something else in the place of a file of results."""
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "device":
        path.symlink_to("/dev/zero")
    elif how != "missing":
        path.write_bytes(
            {"cut": b'{"notebook": "10_t', "empty": b"", "bytes": b"\xff" * 99, "of others": b'{"name": 1}'}[how]
        )


@pytest.mark.parametrize("how", ["cut", "empty", "bytes", "of others", "pipe", "device", "missing"])
@pytest.mark.parametrize("suffix", run.WRITTEN)
def test_a_damaged_result_is_not_kept_and_a_whole_one_is(root, suffix, how):
    (job,) = jobs(root, models=["good"], notebooks=["10_tiny"])
    result = write(root / job.out)
    metadata = {"metadata": {"litmus": {"mark": job.mark}}}
    result.with_suffix(".ipynb").write_text(json.dumps(metadata))
    result.with_suffix(".html").touch()
    assert kept(root, job) and state(root, job, stamps(root, [job])) == "done"
    damaged(result.with_suffix(suffix), how)
    assert not kept(root, job) and state(root, job, stamps(root, [job])) == "not run"
    dry = call_here(root, "--models", "good", "--dry-run")
    assert dry.stdout.startswith("to run   good  10_tiny") and "to run: 1 of 1" in dry.stdout
    assert result.with_suffix(".html").exists()
    damaged(result.with_suffix(".ipynb"), "pipe" if how == "pipe" else "empty")
    assert not kept(root, job)


def test_results_of_every_damage_are_made_again(root):
    """Of three models at once; and what a second call finds is whole."""
    (root / "data" / "models.csv").write_text(MODELS.replace("bad/model", "third"))
    models = ["good", "other", "third"]
    words = ["--models", "good other third"]
    assert call(root, *words).returncode == 0
    outs = [root / job.out for job in jobs(root, models=models, notebooks=["10_tiny"])]
    for out, suffix, how in zip(outs, (".json", ".json", ".csv"), ("cut", "pipe", "missing"), strict=True):
        damaged(out.with_name(f"10_tiny{suffix}"), how)
    os.mkfifo(root / "reports" / "good" / "20_other.json")  # of nobody: no harm
    ran(root)
    said = call(root, *words)
    assert said.returncode == 0 and len(ran(root)) == 3, said.stderr
    assert call(root, *words).stdout.startswith("nothing to do: 3 results are fresh\n") and not ran(root)


# ---- models as they lie on disk


def test_a_broken_model_beside_good_ones_and_the_states_of_one_that_trains(tmp_path):
    """Real folders through a real notebook: what can run runs, each state is a model and revision of the results."""
    root = make_root(tmp_path / "a root")
    for path in (root / "notebooks").iterdir():
        path.unlink()
    shutil.copy(NOTEBOOKS / "00_start_here.py", root / "notebooks")
    for name in ("checkpoint-2", "checkpoint-10"):
        shutil.copytree(tiny.folder("gpt2"), root / "runs" / "mine" / name)
    shutil.copytree(tiny.folder("bert-cased"), root / "broken")
    (root / "broken" / "model.safetensors").unlink()
    models = "broken runs/mine@checkpoint-2 runs/mine@checkpoint-10"
    command = [sys.executable, "-m", "lib.grid", "--root", str(root), "--models", models]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert said.returncode == 1
    ends = [line.split()[0] for line in said.stdout.splitlines() if line.endswith("  00_start_here")]
    assert ends == ["failed", "done", "done"], said.stderr
    assert "broken could not be loaded" in said.stderr
    rows = pd.concat(pd.read_parquet(path) for path in (root / "reports").glob("*/*.parquet"))
    assert {Path(model) for model in rows["model"]} == {root / "runs" / "mine"}
    assert set(rows["revision"]) == {"checkpoint-2", "checkpoint-10"}
    assert len(list((root / "reports").glob("*/*.FAILED.html"))) == 1


def test_a_dry_run_promises_nothing_that_is_refused_at_once(root, monkeypatch):
    """In the sentence of the real run, with nothing made and nothing run."""
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", "/nowhere")
    (root / "reports" / "good" / "10_tiny.json").mkdir(parents=True)
    for words, said in (
        (["--models", "good,other"], "there is no model good,other: nothing lies there, and it is no hub id"),
        (["--models", "/no/model"], "there is no model /no/model: nothing lies there"),
        (
            ["--models", "./my model"],
            "there is no model ./my: nothing lies there, and it is no hub id; names are separated",
        ),
        (["--set", "limit=-1"], "parameter limit is 0 or more, and -1 is not"),
        (["--profile", "moon"], "there is no profile moon: name default, slurm"),
        (["--profile", "n" * 500], "there is no profile " + "n" * 77 + "...: name default"),
        (["--profile", "slurm"], "there is no sbatch on this machine"),
        (["--reports", "/dev/null"], "results cannot be written to /dev/null/good/10_tiny (Not a directory)"),
        (["--reports", "x" * 300], "(File name too long); name another place by --out or --reports"),
        (["--models", "good"], "(10_tiny.json is a folder; move it away)"),
    ):
        dry, real = call_here(root, *words, "--dry-run"), call_here(root, *words)
        assert said in dry.stderr and (dry.exit_code, dry.stderr) == (real.exit_code, real.stderr)
        assert dry.exit_code == 2 and dry.stderr.count("\n") == 1 and not dry.stdout
    assert [path.name for path in (root / "reports").rglob("*")] == ["good", "10_tiny.json"] and not ran(root)


def test_a_path_with_a_space_stands_in_quotation_marks_or_alone(root, monkeypatch):
    monkeypatch.chdir(root)
    (root / "my model").mkdir()
    dry = call_here(root, "--models", "'my model' good", "--dry-run")
    assert [line[9:].split("  ")[0] for line in dry.stdout.splitlines()[:2]] == [str(root / "my model"), "good"]
    alone = call_here(root, "--models", "my model", "--dry-run")  # nothing else that it could be
    assert alone.stdout.startswith(f"to run   {root / 'my model'}  10_tiny") and "to run: 1 of 1" in alone.stdout


def test_wrong_usage_and_a_second_grid_are_told(root, monkeypatch):
    assert call_here(root, "--set", "lmit=3").exit_code == 2
    assert "there is no profile moon" in call_here(root, "--profile", "moon").stderr
    monkeypatch.setenv("PATH", "/nowhere")
    assert "there is no sbatch" in call_here(root, "--profile", "slurm").stderr
    with locked(root):
        said = call_here(root)
    assert said.exit_code == 2
    assert "another grid is running" in said.stderr
    assert not (root / "reports").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (["--models", "'unbalanced"], "--models 'unbalanced cannot be read (no closing quotation)"),
        (["--limit", "-3", "--dry-run"], "parameter limit is 0 or more, and -3 is not"),
        (["--reports", "/dev/null/x"], "results cannot be written to /dev/null/x/good/10_tiny (Not a directory)"),
        (["--reports", "x" * 300], "(File name too long); name another place by --out or --reports"),
        (["--models", "x" * 300], "there is no model " + "x" * 77 + "...: nothing lies there, and it is no hub id"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_sentence(root, monkeypatch, words, said):
    monkeypatch.chdir(root)
    told = call_here(root, *words)
    assert told.exit_code == 2
    assert said in told.stderr
    assert told.stderr.count("\n") == 1


def test_listed_and_bundled_names_come_before_folders(root, monkeypatch):
    for name in ("good", "distilbert-mlm", "mine"):
        (root / name).mkdir()
    monkeypatch.chdir(root)
    dry = call_here(root, "--models", "good distilbert-mlm mine", "--dry-run")
    lines = [line for line in dry.stdout.splitlines() if line.startswith("to run   ")]
    assert [line[9:].split("  ")[0] for line in lines] == ["good", "distilbert-mlm", str(root / "mine")]


def test_a_near_miss_of_a_name_is_pointed_out_and_taken_for_a_model_of_the_hub(root):
    dry = call_here(root, "--models", "god other org/god", "--dry-run")
    assert dry.exit_code == 0
    assert dry.stderr == (
        "note: god is not in data/models.csv (did you mean good?); it is taken for a model of the hub.\n"
    )
    assert "to run   god" in dry.stdout


def test_values_reach_the_notebook_as_they_were_given(root):
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("limit = 0", 'limit = 0\nitems = []\nhow = ""'))
    source.write_text(source.read_text().replace('"limit": limit}', '"items": items, "how": how}'))
    settings = ["--set", 'items=["a b.jsonl", "it\'s; {c}"]', "--set", "how=two  words, $HOME 'and' {more}"]
    said = call(root, "--models", "good", *settings)
    assert said.returncode == 0, said.stderr
    result = json.loads((root / "reports" / "good" / "10_tiny.json").read_text())
    assert result["items"] == ["a b.jsonl", "it's; {c}"]
    assert result["how"] == "two  words, $HOME 'and' {more}"


def test_a_snakemake_that_cannot_start_says_why(root, tmp_path):
    """What failed before is not told as if it had failed now."""
    old = root / "reports" / "good" / "10_tiny.ipynb"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({"metadata": {"papermill": {"exception": True}}}))
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "config.yaml").write_text("quiet: [all]\ncores: 1\nscheduler: greedy\ntouch-nothing: 1\n")
    said = call(root, "--models", "good", "--profile", str(tmp_path / "profile"))
    assert said.returncode == 2
    assert "error: snakemake ended before any notebook ran: " in said.stderr
    assert "touch-nothing" in said.stderr.splitlines()[-1]
    assert "failed" not in said.stdout
    (job,) = jobs(root, models=["good"], notebooks=["10_tiny"])
    assert state(root, job) == "failed"
    assert state(root, job, stamps(root, [job])) == "not run"


def test_the_lock_is_held_as_long_as_snakemake_runs(root):
    """Killing the grid alone leaves snakemake at work, and no second one may start beside it."""
    with locked(root) as lock:
        process = subprocess.Popen(["sleep", "60"], pass_fds=[lock])
    with pytest.raises(LitmusError, match="another grid is running"), locked(root):
        pass
    process.kill()
    process.wait()
    with locked(root):
        pass


def test_the_slurm_profile_can_be_planned(root):
    profile = ROOT / "reports" / "profiles" / "slurm"
    words = ["--snakefile", str(ROOT / "reports" / "Snakefile"), "--directory", str(root), "--dry-run"]
    words += ["--workflow-profile", str(profile), "--config", "models=[good]", "notebooks=[10_tiny]", "limit=5"]
    planned = subprocess.run([sys.executable, "-m", "snakemake", *words], capture_output=True, text=True, cwd=root)
    assert planned.returncode == 0, planned.stderr
    said = planned.stdout + planned.stderr
    assert "reports/good/10_tiny.ipynb" in said
    assert "mem_mb=100," in said
    assert "runtime=30" in said
    assert "gpu=1" in said
