"""`GapDisplay`: how a proof closed in on the optimum."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kspan.figures import GapFigure
from kspan.plotting import display
from kspan.plotting.display import Display
from kspan.proofs import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Nothing before a millisecond is worth a decade of a logarithmic axis.
SHORTEST = 1e-3


class GapDisplay(Display, GapFigure):
    """Lower and upper bound over time; the optimum is between them at every moment.

    Parameters are those of `kspan.figures.GapFigure`.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    lower_, upper_ : the two lines
    band_ : what is between them

    Other Parameters
    ----------------
    component : int, default=0
        Of `from_record` and `from_estimator`: which one, if every component has its own proof.

    Examples
    --------
    >>> display = GapDisplay(seconds=[0.0, 1.0], lower=[9.0, 9.5], upper=[12.0, 10.0])
    >>> display.gap
    array([0.25, 0.05])
    """

    figure_type = GapFigure
    asks = ("component",)

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, *, ax: "Axes | None" = None, **kwargs: Any
    ) -> Self:
        """Draw the history of a certificate; else as `from_record`."""
        return cls.from_figure(GapFigure.from_certificate(certificate), ax=ax, **kwargs)

    def plot(self, ax: "Axes | None" = None, *, log_time: bool = False) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        log_time : bool, default=False
            Time on a logarithmic axis, from a millisecond on.
        """
        ax = self._axes(ax, (6.4, 3.8))
        seconds = np.maximum(self.seconds, SHORTEST) if log_time else self.seconds
        self.band_ = ax.fill_between(
            seconds, self.lower, self.upper, step="post", color=display.BAND, lw=0,
            label="the best possible is in here",
        )  # fmt: skip
        steps: dict[str, Any] = {"drawstyle": "steps-post", "lw": display.NORMAL}
        (self.upper_,) = ax.plot(
            seconds, self.upper, color=display.PROVED, ls="--", label="upper bound: proved", **steps
        )
        (self.lower_,) = ax.plot(
            seconds, self.lower, color=display.FOUND, label="lower bound: found", **steps
        )
        ax.plot(
            seconds[[-1, -1]], [self.lower[-1], self.upper[-1]], ls="none", marker="o", ms=5,
            color="black", clip_on=False, zorder=3,
        )  # fmt: skip
        if log_time:
            ax.set_xscale("log")
        how = "" if self.status is None else f", {self.status}"
        ax.set_title(
            f"gap {self.gap[-1]:.2%} after {self.seconds[-1]:.2g} s{how}", fontsize="medium"
        )
        ax.set(xlabel="time (seconds)", ylabel=f"{self.what}\n(squared units of the features)")
        ax.legend(framealpha=1.0)
        display.bare(ax)
        return self
