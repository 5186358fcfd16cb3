"""What machines do to a run: one sentence, the others go on, nothing finished is lost, the next call repairs.

Faults of single modules are tried in their tests (test_run, test_grid, test_store, test_bundled, test_results).
"""

import os
import subprocess
import sys

import pytest
from test_run import write

from lib.paths import ROOT
from lib.run import _sweep, execute

NOTEBOOK = """\
# %% tags=["parameters"]
how = ""
out = ""

# %%
from pathlib import Path

if how == "memory":
    raise MemoryError
if how == "disk":
    Path(f"{out}.csv").write_text("half")
    raise OSError(28, "No space left on device")
Path(f"{out}.json").write_text("{}")
"""


@pytest.mark.parametrize("how, said", [("memory", "MemoryError"), ("disk", "No space left on device")])
def test_a_model_too_large_and_a_full_disk_are_one_sentence_and_the_next_call_repairs(how, said, tmp_path, capsys):
    notebook = write(tmp_path / "n.py", NOTEBOOK)
    (tmp_path / "other.json").write_text("finished")
    assert execute(notebook, {"how": how}, tmp_path / "n") == 1
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1 and told.startswith("error: n failed ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.ipynb", "n.py", "other.json"]
    assert execute(notebook, {}, tmp_path / "n") == 0
    assert (tmp_path / "n.json").exists() and (tmp_path / "other.json").read_text() == "finished"


def test_a_clock_that_was_set_back_costs_nothing(tmp_path):
    """What is being written now looks as if from the future; it is left alone, and results count by content."""
    half = tmp_path / ".page.csv.1"
    half.touch()
    os.utime(half, (4e9, 4e9))
    _sweep(tmp_path / "page")
    assert half.exists()


def test_a_file_in_the_place_of_the_reports_is_told_before_anything_runs(tmp_path):
    write(tmp_path / "n.py", NOTEBOOK)
    (tmp_path / "reports").write_text("a file")
    words = [sys.executable, "-m", "lib.run", "n.py", "--out", "reports/n"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 2 and done.stderr.startswith("error: results cannot be written to ")
    assert done.stderr.count("\n") == 1 and (tmp_path / "reports").read_text() == "a file"
