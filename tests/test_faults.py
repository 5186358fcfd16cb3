"""What machines do to a run: one sentence, the others go on, nothing finished is lost, the next call repairs.

The faults here are real: signals, limits of the system on files and memory, folders without the right to write, a server that
hangs up. Those of single modules are tried in their tests: a wrong checksum and a damaged model in test_bundled, damaged kept
scores in test_store, a grid whose model fails in test_grid, the limits of a cluster in test_slurm.
"""

import contextlib
import ctypes
import http.server
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import tiny
from conftest import require
from test_bundled import convert, make_wheel
from test_evaluate import written
from test_grid import HEADER, make_root, ran
from test_run import alive, children, write

from lib import listing, results, run
from lib.errors import LitmusError
from lib.models import bundled
from lib.paths import ROOT

# ---- machines that refuse


def with_limits(file: int = 0, memory: int = 0, rights: bool = True):
    """What a child does before it starts: no file larger than so many bytes, so much address space, no rights of root."""

    def limit() -> None:
        if file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if not rights and os.geteuid() == 0:
            # Root writes everywhere by the capability CAP_DAC_OVERRIDE (1); PR_CAPBSET_DROP (24) takes it from what follows.
            ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)

    return limit


def call(module: str, *words: object, cwd: Path, before=None, **environment: str) -> subprocess.CompletedProcess:
    """``python -m lib.MODULE`` as a person calls it, in a folder of her own."""
    environment = {**os.environ, "IPYTHONDIR": str(cwd / ".ipython"), "LITMUS_CACHE": str(cwd / ".cache")} | environment
    environment.pop("LITMUS_DATASETS", None)
    command = [sys.executable, "-m", f"lib.{module}", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, preexec_fn=before)


def one_sentence(done: subprocess.CompletedProcess, code: int) -> str:
    """What a call that went wrong said: a line, and nothing of Python's own."""
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("error: ").removesuffix("\n")


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but hidden ones, with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def halves(folder: Path) -> list[str]:
    """What a killed or failed call could leave behind half written."""
    return [path.name for path in folder.rglob(".*") if path.name.startswith((".n", ".10_tiny", ".index."))]


@pytest.fixture
def read_only(tmp_path):
    """A folder in which a child without the rights of root (``rights=False``) cannot write."""
    folder = tmp_path / "read only"
    folder.mkdir()
    folder.chmod(0o555)
    words = [sys.executable, "-c", "open('x', 'w')"]
    tried = subprocess.run(words, cwd=folder, stderr=subprocess.DEVNULL, preexec_fn=with_limits(rights=False))
    require(tried.returncode, "there is no user here who cannot write everywhere")
    yield folder
    folder.chmod(0o755)


# ---- one notebook

NOTEBOOK = """\
# %% tags=["parameters"]
how = ""
out = ""

# %%
import os
import resource
from pathlib import Path

# %% [markdown]
# ## What goes wrong

# %%
if how == "raised":
    raise MemoryError
if how == "memory":
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))
    import numpy
    numpy.ones(2**30)
if how == "disk":
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    Path(f"{out}.csv").write_text("half" * 5000)
if how == "endless":
    while True:
        pass
if how == "stubborn":
    import re
    re.match(r"(a+)+$", "a" * 60 + "b")
if how == "read only":
    Path(f"{out}.csv").write_text("half")
    Path(out).parent.chmod(0o555)
if how == "wait":
    Path("waiting").write_text(str(os.getpid()))
    while not Path("go").exists():
        pass

# %%
Path(f"{out}.json").write_text("{}")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a notebook, in which another one has its results already."""
    write(tmp_path / "n.py", NOTEBOOK)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "other.json").write_text("finished")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    return tmp_path


def repaired(here: Path) -> None:
    """The next call makes what is missing, and what was finished is as it was."""
    assert run.execute(here / "n.py", {}, here / "pages" / "n") == 0
    assert set(files(here / "pages")) == {"n.ipynb", "n.json", "other.json"}
    assert (here / "pages" / "other.json").read_text() == "finished" and not halves(here)


@pytest.mark.parametrize(
    "how, timeout, said",
    [
        (
            "raised",
            600,
            "the memory of this machine is too small (MemoryError); close other programs, or choose a smaller",
        ),
        ("memory", 600, "the memory of this machine is too small (MemoryError: Unable to allocate 8.00 GiB"),
        ("disk", 600, "the disk takes no more (OSError: [Errno 27] File too large); make room"),
        ("endless", 3, "the cell took longer than the limit of 3 s (--timeout raises it)"),
        ("stubborn", 3, "the cell took longer than the limit of 3 s (--timeout raises it)"),
    ],
    ids=lambda value: str(value)[:10],
)
def test_a_cell_that_the_machine_cannot_run_is_one_sentence_and_the_next_call_repairs(how, timeout, said, here, capsys):
    require(how != "memory" or sys.platform == "linux", "this system does not limit a process's memory")
    assert run.execute(here / "n.py", {"how": how}, here / "pages" / "n", timeout) == 1
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1 and told.startswith("error: n failed ")
    assert told.endswith("; see pages/n.ipynb.\n")
    assert set(files(here / "pages")) == {"n.ipynb", "other.json"}
    assert not [process for process in children(os.getpid()) if alive(process)]  # nor does its kernel go on
    repaired(here)


def test_a_kernel_that_is_killed_from_outside_is_one_sentence_and_the_next_call_repairs(here):
    """As the system does when the memory runs out: SIGKILL, in the middle of a cell."""
    words = [sys.executable, "-m", "lib.run", "n.py", "--set", "how=wait", "--out", "pages/n"]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.kill(kernel_in(here, started), signal.SIGKILL)
    told = started.communicate()[1]
    assert started.returncode == 1 and told.count("\n") == 1
    assert told.startswith("error: n failed in the cell that begins `if how ==") and told.endswith(
        "; see pages/n.ipynb.\n"
    )
    assert "the kernel died, killed from outside, most often because the memory ran out" in told
    assert set(files(here / "pages")) == {"n.ipynb", "other.json"}
    repaired(here)


def kernel_in(folder: Path, started: subprocess.Popen) -> int:
    """The kernel of a notebook that waits in a cell."""
    waiting = folder / "waiting"
    while not (waiting.exists() and waiting.read_text()):
        assert started.poll() is None, started.stderr
        time.sleep(0.05)
    return int(waiting.read_text())
