"""A real JupyterLab for tests: started by the words of ``make lab``, driven in a real browser."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browser import Browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from lib import pairs
from lib.paths import ROOT

OFFLINE = "http://127.0.0.1:9"
"""A proxy that nobody is: what asks for another machine through it fails."""


@dataclass
class Server:
    """A running server: the folder it shows, its address with a slash at the end, its token."""

    root: Path
    url: str
    token: str

    def ask(self, path: str, method: str = "GET", content: Any = None) -> Any:
        """What the server answers to a request with the token."""
        body = json.dumps(content).encode() if content else None
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


def repository(folder: Path) -> Path:
    """A folder laid out as the repository, with all its pairs made anew; ``lib`` is the installed one."""
    for source in pairs.sources():
        target = folder / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        pairs.write(target)
    shutil.copyfile(ROOT / "jupytext.toml", folder / "jupytext.toml")
    return folder


@contextmanager
def server(root: Path, home: Path, **variables: str) -> Iterator[Server]:
    """JupyterLab as ``make lab`` starts it, for a user whose home is ``home``, with no way to any other machine."""
    [words] = re.findall(r"^lab: .*\n\t\$\(PY\) (.*) \$\(LAB\)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    more = ["--no-browser", "--allow-root", "--port=0", "--LabApp.expose_app_in_browser=True"]
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), OFFLINE)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")},
        **proxies,
        "NO_PROXY": "localhost,127.0.0.1",
        "HOME": str(home),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        **variables,
    }
    command = [sys.executable, *words.split(), f"--root={root}", *more]
    with (
        (home / "server.log").open("w") as log,
        subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log) as running,
    ):
        try:
            yield Server(root, *_address(home, running))
        finally:
            running.terminate()


def _address(home: Path, running: subprocess.Popen) -> tuple[str, str]:
    for _ in range(1200):
        for found in (home / "runtime").glob("jpserver-*.json"):
            if (text := found.read_text()).endswith("}"):
                server = json.loads(text)
                return server["url"], server["token"]
        assert running.poll() is None, (home / "server.log").read_text()[-2000:]
        time.sleep(0.1)
    raise AssertionError("JupyterLab did not start within two minutes")


class Lab:
    """JupyterLab in a browser. What a person does by a menu is done by the command behind the menu, and waited for."""

    def __init__(self, server: Server, browser: Browser) -> None:
        self.server, self.browser = server, browser

    def start(self) -> None:
        """Open the address that ``make lab`` opens."""
        self.browser.open(f"{self.server.url}lab/tree/notebooks/00_start_here.ipynb?token={self.server.token}")
        self.browser.wait("window.jupyterapp !== undefined", 120)
        self.do("await jupyterapp.restored")

    def do(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript that may ``await``, and give back what it returns; ``panel`` is the notebook in front."""
        # Not as one asynchronous script: the driver gives up on an answer after two minutes.
        self.browser.script(
            "window.answered = undefined; const given = [...arguments], panel = jupyterapp.shell.currentWidget;"
            f"(async () => {{ {code} }})()"
            ".then(value => { window.answered = [value] }, error => { window.answered = [null, String(error)] })",
            *arguments,
        )
        value, *error = self.browser.wait("window.answered", 900)
        assert not error, error[0]
        return value

    def open(self, path: str) -> None:
        """Bring a notebook to the front, and wait for its kernel."""
        self.do("await jupyterapp.commands.execute('docmanager:open', {path: given[0]})", path)
        self.ready()

    def ready(self) -> None:
        """Wait until the notebook in front is read and its kernel is there."""
        self.browser.wait("jupyterapp.shell.currentWidget?.context?.isReady", 60)
        self.do("await panel.revealed; await panel.sessionContext.ready")
        self.browser.wait("jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'", 120)

    def run_all(self) -> tuple[float, set[str]]:
        """Run > Run All Cells; the seconds until the last cell has run, and the names of the progress bars seen meanwhile."""
        self.do(
            "window.bars = new Set(); panel.sessionContext.iopubMessage.connect((_, {header, content}) => {"
            "if (header.msg_type === 'stream')"
            " for (const [, name] of content.text.matchAll(/([^\\r\\n]+): +\\d+%\\|/g)) bars.add(name) })"
        )
        start = time.monotonic()
        self.do("await jupyterapp.commands.execute('notebook:run-all-cells')")
        return time.monotonic() - start, set(self.do("return [...bars]"))

    def cells(self) -> list[dict[str, Any]]:
        """The code cells as nbformat keeps them, outputs included."""
        return self.do("return panel.content.model.toJSON().cells.filter(cell => cell.cell_type === 'code')")

    def errors(self) -> list[str]:
        """What went wrong in the cells, one line each."""
        outputs = [output for cell in self.cells() for output in cell["outputs"]]
        return [f"{output['ename']}: {output['evalue']}" for output in outputs if output["output_type"] == "error"]

    def warnings(self) -> list[str]:
        """What the cells wrote to the error stream, which Lab paints red."""
        outputs = [output for cell in self.cells() for output in cell["outputs"]]
        return ["".join(output["text"]) for output in outputs if output.get("name") == "stderr"]

    def charts(self) -> list[bool]:
        """For each chart among the outputs, in order, whether it shows something when one scrolls to it."""
        where = self.do(
            "return panel.content.widgets.map((cell, index) => [cell, index])"
            ".filter(([cell]) => cell.model.type === 'code' && JSON.stringify(cell.model.sharedModel.outputs)"
            ".includes('application/vnd.vegalite')).map(([cell, index]) => index)"
        )
        return [self._shown(index) for index in where]

    def _shown(self, index: int) -> bool:
        self.do("await panel.content.scrollToItem(given[0], 'center')", index)
        canvas = f"jupyterapp.shell.currentWidget.content.widgets[{index}].node.querySelector('.vega-embed canvas')"
        self.browser.wait(f"{canvas}?.width > 0")
        return self.browser.script(
            f"const canvas = {canvas};"
            "const drawn = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
            "return new Set(new Uint32Array(drawn.data.buffer)).size > 2"
        )

    def save(self) -> None:
        """File > Save Notebook."""
        self.do("await jupyterapp.commands.execute('docmanager:save')")
        assert not self.do("return panel.context.model.dirty")

    def write(self, words: str) -> None:
        """Type a line of its own at the end of the first cell of code."""
        self.do(
            "panel.content.activeCellIndex = panel.content.widgets.findIndex(cell => cell.model.type === 'code');"
            "await panel.content.scrollToItem(panel.content.activeCellIndex);"
            "panel.content.mode = 'edit'; panel.content.activeCell.editor.focus();"
        )
        keys = ActionChains(self.browser.driver)
        keys.key_down(Keys.CONTROL).send_keys(Keys.END).key_up(Keys.CONTROL).send_keys(Keys.ENTER, words).perform()
        self.browser.wait("jupyterapp.shell.currentWidget.context.model.dirty")

    def press_save(self) -> None:
        """Control and S, and wait until all is written."""
        ActionChains(self.browser.driver).key_down(Keys.CONTROL).send_keys("s").key_up(Keys.CONTROL).perform()
        self.browser.wait("!jupyterapp.shell.currentWidget.context.model.dirty")

    def close(self) -> None:
        """File > Close and Shut Down Notebook, of a notebook that is saved."""
        self.do("await panel.sessionContext.shutdown(); panel.close()")
