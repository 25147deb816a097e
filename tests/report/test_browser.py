"""The page in a real browser, opened from disk with the network off."""

import csv
import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kspan.records import FitRecord
from kspan.report import write_report
from kspan.report.charts import charts
from tests.report import samples

try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    sync_playwright = None

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = [
    pytest.mark.skipif(sync_playwright is None, reason="playwright is not installed"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
    pytest.mark.xdist_group("browser"),
]

# The smallest contrast of all texts with what is behind them; texts of figures lie on the page.
CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => parts(colour).slice(0, 3)
    .map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = "h1, h2, h3, p, a, dt, dd, th, td, button, label, caption, figcaption, code";
  const drawn = ".xtick text, .ytick text, .legendtext, .g-xtitle text, .g-ytitle text";
  const worst = (selector, property) => Math.min(...Array.from(document.querySelectorAll(selector))
    .filter((e) => e.textContent.trim() && e.getClientRects().length)
    .map((e) => [getComputedStyle(e)[property], behind(e)].map(luminance).sort((a, b) => b - a))
    .map(([light, dark]) => (light + 0.05) / (dark + 0.05)));
  return [worst(texts, "color"), worst(drawn, "fill")];
}"""


@dataclass
class Opened:
    """A page, and what it did."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        return self.page.locator("#features tbody tr:visible th").all_text_contents()

    def column(self, place: int) -> list[str]:
        return self.page.locator(f"#features tbody td:nth-child({place + 1})").all_text_contents()

    def ground(self) -> str:
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the pages, with a name that needs quoting in an address."""
    folder = tmp_path_factory.mktemp("a report #1")
    write_report(samples.cancer(), folder / "cancer.html")
    write_report(samples.nasty(), folder / "nasty.html")
    return folder


@pytest.fixture
def opened(browser: "Browser", folder: Path) -> Iterator[Any]:
    """Opens a page; nothing may go wrong in it or be fetched by it."""
    contexts, everything = [], []

    def open_page(name: str, **options: Any) -> Opened:
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page: Page = context.new_page()
        found = Opened(page)
        everything.append(found)
        page.on("console", lambda m: found.problems.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: found.problems.append(str(error)))
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("dialog", lambda box: (found.dialogs.append(box.message), box.dismiss()))
        page.goto((folder / f"{name}.html").as_uri())
        if options.get("java_script_enabled", True):
            page.wait_for_selector(".js-plotly-plot .main-svg")
        return found

    yield open_page
    for context in contexts:
        context.close()
    for found in everything:
        assert found.problems == []
        assert found.dialogs == []
        assert all(url.startswith(("file:", "blob:")) for url in found.requests)
        assert sum(url.startswith("file:") for url in found.requests) == 1


def drawn(page: Any, record: FitRecord) -> None:
    for chart in charts(record):
        assert page.locator(f"#figure-{chart.key} svg.main-svg").first.is_visible()
        assert page.locator(f"#figure-{chart.key} .xtick text").count() > 0
    assert page.locator("#figure-variance .bars path").count() == 2 * record.n_components
    assert page.locator("#figure-biplot .points path").count() == len(record.scores)


def downloaded(page: Any, target: Path, record: FitRecord) -> None:
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    assert waiting.value.suggested_filename == "features.csv"
    waiting.value.save_as(target)
    text = target.read_bytes().decode("utf-8")
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head[:3] == ["feature", "index", "PC1"]
    rows.sort(key=lambda row: int(row[1]))
    assert [row[0] for row in rows] == record.selected_names
    assert [int(row[1]) for row in rows] == record.support.tolist()
    m = record.n_components
    assert [[float(x) for x in row[2 : 2 + m]] for row in rows] == record.loadings.tolist()


def test_names_do_nothing(opened: Any, tmp_path: Path) -> None:
    found = opened("nasty", color_scheme="dark")
    page = found.page
    assert found.ground() == "rgb(21, 24, 28)"
    assert min(page.evaluate(CONTRAST)) >= 4.5
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 3
    assert page.locator("main img, svg a, main b").count() == 0
    drawn(page, samples.nasty())
    ticks = page.locator("#figure-loadings .ytick text").all_text_contents()
    assert any(tick.startswith("<script>window") for tick in ticks)
    assert "@accent" in ticks
    page.locator("#figure-biplot .points path").first.hover(force=True)
    assert "<script>window.hacked" in page.locator("#figure-biplot .hoverlayer").text_content()
    downloaded(page, tmp_path / "features.csv", samples.nasty())

    # Not even a script inside the page could fetch anything.
    refused = page.evaluate(
        """() => new Promise((done) => {
          document.addEventListener("securitypolicyviolation", (e) => done(e.violatedDirective));
          fetch("https://example.org").catch(() => {});
        })"""
    )
    assert refused == "connect-src"
    assert "Content Security Policy" in found.problems.pop(0)
    found.problems.clear()


def test_a_page_that_is_used(opened: Any, tmp_path: Path) -> None:
    """All figures, the download, sorting and filtering, on one page: it takes long to open."""
    found = opened("cancer")
    drawn(found.page, samples.cancer())
    downloaded(found.page, tmp_path / "features.csv", samples.cancer())
    sorted_and_filtered(found, samples.cancer())


def sorted_and_filtered(found: Opened, record: FitRecord) -> None:
    names, heads = record.selected_names, found.page.locator("#features thead th")
    loadings = dict(zip(names, record.loadings[:, 1], strict=True))
    assert heads.nth(5).get_attribute("aria-sort") == "descending"  # as the page comes

    heads.nth(3).locator("button").click()  # PC2
    assert found.names() == sorted(names, key=loadings.get, reverse=True)
    assert heads.nth(3).get_attribute("aria-sort") == "descending"
    assert found.page.locator("#features th[aria-sort]").count() == 1
    heads.nth(3).locator("button").click()
    assert found.names() == sorted(names, key=loadings.get)
    assert heads.nth(3).get_attribute("aria-sort") == "ascending"

    heads.nth(1).locator("button").click()  # index
    assert found.column(1) == [str(place) for place in sorted(record.support)]
    heads.nth(0).locator("button").click()  # name
    assert found.names() == sorted(names)

    box = found.page.get_by_label("Filter by name")
    box.fill("WORST")
    wanted = sorted(name for name in names if name.startswith("worst"))
    assert found.names() == wanted
    assert found.page.locator("#shown").text_content() == f"{len(wanted)} of 12 features"
    box.fill("")
    assert found.names() == sorted(names)


def test_by_keyboard_alone(opened: Any) -> None:
    found = opened("cancer", color_scheme="light")
    page, focus = found.page, "document.activeElement.textContent.trim()"
    page.keyboard.press("Tab")
    assert page.evaluate(focus) == "Skip to the report"
    page.keyboard.press("Tab")
    assert page.evaluate(focus) == "Dark theme"
    outline = "getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate(outline) == "3px"  # focus is visible
    light = found.ground()
    page.keyboard.press("Enter")
    assert found.ground() != light
    while page.evaluate(focus) != "index":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert found.column(1) == [str(place) for place in sorted(samples.cancer().support)]
    page.keyboard.press("Space")
    assert found.column(1) == [str(i) for i in sorted(samples.cancer().support, reverse=True)]


def test_themes(opened: Any) -> None:
    found = opened("cancer", color_scheme="light")
    page, tick = found.page, found.page.locator("#figure-variance .xtick text").first

    def looks() -> tuple[str, str]:
        assert min(page.evaluate(CONTRAST)) >= 4.5
        return found.ground(), tick.evaluate("e => getComputedStyle(e).fill")

    light = looks()
    assert light[0] == "rgb(253, 252, 250)"
    page.emulate_media(color_scheme="dark")  # the system's, while the page is open
    page.get_by_role("button", name="Light theme").wait_for()
    dark = looks()
    assert dark[0] == "rgb(21, 24, 28)"
    assert dark[1] != light[1]  # figures follow
    page.get_by_role("button", name="Light theme").click()
    assert looks() == light
    page.reload()
    found.requests.pop()
    assert looks() == light  # remembered, though the system is dark
    page.get_by_role("button", name="Dark theme").click()
    page.emulate_media(color_scheme="light")
    assert looks() == dark


@pytest.mark.parametrize("name", ["cancer", "nasty"])
def test_a_telephone_needs_no_sideways_scroll(opened: Any, name: str) -> None:
    page = opened(name, viewport={"width": 400, "height": 800}).page
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 400
    # What is wider scrolls in a box of its own, which the keyboard can reach.
    box = page.locator("#found .box")
    assert box.evaluate("e => e.scrollWidth > e.clientWidth")
    assert box.get_attribute("tabindex") == "0"
