"""What is drawn about a fit, as numbers: computed once, painted by matplotlib and on the page.

Every figure is a frozen dataclass of plain arrays and full names, made by `from_record` or
`from_estimator`. `kspan.plotting` and `kspan.report` only paint them, with the colours of
`kspan.figures.appearance`.
"""

from kspan.figures.biplot import BiplotFigure
from kspan.figures.choosing import PathFigure, StabilityFigure
from kspan.figures.components import ImageFigure, LoadingsFigure, ScreeFigure
from kspan.figures.convergence import GapFigure, StepsFigure
from kspan.figures.figure import NothingToDraw
from kspan.figures.spannogram import SpannogramFigure

__all__ = [
    "BiplotFigure",
    "GapFigure",
    "ImageFigure",
    "LoadingsFigure",
    "NothingToDraw",
    "PathFigure",
    "ScreeFigure",
    "SpannogramFigure",
    "StabilityFigure",
    "StepsFigure",
]
