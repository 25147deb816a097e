"""The report: one HTML page about a fit that opens anywhere, offline, from a `FitRecord` alone.

Needs the extra ``kspan[report]``, which is imported when a page is made and not before.
"""

from kspan.report.page import render, require_extras, write_report

__all__ = ["render", "require_extras", "write_report"]
