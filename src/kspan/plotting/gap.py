"""`GapDisplay`: how a proof closed in on the optimum."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kspan.certificates import Certificate
from kspan.plotting.common import ACCENT, INK, LIGHT, MIDDLE, NORMAL, bare, make_axes
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Nothing before a millisecond is worth a decade of a logarithmic axis.
SHORTEST = 1e-3


class GapDisplay:
    """Lower and upper bound over time; the optimum is between them at every moment.

    Parameters
    ----------
    seconds : (t,) array
    lower, upper : (t,) arrays
        The bounds from that moment on.
    status : str, optional
        How it ended, for the title.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    lower_, upper_ : the two lines
    band_ : what is between them

    Examples
    --------
    >>> display = GapDisplay(seconds=[0.0, 1.0], lower=[9.0, 9.5], upper=[12.0, 10.0])
    >>> display.gap
    array([0.25, 0.05])
    """

    ax_: "Axes"
    figure_: "Figure"
    lower_: "Line2D"
    upper_: "Line2D"
    band_: "PolyCollection"

    def __init__(
        self,
        *,
        seconds: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        status: str | None = None,
    ):
        self.seconds = np.asarray(seconds, dtype=np.float64)
        self.lower = np.asarray(lower, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        self.status = status

    @property
    def gap(self) -> Any:
        """The share of the optimum that may be missed, at most, at every moment."""
        return (self.upper - self.lower) / np.where(self.upper > 0, self.upper, 1.0)

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, *, ax: "Axes | None" = None, **kwargs: Any
    ) -> Self:
        """Draw the history of a certificate.

        Parameters
        ----------
        certificate : Certificate
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        # The last line is what was proved in the end, wherever the history stops.
        end = [certificate.seconds, certificate.lower, certificate.upper]
        table = np.vstack([certificate.history.reshape(-1, 3), end])
        display = cls(
            seconds=np.maximum.accumulate(table[:, 0]),
            lower=table[:, 1],
            upper=table[:, 2],
            status=certificate.status.value,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_record(
        cls, record: FitRecord, *, component: int = 0, ax: "Axes | None" = None, **kwargs: Any
    ) -> Self:
        """Draw the history of a certificate of a saved fit.

        Parameters
        ----------
        record : FitRecord with a certificate
        component : which one, if every component has its own
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        certificate = _one_of(record.certificates, component)
        return cls.from_certificate(certificate, ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        component: int = 0,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the history of a certificate of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of kspan, fitted with `certify`
        X : not needed
        component : which one, if every component has its own
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        check_is_fitted(estimator)
        found = getattr(estimator, "certificates_", None)
        if found is None:
            found = [estimator.certificate_] if hasattr(estimator, "certificate_") else []
        return cls.from_certificate(_one_of(found, component), ax=ax, **kwargs)

    def plot(self, ax: "Axes | None" = None, *, log_time: bool = False) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        log_time : bool, default=False
            Time on a logarithmic axis, from a millisecond on.
        """
        self.ax_, self.figure_ = ax, _ = make_axes(ax, (6.4, 3.8))
        seconds = np.maximum(self.seconds, SHORTEST) if log_time else self.seconds
        self.band_ = ax.fill_between(
            seconds, self.lower, self.upper, step="post", facecolor=LIGHT, edgecolor=MIDDLE, lw=0.4,
            label="the optimum is in here",
        )  # fmt: skip
        steps: dict[str, Any] = {"drawstyle": "steps-post", "lw": NORMAL}
        (self.upper_,) = ax.plot(
            seconds, self.upper, color=ACCENT, ls="--", label="upper bound: proved", **steps
        )
        (self.lower_,) = ax.plot(
            seconds, self.lower, color=INK, label="lower bound: found", **steps
        )
        ends = ax.plot(
            seconds[[-1, -1]], [self.lower[-1], self.upper[-1]], ls="none", marker="o", ms=5,
            color="black", clip_on=False,
        )  # fmt: skip
        ends[0].set_zorder(3)
        if log_time:
            ax.set_xscale("log")
        how = "" if self.status is None else f", {self.status}"
        ax.set_title(
            f"gap {self.gap[-1]:.2%} after {self.seconds[-1]:.2g} s{how}", fontsize="medium"
        )
        ax.set(
            xlabel="time (seconds)", ylabel="explained variance\n(squared units of the features)"
        )
        ax.legend(framealpha=1.0)
        bare(ax)
        return self


def _one_of(certificates: "list[Certificate]", component: int) -> Certificate:
    if not certificates:
        raise ValueError("The fit has no certificate: fit with certify='fast', 'tight' or 'exact'.")
    if not 0 <= component < len(certificates):
        raise ValueError(
            f"component={component}, but there are certificates 0 to {len(certificates) - 1}."
        )
    return certificates[component]
