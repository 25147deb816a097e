"""Formulas as MathML, which browsers show by themselves: no script, and nothing from a network.

latex2mathml does the work. What it does not know is put into other words before, and what is left
of a command after that is a warning, and so fails a build with ``-W``.
"""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

# Commands that latex2mathml does not know, in those that it knows.
OTHER_WORDS = [
    (r"\\arg\\(max|min)", r"\\mathrm{arg}\\,\\\1"),
    (r"\\(max|min)_", r"\\\1\\limits_"),
]


def formula(text: str, display: str) -> str:
    """Return LaTeX as a MathML element.

    Parameters
    ----------
    text : LaTeX
    display : {"inline", "block"}
    """
    for pattern, words in OTHER_WORDS if display == "block" else OTHER_WORDS[:1]:
        text = re.sub(pattern, words, text)
    found = convert(text, display=display)
    return re.sub(r">\\([{}])<", r">\1<", found)  # \Big\{ keeps its backslash


def _checked(node, display):
    """Return the element; of several formulas, those between empty lines, one for each."""
    texts = node.astext().split("\n\n") if display == "block" else [node.astext()]
    found = "\n".join(formula(text, display) for text in texts if text.strip())
    if "\\" in found:
        logging.getLogger(__name__).warning(
            "a formula has a command that is not known: %s", node.astext(), location=node
        )
    return found


def visit_math(self, node):
    """Write a formula in a sentence."""
    self.body.append(_checked(node, "inline"))
    raise nodes.SkipNode


def visit_math_block(self, node):
    """Write a formula on lines of its own, with its number if it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append(_checked(node, "block"))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Tell Sphinx of it."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
