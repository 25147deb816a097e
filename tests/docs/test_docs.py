"""What the documentation shows is true: its snippets, commands, examples and pages work.

Readers have data of their own where a page says ``X`` or ``expression.csv``. Here they get small
data of that name.
"""

import re
import runpy
import shlex
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GENES = ["CD8A", "XIST", "MALAT1", *(f"GENE{j:02}" for j in range(57))]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, *languages):
    return [body for language, body in FENCE.findall(page.read_text()) if language in languages]


def commands(page):
    lines = "\n".join(blocks(page, "bash", "console", "shell")).splitlines()
    lines = [line.removeprefix("$ ").strip() for line in lines]
    return [line for line in lines if line.startswith("kspan ")]


def with_any(find, *args):
    return [pytest.param(page, id=page.name) for page in PAGES if find(page, *args)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with small versions of all files that pages name."""
    import anndata
    import pandas as pd
    import scipy.io
    import scipy.sparse

    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 60))
    values = hidden + rng.standard_normal((40, 60))
    samples = [f"sample{i}" for i in range(40)]
    table = pd.DataFrame(values, index=samples, columns=GENES)
    table.to_csv(tmp_path / "expression.csv")
    table.T.to_csv(tmp_path / "genes_by_samples.tsv.gz", sep="\t")
    for name, value in (("clusters", "cluster{}".format), ("prices", "{}".format)):
        lines = [f"{gene},{value(1 + j % 9)}" for j, gene in enumerate(GENES)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    np.save(tmp_path / "measurements.npy", values)
    counts = scipy.sparse.csr_array(rng.poisson(0.4, (40, 60)).astype(float))
    scipy.io.mmwrite(tmp_path / "counts.mtx", counts)
    cells = anndata.AnnData(counts, obs=pd.DataFrame(index=samples), var=pd.DataFrame(index=GENES))
    cells.layers["lognorm"] = counts.log1p()
    cells.write_h5ad(tmp_path / "cells.h5ad")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KSPAN_DATA", raising=False)
    return tmp_path


def own_data():
    """What readers have where a page does not say where it comes from."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((120, 20)) * rng.uniform(0.5, 2.0, 20)
    return {"X": rows, "blocks": [rows[:40], rows[40:80]], "last_block": rows[80:]}


# A line of a snippet that is an expression, and the numbers that its comment begins with.
SHOWN = re.compile(
    r"^(\S.*?)  # (-?\d[\d.]*(?:(?:, | and )-?\d[\d.]*)*)(?![\d.]| x )", re.MULTILINE
)


def check_shown(body, names):
    """What a snippet says that an expression is, it is: `pca.n_passes_  # 2, at most`."""
    for expression, text in SHOWN.findall(body):
        try:
            value = eval(expression, names)
        except SyntaxError:  # a statement, or a line of a call: its comment is about something else
            continue
        numbers = [number.rstrip(".") for number in re.findall(r"-?\d[\d.]*", text)]
        for number, found in zip(numbers, np.ravel(np.asarray(value, dtype=object)), strict=False):
            digits = len(number.partition(".")[2])
            assert abs(float(number) - found) <= 0.5001 * 10**-digits, expression


@pytest.mark.parametrize("page", with_any(blocks, "python"))
def test_snippets_run(page, folder, capsys):
    """In the order of the page, as a reader would type them."""
    import matplotlib as mpl

    mpl.use("Agg")
    names = {"__name__": "__main__", **own_data()}
    printed = ""
    for number, (language, body) in enumerate(FENCE.findall(page.read_text()), start=1):
        if language == "python":
            exec(compile(body, f"{page.name}, block {number}", "exec"), names)
            check_shown(body, names)
            printed = capsys.readouterr().out
        elif language == "text" and printed:  # the output, shown below the snippet
            assert body == printed
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("page", with_any(commands))
def test_commands_run(page, folder):
    from kspan.cli import app

    for line in commands(page):
        result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"


def test_every_page_is_looked_at():
    """No language that the tests above do not know, and no snippet that is hidden from them."""
    known = {"python", "bash", "text"}
    for page in PAGES:
        found = {language for language, _ in FENCE.findall(page.read_text())}
        assert found <= known, page.name


# The first is README's picture; the second needs its five seconds, or there is no proof to show.
LONG = ("plot_breast_cancer", "plot_word_forms")


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in EXAMPLES
    ],
)
def test_examples_run(example, tmp_path, monkeypatch):
    """As scripts, in a copy: one of them writes a picture beside itself."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    (tmp_path / "examples").mkdir()
    script = shutil.copy(example, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("default")  # as for a script
        runpy.run_path(str(script), run_name="__main__")
    plt.close("all")


LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_links_lead_somewhere_on_the_code_host(page):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing
