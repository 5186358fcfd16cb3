"""JupyterLab as people use it: `make lab`, open, run all, see a chart, save; offline, in a real browser.

One notebook by default; ``LITMUS_LAB=all`` (``make test-lab``) takes every notebook and every exercise.
"""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import lab
import nbformat
import pytest
from browser import MISSING, available, browser
from conftest import require
from jupytext.compare import compare_notebooks

from lib import pairs
from lib.lab import copy_exercises
from lib.models import bundled
from lib.paths import NOTEBOOKS, ROOT

ALL = os.environ.get("LITMUS_LAB") == "all"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("[0-9_]*.py"))
EXERCISES = sorted(path.stem for path in (NOTEBOOKS / "exercises").glob("*.py"))
CHARTS = {"90_compare_models", "_template"}
"""Notebooks that need not have a chart: without a result in reports/ there is nothing to draw."""
AT_ONCE = {"90_compare_models"}
"""Notebooks without a slow part that would need a progress bar."""


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """The home of someone who has used Jupyter before: another `python3`, which no longer works, stands in two places."""
    folder = tmp_path_factory.mktemp("home")
    for data in (folder / ".local" / "share" / "jupyter", folder / "elsewhere"):
        kernel = data / "kernels" / "python3" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        gone = {"argv": ["/gone/bin/python", "-f", "{connection_file}"], "display_name": "Old", "language": "python"}
        kernel.write_text(json.dumps(gone), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def server(home, tmp_path_factory):
    """One Lab for all tests of this file, its scores empty, its models those of this machine."""
    cache = tmp_path_factory.mktemp("cache")
    (cache / "models").symlink_to(bundled.folder("distilbert-mlm").parent)
    root = lab.repository(tmp_path_factory.mktemp("repository"))
    user = {"JUPYTER_PATH": str(home / "elsewhere"), "JUPYTER_PREFER_ENV_PATH": "0", "LITMUS_DATASETS": ""}
    with lab.server(root, home, LITMUS_CACHE=str(cache), **user) as running:
        yield running


@pytest.fixture(scope="session")
def jupyterlab(server, tmp_path_factory):
    require(available(), MISSING)
    with browser(tmp_path_factory.mktemp("browser"), width=1400, height=1000) as chromium:
        driven = lab.Lab(server, chromium)
        driven.start()
        yield driven


def runs_and_stays_a_pair(jupyterlab, path: str) -> tuple[int, set[str]]:
    """Run a notebook from top to bottom, save it, and compare its halves; returns how many charts are seen, and the bars."""
    script = (jupyterlab.server.root / path).with_suffix(".py")
    before = script.read_bytes()
    jupyterlab.open(path)
    try:
        seconds, bars = jupyterlab.run_all()
        assert jupyterlab.errors() == []
        assert jupyterlab.warnings() == []
        assert all(cell["execution_count"] for cell in jupyterlab.cells() if cell["source"])
        charts = jupyterlab.charts()
        assert all(charts), f"{charts.count(False)} of {len(charts)} charts are empty"
        jupyterlab.save()
    finally:
        jupyterlab.close()
    print(f"\n{path}: {seconds:.0f} s, {len(charts)} charts, progress of {', '.join(sorted(bars)) or 'nothing'}")
    assert script.read_bytes() == before, "running and saving changed the script"
    saved = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert any(cell.get("outputs") for cell in saved.cells), "what ran is kept in the notebook"
    compare_notebooks(saved, pairs.notebook_of(script), fmt="py:percent")
    return len(charts), bars


def test_lab_opens_at_the_first_notebook_and_runs_it_offline(jupyterlab):
    jupyterlab.ready()
    assert jupyterlab.do("return panel.context.path") == "notebooks/00_start_here.ipynb"
    charts, bars = runs_and_stays_a_pair(jupyterlab, "notebooks/00_start_here.ipynb")
    assert charts > 0
    assert bars == {"smollm2-135m-instruct: gaps"}
    assert jupyterlab.browser.outside() == []


def test_what_a_student_types_and_saves_is_in_both_halves_of_the_copy(jupyterlab):
    path = f"notebooks/my_exercises/{EXERCISES[0]}"
    given = (jupyterlab.server.root / "notebooks" / "exercises" / EXERCISES[0]).with_suffix(".py")
    before = given.read_bytes()
    jupyterlab.open(f"{path}.ipynb")
    jupyterlab.write("# a thought of a student")
    jupyterlab.press_save()
    jupyterlab.close()
    mine = (jupyterlab.server.root / path).with_suffix(".py")
    assert "# a thought of a student" in mine.read_text(encoding="utf-8")
    assert pairs.difference(mine) == ""
    assert given.read_bytes() == before


def test_saving_writes_both_halves_of_a_pair(server):
    """The same without a browser, as the page asks the server for it."""
    name = "_template"
    path = f"api/contents/notebooks/{name}.ipynb"
    notebook = server.ask(path)
    [cell] = [cell for cell in notebook["content"]["cells"] if "## Before you go on" in cell["source"]]
    cell["source"] += "\n\nA sentence of a student."
    server.ask(path, "PUT", {"type": "notebook", "format": "json", "content": notebook["content"]})
    source = server.root / "notebooks" / f"{name}.py"
    assert "# A sentence of a student." in source.read_text(encoding="utf-8")
    assert pairs.difference(source) == ""


def test_the_kernel_is_the_python_that_started_lab(server):
    kernels = server.ask("api/kernelspecs")
    assert kernels["default"] == "python3"
    assert kernels["kernelspecs"]["python3"]["spec"]["display_name"] != "Old"
    started = server.ask("api/kernels", "POST", {"name": "python3"})
    ours = f"kernel-{started['id']}.json"
    processes = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    [words] = [line for line in processes.splitlines() if ours in line]
    assert words.startswith(f"{sys.executable} ")


def test_only_this_machine_is_served_and_only_with_the_token(server):
    assert server.url.startswith("http://localhost:")
    assert len(server.token) >= 40
    for path in ("api/contents", "api/kernels"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(server.url + path, timeout=60)
    others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    port = urllib.parse.urlsplit(server.url).port
    for address in others - {"127.0.0.1"}:
        with socket.socket() as trying, pytest.raises(OSError):
            trying.connect((address, port))


@pytest.fixture
def exercise(tmp_path):
    """A folder of notebooks with one exercise in it."""
    (tmp_path / "exercises").mkdir()
    for suffix in (".py", ".ipynb"):
        (tmp_path / "exercises" / f"20_agreement{suffix}").write_text("as given", encoding="utf-8")
    return tmp_path


def test_exercises_are_copied_once_and_a_students_work_stays(exercise):
    mine = exercise / "my_exercises"
    assert copy_exercises(exercise) == [mine / "20_agreement.ipynb", mine / "20_agreement.py"]
    (mine / "20_agreement.py").write_text("solved", encoding="utf-8")
    (mine / "20_agreement.ipynb").unlink()
    assert copy_exercises(exercise) == []
    assert (mine / "20_agreement.py").read_text(encoding="utf-8") == "solved"
    assert not (mine / "20_agreement.ipynb").exists(), (
        "jupytext makes the half that is gone; ours would be another text"
    )


def test_a_new_exercise_comes_beside_the_work_that_is_there(exercise):
    copy_exercises(exercise)
    for suffix in (".py", ".ipynb"):
        (exercise / "exercises" / f"21_new{suffix}").write_text("as given", encoding="utf-8")
    assert {path.stem for path in copy_exercises(exercise)} == {"21_new"}
    assert len(list((exercise / "my_exercises").iterdir())) == 4


def test_without_exercises_nothing_is_made(tmp_path):
    assert copy_exercises(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_nobody_takes_the_copies_for_notebooks_of_the_repository():
    copies = [f"notebooks/my_exercises/{name}" for name in ("20_agreement.py", "20_agreement.ipynb")]
    done = subprocess.run(["git", "check-ignore", *copies], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == copies


if ALL:  # make test-lab; last, for what has run holds outputs, and is no longer the pair that git keeps

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "00_start_here"])
    def test_every_notebook_runs_in_lab(jupyterlab, name):
        charts, bars = runs_and_stays_a_pair(jupyterlab, f"notebooks/{name}.ipynb")
        assert charts or name in CHARTS
        assert bars or name in AT_ONCE
        assert jupyterlab.browser.outside() == []

    @pytest.mark.parametrize("name", EXERCISES)
    @pytest.mark.parametrize("folder", ["my_exercises", "solutions"])
    def test_every_exercise_and_its_solution_runs_in_lab(jupyterlab, folder, name):
        """An exercise nobody has worked on says what is missing, and goes on."""
        runs_and_stays_a_pair(jupyterlab, f"notebooks/{folder}/{name}.ipynb")
        assert jupyterlab.browser.outside() == []
