"""How a proof closed in on the optimum, and what the solver had found after each of its steps."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kspan.arrays import FloatArray
from kspan.figures.figure import Figure, NothingToDraw, floats
from kspan.proofs import Certificate
from kspan.records import FitRecord


@dataclass(frozen=True, eq=False)
class GapFigure(Figure):
    """Lower and upper bound over time; the optimum is between them at every moment.

    Parameters
    ----------
    seconds : (t,) array
    lower, upper : (t,) the bounds from that moment on
    status : how it ended, or None
    what : what is bounded
    """

    seconds: FloatArray
    lower: FloatArray
    upper: FloatArray
    status: str | None = None
    what: str = "explained variance"

    def __post_init__(self) -> None:
        self._settle(seconds=floats, lower=floats, upper=floats)

    @classmethod
    def from_certificate(cls, certificate: Certificate) -> Self:
        """Return the history of a certificate, and how it ended."""
        # The last line is what was proved in the end, wherever the history stops.
        end = [certificate.seconds, certificate.lower, certificate.upper]
        time, lower, upper = np.vstack([certificate.history.reshape(-1, 3), end]).T
        # What components share counts in each of them: that is not what they explain together.
        joint = certificate.patterns is not None and certificate.n_components > 1
        what = "variances of all components added up" if joint else "explained variance"
        return cls(np.maximum.accumulate(time), lower, upper, certificate.status.value, what)

    @classmethod
    def from_record(cls, record: Any, *, component: int = 0) -> Self:
        """Return the history of a certificate of a fit: of which component, if each has one."""
        proofs = record.certificates
        if not proofs:
            raise NothingToDraw(
                "The fit has no certificate: fit with certify='fast', 'tight' or 'exact'."
            )
        if not 0 <= component < len(proofs):
            raise ValueError(
                f"component={component}, but there are certificates 0 to {len(proofs) - 1}."
            )
        return cls.from_certificate(proofs[component])

    @property
    def gap(self) -> FloatArray:
        """The share of the optimum that may be missed, at most, at every moment."""
        return (self.upper - self.lower) / np.where(self.upper > 0, self.upper, 1.0)


@dataclass(frozen=True, eq=False)
class StepsFigure(Figure):
    """The objective, step by step.

    Parameters
    ----------
    objective : (t,) array, after steps 1 to t
    starts_anew : whether components may have been found one after the other
    what : what it is
    """

    objective: FloatArray
    starts_anew: bool
    what: str = "explained variance"

    @classmethod
    def from_record(cls, record: FitRecord) -> Self:
        """Return the steps of a saved fit."""
        if record.history.size < 2:
            raise NothingToDraw("The solver took a single step, or kept no history.")
        shared = record.is_row_sparse
        what = "explained variance" if shared else "objective of the solver"
        return cls(record.history, not shared and record.n_components > 1, what)
