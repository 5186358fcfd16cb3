"""The grid on tiny notebooks: a failure hides nothing, a second call does nothing, what has changed runs again."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import typer
from click.testing import Result
from filelock import FileLock
from typer.testing import CliRunner

from lib import grid, published
from lib.errors import LitmusError

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
Path(out + ".json").write_text(json.dumps({"model": model, "limit": limit}))
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


def pairs(jobs) -> list[tuple[str, str]]:
    return [(job.model, job.notebook.stem) for job in jobs]


def test_the_grid_is_models_times_notebooks(root):
    jobs = grid.jobs(root)
    assert pairs(jobs) == [
        ("good", "10_tiny"),
        ("good", "11_other"),
        ("bad/model", "10_tiny"),
        ("bad/model", "11_other"),
    ]
    assert jobs[0].notebook == Path("notebooks/10_tiny.py")
    assert jobs[0].out == Path("reports/good/10_tiny")
    assert jobs[0].megabytes == 100
    assert all(len(job.out.parts) == 3 for job in jobs)  # a model with a slash is one folder too


def test_models_and_notebooks_are_narrowed(root):
    jobs = grid.jobs(root, models="other org/new", notebooks="11_other")
    assert pairs(jobs) == [("other", "11_other"), ("org/new", "11_other")]
    assert [job.megabytes for job in jobs] == [grid.UNKNOWN_MEMORY] * 2


def test_settings_go_to_the_notebooks_that_have_them(root):
    first, second = grid.jobs(root, models="good", limit=5, settings="seed=3")
    assert first.settings == {"limit": "5"}
    assert second.settings == {"seed": "3"}
    assert grid.jobs(root, models="good", limit=0)[0].settings == {"limit": "0"}
    assert grid.jobs(root, models="good")[0].settings == {}


def test_the_mark_follows_published_data(root, tmp_path, monkeypatch):
    file = tmp_path / "sets" / published.listed()[0].file
    file.parent.mkdir(parents=True)
    marks = [grid.jobs(root)[0].mark]
    monkeypatch.setenv("LITMUS_DATASETS", str(tmp_path / "sets"))
    for content in ("{}", "{ }"):
        file.write_text(content)
        marks.append(grid.jobs(root)[0].mark)
    assert len(set(marks)) == 3


@pytest.mark.parametrize(
    "choice, said",
    [
        ({"notebooks": "10_tinny"}, "there is no notebook 10_tinny \\(did you mean 10_tiny\\?\\)"),
        ({"notebooks": "90_compare_models"}, "there is no notebook 90_compare_models"),
        ({"settings": "lmit=3"}, "no notebook of the grid has the parameter lmit \\(did you mean limit\\?\\)"),
        ({"settings": "seed=many"}, "parameter seed is a whole number, and many is not"),
        ({"settings": "seed"}, "key=value"),
        ({"models": "/one/org/model /two/org/model"}, "would share the folder reports/org--model"),
    ],
)
def test_a_wrong_choice_is_refused(root, choice, said):
    with pytest.raises(LitmusError, match=said):
        grid.jobs(root, **choice)


def test_an_empty_grid_is_refused(root):
    (root / "data" / "models.csv").write_text(MODELS.replace(",yes,", ",no,"))
    with pytest.raises(LitmusError, match="nothing to run: 0 models"):
        grid.jobs(root)


def test_the_mark_follows_content_and_nothing_else(root):
    def mark(**choice):
        return grid.jobs(root, models="good", notebooks="10_tiny", **choice)[0].mark

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


def test_the_mark_of_a_model_in_a_folder_follows_its_files(root, tmp_path):
    weights = tmp_path / "mine" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"one")
    before = grid.jobs(root, models=str(weights.parent).replace(" ", "\\ "))[0].mark
    weights.write_bytes(b"longer")
    assert grid.jobs(root, models=str(weights.parent).replace(" ", "\\ "))[0].mark != before


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

    good, bad = root / "reports" / "good", grid.jobs(root)[2].out.parent
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
    (job,) = grid.jobs(root, models="good", notebooks="10_tiny")
    words = ["notebooks/10_tiny.py", "--model", "good", "--reports", "reports"]
    assert subprocess.run([sys.executable, "-m", "lib.run", *words, "--mark", job.mark], cwd=root).returncode == 0
    assert grid.kept(root, job)
    assert grid.state(root, job) == "no page"
    assert not grid.kept(root, grid.jobs(root, models="good", notebooks="10_tiny", limit=3)[0])
    assert subprocess.run([sys.executable, "-m", "lib.run", *words, "--set", "limit=3"], cwd=root).returncode == 0
    assert not grid.kept(root, job)
    dry = call_here(root, "--models", "good", "--dry-run")
    assert dry.stdout == "to run   good  10_tiny\n"


def call_here(root, *words) -> Result:
    """As ``call``, in this process: for what ends before snakemake starts."""
    app = typer.Typer()
    app.command()(grid.main)
    return CliRunner().invoke(app, ["--root", str(root), "--notebooks", "10_tiny", *words])


def test_wrong_usage_and_a_second_grid_are_told(root, monkeypatch):
    assert call_here(root, "--set", "lmit=3").exit_code == 2
    assert "there is no profile moon" in call_here(root, "--profile", "moon").stderr
    monkeypatch.setenv("PATH", "/nowhere")
    assert "there is no sbatch" in call_here(root, "--profile", "slurm").stderr
    with FileLock(root / ".snakemake" / "grid.lock"):
        said = call_here(root)
    assert said.exit_code == 2
    assert "another grid is running" in said.stderr
    assert not (root / "reports").exists()


def test_the_slurm_profile_can_be_planned(root):
    profile = grid.ROOT / "reports" / "profiles" / "slurm"
    words = ["--snakefile", str(grid.ROOT / "reports" / "Snakefile"), "--directory", str(root), "--dry-run"]
    words += ["--workflow-profile", str(profile), "--config", "MODELS=good", "NOTEBOOKS=10_tiny", "LIMIT=5"]
    planned = subprocess.run([sys.executable, "-m", "snakemake", *words], capture_output=True, text=True, cwd=root)
    assert planned.returncode == 0, planned.stderr
    said = planned.stdout + planned.stderr
    assert "reports/good/10_tiny.ipynb" in said
    assert "mem_mb=100," in said
    assert "runtime=240" in said
    assert "gpu=1" in said
