"""JupyterLab as `make lab` starts it: saving a notebook writes its script too."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from lib import pairs
from lib.paths import NOTEBOOKS, ROOT

NAME = "00_start_here"


@pytest.fixture
def copy(tmp_path):
    """A folder laid out as the repository, with one pair in it."""
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "jupytext.toml", tmp_path)
    for suffix in (".py", ".ipynb"):
        shutil.copy(NOTEBOOKS / f"{NAME}{suffix}", tmp_path / "notebooks")
    return tmp_path


@pytest.fixture
def address(copy):
    """The address and token of a Lab started with the words of the Makefile."""
    [words] = re.findall(r"-m jupyterlab (.*)", (ROOT / "Makefile").read_text())
    words = words.replace('"$(CURDIR)"', str(copy)).split()
    env = {
        **os.environ,
        "HOME": str(copy),
        "JUPYTER_RUNTIME_DIR": str(copy / "runtime"),
        "IPYTHONDIR": str(copy / "ipython"),
    }
    command = [sys.executable, "-m", "jupyterlab", *words, "--no-browser", "--allow-root", "--port=0"]
    with subprocess.Popen(command, cwd=copy, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        yield waited_for(copy / "runtime")
        server.terminate()


def waited_for(runtime: Path) -> tuple[str, str]:
    for _ in range(600):
        for found in runtime.glob("jpserver-*.json"):
            if (text := found.read_text()).endswith("}"):
                server = json.loads(text)
                return server["url"], server["token"]
        time.sleep(0.1)
    raise AssertionError("JupyterLab did not start within a minute")


def ask(address, path, method="GET", content=None):
    url, token = address
    body = json.dumps(content).encode() if content else None
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + path, body, headers, method=method), timeout=60) as answer:
        return json.loads(answer.read())


def test_saving_in_lab_writes_both_halves_of_a_pair(copy, address):
    path = f"api/contents/notebooks/{NAME}.ipynb"
    notebook = ask(address, path)
    cells = notebook["content"]["cells"]
    [cell] = [cell for cell in cells if cell["cell_type"] == "markdown" and "## Before you go on" in cell["source"]]
    cell["source"] += "\n\nA sentence of a student."
    ask(address, path, "PUT", {"type": "notebook", "format": "json", "content": notebook["content"]})
    source = copy / "notebooks" / f"{NAME}.py"
    assert "# A sentence of a student." in source.read_text(encoding="utf-8")
    assert pairs.difference(source) == ""
    assert address[0].startswith("http://localhost:") and address[1], "on this machine only, and with a token"
