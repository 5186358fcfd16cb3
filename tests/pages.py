"""What every page must be, whatever notebook it came from: asked of a page in a real browser."""

from pathlib import Path

from browser import Browser, letters

from lib.report import downloads, words

DRAWN = "[...document.querySelectorAll('figure.chart')].every(figure => figure.matches('.drawn, .undrawn'))"
OPEN = "[...document.querySelectorAll('details.code')].filter(details => details.open).length"
OUTPUTS = """
const texts = [...document.querySelectorAll('figure.chart')].map(figure => figure.ariaLabel);
for (const part of document.querySelectorAll('main .output.html, main .output.text, main .drawing svg')) {
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('code, pre')) texts.push(walker.currentNode.data);
}
return texts.join('\\n')
"""


def check(chromium: Browser, page: Path, files: tuple[str, ...] = ("ipynb", "csv", "json", "parquet")) -> None:
    """Assert of a good page that it is whole, and that nothing is lost to a phone, the dark, paper or a screen reader."""
    assert page.stat().st_size <= downloads.LIMIT
    chromium.resize(1280, 900)
    chromium.open(page)
    chromium.wait(DRAWN, 120)
    assert chromium.script("return document.querySelectorAll('figure.chart.undrawn').length") == 0
    assert chromium.script("return [...document.images].every(image => image.alt && image.naturalWidth)")
    assert chromium.script("return document.querySelectorAll('h1').length") == 1
    assert chromium.script(
        "return [...document.querySelectorAll('a[href^=\"#\"]:not(.vega-actions a)')].every(link =>"
        " document.getElementById(decodeURIComponent(link.hash.slice(1))))"
    )
    _words(chromium)
    _downloads(chromium, page, files)
    _fold(chromium)
    _filter(chromium)
    assert chromium.axe() == []
    _phone(chromium)
    _dark(chromium)
    _paper(chromium)
    assert chromium.errors() == [] and chromium.outside() == []


def _words(chromium: Browser) -> None:
    """No name of code where plain words are meant."""
    text = chromium.script(OUTPUTS)
    names = {name for name in words.NAME.findall(text) if words.plain(name) != name}
    assert names == set()


def _downloads(chromium: Browser, page: Path, files: tuple[str, ...]) -> None:
    links = "return [...document.querySelectorAll('.downloads a')].map(link => [link.download, link.protocol])"
    for (name, protocol), kind in zip(chromium.script(links), files, strict=True):
        carried = protocol == "data:" and name.endswith(f".{kind}.gz")
        assert carried or page.with_suffix(f".{kind}").exists()


def _fold(chromium: Browser) -> None:
    every = chromium.script("return document.querySelectorAll('details.code').length")
    for opened in (every, 0):
        chromium.script("document.querySelector('button.switch').click()")
        assert chromium.script(f"return {OPEN}") == opened


def _filter(chromium: Browser) -> None:
    """Every long table shows no row for words that are not in it, and all of them again without."""
    typed = (
        "const said = []; for (const tools of document.querySelectorAll('.tools')) for (const words of ['~', '']) {"
        " const field = tools.querySelector('input'); field.value = words;"
        " field.dispatchEvent(new Event('input', {bubbles: true}));"
        " said.push([words, tools.querySelector('output').textContent]); } return said"
    )
    for typed_in, said in chromium.script(typed):
        shown, every = said.removesuffix(" rows").split(" of ")
        assert shown == ("0" if typed_in else every) and int(every) >= 12


def _phone(chromium: Browser) -> None:
    chromium.resize(390, 800)
    assert chromium.script("return document.documentElement.scrollWidth") == 390
    chromium.resize(1280, 900)


def _dark(chromium: Browser) -> None:
    chromium.emulate(prefers_color_scheme="dark")
    ground = chromium.script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    ink = chromium.script(
        "return [...document.querySelectorAll('.drawing svg text')].slice(0, 1)"
        ".map(text => Math.min(...getComputedStyle(text).fill.match(/\\d+/g).map(Number)))"
    )
    chromium.emulate()
    assert max(ground) < 60 and all(light > 180 for light in ink)


def _paper(chromium: Browser) -> None:
    """Every heading and every cell of a table is printed; no code is, though it stands open on the screen."""
    chromium.script("document.querySelectorAll('details.code').forEach(details => details.open = true)")
    cells = chromium.script(
        "return [...document.querySelectorAll('main h1, main > section h2, .output.html td, .output.html th')]"
        ".filter(cell => cell.checkVisibility()).map(cell => cell.textContent)"
    )
    paper = "".join(chromium.paper())
    assert [cell for cell in cells if letters(cell) not in paper] == []
    assert "charts.use_theme()" not in paper and "importpandas" not in paper
