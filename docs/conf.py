"""Sphinx: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``, offline.

With ``-D plot_gallery=0`` examples are shown but not run, which takes less than a minute.
Whatever a build makes beside the pages is in ``docs/generated``. Pages link to files of the
repository as the code host shows them; `_turn_links` turns these links into links to pages.
"""

import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from docutils import nodes
from sphinx.transforms import SphinxTransform

import kspan

HERE = Path(__file__).parent
ROOT = HERE.parent
GENERATED = HERE / "generated"
sys.path.insert(0, str(HERE))  # for mathml.py

project = "kspan"
author = "The kspan developers"
copyright = author
version = release = kspan.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "generated/examples"]
# Single backticks in docstrings: a link if there is something to link to, else code.
default_role = "py:obj"
# A name that begins with kspan must lead somewhere, unless it is about how something is computed.
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"(?!kspan\.).*"), ("py:obj", r"kspan\.linalg\..*")]
# The gallery's settings hold functions, so a second build starts from scratch. That is fine.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = f"kspan {release}"
html_static_path = ["_static"]
html_css_files = ["kspan.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"kspan {release}"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_as_you_type": True,
}
html_sidebars = {"index": [], "quick_start": []}

EXAMPLES = [
    "quick_start",
    "choosing_k",
    "gene_panel",
    "panel_of_genes",
    "sensors",
    "spectra",
    "faces_or_digits",
    "text",
    "word_forms",
    "big_data",
    "certificate",
    "spannogram",
]


def _let_it_know_its_file(gallery_conf, script_vars):
    """Give an example the ``__file__`` that it has as a script; it gets no arguments."""
    script_vars["example_globals"]["__file__"] = script_vars["src_file"]
    return []


def _easy_first(filename):
    name = Path(filename).stem.removeprefix("plot_")
    return EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES), name


sphinx_gallery_conf = {
    "examples_dirs": "generated/examples",
    "gallery_dirs": "generated/gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("kspan",),
    "reference_url": {"kspan": None},
    "within_subsection_order": _easy_first,
    "reset_argv": _let_it_know_its_file,
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
}


def _copy_sources():
    """Copy what lives outside of this folder and becomes pages: examples, tables, pictures."""
    examples = GENERATED / "examples"
    shutil.rmtree(examples, ignore_errors=True)
    shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(HERE / "_templates" / "gallery.rst", examples / "GALLERY_HEADER.rst")
    tables = GENERATED / "benchmarks"
    shutil.rmtree(tables, ignore_errors=True)
    for suffix in ("md", "png"):
        for file in (ROOT / "benchmarks").rglob(f"*.{suffix}"):
            target = tables / file.relative_to(ROOT / "benchmarks")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)


# From links that work on the code host to links that work here.
LINKS = [
    (r"\]\(\.\./benchmarks/([^)]+\.(?:md|png))\)", r"](/generated/benchmarks/\1)"),
    (r"\]\(\.\./examples/(\w+)\.py\)", r"](/generated/gallery/\1.rst)"),
    (r"\]\(\.\./CONTRIBUTING\.md", r"](/contributing.md"),
    (r"\]\(\.\./CHANGELOG\.md", r"](/changelog.md"),
    (r"\]\((?:\.\./)+docs/", r"](/"),
]
# Pages that the table of contents names as soon as they are there.
MAY_BE_MISSING = ("race", "scaling")


def _fill_tables(app, docname, source):
    """Put tables of methods where a page asks for them."""
    from kspan.method_tables import KINDS, method_table

    def table(found):
        return method_table(KINDS[found[1]])

    source[0] = re.sub(r"<!-- methods: ([\w-]+) -->", table, source[0])


# Packages whose modules read like papers, and what these share: a page for each module.
FORMULAS = {
    "All components share k features": ["solvers.rowsparse"],
    "Features that tell all others": ["solvers.represent"],
    "Every component has features of its own": ["solvers.elementsparse"],
    "Orthonormal components": ["solvers.stiefel"],
    "No negative loadings": ["solvers.nonnegative"],
    "What methods share": [
        "solvers.insertions",
        "solvers.one_by_one",
        "solvers.penalty_search",
        "solvers.loop",
    ],
    "Paths and proofs": ["choosing_k", "proofs.check", "proofs.search"],
}
ABOUT_FORMULAS = """
Every method is one file that reads like its paper: the problem, the steps, what a step costs, how
often the data is read, what is guaranteed, the reference, and where it differs from the paper.
These pages are made from those files. The fields of a method's class are what ``solver_options``
takes.
:doc:`/methods` has them side by side, in words.
"""


def _write_formulas():
    """Write the page that leads to all of these modules, whichever there are."""
    lines = ["Methods in formulas", "===================", ABOUT_FORMULAS]
    for title, packages in FORMULAS.items():
        lines += ["", title, "-" * len(title), ""]
        for name in packages:
            package = import_module(f"kspan.{name}")
            modules = [name]
            if hasattr(package, "__path__"):
                found = sorted(module.name for module in iter_modules(package.__path__))
                modules = [f"{name}.{module}" for module in found]
                lines += [f".. module:: kspan.{name}"]
            lines += [".. currentmodule:: kspan", ""]
            lines += [".. autosummary::", "   :toctree: formulas", "   :nosignatures:", ""]
            lines += [f"   {module}" for module in modules] + [""]
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "formulas.rst").write_text("\n".join(lines))


def _turn_links(app, docname, source):
    for pattern, link in LINKS:
        source[0] = re.sub(pattern, link, source[0])
    if docname == "researchers":
        for page in MAY_BE_MISSING:
            if not (HERE / f"{page}.md").exists():
                source[0] = source[0].replace(f"\n{page}\n", "\n")


def _skip_what_others_explain(app, what, name, obj, skip, options):
    """Leave out what an estimator has from scikit-learn, whose documentation has it."""
    if str(getattr(obj, "__module__", "")).startswith("sklearn."):
        return True
    return None


class _SizesOfSets(SphinxTransform):
    """Let |S| in a docstring be the size of S, and not the name of a text to put there."""

    default_priority = 209  # before docutils looks for the texts

    def apply(self, **kwargs):
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(f"|{node.astext()}|"))


def setup(app):
    """Prepare sources before Sphinx looks for them."""
    _copy_sources()
    _write_formulas()
    app.connect("source-read", _fill_tables)
    app.connect("source-read", _turn_links)
    app.add_transform(_SizesOfSets)
    app.connect("autodoc-skip-member", _skip_what_others_explain)
