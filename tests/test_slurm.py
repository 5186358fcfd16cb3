"""The SLURM profile against a make-believe cluster (tests/slurm.py): what is asked of it, and what is told of each end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import slurm
import yaml
from test_grid import TINY, make_root

from lib.grid.cluster import reasons
from lib.grid.running import INDEX
from lib.paths import ROOT

MODELS = """\
name,source,family,revision,grid,parameters_millions,disk_megabytes,memory_megabytes,licence,note
good,org/good,causal,main,yes,9000,1,300,MIT,
bad/model,org/bad,causal,main,yes,9000,1,200,MIT,
slow,org/slow,causal,main,yes,1,1,100,MIT,
"""
SLOW = """\
if model == "slow":
    import time
    time.sleep(3600)

# %%
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A root with a notebook that one model fails and one never ends, a cluster, and the words that start a grid on it."""
    folder = tmp_path_factory.mktemp("slurm")
    root = make_root(folder / "root")
    (root / "data" / "models.csv").write_text(MODELS)
    (root / "notebooks" / f"{INDEX}.py").unlink()
    source = root / "notebooks" / "10_tiny.py"
    assert TINY in source.read_text()
    source.write_text(source.read_text().replace('assert model != "bad', SLOW + 'assert model != "bad'))
    profile = yaml.safe_load((ROOT / "reports" / "profiles" / "slurm" / "config.yaml").read_text())
    profile |= {"slurm-init-seconds-before-status-checks": 2, "latency-wait": 5}  # the profile's own are for people
    (folder / "profile").mkdir()
    (folder / "profile" / "config.yaml").write_text(yaml.safe_dump(profile))
    environment = {name: value for name, value in os.environ.items() if name != "LITMUS_DATASETS"}
    environment |= slurm.install(folder / "cluster")
    (folder / "environment").symlink_to(
        sys.prefix
    )  # its own path may have a space, which jobs of a cluster cannot have
    python = str(folder / "environment" / "bin" / "python")
    words = [python, "-m", "lib.grid", "--root", str(root), "--profile", str(folder / "profile")]
    return root, folder / "cluster", [*words, "--notebooks", "10_tiny"], environment


@pytest.fixture(scope="module")
def done(cluster):
    """What the grid said."""
    root, _, words, environment = cluster
    return subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)


def test_an_environment_with_a_space_in_its_path_is_refused(cluster, tmp_path):
    root, _, words, environment = cluster
    (tmp_path / "an environment").symlink_to(sys.prefix)
    python = str(tmp_path / "an environment" / "bin" / "python")
    done = subprocess.run([python, *words[1:]], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "cannot start a Python whose path has a space; make the environment in another folder.\n"
    )


def job_of(folder: Path, model: str) -> dict:
    (found,) = (job for job in slurm.asked(folder) if f"_{model}_" in job["comment"].replace("/", "_"))
    return found


def test_one_job_a_notebook_and_model_asks_for_what_the_model_needs(cluster, done):
    folder = cluster[1]
    jobs = slurm.asked(folder)
    assert len(jobs) == 3, done.stderr  # pages are rendered where the grid was started
    asked = {model: job_of(folder, model) for model in ("good", "bad--model", "slow")}
    assert [asked[model]["mem"] for model in asked] == ["300", "200", "100"]
    assert [asked[model]["t"] for model in asked] == ["2010", "2010", "30"]
    assert {(job["cpus-per-task"], job["gpus"], job["p"]) for job in jobs} == {("4", "1", "long")}


def test_one_failure_and_one_over_its_time_hide_nothing(cluster, done):
    root, folder, *_ = cluster
    assert done.returncode == 1
    assert [job_of(folder, model)["state"] for model in ("good", "bad--model", "slow")] == [
        "COMPLETED",
        "FAILED",
        "TIMEOUT",
    ]
    assert done.stdout.splitlines()[-4:] == [
        "done     good  10_tiny",
        "failed   bad/model  10_tiny",
        "not run  slow  10_tiny: SLURM ended it (TIMEOUT) at its time limit; ask for more by runtime in the profile",
        f"no index: it could not be made by {INDEX}",
    ]
    assert (root / "reports" / "good" / "10_tiny.html").exists()
    assert "there is no model bad/model" in (root / "reports" / "bad--model" / "10_tiny.FAILED.html").read_text()
    assert not (root / "reports" / "slow" / "10_tiny.json").exists()


def test_a_grid_that_is_stopped_cancels_its_jobs(cluster):
    root, folder, words, environment = cluster
    before = len(slurm.asked(folder))
    waiting = subprocess.Popen(
        [*words, "--models", "slow"],
        cwd=root,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    state = folder / f"job-{before + 1}" / "state"
    while waiting.poll() is None and not (state.exists() and state.read_text() == "RUNNING"):
        time.sleep(0.2)
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate()
    assert waiting.returncode == 130
    assert said.endswith("stopped: what is done is kept, and the next call goes on from there.\n")
    assert (folder / f"job-{before + 1}" / "cancelled").exists()


LOG = """\
Error in rule execute:
    message: SLURM-job '1' failed, SLURM status is: 'OUT_OF_MEMORY'. Reason: Unknown.For further error details see the log.
    jobid: 4
    output: reports/a/10_tiny.json, reports/a/10_tiny.parquet, reports/a/10_tiny.csv
    log: reports/a/10_tiny.ipynb, /logs/rule_execute/a/1.log (check log file(s) for error details)
Error in rule execute:
    message: SLURM-job '3' failed, SLURM status is: 'DEADLINE'. Reason: Unknown.
    output: reports/b c/10_tiny.json, reports/b c/10_tiny.parquet, reports/b c/10_tiny.csv
    log: reports/b c/10_tiny.ipynb, /logs/rule_execute/b/3.log (check log file(s) for error details)
Error in rule execute:
    message: SLURM sbatch failed. The error message was 'sbatch: error: invalid partition specified: moon'.
    sbatch call:
        sbatch --parsable
    jobid: 2
    output: reports/d/10_tiny.json, reports/d/10_tiny.parquet, reports/d/10_tiny.csv
"""


def test_reasons_are_read_in_the_log_of_snakemake():
    assert reasons("nothing of the kind") == {}
    assert reasons(LOG) == {
        "reports/a/10_tiny": "SLURM ended it (OUT_OF_MEMORY) for want of memory; ask for more by mem_mb in the profile, or in "
        "data/models.csv",
        "reports/b c/10_tiny": "SLURM ended it (DEADLINE) and its log says why: /logs/rule_execute/b/3.log",
        "reports/d/10_tiny": "SLURM took no job of it (sbatch: error: invalid partition specified: moon)",
    }
