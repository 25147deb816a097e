"""Pictures of a fit, in the manner of scikit-learn's displays. They need ``kspan[plot]``.

Every display holds a figure of `kspan.figures`, draws it with `plot`, and keeps `ax_`, `figure_`
and the artists. All read in greyscale: what differs in colour differs in lightness, mark or hatch
too. matplotlib is imported when something is drawn, not before.
"""

from kspan.plotting.biplot import BiplotDisplay
from kspan.plotting.gap import GapDisplay
from kspan.plotting.image import ImageDisplay
from kspan.plotting.loadings import LoadingsDisplay
from kspan.plotting.path import PathDisplay
from kspan.plotting.scree import ScreeDisplay
from kspan.plotting.spannogram import SpannogramDisplay
from kspan.plotting.stability import StabilityDisplay

__all__ = [
    "BiplotDisplay",
    "GapDisplay",
    "ImageDisplay",
    "LoadingsDisplay",
    "PathDisplay",
    "ScreeDisplay",
    "SpannogramDisplay",
    "StabilityDisplay",
]
