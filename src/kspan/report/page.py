"""From a `FitRecord` to a page: texts, tables and figures put into the template."""

import base64
import json
import math
import os
import zlib
from importlib.resources import files
from typing import Any

from kspan.figures.appearance import DARK, LIGHT
from kspan.records import FitRecord
from kspan.report import tables, wording
from kspan.report.charts import charts
from kspan.report.spec import Chart
from kspan.storage import replacing

# The page may run what is inside it, and fetch nothing.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src 'none'; connect-src 'none'; form-action 'none'; base-uri 'none'"
)

# More features than this get a box that scrolls.
TALL = 30


def require_extras() -> None:
    """Import what a report needs, before hours of work that would end without one.

    Raises
    ------
    ImportError
        Naming what is missing and how to install it.
    """
    try:
        import jinja2  # noqa: F401
        import plotly.offline  # noqa: F401
    except ImportError as error:
        missing = (error.name or "more").partition(".")[0]
        raise ImportError(
            f'A report needs {missing}: pip install "kspan[report]"', name=error.name
        ) from error


def render(record: FitRecord) -> str:
    """Return a page about a fit: one HTML text that opens offline.

    The same record gives the same text. Nothing is computed again; `FitRecord.verify` is what
    checks the numbers.

    Parameters
    ----------
    record : FitRecord

    Returns
    -------
    str

    Raises
    ------
    ImportError
        Without the extra ``kspan[report]``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import FeatureSparsePCA
    >>> from kspan.records import FitRecord
    >>> from kspan.report import render
    >>> X = load_wine(as_frame=True).data
    >>> pca = FeatureSparsePCA(2, n_features_to_select=5, scale=True, random_state=0).fit(X)
    >>> page = render(FitRecord.from_estimator(pca, X, source="wine"))
    >>> "<title>Sparse PCA of wine" in page
    True
    """
    require_extras()
    import jinja2
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    here = files("kspan.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(here.joinpath("template.html").read_text("utf-8"))
    drawn = charts(record)
    text = template.render(
        policy=POLICY,
        themes=Markup(_themes()),
        style=Markup(here.joinpath("style.css").read_text("utf-8")),
        script=Markup(here.joinpath("script.js").read_text("utf-8")),
        plotly=packed(get_plotlyjs()),
        numbers=Markup(embedded(_numbers(record, drawn))),
        charts=drawn,
        **_words(record),
    )
    # A name may hold half a character, which no file can.
    return text.encode("utf-8", "replace").decode("utf-8")


def write_report(record: FitRecord, path: str | os.PathLike[str]) -> None:
    """Write the page about a fit to a file, atomically.

    Parameters
    ----------
    record : FitRecord
    path : where to; a file that is there is replaced
    """
    page = render(record).encode("utf-8")
    with replacing(path) as file:
        file.write(page)


def _words(record: FitRecord) -> dict[str, Any]:
    """Return everything that the page says."""
    return {
        "record": record,
        "title": wording.title(record),
        "answer": wording.answer(record),
        "meaning": wording.meaning(record),
        "told": wording.told(record),
        "told_along": "" if record.path is None else wording.told_along(record.path),
        "scale": _scale(record),
        "asked": tables.asked(record),
        "columns": tables.csv_columns(record),
        "rows": tables.feature_rows(record),
        "tall": record.support.size > TALL,
        "proof_columns": tables.proof_columns(record),
        "proof_rows": tables.proof_rows(record) if record.certificates else [],
        "proof_about": wording.proof_about(record),
        "advice": tables.advice(record),
        "variance_columns": tables.variance_columns(record),
        "variance_rows": tables.variance_rows(record),
        "path_columns": tables.path_columns(record),
        "path_rows": tables.path_rows(record),
        "budget_rows": tables.budget_rows(record),
        "made_with": tables.made_with(record),
    }


def _themes() -> str:
    """Return the colours: dark where the system or the button says so."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in theme.items()) + f"color-scheme:{scheme}"
        for theme, scheme in ((LIGHT, "light"), (DARK, "dark"))
    )
    system = f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}'
    return f':root{{{light}}}\n{system}\n:root[data-theme="dark"]{{{dark}}}\n'


def _scale(record: FitRecord) -> dict[str, float] | None:
    """Return what is explained and what could be, in percent of plain PCA."""
    pca = record.pca_variance
    if pca is None or not pca.sum() > 0:
        return None
    found = min(record.objective / float(pca.sum()), 1.0)
    scale = {"found": 100 * found, "limit": 100 * found}
    if record.is_row_sparse and record.certificates:
        scale["limit"] = max(100 * min(record.certificates[0].upper / pca.sum(), 1.0), 100 * found)
    return scale


def _numbers(record: FitRecord, drawn: list[Chart]) -> dict[str, Any]:
    """Return what the script works with: the exact table, and the charts."""
    return {
        "columns": tables.csv_columns(record),
        "rows": tables.csv_rows(record),
        "charts": [
            {name: getattr(chart, name) for name in ("key", "data", "layout", "narrow", "height")}
            for chart in drawn
        ],
    }


def embedded(value: Any) -> str:
    """Return JSON that can stand inside a script element, whatever the texts in it are."""
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def packed(code: str) -> str:
    """Return a script in less than half its size, as letters that stand anywhere in a page.

    It is zlib's format in base64, which every browser of these years unpacks by itself.
    """
    return base64.b64encode(zlib.compress(code.encode("utf-8"), 9)).decode("ascii")
