"""Formulas become MathML, all of them, and as they are meant."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("mathml", ROOT / "docs" / "mathml.py")
mathml = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mathml)


def formulas():
    """Return every formula of docstrings and pages, and how it stands there."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text()
        for found in re.findall(r":math:`([^`]*)`", text):
            yield path.name, found, "inline"
        for found in re.finditer(r"^( *)\.\. math::(.*\n(?:\n|\1 +.*\n)*)", text, re.MULTILINE):
            for part in re.split(r"\n\s*\n", found[2]):
                if part.strip():
                    yield path.name, part, "block"
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for found in re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL):
            yield path.name, found, "block"
        for found in re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)):
            yield path.name, found, "inline"


def test_every_formula_is_known():
    found = list(formulas())
    assert len(found) > 100
    left = [(name, text) for name, text, kind in found if "\\" in mathml.formula(text, kind)]
    assert not left


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (r"\tfrac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\max_W x", "<munder><mo>max</mo><mi>W</mi></munder>"),
        (r"\arg\min_V x", "<munder><mo>min</mo><mi>V</mi></munder>"),
        (r"\Big\{ x \Big\}", '">{</mo><mi>x</mi>'),
    ],
)
def test_a_formula_is_what_it_says(text, part):
    assert part in mathml.formula(text, "block")
