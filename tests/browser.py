"""A real browser for tests: headless Chromium that reaches no other machine, its requests and its complaints."""

import base64
import importlib.util
import io
import json
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "no Chromium with its driver on this machine (Debian: apt-get install chromium chromium-driver)"


def available() -> bool:
    """Whether this machine has a browser for tests; give it to ``require`` together with MISSING."""
    return bool(CHROMIUM and DRIVER)


def letters(text: str) -> str:
    """A text without white space, ligatures taken apart: what is left of it on paper, wherever lines break."""
    return "".join(unicodedata.normalize("NFKC", text).split())


@dataclass
class Browser:
    """A running browser. ``driver`` is selenium's; the rest is what tests of pages ask again and again."""

    driver: webdriver.Chrome
    _events: list[dict[str, Any]]

    def open(self, address: Path | str) -> None:
        """Go to a file or an address; what was asked for and complained of before is forgotten."""
        self._read()
        self._events.clear()
        self._console.clear()
        self.driver.get(address.resolve().as_uri() if isinstance(address, Path) else address)

    def script(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript; ``return`` gives a value back."""
        return self.driver.execute_script(code, *arguments)

    def wait(self, code: str, seconds: float = 30) -> Any:
        """Wait until an expression is true in the page, and return its value."""
        waiting = WebDriverWait(self.driver, seconds, poll_frequency=0.1)
        return waiting.until(lambda _: self.script(f"return {code}"), f"in vain for {seconds} s: {code}")

    def emulate(self, **features: str) -> None:
        """Media features by name with _ for -, such as ``prefers_color_scheme="dark"``; ``media="print"`` for paper."""
        media = features.pop("media", "")
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": named})

    def resize(self, width: int, height: int) -> None:
        """The size of the page in CSS pixels, also below what a window can be."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def saving_to(self, folder: Path) -> Callable[[int], list[str]]:
        """Let downloads go to a folder; returns a function that waits for so many files and names them."""
        folder.mkdir()
        allow = {"behavior": "allow", "downloadPath": str(folder)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allow)

        def saved(count: int) -> list[str]:
            waiting = WebDriverWait(self.driver, 30, poll_frequency=0.1)
            whole = lambda _: len([path for path in folder.iterdir() if path.suffix != ".crdownload"]) >= count  # noqa: E731
            waiting.until(whole, f"fewer than {count} files in {folder}")
            return sorted(path.name for path in folder.iterdir())

        return saved

    def axe(self) -> list[str]:
        """What axe-core finds serious or critical in the page: the rule, what is wrong, and where first."""
        folder = importlib.util.find_spec("axe_core_python").submodule_search_locations[0]
        self.script(Path(folder, "axe.min.js").read_text(encoding="utf-8"))
        self.driver.set_script_timeout(120)
        found = self.driver.execute_async_script(
            "axe.run({resultTypes: ['violations']}).then(arguments[arguments.length - 1])"
        )
        return [
            f"{rule['id']}: {rule['help']}, {len(rule['nodes'])} times, as {rule['nodes'][0]['html'][:200]}"
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
        ]

    def paper(self) -> list[str]:
        """The letters of each printed page (A4), without white space."""
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
        pages = PdfReader(io.BytesIO(base64.b64decode(printed["data"]))).pages
        return [letters(page.extract_text()) for page in pages]

    def requests(self) -> list[str]:
        """Every address asked for since the page was opened; the page itself and data in it are among them."""
        self._read()
        sent = (event["params"] for event in self._events if event["method"] == "Network.requestWillBeSent")
        return [event["request"]["url"] for event in sent]

    def outside(self) -> list[str]:
        """The requests that are neither a file nor inside the page nor to this machine."""
        near = (
            "file:",
            "data:",
            "blob:",
            "about:",
            "chrome:",
            "http://localhost",
            "http://127.0.0.1",
            "ws://localhost",
        )
        return [address for address in self.requests() if not address.startswith(near)]

    def errors(self) -> list[str]:
        """What the page's console said at the level of an error (a refused script or request is one), in order."""
        self._read()
        wrong = []
        for event in self._events:
            entry = event["params"].get("entry", {})
            if event["method"] == "Log.entryAdded" and entry.get("level") == "error":
                wrong.append(entry["text"])
            if event["method"] == "Runtime.exceptionThrown":
                wrong.append(event["params"]["exceptionDetails"].get("text", "exception"))
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "assert"):
                wrong.append(" ".join(str(value.get("value", value)) for value in event["params"]["args"]))
        return wrong + [entry["message"] for entry in self._console if entry["level"] == "SEVERE"]

    @property
    def _console(self) -> list[dict[str, Any]]:
        self.__dict__.setdefault("_entries", []).extend(self.driver.get_log("browser"))
        return self.__dict__["_entries"]

    def _read(self) -> None:
        self._events.extend(json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))


@contextmanager
def browser(folder: Path, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """A fresh headless Chromium whose profile lies in ``folder``; no name of another machine can be resolved."""
    options = Options()
    options.binary_location = CHROMIUM or ""
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-sync",
        "--no-first-run",
        "--no-proxy-server",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'chromium'}",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver, [])
    finally:
        driver.quit()
