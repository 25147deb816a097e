"""Records of fits: one file that shows, applies and verifies a fit without fitting again."""

from kspan.records.record import FitRecord

__all__ = ["FitRecord"]
