"""Every figure of README and the documentation is that of a committed result.

There are three places for a figure: a block that is made from a file of results
(``<!-- from ... -->``, see benchmarks/pages.py), a sentence in the page's own file of
tests/docs/figures whose holes are filled from a file of results (``CLAIMS``), and the list there of
what is no measurement (``NOT_MEASURED``): limits of the code, definitions, examples, each as it
stands in the page. A figure that is in none of them fails here.
"""

import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import pages

ROOT = Path(__file__).parents[2]
PAGES = {page.stem.lower(): page for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}
TABLES = {
    path.stem: import_module(f"tests.docs.figures.{path.stem}")
    for path in sorted((Path(__file__).parent / "figures").glob("*.py"))
    if path.stem != "reading"
}

NUMBER = r"(?:\d[\d,]*(?:\.\d+)?\s?|(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty)\s)"
UNIT = (
    r"(?:%|percent\b|s\b|ms\b|seconds?\b|minutes?\b|min\b|hours?\b|h\b|days?\b|weeks?\b"
    r"|[kMGTP]i?B\b|times\b|fold\b)"
)
FIGURE = re.compile(
    rf"\b{NUMBER}{UNIT}"  # 40%, 0.2 seconds, ten times
    # any decimal fraction that is not the number of a theorem
    r"|(?<!Theorem )(?<!Corollary )(?<!Remark )(?<!\d)\d+\.\d+"
    r"|\b[\d,]+ (?:of|in) (?:the )?\d[\d,]*"  # 11 of the 33
    r"|\b(?:at |in )?all (?:\d\d[\d,]*|\d)\b"  # at all 33 points
    r"|\bhalf an? (?:second|minute|hour|day)\b",
    re.IGNORECASE,
)
BLOCK = re.compile(r"<!-- from ([^>]+) -->\n\n((?:(?!<!--).)*)\n\n<!-- end -->", re.DOTALL)


MADE = pages.texts()


def squeezed(text):
    return re.sub(r"\s+", " ", text)


def prose(page):
    """Return what a page says itself: no code, no made tables, no addresses of links."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = BLOCK.sub("", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return squeezed(text)


def filled(claim):
    """Return a sentence with its figures."""
    text, values = claim
    return squeezed(text.format(*values()))


def test_every_table_is_about_a_page():
    assert set(TABLES) <= set(PAGES)


@pytest.mark.parametrize(
    "text",
    ["a gap of 1.4%", "40 percent", "in 0.2 seconds", "5.2 times as long", "12 GB", "ten times",
     "at all 33 points", "11 of the 33", "half a minute", "a share of 0.86", "100% of it",
     "by Theorem 5.1 it is 0.2", "·1.1"],
)  # fmt: skip
def test_figures_are_seen(text):
    assert FIGURE.search(text)


@pytest.mark.parametrize(
    "text",
    ["m = 3 and k = 50", "2000 genes", "Figures 4 to 6", "three components", "the later ones",
     "72 x 7129", "one seed", "Table 2", "Theorem 15.1 and Corollary 5.6", "its Remark 4.4"],
)  # fmt: skip
def test_sizes_and_parameters_are_no_figures(text):
    assert not FIGURE.search(text)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, id=f"{name}-{text[:40]}")
        for name, tables in TABLES.items()
        for number, (text, _) in enumerate(tables.CLAIMS)
    ],
)
def test_the_page_says_what_was_measured(name, number):
    sentence = filled(TABLES[name].CLAIMS[number])
    if sentence not in prose(PAGES[name]):
        pytest.fail(f"{PAGES[name].name} does not say: {sentence}", pytrace=False)


@pytest.mark.parametrize("name", TABLES)
def test_what_is_no_measurement_is_still_there(name):
    missing = [text for text in TABLES[name].NOT_MEASURED if text not in prose(PAGES[name])]
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_no_figure_is_without_a_source(name):
    left = prose(PAGES[name])
    if name in TABLES:
        known = [*map(filled, TABLES[name].CLAIMS), *TABLES[name].NOT_MEASURED]
        for text in sorted(known, key=len, reverse=True):
            left = left.replace(text, "…")
    left = re.sub(r"`[^`]*`", "`", left)  # parameters and code
    found = [left[max(0, m.start() - 50) : m.end() + 30] for m in FIGURE.finditer(left)]
    assert not found


@pytest.mark.parametrize("where", MADE, ids=lambda where: f"{where[0].stem}-{where[1]}")
def test_blocks_are_made_from_the_results(where):
    page, mark = where
    assert dict(BLOCK.findall(page.read_text())).get(mark) == MADE[where]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_a_maker(name):
    page = PAGES[name]
    made = {mark for owner, mark in MADE if owner == page}
    assert set(re.findall(r"<!-- from (.+?) -->", page.read_text())) == made
